//! `brunt man`: a manual page for each command, from the same definitions as the help, and for each topic of the guide.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::builder::Resettable;
use clap::{Args, Command};
use clap_mangen::Man as Page;

use crate::args::Program;
use crate::exit::Exit;
use crate::guide::{self, ALIASES, roff};
use crate::{console, files};

/// Print the manual pages
#[derive(Debug, Args)]
pub struct Man {
    /// Write a page for each command into this directory instead, which is made if it is not there (brunt.1, brunt-serve-http.1, …)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

pub fn run(args: &Man, program: &Program) -> Result<Exit> {
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("--dir {}", dir.display()))?;
    }
    let mut root = program.definitions.clone();
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
    for topic in guide::topics() {
        match &args.dir {
            Some(dir) => files::write(&dir.join(format!("brunt-{}.7", topic.name)), topic.for_man().as_bytes())?,
            None => whole.extend(topic.for_man().into_bytes()),
        }
    }
    if let Some(dir) = &args.dir {
        for (alias, topic) in ALIASES {
            files::write(&dir.join(format!("brunt-{alias}.7")), format!(".so man7/brunt-{topic}.7\n").as_bytes())?;
        }
    }
    console::print(&whole).context("the manual")?;
    Ok(Exit::Done)
}

/// The command's page, then those of its subcommands. The first page describes `bench`.
///
/// The end of the help comes separately: its lines stay lines, which the page would fill.
fn collect(command: Command, pages: &mut Vec<(Page, Option<String>)>) {
    let below: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "bench").cloned().collect();
    let source = concat!("brunt ", env!("CARGO_PKG_VERSION"));
    let behind = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let behind = behind.filter(|behind| !behind.is_empty());
    let command = command.after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    pages.push((Page::new(command).source(source).manual("brunt"), behind));
    for sub in below {
        collect(sub, pages);
    }
}
