//! Requests of two clients, made up at random: neither is ever given words of the other's.
//!
//! The upstream answers with all that it was sent. What each client is told is compared with what the upstream says of the
//! same request through a proxy that coalesces nothing: they may differ only in fields of the harmless list, which stands
//! in `rules.rs`, written from the documentation and without a line of the layer. The clock is made up, so an hour takes none.
//!
//! - `cargo test -p brunt-proxy --test two_clients` makes some thousand pairs. `make test` has it go on for a minute.
//! - `TWO_CLIENTS_SECONDS=600` goes on for that long, with other seeds each time it runs.
//! - `TWO_CLIENTS_SEED=7` makes the pairs of this seed alone, as a failure says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]
#![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
#![allow(clippy::format_push_string, clippy::format_collect, reason = "text is short")]

mod chance;
mod layer;
mod requests;
mod rules;
#[path = "../hostile/wire.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod wire;
mod world;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::chance::Chance;
use crate::layer::Layered;
use crate::requests::{Made, Settings};
use crate::rules::{Seen, difference};
use crate::world::{Answer, Received, World};

/// The pairs of a world: what it remembers of one is there for the next.
const PAIRS: usize = 30;

/// The worlds of a short run.
const FEW: u64 = 60;

/// What was seen in all pairs: a test that shares nothing finds nothing.
#[derive(Debug, Default)]
struct Tally {
    pairs: usize,
    /// Clients that were given the other's answer.
    shared: usize,
    /// Of them those whose requests differed, in what is harmless.
    shared_unlike: usize,
    /// Pairs in which both were refused by the proxy.
    refused: usize,
}

/// How an upstream answers, by chance: alike for both clients.
fn answer(chance: &mut Chance) -> Answer {
    let status = if chance.one_in(5) { *chance.pick(&[203, 301, 302, 404, 410, 400, 429, 500, 503]) } else { 200 };
    let mut fields = Vec::new();
    if chance.one_in(4) {
        let vary =
            ["User-Agent", "Accept", "*", "Cookie, User-Agent", "X-Forwarded-For", "traceparent", "X-Zqw", "Origin"];
        fields.push(("Vary", *chance.pick(&vary)));
    }
    if chance.one_in(8) {
        let control = ["private", "no-store", "no-cache", "max-age=60", "public, s-maxage=3", "Private=\"x\""];
        fields.push(("Cache-Control", *chance.pick(&control)));
    }
    if chance.one_in(12) {
        fields.push(("Set-Cookie", "sid=1"));
    }
    Answer { status, fields, in_pieces: chance.one_in(3) }
}

/// Fails if one of two clients was given what it must not have.
fn judge(
    settings: &Settings,
    answer: &Answer,
    pair: [&Made; 2],
    told: [&Received; 2],
    alone: [&Received; 2],
    tally: &mut Tally,
) {
    tally.pairs += 1;
    let is_like = pair[0].fields == pair[1].fields;
    for client in 0..2 {
        let context = || {
            format!(
                "{settings:?}\n{answer:?}\nthis client:\n{}\nthe other:\n{}\nwas told: {:?}\nalone: {:?}",
                pair[client],
                pair[1 - client],
                told[client],
                alone[client]
            )
        };
        assert_eq!(told[client].status, alone[client].status, "another status\n{}", context());
        let (Some(got), Some(own)) = (&told[client].seen, &alone[client].seen) else {
            assert_eq!(told[client].seen.is_some(), alone[client].seen.is_some(), "{}", context());
            tally.refused += 1;
            continue;
        };
        if let Some(difference) = difference(got, own, settings, answer) {
            panic!("{difference}\n{}", context());
        }
        let is_others = client_of(got).is_some_and(|from| from != client_of(own).unwrap_or(from));
        if is_others {
            if let Some(rule) = rules::must_be_alone(own, settings, answer) {
                panic!("{rule} was answered with another's answer\n{}", context());
            }
            tally.shared += 1;
            tally.shared_unlike += usize::from(!is_like);
        }
    }
}

/// The client that a request came from: each names itself in a field that is harmless.
fn client_of(seen: &Seen) -> Option<&str> {
    seen.fields.iter().find(|(name, _)| name == "x-request-id").map(|(_, value)| value.as_str())
}

