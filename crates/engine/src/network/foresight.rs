//! Memory of the connections that have their turn next, brought into the processor's cache meanwhile.
//!
//! A connection has some thirty cache lines of state. Between two of its turns a worker serves others, and the kernel's sockets pass through the
//! cache as well, so that most of them are cold (docs/decisions/0902-what-a-flood-costs-beside-a-bare-loop.md).

use super::Network;
use super::connection::Connection;
use crate::transport::{ConnectionId, Driver};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Brings the memory of a value into the cache.
#[inline]
fn fetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..size_of_val(value)).step_by(LINE) {
        let line = std::ptr::from_ref(value).cast::<i8>().wrapping_add(at);
        #[expect(unsafe_code, reason = "the instruction has no safe name")]
        // SAFETY: the instruction is a hint. It reads nothing, and no address makes it fail.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// The connection at `next` has its turn after the current one, and that at `after` then. The state of a connection's protocol is found
    /// by the connection, which has to be there.
    #[inline]
    pub(crate) fn foresee(&self, next: ConnectionId, after: Option<ConnectionId>) {
        if let Some(connection) = after.and_then(|token| self.there(token)) {
            fetch(connection);
        }
        if let Some(connection) = self.there(next) {
            fetch(&*connection.link.client);
        }
    }

    #[inline]
    fn there(&self, token: ConnectionId) -> Option<&Connection> {
        (token.place() < self.connections.len()).then(|| &self.connections[token])
    }
}
