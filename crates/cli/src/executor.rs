//! The carrier of runs: this machine, or agents.

use std::cell::Cell;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use brunt_cluster::{Awaited, Bus, Cluster, ClusterOptions, Notice, OnLost, Waiting, WantedAgents, Workers};
use brunt_engine::{Control, Finished, Observer, RunShare, StopHandle};
use brunt_judge::abort::AbortWatch;
use brunt_plan::plan::{Load, Plan};
use brunt_protocol::Registry;
use brunt_protocol::replay::LogTimetable;
use brunt_record::agents::AgentPart;
use brunt_record::recording::{Ending, Recording};
use brunt_record::replayed::LogRead;
use brunt_script::Session;

use crate::args::machines::{self, Machines};
use crate::plan::EASY_RATE;
use crate::scripts::SCRIPTS;
use crate::watching::Watching;
use crate::{console, wait_for_target};

/// The default wait for agents.
const PATIENCE: Duration = Duration::from_secs(10);
/// The default prefix of subjects.
const PREFIX: &str = "brunt";

/// The carrier of runs.
pub struct Executor {
    by: By,
    /// Whether notes name what is waited for.
    tells: bool,
    /// Whether it has watched beside a run before.
    has_watched: Cell<bool>,
}

enum By {
    /// This machine.
    Here,
    /// Agents, which belong to this process until it releases them.
    Agents {
        /// The agents.
        cluster: Box<Cluster>,
        /// Workers of each, if their number was given.
        threads: Option<u32>,
        /// What happens to a run that loses one.
        on_lost: OnLost,
        /// Whether a run may go on without one.
        allows_loss: bool,
        /// Whether references to the environment are looked up on each of them.
        secrets_from_agents: bool,
    },
}

/// A run that was carried out.
pub struct RunOutcome {
    /// The plan as it was carried out.
    pub plan: Plan,
    /// The run's record.
    pub run: Recording,
    /// The script's function for the result, if it has one.
    pub script: Option<Box<dyn Session>>,
}

impl Executor {
    /// The carrier by these flags, with this many threads of each agent if the number is given. Agents are waited for
    /// until `stop`.
    ///
    /// # Errors
    /// When there are too few agents, or they cannot be reached.
    pub fn from_flags(machines: &Machines, threads: Option<u32>, quiet: bool, stop: &StopHandle) -> Result<Self> {
        let Some(bus) = bus(&machines.bus)? else {
            return Ok(Self { by: By::Here, tells: !quiet, has_watched: Cell::new(false) });
        };
        let terms = ClusterOptions {
            wanted: machines.agents.clone().unwrap_or(WantedAgents::All),
            patience: machines.agents_wait.map_or(PATIENCE, Duration::from_nanos),
            on_lost: match machines.on_lost_agent {
                None | Some(machines::OnLost::Continue) => OnLost::Continue,
                Some(machines::OnLost::Abort) => OnLost::Abort,
            },
            secrets_from_agents: machines.secrets_from_agents,
            name: format!("{}-{}", host_name(), std::process::id()),
            notice: if quiet { |_| {} } else { |notice| console::note(&news(notice)) },
        };
        let cluster = Cluster::take(&bus, &terms, stop)?;
        if !quiet {
            let agents = cluster.agents();
            let cores: u32 = agents.iter().map(|agent| agent.cores).sum();
            let (left_out, names) = (cluster.left_out(), names(agents));
            let number = match (agents.len(), left_out.len()) {
                (1, 0) => "1 agent".to_owned(),
                (taken, 0) => format!("{taken} agents"),
                (taken, out) => format!("{taken} of {} agents", taken + out),
            };
            console::note(&format!("{number} with {cores} cores: {names}"));
            for (name, why) in left_out {
                console::note(&format!("left out: {name} {why}"));
            }
        }
        let by = By::Agents {
            cluster: Box::new(cluster),
            threads,
            on_lost: terms.on_lost,
            allows_loss: machines.on_lost_agent.is_some() && terms.on_lost != OnLost::Abort,
            secrets_from_agents: terms.secrets_from_agents,
        };
        Ok(Self { by, tells: !quiet, has_watched: Cell::new(false) })
    }

    /// Whether its user accepts a run that lost an agent.
    pub fn allows_loss(&self) -> bool {
        matches!(self.by, By::Agents { allows_loss: true, .. })
    }

    /// Whether runs go on, or others are made, without an agent that was lost.
    pub fn goes_on_after_loss(&self) -> bool {
        !matches!(self.by, By::Agents { on_lost: OnLost::Abort, .. })
    }

