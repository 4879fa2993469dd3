//! A server that stalls regularly: whether the calls that had to wait for it are counted.

use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::shown::Times;
use super::{Bench, brunt};
use crate::bar::Bar;
use crate::race::disturbed;
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// Calls a second.
const RATE: u64 = 1_000;
/// The target stalls for the last second of every five, counted from its start.
const STALL: &str = "1s/5s";
/// The share of the time in which the target answers.
const SERVING: f64 = 0.8;
/// The length of a run: whole periods, so that each part of a period has the same weight.
const LENGTH: Duration = Duration::from_secs(20);
/// The tolerance of a quantile, as a share of the computed value.
const TOLERANCE: f64 = 0.05;
/// Quantiles above the 80 % of calls that did not have to wait.
const QUANTILES: [f64; 8] = [0.81, 0.82, 0.85, 0.9, 0.95, 0.99, 0.999, 0.9999];

pub(super) const BENCH: Bench = Bench {
    name: "stall",
    about: "A target frozen 1 s in every 5: what callers had to wait at a constant rate, and what the closed model sees of it.",
    run,
};

/// The quantile `q`, above [`SERVING`], of the waits that the stall makes, in nanoseconds, where the target answers
/// `capacity` calls a second.
///
/// Calls come evenly, r a second. One that comes a share x into the stall of 1 s waits for the rest of it, and then for those
/// that came before it, r · x of them: 1 − x + r · x / capacity seconds. x is spread evenly over the stall, and the larger it
/// is the shorter is the wait, so the quantile is that of x = (1 − q) / (1 − SERVING).
fn by_hand(q: f64, capacity: f64) -> f64 {
    let x = (1.0 - q) / (1.0 - SERVING);
    (1.0 - x + RATE as f64 * x / capacity) * 1e9
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let seconds = LENGTH.as_secs();
    let measure = |options: &str| {
        // Each has its own target, so that a run begins and ends with a part in which that answers.
        setup.wait_for_quiet();
        let server = Server::target(setup, &["--stall", STALL])?;
        // The run ends well after a stall, when all its calls are answered.
        thread::sleep(Duration::from_secs(1));
        brunt(setup, &server, options, LENGTH, |_| {})
    };
    let open = measure(&format!("-r {RATE} -d {seconds}s"))?;
    let closed = measure(&format!("-d {seconds}s"))?;
    println!("brunt serve http --stall {STALL}; brunt -r {RATE} -d {seconds}s, and the closed model without -r\n");
    let (open_times, closed_times) = (
        Times::from_json(&open.result["histograms"]["response"])?,
        Times::from_json(&closed.result["histograms"]["response"])?,
    );
    let rate = closed.result["rates"]["answered_per_s"].as_f64().context("brunt's result has no answered_per_s")?;
    let capacity = rate / SERVING;
    println!("while it serves, the target answers {capacity:.0} calls a second\n");
    let mut table = Table::new(&["percentile", "by hand ms", "open model ms", "off by", "closed model ms"]);
    let mut worst: f64 = 0.0;
    for q in QUANTILES {
        let (wanted, got) = (by_hand(q, capacity), open_times.quantile(q) as f64);
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
        Bar::new("calls answered", due.to_string(), answered.to_string(), answered == due)
            .excused(disturbed(open.others())),
        Bar::new(
            "percentiles above p80",
            "within 5 % of those by hand",
            format!("{:+.1} % at worst", worst * 100.0),
            worst.abs() <= TOLERANCE,
        )
        .excused(disturbed(open.others())),
        Bar::new(
            "p99, open model to closed",
            "the closed model hides the stall",
            format!("{:.1} ms to {:.1} ms", open_p99 / 1e6, closed_p99 / 1e6),
            closed_p99 < open_p99 / 10.0,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_spread_evenly_over_the_stall() {
        for (q, ms) in [(0.8, 0.0), (0.9, 500.0), (0.99, 950.0), (1.0, 1000.0)] {
            assert!((by_hand(q, f64::INFINITY) / 1e6 - ms).abs() < 1e-6, "{q}");
        }
        // The last of the stall's 1,000 calls waits for the other 999 to be answered.
        assert!((by_hand(0.8, 100_000.0) / 1e6 - 10.0).abs() < 1e-6);
    }
}
