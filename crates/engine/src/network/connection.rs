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
use crate::transport::{Address, ConnectionId};
use brunt_protocol::Client;

/// A connection's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The place is free for another connection.
    Vacant,
    /// No socket.
    Idle,
    /// No socket, and none is made before the deadline, since the last attempt failed.
    Backoff,
    /// The socket is being connected.
    Connecting,
    /// The TLS handshake is under way.
    Handshaking,
    /// The protocol's own opening exchange is under way.
    Opening,
    /// Calls can be sent.
    Open,
    /// The peer takes no more calls; those in flight may still be answered.
    Leaving,
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

/// One of a worker's connections.
pub(crate) struct Connection {
    /// Its destination, by the worker's number for it.
    pub(crate) origin: OriginId,
    /// Bytes received since it was made, after decryption.
    pub(crate) bytes_in: u64,
    pub(crate) state: State,
    pub(super) channel: Channel,
    /// The protocol's state; a placeholder while there is no connection.
    pub(crate) client: Box<dyn Client>,
    /// Calls in flight, oldest first.
    pub(crate) calls: VecDeque<CallId>,
    /// Calls that wait until the connection is ready.
    pub(super) queue: VecDeque<CallId>,
    /// Bytes that the socket did not take yet.
    pub(super) unsent: Unsent,
    /// When the connection ends unless its peer takes one of the waiting bytes; [`Tick::NEVER`] while none wait.
    pub(super) stalled_until: Tick,
    /// Why the socket takes nothing any more, once that is known. The connection ends when everything is read that had
    /// come before.
    pub(super) write_failure: Option<WriteFailure>,
    /// Upper bound on the waiting bytes that answer the peer's own messages.
    pub(super) unsent_aside: usize,
    /// Bytes given to it since it was made, sent or not, before encryption.
    pub(super) bytes_out: u64,
    /// Upper bound on those of which the socket has taken something.
    pub(super) bytes_taken: u64,
    /// The most calls in flight that the plan asks for.
    pub(super) most: usize,
    /// The calls that its peer's limits hold back.
    pub(super) holds: Holds,
    /// Grows whenever the connection is closed: an event for an earlier generation is stale.
    pub(super) generation: u32,
    /// When the socket began to connect.
    pub(super) began: Tick,
    /// When the socket was connected, or the TLS handshake was done: the start of the next step of connecting.
    pub(super) connected: Tick,
    /// How long the socket took to connect, in nanoseconds.
    pub(super) connect_ns: u64,
    /// Since when its place is without a server, as far as that is not recorded yet; [`Tick::NEVER`] if it has one.
    pub(super) without_since: Tick,
    /// Since when it could carry a call, or another one.
    pub(crate) ready_since: Tick,
    /// How much earlier that would have been had this program been in time, in nanoseconds.
    pub(crate) held_up: u64,
    /// When connecting is given up, backing off is over, or a pause before the next call ends; [`Tick::NEVER`] for none.
    pub(crate) deadline: Tick,
    /// Whether it, and the connections before it in its place, were of use.
    pub(super) service: Service,
    /// When this attempt to connect is given up.
    pub(super) connect_until: Tick,
    /// The addresses that may still take it, the one under way first, if the target has several; and how many were
    /// tried.
    pub(super) addresses: VecDeque<Address>,
    pub(super) tried: usize,
    /// The list of its load that it is in.
    pub(crate) listing: Listing,
    /// Whether its client was asked to look at an answer.
    pub(super) look: LookRequest,
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
            bytes_in: 0,
            state: State::Idle,
            channel: Channel::Plain,
            client: Box::new(NoClient),
            calls: VecDeque::new(),
            queue: VecDeque::new(),
            unsent: Unsent::default(),
            stalled_until: Tick::NEVER,
            write_failure: None,
            unsent_aside: 0,
            bytes_out: 0,
            bytes_taken: 0,
            most: 1,
            holds: Holds::default(),
            generation: 0,
            began: Tick::EPOCH,
            connected: Tick::EPOCH,
            connect_ns: 0,
            without_since: Tick::NEVER,
            ready_since: Tick::EPOCH,
            held_up: 0,
            deadline: Tick::NEVER,
            service: Service::NONE,
            connect_until: Tick::NEVER,
            addresses: VecDeque::new(),
            tried: 0,
            listing: Listing::Unlisted,
            look: LookRequest::None,
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
        if self.state != State::Open || is_stalled {
            return 0;
        }
        let limit = if is_broken(Rule::PeersLimit) { most } else { self.client.capacity() };
        most.min(limit).saturating_sub(self.calls.len())
    }

    /// Whether bytes wait for the socket, and its client was told so.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled_until.is_set()
    }

    /// When it has to be looked at, at the latest.
    #[inline]
    pub(super) fn due(&self) -> Tick {
        self.deadline.min(self.stalled_until)
    }

    /// Whether bytes wait that the socket did not take.
    #[cfg(feature = "simulation")]
    pub(super) fn has_unsent(&self) -> bool {
        self.is_there() && !self.is_sent()
    }

    /// Whether it is being made.
    pub(crate) fn is_being_made(&self) -> bool {
        matches!(self.state, State::Connecting | State::Handshaking | State::Opening)
    }

    /// Whether the peer takes no more calls on it.
    pub(crate) fn is_draining(&self) -> bool {
        self.state == State::Leaving
    }

    /// Whether it is established: calls are on it, or can be.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.state, State::Open | State::Leaving)
    }

    /// Whether its peer takes no calls although none is on it, and has answered none before.
    pub(super) fn is_barren(&self) -> bool {
        self.state == State::Open
            && self.service != Service::Answered
            && self.calls.is_empty()
            && self.client.capacity() == 0
    }

    /// Whether bytes are read from its socket.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.state, State::Handshaking | State::Opening | State::Open | State::Leaving)
    }

    /// Whether the socket has taken everything that was to be sent.
    pub(super) fn is_sent(&self) -> bool {
        self.unsent.is_empty() && !self.channel.has_unsent()
    }

    /// Whether everything up to this call's last byte was sent.
    #[inline]
    pub(super) fn has_sent<T>(&self, call: &Call<T>) -> bool {
        let sent = self.bytes_out.saturating_sub(self.unsent.len() as u64);
        call.last_byte < sent || call.last_byte == sent && !self.channel.has_unsent()
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

    /// Whether the last attempt to connect, or the last connection, brought no answer.
    pub(crate) fn came_to_nothing(&self) -> bool {
        matches!(self.service, Service::Unanswered { attempts: 1.. })
    }

    /// The peer has sent something valid: the way to it works.
    #[inline]
    pub(super) fn has_served(&mut self) {
        self.service = Service::Answered;
    }
}

/// A worker's connections, by its own numbers for them.
#[derive(Default)]
pub(crate) struct Connections(pub(super) Vec<Connection>);

impl Connections {
    /// The numbers of all places, vacant ones included.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ConnectionId> + use<> {
        (0..self.0.len()).map(ConnectionId::at)
    }

    /// How many places there are, vacant ones included.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many can carry calls.
    pub(crate) fn open(&self) -> u64 {
        self.0.iter().filter(|connection| connection.is_there()).count() as u64
    }

    /// Calls in flight on all of them.
    pub(crate) fn in_flight(&self) -> u64 {
        self.0.iter().map(|connection| connection.calls.len() as u64).sum()
    }
}

/// Numbers of connections are made by the network alone and never exceed their number.
#[allow(clippy::indexing_slicing)]
impl Index<ConnectionId> for Connections {
    type Output = Connection;

    #[inline]
    fn index(&self, token: ConnectionId) -> &Connection {
        &self.0[token.place()]
    }
}

#[allow(clippy::indexing_slicing)]
impl IndexMut<ConnectionId> for Connections {
    #[inline]
    fn index_mut(&mut self, token: ConnectionId) -> &mut Connection {
        &mut self.0[token.place()]
    }
}
