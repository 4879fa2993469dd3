//! RFC 6455, sections 5 to 8: frames, messages, close codes, and what the client sends back.

use brunt_protocol::Progress;

use crate::Outcome::{Broken, Closing, Echo, Mismatch, Nothing};
use crate::{Outcome, calling, close, feed, frame, prepared, rows, text, unmasked};

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
                Closing("the peer closed with 1000 normal closure: tschüß"),
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
    let codes: [(u16, Outcome); 24] = [
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
        (3005, Closing("the peer closed with 3005, a registered code")),
        (4429, Closing("the peer closed with 4429, a private code")),
        (4999, Closing("the peer closed with 4999, a private code")),
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
            progress.retain(|progress| !matches!(progress, Progress::More | Progress::ControlFrame));
            progress
        };
        let whole = meanings(usize::MAX);
        for piece in [1, 2, 3, 13] {
            assert_eq!(meanings(piece), whole, "seed {seed}, pieces of {piece}");
        }
    }
}
