//! A call of a service that first waits for it to be ready.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

pin_project! {
    /// A future that waits until the service is ready, calls it, and gives its answer.
    #[project = OneshotProj]
    #[project_replace = OneshotOwned]
    pub enum Oneshot<S, R> where S: Service<R> {
        Waiting { service: S, request: R },
        Called { #[pin] future: S::Future },
        Moving,
    }
}

impl<S: Service<R>, R> Oneshot<S, R> {
    pub(crate) fn new(service: S, request: R) -> Self {
        Self::Waiting { service, request }
    }

    /// A call of a service that was ready.
    #[cfg(feature = "hyper")]
    #[inline(always)]
    pub(crate) fn called(future: S::Future) -> Self {
        Self::Called { future }
    }

    /// The request, until the service is called.
    pub(crate) fn request(&self) -> Option<&R> {
        if let Self::Waiting { request, .. } = self { Some(request) } else { None }
    }
}

impl<S: Service<R>, R> Future for Oneshot<S, R> {
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.as_mut().project() {
                OneshotProj::Called { future } => return future.poll(cx),
                OneshotProj::Waiting { service, .. } => ready!(service.poll_ready(cx))?,
                // Reached only if the service panicked when it was called, which ends this future.
                OneshotProj::Moving => return Poll::Pending,
            }
            if let OneshotOwned::Waiting { mut service, request } = self.as_mut().project_replace(Self::Moving) {
                let future = service.call(request);
                self.set(Self::Called { future });
            }
        }
    }
}
