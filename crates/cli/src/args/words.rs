//! The flags of runs, for commands that make many: kept as written, so that each run is parsed from them with some
//! replaced. So these commands take every flag of `brunt bench`, by its one definition.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use brunt_plan::units::ExactDuration;
use brunt_protocol::Registry;
use brunt_report::decision::Format;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::bench::LiveServing;
use super::machines::Machines;
use super::{Bench, Load, ProtocolFlags, Saving, flags, secrets};

/// Flags about a single run, which these commands do not make.
const SINGLE: [&str; 13] = [
    "guard_action",
    "profile",
    "verbose",
    "latency",
    "no_histograms",
    "plan",
    "write_plan",
    "once",
    "show_secrets",
    "allow_write",
    "otlp",
    "prometheus",
    "prometheus_linger",
];
/// Flags for the destination of the result; [`Shown`] has their values.
pub(super) const SHOWN: [&str; 17] = [
    "format",
    "outputs",
    "html",
    "live",
    "live_tls",
    "live_cert",
    "live_key",
    "live_linger",
    "quiet",
    "no_color",
    "plain",
    "ascii",
    "dry_run",
    "store",
    "no_save",
    "name",
    "tag",
];
/// Flags for the machines that carry out runs; [`Shown`] has their values.
const CARRIED: [&str; 11] = [
    "nats",
    "nats_creds",
    "nats_nkey",
    "nats_ca",
    "nats_cert",
    "nats_key",
    "nats_prefix",
    "agents",
    "agents_wait",
    "on_lost_agent",
    "secrets_from_agents",
];
/// Arguments that are no flags.
const URL: &str = "url";
const SURPLUS: &str = "surplus";
pub(super) const SCRIPT_ARGS: &str = "script_args";

/// The flags of a command's runs, and the destination of its result.
#[derive(Debug, Clone, Default)]
pub struct Words {
    flags: Vec<Flag>,
    /// Positional arguments: targets.
    pub targets: Vec<OsString>,
    script_args: Vec<OsString>,
    /// Where the result goes.
    pub shown: Shown,
}

/// One flag, with all of its occurrences.
#[derive(Debug, Clone)]
struct Flag {
    id: String,
    /// Whether a second occurrence adds to the first.
    adds: bool,
    words: Vec<OsString>,
}

/// Where and how a result goes.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Shown {
    /// The format in which it is printed.
    pub format: Option<Format>,
    /// The files that it is written into.
    pub outputs: Vec<PathBuf>,
    /// The file that its page is written into.
    pub html: Option<PathBuf>,
    /// The address at which its page is served while runs go on.
    pub live: Option<SocketAddr>,
    /// How that page is served.
    pub live_serving: LiveServing,
    /// How it and its runs are kept.
    pub saving: Saving,
    /// The machines that carry out its runs.
    pub machines: Machines,
    /// Print nothing but errors and what `format` asks for.
    pub quiet: bool,
    /// No colours.
    pub no_color: bool,
    /// Lines instead of a view.
    pub plain: bool,
    /// Text and view in ASCII alone.
    pub ascii: bool,
    /// Check everything and stop before the load.
    pub dry_run: bool,
}

impl Words {
    /// Takes the values of a run's flags from `matches`.
    pub fn fill(&mut self, matches: &ArgMatches, registry: &Registry) {
        for arg in run_flags(registry).get_arguments() {
            let id = arg.get_id().as_str();
            let given = matches.value_source(id) == Some(ValueSource::CommandLine);
            if !given || SHOWN.contains(&id) || CARRIED.contains(&id) {
                continue;
            }
            let raw = || matches.get_raw(id).into_iter().flatten().map(OsStr::to_owned);
            match id {
                URL | SURPLUS => self.targets.extend(raw()),
                SCRIPT_ARGS => self.script_args.extend(raw()),
                _ => self.flags.extend(flag(arg, raw())),
            }
        }
    }

    /// The flags of one run, with `more` replacing the given ones.
    ///
    /// # Errors
    /// When `more`, or all of them together, are not valid for `brunt bench`.
    pub fn with<S: AsRef<OsStr>>(&self, more: &[S], registry: &Registry) -> Result<Bench> {
        let words = self.line(more, registry)?;
        let matches = read(words.iter().map(OsString::as_os_str), registry)?;
        let mut bench = Bench::from_arg_matches(&matches).map_err(|e| problem(&e))?;
        bench.protocol = ProtocolFlags::new(&matches, registry);
        Ok(bench)
    }

