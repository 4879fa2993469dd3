//! A target of our own that knows when it did what: the kernel's timestamps of each request and of its answer. It runs in
//! a process of its own (`benchmarks --as-target …`).
//!
//! The time that it took for a call, the **truth**, is from when the kernel had the request to when the kernel passed on
//! the answer. Both are the kernel's, so nothing that happens to this process between a system call and a look at the
//! clock is in it. On loopback the kernel delivers within `send`: a client's send is the target's receive timestamp, and
//! the target's send timestamp the client's receive timestamp, but for the few microseconds in which a segment goes
//! through the stack.

mod latency;
mod stamps;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use self::latency::Latencies;
pub use self::latency::Latency;
use self::stamps::Stamps;

/// The first word of a command line that makes this program the target.
pub const AS_TARGET: &str = "--as-target";
/// The answer to a call.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
/// The path that returns the calls since it was last requested.
pub const CALLS: &str = "/_/calls";
/// Where to ask for the number of requests so far.
pub const COUNT: &str = "/_/count";
/// The longest life of the target, in case its benchmark does not end it.
const LONGEST: Duration = Duration::from_secs(2 * 3600);
const LISTENER: u64 = u64::MAX;

/// A call that was answered. Nanoseconds of the real-time clock, by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// When the request was received.
    pub received: u64,
    /// When the kernel passed on the answer.
    pub taken: u64,
}

impl Answered {
    /// The target's time, in nanoseconds.
    pub fn took(self) -> u64 {
        self.taken.saturating_sub(self.received)
    }

    /// Parses the answer of [`CALLS`].
    pub fn all(text: &str) -> anyhow::Result<Vec<Self>> {
        let call = |line: &str| {
            let (received, taken) = line.split_once(' ')?;
            Some(Self { received: received.parse().ok()?, taken: taken.parse().ok()? })
        };
        text.lines().map(|line| call(line).with_context(|| format!("no call of our target: {line}"))).collect()
    }
}

/// Serves until this process ends.
pub fn serve(words: &[String]) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
    listener.set_nonblocking(true)?;
    stamps::ask_for(&listener).context("this kernel tells no times")?;
    let mut target = Target {
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        connections: BTreeMap::new(),
        accepted: 0,
        latencies: Latencies::new(Latency::read(words)?),
        waiting: BinaryHeap::new(),
        answered: Vec::new(),
        requests: 0,
        stamps: Stamps::default(),
    };
    epoll::add(&target.epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    println!("listening on http://{}/", listener.local_addr()?);
    let began = Instant::now();
    let mut events = Vec::with_capacity(256);
    while began.elapsed() < LONGEST {
        let timeout = target.until_next().map_or(LONGEST, |wait| wait.min(LONGEST));
        let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: i64::from(timeout.subsec_nanos()) };
        events.clear();
        match epoll::wait(&target.epoll, spare_capacity(&mut events), Some(&timeout)) {
            Err(error) if error != rustix::io::Errno::INTR => return Err(error.into()),
            _ => {}
        }
        for event in &events {
            match event.data.u64() {
                LISTENER => target.accept(&listener)?,
                number => target.turn(number),
            }
        }
        target.answer_due();
    }
    Ok(())
}

struct Connection {
    stream: TcpStream,
    /// The received part of a request.
    request: Vec<u8>,
    /// When the kernel received the request that is being answered.
    received: Option<u64>,
}

struct Target {
    epoll: std::os::fd::OwnedFd,
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    latencies: Latencies,
    /// Answers that are to go out later, and on which connections.
    waiting: BinaryHeap<Reverse<(Instant, u64)>>,
    answered: Vec<Answered>,
    requests: u64,
    stamps: Stamps,
}

impl Target {
    fn until_next(&self) -> Option<Duration> {
        self.waiting.peek().map(|Reverse((at, _))| at.saturating_duration_since(Instant::now()))
    }

    fn accept(&mut self, listener: &TcpListener) -> anyhow::Result<()> {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    stamps::ask_for(&stream)?;
                    let data = epoll::EventData::new_u64(self.accepted);
                    epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN)?;
                    let connection = Connection { stream, request: Vec::new(), received: None };
                    self.connections.insert(self.accepted, connection);
                    self.accepted += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("cannot accept a connection"),
            }
        }
    }

    /// Handles bytes on a connection. Closes it after an error.
    fn turn(&mut self, number: u64) {
        if !self.read(number).unwrap_or(false) {
            self.connections.remove(&number);
        }
    }

    /// Reads the available bytes, and begins the answer to a complete request. Returns whether the connection stays
    /// open.
    fn read(&mut self, number: u64) -> io::Result<bool> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(true) };
        let mut buffer = [0; 4096];
        let (read, stamp) = match self.stamps.receive(&connection.stream, &mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            other => other?,
        };
        connection.request.extend_from_slice(&buffer[..read]);
        if read == 0 {
            return Ok(false);
        }
        if !connection.request.ends_with(b"\r\n\r\n") {
            return Ok(true);
        }
        let request = std::mem::take(&mut connection.request);
        connection.received = stamp;
        let asks = |path: &str| request.starts_with(format!("GET {path} ").as_bytes());
        if asks(CALLS) || asks(COUNT) {
            return self.tell(number, asks(CALLS)).map(|()| false);
        }
        self.requests += 1;
        match self.latencies.next() {
            Some(latency) => self.waiting.push(Reverse((Instant::now() + latency, number))),
            None => self.answer(number)?,
        }
        Ok(true)
    }

    fn answer_due(&mut self) {
        while let Some(&Reverse((at, number))) = self.waiting.peek() {
            if at > Instant::now() {
                return;
            }
            self.waiting.pop();
            if self.answer(number).is_err() {
                self.connections.remove(&number);
            }
        }
    }

    fn answer(&mut self, number: u64) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        connection.stream.write_all(ANSWER)?;
        let taken = self.stamps.taken(&connection.stream)?;
        // A call without both timestamps is left out; whoever reads the calls notices that one is missing.
        if let (Some(received), Some(taken)) = (connection.received.take(), taken) {
            self.answered.push(Answered { received, taken });
        }
        Ok(())
    }

    /// Sends the calls or the number of requests on a connection, and closes it.
    fn tell(&mut self, number: u64, calls: bool) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        let mut body = String::new();
        if calls {
            for Answered { received, taken } in self.answered.drain(..) {
                let _ = writeln!(body, "{received} {taken}");
            }
        } else {
            let _ = write!(body, "{}", self.requests);
        }
        self.requests += 1;
        connection.stream.set_nonblocking(false)?;
        write!(connection.stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
        connection.stream.shutdown(std::net::Shutdown::Write)?;
        // No timestamps are needed for these bytes.
        connection.stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let _ = connection.stream.read(&mut [0; 16]);
        Ok(())
    }
}

/// The first word of a command line that makes this program a busy loop.
pub const AS_BUSY_LOOP: &str = "--as-busy-loop";

/// Uses a CPU until this process ends.
pub fn busy_loop() {
    let began = Instant::now();
    while began.elapsed() < LONGEST {
        for _ in 0..100_000 {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_back() {
        let calls = Answered::all("5 7\n10 30\n").unwrap();
        assert_eq!(calls.iter().map(|call| call.took()).collect::<Vec<_>>(), [2, 20]);
        assert!(Answered::all("5\n").is_err());
    }
}
