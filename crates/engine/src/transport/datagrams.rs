//! Sockets of datagrams, each of which is connected to one peer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

/// The room for datagrams that is asked for in the kernel, in bytes: a burst of answers must not be lost there. The kernel gives as much as
/// `net.core.rmem_max` allows.
const ROOM_BYTES: usize = 4 << 20;

/// A socket that is connected to `address`, from `source` if there is one.
///
/// # Errors
/// When the system gives none.
pub(super) fn connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // Best effort, both ways.
    let _ = socket.set_recv_buffer_size(ROOM_BYTES);
    let _ = socket.set_send_buffer_size(ROOM_BYTES);
    if let Some(source) = source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    socket.connect(&address.into())?;
    Ok(socket)
}

/// How many datagrams a socket has dropped, for want of room above all. Since Linux 4.12.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library that is used here reads SO_MEMINFO")]
pub(super) fn dropped(socket: BorrowedFd<'_>) -> u64 {
    /// The number of words (include/uapi/linux/sock_diag.h), and the place of the drops.
    const WORDS: usize = 9;
    const DROPS: usize = 8;
    let mut words = [0_u32; WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `words`, which has as many, and any bytes are numbers. The descriptor is open
    // as long as `socket` is borrowed.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let is_whole = outcome == 0 && length as usize == size_of_val(&words);
    if is_whole { u64::from(words[DROPS]) } else { 0 }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn dropped(_socket: BorrowedFd<'_>) -> u64 {
    0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn what_finds_no_room_is_counted() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = connect(peer.local_addr().unwrap(), None).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let to = socket.local_addr().unwrap().as_socket().unwrap();
        assert_eq!(dropped(socket.as_fd()), 0);
        let sent = 100;
        for _ in 0..sent {
            peer.send_to(&[0; 1000], to).unwrap();
        }
        let mut kept = 0;
        while socket.recv(&mut [std::mem::MaybeUninit::uninit(); 2000]).is_ok() {
            kept += 1;
        }
        assert!(kept > 0 && kept < sent, "{kept}");
        assert_eq!(dropped(socket.as_fd()), sent - kept);
    }
}
