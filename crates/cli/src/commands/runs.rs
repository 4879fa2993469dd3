//! `brunt runs`: the runs that were kept, listed and forgotten.

use anyhow::Result;
use brunt_report::Style;
use brunt_report::store::{Store, listing};

use super::Exit;
use crate::args::Runs;
use crate::args::kept::RunsCommand;
use crate::{console, kept};

pub fn run(args: &Runs) -> Result<Exit> {
    let path = kept::path(args.from.store.as_deref())?;
    // To change anything, it must be there already.
    let mut store = Store::open_kept(&path)?;
    match &args.command {
        None => {
            let style = Style { colour: console::stdout_colour(args.no_color), ..Style::default() };
            console::print(listing(&store.list(&args.tags)?, style).as_bytes())?;
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
