//! Sockets of datagrams, each of which is connected to one peer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

use super::DATAGRAM_BYTES;
use brunt_record::RECEIVE_BUFFER_BYTES;

/// The room for datagrams that is asked for in the kernel, in bytes.
const ROOM_BYTES: usize = RECEIVE_BUFFER_BYTES as usize;

/// A socket that is connected to `address`, from `source` if there is one.
///
/// # Errors
/// When the system gives none.
pub(super) fn connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    forbid_fragments(&socket, address);
    // Best effort, both ways.
    let _ = socket.set_recv_buffer_size(ROOM_BYTES);
    let _ = socket.set_send_buffer_size(ROOM_BYTES);
    if let Some(source) = source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    socket.connect(&address.into())?;
    Ok(socket)
}

/// Makes datagrams that the path does not take disappear instead of being fragmented, so that QUIC finds out what it takes (RFC 8899). Best
/// effort.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library that is used here sets IP_MTU_DISCOVER")]
fn forbid_fragments(socket: &Socket, address: SocketAddr) {
    let (level, name, value) = match address {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
    };
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which has as many. The descriptor is open as long as `socket` is borrowed.
    let _ = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
}

/// Room for the one control message of [`send`], aligned as it has to be.
#[cfg(target_os = "linux")]
#[repr(C)]
struct SegmentMessage {
    head: libc::cmsghdr,
    each: u16,
}

/// Sends datagrams of `each` bytes, the last of which may be shorter, by one call into the kernel (`UDP_SEGMENT`, Linux 4.18).
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library that is used here sends UDP_SEGMENT")]
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8], each: usize) -> io::Result<usize> {
    let each = u16::try_from(each).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let head = libc::cmsghdr {
        // `CMSG_LEN` of the value (cmsg(3)): the head's size is a multiple of the alignment.
        cmsg_len: size_of::<libc::cmsghdr>() + size_of::<u16>(),
        cmsg_level: libc::SOL_UDP,
        cmsg_type: libc::UDP_SEGMENT,
    };
    let mut control = SegmentMessage { head, each };
    // SAFETY: zeros are a `msghdr`: numbers and pointers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: the message's part leads to `bytes` and has their length, its control message to `control` and has its size; the kernel writes to
    // neither. All are borrowed until the call returns, and so is the descriptor.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// How many bytes the receive buffer of a socket has less than [`ROOM_BYTES`].
pub(super) fn receive_buffer_missing(socket: BorrowedFd<'_>) -> u64 {
    let Ok(got) = rustix::net::sockopt::socket_recv_buffer_size(socket) else { return 0 };
    // Linux doubles what was asked for, for its own records (socket(7)), and tells the double.
    let got = if cfg!(target_os = "linux") { got / 2 } else { got };
    ROOM_BYTES.saturating_sub(got) as u64
}

/// How many datagrams are read at once.
const AT_ONCE: usize = 16;

/// Reads datagrams as [`Driver::read_datagrams`](super::Driver::read_datagrams) does, all of those that wait by one call into the kernel.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library that is used here calls recvmmsg")]
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], sizes: &mut Vec<usize>) -> io::Result<bool> {
    sizes.clear();
    // SAFETY: any bytes, zeros among them, are an `iovec` and an `mmsghdr`: numbers and pointers.
    let (mut parts, mut heads): ([libc::iovec; AT_ONCE], [libc::mmsghdr; AT_ONCE]) = unsafe { std::mem::zeroed() };
    let mut places = 0;
    for ((place, part), head) in buffer.chunks_exact_mut(DATAGRAM_BYTES).zip(&mut parts).zip(&mut heads) {
        part.iov_base = place.as_mut_ptr().cast();
        part.iov_len = place.len();
        head.msg_hdr.msg_iov = part;
        head.msg_hdr.msg_iovlen = 1;
        places += 1;
    }
    // SAFETY: each of the first `places` heads has one part, in `parts`, which leads to a place of its own in `buffer` and has its length.
    // Heads, parts and buffer are borrowed until the call returns, and so is the descriptor.
    let received = unsafe {
        libc::recvmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), places, libc::MSG_DONTWAIT, std::ptr::null_mut())
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    sizes.extend(heads.iter().take(received).map(|head| head.msg_len as usize));
    Ok(received as u64 == u64::from(places))
}

/// The same one by one.
#[cfg(not(target_os = "linux"))]
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], sizes: &mut Vec<usize>) -> io::Result<bool> {
    sizes.clear();
    sizes.push(rustix::net::recv(socket, buffer, rustix::net::RecvFlags::empty())?.1);
    Ok(true)
}

/// How many datagrams a socket has dropped, for want of room above all. Since Linux 4.12.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library that is used here reads SO_MEMINFO")]
pub(super) fn dropped(socket: BorrowedFd<'_>) -> u64 {
    /// The number of words (`include/uapi/linux/sock_diag.h`), and the place of the drops.
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
    fn all_that_wait_are_read_at_once() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = connect(peer.local_addr().unwrap(), None).unwrap();
        let to = socket.local_addr().unwrap().as_socket().unwrap();
        let (mut buffer, mut sizes) = (vec![0; 64 << 10], vec![9]);
        let nothing = receive(socket.as_fd(), &mut buffer, &mut sizes).unwrap_err();
        assert_eq!((nothing.kind(), sizes.len()), (io::ErrorKind::WouldBlock, 0));
        for number in 0..AT_ONCE + 3 {
            peer.send_to(&vec![number as u8; number * 100], to).unwrap();
        }
        assert!(receive(socket.as_fd(), &mut buffer, &mut sizes).unwrap(), "three are left");
        assert_eq!(sizes, (0..AT_ONCE).map(|number| number * 100).collect::<Vec<_>>());
        for (number, (place, size)) in buffer.chunks(DATAGRAM_BYTES).zip(&sizes).enumerate() {
            assert!(place[..*size].iter().all(|byte| usize::from(*byte) == number), "{number}");
        }
        assert!(!receive(socket.as_fd(), &mut buffer, &mut sizes).unwrap());
        assert_eq!(sizes, [1600, 1700, 1800]);
    }

    #[test]
    fn datagrams_are_sent_at_once() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = connect(peer.local_addr().unwrap(), None).unwrap();
        let bytes: Vec<u8> = (0..3500_u32).map(|at| (at / 1000) as u8).collect();
        assert_eq!(send(socket.as_fd(), &bytes, 1000).unwrap(), 3500);
        let mut buffer = [0; 2000];
        for (number, length) in [1000, 1000, 1000, 500].into_iter().enumerate() {
            assert_eq!(peer.recv(&mut buffer).unwrap(), length);
            assert!(buffer[..length].iter().all(|byte| usize::from(*byte) == number));
        }
        assert!(send(socket.as_fd(), &vec![0; 70_000], 1000).is_err(), "more than a datagram can hold");
    }

    #[test]
    fn what_is_missing_of_a_receive_buffer_is_known() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = connect(peer.local_addr().unwrap(), None).unwrap();
        let allowed: usize = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
        assert_eq!(receive_buffer_missing(socket.as_fd()), ROOM_BYTES.saturating_sub(allowed) as u64);
        socket.set_recv_buffer_size(100_000).unwrap();
        assert_eq!(receive_buffer_missing(socket.as_fd()), ROOM_BYTES as u64 - 100_000);
    }

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
