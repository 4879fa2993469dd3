//! Our layer, deliberately broken: what should tell requests apart is hidden from it, and shown to the origin again.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use brunt_coalesce::{CoalesceBody, CoalesceLayer};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower_layer::Layer as _;
use tower_service::Service;

/// What is hidden from the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    Query,
    Header(&'static str),
    /// Requests with this method look like GET.
    Method(&'static str),
    /// What `Connection` nominates is taken away from the origin, after the layer has looked at it.
    Nominated,
    /// Writes look like OPTIONS.
    Writes,
}

/// What was hidden.
#[derive(Debug, Clone)]
struct Hidden {
    method: Method,
    uri: Uri,
    headers: http::HeaderMap,
}

type Asked = Request<Empty<Bytes>>;

/// How many requests a server has that it did not answer yet.
pub type InFlight = Arc<dyn Fn() -> usize + Send + Sync>;

/// The origin: counts, repeats who asked, and answers none of what `brunt coalesce-check` asks at once before the server
/// in front of it has all of that. So whatever can be coalesced is, on the slowest of machines.
#[derive(Clone)]
struct Origin {
    hits: Arc<AtomicU64>,
    together: Arc<Together>,
    /// Of the server in front of it.
    in_flight: InFlight,
}

impl Origin {
    fn behind(in_flight: InFlight) -> Self {
        Self { hits: Arc::default(), together: Arc::default(), in_flight }
    }
}

/// What was asked at once, of which all had come: the URLs, without what sets one of a pair apart.
#[derive(Default)]
struct Together(Mutex<HashSet<String>>);

impl Together {
    /// Waits until the server has all that is asked at the same time as this.
    async fn wait(&self, target: &str, in_flight: InFlight) {
        let shared = &target.split("&who=").next().unwrap_or(target).replace("/./", "/");
        // A write comes and goes while a read waits for another.
        let steady = if target.contains("-read-after-write-") { 10 } else { 1 };
        let mut seen = 0;
        while !self.0.lock().unwrap().contains(shared) {
            let in_flight = Arc::clone(&in_flight);
            let are_all_there = tokio::task::spawn_blocking(move || in_flight()).await.unwrap() >= at_once(target);
            seen = if are_all_there { seen + 1 } else { 0 };
            if seen >= steady {
                self.0.lock().unwrap().insert(shared.to_owned());
            } else {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

/// How many requests `brunt coalesce-check -c 8` makes at once of which this is one.
fn at_once(target: &str) -> usize {
    match target.split_once("brunt-check=") {
        Some((_, name)) if name.ends_with("-alone") => 1,
        Some((_, name)) if name.contains("-identical-") => 8,
        Some(_) => 2,
        None => 1,
    }
}

impl Service<Asked> for Origin {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Asked) -> Self::Future {
        let Self { hits, together, in_flight } = self.clone();
        Box::pin(async move {
            let seen = request.extensions().get::<Hidden>().unwrap();
            if seen.uri.path() == "/count" {
                return Ok(Response::new(Full::new(hits.load(Ordering::SeqCst).to_string().into())));
            }
            let hit = hits.fetch_add(1, Ordering::SeqCst);
            // A write is answered before those who read.
            let is_write = seen.method == Method::POST && seen.uri.to_string().contains("-read-after-write-");
            if !is_write {
                together.wait(&seen.uri.to_string(), in_flight).await;
            }
            let text = format!("{} {}\n{:?}\n", seen.method, seen.uri, seen.headers);
            let body = if seen.method == Method::HEAD { Bytes::new() } else { text.into() };
            let mut response = Response::new(Full::new(body));
            response.headers_mut().insert("x-origin-hit", HeaderValue::from(hit));
            Ok(response)
        })
    }
}

/// A running server; it ends when dropped.
pub struct Server {
    address: SocketAddr,
    _runtime: Runtime,
}

impl Server {
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves connections with what `answer` makes of each request.
fn listen<F>(answer: impl Fn(Request<hyper::body::Incoming>) -> F + Clone + Send + 'static) -> Server
where
    F: Future<Output = Response<BoxBody>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            let answer = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    Server { address, _runtime: runtime }
}

type BoxBody = http_body_util::combinators::UnsyncBoxBody<Bytes, brunt_coalesce::BoxError>;

/// The layer, broken like this, before the origin.
pub fn serve(broken: Broken) -> Server {
    let asked = Arc::new(AtomicUsize::new(0));
    let in_flight = Arc::clone(&asked);
    let origin = Origin::behind(Arc::new(move || in_flight.load(Ordering::SeqCst)));
    let service = CoalesceLayer::new().layer(origin);
    listen(move |request| {
        let (mut service, asked) = (service.clone(), Arc::clone(&asked));
        async move {
            asked.fetch_add(1, Ordering::SeqCst);
            let request = hide(request.map(|_| Empty::new()), broken);
            let answer: Result<Response<CoalesceBody<_>>, Infallible> = service.call(request).await;
            asked.fetch_sub(1, Ordering::SeqCst);
            answer.unwrap().map(|body| body.map_err(Into::into).boxed_unsync())
        }
    })
}

/// The origin alone, for a server before it that has so many requests in flight. Its path `/count` says how many it got.
pub fn origin(in_flight: InFlight) -> Server {
    let origin = Origin::behind(in_flight);
    listen(move |request| {
        let mut origin = origin.clone();
        async move {
            let answer = origin.call(hide(request.map(|_| Empty::new()), Broken::Nothing)).await;
            answer.unwrap().map(|body| body.map_err(|never| match never {}).boxed_unsync())
        }
    })
}

fn hide(mut request: Asked, broken: Broken) -> Asked {
    let (method, uri, headers) = (request.method().clone(), request.uri().clone(), request.headers().clone());
    request.extensions_mut().insert(Hidden { method, uri, headers });
    match broken {
        Broken::Nothing => {}
        // Its own part of the query is what sets one probe apart from the next.
        Broken::Query => {
            let target = request.uri().to_string();
            *request.uri_mut() = target.split("&who=").next().unwrap().parse().unwrap();
        }
        Broken::Header(name) => {
            request.headers_mut().remove(HeaderName::from_static(name));
        }
        Broken::Nominated => {
            if let Some(nominated) = request.headers_mut().remove("connection") {
                let hidden = request.extensions_mut().get_mut::<Hidden>().unwrap();
                hidden.headers.remove(nominated.to_str().unwrap());
            }
        }
        Broken::Writes => {
            if *request.method() == Method::POST {
                *request.method_mut() = Method::OPTIONS;
            }
        }
        Broken::Method(name) => {
            if request.method().as_str() == name {
                *request.method_mut() = Method::GET;
                request.headers_mut().remove("content-length");
            }
        }
    }
    request
}
