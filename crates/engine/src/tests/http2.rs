//! Whole runs over HTTP/2, against peers that keep to the rules and peers that do not.

use std::collections::BTreeMap;

use brunt_http1::options::{Content, Options, Version};
use brunt_http2::frame::{
    ErrorCode, HEAD_BYTES, Head, PREFACE, flag, kind, setting, write_goaway, write_reset, write_settings,
};
use brunt_model::arrivals::Spread;
use brunt_model::outcome::Failure;
use brunt_model::plan::{Load, Plan, Stop};
use brunt_model::summary::Summary;

use super::virtual_net::{Act, Peer, Reaction, VirtualNet};
use super::{MS, carry_out, carry_out_on, plan};
use crate::StopHandle;

/// What a peer does once a stream's request has come.
type Manner = fn(connection: u64, stream: u32) -> Reaction;

/// A peer that reads frames, and gives back what it reads of bodies.
struct Server {
    settings: &'static [(u16, u32)],
    manner: Manner,
    partial: BTreeMap<u64, Vec<u8>>,
    /// Whether windows grow.
    gives_back: bool,
}

impl Server {
    fn new(settings: &'static [(u16, u32)], manner: Manner) -> Self {
        Self { settings, manner, partial: BTreeMap::new(), gives_back: true }
    }
}

