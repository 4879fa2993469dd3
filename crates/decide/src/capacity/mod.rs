//! The highest rate, or the most connections, at which a target meets its thresholds: which level to try next after the
//! trials so far, and what they show in the end. Pure arithmetic: the caller carries the trials out.
//!
//! All of this holds for connections as well, on a grid of whole numbers.
//!
//! Rates lie on a grid, each higher than the last by the precision asked for. First the rate doubles until a trial fails
//! (or halves until one is met), in short trials. Then the gap is halved again and again. At the edge, the highest rate
//! that was met and the lowest that was not are each repeated, in turn. A repetition that contradicts the others puts its
//! rate in doubt, and the edge moves outwards past it. So the answer is an interval whose ends were each seen the same
//! way `repeats` times out of as many.
//!
//! How sure that is: call capacity the rate at which half of all trials would be met. If a rate lay on the wrong side
//! of it, the probability to see it the same way n times would be at most ½ⁿ (the sign test; W. J. Conover, "Practical
//! Nonparametric Statistics", 3rd edition, section 3.4): 1.6% for n = 6. The search picks the ends among all rates
//! that it repeats, and each of those may mislead it: the probability is at most ½ⁿ times their number (the union
//! bound; [`Capacity::chance_of_error`]).
//!
//! A trial that the generator can have decided says nothing about the target, whether it was met or failed: it counts
//! as spoiled, and is made again. A trial is spoiled where the target did not see the load asked for, or where a
//! threshold would turn out differently within the interval that own delays leave. Other doubts about the run do not
//! matter here. If all trials are spoiled, there is no answer.

mod grid;
mod search;
#[cfg(test)]
mod tests;

use brunt_judge::asked::{Asked, Made, Missing, Shortage};
use brunt_judge::thresholds::ThresholdResult;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::MAX_LESS_RATIO;
use brunt_plan::profile::HIGHEST_RATE;
use brunt_plan::threshold::Threshold;
use brunt_record::histogram::AtLeast;
use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;
use crate::short::{self, Lacking};

pub use search::{next, trials_left};

/// The least and the most that the rates tried may be apart, as a share.
pub const PRECISION: (f64, f64) = (0.005, 0.5);
/// The lowest rate that is tried, in calls a second.
pub const LOWEST_RATE: f64 = 1.0;

/// How far a target may fall behind and still meet a level, as a share of the grid's precision.
const MOST_BEHIND: f64 = 0.25;

/// What a search varies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Searched {
    /// Calls a second, or iterations of a script, due whatever the answers take.
    #[default]
    Rate,
    /// Connections that each make their next call when the last one has ended.
    Connections,
    /// Virtual users of a script that each begin anew when they have ended.
    Users,
}

impl Searched {
    /// The unit of its levels, where they are whole numbers; `None` for a rate.
    pub const fn counted(self) -> Option<&'static str> {
        match self {
            Self::Rate => None,
            Self::Connections => Some("connection"),
            Self::Users => Some("user"),
        }
    }
}

/// Settings of a search. In JSON, keys of levels end in what is searched for: `from_per_s`, `from_connections` or `from_users`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = of_counted_too))]
pub struct Settings {
    /// What is searched for.
    pub searched: Searched,
    /// The first level tried.
    #[serde(rename = "from_per_s", alias = "from_connections", alias = "from_users")]
    pub from: f64,
    /// No level above this is tried.
    #[serde(rename = "highest_per_s", alias = "highest_connections", alias = "highest_users")]
    pub highest: f64,
    /// How much higher each level on the grid is than the one before it, as a share; within [`PRECISION`].
    pub precision_ratio: f64,
    /// How often each end of the answer must be seen the same way; at least 1.
    pub repeats: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { searched: Searched::Rate, from: 100.0, highest: HIGHEST_RATE, precision_ratio: 0.02, repeats: 6 }
    }
}

/// Says in the schema that each level stands under the key of the search that it is of.
#[cfg(feature = "schema")]
fn of_counted_too(schema: &mut schemars::Schema) {
    fn of_object(object: &mut serde_json::Map<String, serde_json::Value>) {
        if let Some(serde_json::Value::Object(properties)) = object.get_mut("properties") {
            let levels = properties.iter().filter(|(key, _)| LEVELS.contains(&key.as_str()));
            let each = levels.flat_map(|(key, what)| UNITS.map(|unit| (key_of_level(key, unit), what.clone())));
            let others: Vec<_> = each.collect();
            properties.extend(others);
        }
        if let Some(serde_json::Value::Array(required)) = object.get_mut("required") {
            required.retain(|key| key.as_str().is_none_or(|key| !LEVELS.contains(&key)));
        }
    }
    let Some(object) = schema.as_object_mut() else { return };
    of_object(object);
    if let Some(serde_json::Value::Array(variants)) = object.get_mut("oneOf") {
        variants.iter_mut().filter_map(serde_json::Value::as_object_mut).for_each(of_object);
    }
}

