//! Reads that would each send an acknowledgement of their own, avoided.
//!
//! When a read empties a socket, Linux at once acknowledges data that came in more than one small segment
//! (`tcp_cleanup_rbuf`, net/ipv4/tcp.c). nginx sends head and body of a short answer over HTTP/2 as two segments, and
//! the packet that acknowledges them is a quarter of such a call's cost for this program. Here the answer is peeked at
//! first (`MSG_PEEK`) and taken out of the socket after the next request was written, which carries the
//! acknowledgement. This costs another system call for each answer. So it is done on connections where most reads were
//! seen to send an acknowledgement and where it was seen to help, and only after short reads.

use std::io;

use mio::net::TcpStream;
use rustix::net::{RecvFlags, recv};

/// Reads before the first look: in the beginning, Linux acknowledges more often.
const READS_BEFORE: u32 = 64;
/// Reads between two looks.
const READS_BETWEEN: u32 = 64;
/// A longer answer, in bytes, comes in many segments, which Linux acknowledges on the way in any case.
const SHORT: usize = 4096;
/// Bytes that are taken out of a socket at once.
pub(super) const TAKEN_AT_ONCE: usize = 16 * 1024;

/// A TCP socket that may still hold bytes which were read already.
pub(super) struct Reader {
    pub(super) stream: TcpStream,
    untaken: usize,
    /// Whether the last read was short, so that the next probably is, too.
    was_short: bool,
    trial: Trial,
}

impl Reader {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, untaken: 0, was_short: true, trial: Trial::default() }
    }

    /// Reads with `read`, which gets the flags to read with and returns the number of bytes. Bytes that have to be
    /// taken out of the socket go to `scratch`.
    #[inline]
    pub(super) fn read<T>(
        &mut self,
        scratch: &mut [u8],
        read: impl FnOnce(&TcpStream, RecvFlags) -> io::Result<(usize, T)>,
    ) -> io::Result<(usize, T)> {
        self.take(scratch)?;
        let peeks = self.trial.peeks && self.was_short;
        let (bytes, with) = read(&self.stream, if peeks { RecvFlags::PEEK } else { RecvFlags::empty() })?;
        self.untaken = if peeks { bytes } else { 0 };
        self.was_short = bytes <= SHORT;
        if self.trial.left > 0 {
            self.trial.left -= 1;
            if self.trial.left == 0 {
                self.trial.look(bare_segments(&self.stream));
            }
        }
        Ok((bytes, with))
    }

    /// Whether bytes are still to be taken out of the socket.
    #[inline]
    pub(super) fn has_untaken(&self) -> bool {
        self.untaken > 0
    }

    /// Takes the bytes that were read out of the socket.
    #[inline]
    pub(super) fn take(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        while self.untaken > 0 {
            let most = scratch.len().min(self.untaken);
            // On TCP, with this flag, Linux copies nothing (tcp(7)).
            let (_, taken) = recv(&self.stream, scratch.get_mut(..most).unwrap_or_default(), RecvFlags::TRUNC)?;
            // 0 bytes would mean the end of the stream, which cannot come before these bytes.
            self.untaken = if taken == 0 { 0 } else { self.untaken.saturating_sub(taken) };
        }
        Ok(())
    }
}

impl Drop for Reader {
    /// A socket that is closed with bytes in it resets its connection.
    fn drop(&mut self) {
        if self.untaken > 0 {
            let _ = self.take(&mut [0; TAKEN_AT_ONCE]);
        }
    }
}

/// A trial whether peeking at answers saves acknowledgements.
#[derive(Debug, PartialEq, Eq)]
struct Trial {
    peeks: bool,
    /// Reads until the next look; 0 when all is settled.
    left: u32,
    /// Segments without data up to the last look, if there was one, and their number before answers were peeked at.
    bare: Option<u32>,
    before: u32,
}

impl Default for Trial {
    fn default() -> Self {
        Self { peeks: false, left: READS_BEFORE, bare: None, before: 0 }
    }
}

