//! The gain of coalescing: the same hyper server with and without the layer, in turn or at once.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::{Bench, Run, brunt};
use crate::bar::Bar;
use crate::race::{disturbed, median};
use crate::servers::Server;
use crate::setup::{Setup, build_example};
use crate::table::Table;

pub(super) const BENCH: Bench = Bench {
    name: "coalesce",
    about: "The same hyper server with the coalescing layer and without: work that is saved, and what it costs.",
    run,
};

/// A load on a kind of handler.
struct Case {
    about: &'static str,
    path: &'static str,
    options: &'static str,
    /// Whether all requests differ.
    distinct: bool,
    /// Whether its rates are close. Then both servers run at once and share a core, as their clients do, so that a
    /// change of the machine's speed affects both.
    at_once: bool,
}

const CASES: [Case; 4] = [
    Case { about: "20 ms of CPU, 100 connections", path: "cpu", options: "-c 100", distinct: false, at_once: false },
    Case {
        about: "100 ms of waiting, 1,000 connections",
        path: "sleep",
        options: "-c 1000",
        distinct: false,
        at_once: false,
    },
    Case {
        about: "Hello World, 64 connections each, at once",
        path: "",
        options: "-c 64",
        distinct: false,
        at_once: true,
    },
    Case { about: "the same, every URL different", path: "", options: "-c 64", distinct: true, at_once: true },
];

/// How much more memory the server may have in the last round than in the second.
const GROWTH: u64 = 1_000_000;

/// The number of URLs that are requested in turn where each has to differ from those in flight.
const URLS: usize = 10_000;

/// The result of one round of a server.
#[derive(Default)]
struct ServerRound {
    answered: f64,
    p99_ms: f64,
    calls: u64,
    seconds: f64,
    others: f64,
    resident_bytes: u64,
}

impl ServerRound {
    fn per_s(&self) -> f64 {
        self.answered / self.seconds
    }

    fn calls_per_s(&self) -> f64 {
        self.calls as f64 / self.seconds
    }
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let example = build_example("brunt-coalesce", "gain")?;
    let urls = std::env::temp_dir().join(format!("brunt-benchmarks-{}-urls", std::process::id()));
    let lines: Vec<_> = (0..URLS).map(|number| format!("/{number}\n")).collect();
    std::fs::write(&urls, lines.concat())?;
    let mut table = Table::new(&["handler", "layer", "req/s", "p99 ms", "handler's calls/s", "RSS MB"]);
    let mut bars = Vec::new();
    for case in &CASES {
        let servers = [false, true].map(|coalesce| Server::gain(setup, &example, coalesce, case.path));
        let [plain, layered] = servers;
        let servers = [plain?, layered?];
        let mut rounds = [Vec::new(), Vec::new()];
        for round in 0..setup.rounds {
            let seen = measure(setup, &servers, case, round, &urls.display().to_string())?;
            rounds.iter_mut().zip(seen).for_each(|(rounds, seen)| rounds.push(seen));
        }
        let [without, with] = &rounds;
        for (name, all) in [("without", without), ("with", with)] {
            let figure = |figure: fn(&ServerRound) -> f64| median(all.iter().map(figure).collect()).unwrap_or(f64::NAN);
            table.row([
                case.about.to_owned(),
                name.to_owned(),
                format!("{:.0}", figure(ServerRound::per_s)),
                format!("{:.2}", figure(|seen| seen.p99_ms)),
                format!("{:.1}", figure(ServerRound::calls_per_s)),
                format!("{:.1}", figure(|seen| seen.resident_bytes as f64 / 1e6)),
            ]);
        }
        bars.extend(judge(case, without, with)?);
    }
    let _ = std::fs::remove_file(urls);
    println!("{table}");
    Ok(bars)
}

