//! The answers of HTTP/1.1, in whatever bytes and whatever pieces they come: nothing panics, and how they are cut
//! does not change what they mean.
//!
//! The first eight bytes of an input decide how the rest is cut; with an `H` as the first, it answers HEAD requests, and with `S`,
//! `L` or `C` its answers come as messages: server-sent events, lines or chunks.

#![no_main]

use brunt_fuzz::cut;
use brunt_http1::{Parser, ReadStep};
use brunt_protocol::messages::{Framing, MessageReader};
use libfuzzer_sys::fuzz_target;

/// What a parser says about a connection.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The connection may end here.
    Clean,
    /// It ended within an answer.
    Incomplete,
    /// The grammar or a limit is broken.
    Malformed(String),
}

/// What was read from one connection: answers, and messages by a status of 0 and their bytes; and how it ended.
type Reading = (Vec<(u16, bool, Vec<u8>)>, End);

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, head_request: bool, framing: Option<Framing>) -> Reading {
    let mut parser = Parser::default();
    if let Some(framing) = framing {
        parser = Parser::keeping();
        parser.cut_body(Some(Box::new(MessageReader::new(framing, Some((*b"end").into()), true))));
    }
    let mut answers = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let (taken, step) = match parser.receive(rest, head_request) {
                Ok(progress) => progress,
                Err(malformed) => return (answers, End::Malformed(malformed.0.into_owned())),
            };
            let least = usize::from(!matches!(step, ReadStep::Message { .. }));
            assert!((least..=rest.len()).contains(&taken), "took {taken} of {} bytes", rest.len());
            rest = &rest[taken..];
            match step {
                ReadStep::Done { status, reusable } => {
                    assert!((200..=999).contains(&status), "an answer with status {status}");
                    answers.push((status, reusable, Vec::new()));
                }
                ReadStep::EndedEarly { reusable } => answers.push((1, reusable, Vec::new())),
                ReadStep::Message { .. } => answers.push((0, true, parser.kept().1.to_vec())),
                ReadStep::More => assert!(rest.is_empty(), "more was asked for while {} bytes are left", rest.len()),
            }
        }
    }
    match parser.closed() {
        Some(ReadStep::Done { status, reusable }) => {
            answers.push((status, reusable, Vec::new()));
            (answers, End::Clean)
        }
        Some(ReadStep::EndedEarly { reusable }) => {
            answers.push((1, reusable, Vec::new()));
            (answers, End::Clean)
        }
        Some(_) => panic!("an answer that ends with the connection is not complete"),
        None if parser.is_between_answers() => (answers, End::Clean),
        None => (answers, End::Incomplete),
    }
}

/// Whether two readings of the same bytes agree.
///
/// A long head is judged once its end has come. Until then a parser that saw it in pieces may still wait where one that
/// saw it whole knows that it is broken, or too long; both refuse it, after the same answers.
fn agree(cut: &Reading, whole: &Reading) -> bool {
    cut.0 == whole.0
        && match (&cut.1, &whole.1) {
            (End::Malformed(one), End::Malformed(other)) if one != other => {
                [one, other].iter().any(|reason| reason.contains("64 KiB"))
            }
            (End::Incomplete, End::Malformed(_)) | (End::Malformed(_), End::Incomplete) => true,
            (one, other) => one == other,
        }
}

fuzz_target!(|input: &[u8]| {
    let Some((seed, bytes)) = input.split_first_chunk() else { return };
    let head_request = seed.starts_with(b"H");
    let framing = match seed.first() {
        Some(b'S') => Some(Framing::Sse),
        Some(b'L') => Some(Framing::Lines),
        Some(b'C') => Some(Framing::Chunks),
        _ => None,
    };
    let seed = u64::from_le_bytes(*seed);
    let whole = read([bytes], head_request, framing);
    for pieces in [cut(bytes, seed), bytes.chunks(1).collect()] {
        let sizes: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        let cut = read(pieces, head_request, framing);
        assert!(agree(&cut, &whole), "cut into {sizes:?}: {cut:?}; whole: {whole:?}");
    }
});
