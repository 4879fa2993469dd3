//! HTTP/1.1: the suite, and its own tests.

use brunt_plan::plan::{Plan, ProtocolOptions, Transport};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;

use super::behaviour::{Speech, every_behaviour};
use super::{MS, carry_out, plan};
use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_http1::options::Options;
use brunt_record::time::Tick;

const HTTP: Speech = Speech {
    url: "http://127.0.0.1/",
    options: ProtocolOptions::default,
    aside: |_| None,
    idempotent: true,
    request: |bytes| bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4),
    answer: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    fit: |_, _| {},
    garbage: b"SSH-2.0-OpenSSH_9.2\r\n",
    oversize: (b"HTTP/1.1 200 OK\r\n", b"x-a: bcdefghijklmnopqrst\r\n"),
    oversize_is: Failure::Protocol,
};

#[test]
fn behaves() {
    every_behaviour(HTTP);
}

/// A peer that answers each write with the same acts.
struct Always(Reaction);

impl Peer for Always {
    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        self.0.clone()
    }
}

/// Answers every other request with 503, and later.
struct Unsteady(u64);

impl Peer for Unsteady {
    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        self.0 += 1;
        if self.0.is_multiple_of(2) {
            vec![(5 * MS, Act::Send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec()))]
        } else {
            vec![(MS, Act::Send(HTTP.answer.to_vec()))]
        }
    }
}

#[test]
fn answers_that_are_not_ok_have_latency_of_their_own() {
    let total = carry_out(&plan(HTTP.url), Unsteady(0)).summary.total;
    let refused = total.times.known(Timing::Refused);
    assert!(refused.count() > 100);
    assert_eq!((refused.min(), refused.max()), (Some(5 * MS), Some(5 * MS)));
    assert_eq!(total.statuses.sorted().last(), Some(&(503, refused.count())));
    assert_eq!(total.times.known(Timing::Response).count(), total.statuses.total(), "they are among all");
}

