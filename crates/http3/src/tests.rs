//! Rules of HTTP/3, on records made by hand.

use brunt_quic::record::{HEAD_BYTES, Kind, Record};
use proptest::prelude::*;

use crate::{Http3Code, Http3Connection, Http3Event, Http3Violation, qpack, varint};

/// Answers: `:status: 200`, 204 and 103 of the static table.
const OK: [u8; 3] = [0, 0, 0xd9];
const NO_CONTENT: [u8; 4] = [0, 0, 0xff, 1];
const EARLY_HINTS: [u8; 3] = [0, 0, 0xd8];
const CONTROL: u64 = 3;

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(kind, &mut out);
    varint::write(payload.len() as u64, &mut out);
    out.extend_from_slice(payload);
    out
}

fn data(stream: u64, last: bool, bytes: &[u8]) -> Vec<u8> {
    [Record::data(stream, last, bytes.len()).bytes().as_slice(), bytes].concat()
}

fn told(kind: Kind, stream: u64, value: u64) -> Vec<u8> {
    Record::new(kind, stream, value).bytes().to_vec()
}

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    qpack::SectionEncoder.begin(&mut out);
    for (name, value) in fields {
        qpack::SectionEncoder.field(name.as_bytes(), value.as_bytes(), &mut out);
    }
    out
}

/// The peer's control stream with SETTINGS, which are these bytes.
fn settings(payload: &[u8]) -> Vec<u8> {
    [told(Kind::Open, CONTROL, 0), data(CONTROL, false, &[&[0], frame(4, payload).as_slice()].concat())].concat()
}

/// A client with so many requests in flight.
fn client(requests: u64) -> Http3Connection<u64> {
    let (mut connection, mut out) = (Http3Connection::client(), Vec::new());
    connection.open(&mut out);
    heard(&mut connection, &told(Kind::Streams, 0, 100), usize::MAX, &mut out).1.map_or(Ok(()), Err).unwrap();
    for number in 0..requests {
        connection.start(&[0, 0], true, false, number, &mut out);
    }
    connection
}

/// What was heard, bodies byte by byte, and what was wrong; the bytes come in pieces of `size`.
fn heard<T: std::fmt::Debug>(
    connection: &mut Http3Connection<T>,
    bytes: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> (Vec<String>, Option<Http3Violation>) {
    let mut heard = Vec::new();
    for piece in bytes.chunks(size.min(bytes.len().max(1))) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (taken, event) = match connection.receive(rest, out) {
                Ok(received) => received,
                Err(violation) => return (heard, Some(violation)),
            };
            assert!((1..=rest.len()).contains(&taken), "took {taken} of {}", rest.len());
            rest = &rest[taken..];
            let ended = match event {
                Http3Event::Aside | Http3Event::Ready => continue,
                Http3Event::Data { position, bytes, end, .. } => {
                    heard.extend(bytes.iter().map(|byte| format!("{position}: {byte}")));
                    end.then_some(position)
                }
                Http3Event::Head { position, end, .. } => {
                    heard.push(format!("{position}: {:?}", connection.fields()));
                    end.then_some(position)
                }
                Http3Event::Request { position, .. } => {
                    heard.push(format!("{position}: {:?}", connection.fields()));
                    None
                }
                Http3Event::Trailers { position } => {
                    heard.push(format!("{event:?} {:?}", connection.fields()));
                    Some(position)
                }
                Http3Event::Reset { position, .. } | Http3Event::Malformed { position, .. } => {
                    heard.push(format!("{event:?}"));
                    Some(position)
                }
                Http3Event::Opened | Http3Event::GoAway { .. } | Http3Event::Closed { .. } => {
                    heard.push(format!("{event:?}"));
                    None
                }
            };
            if let Some(position) = ended {
                heard.push(format!("{:?} ended", connection.take(position, out)));
            }
        }
    }
    (heard, None)
}

/// What a client with two requests hears.
fn hear(bytes: &[u8]) -> (Vec<String>, Option<Http3Violation>) {
    let whole = heard(&mut client(2), bytes, usize::MAX, &mut Vec::new());
    for size in 1..bytes.len().min(50) {
        let cut = heard(&mut client(2), bytes, size, &mut Vec::new());
        assert_eq!(cut.1, whole.1, "in pieces of {size}");
        assert!(whole.1.is_some() || told_alike(&cut.0, &whole.0), "in pieces of {size}");
    }
    whole
}

