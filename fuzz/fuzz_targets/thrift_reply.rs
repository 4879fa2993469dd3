//! The answers of Thrift, in each protocol over each transport, in whatever bytes and whatever pieces they come: nothing
//! panics, how they are cut does not change what they mean, and what is well-formed can be read as a value and written
//! again.
//!
//! The first byte of an input chooses protocol and transport, the next eight decide how the rest is cut.

#![no_main]

use brunt_fuzz::cut;
use brunt_thrift::reply::{Fault, Reply, ReplyFraming, ReplyReader};
use brunt_thrift::value::{WireType, WireValue};
use brunt_thrift::wire::{Binary, Compact, WireProtocol, read_message, read_value, write_value};
use libfuzzer_sys::fuzz_target;

/// The most bytes of an answer, so that the limit is met.
const LIMIT: u32 = 1000;

/// The answers read from one connection, each as it came, and the fault that ended them.
type Reading = (Vec<(Reply, Vec<u8>)>, Option<Fault>);

fn read<'a, W: WireProtocol>(framing: ReplyFraming, pieces: impl IntoIterator<Item = &'a [u8]>) -> Reading {
    let mut reader = ReplyReader::<W>::new(framing, LIMIT, true);
    let mut replies = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            match reader.receive(rest) {
                Ok((taken, reply)) => {
                    assert!((1..=rest.len()).contains(&taken), "took {taken} of {} bytes", rest.len());
                    rest = &rest[taken..];
                    match reply {
                        Some(reply) => {
                            let (head, body) = reader.kept();
                            replies.push((reply, [head, body].concat()));
                        }
                        None => assert!(rest.is_empty(), "more was asked for while {} bytes are left", rest.len()),
                    }
                }
                Err(fault) => return (replies, Some(fault)),
            }
        }
    }
    (replies, None)
}

fn check<W: WireProtocol>(framing: ReplyFraming, bytes: &[u8], seed: u64) {
    let whole = read::<W>(framing, [bytes]);
    for pieces in [cut(bytes, seed), bytes.chunks(1).collect()] {
        let sizes: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(read::<W>(framing, pieces), whole, "cut into {sizes:?}");
    }
    for (reply, message) in &whole.0 {
        let (head, value) = read_message::<W>(message).expect("a well-formed answer is a message");
        assert_eq!((head.kind, head.sequence), (reply.kind, reply.sequence));
        let WireValue::Struct(fields) = &value else { panic!("a message that holds {value:?}") };
        assert_eq!(
            (fields.len(), fields.first().map(|(id, value)| (*id, value.wire_type()))),
            (reply.fields as usize, reply.field)
        );
        let mut written = Vec::new();
        write_value::<W>(&mut written, &value);
        let (again, taken) = read_value::<W>(&written, WireType::Struct).expect("what was written can be read");
        assert_eq!(taken, written.len());
        // Debug, since NaN is not equal to itself.
        assert_eq!(format!("{again:?}"), format!("{value:?}"));
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let Some((seed, bytes)) = rest.split_first_chunk() else { return };
    let seed = u64::from_le_bytes(*seed);
    let framing = if choice & 1 == 0 { ReplyFraming::Unframed } else { ReplyFraming::Framed };
    if choice & 2 == 0 {
        check::<Binary>(framing, bytes, seed);
    } else {
        check::<Compact>(framing, bytes, seed);
    }
});
