//! Whole runs over HTTP/2, against peers that keep to the rules and peers that do not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_http1::options::{Content, Options, Version};
use brunt_http2::frame::{
    ErrorCode, HEAD_BYTES, Head, PREFACE, flag, kind, setting, write_goaway, write_reset, write_settings,
};
use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_protocol::messages::{Framing, MessageOptions};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;

use super::{MS, carry_out, carry_out_on, plan};
use brunt_engine::StopHandle;
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

/// The peer's reaction to a stream's complete request.
pub(super) type Manner = fn(connection: u64, stream: u32) -> Reaction;

/// A peer that reads frames, and reopens the windows that bodies use up.
pub(super) struct Server {
    settings: &'static [(u16, u32)],
    manner: Box<dyn Fn(u64, u32) -> Reaction + Send>,
    partial: BTreeMap<u64, Vec<u8>>,
    /// Whether windows grow.
    gives_back: bool,
}

impl Server {
    pub(super) fn new(settings: &'static [(u16, u32)], manner: impl Fn(u64, u32) -> Reaction + Send + 'static) -> Self {
        Self { settings, manner: Box::new(manner), partial: BTreeMap::new(), gives_back: true }
    }
}

impl Peer for Server {
    fn received(&mut self, connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
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

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
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

pub(super) fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_reset(stream, code, &mut bytes);
    bytes
}

pub(super) fn goaway(last: u32, code: ErrorCode) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_goaway(code, &mut bytes);
    bytes[HEAD_BYTES..HEAD_BYTES + 4].copy_from_slice(&last.to_be_bytes());
    bytes
}

fn plan_of(streams: u32, requests: u64) -> Plan {
    let stop = StopRule { duration_ns: None, requests: Some(requests) };
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
            assert_eq!(summary.total.numbers.get(Counter::ConnectionsMade), 1);
        }
    }
}

/// A peer that counts the writes to it.
struct Counting(Server, Arc<AtomicU64>);

impl Peer for Counting {
    fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.received(connection, bytes, now)
    }
}

#[test]
fn answers_gather_where_many_calls_share_a_connection() {
    let written = |streams: u32| {
        let writes = Arc::new(AtomicU64::new(0));
        // No two answers come at once.
        let takes = |stream: u32| 2 * MS + u64::from(stream % 97) * 10_007;
        let server =
            Counting(Server::new(&[], move |_, stream| send(takes(stream), answer(stream))), Arc::clone(&writes));
        let summary = carry_out(&plan_of(streams, 10_000), server).summary;
        assert_all_answered(&summary, 10_000);
        // The pause is in no time of the target's.
        let service = summary.total.times.known(Timing::ServiceValue);
        assert!(service.max().unwrap() <= 3 * MS + 100_000, "{service:?}");
        assert!(summary.total.times.known(Timing::Receiving).max().unwrap() <= 100_000);
        writes.load(Ordering::Relaxed)
    };
    let (few, many) = (written(10), written(100));
    assert!(few > 9_000 && many < 5_000, "{few} and {many} writes");
}

#[test]
fn a_peer_that_takes_few_streams_gets_no_more() {
    const FEW: &[(u16, u32)] = &[(setting::MAX_CONCURRENT_STREAMS, 4)];
    for plan in both_models(&plan_of(50, 200)) {
        let summary = carry_out(&plan, Server::new(FEW, |_, stream| send(10 * MS, answer(stream)))).summary;
        assert_all_answered(&summary, 200);
        assert!(summary.run.measured_ns >= 200 / 4 * 10 * MS, "{}", summary.run.measured_ns);
        let held_back = summary.total.numbers;
        // From the fourth call on, until the last ones are in flight.
        assert!((490 * MS..=500 * MS).contains(&held_back.get(Counter::HeldBackByStreamLimit)), "{held_back:?}");
        assert_eq!(held_back.get(Counter::HeldBackByFlowControl), 0);
    }
    // A load that asks for no more streams than the limit is not held back.
    let summary = carry_out(&plan_of(4, 200), Server::new(FEW, |_, stream| send(10 * MS, answer(stream)))).summary;
    assert!(summary.total.numbers.get(Counter::HeldBackByStreamLimit) == 0);
}

