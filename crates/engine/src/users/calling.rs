//! The life of a user's call, from top to bottom: it is asked for, takes its place on a connection, has messages or an
//! answer, and is recorded under its name. What every call goes through is in [`crate::network`].

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::iter;

use brunt_plan::units::Duration;
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::agenda::{TimedWake, Wake};
use super::call::{AnswerReceiver, CallOptions, Inbox, RedirectHistory, State, Times, UserCall};
use super::ids::{UserId, WaitId};
use super::links::{AfterConnectionEnd, Remains};
use super::user::Wait;
use super::{UsersNetwork, VirtualUsers};
use crate::network::origins::OriginId;
use crate::network::{
    AnswerOf, Call, CallId, Core, CoreAnswer, Counted, Durations, End, Gone, Judgement, Keeper, MessageOf, Place,
    Recorder, RowContext,
};
use crate::trace::{Trace, Traced};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::scenario::{CompleteAnswer, Value};
use brunt_protocol::source::Message;
use brunt_protocol::{AnswerParts, Started};
use brunt_script::{KeepAlive, Operation, Placement, Resumption, Verdict, Wanted};

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
/// The reason shown for an optional call whose answer did not come.
pub(super) const NOTHING_CAME: &str = "nothing came within the timeout";

/// Being asked for.
impl VirtualUsers {
    /// Makes a call that a user wants, which `hears` of it. Returns the slot that holds it.
    ///
    /// # Errors
    /// When the call cannot be made; the text says why.
    pub(super) fn ask<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        wanted: &Wanted,
        hears: AnswerReceiver,
        now: Tick,
    ) -> Result<u32, String> {
        if let Placement::Open(_) = wanted.way {
            let home = self.home(user);
            self.user(home).ok_or_else(String::new)?.links.may_hold()?;
        }
        let chain = self.user(user).and_then(|of| of.begun.take_continued());
        let slot = self.calls.take(UserCall::new);
        let Some(call) = self.calls.get_mut(slot) else { return Err(String::new()) };
        let way = self.clients.encode(wanted.client, &wanted.values, &mut call.encoded).and_then(|target| {
            match wanted.way {
                // The call goes to the origin of its connection.
                Placement::On(_) => Ok(OriginId::FIRST),
                Placement::Any | Placement::Open(_) => {
                    self.clients.origin(network.origins_mut(), wanted.client, target.as_ref())
                }
            }
        });
        match way {
            Ok(origin) => {
                call.chain = chain;
                let Wanted { client, label, timeout_ns, way, judged, optional, .. } = *wanted;
                let asked = CallOptions { client, origin, label, timeout_ns, placement: way, judged, optional };
                self.make_call(network, slot, user, asked, hears, now);
                Ok(slot)
            }
            Err(problem) => {
                self.calls.free(slot);
                Err(problem)
            }
        }
    }

    /// Makes a prepared call, whose user waits for its end.
    ///
    /// # Errors
    /// When the call cannot be placed where it should go.
    pub(super) fn ask_prepared<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        (number, label, timeout_ns): (u32, u32, Option<u64>),
        now: Tick,
    ) -> Result<(), String> {
        let (client, origin) = self.clients.way_of_prepared(network.origins_mut(), number)?;
        let slot = self.calls.take(UserCall::new);
        if let Some(call) = self.calls.get_mut(slot) {
            call.prepared = Some(number);
        }
        let way = Placement::Any;
        let asked = CallOptions { client, origin, label, timeout_ns, placement: way, judged: false, optional: false };
        self.make_call(network, slot, user, asked, AnswerReceiver::Waiting, now);
        Ok(())
    }

    /// Makes a call whose message and origin are known: now, or when the throttle releases it.
    fn make_call<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        slot: u32,
        user: UserId,
        asked: CallOptions,
        hears: AnswerReceiver,
        now: Tick,
    ) {
        let timeout_ns = asked.timeout_ns.or_else(|| self.clients.get(asked.client)?.timeout_ns);
        network.may_take(timeout_ns.unwrap_or(0));
        let arrived = self.users.get_mut(user).and_then(|user| {
            if matches!(hears, AnswerReceiver::Waiting) {
                user.wait = Wait::Call(slot);
            }
            user.arrived.take()
        });
        let release = self.throttle.as_mut().map_or(now, |throttle| throttle.release(now).max(now));
        let Some(call) = self.calls.get_mut(slot) else { return };
        if self.traces.are_wanted()
            && let Some(ids) = self.traces.of(call)
        {
            self.clients.trace(call, asked.client, ids);
        }
        // A call that the throttle holds back is due at its release.
        let due = if release > now { release } else { arrived.unwrap_or(now) };
        call.state = State::Throttled { due };
        (call.user, call.hears, call.asked) = (user, hears, CallOptions { timeout_ns, ..asked });
        if release > now {
            self.set_timer(release, user, TimedWake::Release(slot));
        } else {
            self.make_due(network, slot, now);
        }
    }

    /// Takes a call that is due to a connection.
    pub(super) fn make_due<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, now: Tick) {
        if self.begin(network, slot).is_some() {
            self.place(network, slot, now);
        }
    }

    /// Begins a call. It counts as due from now on, unless it is optional: then its end decides. Its name counts it
    /// once it has ended.
    pub(super) fn begin<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32) -> Option<CallId> {
        let call = self.calls.get_mut(slot)?;
        let State::Throttled { due } = call.state else { return None };
        let counted = if call.asked.optional { Counted::OnceEnded } else { Counted::AtOnce };
        let id = network.begin(Call::new(slot, due, self.loading.is_on(), counted));
        call.state = State::UnderWay(id);
        if self.loading.is_on() && counted == Counted::AtOnce {
            self.script.call_begins();
        }
        Some(id)
    }
}

