//! Whether B differs from A, and by how much: from rounds in which both ran in turn, from several runs of each, or from
//! the seconds of one run of each.
//!
//! Single calls are not independent (they share the machine, the queue and the second), so they are not the sample. The
//! sample is a figure of a whole run, or of a block of seconds, on a logarithmic scale: a difference of logarithms is a
//! ratio, and a machine that is 10% slower for a while slows both sides alike.
//!
//! - **Rounds** ([`Comparison::of_rounds`]): A B, B A, A B, … so that a machine that drifts favours neither. The logarithm
//!   of B's figure over A's in each round; their mean, with Student's t.
//! - **Runs** ([`Comparison::of_runs`]): several of a side, made whenever; Welch's t, or where the other side has too few to
//!   show a spread of its own, Student's with the spread of both together.
//! - **Blocks** ([`Comparison::of_blocks`]): one run of each, cut into [`BLOCKS`] blocks of seconds; Welch's t, where
//!   blocks count as fewer the more one of them predicts the next.
//!
//! Each of several figures has its own chance of a false alarm. [`holm`] allows for that: an A against an A is called
//! different in at most 5% of comparisons.

mod fail_if;
mod figures;
mod own;
mod pilot;
mod plans;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use brunt_judge::statistics::{CONFIDENCE, Estimate, holm};
use brunt_judge::thresholds::ThresholdResult;
pub use brunt_plan::difference::{FailIf, Metric};
use brunt_plan::plan::Origin;
use brunt_plan::random::choice;
pub use fail_if::{FailIfResult, fewest_calls};
pub use figures::{BLOCKS, Blocks, ComparedFigures, MessageFigures, blocks};
pub use own::{OwnMetric, OwnValue};
pub use pilot::{ratio_to_see, rounds_to_decide};
pub use plans::differences;

use crate::evidence::Evidence;
use crate::short::{self, Lacking};

/// The fewest rounds of a comparison.
pub const LEAST_ROUNDS: u32 = 10;
/// The fewest runs of a side whose spread is used.
pub const LEAST_RUNS: usize = 3;
/// How much wider the error is taken where one side has too few runs: what was kept in a row on a machine that wanders lies closer
/// together than what comes later. Simulated, this gives false alarms in at most 5% of comparisons (AR(1), φ up to 0.99).
const SINGLE: f64 = 1.2;
/// The standard deviation, as a ratio, that the histogram's slots (1/1024 wide) add to the quotient of two figures.
const RESOLUTION: f64 = 0.0004;
/// The chance of a false alarm among all figures of a comparison.
const ALPHA: f64 = 1.0 - CONFIDENCE;
/// The fewest calls beyond a quantile; with fewer, it is the chance of a few calls.
const LEAST_BEYOND: f64 = 5.0;

/// The difference of error rates above which no other figure counts.
const OUTWEIGHS: f64 = 0.01;

/// Whether A runs before B in a round, counted from 0. Two rounds are A B B A or B A A B, so that a steady drift is the
/// same for both sides. `seed` chooses between the two, so that no rhythm of the machine coincides with them.
pub fn a_goes_first(seed: u64, round: u32) -> bool {
    let a_begins = choice(seed, u64::from(round / 2)).is_multiple_of(2);
    a_begins == round.is_multiple_of(2)
}

/// What was compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Design {
    /// Both ran in turn.
    Rounds {
        /// How often.
        rounds: usize,
    },
    /// Several runs of each.
    Runs {
        /// Of A.
        a: usize,
        /// Of B.
        b: usize,
    },
    /// The seconds of one run of each.
    Blocks {
        /// Of A.
        a: usize,
        /// Of B.
        b: usize,
    },
}

