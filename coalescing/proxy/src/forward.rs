//! Passing requests on to the upstream: the innermost service.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use brunt_coalesce::{BoxError, FollowerExtensions, SharedFailure};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{Extensions, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::ext::{ReasonPhrase, on_informational};
use hyper::upgrade::OnUpgrade;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{CaptureConnection, HttpConnector, capture_connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, sleep};

use crate::body::{Download, RequestBody, ResponseBody};
use crate::config::{Config, Upstream};
use crate::connection::Seat;
use crate::connector::{Connector, Dial, Link};
use crate::error::StartError;
use crate::failure::{ForwardError, is_broken_off};
use crate::headers::{COALESCED, add_via, one_length, remove_hop_by_hop, switches_to};
use crate::interim::Interim;
use crate::metrics::Metrics;
use crate::patience::WaitClock;
use crate::{tls, tunnel};

/// How often a waiting request checks whether its connection has ended.
const LOOK: Duration = Duration::from_secs(1);

/// The most fields of an answer.
const MOST_FIELDS: usize = 1000;

/// What an upgrade needs: its protocol, and the place of its connection.
#[derive(Clone)]
pub(crate) struct WantsUpgrade {
    pub(crate) protocol: HeaderValue,
    pub(crate) seat: Option<Seat>,
}

/// Passes requests on to the upstream.
#[derive(Clone)]
pub(crate) struct Forward(Arc<Shared>);

struct Shared {
    /// Over connections that are kept.
    pool: Client<Connector, RequestBody>,
    /// Each request over a new connection.
    fresh: Client<Connector, Empty<Bytes>>,
    upstream: Upstream,
    upstream_host: Option<HeaderValue>,
    connect_timeout: Duration,
    response_timeout: Duration,
    tunnel_timeout: Duration,
    metrics: Arc<Metrics>,
}

impl Forward {
    /// `dial` makes connections within this process, in the place of the network.
    pub(crate) fn new(config: &Config, metrics: Arc<Metrics>, dial: Option<Dial>) -> Result<Self, StartError> {
        let connector = match dial {
            Some(dial) => Connector::Process(dial),
            None => match &config.upstream.socket {
                Some(socket) => Connector::Socket(Arc::from(socket.as_path()), config.connect_timeout),
                None => Connector::Network(network(config)?),
            },
        };
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_idle_timeout(config.idle_timeout).pool_timer(TokioTimer::new()).timer(TokioTimer::new());
        builder.http1_max_headers(MOST_FIELDS).http1_allow_spaces_after_header_name_in_responses(true);
        builder.pool_max_idle_per_host(config.max_idle);
        let pool = builder.build(connector.clone());
        let fresh = builder.pool_max_idle_per_host(0).build(connector);
        Ok(Self(Arc::new(Shared {
            pool,
            fresh,
            upstream: config.upstream.clone(),
            upstream_host: config.upstream_host.clone(),
            connect_timeout: config.connect_timeout,
            response_timeout: config.response_timeout,
            tunnel_timeout: config.tunnel_timeout,
            metrics,
        })))
    }

    async fn forward(self, mut request: Request<RequestBody>) -> Result<Response<ResponseBody>, ForwardError> {
        let shared = &self.0;
        let upgrade = request.extensions_mut().remove::<WantsUpgrade>();
        let interim = request.extensions_mut().remove::<Interim>();
        // Taken before the request is given away; used only if the upstream agrees.
        let upgrade = upgrade.map(|wants| (wants, hyper::upgrade::on(&mut request)));
        shared.address(&mut request, upgrade.as_ref().map(|(wants, _)| &wants.protocol))?;
        if let Some(interim) = interim {
            on_informational(&mut request, move |hint| interim.send(hint.status(), hint.version(), hint.headers()));
        }
        let upstream = request.body().upstream();
        upstream.begins();
        let response = shared.send(request, &upstream).await.and_then(|response| shared.answered(response, upgrade));
        if let Err(failure) = &response
            && let Some(how) = failure.upstream()
        {
            shared.metrics.upstream_failed(how);
        }
        match response {
            // Who waits for an upstream that hangs has waited for long enough.
            Err(failure @ ForwardError::TimedOut) => {
                let mut response = failure.answer();
                response.extensions_mut().insert(SharedFailure);
                response.extensions_mut().insert(failure);
                Ok(response)
            }
            response => response,
        }
    }
}

fn network(config: &Config) -> Result<HttpsConnector<HttpConnector>, StartError> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(config.connect_timeout));
    Ok(HttpsConnector::from((connector, tls::client(&config.trust)?)))
}

