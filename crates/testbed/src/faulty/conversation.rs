//! One connection of a misbehaving server: reads requests, and answers them as the fault says.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::SockRef;

use super::{ConnectionFate, Fault, Shared};

/// The good answer; most faults vary it.
pub(super) const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// The longest request head waited for, in bytes; a longer one ends the connection.
const MAX_HEAD: usize = 1024 * 1024;

pub(super) struct Conversation {
    pub(super) stream: Arc<TcpStream>,
    /// Read, and not yet taken.
    pub(super) buffer: Vec<u8>,
    pub(super) shared: Arc<Shared>,
}

impl Conversation {
    pub(super) fn run(mut self, fault: &Fault) -> io::Result<()> {
        if *fault == Fault::CloseAfterAccept {
            return Ok(());
        }
        while let Some(body) = self.read_head()? {
            self.shared.requests.fetch_add(1, Ordering::Relaxed);
            if *fault == Fault::AnswerEarly {
                self.send(GOOD)?;
            }
            self.skip_body(body)?;
            match self.answer(fault)? {
                ConnectionFate::KeepOpen => {}
                ConnectionFate::Close => break,
                ConnectionFate::Reset => {
                    // Closing a socket with a linger time of zero resets it.
                    return SockRef::from(&*self.stream).set_linger(Some(Duration::ZERO));
                }
            }
        }
        self.end()
    }

    /// Misbehaves once.
    fn answer(&mut self, fault: &Fault) -> io::Result<ConnectionFate> {
        match fault {
            Fault::NeverAccept | Fault::CloseAfterAccept | Fault::NeverAnswer | Fault::AnswerEarly => {}
            Fault::ResetMidAnswer => {
                self.send(&half_answer())?;
                return Ok(ConnectionFate::Reset);
            }
            Fault::Drip { interval } => {
                for byte in GOOD {
                    self.send(&[*byte])?;
                    if !self.shared.pause(*interval) {
                        return Ok(ConnectionFate::Close);
                    }
                }
            }
            Fault::EndlessHead => {
                self.send(b"HTTP/1.1 200 OK\r\n")?;
                let lines = b"X-More: and more and more and more and more and more and more\r\n".repeat(1024);
                for _ in 0..(1 << 30) / lines.len() {
                    self.send(&lines)?;
                }
                return Ok(ConnectionFate::Close);
            }
            Fault::Raw { answer, after } => {
                self.send(answer)?;
                return Ok(*after);
            }
            _ => {
                let (bytes, after) = rendered(fault);
                self.send(&bytes)?;
                return Ok(after);
            }
        }
        Ok(ConnectionFate::KeepOpen)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&*self.stream).write_all(bytes)
    }

    /// Ends this side first and reads what the client still sends, so that the close is no reset.
    fn end(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        self.buffer.clear();
        while self.fill()? > 0 {
            self.buffer.clear();
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 16 * 1024];
        let length = (&*self.stream).read(&mut chunk)?;
        self.buffer.extend_from_slice(chunk.get(..length).unwrap_or_default());
        Ok(length)
    }

    /// The body framing of the next request; `None` when the client has ended.
    fn read_head(&mut self) -> io::Result<Option<RequestBody>> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                let rest = self.buffer.split_off(end + 4);
                let head = std::mem::replace(&mut self.buffer, rest);
                return Ok(Some(RequestBody::from_head(&head)));
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(ErrorKind::InvalidData.into());
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    fn skip_body(&mut self, body: RequestBody) -> io::Result<()> {
        match body {
            RequestBody::Length(length) => self.skip(length),
            RequestBody::Chunked => loop {
                let line = self.line()?;
                let size = line.split(|&byte| byte == b';').next().unwrap_or_default();
                let size = std::str::from_utf8(size).ok().and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
                match size {
                    None => return Err(ErrorKind::InvalidData.into()),
                    Some(0) => {
                        while !self.line()?.is_empty() {}
                        return Ok(());
                    }
                    Some(size) => self.skip(size.saturating_add(2))?,
                }
            },
        }
    }

    fn skip(&mut self, mut left: u64) -> io::Result<()> {
        loop {
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
            self.buffer.drain(..now);
            left -= now as u64;
            if left == 0 {
                return Ok(());
            }
            if self.fill()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next line, without its CR LF.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n") {
                let rest = self.buffer.split_off(end + 2);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.truncate(end);
                return Ok(line);
            }
            if self.buffer.len() > MAX_HEAD || self.fill()? == 0 {
                return Err(ErrorKind::InvalidData.into());
            }
        }
    }
}

/// How much of a request follows its head.
#[derive(Clone, Copy)]
enum RequestBody {
    Length(u64),
    Chunked,
}

impl RequestBody {
    fn from_head(head: &[u8]) -> Self {
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        let value = |name| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if value("transfer-encoding:") == Some("chunked") {
            return Self::Chunked;
        }
        Self::Length(value("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0))
    }
}

pub(super) fn half_answer() -> Vec<u8> {
    let mut half = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec();
    half.resize(half.len() + 500, b'x');
    half
}

/// The faults that only send wrong bytes.
pub(super) fn rendered(fault: &Fault) -> (Vec<u8>, ConnectionFate) {
    let answer = |bytes: &[u8], after| (bytes.to_vec(), after);
    match fault {
        Fault::CloseMidBody => (half_answer(), ConnectionFate::Close),
        Fault::CloseMidHead => answer(b"HTTP/1.1 200 OK\r\nContent-Le", ConnectionFate::Close),
        Fault::Garbage => {
            (b"\x00\xff\x16\x03garbage no HTTP".iter().copied().cycle().take(64).collect(), ConnectionFate::KeepOpen)
        }
        Fault::OversizeHead { bytes } => {
            let value = "x".repeat(*bytes);
            let text = format!("HTTP/1.1 200 OK\r\nX-Long: {value}\r\nContent-Length: 5\r\n\r\nhello");
            (text.into_bytes(), ConnectionFate::KeepOpen)
        }
        Fault::CloseIdle => answer(GOOD, ConnectionFate::Close),
        Fault::ConflictingLength => {
            answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", ConnectionFate::KeepOpen)
        }
        Fault::BadLength => answer(b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", ConnectionFate::KeepOpen),
        Fault::BadChunkSize => answer(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\nworld\r\n0\r\n\r\n",
            ConnectionFate::KeepOpen,
        ),
        Fault::HugeChunk => answer(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            ConnectionFate::KeepOpen,
        ),
        Fault::Interim => answer(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            ConnectionFate::KeepOpen,
        ),
        Fault::UntilClose => answer(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello", ConnectionFate::Close),
        _ => answer(GOOD, ConnectionFate::KeepOpen),
    }
}
