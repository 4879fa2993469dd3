//! Faults by a timetable: a TCP proxy before a server, which takes no connections, stands still, slows down or cuts off at times that
//! were written down before.
//!
//! It has two threads for each connection: made to see what a client makes of an outage or a freeze, not to measure how fast a
//! server is.
//!
//! ```
//! use std::time::Duration;
//! use brunt_testbed::timetable::{Entry, FaultProxy, TimedFault};
//!
//! let server = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let outage = Entry { fault: TimedFault::Refuse, from: Duration::from_secs(5), to: Duration::from_secs(10) };
//! let proxy = FaultProxy::start("127.0.0.1:0".parse().unwrap(), server.local_addr()?, vec![outage])?;
//! println!("aim at {}", proxy.address());
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

/// How often the proxy looks for new connections, and at its timetable.
const TICK: Duration = Duration::from_millis(1);
/// Connections that may wait to be taken: a client opens many at once where a server stands still.
const BACKLOG: i32 = 4096;
/// The most bytes that are passed on at once.
const PIECE: usize = 64 * 1024;

/// What goes wrong for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedFault {
    /// Nothing listens, and connections that were open are closed: the server is down.
    Refuse,
    /// Connections are taken, and no byte goes either way: the server stands still.
    Freeze,
    /// Each piece of an answer comes so much later.
    Delay(Duration),
    /// Connections are closed when it begins; new ones are taken at once.
    Cut,
}

/// When something goes wrong, counted from the proxy's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What goes wrong.
    pub fault: TimedFault,
    /// From when on.
    pub from: Duration,
    /// Until when; not looked at for [`TimedFault::Cut`].
    pub to: Duration,
}

impl Entry {
    fn is_on(&self, now: Duration) -> bool {
        (self.from..self.to).contains(&now)
    }
}

/// What all threads of a proxy share.
#[derive(Debug)]
struct Shared {
    entries: Vec<Entry>,
    started: Instant,
    ended: AtomicBool,
    /// Both ends of each connection.
    open: Mutex<Vec<(TcpStream, TcpStream)>>,
}

impl Shared {
    fn on(&self, now: Duration) -> impl Iterator<Item = TimedFault> + '_ {
        self.entries.iter().filter(move |entry| entry.is_on(now)).map(|entry| entry.fault)
    }

    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Closes every connection.
    fn cut(&self) {
        for (client, server) in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Best effort: the peer may have closed it.
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    /// Waits as long as the server stands still.
    fn sit_out_freeze(&self) {
        while !self.is_ended() && self.on(self.started.elapsed()).any(|fault| fault == TimedFault::Freeze) {
            thread::sleep(TICK);
        }
    }

    fn delay(&self) -> Duration {
        let delay = |fault| if let TimedFault::Delay(delay) = fault { delay } else { Duration::ZERO };
        self.on(self.started.elapsed()).map(delay).sum()
    }
}

