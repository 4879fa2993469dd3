//! The position in a file that is being read.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bytes read from a file, and its size.
#[derive(Debug, Clone, Default)]
pub struct Position {
    /// The size in bytes; `None` where it is not known.
    size: Option<u64>,
    read: Arc<AtomicU64>,
}

impl Position {
    /// A position after `read` bytes.
    #[cfg(test)]
    pub(crate) fn at(size: Option<u64>, read: u64) -> Self {
        Self { size, read: Arc::new(AtomicU64::new(read)) }
    }

    /// The position at the beginning of a file, and a reader that moves it. The reader ends after `bytes`, if given.
    pub fn from_file(file: File, bytes: Option<u64>) -> (Self, impl Read + Send) {
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        let position = Self { size: bytes.or(size), read: Arc::default() };
        let read = Arc::clone(&position.read);
        (position, Counting { file, left: bytes.unwrap_or(u64::MAX), read })
    }

    /// Adds a further file to what is read. Returns a reader that moves the position.
    pub(crate) fn add_file(&mut self, file: File) -> impl Read + Send + use<> {
        let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        let is_first = Arc::strong_count(&self.read) == 1;
        self.size = if is_first { size } else { self.size.zip(size).map(|(one, other)| one + other) };
        Counting { file, left: u64::MAX, read: Arc::clone(&self.read) }
    }

    /// The numbers of read and of existing bytes, if some were not read.
    pub fn missing(&self) -> Option<(u64, u64)> {
        let read = self.read.load(Ordering::Relaxed);
        self.size.filter(|size| read < *size).map(|size| (read, size))
    }

    /// The share of the bytes that was read. `None` where none was read, or the size is not known.
    pub fn share(&self) -> Option<f64> {
        let (size, read) = (self.size.filter(|size| *size > 0)?, self.read.load(Ordering::Relaxed));
        (read > 0).then(|| (read as f64 / size as f64).min(1.0))
    }
}

struct Counting {
    file: File,
    /// The number of bytes that may still be read.
    left: u64,
    read: Arc<AtomicU64>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.file.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left -= read as u64;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
