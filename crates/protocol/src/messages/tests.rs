//! Bodies cut into messages, in pieces of every size.

use proptest::prelude::*;

use super::reader::MARK;
use super::*;

/// The messages of a body that comes in these pieces, and whether the stream has ended.
fn read(reader: &mut MessageReader, pieces: &[&[u8]]) -> (Vec<KeptMessage>, bool) {
    let mut messages = Vec::new();
    reader.begin();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match reader.read(rest, false).unwrap() {
                Some(taken) => {
                    messages.push(reader.message().clone());
                    rest = &rest[taken..];
                }
                None => break,
            }
        }
    }
    (messages, reader.has_ended())
}

fn events(body: &[u8]) -> Vec<KeptMessage> {
    read(&mut MessageReader::new(Framing::Sse, None, true), &[body]).0
}

fn event(event: &str, data: &str, id: &str) -> KeptMessage {
    KeptMessage { event: event.into(), data: data.into(), id: id.into() }
}

/// The standard's own way, of a whole body: decode, split into lines, interpret line by line.
fn by_the_standard(body: &[u8]) -> Vec<KeptMessage> {
    let body = body.strip_prefix(MARK).unwrap_or(body);
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = body.iter().peekable();
    while let Some(&byte) = bytes.next() {
        if byte == b'\r' {
            bytes.next_if(|next| **next == b'\n');
        }
        if matches!(byte, b'\r' | b'\n') { lines.push(Vec::new()) } else { lines.last_mut().unwrap().push(byte) }
    }
    // A line without an end is discarded.
    lines.pop();
    let (mut messages, mut data, mut name, mut id) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                data.pop();
                messages.push(KeptMessage { event: name.clone(), data: data.clone(), id: id.clone() });
            }
            (data, name) = (Vec::new(), Vec::new());
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let value = colon.map_or(&[][..], |colon| &line[colon + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon.unwrap_or(line.len())] {
            b"data" => {
                data.extend_from_slice(value);
                data.push(b'\n');
            }
            b"event" => name = value.to_vec(),
            b"id" if !value.contains(&0) => id = value.to_vec(),
            _ => {}
        }
    }
    messages
}

#[test]
fn the_standards_examples_are_read() {
    assert_eq!(events(b"data: YHOO\ndata: +2\ndata: 10\n\n"), [event("", "YHOO\n+2\n10", "")]);
    let body = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n";
    assert_eq!(events(body), [event("", "first event", "1"), event("", "second event", "")]);
    assert_eq!(events(b"data\n\ndata\ndata\n\ndata:"), [event("", "", ""), event("", "\n", "")]);
    assert_eq!(events(b"data:test\n\ndata: test\n\n"), [event("", "test", ""), event("", "test", "")]);
}

#[test]
fn marks_comments_ends_and_odd_fields_are_no_messages() {
    assert_eq!(
        events(b"\xef\xbb\xbfevent: a\rdata: 1\r\r:\r\n\r\nevent: b\r\n\r\ndata: 2\r\n\r\n"),
        [event("a", "1", ""), event("", "2", "")]
    );
    assert_eq!(events(b"\xef\xbbdata: 1\n\ndatas: x\n\nretry: 10\n\nid: a\0b\n\ndata: 3\n\n"), [event("", "3", "")]);
    assert_eq!(events(b"id: 7\n\ndata: x\n\ndata: y\n\n"), [event("", "x", "7"), event("", "y", "7")]);
}

#[test]
fn lines_are_messages_but_for_empty_ones() {
    let mut reader = MessageReader::new(Framing::Lines, None, true);
    let (messages, _) = read(&mut reader, &[b"{\"a\":1}\n\n\r\nx\r", b"\nz\r", b"y\nrest"]);
    let data: Vec<_> = messages.iter().map(|message| String::from_utf8_lossy(&message.data).into_owned()).collect();
    assert_eq!(data, ["{\"a\":1}", "x", "z\ry"]);
}

#[test]
fn a_chunk_is_a_message() {
    let mut reader = MessageReader::new(Framing::Chunks, None, true);
    assert_eq!(reader.read(b"ab", false), Ok(None));
    assert_eq!(reader.read(b"c", true), Ok(Some(1)));
    assert_eq!(reader.message().data, b"abc");
    assert_eq!((reader.read(b"", true), reader.read(b"d", true)), (Ok(None), Ok(Some(1))));
    assert_eq!(reader.message().data, b"d");
}

