//! A plain HTTP client over any stream, which reads answers one by one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use brunt_testbed::server::Server;

/// An answer as it came.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The header lines, without the status line.
    pub head: String,
    /// The body as sent: with its chunk framing, if any.
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub struct Client<S> {
    pub stream: S,
    buffer: Vec<u8>,
}

/// A connection to the server, on which no read waits for ever.
pub fn connect(server: &Server) -> Client<TcpStream> {
    let stream = TcpStream::connect(server.socket_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Client::new(stream)
}

impl<S: Read + Write> Client<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// The answer to a GET of this target.
    pub fn get(&mut self, target: &str) -> Answer {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        self.answer()
    }

    /// The next answer to anything but HEAD.
    pub fn answer(&mut self) -> Answer {
        let (status, head) = self.head();
        let mut answer = Answer { status, head, body: Vec::new() };
        answer.body = match (answer.header("Content-Length"), answer.header("Transfer-Encoding")) {
            (Some(length), None) => self.take(length.parse().unwrap()),
            (None, Some("chunked")) => self.chunked(),
            (None, None) if matches!(status, 204 | 304 | 100..=199) => Vec::new(),
            (None, None) => self.rest(),
            other => panic!("{other:?}"),
        };
        answer
    }

    /// The next status and header lines, with no look at the body.
    pub fn head(&mut self) -> (u16, String) {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            assert!(self.fill() > 0, "ended before an answer's head did: {:?}", self.buffer.escape_ascii().to_string());
        };
        let text = String::from_utf8(self.take(end + 4)).unwrap();
        let (line, head) = text.split_once("\r\n").unwrap();
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|line| line.get(..3)).unwrap();
        (status.parse().unwrap(), head.to_owned())
    }

    /// Up to and with the trailers' end, which is taken to be the first empty line after "0".
    fn chunked(&mut self) -> Vec<u8> {
        loop {
            if let Some(last) = find(&self.buffer, b"\r\n0;")
                && let Some(end) = find(&self.buffer[last..], b"\r\n\r\n")
            {
                return self.take(last + end + 4);
            }
            assert!(self.fill() > 0, "ended in a chunked body");
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            assert!(self.fill() > 0, "ended {} bytes early", length - self.buffer.len());
        }
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Everything up to the end of the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.fill() > 0 {}
        std::mem::take(&mut self.buffer)
    }

    fn fill(&mut self) -> usize {
        let mut chunk = vec![0; 64 * 1024];
        let length = self.stream.read(&mut chunk).unwrap();
        self.buffer.extend_from_slice(&chunk[..length]);
        length
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, part)
}
