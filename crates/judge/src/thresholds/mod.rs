//! Thresholds judged by the figures of a run, in the end or so far.

mod implicit;
mod outlook;
mod statistics;
mod subject;
mod values;

use std::fmt;

use brunt_plan::plan::Plan;
use brunt_plan::threshold::{Count, Figure, Guard, Statistic, Threshold, Time};
use brunt_plan::units::{Number, counted};
use brunt_plan::watch::shown_value;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::change::Change;
use brunt_record::histogram::{AtLeast, Histogram};
use brunt_record::instrument::least_without;
use brunt_record::recording::AbortCause;
use brunt_record::replayed;
use brunt_record::watched::WatchedFigure;
use serde::{Deserialize, Serialize};

use self::statistics::of_times;
use self::subject::Subject;
use crate::asked::{Asked, Made};
use crate::phrase::Phrase;
use crate::verdict::{Judgement, Verdict};

/// What is said of a figure that nothing was recorded of, where it holds then.
const NO_SAMPLES: &str = "no samples, so it holds";

pub use self::outlook::Outlook;
pub use self::subject::{FigureSource, due_ns};

/// A condition that a run has to meet.
#[derive(Debug, Clone, PartialEq)]
pub enum JudgedCondition {
    /// A threshold of the plan.
    Threshold(Threshold),
    /// An implicit threshold: it applies to every run whose plan does not say otherwise.
    Default(Threshold),
    /// A guard of the plan, which must not fire.
    Guard(Guard),
    /// A replay's `--fail-if`, which must not hold.
    FailIf(String),
    /// As much load of this kind as the plan asks for.
    Made(Asked),
}

impl JudgedCondition {
    /// The threshold, of the plan or implicit; `None` for other conditions.
    pub const fn threshold(&self) -> Option<&Threshold> {
        match self {
            Self::Threshold(threshold) | Self::Default(threshold) => Some(threshold),
            Self::Guard(_) | Self::FailIf(_) | Self::Made(_) => None,
        }
    }
}

impl fmt::Display for JudgedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threshold(threshold) | Self::Default(threshold) => f.write_str(threshold.to_string().trim()),
            Self::Guard(guard) => write!(f, "guard {guard}"),
            Self::FailIf(condition) => write!(f, "fail-if {condition}"),
            Self::Made(of) => write!(f, "as many {of} as asked"),
        }
    }
}

/// A condition with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "Written", try_from = "Written")]
pub struct ThresholdResult {
    /// The condition.
    pub condition: JudgedCondition,
    /// The figure of a threshold, in the unit of [`Threshold::limit`]: nanoseconds, a share from 0 to 1, bytes or a
    /// number. `null` where nothing was measured, and for other conditions.
    pub value: Option<AtLeast<f64>>,
    /// The figure, for people; with ≥ where it is a lower bound.
    pub got: Phrase,
    /// Whether it held. A threshold whose figure was not measured, or is a lower bound that leaves it open, did not
    /// hold.
    pub held: bool,
    /// Whether the generator's own delays cannot have decided it: the result is the same anywhere in the figure's
    /// instrument interval.
    pub sure: bool,
}

/// A result as JSON has it.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ThresholdResult"))]
struct Written {
    /// The kind of condition.
    kind: Kind,
    /// The condition as written; of `made`, the kind of load.
    threshold: String,
    /// The condition as brunt judges it, and its words, where `threshold` is in those of another tool; missing elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judged: Option<Threshold>,
    /// The figure of a threshold: nanoseconds, a share from 0 to 1, bytes or a number. `null` where nothing was measured, and
    /// for conditions without a figure.
    value: Option<AtLeast<f64>>,
    /// The figure, for people; with ≥ where it is a lower bound.
    got: Phrase,
    /// Whether it held. A threshold whose figure was not measured, or is a lower bound that leaves it open, did not
    /// hold.
    held: bool,
    /// Whether the generator's own delays cannot have decided it: the result is the same anywhere in the figure's
    /// instrument interval.
    sure: bool,
}

/// The kinds of conditions.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ConditionKind"))]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A threshold of the plan.
    Threshold,
    /// An implicit threshold, which applies to every run whose plan does not say otherwise.
    Default,
    /// A guard of the plan, which must not fire.
    Guard,
    /// A replay's `--fail-if`, which must not hold.
    FailIf,
    /// As much load as the plan asks for.
    Made,
}

