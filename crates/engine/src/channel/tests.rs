//! A channel against a server in memory, by a socket that takes little at once.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};

use brunt_record::time::Tick;

use super::*;
use crate::transport::{Address, ConnectionId, Ready};

/// A socket whose peer reads `room` bytes a turn.
#[derive(Default)]
struct Wire {
    room: usize,
    out: VecDeque<u8>,
    /// How many bytes it had taken whenever it was told to acknowledge what came.
    acknowledged: Vec<usize>,
    /// The error of the next write.
    fails: Option<rustix::io::Errno>,
}

impl Driver for Wire {
    fn now(&mut self) -> Tick {
        Tick::EPOCH
    }
    fn connect(&mut self, _token: ConnectionId, _address: &Address, _source: Option<IpAddr>) -> io::Result<()> {
        Ok(())
    }
    fn connected(&mut self, _token: ConnectionId) -> io::Result<bool> {
        Ok(true)
    }
    fn read(&mut self, _token: ConnectionId, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
    fn write(&mut self, _token: ConnectionId, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = self.fails.take() {
            return Err(error.into());
        }
        let taken = bytes.len().min(self.room);
        if taken == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.room -= taken;
        self.out.extend(bytes.iter().take(taken));
        Ok(taken)
    }
    fn acknowledge(&mut self, _token: ConnectionId) {
        self.acknowledged.push(self.out.len());
    }
    fn close(&mut self, _token: ConnectionId) {}
    fn wait(&mut self, _until: Tick, _ready: &mut Vec<Ready>) -> io::Result<()> {
        Ok(())
    }
    fn pause(&mut self, _ns: u64) {}
}

fn socket(wire: &mut Wire) -> Socket<'_, Wire> {
    Socket { driver: wire, token: ConnectionId::at(0) }
}

/// A server of TLS, and the route of who trusts it.
fn server() -> (ServerConnection, TlsRoute) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let theirs = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let chain = vec![certified.cert.der().clone()];
    let theirs = theirs.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let ours = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(ours.with_root_certificates(roots).with_no_client_auth());
    let server_name = ServerName::try_from("localhost").unwrap();
    (ServerConnection::new(Arc::new(theirs)).unwrap(), TlsRoute::of(config, server_name))
}

/// What the system has no room for is a lost datagram; without a way, a connection that is being made fails.
#[test]
fn a_datagram_that_finds_no_room_is_lost_and_one_without_a_way_fails() {
    use rustix::io::Errno;

    let (_, route) = server();
    let setup = brunt_quic::ClientSetup::new(Arc::clone(&route.config), brunt_quic::Limits::CLIENT).unwrap();
    let route = TlsRoute { quic: Some(setup), ..route };
    for (error, is_lost, dropped) in [
        (Errno::NOBUFS, true, 1),
        (Errno::MSGSIZE, true, 0),
        (Errno::NETUNREACH, false, 0),
        (Errno::CONNREFUSED, false, 0),
    ] {
        let mut channel = Channel::quic(&route, "127.0.0.1:9".parse().unwrap(), 1, None, Tick::EPOCH).unwrap();
        let mut wire = Wire { room: 1 << 20, fails: Some(error), ..Wire::default() };
        let mut written = 0;
        let outcome = channel.flush(&mut socket(&mut wire), &mut written);
        assert_eq!((outcome.is_ok(), channel.take_losses(0).dropped), (is_lost, dropped), "{error}");
    }
}

/// Lets the server read what the socket took, and gives what it sends.
fn turn(server: &mut ServerConnection, wire: &mut Wire) -> Vec<u8> {
    let came: Vec<u8> = wire.out.drain(..).collect();
    let mut came = came.as_slice();
    while !came.is_empty() {
        server.read_tls(&mut came).unwrap();
        server.process_new_packets().unwrap();
    }
    let mut sent = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut sent).unwrap();
    }
    sent
}

/// Feeds a channel with bytes in such pieces; all clear bytes, and whether the end came.
fn feed(channel: &mut Channel, bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let (mut clear, mut buffer) = (Vec::new(), [0; 5]);
    for mut piece in bytes.chunks(piece) {
        while !piece.is_empty() {
            channel.feed(&mut piece, Tick::EPOCH).unwrap();
            loop {
                match channel.next_clear(&mut buffer) {
                    Clear::Bytes(count) => clear.extend_from_slice(&buffer[..count]),
                    Clear::Nothing | Clear::Broken(..) => break,
                    Clear::End => return (clear, true),
                }
            }
        }
    }
    (clear, false)
}

