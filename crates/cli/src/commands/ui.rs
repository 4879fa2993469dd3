//! `brunt ui`: pages of the runs that were kept.

use anyhow::Result;

use crate::args::Ui;
use crate::exit::Exit;
use crate::signals::Waiter;
use crate::{console, kept, ui};

/// Serves the pages until a signal comes.
pub fn run(args: &Ui) -> Result<Exit> {
    let waiter = Waiter::new()?;
    let pages = ui::Ui::start(args.listen, kept::path(args.from.store.as_deref())?)?;
    console::print(format!("{}\n", pages.url()).as_bytes())?;
    if console::stderr_redraws() {
        console::note("Open it in a browser; the URL is a key to these runs. Ctrl-C ends it.");
    }
    waiter.wait(None);
    Ok(Exit::Done)
}
