//! Rules that hold against clients who mean harm: what one of them sends decides nothing for others.

use std::task::Poll;
use std::time::Duration;

use brunt_coalesce::CoalesceLayer;
use bytes::Bytes;

use crate::origin::{Client, Origin, request};

const KB: usize = 1024;

/// Whether a GET with these headers joins the flight of a plain GET.
fn joins_plain(headers: &[(&str, &str)]) -> bool {
    let mut origin = Origin::new();
    let _plain = origin.get("/", &[]);
    let _other = origin.get("/", headers);
    origin.calls() == 1
}

/// Whether a GET with the second headers joins the flight of one with the first.
fn join(one: &[(&str, &str)], other: &[(&str, &str)]) -> bool {
    let mut origin = Origin::new();
    let _one = origin.get("/", one);
    let _other = origin.get("/", other);
    origin.calls() == 1
}

#[test]
fn a_field_nobody_has_heard_of_tells_apart() {
    for name in ["x-zqw", "accept-profile", "hx-request", "turbo-frame", "rsc", "x-script-name", "x-vault-token"] {
        assert!(!join(&[(name, "1")], &[(name, "2")]), "{name}");
        assert!(!joins_plain(&[(name, "1")]), "{name}");
    }
    assert!(join(&[("x-zqw", "1"), ("x-zqw", "2")], &[("x-zqw", "1"), ("x-zqw", "2")]));
    assert!(!join(&[("x-zqw", "1"), ("x-zqw", "2")], &[("x-zqw", "2"), ("x-zqw", "1")]));
}

#[test]
fn fields_that_differ_in_their_names_alone_are_told_apart() {
    let names = [
        "accept",
        "accept-encoding",
        "accept-language",
        "origin",
        "dnt",
        "if-none-match",
        "if-modified-since",
        "upgrade-insecure-requests",
        "sec-ch-ua-mobile",
        "sec-ch-ua-arch",
        "sec-fetch-site",
        "sec-fetch-mode",
        "sec-fetch-user",
        "sec-fetch-dest",
        "sec-fetch-test",
        "sec-gpc",
        "rsc",
        "x-zqw",
        "host",
        "connection",
    ];
    for (at, one) in names.iter().enumerate() {
        for other in names.iter().skip(at + 1) {
            assert!(!join(&[(one, "keep-alive")], &[(other, "keep-alive")]), "{one}, {other}");
        }
    }
}

#[test]
fn what_only_names_the_call_costs_nothing() {
    for name in ["user-agent", "referer", "traceparent", "x-request-id", "sec-ch-ua", "x-datadog-trace-id"] {
        assert!(join(&[(name, "1")], &[(name, "2")]) && joins_plain(&[(name, "1")]), "{name}");
    }
    assert!(joins_plain(&[("cache-control", "max-age=0")]));
}

#[test]
fn a_nominated_field_bars() {
    for value in ["x-tenant", "close, x-tenant", "host", "keep-alive,accept-language"] {
        assert!(!join(&[("connection", value)], &[("connection", value)]), "{value}");
    }
    for value in ["close", "Keep-Alive", "keep-alive, TE", ""] {
        assert!(join(&[("connection", value)], &[("connection", value)]), "{value}");
        assert!(!joins_plain(&[("connection", value)]), "{value}");
    }
}

#[test]
fn a_method_override_bars() {
    for name in ["x-http-method-override", "x-http-method", "x-method-override"] {
        assert!(!joins_plain(&[(name, "DELETE")]), "{name}");
    }
}

