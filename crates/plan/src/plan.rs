//! Everything a run needs, validated once. Below the command line nothing sees a flag.
//!
//! A plan is plain data: another machine can carry it out unchanged, and a file of it can be run again. Files travel
//! by content. The protocol is its scheme plus options that the registered protocol reads and validates. Its `Serialize`
//! is the shown form, without secrets; [`crate::wire`] is the whole one.
//!
//! On several machines every one is given the same plan, and a [`Share`](crate::share::Share) of the run. Connections,
//! rates, numbers of requests, users and iterations, and the seed are those of the whole run, and each worker has its
//! share; `workers` is each machine's, times and timeouts are everybody's.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use brunt_record::SECOND_NS;
use brunt_record::outcome::OkStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::arrivals::Spread;
use crate::connections::Connections;
use crate::content::Content;
use crate::environment::Environment;
use crate::profile::Profile;
use crate::scenario::{InjectionError, Scenarios};
use crate::secret::{REDACTED, SecretError, Template, references, shown_argument, shown_url};
use crate::setting::Setting;
use crate::target::{Target, Url, UrlError};
use crate::threshold::{Threshold, ThresholdError};
use crate::units::{ExactDuration, LONGEST_NS};

/// The version of the plan's format that this brunt reads and writes.
pub const PLAN_VERSION: u32 = 1;

/// What to do in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of the plan's format.
    pub version: u32,
    /// What is aimed at.
    pub target: Target,
    /// What the protocol of the target's scheme makes its calls from; that protocol reads and validates it.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub protocol: ProtocolOptions,
    /// What asks for the calls, if not the protocol's options alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// Virtual users that ask for the calls, instead of connections that do; `load` and `stop` are then theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenarios: Option<Scenarios>,
    /// Connections kept open, over all workers of all machines.
    pub connections: Connections,
    /// Worker threads of one machine; at least one, never more than connections.
    pub workers: u32,
    /// What decides when a call is due.
    pub load: Load,
    /// What ends the measured part.
    pub stop: Stop,
    /// How long calls are made before the measured part, in nanoseconds.
    pub warmup_ns: u64,
    /// How long a call may take from when it was sent, in nanoseconds.
    pub timeout_ns: u64,
    /// How long connecting, with any TLS handshake, may take, in nanoseconds.
    pub connect_timeout_ns: u64,
    /// How long calls in flight at the end may still take, in nanoseconds.
    pub drain_ns: u64,
    /// What every random choice starts from.
    pub seed: u64,
    /// A fresh connection for each call.
    pub reconnect: bool,
    /// Calls in flight on one connection.
    pub pipeline: u32,
    /// How connections are made.
    pub transport: Transport,
    /// Which statuses are a success.
    pub ok_status: OkStatus,
    /// What must hold at the end.
    pub thresholds: Vec<Threshold>,
    /// The largest share of calls, of a check's results and of a scenario's iterations that may fail, 0 to 1, where no threshold
    /// says so: [`MAX_ERROR_RATIO`] if nothing else is asked for; 1 lets everything fail.
    #[serde(default = "max_error_ratio", skip_serializing_if = "is_usual_error_ratio", deserialize_with = "share")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_error_ratio: f64,
    /// How the plan came about.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    /// What its scripts may do. Whoever carries the plan out decides; a file does not say it.
    #[serde(skip)]
    pub sandbox: Sandbox,
    /// Values for its references to the environment, which travel in its wire form alone.
    #[serde(skip)]
    pub environment: Environment,
}

/// The largest share that may fail, 0 to 1, where nobody says otherwise: more is no load test but an outage.
pub const MAX_ERROR_RATIO: f64 = 0.01;

const fn max_error_ratio() -> f64 {
    MAX_ERROR_RATIO
}

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let ratio = f64::deserialize(deserializer)?;
    let expected = || serde::de::Error::custom(format!("expected a share from 0 to 1, got {ratio}"));
    Some(ratio).filter(|ratio| (0.0..=1.0).contains(ratio)).ok_or_else(expected)
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_usual_error_ratio(ratio: &f64) -> bool {
    ratio.total_cmp(&MAX_ERROR_RATIO).is_eq()
}

