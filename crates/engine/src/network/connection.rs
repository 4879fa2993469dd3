//! The life of a connection, from top to bottom: its slot, how it is made, what it waits for, how it leaves, and how it
//! is lost, with what becomes of the calls on it.
//!
//! A [`Connection`] is a slot that is used for one connection after another; a [`Link`] is the one that is in it.
//!
//! ```text
//! Vacant ─▶ Idle ─▶ Connecting ─▶ Securing (TLS) ─▶ Opening (protocol) ─▶ Open ─▶ Draining
//!   ▲        ▲ │        │               │                  │               │         │
//!   │        │ │        └───────────────┴────── failed ────┴─── lost ──────┴─────────┤
//!   └────────┤ └─▶ Backoff ─▶ Connecting, if calls wait; else the load is asked      │
//!            └───────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Through a proxy, Tunnelling comes after Connecting: the proxy connects to the target. What moves a connection on:
//!
//! | event | function | next |
//! | --- | --- | --- |
//! | a load wants a connection | [`Network::add`], [`Network::connect`] | Connecting |
//! | its socket is connected, or is not | `socket_connected` | the next step, the next address, or failed |
//! | bytes of the handshakes came | `was_fed`, `open` and `opening_done` | the next step |
//! | the last step is done | `ready` | Open: queued calls are sent, and the load is asked for more |
//! | the peer takes no more calls (GOAWAY) | [`Network::begin_draining`] | Draining; calls that it has not processed are made elsewhere |
//! | no call is left on one that leaves | [`Network::retire_if_empty`] | lost |
//! | the peer closes, resets, sends what cannot be read | [`Network::peer_closed`], [`Network::broken`] | lost, or failed |
//! | an answer was its last | [`Network::ended_with_answer`] | lost |
//! | the socket takes no bytes for as long as a call may take | [`Network::time_has_come`], by `stalled_until` | lost |
//! | a write fails, or a request cannot be written | `condemn`, in `sending` | still Open, but takes nothing; lost once everything is read that had come, or after the timeout |
//! | the peer does not answer a sign of life | `beat`, in `sending` | lost |
//! | the run is over | `take_leave`, in `sending` | a goodbye on each that is open |
//! | a deadline of the connection is over | [`Network::time_has_come`] | by its state |
//! | its load has finished with it | [`Network::close`] | Idle |
//! | failed | `shut`; the calls that waited fail, too; then `carry_on` | Idle; the load decides ([`Workload::gone`]) |
//! | lost | `shut`; `Left::fate` for each call on it; then `carry_on` | Idle, and if calls are to be sent again here, Connecting, or Backoff after one of no use; else the load decides ([`Workload::gone`]) |
//!
//! What loads decide: a flood makes another for its slot, users make one when a call needs it, a replay with its session's next
//! call.
//!
//! Where the code asks whether a rule `is_broken`, the answer is no outside of tests, which break rules one by one to see
//! that something fails: read past it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::ops::{Index, IndexMut};

use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;
use rustls::{CipherSuite, ProtocolVersion};

use super::answer_sampler::SampleRequest;
use super::call::{MOST_REFUSALS, REFUSED_TOO_OFTEN};
use super::calls::CallId;
use super::calls::{Call, End, Place};
use super::failures::{FINISHED_WITH, GIVEN_UP, WriteFailure, reason_of};
use super::origins::{NoClient, OriginId};
use super::peer_limits::PeerLimits;
use super::{FailedAttempt, Gone, Network, Workload};
use crate::channel::{Channel, Sent, Socket, Unsent};
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
/// The reason of an answer whose end is its connection's, where TLS was not ended before that.
const CUT_SHORT: &str = "the connection ended without TLS's close_notify: the answer may be cut short";
/// The reason of calls whose connection ended with an earlier answer.
const LAST_ANSWER: &str = "the connection closed after an earlier answer";

/// The state of a connection's slot, with what only this state knows.
///
/// All of it is times, so that a state is compared and copied like a number. What every state with a socket has is the
/// slot's [`Link`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The slot is free for another connection.
    Vacant,
    /// No socket.
    Idle {
        /// The end of the pause before its next call; [`Tick::NEVER`] for none.
        paused_until: Tick,
    },
    /// No socket, since the last attempt failed, or the last connection brought no answer.
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
    Draining {
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
            Self::Backoff { until } | Self::Draining { until } => until,
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
pub(crate) enum PoolMembership {
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
    /// Nobody's any more: the calls on it end, and it is lost with the last of them, since it is leaving.
    Nobody,
    /// Everybody's.
    Everybody,
    /// Those of one user, session or slot.
    One(u32),
    /// Those of one user that name the connection by this handle, until the user closes it.
    Held {
        /// The user.
        user: u32,
        /// The script's number for the connection.
        handle: u32,
    },
}

impl Keeper {
    /// The number of the user, session or slot.
    fn number(self) -> Option<u32> {
        match self {
            Self::One(number) | Self::Held { user: number, .. } => Some(number),
            Self::Nobody | Self::Everybody => None,
        }
    }
}

/// Whether a slot's connections have been of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerHistory {
    /// The connection was answered since it was made.
    Answered,
    /// It was not answered yet, and it is the slot's first, or follows one that was.
    Untried,
    /// It was not answered yet, and neither was the one before it, if that could be made.
    InVain,
}

impl AnswerHistory {
    /// The connection has ended, or could not be made.
    pub(super) fn ended(self) -> Self {
        match self {
            Self::Answered => Self::Untried,
            Self::Untried | Self::InVain => Self::InVain,
        }
    }
}

