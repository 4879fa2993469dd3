//! `brunt demo`: the built-in target and load on it, in one process.

use std::thread::available_parallelism;

use anyhow::{Context as _, Result};
use brunt_engine::protocol::Registry;
use brunt_testbed::http::{Config, Server};

use super::{Exit, bench};
use crate::args::{Bench, Demo, Load, Output, values};
use crate::kept::Keep;
use crate::results::Results;
use crate::{console, plan};

pub fn run(args: Demo, registry: &Registry) -> Result<Exit> {
    let server = Server::start(Config::default()).context("cannot start the built-in target")?;
    let load = Load {
        connections: Some(args.connections),
        threads: Some(args.threads.unwrap_or_else(|| threads(args.connections))),
        duration: Some(args.duration),
        rate: args.rate,
        ..Load::default()
    };
    let output = Output { no_color: args.no_color, ..Output::default() };
    let bench = Bench { url: Some(server.url()), load, output, ..Bench::default() };
    let plan = plan::of(&bench, registry)?;
    console::print(before(&server.url()).as_bytes())?;
    let exit = bench::carry_out(&plan, registry, &Results::of(&bench.output)?, &bench.output, &Keep::Nothing)?;
    console::print(AFTER.as_bytes())?;
    Ok(exit)
}

/// All cores but one, which the target gets.
fn threads(connections: u32) -> u32 {
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(u32::MAX).saturating_sub(1).clamp(1, values::MOST_THREADS).min(connections)
}

fn before(url: &str) -> String {
    format!("Putting load on brunt's own target, {url}, in this same process.\n\n")
}

const AFTER: &str = "
What you see: requests answered a second; how long they took, counted from when
each was due; and the verdict, whether brunt itself was the bottleneck.
Try next:
  brunt demo -r 2000                 2,000 requests a second: see the latency fall
  brunt serve http --stall 1s/5s     a target that freezes, to aim at with
  brunt -r 2000 -d 20s http://127.0.0.1:8080/
  brunt --help                       everything else
";
