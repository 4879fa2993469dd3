//! brunt: puts load on network services and tells the truth about what happened.

use std::process::ExitCode;

// Linked for the allocator that it names.
use brunt_allocator as _;

fn main() -> ExitCode {
    brunt::main_with(brunt::built_in())
}
