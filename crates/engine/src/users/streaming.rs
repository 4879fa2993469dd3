//! Streams of users: calls whose answers come as messages, which a user takes one by one while the call goes on.

use std::fmt::Write as _;

use brunt_plan::units::Duration;
use brunt_protocol::AnswerParts;
use brunt_protocol::scenario::{CompleteAnswer, Value};
use brunt_protocol::user::Message;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::slots::Inbox;
use super::{State, TimedWake, UsersNetwork, VirtualUsers, Wait, Wake};
use crate::network::MessageOf;
use crate::transport::{ConnectionId, Driver};
use brunt_script::{Operation, Resumption, Wanted};

/// The most streams that a user may have open at once.
const MOST_STREAMS: usize = 100;
/// The most messages of a stream that wait for its user: more than are read before users are resumed.
const MOST_WAITING: usize = 100_000;
/// The most bytes of waiting messages; a single message may be larger.
const MOST_WAITING_BYTES: usize = 4 << 20;
/// The reason for the failure of a stream whose user does not take its messages.
const UNREAD: &str = "more than 100,000 messages, or 4 MiB of them, waited for their user to take them";
/// The most bytes that a user sends on a stream before any answer comes: they are sent again with the call.
const MOST_SAID_BYTES: usize = 4 << 20;
/// The reason for the failure of a stream on which too much was sent before it had a connection.
const UNSENT: &str = "more than 4 MiB waited for a connection to be sent on";
/// The most bytes of a stream's messages that a trace shows.
const MOST_SHOWN: usize = 16 * 1024;

