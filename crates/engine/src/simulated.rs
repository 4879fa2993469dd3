//! A machine whose time and peers are made up, so that a run of minutes takes no time and always goes the same way.
//!
//! Its drivers share one clock. It moves when every driver waits, to whatever comes first for any of them, and then only that
//! driver goes on: however many workers there are, one thread runs at a time, in an order that is always the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use brunt_plan::random::mix;

use crate::transport::{Address, Clock, Driver, Machine, Ready, Resolve};

/// What a peer does, and how long after what it reacts to, in nanoseconds.
pub(super) type Reaction = Vec<(u64, Act)>;

/// What can happen to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
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
pub(super) trait Peer: Send + 'static {
    /// Somebody connects.
    fn connecting(&mut self, _now: u64) -> Reaction {
        vec![(50_000, Act::Accept)]
    }

    /// The same to one of several addresses.
    fn connecting_to(&mut self, _address: &Address, now: u64) -> Reaction {
        self.connecting(now)
    }

    /// How many bytes it takes at this time.
    fn room(&mut self, _now: u64) -> usize {
        usize::MAX
    }

    /// Bytes came; `connection` is a number that no other connection has.
    fn received(&mut self, connection: u64, bytes: &[u8], now: u64) -> Reaction;
}

#[derive(Default)]
struct Socket {
    connection: u64,
    connected: Option<Result<(), ()>>,
    inbox: Vec<u8>,
    /// When the last of it came.
    arrived: u64,
    closed: bool,
    reset: bool,
    /// Whether the peer reads nothing.
    is_full: bool,
}

/// A socket's place: its driver, and the driver's token for it.
type Place = (usize, usize);

/// See the module's text.
struct World<P> {
    now: u64,
    peer: P,
    sockets: BTreeMap<Place, Socket>,
    /// What will happen: at which time, in which order; to which socket and connection.
    future: BTreeMap<(u64, u64), (Place, u64, Act)>,
    count: u64,
    /// Every driver, and until when it waits, if it does.
    drivers: BTreeMap<usize, Option<u64>>,
    /// Those that wait for nothing but the time.
    deaf: BTreeSet<usize>,
    made: usize,
    connections: u64,
    /// How often a driver has waited.
    waits: u64,
    /// What chooses when a worker stands still for a moment, and which sockets it hears of for nothing.
    whims: Option<u64>,
    /// The most sockets that there were at once.
    most_sockets: usize,
    piece: usize,
    /// The most that one read gives.
    read_piece: usize,
    oversleeps_ns: u64,
    /// When the worker stands still, and for how long.
    stands_still: (u64, u64),
    /// The same, in a wait that a signal interrupts: the wait names no socket.
    interrupted: (u64, u64),
    fails_at: u64,
    panics_at: u64,
}

impl<P: Peer> World<P> {
    fn schedule(&mut self, place: Place, connection: u64, reaction: Reaction) {
        for (after, act) in reaction {
            self.count += 1;
            self.future.insert((self.now + after, self.count), (place, connection, act));
        }
    }

    fn apply(&mut self, place: Place, connection: u64, act: Act, at: u64) -> Option<Ready> {
        let socket = self.sockets.get_mut(&place).filter(|socket| socket.connection == connection)?;
        let mut ready = Ready { token: place.1, readable: true, writable: false, ended: false };
        match act {
            Act::Accept => (socket.connected, ready.writable) = (Some(Ok(())), true),
            Act::Refuse => (socket.connected, ready.writable) = (Some(Err(())), true),
            Act::Send(bytes) => {
                if !bytes.is_empty() {
                    socket.arrived = at;
                }
                socket.inbox.extend(bytes);
            }
            Act::Close => (socket.closed, ready.ended) = (true, true),
            Act::Reset => (socket.reset, ready.ended) = (true, true),
            Act::Reading(reads) => {
                socket.is_full = !reads;
                (ready.readable, ready.writable) = (false, reads);
            }
        }
        Some(ready)
    }

    /// The next event while all drivers wait: when, and for which driver.
    fn first(&self) -> Option<(u64, usize)> {
        let timed = self.drivers.iter().filter_map(|(driver, until)| Some(((*until)?.max(self.now), *driver)));
        let heard = self.future.iter().find(|(_, (place, ..))| !self.deaf.contains(&place.0));
        let event = heard.map(|((time, _), (place, ..))| (*time, place.0));
        timed.chain(event.map(|(time, driver)| (time.max(self.now), driver))).min()
    }