fn pairs_of(seed: u64, tally: &mut Tally) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut chance = Chance::new(seed);
        let settings = Settings::by(&mut chance);
        let layered = Layered::new(&settings);
        let [coalescing, plain] = [true, false].map(|coalesces| World::new(&settings, coalesces));
        for number in 0..PAIRS {
            let answer = answer(&mut chance);
            let [one, other] = requests::pair(&mut chance, number);
            let mut peers = [(); 2].map(|()| *chance.pick(&world::PEERS));
            if !chance.one_in(4) {
                peers = *chance.pick(&[[world::PEERS[0], world::PEERS[1]], [peers[0], peers[0]]]);
            }
            let later = *chance.pick(&[0, 0, 0, 5, 15, 25]);
            coalescing.answers_with(&answer);
            plain.answers_with(&answer);
            layered.answers_with(&answer);
            let (first, second) = tokio::join!(
                coalescing.asks(&one, peers[0], Duration::ZERO),
                coalescing.asks(&other, peers[1], Duration::from_millis(later))
            );
            let alone =
                [plain.asks(&one, peers[0], Duration::ZERO).await, plain.asks(&other, peers[1], Duration::ZERO).await];
            // What is held goes before the upstream answers otherwise, and what is remembered seldom does.
            tokio::time::sleep(Duration::from_millis(if chance.one_in(10) { 6000 } else { 100 })).await;
            judge(&settings, &answer, [&one, &other], [&first, &second], [&alone[0], &alone[1]], tally);
            let later = Duration::from_millis(later);
            let ([first, own], [second, others]) =
                tokio::join!(layered.asks(&one, Duration::ZERO), layered.asks(&other, later));
            judge(&settings, &answer, [&one, &other], [&first, &second], [&own, &others], tally);
        }
    });
}

#[test]
fn neither_of_two_clients_is_given_words_of_the_others() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let mut tally = Tally::default();
    let mut run = |seed| {
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pairs_of(seed, &mut tally)));
        assert!(ran.is_ok(), "TWO_CLIENTS_SEED={seed} cargo test -p brunt-proxy --test two_clients");
    };
    if let Some(seed) = number("TWO_CLIENTS_SEED") {
        return run(seed);
    }
    match number("TWO_CLIENTS_SECONDS") {
        None => (0..FEW).for_each(run),
        Some(seconds) => {
            let mut seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() << 20;
            let began = Instant::now();
            while began.elapsed().as_secs() < seconds {
                run(seed);
                seed += 1;
            }
        }
    }
    println!("{tally:?}");
    assert!(tally.shared > tally.pairs / 10 && tally.shared_unlike > tally.pairs / 50, "{tally:?}");
    assert!(tally.refused < tally.pairs, "{tally:?}");
}

/// A layer in which any rule of the key is missing must not pass: the judge itself is put to the test.
#[test]
fn the_judge_finds_each_kind_of_leak() {
    let settings = Settings::default();
    let answer = Answer { status: 200, fields: Vec::new(), in_pieces: false };
    let seen = |start: &str, fields: &[(&str, &str)]| {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Seen { start: start.to_owned(), fields, body: Vec::new() }
    };
    let get = "GET / HTTP/1.1";
    let differs = |one: &Seen, other: &Seen, answer: &Answer| difference(one, other, &settings, answer).is_some();
    let empty = seen(get, &[]);
    for (name, one, other) in [
        ("x-vault-token", "1", "2"),
        ("accept-profile", "a", "b"),
        ("x-zqw", "a", "A"),
        ("x-original-path", "/a", "/b"),
        ("cache-control", "no-cache", "max-age=0"),
        ("baggage", "sentry-a=1,user=2", "sentry-a=1"),
        ("x-forwarded-for", "10.0.0.1", "192.0.2.1"),
        ("x-forwarded-for", "10.0.0.1", "private"),
        ("cookie", "_ga=1", "_ga=1, sid=2"),
        ("forwarded", "for=10.0.0.1;host=a", "for=10.0.0.1;host=b"),
        ("user_agent", "a", "b"),
    ] {
        let (one, other) = (seen(get, &[(name, one)]), seen(get, &[(name, other)]));
        assert!(differs(&one, &other, &answer) && differs(&one, &empty, &answer), "{name}");
    }
    for (name, one, other) in [
        ("user-agent", "a", "b"),
        ("traceparent", "a", "b"),
        ("cache-control", "max-age=0", "max-age=9"),
        ("baggage", "sentry-a=1", "sentry-a=2"),
        ("x-forwarded-for", "192.0.2.1", "203.0.113.9"),
        ("forwarded", "for=192.0.2.1;host=a", "for=203.0.113.9;host=a"),
    ] {
        let (one, other) = (seen(get, &[(name, one)]), seen(get, &[(name, other)]));
        assert!(!differs(&one, &other, &answer), "{name}");
        let varies = Answer {
            fields: vec![(
                "Vary",
                if name == "forwarded" {
                    "Forwarded"
                } else {
                    "x, User-Agent, traceparent, cache-control, baggage, x-forwarded-for"
                },
            )],
            ..answer.clone()
        };
        assert!(differs(&one, &other, &varies), "{name}");
    }
    assert!(differs(&seen("GET /a HTTP/1.1", &[]), &seen("GET /%61 HTTP/1.1", &[]), &answer));
    assert!(differs(&seen("GET / HTTP/1.1", &[]), &seen("HEAD / HTTP/1.1", &[]), &answer));
    for alone in [seen("POST / HTTP/1.1", &[]), seen(get, &[("cookie", "a")]), seen(get, &[("authorization", "a")])] {
        assert!(rules::must_be_alone(&alone, &settings, &answer).is_some());
    }
    let private = Answer { fields: vec![("Cache-Control", "x, Private")], ..answer };
    assert!(rules::must_be_alone(&empty, &settings, &private).is_some());
}
