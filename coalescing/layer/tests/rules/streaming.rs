//! Rule 5: streaming.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake};
use std::time::Duration;

use brunt_coalesce::{BodyError, CoalesceLayer};
use bytes::Bytes;
use http::HeaderMap;

use crate::origin::{Client, Origin, Source};

const KB: usize = 1024;

#[test]
fn headers_and_pieces_reach_everyone_as_they_come() {
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[("x-a", "1")], None);
    assert_eq!((one.header("x-a"), two.header("x-a")), ("1".to_owned(), "1".to_owned()));
    assert!(one.piece().is_pending() && two.piece().is_pending());
    source.send("first");
    two.reads("first");
    one.reads("first");
    source.send("second");
    one.reads("second");
    two.reads("second");
    assert!(one.piece().is_pending());
    drop(source);
    one.reads_the_end();
    two.reads_the_end();
    drop((one, two));
    origin.is_empty(2);
}

#[test]
fn the_leader_may_go_away_in_the_middle_of_the_body() {
    let mut origin = Origin::new();
    let (mut leader, mut follower) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], None);
    source.send("first");
    leader.reads("first");
    drop(leader);
    source.send("second");
    follower.reads("first");
    follower.reads("second");
    drop(source);
    follower.reads_the_end();
    drop(follower);
    origin.is_empty(2);
}

#[test]
fn a_failed_body_does_not_end_as_if_it_were_whole() {
    for panics in [false, true] {
        let mut origin = Origin::new();
        let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
        let source = origin.call().begin(200, &[], None);
        source.send("first");
        one.reads("first");
        if panics {
            source.send("panic");
        } else {
            source.fail();
        }
        assert!(matches!(one.piece(), Poll::Ready(Some(Err(_)))));
        two.reads("first");
        assert!(matches!(two.piece(), Poll::Ready(Some(Err(_)))));
        drop((one, two));
        origin.is_empty(2);
    }
}

#[test]
fn a_joiner_may_come_until_the_headers_are_out_and_later_while_all_is_held() {
    let mut origin = Origin::behind(CoalesceLayer::new().join_late(Duration::from_secs(1), 100));
    let mut one = origin.get("/", &[]);
    let call = origin.call();
    let mut two = origin.get("/", &[]);
    let source = call.begin(200, &[], None);
    source.send("first");
    one.reads("first");
    let mut late = origin.get("/", &[]);
    late.reads("first");
    source.data(Bytes::from(vec![0; 200]));
    assert!(matches!(one.piece(), Poll::Ready(Some(Ok(_)))));
    assert_eq!(origin.calls(), 0);
    // More was sent than is kept.
    let too_late = origin.get("/", &[]);
    origin.call();
    two.reads("first");
    drop((one, two, late, too_late, source));
    origin.is_empty(4);
}

#[tokio::test(start_paused = true)]
async fn a_joiner_may_not_come_long_after_the_headers() {
    let mut origin = Origin::behind(CoalesceLayer::new().join_late(Duration::from_secs(1), KB));
    let mut one = origin.get("/", &[]);
    let source = origin.call().begin(200, &[], None);
    source.send("first");
    one.reads("first");
    tokio::time::advance(Duration::from_secs(1)).await;
    let late = origin.get("/", &[]);
    origin.call();
    drop((one, late, source));
    origin.is_empty(2);
}

/// A fast and a slow reader of one flight that holds 16 KiB, and the body's source.
fn fast_and_slow() -> (Origin, Client, Client, Source) {
    let mut origin = Origin::behind(CoalesceLayer::new().max_bytes_per_flight(16 * KB));
    let (mut fast, mut slow) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], None);
    fast.head();
    slow.head();
    (origin, fast, slow, source)
}

/// Reads as many pieces as there are; how many those were.
/// Whether somebody was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn reads_all(client: &mut Client) -> usize {
    std::iter::from_fn(|| matches!(client.piece(), Poll::Ready(Some(Ok(_)))).then_some(())).count()
}

