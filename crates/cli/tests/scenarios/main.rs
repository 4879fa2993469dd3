//! `brunt run`: scenarios against the built-in target and nginx, and their results.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod calls;
mod javascript;
mod lifecycle;
mod mistakes;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../network/nginx.rs"]
mod nginx;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../cli/program.rs"]
mod program;
mod rows;
mod shown;
mod thresholds;

use serde_json::Value;

use crate::program::{Directory, brunt, done};

/// A script in a directory of its own, for a client with this base.
fn script(base: &str, text: &str) -> (Directory, String) {
    let directory = Directory::new();
    let prelude = format!("local brunt = require 'brunt'; local http = brunt.http {{ base = '{base}' }}\n");
    let path = directory.file("s.lua", prelude + text);
    (directory, path)
}

/// Runs a script with these further arguments, to this exit status; its result, which adds up.
#[track_caller]
fn play(path: &str, args: &[&str], status: i32) -> Value {
    let done = done(brunt(["run", path]).args(args).args(["--format", "json"])).with_status(status);
    let json: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:#?}"));
    let outcomes = &json["outcomes"];
    let count = |name: &str| outcomes[name].as_u64().unwrap();
    assert_eq!(
        count("due"),
        ["answered", "failed", "unfinished", "unsent"].map(count).iter().sum::<u64>(),
        "{outcomes:#}"
    );
    json
}
