//! A service whose every call is held until the test says what comes of it, and clients of it behind the layer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use brunt_coalesce::{BodyError, BoxError, Coalesce, CoalesceBody, CoalesceLayer, Counters, ResponseFuture};
use bytes::Bytes;
use futures_util::task::noop_waker;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Empty;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{mpsc, oneshot};
use tower::{Layer as _, Service as _};

/// The body of requests.
pub type RequestBody = Empty<Bytes>;
/// What comes of a call.
pub type Answer = Result<Response<Stream>, Refused>;

/// A failure of the service.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused(pub usize);

/// A body that the test makes piece by piece.
pub struct Stream {
    pieces: mpsc::UnboundedReceiver<Result<Frame<Bytes>, BoxError>>,
    hint: SizeHint,
    _live: Live,
    last_is_sent: Arc<AtomicBool>,
    /// Pieces that were asked for.
    pub asked: Arc<AtomicUsize>,
}

impl Body for Stream {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = self.pieces.poll_recv(cx);
        if let Poll::Ready(Some(Ok(frame))) = &piece {
            self.asked.fetch_add(1, Ordering::Relaxed);
            assert!(frame.data_ref().is_none_or(|data| data != "panic"), "a body that panics, as asked for");
        }
        piece
    }

    fn is_end_stream(&self) -> bool {
        self.last_is_sent.load(Ordering::Relaxed) && self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

/// Counts what has not been dropped.
pub struct Live(Arc<AtomicUsize>);

impl Live {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A call that has reached the service.
pub struct Call {
    pub request: Request<RequestBody>,
    answer: oneshot::Sender<Option<Answer>>,
    live: Arc<AtomicUsize>,
}

/// The other end of a [`Stream`].
#[derive(Clone)]
pub struct Source {
    pieces: mpsc::UnboundedSender<Result<Frame<Bytes>, BoxError>>,
    last_is_sent: Arc<AtomicBool>,
    pub asked: Arc<AtomicUsize>,
}

impl Source {
    pub fn send(&self, text: &'static str) {
        self.data(Bytes::from_static(text.as_bytes()));
    }

    /// Sends the last piece, which the body knows to be the last.
    pub fn send_last(&self, text: &'static str) {
        self.last_is_sent.store(true, Ordering::Relaxed);
        self.send(text);
    }

    pub fn data(&self, data: Bytes) {
        let _ = self.pieces.send(Ok(Frame::data(data)));
    }

    pub fn trailers(&self, map: HeaderMap) {
        let _ = self.pieces.send(Ok(Frame::trailers(map)));
    }

    pub fn fail(&self) {
        let _ = self.pieces.send(Err("the body failed".into()));
    }
}

impl Call {
    pub fn header(&self, name: &str) -> &str {
        self.request.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Answers with a whole body.
    pub fn answer(self, text: &'static str) {
        self.answer_with(&[], text);
    }

    pub fn answer_with(self, headers: &[(&str, &str)], text: &'static str) {
        let source = self.begin(200, headers, None);
        if !text.is_empty() {
            source.send(text);
        }
    }

    /// Answers with a head, and a body that is yet to come: it ends when what is returned is dropped.
    pub fn begin(self, status: u16, headers: &[(&str, &str)], length: Option<u64>) -> Source {
        self.begin_as(status, headers, length, None)
    }

    /// The same, with an extension.
    pub fn begin_as(
        self,
        status: u16,
        headers: &[(&str, &str)],
        length: Option<u64>,
        extension: Option<brunt_coalesce::SharedFailure>,
    ) -> Source {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let (sender, pieces) = mpsc::unbounded_channel();
        let source = Source { pieces: sender, last_is_sent: Arc::default(), asked: Arc::default() };
        let hint = length.map_or_else(SizeHint::new, SizeHint::with_exact);
        let (last_is_sent, asked) = (Arc::clone(&source.last_is_sent), Arc::clone(&source.asked));
        let body = Stream { pieces, hint, _live: Live::new(&self.live), last_is_sent, asked };
        let mut response = response.body(body).unwrap();
        extension.map(|extension| response.extensions_mut().insert(extension));
        let _ = self.answer.send(Some(Ok(response)));
        source
    }

    pub fn fail(self, number: usize) {
        let _ = self.answer.send(Some(Err(Refused(number))));
    }

    pub fn panic(self) {
        let _ = self.answer.send(None);
    }

    /// Whether nobody waits for it any more.
    pub fn is_dropped(&self) -> bool {
        self.answer.is_closed()
    }
}

type Inner = tower::util::BoxCloneSyncService<Request<RequestBody>, Response<Stream>, Refused>;
/// The layer around the service.
pub type Layered = Coalesce<Inner>;

/// What is done with a call as the service is called.
type AtOnce = Box<dyn FnOnce(Call) + Send>;

/// The service, its layer and what has been asked of it.
pub struct Origin {
    pub layer: CoalesceLayer,
    pub service: Layered,
    calls: mpsc::UnboundedReceiver<Call>,
    at_once: Arc<Mutex<VecDeque<AtOnce>>>,
    live: Arc<AtomicUsize>,
    /// Timers need one, though nothing here waits for them.
    _runtime: Option<tokio::runtime::EnterGuard<'static>>,
}

/// A runtime for tests that have none.
fn runtime() -> Option<tokio::runtime::EnterGuard<'static>> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let new = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    Handle::try_current().is_err().then(|| RUNTIME.get_or_init(new).enter())
}

impl Origin {
    pub fn new() -> Self {
        Self::behind(CoalesceLayer::new())
    }

    pub fn behind(layer: CoalesceLayer) -> Self {
        let (sender, calls) = mpsc::unbounded_channel();
        let live = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&live);
        let at_once: Arc<Mutex<VecDeque<AtOnce>>> = Arc::default();
        let actions = Arc::clone(&at_once);
        let inner = tower::service_fn(move |request| {
            let (answer, answered) = oneshot::channel();
            let kept = Live::new(&count);
            let call = Call { request, answer, live: Arc::clone(&count) };
            let action = actions.lock().unwrap().pop_front();
            match action {
                Some(action) => action(call),
                None => drop(sender.send(call)),
            }
            async move {
                let _kept = kept;
                match answered.await {
                    Ok(Some(answer)) => answer,
                    Ok(None) => panic!("a handler that panics, as asked for"),
                    Err(_) => std::future::pending().await,
                }
            }
        });
        let service = layer.layer(Inner::new(inner));
        Self { layer, service, calls, at_once, live, _runtime: runtime() }
    }

    /// Does this with the next call, as the service is called.
    pub fn at_once(&mut self, action: impl FnOnce(Call) + Send + 'static) {
        self.at_once.lock().unwrap().push_back(Box::new(action));
    }

    /// A request that has been sent, and polled once.
    pub fn ask(&mut self, request: Request<RequestBody>) -> Client {
        let mut client = self.send(request);
        client.poll();
        client
    }

    /// A request that has been sent, and not polled yet.
    pub fn send(&mut self, request: Request<RequestBody>) -> Client {
        Client::new(&mut self.service, request)
    }

    pub fn get(&mut self, uri: &str, headers: &[(&str, &str)]) -> Client {
        self.ask(request("GET", uri, headers))
    }

    /// The next call that reached the service.
    #[track_caller]
    pub fn call(&mut self) -> Call {
        self.calls.try_recv().expect("no further call reached the service")
    }

    /// How many calls have reached the service and were not looked at.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Futures and bodies of the service that have not been dropped.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    pub fn counters(&self) -> Counters {
        self.layer.counters()
    }

    /// Nothing is left behind, and the counters add up.
    #[track_caller]
    pub fn is_empty(&self, requests: u64) {
        let c = self.counters();
        assert_eq!(self.live(), 0, "futures or bodies are left");
        assert_eq!(self.layer.held_bytes(), 0, "bytes are held");
        assert_eq!(c.passed + c.refused + c.remembered + c.flights + c.followers - c.regrouped, requests, "{c:?}");
        assert_eq!(c.flights, c.ended + c.unshared + c.failed + c.cancelled, "{c:?}");
        let ends = c.shared + c.promoted + c.shared_failures + c.went_alone + c.vanished + c.regrouped;
        assert_eq!(c.followers, ends, "{c:?}");
    }
}

