//! Kernel timestamps in both directions (Documentation/networking/timestamping, `SO_TIMESTAMPING`): when a request was
//! received, and when an answer was passed on. Nanoseconds of the real-time clock.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, TimestampingFlag, recvmsg, setsockopt};

/// Room for a control message with three timestamps, and for the one that describes a packet of the error queue.
pub(super) struct Stamps(Vec<u8>);

impl Default for Stamps {
    fn default() -> Self {
        Self(vec![0; 256])
    }
}

/// Turns timestamps on for a socket. The connections that a listener accepts inherit this.
pub(super) fn ask_for(socket: &impl AsFd) -> io::Result<()> {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    Ok(setsockopt(socket, Timestamping, &flags)?)
}

impl Stamps {
    /// Reads the available bytes, and returns when the kernel received the last of them.
    pub(super) fn receive(&mut self, socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        self.message(socket, buffer, MsgFlags::empty())
    }

    /// When the kernel passed on the bytes that were sent last. On loopback it does that within `send`, so that the
    /// time is known right after it. `None` if it is not known yet.
    pub(super) fn taken(&mut self, socket: &impl AsRawFd) -> io::Result<Option<u64>> {
        match self.message(socket, &mut [0; 64], MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT) {
            Ok((_, stamp)) => Ok(stamp),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn message(
        &mut self,
        socket: &impl AsRawFd,
        buffer: &mut [u8],
        flags: MsgFlags,
    ) -> io::Result<(usize, Option<u64>)> {
        let mut into = [IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut self.0), flags)?;
        let stamp = message.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampsns(stamps) => Some(stamps.system),
            _ => None,
        });
        let nanoseconds = |seconds: i64, nanoseconds: i64| seconds as u64 * 1_000_000_000 + nanoseconds as u64;
        Ok((message.bytes, stamp.map(|stamp| nanoseconds(stamp.tv_sec(), stamp.tv_nsec()))))
    }
}