    /// The words of one run, with `more` replacing the given ones.
    pub(super) fn line<S: AsRef<OsStr>>(&self, more: &[S], registry: &Registry) -> Result<Vec<OsString>> {
        let mut theirs = Self::default();
        let matches = read(more.iter().map(AsRef::as_ref), registry)?;
        theirs.fill(&matches, registry);
        let given = |id: &str| theirs.flags.iter().any(|flag| flag.id == id);
        let kept = self.flags.iter().filter(|flag| flag.adds || !given(&flag.id));
        let mut words: Vec<_> = kept.chain(&theirs.flags).flat_map(|flag| flag.words.iter().cloned()).collect();
        words.extend(if theirs.targets.is_empty() { self.targets.clone() } else { theirs.targets });
        let script_args = if theirs.script_args.is_empty() { &self.script_args } else { &theirs.script_args };
        if !script_args.is_empty() {
            words.push("--".into());
            words.extend(script_args.iter().cloned());
        }
        Ok(words)
    }

    /// The same words with `target` as the target.
    pub fn aimed_at(&self, target: &OsStr) -> Self {
        Self { targets: vec![target.to_owned()], ..self.clone() }
    }

    /// Whether any flag of a run was given.
    pub fn is_bare(&self) -> bool {
        self.flags.is_empty() && self.script_args.is_empty()
    }

    /// Whether the flag with this `id` was given.
    pub fn has(&self, id: &str) -> bool {
        self.flags.iter().any(|flag| flag.id == id)
    }

    /// The values that a flag was given.
    pub fn texts(&self, id: &str) -> Vec<String> {
        let words = self.flags.iter().filter(|flag| flag.id == id).flat_map(|flag| &flag.words);
        let value = |word: &OsString| word.to_string_lossy().split_once('=').map(|(_, value)| value.to_owned());
        words.filter_map(value).collect()
    }

    /// Removes a flag. Returns its values.
    pub fn take(&mut self, id: &str) -> Vec<String> {
        let taken = self.texts(id);
        self.flags.retain(|flag| flag.id != id);
        taken
    }
}

/// Default lengths of the runs of a command that makes many.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// The measured part, in nanoseconds.
    pub duration_ns: u64,
    /// The warm-up before it, in nanoseconds.
    pub warmup_ns: u64,
}

impl Lengths {
    /// Applies them to a load that has lengths neither by a flag nor by its profile.
    pub fn give(self, load: &mut Load) {
        let ends = load.rate.as_ref().is_some_and(|profile| profile.duration_ns().is_some());
        if load.duration.is_none() && load.requests.is_none() && !ends {
            load.duration = Some(self.duration_ns);
        }
        load.warmup.get_or_insert(self.warmup_ns);
    }

    /// Adds the default to the help of the flag for the measured part.
    pub fn told_of_duration(self, arg: Arg) -> Arg {
        arg.help(format!("How long each run takes [default: {}]", ExactDuration(self.duration_ns)))
    }

    /// Adds the default to the help of the flag for the warm-up.
    pub fn told_of_warmup(self, arg: Arg) -> Arg {
        let warmup = ExactDuration(self.warmup_ns);
        arg.help(format!("Make calls for this long before each; they are in no figure [default: {warmup}]"))
    }
}

/// Parses these words as `brunt bench` does.
pub(super) fn read<'a>(words: impl Iterator<Item = &'a OsStr>, registry: &Registry) -> Result<ArgMatches> {
    let line = std::iter::once(OsStr::new("brunt bench")).chain(words);
    let matches = run_flags(registry).try_get_matches_from(line);
    matches.map_err(|error| problem(&secrets::without_secrets(error, registry)))
}

/// The definitions of a run's flags, protocols' included.
pub fn run_flags(registry: &Registry) -> Command {
    flags::add(Bench::augment_args(Command::new("bench")), registry)
}

/// An argument in a form that can be parsed again.
fn flag(arg: &Arg, values: impl Iterator<Item = OsString>) -> Option<Flag> {
    let long = format!("--{}", arg.get_long()?);
    let words = if arg.get_action().takes_values() {
        let word = |value: OsString| {
            let mut word = OsString::from(format!("{long}="));
            word.push(value);
            word
        };
        values.map(word).collect()
    } else {
        vec![long.into()]
    };
    Some(Flag { id: arg.get_id().to_string(), adds: matches!(arg.get_action(), ArgAction::Append), words })
}

