//! `brunt runs`: the runs that were kept, listed and forgotten.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use anyhow::Result;
use brunt_report::kept::listing;
use brunt_store::{RunSelector, Store};
use clap::{Args, Subcommand, ValueEnum};

use crate::args::kept::From;
use crate::args::values;
use crate::exit::Exit;
use crate::{console, kept};

/// List kept runs, or delete some
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    #[command(flatten)]
    pub from: From,
    /// List only runs with this tag, repeatable
    #[arg(long = "tag", value_name = "K=V", value_parser = values::tag)]
    pub tags: Vec<(String, String)>,
    /// List this many of the newest [default: 20; with --format json, all]
    #[arg(short = 'n', long, value_name = "N")]
    pub last: Option<usize>,
    /// Also list the single runs behind sweeps, comparisons and searches
    #[arg(long)]
    pub all: bool,
    /// The format of the list: a table, or JSON with everything known
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub format: ListFormat,
    /// No colours
    #[arg(long)]
    pub no_color: bool,
}

/// How runs are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A table
    Text,
    /// A list of objects, the newest first
    Json,
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Delete runs
    Rm {
        /// Their numbers or names, or last
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<RunSelector>,
    },
    /// Delete all runs but the newest
    Prune {
        /// The number of runs to keep
        #[arg(long, value_name = "N")]
        keep: u64,
    },
}

/// Why the list is empty, and what to type next.
fn nothing_listed(tags: &[(String, String)]) -> String {
    match tags {
        [] => "no runs are kept: the next one is, by itself: brunt URL".to_owned(),
        tags => {
            let tags = tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
            format!(
                "no kept run has {}: brunt runs lists all, and brunt --tag {} URL keeps one",
                tags.join(" and "),
                tags.join(" --tag ")
            )
        }
    }
}

/// The default number of listed runs.
const SHOWN: usize = 20;

pub fn run(args: &Runs) -> Result<Exit> {
    let path = kept::path(args.from.store.as_deref())?;
    // Tags can be changed only in an existing store.
    let mut store = Store::open_kept(&path)?;
    match &args.command {
        None => {
            let mut entries = store.list(&args.tags)?;
            entries.retain(|entry| args.all || entry.part_of.is_none());
            if entries.is_empty() && args.format == ListFormat::Text {
                console::note(&nothing_listed(&args.tags));
                return Ok(Exit::Done);
            }
            let there = entries.len();
            let shown = args.last.unwrap_or(if args.format == ListFormat::Text { SHOWN } else { there });
            // The newest come first.
            entries.truncate(shown);
            let text = match args.format {
                ListFormat::Text => {
                    let style = console::stdout_style(args.no_color, false);
                    listing(&entries, style, console::stdout_is_terminal().then(console::stdout_width))
                }
                ListFormat::Json => serde_json::to_string_pretty(&entries)? + "\n",
            };
            console::print(text.as_bytes())?;
            if args.last.is_none() && there > entries.len() {
                console::note(&format!("{} more: -n {there} lists them all", there - entries.len()));
            }
        }
        Some(command) => {
            drop(store);
            store = Store::open(&path)?;
            let gone = match command {
                RunsCommand::Rm { runs } => store.remove(runs)?,
                RunsCommand::Prune { keep } => store.prune(*keep)?,
            };
            console::note(&format!("forgot {gone} run{}", if gone == 1 { "" } else { "s" }));
        }
    }
    Ok(Exit::Done)
}
