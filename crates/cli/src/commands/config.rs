//! `brunt config`: which flags a command line has, and where each comes from.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use anyhow::Result;
use brunt_protocol::Registry;
use clap::{Args, Command};

use crate::args::inherited::{self, Inherited};
use crate::args::{Program, secrets};
use crate::console;
use crate::exit::Exit;

/// Print the flags of a command line and where each comes from: the line itself, the environment, or a brunt.toml
#[derive(Debug, Args)]
pub struct Config {
    /// The command line, without the program's name: run shop.lua -d 10s
    #[arg(value_name = "COMMAND LINE", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// A line of the table.
struct Row {
    flag: String,
    value: String,
    source: String,
}

pub fn run(args: &Config, program: &Program) -> Result<Exit> {
    let words: Vec<OsString> = std::iter::once("brunt".into()).chain(args.words.iter().cloned()).collect();
    let inherited =
        Inherited::read(&program.definitions, &|| Ok(program.definitions.clone()), &words, &inherited::variables())?;
    let mut used = written(&program.definitions, &words, &program.registry);
    used.extend(inherited.used().map(|flag| row(flag, flag.source.to_string(), &program.registry)));
    let idle: Vec<Row> = inherited
        .flags
        .iter()
        .filter_map(|flag| {
            let why = flag.idle.as_ref()?;
            Some(row(flag, format!("{}: {why}", flag.source), &program.registry))
        })
        .collect();
    let mut out = String::new();
    table(&mut out, "Flags", &used);
    table(&mut out, "Without effect", &idle);
    if !inherited.unknown.is_empty() {
        out.push_str("Ignored\n");
        for unknown in &inherited.unknown {
            let _ = writeln!(out, "  {unknown}");
        }
    }
    if out.is_empty() {
        out.push_str("no flags: every setting has its default\n");
    }
    out.push_str(
        "The command line comes before BRUNT_* of the environment, and those before brunt.toml beside the script.\n",
    );
    console::print(out.as_bytes())?;
    Ok(Exit::Done)
}

fn table(out: &mut String, title: &str, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let width = |cell: fn(&Row) -> &str| rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0);
    let (flags, values) = (width(|row| &row.flag), width(|row| &row.value).min(40));
    let _ = writeln!(out, "{title}");
    for Row { flag, value, source } in rows {
        let _ = writeln!(out, "  {flag:flags$}  {value:values$}  {source}");
    }
}

fn row(flag: &inherited::Flag, source: String, registry: &Registry) -> Row {
    Row { flag: format!("--{}", flag.name), value: shown(&flag.id, flag.values.iter(), registry), source }
}

/// The flags on the command line itself.
fn written(definitions: &Command, words: &[OsString], registry: &Registry) -> Vec<Row> {
    let Ok(matches) = definitions.clone().ignore_errors(true).try_get_matches_from(words) else { return Vec::new() };
    let below = matches.subcommand().and_then(|(name, below)| Some((definitions.find_subcommand(name)?, below)));
    let (command, matches) = below.unwrap_or((definitions, &matches));
    let given = command.get_arguments().filter(|arg| inherited::is_given(matches, arg.get_id().as_str()));
    let row = |arg: &clap::Arg| {
        let id = arg.get_id().as_str();
        let values: Vec<_> = matches.get_raw(id).into_iter().flatten().collect();
        let takes = arg.get_action().takes_values();
        let value = if takes { shown(id, values.into_iter(), registry) } else { String::new() };
        Some(Row { flag: format!("--{}", arg.get_long()?), value, source: "command line".to_owned() })
    };
    given.filter_map(row).collect()
}

/// Values for display.
fn shown<'a, S: AsRef<OsStr> + ?Sized + 'a>(
    id: &str,
    values: impl Iterator<Item = &'a S>,
    registry: &Registry,
) -> String {
    let shown = values.map(|value| secrets::shown_value(id, &value.as_ref().to_string_lossy(), registry));
    shown.collect::<Vec<_>>().join(", ")
}
