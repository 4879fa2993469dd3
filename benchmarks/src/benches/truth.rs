//! Whether brunt's times are true on a machine under the worst conditions: target, generator and a busy loop share one
//! core.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::shown::{Ends, Shown, Times};
use super::{Bench, brunt};
use crate::bar::Bar;
use crate::clocked::{AS_BUSY_LOOP, Answered, Latency};
use crate::process::{Process, pinned};
use crate::race::median;
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// The number of runs, by default.
const RUNS: usize = 100;
const LENGTH: Duration = Duration::from_secs(5);
/// Enough connections that hardly any call waits for one: the target could not know of such a wait.
const OPTIONS: &str = "-r 1000 -d 5s -c 1000";
const FIGURES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
/// The share of calls that may have waited for a connection nevertheless, such as the first of a run: too few to move a
/// percentile.
const MOST_WAITED: f64 = 0.0005;
/// The share of runs in which the truth must lie in the interval.
const LEAST: f64 = 0.95;
/// The time of a call outside the target, in nanoseconds: from `send` to the target's socket and back. brunt counts it
/// as the target's part, like that of any network.
const LOOPBACK_NS: u64 = 20_000;
/// What the instrument's interval alone may miss by, in nanoseconds: brunt takes no figure for spoiled by less. It reads
/// the clock and then sends; on a core that others want, a few calls of 5,000 lose it between the two, and on a steep slope
/// a few calls move a percentile by tens of microseconds.
const NO_MATTER_NS: u64 = 50_000;
/// The relative resolution of brunt's histograms.
const RESOLUTION: f64 = 1.0 / 1024.0;
/// The error beyond which a figure is wrong: as a share of the true value, and in nanoseconds.
const WRONG: (f64, f64) = (0.1, 50e3);

pub(super) const BENCH: Bench = Bench {
    name: "truth",
    about: "Target, brunt at 1,000 calls/s and a busy loop on one core: whether what the target took lies in the intervals.",
    run,
};

/// A percentile of one run.
#[derive(Debug, Clone, Copy)]
struct Figure {
    truth: u64,
    shown: Shown,
    as_read: u64,
}

impl Figure {
    /// Whether the true value lies in this interval, or below it by no more than this.
    fn is_in(&self, ends: Ends, below_ns: u64) -> bool {
        let high = ends.high.map(|high| high + (high as f64 * RESOLUTION) as u64);
        Ends { low: ends.low.saturating_sub(below_ns), high }.hold(self.truth)
    }

    fn is_in_shown(&self) -> bool {
        self.is_in(self.shown.both, LOOPBACK_NS)
    }

    fn is_in_instrument(&self) -> bool {
        self.is_in(self.shown.instrument, NO_MATTER_NS)
    }
}

/// How far a time is off, in nanoseconds.
fn off(truth: u64, time: u64) -> f64 {
    time as f64 - truth as f64
}

fn is_wrong(truth: u64, time: u64) -> bool {
    let off = off(truth, time).abs();
    off > WRONG.0 * truth as f64 && off > WRONG.1
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let program = std::env::current_exe().context("where this program is cannot be said")?;
    let mut busy = pinned(setup.client_core, &program);
    busy.arg(AS_BUSY_LOOP);
    let _busy = Process::server(busy, "a busy loop")?;
    let server = Server::own(Some(setup.client_core), Latency::None)?;
    let runs = setup.rounds_or(RUNS);
    println!("{}; brunt {OPTIONS}; {runs} runs\n", server.about);
    let mut seen = Vec::new();
    let mut left_out = 0;
    for number in 1..=runs {
        let Some(figures) = one(setup, &server).with_context(|| format!("run {number}"))? else {
            left_out += 1;
            continue;
        };
        for (figure, (name, _)) in figures.iter().zip(FIGURES).filter(|(figure, _)| !figure.is_in_shown()) {
            println!("run {number}: {name} was {}, and shown as {:?}", ms(figure.truth), figure.shown);
        }
        seen.push(figures);
    }
    println!("\n{}", table(&seen));
    let together = seen.iter().filter(|run| run.iter().all(Figure::is_in_shown)).count();
    println!("all three at once: in {together} of {} runs\n", seen.len());
    if left_out > 0 {
        println!("{left_out} runs left out: calls waited for a connection, which the target does not see\n");
    }
    ensure!(!seen.is_empty(), "in each run calls waited for a connection");
    Ok(bars(&seen))
}

