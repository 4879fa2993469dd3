//! The allocator of the brunt program. It has its own crate because the crate that names it also holds the code that
//! every allocation passes through, and the program's own crate is not optimised
//! (docs/decisions/0020-release-build-without-lto.md).

// Scripts make small objects all the time, and LuaJIT's collector frees them by the dozen. The C library's allocator is
// slow at that. The flood allocates nothing.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
