//! `brunt report [RUN]`: the report page of a run that was kept.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Result, bail};
use brunt_report::decision::Runs;
use brunt_report::{decision, html};
use brunt_store::{RunSelector, Store, StoredResult};
use clap::Args;

use crate::args::kept::From;
use crate::exit::Exit;
use crate::result_file::{self, Written};
use crate::{console, files, kept};

/// Make the report page of a kept run
#[derive(Debug, Args)]
pub struct Report {
    /// A number or name of a run that was kept, last, or a result that was written with -o result.json, also one of
    /// sweep, find and compare; FILE:NUMBER is one of several runs in a file
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    #[command(flatten)]
    pub from: From,
    /// Write the page into this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub fn run(args: &Report) -> Result<Exit> {
    match &args.output {
        Some(path) => files::check_writable(path)?,
        None if console::stdout_is_terminal() => bail!("the page is for a browser: name a file with -o report.html"),
        None => {}
    }
    let mut page = Vec::new();
    match result_file::read(&args.run)? {
        Some(Written::Decision(decided)) => decision::write_page(&mut page, decided.decision(), Runs::default())?,
        Some(Written::Run(summary)) => html::write(&mut page, &summary)?,
        None => {
            let which: RunSelector = args.run.parse()?;
            match Store::open_kept(&kept::path(args.from.store.as_deref())?)?.kept(&which)? {
                StoredResult::Run(summary) => html::write(&mut page, &summary)?,
                StoredResult::Decision(decision, runs) => {
                    let runs = Runs { kept: &runs, store: args.from.store.as_deref(), ..Runs::default() };
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
