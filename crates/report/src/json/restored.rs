//! A document's summary again, so that every view can be made of a result that was written.

use brunt_judge::breakdown::{CallBreakdown, GroupBreakdown};
use brunt_judge::summary::Summary;
use brunt_record::catalogue::{Counter, Numbers, Placed, Timing, Timings, places};
use brunt_record::counts::{Failures, Statuses};
use brunt_record::figures::{CallFigures, Figures, GroupFigures, OwnFigures, OwnKind, OwnValues, ScenarioFigures};
use brunt_record::histogram::{Censored, Histogram};
use brunt_record::kinds::Kinds;
use brunt_record::outcome::Failure;
use brunt_record::recording::Recording;
use brunt_record::series::Series;
use brunt_record::snapshot::Snapshot;
use brunt_record::watched::Watched;

use super::{Agents, Calls, Document, Drilldown, FailureCount, Full, Names, Status};

impl Document {
    /// The summary of this document. Figures and the verdict are the written ones, and not judged anew.
    ///
    /// The document must have its histograms: see [`read_whole`](super::read_whole).
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::new(self.plan.clone(), self.run());
        summary.verdict.clone_from(&self.verdict);
        summary.remarks.clone_from(&self.remarks);
        summary.rates = self.rates;
        summary.thresholds.clone_from(&self.thresholds);
        summary.deliveries.clone_from(&self.deliveries);
        if let Some(names) = &self.names {
            names.correct(&mut summary.breakdown.requests, &mut summary.breakdown.groups);
            for (calls, written) in summary.breakdown.tags.iter_mut().zip(&names.tags).filter(|(a, b)| a.name == b.name)
            {
                calls.answered_per_s = written.answered_per_s;
                if let Some((messages, written)) = calls.messages.as_mut().zip(written.messages.as_ref()) {
                    messages.per_s = written.messages_per_s;
                }
            }
            let kinds = ["requests", "tags", "groups", "checks", "scenarios"];
            summary.breakdown.crowded =
                kinds.into_iter().filter(|kind| names.crowded.iter().any(|crowded| crowded == kind)).collect();
        }
        summary
    }

    fn run(&self) -> Recording {
        let mut measured = self.total();
        let due = self.measured.due.min(measured.due());
        let mut of_measured = *self.measured.bytes.numbers();
        of_measured.set(Counter::Due, due);
        let both = Placed::<places::Bytes>::from_numbers(&measured.numbers);
        let mut drained = both.numbers().without(&of_measured);
        drained.set(Counter::Due, measured.due() - due);
        measured.numbers = measured.numbers.without(&drained);
        let drained = Snapshot { numbers: drained, ..Snapshot::default() };
        Recording {
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
            changes: self.changes.clone(),
            replayed: self.replay.clone(),
            agents: self.agents.as_ref().map_or_else(Vec::new, Agents::restored),
        }
    }

    /// The watched figures.
    fn watched(&self) -> Watched {
        let mut watched = Watched::default();
        for figure in &self.watched {
            *watched.named(&figure.name) = figure.recorded();
        }
        watched
    }

    /// The counts of all calls.
    pub(super) fn numbers(&self) -> Numbers {
        let outcomes = &self.outcomes;
        let messages = outcomes.messages.map(|messages| messages.numbers).unwrap_or_default();
        let groups = [
            outcomes.numbers.numbers(),
            outcomes.held_back.numbers(),
            messages.numbers(),
            self.bytes.numbers(),
            self.connections.numbers.numbers(),
            self.health.numbers(),
            self.arrivals.numbers(),
            self.throughput.numbers(),
        ];
        let agent_numbers = self.agents.as_ref().map(|agents| {
            let Agents { unsent_lost, unsent_held, .. } = *agents;
            [(Counter::UnsentLost, unsent_lost), (Counter::UnsentHeld, unsent_held)]
        });
        let mut numbers = Numbers::from_values(agent_numbers.into_iter().flatten());
        for group in groups {
            numbers.merge(group);
        }
        numbers
    }

    /// The times of all calls: where a result shows times without own delays, the times as read are restored.
    pub(super) fn times_as_read(&self) -> Timings {
        let mut times = self.histograms.times.clone();
        let Some(bounds) = &self.histograms.instrument else { return times };
        let shown = |times: &Timings, timing| times.known(timing).clone();
        let (response, service) = (shown(&times, Timing::Response), shown(&times, Timing::Service));
        times.at(Timing::Response).known = bounds.response_as_read.clone();
        times.at(Timing::Service).known = bounds.service_as_read.clone();
        times.set_known(Timing::ResponseLow, bounds.response_low.clone());
        times.set_known(Timing::ResponseHigh, bounds.response_high.clone());
        times.set_known(Timing::ResponseValue, response);
        times.set_known(Timing::ServiceLow, bounds.service_low.clone());
        times.set_known(Timing::ServiceHigh, bounds.service_high.clone().unwrap_or_else(|| service.clone()));
        times.set_known(Timing::ServiceValue, service);
        let first_byte = shown(&times, Timing::FirstByte);
        times.set_known(Timing::FirstByteValue, first_byte);
        // Of the times as read only their number is left.
        let mut as_read = Histogram::new();
        as_read.record_n(0, self.times.first_byte.as_ref().map_or(0, |times| times.count));
        times.set_known(Timing::FirstByte, as_read);
        times
    }

    /// Every call.
    fn total(&self) -> Snapshot {
        let outcomes = &self.outcomes;
        Snapshot {
            numbers: self.numbers(),
            times: self.times_as_read(),
            statuses: Status::restored(&outcomes.statuses),
            failed_check: self.names.as_ref().map_or_else(Statuses::default, |n| Status::restored(&n.failed_check)),
            excused: self.names.as_ref().map_or_else(Statuses::default, |n| Status::restored(&n.excused)),
            failures: FailureCount::restored(&outcomes.failures),
            events: outcomes.events.clone(),
            troubles: FailureCount::restored(&self.connections.troubles),
            kinds: Kinds::default(),
            watched: self.watched(),
            figures: self.names.as_ref().map_or_else(Figures::default, Names::restored),
            timeline: self.by_due.clone(),
            examples: self.outcomes.examples.clone(),
            slowest: self.outcomes.slowest.clone(),
        }
    }
}

