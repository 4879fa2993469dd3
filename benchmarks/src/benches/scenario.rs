//! Virtual users relative to a flood: an iteration is one GET with one check. And the memory of ten thousand users.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::{Bench, Both, CONNECTIONS, calm};
use crate::bar::Bar;
use crate::clients::{Client, Load, Report, figures};
use crate::process::{Process, pinned};
use crate::race::{Race, Sample, Watched, disturbed};
use crate::servers::Server;
use crate::setup::{Installed, Setup};

/// The name of virtual users in the table.
const USERS: &str = "brunt run";
const CLIENT: Client = Client { name: USERS, version: &[], scripts: false, arguments, read };
/// How long ten thousand users are watched.
const WATCH: Duration = Duration::from_secs(20);
/// The most resident memory at any time, in bytes.
const MOST_BYTES: u64 = 250_000_000;
const PAUSING: u64 = 10_000;
/// The most CPU time of an iteration, relative to a request of the flood.
const MOST_CPU: f64 = 1.28;

pub(super) const BENCH: Bench = Bench {
    name: "scenario",
    about: "Virtual users with one GET and one check an iteration, compared to the flood; 10,000 of them.",
    run,
};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

fn arguments(load: &Load) -> Vec<String> {
    let mut arguments = arguments_of(&script("scenario.lua"), &load.url, load.length);
    arguments.push("--threshold".to_owned());
    // Were checks not counted, this threshold would not hold.
    arguments.push("checks>99.9%".to_owned());
    arguments
}

fn arguments_of(script: &Path, url: &str, length: Duration) -> Vec<String> {
    let mut arguments: Vec<String> = ["run", "-t", "1", "--format", "json", "--quiet"].map(str::to_owned).into();
    arguments.extend(["--base-url".to_owned(), url.trim_end_matches('/').to_owned()]);
    arguments.extend(["--duration".to_owned(), format!("{}s", length.as_secs()), script.display().to_string()]);
    arguments
}

fn read(output: &str) -> anyhow::Result<Report> {
    (crate::clients::CLIENTS[0].read)(output)
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::target(setup, &[])?;
    let load = Load::new(&server.url, CONNECTIONS, setup.length);
    let users = Installed { client: &CLIENT, program: setup.brunt.clone(), version: String::new() };
    let flood = setup.clients.iter().filter(|installed| matches!(installed.client.name, "brunt" | "wrk"));
    let clients: Vec<_> = flood.chain([&users]).collect();
    let race = Race::run(setup, &server, &load, &clients)?;
    println!("{}", race.table());
    let ratio = |to: &str, figure: fn(&Sample) -> f64| race.ratio(USERS, to, figure);
    let mut bars = Vec::new();
    if let Some(ratio) = ratio("brunt", |sample| sample.report.per_s) {
        let got = format!("{ratio:.3} × the flood");
        bars.push(
            Bar::new("requests/s", "≥ 0.70 × the flood".to_owned(), got, ratio >= 0.70).excused(race.disturbed("wrk")),
        );
    }
    let brunt = setup.installed("brunt").context("brunt is not there")?;
    let both = Both::measured(setup, &load, [&users, brunt], [start_of_users(setup, &server)?, calm(setup, &load)?])?;
    let got =
        format!("{:.3} × the flood ({:.3} to {:.3}), {:.2} µs", both.ratio, both.least, both.greatest, both.cpu_us);
    bars.push(Bar::new(
        "CPU per iteration, both at once, without start and end",
        format!("≤ {MOST_CPU} × the flood"),
        got,
        both.ratio <= MOST_CPU,
    ));
    let failed: u64 = race.samples(USERS).map(|sample| sample.report.failed).sum();
    let uncounted = race.uncounted(USERS);
    let got = format!("{uncounted:+} answers, {failed} failed");
    bars.push(Bar::new("counted by users and the server", "the same, none failed", got, uncounted == 0 && failed == 0));
    bars.extend(ten_thousand(setup, &server)?);
    Ok(bars)
}

/// CPU time of a run of one iteration.
fn start_of_users(setup: &Setup, server: &Server) -> anyhow::Result<Duration> {
    let mut command = pinned(setup.client_core, &setup.brunt);
    command.args(["run", "-t", "1", "--format", "json", "--quiet", "--env", "ITERATIONS=1", "--base-url"]);
    command.arg(server.url.trim_end_matches('/')).arg(script("counted.lua"));
    Ok(Process::client(command, "brunt")?.finish(Duration::from_secs(30), |_| {})?.cpu)
}

/// Ten thousand users, each with its own connection and a pause of a second.
fn ten_thousand(setup: &Setup, server: &Server) -> anyhow::Result<[Bar; 2]> {
    setup.wait_for_quiet();
    let mut command = pinned(setup.client_core, &setup.brunt);
    command.args(arguments_of(&script("pausing.lua"), &server.url, WATCH));
    let work = || Process::client(command, "brunt")?.finish(WATCH + Duration::from_secs(60), |_| {});
    let (around, finished) = Watched::run(setup, server, work)?;
    let result = figures(&finished.stdout)?;
    let users = result["names"]["most_users"].as_u64().unwrap_or(0);
    let made = result["connections"]["made"].as_u64().unwrap_or(0);
    let not_ok = result["outcomes"]["not_ok"].as_u64().unwrap_or(u64::MAX);
    let got = format!("{users} users, {made} connections, {not_ok} calls not ok");
    let all = Bar::new(
        "users",
        format!("{PAUSING}, each with its connection"),
        got,
        users == PAUSING && made == PAUSING && not_ok == 0,
    );
    let peak = finished.peak_bytes;
    Ok([
        all.excused(disturbed(around.others(finished.cpu_ticks))),
        Bar::new("resident memory at its peak", "≤ 250 MB", format!("{:.1} MB", peak as f64 / 1e6), peak <= MOST_BYTES),
    ])
}
