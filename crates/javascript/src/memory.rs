//! Where a script's runtime has its memory from.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

use libmimalloc_sys::{mi_free, mi_malloc, mi_realloc, mi_zalloc};
use rquickjs::allocator::Allocator;

use crate::user::User;

unsafe extern "C" {
    /// The bytes that a block of mimalloc's has, at least those that were asked for.
    fn mi_usable_size(block: *const c_void) -> usize;
}

/// The allocator of the whole program. Scripts make small objects all the time, and a user has thousands of them: the C library's takes longer,
/// and has a head for each.
pub(crate) struct Memory {
    user: Rc<User>,
    /// The bytes that it gives before it asks whether the script goes on for too long.
    left: usize,
    /// The bytes that it has.
    used: usize,
    /// Whether it was refused some since it had fewer than it may have.
    was_refused: bool,
    /// How many blocks were given back.
    freed: u32,
}

/// The most memory of one user's script, in bytes.
pub(crate) const MOST_MEMORY: usize = 512 << 20;

/// The bytes that a script without memory gets to say so: an error with its text and its place.
const LAST: usize = 1 << 20;

/// The blocks that are given back between two signs of life: a large runtime that ends takes seconds, in which nothing else is seen of it.
const SIGNS: u32 = 1 << 10;

/// The bytes that a script gets between two looks at its CPU time. Functions in C that fill memory do not look themselves.
const STEP: usize = 1 << 20;

impl Memory {
    pub(crate) fn new(user: Rc<User>) -> Self {
        Self { user, left: STEP, used: 0, was_refused: false, freed: 0 }
    }

    /// Whether the script gets so many bytes in place of `old`.
    fn gives(&mut self, old: usize, size: usize) -> bool {
        let most = if self.was_refused { MOST_MEMORY + LAST } else { MOST_MEMORY };
        if size > old && (self.used - old).saturating_add(size) > most {
            self.was_refused = true;
            self.user.ran_out.set(true);
            return false;
        }
        self.was_refused &= self.used > MOST_MEMORY - LAST;
        if let Some(left) = self.left.checked_sub(size) {
            self.left = left;
            return true;
        }
        self.left = STEP;
        !self.user.is_over_time()
    }

    /// Counts a block that took the place of one of `old` bytes.
    fn counted(&mut self, old: usize, block: *mut c_void) -> *mut u8 {
        if !block.is_null() {
            // SAFETY: mimalloc has just made the block.
            self.used = self.used - old + unsafe { mi_usable_size(block) };
        }
        block.cast()
    }
}

// SAFETY: mimalloc's blocks are aligned to 8 bytes at least and null where there is no memory; `mi_usable_size` is what a block has. Blocks may be
// freed by another thread than the one that made them.
unsafe impl Allocator for Memory {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.gives(0, size) {
            return ptr::null_mut();
        }
        // SAFETY: it takes any size.
        let block = unsafe { mi_malloc(size) };
        self.counted(0, block)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(all) = count.checked_mul(size).filter(|all| self.gives(0, *all)) else { return ptr::null_mut() };
        // SAFETY: as above.
        let block = unsafe { mi_zalloc(all) };
        self.counted(0, block)
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        self.freed = self.freed.wrapping_add(1);
        if self.freed.is_multiple_of(SIGNS) {
            self.user.lives();
        }
        // SAFETY: the caller says that the block is ours; null is fine.
        unsafe {
            self.used -= mi_usable_size(ptr.cast());
            mi_free(ptr.cast());
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, new_size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`.
        let old = unsafe { mi_usable_size(block.cast()) };
        if !self.gives(old, new_size) {
            return ptr::null_mut();
        }
        // SAFETY: as for `dealloc`.
        let block = unsafe { mi_realloc(block.cast(), new_size) };
        self.counted(old, block)
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: as for `dealloc`.
        unsafe { mi_usable_size(ptr.cast()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use std::sync::Arc;

    use brunt_record::redaction::Secrets;
    use brunt_script::Files;

    use crate::modules::Modules;
    use crate::program::Source;
    use crate::worker::Worker;

    use super::*;

    #[test]
    fn who_has_no_memory_left_gets_some_to_say_so() {
        let modules =
            Arc::new(Modules::new("s.js".to_owned(), b"export default () => 1".to_vec(), Files::Plan(Vec::new())));
        let source = Source { modules, env: Vec::new(), seed: 1, secrets: Secrets::default() };
        let probed = source.probe(false).unwrap();
        let user = User::new(&Worker::new(Arc::new(source.program(&probed, Vec::new())), 0));
        let mut memory = Memory::new(Rc::clone(&user));
        let large = memory.alloc(MOST_MEMORY - 4 * LAST);
        assert!(!large.is_null());
        let mut small = Vec::new();
        let fill = |memory: &mut Memory, small: &mut Vec<*mut u8>| {
            let before = small.len();
            small.extend(std::iter::repeat_with(|| memory.alloc(4096)).take_while(|block| !block.is_null()));
            small.len() - before
        };
        assert!(fill(&mut memory, &mut small) > 0);
        assert!(user.ran_out.take() && memory.used <= MOST_MEMORY, "{}", memory.used);
        let last = fill(&mut memory, &mut small);
        assert!(last > LAST / 4096 / 2 && memory.used <= MOST_MEMORY + LAST, "{last}: {}", memory.used);
        assert_eq!(fill(&mut memory, &mut small), 0);
        // SAFETY: the blocks are the allocator's, and freed once.
        unsafe {
            memory.dealloc(large);
            for block in small {
                memory.dealloc(block);
            }
        }
        assert_eq!(memory.used, 0);
    }
}