/// How a plan came about. None of it changes what is done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// What its user calls the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Keys and values that its user gave it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The command that repeats the run, without secrets; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

impl Origin {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Its tags as `key=value`, with spaces between them; empty where there are none.
    pub fn tags_in_a_line(&self) -> String {
        self.tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }
}

/// What a protocol makes its calls from, in that protocol's own form.
///
/// Shown and stored is a form without secrets; the whole one goes to what carries the plan out. Clones share both forms, and options
/// without secrets are kept once: a body may be large.
#[derive(Clone, PartialEq, Eq)]
pub struct ProtocolOptions {
    whole: Arc<serde_json::Value>,
    shown: Arc<serde_json::Value>,
}

impl ProtocolOptions {
    /// Options, whole and as they may be shown.
    pub fn new(whole: serde_json::Value, shown: serde_json::Value) -> Self {
        Self::without_secrets(whole).with_shown(shown)
    }

    /// Options that may be shown as they are.
    pub fn without_secrets(options: serde_json::Value) -> Self {
        let whole = Arc::new(options);
        Self { shown: Arc::clone(&whole), whole }
    }

    /// The same options with another form that may be shown.
    #[must_use]
    pub fn with_shown(self, shown: serde_json::Value) -> Self {
        let shown = if *self.whole == shown { Arc::clone(&self.whole) } else { Arc::new(shown) };
        Self { shown, ..self }
    }

    /// The options with their secrets.
    pub fn reveal(&self) -> &serde_json::Value {
        &self.whole
    }

    /// The options with their secrets, if they have any.
    pub(crate) fn hidden(&self) -> Option<&serde_json::Value> {
        (!Arc::ptr_eq(&self.whole, &self.shown)).then_some(&*self.whole)
    }

    /// The options without secrets.
    pub fn shown(&self) -> &serde_json::Value {
        &self.shown
    }
}

impl Default for ProtocolOptions {
    fn default() -> Self {
        Self::without_secrets(serde_json::Value::Object(serde_json::Map::new()))
    }
}

impl fmt::Debug for ProtocolOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown, f)
    }
}

impl Serialize for ProtocolOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ProtocolOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(Self::without_secrets)
    }
}

/// A Lua script as wrk runs them. It travels whole; its text is shown as it is, its arguments are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The file's name, for errors.
    pub file: String,
    /// What is in it.
    pub content: Content,
    /// What `init(args)` gets: the URL as it was given, which has no references, then what stood behind it.
    ///
    /// Shown are of the URL what [`shown_url`] leaves, and of the others what [`shown_argument`] does.
    #[serde(serialize_with = "shown_arguments")]
    #[schemars(with = "Vec<String>")]
    pub args: Vec<Template>,
}

fn shown_arguments<S: Serializer>(args: &[Template], serializer: S) -> Result<S::Ok, S::Error> {
    let url = args.first().map(|url| shown_url(url.as_written()));
    serializer.collect_seq(url.into_iter().chain(args.iter().skip(1).map(shown_argument)))
}

impl Script {
    /// What `init(args)` gets, whole.
    ///
    /// # Errors
    /// When an argument names a variable that `env` does not have.
    pub fn reveal_args(&self, env: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, SecretError> {
        let url = self.args.first().map(|url| Ok(url.as_written().to_owned()));
        url.into_iter().chain(self.args.iter().skip(1).map(|argument| argument.reveal(&env))).collect()
    }
}

/// What the scripts of a plan may do besides asking for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// Nothing: no files but the plan's, no programs, no environment, no machine code.
    #[default]
    Closed,
    /// The same, and load Lua files of the script's directory.
    Directory,
    /// Whatever the user may do who runs it.
    Open,
}

/// What decides when a call is due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
}

/// What ends the measured part: whichever comes first. A profile with an end is an end as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// This long after it began, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// After this many calls, over all workers of all machines.
    pub requests: Option<u64>,
}

