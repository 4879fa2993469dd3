//! Rule 6: waiting is bounded, in number and for each in time.

use std::time::Duration;

use brunt_coalesce::{CoalesceLayer, WaitAtMost};
use tokio::time::{advance, timeout};

use crate::origin::{Origin, request};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn waiters_are_bounded_and_further_ones_go_to_the_handler() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_members(3));
    let mut clients: Vec<_> = (0..5).map(|_| origin.get("/", &[])).collect();
    let call = origin.call();
    for text in ["fourth", "fifth"] {
        origin.call().answer(text);
    }
    // Without waiting for the flight.
    clients.pop().unwrap().has_all("fifth");
    clients.pop().unwrap().has_all("fourth");
    call.answer("shared");
    clients.iter_mut().for_each(|client| client.has_all("shared"));
    assert_eq!(origin.counters().refused, 2);
    origin.is_empty(5);
}

#[tokio::test(start_paused = true)]
async fn a_wait_over_the_limit_goes_to_the_handler() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_wait(SECOND));
    let (mut leader, mut follower) = (origin.get("/", &[]), origin.get("/", &[]));
    let call = origin.call();
    advance(Duration::from_millis(999)).await;
    assert!(!follower.poll());
    assert_eq!(origin.calls(), 0);
    advance(Duration::from_millis(2)).await;
    assert!(!follower.poll());
    origin.call().answer("its own");
    follower.has_all("its own");
    // The leader is not hurried.
    assert!(!leader.poll());
    call.answer("late");
    leader.has_all("late");
    drop((leader, follower));
    origin.is_empty(2);
}

#[tokio::test(start_paused = true)]
async fn each_waiter_has_its_own_limit() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_wait(60 * SECOND));
    let leader = origin.get("/", &[]);
    let patient = origin.get("/", &[]);
    let mut hasty = request("GET", "/", &[]);
    hasty.extensions_mut().insert(WaitAtMost(SECOND));
    let mut hasty = origin.ask(hasty);
    let _call = origin.call();
    advance(2 * SECOND).await;
    assert!(!hasty.poll());
    origin.call().answer("its own");
    hasty.has_all("its own");
    drop((leader, patient, hasty));
    origin.is_empty(3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_around_the_layer_is_its_waiters_alone() {
    let mut origin = Origin::new();
    let mut leader = origin.get("/", &[]);
    let mut hasty = origin.get("/", &[]);
    let mut patient = origin.get("/", &[]);
    let call = origin.call();
    assert!(timeout(SECOND, hasty.wait()).await.is_err());
    drop(hasty);
    assert!(timeout(SECOND, patient.wait()).await.is_err());
    call.answer("shared");
    leader.has_all("shared");
    patient.has_all("shared");
    assert_eq!(origin.counters().vanished, 1);
    origin.is_empty(3);
}

const HOLD: Duration = Duration::from_secs(60);

/// An answer with these headers that is held, and asked for again after this time.
async fn held(headers: &[(&str, &str)], asked: &[(&str, &str)], after: Duration) -> Option<String> {
    let mut origin = Origin::behind(CoalesceLayer::new().hold(HOLD));
    let mut first = origin.get("/", &[]);
    origin.call().answer_with(headers, "made");
    first.has_all("made");
    advance(after).await;
    let mut second = origin.get("/", asked);
    (origin.calls() == 0).then(|| second.header("age"))
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_fresh_and_says_its_age() {
    let two = Duration::from_secs(2);
    assert_eq!(held(&[], &[], two).await.as_deref(), Some("2"));
    assert_eq!(held(&[("cache-control", "max-age=9"), ("age", "5")], &[], two).await.as_deref(), Some("7"));
    for stale in [
        &[("cache-control", "max-age=0, must-revalidate")][..],
        &[("cache-control", "max-age=9, s-maxage=1")],
        &[("cache-control", "max-age=5"), ("age", "4")],
        &[("expires", "0")],
    ] {
        assert_eq!(held(stale, &[], two).await, None, "{stale:?}");
    }
    for (asked, is_taken) in [("max-age=0", false), ("max-age=1", false), ("max-age=2", true), ("no-cache", false)] {
        assert_eq!(held(&[], &[("cache-control", asked)], two).await.is_some(), is_taken, "{asked}");
    }
}
