//! The bodies of answers.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use smallvec::SmallVec;

use crate::writes::Write;

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a body broke off. A server that gets this error must not end the body as if it were complete: hyper closes the
/// connection, or resets the stream.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The body from the service failed; all its readers get the same error.
    #[error("the body that was shared failed: {0}")]
    Inner(#[source] Arc<dyn Error + Send + Sync>),
    /// The body that the service makes panicked.
    #[error("the body that was shared panicked")]
    Panicked,
    /// This reader held up the others of its body, and took less of it than they may be made to wait for.
    #[error("slow reader: expected at least {least} bytes a second to be read while others wait, for {within:?}")]
    SlowReader {
        /// The least pace, in bytes a second.
        least: usize,
        /// How long it was slower.
        within: Duration,
    },
}

impl BodyError {
    pub(crate) fn inner(error: impl Into<BoxError>) -> Self {
        Self::Inner(error.into().into())
    }
}

/// Tells whether the reader of a shared body was cut off as too slow, to those who cannot poll the body: a server does not while its
/// client takes nothing.
#[derive(Debug, Clone, Default)]
pub struct CutOff(Arc<AtomicBool>);

impl CutOff {
    /// The error with which the body ends when it is polled next; `None` while its reader is not cut off.
    pub fn error(&self) -> Option<BodyError> {
        self.0.load(Ordering::Acquire).then_some(SLOW_READER)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The least that a reader must take, in bytes a second, while others wait for it.
pub(crate) const LEAST_PACE: usize = 64 * 1024;

/// How long a reader may be slower than that.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) const SLOW_READER: BodyError = BodyError::SlowReader { least: LEAST_PACE, within: PATIENCE };

/// A piece of a body that can be given to many.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Data(Bytes),
    Trailers(Box<HeaderMap>),
}

impl Piece {
    /// The piece in a frame; `None` if that is neither data nor trailers (HTTP has no other frames).
    pub(crate) fn from_frame<D: bytes::Buf>(frame: Frame<D>) -> Option<Self> {
        match frame.into_data() {
            Ok(mut data) => Some(Self::Data(data.copy_to_bytes(data.remaining()))),
            Err(frame) => frame.into_trailers().ok().map(|map| Self::Trailers(Box::new(map))),
        }
    }

    /// The number of body bytes in it.
    pub(crate) fn data(&self) -> usize {
        if let Self::Data(data) = self { data.len() } else { 0 }
    }

    /// The approximate memory that it takes, in bytes.
    pub(crate) fn weight(&self) -> usize {
        const ITSELF: usize = 64;
        ITSELF
            + match self {
                Self::Data(data) => data.len(),
                Self::Trailers(map) => map.iter().map(|(name, value)| name.as_str().len() + value.len() + ITSELF).sum(),
            }
    }

    fn into_frame(self) -> Frame<Bytes> {
        match self {
            Self::Data(data) => Frame::data(data),
            Self::Trailers(map) => Frame::trailers(*map),
        }
    }
}

/// A piece of a shared body, for one of its readers.
#[derive(Debug)]
pub(crate) struct SharedPiece {
    pub(crate) piece: Piece,
    /// Whether it is known to be the last.
    pub(crate) is_last: bool,
}

/// The source of a shared body's pieces.
pub(crate) trait Pieces: Send + Sync {
    /// The next piece, or the end of the body.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SharedPiece, BodyError>>>;