/// Opens a channel whose bytes come and go in such pieces.
fn opened(piece: usize) -> (Channel, ServerConnection, Wire) {
    let (mut server, route) = server();
    let (mut channel, mut wire) = (Channel::tls(&route).unwrap(), Wire::default());
    for _ in 0..10_000 {
        wire.room = piece;
        channel.flush(&mut socket(&mut wire), &mut 0).unwrap();
        let came = turn(&mut server, &mut wire);
        feed(&mut channel, &came, piece);
        if channel.handshake().is_some() && !channel.has_unsent() && !server.is_handshaking() {
            return (channel, server, wire);
        }
    }
    panic!("no end of the handshake");
}

#[test]
fn what_a_plain_socket_does_not_take_waits() {
    let (mut channel, mut wire) = (Channel::Plain, Wire { room: 3, ..Wire::default() });
    let (mut unsent, mut sent) = (Unsent::default(), Sent::default());
    channel.send(&mut socket(&mut wire), b"hello", &mut unsent, &mut sent).unwrap();
    assert_eq!((sent.clear, sent.wire, unsent.next()), (3, 3, b"lo".as_slice()));
    channel.send(&mut socket(&mut wire), b" you", &mut unsent, &mut sent).unwrap();
    wire.room = 100;
    channel.send_waiting(&mut socket(&mut wire), &mut unsent, &mut sent).unwrap();
    assert_eq!(
        (sent.clear, unsent.is_empty(), wire.out.make_contiguous()),
        (9, true, &mut b"hello you".to_owned()[..])
    );
    assert_eq!(channel.handshake(), Some(Handshake { is_resumed: false }));
}

#[test]
fn bytes_over_tls_come_whole_however_they_are_cut() {
    for piece in [1, 7, 100, 100_000] {
        let (mut channel, mut server, mut wire) = opened(piece);
        let (mut unsent, mut sent) = (Unsent::default(), Sent::default());
        let question = vec![b'?'; 3000];
        channel.send(&mut socket(&mut wire), &question, &mut unsent, &mut sent).unwrap();
        let mut read = Vec::new();
        while read.len() < question.len() {
            wire.room = 10_000;
            channel.send_waiting(&mut socket(&mut wire), &mut unsent, &mut sent).unwrap();
            turn(&mut server, &mut wire);
            let _ = server.reader().read_to_end(&mut read);
        }
        assert_eq!((read == question, sent.clear), (true, 3000), "{piece}");
        assert!(sent.wire > 3000 && !channel.has_unsent());

        assert!(!channel.has_ended(), "an end of the socket would be a cut");
        server.writer().write_all(b"an answer").unwrap();
        server.send_close_notify();
        let came = turn(&mut server, &mut wire);
        assert_eq!(feed(&mut channel, &came, piece), (b"an answer".to_vec(), true), "{piece}");
        assert!(channel.has_ended());

        wire.room = 10_000;
        assert!(channel.close(&mut socket(&mut wire)) > 0);
        turn(&mut server, &mut wire);
        assert_eq!(server.reader().read(&mut [0; 9]).unwrap(), 0, "the server has our end");
    }
}

#[test]
fn tickets_are_acknowledged_while_a_long_request_is_sent() {
    let (mut channel, _server, mut wire) = opened(100_000);
    let mut unsent = Unsent::default();
    unsent.push(&vec![b'?'; 5 * TLS_AT_ONCE_BYTES]);
    wire.room = 3 * TLS_AT_ONCE_BYTES;
    channel.send_waiting(&mut socket(&mut wire), &mut unsent, &mut Sent::default()).unwrap();
    let within = wire.acknowledged.windows(2).all(|of| of[1] - of[0] < TLS_AT_ONCE_BYTES + 2000);
    assert!(within && wire.acknowledged.len() > 3, "behind each piece: {:?}", wire.acknowledged);
    assert_eq!(wire.acknowledged.last(), Some(&wire.out.len()), "and behind the last byte that the socket took");
}

#[test]
fn what_is_no_tls_is_named() {
    let (_, route) = server();
    let mut channel = Channel::tls(&route).unwrap();
    channel.flush(&mut socket(&mut Wire { room: 10_000, ..Wire::default() }), &mut 0).unwrap();
    let error = channel.feed(&mut b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), Tick::EPOCH).unwrap_err();
    assert!(error.contains("plain HTTP"), "{error}");
    assert!(channel.has_unsent(), "an alert waits");
}
