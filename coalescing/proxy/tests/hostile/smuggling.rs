//! Requests of which one reader sees one and another two: whatever the proxy takes of them, the upstream is sent what can be
//! read in one way only, and nothing that the proxy did not answer.
//!
//! The patterns are those published as CL.TE, TE.CL, TE.TE, CL.0, TE.0, 0.CL, of bare CR and LF, of folded lines and of chunk
//! extensions (Linhart and others 2005; Kettle 2019, 2022, 2025; Jabiyev and others 2021; Wiik 2025).

use brunt_proxy::Config;
use tokio::io::AsyncWriteExt as _;

use crate::wire;
use crate::world::{World, config};

/// What is to be smuggled.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// What came of a pattern.
#[derive(Debug)]
struct Outcome {
    /// The statuses that the client got.
    answered: Vec<u16>,
    /// The requests that the upstream got, over all connections.
    got: Vec<wire::Message>,
}

/// Sends this, and another client's request after it, to an upstream that answers everything.
async fn send(bytes: &[u8]) -> Outcome {
    // No answer is shared, so that each is counted.
    let mut world = World::with_config(&Config { coalesce: None, ..config() });
    let seen = world.upstream_answers();
    let mut client = world.connect();
    // The proxy may end the connection before it has all.
    let _ = client.stream.write_all(bytes).await;
    let answers = client.answers().await;
    let mut victim = world.connect();
    victim.send(b"GET /victim HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let victims = victim.answers().await;
    assert_eq!(victims.messages.len(), 1, "the next client's answer: {victims:?}");
    assert_eq!((victims.messages[0].status(), victims.messages[0].body.as_slice()), (200, &b"ok"[..]));
    let mut got = Vec::new();
    for connection in seen.lock().unwrap().iter() {
        let reading = wire::requests(connection).unwrap_or_else(|wrong| {
            panic!("the upstream can read this in two ways ({wrong}): {}", String::from_utf8_lossy(connection))
        });
        got.extend(reading.messages);
    }
    let victims = got.iter().position(|request| request.target() == "/victim").expect("the next client's request");
    assert!(got.remove(victims).body.is_empty());
    let answered = answers.messages.iter().map(wire::Message::status).filter(|status| *status >= 200).collect();
    Outcome { answered, got }
}

/// Nothing was smuggled: the upstream got no more than was answered, and nothing under the smuggled name.
fn is_harmless(outcome: &Outcome, name: &str) {
    let answered = outcome.answered.iter().filter(|status| **status == 200).count();
    assert!(outcome.got.len() == answered, "{name}: {outcome:?}");
    assert!(outcome.got.iter().all(|request| request.target() != "/smuggled"), "{name}: {outcome:?}");
}

fn post(fields: &str, body: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")
}

/// A body that is whole for who goes by its chunks, with the smuggled request behind it.
fn behind_chunks() -> String {
    format!("0\r\n\r\n{SMUGGLED}")
}

/// A body that is one chunk with the smuggled request in it.
fn within_a_chunk() -> String {
    format!("{:x}\r\n{SMUGGLED}\r\n0\r\n\r\n", SMUGGLED.len())
}

#[tokio::test(start_paused = true)]
async fn content_length_and_transfer_encoding() {
    let (behind, within) = (behind_chunks(), within_a_chunk());
    for encoding in ["chunked", "Chunked", "CHUNKED", "chunked "] {
        for (name, length, body) in [("CL.TE", behind.len(), &behind), ("TE.CL", 4, &within), ("0.CL", 0, &within)] {
            let orders = [
                format!("Content-Length: {length}\r\nTransfer-Encoding: {encoding}\r\n"),
                format!("Transfer-Encoding: {encoding}\r\nContent-Length: {length}\r\n"),
            ];
            for fields in orders {
                let outcome = send(post(&fields, body).as_bytes()).await;
                is_harmless(&outcome, name);
                // The rest of the connection is nobody's: RFC 9112, section 6.1.
                assert!(outcome.answered.len() <= 1, "{name}: {outcome:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn transfer_encodings_that_not_everybody_knows() {
    let encodings = [
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding:\tchunked",
        "Transfer-Encoding:\x0bchunked",
        "Transfer-Encoding:\x0cchunked",
        "Transfer-Encoding: \x00chunked",
        "Transfer-Encoding: chunked\x00",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: 'chunked'",
        " Transfer-Encoding: chunked",
        "\tTransfer-Encoding: chunked",
        "X: x\nTransfer-Encoding: chunked",
        "X: x\rTransfer-Encoding: chunked",
        "X: x\r\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding\r\n : chunked",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: chunked,",
        "Transfer-Encoding:",
        "Transfer-Encoding\u{a0}: chunked",
        "transfer-encoding\x01: chunked",
        "Connection: transfer-encoding\r\nTransfer-Encoding: chunked",
    ];
    let (behind, within) = (behind_chunks(), within_a_chunk());
    for encoding in encodings {
        for (length, body) in [(behind.len(), &behind), (4, &within)] {
            // Alone, after a length and before one.
            for fields in [
                format!("{encoding}\r\n"),
                format!("Content-Length: {length}\r\n{encoding}\r\n"),
                format!("{encoding}\r\nContent-Length: {length}\r\n"),
            ] {
                let outcome = send(post(&fields, body).as_bytes()).await;
                is_harmless(&outcome, &fields);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fields_that_some_take_for_others() {
    // Who makes variables of fields has the same one for both (RFC 3875, section 4.1.18).
    for field in [
        "Transfer_Encoding: chunked",
        "Content_Length: 0",
        "X_Forwarded_For: 10.0.0.1",
        "X_Real_IP: 10.0.0.1",
        "Accept_Language: de",
        "TE: chunked",
        "HTTP2-Settings: AAMAAABk",
    ] {
        let request = post(&format!("{field}\r\nContent-Length: 4\r\nConnection: close\r\nX_Own: 1\r\n"), "0\r\n\r");
        let outcome = send(request.as_bytes()).await;
        is_harmless(&outcome, field);
        let name = field.split(':').next().unwrap().to_ascii_lowercase();
        assert_eq!((outcome.got.len(), outcome.got[0].values(&name).count()), (1, 0), "{outcome:?}");
        assert_eq!(outcome.got[0].values("x_own").count(), 1, "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lengths_that_not_everybody_reads_alike() {
    let body = format!("abcde{SMUGGLED}");
    for length in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 6",
        "Content-Length: 5,5",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 0x5",
        "Content-Length: 5.0",
        "Content-Length: 5 0",
        "Content-Length: 5_0",
        "Content-Length:",
        "Content-Length: 99999999999999999999999999",
        "Content-Length: 18446744073709551615",
        "Content-Length : 5",
        " Content-Length: 5",
        "Content-Length: 5\r\n 0",
        "Content-Length: \x0b5",
        "Content-Length: 5\x00",
        "Content-Length\x00: 5",
    ] {
        let outcome = send(post(&format!("{length}\r\n"), &body).as_bytes()).await;
        is_harmless(&outcome, length);
        assert!(outcome.answered.len() <= 1 && !outcome.answered.contains(&200), "{length:?}: {outcome:?}");
    }
    // The same, twice, may be taken for one (RFC 9110, section 8.6): then the rest is another request, for all alike.
    let same = send(post("Content-Length: 5\r\nContent-Length: 5\r\nConnection: close\r\n", &body).as_bytes()).await;
    is_harmless(&same, "twice the same");
}

#[tokio::test(start_paused = true)]
async fn lines_that_end_or_go_on_where_not_everybody_says() {
    let requests = [
        ("obs-fold", "GET /a HTTP/1.1\r\nHost: a\r\nX: x\r\n GET /smuggled HTTP/1.1\r\n\r\n".to_owned()),
        ("obs-fold of Host", "GET /a HTTP/1.1\r\nHost: a\r\n b\r\n\r\n".to_owned()),
        ("fold before all", "GET /a HTTP/1.1\r\n Host: a\r\nHost: a\r\n\r\n".to_owned()),
        ("bare CR", format!("GET /a HTTP/1.1\r\nHost: a\r\nX: x\r\rGET /smuggled HTTP/1.1\r\n\r\n{SMUGGLED}")),
        ("bare CR in a value", "GET /a HTTP/1.1\r\nHost: a\r\nX: x\rTransfer-Encoding: chunked\r\n\r\n".to_owned()),
        ("bare CR in the target", "GET /a\rX HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        ("CR LF in the target", "GET /a\r\nX HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        ("NUL in a value", "GET /a HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n".to_owned()),
        ("space in a name", "GET /a HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n".to_owned()),
        ("no name", "GET /a HTTP/1.1\r\nHost: a\r\n: z\r\n\r\n".to_owned()),
        ("no colon", "GET /a HTTP/1.1\r\nHost: a\r\nX\r\n\r\n".to_owned()),
        ("two spaces", "GET  /a HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        ("a target with a space", "GET /a /b HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        ("HTTP/0.9", "GET /a\r\n\r\n".to_owned()),
        ("HTTP/1.2", "GET /a HTTP/1.2\r\nHost: a\r\n\r\n".to_owned()),
        ("HTTP/2.0 on a line", "GET /a HTTP/2.0\r\nHost: a\r\n\r\n".to_owned()),
        ("lower case", "GET /a http/1.1\r\nHost: a\r\n\r\n".to_owned()),
        ("an authority", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
        ("a fragment", "GET /a#/smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned()),
        ("CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()),
    ];
    for (name, request) in requests {
        let outcome = send(request.as_bytes()).await;
        is_harmless(&outcome, name);
        assert!(name == "a fragment" || !outcome.answered.contains(&200), "{name}: {outcome:?}");
    }
    // LF alone may end a line (RFC 9112, section 2.2): if it does here, it is CR LF upstream.
    let outcome = send(b"GET /a HTTP/1.1\nHost: a\nConnection: close\n\n").await;
    is_harmless(&outcome, "bare LF");
}

#[tokio::test(start_paused = true)]
async fn chunks_that_not_everybody_reads_alike() {
    let bodies = [
        ("extension", format!("2;a=b\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("LF in an extension", format!("2;\nxx\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("CR in an extension", format!("2;a\rb\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("LF after a size", format!("2\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("CR after a size", format!("2\rok\r\n0\r\n\r\n{SMUGGLED}")),
        ("LF after a chunk", format!("2\r\nok\n0\r\n\r\n{SMUGGLED}")),
        ("two more bytes", format!("2\r\nokxx0\r\n\r\n{SMUGGLED}")),
        ("no end of a chunk", format!("2\r\nok0\r\n\r\n{SMUGGLED}")),
        ("0x", format!("0x2\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("a sign", format!("+2\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("too long a size", format!("10000000000000002\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("zeros before", format!("0000000000000000000002\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("space before", format!(" 2\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("space after", format!("2 \r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("no size", format!("\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("underscore", format!("0_2\r\nok\r\n0\r\n\r\n{SMUGGLED}")),
        ("LF after the last", format!("2\r\nok\r\n0\n\n{SMUGGLED}")),
        ("trailers", format!("2\r\nok\r\n0\r\nContent-Length: {}\r\n\r\n{SMUGGLED}", SMUGGLED.len())),
        ("trailers that frame", format!("2\r\nok\r\n0\r\nTransfer-Encoding: chunked\r\nHost: b\r\n\r\n{SMUGGLED}")),
        ("a request for a trailer", format!("2\r\nok\r\n0\r\n{SMUGGLED}")),
        ("TE.0", within_a_chunk()),
    ];
    for (name, body) in bodies {
        let outcome =
            send(post("Transfer-Encoding: chunked\r\nTrailer: content-length, host\r\n", &body).as_bytes()).await;
        is_harmless(&outcome, name);
        assert!(outcome.answered.len() <= 1, "{name}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_a_server_may_leave_unread() {
    // CL.0: who takes a GET to have no body takes this one's for a request. So no other comes after it on its connection.
    for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
        for fields in [format!("Content-Length: {}\r\n", SMUGGLED.len()), "Transfer-Encoding: chunked\r\n".to_owned()] {
            let mut world = World::with_config(&Config { coalesce: None, ..config() });
            let body = if fields.starts_with('C') { SMUGGLED.to_owned() } else { within_a_chunk() };
            let request = format!("{method} /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}");
            let _client = world.sends(request.as_bytes()).await;
            let head = world.accept().await.head().await;
            assert!(head.contains("connection: close\r\n"), "{head}");
            let framing = fields.to_ascii_lowercase();
            assert!(head.contains(&framing), "{head}");
        }
    }
    // A server that answers before it has read a body does not get another request behind the rest of it.
    let mut world = World::with_config(&Config { coalesce: None, ..config() });
    let mut client = world.sends(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n").await;
    let mut upstream = world.accept().await;
    upstream.answers("early").await;
    assert_eq!(client.answer().await.body, b"early");
    let mut victim = world.sends(b"GET /victim HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(world.accept().await.answers("its own").await.starts_with("GET /victim "));
    assert_eq!(victim.answer().await.body, b"its own");
}

#[tokio::test(start_paused = true)]
async fn expectations_and_hosts() {
    for expectation in
        ["Expect: 100-continue", "Expect: 100-continue, 100-continue", "Expect: x", "Expect: 100-continue\r\nExpect: y"]
    {
        let body = format!("abcde{SMUGGLED}");
        let request = post(&format!("{expectation}\r\nContent-Length: 5\r\nConnection: close\r\n"), &body);
        let outcome = send(request.as_bytes()).await;
        is_harmless(&outcome, expectation);
        assert!(outcome.got.iter().all(|request| request.values("expect").count() == 0), "{outcome:?}");
    }
    for (hosts, status) in [
        ("Host: a\r\nHost: b\r\n", 400),
        ("", 400),
        ("Host: a\r\nConnection: host\r\n", 200),
        ("Host: me:secret@a\r\n", 400),
        ("Host: a, b\r\n", 400),
        ("Host:\r\n", 400),
    ] {
        let outcome = send(format!("GET /a HTTP/1.1\r\n{hosts}\r\n").as_bytes()).await;
        is_harmless(&outcome, hosts);
        assert_eq!(outcome.answered, [status], "{hosts:?}");
    }
    let outcome = send(b"GET http://me:secret@a/ HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!((outcome.answered, outcome.got), (vec![400], vec![]));
    let outcome = send(b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let hosts: Vec<_> = outcome.got.iter().flat_map(|request| request.values("host")).collect();
    assert_eq!(hosts, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn heads_that_are_too_long_are_refused() {
    let long = "x".repeat(40 * 1024);
    let outcome = send(format!("GET /a HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n").as_bytes()).await;
    is_harmless(&outcome, "a long field");
    assert_eq!(outcome.answered, [431]);
    let many = "x: y\r\n".repeat(200);
    let outcome = send(format!("GET /a HTTP/1.1\r\nHost: a\r\n{many}\r\n").as_bytes()).await;
    assert_eq!(outcome.answered, [431]);
}
