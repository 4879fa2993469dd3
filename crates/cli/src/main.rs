//! brunt: puts load on network services and tells the truth about what happened.

use std::process::ExitCode;
use std::time::Duration;

/// What a second takes it frees, and the next one takes it again.
const KEEP_FREED: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    brunt_allocator::keep_freed(KEEP_FREED);
    brunt::main_with(brunt::built_in())
}
