//! Control frames for a connection and its streams: SETTINGS, `WINDOW_UPDATE`, `RST_STREAM` and GOAWAY.

use super::{AT_ONCE_BYTES, Connection, Event, LONGEST_SAID, MOST_OWED_ACKS, MOST_WINDOW, Violation, protocol_error};
use crate::frame::{ErrorCode, Head, PAYLOAD_BYTES, flag, setting, write_settings_ack};
use crate::stream::Stream;

const OVERFLOW: Violation =
    Violation { code: ErrorCode::FLOW_CONTROL_ERROR, reason: "a flow-control window beyond 2^31 - 1" };

impl<T> Connection<T> {
    pub(super) fn settings(
        &mut self,
        head: &Head,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, Violation> {
        let wrong_size = Violation { code: ErrorCode::FRAME_SIZE_ERROR, reason: "SETTINGS of a wrong size" };
        if head.stream != 0 {
            return Err(protocol_error("SETTINGS on a stream"));
        }
        if head.has(flag::ACK) {
            return if payload.is_empty() { Ok(Event::Aside) } else { Err(wrong_size) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(wrong_size);
        }
        for [a, b, c, d, e, f] in settings {
            self.set(u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*c, *d, *e, *f]))?;
        }
        if self.is_stalled {
            self.owed_acks += 1;
            if self.owed_acks > MOST_OWED_ACKS {
                return Err(Violation {
                    code: ErrorCode::ENHANCE_YOUR_CALM,
                    reason: "more than 1,000 SETTINGS while the peer reads nothing",
                });
            }
        } else {
            write_settings_ack(out);
        }
        let first = !std::mem::replace(&mut self.is_open, true);
        Ok(if first { Event::Opened } else { Event::Aside })
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), Violation> {
        match name {
            setting::HEADER_TABLE_SIZE => self.encoder.limit_table(value as usize),
            setting::ENABLE_PUSH if value != 0 => return Err(protocol_error("a server that wants to be pushed to")),
            setting::MAX_CONCURRENT_STREAMS => self.peer.streams = value,
            setting::INITIAL_WINDOW_SIZE => {
                let window = i64::from(value);
                let by = window - self.peer.stream_window;
                let is_over = |stream: &Stream<T>| stream.window_out + by > MOST_WINDOW;
                if window > MOST_WINDOW || self.streams.iter().any(is_over) {
                    return Err(OVERFLOW);
                }
                self.streams.iter_mut().for_each(|stream| stream.window_out += by);
                self.peer.stream_window = window;
            }
            setting::MAX_FRAME_SIZE => {
                if !(PAYLOAD_BYTES as u32..1 << 24).contains(&value) {
                    return Err(protocol_error("SETTINGS_MAX_FRAME_SIZE out of its range"));
                }
                self.peer.payload = (value as usize).min(AT_ONCE_BYTES);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn window_update(
        &mut self,
        head: &Head,
        increment: u32,
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, Violation> {
        let by = i64::from(increment & 0x7fff_ffff);
        if head.stream == 0 {
            if by == 0 {
                return Err(protocol_error("WINDOW_UPDATE by 0"));
            }
            self.window_out += by;
            return if self.window_out > MOST_WINDOW { Err(OVERFLOW) } else { Ok(Event::Aside) };
        }
        let Some(position) = self.position(head.stream)? else { return Ok(Event::Aside) };
        let Some(stream) = self.streams.get_mut(position) else { return Ok(Event::Aside) };
        stream.window_out += by;
        let violation = match by {
            0 => protocol_error("WINDOW_UPDATE by 0"),
            _ if stream.window_out > MOST_WINDOW => OVERFLOW,
            _ => return Ok(Event::Aside),
        };
        Ok(self.violated(position, violation, out))
    }

    pub(super) fn rst_stream(&mut self, head: &Head, code: ErrorCode) -> Result<Event<'static>, Violation> {
        if head.stream == 0 {
            return Err(protocol_error("RST_STREAM without a stream"));
        }
        let Some(position) = self.position(head.stream)? else { return Ok(Event::Aside) };
        self.abandoned = self.abandoned.max(head.stream);
        if let Some(stream) = self.streams.get_mut(position) {
            stream.is_sent = true;
        }
        if let Some(count) = self.counters.resets.get_mut((code.0 as usize).min(ErrorCode::NAMED)) {
            *count += 1;
        }
        Ok(Event::Reset { position, code })
    }

    /// The peer takes no more streams, and has processed none after `last`. `debug` is what it says besides.
    pub(super) fn goaway(&mut self, last: u32, code: ErrorCode, debug: &[u8]) -> Event<'static> {
        self.counters.goaways += 1;
        self.is_leaving = true;
        let is_shown = debug.len() <= LONGEST_SAID && debug.iter().all(|byte| matches!(byte, b' '..=b'~'));
        // The words of an earlier one are not of this code.
        self.said = if is_shown { String::from_utf8_lossy(debug).into_owned() } else { String::new() };
        let unprocessed = self.streams.partition_point(|stream| stream.id <= last);
        for stream in self.streams.drain(unprocessed..) {
            self.abandoned = self.abandoned.max(stream.id);
            self.waiting -= usize::from(stream.outgoing.is_some());
        }
        Event::GoAway { code, unprocessed }
    }
}
