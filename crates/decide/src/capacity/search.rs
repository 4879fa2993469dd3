//! Which rate is tried next.

use std::collections::BTreeMap;

use brunt_judge::asked::Asked;
use brunt_judge::thresholds::JudgedCondition;
use brunt_record::histogram::AtLeast;

use super::{Answer, Length, Next, Outcome, Searched, Settings, Trial, Unjudged};
use crate::evidence::Evidence;

/// The most trials: after this many without an answer, the target is not steady enough for one.
const MOST_TRIALS: usize = 100;
/// Attempts at a spoiled trial before the search goes on as if its rate was too high.
const MOST_ATTEMPTS: u32 = 3;
/// Spoiled trials in all after which the search is given up: on a machine that others use, more of them say no more.
const MOST_SPOILED_IN_ALL: usize = 14;
/// Spoiled trials at a deciding rate after which the generator counts as the limit.
const MOST_SPOILED: u32 = 5;
/// Steps between met and failed from which on trials are short.
const FAR: i32 = 8;
/// The share of calls waiting for a connection from which on connections may be the limit.
const WAITING: f64 = 0.1;
/// A target at its limit takes at least this many times as long for a call as one that is not.
const SLOWER: f64 = 1.5;

/// What was seen at one rate, in trials of one length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    met: u32,
    failed: u32,
    spoiled: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Met,
    Failed,
    Doubtful,
}

impl Tally {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Met => self.met += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Spoiled => self.spoiled += 1,
        }
    }

    fn status(self) -> Option<Status> {
        match (self.met > 0, self.failed > 0) {
            (true, true) => Some(Status::Doubtful),
            (true, false) => Some(Status::Met),
            (false, true) => Some(Status::Failed),
            // Where the generator cannot, no higher rate can be known either.
            (false, false) => (self.spoiled > 0).then_some(Status::Failed),
        }
    }

    /// Whether the generator is the reason for which nothing is known.
    fn is_spoiled(self) -> bool {
        self.spoiled >= MOST_SPOILED && self.spoiled > self.met + self.failed
    }
}

/// What was seen at each rate.
#[derive(Debug, Default)]
struct RateTallies {
    short: BTreeMap<i32, Tally>,
    full: BTreeMap<i32, Tally>,
}

impl RateTallies {
    fn from_trials(trials: &[Trial]) -> Self {
        let mut seen = Self::default();
        for trial in trials {
            let tallies = match trial.length {
                Length::Short => &mut seen.short,
                Length::Full => &mut seen.full,
            };
            tallies.entry(trial.step).or_default().add(trial.outcome);
        }
        seen
    }

    fn tally(&self, step: i32, length: Length) -> Tally {
        let tallies = match length {
            Length::Short => &self.short,
            Length::Full => &self.full,
        };
        tallies.get(&step).copied().unwrap_or_default()
    }

    fn full(&self, step: i32) -> Tally {
        self.tally(step, Length::Full)
    }

    /// The result of trials of full length, or of short ones before the first of those.
    fn status(&self, step: i32) -> Option<Status> {
        self.full(step).status().or_else(|| self.tally(step, Length::Short).status())
    }