/// The slot and the id of a listed call, unless it has ended since.
fn alive<D: Driver>(network: &UsersNetwork<D>, id: CallId) -> Option<(u32, CallId)> {
    network.call(id).map(|call| (call.tag, id))
}

/// The next call that waits for a connection of the pool.
fn next_pooled<D: Driver>(network: &mut UsersNetwork<D>, origin: OriginId) -> Option<(u32, CallId)> {
    loop {
        let id = network.pools_mut().next_waiting(origin)?;
        if let Some(call) = alive(network, id) {
            return Some(call);
        }
    }
}

/// Finding a connection.
impl VirtualUsers {
    /// Takes a call to a connection with room or to a new one, or lets it wait for one.
    pub(super) fn place<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, now: Tick) {
        let Some(call) = self.calls.get(slot) else { return };
        let Some(id) = call.id() else { return };
        let CallOptions { origin, placement: way, .. } = call.asked;
        let user = self.home(call.user);
        if let Placement::On(handle) = way {
            return self.place_on_held(network, slot, handle, now);
        }
        if let Some((failure, reason)) = network.origins().lost(origin) {
            return self.complete(network, slot, End::Failed(failure, &reason), now);
        }
        if network.origins().route(origin).is_none() {
            network.pools_mut().wait(origin, id);
        } else if let Placement::Open(handle) = way {
            if let Some(user) = self.user(user) {
                user.links.hold(handle);
            }
            network.dial(self, Keeper::Held { user: user.slot(), handle }, origin, id, now);
        } else if network.is_shared(origin) {
            self.place_in_pool(network, (slot, id), origin, now);
        } else {
            self.place_with_user(network, (slot, id), user, origin, now);
        }
    }

    /// Takes a call to one of the connections that all users share, or lets it wait for one.
    fn place_in_pool<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        (slot, id): (u32, CallId),
        origin: OriginId,
        now: Tick,
    ) {
        if let Some(token) = network.take_free(origin) {
            return self.send_soon(network, token, slot, now);
        }
        let waiting = network.pools().count_waiting(origin) + 1;
        if network.may_dial(origin, waiting) {
            return network.dial(self, Keeper::Everybody, origin, id, now);
        }
        network.pools_mut().wait(origin, id);
        if !network.grows(origin) && network.call(id).is_some_and(|call| call.measured) {
            network.recorder_mut().snapshot.numbers.add(Counter::WaitedForConnection, 1);
        }
    }

    /// Takes a call to one of its user's own connections, or lets it wait for one.
    fn place_with_user<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        (slot, id): (u32, CallId),
        user: UserId,
        origin: OriginId,
        now: Tick,
    ) {
        let most = network.origins().pipeline(origin);
        let keeper = Keeper::One(user.slot());
        let with_room =
            network.connections().kept_to(keeper, origin).find(|t| network.connections()[*t].room(most) > 0);
        if let Some(token) = with_room {
            self.send_soon(network, token, slot, now);
        } else if network.has_place(keeper, origin) {
            network.dial(self, keeper, origin, id, now);
        } else if let Some(user) = self.user(user) {
            user.links.wait(origin, id);
        }
    }

    /// Sends a call on a connection that has room for it.
    pub(super) fn send_on<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        token: ConnectionId,
        slot: u32,
        now: Tick,
    ) {
        let Some(call) = self.calls.get_mut(slot) else { return };
        let Some(id) = call.id() else { return };
        network.send(self, token, id, now);
    }

    /// Sends a call on a connection that has room for it, at once or, where calls are gathered, with the others.
    fn send_soon<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, slot: u32, now: Tick) {
        let Some(call) = self.calls.get_mut(slot) else { return };
        let Some(id) = call.id() else { return };
        // A call that was due earlier has waited long enough.
        if !self.gathers || network.call(id).is_some_and(|call| call.due < now) {
            return self.send_on(network, token, slot, now);
        }
        network.enqueue(token, id);
        self.gathered.push(token);
    }

    /// Sends the gathered calls. Each becomes due when it is sent, like the calls of the flood.
    pub(super) fn send_gathered<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        let mut gathered = std::mem::take(&mut self.gathered);
        for (at, &token) in gathered.iter().enumerate() {
            if let Some(next) = gathered.get(at + 1) {
                network.foresee(*next, gathered.get(at + 2).copied());
            }
            let now = network.now();
            if self.loading.holds_back(now) {
                // The calls stay with their connections.
                self.gathered.push(token);
                continue;
            }
            if !network.connections()[token].is_open() {
                continue;
            }
            let most = network.origins().pipeline(network.connections()[token].origin());
            if network.connections()[token].streams_left(most) == 0 {
                network.bound_waits(self, token);
            } else if let Some(id) = network.dequeue(token) {
                if let Some(call) = network.call_mut(id)
                    && !call.was_sent()
                {
                    call.put_off(now);
                }
                network.send(self, token, id, now);
            }
        }
        if self.gathered.is_empty() {
            gathered.clear();
            self.gathered = gathered;
        }
    }

    /// Sends the calls that waited for the horizon to move on: no event would wake connections that were freed
    /// meanwhile.
    pub(super) fn send_held<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        self.send_gathered(network);
        for token in network.connections().ids() {
            if network.connections()[token].is_open() {
                self.serve_waiting(network, token);
            }
        }
    }

    /// Gives a connection that can carry calls to those that wait for it.
    pub(super) fn serve_waiting<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId) {
        let keeper = network.connections()[token].keeper();
        if let Keeper::Held { user, handle } = keeper {
            return self.serve_held(network, token, UserId::in_slot(user), handle);
        }
        let origin = network.connections()[token].origin();
        let most = network.origins().pipeline(origin);
        while network.connections()[token].room(most) > 0 {
            let keeper = network.connections()[token].keeper();
            let next = self.next_for(network, keeper, origin);
            let Some((slot, id)) = next else { return network.has_room(token) };
            let now = network.now();
            if self.loading.holds_back(now) {
                match keeper {
                    Keeper::One(user) => {
                        if let Some(user) = self.user(UserId::in_slot(user)) {
                            user.links.wait_on(origin, id);
                        }
                    }
                    _ => network.pools_mut().wait_on(origin, id),
                }
                return;
            }
            self.send_on(network, token, slot, now);
        }
        if network.may_dial_beside(token)
            && let Some((slot, _)) = next_pooled(network, origin)
        {
            let now = network.now();
            self.place(network, slot, now);
        }
    }

    /// Gives the place of a connection back, and lets the next call that waits have it.
    pub(super) fn give_back<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        token: ConnectionId,
        has_left: bool,
        now: Tick,
    ) {
        let (keeper, origin) = (network.connections()[token].keeper(), network.connections()[token].origin());
        network.vacate_after(token, has_left);
        self.place_next(network, keeper, origin, now);
    }

    /// Places a call that waited for a connection that is gone.
    pub(super) fn place_next<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        keeper: Keeper,
        origin: OriginId,
        now: Tick,
    ) {
        let Some((slot, id)) = self.next_for(network, keeper, origin) else { return };
        if self.loading.makes_calls() {
            self.place(network, slot, now);
        } else {
            network.pools_mut().wait(origin, id);
        }
    }

    /// The next call that waits for a connection of this keeper to `origin`.
    fn next_for<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        keeper: Keeper,
        origin: OriginId,
    ) -> Option<(u32, CallId)> {
        match keeper {
            Keeper::One(user) => {
                let links = &mut self.user(UserId::in_slot(user))?.links;
                iter::from_fn(|| links.next_waiting(origin)).find_map(|id| alive(network, id))
            }
            Keeper::Everybody => next_pooled(network, origin),
            Keeper::Held { .. } | Keeper::Nobody => None,
        }
    }

    /// Closes a user's connections that end with its iteration.
    pub(super) fn end_connections_of_iteration<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId) {
        let ends = |token: &ConnectionId| {
            network.origins().keep_alive(network.connections()[*token].origin()) == KeepAlive::Iteration
        };
        let ended: Vec<_> = network.connections().kept(Keeper::One(user.slot())).filter(ends).collect();
        self.close_connections(network, ended);
    }

    /// Closes connections that their user no longer needs.
    pub(super) fn close_connections<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        connections: impl IntoIterator<Item = ConnectionId>,
    ) {
        let now = network.now();
        for token in connections {
            network.close(self, token, now);
            network.vacate(token);
        }
    }

    /// Takes the origins whose lookup has ended. Where one succeeded, the calls that waited for it go there.
    pub(super) fn take_found<D: Driver>(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        while let Some(origin) = network.origins_mut().found() {
            for id in network.pools_mut().take_waiting(origin) {
                if let Some((slot, _)) = alive(network, id) {
                    self.place(network, slot, now);
                }
            }
        }
    }
}

