//! The flight's state machine under every interleaving of a few threads, by loom: the crate's own modules, with loom's
//! mutex in the place of std's. A lost wake-up is a deadlock here, and so is found.

#![allow(
    dead_code,
    unused_imports,
    clippy::inline_always,
    clippy::modulo_one,
    clippy::large_enum_variant,
    reason = "a model of what is used elsewhere"
)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../src/answer.rs"]
mod answer;
#[path = "../src/body.rs"]
mod body;
#[path = "../src/counters.rs"]
mod counters;
#[path = "../src/failed.rs"]
mod failed;
#[path = "../src/fields.rs"]
mod fields;
#[path = "../src/flight/mod.rs"]
mod flight;
#[path = "../src/key.rs"]
mod key;
#[path = "../src/writes.rs"]
mod writes;

/// What `src/sync.rs` is elsewhere: loom's lock, and nothing that differs from one execution to the next.
mod sync {
    pub(crate) type Hasher = std::hash::BuildHasherDefault<AllTheSame>;

    /// By which every key has the same hash.
    #[derive(Debug, Default)]
    pub(crate) struct AllTheSame;

    impl std::hash::Hasher for AllTheSame {
        fn finish(&self) -> u64 {
            0
        }

        fn write(&mut self, _bytes: &[u8]) {}
    }

    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) const SHARDS: usize = 1;
}

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::noop_waker;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use loom::future::block_on;
use loom::thread;

use answer::Judge;
use body::{BodyError, Piece};
use counters::{Event, Tally};
use flight::{Arrival, First, Limits, Member, Outcome, Supply, Table};
use key::{Key, KeyWriter, Target};
use sync::Mutex;

/// Something that one thread opens and another waits for.
#[derive(Clone)]
struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);

impl Gate {
    fn new(open: bool) -> Self {
        Self(Arc::new(Mutex::new((open, None))))
    }

    fn open(&self) {
        let waker = {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A call of a service that waits for a gate, then fails or answers with a body of one piece, which waits for another.
struct Call {
    head: Gate,
    body: Gate,
    fails: bool,
    /// Whether it is known how long the body is.
    sized: bool,
    number: usize,
}

impl Future for Call {
    type Output = Result<Response<OnePiece>, usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.head.poll(cx).is_pending() {
            return Poll::Pending;
        }
        if self.fails {
            return Poll::Ready(Err(self.number));
        }
        Poll::Ready(Ok(Response::new(OnePiece { gate: self.body.clone(), sized: self.sized, sent: false })))
    }
}

struct OnePiece {
    gate: Gate,
    sized: bool,
    sent: bool,
}

impl Body for OnePiece {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.sent {
            return Poll::Ready(None);
        }
        if self.gate.poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.sent = true;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"piece")))))
    }

    fn size_hint(&self) -> SizeHint {
        if self.sized { SizeHint::with_exact(5) } else { SizeHint::new() }
    }
}

type Flights = Arc<Table<Call>>;

fn flights() -> Flights {
    let limits = Limits {
        members: 10,
        flight_bytes: 1 << 20,
        total_bytes: 1 << 20,
        replay_bytes: 1 << 20,
        late: Duration::from_secs(3600),
        promotions: 1,
        share_failures: true,
        hold: Duration::ZERO,
    };
    let judge = Judge { longest: 1 << 20, ranges: false, no_cache: false };
    Arc::new(Table::new(limits, judge, Tally::default(), Arc::default()))
}

fn key() -> Key {
    key_of("/")
}

fn key_of(path: &str) -> Key {
    let target = Target { path_and_query: Some(path), ..Target::default() };
    KeyWriter::new().finish(target, None).unwrap()
}

/// A request that has been polled once.
enum Request {
    Over(End),
    Waits { member: Member<Call>, own: Option<Pin<Box<Call>>>, arrival: Option<Arrival<Call>> },
}

/// A request with this call, which joins or leads.
fn join(flights: &Flights, call: Call) -> Request {
    match flights.first_poll(key(), Box::pin(call), &mut Context::from_waker(&noop_waker())) {
        First::Own(Outcome::Answer(_)) => Request::Over(End::Whole),
        First::Own(Outcome::Error(number)) => Request::Over(End::Error(number)),
        First::Own(Outcome::Panic(_)) | First::Full(_) | First::Alone(..) => {
            panic!("nothing panics, and there is room")
        }
        First::Leads(member, arrival) => Request::Waits { member, own: None, arrival },
        First::Follows(member, own, _) => Request::Waits { member, own: Some(own), arrival: None },
    }
}

fn call(head: &Gate, body: &Gate) -> Call {
    Call { head: head.clone(), body: body.clone(), fails: false, sized: false, number: 0 }
}

/// What came of a request in the end.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Whole,
    Error(usize),
    Failed,
}

