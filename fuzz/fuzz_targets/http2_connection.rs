//! What comes on a connection of HTTP/2, in whatever bytes and whatever pieces: nothing panics, every byte is accounted for, and how the
//! bytes are cut does not change what is heard. What is said may differ: a window is opened again when enough of it was read.
//!
//! The first byte of an input says how many streams are open and whether they have bodies, the second how large pieces are.

#![no_main]

use brunt_http2::frame::write_settings;
use brunt_http2::{Config, Connection, Event};
use libfuzzer_sys::fuzz_target;

/// What was heard, bodies byte by byte; what was wrong.
type Heard = (Vec<String>, Option<&'static str>);

fn heard(pieces: &[&[u8]], streams: u8, has_bodies: bool) -> Heard {
    let (mut connection, mut out) =
        (Connection::new(Config { stream_window: 100, connection_window: 65_535 }), Vec::new());
    connection.open(&mut out);
    let mut opening = Vec::new();
    write_settings(&[], &mut opening);
    connection.receive(&opening, &mut out).expect("it may begin so");
    for stream in 0..streams {
        connection.start(&[0x82, 0x84, 0x86], !has_bodies, stream % 5 == 4, stream, &mut out);
        if has_bodies {
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
                Event::Aside | Event::Opened => continue,
                Event::Data { position, bytes, end, .. } => {
                    heard.extend(bytes.iter().map(|byte| format!("{position}: {byte}")));
                    end.then_some(position)
                }
                Event::Head { position, end, .. } => {
                    let fields: Vec<_> =
                        connection.fields().iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
                    heard.push(format!("{event:?} {fields:?}"));
                    end.then_some(position)
                }
                Event::Trailers { position } | Event::Reset { position, .. } | Event::Malformed { position, .. } => {
                    heard.push(format!("{event:?}"));
                    Some(position)
                }
                Event::GoAway { unprocessed, .. } => {
                    heard.push(format!("{event:?}"));
                    assert_eq!(unprocessed, connection.len());
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
    (heard, None)
}

fuzz_target!(|input: &[u8]| {
    let [how, size, bytes @ ..] = input else { return };
    let (streams, has_bodies) = (how % 8, how & 8 != 0);
    let whole = heard(&[bytes], streams, has_bodies);
    for size in [usize::from(*size) + 1, 1] {
        let pieces: Vec<_> = bytes.chunks(size).collect();
        assert_eq!(heard(&pieces, streams, has_bodies), whole, "in pieces of {size}");
    }
});
