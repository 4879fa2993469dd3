//! The future of an answer.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use smallvec::smallvec;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use crate::body::{BodyError, CoalesceBody, Given, Piece, Pieces};
use crate::counters::{Event, Tally};
use crate::flight::{Answering, Arrival, Head, Member, Outcome, Supply};
use crate::key::Headers;
use crate::oneshot::Oneshot;
use crate::request::{MARK, have_in_common};

/// What followers are told when leader after leader failed.
const FAILED: &str = "the request that this one waited for failed\n";

pin_project! {
    /// The future of an answer, by the service or by another request's call of it.
    pub struct ResponseFuture<S, B> where S: Service<Request<B>>, Oneshot<S, Request<B>>: Answering {
        #[pin]
        state: State<S, B>,
        marked: bool,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B> where S: Service<Request<B>>, Oneshot<S, Request<B>>: Answering {
        Alone { #[pin] answer: Oneshot<S, Request<B>> },
        Leads { member: Option<Member<Oneshot<S, Request<B>>>> },
        Follows { follower: Option<Follower<S, B>> },
    }
}

/// One who waits for another's call.
struct Follower<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    member: Member<Oneshot<S, Request<B>>>,
    service: S,
    request: Request<B>,
    /// Its headers that are not in the key.
    others: Headers,
    max_wait: Option<Duration>,
    patience: Option<Pin<Box<Sleep>>>,
    fate: Fate,
}

/// Counts what came of a follower when it is dropped: that it vanished, if nothing else.
struct Fate {
    event: Event,
    tally: Tally,
}

impl Drop for Fate {
    fn drop(&mut self) {
        self.tally.count(self.event);
    }
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    pub(crate) fn alone(service: S, request: Request<B>) -> Self {
        Self { state: State::Alone { answer: Oneshot::new(service, request) }, marked: false }
    }

    pub(crate) fn leads(member: Member<Oneshot<S, Request<B>>>, marked: bool) -> Self {
        Self { state: State::Leads { member: Some(member) }, marked }
    }

    pub(crate) fn follows(
        member: Member<Oneshot<S, Request<B>>>,
        (service, request, others): (S, Request<B>, Headers),
        max_wait: Option<Duration>,
        marked: bool,
        tally: Tally,
    ) -> Self {
        let fate = Fate { event: Event::Vanished, tally };
        let follower = Follower { member, service, request, others, max_wait, patience: None, fate };
        Self { state: State::Follows { follower: Some(follower) }, marked }
    }
}

impl<S, B> std::fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.state {
            State::Alone { .. } => "alone",
            State::Leads { .. } => "leads",
            State::Follows { .. } => "follows",
        };
        f.debug_tuple("ResponseFuture").field(&state).finish()
    }
}

/// What a client is answered with.
type Answer<F> = Response<CoalesceBody<<F as Answering>::Body>>;

/// What becomes of a follower.
enum Turn<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    Answered(Answer<Oneshot<S, Request<B>>>),
    Leads(Member<Oneshot<S, Request<B>>>),
    Alone(S, Request<B>),
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    Oneshot<S, Request<B>>: Answering<Body = R, Error = S::Error>,
{
    type Output = Result<Response<CoalesceBody<R>>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let this = self.as_mut().project();
            let marked = *this.marked;
            let next = match this.state.project() {
                StateProj::Alone { answer } => {
                    return answer.poll(cx).map(|answer| answer.map(|response| response.map(CoalesceBody::own)));
                }
                StateProj::Leads { member } => return poll_leader(member, cx, marked),
                StateProj::Follows { follower } => match ready!(poll_follower(follower, cx, marked)) {
                    None => return Poll::Pending,
                    Some(Turn::Answered(response)) => return Poll::Ready(Ok(response)),
                    Some(Turn::Leads(member)) => State::Leads { member: Some(member) },
                    Some(Turn::Alone(service, request)) => State::Alone { answer: Oneshot::new(service, request) },
                },
            };
            self.as_mut().project().state.set(next);
        }
    }
}

fn poll_leader<F: Answering>(
    place: &mut Option<Member<F>>,
    cx: &mut Context<'_>,
    marked: bool,
) -> Poll<Result<Answer<F>, F::Error>> {
    // Polled after its end, as a future should not be.
    let Some(member) = place else { return Poll::Pending };
    let arrival = ready!(member.poll_head(cx));
    let member = place.take();
    Poll::Ready(Ok(match arrival {
        Arrival::Own(Outcome::Answer(response)) => mark(response.map(CoalesceBody::own), marked, LEADER),
        Arrival::Own(Outcome::Error(error)) => return Poll::Ready(Err(error)),
        Arrival::Own(Outcome::Panic(panic)) => resume_unwind(panic),
        Arrival::Led(parts, supply) => mark(Response::from_parts(*parts, body(member, supply, None)), marked, LEADER),
        // Its own request was given away with the call, which is not to be had any more.
        Arrival::Followed(..) | Arrival::Alone | Arrival::Failed | Arrival::Promoted => failure(),
    }))
}

