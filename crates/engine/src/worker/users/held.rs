//! Connections that a user has for itself, and calls that take several answers: what a conversation needs.

use std::fmt;

use brunt_model::outcome::Failure;

use super::super::connection::{Call, Owner, State as ConnectionState};
use super::super::{Source, Worker};
use super::{VirtualUser, VirtualUsers};
use crate::protocol::scenario::{Answered, Encoded};
use crate::protocol::{Client, Started};
use crate::script::scenario::Verdict;
use crate::transport::Driver;
use crate::user::Message;

/// The most connections that a user may hold at once.
const MOST_HELD: usize = 100;

/// A connection that a user holds.
pub(super) struct Held {
    /// The script's number for it.
    handle: u32,
    place: Place,
}

/// Where a connection is that a user holds.
enum Place {
    /// It is there, or being made.
    Open(usize),
    /// It has ended, for this reason. What had come before can still be had of its client.
    Gone { client: Box<dyn Client>, failure: Failure, reason: String },
}

impl VirtualUser {
    fn held(&mut self, handle: u32) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.handle == handle)
    }

    /// Checks that it may hold one more.
    ///
    /// # Errors
    /// When it may not.
    pub(super) fn may_hold(&self) -> Result<(), String> {
        if self.held.len() < MOST_HELD {
            return Ok(());
        }
        Err(format!(
            "this user has {MOST_HELD} connections open, and may have no more: close those that it is done with"
        ))
    }

    /// Holds a connection from now on.
    pub(super) fn hold(&mut self, handle: u32, token: usize) {
        self.held.push(Held { handle, place: Place::Open(token) });
    }
}

