//! When a connection can be used for a further call, and when it has to end.

use brunt_plan::target::Url;
use brunt_protocol::scenario::{Caller, ClientSetting, Encoded, Value};
use brunt_protocol::source::Message;
use brunt_protocol::{Client, Progress, Protocol as _};
use brunt_record::outcome::Failure;
use brunt_websocket::WebSocket;

use crate::{calling, feed, granting, key, plan, prepared, text, unmasked};

/// The frame of a text message from a server.
fn said(text: &str) -> Vec<u8> {
    [&[0x81, text.len() as u8], text.as_bytes()].concat()
}

/// A message that is not the echo fails its call; the echo that is still to come must not be taken for the next call's.
#[test]
fn an_echo_that_is_owed_is_never_the_next_calls() {
    let prepared = prepared(&text("hello"));
    let mut client = calling(&*prepared, "");
    let (progress, _) = feed(client.as_mut(), &said("news"), usize::MAX);
    let [Progress::Failed(failed)] = progress.as_slice() else { panic!("{progress:?}") };
    assert_eq!((failed.failure, failed.reusable), (Failure::Mismatch, false), "the connection ends");
}

/// RFC 6455, section 5.5.3: only the most recent ping needs an answer.
#[test]
fn pongs_for_a_peer_that_reads_nothing_do_not_pile_up() {
    let prepared = prepared(&text("hello"));
    let mut client = calling(&*prepared, "");
    let ping = |payload: &[u8]| [&[0x89, payload.len() as u8], payload].concat();
    let (_, out) = feed(client.as_mut(), &ping(b"first"), usize::MAX);
    assert_eq!(unmasked(&out), [(0x8a, b"first".to_vec())]);
    client.stalled();
    for number in 0..10_000_u32 {
        let (progress, out) = feed(client.as_mut(), &ping(&number.to_be_bytes()), usize::MAX);
        assert_eq!((progress.as_slice(), out.as_slice()), ([Progress::ControlFrame].as_slice(), [].as_slice()));
    }
    let mut out = Vec::new();
    client.resumed(&mut out);
    assert_eq!(unmasked(&out), [(0x8a, 9_999_u32.to_be_bytes().to_vec())]);
    let (_, out) = feed(client.as_mut(), &ping(b"later"), usize::MAX);
    assert_eq!(unmasked(&out), [(0x8a, b"later".to_vec())]);
    // After a goodbye there is nothing to say.
    client.stalled();
    feed(client.as_mut(), &ping(b"last"), usize::MAX);
    client.close(&mut Vec::new());
    let mut out = Vec::new();
    client.resumed(&mut out);
    assert!(out.is_empty(), "{out:?}");
}

/// With a connection for each call, a server that hangs up rather than answer the Close frame has said goodbye, too: the
/// same for a flood and for a user.
#[test]
fn hanging_up_answers_a_close() {
    let mut plan = plan(&text("hello"));
    plan.reconnect = true;
    let prepared = WebSocket.prepare(&plan).unwrap();
    let mut flood = calling(&*prepared, "");
    let (progress, out) = feed(flood.as_mut(), &said("hello"), usize::MAX);
    assert_eq!(progress, [Progress::More]);
    assert_eq!(unmasked(&out), [(0x88, 1000_u16.to_be_bytes().to_vec())]);
    let mut user = conversing();
    call(user.as_mut(), &[Value::text("close")]);
    for client in [&mut flood, &mut user] {
        let answer = client.closed().unwrap().unwrap();
        assert!(!answer.reusable && answer.position == 0);
    }
}

/// The caller of `brunt.ws "ws://127.0.0.1/"`.
fn caller() -> Box<dyn Caller> {
    let base = Url::parse("ws://127.0.0.1/").unwrap().target;
    let setting = ClientSetting::alone(Some(&base));
    WebSocket.dialect().unwrap().client(&Value::Nil, &setting).unwrap()
}

/// Makes a call of a user's, and gives what it sent.
fn call(client: &mut dyn Client, values: &[Value<'_>]) -> Vec<u8> {
    let (mut encoded, mut out) = (Encoded::default(), Vec::new());
    caller().encode(values, &mut encoded).unwrap();
    client.start(&Message { bytes: &encoded.bytes, hint: encoded.hint, ..Message::default() }, &mut out);
    out
}

/// A user's connection after its handshake.
fn conversing() -> Box<dyn Client> {
    let mut client = caller().connection();
    let request = String::from_utf8(call(client.as_mut(), &[Value::text("connect")])).unwrap();
    let (progress, _) = feed(client.as_mut(), granting(key(&request), "").as_bytes(), usize::MAX);
    assert!(matches!(progress.as_slice(), [Progress::Answered(_)]), "{progress:?}");
    client
}

/// What a request is answered with after its timeout must not be taken for the answer to the next.
#[test]
fn a_connection_outlives_a_request_that_took_too_long() {
    let mut client = conversing();
    call(client.as_mut(), &[Value::text("request"), Value::text("a")]);
    assert!(client.cancel(0, &mut Vec::new()), "its answer is a message that can be received later");
    let mut client = conversing();
    call(client.as_mut(), &[Value::text("receive")]);
    assert!(client.cancel(0, &mut Vec::new()), "nothing is owed to who only listens");
}
