//! Every figure of a run, derived once. Views print it and compute nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agents::{AgentFigures, AgentPart};
use crate::breakdown::{Breakdown, Whole};
use crate::histogram::{AtLeast, Censored, Histogram};
use crate::instrument::Bracket;
use crate::outcome::{Failure, OkStatus};
use crate::plan::{Load, Plan};
use crate::remarks::{self, Remark};
use crate::sampling::{self, Clusters, Sampling};
use crate::series::Series;
use crate::snapshot::Snapshot;
use crate::threshold::ThresholdResult;
use crate::uncertainty::Intervals;
use crate::verdict::Verdict;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As planned.
    Completed,
    /// Early, by Ctrl-C or SIGTERM; the figures cover what was done.
    Interrupted,
    /// What asked for calls failed, or the script's teardown after them, or a worker, in these words. The figures cover what
    /// was done.
    Failed(String),
    /// Early, because a threshold that was to end it could no longer pass, in these words.
    Aborted(String),
    /// Early, because the script ended it, for this reason.
    Stopped(String),
}

/// What the engine has when a run is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What was to be done.
    pub plan: Plan,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How it ended.
    pub ending: Ending,
    /// How long the measured part took, in nanoseconds.
    pub measured_ns: u64,
    /// What happened in the measured part.
    pub measured: Snapshot,
    /// What happened to its calls after its end.
    pub drained: Snapshot,
    /// The measured part over time.
    pub series: Series,
    /// What statuses are called, where the protocol has names for them.
    #[serde(default)]
    pub status_names: BTreeMap<u16, String>,
    /// Where the first redirect led, if an answer was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirected_to: Option<String>,
    /// What each agent did, if the run was carried out by agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPart>,
}

impl Run {
    /// Something failed, in these words: the run ended so, unless it had failed before.
    pub fn fail(&mut self, reason: String) {
        if !matches!(self.ending, Ending::Failed(_)) {
            self.ending = Ending::Failed(reason);
        }
    }
}

/// The quantiles that are reported, with their names.
pub const QUANTILES: [(&str, f64); 7] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Figures of a distribution of durations, all in nanoseconds. Where a call's duration is known only from below,
/// so are the figures that it can move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Durations and bounds.
    pub count: u64,
    /// The arithmetic mean.
    pub mean: AtLeast<f64>,
    /// The standard deviation.
    pub stdev: AtLeast<f64>,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: AtLeast<u64>,
    /// The values at [`QUANTILES`], in their order.
    pub quantiles: [AtLeast<u64>; QUANTILES.len()],
    /// How far they may be from the truth; none where that is not looked into.
    pub intervals: Option<Box<Intervals>>,
}

impl Distribution {
    /// The figures of `durations`; none if it is empty.
    pub fn of(durations: &Censored) -> Option<Self> {
        let lower = durations.lower();
        let at_least = !durations.bounds.is_empty();
        let mut quantiles = [AtLeast::exactly(0); QUANTILES.len()];
        for (place, value) in quantiles.iter_mut().zip(durations.quantiles(QUANTILES.map(|(_, q)| q))) {
            *place = value?;
        }
        Some(Self {
            count: lower.count(),
            mean: AtLeast { value: lower.mean()?, at_least },
            stdev: AtLeast { value: lower.stdev()?, at_least },
            min: lower.min()?,
            max: AtLeast { value: lower.max()?, at_least },
            quantiles,
            intervals: None,
        })
    }

    /// The figures of what is shown of `bracket`, with how far they may be from the truth; see [`Intervals::of`].
    pub fn of_bracket(bracket: &Bracket, lag: &Histogram, sampling: Option<&Sampling<'_>>) -> Option<Self> {
        let intervals = Intervals::of(bracket, lag, sampling).map(Box::new);
        Some(Self { intervals, ..Self::of(&bracket.value)? })
    }

    /// The value at the quantile that is called so, such as `p99`.
    pub fn quantile(&self, name: &str) -> Option<AtLeast<u64>> {
        let at = QUANTILES.iter().position(|(known, _)| *known == name)?;
        self.quantiles.get(at).copied()
    }

    /// The figures of durations that are all known.
    pub fn of_known(durations: &Histogram) -> Option<Self> {
        Self::of(&Censored { known: durations.clone(), bounds: Histogram::new() })
    }
}

