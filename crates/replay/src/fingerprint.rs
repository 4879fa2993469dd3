//! A fingerprint of a log, taken without reading all of it: two machines can tell by it that they read the same log.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use brunt_protocol::plan::replay::Fingerprint;

use crate::schedule::hash;

/// The bytes read at the beginning and at the end each.
const ENDS_BYTES: u64 = 64 << 10;
/// The number of blocks read between them, and their size in bytes.
const BLOCKS: u64 = 32;
const BLOCK_BYTES: u64 = 4 << 10;

/// Why a file is not the log for which the run was planned.
#[derive(Debug, thiserror::Error)]
pub enum FingerprintError {
    /// The log cannot be read.
    #[error("cannot read the log {path}: {source}")]
    Unreadable {
        /// The path of the log.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The log is a pipe, a device or a directory.
    #[error("the log {path} is not a regular file, so that others cannot read the same")]
    NoFile {
        /// The path of the log.
        path: String,
    },
    /// The log has fewer bytes than planned.
    #[error(
        "the log {path} has {got} bytes here, and {expected} where the run was planned: give all machines the same file"
    )]
    Shorter {
        /// The path of the log.
        path: String,
        /// Its size in bytes.
        got: u64,
        /// The planned size in bytes.
        expected: u64,
    },
    /// The log has other content.
    #[error("the log {path} is another one here than where the run was planned: give all machines the same file")]
    Other {
        /// The path of the log.
        path: String,
    },
}

/// Takes the fingerprint of a log as it is now.
///
/// # Errors
/// When the log is not a regular file, or cannot be read.
pub fn take(path: &Path) -> Result<Fingerprint, FingerprintError> {
    let (file, bytes) = opened(path)?;
    let digest = digest(file, bytes).map_err(|source| unreadable(path, source))?;
    Ok(Fingerprint { bytes, digest })
}

/// Checks that a log has this fingerprint. Bytes written behind it since are ignored.
///
/// # Errors
/// When it has another fingerprint, or cannot be read.
pub fn check(path: &Path, expected: &Fingerprint) -> Result<(), FingerprintError> {
    let (file, got) = opened(path)?;
    let shown = path.display().to_string();
    if got < expected.bytes {
        return Err(FingerprintError::Shorter { path: shown, got, expected: expected.bytes });
    }
    let digest = digest(file, expected.bytes).map_err(|source| unreadable(path, source))?;
    if digest == expected.digest { Ok(()) } else { Err(FingerprintError::Other { path: shown }) }
}

fn unreadable(path: &Path, source: io::Error) -> FingerprintError {
    FingerprintError::Unreadable { path: path.display().to_string(), source }
}

/// Opens a log. Returns its size, too.
fn opened(path: &Path) -> Result<(File, u64), FingerprintError> {
    let metadata = std::fs::metadata(path).map_err(|source| unreadable(path, source))?;
    // Opening a pipe would wait for its other end.
    if !metadata.is_file() {
        return Err(FingerprintError::NoFile { path: path.display().to_string() });
    }
    let file = File::open(path).map_err(|source| unreadable(path, source))?;
    Ok((file, metadata.len()))
}

fn digest(mut file: File, bytes: u64) -> io::Result<String> {
    let mut digest = bytes;
    let mut block = Vec::new();
    for (from, length) in blocks(bytes) {
        block.clear();
        file.seek(SeekFrom::Start(from))?;
        (&mut file).take(length).read_to_end(&mut block)?;
        digest = digest.rotate_left(7) ^ hash(&block);
    }
    Ok(format!("{digest:016x}"))
}

/// The offsets and lengths of the blocks of a file that are read.
fn blocks(bytes: u64) -> Vec<(u64, u64)> {
    if bytes <= 2 * ENDS_BYTES + BLOCKS * BLOCK_BYTES {
        return vec![(0, bytes)];
    }
    let between = bytes - 2 * ENDS_BYTES;
    let middle = (0..BLOCKS).map(|nth| (ENDS_BYTES + between / BLOCKS * nth, BLOCK_BYTES));
    std::iter::once((0, ENDS_BYTES)).chain(middle).chain([(bytes - ENDS_BYTES, ENDS_BYTES)]).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    struct Log(PathBuf);

    impl Log {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("brunt-fingerprint-{}-{name}", std::process::id()));
            fs::write(&path, bytes).unwrap();
            Self(path)
        }
    }

    impl Drop for Log {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn another_log_is_told_from_one_that_has_grown() {
        for size in [0_usize, 10, 300_000, 5_000_000] {
            let bytes: Vec<u8> = (0..size).map(|place| (place / 7 % 251) as u8).collect();
            let log = Log::new(&format!("{size}"), &bytes);
            let known = take(&log.0).unwrap();
            check(&log.0, &known).unwrap();
            fs::write(&log.0, [&bytes[..], b"one more line\n"].concat()).unwrap();
            check(&log.0, &known).unwrap();
            if size == 0 {
                continue;
            }
            fs::write(&log.0, &bytes[1..]).unwrap();
            assert!(matches!(check(&log.0, &known), Err(FingerprintError::Shorter { .. })), "{size}");
            for place in [0, size / 5, size - 1] {
                let mut other = bytes.clone();
                // Between the ends, only blocks of a file are read.
                let end = if place == size / 5 { size / 3 } else { place + 1 };
                other[place..end].iter_mut().for_each(|byte| *byte ^= 1);
                fs::write(&log.0, &other).unwrap();
                assert!(matches!(check(&log.0, &known), Err(FingerprintError::Other { .. })), "{size} {place}");
            }
        }
        let missing = Path::new("/nowhere/access.log");
        assert!(matches!(take(missing), Err(FingerprintError::Unreadable { .. })));
        assert!(matches!(take(&std::env::temp_dir()), Err(FingerprintError::NoFile { .. })));
    }
}
