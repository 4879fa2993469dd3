//! `brunt check FILE`: an outline of a script with scenarios, and its mistakes, without a call.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use brunt_lua::scenario;
use brunt_plan::threshold::{Guard, NameKind, Threshold, nearest};
use brunt_report::text::scenario_list;
use brunt_script::{EndedEarly, Loaded, MetKind, Outline, ScriptError, Unreached, UnsetGlobal};
use clap::{Args, FromArgMatches as _};

use super::run::{self, Run};
use crate::args::inherited::{self, Inherited};
use crate::args::{Program, runs};
use crate::exit::{Exit, NoAnswer};
use crate::{console, scripts};

/// The most stretches of lines that are named as not reached.
const MOST_STRETCHES: usize = 8;

/// Check a script of scenarios without making a call: its mistakes, and what it would do
#[derive(Debug, Args)]
pub struct Check {
    /// The script, in Lua. Its top level runs; its functions run with made-up answers
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The value of brunt.env(K), repeatable; @NAME takes V from the environment
    #[arg(long, value_name = "K=V")]
    pub env: Vec<String>,
    /// The base URL of the script's first client
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Run it without io, ffi, debug, programs, the environment and bytecode
    #[arg(long)]
    pub sandbox: bool,
}

/// A remark on a script.
struct Remark {
    is_error: bool,
    file: String,
    /// The line, and the column if it is known.
    place: Option<(usize, Option<usize>)>,
    text: String,
}

pub fn run(args: &Check, program: &Program) -> Result<Exit> {
    let run = as_run(args, program)?;
    let mut remarks = Vec::new();
    let loaded = match run::loaded(&run, &program.registry) {
        Ok(loaded) => loaded,
        Err(error) if error.is::<NoAnswer>() => return Err(error),
        Err(error) => {
            let problem = error.downcast_ref::<ScriptError>().map(|error| error.problem().to_owned());
            remarks.push(located(&problem.unwrap_or_else(|| error.to_string()), &args.file));
            return Ok(said(&remarks));
        }
    };
    if loaded.names.is_empty() {
        bail!(
            "{} has no brunt.scenario: a script for wrk is checked by brunt -s FILE --dry-run URL",
            args.file.display()
        );
    }
    let outline = match scripts::outline(&loaded.scenarios, run.confinement.of_named(), &program.registry) {
        Ok(outline) => outline,
        Err(error) => {
            remarks.push(located(error.problem(), &args.file));
            Outline::default()
        }
    };
    remarks.extend(outline.problems.iter().map(|problem| located(problem.problem(), &args.file)));
    for UnsetGlobal { file, line, problem } in &loaded.unset_globals {
        let place = scenario::place(&source(file, &args.file), *line, problem).filter(|place| place.line == *line);
        let (file, place) = (file.clone(), Some((*line, place.map(|place| place.column))));
        // The rehearsal found a call of it, too, and knows less of it.
        remarks.retain(|known| known.file != file || known.place != place);
        remarks.push(Remark { is_error: true, file, place, text: problem.clone() });
    }
    if loaded.target.is_none() {
        let text =
            "no client has a base: give one, as in brunt.http{ base = \"http://127.0.0.1:8080\" }, or --base-url";
        remarks.push(Remark {
            is_error: true,
            file: args.file.display().to_string(),
            place: None,
            text: text.to_owned(),
        });
    }
    let thresholds: Vec<&Threshold> = loaded.thresholds.iter().chain(&run.output.thresholds).collect();
    let conditions = thresholds.iter().copied().chain(run.output.guards.iter().map(Guard::condition));
    remarks.extend(conditions.filter_map(|condition| misspelt(condition, &loaded, &outline)));
    remarks.extend(loaded.assigned_locals.iter().map(|local| {
        Remark {
            is_error: false,
            place: Some((
                local.line,
                scenario::place(&source(&local.file, &args.file), local.line, &format!("'{}'", local.name))
                    .filter(|place| place.line == local.line)
                    .map(|place| place.column),
            )),
            file: local.file.clone(),
            text: run::shared_local(local),
        }
    }));
    remarks.extend(outline.unlikely.iter().map(|value| {
        let place = scenario::place(&source(&value.file, &args.file), value.line, &value.problem);
        let column = place.filter(|place| place.line == value.line).map(|place| place.column);
        Remark {
            is_error: false,
            file: value.file.clone(),
            place: Some((value.line, column)),
            text: value.problem.clone(),
        }
    }));
    let exit = said(&remarks);
    if exit == Exit::Done {
        let listed = listed(&args.file, &loaded, &outline, &thresholds);
        console::print(console::printable(&listed).as_bytes())?;
    }
    Ok(exit)
}

