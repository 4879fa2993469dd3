//! What peers may and must not do, however their bytes are cut.

use std::sync::Arc;

use proptest::prelude::*;

use crate::frame::{ErrorCode, Head, flag, kind, setting, write_settings, write_window_update};
use crate::hpack::Encoder;
use crate::{Config, Connection, Event, Violation};

/// What a peer says.
#[derive(Default)]
struct Server {
    bytes: Vec<u8>,
    encoder: Encoder,
}

impl Server {
    fn opening() -> Self {
        let mut server = Self::default();
        write_settings(&[], &mut server.bytes);
        server
    }

    fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        Head { length: payload.len(), kind, flags, stream }.write(&mut self.bytes);
        self.bytes.extend_from_slice(payload);
        self
    }

    fn settings(mut self, settings: &[(u16, u32)]) -> Self {
        write_settings(settings, &mut self.bytes);
        self
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            self.encoder.field(name.as_bytes(), value.as_bytes(), true, &mut block);
        }
        block
    }

    fn head(mut self, stream: u32, flags: u8, fields: &[(&str, &str)]) -> Self {
        let block = self.block(fields);
        self.frame(kind::HEADERS, flags | flag::END_HEADERS, stream, &block)
    }

    fn data(self, stream: u32, flags: u8, data: &[u8]) -> Self {
        self.frame(kind::DATA, flags, stream, data)
    }

    fn window(mut self, stream: u32, by: u32) -> Self {
        write_window_update(stream, by, &mut self.bytes);
        self
    }
}

const END: u8 = flag::END_STREAM;
const OK: &[(&str, &str)] = &[(":status", "200"), ("server", "x")];

/// A connection with so many streams without a body.
fn asking(streams: usize) -> Connection<usize> {
    asking_with(Config::default(), streams)
}

fn asking_with(config: Config, streams: usize) -> Connection<usize> {
    let (mut connection, mut out) = (Connection::new(config), Vec::new());
    connection.open(&mut out);
    for stream in 0..streams {
        connection.start(&[0x82, 0x84, 0x86], true, false, stream, &mut out);
    }
    connection
}

/// What came of bytes that were cut so, in words; bodies in one piece.
fn heard_in(connection: &mut Connection<usize>, pieces: &[&[u8]], out: &mut Vec<u8>) -> Result<Vec<String>, Violation> {
    let mut heard = Vec::new();
    let mut body = (usize::MAX, Vec::new());
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let (taken, event) = connection.receive(rest, out)?;
            assert!(taken > 0 && taken <= rest.len());
            rest = &rest[taken..];
            if event == Event::Aside {
                assert!(rest.is_empty(), "all bytes were taken");
                continue;
            }
            let of = |connection: &mut Connection<usize>, position| *connection.data_mut(position).unwrap();
            let (words, ended) = match event {
                Event::Data { position, bytes, end, .. } => {
                    let stream = of(connection, position);
                    if body.0 != stream {
                        body = (stream, Vec::new());
                    }
                    body.1.extend_from_slice(bytes);
                    let whole = end.then(|| format!("{stream}: {}", String::from_utf8_lossy(&body.1)));
                    (whole, end.then_some(position))
                }
                Event::Head { position, status, end } => {
                    (Some(format!("{}: {status}", of(connection, position))), end.then_some(position))
                }
                Event::Trailers { position } => {
                    (Some(format!("{}: trailers", of(connection, position))), Some(position))
                }
                Event::Reset { position, code } => {
                    (Some(format!("{}: {code}", of(connection, position))), Some(position))
                }
                Event::Malformed { position, reason } => {
                    (Some(format!("{}: {reason}", of(connection, position))), Some(position))
                }
                Event::GoAway { code, unprocessed } => (Some(format!("{code}, processed {unprocessed}")), None),
                Event::Opened | Event::Aside => (None, None),
            };
            heard.extend(words);
            if let Some(position) = ended {
                assert!(connection.take(position, out).is_some());
            }
        }
    }
    Ok(heard)
}

