//! A flight: one call of the service, and everyone who waits for its answer.
//!
//! A flight belongs to all of its members alike, and none of them is special to it: whoever of them is polled when there
//! is something to do polls the service's future, and later its body, on behalf of all. No task is spawned. So a flight goes
//! on for as long as it has a member, whichever it is, and is dropped with the last one. Its body is made at the pace of
//! its fastest reader while little is held for the others; then the fastest wait for the slowest that is fast enough.
//!
//! The rules that make this safe from lost wake-ups:
//!
//! - The service's future and body are polled with the flight itself as waker, which sets `due` and wakes *everyone* who
//!   waits.
//! - Who is polled and finds `due` takes the future out of the flight, polls it without the lock, and puts it back. Who
//!   finds it taken, or nothing due, registers under the same lock under which it is put back.
//! - Who puts it back and finds `due` again wakes everyone, since some may have registered after that wake-up.
//!
//! Everything that is user code (polling, waking, dropping) happens without the lock.

mod first;
mod head;
mod members;
mod pieces;
mod reading;
mod table;

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use http::response::Parts;
use http::{Extensions, HeaderMap, HeaderName, Response, StatusCode};
use http_body::{Body, SizeHint};
use smallvec::SmallVec;
use tokio::time::Instant;

pub(crate) use self::first::{DeferredCall, First};
pub(crate) use self::members::Outcome;
use self::members::{FIRST, Members, State};
pub(crate) use self::pieces::{Charge, HeldBytes};
use self::pieces::{FlightAccount, Pieces};
pub(crate) use self::table::{Lesson, Table};
use crate::body::{BodyError, BoxError, Piece};
use crate::counters::Event;
use crate::failed::LeaderFailed;
use crate::key::Key;
use crate::sync::{Mutex, MutexGuard};

/// The future of a response, as services return it.
pub trait Answering: Future<Output = Result<Response<Self::Body>, Self::Error>> + Send + 'static {
    /// The response's body.
    type Body: Body<Error: Into<BoxError>> + Send + 'static;
    /// The service's error.
    type Error: Send + 'static;
}

impl<F, B, E> Answering for F
where
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Error: Into<BoxError>> + Send + 'static,
    E: Send + 'static,
{
    type Body = B;
    type Error = E;
}

/// The limits of flights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Members of a flight.
    pub(crate) members: usize,
    /// The bytes of a body that a flight holds for slow readers, before the fast ones wait for them.
    pub(crate) flight_bytes: usize,
    /// The most bytes that all flights of a layer hold together.
    pub(crate) total_bytes: usize,
    /// The most bytes of a body that a flight keeps for requests that join after its headers.
    pub(crate) replay_bytes: usize,
    /// How long after its headers a flight may be joined.
    pub(crate) late: Duration,
    /// How often a follower becomes leader.
    pub(crate) promotions: u32,
    /// Whether members that wait get an error after the last leader's failure. If not, they call the service themselves,
    /// more and more of them at a time.
    pub(crate) share_failures: bool,
    /// How long a whole answer is held.
    pub(crate) hold: Duration,
}

impl Limits {
    /// The bytes beyond which no more requests are coalesced, and each flight is limited to its share. At that point
    /// all flights hold at most this much, and may come to hold at most this much more: together the total.
    pub(crate) fn fair_bytes(&self) -> usize {
        self.total_bytes / 2
    }
}

/// The part of an answer's head that followers get.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: Option<Extensions>,
    /// The headers that the answer varies by. The leader's values of them are in `asked`, or else in the flight's key.
    pub(crate) vary: Vec<HeaderName>,
    pub(crate) asked: Option<Key>,
}

impl Head {
    /// The approximate memory of the head while the leader has not taken its own, in bytes.
    fn weight(&self) -> usize {
        const FIELD: usize = 64;
        let fields = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD);
        2 * fields.sum::<usize>() + self.asked.as_ref().map_or(0, Key::weight)
    }
}

/// How a body ended.
#[derive(Debug, Clone)]
enum End {
    Whole,
    Failed(BodyError),
}

struct Stream<F: Answering> {
    head: Arc<Head>,
    _head_charge: Charge,
    /// The leader's own head, until the leader takes it.
    own: Option<Box<Parts>>,
    /// `None` while a member polls it, and after its end.
    body: Option<Pin<Box<F::Body>>>,
    hint: SizeHint,
    /// The bytes of the body so far.
    made: u64,
    pieces: Pieces,
    end: Option<End>,
    /// The time until which the flight may be joined, while all of the body is kept.
    open_until: Option<Instant>,
    /// How long the answer is held after its end.
    hold: Duration,
    /// How old the answer was when it came, in seconds, and when that was; if answers are held.
    age: Option<(u64, Instant)>,
    /// Whether the body is not asked for more until slow readers have caught up.
    is_held_up: bool,
    /// The time over which the paces of readers are measured.
    measured: Option<Measured>,
}