/// What a call finds in place of the connection that its user holds.
enum HeldConnection {
    /// The connection.
    Connection(ConnectionId),
    /// The connection has ended; an answer with this status had come before.
    Answer(u16),
    /// The connection has ended, and no answer is left.
    Nothing(AfterConnectionEnd),
}

/// Going on a connection that its user holds.
impl VirtualUsers {
    /// Takes a call to the connection that its user holds.
    pub(super) fn place_on_held<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        slot: u32,
        handle: u32,
        now: Tick,
    ) {
        match self.find_held(network, slot, handle) {
            HeldConnection::Nothing(lost) => self.complete(network, slot, lost.end(), now),
            HeldConnection::Answer(status) => self.answer_from_remains(network, slot, handle, status, now),
            HeldConnection::Connection(token) => {
                // The protocol decides how many calls go on a connection at once.
                if network.connections()[token].room(usize::MAX) > 0 {
                    return self.send_on(network, token, slot, now);
                }
                let Some(call) = self.calls.get(slot) else { return };
                let (home, id) = (self.home(call.user), call.id());
                if let Some(user) = self.user(home) {
                    user.links.wait_on_held(handle, slot);
                }
                if let Some(id) = id {
                    network.bound_wait(self, id);
                }
            }
        }
    }

    /// Places waiting calls on a connection that `user` holds, while it has room.
    fn serve_held<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, user: UserId, handle: u32) {
        while network.connections()[token].room(usize::MAX) > 0 {
            let now = network.now();
            if self.loading.holds_back(now) {
                return;
            }
            let next = self.user(user).and_then(|of| of.links.next_on_held(handle));
            let Some(slot) = next else { return };
            if self.waits_for(network, slot, handle) {
                self.send_on(network, token, slot, now);
            }
        }
    }

    /// Whether the call in this slot still waits for the connection of this handle: it may have timed out.
    fn waits_for<D: Driver>(&self, network: &UsersNetwork<D>, slot: u32, handle: u32) -> bool {
        let Some(call) = self.calls.get(slot) else { return false };
        let waits = call.id().and_then(|id| network.call(id)).is_some_and(|call| call.place == Place::Waiting);
        waits && call.asked.placement == Placement::On(handle)
    }

    /// Places calls whose connection has ended: each takes an answer that is left of it, or fails.
    fn place_rest<D: Driver>(&mut self, network: &mut UsersNetwork<D>, handle: u32, waiting: VecDeque<u32>, now: Tick) {
        for slot in waiting {
            if self.waits_for(network, slot, handle) {
                self.place_on_held(network, slot, handle, now);
            }
        }
    }

    /// The connection of a call, or what is left of it.
    fn find_held<D: Driver>(&mut self, network: &UsersNetwork<D>, slot: u32, handle: u32) -> HeldConnection {
        let closed = || {
            HeldConnection::Nothing(AfterConnectionEnd::after(End::GivenUp(
                Failure::Closed,
                "the script has closed this connection",
            )))
        };
        let home = self.calls.get(slot).map(|call| self.home(call.user));
        let (Some(home), Some(call)) = (home, self.calls.get_mut(slot)) else { return closed() };
        let Some(user) = self.users.get_mut(home).filter(|user| user.links.holds(handle)) else { return closed() };
        // The last one, if a first call was turned away on others.
        if let Some(token) = network.connections().kept(Keeper::Held { user: home.slot(), handle }).last() {
            return HeldConnection::Connection(token);
        }
        let Some(Remains { client, lost }) = user.links.remains(handle) else { return closed() };
        let mut unsent = Vec::new();
        match client.start(&call.encoded.message(), &mut unsent) {
            Started::Sent(status) if unsent.is_empty() => {
                client.take_answer(&mut call.kept);
                HeldConnection::Answer(status)
            }
            _ => HeldConnection::Nothing(lost.clone()),
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
                ScriptJudgement::Taken => break,
                ScriptJudgement::Failed { reason, .. } => {
                    return self.complete(network, slot, End::Failed(Failure::Mismatch, &reason), now);
                }
                ScriptJudgement::ReadsOn => {}
            }
            let Some(call) = self.calls.get_mut(slot) else { return };
            // From now on the call asks for its next answer.
            std::mem::swap(&mut call.encoded, &mut call.next);
            let found = self.find_held(network, slot, handle);
            if let Some(call) = self.calls.get_mut(slot) {
                std::mem::swap(&mut call.encoded, &mut call.next);
            }
            match found {
                HeldConnection::Answer(next) => status = next,
                HeldConnection::Nothing(lost) => return self.complete(network, slot, lost.end(), now),
                HeldConnection::Connection(_) => return,
            }
        }
        let Some(id) = self.calls.get(slot).and_then(UserCall::id) else { return };
        if let Some(call) = network.call_mut(id) {
            call.send(now, 0);
            call.receive(now);
        }
        network.complete(self, id, End::Answered(status), now);
    }

    /// Shows an answer to the script's judge of the call in this slot, if it has one. The answer lies in the slot.
    fn show_judge(&mut self, slot: u32, status: u16, now: Tick) -> ScriptJudgement {
        let Some(call) = self.calls.get(slot).filter(|call| call.asked.judged) else { return ScriptJudgement::Taken };
        let Some(client) = self.clients.get(call.asked.client) else { return ScriptJudgement::Taken };
        let answered = CompleteAnswer { status, parts: call.kept.parts() };
        let flags = client.caller.flags(&answered);
        let judged = self.script.step(self.place_of(call.user), |library| {
            library.judge(call.user.slot(), now, &call.kept.body, flags, status)
        });
        let values = match judged {
            Verdict::Taken => return ScriptJudgement::Taken,
            Verdict::ReadsOn(values) => values,
            Verdict::Rejected(reason) => return ScriptJudgement::Failed { reason, reusable: true },
            Verdict::Broken(reason) => return ScriptJudgement::Failed { reason, reusable: false },
        };
        let Some(call) = self.calls.get_mut(slot) else { return ScriptJudgement::Taken };
        if self.watch.sees_everything() {
            call.before.extend_from_slice(&call.kept.body);
            call.before.push(b'\n');
        }
        match self.clients.encode(call.asked.client, &values, &mut call.next) {
            Ok(_) => ScriptJudgement::ReadsOn,
            Err(reason) => ScriptJudgement::Failed { reason, reusable: false },
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
        network.connections_mut()[answer.token].hand_over(&mut call.kept);
        match self.show_judge(slot, answer.status, answer.now) {
            ScriptJudgement::Taken => Judgement::Ended,
            ScriptJudgement::Failed { reason, reusable } => Judgement::Wrong { reason, reusable },
            ScriptJudgement::ReadsOn => {
                let Some(call) = self.calls.get(slot) else { return Judgement::Ended };
                Judgement::GoesOn { ends_sent: network.ask_on(answer.token, &call.next.message()) }
            }
        }
    }

    /// Keeps what had come on a held connection that has ended, until its user closes it.
    pub(super) fn keep_remains<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        handle: u32,
        gone: Gone<'_>,
        now: Tick,
    ) {
        let Gone { client, end, .. } = gone;
        let Some(user) = self.user(user) else { return };
        let waiting = user.links.keep(handle, Remains { client, lost: AfterConnectionEnd::after(end) });
        self.place_rest(network, handle, waiting, now);
    }

    /// Closes a connection that a user holds, with its protocol's closing bytes.
    pub(super) fn release<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, handle: u32) {
        let home = self.home(user);
        let Some(waiting) = self.user(home).map(|user| user.links.release(handle)) else { return };
        let there: Vec<_> = network.connections().kept(Keeper::Held { user: home.slot(), handle }).collect();
        self.close_connections(network, there);
        let now = network.now();
        self.place_rest(network, handle, waiting, now);
    }
}