#[tokio::test(start_paused = true)]
async fn the_fast_wait_for_the_slow_once_enough_is_held() {
    let (origin, mut fast, mut slow, source) = fast_and_slow();
    (0..100).for_each(|_| source.data(Bytes::from(vec![b'x'; KB])));
    let ahead = reads_all(&mut fast);
    assert!((10..20).contains(&ahead), "{ahead} pieces ahead");
    assert!(origin.layer.held_bytes() <= 18 * KB, "{}", origin.layer.held_bytes());
    // The slow one goes on, and with it the fast one.
    for _ in 0..100 {
        assert!(matches!(slow.piece(), Poll::Ready(Some(Ok(_)))));
        reads_all(&mut fast);
    }
    drop(source);
    fast.reads_the_end();
    slow.reads_the_end();
    assert_eq!(origin.counters().cut_off, 0);
    drop((fast, slow));
    origin.is_empty(2);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_almost_nothing_is_cut_off_after_five_seconds() {
    let (origin, mut fast, mut slow, source) = fast_and_slow();
    (0..100).for_each(|_| source.data(Bytes::from(vec![b'x'; KB])));
    let ahead = reads_all(&mut fast);
    tokio::time::advance(Duration::from_millis(4_900)).await;
    assert!(matches!(slow.piece(), Poll::Ready(Some(Ok(_)))));
    assert_eq!(reads_all(&mut fast), 1, "held up for as long as the slow one has");
    tokio::time::advance(Duration::from_millis(200)).await;
    assert_eq!(reads_all(&mut fast), 99 - ahead);
    let told = slow.piece();
    assert!(matches!(&told, Poll::Ready(Some(Err(BodyError::SlowReader { .. })))), "{told:?}");
    drop(source);
    fast.reads_the_end();
    assert_eq!(origin.counters().cut_off, 1);
    drop((fast, slow));
    origin.is_empty(2);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_slow_and_steady_keeps_its_body() {
    let (origin, mut fast, mut slow, source) = fast_and_slow();
    (0..2000).for_each(|_| source.data(Bytes::from(vec![b'x'; KB])));
    reads_all(&mut fast);
    // 80 KiB a second, for 20 seconds.
    for _ in 0..1600 {
        assert!(matches!(slow.piece(), Poll::Ready(Some(Ok(_)))));
        tokio::time::advance(Duration::from_micros(12_500)).await;
        reads_all(&mut fast);
    }
    assert_eq!(origin.counters().cut_off, 0);
    drop((fast, slow, source));
    origin.is_empty(2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_that_leaves_holds_up_nobody() {
    let (origin, mut fast, slow, source) = fast_and_slow();
    (0..100).for_each(|_| source.data(Bytes::from(vec![b'x'; KB])));
    let ahead = reads_all(&mut fast);
    let woken = Arc::new(Woken::default());
    assert!(fast.piece_by(&Arc::clone(&woken).into()).is_pending());
    drop(slow);
    assert!(woken.0.load(Ordering::Relaxed), "it waits for somebody who is gone");
    assert_eq!(reads_all(&mut fast), 100 - ahead);
    drop((fast, source));
    origin.is_empty(2);
}

#[tokio::test(start_paused = true)]
async fn who_was_sent_nothing_yet_falls_back_to_its_own_request() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_bytes_per_flight(16 * KB));
    let (mut fast, mut slow) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], None);
    (0..100).for_each(|_| source.data(Bytes::from(vec![b'x'; KB])));
    let ahead = reads_all(&mut fast);
    assert!(ahead < 100);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(reads_all(&mut fast), 100 - ahead);
    assert!(!slow.poll());
    origin.call().answer("its own");
    slow.has_all("its own");
    drop((source, fast, slow));
    origin.is_empty(2);
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_everyone_left_ends_though_the_last_was_cut_off() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_bytes_per_flight(16 * KB));
    let (mut fast, mut slow) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], None);
    (0..100).for_each(|_| source.data(Bytes::from(vec![b'x'; KB])));
    let ahead = reads_all(&mut fast);
    assert!(ahead < 100);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(reads_all(&mut fast), 100 - ahead);
    drop(fast);
    assert!(!slow.poll());
    assert_eq!(origin.counters().cancelled, 1);
    origin.call().answer("its own");
    slow.has_all("its own");
    drop(slow);
    origin.is_empty(2);
}

