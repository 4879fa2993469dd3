//! A document's summary again, so that every view can be made of a result that was written.

use brunt_model::breakdown::{CallBreakdown, GroupBreakdown};
use brunt_model::figures::{
    CallFigures, Example, Figures, GroupFigures, OwnFigures, OwnKind, OwnValues, ScenarioFigures,
};
use brunt_model::histogram::{Censored, Histogram};
use brunt_model::instrument::{Instrument, Parts};
use brunt_model::messages::Messages;
use brunt_model::outcome::Failure;
use brunt_model::series::Series;
use brunt_model::snapshot::{self, Failures, Snapshot, Statuses};
use brunt_model::summary::{self, Run, Summary};
use brunt_model::threshold::ThresholdResult;
use brunt_model::verdict::{self, Spoils};

use super::{Agents, Calls, Document, Drilldown, FailureCount, Full, Health, Names, Rates, Status, Streams, Verdict};

impl Document {
    /// The summary that it is of. Figures and the verdict are those that were written, not judged anew.
    ///
    /// The document must have its histograms: see [`read_whole`](super::read_whole).
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::of(self.run());
        summary.verdict = self.verdict.restored();
        summary.remarks.clone_from(&self.remarks);
        summary.rates = self.rates.restored();
        let results = self.thresholds.iter().map(|result| ThresholdResult {
            threshold: result.threshold.clone(),
            got: result.got.clone(),
            held: result.held,
            sure: result.sure,
        });
        summary.thresholds = results.collect();
        if let Some(names) = &self.names {
            names.correct(&mut summary.breakdown.requests, &mut summary.breakdown.groups);
            let kinds = ["requests", "tags", "groups", "checks", "scenarios"];
            summary.breakdown.crowded =
                kinds.into_iter().filter(|kind| names.crowded.iter().any(|crowded| crowded == kind)).collect();
        }
        summary
    }

    fn run(&self) -> Run {
        let mut measured = self.total();
        let mut drained = Snapshot { due: self.outcomes.due.saturating_sub(self.measured.due), ..Snapshot::default() };
        measured.due = self.measured.due.min(self.outcomes.due);
        let all = measured.bytes;
        measured.bytes = snapshot::Bytes {
            wire_in: self.measured.bytes.wire_in_bytes,
            wire_out: self.measured.bytes.wire_out_bytes,
            clear_in: self.measured.bytes.clear_in_bytes,
            clear_out: self.measured.bytes.clear_out_bytes,
        };
        drained.bytes = snapshot::Bytes {
            wire_in: all.wire_in.saturating_sub(measured.bytes.wire_in),
            wire_out: all.wire_out.saturating_sub(measured.bytes.wire_out),
            clear_in: all.clear_in.saturating_sub(measured.bytes.clear_in),
            clear_out: all.clear_out.saturating_sub(measured.bytes.clear_out),
        };
        Run {
            plan: self.plan.clone(),
            started_unix_ms: self.started_unix_ms,
            ending: self.ending.clone(),
            measured_ns: self.measured.length_ns,
            measured,
            drained,
            series: Series::restored(
                self.points(),
                self.drilldown.as_ref().map_or_else(Default::default, Drilldown::restored),
                self.names.as_ref().map_or(0, |names| names.most_users),
            ),
            status_names: self.outcomes.status_names.clone(),
            redirected_to: None,
            agents: self.agents.as_ref().map_or_else(Vec::new, Agents::restored),
        }
    }

    /// What came as messages.
    pub(super) fn messages(&self) -> Messages {
        let Some(counted) = &self.outcomes.messages else { return Messages::default() };
        let histograms = &self.histograms;
        let with = |known: &Histogram, bounds: &Histogram| Censored { known: known.clone(), bounds: bounds.clone() };
        Messages {
            count: counted.count,
            together: counted.together,
            streams: counted.streams,
            left: counted.left,
            first: with(&histograms.first_message, &histograms.first_message_bounds),
            gap: with(&histograms.message_gap, &histograms.message_gap_bounds),
            last: histograms.last_message.clone(),
            each: histograms.each_message.clone(),
        }
    }

    /// Every call.
    fn total(&self) -> Snapshot {
        let (outcomes, histograms) = (&self.outcomes, &self.histograms);
        let mut response = Censored { known: histograms.response.clone(), bounds: histograms.response_bounds.clone() };
        let mut service = Censored { known: histograms.service.clone(), bounds: histograms.service_bounds.clone() };
        let mut instrument = Instrument {
            receiving: histograms.receiving.clone(),
            timed: self.arrivals.timed,
            bounded: self.arrivals.bounded,
            ..Instrument::default()
        };
        let mut first_byte = histograms.first_byte.clone();
        if let Some(bounds) = &histograms.instrument {
            let shown = std::mem::replace(&mut response.known, bounds.response_as_read.clone());
            let (low, high) = (bounds.response_low.clone(), bounds.response_high.clone());
            instrument.response = Parts { low, value: shown, high };
            let shown = std::mem::replace(&mut service.known, bounds.service_as_read.clone());
            let (low, high) =
                (bounds.service_low.clone(), bounds.service_high.clone().unwrap_or_else(|| shown.clone()));
            instrument.service = Parts { low, value: shown, high };
            instrument.first_byte = std::mem::take(&mut first_byte);
            // Of the times as read only their number is left.
            first_byte.record_n(0, self.times.first_byte.as_ref().map_or(0, |times| times.count));
        }
        Snapshot {
            due: outcomes.due,
            statuses: Status::restored(&outcomes.statuses),
            failed_check: self.names.as_ref().map_or_else(Statuses::default, |n| Status::restored(&n.failed_check)),
            failures: FailureCount::restored(&outcomes.failures),
            unfinished: outcomes.unfinished,
            unsent: outcomes.unsent,
            unsent_lost: self.agents.as_ref().map_or(0, |agents| agents.unsent_lost),
            response,
            service,
            instrument,
            failed: histograms.failed.clone(),
            refused: histograms.refused.clone(),
            first_byte,
            connect: histograms.connect.clone(),
            tls: histograms.tls.clone(),
            handshake: histograms.handshake.clone(),
            lag: histograms.lag.clone(),
            waited_for_connection: outcomes.waited_for_connection,
            unasked: outcomes.unasked,
            messages: self.messages(),
            events: outcomes.events.clone(),
            held_back: outcomes.held_back,
            bytes: snapshot::Bytes {
                wire_in: self.bytes.wire_in_bytes,
                wire_out: self.bytes.wire_out_bytes,
                clear_in: self.bytes.clear_in_bytes,
                clear_out: self.bytes.clear_out_bytes,
            },
            connections: snapshot::Connections {
                made: self.connections.made,
                failed: self.connections.failed,
                reconnects: self.connections.reconnects,
                tls_resumed: self.connections.tls_resumed,
            },
            troubles: FailureCount::restored(&self.connections.troubles),
            health: self.health.restored(),
            figures: self.names.as_ref().map_or_else(Figures::default, Names::restored),
        }
    }
}