impl VirtualUsers {
    /// What there is of a call's connection: the answer that had come before it ended, or how it did.
    fn gone(&mut self, slot: u32, handle: u32) -> Option<Remains> {
        let of = self.calls.get_mut(slot as usize)?;
        let user = self.users.get_mut(of.user as usize)?;
        let Some(held) = user.held(handle) else {
            let reason = "the script has closed this connection";
            return Some(Remains::Nothing(Failure::Closed, reason.to_owned()));
        };
        match &mut held.place {
            Place::Open(_) => None,
            Place::Gone { client, failure, reason } => {
                let Encoded { bytes, idempotent, hint, .. } = &of.encoded;
                let message = Message { bytes, idempotent: *idempotent, hint: *hint, ..Message::default() };
                let mut unsent = Vec::new();
                match client.start(&message, &mut unsent) {
                    Started::Sent(status) if unsent.is_empty() => {
                        client.hand_over(&mut of.kept);
                        Some(Remains::Answer(status))
                    }
                    _ => Some(Remains::Nothing(*failure, reason.clone())),
                }
            }
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// What came of showing an answer to the script.
enum Judgement {
    /// It is the last of its call.
    Taken,
    /// The call takes another one.
    ReadsOn,
    /// The call fails, for this reason; its connection goes on, or not.
    Failed { reason: String, reusable: bool },
}

/// What is left of a connection that has ended.
enum Remains {
    Answer(u16),
    Nothing(Failure, String),
}

impl<D: Driver> Worker<D> {
    /// Takes a call to the connection that its user holds.
    pub(super) fn place_on_held(&mut self, slot: u32, handle: u32, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        let Some(of) = users.calls.get(slot as usize) else { return };
        let user = of.user;
        match users.gone(slot, handle) {
            Some(Remains::Nothing(failure, reason)) => return self.fail_waiting(slot, failure, &reason, now),
            Some(Remains::Answer(status)) => return self.answer_from_remains(slot, handle, status, now),
            None => {}
        }
        let Source::Users(users) = &mut self.source else { return };
        let held = users.user(user).and_then(|user| user.held(handle));
        let Some(Held { place: Place::Open(token), .. }) = held else { return };
        let token = *token;
        let connection = &self.connections[token];
        if connection.state == ConnectionState::Open && connection.calls.is_empty() {
            return self.send_on(token, slot, now);
        }
        self.fail_waiting(slot, Failure::Closed, "the connection is busy with an earlier call", now);
    }

    /// Ends a call with what had come before its connection ended.
    fn answer_from_remains(&mut self, slot: u32, handle: u32, status: u16, now: u64) {
        let mut status = status;
        loop {
            match self.judge(slot, status, now) {
                Judgement::Taken => break,
                Judgement::Failed { reason, .. } => {
                    return self.fail_waiting(slot, Failure::Mismatch, &reason, now);
                }
                Judgement::ReadsOn => {}
            }
            let Source::Users(users) = &mut self.source else { return };
            let Some(of) = users.calls.get_mut(slot as usize) else { return };
            // From now on it asks for what it asks for next.
            std::mem::swap(&mut of.encoded, &mut of.next);
            let remains = users.gone(slot, handle);
            if let Some(of) = users.calls.get_mut(slot as usize) {
                std::mem::swap(&mut of.encoded, &mut of.next);
            }
            match remains {
                Some(Remains::Answer(next)) => status = next,
                Some(Remains::Nothing(failure, reason)) => return self.fail_waiting(slot, failure, &reason, now),
                None => return,
            }
        }
        let Source::Users(users) = &mut self.source else { return };
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        let mut call = of.call;
        (call.sent, call.first_byte) = (now, now);
        self.recorder.answered(&call, status, now);
        self.under_way -= u64::from(call.measured);
        self.end_answered(&call, status, 0, now);
    }

    /// Shows an answer to whoever judges it for the call in this slot, if somebody does. The answer lies in the slot.
    fn judge(&mut self, slot: u32, status: u16, now: u64) -> Judgement {
        let Source::Users(users) = &mut self.source else { return Judgement::Taken };
        let Some(of) = users.calls.get(slot as usize).filter(|of| of.judged) else { return Judgement::Taken };
        let Some(client) = users.clients.get(of.client) else { return Judgement::Taken };
        let answered = Answered { status, parts: of.kept.parts() };
        let flags = client.caller.flags(&answered);
        let timer = users.begin_step();
        let Some(of) = users.calls.get(slot as usize) else { return Judgement::Taken };
        let judged = users.library.judge(of.user, now, &of.kept.body, flags, status);
        users.end_step(timer);
        let values = match judged {
            Verdict::Taken => return Judgement::Taken,
            Verdict::ReadsOn(values) => values,
            Verdict::Rejected(reason) => return Judgement::Failed { reason, reusable: true },
            Verdict::Broken(reason) => return Judgement::Failed { reason, reusable: false },
        };
        let sees = users.trace.is_some();
        let Some(of) = users.calls.get_mut(slot as usize) else { return Judgement::Taken };
        let Some(client) = users.clients.get(of.client) else { return Judgement::Taken };
        if sees {
            of.before.extend_from_slice(&of.kept.body);
            of.before.push(b'\n');
        }
        of.next.clear();
        match client.caller.encode(&values, &mut of.next) {
            Ok(()) => Judgement::ReadsOn,
            Err(problem) => Judgement::Failed { reason: problem.0, reusable: false },
        }
    }

    /// Whether a call takes another answer after this one; it is in flight again then. Only calls of users that say so do.
    #[inline]
    pub(in super::super) fn reads_on(&mut self, token: usize, call: &Call, status: u16, now: u64) -> bool {
        match &self.source {
            Source::Users(users) if users.calls.get(call.index as usize).is_some_and(|of| of.judged) => {
                self.read_on(token, call, status, now)
            }
            _ => false,
        }
    }

    #[cold]
    fn read_on(&mut self, token: usize, call: &Call, status: u16, now: u64) -> bool {
        let slot = call.index as u32;
        let Source::Users(users) = &mut self.source else { return false };
        let Some(of) = users.calls.get_mut(slot as usize) else { return false };
        self.connections[token].client.hand_over(&mut of.kept);
        match self.judge(slot, status, now) {
            Judgement::Taken => false,
            Judgement::Failed { reason, reusable: true } => {
                let connection = &mut self.connections[token];
                connection.served = true;
                connection.fruitless = 0;
                self.fail(call, Failure::Mismatch, &reason, now);
                true
            }
            Judgement::Failed { reason, reusable: false } => {
                self.connections[token].calls.push_front(*call);
                self.lost(token, Failure::Mismatch, &reason, now);
                true
            }
            Judgement::ReadsOn => {
                let Source::Users(users) = &mut self.source else { return false };
                let Some(of) = users.calls.get(slot as usize) else { return false };
                let Encoded { bytes, idempotent, hint, .. } = &of.next;
                let message = Message { bytes, idempotent: *idempotent, hint: *hint, ..Message::default() };
                let connection = &mut self.connections[token];
                let started = connection.client.start(&message, &mut self.outgoing);
                let ends_sent = match started {
                    Started::Awaited => None,
                    Started::Sent(status) => Some(status),
                };
                connection.calls.push_front(Call { ends_sent, ..*call });
                true
            }
        }
    }

    /// A connection that a user holds has ended: what had come is kept until the user closes it.
    pub(in super::super) fn keep_held(&mut self, token: usize, failure: Failure, reason: &str) {
        let connection = &mut self.connections[token];
        let Owner::Held(user) = connection.owner else { return };
        if !connection.queue.is_empty() {
            return;
        }
        let client = std::mem::replace(&mut connection.client, Box::new(crate::worker::origins::NoClient));
        let Source::Users(users) = &mut self.source else { return };
        let Some(user) = users.user(user) else { return };
        let held = user.held.iter_mut().find(|held| matches!(held.place, Place::Open(known) if known == token));
        if let Some(held) = held {
            held.place = Place::Gone { client, failure, reason: reason.to_owned() };
        }
    }

    /// Closes a connection that a user holds, with what its protocol has to say at the end.
    pub(super) fn release(&mut self, user: u32, handle: u32) {
        let Source::Users(users) = &mut self.source else { return };
        let Some(user) = users.user(user) else { return };
        let Some(at) = user.held.iter().position(|held| held.handle == handle) else { return };
        let held = user.held.swap_remove(at);
        self.close_held(vec![held]);
    }

    /// Closes connections that a user held.
    pub(super) fn close_held(&mut self, all: Vec<Held>) {
        for held in all {
            let Place::Open(token) = held.place else { continue };
            self.close_connections(vec![token]);
        }
    }
}
