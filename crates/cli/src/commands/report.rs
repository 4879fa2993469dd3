//! `brunt report [RUN]`: the report page of a run that was kept.

use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use brunt_report::decision::Runs;
use brunt_report::{decision, html, json};
use brunt_store::{Kept, Store, Which};

use super::Exit;
use super::show::found;
use crate::args::Report;
use crate::{console, files, kept};

pub fn run(args: &Report) -> Result<Exit> {
    html::check()?;
    match &args.output {
        Some(path) => files::check_writable(path)?,
        None if std::io::stdout().is_terminal() => bail!("the page is for a browser: name a file with -o report.html"),
        None => {}
    }
    let mut page = Vec::new();
    if is_file(&args.run) {
        let bytes = files::read(Path::new(&args.run))?;
        match decision::read(&bytes).with_context(|| args.run.clone())? {
            Some(decided) => decision::write_page(&mut page, decided.decision(), Runs::default())?,
            None => html::write_document(&mut page, &json::read_whole(&bytes).with_context(|| args.run.clone())?)?,
        }
    } else {
        let which: Which = args.run.parse()?;
        match Store::open_kept(&kept::path(args.from.store.as_deref())?)?.kept(&which)? {
            Kept::Run(summary) => html::write(&mut page, &summary)?,
            Kept::Decision(decision, runs) => {
                let runs = found(&runs, args.from.store.as_deref());
                decision::write_page(&mut page, decision.decision(), runs)?;
            }
        }
    }
    match &args.output {
        Some(path) => files::write(path, &page)?,
        None => console::print(&page)?,
    }
    Ok(Exit::Done)
}

/// Whether this is a file rather than the number or the name of a run.
pub fn is_file(run: &str) -> bool {
    let path = Path::new(run);
    run.parse::<i64>().is_err() && (path.is_file() || path.extension().is_some_and(|extension| extension == "json"))
}
