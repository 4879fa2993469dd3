//! How a request says where its body ends (RFC 9112 §6).

use brunt_protocol::OptionsError;
use brunt_protocol::headers::Header;

use super::super::options::Version;

/// The most bytes of one chunk.
const MOST_CHUNK_BYTES: usize = 64 << 10;

/// What says where a request's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A Content-Length that brunt writes.
    Length,
    /// Chunks, as a Transfer-Encoding field of the user's says.
    Chunked,
    /// A Content-Length of the user's.
    Own,
}

impl Framing {
    /// The framing of requests with these header fields.
    ///
    /// # Errors
    /// When a Transfer-Encoding field does not say where the body ends, or HTTP/2 may be spoken, which has no such field.
    pub(crate) fn of(headers: &[Header], version: Version) -> Result<Self, OptionsError> {
        let field = |name: &str| headers.iter().rfind(|header| header.name().eq_ignore_ascii_case(name));
        let has_length = field("content-length").is_some();
        let Some(coding) = field("transfer-encoding") else {
            return Ok(if has_length { Self::Own } else { Self::Length });
        };
        check_coding(coding.value().as_written().as_bytes(), has_length, version)?;
        Ok(Self::Chunked)
    }
}

/// Checks that a request may have this Transfer-Encoding.
///
/// # Errors
/// Says why it cannot be sent.
pub(crate) fn check_coding(coding: &[u8], has_length: bool, version: Version) -> Result<(), OptionsError> {
    let last = coding.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
    let problem = if version != Version::One {
        "HTTP/2 has no chunks (RFC 9113, section 8.2.2): leave Transfer-Encoding out, or --http"
    } else if !last.eq_ignore_ascii_case(b"chunked") {
        "a request's last transfer coding is chunked (RFC 9112, section 6.3): Transfer-Encoding: chunked"
    } else if has_length {
        "a request has Content-Length or Transfer-Encoding, not both (RFC 9112, section 6.2)"
    } else {
        return Ok(());
    };
    Err(OptionsError(problem.to_owned()))
}

/// The pieces of a body in chunks (RFC 9112 §7.1), at least one each, with the last one.
pub(crate) fn in_chunks(pieces: &[&[u8]]) -> Vec<u8> {
    let length: usize = pieces.iter().map(|piece| piece.len() + 16).sum();
    let mut framed = Vec::with_capacity(length + length / MOST_CHUNK_BYTES * 10 + 16);
    for chunk in pieces.iter().flat_map(|piece| piece.chunks(MOST_CHUNK_BYTES)) {
        framed.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        framed.extend_from_slice(chunk);
        framed.extend_from_slice(b"\r\n");
    }
    framed.extend_from_slice(b"0\r\n\r\n");
    framed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunked::{Chunked, Decoded};

    fn framing(fields: &[(&str, &str)], version: Version) -> Result<Framing, String> {
        let headers: Vec<_> = fields.iter().map(|(name, value)| Header::new(*name, *value)).collect();
        Framing::of(&headers, version).map_err(|error| error.0)
    }

    #[test]
    fn a_field_of_the_users_decides() {
        let one = Version::One;
        assert_eq!(framing(&[("TE", "trailers")], one), Ok(Framing::Length));
        assert_eq!(framing(&[("content-length", "3")], one), Ok(Framing::Own));
        assert_eq!(framing(&[("TRANSFER-encoding", "gzip, Chunked")], one), Ok(Framing::Chunked));
        for (fields, version, expected) in [
            (&[("Transfer-Encoding", "gzip")][..], one, "last transfer coding"),
            (&[("Transfer-Encoding", "chunked"), ("Content-Length", "1")], one, "not both"),
            (&[("Transfer-Encoding", "chunked")], Version::Two, "HTTP/2 has no chunks"),
            (&[("Transfer-Encoding", "chunked")], Version::Auto, "HTTP/2 has no chunks"),
        ] {
            let error = framing(fields, version).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_body_in_chunks_is_read_back(length in 0_usize..200_000) {
            let body: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let framed = in_chunks(&[&body]);
            let mut read = Vec::new();
            let end = Chunked::new().receive(&framed, |data, _| { read.extend_from_slice(data); Ok(None) }).unwrap();
            prop_assert_eq!(end, (framed.len(), Decoded::Complete));
            prop_assert_eq!(read, body);
        }
    }
}
