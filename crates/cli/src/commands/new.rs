//! `brunt new`: a commented scenario to begin with.

use anyhow::{Result, bail};

use crate::args::New;
use crate::exit::Exit;
use crate::{console, files};

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
