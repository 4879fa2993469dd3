//! The document's parts, and their values from a summary.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use brunt_judge::asked::Made;
use brunt_judge::breakdown::StatusCount;
use brunt_judge::summary::{Rates, Summary, Times};
use brunt_judge::thresholds::ThresholdResult;
use brunt_judge::verdict;
use brunt_judge::watched::WatchedSummary;
use brunt_plan::plan::Plan;
use brunt_record::catalogue::{Counter, JsonGroupNumbers, Numbers, places};
use brunt_record::change::Change;
use brunt_record::counts;
use brunt_record::delivery::Delivery;
use brunt_record::examples::Examples;
use brunt_record::figures::{OwnKind, OwnPoint};
use brunt_record::histogram::AtLeast;
use brunt_record::machine::Machine;
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;
use brunt_record::replayed::Replayed;
use brunt_record::samples::Sampled;
use brunt_record::series::Point;
use brunt_record::slowest::Slowest;
use brunt_record::snapshot::Snapshot;
use serde::Serialize;

use super::findings::{WrittenRemark, WrittenVerdict};
use super::{Agents, FORMAT, Histograms, Names, VERSION};
use crate::headline;

/// A run: its plan and its recording, from which it is read back, and all its figures, which never are.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// The kind of the document: `brunt-result`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = FORMAT)))]
    pub format: &'static str,
    /// The version of the format.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERSION)))]
    pub version: u32,
    /// The version of the brunt that made the run.
    pub brunt_version: &'a str,
    /// The machine of that brunt; with agents, of their controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<&'a Machine>,
    /// When the run began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How it ended.
    pub ending: &'a Ending,
    /// What is said of the run, the headline first; then as reports show it, and last what they leave out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<WrittenRemark>,
    /// Whether the figures can be believed.
    pub verdict: WrittenVerdict<'a>,
    /// Rates over the measured part.
    pub rates: Rates,
    /// Distributions of times, over all calls.
    pub times: &'a Times,
    /// How every call ended.
    pub outcomes: Outcomes<'a>,
    /// The numbers behind the rates.
    pub measured: Measured,
    /// Bytes over all connections.
    pub bytes: Bytes,
    /// Connections made and lost.
    pub connections: ConnectionFields,
    /// How the generator fared.
    pub health: Health,
    /// Calls and messages that ended within the measured time, whenever they were due: the counts behind the rates.
    pub throughput: JsonGroupNumbers<places::Throughput>,
    /// The number of calls whose arrival is known.
    pub arrivals: ArrivalFields,
    /// What the run was asked for, and what it made of it; missing where nothing but calls by a rate or by connections was.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub made: &'a [Made],
    /// Each threshold with its result.
    pub thresholds: &'a [ThresholdResult],
    /// Changes of the run while it went on, and named moments, in the order of their times.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub changes: &'a [Change],
    /// The plan, without secrets; the run is read back by it.
    pub plan: &'a Plan,
    /// The measured part over time, in order.
    pub series: Vec<SeriesPoint<'a>>,
    /// The distributions of `times` in full.
    pub histograms: Histograms,
    /// Figures by name, of a run with scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Names<'a>>,
    /// A replay's account of its log, and how the answers differ from it; missing in other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<&'a Replayed>,
    /// Each agent's part, if agents carried out the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Agents>,
    /// Figures watched beside the run, over the measured part; left out where there were none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub watched: &'a [WatchedSummary],
    /// Accounts of receivers that got the run's figures while it went on; missing without receivers.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub deliveries: &'a [Delivery],
    /// The account of the file with a row for each call; missing without such a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<&'a Sampled>,
    /// The record of the run, which alone is read back, with the plan: MessagePack, compressed (zlib, RFC 1950), in base64.
    pub recording: String,
}

/// For `skip_serializing_if`, which passes a reference.
fn is_nothing(numbers: &Numbers) -> bool {
    *numbers == Numbers::default()
}

/// The number of calls whose arrival is known. The others are represented by these.
pub type ArrivalFields = JsonGroupNumbers<places::Arrivals>;

