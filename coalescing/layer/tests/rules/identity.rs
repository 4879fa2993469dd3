//! Rules 1 and 2: nobody gets another's answer, and unsafe methods are never coalesced.

use brunt_coalesce::CoalesceLayer;
use bytes::Bytes;
use http::header::{AUTHORIZATION, RANGE};
use http_body_util::Empty;

use crate::origin::{Origin, request};

#[test]
fn identical_requests_are_served_once() {
    let mut origin = Origin::new();
    let mut clients: Vec<_> = (0..1000).map(|_| origin.get("/report?x=1", &[("host", "a")])).collect();
    let call = origin.call();
    assert_eq!(origin.calls(), 0);
    call.answer("report");
    clients.iter_mut().for_each(|client| client.has_all("report"));
    assert_eq!(origin.counters().bytes_saved, 999 * 6);
    origin.is_empty(1000);
}

/// Two requests that both reach the service.
#[track_caller]
fn are_told_apart(layer: &CoalesceLayer, one: http::Request<Empty<Bytes>>, two: http::Request<Empty<Bytes>>) {
    let before = layer.counters();
    let before = before.flights + before.passed;
    let mut origin = Origin::behind(layer.separate());
    let (mut one, mut two) = (origin.ask(one), origin.ask(two));
    origin.call().answer("one");
    origin.call().answer("two");
    one.has_all("one");
    two.has_all("two");
    drop((one, two));
    origin.is_empty(before + 2);
}

fn get(uri: &str, headers: &[(&str, &str)]) -> http::Request<Empty<Bytes>> {
    request("GET", uri, headers)
}

#[test]
fn queries_are_told_apart() {
    // Most paths are in different parts of the table: of so many, some share a part.
    for other in 2..300 {
        are_told_apart(&CoalesceLayer::new(), get("/?id=1", &[]), get(&format!("/?id={other}"), &[]));
    }
    are_told_apart(&CoalesceLayer::new(), get("/", &[]), get("/?", &[]));
}

#[test]
fn paths_hosts_and_schemes_are_told_apart() {
    are_told_apart(&CoalesceLayer::new(), get("/a", &[]), get("/A", &[]));
    are_told_apart(&CoalesceLayer::new(), get("/", &[("host", "a")]), get("/", &[("host", "b")]));
    are_told_apart(&CoalesceLayer::new(), get("http://a/", &[]), get("http://b/", &[]));
    are_told_apart(&CoalesceLayer::new(), get("http://a/", &[]), get("https://a/", &[]));
}

#[test]
fn authorization_bars() {
    are_told_apart(&CoalesceLayer::new(), get("/", &[("authorization", "one")]), get("/", &[("authorization", "two")]));
    are_told_apart(&CoalesceLayer::new(), get("/", &[("authorization", "one")]), get("/", &[("authorization", "one")]));
    are_told_apart(&CoalesceLayer::new(), get("/", &[]), get("/", &[("authorization", "one")]));
}

#[test]
fn cookies_bar() {
    are_told_apart(&CoalesceLayer::new(), get("/", &[("cookie", "one")]), get("/", &[("cookie", "two")]));
    are_told_apart(&CoalesceLayer::new(), get("/", &[("cookie", "one")]), get("/", &[("cookie", "one")]));
}

#[test]
fn ranges_bar() {
    are_told_apart(&CoalesceLayer::new(), get("/", &[("range", "bytes=0-1")]), get("/", &[("range", "bytes=0-1")]));
    are_told_apart(&CoalesceLayer::new(), get("/", &[]), get("/", &[("range", "bytes=0-1")]));
}

#[test]
fn ranges_may_be_opted_in() {
    let layer = CoalesceLayer::new().key_header(RANGE);
    are_told_apart(&layer, get("/", &[("range", "bytes=0-1")]), get("/", &[("range", "bytes=0-2")]));
    let mut origin = Origin::behind(layer);
    let ranges = [("range", "bytes=0-1")];
    let (mut one, mut two) = (origin.get("/", &ranges), origin.get("/", &ranges));
    drop(origin.call().begin(206, &[("content-range", "bytes 0-1/9")], None));
    assert_eq!((one.head().status(), two.head().status()), (206.try_into().unwrap(), 206.try_into().unwrap()));
    assert_eq!(origin.calls(), 0);
}