    fn steps(&self) -> Vec<i32> {
        let mut steps: Vec<_> = self.short.keys().chain(self.full.keys()).copied().collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// The lowest step with a trial that was not met.
    fn lowest_failed(&self) -> Option<i32> {
        self.steps().into_iter().find(|step| self.status(*step) != Some(Status::Met))
    }

    /// The highest step below every step with a trial that was not met.
    fn highest_met(&self) -> Option<i32> {
        let failed = self.lowest_failed().unwrap_or(i32::MAX);
        self.steps().into_iter().rfind(|step| *step < failed)
    }

    /// The highest step below `step` that was met.
    fn met_below(&self, step: i32) -> Option<i32> {
        self.steps().into_iter().rfind(|below| *below < step && self.status(*below) == Some(Status::Met))
    }

    /// The first step from `from` on that was never met. Each step in doubt makes the next stride longer, so that a
    /// wide range of doubt is soon crossed.
    fn never_met_from(&self, from: i32) -> i32 {
        let (mut step, mut stride) = (from, 0);
        while matches!(self.status(step), Some(Status::Met | Status::Doubtful)) {
            stride += 1;
            step += stride;
        }
        step
    }
}

/// What to do after `trials`, which are in the order of time.
pub fn next(settings: &Settings, trials: &[Trial]) -> Next {
    if let Some(answer) = silence(trials) {
        return Next::Done(answer);
    }
    if trials.iter().all(measures_nothing)
        && let Some(last) = trials.last()
    {
        return match last.length {
            Length::Short => Next::Try { step: last.step, length: Length::Full },
            Length::Full => Next::Done(unjudged(trials).unwrap_or(Answer::BelowAll { level: last.level })),
        };
    }
    let seen = RateTallies::from_trials(trials);
    let met = seen.highest_met();
    if trials.len() >= MOST_TRIALS {
        return Next::Done(Answer::Unsteady { met: met.map(|step| settings.level(step)) });
    }
    if let Some(last) = trials.last().filter(|last| last.outcome == Outcome::Spoiled) {
        let spoiled = trials.iter().filter(|trial| trial.outcome == Outcome::Spoiled).count();
        if spoiled >= MOST_SPOILED_IN_ALL {
            return Next::Done(generator(settings, seen.met_below(last.step), last.step, trials));
        }
        // A trial that was spoiled once may succeed the next time, unless all attempts at another rate were in vain.
        let tally = seen.tally(last.step, last.length);
        let is_known = seen.short.values().chain(seen.full.values()).any(|tally| tally.spoiled >= MOST_ATTEMPTS);
        if tally.met + tally.failed == 0 && !is_known {
            return Next::Try { step: last.step, length: last.length };
        }
    }
    let (top, bottom) = (settings.top(), settings.bottom());
    match (met, seen.lowest_failed()) {
        (None, None) => Next::Try { step: 0, length: Length::Short },
        (Some(met), None) if met < top => Next::Try { step: settings.doubled(met).min(top), length: Length::Short },
        (Some(met), None) if seen.full(met).met < settings.repeats => Next::Try { step: met, length: Length::Full },
        (Some(met), None) => Next::Done(Answer::AtLeast { level: settings.level(met) }),
        (None, Some(failed)) if failed > bottom => {
            Next::Try { step: settings.halved(failed).max(bottom), length: Length::Short }
        }
        (None, Some(failed)) => at_bottom(settings, &seen, failed, trials),
        (Some(met), Some(failed)) if failed - met > 1 => {
            let length = if failed - met > FAR { Length::Short } else { Length::Full };
            Next::Try { step: met + (failed - met) / 2, length }
        }
        (Some(met), Some(failed)) => at_edge(settings, &seen, met, failed, trials),
    }
}

/// The answer where the target does not answer at all.
fn silence(trials: &[Trial]) -> Option<Answer> {
    let [.., before, last] = trials else { return None };
    if before.evidence.is_answered() || last.evidence.is_answered() {
        return None;
    }
    if trials.iter().any(|trial| trial.evidence.is_answered()) {
        return Some(Answer::StoppedAnswering { at: last.level });
    }
    Some(Answer::NeverAnswered { failure: last.evidence.failure.clone() })
}

/// Whether a trial failed only since it did not measure a threshold's figure, though all of its calls succeeded: others will
/// not measure it either.
fn measures_nothing(trial: &Trial) -> bool {
    let is_well = trial.evidence.is_answered() && trial.evidence.failed == 0;
    is_well && trial.unjudged().is_some_and(|unjudged| unjudged.fewest_calls.is_none())
}

/// The answer where the last trial failed by a threshold that it could not judge.
fn unjudged(trials: &[Trial]) -> Option<Answer> {
    let last = trials.last()?;
    let Unjudged { threshold, fewest_calls } = last.unjudged()?;
    Some(Answer::Unjudged {
        level: last.level,
        threshold: threshold.to_string(),
        calls: last.evidence.due,
        fewest_calls,
    })
}

/// The lowest rate of all fails: is it the target's doing?
fn at_bottom(settings: &Settings, seen: &RateTallies, failed: i32, trials: &[Trial]) -> Next {
    let tally = seen.full(failed);
    if tally.met > 0 || tally.failed >= settings.repeats {
        return Next::Done(unjudged(trials).unwrap_or(Answer::BelowAll { level: settings.level(failed) }));
    }
    if tally.is_spoiled() {
        return Next::Done(generator(settings, None, failed, trials));
    }
    Next::Try { step: failed, length: Length::Full }
}

/// A rate that is met and one that is not are neighbours: does each of them repeat?
fn at_edge(settings: &Settings, seen: &RateTallies, met: i32, failed: i32, trials: &[Trial]) -> Next {
    let high = seen.never_met_from(failed);
    let (low, up) = (seen.full(met), seen.full(high));
    if low.is_spoiled() {
        return Next::Done(generator(settings, seen.met_below(met), met, trials));
    }
    if up.is_spoiled() {
        return Next::Done(generator(settings, Some(met), high, trials));
    }
    let (low_known, high_known) = (low.met >= settings.repeats, up.failed >= settings.repeats);
    if low_known && high_known {
        return Next::Done(between(settings, met, high, trials));
    }
    if high > settings.top() {
        return Next::Done(Answer::Unsteady { met: Some(settings.level(met)) });
    }
    // In turn, so that a machine that drifts cannot favour one of them.
    let low_is_next = !low_known && (high_known || low.met + low.spoiled <= up.failed + up.spoiled);
    Next::Try { step: if low_is_next { met } else { high }, length: Length::Full }
}

fn generator(settings: &Settings, met: Option<i32>, at: i32, trials: &[Trial]) -> Answer {
    let spoiled = trials.iter().rev().find(|trial| trial.step == at && trial.outcome == Outcome::Spoiled);
    Answer::Generator {
        met: met.map(|step| settings.level(step)),
        at: settings.level(at),
        verdict: spoiled.map_or(String::new(), |trial| {
            let run = &trial.evidence;
            if run.is_trustworthy() { trial.why.clone() } else { run.verdict.clone() }
        }),
    }
}

/// The answer, unless connections were the limit: calls waited for one, while those that had one were answered as fast
/// as at lower rates.
fn between(settings: &Settings, met: i32, high: i32, trials: &[Trial]) -> Answer {
    let service = |trial: &Trial| trial.evidence.service_p50_ns.map(|AtLeast { value, .. }| value);
    let unloaded = trials.iter().filter(|trial| trial.outcome == Outcome::Met).filter_map(service).min();
    let mut failed: Vec<_> = trials.iter().filter(|t| t.step == high && t.outcome == Outcome::Failed).collect();
    failed.sort_by_key(|trial| service(trial));
    let typical = failed.get(failed.len() / 2);
    if settings.searched == Searched::Rate
        && let (Some(unloaded), Some(trial)) = (unloaded, typical)
        && let Some(service) = service(trial)
        && is_without_room(&trial.evidence)
        && (service as f64) < SLOWER * unloaded as f64
    {
        return Answer::Connections {
            met: settings.level(met),
            at: settings.level(high),
            service_p50_ns: service,
            unloaded_service_p50_ns: unloaded,
        };
    }
    Answer::Between { low: settings.level(met), high: settings.level(high), repeats: settings.repeats }
}

/// Whether many calls waited for a connection, or iterations of a script were left out for want of users.
fn is_without_room(evidence: &Evidence) -> bool {
    let lacks_users = evidence.thresholds.iter().any(|result| {
        !result.held && matches!(&result.condition, JudgedCondition::Made(asked) if *asked == Asked::Arrivals)
    });
    lacks_users || evidence.waited_for_connection as f64 > WAITING * evidence.due as f64
}

/// About how many trials are left, short and full ones, if the target is steady and no rate is in doubt.
pub fn trials_left(settings: &Settings, trials: &[Trial]) -> (u32, u32) {
    let seen = RateTallies::from_trials(trials);
    let halvings = |gap: i32| if gap > 1 { (f64::from(gap)).log2().ceil() as u32 } else { 0 };
    let (Some(met), Some(failed)) = (seen.highest_met(), seen.lowest_failed()) else {
        // The edge is unknown. A little further on is a guess, which each trial improves.
        return (2 + halvings(settings.doubled(0) / FAR), halvings(FAR) + 2 * settings.repeats);
    };
    let gap = failed - met;
    let repeats = |seen: u32| settings.repeats.saturating_sub(seen);
    let high = seen.full(seen.never_met_from(failed));
    let full = halvings(gap.min(FAR)) + repeats(seen.full(met).met) + repeats(high.failed);
    (halvings(gap).saturating_sub(halvings(FAR)), full)
}