impl From<ThresholdResult> for Written {
    fn from(result: ThresholdResult) -> Self {
        let ThresholdResult { condition, value, got, held, sure } = result;
        let judged = condition.threshold().filter(|threshold| threshold.judged().is_some()).cloned();
        let (kind, threshold) = match condition {
            JudgedCondition::Threshold(threshold) => (Kind::Threshold, threshold.to_string()),
            JudgedCondition::Default(threshold) => (Kind::Default, threshold.to_string()),
            JudgedCondition::Guard(guard) => (Kind::Guard, guard.to_string()),
            JudgedCondition::FailIf(condition) => (Kind::FailIf, condition),
            JudgedCondition::Made(of) => (Kind::Made, of.name().to_owned()),
        };
        Self { kind, threshold, judged, value, got, held, sure }
    }
}

impl TryFrom<Written> for ThresholdResult {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { kind, threshold, judged, value, got, held, sure } = written;
        let condition = match kind {
            Kind::Threshold => {
                JudgedCondition::Threshold(judged.map_or_else(|| threshold.try_into().map_err(said), Ok)?)
            }
            Kind::Default => JudgedCondition::Default(threshold.try_into().map_err(said)?),
            Kind::Guard => JudgedCondition::Guard(threshold.try_into().map_err(said)?),
            Kind::FailIf => JudgedCondition::FailIf(threshold),
            Kind::Made => JudgedCondition::Made(
                Asked::named(&threshold).ok_or_else(|| format!("expected a kind of load, got '{threshold}'"))?,
            ),
        };
        Ok(Self { condition, value, got, held, sure })
    }
}

fn said(error: impl fmt::Display) -> String {
    error.to_string()
}

impl ThresholdResult {
    /// The result of `threshold` for a finished run. Its `verdict` decides whether the result is sure.
    pub fn evaluate(threshold: &Threshold, standing: &FigureSource<'_>, verdict: &Verdict) -> Self {
        let result = standing.judge(threshold);
        let sure = is_sure(threshold, standing, verdict, result.held);
        Self { sure, ..result }
    }

    /// Whether it is implicit.
    pub const fn is_implicit(&self) -> bool {
        matches!(self.condition, JudgedCondition::Default(_))
    }

    /// Every threshold of a finished run by `plan`, with its result: those of the plan in their order, its guards, then
    /// implicit ones. `changes` are those that guards have made. The threshold that aborted the run has failed, whatever
    /// its figure is now.
    pub fn all(
        plan: &Plan,
        standing: &FigureSource<'_>,
        verdict: &Verdict,
        aborted: Option<&AbortCause>,
        changes: &[Change],
    ) -> Vec<Self> {
        let is_culprit = |at: u32| matches!(aborted, Some(AbortCause::Threshold { place, .. }) if *place == at);
        let written = (0..).zip(&plan.thresholds).map(|(at, threshold)| {
            let result = Self::evaluate(threshold, standing, verdict);
            if is_culprit(at) { Self { held: false, sure: true, ..result } } else { result }
        });
        let implicit = implicit::thresholds(plan, standing).into_iter();
        let implicit = implicit.map(|threshold| {
            let result = Self::evaluate(&threshold, standing, verdict);
            Self { condition: JudgedCondition::Default(threshold), ..result }
        });
        let guards = (0..).zip(&plan.guards).map(|guard| Self::of_guard(guard, standing, aborted, changes));
        written.chain(guards).chain(implicit).collect()
    }

    /// The result of a load of which less was made than `plan` allows; `None` where it was enough, or where a threshold
    /// of the plan limits it.
    pub(crate) fn of_made(plan: &Plan, made: &Made) -> Option<Self> {
        let is_said = plan.thresholds.iter().any(|threshold| {
            let Figure::Count(count) = threshold.measure() else { return false };
            match made.of {
                Asked::Calls | Asked::Requests => count == Count::Recorded(Counter::Due),
                Asked::Arrivals | Asked::UserSeconds => matches!(count, Count::NotAdmitted | Count::UsersStarted),
                Asked::Iterations => count == Count::Iterations,
                Asked::Steps | Asked::Level => false,
            }
        });
        (made.is_short(plan.max_less_ratio) && !is_said).then(|| Self {
            condition: JudgedCondition::Made(made.of),
            value: Some(AtLeast::exactly(made.share())),
            got: format!("{} of {}", Number(made.made), Number(made.asked)).into(),
            held: false,
            sure: true,
        })
    }

