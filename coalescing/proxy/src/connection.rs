//! One client connection: its place within the limit of connections, and a time limit for each stage.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use brunt_coalesce::CutOff;
use hyper_util::server::graceful::GracefulConnection;
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::interim::Outbox;
use crate::metrics::{Metrics, Open};

/// The first bytes of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long a connection without a request may take to end once it is told to.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long the stages of a connection may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For TLS, HTTP/2's preface, and the head of a request from its first byte on.
    pub(crate) head: Duration,
    /// Without a request.
    pub(crate) idle: Duration,
    /// For a client that accepts none of what is sent.
    pub(crate) client: Duration,
}

/// A place within the limit of connections. It is taken as long as a clone of it exists: an upgraded connection keeps
/// it as well. The proxy's end waits for all of them.
#[derive(Clone)]
pub(crate) struct Seat {
    _shared: Arc<(OwnedSemaphorePermit, Option<Open>, watch::Receiver<bool>)>,
}

impl Seat {
    pub(crate) fn new(permit: OwnedSemaphorePermit, open: Option<Open>, ends: watch::Receiver<bool>) -> Self {
        Self { _shared: Arc::new((permit, open, ends)) }
    }
}

/// The stage of a client connection, for its time limits.
pub(crate) struct Progress {
    state: Mutex<State>,
    gives_way: Notify,
}

struct State {
    stage: Stage,
    /// When the stage began.
    since: Instant,
    /// Requests whose answers are not yet sent; those have limits of their own.
    in_flight: usize,
    /// Whether it was told to make room for another connection.
    gives_way: bool,
    /// Whether the client is too slow for those that share its answer, over HTTP/1.
    cut_off: Option<CutOff>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Only this many bytes of HTTP/2's preface have come.
    Preface(usize),
    /// A head of HTTP/1 has begun.
    Head,
    /// HTTP/1, without a request.
    Idle,
    /// HTTP/2, whose other frames are no requests.
    Http2,
}

/// A request whose answer is not sent yet.
pub(crate) struct InFlight(Arc<Progress>);

