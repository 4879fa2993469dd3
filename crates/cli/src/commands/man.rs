//! `brunt man`: a manual page for each command, from the same definitions as the help, and for each topic of the guide.

use anyhow::{Context as _, Result};
use brunt_protocol::Registry;
use clap::Command;
use clap::builder::Resettable;
use clap_mangen::Man;

use crate::args;
use crate::exit::Exit;
use crate::guide::{TOPICS, roff};
use crate::{console, files};

pub fn run(args: &args::Man, registry: &Registry) -> Result<Exit> {
    let mut root = args::command(registry)?;
    root.build();
    let mut pages = Vec::new();
    collect(root, &mut pages);
    let mut whole = Vec::new();
    for (page, behind) in &pages {
        let mut text = Vec::new();
        page.render(&mut text)?;
        if let Some(behind) = behind {
            text.extend(roff::as_it_is("EXAMPLES AND EXIT STATUS", behind).into_bytes());
        }
        match &args.dir {
            Some(dir) => files::write(&dir.join(page.get_filename()), &text)?,
            None => whole.append(&mut text),
        }
    }
    for topic in TOPICS {
        match &args.dir {
            Some(dir) => files::write(&dir.join(format!("brunt-{}.7", topic.name)), topic.for_man().as_bytes())?,
            None => whole.extend(topic.for_man().into_bytes()),
        }
    }
    console::print(&whole).context("the manual")?;
    Ok(Exit::Done)
}

/// The command's page, then those of its subcommands. `bench` is what the first page is about.
///
/// What stands at the end of the help comes apart from the page: lines in it are lines, which the page would fill.
fn collect(command: Command, pages: &mut Vec<(Man, Option<String>)>) {
    let below: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "bench").cloned().collect();
    let source = concat!("brunt ", env!("CARGO_PKG_VERSION"));
    let behind = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let command = command.after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    pages.push((Man::new(command).source(source).manual("brunt"), behind));
    for sub in below {
        collect(sub, pages);
    }
}