/// How a metric differs: B's over A's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference<M = Metric> {
    /// Which.
    pub metric: M,
    /// A's: the geometric mean over its rounds, runs or blocks; in calls or messages a second, in nanoseconds, or in the metric's own unit.
    pub a: f64,
    /// B's.
    pub b: f64,
    /// B's over A's.
    pub ratio: f64,
    /// The interval that holds the true ratio in 95% of cases: its lower end.
    pub low_ratio: f64,
    /// Its upper end.
    pub high_ratio: f64,
    /// The probability of a ratio at least this far from 1 if there were no difference.
    pub p_value: f64,
    /// That probability, adjusted for the number of metrics compared.
    pub adjusted_p_value: f64,
    /// Whether there is a difference.
    pub differs: bool,
    /// The ratio above 1 that would be found in 80% of cases.
    pub detectable_ratio: f64,
}

/// The difference of the share of calls that are not a success. The share can be 0, so it has no ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDifference {
    /// A's share, 0 to 1.
    pub a_ratio: f64,
    /// B's share, 0 to 1.
    pub b_ratio: f64,
    /// B's less A's.
    pub difference: f64,
    /// The interval that holds the true difference in 95% of cases: its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The probability of a difference at least as large if there were none.
    pub p_value: f64,
    /// That probability, adjusted for the number of metrics compared.
    pub adjusted_p_value: f64,
    /// Whether there is a difference.
    pub differs: bool,
}

impl ErrorDifference {
    /// Whether failures differ by a point or more, so that neither side can be called faster.
    pub fn outweighs(&self) -> bool {
        self.difference.abs() >= OUTWEIGHS
    }
}

/// A metric that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut<M = Metric> {
    /// The metric.
    pub metric: M,
    /// The cause in words, with the number of runs or blocks that it holds for.
    pub why: String,
    /// The cause; absent in files of versions that wrote only the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<LeftOutCause>,
}

/// The cause for which a metric of a run, or of a block of its seconds, cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LeftOutCause {
    /// brunt's own delays spoil the metric.
    Spoiled,
    /// No call was answered.
    NoAnswer,
    /// Too few calls lie beyond the percentile.
    TooFewCalls,
    /// Too few gaps between messages lie beyond the percentile.
    TooFewMessages,
    /// Calls that had not ended leave only a lower bound.
    LowerBoundOnly,
    /// The metric is known of whole runs, not of their blocks.
    WholeRunsOnly,
    /// No answer came as messages.
    NoMessage,
    /// No answer had two messages.
    NoGap,
    /// All messages of an answer were read at once, so the gap between them is 0.
    MessagesTogether,
}

impl LeftOutCause {
    /// The cause in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Spoiled => "brunt's own delays spoil it",
            Self::NoAnswer => "nothing was answered",
            Self::TooFewCalls => "too few calls",
            Self::TooFewMessages => "too few messages",
            Self::LowerBoundOnly => "only a lower bound is known",
            Self::WholeRunsOnly => "known of whole runs alone",
            Self::NoMessage => "no messages came",
            Self::NoGap => "no call had two messages",
            Self::MessagesTogether => "messages came together",
        }
    }
}

/// Runs that a metric leaves out, since the generator spoiled it there; the metric is compared by the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Discarded {
    /// Which metric.
    pub metric: Metric,
    /// How many rounds, or runs or blocks of both sides.
    pub count: usize,
    /// Of how many.
    pub of: usize,
}

/// A comparison of B with A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// What was compared with what.
    pub design: Design,
    /// Each metric that could be compared.
    pub differences: Vec<Difference>,
    /// The share of errors; `None` if there was no error at all.
    pub errors: Option<ErrorDifference>,
    /// Metrics that could not be.
    pub left_out: Vec<LeftOut>,
    /// Runs that some metrics leave out.
    pub discarded: Vec<Discarded>,
    /// Figures of the protocol's own; left out where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<Difference<OwnMetric>>,
    /// Those of them that could not be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_left_out: Vec<LeftOut<OwnMetric>>,
}

impl Comparison {
    /// Compares rounds of A and B; `None` if there are fewer than two.
    pub fn of_rounds(rounds: &[(ComparedFigures, ComparedFigures)]) -> Option<Self> {
        let (a, b): (Vec<_>, Vec<_>) = rounds.iter().cloned().unzip();
        let estimate = |a: &[f64], b: &[f64], resolution: f64| {
            let differences: Vec<_> = b.iter().zip(a).map(|(b, a)| b - a).collect();
            Estimate::from_values(&differences, resolution)
        };
        compare(&a, &b, Design::Rounds { rounds: rounds.len() }, &estimate)
    }