/// Whether the same was heard. Of a body that breaks a rule, more may have been heard in small pieces.
fn told_alike(cut: &[String], whole: &[String]) -> bool {
    let is_malformed = whole.iter().any(|line| line.starts_with("Malformed"));
    let is_body = |line: &str| line.rsplit(' ').next().is_some_and(|last| last.parse::<u8>().is_ok());
    let of = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !(is_malformed && is_body(line))).cloned().collect()
    };
    of(cut) == of(whole)
}

fn code(bytes: &[u8]) -> Option<Http3Code> {
    hear(bytes).1.map(|violation| violation.code)
}

#[test]
fn an_answer_is_its_head_its_body_and_its_end() {
    let answer = [frame(1, &OK), frame(0, b"he"), frame(0x21, b"grease"), frame(0, b""), frame(0, b"y")].concat();
    let parts = ["0: 104", "0: 101", "0: 121", "Some(0) ended"];
    for last in [data(0, true, &answer), [data(0, false, &answer), data(0, true, b"")].concat()] {
        let (heard, violation) = hear(&last);
        assert_eq!(violation, None);
        assert_eq!(heard.get(1..), Some(parts.map(str::to_owned).as_slice()));
    }
    // Interim answers come before it, and an end without a body.
    let answer = [frame(1, &EARLY_HINTS), frame(1, &EARLY_HINTS), frame(1, &NO_CONTENT)].concat();
    let (heard, violation) = hear(&data(4, true, &answer));
    assert_eq!((heard.len(), heard.last().map(String::as_str), violation), (2, Some("Some(1) ended"), None));
}

#[test]
fn trailers_end_an_answer() {
    let trailers = frame(1, &section(&[("grpc-status", "0")]));
    let answer = [frame(1, &OK), frame(0, b"x"), trailers.clone()].concat();
    let (heard, violation) = hear(&data(0, true, &answer));
    assert_eq!((heard.len(), violation), (4, None));
    // What lies behind them belongs to no stream.
    let (heard, violation) = hear(&data(0, true, &[answer, frame(0, b"y")].concat()));
    assert_eq!((heard.len(), violation), (4, None));
}

#[test]
fn settings_open_the_connection_and_unknown_streams_are_let_go() {
    let mut came = settings(&[0x6, 0x10, 0x21, 0]);
    // Those of QPACK, a capacity of 0 and a stream that was given up; one of no known type.
    came.extend([told(Kind::Open, 7, 0), data(7, false, &[2, 0x20])].concat());
    came.extend([told(Kind::Open, 11, 0), data(11, false, &[3, 0x40, 0x7f, 0x80, 1])].concat());
    came.extend([told(Kind::Open, 15, 0), data(15, false, &[0x40, 0x21, 9, 9])].concat());
    came.extend(data(15, true, &[9]));
    assert_eq!(hear(&came), (vec!["Opened".to_owned()], None));
    let mut out = Vec::new();
    heard(&mut client(0), &came, usize::MAX, &mut out);
    assert_eq!(Record::read(&out), Some(Record::new(Kind::Stop, 15, Http3Code::H3_STREAM_CREATION_ERROR.0)));
    assert_eq!(out.len(), HEAD_BYTES);
}

#[test]
fn goaway_names_what_was_not_processed() {
    let goaway = |id: u64| data(CONTROL, false, &frame(7, &[id as u8]));
    let came = [settings(&[]), goaway(4)].concat();
    assert_eq!(hear(&came).0, ["Opened", "GoAway { unprocessed: 1 }"]);
    let (mut connection, mut out) = (client(2), Vec::new());
    heard(&mut connection, &came, usize::MAX, &mut out);
    assert_eq!((connection.len(), connection.capacity()), (1, 0));
    // A first one may leave all open (RFC 9114, section 5.2); a later one may not take requests back that an earlier refused.
    assert_eq!(hear(&[settings(&[]), goaway(60), goaway(0)].concat()).0.len(), 3);
    for wrong in [goaway(1), [goaway(0), goaway(4)].concat()] {
        assert_eq!(code(&[settings(&[]), wrong].concat()), Some(Http3Code::H3_ID_ERROR));
    }
}

