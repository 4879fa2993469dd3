//! Streams of gRPC: the memory of one in 10,000, and whether gaps between messages equal those in the target's log.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::{Bench, Run, brunt};
use crate::bar::Bar;
use crate::race::disturbed;
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// The number of concurrent streams whose memory is measured, and of the connections that they share.
const STREAMS: u64 = 10_000;
const CONNECTIONS: u64 = 100;
/// The most memory of a stream, in bytes, beyond a run with one stream on each connection.
const MOST_BYTES_EACH: f64 = 4_000.0;
/// Streams with a message a second, and the messages of each.
const TIMED: u64 = 1_000;
const MESSAGES: u64 = 61;
/// How far a quantile of gaps may be from that of the target's log, in nanoseconds.
const MOST_OFF_NS: f64 = 1e6;
/// The quantiles of gaps that are compared, besides the shortest and the longest.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

pub(super) const BENCH: Bench = Bench {
    name: "streams",
    about: "Streams of gRPC: the memory of 10,000, and gaps between messages against the target's log.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let log = std::env::temp_dir().join(format!("brunt-benchmarks-{}-messages", std::process::id()));
    let bars = memory(setup, &log).and_then(|mut bars| {
        bars.extend(gaps(setup, &log)?);
        Ok(bars)
    });
    // A file that stays behind does no harm.
    let _ = fs::remove_file(&log);
    bars
}

/// Runs this many streams, each with this many messages a second apart. `begins` is a flag for the time at which they
/// begin; without it all begin at once.
fn stream(
    setup: &Setup,
    server: &Server,
    (connections, streams, messages): (u64, u64, u64),
    begins: &str,
) -> anyhow::Result<Run> {
    setup.wait_for_quiet();
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/grpc/echo.proto");
    let options = format!(
        "-c {connections} --streams {} -n {streams} {begins} --timeout 10m --proto {proto} --call brunt.Echo/Repeat \
         --args {{\"times\":{messages},\"gap_ms\":1000}}",
        streams / connections
    );
    brunt(setup, server, &options, Duration::from_secs(messages), |_| {})
}

fn memory(setup: &Setup, log: &Path) -> anyhow::Result<Vec<Bar>> {
    let server = Server::grpc(setup, log)?;
    println!("{}; {STREAMS} streams on {CONNECTIONS} connections, a message a second on each\n", server.about);
    let few = stream(setup, &server, (CONNECTIONS, CONNECTIONS, 10), "")?;
    let many = stream(setup, &server, (CONNECTIONS, STREAMS, 10), "")?;
    let (few_bytes, many_bytes) = (few.finished.peak_bytes as f64, many.finished.peak_bytes as f64);
    let each = (many_bytes - few_bytes) / (STREAMS - CONNECTIONS) as f64;
    let mut table = Table::new(&["streams", "peak resident MB"]);
    table.row([CONNECTIONS.to_string(), format!("{:.1}", few_bytes / 1e6)]);
    table.row([STREAMS.to_string(), format!("{:.1}", many_bytes / 1e6)]);
    println!("{table}");
    let made = many.result["connections"]["made"].as_u64().unwrap_or(0);
    let (answered, not_ok) = (many.count("answered")?, many.count("not_ok")?);
    let whole = made == CONNECTIONS && answered == STREAMS && not_ok == 0;
    let got = format!("{answered} answered, {not_ok} not ok, {made} connections");
    Ok(vec![
        Bar::new("streams", format!("{STREAMS} answered on {CONNECTIONS} connections"), got, whole)
            .excused(disturbed(many.others())),
        Bar::new("memory of each", "≤ 4 kB", format!("{:.2} kB", each / 1e3), each <= MOST_BYTES_EACH),
    ])
}

fn gaps(setup: &Setup, log: &Path) -> anyhow::Result<Vec<Bar>> {
    let server = Server::grpc(setup, log)?;
    println!("{}; {TIMED} streams of {MESSAGES} messages, one a second\n", server.about);
    // The streams begin over a second, so that at most one message is due in a millisecond: the target logs the time at
    // which it makes a message, and simultaneous messages would wait for each other in the target.
    let run = stream(setup, &server, (10, TIMED, MESSAGES), &format!("-r {TIMED}"))?;
    let written = fs::read_to_string(log).context("the target wrote no log")?;
    let (sent, gaps) = gaps_of(&written)?;
    let came = run.result["outcomes"]["messages"]["count"].as_u64().unwrap_or(0);
    let due = TIMED * MESSAGES;
    let mut table = Table::new(&["gaps", "target's log, ms", "brunt, ms"]);
    let mut worst = 0.0_f64;
    let extreme = |name: &str| {
        let value = &run.result["times"]["message_gap"][name];
        value["value"].as_u64().or(value.as_u64()).with_context(|| format!("brunt's result has no {name} of gaps"))
    };
    let mut row = |name: &str, theirs: u64, ours: u64| {
        worst = worst.max((theirs as f64 - ours as f64).abs());
        table.row([name.to_owned(), format!("{:.3}", theirs as f64 / 1e6), format!("{:.3}", ours as f64 / 1e6)]);
    };
    row("shortest", quantile(&gaps, 0.0)?, extreme("min_ns")?);
    for (name, share) in QUANTILES {
        row(name, quantile(&gaps, share)?, run.quantile("message_gap", name)?);
    }
    row("longest", quantile(&gaps, 1.0)?, extreme("max_ns")?);
    println!("{table}");
    let lost = Bar::new(
        "messages",
        format!("{due}, none lost"),
        format!("{sent} sent, {came} came"),
        sent == due && came == due,
    );
    let off = format!("{:.2} ms at most", worst / 1e6);
    let near = Bar::new("gaps against the target's log", "within 1 ms", off, worst <= MOST_OFF_NS);
    Ok(vec![lost, near.excused(disturbed(run.others()))])
}

/// The number of messages in a log, and the gaps between those of each call, shortest first, in nanoseconds.
fn gaps_of(log: &str) -> anyhow::Result<(u64, Vec<u64>)> {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut messages, mut gaps) = (0, Vec::new());
    for line in log.lines() {
        let fields = line.split_once(',').and_then(|(call, at)| Some((call.parse().ok()?, at.parse().ok()?)));
        let (call, at): (u64, u64) = fields.with_context(|| format!("no line of a log: {line}"))?;
        messages += 1;
        if let Some(before) = last.insert(call, at) {
            gaps.push(at.saturating_sub(before));
        }
    }
    gaps.sort_unstable();
    Ok((messages, gaps))
}

/// The value below which this share of sorted values is.
fn quantile(sorted: &[u64], share: f64) -> anyhow::Result<u64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().context("the target's log has no gaps")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_those_of_each_call() {
        let (messages, gaps) = gaps_of("0,100\n1,150\n0,300\n1,160\n0,330\n").unwrap();
        assert_eq!((messages, gaps), (5, vec![10, 30, 200]));
        assert!(gaps_of("0;100").is_err());
    }

    #[test]
    fn quantiles_are_values_that_came() {
        let sorted = [1, 2, 3, 4];
        let at = |share| quantile(&sorted, share).unwrap();
        assert_eq!([at(0.0), at(0.5), at(0.51), at(1.0)], [1, 2, 3, 4]);
        assert!(quantile(&[], 0.5).is_err());
    }
}
