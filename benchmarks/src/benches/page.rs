//! Instructions of making the page of a long run with many names.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, ensure};

use super::Bench;
use crate::bar::Bar;
use crate::counted::instructions_of_all;
use crate::setup::{Setup, find};

/// The most instructions of a page of an hour with 500 names, from its result to its file: what 300 ms take at 2 billion a second.
const MOST: f64 = 600e6;
/// The page that `crates/report/tests/pages.rs` makes of such a run, and its result.
const RUN: &str = "hour-of-names";

pub(super) const BENCH: Bench = Bench {
    name: "page",
    about: "Instructions of making the page of an hour with 500 names, counted by valgrind.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    find("valgrind").context("valgrind is needed to count instructions: install it")?;
    let folder = env::temp_dir().join(format!("brunt-benchmarks-{}-page", std::process::id()));
    fs::create_dir_all(&folder)?;
    let counted = counted(setup, &folder);
    // A folder that stays behind does no harm.
    let _ = fs::remove_dir_all(&folder);
    let count = counted?;
    println!("the page of an hour with 500 names: {:.0} million instructions\n", count / 1e6);
    let (wanted, got) = (format!("≤ {:.0} million", MOST / 1e6), format!("{:.0} million", count / 1e6));
    Ok(vec![Bar::new("an hour, 500 names", wanted, got, count <= MOST)])
}

fn counted(setup: &Setup, folder: &Path) -> anyhow::Result<f64> {
    // Built as make test builds it, so that nothing is compiled twice.
    let words = ["--config", ".ci/tests.toml", "test", "--quiet", "--workspace", "--features", "brunt/schema", "--test", "pages"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let made = Command::new("cargo").args(words).current_dir(root).env("BRUNT_PAGES", folder).status()?;
    ensure!(made.success(), "the result of the run was not made: cargo test --test pages failed");
    let file = |extension: &str| folder.join(format!("{RUN}.{extension}")).display().to_string();
    let arguments = ["report".to_owned(), file("json"), "-o".to_owned(), file("html")];
    fs::remove_file(file("html"))?;
    let count = instructions_of_all(setup.client_core, &setup.brunt, &arguments)?;
    ensure!(Path::new(&file("html")).exists(), "brunt report made no page");
    Ok(count as f64)
}
