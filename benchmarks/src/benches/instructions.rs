//! Instructions of a request in brunt itself, relative to another build of brunt.

use std::path::{Path, PathBuf};
use std::{env, fs};

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
/// The most instructions of a request, relative to the other build.
const MOST: f64 = 1.01;
/// How often each length is run, by default.
const ROUNDS: usize = 5;
/// The ratio of the longer run's requests to the shorter's. Both have the same beginning and end and the same first
/// second, in which brunt does more than in others (it looks at more answers).
const SHORTER: u64 = 3;
/// The numbers of requests of the two calm runs, and their rate.
const CALM: [u64; 2] = [100, 600];
const CALM_PER_S: u64 = 100;

pub(super) const BENCH: Bench = Bench {
    name: "instructions",
    about: "Instructions of a request in five cases, counted by valgrind, compared to the brunt that BRUNT_BASE names.",
    run,
};

/// A kind of load.
struct Case {
    name: &'static str,
    /// Requests of the longer run.
    many: u64,
    tls: bool,
    /// brunt's arguments for a run of this length at this URL.
    arguments: fn(length: Length, url: &str) -> Vec<String>,
}

/// How many requests a run makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// This many requests, as fast as possible.
    InARow(u64),
    /// This many requests, [`CALM_PER_S`] a second.
    Calm(u64),
}

/// What a run cost.
#[derive(Debug, Clone, Copy)]
struct Ran {
    requests: f64,
    seconds: f64,
    instructions: f64,
}

impl Ran {
    /// The difference to a shorter run.
    fn less(self, shorter: Self) -> Self {
        Self {
            requests: self.requests - shorter.requests,
            seconds: self.seconds - shorter.seconds,
            instructions: self.instructions - shorter.instructions,
        }
    }
}

const CASES: [Case; 5] = [
    Case { name: "flood", many: 30_000, tls: false, arguments: |length, url| flood(length, url, &[]) },
    Case { name: "TLS", many: 18_000, tls: true, arguments: |length, url| flood(length, url, &["-k"]) },
    Case {
        name: "Lua, both hooks",
        many: 9_000,
        tls: false,
        arguments: |length, url| flood(length, url, &["-s", &script("interpreted.lua")]),
    },
    Case { name: "scenario", many: 9_000, tls: false, arguments: scenario },
    Case {
        name: "HTTP/2",
        many: 24_000,
        tls: false,
        arguments: |length, url| flood(length, url, &["--http", "2", "--streams", "1"]),
    },
];

/// The arguments of every run. The kernel reports arrival times at a rate of its own, so that is off.
const COMMON: [&str; 8] = ["-t", "1", "--seed", "1", "--quiet", "--no-save", "--arrival-times", "read"];

/// One connection: with several, the number of answers that come at once would depend on the target.
fn flood(length: Length, url: &str, more: &[&str]) -> Vec<String> {
    let (requests, rate) = match length {
        Length::InARow(requests) => (requests.to_string(), None),
        Length::Calm(requests) => (requests.to_string(), Some(CALM_PER_S.to_string())),
    };
    let rate = rate.as_deref().map_or(Vec::new(), |rate| vec!["-r", rate]);
    let words = [&COMMON[..], &["-c", "1", "-n", &requests], &rate, more, &[url]].concat();
    words.into_iter().map(str::to_owned).collect()
}

fn scenario(length: Length, url: &str) -> Vec<String> {
    let (requests, pause) = match length {
        Length::InARow(requests) => (requests, 0.0),
        Length::Calm(requests) => (requests, 1.0 / CALM_PER_S as f64),
    };
    let (iterations, pause) = (format!("ITERATIONS={requests}"), format!("PAUSE={pause}"));
    let base = ["--base-url", url.trim_end_matches('/'), "--env", &iterations, "--env", &pause];
    let words = [&["run"], &COMMON[..], &base].concat();
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

    /// The range of the values, relative to their median.
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

/// Instructions of a request at the speed of brunt without valgrind: the cost of a second itself (points of series,
/// looks at answers) is subtracted, since under valgrind a second has some fifty times fewer requests.
fn a_request(setup: &Setup, brunt: &Path, case: &Case, url: &str) -> anyhow::Result<f64> {
    let ran = |length| {
        let result = RunResult::new();
        let arguments = [(case.arguments)(length, url), vec!["-o".to_owned(), result.path.display().to_string()]];
        let instructions = instructions(setup.client_core, brunt, &arguments.concat())? as f64;
        let (Length::InARow(requests) | Length::Calm(requests)) = length;
        anyhow::Ok(Ran { requests: requests as f64, seconds: result.seconds()? as f64, instructions })
    };
    let busy = ran(Length::InARow(case.many))?.less(ran(Length::InARow(case.many / SHORTER))?);
    let [short, long] = CALM;
    let calm = ran(Length::Calm(long))?.less(ran(Length::Calm(short))?);
    Ok(of_a_request(busy, calm))
}

/// The file for a run's result.
struct RunResult {
    path: PathBuf,
}

impl RunResult {
    fn new() -> Self {
        Self { path: env::temp_dir().join(format!("brunt-benchmarks-{}-result.json", std::process::id())) }
    }

    /// The number of seconds that the run recorded, including the unfinished last one. The clock's time could differ by
    /// a second, a percent of a short run.
    fn seconds(&self) -> anyhow::Result<usize> {
        let text = fs::read_to_string(&self.path).context("the run left no result")?;
        let result: serde_json::Value = serde_json::from_str(&text)?;
        Ok(result["series"].as_array().context("the result has no series")?.len())
    }
}

impl Drop for RunResult {
    fn drop(&mut self) {
        // A file that stays behind does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// Solves `instructions = a × requests + b × seconds` for `a`.
fn of_a_request(busy: Ran, calm: Ran) -> f64 {
    (busy.instructions * calm.seconds - calm.instructions * busy.seconds)
        / (busy.requests * calm.seconds - calm.requests * busy.seconds)
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
            let in_a_row = [case.many / SHORTER, case.many].map(Length::InARow);
            for lengths in [in_a_row, CALM.map(Length::Calm)] {
                let [few, many] = lengths.map(|length| (case.arguments)(length, "http://127.0.0.1:1/"));
                let differing = few.iter().zip(&many).filter(|(one, other)| one != other).count();
                assert_eq!((few.len(), differing), (many.len(), 1), "{}", case.name);
            }
        }
    }

    #[test]
    fn what_a_second_and_a_run_cost_is_not_a_requests() {
        let ran = |requests: f64, seconds: f64| Ran {
            requests,
            seconds,
            instructions: 3000.0 * requests + 200_000.0 * seconds + 5_000_000.0,
        };
        let (busy, calm) = (ran(21_000.0, 8.0).less(ran(7000.0, 3.0)), ran(600.0, 6.9).less(ran(100.0, 1.9)));
        assert!((of_a_request(busy, calm) - 3000.0).abs() < 1e-6);
    }

    #[test]
    fn spread_is_relative_to_the_median() {
        let counted = Counted { rounds: vec![99.0, 100.0, 103.0] };
        assert!((counted.spread().unwrap() - 0.04).abs() < 1e-9);
    }
}
