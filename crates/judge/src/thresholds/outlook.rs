//! Whether a threshold can still pass while the run goes on.
//!
//! It cannot if it would fail even with every future call perfect. The plan may say how many calls can still come: a
//! number of requests, a rate over time. Where it does not (the closed model, scenarios), twice as many are assumed as
//! the pace so far gives, for scenarios in proportion to the users still to come; so the conclusion is wrong only for a
//! run that becomes more than twice as fast. It can be drawn for upper limits on quantiles, means, maxima, error rates
//! and counts, for lower limits on checks, minima and rates, and for figures of the script's own, which are taken to be
//! recorded as often a call as so far. All other thresholds are judged at the end only.

use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::{Population, Scenarios, Step};
use brunt_plan::threshold::{Count, Figure, OfOwn, OfWatched, Operator, Statistic, Threshold, Time};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::figures::{OwnFigures, ScenarioFigures};
use brunt_record::histogram::{Censored, Histogram};
use brunt_record::snapshot::Snapshot;

use super::subject::{FigureSource, Share, Subject};

/// The factor on the pace so far that bounds the calls still to come, where nothing else does.
const MARGIN: f64 = 2.0;

/// The calls that may still come in a run under way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// The most calls that may still become due, or end after having begun in the warm-up; infinite if that is unknown.
    pub remaining_calls: f64,
    /// The length of the measured part, in nanoseconds, if only time ends it.
    pub planned_ns: Option<u64>,
}

impl Outlook {
    /// That of a run by `plan` of whose measured part `elapsed_ns` are over, in which this happened, and at whose end
    /// `users` virtual users are alive.
    pub fn new(plan: &Plan, elapsed_ns: u64, measured: &Snapshot, users: u64) -> Self {
        let due = measured.numbers.get(Counter::Due);
        if let Some(scenarios) = &plan.scenarios {
            let remaining_calls = remaining_of(scenarios, elapsed_ns, measured, users);
            return Self { remaining_calls, planned_ns: None };
        }
        let duration_ns = plan.duration_ns();
        let by_requests = plan.stop.requests.map(|requests| requests.saturating_sub(due) as f64);
        let by_time = duration_ns.map(|planned_ns| match &plan.load {
            Load::Open { profile, .. } => {
                let all = profile.calls_until(planned_ns as f64 / 1e9);
                // Random arrivals may be more than planned: six standard deviations more.
                (all + 6.0 * all.sqrt() - due as f64).max(0.0)
            }
            // The rest of a log is unknown.
            Load::Replay(_) => f64::INFINITY,
            Load::Closed {} => {
                let left = planned_ns.saturating_sub(elapsed_ns) as f64 / elapsed_ns.max(1) as f64;
                MARGIN * left * due as f64
            }
        });
        // Calls of the warm-up end in the measured time.
        let carried =
            if plan.warmup_ns > 0 { f64::from(plan.connections.most()) * f64::from(plan.pipeline.max(1)) } else { 0.0 };
        let remaining_calls = by_requests.unwrap_or(f64::INFINITY).min(by_time.unwrap_or(f64::INFINITY));
        Self {
            remaining_calls: remaining_calls + carried,
            planned_ns: if plan.stop.requests.is_some() { None } else { duration_ns },
        }
    }
}

/// The calls that virtual users may still make: users still to come and users who are there each make about as many as
/// an iteration took so far. Until an iteration has ended, that number is unknown.
fn remaining_of(scenarios: &Scenarios, elapsed_ns: u64, measured: &Snapshot, users: u64) -> f64 {
    let iterations = |name: &str| measured.figures.scenarios.get(name).map_or(0, ScenarioFigures::iterations_begun);
    let ended: u64 = measured.figures.scenarios.iter().map(|(_, of)| of.iterations.known.count()).sum();
    let all: u64 = ended + measured.figures.scenarios.iter().map(|(_, of)| of.errors).sum::<u64>();
    let share = |population: &Population| {
        let begun: u64 = population.scenarios.iter().map(|one| iterations(&one.scenario)).sum();
        share_done(population, elapsed_ns as f64 / 1e9, begun as f64)
    };
    let (following, first): (Vec<_>, Vec<_>) =
        scenarios.populations.iter().partition(|population| population.after.is_some());
    let done = first.into_iter().map(share).fold(1.0, f64::min);
    if done <= 0.0 || all == 0 {
        return f64::INFINITY;
    }
    // The beginning of populations that follow others is unknown: all of their load may be still to come.
    let took_ns: f64 = measured.figures.scenarios.iter().map(|(_, of)| sum_of(&of.iterations.known)).sum();
    let mean_s = took_ns / 1e9 / ended as f64;
    let to_come: f64 = following.into_iter().map(|population| iterations_of(population, mean_s)).sum();
    if to_come.is_nan() {
        return f64::INFINITY;
    }
    let due = measured.numbers.get(Counter::Due) as f64;
    MARGIN * (due * (1.0 - done) / done + (users as f64 + to_come) * due / all as f64)
}

