//! The agent's machine: threads that carry out its part of a run, with the gate that holds them back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brunt_engine::{
    Control, EngineError, Finished, Gate, RunShare, ScriptLifecycle, SharedCounters, StopHandle, Supply,
};
use brunt_plan::plan::{Load, Plan};
use brunt_protocol::Registry;
use brunt_protocol::replay::{Logs, OpenLog};
use brunt_record::replayed::LogRead;
use brunt_script::ScriptHost;
use tokio::sync::mpsc::UnboundedSender;

use super::machine::{Job, MachineOrder, MachineReport, NewPart};
use super::seconds::Seconds;
use super::{PartEnded, PartSamples};
use crate::messages::{Grant, PartEnd, Problem};
use crate::roster::dealt_requests;

/// How often the gate is looked at while workers wait to begin.
const STARTING: Duration = Duration::from_millis(5);

/// The threads of an agent.
pub(super) struct Threads {
    pub(super) epoch: Instant,
    pub(super) registry: Arc<Registry>,
    pub(super) scripts: &'static dyn ScriptHost,
    pub(super) logs: Arc<dyn Logs>,
    /// Puts an error of the engine into words.
    pub(super) words: fn(EngineError) -> String,
    pub(super) ended: PartEnded,
    pub(super) samples: Option<PartSamples>,
    pub(super) done: UnboundedSender<(Job, MachineReport)>,
    /// Held by every thread that carries out a part, until it has kept its result.
    pub(super) keeping: Arc<()>,
    /// The job of the threads, current or last.
    pub(super) current: Option<Current>,
}

/// A job of the threads.
pub(super) struct Current {
    job: Job,
    stop: StopHandle,
    /// This machine's share of the counts that machines make together.
    counters: SharedCounters,
    /// Changes of the run.
    control: Control,
    /// The requests of the part, where a counted number is dealt to connections.
    supply: Option<Supply>,
    /// Where the workers of the part under way wait, and whether their connections are still being made.
    gate: Option<Gate>,
    is_connecting: bool,
    /// How far the part may go, in nanoseconds of the run.
    until_ns: u64,
}

impl Current {
    fn new(job: Job) -> Self {
        // To the controller, ending a part is the run's own end: it waits for its calls.
        let stop = StopHandle::default().of_run();
        Self {
            job,
            stop,
            counters: SharedCounters::default(),
            control: Control::default(),
            supply: None,
            gate: None,
            is_connecting: false,
            until_ns: 0,
        }
    }
}