pub fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request<RequestBody> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Empty::new()).unwrap()
}

/// Who asked.
pub struct Client {
    future: Option<Pin<Box<ResponseFuture<Inner, RequestBody>>>>,
    pub answer: Option<Result<Response<CoalesceBody<Stream>>, Refused>>,
}

impl Client {
    pub fn new(service: &mut Layered, request: Request<RequestBody>) -> Self {
        Self { future: Some(Box::pin(service.call(request))), answer: None }
    }

    /// Goes away before it is answered.
    pub fn go_away(&mut self) {
        self.future = None;
    }

    /// Polls for the head; whether it is there.
    pub fn poll(&mut self) -> bool {
        let polled = self.future.as_mut().map(|future| future.as_mut().poll(&mut Context::from_waker(&noop_waker())));
        if let Some(Poll::Ready(answer)) = polled {
            (self.answer, self.future) = (Some(answer), None);
        }
        self.answer.is_some()
    }

    /// The same, with a panic as an error.
    pub fn poll_panics(&mut self) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.poll())).is_err()
    }

    #[track_caller]
    pub fn head(&mut self) -> &Response<CoalesceBody<Stream>> {
        assert!(self.poll(), "there is no answer yet");
        self.answer.as_ref().unwrap().as_ref().expect("the service failed")
    }

    #[track_caller]
    pub fn header(&mut self, name: &str) -> String {
        self.head().headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
    }

    #[track_caller]
    pub fn error(&mut self) -> Refused {
        assert!(self.poll(), "there is no answer yet");
        self.answer.take().unwrap().err().unwrap()
    }

    /// The next piece of the body, if it is there.
    #[track_caller]
    pub fn piece(&mut self) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.piece_by(&noop_waker())
    }

    /// The same, with this waker.
    #[track_caller]
    pub fn piece_by(&mut self, waker: &Waker) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        assert!(self.poll(), "there is no answer yet");
        let body = self.answer.as_mut().unwrap().as_mut().expect("the service failed").body_mut();
        Pin::new(body).poll_frame(&mut Context::from_waker(waker))
    }

    /// The next piece of the body, which must be this text.
    #[track_caller]
    pub fn reads(&mut self, text: &str) {
        match self.piece() {
            Poll::Ready(Some(Ok(frame))) => assert_eq!(frame.into_data().unwrap(), text),
            other => panic!("expected {text}, got {other:?}"),
        }
    }

    #[track_caller]
    pub fn reads_the_end(&mut self) {
        assert!(matches!(self.piece(), Poll::Ready(None)), "the body goes on");
    }

    #[track_caller]
    pub fn has_all(&mut self, text: &str) {
        assert_eq!(self.head().status(), 200);
        self.reads(text);
        self.reads_the_end();
    }

    /// Waits for the head as a task would.
    pub async fn wait(&mut self) {
        if let Some(future) = &mut self.future {
            self.answer = Some(poll_fn(|cx| future.as_mut().poll(cx)).await);
            self.future = None;
        }
    }
}

const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<ResponseFuture<Inner, RequestBody>>();
    is_send::<CoalesceBody<Stream>>();
};
