//! What a client tells its meter of a message, and of an end: a few bytes in the place of an answer's body.

use crate::event::{Finish, TextKind, Usage};

/// Stands for a number that is not known.
const NONE: u32 = u32::MAX;

/// A message: an event that adds text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// The kind of text.
    pub kind: TextKind,
    /// Its bytes.
    pub bytes: u32,
    /// The answer's tokens up to here, if the server counts as it goes.
    pub output: Option<u32>,
    /// Whether it answers a turn after the first of its conversation.
    pub is_later: bool,
}

/// The bit of a message's first byte that says so.
const LATER: u8 = 4;
/// The bytes of an end before the answer's text.
const END_BYTES: usize = 17;

/// The end of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its tokens.
    pub usage: Usage,
    /// Why the model stopped.
    pub finish: Option<Finish>,
    /// Bytes of its text, if it came whole.
    pub bytes: u32,
}

fn number(of: Option<u32>) -> [u8; 4] {
    of.map_or(NONE, |n| n.min(NONE - 1)).to_le_bytes()
}

fn read(bytes: &[u8], place: usize) -> Option<u32> {
    let four = bytes.get(place..place + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(four)).filter(|n| *n != NONE)
}

/// Writes a message down.
pub fn write_message(out: &mut Vec<u8>, said: &Said) {
    out.clear();
    let kind = match said.kind {
        TextKind::Reasoning => 0,
        TextKind::Content => 1,
        TextKind::Tool => 2,
    };
    out.push(if said.is_later { kind | LATER } else { kind });
    out.extend_from_slice(&said.bytes.to_le_bytes());
    out.extend_from_slice(&number(said.output));
}

/// Reads a message.
pub fn read_message(bytes: &[u8]) -> Option<Said> {
    let first = *bytes.first()?;
    let kind = match first & !LATER {
        0 => TextKind::Reasoning,
        1 => TextKind::Content,
        _ => TextKind::Tool,
    };
    Some(Said { kind, bytes: read(bytes, 1)?, output: read(bytes, 5), is_later: first & LATER != 0 })
}

/// Writes an end down, with the answer's text where a later turn repeats it.
pub fn write_end(out: &mut Vec<u8>, usage: &Usage, finish: Option<Finish>, bytes: u32, reply: &str) {
    out.clear();
    out.push(match finish {
        None => 0,
        Some(Finish::Stop) => 1,
        Some(Finish::Length) => 2,
        Some(Finish::Tool) => 3,
        Some(Finish::Other) => 4,
    });
    for n in [usage.input, usage.output, usage.cached, Some(bytes)] {
        out.extend_from_slice(&number(n));
    }
    out.extend_from_slice(reply.as_bytes());
}

/// The text of the answer whose end this is.
pub fn reply(bytes: &[u8]) -> &str {
    bytes.get(END_BYTES..).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
}

/// Reads an end.
pub fn read_end(bytes: &[u8]) -> Ended {
    let finish = match bytes.first() {
        Some(1) => Some(Finish::Stop),
        Some(2) => Some(Finish::Length),
        Some(3) => Some(Finish::Tool),
        Some(4) => Some(Finish::Other),
        _ => None,
    };
    let usage = Usage { input: read(bytes, 1), output: read(bytes, 5), cached: read(bytes, 9) };
    Ended { usage, finish, bytes: read(bytes, 13).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        for (kind, output) in [(TextKind::Reasoning, None), (TextKind::Content, Some(0)), (TextKind::Tool, Some(9))] {
            for is_later in [false, true] {
                let said = Said { kind, bytes: 70_000, output, is_later };
                write_message(&mut bytes, &said);
                assert_eq!(read_message(&bytes), Some(said));
            }
        }
        for finish in [None, Some(Finish::Stop), Some(Finish::Length), Some(Finish::Tool), Some(Finish::Other)] {
            let usage = Usage { input: Some(3), output: None, cached: Some(0) };
            write_end(&mut bytes, &usage, finish, 5, "é");
            assert_eq!((read_end(&bytes), reply(&bytes)), (Ended { usage, finish, bytes: 5 }, "é"));
        }
        assert_eq!((read_message(&[]), read_end(&[])), (None, Ended::default()));
    }
}
