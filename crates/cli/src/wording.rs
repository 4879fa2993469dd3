//! Errors in the words of their reader: what happened, then the way out by the flag or the plan's field to change.
//!
//! The crates below the command line describe an error in plain words and carry its cause as a type. This module adds
//! the way out of each cause, so that no other module has to know a flag.

use std::borrow::Cow;
use std::error::Error;

use brunt_engine::{AskError, EngineError, NoSpareCpu, RouteError, TlsError};
use brunt_plan::plan::{Family, PlanError};
use brunt_plan::setting::Setting;
use brunt_replay::planned::{PlannedError, ReplayPart};
use brunt_report::json::ReadError;
use brunt_script::ScriptError;
use brunt_store::StoreError;

/// The place of a run's settings, to which a way out leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// Flags of the command line.
    Flags,
    /// A plan's file (`--plan`).
    PlanFile,
}

impl Settings {
    /// The name of `setting` in that place.
    fn name(self, setting: Setting) -> &'static str {
        match self {
            Self::Flags => flag(setting),
            Self::PlanFile => setting.field(),
        }
    }

    /// The name of `setting`, for a sentence that does not mention the plan.
    fn place(self, setting: Setting) -> Cow<'static, str> {
        match self {
            Self::Flags => flag(setting).into(),
            Self::PlanFile => format!("{} in the plan", setting.field()).into(),
        }
    }
}

/// The flag that sets `setting`.
fn flag(setting: Setting) -> &'static str {
    match setting {
        Setting::Connections => "-c",
        Setting::Workers => "-t",
        Setting::Pipeline => "--pipeline",
        Setting::Reconnect => "--reconnect",
        Setting::Load => "-r",
        Setting::Duration => "-d",
        Setting::Requests => "-n",
        Setting::Warmup => "--warmup",
        Setting::Timeout => "--timeout",
        Setting::ConnectTimeout => "--connect-timeout",
        Setting::Drain => "--drain",
        Setting::SetupTimeout => "--setup-timeout",
        Setting::TeardownTimeout => "--teardown-timeout",
        Setting::Wait => "--wait-for",
        Setting::Proxy => "--proxy",
        Setting::UnixSocket => "--unix-socket",
        Setting::SourceAddresses => "--source-ip",
        Setting::Family => "-4 or -6",
        Setting::Insecure => "-k",
        Setting::TrustedCertificates => "--cacert",
        Setting::ClientCertificate => "--cert",
        Setting::ClientKey => "--key",
        Setting::ServerName => "--sni",
    }
}

