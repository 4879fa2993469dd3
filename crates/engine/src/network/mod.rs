//! A worker's network: its connections, the calls on them, and where they go.
//!
//! Read the life of a connection in `connection` and the life of a call in `call`, each from top to bottom. Beside them are
//! bytes out (`sending`) and in (`receiving`). [`Network`] is the same for every source of calls:
//! it is lent to a flood, to virtual users or to a replay, and knows them only as a [`Workload`].

mod answer_sampler;
pub(crate) mod attempts;
#[cfg(feature = "simulation")]
mod audit;
mod call;
mod calls;
mod census;
mod connection;
mod deadlines;
mod downtime;
mod examples;
mod failures;
mod foresight;
pub(crate) mod growth;
mod kinds;
mod metering;
pub(crate) mod origins;
mod peer_limits;
pub(crate) mod pool;
mod receiving;
mod recorder;
mod sampler;
mod samples;
mod sending;
mod signs;
mod stops;
mod workload;

use std::io;

use brunt_plan::plan::{ArrivalTimes, Plan};
use brunt_record::outcome::OkStatus;
use brunt_record::time::Tick;

use brunt_protocol::meter::Meter;

use self::attempts::Attempts;
use self::calls::Calls;
pub(crate) use self::calls::{Call, CallId, Counted, End, Place};
use self::census::Census;
pub(crate) use self::connection::{Connections, Keeper, Pause, Peer, PoolMembership, State};
use self::deadlines::Deadlines;
use self::origins::Origins;
use self::pool::Pools;
use self::receiving::Inbound;
pub(crate) use self::recorder::{Core, CoreAnswer, Durations, Recorder};
pub(crate) use self::samples::RowContext;
use self::signs::Signs;
pub(crate) use self::signs::Unanswered;
use self::stops::{SHORTEST_NS, Stops};
pub(crate) use self::workload::{AnswerOf, FailedAttempt, Gone, Judgement, LoadEnd, MessageOf, Nature, Workload};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver, MOST_EVENTS, Ready};

/// How calls are made on connections, from the plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimits {
    /// How long a call may take, in nanoseconds.
    pub(crate) timeout_ns: u64,
    /// How long connecting may take, in nanoseconds.
    pub(crate) connect_timeout_ns: u64,
    /// Whether each call has a connection of its own.
    pub(crate) reconnect: bool,
    /// Whether calls are due at times of their own.
    pub(crate) is_open: bool,
    /// The source of answers' arrival times.
    pub(crate) arrival_times: ArrivalTimes,
}

impl CallLimits {
    /// The terms of `plan`.
    pub(crate) fn from_plan(plan: &Plan) -> Self {
        Self {
            timeout_ns: plan.timeout_ns,
            connect_timeout_ns: plan.connect_timeout_ns,
            reconnect: plan.reconnect,
            is_open: plan.load.is_open(),
            arrival_times: plan.transport.arrival_times,
        }
    }
}

