//! Connections of users, and those that all users share: when another is made, and when one that leaves is replaced.
//!
//! A user's call asks for a connection; once one is free, the load is asked for the next call
//! ([`Workload::next_calls`](super::Workload::next_calls)). A flood keeps up a fixed number for itself and a replay one for each
//! session, by the same rule ([`KeptUp`]); whose a connection is stands with it ([`Keeper`]).

use std::collections::VecDeque;

use brunt_record::time::Tick;

use super::calls::CallId;
use super::connection::{Connection, Connections, Keeper, PoolMembership};
use super::growth::Eager;
use super::origins::{OriginId, Origins};
use super::{Network, Workload};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};

/// A set of connections that is held at a fixed number.
///
/// **When one that leaves is replaced**: a peer may take no more calls on a connection that still has some. As many
/// of these as are kept up are replaced at once. Any more keep their places until they have ended, so that there are
/// never more than twice as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeptUp {
    /// How many are kept up.
    pub(crate) most: usize,
    /// Connections, made or being made, without those that leave.
    pub(crate) there: usize,
    /// Connections on which the peer takes no more calls.
    pub(crate) draining: usize,
}

impl KeptUp {
    /// How many of the places are taken.
    #[inline]
    fn taken(&self) -> usize {
        let replaced = if is_broken(Rule::LeavingTakesPlaces) { usize::MAX } else { self.most };
        self.there + self.draining.saturating_sub(replaced)
    }

    /// Counts the connections that a user has to `origin`, which may be `most`.
    fn count(keeper: Keeper, origin: OriginId, most: usize, connections: &Connections) -> Self {
        let (mut there, mut leaving) = (0, 0);
        for token in connections.kept_to(keeper, origin) {
            let place = if connections[token].is_draining() { &mut leaving } else { &mut there };
            *place += 1;
        }
        Self { most, there, draining: leaving }
    }

    /// Whether another connection may be made.
    #[inline]
    pub(crate) fn has_place(&self) -> bool {
        self.taken() < self.most
    }
}

/// Connections of one worker to one origin that all its users share.
#[derive(Debug)]
struct Shared {
    kept_up: KeptUp,
    /// How it grows; `None` if a connection is made for each call until there are enough.
    growth: Option<Eager>,
    /// Connections that may be free; some may be gone by now.
    free: Vec<ConnectionId>,
}

impl Shared {
    /// At most so many connections; with `grows`, another one only once all are full.
    fn new(most: usize, grows: bool) -> Self {
        let kept_up = KeptUp { most, ..KeptUp::default() };
        Self { kept_up, growth: grows.then(Eager::new), free: Vec::new() }
    }

    /// A connection with room for another call, of `pipeline` at once.
    fn take_free(&mut self, origin: OriginId, pipeline: usize, connections: &mut Connections) -> Option<ConnectionId> {
        while let Some(token) = self.free.pop() {
            let connection = &mut connections[token];
            connection.unlist();
            let room = connection.room(pipeline);
            // Its place may be another's by now.
            if connection.keeper == Keeper::Everybody && connection.origin == origin && room > 0 {
                if room > 1 {
                    self.is_free(token, connections);
                }
                return Some(token);
            }
        }
        None
    }

    /// The connection may have room for another call.
    fn is_free(&mut self, token: ConnectionId, connections: &mut Connections) {
        let connection = &mut connections[token];
        if connection.is_unlisted() {
            connection.membership = PoolMembership::Free;
            self.free.push(token);
        }
    }

    /// A connection turned out to take so many calls at once.
    fn fills_with(&mut self, streams: usize) {
        if let Some(growth) = &mut self.growth {
            growth.fills_with(streams);
        }
    }

    /// Whether another connection may be made for `waiting` calls.
    fn may_dial(&mut self, waiting: usize, origin: OriginId, connections: &Connections) -> bool {
        let taken = self.kept_up.taken();
        let is_enough =
            self.growth.as_mut().is_some_and(|growth| growth.is_enough(waiting, taken, origin, connections));
        self.kept_up.has_place() && !is_enough
    }

