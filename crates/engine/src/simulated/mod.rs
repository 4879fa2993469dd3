//! A simulated machine, for tests of whole runs: its time and its peers are made up, so that a run of minutes takes no
//! time and always goes the same way.
//!
//! [`run_part`] is [`crate::run_part`] on such a machine. After each step of a worker its connections and calls are
//! checked against the invariants between two steps; a violation panics.
//!
//! Its drivers share one clock. The clock moves when every driver waits, to the next event of any of them, and then
//! only that driver goes on: however many workers there are, one thread runs at a time, in an order that is always the
//! same.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brunt_plan::plan::Plan;
use brunt_protocol::Registry;
use brunt_protocol::replay::WorkerReplay;
use brunt_record::time::Tick;
use brunt_script::ScriptHost;

use crate::run::{self, RunInputs};
use crate::transport::{Clock, ConnectionId, Driver, Machine, Ready, Resolve};
use crate::{EngineError, Finished, Gate, Observer, RunShare, StopHandle};

use self::world::{Place, Socket, World, lock};

pub use crate::rules::{Rule, break_rule};
pub use crate::transport::Address;

/// Carries a part of `plan` out on a simulated machine, and returns what happened in it.
///
/// # Errors
/// As [`crate::run_part`].
pub fn run_part(
    net: &VirtualNet,
    plan: &Plan,
    part: RunShare,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    run::run(plan, RunInputs { machine: net, part, registry, scripts, stop, trace: None }, observer)
}

/// Replays logs on a simulated machine, one for each worker of `part`, and returns what happened.
///
/// # Errors
/// As [`crate::run_replay_part`].
pub fn run_replay_part(
    net: &VirtualNet,
    plan: &Plan,
    part: RunShare,
    logs: Vec<Box<dyn WorkerReplay>>,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
) -> Result<Finished, EngineError> {
    let stop = &StopHandle::default();
    run::run_replay(plan, logs, &RunInputs { machine: net, part, registry, scripts, stop, trace: None }, observer)
}

/// A peer's actions, each with its delay after the event that it reacts to, in nanoseconds.
pub type Reaction = Vec<(u64, Act)>;

/// An event of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// It is accepted.
    Accept,
    /// It is refused.
    Refuse,
    /// Bytes come from the peer.
    Send(Vec<u8>),
    /// The peer closes its side.
    Close,
    /// The peer resets it.
    Reset,
    /// The peer reads nothing more, or reads again.
    Reading(bool),
}

/// The other end of every connection.
pub trait Peer: Send + 'static {
    /// A connection is being made.
    fn connecting(&mut self, _now: Tick) -> Reaction {
        vec![(50_000, Act::Accept)]
    }

    /// A connection is being made to one of several addresses.
    fn connecting_to(&mut self, _address: &Address, now: Tick) -> Reaction {
        self.connecting(now)
    }

    /// How many bytes it takes at this time.
    fn room(&mut self, _now: Tick) -> usize {
        usize::MAX
    }

    /// Bytes arrived. `connection` is a number that no other connection has.
    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction;
}

/// The machine, whose drivers' connections all lead to one peer.
pub struct VirtualNet {
    world: Arc<(Mutex<World>, Condvar)>,
}

impl VirtualNet {
    /// A machine whose connections all lead to `peer`.
    pub fn new(peer: impl Peer) -> Self {
        let world = World {
            now: Tick::from_ns(1_000_000_000),
            peer: Box::new(peer),
            sockets: BTreeMap::new(),
            future: BTreeMap::new(),
            count: 0,
            drivers: BTreeMap::new(),
            deaf: BTreeSet::new(),
            made: 0,
            connections: 0,
            waits: 0,
            whims: None,
            most_sockets: 0,
            piece: usize::MAX,
            read_piece: usize::MAX,
            oversleeps_ns: 0,
            stands_still: None,
            interrupted: None,
            fails_at: None,
            panics_at: None,
        };
        Self { world: Arc::new((Mutex::new(world), Condvar::new())) }
    }

    /// Limits each write and each read to this many bytes. What is left of a read is announced anew, as if it had come
    /// later.
    #[must_use]
    pub fn in_pieces_of(self, piece: usize) -> Self {
        self.changed(|world| world.piece = piece)
    }

