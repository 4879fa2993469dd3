//! The memory of a WebSocket connection that echoes once a second, with as many connections as the descriptor limit
//! allows.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Resource, getrlimit};

use super::{Bench, Run, brunt};
use crate::bar::Bar;
use crate::process;
use crate::race::{disturbed, median};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// The most memory of a connection, in bytes: the slope over the number of connections.
const MOST_BYTES_EACH: f64 = 12_000.0;
/// The most memory of [`MOST_CONNECTIONS`], in bytes: by the slope, where there are fewer.
const MOST_BYTES: f64 = 150e6;
/// The longest time in which a connection is opened, on average.
const MOST_OPENING: Duration = Duration::from_micros(200);
/// Connections from one local address: with more, the kernel looks for a free port for longer and longer.
const FROM_ONE_ADDRESS: u64 = 10_000;
/// Descriptors that are kept for everything else.
const SPARE_DESCRIPTORS: u64 = 1_000;
/// The most connections, even if the limit allows more.
const MOST_CONNECTIONS: u64 = 100_000;
/// Smaller numbers of connections, and how long each is held.
const STEPS: [u64; 2] = [2_000, 10_000];
const STEP: Duration = Duration::from_secs(10);
/// How long the greatest number is held.
const LENGTH: Duration = Duration::from_secs(60);

pub(super) const BENCH: Bench = Bench {
    name: "websocket-connections",
    about: "As many WebSocket connections as there can be, each echoing once a second.",
    run,
};

/// The result of holding some connections for a while.
struct Held {
    connections: u64,
    made: u64,
    calls: u64,
    not_ok: u64,
    /// The median of the resident memory in the second half, in bytes.
    resident: f64,
    /// How long the run took beyond its load.
    opening: Duration,
    others: f64,
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let limit = getrlimit(Resource::Nofile).maximum;
    let most = limit.map_or(MOST_CONNECTIONS, |limit| limit.saturating_sub(SPARE_DESCRIPTORS).min(MOST_CONNECTIONS));
    let server = Server::echo(setup, "ws")?;
    println!("{}, in a process of its own; each connection echoes 12 bytes once a second\n", server.about);
    let steps = STEPS.into_iter().filter(|step| *step < most).map(|step| (step, STEP));
    let held =
        steps.chain([(most, LENGTH)]).map(|step| hold(setup, &server, step)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut table = Table::new(&["connections", "made", "echoes", "not ok", "resident MB", "bytes each"]);
    let mut before: Option<&Held> = None;
    for step in &held {
        let slope = before.and_then(|before| slope(before, step));
        table.row([
            step.connections.to_string(),
            step.made.to_string(),
            step.calls.to_string(),
            step.not_ok.to_string(),
            format!("{:.1}", step.resident / 1e6),
            slope.map_or_else(String::new, |slope| format!("{slope:.0}")),
        ]);
        before = Some(step);
    }
    println!("{table}");
    let (first, last) = (held.first().context("no steps")?, held.last().context("no steps")?);
    let each = slope(first, last).context("the descriptor limit (ulimit -Hn) leaves too few connections")?;
    let due = last.connections * LENGTH.as_secs();
    let whole = last.made == last.connections && last.calls == due && last.not_ok == 0;
    let got = format!("{}, {} echoes, {} not ok", last.made, last.calls, last.not_ok);
    Ok(vec![
        Bar::new("connections", format!("{most}, {due} echoes, none failed"), got, whole)
            .excused(disturbed(last.others)),
        Bar::new("memory of each, by slope", "≤ 12 kB", format!("{:.1} kB", each / 1e3), each <= MOST_BYTES_EACH),
        of_most(last, each),
        opened(last),
        too_many(setup, &server, limit)?,
    ])
}

/// Holds this many connections for this long.
fn hold(setup: &Setup, server: &Server, (connections, length): (u64, Duration)) -> anyhow::Result<Held> {
    setup.wait_for_quiet();
    let addresses = connections.div_ceil(FROM_ONE_ADDRESS);
    let options = format!(
        "-c {connections} --source-ip 127.0.0.1-127.0.0.{addresses} -r {connections} -d {}s --message 12B",
        length.as_secs()
    );
    let mut began = None;
    let mut resident: Vec<f64> = Vec::new();
    let run: Run = brunt(setup, server, &options, length, |process| {
        let at = began.get_or_insert_with(Instant::now).elapsed();
        if at > length / 2 && at < length {
            resident.extend(process.resident_bytes().map(|(now, _)| now as f64));
        }
    })?;
    Ok(Held {
        connections,
        made: run.result["connections"]["made"].as_u64().unwrap_or(0),
        calls: run.count("answered")?,
        not_ok: run.count("not_ok")?,
        resident: median(resident).context("the run was too short")?,
        opening: run.finished.wall.saturating_sub(length),
        others: run.others(),
    })
}

/// The memory of [`MOST_CONNECTIONS`].
fn of_most(held: &Held, each: f64) -> Bar {
    let bytes = held.resident + each * (MOST_CONNECTIONS - held.connections) as f64;
    let how = if held.connections < MOST_CONNECTIONS { ", by the slope" } else { "" };
    let figure = format!("memory of {MOST_CONNECTIONS}");
    Bar::new(figure, "≤ 150 MB", format!("{:.0} MB{how}", bytes / 1e6), bytes <= MOST_BYTES)
}

/// How long a connection took to be opened, at most: the run's own start and end are in it.
fn opened(held: &Held) -> Bar {
    let each = held.opening.as_secs_f64() / held.connections as f64;
    let got = format!("{:.0} µs; {:.1} s for {}", each * 1e6, held.opening.as_secs_f64(), held.connections);
    Bar::new("opening each", "≤ 200 µs, 20 s for 100,000", got, each <= MOST_OPENING.as_secs_f64())
        .excused(disturbed(held.others))
}

/// By how much memory grows with each connection, in bytes.
fn slope(fewer: &Held, more: &Held) -> Option<f64> {
    let connections = more.connections.checked_sub(fewer.connections).filter(|n| *n > 0)?;
    Some((more.resident - fewer.resident) / connections as f64)
}

/// Asks for more connections than the limit allows.
fn too_many(setup: &Setup, server: &Server, limit: Option<u64>) -> anyhow::Result<Bar> {
    let wanted = "an error that names the limit";
    let Some(limit) = limit.filter(|limit| *limit < MOST_CONNECTIONS) else {
        return Ok(Bar::new("one more than that", wanted, "", true).unjudged("there is no limit worth the name"));
    };
    let said = process::output(&setup.brunt, &["-c", &limit.to_string(), "-n", "1", "--no-save", &server.url])?;
    let names_it = said.contains("file descriptors") && said.contains(&format!("limit is {limit}"));
    Ok(Bar::new("more than the limit", wanted, if names_it { "one" } else { "none" }, names_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(connections: u64, resident: f64) -> Held {
        Held { connections, made: connections, calls: 0, not_ok: 0, resident, opening: Duration::ZERO, others: 0.0 }
    }

    #[test]
    fn what_a_connection_takes_is_the_slope() {
        assert_eq!(slope(&held(2_000, 20e6), &held(10_000, 60e6)), Some(5_000.0));
        assert_eq!(slope(&held(2_000, 20e6), &held(2_000, 60e6)), None);
    }
}
