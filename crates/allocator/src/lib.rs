//! The allocator of the brunt program, and how long it keeps freed memory.
//!
//! It has its own crate because the crate that names an allocator also holds the code that every allocation passes through, and the program's own crate is compiled
//! without optimisation (docs/decisions/0020-release-build-without-lto.md).
//!
//! ```
//! use std::time::Duration;
//!
//! // Between two runs of a search there is time to give memory back.
//! brunt_allocator::keep_freed(Duration::from_secs(1));
//! ```

use std::ffi::c_long;
use std::time::Duration;

use libmimalloc_sys::{mi_option_t, mi_option_use_numa_nodes};

// Scripts make small objects all the time, and LuaJIT's collector frees them by the dozen. The C library's allocator is
// slow at that. The flood allocates nothing.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long freed memory is kept for what comes next, in milliseconds: `mi_option_purge_delay` of `mimalloc.h`, which the
/// bindings leave out between their neighbours.
const PURGE_DELAY: mi_option_t = mi_option_use_numa_nodes - 1;

/// Keeps freed memory for this long before it goes back to the kernel; mimalloc gives it back after 10 ms. What every second
/// takes and frees anew then stays: a controller of 1,000 agents spent a tenth of its CPU time on pages that it had just given
/// back. `MIMALLOC_PURGE_DELAY` (milliseconds) of the environment goes before.
pub fn keep_freed(length: Duration) {
    let ms = c_long::try_from(length.as_millis()).unwrap_or(c_long::MAX);
    #[expect(unsafe_code, reason = "mimalloc's options are set by calls alone")]
    // SAFETY: sets a number that mimalloc reads when it purges; any number is valid there, and so is any time to set it.
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_is_meant() {
        #[expect(unsafe_code, reason = "mimalloc's options are read by calls alone")]
        // SAFETY: reads a number.
        let kept = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(kept(), 10, "mimalloc's default of mi_option_purge_delay");
        keep_freed(Duration::from_secs(1));
        assert_eq!(kept(), 1000);
    }
}