#[test]
fn all_flights_together_hold_no_more_than_the_limit() {
    const PIECES: usize = 40;
    // Half of it is shared in equal parts. Beyond its part each flight may hold one piece, and keys and heads count.
    let total = 512 * KB;
    let mut origin = Origin::behind(CoalesceLayer::new().max_bytes(total));
    let mut flights: Vec<_> = (0..20)
        .map(|number| {
            let uri = format!("/{number}");
            let (fast, slow) = (origin.get(&uri, &[]), origin.get(&uri, &[]));
            (fast, slow, origin.call().begin(200, &[], None))
        })
        .collect();
    let mut held_up = 0;
    for (fast, slow, source) in &mut flights {
        slow.head();
        let mut read = 0;
        for _ in 0..PIECES {
            source.data(Bytes::from(vec![b'x'; KB]));
            read += reads_all(fast);
            assert!(origin.layer.held_bytes() <= total, "{}", origin.layer.held_bytes());
        }
        held_up += usize::from(read < PIECES);
    }
    // The first ones have all the memory that they want.
    assert!((1..20).contains(&held_up), "{held_up} were held up");
    drop(flights);
    origin.is_empty(40);
}

#[test]
fn the_fastest_reader_sets_the_pace() {
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], None);
    one.head();
    two.head();
    (0..100).for_each(|_| source.send("piece"));
    // Nobody reads, so nothing is made.
    assert_eq!(source.asked.load(Ordering::Relaxed), 0);
    for _ in 0..10 {
        one.reads("piece");
    }
    assert_eq!(source.asked.load(Ordering::Relaxed), 10);
    two.reads("piece");
    assert_eq!(source.asked.load(Ordering::Relaxed), 10);
}

#[test]
fn event_streams_pass_straight_through() {
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let events = [("content-type", "text/event-stream;charset=utf-8")];
    let source = origin.call().begin(200, &events, None);
    assert!(one.poll() && !two.poll());
    let other = origin.call().begin(200, &events, None);
    source.send("event 1");
    one.reads("event 1");
    other.send("event 2");
    two.reads("event 2");
    assert!(one.piece().is_pending());
    assert_eq!(origin.layer.held_bytes(), 0);
    drop((one, two, source, other));
    origin.is_empty(2);
}

#[test]
fn a_body_known_to_be_longer_than_may_be_held_is_not_shared() {
    let mut origin = Origin::behind(CoalesceLayer::new().max_bytes_per_flight(KB));
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let _source = origin.call().begin(200, &[], Some(KB as u64 + 1));
    assert!(one.poll() && !two.poll());
    assert_eq!(origin.calls(), 1);
}

#[test]
fn trailers_reach_everyone() {
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[("trailer", "x-sum")], None);
    source.send("body");
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "4".parse().unwrap());
    source.trailers(trailers.clone());
    drop(source);
    for client in [&mut one, &mut two] {
        assert_eq!(client.header("trailer"), "x-sum");
        let hint = http_body::Body::size_hint(client.head().body());
        assert_eq!(hint.exact(), None, "a server that knows the length sends no trailers");
        client.reads("body");
        match client.piece() {
            Poll::Ready(Some(Ok(frame))) => assert_eq!(frame.into_trailers().unwrap(), trailers),
            other => panic!("expected trailers, got {other:?}"),
        }
        client.reads_the_end();
    }
}

#[test]
fn everyone_knows_the_end_of_a_body_that_knows_it() {
    use http_body::Body as _;
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], None);
    assert!(one.piece().is_pending() && two.piece().is_pending());
    source.send("first");
    source.send_last("last");
    for client in [&mut one, &mut two] {
        client.reads("first");
        assert!(!client.head().body().is_end_stream());
        client.reads("last");
        assert!(client.head().body().is_end_stream());
    }
    assert_eq!(origin.counters().ended, 1);
    drop((one, two));
    origin.is_empty(2);
}

#[test]
fn a_flight_has_ended_when_all_bytes_are_read_though_nobody_asks_for_the_end() {
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], Some(4));
    assert!(one.piece().is_pending() && two.piece().is_pending());
    source.send("body");
    one.reads("body");
    two.reads("body");
    drop((one, two));
    assert_eq!((origin.counters().ended, origin.counters().cancelled), (1, 0));
    origin.is_empty(2);
}

#[test]
fn lengths_are_kept() {
    use http_body::Body as _;
    let mut origin = Origin::new();
    let (mut one, mut two) = (origin.get("/", &[]), origin.get("/", &[]));
    let source = origin.call().begin(200, &[], Some(10));
    for client in [&mut one, &mut two] {
        assert_eq!(client.head().body().size_hint().exact(), Some(10));
    }
    source.send("four");
    for client in [&mut one, &mut two] {
        client.reads("four");
        assert_eq!(client.head().body().size_hint().exact(), Some(6));
    }
}