impl Threads {
    /// How long the gate has not to be looked at; `None` if it has not to be.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.current.as_ref().filter(|current| current.is_connecting).map(|_| STARTING)
    }

    /// Whether results of parts are still being kept.
    pub(super) fn keeps(&self) -> bool {
        Arc::strong_count(&self.keeping) > 1
    }

    /// This machine's share of the counts that machines make together.
    pub(super) fn counts(&self) -> Option<BTreeMap<String, u64>> {
        self.current.as_ref().map(|current| current.counters.here())
    }

    /// How many requests of a counted number workers have taken.
    pub(super) fn taken(&self) -> Option<u64> {
        self.current.as_ref()?.supply.as_ref().map(Supply::taken)
    }

    /// Looks whether the workers of a part that is to begin are ready.
    pub(super) fn look(&mut self) {
        let Some(current) = &mut self.current else { return };
        if current.is_connecting && current.gate.as_ref().is_some_and(Gate::is_ready) {
            current.is_connecting = false;
            // The agent may have ended.
            let _ = self.done.send((current.job, MachineReport::Ready));
        }
    }

    /// The part of this job has ended.
    pub(super) fn forget(&mut self, job: Job) {
        if let Some(current) = self.current.as_mut().filter(|current| current.job == job) {
            (current.gate, current.is_connecting) = (None, false);
        }
    }

    /// Carries out an order of the agent.
    pub(super) fn act(&mut self, job: Job, act: MachineOrder) {
        match act {
            MachineOrder::SetUp(plan) => {
                let surround = |plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost, stop: &StopHandle| {
                    let set_up = brunt_engine::setup(plan, registry, scripts, stop);
                    set_up.map(|(given, left)| (given, Box::new(left)))
                };
                self.surround(job, plan, surround, MachineReport::SetUp);
            }
            MachineOrder::TearDown(plan, given) => {
                let surround = |plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost, stop: &StopHandle| {
                    brunt_engine::teardown(plan, given, registry, scripts, stop).map(Box::new)
                };
                self.surround(job, plan, surround, MachineReport::TornDown);
            }
            MachineOrder::Carry(part) => self.carry(job, *part),
            MachineOrder::Open { at } => self.open(job, at),
            MachineOrder::Extend(Grant { until_ns, changes, .. }) => {
                if let Some(current) = self.current.as_mut().filter(|current| current.job == job) {
                    // A grant includes the changes up to it.
                    current.control.take(&changes);
                    current.until_ns = current.until_ns.max(until_ns);
                    current.gate.iter().for_each(|gate| gate.extend(until_ns));
                }
            }
            MachineOrder::GiveBack(most) => {
                if let Some(supply) = self.supply(job) {
                    let _ = self.done.send((job, MachineReport::GivenBack(supply.give_back(most))));
                }
            }
            MachineOrder::AddNumbers { numbers, are_last } => {
                if let Some(supply) = self.supply(job) {
                    supply.add(numbers, are_last);
                }
            }
            MachineOrder::CountElsewhere(counts) => {
                if let Some(current) = self.current.as_ref().filter(|current| current.job == job) {
                    current.counters.set_elsewhere(&counts);
                }
            }
            MachineOrder::Stop => {
                if let Some(current) = self.current.as_ref().filter(|current| current.job == job) {
                    current.stop.stop();
                }
            }
            MachineOrder::Leave => {
                if let Some(current) = self.current.as_ref().filter(|current| current.job == job) {
                    current.stop.leave();
                }
            }
        }
    }

    fn supply(&self, job: Job) -> Option<&Supply> {
        self.current.as_ref().filter(|current| current.job == job)?.supply.as_ref()
    }

    /// Runs setup or teardown of a run, on a thread of its own.
    fn surround<T: 'static>(
        &mut self,
        job: Job,
        plan: Arc<Plan>,
        work: impl FnOnce(&Plan, &Registry, &dyn ScriptHost, &StopHandle) -> Result<T, EngineError> + Send + 'static,
        done: fn(Result<T, Problem>) -> MachineReport,
    ) {
        let current = Current::new(job);
        let (stop, registry, scripts) = (current.stop.clone(), Arc::clone(&self.registry), self.scripts);
        let (sender, words) = (self.done.clone(), self.words);
        self.current = Some(current);
        let spawned = std::thread::Builder::new().name("run".to_owned()).spawn(move || {
            let worked = work(&plan, &registry, scripts, &stop).map_err(|error| problem(error, words));
            // The agent may have ended.
            let _ = sender.send((job, done(worked)));
        });
        if let Err(error) = spawned {
            let _ = self.done.send((job, done(Err(no_thread(&error)))));
        }
    }

    fn carry(&mut self, job: Job, part: NewPart) {
        let NewPart { plan, machine, portion, given } = part;
        let gate = Gate::with_horizon();
        let supply = dealt_requests(&plan).map(|_| Supply::default());
        let current =
            Current { gate: Some(gate.clone()), is_connecting: true, supply: supply.clone(), ..Current::new(job) };
        let part = RunShare {
            portion,
            gate: Some(gate),
            counters: current.counters.clone(),
            script_lifecycle: ScriptLifecycle::Elsewhere(given),
            control: current.control.clone(),
            supply: supply.unwrap_or_default(),
        };
        let (stop, registry, scripts) = (current.stop.clone(), Arc::clone(&self.registry), self.scripts);
        let (sender, words, ended) = (self.done.clone(), self.words, Arc::clone(&self.ended));
        let (logs, samples) = (Arc::clone(&self.logs), self.samples.clone());
        let keeping = Arc::clone(&self.keeping);
        self.current = Some(current);
        let spawned = std::thread::Builder::new().name("run".to_owned()).spawn(move || {
            let samples = samples.and_then(|open| open(&plan));
            let mut seconds = Seconds { job, machine, sender: sender.clone(), samples };
            let ran = if let Load::Replay(_) = &plan.load {
                replay(&plan, part, &*logs, &registry, scripts, &mut seconds, &stop, words)
            } else {
                let ran = brunt_engine::run_part(&plan, part, &registry, scripts, &mut seconds, &stop);
                ran.map(|finished| (finished, None)).map_err(|error| problem(error, words))
            };
            let (finished, ran) = match ran {
                Ok((finished, log)) => {
                    let ended = Box::new(PartEnd::new(&finished.run, log));
                    (Some(finished), Ok(ended))
                }
                Err(problem) => (None, Err(problem)),
            };
            // The agent may have ended.
            let _ = sender.send((job, MachineReport::Ran(ran)));
            // It may block on a disk, so that it comes last.
            if let Some(finished) = finished {
                ended(&finished);
            }
            drop(keeping);
        });
        if let Err(error) = spawned {
            let _ = self.done.send((job, MachineReport::Ran(Err(no_thread(&error)))));
        }
    }

    /// Lets the part begin.
    fn open(&mut self, job: Job, at: u64) {
        let Some(current) = self.current.as_ref().filter(|current| current.job == job) else { return };
        let Some(gate) = &current.gate else { return };
        if let Some(late) = gate.open_at(self.epoch + Duration::from_nanos(at)) {
            gate.extend(current.until_ns);
            let _ = self.done.send((job, MachineReport::Began { at: at + late, late }));
        }
    }
}

/// Carries out a part of a replay, with this machine's log.
#[expect(clippy::too_many_arguments, reason = "those of the engine, and the log")]
fn replay(
    plan: &Plan,
    part: RunShare,
    logs: &dyn Logs,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    seconds: &mut Seconds,
    stop: &StopHandle,
    words: fn(EngineError) -> String,
) -> Result<(Finished, Option<Box<LogRead>>), Problem> {
    let OpenLog { of_workers, read } =
        logs.open(plan, part.portion).map_err(|text| Problem { text, is_impossible: false })?;
    let ran = brunt_engine::run_replay_part(plan, part, of_workers, registry, scripts, seconds, stop);
    let finished = ran.map_err(|error| problem(error, words))?;
    Ok((finished, Some(Box::new(read()))))
}

fn problem(error: EngineError, words: fn(EngineError) -> String) -> Problem {
    let is_impossible = match &error {
        EngineError::Route(route) => route.is_no_address(),
        error => matches!(error, EngineError::Descriptors { .. } | EngineError::System { .. }),
    };
    Problem { text: words(error), is_impossible }
}

fn no_thread(error: &std::io::Error) -> Problem {
    Problem { text: format!("cannot start a thread: {error}"), is_impossible: true }
}
