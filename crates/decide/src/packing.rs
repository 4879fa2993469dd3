//! Recordings and decisions as bytes, in results and in the store: [`bytes`], compressed (zlib, RFC 1950).

use std::io::{self, Read as _, Write as _};

use brunt_plan::plan::Plan;
use brunt_record::bytes::{self, Limits, Unreadable};
use brunt_record::recording::{Implausible, Recording};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most that bytes may be after decompression.
const MOST_UNPACKED: u64 = 1 << 30;

/// Bytes that are no recording or decision.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// Not compressed as it should be, or cut off.
    #[error("expected compressed data (zlib): {0}")]
    Compression(io::Error),
    /// Too much.
    #[error("it is over {most} bytes when it is decompressed")]
    TooLarge {
        /// The most that is read, in bytes.
        most: u64,
    },
    /// Not of the expected type.
    #[error(transparent)]
    Content(#[from] Unreadable),
    /// A recording that no run has.
    #[error(transparent)]
    Implausible(#[from] Implausible),
}

/// `content` as bytes.
///
/// # Errors
/// None: both writers are fallible in type.
pub fn pack(content: &impl Serialize) -> io::Result<Vec<u8>> {
    // The user waits for the prompt: more effort saves another tenth.
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(4));
    encoder.write_all(&bytes::to_bytes(content))?;
    encoder.finish()
}

/// The content of bytes that [`pack`] made.
///
/// # Errors
/// When they are something else, or too much.
pub fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, UnpackError> {
    Ok(bytes::from_bytes(&plain_of(bytes, MOST_UNPACKED)?)?)
}

/// The recording in bytes that [`pack`] made.
///
/// # Errors
/// As [`unpack`]; and when no run has such a recording.
pub fn unpack_recording(bytes: &[u8]) -> Result<Recording, UnpackError> {
    let plain = plain_of(bytes, MOST_UNPACKED)?;
    let run: Recording = bytes::from_bytes_within(&plain, &Limits::RECORDING)?;
    run.check()?;
    Ok(run)
}

/// The plan and the recording in bytes that [`pack`] made of both.
///
/// # Errors
/// As [`unpack_recording`].
pub fn unpack_run(bytes: &[u8]) -> Result<(Plan, Recording), UnpackError> {
    let (plan, run): (Plan, Recording) = unpack(bytes)?;
    run.check()?;
    Ok((plan, run))
}

/// Bytes after decompression, at most `most`.
fn plain_of(bytes: &[u8], most: u64) -> Result<Vec<u8>, UnpackError> {
    let mut plain = Vec::new();
    ZlibDecoder::new(bytes).take(most + 1).read_to_end(&mut plain).map_err(UnpackError::Compression)?;
    if plain.len() as u64 > most { Err(UnpackError::TooLarge { most }) } else { Ok(plain) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(content: &impl Serialize) -> String {
        unpack_recording(&pack(content).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let (plan, run) = brunt_judge::fixtures::run();
        assert_eq!(unpack_recording(&pack(&run).unwrap()).unwrap(), run);
        assert_eq!(unpack_run(&pack(&(&plan, &run)).unwrap()).unwrap(), (plan, run));
    }

    /// A few bytes can be a gigabyte of zeros.
    #[test]
    fn no_more_is_read_than_is_allowed() {
        let bytes = pack(&vec![0_u8; 5000]).unwrap();
        assert!(bytes.len() < 100 && plain_of(&bytes, 6000).is_ok());
        assert!(matches!(plain_of(&bytes, 4000), Err(UnpackError::TooLarge { most: 4000 })));
    }

    #[test]
    fn what_no_run_has_is_refused() {
        let (_, mut run) = brunt_judge::fixtures::run();
        assert!(error_of(&"nothing").contains("unexpected type string"), "{}", error_of(&"nothing"));
        run.measured_ns = u64::MAX;
        assert!(error_of(&run).contains("expected whole numbers up to"), "{}", error_of(&run));
        run.measured_ns = Limits::RECORDING.number;
        assert!(error_of(&run).contains("expected seconds in order within"), "{}", error_of(&run));
        let cut = pack(&run).unwrap();
        let cut = unpack_recording(cut.get(..cut.len() / 2).unwrap()).unwrap_err();
        assert!(matches!(cut, UnpackError::Compression(_)), "{cut}");
    }
}
