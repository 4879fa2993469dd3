//! The document's parts, and how they come from a summary.

use std::collections::BTreeMap;

use brunt_model::evidence;
use brunt_model::histogram::{AtLeast, Histogram};
use brunt_model::instrument::Parts;
use brunt_model::plan::Plan;
use brunt_model::remarks::Remark;
use brunt_model::series::{Packed, Point};
use brunt_model::snapshot;
use brunt_model::summary::{self, Ending, QUANTILES, Summary};
use brunt_model::trend::Settled;
use brunt_model::uncertainty::Interval;
use brunt_model::verdict::{self, Cause, FigureVerdict, Judgement, Spoils};
use serde::{Deserialize, Serialize};

use super::{Agents, Drilldown, FORMAT, Names, VERSION};

/// A run and all its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The version of the brunt that wrote it.
    pub brunt_version: String,
    /// When the run began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How it ended.
    pub ending: Ending,
    /// Whether the figures can be believed.
    pub verdict: Verdict,
    /// What stands out about the target or the plan, with what to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// Rates over the measured part.
    pub rates: Rates,
    /// Distributions of times, over all calls.
    pub times: Times,
    /// How every call ended.
    pub outcomes: Outcomes,
    /// What the rates are made of.
    pub measured: Measured,
    /// Bytes over all connections.
    pub bytes: Bytes,
    /// Connections made and lost.
    pub connections: Connections,
    /// How the generator fared.
    pub health: Health,
    /// Of how many calls it is known when their answers arrived.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Each threshold and whether it held.
    pub thresholds: Vec<Threshold>,
    /// What was to be done, without secrets.
    pub plan: Plan,
    /// The measured part over time, in order.
    pub series: Vec<SeriesPoint>,
    /// Whether every histogram was left out to save room: figures stay, and nothing can be computed anew from them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub histograms_left_out: bool,
    /// The same calls by name, status and reason of failure; missing where the series tells it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drilldown: Option<Drilldown>,
    /// The distributions of `times` in full.
    #[serde(default)]
    pub histograms: Histograms,
    /// Figures by name, of a run with scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Names>,
    /// What each agent did, of a run that agents carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Agents>,
}

/// Whether the figures can be believed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The answer.
    pub judgement: Judgement,
    /// The answer and what it rests on, for people.
    pub sentence: String,
    /// The percentiles that were asked for, one by one.
    #[serde(default)]
    pub figures: Vec<FigureVerdict>,
    /// Whether the target saw the load asked for.
    #[serde(default = "known")]
    pub is_load_as_asked: bool,
    /// Whether the calls answered a second are the target's doing and not a lower bound of it.
    #[serde(default = "known")]
    pub is_rate_believed: bool,
    /// What was found wrong with the generator.
    pub findings: Vec<Finding>,
    /// Whether the run had settled.
    #[serde(default = "unknown")]
    pub settled: Settled,
}

/// Results of before something was looked into say nothing against themselves.
const fn known() -> bool {
    true
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(rate: &f64) -> bool {
    *rate == 0.0
}

/// And nothing of how they went.
const fn unknown() -> Settled {
    Settled::Unknown
}

/// Something that was found wrong with the generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub cause: Cause,
    /// Which figures it spoils; missing in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoils: Option<Spoils>,
    /// What was seen, for people.
    pub message: String,
    /// What to change, for people.
    pub advice: String,
    /// Whether it spoils the run as a whole.
    pub decisive: bool,
    /// The seconds that it spoils.
    pub seconds: Vec<Seconds>,
}

/// A range of seconds of the measured part, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seconds {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// Rates over the measured part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Calls answered a second.
    pub answered_per_s: f64,
    /// The lower end of its 95 % sampling interval; missing where the run was too short to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_low_per_s: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_high_per_s: Option<f64>,
    /// Calls due a second.
    pub due_per_s: f64,
    /// Messages a second, where answers come as messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages_per_s: f64,
    /// Bytes received a second, at the socket.
    pub wire_in_bytes_per_s: f64,
    /// Bytes sent a second, at the socket.
    pub wire_out_bytes_per_s: f64,
    /// Bytes received a second, after decryption.
    pub clear_in_bytes_per_s: f64,
    /// Bytes sent a second, before encryption.
    pub clear_out_bytes_per_s: f64,
}

