//! A call's answer as a body for hyper, made as fast as the client accepts it.

use std::fmt::Write as _;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue};
use hyper::body::{Body, Frame, Incoming};
use tokio::time::{Sleep, sleep};

use super::log::CallMessages;
use super::methods::{Method, Status};

/// The flag and the length before each message.
const PREFIX_BYTES: usize = 5;
/// The longest accepted message, in bytes.
const MOST_BYTES: usize = 16_384_000;

/// The messages that answer a call, and its status.
pub(super) struct Answer {
    /// The client's messages, until their end.
    incoming: Option<Incoming>,
    /// The received part of an incomplete message.
    partial: BytesMut,
    method: Method,
    /// A message that is not due yet.
    later: Option<(Pin<Box<Sleep>>, Bytes)>,
    /// The status at the end of the call; `None` once it was sent.
    status: Option<Status>,
    /// The log of its messages, if there is one.
    log: Option<CallMessages>,
}

impl Answer {
    /// That to a call of `method`.
    pub(super) fn new(method: Method, incoming: Incoming) -> Self {
        Self { incoming: Some(incoming), method, ..Self::ending(Status::OK) }
    }

    /// The same answer, with a log of its messages.
    pub(super) fn noted(self, log: Option<CallMessages>) -> Self {
        Self { log, ..self }
    }

    /// An answer that ends with `status` at once.
    pub(super) fn ending(status: Status) -> Self {
        Self {
            incoming: None,
            partial: BytesMut::new(),
            method: Method::Echo,
            later: None,
            status: Some(status),
            log: None,
        }
    }

    /// The next complete message.
    fn message(&mut self) -> Result<Option<BytesMut>, Status> {
        let Some(&[flag, a, b, c, d]) = self.partial.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        match (flag, length) {
            (_, MOST_BYTES..) => {
                Err(Status::new(8, format!("a message of {length} bytes, and {MOST_BYTES} are too many")))
            }
            (0, _) if self.partial.len() - PREFIX_BYTES < length => Ok(None),
            (0, _) => {
                self.partial.advance(PREFIX_BYTES);
                Ok(Some(self.partial.split_to(length)))
            }
            _ => Err(Status::new(12, "the echo takes no compressed messages")),
        }
    }

    /// Answers complete messages, up to the first that has an immediate answer.
    fn answer(&mut self) -> Result<Option<Bytes>, Status> {
        while let Some(message) = self.message()? {
            if let Some(answer) = self.method.receive(&message)? {
                return Ok(Some(framed(&answer)));
            }
        }
        Ok(None)
    }

    /// Ends the call, whatever its client still sends.
    fn end(&mut self, status: Status) {
        self.incoming = None;
        self.partial.clear();
        self.method = Method::Echo;
        self.status = Some(status);
    }

    fn trailers(status: &Status) -> Frame<Bytes> {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from(status.number));
        if !status.message.is_empty()
            && let Ok(message) = HeaderValue::from_str(&encoded(&status.message))
        {
            trailers.insert("grpc-message", message);
        }
        Frame::trailers(trailers)
    }
}

/// A message with its prefix.
fn framed(message: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + message.len());
    bytes.push(0);
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes.into()
}

/// A text, percent-encoded for `grpc-message`.
fn encoded(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = this.poll_next(cx);
        if let (Some(log), Poll::Ready(Some(Ok(frame)))) = (&this.log, &frame)
            && frame.is_data()
        {
            log.sent();
        }
        frame
    }
}

impl Answer {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            if let Some((sleep, message)) = &mut self.later {
                std::task::ready!(sleep.as_mut().poll(cx));
                let message = std::mem::take(message);
                self.later = None;
                return Poll::Ready(Some(Ok(Frame::data(message))));
            }
            match self.answer() {
                Ok(Some(message)) => return Poll::Ready(Some(Ok(Frame::data(message)))),
                Ok(None) => {}
                Err(status) => {
                    self.end(status);
                    continue;
                }
            }
            match self.method.next() {
                Some((gap, message)) if gap.is_zero() => return Poll::Ready(Some(Ok(Frame::data(framed(&message))))),
                Some((gap, message)) => {
                    self.later = Some((Box::pin(sleep(gap)), framed(&message)));
                    continue;
                }
                None => {}
            }
            let Some(incoming) = &mut self.incoming else {
                return Poll::Ready(self.status.take().map(|status| Ok(Self::trailers(&status))));
            };
            match std::task::ready!(Pin::new(incoming).poll_frame(cx)) {
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.partial.extend_from_slice(&data);
                    }
                }
                // Nothing wakes this body again: it ends with its stream.
                None if self.method.is_endless() && self.partial.is_empty() => return Poll::Pending,
                None if !self.partial.is_empty() => self.end(Status::new(13, "the request ends within a message")),
                None => {
                    let last = self.method.end();
                    self.end(Status::OK);
                    if let Some(message) = last {
                        return Poll::Ready(Some(Ok(Frame::data(framed(&message)))));
                    }
                }
            }
        }
    }
}
