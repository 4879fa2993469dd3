//! A run's JSON result, read and checked.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;

use crate::program::{Done, brunt, done};

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    json: Value,
}

/// Runs brunt with these arguments, to this exit status; its result, which adds up.
#[track_caller]
pub fn report<A: AsRef<OsStr>>(status: i32, args: impl IntoIterator<Item = A>) -> Report {
    Report::parse(&done(brunt(args).args(["--format", "json"])).with_status(status))
}

/// The result of an example's scenarios against the target at `base`.
#[track_caller]
pub fn example(name: &str, base: &str) -> Report {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios").join(name);
    report(0, ["run", "-t", "2", "--base-url", base, file.to_str().unwrap()])
}

impl Report {
    /// What a run with `--format json` printed.
    #[track_caller]
    pub fn parse(done: &Done) -> Self {
        let json = serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:#?}"));
        let report = Self { json };
        report.assert_adds_up();
        report
    }

    /// What a run wrote into a file.
    #[track_caller]
    pub fn read(path: &str) -> Self {
        let json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let report = Self { json };
        report.assert_adds_up();
        report
    }

    /// Nothing vanishes: every call that was due ended in exactly one way, and is in the distributions.
    #[track_caller]
    fn assert_adds_up(&self) {
        let outcomes = &self.json["outcomes"];
        let [due, answered, failed, unfinished, unsent] =
            ["due", "answered", "failed", "unfinished", "unsent"].map(|name| self.outcome(name));
        assert_eq!(due, answered + failed + unfinished + unsent, "{outcomes:#}");
        assert_eq!(self.statuses().values().sum::<u64>(), answered, "{outcomes:#}");
        assert_eq!(self.failures().values().sum::<u64>(), failed, "{outcomes:#}");
        for failure in outcomes["failures"].as_array().unwrap() {
            let reasons = failure["reasons"].as_array().unwrap();
            let explained: u64 = reasons.iter().map(|reason| reason["count"].as_u64().unwrap()).sum();
            assert_eq!(explained, failure["count"].as_u64().unwrap(), "{outcomes:#}");
        }
        let count = |times: &str| self.json["times"][times]["count"].as_u64().unwrap_or(0);
        assert_eq!(count("response"), due, "{outcomes:#}");
        assert_eq!(count("first_byte"), answered, "{outcomes:#}");
        assert_eq!(count("failed"), failed, "{outcomes:#}");
    }

    /// There are so many checks, and each held so often.
    #[track_caller]
    pub fn assert_checks_hold(&self, count: usize, times: u64) {
        let checks = self.at("/names/checks").as_array().unwrap();
        let hold = checks.iter().all(|check| check["fails"] == 0 && check["passes"] == times);
        assert!(hold && checks.len() == count, "{checks:#?}\n{:#}", self.at("/names/scenarios/0/tracebacks"));
    }

    /// Something in the document, by its JSON pointer.
    #[track_caller]
    pub fn at(&self, pointer: &str) -> &Value {
        self.json.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {:#}", self.json))
    }

    #[track_caller]
    pub fn number(&self, pointer: &str) -> u64 {
        self.at(pointer).as_u64().unwrap_or_else(|| panic!("{pointer} is not a number: {}", self.at(pointer)))
    }

    /// `due`, `answered`, `failed`, …
    #[track_caller]
    pub fn outcome(&self, name: &str) -> u64 {
        self.number(&format!("/outcomes/{name}"))
    }

    /// `made`, `failed`, `reconnects`, `tls_resumed`.
    #[track_caller]
    pub fn connections(&self, name: &str) -> u64 {
        self.number(&format!("/connections/{name}"))
    }

    pub fn statuses(&self) -> BTreeMap<u64, u64> {
        let statuses = self.json["outcomes"]["statuses"].as_array().unwrap();
        statuses.iter().map(|s| (s["status"].as_u64().unwrap(), s["count"].as_u64().unwrap())).collect()
    }

    pub fn failures(&self) -> BTreeMap<&str, u64> {
        let failures = self.json["outcomes"]["failures"].as_array().unwrap();
        failures.iter().map(|f| (f["failure"].as_str().unwrap(), f["count"].as_u64().unwrap())).collect()
    }

    /// Every failure with every reason for it, as `name: reason`.
    pub fn reasons(&self) -> BTreeMap<String, u64> {
        let mut reasons = BTreeMap::new();
        for failure in self.json["outcomes"]["failures"].as_array().unwrap() {
            for reason in failure["reasons"].as_array().unwrap() {
                let text = format!("{}: {}", failure["failure"].as_str().unwrap(), reason["reason"].as_str().unwrap());
                reasons.insert(text, reason["count"].as_u64().unwrap());
            }
        }
        reasons
    }

    /// Asserts that `count` calls were due, and all of them answered with `status`.
    #[track_caller]
    pub fn assert_all(&self, count: u64, status: u64) {
        assert_eq!(self.statuses(), BTreeMap::from([(status, count)]), "{:#}", self.json["outcomes"]);
        assert_eq!(self.outcome("due"), count, "{:#}", self.json["outcomes"]);
    }
}
