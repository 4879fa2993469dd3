//! The first poll of a call: what is answered at once, and waited for by nobody, needs no flight.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Response;
use http_body::Body as _;

use super::reading::AT_ONCE;
use super::table::{Boarding, Claim, Table};
use super::{Answering, Arrival, Member, Outcome};
use crate::answer::Sharing;
use crate::counters::Event;
use crate::key::Key;

/// What came of a request as it was polled for the first time.
pub(crate) enum First<F: Answering> {
    /// It called the service, and nobody else waits for what came of it.
    Own(Outcome<F>),
    /// It leads a flight; with what it has come to, if it has.
    Leads(Member<F>, Option<Arrival<F>>),
    /// It waits with others, and has not called.
    Follows(Member<F>, Pin<Box<F>>, Key),
    /// As many wait as may: it calls for itself.
    Full(Pin<Box<F>>),
}

impl<F: Answering> Table<F> {
    /// Joins a flight, or calls the service where none is under way.
    #[inline]
    pub(crate) fn first_poll(self: &Arc<Self>, key: Key, mut call: Pin<Box<F>>, cx: &mut Context<'_>) -> First<F> {
        let claim = match self.board(key) {
            Boarding::Claims(claim) => ClaimGuard { table: self, claim: Some(claim) },
            Boarding::Follows(member, key) => {
                self.tally.count(Event::Joined);
                return First::Follows(member, call, key);
            }
            Boarding::Full => {
                self.tally.count(Event::Refused);
                return First::Full(call);
            }
        };
        self.tally.observe(Event::FlightStarted);
        // If it panics, the leader sees that as it would without us, and those who wait by the end of the claim.
        match call.as_mut().poll(cx) {
            Poll::Pending => claim.goes_on(call),
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

/// A claim that is given up whatever happens.
struct ClaimGuard<'a, F: Answering> {
    table: &'a Arc<Table<F>>,
    claim: Option<Claim>,
}

impl<F: Answering> ClaimGuard<'_, F> {
    /// Whether nobody else waits; the claim is given up then, and this is how it ended.
    fn is_alone(&mut self, ended: Event) -> bool {
        let is_alone = self.claim.is_some_and(|claim| self.table.release(claim, ended));
        if is_alone {
            self.claim = None;
        }
        is_alone
    }

    fn lead(&mut self) -> Option<Member<F>> {
        self.claim.take().and_then(|claim| self.table.lead(claim))
    }

    fn goes_on(mut self, call: Pin<Box<F>>) -> First<F> {
        let Some(mut member) = self.lead() else { return First::Full(call) };
        // It is polled again on behalf of all, so that all are woken when it wants to be.
        member.give(call);
        First::Leads(member, None)
    }

    #[inline]
    fn answered(mut self, response: Response<F::Body>) -> First<F> {
        if is_at_hand(response.body()) && self.table.limits.hold.is_zero() {
            let least = response.body().size_hint().lower();
            let ended = match self.table.judge.sharing(&response, least) {
                Sharing::No | Sharing::NotThis => Event::FlightUnshared,
                Sharing::With(_) => Event::FlightEnded,
            };
            if self.is_alone(ended) {
                return First::Own(Outcome::Answer(response));
            }
        }
        let Some(mut member) = self.lead() else { return First::Own(Outcome::Answer(response)) };
        let arrival = member.answered(response);
        First::Leads(member, arrival)
    }

    fn failed(mut self, outcome: Outcome<F>) -> First<F> {
        if self.is_alone(Event::FlightFailed) {
            return First::Own(outcome);
        }
        let Some(mut member) = self.lead() else { return First::Own(outcome) };
        let arrival = member.failed(outcome);
        First::Leads(member, arrival)
    }
}

impl<F: Answering> Drop for ClaimGuard<'_, F> {
    /// The service panicked: for those who wait, its call has failed.
    fn drop(&mut self) {
        if self.claim.is_none() {
            return;
        }
        if self.is_alone(Event::FlightFailed) {
            return;
        }
        if let Some(mut member) = self.lead() {
            drop(member.failed(Outcome::Panic(Box::new("the panic itself is its caller's"))));
        }
    }
}

/// Whether nobody could join in the middle of a body: there is none, or it is short and was there with its head.
fn is_at_hand(body: &impl http_body::Body) -> bool {
    body.is_end_stream() || body.size_hint().exact().is_some_and(|length| length <= AT_ONCE as u64)
}
