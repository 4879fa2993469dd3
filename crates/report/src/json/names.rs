//! The document's figures by name.

use std::collections::BTreeMap;

use brunt_judge::breakdown::{self, CheckBreakdown, GroupBreakdown};
use brunt_judge::distribution::Distribution;
use brunt_judge::summary::Summary;
use brunt_record::catalogue::{Counter, Placed, Timing, Timings, places};
use brunt_record::figures::{CallFigures, NamedFigures};
use brunt_record::histogram::{Censored, Histogram};
use serde::{Deserialize, Serialize};

use super::Status;

/// Figures by name; only of runs with scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Names {
    /// The most virtual users alive at any time.
    pub most_users: u64,
    /// Answers that failed a check, by status. Those with a status that is ok count in `not_ok` because of it.
    pub failed_check: Vec<Status>,
    /// Calls that count as ok against their status, as their call (`ok =`) or the script (`answer:pass`) said, by status; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<Status>,
    /// Calls by name.
    pub requests: Vec<Calls>,
    /// Calls by tag, `key=value`.
    pub tags: Vec<Calls>,
    /// Groups.
    pub groups: Vec<Group>,
    /// Checks.
    pub checks: Vec<CheckBreakdown>,
    /// Scenarios.
    pub scenarios: Vec<Scenario>,
    /// Figures of the script's own.
    pub own: Vec<OwnFigure>,
    /// The kinds with more distinct names than are told apart; further names count as `(others)`.
    pub crowded: Vec<String>,
}

/// Times in full: of ended calls, and lower bounds of the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Full {
    /// Times.
    pub times: Histogram,
    /// Lower bounds.
    pub bounds: Histogram,
}

impl Full {
    fn from_censored(times: &Censored) -> Self {
        Self { times: times.known.clone(), bounds: times.bounds.clone() }
    }

    fn is_empty(&self) -> bool {
        self.times.is_empty() && self.bounds.is_empty()
    }
}

/// Calls with one name or tag: `due = answered + failed + unfinished + unsent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calls {
    /// Their name or tag.
    pub name: String,
    /// Calls that were due.
    pub due: u64,
    /// Calls that were answered.
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
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub error_ratio: f64,
    /// Answers a second, over the measured part.
    pub answered_per_s: f64,
    /// Bytes of answers, after decryption.
    pub clear_in_bytes: u64,
    /// Bytes of calls, before encryption.
    pub clear_out_bytes: u64,
    /// Answers by status.
    pub statuses: Vec<Status>,
    /// Names of statuses, where the protocol has some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_names: BTreeMap<u16, String>,
    /// Failures by name.
    pub failures: Vec<Failures>,
    /// From due to end.
    pub response: Option<Distribution>,
    /// From sent to end.
    pub service: Option<Distribution>,
    /// From due to end, of answers whose status is ok; only where there are others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ok: Option<Distribution>,
    /// From due to end, of calls that failed, were answered with a status that is not ok, or had not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_not_ok: Option<Distribution>,
    /// Messages; missing where no answer came as messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Streams>,
    /// `response` in full.
    #[serde(default, skip_serializing_if = "Full::is_empty")]
    pub response_histogram: Full,
    /// Calls among them that failed or were answered with a status that is not ok.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub not_ok_histogram: Histogram,
    /// `service` in full.
    #[serde(default, skip_serializing_if = "Full::is_empty")]
    pub service_histogram: Full,
}

/// The messages of calls with one name or tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Streams {
    /// Counts of messages.
    #[serde(flatten)]
    pub numbers: Placed<places::Messages>,
    /// Messages a second, over the measured part.
    pub messages_per_s: f64,
    /// From sent to the first message.
    pub first_message: Option<Distribution>,
    /// From one message to the next.
    pub message_gap: Option<Distribution>,
    /// From sent to the last message, of calls that were answered.
    pub last_message: Option<Distribution>,
    /// The mean time for a message after the first, a value for each such call.
    pub each_message: Option<Distribution>,
    /// `first_message` in full.
    #[serde(default, skip_serializing_if = "Full::is_empty")]
    pub first_message_histogram: Full,
    /// `message_gap` in full.
    #[serde(default, skip_serializing_if = "Full::is_empty")]
    pub message_gap_histogram: Full,
    /// `last_message` in full.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub last_message_histogram: Histogram,
    /// `each_message` in full.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub each_message_histogram: Histogram,
}

