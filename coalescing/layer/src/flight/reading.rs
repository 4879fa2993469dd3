//! A flight after its headers: which member polls the body, and how much of it is held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http_body::Body as _;
use smallvec::SmallVec;
use tokio::time::Instant;

use super::members::State;
use super::{Answering, Core, End, Measured, Member, Phase, Stream};
use crate::body::{BodyError, CutOff, LEAST_PACE, PATIENCE, Piece, SLOW_READER, SharedPiece};
use crate::counters::Event;

/// The part of a body that is ready with its head is taken at once, up to about this many bytes.
pub(super) const AT_ONCE: usize = 64 * 1024;

impl<F: Answering> Member<F> {
    /// The next piece of the body; polls for it if no other member does.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SharedPiece, BodyError>>> {
        self.recheck = None;
        let flight = Arc::clone(&self.flight);
        loop {
            let mut guard = flight.core.lock().unwrap_or_else(PoisonError::into_inner);
            let core = &mut *guard;
            let Phase::Streaming(stream) = &mut core.phase else { return Poll::Ready(None) };
            match core.members.state(self.place.number) {
                Some(State::Reading { next, taken }) => {
                    if let Some(piece) = stream.pieces.read(*next) {
                        *next += 1;
                        *taken += piece.weight();
                        let is_last = matches!(stream.end, Some(End::Whole)) && *next == stream.pieces.end();
                        let wakers = self.resume(core);
                        drop(guard);
                        wakers.into_iter().for_each(Waker::wake);
                        return Poll::Ready(Some(Ok(SharedPiece { piece, is_last })));
                    }
                }
                Some(State::CutOff) => {
                    return Poll::Ready(Some(Err(SLOW_READER)));
                }
                _ => return Poll::Ready(None),
            }
            match &stream.end {
                Some(End::Whole) => return Poll::Ready(None),
                Some(End::Failed(error)) => return Poll::Ready(Some(Err(error.clone()))),
                None => {}
            }
            if core.due && stream.body.is_some() && self.is_full(stream) {
                match self.hold_up(core) {
                    HeldUp::Until(recheck) => {
                        self.recheck = Some(recheck);
                        core.members.register(self.place.number, cx.waker());
                        return Poll::Pending;
                    }
                    HeldUp::NoMore(wakers) => {
                        drop(guard);
                        wakers.into_iter().for_each(Waker::wake);
                        continue;
                    }
                }
            }
            let body = if core.due { stream.body.take() } else { None };
            let Some(mut body) = body else {
                core.members.register(self.place.number, cx.waker());
                return Poll::Pending;
            };
            core.due = false;
            core.members.is_awake(self.place.number);
            drop(guard);
            let waker = Waker::from(Arc::clone(&self.flight));
            match next_of::<F>(&mut body, &mut Context::from_waker(&waker)) {
                Next::NotYet => {
                    self.park(cx, |core| {
                        if let Phase::Streaming(stream) = &mut core.phase {
                            stream.body = Some(body);
                        }
                    });
                    return Poll::Pending;
                }
                Next::Piece(piece) => self.came(Some(piece), Some(body), None),
                Next::Last(piece) => {
                    drop(body);
                    self.came(Some(piece), None, Some(End::Whole));
                }
                Next::Skip => self.came(None, Some(body), None),
                Next::End(end) => {
                    drop(body);
                    self.came(None, None, Some(end));
                }
            }
        }
    }

    /// Tells whether it is cut off.
    pub(crate) fn cut_off(&self) -> CutOff {
        let mut core = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
        core.members.cut_off(self.place.number)
    }

    /// Adds a new piece or the end of the body, and wakes the members.
    fn came(&mut self, piece: Option<Piece>, body: Option<Pin<Box<F::Body>>>, end: Option<End>) {
        let mut guard = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
        let core = &mut *guard;
        let readers = core.members.readers();
        let Phase::Streaming(stream) = &mut core.phase else { return };
        let was_open = stream.pieces.are_all_kept();
        let has_ended = end.is_some();
        let is_whole = matches!(end, Some(End::Whole));
        if let Some(piece) = piece {
            stream.push(piece, readers);
        }
        (stream.body, stream.end) = (body, end);
        core.due = true;
        let mut rest_until = None;
        if has_ended {
            let hold = stream.hold;
            if is_whole && was_open && !hold.is_zero() {
                rest_until = Some(Instant::now() + hold);
                stream.open_until = rest_until;
            } else {
                stream.pieces.keep_no_more();
            }
        } else if !stream.is_open() {
            stream.pieces.keep_no_more();
        }
        self.held_to_limits(core);
        let is_open = matches!(&core.phase, Phase::Streaming(stream) if stream.pieces.are_all_kept());
        let wakers = core.members.take_wakers();
        drop(guard);
        if has_ended {
            self.table.tally.count(Event::FlightEnded);
        }
        match rest_until {
            Some(until) if is_open => self.table.rest(&self.flight, until),
            _ if was_open && !is_open => self.table.remove(&self.flight),
            _ => {}
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Enforces the limits on held bytes: drops pieces for requests that could still join.
    pub(super) fn held_to_limits(&self, core: &mut Core<F>) {
        let Phase::Streaming(stream) = &mut core.phase else { return };
        let is_too_long_to_join = stream.pieces.bytes() > self.table.limits.replay_bytes && stream.end.is_none();
        if stream.pieces.are_all_kept() && (is_too_long_to_join || self.is_full(stream)) {
            stream.pieces.keep_no_more();
        }
    }

    /// Whether a body must not be asked for more before its slow readers have caught up. A flight within its share is not
    /// slowed because of others.
    fn is_full(&self, stream: &Stream<F>) -> bool {
        let (limits, held, bytes) = (&self.table.limits, &self.table.held, stream.pieces.bytes());
        let fair = limits.fair_bytes();
        bytes > limits.flight_bytes || (held.bytes() > fair && bytes > held.share_of(fair))
    }

    /// Wakes the readers that were held up, if they are no more.
    pub(super) fn resume(&self, core: &mut Core<F>) -> Vec<Waker> {
        let Phase::Streaming(stream) = &mut core.phase else { return Vec::new() };
        if !stream.is_held_up || self.is_full(stream) {
            return Vec::new();
        }
        stream.is_held_up = false;
        if let Some(measured) = &mut stream.measured {
            measured.seen = Instant::now();
        }
        core.members.take_wakers()
    }

    /// Lets the fast readers of a full flight wait for the slow ones, and cuts off those that take too little for too long.
    fn hold_up(&self, core: &mut Core<F>) -> HeldUp {
        let now = Instant::now();
        let Phase::Streaming(stream) = &mut core.phase else { return HeldUp::NoMore(Vec::new()) };
        let is_recent = |measured: &Measured| stream.is_held_up || now - measured.seen <= FORGOTTEN_AFTER;
        let measured = stream.measured.filter(is_recent);
        let since = measured.map_or(now, |measured| measured.since);
        stream.is_held_up = true;
        stream.measured = Some(Measured { since, seen: now });
        let elapsed = now - since;
        let ends = elapsed >= PATIENCE;
        let least = (elapsed.as_secs_f64() * LEAST_PACE as f64) as usize;
        let (newest, mut cut_off) = (stream.pieces.end(), 0);
        for (state, told) in core.members.readings() {
            let (next, took) = match state {
                State::Waiting => (0, 0),
                State::Reading { next, taken } => (*next, *taken),
                State::CutOff | State::Released | State::Owed(_) => continue,
            };
            // A piece may be on its way to the client for as long as the last one took.
            if ends && next < newest && took + AT_ONCE < least {
                cut_off += usize::from(matches!(state, State::Reading { .. }));
                *state = State::CutOff;
                told.into_iter().for_each(CutOff::set);
                stream.pieces.leave(next);
            } else if ends || measured.is_none() {
                if let State::Reading { taken, .. } = state {
                    *taken = 0;
                }
            }
        }
        if !ends {
            return HeldUp::Until((since + PATIENCE).min(now + RECHECK));
        }
        stream.is_held_up = false;
        stream.measured = Some(Measured { since: now, seen: now });
        (0..cut_off).for_each(|_| self.table.tally.count(Event::CutOff));
        HeldUp::NoMore(core.members.take_wakers())
    }
}

/// How long readers are not held up before their paces are measured anew.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(1);

/// How often a reader that is held up looks whether other flights have made room.
const RECHECK: Duration = Duration::from_millis(250);

/// Whether fast readers wait for slow ones.
enum HeldUp {
    /// They do; the time at which to look again.
    Until(Instant),
    /// Not now; these are to be woken.
    NoMore(Vec<Waker>),
}

/// The part of a body that is ready at once.
pub(super) struct Ready<F: Answering> {
    pub(super) pieces: SmallVec<[Piece; 1]>,
    pub(super) body: Option<Pin<Box<F::Body>>>,
    pub(super) end: Option<End>,
    /// Whether more may be ready.
    pub(super) more: bool,
}

impl<F: Answering> Ready<F> {
    pub(super) fn read(body: F::Body, cx: &mut Context<'_>) -> Self {
        let mut ready = Self { pieces: SmallVec::new(), body: None, end: None, more: false };
        if body.is_end_stream() {
            ready.end = Some(End::Whole);
            return ready;
        }
        let mut body = Box::pin(body);
        let mut weight = 0;
        while weight < AT_ONCE {
            match next_of::<F>(&mut body, cx) {
                Next::Piece(piece) => {
                    weight += piece.weight();
                    ready.pieces.push(piece);
                }
                Next::Last(piece) => {
                    ready.pieces.push(piece);
                    ready.end = Some(End::Whole);
                    return ready;
                }
                Next::Skip => weight += 1,
                Next::End(end) => {
                    ready.end = Some(end);
                    return ready;
                }
                Next::NotYet => {
                    ready.body = Some(body);
                    return ready;
                }
            }
        }
        (ready.body, ready.more) = (Some(body), true);
        ready
    }
}

/// The result of polling a body.
enum Next {
    Piece(Piece),
    /// The last piece. A reader that has it may never ask for another.
    Last(Piece),
    /// A frame that is not passed on.
    Skip,
    End(End),
    NotYet,
}

fn next_of<F: Answering>(body: &mut Pin<Box<F::Body>>, cx: &mut Context<'_>) -> Next {
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let frame = body.as_mut().poll_frame(cx);
        (frame, body.is_end_stream())
    }));
    match polled {
        Ok((Poll::Pending, _)) => Next::NotYet,
        Ok((Poll::Ready(Some(Ok(frame))), is_last)) => match Piece::from_frame(frame) {
            Some(Piece::Data(data)) if data.is_empty() => Next::Skip,
            Some(piece) if is_last => Next::Last(piece),
            Some(piece) => Next::Piece(piece),
            None => Next::Skip,
        },
        Ok((Poll::Ready(None), _)) => Next::End(End::Whole),
        Ok((Poll::Ready(Some(Err(error))), _)) => Next::End(End::Failed(BodyError::inner(error))),
        Err(_) => Next::End(End::Failed(BodyError::Panicked)),
    }
}
