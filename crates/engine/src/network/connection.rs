//! The life of a connection, from top to bottom: its place, how it is made, what it waits for, how it leaves, and how it
//! is lost, with what becomes of the calls on it.
//!
//! ```text
//!          ┌──────────────────────────────────── closed or lost ◀──────────────────────┐
//!          ▼                                                              ▲            │
//! Vacant  Idle ─▶ Connecting ─▶ Securing (TLS) ─▶ Opening (protocol) ─▶ Open ─▶ Leaving ┘
//!          ▲          └─────────────┴──── failed ────┴─▶ Backoff ─┐
//!          └──────────────────────────────────────────────────────┘
//! ```
//!
//! Through a proxy, Tunnelling comes after Connecting: the proxy connects to the target.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::ops::{Index, IndexMut};

use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::call::{MOST_TURNED_AWAY, TURNED_AWAY};
use super::calls::CallId;
use super::calls::{Call, End, Place, Resend};
use super::failures::{GIVEN_UP, WriteFailure, reason_of};
use super::holding::Holds;
use super::looks::LookRequest;
use super::origins::{NoClient, OriginId};
use super::{FailedAttempt, Gone, Network, Workload};
use crate::channel::{Channel, Socket, Unsent};
use crate::rules::{Rule, is_broken};
use crate::slots::{Recycle, Slots};
use crate::transport::route::Route;
use crate::transport::{Address, ConnectionId, Driver};
use brunt_protocol::{Client, KeptAnswer, Opening};
use brunt_script::KeepAlive;

/// How long one of several addresses may be silent before the next is tried, in nanoseconds (RFC 8305, section 8).
const NEXT_ADDRESS_NS: u64 = 250_000_000;
/// How long a peer that announced an error may take to close the connection, in nanoseconds.
const FAREWELL_NS: u64 = 100_000_000;
/// A call that was sent on an idle connection may have crossed the connection's end: if the end comes within this time,
/// in nanoseconds, or within twice the time that connecting took.
const MET_ITS_END_NS: u64 = 10_000_000;
/// The reason of a connection whose peer reads nothing.
const UNREAD: &str = "the peer has read nothing within the timeout";
/// The reason of calls whose connection ended with an earlier answer.
const LAST_ANSWER: &str = "the connection closed after an earlier answer";

/// The state of a place for a connection, with what only this state knows.
///
/// All of it is times, so that a state is compared and copied like a number. What every state with a socket has is the
/// place's [`Link`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The place is free for another connection.
    Vacant,
    /// No socket.
    Idle {
        /// The end of the pause before its next call; [`Tick::NEVER`] for none.
        paused_until: Tick,
    },
    /// No socket, since the last attempt failed.
    Backoff {
        /// When the next attempt may begin.
        until: Tick,
    },
    /// The socket is being connected.
    Connecting(Attempt),
    /// A proxy was asked for a tunnel to the target.
    Tunnelling(Step),
    /// The TLS handshake is under way.
    Securing(Step),
    /// The protocol's own opening exchange is under way.
    Opening(Step),
    /// Calls can be sent.
    Open {
        /// The end of the pause before its next call; [`Tick::NEVER`] for none.
        paused_until: Tick,
    },
    /// The peer takes no more calls; those in flight may still be answered.
    Leaving {
        /// When a peer that has announced an error is hung up on; [`Tick::NEVER`] for any other.
        until: Tick,
    },
}

impl State {
    /// No socket, and no pause.
    pub(crate) const IDLE: Self = Self::Idle { paused_until: Tick::NEVER };
    /// Calls can be sent at once.
    pub(super) const OPEN: Self = Self::Open { paused_until: Tick::NEVER };

    /// When it ends by itself; [`Tick::NEVER`] if it does not.
    #[inline]
    pub(super) const fn ends(self) -> Tick {
        match self {
            Self::Vacant => Tick::NEVER,
            Self::Idle { paused_until } | Self::Open { paused_until } => paused_until,
            Self::Backoff { until } | Self::Leaving { until } => until,
            Self::Connecting(attempt) => attempt.address_until,
            Self::Tunnelling(step) | Self::Securing(step) | Self::Opening(step) => step.until,
        }
    }
}

/// An attempt to connect a socket, to one address after the other where the target has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// When it is given up, and with it TLS and the opening exchange.
    pub(super) until: Tick,
    /// When the address under way has been silent for too long.
    pub(super) address_until: Tick,
    /// The number of addresses tried before.
    pub(super) tried: usize,
}

/// A step between the socket's connection and the first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// When it began.
    pub(super) since: Tick,
    /// When the whole attempt is given up.
    pub(super) until: Tick,
}

/// The pause before a connection's next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// None was asked for yet.
    None,
    /// It is not over, or the connection is not ready.
    UnderWay,
    /// It was asked for, and is over.
    Over,
}

/// The list of its load that a connection is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// In no list.
    Unlisted,
    /// Of connections that can take a call.
    Free,
    /// Places that are tried only once a call needs them.
    Dormant,
}

/// Whose calls a connection carries. Its load numbers its users, sessions or slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// Nobody's any more: what is on it ends, and it with that.
    Nobody,
    /// Everybody's.
    Everybody,
    /// Those of one user, session or slot.
    One(u32),
    /// Those of one user that name the connection, until the user closes it.
    Held(u32),
}

/// Whether a place's connections have been of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// The connection was answered since it was made.
    Answered,
    /// Neither it nor this many attempts before it were answered.
    Unanswered {
        /// Attempts in a row that brought no answer.
        attempts: u32,
    },
}

impl Service {
    /// A place without a history.
    pub(crate) const NONE: Self = Self::Unanswered { attempts: 0 };

    /// The connection has ended, or could not be made.
    pub(super) fn ended(self) -> Self {
        match self {
            Self::Answered => Self::NONE,
            Self::Unanswered { attempts } => Self::Unanswered { attempts: attempts.saturating_add(1) },
        }
    }
}

