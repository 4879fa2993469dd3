//! Whole connections over a network that loses, doubles, reorders and cuts, in time that is made up.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod world;

use proptest::prelude::*;

use world::{Fate, Faults, Request, World};

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let size = prop_oneof![Just(0), 1..2000_usize, 2000..200_000_usize];
    let request = (size.clone(), size).prop_map(|(up, down)| Request { up, down });
    prop::collection::vec(request, 1..20)
}

fn faults() -> impl Strategy<Value = Faults> {
    (
        0..20_u32,
        0..10_u32,
        0..30_000_000_u64,
        prop::option::of((0..400_000_000_u64, 1..1_500_000_000_u64)),
        any::<u64>(),
    )
        .prop_map(|(loss, doubled, jitter_ns, cut, seed)| Faults {
            loss,
            doubled,
            jitter_ns,
            cut,
            seed,
            ..Faults::default()
        })
}

/// What became of each request, one after the other.
fn fates(faults: Faults, requests: &[Request]) -> (World, Vec<Option<Fate>>) {
    let mut world = World::new(faults);
    world.ask(requests);
    world.run();
    let fates = world.fates.clone();
    (world, fates)
}

#[test]
fn a_quiet_network_answers_everything_in_two_round_trips() {
    let requests = vec![Request { up: 0, down: 100 }; 50];
    let (world, fates) = fates(Faults::default(), &requests);
    assert!(fates.iter().all(|fate| *fate == Some(Fate::Answered)), "{fates:?}");
    assert_eq!(world.served, 50);
    // The way takes 10 ms: the handshake a round trip, the answers another.
    assert!((40_000_000..60_000_000).contains(&world.last_answer), "{}", world.last_answer);
}

#[test]
fn the_peers_limit_on_streams_is_kept() {
    let (world, fates) = fates(Faults { streams: 3, ..Faults::default() }, &vec![Request { up: 10, down: 10 }; 20]);
    assert!(fates.iter().all(|fate| *fate == Some(Fate::Answered)), "{fates:?}");
    assert_eq!((world.served, world.most_at_once), (20, 3));
}

#[test]
fn a_small_window_holds_bodies_back_and_they_arrive() {
    let faults = Faults { window: 3000, ..Faults::default() };
    let (world, fates) = fates(faults, &[Request { up: 100_000, down: 100_000 }; 3]);
    assert!(fates.iter().all(|fate| *fate == Some(Fate::Answered)), "{fates:?}");
    assert!(world.was_held_back);
}

#[test]
fn silence_is_told_as_the_idle_timeout() {
    let faults = Faults { cut: Some((0, u64::MAX)), idle_ns: 2_000_000_000, ..Faults::default() };
    let (world, fates) = fates(faults, &[Request { up: 0, down: 0 }]);
    assert_eq!(
        (fates, world.ending.map(|ending| ending.cause)),
        (vec![Some(Fate::Lost)], Some(brunt_quic::Cause::Idle))
    );
}

#[test]
fn a_server_that_leaves_says_what_it_has_not_processed() {
    let faults = Faults { leaves_after: Some(5), ..Faults::default() };
    let (world, fates) = fates(faults, &vec![Request { up: 0, down: 100_000 }; 200]);
    let answered = fates.iter().filter(|fate| **fate == Some(Fate::Answered)).count() as u64;
    assert_eq!(answered, world.served);
    assert!((5..200).contains(&answered), "{answered}");
    assert!(fates.iter().all(|fate| matches!(fate, Some(Fate::Answered | Fate::Unprocessed) | None)), "{fates:?}");
}

#[test]
fn a_retry_and_a_refusal() {
    let (world, fates) = fates(Faults { retries: true, ..Faults::default() }, &[Request { up: 0, down: 10 }]);
    assert_eq!((fates, world.served), (vec![Some(Fate::Answered)], 1));
    let (world, fates) = fates_refused();
    assert_eq!(
        (fates, world.ending.map(|ending| ending.cause)),
        (vec![Some(Fate::Lost)], Some(brunt_quic::Cause::Refused))
    );
}

fn fates_refused() -> (World, Vec<Option<Fate>>) {
    fates(Faults { refuses: true, ..Faults::default() }, &[Request { up: 0, down: 10 }])
}

