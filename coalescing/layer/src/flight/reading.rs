//! A flight after its headers: which member polls the body, and how much of it is held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use http_body::Body as _;
use smallvec::SmallVec;
use tokio::time::Instant;

use super::members::State;
use super::{Answering, Core, End, Member, Phase};
use crate::body::{BodyError, Piece, SharedPiece};
use crate::counters::Event;

/// The part of a body that is ready with its head is taken at once, up to about this many bytes.
pub(super) const AT_ONCE: usize = 64 * 1024;

impl<F: Answering> Member<F> {
    /// The next piece of the body; polls for it if no other member does.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SharedPiece, BodyError>>> {
        loop {
            let mut guard = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
            let core = &mut *guard;
            let Phase::Streaming(stream) = &mut core.phase else { return Poll::Ready(None) };
            match core.members.state(self.place.number) {
                Some(State::Reading(next)) => {
                    if let Some(piece) = stream.pieces.read(*next) {
                        *next += 1;
                        let is_last = matches!(stream.end, Some(End::Whole)) && *next == stream.pieces.end();
                        return Poll::Ready(Some(Ok(SharedPiece { piece, is_last })));
                    }
                }
                Some(State::CutOff) => {
                    let limit = self.table.limits.flight_bytes;
                    return Poll::Ready(Some(Err(BodyError::CutOff { limit })));
                }
                _ => return Poll::Ready(None),
            }
            match &stream.end {
                Some(End::Whole) => return Poll::Ready(None),
                Some(End::Failed(error)) => return Poll::Ready(Some(Err(error.clone()))),
                None => {}
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
            let hold = self.table.limits.hold;
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

    /// Enforces the limits on held bytes: first drops pieces for requests that could still join, then cuts off the
    /// slowest readers. A flight within its share loses no reader because of others.
    pub(super) fn held_to_limits(&self, core: &mut Core<F>) {
        let limits = &self.table.limits;
        let Phase::Streaming(stream) = &mut core.phase else { return };
        if stream.pieces.bytes() > limits.replay_bytes && stream.end.is_none() {
            stream.pieces.keep_no_more();
        }
        let newest = stream.pieces.end().saturating_sub(1);
        let (held, fair) = (&self.table.held, limits.fair_bytes());
        let is_unfair = |bytes: usize| held.bytes() > fair && bytes > held.share_of(fair);
        while stream.pieces.bytes() > limits.flight_bytes || is_unfair(stream.pieces.bytes()) {
            if stream.pieces.are_all_kept() {
                stream.pieces.keep_no_more();
                continue;
            }
            let position = |state: &State<F>| match state {
                State::Waiting => Some(0),
                State::Reading(next) => Some(*next),
                State::CutOff | State::Owed(_) => None,
            };
            // A reader that only lacks the newest piece is not behind: cutting it off would free nothing.
            let behind = |state: &State<F>| position(state).filter(|&next| next < newest);
            let Some(slowest) = core.members.states().filter_map(|state| behind(state)).min() else { return };
            for state in core.members.states().filter(|state| position(state) == Some(slowest)) {
                if matches!(state, State::Reading(_)) {
                    self.table.tally.count(Event::CutOff);
                }
                *state = State::CutOff;
                stream.pieces.leave(slowest);
            }
        }
    }
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
