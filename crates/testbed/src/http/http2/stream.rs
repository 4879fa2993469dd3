//! The state that hyper and a stream's session share: the request as text, and the answer in parts.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Method, Request, Response, header};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::Service;

use super::answer::Part;
use super::lock;
use crate::service::OUTPUT;

/// A stream, as both sides see it.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The part of the request that its session has not taken.
    request: Vec<u8>,
    head: Option<Response<()>>,
    parts: VecDeque<Frame<Bytes>>,
    /// The bytes of these.
    waiting: usize,
    has_ended: bool,
    /// Whether it ended without all of its body.
    is_torn: bool,
    is_left: bool,
    /// The waker of the task that waits for the answer.
    waker: Option<Waker>,
}

impl Shared {
    pub(super) fn take_request(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.request)
    }

    /// Whether more of the answer may be made.
    pub(super) fn has_room(&self) -> bool {
        self.waiting < OUTPUT
    }

    pub(super) fn push(&mut self, part: Part) {
        match part {
            Part::Head(head) => self.head = Some(head),
            Part::Data(data) => {
                self.waiting += data.len();
                self.parts.push_back(Frame::data(data));
            }
            Part::Trailers(trailers) => self.parts.push_back(Frame::trailers(trailers)),
        }
        self.wake();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The answer is complete, or ends without the rest.
    pub(super) fn end(&mut self, is_torn: bool) {
        self.has_ended = true;
        self.is_torn = is_torn;
        self.wake();
    }

    /// Whether the client has given up the stream.
    pub(super) fn is_left(&self) -> bool {
        self.is_left
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// New streams, each with a flag for an answer without a body.
type NewStreams = Vec<(Arc<Mutex<Shared>>, bool)>;

/// Takes the requests of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests(Arc<Mutex<NewStreams>>);

impl Requests {
    /// The streams that have come since the last call.
    pub(super) fn take(&self) -> NewStreams {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let answer = Answer(Arc::clone(&shared));
        lock(&self.0).push((shared, request.method() == Method::HEAD));
        Box::pin(answer.to(request))
    }
}

/// An answer that ends without the rest: its stream is reset.
#[derive(Debug, thiserror::Error)]
#[error("the answer ends here, as asked for")]
pub(super) struct Torn;

/// An answer as a body for hyper. Dropping it gives the stream up.
#[derive(Debug)]
pub(super) struct Answer(Arc<Mutex<Shared>>);

impl Drop for Answer {
    fn drop(&mut self) {
        lock(&self.0).is_left = true;
    }
}

impl Answer {
    /// The answer to a request, once its head is there.
    async fn to(self, request: Request<Incoming>) -> Result<Response<Self>, Infallible> {
        let (head, mut body) = request.into_parts();
        let is_chunked = !body.is_end_stream() && !head.headers.contains_key(header::CONTENT_LENGTH);
        lock(&self.0).request = text_of(&head, is_chunked);
        // The client sends the body without waiting, and what it sends after the answer is dropped.
        while let Some(Ok(frame)) = poll_fn(|context| self.poll_body(&mut body, context)).await {
            let Ok(data) = frame.into_data() else { continue };
            let mut shared = lock(&self.0);
            if is_chunked && !data.is_empty() {
                shared.request.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
            }
            shared.request.extend_from_slice(&data);
            if is_chunked && !data.is_empty() {
                shared.request.extend_from_slice(b"\r\n");
            }
        }
        if is_chunked {
            lock(&self.0).request.extend_from_slice(b"0\r\n\r\n");
        }
        let head = poll_fn(|context| {
            let mut shared = lock(&self.0);
            shared.waker = Some(context.waker().clone());
            shared.head.take().map_or(Poll::Pending, Poll::Ready)
        });
        let head = head.await;
        Ok(head.map(|()| self))
    }

    /// The next part of the request's body; `None` at its end, or once there is an answer.
    fn poll_body(
        &self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        {
            let mut shared = lock(&self.0);
            shared.waker = Some(context.waker().clone());
            if shared.head.is_some() {
                return Poll::Ready(None);
            }
            // The session has to keep up.
            if shared.request.len() >= OUTPUT {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Pin::new(body).poll_frame(context)
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Torn;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Torn>>> {
        let mut shared = lock(&self.0);
        if let Some(frame) = shared.parts.pop_front() {
            shared.waiting -= frame.data_ref().map_or(0, Bytes::len);
            // There may be room for more.
            context.waker().wake_by_ref();
            return Poll::Ready(Some(Ok(frame)));
        }
        if shared.has_ended {
            return Poll::Ready(shared.is_torn.then_some(Err(Torn)));
        }
        shared.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        let shared = lock(&self.0);
        shared.has_ended && !shared.is_torn && shared.parts.is_empty()
    }
}

/// A request's head in the form of HTTP/1.1.
fn text_of(head: &http::request::Parts, is_chunked: bool) -> Vec<u8> {
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut text = format!("{} {path} HTTP/1.1\r\n", head.method).into_bytes();
    let mut field = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            text.extend_from_slice(part);
        }
    };
    if let Some(authority) = head.uri.authority().filter(|_| !head.headers.contains_key(header::HOST)) {
        field("host", authority.as_str().as_bytes());
    }
    for (name, value) in &head.headers {
        if !matches!(name.as_str(), "expect" | "connection" | "transfer-encoding" | "te") {
            field(name.as_str(), value.as_bytes());
        }
    }
    if is_chunked {
        field("transfer-encoding", b"chunked");
    }
    text.extend_from_slice(b"\r\n");
    text
}