impl Health {
    /// As it was recorded, but for the time in scripts, which is not written down.
    pub(super) fn restored(&self) -> snapshot::Health {
        snapshot::Health {
            wall_ns: self.wall_ns,
            cpu_ns: self.cpu_ns,
            starved_ns: self.starved_ns,
            script_ns: 0,
            busiest_worker: self.busiest_worker_cpu_ratio,
            most_starved_worker: self.most_starved_worker_ratio,
            saturated_ns: self.saturated_ns,
        }
    }
}

impl Status {
    fn restored(statuses: &[Self]) -> Statuses {
        Statuses::of(statuses.iter().map(|status| (status.status, status.count)))
    }
}

impl FailureCount {
    fn restored(counted: &[Self]) -> Failures {
        let mut failures = Failures::default();
        for one in counted {
            // One that this brunt does not know is another's, and has no place among its own.
            let Some(failure) = Failure::from_name(&one.failure) else { continue };
            failures.count_many(failure, one.count);
            for reason in &one.reasons {
                failures.add_reason(failure, &reason.reason, reason.count);
            }
        }
        failures
    }
}

impl Verdict {
    fn restored(&self) -> verdict::Verdict {
        let findings = self.findings.iter().map(|finding| verdict::Finding {
            cause: finding.cause,
            spoils: finding.spoils.unwrap_or(Spoils::Latency),
            message: finding.message.clone(),
            advice: finding.advice.clone(),
            seconds: finding.seconds.iter().map(|seconds| (seconds.first, seconds.last)).collect(),
            decisive: finding.decisive,
        });
        verdict::Verdict {
            judgement: self.judgement,
            figures: self.figures.clone(),
            findings: findings.collect(),
            settled: self.settled,
        }
    }
}

