//! `brunt doctor [URL]`: problems of this machine that would spoil a run.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use brunt_plan::plan::{Load, Plan};
use brunt_plan::units::{ExactDuration, Number, count};
use brunt_record::SECOND_NS;
use brunt_report::decision::DecisionFormat;
use brunt_report::text::wrapped;
use clap::Args;
use serde::Serialize;

use super::trial_plan;
use crate::args::Program;
use crate::args::runs::RunArgs;
use crate::console;
use crate::exit::Exit;
use crate::machine::checks::{self, Check, Level, Size};
use crate::machine::{Facts, Reached};

/// The JSON Schema of [`Document`]. `UPDATE_GOLDEN=1 cargo test -p brunt --features schema --lib schema` writes it anew.
pub const SCHEMA: &str = include_str!("../schema/doctor.json");
/// The format of `--format json`.
const VERSION: u32 = 1;
/// Stands for a target that was not named. Nothing connects to it.
const NOBODY: &str = "http://127.0.0.1/";
/// Room for the name of a check, in columns.
const NAME_WIDTH: usize = 14;
/// The text before a remedy.
const REMEDY: &str = "         → ";
/// Columns of text.
const WIDTH: usize = 80;

const EXAMPLES: &str = "\
It takes the flags of a run, and makes no run: it opens five connections to the target, and closes them.
Flags that say where a result goes (-o, --html, ...) have no effect here.

Examples:
  brunt doctor                                            this machine, for a run as brunt makes it without flags
  brunt doctor -c 1000 -r 50k -d 1m http://10.0.0.5/      for this run
  brunt doctor --format json http://10.0.0.5/ | jq '.checks[] | select(.level == \"problem\")'

Exit status:
  0  nothing would spoil the run; there may be warnings
  1  something would
  2  the command line or a file was wrong";

/// Check this machine for what would distort a run, and say what helps
#[derive(Debug, Args)]
#[command(override_usage = "brunt doctor [OPTIONS] [URL]")]
#[command(after_long_help = EXAMPLES)]
pub struct Doctor {
    #[command(flatten)]
    pub run: RunArgs,
}

pub fn run(args: &Doctor, program: &Program) -> Result<Exit> {
    let is_json = match args.run.shown.format {
        None | Some(DecisionFormat::Text) => false,
        Some(DecisionFormat::Json) => true,
        Some(other) => bail!("--format {}: doctor writes text or json", other.name()),
    };
    let mut run = args.run.clone();
    let bench = &mut run.bench;
    let has_target = bench.url.is_some() || bench.connecting.unix_socket.is_some();
    bench.url.get_or_insert_with(|| NOBODY.to_owned());
    let plan = trial_plan::from_flags(&run, program)?;
    let size = size(&plan);
    let facts = Facts::read(Path::new("/"));
    let target = has_target.then(|| {
        let default_port = program.registry.named(&plan.target.scheme).map_or(80, |(_, scheme)| scheme.default_port);
        Reached::try_target(&plan, default_port)
    });
    let checks = checks::all(&facts, &size, target.as_ref());
    if is_json {
        let document = serde_json::to_string_pretty(&Document::new(&size, &checks))?;
        console::print(format!("{document}\n").as_bytes())?;
    } else {
        console::print(text(&size, &checks).as_bytes())?;
    }
    let has_problem = checks.iter().any(|check| check.level == Level::Problem);
    Ok(if has_problem { Exit::ThresholdFailed } else { Exit::Done })
}

/// A plan's demands on its machine.
fn size(plan: &Plan) -> Size {
    Size {
        // Users make as many as they need.
        connections: (!plan.connections.is_growing() && plan.scenarios.is_none())
            .then(|| plan.connections.most().into()),
        rate: match &plan.load {
            Load::Open { profile, .. } => Some(profile.highest_rate()),
            Load::Closed {} | Load::Replay(_) => None,
        },
        workers: plan.workers,
        reconnects: plan.reconnect,
        seconds: plan.load_ns().map(|ns| (ns + plan.warmup_ns) as f64 / SECOND_NS as f64),
        sources: plan.transport.source_ips.len() as u64,
        takes_ports: plan.transport.unix_socket.is_none(),
    }
}

/// The document of `brunt doctor --format json`: problems of this machine that would spoil a run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Doctor"))]
pub struct Document<'a> {
    /// The version of this document.
    version: u32,
    /// The run that the machine was looked at for.
    run: Asked,
    /// Checks whose level is `problem`.
    problems: usize,
    /// Everything that was looked at.
    checks: &'a [Check],
}

/// A run's demands on its machine.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Asked {
    /// Connections at the same time; null where they grow as far as the machine allows.
    connections: Option<u64>,
    /// The highest rate; null in the closed model.
    rate_per_s: Option<f64>,
    /// Threads.
    threads: u32,
    /// Whether each call has a connection of its own.
    reconnect: bool,
}

impl<'a> Document<'a> {
    fn new(size: &Size, checks: &'a [Check]) -> Self {
        let run = Asked {
            connections: size.connections,
            rate_per_s: size.rate,
            threads: size.workers,
            reconnect: size.reconnects,
        };
        let problems = checks.iter().filter(|check| check.level == Level::Problem).count();
        Self { version: VERSION, run, problems, checks }
    }
}

fn text(size: &Size, checks: &[Check]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "This machine, for {}\n", described(size));
    for check in checks {
        let lead = format!("{:7}  {:NAME_WIDTH$}  ", check.level.word(), check.name);
        let mut lines = wrapped(&lead, &" ".repeat(lead.chars().count()), &check.message, WIDTH);
        for remedy in &check.remedies {
            lines.extend(wrapped(REMEDY, &" ".repeat(REMEDY.chars().count()), remedy, WIDTH));
        }
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
    }
    let of = |level| checks.iter().filter(|check| check.level == level).count();
    let end = match (of(Level::Problem), of(Level::Warning)) {
        (0, 0) => "Nothing here would spoil this run.".to_owned(),
        (0, 1) => "Nothing here would spoil this run; 1 thing may.".to_owned(),
        (0, doubts) => format!("Nothing here would spoil this run; {doubts} things may."),
        (1, _) => "1 problem would spoil this run.".to_owned(),
        (problems, _) => format!("{problems} problems would spoil this run."),
    };
    let _ = writeln!(out, "\n{end}");
    out
}

fn described(size: &Size) -> String {
    let mut parts = Vec::new();
    parts.push(match size.rate {
        Some(rate) => format!("{}/s", Number(rate)),
        None => "as many requests as it takes".to_owned(),
    });
    if let Some(connections) = size.connections {
        parts.push(format!("{} connections", count(connections)));
    }
    parts.push(match size.workers {
        1 => "1 thread".to_owned(),
        workers => format!("{workers} threads"),
    });
    if size.reconnects {
        parts.push("a connection for each request".to_owned());
    }
    if let Some(seconds) = size.seconds {
        parts.push(ExactDuration((seconds * SECOND_NS as f64) as u64).to_string());
    }
    parts.join(", ")
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::{Document, SCHEMA};

    #[test]
    fn the_file_is_the_schema_of_the_type() {
        let derived = brunt_report::schema::root_schema::<Document<'_>>("What brunt doctor found").to_value();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema/doctor.json");
            return std::fs::write(path, format!("{derived:#}\n")).unwrap();
        }
        let kept: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        assert!(derived == kept, "doctor.json is not the schema of its type; set UPDATE_GOLDEN=1 to write it anew");
    }
}
