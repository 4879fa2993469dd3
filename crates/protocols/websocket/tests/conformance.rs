//! What a WebSocket client owes to RFC 6455 and RFC 7692, section by section, through the same traits that any protocol
//! has: bytes from a server in, what they mean and what is sent back out. Every row is read whole and byte by byte.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::content::Content;
use brunt_plan::plan::{Load, PLAN_VERSION, Plan, Sandbox, Stop, Transport};
use brunt_plan::target::Url;
use brunt_protocol::scenario::{Caller, Encoded, Setting, Value};
use brunt_protocol::user::Message;
use brunt_protocol::{Client, Opening, Prepared, Progress, Protocol, Registry};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_websocket::WebSocket;
use brunt_websocket::options::Options;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// What bytes from the server come to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// Every call was answered by its echo, and nothing else happened.
    Echo,
    /// The message was another.
    Mismatch,
    /// Nothing ends the call.
    Nothing,
    /// The connection ends since this breaks the rules.
    Broken,
    /// The server closes, for this reason.
    Closing(&'static str),
}
use Outcome::{Broken, Closing, Echo, Mismatch, Nothing};

fn plan(options: &Options) -> Plan {
    Plan {
        version: PLAN_VERSION,
        target: Url::parse("ws://127.0.0.1:8081/chat?room=1").unwrap().target,
        protocol: options.to_protocol(),
        script: None,
        scenarios: None,
        connections: 1.into(),
        workers: 1,
        load: Load::Closed {},
        stop: Stop { duration_ns: Some(1), requests: None },
        warmup_ns: 0,
        timeout_ns: 1,
        connect_timeout_ns: 1,
        drain_ns: 0,
        seed: 1,
        reconnect: false,
        pipeline: 1,
        transport: Transport::default(),
        ok_status: OkStatus::default(),
        thresholds: Vec::new(),
        guards: Vec::new(),
        guard_action: brunt_plan::threshold::GuardAction::Stop,
        watches: Vec::new(),
        max_error_ratio: brunt_plan::plan::MAX_ERROR_RATIO,
        origin: brunt_plan::plan::Origin::default(),
        sandbox: Sandbox::default(),
        environment: brunt_plan::environment::Environment::default(),
    }
}

fn prepared(options: &Options) -> Arc<dyn Prepared> {
    let mut registry = Registry::default();
    registry.register(WebSocket);
    registry.named("ws").unwrap().0.prepare(&plan(options)).unwrap()
}

fn text(message: &str) -> Options {
    Options { message: Content(message.as_bytes().to_vec()), ..Options::default() }
}

/// The key of a handshake's request.
fn key(request: &str) -> &str {
    request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap()
}

fn accept(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

/// The fields that a right answer has; `more` are whole lines.
fn granting(key: &str, more: &str) -> String {
    let accept = accept(key);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{more}\r\n"
    )
}

/// Feeds bytes in pieces of so many; what they meant, and what was sent back.
fn feed(client: &mut dyn Client, bytes: &[u8], piece: usize) -> (Vec<Progress>, Vec<u8>) {
    let (mut all, mut out) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            match client.receive(rest, &mut out) {
                Ok((taken, progress)) => {
                    assert!((1..=rest.len()).contains(&taken));
                    rest = &rest[taken..];
                    all.push(progress);
                }
                Err(malformed) => {
                    all.push(Progress::Closing(format!("broken: {malformed}").into()));
                    return (all, out);
                }
            }
        }
    }
    (all, out)
}

/// A connection that was opened with these lines in the answer, and carries one call.
fn calling(prepared: &dyn Prepared, more: &str) -> Box<dyn Client> {
    let mut client = prepared.client(false);
    let mut request = Vec::new();
    assert_eq!(client.open(None, &mut request), Ok(Opening::Exchange));
    let request = String::from_utf8(request).unwrap();
    let (progress, _) = feed(client.as_mut(), granting(key(&request), more).as_bytes(), usize::MAX);
    assert_eq!(progress, [Progress::Opened]);
    let mut out = Vec::new();
    client.start(&Message::default(), &mut out);
    client
}

