//! Sockets: making the listening ones, and TCP and Unix streams under one name.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::Path;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{Domain, Protocol, Socket, Type};

use crate::service::{Listen, StartError};

/// Connections that may wait to be accepted; the kernel caps it (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// One worker's listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Binds one listening socket for each worker; with them, the address that it became.
pub(crate) fn bind(address: &Listen, workers: usize) -> Result<(Vec<Listener>, Listen), StartError> {
    match address {
        Listen::Tcp(wanted) => {
            let (listeners, bound) = bind_tcp(*wanted, workers).map_err(|error| StartError::bind(address, error))?;
            Ok((listeners, Listen::Tcp(bound)))
        }
        Listen::Unix(path) => {
            let listeners = share(listen_on_unix(path)?, workers).map_err(|error| StartError::bind(address, error))?;
            Ok((listeners, address.clone()))
        }
    }
}

fn bind_tcp(wanted: SocketAddr, workers: usize) -> io::Result<(Vec<Listener>, SocketAddr)> {
    let shared = workers > 1;
    if shared && wanted.port() != 0 {
        // Among sockets that share a port, a second server would not notice the first.
        tcp_socket(wanted, false)?;
    }
    let first = tcp_socket(wanted, shared)?;
    first.listen(BACKLOG)?;
    let first: std::net::TcpListener = first.into();
    let bound = first.local_addr()?;
    let mut listeners = vec![Listener::Tcp(TcpListener::from_std(first))];
    for _ in 1..workers {
        let socket = tcp_socket(bound, shared)?;
        socket.listen(BACKLOG)?;
        listeners.push(Listener::Tcp(TcpListener::from_std(socket.into())));
    }
    Ok((listeners, bound))
}

/// The room for datagrams that is asked for in the kernel, in bytes, which gives as much as `net.core.rmem_max` allows.
const DATAGRAM_ROOM: usize = 4 << 20;

/// Binds a UDP socket for each worker at the address that its listeners have.
pub(crate) fn bind_udp(bound: SocketAddr, workers: usize) -> io::Result<Vec<std::net::UdpSocket>> {
    let socket = || {
        let socket = Socket::new(Domain::for_address(bound), Type::DGRAM, Some(Protocol::UDP))?;
        if workers > 1 {
            socket.set_reuse_port(true)?;
        }
        socket.set_nonblocking(true)?;
        let _ = socket.set_recv_buffer_size(DATAGRAM_ROOM);
        let _ = socket.set_send_buffer_size(DATAGRAM_ROOM);
        socket.bind(&bound.into())?;
        Ok(socket.into())
    };
    (0..workers).map(|_| socket()).collect()
}

fn tcp_socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    // Accepted sockets inherit this, which saves a call for each.
    socket.set_tcp_nodelay(true)?;
    if address.ip().is_loopback() {
        // So do they this: nothing is congested there, and what paces (BBR, where it is the default) costs its time.
        let _ = socket.set_tcp_congestion(b"reno");
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Listens on a Unix socket at this path, in place of one that a dead server left behind.
///
/// # Errors
/// A file there that is no socket, a server that listens there, a path that cannot be used.
pub fn listen_on_unix(path: &Path) -> Result<StdUnixListener, StartError> {
    make_way(path)?;
    StdUnixListener::bind(path).map_err(|error| StartError::bind(&Listen::Unix(path.to_owned()), error))
}

/// One listener for each worker.
fn share(first: StdUnixListener, workers: usize) -> io::Result<Vec<Listener>> {
    first.set_nonblocking(true)?;
    let mut listeners = Vec::with_capacity(workers);
    for _ in 1..workers {
        listeners.push(Listener::Unix(UnixListener::from_std(first.try_clone()?)));
    }
    listeners.push(Listener::Unix(UnixListener::from_std(first)));
    Ok(listeners)
}

/// Removes a socket file that no server listens on any more; leaves anything else alone.
fn make_way(path: &Path) -> Result<(), StartError> {
    let Ok(meta) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !meta.file_type().is_socket() {
        return Err(StartError::NotASocket { path: path.to_owned() });
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| StartError::bind(&Listen::Unix(path.to_owned()), error))
        }
        // In use, or out of reach: binding says so.
        _ => Ok(()),
    }
}

impl Listener {
    pub(super) fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }

    pub(super) fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Unix(listener) => listener,
        }
    }
}

/// An accepted connection.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Ends this side of the conversation: the peer reads an end of file.
    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(self.source(), token, Interest::READABLE)
    }

    /// Asks to be told when there is room to write, or no longer.
    ///
    /// It is not asked for from the start, because a Unix stream tells it at each read of the peer.
    pub(super) fn watch_room(&mut self, registry: &Registry, token: Token, watch: bool) -> io::Result<()> {
        let interest = if watch { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        registry.reregister(self.source(), token, interest)
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }
}

impl AsFd for Stream {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

// To the kernel directly: the C library's are cancellation points, which costs a few percent of an answer.
impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (taken, _) = recv(self.as_fd(), buffer, RecvFlags::empty())?;
        Ok(taken)
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.as_fd(), bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