/// How every call ended: `due = answered + failed + unfinished + unsent + unknown`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcomes<'a> {
    /// Counts of calls, by their names in the catalogue.
    #[serde(flatten)]
    pub numbers: JsonGroupNumbers<places::Outcomes>,
    /// Calls that were answered, with whatever status.
    pub answered: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that are not a success.
    pub not_ok: u64,
    /// `not_ok` over `due`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    #[serde(rename = "error_ratio")]
    pub error_rate: f64,
    /// Lower end of the 95% interval of `error_ratio`; missing where an episode or the end of the run made the share, or the run was too
    /// short to say.
    #[serde(rename = "error_low_ratio", skip_serializing_if = "Option::is_none")]
    pub error_rate_low: Option<f64>,
    /// Upper end of that interval.
    #[serde(rename = "error_high_ratio", skip_serializing_if = "Option::is_none")]
    pub error_rate_high: Option<f64>,
    /// Messages; missing where no answer came as messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageFields>,
    /// Events that protocols count, by name.
    #[serde(skip_serializing_if = "counts::Events::is_empty")]
    pub events: &'a counts::Events,
    /// Connections that each address of the targets took; missing where each target has one address.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, u64>"))]
    pub connections_by_address: BTreeMap<SocketAddr, u64>,
    /// How long the target's limits held connections back.
    #[serde(skip_serializing_if = "JsonGroupNumbers::is_nothing")]
    pub held_back: JsonGroupNumbers<places::HeldBack>,
    /// Answers by status.
    pub statuses: Vec<StatusCount>,
    /// Names of statuses, where the protocol has some.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub status_names: &'a BTreeMap<u16, String>,
    /// Failures by name.
    pub failures: Vec<FailureCount>,
    /// The first calls of the measured part that were not ok, by their status or failure; left out if there are none.
    #[serde(skip_serializing_if = "Examples::is_empty")]
    pub examples: &'a Examples,
    /// The slowest successful calls of the measured part that have a trace id; left out if there are none.
    #[serde(skip_serializing_if = "Slowest::is_empty")]
    pub slowest: &'a Slowest,
}

/// Calls whose answers come as messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageFields {
    /// Counts of messages.
    #[serde(flatten)]
    pub numbers: JsonGroupNumbers<places::Messages>,
    /// Messages that came in the measured part.
    pub measured: u64,
}

impl MessageFields {
    fn from_summary(summary: &Summary) -> Option<Self> {
        (!summary.total.messages().is_empty()).then(|| Self {
            numbers: JsonGroupNumbers::from_numbers(&summary.total.numbers),
            measured: summary.run.measured.messages().count(),
        })
    }
}

/// Failures of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailureCount {
    /// The failure.
    pub failure: Failure,
    /// How many.
    pub count: u64,
    /// The reasons, most frequent first; of very many only some are kept.
    pub reasons: Vec<FailureReason>,
}

/// Failures with one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailureReason {
    /// The reason, for people.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// Calls that ended in the measured part, without the drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// How long the measured part took.
    pub length_ns: u64,
    /// Calls that were due in it.
    pub due: u64,
    /// Calls that were answered in it.
    pub answered: u64,
    /// Bytes in it.
    pub bytes: Bytes,
}

/// Bytes over connections.
pub type Bytes = JsonGroupNumbers<places::Bytes>;

/// Connections made and lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionFields {
    /// Counts of connections.
    #[serde(flatten)]
    pub numbers: JsonGroupNumbers<places::Connections>,
    /// Troubles of connections that cost no call, by the names that they would have as failures.
    pub troubles: Vec<FailureCount>,
}

/// How the generator fared.
pub type Health = JsonGroupNumbers<places::Health>;

