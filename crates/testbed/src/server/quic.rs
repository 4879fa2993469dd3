//! A worker's UDP socket, with all of its connections of HTTP/3.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use brunt_quic::{QuicServer, Read, Received, ServerSetup, SessionId};
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};

use crate::http::{Http3, Site};

/// Datagrams read before other connections get their turn.
const IN_A_ROW: usize = 1024;
/// The largest datagram.
const INPUT: usize = 64 * 1024;
/// The size of the buffer for records, in bytes.
const RECORDS: usize = 64 * 1024;

/// One connection.
struct Connection {
    http: Http3,
    /// When it has to be looked at.
    wake: Option<Duration>,
}

/// The socket and its connections.
pub(super) struct Quic {
    socket: UdpSocket,
    server: QuicServer,
    connections: BTreeMap<SessionId, Connection>,
    timers: BTreeSet<(Duration, SessionId)>,
    input: Box<[u8]>,
    records: Box<[u8]>,
    out: Vec<u8>,
    datagram: Vec<u8>,
    /// Whether the socket may hold more than was read.
    pub(super) again: bool,
}

impl Quic {
    pub(super) fn new(socket: std::net::UdpSocket, setup: &ServerSetup) -> Self {
        Self {
            socket: UdpSocket::from_std(socket),
            server: QuicServer::new(setup),
            connections: BTreeMap::new(),
            timers: BTreeSet::new(),
            input: vec![0; INPUT].into_boxed_slice(),
            records: vec![0; RECORDS].into_boxed_slice(),
            out: Vec::new(),
            datagram: Vec::new(),
            again: false,
        }
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE)
    }

    /// When something is to be done next.
    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Reads what has come, and answers.
    pub(super) fn readable(&mut self, site: &mut Site) {
        self.again = false;
        for _ in 0..IN_A_ROW {
            let (length, from) = match self.socket.recv_from(&mut self.input) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Somebody left: that of an earlier datagram.
                Err(_) => continue,
            };
            let now = nanoseconds(site.service.now());
            self.datagram.clear();
            let datagram = self.input.get(..length).unwrap_or_default();
            match self.server.receive(datagram, from, now, &mut self.datagram) {
                Received::Session(id) => self.turn(id, site),
                Received::Response(response) => self.send(response.to, response.bytes),
                Received::Nothing => {}
            }
        }
        self.again = true;
    }

    /// Lets those answer whose time has come.
    pub(super) fn run_due(&mut self, site: &mut Site) {
        let now = site.service.now();
        while let Some((due, id)) = self.timers.first().copied()
            && due <= now
        {
            self.timers.pop_first();
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.wake = None;
            }
            if let Some(session) = self.server.session(id) {
                session.tick(nanoseconds(now));
            }
            self.turn(id, site);
        }
    }

    /// Lets one connection do what it can.
    fn turn(&mut self, id: SessionId, site: &mut Site) {
        let mut has_ended = false;
        while let Some(session) = self.server.session(id) {
            match session.read(&mut self.records) {
                Read::Bytes(count) => {
                    let connection = self.connections.entry(id).or_insert_with(|| {
                        site.service.accepted();
                        Connection { http: Http3::new(&mut self.out), wake: None }
                    });
                    connection.http.receive(self.records.get(..count).unwrap_or_default(), site, &mut self.out);
                }
                Read::Nothing => break,
                Read::End(_) => {
                    has_ended = true;
                    break;
                }
            }
        }
        if has_ended {
            self.remove(id, site);
        }
        self.answer(id, site);
        let now = nanoseconds(site.service.now());
        self.datagram.clear();
        while let Some(to) = self.server.transmit(id, now, &mut self.datagram) {
            self.send(to, self.datagram.len());
            self.datagram.clear();
        }
        self.set_timer(id, site);
    }

    /// Lets a connection's streams answer.
    fn answer(&mut self, id: SessionId, site: &mut Site) {
        let now = nanoseconds(site.service.now());
        let Some(connection) = self.connections.get_mut(&id) else { return self.out.clear() };
        let Some(session) = self.server.session(id) else { return self.out.clear() };
        loop {
            connection.http.pump(site, &mut self.out);
            site.service.publish();
            if self.out.is_empty() && connection.http.has_more() {
                connection.http.more(&mut self.out);
            }
            if self.out.is_empty() {
                return;
            }
            session.write(&self.out, now);
            self.out.clear();
            // Flow control may hold streams back now.
            while let Read::Bytes(count) = session.read(&mut self.records) {
                connection.http.receive(self.records.get(..count).unwrap_or_default(), site, &mut self.out);
            }
        }
    }

    fn set_timer(&mut self, id: SessionId, site: &mut Site) {
        let Some(session) = self.server.session(id) else { return self.remove(id, site) };
        let timeout = session.timeout().map(Duration::from_nanos);
        let connection = self.connections.get_mut(&id);
        let due = connection.as_ref().and_then(|connection| connection.http.next_due());
        let wake = timeout.into_iter().chain(due).min();
        match connection {
            Some(connection) if connection.wake != wake => {
                if let Some(before) = std::mem::replace(&mut connection.wake, wake) {
                    self.timers.remove(&(before, id));
                }
                self.timers.extend(wake.map(|wake| (wake, id)));
            }
            Some(_) => {}
            // Its handshake is under way: an alarm that is not needed any more does nothing.
            None => self.timers.extend(wake.map(|wake| (wake, id))),
        }
    }

    fn remove(&mut self, id: SessionId, site: &mut Site) {
        if let Some(mut connection) = self.connections.remove(&id) {
            connection.http.leave(site);
            if let Some(wake) = connection.wake {
                self.timers.remove(&(wake, id));
            }
        }
    }

    /// Sends the datagram that lies ready. One that the socket has no room for is lost, as any may be.
    fn send(&self, to: SocketAddr, bytes: usize) {
        let _ = self.socket.send_to(self.datagram.get(..bytes).unwrap_or_default(), to);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