    /// Compares runs of A and B, each made by itself; `None` if neither side has two.
    pub fn of_runs(a: &[ComparedFigures], b: &[ComparedFigures]) -> Option<Self> {
        let estimate = |a: &[f64], b: &[f64], resolution: f64| {
            if a.len().min(b.len()) < LEAST_RUNS {
                let found = Estimate::of_common_spread(b, a, resolution)?;
                return Some(Estimate { standard_error: found.standard_error * SINGLE, ..found });
            }
            Some(Estimate::from_values(b, resolution)?.minus(&Estimate::from_values(a, resolution)?))
        };
        compare(a, b, Design::Runs { a: a.len(), b: b.len() }, &estimate)
    }

    /// Compares blocks of one run of A and one of B, each in the order of time; `None` if either side has fewer than
    /// two.
    pub fn of_blocks(a: &Blocks, b: &Blocks) -> Option<Self> {
        let estimate = |of_a: &[f64], of_b: &[f64], resolution: f64| {
            let of = |values: &[f64], blocks: &Blocks| Estimate::of_series(values, resolution, blocks.doubt());
            Some(of(of_b, b)?.minus(&of(of_a, a)?))
        };
        compare(&a.each, &b.each, Design::Blocks { a: a.each.len(), b: b.each.len() }, &estimate)
    }

    /// The difference of a metric, if it could be compared.
    pub fn difference(&self, metric: Metric) -> Option<&Difference> {
        self.differences.iter().find(|difference| difference.metric == metric)
    }

    /// Whether anything differs.
    pub fn differs(&self) -> bool {
        self.differences.iter().any(|difference| difference.differs)
            || self.own.iter().any(|difference| difference.differs)
            || self.errors.as_ref().is_some_and(|errors| errors.differs)
    }
}

/// The figures of the protocol's own of each run, or of each block.
fn own_of(all: &[ComparedFigures]) -> Vec<&[OwnValue]> {
    all.iter().map(|figures| figures.own.as_slice()).collect()
}

/// How much larger B's values are than A's, which are no finer than a resolution.
type Estimator<'a> = &'a dyn Fn(&[f64], &[f64], f64) -> Option<Estimate>;

fn compare(
    a: &[ComparedFigures],
    b: &[ComparedFigures],
    design: Design,
    estimate: Estimator<'_>,
) -> Option<Comparison> {
    if a.is_empty() || b.is_empty() || a.len().max(b.len()) < 2 {
        return None;
    }
    let mut differences = Vec::new();
    let (mut left_out, mut discarded) = (Vec::new(), Vec::new());
    let has_messages = a.iter().chain(b).any(|figures| figures.messages.is_some());
    for metric in Metric::ALL.into_iter().filter(|metric| has_messages || !metric.is_of_messages()) {
        let (a_counts, b_counts) = counted(metric, a, b, design);
        let logarithms =
            figures::logarithms(metric, a, &a_counts).and_then(|a| Ok((a, figures::logarithms(metric, b, &b_counts)?)));
        if logarithms.is_ok() {
            discarded.extend(discarded_of(metric, &a_counts, &b_counts, design));
        }
        match logarithms {
            Err(without) => left_out.push(without),
            Ok((a, b)) => {
                let found = estimate(&a, &b, RESOLUTION);
                differences.extend(found.map(|found| (Difference::new(metric, &a, &b, &found), found)));
            }
        }
    }
    let (own, own_left_out) = own::compare(&own_of(a), &own_of(b), design, estimate);
    let mut errors = errors(a, b, estimate);
    let of_own = own.iter().map(|(difference, _)| difference.p_value);
    let family: Vec<_> = differences
        .iter()
        .map(|(difference, _)| difference.p_value)
        .chain(of_own)
        .chain(errors.iter().map(|e| e.p_value))
        .collect();
    let adjusted = holm(&family);
    let own_adjusted = adjusted.get(differences.len()..).unwrap_or_default();
    let differences = judged(differences, &adjusted, family.len());
    let own = judged(own, own_adjusted, family.len());
    if let (Some(errors), Some(p)) = (&mut errors, adjusted.last()) {
        errors.adjusted_p_value = *p;
        errors.differs = *p < ALPHA;
    }
    Some(Comparison { design, differences, errors, left_out, discarded, own, own_left_out })
}

