//! Sockets by readiness, edge-triggered: a socket is registered once, so that a call costs one write and one read.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brunt_plan::plan::{ArrivalTimes, Plan};
use brunt_record::time::Tick;
use mio::net::{TcpStream, UdpSocket, UnixStream};
use mio::{Events, Interest, Poll, Token};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::time::{ClockId, Timespec, clock_gettime};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

use super::acknowledging::{Reader, TAKEN_AT_ONCE};
use super::datagrams;
use super::shared::{self, SharedSockets};
use super::timer::{TIMER, Timer};
#[cfg(target_os = "linux")]
use super::timestamps::{self, Control};
use super::waking::{Wait, Waking};
use super::{Address, Clock, ConnectionId, Driver, MOST_EVENTS, Machine, Ready, Resolve};

enum Socket {
    Tcp(Reader),
    Udp(UdpSocket),
    /// One that other connections have as well.
    Shared(Arc<UdpSocket>),
    Unix(UnixStream),
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(reader) => reader.stream.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
            Self::Shared(socket) => socket.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

/// The driver for real sockets.
pub(crate) struct Epoll {
    /// The system's monotonic clock when the run's time began, in nanoseconds.
    epoch_ns: u64,
    poll: Poll,
    events: Events,
    timer: Timer,
    sockets: Vec<Option<Socket>>,
    /// The sockets that connections over UDP share, if they do.
    shared: Option<Box<SharedSockets>>,
    /// Sockets that may still hold bytes which were read already.
    untaken: Vec<ConnectionId>,
    /// Room for bytes that are taken out of a socket after they were read.
    scratch: Vec<u8>,
    arrival_times: ArrivalTimes,
    waking: Waking,
    /// What was last waited for asleep, and the time that the timer was set for; never once it has fired.
    set_for: (Tick, Tick),
    /// Whether the thread asked for exact wake-ups.
    #[cfg(target_os = "linux")]
    sleeps_exactly: bool,
    /// Room for the kernel's control messages.
    #[cfg(target_os = "linux")]
    control: Control,
}

/// Makes [`Epoll`]s whose time counts from when this was made.
pub(crate) struct Epolls {
    epoch: Instant,
    arrival_times: ArrivalTimes,
    spins: bool,
    udp_sockets: u32,
}

impl Epolls {
    /// For `plan`, whose time begins now; its workers sleep until something is to be done, or `spins`.
    pub(crate) fn new(plan: &Plan, spins: bool) -> Self {
        let udp_sockets = plan.transport.udp_sockets;
        Self { epoch: Instant::now(), arrival_times: plan.transport.arrival_times, spins, udp_sockets }
    }
}

impl Machine for Epolls {
    type Driver = Epoll;

    fn driver(&self, connections: usize) -> io::Result<Epoll> {
        let mut driver = Epoll::new(self.epoch, connections, self.arrival_times, self.spins)?;
        driver.shared = (self.udp_sockets > 0).then(|| Box::new(SharedSockets::new(self.udp_sockets as usize)));
        Ok(driver)
    }

    fn clock(&self) -> Clock {
        let epoch = self.epoch;
        Arc::new(move || Tick::from_ns(epoch.elapsed().as_nanos() as u64))
    }

    fn resolve(&self) -> Resolve {
        Arc::new(|host, port| Ok((host, port).to_socket_addrs()?.collect()))
    }
}

impl Epoll {
    /// A driver for `connections` connections, whose time counts from `epoch`.
    pub(crate) fn new(
        epoch: Instant,
        connections: usize,
        arrival_times: ArrivalTimes,
        spins: bool,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry())?;
        let mut sockets = Vec::new();
        sockets.resize_with(connections, || None);
        let epoch_ns = monotonic_ns().saturating_sub(epoch.elapsed().as_nanos() as u64);
        Ok(Self {
            epoch_ns,
            poll,
            events: Events::with_capacity(MOST_EVENTS),
            timer,
            sockets,
            shared: None,
            untaken: Vec::new(),
            scratch: vec![0; TAKEN_AT_ONCE],
            arrival_times,
            waking: Waking::new(spins),
            set_for: (Tick::NEVER, Tick::NEVER),
            #[cfg(target_os = "linux")]
            sleeps_exactly: false,
            #[cfg(target_os = "linux")]
            control: Control::default(),
        })
    }