/// A connection, from its first attempt to its end: made and dropped as a whole. Lists and buffers that are kept for their
/// memory lie beside it, in its slot.
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
    /// When the connection ends unless its peer takes one of the waiting bytes, or, once writing has failed, whatever its peer does;
    /// [`Tick::NEVER`] where neither is so.
    pub(super) stalled_until: Tick,
    /// When the channel's next timer is due; [`Tick::NEVER`] if it has none.
    pub(super) timer: Tick,
    /// When a handshake began that goes on while calls go as early data; [`Tick::NEVER`] where none does.
    pub(super) early_since: Tick,
    /// Why the socket takes nothing any more, once that is known. The connection ends when everything is read that had
    /// come before.
    pub(super) write_failure: Option<WriteFailure>,
    /// Whether the sending side is to be closed once all bytes have gone.
    pub(super) finishes: bool,
    /// Upper bound on the waiting bytes that answer the peer's own messages.
    pub(super) unsent_aside: usize,
    /// The most calls in flight that the plan asks for.
    pub(super) most: usize,
    /// The calls that its peer's limits hold back.
    pub(super) holds: PeerLimits,
    /// Whether its client was asked to look at an answer.
    pub(super) look: SampleRequest,
    /// When its first address was tried.
    pub(super) began: Tick,
    /// How long the socket took to connect, in nanoseconds.
    pub(super) connect_ns: u64,
    /// How long the TLS handshake took, in nanoseconds; 0 without one.
    pub(super) handshake_ns: u64,
    /// The address that took the connection, if it is one of TCP.
    pub(super) address: Option<SocketAddr>,
    /// When the socket last took the last of bytes that had to wait for it; [`Tick::NEVER`] if none had to.
    pub(super) caught_up: Tick,
}

/// The other end of a connection, and how long the way to it took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peer {
    /// Its address, if it is one of TCP.
    pub(crate) address: Option<SocketAddr>,
    /// The version of TLS and the cipher suite, if it speaks TLS.
    pub(crate) security: Option<(ProtocolVersion, CipherSuite)>,
    /// How long the socket took to connect, in nanoseconds.
    pub(crate) connect_ns: u64,
    /// How long the TLS handshake took, in nanoseconds; 0 without one.
    pub(crate) handshake_ns: u64,
    /// When it had last made room for bytes that had to wait.
    pub(crate) caught_up: Option<Tick>,
}

impl Peer {
    /// The same for a call that found the connection there.
    pub(crate) fn met_before(self) -> Self {
        Self { connect_ns: 0, handshake_ns: 0, ..self }
    }
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
            timer: Tick::NEVER,
            early_since: Tick::NEVER,
            write_failure: None,
            finishes: false,
            unsent_aside: 0,
            most,
            holds: PeerLimits::default(),
            look: SampleRequest::None,
            began,
            connect_ns: 0,
            handshake_ns: 0,
            address: None,
            caught_up: Tick::NEVER,
        }
    }

    /// The socket has taken these bytes.
    #[inline]
    pub(super) fn was_taken(&mut self, sent: Sent) {
        if self.channel.is_plain() {
            self.bytes_taken += sent.wire as u64;
        } else if sent.wire > 0 {
            self.bytes_taken = self.bytes_out;
        }
    }

    /// No socket.
    pub(super) fn none() -> Self {
        Self::new(Box::new(NoClient), 1, Tick::EPOCH)
    }
}

/// The connections that a slot had, as far as the next one depends on them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    /// Whether they were of use.
    pub(super) answers: AnswerHistory,
    /// How much earlier the slot could have carried a call had this program been in time, in nanoseconds.
    pub(super) held_up: u64,
    /// The start of the time without a server that is not recorded yet; [`Tick::NEVER`] if the slot has one.
    pub(super) without_since: Tick,
}

impl History {
    /// A slot that had none.
    pub(super) const NONE: Self = Self { answers: AnswerHistory::Untried, held_up: 0, without_since: Tick::NEVER };

    /// Whether the last attempt to connect, or the last connection, brought no answer.
    fn never_answered(self) -> bool {
        self.answers == AnswerHistory::InVain
    }
}

/// A slot for a connection of a worker, the connection in it, and the calls on that.
pub(crate) struct Connection {
    /// Its destination, by the worker's number for it.
    pub(super) origin: OriginId,
    pub(super) keeper: Keeper,
    pub(super) state: State,
    pub(super) link: Link,
    pub(super) history: History,
    /// Calls in flight, oldest first. The place of a call in it is what the protocol's client knows as its position; calls
    /// that end once they are sent stand behind the others, and the client counts none of them.
    pub(super) calls: VecDeque<CallId>,
    /// Calls that wait until the connection is ready.
    pub(super) queue: VecDeque<CallId>,
    /// Bytes that the socket did not take yet.
    pub(super) unsent: Unsent,
    /// The addresses that may still take the connection, the one under way first, if the target has several.
    pub(super) addresses: VecDeque<Address>,
    /// Grows whenever the connection is shut. Whoever calls into its client or load compares it before and after, to see whether
    /// that has shut the connection. Events have no generation: one of an earlier socket leads to a read that finds nothing.
    pub(super) generation: u32,
    /// The number of its connection among those that the worker began to make, from 1.
    pub(super) number: u64,
    /// Since when it could carry a call, or another one.
    pub(super) ready_since: Tick,
    /// The list of its load that it is in.
    pub(super) membership: PoolMembership,
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
            membership: PoolMembership::Unlisted,
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
        self.link.client.take_answer(kept);
    }

    /// Bytes received before a call that is sent now. Those of the opening exchange belong to the first call.
    #[inline]
    pub(super) fn bytes_in_before_a_call(&self) -> u64 {
        let is_first = self.calls.is_empty() && self.history.answers != AnswerHistory::Answered;
        if is_first { 0 } else { self.link.bytes_in }
    }

    /// Bytes received, after decryption.
    #[inline]
    pub(crate) fn bytes_in(&self) -> u64 {
        self.link.bytes_in
    }

    /// Whether the last attempt to connect, or the last connection, brought no answer.
    pub(crate) fn never_answered(&self) -> bool {
        self.history.never_answered()
    }

    /// Since when it could carry a call, or another one.
    #[inline]
    pub(crate) fn ready_since(&self) -> Tick {
        self.ready_since
    }

    /// It could carry a call at this time already.
    pub(crate) fn note_ready_at(&mut self, at: Tick) {
        self.ready_since = self.ready_since.min(at);
    }

    /// How much earlier it could have carried a call had this program been in time, in nanoseconds.
    #[inline]
    pub(crate) fn held_up(&self) -> u64 {
        self.history.held_up
    }

    /// It could have carried a call that much earlier, in nanoseconds.
    #[inline]
    pub(crate) fn set_held_up(&mut self, ns: u64) {
        self.history.held_up = ns;
    }

    /// The list of its load that it is in.
    #[inline]
    pub(crate) fn listing(&self) -> PoolMembership {
        self.membership
    }

    /// Its load has it in this list.
    #[inline]
    pub(crate) fn enlist(&mut self, listing: PoolMembership) {
        self.membership = listing;
    }

    /// It is in its load's list of those that can carry a call, since `since`.
    #[inline]
    pub(crate) fn list_free(&mut self, since: Tick) {
        (self.membership, self.ready_since) = (PoolMembership::Free, since);
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

    /// The other end, as far as it is known.
    pub(crate) fn peer(&self) -> Peer {
        let Link { channel, address, connect_ns, handshake_ns, caught_up, .. } = &self.link;
        Peer {
            address: *address,
            security: channel.security(),
            connect_ns: *connect_ns,
            handshake_ns: *handshake_ns,
            caught_up: Some(*caught_up).filter(|caught_up| caught_up.is_set()),
        }
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

    /// Whether bytes wait for the socket, and its client was told so, or writing has failed.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        self.link.stalled_until.is_set()
    }

    /// When it has to be looked at, at the latest.
    #[inline]
    pub(super) fn deadline(&self) -> Tick {
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
        matches!(self.state, State::Draining { .. })
    }

    /// Whether it is established: calls are on it, or can be.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.state, State::Open { .. } | State::Draining { .. })
    }

    /// Whether its peer takes no calls although none is on it, and has answered none before.
    pub(super) fn is_unusable(&self) -> bool {
        self.is_open()
            && self.history.answers != AnswerHistory::Answered
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
        call.bytes_out_through < sent || call.bytes_out_through == sent && !self.link.channel.has_unsent()
    }

    /// Whether its load has it in no list.
    #[inline]
    pub(crate) fn is_unlisted(&self) -> bool {
        self.membership == PoolMembership::Unlisted
    }

    /// Takes it off the list; false if it was in none.
    #[inline]
    pub(crate) fn unlist(&mut self) -> bool {
        std::mem::replace(&mut self.membership, PoolMembership::Unlisted) != PoolMembership::Unlisted
    }

    /// The peer has sent something valid: the way to it works.
    #[inline]
    pub(super) fn has_served(&mut self) {
        self.history.answers = AnswerHistory::Answered;
    }
}

