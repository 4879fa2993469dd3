//! The server of the page: HTTP/1.1, with the page at `/` and its states as server-sent events at `/events` (WHATWG
//! HTML, 9.2), both behind a token where other machines can reach it. Each event has the whole state, so a slow or
//! returning browser needs no earlier event.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use brunt_engine::{Changeable, Control};
use brunt_record::change::{Action, Author};
use brunt_record::live::Live;
use brunt_report::html::Running;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::ctl;
use crate::site::{ACCEPT_PAUSE, Body, Guard, HEAD, MOST_CONNECTIONS, Token, plain, with, with_body};

/// The time that browsers have to load the finished report, once the page closes.
const GRACE: Duration = Duration::from_secs(2);
/// The least time from one event to the next.
const LEAST_GAP: Duration = Duration::from_millis(200);
/// The least time between two events, as a multiple of the time that making one took: the run needs the CPU more.
const GAP_TO_WORK: u32 = 30;

/// The longest request for a change, in bytes.
const MOST_CHANGE: usize = 4096;
/// The error about a request for a change that cannot be read.
const EXPECTED: &str = "expected a rate such as 5000, a whole number of users such as 50, pause, resume, or a mark";

/// A change of the page's state.
pub(super) enum Update {
    /// A second of the run.
    Second {
        second: Box<Live>,
        /// The number of seconds before it that were left out.
        missed: u64,
    },
    /// A new state of a decision.
    Decision(String),
}

/// The last state of the page.
#[derive(Debug)]
pub(super) struct End {
    /// The state, as JSON in a line.
    pub(super) data: String,
    /// The number under which the result is kept, if it is kept.
    pub(super) kept: Option<i64>,
}

/// The subject of the page.
enum Source {
    Run(Box<Running>),
    Decision(String),
}

impl Source {
    fn take(&mut self, update: Update) {
        match (self, update) {
            (Self::Run(running), Update::Second { second, missed }) => {
                running.miss(missed);
                running.push(&second);
            }
            (source, Update::Decision(data)) => *source = Self::Decision(data),
            // The page of a decision shows no seconds.
            (Self::Decision(_), Update::Second { .. }) => {}
        }
    }

    /// The state as JSON; `None` while there is nothing to show.
    fn data(&self) -> Option<String> {
        match self {
            Self::Run(running) => running.data().ok(),
            Self::Decision(data) => Some(data.clone()).filter(|data| !data.is_empty()),
        }
    }
}

/// An encoded event.
#[derive(Debug, Clone, Default)]
struct Event {
    bytes: Bytes,
    is_last: bool,
}

impl Event {
    fn new(name: &str, data: &str) -> Self {
        Self { bytes: format!("retry: 1000\nevent: {name}\ndata: {data}\n\n").into(), is_last: false }
    }

    /// The last event: `kept` with the number, if there is one, and `finished`, after which pages stop listening.
    fn last(end: &End) -> Self {
        let kept = end.kept.map_or(String::new(), |number| format!("event: kept\ndata: {number}\n\n"));
        Self { bytes: format!("{kept}retry: 1000\nevent: finished\ndata: {}\n\n", end.data).into(), is_last: true }
    }
}

/// The changes of a run that the page offers.
#[derive(Debug)]
pub(super) struct Changing {
    control: Control,
    /// The offered changes, as JSON.
    offered: Bytes,
}

impl Changing {
    /// Offers these changes, made through `control`.
    pub(super) fn new(control: Control, Changeable { rate, users }: Changeable) -> Self {
        Self { control, offered: serde_json::json!({ "rate": rate, "users": users }).to_string().into() }
    }
}

/// State that connections share.
#[derive(Debug)]
struct Site {
    page: Bytes,
    guard: Guard,
    events: watch::Sender<Event>,
    /// Notified when a browser requests events.
    wanted: Notify,
    /// The number of browsers that follow the events.
    audience: Arc<AtomicUsize>,
    /// The changes of the run that the page offers, if any.
    changing: Option<Changing>,
}

/// The server; see the module's documentation.
pub(super) struct Server {
    source: Source,
    site: Arc<Site>,
    tls: Option<TlsAcceptor>,
}

impl Server {
    /// A server of `page` on `address`, which shows `running` or a decision; with a token, only to browsers that have
    /// it.
    pub(super) fn new(
        token: Option<Token>,
        page: String,
        running: Option<Running>,
        changing: Option<Changing>,
        tls: Option<Arc<ServerConfig>>,
        audience: Arc<AtomicUsize>,
    ) -> Self {
        let guard = Guard::new(token);
        let (events, wanted) = (watch::Sender::default(), Notify::new());
        let site = Site { page: page.into(), guard, events, wanted, audience, changing };
        let source = running.map_or(Source::Decision(String::new()), |running| Source::Run(Box::new(running)));
        Self { source, site: Arc::new(site), tls: tls.map(TlsAcceptor::from) }
    }

