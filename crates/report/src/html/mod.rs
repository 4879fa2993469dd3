//! A run as one HTML file that works offline: the page that `web/` is built into, with what it shows embedded as JSON.
//!
//! The page is made by `make page` and embedded when this crate is compiled. A build without it works, and says so
//! where the page is asked for.

use std::io::{self, Write};

use brunt_judge::summary::Summary;
use serde::Serialize;

use crate::json::Document;
use crate::markup::Html;
use shown::Shown;

mod by_due;
mod data;
mod distribution;
mod drilldown;
mod first_screen;
mod last_second;
mod live;
mod names;
mod series;
mod shown;
mod stack;
mod stretches;

pub(crate) use data::Data;
pub use live::Running;

/// The page as it was built, if it was.
#[cfg(has_page)]
const PAGE: Option<&str> = Some(include_str!("../../page/page.html"));
#[cfg(not(has_page))]
const PAGE: Option<&str> = None;

/// Where the title stands in the page, what it shows without a script, and the data.
const PLACES: [&str; 3] = ["<!-- the title -->", "<!-- the first screen -->", "{\"place\":\"of the data\"}"];

/// What begins the page's policy: nothing may be fetched.
const NOWHERE: &str = "default-src 'none'";

/// There is no page to show anything on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this brunt was built without the report page: with Node.js 18 or later, run `make page` in brunt's sources and \
     build it again"
)]
pub struct NoPage;

/// Finds out whether there is a page.
///
/// # Errors
/// When this was built without it.
pub fn check() -> Result<(), NoPage> {
    parts().map(drop)
}

/// What stands before, between and behind the places.
fn parts() -> Result<[&'static str; 4], NoPage> {
    let [title, first_screen, data] = PLACES;
    let (before, rest) = PAGE.and_then(|page| page.split_once(title)).ok_or(NoPage)?;
    let (head, rest) = rest.split_once(first_screen).ok_or(NoPage)?;
    let (body, behind) = rest.split_once(data).ok_or(NoPage)?;
    Ok([before, head, body, behind])
}

/// Writes the page of `summary`.
///
/// # Errors
/// When there is no page ([`NoPage`]), or `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    write_shown(out, Shown { document: &Document::from_summary(summary), summary })
}

/// Writes the page of a result that was kept.
///
/// # Errors
/// When there is no page ([`NoPage`]), or `out` cannot be written to.
pub fn write_document(out: &mut impl Write, document: &Document) -> io::Result<()> {
    write_shown(out, Shown { document, summary: &document.summary() })
}

fn write_shown(out: &mut impl Write, shown: Shown<'_>) -> io::Result<()> {
    let mut data = Data::new(shown, None);
    let (title, first_screen) = data.take_first_screen();
    write_data(out, &title, &first_screen, &embedded(&data)?)
}

/// Writes the page that shows `data`, and `first_screen` (HTML) without a script.
pub(crate) fn write_data(out: &mut impl Write, title: &str, first_screen: &str, data: &str) -> io::Result<()> {
    let [before, head, body, behind] = parts().map_err(|none| io::Error::new(io::ErrorKind::Unsupported, none))?;
    let mut name = Html::default();
    name.raw("brunt ").text(title);
    for piece in [before, &name.into_string(), head, first_screen, body, data, behind] {
        out.write_all(piece.as_bytes())?;
    }
    Ok(())
}

/// The page for a run that goes on. It shows what comes from where it came from, at `events`: server-sent events called
/// `data`, and a last one called `finished`, each what [`Running::data`] or [`data`] says.
///
/// # Errors
/// When there is no page.
pub fn following() -> Result<String, NoPage> {
    let [before, head, body, behind] = parts()?;
    if !before.contains(NOWHERE) {
        return Err(NoPage);
    }
    let before = before.replacen(NOWHERE, &format!("{NOWHERE}; connect-src 'self'"), 1);
    Ok(format!("{before}brunt{head}{body}{{\"kind\":\"follow\"}}{behind}"))
}

/// What the page shows of a run that is over, as JSON in a line.
///
/// # Errors
/// None: writing JSON is fallible in type.
pub fn data(summary: &Summary) -> io::Result<String> {
    embedded(&Data::new(Shown { document: &Document::from_summary(summary), summary }, None))
}

/// `data` as JSON without `<`: nothing in it can end the element that it stands in, or begin
/// another (HTML, "restrictions for contents of script elements").
pub(crate) fn embedded(data: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(data)?.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests;