/// A round: both servers in turn, each second round in the other order; or at once.
fn measure(
    setup: &Setup,
    servers: &[Server; 2],
    case: &Case,
    round: usize,
    urls: &str,
) -> anyhow::Result<[ServerRound; 2]> {
    let see = |server: &Server| see(setup, server, case, urls);
    let alone = |server| {
        setup.wait_for_quiet();
        see(server)
    };
    if case.at_once {
        setup.wait_for_quiet();
        let seen = thread::scope(|scope| {
            let running = servers.each_ref().map(|server| scope.spawn(move || see(server)));
            running.map(|running| running.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let [without, with] = seen;
        // Each sees the other's CPU time as that of other processes, which is intended here.
        return Ok([without?, with?].map(|seen| ServerRound { others: 0.0, ..seen }));
    }
    if round.is_multiple_of(2) {
        return Ok([alone(&servers[0])?, alone(&servers[1])?]);
    }
    let with = alone(&servers[1])?;
    Ok([alone(&servers[0])?, with])
}

fn see(setup: &Setup, server: &Server, case: &Case, urls: &str) -> anyhow::Result<ServerRound> {
    let seconds = setup.length.as_secs().max(1);
    let mut options = format!("{} -d {seconds}s", case.options);
    if case.distinct {
        options = format!("{options} --url-lines {urls}");
    }
    let before = server.requests()?;
    let run: Run = brunt(setup, server, &options, Duration::from_secs(seconds), |_| {})?;
    let per_s = run.result["rates"]["answered_per_s"].as_f64().context("brunt's result has no answered_per_s")?;
    Ok(ServerRound {
        answered: per_s * seconds as f64,
        p99_ms: run.quantile("response", "p99")? as f64 / 1e6,
        calls: server.requests()? - before,
        seconds: seconds as f64,
        others: run.others(),
        resident_bytes: server.resident_bytes()?,
    })
}

/// The median over the rounds of a figure's ratio, with the layer to without it in the same round.
fn paired(
    without: &[ServerRound],
    with: &[ServerRound],
    figure: impl Fn(&ServerRound, &ServerRound) -> f64,
) -> anyhow::Result<f64> {
    median(without.iter().zip(with).map(|(without, with)| figure(without, with)).collect()).context("no rounds")
}

fn judge(case: &Case, without: &[ServerRound], with: &[ServerRound]) -> anyhow::Result<Vec<Bar>> {
    let busy = without.iter().chain(with).map(|seen| seen.others).fold(0.0, f64::max);
    let excuse = || disturbed(busy);
    let ratio = paired(without, with, |without, with| with.per_s() / without.per_s())?;
    Ok(match case.path {
        "cpu" => {
            let bar = Bar::new("work shared", "≥ 20 × the requests/s", format!("{ratio:.1} ×"), ratio >= 20.0);
            let never = without.iter().any(|seen| seen.answered == 0.0).then_some("a run without it answered nothing");
            vec![if let Some(never) = never { bar.unjudged(never) } else { bar }]
        }
        "sleep" => {
            let calls = paired(without, with, |_, with| with.calls_per_s() / 10.0)?;
            let later = paired(without, with, |without, with| with.p99_ms - without.p99_ms)?;
            // One request may be under way at the run's beginning, and one at its end.
            let most = 1.0 + 2.0 / (10.0 * with.iter().map(|seen| seen.seconds).fold(f64::INFINITY, f64::min));
            vec![
                Bar::new("calls in 100 ms", "≤ 1", format!("{calls:.2}"), calls <= most),
                Bar::new("p99", "≤ 5 ms over that without", format!("{later:+.2} ms"), later <= 5.0).excused(excuse()),
            ]
        }
        _ => {
            let name = if case.distinct { "no URL shared" } else { "trivial handler" };
            let bar = Bar::new(name, "≥ 0.97 × the requests/s", format!("{ratio:.3} ×"), ratio >= 0.97);
            let mut bars = vec![bar.excused(excuse())];
            if let [_, second, .., last] = with {
                let grown = last.resident_bytes.saturating_sub(second.resident_bytes);
                let got = format!("+{:.2} MB", grown as f64 / 1e6);
                bars.push(Bar::new("memory", "flat: ≤ 1 MB more after the second round", got, grown <= GROWTH));
            }
            bars
        }
    })
}