    /// Carries `plan` out, which `control` changes while it goes on.
    ///
    /// # Errors
    /// When no load could be put on anything.
    pub fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        observer: &mut dyn Observer,
        control: &Control,
        stop: &StopHandle,
    ) -> Result<RunOutcome> {
        wait_for_target::wait(plan, registry, stop, self.tells)?;
        let watching = &mut Watching::begin(plan, !self.has_watched.replace(true), self.tells, observer)?;
        let observer = &mut AbortWatch::new(plan, watching).steering(|action, by| control.ask(action, by).ok());
        if let By::Here = &self.by {
            let part = RunShare { control: control.clone(), ..RunShare::whole(plan.workers_within_limits()) };
            let carried = brunt_engine::run_part(plan, part, registry, SCRIPTS, observer, stop)?;
            let Finished { plan, run, script } = carried;
            return Ok(RunOutcome { plan, run, script });
        }
        Ok(self.by_agents(plan, None, registry, observer, control, stop)?.0)
    }

    /// Has agents carry out a plan that replays a log, whose calls `timetable` has. Returns their accounts of the log,
    /// too, by name.
    ///
    /// # Errors
    /// When no load could be put on anything.
    pub fn replay(
        &self,
        plan: &Plan,
        timetable: Box<dyn LogTimetable>,
        registry: &Registry,
        observer: &mut dyn Observer,
        control: &Control,
        stop: &StopHandle,
    ) -> Result<(RunOutcome, Vec<(String, LogRead)>)> {
        wait_for_target::wait(plan, registry, stop, self.tells)?;
        let watching = &mut Watching::begin(plan, !self.has_watched.replace(true), self.tells, observer)?;
        let observer = &mut AbortWatch::new(plan, watching);
        self.by_agents(plan, Some(timetable), registry, observer, control, stop)
    }

    fn by_agents(
        &self,
        plan: &Plan,
        timetable: Option<Box<dyn LogTimetable>>,
        registry: &Registry,
        observer: &mut dyn Observer,
        control: &Control,
        stop: &StopHandle,
    ) -> Result<(RunOutcome, Vec<(String, LogRead)>)> {
        let By::Agents { cluster, threads, secrets_from_agents, .. } = &self.by else {
            bail!("no agents were asked for: give --nats");
        };
        if plan.own_times {
            bail!(
                "conversations (--turns) and traces with times of their own are made by one machine: leave --nats out"
            );
        }
        // Mistakes in the plan are reported here, before agents are told. Secrets that only agents have are made up.
        let here = if *secrets_from_agents { &plan.with_made_up_environment() } else { plan };
        brunt_engine::check(here, registry, SCRIPTS)?;
        let workers = match (&plan.load, threads) {
            (_, Some(threads)) => Workers::Each(*threads),
            (Load::Open { profile, .. }, None) if plan.script.is_none() && plan.scenarios.is_none() => {
                Workers::AtMost((profile.highest_rate() / EASY_RATE).ceil() as u32)
            }
            (_, None) => Workers::AsCores,
        };
        let outcome = cluster.run(plan, workers, timetable, observer, control, stop)?;
        let script = brunt_engine::load_report_script(here, registry, SCRIPTS, stop)?;
        let mut run = outcome.run;
        if self.allows_loss() {
            run.agents.iter_mut().for_each(AgentPart::allow_loss);
        }
        if outcome.lost_its_agents {
            run.ending = match run.ending {
                Ending::Failed(reason) => Ending::AgentsLost(reason),
                Ending::Aborted(cause) => Ending::AgentsLost(brunt_judge::abort::Reason(&cause).to_string()),
                _ => Ending::AgentsLost("an agent was lost".to_owned()),
            };
        }
        Ok((RunOutcome { plan: outcome.plan, run, script }, outcome.logs))
    }
}

/// A line about news of a controller.
fn news(notice: &Notice) -> String {
    match notice {
        Notice::Waiting(waiting) => waits(waiting),
        Notice::Joined(names) => format!("{} back: the next run is made with them, too", is_or_are(names)),
        Notice::NoServer { problem, left } => {
            format!("{problem}; trying again for {:.0}s", left.as_secs_f64().ceil())
        }
    }
}

fn is_or_are(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

/// A line about a wait that has become long.
fn waits(Waiting { awaited, agents, left }: &Waiting) -> String {
    const SHOWN: usize = 10;
    let mut names: Vec<&str> = agents.iter().take(SHOWN).map(String::as_str).collect();
    names.extend((agents.len() > SHOWN).then_some("…"));
    let names = names.join(", ");
    let what = match awaited {
        Awaited::Contact => "be heard again",
        Awaited::Plan => "take the plan",
        Awaited::Setup => "return from the script's setup",
        Awaited::Connections => "get ready",
        Awaited::Report => "report on",
        Awaited::End => "end",
        Awaited::Teardown => "return from the script's teardown",
    };
    format!("waiting for {names} to {what}, for at most {:.0}s", left.as_secs_f64().ceil())
}

fn names(agents: &[brunt_cluster::Announcement]) -> String {
    const SHOWN: usize = 4;
    let mut names: Vec<&str> = agents.iter().take(SHOWN).map(|agent| agent.name.as_str()).collect();
    if agents.len() > SHOWN {
        names.push("…");
    }
    names.join(", ")
}

/// The URL of the bus, if it is given; an `@NAME` is looked up in the environment.
///
/// # Errors
/// When there is no such variable.
pub fn url(nats: &machines::Bus) -> Result<Option<String>> {
    let Some(given) = &nats.nats else { return Ok(None) };
    let url = match given.strip_prefix('@') {
        Some(name) => std::env::var(name).with_context(|| format!("--nats: {name} is not set in the environment"))?,
        None => given.clone(),
    };
    Ok(Some(url))
}

/// The bus, if it is given.
///
/// # Errors
/// When one of its files cannot be read.
pub fn bus(nats: &machines::Bus) -> Result<Option<Bus>> {
    let Some(url) = url(nats)? else { return Ok(None) };
    Ok(Some(Bus {
        url,
        credentials: nats.nats_creds.clone(),
        nkey: nats.nats_nkey.clone(),
        trusted: nats.nats_ca.clone(),
        identity: nats.nats_cert.clone().zip(nats.nats_key.clone()),
        prefix: nats.nats_prefix.clone().unwrap_or_else(|| PREFIX.to_owned()),
    }))
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
