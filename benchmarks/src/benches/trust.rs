//! How often the verdict trusts a run on an otherwise idle machine.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;

use super::Bench;
use super::shown::Verdict;
use crate::bar::Bar;
use crate::clients::figures;
use crate::machine::{all_cores_time, used_by_others};
use crate::process::{Process, anywhere};
use crate::race::{DISTURBED, median};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// How often each load is run, by default.
const RUNS: usize = 100;
const LENGTH: Duration = Duration::from_secs(5);
/// Calls a second.
const LOADS: [(u32, &str); 3] = [(100, "100/s"), (1_000, "1,000/s"), (5_000, "5,000/s")];
/// The share of undisturbed runs that must be trustworthy.
const LEAST: f64 = 0.95;
/// The fewest undisturbed runs that are judged. Among fewer, a single run would decide.
const FEWEST: usize = 20;

pub(super) const BENCH: Bench = Bench {
    name: "trust",
    about: "nginx at 100, 1,000 and 5,000 calls/s with nothing pinned: how often the verdict is 'trustworthy'.",
    run,
};

struct Run {
    verdict: Verdict,
    /// The share of a core that neither brunt nor nginx used.
    others: f64,
}

impl Run {
    fn is_undisturbed(&self) -> bool {
        self.others <= DISTURBED
    }
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::unpinned_nginx()?;
    let count = setup.rounds_or(RUNS);
    println!("{}; brunt -r RATE -d {}s, {count} runs each\n", server.about, LENGTH.as_secs());
    let mut runs: Vec<Vec<Run>> = LOADS.iter().map(|_| Vec::new()).collect();
    // In turn, so that a machine that drifts drifts for all.
    for _ in 0..count {
        for ((rate, _), runs) in LOADS.into_iter().zip(&mut runs) {
            runs.push(one(setup, &server, rate)?);
        }
    }
    let mut table =
        Table::new(&["load", "undisturbed", "trustworthy of those", "trustworthy of all", "used by others", "causes"]);
    for ((_, name), runs) in LOADS.iter().zip(&runs) {
        let trusted = |run: &&Run| run.verdict.is_trustworthy();
        let undisturbed = || runs.iter().filter(|run| run.is_undisturbed());
        table.row([
            (*name).to_owned(),
            format!("{} of {}", undisturbed().count(), runs.len()),
            undisturbed().filter(trusted).count().to_string(),
            runs.iter().filter(trusted).count().to_string(),
            format!("{:.0} %", median(runs.iter().map(|run| run.others).collect()).unwrap_or(0.0) * 100.0),
            causes(runs),
        ]);
        let doubted = |run: &&Run| run.is_undisturbed() && !run.verdict.is_trustworthy();
        for run in runs.iter().filter(doubted) {
            println!("{name}: {}", run.verdict.sentence);
        }
    }
    println!("\n{table}");
    Ok(LOADS.iter().zip(&runs).map(|((_, name), runs)| judge(name, runs)).collect())
}

fn one(setup: &Setup, server: &Server, rate: u32) -> anyhow::Result<Run> {
    setup.wait_for_quiet();
    let mut command = anywhere(&setup.brunt);
    let options = format!("-r {rate} -d {}s --format json --quiet", LENGTH.as_secs());
    command.args(options.split(' ')).arg(&server.url);
    let time = || all_cores_time().context("the time of the cores cannot be read");
    let ((before, cores), served) = (time()?, server.cpu_ticks()?);
    let finished = Process::client(command, "brunt")?.finish(LENGTH + Duration::from_secs(60), |_| {})?;
    let ((after, _), ours) = (time()?, server.cpu_ticks()? - served + finished.cpu_ticks);
    let others = used_by_others(before, after, ours) * cores as f64;
    Ok(Run { verdict: Verdict::from_result(&figures(&finished.stdout)?)?, others })
}

/// How often each cause decided, most frequent first.
fn causes(runs: &[Run]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for cause in runs.iter().flat_map(|run| run.verdict.causes()) {
        match counts.iter_mut().find(|(name, _)| *name == cause) {
            Some((_, n)) => *n += 1,
            None => counts.push((cause, 1)),
        }
    }
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    counts.iter().fold(String::new(), |mut text, (cause, n)| {
        let _ = write!(text, "{}{cause} {n}", if text.is_empty() { "" } else { ", " });
        text
    })
}

/// Judges the undisturbed runs.
fn judge(name: &'static str, runs: &[Run]) -> Bar {
    let undisturbed: Vec<_> = runs.iter().filter(|run| run.is_undisturbed()).collect();
    let trusted = undisturbed.iter().filter(|run| run.verdict.is_trustworthy()).count();
    let got = format!("{trusted} of {} undisturbed", undisturbed.len());
    let met = trusted as f64 >= LEAST * undisturbed.len() as f64;
    let bar = Bar::new(name, format!("≥ {:.0} % trustworthy", LEAST * 100.0), got, met);
    if undisturbed.len() < FEWEST.min(runs.len()) {
        let others = median(runs.iter().map(|run| run.others).collect()).unwrap_or(0.0);
        return bar.unjudged(&format!("other processes used {:.0} % of a core in the median run", others * 100.0));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::super::shown::Finding;
    use super::*;
    use crate::bar::Outcome;

    fn runs(trusted: usize, doubted: usize, others: f64) -> Vec<Run> {
        let run = |judgement: &str| {
            let decisive = judgement != "trustworthy";
            let findings = vec![Finding { cause: "lag".to_owned(), decisive, seconds: Vec::new() }];
            Run { verdict: Verdict { judgement: judgement.to_owned(), sentence: String::new(), findings }, others }
        };
        let trusted = (0..trusted).map(|_| run("trustworthy"));
        trusted.chain((0..doubted).map(|_| run("latency_unreliable"))).collect()
    }

    #[test]
    fn the_share_of_undisturbed_runs_decides() {
        assert_eq!(judge("x", &runs(19, 1, 0.0)).outcome, Outcome::Met);
        assert_eq!(judge("x", &runs(18, 2, 0.0)).outcome, Outcome::Missed);
        let disturbed = || runs(0, 30, 0.5);
        assert_eq!(judge("x", &[runs(20, 0, 0.0), disturbed()].concat_runs()).outcome, Outcome::Met);
        assert!(matches!(judge("x", &[runs(10, 0, 0.0), disturbed()].concat_runs()).outcome, Outcome::Unjudged(_)));
        assert_eq!(causes(&disturbed()), "lag 30");
    }

    trait ConcatRuns {
        fn concat_runs(self) -> Vec<Run>;
    }

    impl<const N: usize> ConcatRuns for [Vec<Run>; N] {
        fn concat_runs(self) -> Vec<Run> {
            self.into_iter().flatten().collect()
        }
    }
}