/// A worker's network. `T` is the load's key for a call.
pub(crate) struct Network<D, T> {
    driver: D,
    connections: Connections,
    origins: Origins,
    pools: Pools,
    recorder: Recorder,
    /// Connections that may have room again since the load last had its turn, with the times: a call on them ended or timed out, their
    /// socket took bytes that had waited, or something was read.
    roomy: Vec<(ConnectionId, Tick)>,
    census: Census,
    signs: Signs,
    /// How often connections are tried again.
    attempts: Attempts,
    terms: CallLimits,
    calls: Calls<T>,
    /// From when on time without a server is recorded; [`Tick::NEVER`] while it is not.
    watched_since: Tick,
    /// The time for which it was recorded, once the load has ended: calls that were under way then may time out later.
    watched: Option<(Tick, Tick)>,
    /// When this worker itself was late.
    stops: Stops,
    /// Deadlines of connections.
    deadlines: Deadlines,
    inbound: Inbound,
    /// What the protocol measures by itself.
    meter: Option<Box<dyn Meter>>,
    /// Bytes of the connection being handled, on their way to its socket: empty before another has its turn. What is cleared was
    /// never sent.
    outgoing: Vec<u8>,
}

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// A network without connections, for calls of which those with an `ok` status are a success.
    pub(crate) fn new(mut driver: D, mut origins: Origins, terms: CallLimits, ok: OkStatus) -> Self {
        origins.keep_own_sessions();
        let signs = Signs::none(driver.now(), terms.timeout_ns);
        let inbound = Inbound::reading(driver.read_buffer_bytes());
        Self {
            driver,
            connections: Connections::default(),
            origins,
            pools: Pools::default(),
            recorder: Recorder::new(terms, ok),
            roomy: Vec::new(),
            census: Census::default(),
            signs,
            attempts: Attempts::new(1),
            terms,
            calls: Calls::default(),
            watched_since: Tick::NEVER,
            watched: None,
            stops: Stops::default(),
            deadlines: Deadlines::default(),
            inbound,
            meter: None,
            outgoing: Vec::new(),
        }
    }

    /// Its worker's time.
    #[inline]
    pub(crate) fn now(&mut self) -> Tick {
        self.driver.now()
    }

    /// Whether time passes by itself.
    pub(crate) fn is_real_time(&self) -> bool {
        self.driver.is_real_time()
    }

    /// The sockets and the time, for the worker that waits for them.
    #[inline]
    pub(crate) fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Its connections.
    #[inline]
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The same, for what a load notes on them.
    #[inline]
    pub(crate) fn connections_mut(&mut self) -> &mut Connections {
        &mut self.connections
    }

    /// Where calls go.
    #[inline]
    pub(crate) fn origins(&self) -> &Origins {
        &self.origins
    }

    /// The same, to add one.
    #[inline]
    pub(crate) fn origins_mut(&mut self) -> &mut Origins {
        &mut self.origins
    }

    /// The calls of users that wait for connections which all share.
    #[inline]
    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// The same, to add and take calls.
    #[inline]
    pub(crate) fn pools_mut(&mut self) -> &mut Pools {
        &mut self.pools
    }

    /// What was recorded.
    #[inline]
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The same, to record what only a load or a worker knows.
    #[inline]
    pub(crate) fn recorder_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// How many connections are in which state.
    #[inline]
    pub(crate) fn census(&self) -> Census {
        self.census
    }

    /// What was seen of the target.
    #[inline]
    pub(crate) fn signs(&self) -> &Signs {
        &self.signs
    }

    /// A call may take that long, in nanoseconds.
    pub(crate) fn may_take(&mut self, timeout_ns: u64) {
        self.signs.may_take(timeout_ns);
    }

    /// So many workers, over all machines, share the attempts to connect.
    pub(crate) fn share_attempts(&mut self, workers: u64) {
        self.attempts = Attempts::new(workers);
    }

    /// When a place or a user tries again whose attempt failed at `now`. `place` makes the time differ from one to another.
    pub(crate) fn retry_at(&mut self, place: usize, now: Tick) -> Tick {
        self.attempts.retry_at(place, now)
    }

    /// Connections that may have room again since they were last taken, with the times.
    #[inline]
    pub(crate) fn take_roomy(&mut self) -> Vec<(ConnectionId, Tick)> {
        std::mem::take(&mut self.roomy)
    }

    /// Gives the memory of an empty list back. What is added meanwhile is taken next time.
    #[inline]
    pub(crate) fn keep_roomy(&mut self, mut emptied: Vec<(ConnectionId, Tick)>) {
        emptied.append(&mut self.roomy);
        self.roomy = emptied;
    }

    /// How late this worker is at `now`, in nanoseconds, compared with the time until which it last waited. Events that
    /// it notices now may be that old.
    #[inline]
    pub(crate) fn behind(&self, now: Tick) -> u64 {
        self.stops.behind(now)
    }

    /// The worker waits until `until`, if nothing comes.
    #[inline]
    pub(crate) fn waits(&mut self, until: Tick) {
        self.stops.waits(until);
    }

    /// How late the worker goes on at `now`, in nanoseconds, if that is worth a look.
    #[inline]
    pub(crate) fn late_by(&self, now: Tick) -> Option<u64> {
        Some(self.behind(now)).filter(|late| *late >= SHORTEST_NS)
    }

    /// The worker stood still for this long, in nanoseconds, since it last began to wait.
    pub(crate) fn stood_still(&mut self, ns: u64) {
        if !is_broken(Rule::OwnStopsAreNoWait) {
            self.stops.stood_still(ns);
        }
    }

    /// Records the events that protocols have counted on connections since the last time, and how long connections were
    /// held back up to `now`.
    pub(crate) fn note_events(&mut self, now: Tick) {
        let snapshot = &mut self.recorder.snapshot;
        let events = &mut snapshot.events;
        for connection in self.connections.iter_mut() {
            connection.link.holds.count(now, &mut snapshot.numbers);
            connection.link.client.take_events(&mut |name, count| events.add(name, count));
        }
        if self.watched_since.is_set() {
            self.count_absences(now);
        }
    }

    /// Bytes can be read or written, or connecting has ended.
    pub(crate) fn handle<W: Workload<D, Tag = T>>(&mut self, load: &mut W, event: Ready) {
        if event.token.place() >= self.connections.len() {
            return;
        }
        let token = event.token;
        if let State::Connecting(attempt) = self.connections[token].state {
            self.socket_connected(load, token, attempt);
            if is_broken(Rule::WhatComesWithAConnectionIsRead) {
                return;
            }
        }
        // What came together with the connection is not announced again. What has come is read before anything is
        // sent, since sending may find out that the connection is gone.
        let generation = self.connections[token].generation;
        if event.readable && self.connections[token].is_read() {
            self.readable(load, token, event.ended);
        }
        let connection = &self.connections[token];
        if event.writable && !connection.is_sent() && connection.is_read() && connection.generation == generation {
            self.writable(load, token);
        }
    }

    /// The number of the connection that a call is on or waits for, among those that the worker began to make, from 1; 0 without
    /// one.
    pub(crate) fn connection_number(&self, call: &Call<T>) -> u64 {
        call.token().map_or(0, |token| self.connections[token].number)
    }

    /// Whether something can be done without waiting for the operating system.
    pub(crate) fn has_work(&self) -> bool {
        !self.inbound.unread.is_empty() || !self.roomy.is_empty()
    }

    /// The worker woke to read.
    #[inline]
    pub(crate) fn woke(&mut self) {
        if self.recorder.is_sampling() {
            let now = self.driver.now();
            self.recorder.woke(now);
        }
    }

    /// Goes on reading connections that may have more than one turn's share.
    pub(crate) fn read_on<W: Workload<D, Tag = T>>(&mut self, load: &mut W) {
        for _ in 0..self.inbound.unread.len() {
            if let Some(token) = self.inbound.unread.pop_front()
                && self.connections[token].is_read()
            {
                self.readable(load, token, false);
            }
        }
    }

    /// Reads everything that had come by `now`, and then ends whatever has waited too long: an answer that lay with the
    /// operating system while this worker stood still has come in time, and time in which it stood still is no wait for
    /// the peer.
    ///
    /// # Errors
    /// When the operating system cannot wait for events.
    pub(crate) fn expire<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        now: Tick,
        events: &mut Vec<Ready>,
    ) -> io::Result<()> {
        self.inbound.settles_at = now;
        let settled = if is_broken(Rule::ReadsBeforeExpiring) { Ok(()) } else { self.settle(load, now, events) };
        self.inbound.settles_at = Tick::NEVER;
        settled?;
        while let Some(id) = self.calls.overdue(now) {
            match self.time_ends(id) {
                Some(ends) if ends > now => self.calls.watch(id, ends),
                _ => self.call_late(load, id, now),
            }
        }
        while let Some(token) = self.deadlines.due(now) {
            let token = ConnectionId::at(token as usize);
            if self.connections[token].link.timer <= now {
                self.channel_timer(load, token, now);
            }
            if self.connections[token].deadline() <= now {
                let ends = self.patience_ends(token);
                if ends > now {
                    self.deadlines.arm(token.place() as u32, ends);
                    continue;
                }
                self.time_has_come(load, token, now);
            }
            // What its channel still wants at once is next.
            let timer = self.connections[token].link.timer;
            let due = self.connections[token].deadline();
            let due = if timer.is_set() { due.min(timer.max(now + 1)) } else { due };
            if due > now && due.is_set() {
                self.deadlines.arm(token.place() as u32, due);
            }
        }
        Ok(())
    }

    /// Reads everything that had come by `now`.
    ///
    /// # Errors
    /// When the operating system cannot wait for events.
    pub(crate) fn settle<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        now: Tick,
        events: &mut Vec<Ready>,
    ) -> io::Result<()> {
        // One wait announces so many connections at most.
        for _ in 0..=self.connections.len() / MOST_EVENTS {
            self.driver.wait(now, events)?;
            self.woke();
            for &event in &*events {
                self.handle(load, event);
            }
            if events.len() < MOST_EVENTS {
                break;
            }
        }
        self.read_on(load);
        Ok(())
    }

    /// The next time at which something has to be done.
    pub(crate) fn next_deadline(&self) -> Tick {
        self.calls.next_deadline().min(self.deadlines.next())
    }
}