/// The time over which the paces of readers are measured.
#[derive(Debug, Clone, Copy)]
struct Measured {
    since: Instant,
    /// When readers were last held up.
    seen: Instant,
}

impl<F: Answering> Stream<F> {
    /// Adds a piece that this many will read.
    fn push(&mut self, piece: Piece, readers: usize) {
        self.made += piece.data() as u64;
        self.pieces.push(piece, readers);
    }

    /// Whether a body of known length is complete. A server does not poll such a body for its end, so the end may never
    /// be seen.
    fn is_made(&self) -> bool {
        self.hint.exact() == Some(self.made)
    }

    /// The age of the answer, in seconds.
    fn age(&self) -> u64 {
        self.age.map_or(0, |(age, since)| age.saturating_add(since.elapsed().as_secs()))
    }

    fn is_open(&self) -> bool {
        let failed = matches!(self.end, Some(End::Failed(_)));
        !failed && self.pieces.are_all_kept() && self.open_until.is_some_and(|until| Instant::now() < until)
    }
}

enum Phase<F: Answering> {
    /// The service is making the answer. `None` while a member polls it.
    Heading(Option<Pin<Box<F>>>),
    /// The leader failed; the next follower that is polled becomes leader.
    Vacant,
    /// The leader failed, and members that were released with it still call. The next one leads when they are done.
    Resting,
    /// The headers are out.
    Streaming(Box<Stream<F>>),
    /// The answer cannot be shared, or the leader got none: the others call the service themselves.
    Unshared,
    /// All leaders failed, and all members get an error.
    Failed(LeaderFailed),
    /// Over.
    Closed,
}

struct Core<F: Answering> {
    phase: Phase<F>,
    /// Whether the future or body wants to be polled.
    due: bool,
    members: Members<F>,
    leader: Option<usize>,
    /// The current leader's key, if it is not the first member.
    asked: Option<Key>,
    promotions: u32,
    /// Failures after each of which twice as many members are released.
    failures: u32,
}

/// One call of the service, and the requests that wait for its answer.
pub(crate) struct Flight<F: Answering> {
    pub(crate) key: Key,
    _share: FlightAccount,
    core: Mutex<Core<F>>,
}

/// Whether a flight could be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    Joined {
        place: usize,
        /// Whether the answer was whole already, and is held.
        is_late: bool,
    },
    Full,
    Closed,
}

impl<F: Answering> Flight<F> {
    /// A flight with one member, its leader, which polls its call.
    pub(crate) fn new(key: Key, held: &Arc<HeldBytes>) -> Self {
        let core = Core {
            phase: Phase::Heading(None),
            due: false,
            members: Members::new(),
            leader: Some(FIRST),
            asked: None,
            promotions: 0,
            failures: 0,
        };
        let share = FlightAccount::new(held, key.weight());
        Self { key, _share: share, core: Mutex::new(core) }
    }

    /// Joins the flight, unless its answer is held already and older than this many seconds. No held answer is as young as
    /// one that is made now.
    pub(crate) fn join(&self, limits: &Limits, max_age: Option<u64>) -> Join {
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let core = &mut *core;
        let mut is_late = false;
        match &mut core.phase {
            Phase::Heading(_) | Phase::Vacant | Phase::Resting => {}
            Phase::Streaming(stream) if stream.is_open() => {
                is_late = stream.end.is_some();
                if is_late && max_age.is_some_and(|most| most == 0 || stream.age() > most) {
                    return Join::Closed;
                }
            }
            _ => return Join::Closed,
        }
        if core.members.len() >= limits.members {
            return Join::Full;
        }
        if let Phase::Streaming(stream) = &mut core.phase {
            stream.pieces.join();
        }
        Join::Joined { place: core.members.join(), is_late }
    }
}

impl<F: Answering> Core<F> {
    /// Lets the next member lead after a failure, and releases others to call the service themselves: after each failure
    /// twice as many. So a service that fails is called by 1, 2, 4, … at a time, and not by all that wait.
    fn next_wave(&mut self) {
        const MOST_DOUBLINGS: u32 = 20;
        self.members.release((1 << self.failures.min(MOST_DOUBLINGS)) - 1);
        self.phase = Phase::Vacant;
    }
}