impl Streams {
    fn new(derived: &breakdown::MessageBreakdown, recorded: &CallFigures) -> Self {
        let messages = recorded.messages();
        Self {
            numbers: Placed::from_numbers(&recorded.numbers),
            messages_per_s: derived.per_s,
            first_message: derived.first.clone(),
            message_gap: derived.gap.clone(),
            last_message: derived.last.clone(),
            each_message: derived.each.clone(),
            first_message_histogram: Full::from_censored(messages.first()),
            message_gap_histogram: Full::from_censored(messages.gap()),
            last_message_histogram: messages.last().clone(),
            each_message_histogram: messages.each().clone(),
        }
    }

    /// Their times in recorded form.
    pub(super) fn times(&self) -> Timings {
        let censored =
            |full: &Full| Censored { known: full.times.clone(), bounds: full.bounds.clone(), ..Censored::default() };
        let mut times = Timings::from_values([
            (Timing::FirstMessage, censored(&self.first_message_histogram)),
            (Timing::MessageGap, censored(&self.message_gap_histogram)),
        ]);
        times.set_known(Timing::LastMessage, self.last_message_histogram.clone());
        times.set_known(Timing::EachMessage, self.each_message_histogram.clone());
        times
    }

    fn leave_histograms_out(&mut self) {
        (self.first_message_histogram, self.message_gap_histogram) = (Full::default(), Full::default());
        (self.last_message_histogram, self.each_message_histogram) = (Histogram::default(), Histogram::default());
    }
}

/// Failures of one name; their reasons are kept once, over all calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failures {
    /// The failure.
    pub failure: String,
    /// How many.
    pub count: u64,
}

/// Groups with one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// Their figures.
    #[serde(flatten)]
    pub derived: GroupBreakdown,
    /// `with_pauses` in full.
    #[serde(default, skip_serializing_if = "Full::is_empty")]
    pub with_pauses_histogram: Full,
    /// `without_pauses` in full.
    #[serde(default, skip_serializing_if = "Full::is_empty")]
    pub without_pauses_histogram: Full,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_none_of_them(count: &u64) -> bool {
    *count == 0
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Users that the warm-up left alive.
    pub users_before: u64,
    /// Users that were started.
    pub users_started: u64,
    /// Users that ended.
    pub users_ended: u64,
    /// Users that arrived and found no place.
    pub not_admitted: u64,
    /// Users that ended because all rows of a queue were given out; left out if there are none.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub out_of_rows: u64,
    /// Iterations that came to their end.
    pub iterations: u64,
    /// Iterations that were cut short.
    pub unfinished: u64,
    /// Iterations among those that came to their end in which a call was not ok; left out if there are none.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub not_ok: u64,
    /// Iterations that an error ended.
    pub errors: u64,
    /// How long iterations took.
    pub iteration: Option<Distribution>,
    /// `iteration` in full.
    #[serde(default, skip_serializing_if = "Full::is_empty")]
    pub iteration_histogram: Full,
    /// What their errors said, most frequent first; of very many only some are kept.
    pub tracebacks: Vec<Traceback>,
}

/// A figure of the script's own, in its unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Own"))]
pub struct OwnFigure {
    /// Its name.
    pub name: String,
    /// `counter`, `rate`, `trend` or `gauge`.
    pub kind: String,
    /// The unit of its values; empty for plain numbers.
    pub unit: String,
    /// How often something was recorded.
    pub count: u64,
    /// Of a counter.
    pub sum: Option<f64>,
    /// The sum of a counter for each second of the measured part.
    pub sum_per_s: Option<f64>,
    /// The share of times that a rate was true.
    pub ratio: Option<f64>,
    /// Of a gauge, the value that was set last.
    pub last: Option<f64>,
    /// Of a trend or gauge.
    pub min: Option<f64>,
    /// Of a trend or gauge.
    pub max: Option<f64>,
    /// Of a trend.
    pub mean: Option<f64>,
    /// Of a trend.
    pub quantiles: Vec<OwnQuantile>,
    /// The values of a trend in full, in millionths of its unit.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub histogram: Histogram,
}

/// A quantile of a trend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnQuantile {
    /// Such as `p50`.
    pub name: String,
    /// The value below which that share lies.
    pub value: f64,
}

impl OwnFigure {
    fn from_breakdown(own: &breakdown::OwnBreakdown) -> Self {
        let figures = &own.figures;
        let quantiles = figures.quantiles();
        Self {
            name: own.name.clone(),
            kind: figures.kind.name().to_owned(),
            unit: figures.unit.clone(),
            count: figures.count,
            sum: figures.sum(),
            sum_per_s: own.per_s,
            ratio: figures.share(),
            last: figures.last(),
            min: figures.min(),
            max: figures.max(),
            mean: figures.mean(),
            quantiles: quantiles
                .into_iter()
                .map(|(name, value)| OwnQuantile { name: name.to_owned(), value })
                .collect(),
            histogram: figures.histogram().clone(),
        }
    }
}