/// What a connection has from its first attempt to its end. It is made and dropped as a whole.
pub(crate) struct Link {
    /// The protocol's state; [`NoClient`] without a socket.
    pub(super) client: Box<dyn Client>,
    pub(super) channel: Channel,
    /// Bytes received, after decryption.
    pub(super) bytes_in: u64,
    /// How many of them calls that were written down have told.
    pub(super) told_in: u64,
    /// Bytes given to it, sent or not, before encryption.
    pub(super) bytes_out: u64,
    /// At most how many of them the socket has taken: over TLS all that were given to it, once it takes any.
    pub(super) bytes_taken: u64,
    /// When the connection ends unless its peer takes one of the waiting bytes; [`Tick::NEVER`] while none wait.
    pub(super) stalled_until: Tick,
    /// Why the socket takes nothing any more, once that is known. The connection ends when everything is read that had
    /// come before.
    pub(super) write_failure: Option<WriteFailure>,
    /// Upper bound on the waiting bytes that answer the peer's own messages.
    pub(super) unsent_aside: usize,
    /// The most calls in flight that the plan asks for.
    pub(super) most: usize,
    /// The calls that its peer's limits hold back.
    pub(super) holds: Holds,
    /// Whether its client was asked to look at an answer.
    pub(super) look: LookRequest,
    /// When its first address was tried.
    pub(super) began: Tick,
    /// How long the socket took to connect, in nanoseconds.
    pub(super) connect_ns: u64,
}

impl Link {
    /// An attempt that begins at `began`, for a connection that shall carry `most` calls at once.
    pub(super) fn new(client: Box<dyn Client>, most: usize, began: Tick) -> Self {
        Self {
            client,
            channel: Channel::Plain,
            bytes_in: 0,
            told_in: 0,
            bytes_out: 0,
            bytes_taken: 0,
            stalled_until: Tick::NEVER,
            write_failure: None,
            unsent_aside: 0,
            most,
            holds: Holds::default(),
            look: LookRequest::None,
            began,
            connect_ns: 0,
        }
    }

    /// No socket.
    pub(super) fn none() -> Self {
        Self::new(Box::new(NoClient), 1, Tick::EPOCH)
    }
}

/// The connections that a place had, as far as the next one depends on them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    /// Whether they were of use.
    pub(super) service: Service,
    /// How much earlier the place could have carried a call had this program been in time, in nanoseconds.
    pub(super) held_up: u64,
    /// The start of the time without a server that is not recorded yet; [`Tick::NEVER`] if the place has one.
    pub(super) without_since: Tick,
}

impl History {
    /// A place that had none.
    pub(super) const NONE: Self = Self { service: Service::NONE, held_up: 0, without_since: Tick::NEVER };

    /// Whether the last attempt to connect, or the last connection, brought no answer.
    fn came_to_nothing(self) -> bool {
        matches!(self.service, Service::Unanswered { attempts: 1.. })
    }
}

/// A place for a connection of a worker, the connection in it, and the calls on that.
pub(crate) struct Connection {
    /// Its destination, by the worker's number for it.
    pub(super) origin: OriginId,
    pub(super) keeper: Keeper,
    pub(super) state: State,
    pub(super) link: Link,
    pub(super) history: History,
    /// Calls in flight, oldest first.
    pub(super) calls: VecDeque<CallId>,
    /// Calls that wait until the connection is ready.
    pub(super) queue: VecDeque<CallId>,
    /// Bytes that the socket did not take yet.
    pub(super) unsent: Unsent,
    /// The addresses that may still take the connection, the one under way first, if the target has several.
    pub(super) addresses: VecDeque<Address>,
    /// Grows whenever the connection is closed: an event for an earlier generation is stale.
    pub(super) generation: u32,
    /// The number of its connection among those that the worker began to make, from 1.
    pub(super) number: u64,
    /// Since when it could carry a call, or another one.
    pub(super) ready_since: Tick,
    /// The list of its load that it is in.
    pub(super) listing: Listing,
    /// Whether each call has a connection of its own.
    pub(super) carries_one: bool,
}

impl Connection {
    /// Takes the call at this position out of those in flight. Most often it is the oldest, so that no others move.
    #[inline]
    pub(super) fn take_call(&mut self, position: usize) -> Option<CallId> {
        if position == 0 { self.calls.pop_front() } else { self.calls.remove(position) }
    }

    pub(super) fn new(origin: OriginId, keeper: Keeper) -> Self {
        Self {
            origin,
            keeper,
            state: State::IDLE,
            link: Link::none(),
            history: History::NONE,
            calls: VecDeque::new(),
            queue: VecDeque::new(),
            unsent: Unsent::default(),
            addresses: VecDeque::new(),
            generation: 0,
            number: 0,
            ready_since: Tick::EPOCH,
            listing: Listing::Unlisted,
            carries_one: false,
        }
    }

    /// Its destination.
    #[inline]
    pub(crate) fn origin(&self) -> OriginId {
        self.origin
    }

    /// Whose calls it carries.
    #[inline]
    pub(crate) fn keeper(&self) -> Keeper {
        self.keeper
    }