fn outcome(progress: &[Progress]) -> Outcome {
    let last = progress.iter().rfind(|progress| !matches!(progress, Progress::More | Progress::Aside));
    match last {
        None => Nothing,
        Some(Progress::Answered(answer)) if answer.position == 0 && answer.reusable => Echo,
        Some(Progress::Failed(failed)) if failed.failure == Failure::Mismatch => Mismatch,
        Some(Progress::Closing(reason)) if reason.starts_with("broken: ") => Broken,
        Some(Progress::Closing(reason)) => Closing(Box::leak(reason.clone().into_owned().into_boxed_str())),
        other => panic!("{other:?}"),
    }
}

/// A server's answer to a key.
type Answering = Box<dyn Fn(&str) -> String>;

/// A frame as a server sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(length as u8),
        length @ 126..65_536 => {
            frame.push(126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(0x88, &[&code.to_be_bytes(), reason].concat())
}

/// Frames that a client masked: opcode and payload of each.
fn unmasked(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[1] & 0x80, 0x80, "a client masks (section 5.3)");
        let length = usize::from(bytes[1] & 0x7f);
        assert!(length < 126);
        let payload = bytes[6..6 + length].iter().zip(bytes[2..6].iter().cycle()).map(|(a, b)| a ^ b).collect();
        frames.push((bytes[0], payload));
        bytes = &bytes[6 + length..];
    }
    frames
}

#[track_caller]
fn rows(options: &Options, extension: &str, rows: &[(&str, Vec<u8>, Outcome)]) {
    let prepared = prepared(options);
    for (section, bytes, expected) in rows {
        for piece in [usize::MAX, 1, 2, 3, 7] {
            let mut client = calling(prepared.as_ref(), extension);
            let (progress, _) = feed(client.as_mut(), bytes, piece);
            assert_eq!(outcome(&progress), *expected, "{section}, in pieces of {piece}: {progress:?}");
        }
    }
}