    /// The result of a replay's `--fail-if`.
    pub(crate) fn of_condition(condition: &replayed::ReplayCondition) -> Self {
        let replayed::ReplayCondition { condition, holds, got } = condition;
        let condition = JudgedCondition::FailIf(condition.clone());
        Self { condition, value: None, got: got.clone().into(), held: !holds, sure: true }
    }

    /// Whether it gets a line: it is explicit, or it failed.
    pub fn is_noted(&self) -> bool {
        !self.is_implicit() || !self.held
    }
}

impl FigureSource<'_> {
    /// A figure of all calls; `None` if it was not measured.
    pub fn figure(&self, figure: Figure) -> Option<AtLeast<f64>> {
        Subject::All.value(figure, self).ok()?
    }

    /// The figure of `threshold`, in the unit of [`Threshold::limit`]; `None` if it was not measured.
    pub fn value(&self, threshold: &Threshold) -> Option<AtLeast<f64>> {
        Subject::from_threshold(threshold, self).ok()?.value(threshold.measure(), self).ok()?
    }

    /// The result of a guard with this condition that did not fire, and whether it held. A guard whose figure never had
    /// a value could not fire; it has failed, as a threshold on that figure has.
    pub(crate) fn did_not_fire(&self, condition: &Threshold) -> (String, bool) {
        let watched = match Subject::from_threshold(condition, self) {
            Err(why) => return (why, false),
            Ok(Subject::Watched(watched)) => watched,
            Ok(_) => return ("did not fire".to_owned(), true),
        };
        match gaps(watched) {
            None => ("did not fire".to_owned(), true),
            Some(gaps) if watched.seconds == 0 => (format!("could not fire: {gaps}"), false),
            Some(gaps) => (format!("did not fire; {gaps}"), is_mostly_known(watched)),
        }
    }

    /// Whether `threshold` holds for certain.
    pub fn judge(&self, threshold: &Threshold) -> ThresholdResult {
        let (figure, subject) = (threshold.measure(), Subject::from_threshold(threshold, self));
        let value = subject.as_ref().ok().and_then(|subject| subject.value(figure, self).ok()?);
        let got = match (value, &subject) {
            (Some(value), Ok(Subject::Watched(watched))) => {
                let value = shown_value(watched.unit, value.value);
                gaps(watched).map_or_else(|| value.clone(), |gaps| format!("{value}; {gaps}"))
            }
            (None, Ok(Subject::Watched(_))) => "no value".to_owned(),
            (Some(value), Ok(subject)) => {
                let few = subject.few(figure, self).map_or(String::new(), |few| format!(" of {few}"));
                format!("{}{}{few}", if value.at_least { "≥" } else { "" }, figure.unit().show(value.value))
            }
            (_, Err(why)) => why.clone(),
            (None, Ok(Subject::Unrecorded(declared))) if declared.holds_unrecorded => NO_SAMPLES.to_owned(),
            (None, Ok(Subject::Unrecorded(_))) => "no samples".to_owned(),
            (None, Ok(subject)) if subject.is_by_status() => "no answer has this status".to_owned(),
            (None, Ok(_)) => "nothing measured".to_owned(),
        };
        let holds = |value: Option<AtLeast<f64>>| {
            value.is_some_and(|value| threshold.operator().holds(value, threshold.limit()))
        };
        let is_known = !matches!(&subject, Ok(Subject::Watched(watched)) if !is_mostly_known(watched));
        let is_excused = matches!(&subject, Ok(Subject::Unrecorded(declared)) if declared.holds_unrecorded);
        let held = (holds(value) || is_excused) && is_known;
        // A threshold that held shows no value that breaks it, such as the 0 of a counter.
        let got = if is_excused && !holds(value) { NO_SAMPLES.to_owned() } else { got };
        // Where failed calls decide, the reader has to see it.
        let ended = figure.of_ended().filter(|_| value.is_some()).zip(subject.as_ref().ok());
        let ended = ended.and_then(|(ended, subject)| Some((ended, subject.value(ended, self).ok()??)));
        let got = match ended.filter(|(_, value)| holds(Some(*value)) != held) {
            Some((_, value)) => {
                format!("{got}; {} if failed calls count with the time they took", figure.unit().show(value.value))
            }
            None => got,
        };
        ThresholdResult {
            condition: JudgedCondition::Threshold(threshold.clone()),
            value,
            got: got.into(),
            held,
            sure: true,
        }
    }
}