/// The figures of one run; `None` if calls waited for a connection, which the target cannot know of.
fn one(setup: &Setup, server: &Server) -> anyhow::Result<Option<[Figure; FIGURES.len()]>> {
    server.answered()?;
    let run = brunt(setup, server, OPTIONS, LENGTH, |_| {})?;
    let calls = server.answered()?;
    let truth = Times::each(calls.iter().copied().map(Answered::took));
    let answered = run.count("answered")?;
    ensure!(
        answered == truth.count(),
        "brunt counts {answered} answers, and the target knows the times of {}",
        truth.count()
    );
    if run.count("waited_for_connection")? as f64 > MOST_WAITED * answered as f64 {
        return Ok(None);
    }
    let as_read = Times::from_json(&run.result["histograms"]["instrument"]["response_as_read"])?;
    let mut figures = Vec::new();
    for (name, q) in FIGURES {
        let shown = Shown::percentile(&run.result, name)?;
        figures.push(Figure { truth: truth.quantile(q), shown, as_read: as_read.quantile(q) });
    }
    Ok(Some(figures.try_into().ok().context("a figure for each percentile")?))
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// A figure of all runs, for each run.
fn figure_of_runs(runs: &[[Figure; FIGURES.len()]], at: usize) -> impl Iterator<Item = &Figure> {
    runs.iter().filter_map(move |run| run.get(at))
}

fn table(runs: &[[Figure; FIGURES.len()]]) -> Table {
    let mut table = Table::new(&[
        "figure",
        "true ms",
        "shown ms",
        "off by ms",
        "worst",
        "instrument ± ms",
        "shown ± ms",
        "in instrument's",
        "in shown",
        "wrong",
        "as read ms",
        "off by ms",
        "worst",
        "wrong",
    ]);
    for (at, (name, _)) in FIGURES.iter().enumerate() {
        let middle = |figure: &dyn Fn(&Figure) -> f64| {
            format!("{:.3}", median(figure_of_runs(runs, at).map(figure).collect()).unwrap_or(f64::NAN) / 1e6)
        };
        let worst = |time: &dyn Fn(&Figure) -> u64| {
            let worst = figure_of_runs(runs, at).map(|figure| off(figure.truth, time(figure)));
            format!(
                "{:+.3}",
                worst.fold(0.0, |worst: f64, off| if off.abs() > worst.abs() { off } else { worst }) / 1e6
            )
        };
        let count =
            |is: &dyn Fn(&Figure) -> bool| figure_of_runs(runs, at).filter(|figure| is(figure)).count().to_string();
        let half = |ends: Ends| ends.high.map_or(f64::INFINITY, |high| high.saturating_sub(ends.low) as f64 / 2.0);
        table.row([
            (*name).to_owned(),
            middle(&|figure| figure.truth as f64),
            middle(&|figure| figure.shown.value as f64),
            middle(&|figure| off(figure.truth, figure.shown.value)),
            worst(&|figure| figure.shown.value),
            middle(&|figure| half(figure.shown.instrument)),
            middle(&|figure| half(figure.shown.both)),
            count(&Figure::is_in_instrument),
            count(&Figure::is_in_shown),
            count(&|figure| is_wrong(figure.truth, figure.shown.value)),
            middle(&|figure| figure.as_read as f64),
            middle(&|figure| off(figure.truth, figure.as_read)),
            worst(&|figure| figure.as_read),
            count(&|figure| is_wrong(figure.truth, figure.as_read)),
        ]);
    }
    table
}

/// Other processes on the core are intended here, so nothing excuses a miss.
fn bars(runs: &[[Figure; FIGURES.len()]]) -> Vec<Bar> {
    const SHOWN: [&str; 3] = ["true p50 in the shown interval", "true p90 in it", "true p99 in it"];
    const INSTRUMENT: [&str; 3] =
        ["true p50 in the instrument's interval, or 50 µs below", "true p90 likewise", "true p99 likewise"];
    let wanted = format!("≥ {:.0} % of runs", LEAST * 100.0);
    let bar = |name: &'static str, at: usize, is: fn(&Figure) -> bool| {
        let held = figure_of_runs(runs, at).filter(|figure| is(figure)).count();
        let got = format!("{held} of {}", runs.len());
        Bar::new(name, wanted.clone(), got, held as f64 >= LEAST * runs.len() as f64)
    };
    let shown = SHOWN.into_iter().enumerate().map(|(at, name)| bar(name, at, Figure::is_in_shown));
    let instrument = INSTRUMENT.into_iter().enumerate().map(|(at, name)| bar(name, at, Figure::is_in_instrument));
    shown.chain(instrument).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bar::Outcome;

    fn figure(truth: u64, low: u64, high: u64) -> Figure {
        let ends = Ends { low, high: Some(high) };
        let shown = Shown { value: low, instrument: ends, sampling: None, both: Ends { high: None, ..ends } };
        Figure { truth, shown, as_read: truth * 2 }
    }

    #[test]
    fn the_way_over_loopback_is_no_error() {
        assert!(figure(990_000, 1_000_000, 2_000_000).is_in_shown());
        assert!(!figure(970_000, 1_000_000, 2_000_000).is_in_shown());
        assert!(figure(970_000, 1_000_000, 2_000_000).is_in_instrument());
        assert!(!figure(940_000, 1_000_000, 2_000_000).is_in_instrument());
        assert!(!figure(2_100_000, 1_000_000, 2_000_000).is_in_instrument());
        assert!(figure(2_100_000, 1_000_000, 2_000_000).is_in_shown());
    }

    #[test]
    fn wrong_is_what_is_far_off_in_share_and_time() {
        assert!(is_wrong(1_000_000, 1_200_000) && !is_wrong(1_000_000, 1_090_000) && !is_wrong(100_000, 140_000));
    }

    #[test]
    fn a_bar_each_is_on_the_share_of_runs() {
        let mut runs = vec![[figure(10, 5, 20); 3]; 19];
        runs.push([figure(100_000_000, 5, 20); 3]);
        assert!(bars(&runs).iter().all(|bar| bar.outcome == Outcome::Met));
        runs.push([figure(100_000_000, 5, 20); 3]);
        let outcomes: Vec<_> = bars(&runs).into_iter().map(|bar| bar.outcome).collect();
        assert_eq!(outcomes[..3], [Outcome::Met, Outcome::Met, Outcome::Met]);
        assert_eq!(outcomes[3..], [Outcome::Missed, Outcome::Missed, Outcome::Missed]);
    }
}
