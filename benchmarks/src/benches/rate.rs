//! A constant rate: whether calls are sent when they are due.

use std::time::Duration;

use anyhow::Context as _;

use super::{Bench, Run, brunt};
use crate::bar::Bar;
use crate::race::{disturbed, median};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// Calls a second.
const RATE: u64 = 20_000;
/// The length of a run.
const LENGTH: Duration = Duration::from_secs(10);
/// Bars, in nanoseconds.
const MOST_LAG_NS: f64 = 50e3;
const MOST_LAG_P99_NS: f64 = 300e3;

pub(super) const BENCH: Bench =
    Bench { name: "rate", about: "20,000 calls a second for 10 s: each is sent, and sent when it is due.", run };

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::target(setup, &[])?;
    let options = format!("-r {RATE} -d {}s", LENGTH.as_secs());
    let runs: Vec<Run> = (0..setup.rounds)
        .map(|_| {
            setup.wait_for_quiet();
            brunt(setup, &server, &options, LENGTH, |_| {})
        })
        .collect::<anyhow::Result<_>>()?;
    println!("{}; brunt {options}\n\n{}", server.about, table(&runs)?);
    let quiet: Vec<_> = runs.iter().filter(|run| disturbed(run.others()).is_none()).collect();
    let excuse = disturbed(median(runs.iter().map(Run::others).collect()).unwrap_or(0.0)).filter(|_| quiet.is_empty());
    let fair = if quiet.is_empty() { runs.iter().collect() } else { quiet };
    let due = RATE * LENGTH.as_secs();
    let mut answered = true;
    for run in &runs {
        answered &= run.count("due")? == due && run.count("answered")? == due;
    }
    let lag = median_of(&fair, "lag", "p50")?;
    let lag_p99 = median_of(&fair, "lag", "p99")?;
    let us = |ns: f64| format!("{:.1} µs", ns / 1e3);
    Ok(vec![
        Bar::new(
            "calls sent and answered",
            format!("{due} in each run"),
            if answered { "all" } else { "fewer" },
            answered,
        ),
        Bar::new("median generator lag", "< 50 µs", us(lag), lag < MOST_LAG_NS).excused(excuse.clone()),
        Bar::new("p99 generator lag", "< 300 µs", us(lag_p99), lag_p99 < MOST_LAG_P99_NS).excused(excuse),
    ])
}

fn median_of(runs: &[&Run], times: &str, name: &str) -> anyhow::Result<f64> {
    let values = runs.iter().map(|run| Ok(run.quantile(times, name)? as f64)).collect::<anyhow::Result<_>>()?;
    median(values).context("no run")
}

fn table(runs: &[Run]) -> anyhow::Result<Table> {
    let mut table = Table::new(&[
        "run",
        "due",
        "unsent",
        "lag p50 µs",
        "lag p99 µs",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "brunt's CPU",
        "used by others",
    ]);
    for (number, run) in runs.iter().enumerate() {
        let us = |times, name| Ok::<_, anyhow::Error>(format!("{:.1}", run.quantile(times, name)? as f64 / 1e3));
        let cpu = crate::process::ticks(run.finished.cpu_ticks).as_secs_f64() / run.finished.wall.as_secs_f64();
        table.row([
            (number + 1).to_string(),
            run.count("due")?.to_string(),
            run.count("unsent")?.to_string(),
            us("lag", "p50")?,
            us("lag", "p99")?,
            us("response", "p50")?,
            us("response", "p99")?,
            us("response", "p99.9")?,
            format!("{:.0} %", cpu * 100.0),
            format!("{:.0} %", run.others() * 100.0),
        ]);
    }
    Ok(table)
}