impl Peer for Server {
    fn received(&mut self, connection: u64, bytes: &[u8], _now: u64) -> Reaction {
        let mut reaction = Vec::new();
        let buffer = self.partial.entry(connection).or_default();
        let begins = buffer.len() < PREFACE.len();
        buffer.extend_from_slice(bytes);
        if begins {
            if buffer.len() < PREFACE.len() {
                return reaction;
            }
            assert!(buffer.starts_with(PREFACE));
            let mut settings = Vec::new();
            write_settings(self.settings, &mut settings);
            reaction.push((MS, Act::Send(settings)));
        }
        // The preface stays, and shows that it has come.
        while let Some(head) = buffer.get(PREFACE.len()..).and_then(Head::read) {
            let end = PREFACE.len() + HEAD_BYTES + head.length;
            if buffer.len() < end {
                break;
            }
            buffer.drain(PREFACE.len()..end);
            if head.kind == kind::DATA && head.length > 0 && self.gives_back {
                let mut windows = Vec::new();
                for stream in [0, head.stream] {
                    brunt_http2::frame::write_window_update(stream, head.length as u32, &mut windows);
                }
                reaction.push((MS, Act::Send(windows)));
            }
            if matches!(head.kind, kind::HEADERS | kind::DATA) && head.has(flag::END_STREAM) {
                reaction.extend((self.manner)(connection, head.stream));
            }
        }
        reaction
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Head { length: payload.len(), kind, flags, stream }.write(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// `:status: 200`, and a body of two bytes.
fn answer(stream: u32) -> Vec<u8> {
    [frame(kind::HEADERS, flag::END_HEADERS, stream, &[0x88]), frame(kind::DATA, flag::END_STREAM, stream, b"ok")]
        .concat()
}

fn send(after: u64, bytes: Vec<u8>) -> Reaction {
    vec![(after, Act::Send(bytes))]
}

fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_reset(stream, code, &mut bytes);
    bytes
}

fn goaway(last: u32, code: ErrorCode) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_goaway(code, &mut bytes);
    bytes[HEAD_BYTES..HEAD_BYTES + 4].copy_from_slice(&last.to_be_bytes());
    bytes
}

fn plan_of(streams: u32, requests: u64) -> Plan {
    let stop = Stop { duration_ns: None, requests: Some(requests) };
    let options = Options { http: Version::Two, ..Options::default() };
    Plan { pipeline: streams, stop, protocol: options.to_protocol(), ..plan("http://127.0.0.1/") }
}

fn both_models(plan: &Plan) -> [Plan; 2] {
    let open = Load::Open { profile: "2000".parse().unwrap(), arrivals: Spread::Uniform };
    [plan.clone(), Plan { load: open, ..plan.clone() }]
}

fn assert_all_answered(summary: &Summary, calls: u64) {
    let total = &summary.total;
    assert_eq!((total.statuses.total(), total.failures.total()), (calls, 0), "{:?}", total.failures);
}

#[test]
fn calls_share_a_connection_however_bytes_are_cut() {
    for plan in both_models(&plan_of(10, 300)) {
        for piece in [1, 7, usize::MAX] {
            let server = Server::new(&[], |_, stream| send(MS * u64::from(1 + stream % 3), answer(stream)));
            let summary =
                carry_out_on(&plan, &VirtualNet::new(server).in_pieces_of(piece), &StopHandle::default()).summary;
            assert_all_answered(&summary, 300);
            assert_eq!(summary.total.connections.made, 1);
        }
    }
}

#[test]
fn a_peer_that_takes_few_streams_gets_no_more() {
    const FEW: &[(u16, u32)] = &[(setting::MAX_CONCURRENT_STREAMS, 4)];
    for plan in both_models(&plan_of(50, 200)) {
        let summary = carry_out(&plan, Server::new(FEW, |_, stream| send(10 * MS, answer(stream)))).summary;
        assert_all_answered(&summary, 200);
        assert!(summary.run.measured_ns >= 200 / 4 * 10 * MS, "{}", summary.run.measured_ns);
    }
}

#[test]
fn a_slow_call_is_reset_and_its_connection_goes_on() {
    let manner: Manner = |_, stream| if stream == 19 { vec![] } else { send(MS, answer(stream)) };
    let summary = carry_out(&plan_of(5, 300), Server::new(&[], manner)).summary;
    let total = &summary.total;
    assert_eq!((total.statuses.total(), summary.failures(Failure::Timeout)), (299, 1));
    assert_eq!(total.connections.made, 1);
}

#[test]
fn refused_streams_and_those_that_a_goaway_leaves_out_are_sent_again() {
    let refusing: Manner = |_, stream| match stream % 7 {
        0 => send(MS, reset(stream, ErrorCode::REFUSED_STREAM)),
        _ => send(2 * MS, answer(stream)),
    };
    let leaving: Manner = |_, stream| match stream {
        ..=41 => send(4 * MS, answer(stream)),
        49 => send(MS, goaway(41, ErrorCode::NO_ERROR)),
        _ => vec![],
    };
    for plan in both_models(&plan_of(10, 500)) {
        let refused = carry_out(&plan, Server::new(&[], refusing)).summary;
        assert_all_answered(&refused, 500);
        let reconnects = refused.total.connections.reconnects;
        assert!(reconnects > 50 && refused.total.connections.made == 1);
        assert_eq!(refused.total.events.get("RST_STREAM REFUSED_STREAM"), reconnects);
        assert!(refused.total.events.get("header bytes saved") > 500 * 20);
        let left = carry_out(&plan, Server::new(&[], leaving)).summary;
        assert_all_answered(&left, 500);
        assert!(left.total.connections.made > 20, "{:?}", left.total.connections);
        assert!(left.total.events.get("GOAWAY") >= left.total.connections.made - 1);
    }
}

#[test]
fn a_peer_that_refuses_every_stream_ends_calls_by_name() {
    let manner: Manner = |_, stream| send(MS, reset(stream, ErrorCode::REFUSED_STREAM));
    let summary = carry_out(&plan_of(2, 6), Server::new(&[], manner)).summary;
    let reasons = summary.total.failures.reasons(Failure::Closed);
    assert_eq!(reasons, [("the peer refused the call's stream 9 times (REFUSED_STREAM)", 6)]);
}

#[test]
fn what_a_peer_does_to_a_call_is_named() {
    let cases: [(Manner, Failure, &str); 5] = [
        (
            |_, stream| send(MS, reset(stream, ErrorCode::INTERNAL_ERROR)),
            Failure::Closed,
            "the peer reset the stream: INTERNAL_ERROR",
        ),
        (
            |_, stream| send(MS, frame(kind::DATA, flag::END_STREAM, stream, b"ok")),
            Failure::Protocol,
            "DATA before the head",
        ),
        (
            |_, stream| send(MS, frame(kind::HEADERS, flag::END_HEADERS, stream, &[0x80])),
            Failure::Protocol,
            "HPACK: an index without an entry",
        ),
        (
            |_, _| send(MS, goaway(u32::MAX >> 1, ErrorCode::ENHANCE_YOUR_CALM)),
            Failure::Closed,
            "the peer ended the connection: GOAWAY with ENHANCE_YOUR_CALM",
        ),
        // It leaves, and says nothing more of what it has taken.
        (
            |_, _| send(MS, goaway(u32::MAX >> 1, ErrorCode::NO_ERROR)),
            Failure::Timeout,
            "no complete answer within the timeout",
        ),
    ];
    for (manner, failure, expected) in cases {
        let summary = carry_out(&plan_of(1, 3), Server::new(&[], manner)).summary;
        assert_eq!(summary.total.failures.reasons(failure), [(expected, 3)]);
    }
}

#[test]
fn bodies_keep_to_the_peers_windows() {
    const SMALL: &[(u16, u32)] = &[(setting::INITIAL_WINDOW_SIZE, 1000)];
    for length in [3000, 300_000] {
        let body = Some(Content(vec![b'x'; length]));
        let options = Options { method: "POST".into(), http: Version::Two, body, ..Options::default() };
        let plan = Plan { protocol: options.to_protocol(), timeout_ns: 60_000 * MS, ..plan_of(3, 6) };
        let summary = carry_out(&plan, Server::new(SMALL, |_, stream| send(MS, answer(stream)))).summary;
        assert_all_answered(&summary, 6);
        assert!(summary.total.bytes.clear_out > 6 * length as u64);
        // A window that stays closed costs the call, not the connection.
        let silent = Server { gives_back: false, ..Server::new(SMALL, |_, stream| send(MS, answer(stream))) };
        let summary = carry_out(&Plan { timeout_ns: 100 * MS, ..plan }, silent).summary;
        assert_eq!((summary.failures(Failure::Timeout), summary.total.connections.made), (6, 1));
    }
}

#[test]
fn a_peer_of_http_1_is_named() {
    struct Http1;
    impl Peer for Http1 {
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: u64) -> Reaction {
            send(MS, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec())
        }
    }
    let summary = carry_out(&plan_of(1, 3), Http1).summary;
    let reasons = summary.total.failures.reasons(Failure::Protocol);
    assert_eq!(reasons, [("the target answers in HTTP/1.1: leave --http 2 out", 3)]);
}
