//! The frames of a WebSocket server, in whatever bytes and whatever pieces they come: nothing panics, every byte is
//! accounted for, and how they are cut does not change what they mean.
//!
//! The first eight bytes of an input decide how the rest is cut; with a `D` as the first, messages may be compressed, with
//! a `T` they are, and refer to each other.

#![no_main]

use brunt_fuzz::cut;
use brunt_websocket::{FrameReader, MOST_MESSAGE_BYTES, ReadStep};
use libfuzzer_sys::fuzz_target;

/// What a server said, and what was wrong with the rest.
#[derive(Debug, PartialEq, Eq)]
struct Reading {
    said: Vec<(char, Vec<u8>)>,
    wrong: Option<String>,
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, first: u8) -> Reading {
    let mut reader = FrameReader::default();
    if matches!(first, b'D' | b'T') {
        reader.accept_compressed(first == b'T');
    }
    let mut said = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let (taken, step) = match reader.receive(rest) {
                Ok(progress) => progress,
                Err(malformed) => return Reading { said, wrong: Some(malformed.0.into_owned()) },
            };
            assert!((1..=rest.len()).contains(&taken), "took {taken} of {} bytes", rest.len());
            rest = &rest[taken..];
            match step {
                ReadStep::More => {}
                ReadStep::Message { text, body } => {
                    assert!(body.len() <= MOST_MESSAGE_BYTES);
                    assert!(!text || std::str::from_utf8(body).is_ok());
                    said.push((if text { 't' } else { 'b' }, body.to_vec()));
                }
                ReadStep::Ping(payload) => {
                    assert!(payload.len() <= 125);
                    said.push(('?', payload.to_vec()));
                }
                ReadStep::Pong(_) => said.push(('!', Vec::new())),
                ReadStep::Close(close) => said.push(('.', format!("{:?} {}", close.code, close.reason).into_bytes())),
            }
        }
    }
    Reading { said, wrong: None }
}

fuzz_target!(|input: &[u8]| {
    let Some((seed, bytes)) = input.split_first_chunk() else { return };
    let (first, seed) = (seed[0], u64::from_le_bytes(*seed));
    let whole = read([bytes], first);
    for pieces in [cut(bytes, seed), bytes.chunks(1).collect()] {
        let sizes: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        let cut = read(pieces, first);
        assert_eq!(cut, whole, "cut into {sizes:?}");
    }
});