/// The keys of levels in JSON, where rates are searched for.
pub const LEVELS: [&str; 8] =
    ["from_per_s", "highest_per_s", "low_per_s", "high_per_s", "met_per_s", "failed_per_s", "at_per_s", "rate_per_s"];

/// The units of levels that are whole numbers.
#[cfg(feature = "schema")]
const UNITS: [&str; 2] = ["connection", "user"];

/// The JSON key of a level, one of [`LEVELS`], in a search for a number of connections or users, by the unit.
pub fn key_of_level(key: &str, unit: &str) -> String {
    let name = key.trim_end_matches("_per_s");
    if name == "rate" { format!("{unit}s") } else { format!("{name}_{unit}s") }
}

/// How long a trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Far from the edge: short.
    Short,
    /// As long as asked for.
    Full,
}

/// A short trial: the divisor of the length asked for, the least length in nanoseconds, and the least number of calls.
const SHORTER: u64 = 3;
const SHORTEST_NS: u64 = brunt_record::SECOND_NS;
const FEWEST_CALLS: f64 = 30.0;
/// The fewest calls of a full trial with random arrivals: with fewer, chance alone makes their number differ from the
/// rate.
const FEWEST_RANDOM_CALLS: f64 = 200.0;

/// The length of a trial at this rate, in nanoseconds; `asked_ns` is the length asked for of a full one. It is longer
/// where random arrivals would be too few. A short trial is at least as long as it takes to see anything.
pub fn trial_ns(asked_ns: u64, length: Length, rate_per_s: f64, arrivals: Spread) -> u64 {
    let time_of = |calls: f64| (calls / rate_per_s.max(f64::MIN_POSITIVE) * 1e9).min(1e15).ceil() as u64;
    let full = match arrivals {
        Spread::Uniform => asked_ns,
        Spread::Poisson | Spread::Bursty { .. } => asked_ns.max(time_of(FEWEST_RANDOM_CALLS)),
    };
    match length {
        Length::Full => full,
        Length::Short => (full / SHORTER).max(SHORTEST_NS).max(time_of(FEWEST_CALLS)).min(full),
    }
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every threshold held, and the target kept up.
    Met,
    /// A threshold did not hold, or the target fell behind.
    Failed,
    /// Met or failed, and the generator may be why.
    Spoiled,
}

/// One run at one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = of_counted_too))]
pub struct Trial {
    /// Its place on the grid; 0 is the first level tried.
    pub step: i32,
    /// The rate, or the number of connections or users, that was asked for.
    #[serde(rename = "rate_per_s", alias = "connections", alias = "users")]
    pub level: f64,
    /// Short or full.
    pub length: Length,
    /// Its result.
    pub outcome: Outcome,
    /// The reason if it is not met, for people; empty if it is.
    pub why: String,
    /// The run.
    pub evidence: Evidence,
}

impl Trial {
    /// Judges a run at the level of `step`.
    ///
    /// Thresholds alone would call a rate above the capacity met as long as the backlog is small, so the target must
    /// keep up as well: it may fall behind by at most a quarter of the precision.
    pub fn new(settings: &Settings, step: i32, length: Length, evidence: Evidence) -> Self {
        let (outcome, why) = judge(settings, &evidence);
        Self { step, level: settings.level(step), length, outcome, why, evidence }
    }
}

/// A threshold that a run could not judge.
struct Unjudged<'a> {
    threshold: &'a Threshold,
    /// How many calls it takes; `None` where its figure was not measured.
    fewest_calls: Option<u64>,
}

impl Trial {
    /// The failed threshold that the trial could not judge, where each that failed is such a one.
    fn unjudged(&self) -> Option<Unjudged<'_>> {
        let mut missed = self.evidence.thresholds.iter().filter(|result| !result.held).map(|result| {
            let threshold = result.condition.threshold()?;
            if result.value.is_none() {
                return Some(Unjudged { threshold, fewest_calls: None });
            }
            // Where half of the calls are over the limit, no more of them are needed.
            let fewest = threshold.fewest_calls().filter(|fewest| self.evidence.due < *fewest)?;
            let median =
                self.evidence.p50_ns.map(|median| AtLeast { value: median.value as f64, at_least: median.at_least });
            let is_by_chance = median.is_some_and(|median| threshold.operator().holds(median, threshold.limit()));
            is_by_chance.then_some(Unjudged { threshold, fewest_calls: Some(fewest) })
        });
        let first = missed.next()??;
        missed.all(|other| other.is_some()).then_some(first)
    }
}

