//! Users' calls: to connections, and back with what came of them.

use brunt_model::outcome::Failure;
use brunt_model::target::Target;

use super::super::connection::{Call, Connection, Owner};
use super::super::{Source, Worker};
use super::{PreparedCall, State, Throttle, TimedWake, VirtualUsers, Wake};
use crate::protocol::scenario::Encoded;
use crate::script::scenario::Way;
use crate::script::scenario::operation::Wanted;
use crate::transport::Driver;
use crate::worker::connection::State as ConnectionState;
use crate::worker::origins::NoClient;
use crate::worker::recorder::Recorder;

/// What is asked of a call besides its message.
struct Asked {
    client: usize,
    label: u32,
    timeout_ns: Option<u64>,
    way: Way,
    judged: bool,
    optional: bool,
}

impl Throttle {
    /// When the next call may be made, which is asked for at `now`.
    fn release(&mut self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.began) as f64 / 1e9;
        // What was not used of the rate is not made up for.
        self.calls = self.calls.max(self.profile.calls_held_until(elapsed) - self.workers);
        let at = self.profile.time_held_of(self.calls, &mut self.hint);
        self.calls += self.workers;
        self.began + (at * 1e9) as u64
    }
}

impl VirtualUsers {
    /// A call of `user` has ended.
    fn call_ended(&mut self, slot: u32, awaited: bool, user: u32) {
        self.see_call(slot);
        if awaited {
            self.make_ready(user, Wake::Ended(slot));
            return;
        }
        let Some(of) = self.user(user) else { return };
        of.pending = of.pending.saturating_sub(1);
        if of.pending == 0 && (of.waits || of.outcome.is_some()) {
            self.make_ready(user, Wake::AllEnded);
        }
    }

    /// The run is over while the call is on a connection: what is counted by its name.
    pub(in super::super) fn cut_short(&mut self, call: &Call, now: u64, recorder: &mut Recorder) {
        let Some(slot) = self.calls.get(call.index as usize) else { return };
        let response = now.saturating_sub(call.due);
        if call.optional {
            // Nobody knows whether an answer would have come.
        } else if call.sent == u64::MAX {
            self.names.record(recorder, slot.label, |calls| calls.unsent(response));
        } else {
            let service = now.saturating_sub(call.sent);
            self.names.record(recorder, slot.label, |calls| calls.unfinished(response, service));
        }
        self.vacate_call(call.index as u32);
    }
}

