//! The options that a script exports: who comes when, thresholds, and how calls are made.

use brunt_plan::arrivals::Spread;
use brunt_plan::hosts::Hosts;
use brunt_plan::scenario::{DeclaredFigure, Population, Step, Weighted};
use brunt_plan::secret::Template;
use brunt_plan::threshold::Threshold;
use brunt_record::figures::OwnKind;
use brunt_script::{Identity, KeepAlive};
use serde_json::{Value, json};

use crate::duration::nanoseconds;
use crate::thresholds::{Asked, asked};
use crate::wrong_option::WrongOption;

/// Options that say where or how k6 itself runs, or what it shows: brunt has flags of its own for that.
const ABOUT_K6: &[&str] = &[
    "summaryTrendStats",
    "summaryTimeUnit",
    "noUsageReport",
    "cloud",
    "ext",
    "linger",
    "paused",
    "console-output",
    "httpDebug",
    "noSummary",
    "minIterationDuration",
    "setupTimeout",
    "teardownTimeout",
    "thresholds",
    "scenarios",
    "stages",
    "vus",
    "vusMax",
    "duration",
    "iterations",
    "userAgent",
    "insecureSkipTLSVerify",
    "rps",
    "hosts",
    "blockHostnames",
    "blacklistIPs",
    "tlsAuth",
    "noConnectionReuse",
    "noVUConnectionReuse",
];
/// Options that stand for a scenario.
const SHORTCUTS: [&str; 3] = ["duration", "iterations", "stages"];
/// Options that k6's modules heed.
const HEEDED: &[&str] = &[
    "tags",
    "systemTags",
    "maxRedirects",
    "batch",
    "batchPerHost",
    "discardResponseBodies",
    "noCookiesReset",
    "throw",
    "noConnectionReuse",
];

/// Built-in metrics, with their kind and whether they are times.
pub(crate) const METRICS: &[(&str, OwnKind, bool)] = &[
    ("http_reqs", OwnKind::Counter, false),
    ("http_req_duration", OwnKind::Trend, true),
    ("http_req_blocked", OwnKind::Trend, true),
    ("http_req_connecting", OwnKind::Trend, true),
    ("http_req_tls_handshaking", OwnKind::Trend, true),
    ("http_req_sending", OwnKind::Trend, true),
    ("http_req_waiting", OwnKind::Trend, true),
    ("http_req_receiving", OwnKind::Trend, true),
    ("http_req_failed", OwnKind::Rate, false),
    ("checks", OwnKind::Rate, false),
    ("iterations", OwnKind::Counter, false),
    ("iteration_duration", OwnKind::Trend, true),
    ("group_duration", OwnKind::Trend, true),
    ("data_sent", OwnKind::Counter, false),
    ("data_received", OwnKind::Counter, false),
    ("ws_sessions", OwnKind::Counter, false),
    ("ws_connecting", OwnKind::Trend, true),
    ("ws_session_duration", OwnKind::Trend, true),
    ("ws_ping", OwnKind::Trend, true),
    ("ws_msgs_sent", OwnKind::Counter, false),
    ("ws_msgs_received", OwnKind::Counter, false),
    ("grpc_req_duration", OwnKind::Trend, true),
    ("grpc_streams", OwnKind::Counter, false),
    ("grpc_streams_msgs_sent", OwnKind::Counter, false),
    ("grpc_streams_msgs_received", OwnKind::Counter, false),
];

/// How the names of figures begin that count one check each for a summary; its path follows, as k6 writes it.
pub(crate) const CHECK: &str = "check ";

/// How long iterations may go on at their scenario's end, in seconds, where nothing else is said.
const GRACE: f64 = 30.0;
/// How long scenarios of iterations take at most, in seconds, where nothing else is said.
const LONGEST: f64 = 600.0;

