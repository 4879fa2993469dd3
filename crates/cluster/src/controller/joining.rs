//! Before a run: agents that were lost and are back take part again, and all that have a secret to hear are on one server.

use std::collections::BTreeSet;

use super::contact::ContactEvent;
use super::peer::Peer;
use super::startup::has_secrets;
use super::state::{Controller, Joining, Next, State};
use super::waits::Notice;
use super::{CALL_NS, MANNERS_NS, OnLost, Order};
use crate::messages::{Announcement, FromAgent, ToAgent};
use crate::roster::unusable;
use brunt_record::bytes::to_bytes;

/// How long agents that were lost may take to say that they are back, in nanoseconds.
const LISTENING_NS: u64 = 2 * CALL_NS;
/// How long agents and controller may be on different servers, as each comes back from a server that was started anew;
/// in nanoseconds.
const MEETING_NS: u64 = 5_000_000_000;

impl Joining {
    pub(super) fn state(order: Order, now: u64) -> State {
        State::Joining(Box::new(Self { order, since: now, called: None, claimed: None }))
    }
}

impl Controller {
    /// Waits until all are there that may take part.
    pub(super) fn join(&mut self, mut joining: Joining, now: u64) -> Next {
        let is_ended = joining.order.stop.is_stopped() || self.gone().is_some();
        if is_ended || !self.look_for_missing(&mut joining, now) && !self.waits_for_servers(&joining, now) {
            self.contact.looks = false;
            return Next::Moves(self.begin(joining.order));
        }
        Next::Stays(State::Joining(Box::new(joining)))
    }

    /// Looks for agents that were lost in earlier runs. False once there is nothing to wait for.
    fn look_for_missing(&mut self, joining: &mut Joining, now: u64) -> bool {
        if joining.claimed.is_none() && self.missing.is_empty() {
            return false;
        }
        if let Some(claimed) = &mut joining.claimed {
            while let Some(said) = self.contact.events.pop_front() {
                match said {
                    ContactEvent::Message(place, FromAgent::Claimed) => drop(claimed.remove(&self.contact.name(place))),
                    ContactEvent::Message(..) => {}
                    ContactEvent::Busy(place, by) => self.contact.lose(place, format!("it carries out a run of {by}")),
                }
            }
            claimed.retain(|name| self.contact.has(name));
            if !claimed.is_empty() && now.saturating_sub(joining.since) < MANNERS_NS {
                return true;
            }
            let late = std::mem::take(claimed);
            for place in 0..self.contact.peers.len() {
                if late.contains(&self.contact.name(place)) {
                    self.contact.lose(place, "it did not answer the claim".to_owned());
                }
            }
            let back: Vec<String> = self.missing.iter().filter(|name| self.contact.has(name)).cloned().collect();
            self.missing.retain(|name| !back.contains(name));
            self.leave_lost_behind(now);
            if !back.is_empty() {
                // They do not have the plan.
                self.sent_plan = None;
                self.contact.notices.push(Notice::Joined(back));
            }
            // Once for each run.
            (joining.claimed, joining.since, self.has_looked) = (None, now, true);
            return false;
        }
        if self.has_looked {
            return false;
        }
        self.contact.looks = true;
        if joining.called.is_none_or(|called| now.saturating_sub(called) >= CALL_NS) {
            joining.called = Some(now);
            self.contact.call();
        }
        let there = &self.contact.there;
        let is_back = |name: &&String| {
            let named = |agent: &&Announcement| agent.name == **name && agent.busy.is_none();
            there.iter().filter(named).any(|agent| unusable(agent, there).is_none())
        };
        let back: BTreeSet<String> = self.missing.iter().filter(is_back).cloned().collect();
        if back.len() < self.missing.len() && now.saturating_sub(joining.since) < LISTENING_NS {
            return true;
        }
        self.contact.looks = false;
        let there = std::mem::take(&mut self.contact.there);
        let agents: Vec<_> =
            there.into_iter().filter(|agent| agent.busy.is_none() && back.contains(&agent.name)).collect();
        let (by, controller) = (self.terms.name.clone(), self.contact.id().to_owned());
        self.contact.events.clear();
        self.contact.own_more(&agents);
        for name in &back {
            let claim = ToAgent::Claim { by: by.clone(), controller: controller.clone() };
            if let Some(place) = self.contact.peers.iter().position(|peer| peer.agent.name == *name) {
                self.contact.tell(place, &claim);
            }
        }
        (joining.claimed, joining.since) = (Some(back), now);
        true
    }

    /// Whether some are still to come to the controller's server, where the plan has secrets.
    fn waits_for_servers(&self, joining: &Joining, now: u64) -> bool {
        let server = &self.contact.server.id;
        let is_elsewhere = |peer: &Peer| peer.lost.is_none() && peer.agent.server != *server;
        now.saturating_sub(joining.since) < MEETING_NS
            && self.contact.runs > 0
            && self.contact.peers.iter().any(is_elsewhere)
            && has_secrets(&joining.order.plan)
    }

    /// Turns to an order of a run.
    pub(super) fn take_order(&mut self, order: Order, now: u64) -> State {
        self.leave_lost_behind(now);
        self.has_looked = false;
        Joining::state(order, now)
    }

    /// Goes on without agents that were lost, unless that was to end everything. They may come back.
    fn leave_lost_behind(&mut self, now: u64) {
        let goes_on = self.terms.on_lost != OnLost::Abort && self.contact.runs > 0;
        if !goes_on || self.contact.peers.iter().all(|peer| peer.lost.is_none()) {
            return;
        }
        let (lost, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.contact.peers).into_iter().partition(|peer| peer.lost.is_some());
        for mut peer in lost {
            // One that lives is free from now on.
            peer.link.send(to_bytes(&ToAgent::Release));
            self.contact.post_all(&mut peer, now);
            self.missing.insert(peer.agent.name);
        }
        self.contact.own(left);
    }
}
