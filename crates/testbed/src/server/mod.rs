//! Servers to aim load at: as fast as two system calls per request allow, or as slow and unreliable as they are told to
//! be. What they say is [`http`](crate::http), or an echo of WebSocket or Thrift ([`ServedProtocol`]).
//!
//! ```
//! use brunt_testbed::server::{Server, ServerConfig};
//!
//! let server = Server::start(ServerConfig { body_bytes: 100, ..ServerConfig::default() })?;
//! println!("aim at {}", server.url());
//! server.stop();
//! # Ok::<(), brunt_testbed::server::StartError>(())
//! ```
//!
//! # What it does badly, if asked
//!
//! [`Delay`] makes default answers slow, each on its own; a [`Queue`] makes them wait for one of a few servers, so
//! that the target has a capacity; `error_rate` makes some of them 503;
//! [`Stall`] freezes the server as a whole at times that are known beforehand; `close_after` ends
//! connections early. Chance is fixed by [`ServerConfig::seed`]. For servers that break HTTP itself see
//! [`faulty`](crate::faulty).
//!
//! # How it is built
//!
//! Each worker is a thread with its own event loop (epoll, edge triggered), its own listening socket
//! on the same port (`SO_REUSEPORT`), and its own buffers; they share nothing but the addresses of
//! each other's counters. A default answer is rendered at the start and costs one read, one write,
//! no allocation and no look at the clock. All requests found in one read are answered in one write.

mod alarm;
mod connection;
mod conversation;
mod listen;
mod quic;
mod worker;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

pub use crate::service::{Delay, Listen, ListenError, Queue, ServedProtocol, ServerConfig, Stall, StartError, Tokens};
pub use listen::listen_on_unix;

use listen::bind_udp;
pub(crate) use listen::{Listener, bind};
use quic::Quic;

use brunt_quic::{Limits, ServerSetup};

use crate::http::Site;
use crate::llm::{self, Model};
use crate::service::{Counters, Servers, Service};
use crate::tls::server_config;
use worker::Worker;

/// A running server. It ends with [`Server::stop`] or when dropped.
pub struct Server {
    address: Listen,
    speaks: ServedProtocol,
    started: Instant,
    certificate_pem: Option<String>,
    counters: Arc<[Counters]>,
    totals: Arc<llm::Totals>,
    stopped: Arc<AtomicBool>,
    workers: Vec<(JoinHandle<io::Result<()>>, mio::Waker)>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .field("requests", &self.requests())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Starts the workers. When this returns, the address takes connections.
    ///
    /// # Errors
    /// Figures that make no sense, an address that cannot be had, certificates that cannot be used,
    /// or a system without descriptors or threads left.
    pub fn start(config: ServerConfig) -> Result<Self, StartError> {
        Self::start_with(config, None)
    }

    /// Starts a server whose answers are those of a language model, on one worker: its slots, its queue and its prefix cache are one.
    ///
    /// # Errors
    /// The same, and a log that cannot be created.
    pub fn start_model(config: ServerConfig, model: llm::ModelConfig) -> Result<Self, StartError> {
        if let Some((field, expected, got)) = model.wrong() {
            return Err(StartError::Config { field, expected, got });
        }
        if config.workers != 1 {
            return Err(StartError::Config { field: "workers", expected: "1", got: config.workers.to_string() });
        }
        Self::start_with(config, Some(model))
    }

    #[expect(clippy::needless_pass_by_value, reason = "a configuration is made for the call")]
    fn start_with(config: ServerConfig, mut model: Option<llm::ModelConfig>) -> Result<Self, StartError> {
        config.validate()?;
        let tls = config.tls.as_ref().map(server_config).transpose()?;
        let (tls, certificate_pem) = tls.unzip();
        let tls = tls.map(|tls| if config.speaks == ServedProtocol::Http { offering_http2(&tls) } else { tls });
        let (listeners, address) = bind(&config.address, config.workers)?;
        let mut datagrams = datagrams(&config, &address, tls.as_deref())?.into_iter();
        let counters: Arc<[Counters]> = (0..config.workers).map(|_| Counters::default()).collect();
        let started = Instant::now();
        let servers = config.queue.map(|queue| Arc::new(Mutex::new(Servers::new(queue.count))));
        let mut server = Self {
            address,
            speaks: config.speaks,
            started,
            certificate_pem,
            counters,
            totals: Arc::default(),
            stopped: Arc::default(),
            workers: Vec::with_capacity(config.workers),
        };
        for (index, listener) in listeners.into_iter().enumerate() {
            let service = Service::new(&config, started, Arc::clone(&server.counters), servers.clone(), index);
            let stopped = Arc::clone(&server.stopped);
            let mut site = Site::new(service, config.body_bytes);
            if let Some(model) = model.take() {
                let model = Model::new(model, config.seed, started.elapsed(), Arc::clone(&server.totals))
                    .map_err(|source| StartError::Log { source })?;
                site.model = Some(model);
            }
            let worker = Worker::new(listener, datagrams.next(), tls.clone(), site, stopped)
                .and_then(|(worker, waker)| {
                    let name = format!("brunt-serve-{index}");
                    let thread = std::thread::Builder::new().name(name).spawn(|| worker.run())?;
                    Ok((thread, waker))
                })
                .map_err(|source| StartError::Worker { source })?;
            server.workers.push(worker);
        }
        Ok(server)
    }

