//! `brunt agents`: the agents on the bus.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::time::Duration;

use anyhow::{Result, bail};
use brunt_cluster::{Announcement, CLUSTER_VERSION, Offset};
use brunt_plan::units;
use clap::Args;
use serde_json::json;

use crate::args::machines::Bus;
use crate::args::values;
use crate::exit::Exit;
use crate::{console, executor};

/// List the agents that wait for runs
#[derive(Debug, Args)]
pub struct Agents {
    #[command(flatten)]
    pub bus: Bus,
    /// How long to wait for them to answer [default: 1s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub wait: Option<u64>,
    /// Print them as JSON
    #[arg(long)]
    pub json: bool,
}

/// The default wait.
const PATIENCE: Duration = Duration::from_secs(1);

pub fn run(args: &Agents) -> Result<Exit> {
    let Some(bus) = executor::bus(&args.bus)? else {
        bail!("which NATS server? Give --nats nats://HOST:4222");
    };
    let agents = brunt_cluster::list(&bus, args.wait.map_or(PATIENCE, Duration::from_nanos))?;
    if args.json {
        let list: Vec<_> = agents.iter().map(to_json).collect();
        let mut text = serde_json::to_string_pretty(&list)?;
        text.push('\n');
        console::print(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    if agents.is_empty() {
        console::note(&format!("no agent answers on {}: start some with brunt agent --nats …", bus.shown_url()));
        return Ok(Exit::Done);
    }
    let mut rows =
        vec![["NAME", "VERSION", "CORES", "CONNECTIONS", "LOAD", "CLOCK", "STATE", "TAGS"].map(str::to_owned)];
    for (agent, clock) in &agents {
        let Announcement { name, version, cores, connections, tags, load, .. } = agent;
        rows.push([
            name.clone(),
            version.clone(),
            cores.to_string(),
            connections.to_string(),
            load.map_or_else(|| "-".to_owned(), |load| format!("{load:.2}")),
            clock.map_or_else(|| "-".to_owned(), |clock| format!("±{}", units::Duration(clock.uncertainty_ns))),
            state(agent),
            tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","),
        ]);
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..8).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    console::print(text.as_bytes())?;
    Ok(Exit::Done)
}

/// Whether an agent can take part in a run.
fn state(agent: &Announcement) -> String {
    match &agent.busy {
        _ if agent.cluster_version != CLUSTER_VERSION => "another version: left out".to_owned(),
        Some(by) => format!("carries out a run of {by}"),
        None => "free".to_owned(),
    }
}

fn to_json((agent, clock): &(Announcement, Option<Offset>)) -> serde_json::Value {
    let Announcement { name, version, cores, connections, tags, busy, load, .. } = agent;
    json!({
        "name": name,
        "version": version,
        "cores": cores,
        "connections": connections,
        "tags": tags,
        "is_of_this_version": agent.cluster_version == CLUSTER_VERSION,
        "busy_with": busy,
        "load": load,
        "clock_offset_ns": clock.map(|clock| clock.ns),
        "clock_uncertainty_ns": clock.map(|clock| clock.uncertainty_ns),
    })
}