/// The distributions of a run. Each is missing where nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// From due to end, over every call: waiting for a connection and the target, without the generator's own delays
    /// where these are known.
    pub response: Option<Distribution>,
    /// From sent to end, over every call that was sent; likewise.
    pub service: Option<Distribution>,
    /// From due to end, over failed calls alone; these are in `response` as well.
    pub failed: Option<Distribution>,
    /// From sent to the first byte of the answer.
    pub first_byte: Option<Distribution>,
    /// Making a connection, without TLS.
    pub connect: Option<Distribution>,
    /// TLS handshakes.
    pub tls: Option<Distribution>,
    /// The protocol's own opening exchanges.
    pub handshake: Option<Distribution>,
    /// From sent to the first message of its answer, of calls whose answers come as messages.
    pub first_message: Option<Distribution>,
    /// From one message of a call to the next.
    pub message_gap: Option<Distribution>,
    /// From sent to the last message, of calls that were answered.
    pub last_message: Option<Distribution>,
    /// The mean time for a message after the first, a value for each such call.
    pub each_message: Option<Distribution>,
    /// Generator lag, in the open model: the generator's own delay in sending.
    pub lag: Option<Distribution>,
    /// The generator's own delay in receiving: from an answer's arrival by the kernel's clock to when it was read.
    pub receiving: Option<Distribution>,
}

/// Rates over the measured part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Calls answered a second.
    pub answered_per_s: f64,
    /// Between what the rate of an endless run under the same load lies in 95 % of cases; none of a run that is too short
    /// to say.
    pub answered_interval_per_s: Option<(f64, f64)>,
    /// Calls due a second: what was asked for, in the open model.
    pub due_per_s: f64,
    /// Messages a second, over all calls whose answers come as messages.
    pub messages_per_s: f64,
    /// Bytes received a second, at the socket.
    pub wire_in_per_s: f64,
    /// Bytes sent a second, at the socket.
    pub wire_out_per_s: f64,
    /// Bytes received a second, after decryption.
    pub clear_in_per_s: f64,
    /// Bytes sent a second, before encryption.
    pub clear_out_per_s: f64,
}

/// A run and all its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run as it was.
    pub run: Run,
    /// Every call: of the measured part and of the drain.
    pub total: Snapshot,
    /// Calls that are not a success.
    pub not_ok: u64,
    /// `not_ok` over `due`, 0 to 1; 0 when nothing was due.
    pub error_rate: f64,
    /// Rates over the measured part.
    pub rates: Rates,
    /// Distributions over all calls.
    pub times: Times,
    /// Figures by name.
    pub breakdown: Breakdown,
    /// Whether the figures can be believed.
    pub verdict: Verdict,
    /// What stands out about the target or the plan.
    pub remarks: Vec<Remark>,
    /// Each threshold and whether it held.
    pub thresholds: Vec<ThresholdResult>,
    /// What the part of each agent comes to, if agents carried the run out.
    pub agents: Vec<AgentFigures>,
}

