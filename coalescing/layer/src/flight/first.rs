//! The first poll of a call: an answer that is ready at once, and that no other request waits for, needs no flight.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Response;
use http_body::Body as _;

use super::reading::AT_ONCE;
use super::table::{Claim, Lookup, Table};
use super::{Answering, Arrival, Member, Outcome};
use crate::answer::Sharing;
use crate::counters::Event;
use crate::key::Key;

/// The result of polling a request for the first time.
pub(crate) enum First<F: Answering> {
    /// The request called the service, and no other waits for the outcome.
    Own(Outcome<F>),
    /// The request leads a flight; with its arrival, if there is one already.
    Leads(Member<F>, Option<Arrival<F>>),
    /// The request waits in another's flight, and has not called the service.
    Follows(Member<F>, Pin<Box<F>>, Key),
    /// The flight has as many members as allowed: the request calls the service itself.
    Full(Pin<Box<F>>),
    /// The last answer to a request like this was for its client alone: the request calls the service itself, and its
    /// answer teaches the next.
    Alone(Pin<Box<F>>, Key),
}

/// A request's call of the service, before it is known whether it is made.
pub(crate) trait DeferredCall<F: Answering> {
    /// The call, to be polled next.
    fn start(self, cx: &mut Context<'_>) -> Result<Pin<Box<F>>, F::Error>;

    /// The call, to be polled later if at all.
    fn hold_back(self) -> Pin<Box<F>>;
}

impl<F: Answering> DeferredCall<F> for Pin<Box<F>> {
    fn start(self, _: &mut Context<'_>) -> Result<Self, F::Error> {
        Ok(self)
    }

    fn hold_back(self) -> Self {
        self
    }
}

impl<F: Answering> Table<F> {
    /// Joins the flight of this key. If no call with it is under way, calls the service.
    #[inline(always)]
    pub(crate) fn first_poll(self: &Arc<Self>, key: Key, call: impl DeferredCall<F>, cx: &mut Context<'_>) -> First<F> {
        let claim = match self.join_or_claim(key) {
            Lookup::NewClaim(claim) => ClaimGuard { table: self, claim: Some(claim) },
            Lookup::Joined(member, key) => {
                self.tally.count(Event::Joined);
                return First::Follows(member, call.hold_back(), key);
            }
            Lookup::Alone(key) => {
                self.tally.count(Event::Remembered);
                return First::Alone(call.hold_back(), key);
            }
            Lookup::Full => {
                self.tally.count(Event::Refused);
                return First::Full(call.hold_back());
            }
        };
        self.tally.observe(Event::FlightStarted);
        // If the call panics, the leader gets the panic as without the layer, and the others learn of it when the claim
        // is dropped.
        let mut call = match call.start(cx) {
            Ok(call) => call,
            Err(error) => return claim.failed(Outcome::Error(error)),
        };
        match call.as_mut().poll(cx) {
            Poll::Pending => claim.pending(call),
            Poll::Ready(answer) => {
                drop(call);
                match answer {
                    Ok(response) => claim.answered(response),
                    Err(error) => claim.failed(Outcome::Error(error)),
                }
            }
        }
    }
}

/// A claim that is released when this is dropped.
struct ClaimGuard<'a, F: Answering> {
    table: &'a Arc<Table<F>>,
    claim: Option<Claim>,
}

impl<F: Answering> ClaimGuard<'_, F> {
    /// Releases the claim if no other request waits, and returns its key; `ended` is the counted outcome.
    #[inline(always)]
    fn release(&mut self, ended: Event) -> Option<Key> {
        let key = self.claim.and_then(|claim| self.table.release(claim, ended))?;
        self.claim = None;
        Some(key)
    }

    fn lead(&mut self) -> Option<Member<F>> {
        self.claim.take().and_then(|claim| self.table.lead(claim))
    }

    fn pending(mut self, call: Pin<Box<F>>) -> First<F> {
        let Some(mut member) = self.lead() else { return First::Full(call) };
        // The call is polled again on behalf of all members, so that its waker has to wake all of them.
        member.give(call);
        First::Leads(member, None)
    }

    #[inline(always)]
    fn answered(mut self, response: Response<F::Body>) -> First<F> {
        if is_at_hand(response.body()) && self.table.limits.hold.is_zero() {
            let least = response.body().size_hint().lower();
            let sharing = self.table.judge.sharing(&response, least);
            let ended = match sharing {
                Sharing::No | Sharing::NotThis | Sharing::Failure => Event::FlightUnshared,
                Sharing::Freely | Sharing::With(_) | Sharing::All => Event::FlightEnded,
            };
            if let Some(key) = self.release(ended) {
                self.table.learn_by(&key, &sharing);
                key.recycle();
                return First::Own(Outcome::Answer(response));
            }
        }
        let Some(mut member) = self.lead() else { return First::Own(Outcome::Answer(response)) };
        let arrival = member.answered(response);
        First::Leads(member, arrival)
    }

    fn failed(mut self, outcome: Outcome<F>) -> First<F> {
        if let Some(key) = self.release(Event::FlightFailed) {
            key.recycle();
            return First::Own(outcome);
        }
        let Some(mut member) = self.lead() else { return First::Own(outcome) };
        let arrival = member.failed(outcome);
        First::Leads(member, arrival)
    }
}

impl<F: Answering> Drop for ClaimGuard<'_, F> {
    /// After a panic of the service, its call has failed for those that wait.
    fn drop(&mut self) {
        if self.claim.is_none() || self.release(Event::FlightFailed).is_some() {
            return;
        }
        if let Some(mut member) = self.lead() {
            drop(member.failed(Outcome::Panic(Box::new("the panic itself is its caller's"))));
        }
    }
}

/// Whether nobody could join in the middle of the body: it is empty, or short and complete with its head.
fn is_at_hand(body: &impl http_body::Body) -> bool {
    body.is_end_stream() || body.size_hint().exact().is_some_and(|length| length <= AT_ONCE as u64)
}
