//! `brunt new`: a commented scenario to begin with.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::exit::Exit;
use crate::{console, files};

/// Write a commented scenario to begin with
#[derive(Debug, Args)]
pub struct New {
    /// The file to write, which must not be there
    #[arg(value_name = "FILE", default_value = "scenario.lua")]
    pub file: PathBuf,
}

/// What is written.
const STARTER: &str = include_str!("starter.lua");

pub fn run(args: &New) -> Result<Exit> {
    let name = args.file.display().to_string();
    if args.file.exists() {
        bail!("{name} is there already, and is not written over; name another file");
    }
    files::write(&args.file, STARTER.replace("FILE", &name).as_bytes())?;
    console::print(format!("wrote {name}: begin with brunt run --once {name}\n").as_bytes())?;
    Ok(Exit::Done)
}
