//! The command that repeats this process's work, for display: each flag in the form of its definition, however it was
//! written, without secrets, and without flags for the destination of results.

use std::borrow::Cow;
use std::ffi::OsStr;

use anyhow::Result;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::secret::{REDACTED, Template, is_secret_header, shown_argument, shown_url};
use brunt_plan::units::ExactDuration;
use brunt_protocol::Registry;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::inherited::is_given;
use super::runs::{RunArgs, SCRIPT_ARGS, SURPLUS, URL, read, run_flags};
use super::{Program, roles, secrets};

/// A value of a plan, by the id of its flag: written in place of the one given.
pub type Setting = (&'static str, String);

/// The command of this process, with the `seed` that it drew unless it was given one; empty for a process called as
/// `wrk`.
pub fn of_process(program: &Program, seed: Option<u64>) -> String {
    of_process_with(program, seed, &[])
}

/// The command of a plan whose rates came from a kept run: with the rates themselves, since that run may be deleted.
pub fn with_rates(program: &Program, plan: &Plan) -> String {
    let rates = match &plan.load {
        Load::Open { profile, .. } => vec![("rate", profile.to_string())],
        Load::Closed {} | Load::Replay(_) => Vec::new(),
    };
    of_process_with(program, Some(plan.seed), &rates)
}

fn of_process_with(program: &Program, seed: Option<u64>, settings: &[Setting]) -> String {
    let Some(matches) = &program.given else { return String::new() };
    let below =
        matches.subcommand().and_then(|(name, below)| Some((name, program.definitions.find_subcommand(name)?, below)));
    let (name, definitions, matches) = match below {
        None => (None, &program.definitions, matches),
        Some((name, definitions, matches)) => (Some(name), definitions, matches),
    };
    let mut line = vec!["brunt".to_owned()];
    // A run without a command's name is a flood.
    line.extend(name.filter(|name| *name != "bench").map(str::to_owned));
    if let Some(seed) = seed.filter(|_| !is_given(matches, "seed")) {
        line.extend(["--seed".to_owned(), seed.to_string()]);
    }
    line.extend(shown(definitions, std::slice::from_ref(matches), settings, &program.registry));
    line.join(" ")
}

/// The command of one run of several, for display: with the seed, the length and the warm-up of its `plan`, its number of
/// threads where that was given, and with `more` of its settings.
pub fn of_run(run: &RunArgs, plan: &Plan, more: &[Setting], registry: &Registry) -> String {
    let mut settings = settings(run, plan, more);
    // A side of a comparison has one of the targets.
    if let [target] = run.targets.as_slice() {
        settings.push((URL, target.to_string_lossy().into_owned()));
    }
    let words = shown(&run_flags(registry), &run.layers, &settings, registry);
    format!("brunt {}", words.join(" "))
}

/// The same of a run of the script `file`, by the `definitions` of the command that runs it.
pub fn of_script(
    run: &RunArgs,
    plan: &Plan,
    (file, definitions): (&str, &Command),
    more: &[Setting],
    registry: &Registry,
) -> String {
    let mut settings = settings(run, plan, more);
    settings.push(("file", file.to_owned()));
    let words = shown(definitions, &run.layers, &settings, registry);
    format!("brunt run {}", words.join(" "))
}

fn settings(run: &RunArgs, plan: &Plan, more: &[Setting]) -> Vec<Setting> {
    let mut settings = more.to_vec();
    // Each of several runs may have its own seed.
    settings.push(("seed", plan.seed.to_string()));
    settings.extend(plan.stop.duration_ns.map(|ns| ("duration", ExactDuration(ns).to_string())));
    settings.extend((plan.warmup_ns > 0).then(|| ("warmup", ExactDuration(plan.warmup_ns).to_string())));
    settings.extend(run.has("threads").then(|| ("threads", plan.workers.to_string())));
    settings
}

/// The run flags in `flags` for display: each in the form of its definition, however it was written.
///
/// # Errors
/// When one of them is not a flag of a run.
pub fn shown_flags<S: AsRef<OsStr>>(flags: &[S], registry: &Registry) -> Result<String> {
    let matches = read(flags.iter().map(AsRef::as_ref), registry)?;
    Ok(shown(&run_flags(registry), &[matches], &[], registry).join(" "))
}

/// The arguments of `definitions` that are not about the destination of a result: flags, then positional arguments, then a
/// script's arguments. Those in `settings` have that value, others the one given; a later layer replaces an earlier one, or
/// adds to it where the flag is repeatable.
fn shown(definitions: &Command, layers: &[ArgMatches], settings: &[Setting], registry: &Registry) -> Vec<String> {
    let (mut flags, mut places, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for arg in definitions.get_arguments() {
        let id = arg.get_id().as_str();
        let has_url = settings.iter().any(|(set, _)| *set == URL);
        if roles::is_aside(id) || id == SURPLUS && has_url {
            continue;
        }
        if let Some((_, value)) = settings.iter().find(|(set, _)| *set == id) {
            match written(arg) {
                Some(flag) => flags.extend([flag, quoted(value)]),
                None => places.push(quoted(&shown_url(value))),
            }
            continue;
        }
        let given: Vec<_> = layers.iter().filter(|layer| is_given(layer, id)).collect();
        let adds = matches!(arg.get_action(), ArgAction::Append) && written(arg).is_some();
        let given = given.get(if adds { 0 } else { given.len().saturating_sub(1) }..).unwrap_or_default();
        if given.is_empty() {
            continue;
        }
        let values = || given.iter().filter_map(|layer| layer.get_raw(id)).flatten();
        let Some(flag) = written(arg) else {
            if id == SCRIPT_ARGS {
                let texts = values().map(|text| Template::secret(text.to_string_lossy()));
                behind.extend(texts.map(|text| quoted(&shown_argument(&text))));
            } else {
                places.extend(values().map(|text| quoted(&shown_url(&text.to_string_lossy()))));
            }
            continue;
        };
        if arg.get_action().takes_values() {
            flags.extend(values().flat_map(|value| [flag.clone(), quoted(&shown_value(id, value, registry))]));
        } else {
            flags.push(flag);
        }
    }
    if !behind.is_empty() {
        behind.insert(0, "--".to_owned());
    }
    flags.into_iter().chain(places).chain(behind).collect()
}

/// A flag as written, by its shorter form; `None` for a positional argument.
fn written(arg: &Arg) -> Option<String> {
    let short = arg.get_short().map(|short| format!("-{short}"));
    short.or_else(|| Some(format!("--{}", arg.get_long()?)))
}

fn shown_value(id: &str, value: &OsStr, registry: &Registry) -> String {
    let value = value.to_string_lossy();
    match (id, value.split_once('=')) {
        // The flags of one side of a comparison.
        ("a" | "b", _) => shlex::split(&value)
            .and_then(|words| shown_flags(&words, registry).ok())
            .unwrap_or_else(|| REDACTED.to_owned()),
        ("env", Some((name, value))) if is_secret_header(name) => format!("{name}={}", Template::secret(value).shown()),
        ("env", _) => value.into_owned(),
        _ => secrets::shown_value(id, &value, registry),
    }
}

/// A word quoted for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "-_=:,./@%+[]".contains(c));
    if plain(word) && !word.is_empty() {
        return word.to_owned();
    }
    // Only a word with a zero byte cannot be quoted, and no command line has one.
    shlex::try_quote(word).map_or_else(|_| String::new(), Cow::into_owned)
}
