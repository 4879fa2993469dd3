//! Sockets of datagrams that several connections share. What comes is handed to the connection whose place it names.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use brunt_quic::place_of;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;

use super::{ConnectionId, DATAGRAM_BYTES, Ready, datagrams};

/// The tokens of shared sockets among a poll's events begin here; connections have smaller ones.
pub(super) const FIRST: usize = 1 << 48;
/// How often one socket is read before the others, and the load, have their turn.
const READS_IN_A_ROW: usize = 16;
/// Room for the datagrams of one read.
const BUFFER_BYTES: usize = 64 << 10;
/// The most bytes that wait for one connection. What comes beyond is dropped, as by the buffer of a socket that is full.
const MOST_WAITING_BYTES: usize = 4 << 20;

/// One connection's part in a shared socket.
struct Member {
    /// The place of its socket.
    index: usize,
    waiting: VecDeque<u8>,
    sizes: VecDeque<usize>,
    error: Option<Errno>,
    dropped: u64,
    /// Whether it waits until the socket takes something again.
    is_blocked: bool,
}

impl Member {
    fn receive(&mut self, buffer: &mut [u8], sizes: &mut Vec<usize>) -> io::Result<bool> {
        sizes.clear();
        for place in buffer.chunks_exact_mut(DATAGRAM_BYTES) {
            let Some(size) = self.sizes.pop_front() else { break };
            place.iter_mut().zip(self.waiting.drain(..size)).for_each(|(to, byte)| *to = byte);
            sizes.push(size);
        }
        if !sizes.is_empty() {
            return Ok(!self.sizes.is_empty() || self.error.is_some());
        }
        Err(self.error.take().map_or_else(|| io::ErrorKind::WouldBlock.into(), io::Error::from))
    }

    fn take(&mut self, datagram: &[u8]) {
        if self.waiting.len() + datagram.len() > MOST_WAITING_BYTES {
            self.dropped += 1;
            return;
        }
        self.waiting.extend(datagram);
        self.sizes.push_back(datagram.len());
    }
}

struct Shared {
    socket: Arc<UdpSocket>,
    address: SocketAddr,
    source: Option<IpAddr>,
    /// Which of those to this address it is.
    turn: usize,
    /// The datagrams it had dropped when that was last asked.
    dropped: u64,
}

/// The sockets that a worker's connections share.
pub(super) struct SharedSockets {
    /// How many there are for each address.
    most: usize,
    sockets: Vec<Shared>,
    /// By the places of their connections.
    members: Vec<Option<Member>>,
    /// Sockets that may hold more than was read.
    unread: Vec<usize>,
    /// Connections that were made, which is told with the next events.
    made: Vec<ConnectionId>,
    buffer: Vec<u8>,
    sizes: Vec<usize>,
}

