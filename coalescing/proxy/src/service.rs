//! The path of each request: admission, coalescing, forwarding, and its record.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brunt_coalesce::{BoxError, Coalesce, CoalesceBody, CoalesceLayer, CutOff, Event};
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Limited};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::access_log::{Line, Log};
use crate::admission::Admission;
use crate::body::{ResponseBody, Upload};
use crate::config::{Coalescing, Config};
use crate::connection::{InFlight, Seat};
use crate::failure::ForwardError;
use crate::forward::{Forward, WantsUpgrade};
use crate::forwarded::Origin;
use crate::headers::COALESCED;
use crate::interim::Outbox;
use crate::metrics::{Metrics, Open};
use crate::notice::Notices;
use crate::streams;

/// The body of an answer: coalesced, or not.
type Answered = Either<CoalesceBody<ResponseBody>, ResponseBody>;

/// The answer as it is sent to a client.
pub(crate) type Sent = Watched<Answered>;

/// Answers requests.
struct Handler {
    forward: Forward,
    coalesced: Option<Coalesce<Forward>>,
}

/// Everything that connections share.
pub(crate) struct Frontend {
    handler: Handler,
    admission: Admission,
    pub(crate) layer: Option<CoalesceLayer>,
    pub(crate) metrics: Arc<Metrics>,
    log: Option<Log>,
    notices: Arc<Notices>,
    max_body: u64,
    client_timeout: Duration,
}

/// The client of a connection.
pub(crate) struct Client {
    pub(crate) origin: Origin,
    /// Its name in the access log.
    pub(crate) name: String,
    pub(crate) seat: Option<Seat>,
    /// What is sent to it before an answer, over HTTP/1.1.
    pub(crate) interim: Arc<Outbox>,
}

impl Frontend {
    pub(crate) fn new(
        config: &Config,
        forward: Forward,
        metrics: Arc<Metrics>,
        log: Option<Log>,
        notices: Arc<Notices>,
    ) -> Self {
        let layer = config.coalesce.as_ref().map(|coalescing| layer(coalescing, config, Arc::clone(&metrics)));
        let coalesced = layer.as_ref().map(|layer| layer.layer(forward.clone()));
        let handler = Handler { forward, coalesced };
        let (admission, client_timeout) = (Admission::new(config), config.client_timeout);
        Self { handler, admission, layer, metrics, log, notices, max_body: config.max_body, client_timeout }
    }