/// Distributions of times; `null` where nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// From due to end.
    pub response: Option<Distribution>,
    /// From sent to end.
    pub service: Option<Distribution>,
    /// Response times of failed calls alone; they are in `response` as well.
    pub failed: Option<Distribution>,
    /// From sent to the answer's first byte.
    pub first_byte: Option<Distribution>,
    /// Making a connection, without TLS.
    pub connect: Option<Distribution>,
    /// TLS handshakes.
    pub tls: Option<Distribution>,
    /// The protocol's own opening exchanges.
    pub handshake: Option<Distribution>,
    /// From sent to the first message of the answer; this and the next three are missing where no answer came as messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_message: Option<Distribution>,
    /// From one message of a call to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_gap: Option<Distribution>,
    /// From sent to the last message, of calls that were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_message: Option<Distribution>,
    /// The mean time for a message after the first, a value for each such call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each_message: Option<Distribution>,
    /// Generator lag: its own delay in sending.
    pub lag: Option<Distribution>,
    /// The generator's own delay in receiving.
    #[serde(default)]
    pub receiving: Option<Distribution>,
}

/// Figures of a distribution of times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Times and lower bounds of times.
    pub count: u64,
    /// The arithmetic mean.
    pub mean_ns: AtLeast<f64>,
    /// How far the mean may be from the truth; missing where that is not looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<Uncertainty>,
    /// The standard deviation.
    pub stdev_ns: AtLeast<f64>,
    /// The smallest.
    pub min_ns: u64,
    /// The largest.
    pub max_ns: AtLeast<u64>,
    /// In growing order.
    pub quantiles: Vec<Quantile>,
}

/// The time that a share of all calls did not exceed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// Such as `p99`.
    pub name: String,
    /// The share, 0 to 1.
    pub share_ratio: f64,
    /// The time.
    pub value_ns: u64,
    /// Whether the true time may be larger.
    pub at_least: bool,
    /// How far it may be from the truth; missing where that is not looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Uncertainty>,
}

/// How far a time may be from the truth. An upper end is `null` where nothing is known from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// The least that it can be with regard to the generator's own delays.
    pub instrument_low_ns: u64,
    /// The most.
    pub instrument_high_ns: Option<u64>,
    /// The 95 % sampling interval: its lower end. Missing where the run was too short to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_low_ns: Option<u64>,
    /// Its upper end.
    #[serde(default)]
    pub sampling_high_ns: Option<u64>,
    /// Both together: the lower end.
    pub low_ns: u64,
    /// The upper end.
    pub high_ns: Option<u64>,
    /// Whether own delays spoil it: they leave more than a tenth of it and more than 50 µs open.
    pub spoiled: bool,
}

impl Uncertainty {
    pub(super) fn of(interval: &Interval) -> Self {
        Self {
            instrument_low_ns: interval.instrument.low_ns,
            instrument_high_ns: interval.instrument.high_ns,
            sampling_low_ns: interval.sampling.map(|ends| ends.low_ns),
            sampling_high_ns: interval.sampling.and_then(|ends| ends.high_ns),
            low_ns: interval.combined.low_ns,
            high_ns: interval.combined.high_ns,
            spoiled: interval.is_spoiled,
        }
    }
}

/// Of how many calls it is known when their answers arrived. The others stand for calls that were asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// The kernel told.
    pub timed: u64,
    /// Only bounds are known.
    pub bounded: u64,
}