impl Status {
    fn restored(statuses: &[Self]) -> Statuses {
        Statuses::from_counts(statuses.iter().map(|status| (status.status, status.count)))
    }
}

impl FailureCount {
    fn restored(counted: &[Self]) -> Failures {
        let mut failures = Failures::default();
        for one in counted {
            // A failure of another version has no place among this one's.
            let Some(failure) = Failure::from_name(&one.failure) else { continue };
            failures.count_many(failure, one.count);
            for reason in &one.reasons {
                failures.add_reason(failure, &reason.reason, reason.count);
            }
        }
        failures
    }
}

impl Full {
    fn restored(&self) -> Censored {
        Censored { known: self.times.clone(), bounds: self.bounds.clone(), ..Censored::default() }
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
        let mut numbers = Numbers::from_values([
            (Counter::Due, self.due),
            (Counter::Unfinished, self.unfinished),
            (Counter::Unsent, self.unsent),
            (Counter::ClearIn, self.clear_in_bytes),
            (Counter::ClearOut, self.clear_out_bytes),
        ]);
        let mut times = Timings::from_values([
            (Timing::Response, self.response_histogram.restored()),
            (Timing::Service, self.service_histogram.restored()),
        ]);
        times.set_known(Timing::Failed, self.not_ok_histogram.clone());
        if let Some(messages) = &self.messages {
            numbers.merge(messages.numbers.numbers());
            times.merge(&messages.times());
        }
        CallFigures {
            numbers,
            times,
            statuses: Status::restored(&self.statuses),
            failed_check: Statuses::default(),
            excused: Statuses::default(),
            failures,
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
            *figures.groups.named(&group.derived.name) = GroupFigures {
                with_pauses: group.with_pauses_histogram.restored(),
                without_pauses: group.without_pauses_histogram.restored(),
                failed: group.derived.failed,
                unfinished: group.derived.unfinished,
            };
        }
        for check in &self.checks {
            let name = Figures::check_name(check.call.as_deref(), &check.check);
            let restored = figures.checks.named(&name);
            (restored.call, restored.check) = (check.call.clone(), check.check.clone());
            (restored.passes, restored.fails, restored.reasons) = (check.passes, check.fails, check.reasons);
            restored.example.clone_from(&check.example);
        }
        for scenario in &self.scenarios {
            *figures.scenarios.named(&scenario.name) = ScenarioFigures {
                users_before: scenario.users_before.cast_signed(),
                users_started: scenario.users_started,
                users_ended: scenario.users_ended,
                not_admitted: scenario.not_admitted,
                iterations: scenario.iteration_histogram.restored(),
                not_ok: scenario.not_ok,
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

    /// Adds values that names' histograms do not have: rates over the measured part only, and failed checks.
    fn correct(&self, requests: &mut [CallBreakdown], groups: &mut [GroupBreakdown]) {
        for (calls, written) in requests.iter_mut().zip(&self.requests).filter(|(a, b)| a.name == b.name) {
            calls.answered_per_s = written.answered_per_s;
            (calls.not_ok, calls.error_rate) = (written.not_ok, written.error_ratio);
            if let Some((messages, written)) = calls.messages.as_mut().zip(written.messages.as_ref()) {
                messages.per_s = written.messages_per_s;
            }
        }
        for (group, written) in groups.iter_mut().zip(&self.groups).filter(|(a, b)| a.name == b.derived.name) {
            group.count = written.derived.count;
        }
    }
}