fn heard(server: &Server, streams: usize) -> Result<Vec<String>, &'static str> {
    let mut out = Vec::new();
    let result = heard_in(&mut asking(streams), &[&server.bytes], &mut out);
    if let Err(violation) = result {
        let last = out.last_chunk::<4>().copied().map(u32::from_be_bytes);
        assert_eq!(last, Some(violation.code.0), "the peer is told by GOAWAY");
    }
    result.map_err(|violation| violation.reason)
}

#[test]
fn answers_come_in_any_order() {
    let server = Server::opening()
        .head(3, 0, OK)
        .head(1, 0, &[(":status", "103")])
        .data(3, 0, b"ab")
        .head(1, END, &[(":status", "404")])
        .data(3, END, b"c")
        .head(5, 0, &[(":status", "200"), ("content-length", "3")])
        .data(5, 0, b"xyz")
        .head(5, END, &[("grpc-status", "0")]);
    assert_eq!(heard(&server, 3).unwrap(), ["1: 200", "0: 404", "1: abc", "2: 200", "2: trailers"]);
}

#[test]
fn padding_and_priority_and_continuations_are_no_matter() {
    let mut server = Server::opening();
    let block = server.block(OK);
    let padded = [&[2, 0, 0, 0, 0, 7], block.as_slice(), &[0, 0]].concat();
    let (first, second) = block.split_at(1);
    let server = server
        .frame(kind::HEADERS, flag::PADDED | flag::PRIORITY | flag::END_HEADERS, 1, &padded)
        .frame(kind::DATA, flag::PADDED | END, 1, b"\x03hi\0\0\0")
        .frame(kind::HEADERS, END, 3, &[first, second].concat()[..0])
        .frame(kind::CONTINUATION, 0, 3, first)
        .frame(kind::CONTINUATION, flag::END_HEADERS, 3, second);
    // The block itself is the same, and the table has it already.
    assert_eq!(heard(&server, 2).unwrap(), ["0: 200", "0: hi", "1: 200"]);
}

#[test]
fn streams_that_break_a_rule_end_alone() {
    for (server, expected) in [
        (Server::opening().data(1, 0, b"x"), "0: DATA before the head"),
        (Server::opening().head(1, END, &[("server", "x")]), "0: a head without :status"),
        (Server::opening().head(1, END, &[(":status", "20")]), "0: a :status that is not a number of three digits"),
        (Server::opening().head(1, END, &[(":status", "101")]), "0: status 101, which HTTP/2 has not"),
        (Server::opening().head(1, END, &[(":status", "100")]), "0: an interim answer that ends the stream"),
        (
            Server::opening().head(1, END, &[(":status", "200"), ("A", "x")]),
            "0: a header field whose name is not in lower case, or no name",
        ),
        (
            Server::opening().head(1, END, &[(":status", "200"), ("a", "x\r\ny: z")]),
            "0: a header field whose value has a line end or NUL in it",
        ),
        (
            Server::opening().head(1, END, &[(":status", "200"), ("connection", "close")]),
            "0: a header field of HTTP/1.1's connections",
        ),
        (Server::opening().head(1, END, &[("a", "b"), (":status", "200")]), "0: :status twice, or behind other fields"),
        (
            Server::opening().head(1, END, &[(":status", "200"), ("content-length", "2")]),
            "0: a body of another length than its content-length",
        ),
        (Server::opening().window(1, 0), "0: WINDOW_UPDATE by 0"),
        (Server::opening().window(1, 0x7fff_ffff), "0: a flow-control window beyond 2^31 - 1"),
    ] {
        assert_eq!(heard(&server.head(3, END, OK), 2).unwrap(), [expected, "1: 200"]);
    }
    for length in ["2", "4"] {
        let fields = [(":status", "200"), ("content-length", length)];
        let server = Server::opening().head(1, 0, &fields).data(1, END, b"abc").head(3, END, OK);
        let expected = ["0: 200", "0: a body of another length than its content-length", "1: 200"];
        assert_eq!(heard(&server, 2).unwrap(), expected);
    }
    let fields = &[OK, OK].concat();
    let server = Server::opening().head(1, 0, OK).head(1, 0, &[("a", "b")]).head(3, END, fields);
    let expected = ["0: 200", "0: trailers that do not end the stream", "1: :status twice, or behind other fields"];
    assert_eq!(heard(&server, 2).unwrap(), expected);
    let server = (0..17).fold(Server::opening(), |server, _| server.head(1, 0, &[(":status", "103")]));
    assert_eq!(heard(&server, 1).unwrap(), ["0: more than 16 interim answers"]);
}

