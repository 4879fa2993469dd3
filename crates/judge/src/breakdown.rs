//! Figures by name, derived once: requests, tags, groups, checks, scenarios.

use std::collections::BTreeMap;

use brunt_plan::plan::Plan;
use brunt_record::catalogue::{Counter, JsonGroupNumbers, Timing, places};
use brunt_record::counts::Statuses;
use brunt_record::figures::{CallFigures, Example, FigureByName, Figures, NamedFigures, OwnFigures};
use brunt_record::histogram::{Censored, Histogram};
use brunt_record::instrument::Bracket;
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::recording::Recording;
use serde::Serialize;

use crate::distribution::Distribution;
use crate::sampling::{Dependence, Sampling};

/// Calls with one name or tag: `due = answered + failed + unfinished + unsent`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NamedCalls"))]
pub struct CallBreakdown {
    /// Their name, or their tag as `key=value`.
    pub name: String,
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
    /// `not_ok` over `due`; 0 when nothing was due.
    #[serde(rename = "error_ratio")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub error_rate: f64,
    /// Answers a second within the measured time, whenever their calls were due.
    pub answered_per_s: f64,
    /// Bytes of answers, after decryption.
    #[serde(rename = "clear_in_bytes")]
    pub bytes_in: u64,
    /// Bytes of calls, before encryption.
    #[serde(rename = "clear_out_bytes")]
    pub bytes_out: u64,
    /// Answers by status.
    pub statuses: Vec<StatusCount>,
    /// Names of statuses, where the protocol has some.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub status_names: BTreeMap<u16, String>,
    /// Failures by name; their reasons are kept once, over all calls.
    pub failures: Vec<NamedFailures>,
    /// From due to end.
    pub response: Option<Distribution>,
    /// From sent to end.
    pub service: Option<Distribution>,
    /// From due to end, of answers whose status is ok; only where there are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_ok: Option<Distribution>,
    /// From due to end, of calls that failed, were answered with a status that is not ok, or had not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_not_ok: Option<Distribution>,
    /// Their messages; missing where no answer came as messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Box<MessageBreakdown>>,
}

/// Answers with one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Status"))]
pub struct StatusCount {
    /// The status.
    pub status: u16,
    /// How many.
    pub count: u64,
}

impl StatusCount {
    /// One for each status of `statuses`, in their order.
    pub fn all(statuses: &Statuses) -> Vec<Self> {
        statuses.sorted().into_iter().map(|(status, count)| Self { status, count }).collect()
    }
}

/// Failures of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedFailures {
    /// The failure.
    pub failure: Failure,
    /// How many.
    pub count: u64,
}

/// The messages of calls with one name or tag.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Streams"))]
pub struct MessageBreakdown {
    /// Counts of messages.
    #[serde(flatten)]
    pub numbers: JsonGroupNumbers<places::Messages>,
    /// Messages a second, over the measured part.
    #[serde(rename = "messages_per_s")]
    pub per_s: f64,
    /// From sent to the first message.
    #[serde(rename = "first_message")]
    pub first: Option<Distribution>,
    /// From one message to the next.
    #[serde(rename = "message_gap")]
    pub gap: Option<Distribution>,
    /// From sent to the last message, of calls that were answered.
    #[serde(rename = "last_message")]
    pub last: Option<Distribution>,
    /// The mean time for a message after the first, a value for each such call.
    #[serde(rename = "each_message")]
    pub each: Option<Distribution>,
}

impl MessageBreakdown {
    fn new(calls: &CallFigures, seconds: f64) -> Option<Box<Self>> {
        let all = calls.messages();
        (!all.is_empty()).then(|| {
            Box::new(Self {
                numbers: JsonGroupNumbers::from_numbers(&calls.numbers),
                per_s: per_s(calls.numbers.get(Counter::EndedMessages), seconds),
                first: Distribution::from_durations(all.first()),
                gap: Distribution::from_durations(all.gap()),
                last: Distribution::of_known(all.last()),
                each: Distribution::of_known(all.each()),
            })
        })
    }
}