/// Methods whose bodies have no meaning (RFC 9110, section 9.3), so that a server may leave one unread.
fn body_means_nothing(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::DELETE)
}

/// A request that got no answer.
struct Unanswered {
    failure: ForwardError,
    /// Whether its connection was a kept one, which may have ended before the request reached the upstream.
    may_not_have_arrived: bool,
}

impl Shared {
    /// Addresses a request to the upstream.
    fn address(&self, request: &mut Request<RequestBody>, upgrade: Option<&HeaderValue>) -> Result<(), ForwardError> {
        let (has_body, is_unread) = (!request.body().is_end_stream(), body_means_nothing(request.method()));
        let headers = request.headers_mut();
        headers.remove(&COALESCED);
        if let Some(host) = &self.upstream_host {
            headers.insert(HOST, host.clone());
        }
        if headers.contains_key(TE) {
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
        if let Some(protocol) = upgrade {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, protocol.clone());
            headers.remove(TE);
        }
        if has_body && is_unread {
            // A server that leaves the body unread would take it for the next request on this connection.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            headers.remove(TE);
            if !headers.contains_key(CONTENT_LENGTH) {
                // hyper would otherwise leave the body out.
                headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
        }
        let mut parts = request.uri().clone().into_parts();
        parts.scheme = Some(self.upstream.scheme.clone());
        parts.authority = Some(self.upstream.authority.clone());
        *request.uri_mut() = Uri::from_parts(parts).map_err(|_| ForwardError::Target)?;
        *request.version_mut() = Version::HTTP_11;
        // Extensions of the client's connection must not reach the upstream's.
        request.extensions_mut().clear();
        Ok(())
    }

    /// Sends a request. If that fails on a kept connection that had ended before the request reached the upstream,
    /// sends it once more over a new one, if the request may be repeated. A connection counts as ended if it has
    /// brought an answer before, and none to this request.
    async fn send(
        &self,
        request: Request<RequestBody>,
        upstream: &WaitClock,
    ) -> Result<Response<Incoming>, ForwardError> {
        let again = request.method().is_idempotent() && request.body().is_end_stream();
        let again = again.then(|| {
            let mut again = Request::new(Empty::new());
            *again.method_mut() = request.method().clone();
            *again.uri_mut() = request.uri().clone();
            again.headers_mut().clone_from(request.headers());
            again
        });
        let response = match (self.send_over(&self.pool, request, upstream).await, again) {
            (Err(unanswered), Some(again)) if unanswered.may_not_have_arrived => {
                self.send_over(&self.fresh, again, upstream).await
            }
            (response, _) => response,
        };
        let response = response.map_err(|unanswered| unanswered.failure)?;
        Link::remember_answer(response.extensions());
        Ok(response)
    }

    /// Sends a request over a connection of this client.
    async fn send_over<B>(
        &self,
        client: &Client<Connector, B>,
        mut request: Request<B>,
        upstream: &WaitClock,
    ) -> Result<Response<Incoming>, Unanswered>
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let captured = capture_connection(&mut request);
        tokio::select! {
            // An answer that has come counts, though its connection has ended since.
            biased;
            response = client.request(request) => response.map_err(|error: ClientError| Unanswered {
                may_not_have_arrived: is_broken_off(&error)
                    && Link::from_error(&error).is_some_and(|link| link.has_answered()),
                failure: ForwardError::from_client(&error),
            }),
            unanswered = self.gives_up(upstream, &captured) => Err(unanswered),
        }
    }

    /// Returns once the upstream has kept a request waiting for too long, or its connection has ended and hyper says
    /// nothing of it.
    ///
    /// hyper gives a request to its connection through a channel of tokio. A connection that ends at that moment can
    /// leave it there, where nobody ever answers it (<https://github.com/hyperium/hyper/issues/4122>). Where the
    /// connection was kept, hyper may be sending the request again, which no connection shows before it is made.
    async fn gives_up(&self, upstream: &WaitClock, captured: &CaptureConnection) -> Unanswered {
        let mut ended: Option<(Link, Instant)> = None;
        while let Some(left) = upstream.left(self.response_timeout) {
            sleep(left.min(LOOK)).await;
            let Some(link) = Link::from_captured(captured).filter(Link::has_ended) else { continue };
            let most = if link.has_answered() { self.connect_timeout } else { Duration::ZERO };
            match &ended {
                Some((known, since)) if *known == link && since.elapsed() >= most => {
                    let failure = ForwardError::Broken("the connection ended before an answer".to_owned());
                    return Unanswered { failure, may_not_have_arrived: link.has_answered() };
                }
                Some((known, _)) if *known == link => {}
                _ => ended = Some((link, Instant::now())),
            }
        }
        Unanswered { failure: ForwardError::TimedOut, may_not_have_arrived: false }
    }