/// How every call ended: `due = answered + failed + unfinished + unsent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Calls that were due.
    pub due: u64,
    /// Calls that were answered, with whatever status.
    pub answered: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls in flight when the drain ended.
    pub unfinished: u64,
    /// Calls that were due and never sent.
    pub unsent: u64,
    /// Calls that are not a success.
    pub not_ok: u64,
    /// `not_ok` over `due`.
    pub error_ratio: f64,
    /// Calls that were due while no connection was free, however they ended.
    pub waited_for_connection: u64,
    /// Messages that came without a call that asked for them.
    pub unasked: u64,
    /// What came as messages; missing where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Messages>,
    /// What protocols count besides, by its name.
    #[serde(default, skip_serializing_if = "snapshot::Events::is_empty")]
    pub events: snapshot::Events,
    /// How long connections were held back by what the target allows.
    #[serde(default, skip_serializing_if = "snapshot::HeldBack::is_nothing")]
    pub held_back: snapshot::HeldBack,
    /// Answers by status.
    pub statuses: Vec<Status>,
    /// What statuses are called, where the protocol has names for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_names: BTreeMap<u16, String>,
    /// Failures by name.
    pub failures: Vec<FailureCount>,
}

/// Calls whose answers come as messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// Messages that came.
    pub count: u64,
    /// Those in the measured part.
    pub measured: u64,
    /// Those read together with the one before, whose gap counts as 0.
    pub together: u64,
    /// Calls with at least one message.
    pub streams: u64,
    /// Streams that their user left before their end.
    pub left: u64,
}

impl Messages {
    fn of(summary: &Summary) -> Option<Self> {
        let all = &summary.total.messages;
        (!all.is_empty()).then_some(Self {
            count: all.count,
            measured: summary.run.measured.messages.count,
            together: all.together,
            streams: all.streams,
            left: all.left,
        })
    }
}

/// Answers with one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The status.
    pub status: u16,
    /// How many.
    pub count: u64,
}

/// Failures of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// The failure.
    pub failure: String,
    /// How many.
    pub count: u64,
    /// The reasons given, most frequent first; of very many only some are kept.
    pub reasons: Vec<Reason>,
}

/// Failures with one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The reason, for people.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// What ended in the measured part, without the drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Received, at the socket.
    pub wire_in_bytes: u64,
    /// Sent, at the socket.
    pub wire_out_bytes: u64,
    /// Received, after decryption.
    pub clear_in_bytes: u64,
    /// Sent, before encryption.
    pub clear_out_bytes: u64,
}

/// Connections made and lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Made.
    pub made: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Calls sent again on a fresh connection.
    pub reconnects: u64,
    /// Connections that resumed a TLS session.
    pub tls_resumed: u64,
    /// What went wrong with them and cost no call, by the name that it would have as a failure.
    #[serde(default)]
    pub troubles: Vec<FailureCount>,
}

/// How the generator fared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Time the workers lived, summed.
    pub wall_ns: u64,
    /// CPU time they used.
    pub cpu_ns: u64,
    /// Time they were ready to run and had no CPU.
    pub starved_ns: u64,
    /// CPU over wall time of the busiest worker in any interval.
    pub busiest_worker_cpu_ratio: f64,
    /// The largest share of an interval that a worker had no CPU.
    pub most_starved_worker_ratio: f64,
    /// Time, summed over the workers, in intervals in which a worker had next to none left.
    #[serde(default)]
    pub saturated_ns: u64,
}

/// A threshold and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threshold {
    /// As written.
    pub threshold: String,
    /// The figure as it came out, for people.
    pub got: String,
    /// Whether it held.
    pub held: bool,
    /// Whether the generator's own delays cannot have decided it.
    #[serde(default = "known")]
    pub sure: bool,
}

/// What happened in one stretch of the measured part, usually a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Calls that were due while no connection was free.
    pub waited_for_connection: u64,
    /// Calls answered a second.
    pub answered_per_s: f64,
    /// Bytes over all connections.
    pub bytes: Bytes,
    /// How the generator fared.
    pub health: Health,
    /// Virtual users alive at its end, in a run with scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u64>,
    /// Connections open at its end, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_connections: Option<u64>,
    /// Calls that ended here with a time of their own.
    #[serde(default)]
    pub ended: u64,
    /// Whether the generator's own delays are taken off the times.
    #[serde(default)]
    pub is_target_part: bool,
    /// Response times of calls that ended here.
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    pub response: Packed,
    /// The least that these can be, where that is not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_low: Option<Packed>,
    /// The most that these can be, where that is not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_high: Option<Packed>,
    /// Lower bounds of response times of calls that never ended.
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    pub response_bounds: Packed,
    /// Service times of calls that ended here.
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    pub service: Packed,
    /// Generator lag of calls sent here.
    #[serde(default, skip_serializing_if = "Packed::is_empty")]
    pub lag: Packed,
}

