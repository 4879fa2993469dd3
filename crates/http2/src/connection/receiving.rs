//! Receiving: frames in pieces of any size, and the data in them.

use super::{Connection, Event, Incoming, MOST_IDLE_FRAMES, Violation, protocol_error};
use crate::frame::{
    ErrorCode, HEAD_BYTES, Head, PAYLOAD_BYTES, flag, kind, write_goaway, write_pong, write_reset, write_window_update,
};

impl<T> Connection<T> {
    /// Takes bytes in pieces of any size. Returns how many it took, at least one, and what they meant. Bytes to send in
    /// return are appended to `out`.
    ///
    /// # Errors
    /// When they break a rule or a limit.
    pub fn receive<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<(usize, Event<'b>), Violation> {
        self.take_bytes(bytes, out).inspect_err(|violation| write_goaway(violation.code, out))
    }

    #[inline]
    fn take_bytes<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<(usize, Event<'b>), Violation> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let event = if self.incoming.is_some() {
                self.take_data(&mut rest, out)?
            } else if self.partial.is_empty() {
                self.take_frame(&mut rest, out)?
            } else {
                self.take_partial(&mut rest, out)?
            };
            if event != Event::Aside {
                return Ok((bytes.len() - rest.len(), event));
            }
        }
        Ok((bytes.len(), Event::Aside))
    }

    /// Takes a whole frame, or the available part of it.
    #[inline]
    fn take_frame<'b>(&mut self, rest: &mut &'b [u8], out: &mut Vec<u8>) -> Result<Event<'b>, Violation> {
        let Some(head) = Head::read(rest) else {
            self.check_beginning(rest)?;
            self.partial.extend_from_slice(rest);
            *rest = &[];
            return Ok(Event::Aside);
        };
        self.check_head(&head, rest)?;
        if head.kind == kind::DATA {
            *rest = rest.get(HEAD_BYTES..).unwrap_or(&[]);
            self.begin_data(&head)?;
            return self.take_data(rest, out);
        }
        let Some((frame, after)) = rest.split_at_checked(HEAD_BYTES + head.length) else {
            self.partial.extend_from_slice(rest);
            *rest = &[];
            return Ok(Event::Aside);
        };
        *rest = after;
        self.frame(&head, frame.get(HEAD_BYTES..).unwrap_or(&[]), out)
    }

    /// Takes the rest of a frame of which a part has come.
    #[cold]
    fn take_partial<'b>(&mut self, rest: &mut &'b [u8], out: &mut Vec<u8>) -> Result<Event<'b>, Violation> {
        let head = loop {
            let head = Head::read(&self.partial);
            let whole = HEAD_BYTES + head.map_or(0, |head| head.length);
            let missing = whole.saturating_sub(self.partial.len());
            if let Some(head) = head
                && (missing == 0 || head.kind == kind::DATA)
            {
                break head;
            }
            if rest.is_empty() {
                return Ok(Event::Aside);
            }
            let (next, after) = rest.split_at(missing.min(rest.len()));
            *rest = after;
            self.partial.extend_from_slice(next);
            match Head::read(&self.partial) {
                Some(head) => self.check_head(&head, &self.partial)?,
                None => self.check_beginning(&self.partial)?,
            }
        };
        let mut frame = std::mem::take(&mut self.partial);
        if head.kind == kind::DATA {
            self.begin_data(&head)?;
            // An empty one is complete already.
            return self.take_data(rest, out);
        }
        let event = self.frame(&head, frame.get(HEAD_BYTES..).unwrap_or(&[]), out)?;
        // No event of these frames holds any of their bytes.
        let event = match event {
            Event::Data { .. } | Event::Aside => Event::Aside,
            Event::Opened => Event::Opened,
            Event::Head { position, status, end } => Event::Head { position, status, end },
            Event::Trailers { position } => Event::Trailers { position },
            Event::Reset { position, code } => Event::Reset { position, code },
            Event::Malformed { position, reason } => Event::Malformed { position, reason },
            Event::GoAway { code, unprocessed } => Event::GoAway { code, unprocessed },
        };
        frame.clear();
        self.partial = frame;
        Ok(event)
    }

    /// Whether the first bytes can be HTTP/2 at all.
    #[cold]
    fn check_beginning(&self, bytes: &[u8]) -> Result<(), Violation> {
        let http1 = b"HTTP/1.";
        let known = bytes.len().min(http1.len());
        if !self.is_open && known > 3 && bytes.get(..known) == http1.get(..known) {
            return Err(Violation::HTTP_1);
        }
        Ok(())
    }

    /// Checks the rules for every frame. `bytes` begin with its head.
    #[inline]
    fn check_head(&self, head: &Head, bytes: &[u8]) -> Result<(), Violation> {
        // A peer that gives a connection up at once may say why before all else.
        if !self.is_open && head.kind != kind::GOAWAY && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            self.check_beginning(bytes)?;
            return Err(protocol_error("the first frame is not SETTINGS"));
        }
        if head.length > PAYLOAD_BYTES {
            return Err(Violation {
                code: ErrorCode::FRAME_SIZE_ERROR,
                reason: "a frame of more than the 16 KiB that were allowed",
            });
        }
        match self.continued {
            Some(continued) if head.kind != kind::CONTINUATION || head.stream != continued.stream => {
                Err(protocol_error("a header block is broken off by another frame"))
            }
            None if head.kind == kind::CONTINUATION => Err(protocol_error("CONTINUATION without a header block")),
            _ => Ok(()),
        }
    }

    /// A frame that brings no answer further.
    #[inline]
    pub(super) fn count_idle(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames > MOST_IDLE_FRAMES {
            return Err(Violation {
                code: ErrorCode::ENHANCE_YOUR_CALM,
                reason: "100,000 frames in a row (SETTINGS, PING and their like) that belong to no answer",
            });
        }
        Ok(())
    }

    /// The position of a stream that has not ended; `None` for one that has ended, for which late frames are allowed.
    #[inline]
    pub(super) fn position(&self, id: u32) -> Result<Option<usize>, Violation> {
        if let Some(first) = self.streams.front()
            && first.id == id
        {
            return Ok(Some(0));
        }
        match self.streams.binary_search_by(|stream| stream.id.cmp(&id)) {
            Ok(position) => Ok(Some(position)),
            Err(_) if id.is_multiple_of(2) || id >= self.next_id => {
                Err(protocol_error("a frame for a stream that was never opened"))
            }
            Err(_) => Ok(None),
        }
    }

    /// The same for frames that are not allowed once a stream has ended.
    #[inline]
    pub(super) fn live_position(&self, id: u32) -> Result<Option<usize>, Violation> {
        let position = self.position(id)?;
        if position.is_none() && id > self.abandoned {
            return Err(Violation {
                code: ErrorCode::STREAM_CLOSED,
                reason: "DATA or HEADERS on a stream that had ended",
            });
        }
        Ok(position)
    }

    /// A DATA frame begins.
    #[inline]
    fn begin_data(&mut self, head: &Head) -> Result<(), Violation> {
        if head.stream == 0 {
            return Err(protocol_error("DATA without a stream"));
        }
        let position = self.live_position(head.stream)?;
        let length = head.length as i64;
        self.window_in -= length;
        let overrun = self.window_in < 0
            || position.and_then(|at| self.streams.get_mut(at)).is_some_and(|stream| {
                stream.window_in -= length;
                stream.window_in < 0
            });
        if overrun {
            return Err(Violation {
                code: ErrorCode::FLOW_CONTROL_ERROR,
                reason: "more data than the flow-control window allowed",
            });
        }
        let is_padded = head.has(flag::PADDED);
        if is_padded && head.length == 0 {
            return Err(Violation { code: ErrorCode::FRAME_SIZE_ERROR, reason: "padding without a length" });
        }
        if head.length == 0 && !head.has(flag::END_STREAM) {
            self.count_idle()?;
        } else if position.is_some() {
            self.idle_frames = 0;
        }
        self.incoming = Some(Incoming {
            stream: position.map(|_| head.stream),
            is_padded,
            left: head.length,
            padding: 0,
            end: head.has(flag::END_STREAM),
        });
        Ok(())
    }

    /// Takes the available part of a DATA frame's payload.
    #[inline]
    fn take_data<'b>(&mut self, rest: &mut &'b [u8], out: &mut Vec<u8>) -> Result<Event<'b>, Violation> {
        let Some(mut incoming) = self.incoming.take() else { return Ok(Event::Aside) };
        if incoming.is_padded {
            let Some((length, after)) = rest.split_first() else {
                self.incoming = Some(incoming);
                return Ok(Event::Aside);
            };
            *rest = after;
            incoming.is_padded = false;
            incoming.padding = usize::from(*length);
            self.give_back(incoming.stream, 1, out);
            let Some(left) = (incoming.left - 1).checked_sub(incoming.padding) else {
                return Err(protocol_error("more padding than payload"));
            };
            incoming.left = left;
        }
        let (data, after) = rest.split_at(incoming.left.min(rest.len()));
        let (padding, after) = after.split_at(incoming.padding.min(after.len()));
        *rest = after;
        incoming.left -= data.len();
        incoming.padding -= padding.len();
        let is_whole = incoming.left == 0 && incoming.padding == 0;
        if !is_whole {
            self.incoming = Some(incoming);
        }
        let end = is_whole && incoming.end;
        let position = match incoming.stream {
            Some(id) => self.position(id)?,
            None => None,
        };
        let given = (data.len() + padding.len()) as u32;
        self.give_back(if end { None } else { incoming.stream }, given, out);
        let Some(position) = position else { return Ok(Event::Aside) };
        let Some(stream) = self.streams.get_mut(position) else { return Ok(Event::Aside) };
        if !stream.has_head {
            return Ok(self.malformed(position, "DATA before the head", out));
        }
        if let Some(left) = &mut stream.length_left {
            match left.checked_sub(data.len() as u64) {
                Some(less) if !end || less == 0 => *left = less,
                _ => return Ok(self.malformed(position, "a body of another length than its content-length", out)),
            }
        }
        if data.is_empty() && !end {
            return Ok(Event::Aside);
        }
        Ok(Event::Data { position, bytes: data, behind: padding.len(), ends_frame: incoming.left == 0, end })
    }

    /// `bytes` were taken: the peer may send as many more, and is told so now and then.
    #[inline]
    fn give_back(&mut self, stream: Option<u32>, bytes: u32, out: &mut Vec<u8>) {
        self.unacknowledged += bytes;
        if let Some(increment) = increment(&mut self.unacknowledged, self.config.connection_window) {
            self.window_in += i64::from(increment);
            write_window_update(0, increment, out);
        }
        let Some(id) = stream else { return };
        if let Ok(Some(position)) = self.position(id)
            && let Some(stream) = self.streams.get_mut(position)
        {
            stream.unacknowledged += bytes;
            if let Some(increment) = increment(&mut stream.unacknowledged, self.config.stream_window) {
                stream.window_in += i64::from(increment);
                write_window_update(id, increment, out);
            }
        }
    }

    /// Ends a stream whose peer has broken a rule of streams.
    pub(super) fn malformed(&mut self, position: usize, reason: &'static str, out: &mut Vec<u8>) -> Event<'static> {
        self.violated(position, protocol_error(reason), out)
    }

    /// Ends a stream for another error than a protocol error.
    #[cold]
    pub(super) fn violated(&mut self, position: usize, violation: Violation, out: &mut Vec<u8>) -> Event<'static> {
        let Violation { code, reason } = violation;
        if let Some(stream) = self.streams.get_mut(position) {
            write_reset(stream.id, code, out);
            self.abandoned = self.abandoned.max(stream.id);
            // Our side of it ends, too.
            stream.is_sent = true;
        }
        // The rest of a frame under way belongs to no stream.
        if let Some(incoming) = &mut self.incoming {
            incoming.stream = None;
        }
        Event::Malformed { position, reason }
    }

    /// Handles a complete frame other than DATA.
    #[inline]
    fn frame(&mut self, head: &Head, payload: &[u8], out: &mut Vec<u8>) -> Result<Event<'static>, Violation> {
        match head.kind {
            kind::HEADERS => self.headers(head, payload, out),
            kind::CONTINUATION => self.continuation(head, payload, out),
            _ => {
                self.count_idle()?;
                self.other_frame(head, payload, out)
            }
        }
    }

    fn other_frame(&mut self, head: &Head, payload: &[u8], out: &mut Vec<u8>) -> Result<Event<'static>, Violation> {
        match (head.kind, payload.len()) {
            (kind::SETTINGS, _) => self.settings(head, payload, out),
            (kind::WINDOW_UPDATE, 4) => self.window_update(head, number_at(payload, 0), out),
            (kind::RST_STREAM, 4) => self.rst_stream(head, ErrorCode(number_at(payload, 0))),
            (kind::PING, 8) if head.stream == 0 => {
                if let Some(payload) = payload.first_chunk()
                    && !head.has(flag::ACK)
                {
                    // While nothing can be sent, only the last of several is answered.
                    if self.is_stalled { self.owed_pong = Some(*payload) } else { write_pong(*payload, out) }
                }
                Ok(Event::Aside)
            }
            (kind::GOAWAY, 8..) if head.stream == 0 => {
                let (last, code) = (number_at(payload, 0) & 0x7fff_ffff, ErrorCode(number_at(payload, 4)));
                Ok(self.goaway(last, code, payload.get(8..).unwrap_or(&[])))
            }
            (kind::PING | kind::GOAWAY, _) if head.stream != 0 => Err(protocol_error("PING or GOAWAY on a stream")),
            (kind::PUSH_PROMISE, _) => Err(protocol_error("PUSH_PROMISE, which was not allowed")),
            (kind::PRIORITY, 5) if head.stream != 0 => Ok(Event::Aside),
            (kind::WINDOW_UPDATE | kind::RST_STREAM | kind::PING | kind::GOAWAY | kind::PRIORITY, _) => {
                Err(Violation { code: ErrorCode::FRAME_SIZE_ERROR, reason: "a frame of the wrong size for its kind" })
            }
            // Unknown frames are ignored (RFC 9113, section 5.5).
            _ => Ok(Event::Aside),
        }
    }
}

/// The number of four bytes at this place of a payload.
fn number_at(payload: &[u8], from: usize) -> u32 {
    payload.get(from..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_be_bytes)
}

/// By how much to open a window again: always a multiple of the same step, a little over half of the window. So the
/// peer's credit depends on how many bytes were read, and not on how they were cut.
#[inline]
fn increment(unacknowledged: &mut u32, window: u32) -> Option<u32> {
    let step = window / 2 + 1;
    if *unacknowledged < step {
        return None;
    }
    let increment = *unacknowledged - *unacknowledged % step;
    *unacknowledged -= increment;
    Some(increment)
}