/// None for what has been polled after its end.
fn poll_follower<S, B>(
    place: &mut Option<Follower<S, B>>,
    cx: &mut Context<'_>,
    marked: bool,
) -> Poll<Option<Turn<S, B>>>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    let Some(follower) = place else { return Poll::Ready(None) };
    let arrival = match follower.member.poll_head(cx) {
        Poll::Ready(arrival) => arrival,
        Poll::Pending if follower.has_waited_enough(cx) => Arrival::Alone,
        Poll::Pending => return Poll::Pending,
    };
    Poll::Ready(place.take().map(|follower| follower.arrive(arrival, marked)))
}

impl<S, B> Follower<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    fn has_waited_enough(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(max_wait) = self.max_wait else { return false };
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(max_wait)));
        patience.as_mut().poll(cx).is_ready()
    }

    fn arrive(mut self, arrival: Arrival<Oneshot<S, Request<B>>>, marked: bool) -> Turn<S, B> {
        match arrival {
            Arrival::Followed(head, supply) if self.may_have(&head) => {
                self.fate.event = Event::Shared;
                Turn::Answered(self.follow(&head, supply, marked))
            }
            Arrival::Promoted => {
                self.fate.event = Event::Promoted;
                self.member.lead(Oneshot::new(self.service, self.request), self.others);
                Turn::Leads(self.member)
            }
            Arrival::Failed => {
                self.fate.event = Event::SharedFailure;
                Turn::Answered(mark(failure(), marked, FOLLOWER))
            }
            Arrival::Followed(..) | Arrival::Alone | Arrival::Own(_) | Arrival::Led(..) => {
                self.fate.event = Event::WentAlone;
                Turn::Alone(self.service, self.request)
            }
        }
    }

    /// Whether the answer would have been the same for this request, as far as its service says what it depends on.
    fn may_have(&self, head: &Head) -> bool {
        have_in_common(&head.vary, &head.asked, self.request.headers(), self.member.key())
    }

    fn follow(self, head: &Head, supply: Supply, marked: bool) -> Answer<Oneshot<S, Request<B>>> {
        let mut response = Response::new(body(Some(self.member), supply, Some(&self.fate.tally)));
        *response.status_mut() = head.status;
        response.headers_mut().clone_from(&head.headers);
        mark(response, marked, FOLLOWER)
    }
}

/// A body of what a member is supplied with; for followers, what they are saved is counted.
fn body<F: Answering>(member: Option<Member<F>>, supply: Supply, saved: Option<&Tally>) -> CoalesceBody<F::Body> {
    match (supply, member) {
        (Supply::Held(pieces), _) => {
            if let Some(tally) = saved {
                tally.count(Event::Saved(pieces.iter().map(|piece| piece.data() as u64).sum()));
            }
            CoalesceBody::held(pieces)
        }
        (Supply::Reading(hint), Some(member)) => {
            CoalesceBody::shared(Box::new(Reader { member, saved: saved.cloned() }), hint)
        }
        // A member that reads is there.
        (Supply::Reading(_), None) => CoalesceBody::held(smallvec![]),
    }
}

/// Reads a body while it is made.
struct Reader<F: Answering> {
    member: Member<F>,
    saved: Option<Tally>,
}

impl<F: Answering> Pieces for Reader<F> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Given, BodyError>>> {
        let given = ready!(self.member.poll_piece(cx));
        if let (Some(tally), Some(Ok(given))) = (&self.saved, &given) {
            tally.count(Event::Saved(given.piece.data() as u64));
        }
        Poll::Ready(given)
    }
}

const LEADER: HeaderValue = HeaderValue::from_static("leader");
const FOLLOWER: HeaderValue = HeaderValue::from_static("follower");

fn mark<R>(mut response: Response<R>, marked: bool, role: HeaderValue) -> Response<R> {
    if marked {
        response.headers_mut().insert(MARK, role);
    }
    response
}

fn failure<R>() -> Response<CoalesceBody<R>> {
    let text = Bytes::from_static(FAILED.as_bytes());
    let mut response = Response::new(CoalesceBody::held(smallvec![Piece::Data(text)]));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