/// Distributions in full. A histogram is `[[value_ns, count], …]` with its exact extremes and sum; empty ones are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// From due to end.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub response: Histogram,
    /// Lower bounds of it, of calls that never ended.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub response_bounds: Histogram,
    /// From sent to end.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub service: Histogram,
    /// Lower bounds of it.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub service_bounds: Histogram,
    /// Response times of failed calls alone.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub failed: Histogram,
    /// Response times of answers whose status is not ok.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub refused: Histogram,
    /// From sent to the answer's first byte.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub first_byte: Histogram,
    /// Making a connection, without TLS.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub connect: Histogram,
    /// TLS handshakes.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub tls: Histogram,
    /// The protocol's own opening exchanges.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub handshake: Histogram,
    /// From sent to the first message.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub first_message: Histogram,
    /// Lower bounds of it, of calls to which none came in time.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub first_message_bounds: Histogram,
    /// From one message to the next.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub message_gap: Histogram,
    /// Lower bounds of it.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub message_gap_bounds: Histogram,
    /// From sent to the last message.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub last_message: Histogram,
    /// The mean time for a message after the first, by call.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub each_message: Histogram,
    /// Generator lag.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub lag: Histogram,
    /// The generator's own delay in receiving.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub receiving: Histogram,
    /// The times before own delays were taken off, and their bounds; missing where
    /// nothing was taken off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrument: Option<Bounds>,
}

/// Distributions that bound those shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// From due to when the answer was read.
    pub response_as_read: Histogram,
    /// The least that response times can be.
    pub response_low: Histogram,
    /// The most that response times can be.
    pub response_high: Histogram,
    /// From sent to when the answer was read.
    pub service_as_read: Histogram,
    /// The least that service times can be.
    pub service_low: Histogram,
    /// The most that they can be, where that is not the same as shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_high: Option<Histogram>,
}

impl Document {
    /// The document of a summary.
    pub fn of(summary: &Summary) -> Self {
        Self { agents: Agents::of(summary, true), ..Self::but_for_agents(summary) }
    }

    fn but_for_agents(summary: &Summary) -> Self {
        let (run, total) = (&summary.run, &summary.total);
        let has_users = !summary.breakdown.scenarios.is_empty();
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: run.started_unix_ms,
            ending: run.ending.clone(),
            verdict: Verdict::of(summary),
            remarks: summary.remarks.clone(),
            rates: Rates::of(&summary.rates),
            times: Times::of(&summary.times),
            outcomes: Outcomes::of(summary),
            measured: Measured {
                length_ns: run.measured_ns,
                due: run.measured.due,
                answered: run.measured.statuses.total(),
                bytes: Bytes::of(run.measured.bytes),
            },
            bytes: Bytes::of(total.bytes),
            connections: Connections::of(total),
            health: Health::of(total.health),
            arrivals: Arrivals { timed: total.instrument.timed, bounded: total.instrument.bounded },
            thresholds: summary
                .thresholds
                .iter()
                .map(|t| Threshold { threshold: t.threshold.clone(), got: t.got.clone(), held: t.held, sure: t.sure })
                .collect(),
            plan: run.plan.clone(),
            series: run.series.points().iter().map(|point| SeriesPoint::of(point, has_users)).collect(),
            histograms_left_out: false,
            drilldown: Drilldown::of(run.series.drilldown()),
            histograms: Histograms::of(total),
            names: Names::of(summary),
            agents: None,
        }
    }

    /// The document of a summary without histograms: some kilobytes, and a line for each second.
    pub fn without_histograms(summary: &Summary) -> Self {
        let mut document = Self {
            histograms_left_out: true,
            histograms: Histograms::default(),
            agents: Agents::of(summary, false),
            ..Self::but_for_agents(summary)
        };
        document.series.iter_mut().for_each(SeriesPoint::leave_histograms_out);
        document.names.iter_mut().for_each(Names::leave_histograms_out);
        document
    }
}