impl Recycle for Connection {
    /// The place is free for another connection.
    fn recycle(&mut self) {
        (self.state, self.history, self.membership) = (State::Vacant, History::NONE, PoolMembership::Unlisted);
        self.keeper = Keeper::Nobody;
    }
}

/// The connections that are kept for one user, session or slot each, by that one's number. Each list is sorted by origin.
#[derive(Default)]
struct ByKeeper(Vec<Vec<(OriginId, ConnectionId)>>);

impl ByKeeper {
    fn list(&self, number: u32) -> &[(OriginId, ConnectionId)] {
        self.0.get(number as usize).map(Vec::as_slice).unwrap_or_default()
    }

    fn add(&mut self, keeper: Keeper, origin: OriginId, token: ConnectionId) {
        let Some(number) = keeper.number().map(|number| number as usize) else { return };
        if self.0.len() <= number {
            self.0.resize_with(number + 1, Vec::new);
        }
        if let Some(list) = self.0.get_mut(number) {
            list.insert(list.partition_point(|(known, _)| *known <= origin), (origin, token));
        }
    }

    fn remove(&mut self, keeper: Keeper, token: ConnectionId) {
        if let Some(list) = keeper.number().and_then(|number| self.0.get_mut(number as usize)) {
            list.retain(|(_, known)| *known != token);
        }
    }
}

/// A worker's connections, by its own numbers for them, and by whose they are.
#[derive(Default)]
pub(crate) struct Connections {
    slots: Slots<Connection>,
    /// How many it began to make so far: the next one's number.
    begun: u64,
    /// The connection that was made last.
    newest: Option<ConnectionId>,
    kept: ByKeeper,
}

impl Connections {
    /// A place for a connection to `origin`.
    pub(super) fn take(&mut self, origin: OriginId, keeper: Keeper) -> ConnectionId {
        let token = ConnectionId::at(self.slots.take(|| Connection::new(origin, keeper)) as usize);
        let connection = &mut self[token];
        (connection.origin, connection.keeper, connection.state) = (origin, keeper, State::IDLE);
        self.kept.add(keeper, origin, token);
        token
    }

    /// A connection begins to be made: gives it the next number. Returns how many were begun before it.
    fn number(&mut self, token: ConnectionId) -> u64 {
        let before = self.begun;
        self.begun += 1;
        self[token].number = self.begun;
        before
    }

    /// Frees the place of a connection that is gone. False if it was free already.
    pub(super) fn free(&mut self, token: ConnectionId) -> bool {
        self.release(token);
        self.slots.free(token.place() as u32)
    }

    /// Whoever the connection was kept for needs it no more: it ends by itself. Returns who that was.
    pub(crate) fn release(&mut self, token: ConnectionId) -> Keeper {
        let keeper = std::mem::replace(&mut self[token].keeper, Keeper::Nobody);
        self.kept.remove(keeper, token);
        keeper
    }

    /// The connections that are kept for one user, session or slot, those that a user holds included.
    pub(crate) fn kept_for(&self, number: u32) -> impl Iterator<Item = ConnectionId> {
        self.kept.list(number).iter().map(|(_, token)| *token)
    }

    /// The connections of this keeper, which is one user, session or slot.
    pub(crate) fn kept(&self, keeper: Keeper) -> impl Iterator<Item = ConnectionId> {
        let all = keeper.number().map(|number| self.kept.list(number)).unwrap_or_default();
        all.iter().map(|(_, token)| *token).filter(move |token| self[*token].keeper == keeper)
    }