#[test]
fn a_peer_that_takes_no_streams_has_calls_time_out_and_gets_few_connections() {
    const NONE: &[(u16, u32)] = &[(setting::MAX_CONCURRENT_STREAMS, 0)];
    let server = || Server::new(NONE, |_, stream| send(MS, answer(stream)));
    for (connections, workers) in [(1, 1), (3, 1)] {
        let plan = Plan { connections: connections.into(), workers, ..plan_of(10, 6) };
        let summary = carry_out(&plan, server()).summary;
        assert_eq!(summary.failures(Failure::Timeout), 6, "{:?}", summary.total.failures);
        assert_eq!(summary.total.numbers.get(Counter::ConnectionsMade), u64::from(connections));
    }
    let load = Load::Open { profile: "200".parse().unwrap(), arrivals: Spread::Uniform };
    let up_to = brunt_plan::connections::Connections::UpTo(10_000);
    for connections in [up_to, 4.into()] {
        let plan = Plan { load: load.clone(), connections, ..plan_of(10, 200) };
        let summary = carry_out(&plan, server()).summary;
        assert_eq!(summary.failures(Failure::Timeout), 200, "{:?}", summary.total.failures);
        let made = summary.total.numbers.get(Counter::ConnectionsMade);
        assert!(made <= 20, "{made} connections");
    }
}

#[test]
fn answers_behind_a_goaway_with_an_error_count_however_bytes_are_cut() {
    let manner: Manner = |_, stream| {
        let said = [goaway(u32::MAX >> 1, ErrorCode::ENHANCE_YOUR_CALM), answer(stream)].concat();
        vec![(MS, Act::Send(said)), (2 * MS, Act::Close)]
    };
    for piece in [1, 7, 100, usize::MAX] {
        let net = VirtualNet::new(Server::new(&[], manner)).in_pieces_of(piece);
        let summary = carry_out_on(&plan_of(1, 8), &net, &StopHandle::default()).summary;
        assert_all_answered(&summary, 8);
    }
}

#[test]
fn a_slow_call_is_reset_and_its_connection_goes_on() {
    let manner: Manner = |_, stream| if stream == 19 { vec![] } else { send(MS, answer(stream)) };
    let summary = carry_out(&plan_of(5, 300), Server::new(&[], manner)).summary;
    let total = &summary.total;
    assert_eq!((total.statuses.total(), summary.failures(Failure::Timeout)), (299, 1));
    assert_eq!(total.numbers.get(Counter::ConnectionsMade), 1);
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
        let reconnects = refused.total.numbers.get(Counter::TurnedAway);
        assert!(reconnects > 50 && refused.total.numbers.get(Counter::ConnectionsMade) == 1);
        assert_eq!(refused.total.events.get("RST_STREAM REFUSED_STREAM"), reconnects);
        assert!(refused.total.events.get("header bytes saved") > 500 * 20);
        let left = carry_out(&plan, Server::new(&[], leaving)).summary;
        assert_all_answered(&left, 500);
        assert!(left.total.numbers.get(Counter::ConnectionsMade) > 20, "{:?}", left.total.numbers);
        assert!(left.total.events.get("GOAWAY") >= left.total.numbers.get(Counter::ConnectionsMade) - 1);
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
        // The peer leaves, and never answers the calls that it has accepted.
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
fn calls_that_every_connection_turns_away_have_the_peers_error() {
    let manner: Manner = |_, _| send(MS, goaway(0, ErrorCode::INTERNAL_ERROR));
    // Each connection has a longer wait than the one before.
    let plan = Plan { timeout_ns: 60_000 * MS, ..plan_of(1, 3) };
    let summary = carry_out(&plan, Server::new(&[], manner)).summary;
    let expected = "the peer turned the call away on each of 9 connections: GOAWAY with INTERNAL_ERROR";
    assert_eq!(summary.total.failures.reasons(Failure::Closed), [(expected, 3)]);
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
        assert!(summary.total.numbers.get(Counter::ClearOut) > 6 * length as u64);
        // A window that stays closed costs the call, not the connection.
        let silent = Server { gives_back: false, ..Server::new(SMALL, |_, stream| send(MS, answer(stream))) };
        let summary = carry_out(&Plan { timeout_ns: 100 * MS, ..plan }, silent).summary;
        assert_eq!((summary.failures(Failure::Timeout), summary.total.numbers.get(Counter::ConnectionsMade)), (6, 1));
    }
}

