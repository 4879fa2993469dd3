//! The gain of coalescing: the same hyper server with the layer and without, in turns.

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
    /// Whether each request asks for something else.
    distinct: bool,
}

const CASES: [Case; 4] = [
    Case { about: "20 ms of CPU, 100 connections", path: "cpu", options: "-c 100", distinct: false },
    Case { about: "100 ms of waiting, 1,000 connections", path: "sleep", options: "-c 1000", distinct: false },
    Case { about: "Hello World, 64 connections", path: "", options: "-c 64", distinct: false },
    Case { about: "Hello World, every URL different", path: "", options: "-c 64", distinct: true },
];

/// URLs that are asked for in turn where each is to be another than those in flight.
const URLS: usize = 10_000;

/// What one run came to.
struct Seen {
    per_s: f64,
    p99_ms: f64,
    calls: u64,
    seconds: f64,
    others: f64,
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let example = build_example("brunt-coalesce", "gain")?;
    let urls = std::env::temp_dir().join(format!("brunt-benchmarks-{}-urls", std::process::id()));
    let lines: Vec<_> = (0..URLS).map(|number| format!("/{number}\n")).collect();
    std::fs::write(&urls, lines.concat())?;
    let mut table = Table::new(&["handler", "layer", "req/s", "p99 ms", "calls of the handler", "calls/s"]);
    let mut bars = Vec::new();
    for case in &CASES {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for round in 0..setup.rounds {
            for coalesce in [round % 2 == 1, round % 2 == 0] {
                let seen = measure(setup, &example, case, coalesce, &urls.display().to_string())?;
                if coalesce { with.push(seen) } else { without.push(seen) }
            }
        }
        for (name, all) in [("without", &without), ("with", &with)] {
            let figure = |figure: fn(&Seen) -> f64| median(all.iter().map(figure).collect()).unwrap_or(f64::NAN);
            table.row([
                case.about.to_owned(),
                name.to_owned(),
                format!("{:.0}", figure(|seen| seen.per_s)),
                format!("{:.2}", figure(|seen| seen.p99_ms)),
                format!("{:.0}", figure(|seen| seen.calls as f64)),
                format!("{:.1}", figure(|seen| seen.calls as f64 / seen.seconds)),
            ]);
        }
        bars.extend(judge(case, &without, &with)?);
    }
    let _ = std::fs::remove_file(urls);
    println!("{table}");
    Ok(bars)
}

fn measure(
    setup: &Setup,
    example: &std::path::Path,
    case: &Case,
    coalesce: bool,
    urls: &str,
) -> anyhow::Result<Seen> {
    setup.wait_for_quiet();
    let server = Server::gain(setup, example, coalesce, case.path)?;
    let length = Duration::from_secs(setup.length.as_secs());
    let mut options = format!("{} -d {}s", case.options, length.as_secs());
    if case.distinct {
        options = format!("{options} --url-lines {urls}");
    }
    let before = server.requests()?;
    let run: Run = brunt(setup, &server, &options, length, |_| {})?;
    let calls = server.requests()? - before;
    let per_s = run.result["rates"]["answered_per_s"].as_f64().context("brunt's result has no answered_per_s")?;
    let p99_ms = run.quantile("response", "p99")? as f64 / 1e6;
    Ok(Seen { per_s, p99_ms, calls, seconds: length.as_secs_f64(), others: run.others() })
}

/// The median over the rounds of a figure with the layer, held against the same round without.
fn paired(without: &[Seen], with: &[Seen], figure: impl Fn(&Seen, &Seen) -> f64) -> anyhow::Result<f64> {
    median(without.iter().zip(with).map(|(without, with)| figure(without, with)).collect()).context("no rounds")
}

fn judge(case: &Case, without: &[Seen], with: &[Seen]) -> anyhow::Result<Vec<Bar>> {
    let busy = without.iter().chain(with).map(|seen| seen.others).fold(0.0, f64::max);
    let excuse = || disturbed(busy);
    let ratio = paired(without, with, |without, with| with.per_s / without.per_s)?;
    Ok(match case.path {
        "cpu" => vec![Bar::new("work shared", "≥ 20 × the requests/s", format!("{ratio:.1} ×"), ratio >= 20.0)],
        "sleep" => {
            let calls = paired(without, with, |_, with| with.calls as f64 / (with.seconds * 10.0))?;
            let later = paired(without, with, |without, with| with.p99_ms - without.p99_ms)?;
            vec![
                // One may be under way as the run begins, and one as it ends.
                Bar::new("calls in 100 ms", "≤ 1", format!("{calls:.2}"), calls <= 1.0 + 2.0 / (10.0 * with[0].seconds)),
                Bar::new("p99", "≤ 5 ms over that without", format!("{later:+.2} ms"), later <= 5.0).excused(excuse()),
            ]
        }
        _ => {
            let name = if case.distinct { "no URL shared" } else { "trivial handler" };
            let bar = Bar::new(name, "≥ 0.97 × the requests/s", format!("{ratio:.3} ×"), ratio >= 0.97);
            vec![bar.excused(excuse())]
        }
    })
}
