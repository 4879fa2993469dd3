//! The future of an answer.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AGE, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use smallvec::smallvec;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower_service::Service;

use crate::body::{BodyError, CoalesceBody, CutOff, Piece, Pieces, SharedPiece};
use crate::counters::{Event, Tally};
use crate::failed::LeaderFailed;
use crate::flight::{Answering, Arrival, DeferredCall, First, Head, Lesson, Member, Outcome, Supply};
use crate::key::Key;
use crate::oneshot::Oneshot;
use crate::request::{MARK, WaitAtMost};
use crate::shared::Shared;
use crate::writes::Write;

/// The answer to followers whose leaders have all failed.
const FAILED: &str = "the request that this one waited for failed\n";

/// The future of an answer, from the service or shared from another request.
pub struct ResponseFuture<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    state: State<S, B>,
    marked: bool,
}

// The future that it polls is in a box.
impl<S, B> Unpin for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
}

enum State<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    Unpolled(Option<UnpolledRequest<S, B>>),
    Leads(Option<Member<Oneshot<S, Request<B>>>>),
    Follows(Option<Box<Follower<S, B>>>),
    /// A request that shares no answer calls the service.
    Calls(Call<S, B>, AfterCall<S, B>),
    /// A request that writes calls the service; `Write` closes the flights of its URI.
    Writes(Call<S, B>, Option<Write>),
    /// Its result is ready.
    #[cfg_attr(
        not(feature = "hyper"),
        expect(dead_code, reason = "by tower's trait alone nothing is known before the poll")
    )]
    Ready(Option<CallResult<Oneshot<S, Request<B>>>>),
    Over,
}

/// What the end of a request's own call is for.
enum AfterCall<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    Nothing,
    /// The others of its flight, after the failure of their leader, go on when such calls are over.
    Leaves(#[expect(dead_code, reason = "it is there to be dropped")] Member<Oneshot<S, Request<B>>>),
    /// It teaches whether the next requests with this key share an answer.
    Teaches(Arc<Shared<Oneshot<S, Request<B>>>>, Key),
}

/// A call of the service that may become a flight's.
pub(crate) type Call<S, B> = Pin<Box<Oneshot<S, Request<B>>>>;

/// A request that has not been polled yet. It looks for a flight only when it is polled, so that no other waits for a
/// request that is never polled.
struct UnpolledRequest<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    shared: Arc<Shared<Oneshot<S, Request<B>>>>,
    key: Key,
    call: Call<S, B>,
}

/// A request that waits for another's call.
struct Follower<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    member: Member<Oneshot<S, Request<B>>>,
    /// Its own call, which it makes only if the wait fails.
    call: Call<S, B>,
    key: Key,
    shared: Arc<Shared<Oneshot<S, Request<B>>>>,
    /// Whether it may look for a flight once more.
    may_regroup: bool,
    joined: Instant,
    max_wait: Option<Duration>,
    patience: Option<Pin<Box<Sleep>>>,
    outcome_on_drop: OutcomeOnDrop,
}

/// Counts a follower's outcome when dropped. Unless one was set, that is [`Event::Vanished`].
struct OutcomeOnDrop {
    event: Event,
    tally: Tally,
}

impl Drop for OutcomeOnDrop {
    fn drop(&mut self) {
        self.tally.count(self.event);
    }
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    pub(crate) fn alone(call: Call<S, B>, write: Option<Write>) -> Self {
        let state = if write.is_some() { State::Writes(call, write) } else { State::Calls(call, AfterCall::Nothing) };
        Self { state, marked: false }
    }

    /// A result that is known already.
    #[cfg(feature = "hyper")]
    pub(crate) fn ready(result: CallResult<Oneshot<S, Request<B>>>) -> Self {
        Self { state: State::Ready(Some(result)), marked: false }
    }

    pub(crate) fn unpolled(
        shared: Arc<Shared<Oneshot<S, Request<B>>>>,
        key: Key,
        call: Call<S, B>,
        marked: bool,
    ) -> Self {
        Self { state: State::Unpolled(Some(UnpolledRequest { shared, key, call })), marked }
    }

