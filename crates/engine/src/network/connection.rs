//! One of a worker's connections and the calls on it.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use brunt_record::time::Tick;

use super::call::Call;
use super::calls::CallId;
use super::failures::WriteFailure;
use super::holding::Holds;
use super::looks::LookRequest;
use super::origins::{NoClient, OriginId};
use crate::channel::{Channel, Unsent};
use crate::rules::{Rule, is_broken};
use crate::slots::{Recycle, Slots};
use crate::transport::{Address, ConnectionId};
use brunt_protocol::Client;

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
            Self::Securing(step) | Self::Opening(step) => step.until,
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
    pub(crate) client: Box<dyn Client>,
    pub(super) channel: Channel,
    /// Bytes received, after decryption.
    pub(crate) bytes_in: u64,
    /// Bytes given to it, sent or not, before encryption.
    pub(super) bytes_out: u64,
    /// Upper bound on those of which the socket has taken something.
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
    pub(crate) held_up: u64,
    /// The start of the time without a server that is not recorded yet; [`Tick::NEVER`] if the place has one.
    pub(super) without_since: Tick,
}

impl History {
    /// A place that had none.
    pub(super) const NONE: Self = Self { service: Service::NONE, held_up: 0, without_since: Tick::NEVER };

    /// Whether the last attempt to connect, or the last connection, brought no answer.
    pub(crate) fn came_to_nothing(&self) -> bool {
        matches!(self.service, Service::Unanswered { attempts: 1.. })
    }
}

/// A place for a connection of a worker, the connection in it, and the calls on that.
pub(crate) struct Connection {
    /// Its destination, by the worker's number for it.
    pub(crate) origin: OriginId,
    pub(crate) state: State,
    pub(crate) link: Link,
    pub(crate) history: History,
    /// Calls in flight, oldest first.
    pub(crate) calls: VecDeque<CallId>,
    /// Calls that wait until the connection is ready.
    pub(super) queue: VecDeque<CallId>,
    /// Bytes that the socket did not take yet.
    pub(super) unsent: Unsent,
    /// The addresses that may still take the connection, the one under way first, if the target has several.
    pub(super) addresses: VecDeque<Address>,
    /// Grows whenever the connection is closed: an event for an earlier generation is stale.
    pub(super) generation: u32,
    /// Since when it could carry a call, or another one.
    pub(crate) ready_since: Tick,
    /// The list of its load that it is in.
    pub(crate) listing: Listing,
}

impl Connection {
    /// Takes the call at this position out of those in flight. Most often it is the oldest, so that no others move.
    #[inline]
    pub(super) fn take_call(&mut self, position: usize) -> Option<CallId> {
        if position == 0 { self.calls.pop_front() } else { self.calls.remove(position) }
    }

    pub(super) fn new(origin: OriginId) -> Self {
        Self {
            origin,
            state: State::IDLE,
            link: Link::none(),
            history: History::NONE,
            calls: VecDeque::new(),
            queue: VecDeque::new(),
            unsent: Unsent::default(),
            addresses: VecDeque::new(),
            generation: 0,
            ready_since: Tick::EPOCH,
            listing: Listing::Unlisted,
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
        matches!(self.state, State::Connecting(_) | State::Securing(_) | State::Opening(_))
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
        matches!(self.state, State::Securing(_) | State::Opening(_) | State::Open { .. } | State::Leaving { .. })
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
    }
}

/// A worker's connections, by its own numbers for them.
#[derive(Default)]
pub(crate) struct Connections(Slots<Connection>);

impl Connections {
    /// A place for a connection to `origin`.
    pub(super) fn take(&mut self, origin: OriginId) -> ConnectionId {
        let token = ConnectionId::at(self.0.take(|| Connection::new(origin)) as usize);
        let connection = &mut self[token];
        (connection.origin, connection.state) = (origin, State::IDLE);
        token
    }

    /// Frees the place of a connection that is gone. False if it was free already.
    pub(super) fn free(&mut self, token: ConnectionId) -> bool {
        self.0.free(token.place() as u32)
    }

    /// The numbers of all places, vacant ones included.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnectionId> + use<> {
        (0..self.0.len()).map(ConnectionId::at)
    }

    /// The connection at this place, if it is taken.
    pub(super) fn taken_at(&self, token: ConnectionId) -> Option<&Connection> {
        self.0.get(token.place() as u32)
    }

    /// Those whose places are taken.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.0.iter().map(|(_, connection)| connection)
    }

    /// The same, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.0.iter_mut()
    }

    /// How many places there are, vacant ones included.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many places are not vacant: connections, made or to be made.
    #[inline]
    pub(super) fn taken(&self) -> usize {
        self.0.taken()
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
        self.0.value(token.place())
    }
}

impl IndexMut<ConnectionId> for Connections {
    #[inline]
    fn index_mut(&mut self, token: ConnectionId) -> &mut Connection {
        self.0.value_mut(token.place())
    }
}
