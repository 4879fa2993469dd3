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
    /// How many blocks were given back.
    freed: u32,
}

/// The blocks that are given back between two signs of life: a large runtime that ends takes seconds, in which nothing else is seen of it.
const SIGNS: u32 = 1 << 10;

/// The bytes that a script gets between two looks at its CPU time. Functions in C that fill memory do not look themselves.
const STEP: usize = 1 << 20;

impl Memory {
    pub(crate) fn new(user: Rc<User>) -> Self {
        Self { user, left: STEP, freed: 0 }
    }

    /// Whether the script gets so many bytes.
    fn gives(&mut self, size: usize) -> bool {
        if let Some(left) = self.left.checked_sub(size) {
            self.left = left;
            return true;
        }
        self.left = STEP;
        !self.user.is_over_time()
    }
}

// SAFETY: mimalloc's blocks are aligned to 8 bytes at least and null where there is no memory; `mi_usable_size` is what a block has. Blocks may be
// freed by another thread than the one that made them.
unsafe impl Allocator for Memory {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.gives(size) {
            return ptr::null_mut();
        }
        // SAFETY: it takes any size.
        unsafe { mi_malloc(size) }.cast()
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let all = count.checked_mul(size).filter(|all| self.gives(*all));
        // SAFETY: as above.
        all.map_or(ptr::null_mut(), |all| unsafe { mi_zalloc(all) }.cast())
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        self.freed = self.freed.wrapping_add(1);
        if self.freed.is_multiple_of(SIGNS) {
            self.user.lives();
        }
        // SAFETY: the caller says that the block is ours; null is fine.
        unsafe { mi_free(ptr.cast()) }
    }

    unsafe fn realloc(&mut self, block: *mut u8, new_size: usize) -> *mut u8 {
        if !self.gives(new_size) {
            return ptr::null_mut();
        }
        // SAFETY: as for `dealloc`.
        unsafe { mi_realloc(block.cast(), new_size) }.cast()
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: as for `dealloc`.
        unsafe { mi_usable_size(ptr.cast()) }
    }
}