/// An error with its causes and the way out. Each cause is named once (many errors name their cause themselves).
pub fn render_error(error: &anyhow::Error, settings: Settings) -> String {
    let mut causes = error.chain().map(|cause| cause_told(cause, settings));
    let mut text = causes.next().unwrap_or_default();
    for cause in causes {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// The text of one error in a chain.
fn cause_told(cause: &(dyn Error + 'static), settings: Settings) -> String {
    if let Some(error) = cause.downcast_ref::<EngineError>() {
        engine(error, settings)
    } else if let Some(AskError::Engine(error)) = cause.downcast_ref::<AskError>() {
        engine(error, settings)
    } else if let Some(error) = cause.downcast_ref::<PlanError>() {
        plan(error, settings)
    } else if let Some(error) = cause.downcast_ref::<ScriptError>() {
        script(error, settings)
    } else if let Some(error) = cause.downcast_ref::<StoreError>() {
        store(error)
    } else if let Some(error) = cause.downcast_ref::<ReadError>() {
        document(error)
    } else if let Some(error) = cause.downcast_ref::<PlannedError>() {
        planned(error, settings)
    } else {
        cause.to_string()
    }
}

fn engine(error: &EngineError, settings: Settings) -> String {
    match error {
        EngineError::Plan(error) => plan(error, settings),
        EngineError::Route(error) => route(error, settings),
        EngineError::Script(error) => script(error, settings),
        EngineError::Descriptors { .. } => format!(
            "{error}: ask for fewer ({}), or raise the hard limit (ulimit -Hn)",
            settings.place(Setting::Connections)
        ),
        EngineError::NoSpareCpu(NoSpareCpu { cpus: 1, .. }) => format!("{error}: let it sleep (--pace timer)"),
        EngineError::NoSpareCpu(NoSpareCpu { cpus, .. }) => {
            format!("{error}: give -t {} or fewer, or let them sleep (--pace timer)", cpus - 1)
        }
        EngineError::TookTooLong { setting, .. } => {
            format!("{error}: let it end, or raise {}", settings.place(*setting))
        }
        // A protocol names its own flags.
        EngineError::Options(_)
        | EngineError::Scheme(_)
        | EngineError::NoPort { .. }
        | EngineError::System { .. }
        | EngineError::Unscriptable { .. }
        | EngineError::NoLog
        | EngineError::Defect => error.to_string(),
    }
}

fn plan(error: &PlanError, settings: Settings) -> String {
    match error {
        PlanError::Version { .. } => format!("{error}: write it again with --write-plan"),
        PlanError::Range { setting, .. } => format!("{error}: change {}", settings.place(*setting)),
        PlanError::Conflict { one, other, why } => {
            format!("{} and {} cannot go together: {why}", settings.name(*one), settings.name(*other))
        }
        PlanError::Endless => format!(
            "{error}; give it an end with {}, {} or {}",
            settings.name(Setting::Duration),
            settings.name(Setting::Requests),
            settings.place(Setting::Load)
        ),
        PlanError::NoRateToLower => format!("{error}; give it one with {}", settings.place(Setting::Load)),
        PlanError::NoGuard => format!("{error}; --guard 'p99>500ms for 10s' is one"),
        PlanError::Target(_)
        | PlanError::Secrets
        | PlanError::Argument { .. }
        | PlanError::Injection(_)
        | PlanError::IdleGuard { .. }
        | PlanError::Watch(_)
        | PlanError::Threshold(_) => error.to_string(),
    }
}

/// The error about a part of a replay, with the flag that set it.
fn planned(error: &PlannedError, settings: Settings) -> String {
    let flag = match (settings, error.part) {
        (Settings::PlanFile, _) => return error.to_string(),
        (Settings::Flags, ReplayPart::Format) => "--log-format",
        (Settings::Flags, ReplayPart::Fields) => "--fields",
        (Settings::Flags, ReplayPart::Session) => "--session",
        (Settings::Flags, ReplayPart::Window) => "--window",
        (Settings::Flags, ReplayPart::Filters) => "--filter",
        (Settings::Flags, ReplayPart::Rewrites) => "--rewrite",
        (Settings::Flags, ReplayPart::Speed) => "--speed",
        (Settings::Flags, ReplayPart::Scale) => "--scale",
        (Settings::Flags, ReplayPart::Shift) => "--shift",
        (Settings::Flags, ReplayPart::Rate) => "--rate",
        (Settings::Flags, ReplayPart::Headers) => "-H",
    };
    format!("{flag}: {}", error.problem)
}

fn route(error: &RouteError, settings: Settings) -> String {
    match error {
        RouteError::NoAddress { family: Family::Any, .. }
        | RouteError::Scheme { .. }
        | RouteError::Blocked { .. }
        | RouteError::Resolve { .. } => error.to_string(),
        RouteError::NoAddress { family, .. } => {
            let place = match (settings, family) {
                (Settings::PlanFile, _) => settings.place(Setting::Family),
                (Settings::Flags, Family::V4) => "-4".into(),
                (Settings::Flags, _) => "-6".into(),
            };
            format!("{error}; leave {place} out, or name another host")
        }
        RouteError::NoSource { .. } => {
            format!("{error}: give one with {}", settings.place(Setting::SourceAddresses))
        }
        RouteError::Source { .. } => {
            format!("{error}; {} takes addresses of this machine", settings.place(Setting::SourceAddresses))
        }
        RouteError::Proxy(_) => format!("{error} ({})", settings.place(Setting::Proxy)),
        RouteError::Tls(error) => tls(error, settings),
    }
}

fn tls(error: &TlsError, settings: Settings) -> String {
    let (certificate, key) = (settings.name(Setting::ClientCertificate), settings.place(Setting::ClientKey));
    match error {
        TlsError::Pem { setting, expected, problem } => {
            format!("{}: expected {expected} in PEM: {problem}", settings.place(*setting))
        }
        TlsError::NoRoots { .. } => format!(
            "{error}: install ca-certificates, give trusted ones with {}, or verify none with {}",
            settings.name(Setting::TrustedCertificates),
            settings.place(Setting::Insecure)
        ),
        TlsError::ServerName { .. } => format!("{error}: give one with {}", settings.place(Setting::ServerName)),
        TlsError::Half { given, missing } => {
            format!("{} needs {}: give both or neither", settings.name(*given), settings.place(*missing))
        }
        TlsError::Key(problem) => format!("{key}: {problem}"),
        TlsError::Mismatch { problem } => format!(
            "{certificate} and {key}: they do not fit each other, or the key is of no kind known here: {problem}"
        ),
        TlsError::Setup { .. } => error.to_string(),
    }
}

fn script(error: &ScriptError, settings: Settings) -> String {
    let text = error.to_string();
    let Some(name) = error.missing_value() else { return text };
    let way_out = match settings {
        Settings::Flags => format!("give it with --env {name}=VALUE, or --env {name} for that of the environment"),
        Settings::PlanFile => format!("give it with scenarios.env.{name} in the plan"),
    };
    // The way out comes before a traceback.
    match text.split_once('\n') {
        Some((what, traceback)) => format!("{what}: {way_out}\n{traceback}"),
        None => format!("{text}: {way_out}"),
    }
}

/// Flags name the store, wherever the settings of the run are written.
fn store(error: &StoreError) -> String {
    match error {
        StoreError::Open { .. } => format!("{error}; name another file with --store"),
        StoreError::Nothing { .. } => {
            format!("{error}: brunt keeps each run there as it ends, unless told --no-save")
        }
        StoreError::Foreign { .. } => format!("{error}: name another file with --store"),
        StoreError::Newer { .. } => format!("{error}: use that one, or name another file with --store"),
        StoreError::Full { .. } => {
            format!("{error}; remove runs with `brunt runs prune --keep N`, or make room")
        }
        StoreError::ReadOnly { .. } => {
            format!("{error}: name a file that can with --store, or keep nothing with --no-save")
        }
        StoreError::TooLarge { .. } => format!("{error}: write it with -o run.json"),
        StoreError::NoSuchRun { .. } => format!("{error}: `brunt runs` lists the kept ones"),
        StoreError::NotARun { .. } => format!("{error}: `brunt runs --all` lists those"),
        StoreError::Draft { .. } => format!("{error}, or name another file with --store"),
        StoreError::Damaged { .. } | StoreError::Busy { .. } | StoreError::Other { .. } => error.to_string(),
    }
}

fn document(error: &ReadError) -> String {
    match error {
        ReadError::Format => format!("{error}: -o FILE.json and --format json write one"),
        ReadError::Several { numbers } => {
            let number = numbers.first().copied().unwrap_or(1);
            format!("{error}: write the number of one behind the file's name, such as FILE:{number}")
        }
        ReadError::NoRecording => format!("{error}: `brunt show -o FILE.json` writes a kept run whole"),
        ReadError::Number { .. }
        | ReadError::Json { .. }
        | ReadError::Version { .. }
        | ReadError::Draft { .. }
        | ReadError::Recording { .. }
        | ReadError::Content { .. } => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io;

    use anyhow::anyhow;
    use brunt_plan::secret::SecretError;

    use super::*;

    fn flags_of(command: &clap::Command, flags: &mut BTreeSet<String>) {
        for arg in command.get_arguments() {
            flags.extend(arg.get_short().map(|short| format!("-{short}")));
            flags.extend(arg.get_long().map(|long| format!("--{long}")));
        }
        command.get_subcommands().for_each(|command| flags_of(command, flags));
    }

    /// The flags that a text names, except those of the shell's `ulimit`.
    fn named(text: &str) -> Vec<&str> {
        let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| "`'(),:;".contains(c)));
        words.filter(|word| word.starts_with('-') && *word != "-Hn").collect()
    }

    /// An error of each kind that has a way out.
    fn errors() -> Vec<anyhow::Error> {
        let ranges = Setting::ALL
            .map(|setting| PlanError::Range { setting, expected: "above 0".to_owned(), got: "0".to_owned() }.into());
        let host = || "a.example".to_owned();
        let problem = || "broken".to_owned();
        let routes = [
            RouteError::NoAddress { host: host(), family: Family::V4 },
            RouteError::NoAddress { host: host(), family: Family::V6 },
            RouteError::NoSource { host: host(), family: Family::V4 },
            RouteError::Source { address: [10, 0, 0, 1].into(), source: io::ErrorKind::AddrNotAvailable.into() },
            TlsError::Pem { setting: Setting::ClientKey, expected: "a private key", problem: problem() }.into(),
            TlsError::NoRoots { problem: problem() }.into(),
            TlsError::ServerName { name: "a..b".to_owned() }.into(),
            TlsError::Half { given: Setting::ClientKey, missing: Setting::ClientCertificate }.into(),
            TlsError::Key(SecretError::Unset { name: "KEY".to_owned() }).into(),
            TlsError::Mismatch { problem: problem() }.into(),
        ];
        let (one, other) = (Setting::UnixSocket, Setting::SourceAddresses);
        let plans = [PlanError::Version { got: 9 }, PlanError::Endless, PlanError::Conflict { one, other, why: "so" }];
        let descriptors = EngineError::Descriptors { connections: 200, needed: 268, limit: 100 };
        let routes = routes.into_iter().map(|error| EngineError::from(error).into());
        let plans = plans.into_iter().map(|error| EngineError::from(error).into());
        ranges.into_iter().chain(routes).chain(plans).chain([descriptors.into()]).collect()
    }

    /// An error of each kind whose way out is the same wherever the run's settings are written.
    fn errors_of_results() -> Vec<anyhow::Error> {
        let (path, which, problem) = (|| "runs.db".into(), || "7".to_owned(), || "broken".to_owned());
        let stores = [
            StoreError::Open { path: path(), problem: problem() },
            StoreError::Nothing { path: path() },
            StoreError::Foreign { path: path() },
            StoreError::Newer { path: path(), got: 9, known: 2 },
            StoreError::Full { path: path() },
            StoreError::ReadOnly { path: path() },
            StoreError::TooLarge { bytes: 1 },
            StoreError::NotARun { which: which(), path: path() },
        ];
        stores.into_iter().map(Into::into).chain([ReadError::Format.into()]).collect()
    }

    #[test]
    fn ways_out_name_flags_that_there_are() {
        let mut flags = BTreeSet::new();
        flags_of(&crate::parser::definitions(&crate::built_in()).unwrap(), &mut flags);
        for error in errors().into_iter().chain(errors_of_results()) {
            let (plain, text) = (error.to_string(), render_error(&error, Settings::Flags));
            assert!(named(&plain).is_empty(), "flags are named below the command line: {plain}");
            assert!(!named(&text).is_empty(), "no way out: {text}");
            for flag in named(&text) {
                assert!(flags.contains(flag), "{flag}: {text}");
            }
        }
    }

    #[test]
    fn a_plan_file_is_told_of_its_fields() {
        for error in errors() {
            let text = render_error(&error, Settings::PlanFile);
            assert!(named(&text).iter().all(|flag| *flag == "--write-plan"), "{text}");
            let names_a_field = Setting::ALL.iter().any(|setting| text.contains(setting.field()));
            assert!(names_a_field || text.contains("--write-plan"), "{text}");
        }
    }

    #[test]
    fn a_way_out_stands_behind_its_cause_in_any_context() {
        let name = || RouteError::from(TlsError::ServerName { name: "a..b".to_owned() });
        let error = anyhow::Error::new(EngineError::from(name())).context("--b '-t 1'");
        assert_eq!(
            render_error(&error, Settings::Flags),
            "--b '-t 1': 'a..b' cannot be a TLS server name: give one with --sni"
        );
        let error = EngineError::from(name()).into();
        let expected = "'a..b' cannot be a TLS server name: give one with transport.tls.server_name in the plan";
        assert_eq!(render_error(&error, Settings::PlanFile), expected);
    }

    #[test]
    fn a_cause_is_named_once() {
        let error = |inner: &str| {
            let error = anyhow!(inner.to_owned()).context("cannot listen: no such file; choose another");
            render_error(&error.context("cannot serve"), Settings::Flags)
        };
        assert_eq!(error("no such file"), "cannot serve: cannot listen: no such file; choose another");
        assert_eq!(error("refused"), "cannot serve: cannot listen: no such file; choose another: refused");
    }
}
