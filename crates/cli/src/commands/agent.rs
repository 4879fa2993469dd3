//! `brunt agent`: waits for controllers, and carries out its part of their runs.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_cluster::{AgentEvent, AgentOptions, PartSamples, token_of};
use brunt_engine::{Finished, StopHandle};
use brunt_plan::plan::{Plan, Sandbox};
use brunt_protocol::Registry;
use brunt_record::catalogue::Counter;
use brunt_record::samples::SampleSink;
use brunt_report::{Format, Style};
use clap::Args;

use crate::args::machines::Bus;
use crate::args::values;
use crate::exit::Exit;
use crate::logs::AllowedLogs;
use crate::manifest::{self, Manifest};
use crate::scripts::SCRIPTS;
use crate::sinks::RowFile;
use crate::wording::{self, Settings};
use crate::{console, executor, files, machine, plan, signals};

/// Run an agent, which waits for controllers and carries out its part of their runs
#[derive(Debug, Args)]
pub struct Agent {
    #[command(flatten)]
    pub bus: Bus,
    /// The agent's name, unique on the bus [default: the host's name and a random number]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Tag the agent, repeatable: zone=eu
    #[arg(id = "tag", long, value_name = "K=V", value_parser = values::tag)]
    pub tags: Vec<(String, String)>,
    /// The number of CPUs that it may use [default: all]
    #[arg(long, value_name = "N", value_parser = values::threads)]
    pub cores: Option<u32>,
    /// Give controllers' scripts all your rights on this machine, beyond making calls
    #[arg(long)]
    pub no_sandbox: bool,
    /// Let runs replay logs in this directory, repeatable: their requests are shown to the target of the run
    #[arg(long, value_name = "DIR", conflicts_with = "manifest")]
    pub logs: Vec<PathBuf>,
    /// Write the result of each part into this directory, as JSON
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Write a row for each call of its parts into this directory: NAME-001.csv, NAME-002.csv, …
    #[arg(long, value_name = "DIR", conflicts_with = "manifest")]
    pub samples: Option<PathBuf>,
    /// With --samples: the format of its files [default: csv]
    #[arg(long, value_name = "FORMAT", requires = "samples", value_parser = ["csv", "ndjson"])]
    pub samples_format: Option<String>,
    /// With --samples: the share of calls that have a row: 1% or 0.01 [default: all]
    #[arg(long, value_name = "SHARE", requires = "samples", value_parser = values::share)]
    pub samples_share: Option<f64>,
    /// With --samples: the largest size of each file; calls beyond it have no row, and are counted [default: 1GiB]
    #[arg(long, value_name = "SIZE", requires = "samples", value_parser = values::size)]
    pub samples_limit: Option<u64>,
    /// Print nothing but errors
    #[arg(long)]
    pub quiet: bool,
    /// Print a Kubernetes manifest (YAML) that starts this many agents, and stop
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub manifest: Option<u32>,
}

