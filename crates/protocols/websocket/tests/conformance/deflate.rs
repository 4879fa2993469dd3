//! RFC 7692: permessage-deflate, negotiated and used.

use brunt_protocol::Progress;
use brunt_protocol::source::Message;
use brunt_websocket::options::Options;

use crate::Outcome::{Broken, Echo, Mismatch};
use crate::{calling, feed, frame, granting, key, outcome, prepared, rows, text, unmasked};

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
