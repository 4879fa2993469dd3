//! What a server answers to a WebSocket handshake, in whatever bytes and whatever pieces it comes, and the frames behind it:
//! nothing panics, and how it is cut does not change what it means.
//!
//! The first eight bytes of an input decide how the rest is cut; with a `D` as the first, permessage-deflate is offered, with
//! a `C` it is a user's conversation. A byte 1 as the value of Sec-WebSocket-Accept stands for the one that belongs to the key.

#![no_main]

use std::sync::Arc;

use brunt_fuzz::cut;
use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::target::Url;
use brunt_protocol::scenario::{ClientSetting, Encoded, Value};
use brunt_protocol::source::Message;
use brunt_protocol::{Client, Prepared, Progress, Protocol};
use brunt_websocket::{WebSocket, accept};
use libfuzzer_sys::fuzz_target;

/// Where the right value is put in, the first time.
const ACCEPT: &[u8] = b"Sec-WebSocket-Accept: \x01";

/// A connection on which a handshake has been sent, and what that said.
fn begun(first: u8) -> (Box<dyn Client>, Vec<u8>) {
    let mut out = Vec::new();
    if first == b'C' {
        let target = Url::parse("ws://a/").expect("a URL").target;
        let setting = ClientSetting::alone(Some(&target));
        let dialect = WebSocket.dialect().expect("there is one");
        let caller = dialect.client(&Value::Nil, &setting).expect("it needs no options");
        let mut encoded = Encoded::default();
        caller.encode(&[Value::text("connect")], &mut encoded).expect("a connect");
        let mut client = caller.connection();
        client.start(&Message { bytes: &encoded.bytes, hint: encoded.hint, ..Message::default() }, &mut out);
        return (client, out);
    }
    let prepared: Arc<dyn Prepared> = WebSocket.prepare(&plan(first == b'D')).expect("a plan");
    let mut client = prepared.client(false);
    client.open(None, &mut out).expect("an opening");
    (client, out)
}

fn plan(deflate: bool) -> Plan {
    let options = serde_json::json!({ "deflate": deflate, "subprotocols": ["chat"] });
    let target = Url::parse("ws://a/").expect("a URL").target;
    Plan::of_calls(target, ProtocolOptions::new(options.clone(), options))
}

/// What it meant, without how often more was asked for.
fn read(bytes: &[u8], first: u8, cut: impl for<'a> Fn(&'a [u8]) -> Vec<&'a [u8]>) -> Vec<String> {
    let (mut client, request) = begun(first);
    let text = String::from_utf8_lossy(&request);
    let key = text.split("Sec-WebSocket-Key: ").nth(1).and_then(|rest| rest.lines().next()).expect("a key");
    let accept = accept(key);
    // Only there: what is by chance must not stand where it could mean something else.
    let place = bytes.windows(ACCEPT.len()).position(|found| found == ACCEPT).map(|at| at + ACCEPT.len() - 1);
    let (before, after) = bytes.split_at(place.unwrap_or(bytes.len()));
    let said = match after.split_first() {
        Some((_, after)) => [before, accept.as_bytes(), after].concat(),
        None => bytes.to_vec(),
    };
    let mut meant = Vec::new();
    for piece in cut(&said) {
        let mut rest = piece;
        while !rest.is_empty() {
            match client.receive(rest, &mut Vec::new()) {
                Ok((taken, progress)) => {
                    assert!((1..=rest.len()).contains(&taken), "took {taken} of {} bytes", rest.len());
                    rest = &rest[taken..];
                    let over = matches!(progress, Progress::Closing(_) | Progress::Failed(_))
                        || matches!(&progress, Progress::Answered(answer) if !answer.reusable);
                    if !matches!(progress, Progress::More | Progress::ControlFrame) {
                        meant.push(format!("{progress:?}"));
                    }
                    if over {
                        return meant;
                    }
                }
                Err(malformed) => {
                    meant.push(malformed.0.into_owned());
                    return meant;
                }
            }
        }
    }
    meant
}

fuzz_target!(|input: &[u8]| {
    let Some((seed, bytes)) = input.split_first_chunk() else { return };
    let (first, seed) = (seed[0], u64::from_le_bytes(*seed));
    let whole = read(bytes, first, |bytes| vec![bytes]);
    assert_eq!(read(bytes, first, |bytes| cut(bytes, seed)), whole, "cut by {seed}");
    assert_eq!(read(bytes, first, |bytes| bytes.chunks(1).collect()), whole, "byte by byte");
});
