//! A reverse proxy around [`brunt_coalesce`]: in front of any server, in any language, it passes requests on, and serves
//! identical ones in flight once.
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use brunt_proxy::{Coalescing, Config, Proxy};
//!
//! let listen: SocketAddr = "127.0.0.1:8080".parse()?;
//! let mut config = Config::new("http://127.0.0.1:3000".parse()?, listen);
//! config.coalesce = Some(Coalescing::default());
//! let proxy = Proxy::start(config)?;
//! println!("listening on {:?}", proxy.address());
//! proxy.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Clients may speak HTTP/1.1 and HTTP/2 (over TLS, or by prior knowledge); the upstream is spoken to in HTTP/1.1, over
//! connections that are kept. WebSocket, and what else [`Config::upgrades`] lists, is passed through (over HTTP/1.1). Bodies
//! stream both ways. `Host` is the client's; `Forwarded`, `X-Forwarded-For`, `-Proto`, `-Host` and `Via` are added.
//!
//! Each request is written anew before anything looks at it (`admission.rs`), and each stage of a connection has a limit of
//! time (`connection.rs`): see `SECURITY.md` for what that is to keep out.

mod access_log;
mod admission;
mod body;
mod config;
mod connection;
mod connector;
mod error;
mod failure;
mod forward;
mod forwarded;
mod headers;
#[doc(hidden)]
pub mod in_process;
mod interim;
mod listen;
mod metrics;
mod notice;
mod patience;
mod service;
mod streams;
mod tls;
mod tunnel;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_coalesce::Counters;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

pub use config::{
    AccessLog, Coalescing, Config, Identity, Listen, LogOutput, Trust, TrustedProxy, TrustedProxyError,
    UpgradeProtocol, UpgradeProtocolError, Upstream, UpstreamError,
};
pub use error::StartError;
pub use notice::{Notice, Notify};
pub use tls::client as client_tls;

use access_log::Log;
use forward::Forward;
use listen::{Connections, Front, Listener, patience, serve_metrics};
use metrics::Metrics;
use notice::Notices;
use service::Frontend;

/// A running proxy. It ends with [`Proxy::stop`] or when dropped.
pub struct Proxy {
    address: Option<SocketAddr>,
    metrics_address: Option<SocketAddr>,
    frontend: Option<Arc<Frontend>>,
    stop: watch::Sender<bool>,
    serving: Option<tokio::task::JoinHandle<()>>,
    runtime: Option<Runtime>,
    log_writer: Option<JoinHandle<()>>,
    reload: Reload,
}

