//! `brunt demo`: the built-in target and load on it, in one process.

use anyhow::{Context as _, Result};
use brunt_engine::protocol::Registry;
use brunt_testbed::http::{Config, Server};

use super::{Exit, bench};
use crate::args::{Bench, Demo, Load, Output};
use crate::results::Results;
use crate::{console, plan};

pub fn run(args: Demo, registry: &Registry) -> Result<Exit> {
    let server = Server::start(Config::default()).context("cannot start the built-in target")?;
    let output = Output { no_color: args.no_color, ..Output::default() };
    let load = Load {
        connections: Some(args.connections),
        threads: args.threads,
        duration: Some(args.duration),
        rate: args.rate,
        ..Load::default()
    };
    let plan = plan::of(&Bench { url: Some(server.url()), load, output, ..Bench::default() })?;
    console::print(before(&server.url()).as_bytes())?;
    let results = Results::of(&Output::default())?;
    let exit = bench::carry_out(&plan, registry, &results, &Output::default())?;
    console::print(AFTER.as_bytes())?;
    Ok(exit)
}

fn before(url: &str) -> String {
    format!("Putting load on brunt's own target, {url}, which runs in this process and shares its cores.\n\n")
}

const AFTER: &str = "
Above: how many requests a second were answered, how long they took (response time, from when each was due), and the
verdict: whether brunt itself was the bottleneck, so that you know which figures to believe.
Next:  brunt demo -r 2000                         the same at 2,000 requests a second: see the latency fall
       brunt serve http --stall 1s/5s             a target that freezes, for brunt -r 2000 http://127.0.0.1:8080/
       brunt --help                               everything else
";