/// Knowledge about all calls of a run that helps to judge those with one name.
pub(crate) struct Whole<'a> {
    /// The dependence of response times; `None` if the run is too short.
    pub(crate) response: Option<Dependence>,
    /// The dependence of service times.
    pub(crate) service: Option<Dependence>,
    /// The generator's own delays in receiving that may be in times by name.
    pub(crate) delays: &'a Histogram,
}

impl Whole<'_> {
    fn distribution(&self, times: &Censored, dependence: Option<&Dependence>) -> Option<Distribution> {
        let sampling = dependence.map(|dependence| Sampling::Part(dependence, times.count()));
        Distribution::of_bracket(&Bracket::as_read(times), self.delays, sampling.as_ref())
    }
}

impl CallBreakdown {
    fn all(total: &NamedFigures<CallFigures>, ok: &OkStatus, seconds: f64, whole: &Whole<'_>) -> Vec<Self> {
        let of = |(name, calls): (&str, &CallFigures)| {
            let not_ok = calls.not_ok(ok);
            let not_ok_times = calls.response_not_ok();
            let are_apart = not_ok_times.count() > 0;
            let failures = calls.failures.counted();
            Self {
                name: name.to_owned(),
                due: calls.numbers.get(Counter::Due),
                answered: calls.statuses.total(),
                failed: calls.failures.total(),
                unfinished: calls.numbers.get(Counter::Unfinished),
                unsent: calls.numbers.get(Counter::Unsent),
                not_ok,
                error_rate: share(not_ok, calls.numbers.get(Counter::Due)),
                answered_per_s: per_s(calls.numbers.get(Counter::EndedAnswered), seconds),
                bytes_in: calls.numbers.get(Counter::ClearIn),
                bytes_out: calls.numbers.get(Counter::ClearOut),
                statuses: StatusCount::all(&calls.statuses),
                status_names: calls.status_names.shown(),
                failures: failures.map(|(failure, count)| NamedFailures { failure, count }).collect(),
                response: whole.distribution(&calls.response_times(), whole.response.as_ref()),
                service: whole.distribution(calls.times.get(Timing::Service), whole.service.as_ref()),
                response_ok: if are_apart { Distribution::of_known(&calls.response_ok()) } else { None },
                response_not_ok: Distribution::from_durations(&not_ok_times),
                messages: MessageBreakdown::new(calls, seconds),
            }
        };
        total.iter().map(of).collect()
    }
}

