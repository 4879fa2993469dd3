//! Upgraded connections: bytes go both ways, until both sides have ended or neither sends anything for too long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};

use crate::connection::Seat;
use crate::metrics::Metrics;
use crate::patience::WaitClock;

/// Runs a tunnel between a client and the upstream, once both have upgraded. It keeps the client's place among the
/// connections.
pub(crate) async fn run(
    client: OnUpgrade,
    upstream: OnUpgrade,
    idle: Duration,
    seat: Option<Seat>,
    metrics: Arc<Metrics>,
) {
    let _seat = seat;
    let silence = Arc::new(WaitClock::default());
    let both = async {
        let (Ok(client), Ok(upstream)) = (client.await, upstream.await) else { return };
        let _open = metrics.tunnel();
        let mut client = Heard { io: TokioIo::new(client), silence: Arc::clone(&silence) };
        let mut upstream = Heard { io: TokioIo::new(upstream), silence: Arc::clone(&silence) };
        // However the tunnel ends, both connections are closed.
        let _ = copy_bidirectional(&mut client, &mut upstream).await;
    };
    silence.begins();
    tokio::select! {
        () = both => {}
        () = silence.exceeds(idle) => metrics.timed_out(),
    }
}

pin_project! {
    /// One side of a tunnel. Each byte that it sends or receives restarts the timeout.
    struct Heard<I> {
        #[pin]
        io: I,
        silence: Arc<WaitClock>,
    }
}

impl<I: AsyncRead> AsyncRead for Heard<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let before = buffer.filled().len();
        let polled = this.io.poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.silence.begins();
        }
        polled
    }
}

impl<I: AsyncWrite> AsyncWrite for Heard<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.project();
        let polled = this.io.poll_write(cx, bytes);
        if matches!(polled, Poll::Ready(Ok(written)) if written > 0) {
            this.silence.begins();
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().io.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().io.poll_shutdown(cx)
    }
}
