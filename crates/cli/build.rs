//! Exports Lua's functions to modules written in C, finds the guide's pages, and names the commit for `brunt --version`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    export_lua(&package);
    // The pages are in the repository's docs/. A package has a copy of them, which `make package` puts there.
    let packaged = package.join("docs");
    let pages = if packaged.is_dir() { packaged } else { package.join("../../docs") };
    println!("cargo:rerun-if-changed={}", pages.display());
    println!("cargo:rustc-env=BRUNT_DOCS={}", pages.display());
    println!("cargo:rerun-if-env-changed=BRUNT_COMMIT");
    let commit = Some(variable("BRUNT_COMMIT")).filter(|commit| !commit.is_empty());
    let commit = commit.or_else(|| packaged_commit(&package)).or_else(|| checked_out(&package)).unwrap_or_default();
    println!("cargo:rustc-env=BRUNT_COMMIT={commit}");
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Keeps and exports what modules written in C need of Lua. A program exports nothing unless its linker is told, and one
/// that exports everything (`-rdynamic`) also keeps everything: it would be half as large again.
fn export_lua(package: &Path) {
    let exports = package.join("lua.exports");
    println!("cargo:rerun-if-changed={}", exports.display());
    // packaging/build.sh exports them in a way that its linker knows.
    println!("cargo:rerun-if-env-changed=BRUNT_LUA_IS_EXPORTED");
    if !variable("BRUNT_LUA_IS_EXPORTED").is_empty() {
        return;
    }
    if variable("CARGO_CFG_TARGET_OS") == "linux" {
        println!("cargo:rustc-link-arg-bins=-Wl,--dynamic-list={}", exports.display());
    } else {
        println!("cargo:rustc-link-arg-bins=-rdynamic");
    }
}

/// The commit that `cargo package` wrote down.
fn packaged_commit(package: &Path) -> Option<String> {
    let written = std::fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let hash = written.split_once("\"sha1\": \"")?.1;
    Some(hash.chars().take(12).collect())
}

/// The commit of the checkout, for release builds: a debug build would be made anew with each commit.
fn checked_out(package: &Path) -> Option<String> {
    if variable("PROFILE") != "release" || !package.join("../../.git").exists() {
        return None;
    }
    let log = git(package, &["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo:rerun-if-changed={}", package.join(log).display());
    git(package, &["rev-parse", "--short=12", "HEAD"])
}

/// What git says, where there is git and a checkout.
fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let said = Command::new("git").arg("-C").arg(folder).args(words).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    (said.status.success() && !text.is_empty()).then_some(text)
}