/// A script's options.
pub(crate) struct Options {
    /// As JSON, with the scenarios that shortcuts stand for.
    pub(crate) json: String,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) thresholds: Vec<Asked>,
    pub(crate) user_agent: Option<String>,
    /// The least time of an iteration, in nanoseconds.
    pub(crate) pacing_ns: u64,
    pub(crate) setup_timeout_ns: Option<u64>,
    pub(crate) teardown_timeout_ns: Option<u64>,
    /// The most requests a second over all users.
    pub(crate) rps: Option<f64>,
    /// Whether certificates of servers are not checked.
    pub(crate) is_insecure: bool,
    /// Where hosts are, and which are not called.
    pub(crate) hosts: Hosts,
    /// Certificates that are shown.
    pub(crate) identities: Vec<Identity>,
    /// How long connections carry calls.
    pub(crate) keep_alive: KeepAlive,
    /// What is not carried out, in words.
    pub(crate) notes: Vec<String>,
}

/// A scenario.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// The exported function that its users run.
    pub(crate) function: String,
    pub(crate) executor: String,
    pub(crate) population: Population,
}

impl Options {
    /// Reads options, a JSON document; `executable` says whether the script exports a function of a name.
    ///
    /// # Errors
    /// Says which option is wrong.
    pub(crate) fn read(
        text: &str,
        env: &[(String, String)],
        executable: &dyn Fn(&str) -> bool,
    ) -> Result<Self, WrongOption> {
        let mut options: Value = serde_json::from_str(text).map_err(|e| format!("options: {e}"))?;
        if options.is_null() {
            options = json!({});
        }
        let Some(fields) = options.as_object_mut() else {
            return Err(WrongOption::new(&["options"], format!("options must be an object, not {options}")));
        };
        set_by_environment(fields, env)?;
        let has_scenarios =
            fields.get("scenarios").and_then(Value::as_object).is_some_and(|scenarios| !scenarios.is_empty());
        if !has_scenarios {
            let scenario = shortcut(fields);
            fields.insert("scenarios".to_owned(), json!({ "default": scenario }));
        }
        let mut scenarios = Vec::new();
        for (name, spec) in fields.get("scenarios").and_then(Value::as_object).into_iter().flatten() {
            let one = scenario(name, spec, executable);
            let placed = |wrong: WrongOption| {
                if has_scenarios { wrong.within(&format!("options.scenarios.{name}"), name) } else { wrong }
            };
            scenarios.push(one.map_err(placed)?);
        }
        let length = |name: &str| {
            let wrong = |e: String| WrongOption::new(&[name], format!("options.{name}: {e}"));
            fields.get(name).map(|value| nanoseconds(value).map_err(wrong)).transpose()
        };
        let is = |name: &str| fields.get(name) == Some(&Value::Bool(true));
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut notes: Vec<String> = Vec::new();
        if has_scenarios && let Some(name) = SHORTCUTS.iter().find(|name| fields.contains_key(**name)) {
            notes.push(format!("options.{name} is not carried out: options.scenarios say what runs"));
        }
        for name in fields.keys().map(String::as_str).filter(|name| !ABOUT_K6.contains(name) && !HEEDED.contains(name))
        {
            notes.push(match name {
                "localIPs" | "executionSegment" | "executionSegmentSequence" => {
                    return Err(WrongOption::new(
                        &[name],
                        format!(
                            "options.{name} is not carried out by brunt, and without it calls would go elsewhere than k6's: leave it out"
                        ),
                    ));
                }
                "dns" => dns(fields.get(name))?,
                "tlsVersion" => tls_version(fields.get(name))?,
                "tlsCipherSuites" => {
                    return Err(WrongOption::new(
                        &[name],
                        "options.tlsCipherSuites: brunt offers the suites of its TLS library alone: leave it out",
                    ));
                }
                name => format!("options.{name} is not known, and not carried out"),
            });
        }
        Ok(Self {
            thresholds: asked(fields.get("thresholds"))?,
            user_agent: text("userAgent"),
            pacing_ns: length("minIterationDuration")?.unwrap_or(0),
            setup_timeout_ns: length("setupTimeout")?,
            teardown_timeout_ns: length("teardownTimeout")?,
            rps: fields.get("rps").and_then(number).filter(|rps| *rps > 0.0),
            is_insecure: is("insecureSkipTLSVerify"),
            notes,
            hosts: hosts(fields)?,
            identities: identities(fields.get("tlsAuth"))?,
            keep_alive: match (is("noConnectionReuse"), is("noVUConnectionReuse")) {
                (true, _) => KeepAlive::Call,
                (_, true) => KeepAlive::Iteration,
                _ => KeepAlive::Kept,
            },
            scenarios,
            json: options.to_string(),
        })
    }