    /// Whoever it was kept for needs it no more: it ends by itself. Returns who that was.
    pub(crate) fn release(&mut self) -> Keeper {
        std::mem::replace(&mut self.keeper, Keeper::Nobody)
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Its protocol's client.
    #[inline]
    pub(crate) fn client(&self) -> &dyn Client {
        &*self.link.client
    }

    /// Swaps the answer that its client has kept for `kept`.
    #[inline]
    pub(crate) fn hand_over(&mut self, kept: &mut KeptAnswer) {
        self.link.client.hand_over(kept);
    }

    /// Bytes received, after decryption.
    #[inline]
    pub(crate) fn bytes_in(&self) -> u64 {
        self.link.bytes_in
    }

    /// Whether the last attempt to connect, or the last connection, brought no answer.
    pub(crate) fn came_to_nothing(&self) -> bool {
        self.history.came_to_nothing()
    }

    /// Since when it could carry a call, or another one.
    #[inline]
    pub(crate) fn ready_since(&self) -> Tick {
        self.ready_since
    }

    /// It could carry a call at this time already.
    pub(crate) fn was_ready_at(&mut self, at: Tick) {
        self.ready_since = self.ready_since.min(at);
    }

    /// How much earlier it could have carried a call had this program been in time, in nanoseconds.
    #[inline]
    pub(crate) fn held_up(&self) -> u64 {
        self.history.held_up
    }

    /// It could have carried a call that much earlier, in nanoseconds.
    #[inline]
    pub(crate) fn was_held_up(&mut self, ns: u64) {
        self.history.held_up = ns;
    }

    /// The list of its load that it is in.
    #[inline]
    pub(crate) fn listing(&self) -> Listing {
        self.listing
    }

    /// Its load has it in this list.
    #[inline]
    pub(crate) fn enlist(&mut self, listing: Listing) {
        self.listing = listing;
    }

    /// It is in its load's list of those that can carry a call, since `since`.
    #[inline]
    pub(crate) fn is_free_since(&mut self, since: Tick) {
        (self.listing, self.ready_since) = (Listing::Free, since);
    }

    /// Its pause before the next call, if it is ready for one; ends the pause once that is over.
    pub(crate) fn pause_at(&mut self, now: Tick) -> Pause {
        match &mut self.state {
            State::Idle { paused_until } | State::Open { paused_until } if paused_until.is_set() => {
                if *paused_until > now {
                    return Pause::UnderWay;
                }
                *paused_until = Tick::NEVER;
                Pause::Over
            }
            State::Idle { .. } | State::Open { .. } => Pause::None,
            _ => Pause::UnderWay,
        }
    }

    /// Calls on it, in flight or queued.
    #[inline]
    pub(crate) fn carried(&self) -> usize {
        self.calls.len() + self.queue.len()
    }

    /// How many more calls it can carry, of `most` in flight at once.
    #[inline]
    pub(crate) fn room(&self, most: usize) -> usize {
        self.streams_left(most).saturating_sub(self.queue.len())
    }

    /// How many more calls can be sent on it, of `most` in flight at once; queued calls are counted.
    #[inline]
    pub(crate) fn streams_left(&self, most: usize) -> usize {
        // Nothing is added to bytes that wait for the socket: a composed header block cannot be taken back.
        let is_stalled = self.is_stalled() && !is_broken(Rule::NothingBehindWaitingBytes);
        if !self.is_open() || is_stalled {
            return 0;
        }
        let limit = if is_broken(Rule::PeersLimit) { most } else { self.link.client.capacity() };
        most.min(limit).saturating_sub(self.calls.len())
    }

    /// Whether bytes wait for the socket, and its client was told so.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        self.link.stalled_until.is_set()
    }

    /// When it has to be looked at, at the latest.
    #[inline]
    pub(super) fn due(&self) -> Tick {
        self.state.ends().min(self.link.stalled_until)
    }

    /// Whether bytes wait that the socket did not take.
    #[cfg(feature = "simulation")]
    pub(super) fn has_unsent(&self) -> bool {
        self.is_there() && !self.is_sent()
    }

    /// Whether calls can be sent on it.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Whether its place has no socket, and waits for nothing but a pause.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle { .. })
    }

    /// Whether it is being made.
    pub(crate) fn is_being_made(&self) -> bool {
        matches!(self.state, State::Connecting(_) | State::Tunnelling(_) | State::Securing(_) | State::Opening(_))
    }

    /// Whether the peer takes no more calls on it.
    pub(crate) fn is_draining(&self) -> bool {
        matches!(self.state, State::Leaving { .. })
    }

    /// Whether it is established: calls are on it, or can be.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.state, State::Open { .. } | State::Leaving { .. })
    }

    /// Whether its peer takes no calls although none is on it, and has answered none before.
    pub(super) fn is_barren(&self) -> bool {
        self.is_open()
            && self.history.service != Service::Answered
            && self.calls.is_empty()
            && self.link.client.capacity() == 0
    }

    /// Whether bytes are read from its socket.
    pub(super) fn is_read(&self) -> bool {
        !matches!(self.state, State::Vacant | State::Idle { .. } | State::Backoff { .. } | State::Connecting(_))
    }

    /// Whether the socket has taken everything that was to be sent.
    pub(super) fn is_sent(&self) -> bool {
        self.unsent.is_empty() && !self.link.channel.has_unsent()
    }

    /// Whether everything up to this call's last byte was sent.
    #[inline]
    pub(super) fn has_sent<T>(&self, call: &Call<T>) -> bool {
        let sent = self.link.bytes_out.saturating_sub(self.unsent.len() as u64);
        call.last_byte < sent || call.last_byte == sent && !self.link.channel.has_unsent()
    }

    /// Whether its load has it in no list.
    #[inline]
    pub(crate) fn is_unlisted(&self) -> bool {
        self.listing == Listing::Unlisted
    }

    /// Takes it off the list; false if it was in none.
    #[inline]
    pub(crate) fn unlist(&mut self) -> bool {
        std::mem::replace(&mut self.listing, Listing::Unlisted) != Listing::Unlisted
    }

    /// The peer has sent something valid: the way to it works.
    #[inline]
    pub(super) fn has_served(&mut self) {
        self.history.service = Service::Answered;
    }
}

impl Recycle for Connection {
    /// The place is free for another connection.
    fn recycle(&mut self) {
        (self.state, self.history, self.listing) = (State::Vacant, History::NONE, Listing::Unlisted);
        self.keeper = Keeper::Nobody;
    }
}

/// A worker's connections, by its own numbers for them.
#[derive(Default)]
pub(crate) struct Connections {
    slots: Slots<Connection>,
    /// How many it began to make so far: the next one's number.
    begun: u64,
    /// The connection that was made last.
    newest: Option<ConnectionId>,
}

impl Connections {
    /// A place for a connection to `origin`.
    pub(super) fn take(&mut self, origin: OriginId, keeper: Keeper) -> ConnectionId {
        let token = ConnectionId::at(self.slots.take(|| Connection::new(origin, keeper)) as usize);
        let connection = &mut self[token];
        (connection.origin, connection.keeper, connection.state) = (origin, keeper, State::IDLE);
        token
    }

    /// A connection begins to be made: gives it the next number.
    fn number(&mut self, token: ConnectionId) {
        self.begun += 1;
        let number = self.begun;
        self[token].number = number;
    }

    /// Frees the place of a connection that is gone. False if it was free already.
    pub(super) fn free(&mut self, token: ConnectionId) -> bool {
        self.slots.free(token.place() as u32)
    }

