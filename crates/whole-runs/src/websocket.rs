//! WebSocket: the suite, and its own tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::behaviour::{Speech, every_behaviour};
use super::{MS, carry_out, plan};
use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_record::time::Tick;
use brunt_websocket::options::Options;

const WEBSOCKET: Speech = Speech {
    url: "ws://127.0.0.1/",
    options: ProtocolOptions::default,
    aside: |bytes| handshake(bytes).or_else(|| goodbye(bytes)),
    idempotent: false,
    request: frame,
    answer: b"\x81\x05hello",
    fit: |_, _| {},
    garbage: b"\xff\xffSSH-2.0-OpenSSH_9.2\r\n",
    oversize: (b"\x81\x7f\x00\x00\x00\x00\x02\x00\x00\x00", b"abcdefgh"),
    oversize_is: Failure::Protocol,
};

/// The answer to a whole handshake at the beginning of `bytes`, and the length of that.
pub(super) fn handshake(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let end = bytes.starts_with(b"GET ").then(|| bytes.windows(4).position(|four| four == b"\r\n\r\n"))?? + 4;
    let request = std::str::from_utf8(&bytes[..end]).unwrap();
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        STANDARD.encode(hash)
    );
    Some((end, answer.into_bytes()))
}

/// The length of a whole masked frame of under 126 bytes at the beginning of `bytes`.
fn frame(bytes: &[u8]) -> Option<usize> {
    let length = usize::from(bytes.get(1)? & 0x7f) + 6;
    (bytes[0] != 0x88 && bytes[0] != b'G' && bytes.len() >= length).then_some(length)
}

/// Answers a Close frame with one.
fn goodbye(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    (bytes.first() == Some(&0x88) && bytes.len() >= 8).then(|| (8, b"\x88\x02\x03\xe8".to_vec()))
}

#[test]
fn behaves() {
    every_behaviour(WEBSOCKET);
}

/// A peer that accepts every handshake after a time, then answers each message with the same acts.
struct Grants {
    after_ns: u64,
    acts: Reaction,
    received: Vec<Vec<u8>>,
}

impl Grants {
    fn then(acts: Reaction) -> Self {
        Self { after_ns: 0, acts, received: Vec::new() }
    }
}

impl Peer for Grants {
    fn received(&mut self, _connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        if let Some((_, answer)) = handshake(bytes) {
            return vec![(self.after_ns, Act::Send(answer))];
        }
        self.received.push(bytes.to_vec());
        self.acts.clone()
    }
}

fn sends(bytes: &[u8]) -> Reaction {
    vec![(MS, Act::Send(bytes.to_vec()))]
}

#[test]
fn handshakes_have_a_latency_of_their_own() {
    let peer = Grants { after_ns: 7 * MS, ..Grants::then(sends(WEBSOCKET.answer)) };
    let summary = carry_out(&Plan { connections: 3.into(), ..plan(WEBSOCKET.url) }, peer).summary;
    let handshake = summary.times.handshake.unwrap();
    assert_eq!((handshake.count, handshake.min, handshake.max.value), (3, 7 * MS, 7 * MS));
    assert_eq!(summary.times.response.unwrap().max.value, MS, "it is in no call's time");
    assert_eq!(summary.total.statuses.sorted(), [(0, 3000)]);
}

#[test]
fn a_call_of_its_own_connection_ends_with_the_goodbye() {
    let peer = super::behaviour::answering(WEBSOCKET);
    let summary = carry_out(&Plan { reconnect: true, ..plan(WEBSOCKET.url) }, peer).summary;
    let total = &summary.total;
    assert!(total.statuses.total() > 900 && total.failures.total() == 0, "{total:?}");
    assert_eq!(total.times.known(Timing::Handshake).count(), total.numbers.get(Counter::ConnectionsMade));
    assert!(total.numbers.get(Counter::ConnectionsMade).abs_diff(total.statuses.total()) <= 1);
}

#[test]
fn another_message_is_a_mismatch_and_no_more() {
    for (answer, reason) in [
        (b"\x81\x05hallo".as_slice(), "a message with other content came back"),
        (b"\x81\x03hel", "a message of another length came back"),
        (b"\x82\x05hello", "binary came back for text"),
    ] {
        let summary = carry_out(&plan(WEBSOCKET.url), Grants::then(sends(answer))).summary;
        let failed = summary.failures(Failure::Mismatch);
        assert!(failed > 800, "{failed}");
        assert_eq!(summary.total.failures.reasons(Failure::Mismatch), [(reason, failed)]);
        assert!(
            summary.total.numbers.get(Counter::ConnectionsMade) >= failed,
            "the echo that is owed goes with its connection"
        );
    }
}