/// The result of a run, and the reason if it is not met.
fn judge(settings: &Settings, evidence: &Evidence) -> (Outcome, String) {
    if !evidence.is_load_as_asked {
        return (Outcome::Spoiled, "the target did not see this load".to_owned());
    }
    if !evidence.is_answered() {
        return (Outcome::Failed, format!("no answer ({})", evidence.failure));
    }
    let was = |result: &ThresholdResult| format!("{} was {}", result.condition, result.got);
    let missed = evidence.thresholds.iter().filter(|result| !result.held);
    let (surely, perhaps): (Vec<_>, Vec<_>) = missed.partition(|result| result.sure);
    let mut why: Vec<_> = surely.into_iter().map(was).collect();
    if evidence.behind_ratio > settings.precision_ratio * MOST_BEHIND {
        why.push(format!("the backlog grew by {:.1}% of the rate", evidence.behind_ratio * 100.0));
    }
    if !why.is_empty() {
        why.extend(perhaps.into_iter().map(was));
        return (Outcome::Failed, why.join("; "));
    }
    // Connections that wait for the generator make fewer calls than they could: a level that they meet says little, one
    // that they miss much.
    if settings.searched.counted().is_some() && !evidence.is_rate_believed {
        return (Outcome::Spoiled, "brunt was the limit".to_owned());
    }
    let unsure: Vec<_> = evidence.thresholds.iter().filter(|result| !result.sure).map(was).collect();
    if unsure.is_empty() {
        return (Outcome::Met, String::new());
    }
    (Outcome::Spoiled, format!("{}, which brunt's own delays can have decided", unsure.join("; ")))
}

/// The next step of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Try the rate of this step.
    Try {
        /// Its place on the grid.
        step: i32,
        /// How long.
        length: Length,
    },
    /// All is known that can be.
    Done(Answer),
}

/// What is known of a target's capacity. Levels are of what is searched for, as their keys in JSON say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = of_counted_too))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Answer {
    /// It lies between two levels.
    Between {
        /// The highest that was met every time.
        #[serde(rename = "low_per_s", alias = "low_connections", alias = "low_users")]
        low: f64,
        /// The lowest level above that one which was never met.
        #[serde(rename = "high_per_s", alias = "high_connections", alias = "high_users")]
        high: f64,
        /// How often each was tried at full length.
        repeats: u32,
    },
    /// The highest level allowed was met every time.
    AtLeast {
        /// That level.
        #[serde(rename = "rate_per_s", alias = "connections", alias = "users")]
        level: f64,
    },
    /// The lowest level tried was not met.
    BelowAll {
        /// That level.
        #[serde(rename = "rate_per_s", alias = "connections", alias = "users")]
        level: f64,
    },
    /// The generator was the limit: only the levels that were met are known.
    Generator {
        /// The highest rate that was met every time, if any was.
        #[serde(rename = "met_per_s", alias = "met_connections", alias = "met_users")]
        met: Option<f64>,
        /// The rate at which the generator gave out.
        #[serde(rename = "at_per_s", alias = "at_connections", alias = "at_users")]
        at: f64,
        /// The verdict on that run.
        verdict: String,
    },
    /// The connections, or the users of a script, were all in use while the target was as fast as ever.
    Connections {
        /// The highest rate that was met every time.
        #[serde(rename = "met_per_s", alias = "met_connections", alias = "met_users")]
        met: f64,
        /// The rate at which all of them were in use.
        #[serde(rename = "at_per_s", alias = "at_connections", alias = "at_users")]
        at: f64,
        /// From sent to end at that rate: the median, in nanoseconds.
        service_p50_ns: u64,
        /// The lowest median at any rate that was met, in nanoseconds.
        unloaded_service_p50_ns: u64,
    },
    /// Repetitions contradict each other over so wide a range that the search was given up.
    Unsteady {
        /// The highest rate below which no trial failed, if there is one.
        #[serde(rename = "met_per_s", alias = "met_connections", alias = "met_users")]
        met: Option<f64>,
    },
    /// The target answered at first, then stopped.
    StoppedAnswering {
        /// The rate at which it was last tried.
        #[serde(rename = "at_per_s", alias = "at_connections", alias = "at_users")]
        at: f64,
    },
    /// A threshold could not be judged at any level: no trial measures its figure, or the lowest makes too few calls for its
    /// percentile.
    Unjudged {
        /// The level of the last trial.
        #[serde(rename = "rate_per_s", alias = "connections", alias = "users")]
        level: f64,
        /// The threshold as written.
        threshold: String,
        /// The calls of the last trial.
        calls: u64,
        /// How many calls its percentile takes; `None` where its figure was not measured at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fewest_calls: Option<u64>,
    },
    /// No trial was answered.
    NeverAnswered {
        /// The failures, in words.
        failure: String,
    },
    /// The search was ended before it had an answer.
    Interrupted {
        /// The highest rate that was met, if any was.
        #[serde(rename = "met_per_s", alias = "met_connections", alias = "met_users")]
        met: Option<f64>,
        /// The lowest rate above it that was not met.
        #[serde(rename = "failed_per_s", alias = "failed_connections", alias = "failed_users")]
        failed: Option<f64>,
    },
}