#[test]
fn headers_that_say_what_was_asked_for_are_told_apart() {
    for name in ["x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix", "x-original-url", "x-rewrite-url"] {
        assert!(!joins_plain(&[(name, "evil.example")]), "{name}");
    }
    assert!(!joins_plain(&[("forwarded", "for=10.0.0.1;host=evil.example")]));
    assert!(!joins_plain(&[("forwarded", "for=10.0.0.1, for=10.0.0.2;Proto=http")]));
    assert!(!joins_plain(&[("forwarded", "host=\"a;b\"")]));
    assert!(!joins_plain(&[("forwarded", "for=\"10.0.0.1;host=a")]));
    // Who asked is no part of what is asked for.
    assert!(join(&[("forwarded", "for=10.0.0.1;by=10.0.0.9")], &[("forwarded", "for=10.0.0.2;by=10.0.0.8")]));
    assert!(join(&[("x-forwarded-for", "10.0.0.1")], &[("x-forwarded-for", "10.9.9.9")]));
    // But its class is: services trust their neighbours more than strangers.
    assert!(!join(&[("x-forwarded-for", "10.0.0.1")], &[("x-forwarded-for", "192.0.2.1")]));
    assert!(!join(&[("forwarded", "for=127.0.0.1")], &[("forwarded", "for=192.0.2.1")]));
    assert!(join(&[("x-real-ip", "10.0.0.1")], &[("x-real-ip", "10.9.9.9")]));
    assert!(!join(&[("x-real-ip", "10.0.0.1")], &[("x-real-ip", "192.0.2.1")]));
    // What one header says of an address the other does not.
    assert!(!join(&[("x-real-ip", "10.0.0.1")], &[("x-forwarded-for", "10.0.0.1")]));
    // A key function that stands for all headers stands for these, too.
    let by_path = CoalesceLayer::new().key_only_by(|_| Some(Bytes::new()));
    for [one, other] in [
        [("x-forwarded-for", "10.0.0.1"), ("x-forwarded-for", "192.0.2.1")],
        [("forwarded", "for=10.0.0.1"), ("forwarded", "host=a")],
    ] {
        let mut origin = Origin::behind(by_path.separate());
        let _clients = [origin.get("/", &[one]), origin.get("/", &[other])];
        assert_eq!(origin.calls(), 1);
    }
}

#[test]
fn headers_that_some_take_for_others_are_told_apart() {
    for name in [
        "x_api_key",
        "accept_language",
        "x_forwarded_host",
        "content_length",
        "if_none_match",
        "x_http_method_override",
    ] {
        assert!(!joins_plain(&[(name, "7")]), "{name}");
    }
    assert!(!joins_plain(&[("x_own", "1")]));
}

/// A GET that is under way, an unsafe request to `target`, and a GET that comes at `stage` of it.
fn get_after(method: &str, target: &str, stage: &str) -> (Origin, Vec<Client>) {
    let mut origin = Origin::new();
    let early = origin.get("/item", &[]);
    drop(origin.call());
    let mut write = origin.ask(request(method, target, &[]));
    let call = origin.call();
    let mut clients = vec![early];
    if stage != "started" {
        clients.push(origin.get("/item", &[]));
        assert_eq!(origin.calls(), 1, "what comes during the write calls");
        drop(origin.call());
    }
    match stage {
        "started" => {}
        "answered" => {
            call.answer("written");
            write.has_all("written");
        }
        "failed" => {
            call.fail(1);
            write.error();
        }
        _ => {
            write.go_away();
            drop(call);
        }
    }
    clients.push(write);
    let reader = origin.get("/item", &[]);
    clients.push(reader);
    (origin, clients)
}

#[test]
fn a_read_after_a_write_starts_anew() {
    for method in ["PUT", "POST", "DELETE", "PATCH", "MADEUP"] {
        for stage in ["started", "answered", "failed", "dropped"] {
            let (origin, _clients) = get_after(method, "/item", stage);
            assert_eq!(origin.calls(), 1, "{method} {stage}: the read must call");
        }
    }
    for (method, target) in [("OPTIONS", "/item"), ("PUT", "/other")] {
        let (origin, _clients) = get_after(method, target, "started");
        assert_eq!(origin.calls(), 0, "{method} {target}: the read joins");
    }
}

#[test]
fn a_write_is_over_before_its_answer_begins() {
    let mut origin = Origin::new();
    let mut write = origin.ask(request("POST", "/item", &[]));
    let source = origin.call().begin(201, &[], None);
    let _during = origin.get("/item", &[]);
    drop(origin.call());
    write.head();
    let _reader = origin.get("/item", &[]);
    assert_eq!(origin.calls(), 1);
    drop(source);
}

#[test]
fn a_write_is_over_before_the_end_of_its_answer() {
    let mut origin = Origin::new();
    let mut write = origin.ask(request("POST", "/item", &[]));
    let source = origin.call().begin(200, &[], None);
    write.head();
    let _during = origin.get("/item", &[]);
    drop(origin.call());
    source.send_last("written");
    write.reads("written");
    let _reader = origin.get("/item", &[]);
    assert_eq!(origin.calls(), 1);
}

