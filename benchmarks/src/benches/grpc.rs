//! Unary calls of gRPC beside ghz.

use anyhow::Context as _;
use serde_json::Value;

use super::{Bench, CpuComparison};
use crate::bar::Bar;
use crate::clients::{CLIENTS, Client, Load, Report};
use crate::servers::Server;
use crate::setup::{self, Installed, Setup};

pub(super) const BENCH: Bench = Bench { name: "grpc", about: "Unary calls of gRPC beside ghz, both at once.", run };

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/grpc/echo.proto");
const ARGUMENTS: &str = r#"{"text": "hello"}"#;
const CONNECTIONS: u32 = 8;
/// Calls in flight on each connection.
const STREAMS: u32 = 10;
/// The most CPU time of a call, relative to ghz.
const MOST: f64 = 0.20;

const BRUNT: Client = Client { name: "brunt", version: &[], scripts: false, arguments, read: CLIENTS[0].read };
const GHZ: Client = Client { name: "ghz", version: &["--version"], scripts: false, arguments: ghz_arguments, read };

fn arguments(load: &Load) -> Vec<String> {
    let mut arguments = (CLIENTS[0].arguments)(&Load { streams: None, ..load.clone() });
    let streams = load.streams.unwrap_or(1).to_string();
    let more = ["--streams", &streams, "--proto", SCHEMA, "--call", "brunt.Echo/Say", "--args", ARGUMENTS];
    arguments.extend(more.map(str::to_owned));
    arguments
}

fn ghz_arguments(load: &Load) -> Vec<String> {
    let address = load.url.trim_start_matches("grpc://").trim_end_matches('/');
    let (length, connections) = (format!("{}s", load.length.as_secs()), load.connections.to_string());
    let in_flight = (load.connections * load.streams.unwrap_or(1)).to_string();
    let fixed = ["--insecure", "--proto", SCHEMA, "--call", "brunt.Echo.Say", "--data", ARGUMENTS, "--format", "json"];
    // Calls in flight at the end are waited for, as brunt does.
    let load = ["--duration", &length, "--duration-stop", "wait", "--connections", &connections];
    let flight = ["--concurrency", &in_flight, "--cpus", "1", address];
    fixed.into_iter().chain(load).chain(flight).map(str::to_owned).collect()
}

/// Reads ghz's output in JSON.
fn read(output: &str) -> anyhow::Result<Report> {
    let result: Value = serde_json::from_str(output).context("ghz printed no JSON")?;
    let count = result["count"].as_u64().context("ghz's result has no count")?;
    let per_s = result["rps"].as_f64().context("ghz's result has no rps")?;
    let ok = result["statusCodeDistribution"]["OK"].as_u64().unwrap_or(0);
    Ok(Report { answered: ok, per_s, failed: count.saturating_sub(ok) })
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let figure = "CPU per call, both at once";
    let Some(program) = setup::find("ghz") else {
        let why = "ghz is not installed: go install github.com/bojand/ghz/cmd/ghz@latest";
        return Ok(vec![Bar::not_measured(figure, format!("≤ {MOST:.2} × ghz"), why)]);
    };
    let ghz = Installed { client: &GHZ, program, version: String::new() };
    let brunt = Installed { client: &BRUNT, program: setup.brunt.clone(), version: String::new() };
    let server = Server::echo(setup, "grpc")?;
    let load = Load { streams: Some(STREAMS), ..Load::new(&server.url, CONNECTIONS, setup.length) };
    println!(
        "{}; {CONNECTIONS} connections with {STREAMS} calls each, {} rounds of {} s\n",
        server.about,
        setup.rounds,
        load.length.as_secs()
    );
    let beside = CpuComparison::measured(setup, &load, &brunt, &ghz)?;
    println!("brunt takes {:.2} µs of CPU a call.\n", beside.cpu_us);
    Ok(vec![beside.bar(figure, MOST)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ghz_prints_is_read() {
        let output = r#"{"count": 12, "rps": 6.5, "statusCodeDistribution": {"OK": 11, "Unavailable": 1}}"#;
        assert_eq!(read(output).unwrap(), Report { answered: 11, per_s: 6.5, failed: 1 });
        assert!(read("{}").is_err());
    }
}