    /// A request that looks for a flight at once. It is polled soon after, and only then leaves its waker.
    #[cfg(feature = "hyper")]
    #[inline(always)]
    pub(crate) fn poll_at_once(
        shared: &Arc<Shared<Oneshot<S, Request<B>>>>,
        key: Key,
        call: impl DeferredCall<Oneshot<S, Request<B>>>,
        marked: bool,
    ) -> Self {
        let mut nobody = Context::from_waker(std::task::Waker::noop());
        match State::first_step(shared, key, call, marked, true, &mut nobody) {
            FirstStep::Done(result) => Self { state: State::Ready(Some(result)), marked },
            FirstStep::Continues(state) => Self { state, marked },
        }
    }
}

/// What a request found when it looked for a flight.
enum FirstStep<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    /// Its own result, at once.
    Done(CallResult<Oneshot<S, Request<B>>>),
    Continues(State<S, B>),
}

impl<S, B> State<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    #[inline(always)]
    fn first_step(
        shared: &Arc<Shared<Oneshot<S, Request<B>>>>,
        key: Key,
        call: impl DeferredCall<Oneshot<S, Request<B>>>,
        marked: bool,
        may_regroup: bool,
        cx: &mut Context<'_>,
    ) -> FirstStep<S, B> {
        FirstStep::Continues(match shared.table.first_poll(key, call, cx) {
            First::Own(outcome) => return FirstStep::Done(own(outcome, marked)),
            First::Leads(member, Some(arrival)) => {
                return FirstStep::Done(arrive_as_leader(Some(member), arrival, marked));
            }
            First::Leads(member, None) => Self::Leads(Some(member)),
            First::Full(call) => Self::Calls(call, AfterCall::Nothing),
            First::Alone(call, key) => Self::Calls(call, AfterCall::Teaches(Arc::clone(shared), key)),
            First::Follows(member, call, key) => {
                Self::Follows(Some(Box::new(Follower::new(shared, member, call, key, may_regroup))))
            }
        })
    }
}

impl<S, B> std::fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.state {
            State::Unpolled(_) => "unpolled",
            State::Leads(_) => "leads",
            State::Follows(_) => "follows",
            State::Calls(..) => "calls",
            State::Writes(..) => "writes",
            State::Ready(_) => "ready",
            State::Over => "over",
        };
        f.debug_tuple("ResponseFuture").field(&state).finish()
    }
}

/// The answer to a client.
type Answer<F> = Response<CoalesceBody<<F as Answering>::Body>>;

/// The result for the request that calls the service.
type CallResult<F> = Result<Answer<F>, <F as Answering>::Error>;

/// How a follower goes on.
enum NextStep<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    Answered(Answer<Oneshot<S, Request<B>>>),
    Leads(Member<Oneshot<S, Request<B>>>),
    Calls(Call<S, B>, AfterCall<S, B>),
    /// It looks for a flight again.
    LooksAgain(Arc<Shared<Oneshot<S, Request<B>>>>, Key, Call<S, B>),
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    Oneshot<S, Request<B>>: Answering<Body = R, Error = S::Error>,
{
    type Output = Result<Response<CoalesceBody<R>>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let marked = self.marked;
        loop {
            self.state = match &mut self.state {
                State::Ready(result) => return result.take().map_or(Poll::Pending, Poll::Ready),
                State::Unpolled(unpolled) => {
                    let Some(UnpolledRequest { shared, key, call }) = unpolled.take() else { return Poll::Pending };
                    match State::first_step(&shared, key, call, marked, true, cx) {
                        FirstStep::Done(result) => {
                            self.state = State::Over;
                            return Poll::Ready(result);
                        }
                        FirstStep::Continues(state) => state,
                    }
                }
                State::Calls(call, then) => {
                    let answer = ready!(call.as_mut().poll(cx));
                    if let (AfterCall::Teaches(shared, key), Ok(response)) = (&then, &answer) {
                        shared.table.taught(key, response);
                    }
                    *then = AfterCall::Nothing;
                    return Poll::Ready(answer.map(|response| response.map(CoalesceBody::own)));
                }
                State::Writes(call, write) => {
                    let answer = ready!(call.as_mut().poll(cx));
                    let write = write.take();
                    // The flights are closed before the client can learn of the answer.
                    write.iter().for_each(Write::closes_flights);
                    return Poll::Ready(
                        answer.map(|response| response.map(|body| CoalesceBody::of_write(body, write))),
                    );
                }
                State::Leads(member) => return poll_leader(member, cx, marked),
                State::Follows(follower) => match ready!(poll_follower(follower, cx, marked)) {
                    None => return Poll::Pending,
                    Some(NextStep::Answered(response)) => return Poll::Ready(Ok(response)),
                    Some(NextStep::Leads(member)) => State::Leads(Some(member)),
                    Some(NextStep::Calls(call, then)) => State::Calls(call, then),
                    Some(NextStep::LooksAgain(shared, key, call)) => {
                        match State::first_step(&shared, key, call, marked, false, cx) {
                            FirstStep::Done(result) => return Poll::Ready(result),
                            FirstStep::Continues(state) => state,
                        }
                    }
                },
                // The future was polled after its end, which callers should not do.
                State::Over => return Poll::Pending,
            };
        }
    }
}