/// A proxy that keeps to a timetable.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts one on `address`, before `server`; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start(address: SocketAddr, server: SocketAddr, entries: Vec<Entry>) -> io::Result<Self> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        let (ended, open) = (AtomicBool::new(false), Mutex::default());
        let shared = Arc::new(Shared { entries, started: Instant::now(), ended, open });
        let carried = Arc::clone(&shared);
        let thread = thread::spawn(move || carry_out(listener, address, server, &carried));
        Ok(Self { address, shared, thread })
    }

    /// Where clients find it.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it, and closes its connections.
    pub fn stop(self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // A panic there has been printed.
        let _ = self.thread.join();
        self.shared.cut();
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Takes connections, and carries out what concerns all of them.
fn carry_out(listener: TcpListener, address: SocketAddr, server: SocketAddr, shared: &Arc<Shared>) {
    let mut listener = Some(listener);
    let mut before = Duration::ZERO;
    while !shared.is_ended() {
        let now = shared.started.elapsed();
        let is_down = shared.on(now).any(|fault| fault == TimedFault::Refuse);
        let is_cut = |entry: &Entry| entry.fault == TimedFault::Cut && entry.from > before && entry.from <= now;
        if shared.entries.iter().any(is_cut) || is_down && listener.is_some() {
            shared.cut();
        }
        before = now;
        if is_down {
            listener = None;
        } else if listener.is_none() {
            // Somebody else may have the port for a moment: it is tried again.
            listener = listen(address).ok();
        }
        match listener.as_ref().map(TcpListener::accept) {
            Some(Ok((client, _))) => pass_on(&client, server, shared),
            Some(Err(error)) if error.kind() != ErrorKind::WouldBlock => thread::sleep(TICK),
            _ => thread::sleep(TICK),
        }
    }
}

/// Begins to pass on what comes on a connection; one that the server does not take is closed.
fn pass_on(client: &TcpStream, server: SocketAddr, shared: &Arc<Shared>) {
    let begin = || -> io::Result<()> {
        client.set_nonblocking(false)?;
        let server = TcpStream::connect(server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (to_server, to_client) =
            ((client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?));
        for ((from, to), is_answer) in [(to_server, false), (to_client, true)] {
            let shared = Arc::clone(shared);
            thread::Builder::new().stack_size(128 * 1024).spawn(move || copy(from, to, is_answer, &shared))?;
        }
        let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(client, _)| client.peer_addr().is_ok());
        open.push((client.try_clone()?, server));
        Ok(())
    };
    if begin().is_err() {
        // Best effort: the client may be gone.
        let _ = client.shutdown(Shutdown::Both);
    }
}

/// Copies until one side ends.
fn copy(mut from: TcpStream, mut to: TcpStream, is_answer: bool, shared: &Shared) {
    let mut piece = vec![0; PIECE];
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        shared.sit_out_freeze();
        if is_answer {
            thread::sleep(shared.delay());
        }
        if piece.get(..read).is_none_or(|bytes| to.write_all(bytes).is_err()) {
            break;
        }
    }
    // Best effort: what ended may be both directions.
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn shared(entries: Vec<Entry>) -> Shared {
        Shared { entries, started: Instant::now(), ended: AtomicBool::new(false), open: Mutex::default() }
    }

    #[test]
    fn faults_are_on_from_their_beginning_to_their_end() {
        let entry = |fault, from, to| Entry { fault, from: MS(from), to: MS(to) };
        let shared = shared(vec![entry(TimedFault::Refuse, 10, 20), entry(TimedFault::Delay(MS(5)), 15, 30)]);
        let on = |at| shared.on(MS(at)).collect::<Vec<_>>();
        assert_eq!(on(9), []);
        assert_eq!(on(10), [TimedFault::Refuse]);
        assert_eq!(on(15), [TimedFault::Refuse, TimedFault::Delay(MS(5))]);
        assert_eq!(on(20), [TimedFault::Delay(MS(5))]);
        assert_eq!(on(30), []);
    }

    #[test]
    fn bytes_go_both_ways_and_a_stop_closes_connections() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy =
            FaultProxy::start("127.0.0.1:0".parse().unwrap(), server.local_addr().unwrap(), Vec::new()).unwrap();
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        client.write_all(b"ping").unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut bytes = [0; 4];
        served.read_exact(&mut bytes).unwrap();
        served.write_all(b"pong").unwrap();
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"pong");
        proxy.stop();
        assert_eq!(client.read(&mut bytes).unwrap_or(0), 0);
    }

    #[test]
    fn nothing_listens_while_it_is_down() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let outage = Entry { fault: TimedFault::Refuse, from: Duration::ZERO, to: Duration::from_secs(3600) };
        let proxy =
            FaultProxy::start("127.0.0.1:0".parse().unwrap(), server.local_addr().unwrap(), vec![outage]).unwrap();
        // Its listener may take a moment to go.
        let refused = (0..10_000).any(|_| TcpStream::connect(proxy.address()).is_err());
        assert!(refused);
        proxy.stop();
    }
}