/// An error's message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traceback {
    /// Its text and its place.
    pub traceback: String,
    /// The number of such errors.
    pub count: u64,
}

impl Names {
    /// The names of a summary, if it has any.
    pub(super) fn from_summary(summary: &Summary) -> Option<Self> {
        let (names, figures) = (&summary.breakdown, &summary.total.figures);
        if figures.is_empty() {
            return None;
        }
        Some(Self {
            most_users: summary.run.series.most_users(),
            failed_check: Status::all(&summary.total.failed_check),
            excused: Status::all(&summary.total.excused),
            requests: Calls::all(&names.requests, &figures.requests),
            tags: Calls::all(&names.tags, &figures.tags),
            groups: groups(summary),
            checks: names.checks.clone(),
            scenarios: scenarios(summary),
            own: names.own.iter().map(OwnFigure::from_breakdown).collect(),
            crowded: names.crowded.iter().map(|&kind| kind.to_owned()).collect(),
        })
    }
}

impl Names {
    /// Leaves every histogram out.
    pub(super) fn leave_histograms_out(&mut self) {
        for calls in self.requests.iter_mut().chain(&mut self.tags) {
            (calls.response_histogram, calls.service_histogram) = (Full::default(), Full::default());
            calls.not_ok_histogram = Histogram::new();
            calls.messages.iter_mut().for_each(Streams::leave_histograms_out);
        }
        for group in &mut self.groups {
            (group.with_pauses_histogram, group.without_pauses_histogram) = (Full::default(), Full::default());
        }
        self.scenarios.iter_mut().for_each(|scenario| scenario.iteration_histogram = Full::default());
        self.own.iter_mut().for_each(|own| own.histogram = Histogram::default());
    }
}

impl Calls {
    fn all(derived: &[breakdown::CallBreakdown], recorded: &NamedFigures<CallFigures>) -> Vec<Self> {
        let calls = derived.iter().filter_map(|calls| {
            let figures = recorded.get(&calls.name)?;
            let failures = figures.failures.counted();
            Some(Self {
                name: calls.name.clone(),
                due: calls.due,
                answered: calls.answered,
                failed: calls.failed,
                unfinished: figures.numbers.get(Counter::Unfinished),
                unsent: figures.numbers.get(Counter::Unsent),
                not_ok: calls.not_ok,
                error_ratio: calls.error_rate,
                answered_per_s: calls.answered_per_s,
                clear_in_bytes: calls.bytes_in,
                clear_out_bytes: calls.bytes_out,
                statuses: Status::all(&figures.statuses),
                status_names: figures.status_names.clone(),
                failures: failures.map(|(failure, count)| Failures { failure: failure.name().into(), count }).collect(),
                response: calls.response.clone(),
                service: calls.service.clone(),
                response_ok: calls.response_ok.clone(),
                response_not_ok: calls.response_not_ok.clone(),
                messages: calls.messages.as_ref().map(|derived| Streams::new(derived, figures)),
                response_histogram: Full::from_censored(figures.times.get(Timing::Response)),
                not_ok_histogram: figures.response_not_ok().known,
                service_histogram: Full::from_censored(figures.times.get(Timing::Service)),
            })
        });
        calls.collect()
    }
}

fn groups(summary: &Summary) -> Vec<Group> {
    let groups = summary.breakdown.groups.iter().filter_map(|group| {
        let figures = summary.total.figures.groups.get(&group.name)?;
        Some(Group {
            derived: group.clone(),
            with_pauses_histogram: Full::from_censored(&figures.with_pauses),
            without_pauses_histogram: Full::from_censored(&figures.without_pauses),
        })
    });
    groups.collect()
}

fn scenarios(summary: &Summary) -> Vec<Scenario> {
    let scenarios = summary.breakdown.scenarios.iter().filter_map(|scenario| {
        let figures = summary.total.figures.scenarios.get(&scenario.name)?;
        let tracebacks = scenario.tracebacks.iter();
        Some(Scenario {
            name: scenario.name.clone(),
            users_before: scenario.users_before,
            users_started: scenario.users_started,
            users_ended: scenario.users_ended,
            not_admitted: scenario.not_admitted,
            out_of_rows: scenario.out_of_rows,
            iterations: scenario.iterations,
            unfinished: scenario.unfinished,
            not_ok: scenario.not_ok,
            errors: scenario.errors,
            iteration: scenario.iteration.clone(),
            iteration_histogram: Full::from_censored(&figures.iterations),
            tracebacks: tracebacks.map(|(text, n)| Traceback { traceback: text.clone(), count: *n }).collect(),
        })
    });
    scenarios.collect()
}
