//! One of a worker's connections and what is under way on it.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use rustls::ClientConnection;

use super::unsent::Unsent;
use crate::protocol::Client;

/// A call under way.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else about it")]
pub(super) struct Call {
    /// When it was due.
    pub(super) due: u64,
    /// When it was sent; [`NEVER`] while it waits for its connection.
    pub(super) sent: u64,
    /// When the first byte of its answer came; [`NEVER`] before.
    pub(super) first_byte: u64,
    /// Its number among all calls.
    pub(super) index: u64,
    /// Whether it counts: it was due in the measured part.
    pub(super) measured: bool,
    /// Whether it may be sent again.
    pub(super) idempotent: bool,
    /// Whether it was sent again already.
    pub(super) again: bool,
    /// Whether it counts for nothing if no answer comes in time; it is due, for the figures, when it ends otherwise.
    pub(super) optional: bool,
    /// When it has taken too long; [`NEVER`] while it was not sent.
    pub(super) expires: u64,
    /// The status with which it ends once its bytes are sent, if it waits for no answer.
    pub(super) ends_sent: Option<u16>,
    /// How many bytes have been given to its connection up to its own last.
    pub(super) last_byte: u64,
}

/// A time that has not come.
pub(super) const NEVER: u64 = u64::MAX;

impl Call {
    pub(super) fn new(due: u64, index: u64, measured: bool) -> Self {
        Self {
            due,
            sent: NEVER,
            first_byte: NEVER,
            index,
            measured,
            idempotent: false,
            again: false,
            optional: false,
            expires: NEVER,
            ends_sent: None,
            last_byte: 0,
        }
    }
}

/// Where in its life a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// There is none.
    Idle,
    /// There is none, and none is made before the deadline: the last came to nothing.
    Backoff,
    /// The socket is being connected.
    Connecting,
    /// The TLS handshake is under way.
    Handshaking,
    /// The protocol's own opening exchange is under way.
    Opening,
    /// Calls can be sent.
    Open,
}

/// What lies between the protocol and the socket.
pub(super) enum Channel {
    Plain,
    Tls(Box<ClientConnection>),
}

/// Who makes calls on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The flood, whose connections are all alike.
    Flood,
    /// A virtual user.
    User(u32),
    /// A virtual user who has it for itself until it closes it, and calls on it by name.
    Held(u32),
    /// Every user.
    Pool,
    /// Nobody: there is no connection.
    Nobody,
}

/// One of a worker's connections.
pub(super) struct Connection {
    pub(super) owner: Owner,
    /// Where it goes, by the worker's number for it.
    pub(super) origin: usize,
    /// Bytes received since it was made, after decryption.
    pub(super) bytes_in: u64,
    pub(super) state: State,
    pub(super) channel: Channel,
    pub(super) client: Box<dyn Client>,
    /// Calls in flight, oldest first.
    pub(super) calls: VecDeque<Call>,
    /// Calls that wait until the connection is ready.
    pub(super) queue: VecDeque<Call>,
    /// Bytes that the socket did not take yet.
    pub(super) unsent: Unsent,
    /// Bytes given to it since it was made, sent or not, before encryption.
    pub(super) bytes_out: u64,
    /// Grows whenever the connection is closed, so that it shows when what one was busy with is gone.
    pub(super) generation: u32,
    /// When the socket began to connect.
    pub(super) began: u64,
    /// When the socket was connected, or TLS was there: when what comes next in connecting began.
    pub(super) connected: u64,
    /// Since when it could carry (another) call.
    pub(super) ready_since: u64,
    /// When connecting is given up, or backing off is over, or a pause before its next call; [`NEVER`] for none.
    pub(super) deadline: u64,
    /// Attempts in a row that brought no answer.
    pub(super) fruitless: u32,
    /// Addresses tried in this attempt.
    pub(super) tried: usize,
    /// Whether it was answered since it was connected.
    pub(super) served: bool,
    /// Whether it stands in the list of those that can carry a call.
    pub(super) listed: bool,
    /// Whether the run's first attempt to connect it is over.
    pub(super) settled: bool,
}

impl Connection {
    pub(super) fn new(client: Box<dyn Client>, owner: Owner, origin: usize) -> Self {
        Self {
            owner,
            origin,
            bytes_in: 0,
            state: State::Idle,
            channel: Channel::Plain,
            client,
            calls: VecDeque::new(),
            queue: VecDeque::new(),
            unsent: Unsent::default(),
            bytes_out: 0,
            generation: 0,
            began: 0,
            connected: 0,
            ready_since: 0,
            deadline: NEVER,
            fruitless: 0,
            tried: 0,
            served: false,
            listed: false,
            settled: false,
        }
    }

    /// Whether bytes are read from its socket.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.state, State::Handshaking | State::Opening | State::Open)
    }

    /// Whether the socket has taken everything that was to be sent.
    pub(super) fn is_sent(&self) -> bool {
        match &self.channel {
            Channel::Plain => self.unsent.is_empty(),
            Channel::Tls(tls) => self.unsent.is_empty() && !tls.wants_write(),
        }
    }

    /// Whether everything up to this call's last byte was sent.
    #[inline]
    pub(super) fn has_sent(&self, call: &Call) -> bool {
        self.unsent.is_empty() || call.last_byte + self.unsent.len() as u64 <= self.bytes_out
    }

    /// When something must be done about it if nothing else happens.
    pub(super) fn expiry(&self) -> u64 {
        match self.state {
            State::Idle | State::Backoff => self.deadline,
            State::Connecting | State::Handshaking | State::Opening => {
                // A call that was sent before and waits to be sent again keeps its timeout.
                self.queue.iter().map(|call| call.expires).fold(self.deadline, u64::min)
            }
            State::Open => self.calls.front().map_or(self.deadline, |call| call.expires),
        }
    }
}

/// A worker's connections, by its own numbers for them.
pub(super) struct Connections(pub(super) Vec<Connection>);

/// Numbers of connections are made by the worker alone and never exceed their number.
#[allow(clippy::indexing_slicing)]
impl Index<usize> for Connections {
    type Output = Connection;

    #[inline]
    fn index(&self, token: usize) -> &Connection {
        &self.0[token]
    }
}

#[allow(clippy::indexing_slicing)]
impl IndexMut<usize> for Connections {
    #[inline]
    fn index_mut(&mut self, token: usize) -> &mut Connection {
        &mut self.0[token]
    }
}