#[test]
fn resets_are_told_by_their_code() {
    let (heard, _) = hear(&told(Kind::Reset, 4, 0x10b));
    assert_eq!(heard, ["Reset { position: 1, code: H3_REQUEST_REJECTED }", "Some(1) ended"]);
    // The answer may come although the request is not read.
    let (heard, _) = hear(&[told(Kind::Stop, 0, 0x100), data(0, true, &frame(1, &NO_CONTENT))].concat());
    assert_eq!(heard.last().map(String::as_str), Some("Some(0) ended"));
}

#[test]
fn what_breaks_the_rules_is_named() {
    let on_control = |bytes: &[u8]| [settings(&[]), data(CONTROL, false, bytes)].concat();
    let opened = |id: u64, bytes: &[u8], last: bool| [told(Kind::Open, id, 0), data(id, last, bytes)].concat();
    for (came, expected) in [
        (data(0, false, &frame(0, b"x")), Http3Code::H3_FRAME_UNEXPECTED),
        (data(0, false, &frame(4, b"")), Http3Code::H3_FRAME_UNEXPECTED),
        (data(0, false, &frame(2, b"12345")), Http3Code::H3_FRAME_UNEXPECTED),
        (data(0, false, &frame(5, b"\0\0\0")), Http3Code::H3_ID_ERROR),
        (data(0, true, &[1, 3, 0]), Http3Code::H3_FRAME_ERROR),
        (data(0, true, &[&frame(1, &OK), [0, 3, b'x'].as_slice()].concat()), Http3Code::H3_FRAME_ERROR),
        (data(0, true, &[0x40]), Http3Code::H3_FRAME_ERROR),
        (data(0, false, &[1, 0x80, 1, 0, 1]), Http3Code::H3_EXCESSIVE_LOAD),
        (data(0, false, &frame(1, &[1, 0, 0xd9])), Http3Code::QPACK_DECOMPRESSION_FAILED),
        (data(0, false, &frame(1, &[0, 0, 0x80])), Http3Code::QPACK_DECOMPRESSION_FAILED),
        (data(0, false, &frame(1, &[])), Http3Code::QPACK_DECOMPRESSION_FAILED),
        (told(Kind::Open, 1, 0), Http3Code::H3_STREAM_CREATION_ERROR),
        (opened(CONTROL, &[0, 7, 1, 0], false), Http3Code::H3_MISSING_SETTINGS),
        (settings(&[2, 0]), Http3Code::H3_SETTINGS_ERROR),
        (settings(&[6, 0, 6, 1]), Http3Code::H3_SETTINGS_ERROR),
        (settings(&[6]), Http3Code::H3_FRAME_ERROR),
        (on_control(&frame(4, b"")), Http3Code::H3_FRAME_UNEXPECTED),
        (on_control(&frame(0, b"")), Http3Code::H3_FRAME_UNEXPECTED),
        (on_control(&frame(8, b"")), Http3Code::H3_FRAME_UNEXPECTED),
        (on_control(&frame(13, &[0])), Http3Code::H3_FRAME_UNEXPECTED),
        (on_control(&frame(3, &[0])), Http3Code::H3_ID_ERROR),
        (on_control(&frame(7, &[])), Http3Code::H3_FRAME_ERROR),
        (on_control(&frame(7, &[0, 0])), Http3Code::H3_FRAME_ERROR),
        (on_control(&[7, 0x80, 1, 0, 0]), Http3Code::H3_EXCESSIVE_LOAD),
        ([settings(&[]), opened(7, &[0], false)].concat(), Http3Code::H3_STREAM_CREATION_ERROR),
        ([settings(&[]), data(CONTROL, true, b"")].concat(), Http3Code::H3_CLOSED_CRITICAL_STREAM),
        ([settings(&[]), data(CONTROL, true, &frame(7, &[0]))].concat(), Http3Code::H3_CLOSED_CRITICAL_STREAM),
        ([settings(&[]), told(Kind::Reset, CONTROL, 0)].concat(), Http3Code::H3_CLOSED_CRITICAL_STREAM),
        (told(Kind::Stop, 2, 0), Http3Code::H3_CLOSED_CRITICAL_STREAM),
        (opened(7, &[1, 0], false), Http3Code::H3_ID_ERROR),
        (opened(7, &[2, 0x3f, 1], false), Http3Code::QPACK_ENCODER_STREAM_ERROR),
        (opened(7, &[2], true), Http3Code::H3_CLOSED_CRITICAL_STREAM),
        (opened(7, &[3, 0x80], false), Http3Code::QPACK_DECODER_STREAM_ERROR),
        (opened(7, &[3, 1], false), Http3Code::QPACK_DECODER_STREAM_ERROR),
        (opened(7, &[[3, 0x7f].as_slice(), &[0x80; 20]].concat(), false), Http3Code::QPACK_DECODER_STREAM_ERROR),
        ((0..65).flat_map(|n| told(Kind::Open, 3 + 4 * n, 0)).collect(), Http3Code::H3_EXCESSIVE_LOAD),
        (data(0, false, &[0x21, 0].repeat(100_001)), Http3Code::H3_EXCESSIVE_LOAD),
        (data(0, false, &[frame(1, &OK), [0, 0].repeat(100_001)].concat()), Http3Code::H3_EXCESSIVE_LOAD),
    ] {
        let shown = came.get(..came.len().min(60)).unwrap_or_default().to_vec();
        assert_eq!(code(&came), Some(expected), "{shown:02x?}");
        // The peer is told with it.
        let mut out = Vec::new();
        heard(&mut client(2), &came, usize::MAX, &mut out);
        let said = out.len().checked_sub(HEAD_BYTES).and_then(|at| Record::read(out.get(at..)?));
        assert_eq!(said, Some(Record::new(Kind::Close, 0, expected.0)), "{shown:02x?}");
    }
}