    /// Tells whether the reader is cut off.
    fn cut_off(&self) -> CutOff;
}

pin_project! {
    /// The body of an answer: the service's own, or a shared one.
    ///
    /// A shared body is read from the service by whichever reader is polled: at the pace of the fastest while little is held for
/// the others, and of the slowest after that.
    pub struct CoalesceBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B> {
        Own { #[pin] body: B, write: Option<Write> },
        Whole { data: Option<Bytes> },
        // Boxed, as all others are small, and this is rare.
        Held { held: Box<HeldPieces> },
        Shared { pieces: Box<dyn Pieces>, left: SizeHint, ended: bool },
    }
}

/// Pieces that are already there, and the number of body bytes in them.
struct HeldPieces {
    pieces: smallvec::IntoIter<[Piece; 1]>,
    left: u64,
}

impl<B> CoalesceBody<B> {
    /// The service's body, for one reader.
    pub(crate) fn own(body: B) -> Self {
        Self { kind: Kind::Own { body, write: None } }
    }

    /// The service's body for a write, which ends with it.
    pub(crate) fn of_write(body: B, write: Option<Write>) -> Self {
        Self { kind: Kind::Own { body, write } }
    }

    /// Tells whether this body's reader is cut off as too slow; `None` if that cannot happen, as no other reads it.
    pub fn cut_off(&self) -> Option<CutOff> {
        match &self.kind {
            Kind::Shared { pieces, .. } => Some(pieces.cut_off()),
            Kind::Own { .. } | Kind::Whole { .. } | Kind::Held { .. } => None,
        }
    }

    /// A body whose pieces are all there.
    pub(crate) fn held(mut pieces: SmallVec<[Piece; 1]>) -> Self {
        let kind = match (pieces.len(), pieces.pop()) {
            (_, None) => Kind::Whole { data: None },
            (1, Some(Piece::Data(data))) => Kind::Whole { data: Some(data) },
            (_, Some(last)) => {
                pieces.push(last);
                let left = pieces.iter().map(|piece| piece.data() as u64).sum();
                Kind::Held { held: Box::new(HeldPieces { pieces: pieces.into_iter(), left }) }
            }
        };
        Self { kind }
    }

    /// A shared body that is still being made.
    pub(crate) fn shared(pieces: Box<dyn Pieces>, hint: SizeHint) -> Self {
        Self { kind: Kind::Shared { pieces, left: hint, ended: false } }
    }
}

impl<B> fmt::Debug for CoalesceBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Own { .. } => "own",
            Kind::Held { .. } | Kind::Whole { .. } => "held",
            Kind::Shared { .. } => "shared",
        };
        f.debug_tuple("CoalesceBody").field(&kind).finish()
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for CoalesceBody<B> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.project().kind.project() {
            KindProj::Own { mut body, write } => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                if write.is_some() && (frame.is_none() || body.is_end_stream()) {
                    *write = None;
                }
                Poll::Ready(frame.map(|frame| match frame {
                    Ok(frame) => Ok(frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))),
                    Err(error) => Err(BodyError::inner(error)),
                }))
            }
            KindProj::Whole { data } => Poll::Ready(data.take().map(|data| Ok(Frame::data(data)))),
            KindProj::Held { held } => {
                let piece = held.pieces.next();
                held.left -= piece.as_ref().map_or(0, Piece::data) as u64;
                Poll::Ready(piece.map(|piece| Ok(piece.into_frame())))
            }
            KindProj::Shared { ended: true, .. } => Poll::Ready(None),
            KindProj::Shared { pieces, left, ended } => {
                let given = ready!(pieces.poll_next(cx));
                match &given {
                    Some(Ok(given)) => {
                        *left = less(*left, given.piece.data() as u64);
                        *ended = given.is_last;
                    }
                    Some(Err(_)) | None => *ended = true,
                }
                Poll::Ready(given.map(|given| given.map(|given| given.piece.into_frame())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Own { body, .. } => body.is_end_stream(),
            Kind::Whole { data } => data.is_none(),
            Kind::Held { held } => held.pieces.len() == 0,
            Kind::Shared { ended, .. } => *ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Own { body, .. } => body.size_hint(),
            Kind::Whole { data } => SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64)),
            // A server that knows the length sends no trailers.
            Kind::Held { held } if held.pieces.as_slice().iter().any(|piece| matches!(piece, Piece::Trailers(_))) => {
                let mut hint = SizeHint::new();
                hint.set_lower(held.left);
                hint
            }
            Kind::Held { held } => SizeHint::with_exact(held.left),
            Kind::Shared { left, .. } => *left,
        }
    }
}

/// The size that is left after this many bytes.
fn less(hint: SizeHint, came: u64) -> SizeHint {
    let mut left = SizeHint::new();
    left.set_lower(hint.lower().saturating_sub(came));
    if let Some(upper) = hint.upper() {
        left.set_upper(upper.saturating_sub(came));
    }
    left
}
