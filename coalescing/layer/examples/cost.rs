//! What the layer costs a handler that does nothing: `cost SERVER REQUEST N` answers N requests of a browser, one after the other and
//! without sockets, so that its instructions can be counted (`benchmarks/coalescing/cost.py`).
//!
//! SERVER is `axum` (a router with a layer that does nothing), `axum-coalesce`, `hyper` (a connection of HTTP/1.1) or
//! `hyper-coalesce`. REQUEST is `get`, `proxied` (with five fields of a proxy before it), or one that is not coalesced: `cookie` (a GET
//! with a cookie) or `post` (without a body).
#![allow(clippy::print_stderr, reason = "it is an example")]

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use brunt_coalesce::CoalesceLayer;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::{Request, Response};
use tower::{Layer, Service, service_fn};

/// That of brunt. What the C library's spends on an allocation depends on what lies free around it, by thousands of instructions a
/// request from one build to the next.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The fields of a browser's request for a page.
const FIELDS: [(&str, &str); 15] = [
    ("Host", "127.0.0.1:3000"),
    ("Connection", "keep-alive"),
    ("sec-ch-ua", "\"Chromium\";v=\"142\", \"Not_A Brand\";v=\"99\""),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    ("Upgrade-Insecure-Requests", "1"),
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-User", "?1"),
    ("Sec-Fetch-Dest", "document"),
    ("Referer", "http://127.0.0.1:3000/"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Accept-Language", "en-US,en;q=0.9"),
];

/// The fields that a proxy adds.
const PROXYS: [(&str, &str); 5] = [
    ("X-Forwarded-For", "203.0.113.27"),
    ("X-Real-IP", "203.0.113.27"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "app.example.com"),
    ("X-Request-Id", "5f1a2b3c4d5e6f708192a3b4c5d6e7f8"),
];

/// The kind of request.
#[derive(Clone, Copy)]
struct Kind {
    method: &'static str,
    /// Fields beside [`FIELDS`].
    more: &'static [(&'static str, &'static str)],
}

impl Kind {
    fn by_name(name: &str) -> Option<Self> {
        match name {
            "get" => Some(Self { method: "GET", more: &[] }),
            "proxied" => Some(Self { method: "GET", more: &PROXYS }),
            "cookie" => Some(Self { method: "GET", more: &[("Cookie", "sid=0123456789abcdef")] }),
            "post" => Some(Self { method: "POST", more: &[("Content-Length", "0")] }),
            _ => None,
        }
    }

    fn fields(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        FIELDS.iter().chain(self.more).copied()
    }
}

/// A layer that does nothing.
#[derive(Clone)]
struct Nothing;

/// The service that it makes.
#[derive(Clone)]
struct Passes<S>(S);

impl<S> Layer<S> for Nothing {
    type Service = Passes<S>;

    fn layer(&self, inner: S) -> Passes<S> {
        Passes(inner)
    }
}

impl<S: Service<R>, R> Service<R> for Passes<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}

/// Runs a future that never waits for anything.
fn run<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Calls the router's service.
fn axum(app: Router, kind: Kind, count: usize) {
    let mut app = app.with_state::<()>(());
    for _ in 0..count {
        let mut request = Request::builder().method(kind.method).uri("/");
        for (name, value) in kind.fields() {
            request = request.header(name, value);
        }
        let Ok(request) = request.body(Body::empty()) else { return };
        let answer = run(app.call(request));
        if answer.is_none_or(|Ok(answer)| answer.status() != 200) {
            eprintln!("expected an answer at once");
        }
    }
}

/// A client's connection: it sends the same request again and again, and takes what comes.
struct Wire {
    request: Vec<u8>,
    sent: usize,
    left: usize,
}

impl Read for Wire {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.left > 0 {
            let rest = self.request.get(self.sent..).unwrap_or_default();
            let take = rest.len().min(buffer.remaining());
            buffer.put_slice(rest.get(..take).unwrap_or_default());
            self.sent += take;
            if self.sent == self.request.len() {
                (self.sent, self.left) = (0, self.left - 1);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Serves a connection.
fn hyper<S, B>(service: S, kind: Kind, count: usize)
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<B>>,
    S::Error: std::error::Error + Send + Sync + 'static,
    B: http_body::Body<Error: std::error::Error + Send + Sync + 'static> + 'static,
{
    let mut request = format!("{} / HTTP/1.1\r\n", kind.method);
    for (name, value) in kind.fields() {
        request.extend([name, ": ", value, "\r\n"]);
    }
    let request = (request + "\r\n").into_bytes();
    let mut connection =
        std::pin::pin!(http1::Builder::new().serve_connection(Wire { request, sent: 0, left: count }, service));
    // hyper lets others have their turn now and then.
    while run(connection.as_mut()).is_none() {}
}

async fn handler(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("Hello World\n")))
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [server, kind, count] = arguments.as_slice() else { return eprintln!("expected SERVER REQUEST N") };
    let (Some(kind), Ok(count)) = (Kind::by_name(kind), count.parse()) else {
        return eprintln!("expected get, proxied, cookie or post, and a number of requests");
    };
    let router = Router::new().route("/", get(async || "Hello World\n").post(async || "Hello World\n"));
    let layer = CoalesceLayer::new();
    match server.as_str() {
        "axum" => axum(router.layer(Nothing), kind, count),
        "axum-coalesce" => axum(router.layer(layer.clone()), kind, count),
        "hyper" => hyper(hyper::service::service_fn(handler), kind, count),
        "hyper-coalesce" => hyper(layer.layer(service_fn(handler)), kind, count),
        _ => return eprintln!("expected axum, axum-coalesce, hyper or hyper-coalesce"),
    }
    if server.ends_with("coalesce") {
        eprintln!("{:?}", layer.counters());
    }
}
