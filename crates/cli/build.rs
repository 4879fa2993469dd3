//! Lets modules written in C for Lua find Lua's functions in this program, and finds the guide's pages.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The linker drops what nothing refers to, and hides the rest from modules that are loaded later, unless it is told.
    println!("cargo:rustc-link-arg-bins=-rdynamic");
    // The pages are in the repository's docs/. A package has a copy of them, which `make package` puts there.
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let packaged = Path::new(&package).join("docs");
    let pages = if packaged.is_dir() { packaged } else { Path::new(&package).join("../../docs") };
    println!("cargo:rerun-if-changed={}", pages.display());
    println!("cargo:rustc-env=BRUNT_DOCS={}", pages.display());
}
