//! Small TCP servers that each break the rules in one way, to find out what a client makes of it.
//!
//! They read HTTP/1.1 requests just well enough to know when one has come, and have a thread for each
//! connection: made for tests with few connections, not for load.
//!
//! ```
//! use brunt_testbed::faulty::{Fault, Server};
//!
//! let server = Server::start(Fault::CloseMidBody)?;
//! println!("aim at {}", server.url());
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};

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
        /// From one byte to the next.
        interval: Duration,
    },
    /// An answer that is good but for a header line of this many bytes.
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
    /// `Content-Length` that is no number.
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
    /// These bytes for each request, whose body is read first.
    Raw {
        /// What is sent.
        answer: Vec<u8>,
        /// What follows.
        after: After,
    },
}

/// What becomes of a connection once its bytes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It stays open, and the next request gets the same.
    KeepOpen,
    /// An orderly close (FIN).
    Close,
    /// A reset (RST), which may overtake what was sent.
    Reset,
}

/// A running misbehaving server on 127.0.0.1. It ends, with all its connections, when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
    /// What fills the backlog of [`Fault::NeverAccept`]: the listener and connections to it.
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

    /// Waits, unless the server is stopped first; false then.
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

impl Server {
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

    /// Where it listens.
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

impl Drop for Server {
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
    // A backlog of 0 holds one connection on Linux; two more make sure of it.
    for _ in 0..3 {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        // In progress, which it will stay.
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

/// The good answer; most faults vary it.
const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// The longest request head waited for, in bytes; a longer one ends the connection.
const MAX_HEAD: usize = 1024 * 1024;

struct Conversation {
    stream: Arc<TcpStream>,
    /// Read, and not yet taken.
    buffer: Vec<u8>,
    shared: Arc<Shared>,
}

impl Conversation {
    fn run(mut self, fault: &Fault) -> io::Result<()> {
        if *fault == Fault::CloseAfterAccept {
            return Ok(());
        }
        while let Some(body) = self.read_head()? {
            self.shared.requests.fetch_add(1, Ordering::Relaxed);
            if *fault == Fault::AnswerEarly {
                self.send(GOOD)?;
            }
            self.skip_body(body)?;
            match self.answer(fault)? {
                After::KeepOpen => {}
                After::Close => break,
                After::Reset => {
                    // Closing a socket that must not linger resets it.
                    return SockRef::from(&*self.stream).set_linger(Some(Duration::ZERO));
                }
            }
        }
        self.end()
    }

    /// Misbehaves once.
    fn answer(&mut self, fault: &Fault) -> io::Result<After> {
        match fault {
            Fault::NeverAccept | Fault::CloseAfterAccept | Fault::NeverAnswer | Fault::AnswerEarly => {}
            Fault::ResetMidAnswer => {
                self.send(&half_answer())?;
                return Ok(After::Reset);
            }
            Fault::Drip { interval } => {
                for byte in GOOD {
                    self.send(&[*byte])?;
                    if !self.shared.pause(*interval) {
                        return Ok(After::Close);
                    }
                }
            }
            Fault::EndlessHead => {
                self.send(b"HTTP/1.1 200 OK\r\n")?;
                let lines = b"X-More: and more and more and more and more and more and more\r\n".repeat(1024);
                for _ in 0..(1 << 30) / lines.len() {
                    self.send(&lines)?;
                }
                return Ok(After::Close);
            }
            Fault::Raw { answer, after } => {
                self.send(answer)?;
                return Ok(*after);
            }
            _ => {
                let (bytes, after) = rendered(fault);
                self.send(&bytes)?;
                return Ok(after);
            }
        }
        Ok(After::KeepOpen)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&*self.stream).write_all(bytes)
    }

    /// Ends this side first and reads what the client still sends, so that the close is no reset.
    fn end(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        self.buffer.clear();
        while self.fill()? > 0 {
            self.buffer.clear();
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 16 * 1024];
        let length = (&*self.stream).read(&mut chunk)?;
        self.buffer.extend_from_slice(chunk.get(..length).unwrap_or_default());
        Ok(length)
    }

    /// The body framing of the next request; `None` when the client has ended.
    fn read_head(&mut self) -> io::Result<Option<RequestBody>> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                let rest = self.buffer.split_off(end + 4);
                let head = std::mem::replace(&mut self.buffer, rest);
                return Ok(Some(RequestBody::from_head(&head)));
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(ErrorKind::InvalidData.into());
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    fn skip_body(&mut self, body: RequestBody) -> io::Result<()> {
        match body {
            RequestBody::Length(length) => self.skip(length),
            RequestBody::Chunked => loop {
                let line = self.line()?;
                let size = line.split(|&byte| byte == b';').next().unwrap_or_default();
                let size = std::str::from_utf8(size).ok().and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
                match size {
                    None => return Err(ErrorKind::InvalidData.into()),
                    Some(0) => {
                        while !self.line()?.is_empty() {}
                        return Ok(());
                    }
                    Some(size) => self.skip(size.saturating_add(2))?,
                }
            },
        }
    }

    fn skip(&mut self, mut left: u64) -> io::Result<()> {
        loop {
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
            self.buffer.drain(..now);
            left -= now as u64;
            if left == 0 {
                return Ok(());
            }
            if self.fill()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next line, without its CR LF.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n") {
                let rest = self.buffer.split_off(end + 2);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.truncate(end);
                return Ok(line);
            }
            if self.buffer.len() > MAX_HEAD || self.fill()? == 0 {
                return Err(ErrorKind::InvalidData.into());
            }
        }
    }
}

/// How much of a request follows its head.
#[derive(Clone, Copy)]
enum RequestBody {
    Length(u64),
    Chunked,
}

impl RequestBody {
    fn from_head(head: &[u8]) -> Self {
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        let value = |name| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if value("transfer-encoding:") == Some("chunked") {
            return Self::Chunked;
        }
        Self::Length(value("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0))
    }
}

fn half_answer() -> Vec<u8> {
    let mut half = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec();
    half.resize(half.len() + 500, b'x');
    half
}

/// The faults that are nothing but wrong bytes.
fn rendered(fault: &Fault) -> (Vec<u8>, After) {
    let answer = |bytes: &[u8], after| (bytes.to_vec(), after);
    match fault {
        Fault::CloseMidBody => (half_answer(), After::Close),
        Fault::CloseMidHead => answer(b"HTTP/1.1 200 OK\r\nContent-Le", After::Close),
        Fault::Garbage => {
            (b"\x00\xff\x16\x03garbage no HTTP".iter().copied().cycle().take(64).collect(), After::KeepOpen)
        }
        Fault::OversizeHead { bytes } => {
            let value = "x".repeat(*bytes);
            let text = format!("HTTP/1.1 200 OK\r\nX-Long: {value}\r\nContent-Length: 5\r\n\r\nhello");
            (text.into_bytes(), After::KeepOpen)
        }
        Fault::CloseIdle => answer(GOOD, After::Close),
        Fault::ConflictingLength => {
            answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", After::KeepOpen)
        }
        Fault::BadLength => answer(b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", After::KeepOpen),
        Fault::BadChunkSize => answer(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\nworld\r\n0\r\n\r\n",
            After::KeepOpen,
        ),
        Fault::HugeChunk => answer(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            After::KeepOpen,
        ),
        Fault::Interim => answer(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            After::KeepOpen,
        ),
        Fault::UntilClose => answer(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello", After::Close),
        _ => answer(GOOD, After::KeepOpen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client gets that sends one request (with these bytes after its head) and reads until
    /// the server ends, or until it has `enough` bytes.
    fn ask(fault: Fault, head: &str, enough: usize) -> (Vec<u8>, Option<ErrorKind>, Server) {
        let server = Server::start(fault).unwrap();
        let mut stream = TcpStream::connect(server.addr()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut got = Vec::new();
        let mut chunk = [0; 4096];
        while got.len() < enough {
            match stream.read(&mut chunk) {
                Ok(0) => return (got, None, server),
                Ok(length) => got.extend_from_slice(&chunk[..length]),
                Err(error) => return (got, Some(error.kind()), server),
            }
        }
        (got, None, server)
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    #[test]
    fn close_after_accept_ends_before_any_request() {
        let server = Server::start(Fault::CloseAfterAccept).unwrap();
        let mut stream = TcpStream::connect(server.addr()).unwrap();
        assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
        assert_eq!(server.connections(), 1);
        assert_eq!(server.requests(), 0);
    }

    #[test]
    fn never_accept_leaves_a_connect_hanging() {
        let server = Server::start(Fault::NeverAccept).unwrap();
        let error = TcpStream::connect_timeout(&server.addr(), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn never_answer_reads_the_request_and_ends_with_its_server() {
        let server = Server::start(Fault::NeverAnswer).unwrap();
        let mut stream = TcpStream::connect(server.addr()).unwrap();
        stream.write_all(GET.as_bytes()).unwrap();
        while server.requests() == 0 {
            std::thread::yield_now();
        }
        drop(server);
        assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
    }

    #[test]
    fn reset_mid_answer_is_a_reset() {
        let (got, error, _) = ask(Fault::ResetMidAnswer, GET, usize::MAX);
        if cfg!(target_os = "linux") {
            assert_eq!(got, half_answer());
        }
        assert_eq!(error, Some(ErrorKind::ConnectionReset));
    }

    #[test]
    fn close_mid_body_sends_half_and_ends_in_order() {
        let (got, error, _) = ask(Fault::CloseMidBody, GET, usize::MAX);
        assert!(got.ends_with(b"xxx") && got.len() < 600, "{} bytes", got.len());
        assert_eq!(error, None);
    }

    #[test]
    fn drip_sends_a_good_answer() {
        let (got, ..) = ask(Fault::Drip { interval: Duration::ZERO }, GET, GOOD.len());
        assert_eq!(got, GOOD);
    }

    #[test]
    fn a_drip_between_bytes_does_not_hold_up_the_end() {
        let (got, _, server) = ask(Fault::Drip { interval: Duration::from_secs(3600) }, GET, 1);
        assert_eq!(got, b"H");
        drop(server);
    }

    #[test]
    fn close_idle_does_not_announce_it() {
        let (got, error, _) = ask(Fault::CloseIdle, GET, usize::MAX);
        assert_eq!(got, GOOD);
        assert_eq!(error, None);
    }

    #[test]
    fn answer_early_does_not_wait_for_the_body() {
        let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
        let (got, _, server) = ask(Fault::AnswerEarly, head, GOOD.len());
        assert_eq!(got, GOOD);
        assert_eq!(server.requests(), 1);
    }

    #[test]
    fn bodies_are_read_before_the_next_request() {
        let requests = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\n\
            Transfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n0\r\nT: v\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let raw = Fault::Raw { answer: b"ok".to_vec(), after: After::KeepOpen };
        let (got, _, server) = ask(raw, requests, 6);
        assert_eq!(got, b"okokok");
        assert_eq!(server.requests(), 3);
    }

    #[test]
    fn an_endless_head_outlasts_a_client_that_gives_up() {
        let (got, _, server) = ask(Fault::EndlessHead, GET, 1_000_000);
        assert!(!memchr::memmem::find_iter(&got, b"\r\n\r\n").any(|_| true));
        drop(server);
    }

    #[test]
    fn wrong_bytes_are_sent_as_described() {
        let expected: [(Fault, &[u8]); 5] = [
            (Fault::ConflictingLength, b"Content-Length: 5\r\nContent-Length: 6\r\n"),
            (Fault::BadLength, b"Content-Length: five"),
            (Fault::BadChunkSize, b"xyz\r\n"),
            (Fault::HugeChunk, b"ffffffffffffffff\r\n"),
            (Fault::Interim, b"HTTP/1.1 103 Early Hints\r\n"),
        ];
        for (fault, part) in expected {
            let (bytes, after) = rendered(&fault);
            let (got, ..) = ask(fault.clone(), GET, bytes.len());
            assert_eq!(got, bytes);
            assert_eq!(after, After::KeepOpen);
            assert!(memchr::memmem::find(&got, part).is_some(), "{fault:?}");
        }
    }

    #[test]
    fn the_oversize_head_is_as_long_as_asked() {
        let (bytes, _) = rendered(&Fault::OversizeHead { bytes: 100_000 });
        let end = memchr::memmem::find(&bytes, b"\r\n\r\n").unwrap();
        assert!((100_000..100_100).contains(&end));
    }
}
