//! permessage-deflate (RFC 7692): compresses and decompresses messages.
//!
//! A client compresses each message by itself (it asks for `client_no_context_takeover`), so that a message sent a
//! million times is compressed once. A server's messages are decompressed with the context that it agreed to keep.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use brunt_protocol::Malformed;

/// The end of a compressed message, which is left out on the wire (section 7.2.1).
const TAIL: [u8; 4] = [0x00, 0x00, 0xFF, 0xFF];
/// The step by which the room for decompressed bytes grows, in bytes.
const CHUNK: usize = 16 * 1024;

/// Compresses a message without reference to earlier ones (section 7.2.1).
pub(super) fn compress(message: &[u8]) -> Vec<u8> {
    let mut deflate = Compress::new(Compression::default(), false);
    let mut out = Vec::with_capacity(message.len() / 2 + 64);
    loop {
        let taken = deflate.total_in() as usize;
        let rest = message.get(taken..).unwrap_or_default();
        let room = out.capacity() - out.len();
        // Compressing from memory into memory that grows cannot fail.
        let done = deflate.compress_vec(rest, &mut out, FlushCompress::Sync);
        let flushed = deflate.total_in() as usize == message.len() && out.capacity() > out.len();
        if done.is_err() || (flushed && room > 0) {
            break;
        }
        out.reserve(CHUNK);
    }
    if out.ends_with(&TAIL) {
        out.truncate(out.len() - TAIL.len());
    }
    // An empty message is one empty block (section 7.2.3.6).
    if out.is_empty() {
        out.push(0x00);
    }
    out
}

/// Decompresses the messages of one connection.
#[derive(Debug)]
pub(super) struct Inflater {
    inflate: Decompress,
    /// Whether messages may refer to earlier ones.
    takes_over: bool,
}

impl Inflater {
    /// An inflater. `takes_over`: whether the server keeps its context from message to message.
    pub(super) fn new(takes_over: bool) -> Self {
        Self { inflate: Decompress::new(false), takes_over }
    }

    /// Appends the decompressed message, of `limit` bytes at most (section 7.2.2).
    ///
    /// # Errors
    /// When the message is no DEFLATE stream, or longer than the limit.
    pub(super) fn message(&mut self, compressed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if !self.takes_over {
            // Resetting would keep the bytes that a wrong reference then finds.
            self.inflate = Decompress::new(false);
        }
        self.inflate_part(compressed, limit, out)?;
        self.inflate_part(&TAIL, limit, out)
    }

    fn inflate_part(&mut self, part: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut rest = part;
        loop {
            out.reserve(CHUNK.min(rest.len().saturating_mul(4).max(64)));
            let (taken_before, made_before) = (self.inflate.total_in(), out.len());
            let status = self
                .inflate
                .decompress_vec(rest, out, FlushDecompress::Sync)
                .map_err(|_| Malformed::because("a message that is not DEFLATE (RFC 7692, section 7.2.2)"))?;
            let taken = (self.inflate.total_in() - taken_before) as usize;
            rest = rest.get(taken..).unwrap_or_default();
            if out.len() > limit {
                return Err(Malformed::because("a compressed message that holds more than 16 MiB"));
            }
            if status == Status::StreamEnd {
                // A block marked as the last one: the next begins anew (section 7.2.3.4).
                self.inflate.reset(false);
            }
            let has_room = out.capacity() > out.len();
            if rest.is_empty() && has_room {
                return Ok(());
            }
            if taken == 0 && out.len() == made_before && has_room {
                return Err(Malformed::because("a message that is not DEFLATE (RFC 7692, section 7.2.2)"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn inflated(messages: &[&[u8]], takes_over: bool) -> Result<Vec<Vec<u8>>, Malformed> {
        let mut inflater = Inflater::new(takes_over);
        messages
            .iter()
            .map(|message| {
                let mut out = Vec::new();
                inflater.message(message, 1 << 20, &mut out).map(|()| out)
            })
            .collect()
    }

    #[test]
    fn the_examples_of_rfc_7692() {
        let hello = b"Hello".to_vec();
        // Section 7.2.3.1: one block.
        let one: &[u8] = &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(inflated(&[one], false), Ok(vec![hello.clone()]));
        // Section 7.2.3.2: the second message refers to the first.
        let shared: &[u8] = &[0xf2, 0x00, 0x11, 0x00, 0x00];
        assert_eq!(inflated(&[one, shared], true), Ok(vec![hello.clone(), hello.clone()]));
        assert_ne!(
            inflated(&[one, shared], false),
            Ok(vec![hello.clone(), hello.clone()]),
            "there is no first to refer to"
        );
        // Section 7.2.3.3: a block without compression.
        let stored: &[u8] = &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00];
        assert_eq!(inflated(&[stored], false), Ok(vec![hello.clone()]));
        // Section 7.2.3.4: a block with BFINAL.
        let last: &[u8] = &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
        assert_eq!(inflated(&[last, last], true), Ok(vec![hello.clone(), hello.clone()]));
        // Section 7.2.3.5: two blocks in one message.
        let two: &[u8] = &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(inflated(&[two], false), Ok(vec![hello]));
        // Section 7.2.3.6: an empty message.
        assert_eq!(inflated(&[&[0x00]], false), Ok(vec![Vec::new()]));
        assert_eq!(compress(b""), [0x00]);
        assert_eq!(compress(b"Hello"), one);
    }

    #[test]
    fn a_bomb_is_found_out_before_it_goes_off() {
        let bomb = compress(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        let mut out = Vec::new();
        let error = Inflater::new(false).message(&bomb, 1 << 20, &mut out).unwrap_err();
        assert!(error.0.contains("more than"), "{error}");
        assert!(out.capacity() < 4 << 20, "{}", out.capacity());
    }

    proptest! {
        #[test]
        fn what_is_compressed_comes_out_again(messages in prop::collection::vec(prop::collection::vec(0_u8..4, 0..40_000), 1..4)) {
            let compressed: Vec<_> = messages.iter().map(|message| compress(message)).collect();
            let parts: Vec<_> = compressed.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(inflated(&parts, false), Ok(messages.clone()));
            prop_assert_eq!(inflated(&parts, true), Ok(messages));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = inflated(&[&bytes, &bytes], true);
        }
    }
}
