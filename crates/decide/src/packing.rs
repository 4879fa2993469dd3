//! Recordings and decisions as bytes, in results and in the store: `MessagePack` by names, compressed (zlib, RFC 1950).
//!
//! Within a version fields are only ever added; reading ignores fields it does not know.

use std::fmt;
use std::io::{self, Read as _, Write as _};

use brunt_plan::plan::Plan;
use brunt_record::recording::{Implausible, Recording};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The most that bytes may be after decompression.
const MOST_UNPACKED: u64 = 1 << 30;
/// The greatest whole number that is read: sums of a few stay within 64 bits. In nanoseconds these are 36 years.
const GREATEST: u64 = 1 << 60;

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
    /// Not `MessagePack`, or not of the expected type.
    #[error("{0}")]
    Content(String),
    /// A recording that no run has.
    #[error(transparent)]
    Implausible(#[from] Implausible),
}

/// `content` as bytes.
///
/// # Errors
/// None: both writers are fallible in type.
pub fn pack(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let plain = rmp_serde::to_vec_named(content).map_err(io::Error::other)?;
    // The user waits for the prompt: more effort saves another tenth.
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(4));
    encoder.write_all(&plain)?;
    encoder.finish()
}

/// The content of bytes that [`pack`] made.
///
/// # Errors
/// When they are something else, or too much.
pub fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, UnpackError> {
    content_of(&plain_of(bytes, MOST_UNPACKED)?)
}

/// The recording in bytes that [`pack`] made.
///
/// # Errors
/// As [`unpack`]; and when no run has such a recording.
pub fn unpack_recording(bytes: &[u8]) -> Result<Recording, UnpackError> {
    let plain = plain_of(bytes, MOST_UNPACKED)?;
    content_of::<Bounded>(&plain)?;
    let run: Recording = content_of(&plain)?;
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

fn content_of<T: DeserializeOwned>(plain: &[u8]) -> Result<T, UnpackError> {
    rmp_serde::from_slice(plain).map_err(|error| UnpackError::Content(error.to_string()))
}

/// Anything without a whole number above [`GREATEST`].
struct Bounded;

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Bounded {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number up to {GREATEST}")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self, E> {
        if number > GREATEST { Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)) } else { Ok(self) }
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
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
        assert!(error_of(&"nothing").contains("invalid type: string"), "{}", error_of(&"nothing"));
        run.measured_ns = u64::MAX;
        assert!(error_of(&run).contains("a whole number up to"), "{}", error_of(&run));
        run.measured_ns = GREATEST;
        assert!(error_of(&run).contains("expected seconds in order within"), "{}", error_of(&run));
        let cut = pack(&run).unwrap();
        let cut = unpack_recording(cut.get(..cut.len() / 2).unwrap()).unwrap_err();
        assert!(matches!(cut, UnpackError::Compression(_)), "{cut}");
    }
}