    fn answered(
        &self,
        mut response: Response<Incoming>,
        upgrade: Option<(WantsUpgrade, OnUpgrade)>,
    ) -> Result<Response<ResponseBody>, ForwardError> {
        let version = response.version();
        let headers = response.headers_mut();
        let two_ends = || ForwardError::Broken("it says in two ways where its body ends".to_owned());
        if let Some(length) = one_length(headers).map_err(|_| two_ends())? {
            if headers.contains_key(TRANSFER_ENCODING) {
                return Err(two_ends());
            }
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        headers.remove(&COALESCED);
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let upgrade = upgrade.filter(|(wants, _)| switches && switches_to(response.headers(), &wants.protocol));
        // If the upstream wrongly nominates an end-to-end field, that is ignored and the answer is used.
        let _ = remove_hop_by_hop(response.headers_mut(), &[]);
        add_via(response.headers_mut(), version);
        match upgrade {
            Some((wants, client)) => {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
                response.headers_mut().insert(UPGRADE, wants.protocol);
                let upstream = hyper::upgrade::on(&mut response);
                let metrics = Arc::clone(&self.metrics);
                tokio::spawn(tunnel::run(client, upstream, self.tunnel_timeout, wants.seat, metrics));
            }
            None if switches => {
                return Err(ForwardError::Broken("it switched to a protocol that it was not asked for".to_owned()));
            }
            None => {}
        }
        let reason = response.extensions_mut().remove::<ReasonPhrase>();
        response.extensions_mut().clear();
        // hyper would invent a reason for a status that it does not know.
        let invented = response.status().canonical_reason().is_none().then(|| ReasonPhrase::from_static(b""));
        if let Some(reason) = reason.or(invented) {
            let mut shared = Extensions::new();
            shared.insert(reason.clone());
            response.extensions_mut().insert(reason);
            response.extensions_mut().insert(FollowerExtensions(shared));
        }
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(|body| Either::Left(Download::new(body, self.response_timeout, Arc::clone(&self.metrics)))))
    }
}

impl tower_service::Service<Request<RequestBody>> for Forward {
    type Response = Response<ResponseBody>;
    type Error = ForwardError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ForwardError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), ForwardError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(self.clone().forward(request))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Proxies to an upstream that answers with a head and half of a body, and then keeps the connection or ends it.
    fn forward(ends: bool) -> Forward {
        let listen: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
        let config = Config::new("http://upstream".parse().unwrap(), listen);
        let dial = move || {
            let (near, mut far) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                let _ = far.read(&mut [0; 1024]).await;
                let _ = far.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha").await;
                if !ends {
                    std::future::pending::<()>().await;
                }
            });
            Ok(near)
        };
        Forward::new(&config, Arc::default(), Some(Arc::new(dial))).unwrap()
    }

    /// How a request is given up that hyper says nothing more of, and after how many seconds.
    async fn given_up(ends: bool, is_kept: bool) -> (u64, Unanswered) {
        let Forward(shared) = forward(ends);
        let mut request = Request::get("http://upstream/").body(Empty::new()).unwrap();
        let captured = capture_connection(&mut request);
        let response = shared.fresh.request(request).await.unwrap();
        if is_kept {
            Link::remember_answer(response.extensions());
        }
        // A connection whose answer nobody reads would not notice its end.
        let response = (!ends).then_some(response);
        let (upstream, began) = (WaitClock::default(), Instant::now());
        upstream.begins();
        let unanswered = shared.gives_up(&upstream, &captured).await;
        drop(response);
        (began.elapsed().as_secs(), unanswered)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_given_up_soon_after_the_silent_end_of_its_connection() {
        let (seconds, unanswered) = given_up(true, false).await;
        assert!(matches!(unanswered.failure, ForwardError::Broken(_)) && !unanswered.may_not_have_arrived);
        assert_eq!(seconds, 2);
        // hyper may be connecting for a second try, for 5 s.
        let (seconds, unanswered) = given_up(true, true).await;
        assert!(matches!(unanswered.failure, ForwardError::Broken(_)) && unanswered.may_not_have_arrived);
        assert_eq!(seconds, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_connection_stays_has_the_whole_response_timeout() {
        let (seconds, unanswered) = given_up(false, true).await;
        assert!(matches!(unanswered.failure, ForwardError::TimedOut) && !unanswered.may_not_have_arrived);
        assert_eq!(seconds, 60);
    }
}