/// All values of a histogram together.
fn sum_of(histogram: &Histogram) -> f64 {
    histogram.mean().map_or(0.0, |mean| mean * histogram.count() as f64)
}

/// The iterations of a population's whole load, at a mean of `mean_s` seconds for each.
fn iterations_of(population: &Population, mean_s: f64) -> f64 {
    let of = |step: &Step| match *step {
        Step::NothingFor { .. } => 0.0,
        Step::AtOnce { users } | Step::Peak { users, .. } => users,
        Step::Rate { from, to, seconds } => seconds * f64::midpoint(from, to),
        Step::Users { from, to, seconds } => seconds * f64::midpoint(from, to) / mean_s,
        Step::IterationsEach { users, iterations } => users * iterations,
        Step::IterationsShared { iterations, .. } => iterations,
    };
    population.steps.iter().map(of).sum()
}

/// The share of a population's load that is over after `seconds`, from 0 to 1.
fn share_done(population: &Population, seconds: f64, iterations: f64) -> f64 {
    let (mut done, mut all, mut begin) = (0.0, 0.0, population.start_seconds);
    for step in &population.steps {
        let length = step.seconds();
        let x = if length > 0.0 { ((seconds - begin) / length).clamp(0.0, 1.0) } else { 1.0 };
        let (so_far, whole) = match *step {
            Step::NothingFor { .. } => (0.0, 0.0),
            Step::AtOnce { users } => (if seconds >= begin { users } else { 0.0 }, users),
            Step::Rate { from, to, seconds } | Step::Users { from, to, seconds } => {
                (seconds * (from * x + (to - from) * x * x / 2.0), seconds * f64::midpoint(from, to))
            }
            Step::Peak { users, .. } => (users * x * x * (3.0 - 2.0 * x), users),
            Step::IterationsEach { users, iterations: each } => (iterations, users * each),
            Step::IterationsShared { iterations: shared, .. } => (iterations, shared),
        };
        done += so_far;
        all += whole;
        begin += length;
    }
    if all > 0.0 { (done / all).min(1.0) } else { 1.0 }
}

/// The bounds of a subject's figures at the end.
struct Reach<'a> {
    standing: &'a FigureSource<'a>,
    outlook: Outlook,
}

impl Reach<'_> {
    /// The highest value at the end of a count that is now `n`.
    fn most(&self, n: u64) -> f64 {
        // Events more frequent than calls (checks) are assumed to stay so.
        let a_call = (n as f64 / self.standing.total.numbers.get(Counter::Due).max(1) as f64).max(1.0);
        n as f64 + self.outlook.remaining_calls * a_call + self.standing.most_users as f64
    }

    /// The most values at the end of a script's own figure that now has `n`: as many more a call as so far.
    fn most_values(&self, n: u64) -> f64 {
        let is_of_calls = self.standing.total.numbers.get(Counter::Due) > 0;
        if is_of_calls { self.most(n) } else { f64::INFINITY }
    }

    /// The lowest value of a share at the end.
    fn least_share(&self, share: Share) -> f64 {
        share.part as f64 / self.most(share.whole).max(1.0)
    }
}

impl FigureSource<'_> {
    /// Whether `threshold` can hold no more, whatever comes: see the module's text.
    pub fn is_beyond_repair(&self, threshold: &Threshold, outlook: Outlook) -> bool {
        let Some(subject) = Subject::so_far(threshold, self) else { return false };
        let reach = Reach { standing: self, outlook };
        reach.breaks(threshold, subject).unwrap_or(false)
    }
}