impl Verdict {
    fn of(summary: &Summary) -> Self {
        let verdict = &summary.verdict;
        let findings = verdict.findings.iter().map(|finding| Finding {
            cause: finding.cause,
            spoils: Some(finding.spoils),
            message: finding.message.clone(),
            advice: finding.advice.clone(),
            decisive: finding.decisive,
            seconds: finding.seconds.iter().map(|&(first, last)| Seconds { first, last }).collect(),
        });
        Self {
            judgement: verdict.judgement,
            sentence: verdict.sentence(),
            figures: verdict.figures.clone(),
            is_load_as_asked: verdict.is_load_as_asked(),
            is_rate_believed: evidence::is_rate_believed(summary),
            findings: findings.collect(),
            settled: verdict.settled,
        }
    }
}

impl Rates {
    fn of(rates: &summary::Rates) -> Self {
        Self {
            answered_per_s: rates.answered_per_s,
            answered_low_per_s: rates.answered_interval_per_s.map(|(low, _)| low),
            answered_high_per_s: rates.answered_interval_per_s.map(|(_, high)| high),
            due_per_s: rates.due_per_s,
            messages_per_s: rates.messages_per_s,
            wire_in_bytes_per_s: rates.wire_in_per_s,
            wire_out_bytes_per_s: rates.wire_out_per_s,
            clear_in_bytes_per_s: rates.clear_in_per_s,
            clear_out_bytes_per_s: rates.clear_out_per_s,
        }
    }
}

impl Times {
    fn of(times: &summary::Times) -> Self {
        let of = |times: &Option<summary::Distribution>| times.as_ref().map(Distribution::of);
        Self {
            response: of(&times.response),
            service: of(&times.service),
            failed: of(&times.failed),
            first_byte: of(&times.first_byte),
            connect: of(&times.connect),
            tls: of(&times.tls),
            handshake: of(&times.handshake),
            first_message: of(&times.first_message),
            message_gap: of(&times.message_gap),
            last_message: of(&times.last_message),
            each_message: of(&times.each_message),
            lag: of(&times.lag),
            receiving: of(&times.receiving),
        }
    }
}

impl Status {
    pub(super) fn all(statuses: &snapshot::Statuses) -> Vec<Self> {
        statuses.sorted().into_iter().map(|(status, count)| Self { status, count }).collect()
    }
}

impl Distribution {
    pub(super) fn of(times: &summary::Distribution) -> Self {
        let intervals = times.intervals.as_ref();
        let quantiles =
            QUANTILES.iter().zip(&times.quantiles).enumerate().map(|(at, (&(name, share_ratio), value))| Quantile {
                name: name.to_owned(),
                share_ratio,
                value_ns: value.value,
                at_least: value.at_least,
                interval: intervals.and_then(|all| all.quantiles.get(at)).map(Uncertainty::of),
            });
        Self {
            count: times.count,
            mean_ns: times.mean,
            mean_interval: intervals.map(|all| Uncertainty::of(&all.mean)),
            stdev_ns: times.stdev,
            min_ns: times.min,
            max_ns: times.max,
            quantiles: quantiles.collect(),
        }
    }
}

impl Outcomes {
    fn of(summary: &Summary) -> Self {
        let total = &summary.total;
        Self {
            due: total.due,
            answered: total.statuses.total(),
            failed: total.failures.total(),
            unfinished: total.unfinished,
            unsent: total.unsent,
            not_ok: summary.not_ok,
            error_ratio: summary.error_rate,
            waited_for_connection: total.waited_for_connection,
            unasked: total.unasked,
            messages: Messages::of(summary),
            events: total.events.clone(),
            held_back: total.held_back,
            statuses: Status::all(&total.statuses),
            status_names: summary.run.status_names.clone(),
            failures: FailureCount::all(&total.failures),
        }
    }
}

