//! A run, or a decision, as bytes: its JSON, compressed (zlib, RFC 1950).

use std::io::{self, Read as _, Write as _};

use brunt_plan::plan::Plan;
use brunt_record::recording::Recording;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Limit on a run's JSON after decompression, in bytes.
const MOST_JSON: u64 = 4 << 30;

pub(super) fn pack(content: &impl Serialize) -> io::Result<Vec<u8>> {
    // Histograms compress well at any effort, and the user waits for the prompt.
    let mut encoder = io::BufWriter::with_capacity(1 << 16, ZlibEncoder::new(Vec::new(), Compression::fast()));
    serde_json::to_writer(&mut encoder, content)?;
    encoder.flush()?;
    encoder.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// A kept run: one object with the plan and the fields of the recording.
#[derive(Serialize)]
struct Run<'a> {
    plan: &'a Plan,
    #[serde(flatten)]
    run: &'a Recording,
}

/// The plan of a kept run.
#[derive(Deserialize)]
struct PackedPlan {
    plan: Plan,
}

pub(super) fn pack_run(plan: &Plan, run: &Recording) -> io::Result<Vec<u8>> {
    pack(&Run { plan, run })
}

/// Reads the bytes of [`pack_run`]. Plan and recording are read one after the other: `flatten` would read statuses,
/// which are numbers, as texts, since keys of JSON are texts.
pub(super) fn unpack_run(bytes: &[u8]) -> io::Result<(Plan, Recording)> {
    let PackedPlan { plan } = unpack(bytes)?;
    Ok((plan, unpack(bytes)?))
}

pub(super) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    // From memory, as every other reader of these types reads: for another source all of them would be compiled once more.
    let mut json = Vec::new();
    ZlibDecoder::new(bytes).take(MOST_JSON).read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}