impl Answer {
    /// The level that was met every time and the one that brunt could not make, where brunt was the limit.
    const fn reached(&self) -> Option<(f64, f64)> {
        match self {
            Self::Generator { met: Some(met), at, .. } => Some((*met, *at)),
            _ => None,
        }
    }
}

/// A finished search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// Its settings.
    pub settings: Settings,
    /// The answer.
    pub answer: Answer,
    /// Its trials, in the order of time.
    pub trials: Vec<Trial>,
    /// What it lacks.
    #[serde(flatten)]
    pub lacking: Lacking,
}

impl Capacity {
    /// Judges what was made of what its plan asked for, where `allowed` is the share of it that may be missing, and
    /// `allowed_of_agents` that of the runs of agents. A search that brunt limited has not found the capacity: by how much is
    /// unknown, so that the usual share does not allow it.
    #[must_use]
    pub fn judged(mut self, allowed: f64, allowed_of_agents: f64) -> Self {
        let limited = self.answer.reached().map(|(met, at)| {
            let count = self.trials.iter().filter(|trial| trial.level.total_cmp(&at).is_eq()).count() as u64;
            let why = vec![Missing { shortage: Shortage::Generator, count }];
            Made { of: Asked::Level, asked: at, made: met, why }
        });
        let most_less_ratio = if allowed > MAX_LESS_RATIO { allowed } else { 0.0 };
        let limited = limited.filter(|made| made.is_short(most_less_ratio));
        let made = self.trials.iter().map(|trial| &trial.evidence);
        let of_agents = short::of_agents(self.trials.len(), made, allowed_of_agents);
        self.lacking.short = limited.into_iter().chain(of_agents).collect();
        self
    }

    /// Whether the capacity is known, or as much of it as its user asks for.
    pub fn is_found(&self) -> bool {
        match &self.answer {
            Answer::Between { .. } | Answer::AtLeast { .. } => true,
            answer => answer.reached().is_some() && !self.lacking.short.iter().any(|made| made.of == Asked::Level),
        }
    }

    /// A threshold whose percentile takes more calls than a trial at `level` had, those calls, and how many it takes.
    pub fn judged_by_few(&self, level: f64) -> Option<(&Threshold, u64, u64)> {
        let decides = |trial: &&Trial| trial.length == Length::Full && trial.level.total_cmp(&level).is_eq();
        let trial = self.trials.iter().rfind(decides)?;
        let thresholds = trial.evidence.thresholds.iter().filter_map(|result| result.condition.threshold());
        let few = thresholds.filter_map(|threshold| {
            let fewest = threshold.fewest_calls().filter(|fewest| trial.evidence.due < *fewest)?;
            Some((threshold, trial.evidence.due, fewest))
        });
        few.max_by_key(|(.., fewest)| *fewest)
    }

    /// The number of rates with a trial of full length that was not spoiled.
    pub fn rates_tried(&self) -> usize {
        let counted = |trial: &&Trial| trial.length == Length::Full && trial.outcome != Outcome::Spoiled;
        let mut steps: Vec<_> = self.trials.iter().filter(counted).map(|trial| trial.step).collect();
        steps.sort_unstable();
        steps.dedup();
        steps.len()
    }

    /// An upper bound, 0 to 1, on the probability that the answer does not hold the capacity: see the module's text.
    pub fn chance_of_error(&self) -> f64 {
        (self.rates_tried() as f64 * 0.5_f64.powi(self.settings.repeats as i32)).min(1.0)
    }
}
