//! The service that the layer makes.

#[cfg(feature = "hyper")]
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::body::CoalesceBody;
use crate::counters::Event;
use crate::flight::Answering;
#[cfg(feature = "hyper")]
use crate::flight::DeferredCall;
use crate::future::ResponseFuture;
use crate::key::Key;
use crate::oneshot::Oneshot;
use crate::request::RequestClass;
use crate::shared::Realm;
use crate::writes::Write;

/// Coalesces requests to a service: see [the crate](crate).
///
/// It is always ready: a follower needs no room in the service within. Each call that does reach it is made by a clone,
/// which first waits to be ready.
///
/// With the feature `hyper` (on by default) it is a service of hyper's own as well as of tower's, which
/// `serve_connection` takes as it is: an adapter would clone it for each request.
#[derive(Clone)]
pub struct Coalesce<S> {
    inner: S,
    realm: Arc<Realm>,
}

impl<S> Coalesce<S> {
    /// The service within.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service within, to be changed. Calls under way are made by clones.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service within, alone.
    pub fn into_inner(self) -> S {
        self.inner
    }

    pub(crate) fn new(inner: S, realm: Arc<Realm>) -> Self {
        Self { inner, realm }
    }
}

impl<S: std::fmt::Debug> std::fmt::Debug for Coalesce<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coalesce").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for Coalesce<S>
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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let role = self.role(&mut request);
        self.answer(role, request)
    }
}

#[cfg(feature = "hyper")]
impl<S, B, R> hyper::service::Service<Request<B>> for Coalesce<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    Oneshot<S, Request<B>>: Answering<Body = R, Error = S::Error>,
    B: Body,
{
    type Response = Response<CoalesceBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    /// A request of HTTP/1 looks for a flight at once: hyper polls its future next, so that no other request waits for
    /// one that is never polled. Its memory is then free before the next is read. Requests of HTTP/2 are polled by separate
    /// tasks, perhaps on other threads.
    fn call(&self, mut request: Request<B>) -> Self::Future {
        let is_polled_next = request.version() < http::Version::HTTP_2;
        match self.role(&mut request) {
            Role::MayShare(key, marked) if is_polled_next => {
                ResponseFuture::poll_at_once(self.realm.flights(), key, Fresh { service: &self.inner, request }, marked)
            }
            Role::Alone(write) => {
                let mut service = self.inner.clone();
                // Whoever polls the call leaves a waker then, if the service is not ready.
                match service.poll_ready(&mut Context::from_waker(std::task::Waker::noop())) {
                    Poll::Ready(Ok(())) => {
                        ResponseFuture::alone(Box::pin(Oneshot::called(service.call(request))), write)
                    }
                    Poll::Ready(Err(error)) => ResponseFuture::ready(Err(error)),
                    Poll::Pending => ResponseFuture::alone(Box::pin(Oneshot::new(service, request)), write),
                }
            }
            role @ Role::MayShare(..) => self.answer(role, request),
        }
    }
}

/// A call that goes to the service at once if the service is ready.
#[cfg(feature = "hyper")]
struct Fresh<'a, S, B> {
    service: &'a S,
    request: Request<B>,
}

#[cfg(feature = "hyper")]
impl<S, B, R> DeferredCall<Oneshot<S, Request<B>>> for Fresh<'_, S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    Oneshot<S, Request<B>>: Answering<Body = R, Error = S::Error>,
{
    #[inline(always)]
    fn start(self, cx: &mut Context<'_>) -> Result<Pin<Box<Oneshot<S, Request<B>>>>, S::Error> {
        let mut service = self.service.clone();
        Ok(Box::pin(match service.poll_ready(cx)? {
            Poll::Ready(()) => Oneshot::called(service.call(self.request)),
            Poll::Pending => Oneshot::new(service, self.request),
        }))
    }

    fn hold_back(self) -> Pin<Box<Oneshot<S, Request<B>>>> {
        Box::pin(Oneshot::new(self.service.clone(), self.request))
    }
}

impl<S> Coalesce<S> {
    /// The future of an answer, which looks for a flight when it is polled.
    #[inline]
    fn answer<B>(&self, role: Role, request: Request<B>) -> ResponseFuture<S, B>
    where
        S: Service<Request<B>> + Clone,
        Oneshot<S, Request<B>>: Answering,
    {
        let call = Box::pin(Oneshot::new(self.inner.clone(), request));
        match role {
            Role::MayShare(key, marked) => {
                ResponseFuture::unpolled(Arc::clone(self.realm.flights()), key, call, marked)
            }
            Role::Alone(write) => ResponseFuture::alone(call, write),
        }
    }

    /// Whether the call for a request may be shared.
    #[inline]
    fn role<B: Body>(&self, request: &mut Request<B>) -> Role {
        let has_body = !request.body().is_end_stream();
        let Realm { settings, epochs, .. } = &*self.realm;
        let at = epochs.now(request.uri());
        let write = match settings.eligible.look_at(request, has_body, at) {
            RequestClass::May(found) => return Role::MayShare(found.key, settings.mark.marks(found.asks)),
            RequestClass::Passes => None,
            RequestClass::Writes => Some(Write::starts(epochs, request.uri())),
        };
        settings.tally.count(Event::Passed);
        Role::Alone(write)
    }
}

/// Whether a call may be shared.
enum Role {
    /// It may be shared by requests with this key. The flag: whether its answer is marked.
    MayShare(Key, bool),
    /// It cannot be shared. `Write` if it may change its resource.
    Alone(Option<Write>),
}
