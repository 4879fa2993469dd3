//! The cost of users: an iteration with a check and a `JSONPath` relative to a plain one; and the memory of waiting
//! users.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::{Bench, CONNECTIONS};
use crate::bar::Bar;
use crate::clients::{CLIENTS, Client, Load, figures};
use crate::process::{Process, pinned};
use crate::race::{median, once};
use crate::servers::Server;
use crate::setup::{Installed, Setup};
use crate::table::Table;

/// How often both run, by default.
const ROUNDS: usize = 10;
/// The most CPU time of an iteration with a check and a `JSONPath`, relative to a plain one.
const MOST: f64 = 1.5;
/// How many users wait.
const IDLE: [u64; 2] = [10_000, 100_000];
/// The most memory of an additional user, in bytes.
const MOST_BYTES: f64 = 8_000.0;
/// The most memory of a run with the greater number of them, in bytes.
const MOST_OF_ALL: f64 = 500e6;
/// How long they wait.
const WAIT: Duration = Duration::from_secs(5);

const PLAIN: Client = Client { name: "plain", version: &[], scripts: false, arguments: plain, read: CLIENTS[0].read };
const READING: Client = Client {
    name: "with a check and a JSONPath",
    version: &[],
    scripts: false,
    arguments: reading,
    read: CLIENTS[0].read,
};

pub(super) const BENCH: Bench = Bench {
    name: "users",
    about: "An iteration with a check and a JSONPath beside a plain one, both at once; the memory of 100,000 users who wait.",
    run,
};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

fn arguments(load: &Load, more: &[&str]) -> Vec<String> {
    let length = format!("{}s", load.length.as_secs());
    let base = load.url.trim_end_matches('/');
    let script = script("items.lua").display().to_string();
    let fixed = ["run", "-t", "1", "--format", "json", "--quiet", "--base-url", base, "--duration", &length, &script];
    fixed.iter().chain(more).map(|argument| (*argument).to_owned()).collect()
}

fn plain(load: &Load) -> Vec<String> {
    arguments(load, &[])
}

fn reading(load: &Load) -> Vec<String> {
    arguments(load, &["--env", "READS=yes"])
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::target(setup, &[])?;
    let mut bars = vec![one_reads(setup, &server)?];
    bars.extend(users_wait(setup, &server)?);
    Ok(bars)
}

fn one_reads(setup: &Setup, server: &Server) -> anyhow::Result<Bar> {
    let load = Load::new(&server.url, CONNECTIONS, setup.length);
    let installed = |client| Installed { client, program: setup.brunt.clone(), version: String::new() };
    let (plain, reading) = (installed(&PLAIN), installed(&READING));
    let rounds = setup.rounds_or(ROUNDS);
    println!("{}; {CONNECTIONS} users each, {rounds} rounds of {} s\n", server.about, load.length.as_secs());
    let mut table = Table::new(&["round", "plain µs", "reading µs", "ratio"]);
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let is_first = round % 2 == 1;
        let order = if is_first { [&plain, &reading] } else { [&reading, &plain] };
        let &[one, other] = once(setup, &load, &order)?.as_slice() else { bail!("a figure for each client") };
        let (plain, reading) = if is_first { (one, other) } else { (other, one) };
        let ratio = reading.cpu_us / plain.cpu_us;
        ratios.push(ratio);
        table.row([
            round.to_string(),
            format!("{:.3}", plain.cpu_us),
            format!("{:.3}", reading.cpu_us),
            format!("{ratio:.3}"),
        ]);
    }
    println!("{table}");
    let ratio = median(ratios).context("no rounds")?;
    let wanted = format!("≤ {MOST} × a plain iteration");
    Ok(Bar::new("CPU with a check and a JSONPath", wanted, format!("{ratio:.3} ×"), ratio <= MOST))
}

/// Users who have made a call each, over one connection, and wait.
fn users_wait(setup: &Setup, server: &Server) -> anyhow::Result<[Bar; 2]> {
    let mut peaks = Vec::new();
    for users in IDLE {
        setup.wait_for_quiet();
        let mut command = pinned(setup.client_core, &setup.brunt);
        let script = script("idle.lua").display().to_string();
        let (base, users_are) = (server.url.trim_end_matches('/'), format!("USERS={users}"));
        command.args([
            "run",
            "-t",
            "1",
            "--format",
            "json",
            "--quiet",
            "--base-url",
            base,
            "--env",
            &users_are,
            &script,
        ]);
        let finished = Process::client(command, "brunt")?.finish(WAIT + Duration::from_secs(60), |_| {})?;
        let result = figures(&finished.stdout)?;
        let most = result["names"]["most_users"].as_u64().unwrap_or(0);
        if most != users {
            bail!("{most} users at once instead of {users}");
        }
        peaks.push(finished.peak_bytes as f64);
    }
    let &[few, many] = peaks.as_slice() else { bail!("a figure for each") };
    let each = (many - few) / (IDLE[1] - IDLE[0]) as f64;
    let got = format!("{:.1} kB", each / 1e3);
    let slope = Bar::new("memory of a user who waits, by slope", "≤ 8 kB".to_owned(), got, each <= MOST_BYTES);
    let all = Bar::new(
        format!("memory of {} users who wait", IDLE[1]),
        "≤ 500 MB".to_owned(),
        format!("{:.0} MB", many / 1e6),
        many <= MOST_OF_ALL,
    );
    Ok([slope, all])
}
