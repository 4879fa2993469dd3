//! Connections to the upstream: over the network, or, in tests, within this process.

use std::io;
use std::path::Path;
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
use tokio::net::UnixStream;
use tokio::sync::watch;

/// Makes the upstream's end of a connection within this process.
pub(crate) type Dial = Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>;

/// Makes connections to the upstream.
#[derive(Clone)]
pub(crate) enum Connector {
    Network(HttpsConnector<HttpConnector>),
    /// Over the Unix socket in this file, within this time.
    Socket(Arc<Path>, Duration),
    Process(Dial),
}

/// What is known of a connection to the upstream.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// Whether it has brought an answer before. If its next request fails, the upstream may have closed it in between.
    has_answered: Arc<AtomicBool>,
    /// Its other half is dropped with the connection.
    open: watch::Receiver<()>,
}

impl Link {
    fn from_connected(connected: &Connected) -> Option<Self> {
        let mut extensions = Extensions::new();
        connected.get_extras(&mut extensions);
        extensions.remove()
    }

    /// The last connection that a request was given to.
    pub(crate) fn from_captured(captured: &CaptureConnection) -> Option<Self> {
        captured.connection_metadata().as_ref().and_then(Self::from_connected)
    }

    /// The connection on which a request failed.
    pub(crate) fn from_error(error: &ClientError) -> Option<Self> {
        error.connect_info().and_then(Self::from_connected)
    }

    /// Remembers that an answer with these extensions has come over its connection.
    pub(crate) fn remember_answer(extensions: &Extensions) {
        if let Some(link) = extensions.get::<Self>() {
            link.has_answered.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it has brought an answer before.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        // Nothing is ever sent: this is an error once the other half is gone.
        self.open.has_changed().is_err()
    }
}

impl PartialEq for Link {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.has_answered, &other.has_answered)
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = Upstream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Upstream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Network(connector) => connector.poll_ready(cx),
            Self::Socket(..) | Self::Process(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self {
            Self::Network(connector) => {
                let connecting = connector.call(uri);
                Box::pin(async move { Ok(Upstream::new(connecting.await?)) })
            }
            Self::Socket(path, most) => {
                let (path, most) = (Arc::clone(path), *most);
                Box::pin(async move {
                    let connected = tokio::time::timeout(most, UnixStream::connect(path)).await;
                    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                    Ok(Upstream::new(TokioIo::new(stream)))
                })
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