/// The differences as their adjusted probabilities judge them, among `all` figures.
fn judged<M>(found: Vec<(Difference<M>, Estimate)>, adjusted: &[f64], all: usize) -> Vec<Difference<M>> {
    let judge = |((difference, estimate), p): ((Difference<M>, Estimate), &f64)| Difference {
        adjusted_p_value: *p,
        differs: *p < ALPHA,
        detectable_ratio: estimate.detectable(ALPHA / all as f64).exp(),
        ..difference
    };
    found.into_iter().zip(adjusted).map(judge).collect()
}

/// Which rounds, or runs and blocks of either side, count for a metric: those that the generator did not spoil. A round
/// that is spoiled on one side is left out on both, so that neither is favoured. Where fewer than half are left, all
/// count, and the metric is left out with the reason why.
fn counted(metric: Metric, a: &[ComparedFigures], b: &[ComparedFigures], design: Design) -> (Vec<bool>, Vec<bool>) {
    enough_of(figures::believed(metric, a), figures::believed(metric, b), design)
}

fn enough_of(mut of_a: Vec<bool>, mut of_b: Vec<bool>, design: Design) -> (Vec<bool>, Vec<bool>) {
    let (all_of_a, all_of_b) = (vec![true; of_a.len()], vec![true; of_b.len()]);
    if let Design::Rounds { .. } = design {
        let both: Vec<_> = of_a.iter().zip(&of_b).map(|(a, b)| *a && *b).collect();
        (of_a, of_b) = (both.clone(), both);
    }
    let enough = |counts: &[bool]| {
        let left = counts.iter().filter(|counts| **counts).count();
        left >= counts.len().min(2) && left * 2 >= counts.len()
    };
    if enough(&of_a) && enough(&of_b) { (of_a, of_b) } else { (all_of_a, all_of_b) }
}

fn discarded_of(metric: Metric, a: &[bool], b: &[bool], design: Design) -> Option<Discarded> {
    let dropped = |counts: &[bool]| counts.iter().filter(|counts| !**counts).count();
    let (count, of) = match design {
        Design::Rounds { .. } => (dropped(a), a.len()),
        _ => (dropped(a) + dropped(b), a.len() + b.len()),
    };
    (count > 0).then_some(Discarded { metric, count, of })
}

fn geometric_mean(logarithms: &[f64]) -> f64 {
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

impl<M> Difference<M> {
    /// What is estimated from the logarithms of both sides, before it is judged among others.
    fn new(metric: M, a: &[f64], b: &[f64], estimate: &Estimate) -> Self {
        let (low, high) = estimate.interval();
        let p_value = estimate.p_value();
        Self {
            metric,
            a: geometric_mean(a),
            b: geometric_mean(b),
            ratio: estimate.mean.exp(),
            low_ratio: low.exp(),
            high_ratio: high.exp(),
            p_value,
            adjusted_p_value: p_value,
            differs: false,
            detectable_ratio: 1.0,
        }
    }
}

fn errors(a: &[ComparedFigures], b: &[ComparedFigures], estimate: Estimator<'_>) -> Option<ErrorDifference> {
    let shares = |figures: &[ComparedFigures]| figures.iter().map(|figures| figures.error_rate).collect::<Vec<_>>();
    let calls = a.iter().chain(b).map(|figures| figures.count).min().unwrap_or(0);
    let (a, b) = (shares(a), shares(b));
    if a.iter().chain(&b).all(|share| *share == 0.0) {
        return None;
    }
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    // Shares that are 0 in each run of one side show no spread for the only run of the other: chance has some.
    let chance = if a.len().min(b.len()) > 1 { 0.0 } else { by_chance(mean(&[&a[..], &b].concat()), calls) };
    let found = estimate(&a, &b, chance)?;
    let (low, high) = found.interval();
    let p_value = found.p_value();
    Some(ErrorDifference {
        a_ratio: mean(&a),
        b_ratio: mean(&b),
        difference: found.mean,
        low,
        high,
        p_value,
        adjusted_p_value: p_value,
        differs: false,
    })
}

/// The standard deviation of a share of this many calls that fail by chance.
fn by_chance(share: f64, calls: u64) -> f64 {
    (share * (1.0 - share) / calls.max(1) as f64).sqrt()
}

/// One run that a comparison rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedRun {
    /// Whether it is of B.
    pub is_b: bool,
    /// Its round, or its number among the runs of its side; from 1.
    pub number: usize,
    /// Its figures.
    pub evidence: Evidence,
}

