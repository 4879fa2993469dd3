//! Connections to the upstream: over the network, or, in tests, within this process.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use brunt_coalesce::BoxError;
use http::{Extensions, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Error as ClientError;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;

/// Makes the upstream's end of a connection within this process.
pub(crate) type Dial = Arc<dyn Fn() -> io::Result<DuplexStream> + Send + Sync>;

/// Makes connections to the upstream.
#[derive(Clone)]
pub(crate) enum Connector {
    Network(HttpsConnector<HttpConnector>),
    Process(Dial),
}

/// Whether a connection has brought an answer before. If its next request fails, the upstream may have closed it in
/// between.
#[derive(Debug, Clone, Default)]
pub(crate) struct HasAnswered(Arc<AtomicBool>);

impl HasAnswered {
    /// Remembers that an answer with these extensions has come.
    pub(crate) fn remember(extensions: &Extensions) {
        if let Some(Self(answered)) = extensions.get() {
            answered.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the connection on which a request failed had brought an answer before.
    pub(crate) fn before(error: &ClientError) -> bool {
        let mut extensions = Extensions::new();
        if let Some(info) = error.connect_info() {
            info.get_extras(&mut extensions);
        }
        extensions.get().is_some_and(|Self(answered)| answered.load(Ordering::Relaxed))
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
    has_answered: HasAnswered,
}

impl Upstream {
    fn new(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), has_answered: HasAnswered::default() }
    }
}

impl Connection for Upstream {
    fn connected(&self) -> Connected {
        // The connector speaks HTTP/1.1 alone: TLS offers no other protocol.
        Connected::new().extra(self.has_answered.clone())
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
