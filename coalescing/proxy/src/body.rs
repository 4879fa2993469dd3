//! Bodies on their way through: with a limit of length on the way in, and with limits of time both ways.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use brunt_coalesce::BoxError;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Full, Limited};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};

use crate::metrics::{Metrics, UpstreamFailure};
use crate::patience::WaitClock;

/// A request's body, from the client.
pub(crate) type RequestBody = Upload<Limited<Incoming>>;

/// An answer's body, from the upstream or from the proxy itself.
pub(crate) type ResponseBody = Either<Download<Incoming>, Full<Bytes>>;

/// The error of a body whose sender sent nothing for too long.
#[derive(Debug, thiserror::Error)]
#[error("expected more of the {sender}'s body within {most:?}, got nothing; raise the {limit} if it may be that slow")]
pub(crate) struct Stalled {
    sender: &'static str,
    limit: &'static str,
    most: Duration,
}

pin_project! {
    /// A body that fails if its next piece takes too long.
    struct Paced<B> {
        #[pin]
        body: B,
        most: Duration,
        patience: Option<Pin<Box<Sleep>>>,
        waits: bool,
    }
}

/// The result of polling a paced body.
enum Next<D, E> {
    Frame(Option<Result<Frame<D>, E>>),
    Stalled,
}

impl<B: Body> Paced<B> {
    fn new(body: B, most: Duration) -> Self {
        Self { body, most, patience: None, waits: false }
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Next<B::Data, B::Error>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            *this.waits = false;
            return Poll::Ready(Next::Frame(frame));
        }
        let patience = this.patience.get_or_insert_with(|| Box::pin(sleep(*this.most)));
        if !*this.waits {
            *this.waits = true;
            patience.as_mut().reset(Instant::now() + *this.most);
        }
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(Next::Stalled)
    }
}

pin_project! {
    /// A client's body. It fails if its next piece takes too long, and tells when the proxy waits for the upstream and
    /// not for the client.
    pub(crate) struct Upload<B> {
        #[pin]
        paced: Paced<B>,
        upstream: Arc<WaitClock>,
    }
}

impl<B: Body> Upload<B> {
    pub(crate) fn new(body: B, client_timeout: Duration) -> Self {
        let upstream = Arc::new(WaitClock::default());
        upstream.begins();
        Self { paced: Paced::new(body, client_timeout), upstream }
    }

    /// Since when the upstream is waited for, while this is passed on.
    pub(crate) fn upstream(&self) -> Arc<WaitClock> {
        Arc::clone(&self.upstream)
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for Upload<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Poll::Ready(next) = this.paced.as_mut().poll_next(cx) else {
            this.upstream.ends();
            return Poll::Pending;
        };
        this.upstream.begins();
        Poll::Ready(match next {
            Next::Frame(frame) => frame.map(|frame| frame.map_err(Into::into)),
            Next::Stalled => {
                let stalled = Stalled { sender: "client", limit: "client timeout", most: this.paced.most };
                Some(Err(Box::new(stalled)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.paced.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.paced.body.size_hint()
    }
}

pin_project! {
    /// An upstream's body. It fails if its next piece takes too long. Failures are counted.
    pub(crate) struct Download<B> {
        #[pin]
        paced: Paced<B>,
        metrics: Arc<Metrics>,
    }
}

impl<B: Body> Download<B> {
    pub(crate) fn new(body: B, response_timeout: Duration, metrics: Arc<Metrics>) -> Self {
        Self { paced: Paced::new(body, response_timeout), metrics }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for Download<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        match ready!(this.paced.as_mut().poll_next(cx)) {
            Next::Frame(frame) => {
                if matches!(frame, Some(Err(_))) {
                    this.metrics.upstream_failed(UpstreamFailure::Body);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Next::Stalled => {
                this.metrics.upstream_failed(UpstreamFailure::Timeout);
                let stalled = Stalled { sender: "upstream", limit: "response timeout", most: this.paced.most };
                Poll::Ready(Some(Err(Box::new(stalled))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.paced.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.paced.body.size_hint()
    }
}
