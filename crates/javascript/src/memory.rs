//! Where a script's runtime has its memory from.
#![allow(unsafe_code)]

use std::ffi::c_void;

use libmimalloc_sys::{mi_free, mi_malloc, mi_realloc, mi_zalloc};
use rquickjs::allocator::Allocator;

unsafe extern "C" {
    /// The bytes that a block of mimalloc's has, at least those that were asked for.
    fn mi_usable_size(block: *const c_void) -> usize;
}

/// The allocator of the whole program. Scripts make small objects all the time, and a user has thousands of them: the C library's takes longer,
/// and has a head for each.
pub(crate) struct Memory;

// SAFETY: mimalloc's blocks are aligned to 8 bytes at least and null where there is no memory; `mi_usable_size` is what a block has. Blocks may be
// freed by another thread than the one that made them.
unsafe impl Allocator for Memory {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        // SAFETY: it takes any size.
        unsafe { mi_malloc(size) }.cast()
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: as above.
        count.checked_mul(size).map_or(std::ptr::null_mut(), |all| unsafe { mi_zalloc(all) }.cast())
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        // SAFETY: the caller says that the block is ours; null is fine.
        unsafe { mi_free(ptr.cast()) }
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`.
        unsafe { mi_realloc(ptr.cast(), new_size) }.cast()
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: as for `dealloc`.
        unsafe { mi_usable_size(ptr.cast()) }
    }
}
