//! `brunt man`: a manual page for each command, from the same definitions as the help.

use anyhow::{Context as _, Result};
use brunt_engine::protocol::Registry;
use clap::Command;
use clap_mangen::Man;

use super::Exit;
use crate::args;
use crate::{console, files};

pub fn run(args: &args::Man, registry: &Registry) -> Result<Exit> {
    let mut root = args::command(registry)?;
    root.build();
    let mut pages = Vec::new();
    collect(root, &mut pages);
    let mut whole = Vec::new();
    for page in &pages {
        let mut text = Vec::new();
        page.render(&mut text)?;
        match &args.dir {
            Some(dir) => files::write(&dir.join(page.get_filename()), &text)?,
            None => whole.append(&mut text),
        }
    }
    console::print(&whole).context("the manual")?;
    Ok(Exit::Done)
}

/// The command's page, then those of its subcommands. `bench` is what the first page is about.
fn collect(command: Command, pages: &mut Vec<Man>) {
    let below: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "bench").cloned().collect();
    let source = concat!("brunt ", env!("CARGO_PKG_VERSION"));
    pages.push(Man::new(command).source(source).manual("brunt"));
    for sub in below {
        collect(sub, pages);
    }
}
