//! What the agents of a run have in common: how it is changed while it goes on, and what they count together.

use std::collections::BTreeMap;

use brunt_plan::plan::Load;
use brunt_plan::timetable::Timetable;
use brunt_record::change::Change;

use super::in_run::InRun;
use super::progress::InProgress;

impl InProgress {
    /// Keeps accounts by these changes of the run from now on.
    pub(super) fn hear(&mut self, changes: &[Change]) {
        let Load::Open { profile, .. } = &self.begun.plan.load else { return };
        if changes.len() == self.heard {
            return;
        }
        self.heard = changes.len();
        let profile = Timetable::new(profile.clone()).with(changes, 0);
        for agent in &mut self.begun.agents {
            agent.inspection.change(&profile);
            agent.lost.iter_mut().for_each(|lost| lost.change(&profile));
        }
        self.changed = Some(profile);
    }

    /// What all others have counted, for each agent.
    pub(super) fn counts_elsewhere(&self) -> Vec<(usize, BTreeMap<String, u64>)> {
        let mut all: BTreeMap<&String, u64> = BTreeMap::new();
        for agent in &self.begun.agents {
            agent.counts.iter().for_each(|(name, count)| *all.entry(name).or_default() += count);
        }
        let of_others = |agent: &InRun| {
            let less = |(name, count): (&&String, &u64)| {
                let own = agent.counts.get(*name).copied().unwrap_or(0);
                ((*name).clone(), count - own)
            };
            all.iter().map(less).filter(|(_, count)| *count > 0).collect()
        };
        self.begun.agents.iter().enumerate().map(|(place, agent)| (place, of_others(agent))).collect()
    }
}
