//! `brunt report RESULT`: the report page of a result that was kept as JSON.

use std::io::IsTerminal as _;

use anyhow::{Context as _, Result, bail};
use brunt_report::{html, json};

use super::Exit;
use crate::args::Report;
use crate::{console, files};

pub fn run(args: &Report) -> Result<Exit> {
    html::check()?;
    match &args.output {
        Some(path) => files::check_writable(path)?,
        None if std::io::stdout().is_terminal() => bail!("the page is for a browser: name a file with -o report.html"),
        None => {}
    }
    let document = json::read(&files::read(&args.result)?).with_context(|| args.result.display().to_string())?;
    let mut page = Vec::new();
    html::write_document(&mut page, &document)?;
    match &args.output {
        Some(path) => files::write(path, &page)?,
        None => console::print(&page)?,
    }
    Ok(Exit::Done)
}