impl<D: Driver> Worker<D> {
    /// Makes a call that a user wants.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn ask(&mut self, user: u32, wanted: &Wanted, awaited: bool, now: u64) -> Result<u32, String> {
        let Source::Users(users) = &mut self.source else { return Err(String::new()) };
        if let Way::Open(_) = wanted.way {
            users.user(user).ok_or_else(String::new)?.may_hold()?;
        }
        let slot = users.vacant_call();
        let asked = self.ask_in(slot, wanted);
        let Source::Users(users) = &mut self.source else { return Err(String::new()) };
        match asked {
            Ok(origin) => {
                let Wanted { client, label, timeout_ns, way, judged, optional, .. } = *wanted;
                let asked = Asked { client, label, timeout_ns, way, judged, optional };
                self.begin_call(slot, user, &asked, origin, awaited, now);
                Ok(slot)
            }
            Err(problem) => {
                users.vacant_calls.push(slot);
                Err(problem)
            }
        }
    }

    /// Encodes a call into its slot, and finds its origin.
    fn ask_in(&mut self, slot: u32, wanted: &Wanted) -> Result<usize, String> {
        let Source::Users(users) = &mut self.source else { return Err(String::new()) };
        let Some(client) = users.clients.get(wanted.client) else { return Err("there is no such client".to_owned()) };
        let Some(of) = users.calls.get_mut(slot as usize) else { return Err(String::new()) };
        of.encoded.clear();
        client.caller.encode(&wanted.values, &mut of.encoded).map_err(|e| e.0)?;
        let target = of.encoded.target.take();
        match wanted.way {
            // It goes where its connection does.
            Way::On(_) => Ok(0),
            Way::Any | Way::Open(_) => self.origin_of(wanted.client, target.as_ref()),
        }
    }

    /// The origin of a client's calls to `target`, or to its base.
    fn origin_of(&mut self, client: usize, target: Option<&Target>) -> Result<usize, String> {
        let Source::Users(users) = &mut self.source else { return Err(String::new()) };
        if target.is_none()
            && let Some(origin) = users.bases.get(client).copied().flatten()
        {
            return Ok(origin);
        }
        let Some(of) = users.clients.get(client) else { return Err("there is no such client".to_owned()) };
        let Some(there) = target.or(of.base.as_ref()) else {
            return Err("the client has no base to call".to_owned());
        };
        let origin = match self.origins.place(client, there) {
            Some(origin) => origin,
            None => self.origins.seek(client, there, of)?,
        };
        if target.is_none()
            && let Some(base) = users.bases.get_mut(client)
        {
            *base = Some(origin);
        }
        Ok(origin)
    }

    /// Encodes a call that is to be made by its number from then on, which counts from 1.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn prepare_call(&mut self, wanted: &Wanted) -> Result<u32, String> {
        let Source::Users(users) = &mut self.source else { return Err(String::new()) };
        let Some(client) = users.clients.get(wanted.client) else { return Err("there is no such client".to_owned()) };
        let mut encoded = Encoded::default();
        client.caller.encode(&wanted.values, &mut encoded).map_err(|e| e.0)?;
        let target = encoded.target.take();
        users.prepared.push(PreparedCall { client: wanted.client, encoded, target, origin: None });
        Ok(users.prepared.len() as u32)
    }

    /// Makes a call that was prepared, whose end its user waits for.
    ///
    /// # Errors
    /// When it cannot go where it is to go.
    pub(super) fn ask_prepared(
        &mut self,
        user: u32,
        (prepared, label, timeout_ns): (u32, u32, Option<u64>),
        now: u64,
    ) -> Result<(), String> {
        let Source::Users(users) = &mut self.source else { return Err(String::new()) };
        let Some(of) = users.prepared.get(prepared as usize) else { return Err("it was not prepared".to_owned()) };
        let client = of.client;
        let origin = if let Some(origin) = of.origin {
            origin
        } else {
            let target = of.target.clone();
            let origin = self.origin_of(client, target.as_ref())?;
            let Source::Users(users) = &mut self.source else { return Err(String::new()) };
            if let Some(of) = users.prepared.get_mut(prepared as usize) {
                of.origin = Some(origin);
            }
            origin
        };
        let Source::Users(users) = &mut self.source else { return Err(String::new()) };
        let slot = users.vacant_call();
        if let Some(of) = users.calls.get_mut(slot as usize) {
            of.prepared = Some(prepared);
        }
        let asked = Asked { client, label, timeout_ns, way: Way::Any, judged: false, optional: false };
        self.begin_call(slot, user, &asked, origin, true, now);
        Ok(())
    }

    /// Begins a call whose message and origin are known.
    fn begin_call(&mut self, slot: u32, user: u32, asked: &Asked, origin: usize, awaited: bool, now: u64) {
        let measured = self.is_measured();
        let Source::Users(users) = &mut self.source else { return };
        let timeout_ns = asked.timeout_ns.or_else(|| users.clients.get(asked.client)?.timeout_ns);
        let arrived = users.users.get_mut(user as usize).and_then(|user| user.arrived.take());
        let release = users.throttle.as_mut().map_or(now, |throttle| throttle.release(now).max(now));
        // What the throttle holds back is due when it lets it go.
        let due = if release > now { release } else { arrived.unwrap_or(now) };
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        of.state = State::Waiting;
        of.user = user;
        of.client = asked.client;
        of.origin = origin;
        of.label = asked.label;
        of.awaited = awaited;
        of.timeout_ns = timeout_ns;
        of.way = asked.way;
        of.judged = asked.judged;
        of.call = Call { optional: asked.optional, ..Call::new(due, u64::from(slot), measured) };
        if release > now {
            users.set_timer(release, user, TimedWake::Release(slot));
        } else {
            self.due(slot, now);
        }
    }

    /// A call is due: it counts from now on, unless that depends on what comes of it.
    pub(super) fn due(&mut self, slot: u32, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        let Some(of) = users.calls.get(slot as usize) else { return };
        self.under_way += u64::from(of.call.measured);
        if !of.call.optional {
            let call = of.call;
            self.count_due(&call);
        }
        self.place(slot, now);
    }

    /// Counts a call of a user as one that was due.
    fn count_due(&mut self, call: &Call) {
        let Source::Users(users) = &mut self.source else { return };
        let Some(of) = users.calls.get(call.index as usize) else { return };
        self.recorder.due(call);
        if self.recorder.counts(call) {
            users.names.record(&mut self.recorder, of.label, brunt_model::figures::CallFigures::due);
        }
    }

    /// A call that need not be answered was not, in time: it counts for nothing.
    pub(in super::super) fn user_waited(&mut self, call: &Call, reason: &str, now: u64) {
        self.under_way -= u64::from(call.measured);
        let Source::Users(users) = &mut self.source else { return };
        let slot = call.index as u32;
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        of.state = State::Failed(Failure::Timeout);
        of.call = *call;
        of.ended = now;
        of.reason.clear();
        of.reason.push_str(reason);
        let (user, awaited) = (of.user, of.awaited);
        users.call_ended(slot, awaited, user);
    }

    /// Takes a call to a connection: one that is free, a new one, or it waits for one.
    fn place(&mut self, slot: u32, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        let Some(of) = users.calls.get(slot as usize) else { return };
        let (origin, user) = (of.origin, of.user);
        if let Way::On(handle) = of.way {
            return self.place_on_held(slot, handle, now);
        }
        if let Some((failure, reason)) = self.origins.lost(origin) {
            return self.fail_waiting(slot, failure, &reason, now);
        }
        let known = self.origins.route(origin).is_some();
        let Some(there) = self.origins.get(origin) else { return };
        if !known {
            there.waiting.push_back(slot);
            return;
        }
        if let Way::Open(_) = of.way {
            return self.connect_for(Owner::Held(user), origin, slot, now);
        }
        let free = |connection: &Connection| {
            connection.state == ConnectionState::Open && connection.calls.is_empty() && connection.queue.is_empty()
        };
        if let Some(pool) = &mut there.pool {
            while let Some(token) = pool.free.pop() {
                let connection = &mut self.connections[token];
                connection.listed = false;
                if connection.owner == Owner::Pool && connection.origin == origin && free(connection) {
                    return self.send_soon(token, slot, now);
                }
            }
            if pool.count < pool.most {
                pool.count += 1;
                self.connect_for(Owner::Pool, origin, slot, now);
            } else {
                there.waiting.push_back(slot);
            }
            return;
        }
        let most = users.clients.get(of.client).map_or(1, |client| client.per_user) as usize;
        let Some(owner) = users.users.get_mut(user as usize) else { return };
        let mut there = 0;
        for &token in &owner.connections {
            let connection = &self.connections[token];
            if connection.origin == origin {
                there += 1;
                if free(connection) {
                    return self.send_soon(token, slot, now);
                }
            }
        }
        if there < most {
            self.connect_for(Owner::User(user), origin, slot, now);
        } else {
            owner.waiting.push_back(slot);
        }
    }

    /// Sends a call on a connection that is free for it.
    pub(super) fn send_on(&mut self, token: usize, slot: u32, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        of.state = State::OnConnection;
        of.bytes_before = self.connections[token].bytes_in;
        let call = of.call;
        if self.compose(token, call, now) {
            self.flush(token);
        }
    }

    /// Sends a call on a connection that is free for it, at once or, where calls are gathered, with the others.
    fn send_soon(&mut self, token: usize, slot: u32, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        // What was due before has waited long enough.
        if !users.gathers || of.call.due < now {
            return self.send_on(token, slot, now);
        }
        of.state = State::OnConnection;
        let connection = &mut self.connections[token];
        of.bytes_before = connection.bytes_in;
        connection.queue.push_back(of.call);
        users.gathered.push(token);
    }

    /// Sends the calls that were gathered. Each is due when it is made, as are those of the flood.
    pub(super) fn send_gathered(&mut self) {
        let Source::Users(users) = &mut self.source else { return };
        let mut gathered = std::mem::take(&mut users.gathered);
        for token in gathered.drain(..) {
            let connection = &mut self.connections[token];
            if connection.state == ConnectionState::Open
                && let Some(mut call) = connection.queue.pop_front()
            {
                let now = self.driver.now();
                call.due = now;
                if self.compose(token, call, now) {
                    self.flush(token);
                }
            }
        }
        if let Source::Users(users) = &mut self.source {
            users.gathered = gathered;
        }
    }

    /// Makes a connection for a call.
    fn connect_for(&mut self, owner: Owner, origin: usize, slot: u32, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        of.state = State::OnConnection;
        of.bytes_before = 0;
        let (call, way) = (of.call, of.way);
        let token = self.vacant.pop().unwrap_or_else(|| {
            self.connections.0.push(Connection::new(Box::new(NoClient), Owner::Nobody, 0));
            self.connections.0.len() - 1
        });
        if let Owner::User(user) | Owner::Held(user) = owner
            && let Some(user) = users.users.get_mut(user as usize)
        {
            match way {
                Way::Open(handle) => user.hold(handle, token),
                Way::Any | Way::On(_) => user.connections.push(token),
            }
        }
        let connection = &mut self.connections[token];
        connection.owner = owner;
        connection.origin = origin;
        connection.fruitless = 0;
        connection.queue.push_back(call);
        self.connect(token, now);
    }

    /// A connection can carry a call: one that waits for it gets it.
    pub(in super::super) fn serve_waiting(&mut self, token: usize) {
        let Source::Users(users) = &mut self.source else { return };
        let connection = &mut self.connections[token];
        if connection.state != ConnectionState::Open || !connection.calls.is_empty() {
            return;
        }
        let origin = connection.origin;
        let next = match connection.owner {
            Owner::User(user) => users.next_waiting(user, origin),
            Owner::Pool => {
                let Some(there) = self.origins.get(origin) else { return };
                let next = there.waiting.pop_front();
                if next.is_none()
                    && let Some(pool) = &mut there.pool
                    && !connection.listed
                {
                    connection.listed = true;
                    pool.free.push(token);
                }
                next
            }
            Owner::Flood | Owner::Held(_) | Owner::Nobody => None,
        };
        if let Some(slot) = next {
            let now = self.driver.now();
            self.send_on(token, slot, now);
        }
    }

    /// A connection of users is gone; nothing waits to be sent on it again.
    pub(in super::super) fn connection_gone(&mut self, token: usize, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        let connection = &mut self.connections[token];
        let (owner, origin) = (connection.owner, connection.origin);
        connection.owner = Owner::Nobody;
        connection.listed = false;
        connection.fruitless = 0;
        self.vacant.push(token);
        let next = match owner {
            Owner::User(user) => {
                if let Some(user) = users.user(user) {
                    user.connections.retain(|known| *known != token);
                }
                users.next_waiting(user, origin)
            }
            Owner::Pool => {
                let Some(there) = self.origins.get(origin) else { return };
                if let Some(pool) = &mut there.pool {
                    pool.count = pool.count.saturating_sub(1);
                }
                there.waiting.pop_front()
            }
            Owner::Flood | Owner::Held(_) | Owner::Nobody => None,
        };
        if let Some(slot) = next {
            if self.is_loading() {
                self.place(slot, now);
            } else if let Some(there) = self.origins.get(origin) {
                there.waiting.push_back(slot);
            }
        }
    }

    /// Closes a user's connections.
    pub(super) fn close_connections(&mut self, connections: Vec<usize>) {
        for token in connections {
            self.say_goodbye(token);
            self.close(token);
            let connection = &mut self.connections[token];
            connection.owner = Owner::Nobody;
            connection.listed = false;
            self.vacant.push(token);
        }
    }

    /// The ways that were looked for, if one was found: calls that waited for it go it.
    pub(super) fn take_found(&mut self, now: u64) {
        while let Some(origin) = self.origins.found() {
            let waiting = self.origins.get(origin).map(|there| std::mem::take(&mut there.waiting)).unwrap_or_default();
            for slot in waiting {
                self.place(slot, now);
            }
        }
    }

    /// A call has been answered.
    #[inline]
    pub(in super::super) fn user_answered(&mut self, token: usize, call: &Call, status: u16, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        let slot = call.index as u32;
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        let connection = &mut self.connections[token];
        // What was judged was handed over for that.
        if !of.judged {
            connection.client.hand_over(&mut of.kept);
        }
        let bytes_in = connection.bytes_in.saturating_sub(of.bytes_before);
        self.end_answered(call, status, bytes_in, now);
    }

    /// A call has been answered, and its answer lies in its slot.
    #[inline]
    pub(super) fn end_answered(&mut self, call: &Call, status: u16, bytes_in: u64, now: u64) {
        if call.optional {
            self.count_due(call);
        }
        let Source::Users(users) = &mut self.source else { return };
        let slot = call.index as u32;
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        of.state = State::Answered(status);
        of.call = *call;
        of.ended = now;
        let (user, label, awaited) = (of.user, of.label, of.awaited);
        if self.recorder.counts(call) {
            let bytes_out = users.calls.get(slot as usize).map_or(0, |of| users.message(of).bytes.len() as u64);
            let (response, service) = (now.saturating_sub(call.due), now.saturating_sub(call.sent));
            users.names.record(&mut self.recorder, label, |calls| {
                calls.answered(status, response, service);
                calls.bytes(bytes_in, bytes_out);
            });
            if users.names.is_new(label, status) {
                users.name_status(&mut self.recorder, slot, status);
            }
        }
        if let Some(user) = users.user(user) {
            user.fruitless = 0;
        }
        users.call_ended(slot, awaited, user);
    }

    /// A call has failed.
    pub(in super::super) fn user_failed(&mut self, call: &Call, failure: Failure, reason: &str, now: u64) {
        if call.optional {
            self.count_due(call);
        }
        let Source::Users(users) = &mut self.source else { return };
        let slot = call.index as u32;
        let Some(of) = users.calls.get_mut(slot as usize) else { return };
        of.state = State::Failed(failure);
        of.call = *call;
        of.ended = now;
        of.reason.clear();
        of.reason.push_str(reason);
        let (user, label, awaited) = (of.user, of.label, of.awaited);
        if self.recorder.counts(call) {
            let service = (call.sent != u64::MAX).then(|| now.saturating_sub(call.sent));
            let response = now.saturating_sub(call.due);
            users.names.record(&mut self.recorder, label, |calls| calls.failed(failure, response, service));
        }
        let unreached = call.sent == u64::MAX;
        if let Some(user) = users.user(user) {
            user.fruitless = if unreached { user.fruitless + 1 } else { 0 };
        }
        users.call_ended(slot, awaited, user);
    }

    /// A call has failed before it came to a connection.
    pub(super) fn fail_waiting(&mut self, slot: u32, failure: Failure, reason: &str, now: u64) {
        let Source::Users(users) = &mut self.source else { return };
        if let Some(of) = users.slot(slot) {
            let call = of.call;
            self.fail(&call, failure, reason, now);
        }
    }

    /// The measured part ended at `end`: calls that wait for a connection are never sent.
    pub(in super::super) fn drop_users_unsent(&mut self, end: u64) {
        let Source::Users(users) = &mut self.source else { return };
        users.ready.clear();
        users.timers.clear();
        for there in self.origins.all() {
            there.waiting.clear();
        }
        for slot in 0..users.calls.len() {
            let Some(of) = users.calls.get(slot) else { break };
            // What the throttle holds back has not become due.
            if of.state == State::Waiting && of.call.due <= end && !of.call.optional {
                let (due, label, measured) = (of.call.due, of.label, of.call.measured);
                self.recorder.unsent(due, end);
                users.names.record(&mut self.recorder, label, |calls| calls.unsent(end.saturating_sub(due)));
                self.under_way -= u64::from(measured);
            }
            if of.state == State::Waiting {
                users.vacate_call(slot as u32);
            }
        }
    }
}

impl VirtualUsers {
    /// Writes down what the status of a call's answer is called, if its protocol has a name for it.
    #[cold]
    fn name_status(&self, recorder: &mut Recorder, slot: u32, status: u16) {
        let Some(of) = self.calls.get(slot as usize) else { return };
        let Some(client) = self.clients.get(of.client) else { return };
        if let Some(name) = client.caller.status_name(self.message(of), status) {
            self.names.record(recorder, of.label, |calls| calls.name_status(status, &name));
        }
    }

    /// The next of a user's calls that wait for a connection to `origin`.
    fn next_waiting(&mut self, user: u32, origin: usize) -> Option<u32> {
        let calls = &self.calls;
        let user = self.users.get_mut(user as usize)?;
        let place =
            user.waiting.iter().position(|slot| calls.get(*slot as usize).is_some_and(|of| of.origin == origin))?;
        user.waiting.remove(place)
    }
}
