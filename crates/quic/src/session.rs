//! One connection: records in and out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, Dir, Event, FinishError, IdleTimeout, MtuDiscoveryConfig, ReadError, Side, StreamEvent, StreamId,
    TransportConfig, VarInt, WriteError,
};

use crate::clock::Clock;
use crate::ending::{Cause, Ending, parting_words};
use crate::record::{HEAD_BYTES, Kind, Record};

/// How many streams are opened ahead of their use at the least: the peer's limit is known by opening alone.
const AHEAD: u64 = 64;
/// The size of a block that written bytes are gathered in, in bytes.
const BLOCK_BYTES: usize = 4096;

/// A connection's limits for its peer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many streams in both directions the peer may have open.
    pub streams: u32,
    /// How many streams in one direction the peer may have open.
    pub one_way_streams: u32,
    /// The window of each stream, in bytes.
    pub stream_window: u32,
    /// The window of the connection, in bytes.
    pub connection_window: u32,
    /// How much is sent before the peer has acknowledged it, in bytes: what lies above waits here.
    pub send_window: u64,
    /// After how many nanoseconds of silence a connection ends; 0 for never.
    pub idle_ns: u64,
    /// Whether larger datagrams are tried (RFC 8899). The socket must not let them be fragmented.
    pub finds_path_mtu: bool,
}

impl Limits {
    /// Limits that hold no server back, and allow it no streams but those of HTTP/3 and a few unknown ones.
    pub const CLIENT: Self = Self {
        streams: 0,
        one_way_streams: 16,
        stream_window: 1 << 24,
        connection_window: 1 << 28,
        send_window: 1 << 20,
        idle_ns: 0,
        finds_path_mtu: true,
    };

    /// Limits of a server.
    pub const SERVER: Self = Self { streams: 256, idle_ns: 30_000_000_000, finds_path_mtu: false, ..Self::CLIENT };

    pub(crate) fn transport(&self) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(self.streams.into())
            .max_concurrent_uni_streams(self.one_way_streams.into())
            .stream_receive_window(self.stream_window.into())
            .receive_window(self.connection_window.into())
            .send_window(self.send_window)
            .datagram_receive_buffer_size(None);
        let idle = (self.idle_ns > 0).then(|| IdleTimeout::try_from(Duration::from_nanos(self.idle_ns)).ok());
        transport.max_idle_timeout(idle.flatten());
        transport.mtu_discovery_config(self.finds_path_mtu.then(MtuDiscoveryConfig::default));
        Arc::new(transport)
    }
}

/// What [`Session::read`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// So many bytes of records are in the buffer.
    Bytes(usize),
    /// There is nothing before another datagram or a timer.
    Nothing,
    /// The connection has ended, and all that came before was read.
    End(Ending),
}

/// Bytes of a stream that wait for a window.
#[derive(Debug, Default)]
struct Waiting {
    pieces: VecDeque<Bytes>,
    /// Whether our side ends with them.
    ends: bool,
}

/// One connection's streams, as records.
#[derive(Debug)]
pub struct Session {
    pub(crate) connection: Core,
    clock: Clock,
    /// Streams that may have something to read.
    readable: VecDeque<StreamId>,
    /// Records without data that are still to be read.
    told: VecDeque<Record>,
    waiting: HashMap<StreamId, Waiting>,
    /// Streams that were opened, and those of them that were written to: in both directions, in one.
    opened: [u64; 2],
    used: u64,
    /// How many are opened ahead of their use.
    ahead: u64,
    /// How many the protocol was told of.
    announced: u64,
    block: BytesMut,
    is_established: bool,
    ending: Option<Ending>,
    is_close_told: bool,
    parting_words: Option<Box<str>>,
    /// What was written before the handshake was over, where a session is resumed and its server takes early data (0-RTT): all of it is
    /// written again if the server refuses.
    early: Option<Vec<u8>>,
    /// Whether the server took early data.
    is_early_taken: bool,
}

/// quinn-proto's connection, which has no text of its own.
pub(crate) struct Core(pub(crate) Connection);

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

impl Session {
    pub(crate) fn new(connection: Connection, clock: Clock) -> Self {
        Self {
            connection: Core(connection),
            clock,
            readable: VecDeque::new(),
            told: VecDeque::new(),
            waiting: HashMap::new(),
            opened: [0; 2],
            used: 0,
            ahead: AHEAD,
            announced: 0,
            block: BytesMut::new(),
            is_established: false,
            ending: None,
            is_close_told: false,
            parting_words: None,
            early: None,
            is_early_taken: false,
        }
    }

