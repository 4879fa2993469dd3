//! Gathering the controller's agents: those that are there, free, and answer a claim.

use super::contact::ContactEvent;
use super::state::{Claiming, Controller, Gathering, Next, Releasing, State};
use super::{CALL_NS, ChosenAgents, ClusterError, LISTEN_NS, MANNERS_NS};
use crate::messages::{Announcement, FromAgent, ToAgent};
use crate::roster::{RosterError, WantedAgents, choose, unusable};

/// How long agents may take to be released once the user has asked twice, in nanoseconds.
const HASTE_NS: u64 = 300_000_000;
/// The most agents for which an error has the reason that they cannot be used. Anybody may announce more.
const MOST_NAMED: usize = 100;

impl Controller {
    /// Waits for agents, and claims them.
    pub(super) fn gather(&mut self, mut gathering: Gathering, now: u64) -> Next {
        if let Some(error) = self.gone() {
            return self.take_none(error);
        }
        if self.stop.is_stopped() {
            return self.take_none(ClusterError::Interrupted);
        }
        if let Some(until) = gathering.lists_until
            && now >= until
        {
            return self.compare_all(now);
        }
        if gathering.called.is_none_or(|called| now.saturating_sub(called) >= CALL_NS) {
            gathering.called = Some(now);
            self.contact.call();
        }
        let wanted = self.terms.wanted.clone();
        let (least, is_number) = (wanted.least(), matches!(wanted, WantedAgents::Number(_)));
        let is_free = |agent: &&Announcement| agent.busy.is_none() && !gathering.is_silent(agent);
        let is_enough = is_number && self.contact.there.iter().filter(is_free).count() >= least;
        let listen_ns = if is_number { CALL_NS * 2 } else { LISTEN_NS };
        if gathering.lists_until.is_some() || !is_enough && now.saturating_sub(gathering.since) < listen_ns {
            return Next::Stays(State::Gathering(gathering));
        }
        let chosen = choose(&self.contact.there, &wanted, |agent| gathering.is_silent(agent));
        if chosen.len() < least {
            return self.gather_again(gathering, now);
        }
        self.contact.events.clear();
        self.contact.own_new(&chosen);
        let (by, controller) = (self.terms.name.clone(), self.contact.id().to_owned());
        self.contact.tell_all(&ToAgent::Claim { by, controller });
        let missing = (0..chosen.len()).collect();
        Next::Moves(State::Claiming(Claiming { gathering, since: now, missing, is_busy: false }))
    }

    /// Asks again, unless it has waited long enough.
    fn gather_again(&mut self, gathering: Gathering, now: u64) -> Next {
        let (patience, wanted) = (self.terms.patience, self.terms.wanted.clone());
        if u128::from(now.saturating_sub(gathering.began)) >= patience.as_nanos() {
            self.contact.own(Vec::new());
            let is_there =
                |agent: &&Announcement| wanted.fits(agent) && agent.busy.is_none() && !gathering.is_silent(agent);
            let found = self.contact.there.iter().filter(is_there).count();
            let left_out = self.left_out(&gathering);
            return self.take_none(ClusterError::TooFew { wanted: wanted.to_string(), found, patience, left_out });
        }
        self.contact.there.clear();
        Next::Stays(State::Gathering(gathering.again(now)))
    }

    fn take_none(&mut self, error: ClusterError) -> Next {
        self.taken = Some(Err(error));
        Next::Stays(State::Over)
    }

    /// The reason for each wanted agent that is there and cannot be used.
    fn unusable(&self) -> impl Iterator<Item = RosterError> {
        let there = &self.contact.there;
        let wanted = there.iter().filter(|agent| self.terms.wanted.fits(agent)).take(MOST_NAMED);
        wanted.filter_map(|agent| unusable(agent, there))
    }

