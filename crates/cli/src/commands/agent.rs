//! `brunt agent`: waits for controllers, and carries out its part of their runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail};
use brunt_cluster::{AgentEvent, AgentOptions, token_of};
use brunt_engine::{Finished, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Sandbox;
use brunt_protocol::Registry;
use brunt_record::catalogue::Counter;
use brunt_report::{Format, Style};

use super::manifest;
use crate::args::machines::Agent;
use crate::exit::Exit;
use crate::wording::{self, Settings};
use crate::{carrier, console, files, signals};

pub fn run(args: &Agent, registry: Registry) -> Result<Exit> {
    if let Some(agents) = args.manifest {
        console::print(manifest::of(args, agents)?.as_bytes())?;
        return Ok(Exit::Done);
    }
    let Some(bus) = carrier::bus(&args.bus)? else {
        bail!("which NATS server? Give --nats nats://HOST:4222");
    };
    if let Some(dir) = &args.keep {
        std::fs::create_dir_all(dir).with_context(|| format!("--keep: cannot make {}", dir.display()))?;
        files::check_writable(&dir.join("part.json")).context("--keep")?;
    }
    let name = match &args.name {
        Some(name) if token_of(name) != *name => {
            bail!("--name {name}: use letters, digits, '-' and '_': it is a part of a NATS subject");
        }
        Some(name) => name.clone(),
        None => format!("{}-{:04x}", token_of(&carrier::host_name()), std::process::id() & 0xffff),
    };
    let stop = StopHandle::default();
    signals::stop_at_first(stop.clone())?;
    let (dir, quiet, parts) = (args.keep.clone(), args.quiet, AtomicU32::new(0));
    let ended = move |part: &Finished| {
        let number = parts.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(Err(error)) = dir.as_deref().map(|dir| keep(part, dir, number)) {
            console::complain(&error, Settings::Flags);
        }
        if !quiet {
            console::note(&finished(part));
        }
    };
    let options = AgentOptions {
        name: name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tags: args.tags.iter().cloned().collect(),
        cores: args.cores.unwrap_or_else(crate::plan::cores),
        sandbox: if args.no_sandbox { Sandbox::Open } else { Sandbox::Closed },
        words: |error| wording::told(&error.into(), Settings::Flags),
        ended: Arc::new(ended),
    };
    let url = bus.shown_url();
    let mut said = |event: AgentEvent<'_>| {
        let line = match event {
            AgentEvent::Waiting => format!("agent {name} waits for runs on {url}"),
            AgentEvent::Bus(text) | AgentEvent::Failed(text) => text.to_owned(),
            AgentEvent::Claimed { by } => format!("belongs to {by}"),
            AgentEvent::Begun { portion } => {
                let (first, last) = (portion.first() + 1, portion.first() + portion.workers());
                format!("prepares workers {first} to {last} of {}", portion.of())
            }
            AgentEvent::TookOver { portion } => {
                let (first, last) = (portion.first() + 1, portion.first() + portion.workers());
                format!("takes over workers {first} to {last} of {} from an agent that was lost", portion.of())
            }
            AgentEvent::Released(None) => "is free again".to_owned(),
            AgentEvent::Released(Some(why)) => format!("is free again: {why}"),
        };
        if !args.quiet {
            console::note(&line);
        }
    };
    brunt_cluster::serve(&bus, options, Arc::new(registry), &stop, &mut said)?;
    // To be told to end is how an agent ends.
    signals::forget();
    Ok(Exit::Done)
}

fn finished(Finished { run, .. }: &Finished) -> String {
    let (answered, due) =
        (run.measured.statuses.total() + run.drained.statuses.total(), run.measured.numbers.get(Counter::Due));
    format!("its part is over: {due} calls due, {answered} answered")
}

/// Writes a part down.
fn keep(part: &Finished, dir: &Path, number: u32) -> Result<()> {
    let path = dir.join(format!("{number:03}.json"));
    let summary = Summary::of(part.plan.clone(), part.run.clone());
    files::write(&path, &brunt_report::render(Format::Json, &summary, Style::default())?)
}
