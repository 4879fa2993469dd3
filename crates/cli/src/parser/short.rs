//! The help that fits a screen. `--help-all` has the rest.

use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, Subcommand as _};

use crate::commands;
use crate::console;
use crate::exit::Exit;

/// The text of `brunt -h` and `brunt --help`.
pub const HELP: &str = "\
brunt puts load on network services and tells the truth about what happened.

Usage: brunt [bench] [OPTIONS] URL
       brunt COMMAND …

Load
  -c N              connections kept open [default: 64; with -r, what it takes]
  -t N              threads [default: cores; with -r, what it takes]
  -d T              stop after this time [default: 10s]
  -n N              stop after this many requests
  -r R              constant rate, requests/s (open model): 2000; 0..5k/1m ramps
  -w T              warm-up, excluded from all figures
Request
  -m M              method [default: GET, or POST with a body]
  -H 'K: V'         header field
  --body TEXT|@F    body; --json TEXT|@F for one in JSON
  --basic U:P       user and password
  -k                do not verify certificates
Results
  --once            make one request and print it with its answer
  --threshold T     what must hold: 'p99<50ms', 'error_rate<0.1%'; else exit 1
  -o FILE           the result: .json, .csv, .xml (junit), .html, .md, .txt
  -v                every figure, and a line for each second
Commands
  run, check, init  users by a script, in Lua or of k6
  replay            the requests of an access log, at its times
  import, curl      HAR, OpenAPI, Postman, curl as scenarios; curl as load
  llm               a language model: time to first token, tokens/s, goodput
  find, compare, sweep  the highest rate; A against B; several values
  runs, show, report, ui runs that were kept, here or in a browser
  serve, demo       the built-in target; watch it freeze
  grpc              services and messages that a gRPC server has
  proxy, coalesce-check  serve identical requests in flight once
  doctor, config    check this machine; where flags come from
  completions, man, schema, types  for your shell, programs, editors

brunt http://localhost:8080/               as fast as it goes, for 10s
brunt -r 2000 -d 30s http://localhost:8080/
brunt help                                 topics of the guide
brunt --help-all                           all flags, by protocol
";

/// The text of `brunt` alone: what a newcomer does first.
const ALONE: &str = "\
brunt puts load on network services and tells the truth about what happened.

  brunt demo                              watch a target freeze, in ten seconds
  brunt --once URL                        one request, with its answer
  brunt URL                               as many as the target takes, for 10 s
  brunt -r 200 -d 30s URL                 200 requests/s, for 30 s
  brunt find --threshold 'p99<50ms' URL   the highest rate with p99 below 50 ms
  brunt run FILE                          users by a script, of k6 or in Lua

brunt --help    flags and commands
brunt help      the guide; brunt help first: a first run, step by step";

/// The text for `brunt < urls.txt`.
const FED: &str =
    "error: no URL is given: brunt --url-lines - http://localhost:8080/ < FILE asks for the paths on standard input";

/// The flags in the brief help of commands whose flags fill more than a screen, by id.
const BRIEF: [(&str, &[&str]); 16] = [
    (
        "curl",
        &["url", "connections", "duration", "requests", "rate", "warmup", "once", "thresholds", "outputs", "verbose"],
    ),
    (
        "run",
        &[
            "file",
            "scale",
            "duration",
            "rate",
            "users",
            "base_url",
            "inject",
            "env",
            "once",
            "thresholds",
            "outputs",
            "html",
        ],
    ),
    (
        "replay",
        &["logs_and_url", "log_format", "session", "window", "unsafe", "speed", "scale", "think", "fail_if", "outputs"],
    ),
    ("find", &["url", "connections", "duration", "rate", "thresholds", "outputs", "users", "from"]),
    ("sweep", &["url", "connections", "duration", "rate", "thresholds", "outputs", "users", "vary", "stop_at_failure"]),
    ("doctor", &["url", "connections", "threads", "duration", "rate", "reconnect", "source_ip", "format"]),
    ("compare", &["connections", "duration", "rate", "thresholds", "outputs", "keep", "a", "b", "rounds", "fail_if"]),
    (
        "serve http",
        &[
            "address",
            "delay",
            "service_time",
            "servers",
            "error_rate",
            "stall",
            "body_size",
            "duration",
            "faults",
            "tls",
        ],
    ),
    ("serve ws", &["address", "delay", "error_rate", "stall", "push", "duration", "faults", "tls"]),
    ("serve thrift", &["address", "delay", "error_rate", "stall", "duration", "faults", "tls"]),
    (
        "serve llm",
        &[
            "address",
            "model",
            "prefill",
            "decode",
            "slots",
            "queue",
            "answer_tokens",
            "tokens_per_chunk",
            "prefix_cache",
            "refuse",
            "error_in_stream",
            "cut",
            "api_key",
            "stamps",
            "duration",
        ],
    ),
    ("serve grpc", &["address", "delay", "error_rate", "duration", "faults", "tls"]),
    ("grpc list", &["url", "service", "headers", "timeout", "connect_to", "insecure", "cacert"]),
    ("grpc describe", &["url", "symbol", "headers", "timeout", "connect_to", "insecure", "cacert"]),
    (
        "agent",
        &[
            "nats",
            "nats_creds",
            "nats_ca",
            "name",
            "tag",
            "cores",
            "no_sandbox",
            "logs",
            "keep",
            "samples",
            "quiet",
            "manifest",
        ],
    ),
    (
        "proxy",
        &[
            "upstream",
            "listen",
            "coalesce",
            "key_header",
            "hold",
            "timeout",
            "metrics",
            "access_log",
            "workers",
            "duration",
        ],
    ),
];

