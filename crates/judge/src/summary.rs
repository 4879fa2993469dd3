//! Every figure of a run, derived once. Views print it and compute nothing.

use brunt_plan::plan::Plan;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::change::pauses;
use brunt_record::histogram::Histogram;
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::recording::{AbortCause, Ending, Recording};
use brunt_record::snapshot::Snapshot;
use serde::Serialize;

use crate::agent_figures::AgentFigures;
use crate::asked::Made;
use crate::breakdown::{Breakdown, Whole};
use crate::distribution::Distribution;
use crate::remarks::{self, About, Remark};
use crate::sampling::{self, Clusters, Sampling};
use crate::thresholds::{FigureSource, ThresholdResult, due_ns};
use crate::verdict::{Judged, Verdict};
use crate::watched::WatchedSummary;

/// Distributions of times over all calls; `null` where nothing was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// From due to end, over every call: waiting for a connection and the target, without the generator's own delays
    /// where these are known. In the closed model a call is due when its connection is free for it.
    pub response: Option<Distribution>,
    /// From sent to end, over every call that was sent; likewise.
    pub service: Option<Distribution>,
    /// From due to end, over calls with success only; missing where there are no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<Distribution>,
    /// From due to end, over calls that ended without success: failures, and answers whose status is not ok. The threshold `failed.p99`
    /// is about these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_ok: Option<Distribution>,
    /// From due to end, over failures alone.
    pub failed: Option<Distribution>,
    /// From sent to the first byte of the answer.
    pub first_byte: Option<Distribution>,
    /// Making a connection, without TLS.
    pub connect: Option<Distribution>,
    /// TLS handshakes.
    pub tls: Option<Distribution>,
    /// The protocol's own opening exchanges.
    pub handshake: Option<Distribution>,
    /// From sent to the first message of the answer. This and the next three are missing where no answer came as messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_message: Option<Distribution>,
    /// From one message of a call to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_gap: Option<Distribution>,
    /// From sent to the last message, of calls that were answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<Distribution>,
    /// The mean time for a message after the first, a value for each such call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each_message: Option<Distribution>,
    /// Generator lag, in the open model: the generator's own delay in sending.
    pub lag: Option<Distribution>,
    /// The generator's own delay in receiving: from an answer's arrival by the kernel's clock to when it was read.
    pub receiving: Option<Distribution>,
}

/// Rates over the measured part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Calls a second that were answered within the measured time, whenever they were due.
    pub answered_per_s: f64,
    /// Calls a second that ended within the measured time with success, whenever they were due. A threshold on `rate`
    /// limits this figure.
    pub ok_per_s: f64,
    /// Lower end of the 95% interval of `ok_per_s`: the rate of an endless run under the same load lies within in 95% of
    /// cases. Missing where the run was too short to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok_low_per_s: Option<f64>,
    /// Upper end of that interval. It reaches at least to the rate with the calls that were in flight at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok_high_per_s: Option<f64>,
    /// Calls due a second: the rate that was asked for, in the open model. Of a replay, by the times of its log.
    pub due_per_s: f64,
    /// Messages a second within the measured time, of all calls whose answers come as messages; missing where none does.
    #[serde(skip_serializing_if = "is_zero")]
    pub messages_per_s: f64,
    /// Bytes received a second, at the socket.
    #[serde(rename = "wire_in_bytes_per_s")]
    pub wire_in_per_s: f64,
    /// Bytes sent a second, at the socket.
    #[serde(rename = "wire_out_bytes_per_s")]
    pub wire_out_per_s: f64,
    /// Bytes received a second, after decryption.
    #[serde(rename = "clear_in_bytes_per_s")]
    pub clear_in_per_s: f64,
    /// Bytes sent a second, before encryption.
    #[serde(rename = "clear_out_bytes_per_s")]
    pub clear_out_per_s: f64,
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(rate: &f64) -> bool {
    *rate == 0.0
}