/// How connections are made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// Host (or address) and port to connect to instead of the target's.
    pub connect_to: Option<(String, u16)>,
    /// A Unix socket to connect to instead of the target.
    pub unix_socket: Option<PathBuf>,
    /// Local addresses that connections take in turn.
    pub source_ips: Vec<IpAddr>,
    /// Which resolved addresses are used.
    pub family: Family,
    /// How TLS is done where the scheme wants it.
    pub tls: Tls,
    /// Addresses that stand for the target's host, resolved already; empty: the host is looked up.
    pub addresses: Vec<SocketAddr>,
    /// Who tells when an answer arrived.
    #[serde(default)]
    pub arrival_times: ArrivalTimes,
}

/// Who tells when an answer arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalTimes {
    /// The kernel, by receive timestamps, where it keeps them (TCP on Linux).
    #[default]
    Kernel,
    /// The generator, when it has read the answer. Its own delays are then part of every time shown.
    Read,
}

/// Which of a host's addresses are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// All of them.
    #[default]
    Any,
    /// IPv4 ones.
    V4,
    /// IPv6 ones.
    V6,
}

/// How TLS is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Take any certificate.
    pub insecure: bool,
    /// Trusted certificates in PEM, instead of the system's.
    pub trusted_pem: Option<String>,
    /// Our own certificate chain in PEM.
    pub certificate_pem: Option<String>,
    /// Our own private key in PEM; `@NAME` takes it from the environment.
    #[schemars(with = "Option<String>")]
    pub key_pem: Option<Template>,
    /// The server name asked for and verified, instead of the target's host.
    pub server_name: Option<String>,
}

/// A plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Written by another version.
    #[error("the plan has format version {got}, this brunt reads version {PLAN_VERSION}")]
    Version {
        /// The version found.
        got: u32,
    },
    /// A number is out of range.
    #[error("{setting} must be {expected}, not {got}")]
    Range {
        /// Which number.
        setting: Setting,
        /// What it may be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// No URL could name this target.
    #[error("the plan's target: {0}")]
    Target(UrlError),
    /// The plan was stored, and secrets are not stored.
    #[error("the plan's URL: a secret was left out of it when the plan was written; put it back")]
    Secrets,
    /// The plan was stored, and secrets are not stored.
    #[error(
        "the plan's script.args[{place}]: it was left out when the plan was written; put it back, or edit it to @NAME and \
         set NAME in the environment"
    )]
    Argument {
        /// Which of them, from 0.
        place: usize,
    },
    /// Two settings contradict each other.
    #[error("{one} and {other} cannot go together: {why}")]
    Conflict {
        /// One setting.
        one: Setting,
        /// The other.
        other: Setting,
        /// Why not.
        why: &'static str,
    },
    /// The users of its scenarios cannot come as they should.
    #[error(transparent)]
    Injection(#[from] InjectionError),
    /// A threshold is about a figure that its script does not declare.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// Nothing would end the run.
    #[error("nothing ends this run: it has no duration, no number of requests and no profile with lengths")]
    Endless,
}

/// The most connections a plan may ask for.
pub const MOST_CONNECTIONS: u32 = 1_000_000;
/// The most calls in flight on one connection.
pub const MOST_PIPELINED: u32 = 1024;

impl Plan {
    /// The name of the script's file, of wrk's kind or with scenarios, if there is one.
    pub fn script_name(&self) -> Option<&str> {
        let of_wrk = self.script.as_ref().map(|script| script.file.as_str());
        of_wrk.or_else(|| self.scenarios.as_ref()?.files.first().map(|file| file.name.as_str()))
    }

    /// The variables that it refers to, with their values in this process's environment.
    pub fn referenced_environment(&self) -> Environment {
        Environment::here(self.references())
    }

    /// The names of the variables that it refers to.
    fn references(&self) -> Vec<String> {
        let mut names = Vec::new();
        names.extend(self.transport.tls.key_pem.iter().flat_map(Template::references));
        names.extend(self.scenarios.iter().flat_map(|scenarios| scenarios.env.values()).flat_map(Template::references));
        names.extend(self.script.iter().flat_map(|script| &script.args).flat_map(Template::references));
        collect_references(self.protocol.reveal(), &mut names);
        names
    }