    /// The names of the scenarios, with their functions.
    pub(crate) fn functions(&self) -> Vec<(String, String)> {
        self.scenarios.iter().map(|one| (one.name.clone(), one.function.clone())).collect()
    }

    /// The executors of the scenarios.
    pub(crate) fn executors(&self) -> Vec<String> {
        self.scenarios.iter().map(|one| one.executor.clone()).collect()
    }

    /// How long each scenario takes, in seconds, and how many iterations its users make; 0 where that is not known.
    pub(crate) fn extents(&self) -> Vec<(f64, f64)> {
        let extent = |one: &Scenario| {
            let iterations = one.population.steps.iter().map(|step| match *step {
                Step::IterationsEach { users, iterations } => users * iterations,
                Step::IterationsShared { iterations, .. } => iterations,
                _ => 0.0,
            });
            (one.population.seconds(), iterations.sum())
        };
        self.scenarios.iter().map(extent).collect()
    }

    /// The kind of a metric of k6's or of the script's own, and whether it is a time.
    fn kind(metric: &str, own: &[(String, OwnKind)]) -> Option<(OwnKind, bool)> {
        let known = METRICS.iter().find(|(name, ..)| *name == metric).map(|(_, kind, is_time)| (*kind, *is_time));
        known.or_else(|| own.iter().find(|(name, _)| name == metric).map(|(_, kind)| (*kind, false)))
    }

    /// Whether a metric of k6's is a time.
    pub(crate) fn is_time(metric: &str) -> bool {
        METRICS.iter().any(|(name, _, is_time)| *name == metric && *is_time)
    }

    /// The figures that are recorded for thresholds, and for a summary that the script makes; those of the script's own metrics without tags
    /// are not among them.
    fn figures(&self, has_summary: bool, own: &[(String, OwnKind)]) -> Vec<Figure> {
        let mut all: Vec<Figure> = Vec::new();
        let mut add = |metric: &str, filter: &[(String, String)], name: String| {
            if all.iter().all(|known| known.name != name)
                && let Some((kind, is_time)) = Self::kind(metric, own)
            {
                all.push(Figure { metric: metric.to_owned(), filter: filter.to_vec(), name, kind, is_time });
            }
        };
        for asked in self.thresholds.iter().filter(|asked| !asked.is_engines()) {
            add(&asked.metric, &asked.filter, asked.name());
        }
        if has_summary {
            for (metric, ..) in METRICS {
                add(metric, &[], (*metric).to_owned());
            }
            // k6's summary has this one whether or not a threshold asks for it.
            let expected = [("expected_response".to_owned(), "true".to_owned())];
            add("http_req_duration", &expected, "http_req_duration{expected_response=true}".to_owned());
        }
        all
    }

    /// These figures, as the library takes them.
    pub(crate) fn wanted(&self, has_summary: bool, own: &[(String, OwnKind)]) -> String {
        let one = |figure: &Figure| {
            let filter: serde_json::Map<String, Value> =
                figure.filter.iter().map(|(tag, value)| (tag.clone(), Value::from(value.as_str()))).collect();
            json!({
                "metric": figure.metric, "kind": figure.kind.name(), "isTime": figure.is_time, "filter": filter, "name": figure.name,
            })
        };
        let mut wanted: Vec<Value> = self.figures(has_summary, own).iter().map(one).collect();
        if has_summary {
            wanted.push(json!({ "eachCheck": CHECK }));
        }
        Value::Array(wanted).to_string()
    }

    /// All figures that a run records for the script.
    pub(crate) fn declared(&self, has_summary: bool, own: &[(String, OwnKind)]) -> Vec<DeclaredFigure> {
        let mut all: Vec<_> = own.iter().map(|(name, kind)| declared(name, *kind)).collect();
        for figure in self.figures(has_summary, own) {
            if all.iter().all(|known: &DeclaredFigure| known.name != figure.name) {
                all.push(declared(&figure.name, figure.kind));
            }
        }
        all
    }