    /// Polls once; a signal ends it without events.
    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// Waits for events, and never sleeps: what comes first of them and `until` is seen within the time of a system call.
    fn poll_awake(&mut self, until: Tick, since: Tick) -> io::Result<()> {
        let mut last = since;
        loop {
            self.poll(Some(Duration::ZERO))?;
            let now = self.now();
            if !self.events.is_empty() || now >= until {
                break;
            }
            last = now;
        }
        // The last round found something, which is work and no wait.
        self.waking.spun(last.since(since));
        Ok(())
    }

    /// Adds what came to `ready`. Returns whether the timer has fired.
    fn take_events(&mut self, ready: &mut Vec<Ready>) -> bool {
        let mut has_fired = false;
        for event in &self.events {
            if event.token().0 >= shared::FIRST {
                if event.token() == TIMER {
                    has_fired = true;
                    self.set_for = (Tick::NEVER, Tick::NEVER);
                } else if let Some(shared) = &mut self.shared {
                    shared.event(event, ready);
                }
                continue;
            }
            ready.push(Ready {
                token: ConnectionId::at(event.token().0),
                readable: event.is_readable() || event.is_read_closed() || event.is_error(),
                writable: event.is_writable() || event.is_write_closed() || event.is_error(),
                ended: event.is_read_closed() || event.is_error(),
            });
        }
        if let Some(shared) = &mut self.shared {
            shared.news(ready);
        }
        has_fired
    }

    /// A socket did not take what was written.
    #[cold]
    fn not_written(&mut self, token: ConnectionId, error: io::Error) -> io::Error {
        if let Some(shared) = &mut self.shared {
            shared.blocks(token);
        }
        error
    }

    /// Takes bytes that were read out of their sockets.
    fn take_all(&mut self) {
        for token in self.untaken.drain(..) {
            if let Ok(Socket::Tcp(reader)) = place(&mut self.sockets, token) {
                let _ = reader.take(&mut self.scratch);
            }
        }
    }
}

#[inline]
fn place(sockets: &mut [Option<Socket>], token: ConnectionId) -> io::Result<&mut Socket> {
    sockets.get_mut(token.place()).and_then(Option::as_mut).ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// The system's monotonic clock, which is the one behind [`Instant`]. A call reads it twice, so what `Instant` adds shows.
#[inline]
fn monotonic_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

fn connect_tcp(address: SocketAddr, source: Option<IpAddr>, arrival_times: ArrivalTimes) -> io::Result<TcpStream> {
    let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // A request is one write, and must not wait for more to fill a segment.
    socket.set_tcp_nodelay(true)?;
    if address.ip().is_loopback() {
        // Nothing is congested there, and a pacing algorithm (BBR, where it is the default) could hold a request back,
        // unseen. If the kernel allows no other, its own will do.
        let _ = socket.set_tcp_congestion(b"reno");
    }
    // Best effort: without it answers count as arrived when they are read, and their intervals state that.
    #[cfg(target_os = "linux")]
    if arrival_times == ArrivalTimes::Kernel {
        timestamps::ask_for(&socket);
    }
    if let Some(source) = source {
        // Lets the kernel give one local port to connections that differ otherwise.
        socket.set_reuse_address(true)?;
        #[cfg(target_os = "linux")]
        choose_port_on_connecting(&socket);
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => return Err(error),
    }
    Ok(TcpStream::from_std(socket.into()))
}

/// Lets the kernel choose the local port when it knows the other end. As it binds, it would look for one that nobody has, and go through
/// thousands of taken ports for it. Best effort.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library that is used here sets this option")]
fn choose_port_on_connecting(socket: &RawSocket) {
    use std::os::fd::AsRawFd as _;

    let yes: libc::c_int = 1;
    // SAFETY: the kernel reads as many bytes of `yes` as it has. The descriptor is open as long as `socket` is borrowed.
    let _ = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const yes).cast(),
            size_of_val(&yes) as libc::socklen_t,
        )
    };
}