impl Reach<'_> {
    /// Whether the threshold can no longer be met, whatever the rest of the run brings; `None` where its figure was not recorded.
    fn breaks(&self, threshold: &Threshold, subject: Subject<'_>) -> Option<bool> {
        let (standing, operator, limit) = (self.standing, threshold.operator(), threshold.limit());
        let from_above = matches!(operator, Operator::Below | Operator::AtMost);
        let from_below = matches!(operator, Operator::Above | Operator::AtLeast);
        // The extreme value at the end does not meet the limit.
        let breaks = |value: f64| !operator.holds_for(value, limit);
        Some(match threshold.measure() {
            // The number of messages of streams under way is unknown.
            Figure::Time(Time::Recorded(Timing::MessageGap), statistic)
                if !matches!(statistic, Statistic::Max | Statistic::Min) =>
            {
                false
            }
            Figure::Time(time, statistic) => {
                let times = subject.times(time, standing)?;
                // Calls that are under way may still be perfect.
                let under_way = standing.total.numbers.get(Counter::Due).saturating_sub(standing.total.ended());
                let most = self.most(times.count() + under_way);
                match statistic {
                    Statistic::Quantile(q) if from_above => above(&times, limit) as f64 > (1.0 - q) * most + 1e-6,
                    Statistic::Mean if from_above => {
                        let lower = times.lower();
                        breaks(lower.mean()? * lower.count() as f64 / most)
                    }
                    Statistic::Max if from_above => breaks(times.lower().max()? as f64),
                    Statistic::Min if from_below => breaks(times.min()? as f64),
                    _ => false,
                }
            }
            Figure::ErrorRate if !from_below => {
                let errors = subject.errors(standing)?;
                let least = self.least_share(errors);
                // No number of further calls takes a failure back.
                let is_above = least > limit || limit <= 0.0 && errors.part > 0;
                if operator == Operator::Equal { is_above } else { is_above || breaks(least) }
            }
            Figure::Within(limit_ns) if from_below => breaks(1.0 - self.least_share(subject.late(limit_ns, standing)?)),
            Figure::Checks if from_below => breaks(1.0 - self.least_share(subject.failed_checks(standing)?)),
            Figure::Own(of) => self.breaks_own(threshold, of, own_of(subject)?)?,
            Figure::Rate if own_of(subject).is_some() => self.breaks_own(threshold, OfOwn::Rate, own_of(subject)?)?,
            Figure::Rate => {
                let (so_far, seconds) = (subject.ended(standing)?, outlook_seconds(self.outlook)?);
                let most = self.most(so_far) / seconds;
                (from_above && breaks(so_far as f64 / seconds)) || (from_below && breaks(most))
            }
            // Counts that only grow have lower bounds.
            Figure::Count(count) if !from_below => {
                let n = subject.count(count, standing)? as f64;
                if operator == Operator::Equal { n > limit } else { breaks(n) }
            }
            Figure::Count(due @ Count::Recorded(Counter::Due)) => {
                breaks(subject.count(due, standing)? as f64 + self.most(0))
            }
            Figure::Watched(of) => {
                let Subject::Watched(watched) = subject else { return None };
                match of {
                    OfWatched::Max if from_above => breaks(watched.max()?),
                    OfWatched::Min if from_below => breaks(watched.min()?),
                    _ => false,
                }
            }
            _ => false,
        })
    }
}

/// The figure of the script's own that a subject is, if it is one.
fn own_of(subject: Subject<'_>) -> Option<&OwnFigures> {
    if let Subject::Own(own) = subject { Some(own) } else { None }
}

impl Reach<'_> {
    /// Whether `threshold` on a figure of the script's own can hold no more. Counters, and how often something was recorded, only grow.
    fn breaks_own(&self, threshold: &Threshold, of: OfOwn, own: &OwnFigures) -> Option<bool> {
        let (operator, limit) = (threshold.operator(), threshold.limit());
        let from_above = matches!(operator, Operator::Below | Operator::AtMost);
        let from_below = matches!(operator, Operator::Above | Operator::AtLeast);
        let breaks = |value: f64| !operator.holds_for(value, limit);
        let grown = |n: f64| !from_below && if operator == Operator::Equal { n > limit } else { breaks(n) };
        Some(match of {
            OfOwn::Count => grown(own.count as f64),
            OfOwn::Sum => grown(own.sum()?),
            OfOwn::Rate => grown(own.sum()? / outlook_seconds(self.outlook)?),
            OfOwn::Share => {
                let (held, most) = (own.share()? * own.count as f64, self.most_values(own.count));
                from_above && breaks(held / most) || from_below && breaks(1.0 - (own.count as f64 - held) / most)
            }
            OfOwn::Statistic(Statistic::Quantile(q)) if from_above => {
                own.above(limit) as f64 > (1.0 - q) * self.most_values(own.count) + 1e-6
            }
            OfOwn::Statistic(Statistic::Mean) if from_above => {
                breaks(own.mean()?.value * own.count as f64 / self.most_values(own.count))
            }
            OfOwn::Statistic(Statistic::Max) if from_above => breaks(own.max()?.value),
            OfOwn::Statistic(Statistic::Min) if from_below => breaks(own.min()?),
            OfOwn::Statistic(_) | OfOwn::Last => false,
        })
    }
}

fn outlook_seconds(outlook: Outlook) -> Option<f64> {
    outlook.planned_ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9)
}

/// How many of `times` are surely above `limit`.
fn above(times: &Censored, limit: f64) -> u64 {
    [&times.known, &times.failed, &times.bounds].iter().map(|times| times.count_above(limit as u64)).sum()
}

#[cfg(test)]
mod tests;
