//! Small TCP servers that each break the rules in one way, to find out what a client makes of it.
//!
//! They read HTTP/1.1 requests just well enough to know when one has come, and have a thread for each
//! connection: made for tests with few connections, not for load.
//!
//! ```
//! use brunt_testbed::faulty::{Fault, FaultyServer};
//!
//! let server = FaultyServer::start(Fault::CloseMidBody)?;
//! println!("aim at {}", server.url());
//! # Ok::<(), std::io::Error>(())
//! ```

mod conversation;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use conversation::Conversation;

/// The one thing that a server does wrong (or, with some, unusually).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The handshake is never finished: the backlog is full, so a connect hangs until it times out.
    /// Linux only; elsewhere the connect may succeed.
    NeverAccept,
    /// Connections are closed as soon as they are accepted. A client that has sent its request by
    /// then sees a reset, another an orderly close.
    CloseAfterAccept,
    /// Requests are read and never answered.
    NeverAnswer,
    /// The head and half of a body of 1000 bytes, then a reset (RST). Linux lets the client read
    /// the half first; elsewhere the reset may overtake it.
    ResetMidAnswer,
    /// The head and half of a body of 1000 bytes, then an orderly close.
    CloseMidBody,
    /// The first half of the answer's head, then an orderly close.
    CloseMidHead,
    /// 64 bytes that are no HTTP, then silence on an open connection.
    Garbage,
    /// A good answer, sent a byte at a time.
    Drip {
        /// The time from one byte to the next.
        interval: Duration,
    },
    /// A good answer with one header line of this many bytes.
    OversizeHead {
        /// Length of the header's value, in bytes.
        bytes: usize,
    },
    /// An answer whose head never ends: header lines until the client gives up or 1 GiB is sent.
    EndlessHead,
    /// A good answer without `Connection: close`, after which the connection is closed all the same.
    CloseIdle,
    /// `Content-Length: 5` and `Content-Length: 6` before a body of 6 bytes.
    ConflictingLength,
    /// `Content-Length` with a value that is not a number.
    BadLength,
    /// A chunked body whose second chunk size is not hexadecimal.
    BadChunkSize,
    /// A chunked body whose first chunk claims 2^64 - 1 bytes.
    HugeChunk,
    /// 100 and 103 before a good answer. Allowed by RFC 9110, section 15.2.
    Interim,
    /// A good answer once the request's head has come, with its body still on the way. The body is
    /// then read to its end, and the connection stays open. Allowed by RFC 9112, section 9.3.
    AnswerEarly,
    /// A good answer without length or chunks, ended by an orderly close. Allowed by RFC 9112, section
    /// 6.3.
    UntilClose,
    /// These bytes after each request, whose body is read first.
    Raw {
        /// The bytes that are sent.
        answer: Vec<u8>,
        /// What happens to the connection then.
        after: ConnectionFate,
    },
}

/// What happens to a connection once its bytes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFate {
    /// It stays open, and the next request gets the same.
    KeepOpen,
    /// An orderly close (FIN).
    Close,
    /// A reset (RST), which may overtake what was sent.
    Reset,
}

/// A running misbehaving server on 127.0.0.1. It ends, with all its connections, when dropped.
#[derive(Debug)]
pub struct FaultyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
    /// The sockets that fill the backlog of [`Fault::NeverAccept`]: the listener and connections to it.
    held: Vec<Socket>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: AtomicU64,
    requests: AtomicU64,
    open: Mutex<Open>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    stopping: bool,
    streams: Vec<(Weak<TcpStream>, JoinHandle<()>)>,
}

impl Shared {
    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for this long. Returns false at once if the server is stopped.
    fn pause(&self, length: Duration) -> bool {
        let until = Instant::now() + length;
        let mut open = self.open();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if open.stopping || left.is_zero() {
                return !open.stopping;
            }
            open = self.stopped.wait_timeout(open, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl FaultyServer {
    /// Starts a server with this fault on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Those of the system when it has no port, descriptor or thread left.
    pub fn start(fault: Fault) -> io::Result<Self> {
        let backlog = if fault == Fault::NeverAccept { 0 } else { 1024 };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        socket.listen(backlog)?;
        let listener = TcpListener::from(socket);
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let mut server = Self { address, shared: Arc::clone(&shared), acceptor: None, held: Vec::new() };
        if fault == Fault::NeverAccept {
            server.held = fill_backlog(address)?;
            server.held.push(listener.into());
            return Ok(server);
        }
        let thread = std::thread::Builder::new().name("brunt-faulty".to_owned());
        server.acceptor = Some(thread.spawn(move || accept(&listener, &Arc::new(fault), &shared))?);
        Ok(server)
    }

    /// The server's address.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// `http://` and the address.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Request heads read so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        self.shared.open().stopping = true;
        self.shared.stopped.notify_all();
        let Some(acceptor) = self.acceptor.take() else { return };
        // Only a connection gets a blocking accept to return.
        let reached = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if reached || acceptor.is_finished() {
            let _ = acceptor.join();
        }
        let streams = std::mem::take(&mut self.shared.open().streams);
        for (stream, _) in &streams {
            if let Some(stream) = stream.upgrade() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        for (_, thread) in streams {
            let _ = thread.join();
        }
    }
}

/// Connections that are never accepted, until one more would not fit.
fn fill_backlog(address: SocketAddr) -> io::Result<Vec<Socket>> {
    let mut held = Vec::new();
    // On Linux a backlog of 0 holds one connection; two more make sure that it is full.
    for _ in 0..3 {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        // The connect stays in progress.
        let _ = socket.connect(&address.into());
        held.push(socket);
    }
    Ok(held)
}

fn accept(listener: &TcpListener, fault: &Arc<Fault>, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let mut open = shared.open();
        if open.stopping {
            return;
        }
        open.streams.retain(|(_, thread)| !thread.is_finished());
        let Ok(stream) = stream else { continue };
        let _ = stream.set_nodelay(true);
        shared.connections.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(stream);
        let watched = Arc::downgrade(&stream);
        let (fault, shared) = (Arc::clone(fault), Arc::clone(shared));
        let thread = std::thread::Builder::new().name("brunt-faulty".to_owned()).spawn(move || {
            // The peer going away is the usual end.
            let _ = Conversation { stream, buffer: Vec::new(), shared }.run(&fault);
        });
        if let Ok(thread) = thread {
            open.streams.push((watched, thread));
        }
    }
}