#[test]
fn a_certificate_that_is_not_trusted_is_a_failure_of_tls() {
    let (world, fates) = fates(Faults { distrusts: true, ..Faults::default() }, &[Request { up: 0, down: 10 }]);
    let ending = world.ending.unwrap();
    assert_eq!((fates, ending.cause), (vec![Some(Fate::Lost)], brunt_quic::Cause::Tls));
    assert!(ending.reason.contains("UnknownIssuer"), "{}", ending.reason);
}

#[test]
fn a_server_without_the_protocol_is_a_failure_of_tls() {
    let (world, _) = fates(Faults { alpn: "h4", ..Faults::default() }, &[Request { up: 0, down: 10 }]);
    let ending = world.ending.unwrap();
    assert_eq!(ending.cause, brunt_quic::Cause::Tls);
    assert!(ending.reason.contains("NoApplicationProtocol"), "{}", ending.reason);
}

#[test]
fn a_server_that_restarted_has_forgotten_the_connection() {
    let faults = Faults { forgets_after: Some(3), idle_ns: 60_000_000_000, ..Faults::default() };
    let (world, fates) = fates(faults, &vec![Request { up: 0, down: 100_000 }; 30]);
    assert!(fates.iter().all(Option::is_some), "{fates:?}");
    assert!(fates.contains(&Some(Fate::Lost)));
    assert!(world.ending.is_some());
}

/// A world whose client has a session of the server, and connects again; and when.
fn resuming(faults: Faults, another: Option<u32>, requests: &[Request]) -> (World, u64) {
    let (mut world, _) = fates(faults, &[Request { up: 0, down: 10 }]);
    let began = world.now();
    world.again(another);
    world.ask(requests);
    (world, began)
}

#[test]
fn requests_go_with_the_first_datagrams_of_a_session_that_is_resumed() {
    let (mut world, began) = resuming(Faults::default(), None, &vec![Request { up: 0, down: 100 }; 20]);
    assert!(world.client().is_early());
    world.run();
    assert!(world.fates.iter().all(|fate| *fate == Some(Fate::Answered)), "{:?}", world.fates);
    assert!(world.client().is_early_taken() && !world.client().is_early());
    assert_eq!(world.served, 21);
    // One round trip for all.
    assert!((20_000_000..30_000_000).contains(&(world.last_answer - began)), "{}", world.last_answer - began);
}

#[test]
fn early_data_that_is_refused_goes_again_after_the_handshake() {
    for streams in [100, 3] {
        let (mut world, began) = resuming(Faults::default(), Some(streams), &vec![Request { up: 0, down: 100 }; 20]);
        assert!(world.client().is_early());
        world.run();
        assert!(world.fates.iter().all(|fate| *fate == Some(Fate::Answered)), "{streams}: {:?}", world.fates);
        assert!(!world.client().is_early_taken());
        assert_eq!((world.served, world.last_answer - began >= 40_000_000), (21, true), "{streams}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// However the network behaves, each request ends once, every body is whole, and what was answered was served.
    #[test]
    fn sums_close_over_a_bad_network(faults in faults(), requests in requests()) {
        let (world, fates) = fates(faults, &requests);
        prop_assert!(fates.iter().all(Option::is_some), "{:?} at {}", fates, world.now());
        let answered = fates.iter().filter(|fate| **fate == Some(Fate::Answered)).count() as u64;
        prop_assert!(answered <= world.served);
        if world.ending.is_none() {
            prop_assert_eq!(answered, requests.len() as u64);
        }
    }

    /// Early data that is taken, refused, or refused by a server that allows less than the one before.
    #[test]
    fn sums_close_with_early_data(
        faults in faults(),
        requests in requests(),
        another in prop::option::of(1..100_u32),
    ) {
        let (mut world, _) = resuming(faults, another, &requests);
        let before = world.served;
        world.run();
        prop_assert!(world.fates.iter().all(Option::is_some), "{:?} at {}", world.fates, world.now());
        let answered = world.fates.iter().filter(|fate| **fate == Some(Fate::Answered)).count() as u64;
        prop_assert!(answered <= world.served - before);
        if world.ending.is_none() {
            prop_assert_eq!(answered, requests.len() as u64);
        }
    }
}