/// The run for which the script is checked, with inherited flags: a brunt.toml beside the script is checked with it.
fn as_run(args: &Check, program: &Program) -> Result<Run> {
    let mut line: Vec<OsString> = ["brunt", "run"].map(OsString::from).to_vec();
    let mut flag = |name: &str, value: &str| line.push(format!("--{name}={value}").into());
    args.env.iter().for_each(|value| flag("env", value));
    args.base_url.iter().for_each(|value| flag("base-url", value));
    line.extend(args.sandbox.then(|| "--sandbox".into()));
    line.extend(["--".into(), args.file.clone().into()]);
    let inherited =
        Inherited::read(&program.definitions, &|| Ok(program.definitions.clone()), &line, &inherited::variables())?;
    let matches = program.definitions.clone().try_get_matches_from(inherited.applied(line));
    let matches = matches.map_err(|error| runs::problem(&error))?;
    match matches.subcommand() {
        Some((_, given)) => Ok(Run::from_arg_matches(given)?),
        None => bail!("{} is not a file of scenarios", args.file.display()),
    }
}

/// Writes the remarks to standard error, errors first. Returns the exit status that they make.
fn said(remarks: &[Remark]) -> Exit {
    let (errors, warnings): (Vec<_>, Vec<_>) = remarks.iter().partition(|remark| remark.is_error);
    for Remark { is_error, file, place, text } in errors.iter().chain(&warnings) {
        let place = match place {
            Some((line, Some(column))) => format!(":{line}:{column}"),
            Some((line, None)) => format!(":{line}"),
            None => String::new(),
        };
        let severity = if *is_error { "error" } else { "warning" };
        console::note(&format!("{file}{place}: {severity}: {text}"));
    }
    if errors.is_empty() { Exit::Done } else { Exit::Wrong }
}

/// An error of Lua or of the library, with its place taken out of its text and a column added.
fn located(error: &str, script: &Path) -> Remark {
    let text = error.lines().next().unwrap_or("");
    let found = text.match_indices(':').find_map(|(at, _)| {
        let (line, problem) = text.get(at + 1..)?.split_once(": ")?;
        Some((text.get(..at)?, line.parse::<usize>().ok()?, problem))
    });
    let Some((file, line, problem)) = found else {
        let file = script.display().to_string();
        let problem = text.strip_prefix(&format!("{file}: ")).unwrap_or(text);
        let place = scenario::place(&source(&file, script), 0, problem);
        let place = place.map(|place| (place.line, Some(place.column)));
        return Remark { is_error: true, file, place, text: problem.to_owned() };
    };
    let place = scenario::place(&source(file, script), line, problem);
    let place = place.map_or((line, None), |place| (place.line, Some(place.column)));
    Remark { is_error: true, file: file.to_owned(), place: Some(place), text: problem.to_owned() }
}

/// The text of a file that an error names: the script's, or a module's beside it. Empty where it cannot be read.
fn source(file: &str, script: &Path) -> Vec<u8> {
    let beside = script.parent().unwrap_or(Path::new("")).join(file);
    let path = if script == Path::new(file) || !beside.is_file() { script } else { &beside };
    std::fs::read(path).unwrap_or_default()
}

/// A remark on a threshold whose name the outline did not meet. It is an error if another name is near, and otherwise a
/// warning: the outline takes one branch of each condition, and scripts may make names while users run. A name that
/// occurs elsewhere in the script is not a mistake.
fn misspelt(threshold: &Threshold, loaded: &Loaded, outline: &Outline) -> Option<Remark> {
    let (name, meant) = unknown_name(threshold, loaded, outline)?;
    let script = loaded.scenarios.files.first()?;
    // `GET /items` is the default name of a call of `/items`.
    let path = name.split_once(' ').map_or(name.as_str(), |(_, path)| path);
    let text = String::from_utf8_lossy(&script.content.0);
    let stands = |word: &str| ["\"", "'"].iter().any(|quote| text.contains(&format!("{quote}{word}{quote}")));
    if stands(&name) || stands(path) {
        return None;
    }
    let place = scenario::place(&script.content.0, 0, &format!("'{}'", threshold.figure()));
    let place = place.or_else(|| scenario::place(&script.content.0, 0, &format!("'{name}'")));
    let why = match &meant {
        Some(meant) => format!("; did you mean '{meant}'?"),
        None => " that was met with made-up answers".to_owned(),
    };
    Some(Remark {
        is_error: meant.is_some(),
        file: script.name.clone(),
        place: place.map(|place| (place.line, Some(place.column))),
        text: format!("the threshold {threshold}: nothing has the name '{name}'{why}"),
    })
}