#[test]
fn the_last_message_ends_the_stream_and_does_not_count() {
    for keep in [true, false] {
        let mut reader = MessageReader::new(Framing::Sse, Some((*b"[DONE]").into()), keep);
        let whole: &[u8] = b"data: [DONE\n\ndata: [DONE]]\n\ndata: [DONE]\n\n";
        let (messages, has_ended) = read(&mut reader, &[whole]);
        assert_eq!((messages.len(), has_ended), (2, true));
        assert!(!read(&mut reader, &[b"data: [DONE]\n", b": and then"]).1, "the next body is another");
        let mut lines = MessageReader::new(Framing::Lines, Some((*b"end").into()), keep);
        assert_eq!((read(&mut lines, &[b"a\nend\n"]).0.len(), lines.has_ended()), (1, true));
    }
    assert!(MessageReader::new(Framing::Sse, None, false).has_ended(), "nothing says how it is to end");
}

#[test]
fn a_message_without_end_is_refused_and_takes_no_memory() {
    for (framing, begin) in
        [(Framing::Sse, "data: "), (Framing::Sse, "id: "), (Framing::Lines, ""), (Framing::Chunks, "")]
    {
        let mut reader = MessageReader::new(framing, Some((*b"[DONE]").into()), false);
        assert_eq!(reader.read(begin.as_bytes(), false), Ok(None));
        let piece = vec![b'x'; 1 << 20];
        let refused = (0..20).find_map(|_| reader.read(&piece, false).err());
        assert_eq!(refused.map(|error| error.0.into_owned()).as_deref(), Some("a message of more than 16 MiB"));
        assert!(reader.message().data.capacity() < 64 && reader.id.capacity() < 64);
    }
    // What is thrown away need not end.
    let mut reader = MessageReader::new(Framing::Sse, None, true);
    let piece = vec![b':'; 1 << 20];
    assert!((0..20).all(|_| reader.read(&piece, false) == Ok(None)));
}

#[test]
fn options_come_from_flags_and_only_with_messages() {
    use crate::flags::FlagValue;

    let mut given = FlagValues::default();
    assert_eq!(MessageOptions::given(&given), Ok(None));
    given.push("stall-timeout", FlagValue::Text("1.5s".to_owned()));
    assert!(MessageOptions::given(&given).unwrap_err().0.contains("give --messages"));
    given.push("messages", FlagValue::Text("sse".to_owned()));
    let messages = MessageOptions::given(&given).unwrap().unwrap();
    assert_eq!((messages.framing, messages.started()), (Framing::Sse, Started::Streamed { stall_ns: 1_500_000_000 }));
    assert!(MessageOptions { stall_ns: Some(0), ..messages }.check().is_err());
    assert!(is_gap("0s").is_err() && is_gap("soon").is_err());
}

/// Bodies of what event streams are made of.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "data: x",
        "data",
        "data:",
        "event: e",
        "id: 1",
        "id",
        ": note",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "\r\n\r\n",
        " ",
        ":",
        "\0",
        "[DONE]",
        "retry: 5",
        "\u{feff}",
        "eventual: y",
        "data: ü",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn events_are_what_the_standard_says(body in bodies()) {
        prop_assert_eq!(events(&body), by_the_standard(&body));
    }

    #[test]
    fn any_bytes_are_what_the_standard_says(body in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(events(&body), by_the_standard(&body));
    }

    #[test]
    fn every_split_means_the_same(body in bodies(), framing in 0..2_usize, keep in any::<bool>()) {
        let framing = Framing::NAMED[framing].1;
        let mut reader = MessageReader::new(framing, Some((*b"[DONE]").into()), keep);
        let (whole, ended) = read(&mut reader, &[&body]);
        for cut in 0..=body.len() {
            let (messages, has_ended) = read(&mut reader, &[&body[..cut], &body[cut..]]);
            prop_assert_eq!(&messages, &whole);
            prop_assert_eq!(has_ended, ended);
        }
        let single: Vec<_> = body.chunks(1).collect();
        prop_assert_eq!(&read(&mut reader, &single).0, &whole);
    }

    #[test]
    fn as_many_are_read_without_keeping_them(body in bodies()) {
        let count = |keep| read(&mut MessageReader::new(Framing::Sse, Some((*b"x").into()), keep), &[&body]).0.len();
        prop_assert_eq!(count(true), count(false));
    }
}