impl SharedSockets {
    /// So many of them for each address.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            sockets: Vec::new(),
            members: Vec::new(),
            unread: Vec::new(),
            made: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            sizes: Vec::new(),
        }
    }

    /// Whether something is to be told without waiting.
    pub(super) fn has_news(&self) -> bool {
        !self.made.is_empty() || !self.unread.is_empty()
    }

    /// The socket of this connection, from now on.
    ///
    /// # Errors
    /// When the system gives none.
    pub(super) fn connect(
        &mut self,
        registry: &Registry,
        token: ConnectionId,
        address: SocketAddr,
        source: Option<IpAddr>,
    ) -> io::Result<Arc<UdpSocket>> {
        let turn = token.place() % self.most;
        let is_it = |shared: &Shared| (shared.address, shared.source, shared.turn) == (address, source, turn);
        let there = self.sockets.iter().enumerate().find(|(_, shared)| is_it(shared));
        let (index, socket) = if let Some((index, shared)) = there {
            (index, Arc::clone(&shared.socket))
        } else {
            let mut socket = UdpSocket::from_std(datagrams::connect(address, source)?.into());
            let index = self.sockets.len();
            registry.register(&mut socket, Token(FIRST + index), Interest::READABLE | Interest::WRITABLE)?;
            let socket = Arc::new(socket);
            self.sockets.push(Shared { socket: Arc::clone(&socket), address, source, turn, dropped: 0 });
            (index, socket)
        };
        if token.place() >= self.members.len() {
            self.members.resize_with(token.place() + 1, || None);
        }
        if let Some(place) = self.members.get_mut(token.place()) {
            let (waiting, sizes) = (VecDeque::new(), VecDeque::new());
            *place = Some(Member { index, waiting, sizes, error: None, dropped: 0, is_blocked: false });
        }
        self.made.push(token);
        Ok(socket)
    }

    /// The connection leaves its socket, which stays.
    pub(super) fn leave(&mut self, token: ConnectionId) {
        if let Some(place) = self.members.get_mut(token.place()) {
            *place = None;
        }
    }

    fn member(&mut self, token: ConnectionId) -> Option<&mut Member> {
        self.members.get_mut(token.place())?.as_mut()
    }

    /// Reads as [`Driver::read_datagrams`](super::Driver::read_datagrams) does.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub(super) fn receive(
        &mut self,
        token: ConnectionId,
        buffer: &mut [u8],
        sizes: &mut Vec<usize>,
    ) -> io::Result<bool> {
        self.member(token).ok_or(io::ErrorKind::NotConnected)?.receive(buffer, sizes)
    }

    /// The connection waits until its socket takes something again.
    pub(super) fn blocks(&mut self, token: ConnectionId) {
        if let Some(member) = self.member(token) {
            member.is_blocked = true;
        }
    }

    /// How many datagrams were dropped that may have been for this connection: those of its socket that no other was told of.
    pub(super) fn dropped(&mut self, token: ConnectionId) -> u64 {
        let Some(member) = self.members.get_mut(token.place()).and_then(Option::as_mut) else { return 0 };
        if let Some(shared) = self.sockets.get_mut(member.index) {
            let all = datagrams::dropped(shared.socket.as_fd());
            member.dropped += all.saturating_sub(std::mem::replace(&mut shared.dropped, all));
        }
        member.dropped
    }

    /// A socket has this event.
    pub(super) fn event(&mut self, event: &mio::event::Event, ready: &mut Vec<Ready>) {
        let index = event.token().0 - FIRST;
        if event.is_readable() || event.is_error() {
            self.unread.push(index);
        }
        if event.is_writable() {
            for (place, member) in self.members.iter_mut().enumerate() {
                if let Some(member) = member.as_mut().filter(|member| member.index == index)
                    && std::mem::take(&mut member.is_blocked)
                {
                    let token = ConnectionId::at(place);
                    ready.push(Ready { token, readable: false, writable: true, ended: false });
                }
            }
        }
    }

    /// Reads what came, and tells what is new.
    pub(super) fn news(&mut self, ready: &mut Vec<Ready>) {
        for token in self.made.drain(..) {
            ready.push(Ready { token, readable: false, writable: true, ended: false });
        }
        let mut named = Vec::new();
        let mut unread = std::mem::take(&mut self.unread);
        unread.sort_unstable();
        unread.dedup();
        for index in unread {
            self.read(index, &mut named);
        }
        named.sort_unstable();
        named.dedup();
        ready.extend(named.into_iter().map(|token| Ready { token, readable: true, writable: false, ended: false }));
    }

    /// Reads one socket; adds the connections that got something to `named`.
    fn read(&mut self, index: usize, named: &mut Vec<ConnectionId>) {
        let Some(socket) = self.sockets.get(index).map(|shared| Arc::clone(&shared.socket)) else { return };
        for _ in 0..READS_IN_A_ROW {
            match datagrams::receive(socket.as_fd(), &mut self.buffer, &mut self.sizes) {
                Ok(may_be_more) => {
                    let (buffer, sizes) = (std::mem::take(&mut self.buffer), std::mem::take(&mut self.sizes));
                    for (place, size) in buffer.chunks(DATAGRAM_BYTES).zip(&sizes) {
                        self.hand_on(index, place.get(..*size).unwrap_or(&[]), named);
                    }
                    (self.buffer, self.sizes) = (buffer, sizes);
                    if !may_be_more {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // ICMP's word of the address, which is that of all its connections.
                Err(error) => {
                    let errno = Errno::from_raw_os_error(error.raw_os_error().unwrap_or_default());
                    self.all(index, named, |member| member.error = Some(errno));
                }
            }
        }
        self.unread.push(index);
    }

    fn hand_on(&mut self, index: usize, datagram: &[u8], named: &mut Vec<ConnectionId>) {
        let token = place_of(datagram).map(|place| ConnectionId::at(place as usize));
        if let Some(token) = token
            && let Some(member) = self.member(token).filter(|member| member.index == index)
        {
            member.take(datagram);
            named.push(token);
            return;
        }
        // It may be a stateless reset, which names nobody (RFC 9000, section 10.3).
        self.all(index, named, |member| member.take(datagram));
    }

    /// Does this with all connections of a socket.
    fn all(&mut self, index: usize, named: &mut Vec<ConnectionId>, mut it: impl FnMut(&mut Member)) {
        for (place, member) in self.members.iter_mut().enumerate() {
            if let Some(member) = member.as_mut().filter(|member| member.index == index) {
                it(member);
                named.push(ConnectionId::at(place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mio::{Events, Poll};

    use super::*;

    fn at(place: usize) -> ConnectionId {
        ConnectionId::at(place)
    }

    /// What the next events say: the connections that may read, and those that may write.
    fn told(shared: &mut SharedSockets, poll: &mut Poll) -> (Vec<usize>, Vec<usize>) {
        let (mut events, mut ready) = (Events::with_capacity(16), Vec::new());
        poll.poll(&mut events, Some(std::time::Duration::from_millis(200))).unwrap();
        events.iter().for_each(|event| shared.event(event, &mut ready));
        shared.news(&mut ready);
        let those = |is: fn(&Ready) -> bool| ready.iter().filter(|it| is(it)).map(|it| it.token.place()).collect();
        (those(|it| it.readable), those(|it| it.writable))
    }

    fn named(place: u32, length: usize) -> Vec<u8> {
        let mut datagram = vec![0; length];
        datagram[0] = 0x40;
        datagram[1..5].copy_from_slice(&place.to_be_bytes());
        datagram
    }

    fn received(shared: &mut SharedSockets, place: usize) -> Vec<usize> {
        let (mut buffer, mut sizes) = (vec![0; 64 << 10], Vec::new());
        shared.receive(at(place), &mut buffer, &mut sizes).map_or_else(|_| Vec::new(), |_| sizes)
    }

    #[test]
    fn datagrams_reach_the_connection_that_they_name() {
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap();
        let mut poll = Poll::new().unwrap();
        let mut shared = SharedSockets::new(2);
        let ports: Vec<_> = (0..4)
            .map(|place| shared.connect(poll.registry(), at(place), address, None).unwrap().local_addr().unwrap())
            .collect();
        assert!(ports[0] == ports[2] && ports[1] == ports[3] && ports[0] != ports[1], "{ports:?}");
        assert!(shared.has_news());
        assert_eq!(told(&mut shared, &mut poll).1, [0, 1, 2, 3], "connected");
        assert!(!shared.has_news());
        for (place, length) in [(0, 100), (2, 200), (2, 300)] {
            peer.send_to(&named(place, length), ports[0]).unwrap();
        }
        // Of another socket, and of nobody: a stateless reset.
        peer.send_to(&named(3, 400), ports[0]).unwrap();
        let mut readable = Vec::new();
        while readable.len() < 2 {
            readable.extend(told(&mut shared, &mut poll).0);
        }
        assert_eq!(readable, [0, 2]);
        assert_eq!(received(&mut shared, 0), [100, 400]);
        assert_eq!(received(&mut shared, 2), [200, 300, 400]);
        assert_eq!(received(&mut shared, 1), [0; 0]);
        shared.leave(at(2));
        peer.send_to(&named(2, 100), ports[0]).unwrap();
        assert_eq!(told(&mut shared, &mut poll).0, [0], "for all that are left");
    }

    #[test]
    fn a_closed_port_is_told_to_all() {
        let address = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut poll = Poll::new().unwrap();
        let mut shared = SharedSockets::new(1);
        let socket = shared.connect(poll.registry(), at(0), address, None).unwrap();
        shared.connect(poll.registry(), at(1), address, None).unwrap();
        told(&mut shared, &mut poll);
        socket.send(b"hello").unwrap();
        assert_eq!(told(&mut shared, &mut poll).0, [0, 1]);
        for place in [0, 1] {
            let error = shared.receive(at(place), &mut [0; DATAGRAM_BYTES], &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
    }
}