impl Summary {
    /// Derives every figure of `run`.
    pub fn of(run: Run) -> Self {
        let mut total = run.measured.clone();
        total.merge(&run.drained);
        // How the generator fared in the drain's scraps of a second says nothing about the figures.
        total.health = run.measured.health;
        let seconds = run.measured_ns as f64 / 1e9;
        let per_s = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let not_ok = total.not_ok(&run.plan.ok_status);
        let points = run.series.points();
        let (responses, services) = (Clusters::of_response(points), Clusters::of_service(points));
        let (of_response, of_service) =
            (responses.as_ref().map(Sampling::Whole), services.as_ref().map(Sampling::Whole));
        let response = Distribution::of_bracket(&total.response_bracket(), &total.lag, of_response.as_ref());
        let none = Histogram::new();
        let service = Distribution::of_bracket(&total.service_bracket(), &none, of_service.as_ref());
        let dependence = |clusters: &Option<Clusters<'_>>, times: &Option<Distribution>| {
            Some(clusters.as_ref()?.dependence(times.as_ref()?))
        };
        // Where the kernel told of every answer, nothing of that is in figures by name.
        let knows_all = total.instrument.timed >= total.statuses.total();
        let whole = Whole {
            response: dependence(&responses, &response),
            service: dependence(&services, &service),
            delays: if knows_all { &none } else { &total.instrument.receiving },
        };
        let breakdown = Breakdown::of(&run, &total.figures, &whole);
        let mut summary = Self {
            not_ok,
            error_rate: if total.due > 0 { not_ok as f64 / total.due as f64 } else { 0.0 },
            rates: Rates {
                answered_per_s: per_s(run.measured.statuses.total()),
                answered_interval_per_s: sampling::rate(points),
                due_per_s: per_s(run.measured.due),
                messages_per_s: per_s(run.measured.messages.count),
                wire_in_per_s: per_s(run.measured.bytes.wire_in),
                wire_out_per_s: per_s(run.measured.bytes.wire_out),
                clear_in_per_s: per_s(run.measured.bytes.clear_in),
                clear_out_per_s: per_s(run.measured.bytes.clear_out),
            },
            verdict: Verdict::of(&run, &total, response.as_ref()),
            times: Times {
                response,
                service,
                failed: Distribution::of_known(&total.failed),
                // Some calls stand for others where not each is timed; their number is known all the same.
                first_byte: Distribution::of_known(total.first_byte_times())
                    .map(|times| Distribution { count: total.first_byte.count(), ..times }),
                connect: Distribution::of_known(&total.connect),
                tls: Distribution::of_known(&total.tls),
                handshake: Distribution::of_known(&total.handshake),
                first_message: Distribution::of(&total.messages.first),
                message_gap: Distribution::of(&total.messages.gap),
                last_message: Distribution::of_known(&total.messages.last),
                each_message: Distribution::of_known(&total.messages.each),
                lag: Distribution::of_known(&total.lag),
                receiving: Distribution::of_known(&total.instrument.receiving),
            },
            breakdown,
            remarks: remarks::of(&run, &total),
            thresholds: Vec::new(),
            agents: run.figures_of_agents(),
            total,
            run,
        };
        summary.thresholds = summary.run.plan.thresholds.iter().map(|t| t.judge(&summary)).collect();
        summary
    }

    /// Whether any call was answered.
    pub fn answered(&self) -> bool {
        self.total.statuses.total() > 0
    }

    /// Whether every threshold held.
    pub fn thresholds_held(&self) -> bool {
        self.thresholds.iter().all(|result| result.held)
    }

    /// Whether calls were due at times of their own.
    pub fn is_open(&self) -> bool {
        matches!(self.run.plan.load, Load::Open { .. })
    }

    /// Which statuses count as a success.
    pub fn ok_status(&self) -> &OkStatus {
        &self.run.plan.ok_status
    }

    /// How often `failure` happened.
    pub fn failures(&self, failure: Failure) -> u64 {
        self.total.failures.count(failure)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::SECOND_NS;

    /// A run of two seconds: 1998 answers in 1 ms, one 503, one timeout after 2 s.
    pub(crate) fn run() -> Run {
        let mut measured = Snapshot { due: 2000, ..Snapshot::default() };
        for i in 0..1999 {
            measured.statuses.record(if i == 0 { 503 } else { 200 });
            measured.response.known.record(1_000_000);
            measured.service.known.record(900_000);
            measured.first_byte.record(900_000);
        }
        measured.failures.record(Failure::Timeout, "no answer in 2s");
        measured.response.known.record(2 * SECOND_NS);
        measured.service.known.record(2 * SECOND_NS);
        measured.failed.record(2 * SECOND_NS);
        let mut series = Series::default();
        series.push(2 * SECOND_NS, &measured, &OkStatus::default());
        Run {
            plan: Plan { thresholds: Vec::new(), ..crate::plan::tests::plan() },
            started_unix_ms: 0,
            ending: Ending::Completed,
            measured_ns: 2 * SECOND_NS,
            measured,
            drained: Snapshot::default(),
            series,
            status_names: BTreeMap::new(),
            redirected_to: None,
            agents: Vec::new(),
        }
    }

    #[test]
    fn rates_leave_the_drain_out_and_latencies_do_not() {
        let mut run = run();
        run.drained.statuses.record(200);
        run.drained.response.known.record(5 * SECOND_NS);
        run.measured.due += 1;
        let summary = Summary::of(run);
        assert!((summary.rates.answered_per_s - 999.5).abs() < 1e-9);
        assert_eq!(summary.times.response.as_ref().unwrap().max, AtLeast::exactly(5 * SECOND_NS));
        assert_eq!(summary.total.ended(), summary.total.due);
    }

    #[test]
    fn the_error_rate_counts_bad_statuses_and_failures() {
        let summary = Summary::of(run());
        assert_eq!(summary.not_ok, 2);
        assert!((summary.error_rate - 0.001).abs() < 1e-9);
    }
}
