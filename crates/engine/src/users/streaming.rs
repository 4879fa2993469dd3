//! Streams of users: calls whose answers come as messages, which a user takes one by one while the call goes on.

use std::collections::VecDeque;
use std::fmt::Write as _;

use brunt_model::outcome::Failure;
use brunt_model::units::Duration;
use brunt_protocol::Parts;
use brunt_protocol::scenario::Answered;

use super::resuming::ticket;
use super::{State, UsersNetwork, VirtualUsers, Wake};
use crate::network::MessageOf;
use crate::transport::Driver;
use brunt_lua::scenario::{Operation, Resumption, Wanted};

/// The most streams that a user may have open at once.
const MOST_STREAMS: usize = 100;
/// The most messages of a stream that wait for its user: more than are read before users have their turn.
const MOST_WAITING: usize = 100_000;
/// The most bytes of them, as far as it is more than one message.
const MOST_WAITING_BYTES: usize = 4 << 20;
/// Why a stream has failed whose user does not take its messages.
const UNREAD: &str = "more than 100,000 messages, or 4 MiB of them, waited for their user to take them";
/// The most that a trace shows of a stream's messages, in bytes.
const MOST_SHOWN: usize = 16 * 1024;

/// What a stream's user has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    messages: VecDeque<(u16, Vec<u8>)>,
    bytes: usize,
    /// Whether its user waits for the next.
    waits: bool,
}