#[test]
fn rfc_6455_frames_and_messages() {
    let hello = || frame(0x81, b"hello");
    let then = |parts: &[Vec<u8>]| parts.concat();
    rows(
        &text("hello"),
        "",
        &[
            ("5.2 a whole text message", hello(), Echo),
            ("5.2 RSV1 without an extension", frame(0xC1, b"hello"), Broken),
            ("5.2 RSV2", frame(0xA1, b"hello"), Broken),
            ("5.2 RSV3", frame(0x91, b"hello"), Broken),
            ("5.2 reserved opcode 3", frame(0x83, b"hello"), Broken),
            ("5.2 reserved opcode 7", frame(0x87, b"hello"), Broken),
            ("5.2 reserved opcode B", frame(0x8B, b""), Broken),
            ("5.2 reserved opcode F", frame(0x8F, b""), Broken),
            ("5.2 a length in 16 bits that fits in 7", [&[0x81, 126, 0, 5][..], b"hello"].concat(), Broken),
            (
                "5.2 a length in 64 bits that fits in 16",
                [&[0x81, 127, 0, 0, 0, 0, 0, 0, 0, 5][..], b"hello"].concat(),
                Broken,
            ),
            ("5.2 the highest bit of a length in 64 bits", vec![0x81, 127, 0x80, 0, 0, 0, 0, 1, 0, 0], Broken),
            ("5.1 a masked frame", vec![0x81, 0x85, 1, 2, 3, 4, 0, 0, 0, 0, 0], Broken),
            ("5.4 two fragments", then(&[frame(0x01, b"he"), frame(0x80, b"llo")]), Echo),
            (
                "5.4 many fragments",
                then(&[frame(0x01, b"h"), frame(0x00, b"el"), frame(0x00, b"l"), frame(0x80, b"o")]),
                Echo,
            ),
            (
                "5.4 empty fragments",
                then(&[frame(0x01, b""), frame(0x00, b"hello"), frame(0x00, b""), frame(0x80, b"")]),
                Echo,
            ),
            ("5.4 a message not yet ended", frame(0x01, b"hello"), Nothing),
            ("5.4 a continuation of nothing", frame(0x80, b"hello"), Broken),
            ("5.4 a fragment of nothing", frame(0x00, b"hello"), Broken),
            ("5.4 a message within another", then(&[frame(0x01, b"he"), frame(0x81, b"hello")]), Broken),
            ("5.4 a ping between fragments", then(&[frame(0x01, b"he"), frame(0x89, b"?"), frame(0x80, b"llo")]), Echo),
            ("5.4 a pong between fragments", then(&[frame(0x01, b"he"), frame(0x8A, b"!"), frame(0x80, b"llo")]), Echo),
            (
                "5.4 a close between fragments",
                then(&[frame(0x01, b"he"), close(1001, b"")]),
                Closing("the peer closed with 1001 going away"),
            ),
            ("5.5 a ping in fragments", frame(0x09, b""), Broken),
            ("5.5 a close in fragments", frame(0x08, b""), Broken),
            ("5.5 a ping of 125 bytes", then(&[frame(0x89, &[7; 125]), hello()]), Echo),
            ("5.5 a ping of 126 bytes", frame(0x89, &[7; 126]), Broken),
            ("5.5.1 a close without a code", frame(0x88, b""), Closing("the peer closed with 1005 no status")),
            ("5.5.1 a close of one byte", frame(0x88, &[3]), Broken),
            (
                "5.5.1 a close with a reason",
                close(1000, "tschüß".as_bytes()),
                Closing("the peer closed with 1000 normal closure"),
            ),
            ("5.5.1 a close whose reason is not UTF-8", close(1000, &[0xff]), Broken),
            ("5.5.2 a ping before the echo", then(&[frame(0x89, b""), hello()]), Echo),
            ("5.5.3 a pong that nobody asked for", then(&[frame(0x8A, b"x"), hello()]), Echo),
            ("5.6 binary for text", frame(0x82, b"hello"), Mismatch),
            ("5.6 another text", frame(0x81, b"hallo"), Mismatch),
            ("5.6 an empty text", frame(0x81, b""), Mismatch),
            ("5.6 a longer text", frame(0x81, &vec![b'a'; 70_000]), Mismatch),
            ("8.1 text that is not UTF-8", frame(0x81, &[0xc3, 0x28]), Broken),
            ("8.1 a surrogate in UTF-8", frame(0x81, &[0xed, 0xa0, 0x80]), Broken),
            ("8.1 text over U+10FFFF", frame(0x81, &[0xf4, 0x90, 0x80, 0x80]), Broken),
            ("8.1 an overlong slash", frame(0x81, &[0xc0, 0xaf]), Broken),
            ("8.1 text cut within a character", frame(0x81, &[0xe2, 0x82]), Broken),
            (
                "8.1 fragments cut within a character that are right together",
                then(&[frame(0x01, &[0xe2, 0x82]), frame(0x80, &[0xac])]),
                Mismatch,
            ),
            ("10.4 a message of more than 16 MiB", vec![0x81, 127, 0, 0, 0, 0, 1, 0, 0, 1], Broken),
        ],
    );
}

#[test]
fn rfc_6455_close_codes() {
    let codes: [(u16, Outcome); 22] = [
        (0, Broken),
        (999, Broken),
        (1000, Closing("the peer closed with 1000 normal closure")),
        (1001, Closing("the peer closed with 1001 going away")),
        (1002, Closing("the peer closed with 1002 protocol error")),
        (1003, Closing("the peer closed with 1003 unsupported data")),
        (1004, Broken),
        (1005, Broken),
        (1006, Broken),
        (1007, Closing("the peer closed with 1007 invalid payload")),
        (1008, Closing("the peer closed with 1008 policy violation")),
        (1009, Closing("the peer closed with 1009 message too big")),
        (1010, Closing("the peer closed with 1010 extension wanted")),
        (1011, Closing("the peer closed with 1011 internal error")),
        (1012, Closing("the peer closed with 1012 service restart")),
        (1015, Broken),
        (1016, Broken),
        (2999, Broken),
        (3000, Closing("the peer closed with 3000 unauthorized")),
        (4999, Closing("the peer closed with a private code from 4000 to 4999")),
        (5000, Broken),
        (65_535, Broken),
    ];
    for (code, expected) in codes {
        rows(&text("hello"), "", &[("7.4", close(code, b""), expected)]);
    }
}

