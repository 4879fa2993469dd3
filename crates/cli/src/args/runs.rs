//! The flags of runs, for commands that make many: parsed once, by the definitions of `brunt bench`. A run's own values
//! are fields that are set, or flags laid over the common ones.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use brunt_plan::units::ExactDuration;
use brunt_protocol::Registry;
use brunt_report::decision::DecisionFormat;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::bench::LiveServing;
use super::inherited::{conflict, is_given};
use super::machines::Machines;
use super::roles::{self, Role};
use super::{Bench, Load, ProtocolFlags, Saving, Scripted, flags, secrets};

/// The positional arguments: targets, and the arguments of a script.
pub(super) const URL: &str = "url";
pub(super) const SURPLUS: &str = "surplus";
pub(super) const SCRIPT_ARGS: &str = "script_args";

/// The flags of a command's runs, and the destination of its result.
#[derive(Debug, Clone, Default)]
pub struct RunArgs {
    /// The flags of each run.
    pub bench: Bench,
    /// Its flags for a script, which may stand where a URL does.
    pub scripted: Scripted,
    /// Positional arguments: targets.
    pub targets: Vec<OsString>,
    /// Where the result goes.
    pub shown: Shown,
    /// The values as given, for the command that is shown; later ones replace earlier ones, or add to them.
    pub(super) layers: Vec<ArgMatches>,
}

/// Where and how a result goes.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Shown {
    /// The format in which it is printed.
    pub format: Option<DecisionFormat>,
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

impl Shown {
    /// The destination by the flags of a run, and the format of a decision.
    fn of(bench: &Bench, format: Option<DecisionFormat>) -> Self {
        let output = &bench.output;
        Self {
            format,
            outputs: output.outputs.clone(),
            html: output.html.clone(),
            live: output.live,
            live_serving: output.live_serving.clone(),
            saving: bench.saving.clone(),
            machines: bench.machines.clone(),
            quiet: output.quiet,
            no_color: output.no_color,
            plain: output.plain,
            ascii: output.ascii,
            dry_run: bench.kept.dry_run,
        }
    }
}

impl RunArgs {
    /// Takes the values of protocols' flags from `matches`.
    pub fn fill(&mut self, matches: &ArgMatches, registry: &Registry) {
        self.bench.protocol = ProtocolFlags::new(matches, registry);
    }

    /// These flags with `words` laid over them: each replaces the common one, or adds to it where it is repeatable.
    ///
    /// # Errors
    /// When a word is not a flag of a run, is one of the whole decision, or cannot stand beside a common one.
    pub fn over<S: AsRef<OsStr>>(&self, words: &[S], registry: &Registry) -> Result<Self> {
        let given = read(words.iter().map(AsRef::as_ref), registry)?;
        let mut definitions = run_flags(registry);
        definitions.build();
        let mut matches = given.clone();
        for arg in definitions.get_arguments() {
            let id = arg.get_id().as_str();
            if !is_given(&given, id) {
                // A switch that is not given has the value false, which would replace a common true.
                let _ = matches.try_clear_id(id);
                continue;
            }
            if matches!(id, URL | SURPLUS) || !matches!(roles::of(id), Role::Run) {
                bail!("{arg} is for all runs together: give it outside of the flags of one side");
            }
            let mut common = definitions.get_arguments().filter(|other| self.has(other.get_id().as_str()));
            if let Some(other) = common.find(|other| conflict(&definitions, other.get_id().as_str(), id)) {
                bail!("the argument '{other}' cannot be used with '{arg}'");
            }
        }
        let mut all = self.clone();
        let lists = Lists::taken(&mut all);
        let bench = all.bench.update_from_arg_matches_mut(&mut matches);
        bench.and_then(|()| all.scripted.update_from_arg_matches_mut(&mut matches)).map_err(|error| problem(&error))?;
        lists.put_before(&mut all);
        all.bench.protocol = all.bench.protocol.overlaid(ProtocolFlags::new(&given, registry), registry);
        all.layers.push(given);
        Ok(all)
    }

    /// The same flags with `target` as the target.
    pub fn aimed_at(&self, target: &OsStr) -> Self {
        let mut aimed = Self { targets: vec![target.to_owned()], ..self.clone() };
        (aimed.bench.url, aimed.bench.surplus) = (Some(target.to_string_lossy().into_owned()), Vec::new());
        aimed
    }

    /// Whether no flag of each run was given.
    pub fn is_bare(&self, registry: &Registry) -> bool {
        let definitions = run_flags(registry);
        let mut ids =
            definitions.get_arguments().map(|arg| arg.get_id().as_str()).filter(|id| !matches!(*id, URL | SURPLUS));
        !ids.any(|id| roles::of(id) == Role::Run && self.has(id))
    }

    /// Whether the argument with this `id` was given.
    pub fn has(&self, id: &str) -> bool {
        self.layers.iter().any(|matches| is_given(matches, id))
    }
}