/// The result of showing an answer to the script.
enum ScriptJudgement {
    /// The answer is the last of its call.
    Taken,
    /// The call takes another answer.
    ReadsOn,
    /// The call fails, for this reason; its connection may be used again or not.
    Failed { reason: String, reusable: bool },
}

/// Streams: calls whose answers come as messages, which a user takes one by one while the call goes on.
impl VirtualUsers {
    /// Begins a stream that a user wants; the user goes on at once.
    pub(super) fn begin_stream<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        wanted: &Wanted,
        now: Tick,
    ) -> Operation {
        self.forget_answers(user);
        if let Some(Err(problem)) = self.user(user).map(|of| of.begun.may_stream()) {
            return self.go(user, now, Resumption::Refused(&problem));
        }
        match self.ask(network, user, wanted, AnswerReceiver::Stream(Box::default()), now) {
            Err(problem) => self.go(user, now, Resumption::Refused(&problem)),
            Ok(slot) => {
                if let Some(of) = self.user(user) {
                    of.begun.open_stream(slot);
                }
                self.go(user, now, Resumption::Begun { ticket: self.ticket(slot) })
            }
        }
    }

    /// The user who has a stream open: `user`, or one with whom it shares streams, as tasks and their user do.
    fn streamer(&self, user: UserId, slot: u32) -> Option<UserId> {
        let opener = self.calls.get(slot)?.user;
        let streams = self.users.get(opener).is_some_and(|of| of.begun.has_stream(slot));
        (streams && self.home(opener) == self.home(user)).then_some(opener)
    }

    /// Requests this part of the next message of a stream for a user, who waits at most that long, in nanoseconds;
    /// `None` while it waits.
    pub(super) fn want_message(
        &mut self,
        user: UserId,
        slot: u32,
        (part, most_ns): (String, Option<u64>),
        now: Tick,
    ) -> Option<Operation> {
        if let Some(inbox) = self.calls.get_mut(slot).and_then(UserCall::inbox_mut) {
            if inbox.waits.is_some() {
                let problem = "another task waits for the next message of this stream";
                return Some(self.go(user, now, Resumption::Unread(problem)));
            }
            inbox.part = part;
        }
        let operation = self.next_message(user, slot, now);
        let inbox = self.calls.get(slot).and_then(UserCall::inbox);
        let wait = inbox.and_then(|inbox| inbox.waits).map(|(wait, _)| wait).filter(|_| operation.is_none());
        if let (Some(wait), Some(most_ns)) = (wait, most_ns) {
            self.set_timer(now.saturating_add(most_ns), user, TimedWake::Late { slot, wait });
        }
        operation
    }

    /// Resumes a user whose wait for the next message of a stream has timed out; `None` if that wait is over.
    pub(super) fn message_is_late(&mut self, user: UserId, slot: u32, wait: WaitId, now: Tick) -> Option<Operation> {
        let inbox = self.calls.get_mut(slot).and_then(UserCall::inbox_mut)?;
        inbox.waits.take_if(|(known, _)| *known == wait)?;
        Some(self.go(user, now, Resumption::Read(Value::Nil)))
    }

    /// Sends more on a stream, from these values of its protocol. The user is told 1, or 0 if the call has ended.
    pub(super) fn say<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        slot: u32,
        values: &[Value<'_>],
        now: Tick,
    ) -> Operation {
        let streams = self.streamer(user, slot).is_some();
        let Some(call) = self.calls.get_mut(slot).filter(|_| streams) else {
            return self.go(user, now, Resumption::Number(0));
        };
        let Some(client) = self.clients.get(call.asked.client) else {
            return self.go(user, now, Resumption::Number(0));
        };
        if let Err(problem) = self.clients.encode(call.asked.client, values, &mut call.next) {
            return self.go(user, now, Resumption::Refused(&problem));
        }
        if call.has_ended() {
            return self.go(user, now, Resumption::Number(0));
        }
        let has_answer = call.id().and_then(|id| network.call(id)).is_some_and(|call| call.first_byte.is_set());
        // Before the first answer, the call may have to be sent again, with all that was sent on it.
        let (said, more) = (call.encoded.bytes.len(), call.next.bytes.len());
        if !has_answer && said + more <= MOST_SAID_BYTES {
            client.caller.join(&call.next, &mut call.encoded);
        } else {
            if let Some(inbox) = call.inbox_mut() {
                inbox.is_partial = true;
            }
            if self.watch.sees_everything() && call.before.len() < MOST_SHOWN {
                call.before.extend_from_slice("→ ".as_bytes());
                call.before.extend_from_slice(&client.caller.shown_call(&call.next));
                call.before.push(b'\n');
            }
        }
        let next = std::mem::take(&mut call.next);
        let id = call.id();
        let message = Message { bytes: &next.bytes, hint: next.hint, ..Message::default() };
        let is_sent = id.is_some_and(|id| network.say(self, id, &message, now));
        if let Some(call) = self.calls.get_mut(slot) {
            call.next = next;
        }
        if let (false, Some(id)) = (is_sent, id)
            && said + more > MOST_SAID_BYTES
        {
            network.abandon(self, id, Some((Failure::Oversize, UNSENT)), now);
        }
        self.go(user, now, Resumption::Number(1))
    }

    /// The next message of a stream, or the result of its call; `None` if its user waits.
    pub(super) fn next_message(&mut self, user: UserId, slot: u32, now: Tick) -> Option<Operation> {
        let streams = self.streamer(user, slot).is_some();
        let Some(call) = self.calls.get_mut(slot).filter(|_| streams) else {
            return Some(self.go(user, now, Resumption::Unread("the stream is over: its end was told before")));
        };
        let (has_ended, client) = (call.has_ended(), call.asked.client);
        let inbox = call.inbox_mut()?;
        if let Some((status, body)) = inbox.messages.pop_front() {
            inbox.bytes -= body.len();
            let part = std::mem::take(&mut inbox.part);
            let answered = CompleteAnswer { status, parts: AnswerParts { head: &[], body: &body } };
            let caller = self.clients.get(client).map(|client| &client.caller);
            let part = if part.is_empty() { "message" } else { &part };
            return Some(match caller.map(|caller| caller.read(part, &answered)) {
                Some(Ok(value)) => self.go(user, now, Resumption::Read(value)),
                Some(Err(problem)) => self.go(user, now, Resumption::Unread(&problem.0)),
                None => self.go(user, now, Resumption::Unread("there is no such client")),
            });
        }
        if !has_ended {
            inbox.waits = Some((self.agenda.new_wait(), user));
            self.user(user)?.wait = Wait::Message(slot);
            return None;
        }
        Some(self.deliver_end(user, slot, now))
    }

    /// Tells a user the result of its stream, after it has had all messages or wants no more.
    fn deliver_end(&mut self, user: UserId, slot: u32, now: Tick) -> Operation {
        if let Some(opener) = self.streamer(user, slot)
            && let Some(of) = self.user(opener)
        {
            of.begun.close_stream(slot);
        }
        if let Some(of) = self.user(user) {
            of.begun.deliver([slot]);
        }
        self.go(user, now, self.result(slot, false))
    }

    /// Leaves a stream of which a user wants no more messages, and tells it the result.
    pub(super) fn leave_stream<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
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
        if self.calls.get(slot).is_some_and(UserCall::is_throttled) {
            self.begin(network, slot);
        }
        let mut waits = None;
        let id = self.calls.get_mut(slot).and_then(|call| {
            if let Some(inbox) = call.inbox_mut() {
                waits = inbox.waits;
                *inbox = Inbox::default();
            }
            call.id()
        });
        if let Some((_, user)) = waits {
            self.make_ready(user, Wake::StreamOver);
        }
        if let Some(id) = id {
            network.abandon(self, id, None, now);
        }
    }

    /// Leaves the streams that a user has not read to the end, as its iteration, or its task, is over.
    pub(super) fn leave_streams<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, now: Tick) {
        let Some(of) = self.user(user) else { return };
        for slot in of.begun.take_streams() {
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
            self.names.record(network.recorder_mut(), call.asked.label, |calls| calls.message(&message.came));
        }
        self.names.each_core(call.asked.label, None, |core| network.recorder_mut().message_by_end(core, message.at));
        if let Some(user) = self.users.get_mut(call.user) {
            user.presence.reached(&mut network.recorder_mut().snapshot.numbers, message.at);
        }
        let client = network.connections()[message.token].client();
        if self.watch.sees_everything() && call.before.len() < MOST_SHOWN {
            let mut time = String::new();
            let since = if message.came.is_first { "after " } else { "+" };
            let _ = write!(time, "{since}{}  ", Duration(message.came.after_ns));
            call.before.extend_from_slice(time.as_bytes());
            if let Some(client) = self.clients.get(call.asked.client) {
                let answered = CompleteAnswer { status: message.status, parts: client_parts(network, message.token) };
                call.before.extend_from_slice(&client.caller.shown_message(&call.encoded, &answered));
            }
            call.before.push(b'\n');
            if call.before.len() >= MOST_SHOWN {
                call.before.extend_from_slice("…\n".as_bytes());
            }
        }
        // Once the measured part is over nobody takes messages.
        let is_loading = self.loading.makes_calls();
        let Some(inbox) = call.inbox_mut().filter(|_| is_loading) else { return };
        let body = client.parts().body.to_vec();
        inbox.bytes += body.len();
        inbox.messages.push_back((message.status, body));
        if let Some((_, user)) = inbox.waits.take() {
            self.make_ready(user, Wake::Streamed(slot));
        } else if inbox.messages.len() > MOST_WAITING || inbox.messages.len() > 1 && inbox.bytes > MOST_WAITING_BYTES {
            network.abandon(self, message.id, Some((Failure::Oversize, UNREAD)), message.now);
        }
    }

    /// Ends the calls of a user, or a task, that is cut off.
    pub(super) fn cut_off_calls<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, now: Tick) {
        self.forget_answers(user);
        self.forget_wait(user);
        let Some(of) = self.users.get_mut(user) else { return };
        let awaited = of.awaited();
        if let Wait::Others(wait) = std::mem::replace(&mut of.wait, Wait::Nothing) {
            self.rendezvous_points.leave(wait);
        }
        for slot in of.begun.take_started().into_iter().chain(of.begun.take_streams()).chain(awaited) {
            match self.calls.get(slot).and_then(UserCall::id) {
                Some(id) => network.cut_off(self, id, now),
                None => drop(self.calls.free(slot)),
            }
        }
    }

    /// Tells whoever waits for the next message of a stream that its call has ended.
    pub(super) fn stream_call_ended(&mut self, slot: u32) {
        let inbox = self.calls.get_mut(slot).and_then(UserCall::inbox_mut);
        if let Some((_, user)) = inbox.and_then(|inbox| inbox.waits.take()) {
            self.make_ready(user, Wake::Streamed(slot));
        }
    }

    /// Ends the wait of a task that is gone, so that another may wait.
    pub(super) fn forget_wait(&mut self, user: UserId) {
        if let Some(Wait::Message(slot)) = self.user(user).map(|of| of.wait)
            && let Some(inbox) = self.calls.get_mut(slot).and_then(UserCall::inbox_mut)
        {
            inbox.waits.take_if(|(_, waiting)| *waiting == user);
        }
    }
}