#[test]
fn peers_that_break_a_rule_are_named() {
    let continuations = |count| {
        let server = Server::opening().frame(kind::HEADERS, 0, 1, &[]);
        (0..count).fold(server, |server, _| server.frame(kind::CONTINUATION, 0, 1, &[]))
    };
    let idle = "100,000 frames in a row (SETTINGS, PING and their like) that belong to no answer";
    let flood = |kind, payload: &[u8]| {
        let server = Server::opening();
        (0..100_001).fold(server, |server, _| server.frame(kind, 0, u32::from(kind == kind::PRIORITY), payload))
    };
    for (server, expected) in [
        (
            Server { bytes: b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), ..Server::default() },
            "the target answers in HTTP/1.1",
        ),
        (Server::default().head(1, END, OK), "the first frame is not SETTINGS"),
        (
            Server::opening().frame(kind::DATA, 0, 1, &vec![0; 16_385]),
            "a frame of more than the 16 KiB that were allowed",
        ),
        (Server::opening().frame(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x82]), "PUSH_PROMISE, which was not allowed"),
        (Server::opening().settings(&[(setting::ENABLE_PUSH, 1)]), "a server that wants to be pushed to"),
        (Server::opening().settings(&[(setting::MAX_FRAME_SIZE, 1)]), "SETTINGS_MAX_FRAME_SIZE out of its range"),
        (
            Server::opening().settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)]),
            "a flow-control window beyond 2^31 - 1",
        ),
        (Server::opening().frame(kind::SETTINGS, 0, 0, &[0; 5]), "SETTINGS of a wrong size"),
        (Server::opening().frame(kind::SETTINGS, 0, 1, &[]), "SETTINGS on a stream"),
        (Server::opening().frame(kind::PING, 0, 0, &[0; 7]), "a frame of the wrong size for its kind"),
        (Server::opening().frame(kind::PING, 0, 1, &[0; 8]), "PING or GOAWAY on a stream"),
        (Server::opening().window(0, 0), "WINDOW_UPDATE by 0"),
        (Server::opening().window(0, 0x7fff_ffff), "a flow-control window beyond 2^31 - 1"),
        (Server::opening().data(9, 0, b"x"), "a frame for a stream that was never opened"),
        (Server::opening().head(2, END, OK), "a frame for a stream that was never opened"),
        (Server::opening().data(0, 0, b"x"), "DATA without a stream"),
        (Server::opening().frame(kind::RST_STREAM, 0, 7, &[0; 4]), "a frame for a stream that was never opened"),
        (Server::opening().head(1, END, OK).data(1, 0, b"x"), "DATA or HEADERS on a stream that had ended"),
        (Server::opening().head(1, END, OK).head(1, END, OK), "DATA or HEADERS on a stream that had ended"),
        (
            Server::opening().frame(kind::HEADERS, 0, 1, &[]).window(0, 1),
            "a header block is broken off by another frame",
        ),
        (Server::opening().frame(kind::CONTINUATION, 4, 1, &[]), "CONTINUATION without a header block"),
        (Server::opening().frame(kind::HEADERS, 4, 1, &[0x80]), "HPACK: an index without an entry"),
        (Server::opening().frame(kind::DATA, flag::PADDED, 1, &[1]), "more padding than payload"),
        (Server::opening().frame(kind::DATA, flag::PADDED, 1, &[]), "padding without a length"),
        (Server::opening().frame(kind::HEADERS, flag::PADDED | 4, 1, &[1]), "more padding than payload"),
        (continuations(65), "a header block of more than 64 KiB or 64 CONTINUATION frames"),
        (flood(kind::PING, &[0; 8]), idle),
        (flood(kind::SETTINGS, &[]), idle),
        (flood(kind::PRIORITY, &[0; 5]), idle),
        (flood(99, &[]), idle),
    ] {
        assert_eq!(heard(&server, 2).unwrap_err(), expected);
    }
    let server = Server::opening().head(1, 0, OK);
    let server = (0..100_001).fold(server, |server, _| server.data(1, 0, &[]));
    assert_eq!(heard(&server, 1).unwrap_err(), idle);
}