/// Whether a watched figure had a value in at least half of the seconds. Thresholds and guards on any other fail: a process
/// that ended early uses no memory.
const fn is_mostly_known(watched: &WatchedFigure) -> bool {
    watched.missed <= watched.seconds
}

/// In how many seconds a watched figure had no value; `None` if it always had one.
fn gaps(watched: &WatchedFigure) -> Option<String> {
    let seconds = counted(watched.seconds + watched.missed, "second");
    (watched.missed > 0).then(|| format!("no value in {} of {seconds}", watched.missed))
}

/// Whether `threshold` comes out as `held` wherever the generator's own part lies.
fn is_sure(threshold: &Threshold, standing: &FigureSource<'_>, verdict: &Verdict, held: bool) -> bool {
    let total = standing.total;
    if total.statuses.total() == 0 || threshold.subject().is_some() {
        return true;
    }
    if !held && total.numbers.get(Counter::Unknown) > 0 && could_be_known_to_hold(threshold, standing) {
        return false;
    }
    let (bracket, lag, statistic) = match threshold.measure() {
        Figure::Time(Time::Usual | Time::Recorded(Timing::Response), statistic) => {
            (total.response_bracket(), total.times.known(Timing::Lag).clone(), statistic)
        }
        Figure::Time(Time::Recorded(Timing::Service), statistic) => {
            (total.service_bracket(), Histogram::new(), statistic)
        }
        // The rate answered is the least that could have been.
        Figure::Rate => return held || verdict.judgement != Judgement::GeneratorBound,
        // Calls that were not sent for want of ports are the generator's failures.
        Figure::ErrorRate => return held || verdict.is_load_as_asked || is_decided_by_answers(threshold, standing),
        Figure::Count(Count::Recorded(Counter::Unsent)) => return held || verdict.is_load_as_asked,
        _ => return true,
    };
    let low = match statistic {
        Statistic::Quantile(q) if !bracket.knows_receiving => {
            let at_least = of_times(statistic, &bracket.low).is_some_and(|value| value.at_least);
            least_without(&bracket.low, &lag, q).map(|ns| AtLeast { value: ns as f64, at_least })
        }
        _ => of_times(statistic, &bracket.low),
    };
    let ends = [low, of_times(statistic, &bracket.high)];
    ends.into_iter().flatten().all(|end| threshold.operator().holds(end, threshold.limit()) == held)
}

/// Whether a threshold on the share of errors fails by answers alone that no load makes: HTTP's statuses from 300 to 499 but for
/// those that tell of one (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4).
fn is_decided_by_answers(threshold: &Threshold, standing: &FigureSource<'_>) -> bool {
    let statuses = standing.total.statuses.sorted();
    let is_loads = |status: u16| !(300..=499).contains(&status) || matches!(status, 408 | 425 | 429);
    let refused = statuses.into_iter().filter(|(status, _)| !is_loads(*status) && !standing.ok.holds(*status));
    let least = refused.map(|(_, calls)| calls).sum::<u64>() as f64 / standing.total.due().max(1) as f64;
    !threshold.operator().holds(AtLeast::exactly(least), threshold.limit())
}