    /// What is ready for a driver that waits until `until`; nothing ends the wait by time.
    fn take_events(&mut self, driver: usize, until: u64, ready: &mut Vec<Ready>) {
        self.waits += 1;
        self.follow_whim(driver, ready);
        if self.now >= self.stands_still.0 {
            self.now += self.stands_still.1;
            self.stands_still = (u64::MAX, 0);
        }
        if self.now >= self.interrupted.0 {
            self.now += self.interrupted.1;
            self.interrupted = (u64::MAX, 0);
            return;
        }
        loop {
            let next = self.future.iter().find(|(_, (place, ..))| place.0 == driver).map(|(key, _)| *key);
            let Some(key) = next else { break };
            if key.0 > until.max(self.now) || (!ready.is_empty() && key.0 > self.now) {
                break;
            }
            let Some((place, connection, act)) = self.future.remove(&key) else { break };
            self.now = self.now.max(key.0);
            ready.extend(self.apply(place, connection, act, key.0));
        }
        if ready.is_empty() && until > self.now {
            self.now = until + self.oversleeps_ns;
        }
    }

    /// Stands still for a moment, or tells of a socket to which nothing has happened.
    fn follow_whim(&mut self, driver: usize, ready: &mut Vec<Ready>) {
        let Some(seed) = self.whims else { return };
        let whim = mix(seed.wrapping_add(self.waits));
        match whim % 64 {
            0 => self.now += (whim >> 8) % 40_000_000,
            1..=4 => {
                let tokens = self.sockets.range((driver, 0)..(driver + 1, 0)).map(|(place, _)| place.1);
                let most = tokens.max().unwrap_or_default() as u64;
                let token = ((whim >> 8) % (most + 2)) as usize;
                ready.push(Ready { token, readable: whim & 0x40 == 0, writable: whim & 0x80 == 0, ended: false });
            }
            _ => {}
        }
    }
}

/// The machine, whose drivers' connections all lead to one peer.
pub(super) struct VirtualNet<P> {
    world: Arc<(Mutex<World<P>>, Condvar)>,
}

impl<P: Peer> VirtualNet<P> {
    pub(super) fn new(peer: P) -> Self {
        let world = World {
            now: 1_000_000_000,
            peer,
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
            stands_still: (u64::MAX, 0),
            interrupted: (u64::MAX, 0),
            fails_at: u64::MAX,
            panics_at: u64::MAX,
        };
        Self { world: Arc::new((Mutex::new(world), Condvar::new())) }
    }

    /// One write takes, or one read gives, so many bytes at most.
    pub(super) fn in_pieces_of(self, piece: usize) -> Self {
        self.world.0.lock().unwrap().piece = piece;
        self
    }

    /// The same for reads alone.
    pub(super) fn read_in_pieces_of(self, piece: usize) -> Self {
        self.world.0.lock().unwrap().read_piece = piece;
        self
    }

    /// At any step a worker may stand still for up to 40 ms, or hear of a socket to which nothing has happened, as `seed` has it.
    pub(super) fn with_whims(self, seed: u64) -> Self {
        self.world.0.lock().unwrap().whims = Some(seed);
        self
    }

    /// How many steps the workers have made.
    pub(super) fn steps(&self) -> u64 {
        self.world.0.lock().unwrap().waits
    }

    /// Workers sleep so much too long, at each wait that ends by time.
    pub(super) fn oversleeping(self, ns: u64) -> Self {
        self.world.0.lock().unwrap().oversleeps_ns = ns;
        self
    }

    /// The most sockets that there were at once.
    pub(super) fn most_sockets(&self) -> usize {
        self.world.0.lock().unwrap().most_sockets
    }

    /// The same, as a signal stops and continues it: its wait ends without a word.
    pub(super) fn interrupted_at(self, at: u64, ns: u64) -> Self {
        self.world.0.lock().unwrap().interrupted = (at, ns);
        self
    }

    /// The first worker that waits at this time or later stands still for so long.
    pub(super) fn standing_still(self, at: u64, ns: u64) -> Self {
        self.world.0.lock().unwrap().stands_still = (at, ns);
        self
    }
}

impl<P: Peer> VirtualNet<P> {
    /// The first worker that waits at this time or later cannot.
    pub(super) fn failing_at(self, at: u64) -> Self {
        self.world.0.lock().unwrap().fails_at = at;
        self
    }

    /// The first worker that waits at this time or later panics.
    pub(super) fn panicking_at(self, at: u64) -> Self {
        self.world.0.lock().unwrap().panics_at = at;
        self
    }
}

impl<P: Peer> Machine for VirtualNet<P> {
    type Driver = VirtualDriver<P>;