impl<F: Answering> Wake for Flight<F> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = {
            let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
            core.due = true;
            core.members.take_wakers()
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The end of a wait for headers.
pub(crate) enum Arrival<F: Answering> {
    /// The outcome of the member's own call, which is not shared.
    Own(Outcome<F>),
    /// The member's own call was shared.
    Led(Box<Parts>, Supply),
    /// The leader's call was.
    Followed(Arc<Head>, Supply),
    /// The answer cannot be shared with this member, which calls the service itself.
    Alone,
    /// The member calls the service itself, and keeps its place meanwhile.
    Released,
    /// All leaders failed.
    Failed(LeaderFailed),
    /// The member is to lead: see [`Member::lead`].
    Promoted,
}

/// How a member comes by the body.
pub(crate) enum Supply {
    /// The complete body; the member has left the flight.
    Held(SmallVec<[Piece; 1]>),
    /// By [`Member::poll_piece`].
    Reading(SizeHint),
}

/// A place in a flight, given up when dropped.
pub(crate) struct Member<F: Answering> {
    flight: Arc<Flight<F>>,
    table: Arc<Table<F>>,
    place: Place,
    /// Whether it came after the answer's end.
    is_late: bool,
    /// The answer's age in seconds, if it came so late.
    pub(crate) age: Option<u64>,
    /// When to poll again for a piece of the body, though nothing wakes.
    pub(crate) recheck: Option<Instant>,
    /// The memory of its request; that of the first member counts with the flight.
    _charge: Option<Charge>,
}

/// Where a member is among the others.
struct Place {
    number: usize,
    /// Whether this still owns the place; a released place may be given to another member.
    is_taken: bool,
}

impl Place {
    /// Releases the place while the caller holds the lock. The caller has to end the flight if this was the last
    /// member, as [`Member::leave`] does. Returns the member's state, which must be dropped without the lock.
    fn leave<F: Answering>(&mut self, core: &mut Core<F>) -> Option<State<F>> {
        self.is_taken = false;
        if core.leader == Some(self.number) {
            core.leader = None;
        }
        let state = core.members.leave(self.number)?;
        if let Phase::Streaming(stream) = &mut core.phase {
            match state {
                State::Waiting => stream.pieces.leave(0),
                State::Reading { next, .. } => stream.pieces.leave(next),
                State::CutOff | State::Released | State::Owed(_) => {}
            }
        }
        Some(state)
    }

    /// Gives the leader its call's outcome: returns the arrival if this member is the leader. If the leader is gone,
    /// the outcome is dropped without the lock.
    fn hand_to_leader<F: Answering>(
        &mut self,
        core: &mut Core<F>,
        outcome: Outcome<F>,
    ) -> (Option<Arrival<F>>, Option<Outcome<F>>) {
        let leader = core.leader.take();
        if leader == Some(self.number) {
            self.leave(core);
            return (Some(Arrival::Own(outcome)), None);
        }
        match leader.and_then(|leader| core.members.state(leader)) {
            Some(state) => {
                *state = State::Owed(Box::new(outcome));
                (None, None)
            }
            None => (None, Some(outcome)),
        }
    }
}

impl<F: Answering> Member<F> {
    pub(crate) fn new(
        flight: Arc<Flight<F>>,
        table: Arc<Table<F>>,
        (number, is_late): (usize, bool),
        charge: Charge,
    ) -> Self {
        let place = Place { number, is_taken: true };
        Self { flight, table, place, is_late, age: None, recheck: None, _charge: Some(charge) }
    }

    /// The place of a flight's first member.
    pub(crate) fn first(flight: Arc<Flight<F>>, table: Arc<Table<F>>) -> Self {
        let place = Place { number: FIRST, is_taken: true };
        Self { flight, table, place, is_late: false, age: None, recheck: None, _charge: None }
    }

    /// The leader's request. The key is what all members' requests have in common.
    pub(crate) fn key(&self) -> &Key {
        &self.flight.key
    }

    /// Releases the place; the last member to do so ends the flight. Returns the member's state.
    fn leave(&mut self, mut guard: MutexGuard<'_, Core<F>>) -> Option<State<F>> {
        let core = &mut *guard;
        let state = self.place.leave(core);
        if matches!(core.phase, Phase::Resting) && core.members.released() == 0 && core.members.waiting() > 0 {
            core.next_wave();
            let wakers = core.members.take_wakers();
            drop(guard);
            wakers.into_iter().for_each(Waker::wake);
            return state;
        }
        if core.members.active() > 0 {
            let wakers = self.resume(core);
            drop(guard);
            wakers.into_iter().for_each(Waker::wake);
            return state;
        }
        let (over, was_open) = match &core.phase {
            Phase::Heading(_) => (Some(Event::FlightCancelled), true),
            Phase::Vacant | Phase::Resting => (Some(Event::FlightFailed), true),
            // The complete answer is held, and others may come for it.
            Phase::Streaming(stream) if stream.end.is_some() => (None, false),
            Phase::Streaming(stream) => {
                let event = if stream.is_made() { Event::FlightEnded } else { Event::FlightCancelled };
                (Some(event), stream.pieces.are_all_kept())
            }
            Phase::Unshared | Phase::Failed(_) | Phase::Closed => (None, false),
        };
        let phase = over.map(|_| std::mem::replace(&mut core.phase, Phase::Closed));
        drop(guard);
        if let Some(event) = over {
            self.table.tally.count(event);
        }
        if was_open {
            self.table.remove(&self.flight);
        }
        // Dropped without the lock, and last: the service's code may panic here.
        drop(phase);
        state
    }
}

impl<F: Answering> Drop for Member<F> {
    fn drop(&mut self) {
        if self.place.is_taken {
            let flight = Arc::clone(&self.flight);
            self.leave(flight.core.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