/// Reads a proxy's files again while it runs.
#[derive(Clone)]
pub struct Reload {
    tls: Option<Arc<RwLock<TlsAcceptor>>>,
    identity: Option<Identity>,
    log: Option<Arc<AtomicBool>>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

impl Reload {
    /// Opens the access log again with its next line, so that it can be rotated, and reads the certificate and its key again,
    /// for connections from now on.
    ///
    /// # Errors
    /// A certificate that cannot be used. The proxy keeps the one that it has.
    pub fn reload(&self) -> Result<(), StartError> {
        if let Some(log) = &self.log {
            log.store(true, Ordering::Release);
        }
        if let (Some(tls), Some(identity)) = (&self.tls, &self.identity) {
            let read = TlsAcceptor::from(tls::server(identity)?);
            *tls.write().unwrap_or_else(PoisonError::into_inner) = read;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts a proxy. When this returns, it accepts connections; the upstream has not been checked.
    ///
    /// # Errors
    /// When an address cannot be bound, a file cannot be used, or the system has no threads left.
    #[expect(clippy::needless_pass_by_value, reason = "a configuration is made for the call")]
    pub fn start(config: Config) -> Result<Self, StartError> {
        let tls = config.identity.as_ref().map(tls::server).transpose()?;
        let tls = tls.map(|tls| Arc::new(RwLock::new(TlsAcceptor::from(tls))));
        let notices = Arc::new(Notices::new(config.notify));
        let metrics = Arc::new(Metrics::default());
        let (log, log_writer) = match &config.access_log {
            Some(log) => Some(Log::open(log, Arc::clone(&metrics), Arc::clone(&notices))?).unzip(),
            None => (None, None),
        };
        let runtime = runtime(config.threads)?;
        let (listener, address) = listener(&runtime, &config.listen)?;
        let forward = Forward::new(&config, Arc::clone(&metrics), None)?;
        let frontend = Arc::new(Frontend::new(&config, forward, metrics, log.clone(), notices));
        let mut metrics_address = None;
        if let Some(wanted) = config.metrics {
            let (listener, bound) = bind(&runtime, wanted)?;
            metrics_address = Some(bound);
            runtime.spawn(serve_metrics(listener, Arc::clone(&frontend), patience(&config)));
        }
        let reload = Reload { tls: tls.clone(), identity: config.identity.clone(), log: log.map(|log| log.reopen()) };
        let (stop, stopped) = watch::channel(false);
        let front = Front {
            listener,
            connections: Connections::new(&config, Arc::clone(&frontend), tls),
            max_connections: config.max_connections.clamp(1, tokio::sync::Semaphore::MAX_PERMITS),
            grace: config.grace,
        };
        let serving = Some(runtime.spawn(front.serve(stopped)));
        let (frontend, runtime) = (Some(frontend), Some(runtime));
        Ok(Self { address, metrics_address, frontend, stop, serving, runtime, log_writer, reload })
    }

    /// Reads the proxy's files again when asked to.
    pub fn reloader(&self) -> Reload {
        self.reload.clone()
    }

    /// The address of the listener, with its actual port; `None` on a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where metrics are, with the port that was taken.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Requests answered so far.
    pub fn requests(&self) -> u64 {
        self.frontend.as_ref().map_or(0, |frontend| frontend.metrics.requests())
    }

    /// What was coalesced so far; `None` if coalescing is off.
    pub fn coalesced(&self) -> Option<Counters> {
        Some(self.frontend.as_ref()?.layer.as_ref()?.counters())
    }

    /// Accepts no more connections, waits for requests in flight ([`Config::grace`] at most), and ends.
    pub fn stop(mut self) -> Stopped {
        self.end();
        Stopped { requests: self.requests(), coalesced: self.coalesced() }
    }

    fn end(&mut self) {
        // If serving has ended by itself, nobody receives this.
        let _ = self.stop.send(true);
        let Some(runtime) = self.runtime.take() else { return };
        if let Some(serving) = self.serving.take() {
            let _ = runtime.block_on(serving);
        }
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

/// The totals of a stopped proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Answered requests, including those in flight at the stop.
    pub requests: u64,
    /// What was coalesced; `None` if coalescing is off.
    pub coalesced: Option<Counters>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end();
        // This drops the last sender of log lines, so that the log ends.
        drop(self.frontend.take());
        if let Some(writer) = self.log_writer.take() {
            let _ = writer.join();
        }
    }
}

fn runtime(threads: Option<usize>) -> Result<Runtime, StartError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads.max(1));
    }
    builder.enable_all().thread_name("brunt-proxy").build().map_err(StartError::Threads)
}

fn listener(runtime: &Runtime, listen: &Listen) -> Result<(Listener, Option<SocketAddr>), StartError> {
    match listen {
        Listen::Tcp(address) => {
            let (listener, bound) = bind(runtime, *address)?;
            Ok((Listener::Tcp(listener), Some(bound)))
        }
        Listen::Unix(socket) => {
            let _entered = runtime.enter();
            let taken = socket.try_clone().and_then(|socket| {
                socket.set_nonblocking(true)?;
                UnixListener::from_std(socket)
            });
            taken.map(|listener| (Listener::Unix(listener), None)).map_err(StartError::Socket)
        }
    }
}

fn bind(runtime: &Runtime, address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = runtime.block_on(TcpListener::bind(address));
    bound
        .and_then(|listener| Ok((listener.local_addr()?, listener)))
        .map_or_else(|source| Err(StartError::Bind { address, source }), |(bound, listener)| Ok((listener, bound)))
}
