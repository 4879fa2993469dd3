//! Answers whole, in pieces, and broken.

use proptest::prelude::*;

use super::super::value::WireValue;
use super::super::wire::tests::any_value;
use super::super::wire::{Binary, Compact, write_value};
use super::*;

const LIMIT: u32 = 2000;

fn message<W: WireProtocol>(
    framing: ReplyFraming,
    kind: MessageKind,
    sequence: i32,
    fields: &[(i16, WireValue)],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    W::write_head_before_sequence(&mut bytes, kind, b"add");
    W::write_sequence(&mut bytes, sequence);
    W::write_head_after_sequence(&mut bytes, b"add");
    write_value::<W>(&mut bytes, &WireValue::Struct(fields.to_vec()));
    match framing {
        ReplyFraming::Framed => [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat(),
        ReplyFraming::Unframed => bytes,
    }
}

/// What is read from bytes in pieces: the answers with all of their bytes that are kept, and the fault that ended it.
fn read<'a, W: WireProtocol>(
    framing: ReplyFraming,
    keeps: bool,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<(Reply, Vec<u8>)>, Option<Fault>) {
    let mut reader = ReplyReader::<W>::new(framing, LIMIT, keeps);
    let mut replies = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            match reader.receive(rest) {
                Ok((taken, reply)) => {
                    assert!((1..=rest.len()).contains(&taken), "took {taken} of {}", rest.len());
                    rest = &rest[taken..];
                    match reply {
                        Some(reply) => {
                            let (head, body) = reader.kept();
                            replies.push((reply, [head, body].concat()));
                        }
                        None => assert!(rest.is_empty()),
                    }
                }
                Err(fault) => return (replies, Some(fault)),
            }
        }
    }
    (replies, None)
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|two| &bytes[two[0]..two[1]]).collect()
}

fn the_same_however_it_is_cut<W: WireProtocol>(framing: ReplyFraming, bytes: &[u8], cuts: &[prop::sample::Index]) {
    for keeps in [false, true] {
        let whole = read::<W>(framing, keeps, [bytes]);
        assert_eq!(read::<W>(framing, keeps, pieces(bytes, cuts)), whole);
        assert_eq!(read::<W>(framing, keeps, bytes.chunks(1)), whole);
    }
}

fn comes_in<W: WireProtocol>(framing: ReplyFraming, value: &WireValue, cuts: &[prop::sample::Index]) {
    let one = message::<W>(framing, MessageKind::Reply, -5, &[(0, value.clone())]);
    let head = if framing == ReplyFraming::Framed { 4 } else { 0 };
    let bytes = [one.as_slice(), &one].concat();
    the_same_however_it_is_cut::<W>(framing, &bytes, cuts);
    if one.len() - head > LIMIT as usize {
        assert_eq!(read::<W>(framing, false, [bytes.as_slice()]), (Vec::new(), Some(Fault::Oversize)));
        return;
    }
    let reply = Reply { kind: MessageKind::Reply, sequence: -5, field: Some((0, value.wire_type())), fields: 1 };
    assert_eq!(read::<W>(framing, false, [bytes.as_slice()]), (vec![(reply, Vec::new()); 2], None));
    assert_eq!(read::<W>(framing, true, [bytes.as_slice()]), (vec![(reply, one[head..].to_vec()); 2], None));
}