impl Driver for Epoll {
    #[inline]
    fn now(&mut self) -> Tick {
        Tick::from_ns(monotonic_ns().saturating_sub(self.epoch_ns))
    }

    fn connect(&mut self, token: ConnectionId, address: &Address, source: Option<IpAddr>) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        let socket = match address {
            Address::Tcp(address) => {
                let mut stream = connect_tcp(*address, source, self.arrival_times)?;
                self.poll.registry().register(&mut stream, Token(token.place()), both)?;
                Socket::Tcp(Reader::new(stream))
            }
            Address::Udp(address) => {
                if let Some(shared) = &mut self.shared {
                    Socket::Shared(shared.connect(self.poll.registry(), token, *address, source)?)
                } else {
                    let mut socket = UdpSocket::from_std(datagrams::connect(*address, source)?.into());
                    self.poll.registry().register(&mut socket, Token(token.place()), both)?;
                    Socket::Udp(socket)
                }
            }
            Address::Unix(path) => {
                let mut stream = UnixStream::connect(path)?;
                self.poll.registry().register(&mut stream, Token(token.place()), both)?;
                Socket::Unix(stream)
            }
        };
        if token.place() >= self.sockets.len() {
            self.sockets.resize_with(token.place() + 1, || None);
        }
        if let Some(place) = self.sockets.get_mut(token.place()) {
            *place = Some(socket);
        }
        Ok(())
    }

    fn connected(&mut self, token: ConnectionId) -> io::Result<bool> {
        let (error, peer) = match place(&mut self.sockets, token)? {
            Socket::Tcp(Reader { stream, .. }) => (stream.take_error()?, stream.peer_addr().map(drop)),
            Socket::Udp(socket) => (socket.take_error()?, socket.peer_addr().map(drop)),
            Socket::Shared(socket) => (None, socket.peer_addr().map(drop)),
            Socket::Unix(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
        };
        if let Some(error) = error {
            return Err(error);
        }
        match peer {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    // These two are half the cost of a call, so they call the kernel directly: the C library's versions are
    // cancellation points.
    #[inline]
    fn read(&mut self, token: ConnectionId, buffer: &mut [u8]) -> io::Result<usize> {
        match place(&mut self.sockets, token)? {
            Socket::Tcp(reader) => {
                let read = |stream: &TcpStream, flags| Ok((recv(stream, buffer, flags)?.1, ()));
                let (taken, ()) = reader.read(&mut self.scratch, read)?;
                if reader.has_untaken() {
                    self.untaken.push(token);
                }
                Ok(taken)
            }
            Socket::Udp(socket) => Ok(recv(&socket, buffer, RecvFlags::empty())?.1),
            // Its datagrams are read by `read_datagrams`.
            Socket::Shared(_) => Err(io::ErrorKind::WouldBlock.into()),
            Socket::Unix(stream) => Ok(recv(&stream, buffer, RecvFlags::empty())?.1),
        }
    }

    fn read_datagrams(&mut self, token: ConnectionId, buffer: &mut [u8], sizes: &mut Vec<usize>) -> io::Result<bool> {
        match (place(&mut self.sockets, token)?, &mut self.shared) {
            (Socket::Shared(_), Some(shared)) => shared.receive(token, buffer, sizes),
            (socket, _) => datagrams::receive(socket.as_fd(), buffer, sizes),
        }
    }

    #[cfg(target_os = "linux")]
    #[inline]
    fn read_timed(&mut self, token: ConnectionId, buffer: &mut [u8]) -> io::Result<(usize, Option<Tick>)> {
        let Socket::Tcp(reader) = place(&mut self.sockets, token)? else {
            return Ok((self.read(token, buffer)?, None));
        };
        let read = |stream: &TcpStream, flags| timestamps::read(stream, buffer, &mut self.control, flags);
        let (taken, delay) = reader.read(&mut self.scratch, read)?;
        if reader.has_untaken() {
            self.untaken.push(token);
        }
        Ok((taken, delay.map(|delay| self.now().before(delay))))
    }

    #[inline]
    fn write(&mut self, token: ConnectionId, bytes: &[u8]) -> io::Result<usize> {
        let socket = place(&mut self.sockets, token)?;
        let sent = match send(socket.as_fd(), bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(error) => return Err(self.not_written(token, error.into())),
        };
        if let Socket::Tcp(reader) = socket {
            // The next read reports an error of the socket.
            let _ = reader.take(&mut self.scratch);
        }
        Ok(sent)
    }

    #[cfg(target_os = "linux")]
    fn acknowledge(&mut self, token: ConnectionId) {
        if let Ok(Socket::Tcp(reader)) = place(&mut self.sockets, token) {
            // Best effort: the peer waits a little longer without it.
            let _ = rustix::net::sockopt::set_tcp_quickack(&reader.stream, true);
        }
    }

    fn finish(&mut self, token: ConnectionId) {
        if let Ok(socket) = place(&mut self.sockets, token)
            && !matches!(socket, Socket::Shared(_))
        {
            // Best effort: the next read reports an error of the socket.
            let _ = shutdown(socket.as_fd(), Shutdown::Write);
        }
    }

    fn dropped(&mut self, token: ConnectionId) -> u64 {
        match place(&mut self.sockets, token) {
            Ok(Socket::Udp(socket)) => datagrams::dropped(socket.as_fd()),
            Ok(Socket::Shared(_)) => self.shared.as_mut().map_or(0, |shared| shared.dropped(token)),
            _ => 0,
        }
    }

    #[cfg(target_os = "linux")]
    fn write_datagrams(&mut self, token: ConnectionId, bytes: &[u8], each: usize) -> io::Result<usize> {
        match place(&mut self.sockets, token)? {
            socket @ (Socket::Udp(_) | Socket::Shared(_)) if bytes.len() > each => {
                datagrams::send(socket.as_fd(), bytes, each).map_err(|error| self.not_written(token, error))
            }
            _ => self.write(token, bytes),
        }
    }

    fn receive_buffer_missing(&mut self, token: ConnectionId) -> u64 {
        match place(&mut self.sockets, token) {
            Ok(socket @ (Socket::Udp(_) | Socket::Shared(_))) => datagrams::receive_buffer_missing(socket.as_fd()),
            _ => 0,
        }
    }

    fn close(&mut self, token: ConnectionId) {
        // Dropping closes the descriptor, and the kernel forgets its registration with it.
        if let Some(place) = self.sockets.get_mut(token.place()) {
            *place = None;
        }
        if let Some(shared) = &mut self.shared {
            shared.leave(token);
        }
    }

    fn spun_ns(&self) -> u64 {
        self.waking.spun_ns()
    }

    fn pause(&mut self, ns: u64) {
        #[cfg(target_os = "linux")]
        if !self.sleeps_exactly {
            self.sleeps_exactly = true;
            // Best effort: sleeps may be 50 µs longer without it (prctl(2), PR_SET_TIMERSLACK).
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        }
        if !self.untaken.is_empty() {
            self.take_all();
        }
        std::thread::sleep(Duration::from_nanos(ns));
    }

    fn wait(&mut self, until: Tick, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        if !self.untaken.is_empty() {
            self.take_all();
        }
        let now = self.now();
        let until = if self.shared.as_ref().is_some_and(|shared| shared.has_news()) { now } else { until };
        let timer = if until == self.set_for.0 {
            self.set_for.1
        } else {
            match self.waking.wait(now, until) {
                Wait::Asleep(timer) => {
                    self.set_for = (until, timer);
                    timer
                }
                Wait::Awake => {
                    self.poll_awake(until, now)?;
                    self.take_events(ready);
                    return Ok(());
                }
            }
        };
        let timeout = self.timer.arm(timer, now)?;
        self.poll(timeout)?;
        if self.take_events(ready) {
            let woke = self.now();
            if timer > now {
                self.waking.woke(timer, woke);
            }
            if ready.is_empty() && woke < until {
                self.poll_awake(until, woke)?;
                self.take_events(ready);
            }
        }
        Ok(())
    }
}
