//! Connections to the upstream: over the network, or, in tests, within this process.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use brunt_coalesce::BoxError;
use http::{Extensions, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Error as ClientError;
use hyper_util::client::legacy::connect::{CaptureConnection, Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::sync::watch;

/// Makes the upstream's end of a connection within this process.
pub(crate) type Dial = Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>;

/// Makes connections to the upstream.
#[derive(Clone)]
pub(crate) enum Connector {
    Network(HttpsConnector<HttpConnector>),
    Process(Dial),
}

/// How long after the end of its connection a request may still learn of it from hyper.
const LAST_WORD: Duration = Duration::from_millis(100);

/// What is known of a connection to the upstream.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// Whether it has brought an answer before. If its next request fails, the upstream may have closed it in between.
    has_answered: Arc<AtomicBool>,
    /// Its other half is dropped with the connection.
    open: watch::Receiver<()>,
}

impl Link {
    /// The connection of these extensions.
    fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// The connection that a request was given last.
    fn of_request(captured: &CaptureConnection) -> Option<Self> {
        let mut extensions = Extensions::new();
        if let Some(connected) = captured.connection_metadata().as_ref() {
            connected.get_extras(&mut extensions);
        }
        extensions.remove()
    }

    /// Remembers that an answer with these extensions has come.
    pub(crate) fn answered(extensions: &Extensions) {
        if let Some(link) = Self::of(extensions) {
            link.has_answered.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it has brought an answer before.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// The connection on which a request failed.
    pub(crate) fn of_error(error: &ClientError) -> Option<Self> {
        let mut extensions = Extensions::new();
        if let Some(info) = error.connect_info() {
            info.get_extras(&mut extensions);
        }
        extensions.remove()
    }

    /// Returns once the connection of a request has ended and hyper has said nothing of it.
    ///
    /// hyper gives a request to its connection through a channel of tokio. A connection that ends at that moment can
    /// leave it there, where nobody ever answers it (<https://github.com/hyperium/hyper/issues/4122>).
    ///
    /// Where the connection was kept, hyper may be sending the request again, which no connection shows before it is
    /// made: that takes `connect_timeout` at the most.
    pub(crate) async fn lost(mut captured: CaptureConnection, connect_timeout: Duration) -> Self {
        loop {
            let _ = captured.wait_for_connection_metadata().await;
            let Some(mut link) = Self::of_request(&captured) else { return std::future::pending().await };
            // Nothing is ever sent: this is an error, at the connection's end.
            let _ = link.open.changed().await;
            let connects = if link.has_answered() { connect_timeout } else { Duration::ZERO };
            tokio::time::sleep(LAST_WORD.saturating_add(connects)).await;
            let now = Self::of_request(&captured);
            // By then hyper may have given the request to another.
            if now.is_some_and(|now| Arc::ptr_eq(&now.has_answered, &link.has_answered)) {
                return link;
            }
        }
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = Upstream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Upstream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Network(connector) => connector.poll_ready(cx),
            Self::Process(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self {
            Self::Network(connector) => {
                let connecting = connector.call(uri);
                Box::pin(async move { Ok(Upstream::new(connecting.await?)) })
            }
            Self::Process(dial) => {
                let dialled = dial();
                Box::pin(async move { Ok(Upstream::new(TokioIo::new(dialled?))) })
            }
        }
    }
}

trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

/// A connection to the upstream.
pub(crate) struct Upstream {
    stream: Box<dyn Stream>,
    link: Link,
    _open: watch::Sender<()>,
}

impl Upstream {
    fn new(stream: impl Stream + 'static) -> Self {
        let (held, open) = watch::channel(());
        Self { stream: Box::new(stream), link: Link { has_answered: Arc::default(), open }, _open: held }
    }
}

impl Connection for Upstream {
    fn connected(&self) -> Connected {
        // The connector speaks HTTP/1.1 alone: TLS offers no other protocol.
        Connected::new().extra(self.link.clone())
    }
}

impl Read for Upstream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl Write for Upstream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }
}
