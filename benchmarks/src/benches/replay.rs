//! What a replay costs beside a run at the same rate with the same requests in `--url-lines`, and how late both send them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use anyhow::Context as _;

use super::{Bench, CONNECTIONS, CpuComparison, Run, figures};
use crate::bar::Bar;
use crate::clients::{CLIENTS, Client, Load};
use crate::process::{Process, pinned};
use crate::race::{Watched, disturbed, median};
use crate::servers::Server;
use crate::setup::{Installed, Setup};

/// Requests a second.
const RATE: u64 = 5000;
/// The most CPU time of a request, relative to `--url-lines`.
const MOST: f64 = 1.30;
/// The most generator lag at the 99th percentile, in nanoseconds.
const MOST_LAG_NS: f64 = 1e6;

pub(super) const BENCH: Bench = Bench {
    name: "replay",
    about: "A log of 5,000 requests a second of 64 clients, replayed, beside -r 5000 with the same requests in --url-lines, both at once.",
    run,
};

const REPLAY: Client =
    Client { name: "brunt replay", version: &[], scripts: false, arguments: replay, read: CLIENTS[0].read };
const LINES: Client =
    Client { name: "--url-lines", version: &[], scripts: false, arguments: lines, read: CLIENTS[0].read };

/// The folder with the requests of both, given in place of a script.
fn folder(load: &Load) -> &Path {
    load.script.as_deref().unwrap_or(Path::new("."))
}

fn replay(load: &Load) -> Vec<String> {
    let log = folder(load).join("access.log").display().to_string();
    ["replay", "--format", "json", "--quiet", "--no-save", "-t", "1", &log, &load.url].map(str::to_owned).to_vec()
}

fn lines(load: &Load) -> Vec<String> {
    let lines = folder(load).join("urls.txt").display().to_string();
    let (rate, connections) = (RATE.to_string(), load.connections.to_string());
    let length = format!("{}s", load.length.as_secs());
    let words = ["--format", "json", "--quiet", "--no-save", "-t", "1", "-c", &connections, "-r", &rate, "-d", &length];
    [&words[..], &["--url-lines", &lines, &load.url]].concat().into_iter().map(str::to_owned).collect()
}

/// A folder that is removed when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// Makes a folder with a log of this many seconds in the combined format, and its requests as lines.
    fn new(seconds: u64) -> anyhow::Result<Self> {
        let folder = Self(env::temp_dir().join(format!("brunt-benchmarks-{}-replay", process::id())));
        fs::create_dir_all(&folder.0)?;
        let (mut log, mut lines) = (String::new(), String::new());
        for nth in 0..seconds * RATE {
            let (client, second) = (nth % u64::from(CONNECTIONS), nth / RATE);
            let path = format!("/users/{nth}?page={}", nth % 7);
            let clock = format!("01/Jan/2026:00:{:02}:{:02} +0000", second / 60, second % 60);
            let _ = writeln!(
                log,
                "10.0.0.{client} - - [{clock}] \"GET {path} HTTP/1.1\" 200 13 \"-\" \"Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0\""
            );
            let _ = writeln!(lines, "{path}");
        }
        fs::write(folder.0.join("access.log"), log)?;
        fs::write(folder.0.join("urls.txt"), lines)?;
        Ok(folder)
    }
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let folder = Folder::new(setup.length.as_secs())?;
    let server = Server::target(setup, &[])?;
    let load = Load { script: Some(folder.0.clone()), ..Load::new(&server.url, CONNECTIONS, setup.length) };
    let installed = |client| Installed { client, program: setup.brunt.clone(), version: String::new() };
    let beside = CpuComparison::measured(setup, &load, &installed(&REPLAY), &installed(&LINES))?;
    println!("{}; {:.2} µs of CPU a request of the replay\n", server.about, beside.cpu_us);
    // By turns: what disturbs one disturbs the other.
    let (mut replays, mut floods) = (Vec::new(), Vec::new());
    for round in 0..setup.rounds {
        for is_replay in if round % 2 == 0 { [true, false] } else { [false, true] } {
            let (runs, arguments) = if is_replay { (&mut replays, replay(&load)) } else { (&mut floods, lines(&load)) };
            runs.push(alone(setup, &server, &load, arguments)?);
        }
    }
    let lag = |runs: &[Alone]| median(runs.iter().map(|run| run.lag_ns).collect()).context("no rounds");
    let (lag, of_lines) = (lag(&replays)?, lag(&floods)?);
    let others = median(replays.iter().map(|run| run.others).collect()).context("no rounds")?;
    let text = format!("{:.0} µs (--url-lines: {:.0} µs)", lag / 1e3, of_lines / 1e3);
    let bar = Bar::new("p99 generator lag, by turns", "< 1 ms", text, lag < MOST_LAG_NS);
    Ok(vec![beside.bar("CPU per request, both at once", MOST), bar.excused(disturbed(others))])
}

/// A run with the core for itself.
struct Alone {
    /// The 99th percentile of how late requests were sent, in nanoseconds.
    lag_ns: f64,
    /// The share of a core that others used, from 0 to 1.
    others: f64,
}

fn alone(setup: &Setup, server: &Server, load: &Load, arguments: Vec<String>) -> anyhow::Result<Alone> {
    setup.wait_for_quiet();
    let mut command = pinned(setup.client_core, &setup.brunt);
    command.args(arguments);
    let work = || Process::client(command, "brunt")?.finish(load.length * 10, |_| {});
    let (around, finished) = Watched::run(setup, server, work)?;
    let run = Run { result: figures(&finished.stdout)?, finished, around };
    Ok(Alone { lag_ns: run.quantile("lag", "p99")? as f64, others: run.others() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_and_its_lines_have_the_same_requests() {
        let folder = Folder::new(2).unwrap();
        let read = |name: &str| fs::read_to_string(folder.0.join(name)).unwrap();
        let (log, lines) = (read("access.log"), read("urls.txt"));
        assert_eq!((log.lines().count(), lines.lines().count()), (10_000, 10_000));
        assert!(log.lines().zip(lines.lines()).all(|(logged, line)| logged.contains(&format!("GET {line} HTTP"))));
        assert!(log.lines().nth(5000).unwrap().contains("00:00:01 +0000"));
    }
}
