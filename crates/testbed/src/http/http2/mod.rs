//! HTTP/2 for the same routes: each stream is a [`Session`] of its own, which is given a request of HTTP/1.1 and whose answer is taken
//! apart again. So nothing is answered twice, and the way of HTTP/1.1 has no part of this.
//!
//! HTTP/2 itself is hyper's, polled where the connection has its turn, without a runtime: brunt's own is tested against it.

mod answer;
mod stream;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hyper::rt::{Executor, Read, ReadBufCursor, Write};
use hyper::server::conn::http2::{Builder, Connection};

pub(super) use self::answer::{Part, Reader};
use self::stream::{Requests, Shared};
use super::session::Session;
use super::site::Site;
use crate::service::{Closing, OUTPUT};

/// The first bytes of an HTTP/2 connection (RFC 9113, section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Streams that a client may have open.
const MOST_STREAMS: u32 = 1000;
/// The most bytes of input that wait before reading pauses.
const MOST_INPUT: usize = 1024 * 1024;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Locks without contention: everything runs on the worker's thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes between hyper and the connection.
#[derive(Debug, Default)]
struct Bytes {
    input: BytesMut,
    output: Vec<u8>,
}

/// hyper's end of them.
#[derive(Clone, Default)]
struct Socket(Arc<Mutex<Bytes>>);

/// Collects the tasks that hyper spawns for the connection.
#[derive(Clone, Default)]
struct Spawner(Arc<Mutex<Vec<Task>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Spawner {
    fn execute(&self, task: F) {
        lock(&self.0).push(Box::pin(task));
    }
}

/// Whether a task was woken.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The server's side of one connection.
pub(crate) struct Http2 {
    connection: Option<Pin<Box<Connection<Socket, Requests, Spawner>>>>,
    socket: Socket,
    spawner: Spawner,
    tasks: FuturesUnordered<Task>,
    requests: Requests,
    flag: Arc<Flag>,
    streams: Vec<Stream>,
    /// Answers decided on.
    decided: u64,
    /// Whether there is more to send after this turn.
    has_more: bool,
}

/// A stream whose answer goes on.
struct Stream {
    shared: Arc<Mutex<Shared>>,
    session: Session,
    reader: Reader,
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2").field("streams", &self.streams.len()).finish_non_exhaustive()
    }
}

impl Http2 {
    pub(crate) fn new() -> Self {
        let (socket, spawner, requests) = (Socket::default(), Spawner::default(), Requests::default());
        let mut builder = Builder::new(spawner.clone());
        builder.auto_date_header(false).max_concurrent_streams(MOST_STREAMS);
        let connection = builder.serve_connection(socket.clone(), requests.clone());
        Self {
            connection: Some(Box::pin(connection)),
            socket,
            spawner,
            tasks: FuturesUnordered::new(),
            requests,
            flag: Arc::default(),
            streams: Vec::new(),
            decided: 0,
            has_more: false,
        }
    }

    pub(crate) fn closing(&self) -> Option<Closing> {
        let is_over = self.connection.is_none() && lock(&self.socket.0).output.is_empty();
        is_over.then_some(Closing::Ours)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// The connection is gone, and with it whoever waits for answers.
    pub(crate) fn leave(&mut self, site: &mut Site) {
        self.streams.iter_mut().for_each(|stream| stream.session.leave(site));
    }

    pub(crate) fn is_full(&self) -> bool {
        lock(&self.socket.0).input.len() > MOST_INPUT
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        if self.has_more {
            return Some(Duration::ZERO);
        }
        let due = self.streams.iter().filter(|stream| lock(&stream.shared).has_room());
        due.filter_map(|stream| stream.session.next_due()).min()
    }

    pub(crate) fn receive(&mut self, input: &[u8], site: &mut Site, out: &mut Vec<u8>) {
        lock(&self.socket.0).input.extend_from_slice(input);
        self.pump(site, out);
    }

    /// Makes all possible progress, and appends what is to be sent.
    pub(crate) fn pump(&mut self, site: &mut Site, out: &mut Vec<u8>) {
        loop {
            let has_output = {
                let mut bytes = lock(&self.socket.0);
                out.append(&mut bytes.output);
                out.len() >= OUTPUT
            };
            self.flag.0.store(false, Ordering::Relaxed);
            self.poll();
            let has_answered = self.answer(site);
            let is_done = !has_answered && !self.flag.0.load(Ordering::Relaxed);
            self.has_more = !(is_done && lock(&self.socket.0).output.is_empty());
            if has_output || !self.has_more {
                return;
            }
        }
    }

    /// Polls hyper's tasks.
    fn poll(&mut self) {
        let waker = Waker::from(Arc::clone(&self.flag));
        let mut context = Context::from_waker(&waker);
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(&mut context).is_ready()
        {
            // The client of a broken connection knows that already.
            self.connection = None;
        }
        self.tasks.extend(lock(&self.spawner.0).drain(..));
        while let Poll::Ready(Some(())) = self.tasks.poll_next_unpin(&mut context) {}
    }

    /// Passes requests to their sessions, and answers to their streams. Returns whether there was anything to pass.
    fn answer(&mut self, site: &mut Site) -> bool {
        for (shared, is_bodiless) in self.requests.take() {
            self.streams.push(Stream { shared, session: Session::new(), reader: Reader::new(is_bodiless) });
            self.decided += 1;
            if self.decided == site.service.close_after
                && let Some(connection) = &mut self.connection
            {
                connection.as_mut().graceful_shutdown();
            }
        }
        let mut text = Vec::new();
        let mut has_answered = false;
        self.streams.retain_mut(|stream| {
            has_answered |= stream.go_on(site, &mut text);
            let mut shared = lock(&stream.shared);
            let has_session_ended = stream.session.closing().is_some();
            let is_torn = has_session_ended && stream.reader.is_torn();
            let is_done = stream.reader.is_done(has_session_ended) || is_torn;
            if is_done && !shared.has_ended() {
                shared.end(is_torn);
                has_answered = true;
            }
            if shared.is_left() {
                stream.session.leave(site);
            }
            !is_done && !shared.is_left()
        });
        has_answered
    }
}

impl Stream {
    /// Lets the session answer. Returns whether it did.
    fn go_on(&mut self, site: &mut Site, text: &mut Vec<u8>) -> bool {
        let mut shared = lock(&self.shared);
        let request = shared.take_request();
        if !shared.has_room() && request.is_empty() {
            return false;
        }
        self.session.pump(site, text);
        self.session.receive(&request, site, text);
        // An answer that is due at once waits in the session's queue.
        self.session.pump(site, text);
        if text.is_empty() {
            return false;
        }
        self.reader.take(text);
        text.clear();
        while let Some(part) = self.reader.next() {
            shared.push(part);
        }
        true
    }
}

impl Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        // The connection is polled whenever bytes have come.
        let mut bytes = lock(&self.0);
        let length = bytes.input.len().min(buffer.remaining());
        if length == 0 {
            return Poll::Pending;
        }
        buffer.put_slice(bytes.input.get(..length).unwrap_or_default());
        bytes.input.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl Write for Socket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, written: &[u8]) -> Poll<std::io::Result<usize>> {
        let mut bytes = lock(&self.0);
        if bytes.output.len() >= OUTPUT {
            return Poll::Pending;
        }
        bytes.output.extend_from_slice(written);
        Poll::Ready(Ok(written.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