fn per_s(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

/// Groups with one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupBreakdown {
    /// Their name; `outer/inner` for groups within others.
    pub name: String,
    /// Groups that began.
    pub count: u64,
    /// Groups that an error ended.
    pub failed: u64,
    /// Groups that the run's end cut short.
    pub unfinished: u64,
    /// From beginning to end, with pauses.
    pub with_pauses: Option<Distribution>,
    /// The same without pauses.
    pub without_pauses: Option<Distribution>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Check"))]
pub struct CheckBreakdown {
    /// The call that it is about and its own name, or only its own name.
    #[serde(skip)]
    pub name: String,
    /// The name of the calls that it is about; `null` if it is not about calls.
    pub call: Option<String>,
    /// Its own name.
    pub check: String,
    /// How often it held.
    pub passes: u64,
    /// How often it did not hold.
    pub fails: u64,
    /// An answer for which it did not hold; `null` if it always held.
    pub example: Option<Example>,
    /// Calls in `fails` that the script itself failed for this reason (`answer:fail`); left out at 0.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub reasons: u64,
}

impl CheckBreakdown {
    /// Whether it is not a check, but a reason for which the script failed calls.
    pub fn is_reason(&self) -> bool {
        self.passes + self.fails == self.reasons
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_none_of_them(count: &u64) -> bool {
    *count == 0
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Scenario"))]
pub struct ScenarioBreakdown {
    /// Its name.
    pub name: String,
    /// Users that the warm-up left alive.
    pub users_before: u64,
    /// Users that were started in the measured part.
    pub users_started: u64,
    /// Users that ended.
    pub users_ended: u64,
    /// Users that arrived and found no place.
    pub not_admitted: u64,
    /// Users that ended because all rows of a queue were given out; left out if there are none.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub out_of_rows: u64,
    /// Iterations that came to their end.
    pub iterations: u64,
    /// Iterations that the run's or the user's end cut short.
    pub unfinished: u64,
    /// Iterations among those that came to their end in which a call was not ok; left out if there are none.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub not_ok: u64,
    /// Iterations that an error ended.
    pub errors: u64,
    /// How long iterations took.
    pub iteration: Option<Distribution>,
    /// What their errors said, most frequent first; of very many only some are kept.
    pub tracebacks: Vec<Traceback>,
}

/// An error's message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traceback {
    /// Its text and its place.
    pub traceback: String,
    /// The number of such errors.
    pub count: u64,
}

/// A figure of a script's or a protocol's own.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a figure's declaration")]
pub struct OwnBreakdown {
    /// Its name.
    pub name: String,
    /// The values recorded.
    pub figures: OwnFigures,
    /// A counter's sum for each second of the measured part.
    pub per_s: Option<f64>,
    /// Whether a report begins with it.
    pub leads: bool,
    /// Whether charts have it.
    pub is_drawn: bool,
    /// Whether it has a knee over the load.
    pub has_knee: bool,
    /// Whether only the whole report shows it.
    pub is_minor: bool,
}

/// A run's figures by name. All empty without scenarios.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Breakdown {
    /// Calls by name.
    pub requests: Vec<CallBreakdown>,
    /// Calls by tag.
    pub tags: Vec<CallBreakdown>,
    /// Groups.
    pub groups: Vec<GroupBreakdown>,
    /// Checks.
    pub checks: Vec<CheckBreakdown>,
    /// Scenarios.
    pub scenarios: Vec<ScenarioBreakdown>,
    /// Figures of the script's own.
    pub own: Vec<OwnBreakdown>,
    /// The kinds with more distinct names than are told apart: `requests`, `tags`, `groups`, `checks`, `scenarios`.
    pub crowded: Vec<&'static str>,
}

impl Breakdown {
    /// The figures of `run`, whose totals are `total`.
    pub(crate) fn new(plan: &Plan, run: &Recording, total: &Figures, whole: &Whole<'_>) -> Self {
        let (ok, seconds) = (&plan.ok_status, run.measured_ns as f64 / 1e9);
        Self {
            requests: CallBreakdown::all(&total.requests, ok, seconds, whole),
            tags: CallBreakdown::all(&total.tags, ok, seconds, whole),
            groups: groups(total),
            checks: checks(total),
            scenarios: scenarios(total),
            own: own(plan, total, seconds),
            crowded: crowded(total),
        }
    }
}

fn groups(total: &Figures) -> Vec<GroupBreakdown> {
    let groups = total.groups.iter().map(|(name, group)| GroupBreakdown {
        name: name.to_owned(),
        count: group.count(),
        failed: group.failed,
        unfinished: group.unfinished,
        with_pauses: Distribution::from_durations(&group.with_pauses),
        without_pauses: Distribution::from_durations(&group.without_pauses),
    });
    groups.collect()
}

fn checks(total: &Figures) -> Vec<CheckBreakdown> {
    let checks = total.checks.iter().map(|(name, check)| CheckBreakdown {
        name: name.to_owned(),
        call: check.call.clone(),
        check: check.check.clone(),
        passes: check.passes,
        fails: check.fails,
        example: check.example.clone(),
        reasons: check.reasons,
    });
    checks.collect()
}

/// A protocol's figures come in the order in which it declares them.
fn own(plan: &Plan, total: &Figures, seconds: f64) -> Vec<OwnBreakdown> {
    let per_s = |figures: &OwnFigures| figures.sum().filter(|_| seconds > 0.0).map(|sum| sum / seconds);
    let one = |(name, figures): (&str, &OwnFigures)| {
        let place = plan.own.iter().position(|figure| figure.is_called(name));
        let declared = place.and_then(|place| plan.own.get(place));
        let own = OwnBreakdown {
            name: name.to_owned(),
            figures: figures.clone(),
            per_s: per_s(figures),
            leads: declared.is_some_and(|figure| figure.leads),
            is_drawn: declared.is_some_and(|figure| figure.drawn),
            has_knee: declared.is_some_and(|figure| figure.has_knee),
            is_minor: declared.is_some_and(|figure| figure.minor),
        };
        (place.unwrap_or(usize::MAX), own)
    };
    let mut all: Vec<_> = total.own.iter().map(one).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, own)| own).collect()
}