/// The lists of flags that may be repeated, to which later ones add.
struct Lists {
    thresholds: Vec<brunt_plan::threshold::Threshold>,
    guards: Vec<brunt_plan::threshold::Guard>,
    watches: Vec<brunt_plan::watch::Watch>,
    cookies: Vec<String>,
    source_ip: Vec<super::values::SourceIps>,
    env: Vec<(String, String)>,
    only: Vec<String>,
}

impl Lists {
    fn taken(run: &mut RunArgs) -> Self {
        let (bench, scripted) = (&mut run.bench, &mut run.scripted);
        let output = &mut bench.output;
        Self {
            thresholds: std::mem::take(&mut output.thresholds),
            guards: std::mem::take(&mut output.guards),
            watches: std::mem::take(&mut output.watches),
            cookies: std::mem::take(&mut bench.request.cookies),
            source_ip: std::mem::take(&mut bench.connecting.source_ip),
            env: std::mem::take(&mut scripted.env),
            only: std::mem::take(&mut scripted.only),
        }
    }

    fn put_before(self, run: &mut RunArgs) {
        fn put<T>(list: Vec<T>, before: &mut Vec<T>) {
            before.splice(0..0, list);
        }
        let (bench, scripted) = (&mut run.bench, &mut run.scripted);
        let output = &mut bench.output;
        put(self.thresholds, &mut output.thresholds);
        put(self.guards, &mut output.guards);
        put(self.watches, &mut output.watches);
        put(self.cookies, &mut bench.request.cookies);
        put(self.source_ip, &mut bench.connecting.source_ip);
        put(self.env, &mut scripted.env);
        put(self.only, &mut scripted.only);
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

/// The definitions of a run's flags, protocols' included, and those for a script.
pub fn run_flags(registry: &Registry) -> Command {
    flags::add(Scripted::augment_args(Bench::augment_args(Command::new("bench"))), registry)
}

impl RunArgs {
    /// The flags in `given`, of which `rest` lacks those that have another type here than in `brunt bench`.
    ///
    /// # Errors
    /// When a flag of a single run was given.
    pub fn of(given: &ArgMatches, mut rest: ArgMatches) -> Result<Self, clap::Error> {
        if let Some(id) = roles::single().find(|id| is_given(given, id)) {
            let flag = id.replace('_', "-");
            let text = format!("--{flag} is for a single run (brunt bench), which this command does not make\n");
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        // A decision has formats of its own.
        let format = rest.remove_one("format");
        let mut bench = Bench::from_arg_matches_mut(&mut rest)?;
        let scripted = Scripted::from_arg_matches_mut(&mut rest)?;
        let targets = bench.url.iter().chain(&bench.surplus).map(OsString::from).collect();
        let shown = Shown::of(&bench, format);
        // The name is the decision's, and not that of each run.
        bench.saving = Saving::default();
        Ok(Self { bench, scripted, targets, shown, layers: vec![given.clone()] })
    }
}

impl FromArgMatches for RunArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::of(matches, matches.clone())
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for RunArgs {
    fn augment_args(command: Command) -> Command {
        let formats = PossibleValuesParser::new(DecisionFormat::ALL.map(DecisionFormat::name))
            .try_map(|name| name.parse::<DecisionFormat>());
        let command = Scripted::augment_args(Bench::augment_args(command))
            .mut_arg("format", |arg| arg.value_parser(formats))
            .mut_arg("outputs", |arg| {
                arg.help(format!(
                    "Write the result into this file as well, repeatable: {}",
                    DecisionFormat::extensions()
                ))
            })
            .mut_arg("dry_run", |arg| arg.help("Check everything and stop before the load"));
        let known: Vec<_> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        let single = roles::single().filter(|id| known.iter().any(|known| known == id));
        single.fold(command, |command, id| command.mut_arg(id, |arg| arg.hide(true)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The target's argument, where a script may stand in its place. (`Command::mut_arg` would put it behind the other positional ones.)
pub fn aimed_at_scripts_too(arg: Arg) -> Arg {
    if arg.get_id() != URL {
        return arg;
    }
    let help = "The target (a scheme such as http://, a host, a port and a path; user:password@ becomes --basic), or a script with users";
    arg.value_name("URL|SCRIPT").help(help)
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

    fn read(words: &[&str]) -> Result<RunArgs, clap::Error> {
        let registry = crate::built_in();
        let definitions = flags::add(RunArgs::augment_args(Command::new("find")), &registry);
        let matches = definitions.try_get_matches_from(["find"].iter().chain(words))?;
        let mut read = RunArgs::from_arg_matches(&matches)?;
        read.fill(&matches, &registry);
        Ok(read)
    }

    fn run(words: &[&str]) -> RunArgs {
        read(words).unwrap()
    }

    fn over(run: &RunArgs, more: &[&str]) -> Result<Bench> {
        run.over(more, &crate::built_in()).map(|run| run.bench)
    }

    #[test]
    fn flags_are_those_of_a_run() {
        let run = run(&["-c8", "-H", "A: =b", "-H=-C: d", "-k", "--body=-x", "http://a/", "--ok-status", "2xx"]);
        let bench = over(&run, &[]).unwrap();
        assert_eq!((bench.load.connections, bench.tls.insecure), (Some(8), true));
        assert_eq!((bench.request.ok_status, bench.url), (Some("2xx".parse().unwrap()), Some("http://a/".into())));
        let protocol = format!("{:?}", bench.protocol);
        assert!(protocol.contains(r#"["A: =b", "-C: d"]"#) && protocol.contains(r#"["-x"]"#), "{protocol}");
    }

    #[test]
    fn others_take_their_place_or_add_to_them() {
        let run = run(&["-kc", "8", "-H", "A: b", "--body", "x", "--threshold", "p99<1s", "http://a/"]);
        let bench = over(&run, &["-c", "16", "-H", "C: d", "--body", "y", "--threshold", "p50<1s"]).unwrap();
        assert_eq!((bench.load.connections, bench.output.thresholds.len()), (Some(16), 2));
        assert!(bench.tls.insecure, "a switch that is not given again stays on");
        let protocol = format!("{:?}", bench.protocol);
        assert!(protocol.contains(r#"["A: b", "C: d"]"#) && protocol.contains(r#"["y"]"#), "{protocol}");
        assert_eq!(run.aimed_at(OsStr::new("http://b/")).bench.url.as_deref(), Some("http://b/"));
        // What conflicts with a flag that is not replaced still does.
        let error = over(&run, &["--body-file", "f"]).unwrap_err().to_string();
        assert!(error.contains("'--body <TEXT>' cannot be used with '--body-file <F>'"), "{error}");
        let error = over(&run, &["-c", "many"]).unwrap_err().to_string();
        assert!(error.contains("invalid value 'many'") && !error.contains("Usage"), "{error}");
    }

    #[test]
    fn a_side_has_no_flags_of_the_whole_decision() {
        let run = run(&["http://a/"]);
        for more in [&["--quiet"][..], &["-o", "a.json"], &["--nats", "nats://h:4222"], &["--once"], &["http://b/"]] {
            let error = over(&run, more).unwrap_err().to_string();
            assert!(error.contains("outside of the flags of one side"), "{more:?}: {error}");
        }
    }

    /// Values of flags that are not words of their own.
    fn sample(arg: &Arg) -> &'static str {
        match arg.get_id().as_str() {
            "rate" => "1k/2s",
            "duration" | "warmup" | "timeout" | "connect_timeout" | "drain" | "wait_for" | "resolve_every" => "2s",
            "thresholds" => "p99<7ms",
            "guards" => "p99>7ms for 3s",
            "watches" => "pid:1",
            "max_error_rate" => "5%",
            "ok_status" => "2xx",
            "cookies" => "a=b",
            "connect_to" => "localhost:80",
            "proxy" => "http://me:pw@localhost:80",
            "source_ip" => "127.0.0.7",
            "sni" => "example.org",
            "header" | "metadata" | "trailer" => "A: b",
            "basic" => "me:pw",
            _ => "3",
        }
    }

    /// Each flag laid over others gives the run that a single command line with all of them gives.
    #[test]
    fn a_flag_laid_over_others_is_one_flag_more() {
        let registry = crate::built_in();
        let common = ["-k", "-c", "8", "--threshold", "p50<1s", "-b", "c=d", "--json", "{}", "http://a/"];
        let mut laid = 0;
        for arg in run_flags(&registry).get_arguments().filter(|arg| roles::of(arg.get_id().as_str()) == Role::Run) {
            let Some(long) = arg.get_long().filter(|_| !arg.is_hide_set()) else { continue };
            let known = arg.get_possible_values().first().map(|value| value.get_name().to_owned());
            let value = known.unwrap_or_else(|| sample(arg).to_owned());
            let word = if arg.get_action().takes_values() { format!("--{long}={value}") } else { format!("--{long}") };
            let together: Vec<_> = common.into_iter().chain([word.as_str()]).collect();
            let (laid_over, together) = (over(&run(&common), &[&word]), read(&together));
            // A flag that common ones have, or that cannot stand beside them, has no such line.
            let (Ok(laid_over), Ok(together)) = (laid_over, together) else { continue };
            assert_eq!(format!("{laid_over:?}"), format!("{:?}", together.bench), "{word}");
            laid += 1;
        }
        assert!(laid > 40, "only {laid} flags were laid over others");
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
            let mut bench = over(&run(flags), &[]).unwrap();
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
            ("-x http://me:pw@p:3128 -c 3", "-c 3 -x http://[redacted]@p:3128"),
            ("--proxy me:pw@p:3128", "-x http://[redacted]@p:3128"),
            ("--proxy me:@PW@p:3128", "-x http://me:@PW@p:3128"),
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
        let run = run(&["http://a/"]);
        for more in
            [["--basic=me:hunter2", "--basic=me:hunter2"], ["--basic=hunter2", "--c=2"], ["-cX", "--cookie=hunter2"]]
        {
            let error = over(&run, &more).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_is_for_a_single_run_is_refused() {
        let error = read(&["-v", "http://a/"]).unwrap_err();
        assert!(error.to_string().contains("--verbose is for a single run"), "{error}");
    }
}