    /// Another connection is about to be made.
    fn dials(&mut self) {
        self.kept_up.there += 1;
    }

    /// The connection is being made.
    fn dialled(&mut self, token: ConnectionId) {
        if let Some(growth) = &mut self.growth {
            growth.dialled(token);
        }
    }

    /// The peer takes no more calls on a connection. Returns whether it may be replaced at once.
    fn leaves(&mut self) -> bool {
        let taken = self.kept_up.taken();
        self.kept_up.there = self.kept_up.there.saturating_sub(1);
        self.kept_up.draining += 1;
        self.kept_up.taken() < taken
    }

    /// A connection is gone, after its peer took no more calls on it or otherwise.
    fn is_gone(&mut self, has_left: bool) {
        let place = if has_left { &mut self.kept_up.draining } else { &mut self.kept_up.there };
        *place = place.saturating_sub(1);
    }
}

/// Connections of users: those that each has for itself, and those that all share.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Whether this user may have another connection to `origin`.
    pub(crate) fn has_place(&self, user: Keeper, origin: OriginId) -> bool {
        KeptUp::count(user, origin, self.origins.per_user(origin), &self.connections).has_place()
    }

    /// Whether all users share the connections to `origin`.
    pub(crate) fn is_shared(&self, origin: OriginId) -> bool {
        self.origins.shared(origin).is_some()
    }

    /// Whether another of them is made only once all are full.
    pub(crate) fn grows(&self, origin: OriginId) -> bool {
        self.origins.shared(origin).is_some_and(|(_, grows)| grows)
    }

    /// One of them with room for another call.
    pub(crate) fn take_free(&mut self, origin: OriginId) -> Option<ConnectionId> {
        let pipeline = self.origins.pipeline(origin);
        self.pools.shared(origin, &self.origins)?.take_free(origin, pipeline, &mut self.connections)
    }

    /// A connection has room, and no call waits for it: if all share it, it is one of the free ones.
    pub(crate) fn has_room(&mut self, token: ConnectionId) {
        let connection = &self.connections[token];
        if connection.keeper == Keeper::Everybody
            && let Some(shared) = self.pools.shared(connection.origin, &self.origins)
        {
            shared.is_free(token, &mut self.connections);
        }
    }

    /// Whether another connection that all share may be made to `origin`, for which so many calls wait.
    pub(crate) fn may_dial(&mut self, origin: OriginId, waiting: usize) -> bool {
        let shared = self.pools.shared(origin, &self.origins);
        shared.is_some_and(|shared| shared.may_dial(waiting, origin, &self.connections))
    }

    /// Whether another may be made for the calls that wait, now that this one is full.
    pub(crate) fn may_dial_beside(&mut self, full: ConnectionId) -> bool {
        let connection = &self.connections[full];
        let (origin, streams) = (connection.origin, connection.client().capacity());
        let waiting = self.pools.count_waiting(origin);
        if waiting == 0 || connection.keeper != Keeper::Everybody || !self.grows(origin) {
            return false;
        }
        if let Some(shared) = self.pools.shared(origin, &self.origins) {
            shared.fills_with(streams);
        }
        self.may_dial(origin, waiting)
    }

    /// Makes a connection for a call, which waits for it.
    pub(crate) fn dial<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        keeper: Keeper,
        origin: OriginId,
        id: CallId,
        now: Tick,
    ) {
        // It may fail at once, and is counted before.
        if let Some(shared) = self.shared_by(keeper, origin) {
            shared.dials();
        }
        let token = self.add(origin, keeper);
        self.carry(load, token, id, now);
        if let Some(shared) = self.shared_by(keeper, origin) {
            shared.dialled(token);
        }
    }

    /// The peer takes no more calls on a connection. Returns whether another may be made at once for a call that waits for
    /// it.
    pub(crate) fn is_replaced(&mut self, leaving: ConnectionId) -> bool {
        let Connection { keeper, origin, .. } = self.connections[leaving];
        match keeper {
            Keeper::Everybody => self.shared_by(keeper, origin).is_some_and(Shared::leaves),
            Keeper::One(_) => self.has_place(keeper, origin) && !is_broken(Rule::UsersGetAnother),
            Keeper::Held { .. } | Keeper::Nobody => false,
        }
    }

    /// Frees the place of a connection that is gone, after its peer took no more calls on it or otherwise.
    pub(crate) fn vacate_after(&mut self, token: ConnectionId, has_left: bool) {
        let Connection { keeper, origin, .. } = self.connections[token];
        self.vacate(token);
        if let Some(shared) = self.shared_by(keeper, origin) {
            shared.is_gone(has_left);
        }
    }

    fn shared_by(&mut self, keeper: Keeper, origin: OriginId) -> Option<&mut Shared> {
        if keeper == Keeper::Everybody { self.pools.shared(origin, &self.origins) } else { None }
    }
}

