//! Rule 7: it is no cache.

use std::time::Duration;

use brunt_coalesce::CoalesceLayer;
use tokio::time::advance;

use crate::origin::Origin;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_request_after_the_end_starts_anew() {
    let mut origin = Origin::new();
    for text in ["first", "second"] {
        let mut client = origin.get("/", &[]);
        origin.call().answer(text);
        client.has_all(text);
    }
    origin.is_empty(2);
}

#[test]
fn a_request_after_the_end_starts_anew_though_others_still_read() {
    let mut origin = Origin::new();
    let (mut one, mut slow) = (origin.get("/", &[]), origin.get("/", &[]));
    origin.call().answer("first");
    one.has_all("first");
    let mut next = origin.get("/", &[]);
    origin.call().answer("second");
    slow.has_all("first");
    next.has_all("second");
    origin.is_empty(3);
}

#[test]
fn a_streamed_answer_that_has_ended_is_not_joined() {
    let mut origin = Origin::new();
    let (mut one, mut slow) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], None);
    assert!(one.piece().is_pending() && slow.piece().is_pending());
    source.send("first");
    one.reads("first");
    drop(source);
    one.reads_the_end();
    let _next = origin.get("/", &[]);
    assert_eq!(origin.calls(), 1);
    slow.has_all("first");
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_be_held_for_a_time() {
    let mut origin = Origin::behind(CoalesceLayer::new().hold(50 * MS));
    let mut first = origin.get("/", &[]);
    drop(origin.call().begin(404, &[], None));
    assert_eq!(first.head().status(), 404);
    advance(49 * MS).await;
    let mut herd: Vec<_> = (0..10).map(|_| origin.get("/", &[])).collect();
    herd.iter_mut().for_each(|client| assert_eq!(client.head().status(), 404));
    assert_eq!(origin.calls(), 0);
    advance(2 * MS).await;
    let mut next = origin.get("/", &[]);
    origin.call().answer_with(&[("vary", "x-tenant")], "anew");
    next.has_all("anew");
    // What is held is told apart as what is shared is.
    let mut other = origin.get("/", &[("x-tenant", "two")]);
    origin.call().answer("another");
    other.has_all("another");
    advance(51 * MS).await;
    drop(origin.get("/x", &[]));
    drop((first, herd, next, other));
    origin.is_empty(14);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_answer_is_held_once_it_has_ended() {
    let mut origin = Origin::behind(CoalesceLayer::new().hold(50 * MS));
    let mut first = origin.get("/", &[]);
    let source = origin.call().begin(200, &[], None);
    assert!(first.piece().is_pending());
    source.send("body");
    first.reads("body");
    drop(source);
    first.reads_the_end();
    drop(first);
    let mut next = origin.get("/", &[]);
    next.has_all("body");
    advance(51 * MS).await;
    drop(origin.get("/x", &[]));
    origin.is_empty(3);
}

#[tokio::test(start_paused = true)]
async fn what_is_private_is_not_held() {
    let mut origin = Origin::behind(CoalesceLayer::new().hold(50 * MS));
    let mut first = origin.get("/", &[]);
    origin.call().answer_with(&[("set-cookie", "a=b")], "first");
    first.reads("first");
    let _next = origin.get("/", &[]);
    assert_eq!(origin.calls(), 1);
}