proptest! {
    #[test]
    fn answers_come_in_any_pieces(value in any_value(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        for framing in [ReplyFraming::Framed, ReplyFraming::Unframed] {
            comes_in::<Binary>(framing, &value, &cuts);
            comes_in::<Compact>(framing, &value, &cuts);
        }
    }

    #[test]
    fn broken_answers_break_alike_in_any_pieces(
        value in any_value(),
        broken in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        for framing in [ReplyFraming::Framed, ReplyFraming::Unframed] {
            let mut binary = message::<Binary>(framing, MessageKind::Reply, 5, &[(0, value.clone())]);
            let at = broken.index(binary.len());
            binary[at] = byte;
            the_same_however_it_is_cut::<Binary>(framing, &binary, &cuts);
            let mut compact = message::<Compact>(framing, MessageKind::Reply, 5, &[(0, value.clone())]);
            let at = broken.index(compact.len());
            compact[at] = byte;
            the_same_however_it_is_cut::<Compact>(framing, &compact, &cuts);
        }
    }

    #[test]
    fn no_bytes_can_hurt(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for framing in [ReplyFraming::Framed, ReplyFraming::Unframed] {
            the_same_however_it_is_cut::<Binary>(framing, &bytes, &[]);
            the_same_however_it_is_cut::<Compact>(framing, &bytes, &[]);
        }
    }
}

#[test]
fn frames_end_with_their_messages() {
    let message = message::<Binary>(ReplyFraming::Unframed, MessageKind::Reply, 1, &[(0, WireValue::I32(7))]);
    let framed = |length: usize| [&(length as u32).to_be_bytes()[..], &message].concat();
    let fault = |bytes: &[u8]| match read::<Binary>(ReplyFraming::Framed, false, [bytes]).1 {
        Some(Fault::Malformed(malformed)) => malformed.0.into_owned(),
        other => format!("{other:?}"),
    };
    assert_eq!(fault(&framed(message.len())), "None");
    assert_eq!(fault(&framed(message.len() - 1)), "a frame that ends within its message");
    assert_eq!(fault(&framed(message.len() + 1)), "a frame that is longer than its message");
    assert_eq!(fault(b"\0\0\0\0"), "a frame that ends within its message");
    assert_eq!(fault(b"\xff\0\0\0"), "no frame: its length is negative");
    assert_eq!(fault(b"\0\0\x07\xd1"), "Some(Oversize)");
}

#[test]
fn lengths_that_lie_are_found_out_before_their_bytes_come() {
    let head = message::<Binary>(ReplyFraming::Unframed, MessageKind::Reply, 1, &[]);
    let head = &head[..head.len() - 1];
    for body in [
        b"\x0b\0\0\0\x10\0\0".as_slice(),
        b"\x0f\0\0\x0a\0\0\x01\0",
        b"\x0f\0\0\x0c\0\x10\0\0",
        b"\x0d\0\0\x0b\x0b\0\0\x04\0",
    ] {
        let bytes = [head, body].concat();
        assert_eq!(read::<Binary>(ReplyFraming::Unframed, false, [bytes.as_slice()]).1, Some(Fault::Oversize));
    }
    // A limit that is reached token by token.
    let bytes = [head, b"\x02\0\x01\0".repeat(600).as_slice()].concat();
    assert_eq!(read::<Binary>(ReplyFraming::Unframed, false, [bytes.as_slice()]).1, Some(Fault::Oversize));
}

#[test]
fn an_exceptions_words_are_kept_and_no_more() {
    let fields = [(1, WireValue::Bytes(b"why".to_vec())), (2, WireValue::I32(6))];
    let bytes = message::<Compact>(ReplyFraming::Framed, MessageKind::Exception, 1, &fields);
    let reply = message::<Compact>(ReplyFraming::Framed, MessageKind::Reply, 1, &[]);
    let (replies, fault) = read::<Compact>(ReplyFraming::Framed, false, [[bytes.clone(), reply].concat().as_slice()]);
    assert_eq!(fault, None);
    // Without its head: 4 bytes of frame, 3 of protocol, kind and sequence id, 4 of the name.
    assert_eq!((replies[0].1.as_slice(), replies[1].1.len()), (&bytes[11..], 0));
}

#[test]
fn nesting_has_a_limit() {
    let nested =
        |depth: usize| (1..depth).fold(WireValue::Struct(Vec::new()), |inner, _| WireValue::Struct(vec![(1, inner)]));
    let fault = |depth: usize| {
        let WireValue::Struct(fields) = nested(depth) else { panic!() };
        read::<Binary>(
            ReplyFraming::Unframed,
            false,
            [message::<Binary>(ReplyFraming::Unframed, MessageKind::Reply, 1, &fields).as_slice()],
        )
        .1
    };
    assert_eq!(fault(64), None);
    assert_eq!(fault(65), Some(Malformed::because("values nested more than 64 deep").into()));
}
