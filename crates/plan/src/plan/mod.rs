//! The plan: everything that a run needs, validated once. Code below the command line sees no flags.
//!
//! A plan is plain data: another machine can carry it out unchanged, and a file of it can be run again. Files travel
//! by content. The protocol is its scheme plus options that the registered protocol reads and validates. Its `Serialize`
//! is the shown form, without secrets; [`crate::wire`] is the whole one.
//!
//! On several machines every one is given the same plan, and a [`Share`] of the run. Connections,
//! rates, numbers of requests, users and iterations, and the seed are those of the whole run, and each worker has its
//! share; `workers` is each machine's, times and timeouts are everybody's.

mod options;
#[cfg(test)]
pub(crate) mod tests;
mod transport;
mod validation;

use std::collections::BTreeMap;

use brunt_record::SECOND_NS;
use brunt_record::outcome::OkStatus;
use brunt_record::snapshot::Phase;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::arrivals::{Arrivals, Spread};
use crate::connections::Connections;
use crate::content::Content;
use crate::environment::Environment;
use crate::profile::Profile;
use crate::replay::LogReplay;
use crate::scenario::{DeclaredFigure, Scenarios};
use crate::secret::{SecretError, Template, references, shown_argument, shown_url};
use crate::share::Share;
use crate::target::Target;
use crate::threshold::{Guard, GuardAction, Threshold};
use crate::watch::Watch;

pub use options::ProtocolOptions;
pub use transport::{ArrivalTimes, Family, Pace, Proxy, Tls, Transport};
pub use validation::{MOST_CONNECTIONS, MOST_PIPELINED, PlanError};

/// The version of the plan's format that this brunt reads and writes.
pub const PLAN_VERSION: u32 = 1;

/// The plan of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of the plan's format.
    pub version: u32,
    /// The target.
    pub target: Target,
    /// The source of the protocol's calls, which the protocol of the target's scheme reads and validates.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub protocol: ProtocolOptions,
    /// A script that makes the calls, in place of the protocol's options alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// Virtual users that ask for the calls, instead of connections that do; `load` and `stop` are then theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenarios: Option<Scenarios>,
    /// Connections kept open, over all workers of all machines.
    pub connections: Connections,
    /// Worker threads of one machine; at least one, never more than connections.
    pub workers: u32,
    /// The model of the load: when calls are due.
    pub load: Load,
    /// The end of the measured part.
    pub stop: StopRule,
    /// The length of the warm-up before the measured part, in nanoseconds.
    pub warmup_ns: u64,
    /// How long a call may take from when it was sent, in nanoseconds.
    pub timeout_ns: u64,
    /// How long connecting, with any TLS handshake, may take, in nanoseconds.
    pub connect_timeout_ns: u64,
    /// How long calls in flight at the end may still take, in nanoseconds.
    pub drain_ns: u64,
    /// The seed of all random choices.
    pub seed: u64,
    /// A fresh connection for each call.
    pub reconnect: bool,
    /// Calls in flight on one connection.
    pub pipeline: u32,
    /// How connections are made.
    pub transport: Transport,
    /// Which statuses are a success.
    pub ok_status: OkStatus,
    /// Whether the protocol says when calls are due: at the times of a trace, or as turns of conversations, which follow from answers. A
    /// rate is then one of conversations, and connections are conversations at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_times: bool,
    /// The figures that its protocol measures by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<DeclaredFigure>,
    /// Conditions that must hold at the end.
    pub thresholds: Vec<Threshold>,
    /// Conditions that end the run early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<Guard>,
    /// The action of a guard whose condition holds.
    #[serde(default, skip_serializing_if = "GuardAction::is_usual")]
    pub guard_action: GuardAction,
    /// Figures to watch beside the run, on the machine that carries it out or controls its agents: `pid:1234`,
    /// `NAME=URL#EXPRESSION` or `NAME=prometheus:URL#QUERY`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<Watch>,
    /// The largest share of calls, of a check's results and of a scenario's iterations that may fail, 0 to 1, where no
    /// threshold limits it; [`MAX_ERROR_RATE`] by default. 1 lets everything fail.
    #[serde(
        rename = "max_error_ratio",
        default = "max_error_rate",
        skip_serializing_if = "is_usual_error_rate",
        deserialize_with = "share"
    )]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub max_error_rate: f64,
    /// The largest share of the load asked for that may be missing, 0 to 1; [`MAX_LESS_RATIO`] by default.
    #[serde(default = "max_less_ratio", skip_serializing_if = "is_usual_less_ratio", deserialize_with = "share")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub max_less_ratio: f64,
    /// The plan's name, tags and command.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    /// The rights of its scripts. The machine that carries out the plan decides them; a file does not state them.
    #[serde(skip)]
    pub sandbox: Sandbox,
    /// Values for its references to the environment, which travel only in its wire form.
    #[serde(skip)]
    pub environment: Environment,
}