/// Figures of one stretch of the measured part, usually a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesPoint<'a> {
    /// When it begins, after the measured part's beginning.
    pub start_ns: u64,
    /// How long it is.
    pub length_ns: u64,
    /// Whether the generator spoiled its figures.
    pub spoiled: bool,
    /// Calls that became due.
    pub due: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls that ended without success.
    pub not_ok: u64,
    /// Messages that came, where answers come as messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Calls that were due while no connection was free.
    pub waited_for_connection: u64,
    /// Calls a second that were answered in it, whenever they were due.
    pub answered_per_s: f64,
    /// Calls a second that ended in it with success, whenever they were due.
    pub ok_per_s: f64,
    /// Calls and messages that ended in it, whenever they were due.
    pub throughput: JsonGroupNumbers<places::Throughput>,
    /// Bytes over all connections.
    pub bytes: Bytes,
    /// How the generator fared.
    pub health: Health,
    /// Numbers that are columns of CSV and have no other field in a point, by their keys.
    #[serde(skip_serializing_if = "is_nothing")]
    pub numbers: Numbers,
    /// Virtual users alive at its end, in a run with scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<u64>,
    /// Connections open at its end, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_connections: Option<u64>,
    /// Calls that ended here with a time of their own.
    pub ended: u64,
    /// Whether the generator's own delays are taken off the times.
    pub is_target_part: bool,
    /// The median of the response times of calls that ended here; missing where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<AtLeast<u64>>,
    /// Their 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<AtLeast<u64>>,
    /// Values of watched figures by name, means where the point is longer than a second; `null` without a value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub watched: BTreeMap<&'a str, Option<f64>>,
    /// Figures of the script's or the protocol's own by name; those that only the whole report shows are in `recording` alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<&'a str, OwnSecond>,
}

/// A figure of the script's or the protocol's own in one point. Its kind says which fields it has.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnSecond {
    /// Of a counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
    /// How often something was recorded for a rate or a trend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The share of times that a rate was true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Of a trend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// Of a trend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// Percentiles among these that may be larger; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<&'static str>,
    /// The last value of a gauge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
}

impl OwnSecond {
    fn new(point: &OwnPoint) -> Self {
        let quantiles = point.quantiles([0.5, 0.99]);
        let [p50, p99] = quantiles.map(|value| value.map(|value| value.value));
        let named = ["p50", "p99"].into_iter().zip(quantiles);
        let at_least = named.filter(|(_, value)| value.is_some_and(|value| value.at_least)).map(|(name, _)| name);
        Self {
            sum: point.sum(),
            count: matches!(point.kind, OwnKind::Rate | OwnKind::Trend).then_some(point.count),
            ratio: point.share(),
            p50,
            p99,
            at_least: at_least.collect(),
            last: point.last(),
        }
    }
}

impl<'a> Document<'a> {
    /// The document of a summary, with the written form of its recording.
    pub fn new(summary: &'a Summary, recording: String) -> Self {
        let (run, total) = (&summary.run, &summary.total);
        let has_users = !summary.breakdown.scenarios.is_empty();
        Self {
            format: FORMAT,
            version: VERSION,
            brunt_version: &run.brunt_version,
            machine: run.machine.as_ref(),
            started_unix_ms: run.started_unix_ms,
            ending: &run.ending,
            remarks: headline::all(summary).into_iter().map(WrittenRemark::from).collect(),
            verdict: WrittenVerdict::from(&summary.verdict),
            rates: summary.rates,
            times: &summary.times,
            outcomes: Outcomes::from_summary(summary),
            measured: Measured {
                length_ns: run.measured_ns,
                due: run.measured.due(),
                answered: run.measured.statuses.total(),
                bytes: JsonGroupNumbers::from_numbers(&run.measured.numbers),
            },
            throughput: throughput_of(&total.numbers),
            bytes: JsonGroupNumbers::from_numbers(&total.numbers),
            connections: ConnectionFields::from_snapshot(total),
            health: JsonGroupNumbers::from_numbers(&total.numbers),
            arrivals: JsonGroupNumbers::from_numbers(&total.numbers),
            made: &summary.made,
            thresholds: &summary.thresholds,
            changes: &run.changes,
            plan: &summary.plan,
            series: run.series.points().iter().map(|point| SeriesPoint::new(point, has_users, summary)).collect(),
            histograms: Histograms::from_snapshot(total),
            names: Names::from_summary(summary),
            replay: run.replayed.as_deref(),
            agents: Agents::from_summary(summary),
            watched: &summary.watched,
            deliveries: &run.deliveries,
            samples: run.sampled.as_deref(),
            recording,
        }
    }
}

