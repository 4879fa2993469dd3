//! A controller's state, moved by messages and time. It does no I/O and reads no clock: its driver ([`super::drive`],
//! or the simulation) hands in what has come, and sends the frames that it posts.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use brunt_engine::StopHandle;
use bytes::Bytes;

use super::contact::{Contact, ContactEvent};
use super::state::{Controller, Gathering, Next, State};
use super::{
    COMPARE_AT_FIRST_NS, ChosenAgents, ClusterError, ClusterOptions, Command, LISTEN_NS, LOOK_NS, Notice, OnLost,
};
use crate::bus::{BusError, refuses};
use crate::clock::Offset;
use crate::messages::{Announcement, FromAgent};
use crate::post::{BusEvent, Posted, Server};
use crate::roster::WantedAgents;

/// The terms on which a controller meets its bus.
pub(crate) struct Introduction<'a> {
    /// What subjects begin with.
    pub(crate) prefix: &'a str,
    /// The controller's own id.
    pub(crate) id: String,
    /// The server that it is connected to.
    pub(crate) server: Server,
    /// Whether messages on the way there are private.
    pub(crate) is_private: bool,
    /// Draws the id of a session.
    pub(crate) draw: fn() -> u128,
}

impl Controller {
    fn new(meeting: Introduction<'_>, terms: ClusterOptions, stop: StopHandle, state: State, now: u64) -> Self {
        let Introduction { prefix, id, server, is_private, draw } = meeting;
        Self {
            contact: Contact::new(prefix, id, server, draw, now),
            terms,
            is_private,
            state,
            orders: VecDeque::new(),
            stop,
            taken: None,
            working: BTreeSet::new(),
            sent_plan: None,
            missing: BTreeSet::new(),
            has_looked: false,
            gone: None,
        }
    }

    /// A controller that takes agents, and then follows the orders of [`Controller::order`].
    pub(crate) fn take_agents(meeting: Introduction<'_>, terms: ClusterOptions, stop: StopHandle, now: u64) -> Self {
        Self::new(meeting, terms, stop, State::Gathering(Gathering::begin(now)), now)
    }

    /// A controller that lists agents for `patience_ns`, with the offsets of their clocks.
    pub(crate) fn list(meeting: Introduction<'_>, patience_ns: u64, now: u64) -> Self {
        let state = State::Gathering(Gathering::list(now, now + patience_ns));
        let terms = ClusterOptions {
            wanted: WantedAgents::All,
            patience: Duration::ZERO,
            on_lost: OnLost::Continue,
            secrets_from_agents: false,
            name: meeting.id.clone(),
            notice: |_| {},
        };
        Self::new(meeting, terms, StopHandle::default(), state, now)
    }

    /// Its state, for debugging a simulation.
    #[cfg(test)]
    pub(crate) fn describe(&self) -> String {
        let state = match &self.state {
            State::Gathering(_) => "gathering",
            State::Claiming(_) => "claiming",
            State::Releasing(_) => "releasing",
            State::Resting => "resting",
            State::Joining(_) => "joining",
            State::Starting(_) => "starting",
            State::Settling(_) => "settling",
            State::Running(_) => "running",
            State::TearingDown(_) => "tearing down",
            State::Comparing(_) => "comparing",
            State::Over => "over",
        };
        let peers =
            self.contact.peers.iter().map(|peer| format!("\n  {}: {:?} {:?}", peer.agent.name, peer.lost, peer.link));
        format!("{state}{}", peers.collect::<String>())
    }

    /// The frames to be sent now.
    pub(crate) fn take_posted(&mut self) -> Vec<Posted> {
        self.contact.take_posted()
    }

    /// Whether it has nothing more to do.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The result of taking agents, once.
    pub(crate) fn take_taken(&mut self) -> Option<Result<ChosenAgents, ClusterError>> {
        self.taken.take()
    }