/// The default share that may fail, 0 to 1: more than that is an outage, not a load test.
pub const MAX_ERROR_RATE: f64 = 0.01;

/// The default share of the load that may be missing, 0 to 1.
pub const MAX_LESS_RATIO: f64 = 0.01;

const fn max_less_ratio() -> f64 {
    MAX_LESS_RATIO
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_usual_less_ratio(ratio: &f64) -> bool {
    ratio.total_cmp(&MAX_LESS_RATIO).is_eq()
}

const fn max_error_rate() -> f64 {
    MAX_ERROR_RATE
}

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let ratio = f64::deserialize(deserializer)?;
    let expected = || serde::de::Error::custom(format!("expected a share from 0 to 1, got {ratio}"));
    Some(ratio).filter(|ratio| (0.0..=1.0).contains(ratio)).ok_or_else(expected)
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_usual_error_rate(ratio: &f64) -> bool {
    ratio.total_cmp(&MAX_ERROR_RATE).is_eq()
}

/// The name, tags and command of a plan. None of it changes the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The run's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The run's tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The command that repeats the run, without secrets; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

impl Origin {
    /// Whether all of it is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Its tags as `key=value`, separated by spaces; empty without tags.
    pub fn tags_in_a_line(&self) -> String {
        self.tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }
}

/// A Lua script for wrk's interface. It travels whole. Its text is shown, its arguments are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The file's name, for errors.
    pub file: String,
    /// The script's text.
    pub content: Content,
    /// The parameters of `init(args)`: the URL as given, which has no references, then the arguments behind it.
    ///
    /// Shown are the URL as by [`shown_url`] and the arguments as by [`shown_argument`].
    #[serde(serialize_with = "shown_arguments")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub args: Vec<Template>,
}

fn shown_arguments<S: Serializer>(args: &[Template], serializer: S) -> Result<S::Ok, S::Error> {
    let url = args.first().map(|url| shown_url(url.as_written()));
    serializer.collect_seq(url.into_iter().chain(args.iter().skip(1).map(shown_argument)))
}

impl Script {
    /// The parameters of `init(args)`, with references resolved.
    ///
    /// # Errors
    /// When an argument names a variable that `env` does not have.
    pub fn reveal_args(&self, env: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, SecretError> {
        let url = self.args.first().map(|url| Ok(url.as_written().to_owned()));
        url.into_iter().chain(self.args.iter().skip(1).map(|argument| argument.reveal(&env))).collect()
    }
}

/// The rights of a plan's scripts, besides asking for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// Nothing: no files but the plan's, no programs, no environment, no machine code.
    #[default]
    Closed,
    /// As `Closed`, and loading Lua files of the script's directory.
    Directory,
    /// Everything that the user who runs it may do.
    Open,
}

/// The model of the load: when calls are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// Each connection calls again as soon as it is answered.
    Closed {},
    /// Calls are due at times that do not depend on the answers.
    Open {
        /// Calls a second over time, over all workers of all machines.
        profile: Profile,
        /// How due times are spread.
        arrivals: Spread,
    },
    /// Calls are due at the times of a log, in its sessions.
    Replay(Box<LogReplay>),
}

impl Load {
    /// Whether calls are due at times of their own.
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed {})
    }
}

/// The end of the measured part: whichever comes first. A profile with an end ends it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StopRule {
    /// This long after it began, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// After this many calls, over all workers of all machines.
    pub requests: Option<u64>,
}

impl Plan {
    /// The file name of the script, wrk's or with scenarios, if there is one.
    pub fn script_name(&self) -> Option<&str> {
        let of_wrk = self.script.as_ref().map(|script| script.file.as_str());
        of_wrk.or_else(|| self.scenarios.as_ref()?.files.first().map(|file| file.name.as_str()))
    }

    /// The conditions of thresholds and guards: the figures in them have to be recorded.
    pub fn conditions(&self) -> impl Iterator<Item = &Threshold> {
        self.thresholds.iter().chain(self.guards.iter().map(Guard::condition))
    }

    /// The figures that its protocol and its script declare for themselves.
    pub fn own_figures(&self) -> impl Iterator<Item = &DeclaredFigure> + Clone {
        self.own.iter().chain(self.scenarios.iter().flat_map(|scenarios| &scenarios.own))
    }

    /// The variables that it refers to, with their values in this process's environment.
    pub fn referenced_environment(&self) -> Environment {
        Environment::here(self.references())
    }

    /// The names of the variables that it refers to.
    fn references(&self) -> Vec<String> {
        let mut names = Vec::new();
        names.extend(self.transport.tls.key_pem.iter().flat_map(Template::references));
        names.extend(self.transport.proxy_credentials().into_iter().flat_map(Template::references));
        names.extend(self.scenarios.iter().flat_map(|scenarios| scenarios.env.values()).flat_map(Template::references));
        names.extend(self.script.iter().flat_map(|script| &script.args).flat_map(Template::references));
        collect_references(self.protocol.reveal(), &mut names);
        names
    }

