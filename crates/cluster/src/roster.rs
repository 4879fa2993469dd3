//! The agents that carry out a run, and the part of each.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use brunt_plan::plan::{Load, Plan};
use brunt_plan::share::Portion;

use crate::CLUSTER_VERSION;
use crate::messages::Announcement;

/// The agents that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedAgents {
    /// This many, whichever they are.
    Number(u32),
    /// All that are there.
    All,
    /// All that have these tags.
    Tagged(BTreeMap<String, String>),
}

impl WantedAgents {
    /// Whether an agent may be one of them.
    pub(crate) fn fits(&self, agent: &Announcement) -> bool {
        match self {
            Self::Number(_) | Self::All => true,
            Self::Tagged(tags) => tags.iter().all(|(key, value)| agent.tags.get(key) == Some(value)),
        }
    }

    /// The least number of agents.
    pub(crate) fn least(&self) -> usize {
        match self {
            Self::Number(number) => *number as usize,
            Self::All | Self::Tagged(_) => 1,
        }
    }
}

/// Text that does not name agents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a number of agents, all, or tags such as zone=eu,disk=ssd, not '{0}'")]
pub struct WantedError(String);

impl FromStr for WantedAgents {
    type Err = WantedError;

    fn from_str(text: &str) -> Result<Self, WantedError> {
        if text == "all" {
            return Ok(Self::All);
        }
        if let Ok(number @ 1..) = text.parse() {
            return Ok(Self::Number(number));
        }
        let tags = text.split(',').map(|tag| tag.split_once('=').filter(|(key, _)| !key.is_empty()));
        let tags: Option<BTreeMap<_, _>> =
            tags.map(|tag| tag.map(|(key, value)| (key.to_owned(), value.to_owned()))).collect();
        tags.map(Self::Tagged).ok_or_else(|| WantedError(text.to_owned()))
    }
}

impl fmt::Display for WantedAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number} agents"),
            Self::All => f.write_str("all agents"),
            Self::Tagged(tags) => {
                f.write_str("agents with ")?;
                let mut separator = "";
                tags.iter()
                    .try_for_each(|(key, value)| write!(f, "{}{key}={value}", std::mem::replace(&mut separator, ",")))
            }
        }
    }
}

/// Why agents that are there cannot carry a run out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// Two processes announce themselves by the same name.
    #[error("two agents are called '{0}': give each a --name of its own")]
    SameName(String),
    /// An agent speaks another version.
    #[error(
        "agent '{name}' is brunt {version} (version {got} of what controllers and agents say, this brunt has \
         {CLUSTER_VERSION}): run one brunt everywhere"
    )]
    Version {
        /// Its name.
        name: String,
        /// brunt's version there.
        version: String,
        /// The agent's version.
        got: u16,
    },
    /// There are more agents than connections.
    #[error(
        "{connections} connections, or users alive at once, cannot be shared among {agents} agents: each needs one at least; ask \
         for fewer --agents"
    )]
    TooMany {
        /// Connections of the run.
        connections: u32,
        /// Agents.
        agents: u32,
    },
}

/// The reason for which an agent cannot work for this brunt, whichever others are there. Anybody may announce an agent,
/// so that one that cannot be used must not keep others from a run.
pub(crate) fn unusable(agent: &Announcement, there: &[Announcement]) -> Option<RosterError> {
    let Announcement { name, version, cluster_version, .. } = agent;
    if *cluster_version != CLUSTER_VERSION {
        let (name, version) = (name.clone(), version.clone());
        return Some(RosterError::Version { name, version, got: *cluster_version });
    }
    let is_other = |other: &&Announcement| other.name == *name && other.instance != agent.instance;
    there.iter().find(is_other).map(|_| RosterError::SameName(name.clone()))
}

/// The agents of a run, among those that are there: free and usable ones, in the order of their names. Agents that were
/// silent when claimed are taken only where there are too few others.
pub(crate) fn choose(
    there: &[Announcement],
    wanted: &WantedAgents,
    is_silent: impl Fn(&Announcement) -> bool,
) -> Vec<Announcement> {
    let mut fit: Vec<_> = there.iter().filter(|agent| wanted.fits(agent)).collect();
    fit.sort_by(|one, other| one.name.cmp(&other.name).then(one.instance.cmp(&other.instance)));
    // Agents of the same name cannot be told apart: all are left out.
    let alone = fit.chunk_by(|one, other| one.name == other.name).filter(|named| named.len() == 1);
    let mut fit: Vec<_> = alone.flatten().copied().cloned().collect();
    fit.retain(|agent| agent.cluster_version == CLUSTER_VERSION);
    fit.retain(|agent| agent.busy.is_none());
    let (silent, mut chosen): (Vec<_>, Vec<_>) = fit.into_iter().partition(is_silent);
    let others = match wanted {
        WantedAgents::Number(number) => (*number as usize).saturating_sub(chosen.len()),
        WantedAgents::All | WantedAgents::Tagged(_) if chosen.is_empty() => silent.len(),
        WantedAgents::All | WantedAgents::Tagged(_) => 0,
    };
    chosen.extend(silent.into_iter().take(others));
    if let WantedAgents::Number(number) = wanted {
        chosen.truncate(*number as usize);
    }
    chosen.sort_by(|one, other| one.name.cmp(&other.name));
    chosen
}

/// How many workers the agents of a run have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// As many each as it has cores.
    AsCores,
    /// The same, with about this many in all at most: a low rate is spread over few workers. Each agent has at least
    /// one.
    AtMost(u32),
    /// This many each.
    Each(u32),
}

