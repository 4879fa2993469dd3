//! `brunt schema DOCUMENT`: JSON Schemas of brunt's documents, and of `brunt.toml`.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use anyhow::Result;
use brunt_report::schema;
use clap::{Arg, Args, Command, ValueEnum};
use serde_json::{Map, Value, json};

use super::doctor;
use crate::args::inherited;
use crate::console;
use crate::exit::Exit;

/// Print the JSON Schema of a document that brunt writes or reads
#[derive(Debug, Args)]
pub struct Schema {
    /// Which document
    pub document: Document,
}

/// A document that brunt writes as JSON, or reads.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Document {
    /// The result of a run
    Result,
    /// What sweep, find or compare decided
    Decision,
    /// What brunt doctor found
    Doctor,
    /// brunt.toml: flags of runs, for editors that complete and check TOML
    Config,
}

pub fn run(args: &Schema, definitions: &Command) -> Result<Exit> {
    let schema = match args.document {
        Document::Result => schema::RESULT,
        Document::Decision => schema::DECISION,
        Document::Doctor => doctor::SCHEMA,
        Document::Config => &format!("{:#}\n", config(definitions)),
    };
    console::print(schema.as_bytes())?;
    Ok(Exit::Done)
}

/// The schema of `brunt.toml`, from the definitions of the flags.
pub(super) fn config(definitions: &Command) -> Value {
    let mut definitions = definitions.clone();
    definitions.build();
    let mut all = Map::new();
    let mut tables = Map::new();
    for (name, command) in inherited::commands(&definitions) {
        let flags = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let flags = flags.filter_map(|arg| inherited::flag(command, arg.get_long()?));
        let flags: Map<String, Value> =
            flags.filter_map(|arg| Some((arg.get_long()?.to_owned(), described(arg)))).collect();
        all.extend(flags.clone());
        let about = format!("Flags of brunt {name} alone");
        let table =
            json!({ "type": "object", "description": about, "properties": flags, "additionalProperties": false });
        tables.insert(name.to_owned(), table);
    }
    all.extend(tables);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "brunt.toml",
        "description": "Flags of the runs of the script beside it, without their dashes",
        "type": "object",
        "properties": all,
        "additionalProperties": false,
    })
}

/// The rough form of a threshold, as a regular expression: a figure, an operator, a limit.
const THRESHOLD: &str = "^[^<>=].*(<=|>=|==|<|>)\\s*[0-9.].*$";

/// The form of how due times are spread.
const ARRIVALS: &str = "^(uniform|poisson|bursty:[0-9.]+)$";

/// The schema of a flag's value.
fn described(arg: &Arg) -> Value {
    let known: Vec<String> = arg.get_possible_values().iter().map(|known| known.get_name().to_owned()).collect();
    let value = if arg.get_id() == "thresholds" {
        json!({ "type": "string", "pattern": THRESHOLD, "examples": ["p99<50ms", "error_rate<0.1%", "rate>10k abort"] })
    } else if arg.get_id() == "arrivals" {
        json!({ "type": "string", "pattern": ARRIVALS, "examples": ["uniform", "poisson", "bursty:0.5"] })
    } else if known.is_empty() {
        json!({ "type": ["string", "number"] })
    } else {
        json!({ "enum": known })
    };
    let mut schema = match arg.get_action() {
        action if !action.takes_values() => json!({ "type": "boolean" }),
        _ if inherited::is_repeatable(arg) => json!({ "anyOf": [value, { "type": "array", "items": value }] }),
        _ => value,
    };
    if let (Some(schema), Some(help)) = (schema.as_object_mut(), arg.get_help()) {
        schema.insert("description".to_owned(), help.to_string().into());
    }
    schema
}