    /// Reads into a buffer of this many bytes. What comes at once is cut, and still read at once.
    #[must_use]
    pub fn read_in_pieces_of(self, piece: usize) -> Self {
        self.changed(|world| world.read_piece = piece)
    }

    /// At any step a worker may stand still for up to 40 ms, or be told of a socket without an event. `seed` decides
    /// when.
    #[must_use]
    pub fn with_whims(self, seed: u64) -> Self {
        self.changed(|world| world.whims = Some(seed))
    }

    /// An open gate of a part on this machine, whose horizon is so far.
    pub fn gate_to(&self, horizon: Duration) -> Gate {
        let gate = Gate::with_horizon();
        gate.keep_time(self.clock());
        gate.open_at(Instant::now());
        gate.extend(horizon.as_nanos() as u64);
        gate
    }

    /// How many steps the workers have made.
    pub fn steps(&self) -> u64 {
        lock(&self.world.0).waits
    }

    /// Workers sleep too long by this much, at each wait that ends by time.
    #[must_use]
    pub fn oversleeping(self, ns: u64) -> Self {
        self.changed(|world| world.oversleeps_ns = ns)
    }

    /// The most sockets that there were at once.
    pub fn most_sockets(&self) -> usize {
        lock(&self.world.0).most_sockets
    }

    /// The first worker that waits at this time or later is stopped and continued by a signal: its wait ends without an
    /// event.
    #[must_use]
    pub fn interrupted_at(self, at: Tick, ns: u64) -> Self {
        self.changed(|world| world.interrupted = Some((at, ns)))
    }

    /// The first worker that waits at this time or later stands still for this long.
    #[must_use]
    pub fn standing_still(self, at: Tick, ns: u64) -> Self {
        self.changed(|world| world.stands_still = Some((at, ns)))
    }
}

impl VirtualNet {
    fn changed(self, change: impl FnOnce(&mut World)) -> Self {
        change(&mut lock(&self.world.0));
        self
    }

    /// The first wait at this time or later fails.
    #[must_use]
    pub fn failing_at(self, at: Tick) -> Self {
        self.changed(|world| world.fails_at = Some(at))
    }

    /// The first worker that waits at this time or later panics.
    #[must_use]
    pub fn panicking_at(self, at: Tick) -> Self {
        self.changed(|world| world.panics_at = Some(at))
    }
}

impl Machine for VirtualNet {
    type Driver = VirtualDriver;

    fn driver(&self, _connections: usize) -> io::Result<VirtualDriver> {
        let mut world = lock(&self.world.0);
        let driver = world.made;
        world.made += 1;
        world.drivers.insert(driver, None);
        Ok(VirtualDriver { driver, world: Arc::clone(&self.world) })
    }

    fn clock(&self) -> Clock {
        let world = Arc::clone(&self.world);
        Arc::new(move || lock(&world.0).now)
    }

    /// Every address is its own name; there are no other names.
    fn resolve(&self) -> Resolve {
        Arc::new(|host, port| {
            let host = if host == "localhost" { "127.0.0.1" } else { host };
            let ip: IpAddr = host.parse().map_err(|_| io::Error::other("there are no names here"))?;
            Ok(vec![SocketAddr::new(ip, port)])
        })
    }
}

/// One worker's part of the machine.
pub struct VirtualDriver {
    driver: usize,
    world: Arc<(Mutex<World>, Condvar)>,
}

impl VirtualDriver {
    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world.0)
    }

    fn place(&self, token: ConnectionId) -> Place {
        (self.driver, token.place())
    }
}

