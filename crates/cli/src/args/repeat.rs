//! The command that repeats this process's work, for display: each flag in the form of its definition, however it was
//! written, without secrets, and without flags for the destination of results.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use anyhow::Result;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::secret::{REDACTED, Template, is_secret_header, shown_argument, shown_url};
use brunt_plan::units::ExactDuration;
use brunt_protocol::Registry;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::words::{SCRIPT_ARGS, SHOWN, Words, read, run_flags};
use super::{Program, secrets};

/// Flags of single commands for the destination or the form of a result.
const ASIDE: [&str; 13] = [
    "keep",
    "profile",
    "verbose",
    "latency",
    "no_histograms",
    "write_plan",
    "log",
    "log_level",
    "debug",
    "show_secrets",
    "otlp",
    "prometheus",
    "prometheus_linger",
];

/// The command of this process, with the `seed` that it drew unless it was given one; empty for a process called as
/// `wrk`.
pub fn of_process(program: &Program, seed: Option<u64>) -> String {
    let Some(matches) = &program.given else { return String::new() };
    let below =
        matches.subcommand().and_then(|(name, below)| Some((name, program.definitions.find_subcommand(name)?, below)));
    let (name, definitions, matches) = match below {
        None => (None, &program.definitions, matches),
        Some((name, definitions, matches)) => (Some(name), definitions, matches),
    };
    let is_aside = |id: &str| SHOWN.contains(&id) || ASIDE.contains(&id);
    let mut line = vec!["brunt".to_owned()];
    // A run without a command's name is a flood.
    line.extend(name.filter(|name| *name != "bench").map(str::to_owned));
    if let Some(seed) = seed.filter(|_| !is_given(matches, "seed")) {
        line.extend(["--seed".to_owned(), seed.to_string()]);
    }
    line.extend(shown(definitions, matches, is_aside, &program.registry));
    line.join(" ")
}

/// The command of a plan whose rates came from a kept run: with the rates themselves, since that run may be deleted.
pub fn with_rates(plan: &Plan) -> String {
    match &plan.load {
        Load::Open { profile, .. } => {
            plan.origin.command.replacen("brunt", &format!("brunt -r {}", quoted(&profile.to_string())), 1)
        }
        Load::Closed {} | Load::Replay(_) => plan.origin.command.clone(),
    }
}

/// The command of the one run that [`Words::with`] makes, for display: with the seed, and with the length and the
/// warm-up of `plan` where its words have others or none.
///
/// # Errors
/// As [`Words::with`].
pub fn of_run<S: AsRef<OsStr>>(words: &Words, more: &[S], plan: &Plan, registry: &Registry) -> Result<String> {
    let is = |word: &OsString, flag: &str| word.to_string_lossy().starts_with(flag);
    let mut line = words.line(more, registry)?;
    // Each of several runs may have its own seed.
    line.retain(|word| !is(word, "--seed="));
    let length = plan.stop.duration_ns.map(|ns| ("--duration=", ExactDuration(ns).to_string()));
    let warmup = (plan.warmup_ns > 0).then(|| ("--warmup=", ExactDuration(plan.warmup_ns).to_string()));
    for (flag, value) in [Some(("--seed=", plan.seed.to_string())), length, warmup].into_iter().flatten() {
        if !line.iter().any(|word| is(word, flag)) {
            line.insert(0, OsString::from(format!("{flag}{value}")));
        }
    }
    Ok(format!("brunt {}", shown_flags(&line, registry)?))
}

/// The run flags in `flags` for display: each in the form of its definition, however it was written.
///
/// # Errors
/// When one of them is not a flag of a run.
pub fn shown_flags<S: AsRef<OsStr>>(flags: &[S], registry: &Registry) -> Result<String> {
    let matches = read(flags.iter().map(AsRef::as_ref), registry)?;
    Ok(shown(&run_flags(registry), &matches, |id| SHOWN.contains(&id), registry).join(" "))
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// The given arguments of `definitions` that `is_aside` does not leave out: flags, then positional arguments, then a
/// script's arguments.
fn shown(
    definitions: &Command,
    matches: &ArgMatches,
    is_aside: impl Fn(&str) -> bool,
    registry: &Registry,
) -> Vec<String> {
    let (mut flags, mut places, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for arg in definitions.get_arguments() {
        let id = arg.get_id().as_str();
        if is_aside(id) || !is_given(matches, id) {
            continue;
        }
        let values = || matches.get_raw(id).into_iter().flatten();
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
fn quoted(word: &str) -> String {
    let plain = |word: &str| word.chars().all(|c| c.is_alphanumeric() || "-_=:,./@%+[]".contains(c));
    if plain(word) && !word.is_empty() {
        return word.to_owned();
    }
    // Only a word with a zero byte cannot be quoted, and no command line has one.
    shlex::try_quote(word).map_or_else(|_| String::new(), Cow::into_owned)
}
