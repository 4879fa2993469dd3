//! `brunt completions SHELL`: from the same definitions as the help.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::args::Program;
use crate::console;
use crate::exit::Exit;

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell
    pub shell: Shell,
}

pub fn run(args: &Completions, program: &Program) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program.definitions.clone(), "brunt", &mut script);
    console::print(&script)?;
    Ok(Exit::Done)
}
