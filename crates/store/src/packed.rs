//! A run, or a decision, as bytes: its JSON, compressed (zlib, RFC 1950).

use std::io::{self, Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most that a run may become when it is read, in bytes.
const MOST_JSON: u64 = 4 << 30;

pub(super) fn pack(content: &impl Serialize) -> io::Result<Vec<u8>> {
    // Histograms compress well at any effort, and the user waits for the prompt.
    let mut encoder = io::BufWriter::with_capacity(1 << 16, ZlibEncoder::new(Vec::new(), Compression::fast()));
    serde_json::to_writer(&mut encoder, content)?;
    encoder.flush()?;
    encoder.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

pub(super) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    let json = io::BufReader::with_capacity(1 << 16, ZlibDecoder::new(bytes).take(MOST_JSON));
    Ok(serde_json::from_reader(json)?)
}
