//! How late calls go: by a timer, and by a worker that waits awake, beside a loop that does nothing but wait.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::{Bench, Run};
use crate::bar::Bar;
use crate::clients::figures;
use crate::process::{Process, anywhere};
use crate::race::{Watched, disturbed, median};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// Calls a second.
const RATES: [u64; 3] = [1_000, 10_000, 50_000];
/// The length of each run.
const LENGTH: Duration = Duration::from_secs(5);
/// The most that half of the calls may be late, in µs.
const MOST_P50_US: f64 = 5.0;
/// How much later than in a bare loop one call in a hundred may go, in µs.
const OVER_BARE_US: f64 = 10.0;

pub(super) const BENCH: Bench = Bench {
    name: "pacing",
    about: "1,000, 10,000 and 50,000 calls a second: how late they go by --pace timer and spin, beside a bare loop that spins.",
    run,
};

/// How late calls went, in µs, and what was used for it.
struct Lateness {
    p50: f64,
    p99: f64,
    /// CPU time over wall time.
    cpu: f64,
    /// The share of a core that others used.
    others: f64,
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::target(setup, &[])?;
    let mut table = Table::new(&["calls/s", "waits", "late p50 µs", "late p99 µs", "CPU", "used by others"]);
    let mut bars = Vec::new();
    for rate in RATES {
        let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..setup.rounds {
            setup.wait_for_quiet();
            rounds[0].push(bare(rate));
            rounds[1].push(paced(setup, &server, rate, "spin")?);
            rounds[2].push(paced(setup, &server, rate, "timer")?);
        }
        let [bare, spin, timer] = rounds.map(|rounds| middle(&rounds));
        let (bare, spin, timer) = (bare?, spin?, timer?);
        for (name, of) in [("bare loop", &bare), ("--pace spin", &spin), ("--pace timer", &timer)] {
            let percent = |share: f64| format!("{:.0} %", share * 100.0);
            let us = |us: f64| format!("{us:.1}");
            table.row([rate.to_string(), name.to_owned(), us(of.p50), us(of.p99), percent(of.cpu), percent(of.others)]);
        }
        let excuse = disturbed(spin.others);
        let most_p99 = bare.p99 + OVER_BARE_US;
        bars.push(
            Bar::new(
                format!("{rate} calls/s, spin: late p50"),
                format!("< {MOST_P50_US} µs"),
                format!("{:.1} µs ({:.1} by timer)", spin.p50, timer.p50),
                spin.p50 < MOST_P50_US,
            )
            .excused(excuse.clone()),
        );
        bars.push(
            Bar::new(
                format!("{rate} calls/s, spin: late p99"),
                format!("≤ {most_p99:.1} µs: the bare loop's and {OVER_BARE_US}"),
                format!("{:.1} µs ({:.1} by timer)", spin.p99, timer.p99),
                spin.p99 <= most_p99,
            )
            .excused(excuse),
        );
    }
    println!("{}; brunt -t 1 -d {}s, not pinned\n\n{table}", server.about, LENGTH.as_secs());
    Ok(bars)
}

/// The median over the rounds.
fn middle(rounds: &[Lateness]) -> anyhow::Result<Lateness> {
    let of = |field: fn(&Lateness) -> f64| median(rounds.iter().map(field).collect()).context("no rounds");
    Ok(Lateness { p50: of(|l| l.p50)?, p99: of(|l| l.p99)?, cpu: of(|l| l.cpu)?, others: of(|l| l.others)? })
}

/// brunt at `rate`. Not on one core: a worker that spins needs another for the rest of the program.
fn paced(setup: &Setup, server: &Server, rate: u64, pace: &str) -> anyhow::Result<Lateness> {
    let mut client = anywhere(&setup.brunt);
    let options = format!("-t 1 --format json --quiet -r {rate} -d {}s --pace {pace}", LENGTH.as_secs());
    client.args(options.split_whitespace()).arg(&server.url);
    let work = || Process::client(client, "brunt")?.finish(LENGTH + Duration::from_secs(60), |_| {});
    let (around, finished) = Watched::run(setup, server, work)?;
    let run = Run { result: figures(&finished.stdout)?, finished, around };
    Ok(Lateness {
        p50: run.quantile("lag", "p50")? as f64 / 1e3,
        p99: run.quantile("lag", "p99")? as f64 / 1e3,
        cpu: crate::process::ticks(run.finished.cpu_ticks).as_secs_f64() / run.finished.wall.as_secs_f64(),
        others: run.others(),
    })
}

/// A loop that looks at the clock until a call would be due: what this machine allows.
fn bare(rate: u64) -> Lateness {
    let began = Instant::now();
    let mut late: Vec<u64> = (0..rate * LENGTH.as_secs())
        .map(|number| {
            let due = Duration::from_nanos(number * 1_000_000_000 / rate);
            loop {
                let now = began.elapsed();
                if now >= due {
                    break (now - due).as_nanos() as u64;
                }
            }
        })
        .collect();
    late.sort_unstable();
    let at = |share: f64| late.get((late.len() as f64 * share) as usize).map_or(0.0, |ns| *ns as f64 / 1e3);
    Lateness { p50: at(0.5), p99: at(0.99), cpu: 1.0, others: 0.0 }
}
