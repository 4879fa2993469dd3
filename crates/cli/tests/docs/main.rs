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
    beside: "docs/beside.md",
    changing: "docs/changing.md",
    doubt: "docs/doubt.md",
    editors: "docs/editors.md",
    first: "docs/first.md",
    gate: "docs/gate.md",
    http2: "docs/http2.md",
    install: "docs/install.md",
    settings: "docs/settings.md",
    stability: "docs/stability.md",
    contributing: "CONTRIBUTING.md",
    coalescing: "docs/coalescing.md",
    custom_protocol: "docs/custom-protocol.md",
    deciding: "docs/deciding.md",
    http: "docs/http.md",
    import: "docs/import.md",
    load: "docs/load.md",
    machines: "docs/machines.md",
    javascript: "docs/javascript.md",
    locust_jmeter: "docs/locust-jmeter.md",
    metrics: "docs/metrics.md",
    moving: "docs/moving.md",
    other_tools: "docs/other-tools.md",
    replay: "docs/replay.md",
    report: "docs/report.md",
    results: "docs/results.md",
    scenarios: "docs/scenarios.md",
    target: "docs/target.md",
    streams: "docs/streams.md",
    llm: "docs/llm.md",
    tcp: "docs/tcp.md",
    thresholds: "docs/thresholds.md",
    thrift: "docs/thrift.md",
    watch: "docs/watch.md",
    grpc: "docs/grpc.md",
    websocket: "docs/websocket.md",
    wrk_scripts: "docs/wrk-scripts.md",
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
