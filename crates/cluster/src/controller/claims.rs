//! Which agents become the controller's own: those that are there, are free, and answer when they are claimed.

use std::collections::{BTreeSet, HashSet};
use std::time::Instant;

use brunt_engine::StopHandle;

use super::control::{Control, Said};
use super::{CALL, ClusterError, LISTEN, LOOK, MANNERS, Terms};
use crate::bus::Bus;
use crate::roster::{Wanted, choose};
use crate::words::{Announcement, FromAgent, ToAgent};

/// What came of a claim.
enum Claimed {
    /// All agents belong to this controller.
    All,
    /// One belongs to somebody else by now.
    Busy,
    /// These have not answered, by name and instance.
    Unanswered(Vec<(String, u64)>),
}

impl Control {
    /// Waits for agents and claims them.
    pub(super) async fn take(bus: &Bus, terms: Terms, stop: &StopHandle) -> Result<Self, ClusterError> {
        let mut control = Self::connect(bus, crate::bus::token_of(&terms.name)).await?;
        let began = Instant::now();
        // Those that did not answer a claim: others come first.
        let mut silent: HashSet<(String, u64)> = HashSet::new();
        loop {
            if stop.is_stopped() {
                return Err(ClusterError::Interrupted);
            }
            control.there.clear();
            let (wanted, least) = (terms.wanted.clone(), terms.wanted.least());
            let is_number = matches!(wanted, Wanted::Number(_));
            let listen = if is_number { CALL * 2 } else { LISTEN };
            let is_silent = |agent: &Announcement| silent.contains(&(agent.name.clone(), agent.instance));
            let is_enough = |there: &[Announcement]| {
                is_number && there.iter().filter(|agent| agent.busy.is_none() && !is_silent(agent)).count() >= least
            };
            control.listen(listen, is_enough).await?;
            let chosen = choose(&control.there, &wanted, is_silent)?;
            if chosen.len() >= least {
                let unanswered = match control.claim(&chosen, &terms.name).await? {
                    Claimed::All => {
                        control.leave_out(&wanted, &silent);
                        break;
                    }
                    Claimed::Busy => Vec::new(),
                    Claimed::Unanswered(who) => who,
                };
                silent.extend(unanswered);
            }
            if began.elapsed() >= terms.patience {
                control.own(Vec::new());
                control.leave_out(&wanted, &silent);
                let (found, patience, left_out) = (control.free(&wanted, &silent), terms.patience, control.left_out);
                return Err(ClusterError::TooFew { wanted: wanted.to_string(), found, patience, left_out });
            }
        }
        control.terms = Some(terms);
        Ok(control)
    }

    /// How many agents there are that it could have.
    fn free(&self, wanted: &Wanted, silent: &HashSet<(String, u64)>) -> usize {
        let is_silent = |agent: &Announcement| silent.contains(&(agent.name.clone(), agent.instance));
        self.there.iter().filter(|agent| wanted.fits(agent) && agent.busy.is_none() && !is_silent(agent)).count()
    }

    /// Notes each wanted agent that was not taken, and why. A wanted number of agents leaves nobody out.
    fn leave_out(&mut self, wanted: &Wanted, silent: &HashSet<(String, u64)>) {
        let is_own = |name: &str| self.peers.iter().any(|peer| peer.agent.name == name);
        if matches!(wanted, Wanted::Number(_)) && !self.peers.is_empty() {
            return;
        }
        let of = |agent: &Announcement| {
            let is_silent = silent.contains(&(agent.name.clone(), agent.instance));
            let unanswered = || is_silent.then(|| "did not answer the claim".to_owned());
            let why = agent.busy.as_ref().map(|by| format!("carries out a run of {by}")).or_else(unanswered)?;
            Some((agent.name.clone(), why))
        };
        let others = self.there.iter().filter(|agent| wanted.fits(agent) && !is_own(&agent.name));
        let mut left_out: Vec<_> = others.filter_map(of).collect();
        left_out.sort();
        self.left_out = left_out;
    }

    /// Claims these agents: all of them, or none.
    async fn claim(&mut self, chosen: &[Announcement], name: &str) -> Result<Claimed, ClusterError> {
        self.said.clear();
        self.own_new(chosen);
        self.tell_all(&ToAgent::Claim { by: name.to_owned(), controller: self.id().to_owned() });
        let mut missing: BTreeSet<usize> = (0..chosen.len()).collect();
        let began = Instant::now();
        let mut is_busy = false;
        while !is_busy && !missing.is_empty() {
            self.step(LOOK).await?;
            while let Some(said) = self.said.pop_front() {
                match said {
                    Said::Words(place, FromAgent::Claimed) => drop(missing.remove(&place)),
                    Said::Words(..) => {}
                    Said::Busy(place, by) => {
                        is_busy = true;
                        let name = self.peers.get(place).map(|peer| peer.agent.name.clone());
                        self.there
                            .iter_mut()
                            .filter(|a| Some(&a.name) == name.as_ref())
                            .for_each(|a| a.busy = Some(by.clone()));
                    }
                }
            }
            let is_lost = |place: &usize| self.peers.get(*place).is_none_or(|peer| peer.lost.is_some());
            if missing.iter().any(is_lost) || began.elapsed() >= MANNERS {
                break;
            }
        }
        if !is_busy && missing.is_empty() {
            return Ok(Claimed::All);
        }
        let mut unanswered = Vec::new();
        for (place, peer) in self.peers.iter_mut().enumerate() {
            let is_late = peer.lost.is_some() || began.elapsed() >= MANNERS;
            if !is_busy && is_late && missing.contains(&place) {
                unanswered.push((peer.agent.name.clone(), peer.agent.instance));
                // Nobody waits for its word any more.
                peer.lost.get_or_insert_default();
            }
        }
        self.release().await;
        Ok(if is_busy { Claimed::Busy } else { Claimed::Unanswered(unanswered) })
    }
}
