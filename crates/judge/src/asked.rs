//! What a run was asked for, and what it made of it.
//!
//! A run that makes less load than its plan asks for says little about the target, however well the calls went that it
//! made. What `error_rate` or `availability` tell is not told again here: calls of an open run that were not sent have
//! failed, and so has the time of a flood's connections without a server. Late is not less. What its user ended, and what
//! lost agents left undone, has a sentence of its own.

use std::fmt;

use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::{Population, Scenarios, Step};
use brunt_record::catalogue::Counter;
use brunt_record::change::Action;
use brunt_record::figures::ScenarioFigures;
use brunt_record::recording::{Ending, Recording};
use brunt_record::replayed::{Replayed, Skip};
use brunt_record::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

/// The kinds of load that a plan asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// A number of calls.
    Calls,
    /// Virtual users who come at times of their own.
    Arrivals,
    /// Time of virtual users who are there: user-seconds.
    UserSeconds,
    /// Iterations of virtual users.
    Iterations,
    /// Requests of a log, but for those that its user's own filters leave out.
    Requests,
    /// Runs of a decision, times the agents that were to make each.
    Steps,
    /// The level, of calls a second or connections, that a search for a capacity had to try.
    Level,
}

impl Asked {
    const ALL: [Self; 7] =
        [Self::Calls, Self::Arrivals, Self::UserSeconds, Self::Iterations, Self::Requests, Self::Steps, Self::Level];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Arrivals => "arrivals",
            Self::UserSeconds => "user_seconds",
            Self::Iterations => "iterations",
            Self::Requests => "requests",
            Self::Steps => "steps",
            Self::Level => "level",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.name() == name)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Calls => "calls",
            Self::Arrivals => "users",
            Self::UserSeconds => "user-seconds",
            Self::Iterations => "iterations",
            Self::Requests => "requests of the log",
            Self::Steps => "runs of an agent",
            Self::Level => "of what was to be tried",
        })
    }
}

/// Why less was made than was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Shortage {
    /// Users found no place among those alive.
    NotAdmitted,
    /// Users ended, as all rows of a queue were given out.
    OutOfRows,
    /// Errors of the script ended iterations, and users with them.
    ScriptErrors,
    /// Lines of the log were not replayed.
    Skipped(Skip),
    /// Agents that were lost made no further runs.
    LostAgents,
    /// Runs that could not be made.
    NotMade,
    /// Trials in which brunt was the limit.
    Generator,
}

/// One kind of load: how much was asked for, and how much was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Made {
    /// The kind.
    pub of: Asked,
    /// How much was asked for.
    pub asked: f64,
    /// How much was made.
    pub made: f64,
    /// Why it is less, each with a count, the most frequent first; empty where that is unknown.
    pub why: Vec<Missing>,
}

/// A reason with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// The reason.
    pub shortage: Shortage,
    /// How many users, iterations or lines it stopped.
    pub count: u64,
}

impl Made {
    /// Each kind of load that `plan` asks for, with what `run` made of it. Empty if the run did not end as planned or was changed on the
    /// way, and for plans that ask for nothing but a rate or connections.
    pub fn all(plan: &Plan, run: &Recording, total: &Snapshot) -> Vec<Self> {
        let is_changed = run.changes.iter().any(|change| !matches!(change.action, Action::Mark(_)));
        if run.ending != Ending::Completed
            || is_changed
            || run.agents.iter().any(brunt_record::agents::AgentPart::is_lost)
        {
            return Vec::new();
        }
        if let Some(scenarios) = &plan.scenarios {
            return of_scenarios(plan, scenarios, run, total);
        }
        match (&plan.load, plan.stop.requests) {
            (Load::Replay(replay), _) => {
                let of_log = run.replayed.as_deref().map(|replayed| of_log(replayed, !replay.from_hosts.is_empty()));
                of_log.into_iter().collect()
            }
            // Whichever of number and time comes first ends the run.
            (_, Some(_)) if plan.duration_ns().is_some_and(|planned_ns| run.measured_ns >= planned_ns) => Vec::new(),
            (_, Some(calls)) => {
                let due = total.numbers.get(Counter::Due);
                vec![Self { of: Asked::Calls, asked: calls as f64, made: due as f64, why: Vec::new() }]
            }
            (_, None) => Vec::new(),
        }
    }

