//! Finds out whether the report page is there to be embedded: `make page` makes it of `web/`, a packaged crate has it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The directory always exists, so that a page that is made later is seen.
    println!("cargo:rerun-if-changed=page");
    println!("cargo:rustc-check-cfg=cfg(has_page)");
    if std::path::Path::new("page/page.html").exists() {
        println!("cargo:rustc-cfg=has_page");
    }
}