#[test]
fn bodies_bar() {
    are_told_apart(&CoalesceLayer::new(), get("/", &[("content-length", "1")]), get("/", &[("content-length", "1")]));
    let chunked = [("transfer-encoding", "chunked")];
    are_told_apart(&CoalesceLayer::new(), get("/", &chunked), get("/", &chunked));
}

#[test]
fn what_is_more_than_a_question_goes_alone() {
    for more in [("expect", "100-continue"), ("upgrade", "websocket"), ("if-range", "\"1\""), ("if_range", "\"1\"")] {
        are_told_apart(&CoalesceLayer::new(), get("/", &[more]), get("/", &[more]));
    }
}

#[test]
fn languages_and_encodings_are_told_apart_even_without_vary() {
    for header in ["accept", "accept-encoding", "accept-language", "origin"] {
        are_told_apart(&CoalesceLayer::new(), get("/", &[(header, "one")]), get("/", &[(header, "two")]));
        are_told_apart(&CoalesceLayer::new(), get("/", &[(header, "one")]), get("/", &[]));
    }
}

#[test]
fn who_is_asking_may_be_told_by_a_key() {
    let layer = CoalesceLayer::new().key_header(AUTHORIZATION);
    are_told_apart(&layer, get("/", &[("authorization", "one")]), get("/", &[("authorization", "two")]));
    are_told_apart(&layer, get("/", &[]), get("/", &[("authorization", "two")]));
    let mut origin = Origin::behind(layer);
    let (mut one, mut two) = (origin.get("/", &[("authorization", "me")]), origin.get("/", &[("authorization", "me")]));
    origin.call().answer("mine");
    one.has_all("mine");
    two.has_all("mine");

    let by_user = CoalesceLayer::new()
        .key_by(|parts| parts.headers.get("cookie").map(|user| Bytes::copy_from_slice(user.as_bytes())));
    are_told_apart(&by_user, get("/", &[("cookie", "one")]), get("/", &[("cookie", "two")]));
    are_told_apart(&by_user, get("/", &[]), get("/", &[]));
}

#[test]
fn unsafe_methods_are_never_coalesced_even_when_asked_for_all() {
    for method in ["POST", "PUT", "PATCH", "DELETE", "CONNECT", "LOCK", "MADE-UP"] {
        let all = CoalesceLayer::new().all_safe_methods(true).key_by(|_| Some(Bytes::from_static(b"all")));
        are_told_apart(&all, request(method, "/", &[]), request(method, "/", &[]));
    }
    are_told_apart(&CoalesceLayer::new(), request("OPTIONS", "/", &[]), request("OPTIONS", "/", &[]));
}

#[test]
fn all_safe_methods_may_be_asked_for() {
    let mut origin = Origin::behind(CoalesceLayer::new().all_safe_methods(true));
    let mut clients = [0, 1].map(|_| origin.ask(request("OPTIONS", "/", &[])));
    origin.call().answer("options");
    clients.iter_mut().for_each(|client| client.has_all("options"));
}

#[test]
fn get_and_head_are_told_apart() {
    are_told_apart(&CoalesceLayer::new(), get("/", &[]), request("HEAD", "/", &[]));
}

/// An answer with these headers goes to the leader alone, and the others go on at the same time.
#[track_caller]
fn is_not_shared(status: u16, headers: &[(&str, &str)]) {
    // By a status, the next in line would lead.
    let mut origin = Origin::behind(CoalesceLayer::new().max_promotions(0));
    let mut clients: Vec<_> = (0..5).map(|_| origin.get("/", &[])).collect();
    let source = origin.call().begin(status, headers, None);
    source.send("the leader's");
    drop(source);
    for client in &mut clients {
        client.poll();
    }
    // All at once, and not one after the other.
    let calls: Vec<_> = (0..4).map(|_| origin.call()).collect();
    let texts = ["1", "2", "3", "4"];
    for (call, text) in calls.into_iter().zip(texts) {
        call.answer(text);
    }
    clients.remove(0).reads("the leader's");
    for (client, text) in clients.iter_mut().zip(texts) {
        client.has_all(text);
    }
    drop(clients);
    assert_eq!(origin.counters().unshared, 1);
    origin.is_empty(5);
}

#[test]
fn answers_that_set_cookies_are_not_shared() {
    is_not_shared(200, &[("set-cookie", "session=1")]);
}

#[test]
fn private_answers_are_not_shared() {
    is_not_shared(200, &[("cache-control", "max-age=60, Private")]);
}

