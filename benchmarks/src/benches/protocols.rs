//! Other protocols relative to HTTP: small calls over as many connections on one core, in turn.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::{Bench, CONNECTIONS, brunt};
use crate::bar::Bar;
use crate::process::ticks;
use crate::race::{SERVER_BOUND, disturbed, median};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// The least rate of calls, relative to HTTP.
const LEAST: f64 = 0.8;
/// The length of a slice: short, since a virtual machine may change its speed every few seconds.
const SLICE: Duration = Duration::from_secs(1);

pub(super) const WEBSOCKET: Bench = Bench {
    name: "websocket",
    about: "Echoes over WebSocket beside calls over HTTP, each as fast as one core goes.",
    run: websocket,
};

pub(super) const THRIFT: Bench = Bench {
    name: "thrift",
    about: "Small calls over Thrift beside calls over HTTP, each as fast as one core goes.",
    run: thrift,
};

fn websocket(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    beside_http(setup, "ws", "--message 12B")
}

fn thrift(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let idl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/thrift/echo.thrift");
    // Without a space in the arguments: options are split at spaces.
    let flags = format!("--idl {} --call Echo.echo --args {{\"value\":7}}", idl.display());
    beside_http(setup, "thrift", &flags)
}

/// One slice of a protocol's load.
struct Slice {
    per_s: f64,
    cpu_us: f64,
    failed: u64,
    server_busy: f64,
    others: f64,
}

fn measure(setup: &Setup, server: &Server, flags: &str) -> anyhow::Result<Slice> {
    setup.wait_for_quiet();
    let run = brunt(setup, server, &format!("-c {CONNECTIONS} -d {}s {flags}", SLICE.as_secs()), SLICE, |_| {})?;
    let per_s = run.result["rates"]["answered_per_s"].as_f64().context("brunt's result has no answered_per_s")?;
    let cpu_us = ticks(run.finished.cpu_ticks).as_secs_f64() * 1e6 / run.count("answered")?.max(1) as f64;
    let server_busy = run.around.server_busy;
    Ok(Slice { per_s, cpu_us, failed: run.count("not_ok")?, server_busy, others: run.others() })
}

fn beside_http(setup: &Setup, protocol: &str, flags: &str) -> anyhow::Result<Vec<Bar>> {
    let http = Server::target(setup, &[])?;
    let other = Server::echo(setup, protocol)?;
    let pairs: usize = (setup.length.as_secs() as usize).max(1) * setup.rounds;
    println!(
        "{} and {}; {CONNECTIONS} connections, {pairs} slices of {} s each, in turns\n",
        http.about,
        other.about,
        SLICE.as_secs()
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        for turn in 0..2 {
            if (pair + turn) % 2 == 0 {
                theirs.push(measure(setup, &http, "")?);
            } else {
                ours.push(measure(setup, &other, flags)?);
            }
        }
    }
    let mut table = Table::new(&["protocol", "calls/s", "CPU µs/call", "server's core", "used by others", "failed"]);
    for (name, slices) in [("http", &theirs), (protocol, &ours)] {
        let of = |figure: fn(&Slice) -> f64| median(slices.iter().map(figure).collect()).unwrap_or(f64::NAN);
        table.row([
            name.to_owned(),
            format!("{:.0}", of(|slice| slice.per_s)),
            format!("{:.2}", of(|slice| slice.cpu_us)),
            format!("{:.0} %", of(|slice| slice.server_busy) * 100.0),
            format!("{:.0} %", of(|slice| slice.others) * 100.0),
            slices.iter().map(|slice| slice.failed).sum::<u64>().to_string(),
        ]);
    }
    println!("{table}");
    judge(&theirs, &ours)
}

fn judge(http: &[Slice], other: &[Slice]) -> anyhow::Result<Vec<Bar>> {
    let ratio = |figure: fn(&Slice, &Slice) -> f64| {
        median(http.iter().zip(other).map(|(http, other)| figure(http, other)).collect()).context("no slices")
    };
    let rate = ratio(|http, other| other.per_s / http.per_s)?;
    // The rate of one core if CPU time were the only limit.
    let cpu = ratio(|http, other| http.cpu_us / other.cpu_us)?;
    let others = median(http.iter().chain(other).map(|slice| slice.others).collect()).unwrap_or(0.0);
    let busy = median(other.iter().map(|slice| slice.server_busy).collect()).unwrap_or(0.0);
    let server_bound = (busy > SERVER_BOUND).then(|| format!("the server's core was {:.0} % busy", busy * 100.0));
    let failed: u64 = other.iter().map(|slice| slice.failed).sum();
    let wanted = |what: &str| format!("≥ {LEAST:.2} × {what}");
    Ok(vec![
        Bar::new("calls/s", wanted("HTTP's"), format!("{rate:.3} ×"), rate >= LEAST)
            .excused(server_bound.or_else(|| disturbed(others))),
        Bar::new("calls by CPU time", wanted("HTTP's"), format!("{cpu:.3} ×"), cpu >= LEAST).excused(disturbed(others)),
        Bar::new("failed", "none", failed.to_string(), failed == 0),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bar::Outcome;

    fn slice(per_s: f64, cpu_us: f64) -> Slice {
        Slice { per_s, cpu_us, failed: 0, server_busy: 0.8, others: 0.0 }
    }

    #[test]
    fn bars_are_on_the_median_of_pairs() {
        let http = [slice(100.0, 5.0), slice(50.0, 10.0), slice(100.0, 5.0)];
        let fine = [slice(81.0, 6.0), slice(40.0, 12.0), slice(10.0, 60.0)];
        let outcomes = |bars: Vec<Bar>| bars.into_iter().map(|bar| bar.outcome).collect::<Vec<_>>();
        assert_eq!(outcomes(judge(&http, &fine).unwrap()), [Outcome::Met, Outcome::Met, Outcome::Met]);
        let slow = [slice(79.0, 7.0), slice(39.0, 14.0), slice(79.0, 7.0)];
        assert_eq!(outcomes(judge(&http, &slow).unwrap()), [Outcome::Missed, Outcome::Missed, Outcome::Met]);
    }
}