pub fn run(args: &Agent, registry: &Registry) -> Result<Exit> {
    if let Some(agents) = args.manifest {
        let Agent { bus, name, cores, tags, no_sandbox, keep, quiet, .. } = args;
        let (name, keep) = (name.as_deref(), keep.as_deref());
        let (cores, no_sandbox, quiet) = (*cores, *no_sandbox, *quiet);
        let manifest = Manifest { agents, bus, name, cores, tags, no_sandbox, keep, quiet };
        console::print(manifest::yaml(&manifest)?.as_bytes())?;
        return Ok(Exit::Done);
    }
    let Some(bus) = executor::bus(&args.bus)? else {
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
        None => format!("{}-{:04x}", token_of(&executor::host_name()), std::process::id() & 0xffff),
    };
    let stop = StopHandle::default();
    signals::stop_at_first(stop.clone())?;
    let rows = args.samples.as_deref().map(|dir| Rows::new(dir, &name, args)).transpose()?.map(Arc::new);
    let (dir, quiet, parts) = (args.keep.clone(), args.quiet, AtomicU32::new(0));
    let written = rows.clone();
    let ended = move |part: &Finished| {
        let number = parts.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(Err(error)) = dir.as_deref().map(|dir| keep(part, dir, number)) {
            console::complain(&error, Settings::Flags);
        }
        if !quiet {
            console::note(&finished(part));
        }
        if let Some(rows) = &written {
            rows.end(quiet);
        }
    };
    let samples = rows.map(|rows| -> PartSamples { Arc::new(move |plan: &Plan| rows.begin(plan)) });
    let options = AgentOptions {
        name: name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tags: args.tags.iter().cloned().collect(),
        cores: args.cores.unwrap_or_else(plan::cores),
        logs: Arc::new(AllowedLogs::new(&args.logs, args.no_sandbox)?),
        sandbox: if args.no_sandbox { Sandbox::Open } else { Sandbox::Closed },
        words: |error| wording::render_error(&error.into(), Settings::Flags),
        ended: Arc::new(ended),
        samples,
    };
    let url = bus.shown_url();
    let mut said = |event: AgentEvent| {
        let line = match event {
            AgentEvent::Waiting => format!("agent {name} waits for runs on {url}"),
            AgentEvent::Bus(text) | AgentEvent::Failed(text) => text,
            AgentEvent::Claimed { by } => format!("belongs to {by}"),
            AgentEvent::Begun { portion } => {
                let (first, last) = (portion.first() + 1, portion.first() + portion.workers());
                format!("prepares workers {first} to {last} of {}", portion.all_workers())
            }
            AgentEvent::Released(None) => "is free again".to_owned(),
            AgentEvent::Released(Some(why)) => format!("is free again: {why}"),
        };
        if !args.quiet {
            console::note(&line);
        }
    };
    brunt_cluster::serve(&bus, options, Arc::new(registry.clone()), SCRIPTS, &stop, &mut said)?;
    // A signal is the normal end of an agent.
    signals::forget();
    Ok(Exit::Done)
}

/// The files with the rows of an agent's parts, one after the other.
struct Rows {
    dir: PathBuf,
    agent: String,
    format: String,
    share: Option<f64>,
    limit_bytes: Option<u64>,
    parts: AtomicU32,
    open: Mutex<Option<Arc<RowFile>>>,
}

impl Rows {
    fn new(dir: &Path, agent: &str, args: &Agent) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("--samples: cannot make {}", dir.display()))?;
        let rows = Self {
            dir: dir.to_owned(),
            agent: agent.to_owned(),
            format: args.samples_format.clone().unwrap_or_else(|| "csv".to_owned()),
            share: args.samples_share,
            limit_bytes: args.samples_limit,
            parts: AtomicU32::new(0),
            open: Mutex::new(None),
        };
        files::check_writable(&rows.path(1)).context("--samples")?;
        Ok(rows)
    }

    fn path(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{}-{number:03}.{}", self.agent, self.format))
    }

    /// The file of the next part. A part goes on without one that cannot be made.
    fn begin(&self, plan: &Plan) -> Option<Arc<dyn SampleSink>> {
        let path = self.path(self.parts.fetch_add(1, Ordering::Relaxed) + 1);
        match RowFile::new(&path, self.share, self.limit_bytes, self.agent.clone(), plan.secrets()) {
            Ok(file) => {
                let file = Arc::new(file);
                *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&file));
                Some(file)
            }
            Err(error) => {
                console::complain(&error, Settings::Flags);
                None
            }
        }
    }

    /// Writes what has come of the part, and says so.
    fn end(&self, quiet: bool) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sampled) = open.map(|file| file.end()) else { return };
        if let Some(problem) = &sampled.problem {
            console::complain(&anyhow!("--samples: cannot write {}: {problem}", sampled.file), Settings::Flags);
        } else if !quiet {
            console::note(&brunt_report::text::rows_of(&sampled));
        }
    }
}

fn finished(Finished { run, .. }: &Finished) -> String {
    let (answered, due) =
        (run.measured.statuses.total() + run.drained.statuses.total(), run.measured.numbers.get(Counter::Due));
    format!("its part is over: {due} calls due, {answered} answered")
}

/// Writes a part down.
fn keep(part: &Finished, dir: &Path, number: u32) -> Result<()> {
    let path = dir.join(format!("{number:03}.json"));
    // Thresholds are judged over all agents.
    let plan = Plan { thresholds: Vec::new(), guards: Vec::new(), ..part.plan.clone() };
    let summary = machine::summary_of(plan, part.run.clone());
    files::write(&path, &brunt_report::render(Format::Json, &summary, Style::default())?)
}