    /// The share of what was asked for that was made, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.asked > 0.0 { (self.made / self.asked).min(1.0) } else { 1.0 }
    }

    /// Whether more than this share of it is missing: `missing <= floor(ratio × asked)` is allowed, as for implicit
    /// thresholds.
    pub fn is_short(&self, most_less_ratio: f64) -> bool {
        self.asked - self.made > most_less_ratio * self.asked
    }
}

fn of_log(replayed: &Replayed, is_host_chosen: bool) -> Made {
    let is_own = |skip: Skip| match skip {
        Skip::Outside | Skip::Filtered | Skip::Sampled => true,
        Skip::OtherHost => is_host_chosen,
        _ => false,
    };
    let named = replayed.skipped.iter().filter_map(|(name, count)| Some((Skip::named(name)?, *count)));
    let why = named.filter(|(skip, _)| !is_own(*skip));
    let why = by_count(why.map(|(skip, count)| Missing { shortage: Shortage::Skipped(skip), count }).collect());
    let left_out: u64 = why.iter().map(|cause| cause.count).sum();
    let made = replayed.requests as f64;
    // Copies of requests that were sent would hide lines that were not.
    let lines = (replayed.lines as f64).max(left_out as f64).max(1.0);
    let share = left_out as f64 / lines;
    let asked = if share < 1.0 { made / (1.0 - share) } else { left_out as f64 };
    Made { of: Asked::Requests, asked: asked.round(), made, why }
}

fn by_count(mut causes: Vec<Missing>) -> Vec<Missing> {
    causes.retain(|cause| cause.count > 0);
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    causes
}

fn of_scenarios(plan: &Plan, scenarios: &Scenarios, run: &Recording, total: &Snapshot) -> Vec<Made> {
    let all = || total.figures.scenarios.iter().map(|(_, scenario)| scenario);
    let sum = |of: fn(&ScenarioFigures) -> u64| all().map(of).sum::<u64>();
    let (not_admitted, out_of_rows) = (sum(|of| of.not_admitted), sum(|of| of.out_of_rows));
    let causes = |with_errors: bool| {
        by_count(vec![
            Missing { shortage: Shortage::NotAdmitted, count: not_admitted },
            Missing { shortage: Shortage::OutOfRows, count: out_of_rows },
            Missing { shortage: Shortage::ScriptErrors, count: if with_errors { sum(|of| of.errors) } else { 0 } },
        ])
    };
    let steps = || scenarios.populations.iter().flat_map(|population| &population.steps);
    // The part of these figures that falls into a warm-up is unknown.
    let is_whole = plan.warmup_ns == 0 && plan.stop.duration_ns.is_none();
    let mut found = Vec::new();
    let arrivals: f64 = steps().filter_map(arriving).sum();
    if arrivals > 0.0 {
        let came = total.figures.scenarios.iter().map(|(name, of)| scenarios.came(name, of)).sum::<u64>() as f64;
        let known = came + not_admitted as f64;
        // Where rows are used up nobody comes any more; otherwise those who came are known better than by the plan, as
        // random arrivals vary.
        let is_cut = out_of_rows > 0 && is_whole && scenarios.populations.iter().all(has_arrivals_alone);
        let asked = if is_cut { arrivals.round().max(known) } else { known };
        let made = if is_cut { came - out_of_rows as f64 } else { came };
        found.push(Made { of: Asked::Arrivals, asked, made, why: causes(false) });
    }
    let iterations: f64 = steps().filter_map(iterating).sum();
    if iterations > 0.0 && is_whole && arrivals == 0.0 {
        // One that found no row has begun, and did nothing.
        let made = sum(ScenarioFigures::iterations_begun).saturating_sub(out_of_rows) as f64;
        found.push(Made { of: Asked::Iterations, asked: iterations, made: made.min(iterations), why: causes(true) });
    }
    let held: f64 = steps().filter_map(held).sum();
    if held > 0.0 && is_whole && arrivals + iterations == 0.0 {
        let lived = |point: &brunt_record::series::Point| point.users as f64 * point.length_ns as f64 / 1e9;
        let lived: f64 = run.series.points().iter().map(lived).sum();
        // Without users who left before their time all of it was made; how many are there is known by the second only.
        let made = if out_of_rows + not_admitted > 0 { lived.min(held) } else { held };
        found.push(Made { of: Asked::UserSeconds, asked: held, made, why: causes(false) });
    }
    found
}

