//! Frames in words, as `--once` shows them.

use std::fmt::Write as _;

use super::frame::{self, Opcode};
use super::message::Close;

/// The most frames that are shown in words.
const MOST_FRAMES: usize = 20;

/// The frames in words, one in a line; `None` if the bytes do not begin with a frame. Frames of both sides are read.
pub(super) fn of_frames(bytes: &[u8]) -> Option<String> {
    let (mut text, mut rest) = (String::new(), bytes);
    for _ in 0..MOST_FRAMES {
        let Some((words, behind)) = of_frame(rest) else { break };
        text.push_str(&words);
        text.push('\n');
        rest = behind;
    }
    (!text.is_empty()).then_some(text)
}

/// The first frame in words, and the bytes behind it.
fn of_frame(bytes: &[u8]) -> Option<(String, &[u8])> {
    let is_masked = bytes.get(1)? & 0x80 != 0;
    // Heads are read as a server's, whose frames are not masked.
    let mut head: Vec<u8> = bytes.iter().copied().take(frame::MOST_HEAD_BYTES).collect();
    *head.get_mut(1)? &= 0x7F;
    let (head, length) = frame::read_head(&head).ok()??;
    let rest = bytes.get(length..)?;
    let (key, rest) = if is_masked {
        let (key, rest) = rest.split_first_chunk::<4>()?;
        (u32::from_ne_bytes(*key), rest)
    } else {
        (0, rest)
    };
    let (payload, rest) = match usize::try_from(head.length) {
        Ok(length) => rest.split_at_checked(length).unwrap_or((rest, &[])),
        Err(_) => (rest, &[][..]),
    };
    let mut payload = payload.to_vec();
    frame::mask(&mut payload, key);
    let mut words = format!("{} frame", name(head.opcode));
    for (holds, what) in [
        (!head.is_final, "more to come"),
        (head.is_compressed, "compressed"),
        (is_masked, "masked"),
        ((payload.len() as u64) < head.length, "cut short"),
    ] {
        if holds {
            let _ = write!(words, ", {what}");
        }
    }
    let _ = write!(words, ", {} bytes", head.length);
    match head.opcode {
        Opcode::Close => {
            let (code, reason) = payload.split_at_checked(2).unwrap_or_default();
            let code = code.first_chunk::<2>().map(|code| u16::from_be_bytes(*code));
            let _ = write!(words, ": {}", Close { code, reason: &String::from_utf8_lossy(reason) }.words());
        }
        _ if head.is_compressed => {}
        _ => {
            if let Ok(text) = std::str::from_utf8(&payload)
                && !text.is_empty()
            {
                let _ = write!(words, ": {text}");
            }
        }
    }
    Some((words.trim_end().to_owned(), rest))
}

fn name(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::Continuation => "continuation",
        Opcode::Text => "text",
        Opcode::Binary => "binary",
        Opcode::Close => "close",
        Opcode::Ping => "ping",
        Opcode::Pong => "pong",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_are_put_into_words() {
        let mut sent = Vec::new();
        frame::write(Opcode::Text, false, b"hello", 0x0102_0304, &mut sent);
        frame::write(Opcode::Close, false, &[0x03, 0xE8], 7, &mut sent);
        let said = of_frames(&sent).unwrap();
        assert_eq!(said, "text frame, masked, 5 bytes: hello\nclose frame, masked, 2 bytes: 1000 normal closure\n");
        for (bytes, expected) in [
            (b"\x01\x02hi\x89\x00".as_slice(), Some("text frame, more to come, 2 bytes: hi\nping frame, 0 bytes\n")),
            (b"\xc1\x02hi", Some("text frame, compressed, 2 bytes\n")),
            (b"\x82\x05\xff\xfe", Some("binary frame, cut short, 5 bytes\n")),
            (b"\x88\x00", Some("close frame, 0 bytes: 1005 no status\n")),
            (b"\x83\x00", None),
            (b"\x81", None),
            (b"", None),
        ] {
            assert_eq!(of_frames(bytes).as_deref(), expected, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = of_frames(&bytes);
        }
    }
}