    /// The conditions of a run.
    ///
    /// # Errors
    /// Says which threshold cannot be judged.
    pub(crate) fn conditions(&self, own: &[(String, OwnKind)]) -> Result<Vec<Threshold>, String> {
        let one = |asked: &Asked| asked.condition(Self::kind(&asked.metric, own).map(|(kind, _)| kind));
        self.thresholds.iter().map(one).collect()
    }
}

/// A figure of k6's, whose thresholds hold where nothing was recorded.
pub(crate) fn declared(name: &str, kind: OwnKind) -> DeclaredFigure {
    DeclaredFigure { holds_unrecorded: true, ..DeclaredFigure::new(name, kind, "") }
}

/// A figure that is recorded for a metric.
struct Figure {
    metric: String,
    filter: Vec<(String, String)>,
    name: String,
    kind: OwnKind,
    is_time: bool,
}

/// A number, also one that is written as a text, as values of the environment are.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()))
}

/// A number of users or of iterations, which k6 has no parts of.
fn whole(value: &Value) -> Option<f64> {
    number(value).filter(|number| number.fract() == 0.0 && *number >= 0.0)
}

/// Variables of the environment that say who comes, as k6 has them, and the options that they set.
pub(crate) const VARIABLES: [(&str, &str); 4] =
    [("K6_VUS", "vus"), ("K6_DURATION", "duration"), ("K6_ITERATIONS", "iterations"), ("K6_STAGES", "stages")];

/// Sets what the environment says of users. A length, a number of iterations or stages replace what the script says of them, scenarios
/// included.
fn set_by_environment(fields: &mut serde_json::Map<String, Value>, env: &[(String, String)]) -> Result<(), String> {
    let of = |name: &str| {
        env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).filter(|text| !text.is_empty())
    };
    let given: Vec<_> = VARIABLES.iter().filter_map(|(name, option)| Some((*name, *option, of(name)?))).collect();
    if given.iter().any(|(_, option, _)| *option != "vus") {
        for option in ["scenarios", "duration", "iterations", "stages"] {
            fields.remove(option);
        }
    }
    for (name, option, text) in given {
        let value = if option == "stages" {
            let stage = |stage: &str| {
                let (duration, target) = stage.split_once(':')?;
                Some(json!({ "duration": duration.trim(), "target": target.trim().parse::<f64>().ok()? }))
            };
            let stages = text.split(',').map(stage).collect::<Option<Vec<_>>>();
            Value::Array(stages.ok_or_else(|| format!("{name}: expected stages such as 5s:10,5m:20, got {text}"))?)
        } else {
            Value::from(text)
        };
        fields.insert(option.to_owned(), value);
    }
    Ok(())
}

/// Where hosts are, and which are not called.
fn hosts(fields: &serde_json::Map<String, Value>) -> Result<Hosts, WrongOption> {
    let mut hosts = Hosts::default();
    for (host, place) in fields.get("hosts").and_then(Value::as_object).into_iter().flatten() {
        let wrong =
            || WrongOption::new(&[host, "hosts"], format!("options.hosts: {host}: expected an address, got {place}"));
        let place = place.as_str().ok_or_else(wrong)?;
        hosts.mapped.insert(host.clone(), place.to_owned());
    }
    for option in ["blockHostnames", "blacklistIPs"] {
        for blocked in fields.get(option).and_then(Value::as_array).into_iter().flatten() {
            let wrong = || WrongOption::new(&[option], format!("options.{option}: expected a text, got {blocked}"));
            let blocked = blocked.as_str().ok_or_else(wrong)?;
            hosts.blocked.push(blocked.to_owned());
        }
    }
    let written = ["hosts", "blockHostnames", "blacklistIPs"];
    hosts.validate().map_err(|problem| WrongOption::new(&written, format!("options: {problem}")))?;
    Ok(hosts)
}

/// What becomes of `dns`: brunt asks for names again each second, and takes the addresses that it finds in turn.
fn dns(given: Option<&Value>) -> Result<String, WrongOption> {
    let policy = given.and_then(|dns| dns.get("policy")).and_then(Value::as_str).unwrap_or("preferIPv4");
    if !matches!(policy, "preferIPv4" | "any") {
        return Err(WrongOption::new(
            &[policy, "dns"],
            format!(
                "options.dns.policy: brunt does not choose addresses by '{policy}': map the host to one by options.hosts"
            ),
        ));
    }
    Ok("options.dns: names are asked for again as --resolve-every says, and their addresses are taken in turn"
        .to_owned())
}