#[test]
fn the_first_calls_that_were_not_ok_are_kept_with_what_was_said() {
    let whole = b"HTTP/1.1 503 Busy\r\nContent-Length: 14\r\n\r\n{\"error\":\"db\"}".to_vec();
    let chunked =
        b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{\"error\":\"db\"}\r\n0\r\n\r\n".to_vec();
    let zipped = b"HTTP/1.1 503 Busy\r\nContent-Length: 3\r\n\r\n\x1f\x8b\xff".to_vec();
    let (head, body) = whole.split_at(whole.len() - 14);
    let pieces = vec![(MS, Act::Send(head.to_vec())), (2 * MS, Act::Send(body.to_vec()))];
    let once = |bytes: &Vec<u8>| vec![(2 * MS, Act::Send(bytes.clone()))];
    for (acts, said) in [
        (once(&whole), r#"{"error":"db"}"#),
        (once(&chunked), r#"{"error":"db"}"#),
        (pieces, r#"{"error":"db"}"#),
        (once(&zipped), ""),
    ] {
        let total = carry_out(&plan(HTTP.url), Always(acts)).summary.total;
        let kept = total.examples.get("503");
        assert_eq!(kept.len(), 3, "{said}");
        for call in kept {
            assert_eq!((call.took_ns, call.said.as_str(), call.request.as_str()), (2 * MS, said, ""));
        }
        assert!(kept[0].due_ns < 10 * MS && kept.windows(2).all(|two| two[0].due_ns <= two[1].due_ns), "{kept:?}");
    }
    let refused = carry_out(&plan(HTTP.url), Always(vec![(MS, Act::Send(HTTP.garbage.to_vec()))])).summary.total;
    let kept = refused.examples.get("protocol");
    assert!(kept.len() == 3 && kept[0].said.contains("SSH"), "{kept:?}");
}

fn posting() -> Plan {
    let options = Options { method: "POST".to_owned(), ..Options::default() };
    Plan { protocol: options.to_protocol(), ..plan(HTTP.url) }
}

#[test]
fn a_post_is_not_sent_twice() {
    let acts = vec![(MS, Act::Send(HTTP.answer.to_vec())), (MS + 1, Act::Close)];
    let summary = carry_out(&posting(), Always(acts)).summary;
    assert!(summary.failures(Failure::Closed) > 100);
    assert_eq!(summary.total.numbers.get(Counter::Reconnects), 0);
}

#[test]
fn bytes_that_nobody_asked_for_are_seen() {
    let acts = vec![(MS, Act::Send([HTTP.answer, b"more"].concat()))];
    let total = carry_out(&plan(HTTP.url), Always(acts)).summary.total;
    assert_eq!(total.failures.total(), 0);
    let troubles = total.troubles.reasons(Failure::Protocol);
    // Bytes behind the last answers are found in the drain.
    assert_eq!(troubles, [("an answer that nobody asked for", total.statuses.total())]);
    assert_eq!(total.troubles.total(), total.statuses.total());
}

/// Refuses every other connection, and answers on the others.
struct HalfOpen(usize);

impl Peer for HalfOpen {
    fn connecting(&mut self, _now: Tick) -> Reaction {
        self.0 += 1;
        vec![(MS, if self.0 % 2 == 1 { Act::Refuse } else { Act::Accept })]
    }

    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        vec![(MS, Act::Send(HTTP.answer.to_vec()))]
    }
}

#[test]
fn an_address_that_refuses_is_seen_where_another_works() {
    let addresses = ["[::1]:80", "127.0.0.1:80"].map(|address| address.parse().unwrap()).to_vec();
    let transport = Transport { addresses, ..Transport::default() };
    let plan = Plan { reconnect: true, transport, ..plan(HTTP.url) };
    let total = carry_out(&plan, HalfOpen(0)).summary.total;
    assert_eq!((total.failures.total(), total.numbers.get(Counter::ConnectionsFailed)), (0, 0));
    let troubles = total.troubles.reasons(Failure::Connect);
    assert_eq!(troubles, [("[::1]:80: connection refused", total.numbers.get(Counter::ConnectionsMade))]);
}

#[test]
fn an_announced_close_is_no_failure() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let acts = vec![(MS, Act::Send(answer.to_vec())), (MS, Act::Close)];
    let summary = carry_out(&posting(), Always(acts)).summary;
    assert_eq!(summary.total.failures.total(), 0);
    assert_eq!(summary.total.numbers.get(Counter::Reconnects), 0);
    let made = summary.total.numbers.get(Counter::ConnectionsMade);
    assert!(made.abs_diff(summary.total.statuses.total()) <= 1, "{made} connections");
    // A new connection is part of the user's wait, and not of the server's time.
    let (response, service) = (summary.times.response.unwrap(), summary.times.service.unwrap());
    assert_eq!(service.max.value, MS);
    assert_eq!(response.max.value, MS + 50_000);
}

#[test]
fn a_body_may_end_with_the_connection() {
    let acts = vec![
        (MS, Act::Send(b"HTTP/1.1 200 OK\r\n\r\nhel".to_vec())),
        (2 * MS, Act::Send(b"lo".to_vec())),
        (3 * MS, Act::Close),
    ];
    let summary = carry_out(&posting(), Always(acts)).summary;
    assert_eq!(summary.total.failures.total(), 0);
    let first_byte = summary.times.first_byte.unwrap();
    assert_eq!(first_byte.max.value, MS);
    assert_eq!(summary.times.service.unwrap().min, 3 * MS);
}

#[test]
fn interim_answers_do_not_count() {
    let answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
    let summary = carry_out(&posting(), Always(vec![(MS, Act::Send(answer.to_vec()))])).summary;
    assert_eq!(summary.total.statuses.sorted(), [(204, 1000)]);
}

#[test]
fn a_408_on_an_idle_connection_is_nobodys_failure() {
    struct Impatient;
    impl Peer for Impatient {
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
            let timeout = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
            vec![(MS, Act::Send(HTTP.answer.to_vec())), (20 * MS, Act::Send(timeout.to_vec())), (20 * MS, Act::Close)]
        }
    }
    let load = brunt_plan::plan::Load::Open {
        profile: "10".parse().unwrap(),
        arrivals: brunt_plan::arrivals::Spread::Uniform,
    };
    let summary = carry_out(&Plan { load, ..plan(HTTP.url) }, Impatient).summary;
    assert_eq!(summary.total.statuses.sorted(), [(200, 10)]);
    assert_eq!(summary.total.failures.total(), 0, "{:?}", summary.total.failures);
}
