//! Connections of clients: accepting them, serving them, and letting them end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::headers::Origin;
use crate::metrics::Metrics;
use crate::service::Frontend;

/// How long to leave new connections alone when there are no descriptors for them.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Requests at a time on one HTTP/2 connection.
const STREAMS: u32 = 250;

/// Where connections come from.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// A connection, and whose it is: nobody's that has an address, by a Unix socket.
    async fn accept(&self) -> std::io::Result<(Box<dyn Io>, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // A socket that cannot be told so is slower, and no worse.
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), Some(peer)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), None))
            }
        }
    }
}

/// A listener with what its connections need.
pub(crate) struct Front {
    pub(crate) listener: Listener,
    pub(crate) frontend: Arc<Frontend>,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) max_connections: usize,
    pub(crate) header_timeout: Duration,
    pub(crate) grace: Duration,
}

impl Front {
    /// Serves until told to stop; then takes no more connections, lets requests in flight end, and returns.
    pub(crate) async fn serve(self, mut stopped: watch::Receiver<bool>) {
        let graceful = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(self.max_connections));
        let builder = self.builder();
        loop {
            let accepted = tokio::select! {
                accepted = self.accept(&room) => accepted,
                _ = stopped.wait_for(|stopped| *stopped) => break,
            };
            let Some((stream, peer, permit)) = accepted else { continue };
            let (frontend, tls, builder) = (Arc::clone(&self.frontend), self.tls.clone(), builder.clone());
            let (watcher, patience) = (graceful.watcher(), self.header_timeout);
            tokio::spawn(async move {
                let _open = (permit, frontend.metrics.connection());
                let origin = Origin { client: peer.map(|peer| peer.ip()), tls: tls.is_some() };
                let service = service_fn(move |request| {
                    let frontend = Arc::clone(&frontend);
                    let client = peer.map_or_else(|| "unix".to_owned(), |peer| peer.to_string());
                    async move { Ok::<_, Infallible>(frontend.answer(origin, client, request).await) }
                });
                let io: TokioIo<Box<dyn Io>> = match tls {
                    None => TokioIo::new(stream),
                    // Who does not finish its handshake, or fails it, has been told so by TLS.
                    Some(tls) => match timeout(patience, tls.accept(stream)).await {
                        Ok(Ok(stream)) => TokioIo::new(Box::new(stream)),
                        _ => return,
                    },
                };
                let connection = builder.serve_connection_with_upgrades(io, service).into_owned();
                // What breaks a connection is its client's affair, and is in the access log by its request.
                let _ = watcher.watch(connection).await;
            });
        }
        drop(self.listener);
        let metrics = &self.frontend.metrics;
        let over = async {
            graceful.shutdown().await;
            while metrics.tunnels() > 0 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = timeout(self.grace, over).await;
    }

    async fn accept(
        &self,
        room: &Arc<Semaphore>,
    ) -> Option<(Box<dyn Io>, Option<SocketAddr>, tokio::sync::OwnedSemaphorePermit)> {
        let permit = Arc::clone(room).acquire_owned().await.ok()?;
        let Ok((stream, peer)) = self.listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            return None;
        };
        Some((stream, peer, permit))
    }

    fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(self.header_timeout);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .keep_alive_interval(Duration::from_secs(30));
        builder
    }
}

/// A connection, with or without TLS.
trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Serves metrics to Prometheus.
pub(crate) async fn serve_metrics(listener: TcpListener, frontend: Arc<Frontend>) {
    let metrics = Arc::clone(&frontend.metrics);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (frontend, metrics) = (Arc::clone(&frontend), Arc::clone(&metrics));
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                std::future::ready(Ok::<_, Infallible>(metrics_page(&request, &frontend, &metrics)))
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10));
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn metrics_page(request: &Request<Incoming>, frontend: &Frontend, metrics: &Metrics) -> Response<Full<Bytes>> {
    if request.uri().path() != "/metrics" {
        let mut response = Response::new(Full::from("there is only /metrics\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let coalesce = frontend.layer.as_ref().map(|layer| (layer.counters(), layer.held_bytes()));
    let mut response = Response::new(Full::from(metrics.text(coalesce)));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