#[test]
fn more_data_than_the_window_allows_is_named() {
    let config = Config { stream_window: 10, connection_window: 65_535 };
    for (data, expected) in [(10, Ok(())), (11, Err("more data than the flow-control window allowed"))] {
        let server = Server::opening().head(1, 0, OK).data(1, 0, &vec![0; data]);
        let outcome = heard_in(&mut asking_with(config, 1), &[&server.bytes], &mut Vec::new());
        assert_eq!(outcome.map(|_| ()).map_err(|violation| violation.reason), expected);
    }
    // What was taken is given back, so that any length comes through.
    let server = (0..20_000).fold(Server::opening().head(1, 0, OK), |server, _| server.data(1, 0, b"12345"));
    heard_in(&mut asking_with(config, 1), &[&server.bytes], &mut Vec::new()).unwrap();
}

#[test]
fn what_was_reset_here_may_still_be_answered() {
    let (mut connection, mut out) = (asking(3), Vec::new());
    assert_eq!(connection.reset(1, ErrorCode::CANCEL, &mut out), Some(1));
    let server = Server::opening().head(3, 0, OK).data(3, END, b"late").head(5, END, OK).head(1, END, OK);
    assert_eq!(heard_in(&mut connection, &[&server.bytes], &mut out).unwrap(), ["2: 200", "0: 200"]);
}

#[test]
fn what_comes_behind_a_reset_of_the_peer_concerns_no_other_stream() {
    let reset = Server::opening().head(3, 0, OK).frame(kind::RST_STREAM, 0, 3, &[0, 0, 0, 8]);
    let server = reset.data(3, 0, b"late").head(3, END, OK).window(3, 9).head(5, END, OK).head(1, END, OK);
    assert_eq!(heard(&server, 3).unwrap(), ["1: 200", "1: CANCEL", "2: 200", "0: 200"]);
}

#[test]
fn a_window_that_overflows_is_an_error_of_flow_control() {
    let (mut connection, mut out) = (asking(1), Vec::new());
    let server = Server::opening().window(1, 0x7fff_ffff);
    heard_in(&mut connection, &[&server.bytes], &mut out).unwrap();
    assert_eq!(out.last_chunk(), Some(&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 3]), "RST_STREAM of stream 1");
    let server = Server::opening().window(0, 0x7fff_ffff);
    let violation = heard_in(&mut asking(1), &[&server.bytes], &mut out).unwrap_err();
    assert_eq!(violation.code, ErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn a_body_of_any_length_passes_through_windows_of_any_size() {
    let (mut connection, mut out) = (Connection::new(Config::default()), Vec::new());
    let server = Server::opening().settings(&[(setting::INITIAL_WINDOW_SIZE, 0)]);
    heard_in(&mut connection, &[&server.bytes], &mut out).unwrap();
    connection.start(&[0x83], false, false, 0, &mut out);
    connection.send(0, &vec![7; 60_000], true, &mut out);
    // Two frames for each byte.
    let window = Server::default().window(0, 1).window(1, 1).bytes;
    for _ in 0..60_000 {
        heard_in(&mut connection, &[&window], &mut out).unwrap();
        connection.more(&mut out);
    }
    let (data, ended) = data_sent(&out, 1);
    assert_eq!((data.len(), ended), (60_000, true));
}

#[test]
fn a_peer_that_leaves_says_what_it_has_processed() {
    let server = Server::opening()
        .frame(kind::GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0])
        .frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 7])
        .frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 11, b'x'])
        .head(3, END, OK);
    let expected = ["NO_ERROR, processed 4", "0: REFUSED_STREAM", "ENHANCE_YOUR_CALM, processed 1", "1: 200"];
    let (mut connection, mut out) = (asking(4), Vec::new());
    assert_eq!(heard_in(&mut connection, &[&server.bytes], &mut out).unwrap(), expected);
    assert_eq!((connection.capacity(), connection.is_empty()), (0, true));
    let counters = connection.take_counters();
    assert_eq!((counters.goaways, counters.resets[7]), (2, 1));
}

