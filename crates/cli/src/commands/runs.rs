//! `brunt runs`: the runs that were kept, listed and forgotten.

use anyhow::Result;
use brunt_report::Style;
use brunt_report::kept::listing;
use brunt_store::Store;

use super::Exit;
use crate::args::Runs;
use crate::args::kept::{ListFormat, RunsCommand};
use crate::{console, kept};

pub fn run(args: &Runs) -> Result<Exit> {
    let path = kept::path(args.from.store.as_deref())?;
    // To change anything, it must be there already.
    let mut store = Store::open_kept(&path)?;
    match &args.command {
        None => {
            let mut entries = store.list(&args.tags)?;
            entries.retain(|entry| args.all || entry.part_of.is_none());
            let text = match args.format {
                ListFormat::Text => {
                    listing(&entries, Style { colour: console::stdout_colour(args.no_color), ..Style::default() })
                }
                ListFormat::Json => serde_json::to_string_pretty(&entries)? + "\n",
            };
            console::print(text.as_bytes())?;
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
