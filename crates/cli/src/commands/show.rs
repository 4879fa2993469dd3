//! `brunt show RUN`: a run that was kept or written into a file, or what was decided over several, as it was shown when it
//! ended.

use std::path::Path;

use anyhow::{Result, anyhow};
use brunt_judge::summary::Summary;
use brunt_report::decision::Runs;
use brunt_store::{Kept, Store, Which};

use crate::args::{Output, Show};
use crate::decided::Decided;
use crate::exit::Exit;
use crate::kept;
use crate::result_file::{self, Written};
use crate::results::Results;

pub fn run(args: &Show) -> Result<Exit> {
    match result_file::read(&args.run)? {
        Some(Written::Decision(decided)) => show_decided(args, &decided, Runs::default())?,
        Some(Written::Run(document)) => show(args, &document.summary())?,
        None => {
            let which: Which = args.run.parse()?;
            match Store::open_kept(&kept::path(args.from.store.as_deref())?)?.kept(&which)? {
                Kept::Run(summary) => show(args, &summary)?,
                Kept::Decision(decided, runs) => {
                    show_decided(args, &decided, found(&runs, args.from.store.as_deref()))?;
                }
            }
        }
    }
    Ok(Exit::Done)
}

/// Where the runs behind a decision are found that was kept with their numbers.
pub fn found<'a>(kept: &'a [i64], store: Option<&'a Path>) -> Runs<'a> {
    Runs { kept, store, ..Runs::default() }
}

fn show_decided(args: &Show, decided: &brunt_decide::decision::Decided, runs: Runs<'_>) -> Result<()> {
    let format = args.format.as_deref().map(str::parse).transpose().map_err(|e| anyhow!("--format: {e}"))?;
    let places = Decided::new(&args.outputs, None, format, false, args.no_color)?;
    places.dated().write(decided.decision(), runs)
}

fn show(args: &Show, summary: &Summary) -> Result<()> {
    let fewer = (!args.without.is_empty()).then(|| summary.run.without(&args.without)).transpose()?;
    let fewer = fewer.map(|run| Summary::of(summary.plan.clone(), run));
    let summary = fewer.as_ref().unwrap_or(summary);
    let format = args.format.as_deref().map(str::parse).transpose().map_err(|e| anyhow!("--format: {e}"))?;
    let output = Output {
        format,
        outputs: args.outputs.clone(),
        verbose: args.verbose,
        no_color: args.no_color,
        no_histograms: args.no_histograms,
        ..Output::default()
    };
    Results::of_kept(&output)?.dated().write(summary)
}
