use brunt_http2::frame::{Head, flag, kind};
use brunt_http2::hpack::Encoder;
use brunt_protocol::{Answer, Client, FailedCall, Opening, Progress};
use proptest::prelude::*;

use super::*;
use crate::framing::compressed;

/// What a server sends, frame by frame.
#[derive(Default)]
struct Server {
    encoder: Encoder,
    out: Vec<u8>,
}

impl Server {
    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> &mut Self {
        Head { length: payload.len(), kind, flags, stream }.write(&mut self.out);
        self.out.extend_from_slice(payload);
        self
    }

    fn headers(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> &mut Self {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            self.encoder.field(name.as_bytes(), value.as_bytes(), true, &mut block);
        }
        let flags = flag::END_HEADERS | if end { flag::END_STREAM } else { 0 };
        self.frame(kind::HEADERS, flags, stream, &block)
    }

    fn begin(&mut self, stream: u32) -> &mut Self {
        self.headers(stream, &[(":status", "200"), ("content-type", "application/grpc")], false)
    }

    fn message(&mut self, stream: u32, message: &[u8]) -> &mut Self {
        let mut framed = Vec::new();
        write_message(message, false, &mut framed);
        self.frame(kind::DATA, 0, stream, &framed)
    }

    fn status(&mut self, stream: u32, status: &str) -> &mut Self {
        self.headers(stream, &[("grpc-status", status)], true)
    }

