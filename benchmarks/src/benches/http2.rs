//! HTTP/2 against nginx, plain and over TLS, beside h2load.

use anyhow::Context as _;

use super::{Bench, CpuComparison};
use crate::bar::Bar;
use crate::clients::Load;
use crate::race::Race;
use crate::servers::{Nginx, Server};
use crate::setup::Setup;
use crate::table::Table;

pub(super) const BENCH: Bench = Bench {
    name: "http2",
    about: "HTTP/2, plain and over TLS, at 1, 10 and 100 streams a connection, beside h2load.",
    run,
};

const CONNECTIONS: u32 = 10;
const STREAMS: [u32; 3] = [1, 10, 100];
/// The most CPU time of a request, relative to h2load.
const MOST: f64 = 0.85;
/// Rates count as equal within this share: two runs of one client differ as much.
const EQUAL: f64 = 0.03;

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let h2load =
        setup.installed("h2load").context("this is measured in comparison to h2load: install nghttp2-client")?;
    let brunt = setup.installed("brunt").context("brunt is not there")?;
    let mut bars = Vec::new();
    let mut table = Table::new(&["", "streams", "CPU µs/req", "× h2load", "req/s", "× h2load", "server's core"]);
    for tls in [false, true] {
        let server = Server::nginx(setup, Nginx { tls, http2: true })?;
        let name = if tls { "h2" } else { "h2c" };
        for streams in STREAMS {
            let case = format!("{name}, {streams} {}", if streams == 1 { "stream" } else { "streams" });
            println!("### {case}\n");
            let load = Load { streams: Some(streams), ..Load::new(&server.url, CONNECTIONS, setup.length) };
            let cpu = CpuComparison::measured(setup, &load, brunt, h2load)?;
            let race = Race::run(setup, &server, &load, &[brunt, h2load])?;
            let per_s = |client| race.median(client, |sample| sample.report.per_s).context("no rounds");
            let rate = race.ratio("brunt", "h2load", |sample| sample.report.per_s).context("no rounds")?;
            let busy = race.median("brunt", |sample| sample.server_busy).context("no rounds")?;
            table.row([
                name.to_owned(),
                streams.to_string(),
                format!("{:.2}", cpu.cpu_us),
                format!("{:.3}", cpu.ratio),
                format!("{:.0}", per_s("brunt")?),
                format!("{rate:.3}"),
                format!("{:.0} %", busy * 100.0),
            ]);
            bars.push(cpu.bar(format!("{case}: CPU per request, both at once"), MOST));
            let got = format!("{rate:.3} × h2load");
            let bar = Bar::new(format!("{case}: requests/s"), "≥ 1 × h2load, less 3 %", got, rate >= 1.0 - EQUAL);
            bars.push(bar.excused(race.server_bound().or_else(|| race.disturbed("h2load"))));
            let failed: u64 = race.samples("brunt").map(|sample| sample.report.failed).sum();
            bars.push(Bar::new(format!("{case}: failed"), "none", failed.to_string(), failed == 0));
        }
    }
    println!("{table}");
    Ok(bars)
}