/// Follows a request to its end, as its client's task would.
fn finish(request: Request) -> End {
    let (mut member, mut own, mut arrival) = match request {
        Request::Over(end) => return end,
        Request::Waits { member, own, arrival } => (member, own, arrival),
    };
    loop {
        let arrived = arrival.take().unwrap_or_else(|| block_on(poll_fn(|cx| member.poll_head(cx))));
        let supply = match arrived {
            Arrival::Led(_, supply) | Arrival::Followed(_, supply) => supply,
            Arrival::Own(Outcome::Error(number)) => return End::Error(number),
            Arrival::Failed(_) => return End::Failed,
            Arrival::Promoted => {
                member.lead(own.take().unwrap(), key());
                continue;
            }
            Arrival::Own(_) | Arrival::Alone | Arrival::Released => panic!("everything may be shared here"),
        };
        let text = match supply {
            Supply::Held(pieces) => pieces.into_iter().collect::<Vec<_>>(),
            Supply::Reading(_) => read(&mut member),
        };
        assert_eq!(text.iter().map(Piece::data).sum::<usize>(), 5);
        return End::Whole;
    }
}

fn read(member: &mut Member<Call>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while let Some(piece) = block_on(poll_fn(|cx| member.poll_piece(cx))) {
        pieces.push(piece.unwrap().piece);
    }
    pieces
}

/// A client's task is woken once more, and then its client vanishes.
fn poll_once_and_drop(request: Request) {
    if let Request::Waits { mut member, own, .. } = request {
        let mut cx = Context::from_waker(Waker::noop());
        match member.poll_head(&mut cx) {
            Poll::Ready(Arrival::Promoted) => {
                member.lead(own.unwrap(), key());
                drop(member.poll_head(&mut cx));
            }
            Poll::Ready(Arrival::Led(..) | Arrival::Followed(..)) => drop(member.poll_piece(&mut cx)),
            _ => {}
        }
    }
}