    /// The numbers of all places, vacant ones included.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnectionId> + use<> {
        (0..self.slots.len()).map(ConnectionId::at)
    }

    /// The connection at this place, if it is taken.
    pub(super) fn taken_at(&self, token: ConnectionId) -> Option<&Connection> {
        self.slots.get(token.place() as u32)
    }

    /// Those whose places are taken.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().map(|(_, connection)| connection)
    }

    /// The same, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut()
    }

    /// How many places there are, vacant ones included.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many places are not vacant: connections, made or to be made.
    #[inline]
    pub(super) fn taken(&self) -> usize {
        self.slots.taken()
    }

    /// How many can carry calls.
    pub(crate) fn open(&self) -> u64 {
        self.iter().filter(|connection| connection.is_there()).count() as u64
    }

    /// Calls in flight on all of them.
    pub(crate) fn in_flight(&self) -> u64 {
        self.iter().map(|connection| connection.calls.len() as u64).sum()
    }
}

/// Numbers of connections are made by the network alone and never exceed their number.
impl Index<ConnectionId> for Connections {
    type Output = Connection;

    #[inline]
    fn index(&self, token: ConnectionId) -> &Connection {
        self.slots.value(token.place())
    }
}

impl IndexMut<ConnectionId> for Connections {
    #[inline]
    fn index_mut(&mut self, token: ConnectionId) -> &mut Connection {
        self.slots.value_mut(token.place())
    }
}

/// Places for connections.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// A place for a connection to `origin`, for whose calls it is.
    pub(crate) fn add(&mut self, origin: OriginId, keeper: Keeper) -> ConnectionId {
        let token = self.connections.take(origin, keeper);
        let is_held = matches!(keeper, Keeper::Held(_));
        self.connections[token].carries_one =
            self.terms.reconnect || !is_held && self.origins.keep_alive(origin) == KeepAlive::Call;
        token
    }

    /// Adds a connection in place of one that is gone, and that was of use or not.
    pub(crate) fn add_after(&mut self, origin: OriginId, came_to_nothing: bool) -> ConnectionId {
        let token = self.add(origin, Keeper::Everybody);
        self.connections[token].history.service = Service::Unanswered { attempts: u32::from(came_to_nothing) };
        token
    }

    /// Places that are not vacant: connections, made or to be made.
    #[inline]
    pub(crate) fn places(&self) -> usize {
        self.connections.taken()
    }

    /// Frees the place of a connection that is gone.
    pub(crate) fn vacate(&mut self, token: ConnectionId) {
        debug_assert!(self.connections[token].carried() == 0, "no call is left on a connection that is gone");
        let is_freed = self.connections.free(token);
        debug_assert!(is_freed, "a place is given back once");
    }

    /// Whether the newest connection takes no calls and has answered none: another would be of no more use.
    pub(crate) fn newest_is_barren(&self) -> bool {
        self.connections.newest.and_then(|token| self.connections.taken_at(token)).is_some_and(Connection::is_barren)
    }

    /// The connection pauses before its next call, which its load is asked for at `until`.
    pub(crate) fn pause(&mut self, token: ConnectionId, until: Tick) {
        match &mut self.connections[token].state {
            State::Idle { paused_until } | State::Open { paused_until } => *paused_until = until,
            _ => return,
        }
        self.deadlines.arm(token.place() as u32, until);
    }

    /// Puts a connection into a state that ends by itself.
    pub(super) fn enter(&mut self, token: ConnectionId, state: State) {
        self.connections[token].state = state;
        let ends = state.ends();
        if ends.is_set() {
            self.deadlines.arm(token.place() as u32, ends);
        }
    }
}

