//! `brunt ui`: pages of the runs that were kept.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::net::SocketAddr;

use anyhow::Result;
use clap::Args;

use crate::args::kept::From;
use crate::args::values;
use crate::exit::Exit;
use crate::signals::Waiter;
use crate::{console, kept, ui};

/// Browse kept runs, in a browser
#[derive(Debug, Args)]
pub struct Ui {
    /// Where to serve the pages: ADDRESS:PORT, or PORT on 127.0.0.1 [default: a free one]. The URL that is printed has a
    /// token, without which nothing is shown
    #[arg(long, value_name = "ADDR", default_value = "0", hide_default_value = true, value_parser = values::listen)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub from: From,
}

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