impl FromArgMatches for Words {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |id: &str| {
            matches.try_contains_id(id).is_ok() && { matches.value_source(id) == Some(ValueSource::CommandLine) }
        };
        if let Some(id) = SINGLE.into_iter().find(|id| given(id)) {
            let flag = id.replace('_', "-");
            let text = format!("--{flag} is for a single run (brunt bench), which this command does not make\n");
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        let shown = Shown {
            format: matches.get_one("format").copied(),
            outputs: matches.get_many("outputs").into_iter().flatten().cloned().collect(),
            html: matches.get_one("html").cloned(),
            live: matches.get_one("live").copied(),
            live_serving: LiveServing {
                made: matches.get_flag("live_tls"),
                certificate: matches.get_one("live_cert").cloned(),
                key: matches.get_one("live_key").cloned(),
                linger: matches.get_one("live_linger").copied(),
            },
            saving: Saving {
                store: matches.get_one("store").cloned(),
                no_save: matches.get_flag("no_save"),
                name: matches.get_one("name").cloned(),
                tags: matches.get_many("tag").into_iter().flatten().cloned().collect(),
            },
            machines: Machines::from_arg_matches(matches)?,
            quiet: matches.get_flag("quiet"),
            no_color: matches.get_flag("no_color"),
            plain: matches.get_flag("plain"),
            ascii: matches.get_flag("ascii"),
            dry_run: matches.get_flag("dry_run"),
        };
        Ok(Self { shown, ..Self::default() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Words {
    fn augment_args(command: Command) -> Command {
        let formats = PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>());
        let command = Bench::augment_args(command)
            .mut_arg("format", |arg| arg.value_parser(formats))
            .mut_arg("outputs", |arg| {
                arg.help("Write the result into this file as well, repeatable: .txt, .json, .csv, .md or .html")
            })
            .mut_arg("dry_run", |arg| arg.help("Check everything and stop before the load"));
        let known: Vec<_> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        let single = SINGLE.into_iter().filter(|id| known.iter().any(|known| known == id));
        single.fold(command, |command, id| command.mut_arg(id, |arg| arg.hide(true)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// clap's message, without the usage of a command that nobody called.
pub fn problem(error: &clap::Error) -> anyhow::Error {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|mark| text.find(mark)).min();
    anyhow!("{}", text.get(..end.unwrap_or(text.len())).unwrap_or(text).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Output;

    /// A flag of outputs that no list names would be taken by `find`, `sweep` and `compare`, and do nothing.
    #[test]
    fn every_flag_of_outputs_is_refused_or_shown_or_belongs_to_each_run() {
        const OF_EACH_RUN: [&str; 4] = ["thresholds", "guards", "watches", "max_error_rate"];
        let flags = Output::augment_args(Command::new("outputs"));
        for id in flags.get_arguments().map(|arg| arg.get_id().as_str()) {
            let lists = [SINGLE.contains(&id), SHOWN.contains(&id), OF_EACH_RUN.contains(&id)];
            assert_eq!(
                lists.iter().filter(|is_named| **is_named).count(),
                1,
                "{id} stands in one of SINGLE, SHOWN and this list"
            );
        }
    }

    fn read(words: &[&str]) -> Result<Words, clap::Error> {
        let registry = crate::built_in();
        let definitions = flags::add(Words::augment_args(Command::new("find")), &registry);
        let matches = definitions.try_get_matches_from(["find"].iter().chain(words))?;
        let mut read = Words::from_arg_matches(&matches)?;
        read.fill(&matches, &registry);
        Ok(read)
    }

    fn words(words: &[&str]) -> Words {
        read(words).unwrap()
    }

    fn with(words: &Words, more: &[&str]) -> Result<Bench> {
        words.with(more, &crate::built_in())
    }

    #[test]
    fn flags_are_read_again_as_they_were_written() {
        let words = words(&["-c8", "-H", "A: =b", "-H=-C: d", "-k", "--body=-x", "http://a/", "--ok-status", "2xx"]);
        let bench = with(&words, &["--no-color"]).unwrap();
        assert_eq!((bench.load.connections, bench.tls.insecure), (Some(8), true));
        assert_eq!((bench.request.ok_status, bench.url), (Some("2xx".parse().unwrap()), Some("http://a/".into())));
        let protocol = format!("{:?}", bench.protocol);
        assert!(protocol.contains(r#"["A: =b", "-C: d"]"#) && protocol.contains(r#"["-x"]"#), "{protocol}");
    }

    #[test]
    fn others_take_their_place_or_add_to_them() {
        let words = words(&["-c", "8", "-H", "A: b", "--body", "x", "--threshold", "p99<1s", "http://a/"]);
        let bench = with(&words, &["-c", "16", "-H", "C: d", "--body", "y", "http://b/"]).unwrap();
        assert_eq!((bench.load.connections, bench.output.thresholds.len()), (Some(16), 1));
        let protocol = format!("{:?}", bench.protocol);
        assert!(protocol.contains(r#"["A: b", "C: d"]"#) && protocol.contains(r#"["y"]"#), "{protocol}");
        assert_eq!(bench.url.as_deref(), Some("http://b/"));
        // What conflicts with a flag that is not replaced still does.
        let error = with(&words, &["--body-file", "f"]).unwrap_err().to_string();
        assert!(error.contains("'--body <TEXT>' cannot be used with '--body-file <F>'"), "{error}");
        let error = with(&words, &["-c", "many"]).unwrap_err().to_string();
        assert!(error.contains("invalid value 'many'") && !error.contains("Usage"), "{error}");
    }

    #[test]
    fn a_default_gives_way() {
        const S: u64 = 1_000_000_000;
        let lengths = Lengths { duration_ns: 5 * S, warmup_ns: S };
        for (flags, duration, warmup) in [
            (&["http://a/"][..], Some(5 * S), S),
            (&["-d", "9s", "http://a/"], Some(9 * S), S),
            (&["-w", "0", "-n", "10", "http://a/"], None, 0),
            (&["-r", "1k/2s", "http://a/"], None, S),
            (&["-r", "1k", "http://a/"], Some(5 * S), S),
        ] {
            let mut bench = with(&words(flags), &[]).unwrap();
            lengths.give(&mut bench.load);
            assert_eq!((bench.load.duration, bench.load.warmup), (duration, Some(warmup)), "{flags:?}");
        }
    }

    #[test]
    fn flags_are_shown_without_secrets_whichever_way_they_are_written() {
        for (flags, expected) in [
            ("-t 2 --pipeline=4", "-t 2 --pipeline 4"),
            ("-H 'Authorization: Bearer abc'", "-H 'Authorization: [redacted]'"),
            ("-H 'Authorization: Bearer @TOKEN'", "-H 'Authorization: Bearer @TOKEN'"),
            ("-kH'Authorization: Bearer abc'", "-k -H 'Authorization: [redacted]'"),
            ("-kH 'Authorization: Bearer abc'", "-k -H 'Authorization: [redacted]'"),
            ("'-HCookie: sid=abc; x @T'", "-H 'Cookie: [redacted] @T'"),
            ("--header='cookie: a=b' -H 'X-A: b'", "-H 'cookie: [redacted]' -H 'X-A: b'"),
            ("--basic me:pw -c 3", "-c 3 --basic [redacted]"),
            ("-u me:@PW", "--basic me:@PW"),
            ("-b sid=abc --cookie a=b", "-b [redacted] -b [redacted]"),
            ("--json '{\"password\":\"abc\"}'", "--json '{\"password\":\"[redacted]\"}'"),
            ("-d1s 'http://me:pw@a/?token=abc&b=c'", "-d 1s 'http://[redacted]@a/?token=[redacted]&b=c'"),
            ("-s a.lua -- abcdef 3 @TOKEN", "-s a.lua -- [redacted] 3 @TOKEN"),
        ] {
            let flags = shlex::split(flags).unwrap();
            assert_eq!(super::super::repeat::shown_flags(&flags, &crate::built_in()).unwrap(), expected);
        }
    }

    #[test]
    fn errors_have_no_secrets() {
        let words = words(&["http://a/"]);
        for more in
            [["--basic=me:hunter2", "--basic=me:hunter2"], ["--basic=hunter2", "--c=2"], ["-cX", "--cookie=hunter2"]]
        {
            let error = with(&words, &more).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_is_for_a_single_run_is_refused() {
        let error = read(&["-v", "http://a/"]).unwrap_err();
        assert!(error.to_string().contains("--verbose is for a single run"), "{error}");
    }
}