/// A finished comparison, with the runs that it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedRuns {
    /// What its user calls it, and the command that repeats it.
    #[serde(default, skip_serializing_if = "Origin::is_empty")]
    pub origin: Origin,
    /// What A is, for people.
    pub a: String,
    /// What B is, for people.
    pub b: String,
    /// How both were run; empty where results were given.
    pub how: String,
    /// Differences between the plans of both sides, besides the one that is compared, for people.
    pub differing: Vec<String>,
    /// Its result; `None` if there was too little to compare.
    pub comparison: Option<Comparison>,
    /// The results of its conditions.
    pub conditions: Vec<FailIfResult>,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// The runs, in the order of time.
    pub runs: Vec<ComparedRun>,
    /// What it lacks.
    #[serde(flatten)]
    pub lacking: Lacking,
}

impl ComparedRuns {
    /// Notes a shortage of the `asked` runs beyond the allowed share. After an interruption only the runs made count as asked for.
    #[must_use]
    pub fn judged(mut self, asked: usize, most_less_ratio: f64) -> Self {
        let asked = if self.interrupted { self.runs.len() } else { asked };
        let made = self.runs.iter().map(|run| &run.evidence);
        self.lacking.short = short::of_agents(asked, made, most_less_ratio).into_iter().collect();
        self
    }

    /// The first run of a side that was never answered, if there is such a side.
    pub fn silent_side(&self) -> Option<&ComparedRun> {
        let side = |is_b: bool| self.runs.iter().filter(move |run| run.is_b == is_b);
        let is_silent = |is_b: bool| side(is_b).all(|run| !run.evidence.is_answered());
        [false, true].into_iter().filter(|is_b| is_silent(*is_b)).find_map(|is_b| side(is_b).next())
    }

    /// Runs with a threshold that did not hold, and that threshold. Where there are some that brunt's own delays cannot have decided,
    /// it is these.
    pub fn failed_runs(&self) -> Vec<(&ComparedRun, &ThresholdResult)> {
        let failed = || self.runs.iter().filter_map(|run| Some((run, run.evidence.failed_threshold()?)));
        let sure: Vec<_> = failed().filter(|(_, result)| result.sure).collect();
        if sure.is_empty() { failed().collect() } else { sure }
    }

    /// Whether nothing failed for sure, and something could not be judged: there was too little to compare, a condition's figure could
    /// not be compared, or a threshold failed that brunt's own delays can have decided.
    pub fn is_unjudged(&self) -> bool {
        let runs = self.failed_runs();
        let has_failed = self.conditions.iter().any(|condition| condition.failed && !condition.unjudged);
        let has_failed = has_failed || runs.iter().any(|(_, result)| result.sure) || self.silent_side().is_some();
        let is_open = self.comparison.is_none() || self.conditions.iter().any(|condition| condition.unjudged);
        !has_failed && (is_open || !runs.is_empty())
    }

    /// Judges `conditions` and keeps everything together. Where nothing could be compared, a condition counts as true.
    #[must_use]
    pub fn with_conditions(mut self, conditions: &[FailIf]) -> Self {
        let judge = |condition: &FailIf| match &self.comparison {
            Some(comparison) => comparison.judge(condition),
            None => fail_if::cannot_judge(condition, "there is too little to compare", None),
        };
        self.conditions = conditions.iter().map(judge).collect();
        self
    }
}