/// A threshold's name, if the outline met nothing with it; and the nearest known name.
fn unknown_name(threshold: &Threshold, loaded: &Loaded, outline: &Outline) -> Option<(String, Option<String>)> {
    let (kind, name) = threshold.subject()?;
    let met = |kind: MetKind| outline.met.iter().filter(move |met| met.kind == kind).map(|met| met.name.as_str());
    let tags = || outline.met.iter().flat_map(|met| &met.tags).map(String::as_str);
    let own = || loaded.scenarios.own.iter().map(|figure| figure.name.as_str());
    let scenarios = || loaded.names.iter().map(String::as_str);
    let unknown = |name: &str, known: Vec<&str>| {
        let near = nearest(name, known.iter().copied()).map(str::to_owned);
        (!known.contains(&name)).then(|| (name.to_owned(), near))
    };
    if let Some(selection) = threshold.selection() {
        return selection.conditions().find_map(|(key, value)| match key {
            "name" => unknown(value, met(MetKind::Call).collect()),
            "scenario" => unknown(value, scenarios().collect()),
            "group" => {
                let is_outer = |group: &str| group.strip_prefix(value).is_some_and(|rest| rest.starts_with('/'));
                unknown(value, met(MetKind::Group).collect()).filter(|_| !met(MetKind::Group).any(is_outer))
            }
            _ => unknown(&format!("{key}={value}"), tags().collect()),
        });
    }
    let known: Vec<&str> = match kind {
        Some(NameKind::Request) => met(MetKind::Call).collect(),
        Some(NameKind::Tag) => tags().collect(),
        Some(NameKind::Group) => met(MetKind::Group).collect(),
        Some(NameKind::Check) => met(MetKind::Check).collect(),
        Some(NameKind::Scenario) => scenarios().collect(),
        Some(NameKind::Own) => own().collect(),
        Some(NameKind::Calls | NameKind::Watched) => return None,
        None => {
            let met = outline.met.iter().map(|met| met.name.as_str());
            met.chain(tags()).chain(scenarios()).chain(own()).collect()
        }
    };
    unknown(name, known).filter(|(name, _)| !loaded.scenarios.own.iter().any(|figure| figure.is_called(name)))
}

/// The outline of the script.
fn listed(file: &Path, loaded: &Loaded, outline: &Outline, thresholds: &[&Threshold]) -> String {
    let of = |kind: MetKind| outline.met.iter().filter(move |met| met.kind == kind);
    let counts = [
        (loaded.names.len(), "scenario"),
        (of(MetKind::Call).count(), "call"),
        (of(MetKind::Check).count(), "check"),
        (thresholds.len(), "threshold"),
    ];
    let counts = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    let mut text = format!("{}: {}\n\nScenarios\n", file.display(), counts.join(", "));
    for line in scenario_list(&loaded.names, &loaded.scenarios).lines() {
        let _ = writeln!(text, "  {line}");
    }
    let calls: Vec<[&str; 3]> = of(MetKind::Call)
        .map(|met| [met.scenario.as_str(), met.name.as_str(), met.base.as_deref().unwrap_or("")])
        .collect();
    table(&mut text, "Calls", &calls);
    let groups: Vec<_> = of(MetKind::Group).map(|met| [met.scenario.as_str(), met.name.as_str(), ""]).collect();
    table(&mut text, "Groups", &groups);
    let mut checks: Vec<_> = of(MetKind::Check).map(|met| [met.scenario.as_str(), met.name.as_str(), ""]).collect();
    // Tables have no order.
    checks.sort_unstable();
    table(&mut text, "Checks", &checks);
    if !thresholds.is_empty() {
        text.push_str("Thresholds\n");
        for threshold in thresholds {
            let _ = writeln!(text, "  {threshold}");
        }
    }
    let made_up = if outline.met.iter().any(|met| met.name.contains("anything")) {
        "; anything is what an answer would have given"
    } else {
        ""
    };
    let _ = writeln!(text, "\nEach function was gone through once, with made-up answers{made_up}.");
    for EndedEarly { scenario, problem } in &outline.ended {
        let _ = writeln!(text, "{scenario} ended early: {problem}");
    }
    if !outline.ended.is_empty() {
        let _ = writeln!(text, "Real answers may lead further: brunt run --once {} asks for them.", file.display());
    }
    if let Some(lines) = lines_of(&outline.unreached) {
        let _ = writeln!(text, "Not reached, and not checked: {lines}.");
    }
    text
}

/// The file with its line numbers in words, such as `users.lua, lines 7 to 9, 12`; `None` without line numbers.
fn lines_of(stretches: &[Unreached]) -> Option<String> {
    let mut text = String::new();
    let mut file = "";
    for Unreached { file: of, first, last } in stretches.iter().take(MOST_STRETCHES) {
        let lines = if first == last { first.to_string() } else { format!("{first} to {last}") };
        if of == file {
            let _ = write!(text, ", {lines}");
        } else {
            let separator = if text.is_empty() { "" } else { "; " };
            let _ = write!(text, "{separator}{of}, lines {lines}");
            file = of;
        }
    }
    match stretches.len().saturating_sub(MOST_STRETCHES) {
        0 => {}
        more => {
            let _ = write!(text, " and {more} other places");
        }
    }
    (!text.is_empty()).then_some(text)
}

fn table(text: &mut String, title: &str, rows: &[[&str; 3]]) {
    if rows.is_empty() {
        return;
    }
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let (first, second) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    let _ = writeln!(text, "{title}");
    for [scenario, name, base] in rows {
        let line = format!("  {scenario:first$}  {name:second$}  {base}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}
