//! A tunnel through an HTTP proxy (`CONNECT`, RFC 9110 §9.3.6), until the proxy has answered.

use std::io;
use std::sync::Arc;

use crate::channel::Socket;
use crate::transport::Driver;

/// The longest head of a proxy's answer, in bytes.
const MOST_HEAD_BYTES: usize = 64 << 10;
/// The longest part of a proxy's status line that is shown, in bytes.
const SHOWN_BYTES: usize = 80;

/// A request for a tunnel, and its answer as far as it has come.
#[derive(Debug)]
pub(crate) struct Tunnel {
    request: Arc<[u8]>,
    /// How much of the request the socket has taken.
    sent: usize,
    head: Vec<u8>,
    /// Whether the proxy has opened it.
    stands: bool,
}

impl Tunnel {
    pub(super) fn new(request: &Arc<[u8]>) -> Self {
        Self { request: Arc::clone(request), sent: 0, head: Vec::new(), stands: false }
    }

    /// Whether the proxy has opened it: all further bytes are the target's.
    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.request.len()
    }

    /// Sends the request, as far as the socket takes it. Adds the number of bytes taken to `written`.
    pub(super) fn flush<D: Driver>(&mut self, socket: &mut Socket<'_, D>, written: &mut usize) -> io::Result<()> {
        let mut taken = 0;
        let rest = self.request.get(self.sent..).unwrap_or_default();
        let outcome = socket.write_available(rest, &mut taken);
        self.sent += taken;
        *written += taken;
        outcome
    }

    /// Takes the proxy's answer off the front of `wire`, and nothing behind it.
    pub(super) fn feed(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        while !self.stands
            && let Some((byte, rest)) = wire.split_first()
        {
            self.head.push(*byte);
            *wire = rest;
            if self.head.len() > MOST_HEAD_BYTES {
                return Err("the head of the proxy's answer to CONNECT is longer than 64 KiB".to_owned());
            }
            if self.head.ends_with(b"\n\r\n") || self.head.ends_with(b"\n\n") {
                self.stands = opens(&self.head)?;
                self.head.clear();
            }
        }
        Ok(())
    }
}

/// Whether a head opens the tunnel, or comes before the answer (1xx).
///
/// # Errors
/// When it refuses, or is no head of HTTP, in the words of its first line.
fn opens(head: &[u8]) -> Result<bool, String> {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let shown = String::from_utf8_lossy(line.get(..SHOWN_BYTES).unwrap_or(line));
    let status =
        shown.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|code| code.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(true),
        Some(100..=199) => Ok(false),
        Some(407) => {
            Err(format!("the proxy wants credentials (--proxy http://USER:PASSWORD@HOST:PORT): it answered {shown}"))
        }
        Some(_) => Err(format!("the proxy opened no tunnel: it answered {shown}")),
        None => Err(format!("the proxy's answer to CONNECT is not HTTP: {shown}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(sent: &[u8], size: usize) -> (Result<bool, String>, Vec<u8>) {
        let mut tunnel = Tunnel::new(&Arc::from(b"CONNECT a:80 HTTP/1.1\r\n\r\n".as_slice()));
        let mut behind = Vec::new();
        for mut piece in sent.chunks(size) {
            if let Err(reason) = tunnel.feed(&mut piece) {
                return (Err(reason), behind);
            }
            behind.extend_from_slice(piece);
        }
        (Ok(tunnel.stands()), behind)
    }

    #[test]
    fn what_comes_behind_the_proxys_answer_is_the_targets() {
        for size in 1..60 {
            let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 Connection established\r\nVia: p\r\n\r\n* OK\r\n";
            assert_eq!(fed(interim, size), (Ok(true), b"* OK\r\n".to_vec()), "{size}");
            assert_eq!(fed(b"HTTP/1.1 204 \n\n", size), (Ok(true), Vec::new()), "{size}");
            assert_eq!(fed(b"HTTP/1.1 200 OK\r\n", size), (Ok(false), Vec::new()), "{size}");
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_proxys_words() {
        for (answer, words) in [
            (
                "HTTP/1.1 403 Forbidden by rules\r\n\r\n",
                "opened no tunnel: it answered HTTP/1.1 403 Forbidden by rules",
            ),
            ("HTTP/1.1 407 Proxy Authentication Required\r\nA: b\r\n\r\n", "wants credentials"),
            ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "is not HTTP: SSH-2.0"),
            ("HTTP/1.1 2\u{e9}\r\n\r\n", "is not HTTP"),
        ] {
            let refused = fed(answer.as_bytes(), 7).0.unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
        assert!(fed(&vec![b'a'; 70_000], 1000).0.unwrap_err().contains("64 KiB"));
    }
}
