//! The rules of the crate's documentation, each with what happens if it is broken. Nothing here sleeps: time is made up,
//! and every step of service and clients is taken by the test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]
#![allow(clippy::needless_for_each, reason = "a line for each step of a test reads better")]

mod at_once;
mod bounds;
mod browsers;
mod hostile;
mod identity;
mod leader;
mod no_cache;
mod origin;
mod semantics;
mod streaming;

/// All sources below a folder, one after the other.
fn sources(folder: &std::path::Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { sources(&path) } else { std::fs::read_to_string(path).unwrap() }).collect()
}

#[test]
fn each_probe_of_the_list_is_a_test() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = sources(&here.join("tests")) + &sources(&here.join("../proxy/tests"));
    let list = include_str!("../PROBES.md");
    let mut probes = 0;
    let is_probe = |line: &&str| line.strip_prefix("| ").is_some_and(|cell| cell.starts_with(char::is_numeric));
    for line in list.lines().filter(is_probe) {
        let names = line.rsplit(" | ").next().unwrap().split('`').skip(1).step_by(2);
        let missing = names.clone().find(|name| !tests.contains(&format!("fn {name}() {{")));
        assert!(missing.is_none() && names.count() > 0, "{line}");
        probes += 1;
    }
    assert_eq!(probes, 33);
}