fn has_arrivals_alone(population: &Population) -> bool {
    population.steps.iter().all(|step| arriving(step).is_some() || matches!(step, Step::NothingFor { .. }))
}

/// The users who come in a step, where they come at times of their own.
fn arriving(step: &Step) -> Option<f64> {
    match *step {
        Step::AtOnce { users } | Step::Peak { users, .. } => Some(users),
        Step::Rate { from, to, seconds } => Some(seconds * f64::midpoint(from, to)),
        _ => None,
    }
}

fn iterating(step: &Step) -> Option<f64> {
    match *step {
        Step::IterationsEach { users, iterations } => Some(users * iterations),
        Step::IterationsShared { iterations, .. } => Some(iterations),
        _ => None,
    }
}

/// User-seconds of a step.
fn held(step: &Step) -> Option<f64> {
    match *step {
        Step::Users { from, to, seconds } => Some(seconds * f64::midpoint(from, to)),
        _ => None,
    }
}

/// Whether answers should have come as messages, by a flood's options or the calls of a script, and none did.
pub(crate) fn lacks_messages(plan: &Plan, total: &Snapshot) -> bool {
    let by_options = plan.protocol.shown().get("messages").is_some_and(serde_json::Value::is_object);
    let is_asked = by_options || total.numbers.get(Counter::StreamsEmpty) > 0;
    is_asked && total.statuses.ok(&plan.ok_status) > 0 && total.messages().is_empty()
}

#[cfg(test)]
mod tests {
    use brunt_plan::replay::LogReplay;

    use super::*;
    use crate::fixtures::run;
    use crate::summary::Summary;
    use crate::thresholds::JudgedCondition;

    /// A run of these steps of one scenario, with these figures.
    fn played(steps: Vec<Step>, figures: impl FnOnce(&mut ScenarioFigures)) -> Summary {
        let (mut plan, mut run) = run();
        let population = Population { steps, ..Population::default() };
        let scenarios = serde_json::json!({"files": [], "populations": []});
        let scenarios: Scenarios = serde_json::from_value(scenarios).unwrap();
        plan.scenarios = Some(Scenarios { populations: vec![population], ..scenarios });
        plan.stop.duration_ns = None;
        figures(run.measured.figures.scenarios.named("shop"));
        Summary::new(plan, run)
    }

    fn short(summary: &Summary) -> Vec<(Asked, u64, u64)> {
        let failed = summary.thresholds.iter().filter(|result| !result.held);
        let made = failed.filter_map(|result| match result.condition {
            JudgedCondition::Made(of) => summary.made.iter().find(|made| made.of == of),
            _ => None,
        });
        made.map(|made| (made.of, made.made as u64, made.asked as u64)).collect()
    }

    #[test]
    fn users_without_a_place_or_a_row_are_missing() {
        let rate = Step::Rate { from: 30.0, to: 30.0, seconds: 2.0 };
        let of = |started: u64, not_admitted: u64, out_of_rows: u64| {
            short(&played(vec![rate], |shop| {
                (shop.users_started, shop.not_admitted, shop.out_of_rows) = (started, not_admitted, out_of_rows);
            }))
        };
        assert_eq!(of(60, 0, 0), []);
        assert_eq!(of(57, 0, 0), [], "random arrivals may be fewer");
        assert_eq!(of(7, 53, 0), [(Asked::Arrivals, 7, 60)]);
        assert_eq!(of(12, 0, 1), [(Asked::Arrivals, 11, 60)], "rows were used up");
    }

