//! `brunt completions SHELL`: from the same definitions as the help.

use anyhow::Result;
use clap::CommandFactory as _;

use super::Exit;
use crate::args::{Args, Completions};
use crate::console;

pub fn run(args: &Completions) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "brunt", &mut script);
    console::print(&script)?;
    Ok(Exit::Done)
}
