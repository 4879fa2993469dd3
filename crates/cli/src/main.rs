//! brunt: puts load on network services and tells the truth about what happened.

use std::process::ExitCode;

// Scripts make small objects all the time, and LuaJIT's collector frees them by the dozen, which is what the C library's
// allocator is slow at. The flood allocates nothing.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    brunt::main_with(brunt::built_in())
}