impl Trial {
    /// Notes the number of segments without data that were sent so far.
    #[cold]
    fn look(&mut self, bare: Option<u32>) {
        let Some(bare) = bare else { return };
        let Some(last) = self.bare.replace(bare) else {
            self.left = READS_BETWEEN;
            return;
        };
        let sent = bare.wrapping_sub(last);
        if self.peeks {
            self.peeks = sent <= self.before / 2;
        } else if sent >= READS_BETWEEN / 2 {
            (self.peeks, self.before, self.left) = (true, sent, READS_BETWEEN);
        }
    }
}

/// The number of segments without data that a socket has sent: acknowledgements, besides those that open and close its
/// connection. Since Linux 4.6.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library that is used here reads TCP_INFO on every kernel without panicking")]
fn bare_segments(stream: &TcpStream) -> Option<u32> {
    use std::os::fd::AsRawFd as _;

    /// The needed length of `struct tcp_info` (include/uapi/linux/tcp.h) in words, and the fields' places in it.
    const WORDS: usize = 40;
    const SEGMENTS_OUT: usize = 34;
    const DATA_SEGMENTS_OUT: usize = 39;
    let mut info = [0_u32; WORDS];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, which has as many, and any bytes are numbers. The descriptor is open
    // as long as `stream` is borrowed.
    let outcome = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let is_whole = outcome == 0 && length as usize == size_of_val(&info);
    is_whole.then(|| info[SEGMENTS_OUT].wrapping_sub(info[DATA_SEGMENTS_OUT]))
}

#[cfg(not(target_os = "linux"))]
fn bare_segments(_stream: &TcpStream) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    fn looked_at(bare: &[u32]) -> Trial {
        let mut trial = Trial::default();
        for bare in bare {
            trial.left = 0;
            trial.look(Some(*bare));
        }
        trial
    }

    #[test]
    fn answers_are_looked_at_first_only_where_that_saves_acknowledgements() {
        let outcome = |bare: &[u32]| {
            let Trial { peeks, left, .. } = looked_at(bare);
            (peeks, left)
        };
        assert_eq!(outcome(&[40]), (false, READS_BETWEEN));
        assert_eq!(outcome(&[40, 41]), (false, 0), "few are sent");
        assert_eq!(outcome(&[40, 104]), (true, READS_BETWEEN), "one a read");
        assert_eq!(outcome(&[40, 104, 106]), (true, 0), "hardly any are left");
        assert_eq!(outcome(&[40, 104, 168]), (false, 0), "as many as before");
        assert_eq!(outcome(&[u32::MAX - 10, 53]), (true, READS_BETWEEN), "numbers begin again");
        let mut unknown = Trial { left: 0, ..Trial::default() };
        unknown.look(None);
        assert_eq!(unknown, Trial { left: 0, ..Trial::default() });
    }

    #[test]
    fn what_is_looked_at_is_read_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let mut reader = Reader::new(TcpStream::from_std(stream));
        reader.trial.peeks = true;
        let (mut buffer, mut was_short) = ([0; 10_000], true);
        for length in [1, 20_000, 3, 4] {
            peer.write_all(&vec![length as u8; length]).unwrap();
            let mut read = 0;
            while read < length {
                let (n, ()) = reader
                    .read(&mut [0; 1_000], |stream, flags| Ok((recv(stream, &mut buffer[..], flags)?.1, ())))
                    .unwrap();
                assert!(buffer[..n].iter().all(|byte| *byte == length as u8));
                // Behind a long read the next is an ordinary one.
                assert_eq!(reader.has_untaken(), was_short);
                was_short = n <= SHORT;
                read += n;
            }
            assert_eq!(read, length);
        }
        // It is closed in an orderly way, though the last bytes were only looked at.
        drop(reader);
        assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn acknowledgements_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_nodelay(true).unwrap();
        let stream = TcpStream::from_std(stream);
        let before = bare_segments(&stream).unwrap();
        for _ in 0..1000 {
            peer.write_all(b"head").unwrap();
            peer.write_all(b"body").unwrap();
            let mut left = 8;
            while left > 0 {
                let (_, n) = recv(&stream, &mut [0; 8], RecvFlags::empty()).unwrap();
                left -= n;
            }
        }
        let sent = bare_segments(&stream).unwrap() - before;
        assert!((1..=3000).contains(&sent), "{sent}");
    }
}
