//! HTTP/3 against the built-in target, beside oha.

use anyhow::Context as _;

use super::{Bench, CpuComparison};
use crate::bar::Bar;
use crate::clients::Load;
use crate::race::Race;
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

pub(super) const BENCH: Bench =
    Bench { name: "http3", about: "HTTP/3 at 1, 10 and 100 streams a connection, beside oha.", run };

const CONNECTIONS: u32 = 10;
const STREAMS: [u32; 3] = [1, 10, 100];
/// The most CPU time of a request, relative to oha.
const MOST: f64 = 0.4;
/// The least requests/s, relative to oha, unless the server's core is busy.
const LEAST: f64 = 3.0;
/// The share of its core from which a server is busy.
const BUSY: f64 = 0.95;

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let oha = setup
        .installed("oha")
        .context("this is measured in comparison to oha: cargo install oha --features http3")?;
    let brunt = setup.installed("brunt").context("brunt is not there")?;
    let mut bars = Vec::new();
    let mut table = Table::new(&["streams", "CPU µs/req", "× oha", "req/s", "× oha", "server's core"]);
    let server = Server::target(setup, &["--tls", "--http3"])?;
    for streams in STREAMS {
        let case = format!("{streams} {}", if streams == 1 { "stream" } else { "streams" });
        println!("### {case}\n");
        let load =
            Load { streams: Some(streams), http3: true, ..Load::new(&server.url, CONNECTIONS, setup.length) };
        let cpu = CpuComparison::measured(setup, &load, brunt, oha)?;
        let race = Race::run(setup, &server, &load, &[brunt, oha])?;
        let per_s = race.median("brunt", |sample| sample.report.per_s).context("no rounds")?;
        let rate = race.ratio("brunt", "oha", |sample| sample.report.per_s).context("no rounds")?;
        let busy = race.median("brunt", |sample| sample.server_busy).context("no rounds")?;
        table.row([
            streams.to_string(),
            format!("{:.2}", cpu.cpu_us),
            format!("{:.3}", cpu.ratio),
            format!("{per_s:.0}"),
            format!("{rate:.3}"),
            format!("{:.0} %", busy * 100.0),
        ]);
        bars.push(cpu.bar(format!("{case}: CPU per request, both at once"), MOST));
        let got = format!("{rate:.3} × oha, the server's core {:.0} % busy", busy * 100.0);
        bars.push(Bar::new(
            format!("{case}: requests/s"),
            "≥ 3 × oha, or a server that is busy for 95 %",
            got,
            rate >= LEAST || busy >= BUSY,
        ));
        let failed: u64 = race.samples("brunt").map(|sample| sample.report.failed).sum();
        bars.push(Bar::new(format!("{case}: failed"), "none", failed.to_string(), failed == 0));
    }
    println!("{table}");
    Ok(bars)
}