    /// The same for a check on a machine that has not all the values that it refers to: those that are not set here are made up, and a
    /// private key among them is left out with its certificate.
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

    /// A plan of calls alone, for what is made from calls without any load.
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
            stop: Stop::default(),
            warmup_ns: 0,
            timeout_ns: SECOND_NS,
            connect_timeout_ns: SECOND_NS,
            drain_ns: SECOND_NS,
            seed: 0,
            reconnect: false,
            pipeline: 1,
            transport: Transport::default(),
            ok_status: OkStatus::default(),
            thresholds: Vec::new(),
            max_error_ratio: MAX_ERROR_RATIO,
            origin: Origin::default(),
            sandbox: Sandbox::default(),
            environment: Environment::default(),
        }
    }

    /// Checks what can be checked without the protocol.
    ///
    /// # Errors
    /// Says which setting is wrong and what it may be.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.version != PLAN_VERSION {
            return Err(PlanError::Version { got: self.version });
        }
        range(Setting::Connections, 1, MOST_CONNECTIONS, self.connections.most())?;
        range(Setting::Workers, 1, self.connections.most().min(1024), self.workers)?;
        range(Setting::Pipeline, 1, MOST_PIPELINED, self.pipeline)?;
        self.validate_target()?;
        self.validate_times()?;
        if self.stop.requests == Some(0) {
            return Err(zero(Setting::Requests));
        }
        if self.connections.is_growing() && self.load == (Load::Closed {}) {
            return Err(PlanError::Conflict {
                one: Setting::Connections,
                other: Setting::Load,
                why: "connections grow with a rate; without one, give their number",
            });
        }
        if self.reconnect && self.pipeline > 1 {
            return Err(PlanError::Conflict {
                one: Setting::Reconnect,
                other: Setting::Pipeline,
                why: "a connection that carries one call cannot have several in flight",
            });
        }
        if self.transport.unix_socket.is_some() && !self.transport.source_ips.is_empty() {
            return Err(PlanError::Conflict {
                one: Setting::UnixSocket,
                other: Setting::SourceAddresses,
                why: "a Unix socket has no addresses",
            });
        }
        let own = self.scenarios.as_ref().map_or(&[][..], |scenarios| &scenarios.own);
        self.thresholds.iter().try_for_each(|threshold| threshold.check_own(own))?;
        if let Some(scenarios) = &self.scenarios {
            scenarios.validate()?;
        } else if self.duration_ns().is_none() && self.stop.requests.is_none() {
            return Err(PlanError::Endless);
        }
        Ok(())
    }

    fn validate_times(&self) -> Result<(), PlanError> {
        for (setting, ns, may_be_zero) in [
            (Setting::Duration, self.stop.duration_ns, false),
            (Setting::Warmup, Some(self.warmup_ns), true),
            (Setting::Timeout, Some(self.timeout_ns), false),
            (Setting::ConnectTimeout, Some(self.connect_timeout_ns), false),
            (Setting::Drain, Some(self.drain_ns), true),
        ] {
            match ns {
                Some(0) if !may_be_zero => return Err(zero(setting)),
                Some(ns) if ns > LONGEST_NS => {
                    let (expected, got) = ("at most 720h".into(), ExactDuration(ns).to_string());
                    return Err(PlanError::Range { setting, expected, got });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whatever wrote the plan, its target reads like one from a URL.
    fn validate_target(&self) -> Result<(), PlanError> {
        let base_url = self.scenarios.as_ref().and_then(|scenarios| scenarios.base_url.as_deref());
        if self.target.lacks_secrets() || base_url.is_some_and(|url| url.contains(REDACTED)) {
            return Err(PlanError::Secrets);
        }
        let args = self.script.iter().flat_map(|script| &script.args);
        if let Some(place) = args.into_iter().position(|argument| argument.as_written().contains(REDACTED)) {
            return Err(PlanError::Argument { place });
        }
        let url = self.target.whole_url();
        let read = Url::parse(&url).map_err(PlanError::Target)?.target;
        if read == self.target {
            return Ok(());
        }
        let problem = format!("expected it in the parts of '{}'", read.url());
        Err(PlanError::Target(UrlError { url, column: 1, problem }))
    }

    /// The workers that carry it out: as many as it asks for, and fewer where its scenarios have a limit below that.
    pub fn workers_within_limits(&self) -> u32 {
        let most = self.scenarios.as_ref().and_then(Scenarios::most_workers);
        most.map_or(self.workers, |(most, _)| self.workers.min(most))
    }

    /// Whether so many of so many may fail where no threshold says how many may.
    pub fn allows(&self, failed: u64, of: u64) -> bool {
        failed as f64 <= self.max_error_ratio * of as f64
    }

    /// How long the measured part lasts at most, in nanoseconds; none if only the number of requests ends it.
    pub fn duration_ns(&self) -> Option<u64> {
        let profile = match &self.load {
            Load::Open { profile, .. } => profile.duration_ns(),
            Load::Closed {} => None,
        };
        match (self.stop.duration_ns, profile) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

fn range(setting: Setting, least: u32, most: u32, got: u32) -> Result<(), PlanError> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    Err(PlanError::Range { setting, expected: format!("between {least} and {most}"), got: got.to_string() })
}

fn zero(setting: Setting) -> PlanError {
    PlanError::Range { setting, expected: "above 0".into(), got: "0".into() }
}

/// The references in any text of a protocol's options: which of them are templates is the protocol's to say.
fn collect_references(options: &serde_json::Value, names: &mut Vec<String>) {
    match options {
        serde_json::Value::String(text) => names.extend(references(text)),
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect_references(value, names)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| collect_references(value, names)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A plan that is right.
    pub(crate) fn plan() -> Plan {
        Plan {
            version: PLAN_VERSION,
            target: Target { scheme: "http".into(), host: "127.0.0.1".into(), port: Some(8080), path: "/".into() },
            protocol: ProtocolOptions::default(),
            script: None,
            scenarios: None,
            connections: Connections::Fixed(64),
            workers: 2,
            load: Load::Closed {},
            stop: Stop { duration_ns: Some(10 * SECOND_NS), requests: None },
            warmup_ns: 0,
            timeout_ns: 10 * SECOND_NS,
            connect_timeout_ns: 10 * SECOND_NS,
            drain_ns: 10 * SECOND_NS,
            seed: 1,
            reconnect: false,
            pipeline: 1,
            transport: Transport::default(),
            ok_status: OkStatus::default(),
            thresholds: vec!["p99<50ms".parse().unwrap()],
            max_error_ratio: MAX_ERROR_RATIO,
            origin: Origin::default(),
            sandbox: Sandbox::default(),
            environment: Environment::default(),
        }
    }

    #[test]
    fn a_plan_is_read_back_as_it_was_written() {
        let mut plan = plan();
        plan.load = Load::Open { profile: "1000..2000/60s".parse().unwrap(), arrivals: Spread::Poisson };
        let json = serde_json::to_string_pretty(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }

    #[test]
    fn a_private_key_is_not_stored() {
        let mut plan = plan();
        plan.transport.tls.key_pem = Some(Template::secret("-----BEGIN PRIVATE KEY-----"));
        assert!(!serde_json::to_string(&plan).unwrap().contains("BEGIN"));
        assert!(!format!("{plan:?}").contains("BEGIN"));
    }

    #[test]
    fn protocol_options_are_stored_without_their_secrets() {
        let mut plan = plan();
        let (whole, shown) = (serde_json::json!({"token": "t0p"}), serde_json::json!({"token": "[redacted]"}));
        plan.protocol = ProtocolOptions::new(whole.clone(), shown);
        assert!(!serde_json::to_string(&plan).unwrap().contains("t0p"));
        assert!(!format!("{plan:?}").contains("t0p"));
        assert_eq!(plan.protocol.reveal(), &whole);
    }

    #[test]
    fn arguments_of_scripts_are_stored_without_secrets() {
        let mut plan = plan();
        let args = ["http://me:hunter2@a/?token=hunter2&b=c", "100", "hunter2", "@TOKEN"].map(Template::secret);
        plan.script = Some(Script { file: "a.lua".into(), content: Content(Vec::new()), args: args.to_vec() });
        let json = serde_json::to_string(&plan).unwrap();
        assert!(!json.contains("hunter2") && !format!("{plan:?}").contains("hunter2"), "{json}");
        let expected = r#"["http://[redacted]@a/?token=[redacted]&b=c","100","[redacted]","@TOKEN"]"#;
        assert!(json.contains(expected), "{json}");
        let stored: Plan = serde_json::from_str(&json).unwrap();
        assert_eq!(stored.validate(), Err(PlanError::Argument { place: 0 }));
        let revealed = plan.script.map(|script| script.reveal_args(|_| Some("t0p".into())));
        let expected = ["http://me:hunter2@a/?token=hunter2&b=c", "100", "hunter2", "t0p"].map(str::to_owned);
        assert_eq!(revealed, Some(Ok(expected.to_vec())));
    }

    #[test]
    fn a_file_cannot_open_the_sandbox() {
        let mut plan = plan();
        plan.sandbox = Sandbox::Open;
        let json = serde_json::to_value(&plan).unwrap();
        assert_eq!(serde_json::from_value::<Plan>(json.clone()).unwrap().sandbox, Sandbox::Closed);
        let mut claims = json;
        claims["sandbox"] = "open".into();
        assert!(serde_json::from_value::<Plan>(claims).is_err());
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let broken = |change: fn(&mut Plan)| {
            let mut plan = plan();
            change(&mut plan);
            plan.validate().unwrap_err().to_string()
        };
        assert_eq!(
            broken(|p| p.connections = Connections::Fixed(0)),
            "connections must be between 1 and 1000000, not 0"
        );
        assert_eq!(broken(|p| p.workers = 65), "workers must be between 1 and 64, not 65");
        assert!(broken(|p| p.version = 9).starts_with("the plan has format version 9"));
        assert!(broken(|p| p.stop = Stop::default()).starts_with("nothing ends this run"));
        let both = broken(|p| {
            p.reconnect = true;
            p.pipeline = 2;
        });
        assert!(both.starts_with("a new connection for each call and pipelining cannot go together"), "{both}");
        assert_eq!(broken(|p| p.connect_timeout_ns = 0), "the connect timeout must be above 0, not 0");
        assert_eq!(broken(|p| p.stop.requests = Some(0)), "the number of requests must be above 0, not 0");
        assert_eq!(broken(|p| p.drain_ns = u64::MAX), "the drain must be at most 720h, not 18446744073709551615ns");
        assert_eq!(
            broken(|p| p.warmup_ns = LONGEST_NS + 1),
            "the warm-up must be at most 720h, not 2592000000000001ns"
        );
        assert_eq!(plan().validate(), Ok(()));
    }

    #[test]
    fn a_target_that_no_url_could_name_is_refused() {
        for change in [
            (|t| t.host.clear()) as fn(&mut Target),
            |t| t.host = "a b".to_owned(),
            |t| t.host = "a\r\nX-Evil: 1".to_owned(),
            |t| t.host = "Example.org".to_owned(),
            |t| t.host = "a/b".to_owned(),
            |t| t.host = "me@a".to_owned(),
            |t| t.port = Some(0),
            |t| t.path.clear(),
            |t| t.path = "a".to_owned(),
            |t| t.path = "/a b".to_owned(),
            |t| t.path = "/a#b".to_owned(),
            |t| t.scheme = "HTTP".to_owned(),
        ] {
            let mut plan = plan();
            change(&mut plan.target);
            let error = plan.validate().unwrap_err().to_string();
            assert!(error.starts_with("the plan's target: '"), "{:?}: {error}", plan.target);
        }
    }

    #[test]
    fn the_shortest_end_wins() {
        let mut plan = plan();
        plan.load = Load::Open { profile: "10/4s".parse().unwrap(), arrivals: Spread::Uniform };
        assert_eq!(plan.duration_ns(), Some(4 * SECOND_NS));
        plan.stop.duration_ns = Some(SECOND_NS);
        assert_eq!(plan.duration_ns(), Some(SECOND_NS));
    }
}