impl<'a> Outcomes<'a> {
    fn from_summary(summary: &'a Summary) -> Self {
        let total = &summary.total;
        Self {
            numbers: JsonGroupNumbers::from_numbers(&total.numbers),
            answered: total.statuses.total(),
            failed: total.failures.total(),
            not_ok: summary.not_ok,
            error_rate: summary.error_rate,
            error_rate_low: summary.error_rate_within.map(|(low, _)| low),
            error_rate_high: summary.error_rate_within.map(|(_, high)| high),
            messages: MessageFields::from_summary(summary),
            events: &total.events,
            connections_by_address: total.addresses.taken().collect(),
            held_back: JsonGroupNumbers::from_numbers(&total.numbers),
            statuses: StatusCount::all(&total.statuses),
            status_names: &summary.run.status_names,
            failures: FailureCount::all(&total.failures),
            examples: &total.examples,
            slowest: &total.slowest,
        }
    }
}

impl FailureCount {
    fn all(failures: &counts::Failures) -> Vec<Self> {
        let reasons = |failure| {
            let reasons = failures.reasons(failure).into_iter();
            reasons.map(|(reason, count)| FailureReason { reason: reason.to_owned(), count }).collect()
        };
        failures.counted().map(|(failure, count)| Self { failure, count, reasons: reasons(failure) }).collect()
    }
}

impl ConnectionFields {
    fn from_snapshot(total: &Snapshot) -> Self {
        Self { numbers: JsonGroupNumbers::from_numbers(&total.numbers), troubles: FailureCount::all(&total.troubles) }
    }
}

/// Ends within the measured time, without those that a check failed afterwards.
fn throughput_of(numbers: &Numbers) -> JsonGroupNumbers<places::Throughput> {
    let mut settled = *numbers;
    settled.revoke_ended();
    JsonGroupNumbers::from_numbers(&settled)
}

/// Numbers that are columns of CSV and stand in no field of a point.
fn further_columns() -> impl Iterator<Item = Counter> {
    let is_placed = |counter: Counter| {
        Bytes::has(counter)
            || Health::has(counter)
            || matches!(counter, Counter::Due | Counter::Messages | Counter::WaitedForConnection)
    };
    Counter::ALL.into_iter().filter(move |counter| counter.has_column() && !is_placed(*counter))
}

impl<'a> SeriesPoint<'a> {
    fn new(point: &'a Point, has_users: bool, summary: &Summary) -> Self {
        let is_minor = |name: &str| summary.plan.own.iter().any(|figure| figure.minor && figure.is_called(name));
        let [p50_ns, p99_ns] = [0.5, 0.99].map(|q| point.response_quantile(q));
        Self {
            start_ns: point.start_ns,
            length_ns: point.length_ns,
            spoiled: verdict::is_spoiled(point),
            due: point.numbers.get(Counter::Due),
            answered: point.answered,
            not_ok: point.not_ok,
            messages: Some(point.numbers.get(Counter::Messages)).filter(|count| *count > 0),
            waited_for_connection: point.numbers.get(Counter::WaitedForConnection),
            answered_per_s: point.answered_per_s(),
            ok_per_s: point.ok_per_s(),
            throughput: throughput_of(&point.numbers),
            bytes: JsonGroupNumbers::from_numbers(&point.numbers),
            health: JsonGroupNumbers::from_numbers(&point.numbers),
            numbers: Numbers::from_values(further_columns().map(|counter| (counter, point.numbers.get(counter)))),
            users: has_users.then_some(point.users),
            open_connections: point.open_connections,
            ended: point.ended,
            is_target_part: point.is_target_part,
            p50_ns,
            p99_ns,
            watched: point.watched.iter().map(|(name, value)| (name.as_str(), value.mean())).collect(),
            own: point
                .own
                .iter()
                .filter(|(name, _)| !is_minor(name))
                .map(|(name, own)| (name.as_str(), OwnSecond::new(own)))
                .collect(),
        }
    }
}