#[test]
fn an_overridden_method_is_a_write() {
    let mut origin = Origin::new();
    let _early = origin.get("/item", &[]);
    let mut write = origin.get("/item", &[("x-http-method-override", "DELETE")]);
    drop(origin.call());
    origin.call().answer("gone");
    write.has_all("gone");
    let _reader = origin.get("/item", &[]);
    assert_eq!(origin.calls(), 1);
}

/// A request with a cookie is told by its names alone once one was seen, so what else it says must be seen there, too.
#[test]
fn a_write_among_requests_with_cookies_is_one() {
    for name in ["x-http-method-override", "X-Method", "x_http_method", "x-http_method", "_method_override"] {
        let mut origin = Origin::new();
        let _early = origin.get("/item", &[]);
        drop(origin.call());
        let _cookie = origin.get("/item", &[("cookie", "sid=1")]);
        drop(origin.call());
        let mut write = origin.get("/item", &[("cookie", "sid=1"), (name, "DELETE")]);
        origin.call().answer("gone");
        write.has_all("gone");
        let _reader = origin.get("/item", &[]);
        assert_eq!(origin.calls(), 1, "{name}");
    }
}

#[test]
fn requests_after_those_with_cookies_are_coalesced() {
    let mut origin = Origin::new();
    for _ in 0..2 {
        let mut own = origin.get("/page", &[("cookie", "sid=1")]);
        origin.call().answer("own");
        own.has_all("own");
    }
    let named = [("user-agent", "a"), ("x-page", "7")];
    let (mut one, mut two) = (origin.get("/page", &named), origin.get("/page", &named));
    origin.call().answer("shared");
    one.has_all("shared");
    two.has_all("shared");
    // A layer that takes a cookie for harmless looks at its value, whatever the last request had.
    let mut ignoring = Origin::behind(CoalesceLayer::new().ignore_cookie("_ga"));
    let _clients = ["sid=1", "_ga=1", "_ga=2"].map(|cookie| ignoring.get("/page", &[("cookie", cookie)]));
    assert_eq!(ignoring.calls(), 2);
    let (mut own, mut other) =
        (origin.get("/page", &[("authorization", "a")]), origin.get("/page", &[("authorization", "a")]));
    origin.call().answer("one");
    origin.call().answer("other");
    own.has_all("one");
    other.has_all("other");
}

#[test]
fn those_who_came_before_a_write_keep_their_flight() {
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/item", &[]), origin.get("/item", &[]));
    let call = origin.call();
    let mut write = origin.ask(request("PUT", "/item", &[]));
    origin.call().answer("written");
    write.has_all("written");
    call.answer("as it was");
    one.has_all("as it was");
    two.has_all("as it was");
    drop((one, two, write));
    origin.is_empty(3);
}

#[test]
fn a_held_answer_ends_with_a_write() {
    let mut origin = Origin::behind(CoalesceLayer::new().hold(Duration::from_secs(60)));
    let mut early = origin.get("/item", &[]);
    origin.call().answer("as it was");
    early.has_all("as it was");
    let mut write = origin.ask(request("DELETE", "/item", &[]));
    origin.call().answer("gone");
    write.has_all("gone");
    let _reader = origin.get("/item", &[]);
    assert_eq!(origin.calls(), 1);
}

#[test]
fn a_bad_request_is_answered_for_itself_and_the_next_leads() {
    for status in [302, 400, 405, 414] {
        let mut origin = Origin::new();
        let mut clients: Vec<_> = (0..4).map(|_| origin.get("/", &[])).collect();
        drop(origin.call().begin(status, &[], None));
        assert_eq!(clients[0].head().status(), status);
        assert!(clients[1..].iter_mut().all(|client| !client.poll()), "{status}");
        origin.call().answer("right");
        assert_eq!(origin.calls(), 0, "{status}: one of them calls");
        clients[1..].iter_mut().for_each(|client| client.has_all("right"));
        drop(clients);
        origin.is_empty(4);
    }
}

/// How many of those that wait call the service after each failure of all that call.
fn waves(clients: usize, mut fail: impl FnMut(crate::origin::Call)) -> Vec<usize> {
    let mut origin = Origin::behind(CoalesceLayer::new().share_failures(false));
    let mut clients: Vec<_> = (0..clients).map(|_| origin.get("/", &[])).collect();
    let mut waves = Vec::new();
    while origin.calls() > 0 {
        waves.push(origin.calls());
        for _ in 0..origin.calls() {
            fail(origin.call());
            clients.iter_mut().for_each(|client| _ = client.poll());
        }
        clients.iter_mut().for_each(|client| _ = client.poll());
    }
    assert!(clients.iter_mut().all(Client::poll), "somebody has no answer");
    let count = clients.len() as u64;
    drop(clients);
    origin.is_empty(count);
    waves
}

