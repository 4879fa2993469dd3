//! The benchmarks. One file each; a new one is a file here and a line in [`BENCHES`].

mod agents;
mod coalesce;
mod connections;
mod coverage;
mod faults;
mod find;
mod grpc;
mod http;
mod http2;
mod https;
mod instructions;
mod javascript;
mod llm;
mod pacing;
mod page;
mod parts;
mod protocols;
mod rate;
mod replay;
mod scenario;
mod script;
mod shapes;
mod shown;
mod sinks;
mod stall;
mod start;
mod streams;
mod timestamps;
mod trust;
mod truth;
mod users;
mod websocket_connections;

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use crate::bar::Bar;
use crate::clients::{Load, figures};
use crate::process::{Finished, Process, pinned};
use crate::race::{Race, Shared, Watched, at_once, median, once};
use crate::servers::Server;
use crate::setup::{Installed, Setup};

/// Something to measure.
pub struct Bench {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it measures, in one sentence.
    pub about: &'static str,
    /// Measures, prints figures, and judges them.
    pub run: fn(&Setup) -> anyhow::Result<Vec<Bar>>,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every benchmark, in the order in which they run.
pub const BENCHES: &[Bench] = &[
    http::BENCH,
    https::BENCH,
    http2::BENCH,
    grpc::BENCH,
    script::BENCH,
    scenario::BENCH,
    users::BENCH,
    javascript::BENCH,
    llm::BENCH,
    agents::BENCH,
    start::BENCH,
    rate::BENCH,
    pacing::BENCH,
    parts::BENCH,
    replay::BENCH,
    sinks::BENCH,
    stall::BENCH,
    connections::BENCH,
    coalesce::BENCH,
    find::BENCH,
    protocols::WEBSOCKET,
    websocket_connections::BENCH,
    streams::BENCH,
    protocols::THRIFT,
    truth::BENCH,
    trust::BENCH,
    shapes::BENCH,
    faults::BENCH,
    coverage::BENCH,
    timestamps::BENCH,
    instructions::BENCH,
    page::BENCH,
];

/// Connections of the comparisons.
const CONNECTIONS: u32 = 64;

/// A bar on brunt's requests a second, compared to wrk's.
fn rate_bar(race: &Race, least: f64) -> anyhow::Result<Bar> {
    let ratio = race.ratio_to_wrk("brunt", |sample| sample.report.per_s).context(WITHOUT_WRK)?;
    let bar = Bar::new("requests/s", format!("≥ {least:.2} × wrk"), format!("{ratio:.3} × wrk"), ratio >= least);
    Ok(bar.excused(race.server_bound().or_else(|| race.disturbed("wrk"))))
}

/// A bar on brunt's CPU time for each request, compared to wrk's.
fn cpu_bar(race: &Race, most: f64) -> anyhow::Result<Bar> {
    let ratio = race.ratio_to_wrk("brunt", crate::race::Sample::cpu_us).context(WITHOUT_WRK)?;
    let bar = Bar::new("CPU per request", format!("≤ {most:.2} × wrk"), format!("{ratio:.3} × wrk"), ratio <= most);
    // Others cost cache and interrupt the server, which then has fewer answers ready at a time.
    Ok(bar.excused(race.disturbed("wrk")))
}

/// The same for brunt and wrk, run at once on the clients' core.
fn cpu_bar_at_once(setup: &Setup, load: &Load, most: f64) -> anyhow::Result<Bar> {
    let wrk = setup.installed("wrk").context(WITHOUT_WRK)?;
    let brunt = setup.installed("brunt").context("brunt is not there")?;
    let beside = CpuComparison::measured(setup, load, brunt, wrk)?;
    Ok(beside.bar("CPU per request, both at once", most))
}

/// brunt's CPU time of a request relative to another client's, run at once on the clients' core.
struct CpuComparison {
    other: &'static str,
    /// The median over the rounds.
    ratio: f64,
    least: f64,
    greatest: f64,
    /// brunt's, in µs; the median over the rounds.
    cpu_us: f64,
}

impl CpuComparison {
    fn measured(setup: &Setup, load: &Load, brunt: &Installed, other: &Installed) -> anyhow::Result<Self> {
        let rounds = at_once(setup, load, &[brunt, other])?;
        let ratios: Vec<_> = rounds.iter().filter_map(|round| Some(round.first()? / round.get(1)?)).collect();
        let range = (f64::INFINITY, 0.0_f64);
        let (least, greatest) = ratios.iter().fold(range, |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
        let ratio = median(ratios).context("no rounds")?;
        let cpu_us = median(rounds.iter().filter_map(|round| round.first().copied()).collect()).context("no rounds")?;
        Ok(Self { other: other.client.name, ratio, least, greatest, cpu_us })
    }

    fn bar(&self, figure: impl Into<String>, most: f64) -> Bar {
        let Self { other, ratio, least, greatest, .. } = self;
        let got = format!("{ratio:.3} × {other} ({least:.3} to {greatest:.3})");
        Bar::new(figure, format!("≤ {most:.2} × {other}"), got, *ratio <= most)
    }
}

/// CPU time of a client's request and of another's, at once on the clients' core, without what starting and ending take.
struct Both {
    /// The client's, in µs, and relative to the other's: medians over the rounds.
    cpu_us: f64,
    ratio: f64,
    least: f64,
    greatest: f64,
}

impl Both {
    /// Clients take `idle` without making calls.
    fn measured(setup: &Setup, load: &Load, clients: [&Installed; 2], idle: [Duration; 2]) -> anyhow::Result<Self> {
        let (mut own, mut ratios) = (Vec::new(), Vec::new());
        for round in 0..setup.rounds {
            let order = if round % 2 == 0 { clients } else { [clients[1], clients[0]] };
            let mut both = once(setup, load, &order)?;
            if round % 2 != 0 {
                both.reverse();
            }
            let [client, other] = [both.first(), both.get(1)].map(Option::<&Shared>::copied);
            let us = |shared: Option<Shared>, idle: Duration| {
                let shared = shared.context("a figure for each client")?;
                anyhow::Ok(shared.cpu_us - idle.as_secs_f64() * 1e6 / shared.answered.max(1) as f64)
            };
            let cpu_us = us(client, idle[0])?;
            own.push(cpu_us);
            ratios.push(cpu_us / us(other, idle[1])?);
        }
        let (least, greatest) =
            ratios.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), r| (low.min(*r), high.max(*r)));
        let (cpu_us, ratio) = (median(own).context("no rounds")?, median(ratios).context("no rounds")?);
        Ok(Self { cpu_us, ratio, least, greatest })
    }
}