/// The number of requests that is dealt to the run's connections, if the plan has one in the closed model.
pub(crate) fn dealt_requests(plan: &Plan) -> Option<u64> {
    plan.stop.requests.filter(|_| matches!(plan.load, Load::Closed {}) && plan.scenarios.is_none())
}

/// The part of each agent: never more workers in all than there are `connections`.
pub(crate) fn deal(agents: &[Announcement], workers: Workers, connections: u32) -> Result<Vec<Portion>, RosterError> {
    let number = agents.len() as u32;
    if number > connections {
        return Err(RosterError::TooMany { connections, agents: number });
    }
    let wish: Vec<u64> = agents
        .iter()
        .map(|agent| {
            let wish = if let Workers::Each(threads) = workers { threads } else { agent.cores };
            u64::from(wish.max(1))
        })
        .collect();
    let all: u64 = wish.iter().sum();
    let most = u64::from(match workers {
        Workers::AtMost(most) => most.clamp(number, connections),
        Workers::AsCores | Workers::Each(_) => connections,
    });
    let granted: Vec<u64> = if all <= most {
        wish
    } else {
        // One each; the rest is shared in proportion to their further wishes.
        let (spare, wished) = (most - u64::from(number), all - u64::from(number));
        wish.iter().map(|wish| 1 + (wish - 1) * spare / wished).collect()
    };
    let of = granted.iter().sum::<u64>() as u32;
    let mut first = 0;
    let portions = granted.into_iter().map(|workers| {
        let portion = Portion::new(first, workers as u32, of);
        first += workers as u32;
        portion
    });
    portions.collect::<Result<_, _>>().map_err(|_| RosterError::TooMany { connections, agents: number })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agent(name: &str, cores: u32) -> Announcement {
        Announcement {
            name: name.to_owned(),
            instance: u64::from(cores),
            version: "0".to_owned(),
            cluster_version: CLUSTER_VERSION,
            cores,
            connections: 1000,
            tags: [("zone".to_owned(), name.to_owned())].into(),
            busy: None,
            load: None,
            is_private: true,
            server: String::new(),
        }
    }

    #[test]
    fn words_say_which_agents() {
        assert_eq!("20".parse(), Ok(WantedAgents::Number(20)));
        assert_eq!("all".parse(), Ok(WantedAgents::All));
        let tags = [("zone".to_owned(), "eu".to_owned()), ("disk".to_owned(), String::new())];
        assert_eq!("zone=eu,disk=".parse(), Ok(WantedAgents::Tagged(tags.into())));
        for wrong in ["", "0", "-1", "some", "=eu", "zone=eu,x", "1.5"] {
            assert!(wrong.parse::<WantedAgents>().is_err(), "{wrong}");
        }
        assert_eq!("zone=eu,a=b".parse::<WantedAgents>().unwrap().to_string(), "agents with a=b,zone=eu");
    }

    #[test]
    fn agents_are_chosen_by_name_and_only_free_ones() {
        let mut there = vec![agent("c", 1), agent("a", 2), agent("b", 4)];
        let names = |chosen: Vec<Announcement>| chosen.into_iter().map(|agent| agent.name).collect::<Vec<_>>();
        let nobody = |_: &Announcement| false;
        assert_eq!(names(choose(&there, &WantedAgents::Number(2), nobody)), ["a", "b"]);
        let a = |agent: &Announcement| agent.name == "a";
        assert_eq!(names(choose(&there, &WantedAgents::Number(2), a)), ["b", "c"]);
        assert_eq!(names(choose(&there, &WantedAgents::Number(3), a)), ["a", "b", "c"]);
        assert_eq!(names(choose(&there, &WantedAgents::All, a)), ["b", "c"]);
        assert_eq!(names(choose(&there, &"zone=a".parse().unwrap(), a)), ["a"]);
        assert_eq!(names(choose(&there, &"zone=c".parse().unwrap(), nobody)), ["c"]);
        there[1].busy = Some("someone".to_owned());
        assert_eq!(names(choose(&there, &WantedAgents::All, nobody)), ["b", "c"]);
        let none = |there: &[Announcement]| there.iter().find_map(|agent| unusable(agent, there));
        assert_eq!(none(&there), None);
        there.push(agent("b", 5));
        assert_eq!(names(choose(&there, &WantedAgents::All, nobody)), ["c"]);
        assert_eq!(none(&there), Some(RosterError::SameName("b".to_owned())));
        there.truncate(3);
        there[0].cluster_version = 77;
        assert_eq!(names(choose(&there, &WantedAgents::All, nobody)), ["b"]);
        assert!(matches!(none(&there), Some(RosterError::Version { got: 77, .. })));
    }

    proptest! {
        #[test]
        fn every_worker_belongs_to_one_agent(
            cores in prop::collection::vec(0_u32..65, 1..40), threads in 1_u32..9, kind in 0..3,
            connections in 1_u32..2000,
        ) {
            let workers = [Workers::AsCores, Workers::AtMost(threads), Workers::Each(threads)][kind as usize];
            let agents: Vec<_> = cores.iter().map(|cores| agent("a", *cores)).collect();
            match deal(&agents, workers, connections) {
                Err(error) => prop_assert!(agents.len() as u32 > connections, "{error}"),
                Ok(portions) => {
                    let mut next = 0;
                    for portion in &portions {
                        prop_assert_eq!(portion.first(), next);
                        next += portion.workers();
                    }
                    prop_assert!(portions.iter().all(|portion| portion.all_workers() == next) && next <= connections);
                }
            }
        }
    }
}
