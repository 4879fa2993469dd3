//! Lets modules written in C for Lua find Lua's functions in this program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The linker drops what nothing refers to, and hides the rest from modules that are loaded later, unless it is told.
    println!("cargo:rustc-link-arg-bins=-rdynamic");
}