/// The parts of the answer at the client of a connection.
fn client_parts<D: Driver>(network: &UsersNetwork<D>, token: ConnectionId) -> AnswerParts<'_> {
    network.connections()[token].client().parts()
}

impl UserCall {
    /// The call's response and service time up to `now`, in nanoseconds. They include the answers that led on.
    fn lengths_until(&self, call: &Call<u32>, now: Tick) -> (u64, u64) {
        match self.chain {
            Some(RedirectHistory { due, sent, .. }) => (now.since(due), now.since(sent)),
            None => (call.response_ns(now), call.service_ns(now)),
        }
    }

    /// The target's part of the call's times, which ended at `at` as noticed at `now`. It includes the answers that led on.
    fn durations(&self, recorder: &Recorder, call: &Call<u32>, at: Tick, now: Tick) -> Durations {
        let durations = recorder.durations(call, at, now);
        match self.chain {
            Some(RedirectHistory { due, sent, .. }) => {
                let late = call.response_ns(at).saturating_sub(durations.response);
                Durations { response: at.since(due).saturating_sub(late), service: at.since(sent) }
            }
            None => durations,
        }
    }
}

/// Ending.
impl VirtualUsers {
    /// Tells a call's user that the call has ended.
    fn call_ended(&mut self, slot: u32, user: UserId) {
        self.see_call(slot);
        match self.calls.get(slot).map(|call| &call.hears) {
            Some(AnswerReceiver::Waiting) => self.make_ready(user, Wake::Ended(slot)),
            Some(AnswerReceiver::Stream(_)) => self.stream_call_ended(slot),
            Some(AnswerReceiver::Later) => {
                let Some(of) = self.user(user) else { return };
                of.begun.ended_one();
                if !of.begun.is_under_way() && (of.wait == Wait::AllCalls || of.is_ending()) {
                    self.make_ready(user, Wake::AllEnded);
                }
            }
            None => {}
        }
    }

