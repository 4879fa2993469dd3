//! A server that freezes now and then: whether the calls that had to wait for it are seen.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Bench, Run, brunt};
use crate::bar::Bar;
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// Calls a second.
const RATE: u64 = 1_000;
/// The target freezes for the last second of every five, counted from its start.
const STALL: &str = "1s/5s";
/// The share of the time in which it answers.
const SERVING: f64 = 0.8;
/// Whole periods, so that each part of a period weighs the same.
const LENGTH: Duration = Duration::from_secs(20);
/// What a quantile may differ from the one computed, as a share of it.
const TOLERANCE: f64 = 0.05;
/// Quantiles above the 80 % of calls that did not have to wait.
const QUANTILES: [f64; 8] = [0.81, 0.82, 0.85, 0.9, 0.95, 0.99, 0.999, 0.9999];

pub(super) const BENCH: Bench = Bench {
    name: "stall",
    about: "A target frozen 1 s in every 5: what callers had to wait at a constant rate, and what the closed model sees of it.",
    run,
};

/// The quantile `q` of the waits that the stall makes, in nanoseconds.
///
/// Calls come evenly. Those of the serving share wait for nothing; one that comes a share x into the stall waits for
/// the rest of it, so waits are spread evenly from 0 to the stall's length, 1 s.
fn by_hand(q: f64) -> f64 {
    (q - SERVING).max(0.0) / (1.0 - SERVING) * 1e9
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let seconds = LENGTH.as_secs();
    let measure = |options: &str| {
        // A target of its own for each, so that the run begins with the first serving part and ends in one.
        let server = Server::target(setup, &["--stall", STALL])?;
        brunt(setup, &server, options, LENGTH, |_| {})
    };
    let open = measure(&format!("-r {RATE} -d {seconds}s"))?;
    let closed = measure(&format!("-d {seconds}s"))?;
    println!("brunt serve http --stall {STALL}; brunt -r {RATE} -d {seconds}s, and the closed model without -r\n");
    let (open_times, closed_times) = (Times::of(&open)?, Times::of(&closed)?);
    let mut table = Table::new(&["percentile", "by hand ms", "open model ms", "off by", "closed model ms"]);
    let mut worst: f64 = 0.0;
    for q in QUANTILES {
        let (wanted, got) = (by_hand(q), open_times.quantile(q) as f64);
        let off = got / wanted - 1.0;
        worst = if off.abs() > worst.abs() { off } else { worst };
        table.row([
            format!("p{}", (q * 1e6).round() / 1e4),
            format!("{:.2}", wanted / 1e6),
            format!("{:.2}", got / 1e6),
            format!("{:+.1} %", off * 100.0),
            format!("{:.2}", closed_times.quantile(q) as f64 / 1e6),
        ]);
    }
    println!("{table}");
    let due = RATE * seconds;
    let answered = open.count("answered")?;
    let (open_p99, closed_p99) = (open_times.quantile(0.99) as f64, closed_times.quantile(0.99) as f64);
    Ok(vec![
        Bar::new("calls answered", due.to_string(), answered.to_string(), answered == due),
        Bar::new(
            "percentiles above p80",
            "within 5 % of those by hand",
            format!("{:+.1} % at worst", worst * 100.0),
            worst.abs() <= TOLERANCE,
        ),
        Bar::new(
            "p99, open model to closed",
            "the closed model hides the stall",
            format!("{:.1} ms to {:.1} ms", open_p99 / 1e6, closed_p99 / 1e6),
            closed_p99 < open_p99 / 10.0,
        ),
    ])
}

/// Response times in full: pairs of a time in nanoseconds and how many calls took it, from the shortest.
struct Times(Vec<(u64, u64)>);

impl Times {
    fn of(run: &Run) -> anyhow::Result<Self> {
        let histograms = &run.result["histograms"];
        let bounds = histograms["response_bounds"]["counts"].as_array();
        ensure!(bounds.is_some_and(Vec::is_empty), "calls did not end: their times are not known");
        let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?));
        let counts = histograms["response"]["counts"].as_array().context("brunt's result has no histograms")?;
        Ok(Self(counts.iter().map(pair).collect::<Option<_>>().context("a histogram is unreadable")?))
    }

    fn quantile(&self, q: f64) -> u64 {
        let total: u64 = self.0.iter().map(|(_, n)| n).sum();
        let rank = (q * total as f64).round().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.0.iter().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        reached.or(self.0.last()).map_or(0, |(time, _)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_spread_evenly_over_the_stall() {
        for (q, ms) in [(0.5, 0.0), (0.8, 0.0), (0.9, 500.0), (0.99, 950.0), (1.0, 1000.0)] {
            assert!((by_hand(q) / 1e6 - ms).abs() < 1e-6, "{q}");
        }
    }

    #[test]
    fn quantiles_of_counted_times() {
        let times = Times(vec![(10, 80), (20, 10), (30, 10)]);
        assert_eq!([0.5, 0.8, 0.81, 0.9, 0.91, 1.0].map(|q| times.quantile(q)), [10, 10, 20, 20, 30, 30]);
    }
}
