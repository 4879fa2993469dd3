//! `brunt types`: annotations of the scenarios' library, for editors that speak `LuaLS`.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use brunt_lua::scenario::types;
use brunt_protocol::Registry;
use clap::Args;

use crate::exit::Exit;
use crate::{console, files};

/// Write type annotations of the scenario library, for editors with a Lua language server
#[derive(Debug, Args)]
pub struct Types {
    /// The file to write, beside the scenarios; - for standard output
    #[arg(value_name = "FILE", default_value = "brunt.d.lua")]
    pub file: PathBuf,
}

pub fn run(args: &Types, registry: &Registry) -> Result<Exit> {
    let text = types::annotations(registry);
    if args.file == Path::new("-") {
        console::print(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    let name = args.file.display();
    if args.file.exists() && !files::read_text(&args.file)?.starts_with(types::FIRST_LINE) {
        bail!("{name} is there already, and brunt types did not write it; name another file");
    }
    files::write(&args.file, text.as_bytes())?;
    console::print(format!("wrote {name}: editors that speak LuaLS find it beside the scenarios\n").as_bytes())?;
    Ok(Exit::Done)
}
