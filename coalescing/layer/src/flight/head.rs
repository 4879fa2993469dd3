//! A flight until its headers: which member polls the service, and what the members get.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use http::response::Parts;
use http::{HeaderName, Response};
use http_body::{Body as _, SizeHint};
use tokio::time::Instant;

use super::members::{Outcome, State};
use super::pieces::Pieces;
use super::reading::Ready;
use super::table::Lesson;
use super::{Answering, Arrival, Core, End, Head, HeldBytes, Member, Phase, Stream, Supply};
use crate::answer::{FollowerExtensions, Freshness, Sharing, shared_headers};
use crate::counters::Event;
use crate::failed::{Failure, LeaderFailed};
use crate::key::Key;

impl<F: Answering> Member<F> {
    /// Waits for the answer, and polls the service if no other member does.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Arrival<F>> {
        loop {
            let flight = Arc::clone(&self.flight);
            let mut guard = flight.core.lock().unwrap_or_else(PoisonError::into_inner);
            let core = &mut *guard;
            match core.members.state(self.place.number) {
                Some(State::CutOff) => {
                    self.leave(guard);
                    return Poll::Ready(Arrival::Alone);
                }
                Some(State::Released) => return Poll::Ready(Arrival::Released),
                Some(State::Owed(_)) => {
                    return Poll::Ready(match self.leave(guard) {
                        Some(State::Owed(outcome)) => Arrival::Own(*outcome),
                        _ => Arrival::Alone,
                    });
                }
                _ => {}
            }
            match &mut core.phase {
                Phase::Resting => {
                    core.members.register(self.place.number, cx.waker());
                    return Poll::Pending;
                }
                Phase::Heading(parked) => {
                    let future = if core.due { parked.take() } else { None };
                    let Some(future) = future else {
                        core.members.register(self.place.number, cx.waker());
                        return Poll::Pending;
                    };
                    core.due = false;
                    core.members.is_awake(self.place.number);
                    drop(guard);
                    match self.drive(future, cx) {
                        Poll::Ready(Some(arrival)) => return Poll::Ready(arrival),
                        Poll::Ready(None) => {}
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Phase::Streaming(_) => return Poll::Ready(self.arrive_mid_stream(core)),
                Phase::Vacant => {
                    core.phase = Phase::Heading(None);
                    core.leader = Some(self.place.number);
                    core.promotions += 1;
                    return Poll::Ready(Arrival::Promoted);
                }
                Phase::Failed(failed) => {
                    let failed = *failed;
                    self.leave(guard);
                    return Poll::Ready(Arrival::Failed(failed));
                }
                Phase::Unshared | Phase::Closed => {
                    self.leave(guard);
                    return Poll::Ready(Arrival::Alone);
                }
            }
        }
    }

    /// Leads, as [`Arrival::Promoted`] asks for, with a call of the member's own.
    pub(crate) fn lead(&mut self, call: Pin<Box<F>>, key: Key) {
        let mut core = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
        core.phase = Phase::Heading(Some(call));
        core.asked = Some(key);
        core.due = true;
    }

    /// Gives the flight its call, which has not ended.
    pub(super) fn give(&mut self, call: Pin<Box<F>>) {
        let wakers = {
            let mut core = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
            core.phase = Phase::Heading(Some(call));
            core.due = true;
            core.members.take_wakers()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Polls the service's future on behalf of all members. Ready with `None` if the phase has changed.
    fn drive(&mut self, future: Pin<Box<F>>, cx: &Context<'_>) -> Poll<Option<Arrival<F>>> {
        let waker = Waker::from(Arc::clone(&self.flight));
        match Polled::poll(future, &mut Context::from_waker(&waker)) {
            Polled::NotYet(future) => {
                self.park(cx, |core| core.phase = Phase::Heading(Some(future)));
                Poll::Pending
            }
            Polled::Answered(response) => Poll::Ready(self.answered(response)),
            Polled::Failed(outcome) => Poll::Ready(self.failed(outcome)),
        }
    }

    /// Puts back what was taken out for polling, and waits.
    pub(super) fn park(&self, cx: &Context<'_>, put_back: impl FnOnce(&mut Core<F>)) {
        let wakers = {
            let mut core = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
            put_back(&mut core);
            core.members.register(self.place.number, cx.waker());
            if core.due { core.members.take_wakers() } else { Vec::new() }
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn failed(&mut self, outcome: Outcome<F>) -> Option<Arrival<F>> {
        if self.table.limits.share_failures {
            let failure = if matches!(outcome, Outcome::Panic(_)) { Failure::Panic } else { Failure::Error };
            let last = |leaders| Phase::Failed(LeaderFailed { failure, leaders });
            self.next_leads(outcome, last, Event::FlightFailed)
        } else {
            self.more_call(outcome, Event::FlightFailed)
        }
    }

    /// Gives the leader its call's failure. The next waiting member leads, and more and more of the others call the service
    /// beside it.
    fn more_call(&mut self, outcome: Outcome<F>, event: Event) -> Option<Arrival<F>> {
        let mut guard = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
        let core = &mut *guard;
        let (arrival, unclaimed) = self.place.hand_to_leader(core, outcome);
        core.failures += 1;
        let is_over = core.members.waiting() == 0;
        if is_over {
            core.phase = Phase::Unshared;
        } else if core.members.released() > 0 {
            core.phase = Phase::Resting;
        } else {
            core.next_wave();
        }
        let wakers = core.members.take_wakers();
        drop(guard);
        drop(unclaimed);
        if is_over {
            self.table.tally.count(event);
            self.table.remove(&self.flight);
        }
        wakers.into_iter().for_each(Waker::wake);
        arrival
    }

    /// Gives the leader its call's outcome. The next waiting member leads; if none may, the flight ends in the phase
    /// that `last` makes of the number of its leaders.
    fn next_leads(
        &mut self,
        outcome: Outcome<F>,
        last: impl FnOnce(u32) -> Phase<F>,
        event: Event,
    ) -> Option<Arrival<F>> {
        let mut guard = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
        let core = &mut *guard;
        let (arrival, unclaimed) = self.place.hand_to_leader(core, outcome);
        let is_vacant = core.promotions < self.table.limits.promotions && core.members.waiting() > 0;
        core.phase = if is_vacant { Phase::Vacant } else { last(core.promotions.saturating_add(1)) };
        let wakers = core.members.take_wakers();
        drop(guard);
        drop(unclaimed);
        if !is_vacant {
            self.table.tally.count(event);
            self.table.remove(&self.flight);
        }
        wakers.into_iter().for_each(Waker::wake);
        arrival
    }

    /// Tells everyone of the answer.
    pub(super) fn answered(&mut self, response: Response<F::Body>) -> Option<Arrival<F>> {
        let hint = response.body().size_hint();
        match self.table.judge.sharing(&response, hint.lower()) {
            Sharing::No => {
                self.table.learn(&self.flight.key, Some(Lesson::Alone));
                self.keep_from_others(response)
            }
            Sharing::NotThis => {
                self.table.learn(&self.flight.key, Some(Lesson::Alone));
                self.next_leads(Outcome::Answer(response), |_| Phase::Unshared, Event::FlightUnshared)
            }
            Sharing::Failure => self.more_call(Outcome::Answer(response), Event::FlightUnshared),
            Sharing::All => {
                let (parts, ready) = self.take_apart(response);
                self.publish(parts, Vec::new(), hint, ready, true)
            }
            Sharing::Freely => {
                self.table.learn(&self.flight.key, None);
                let (parts, ready) = self.take_apart(response);
                self.publish(parts, Vec::new(), hint, ready, false)
            }
            Sharing::With(vary) => {
                self.table.learn(&self.flight.key, Lesson::of(&vary));
                let (parts, ready) = self.take_apart(response);
                self.publish(parts, vary, hint, ready, false)
            }
        }
    }

    fn take_apart(&self, response: Response<F::Body>) -> (Parts, Ready<F>) {
        let (parts, body) = response.into_parts();
        let waker = Waker::from(Arc::clone(&self.flight));
        (parts, Ready::read(body, &mut Context::from_waker(&waker)))
    }

    fn keep_from_others(&mut self, response: Response<F::Body>) -> Option<Arrival<F>> {
        let mut guard = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
        let core = &mut *guard;
        core.phase = Phase::Unshared;
        let (arrival, unclaimed) = self.place.hand_to_leader(core, Outcome::Answer(response));
        let wakers = core.members.take_wakers();
        drop(guard);
        drop(unclaimed);
        self.table.tally.count(Event::FlightUnshared);
        self.table.remove(&self.flight);
        wakers.into_iter().for_each(Waker::wake);
        arrival
    }

    /// Tells everyone of a shared answer. One that is only for those who wait is `closed` to later requests.
    fn publish(
        &mut self,
        parts: Parts,
        vary: Vec<HeaderName>,
        hint: SizeHint,
        ready: Ready<F>,
        closed: bool,
    ) -> Option<Arrival<F>> {
        let limits = self.table.limits;
        let (mut hold, mut age) = (Duration::ZERO, None);
        if !limits.hold.is_zero() && !closed {
            let fresh = Freshness::of(&parts.headers, SystemTime::now());
            (hold, age) = (fresh.hold(limits.hold), Some((fresh.age, Instant::now())));
        }
        let is_whole = matches!(ready.end, Some(End::Whole));
        let mut guard = self.flight.core.lock().unwrap_or_else(PoisonError::into_inner);
        let core = &mut *guard;
        if is_whole && hold.is_zero() && core.members.len() == 1 && core.leader == Some(self.place.number) {
            // The flight has no other member, and is closed.
            self.place.leave(core);
            core.phase = Phase::Closed;
            drop(guard);
            self.table.tally.count(Event::FlightEnded);
            self.table.remove(&self.flight);
            return Some(Arrival::Led(Box::new(parts), Supply::Held(ready.pieces)));
        }
        let has_ended = ready.end.is_some();
        let open_for = match has_ended {
            true if is_whole => hold,
            true => Duration::ZERO,
            false if closed => Duration::ZERO,
            false => limits.late,
        };
        let open_until = (!open_for.is_zero()).then(|| Instant::now() + open_for);
        let head = Head {
            status: parts.status,
            headers: shared_headers(&parts.headers),
            extensions: parts.extensions.get::<FollowerExtensions>().map(|followers| followers.0.clone()),
            vary,
            asked: core.asked.take(),
        };
        let head_charge = HeldBytes::charge(&self.table.held, head.weight());
        let mut stream = Stream {
            head: Arc::new(head),
            _head_charge: head_charge,
            own: core.leader.map(|_| Box::new(parts)),
            body: ready.body,
            hint,
            made: 0,
            pieces: Pieces::new(open_until.is_some(), Arc::clone(&self.table.held)),
            end: ready.end,
            open_until,
            hold,
            age,
            is_held_up: false,
            measured: None,
        };
        let readers = core.members.readers();
        ready.pieces.into_iter().for_each(|piece| stream.push(piece, readers));
        core.due |= ready.more;
        core.phase = Phase::Streaming(Box::new(stream));
        self.held_to_limits(core);
        let is_open = matches!(&core.phase, Phase::Streaming(stream) if stream.pieces.are_all_kept());
        let wakers = core.members.take_wakers();
        drop(guard);
        if has_ended {
            self.table.tally.count(Event::FlightEnded);
        }
        match open_until {
            Some(until) if is_open && has_ended => self.table.rest(&self.flight, until),
            _ if is_open => {}
            _ => self.table.remove(&self.flight),
        }
        wakers.into_iter().for_each(Waker::wake);
        None
    }

    /// Takes the answer's head, and its body as well if that is complete.
    fn arrive_mid_stream(&mut self, core: &mut Core<F>) -> Arrival<F> {
        let is_leader = core.leader == Some(self.place.number);
        let Phase::Streaming(stream) = &mut core.phase else { return Arrival::Alone };
        self.age = self.is_late.then(|| stream.age());
        let (head, own) = (Arc::clone(&stream.head), if is_leader { stream.own.take() } else { None });
        let supply = if matches!(stream.end, Some(End::Whole)) {
            let supply = Supply::Held(stream.pieces.all());
            self.place.leave(core);
            supply
        } else {
            let hint = stream.hint;
            if let Some(state) = core.members.state(self.place.number) {
                *state = State::Reading { next: 0, taken: 0 };
            }
            Supply::Reading(hint)
        };
        match own {
            Some(own) => Arrival::Led(own, supply),
            None => Arrival::Followed(head, supply),
        }
    }
}

/// The result of polling a call.
enum Polled<F: Answering> {
    NotYet(Pin<Box<F>>),
    Answered(Response<F::Body>),
    Failed(Outcome<F>),
}

impl<F: Answering> Polled<F> {
    fn poll(mut call: Pin<Box<F>>, cx: &mut Context<'_>) -> Self {
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx)));
        if matches!(polled, Ok(Poll::Pending)) {
            return Self::NotYet(call);
        }
        // Dropping the call may panic, too.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(call)));
        match (polled, dropped) {
            (Err(panic), _) | (Ok(_), Err(panic)) => Self::Failed(Outcome::Panic(panic)),
            (Ok(Poll::Ready(Ok(response))), Ok(())) => Self::Answered(response),
            (Ok(Poll::Ready(Err(error))), Ok(())) => Self::Failed(Outcome::Error(error)),
            (Ok(Poll::Pending), Ok(())) => {
                Self::Failed(Outcome::Panic(Box::new("a call that is not over was dropped")))
            }
        }
    }
}
