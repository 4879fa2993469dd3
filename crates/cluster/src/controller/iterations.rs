//! Counted iterations of scenarios: an agent's share, and the iterations that it has reported.

use std::collections::BTreeSet;

use brunt_plan::plan::Plan;
use brunt_plan::scenario::Step;
use brunt_plan::share::Portion;
use brunt_record::snapshot::Snapshot;

/// The counted iterations of an agent.
#[derive(Debug, Default)]
pub(super) struct Iterations {
    /// Scenarios whose iterations are counted.
    scenarios: BTreeSet<String>,
    given: u64,
    reported: u64,
}

impl Iterations {
    /// The share of this portion.
    pub(super) fn from_plan(plan: &Plan, portion: Portion) -> Self {
        let mut all = Self::default();
        for population in plan.scenarios.iter().flat_map(|scenarios| &scenarios.populations) {
            let given = match population.steps.first() {
                Some(Step::IterationsEach { users, iterations }) => {
                    portion.part_of(*users as u64).saturating_mul(*iterations as u64)
                }
                Some(Step::IterationsShared { iterations, .. }) => portion.part_of(*iterations as u64),
                _ => continue,
            };
            all.given = all.given.saturating_add(given);
            all.scenarios.extend(population.scenarios.iter().map(|one| one.scenario.clone()));
        }
        all
    }

    /// Takes a report of the agent.
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        let figures = &snapshot.figures.scenarios;
        let counted = figures.iter().filter(|(name, _)| self.scenarios.contains(*name));
        let more = counted.map(|(_, one)| one.iterations.count().saturating_add(one.errors));
        self.reported = more.fold(self.reported, u64::saturating_add);
    }

    /// Iterations that it has not reported: nobody knows whether it made them.
    pub(super) fn left(&self) -> u64 {
        self.given.saturating_sub(self.reported)
    }
}

#[cfg(test)]
mod tests {
    use brunt_plan::plan::ProtocolOptions;
    use brunt_plan::target::Url;

    use super::*;

    #[test]
    fn what_an_agent_has_not_reported_of_its_iterations_is_left() {
        let population = |scenario: &str, step: serde_json::Value| serde_json::json!({"scenarios": [{"scenario": scenario, "weight": 1.0}], "steps": [step]});
        let scenarios = serde_json::json!({"files": [], "populations": [
            population("shared", serde_json::json!({"kind": "iterations_shared", "users": 4.0, "iterations": 90.0})),
            population("each", serde_json::json!({"kind": "iterations_each", "users": 6.0, "iterations": 5.0})),
            population("timed", serde_json::json!({"kind": "users", "from": 5.0, "to": 5.0, "seconds": 6.0})),
        ]});
        let target = Url::parse("http://127.0.0.1/").unwrap().target;
        let plan = Plan {
            scenarios: Some(serde_json::from_value(scenarios).unwrap()),
            ..Plan::of_calls(target, ProtocolOptions::default())
        };
        let mut all = Iterations::from_plan(&plan, Portion::new(1, 1, 3).unwrap());
        assert_eq!(all.left(), 30 + 2 * 5);
        let mut snapshot = Snapshot::default();
        for name in ["shared", "each", "timed"] {
            snapshot.figures.scenarios.named(name).iteration(1);
            snapshot.figures.scenarios.named(name).unfinished_iteration(1);
        }
        snapshot.figures.scenarios.named("each").errors = 1;
        all.add(&snapshot);
        assert_eq!(all.left(), 40 - 5);
        // An agent may say anything.
        snapshot.figures.scenarios.named("each").errors = u64::MAX;
        all.add(&snapshot);
        assert_eq!(all.left(), 0);
    }
}