    /// The plan for a check on a machine that lacks some of the values that it refers to: variables that are not set
    /// here are made up, and a private key among them is left out together with its certificate.
    #[must_use]
    pub fn with_made_up_environment(&self) -> Self {
        let names = self.references();
        let mut plan = Self { environment: Environment::made_up(names), ..self.clone() };
        let tls = &mut plan.transport.tls;
        let is_here = |name: &String| std::env::var(name).is_ok();
        if tls.key_pem.as_ref().is_some_and(|key| !key.references().iter().all(is_here)) {
            (tls.certificate_pem, tls.key_pem) = (None, None);
        }
        plan
    }

    /// A plan with calls only, for code that makes calls without a load.
    pub fn of_calls(target: Target, protocol: ProtocolOptions) -> Self {
        Self {
            version: PLAN_VERSION,
            target,
            protocol,
            script: None,
            scenarios: None,
            connections: Connections::Fixed(1),
            workers: 1,
            load: Load::Closed {},
            stop: StopRule::default(),
            warmup_ns: 0,
            timeout_ns: SECOND_NS,
            connect_timeout_ns: SECOND_NS,
            drain_ns: SECOND_NS,
            seed: 0,
            reconnect: false,
            pipeline: 1,
            transport: Transport::default(),
            ok_status: OkStatus::default(),
            own_times: false,
            own: Vec::new(),
            thresholds: Vec::new(),
            guards: Vec::new(),
            guard_action: GuardAction::Stop,
            watches: Vec::new(),
            max_error_rate: MAX_ERROR_RATE,
            max_less_ratio: MAX_LESS_RATIO,
            origin: Origin::default(),
            sandbox: Sandbox::default(),
            environment: Environment::default(),
        }
    }

    /// The number of workers that carry it out: as many as it asks for, or fewer where its scenarios have a lower
    /// limit.
    pub fn workers_within_limits(&self) -> u32 {
        let most = self.scenarios.as_ref().and_then(Scenarios::most_workers);
        most.map_or(self.workers, |(most, _)| self.workers.min(most))
    }

    /// Whether `failed` of `of` may fail where no threshold limits it.
    pub fn allows(&self, failed: u64, of: u64) -> bool {
        failed as f64 <= self.max_error_rate * of as f64
    }

    /// The unit of its rate: each arrival is a call, an iteration of a script, or the beginning of a conversation, whose later calls
    /// follow from answers.
    pub const fn rate_unit(&self) -> &'static str {
        match (self.own_times, self.scenarios.is_some()) {
            (true, _) => "conversations/s",
            (_, true) => "iterations/s",
            _ => "calls/s",
        }
    }

    /// The length of the load, in nanoseconds: the duration, or that of a script's users; `None` where neither is known.
    pub fn load_ns(&self) -> Option<u64> {
        let of_users = || self.scenarios.as_ref().map(Scenarios::seconds).filter(|seconds| *seconds > 0.0);
        self.duration_ns().or_else(|| of_users().map(|seconds| (seconds * 1e9).round() as u64))
    }

    /// The longest duration of the measured part, in nanoseconds; `None` if only the number of requests ends it.
    pub fn duration_ns(&self) -> Option<u64> {
        let profile = match &self.load {
            Load::Open { profile, .. } => profile.duration_ns(),
            Load::Closed {} | Load::Replay(_) => None,
        };
        match (self.stop.duration_ns, profile) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The rate in this phase, from the phase's beginning: that of a warm-up is the one at which the measured part
    /// begins. `None` where calls are not due at a rate, and in the drain, in which none is due.
    pub fn profile(&self, phase: Phase) -> Option<Profile> {
        let Load::Open { profile, .. } = &self.load else { return None };
        match phase {
            Phase::Warmup => Some(Profile::constant(profile.first_rate()).unwrap_or_else(|_| profile.clone())),
            Phase::Measured => Some(profile.clone()),
            Phase::Drain => None,
        }
    }

    /// When the calls of this share are due in this phase, from the phase's beginning. `None` as for
    /// [`Plan::profile`].
    pub fn arrivals(&self, phase: Phase, share: Share) -> Option<Arrivals> {
        let Load::Open { arrivals, .. } = &self.load else { return None };
        let (seed, requests) = match phase {
            Phase::Measured => (self.seed, self.stop.requests),
            // Time alone ends a warm-up, and its calls come at times of their own.
            Phase::Warmup | Phase::Drain => (self.seed ^ 1, None),
        };
        Some(Arrivals::new(self.profile(phase)?, *arrivals, share, seed, requests))
    }
}

/// Collects the references in all texts of a protocol's options: only the protocol knows which of them are templates.
fn collect_references(options: &serde_json::Value, names: &mut Vec<String>) {
    match options {
        serde_json::Value::String(text) => names.extend(references(text)),
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect_references(value, names)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| collect_references(value, names)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}