    /// Those of them that lead to `origin`, in the order in which they were added.
    #[inline]
    pub(crate) fn kept_to(&self, keeper: Keeper, origin: OriginId) -> impl Iterator<Item = ConnectionId> {
        let all = keeper.number().map(|number| self.kept.list(number)).unwrap_or_default();
        let first = all.partition_point(|(known, _)| *known < origin);
        let there = all.get(first..).unwrap_or_default().iter().take_while(move |(known, _)| *known == origin);
        there.map(|(_, token)| *token).filter(move |token| self[*token].keeper == keeper)
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

    /// How many are established: those that can carry calls, and those that leave.
    pub(crate) fn established(&self) -> u64 {
        self.iter().filter(|connection| connection.is_there()).count() as u64
    }

    /// Calls in flight on all of them.
    pub(crate) fn in_flight(&self) -> u64 {
        self.iter().map(|connection| connection.calls.len() as u64).sum()
    }
}

/// Tokens come from [`Connections::take`] alone, so that indexing cannot fail.
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
        let is_held = matches!(keeper, Keeper::Held { .. });
        self.connections[token].carries_one =
            self.terms.reconnect || !is_held && self.origins.keep_alive(origin) == KeepAlive::Call;
        token
    }

    /// Adds a connection in place of one that is gone, and that was of use or not.
    pub(crate) fn add_after(&mut self, origin: OriginId, never_answered: bool) -> ConnectionId {
        let token = self.add(origin, Keeper::Everybody);
        self.connections[token].history.answers =
            if never_answered { AnswerHistory::InVain } else { AnswerHistory::Untried };
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

    /// Whether the newest connection accepts no calls and has answered none, so that opening another would not help.
    pub(crate) fn newest_is_unusable(&self) -> bool {
        self.connections.newest.and_then(|token| self.connections.taken_at(token)).is_some_and(Connection::is_unusable)
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
                if let Some(address) = address.of_network() {
                    self.recorder.snapshot.addresses.moved_to(address);
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
        let number = self.connections.number(token);
        let (client, most) = (self.origins.client(origin, number), self.origins.asked_of(origin));
        self.connections[token].link = Link::new(client, most, now);
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
            Some(Address::Tcp(address) | Address::Udp(address)) => {
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
                if let Some(Address::Tcp(address) | Address::Udp(address)) = connection.addresses.front() {
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
        let route = self.origins.route(connection.origin);
        let address = connection.addresses.front().or_else(|| route?.addresses.first());
        connection.link.address = address.and_then(Address::of_network);
        self.recorder.snapshot.times.record(Timing::Connect, connection.link.connect_ns);
        match self.origins.route(connection.origin).and_then(|route| route.tls.as_ref()) {
            None => self.open(load, token, step, now),
            Some(tls) => {
                let channel = match connection.link.address {
                    Some(address) if tls.quic.is_some() => {
                        let place = tls.shares_sockets.then_some(token.place() as u32);
                        Channel::quic(tls, address, connection.link.most, place, now)
                    }
                    _ => Channel::tls(tls),
                };
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
        if channel.has_datagrams() {
            self.recorder.reads_datagrams();
        }
        let is_early = channel.is_early();
        self.connections[token].link.channel = channel;
        if is_early {
            return self.begin_early(load, token, step, now);
        }
        self.enter(token, State::Securing(step));
        self.flush_channel(token);
    }

    /// The server of an earlier session takes calls with the first datagrams: its protocol opens before the handshake is over.
    #[cold]
    fn begin_early<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, step: Step, now: Tick) {
        let link = &mut self.connections[token].link;
        link.early_since = now;
        link.client.sends_early(true);
        let generation = self.connections[token].generation;
        self.open(load, token, step, now);
        if self.connections[token].generation == generation {
            // What the server allowed then lies ready.
            self.channel_timer(load, token, now);
        }
    }

    /// A connection that sends early data was fed: its handshake may be over now.
    #[cold]
    pub(super) fn early_fed(&mut self, token: ConnectionId, now: Tick) {
        let connection = &mut self.connections[token];
        let link = &mut connection.link;
        let Some(handshake) = link.channel.handshake() else { return };
        link.handshake_ns = now.since(std::mem::replace(&mut link.early_since, Tick::NEVER));
        link.client.sends_early(false);
        let snapshot = &mut self.recorder.snapshot;
        snapshot.times.record(Timing::Tls, link.handshake_ns);
        snapshot.numbers.add(Counter::TlsResumed, u64::from(handshake.is_resumed));
        if link.channel.is_early_taken() {
            let counts = |id: &&CallId| self.calls.get(**id).is_some_and(|call| self.recorder.counts(call));
            let early = connection.calls.iter().filter(counts).count();
            self.recorder.snapshot.numbers.add(Counter::EarlyCalls, early as u64);
        } else {
            snapshot.events.add("early data refused (0-RTT)", 1);
        }
    }

    /// Sends the channel's own records, if it has any.
    pub(super) fn flush_channel(&mut self, token: ConnectionId) {
        let channel = &mut self.connections[token].link.channel;
        let mut written = 0;
        let outcome = channel.flush(&mut Socket { driver: &mut self.driver, token }, &mut written);
        self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64);
        if let Err(error) = outcome {
            return self.write_failed(token, &error);
        }
        self.arm_timer(token);
    }

    /// Arms the alarm for the channel's next timer, after something was sent.
    pub(super) fn arm_timer(&mut self, token: ConnectionId) {
        let link = &mut self.connections[token].link;
        if !link.channel.has_datagrams() {
            return;
        }
        link.timer = link.channel.timer();
        if link.timer.is_set() {
            self.deadlines.arm(token.place() as u32, link.timer);
        }
    }

    /// Goes on once the channel's tunnel stands or its handshake is over, after it was fed.
    #[inline]
    pub(super) fn was_fed<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        if matches!(self.connections[token].state, State::Securing(_) | State::Tunnelling(_)) {
            self.was_fed_before_it_is_open(load, token, now);
        }
    }

    #[cold]
    fn was_fed_before_it_is_open<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let connection = &mut self.connections[token];
        match connection.state {
            State::Securing(step) => {
                let Some(handshake) = connection.link.channel.handshake() else { return };
                connection.link.handshake_ns = now.since(step.since);
                self.recorder.snapshot.times.record(Timing::Tls, connection.link.handshake_ns);
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
    pub(super) fn opening_done<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
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
pub(super) fn failure_of(error: &io::Error) -> (Failure, String) {
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
    /// When the patience with a connection's peer ends: its deadline, put off by the time in which this worker stood still
    /// (for a call, [`Network::time_ends`] does it).
    pub(super) fn patience_ends(&self, token: ConnectionId) -> Tick {
        let connection = &self.connections[token];
        let due = connection.deadline();
        let since = match connection.state {
            _ if due == connection.link.stalled_until => due.before(self.terms.timeout_ns),
            _ if connection.is_being_made() => connection.link.began,
            State::Draining { .. } => due.before(FAREWELL_NS),
            _ => return due,
        };
        self.stops.put_off(since, due)
    }

    /// A deadline of a connection is over: of what its peer had to do, of a wait before it is made again, of a pause.
    pub(super) fn time_has_come<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        if self.connections[token].link.stalled_until <= now {
            return self.broken(load, token, Failure::Write, UNREAD, now);
        }
        let reason = match self.connections[token].state {
            State::Backoff { .. } => return self.backed_off(load, token, now),
            State::Vacant => return,
            // A pause before the connection's next call is over; the code that set it removes it.
            State::Idle { .. } | State::Open { .. } => return load.next_calls(self, token, now),
            State::Draining { .. } => {
                let reason = self.farewell(token);
                return self.lost(load, token, Failure::Closed, &reason, now);
            }
            State::Connecting(attempt) => return self.address_late(load, token, attempt, now),
            State::Tunnelling(_) => "the proxy has not answered CONNECT within the connect timeout",
            State::Securing(_) if self.connections[token].link.channel.has_datagrams() => {
                "no handshake of QUIC within the connect timeout: the target, or a firewall before it, may take no UDP"
            }
            State::Securing(_) => "no TLS handshake within the connect timeout",
            State::Opening(_) => "no opening handshake within the connect timeout",
        };
        self.connecting_failed(load, token, Failure::ConnectTimeout, reason, now);
    }
}

/// Draining: the peer takes no more calls on a connection.
impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// The peer takes no more calls on a connection. Calls that it has not processed, from this position on, and calls
    /// that were not sent yet, are made again elsewhere; the others may still be answered.
    pub(super) fn begin_draining<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        unprocessed: usize,
        now: Tick,
    ) {
        let connection = &mut self.connections[token];
        let unprocessed = unprocessed.saturating_sub(usize::from(is_broken(Rule::ProcessedIsNotSentAgain)));
        let from = unprocessed.min(connection.calls.len());
        let unprocessed: Vec<CallId> = connection.calls.drain(from..).collect();
        let unsent: Vec<CallId> = connection.queue.drain(..).collect();
        let error = connection.link.client.close_reason();
        let reason =
            error.map_or(Cow::Borrowed(REFUSED_TOO_OFTEN), |error| format!("{REFUSED_TOO_OFTEN}: {error}").into());
        if connection.is_open() || is_broken(Rule::LeavesOnce) {
            // A peer that announces an error closes the connection (RFC 9113 §5.4.1): bytes that it sent before are
            // read until then.
            let fails = connection.link.client.close_reason().is_some();
            self.census.leaves();
            self.enter(token, State::Draining { until: if fails { now + FAREWELL_NS } else { Tick::NEVER } });
            load.connection_leaves(self, token, now);
        } else if connection.state == (State::Draining { until: Tick::NEVER })
            && connection.link.client.close_reason().is_some()
        {
            self.enter(token, State::Draining { until: now + FAREWELL_NS });
        }
        for id in &unsent {
            if let Some(call) = self.calls.get_mut(*id) {
                call.place = Place::Waiting;
            }
        }
        if !unsent.is_empty() {
            load.refused_unprocessed(self, unsent, now);
        }
        self.make_elsewhere(load, unprocessed, &reason, now);
    }

    /// Closes a connection that takes no more calls once none is left on it. Returns false if it closed it.
    #[inline]
    pub(super) fn retire_if_empty<W: Workload<D, Tag = T>>(
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

/// Who ended a ready connection, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ender {
    /// An answer that was to be its last: the peer has not processed the calls behind it (RFC 9112 §9.6).
    LastAnswer,
    /// Its peer, in good order.
    PeerInOrder,
    /// Its peer, which has said why.
    PeerByWord,
    /// Its peer, or the way to it.
    Peer,
    /// brunt, for what a call on it got or did not get; for this reason the others fail.
    Brunt(&'static str),
}

impl Ender {
    /// Who ended a connection that has failed so. Where it was brunt, the other calls fail since an earlier one did.
    fn after(failure: Failure) -> Self {
        match failure {
            Failure::Closed | Failure::Read | Failure::Write | Failure::Tls => Self::Peer,
            _ => Self::Brunt(GIVEN_UP),
        }
    }
}

/// Which call bears the failure of its connection. The others end with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bearer {
    /// None: each has a failure of its own, or brunt gave the connection up.
    Nobody,
    /// The oldest of those that are not sent again.
    First,
    /// This one.
    Call(CallId),
}

/// How a ready connection was lost.
#[derive(Clone, Copy)]
struct Loss<'a> {
    ender: Ender,
    bearer: Bearer,
    failure: Failure,
    reason: &'a str,
}

/// What of a connection that is gone decides about the calls that were on it.
struct LostConnection {
    /// Whether the peer has processed those that it has answered, and no others: it answers in order, and has answered before.
    processed_in_order: bool,
    /// At most how many bytes of the connection its socket has taken: its peer can have those.
    bytes_taken: u64,
    /// How long after it was sent a call can have crossed the connection's end, in nanoseconds; 0 where none can have.
    crossed_within_ns: u64,
}

/// What becomes of a call whose connection is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallFate<'a> {
    /// It is sent again: its peer has not processed it.
    NotProcessed,
    /// It is sent again, this once: its peer has nothing of it, or it crossed the connection's end.
    Once,
    /// Its time was over.
    Late,
    /// It fails.
    Fails(Failure, &'a str),
    /// It is given up, as brunt ended the connection for another.
    GivenUp(&'a str),
}

impl LostConnection {
    /// What becomes of this call, which bears the connection's failure if it fails and `is_bearer`. One that does not `move` has
    /// a meaning on this connection only.
    ///
    /// | who ended the connection | calls without a byte sent | calls that were sent |
    /// | --- | --- | --- |
    /// | a last answer, or in order by a peer that answers in order | `NotProcessed`: sent again, up to 8 times | the same, if idempotent |
    /// | the peer otherwise | `Once` | `Once`, if idempotent and it may have crossed the connection's end; else fails |
    /// | brunt, for another call | `Once` | `GivenUp`, or fails |
    fn fate<'a, T>(&self, loss: &Loss<'a>, call: &Call<T>, is_bearer: bool, moves: bool, now: Tick) -> CallFate<'a> {
        if matches!(loss.failure, Failure::Timeout | Failure::Stalled) && call.expires <= now {
            return CallFate::Late;
        }
        // The call for which brunt ended the connection is not tried again: the connection did not fail it.
        let is_to_blame = is_bearer && matches!(loss.ender, Ender::Brunt(_));
        let nothing_sent = call.bytes_out_before < call.bytes_out_through && call.bytes_out_before >= self.bytes_taken;
        let is_behind = !is_broken(Rule::BehindALastAnswer)
            && match loss.ender {
                Ender::LastAnswer => true,
                Ender::PeerInOrder => self.processed_in_order && !call.alone && !nothing_sent,
                Ender::PeerByWord | Ender::Peer | Ender::Brunt(_) => false,
            };
        let has_crossed = call.alone && self.crossed_within_ns > 0 && now.since(call.sent) <= self.crossed_within_ns;
        if moves && !is_to_blame && !call.first_byte.is_set() && (nothing_sent || call.idempotent) {
            if is_behind && call.refusals < MOST_REFUSALS {
                return CallFate::NotProcessed;
            }
            if !call.has_had_its_retry && (nothing_sent || has_crossed) {
                return CallFate::Once;
            }
        }
        match loss.ender {
            Ender::LastAnswer if call.refusals >= MOST_REFUSALS => CallFate::Fails(Failure::Closed, REFUSED_TOO_OFTEN),
            _ if is_bearer => CallFate::Fails(loss.failure, loss.reason),
            Ender::Brunt(reason) => CallFate::GivenUp(reason),
            _ => CallFate::Fails(Failure::Closed, "the connection ended with an earlier call"),
        }
    }
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
        self.census.is_not_made();
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
        history.answers = history.answers.ended();
        if !history.without_since.is_set() && self.watched_since.is_set() {
            history.without_since = connection.link.began.max(self.watched_since);
        }
        let (origin, took_ns) = (connection.origin, now.since(connection.link.began));
        let waited = std::mem::take(&mut connection.queue);
        let gone = self.shut(token, End::Failed(failure, reason));
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
            Some(failure @ (WriteFailure::Reset | WriteFailure::Malformed(_))) => {
                self.broken(load, token, failure.failure(), &failure.reason(), now);
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
        // An answer without a length ends with the connection: the client has it now.
        let ended_one = match connection.link.client.closed() {
            // Somebody on the way may have cut it (RFC 9112, section 9.8).
            Some(Ok(_)) if !connection.link.channel.has_ended() => {
                return self.lost(load, token, Failure::Closed, CUT_SHORT, now);
            }
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
                    self.complete(load, id, End::ToldByPeer(failed.failure, &failed.reason), now);
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
        let (ender, bearer) = (Ender::PeerInOrder, Bearer::First);
        self.lose(load, token, Loss { ender, bearer, failure: Failure::Closed, reason: &reason }, now);
    }

    /// The reason with which the peer ends a connection, as far as it gave one.
    pub(super) fn farewell(&self, token: ConnectionId) -> Cow<'static, str> {
        match self.connections[token].link.client.close_reason() {
            Some(error) => self.in_its_words(token, format!("the peer ended the connection: {error}").into()),
            None => self.in_its_words(token, Cow::Borrowed("the peer closed before the answer was complete")),
        }
    }

    /// A reason with the words that the peer added to it, if it did.
    pub(super) fn in_its_words(&self, token: ConnectionId, reason: Cow<'static, str>) -> Cow<'static, str> {
        match self.connections[token].link.channel.parting_words() {
            Some(words) => format!("{reason}: {words}").into(),
            None => reason,
        }
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
            State::Open { .. } | State::Draining { .. } => self.lost(load, token, failure, reason, now),
            _ => self.connecting_failed(load, token, failure, reason, now),
        }
    }

    /// The peer ends a connection, ready or not yet, and says why.
    pub(super) fn ended_by_word<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        reason: &str,
        now: Tick,
    ) {
        if matches!(self.connections[token].state, State::Opening(_)) {
            return self.connecting_failed(load, token, Failure::Handshake, reason, now);
        }
        let (ender, bearer) = (Ender::PeerByWord, Bearer::First);
        self.lose(load, token, Loss { ender, bearer, failure: Failure::Closed, reason }, now);
    }

    /// A ready connection is gone.
    pub(super) fn lost<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        let bearer = match failure {
            // Calls that took too long have failures of their own.
            Failure::Timeout | Failure::Stalled => Bearer::Nobody,
            _ => Bearer::First,
        };
        self.lose(load, token, Loss { ender: Ender::after(failure), bearer, failure, reason }, now);
    }

    /// brunt gives a ready connection up for a call that was on it. The others fail for this reason.
    pub(super) fn close_for_another_call<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        reason: &'static str,
        now: Tick,
    ) {
        let (ender, bearer) = (Ender::Brunt(reason), Bearer::Nobody);
        self.lose(load, token, Loss { ender, bearer, failure: Failure::Closed, reason }, now);
    }

    /// A ready connection is gone after an answer that was to be its last.
    pub(super) fn ended_with_answer<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        let (ender, bearer) = (Ender::LastAnswer, Bearer::First);
        self.lose(load, token, Loss { ender, bearer, failure: Failure::Closed, reason: LAST_ANSWER }, now);
    }

    /// A ready connection is gone for what this call got.
    pub(super) fn lose_for_call<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        bearer: CallId,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        self.lose(
            load,
            token,
            Loss { ender: Ender::Brunt(GIVEN_UP), bearer: Bearer::Call(bearer), failure, reason },
            now,
        );
    }

    /// A ready connection is gone. [`Left::fate`] says what becomes of the calls on it.
    fn lose<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, loss: Loss<'_>, now: Tick) {
        let Loss { failure, reason, .. } = loss;
        let late_ns = self.behind(now).max(now.since(self.recorder.arrival(now)));
        if failure == Failure::Timeout {
            self.count_silence(token, now);
        }
        let connection = &mut self.connections[token];
        // In time, its successor would have been there that much earlier.
        connection.history.held_up = connection.history.held_up.max(late_ns);
        let has_answered = connection.history.answers == AnswerHistory::Answered;
        let may_have_crossed = has_answered && connection.is_open() && !matches!(loss.ender, Ender::Brunt(_));
        let left = LostConnection {
            // Frames tell which calls were processed.
            processed_in_order: has_answered && !connection.link.client.is_framed(),
            bytes_taken: connection.link.bytes_taken,
            crossed_within_ns: if may_have_crossed { MET_ITS_END_NS.max(2 * connection.link.connect_ns) } else { 0 },
        };
        connection.history.answers = connection.history.answers.ended();
        let calls = std::mem::take(&mut connection.calls);
        if calls.is_empty() && failure != Failure::Closed {
            self.recorder.trouble(failure, reason);
        }
        let end = match loss.ender {
            // What no call bears is told by those that come later.
            Ender::Brunt(others) if !calls.is_empty() => End::GivenUp(Failure::Closed, others),
            _ => End::Failed(failure, reason),
        };
        let gone = self.shut(token, end);
        let mut is_borne = false;
        for id in calls {
            let Some(call) = self.calls.get_mut(id) else { continue };
            let is_bearer = match loss.bearer {
                Bearer::Nobody => false,
                Bearer::First => !is_borne,
                Bearer::Call(bearer) => bearer == id,
            };
            let moves = !load.keeps_to_connection(call.tag);
            let counter = match left.fate(&loss, call, is_bearer, moves, now) {
                CallFate::NotProcessed => {
                    call.refusals += 1;
                    Counter::TurnedAway
                }
                CallFate::Once => {
                    call.has_had_its_retry = true;
                    Counter::Reconnects
                }
                CallFate::Late => {
                    let call = *call;
                    let (failure, reason) = self.lateness(id);
                    self.complete(load, id, call.end_of_time(failure, reason), now);
                    continue;
                }
                CallFate::Fails(failure, reason) => {
                    is_borne = true;
                    let end = match loss.ender {
                        Ender::PeerByWord => {
                            call.receive(now);
                            End::ToldByPeer(failure, reason)
                        }
                        _ => End::Failed(failure, reason),
                    };
                    self.complete(load, id, end, now);
                    continue;
                }
                CallFate::GivenUp(reason) => {
                    self.complete(load, id, End::GivenUp(Failure::Closed, reason), now);
                    continue;
                }
            };
            call.place = Place::Queued(token);
            self.recorder.snapshot.numbers.add(counter, u64::from(self.recorder.counts(call)));
            self.connections[token].queue.push_back(id);
        }
        self.carry_on(load, gone, now);
    }

    /// Closes a connection that its load has finished with, with a goodbye. Calls left on it fail.
    pub(crate) fn close<W: Workload<D, Tag = T>>(&mut self, load: &mut W, token: ConnectionId, now: Tick) {
        self.say_goodbye(token);
        let connection = &mut self.connections[token];
        if connection.is_being_made() {
            self.census.is_not_made();
        }
        let left: Vec<CallId> = connection.calls.drain(..).chain(connection.queue.drain(..)).collect();
        let end = End::GivenUp(Failure::Closed, FINISHED_WITH);
        self.shut(token, end);
        for id in left {
            self.complete(load, id, end, now);
        }
    }

    /// Drops the socket and its state; returns what is left. Later calls on it would end like `end`.
    fn shut<'a>(&mut self, token: ConnectionId, end: End<'a>) -> Gone<'a> {
        // A UDP socket that is closed tells the peer nothing.
        if self.connections[token].link.channel.has_datagrams() {
            let channel = &mut self.connections[token].link.channel;
            let written = channel.close(&mut Socket { driver: &mut self.driver, token });
            self.recorder.snapshot.numbers.add(Counter::WireOut, written as u64);
            self.note_losses_of(token);
        }
        self.driver.close(token);
        self.outgoing.clear();
        let connection = &mut self.connections[token];
        let has_left = connection.is_draining();
        let was_ready = connection.is_there();
        if was_ready {
            self.census.is_gone(has_left);
        }
        connection.state = State::IDLE;
        connection.unsent.clear();
        connection.generation = connection.generation.wrapping_add(1);
        if connection.history.answers == AnswerHistory::Answered {
            connection.history.answers = AnswerHistory::Untried;
        }
        if !is_broken(Rule::LostLeavesLists) {
            connection.membership = PoolMembership::Unlisted;
        }
        let mut link = std::mem::replace(&mut connection.link, Link::none());
        if link.holds.are_any() {
            let now = self.driver.now();
            link.holds.end(now, &mut self.recorder.snapshot.numbers);
        }
        let events = &mut self.recorder.snapshot.events;
        link.client.take_events(&mut |name, count| events.add(name, count));
        Gone { token, client: link.client, end, has_left, was_ready }
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
        if gone.has_left && !connection.queue.is_empty() {
            // The load hears of the connection's end first: it gives these calls to others, or to another in this place.
            let again: Vec<CallId> = connection.queue.drain(..).collect();
            for id in &again {
                if let Some(call) = self.calls.get_mut(*id) {
                    call.place = Place::Waiting;
                }
            }
            load.gone(self, gone, now);
            return load.refused_unprocessed(self, again, now);
        }
        if self.connections[token].queue.is_empty() {
            load.gone(self, gone, now);
        } else if !self.back_off(token, now) {
            self.connect(load, token, now);
        }
    }

    /// Waits before the connection is made again, if the last attempt was of no use. Returns whether it waits.
    pub(crate) fn back_off(&mut self, token: ConnectionId, now: Tick) -> bool {
        if !self.connections[token].history.never_answered() {
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
    pub(crate) fn inherit(&mut self, old: ConnectionId, fresh: ConnectionId, now: Tick) -> bool {
        let behind = self.behind(now);
        let old = &self.connections[old];
        let service = if old.calls.is_empty() { old.history.answers.ended() } else { AnswerHistory::Untried };
        let held_up = old.history.held_up.max(behind);
        let history = &mut self.connections[fresh].history;
        (history.answers, history.held_up) = (service, held_up);
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
        if !self.connections.iter().any(|connection| is_silent(connection.state)) {
            "no answer to connecting"
        } else if self.signs.is_unheard() {
            "it takes connections, and says nothing on them"
        } else {
            "it takes connections, and their handshake was not over"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::calls::Counted;
    use crate::network::failures::CUT;

    /// The fate of a call whose bytes were all sent, on a connection of HTTP/1.1 that had answered before.
    fn fate(ender: Ender, change: impl FnOnce(&mut Call<u32>)) -> CallFate<'static> {
        let left = LostConnection { processed_in_order: true, bytes_taken: 100, crossed_within_ns: 10 };
        let mut call = Call::new(7, Tick::EPOCH, true, Counted::AtOnce);
        call.send(Tick::from_ns(1000), 5000);
        (call.bytes_out_before, call.bytes_out_through) = (50, 80);
        change(&mut call);
        let loss = Loss { ender, bearer: Bearer::First, failure: Failure::Closed, reason: "gone" };
        left.fate(&loss, &call, true, true, Tick::from_ns(2000))
    }

    #[test]
    fn only_what_may_be_made_twice_is_sent_again_when_its_peer_can_have_it() {
        for ender in [Ender::LastAnswer, Ender::PeerInOrder] {
            assert!(matches!(fate(ender, |_| {}), CallFate::Fails(..)), "{ender:?}");
            assert_eq!(fate(ender, |call| call.idempotent = true), CallFate::NotProcessed, "{ender:?}");
            // That it was sent again once, since nothing of it had been sent, makes it no safer to make twice.
            assert!(matches!(fate(ender, |call| call.has_had_its_retry = true), CallFate::Fails(..)), "{ender:?}");
        }
        assert!(matches!(fate(Ender::Peer, |call| call.idempotent = true), CallFate::Fails(..)), "it was no crossing");
    }

    #[test]
    fn a_call_of_which_nothing_was_sent_is_sent_again_once() {
        let unsent = |call: &mut Call<u32>| (call.bytes_out_before, call.bytes_out_through) = (100, 130);
        assert_eq!(fate(Ender::Peer, unsent), CallFate::Once);
        let again = |call: &mut Call<u32>| {
            unsent(call);
            call.has_had_its_retry = true;
        };
        assert!(matches!(fate(Ender::Peer, again), CallFate::Fails(..)));
        let answered = |call: &mut Call<u32>| {
            unsent(call);
            call.first_byte = Tick::from_ns(1500);
        };
        assert!(matches!(fate(Ender::Peer, answered), CallFate::Fails(..)), "its answer has begun");
    }

    #[test]
    fn what_brunt_ends_a_connection_for_is_not_sent_again_and_what_was_not_sent_behind_it_is() {
        let left = LostConnection { processed_in_order: false, bytes_taken: 20, crossed_within_ns: 0 };
        let mut call = Call::new(7, Tick::EPOCH, true, Counted::AtOnce);
        call.send(Tick::from_ns(1000), 5000);
        (call.bytes_out_before, call.bytes_out_through) = (20, 50);
        let (ender, bearer) = (Ender::after(Failure::Protocol), Bearer::First);
        let loss = Loss { ender, bearer, failure: Failure::Protocol, reason: "no HTTP" };
        let fate = |call: &Call<u32>, is_bearer| left.fate(&loss, call, is_bearer, true, Tick::from_ns(1005));
        assert_eq!(fate(&call, true), CallFate::Fails(Failure::Protocol, "no HTTP"));
        assert_eq!(fate(&call, false), CallFate::Once);
        call.bytes_out_before = 10;
        assert_eq!(fate(&call, false), CallFate::GivenUp(GIVEN_UP));
        // Whose time is over is late, whatever else it is.
        let late =
            Loss { ender: Ender::after(Failure::Timeout), bearer: Bearer::Nobody, failure: Failure::Timeout, ..loss };
        (call.bytes_out_before, call.expires) = (20, Tick::from_ns(1004));
        assert_eq!(left.fate(&late, &call, false, true, Tick::from_ns(1005)), CallFate::Late);
    }

    #[test]
    fn a_call_that_has_a_meaning_on_its_connection_only_is_sent_on_no_other() {
        let left = LostConnection { processed_in_order: true, bytes_taken: 0, crossed_within_ns: 10 };
        let mut call = Call::new(7, Tick::EPOCH, true, Counted::AtOnce);
        call.send(Tick::from_ns(1000), 5000);
        (call.bytes_out_through, call.alone, call.idempotent) = (30, true, true);
        let fate_by = |ender, reason, is_bearer| {
            let loss = Loss { ender, bearer: Bearer::First, failure: Failure::Read, reason };
            left.fate(&loss, &call, is_bearer, false, Tick::from_ns(1005))
        };
        assert_eq!(fate_by(Ender::Peer, "reset", true), CallFate::Fails(Failure::Read, "reset"));
        let others = CallFate::Fails(Failure::Closed, "the connection ended with an earlier call");
        assert_eq!(fate_by(Ender::PeerInOrder, "closed", false), others);
        assert_eq!(fate_by(Ender::Brunt(CUT), "left", false), CallFate::GivenUp(CUT), "no server was missing");
    }

    #[test]
    fn a_call_that_crossed_its_connections_end_is_sent_again_if_it_may_be() {
        let crossing = |idempotent: bool, sent_ns: u64| {
            fate(Ender::Peer, |call| {
                call.sent = Tick::from_ns(sent_ns);
                (call.alone, call.idempotent) = (true, idempotent);
            })
        };
        assert_eq!(crossing(true, 1995), CallFate::Once);
        assert!(matches!(crossing(false, 1995), CallFate::Fails(..)));
        assert!(matches!(crossing(true, 1980), CallFate::Fails(..)), "too long ago");
    }
}