    /// Makes it open so many streams ahead, if the peer allows it, that this many can always be in flight.
    pub(crate) fn opening_ahead(self, streams: u64) -> Self {
        Self { ahead: streams.saturating_mul(2).max(AHEAD), ..self }
    }

    /// Makes it write early data, where the connection can: its streams are opened by what the server allowed last time.
    pub(crate) fn beginning_early(mut self) -> Self {
        if self.connection.0.has_0rtt() {
            self.early = Some(Vec::new());
            self.open_ahead();
        }
        self
    }

    /// Whether what is written now goes as early data.
    pub fn is_early(&self) -> bool {
        self.early.is_some()
    }

    /// Whether the server took early data, once the handshake is over.
    pub fn is_early_taken(&self) -> bool {
        self.is_early_taken
    }

    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// The protocol that both agreed on (ALPN, RFC 7301).
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.handshake_data().and_then(|data| data.protocol)
    }

    fn handshake_data(&self) -> Option<quinn_proto::crypto::rustls::HandshakeData> {
        let data = self.connection.0.crypto_session().handshake_data()?;
        data.downcast().ok().map(|data| *data)
    }

    /// How many packets that were sent are lost, as far as is known.
    pub fn lost_packets(&self) -> u64 {
        self.connection.0.stats().path.lost_packets
    }

    /// The smoothed round-trip time (RFC 9002, section 5.3), in nanoseconds, once a packet was acknowledged in the handshake.
    pub fn rtt_ns(&self) -> Option<u64> {
        self.is_established.then(|| u64::try_from(self.connection.0.rtt().as_nanos()).unwrap_or(u64::MAX))
    }

    /// What the peer said in words as its protocol closed the connection.
    pub fn parting_words(&self) -> Option<&str> {
        self.parting_words.as_deref()
    }

    /// When [`tick`](Self::tick) is to be called, in nanoseconds. Ask after the last datagram was taken ([`Client::transmit`](crate::Client::transmit)).
    #[inline]
    pub fn timeout(&mut self) -> Option<u64> {
        let clock = self.clock;
        self.connection.0.poll_timeout().map(|at| clock.ns(at))
    }

    /// A timer has run out.
    pub fn tick(&mut self, now: u64) {
        self.connection.0.handle_timeout(self.clock.instant(now));
        self.poll();
    }

    /// Ends the connection for an error code of the protocol; the peer is told with the next datagram.
    pub fn close(&mut self, code: u64, now: u64) {
        self.connection.0.close(self.clock.instant(now), varint(code), Bytes::new());
    }

    /// Reads records into `buffer`, which has room for a record's head and more. Call it after datagrams and timers, until there is nothing.
    pub fn read(&mut self, buffer: &mut [u8]) -> Read {
        self.poll();
        if let Some(head) = buffer.first_chunk_mut()
            && let Some(record) = self.told.pop_front()
        {
            *head = record.bytes();
            return Read::Bytes(HEAD_BYTES);
        }
        while let Some(id) = self.readable.pop_front() {
            if let Some(count) = self.read_stream(id, buffer) {
                return Read::Bytes(count);
            }
        }
        let Some(ending) = self.ending.take() else { return Read::Nothing };
        // The protocol hears first what its peer's said.
        if let Cause::Application(code) = ending.cause
            && !std::mem::replace(&mut self.is_close_told, true)
            && let Some(head) = buffer.first_chunk_mut()
        {
            *head = Record::new(Kind::Close, 0, code).bytes();
            self.ending = Some(ending);
            return Read::Bytes(HEAD_BYTES);
        }
        Read::End(ending)
    }

    /// Reads one stream; `None` if there is nothing.
    fn read_stream(&mut self, id: StreamId, buffer: &mut [u8]) -> Option<usize> {
        let mut stream = self.connection.0.recv_stream(id);
        let mut chunks = stream.read(true).ok()?;
        let (head, room) = buffer.split_first_chunk_mut::<HEAD_BYTES>()?;
        let (mut count, mut last, mut reset) = (0, false, None);
        let is_full = loop {
            let Some(rest) = room.get_mut(count..).filter(|rest| !rest.is_empty()) else { break true };
            match chunks.next(rest.len()) {
                Ok(Some(chunk)) => {
                    if let Some(to) = rest.get_mut(..chunk.bytes.len()) {
                        to.copy_from_slice(&chunk.bytes);
                    }
                    count += chunk.bytes.len();
                }
                Ok(None) => {
                    last = true;
                    break false;
                }
                Err(ReadError::Blocked) => break false,
                Err(ReadError::Reset(code)) => {
                    reset = Some(code);
                    break false;
                }
            }
        };
        // The next datagram carries what the peer may send more.
        let _ = chunks.finalize();
        if is_full {
            self.readable.push_front(id);
        }
        let reset = reset.map(|code| Record::new(Kind::Reset, id.into(), code.into_inner()));
        match reset {
            Some(reset) if count == 0 => *head = reset.bytes(),
            _ if count == 0 && !last => return None,
            _ => *head = Record::data(id.into(), last, count).bytes(),
        }
        if count > 0 {
            self.told.extend(reset);
        }
        Some(HEAD_BYTES + count)
    }

    /// Takes what has happened from quinn-proto.
    pub(crate) fn poll(&mut self) {
        while let Some(event) = self.connection.0.poll() {
            match event {
                Event::Connected => {
                    self.is_established = true;
                    self.is_early_taken = self.early.is_some() && self.connection.0.accepted_0rtt();
                    match self.early.take() {
                        Some(records) if !self.is_early_taken => self.write_again(&records),
                        _ => self.open_ahead(),
                    }
                }
                Event::ConnectionLost { reason } => {
                    self.parting_words = parting_words(&reason);
                    self.ending = Some(Ending::of(&reason));
                }
                Event::Stream(event) => self.stream_event(&event),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {}
            }
        }
    }

    fn stream_event(&mut self, event: &StreamEvent) {
        match *event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.connection.0.streams().accept(dir) {
                    self.told.push_back(Record::new(Kind::Open, id.into(), 0));
                    self.readable.push_back(id);
                }
            }
            StreamEvent::Readable { id } => {
                if self.readable.back() != Some(&id) {
                    self.readable.push_back(id);
                }
            }
            StreamEvent::Writable { id } => self.write_waiting(id),
            StreamEvent::Stopped { id, error_code } => {
                self.waiting.remove(&id);
                // RFC 9000, section 3.5. The stream may be gone already.
                let _ = self.connection.0.send_stream(id).reset(error_code);
                self.told.push_back(Record::new(Kind::Stop, id.into(), error_code.into_inner()));
            }
            StreamEvent::Available { dir: Dir::Bi } => self.open_ahead(),
            StreamEvent::Available { dir: Dir::Uni } => {
                let own: Vec<_> = self.waiting.keys().copied().filter(|id| id.dir() == Dir::Uni).collect();
                for id in own {
                    self.write_waiting(id);
                }
            }
            StreamEvent::Finished { .. } => {}
        }
    }

    /// Opens streams ahead of their use, and tells how many there are.
    fn open_ahead(&mut self) {
        if self.connection.0.side() == Side::Server {
            return;
        }
        let [bi, _] = &mut self.opened;
        while *bi < self.used.saturating_add(self.ahead) && self.connection.0.streams().open(Dir::Bi).is_some() {
            *bi += 1;
        }
        let bi = *bi;
        if !self.waiting.is_empty() {
            // After a refusal of early data the peer may allow fewer streams than it had.
            let open = |id: &StreamId| id.dir() == Dir::Bi && id.initiator() == Side::Client && id.index() < bi;
            let now_open: Vec<_> = self.waiting.keys().copied().filter(open).collect();
            for id in now_open {
                self.write_waiting(id);
            }
        }
        if bi > self.announced {
            self.announced = bi;
            self.told.push_back(Record::new(Kind::Streams, 0, bi));
        }
    }

    /// Whether a stream is open to be written to; opens one of our own in one direction.
    fn is_open(&mut self, id: StreamId) -> bool {
        let [bi, uni] = &mut self.opened;
        if id.initiator() != self.connection.0.side() {
            return true;
        }
        if id.dir() == Dir::Bi {
            self.used = self.used.max(id.index() + 1);
            return id.index() < *bi;
        }
        while *uni <= id.index() && self.connection.0.streams().open(Dir::Uni).is_some() {
            *uni += 1;
        }
        id.index() < *uni
    }

    /// Writes early data anew that the server has refused: it has seen none of the streams.
    fn write_again(&mut self, records: &[u8]) {
        let blocked: Vec<_> = self.waiting.drain().map(|(id, _)| id).collect();
        (self.opened, self.used) = ([0; 2], 0);
        self.open_ahead();
        self.take(records, None);
        for id in blocked.into_iter().filter(|id| !self.waiting.contains_key(id)).collect::<Vec<_>>() {
            self.told.push_back(Record::new(Kind::Writable, id.into(), 0));
        }
    }

    /// Takes whole records from the protocol. Returns how many bytes of streams are in them.
    pub fn write(&mut self, records: &[u8], now: u64) -> usize {
        if let Some(early) = &mut self.early {
            early.extend_from_slice(records);
        }
        self.take(records, Some(now))
    }

    /// Takes whole records; without a time, the connection is not closed for them.
    fn take(&mut self, mut records: &[u8], now: Option<u64>) -> usize {
        let mut bytes = 0;
        while let Some(record) = Record::read(records) {
            let rest = records.get(HEAD_BYTES..).unwrap_or(&[]);
            let (data, rest) = rest.split_at_checked(record.length()).unwrap_or((rest, &[]));
            records = rest;
            bytes += data.len();
            let Ok(id) = VarInt::from_u64(record.stream).map(StreamId::from) else { continue };
            match record.kind {
                Kind::Data | Kind::Last => self.write_data(id, data, record.kind == Kind::Last),
                Kind::Reset => {
                    self.waiting.remove(&id);
                    if self.is_open(id) {
                        // It may have ended already.
                        let _ = self.connection.0.send_stream(id).reset(varint(record.value));
                    }
                }
                Kind::Stop => {
                    let _ = self.connection.0.recv_stream(id).stop(varint(record.value));
                }
                Kind::Close => {
                    if let Some(now) = now {
                        self.close(record.value, now);
                    }
                }
                Kind::Open | Kind::Streams | Kind::Blocked | Kind::Writable => {}
            }
        }
        // Half of the stock is used: the peer's limit is looked at again.
        if self.announced - self.used.min(self.announced) < self.ahead / 2 {
            self.open_ahead();
        }
        bytes
    }

    fn write_data(&mut self, id: StreamId, data: &[u8], last: bool) {
        if self.block.capacity() < data.len() {
            self.block.reserve(data.len().max(BLOCK_BYTES));
        }
        self.block.extend_from_slice(data);
        let bytes = self.block.split().freeze();
        if let Some(waiting) = self.waiting.get_mut(&id) {
            waiting.pieces.push_back(bytes);
            waiting.ends |= last;
            return;
        }
        if let Some((rest, last)) = self.write_now(id, bytes, last) {
            self.waiting.insert(id, Waiting { pieces: [rest].into(), ends: last });
            self.told.push_back(Record::new(Kind::Blocked, id.into(), 0));
        }
    }

    /// Writes what windows allow; returns the rest, and whether our side ends with it.
    fn write_now(&mut self, id: StreamId, bytes: Bytes, last: bool) -> Option<(Bytes, bool)> {
        if !self.is_open(id) {
            return Some((bytes, last));
        }
        let mut stream = self.connection.0.send_stream(id);
        let mut rest = [bytes];
        while rest.iter().any(|bytes| !bytes.is_empty()) {
            match stream.write_chunks(&mut rest) {
                Ok(_) => {}
                Err(WriteError::Blocked) => {
                    let [rest] = rest;
                    return Some((rest, last));
                }
                // Nobody reads it: that is told by an event.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return None,
            }
        }
        if last {
            match stream.finish() {
                Ok(()) | Err(FinishError::Stopped(_) | FinishError::ClosedStream) => {}
            }
        }
        None
    }

    /// Writes what waited for a window.
    fn write_waiting(&mut self, id: StreamId) {
        let Some(mut waiting) = self.waiting.remove(&id) else { return };
        while let Some(piece) = waiting.pieces.pop_front() {
            let last = waiting.ends && waiting.pieces.is_empty();
            if let Some((rest, _)) = self.write_now(id, piece, last) {
                waiting.pieces.push_front(rest);
                self.waiting.insert(id, waiting);
                return;
            }
        }
        self.told.push_back(Record::new(Kind::Writable, id.into(), 0));
    }

    /// Appends the next datagrams to `out`, at most so many. Returns where they go, and the length of each but the last; `None` if there is
    /// none now.
    pub(crate) fn transmit(
        &mut self,
        now: u64,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Option<(std::net::SocketAddr, usize)> {
        let transmit = self.connection.0.poll_transmit(self.clock.instant(now), most, out)?;
        Some((transmit.destination, transmit.segment_size.unwrap_or(transmit.size)))
    }
}

/// A number as QUIC carries it; the largest one for a number beyond 2^62.
pub(crate) fn varint(number: u64) -> VarInt {
    VarInt::from_u64(number).unwrap_or(VarInt::MAX)
}