    fn driver(&self, _connections: usize) -> io::Result<VirtualDriver<P>> {
        let mut world = self.world.0.lock().unwrap();
        let driver = world.made;
        world.made += 1;
        world.drivers.insert(driver, None);
        Ok(VirtualDriver { driver, world: Arc::clone(&self.world) })
    }

    fn clock(&self) -> Clock {
        let world = Arc::clone(&self.world);
        Arc::new(move || world.0.lock().unwrap().now)
    }

    /// Every address is its own name, and there are no others.
    fn resolve(&self) -> Resolve {
        Arc::new(|host, port| {
            let host = if host == "localhost" { "127.0.0.1" } else { host };
            let ip: IpAddr = host.parse().map_err(|_| io::Error::other("there are no names here"))?;
            Ok(vec![SocketAddr::new(ip, port)])
        })
    }
}

/// One worker's part of the machine.
pub(super) struct VirtualDriver<P: Peer> {
    driver: usize,
    world: Arc<(Mutex<World<P>>, Condvar)>,
}

impl<P: Peer> VirtualDriver<P> {
    fn world(&self) -> MutexGuard<'_, World<P>> {
        self.world.0.lock().unwrap()
    }

    fn place(&self, token: usize) -> Place {
        (self.driver, token)
    }
}

fn no_socket() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl<P: Peer> Driver for VirtualDriver<P> {
    fn is_real_time(&self) -> bool {
        false
    }

    fn now(&mut self) -> u64 {
        self.world().now
    }

    fn connect(&mut self, token: usize, address: &Address, _source: Option<IpAddr>) -> io::Result<()> {
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

    fn connected(&mut self, token: usize) -> io::Result<bool> {
        match self.world().sockets.get(&self.place(token)).ok_or_else(no_socket)?.connected {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(())) => Err(io::Error::from_raw_os_error(rustix::io::Errno::CONNREFUSED.raw_os_error())),
        }
    }

    fn read(&mut self, token: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let place = self.place(token);
        let mut world = self.world();
        let piece = world.piece.min(world.read_piece);
        let socket = world.sockets.get_mut(&place).ok_or_else(no_socket)?;
        if !socket.inbox.is_empty() {
            let n = socket.inbox.len().min(buffer.len()).min(piece);
            buffer[..n].copy_from_slice(&socket.inbox[..n]);
            socket.inbox.drain(..n);
            if !socket.inbox.is_empty() && n < buffer.len() {
                // A short read means there is no more for now: what is left is announced again.
                let connection = socket.connection;
                world.schedule(place, connection, vec![(0, Act::Send(Vec::new()))]);
            }
            return Ok(n);
        }
        match (socket.reset, socket.closed) {
            (true, _) => Err(io::ErrorKind::ConnectionReset.into()),
            (_, true) => Ok(0),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn read_timed(&mut self, token: usize, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        let n = self.read(token, buffer)?;
        let arrived = self.world().sockets.get(&self.place(token)).map(|socket| socket.arrived);
        Ok((n, arrived))
    }

    fn write(&mut self, token: usize, bytes: &[u8]) -> io::Result<usize> {
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
        let reaction = world.peer.received(connection, &bytes[..n], now);
        world.schedule(place, connection, reaction);
        Ok(n)
    }

    fn close(&mut self, token: usize) {
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
            world = self.world.1.wait(world).unwrap();
        }
        world.now = world.now.max(until);
        world.deaf.remove(&self.driver);
        world.drivers.insert(self.driver, None);
    }

    fn wait(&mut self, until: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        let mut world = self.world();
        let now = world.now;
        if now >= world.fails_at {
            world.fails_at = u64::MAX;
            return Err(io::Error::other("this machine is out of order"));
        }
        if now >= world.panics_at {
            world.panics_at = u64::MAX;
            drop(world);
            panic!("a defect, for a test");
        }
        world.drivers.insert(self.driver, Some(until));
        // Somebody else may be first now.
        self.world.1.notify_all();
        loop {
            let all_wait = world.drivers.values().all(Option::is_some);
            if all_wait && world.first().is_some_and(|(_, driver)| driver == self.driver) {
                world.drivers.insert(self.driver, None);
                world.take_events(self.driver, until, ready);
                return Ok(());
            }
            world = self.world.1.wait(world).unwrap();
        }
    }
}

impl<P: Peer> Drop for VirtualDriver<P> {
    fn drop(&mut self) {
        if let Ok(mut world) = self.world.0.lock() {
            world.drivers.remove(&self.driver);
            world.future.retain(|_, (place, ..)| place.0 != self.driver);
            self.world.1.notify_all();
        }
    }
}