/// Making a connection.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Begins to connect.
    pub(crate) fn connect<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let origin = self.connections[token].origin;
        if self.origins.renew_addresses(origin, now)
            && let Some(route) = self.origins.route(origin)
        {
            for address in &route.addresses {
                if let Address::Tcp(address) = address {
                    self.recorder.snapshot.addresses.moved_to(*address);
                }
            }
        }
        self.signs.tried(now);
        let connection = &mut self.connections[token];
        connection.addresses.clear();
        let tells = |route: &&Route| route.addresses.len() > 1 || self.origins.has_moved(origin);
        if let Some(route) = self.origins.route(origin).filter(tells) {
            connection.addresses.extend(route.in_turn(token.place()).cloned());
        }
        let (client, most) = (self.origins.client(origin), self.origins.asked_of(origin));
        connection.link = Link::new(client, most, now);
        self.connections.number(token);
        self.census.begins();
        self.look_at_next(token);
        let until = now.saturating_add(self.terms.connect_timeout_ns).min(Tick::LAST);
        self.try_address(load, token, Attempt { until, address_until: until, tried: 0 }, now);
    }

    /// Tries the next of the target's addresses. If there are others, it has a moment at first; once all have had that,
    /// they share the rest of the time.
    fn try_address<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, attempt: Attempt, now: Tick) {
        let connection = &self.connections[token];
        let route = self.origins.route(connection.origin);
        let left = attempt.until.since(now);
        let untried = route.map_or(0, |route| route.addresses.len()).saturating_sub(attempt.tried) as u64;
        let patience = match connection.addresses.len() as u64 {
            0 | 1 => left,
            _ if untried > 0 => (left / untried).min(NEXT_ADDRESS_NS),
            others => (left / others).max(NEXT_ADDRESS_NS).min(left),
        };
        let address = connection.addresses.front().or_else(|| route?.addresses.first()).cloned();
        self.enter(token, State::Connecting(Attempt { address_until: now.saturating_add(patience), ..attempt }));
        let (Some(route), Some(address)) = (self.origins.route(self.connections[token].origin), address) else {
            return;
        };
        // Where one local address has no port left, another may have.
        let mut outcome = self.driver.connect(token, &address, route.source(token.place(), &address));
        for turn in 1..route.sources.len() {
            if !outcome.as_ref().is_err_and(|error| failure_of(error).0 == Failure::Ports) {
                break;
            }
            outcome = self.driver.connect(token, &address, route.source(token.place() + turn, &address));
        }
        if let Err(error) = outcome {
            self.address_failed(load, token, &error, now);
        }
    }

    /// An address refused: the others get their chance, then the attempt has failed.
    fn address_failed<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        error: &io::Error,
        now: Tick,
    ) {
        let State::Connecting(attempt) = self.connections[token].state else { return };
        let (failure, reason) = failure_of(error);
        if self.connections[token].addresses.len() < 2 {
            let reason = self.at_address(token, failure, &reason);
            return self.connecting_failed(load, token, failure, &reason, now);
        }
        let reason = self.at_address(token, failure, &reason);
        self.recorder.trouble(failure, &reason);
        self.driver.close(token);
        self.connections[token].addresses.pop_front();
        self.try_address(load, token, Attempt { tried: attempt.tried + 1, ..attempt }, now);
    }

    /// Connecting has timed out: as a whole, or for the first of several addresses (RFC 8305, section 5).
    pub(super) fn address_late<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        attempt: Attempt,
        now: Tick,
    ) {
        const REASON: &str = "no connection within the connect timeout";

        if now >= attempt.until {
            let reason = self.at_address(token, Failure::ConnectTimeout, REASON);
            return self.connecting_failed(load, token, Failure::ConnectTimeout, &reason, now);
        }
        let addresses = self.origins.route(self.connections[token].origin).map_or(0, |route| route.addresses.len());
        if attempt.tried < addresses {
            const REASON: &str = "no answer to connecting, and the next address was tried";
            let reason = self.at_address(token, Failure::ConnectTimeout, REASON);
            self.recorder.trouble(Failure::ConnectTimeout, &reason);
        }
        self.driver.close(token);
        self.connections[token].addresses.rotate_left(1);
        self.try_address(load, token, Attempt { tried: attempt.tried + 1, ..attempt }, now);
    }

    /// Where the target has several addresses: counts the failure to connect to the first, and returns its reason with the address.
    /// A proxy that took no connection is named.
    fn at_address<'a>(&mut self, token: ConnectionId, failure: Failure, reason: &'a str) -> Cow<'a, str> {
        let is_proxys = self.origins.route(self.connections[token].origin).is_some_and(|route| route.tunnel.is_some());
        if is_proxys {
            return format!("the proxy: {reason}").into();
        }
        match self.connections[token].addresses.front() {
            Some(Address::Tcp(address)) => {
                self.recorder.snapshot.addresses.failed(*address, failure, reason);
                format!("{address}: {reason}").into()
            }
            // A Unix socket has one.
            _ => reason.into(),
        }
    }

    /// The socket has connected, or failed to.
    pub(super) fn socket_connected<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        attempt: Attempt,
    ) {
        let outcome = self.driver.connected(token);
        let now = self.driver.now();
        match outcome {
            Ok(false) => {}
            Err(error) => self.address_failed(load, token, &error, now),
            Ok(true) => {
                let connection = &self.connections[token];
                // Where there are several addresses, the one that took the connection says more than a number.
                if let Some(Address::Tcp(address)) = connection.addresses.front() {
                    self.recorder.snapshot.addresses.made(*address);
                }
                let step = Step { since: now, until: attempt.until };
                match self.origins.route(connection.origin).and_then(|route| route.tunnel.as_ref()) {
                    None => self.connected(load, token, step, now),
                    Some(request) => {
                        self.connections[token].link.channel = Channel::tunnel(request);
                        self.enter(token, State::Tunnelling(step));
                        self.flush_channel(token);
                    }
                }
            }
        }
    }

    /// The way to the target is open, by its address or through a tunnel.
    fn connected<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, step: Step, now: Tick) {
        let connection = &mut self.connections[token];
        connection.link.connect_ns = now.since(connection.link.began);
        self.recorder.snapshot.times.record(Timing::Connect, connection.link.connect_ns);
        match self.origins.route(connection.origin).and_then(|route| route.tls.as_ref()) {
            None => self.open(load, token, step, now),
            Some(tls) => {
                let channel = Channel::tls(tls);
                self.secure(load, token, channel, step, now);
            }
        }
    }

    fn secure<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        channel: Result<Channel, String>,
        step: Step,
        now: Tick,
    ) {
        let channel = match channel {
            Ok(channel) => channel,
            Err(reason) => return self.connecting_failed(load, token, Failure::Tls, &reason, now),
        };
        self.connections[token].link.channel = channel;
        self.enter(token, State::Securing(step));
        self.flush_channel(token);
    }

    /// Sends the channel's own records, if it has any.
    pub(super) fn flush_channel(&mut self, token: ConnectionId) {
        let channel = &mut self.connections[token].link.channel;
        let mut written = 0;
        let outcome = channel.flush(&mut Socket { driver: &mut self.driver, token }, &mut written);
        self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64);
        if let Err(error) = outcome {
            self.write_failed(token, &error);
        }
    }

    /// Goes on once the channel's tunnel stands or its handshake is over, after it was fed.
    pub(super) fn was_fed<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let connection = &mut self.connections[token];
        match connection.state {
            State::Securing(step) => {
                let Some(handshake) = connection.link.channel.handshake() else { return };
                self.recorder.snapshot.times.record(Timing::Tls, now.since(step.since));
                self.recorder.snapshot.numbers.add(Counter::TlsResumed, u64::from(handshake.is_resumed));
                self.open(load, token, Step { since: now, ..step }, now);
            }
            State::Tunnelling(step) if connection.link.channel.has_tunnel() => {
                connection.link.channel = Channel::Plain;
                self.connected(load, token, Step { since: now, ..step }, now);
            }
            _ => {}
        }
    }

    /// The way to the peer is open: the protocol opens its own connection on it.
    fn open<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, step: Step, now: Tick) {
        let connection = &mut self.connections[token];
        match connection.link.client.open(connection.link.channel.alpn(), &mut self.outgoing) {
            Ok(Opening::Ready) => self.ready(load, token, now),
            Ok(Opening::Exchange) => {
                self.enter(token, State::Opening(step));
                self.flush(load, token);
            }
            Err(unsuitable) => self.connecting_failed(load, token, Failure::Handshake, &unsuitable.0, now),
        }
    }

    /// The protocol's opening exchange is over.
    pub(super) fn opened<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        if let State::Opening(step) = self.connections[token].state {
            self.recorder.snapshot.times.record(Timing::Handshake, now.since(step.since));
            self.ready(load, token, now);
        }
    }

    /// The connection can carry calls.
    fn ready<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let behind = self.behind(now);
        let connection = &mut self.connections[token];
        connection.state = State::OPEN;
        connection.ready_since = now;
        let history = &mut connection.history;
        history.held_up = history.held_up.max(behind);
        if history.without_since.is_set() {
            let without = now.since(std::mem::replace(&mut history.without_since, Tick::NEVER));
            self.recorder.snapshot.numbers.add(Counter::WithoutServer, without);
        }
        let generation = connection.generation;
        self.connections.newest = Some(token);
        self.census.opens();
        self.signs.connected(now);
        self.recorder.snapshot.numbers.add(Counter::ConnectionsMade, 1);
        self.send_queue(load, token, now);
        if self.connections[token].generation == generation {
            load.next_calls(self, token, now);
        }
    }
}