#[test]
fn after_failures_twice_as_many_call_each_time() {
    assert_eq!(waves(40, |call| call.fail(1)), [1, 2, 4, 8, 16, 9]);
    for status in [429, 500, 502, 503, 504] {
        assert_eq!(waves(10, |call| drop(call.begin(status, &[], None))), [1, 2, 4, 3], "{status}");
    }
}

#[test]
fn those_who_wait_while_others_fail_share_the_first_answer() {
    let mut origin = Origin::behind(CoalesceLayer::new().share_failures(false));
    let mut clients: Vec<_> = (0..20).map(|_| origin.get("/", &[])).collect();
    origin.call().fail(1);
    clients.iter_mut().for_each(|client| _ = client.poll());
    let calls = [origin.call(), origin.call()];
    // Whoever comes meanwhile waits, too.
    clients.push(origin.get("/", &[]));
    calls.into_iter().for_each(|call| call.answer("right"));
    clients.iter_mut().for_each(|client| _ = client.poll());
    assert_eq!(origin.calls(), 0);
    clients[1..].iter_mut().for_each(|client| client.has_all("right"));
    drop(clients);
    origin.is_empty(21);
}

#[test]
fn a_failure_for_all_is_the_answer_to_all_who_wait() {
    let mut origin = Origin::behind(CoalesceLayer::new().share_failures(false));
    let mut clients: Vec<_> = (0..5).map(|_| origin.get("/", &[])).collect();
    // Its body goes on, so that it might be joined.
    let source = origin.call().begin_as(504, &[], None, Some(brunt_coalesce::SharedFailure));
    source.send("late");
    clients.iter_mut().for_each(|client| {
        assert_eq!(client.head().status(), 504);
        client.reads("late");
    });
    assert_eq!(origin.calls(), 0);
    let _next = origin.get("/", &[]);
    assert_eq!(origin.calls(), 1, "it is no answer to whoever comes later");
}

/// Whether the second of two requests waits for the first.
fn waits(origin: &mut Origin, headers: &[(&str, &str)]) -> bool {
    let before = origin.calls();
    let _clients = [origin.get("/", headers), origin.get("/", headers)];
    let waits = origin.calls() == before + 1;
    while origin.calls() > before {
        drop(origin.call());
    }
    waits
}

#[tokio::test(start_paused = true)]
async fn what_was_for_one_alone_is_not_waited_for_next_time() {
    for (status, headers) in [
        (200, &[("cache-control", "private")][..]),
        (200, &[("cache-control", "no-store")]),
        (200, &[("set-cookie", "a=1")]),
        (302, &[]),
        (403, &[]),
    ] {
        let mut origin = Origin::new();
        let mut first = origin.get("/", &[]);
        drop(origin.call().begin(status, headers, None));
        first.head();
        assert!(!waits(&mut origin, &[]), "{status} {headers:?}");
        assert!(waits(&mut origin, &[("x-zqw", "1")]), "another request");
        // Each such answer confirms it; without one it fades.
        tokio::time::advance(Duration::from_secs(4)).await;
        let mut again = origin.get("/", &[]);
        drop(origin.call().begin(status, headers, None));
        again.head();
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(!waits(&mut origin, &[]), "{status} {headers:?}");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(waits(&mut origin, &[]), "{status} {headers:?}");
    }
}

#[test]
fn an_answer_that_can_be_shared_ends_what_was_remembered() {
    let mut origin = Origin::new();
    for (headers, is_waited_for) in [(&[("set-cookie", "a=1")][..], false), (&[], true)] {
        let mut client = origin.get("/", &[]);
        origin.call().answer_with(headers, "x");
        client.head();
        assert_eq!(waits(&mut origin, &[]), is_waited_for);
    }
}

#[test]
fn failures_are_not_remembered() {
    for status in [408, 429, 500, 503] {
        let mut origin = Origin::new();
        let mut client = origin.get("/", &[]);
        drop(origin.call().begin(status, &[], None));
        client.head();
        assert!(waits(&mut origin, &[]), "{status}");
    }
}

