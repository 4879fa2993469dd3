//! `brunt runs`: the runs that were kept, listed and forgotten.

use std::io::IsTerminal as _;

use anyhow::Result;
use brunt_report::Style;
use brunt_report::kept::listing;
use brunt_store::Store;

use crate::args::Runs;
use crate::args::kept::{ListFormat, RunsCommand};
use crate::exit::Exit;
use crate::{console, kept};

/// How many are listed where no number is asked for.
const SHOWN: usize = 20;

pub fn run(args: &Runs) -> Result<Exit> {
    let path = kept::path(args.from.store.as_deref())?;
    // To change anything, it must be there already.
    let mut store = Store::open_kept(&path)?;
    match &args.command {
        None => {
            let mut entries = store.list(&args.tags)?;
            entries.retain(|entry| args.all || entry.part_of.is_none());
            let there = entries.len();
            let shown = args.last.unwrap_or(if args.format == ListFormat::Text { SHOWN } else { there });
            // The newest come first.
            entries.truncate(shown);
            let text = match args.format {
                ListFormat::Text => {
                    let style = Style { colour: console::stdout_colour(args.no_color), ..Style::default() };
                    listing(&entries, style, std::io::stdout().is_terminal().then(console::stdout_width))
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
