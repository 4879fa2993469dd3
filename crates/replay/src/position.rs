//! How much of a file was read.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes of a file were read, of how many.
#[derive(Debug, Clone, Default)]
pub struct Position {
    /// How many there are; none where nobody knows.
    size: Option<u64>,
    read: Arc<AtomicU64>,
}

impl Position {
    /// After so many bytes.
    #[cfg(test)]
    pub(crate) fn at(size: Option<u64>, read: u64) -> Self {
        Self { size, read: Arc::new(AtomicU64::new(read)) }
    }

    /// The beginning of a file, and what counts as it is read.
    pub fn from_file(file: File) -> (Self, impl Read + Send) {
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        let position = Self { size, read: Arc::default() };
        let read = Arc::clone(&position.read);
        (position, Counting { file, read })
    }

    /// The share of its bytes that was read, where something was and their number is known.
    pub fn share(&self) -> Option<f64> {
        let (size, read) = (self.size.filter(|size| *size > 0)?, self.read.load(Ordering::Relaxed));
        (read > 0).then(|| (read as f64 / size as f64).min(1.0))
    }
}

struct Counting {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
