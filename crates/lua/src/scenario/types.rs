//! Annotations of the library for editors, which `brunt types` writes.
//!
//! They are kept beside the library that they describe, in Lua with `LuaLS` comments
//! (<https://luals.github.io/wiki/annotations>): a part for the engine and one for each protocol.

use brunt_protocol::Registry;

/// The engine's part.
const LIBRARY: &str = concat!(include_str!("types/load.lua"), include_str!("types/iterations.lua"));

/// The first line of every such file.
pub const FIRST_LINE: &str = "---@meta brunt\n";

/// The annotations of the library with the protocols of `registry`.
pub fn annotations(registry: &Registry) -> String {
    let mut text = LIBRARY.to_owned();
    for (dialect, _) in super::by_flags::dialects(registry) {
        text.push('\n');
        text.push_str(dialect.types());
    }
    text.push_str("\nreturn brunt\n");
    text
}

#[cfg(test)]
mod tests;