/// Nothing is left: no flight, no call, no bytes, and the counters of flights add up.
fn is_empty(flights: &Flights) {
    let c = flights.tally.read();
    assert_eq!(c.flights, c.ended + c.failed + c.cancelled + c.unshared, "{c:?}");
    assert_eq!((flights.len(), flights.held.bytes()), (0, 0));
    assert_eq!(Arc::strong_count(flights), 1);
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn keys_that_have_the_same_hash_are_still_two() {
    check(|| {
        let (flights, closed) = (flights(), Gate::new(false));
        let ask = |path| {
            let call = Box::pin(call(&closed, &closed));
            flights.first_poll(key_of(path), call, &mut Context::from_waker(Waker::noop()))
        };
        let (one, other) = (ask("/one"), ask("/other"));
        assert!(matches!((&one, &other), (First::Leads(..), First::Leads(..))));
        let same = ask("/one");
        assert!(matches!(same, First::Follows(..)));
        drop((one, other, same));
        assert_eq!((flights.len(), flights.tally.read().flights), (0, 2));
    });
}

#[test]
fn everyone_is_answered_whoever_polls() {
    check(|| {
        let (flights, head, body) = (flights(), Gate::new(false), Gate::new(true));
        let leader = join(&flights, call(&head, &body));
        let follower = join(&flights, call(&head, &body));
        let one = thread::spawn(move || finish(leader));
        let opener = thread::spawn(move || head.open());
        assert_eq!(finish(follower), End::Whole);
        assert_eq!(one.join().unwrap(), End::Whole);
        opener.join().unwrap();
        is_empty(&flights);
    });
}

#[test]
fn the_leader_may_vanish_at_any_moment() {
    check(|| {
        let (flights, head, body) = (flights(), Gate::new(false), Gate::new(true));
        let leader = join(&flights, call(&head, &body));
        let follower = join(&flights, call(&head, &body));
        let one = thread::spawn(move || poll_once_and_drop(leader));
        let opener = thread::spawn(move || head.open());
        assert_eq!(finish(follower), End::Whole);
        one.join().unwrap();
        opener.join().unwrap();
        is_empty(&flights);
    });
}

#[test]
fn a_request_comes_as_the_last_one_goes() {
    check(|| {
        let (flights, head, body) = (flights(), Gate::new(false), Gate::new(true));
        let leader = join(&flights, call(&head, &body));
        let one = thread::spawn(move || drop(leader));
        let (theirs, gate) = (Arc::clone(&flights), head.clone());
        let two = thread::spawn(move || finish(join(&theirs, call(&gate, &Gate::new(true)))));
        head.open();
        one.join().unwrap();
        assert_eq!(two.join().unwrap(), End::Whole);
        is_empty(&flights);
    });
}

#[test]
fn two_requests_come_at_once_and_are_answered_at_once() {
    for sized in [false, true] {
        check(move || {
            let (flights, open) = (flights(), Gate::new(true));
            let (theirs, gate) = (Arc::clone(&flights), open.clone());
            let one = thread::spawn(move || finish(join(&theirs, Call { sized, ..call(&gate, &gate) })));
            let two = finish(join(&flights, Call { sized, ..call(&open, &open) }));
            assert_eq!((one.join().unwrap(), two), (End::Whole, End::Whole));
            is_empty(&flights);
        });
    }
}

#[test]
fn two_requests_come_at_once_and_wait() {
    check(|| {
        let (flights, head, body) = (flights(), Gate::new(false), Gate::new(true));
        let (theirs, gates) = (Arc::clone(&flights), (head.clone(), body.clone()));
        let one = thread::spawn(move || finish(join(&theirs, call(&gates.0, &gates.1))));
        let gate = head.clone();
        let opener = thread::spawn(move || gate.open());
        let two = finish(join(&flights, call(&head, &body)));
        assert_eq!((one.join().unwrap(), two), (End::Whole, End::Whole));
        opener.join().unwrap();
        is_empty(&flights);
    });
}

#[test]
fn two_requests_come_at_once_and_one_fails_or_vanishes() {
    check(|| {
        let (flights, open) = (flights(), Gate::new(true));
        let (theirs, gate) = (Arc::clone(&flights), open.clone());
        let one = thread::spawn(move || finish(join(&theirs, Call { fails: true, number: 1, ..call(&gate, &gate) })));
        // It may lead by itself, or in the other's place.
        assert_eq!(finish(join(&flights, call(&open, &open))), End::Whole);
        let one = one.join().unwrap();
        assert!(one == End::Error(1) || one == End::Whole, "{one:?}");
        is_empty(&flights);
    });
    check(|| {
        let (flights, open, later) = (flights(), Gate::new(true), Gate::new(false));
        let (theirs, gates) = (Arc::clone(&flights), (later.clone(), open.clone()));
        let one = thread::spawn(move || poll_once_and_drop(join(&theirs, call(&gates.0, &gates.1))));
        let gate = later.clone();
        let opener = thread::spawn(move || gate.open());
        assert_eq!(finish(join(&flights, call(&later, &open))), End::Whole);
        one.join().unwrap();
        opener.join().unwrap();
        is_empty(&flights);
    });
}

#[test]
fn one_follower_leads_after_a_failure() {
    check(|| {
        let (flights, open, later) = (flights(), Gate::new(true), Gate::new(false));
        let leader = join(&flights, Call { fails: true, number: 1, ..call(&later, &open) });
        let [one, two] = [(); 2].map(|()| join(&flights, call(&open, &open)));
        later.open();
        let leader = thread::spawn(move || finish(leader));
        let one = thread::spawn(move || finish(one));
        assert_eq!(finish(two), End::Whole);
        assert_eq!(one.join().unwrap(), End::Whole);
        assert_eq!(leader.join().unwrap(), End::Error(1));
        is_empty(&flights);
    });
}

#[test]
fn everyone_is_told_when_all_leaders_fail() {
    check(|| {
        let (flights, open, later) = (flights(), Gate::new(true), Gate::new(false));
        let fails = |number, gate| Call { fails: true, number, ..call(gate, &open) };
        let leader = join(&flights, fails(1, &later));
        let (one, two) = (join(&flights, fails(2, &open)), join(&flights, fails(2, &open)));
        later.open();
        let one = thread::spawn(move || finish(one));
        let leader = thread::spawn(move || finish(leader));
        let ends = [finish(two), one.join().unwrap()];
        assert_eq!(leader.join().unwrap(), End::Error(1));
        assert!(ends.contains(&End::Error(2)) && ends.contains(&End::Failed), "{ends:?}");
        is_empty(&flights);
    });
}

#[test]
fn a_promoted_leader_may_vanish() {
    check(|| {
        let (flights, open, first, later) = (flights(), Gate::new(true), Gate::new(false), Gate::new(false));
        let leader = join(&flights, Call { fails: true, number: 1, ..call(&first, &open) });
        let (one, two) = (join(&flights, call(&later, &open)), join(&flights, call(&later, &open)));
        first.open();
        assert_eq!(finish(leader), End::Error(1));
        let vanishes = thread::spawn(move || poll_once_and_drop(one));
        let opener = thread::spawn(move || later.open());
        assert_eq!(finish(two), End::Whole);
        vanishes.join().unwrap();
        opener.join().unwrap();
        is_empty(&flights);
    });
}

#[test]
fn a_reader_may_vanish_in_the_middle_of_the_body() {
    check(|| {
        let (flights, first, later) = (flights(), Gate::new(false), Gate::new(false));
        let leader = join(&flights, call(&first, &later));
        let follower = join(&flights, call(&first, &later));
        first.open();
        let one = thread::spawn(move || poll_once_and_drop(leader));
        let opener = thread::spawn(move || later.open());
        assert_eq!(finish(follower), End::Whole);
        one.join().unwrap();
        opener.join().unwrap();
        is_empty(&flights);
    });
}

#[test]
fn a_request_joins_in_the_middle_of_the_body() {
    check(|| {
        let (flights, open, later) = (flights(), Gate::new(true), Gate::new(false));
        let leader = join(&flights, call(&open, &later));
        let theirs = Arc::clone(&flights);
        let gates = (open.clone(), later.clone());
        let one = thread::spawn(move || finish(leader));
        let joins = thread::spawn(move || finish(join(&theirs, call(&gates.0, &gates.1))));
        later.open();
        assert_eq!((one.join().unwrap(), joins.join().unwrap()), (End::Whole, End::Whole));
        is_empty(&flights);
    });
}
