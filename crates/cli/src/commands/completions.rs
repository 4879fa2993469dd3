//! `brunt completions SHELL`: from the same definitions as the help.

use anyhow::Result;
use brunt_protocol::Registry;

use crate::args::{self, Completions};
use crate::console;
use crate::exit::Exit;

pub fn run(args: &Completions, registry: &Registry) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(registry)?, "brunt", &mut script);
    console::print(&script)?;
    Ok(Exit::Done)
}
