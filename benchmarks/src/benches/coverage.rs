//! How often a 95 % sampling interval contains the true value, where successive latencies are correlated.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::Bench;
use super::shown::{Ends, Shown, Times};
use crate::bar::Bar;
use crate::clients::figures;
use crate::clocked::{Answered, Latency};
use crate::process::{Process, anywhere};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// The number of runs, by default.
const RUNS: usize = 200;
/// The number of concurrent runs, each with a target of its own: together they take about half a core.
const AT_ONCE: usize = 20;
const LENGTH: Duration = Duration::from_secs(25);
/// Enough connections that no call waits for one.
const OPTIONS: &str = "-r 200 -d 25s -c 100 -t 1 --format json --quiet";
/// Percentiles: a name, the share, and the standard normal quantile at it.
const FIGURES: [(&str, f64, f64); 2] = [("p50", 0.5, 0.0), ("p99", 0.99, 2.326_347_874)];
/// Between these shares of runs must have an interval that holds the truth.
const WANTED: (f64, f64) = (0.92, 0.98);

pub(super) const BENCH: Bench = Bench {
    name: "coverage",
    about: "200 runs alike on a target whose latency drifts: how often the 95 % sampling intervals hold the population's percentiles.",
    run,
};

/// The correlation of neighbours is 0.9: ten calls carry about as much information as one independent call.
fn latency(seed: u64) -> Latency {
    Latency::Ar1 { median_us: 5_000, sigma: 0.8, memory: 0.9, seed }
}

/// A run's intervals, in the order of [`FIGURES`], and the target's time for each call.
struct RunIntervals {
    shown: [Shown; FIGURES.len()],
    took: Vec<u64>,
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let count = setup.rounds_or(RUNS);
    println!("our own target with {:?}, another seed for each; brunt {OPTIONS}; {count} runs\n", latency(0));
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.extend(some(setup, seen.len() as u64, AT_ONCE.min(count - seen.len()))?);
    }
    // The targets' own times of all runs: delays by timers and by the machine are in them as in every run.
    let population = Times::each(seen.iter().flat_map(|run| run.took.iter().copied()));
    let mut table = Table::new(&["figure", "drawn ms", "true ms", "covered", "too low", "too high", "no upper end"]);
    let mut bars = Vec::new();
    for (at, (name, q, z)) in FIGURES.into_iter().enumerate() {
        let truth = population.quantile(q);
        let intervals: Vec<_> = seen.iter().filter_map(|run| run.shown.get(at)?.sampling).collect();
        ensure!(intervals.len() == seen.len(), "a run has no sampling interval of {name}");
        let covered = Covered::from_intervals(&intervals, truth);
        table.row([
            name.to_owned(),
            format!("{:.3}", latency(0).at(z) / 1e6),
            format!("{:.3}", truth as f64 / 1e6),
            format!("{:.1} %", covered.share() * 100.0),
            covered.too_low.to_string(),
            covered.too_high.to_string(),
            covered.open.to_string(),
        ]);
        bars.push(covered.bar(if at == 0 { "coverage of p50" } else { "coverage of p99" }));
    }
    println!("{table}");
    Ok(bars)
}

/// Makes this many runs at once, each with a target and a seed of its own.
fn some(setup: &Setup, first: u64, count: usize) -> anyhow::Result<Vec<RunIntervals>> {
    let servers = (0..count as u64)
        .map(|number| Server::own(None, latency(1 + first + number)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let start = |server: &Server| {
        let mut command = anywhere(&setup.brunt);
        command.args(OPTIONS.split(' ')).arg(&server.url);
        Process::client(command, "brunt")
    };
    let running = servers.iter().map(start).collect::<anyhow::Result<Vec<_>>>()?;
    let end = |(server, process): (&Server, Process)| {
        let finished = process.finish(LENGTH + Duration::from_secs(60), |_| {})?;
        let result = figures(&finished.stdout)?;
        let took: Vec<_> = server.answered()?.into_iter().map(Answered::took).collect();
        let answered = result["outcomes"]["answered"].as_u64();
        ensure!(
            answered == Some(took.len() as u64),
            "brunt counts {answered:?} answers, and the target knows the times of {}",
            took.len()
        );
        let shown = FIGURES.map(|(name, ..)| Shown::percentile(&result, name));
        let shown = shown.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        Ok(RunIntervals { shown: shown.try_into().ok().context("an interval for each percentile")?, took })
    };
    servers.iter().zip(running).map(end).collect()
}

/// How many intervals contain the true value, and how the others missed it.
#[derive(Debug, PartialEq, Eq)]
struct Covered {
    runs: usize,
    held: usize,
    /// Intervals that end below it.
    too_low: usize,
    /// Intervals that begin above it.
    too_high: usize,
    /// Intervals without an upper end.
    open: usize,
}

impl Covered {
    fn from_intervals(intervals: &[Ends], truth: u64) -> Self {
        let count = |is: &dyn Fn(&Ends) -> bool| intervals.iter().filter(|ends| is(ends)).count();
        Self {
            runs: intervals.len(),
            held: count(&|ends| ends.hold(truth)),
            too_low: count(&|ends| ends.high.is_some_and(|high| high < truth)),
            too_high: count(&|ends| ends.low > truth),
            open: count(&|ends| ends.high.is_none()),
        }
    }

    fn share(&self) -> f64 {
        self.held as f64 / self.runs.max(1) as f64
    }

    fn bar(&self, name: &'static str) -> Bar {
        let met = (WANTED.0..=WANTED.1).contains(&self.share());
        let wanted = format!("{:.0} to {:.0} %", WANTED.0 * 100.0, WANTED.1 * 100.0);
        let got = format!("{:.1} % of {} runs", self.share() * 100.0, self.runs);
        Bar::new(name, wanted, got, met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bar::Outcome;

    #[test]
    fn intervals_hold_or_miss_on_a_side() {
        let ends = |low, high| Ends { low, high };
        let covered = Covered::from_intervals(&[ends(1, Some(5)), ends(1, Some(2)), ends(4, None), ends(2, None)], 3);
        assert_eq!(covered, Covered { runs: 4, held: 2, too_low: 1, too_high: 1, open: 2 });
    }

    #[test]
    fn too_much_is_a_miss_as_well() {
        let outcome = |held| Covered { runs: 200, held, too_low: 200 - held, too_high: 0, open: 0 }.bar("x").outcome;
        assert_eq!([183, 184, 196, 197].map(|held| outcome(held) == Outcome::Met), [false, true, true, false]);
    }
}
