//! Passing requests on to the upstream: the innermost service.

use std::convert::Infallible;
use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{Either, Full, LengthLimitError};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::copy_bidirectional;
use tokio::time::timeout;

use crate::body::{Paced, RequestBody, ResponseBody};
use crate::config::{Config, Upstream};
use crate::error::StartError;
use crate::headers::{Origin, add_forwarded, add_via, ensure_host, remove_hop_by_hop, upgrade_of};
use crate::metrics::{Metrics, UpstreamFailure};
use crate::tls;

type Pool = Client<HttpsConnector<HttpConnector>, RequestBody>;

/// Passes requests on to the upstream. It never fails: what goes wrong is answered with a 5xx, and counted.
#[derive(Clone)]
pub(crate) struct Forward(Arc<Shared>);

struct Shared {
    pool: Pool,
    upstream: Upstream,
    response_timeout: Duration,
    metrics: Arc<Metrics>,
}

impl Forward {
    pub(crate) fn new(config: &Config, metrics: Arc<Metrics>) -> Result<Self, StartError> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(config.connect_timeout));
        let connector = HttpsConnector::from((connector, tls::client(&config.trust)?));
        let pool = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(config.idle_timeout)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .build(connector);
        let (upstream, response_timeout) = (config.upstream.clone(), config.response_timeout);
        Ok(Self(Arc::new(Shared { pool, upstream, response_timeout, metrics })))
    }

    async fn forward(self, mut request: Request<RequestBody>) -> Response<ResponseBody> {
        if request.method() == Method::CONNECT {
            return refusal(StatusCode::NOT_IMPLEMENTED, "this is a reverse proxy, which makes no tunnels\n");
        }
        let shared = &self.0;
        let upgrade = upgrade_of(request.headers());
        // Taken before the request is given away; used if the upstream agrees.
        let client_side = upgrade.as_ref().map(|_| hyper::upgrade::on(&mut request));
        if shared.prepare(&mut request, upgrade).is_none() {
            return refusal(StatusCode::BAD_REQUEST, "the request target is not one that can be passed on\n");
        }
        match timeout(shared.response_timeout, shared.pool.request(request)).await {
            Ok(Ok(response)) => shared.answered(response, client_side),
            Ok(Err(error)) => shared.failed(&error),
            Err(_) => {
                shared.metrics.upstream_failed(UpstreamFailure::Timeout);
                refusal(StatusCode::GATEWAY_TIMEOUT, "the upstream did not answer in time\n")
            }
        }
    }
}

impl Shared {
    /// Makes a client's request one to the upstream; none if its target has no path.
    fn prepare(&self, request: &mut Request<RequestBody>, upgrade: Option<HeaderValue>) -> Option<()> {
        let origin = request.extensions_mut().remove::<Origin>();
        let version = request.version();
        let asked = request.uri().authority().cloned();
        let headers = request.headers_mut();
        remove_hop_by_hop(headers);
        ensure_host(headers, asked.as_ref(), &self.upstream.authority);
        add_forwarded(headers, origin, version);
        if let Some(protocol) = upgrade {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, protocol);
        }
        let mut parts = request.uri().clone().into_parts();
        parts.scheme = Some(self.upstream.scheme.clone());
        parts.authority = Some(self.upstream.authority.clone());
        parts.path_and_query.as_ref()?;
        *request.uri_mut() = Uri::from_parts(parts).ok()?;
        *request.version_mut() = Version::HTTP_11;
        // What was made for the client's connection is not for the upstream's.
        request.extensions_mut().clear();
        Some(())
    }

    fn answered(
        &self,
        mut response: Response<Incoming>,
        client_side: Option<hyper::upgrade::OnUpgrade>,
    ) -> Response<ResponseBody> {
        let version = response.version();
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let protocol = if switches { upgrade_of(response.headers()) } else { None };
        remove_hop_by_hop(response.headers_mut());
        add_via(response.headers_mut(), version);
        if switches {
            let (Some(protocol), Some(client_side)) = (protocol, client_side) else {
                self.metrics.upstream_failed(UpstreamFailure::Protocol);
                return refusal(StatusCode::BAD_GATEWAY, "the upstream switched protocols without being asked to\n");
            };
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
            response.headers_mut().insert(UPGRADE, protocol);
            let upstream_side = hyper::upgrade::on(&mut response);
            let metrics = Arc::clone(&self.metrics);
            tokio::spawn(async move {
                let (Ok(client), Ok(upstream)) = (client_side.await, upstream_side.await) else { return };
                let _open = metrics.tunnel();
                // However it ends, both sides see that it has.
                let _ = copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(upstream)).await;
            });
        }
        response.extensions_mut().clear();
        *response.version_mut() = Version::HTTP_11;
        response.map(|body| Either::Left(Paced::new(body, self.response_timeout, Arc::clone(&self.metrics))))
    }

    fn failed(&self, error: &ClientError) -> Response<ResponseBody> {
        if is_too_long(error) {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request's body is longer than this proxy takes\n");
        }
        let (failure, text) = if error.is_connect() {
            (UpstreamFailure::Connect, "the upstream cannot be reached\n")
        } else {
            (UpstreamFailure::Protocol, "the upstream's answer broke off, or was no HTTP\n")
        };
        self.metrics.upstream_failed(failure);
        let mut response = refusal(StatusCode::BAD_GATEWAY, text);
        response.extensions_mut().insert(Failure(causes(error)));
        response
    }
}

/// Why the upstream did not answer, for the access log and not for clients.
#[derive(Debug, Clone)]
pub(crate) struct Failure(pub(crate) String);

/// An error with what caused it, each once.
fn causes(error: &ClientError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}

/// Whether a request was given up because its body was too long.
fn is_too_long(error: &ClientError) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if error.is::<LengthLimitError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// An answer of the proxy's own.
pub(crate) fn refusal(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Right(Full::new(Bytes::from_static(text.as_bytes()))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

impl tower_service::Service<Request<RequestBody>> for Forward {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let forward = self.clone();
        Box::pin(async move { Ok(forward.forward(request).await) })
    }
}
