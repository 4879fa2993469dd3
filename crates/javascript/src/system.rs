//! What the operating system tells of this thread and of its memory, by the C library: what goes around that fails under valgrind.
#![allow(unsafe_code)]

use std::time::Duration;

/// The CPU time of this thread: a machine that is busy with others takes none of it.
pub(crate) fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written, or left as it is.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The size of a page of memory, in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: it reads a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