/// CPU time of a run with as many connections and next to no calls.
fn calm(setup: &Setup, load: &Load) -> anyhow::Result<Duration> {
    let mut command = pinned(setup.client_core, &setup.brunt);
    command.args((crate::clients::CLIENTS[0].arguments)(load)).args(["-r", "1"]);
    Ok(Process::client(command, "brunt")?.finish(load.length + Duration::from_secs(30), |_| {})?.cpu)
}

const WITHOUT_WRK: &str = "this is measured in comparison to wrk: install it";

/// A bar on brunt having seen every answer that the server gave.
fn counted_bar(race: &Race) -> Bar {
    let failed: u64 = race.samples("brunt").map(|sample| sample.report.failed).sum();
    let uncounted = race.uncounted("brunt");
    let got = format!("{uncounted:+} answers, {failed} failed");
    Bar::new("counted by brunt and the server", "the same, none failed", got, uncounted == 0 && failed == 0)
}

/// One watched run of brunt.
struct Run {
    /// The result, as JSON.
    result: Value,
    finished: Finished,
    around: Watched,
}

/// Runs brunt with `options` against `server`, and calls `look` every 20 ms.
fn brunt(
    setup: &Setup,
    server: &Server,
    options: &str,
    length: Duration,
    look: impl FnMut(&Process),
) -> anyhow::Result<Run> {
    let mut command = pinned(setup.client_core, &setup.brunt);
    command.args("-t 1 --format json --quiet".split(' ')).args(options.split_whitespace()).arg(&server.url);
    let work = || Process::client(command, "brunt")?.finish(length + Duration::from_secs(60), look);
    let (around, finished) = Watched::run(setup, server, work)?;
    Ok(Run { result: figures(&finished.stdout)?, finished, around })
}

impl Run {
    /// The share of a core that others used, from 0 to 1.
    fn others(&self) -> f64 {
        self.around.others(self.finished.cpu_ticks)
    }

    fn count(&self, outcome: &str) -> anyhow::Result<u64> {
        let count = self.result["outcomes"][outcome].as_u64();
        count.with_context(|| format!("brunt's result has no outcomes.{outcome}"))
    }

    /// A quantile such as p99 of a distribution such as `response`, in nanoseconds.
    fn quantile(&self, times: &str, name: &str) -> anyhow::Result<u64> {
        let quantiles = self.result["times"][times]["quantiles"].as_array();
        let found = quantiles.into_iter().flatten().find(|quantile| quantile["name"] == name);
        found
            .and_then(|quantile| quantile["value_ns"].as_u64())
            .with_context(|| format!("brunt's result has no {name} of {times}"))
    }
}
