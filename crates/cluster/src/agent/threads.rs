//! The agent's machine: threads that carry out parts of runs, with the gates that hold them back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brunt_engine::{Control, EngineError, Finished, Gate, Part, StopHandle, Surrounded, Takeover, Tallies};
use brunt_plan::plan::{Load, Plan};
use brunt_protocol::Registry;
use brunt_protocol::replay::{Logs, OpenLog};
use brunt_record::replayed::LogRead;
use brunt_script::ScriptHost;
use tokio::sync::mpsc::UnboundedSender;

use super::PartEnded;
use super::machine::{Act, Done, Job, NewPart, Ran};
use super::seconds::Seconds;
use crate::words::{Grant, Problem};

/// How often gates are looked at while workers wait to begin.
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
    pub(super) done: UnboundedSender<(Job, Done)>,
    /// The job of the threads, current or last.
    pub(super) current: Option<Current>,
}

/// A job of the threads.
pub(super) struct Current {
    job: Job,
    stop: StopHandle,
    /// This machine's share of the counts that machines make together.
    tallies: Tallies,
    /// Changes of the run.
    control: Control,
    parts: BTreeMap<u32, GateOfPart>,
    /// How far parts may go, in nanoseconds of the run.
    until_ns: u64,
}

/// Where the workers of a part wait.
struct GateOfPart {
    gate: Gate,
    stage: Stage,
    /// When the part begins, in nanoseconds of the run.
    joins_ns: u64,
}

/// How far a part is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    Ready,
    /// It will join the run at this time, once its thread has a clock.
    Joining(Instant),
    Open,
}

impl Current {
    fn new(job: Job) -> Self {
        // To the controller, ending a part is the run's own end: it waits for its calls.
        let stop = StopHandle::default().of_run();
        Self {
            job,
            stop,
            tallies: Tallies::default(),
            control: Control::default(),
            parts: BTreeMap::new(),
            until_ns: 0,
        }
    }
}

impl GateOfPart {
    fn extend(&self, until_ns: u64) {
        self.gate.extend(until_ns.saturating_sub(self.joins_ns));
    }
}

impl Threads {
    /// How long no gate has to be looked at; `None` if none has to be.
    pub(super) fn patience(&self) -> Option<Duration> {
        let waits = |part: &GateOfPart| matches!(part.stage, Stage::Connecting | Stage::Joining(_));
        self.current.iter().flat_map(|current| current.parts.values()).any(waits).then_some(STARTING)
    }

    /// This machine's share of the counts that machines make together.
    pub(super) fn counts(&self) -> Option<BTreeMap<String, u64>> {
        self.current.as_ref().map(|current| current.tallies.here())
    }

    /// Looks at the gates of parts that are to begin.
    pub(super) fn look(&mut self) {
        let Some(Current { job, parts, until_ns, .. }) = &mut self.current else { return };
        for part in parts.values_mut() {
            match part.stage {
                Stage::Connecting if part.gate.is_ready() => {
                    part.stage = Stage::Ready;
                    // The agent may have ended.
                    let _ = self.done.send((*job, Done::Ready));
                }
                // Before its thread has started the run, there is no clock to join by.
                Stage::Joining(at) if part.gate.join_at(at) => {
                    part.stage = Stage::Open;
                    part.extend(*until_ns);
                }
                _ => {}
            }
        }
    }

    /// A part has ended.
    pub(super) fn forget(&mut self, job: Job, number: u32) {
        if let Some(current) = self.current.as_mut().filter(|current| current.job == job) {
            current.parts.remove(&number);
        }
    }

