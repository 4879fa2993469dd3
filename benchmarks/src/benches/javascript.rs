//! Scripts of k6: the CPU time of an iteration relative to a request of wrk's, and the memory of a user.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context as _, ensure};

use super::Bench;
use crate::bar::Bar;
use crate::clients::figures;
use crate::process::{Finished, Process, pinned};
use crate::race::median;
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// How many users there are.
const USERS: [u64; 3] = [1, 100, 1_000];
/// The most CPU time of an iteration, relative to a request of wrk's with as many connections.
const MOST: f64 = 2.5;
/// The most memory of a user, in bytes, and with a bundle.
const MOST_BYTES: [f64; 2] = [400e3, 1e6];
/// The size of the bundle, in bytes.
const BUNDLE: usize = 300_000;
/// How many users there are at the least where memory is measured; at the most there are the most of [`USERS`].
const FEW: u64 = 10;
/// The shorter of two runs. What both do besides their iterations, such as loading the script for each user, is in neither's difference.
const SHORT: Duration = Duration::from_secs(2);
/// The length of runs whose memory is measured: a user with a bundle takes milliseconds of CPU time to begin. It is doubled for as long as some
/// have not begun.
const ALL_BEGUN: Duration = Duration::from_secs(60);
/// The longest of them: a machine on which it does not suffice is not one to measure on.
const LONGEST: Duration = Duration::from_secs(480);
/// How much longer a run may take than it should.
const SLACK: Duration = Duration::from_secs(60);

pub(super) const BENCH: Bench = Bench {
    name: "javascript",
    about: "A script of k6's with one GET, one check and one JSON read an iteration, beside wrk; the memory of its users, with a bundle and without.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::target(setup, &[])?;
    let mut bars = Vec::new();
    for users in USERS {
        bars.push(iterations_cost(setup, &server, users)?);
    }
    let folder = env::temp_dir().join(format!("brunt-benchmarks-{}-bundle", std::process::id()));
    fs::create_dir_all(&folder)?;
    let bundle = folder.join("bundle.js");
    fs::write(&bundle, bundle_text()).context("the bundle cannot be written")?;
    for (bundle, most) in [None, Some(bundle.as_path())].into_iter().zip(MOST_BYTES) {
        bars.push(users_remember(setup, &server, bundle, most)?);
    }
    // A folder that stays behind does no harm.
    let _ = fs::remove_dir_all(&folder);
    Ok(bars)
}

/// Functions such as a bundler puts together.
fn bundle_text() -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < BUNDLE {
        number += 1;
        // A string takes whatever is written to it.
        let _ = writeln!(
            text,
            "exports.part{number} = function (given, options) {{\n  if (!given || options === undefined) {{ throw new TypeError('part {number} takes a list'); }}\n  \
             return given.filter(function (one) {{ return one.kind === 'kind {number}' || options.all; }}).map(function (one) {{ return one.value + {number}; }});\n}};"
        );
    }
    text
}

fn brunt(
    setup: &Setup,
    server: &Server,
    users: u64,
    length: Duration,
    bundle: Option<&Path>,
) -> anyhow::Result<Finished> {
    setup.wait_for_quiet();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/items.js");
    let mut command = pinned(setup.client_core, &setup.brunt);
    command.args(["run", "-t", "1", "--format", "json", "--quiet", "--no-save"]);
    command.args(["--vus", &users.to_string(), "--duration", &format!("{}s", length.as_secs())]);
    command.args(["--env", &format!("BASE={}", server.url.trim_end_matches('/'))]);
    if let Some(bundle) = bundle {
        command.args(["--env", &format!("BUNDLE={}", bundle.display())]);
    }
    command.arg(script);
    Process::client(command, "brunt")?.finish(length + SLACK, |_| {})
}

fn wrk(setup: &Setup, server: &Server, connections: u64, length: Duration) -> anyhow::Result<f64> {
    setup.wait_for_quiet();
    let wrk = setup.installed("wrk").context("without wrk there is nothing to compare with")?;
    let mut command = pinned(setup.client_core, &wrk.program);
    command.args(["-t1", &format!("-c{connections}"), &format!("-d{}s", length.as_secs())]);
    command.arg(format!("{}/shop/items/1", server.url.trim_end_matches('/')));
    let finished = Process::client(command, "wrk")?.finish(length + SLACK, |_| {})?;
    let report = (wrk.client.read)(&finished.stdout)?;
    Ok(finished.cpu.as_secs_f64() * 1e6 / report.answered.max(1) as f64)
}

fn iterations_cost(setup: &Setup, server: &Server, users: u64) -> anyhow::Result<Bar> {
    let mut table = Table::new(&["round", "wrk µs", "brunt µs", "ratio"]);
    let mut ratios = Vec::new();
    println!("{users} users or connections, {} rounds\n", setup.rounds);
    for round in 1..=setup.rounds {
        let wrk_us = wrk(setup, server, users, setup.length)?;
        let (short, long) =
            (brunt(setup, server, users, SHORT, None)?, brunt(setup, server, users, SHORT + setup.length, None)?);
        let answered = |finished: &Finished| -> anyhow::Result<f64> {
            figures(&finished.stdout)?["outcomes"]["answered"].as_f64().context("no count of answers")
        };
        let more = answered(&long)? - answered(&short)?;
        let brunt_us = (long.cpu.as_secs_f64() - short.cpu.as_secs_f64()) * 1e6 / more.max(1.0);
        ratios.push(brunt_us / wrk_us);
        let cells = [round.to_string(), format!("{wrk_us:.2}"), format!("{brunt_us:.2}")];
        table.row(cells.into_iter().chain([format!("{:.2}", brunt_us / wrk_us)]));
    }
    println!("{table}");
    let ratio = median(ratios).context("no rounds")?;
    let name = format!("CPU of an iteration, {users} users");
    Ok(Bar::new(name, format!("≤ {MOST} × wrk's request"), format!("{ratio:.2} ×"), ratio <= MOST))
}

fn users_remember(setup: &Setup, server: &Server, bundle: Option<&Path>, most: f64) -> anyhow::Result<Bar> {
    let [.., many] = USERS;
    let peak = |users| -> anyhow::Result<f64> {
        let mut length = ALL_BEGUN;
        loop {
            let finished = brunt(setup, server, users, length, bundle)?;
            let answered = figures(&finished.stdout)?["outcomes"]["answered"].as_u64().context("no count of answers")?;
            // Those who begin take the processor from those who call: once there are more calls than users, most have called.
            if answered > users {
                return Ok(finished.peak_bytes as f64);
            }
            ensure!(length < LONGEST, "{answered} answers in {} s: not all of {users} users have begun", length.as_secs());
            println!("{answered} answers of {users} users in {} s: once more, for twice as long", length.as_secs());
            length *= 2;
        }
    };
    let each = (peak(many)? - peak(FEW)?) / (many - FEW) as f64;
    let name = if bundle.is_some() { "memory of a user with a bundle of 300 KB" } else { "memory of a user" };
    Ok(Bar::new(name, format!("≤ {:.0} kB", most / 1e3), format!("{:.0} kB", each / 1e3), each <= most))
}
