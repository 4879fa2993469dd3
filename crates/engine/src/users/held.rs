//! Connections that a user holds for itself, and calls with several answers: the basis of conversations.

use std::collections::VecDeque;
use std::fmt;

use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::{UsersNetwork, VirtualUser, VirtualUsers};
use crate::network::{AnswerOf, End, Gone, Judgement, Place};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::scenario::{CompleteAnswer, Encoded};
use brunt_protocol::user::Message;
use brunt_protocol::{Client, Started};
use brunt_script::{Placement, Verdict};

/// The most connections that a user may hold at once.
const MOST_HELD: usize = 100;

/// A connection that a user holds.
pub(super) struct Held {
    /// The script's number for it.
    handle: u32,
    connection: HeldConnection,
    /// Calls of the user's tasks that wait for their turn on it.
    waiting: VecDeque<u32>,
}

/// A connection that a user holds, during its life and after.
enum HeldConnection {
    /// The connection exists or is being made.
    Open(ConnectionId),
    /// It has ended, for this reason. Its client still has the bytes that came before.
    Gone { client: Box<dyn Client>, failure: Failure, reason: String },
}

impl VirtualUser {
    fn held(&mut self, handle: u32) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.handle == handle)
    }

    /// Checks that the user may hold one more connection.
    ///
    /// # Errors
    /// When it holds as many as it may.
    pub(super) fn may_hold(&self) -> Result<(), String> {
        if self.held.len() < MOST_HELD {
            return Ok(());
        }
        Err(format!(
            "this user has {MOST_HELD} connections open, and may have no more: close those that it is done with"
        ))
    }

    /// The slots of calls that wait for their turn on one of the held connections.
    #[cfg(feature = "simulation")]
    pub(super) fn waiting_on_held(&self) -> impl Iterator<Item = u32> {
        self.held.iter().flat_map(|held| held.waiting.iter().copied())
    }

    /// Holds a connection from now on.
    pub(super) fn hold(&mut self, handle: u32, token: ConnectionId) {
        self.held.push(Held { handle, connection: HeldConnection::Open(token), waiting: VecDeque::new() });
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// What a call finds in place of the connection that its user holds.
enum Found {
    /// The connection.
    Connection(ConnectionId),
    /// The connection has ended; an answer with this status had come before.
    Answer(u16),
    /// The connection has ended, and no answer is left.
    Nothing(Failure, String),
}

impl VirtualUsers {
    /// Takes a call to the connection that its user holds.
    pub(super) fn place_on_held<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        slot: u32,
        handle: u32,
        now: Tick,
    ) {
        match self.find_held(slot, handle) {
            Found::Nothing(failure, reason) => self.complete(network, slot, End::Failed(failure, &reason), now),
            Found::Answer(status) => self.answer_from_remains(network, slot, handle, status, now),
            Found::Connection(token) => {
                // The protocol decides how many calls go on a connection at once.
                if network.connections[token].room(usize::MAX) > 0 {
                    return self.send_on(network, token, slot, now);
                }
                let Some(call) = self.calls.get(slot) else { return };
                let (home, id) = (self.home(call.user), call.id);
                if let Some(held) = self.users.get_mut(home).and_then(|user| user.held(handle)) {
                    held.waiting.push_back(slot);
                }
                if let Some(id) = id {
                    network.bound_wait(self, id);
                }
            }
        }
    }

    /// Places waiting calls on a connection that `user` holds, while it has room.
    pub(super) fn serve_held<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, user: u32) {
        while network.connections[token].room(usize::MAX) > 0 {
            let now = network.driver.now();
            if self.reach.holds_back(now) {
                return;
            }
            let is_it = |held: &&mut Held| matches!(held.connection, HeldConnection::Open(known) if known == token);
            let Some(held) = self.user(user).and_then(|of| of.held.iter_mut().find(is_it)) else { return };
            let handle = held.handle;
            let Some(slot) = held.waiting.pop_front() else { return };
            if self.waits_for(network, slot, handle) {
                self.send_on(network, token, slot, now);
            }
        }
    }

    /// Whether the call in this slot still waits for the connection of this handle: it may have timed out.
    fn waits_for<D: Driver>(&self, network: &UsersNetwork<D>, slot: u32, handle: u32) -> bool {
        let Some(call) = self.calls.get(slot) else { return false };
        let waits = call.id.and_then(|id| network.call(id)).is_some_and(|call| call.place == Place::Waiting);
        waits && call.way == Placement::On(handle)
    }

    /// Places calls whose connection has ended: each takes an answer that is left of it, or fails.
    fn place_rest<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        (handle, waiting): (u32, VecDeque<u32>),
        now: Tick,
    ) {
        for slot in waiting {
            if self.waits_for(network, slot, handle) {
                self.place_on_held(network, slot, handle, now);
            }
        }
    }

    /// The connection of a call, or what is left of it.
    fn find_held(&mut self, slot: u32, handle: u32) -> Found {
        let nothing = |reason: &str| Found::Nothing(Failure::Closed, reason.to_owned());
        let home = self.calls.get(slot).map(|call| self.home(call.user));
        let (Some(home), Some(call)) = (home, self.calls.get_mut(slot)) else {
            return nothing("there is no such call");
        };
        let held = self.users.get_mut(home).and_then(|user| user.held(handle));
        let Some(held) = held else { return nothing("the script has closed this connection") };
        match &mut held.connection {
            HeldConnection::Open(token) => Found::Connection(*token),
            HeldConnection::Gone { client, failure, reason } => {
                let Encoded { bytes, idempotent, hint, .. } = &call.encoded;
                let message = Message { bytes, idempotent: *idempotent, hint: *hint, ..Message::default() };
                let mut unsent = Vec::new();
                match client.start(&message, &mut unsent) {
                    Started::Sent(status) if unsent.is_empty() => {
                        client.hand_over(&mut call.kept);
                        Found::Answer(status)
                    }
                    // What an earlier call failed of is that call's alone.
                    _ => match failure {
                        Failure::Timeout
                        | Failure::Stalled
                        | Failure::Mismatch
                        | Failure::Protocol
                        | Failure::Oversize => nothing("the connection ended with an earlier call"),
                        _ => Found::Nothing(*failure, reason.clone()),
                    },
                }
            }
        }
    }

    /// Ends a call with an answer that had come before its connection ended.
    fn answer_from_remains<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        slot: u32,
        handle: u32,
        status: u16,
        now: Tick,
    ) {
        let mut status = status;
        loop {
            match self.show_judge(slot, status, now) {
                Shown::Taken => break,
                Shown::Failed { reason, .. } => {
                    return self.complete(network, slot, End::Failed(Failure::Mismatch, &reason), now);
                }
                Shown::ReadsOn => {}
            }
            let Some(call) = self.calls.get_mut(slot) else { return };
            // From now on the call asks for its next answer.
            std::mem::swap(&mut call.encoded, &mut call.next);
            let found = self.find_held(slot, handle);
            if let Some(call) = self.calls.get_mut(slot) {
                std::mem::swap(&mut call.encoded, &mut call.next);
            }
            match found {
                Found::Answer(next) => status = next,
                Found::Nothing(failure, reason) => {
                    return self.complete(network, slot, End::Failed(failure, &reason), now);
                }
                Found::Connection(_) => return,
            }
        }
        let Some(id) = self.calls.get(slot).and_then(|call| call.id) else { return };
        if let Some(call) = network.call_mut(id) {
            call.send(now, 0);
            call.receive(now);
        }
        network.complete(self, id, End::Answered(status), now);
    }

    /// Shows an answer to the script's judge of the call in this slot, if it has one. The answer lies in the slot.
    fn show_judge(&mut self, slot: u32, status: u16, now: Tick) -> Shown {
        let Some(call) = self.calls.get(slot).filter(|call| call.judged) else { return Shown::Taken };
        let Some(client) = self.clients.get(call.client) else { return Shown::Taken };
        let answered = CompleteAnswer { status, parts: call.kept.parts() };
        let flags = client.caller.flags(&answered);
        let timer = self.begin_step();
        let Some(call) = self.calls.get(slot) else { return Shown::Taken };
        let judged = self.library.judge(call.user, now, &call.kept.body, flags, status);
        self.end_step(timer);
        let values = match judged {
            Verdict::Taken => return Shown::Taken,
            Verdict::ReadsOn(values) => values,
            Verdict::Rejected(reason) => return Shown::Failed { reason, reusable: true },
            Verdict::Broken(reason) => return Shown::Failed { reason, reusable: false },
        };
        let sees = self.trace.is_some();
        let Some(call) = self.calls.get_mut(slot) else { return Shown::Taken };
        let Some(client) = self.clients.get(call.client) else { return Shown::Taken };
        if sees {
            call.before.extend_from_slice(&call.kept.body);
            call.before.push(b'\n');
        }
        call.next.clear();
        match client.caller.encode(&values, &mut call.next) {
            Ok(()) => Shown::ReadsOn,
            Err(problem) => Shown::Failed { reason: problem.0, reusable: false },
        }
    }

    /// Judges an answer on a connection, and requests the next one where the call takes another.
    #[cold]
    pub(super) fn judge_in_flight<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        answer: &AnswerOf<u32>,
    ) -> Judgement {
        let slot = answer.tag;
        let Some(call) = self.calls.get_mut(slot) else { return Judgement::Ended };
        network.connections[answer.token].link.client.hand_over(&mut call.kept);
        match self.show_judge(slot, answer.status, answer.now) {
            Shown::Taken => Judgement::Ended,
            Shown::Failed { reason, reusable } => Judgement::Wrong { reason, reusable },
            Shown::ReadsOn => {
                let Some(call) = self.calls.get(slot) else { return Judgement::Ended };
                let Encoded { bytes, idempotent, hint, .. } = &call.next;
                let message = Message { bytes, idempotent: *idempotent, hint: *hint, ..Message::default() };
                Judgement::GoesOn { ends_sent: network.ask_on(answer.token, &message) }
            }
        }
    }

    /// Keeps what had come on a held connection that has ended, until its user closes it.
    pub(super) fn keep_remains<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        gone: Gone<'_>,
        now: Tick,
    ) {
        let Gone { token, client, failure, reason, .. } = gone;
        let Some(user) = self.user(user) else { return };
        let is_it = |held: &&mut Held| matches!(held.connection, HeldConnection::Open(known) if known == token);
        if let Some(held) = user.held.iter_mut().find(is_it) {
            held.connection = HeldConnection::Gone { client, failure, reason: reason.to_owned() };
            let rest = (held.handle, std::mem::take(&mut held.waiting));
            self.place_rest(network, rest, now);
        }
    }

    /// Closes a connection that a user holds, with its protocol's closing bytes.
    pub(super) fn release<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: u32, handle: u32) {
        let home = self.home(user);
        let Some(user) = self.user(home) else { return };
        let Some(at) = user.held.iter().position(|held| held.handle == handle) else { return };
        let mut held = user.held.swap_remove(at);
        let rest = (held.handle, std::mem::take(&mut held.waiting));
        self.close_held(network, vec![held]);
        let now = network.driver.now();
        self.place_rest(network, rest, now);
    }

    /// Closes connections that a user held.
    pub(super) fn close_held<D: Driver>(&mut self, network: &mut UsersNetwork<D>, all: Vec<Held>) {
        let open = all.into_iter().filter_map(|held| match held.connection {
            HeldConnection::Open(token) => Some(token),
            HeldConnection::Gone { .. } => None,
        });
        self.close_connections(network, open);
    }
}

/// The result of showing an answer to the script.
enum Shown {
    /// The answer is the last of its call.
    Taken,
    /// The call takes another answer.
    ReadsOn,
    /// The call fails, for this reason; its connection may be used again or not.
    Failed { reason: String, reusable: bool },
}