#[test]
fn a_push_that_nobody_asked_for_spoils_no_later_latency() {
    // Each message is echoed after 10 ms, and followed by a push, which arrives during the next call.
    let echo = (10 * MS, Act::Send(WEBSOCKET.answer.to_vec()));
    let push = (14 * MS, Act::Send(b"\x81\x04news".to_vec()));
    let summary = carry_out(&plan(WEBSOCKET.url), Grants::then(vec![echo, push])).summary;
    assert!(summary.total.statuses.total() > 30 && summary.failures(Failure::Mismatch) > 30);
    let answered = &summary.total.times.known(Timing::Response);
    assert!(answered.values().all(|(value, _)| !(5 * MS..=9 * MS).contains(&value)), "an echo was taken for another's");
}

#[test]
fn what_nobody_asked_for_is_counted_and_disturbs_nothing() {
    let load = brunt_plan::plan::Load::Open {
        profile: "10".parse().unwrap(),
        arrivals: brunt_plan::arrivals::Spread::Uniform,
    };
    let acts = vec![(MS, Act::Send(WEBSOCKET.answer.to_vec())), (20 * MS, Act::Send(b"\x81\x04news".to_vec()))];
    let summary = carry_out(&Plan { load, ..plan(WEBSOCKET.url) }, Grants::then(acts)).summary;
    assert_eq!((summary.total.statuses.total(), summary.total.numbers.get(Counter::Unasked)), (10, 10));
    assert_eq!(summary.total.failures.total(), 0);
}

#[test]
fn pings_are_answered_and_fragments_joined() {
    // A ping between the two halves of the echo.
    let answer = b"\x01\x02he\x89\x03abc\x80\x03llo";
    let summary = carry_out(&plan(WEBSOCKET.url), Grants::then(sends(answer))).summary;
    assert_eq!(summary.total.failures.total(), 0, "{:?}", summary.total.failures);
    // Each pong has caused the same acts again: echoes without a call, or during the next one.
    assert!(summary.total.statuses.total() >= 1000);
    assert!(summary.total.numbers.get(Counter::ClearOut) > 11 * 1000, "pongs are sent: {:?}", summary.total.numbers);
}

#[test]
fn a_close_is_named() {
    let summary = carry_out(&plan(WEBSOCKET.url), Grants::then(sends(b"\x88\x02\x03\xf3"))).summary;
    let total = &summary.total;
    assert_eq!(total.failures.total(), summary.failures(Failure::Closed));
    let reasons = total.failures.reasons(Failure::Closed);
    assert_eq!(reasons.len(), 1);
    assert_eq!(reasons[0].0, "the peer closed with 1011 internal error");
}

#[test]
fn a_handshake_that_is_refused_is_no_call() {
    struct Refuses(&'static [u8]);
    impl Peer for Refuses {
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
            sends(self.0)
        }
    }
    for (answer, failure, reason) in [
        (
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".as_slice(),
            Failure::Handshake,
            "the server answered 403, not 101 Switching Protocols",
        ),
        (b"SSH-2.0-OpenSSH\r\n", Failure::Protocol, "a handshake that is not an HTTP/1.1 answer"),
        (b"", Failure::ConnectTimeout, "no opening handshake within the connect timeout"),
    ] {
        let summary = carry_out(&plan(WEBSOCKET.url), Refuses(answer)).summary;
        let failures = &summary.total.failures;
        assert_eq!((failures.total(), summary.total.statuses.total()), (summary.failures(failure), 0), "{failures:?}");
        assert!(failures.reasons(failure).iter().all(|(got, _)| *got == reason), "{failures:?}");
        assert!(
            summary.total.numbers.get(Counter::ConnectionsFailed) > 0
                && summary.total.numbers.get(Counter::ConnectionsMade) == 0
        );
        assert!(
            summary.total.numbers.get(Counter::Due) < 30,
            "it backs off: {}",
            summary.total.numbers.get(Counter::Due)
        );
    }
}

#[test]
fn a_run_ends_with_a_goodbye() {
    use std::sync::{Arc, Mutex};

    struct Last(Grants, Arc<Mutex<Vec<u8>>>);
    impl Peer for Last {
        fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
            *self.1.lock().unwrap() = bytes.to_vec();
            self.0.received(connection, bytes, now)
        }
    }
    let last = Arc::default();
    let peer = Last(Grants::then(sends(WEBSOCKET.answer)), Arc::clone(&last));
    carry_out(&plan(WEBSOCKET.url), peer);
    let last = last.lock().unwrap();
    assert_eq!((last[0], last[1], last.len()), (0x88, 0x82, 8), "a masked Close frame with a code");
    assert_eq!([last[6] ^ last[2], last[7] ^ last[3]], 1000_u16.to_be_bytes());
}

#[test]
fn a_compressed_message_comes_back_however_it_is_compressed() {
    let options = Options { deflate: true, ..Options::default() };
    // A server that did not agree: the message goes plain.
    let plan = Plan { protocol: options.to_protocol(), ..plan(WEBSOCKET.url) };
    let summary = carry_out(&plan, Grants::then(sends(WEBSOCKET.answer))).summary;
    assert_eq!((summary.total.statuses.total(), summary.total.failures.total()), (1000, 0));
}