/// What waits for connections to one origin, and those that all share.
#[derive(Debug, Default)]
struct Pool {
    waiting: VecDeque<CallId>,
    shared: Option<Shared>,
}

/// The pools of a worker, by origin.
#[derive(Debug, Default)]
pub(crate) struct Pools(Vec<Pool>);

impl Pools {
    fn at(&mut self, origin: OriginId) -> Option<&mut Pool> {
        if self.0.len() <= origin.place() {
            self.0.resize_with(origin.place() + 1, Pool::default);
        }
        self.0.get_mut(origin.place())
    }

    /// The connections to an origin that all share, if they do.
    fn shared(&mut self, origin: OriginId, origins: &Origins) -> Option<&mut Shared> {
        let (most, grows) = origins.shared(origin)?;
        Some(self.at(origin)?.shared.get_or_insert_with(|| Shared::new(most, grows)))
    }

    /// The call waits for the way to its origin to be found, or for a connection that all share, behind the others.
    pub(crate) fn wait(&mut self, origin: OriginId, id: CallId) {
        if let Some(pool) = self.at(origin) {
            pool.waiting.push_back(id);
        }
    }

    /// The call, which had its turn, waits again.
    pub(crate) fn wait_on(&mut self, origin: OriginId, id: CallId) {
        if let Some(pool) = self.at(origin) {
            pool.waiting.push_front(id);
        }
    }

    /// How many calls wait for an origin. Some may have ended.
    pub(crate) fn count_waiting(&self, origin: OriginId) -> usize {
        self.0.get(origin.place()).map_or(0, |pool| pool.waiting.len())
    }

    /// The call that has waited longest for an origin. It may have ended.
    pub(crate) fn next_waiting(&mut self, origin: OriginId) -> Option<CallId> {
        self.0.get_mut(origin.place())?.waiting.pop_front()
    }

    /// All calls that wait for an origin, which wait no more.
    pub(crate) fn take_waiting(&mut self, origin: OriginId) -> VecDeque<CallId> {
        self.0.get_mut(origin.place()).map(|pool| std::mem::take(&mut pool.waiting)).unwrap_or_default()
    }

    /// No call waits any more.
    pub(crate) fn forget_waiting(&mut self) {
        self.0.iter_mut().for_each(|pool| pool.waiting.clear());
    }

    /// All calls that wait.
    #[cfg(feature = "simulation")]
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &CallId> {
        self.0.iter().flat_map(|pool| &pool.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_are_kept_up_leave_and_are_replaced_at_once() {
        let mut kept_up = KeptUp { most: 3, there: 3, draining: 0 };
        let mut replaced = 0;
        for _ in 0..6 {
            (kept_up.there, kept_up.draining) = (kept_up.there - 1, kept_up.draining + 1);
            while kept_up.has_place() {
                kept_up.there += 1;
                replaced += 1;
            }
            assert!(kept_up.there + kept_up.draining <= 6, "{kept_up:?}");
        }
        assert_eq!((replaced, kept_up), (3, KeptUp { most: 3, there: 0, draining: 6 }));
        kept_up.draining -= 1;
        assert!(kept_up.has_place(), "one that has left makes room");
    }
}