impl FailureCount {
    fn all(failures: &snapshot::Failures) -> Vec<Self> {
        let reasons = |failure| {
            let reasons = failures.reasons(failure).into_iter();
            reasons.map(|(reason, count)| Reason { reason: reason.to_owned(), count }).collect()
        };
        let counted = failures.counted();
        counted
            .map(|(failure, count)| Self { failure: failure.name().to_owned(), count, reasons: reasons(failure) })
            .collect()
    }
}

impl Bytes {
    fn of(bytes: snapshot::Bytes) -> Self {
        Self {
            wire_in_bytes: bytes.wire_in,
            wire_out_bytes: bytes.wire_out,
            clear_in_bytes: bytes.clear_in,
            clear_out_bytes: bytes.clear_out,
        }
    }
}

impl Connections {
    fn of(total: &snapshot::Snapshot) -> Self {
        let snapshot::Connections { made, failed, reconnects, tls_resumed } = total.connections;
        Self { made, failed, reconnects, tls_resumed, troubles: FailureCount::all(&total.troubles) }
    }
}

impl Health {
    fn of(health: snapshot::Health) -> Self {
        Self {
            wall_ns: health.wall_ns,
            cpu_ns: health.cpu_ns,
            starved_ns: health.starved_ns,
            busiest_worker_cpu_ratio: health.busiest_worker,
            most_starved_worker_ratio: health.most_starved_worker,
            saturated_ns: health.saturated_ns,
        }
    }
}

impl SeriesPoint {
    fn leave_histograms_out(&mut self) {
        for times in [&mut self.response, &mut self.response_bounds, &mut self.service, &mut self.lag] {
            *times = Packed::default();
        }
        (self.response_low, self.response_high) = (None, None);
    }

    fn of(point: &Point, has_users: bool) -> Self {
        Self {
            start_ns: point.start_ns,
            length_ns: point.length_ns,
            spoiled: verdict::is_spoiled(point),
            due: point.due,
            answered: point.answered,
            not_ok: point.not_ok,
            messages: (point.messages > 0).then_some(point.messages),
            waited_for_connection: point.waited_for_connection,
            answered_per_s: point.rate(),
            bytes: Bytes::of(point.bytes),
            health: Health::of(point.health),
            users: has_users.then_some(point.users),
            open_connections: point.open_connections,
            ended: point.ended,
            is_target_part: point.is_target_part,
            response: point.response.clone(),
            response_low: point.response_low.clone(),
            response_high: point.response_high.clone(),
            response_bounds: point.response_bounds.clone(),
            service: point.service.clone(),
            lag: point.lag.clone(),
        }
    }
}

impl Histograms {
    fn of(total: &snapshot::Snapshot) -> Self {
        let (response, service) = (total.response_times(), total.service_times());
        Self {
            response: response.known.clone(),
            response_bounds: response.bounds.clone(),
            service: service.known.clone(),
            service_bounds: service.bounds.clone(),
            failed: total.failed.clone(),
            refused: total.refused.clone(),
            first_byte: total.first_byte_times().clone(),
            connect: total.connect.clone(),
            tls: total.tls.clone(),
            handshake: total.handshake.clone(),
            first_message: total.messages.first.known.clone(),
            first_message_bounds: total.messages.first.bounds.clone(),
            message_gap: total.messages.gap.known.clone(),
            message_gap_bounds: total.messages.gap.bounds.clone(),
            last_message: total.messages.last.clone(),
            each_message: total.messages.each.clone(),
            lag: total.lag.clone(),
            receiving: total.instrument.receiving.clone(),
            instrument: Bounds::of(total),
        }
    }
}

impl Bounds {
    fn of(total: &snapshot::Snapshot) -> Option<Self> {
        let (response, service): (&Parts, &Parts) = (&total.instrument.response, &total.instrument.service);
        response.cover(&total.response).then(|| Self {
            response_as_read: total.response.known.clone(),
            response_low: response.low.clone(),
            response_high: response.high.clone(),
            service_as_read: total.service.known.clone(),
            service_low: service.low.clone(),
            service_high: (service.high != service.value).then(|| service.high.clone()),
        })
    }
}
