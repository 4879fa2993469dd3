//! Connections of clients: accepting them, serving them, and letting them end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::config::Config;
use crate::connection::{self, Patience, Progress, Seat, Watched};
use crate::forwarded::Origin;
use crate::interim::Outbox;
use crate::metrics::Metrics;
use crate::service::{Client, Frontend};
use crate::streams::Streams;

/// How long to accept no connections when the file descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The most concurrent requests on one HTTP/2 connection.
const STREAMS: u32 = 250;

/// The shortest limit of a head that hyper takes, in bytes.
const LEAST_HEAD: usize = 8 * 1024;

/// How often an idle connection is looked for that can make room for a new one.
const LOOK_FOR_IDLE: Duration = Duration::from_millis(20);

/// Connections for metrics at a time; further ones wait.
const METRICS_CONNECTIONS: usize = 64;

/// The source of connections.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Accepts a connection. Returns it with its peer's address; `None` over a Unix socket.
    async fn accept(&self) -> std::io::Result<(Box<dyn Io>, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Without this option a connection is slower, but works.
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

/// A listener with all that its connections need.
pub(crate) struct Front {
    pub(crate) listener: Listener,
    pub(crate) connections: Connections,
    pub(crate) max_connections: usize,
    pub(crate) grace: Duration,
}

impl Front {
    /// Serves until told to stop; then accepts no more connections, lets requests in flight end, and returns.
    pub(crate) async fn serve(self, mut stopped: watch::Receiver<bool>) {
        let room = Arc::new(Semaphore::new(self.max_connections));
        let (end, ends) = watch::channel(false);
        loop {
            let accepted = tokio::select! {
                accepted = self.accept(&room) => accepted,
                _ = stopped.wait_for(|stopped| *stopped) => break,
            };
            let Some((stream, peer, permit)) = accepted else { continue };
            let seat = Seat::new(permit, Some(self.connections.frontend.metrics.connection()), ends.clone());
            let (connections, ends) = (self.connections.clone(), ends.clone());
            tokio::spawn(connections.serve(stream, peer, Some(seat), ends));
        }
        drop((self.listener, ends));
        let over = async {
            // If no connection is left, nobody receives this.
            let _ = end.send(true);
            end.closed().await;
        };
        let _ = timeout(self.grace, over).await;
    }

    async fn accept(&self, room: &Arc<Semaphore>) -> Option<(Box<dyn Io>, Option<SocketAddr>, OwnedSemaphorePermit)> {
        let Ok((stream, peer)) = self.listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            return None;
        };
        loop {
            match timeout(LOOK_FOR_IDLE, Arc::clone(room).acquire_owned()).await {
                Ok(permit) => return Some((stream, peer, permit.ok()?)),
                Err(_) => self.connections.idle.give_way(),
            }
        }
    }
}

/// What each client connection needs.
#[derive(Clone)]
pub(crate) struct Connections {
    pub(crate) frontend: Arc<Frontend>,
    tls: Option<Arc<RwLock<TlsAcceptor>>>,
    builder: auto::Builder<Streams>,
    patience: Patience,
    idle: Arc<Registry>,
}

/// All connections, of which idle ones make room.
#[derive(Default)]
struct Registry(Mutex<HashMap<usize, Arc<Progress>>>);

impl Registry {
    /// Enters a connection until the result is dropped.
    fn enter(self: &Arc<Self>, progress: &Arc<Progress>) -> Entered {
        let number = Arc::as_ptr(progress) as usize;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::clone(progress));
        Entered { registry: Arc::clone(self), number }
    }

    /// Ends the connection that has been idle for the longest.
    fn give_way(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = all.values().filter_map(|progress| Some((progress.idle_since()?, progress)));
        if let Some((_, longest)) = idle.min_by_key(|(since, _)| *since) {
            longest.give_way();
        }
    }
}

/// A connection's entry.
struct Entered {
    registry: Arc<Registry>,
    number: usize,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.registry.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

impl Connections {
    pub(crate) fn new(config: &Config, frontend: Arc<Frontend>, tls: Option<Arc<RwLock<TlsAcceptor>>>) -> Self {
        let (client_timeout, metrics) = (config.client_timeout, Arc::clone(&frontend.metrics));
        let mut builder = auto::Builder::new(Streams { client_timeout, metrics });
        // How long a head may take is watched with the other stages.
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_buf_size(config.max_head.max(LEAST_HEAD));
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(u32::try_from(config.max_head.max(LEAST_HEAD)).unwrap_or(u32::MAX))
            .keep_alive_interval(Duration::from_secs(30));
        Self { frontend, tls, builder, patience: patience(config), idle: Arc::default() }
    }

    /// Serves a connection to its end.
    pub(crate) async fn serve(
        self,
        stream: Box<dyn Io>,
        peer: Option<SocketAddr>,
        seat: Option<Seat>,
        ends: watch::Receiver<bool>,
    ) {
        let origin = Origin { client: peer.map(|peer| peer.ip()), tls: self.tls.is_some() };
        let tls = self.tls.as_ref().map(|tls| tls.read().unwrap_or_else(PoisonError::into_inner).clone());
        let stream: Box<dyn Io> = match &tls {
            None => stream,
            // TLS has told a client whose handshake failed.
            Some(tls) => match timeout(self.patience.head, tls.accept(stream)).await {
                Ok(Ok(stream)) => Box::new(stream),
                _ => return,
            },
        };
        let progress = Arc::new(Progress::new());
        let _entered = self.idle.enter(&progress);
        let interim = Arc::new(Outbox::default());
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&progress), Arc::clone(&interim), self.patience));
        let (frontend, requests) = (Arc::clone(&self.frontend), Arc::clone(&progress));
        let service = service_fn(move |request| {
            let name = peer.map_or_else(|| "unix".to_owned(), |peer| peer.to_string());
            let client = Client { origin, name, seat: seat.clone(), interim: Arc::clone(&interim) };
            let answer = Arc::clone(&frontend).answer(client, requests.request(), request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = self.builder.serve_connection_with_upgrades(io, service).into_owned();
        let metrics = Arc::clone(&self.frontend.metrics);
        connection::serve(Box::pin(connection), progress, self.patience, ends, metrics).await;
    }
}

/// How long the stages of a connection may take.
pub(crate) fn patience(config: &Config) -> Patience {
    Patience { head: config.header_timeout, idle: config.keep_alive_timeout, client: config.client_timeout }
}

/// A connection, with or without TLS.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Serves metrics to Prometheus.
pub(crate) async fn serve_metrics(listener: TcpListener, frontend: Arc<Frontend>, patience: Patience) {
    let metrics = Arc::clone(&frontend.metrics);
    let room = Arc::new(Semaphore::new(METRICS_CONNECTIONS));
    let (_end, ends) = watch::channel(false);
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (frontend, metrics, ends) = (Arc::clone(&frontend), Arc::clone(&metrics), ends.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let progress = Arc::new(Progress::new());
            let (requests, page) = (Arc::clone(&progress), Arc::clone(&metrics));
            let service = service_fn(move |request: Request<Incoming>| {
                let _in_flight = requests.request();
                std::future::ready(Ok::<_, Infallible>(metrics_page(&request, &frontend, &page)))
            });
            let io = TokioIo::new(Watched::new(stream, Arc::clone(&progress), Arc::default(), patience));
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(None);
            connection::serve(Box::pin(http.serve_connection(io, service)), progress, patience, ends, metrics).await;
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
