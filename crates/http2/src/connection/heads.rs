//! Incoming heads and trailers: assembles header blocks and applies them to their streams.

use super::{
    Connection, Continued, Event, MOST_BLOCK_BYTES, MOST_CONTINUATIONS, MOST_INTERIM, Violation, protocol_error,
};
use crate::frame::{ErrorCode, Head, PAYLOAD_BYTES, flag};
use crate::head::Meaning;

const CUT: Violation =
    Violation { code: ErrorCode::FRAME_SIZE_ERROR, reason: "HEADERS too short for their padding or priority" };

impl<T> Connection<T> {
    /// HEADERS: a head, or trailers.
    #[inline]
    pub(super) fn headers(
        &mut self,
        head: &Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, Violation> {
        if head.stream == 0 {
            return Err(protocol_error("HEADERS without a stream"));
        }
        let mut block = payload;
        let mut padding = 0;
        if head.has(flag::PADDED) {
            let (length, rest) = block.split_first().ok_or(CUT)?;
            (padding, block) = (usize::from(*length), rest);
        }
        if head.has(flag::PRIORITY) {
            block = block.get(5..).ok_or(CUT)?;
        }
        let length = block.len().checked_sub(padding).ok_or_else(|| protocol_error("more padding than payload"))?;
        let block = block.get(..length).unwrap_or(&[]);
        let end = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.fields_came(head.stream, block, end, out);
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.continued = Some(Continued { stream: head.stream, end, frames: 0 });
        Ok(Event::Aside)
    }

    #[cold]
    pub(super) fn continuation(
        &mut self,
        head: &Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, Violation> {
        let Some(continued) = &mut self.continued else { return Ok(Event::Aside) };
        continued.frames += 1;
        let Continued { stream, end, frames } = *continued;
        if frames > MOST_CONTINUATIONS || self.block.len() + payload.len() > MOST_BLOCK_BYTES {
            return Err(Violation {
                code: ErrorCode::ENHANCE_YOUR_CALM,
                reason: "a header block of more than 64 KiB or 64 CONTINUATION frames",
            });
        }
        self.block.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(Event::Aside);
        }
        self.continued = None;
        let mut block = std::mem::take(&mut self.block);
        let event = self.fields_came(stream, &block, end, out);
        block.clear();
        block.shrink_to(PAYLOAD_BYTES);
        self.block = block;
        event
    }

    /// Handles a complete header block.
    #[inline]
    fn fields_came(
        &mut self,
        id: u32,
        block: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, Violation> {
        // A block that nobody wants is read all the same, since it may change the table.
        let read =
            self.decoder.read(block).map_err(|reason| Violation { code: ErrorCode::COMPRESSION_ERROR, reason })?;
        let Some(meaning) = self.meanings.get_mut(read.place) else { return Ok(Event::Aside) };
        if !read.known {
            *meaning = Meaning::from_fields(self.decoder.fields());
        }
        let meaning = *meaning;
        let Some(position) = self.live_position(id)? else {
            self.count_idle()?;
            return Ok(Event::Aside);
        };
        self.idle_frames = 0;
        let Some(stream) = self.streams.get_mut(position) else { return Ok(Event::Aside) };
        let reason = match (meaning.malformed, meaning.status, stream.has_head) {
            (Some(reason), ..) => reason,
            (None, None, false) => "a head without :status",
            (None, Some(_), true) => "a second head",
            (None, None, true) if !end => "trailers that do not end the stream",
            (None, None, true) => {
                if stream.length_left.is_none_or(|left| left == 0) {
                    return Ok(Event::Trailers { position });
                }
                "a body of another length than its content-length"
            }
            (None, Some(101), _) => "status 101, which HTTP/2 has not",
            (None, Some(100..=199), false) => {
                stream.interim += 1;
                match stream.interim {
                    _ if end => "an interim answer that ends the stream",
                    ..=MOST_INTERIM => return Ok(Event::Aside),
                    _ => "more than 16 interim answers",
                }
            }
            (None, Some(status), false) => {
                stream.has_head = true;
                let bodiless = stream.bodiless || matches!(status, 204 | 304);
                stream.length_left = if bodiless { None } else { meaning.length };
                if !end || bodiless || meaning.length.is_none_or(|length| length == 0) {
                    return Ok(Event::Head { position, status, end });
                }
                "a body of another length than its content-length"
            }
        };
        Ok(self.malformed(position, reason, out))
    }
}
