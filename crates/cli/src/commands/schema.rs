//! `brunt schema DOCUMENT`: the JSON Schema of what brunt writes as JSON.

use anyhow::Result;
use brunt_report::schema;

use crate::args::{Document, Schema};
use crate::console;
use crate::exit::Exit;

pub fn run(args: &Schema) -> Result<Exit> {
    let schema = match args.document {
        Document::Result => schema::result(),
        Document::Decision => schema::decision(),
    };
    console::print(format!("{:#}\n", schema.as_value()).as_bytes())?;
    Ok(Exit::Done)
}
