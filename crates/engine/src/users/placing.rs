//! Placing users' calls on connections: those of a pool, a user's own, and calls that wait for one.

use std::iter;

use brunt_record::time::Tick;

use super::{Owner, UsersNetwork, VirtualUsers};
use crate::network::origins::{OriginId, Pool};
use crate::network::{CallId, Connections, End, Listing, Network};
use crate::transport::{ConnectionId, Driver};
use brunt_script::Placement;

/// Whether another connection may be made for a pool with `waiting` calls. A pool that shall stay as small as its calls
/// allow makes no more connections at once than it has, and none while those being made will have streams enough.
fn may_grow(pool: &mut Pool, waiting: usize, origin: OriginId, connections: &Connections) -> bool {
    if !pool.grows {
        return pool.count < pool.most;
    }
    pool.making.retain(|token| connections[*token].is_being_made() && connections[*token].origin == origin);
    let making = pool.making.len();
    let at_once = pool.count.saturating_sub(making).max(1);
    // Each connection being made has one call of its own already.
    pool.count < pool.most && making < at_once && making.saturating_mul(pool.streams.saturating_sub(1)) < waiting
}

/// The slot and the id of a listed call, unless it has ended since.
pub(super) fn alive<D: Driver>(network: &UsersNetwork<D>, id: CallId) -> Option<(u32, CallId)> {
    network.call(id).map(|call| (call.tag, id))
}

/// The next call that waits for a connection of the pool.
fn next_pooled<D: Driver>(network: &mut UsersNetwork<D>, origin: OriginId) -> Option<(u32, CallId)> {
    loop {
        let id = network.origins.get(origin)?.waiting.pop_front()?;
        if let Some(call) = alive(network, id) {
            return Some(call);
        }
    }
}

impl VirtualUsers {
    /// Takes a call to a connection with room or to a new one, or lets it wait for one.
    pub(super) fn place<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, now: Tick) {
        let Some(call) = self.calls.get(slot) else { return };
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
        origin: OriginId,
        now: Tick,
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
        origin: OriginId,
        now: Tick,
    ) {
        let most_there = self.clients.get(client).map_or(1, |client| client.per_user) as usize;
        let most = network.origins.pipeline(origin);
        let Some(owner) = self.users.get_mut(user) else { return };
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
    pub(super) fn send_on<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        token: ConnectionId,
        slot: u32,
        now: Tick,
    ) {
        let Some(call) = self.calls.get_mut(slot) else { return };
        let Some(id) = call.id else { return };
        call.bytes_before = network.connections[token].link.bytes_in;
        network.send(self, token, id, now);
    }

    /// Sends a call on a connection that has room for it, at once or, where calls are gathered, with the others.
    fn send_soon<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, slot: u32, now: Tick) {
        let Some(call) = self.calls.get_mut(slot) else { return };
        let Some(id) = call.id else { return };
        // A call that was due earlier has waited long enough.
        if !self.gathers || call.due < now {
            return self.send_on(network, token, slot, now);
        }
        call.bytes_before = network.connections[token].link.bytes_in;
        network.enqueue(token, id);
        self.gathered.push(token);
    }

    /// Sends the gathered calls. Each becomes due when it is sent, like the calls of the flood.
    pub(super) fn send_gathered<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        let mut gathered = std::mem::take(&mut self.gathered);
        for token in gathered.drain(..) {
            let now = network.driver.now();
            if self.reach.holds_back(now) {
                // The calls stay with their connections.
                self.gathered.push(token);
                continue;
            }
            if !network.connections[token].is_open() {
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

    /// Sends the calls that waited for the horizon to move on: no event would wake connections that were freed
    /// meanwhile.
    pub(super) fn send_held<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        self.send_gathered(network);
        for token in network.connections.ids() {
            if network.connections[token].is_open() {
                self.serve_waiting(network, token);
            }
        }
    }

    /// Makes a connection for a call. Returns its number.
    fn connect_for<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        owner: Owner,
        origin: OriginId,
        slot: u32,
        now: Tick,
    ) -> Option<ConnectionId> {
        let call = self.calls.get_mut(slot)?;
        let id = call.id?;
        call.bytes_before = 0;
        let way = call.way;
        let token = network.add(origin);
        self.set_owner(token, owner);
        if let Owner::User(user) | Owner::Held(user) = owner
            && let Some(user) = self.users.get_mut(user)
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

    /// Gives a connection that can carry calls to those that wait for it.
    pub(super) fn serve_waiting<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId) {
        if let Owner::Held(user) = self.owner(token) {
            return self.serve_held(network, token, user);
        }
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

    /// Lets the next waiting call have another connection, as this one is full, where the pool grows as calls need it.
    fn grow_pool<D: Driver>(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, origin: OriginId) {
        let Network { origins, connections, .. } = network;
        let Some(there) = origins.get(origin) else { return };
        let waiting = there.waiting.len();
        if waiting == 0 {
            return;
        }
        let Some(pool) = there.pool.as_mut().filter(|pool| pool.grows) else { return };
        pool.streams = connections[token].link.client.capacity();
        if may_grow(pool, waiting, origin, connections)
            && self.owner(token) == Owner::Pool
            && let Some((slot, _)) = next_pooled(network, origin)
        {
            let now = network.driver.now();
            self.place(network, slot, now);
        }
    }

    /// Gives the place of a connection back, and lets the next call that waits have it.
    pub(super) fn give_back<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        token: ConnectionId,
        drained: bool,
        now: Tick,
    ) {
        let owner = self.owner(token);
        let origin = network.connections[token].origin;
        self.set_owner(token, Owner::Nobody);
        network.vacate(token);
        match owner {
            Owner::User(user) => {
                if let Some(user) = self.user(user) {
                    user.connections.retain(|known| *known != token);
                }
            }
            Owner::Pool => {
                if let Some(pool) = network.origins.get(origin).and_then(|there| there.pool.as_mut()) {
                    pool.is_gone(drained);
                }
            }
            Owner::Held(_) | Owner::Nobody => {}
        }
        self.place_next(network, owner, origin, now);
    }

    /// Places a call that waited for a connection that is gone.
    pub(super) fn place_next<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        owner: Owner,
        origin: OriginId,
        now: Tick,
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
        origin: OriginId,
    ) -> Option<(u32, CallId)> {
        let waiting = &mut self.users.get_mut(user)?.waiting;
        iter::from_fn(|| waiting.pop_front(origin)).find_map(|id| alive(network, id))
    }
}
