//! A run as one HTML file that works offline: the page that `web/` is built into, with what it shows embedded as JSON.
//!
//! The page is made by `make page` and embedded when this crate is compiled. A build without it works, and says so
//! where the page is asked for.

use std::io::{self, Write};

use brunt_model::summary::Summary;

use crate::json::Document;

mod data;
mod distribution;
mod names;
mod series;

use data::Data;

/// The page as it was built, if it was.
#[cfg(has_page)]
const PAGE: Option<&str> = Some(include_str!("../../page/page.html"));
#[cfg(not(has_page))]
const PAGE: Option<&str> = None;

/// Where the data stands in the page.
const PLACE: &str = "{\"place\":\"of the data\"}";

/// There is no page to show anything on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this brunt was built without the report page: with Node.js 18 or later, run `make page` in brunt's sources and \
     build it again; -o result.json keeps the result until then"
)]
pub struct NoPage;

/// Finds out whether there is a page.
///
/// # Errors
/// When this was built without it.
pub fn check() -> Result<(), NoPage> {
    parts().map(drop)
}

/// What stands before and behind the data.
fn parts() -> Result<(&'static str, &'static str), NoPage> {
    PAGE.and_then(|page| page.split_once(PLACE)).ok_or(NoPage)
}

/// Writes the page of `summary`.
///
/// # Errors
/// When there is no page ([`NoPage`]), or `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    write_document(out, &Document::of(summary))
}

/// Writes the page of a result that was kept.
///
/// # Errors
/// When there is no page ([`NoPage`]), or `out` cannot be written to.
pub fn write_document(out: &mut impl Write, document: &Document) -> io::Result<()> {
    let (before, behind) = parts().map_err(|none| io::Error::new(io::ErrorKind::Unsupported, none))?;
    out.write_all(before.as_bytes())?;
    out.write_all(embedded(document)?.as_bytes())?;
    out.write_all(behind.as_bytes())
}

/// What the page shows of `document`, as JSON without `<`: nothing in it can end the element that it stands in, or begin
/// another (HTML, "restrictions for contents of script elements").
fn embedded(document: &Document) -> io::Result<String> {
    Ok(serde_json::to_string(&Data::of(document))?.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests;
