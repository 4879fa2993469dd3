//! An agent as its controller meets it on the bus, and the limits of its calls.

use brunt_engine::Control;

use super::allowance::Allowance;
use super::{AHEAD_BRIEFLY_NS, AHEAD_NS, OnLost};
use crate::clock::Comparison;
use crate::link::Link;
use crate::messages::{Announcement, Grant, RequestsTaken, ToAgent};
use crate::rules::{Rule, is_broken};
use brunt_record::bytes::to_bytes;

/// An agent as its controller sees it.
pub(super) struct Peer {
    pub(super) agent: Announcement,
    pub(super) subject: String,
    pub(super) link: Link,
    pub(super) clock: Comparison,
    /// When it was last heard, in nanoseconds of the time for which the bus had let messages through.
    pub(super) heard: u64,
    /// When a part of a longer message of it last came, in the same time.
    pub(super) amid: u64,
    /// When it was last asked for the time, in nanoseconds.
    pub(super) asked_ns: u64,
    /// When the newest note that it has answered was sent, in nanoseconds.
    pub(super) answered_ns: u64,
    /// How far it may make calls in the load under way, by the furthest grant ever sent to it.
    pub(super) granted_ns: u64,
    /// The requests of a counted number that its workers have taken, as it has said since that was last looked at.
    pub(super) taken: Option<RequestsTaken>,
    /// The bytes that it may still send.
    pub(super) allowance: Allowance,
    /// The reason if it counts as lost.
    pub(super) lost: Option<String>,
    /// Whether its messages are no longer taken.
    pub(super) is_cut_off: bool,
}

impl Peer {
    pub(super) fn new(agent: Announcement, subject: String, link: Link, heard: u64) -> Self {
        Self {
            subject,
            agent,
            link,
            clock: Comparison::default(),
            heard,
            amid: 0,
            asked_ns: 0,
            answered_ns: 0,
            granted_ns: 0,
            taken: None,
            allowance: Allowance::default(),
            lost: None,
            is_cut_off: false,
        }
    }

    /// Declares it lost, for this reason. If it lives, it ends the run when it hears so.
    pub(super) fn lose(&mut self, reason: String, run: u32) {
        if self.lost.is_none() {
            self.lost = Some(reason);
            self.link.send(to_bytes(&ToAgent::Stop { run }));
        }
    }

    /// It sends what no agent sends: nothing more is taken from it. If it lives, it ends the run and is free.
    pub(super) fn cut_off(&mut self, reason: String, run: u32) {
        self.lose(reason, run);
        self.link.send(to_bytes(&ToAgent::Release));
        self.is_cut_off = true;
    }
}

/// A load under way, in which agents are granted how far they may make calls.
#[derive(Debug, Clone)]
pub(super) struct Granting {
    pub(super) run: u32,
    /// When it began, on the controller's clock, in nanoseconds.
    pub(super) at: u64,
    /// How much is granted ahead of the newest note that an agent has answered, in nanoseconds.
    pub(super) ahead_ns: u64,
    /// How long the warm-up is, in nanoseconds.
    pub(super) warmup_ns: u64,
    /// Changes of the run meanwhile.
    pub(super) control: Control,
}

impl Granting {
    pub(super) fn new(run: u32, at: u64, on_lost: OnLost, warmup_ns: u64, control: Control) -> Self {
        let ahead_ns = if on_lost == OnLost::Continue { AHEAD_NS } else { AHEAD_BRIEFLY_NS };
        Self { run, at, ahead_ns, warmup_ns, control }
    }

    /// Grants an agent how far it may make calls, and remembers it before it is sent. An agent that answers nothing
    /// gets no further.
    pub(super) fn grant(&self, peer: &mut Peer) -> Grant {
        let until_ns = (peer.answered_ns.saturating_add(self.ahead_ns)).saturating_sub(self.at);
        peer.granted_ns = peer.granted_ns.max(until_ns);
        let of_measured = i64::try_from(peer.granted_ns).unwrap_or(i64::MAX).saturating_sub_unsigned(self.warmup_ns);
        {
            let beyond = if is_broken(Rule::GrantIsRemembered) { 2_000_000_000 } else { 0 };
            Grant { run: self.run, until_ns: peer.granted_ns + beyond, changes: self.control.grant(of_measured) }
        }
    }
}
