//! What a WebSocket client owes to RFC 6455 and RFC 7692, section by section, through the same traits that any protocol
//! has: bytes from a server in, what they mean and what is sent back out. Every row is read whole and byte by byte.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod connection;
mod deflate;
mod frames;
mod handshake;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::content::Content;
use brunt_plan::plan::{Load, PLAN_VERSION, Plan, Sandbox, StopRule, Transport};
use brunt_plan::target::Url;
use brunt_protocol::source::Message;
use brunt_protocol::{Client, Opening, Prepared, Progress, Registry};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_websocket::WebSocket;
use brunt_websocket::options::Options;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::Outcome::{Broken, Closing, Echo, Mismatch, Nothing};

/// What bytes from the server come to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// Every call was answered by its echo, and nothing else happened.
    Echo,
    /// The message was another.
    Mismatch,
    /// Nothing ends the call.
    Nothing,
    /// The connection ends since this breaks the rules.
    Broken,
    /// The server closes, for this reason.
    Closing(&'static str),
}

fn plan(options: &Options) -> Plan {
    Plan {
        version: PLAN_VERSION,
        target: Url::parse("ws://127.0.0.1:8081/chat?room=1").unwrap().target,
        protocol: options.to_protocol(),
        script: None,
        scenarios: None,
        connections: 1.into(),
        workers: 1,
        load: Load::Closed {},
        stop: StopRule { duration_ns: Some(1), requests: None },
        warmup_ns: 0,
        timeout_ns: 1,
        connect_timeout_ns: 1,
        drain_ns: 0,
        seed: 1,
        reconnect: false,
        pipeline: 1,
        transport: Transport::default(),
        ok_status: OkStatus::default(),
        own_times: false,
        own: Vec::new(),
        thresholds: Vec::new(),
        guards: Vec::new(),
        guard_action: brunt_plan::threshold::GuardAction::Stop,
        watches: Vec::new(),
        max_error_rate: brunt_plan::plan::MAX_ERROR_RATE,
        max_less_ratio: brunt_plan::plan::MAX_LESS_RATIO,
        origin: brunt_plan::plan::Origin::default(),
        sandbox: Sandbox::default(),
        environment: brunt_plan::environment::Environment::default(),
    }
}

fn prepared(options: &Options) -> Arc<dyn Prepared> {
    let mut registry = Registry::default();
    registry.register(WebSocket);
    registry.named("ws").unwrap().0.prepare(&plan(options)).unwrap()
}

fn text(message: &str) -> Options {
    Options { message: Content(message.as_bytes().to_vec()), ..Options::default() }
}

/// The key of a handshake's request.
fn key(request: &str) -> &str {
    request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap()
}

fn accept(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

/// The fields that a right answer has; `more` are whole lines.
fn granting(key: &str, more: &str) -> String {
    let accept = accept(key);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{more}\r\n"
    )
}

/// Feeds bytes in pieces of so many; what they meant, and what was sent back.
fn feed(client: &mut dyn Client, bytes: &[u8], piece: usize) -> (Vec<Progress>, Vec<u8>) {
    let (mut all, mut out) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            match client.receive(rest, &mut out) {
                Ok((taken, progress)) => {
                    assert!((1..=rest.len()).contains(&taken));
                    rest = &rest[taken..];
                    all.push(progress);
                }
                Err(malformed) => {
                    all.push(Progress::Closing(format!("broken: {malformed}").into()));
                    return (all, out);
                }
            }
        }
    }
    (all, out)
}

/// A connection that was opened with these lines in the answer, and carries one call.
fn calling(prepared: &dyn Prepared, more: &str) -> Box<dyn Client> {
    let mut client = prepared.client(false);
    let mut request = Vec::new();
    assert_eq!(client.open(None, &mut request), Ok(Opening::Exchange));
    let request = String::from_utf8(request).unwrap();
    let (progress, _) = feed(client.as_mut(), granting(key(&request), more).as_bytes(), usize::MAX);
    assert_eq!(progress, [Progress::Opened]);
    let mut out = Vec::new();
    client.start(&Message::default(), &mut out);
    client
}

fn outcome(progress: &[Progress]) -> Outcome {
    let last = progress.iter().rfind(|progress| !matches!(progress, Progress::More | Progress::ControlFrame));
    match last {
        None => Nothing,
        Some(Progress::Answered(answer)) if answer.position == 0 && answer.reusable => Echo,
        Some(Progress::Failed(failed)) if failed.failure == Failure::Mismatch => Mismatch,
        Some(Progress::Closing(reason)) if reason.starts_with("broken: ") => Broken,
        Some(Progress::Closing(reason)) => Closing(Box::leak(reason.clone().into_owned().into_boxed_str())),
        other => panic!("{other:?}"),
    }
}

/// A frame as a server sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(length as u8),
        length @ 126..65_536 => {
            frame.push(126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(0x88, &[&code.to_be_bytes(), reason].concat())
}

/// Frames that a client masked: opcode and payload of each.
fn unmasked(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[1] & 0x80, 0x80, "a client masks (section 5.3)");
        let length = usize::from(bytes[1] & 0x7f);
        assert!(length < 126);
        let payload = bytes[6..6 + length].iter().zip(bytes[2..6].iter().cycle()).map(|(a, b)| a ^ b).collect();
        frames.push((bytes[0], payload));
        bytes = &bytes[6 + length..];
    }
    frames
}

#[track_caller]
fn rows(options: &Options, extension: &str, rows: &[(&str, Vec<u8>, Outcome)]) {
    let prepared = prepared(options);
    for (section, bytes, expected) in rows {
        for piece in [usize::MAX, 1, 2, 3, 7] {
            let mut client = calling(prepared.as_ref(), extension);
            let (progress, _) = feed(client.as_mut(), bytes, piece);
            assert_eq!(outcome(&progress), *expected, "{section}, in pieces of {piece}: {progress:?}");
        }
    }
}
