//! Runs every command that README.md and docs/ show, as shown, and compares exit statuses and the shape of what is
//! printed. `markdown.rs` says how a page marks a block that is not run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod clone;
mod commands;
mod first_lines;
mod markdown;
mod page;
mod shape;

use std::fs;
use std::path::{Path, PathBuf};

use page::Blocks;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A test for each page, and the list of them.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                page::check($path, Blocks::OfBruntAlone);
            }
        )*
    };
}

pages! {
    readme: "README.md",
    contributing: "CONTRIBUTING.md",
    coalescing: "docs/coalescing.md",
    custom_protocol: "docs/custom-protocol.md",
    deciding: "docs/deciding.md",
    first: "docs/first.md",
    gate: "docs/gate.md",
    http: "docs/http.md",
    javascript: "docs/javascript.md",
    llm: "docs/llm.md",
    load: "docs/load.md",
    lua: "docs/lua.md",
    machines: "docs/machines.md",
    metrics: "docs/metrics.md",
    moving: "docs/moving.md",
    other_tools: "docs/other-tools.md",
    reference: "docs/reference.md",
    replay: "docs/replay.md",
    report: "docs/report.md",
    results: "docs/results.md",
    rpc: "docs/rpc.md",
    scenarios: "docs/scenarios.md",
    sockets: "docs/sockets.md",
    target: "docs/target.md",
}

#[test]
#[ignore = "needs curl, redis-server: make test installs them"]
fn blocks_that_need_other_programs() {
    for path in PAGES {
        page::check(path, Blocks::WithOtherPrograms);
    }
}

#[test]
fn every_page_has_a_test() {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let docs = docs.map(|name| format!("docs/{}", name.to_str().unwrap()));
    for page in docs.filter(|path| Path::new(path).extension().is_some_and(|extension| extension == "md")) {
        assert!(PAGES.contains(&page.as_str()), "{page} is not among the pages of this test");
    }
}
