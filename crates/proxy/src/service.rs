//! What happens to each request: limits, coalescing, forwarding, and what is written down of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use brunt_coalesce::{BoxError, Coalesce, CoalesceBody, CoalesceLayer};
use http::header::CONTENT_LENGTH;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Limited};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::access_log::{Line, Log};
use crate::body::{RequestBody, ResponseBody};
use crate::config::{Coalescing, Config};
use crate::forward::{Forward, refusal};
use crate::headers::Origin;
use crate::metrics::{Metrics, Open};

const COALESCED: HeaderName = HeaderName::from_static("x-coalesced");

/// What a client is sent.
pub(crate) type Sent = Watched<Either<CoalesceBody<ResponseBody>, ResponseBody>>;

/// What answers requests.
#[derive(Clone)]
enum Handler {
    Plain(Forward),
    Coalesced(Coalesce<Forward, RequestBody>),
}

/// Everything that connections share.
pub(crate) struct Frontend {
    handler: Handler,
    pub(crate) layer: Option<CoalesceLayer<RequestBody>>,
    pub(crate) metrics: Arc<Metrics>,
    log: Option<Log>,
    max_body: u64,
}

impl Frontend {
    pub(crate) fn new(config: &Config, forward: Forward, metrics: Arc<Metrics>, log: Option<Log>) -> Self {
        let layer = config.coalesce.as_ref().map(|coalescing| layer(coalescing, config));
        let handler = match &layer {
            Some(layer) => Handler::Coalesced(layer.layer(forward)),
            None => Handler::Plain(forward),
        };
        Self { handler, layer, metrics, log, max_body: config.max_body }
    }

    pub(crate) async fn answer(
        self: Arc<Self>,
        origin: Origin,
        client: String,
        mut request: Request<Incoming>,
    ) -> Response<Sent> {
        let mut watch = Watch::begin(&self, client, &request);
        request.extensions_mut().insert(origin);
        let asks = request.headers().contains_key(&COALESCED);
        if self.log.is_some() {
            request.headers_mut().insert(COALESCED, HeaderValue::from_static("?"));
        }
        let mut response = self.handle(request).await;
        let headers = response.headers_mut();
        if let Some(watch) = &mut watch.line {
            watch.coalesced = match headers.get(&COALESCED).map(HeaderValue::as_bytes) {
                Some(b"leader") => Some("leader"),
                Some(b"follower") => Some("follower"),
                _ => None,
            };
        }
        if !asks {
            headers.remove(&COALESCED);
        }
        watch.status = response.status();
        response.map(|body| Watched { body, watch })
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Either<CoalesceBody<ResponseBody>, ResponseBody>> {
        if declared_length(&request).is_some_and(|length| length > self.max_body) {
            let text = "the request's body is longer than this proxy takes\n";
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, text).map(Either::Right);
        }
        let most = usize::try_from(self.max_body).unwrap_or(usize::MAX);
        let request = request.map(|body| Limited::new(body, most));
        let answered = match self.handler.clone() {
            Handler::Plain(mut forward) => forward.call(request).await.map(|response| response.map(Either::Right)),
            Handler::Coalesced(mut coalesce) => coalesce.call(request).await.map(|response| response.map(Either::Left)),
        };
        match answered {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// The layer that a proxy's configuration asks for.
fn layer(coalescing: &Coalescing, config: &Config) -> CoalesceLayer<RequestBody> {
    let mut layer =
        CoalesceLayer::new().hold(coalescing.hold).max_wait(coalescing.max_wait.unwrap_or(config.response_timeout));
    for name in &coalescing.key_headers {
        layer = layer.key_header(name.clone());
    }
    if let Some(bytes) = coalescing.flight_bytes {
        layer = layer.max_bytes_per_flight(bytes);
    }
    if let Some(bytes) = coalescing.total_bytes {
        layer = layer.max_bytes(bytes);
    }
    layer
}

fn declared_length(request: &Request<Incoming>) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// What is written down of a request once its answer has been sent, or its client is gone.
pub(crate) struct Watch {
    began: Instant,
    metrics: Arc<Metrics>,
    log: Option<Log>,
    line: Option<Line>,
    status: StatusCode,
    body_bytes: u64,
    ended: bool,
    _in_flight: Open,
}

impl Watch {
    fn begin(frontend: &Frontend, client: String, request: &Request<Incoming>) -> Self {
        let line = frontend.log.as_ref().map(|_| Line {
            client,
            method: request.method().to_string(),
            target: request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
            version: if request.version() == Version::HTTP_2 { "HTTP/2" } else { "HTTP/1.1" },
            status: 0,
            body_bytes: 0,
            took: std::time::Duration::ZERO,
            coalesced: None,
            whole: false,
        });
        Self {
            began: Instant::now(),
            metrics: Arc::clone(&frontend.metrics),
            log: frontend.log.clone(),
            line,
            // As others write it down of a client that went away before it was answered.
            status: StatusCode::from_u16(499).unwrap_or_default(),
            body_bytes: 0,
            ended: false,
            _in_flight: frontend.metrics.request(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.metrics.answered(self.status, took, self.body_bytes);
        if let (Some(log), Some(line)) = (&self.log, self.line.take()) {
            let (status, body_bytes, whole) = (self.status.as_u16(), self.body_bytes, self.ended);
            log.write(Line { status, body_bytes, took, whole, ..line });
        }
    }
}

pin_project! {
    /// A body that is counted, and whose end is written down.
    pub(crate) struct Watched<B: Body> {
        #[pin]
        body: B,
        watch: Watch,
    }

    impl<B: Body> PinnedDrop for Watched<B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            this.watch.ended |= this.body.is_end_stream();
        }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for Watched<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = self.project();
        let frame = std::task::ready!(this.body.poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(0, bytes::Buf::remaining);
                this.watch.body_bytes += data as u64;
            }
            Some(Err(_)) => {}
            None => this.watch.ended = true,
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