/// Makes `-h` and `--help` of each command fit a screen; `--help-all` has the rest.
pub fn apply(command: Command) -> Command {
    with_helps(command, "")
}

/// The same for the command with this path behind `brunt`, and its subcommands.
fn with_helps(command: Command, path: &str) -> Command {
    let below: Vec<_> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let brief = BRIEF.iter().find(|(name, _)| *name == path).map(|(_, own)| *own);
    let mut command = match brief {
        Some(own) => command.mut_args(|arg| {
            let is_brief = own.contains(&arg.get_id().as_str());
            arg.hide_short_help(!is_brief)
        }),
        None => command,
    };
    let long = command.get_after_long_help().cloned();
    if brief.is_some() || long.is_some() {
        let long = long.or_else(|| command.get_after_help().cloned());
        let more = if long.is_some() { ", and more" } else { "" };
        command = command.after_help(format!("brunt {path} --help-all has every flag{more}"));
        command = command.after_long_help(long.unwrap_or_default());
    }
    // Under a heading of their own, not below the last one; a brief help names `--help-all` at its end.
    let flag = |id: &'static str| Arg::new(id).help_heading(Resettable::Reset).hide_short_help(brief.is_some());
    let help = flag("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help");
    let all = flag("help_all").long("help-all").action(ArgAction::HelpLong).help("Print help with every flag");
    let all = all.hide_short_help(true);
    let command = command.disable_help_flag(true).args([help, all]);
    below.iter().fold(command, |command, name| {
        let path = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command.mut_subcommand(name, |below| with_helps(below, &path))
    })
}

/// Prints the short help where it was asked for, or no arguments were given; `None` for other messages of clap.
pub fn shown(error: &clap::Error) -> Option<ExitCode> {
    let words: Vec<_> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let is_top = words.first().is_none_or(|word| word == "bench" || !commands::Command::has_subcommand(word));
    match error.kind() {
        ErrorKind::DisplayHelp if is_top && !words.iter().any(|word| word == "--help-all") => {
            Some(console::print(HELP.as_bytes()).map_or(Exit::Wrong, |()| Exit::Done).into())
        }
        ErrorKind::DisplayHelp
            if words.first().is_some_and(|word| word == commands::llm::NAME)
                && !words.iter().any(|word| word == "--help-all") =>
        {
            Some(console::print(commands::llm::HELP.as_bytes()).map_or(Exit::Wrong, |()| Exit::Done).into())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if words.is_empty() => {
            let is_fed = std::fs::metadata("/dev/stdin").is_ok_and(|input| input.is_file());
            console::note(if is_fed { FED } else { ALONE });
            Some(Exit::Wrong.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brief_is_there() {
        let definitions = crate::parser::definitions(&crate::built_in()).unwrap();
        for (path, own) in BRIEF {
            let command = path.split(' ').fold(&definitions, |command, name| command.find_subcommand(name).unwrap());
            let shown: Vec<_> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
            for id in own {
                assert!(shown.contains(id), "brunt {path} has no argument {id}: {shown:?}");
            }
        }
    }
}