#[test]
fn rfc_6455_what_is_sent_back() {
    let prepared = prepared(&text("hello"));
    let mut client = calling(prepared.as_ref(), "");
    let bytes =
        [frame(0x89, b"one"), frame(0x89, b""), frame(0x81, b"hello"), close(1001, b"bye"), frame(0x89, b"late")];
    let (progress, out) = feed(client.as_mut(), &bytes.concat(), 1);
    // 5.5.2, 5.5.3: a pong has what its ping had. 5.5.1: a Close frame is answered with its code, and nothing comes after.
    let expected = [(0x8A, b"one".to_vec()), (0x8A, Vec::new()), (0x88, 1001_u16.to_be_bytes().to_vec())];
    assert_eq!(unmasked(&out), expected, "{progress:?}");
    // 5.3: each frame has a key of its own.
    let mut keys = std::collections::BTreeSet::new();
    let mut client = calling(prepared.as_ref(), "");
    for _ in 0..100 {
        let (_, out) = feed(client.as_mut(), &frame(0x89, b"x"), usize::MAX);
        keys.insert(out[2..6].to_vec());
    }
    assert!(keys.len() > 95, "{}", keys.len());
    // 7.1.2: a goodbye is a Close frame, once.
    let mut out = Vec::new();
    client.close(&mut out);
    client.close(&mut out);
    assert_eq!(unmasked(&out), [(0x88, 1000_u16.to_be_bytes().to_vec())]);
}

