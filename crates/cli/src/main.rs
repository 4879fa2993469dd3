//! brunt: puts load on network services and tells the truth about what happened.

use std::process::ExitCode;

use brunt_engine::protocol::Registry;

fn main() -> ExitCode {
    brunt::main_with(Registry::built_in())
}