    /// Serves pages until `close` comes. When `finished` comes, with the last report or without one, no more updates
    /// are accepted.
    pub(super) async fn serve(
        mut self,
        listener: std::net::TcpListener,
        mut updates: mpsc::Receiver<Update>,
        mut finished: oneshot::Receiver<End>,
        mut close: oneshot::Receiver<()>,
    ) {
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let connections = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let (mut is_stale, mut next, mut is_over) = (true, Instant::now(), false);
        loop {
            let is_watched = self.site.events.receiver_count() > 0;
            tokio::select! {
                biased;
                end = &mut finished, if !is_over => {
                    let none = Event { is_last: true, ..Event::default() };
                    self.site.events.send_replace(end.map_or(none, |end| Event::last(&end)));
                    is_over = true;
                }
                _ = &mut close, if is_over => break,
                Some(update) = updates.recv(), if !is_over => {
                    self.source.take(update);
                    is_stale = true;
                }
                () = sleep_until(next), if is_stale && is_watched && !is_over => {
                    let began = Instant::now();
                    if let Some(data) = self.source.data() {
                        self.site.events.send_replace(Event::new("data", &data));
                    }
                    is_stale = false;
                    next = Instant::now() + LEAST_GAP.max(began.elapsed() * GAP_TO_WORK);
                }
                () = self.site.wanted.notified() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.attend(stream, &connections, &room),
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        drop(listener);
        // A browser that has not read it by then is not reading.
        let _ = timeout(GRACE, connections.shutdown()).await;
    }

    fn attend(&self, stream: TcpStream, connections: &GracefulShutdown, room: &Arc<Semaphore>) {
        let Ok(place) = Arc::clone(room).try_acquire_owned() else { return };
        let site = Arc::clone(&self.site);
        let service = service_fn(move |request: Request<Incoming>| {
            let site = Arc::clone(&site);
            async move {
                let is_change = request.method() == Method::POST;
                Ok::<_, Infallible>(if is_change { site.change(request).await } else { site.answer(&request) })
            }
        });
        let (tls, watcher) = (self.tls.clone(), connections.watcher());
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD);
            // A broken connection is its browser's affair.
            match tls {
                None => drop(watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await),
                Some(tls) => {
                    if let Ok(Ok(stream)) = timeout(HEAD, tls.accept(stream)).await {
                        drop(watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await);
                    }
                }
            }
            drop(place);
        });
    }
}

impl Site {
    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let path = match self.guard.admit(request.uri().path(), request.headers()) {
            Ok(path) => path,
            Err(refusal) => return refusal,
        };
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "GET is all there is\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match path {
            "/" => {
                let mut answer = with(self.page.clone(), "text/html; charset=utf-8");
                // A policy within the page cannot contain this directive (CSP 3, 3.3).
                let policy = HeaderValue::from_static("frame-ancestors 'none'");
                answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                answer
            }
            "/events" if request.method() == Method::HEAD => with(Bytes::new(), "text/event-stream"),
            "/events" => {
                let (sender, body) = Channel::new(1);
                let (events, audience) = (self.events.subscribe(), Arc::clone(&self.audience));
                tokio::spawn(async move {
                    audience.fetch_add(1, Ordering::Relaxed);
                    tell(events, sender).await;
                    audience.fetch_sub(1, Ordering::Relaxed);
                });
                self.wanted.notify_one();
                with_body(body.boxed(), "text/event-stream")
            }
            "/change" if let Some(changing) = &self.changing => with(changing.offered.clone(), "application/json"),
            _ => plain(StatusCode::NOT_FOUND, "there is nothing here but /\n"),
        }
    }

    /// Changes the run, if the page itself asks for it. No other page knows the token. On this machine, where no token
    /// is needed, the browser names the page that asks (Fetch Metadata).
    async fn change(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = match self.guard.admit(head.uri.path(), &head.headers) {
            Ok(path) => path,
            Err(refusal) => return refusal,
        };
        let Some(Changing { control, .. }) = self.changing.as_ref().filter(|_| path == "/change") else {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "GET is all there is\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        };
        let site = head.headers.get("sec-fetch-site");
        let is_own = site.map_or(self.guard.has_token(), |site| site.as_bytes() == b"same-origin");
        let is_json = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/json");
        if !is_own || !is_json {
            return plain(
                StatusCode::FORBIDDEN,
                "only the page itself changes the run; elsewhere there is brunt ctl\n",
            );
        }
        let Ok(Ok(bytes)) = timeout(HEAD, Limited::new(body, MOST_CHANGE).collect()).await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "the change is too long, or did not come\n");
        };
        let (status, text) = match serde_json::from_slice::<Action>(&bytes.to_bytes()) {
            Err(_) => (StatusCode::BAD_REQUEST, EXPECTED.to_owned()),
            Ok(action) => match control.ask(action, Author::Page) {
                Ok(change) => (StatusCode::OK, ctl::sentence(&change)),
                Err(refused) => (StatusCode::CONFLICT, refused.to_string()),
            },
        };
        let mut answer = with(text, "text/plain; charset=utf-8");
        *answer.status_mut() = status;
        answer
    }
}

/// Sends a browser the newest event whenever it has received the previous one.
async fn tell(mut events: watch::Receiver<Event>, mut browser: Sender<Bytes>) {
    loop {
        let event = events.borrow_and_update().clone();
        if !event.bytes.is_empty() && browser.send_data(event.bytes).await.is_err() {
            return;
        }
        if event.is_last || events.changed().await.is_err() {
            return;
        }
    }
}