    /// Records under its name a call that is still under way when the run ends.
    pub(super) fn cut_short(&mut self, recorder: &mut Recorder, call: &Call<u32>, end: End<'_>, now: Tick) {
        let Some(slot) = self.calls.get(call.tag) else { return };
        if recorder.counts(call) {
            let (response, service) = slot.lengths_until(call, now);
            self.names.record(recorder, slot.asked.label, |calls| {
                calls.due();
                if end == End::Unfinished {
                    calls.unfinished(response, call.was_sent().then_some(service), 1);
                } else {
                    calls.unsent(response, 1);
                }
            });
        }
        self.calls.free(call.tag);
    }

    /// The label of an answer that leads on, and its call's chain up to it; `None` for a call's last answer.
    fn led_on(&mut self, recorder: &mut Recorder, call: &Call<u32>, status: u16) -> Option<(u32, RedirectHistory)> {
        let ended = self.calls.get(call.tag).filter(|ended| ended.inbox().is_none())?;
        let answered = CompleteAnswer { status, parts: ended.kept.parts() };
        let word = self.clients.get(ended.asked.client)?.caller.leads_on(self.clients.encoded(ended), &answered)?;
        let before =
            ended.chain.unwrap_or(RedirectHistory { due: call.due, sent: call.sent, hops: 0, trace: ended.trace });
        let chain = RedirectHistory { hops: before.hops + 1, ..before };
        let label = self.names.hop(&mut recorder.snapshot.figures, ended.asked.label, word, chain.hops)?;
        Some((label, chain))
    }