/// A run and all its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run's plan.
    pub plan: Plan,
    /// The run's record.
    pub run: Recording,
    /// Every call: of the measured part and of the drain.
    pub total: Snapshot,
    /// Calls that are not a success.
    pub not_ok: u64,
    /// `not_ok` over `due`, 0 to 1; 0 when nothing was due.
    pub error_rate: f64,
    /// The ends of the 95% interval of `error_rate`; `None` where an episode or the end of the run made the share, or the run was too
    /// short to say.
    pub error_rate_within: Option<(f64, f64)>,
    /// Rates over the measured part.
    pub rates: Rates,
    /// Distributions over all calls.
    pub times: Times,
    /// Figures by name.
    pub breakdown: Breakdown,
    /// Whether the figures can be believed.
    pub verdict: Verdict,
    /// Remarks on the target or the plan.
    pub remarks: Vec<Remark>,
    /// What it was asked for, and what it made of it.
    pub made: Vec<Made>,
    /// Each threshold with its result.
    pub thresholds: Vec<ThresholdResult>,
    /// Figures of each agent's part, if agents carried out the run.
    pub agents: Vec<AgentFigures>,
    /// Figures watched beside it.
    pub watched: Vec<WatchedSummary>,
}

impl Summary {
    /// Derives every figure of `run`, which carried `plan` out.
    pub fn new(plan: Plan, run: Recording) -> Self {
        let mut total = run.measured.clone();
        total.merge(&run.drained);
        total.settle_ends();
        // The generator's health in the drain's fractions of a second says nothing about the figures.
        total.numbers.set_health(&run.measured.numbers);
        let seconds = run.measured_ns as f64 / 1e9;
        let over = |n: u64, seconds: f64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let per_s = |n: u64| over(n, seconds);
        let due_seconds = due_ns(&plan, &run) as f64 / 1e9;
        let not_ok = total.not_ok(&plan.ok_status);
        let points = run.series.points();
        let remarks = remarks::find(&plan, &run, &total);
        // Sampling errors are those of a steady state, which a run with an outage does not have.
        let is_steady = !remarks.iter().any(|remark| remark.about.is_unsteady());
        let ended_ok = total.numbers.ended_ok();
        let in_flight = run.drained.ended_late() + total.numbers.get(Counter::CarriedUnderWay);
        let rate = sampling::rate(points, per_s(ended_ok + in_flight)).filter(|_| is_steady);
        let due = total.numbers.get(Counter::Due);
        let unended = [Counter::Unfinished, Counter::Unsent, Counter::Unknown].map(|end| total.numbers.get(end));
        let error_rate_within = sampling::error_rate(points, not_ok, unended.iter().sum(), due).filter(|_| is_steady);
        let responses = Clusters::of_response(points).filter(|_| is_steady);
        let services = Clusters::of_service(points).filter(|_| is_steady);
        let (of_response, of_service) =
            (responses.as_ref().map(Sampling::Whole), services.as_ref().map(Sampling::Whole));
        let response = Judged::new(&plan, &run).response(&total, of_response.as_ref());
        let by_success = total.response_times();
        let none = Histogram::new();
        let service = Distribution::of_bracket(&total.service_bracket(), &none, of_service.as_ref());
        let dependence = |clusters: &Option<Clusters<'_>>, times: &Option<Distribution>| {
            Some(clusters.as_ref()?.dependence(times.as_ref()?.values()))
        };
        // Where the kernel told of every answer, figures by name have none of these delays.
        let knows_all = total.numbers.get(Counter::ArrivalsTimed) >= total.statuses.total();
        let whole = Whole {
            response: dependence(&responses, &response),
            service: dependence(&services, &service),
            delays: if knows_all { &none } else { total.times.known(Timing::Receiving) },
        };
        let breakdown = Breakdown::new(&plan, &run, &total.figures, &whole);
        let mut summary = Self {
            not_ok,
            error_rate: if due > 0 { not_ok as f64 / due as f64 } else { 0.0 },
            error_rate_within,
            rates: Rates {
                answered_per_s: per_s(total.numbers.get(Counter::EndedAnswered)),
                ok_per_s: per_s(ended_ok),
                ok_low_per_s: rate.map(|(low, _)| low),
                ok_high_per_s: rate.map(|(_, high)| high),
                due_per_s: over(run.measured.numbers.get(Counter::Due), due_seconds),
                messages_per_s: per_s(total.numbers.get(Counter::EndedMessages)),
                wire_in_per_s: per_s(run.measured.numbers.get(Counter::WireIn)),
                wire_out_per_s: per_s(run.measured.numbers.get(Counter::WireOut)),
                clear_in_per_s: per_s(run.measured.numbers.get(Counter::ClearIn)),
                clear_out_per_s: per_s(run.measured.numbers.get(Counter::ClearOut)),
            },
            verdict: Verdict::judge(&plan, &run, &total, response.as_ref()),
            times: Times {
                response,
                service,
                ok: if by_success.failed.is_empty() { None } else { Distribution::of_known(&by_success.known) },
                not_ok: Distribution::of_known(&by_success.failed),
                failed: Distribution::of_known(total.times.known(Timing::Failed)),
                // Where not each call is timed, some stand for others; their number is known all the same.
                first_byte: Distribution::of_known(total.first_byte_times())
                    .map(|times| Distribution { count: total.times.known(Timing::FirstByte).count(), ..times }),
                connect: Distribution::of_known(total.times.known(Timing::Connect)),
                tls: Distribution::of_known(total.times.known(Timing::Tls)),
                handshake: Distribution::of_known(total.times.known(Timing::Handshake)),
                first_message: Distribution::from_durations(total.messages().first()),
                message_gap: Distribution::from_durations(total.messages().gap()),
                last_message: Distribution::of_known(total.messages().last()),
                each_message: Distribution::of_known(total.messages().each()),
                lag: Distribution::of_known(total.times.known(Timing::Lag)),
                receiving: Distribution::of_known(total.times.known(Timing::Receiving)),
            },
            breakdown,
            remarks,
            made: Made::all(&plan, &run, &total),
            thresholds: Vec::new(),
            agents: AgentFigures::all(&plan, &run),
            watched: WatchedSummary::all(&plan, &run),
            total,
            plan,
            run,
        };
        // Calls that brunt did not send in time say nothing about the target.
        if summary.verdict.is_brunt_the_limit() {
            summary.remarks.retain(|remark| !matches!(remark.about, About::Overload | About::Connections));
        }
        summary.thresholds = summary.judged();
        summary
    }

    /// The result of each threshold, implicit ones included.
    fn judged(&self) -> Vec<ThresholdResult> {
        let aborted = match &self.run.ending {
            Ending::Aborted(cause) => Some(cause),
            _ => None,
        };
        let mut results = ThresholdResult::all(&self.plan, &self.standing(), &self.verdict, aborted, &self.run.changes);
        let conditions = self.run.replayed.iter().flat_map(|replayed| &replayed.conditions);
        results.extend(conditions.map(ThresholdResult::of_condition));
        results.extend(self.made.iter().filter_map(|made| ThresholdResult::of_made(&self.plan, made)));
        results
    }

    /// The figures by which thresholds judge it.
    pub fn standing(&self) -> FigureSource<'_> {
        FigureSource::new(&self.plan, &self.run, &self.total)
    }

    /// Whether any call was answered.
    pub fn answered(&self) -> bool {
        // An answer other than the expected one is an answer.
        self.total.statuses.total() + self.total.failures.other_answers() > 0
    }

    /// The result of the threshold or guard that ended the run, which the ending already states.
    pub fn ended_by(&self) -> Option<&ThresholdResult> {
        let Ending::Aborted(cause) = &self.run.ending else { return None };
        // The results of the plan's thresholds come first, and those of its guards behind them.
        let place = match cause {
            AbortCause::Threshold { place, .. } => *place as usize,
            AbortCause::Guard { place, .. } => self.plan.thresholds.len() + *place as usize,
            AbortCause::Observer(_) => return None,
        };
        self.thresholds.get(place)
    }

    /// Whether its throughput is a lower bound: calls of a lost agent may have ended, too.
    pub fn is_rate_at_least(&self) -> bool {
        self.total.numbers.get(Counter::Unknown) > 0
    }

    /// Whether anything ended within the measured time, of a run in which no call was due: calls of the warm-up, or messages of
    /// these.
    pub fn has_only_carried(&self) -> bool {
        let numbers = &self.total.numbers;
        numbers.get(Counter::Due) == 0 && numbers.get(Counter::EndedAnswered) + numbers.get(Counter::EndedMessages) > 0
    }

    /// Whether nothing came of it: no call was due, and nothing of the warm-up ended in it.
    pub fn is_idle(&self) -> bool {
        self.total.numbers.get(Counter::Due) == 0 && !self.has_only_carried()
    }

    /// Whether no call was due, and nobody minds: the plan tolerates any load and any failure, as by `--k6-exit`.
    pub fn may_be_idle(&self) -> bool {
        let tolerates_all = self.plan.max_error_rate >= 1.0 && self.plan.max_less_ratio >= 1.0;
        self.is_idle() && tolerates_all && matches!(self.run.ending, Ending::Completed)
    }

    /// Since when the run was paused, if nobody resumed it before its end, in nanoseconds of the measured part.
    pub fn paused_to_end(&self) -> Option<u64> {
        let measured_ns = self.run.measured_ns;
        let is_beyond = |until: i64| u64::try_from(until).is_ok_and(|until| until >= measured_ns);
        let is_at_end = |until: Option<i64>| until.is_none_or(is_beyond);
        let (from_ns, _) = pauses(&self.run.changes).pop().filter(|(_, until)| is_at_end(*until))?;
        Some(u64::try_from(from_ns).unwrap_or(0)).filter(|from_ns| *from_ns < measured_ns)
    }

    /// Whether every threshold held.
    pub fn thresholds_held(&self) -> bool {
        self.thresholds.iter().all(|result| result.held)
    }

    /// Whether calls were due at times of their own.
    pub fn is_open(&self) -> bool {
        self.plan.load.is_open()
    }

    /// Which statuses count as a success.
    pub fn ok_status(&self) -> &OkStatus {
        &self.plan.ok_status
    }

    /// Whether what happened to the target made the figures, and not chance: an interval of a steady state would not hold for them.
    pub fn is_unsteady(&self) -> bool {
        self.remarks.iter().any(|remark| remark.about.is_unsteady())
    }

    /// How often `failure` happened.
    pub fn failures(&self, failure: Failure) -> u64 {
        self.total.failures.count(failure)
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::SECOND_NS;
    use brunt_record::histogram::AtLeast;

    use super::*;
    use crate::fixtures::{run, summary};

    #[test]
    fn rates_leave_the_drain_out_and_latencies_do_not() {
        let (plan, mut run) = run();
        run.measured.numbers.set(Counter::EndedAnswered, 1999);
        run.drained.statuses.record(200);
        run.drained.times.record(Timing::Response, 5 * SECOND_NS);
        run.measured.numbers.add(Counter::Due, 1);
        let summary = Summary::new(plan, run);
        assert!((summary.rates.answered_per_s - 999.5).abs() < 1e-9);
        assert_eq!(summary.times.response.as_ref().unwrap().max, AtLeast::exactly(5 * SECOND_NS));
        assert_eq!(summary.total.ended(), summary.total.numbers.get(Counter::Due));
    }

    #[test]
    fn the_threshold_that_ended_a_run_is_said_by_its_ending() {
        let (mut plan, mut run) = run();
        plan.thresholds = ["timeout==0 abort", "p99<1ns"].map(|text| text.parse().unwrap()).into();
        let threshold = "timeout==0 abort".to_owned();
        let cause =
            AbortCause::Threshold { place: 0, threshold, got: "1".to_owned(), after_ns: SECOND_NS, at_once: false };
        run.ending = Ending::Aborted(cause);
        let summary = Summary::new(plan, run);
        assert_eq!(summary.ended_by(), summary.thresholds.first());
    }

    #[test]
    fn the_error_rate_counts_bad_statuses_and_failures() {
        let summary = summary();
        assert_eq!(summary.not_ok, 2);
        assert!((summary.error_rate - 0.001).abs() < 1e-9);
    }
}