impl Progress {
    pub(crate) fn new() -> Self {
        let state =
            State { stage: Stage::Preface(0), since: Instant::now(), in_flight: 0, gives_way: false, cut_off: None };
        Self { state: Mutex::new(state), gives_way: Notify::new() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the head of a request has come.
    pub(crate) fn request(self: &Arc<Self>) -> InFlight {
        self.state().in_flight += 1;
        InFlight(Arc::clone(self))
    }

    /// Notes that these bytes have come.
    fn came(&self, bytes: &[u8]) {
        let mut state = self.state();
        match state.stage {
            Stage::Preface(matched) => {
                let expected = PREFACE.get(matched..).unwrap_or_default();
                let both = bytes.len().min(expected.len());
                state.stage = match (bytes.get(..both), expected.get(..both)) {
                    (Some(came), Some(expected)) if came != expected => Stage::Head,
                    _ if both == expected.len() => Stage::Http2,
                    _ => Stage::Preface(matched + both),
                };
                if state.stage == Stage::Http2 {
                    state.since = Instant::now();
                }
            }
            Stage::Idle if state.in_flight == 0 => (state.stage, state.since) = (Stage::Head, Instant::now()),
            Stage::Idle | Stage::Head | Stage::Http2 => {}
        }
    }

    /// Since when the connection has been idle after a request; `None` if it is not, or is about to end.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        let is_idle = state.in_flight == 0 && matches!(state.stage, Stage::Idle | Stage::Http2) && !state.gives_way;
        is_idle.then_some(state.since)
    }

    /// Ends the connection after its last request, so that another has room.
    pub(crate) fn give_way(&self) {
        self.state().gives_way = true;
        self.gives_way.notify_one();
    }

    /// Whether the client is too slow for those that share its answer.
    fn is_cut_off(&self) -> bool {
        self.state().cut_off.as_ref().is_some_and(|cut_off| cut_off.error().is_some())
    }

    /// When this stage must be over; `None` while a request is in flight.
    fn deadline(&self, patience: Patience) -> Option<Instant> {
        let state = self.state();
        let most = match state.stage {
            Stage::Preface(_) | Stage::Head => patience.head,
            Stage::Idle | Stage::Http2 => patience.idle,
        };
        (state.in_flight == 0).then(|| state.since + most)
    }

    /// Returns once a stage has taken too long.
    async fn is_overdue(&self, patience: Patience) {
        loop {
            match self.deadline(patience) {
                Some(deadline) if deadline <= Instant::now() => return,
                Some(deadline) => sleep_until(deadline).await,
                // A stage that begins during the sleep cannot be overdue before its end.
                None => sleep(patience.head.min(patience.idle)).await,
            }
        }
    }
}

impl InFlight {
    /// Ends the connection, which has no other request, if its client is cut off.
    pub(crate) fn ends_with(&self, cut_off: CutOff) {
        self.0.state().cut_off = Some(cut_off);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight -= 1;
        state.cut_off = None;
        if state.in_flight == 0 {
            state.since = Instant::now();
            if state.stage != Stage::Http2 {
                state.stage = Stage::Idle;
            }
        }
    }
}

/// A connection that is served. It is boxed, since the compiler cannot otherwise prove that serving it is `Send`.
pub(crate) type Serving<E> = Pin<Box<dyn GracefulConnection<Error = E, Output = Result<(), E>> + Send>>;

/// Serves a connection until it ends, or one of its stages takes too long. Once told to end, it ends after its last
/// request.
pub(crate) async fn serve<E>(
    mut connection: Serving<E>,
    progress: Arc<Progress>,
    patience: Patience,
    mut ends: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
) {
    let is_over = tokio::select! {
        // An error of a connection concerns its client alone; the access log has it with its request.
        _ = connection.as_mut() => true,
        _ = ends.wait_for(|ends| *ends) => false,
        () = progress.gives_way.notified() => false,
        () = progress.is_overdue(patience) => {
            metrics.timed_out();
            // A client that has not completed its request gets no answer.
            matches!(progress.state().stage, Stage::Preface(_) | Stage::Head)
        }
    };
    if is_over {
        return;
    }
    connection.as_mut().graceful_shutdown();
    let farewell = Patience { head: patience.head.min(FAREWELL), idle: patience.idle.min(FAREWELL), ..patience };
    let told = sleep(FAREWELL);
    tokio::select! {
        _ = connection.as_mut() => {}
        () = async { told.await; progress.is_overdue(farewell).await } => {}
    }
}

pin_project! {
    /// A client connection that notes received bytes, and fails if the client accepts nothing for too long.
    pub(crate) struct Watched<I> {
        #[pin]
        io: I,
        progress: Arc<Progress>,
        interim: Arc<Outbox>,
        most: Duration,
        // While bytes wait to be sent and the client accepts none.
        stalled: Option<Stall>,
        // What the client still sends after the end, and for how long that is read.
        lingers: Option<Linger>,
    }
}

impl<I> Watched<I> {
    pub(crate) fn new(io: I, progress: Arc<Progress>, interim: Arc<Outbox>, patience: Patience) -> Self {
        Self { io, progress, interim, most: patience.client, stalled: None, lingers: None }
    }
}

/// A client that accepts nothing.
struct Stall {
    until: Instant,
    /// Runs until it is looked at again.
    look: Pin<Box<Sleep>>,
}

/// How often a client that accepts nothing is looked at.
const LOOK: Duration = Duration::from_secs(1);

impl Stall {
    fn new(most: Duration) -> Self {
        Self { until: Instant::now() + most, look: Box::pin(sleep(most.min(LOOK))) }
    }
}

/// The result of sending, or an error once that has taken too long: longer than `most`, or than those bear that share the answer.
fn in_time<T>(
    polled: Poll<io::Result<T>>,
    stalled: &mut Option<Stall>,
    most: Duration,
    progress: &Progress,
    cx: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    if polled.is_ready() {
        *stalled = None;
        return polled;
    }
    let stall = stalled.get_or_insert_with(|| Stall::new(most));
    loop {
        ready!(stall.look.as_mut().poll(cx));
        if Instant::now() >= stall.until || progress.is_cut_off() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        stall.look.as_mut().reset(stall.until.min(Instant::now() + LOOK));
    }
}

impl<I: AsyncRead> AsyncRead for Watched<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let before = buffer.filled().len();
        let polled = this.io.poll_read(cx, buffer);
        if let Some(came @ [_, ..]) = buffer.filled().get(before..) {
            this.progress.came(came);
        }
        polled
    }
}

/// The end of a connection. A client that is still sending when its connection is closed loses the answer, as the kernel drops
/// what has come when it resets a connection (RFC 9112, section 9.6). So what it sends is read for a while.
struct Linger {
    quiet: Pin<Box<Sleep>>,
    until: Instant,
}

/// How long a client may be silent before its connection is closed altogether.
const QUIET: Duration = Duration::from_secs(2);

/// How long a client may go on sending.
const LINGERS_AT_MOST: Duration = Duration::from_secs(30);

impl Linger {
    fn new() -> Self {
        Self { quiet: Box::pin(sleep(QUIET)), until: Instant::now() + LINGERS_AT_MOST }
    }

    /// Reads and drops what comes, until the client ends the connection or is silent.
    fn poll(&mut self, mut io: Pin<&mut impl AsyncRead>, cx: &mut Context<'_>) -> Poll<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let mut read = ReadBuf::new(&mut buffer);
            match io.as_mut().poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() && Instant::now() < self.until => {
                    self.quiet.as_mut().reset(self.until.min(Instant::now() + QUIET));
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.quiet.as_mut().poll(cx),
            }
        }
    }
}

impl<I: AsyncRead + AsyncWrite> AsyncWrite for Watched<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.project();
        in_time(this.io.poll_write(cx, bytes), this.stalled, *this.most, this.progress, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        in_time(this.io.poll_write_vectored(cx, bytes), this.stalled, *this.most, this.progress, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        ready!(in_time(this.interim.poll_write_to(this.io.as_mut(), cx), this.stalled, *this.most, this.progress, cx))?;
        in_time(this.io.poll_flush(cx), this.stalled, *this.most, this.progress, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        if this.lingers.is_none() {
            ready!(in_time(this.io.as_mut().poll_shutdown(cx), this.stalled, *this.most, this.progress, cx))?;
        }
        ready!(this.lingers.get_or_insert_with(Linger::new).poll(this.io, cx));
        Poll::Ready(Ok(()))
    }
}
