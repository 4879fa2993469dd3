//! What starting and ending cost: instructions, memory, and the time that a run takes beyond its own.

use std::time::Duration;

use anyhow::Context as _;

use super::Bench;
use crate::bar::Bar;
use crate::counted::whole;
use crate::process::{Process, pinned};
use crate::race::median;
use crate::servers::Server;
use crate::setup::{Setup, find};
use crate::table::Table;

/// The most instructions, in millions, and the most resident memory, in MB, of each command.
const VERSION: (f64, f64) = (4.0, 20.0);
const RUN: (f64, f64) = (32.0, 45.0);
/// The most wall time of a run of one second.
const MOST_WALL: Duration = Duration::from_millis(1_050);
/// How often wall times are taken, by default.
const ROUNDS: usize = 10;

pub(super) const BENCH: Bench = Bench {
    name: "start",
    about: "What brunt --version and a run of one request cost, and how long a run of a second takes.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    find("valgrind").context("valgrind is needed to count instructions: install it")?;
    let server = Server::target(setup, &[])?;
    let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let version = words("--version");
    let one = words(&format!("-t 1 -c 1 -n 1 --quiet --no-save --format json {}", server.url));
    let mut table = Table::new(&["command", "instructions, M", "resident MB", "CPU ms"]);
    let mut bars = Vec::new();
    for (name, arguments, (most_m, most_mb)) in [("--version", &version, VERSION), ("-n 1", &one, RUN)] {
        let millions = whole(setup.client_core, &setup.brunt, arguments)? as f64 / 1e6;
        let (cpu_ms, bytes) = used(setup, arguments)?;
        let megabytes = bytes as f64 / 1e6;
        table.row([name.to_owned(), format!("{millions:.1}"), format!("{megabytes:.1}"), format!("{cpu_ms:.1}")]);
        let of = |figure: &str| format!("{name}: {figure}");
        bars.push(Bar::new(
            of("instructions"),
            format!("≤ {most_m} M"),
            format!("{millions:.1} M"),
            millions <= most_m,
        ));
        bars.push(Bar::new(
            of("resident"),
            format!("≤ {most_mb} MB"),
            format!("{megabytes:.1} MB"),
            megabytes <= most_mb,
        ));
    }
    println!("{table}");
    bars.push(second(setup, &server)?);
    Ok(bars)
}

/// CPU time in ms, the median, and the most resident memory in bytes.
fn used(setup: &Setup, arguments: &[String]) -> anyhow::Result<(f64, u64)> {
    let (mut times, mut peak) = (Vec::new(), 0);
    for _ in 0..setup.rounds_or(ROUNDS) {
        let mut command = pinned(setup.client_core, &setup.brunt);
        command.args(arguments);
        let used = Process::client(command, "brunt")?.finish_used(Duration::from_secs(30))?;
        times.push(used.cpu.as_secs_f64() * 1e3);
        peak = peak.max(used.peak_bytes);
    }
    Ok((median(times).context("no rounds")?, peak))
}

/// The wall time of a run of one second.
fn second(setup: &Setup, server: &Server) -> anyhow::Result<Bar> {
    let mut times = Vec::new();
    for _ in 0..setup.rounds_or(ROUNDS) {
        let mut command = pinned(setup.client_core, &setup.brunt);
        command.args("-t 1 -r 1000 -d 1s --quiet --no-save --format json".split(' ')).arg(&server.url);
        times.push(Process::client(command, "brunt")?.finish_used(Duration::from_secs(30))?.wall.as_secs_f64());
    }
    let (least, wall) = (times.iter().copied().fold(f64::INFINITY, f64::min), median(times).context("no rounds")?);
    let got = format!("{wall:.3} s, at best {least:.3} s");
    Ok(Bar::new("a run of 1 s", format!("≤ {:.2} s", MOST_WALL.as_secs_f64()), got, wall <= MOST_WALL.as_secs_f64()))
}
