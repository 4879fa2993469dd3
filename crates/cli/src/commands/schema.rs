//! `brunt schema DOCUMENT`: the JSON Schema of what brunt writes as JSON.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use anyhow::Result;
use brunt_report::schema;
use clap::{Args, ValueEnum};

use crate::console;
use crate::exit::Exit;

/// Print the JSON Schema of a document that brunt writes
#[derive(Debug, Args)]
pub struct Schema {
    /// Which document
    pub document: Document,
}

/// A document that brunt writes as JSON.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Document {
    /// The result of a run
    Result,
    /// What sweep, find or compare decided
    Decision,
}

pub fn run(args: &Schema) -> Result<Exit> {
    let schema = match args.document {
        Document::Result => schema::result(),
        Document::Decision => schema::decision(),
    };
    console::print(format!("{:#}\n", schema.as_value()).as_bytes())?;
    Ok(Exit::Done)
}