fn poll_leader<F: Answering>(place: &mut Option<Member<F>>, cx: &mut Context<'_>, marked: bool) -> Poll<CallResult<F>> {
    // The future was polled after its end, which callers should not do.
    let Some(member) = place else { return Poll::Pending };
    let arrival = ready!(member.poll_head(cx));
    Poll::Ready(arrive_as_leader(place.take(), arrival, marked))
}

fn arrive_as_leader<F: Answering>(member: Option<Member<F>>, arrival: Arrival<F>, marked: bool) -> CallResult<F> {
    match arrival {
        Arrival::Own(outcome) => own(outcome, marked),
        Arrival::Led(parts, supply) => {
            Ok(mark(Response::from_parts(*parts, body(member, supply, None)), marked, LEADER))
        }
        // This request was given away with its call, so it cannot be made again.
        Arrival::Followed(..) | Arrival::Alone | Arrival::Released | Arrival::Failed(_) | Arrival::Promoted => {
            Ok(failure(None))
        }
    }
}

/// The leader's own result, as it would be without the layer.
#[inline(always)]
fn own<F: Answering>(outcome: Outcome<F>, marked: bool) -> CallResult<F> {
    match outcome {
        Outcome::Answer(response) => Ok(mark(response.map(CoalesceBody::own), marked, LEADER)),
        Outcome::Error(error) => Err(error),
        Outcome::Panic(panic) => resume_unwind(panic),
    }
}

/// Polls a follower; `None` if it was polled after its end.
fn poll_follower<S, B>(
    place: &mut Option<Box<Follower<S, B>>>,
    cx: &mut Context<'_>,
    marked: bool,
) -> Poll<Option<NextStep<S, B>>>
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
    fn new(
        shared: &Arc<Shared<Oneshot<S, Request<B>>>>,
        member: Member<Oneshot<S, Request<B>>>,
        call: Call<S, B>,
        key: Key,
        may_regroup: bool,
    ) -> Self {
        let limit = |request: &Request<B>| request.extensions().get::<WaitAtMost>().map(|wait| wait.0);
        let max_wait = call.request().and_then(limit).or(shared.max_wait);
        let outcome_on_drop = OutcomeOnDrop { event: Event::Vanished, tally: shared.table.tally.clone() };
        let shared = Arc::clone(shared);
        Self {
            member,
            call,
            key,
            shared,
            may_regroup,
            joined: Instant::now(),
            max_wait,
            patience: None,
            outcome_on_drop,
        }
    }

    fn has_waited_enough(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(max_wait) = self.max_wait else { return false };
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(max_wait)));
        patience.as_mut().poll(cx).is_ready()
    }

    fn arrive(mut self, arrival: Arrival<Oneshot<S, Request<B>>>, marked: bool) -> NextStep<S, B> {
        self.outcome_on_drop.tally.observe(Event::Waited(self.joined.elapsed()));
        match arrival {
            Arrival::Followed(head, _)
                if self.may_regroup && !self.may_have(&head) && Lesson::of(&head.vary).is_some() =>
            {
                self.outcome_on_drop.event = Event::Regrouped;
                NextStep::LooksAgain(self.shared, self.key, self.call)
            }
            Arrival::Released => {
                self.outcome_on_drop.event = Event::WentAlone;
                NextStep::Calls(self.call, AfterCall::Leaves(self.member))
            }
            Arrival::Followed(head, supply) if self.may_have(&head) => {
                self.outcome_on_drop.event = Event::Shared;
                NextStep::Answered(self.follow(&head, supply, marked))
            }
            Arrival::Promoted => {
                self.outcome_on_drop.event = Event::Promoted;
                self.member.lead(self.call, self.key);
                NextStep::Leads(self.member)
            }
            Arrival::Failed(failed) => {
                self.outcome_on_drop.event = Event::SharedFailure;
                // The answer to HEAD has no body (RFC 9110, section 9.3.2); over HTTP/2 its bytes would be sent.
                let is_head = self.call.request().is_some_and(|request| request.method() == Method::HEAD);
                let mut failure = failure(Some(failed));
                if is_head {
                    *failure.body_mut() = CoalesceBody::held(smallvec![]);
                }
                NextStep::Answered(mark(failure, marked, FOLLOWER))
            }
            Arrival::Followed(..) | Arrival::Alone | Arrival::Own(_) | Arrival::Led(..) => {
                self.outcome_on_drop.event = Event::WentAlone;
                NextStep::Calls(self.call, AfterCall::Nothing)
            }
        }
    }

    /// Whether the answer applies to this request, judging by its `Vary`.
    fn may_have(&self, head: &Head) -> bool {
        let asked = head.asked.as_ref().unwrap_or_else(|| self.member.key());
        self.call.request().is_some_and(|request| asked.has_in_common(&head.vary, request.headers()))
    }

    fn follow(self, head: &Head, supply: Supply, marked: bool) -> Answer<Oneshot<S, Request<B>>> {
        let age = self.member.age;
        let mut response = Response::new(body(Some(self.member), supply, Some(&self.outcome_on_drop.tally)));
        *response.status_mut() = head.status;
        response.headers_mut().clone_from(&head.headers);
        if let Some(extensions) = &head.extensions {
            response.extensions_mut().clone_from(extensions);
        }
        if let Some(age) = age {
            response.headers_mut().insert(AGE, age.into());
        }
        mark(response, marked, FOLLOWER)
    }
}

