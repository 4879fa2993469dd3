//! A search for the capacity of targets whose capacity is known by construction.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use super::Bench;
use crate::bar::Bar;
use crate::clients::figures;
use crate::process::{Process, pinned};
use crate::race::{Watched, disturbed};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// The targets: the time that a server takes for an answer, the number of servers, and their capacity in calls a
/// second.
const TARGETS: [(&str, &str, f64); 3] = [("5ms", "1", 200.0), ("2ms", "4", 2_000.0), ("exp:1ms", "8", 8_000.0)];
/// The searched limit. Trials of two seconds are long enough for a queue to show at these rates.
const OPTIONS: &str = "find -t 1 -d 2s -w 500ms --threshold p99<50ms --threshold error_rate<0.1%";
/// The most by which either end of the answer may differ from the capacity, as a share of that.
const TOLERANCE: f64 = 0.05;
/// The longest time of a search, which usually takes a minute.
const LONGEST: Duration = Duration::from_secs(300);

pub(super) const BENCH: Bench =
    Bench { name: "find", about: "Targets with a known capacity: whether `brunt find` finds it.", run };

/// A search that ends without an answer has the exit status 1.
const NO_ANSWER: i32 = 1;

/// The result for one target.
struct Found {
    answer: Value,
    others: f64,
    took: Duration,
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let mut table =
        Table::new(&["service time", "servers", "capacity/s", "found, /s", "within", "seconds", "used by others"]);
    let mut bars = Vec::new();
    for (service_time, servers, capacity) in TARGETS {
        setup.wait_for_quiet();
        let found = search(setup, &["--service-time", service_time, "--servers", servers])?;
        let ends = [end(&found.answer, "low_per_s"), end(&found.answer, "high_per_s")];
        let within = ends.map(|end| end.map_or(f64::INFINITY, |end| (end / capacity - 1.0).abs()));
        let within = within.into_iter().fold(0.0, f64::max);
        let got = match ends {
            [Some(low), Some(high)] => format!("{low:.0} to {high:.0}"),
            _ => found.answer["is"].as_str().unwrap_or("no answer").to_owned(),
        };
        table.row([
            service_time.to_owned(),
            servers.to_owned(),
            format!("{capacity:.0}"),
            got.clone(),
            format!("{:.1} %", within * 100.0),
            format!("{:.0}", found.took.as_secs_f64()),
            format!("{:.0} %", found.others * 100.0),
        ]);
        let wanted = format!("{capacity:.0}/s ± {:.0} %", TOLERANCE * 100.0);
        bars.push(
            Bar::new("capacity", wanted, format!("{got}/s"), within <= TOLERANCE).excused(disturbed(found.others)),
        );
    }
    println!("brunt {OPTIONS}\n\n{table}");
    Ok(bars)
}

fn search(setup: &Setup, target: &[&str]) -> anyhow::Result<Found> {
    let server = Server::target(setup, target)?;
    let mut command = pinned(setup.client_core, &setup.brunt);
    command.args(OPTIONS.split(' ')).args(["--format", "json", "--quiet"]).arg(&server.url);
    let work = || Process::client(command, "brunt find")?.answering_with(&[0, NO_ANSWER]).finish(LONGEST, |_| {});
    let (around, finished) = Watched::run(setup, &server, work)?;
    let result = figures(&finished.stdout)?;
    let answer = result.get("answer").context("brunt's result has no answer")?.clone();
    Ok(Found { answer, others: around.others(finished.cpu_ticks), took: finished.wall })
}

fn end(answer: &Value, name: &str) -> Option<f64> {
    answer[name].as_f64()
}
