//! RFC 6455, section 4: the opening handshake.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_protocol::Progress;
use brunt_websocket::options::Options;

use crate::{accept, feed, frame, granting, key, prepared, text};

/// A server's answer to a key.
type Answering = Box<dyn Fn(&str) -> String>;

#[test]
fn rfc_6455_the_request_of_a_handshake() {
    let options = Options {
        headers: vec![brunt_protocol::headers::Header::new("Origin", "http://localhost")],
        subprotocols: vec!["chat".to_owned(), "superchat".to_owned()],
        deflate: true,
        ..Options::default()
    };
    let prepared = prepared(&options);
    let request = |number| {
        let (mut client, mut out) = (prepared.client_of(number, false), Vec::new());
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
        (
            "RFC 9110 15.2: interim answers come before it",
            &plain,
            Box::new(|key: &str| {
                let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
                format!("{hints}HTTP/1.1 100 Continue\r\n\r\n{}", granting(key, ""))
            }),
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
    assert_eq!(progress, [Progress::Opened, Progress::Unsolicited]);
}
