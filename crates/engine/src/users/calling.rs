//! Users' calls: from what a user wants to a connection.

use std::iter;

use brunt_plan::target::Target;

use super::{Owner, PreparedCall, State, Throttle, TimedWake, UsersNetwork, VirtualUsers};
use crate::network::origins::Pool;
use crate::network::{Call, CallId, Connections, Counted, End, Listing, Network, Place, State as ConnectionState};
use crate::transport::Driver;
use brunt_protocol::scenario::Encoded;
use brunt_script::Placement;
use brunt_script::Wanted;

/// What is asked of a call besides its message.
struct Asked {
    client: usize,
    label: u32,
    timeout_ns: Option<u64>,
    way: Placement,
    judged: bool,
    optional: bool,
    streams: bool,
}

/// Whether another connection may be made for a pool, for which so many calls wait. Where there are to be as few as calls take: no
/// more at once than there are, and none while those being made will have streams enough.
fn may_grow(pool: &mut Pool, waiting: usize, origin: usize, connections: &Connections) -> bool {
    if !pool.grows {
        return pool.count < pool.most;
    }
    pool.making.retain(|token| connections[*token].is_being_made() && connections[*token].origin == origin);
    let making = pool.making.len();
    let at_once = pool.count.saturating_sub(making).max(1);
    // Each has one call of its own already.
    pool.count < pool.most && making < at_once && making.saturating_mul(pool.streams.saturating_sub(1)) < waiting
}

/// A call that was listed with its slot, unless it has ended since.
fn alive<D: Driver>(network: &UsersNetwork<D>, id: CallId) -> Option<(u32, CallId)> {
    network.call(id).map(|call| (call.tag, id))
}