    /// News for its user since the last time.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.contact.notices)
    }

    /// The agents that it has, or has found, with the offsets of their clocks.
    pub(crate) fn agents(&self) -> Vec<(Announcement, Option<Offset>)> {
        self.contact.peers.iter().map(|peer| (peer.agent.clone(), peer.clock.offset())).collect()
    }

    /// Gives it an order, which it carries out as soon as it rests.
    pub(crate) fn order(&mut self, command: Command) {
        self.orders.push_back(command);
    }

    /// Takes in a message of the bus.
    pub(crate) fn receive(&mut self, subject: &str, payload: &Bytes, now: u64) {
        self.contact.receive(subject, payload, now);
    }

    /// Takes an event of the connection to the bus.
    pub(crate) fn bus_said(&mut self, event: BusEvent) {
        self.contact.bus_said(&event);
        match event {
            BusEvent::Gone(problem) => {
                let reason = BusError::Ended { problem: problem.clone() }.to_string();
                for peer in &mut self.contact.peers {
                    peer.lost.get_or_insert_with(|| reason.clone());
                }
                self.gone = Some(problem);
            }
            // Agents that it has prove that it has all permissions that it needs.
            BusEvent::Says(problem) if !self.contact.has_claimed && refuses(&problem) => {
                self.fail(BusError::Permission { problem }.into());
            }
            _ => {}
        }
    }

    /// It could not take agents, for this reason.
    pub(super) fn fail(&mut self, error: ClusterError) {
        self.taken = Some(Err(error));
        self.state = State::Over;
    }

    /// How long nothing has to be done, in nanoseconds.
    pub(crate) fn patience_ns(&self) -> u64 {
        match self.state {
            State::Gathering(_) | State::Claiming(_) | State::Running(_) => LOOK_NS,
            State::Starting(_) => LOOK_NS / 10,
            _ => LOOK_NS / 5,
        }
    }

    /// Does everything that is due by time, or follows from events.
    pub(crate) fn advance(&mut self, now: u64) {
        self.contact.look_after(now);
        loop {
            let next = match std::mem::replace(&mut self.state, State::Over) {
                State::Gathering(gathering) => self.gather(gathering, now),
                State::Claiming(claiming) => self.claim(claiming, now),
                State::Releasing(releasing) => self.release(releasing, now),
                State::Resting => self.rest(now),
                State::Joining(joining) => self.join(*joining, now),
                State::Starting(starting) => self.start(*starting, now),
                State::Settling(settling) => self.settle(*settling, now),
                State::Running(running) => self.see_through(*running, now),
                State::TearingDown(tearing) => self.tear_down(*tearing, now),
                State::Comparing(until) => self.compare(until, now),
                State::Over => Next::Stays(State::Over),
            };
            match next {
                Next::Moves(state) => self.state = state,
                Next::Stays(state) => {
                    self.state = state;
                    break;
                }
            }
        }
        self.contact.flush_links(now);
    }

    /// Between runs the agents are kept. One that leaves is lost to no run.
    fn rest(&mut self, now: u64) -> Next {
        while let Some(said) = self.contact.events.pop_front() {
            if let ContactEvent::Message(place, FromAgent::Leaving { reason }) = said {
                self.contact.lose(place, reason);
            }
        }
        match self.orders.pop_front() {
            Some(Command::Run(order)) => Next::Moves(self.take_order(*order, now)),
            Some(Command::Release) => Next::Moves(self.let_go(now, None)),
            None if self.gone.is_some() => Next::Stays(State::Over),
            None => Next::Stays(State::Resting),
        }
    }

    /// Compares clocks by notes, which need no claim.
    fn compare(&mut self, until: u64, now: u64) -> Next {
        self.contact.compare_clocks(COMPARE_AT_FIRST_NS, now);
        Next::Stays(if now >= until { State::Over } else { State::Comparing(until) })
    }

    /// Turns to who was found: all agents that are there.
    pub(super) fn compare_all(&mut self, now: u64) -> Next {
        let mut there = std::mem::take(&mut self.contact.there);
        there.sort_by(|one, other| one.name.cmp(&other.name));
        self.contact.own_new(&there);
        Next::Moves(State::Comparing(now + LISTEN_NS / 3))
    }

    /// The reason for which agents cannot be reached any more, if there is one.
    pub(super) fn gone(&self) -> Option<ClusterError> {
        let problem = self.gone.clone()?;
        Some(BusError::Ended { problem }.into())
    }
}