    /// Carries out an order of the agent.
    pub(super) fn act(&mut self, job: Job, act: Act) {
        match act {
            Act::SetUp(plan) => {
                let surround = |plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost, stop: &StopHandle| {
                    let set_up = brunt_engine::setup(plan, registry, scripts, stop);
                    set_up.map(|(given, counted)| (given, Box::new(counted)))
                };
                self.surround(job, plan, surround, Done::SetUp);
            }
            Act::TearDown(plan, given) => {
                let surround = |plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost, stop: &StopHandle| {
                    brunt_engine::teardown(plan, given, registry, scripts, stop).map(Box::new)
                };
                self.surround(job, plan, surround, Done::TornDown);
            }
            Act::Carry(part) => self.carry(job, *part),
            Act::Open { at } => self.open(job, at),
            Act::Extend(Grant { until_ns, changes, .. }) => {
                if let Some(current) = self.current.as_mut().filter(|current| current.job == job) {
                    // A grant includes the changes up to it.
                    current.control.take(&changes);
                    current.until_ns = current.until_ns.max(until_ns);
                    current.parts.values().for_each(|part| part.extend(until_ns));
                }
            }
            Act::CountElsewhere(counts) => {
                if let Some(current) = self.current.as_ref().filter(|current| current.job == job) {
                    current.tallies.set_elsewhere(&counts);
                }
            }
            Act::Stop => {
                if let Some(current) = self.current.as_ref().filter(|current| current.job == job) {
                    current.stop.stop();
                }
            }
        }
    }

    /// Runs setup or teardown of a run, on a thread of its own.
    fn surround<T: 'static>(
        &mut self,
        job: Job,
        plan: Arc<Plan>,
        work: impl FnOnce(&Plan, &Registry, &dyn ScriptHost, &StopHandle) -> Result<T, EngineError> + Send + 'static,
        done: fn(Result<T, Problem>) -> Done,
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
        let NewPart { plan, number, machine, portion, given, takeover } = part;
        let is_more = number > 0 && self.current.as_ref().is_some_and(|current| current.job == job);
        if !is_more {
            self.current = Some(Current::new(job));
        }
        let Some(current) = &mut self.current else { return };
        if current.parts.is_empty() {
            // The job before may have been stopped.
            current.stop = StopHandle::default().of_run();
        }
        let (gate, joins_ns) = (Gate::with_horizon(), takeover.as_ref().map_or(0, |(part, _)| part.after_ns));
        let stage = match &takeover {
            Some((_, at)) => Stage::Joining(self.epoch + Duration::from_nanos(*at)),
            None => Stage::Connecting,
        };
        let joins_ns = if takeover.is_some() { plan.warmup_ns.saturating_add(joins_ns) } else { 0 };
        let takeover: Option<Takeover> = takeover.map(|(takeover, _)| takeover);
        let part = Part {
            portion,
            gate: Some(gate.clone()),
            tallies: current.tallies.clone(),
            surroundings: Surrounded::Elsewhere(given),
            takeover,
            control: current.control.clone(),
        };
        current.parts.insert(number, GateOfPart { gate, stage, joins_ns });
        let (stop, registry, scripts) = (current.stop.clone(), Arc::clone(&self.registry), self.scripts);
        let (sender, words, ended) = (self.done.clone(), self.words, Arc::clone(&self.ended));
        let logs = Arc::clone(&self.logs);
        let name = if number == 0 { "run" } else { "takeover" };
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut seconds = Seconds { job, part: number, machine, sender: sender.clone() };
            let ran = if let Load::Replay(_) = &plan.load {
                replay(&plan, part, &*logs, &registry, scripts, &mut seconds, &stop, words)
            } else {
                let ran = brunt_engine::run_part(&plan, part, &registry, scripts, &mut seconds, &stop);
                ran.map(|finished| (finished, None)).map_err(|error| problem(error, words))
            };
            let ran = ran.inspect(|(finished, _)| ended(finished));
            let ran = ran.map(|(Finished { run, .. }, log)| Box::new(Ran { run, log }));
            // The agent may have ended.
            let _ = sender.send((job, Done::Ran(number, ran)));
        });
        if let Err(error) = spawned {
            let _ = self.done.send((job, Done::Ran(number, Err(no_thread(&error)))));
        }
    }

    /// Lets the agent's own part begin.
    fn open(&mut self, job: Job, at: u64) {
        let Some(current) = self.current.as_mut().filter(|current| current.job == job) else { return };
        let Some(part) = current.parts.get_mut(&0) else { return };
        if let Some(late) = part.gate.open_at(self.epoch + Duration::from_nanos(at)) {
            part.stage = Stage::Open;
            part.extend(current.until_ns);
            let _ = self.done.send((job, Done::Began { at: at + late, late }));
        }
    }
}

/// Carries out a part of a replay, with this machine's log.
#[expect(clippy::too_many_arguments, reason = "those of the engine, and the log")]
fn replay(
    plan: &Plan,
    part: Part,
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
