//! A connection's frames in words, as `--once` shows them.

use brunt_http2::frame::PREFACE;
use brunt_http2::frame_text::FrameReader;
use brunt_protocol::{Direction, Narration, Narrator};

/// Both sides of a connection, which may speak HTTP/2.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    sent: FrameReader,
    received: FrameReader,
    /// Whether it is HTTP/2, once something was sent.
    is_http2: Option<bool>,
}

impl Narrator for Frames {
    fn narrate(&mut self, direction: Direction, bytes: &[u8]) -> Option<Vec<Narration>> {
        if !*self.is_http2.get_or_insert_with(|| bytes.starts_with(PREFACE)) {
            return None;
        }
        let reader = match direction {
            Direction::Sent => &mut self.sent,
            Direction::Received => &mut self.received,
        };
        Some(reader.take(bytes).into_iter().map(|frame| Narration { head: frame.head, body: frame.body }).collect())
    }
}

/// Both sides of a connection that speaks HTTP/3.
#[derive(Debug, Default)]
pub(crate) struct Records {
    sent: brunt_http3::frame_text::RecordReader,
    received: brunt_http3::frame_text::RecordReader,
}

impl Narrator for Records {
    fn narrate(&mut self, direction: Direction, bytes: &[u8]) -> Option<Vec<Narration>> {
        let reader = match direction {
            Direction::Sent => &mut self.sent,
            Direction::Received => &mut self.received,
        };
        Some(reader.take(bytes).into_iter().map(|frame| Narration { head: frame.head, body: frame.body }).collect())
    }
}
