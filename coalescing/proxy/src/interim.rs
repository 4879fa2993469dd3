//! Interim answers of the upstream, such as `103 Early Hints`, on their way to a client of HTTP/1.1 (RFC 9110, section 15.2).
//!
//! hyper's server writes no interim answer, so they go past it, into the client's stream. What keeps them from ending up within
//! another answer:
//!
//! - The stream writes them only when hyper flushes it, which hyper does when it holds no bytes of its own.
//! - A [`Turn`] lasts while the service has not answered its request. So all of the answer before it has been given to the stream,
//!   and nothing of its own: [`Turn::before`] gives the answer to hyper only when all that is interim has been written.
//! - What comes after the end of its turn, as of a flight whose leader has left, is dropped.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use http::header::{CONTENT_LENGTH, TRAILER};
use http::{HeaderMap, StatusCode, Version};
use tokio::io::AsyncWrite;

use crate::headers::{COALESCED, add_via, remove_hop_by_hop};

/// The most bytes of interim answers to a request.
const MOST_BYTES: usize = 64 * 1024;

/// Interim answers that are to be written into a client's stream.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Counts turns, so that one that is over is told from the next.
    turn: u64,
    is_open: bool,
    /// The bytes that were given to this turn.
    given: usize,
    bytes: Vec<u8>,
    /// Of these, how many have been written.
    written: usize,
    /// Whether the stream waits for its peer to take more. It wakes its task then.
    is_stalled: bool,
    /// Wakes the request's task, which is its connection's.
    waker: Option<Waker>,
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the turn of the connection's next request. Over HTTP/1.1 one request is answered after the other.
    pub(crate) fn turn(self: &Arc<Self>) -> Turn {
        let mut state = self.state();
        state.turn += 1;
        (state.is_open, state.given) = (true, 0);
        Turn { outbox: Arc::clone(self), number: state.turn }
    }

    /// Writes what is there. To be called when hyper holds no bytes for this stream.
    pub(crate) fn poll_write_to(
        &self,
        mut io: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.state();
        while let Some(left @ [_, ..]) = state.bytes.get(state.written..) {
            let written = io.as_mut().poll_write(cx, left);
            state.is_stalled = written.is_pending();
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => state.written += written,
            }
        }
        if state.written > 0 {
            state.written = 0;
            state.bytes.clear();
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The time in which interim answers to a request may be sent.
#[derive(Debug)]
pub(crate) struct Turn {
    outbox: Arc<Outbox>,
    number: u64,
}

impl Turn {
    /// Takes the interim answers to this request.
    pub(crate) fn sender(&self) -> Interim {
        Interim { outbox: Arc::clone(&self.outbox), turn: self.number }
    }

    /// The answer, once all interim ones that came before it are written.
    pub(crate) async fn before<T>(self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        let mut answered = None;
        poll_fn(|cx| {
            if answered.is_none()
                && let Poll::Ready(answer) = answer.as_mut().poll(cx)
            {
                answered = Some(answer);
                self.outbox.state().is_open = false;
            }
            let mut state = self.outbox.state();
            if state.bytes.is_empty() {
                state.waker = answered.is_none().then(|| cx.waker().clone());
                return answered.take().map_or(Poll::Pending, Poll::Ready);
            }
            state.waker = Some(cx.waker().clone());
            if !state.is_stalled {
                // hyper flushes when its connection is polled.
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.outbox.state().is_open = false;
    }
}

/// Sends interim answers to a request's client, an extension of the request.
#[derive(Debug, Clone)]
pub(crate) struct Interim {
    outbox: Arc<Outbox>,
    turn: u64,
}

impl Interim {
    /// Sends an interim answer, without what is about the upstream's connection; drops it if it has no place any more.
    pub(crate) fn send(&self, status: StatusCode, version: Version, headers: &HeaderMap) {
        // The proxy asked for no leave to send a body, and no upgrade is an interim answer.
        if matches!(status, StatusCode::CONTINUE | StatusCode::SWITCHING_PROTOCOLS) || !status.is_informational() {
            return;
        }
        let head = written(status, version, headers);
        let mut state = self.outbox.state();
        if !state.is_open || state.turn != self.turn || state.given + head.len() > MOST_BYTES {
            return;
        }
        state.given += head.len();
        state.bytes.extend_from_slice(&head);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

/// The head of an interim answer as it is sent on.
fn written(status: StatusCode, version: Version, headers: &HeaderMap) -> Vec<u8> {
    let mut headers = headers.clone();
    let _ = remove_hop_by_hop(&mut headers, &[]);
    for name in [CONTENT_LENGTH, TRAILER, COALESCED] {
        headers.remove(name);
    }
    add_via(&mut headers, version);
    let mut head = format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or("")).into_bytes();
    for (name, value) in &headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(interim: &Interim) {
        interim.send(StatusCode::EARLY_HINTS, Version::HTTP_11, &HeaderMap::new());
    }

    fn flushed(outbox: &Outbox) -> String {
        let mut all = Vec::new();
        let polled = outbox.poll_write_to(Pin::new(&mut all), &mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Ok(()))));
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn only_the_request_whose_turn_it_is_gets_them() {
        let outbox = Arc::new(Outbox::default());
        let first = outbox.turn();
        let late = first.sender();
        hint(&late);
        assert_eq!(flushed(&outbox), "HTTP/1.1 103 Early Hints\r\nvia: 1.1 brunt\r\n\r\n");
        drop(first);
        hint(&late);
        let second = outbox.turn();
        hint(&late);
        assert_eq!(flushed(&outbox), "");
        hint(&second.sender());
        assert!(flushed(&outbox).starts_with("HTTP/1.1 103"));
    }

    #[test]
    fn their_bytes_are_bounded() {
        let outbox = Arc::new(Outbox::default());
        let turn = outbox.turn();
        let length = (0..10_000).map(|_| hint(&turn.sender())).map(|()| flushed(&outbox).len()).sum::<usize>();
        assert!(length > MOST_BYTES / 2 && length <= MOST_BYTES, "{length}");
    }

    #[test]
    fn what_is_no_interim_answer_is_not_sent() {
        let outbox = Arc::new(Outbox::default());
        let turn = outbox.turn();
        for status in [100, 101, 200, 404] {
            turn.sender().send(StatusCode::from_u16(status).unwrap(), Version::HTTP_11, &HeaderMap::new());
        }
        assert_eq!(flushed(&outbox), "");
    }
}