impl VirtualUsers {
    /// Begins a stream that a user wants; it goes on at once.
    pub(super) fn begin_stream<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        wanted: &Wanted,
        now: u64,
    ) -> Operation {
        self.forget_answers(user);
        if self.user(user).is_some_and(|of| of.streams.len() >= MOST_STREAMS) {
            let problem = format!(
                "this user has {MOST_STREAMS} streams open, and may have no more: read them to their end, or close them"
            );
            return self.go(user, now, Resumption::Refused(&problem));
        }
        match self.ask(network, user, wanted, false, now) {
            Err(problem) => self.go(user, now, Resumption::Refused(&problem)),
            Ok(slot) => {
                if let Some(of) = self.user(user) {
                    of.streams.push(slot);
                }
                let serial = self.calls.get(slot as usize).map_or(0, |call| call.serial);
                self.go(user, now, Resumption::Begun { ticket: ticket(slot, serial) })
            }
        }
    }

    /// A user wants the next message of a stream: that, or what came of the call; none if it waits.
    pub(super) fn next_message(&mut self, user: u32, slot: u32, now: u64) -> Option<Operation> {
        let streams = self.user(user).is_some_and(|of| of.streams.contains(&slot));
        let Some(call) = self.calls.get_mut(slot as usize).filter(|_| streams) else {
            return Some(self.go(user, now, Resumption::Unread("the stream is over: its end was told before")));
        };
        let has_ended = matches!(call.state, State::Answered(_) | State::Failed(_));
        let client = call.client;
        let inbox = call.inbox.as_deref_mut()?;
        if let Some((status, body)) = inbox.messages.pop_front() {
            inbox.bytes -= body.len();
            let timer = self.begin_step();
            let answered = Answered { status, parts: Parts { head: &[], body: &body } };
            let caller = self.clients.get(client).map(|client| &client.caller);
            let read = caller.map(|caller| caller.read("message", &answered));
            let (operation, _) = match read {
                Some(Ok(value)) => self.library.resume(user, now, Resumption::Read(value)),
                Some(Err(problem)) => self.library.resume(user, now, Resumption::Unread(&problem.0)),
                None => self.library.resume(user, now, Resumption::Unread("there is no such client")),
            };
            self.end_step(timer);
            return Some(operation);
        }
        if !has_ended {
            inbox.waits = true;
            return None;
        }
        Some(self.deliver_end(user, slot, now))
    }

    /// Tells a user what came of its stream, which it has had all messages of, or wants no more of.
    fn deliver_end(&mut self, user: u32, slot: u32, now: u64) -> Operation {
        if let Some(of) = self.user(user) {
            of.streams.retain(|known| *known != slot);
            of.delivered.push(slot);
        }
        let timer = self.begin_step();
        let (operation, _) = self.library.resume(user, now, self.result(slot, false));
        self.end_step(timer);
        operation
    }

    /// A user wants no more of a stream, and is told what came of it.
    pub(super) fn leave_stream<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        slot: u32,
        now: u64,
    ) -> Operation {
        if !self.user(user).is_some_and(|of| of.streams.contains(&slot)) {
            return self.go(user, now, Resumption::Unread("the stream is over: its end was told before"));
        }
        self.leave(network, slot, now);
        self.deliver_end(user, slot, now)
    }

    fn leave<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, now: u64) {
        if self.calls.get(slot as usize).is_some_and(|call| call.state == State::Throttled) {
            self.begin(network, slot);
        }
        let id = self.calls.get_mut(slot as usize).and_then(|call| {
            if let Some(inbox) = call.inbox.as_deref_mut() {
                *inbox = Inbox::default();
            }
            call.id.filter(|_| call.state == State::UnderWay)
        });
        if let Some(id) = id {
            network.leave(self, id, None, now);
        }
    }

    /// Leaves the streams that a user has not come to the end of: its iteration, or its task, is over.
    pub(super) fn leave_streams<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: u32, now: u64) {
        let Some(of) = self.user(user).filter(|of| !of.streams.is_empty()) else { return };
        for slot in std::mem::take(&mut of.streams) {
            self.leave(network, slot, now);
            self.vacate_call(slot);
        }
    }

    /// A message of a user's call has come.
    #[cold]
    pub(super) fn message_came<D: Driver>(&mut self, network: &mut UsersNetwork<D>, message: &MessageOf<u32>) {
        let slot = message.tag;
        let Some(call) = self.calls.get_mut(slot as usize) else { return };
        if message.counts {
            self.names.record(&mut network.recorder, call.label, |calls| calls.message(&message.came));
        }
        let client = &network.connections[message.token].client;
        if self.trace.is_some() && call.before.len() < MOST_SHOWN {
            let mut time = String::new();
            let since = if message.came.is_first { "after " } else { "+" };
            let _ = write!(time, "{since}{}  ", Duration(message.came.after_ns));
            call.before.extend_from_slice(time.as_bytes());
            if let Some(client) = self.clients.get(call.client) {
                let answered = Answered { status: message.status, parts: client_parts(network, message.token) };
                call.before.extend_from_slice(&client.caller.shown_message(&answered));
            }
            call.before.push(b'\n');
            if call.before.len() >= MOST_SHOWN {
                call.before.extend_from_slice("…\n".as_bytes());
            }
        }
        // Once the measured part is over nobody takes them.
        let is_loading = self.loading && self.leaving.is_none();
        let Some(inbox) = call.inbox.as_deref_mut().filter(|_| is_loading) else { return };
        let body = client.parts().body.to_vec();
        inbox.bytes += body.len();
        inbox.messages.push_back((message.status, body));
        if std::mem::take(&mut inbox.waits) {
            let user = call.user;
            self.make_ready(user, Wake::Streamed(slot));
        } else if inbox.messages.len() > MOST_WAITING || inbox.messages.len() > 1 && inbox.bytes > MOST_WAITING_BYTES {
            network.leave(self, message.id, Some((Failure::Oversize, UNREAD)), message.now);
        }
    }

    /// A stream's call has ended: whoever waits for its next message is told so.
    pub(super) fn stream_call_ended(&mut self, slot: u32, user: u32) {
        let inbox = self.calls.get_mut(slot as usize).and_then(|call| call.inbox.as_deref_mut());
        if inbox.is_some_and(|inbox| std::mem::take(&mut inbox.waits)) {
            self.make_ready(user, Wake::Streamed(slot));
        }
    }
}

/// What the client of a connection has.
fn client_parts<D: Driver>(network: &UsersNetwork<D>, token: usize) -> Parts<'_> {
    network.connections[token].client.parts()
}
