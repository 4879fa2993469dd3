//! Our layer, deliberately broken: what should tell requests apart is hidden from it, and shown to the origin again.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use brunt_coalesce::{CoalesceBody, CoalesceLayer};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{Empty, Full};
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
}

/// What was hidden.
#[derive(Debug, Clone)]
struct Hidden {
    method: Method,
    uri: Uri,
    headers: http::HeaderMap,
}

type Asked = Request<Empty<Bytes>>;

/// The origin: takes its time, counts, and repeats who asked.
#[derive(Debug, Clone, Default)]
struct Origin(Arc<AtomicU64>);

impl Service<Asked> for Origin {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Asked) -> Self::Future {
        let hits = Arc::clone(&self.0);
        Box::pin(async move {
            let hit = hits.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(100)).await;
            let seen = request.extensions().get::<Hidden>().unwrap();
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

pub fn serve(broken: Broken) -> Server {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let service = CoalesceLayer::new().layer(Origin::default());
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service.clone();
            let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
                let mut service = service.clone();
                async move {
                    let request = hide(request.map(|_| Empty::new()), broken);
                    let answer: Result<Response<CoalesceBody<_>>, Infallible> = service.call(request).await;
                    answer
                }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    Server { address, _runtime: runtime }
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
        Broken::Method(name) => {
            if request.method().as_str() == name {
                *request.method_mut() = Method::GET;
                request.headers_mut().remove("content-length");
            }
        }
    }
    request
}
