//! Bodies on their way through: with a limit on the way in, and with a limit of time on the way out.

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

/// What a client sends.
pub(crate) type RequestBody = Limited<Incoming>;

/// What the upstream sends, or the proxy in its place.
pub(crate) type ResponseBody = Either<Paced<Incoming>, Full<Bytes>>;

/// The upstream sent nothing for too long, in the middle of a body.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected more of the upstream's body within {0:?}, got nothing; raise the response timeout if it may be that slow"
)]
pub(crate) struct Stalled(Duration);

pin_project! {
    /// A body of the upstream's, which fails if its next piece takes too long. How it fails is counted.
    pub(crate) struct Paced<B> {
        #[pin]
        body: B,
        most: Duration,
        patience: Option<Pin<Box<Sleep>>>,
        waits: bool,
        metrics: Arc<Metrics>,
    }
}

impl<B> Paced<B> {
    pub(crate) fn new(body: B, most: Duration, metrics: Arc<Metrics>) -> Self {
        Self { body, most, patience: None, waits: false, metrics }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for Paced<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            *this.waits = false;
            if matches!(frame, Some(Err(_))) {
                this.metrics.upstream_failed(UpstreamFailure::Body);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let patience = this.patience.get_or_insert_with(|| Box::pin(sleep(*this.most)));
        if !*this.waits {
            *this.waits = true;
            patience.as_mut().reset(Instant::now() + *this.most);
        }
        ready!(patience.as_mut().poll(cx));
        this.metrics.upstream_failed(UpstreamFailure::Timeout);
        Poll::Ready(Some(Err(Box::new(Stalled(*this.most)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