#[test]
fn those_who_differ_in_what_an_answer_varies_by_have_a_flight_for_each_value() {
    let mut origin = Origin::new();
    let agents = ["one", "two", "one", "two", "two"];
    for _ in 0..2 {
        let mut clients = agents.map(|agent| origin.get("/", &[("user-agent", agent)]));
        let mut calls = 0;
        while origin.calls() > 0 {
            let call = origin.call();
            let text = if call.header("user-agent") == "one" { "one" } else { "two" };
            call.answer_with(&[("vary", "User-Agent")], text);
            calls += 1;
            clients.iter_mut().for_each(|client| _ = client.poll());
        }
        assert_eq!(calls, 2);
        for (client, agent) in clients.iter_mut().zip(agents) {
            client.has_all(agent);
        }
    }
    assert_eq!((origin.counters().flights, origin.counters().regrouped), (4, 3));
    origin.is_empty(10);
}

#[test]
fn when_all_who_led_got_a_status_of_their_own_the_others_call() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_promotions(1));
    let mut clients: Vec<_> = (0..5).map(|_| origin.get("/", &[])).collect();
    for leader in 0..2 {
        drop(origin.call().begin(400, &[], None));
        clients.iter_mut().for_each(|client| assert!(client.poll() || client.answer.is_none()));
        assert_eq!(clients[leader].head().status(), 400);
    }
    assert_eq!(origin.calls(), 3);
    for client in &mut clients[2..] {
        origin.call().answer("right");
        client.has_all("right");
    }
    drop(clients);
    origin.is_empty(5);
}

#[test]
fn keys_and_heads_are_held_too() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_bytes(64 * KB));
    let long = "x".repeat(4 * KB);
    let mut one = origin.get("/", &[("referer", &long)]);
    let first = origin.layer.held_bytes();
    assert!(first >= 4 * KB, "{first}");
    let two = origin.get("/", &[("referer", &long)]);
    let asked = origin.layer.held_bytes();
    assert!(asked >= first + 4 * KB, "{asked}");
    let source = origin.call().begin(200, &[("x-answer", &long)], None);
    one.head();
    assert!(origin.layer.held_bytes() >= asked + 4 * KB, "{}", origin.layer.held_bytes());
    drop((one, two, source));
    origin.is_empty(2);
}

#[test]
fn too_many_long_requests_go_to_the_handler() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_bytes(64 * KB));
    let long = "x".repeat(4 * KB);
    let clients: Vec<_> = (0..100).map(|_| origin.get("/", &[("referer", &long)])).collect();
    assert!(origin.layer.held_bytes() <= 64 * KB, "{}", origin.layer.held_bytes());
    assert!(origin.counters().refused > 80, "{:?}", origin.counters());
    drop(clients);
    origin.is_empty(100);
}

#[test]
fn a_reader_is_not_held_up_because_others_fill_the_total() {
    let total = 256 * KB;
    let mut origin = Origin::behind(CoalesceLayer::new().max_bytes(total));
    let flights: Vec<_> = (0..8)
        .map(|number| {
            let uri = format!("/{number}");
            let (fast, slow) = (origin.get(&uri, &[]), origin.get(&uri, &[]));
            (fast, slow, origin.call().begin(200, &[], None))
        })
        .collect();
    let mut flights = flights;
    flights.iter_mut().for_each(|(_, slow, _)| assert_eq!(slow.head().status(), 200));
    let (victim, fillers) = flights.split_last_mut().unwrap();
    for round in 0..200 {
        // Of these, the slow reader reads nothing.
        for (fast, _, source) in &mut *fillers {
            source.data(Bytes::from(vec![b'x'; KB]));
            let _ = fast.piece();
        }
        // This one stays four pieces behind, far less than its share.
        let (fast, slow, source) = &mut *victim;
        source.data(Bytes::from(vec![b'v'; KB]));
        assert!(matches!(fast.piece(), Poll::Ready(Some(Ok(_)))));
        let goes_on = round < 4 || matches!(slow.piece(), Poll::Ready(Some(Ok(_))));
        assert!(goes_on, "held up in round {round}");
        assert!(origin.layer.held_bytes() <= total, "{}", origin.layer.held_bytes());
    }
    drop(flights);
    origin.is_empty(16);
}
