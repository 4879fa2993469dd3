//! A log's bytes: a file, compressed or not, read line by line within bounds.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::format::MOST_LINE_BYTES;
use crate::position::Position;

const BUFFER_BYTES: usize = 128 << 10;

/// The compression of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// No compression.
    None,
    /// gzip, of one member or several.
    Gzip,
    /// Zstandard, of one frame or several.
    Zstd,
}

/// The compression of a log, recognised by its first bytes.
pub fn packing(first: &[u8]) -> Packing {
    match first {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
        _ => Packing::None,
    }
}

/// The bytes of a log as they are read.
pub type Bytes = Box<dyn BufRead + Send>;

/// Opens a log, or its first `bytes`; `-` is standard input. The position tells how much of it was read.
///
/// # Errors
/// When it cannot be read.
pub fn open(path: &Path, bytes: Option<u64>) -> io::Result<(Bytes, Position)> {
    if path.as_os_str() == "-" {
        return Ok((unpacked(Box::new(io::stdin()))?, Position::default()));
    }
    let (position, file) = Position::from_file(File::open(path)?, bytes);
    Ok((unpacked(Box::new(file))?, position))
}

/// Unpacks bytes that may be packed.
///
/// # Errors
/// When they cannot be read.
pub fn unpacked(mut inner: Box<dyn Read + Send>) -> io::Result<Bytes> {
    let mut first = [0; 4];
    let mut filled = 0;
    while let Some(rest) = first.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match inner.read(rest)? {
            0 => break,
            read => filled += read,
        }
    }
    let first = first.get(..filled).unwrap_or_default().to_vec();
    let packing = packing(&first);
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(first).chain(inner));
    Ok(match packing {
        Packing::None => Box::new(whole),
        Packing::Gzip => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole))),
        Packing::Zstd => {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, Frames { state: Frame::Between(Box::new(whole)) }))
        }
    })
}

type Stored = Box<dyn BufRead + Send>;

/// The frames of a Zstandard stream, one after the other (RFC 8878 §3).
struct Frames {
    state: Frame,
}

enum Frame {
    Between(Stored),
    Within(Box<FrameDecoder>, Stored),
    Over,
}

fn broken(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, Frame::Over) {
                Frame::Over => return Ok(0),
                Frame::Within(mut decoder, mut stored) => {
                    while decoder.can_collect() < buffer.len() && !decoder.is_finished() {
                        let missing = buffer.len() - decoder.can_collect();
                        decoder
                            .decode_blocks(&mut stored, BlockDecodingStrategy::UptoBytes(missing))
                            .map_err(broken)?;
                    }
                    let read = decoder.read(buffer)?;
                    if read > 0 || buffer.is_empty() {
                        self.state = Frame::Within(decoder, stored);
                        return Ok(read);
                    }
                    self.state = Frame::Between(stored);
                }
                Frame::Between(mut stored) => {
                    if stored.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let mut decoder = Box::new(FrameDecoder::new());
                    match decoder.init(&mut stored) {
                        Ok(()) => self.state = Frame::Within(decoder, stored),
                        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                            length,
                            ..
                        })) => {
                            io::copy(&mut (&mut stored).take(length.into()), &mut io::sink())?;
                            self.state = Frame::Between(stored);
                        }
                        Err(error) => return Err(broken(error)),
                    }
                }
            }
        }
    }
}

/// Lines within bounded memory: none takes more than the longest line may have.
pub struct LogLines {
    bytes: Bytes,
    line: Vec<u8>,
}

impl LogLines {
    /// The lines of `bytes`.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, line: Vec::new() }
    }

    /// The next line without its end; `None` at the end. A line that is too long is cut one byte beyond the limit, so that its
    /// reader sees that it is.
    ///
    /// # Errors
    /// When the bytes cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let read = (&mut self.bytes).take(MOST_LINE_BYTES as u64 + 1).read_until(b'\n', &mut self.line)?;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if read > MOST_LINE_BYTES {
            self.bytes.skip_until(b'\n')?;
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok((read > 0).then_some(self.line.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    /// Hands its bytes out one by one, as a pipe may.
    struct Trickle(Cursor<Vec<u8>>);

    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(1);
            self.0.read(&mut buffer[..most])
        }
    }

    fn lines(bytes: Vec<u8>) -> io::Result<Vec<Vec<u8>>> {
        lines_of(Box::new(Cursor::new(bytes)))
    }

    fn lines_of(bytes: Box<dyn Read + Send>) -> io::Result<Vec<Vec<u8>>> {
        let mut lines = LogLines::new(unpacked(bytes)?);
        let mut all = Vec::new();
        while let Some(line) = lines.next_line()? {
            all.push(line.to_vec());
        }
        Ok(all)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Uncompressed)
    }

    #[test]
    fn packed_logs_are_read_as_they_are() {
        let expected: Vec<Vec<u8>> = vec![b"one".to_vec(), b"two".to_vec(), b"three".to_vec()];
        assert_eq!(lines(b"one\r\ntwo\nthree".to_vec()).unwrap(), expected);
        // Several members, as in rotated logs that were concatenated.
        assert_eq!(lines([gzip(b"one\ntw"), gzip(b"o\nthree\n")].concat()).unwrap(), expected);
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        assert_eq!(lines([zstd(b"one\ntw"), skipped.to_vec(), zstd(b"o\nthree")].concat()).unwrap(), expected);
        assert_eq!(lines(Vec::new()).unwrap(), Vec::<Vec<u8>>::new());
        for bytes in [b"one\ntwo\nthree".to_vec(), gzip(b"one\ntwo\nthree\n"), zstd(b"one\ntwo\nthree")] {
            assert_eq!(lines_of(Box::new(Trickle(Cursor::new(bytes)))).unwrap(), expected);
        }
    }

    #[test]
    fn a_log_that_was_cut_is_an_error_at_its_end() {
        let whole = gzip(&b"a line\n".repeat(1000));
        let mut cut = LogLines::new(unpacked(Box::new(Cursor::new(whole[..whole.len() - 9].to_vec()))).unwrap());
        while let Ok(line) = cut.next_line() {
            assert!(line.is_some(), "the end is not reached");
        }
    }

    #[test]
    fn a_line_of_ten_megabytes_takes_one() {
        let text = [b"a\n".to_vec(), vec![b'x'; 10 << 20], b"\nb\n".to_vec()].concat();
        let all = lines(text).unwrap();
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [1, MOST_LINE_BYTES + 1, 1]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), packed in 0..3_usize) {
            let head: &[u8] = [&b""[..], &[0x1f, 0x8b, 8][..], &[0x28, 0xb5, 0x2f, 0xfd][..]][packed];
            let _ = lines([head, &bytes].concat());
        }
    }
}