#[test]
fn a_malformed_answer_ends_its_stream_alone() {
    let head = |fields: &[(&str, &str)]| frame(1, &section(fields));
    let ok = |more: (&str, &str)| head(&[(":status", "200"), more]);
    for (answer, reason) in [
        (head(&[("server", "x")]), "a head without :status"),
        (head(&[(":status", "20")]), "a :status that is not a number of three digits"),
        (ok(("Server", "x")), "a header field whose name is not in lower case, or no name"),
        (ok(("connection", "close")), "a header field of HTTP/1.1's connections"),
        (ok(("x", "a\r\nb")), "a header field whose value has a line end or NUL in it"),
        (head(&[(":status", "101")]), "status 101, which HTTP/3 has not"),
        (frame(1, &EARLY_HINTS).repeat(17), "more than 16 interim answers"),
        (frame(1, &EARLY_HINTS), "a stream that ended without a head"),
        ([frame(1, &OK), frame(1, &OK)].concat(), "a second head"),
        (ok(("content-length", "1")), "a body of another length than its content-length"),
        ([ok(("content-length", "1")), frame(0, b"xy")].concat(), "a body of another length than its content-length"),
        (
            [ok(("content-length", "3")), frame(0, b"xy"), head(&[("a", "b")])].concat(),
            "a body of another length than its content-length",
        ),
        (Vec::new(), "a stream that ended without a head"),
    ] {
        // The other answer is not touched by it.
        let came = [data(0, true, &answer), data(4, true, &frame(1, &NO_CONTENT))].concat();
        let (heard, violation) = hear(&came);
        assert_eq!(violation, None, "{reason}");
        let malformed = format!("Malformed {{ position: 0, reason: {reason:?} }}");
        // An interim answer that ends its stream says so itself, unless the end came by itself.
        let is_there =
            heard.contains(&malformed) || heard.iter().any(|line| line.contains("an interim answer that ends"));
        assert!(is_there, "{reason}: {heard:?}");
        assert_eq!(heard.last().map(String::as_str), Some("Some(1) ended"), "{reason}");
    }
}

/// What a server hears.
fn hear_request(bytes: &[u8]) -> (Vec<String>, Option<Http3Violation>) {
    let whole = heard(&mut Http3Connection::<u64>::server(), bytes, usize::MAX, &mut Vec::new());
    for size in 1..bytes.len().min(50) {
        assert_eq!(
            heard(&mut Http3Connection::<u64>::server(), bytes, size, &mut Vec::new()),
            whole,
            "in pieces of {size}"
        );
    }
    whole
}