/// The failure that an error of connecting is.
fn failure_of(error: &io::Error) -> (Failure, String) {
    use rustix::io::Errno;

    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => (Failure::Ports, "no local port or address is free".to_owned()),
        Some(Errno::MFILE | Errno::NFILE) => (Failure::Descriptors, "no file descriptor is free".to_owned()),
        Some(Errno::CONNREFUSED) => (Failure::Connect, "connection refused".to_owned()),
        // A Unix socket whose backlog is full.
        Some(Errno::AGAIN) => (Failure::Connect, "the server's queue of connections is full".to_owned()),
        _ => (Failure::Connect, reason_of(error)),
    }
}

/// What a connection waits for.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// The same for what a connection's peer has to do.
    pub(super) fn patience_ends(&self, token: ConnectionId) -> Tick {
        let connection = &self.connections[token];
        let due = connection.due();
        let since = match connection.state {
            _ if due == connection.link.stalled_until => due.before(self.terms.timeout_ns),
            _ if connection.is_being_made() => connection.link.began,
            State::Leaving { .. } => due.before(FAREWELL_NS),
            _ => return due,
        };
        self.stops.put_off(since, due)
    }

    pub(super) fn connection_late<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        if self.connections[token].link.stalled_until <= now {
            return self.broken(load, token, Failure::Write, UNREAD, now);
        }
        let reason = match self.connections[token].state {
            State::Backoff { .. } => return self.backed_off(load, token, now),
            // A pause before the connection's next call is over; the code that set it removes it.
            State::Vacant => return,
            State::Idle { .. } | State::Open { .. } => return load.next_calls(self, token, now),
            State::Leaving { .. } => {
                let reason = self.farewell(token);
                return self.lost(load, token, Failure::Closed, &reason, now);
            }
            State::Connecting(attempt) => return self.address_late(load, token, attempt, now),
            State::Tunnelling(_) => "the proxy has not answered CONNECT within the connect timeout",
            State::Securing(_) => "no TLS handshake within the connect timeout",
            State::Opening(_) => "no opening handshake within the connect timeout",
        };
        self.connecting_failed(load, token, Failure::ConnectTimeout, reason, now);
    }
}

/// Leaving: the peer takes no more calls on a connection.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// The peer takes no more calls on a connection. Calls that it has not processed, from this position on, and calls
    /// that were not sent yet, are made again elsewhere; the others may still be answered.
    pub(super) fn drain<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        unprocessed: usize,
        now: Tick,
    ) {
        let connection = &mut self.connections[token];
        let unprocessed = unprocessed.saturating_sub(usize::from(is_broken(Rule::ProcessedIsNotSentAgain)));
        let from = unprocessed.min(connection.calls.len());
        let turned_away: Vec<CallId> = connection.calls.drain(from..).collect();
        let unsent: Vec<CallId> = connection.queue.drain(..).collect();
        if connection.is_open() || is_broken(Rule::LeavesOnce) {
            // A peer that announces an error closes the connection (RFC 9113 §5.4.1): bytes that it sent before are
            // read until then.
            let fails = connection.link.client.farewell().is_some();
            self.census.leaves();
            self.enter(token, State::Leaving { until: if fails { now + FAREWELL_NS } else { Tick::NEVER } });
            load.draining(self, token, now);
        }
        for id in &unsent {
            if let Some(call) = self.calls.get_mut(*id) {
                call.place = Place::Waiting;
            }
        }
        if !unsent.is_empty() {
            load.turned_away(self, unsent, now);
        }
        self.turn_away(load, turned_away, TURNED_AWAY, now);
    }

    /// Closes a connection that takes no more calls once none is left on it. Returns false if it closed it.
    #[inline]
    pub(super) fn retire_if_drained<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        now: Tick,
    ) -> bool {
        let connection = &self.connections[token];
        if !connection.is_draining() || connection.carried() > 0 {
            return true;
        }
        self.say_goodbye(token);
        self.lost(load, token, Failure::Closed, "the peer takes no more calls on the connection", now);
        false
    }
}

/// How a ready connection was lost.
#[derive(Clone, Copy)]
struct Loss<'a> {
    /// The call that has the failure; `None` if each has one of its own.
    culprit: Option<CallId>,
    failure: Failure,
    reason: &'a str,
    /// Whether calls that were sent behind others are sent again.
    sends_behind_again: bool,
}

