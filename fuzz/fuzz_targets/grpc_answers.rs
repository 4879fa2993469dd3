//! The messages in gRPC's answers and their statuses, in whatever bytes and whatever pieces: nothing panics, how the bytes are cut
//! does not change what they mean, what is read at once and what is read in pieces are the same messages, and what is decompressed
//! keeps its limit.
//!
//! The first byte of an input says how large pieces are.

#![no_main]

use brunt_grpc::framing::{Fault, PrefixedReader, decompressed, messages, write_message};
use brunt_grpc::status;
use libfuzzer_sys::fuzz_target;

/// The longest message, so that the limit is met.
const LIMIT: u32 = 1000;

/// The messages, each with whether it is compressed, and what ended them.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<(bool, Vec<u8>)>, Option<Fault>) {
    let mut reader = PrefixedReader::new(LIMIT, true, Vec::new());
    let mut all = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            match reader.read(rest) {
                Ok((taken, is_whole)) => {
                    assert!((1..=rest.len()).contains(&taken), "took {taken} of {} bytes", rest.len());
                    rest = &rest[taken..];
                    if is_whole {
                        all.push((reader.is_compressed(), reader.message().unwrap_or_default().to_vec()));
                    }
                }
                Err(fault) => return (all, Some(fault)),
            }
        }
    }
    (all, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((size, bytes)) = input.split_first() else { return };
    let whole = read([bytes]);
    assert_eq!(whole, read(bytes.chunks(usize::from(*size).max(1))));
    let (read, fault) = whole;
    let at_once: Vec<_> = messages(bytes).take(read.len()).map(|(flag, message)| (flag, message.to_vec())).collect();
    assert_eq!(at_once, read);
    if fault.is_none() {
        let mut again = Vec::new();
        for (is_compressed, message) in &read {
            write_message(message, *is_compressed, &mut again);
        }
        assert!(bytes.starts_with(&again));
    }
    if let Ok(plain) = decompressed(bytes, LIMIT) {
        assert!(plain.len() <= LIMIT as usize);
    }
    let _ = (status::number(bytes), status::message(bytes), status::details(bytes));
});