#[test]
fn a_server_hears_requests_and_answers_them() {
    let get = section(&[(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a")]);
    let (mut server, mut out) = (Http3Connection::<u64>::server(), Vec::new());
    server.open(&mut out);
    assert_eq!(Record::read(&out).map(|record| record.stream), Some(3));
    // The later stream comes first.
    let came = [
        told(Kind::Open, 0, 0),
        told(Kind::Open, 4, 0),
        data(4, true, &frame(1, &get)),
        data(0, false, &frame(1, &get)),
    ];
    let (heard_now, violation) = heard(&mut server, &came.concat(), usize::MAX, &mut out);
    assert_eq!((heard_now.len(), violation, server.len()), (2, None, 2));
    out.clear();
    server.respond(1, &OK, false, &mut out);
    server.send(1, b"hi", true, &mut out);
    assert_eq!(out, [data(4, false, &frame(1, &OK)), data(4, true, &frame(0, b"hi"))].concat());
    assert_eq!(server.take(1, &mut out), Some(0));
    // What it has not seen when it leaves, it refuses.
    out.clear();
    server.leave(&mut out);
    assert_eq!(out, data(3, false, &frame(7, &[8])));
    out.clear();
    heard(&mut server, &told(Kind::Open, 8, 0), usize::MAX, &mut out);
    assert_eq!(out, [told(Kind::Stop, 8, 0x10b), told(Kind::Reset, 8, 0x10b)].concat());
    // The answer to the first is not read any more.
    let (heard_now, _) = heard(&mut server, &told(Kind::Stop, 0, 0x10c), usize::MAX, &mut out);
    assert_eq!(heard_now, ["Reset { position: 0, code: H3_REQUEST_CANCELLED }", "Some(0) ended"]);
}

#[test]
fn malformed_requests_are_named() {
    let whole = [(":method", "POST"), (":scheme", "https"), (":path", "/"), (":authority", "a")];
    let with = |more: &[(&'static str, &'static str)]| frame(1, &section(&[whole.as_slice(), more].concat()));
    for (request, reason) in [
        (frame(1, &section(&whole[..3])), "a request without its method, scheme, path and authority"),
        (
            frame(1, &section(&[(":method", "CONNECT"), (":path", "/")])),
            "a request without its method, scheme, path and authority",
        ),
        (frame(1, &section(&[(":status", "200")])), "a pseudo-header field that requests have not"),
        (with(&[(":path", "/")]), "a pseudo-header field twice, or behind other fields"),
        (with(&[("a", "b"), (":protocol", "x")]), "a pseudo-header field that requests have not"),
        (with(&[("te\u{e9}", "b")]), "a header field whose name is not in lower case, or no name"),
        (with(&[("content-length", "1")]), "a body of another length than its content-length"),
        ([with(&[]), with(&[])].concat(), "a pseudo-header field in trailers"),
        (Vec::new(), "a stream that ended without a head"),
    ] {
        let came = [told(Kind::Open, 0, 0), data(0, true, &request)].concat();
        let (heard, violation) = hear_request(&came);
        assert_eq!(violation, None);
        assert!(heard.iter().any(|line| line.contains(reason)), "{reason}: {heard:?}");
    }
    let connect = frame(1, &section(&[(":method", "CONNECT"), (":authority", "a:1")]));
    assert_eq!(hear_request(&[told(Kind::Open, 0, 0), data(0, false, &connect)].concat()).0.len(), 1);
    let behind = [with(&[]), frame(1, &section(&[("a", "b")])), frame(0, b"x")].concat();
    let (_, violation) = hear_request(&[told(Kind::Open, 0, 0), data(0, false, &behind)].concat());
    // The stream was taken with its trailers, as a client does.
    assert_eq!(violation, None);
    let push = [told(Kind::Open, 2, 0), data(2, false, &[1])].concat();
    assert_eq!(hear_request(&push).1.map(|violation| violation.code), Some(Http3Code::H3_STREAM_CREATION_ERROR));
}

#[test]
fn bodies_wait_for_flow_control() {
    let (mut connection, mut out) = (client(0), Vec::new());
    connection.start(&[0, 0], false, false, 0, &mut out);
    connection.start(&[0, 0], false, false, 1, &mut out);
    heard(&mut connection, &told(Kind::Blocked, 0, 0), usize::MAX, &mut out);
    out.clear();
    connection.send(0, b"first", true, &mut out);
    assert_eq!((out.len(), connection.is_blocked(), connection.has_more(), connection.waiting(0)), (0, true, false, 5));
    // Another stream is not held back by it, but for its size.
    let body: std::sync::Arc<[u8]> = vec![7; 100_000].into();
    connection.send_shared(1, &body, 0..100_000, true, &mut out);
    assert_eq!((connection.is_blocked(), connection.has_more()), (false, true));
    connection.stalled();
    assert!(!connection.is_blocked() && !connection.has_more());
    connection.resumed();
    while connection.has_more() {
        connection.more(&mut out);
    }
    assert!(connection.is_blocked());
    heard(&mut connection, &told(Kind::Writable, 0, 0), usize::MAX, &mut Vec::new());
    assert!(!connection.is_blocked() && connection.has_more());
    connection.more(&mut out);
    assert!(!connection.has_more());
    // All of both, each with its end.
    let (mut sizes, mut lasts, mut rest) = ([0, 0], 0, out.as_slice());
    while let Some(record) = Record::read(rest) {
        let (payload, after) = rest[HEAD_BYTES..].split_at(record.length());
        let mut body = payload;
        let head = crate::frame::FrameHead::take(&mut body).unwrap();
        assert_eq!((head.kind, head.length), (0, body.len() as u64));
        sizes[record.stream as usize / 4] += body.len();
        lasts += usize::from(record.kind == Kind::Last);
        rest = after;
    }
    assert_eq!((sizes, lasts), ([5, 100_000], 2));
}

/// A piece of what a server could send.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop::sample::select(vec![0_u64, 4, 8, 3, 7, 11]);
    let kind = prop::sample::select(vec![0_u64, 1, 3, 4, 5, 7, 13, 0x21, 0x4000]);
    let payload = prop_oneof![
        Just(OK.to_vec()),
        Just(EARLY_HINTS.to_vec()),
        Just(section(&[("a", "b")])),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    let frame = (kind, payload).prop_map(|(kind, payload)| frame(kind, &payload));
    let frames = prop::collection::vec(frame, 0..5).prop_map(|frames| frames.concat());
    prop_oneof![
        8 => (stream.clone(), any::<bool>(), frames).prop_map(|(stream, last, bytes)| data(stream, last, &bytes)),
        2 => (stream.clone(), prop::sample::select(vec![0_u8, 1, 2, 3, 9])).prop_map(|(stream, of)| data(stream, false, &[of])),
        3 => (stream, prop::sample::select(vec![Kind::Open, Kind::Reset, Kind::Stop, Kind::Blocked, Kind::Writable]))
            .prop_map(|(stream, kind)| told(kind, stream, 0x10b)),
        1 => prop::collection::vec(any::<u8>(), 0..30),
    ]
}

proptest! {
    #[test]
    fn how_bytes_are_cut_changes_nothing(pieces in prop::collection::vec(pieces(), 0..12), size in 1..40_usize, begins in any::<bool>()) {
        let began = if begins { [settings(&[]), data(0, false, &frame(1, &OK))].concat() } else { Vec::new() };
        let came = [began, pieces.concat()].concat();
        let whole = heard(&mut client(3), &came, usize::MAX, &mut Vec::new());
        let cut = heard(&mut client(3), &came, size, &mut Vec::new());
        prop_assert_eq!(cut.1, whole.1);
        // The data of a frame that is never completed may have been heard in part.
        if whole.1.is_none() {
            prop_assert!(told_alike(&cut.0, &whole.0), "{:?} {:?}", cut.0, whole.0);
        }
        let whole = heard(&mut Http3Connection::<u64>::server(), &came, usize::MAX, &mut Vec::new());
        let cut = heard(&mut Http3Connection::<u64>::server(), &came, size, &mut Vec::new());
        prop_assert_eq!(cut.1, whole.1);
    }
}
