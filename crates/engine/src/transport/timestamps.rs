//! The time at which the kernel had the bytes of a read: Linux' software receive timestamps
//! (Documentation/networking/timestamping, `SO_TIMESTAMPNS`), which come with the bytes as a control message
//! (`recvmsg(2)`).
//!
//! On TCP the timestamp is that of the last segment in the read. It is of the real-time clock, which is read at the
//! same moment, so that only the delay counts: an offset between the clocks, measured once, would drift.

use std::io::{self, IoSliceMut, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::net::RecvFlags;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Room for a control message.
pub(super) struct Control(Vec<u8>);

impl Default for Control {
    fn default() -> Self {
        Self(nix::cmsg_space!(TimeSpec))
    }
}

/// Asks for timestamps on a socket. Best effort.
pub(super) fn ask_for(socket: &impl AsFd) {
    let _ = setsockopt(socket, ReceiveTimestampns, &true);
}

/// Reads available bytes, with these flags, and returns how long ago the kernel had the last of them, in nanoseconds,
/// if it tells.
#[inline]
pub(super) fn read(
    socket: &impl AsRawFd,
    buffer: &mut [u8],
    control: &mut Control,
    flags: RecvFlags,
) -> io::Result<(usize, Option<u64>)> {
    let mut into = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::from_bits_retain(flags.bits() as i32);
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut control.0), flags)?;
    let stamp = message.cmsgs().ok().and_then(|mut all| {
        all.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(nanoseconds(stamp.tv_sec(), stamp.tv_nsec())),
            _ => None,
        })
    });
    let delay = stamp.map(|stamp| {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
        nanoseconds(tv_sec, tv_nsec).saturating_sub(stamp)
    });
    Ok((message.bytes, delay))
}

/// Messages after which a silent kernel will stay silent: it begins to keep times soon after it was asked.
const TRIES: usize = 10_000;

/// Whether the kernel keeps them, tried on a connection to ourselves.
pub(super) fn are_kept() -> io::Result<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let reader = TcpStream::connect(listener.local_addr()?)?;
    ask_for(&reader);
    let (mut writer, _) = listener.accept()?;
    let (mut buffer, mut control) = ([0; 1], Control::default());
    for _ in 0..TRIES {
        writer.write_all(&[0])?;
        if let (1.., Some(_)) = read(&reader, &mut buffer, &mut control, RecvFlags::empty())? {
            return Ok(true);
        }
        std::thread::yield_now();
    }
    Ok(false)
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    seconds as u64 * 1_000_000_000 + nanoseconds as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_when_it_had_the_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        ask_for(&reader);
        let (mut writer, _) = listener.accept().unwrap();
        let (mut buffer, mut control) = ([0; 100], Control::default());
        // The kernel begins to take them some time after it was asked (its netstamp_work).
        for _ in 0..1_000_000 {
            let before = clock_gettime(ClockId::Realtime);
            writer.write_all(b"hello").unwrap();
            let (taken, delay) = read(&reader, &mut buffer, &mut control, RecvFlags::empty()).unwrap();
            let after = clock_gettime(ClockId::Realtime);
            assert_eq!(buffer.get(..taken), Some(b"hello".as_slice()));
            let most = nanoseconds(after.tv_sec, after.tv_nsec) - nanoseconds(before.tv_sec, before.tv_nsec);
            if let Some(delay) = delay {
                return assert!(delay <= most, "{delay} of {most}");
            }
            std::thread::yield_now();
        }
        panic!("no read had a timestamp");
    }
}