    /// Each wanted agent that was not taken, with the reason; empty where only a number of agents is wanted.
    fn left_out(&self, gathering: &Gathering) -> Vec<(String, String)> {
        let wanted = &self.terms.wanted;
        let is_own = |name: &str| self.contact.peers.iter().any(|peer| peer.agent.name == name);
        if matches!(wanted, WantedAgents::Number(_)) && !self.contact.peers.is_empty() {
            return Vec::new();
        }
        let of = |agent: &Announcement| {
            let unanswered = || gathering.is_silent(agent).then(|| "did not answer the claim".to_owned());
            let why = agent.busy.as_ref().map(|by| format!("carries out a run of {by}")).or_else(unanswered)?;
            Some((agent.name.clone(), why))
        };
        let others = self.contact.there.iter().filter(|agent| wanted.fits(agent) && !is_own(&agent.name));
        let unusable = self.unusable().map(|error| match error {
            RosterError::Version { name, version, .. } => {
                (name, format!("is brunt {version}: run one brunt everywhere"))
            }
            RosterError::SameName(name) => (name, "is not the only one of its name".to_owned()),
            RosterError::TooMany { .. } => (String::new(), error.to_string()),
        });
        let mut left_out: Vec<_> = others.filter_map(of).chain(unusable).collect();
        left_out.sort();
        left_out.dedup_by(|one, other| one.0 == other.0);
        left_out
    }

    /// Waits for all claimed agents: all become its own, or none.
    pub(super) fn claim(&mut self, mut claiming: Claiming, now: u64) -> Next {
        while let Some(said) = self.contact.events.pop_front() {
            match said {
                ContactEvent::Message(place, FromAgent::Claimed) => drop(claiming.missing.remove(&place)),
                ContactEvent::Message(..) => {}
                ContactEvent::Busy(place, by) => {
                    claiming.is_busy = true;
                    let name = self.contact.name(place);
                    let known = self.contact.there.iter_mut().filter(|agent| agent.name == name);
                    known.for_each(|agent| agent.busy = Some(by.clone()));
                }
            }
        }
        let Claiming { mut gathering, since, missing, is_busy } = claiming;
        if !is_busy && missing.is_empty() {
            (self.contact.has_claimed, self.contact.looks) = (true, false);
            let agents = self.contact.peers.iter().map(|peer| peer.agent.clone()).collect();
            let left_out = self.left_out(&gathering);
            self.taken = Some(Ok(ChosenAgents { agents, left_out }));
            return Next::Moves(State::Resting);
        }
        let is_late = now.saturating_sub(since) >= MANNERS_NS;
        if !is_busy && !is_late && !missing.iter().any(|place| self.contact.is_lost(*place)) {
            return Next::Stays(State::Claiming(Claiming { gathering, since, missing, is_busy }));
        }
        for place in missing.into_iter().filter(|_| !is_busy) {
            let Some(peer) = self.contact.peers.get_mut(place).filter(|peer| is_late || peer.lost.is_some()) else {
                continue;
            };
            gathering.silent.insert((peer.agent.name.clone(), peer.agent.instance));
            // Nobody waits for its answer any more.
            peer.lost.get_or_insert_default();
        }
        Next::Moves(self.let_go(now, Some(gathering)))
    }

    /// Lets the agents go.
    pub(super) fn let_go(&mut self, now: u64, then: Option<Gathering>) -> State {
        self.contact.tell_all(&ToAgent::Release);
        State::Releasing(Releasing { since: now, then })
    }

    /// Waits until they know that they are free.
    pub(super) fn release(&mut self, releasing: Releasing, now: u64) -> Next {
        let has_word = |peer: &super::peer::Peer| peer.lost.is_none() && !peer.link.is_acknowledged();
        let waits = self.contact.peers.iter().any(has_word) && self.gone().is_none();
        // Somebody who has asked twice has no time for manners.
        let manners_ns = if self.stop.leaves() { HASTE_NS } else { MANNERS_NS / 2 };
        if waits && now.saturating_sub(releasing.since) < manners_ns {
            return Next::Stays(State::Releasing(releasing));
        }
        self.contact.own(Vec::new());
        self.sent_plan = None;
        match releasing.then {
            Some(gathering) => self.gather_again(gathering, now),
            None => Next::Stays(State::Over),
        }
    }
}
