//! Secrets are on the wire and nowhere else: one is planted in every place that takes one, and everything that brunt wrote
//! is searched for it. Each must have reached the target, so that no test passes because nothing was sent.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod flags;
mod origin;
#[path = "../cli/program.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod program;
mod scripts;
mod services;

use std::path::Path;

use crate::origin::Origin;
use crate::program::{Directory, Done, brunt, done};

/// What every secret begins with; behind it stands where it was planted.
const MARK: &str = "hunter2in";

/// `me:hunter2in` in base64, up to where its end depends on what follows.
const MARK_IN_BASE64: &str = "bWU6aHVudGVyMml";

fn secret(place: &str) -> String {
    format!("{MARK}{place}")
}

/// Fails where a text has a secret in it, with its surroundings.
#[track_caller]
fn search(what: &str, content: &[u8]) {
    for mark in [MARK, MARK_IN_BASE64] {
        if let Some(at) = content.windows(mark.len()).position(|window| window == mark.as_bytes()) {
            let around = &content[at.saturating_sub(200)..(at + 60).min(content.len())];
            panic!("{what} has a secret: … {} …", String::from_utf8_lossy(around));
        }
    }
}

#[track_caller]
fn search_done(what: &str, done: &Done) {
    search(&format!("standard output of {what}"), done.stdout.as_bytes());
    search(&format!("standard error of {what}"), done.stderr.as_bytes());
}

/// Searches every file in a directory and below it.
#[track_caller]
fn search_files(directory: &Path, but: &[&str]) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            search_files(&path, but);
        } else if !but.iter().any(|name| path.ends_with(name)) {
            search(&path.display().to_string(), &std::fs::read(&path).unwrap());
        }
    }
}

/// Fails unless the target was sent the secrets of all these places.
#[track_caller]
fn reached(origin: &Origin, places: &[&str]) {
    let sent = origin.take();
    for place in places {
        assert!(sent.contains(&secret(place)), "the secret in {place} did not reach the target:\n{sent}");
    }
}

/// Every way of writing a single run down, into a directory, and every way of showing it afterwards.
struct Outputs {
    directory: Directory,
    /// The files of the test that have the secrets.
    own: Vec<&'static str>,
}

impl Outputs {
    fn new() -> Self {
        Self { directory: Directory::new(), own: Vec::new() }
    }

    /// A file that has secrets in it; its path.
    fn own(&mut self, name: &'static str, content: &str) -> String {
        self.own.push(name);
        self.directory.file(name, content)
    }

    /// Runs brunt with these arguments and environment, and every output.
    #[track_caller]
    fn run(&self, args: &[&str], env: &[(&str, &str)], behind: &[&str]) -> Done {
        let mut command = brunt(args);
        for name in ["result.txt", "result.json", "result.csv", "result.xml"] {
            command.args(["-o", &self.directory.path(name)]);
        }
        command.args(["--html", &self.directory.path("page.html")]);
        command.args(["-v", "--write-plan", &self.directory.path("plan.json")]);
        command.args(["--store", &self.directory.path("runs.db"), "--name", "one"]).args(behind);
        let done = done(command.env_remove("BRUNT_NO_SAVE").envs(env.iter().copied())).with_status(0);
        search_done("the run", &done);
        done
    }

    /// Searches all that was written, and what is kept, in every format.
    #[track_caller]
    fn search(&self) {
        let store = self.directory.path("runs.db");
        for format in ["text", "wrk", "json", "csv", "junit", "html"] {
            let shown = done(&mut brunt(["show", "one", "--store", &store, "--format", format])).with_status(0);
            assert!(shown.stdout.len() > 100, "{format}: {shown:?}");
            search_done(format, &shown);
        }
        for args in [["runs", "--format", "json"], ["runs", "--format", "text"]] {
            search_done("the list", &done(brunt(args).args(["--store", &store])).with_status(0));
        }
        search_files(self.directory.as_ref(), &self.own);
    }
}
