//! `brunt report [RUN]`: the report page of a run that was kept.

use std::io::IsTerminal as _;

use anyhow::{Result, bail};
use brunt_report::decision::Runs;
use brunt_report::{decision, html};
use brunt_store::{Kept, Store, Which};

use super::show::found;
use crate::args::Report;
use crate::exit::Exit;
use crate::result_file::{self, Written};
use crate::{console, files, kept};

pub fn run(args: &Report) -> Result<Exit> {
    html::check()?;
    match &args.output {
        Some(path) => files::check_writable(path)?,
        None if std::io::stdout().is_terminal() => bail!("the page is for a browser: name a file with -o report.html"),
        None => {}
    }
    let mut page = Vec::new();
    match result_file::read(&args.run)? {
        Some(Written::Decision(decided)) => decision::write_page(&mut page, decided.decision(), Runs::default())?,
        Some(Written::Run(document)) => html::write_document(&mut page, &document)?,
        None => {
            let which: Which = args.run.parse()?;
            match Store::open_kept(&kept::path(args.from.store.as_deref())?)?.kept(&which)? {
                Kept::Run(summary) => html::write(&mut page, &summary)?,
                Kept::Decision(decision, runs) => {
                    let runs = found(&runs, args.from.store.as_deref());
                    decision::write_page(&mut page, decision.decision(), runs)?;
                }
            }
        }
    }
    match &args.output {
        Some(path) => files::write(path, &page)?,
        None => console::print(&page)?,
    }
    Ok(Exit::Done)
}
