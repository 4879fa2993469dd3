//! `brunt import TOOL FILE`: scripts of other tools as scenarios.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::{console, files};

/// Turn a script of another tool into scenarios
#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    pub tool: Tool,
}

/// Whose script it is.
#[derive(Debug, Subcommand)]
pub enum Tool {
    K6(K6),
}

/// Turn a script of k6 into Lua that is meant to be read; what is not moved is listed with its line
#[derive(Debug, Args)]
pub struct K6 {
    /// The script, in JavaScript
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write the scenarios into this file instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub fn run(args: &Import) -> Result<Exit> {
    let Tool::K6(args) = &args.tool;
    let text = files::read_text(&args.file)?;
    let shown = args.file.display();
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let imported = brunt_k6::import(&text, &name).with_context(|| format!("cannot import {shown}"))?;
    match &args.output {
        Some(path) => files::write(path, imported.lua.as_bytes())?,
        None => console::print(imported.lua.as_bytes())?,
    }
    for left in &imported.left {
        console::note(&format!("{shown}:{}: {}", left.line, left.what));
    }
    if let Some(path) = &args.output {
        let (lines, are) = match imported.left.len() {
            0 => ("everything was moved".to_owned(), ""),
            1 => ("1 line needs".to_owned(), " a look"),
            many => (format!("{many} lines need"), " a look"),
        };
        console::note(&format!(
            "{}: {lines}{are}; brunt run --once {} shows what it does",
            path.display(),
            path.display()
        ));
    }
    Ok(Exit::Done)
}