/// Losing a connection.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// An attempt to connect has failed, and with it the calls that waited for it.
    pub(super) fn connecting_failed<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        self.census.is_given_up();
        self.recorder.snapshot.numbers.add(Counter::ConnectionsFailed, 1);
        if matches!(self.connections[token].state, State::Connecting(_)) {
            self.origins.seek_addresses(self.connections[token].origin, now);
        }
        // A silent target has not refused anything.
        if failure != Failure::ConnectTimeout {
            self.signs.refused(reason);
        }
        let connection = &mut self.connections[token];
        let history = &mut connection.history;
        history.service = history.service.ended();
        if !history.without_since.is_set() && self.watched_since.is_set() {
            history.without_since = connection.link.began.max(self.watched_since);
        }
        let (origin, took_ns) = (connection.origin, now.since(connection.link.began));
        let waited = std::mem::take(&mut connection.queue);
        let gone = self.shut(token, failure, reason);
        let is_a_calls_own = !waited.is_empty();
        for id in waited {
            self.complete(load, id, End::Failed(failure, reason), now);
        }
        let attempt = FailedAttempt { origin, failure, reason, took_ns };
        if !load.connect_failed(self, &attempt, now) && !is_a_calls_own {
            self.recorder.trouble(failure, reason);
        }
        self.carry_on(load, gone, now);
    }

    /// The peer's end of the stream was read.
    pub(super) fn came_to_its_end<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        match self.connections[token].link.write_failure.take() {
            Some(failure @ WriteFailure::Reset) => {
                self.broken(load, token, Failure::Write, &failure.reason(), now);
            }
            _ => self.peer_closed(load, token, now),
        }
    }

    /// The peer sends no more.
    pub(super) fn peer_closed<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let connection = &mut self.connections[token];
        match connection.state {
            State::Tunnelling(_) => {
                let reason = "the proxy closed before it had answered CONNECT";
                return self.connecting_failed(load, token, Failure::Connect, reason, now);
            }
            State::Securing(_) => {
                let reason = "the peer closed during the TLS handshake";
                return self.connecting_failed(load, token, Failure::Tls, reason, now);
            }
            State::Opening(_) => {
                let reason = "the peer closed during the opening handshake";
                return self.connecting_failed(load, token, Failure::Handshake, reason, now);
            }
            _ => {}
        }
        let generation = connection.generation;
        let ended_one = match connection.link.client.closed() {
            Some(Ok(answer)) => {
                connection.has_served();
                self.signs.answered(now);
                if let Some(id) = self.connections[token].calls.get(answer.position).copied() {
                    self.answered(load, token, answer.position, id, answer.status, now);
                }
                true
            }
            Some(Err(failed)) => {
                connection.has_served();
                self.signs.answered(now);
                if let Some(id) = self.connections[token].take_call(failed.position) {
                    self.complete(load, id, End::Failed(failed.failure, &failed.reason), now);
                }
                true
            }
            None => false,
        };
        if self.connections[token].generation != generation {
            return;
        }
        if ended_one {
            return self.ended_with_answer(load, token, now);
        }
        let reason = self.farewell(token);
        self.ended_in_order(load, token, &reason, now);
    }

    /// The reason with which the peer ends a connection, as far as it gave one.
    pub(super) fn farewell(&self, token: ConnectionId) -> Cow<'static, str> {
        self.connections[token]
            .link
            .client
            .farewell()
            .unwrap_or(Cow::Borrowed("the peer closed before the answer was complete"))
    }

    /// A connection is gone, ready or not yet.
    pub(super) fn broken<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        match self.connections[token].state {
            State::Open { .. } | State::Leaving { .. } => self.lost(load, token, failure, reason, now),
            _ => self.connecting_failed(load, token, failure, reason, now),
        }
    }

    /// A ready connection is gone. The failure is that of the oldest call on it.
    pub(super) fn lost<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        let culprit = match failure {
            // Calls that took too long have failures of their own.
            Failure::Timeout | Failure::Stalled => None,
            _ => self.connections[token].calls.front().copied(),
        };
        self.lose(load, token, Loss { culprit, failure, reason, sends_behind_again: false }, now);
    }

    /// A connection is gone after an answer that was to be its last: the peer has not processed the calls behind it
    /// (RFC 9112 §9.6).
    pub(super) fn ended_with_answer<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let culprit = self.connections[token].calls.front().copied();
        let (failure, reason) = (Failure::Closed, LAST_ANSWER);
        self.lose(load, token, Loss { culprit, failure, reason, sends_behind_again: false }, now);
    }

    /// Its peer has ended a ready connection in good order.
    pub(super) fn ended_in_order<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        reason: &str,
        now: Tick,
    ) {
        let connection = &self.connections[token];
        let culprit = connection.calls.front().copied();
        // Of calls that were sent behind others, without a frame that tells, the peer has processed those that it has
        // answered (RFC 9112 §9.3.2).
        let sends_behind_again = connection.history.service == Service::Answered && !connection.link.client.is_framed();
        self.lose(load, token, Loss { culprit, failure: Failure::Closed, reason, sends_behind_again }, now);
    }

    /// A ready connection is gone. The failure is that of this call.
    pub(super) fn lost_with<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        culprit: CallId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        let culprit = Some(culprit);
        self.lose(load, token, Loss { culprit, failure, reason, sends_behind_again: false }, now);
    }

    /// A ready connection is gone, by its last answer or otherwise. Calls behind a last answer are sent again. A call of
    /// which the socket has taken nothing is sent again, once; so is one that was sent on an idle connection and
    /// crossed its end, if it may be. Of the other calls the culprit has the failure, and the rest end with the
    /// connection.
    fn lose<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, loss: Loss<'_>, now: Tick) {
        let Loss { culprit, failure, reason, sends_behind_again } = loss;
        let behind = self.behind(now).max(now.since(self.recorder.arrival(now)));
        let connection = &mut self.connections[token];
        // In time, its successor would have been there that much earlier.
        connection.history.held_up = connection.history.held_up.max(behind);
        let by_peer = matches!(failure, Failure::Closed | Failure::Read | Failure::Write);
        let resendable = by_peer && connection.history.service == Service::Answered && connection.is_open();
        let met_its_end_ns = MET_ITS_END_NS.max(2 * connection.link.connect_ns);
        // A target that stands still takes connections all the same.
        if failure == Failure::Timeout && connection.history.came_to_nothing() && self.watched_since.is_set() {
            let silent = now.since(connection.ready_since.max(self.watched_since));
            self.recorder.snapshot.numbers.add(Counter::WithoutServer, silent);
        }
        connection.history.service = connection.history.service.ended();
        let calls = std::mem::take(&mut connection.calls);
        if calls.is_empty() && failure != Failure::Closed {
            self.recorder.trouble(failure, reason);
        }
        // A peer that closes, resets or says goodbye ends a connection by itself.
        let is_own =
            reason == GIVEN_UP || !matches!(failure, Failure::Closed | Failure::Read | Failure::Write | Failure::Tls);
        let bytes_taken = if by_peer { connection.link.bytes_taken } else { u64::MAX };
        let gone = self.shut(token, failure, reason);
        for id in calls {
            let Some(call) = self.calls.get_mut(id) else { continue };
            let has_bytes = call.first_byte_out < call.last_byte && !load.keeps_to_connection(call.tag);
            let nothing_sent = has_bytes && call.first_byte_out >= bytes_taken;
            let late = matches!(failure, Failure::Timeout | Failure::Stalled) && call.expires <= now;
            let met_its_end = call.alone && now.since(call.sent) <= met_its_end_ns;
            let is_behind = reason == LAST_ANSWER || sends_behind_again && !call.alone && !nothing_sent;
            let is_behind = is_behind && !is_broken(Rule::BehindALastAnswer);
            let is_turned_away = is_behind && call.turned_away < MOST_TURNED_AWAY;
            let once = call.resend != Resend::Done && (nothing_sent || resendable && met_its_end);
            let may_be = nothing_sent || call.resend != Resend::Never;
            if (is_turned_away || once) && may_be && !call.first_byte.is_set() {
                if is_turned_away {
                    call.turned_away += 1;
                } else {
                    call.resend = Resend::Done;
                }
                call.place = Place::Queued(token);
                let counter = if is_turned_away { Counter::TurnedAway } else { Counter::Reconnects };
                self.recorder.snapshot.numbers.add(counter, u64::from(self.recorder.counts(call)));
                self.connections[token].queue.push_back(id);
            } else if late {
                let (failure, reason) = self.lateness(id);
                self.complete(load, id, End::Failed(failure, reason), now);
            } else if reason == LAST_ANSWER && call.turned_away >= MOST_TURNED_AWAY {
                self.complete(load, id, End::Failed(Failure::Closed, TURNED_AWAY), now);
            } else if culprit == Some(id) {
                self.complete(load, id, End::Failed(failure, reason), now);
            } else {
                let reason = if is_own { GIVEN_UP } else { "the connection ended with an earlier call" };
                self.complete(load, id, End::Failed(Failure::Closed, reason), now);
            }
        }
        self.carry_on(load, gone, now);
    }

    /// Closes a connection that its load has finished with, with a goodbye. Calls left on it fail.
    pub(crate) fn close<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        const REASON: &str = "the connection was closed while the call was on it";

        self.say_goodbye(token);
        let connection = &mut self.connections[token];
        if connection.is_being_made() {
            self.census.is_given_up();
        }
        let left: Vec<CallId> = connection.calls.drain(..).chain(connection.queue.drain(..)).collect();
        self.shut(token, Failure::Closed, REASON);
        for id in left {
            self.complete(load, id, End::Failed(Failure::Closed, REASON), now);
        }
    }

    /// Drops the socket and its state; returns what is left.
    fn shut<'a>(&mut self, token: ConnectionId, failure: Failure, reason: &'a str) -> Gone<'a> {
        self.driver.close(token);
        self.outgoing.clear();
        let connection = &mut self.connections[token];
        let drained = connection.is_draining();
        let was_ready = connection.is_there();
        if was_ready {
            self.census.is_gone(drained);
        }
        connection.state = State::IDLE;
        connection.unsent.clear();
        connection.generation = connection.generation.wrapping_add(1);
        if connection.history.service == Service::Answered {
            connection.history.service = Service::NONE;
        }
        if !is_broken(Rule::LostLeavesLists) {
            connection.listing = Listing::Unlisted;
        }
        let mut link = std::mem::replace(&mut connection.link, Link::none());
        if link.holds.are_any() {
            let now = self.driver.now();
            link.holds.end(now, &mut self.recorder.snapshot.numbers);
        }
        let events = &mut self.recorder.snapshot.events;
        link.client.take_events(&mut |name, count| events.add(name, count));
        Gone { token, client: link.client, failure, reason, drained, was_ready }
    }

    /// After a connection is gone: makes another for the calls that wait for it, at once, or after a while if the last
    /// ones were of no use. Without such calls the load decides.
    fn carry_on<W: Workload<D, Tag = T>>(&mut self, load: &mut W, gone: Gone<'_>, now: Tick) {
        let token = gone.token;
        let connection = &mut self.connections[token];
        // A load that heard of a call's end may have used the place already.
        if !connection.is_idle() {
            return;
        }
        if gone.drained && !connection.queue.is_empty() {
            let again: Vec<CallId> = connection.queue.drain(..).collect();
            for id in &again {
                if let Some(call) = self.calls.get_mut(*id) {
                    call.place = Place::Waiting;
                }
            }
            load.turned_away(self, again, now);
        }
        if self.connections[token].queue.is_empty() {
            load.gone(self, gone, now);
        } else if !self.back_off(token, now) {
            self.connect(load, token, now);
        }
    }

    /// Waits before the connection is made again, if the last attempt was of no use. Returns whether it waits.
    pub(crate) fn back_off(&mut self, token: ConnectionId, now: Tick) -> bool {
        if !self.connections[token].history.came_to_nothing() {
            return false;
        }
        let at = self.attempts.retry_at(token.place(), now);
        let state = State::Backoff { until: at };
        if is_broken(Rule::BackoffIsWatched) {
            self.connections[token].state = state;
        } else {
            self.enter(token, state);
        }
        true
    }

    /// `fresh` replaces a connection on which the peer takes no more calls. Whether that one was of use is known when
    /// it ends: if it carries no calls, that is now, and `fresh` may have to wait before it is made. Returns whether it
    /// waits.
    pub(crate) fn succeed(&mut self, old: ConnectionId, fresh: ConnectionId, now: Tick) -> bool {
        let behind = self.behind(now);
        let old = &self.connections[old];
        let service = if old.calls.is_empty() { old.history.service.ended() } else { Service::NONE };
        let held_up = old.history.held_up.max(behind);
        let history = &mut self.connections[fresh].history;
        (history.service, history.held_up) = (service, held_up);
        self.back_off(fresh, now)
    }

    /// The wait after an attempt of no use is over.
    pub(super) fn backed_off<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let connection = &mut self.connections[token];
        connection.state = State::IDLE;
        if connection.queue.is_empty() {
            load.next_calls(self, token, now);
        } else {
            self.connect(load, token, now);
        }
    }

    /// The reason of failures at a silent target: it answers nothing to connecting, or to the first bytes on a
    /// connection.
    pub(crate) fn silence(&self) -> &'static str {
        let is_silent = |state| matches!(state, State::Tunnelling(_) | State::Securing(_) | State::Opening(_));
        if self.connections.iter().any(|connection| is_silent(connection.state)) {
            "it takes connections, and says nothing on them"
        } else {
            "no answer to connecting"
        }
    }
}
