//! The service that the layer makes.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::body::CoalesceBody;
use crate::counters::Event;
use crate::flight::Answering;
use crate::future::ResponseFuture;
use crate::layer::Mark;
use crate::oneshot::Oneshot;
use crate::request::Eligible;
use crate::table::{Boarding, Table};

/// An extension of a request: how long it waits for another's headers at most, instead of what the layer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitAtMost(pub Duration);

/// What every call needs to know.
struct Shared {
    eligible: Eligible,
    mark: Mark,
    max_wait: Option<Duration>,
}

/// Coalesces requests to a service: see [the crate](crate).
///
/// It is always ready: a follower needs no room in the service within. Each call that does reach it is made by a clone,
/// which first waits to be ready.
pub struct Coalesce<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    inner: S,
    table: Arc<Table<Oneshot<S, Request<B>>>>,
    shared: Arc<Shared>,
}

impl<S, B> Coalesce<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    pub(crate) fn new(
        inner: S,
        table: Arc<Table<Oneshot<S, Request<B>>>>,
        eligible: Eligible,
        mark: Mark,
        max_wait: Option<Duration>,
    ) -> Self {
        Self { inner, table, shared: Arc::new(Shared { eligible, mark, max_wait }) }
    }
}

impl<S, B> Clone for Coalesce<S, B>
where
    S: Service<Request<B>> + Clone,
    Oneshot<S, Request<B>>: Answering,
{
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), table: Arc::clone(&self.table), shared: Arc::clone(&self.shared) }
    }
}

impl<S, B> std::fmt::Debug for Coalesce<S, B>
where
    S: Service<Request<B>>,
    Oneshot<S, Request<B>>: Answering,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coalesce").finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for Coalesce<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    Oneshot<S, Request<B>>: Answering<Body = R, Error = S::Error>,
    B: Body,
{
    type Response = Response<CoalesceBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    /// Always ready.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let tally = &self.table.tally;
        let service = self.inner.clone();
        let has_body = !request.body().is_end_stream();
        let (parts, body) = request.into_parts();
        let found = self.shared.eligible.find(&parts, has_body);
        let request = Request::from_parts(parts, body);
        let Some(found) = found else {
            tally.count(Event::Passed);
            return ResponseFuture::alone(service, request);
        };
        let marked = match self.shared.mark {
            Mark::WhenAsked => found.asks,
            Mark::Always => true,
            Mark::Never => false,
        };
        let call = (service, request, found.others);
        let begin = |(service, request, others)| (Oneshot::new(service, request), others);
        match self.table.board(found.key, call, begin) {
            Boarding::Leads(member) => {
                tally.count(Event::FlightStarted);
                ResponseFuture::leads(member, marked)
            }
            Boarding::Follows(member, call) => {
                tally.count(Event::Joined);
                let own = call.1.extensions().get::<WaitAtMost>().map(|wait| wait.0);
                ResponseFuture::follows(member, call, own.or(self.shared.max_wait), marked, tally.clone())
            }
            Boarding::Full((service, request, _)) => {
                tally.count(Event::Refused);
                ResponseFuture::alone(service, request)
            }
        }
    }
}