/// The data that was sent on a stream, and whether its end was.
fn data_sent(out: &[u8], stream: u32) -> (Vec<u8>, bool) {
    let (mut data, mut ended, mut rest) = (Vec::new(), false, out);
    while let Some(head) = Head::read(rest) {
        let frame;
        (frame, rest) = rest[9..].split_at(head.length);
        if head.kind == kind::DATA && head.stream == stream {
            assert!(!ended, "nothing follows the end");
            data.extend_from_slice(frame);
            ended = head.has(flag::END_STREAM);
        }
    }
    (data, ended)
}

#[test]
fn bodies_wait_for_their_windows() {
    let body: Arc<[u8]> = (0..200_000_u32).map(|n| n as u8).collect();
    let (mut connection, mut out) = (Connection::new(Config::default()), Vec::new());
    let server = Server::opening().settings(&[(setting::INITIAL_WINDOW_SIZE, 100)]);
    heard_in(&mut connection, &[&server.bytes], &mut out).unwrap();
    out.clear();
    connection.start(&[0x83], false, false, 0, &mut out);
    connection.start(&[0x83], false, false, 1, &mut out);
    connection.send_shared(0, &body, 0..body.len(), true, &mut out);
    connection.send(1, b"short", true, &mut out);
    assert_eq!((data_sent(&out, 1).0.len(), data_sent(&out, 3)), (100, (b"short".to_vec(), true)));
    assert!(connection.is_blocked() && !connection.has_more());
    // The window shrinks below 0, and grows in steps; then the connection's own is what holds back.
    let server = Server::default().settings(&[(setting::INITIAL_WINDOW_SIZE, 50)]).window(1, 49).window(1, 1);
    heard_in(&mut connection, &[&server.bytes], &mut out).unwrap();
    assert!(!connection.has_more());
    heard_in(&mut connection, &[&Server::default().window(1, 1_000_000).bytes], &mut out).unwrap();
    let mut windows = 0;
    while !data_sent(&out, 1).1 {
        while connection.has_more() {
            let before = out.len();
            connection.more(&mut out);
            assert!((1..80_000).contains(&(out.len() - before)), "little by little");
        }
        windows += 1;
        heard_in(&mut connection, &[&Server::default().window(0, 50_000).bytes], &mut out).unwrap();
    }
    assert_eq!(data_sent(&out, 1).0, &*body);
    assert!((3..6).contains(&windows) && !connection.is_blocked(), "{windows}");
}

#[test]
fn an_answer_before_the_request_was_sent_ends_it() {
    let (mut connection, mut out) = (Connection::new(Config::default()), Vec::new());
    heard_in(&mut connection, &[&Server::opening().bytes], &mut out).unwrap();
    connection.start(&[0x83], false, false, 0, &mut out);
    connection.send(0, &vec![0; 100_000], true, &mut out);
    assert!(connection.is_blocked());
    out.clear();
    let server = Server::default().head(1, END, &[(":status", "413")]);
    assert_eq!(heard_in(&mut connection, &[&server.bytes], &mut out).unwrap(), ["0: 413"]);
    assert_eq!(out, [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]);
    assert!(!connection.is_blocked() && connection.is_empty());
}