/// What becomes of `tlsVersion`: brunt offers TLS 1.2 and 1.3.
fn tls_version(given: Option<&Value>) -> Result<String, WrongOption> {
    let of = |name: &str| given.and_then(|range| range.get(name)).and_then(Value::as_str);
    let (least, most) = (of("min").unwrap_or("tls1.0"), of("max").unwrap_or("tls1.3"));
    if given.is_some_and(Value::is_object) && least <= "tls1.2" && most >= "tls1.3" {
        return Ok("options.tlsVersion: TLS 1.2 and 1.3 are offered".to_owned());
    }
    Err(WrongOption::new(
        &["tlsVersion"],
        "options.tlsVersion: brunt offers TLS 1.2 and 1.3, and neither alone: leave it out",
    ))
}

/// The certificates of `tlsAuth`.
fn identities(given: Option<&Value>) -> Result<Vec<Identity>, WrongOption> {
    let one = |(at, one): (usize, &Value)| {
        let text = |name: &str| one.get(name).and_then(Value::as_str);
        let wrong = |what: &str| WrongOption::new(&["tlsAuth"], format!("options.tlsAuth[{at}]: {what}"));
        if text("password").is_some_and(|password| !password.is_empty()) {
            return Err(wrong("brunt reads no keys with a password: take it off by openssl pkey -in KEY -out PLAIN"));
        }
        let hosts = one.get("domains").and_then(Value::as_array).into_iter().flatten();
        Ok(Identity {
            certificate_pem: text("cert").ok_or_else(|| wrong("it has no cert"))?.to_owned(),
            key_pem: Template::secret(text("key").ok_or_else(|| wrong("it has no key"))?),
            hosts: hosts.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    };
    given.and_then(Value::as_array).into_iter().flatten().enumerate().map(one).collect()
}

/// The scenario that `vus`, `duration`, `iterations` and `stages` stand for.
fn shortcut(fields: &serde_json::Map<String, Value>) -> Value {
    let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let vus = field("vus").and_then(number).unwrap_or(1.0);
    if let Some(stages) = field("stages").filter(|stages| stages.as_array().is_some_and(|stages| !stages.is_empty())) {
        return json!({ "executor": "ramping-vus", "startVUs": vus, "stages": stages });
    }
    if let Some(iterations) = field("iterations") {
        let mut scenario = json!({ "executor": "shared-iterations", "vus": vus, "iterations": iterations });
        if let (Some(duration), Some(scenario)) = (field("duration"), scenario.as_object_mut()) {
            scenario.insert("maxDuration".to_owned(), duration.clone());
        }
        return scenario;
    }
    match field("duration") {
        Some(duration) => json!({ "executor": "constant-vus", "vus": vus, "duration": duration }),
        None if field("vus").is_some() => json!({ "executor": "shared-iterations", "vus": vus, "iterations": vus }),
        None => json!({ "executor": "per-vu-iterations", "vus": 1, "iterations": 1 }),
    }
}

/// A scenario as it stands in options.
fn scenario(name: &str, spec: &Value, executable: &dyn Fn(&str) -> bool) -> Result<Scenario, WrongOption> {
    let executor = spec.get("executor").and_then(Value::as_str).ok_or("it has no executor")?;
    let exec = spec.get("exec").and_then(Value::as_str);
    let function = exec.unwrap_or("default");
    if exec.is_none() && !executable(function) {
        // It is missing where the script exports others, or anywhere.
        return Err(WrongOption::new(
            &["export function", "export async function", "export ", "exports", ""],
            "the script has no default function, which its users run: add export default function () { … }, or name another one by exec",
        ));
    }
    if !executable(function) {
        return Err(WrongOption::new(&[function], format!("the script exports no function '{function}' (exec)")));
    }
    let field = |name: &str| spec.get(name).filter(|value| !value.is_null());
    let count = |name: &str, default: f64| match field(name) {
        None => Ok(default),
        Some(value) => {
            let written = format!("{name}:");
            let wrong = || WrongOption::new(&[&written, name], format!("{name} must be a whole number, not {value}"));
            whole(value).ok_or_else(wrong)
        }
    };
    let seconds = |name: &str| match field(name) {
        None => Ok(None),
        Some(value) => nanoseconds(value)
            .map(|ns| Some(ns as f64 / 1e9))
            .map_err(|e| WrongOption::new(&[name], format!("{name}: {e}"))),
    };
    let length = |name: &str| seconds(name)?.ok_or_else(|| WrongOption::from(format!("it has no {name}")));
    let unit = seconds("timeUnit")?.unwrap_or(1.0);
    let mut steps = Vec::new();
    let mut most_alive = None;
    match executor {
        "constant-vus" => {
            let (vus, seconds) = (count("vus", 1.0)?, length("duration")?);
            steps.push(Step::Users { from: vus, to: vus, seconds });
        }
        "ramping-vus" => {
            let stages = stages(spec, count("startVUs", 1.0)?)?;
            steps.extend(stages.into_iter().map(|(from, to, seconds)| Step::Users { from, to, seconds }));
        }
        "per-vu-iterations" => {
            steps.push(Step::IterationsEach { users: count("vus", 1.0)?, iterations: count("iterations", 1.0)? });
        }
        "shared-iterations" => {
            let iterations = count("iterations", 1.0)?;
            let users = count("vus", 1.0)?.min(iterations);
            steps.push(Step::IterationsShared { users, iterations });
        }
        "constant-arrival-rate" => {
            let (rate, seconds) = (count("rate", 0.0)? / unit, length("duration")?);
            steps.push(Step::Rate { from: rate, to: rate, seconds });
            most_alive = Some(most_users(spec)?);
        }
        "ramping-arrival-rate" => {
            let stages = stages(spec, count("startRate", 0.0)?)?;
            let of = |(from, to, seconds): (f64, f64, f64)| Step::Rate { from: from / unit, to: to / unit, seconds };
            steps.extend(stages.into_iter().map(of));
            most_alive = Some(most_users(spec)?);
        }
        "externally-controlled" => {
            return Err(WrongOption::new(
                &[executor],
                "externally-controlled is changed from outside while it runs: give it another executor, and change the run by brunt ctl",
            ));
        }
        other => {
            let problem = format!(
                "there is no executor '{other}'; there are shared-iterations, per-vu-iterations, constant-vus, ramping-vus, constant-arrival-rate and \
                 ramping-arrival-rate"
            );
            return Err(WrongOption::new(&[other], problem));
        }
    }
    let population = Population {
        scenarios: vec![Weighted { scenario: name.to_owned(), weight: 1.0 }],
        steps,
        arrivals: Spread::Uniform,
        most_alive,
        reuse_users: most_alive.is_some(),
        start_seconds: seconds("startTime")?.unwrap_or(0.0),
        longest_seconds: if executor.ends_with("iterations") {
            Some(seconds("maxDuration")?.unwrap_or(LONGEST))
        } else {
            None
        },
        grace_seconds: Some(seconds("gracefulStop")?.unwrap_or(GRACE)),
        ramp_down_grace_seconds: if executor == "ramping-vus" {
            Some(seconds("gracefulRampDown")?.unwrap_or(GRACE))
        } else {
            None
        },
        ..Population::default()
    };
    Ok(Scenario { name: name.to_owned(), function: function.to_owned(), executor: executor.to_owned(), population })
}

/// The most users of an arrival rate.
fn most_users(spec: &Value) -> Result<u64, WrongOption> {
    let at_first = spec.get("preAllocatedVUs").and_then(number).ok_or("it has no preAllocatedVUs")?;
    let most = spec.get("maxVUs").and_then(number).unwrap_or(at_first).max(at_first).max(1.0);
    Ok(most as u64)
}

/// Stages, as where each begins, where it ends, and how many seconds it takes. One without a length jumps.
fn stages(spec: &Value, start: f64) -> Result<Vec<(f64, f64, f64)>, WrongOption> {
    let wrong = |problem: String| WrongOption::new(&["stages"], problem);
    let given = spec.get("stages").and_then(Value::as_array).ok_or("it has no stages")?;
    let mut all = Vec::new();
    let mut from = start;
    for (at, stage) in given.iter().enumerate() {
        let target = stage.get("target").ok_or_else(|| wrong(format!("stages[{at}] has no target")))?;
        let target =
            whole(target).ok_or_else(|| wrong(format!("stages[{at}].target must be a whole number, not {target}")))?;
        let length = stage.get("duration").ok_or_else(|| wrong(format!("stages[{at}] has no duration")))?;
        let seconds = nanoseconds(length).map_err(|e| wrong(format!("stages[{at}].duration: {e}")))? as f64 / 1e9;
        if seconds > 0.0 {
            all.push((from, target, seconds));
        }
        from = target;
    }
    if all.is_empty() { Err(wrong("its stages take no time".to_owned())) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Options {
        Options::read(text, &[], &|_| true).unwrap()
    }

    fn steps(text: &str) -> Vec<Step> {
        read(text).scenarios.iter().flat_map(|one| one.population.steps.clone()).collect()
    }

    #[test]
    fn shortcuts_stand_for_executors() {
        let users = |from, to, seconds| Step::Users { from, to, seconds };
        assert_eq!(steps(r#"{"vus":3,"duration":"1m30s"}"#), [users(3.0, 3.0, 90.0)]);
        assert_eq!(steps("{}"), [Step::IterationsEach { users: 1.0, iterations: 1.0 }]);
        assert_eq!(steps(r#"{"vus":"3","iterations":9}"#), [Step::IterationsShared { users: 3.0, iterations: 9.0 }]);
        assert_eq!(
            steps(
                r#"{"stages":[{"duration":"10s","target":5},{"duration":0,"target":2},{"duration":"5s","target":0}]}"#
            ),
            [users(1.0, 5.0, 10.0), users(2.0, 0.0, 5.0)]
        );
    }

    #[test]
    fn the_environment_says_who_comes() {
        let steps = |env: &[(&str, &str)]| {
            let env: Vec<_> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let text = r#"{"vus":3,"scenarios":{"a":{"executor":"constant-vus","duration":"1s"}}}"#;
            let read = Options::read(text, &env, &|_| true).unwrap();
            read.scenarios.iter().map(|one| (one.name.clone(), one.population.steps.clone())).collect::<Vec<_>>()
        };
        let users = |from, to, seconds| Step::Users { from, to, seconds };
        assert_eq!(steps(&[("K6_DURATION", "5s")]), [("default".to_owned(), vec![users(3.0, 3.0, 5.0)])]);
        assert_eq!(
            steps(&[("K6_STAGES", "1s:4,2s:0"), ("K6_VUS", "2")]),
            [("default".to_owned(), vec![users(2.0, 4.0, 1.0), users(4.0, 0.0, 2.0)])]
        );
        assert_eq!(steps(&[]).len(), 1);
    }

    #[test]
    fn rates_are_by_their_unit() {
        let options = read(
            r#"{"scenarios":{"a":{"executor":"constant-arrival-rate","rate":30,"timeUnit":"1m","duration":"10s","preAllocatedVUs":2,"maxVUs":7,"startTime":"5s","exec":"buy"}}}"#,
        );
        let [one] = options.scenarios.as_slice() else { panic!("one scenario") };
        assert_eq!(one.population.steps, [Step::Rate { from: 0.5, to: 0.5, seconds: 10.0 }]);
        assert_eq!((one.population.most_alive, one.function.as_str()), (Some(7), "buy"));
        assert!(one.population.reuse_users && one.population.start_seconds == 5.0);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let problem = |text: &str| Options::read(text, &[], &|name| name == "default").err().unwrap().problem;
        assert!(problem(r#"{"scenarios":{"a":{"executor":"x"}}}"#).contains("no executor 'x'"));
        assert!(problem(r#"{"scenarios":{"a":{"executor":"constant-vus","exec":"buy"}}}"#).contains("'buy'"));
        assert!(problem(r#"{"stages":[{"target":2}]}"#).contains("stages[0] has no duration"));
        let lacking = Options::read("{}", &[], &|_| false).err().unwrap();
        assert!(lacking.problem.starts_with("the script has no default function"), "{}", lacking.problem);
        assert!(problem(r#"{"localIPs":"1.2.3.4"}"#).contains("options.localIPs"));
    }
}