    /// Writes a call down that has ended.
    #[cold]
    pub(super) fn write_down<D: Driver>(
        &self,
        network: &mut UsersNetwork<D>,
        call: &Call<u32>,
        end: End<'_>,
        now: Tick,
    ) {
        let Some(ended) = self.calls.get(call.tag) else { return };
        let user = self.users.get(self.home(ended.user)).map(|user| (user.who.id, user.iteration));
        let is_ok = if let End::Answered(status) = end { self.expects(ended, status) } else { None };
        let texts = self.names.texts(ended.asked.label);
        network.write_down(call, end, now, &RowContext { texts, is_ok, user });
    }

    /// Records an answered call and keeps its answer.
    #[inline]
    pub(super) fn answered<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        call: &Call<u32>,
        status: u16,
        now: Tick,
    ) {
        let slot = call.tag;
        let Some(ended) = self.calls.get_mut(slot) else { return };
        let mut bytes_in = 0;
        if let Some(token) = call.connection() {
            let connection = &mut network.connections_mut()[token];
            bytes_in = connection.bytes_in().saturating_sub(call.bytes_in_before);
            let peer = connection.peer();
            ended.peer = if call.bytes_in_before == 0 { peer } else { peer.met_before() };
            // An answer that was judged was handed over for that already.
            if !ended.asked.judged {
                connection.hand_over(&mut ended.kept);
            }
        }
        ended.state = State::Answered(status, Times::of(call, now));
        let user = ended.user;
        let recorder = network.recorder_mut();
        let hop = self.led_on(recorder, call, status);
        if let (Some((label, _)), Some(ended)) = (hop, self.calls.get_mut(slot)) {
            (ended.asked.label, ended.chain) = (label, None);
        }
        if network.recorder_mut().samples.is_some() {
            self.write_down(network, call, End::Answered(status), now);
        }
        let recorder = network.recorder_mut();
        if recorder.counts(call)
            && let Some(ended) = self.calls.get(slot)
        {
            let (label, bytes_out) = (ended.asked.label, self.clients.encoded(ended).len() as u64);
            let at = recorder.ended_at(call, None, now);
            let durations = ended.durations(recorder, call, at, now);
            let is_usual = recorder.is_ok(status);
            let is_ok = self.expects(ended, status).unwrap_or(is_usual);
            if is_usual && !is_ok {
                self.names.unexpected(recorder, label, status);
                recorder.revoke_end(Core::All, at);
            }
            let answer = CoreAnswer { status, durations, is_usual, is_ok, bytes_in, bytes_out };
            self.names.each_core(label, Some(status), |core| {
                recorder.answered_by_end(core, at, is_ok);
                recorder.answered_in(core, &answer);
            });
            if self.names.is_new(label, status) {
                self.name_status(recorder, slot, status);
            }
        }
        let ticket = self.calls.get(slot).map(|_| self.ticket(slot) as u64);
        if let Some(user) = self.user(user) {
            user.found_nobody = false;
            user.presence.answered(&mut network.recorder_mut().snapshot.numbers, call, now);
            if let (Some((_, chain)), Some(ticket)) = (hop, ticket) {
                user.begun.led_on(ticket, chain);
            }
        }
        self.call_ended(slot, user);
    }

    /// Records a failed call.
    pub(super) fn failed(&mut self, recorder: &mut Recorder, call: &Call<u32>, end: End<'_>, now: Tick) {
        let (Some(ended), Some((failure, reason))) = (self.calls.get(call.tag), end.failure()) else { return };
        let (user, label) = (ended.user, ended.asked.label);
        if recorder.counts(call) {
            let at = recorder.ended_at(call, Some(failure), now);
            let Durations { response, service } = ended.durations(recorder, call, at, now);
            let service = call.was_sent().then_some(service);
            self.names.record(recorder, label, |calls| {
                calls.due();
                calls.failed(failure, response, service);
            });
        }
        if let Some(user) = self.user(user) {
            user.found_nobody = !call.was_sent();
            user.presence.failed(&mut recorder.snapshot.numbers, call, end, now);
        }
        self.tell_failed(call, failure, reason, now);
    }

    /// Marks a call as failed for its user, with the reason.
    pub(super) fn tell_failed(&mut self, call: &Call<u32>, failure: Failure, reason: &str, now: Tick) {
        let Some(ended) = self.calls.get_mut(call.tag) else { return };
        ended.state = State::Failed(failure, Times::of(call, now));
        ended.reason.clear();
        ended.reason.push_str(reason);
        let user = ended.user;
        self.call_ended(call.tag, user);
    }

    /// Records the name of an answer's status, if its protocol has one.
    #[cold]
    fn name_status(&self, recorder: &mut Recorder, slot: u32, status: u16) {
        let Some(call) = self.calls.get(slot) else { return };
        let Some(client) = self.clients.get(call.asked.client) else { return };
        if let Some(name) = client.caller.status_name(self.clients.encoded(call), status) {
            self.names.record(recorder, call.asked.label, |calls| calls.status_names.add(status, &name));
        }
    }

    /// Ends a call that its user still has under way.
    pub(super) fn complete<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, end: End<'_>, now: Tick) {
        if let Some(id) = self.calls.get(slot).and_then(UserCall::id) {
            network.complete(self, id, end, now);
        }
    }

    /// Ends the calls that still wait for a connection when the measured part ends at `end`: they are never sent.
    pub(super) fn drop_unsent<D: Driver>(&mut self, network: &mut UsersNetwork<D>, end: Tick) {
        self.agenda.clear();
        network.pools_mut().forget_waiting();
        for slot in 0..self.calls.len() as u32 {
            let Some(call) = self.calls.get(slot) else { continue };
            match call.state {
                // A throttled call was due a moment ago and begins now, or is not due yet and is forgotten.
                State::Throttled { due } if due <= end => {
                    self.begin(network, slot);
                }
                State::Throttled { .. } => {
                    self.calls.free(slot);
                }
                State::UnderWay(_) | State::Answered(..) | State::Failed(..) => {}
            }
            let Some(call) = self.calls.get(slot) else { continue };
            let waits = call.id().and_then(|id| network.call(id)).is_some_and(|call| call.place == Place::Waiting);
            if waits {
                let end_of_call = if call.asked.optional { End::Withdrawn } else { End::Unsent };
                self.complete(network, slot, end_of_call, end);
            }
        }
    }
}

