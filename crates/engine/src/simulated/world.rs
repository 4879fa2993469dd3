//! The state that the drivers of a simulated machine share: time, sockets, and future events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use brunt_plan::random::mix;
use brunt_record::time::Tick;

use super::{Act, Peer, Reaction};
use crate::transport::{ConnectionId, Ready};

// What has happened to a socket, each on its own.
#[allow(clippy::struct_excessive_bools)]
#[derive(Default)]
pub(super) struct Socket {
    pub(super) connection: u64,
    pub(super) connected: Option<Result<(), ()>>,
    pub(super) inbox: Vec<u8>,
    /// When its last bytes came.
    pub(super) arrived: Tick,
    pub(super) closed: bool,
    pub(super) reset: bool,
    /// Whether something was announced as readable that nobody has tried to read since.
    pub(super) is_announced: bool,
    /// Whether the peer reads nothing.
    pub(super) is_full: bool,
}

/// The world, also after a worker has panicked.
pub(super) fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A socket's place: its driver, and the driver's token for it.
pub(super) type Place = (usize, usize);

/// Everything that a machine's drivers share.
pub(super) struct World {
    pub(super) now: Tick,
    pub(super) peer: Box<dyn Peer>,
    pub(super) sockets: BTreeMap<Place, Socket>,
    /// Future events by time and order, each with its socket and connection.
    pub(super) future: BTreeMap<(Tick, u64), (Place, u64, Act)>,
    pub(super) count: u64,
    /// Every driver, with the time until which it waits, if it waits.
    pub(super) drivers: BTreeMap<usize, Option<Tick>>,
    /// Drivers that wait only for a time.
    pub(super) deaf: BTreeSet<usize>,
    pub(super) made: usize,
    pub(super) connections: u64,
    /// How often a driver has waited.
    pub(super) waits: u64,
    /// Random state that decides when a worker stands still for a moment, and which sockets are announced without an
    /// event.
    pub(super) whims: Option<u64>,
    /// The most sockets that there were at once.
    pub(super) most_sockets: usize,
    pub(super) piece: usize,
    /// The most bytes that one read gives.
    pub(super) read_piece: usize,
    pub(super) oversleeps_ns: u64,
    /// When the worker stands still, and for how long.
    pub(super) stands_still: Option<(Tick, u64)>,
    /// The same for a wait that a signal interrupts: it announces no socket.
    pub(super) interrupted: Option<(Tick, u64)>,
    pub(super) fails_at: Option<Tick>,
    pub(super) panics_at: Option<Tick>,
}

impl World {
    pub(super) fn schedule(&mut self, place: Place, connection: u64, reaction: Reaction) {
        for (after, act) in reaction {
            self.count += 1;
            self.future.insert((self.now + after, self.count), (place, connection, act));
        }
    }

    pub(super) fn apply(&mut self, place: Place, connection: u64, act: Act, at: Tick) -> Option<Ready> {
        let socket = self.sockets.get_mut(&place).filter(|socket| socket.connection == connection)?;
        let mut ready = Ready { token: ConnectionId::at(place.1), readable: true, writable: false, ended: false };
        match act {
            Act::Accept => {
                socket.connected = Some(Ok(()));
                (ready.readable, ready.writable) = (false, true);
            }
            Act::Refuse => (socket.connected, ready.writable) = (Some(Err(())), true),
            Act::Send(bytes) => {
                if !bytes.is_empty() {
                    socket.arrived = at;
                }
                socket.inbox.extend(bytes);
            }
            Act::Close => socket.closed = true,
            Act::Reset => socket.reset = true,
            Act::Reading(reads) => {
                socket.is_full = !reads;
                (ready.readable, ready.writable) = (false, reads);
            }
        }
        ready.ended = socket.closed || socket.reset;
        socket.is_announced |= ready.readable && socket.connected == Some(Ok(()));
        Some(ready)
    }

    /// Announces what has happened to a socket. As with epoll, what has happened to it since the last wait is announced
    /// together.
    fn announce(happened: Ready, ready: &mut Vec<Ready>) {
        let Some(announced) = ready.iter_mut().find(|announced| announced.token == happened.token) else {
            return ready.push(happened);
        };
        announced.readable |= happened.readable;
        announced.writable |= happened.writable;
        announced.ended |= happened.ended;
    }

    /// The next event while all drivers wait: when, and for which driver.
    pub(super) fn first(&self) -> Option<(Tick, usize)> {
        let timed = self.drivers.iter().filter_map(|(driver, until)| Some(((*until)?.max(self.now), *driver)));
        let heard = self.future.iter().find(|(_, (place, ..))| !self.deaf.contains(&place.0));
        let event = heard.map(|((time, _), (place, ..))| (*time, place.0));
        timed.chain(event.map(|(time, driver)| (time.max(self.now), driver))).min()
    }

    /// The ready sockets of a driver that waits until `until`. Does not end the wait by time.
    pub(super) fn take_events(&mut self, driver: usize, until: Tick, ready: &mut Vec<Ready>) {
        self.waits += 1;
        self.follow_whim(driver, ready);
        let now = self.now;
        if let Some((_, ns)) = self.stands_still.take_if(|(at, _)| now >= *at) {
            self.now += ns;
        }
        let now = self.now;
        if let Some((_, ns)) = self.interrupted.take_if(|(at, _)| now >= *at) {
            self.now += ns;
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
            if let Some(happened) = self.apply(place, connection, act, key.0) {
                Self::announce(happened, ready);
            }
        }
        if ready.is_empty() && until > self.now {
            self.now = until + self.oversleeps_ns;
        }
    }

    /// Stands still for a moment, or announces a socket without an event.
    pub(super) fn follow_whim(&mut self, driver: usize, ready: &mut Vec<Ready>) {
        let Some(seed) = self.whims else { return };
        let whim = mix(seed.wrapping_add(self.waits));
        match whim % 64 {
            0 => self.now += (whim >> 8) % 40_000_000,
            1..=4 => {
                let tokens = self.sockets.range((driver, 0)..(driver + 1, 0)).map(|(place, _)| place.1);
                let most = tokens.max().unwrap_or_default() as u64;
                let token = ((whim >> 8) % (most + 2)) as usize;
                let (readable, writable) = (whim & 0x40 == 0, whim & 0x80 == 0);
                Self::announce(Ready { token: ConnectionId::at(token), readable, writable, ended: false }, ready);
            }
            _ => {}
        }
    }
}
