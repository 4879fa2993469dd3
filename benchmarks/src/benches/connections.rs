//! The memory of ten thousand connections, and its growth.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::{Bench, brunt};
use crate::bar::Bar;
use crate::race::{disturbed, median};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

const CONNECTIONS: u64 = 10_000;
/// The most resident memory at any time, in bytes.
const MOST_BYTES: u64 = 100_000_000;
/// The most growth of memory during the run, in bytes a minute. Only the packed distributions of each second are added;
/// they are bounded as well, since seconds are merged when there are very many.
const MOST_GROWTH_PER_MINUTE: f64 = 1e6;

pub(super) const BENCH: Bench =
    Bench { name: "connections", about: "The memory of 10,000 busy connections, over minutes.", run };

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    setup.wait_for_quiet();
    let server = Server::target(setup, &[])?;
    let options = format!("-c {CONNECTIONS} -d {}s", setup.watch.as_secs());
    let mut began = None;
    let mut resident: Vec<(Duration, u64)> = Vec::new();
    let run = brunt(setup, &server, &options, setup.watch, |process| {
        let at = began.get_or_insert_with(Instant::now).elapsed();
        if resident.last().is_none_or(|(last, _)| at >= *last + Duration::from_millis(500))
            && let Some((now, _)) = process.resident_bytes()
        {
            resident.push((at, now));
        }
    })?;
    println!("{}; brunt {options}; resident memory twice a second\n", server.about);
    let fifths: Vec<f64> = (0..5)
        .map(|fifth| median_between(&resident, setup.watch, fifth))
        .collect::<Option<_>>()
        .context("too short")?;
    let peak = run.finished.peak_bytes;
    let mut table = Table::new(&["fifth of the run", "median resident MB"]);
    for (fifth, bytes) in fifths.iter().enumerate() {
        table.row([(fifth + 1).to_string(), format!("{:.2}", bytes / 1e6)]);
    }
    println!("{table}");
    let made = run.result["connections"]["made"].as_u64().unwrap_or(0);
    let mut lost = Vec::new();
    for outcome in ["failed", "unfinished", "unsent"] {
        lost.push((run.count(outcome)?, outcome));
    }
    let lost: Vec<_> =
        lost.iter().filter(|(n, _)| *n > 0).map(|(n, outcome)| format!(", {n} calls {outcome}")).collect();
    // From the middle of the second fifth to that of the last.
    let minutes = setup.watch.as_secs_f64() / 60.0 * 3.0 / 5.0;
    let growth = (fifths[4] - fifths[1]) / minutes;
    let connected = Bar::new(
        "connections",
        format!("{CONNECTIONS}, every call answered"),
        format!("{made}{}", lost.concat()),
        made == CONNECTIONS && lost.is_empty(),
    );
    Ok(vec![
        connected.excused(disturbed(run.others())),
        Bar::new("resident memory at its peak", "≤ 100 MB", format!("{:.1} MB", peak as f64 / 1e6), peak <= MOST_BYTES),
        Bar::new(
            "its growth after the first fifth",
            "≤ 1 MB a minute",
            format!("{:+.2} MB a minute", growth / 1e6),
            growth <= MOST_GROWTH_PER_MINUTE,
        ),
    ])
}

fn median_between(resident: &[(Duration, u64)], length: Duration, fifth: u32) -> Option<f64> {
    let (from, to) = (length * fifth / 5, length * (fifth + 1) / 5);
    median(resident.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, bytes)| *bytes as f64).collect())
}
