//! The flight's state machine under every interleaving of a few threads, by loom: the crate's own modules, with loom's
//! mutex in the place of std's. A lost wake-up is a deadlock here, and so is found.

#![allow(dead_code, unused_imports, clippy::modulo_one, reason = "a model of what is used elsewhere")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../src/answer.rs"]
mod answer;
#[path = "../src/body.rs"]
mod body;
#[path = "../src/counters.rs"]
mod counters;
#[path = "../src/flight/mod.rs"]
mod flight;
#[path = "../src/key.rs"]
mod key;
#[path = "../src/table.rs"]
mod table;

/// What `src/sync.rs` is elsewhere: loom's lock, and nothing that differs from one execution to the next.
mod sync {
    pub(crate) type Hasher = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;
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
use http::{Method, Response};
use http_body::{Body, Frame};
use loom::future::block_on;
use loom::thread;

use answer::Judge;
use body::{BodyError, Piece};
use counters::{Event, Tally};
use flight::{Arrival, Limits, Member, Outcome, Supply};
use key::Key;
use sync::Mutex;
use table::{Boarding, Table};

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
        Poll::Ready(Ok(Response::new(OnePiece { gate: self.body.clone(), sent: false })))
    }
}

struct OnePiece {
    gate: Gate,
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
        hold: Duration::ZERO,
    };
    let judge = Judge { longest: 1 << 20, ranges: false, no_cache: false };
    Arc::new(Table::new(limits, judge, Tally::default(), Arc::default()))
}

fn key() -> Key {
    let (host, path_and_query) = (None, None);
    Key { method: Method::GET, scheme: None, authority: None, host, path_and_query, headers: Vec::new(), own: None }
}

/// A request with this call, which joins or leads.
fn board(flights: &Flights, call: Call) -> (Member<Call>, Option<Call>) {
    match flights.board(key(), call, |call| (call, Vec::new())) {
        Boarding::Leads(member) => {
            flights.tally.count(Event::FlightStarted);
            (member, None)
        }
        Boarding::Follows(member, call) => (member, Some(call)),
        Boarding::Full(_) => panic!("there is room"),
    }
}

fn call(head: &Gate, body: &Gate) -> Call {
    Call { head: head.clone(), body: body.clone(), fails: false, number: 0 }
}

/// What came of a request in the end.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Whole,
    Error(usize),
    Failed,
}

/// Follows a request to its end, as its client's task would.
fn finish((mut member, mut own): (Member<Call>, Option<Call>)) -> End {
    loop {
        let supply = match block_on(poll_fn(|cx| member.poll_head(cx))) {
            Arrival::Led(_, supply) | Arrival::Followed(_, supply) => supply,
            Arrival::Own(Outcome::Error(number)) => return End::Error(number),
            Arrival::Failed => return End::Failed,
            Arrival::Promoted => {
                member.lead(own.take().unwrap(), Vec::new());
                continue;
            }
            Arrival::Own(_) | Arrival::Alone => panic!("everything may be shared here"),
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

fn poll_once(member: &mut Member<Call>) {
    drop(member.poll_head(&mut Context::from_waker(&noop_waker())));
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
fn everyone_is_answered_whoever_polls() {
    check(|| {
        let (flights, head, body) = (flights(), Gate::new(false), Gate::new(true));
        let leader = board(&flights, call(&head, &body));
        let follower = board(&flights, call(&head, &body));
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
        let mut leader = board(&flights, call(&head, &body));
        let follower = board(&flights, call(&head, &body));
        let one = thread::spawn(move || {
            poll_once(&mut leader.0);
            drop(leader);
        });
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
        let leader = board(&flights, call(&head, &body));
        let one = thread::spawn(move || drop(leader));
        let (theirs, gate) = (Arc::clone(&flights), head.clone());
        let two = thread::spawn(move || finish(board(&theirs, call(&gate, &Gate::new(true)))));
        head.open();
        one.join().unwrap();
        assert_eq!(two.join().unwrap(), End::Whole);
        is_empty(&flights);
    });
}

#[test]
fn a_request_comes_as_a_flight_ends() {
    check(|| {
        let (flights, open) = (flights(), Gate::new(true));
        let leader = board(&flights, call(&open, &open));
        let one = thread::spawn(move || finish(leader));
        let two = finish(board(&flights, call(&open, &open)));
        assert_eq!((one.join().unwrap(), two), (End::Whole, End::Whole));
        is_empty(&flights);
    });
}

#[test]
fn one_follower_leads_after_a_failure() {
    check(|| {
        let (flights, open) = (flights(), Gate::new(true));
        let leader = board(&flights, Call { fails: true, number: 1, ..call(&open, &open) });
        let [one, two] = [(); 2].map(|()| board(&flights, call(&open, &open)));
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
        let (flights, open) = (flights(), Gate::new(true));
        let fails = |number| Call { fails: true, number, ..call(&open, &open) };
        let leader = board(&flights, fails(1));
        let (one, two) = (board(&flights, fails(2)), board(&flights, fails(2)));
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
        let (flights, open, later) = (flights(), Gate::new(true), Gate::new(false));
        let leader = board(&flights, Call { fails: true, number: 1, ..call(&open, &open) });
        let (mut one, two) = (board(&flights, call(&later, &open)), board(&flights, call(&later, &open)));
        assert_eq!(finish(leader), End::Error(1));
        let vanishes = thread::spawn(move || {
            let waker = noop_waker();
            if let Poll::Ready(Arrival::Promoted) = one.0.poll_head(&mut Context::from_waker(&waker)) {
                one.0.lead(one.1.take().unwrap(), Vec::new());
                poll_once(&mut one.0);
            }
            drop(one);
        });
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
        let (flights, open, later) = (flights(), Gate::new(true), Gate::new(false));
        let mut leader = board(&flights, call(&open, &later));
        let follower = board(&flights, call(&open, &later));
        let one = thread::spawn(move || {
            poll_once(&mut leader.0);
            drop(leader.0.poll_piece(&mut Context::from_waker(&noop_waker())));
            drop(leader);
        });
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
        let leader = board(&flights, call(&open, &later));
        let theirs = Arc::clone(&flights);
        let gates = (open.clone(), later.clone());
        let one = thread::spawn(move || finish(leader));
        let joins = thread::spawn(move || finish(board(&theirs, call(&gates.0, &gates.1))));
        later.open();
        assert_eq!((one.join().unwrap(), joins.join().unwrap()), (End::Whole, End::Whole));
        is_empty(&flights);
    });
}