impl Rates {
    fn restored(&self) -> summary::Rates {
        summary::Rates {
            answered_per_s: self.answered_per_s,
            answered_interval_per_s: self.answered_low_per_s.zip(self.answered_high_per_s),
            due_per_s: self.due_per_s,
            messages_per_s: self.messages_per_s,
            wire_in_per_s: self.wire_in_bytes_per_s,
            wire_out_per_s: self.wire_out_bytes_per_s,
            clear_in_per_s: self.clear_in_bytes_per_s,
            clear_out_per_s: self.clear_out_bytes_per_s,
        }
    }
}

impl Full {
    fn restored(&self) -> Censored {
        Censored { known: self.times.clone(), bounds: self.bounds.clone() }
    }
}

impl Calls {
    fn restored(&self) -> CallFigures {
        let mut failures = Failures::default();
        for one in &self.failures {
            if let Some(failure) = Failure::from_name(&one.failure) {
                failures.count_many(failure, one.count);
            }
        }
        CallFigures {
            due: self.due,
            statuses: Status::restored(&self.statuses),
            failed_check: Statuses::default(),
            failures,
            unfinished: self.unfinished,
            unsent: self.unsent,
            response: self.response_histogram.restored(),
            service: self.service_histogram.restored(),
            failed: self.not_ok_histogram.clone(),
            refused: Histogram::new(),
            messages: self.messages.as_ref().map_or_else(Messages::default, Streams::restored),
            bytes_in: self.clear_in_bytes,
            bytes_out: self.clear_out_bytes,
            status_names: self.status_names.clone(),
        }
    }
}

impl Names {
    fn restored(&self) -> Figures {
        let mut figures = Figures { most_users: self.most_users, ..Figures::default() };
        for calls in &self.requests {
            *figures.requests.named(&calls.name) = calls.restored();
        }
        for calls in &self.tags {
            *figures.tags.named(&calls.name) = calls.restored();
        }
        for group in &self.groups {
            *figures.groups.named(&group.name) = GroupFigures {
                with_pauses: group.with_pauses_histogram.restored(),
                without_pauses: group.without_pauses_histogram.restored(),
                failed: group.failed,
                unfinished: group.unfinished,
            };
        }
        for check in &self.checks {
            let name = Figures::check_name(check.call.as_deref(), &check.check);
            let restored = figures.checks.named(&name);
            (restored.call, restored.check) = (check.call.clone(), check.check.clone());
            (restored.passes, restored.fails) = (check.passes, check.fails);
            let example = check.example.as_ref();
            restored.example = example.map(|of| Example { status: of.status, body: of.body.clone() });
        }
        for scenario in &self.scenarios {
            *figures.scenarios.named(&scenario.name) = ScenarioFigures {
                users_before: scenario.users_before.cast_signed(),
                users_started: scenario.users_started,
                users_ended: scenario.users_ended,
                not_admitted: scenario.not_admitted,
                iterations: scenario.iteration_histogram.restored(),
                errors: scenario.errors,
                out_of_rows: scenario.out_of_rows,
                tracebacks: scenario.tracebacks.iter().map(|said| (said.traceback.clone(), said.count)).collect(),
            };
        }
        for own in &self.own {
            let kind = OwnKind::from_name(&own.kind).unwrap_or_default();
            let values = OwnValues { sum: own.sum, ratio: own.ratio, last: own.last, min: own.min, max: own.max };
            *figures.own.named(&own.name) = OwnFigures::restored(kind, &own.unit, own.count, &values, &own.histogram);
        }
        figures
    }

    /// Puts in what names' histograms do not tell: rates over the measured part alone, and failed checks.
    fn correct(&self, requests: &mut [CallBreakdown], groups: &mut [GroupBreakdown]) {
        for (calls, written) in requests.iter_mut().zip(&self.requests).filter(|(a, b)| a.name == b.name) {
            calls.answered_per_s = written.answered_per_s;
            (calls.not_ok, calls.error_rate) = (written.not_ok, written.error_ratio);
            if let Some((messages, written)) = calls.messages.as_mut().zip(written.messages.as_ref()) {
                messages.per_s = written.messages_per_s;
            }
        }
        for (group, written) in groups.iter_mut().zip(&self.groups).filter(|(a, b)| a.name == b.name) {
            group.count = written.count;
        }
    }
}