    /// The address, with the port that was taken.
    pub fn addr(&self) -> &Listen {
        &self.address
    }

    /// The same as a socket address; `None` on a Unix socket.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match self.address {
            Listen::Tcp(address) => Some(address),
            Listen::Unix(_) => None,
        }
    }

    /// The TCP port; 0 on a Unix socket.
    pub fn port(&self) -> u16 {
        self.socket_addr().map_or(0, |address| address.port())
    }

    /// `http://` or `https://` (`ws://`, `wss://`) and the address; for a Unix socket `unix:` and the path.
    pub fn url(&self) -> String {
        let scheme = match (self.speaks, self.certificate_pem.is_some()) {
            (ServedProtocol::Http, false) => "http",
            (ServedProtocol::Http, true) => "https",
            (ServedProtocol::WebSocket, false) => "ws",
            (ServedProtocol::WebSocket, true) => "wss",
            (ServedProtocol::Thrift, false) => "thrift",
            (ServedProtocol::Thrift, true) => "thrifts",
        };
        match &self.address {
            Listen::Unix(_) => self.address.to_string(),
            Listen::Tcp(address) => format!("{scheme}://{address}/"),
        }
    }

    /// Answers given so far, refusals included. An answer is counted just before its last bytes are
    /// handed to the system, so whoever holds an answer finds it counted.
    pub fn requests(&self) -> u64 {
        self.sum(|worker| &worker.answered)
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.sum(|worker| &worker.accepted)
    }

    /// What a language model has done so far.
    pub fn totals(&self) -> &llm::Totals {
        &self.totals
    }

    fn sum(&self, counter: impl Fn(&Counters) -> &AtomicU64) -> u64 {
        self.counters.iter().map(|worker| counter(worker).load(Ordering::Relaxed)).sum()
    }

    /// When it started: the moment from which [`Stall`]s are counted.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The server's certificate in PEM, for clients to trust; `None` without TLS.
    pub fn certificate_pem(&self) -> Option<&str> {
        self.certificate_pem.as_deref()
    }

    /// Ends all connections and waits for the workers. Returns how many requests there were.
    pub fn stop(mut self) -> u64 {
        self.halt();
        self.requests()
    }

    fn halt(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        for (thread, waker) in &self.workers {
            // A worker that cannot be woken is in a stall, from which unparking wakes it.
            let _ = waker.wake();
            thread.thread().unpark();
        }
        for (thread, _) in self.workers.drain(..) {
            // A worker that failed has said so by closing its connections.
            let _ = thread.join();
        }
    }
}

/// The same, by which a client may choose HTTP/2 as well.
fn offering_http2(tls: &rustls::ServerConfig) -> Arc<rustls::ServerConfig> {
    let mut tls = tls.clone();
    tls.alpn_protocols.insert(0, b"h2".to_vec());
    Arc::new(tls)
}

/// The most sessions of HTTP/3 that a server remembers.
const MOST_SESSIONS: usize = 4096;

/// Sessions stay with the server.
#[derive(Debug)]
struct NoTickets;

impl rustls::server::ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _plain: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _cipher: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// A UDP socket for each worker, if HTTP/3 is spoken.
fn datagrams(
    config: &ServerConfig,
    address: &Listen,
    tls: Option<&rustls::ServerConfig>,
) -> Result<Vec<Quic>, StartError> {
    let (true, Listen::Tcp(bound), Some(tls)) = (config.http3, address, tls) else { return Ok(Vec::new()) };
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    // Early data (0-RTT): rustls takes it for sessions that the server itself remembers, so that each is used once.
    tls.ticketer = Arc::new(NoTickets);
    tls.session_storage = rustls::server::ServerSessionMemoryCache::new(MOST_SESSIONS);
    tls.max_early_data_size = u32::MAX;
    let setup = ServerSetup::new(Arc::new(tls), Limits::SERVER).map_err(|error| StartError::Config {
        field: "http3",
        expected: "TLS 1.3",
        got: error.to_string(),
    })?;
    let sockets = bind_udp(*bound, config.workers).map_err(|error| StartError::bind(address, error))?;
    Ok(sockets.into_iter().map(|socket| Quic::new(socket, &setup)).collect())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
        if let Listen::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}