/// Being seen.
impl VirtualUsers {
    /// Whether a call succeeds with this status.
    pub(super) fn is_success(&self, call: &UserCall, status: u16) -> bool {
        self.expects(call, status).unwrap_or_else(|| self.clients.is_ok(status))
    }

    /// Whether a call succeeds with this status, as its options or its protocol say; `None` if the run's statuses decide.
    #[inline]
    pub(super) fn expects(&self, call: &UserCall, status: u16) -> Option<bool> {
        self.names.expects(call.asked.label, status).or_else(|| self.clients.expects(call.asked.client, status))
    }

    /// Shows the outcome of a call to a trace of everything, or its failure to a trace of failures.
    #[inline]
    pub(super) fn see_call(&self, slot: u32) {
        if let Some(trace) = self.watch.all() {
            return self.show_call(trace, slot);
        }
        let Some(trace) = self.watch.failures() else { return };
        let has_failed = self.calls.get(slot).is_some_and(|call| match call.state {
            State::Answered(status, _) => !self.is_success(call, status),
            State::Failed(..) => !call.asked.optional,
            State::Throttled { .. } | State::UnderWay(_) => false,
        });
        if has_failed {
            self.show_call(trace, slot);
        }
    }

    #[cold]
    pub(super) fn show_call(&self, trace: &dyn Trace, slot: u32) {
        let Some(call) = self.calls.get(slot) else { return };
        let Some(client) = self.clients.get(call.asked.client) else { return };
        let name = self.names.get(call.asked.label).map_or("", |label| label.name.as_str());
        let request = &client.caller.shown_call(self.clients.encoded(call));
        match call.state {
            State::Answered(status, times) => {
                let parts = call.kept.parts();
                let answer = CompleteAnswer { status, parts };
                let head = &client.caller.shown_head(&answer);
                let body = &[call.before.as_slice(), &client.caller.shown_answer(self.clients.encoded(call), &answer)]
                    .concat();
                let service_ns = times.ended.since(times.sent);
                trace.see(&Traced::Answered { name, request, status, head, body, service_ns });
            }
            State::Failed(failure, _) => trace.see(&Traced::Failed { name, request, failure, reason: &call.reason }),
            State::Throttled { .. } | State::UnderWay(_) => {}
        }
    }
}