fn no_socket() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl Driver for VirtualDriver {
    fn is_real_time(&self) -> bool {
        false
    }

    fn read_buffer_bytes(&self) -> usize {
        self.world().read_piece.min(1 << 16)
    }

    fn has_announced(&self, token: ConnectionId) -> bool {
        self.world().sockets.get(&self.place(token)).is_some_and(|socket| socket.is_announced)
    }

    fn now(&mut self) -> Tick {
        self.world().now
    }

    fn connect(&mut self, token: ConnectionId, address: &Address, _source: Option<IpAddr>) -> io::Result<()> {
        let place = self.place(token);
        let mut world = self.world();
        world.connections += 1;
        let connection = world.connections;
        world.sockets.insert(place, Socket { connection, ..Socket::default() });
        world.most_sockets = world.most_sockets.max(world.sockets.len());
        let now = world.now;
        let reaction = world.peer.connecting_to(address, now);
        world.schedule(place, connection, reaction);
        Ok(())
    }

    fn connected(&mut self, token: ConnectionId) -> io::Result<bool> {
        match self.world().sockets.get(&self.place(token)).ok_or_else(no_socket)?.connected {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(())) => Err(io::Error::from_raw_os_error(rustix::io::Errno::CONNREFUSED.raw_os_error())),
        }
    }

    fn read(&mut self, token: ConnectionId, buffer: &mut [u8]) -> io::Result<usize> {
        let place = self.place(token);
        let mut world = self.world();
        let piece = world.piece;
        let socket = world.sockets.get_mut(&place).ok_or_else(no_socket)?;
        if !socket.inbox.is_empty() {
            let n = socket.inbox.len().min(buffer.len()).min(piece);
            for (to, byte) in buffer.iter_mut().zip(socket.inbox.drain(..n)) {
                *to = byte;
            }
            // A short read has emptied the socket, unless the end was announced, too.
            socket.is_announced &= n == buffer.len() || socket.closed || socket.reset;
            if !socket.inbox.is_empty() && n < buffer.len() {
                // A short read means that no more is ready: the rest is announced again.
                let connection = socket.connection;
                world.schedule(place, connection, vec![(0, Act::Send(Vec::new()))]);
            }
            return Ok(n);
        }
        socket.is_announced = false;
        match (socket.reset, socket.closed) {
            (true, _) => Err(io::ErrorKind::ConnectionReset.into()),
            (_, true) => Ok(0),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn read_timed(&mut self, token: ConnectionId, buffer: &mut [u8]) -> io::Result<(usize, Option<Tick>)> {
        let n = self.read(token, buffer)?;
        let arrived = self.world().sockets.get(&self.place(token)).map(|socket| socket.arrived);
        Ok((n, arrived))
    }

    fn write(&mut self, token: ConnectionId, bytes: &[u8]) -> io::Result<usize> {
        let place = self.place(token);
        let mut world = self.world();
        let (piece, now) = (world.piece, world.now);
        let socket = world.sockets.get_mut(&place).ok_or_else(no_socket)?;
        if socket.reset || socket.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let connection = socket.connection;
        let is_full = socket.is_full;
        let n = bytes.len().min(piece).min(world.peer.room(now));
        if n == 0 || is_full {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let reaction = world.peer.received(connection, bytes.get(..n).unwrap_or(bytes), now);
        world.schedule(place, connection, reaction);
        Ok(n)
    }

    fn close(&mut self, token: ConnectionId) {
        let place = self.place(token);
        self.world().sockets.remove(&place);
    }

    fn pause(&mut self, ns: u64) {
        let mut world = self.world();
        let until = world.now + ns;
        world.drivers.insert(self.driver, Some(until));
        world.deaf.insert(self.driver);
        self.world.1.notify_all();
        while !(world.drivers.values().all(Option::is_some)
            && world.first().is_some_and(|(_, driver)| driver == self.driver))
        {
            world = self.world.1.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
        world.now = world.now.max(until);
        world.deaf.remove(&self.driver);
        world.drivers.insert(self.driver, None);
    }

    fn wait(&mut self, until: Tick, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        let mut world = self.world();
        let now = world.now;
        if world.fails_at.take_if(|at| now >= *at).is_some() {
            return Err(io::Error::other("this machine is out of order"));
        }
        if world.panics_at.take_if(|at| now >= *at).is_some() {
            drop(world);
            panic!("a defect, for a test");
        }
        world.drivers.insert(self.driver, Some(until));
        // Another driver may be first now.
        self.world.1.notify_all();
        loop {
            let all_wait = world.drivers.values().all(Option::is_some);
            if all_wait && world.first().is_some_and(|(_, driver)| driver == self.driver) {
                world.drivers.insert(self.driver, None);
                world.take_events(self.driver, until, ready);
                return Ok(());
            }
            world = self.world.1.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for VirtualDriver {
    fn drop(&mut self) {
        if let Ok(mut world) = self.world.0.lock() {
            world.drivers.remove(&self.driver);
            world.future.retain(|_, (place, ..)| place.0 != self.driver);
            self.world.1.notify_all();
        }
    }
}