/// Whether a failed threshold could hold if the fate of lost agents' calls were known.
fn could_be_known_to_hold(threshold: &Threshold, standing: &FigureSource<'_>) -> bool {
    let total = standing.total;
    let holds = |value: f64| threshold.operator().holds(AtLeast { value, at_least: false }, threshold.limit());
    let unknown = total.numbers.get(Counter::Unknown);
    match threshold.measure() {
        // In the best case all of them were answered well.
        Figure::ErrorRate => {
            let failed = total.not_ok(standing.ok).saturating_sub(unknown);
            holds(failed as f64 / total.due().max(1) as f64)
        }
        Figure::Rate => holds(standing.per_s(total.numbers.ended_ok() + unknown)),
        Figure::Time(_, statistic) => {
            of_times(statistic, &total.response_bracket().value).is_some_and(|value| holds(value.value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::outcome::Failure;

    use super::*;
    use crate::fixtures::{run, summary};
    use crate::summary::Summary;

    fn judged(text: &str, summary: &Summary) -> ThresholdResult {
        ThresholdResult::evaluate(&text.parse().unwrap(), &summary.standing(), &summary.verdict)
    }

    fn judge(text: &str) -> (String, bool) {
        let result = judged(text, &summary());
        (result.got.to_string(), result.held)
    }

    #[test]
    fn figures_are_judged_in_their_units() {
        for (text, got, held) in [
            ("p99 < 50ms", "1.00ms", true),
            ("p99.99<50ms", "≥2.00s of 2,000 calls", false),
            ("service.min<=900us", "900.0µs", true),
            ("max>1s", "2.00s", true),
            ("error_rate<=0.1%", "0.1%", true),
            ("error_rate < 0.05%", "0.1%", false),
            ("rate >= 990", "999/s", true),
            ("timeout==1", "1", true),
            ("closed<1", "0", true),
            ("unsent==0", "0", true),
            ("tls.p99<1s", "nothing measured", false),
            ("home:p99<1s", "nothing has the name 'home'", false),
        ] {
            assert_eq!(judge(text), (got.to_owned(), held), "{text}");
        }
    }

    #[test]
    fn figures_of_a_scripts_own_are_judged_in_their_units() {
        use brunt_record::figures::OwnKind;
        let (plan, mut run) = run();
        let seconds = run.measured_ns as f64 / 1e9;
        for (name, kind, values) in [
            ("coins", OwnKind::Counter, &[1.5, 2.5][..]),
            ("hits", OwnKind::Rate, &[1.0, 1.0, 0.0, 1.0]),
            ("basket", OwnKind::Trend, &[10.0, 20.0, 90.0]),
            ("queue", OwnKind::Gauge, &[4.0, 9.0, 7.0]),
        ] {
            let own = run.measured.figures.own.named(name);
            *own = brunt_record::figures::OwnFigures::new(kind, "");
            values.iter().enumerate().for_each(|(at, value)| own.record(*value, at as u64));
        }
        let summary = Summary::new(plan, run);
        for (text, got, held) in [
            ("coins:sum >= 4", "4", true),
            ("figure coins:rate > 100", &Number(4.0 / seconds).to_string(), false),
            ("hits:share >= 75%", "75%", true),
            ("basket:mean < 41", "40", true),
            ("basket:max <= 89", "90", false),
            ("queue:last == 7", "7", true),
            ("queue:count == 3", "3", true),
            ("basket:p95 < 100", "90 of 3 values", true),
            ("queue:sum > 1", "a gauge has no such figure", false),
            ("basket:p99 < 50ms", "a trend has no such figure", false),
        ] {
            let result = judged(text, &summary);
            assert_eq!((result.got.to_string().as_str(), result.held), (got, held), "{text}");
        }
    }

    #[test]
    fn a_figure_of_a_scripts_own_without_values_is_nothing_and_not_missing() {
        use brunt_plan::scenario::{DeclaredFigure, Scenarios};
        use brunt_record::figures::OwnKind;
        let (plan, run) = run();
        let own = [
            ("coins", OwnKind::Counter),
            ("hits", OwnKind::Rate),
            ("basket", OwnKind::Trend),
            ("queue", OwnKind::Gauge),
        ];
        let scenarios = serde_json::json!({"files": [], "populations": []});
        let scenarios = Scenarios {
            own: own.map(|(name, kind)| DeclaredFigure::new(name, kind, "")).into(),
            ..serde_json::from_value(scenarios).unwrap()
        };
        let summary = Summary::new(Plan { scenarios: Some(scenarios), ..plan }, run);
        for (text, got, held) in [
            ("coins:sum == 0", "0", true),
            ("coins:rate > 1", "0/s", false),
            ("hits:share < 1%", "0%", true),
            ("hits:share > 95%", "0%", false),
            ("basket:p95 < 9", "no samples", false),
            ("basket:count > 0", "0", false),
            ("queue:last < 9", "no samples", false),
            ("basket:sum < 9", "a trend has no such figure", false),
        ] {
            let result = judged(text, &summary);
            assert_eq!((result.got.to_string().as_str(), result.held), (got, held), "{text}");
        }
    }

    #[test]
    fn a_bound_from_below_holds_nothing_up() {
        let (plan, mut run) = run();
        run.drained.numbers.set(Counter::Unfinished, 100);
        run.drained.times.record_bounds(Timing::Response, 10_000, 100);
        let summary = Summary::new(plan, run);
        let held = |text: &str| judged(text, &summary);
        assert!(!held("p99<50ms").held);
        assert!(held("p99<50ms").value.is_some_and(|value| value.at_least));
        assert!(held("p50<50ms").held);
    }

    /// Of so many calls, answers with a status, each after so many ns.
    fn answered(calls: &[(u64, u16, u64)]) -> Summary {
        let (plan, mut run) = run();
        run.measured =
            brunt_record::snapshot::Snapshot::with_numbers([(Counter::Due, calls.iter().map(|(n, ..)| n).sum())]);
        for &(n, status, ns) in calls {
            (0..n).for_each(|_| run.measured.statuses.record(status));
            run.measured.times.record_n(Timing::Response, ns, n);
            if status >= 400 {
                run.measured.times.record_n(Timing::Refused, ns, n);
            }
        }
        run.measured.count_ends(&plan.ok_status);
        Summary::new(plan, run)
    }

    #[test]
    fn failures_neither_flatter_a_percentile_nor_vanish_from_it() {
        let fast = answered(&[(900, 200, 1_000_000), (10, 200, 100_000_000), (90, 429, 10_000)]);
        let slow = answered(&[(970, 200, 1_000_000), (30, 504, 1_000_000_000)]);
        for (summary, text, got, held) in [
            (&fast, "p99<50ms", "100.0ms; 1.00ms if failed calls count with the time they took", false),
            (&fast, "ok.p99<50ms", "100.0ms", false),
            (&fast, "all.p99<50ms", "1.00ms", true),
            (&fast, "failed.p99<50ms", "10.00µs of 90 calls", true),
            (&fast, "within(50ms)>=90%", "90%", true),
            (&fast, "within(50ms)>90%", "90%", false),
            (&fast, "min<1ms", "10.00µs", true),
            (&slow, "p99<50ms", "≥1.00s", false),
            (&slow, "p97<50ms", "1.00ms", true),
            (&slow, "ok.p99<50ms", "1.00ms", true),
            (&slow, "mean<50ms", "30.97ms", true),
            (&slow, "within(2s)>97%", "97%", false),
        ] {
            let result = judged(text, summary);
            assert_eq!((result.got.to_string().as_str(), result.held), (got, held), "{text}");
        }
    }

    #[test]
    fn a_latency_does_not_hold_when_nothing_was_answered() {
        let (plan, mut run) = run();
        run.measured = brunt_record::snapshot::Snapshot::with_numbers([(Counter::Due, 1)]);
        run.measured.failures.record(Failure::Connect, "connection refused");
        run.measured.times.record(Timing::Response, 30_000);
        let result = judged("p99<50ms", &Summary::new(plan, run));
        assert_eq!((result.got.to_string().as_str(), result.held), ("nothing measured", false));
    }

    #[test]
    fn own_delays_that_could_decide_a_threshold_make_it_unsure() {
        use brunt_record::instrument::{ArrivalTime, CallTimes};
        let (plan, mut run) = run();
        // Of 2,000 calls 40 were sent 5 ms late; the target took 1 ms.
        for i in 0..2000 {
            let sent = if i < 40 { 5_000_000 } else { 0 };
            let at = sent + 1_000_000;
            let call = CallTimes {
                due: 0,
                ready: 0,
                sent,
                exposed: u64::MAX,
                first_byte: Some(at),
                arrived: ArrivalTime::At(at),
                read: at + 9,
            };
            run.measured.arrived(&call, 1);
        }
        let summary = Summary::new(plan, run);
        for (text, held, sure) in [
            ("p99 < 50ms", true, true),
            ("p99 < 4ms", true, false),
            ("p99 < 900us", false, true),
            ("p50 < 4ms", true, true),
            ("service.p99 < 4ms", true, true),
            ("max<4ms", true, false),
            ("error_rate<1%", true, true),
        ] {
            let result = judged(text, &summary);
            assert_eq!((result.held, result.sure), (held, sure), "{text}: {result:?}");
        }
    }

    #[test]
    fn answers_that_no_load_makes_are_sure_however_late_calls_were() {
        let refused = |status: u16| {
            let (plan, mut run) = run();
            let mut other = brunt_record::snapshot::Snapshot::with_numbers([(Counter::Due, 100)]);
            (0..100).for_each(|_| other.statuses.record(status));
            run.measured = other;
            let mut summary = Summary::new(plan, run);
            summary.verdict.is_load_as_asked = false;
            let result = judged("error_rate<1%", &summary);
            (result.held, result.sure)
        };
        assert_eq!([401, 404, 422].map(refused), [(false, true); 3]);
        assert_eq!([429, 503, 408].map(refused), [(false, false); 3], "a burst of brunt's own may have made them");
    }

    /// One user, who was at home and in the cart.
    fn with_names() -> Summary {
        let (plan, mut run) = run();
        let figures = &mut run.measured.figures;
        for (name, ms) in [("home", 5), ("a<b>=c", 5), ("cart/:id", 20), ("cart", 30)] {
            let calls = figures.requests.named(name);
            calls.due();
            calls.answered(200, ms * 1_000_000, ms * 1_000_000);
        }
        figures.tags.named("plan=pro").failed(Failure::Timeout, 7, None);
        figures.tags.named("plan=pro").due();
        figures.groups.named("cart").ended(900_000_000, 50_000_000, true);
        figures.checks.named("home: 200").passed(Some("home"), "200");
        figures.checks.named("cart: 200").failed(Some("cart"), "200", Default::default);
        let scenario = figures.scenarios.named("shop");
        (scenario.users_started, scenario.not_admitted) = (3, 1);
        scenario.iteration(1_000_000_000);
        scenario.script_error("oh");
        run.measured.count_ends(&plan.ok_status);
        Summary::new(plan, run)
    }

    #[test]
    fn everything_that_has_a_name_can_be_limited() {
        let summary = with_names();
        for (text, got, held) in [
            ("home:p95<10ms", "5.00ms of 1 call", true),
            ("a<b>=c:p95<=10ms", "5.00ms of 1 call", true),
            ("cart/:id:p95 < 10ms", "20.00ms of 1 call", false),
            ("cart:p95<40ms", "30.00ms of 1 call", true),
            ("group cart:p95<40ms", "50.00ms of 1 iteration", false),
            ("cart:with_pauses.p95<1s", "900.0ms of 1 iteration", true),
            ("plan=pro:error_rate<1%", "100%", false),
            ("tag plan=pro:timeout==1", "1", true),
            ("plan=pro:p95<1s", "nothing measured", false),
            ("home: 200:checks>99%", "100%", true),
            ("cart:checks>99%", "0%", false),
            ("checks>=50%", "50%", true),
            ("fails==1", "1", true),
            ("shop:iterations>=2", "2", true),
            ("shop:error_rate<60%", "50%", true),
            ("shop:p50<2s", "1.00s of 1 iteration", true),
            ("iteration.p50<2s", "1.00s of 1 iteration", true),
            ("not_admitted==0", "1", false),
            ("users_started==3", "3", true),
            ("script_errors==0", "1", false),
            ("home:within(10ms)>99%", "100%", true),
            ("cart/:id:within(10ms)>99%", "0%", false),
            ("plan=pro:within(1s)>99%", "0%", false),
            ("group cart:within(1s)>99%", "a group has no such figure", false),
            ("home:rate>0.4", "0.50/s", true),
            ("home:tls.p99<1s", "a request has no such figure", false),
            ("group home:p99<1s", "no group has the name 'home'; did you mean the request 'home'?", false),
            ("Home:p99<1s", "nothing has the name 'Home'; did you mean the request 'home'?", false),
            ("shpo:iterations>=1", "nothing has the name 'shpo'; did you mean the scenario 'shop'?", false),
            ("checkout:p99<1s", "nothing has the name 'checkout'", false),
            ("\"a<b>=c\":p95<=10ms", "5.00ms of 1 call", true),
        ] {
            let result = judged(text, &summary);
            assert_eq!((result.got.to_string(), result.held), (got.to_owned(), held), "{text}");
        }
    }

    /// A decision is read back from its file with the conditions of its runs, whatever words they are shown in.
    #[test]
    fn a_condition_in_another_tools_words_is_read_back() {
        let words = brunt_plan::threshold::ForeignCondition {
            figure: "http_reqs: count".to_owned(),
            condition: ">3".to_owned(),
        };
        let threshold = "figure http_reqs:sum > 3".parse::<Threshold>().unwrap().in_words(words);
        let result = ThresholdResult {
            condition: JudgedCondition::Threshold(threshold),
            value: None,
            got: Phrase::from("4".to_owned()),
            held: true,
            sure: true,
        };
        let json = serde_json::to_string(&result).unwrap();
        assert!(json.contains("\"threshold\":\"http_reqs: count>3\""), "{json}");
        assert_eq!(serde_json::from_str::<ThresholdResult>(&json).unwrap(), result);
    }
}