impl VirtualUsers {
    /// Begins a stream that a user wants; the user goes on at once.
    pub(super) fn begin_stream<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        wanted: &Wanted,
        now: Tick,
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
                self.go(user, now, Resumption::Begun { ticket: self.ticket(slot) })
            }
        }
    }

    /// The user who has a stream open: `user`, or one with whom it shares streams, as tasks and their user do.
    fn streamer(&self, user: u32, slot: u32) -> Option<u32> {
        let opener = self.calls.get(slot)?.user;
        let streams = self.users.get(opener).is_some_and(|of| of.streams.contains(&slot));
        (streams && self.home(opener) == self.home(user)).then_some(opener)
    }

    /// Requests this part of the next message of a stream for a user, who waits at most that long, in nanoseconds;
    /// `None` while it waits.
    pub(super) fn want_message(
        &mut self,
        user: u32,
        slot: u32,
        (part, most_ns): (String, Option<u64>),
        now: Tick,
    ) -> Option<Operation> {
        if let Some(inbox) = self.calls.get_mut(slot).and_then(|call| call.inbox.as_deref_mut()) {
            if inbox.waits.is_some() {
                let problem = "another task waits for the next message of this stream";
                return Some(self.go(user, now, Resumption::Unread(problem)));
            }
            inbox.part = part;
        }
        let operation = self.next_message(user, slot, now);
        let inbox = self.calls.get(slot).and_then(|call| call.inbox.as_deref());
        let wait = inbox.and_then(|inbox| inbox.waits).map(|(wait, _)| wait).filter(|_| operation.is_none());
        if let (Some(wait), Some(most_ns)) = (wait, most_ns) {
            self.set_timer(now.saturating_add(most_ns), user, TimedWake::Late { slot, wait });
        }
        operation
    }

    /// Resumes a user whose wait for the next message of a stream has timed out; `None` if that wait is over.
    pub(super) fn message_is_late(&mut self, user: u32, slot: u32, wait: u64, now: Tick) -> Option<Operation> {
        let inbox = self.calls.get_mut(slot).and_then(|call| call.inbox.as_deref_mut())?;
        inbox.waits.take_if(|(known, _)| *known == wait)?;
        Some(self.go(user, now, Resumption::Read(Value::Nil)))
    }

    /// Sends more on a stream, from these values of its protocol. The user is told 1, or 0 if the call has ended.
    pub(super) fn say<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        slot: u32,
        values: &[Value<'_>],
        now: Tick,
    ) -> Operation {
        let streams = self.streamer(user, slot).is_some();
        let Some(call) = self.calls.get_mut(slot).filter(|_| streams) else {
            return self.go(user, now, Resumption::Number(0));
        };
        let Some(client) = self.clients.get(call.client) else { return self.go(user, now, Resumption::Number(0)) };
        call.next.clear();
        if let Err(problem) = client.caller.encode(values, &mut call.next) {
            return self.go(user, now, Resumption::Refused(&problem.0));
        }
        if matches!(call.state, State::Answered(_) | State::Failed(_)) {
            return self.go(user, now, Resumption::Number(0));
        }
        let has_answer = call.id.and_then(|id| network.call(id)).is_some_and(|call| call.first_byte.is_set());
        // Before the first answer, the call may have to be sent again, with all that was sent on it.
        let (said, more) = (call.encoded.bytes.len(), call.next.bytes.len());
        if !has_answer && said + more <= MOST_SAID_BYTES {
            client.caller.join(&call.next, &mut call.encoded);
        } else {
            if let Some(inbox) = call.inbox.as_deref_mut() {
                inbox.is_partial = true;
            }
            if self.trace.is_some() && call.before.len() < MOST_SHOWN {
                call.before.extend_from_slice("→ ".as_bytes());
                call.before.extend_from_slice(&client.caller.shown_call(&call.next));
                call.before.push(b'\n');
            }
        }
        let next = std::mem::take(&mut call.next);
        let id = call.id;
        let message = Message { bytes: &next.bytes, hint: next.hint, ..Message::default() };
        let is_sent = id.is_some_and(|id| network.say(self, id, &message, now));
        if let Some(call) = self.calls.get_mut(slot) {
            call.next = next;
        }
        if let (false, Some(id)) = (is_sent, id)
            && said + more > MOST_SAID_BYTES
        {
            network.leave(self, id, Some((Failure::Oversize, UNSENT)), now);
        }
        self.go(user, now, Resumption::Number(1))
    }

    /// The next message of a stream, or the result of its call; `None` if its user waits.
    pub(super) fn next_message(&mut self, user: u32, slot: u32, now: Tick) -> Option<Operation> {
        let streams = self.streamer(user, slot).is_some();
        let Some(call) = self.calls.get_mut(slot).filter(|_| streams) else {
            return Some(self.go(user, now, Resumption::Unread("the stream is over: its end was told before")));
        };
        let has_ended = matches!(call.state, State::Answered(_) | State::Failed(_));
        let client = call.client;
        let inbox = call.inbox.as_deref_mut()?;
        if let Some((status, body)) = inbox.messages.pop_front() {
            inbox.bytes -= body.len();
            let part = std::mem::take(&mut inbox.part);
            let timer = self.begin_step();
            let answered = CompleteAnswer { status, parts: AnswerParts { head: &[], body: &body } };
            let caller = self.clients.get(client).map(|client| &client.caller);
            let part = if part.is_empty() { "message" } else { &part };
            let read = caller.map(|caller| caller.read(part, &answered));
            let (operation, _) = match read {
                Some(Ok(value)) => self.library.resume(user, now, Resumption::Read(value)),
                Some(Err(problem)) => self.library.resume(user, now, Resumption::Unread(&problem.0)),
                None => self.library.resume(user, now, Resumption::Unread("there is no such client")),
            };
            self.end_step(timer);
            return Some(operation);
        }
        if !has_ended {
            self.waits += 1;
            inbox.waits = Some((self.waits, user));
            self.user(user)?.wait = Wait::Message(slot);
            return None;
        }
        Some(self.deliver_end(user, slot, now))
    }

    /// Tells a user the result of its stream, after it has had all messages or wants no more.
    fn deliver_end(&mut self, user: u32, slot: u32, now: Tick) -> Operation {
        if let Some(opener) = self.streamer(user, slot)
            && let Some(of) = self.user(opener)
        {
            of.streams.retain(|known| *known != slot);
        }
        if let Some(of) = self.user(user) {
            of.delivered.push(slot);
        }
        let timer = self.begin_step();
        let (operation, _) = self.library.resume(user, now, self.result(slot, false));
        self.end_step(timer);
        operation
    }

    /// Leaves a stream of which a user wants no more messages, and tells it the result.
    pub(super) fn leave_stream<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        slot: u32,
        now: Tick,
    ) -> Operation {
        if self.streamer(user, slot).is_none() {
            return self.go(user, now, Resumption::Unread("the stream is over: its end was told before"));
        }
        self.leave(network, slot, now);
        self.deliver_end(user, slot, now)
    }

    fn leave<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, now: Tick) {
        if self.calls.get(slot).is_some_and(|call| call.state == State::Throttled) {
            self.begin(network, slot);
        }
        let mut waits = None;
        let id = self.calls.get_mut(slot).and_then(|call| {
            if let Some(inbox) = call.inbox.as_deref_mut() {
                waits = inbox.waits;
                *inbox = Inbox::default();
            }
            call.id.filter(|_| call.state == State::UnderWay)
        });
        if let Some((_, user)) = waits {
            self.make_ready(user, Wake::StreamOver);
        }
        if let Some(id) = id {
            network.leave(self, id, None, now);
        }
    }

    /// Leaves the streams that a user has not read to the end, as its iteration, or its task, is over.
    pub(super) fn leave_streams<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: u32, now: Tick) {
        let Some(of) = self.user(user).filter(|of| !of.streams.is_empty()) else { return };
        for slot in std::mem::take(&mut of.streams) {
            self.leave(network, slot, now);
            self.calls.free(slot);
        }
    }

    /// Takes a message of a user's call.
    #[cold]
    pub(super) fn message_came<D: Driver>(&mut self, network: &mut UsersNetwork<D>, message: &MessageOf<u32>) {
        let slot = message.tag;
        let Some(call) = self.calls.get_mut(slot) else { return };
        if message.counts {
            self.names.record(&mut network.recorder, call.label, |calls| calls.message(&message.came));
        }
        self.names.each_core(call.label, None, |core| network.recorder.message_by_end(core, message.at));
        if let Some(user) = self.users.get_mut(call.user) {
            user.presence.reached(&mut network.recorder.snapshot.numbers, message.at);
        }
        let client = &network.connections[message.token].link.client;
        if self.trace.is_some() && call.before.len() < MOST_SHOWN {
            let mut time = String::new();
            let since = if message.came.is_first { "after " } else { "+" };
            let _ = write!(time, "{since}{}  ", Duration(message.came.after_ns));
            call.before.extend_from_slice(time.as_bytes());
            if let Some(client) = self.clients.get(call.client) {
                let answered = CompleteAnswer { status: message.status, parts: client_parts(network, message.token) };
                call.before.extend_from_slice(&client.caller.shown_message(&call.encoded, &answered));
            }
            call.before.push(b'\n');
            if call.before.len() >= MOST_SHOWN {
                call.before.extend_from_slice("…\n".as_bytes());
            }
        }
        // Once the measured part is over nobody takes messages.
        let is_loading = self.loading && self.leaving.is_none();
        let Some(inbox) = call.inbox.as_deref_mut().filter(|_| is_loading) else { return };
        let body = client.parts().body.to_vec();
        inbox.bytes += body.len();
        inbox.messages.push_back((message.status, body));
        if let Some((_, user)) = inbox.waits.take() {
            self.make_ready(user, Wake::Streamed(slot));
        } else if inbox.messages.len() > MOST_WAITING || inbox.messages.len() > 1 && inbox.bytes > MOST_WAITING_BYTES {
            network.leave(self, message.id, Some((Failure::Oversize, UNREAD)), message.now);
        }
    }

    /// Tells whoever waits for the next message of a stream that its call has ended.
    pub(super) fn stream_call_ended(&mut self, slot: u32) {
        let inbox = self.calls.get_mut(slot).and_then(|call| call.inbox.as_deref_mut());
        if let Some((_, user)) = inbox.and_then(|inbox| inbox.waits.take()) {
            self.make_ready(user, Wake::Streamed(slot));
        }
    }

    /// Ends the wait of a task that is gone, so that another may wait.
    pub(super) fn forget_wait(&mut self, user: u32) {
        if let Some(Wait::Message(slot)) = self.user(user).map(|of| of.wait)
            && let Some(inbox) = self.calls.get_mut(slot).and_then(|call| call.inbox.as_deref_mut())
        {
            inbox.waits.take_if(|(_, waiting)| *waiting == user);
        }
    }
}

/// The parts of the answer at the client of a connection.
fn client_parts<D: Driver>(network: &UsersNetwork<D>, token: ConnectionId) -> AnswerParts<'_> {
    network.connections[token].link.client.parts()
}