/// The next call that waits for a connection of the pool.
fn next_pooled<D: Driver>(network: &mut UsersNetwork<D>, origin: usize) -> Option<(u32, CallId)> {
    loop {
        let id = network.origins.get(origin)?.waiting.pop_front()?;
        if let Some(call) = alive(network, id) {
            return Some(call);
        }
    }
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
    /// Makes a call that a user wants, whose end it waits for or not; the slot that holds it.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn ask<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        wanted: &Wanted,
        awaited: bool,
        now: u64,
    ) -> Result<u32, String> {
        if let Placement::Open(_) = wanted.way {
            let home = self.home(user);
            self.user(home).ok_or_else(String::new)?.may_hold()?;
        }
        let chain = self.user(user).and_then(|of| of.continues.take());
        let slot = self.vacant_call();
        match self.encode_into(network, slot, wanted) {
            Ok(origin) => {
                if let Some(call) = self.calls.get_mut(slot as usize) {
                    call.chain = chain;
                }
                let Wanted { client, label, timeout_ns, way, judged, optional, streams, .. } = *wanted;
                let asked = Asked { client, label, timeout_ns, way, judged, optional, streams };
                self.make_call(network, slot, user, &asked, origin, awaited, now);
                Ok(slot)
            }
            Err(problem) => {
                self.vacant_calls.push(slot);
                Err(problem)
            }
        }
    }

    /// Encodes a call into its slot, and finds its origin.
    fn encode_into<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        slot: u32,
        wanted: &Wanted,
    ) -> Result<usize, String> {
        let Some(client) = self.clients.get(wanted.client) else { return Err("there is no such client".to_owned()) };
        let Some(call) = self.calls.get_mut(slot as usize) else { return Err(String::new()) };
        call.encoded.clear();
        client.caller.encode(&wanted.values, &mut call.encoded).map_err(|e| e.0)?;
        let target = call.encoded.target.take();
        match wanted.way {
            // It goes where its connection does.
            Placement::On(_) => Ok(0),
            Placement::Any | Placement::Open(_) => self.origin_of(network, wanted.client, target.as_ref()),
        }
    }

    /// The origin of a client's calls to `target`, or to its base.
    fn origin_of<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        client: usize,
        target: Option<&Target>,
    ) -> Result<usize, String> {
        if target.is_none()
            && let Some(origin) = self.bases.get(client).copied().flatten()
        {
            return Ok(origin);
        }
        let Some(script_client) = self.clients.get(client) else { return Err("there is no such client".to_owned()) };
        let Some(goal) = target.or(script_client.base.as_ref()) else {
            return Err("the client has no base to call".to_owned());
        };
        let origin = match network.origins.place(client, goal) {
            Some(origin) => origin,
            None => network.origins.seek(client, goal, script_client)?,
        };
        if target.is_none()
            && let Some(base) = self.bases.get_mut(client)
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
        let Some(client) = self.clients.get(wanted.client) else { return Err("there is no such client".to_owned()) };
        let mut encoded = Encoded::default();
        client.caller.encode(&wanted.values, &mut encoded).map_err(|e| e.0)?;
        let target = encoded.target.take();
        self.prepared.push(PreparedCall { client: wanted.client, encoded, target, origin: None });
        Ok(self.prepared.len() as u32)
    }

    /// Makes a call that was prepared, whose end its user waits for.
    ///
    /// # Errors
    /// When it cannot go where it is to go.
    pub(super) fn ask_prepared<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        (number, label, timeout_ns): (u32, u32, Option<u64>),
        now: u64,
    ) -> Result<(), String> {
        let Some(prepared) = self.prepared.get(number as usize) else { return Err("it was not prepared".to_owned()) };
        let client = prepared.client;
        let origin = if let Some(origin) = prepared.origin {
            origin
        } else {
            let target = prepared.target.clone();
            let origin = self.origin_of(network, client, target.as_ref())?;
            if let Some(prepared) = self.prepared.get_mut(number as usize) {
                prepared.origin = Some(origin);
            }
            origin
        };
        let slot = self.vacant_call();
        if let Some(call) = self.calls.get_mut(slot as usize) {
            call.prepared = Some(number);
        }
        let way = Placement::Any;
        let asked = Asked { client, label, timeout_ns, way, judged: false, optional: false, streams: false };
        self.make_call(network, slot, user, &asked, origin, true, now);
        Ok(())
    }

    /// Makes a call whose message and origin are known: now, or when the throttle lets it go.
    #[allow(clippy::too_many_arguments)]
    fn make_call<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        slot: u32,
        user: u32,
        asked: &Asked,
        origin: usize,
        awaited: bool,
        now: u64,
    ) {
        let timeout_ns = asked.timeout_ns.or_else(|| self.clients.get(asked.client)?.timeout_ns);
        let arrived = self.users.get_mut(user as usize).and_then(|user| {
            if awaited {
                user.awaits = Some(slot);
            }
            user.arrived.take()
        });
        let release = self.throttle.as_mut().map_or(now, |throttle| throttle.release(now).max(now));
        let Some(call) = self.calls.get_mut(slot as usize) else { return };
        call.state = State::Throttled;
        call.user = user;
        call.client = asked.client;
        call.origin = origin;
        call.label = asked.label;
        call.awaited = awaited;
        call.timeout_ns = timeout_ns;
        call.way = asked.way;
        call.judged = asked.judged;
        call.optional = asked.optional;
        call.inbox = asked.streams.then(Box::default);
        // What the throttle holds back is due when it lets it go.
        call.due = if release > now { release } else { arrived.unwrap_or(now) };
        if release > now {
            self.set_timer(release, user, TimedWake::Release(slot));
        } else {
            self.make_due(network, slot, now);
        }
    }

    /// A call is due, and goes to a connection.
    pub(super) fn make_due<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, now: u64) {
        if self.begin(network, slot).is_some() {
            self.place(network, slot, now);
        }
    }

    /// A call begins: it counts as due from now on, unless that depends on what comes of it. By its name it does once it has ended.
    pub(super) fn begin<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32) -> Option<CallId> {
        let call = self.calls.get_mut(slot as usize).filter(|call| call.state == State::Throttled)?;
        let counted = if call.optional { Counted::OnceEnded } else { Counted::AtOnce };
        let id = network.begin(Call::new(slot, call.due, self.loading, counted));
        call.state = State::UnderWay;
        call.id = Some(id);
        Some(id)
    }

    /// Takes a call to a connection: one that has room, a new one, or it waits for one.
    pub(super) fn place<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, now: u64) {
        let Some(call) = self.calls.get(slot as usize) else { return };
        let Some(id) = call.id else { return };
        let (origin, way, client) = (call.origin, call.way, call.client);
        let user = self.home(call.user);
        if let Placement::On(handle) = way {
            return self.place_on_held(network, slot, handle, now);
        }
        if let Some((failure, reason)) = network.origins.lost(origin) {
            return self.complete(network, slot, End::Failed(failure, &reason), now);
        }
        let known = network.origins.route(origin).is_some();
        let Some(there) = network.origins.get(origin) else { return };
        if !known {
            there.waiting.push_back(id);
        } else if let Placement::Open(_) = way {
            self.connect_for(network, Owner::Held(user), origin, slot, now);
        } else if there.pool.is_some() {
            self.place_in_pool(network, (slot, id), origin, now);
        } else {
            self.place_with_user(network, (slot, id), user, client, origin, now);
        }
    }

    /// Takes a call to one of the connections that all users share, or lets it wait for one.
    fn place_in_pool<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        (slot, id): (u32, CallId),
        origin: usize,
        now: u64,
    ) {
        let most = network.origins.pipeline(origin);
        loop {
            let Some(pool) = network.origins.get(origin).and_then(|there| there.pool.as_mut()) else { return };
            let Some(token) = pool.free.pop() else { break };
            let connection = &mut network.connections[token];
            connection.unlist();
            let room = connection.room(most);
            if self.owner(token) == Owner::Pool && connection.origin == origin && room > 0 {
                if room > 1 {
                    connection.listing = Listing::Free;
                    pool.free.push(token);
                }
                return self.send_soon(network, token, slot, now);
            }
        }
        let Network { origins, connections, .. } = network;
        let Some(there) = origins.get(origin) else { return };
        let waiting = there.waiting.len() + 1;
        let grows = there.pool.as_mut().is_some_and(|pool| may_grow(pool, waiting, origin, connections));
        match &mut there.pool {
            Some(pool) if grows => {
                pool.count += 1;
                let token = self.connect_for(network, Owner::Pool, origin, slot, now);
                if let Some(pool) = network.origins.get(origin).and_then(|there| there.pool.as_mut())
                    && pool.grows
                {
                    pool.making.extend(token);
                }
            }
            _ => there.waiting.push_back(id),
        }
    }

    /// Takes a call to one of its user's own connections, or lets it wait for one.
    fn place_with_user<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        (slot, id): (u32, CallId),
        user: u32,
        client: usize,
        origin: usize,
        now: u64,
    ) {
        let most_there = self.clients.get(client).map_or(1, |client| client.per_user) as usize;
        let most = network.origins.pipeline(origin);
        let Some(owner) = self.users.get_mut(user as usize) else { return };
        let (mut there, mut leaving) = (0, 0);
        for &token in &owner.connections {
            let connection = &network.connections[token];
            if connection.origin == origin {
                if connection.room(most) > 0 {
                    return self.send_soon(network, token, slot, now);
                }
                there += usize::from(!connection.is_draining());
                leaving += usize::from(connection.is_draining());
            }
        }
        if there < most_there && there + leaving < 2 * most_there {
            self.connect_for(network, Owner::User(user), origin, slot, now);
        } else {
            owner.waiting.push_back(origin, id);
        }
    }

    /// Sends a call on a connection that has room for it.
    pub(super) fn send_on<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: usize, slot: u32, now: u64) {
        let Some(call) = self.calls.get_mut(slot as usize) else { return };
        let Some(id) = call.id else { return };
        call.bytes_before = network.connections[token].bytes_in;
        network.send(self, token, id, now);
    }

    /// Sends a call on a connection that has room for it, at once or, where calls are gathered, with the others.
    fn send_soon<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: usize, slot: u32, now: u64) {
        let Some(call) = self.calls.get_mut(slot as usize) else { return };
        let Some(id) = call.id else { return };
        // What was due before has waited long enough.
        if !self.gathers || call.due < now {
            return self.send_on(network, token, slot, now);
        }
        call.bytes_before = network.connections[token].bytes_in;
        network.enqueue(token, id);
        self.gathered.push(token);
    }

    /// Sends the calls that were gathered. Each is due when it is sent, as are those of the flood.
    pub(super) fn send_gathered<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        let mut gathered = std::mem::take(&mut self.gathered);
        for token in gathered.drain(..) {
            let now = network.driver.now();
            if self.reach.holds_back(now) {
                // They stay with their connections.
                self.gathered.push(token);
                continue;
            }
            if network.connections[token].state != ConnectionState::Open {
                continue;
            }
            let most = network.origins.pipeline(network.connections[token].origin);
            if network.connections[token].streams_left(most) == 0 {
                network.bound_waits(self, token);
            } else if let Some(id) = network.dequeue(token) {
                if let Some(call) = network.call_mut(id)
                    && !call.was_sent()
                {
                    call.due = now;
                }
                network.send(self, token, id, now);
            }
        }
        if self.gathered.is_empty() {
            self.gathered = gathered;
        }
    }

    /// Sends what has waited for the horizon to move on: connections that were freed meanwhile have nothing that would wake them.
    pub(super) fn send_held<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        self.send_gathered(network);
        for token in 0..network.connections.len() {
            if network.connections[token].state == ConnectionState::Open {
                self.serve_waiting(network, token);
            }
        }
    }

    /// Makes a connection for a call; its number.
    fn connect_for<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        owner: Owner,
        origin: usize,
        slot: u32,
        now: u64,
    ) -> Option<usize> {
        let call = self.calls.get_mut(slot as usize)?;
        let id = call.id?;
        call.bytes_before = 0;
        let way = call.way;
        let token = network.add(origin);
        self.set_owner(token, owner);
        if let Owner::User(user) | Owner::Held(user) = owner
            && let Some(user) = self.users.get_mut(user as usize)
        {
            match way {
                Placement::Open(handle) => user.hold(handle, token),
                Placement::Any | Placement::On(_) => user.connections.push(token),
            }
        }
        network.enqueue(token, id);
        network.connect(self, token, now);
        Some(token)
    }

    /// A connection can carry calls: those that wait for it get it.
    pub(super) fn serve_waiting<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: usize) {
        let origin = network.connections[token].origin;
        let most = network.origins.pipeline(origin);
        while network.connections[token].room(most) > 0 {
            let next = match self.owner(token) {
                Owner::User(user) => self.next_waiting(network, user, origin),
                Owner::Pool => {
                    let next = next_pooled(network, origin);
                    let Some(there) = network.origins.get(origin) else { return };
                    let connection = &mut network.connections[token];
                    if next.is_none()
                        && let Some(pool) = &mut there.pool
                        && connection.is_unlisted()
                    {
                        connection.listing = Listing::Free;
                        pool.free.push(token);
                    }
                    next
                }
                Owner::Held(_) | Owner::Nobody => None,
            };
            let Some((slot, id)) = next else { return };
            let now = network.driver.now();
            if self.reach.holds_back(now) {
                match self.owner(token) {
                    Owner::User(user) => drop(self.user(user).map(|user| user.waiting.push_front(origin, id))),
                    _ => drop(network.origins.get(origin).map(|there| there.waiting.push_front(id))),
                }
                return;
            }
            self.send_on(network, token, slot, now);
        }
        self.grow_pool(network, token, origin);
    }

    /// A connection is full: if calls wait, and connections are made as calls take them, the next call may have another.
    fn grow_pool<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: usize, origin: usize) {
        let Network { origins, connections, .. } = network;
        let Some(there) = origins.get(origin) else { return };
        let waiting = there.waiting.len();
        if waiting == 0 {
            return;
        }
        let Some(pool) = there.pool.as_mut().filter(|pool| pool.grows) else { return };
        pool.streams = connections[token].client.capacity();
        if may_grow(pool, waiting, origin, connections)
            && self.owner(token) == Owner::Pool
            && let Some((slot, _)) = next_pooled(network, origin)
        {
            let now = network.driver.now();
            self.place(network, slot, now);
        }
    }

    /// A connection is gone, and what waited for it may have another.
    pub(super) fn place_next<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        owner: Owner,
        origin: usize,
        now: u64,
    ) {
        let next = match owner {
            Owner::User(user) => self.next_waiting(network, user, origin),
            Owner::Pool => next_pooled(network, origin),
            Owner::Held(_) | Owner::Nobody => None,
        };
        let Some((slot, id)) = next else { return };
        if self.is_loading() {
            self.place(network, slot, now);
        } else if let Some(there) = network.origins.get(origin) {
            there.waiting.push_back(id);
        }
    }

    /// The next of a user's calls that wait for a connection to `origin`.
    fn next_waiting<D: Driver>(
        &mut self,
        network: &UsersNetwork<D>,
        user: u32,
        origin: usize,
    ) -> Option<(u32, CallId)> {
        let waiting = &mut self.users.get_mut(user as usize)?.waiting;
        iter::from_fn(|| waiting.pop_front(origin)).find_map(|id| alive(network, id))
    }

    /// Closes connections whose user is done with them.
    pub(super) fn close_connections<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        connections: impl IntoIterator<Item = usize>,
    ) {
        let now = network.driver.now();
        for token in connections {
            network.close(self, token, now);
            self.set_owner(token, Owner::Nobody);
            network.vacate(token);
        }
    }

    /// The ways that were looked for, if one was found: calls that waited for it go it.
    pub(super) fn take_found<D: Driver>(&mut self, network: &mut UsersNetwork<D>, now: u64) {
        while let Some(origin) = network.origins.found() {
            let waiting =
                network.origins.get(origin).map(|there| std::mem::take(&mut there.waiting)).unwrap_or_default();
            for id in waiting {
                if let Some((slot, _)) = alive(network, id) {
                    self.place(network, slot, now);
                }
            }
        }
    }

    /// Ends a call that is with its user yet.
    pub(super) fn complete<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, end: End<'_>, now: u64) {
        if let Some(id) = self.calls.get(slot as usize).and_then(|call| call.id) {
            network.complete(self, id, end, now);
        }
    }

    /// The measured part ended at `end`: calls that wait for a connection are never sent.
    pub(super) fn drop_unsent<D: Driver>(&mut self, network: &mut UsersNetwork<D>, end: u64) {
        self.ready.clear();
        self.timers.clear();
        for there in network.origins.all() {
            there.waiting.clear();
        }
        for slot in 0..self.calls.len() as u32 {
            let Some(call) = self.calls.get(slot as usize) else { break };
            match call.state {
                // It was due a moment ago, or has not become due.
                State::Throttled if call.due <= end => {
                    self.begin(network, slot);
                }
                State::Throttled => self.vacate_call(slot),
                State::Vacant | State::UnderWay | State::Answered(_) | State::Failed(_) => {}
            }
            let Some(call) = self.calls.get(slot as usize) else { break };
            let waits = call.id.and_then(|id| network.call(id)).is_some_and(|call| call.place == Place::Waiting);
            if waits {
                let end_of_call = if call.optional { End::Withdrawn } else { End::Unsent };
                self.complete(network, slot, end_of_call, end);
            }
        }
    }
}