    #[test]
    fn iterations_and_users_that_end_before_their_time_are_missing() {
        let each = Step::IterationsEach { users: 4.0, iterations: 50.0 };
        let of = |begun: u64| short(&played(vec![each], |shop| (0..begun).for_each(|_| shop.iteration(1))));
        assert_eq!((of(200), of(198), of(197)), (vec![], vec![], vec![(Asked::Iterations, 197, 200)]));
        let shared = Step::IterationsShared { users: 2.0, iterations: 6.0 };
        let in_vain = played(vec![shared], |shop| {
            (0..6).for_each(|_| shop.iteration(1));
            shop.out_of_rows = 1;
        });
        assert_eq!(short(&in_vain), [(Asked::Iterations, 5, 6)]);
        let held = Step::Users { from: 3.0, to: 3.0, seconds: 2.0 };
        assert_eq!(short(&played(vec![held], |_| ())), []);
        assert_eq!(short(&played(vec![held], |shop| shop.out_of_rows = 3)), [(Asked::UserSeconds, 0, 6)]);
    }

    #[test]
    fn lines_of_a_log_are_missing_unless_its_user_left_them_out() {
        let of = |skipped: &[(Skip, u64)], hosts: &[&str]| {
            let (mut plan, mut run) = run();
            let from_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            plan.load = Load::Replay(Box::new(LogReplay { from_hosts, ..LogReplay::new("a.log", "combined") }));
            let skipped = skipped.iter().map(|(skip, n)| (skip.name().to_owned(), *n)).collect();
            run.replayed = Some(Box::new(Replayed { lines: 400, requests: 100, skipped, ..Replayed::default() }));
            short(&Summary::new(plan, run))
        };
        assert_eq!(of(&[(Skip::Filtered, 300)], &[]), []);
        assert_eq!(of(&[(Skip::Writes, 300)], &[]), [(Asked::Requests, 100, 400)]);
        assert_eq!(of(&[(Skip::OtherHost, 300)], &["a.example"]), []);
        assert_eq!(of(&[(Skip::OtherHost, 200), (Skip::NoTime, 100)], &[]), [(Asked::Requests, 100, 400)]);
    }

    /// A replay goes on until its last answer comes, which does not change when its requests were due.
    #[test]
    fn requests_of_a_log_are_due_by_its_times() {
        let due_per_s = |speed: f64, think: bool, last_ms: i64| {
            let (mut plan, mut run) = run();
            plan.load = Load::Replay(Box::new(LogReplay { speed, think, ..LogReplay::new("a.log", "combined") }));
            plan.thresholds = vec!["due_rate>=0".parse().unwrap()];
            let (first_unix_ms, last_unix_ms) = (Some(7_000), Some(7_000 + last_ms));
            run.replayed = Some(Box::new(Replayed { first_unix_ms, last_unix_ms, ..Replayed::default() }));
            let summary = Summary::new(plan, run);
            let due = summary.run.measured.numbers.get(Counter::Due) as f64;
            let of_threshold = summary.thresholds.iter().find_map(|one| {
                let is_it = one
                    .condition
                    .threshold()
                    .is_some_and(|threshold| threshold.measure() == brunt_plan::threshold::Figure::DueRate);
                one.value.filter(|_| is_it)
            });
            let seconds = summary.run.measured_ns as f64 / 1e9;
            (due, seconds, summary.rates.due_per_s, of_threshold.map(|value| value.value))
        };
        let (due, seconds, all, _) = due_per_s(1.0, false, 1_000_000);
        assert!(due > 0.0 && seconds > 1.5 && (all - due / seconds).abs() < 1e-6, "no longer than the run");
        for (speed, think, last_ms, expected) in
            [(1.0, false, 1_500, due / 1.5), (2.0, false, 3_000, due / 1.5), (1.0, true, 1_500, due / seconds)]
        {
            let (_, _, rate, limited) = due_per_s(speed, think, last_ms);
            assert!((rate - expected).abs() < 1e-6, "{speed} {think}: {rate} {expected}");
            assert_eq!(limited, Some(rate), "the threshold is on the same figure");
        }
    }

    #[test]
    fn less_is_allowed_by_the_plan_and_not_told_of_what_its_user_ended() {
        let with = |most: f64, ending: Ending| {
            let (mut plan, run) = run();
            plan.stop = brunt_plan::plan::StopRule { duration_ns: None, requests: Some(2100) };
            plan.max_less_ratio = most;
            short(&Summary::new(plan, Recording { ending, ..run }))
        };
        assert_eq!(with(0.01, Ending::Completed), [(Asked::Calls, 2000, 2100)]);
        assert_eq!(with(0.1, Ending::Completed), []);
        assert_eq!(with(0.01, Ending::Interrupted), []);
    }
}
