//! What comes on the streams of a connection of HTTP/3, in whatever bytes and whatever pieces: nothing panics, every byte is accounted for,
//! and how the bytes are cut changes neither what ends a connection nor, on one that goes on, what is heard.
//!
//! The first byte of an input says whose side it is and how many streams are open, the second how large pieces are. The rest are records
//! in a short form: a byte with the kind (3 bits), the stream (3 bits) and whether it is the last, then a length and so many bytes.

#![no_main]

use brunt_http3::{Http3Connection, Http3Event};
use brunt_quic::{Kind, Record};
use libfuzzer_sys::fuzz_target;

/// What was heard, bodies byte by byte; what was wrong.
type Heard = (Vec<String>, Option<&'static str>);

const STREAMS: [u64; 8] = [0, 4, 8, 12, 2, 3, 7, 11];

/// The records of an input.
fn records(mut input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [head, length, rest @ ..] = input {
        let stream = STREAMS[usize::from(head >> 3 & 7)];
        let (data, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        input = rest;
        match head & 7 {
            0 => Record::new(Kind::Open, stream, 0).write(&mut out),
            1 => Record::new(Kind::Reset, stream, 0x100 + u64::from(*length)).write(&mut out),
            2 => Record::new(Kind::Stop, stream, 0x100 + u64::from(*length)).write(&mut out),
            3 => Record::new(if head & 0x40 == 0 { Kind::Blocked } else { Kind::Writable }, stream, 0).write(&mut out),
            _ => {
                Record::data(stream, head & 0x40 != 0, data.len()).write(&mut out);
                out.extend_from_slice(data);
            }
        }
    }
    out
}

fn heard(pieces: &[&[u8]], is_server: bool, streams: u8) -> Heard {
    let mut connection: Http3Connection<u8> = if is_server { Http3Connection::server() } else { Http3Connection::client() };
    let mut out = Vec::new();
    connection.open(&mut out);
    connection.receive(&Record::new(Kind::Streams, 0, 100).bytes(), &mut out).expect("it may begin so");
    for stream in 0..if is_server { 0 } else { streams } {
        connection.start(&[0, 0], stream % 2 == 0, stream % 5 == 4, stream, &mut out);
        if stream % 2 != 0 {
            connection.send(usize::from(stream), &[7; 40_000], true, &mut out);
        }
    }
    let mut heard = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let (taken, event) = match connection.receive(rest, &mut out) {
                Ok(received) => received,
                Err(violation) => return (heard, Some(violation.reason)),
            };
            assert!((1..=rest.len()).contains(&taken), "took {taken} of {} bytes", rest.len());
            rest = &rest[taken..];
            let ended = match event {
                Http3Event::Aside => continue,
                Http3Event::Data { position, bytes, end, .. } => {
                    heard.extend(bytes.iter().map(|byte| format!("{position}: {byte}")));
                    end.then_some(position)
                }
                Http3Event::Request { position, end } | Http3Event::Head { position, end, .. } => {
                    let fields: Vec<_> = connection.fields().iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
                    heard.push(format!("{event:?} {fields:?}"));
                    (end && !is_server).then_some(position)
                }
                Http3Event::Trailers { position } | Http3Event::Reset { position, .. } | Http3Event::Malformed { position, .. } => {
                    heard.push(format!("{event:?}"));
                    Some(position)
                }
                Http3Event::Opened | Http3Event::Ready | Http3Event::Closed { .. } => continue,
                Http3Event::GoAway { unprocessed } => {
                    assert_eq!(unprocessed, connection.len());
                    heard.push(format!("{event:?}"));
                    None
                }
            };
            if let Some(position) = ended {
                heard.push(format!("{:?} ended", connection.take(position, &mut out)));
            }
        }
    }
    while connection.has_more() {
        connection.more(&mut out);
    }
    // Whatever was appended are whole records.
    let mut rest = out.as_slice();
    while let Some(record) = Record::read(rest) {
        rest = rest.get(brunt_quic::record::HEAD_BYTES + record.length()..).expect("a record is whole");
    }
    assert!(rest.is_empty());
    (heard, None)
}

fuzz_target!(|input: &[u8]| {
    let [how, size, rest @ ..] = input else { return };
    let (is_server, streams) = (how & 8 != 0, how % 5);
    let bytes = records(rest);
    let whole = heard(&[&bytes], is_server, streams);
    let is_malformed = whole.0.iter().any(|line| line.starts_with("Malformed"));
    for size in [usize::from(*size) + 1, 1] {
        let pieces: Vec<_> = bytes.chunks(size).collect();
        let cut = heard(&pieces, is_server, streams);
        assert_eq!(cut.1, whole.1, "in pieces of {size}");
        // Of a body that breaks a rule, more may have been heard in small pieces.
        if whole.1.is_none() && !is_malformed {
            assert_eq!(cut.0, whole.0, "in pieces of {size}");
        }
    }
});