#[test]
fn time_blocked_by_flow_control_is_counted() {
    const SMALL: &[(u16, u32)] = &[(setting::INITIAL_WINDOW_SIZE, 1000)];
    let body = Some(Content(vec![b'x'; 3000]));
    let options = Options { method: "POST".into(), http: Version::Two, body, ..Options::default() };
    let plan = Plan { protocol: options.to_protocol(), ..plan_of(1, 10) };
    let summary = carry_out(&plan, Server::new(SMALL, |_, stream| send(5 * MS, answer(stream)))).summary;
    assert_all_answered(&summary, 10);
    // Each body takes three windows. The second and the third open 1 ms after the one before was used up.
    let held_back = summary.total.numbers;
    assert_eq!(
        (held_back.get(Counter::HeldBackByFlowControl), held_back.get(Counter::HeldBackByStreamLimit)),
        (20 * MS, 0)
    );
    // A window that stays closed holds the connection back until the call is given up.
    let silent = Server { gives_back: false, ..Server::new(SMALL, |_, stream| send(MS, answer(stream))) };
    let total = carry_out(&Plan { timeout_ns: 50 * MS, ..plan }, silent).summary.total;
    assert_eq!(
        (total.failures.count(Failure::Timeout), total.numbers.get(Counter::HeldBackByFlowControl)),
        (10, 500 * MS)
    );
}

#[test]
fn a_peer_of_http_1_is_named() {
    struct Http1;
    impl Peer for Http1 {
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
            send(MS, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec())
        }
    }
    let summary = carry_out(&plan_of(1, 3), Http1).summary;
    let reasons = summary.total.failures.reasons(Failure::Protocol);
    assert_eq!(reasons, [("the target answers in HTTP/1.1: leave --http 2 out", 3)]);
}

/// A DATA frame with this text.
fn data(stream: u32, text: &str) -> Vec<u8> {
    frame(kind::DATA, 0, stream, text.as_bytes())
}

fn head(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, stream, &[0x88])
}

/// Events after 10, 30 and 60 ms, two more at once after 70 ms, and the end 5 ms later.
pub(super) fn events(_: u64, stream: u32) -> Reaction {
    vec![
        (5 * MS, Act::Send(head(stream))),
        (10 * MS, Act::Send(data(stream, "data: a\n\n"))),
        (30 * MS, Act::Send(data(stream, "data: b\n\n"))),
        (60 * MS, Act::Send(data(stream, "data: c\n\n"))),
        (70 * MS, Act::Send(data(stream, "data: d\n\ndata: e\n\n"))),
        (75 * MS, Act::Send(frame(kind::DATA, flag::END_STREAM, stream, b"data: [DONE]\n\n"))),
    ]
}

fn plan_of_messages(streams: u32, calls: u64, messages: MessageOptions) -> Plan {
    let options = Options { http: Version::Two, messages: Some(messages), ..Options::default() };
    Plan { protocol: options.to_protocol(), ..plan_of(streams, calls) }
}

fn events_until_done() -> MessageOptions {
    MessageOptions { framing: Framing::Sse, last: Some("[DONE]".to_owned()), stall_ns: None }
}

#[test]
fn many_streams_of_messages_share_a_connection_and_each_is_timed_by_itself() {
    for piece in [1, 7, usize::MAX] {
        let net = VirtualNet::new(Server::new(&[], events)).in_pieces_of(piece);
        let plan = plan_of_messages(10, 40, events_until_done());
        let summary = carry_out_on(&plan, &net, &StopHandle::default()).summary;
        assert_all_answered(&summary, 40);
        let all = summary.total.messages();
        assert_eq!((all.count(), all.streams(), summary.total.numbers.get(Counter::ConnectionsMade)), (200, 40, 1));
        assert_eq!((all.first().known.min(), all.first().known.max()), (Some(10 * MS), Some(10 * MS)));
        let gaps: Vec<_> = all.gap().known.values().map(|(ns, n)| ((ns + MS / 2) / MS, n)).collect();
        assert_eq!(gaps, [(0, 40), (10, 40), (20, 40), (30, 40)]);
        assert_eq!(summary.times.response.unwrap().max.value, 75 * MS);
    }
}

#[test]
fn data_frames_are_the_chunks_of_http_2() {
    let manner: Manner = |_, stream| {
        let padded = frame(kind::DATA, flag::PADDED, stream, b"\x03two\0\0\0");
        let last = frame(kind::DATA, flag::PADDED | flag::END_STREAM, stream, b"\x01three\0");
        send(MS, [head(stream), data(stream, "one"), data(stream, ""), padded, last].concat())
    };
    let chunks = MessageOptions { framing: Framing::Chunks, last: None, stall_ns: None };
    for piece in [1, 2, usize::MAX] {
        let net = VirtualNet::new(Server::new(&[], manner)).in_pieces_of(piece);
        let summary = carry_out_on(&plan_of_messages(3, 9, chunks.clone()), &net, &StopHandle::default()).summary;
        assert_all_answered(&summary, 9);
        assert_eq!((summary.total.messages().count(), summary.total.messages().streams()), (27, 9));
    }
}