    fn settings(&mut self) -> &mut Self {
        self.frame(kind::SETTINGS, 0, 0, &[])
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

fn call(hint: u32) -> (Vec<u8>, u32) {
    let mut call = Vec::new();
    let head = b":method: POST\n:path: /shop.Cart/Add\n";
    call.extend_from_slice(&(head.len() as u32).to_be_bytes());
    call.extend_from_slice(head);
    write_message(b"hello", false, &mut call);
    (call, hint)
}

/// A client with calls of these hints in flight.
fn started(hints: &[u32]) -> GrpcClient {
    started_keeping(true, hints)
}

/// The same, which keeps answers or not.
fn started_keeping(keep: bool, hints: &[u32]) -> GrpcClient {
    started_of(keep, hints, Vec::new())
}

/// The same, whose methods have answers of these types.
fn started_of(keep: bool, hints: &[u32], answers: Vec<MessageDescriptor>) -> GrpcClient {
    let limits = Limits { message_bytes: 1000, stall_ns: 7, keep_alive_s: None, answers };
    let mut client = GrpcClient::new(GrpcStreams::new(keep, false, Arc::new(limits)));
    let mut out = Vec::new();
    assert_eq!(client.open(None, &mut out), Ok(Opening::Exchange));
    let bytes = Server::default().settings().take();
    assert_eq!(client.receive(&bytes, &mut out), Ok((bytes.len(), Progress::Opened)));
    for hint in hints {
        let (bytes, hint) = call(*hint);
        let expected = if hint & (STREAMS | TAKEN) != 0 { Started::Streamed { stall_ns: 7 } } else { Started::Awaited };
        assert_eq!(client.start(&Message { bytes: &bytes, hint, ..Message::default() }, &mut out), expected);
    }
    client
}

/// What all of `bytes` meant, without what belongs to no end of a call.
fn ends(client: &mut GrpcClient, mut bytes: &[u8]) -> Result<Vec<Progress>, Malformed> {
    let (mut out, mut all) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        let (taken, progress) = client.receive(bytes, &mut out)?;
        bytes = &bytes[taken..];
        if !matches!(progress, Progress::ControlFrame | Progress::More | Progress::Part { .. }) {
            all.push(progress);
        }
    }
    Ok(all)
}

fn answered(position: usize, status: u16) -> Progress {
    Progress::Answered(Answer { position, status, reusable: true })
}

fn message(position: usize) -> Progress {
    Progress::Message { position, status: 0 }
}

fn reason(client: &mut GrpcClient, bytes: &[u8]) -> (Failure, String) {
    match ends(client, bytes).unwrap().as_slice() {
        [Progress::Failed(FailedCall { failure, reason, reusable: true, .. })] => (*failure, reason.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_is_a_message_and_a_status() {
    let mut client = started(&[0, 0]);
    let bytes = Server::default().begin(3).message(3, b"late").status(3, "0").take();
    assert_eq!(ends(&mut client, &bytes), Ok(vec![answered(1, 0)]));
    let parts = client.parts();
    assert_eq!(parts.body, b"\0\0\0\0\x04late");
    let head = String::from_utf8_lossy(parts.head).into_owned();
    assert_eq!(head, "HTTP/2 200\r\ncontent-type: application/grpc\r\ngrpc-status: 0\r\n");
}

#[test]
fn a_status_may_come_alone() {
    let mut client = started(&[0]);
    let fields = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "5")];
    let bytes = Server::default().headers(1, &fields, true).take();
    assert_eq!(ends(&mut client, &bytes), Ok(vec![answered(0, 5)]));
    // The status of gRPC says more than that of HTTP.
    let mut client = started(&[0]);
    let bytes = Server::default().headers(1, &[(":status", "503"), ("grpc-status", "14")], true).take();
    assert_eq!(ends(&mut client, &bytes), Ok(vec![answered(0, 14)]));
}

#[test]
fn a_stream_may_have_any_number_of_messages() {
    for messages in [0, 1, 3] {
        let mut client = started(&[STREAMS]);
        let mut server = Server::default();
        server.begin(1);
        for _ in 0..messages {
            server.message(1, b"");
        }
        let mut expected = vec![message(0); messages];
        expected.push(answered(0, 0));
        assert_eq!(ends(&mut client, &server.status(1, "0").take()), Ok(expected));
        assert_eq!(client.parts().body.len(), 5 * messages);
    }
}

#[test]
fn a_message_is_told_by_itself_and_all_are_kept() {
    let mut client = started(&[0, STREAMS]);
    let mut framed = Vec::new();
    for text in [b"a".as_slice(), b"", b"bcd"] {
        write_message(text, false, &mut framed);
    }
    // Three messages in one padded frame.
    let payload = [&[2], framed.as_slice(), &[0, 0]].concat();
    let bytes = Server::default().begin(3).frame(kind::DATA, flag::PADDED, 3, &payload).status(3, "0").take();
    let (mut rest, mut out, mut seen) = (bytes.as_slice(), Vec::new(), Vec::new());
    while !rest.is_empty() {
        let (taken, progress) = client.receive(rest, &mut out).unwrap();
        rest = &rest[taken..];
        if progress == message(1) {
            seen.push(client.parts().body.to_vec());
        }
    }
    assert_eq!(seen, [b"\0\0\0\0\x01a".to_vec(), b"\0\0\0\0\0".to_vec(), b"\0\0\0\0\x03bcd".to_vec()]);
    assert_eq!(client.parts().body, framed, "the whole answer has all of them");
}

#[test]
fn what_is_left_of_a_stream_that_is_given_up_is_nobodys() {
    let mut client = started(&[STREAMS, 0]);
    let mut framed = Vec::new();
    write_message(b"a", false, &mut framed);
    write_message(b"b", false, &mut framed);
    let mut server = Server::default();
    let bytes = server.begin(1).frame(kind::DATA, 0, 1, &framed).begin(3).message(3, b"one").status(3, "0").take();
    let mut rest = bytes.as_slice();
    loop {
        let (taken, progress) = client.receive(rest, &mut Vec::new()).unwrap();
        rest = &rest[taken..];
        if progress == message(0) {
            break;
        }
    }
    assert!(client.cancel(0, &mut Vec::new()));
    assert_eq!(ends(&mut client, rest), Ok(vec![answered(0, 0)]), "the other call has its own answer");
}

#[test]
fn a_stream_without_its_status_has_ended_early() {
    for by in [kind::DATA, kind::HEADERS] {
        let mut client = started(&[STREAMS, 0]);
        let mut server = Server::default();
        server.begin(1).message(1, b"a").frame(by, flag::END_STREAM | flag::END_HEADERS, 1, &[]);
        let all = ends(&mut client, &server.take()).unwrap();
        let Some(Progress::Failed(FailedCall { position: 0, failure, reason, .. })) = all.get(1) else {
            panic!("{all:?}")
        };
        assert_eq!((*failure, reason.as_ref()), (Failure::EndedEarly, "the stream ended without its status"));
    }
}

/// What a server does.
type Answering<'a> = &'a dyn Fn(&mut Server);

#[test]
fn what_is_no_answer_is_a_failure_by_name() {
    let grpc = ("content-type", "application/grpc+proto");
    let cases: [(Answering<'_>, &str); 9] = [
        (&|s| _ = s.begin(1).status(1, "0"), "status OK and no message"),
        (&|s| _ = s.begin(1).message(1, b"").message(1, b""), "a second message"),
        (&|s| _ = s.begin(1).headers(1, &[("a", "b")], true), "without grpc-status"),
        (&|s| _ = s.begin(1).status(1, "x"), "not a number"),
        (&|s| _ = s.begin(1).frame(kind::DATA, 0, 1, &[0, 0]).status(1, "0"), "within a message"),
        (&|s| _ = s.begin(1).frame(kind::DATA, flag::END_STREAM, 1, &[]), "without trailers"),
        (&|s| _ = s.headers(1, &[(":status", "404")], true), "HTTP status 404"),
        (&|s| _ = s.headers(1, &[(":status", "200"), ("content-type", "text/html")], false), "content-type"),
        (
            &|s| _ = s.headers(1, &[(":status", "200"), grpc], false).frame(kind::DATA, 0, 1, &[1, 0, 0, 0, 0]),
            "compressed",
        ),
    ];
    for (answer, expected) in cases {
        let mut server = Server::default();
        answer(&mut server);
        let (failure, reason) = reason(&mut started(&[0]), &server.take());
        assert_eq!(failure, Failure::Protocol);
        assert!(reason.contains(expected), "{reason}");
    }
    let bytes = Server::default().begin(1).frame(kind::DATA, 0, 1, &[0, 0, 0, 3, 233]).take();
    let (failure, reason) = reason(&mut started(&[0]), &bytes);
    assert_eq!((failure, reason.as_str()), (Failure::Oversize, "a message of more bytes than --max-answer allows"));
}

#[test]
fn compressed_messages_are_kept_as_they_were() {
    let mut framed = Vec::new();
    write_message(&compressed(&[7; 900]).unwrap(), true, &mut framed);
    let head = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-encoding", "gzip")];
    let answer = |framed: &[u8]| {
        Server::default().headers(1, &head, false).frame(kind::DATA, 0, 1, framed).status(1, "0").take()
    };
    let mut client = started(&[0]);
    assert_eq!(ends(&mut client, &answer(&framed)), Ok(vec![answered(0, 0)]));
    assert_eq!(client.parts().body[5..], [7; 900]);
    assert_eq!(ends(&mut started_keeping(false, &[0]), &answer(&framed)), Ok(vec![answered(0, 0)]));
    // What grows beyond the limit is refused, however small it came, and whether or not it is kept; so is what is not gzip.
    let mut large = Vec::new();
    write_message(&compressed(&[7; 1001]).unwrap(), true, &mut large);
    let mut broken = Vec::new();
    write_message(b"no gzip", true, &mut broken);
    for keep in [true, false] {
        assert_eq!(reason(&mut started_keeping(keep, &[0]), &answer(&large)).0, Failure::Oversize);
        let (failure, reason) = reason(&mut started_keeping(keep, &[0]), &answer(&broken));
        assert_eq!((failure, reason.as_str()), (Failure::Protocol, "a compressed message that is not gzip"));
    }
}

#[test]
fn a_message_of_another_type_is_no_answer() {
    let source = "syntax = \"proto3\"; message Cart { string sku = 1; } message Sum { fixed32 cents = 1; }";
    let sources = [("a.proto".to_owned(), source.to_owned())].into();
    let schema = crate::schema::compile(&["a.proto".to_owned()], &sources).unwrap();
    let types: Vec<_> = ["Cart", "Sum"].map(|name| schema.pool().get_message_by_name(name).unwrap()).into();
    let (cart, sum) = (b"\x0a\x02a1", b"\x0d\x01\0\0\0");
    for (keep, hint) in [(true, 0), (false, 0), (true, TAKEN), (false, STREAMS)] {
        let mut client = started_of(keep, &[hint, hint | hint_of_method(1)], types.clone());
        let of_others = Server::default().begin(1).message(1, sum).begin(3).message(3, cart).take();
        let failed = |position, name: &str| {
            let reason = format!("an answer that is not a {name}").into();
            Progress::Failed(FailedCall { position, failure: Failure::Protocol, reason, reusable: true })
        };
        let expected = vec![failed(0, "Cart"), failed(0, "Sum")];
        assert_eq!(ends(&mut client, &of_others), Ok(expected), "{keep} {hint}");
        let mut client = started_of(keep, &[0, hint_of_method(1)], types.clone());
        let mut own = Server::default();
        own.begin(1).message(1, cart).begin(3).message(3, sum).status(3, "0").status(1, "0");
        assert_eq!(ends(&mut client, &own.take()), Ok(vec![answered(1, 0), answered(0, 0)]), "{keep} {hint}");
    }
}

#[test]
fn streams_that_end_otherwise_end_their_calls() {
    let mut client = started(&[0, 0]);
    let bytes = Server::default().frame(kind::RST_STREAM, 0, 3, &[0, 0, 0, 7]).take();
    assert!(matches!(ends(&mut client, &bytes).unwrap().as_slice(), [Progress::Refused { position: 1, .. }]));
    assert_eq!(client.capacity(), 1);
    let bytes = Server::default().frame(kind::RST_STREAM, 0, 1, &[0, 0, 0, 2]).take();
    let (failure, reason) = reason(&mut client, &bytes);
    assert_eq!(failure, Failure::Closed);
    assert!(reason.contains("INTERNAL_ERROR"), "{reason}");
    let mut client = started(&[0, 0]);
    let bytes = Server::default().frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]).take();
    assert_eq!(ends(&mut client, &bytes), Ok(vec![Progress::Draining { unprocessed: 1 }]));
}

#[test]
fn errors_of_a_connection_are_counted_once_with_the_words_of_the_last() {
    let mut client = started(&[0, 0]);
    let mut server = Server::default();
    for said in ["wait", ""] {
        let payload = [&[0, 0, 0, 1, 0, 0, 0, 11], said.as_bytes()].concat();
        let bytes = server.frame(kind::GOAWAY, 0, 0, &payload).take();
        assert!(matches!(ends(&mut client, &bytes).unwrap().as_slice(), [Progress::Draining { .. }]));
    }
    let mut events = Vec::new();
    client.take_events(&mut |name, count| events.push((name.to_owned(), count)));
    client.take_events(&mut |name, count| events.push((name.to_owned(), count)));
    let expected = [("GOAWAY", 2), ("GOAWAY with ENHANCE_YOUR_CALM", 1)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(events, expected);
}

#[test]
fn a_connection_that_is_given_up_at_once_fails_with_the_peers_words() {
    for (said, expected) in [("", "INADEQUATE_SECURITY"), ("use TLS 1.3", "INADEQUATE_SECURITY: use TLS 1.3")] {
        let limits = Limits { message_bytes: 1, stall_ns: u64::MAX, keep_alive_s: None, answers: Vec::new() };
        let mut client = GrpcClient::new(GrpcStreams::new(false, true, Arc::new(limits)));
        assert_eq!(client.open(Some(b"h2"), &mut Vec::new()), Ok(Opening::Exchange));
        let payload = [&[0, 0, 0, 0, 0, 0, 0, 12], said.as_bytes()].concat();
        let problem = client.receive(&Server::default().frame(kind::GOAWAY, 0, 0, &payload).take(), &mut Vec::new());
        let expected = format!("the peer gave the connection up before its SETTINGS: GOAWAY with {expected}");
        assert_eq!(problem.unwrap_err().to_string(), expected);
    }
}

#[test]
fn tls_without_h2_is_refused() {
    let limits = Limits { message_bytes: 1, stall_ns: u64::MAX, keep_alive_s: None, answers: Vec::new() };
    let mut client = GrpcClient::new(GrpcStreams::new(false, true, Arc::new(limits)));
    assert!(client.open(Some(b"http/1.1"), &mut Vec::new()).is_err());
}

proptest! {
    #[test]
    fn answers_mean_the_same_however_they_are_cut(cuts in prop::collection::vec(1_usize..9, 1..60)) {
        let mut server = Server::default();
        server.begin(3).begin(1).message(3, b"one").message(1, b"two").message(3, b"").status(3, "0").status(1, "9");
        let bytes = server.take();
        let (mut client, mut rest, mut all) = (started(&[0, STREAMS]), bytes.as_slice(), Vec::new());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            all.extend(ends(&mut client, piece).unwrap());
            rest = after;
        }
        prop_assert_eq!(all, vec![message(1), message(1), answered(1, 0), answered(0, 9)]);
    }

    #[test]
    fn hostile_bodies_end_one_call_alone(body in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut client = started(&[STREAMS]);
        let mut server = Server::default();
        server.begin(1).frame(kind::DATA, 0, 1, &body).status(1, "0");
        let progress = ends(&mut client, &server.take());
        let last = progress.as_deref().ok().and_then(<[Progress]>::split_last);
        let Some((Progress::Answered(_) | Progress::Failed(_), before)) = last else { panic!("{progress:?}") };
        prop_assert!(before.iter().all(|progress| *progress == message(0)));
    }
}

/// The frames that were sent: kind, flags and payload of each.
fn frames(mut bytes: &[u8]) -> Vec<(u8, bool, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(head) = Head::read(bytes) {
        let (payload, rest) = bytes[brunt_http2::frame::HEAD_BYTES..].split_at(head.length);
        all.push((head.kind, head.has(flag::END_STREAM), payload.to_vec()));
        bytes = rest;
    }
    all
}

fn said(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::request::write_path("/shop.Cart/Chat", &mut bytes);
    write_message(message, false, &mut bytes);
    bytes
}

#[test]
fn a_user_says_its_messages_one_by_one() {
    let mut client = started(&[]);
    let mut out = Vec::new();
    let (bytes, hint) = call(STREAMS | OPEN | TAKEN);
    let open = Message { bytes: &bytes, hint, ..Message::default() };
    assert_eq!(client.start(&open, &mut out), Started::Streamed { stall_ns: 7 });
    let sent = frames(&out);
    assert_eq!((sent.len(), sent[0].1, sent[1].1), (2, false, false), "{sent:?}");
    assert_eq!(sent[1].2, b"\0\0\0\0\x05hello");
    out.clear();
    let more = said(b"more");
    assert_eq!(client.send_message(0, &Message { bytes: &more, ..Message::default() }, &mut out), Ok(()));
    assert_eq!(frames(&out), [(kind::DATA, false, b"\0\0\0\0\x04more".to_vec())]);
    // Messages come while more is said, and each is kept alone.
    let bytes = Server::default().begin(1).message(1, b"one").message(1, b"two").take();
    assert_eq!(ends(&mut client, &bytes), Ok(vec![message(0), message(0)]));
    assert_eq!(client.parts().body, b"\0\0\0\0\x03two");
    out.clear();
    let mut nothing = Vec::new();
    crate::request::write_path("/shop.Cart/Chat", &mut nothing);
    let finish = Message { bytes: &nothing, hint: FINISH, ..Message::default() };
    assert_eq!(client.send_message(0, &finish, &mut out), Ok(()));
    assert_eq!(frames(&out), [(kind::DATA, true, Vec::new())]);
    let bytes = Server::default().status(1, "0").take();
    assert_eq!(ends(&mut client, &bytes), Ok(vec![answered(0, 0)]));
    assert_eq!(client.parts().body, b"", "its messages have been told");
}

/// Where one message answers, a user that takes it is told of it, and a second is none.
#[test]
fn one_message_is_taken_as_well() {
    let mut client = started(&[TAKEN | OPEN]);
    let bytes = Server::default().begin(1).message(1, b"all").take();
    assert_eq!(ends(&mut client, &bytes), Ok(vec![message(0)]));
    let bytes = Server::default().message(1, b"again").take();
    assert_eq!(reason(&mut client, &bytes).0, Failure::Protocol);
}

#[test]
fn what_a_server_does_not_take_is_bounded() {
    let mut client = started(&[STREAMS | OPEN | TAKEN]);
    let (mut out, large) = (Vec::new(), said(&vec![7; 1 << 20]));
    let mut say = || client.send_message(0, &Message { bytes: &large, ..Message::default() }, &mut out);
    let taken = (0..10).take_while(|_| say() == Ok(())).count();
    assert_eq!((taken, say()), (4, Err(UNTAKEN)));
    // One message may be longer than that.
    let mut client = started(&[STREAMS | OPEN | TAKEN]);
    let huge = said(&vec![7; 6 << 20]);
    assert_eq!(client.send_message(0, &Message { bytes: &huge, ..Message::default() }, &mut out), Ok(()));
}

/// A server that is silent is pinged, one that answers anything lives, and one that does not is given up.
#[test]
fn a_silent_server_is_pinged_and_then_given_up() {
    let limits = Arc::new(Limits { message_bytes: 1, stall_ns: u64::MAX, keep_alive_s: Some(3), answers: Vec::new() });
    let mut client = GrpcStreams::client(false, false, &limits);
    client.open(None, &mut Vec::new()).unwrap();
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    client.receive(settings, &mut Vec::new()).unwrap();
    let beats = |client: &mut GrpcClient, count: usize| {
        let mut out = Vec::new();
        let last = (0..count).map(|_| client.beat(&mut out)).last().unwrap();
        last.map(|()| out.windows(5).filter(|head| *head == b"\0\0\x08\x06\0").count())
    };
    assert_eq!(beats(&mut client, 2), Ok(0), "it is not silent for long");
    assert_eq!(beats(&mut client, 1), Ok(1));
    assert_eq!(beats(&mut client, 20), Ok(0), "one ping waits for its answer");
    client.receive(b"\0\0\x08\x06\x01\0\0\0\0brunt is", &mut Vec::new()).unwrap();
    assert_eq!(beats(&mut client, 3), Ok(1));
    assert!(beats(&mut client, 21).is_err());
    let mut quiet =
        GrpcStreams::client(false, false, &Arc::new(Limits { keep_alive_s: None, answers: Vec::new(), ..*limits }));
    assert_eq!(beats(&mut quiet, 100), Ok(0), "no pings but those asked for");
    assert!(keep_alive_s(999_999_999).is_err() && keep_alive_s(1_500_000_000) == Ok(2));
}