#[test]
fn answers_not_to_be_stored_are_not_shared() {
    is_not_shared(200, &[("cache-control", "no-store")]);
    is_not_shared(200, &[("cache-control", "no-cache")]);
    is_not_shared(200, &[("cdn-cache-control", "no-store")]);
    is_not_shared(200, &[("surrogate-control", "no-store")]);
}

#[test]
fn answers_about_the_client_are_not_shared() {
    for status in [401, 403, 407] {
        is_not_shared(status, &[]);
    }
}

#[test]
fn answers_that_vary_by_everything_are_not_shared() {
    is_not_shared(200, &[("vary", "*")]);
}

#[test]
fn an_answer_that_varies_once_more_goes_to_those_who_sent_the_same() {
    let mut origin = Origin::new();
    let mut one = origin.get("/", &[("referer", "one")]);
    let mut two = origin.get("/", &[("referer", "two"), ("via", "x")]);
    let mut other = origin.get("/", &[("referer", "two"), ("via", "y")]);
    origin.call().answer_with(&[("vary", "referer")], "one's");
    one.has_all("one's");
    // They have a flight together, as their referers are the same.
    assert!(!two.poll() && !other.poll());
    let call = origin.call();
    assert_eq!((call.header("via"), origin.calls()), ("x", 0));
    call.answer_with(&[("vary", "referer, via")], "x's");
    two.has_all("x's");
    assert!(!other.poll());
    let call = origin.call();
    assert_eq!(call.header("via"), "y");
    call.answer("y's");
    other.has_all("y's");
    drop((one, two, other));
    origin.is_empty(3);
}

#[test]
fn an_answer_that_varies_goes_to_those_who_sent_the_same() {
    let mut origin = Origin::new();
    let with = |value| [("referer", value), ("via", value)];
    let mut one = origin.get("/", &with("one"));
    let mut same = origin.get("/", &[("referer", "one")]);
    let mut two = origin.get("/", &with("two"));
    let mut none = origin.get("/", &[]);
    let mut twice = origin.get("/", &[("referer", "one"), ("referer", "one")]);
    let call = origin.call();
    call.answer_with(&[("vary", "accept-encoding"), ("vary", "Referer")], "one's");
    one.has_all("one's");
    same.has_all("one's");
    for client in [&mut two, &mut none, &mut twice] {
        assert!(!client.poll());
    }
    for (tenant, text) in [("two", "two's"), ("", "nobody's"), ("one", "twice")] {
        let call = origin.call();
        assert_eq!(call.header("referer"), tenant);
        call.answer(text);
    }
    two.has_all("two's");
    none.has_all("nobody's");
    twice.has_all("twice");
    drop((one, same, two, none, twice));
    origin.is_empty(5);
}

#[test]
fn who_is_promoted_is_who_the_answer_varies_by() {
    let mut origin = Origin::new();
    let mut one = origin.get("/", &[("referer", "one")]);
    let mut two = origin.get("/", &[("referer", "two")]);
    let mut other = origin.get("/", &[("referer", "one")]);
    origin.call().fail(1);
    one.error();
    two.poll();
    origin.call().answer_with(&[("vary", "referer")], "two's");
    two.has_all("two's");
    assert!(!other.poll());
    origin.call().answer("one's");
    other.has_all("one's");
    drop(other);
    origin.is_empty(3);
}

#[test]
fn clients_may_insist_on_an_answer_of_their_own() {
    for insists in [
        ("cache-control", "no-cache"),
        ("cache-control", "max-age=0, No-Store"),
        ("cache-control", "only-if-cached"),
        ("pragma", "no-cache"),
    ] {
        are_told_apart(&CoalesceLayer::new(), get("/", &[]), get("/", &[insists]));
        are_told_apart(&CoalesceLayer::new(), get("/", &[insists]), get("/", &[insists]));
    }
}

#[test]
fn services_have_flights_of_their_own_unless_they_are_shared() {
    for (layer, calls) in [(CoalesceLayer::new(), (1, 1, 1)), (CoalesceLayer::new().shared(), (1, 0, 1))] {
        let (mut one, mut clone) = (Origin::behind(layer.clone()), Origin::behind(layer.clone()));
        let mut separate = Origin::behind(layer.separate());
        let _clients = [one.get("/", &[]), clone.get("/", &[]), separate.get("/", &[])];
        assert_eq!((one.calls(), clone.calls(), separate.calls()), calls);
        assert_eq!(layer.counters().services, if calls.1 == 1 { 3 } else { 2 });
    }
}