#[test]
fn a_stream_that_goes_wrong_fails_by_name_and_its_neighbours_go_on() {
    let cases: [(Manner, Failure, &str); 4] = [
        (
            |_, stream| vec![(MS, Act::Send([head(stream), data(stream, "data: a\n\n")].concat()))],
            Failure::Stalled,
            "no message within the longest gap allowed",
        ),
        (
            |_, stream| send(MS, [head(stream), frame(kind::DATA, flag::END_STREAM, stream, b"data: a\n\n")].concat()),
            Failure::EndedEarly,
            "the stream ended without its last message",
        ),
        (
            |_, stream| {
                send(MS, [head(stream), data(stream, "data: a\n\n"), reset(stream, ErrorCode::CANCEL)].concat())
            },
            Failure::Closed,
            "the peer reset the stream: CANCEL",
        ),
        (
            |_, stream| {
                let rest = std::iter::repeat_with(|| data(stream, &"x".repeat(16_000))).take(1100);
                send(
                    MS,
                    [head(stream), data(stream, "data: a\n\ndata: ")]
                        .into_iter()
                        .chain(rest)
                        .collect::<Vec<_>>()
                        .concat(),
                )
            },
            Failure::Protocol,
            "a message of more than 16 MiB",
        ),
    ];
    for (wrong, failure, expected) in cases {
        // One stream of the first ten goes wrong.
        let manner = move |connection: u64, stream: u32| {
            if stream == 7 { wrong(connection, stream) } else { events(connection, stream) }
        };
        let messages = MessageOptions { stall_ns: Some(40 * MS), ..events_until_done() };
        let total = carry_out(&plan_of_messages(10, 20, messages), Server::new(&[], manner)).summary.total;
        assert_eq!(total.failures.reasons(failure), [(expected, 1)]);
        assert_eq!((total.statuses.total(), total.numbers.get(Counter::ConnectionsMade)), (19, 1));
        assert_eq!((total.messages().count(), total.messages().streams()), (19 * 5 + 1, 20), "{expected}");
    }
}

#[test]
fn answers_that_are_no_success_are_no_streams() {
    // `:status: 500`.
    let manner: Manner = |_, stream| {
        let head = frame(kind::HEADERS, flag::END_HEADERS, stream, &[0x8e]);
        send(MS, [head, frame(kind::DATA, flag::END_STREAM, stream, b"data: a\n\n")].concat())
    };
    let total = carry_out(&plan_of_messages(2, 6, events_until_done()), Server::new(&[], manner)).summary.total;
    assert_eq!((total.statuses.sorted(), total.messages().is_empty()), (vec![(500, 6)], true));
}

#[test]
fn streams_of_messages_at_a_rate_are_all_accounted_for() {
    let load = Load::Open { profile: "200".parse().unwrap(), arrivals: Spread::Uniform };
    let plan = Plan { load, ..plan_of_messages(10, 100, events_until_done()) };
    let total = carry_out(&plan, Server::new(&[], events)).summary.total;
    assert_eq!((total.numbers.get(Counter::Due), total.statuses.total(), total.messages().count()), (100, 100, 500));
    // A stream takes 75 ms, so that ten carry 133 a second of the 200: calls wait for one.
    assert!(
        total.numbers.get(Counter::WaitedForConnection) > 50,
        "{}",
        total.numbers.get(Counter::WaitedForConnection)
    );
    assert_eq!(total.messages().first().known.max(), Some(10 * MS), "waiting for a stream is no time of a message");
}

#[test]
fn a_goaway_lets_streams_of_messages_end() {
    let manner: Manner = |connection, stream| {
        let mut acts = events(connection, stream);
        if stream == 9 {
            acts.push((20 * MS, Act::Send(goaway(9, ErrorCode::NO_ERROR))));
        }
        acts
    };
    let summary = carry_out(&plan_of_messages(5, 30, events_until_done()), Server::new(&[], manner)).summary;
    assert_all_answered(&summary, 30);
    assert_eq!(summary.total.messages().count(), 150);
    assert!(summary.total.numbers.get(Counter::ConnectionsMade) > 1);
}
