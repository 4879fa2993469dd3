//! `brunt show RUN`: a run that was kept or written into a file, or a decision over several runs, in the form that it
//! had when it ended.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use brunt_judge::summary::Summary;
use brunt_report::decision::{self, Runs};
use brunt_store::{RunSelector, Store, StoredResult};
use clap::Args;

use crate::args::kept::From;
use crate::args::{Output, values};
use crate::decision_output::DecisionOutput;
use crate::exit::Exit;
use crate::kept;
use crate::result_file::{self, Written};
use crate::results::Results;

/// Print a kept run, in any format
#[derive(Debug, Args)]
pub struct Show {
    /// Its number or name, last, or a result that was written with -o result.json, also one of
    /// sweep, find and compare; FILE:NUMBER is one of several runs in a file
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    #[command(flatten)]
    pub from: From,
    /// The format: those of brunt bench, or of a decision over several runs [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = values::any_format())]
    pub format: Option<String>,
    /// Leave this agent of the run out of the figures, repeatable
    #[arg(long, value_name = "AGENT")]
    pub without: Vec<String>,
    /// Print every figure, where the report else fits 24 lines
    #[arg(short, long)]
    pub verbose: bool,
    #[arg(short, long = "output", value_name = "FILE",
          help = format!("Write it into this file as well, repeatable: {}", decision::DecisionFormat::extensions()))]
    pub outputs: Vec<PathBuf>,
    /// No colours
    #[arg(long)]
    pub no_color: bool,
    /// Text in ASCII alone
    #[arg(long)]
    pub ascii: bool,
}

pub fn run(args: &Show) -> Result<Exit> {
    match result_file::read(&args.run)? {
        Some(Written::Decision(decided)) => show_decided(args, &decided, Runs::default())?,
        Some(Written::Run(summary)) => show(args, &summary)?,
        None => {
            let which: RunSelector = args.run.parse()?;
            match Store::open_kept(&kept::path(args.from.store.as_deref())?)?.kept(&which)? {
                StoredResult::Run(summary) => show(args, &summary)?,
                StoredResult::Decision(decided, runs) => {
                    let store = args.from.store.as_deref();
                    show_decided(args, &decided, Runs { kept: &runs, store, ..Runs::default() })?;
                }
            }
        }
    }
    Ok(Exit::Done)
}

fn show_decided(args: &Show, decided: &brunt_decide::decision::KeptDecision, runs: Runs<'_>) -> Result<()> {
    let format = args.format.as_deref().map(str::parse).transpose().map_err(|e| anyhow!("--format: {e}"))?;
    let places = DecisionOutput::new(&args.outputs, None, format, false, args.no_color, args.ascii)?;
    places.dated().write(decided.decision(), runs)
}

fn show(args: &Show, summary: &Summary) -> Result<()> {
    let fewer = (!args.without.is_empty()).then(|| summary.run.without(&args.without)).transpose()?;
    let fewer = fewer.map(|run| Summary::new(summary.plan.clone(), run));
    let summary = fewer.as_ref().unwrap_or(summary);
    let format = args.format.as_deref().map(str::parse).transpose().map_err(|e| anyhow!("--format: {e}"))?;
    let output = Output {
        format,
        outputs: args.outputs.clone(),
        verbose: args.verbose,
        no_color: args.no_color,
        ascii: args.ascii,
        ..Output::default()
    };
    Results::from_flags(&output)?.dated().write(summary)
}
