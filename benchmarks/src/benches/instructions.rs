//! Instructions of a request, in brunt itself, beside another brunt's.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Bench;
use crate::bar::Bar;
use crate::counted::instructions;
use crate::race::median;
use crate::servers::Server;
use crate::setup::{Setup, find};
use crate::table::Table;

/// The variable that names the brunt to compare with.
const BASE: &str = "BRUNT_BASE";
/// The most instructions a request, compared to the other brunt's.
const MOST: f64 = 1.01;
/// How often each length is run, where nothing else is asked for.
const ROUNDS: usize = 5;
/// Requests of the shorter run. What it takes to begin and to end is in both.
const FEW: u64 = 1_000;

pub(super) const BENCH: Bench = Bench {
    name: "instructions",
    about: "Instructions of a request in five cases, counted by valgrind, compared to the brunt that BRUNT_BASE names.",
    run,
};

/// What is asked of a target.
struct Case {
    name: &'static str,
    /// Requests of the longer run.
    many: u64,
    tls: bool,
    /// brunt's arguments, for so many requests at this URL.
    arguments: fn(requests: u64, url: &str) -> Vec<String>,
}

const CASES: [Case; 5] = [
    Case { name: "flood", many: 21_000, tls: false, arguments: |requests, url| flood(requests, url, &[]) },
    Case { name: "TLS", many: 11_000, tls: true, arguments: |requests, url| flood(requests, url, &["-k"]) },
    Case {
        name: "Lua, both hooks",
        many: 4_000,
        tls: false,
        arguments: |requests, url| flood(requests, url, &["-s", &script("interpreted.lua")]),
    },
    Case { name: "scenario", many: 4_000, tls: false, arguments: scenario },
    Case {
        name: "HTTP/2",
        many: 16_000,
        tls: false,
        arguments: |requests, url| flood(requests, url, &["--http", "2", "--streams", "1"]),
    },
];

/// What every run has. The kernel is asked for arrival times at a rate of its own, so it is not asked here.
const COMMON: [&str; 8] = ["-t", "1", "--seed", "1", "--quiet", "--no-save", "--arrival-times", "read"];

/// One connection: with several, how many answers come at once would depend on the target.
fn flood(requests: u64, url: &str, more: &[&str]) -> Vec<String> {
    let requests = requests.to_string();
    let words = [&COMMON[..], &["-c", "1", "-n", &requests], more, &[url]].concat();
    words.into_iter().map(str::to_owned).collect()
}

fn scenario(requests: u64, url: &str) -> Vec<String> {
    let iterations = format!("ITERATIONS={requests}");
    let words = [&["run"], &COMMON[..], &["--base-url", url.trim_end_matches('/'), "--env", &iterations]].concat();
    words.into_iter().map(str::to_owned).chain([script("counted.lua")]).collect()
}

fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name).display().to_string()
}

/// A request's instructions in each round.
struct Counted {
    rounds: Vec<f64>,
}

impl Counted {
    fn median(&self) -> anyhow::Result<f64> {
        median(self.rounds.clone()).context("no rounds")
    }

    /// The greatest less the least, over the median.
    fn spread(&self) -> anyhow::Result<f64> {
        let least = self.rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = self.rounds.iter().copied().fold(0.0, f64::max);
        Ok((greatest - least) / self.median()?)
    }
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    find("valgrind").context("valgrind is needed to count instructions: install it")?;
    let base = match env::var_os(BASE) {
        Some(path) => Some(PathBuf::from(path).canonicalize().with_context(|| format!("{BASE} names no file"))?),
        None => None,
    };
    let rounds = setup.rounds_or(ROUNDS);
    println!("one thread, one connection; medians of {rounds} rounds; spread: from least to greatest\n");
    let mut table = Table::new(&["case", "instructions/request", "spread", "base", "spread", "ratio"]);
    let mut bars = Vec::new();
    for case in &CASES {
        let server = Server::target(setup, if case.tls { &["--tls"] } else { &[] })?;
        let mut counted = Counted { rounds: Vec::new() };
        let mut of_base = Counted { rounds: Vec::new() };
        for _ in 0..rounds {
            counted.rounds.push(a_request(setup, &setup.brunt, case, &server.url)?);
            if let Some(base) = &base {
                of_base.rounds.push(a_request(setup, base, case, &server.url)?);
            }
        }
        let mut row = vec![case.name.to_owned()];
        row.extend([format!("{:.0}", counted.median()?), percent(counted.spread()?)]);
        let wanted = format!("≤ {MOST:.2} × base");
        if base.is_some() {
            let ratio = counted.median()? / of_base.median()?;
            row.extend([format!("{:.0}", of_base.median()?), percent(of_base.spread()?), format!("{ratio:.4}")]);
            bars.push(Bar::new(case.name, wanted, format!("{ratio:.4} × base"), ratio <= MOST));
        } else {
            bars.push(Bar::not_measured(case.name, wanted, format!("{BASE} names no other brunt")));
        }
        table.row(row);
    }
    println!("{table}");
    Ok(bars)
}

/// Instructions of a request: the difference of two lengths, over the difference of their requests.
fn a_request(setup: &Setup, brunt: &Path, case: &Case, url: &str) -> anyhow::Result<f64> {
    let count = |requests| instructions(setup.client_core, brunt, &(case.arguments)(requests, url));
    let (few, many) = (count(FEW)?, count(case.many)?);
    Ok(many.saturating_sub(few) as f64 / (case.many - FEW) as f64)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_requests_alone_differs_between_two_lengths() {
        for case in &CASES {
            let [few, many] = [FEW, case.many].map(|requests| (case.arguments)(requests, "http://127.0.0.1:1/"));
            let differing = few.iter().zip(&many).filter(|(one, other)| one != other).count();
            assert_eq!((few.len(), differing), (many.len(), 1), "{}", case.name);
        }
    }

    #[test]
    fn spread_is_relative_to_the_median() {
        let counted = Counted { rounds: vec![99.0, 100.0, 103.0] };
        assert!((counted.spread().unwrap() - 0.04).abs() < 1e-9);
    }
}