fn scenarios(total: &Figures) -> Vec<ScenarioBreakdown> {
    let scenarios = total.scenarios.iter().map(|(name, scenario)| {
        let tracebacks = scenario.tracebacks.iter();
        let tracebacks = tracebacks.map(|(text, count)| Traceback { traceback: text.clone(), count: *count });
        let mut tracebacks: Vec<_> = tracebacks.collect();
        tracebacks.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.traceback.cmp(&b.traceback)));
        ScenarioBreakdown {
            name: name.to_owned(),
            users_before: scenario.users_before.max(0) as u64,
            users_started: scenario.users_started,
            users_ended: scenario.users_ended,
            not_admitted: scenario.not_admitted,
            out_of_rows: scenario.out_of_rows,
            iterations: scenario.iterations.known.count(),
            unfinished: scenario.iterations.bounds.count(),
            not_ok: scenario.not_ok,
            errors: scenario.errors,
            iteration: Distribution::from_durations(&scenario.iterations),
            tracebacks,
        }
    });
    scenarios.collect()
}

fn crowded(total: &Figures) -> Vec<&'static str> {
    fn is_crowded<T: FigureByName>(named: &NamedFigures<T>) -> bool {
        named.others().is_some()
    }
    let all = [
        ("requests", is_crowded(&total.requests)),
        ("tags", is_crowded(&total.tags)),
        ("groups", is_crowded(&total.groups)),
        ("checks", is_crowded(&total.checks)),
        ("scenarios", is_crowded(&total.scenarios)),
    ];
    all.into_iter().filter(|(_, crowded)| *crowded).map(|(what, _)| what).collect()
}

#[cfg(test)]
mod tests {
    use crate::fixtures::run;
    use crate::summary::Summary;

    #[test]
    fn rates_leave_the_drain_out_and_counts_do_not() {
        let (plan, mut run) = run();
        for snapshot in [&mut run.measured, &mut run.drained] {
            let home = snapshot.figures.requests.named("home");
            home.due();
            home.answered(404, 1_000_000, 900_000);
        }
        run.measured.count_ends(&plan.ok_status);
        let summary = Summary::new(plan, run);
        let [home] = &summary.breakdown.requests[..] else { panic!("{:?}", summary.breakdown) };
        assert_eq!((home.due, home.answered, home.not_ok), (2, 2, 2));
        assert!((home.answered_per_s - 0.5).abs() < 1e-9);
        assert!(summary.breakdown.crowded.is_empty());
    }

    #[test]
    fn too_many_names_are_told() {
        let (plan, mut run) = run();
        for i in 0..=brunt_record::figures::MOST_NAMES {
            run.measured.figures.requests.named(&format!("/{i}")).due();
        }
        assert_eq!(Summary::new(plan, run).breakdown.crowded, ["requests"]);
    }
}
