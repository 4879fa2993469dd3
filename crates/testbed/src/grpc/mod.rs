//! A gRPC echo: unary calls and streams of every kind, health checking, reflection, statuses and delays on demand.
//!
//! A method of a service that it does not know is answered with the messages that it was sent, as they came, so that it serves any
//! schema whose methods return what they take. Its own service is in [`PROTO`].
//!
//! HTTP/2 is hyper's: here it is what brunt is tested against, so that it shares nothing with brunt's own.

mod answer;
mod log;
mod methods;
mod reflection;

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use http::{HeaderValue, Method as Verb, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use self::answer::Answer;
use self::log::Log;
use self::methods::{Method, Status};
use crate::server::{Listener, bind};
use crate::service::{Delay, Listen, Random, StartError};
use crate::tls::{Tls, server_config};

/// The schema of the echo's own service.
pub const PROTO: &str = include_str!("echo.proto");
/// The schema of health checking, which the echo serves, too.
pub const HEALTH_PROTO: &str = include_str!("health.proto");
/// The status of calls that are to fail: UNAVAILABLE.
const UNAVAILABLE: u32 = 14;

/// The settings of an echo.
#[derive(Debug, Clone)]
pub struct EchoConfig {
    /// The address to listen on.
    pub address: Listen,
    /// The number of threads, at least one.
    pub workers: usize,
    /// The delay of each call's answer.
    pub delay: Delay,
    /// The share of calls that end as UNAVAILABLE, from 0 to 1.
    pub error_rate: f64,
    /// The TLS settings; `None` without TLS.
    pub tls: Option<Tls>,
    /// Where the randomness of delays and errors starts.
    pub seed: u64,
    /// The file for the times at which messages are sent, with a line `CALL,NANOSECONDS` for each; `None` for no such
    /// file.
    pub message_log: Option<PathBuf>,
}

/// A running echo. It ends with [`EchoServer::stop`] or when dropped.
pub struct EchoServer {
    address: Listen,
    certificate_pem: Option<String>,
    counters: Arc<Counters>,
    stop: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Counters {
    calls: AtomicU64,
    connections: AtomicU64,
}

impl fmt::Debug for EchoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What the connections of a worker share.
struct Worker {
    delay: Delay,
    error_rate: f64,
    random: Mutex<Random>,
    counters: Arc<Counters>,
    tls: Option<TlsAcceptor>,
    log: Option<Arc<Log>>,
}

impl EchoServer {
    /// Starts the workers. When this returns, the address takes connections.
    ///
    /// # Errors
    /// An address that cannot be had, certificates that cannot be used, or a system without descriptors or threads left.
    pub fn start(config: &EchoConfig) -> Result<Self, StartError> {
        let made = config.tls.as_ref().map(server_config).transpose()?;
        let (tls, certificate_pem) = made.unzip();
        let acceptor = tls.map(|tls| {
            let mut tls = (*tls).clone();
            tls.alpn_protocols = vec![b"h2".to_vec()];
            TlsAcceptor::from(Arc::new(tls))
        });
        let (listeners, address) = bind(&config.address, config.workers)?;
        let log = config.message_log.as_deref().map(Log::create).transpose();
        let log = log.map_err(|source| StartError::Worker { source })?.map(Arc::new);
        let (stop, stopped) = watch::channel(false);
        let counters = Arc::<Counters>::default();
        let mut server = Self { address, certificate_pem, counters: Arc::clone(&counters), stop, workers: Vec::new() };
        for (index, listener) in listeners.into_iter().enumerate() {
            let worker = Worker {
                delay: config.delay,
                error_rate: config.error_rate,
                random: Mutex::new(Random::new(config.seed, index)),
                counters: Arc::clone(&counters),
                tls: acceptor.clone(),
                log: log.clone(),
            };
            let (worker, stopped) = (Arc::new(worker), stopped.clone());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let thread = runtime.and_then(|runtime| {
                let name = format!("brunt-serve-{index}");
                std::thread::Builder::new().name(name).spawn(move || runtime.block_on(worker.run(listener, stopped)))
            });
            server.workers.push(thread.map_err(|source| StartError::Worker { source })?);
        }
        Ok(server)
    }

    /// `grpc://` or `grpcs://` and the address; for a Unix socket `unix:` and the path.
    pub fn url(&self) -> String {
        let scheme = if self.certificate_pem.is_some() { "grpcs" } else { "grpc" };
        match &self.address {
            Listen::Unix(_) => self.address.to_string(),
            Listen::Tcp(address) => format!("{scheme}://{address}/"),
        }
    }

    /// The number of calls that it has begun to answer.
    pub fn calls(&self) -> u64 {
        self.counters.calls.load(Ordering::Relaxed)
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.counters.connections.load(Ordering::Relaxed)
    }

    /// The certificate in PEM, for clients to trust; `None` without TLS.
    pub fn certificate_pem(&self) -> Option<&str> {
        self.certificate_pem.as_deref()
    }

    /// Ends all connections and waits for the workers.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        if let Listen::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Worker {
    /// Accepts connections until told to stop. After a failed accept it tries again a little later.
    async fn run(self: Arc<Self>, listening: Listener, mut stopped: watch::Receiver<bool>) {
        let accepting = async {
            match listening {
                Listener::Tcp(socket) => {
                    let socket = TcpListener::from(OwnedFd::from(socket));
                    let Ok(listener) = tokio::net::TcpListener::from_std(socket) else { return };
                    loop {
                        let accepted = listener.accept().await;
                        if let Ok((stream, _)) = &accepted {
                            let _ = stream.set_nodelay(true);
                        }
                        self.take(accepted.map(|(stream, _)| stream)).await;
                    }
                }
                Listener::Unix(socket) => {
                    let socket = UnixListener::from(OwnedFd::from(socket));
                    let Ok(listener) = tokio::net::UnixListener::from_std(socket) else { return };
                    loop {
                        let accepted = listener.accept().await;
                        self.take(accepted.map(|(stream, _)| stream)).await;
                    }
                }
            }
        };
        tokio::select! {
            () = accepting => {}
            _ = stopped.changed() => {}
        }
    }

    /// Serves a connection beside the others.
    async fn take<S>(self: &Arc<Self>, accepted: io::Result<S>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Ok(stream) = accepted else {
            return tokio::time::sleep(Duration::from_millis(10)).await;
        };
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
        let worker = Arc::clone(self);
        tokio::spawn(async move {
            match &worker.tls {
                None => worker.serve(stream).await,
                // A handshake that fails is the client's to tell.
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        worker.serve(stream).await;
                    }
                }
            }
        });
    }

    async fn serve<S>(self: &Arc<Self>, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = service_fn(|request| {
            let worker = Arc::clone(self);
            async move { Ok::<_, std::convert::Infallible>(worker.answer(request).await) }
        });
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).max_concurrent_streams(10_000);
        // The client of a broken connection knows that already.
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let (delay, fails) = {
            let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
            (self.delay.draw(&mut random), self.error_rate > 0.0 && random.uniform() < self.error_rate)
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let is_grpc = request
            .headers()
            .get("content-type")
            .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
        if request.method() != Verb::POST || !is_grpc {
            let mut response = Response::new(Answer::ending(Status::new(13, "no call of gRPC")));
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return response;
        }
        // Reflection is never delayed or failed, since clients need it before they can call.
        let is_reflection = reflection::PATHS.contains(&request.uri().path());
        let answer = if fails && !is_reflection {
            Answer::ending(Status::new(UNAVAILABLE, "asked to fail"))
        } else {
            let log = self.log.as_ref().map(Log::begin);
            Answer::new(Method::at(request.uri().path()), request.into_body()).noted(log)
        };
        let mut response = Response::new(answer);
        response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
        response
    }
}