#[test]
fn a_peer_that_does_not_read_makes_nothing_pile_up() {
    let (mut connection, mut out) = (asking(1), Vec::new());
    heard_in(&mut connection, &[&Server::opening().bytes], &mut out).unwrap();
    connection.stalled();
    out.clear();
    let server = (0..900).fold(Server::default(), |server, _| server.frame(kind::PING, 0, 0, &[7; 8]).settings(&[]));
    heard_in(&mut connection, &[&server.bytes], &mut out).unwrap();
    assert_eq!(out, []);
    connection.resumed(&mut out);
    assert_eq!(out.len(), 900 * 9 + 17);
    connection.stalled();
    let violation = heard_in(&mut connection, &[&server.bytes, &server.bytes], &mut out).unwrap_err();
    assert_eq!(violation.code, ErrorCode::ENHANCE_YOUR_CALM);
}

/// What servers say on streams 1, 3 and 5, some of it wrong.
fn conversations() -> impl Strategy<Value = Vec<u8>> {
    let frame = (0..12_usize, prop::sample::select(vec![1_u32, 3, 5]), prop::collection::vec(any::<u8>(), 0..40));
    prop::collection::vec(frame, 1..12).prop_map(|frames| {
        let mut server = Server::opening();
        for (what, stream, bytes) in frames {
            let block = server.block(OK);
            server = match what {
                0 | 1 => server.frame(kind::HEADERS, flag::END_HEADERS, stream, &block),
                2 => server.frame(kind::HEADERS, flag::END_HEADERS | END, stream, &block),
                3 | 4 => server.data(stream, 0, &bytes),
                5 => server.data(stream, END, &bytes),
                6 => server.frame(kind::PING, 0, 0, &[1; 8]),
                7 => server.window(stream, 5),
                8 => server.frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]),
                9 => server.frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]),
                10 => {
                    let (first, second) = block.split_at(1);
                    server.frame(kind::HEADERS, 0, stream, first).frame(
                        kind::CONTINUATION,
                        flag::END_HEADERS,
                        stream,
                        second,
                    )
                }
                _ => server.frame(kind::DATA, flag::PADDED, stream, &[&[3], bytes.as_slice(), &[0; 3]].concat()),
            };
        }
        server.bytes
    })
}

proptest! {
    #[test]
    fn how_it_is_split_changes_nothing(bytes in conversations(), size in 1..40_usize) {
        let run = |pieces: &[&[u8]]| {
            let mut out = Vec::new();
            let outcome = heard_in(&mut asking(3), pieces, &mut out);
            (outcome, out)
        };
        let whole = run(&[&bytes]);
        let pieces: Vec<_> = bytes.chunks(size).collect();
        prop_assert_eq!(&run(&pieces), &whole);
        let (first, second) = bytes.split_at(size.min(bytes.len()));
        prop_assert_eq!(&run(&[first, second]), &whole);
    }

    /// A window that is opened again between two pieces is as wide as if they had come as one.
    #[test]
    fn how_it_is_split_does_not_change_what_the_peer_may_send(bytes in conversations(), size in 1..40_usize) {
        let config = Config { stream_window: 50, connection_window: 65_535 };
        let run = |pieces: &[&[u8]]| heard_in(&mut asking_with(config, 3), pieces, &mut Vec::new());
        let pieces: Vec<_> = bytes.chunks(size).collect();
        prop_assert_eq!(run(&pieces), run(&[&bytes]));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), before in conversations()) {
        let mut out = Vec::new();
        let _ = heard_in(&mut asking(3), &[&before, &bytes], &mut out);
        let _ = heard_in(&mut asking(3), &[&bytes], &mut out);
    }
}