    pub(crate) async fn answer(
        self: Arc<Self>,
        client: Client,
        in_flight: InFlight,
        mut request: Request<Incoming>,
    ) -> Response<Sent> {
        let mut watch = Watch::begin(&self, client.name, in_flight, &request);
        let asks_head = request.method() == Method::HEAD;
        let asks = request.headers().contains_key(&COALESCED);
        let admitted = self.admission.admit(&mut request, client.origin);
        let is_too_long = declared_length(&request).is_some_and(|length| length > self.max_body);
        // After a faulty request, nothing later on its connection can be trusted.
        let (answered, closes) = match admitted {
            Err(rejection) => (Err((rejection.answer(), rejection.text.trim_end().to_owned())), true),
            Ok(_) if is_too_long => (Err(failure_answer(&ForwardError::BodyTooLong)), true),
            Ok(admitted) => {
                // The body has to end before the bytes behind it can belong to the other protocol.
                if let Some(protocol) = admitted.upgrade.filter(|_| request.body().is_end_stream()) {
                    request.extensions_mut().insert(WantsUpgrade { protocol, seat: client.seat });
                }
                if self.log.is_some() {
                    request.headers_mut().insert(COALESCED, HeaderValue::from_static("?"));
                }
                let turn = (request.version() == Version::HTTP_11).then(|| client.interim.turn());
                if let Some(turn) = &turn {
                    request.extensions_mut().insert(turn.sender());
                }
                let answer = self.handle(request, admitted.is_alone);
                let answered = match turn {
                    Some(turn) => turn.before(answer).await,
                    None => answer.await,
                };
                let closes = admitted.closes || answered.as_ref().is_err_and(|error| error.upstream().is_none());
                if let Err(error) = &answered
                    && error.upstream().is_some()
                {
                    self.notices.upstream_failed(&error.to_string());
                }
                (answered.map_err(|error| failure_answer(&error)), closes)
            }
        };
        let (mut response, error) = match answered {
            Ok(mut response) => {
                let failure = response.extensions_mut().remove::<ForwardError>().map(|failure| failure.to_string());
                if let Some(failure) = &failure {
                    self.notices.upstream_failed(failure);
                }
                (response, failure)
            }
            Err((response, error)) => (response.map(Either::Right), Some(error)),
        };
        let headers = response.headers_mut();
        if let Some(watch) = &mut watch.line {
            watch.coalesced = match headers.get(&COALESCED).map(HeaderValue::as_bytes) {
                Some(b"leader") => Some("leader"),
                Some(b"follower") => Some("follower"),
                _ => None,
            };
            watch.error = error;
        }
        if !asks {
            headers.remove(&COALESCED);
        }
        if closes && watch.is_http1 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        watch.status = response.status();
        let has_body = !asks_head && !matches!(watch.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let cut_off = match response.body() {
            Either::Left(coalesced) => coalesced.cut_off(),
            Either::Right(_) => None,
        };
        if let (Some(cut_off), Some(in_flight)) = (&cut_off, &watch.in_flight.1) {
            if watch.is_http1 { in_flight.ends_with(cut_off.clone()) } else { streams::ends_with(cut_off.clone()) }
        }
        response.map(|body| Watched::new(body, watch, has_body, cut_off))
    }

    async fn handle(&self, request: Request<Incoming>, is_alone: bool) -> Result<Response<Answered>, ForwardError> {
        let most = usize::try_from(self.max_body).unwrap_or(usize::MAX);
        let request = request.map(|body| Upload::new(Limited::new(body, most), self.client_timeout));
        let is_alone = is_alone && request.method().is_safe();
        match &self.handler.coalesced {
            // hyper's trait takes the request as it is; for tower's the service would have to be cloned.
            Some(coalesce) if !is_alone => {
                let answer = hyper::service::Service::call(coalesce, request);
                answer.await.map(|response| response.map(Either::Left))
            }
            _ => self.handler.forward.clone().call(request).await.map(|response| response.map(Either::Right)),
        }
    }
}

/// A failure's answer to the client, and its text for the access log.
fn failure_answer(error: &ForwardError) -> (Response<ResponseBody>, String) {
    (error.answer(), error.to_string())
}

/// The layer that a proxy's configuration asks for.
fn layer(coalescing: &Coalescing, config: &Config, metrics: Arc<Metrics>) -> CoalesceLayer {
    // A leader whose upstream hangs is given up after these; those that wait for it are answered then.
    let longest = config.response_timeout.saturating_add(config.connect_timeout).saturating_add(Duration::from_secs(5));
    // One client's request may have caused the failure, so others do not share that failure.
    let mut layer = CoalesceLayer::new()
        .share_failures(false)
        .all_safe_methods(coalescing.all_safe_methods)
        .share_no_cache(coalescing.share_no_cache)
        .hold(coalescing.hold)
        .max_wait(coalescing.max_wait.unwrap_or(longest))
        .observer(move |event| {
            if let Event::Waited(time) = event {
                metrics.waited(time);
            }
        });
    for name in &coalescing.ignored_headers {
        layer = layer.ignore_header(name.clone());
    }
    for name in &coalescing.ignored_cookies {
        layer = layer.ignore_cookie(name.clone());
    }
    if let Some(members) = coalescing.max_members {
        layer = layer.max_members(members);
    }
    if coalescing.join_late.is_some() || coalescing.join_late_bytes.is_some() {
        let within = coalescing.join_late.unwrap_or(brunt_coalesce::JOIN_LATE);
        layer = layer.join_late(within, coalescing.join_late_bytes.unwrap_or(brunt_coalesce::JOIN_LATE_BYTES));
    }
    if let Some(promotions) = coalescing.max_promotions {
        layer = layer.max_promotions(promotions);
    }
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

/// The record of a request, which is written once its answer has been sent or its client is gone.
pub(crate) struct Watch {
    began: Instant,
    metrics: Arc<Metrics>,
    log: Option<Log>,
    line: Option<Line>,
    status: StatusCode,
    body_bytes: u64,
    /// Whether all of the answer was given to the connection to be sent.
    is_whole: bool,
    is_http1: bool,
    in_flight: (Open, Option<InFlight>),
}

impl Watch {
    fn begin(frontend: &Frontend, client: String, in_flight: InFlight, request: &Request<Incoming>) -> Self {
        let line = frontend.log.as_ref().map(|_| Line {
            client,
            method: request.method().to_string(),
            target: request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
            version: if request.version() == Version::HTTP_2 { "HTTP/2" } else { "HTTP/1.1" },
            status: 0,
            body_bytes: 0,
            took: Duration::ZERO,
            coalesced: None,
            whole: false,
            error: None,
        });
        Self {
            began: Instant::now(),
            metrics: Arc::clone(&frontend.metrics),
            log: frontend.log.clone(),
            line,
            // The customary status of a client that left before it was answered.
            status: StatusCode::from_u16(499).unwrap_or_default(),
            body_bytes: 0,
            is_whole: false,
            is_http1: request.version() < Version::HTTP_2,
            in_flight: (frontend.metrics.request(), Some(in_flight)),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.metrics.answered(self.status, took, self.body_bytes);
        if let (Some(log), Some(line)) = (&self.log, self.line.take()) {
            let (status, body_bytes, whole) = (self.status.as_u16(), self.body_bytes, self.is_whole);
            log.write(Line { status, body_bytes, took, whole, ..line });
        }
    }
}

pin_project! {
    /// A body whose bytes are counted, and whose end is recorded.
    pub(crate) struct Watched<B: Body> {
        #[pin]
        body: B,
        // Whether the body is sent at all.
        is_sent: bool,
        // The length in bytes, where it is known.
        all: Option<u64>,
        has_failed: bool,
        // Tells, of a body that is not polled, that its client is too slow for those that share it.
        cut_off: Option<CutOff>,
        // The body's failure, held back until hyper has sent what came before it. hyper drops unsent bytes when a body
        // fails, so that a client would get nothing of an answer that fails at once.
        failure: Option<BoxError>,
        watch: Watch,
    }

    impl<B: Body> PinnedDrop for Watched<B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // hyper reads no further once it has as many bytes as the length says, so the end may never have been seen.
            let is_at_end = match *this.all {
                Some(all) => all == this.watch.body_bytes,
                None => this.watch.is_whole || this.body.is_end_stream(),
            };
            this.watch.is_whole = is_at_end && !*this.has_failed;
            let slow = this.cut_off.as_ref().filter(|_| !this.watch.is_whole).and_then(CutOff::error);
            if let (Some(slow), Some(line)) = (slow, &mut this.watch.line) {
                line.error.get_or_insert_with(|| slow.to_string());
            }
        }
    }
}

impl<B: Body> Watched<B> {
    /// `has_body`: whether an answer to this request, with this status, has a body (RFC 9110, section 6.4.1). If it has
    /// none, hyper would still send the bytes over HTTP/2, which clients take for a broken stream.
    fn new(body: B, watch: Watch, has_body: bool, cut_off: Option<CutOff>) -> Self {
        let all = if has_body { body.size_hint().exact() } else { Some(0) };
        Self { body, is_sent: has_body, all, has_failed: false, cut_off, failure: None, watch }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for Watched<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = self.project();
        if !*this.is_sent {
            return Poll::Ready(None);
        }
        if let Some(failure) = this.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        streams::client_ends();
        let frame = std::task::ready!(this.body.poll_frame(cx));
        let frame = match frame {
            Some(Ok(frame)) => {
                streams::client_begins();
                let data = frame.data_ref().map_or(0, bytes::Buf::remaining);
                this.watch.body_bytes += data as u64;
                // Nothing comes after trailers, and nobody asks for it.
                this.watch.is_whole |= frame.is_trailers();
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                *this.has_failed = true;
                let error = error.into();
                if let Some(line) = &mut this.watch.line {
                    line.error.get_or_insert_with(|| error.to_string());
                }
                *this.failure = Some(error);
                // hyper sends its bytes when it has nothing else to do.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            None => {
                this.watch.is_whole = true;
                None
            }
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        !self.is_sent || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_sent { self.body.size_hint() } else { SizeHint::with_exact(0) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::mpsc::sync_channel;

    use bytes::Bytes;

    use super::*;

    /// A body that does not know its end before it is asked for more.
    struct Pieces {
        left: VecDeque<Result<&'static str, BoxError>>,
        hint: SizeHint,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            let piece = self.left.pop_front();
            Poll::Ready(piece.map(|piece| piece.map(|text| Frame::data(Bytes::from_static(text.as_bytes())))))
        }

        fn size_hint(&self) -> SizeHint {
            self.hint
        }
    }

    fn watch(lines: Option<std::sync::mpsc::SyncSender<Line>>) -> Watch {
        let metrics = Arc::new(Metrics::default());
        let line = Line {
            client: String::new(),
            method: String::new(),
            target: String::new(),
            version: "HTTP/1.1",
            status: 0,
            body_bytes: 0,
            took: Duration::ZERO,
            coalesced: None,
            whole: false,
            error: None,
        };
        Watch {
            began: Instant::now(),
            log: lines.map(|lines| Log::to(lines, Arc::clone(&metrics))),
            line: Some(line),
            status: StatusCode::OK,
            body_bytes: 0,
            is_whole: false,
            is_http1: true,
            in_flight: (metrics.request(), None),
            metrics,
        }
    }

    /// The log line of a body in these pieces after so many were taken.
    fn logged(pieces: Vec<Result<&'static str, BoxError>>, length: Option<u64>, has_body: bool, takes: usize) -> Line {
        let (sender, lines) = sync_channel(1);
        let watch = watch(Some(sender));
        let hint = length.map_or_else(SizeHint::new, SizeHint::with_exact);
        let mut body = Watched::new(Pieces { left: pieces.into(), hint }, watch, has_body, None);
        for _ in 0..takes {
            let _ = Pin::new(&mut body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
        }
        drop(body);
        lines.try_recv().unwrap()
    }

    #[test]
    fn an_answer_is_whole_when_as_much_was_sent_as_its_length_says_though_nobody_asked_for_its_end() {
        let pieces = || vec![Ok("ab"), Ok("cd")];
        let whole = |length, takes| {
            let line = logged(pieces(), length, true, takes);
            (line.whole, line.body_bytes)
        };
        assert_eq!([whole(Some(4), 0), whole(Some(4), 1), whole(Some(4), 2)], [(false, 0), (false, 2), (true, 4)]);
        // One that ended before as much had come as its length says.
        assert_eq!(whole(Some(6), 3), (false, 4));
        // Of an unknown length, only its end says that it is there.
        assert_eq!([whole(None, 2), whole(None, 3)], [(false, 4), (true, 4)]);
    }

    #[test]
    fn an_answer_without_a_body_is_whole() {
        assert!(logged(Vec::new(), Some(1000), false, 0).whole);
        let not_sent = logged(vec![Ok("ab")], Some(2), false, 1);
        assert!(not_sent.whole && not_sent.body_bytes == 0);
        assert!(logged(Vec::new(), Some(0), true, 0).whole);
    }

    #[test]
    fn what_came_before_a_failure_is_sent_first() {
        let watch = watch(None);
        let pieces = Pieces { left: vec![Ok("ab"), Err("lost".into())].into(), hint: SizeHint::new() };
        let mut body = Watched::new(pieces, watch, true, None);
        let mut poll = || Pin::new(&mut body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(poll(), Poll::Ready(Some(Ok(_)))));
        assert!(poll().is_pending());
        assert!(matches!(poll(), Poll::Ready(Some(Err(_)))));
    }

    #[test]
    fn an_answer_that_failed_is_not_whole() {
        assert!(!logged(vec![Ok("ab"), Err("lost".into())], None, true, 2).whole);
        assert!(!logged(vec![Ok("ab"), Err("lost".into())], Some(2), true, 2).whole);
    }
}
