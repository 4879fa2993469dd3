//! What a decision asked for, and what its runs made of it.
//!
//! A decision over several runs asks each of its agents for each run. Where runs were made by fewer, the decision does not hold,
//! unless its user allows that: by a share (`--allow-less`), or for any agent that is lost (`--on-lost-agent continue`).

use brunt_judge::asked::{Asked, Made, Missing, Shortage};
use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;

/// What a decision lacks of what it asked for, and what became of its agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lacking {
    /// What was asked for and not made, beyond what its user allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short: Vec<Made>,
    /// Runs that lost an agent, in the order of time, and what was done about each, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
    /// Whether an agent was lost that its user does not go without.
    #[serde(default, skip_serializing_if = "is_false")]
    pub agents_lost: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes what it may leave out by reference")]
const fn is_false(is: &bool) -> bool {
    !*is
}

/// The runs that were asked of agents, where more than a share of them is missing; `None` where this machine made them.
/// `asked` is the number of runs, and `made` are those that were made.
pub fn of_agents<'a>(asked: usize, made: impl Iterator<Item = &'a Evidence>, most_less_ratio: f64) -> Option<Made> {
    let agents: Vec<_> = made.map(|run| run.agents).collect();
    let most = agents.iter().copied().max().filter(|most| *most > 0)?;
    let by_fewer = agents.iter().filter(|by| **by < most).count();
    let why = [(Shortage::LostAgents, by_fewer), (Shortage::NotMade, asked.saturating_sub(agents.len()))];
    let why = why.into_iter().filter(|(_, count)| *count > 0);
    let made = Made {
        of: Asked::Steps,
        asked: asked.max(agents.len()) as f64 * most as f64,
        made: agents.iter().sum::<u64>() as f64,
        why: why.map(|(shortage, count)| Missing { shortage, count: count as u64 }).collect(),
    };
    made.is_short(most_less_ratio).then_some(made)
}

#[cfg(test)]
mod tests {
    use brunt_judge::fixtures::summary;

    use super::*;

    #[test]
    fn runs_by_fewer_agents_and_runs_that_were_not_made_are_missing() {
        let of = |asked: usize, by: &[u64], most_less_ratio: f64| {
            let runs: Vec<_> =
                by.iter().map(|agents| Evidence { agents: *agents, ..Evidence::from_summary(&summary()) }).collect();
            let made = of_agents(asked, runs.iter(), most_less_ratio)?;
            let why = made.why.iter().map(|missing| (missing.shortage, missing.count)).collect::<Vec<_>>();
            Some((made.made as u64, made.asked as u64, why))
        };
        assert_eq!(of(3, &[2, 2, 2], 0.01), None);
        assert_eq!(
            of(3, &[0, 0], 0.01),
            None,
            "on this machine a run that could not be made has a sentence of its own"
        );
        assert_eq!(of(3, &[2, 1, 1], 0.01), Some((4, 6, vec![(Shortage::LostAgents, 2)])));
        assert_eq!(of(3, &[2, 1, 1], 0.34), None);
        let both = vec![(Shortage::LostAgents, 1), (Shortage::NotMade, 1)];
        assert_eq!(of(4, &[3, 3, 2], 0.1), Some((8, 12, both)));
    }
}
