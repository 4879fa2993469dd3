//! Rules 7 and 8: HTTP's own rules, and what can be seen from outside.

use std::sync::{Arc, Mutex};

use brunt_coalesce::{CoalesceLayer, Event, Mark};
use http_body::Body as _;

use crate::origin::{Origin, request};

#[test]
fn headers_of_the_connection_stay_with_the_leader() {
    let mut origin = Origin::new();
    let (mut leader, mut follower) = (origin.get("/", &[]), origin.get("/", &[]));
    let headers = [
        ("connection", "close, x-hop"),
        ("keep-alive", "timeout=1"),
        ("x-hop", "1"),
        ("etag", "\"1\""),
        ("x-end", "1"),
    ];
    origin.call().answer_with(&headers, "body");
    for (name, value) in headers {
        assert_eq!(leader.header(name), value);
    }
    for name in ["connection", "keep-alive", "x-hop"] {
        assert_eq!(follower.header(name), "", "{name}");
    }
    assert_eq!((follower.header("etag"), follower.header("x-end")), ("\"1\"".to_owned(), "1".to_owned()));
}

#[test]
fn conditions_are_told_apart_and_304_goes_to_those_who_asked_the_same() {
    let mut origin = Origin::new();
    let condition = [("if-none-match", "\"1\"")];
    let (mut one, mut two) = (origin.get("/", &condition), origin.get("/", &condition));
    let mut whole = origin.get("/", &[]);
    let mut other = origin.get("/", &[("if-none-match", "\"2\"")]);
    drop(origin.call().begin(304, &[("etag", "\"1\"")], None));
    origin.call().answer("whole");
    origin.call().answer("changed");
    assert_eq!((one.head().status().as_u16(), two.head().status().as_u16()), (304, 304));
    assert_eq!(two.header("etag"), "\"1\"");
    whole.has_all("whole");
    other.has_all("changed");
    drop((one, two));
    origin.is_empty(4);
}

#[test]
fn an_answer_to_head_keeps_its_length_and_has_no_body() {
    let mut origin = Origin::new();
    let mut clients = [0, 1].map(|_| origin.ask(request("HEAD", "/", &[])));
    origin.call().answer_with(&[("content-length", "1000")], "");
    for client in &mut clients {
        assert_eq!(client.header("content-length"), "1000");
        client.reads_the_end();
    }
}

#[test]
fn a_failure_that_is_the_answer_to_head_has_no_body() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_promotions(0));
    let mut clients = [0, 1].map(|_| origin.ask(request("HEAD", "/", &[])));
    origin.call().fail(1);
    clients[0].error();
    assert_eq!(clients[1].head().status(), 500);
    clients[1].reads_the_end();
}

#[test]
fn whoever_asks_is_told_who_led() {
    let mut origin = Origin::new();
    let (mut leader, mut follower) =
        (origin.get("/", &[("x-coalesced", "?")]), origin.get("/", &[("x-coalesced", "?")]));
    let mut silent = origin.get("/", &[]);
    origin.call().answer("body");
    assert_eq!(leader.header("x-coalesced"), "leader");
    assert_eq!(follower.header("x-coalesced"), "follower");
    assert_eq!(silent.header("x-coalesced"), "");
}

#[test]
fn all_or_none_may_be_told() {
    for (mark, told) in [(Mark::Always, ["leader", "follower"]), (Mark::Never, ["", ""])] {
        let mut origin = Origin::behind(CoalesceLayer::new().mark(mark));
        let asks = [("x-coalesced", "?")];
        let mut clients = [origin.get("/", if mark == Mark::Always { &[] } else { &asks }), origin.get("/", &[])];
        origin.call().answer("body");
        assert_eq!(clients.each_mut().map(|client| client.header("x-coalesced")), told);
    }
}

#[test]
fn an_observer_is_told_of_everything() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let mut origin = Origin::behind(CoalesceLayer::new().observer(move |event| seen.lock().unwrap().push(event)));
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    origin.call().answer("body");
    one.has_all("body");
    two.has_all("body");
    drop(origin.ask(request("POST", "/", &[])));
    let expected = [
        Event::ServiceMade,
        Event::FlightStarted,
        Event::Joined,
        Event::FlightEnded,
        Event::Saved(4),
        Event::Shared,
        Event::Passed,
    ];
    let events = events.lock().unwrap();
    let (waited, others): (Vec<_>, Vec<_>) = events.iter().partition(|event| matches!(event, Event::Waited(_)));
    assert_eq!((waited.len(), others), (1, expected.iter().collect()));
}

#[test]
fn counters_have_names() {
    let mut origin = Origin::new();
    drop(origin.get("/", &[]));
    let each: Vec<_> = origin.counters().each().filter(|(_, value)| *value > 0).collect();
    assert_eq!(each, [("services", 1), ("flights", 1), ("cancelled", 1)]);
}

#[test]
fn a_body_that_is_there_has_its_length() {
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    origin.call().answer("body");
    for client in [&mut one, &mut two] {
        assert_eq!(client.head().body().size_hint().exact(), Some(4));
        assert!(!client.head().body().is_end_stream());
        client.reads("body");
        assert!(client.head().body().is_end_stream());
    }
}