#[test]
fn rfc_6455_the_request_of_a_handshake() {
    let options = Options {
        headers: vec![brunt_protocol::headers::Header::new("Origin", "http://localhost")],
        subprotocols: vec!["chat".to_owned(), "superchat".to_owned()],
        deflate: true,
        ..Options::default()
    };
    let prepared = prepared(&options);
    let request = |_| {
        let (mut client, mut out) = (prepared.client(false), Vec::new());
        client.open(None, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let requests: Vec<String> = (0..20).map(request).collect();
    // 4.1
    let first = &requests[0];
    assert!(first.starts_with("GET /chat?room=1 HTTP/1.1\r\nHost: 127.0.0.1:8081\r\n"), "{first}");
    assert!(first.ends_with("\r\n\r\n"));
    for line in [
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Origin: http://localhost",
        "Sec-WebSocket-Protocol: chat, superchat",
        "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover",
    ] {
        assert!(first.lines().any(|got| got == line), "{line}\n{first}");
    }
    let keys: std::collections::BTreeSet<_> = requests.iter().map(|request| key(request)).collect();
    assert_eq!(keys.len(), 20, "a nonce for each connection");
    assert!(keys.iter().all(|key| STANDARD.decode(key).unwrap().len() == 16));
    // 1.3: the example.
    assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn rfc_6455_the_answer_to_a_handshake() {
    let plain = text("hello");
    let rich = Options { subprotocols: vec!["chat".to_owned()], deflate: true, ..text("hello") };
    let good = |more: &'static str| move |key: &str| granting(key, more);
    let with = |from: &'static str, to: &'static str| move |key: &str| granting(key, "").replace(from, to);
    let rows: Vec<(&str, &Options, Answering, bool)> = vec![
        ("4.1 a right answer", &plain, Box::new(good("")), true),
        (
            "4.1 any case",
            &plain,
            Box::new(with(
                "Upgrade: websocket\r\nConnection: Upgrade",
                "uPGRADE: WebSocket\r\nconnection: keep-alive, upgrade",
            )),
            true,
        ),
        ("4.1 step 1: another status", &plain, Box::new(with("101 Switching Protocols", "200 OK")), false),
        ("4.1 step 2: no Upgrade", &plain, Box::new(with("Upgrade: websocket\r\n", "")), false),
        ("4.1 step 2: another Upgrade", &plain, Box::new(with("Upgrade: websocket", "Upgrade: h2c")), false),
        ("4.1 step 3: no Connection", &plain, Box::new(with("Connection: Upgrade\r\n", "")), false),
        ("4.1 step 4: no Sec-WebSocket-Accept", &plain, Box::new(with("Sec-WebSocket-Accept: ", "X: ")), false),
        ("4.1 step 4: another one", &plain, Box::new(with("Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: A")), false),
        (
            "4.1 step 5: an extension not asked for",
            &plain,
            Box::new(good("Sec-WebSocket-Extensions: permessage-deflate\r\n")),
            false,
        ),
        ("4.1 step 5: another extension", &rich, Box::new(good("Sec-WebSocket-Extensions: x-bzip2\r\n")), false),
        ("4.1 step 6: a subprotocol not asked for", &plain, Box::new(good("Sec-WebSocket-Protocol: chat\r\n")), false),
        ("4.1 step 6: another subprotocol", &rich, Box::new(good("Sec-WebSocket-Protocol: soap\r\n")), false),
        ("4.1 step 6: the one asked for", &rich, Box::new(good("Sec-WebSocket-Protocol: chat\r\n")), true),
        ("4.1 step 6: none of those asked for", &rich, Box::new(good("")), true),
    ];
    for (section, options, answer, agreed) in &rows {
        let prepared = prepared(options);
        for piece in [usize::MAX, 1, 5] {
            let (mut client, mut request) = (prepared.client(false), Vec::new());
            client.open(None, &mut request).unwrap();
            let answer = answer(key(&String::from_utf8(request).unwrap()));
            let (progress, _) = feed(client.as_mut(), answer.as_bytes(), piece);
            let opened = progress.last() == Some(&Progress::Opened);
            assert_eq!(opened, *agreed, "{section}, in pieces of {piece}: {progress:?}");
            assert!(opened || matches!(progress.last(), Some(Progress::Closing(_))), "{section}: {progress:?}");
        }
    }
    // 4.2.2: what comes behind the answer is a frame already.
    let prepared = prepared(&plain);
    let (mut client, mut request) = (prepared.client(false), Vec::new());
    client.open(None, &mut request).unwrap();
    let mut bytes = granting(key(&String::from_utf8(request).unwrap()), "").into_bytes();
    bytes.extend(frame(0x81, b"welcome"));
    let (progress, _) = feed(client.as_mut(), &bytes, usize::MAX);
    assert_eq!(progress, [Progress::Opened, Progress::Unasked]);
}

#[test]
fn rfc_7692_negotiation() {
    let options = Options { deflate: true, ..text("Hello") };
    let rows = [
        ("7.1 nothing agreed", "", true),
        ("7.1 without parameters", "Sec-WebSocket-Extensions: permessage-deflate\r\n", true),
        ("7.1.1.1", "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n", true),
        ("7.1.1.2", "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n", true),
        ("7.1.2.1", "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n", true),
        (
            "7.1.2.1 a quoted value",
            "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=\"10\"\r\n",
            true,
        ),
        (
            "7.1.2.1 a window that is none",
            "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=16\r\n",
            false,
        ),
        ("7.1.2.1 without a value", "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits\r\n", false),
        ("7.1.2.2 not offered", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=10\r\n", false),
        ("7.1 a parameter that is none", "Sec-WebSocket-Extensions: permessage-deflate; wbits=10\r\n", false),
        (
            "7.1 a parameter twice",
            "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; server_no_context_takeover\r\n",
            false,
        ),
        ("5 two of it", "Sec-WebSocket-Extensions: permessage-deflate, permessage-deflate\r\n", false),
    ];
    for (section, more, agreed) in rows {
        let prepared = prepared(&options);
        let (mut client, mut request) = (prepared.client(false), Vec::new());
        client.open(None, &mut request).unwrap();
        let answer = granting(key(&String::from_utf8(request).unwrap()), more);
        let (progress, _) = feed(client.as_mut(), answer.as_bytes(), usize::MAX);
        assert_eq!(progress == [Progress::Opened], agreed, "{section}: {progress:?}");
    }
}

#[test]
fn rfc_7692_messages() {
    let options = Options { deflate: true, ..text("Hello") };
    let agreed = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n";
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let then = |parts: &[Vec<u8>]| parts.concat();
    rows(
        &options,
        agreed,
        &[
            ("7.2.3.1 one block", frame(0xC1, &hello), Echo),
            ("7.2.3.1 in two fragments", then(&[frame(0x41, &hello[..3]), frame(0x80, &hello[3..])]), Echo),
            (
                "7.2.3.3 a block without compression",
                frame(0xC1, &[0, 5, 0, 0xfa, 0xff, b'H', b'e', b'l', b'l', b'o', 0]),
                Echo,
            ),
            ("7.2.3.4 a block with BFINAL", frame(0xC1, &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0, 0]), Echo),
            ("7.2.3.5 two blocks", frame(0xC1, &[0xf2, 0x48, 5, 0, 0, 0, 0xff, 0xff, 0xca, 0xc9, 0xc9, 7, 0]), Echo),
            ("7.2.3.6 an empty message", frame(0xC1, &[0]), Mismatch),
            ("6 a message that is not compressed", frame(0x81, b"Hello"), Echo),
            ("6.1 RSV1 on a later fragment", then(&[frame(0x41, &hello[..3]), frame(0xC0, &hello[3..])]), Broken),
            ("6.1 RSV1 on a ping", frame(0xC9, b""), Broken),
            ("6.1 RSV1 on a close", frame(0xC8, b""), Broken),
            (
                "6.1 a ping between compressed fragments",
                then(&[frame(0x41, &hello[..3]), frame(0x89, b""), frame(0x80, &hello[3..])]),
                Echo,
            ),
            ("7.2.2 what is not DEFLATE", frame(0xC1, &[0xff; 20]), Broken),
            ("8.1 compressed text that is not UTF-8", frame(0xC1, &[0, 1, 0, 0xfe, 0xff, 0xff, 0]), Broken),
        ],
    );
    // 7.2.3.2: the second message refers to the first, where the server keeps its context.
    let prepared = prepared(&options);
    let mut client = calling(prepared.as_ref(), "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    assert_eq!(outcome(&feed(client.as_mut(), &frame(0xC1, &hello), 1).0), Echo);
    let mut sent = Vec::new();
    client.start(&Message::default(), &mut sent);
    assert_eq!(unmasked(&sent), [(0xC1, hello.to_vec())], "7.2.1: what is sent is compressed, by itself");
    assert_eq!(outcome(&feed(client.as_mut(), &frame(0xC1, &[0xf2, 0x00, 0x11, 0x00, 0x00]), 1).0), Echo);
}

#[test]
fn any_bytes_are_read_the_same_in_any_pieces() {
    use brunt_plan::random::Random;

    // Frames of all kinds, right and wrong, in one stream; each seed gives another.
    for seed in 0..300 {
        let mut random = Random::new(seed, 7);
        let mut bytes = Vec::new();
        for _ in 0..12 {
            let first = [0x81, 0x01, 0x00, 0x80, 0x82, 0x89, 0x8A, 0x81, 0xC1][random.next_u64() as usize % 9];
            let length = [0, 1, 5, 125, 126, 300][random.next_u64() as usize % 6];
            let payload: Vec<u8> = (0..length).map(|_| b'a' + (random.next_u64() % 26) as u8).collect();
            bytes.extend(frame(first, &payload));
        }
        let prepared = prepared(&text("hello"));
        let meanings = |piece: usize| {
            let mut client = calling(prepared.as_ref(), "");
            let (mut progress, _) = feed(client.as_mut(), &bytes, piece);
            progress.retain(|progress| !matches!(progress, Progress::More | Progress::Aside));
            progress
        };
        let whole = meanings(usize::MAX);
        for piece in [1, 2, 3, 13] {
            assert_eq!(meanings(piece), whole, "seed {seed}, pieces of {piece}");
        }
    }
}

/// The frame of a text message from a server.
fn said(text: &str) -> Vec<u8> {
    [&[0x81, text.len() as u8], text.as_bytes()].concat()
}

/// A message that is not the echo fails its call; the echo that is still to come must not be taken for the next call's.
#[test]
fn an_echo_that_is_owed_is_never_the_next_calls() {
    let prepared = prepared(&text("hello"));
    let mut client = calling(&*prepared, "");
    let (progress, _) = feed(client.as_mut(), &said("news"), usize::MAX);
    let [Progress::Failed(failed)] = progress.as_slice() else { panic!("{progress:?}") };
    assert_eq!((failed.failure, failed.reusable), (Failure::Mismatch, false), "the connection ends");
}

/// RFC 6455, section 5.5.3: only the most recent ping needs an answer.
#[test]
fn pongs_for_a_peer_that_reads_nothing_do_not_pile_up() {
    let prepared = prepared(&text("hello"));
    let mut client = calling(&*prepared, "");
    let ping = |payload: &[u8]| [&[0x89, payload.len() as u8], payload].concat();
    let (_, out) = feed(client.as_mut(), &ping(b"first"), usize::MAX);
    assert_eq!(unmasked(&out), [(0x8a, b"first".to_vec())]);
    client.stalled();
    for number in 0..10_000_u32 {
        let (progress, out) = feed(client.as_mut(), &ping(&number.to_be_bytes()), usize::MAX);
        assert_eq!((progress.as_slice(), out.as_slice()), ([Progress::Aside].as_slice(), [].as_slice()));
    }
    let mut out = Vec::new();
    client.resumed(&mut out);
    assert_eq!(unmasked(&out), [(0x8a, 9_999_u32.to_be_bytes().to_vec())]);
    let (_, out) = feed(client.as_mut(), &ping(b"later"), usize::MAX);
    assert_eq!(unmasked(&out), [(0x8a, b"later".to_vec())]);
    // After a goodbye there is nothing to say.
    client.stalled();
    feed(client.as_mut(), &ping(b"last"), usize::MAX);
    client.close(&mut Vec::new());
    let mut out = Vec::new();
    client.resumed(&mut out);
    assert!(out.is_empty(), "{out:?}");
}

/// With a connection for each call, a server that hangs up rather than answer the Close frame has said goodbye, too: the
/// same for a flood and for a user.
#[test]
fn hanging_up_answers_a_close() {
    let mut plan = plan(&text("hello"));
    plan.reconnect = true;
    let prepared = WebSocket.prepare(&plan).unwrap();
    let mut flood = calling(&*prepared, "");
    let (progress, out) = feed(flood.as_mut(), &said("hello"), usize::MAX);
    assert_eq!(progress, [Progress::More]);
    assert_eq!(unmasked(&out), [(0x88, 1000_u16.to_be_bytes().to_vec())]);
    let mut user = conversing();
    call(user.as_mut(), &[Value::text("close")]);
    for client in [&mut flood, &mut user] {
        let answer = client.closed().unwrap();
        assert!(!answer.reusable && answer.position == 0);
    }
}

/// The caller of `brunt.ws "ws://127.0.0.1/"`.
fn caller() -> Box<dyn Caller> {
    let base = Url::parse("ws://127.0.0.1/").unwrap().target;
    let setting = Setting::alone(Some(&base));
    WebSocket.dialect().unwrap().client(&Value::Nil, &setting).unwrap()
}

/// Makes a call of a user's, and gives what it sent.
fn call(client: &mut dyn Client, values: &[Value<'_>]) -> Vec<u8> {
    let (mut encoded, mut out) = (Encoded::default(), Vec::new());
    caller().encode(values, &mut encoded).unwrap();
    client.start(&Message { bytes: &encoded.bytes, hint: encoded.hint, ..Message::default() }, &mut out);
    out
}

/// A user's connection after its handshake.
fn conversing() -> Box<dyn Client> {
    let mut client = caller().connection();
    let request = String::from_utf8(call(client.as_mut(), &[Value::text("connect")])).unwrap();
    let (progress, _) = feed(client.as_mut(), granting(key(&request), "").as_bytes(), usize::MAX);
    assert!(matches!(progress.as_slice(), [Progress::Answered(_)]), "{progress:?}");
    client
}

/// What a request is answered with after its timeout must not be taken for the answer to the next.
#[test]
fn a_connection_does_not_outlive_a_request_that_took_too_long() {
    let mut client = conversing();
    call(client.as_mut(), &[Value::text("request"), Value::text("a")]);
    assert!(!client.give_up(0, &mut Vec::new()), "its answer is owed");
    let mut client = conversing();
    call(client.as_mut(), &[Value::text("receive")]);
    assert!(client.give_up(0, &mut Vec::new()), "nothing is owed to who only listens");
}