/// The body from a supply. Bytes that a follower is saved are counted by `saved`.
fn body<F: Answering>(member: Option<Member<F>>, supply: Supply, saved: Option<&Tally>) -> CoalesceBody<F::Body> {
    match (supply, member) {
        (Supply::Held(pieces), _) => {
            if let Some(tally) = saved {
                tally.count(Event::Saved(pieces.iter().map(|piece| piece.data() as u64).sum()));
            }
            CoalesceBody::held(pieces)
        }
        (Supply::Reading(hint), Some(member)) => {
            CoalesceBody::shared(Box::new(Reader { member, saved: saved.cloned(), timer: None }), hint)
        }
        // A member that reads is there.
        (Supply::Reading(_), None) => CoalesceBody::held(smallvec![]),
    }
}

/// Reads a body while it is being made.
struct Reader<F: Answering> {
    member: Member<F>,
    saved: Option<Tally>,
    /// Runs while slower readers hold up this one.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Answering> Pieces for Reader<F> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SharedPiece, BodyError>>> {
        let next = loop {
            if let Poll::Ready(next) = self.member.poll_piece(cx) {
                break next;
            }
            let Some(recheck) = self.member.recheck else { return Poll::Pending };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(recheck)));
            if timer.deadline() != recheck {
                timer.as_mut().reset(recheck);
            }
            ready!(timer.as_mut().poll(cx));
        };
        if let (Some(tally), Some(Ok(piece))) = (&self.saved, &next) {
            tally.count(Event::Saved(piece.piece.data() as u64));
        }
        Poll::Ready(next)
    }

    fn cut_off(&self) -> CutOff {
        self.member.cut_off()
    }
}

const LEADER: HeaderValue = HeaderValue::from_static("leader");
const FOLLOWER: HeaderValue = HeaderValue::from_static("follower");

#[inline(always)]
fn mark<R>(mut response: Response<R>, marked: bool, role: HeaderValue) -> Response<R> {
    if marked {
        response.headers_mut().insert(MARK, role);
    }
    response
}

fn failure<R>(failed: Option<LeaderFailed>) -> Response<CoalesceBody<R>> {
    let text = Bytes::from_static(FAILED.as_bytes());
    let mut response = Response::new(CoalesceBody::held(smallvec![Piece::Data(text)]));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    failed.map(|failed| response.extensions_mut().insert(failed));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
