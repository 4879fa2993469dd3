//! A worker: a thread with its own network, a source of calls, and one loop for both.
//!
//! The loop takes a run through its phases ([`Workload`]): connecting, warm-up, measured, drain. It reports each second's
//! figures to the coordinator.

mod closing;
mod gathering;
mod reports;
mod second;
mod target;
mod thread_usage;

use brunt_record::recording::Stop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use brunt_plan::plan::Plan;
use brunt_plan::stop::StopHandle;
use brunt_protocol::meter::Meter;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{JsonGroupNumbers, Timing, Timings, places};
use brunt_record::redaction::Secrets;
use brunt_record::samples::SampleSink;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::time::Tick;

use self::gathering::Gathering;
pub use self::reports::Report;
pub(crate) use self::reports::{Interval, StartingLine};
use self::second::Second;
use self::target::Target;
use self::thread_usage::ThreadUsage;
use crate::control::Control;
use crate::error::EngineError;
use crate::gate::Gate;
use crate::network::origins::Origins;
use crate::network::{CallLimits, LoadEnd, Network, Workload};
use crate::transport::{Driver, Machine, Ready};

/// The times of making a connection.
const CONNECTING: [Timing; 3] = [Timing::Connect, Timing::Tls, Timing::Handshake];

/// The longest interval in which a worker looks whether it should stop, in nanoseconds.
const HEARTBEAT_NS: u64 = 50_000_000;
/// How often a worker reports that may be left behind, in nanoseconds: anything later is lost then.
const PART_NS: u64 = 100_000_000;
/// How often a worker looks whether the others are ready too, in nanoseconds.
const STARTING_LOOK_NS: u64 = 1_000_000;

/// The most connections of a worker whose invariants are checked at each step: with more, checking would make it look
/// busy to itself.
#[cfg(feature = "simulation")]
const MOST_AUDITED: usize = 100;

/// State that the workers of a run share.
pub(crate) struct Shared {
    pub(crate) plan: Arc<Plan>,
    /// Secrets, which are removed from every report.
    secrets: Secrets,
    pub(crate) line: StartingLine,
    pub(crate) stop: StopHandle,
    /// Changes of the run while it goes on.
    pub(crate) control: Control,
    /// Whether a script has ended the run.
    pub(crate) ended: AtomicBool,
    /// Whether a connection to the target was ever made.
    reached: AtomicBool,
    /// Whether anything was ever answered.
    answered: AtomicBool,
}

impl Shared {
    /// The state for workers of a run of `plan`, which wait at `gate` if there is one.
    pub(crate) fn new(plan: Arc<Plan>, stop: &StopHandle, gate: Option<Gate>) -> Self {
        Self {
            secrets: plan.secrets(),
            plan,
            line: StartingLine::behind(gate),
            control: Control::default(),
            stop: stop.clone(),
            ended: AtomicBool::new(false),
            reached: AtomicBool::new(false),
            answered: AtomicBool::new(false),
        }
    }

    /// Makes it a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { control: control.clone(), ..self }
    }

    /// Its load ends, or does not begin.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// A worker's place in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Connections are made.
    Preparing {
        /// Until when that waits, if nothing happens.
        until: Tick,
    },
    /// This worker is ready and waits for the others.
    Waiting,
    /// The load is on, measured or not, or drains.
    Loading(Phase),
    /// The end.
    Over,
}

/// One worker.
pub(crate) struct Worker<D: Driver, W: Workload<D>> {
    shared: Arc<Shared>,
    network: Network<D, W::Tag>,
    load: W,
    reports: Sender<Report>,
    number: u32,
    vitals: ThreadUsage,
    gathering: Gathering,
    stage: Stage,
    /// The second of the phase that is under way.
    second: Second,
    /// When it reports again within the second, if it may be left behind.
    next_part: Tick,
    /// When the load's phase ends: [`Tick::NEVER`] if not by time.
    load_until: Tick,
    /// When the measured part began.
    measured_began: Tick,
    measured_ns: u64,
    interrupted: bool,
    /// Whether the user's request to end the run was heard, and until when calls in flight are waited for, once that is
    /// known.
    user_stopped: bool,
    drain_until: Tick,
    target: Target,
    /// When calls began.
    load_began: Tick,
    /// Figures of the connections made before the load.
    connected_ahead: Snapshot,
}

impl<D: Driver, W: Workload<D>> Worker<D, W> {
    /// Worker `number`, which makes the calls of `load` on a network of its own.
    pub(crate) fn new(
        shared: Arc<Shared>,
        mut driver: D,
        origins: Origins,
        number: u32,
        load: W,
        reports: Sender<Report>,
    ) -> Self {
        let (now, is_real_time) = (driver.now(), driver.is_real_time());
        let network = Network::new(driver, origins, CallLimits::from_plan(&shared.plan), shared.plan.ok_status.clone());
        Self {
            shared,
            network,
            load,
            reports,
            number,
            vitals: ThreadUsage::new(now, is_real_time),
            gathering: Gathering::default(),
            stage: Stage::Preparing { until: Tick::NEVER },
            second: Second::first(now),
            next_part: Tick::NEVER,
            load_until: Tick::NEVER,
            measured_began: Tick::EPOCH,
            measured_ns: 0,
            interrupted: false,
            user_stopped: false,
            drain_until: Tick::NEVER,
            target: Target::default(),
            load_began: now,
            connected_ahead: Snapshot::default(),
        }
    }

    /// The same worker, which writes its calls down.
    pub(crate) fn sampled_by(mut self, samples: Option<&Arc<dyn SampleSink>>) -> Self {
        if let Some(samples) = samples {
            self.network.sample(Arc::clone(samples), self.number);
        }
        self
    }

    /// The same worker, whose calls the protocol measures by itself.
    pub(crate) fn metered_by(mut self, meter: Option<Box<dyn Meter>>) -> Self {
        self.network.metered_by(meter);
        self
    }

    /// Where it reports to.
    pub(crate) fn reports(&self) -> Sender<Report> {
        self.reports.clone()
    }

    /// Carries out the worker's share of the plan, to its end, and returns the source of its calls.
    ///
    /// # Errors
    /// When the operating system cannot wait for events. Measurements up to then are reported all the same.
    pub(crate) fn run(mut self) -> io::Result<W> {
        // The scheduler's figures are per thread, and this worker was put together on another one.
        self.vitals = ThreadUsage::new(self.network.now(), self.network.is_real_time());
        let outcome = self.go_through();
        if outcome.is_err() {
            let now = self.network.now();
            self.end_early(now);
            self.end_drain(now);
        }
        let leaving = self.load.load_end();
        let shown = |reason: String| self.shared.secrets.hide(&reason).into_owned();
        let (unreached, unconnected) = self.target.take_reasons();
        if let Some(reason) = unconnected {
            let _ = self.reports.send(Report::Unconnected(shown(reason)));
        }
        let finished = Report::Finished {
            worker: self.number,
            measured_ns: self.measured_ns,
            interrupted: self.interrupted,
            failed: match &leaving {
                Some(LoadEnd::Failed(reason)) => Some(shown(reason.clone())),
                _ => outcome.as_ref().err().map(|error| format!("cannot wait for events: {error}")),
            },
            stopped: match leaving {
                Some(LoadEnd::Stopped(stop)) => Some(Stop { reason: shown(stop.reason), ok: stop.ok }),
                _ => None,
            },
            unreached: unreached.map(shown),
        };
        // The coordinator listens until every worker has finished; if it is gone, so is the run.
        let _ = self.reports.send(finished);
        outcome.map(|()| self.load)
    }

    fn go_through(&mut self) -> io::Result<()> {
        let mut events: Vec<Ready> = Vec::new();
        loop {
            let now = self.network.now();
            let stops = self.shared.stop.is_stopped();
            self.vitals.beat(now);
            if let Some(late) = self.network.late_by(now) {
                self.network.stood_still(self.vitals.stood_still(now, late));
            }
            if now >= self.network.next_deadline() || self.drain_is_over(now) {
                self.network.expire(&mut self.load, now, &mut events)?;
            } else if self.closes_second(now, stops) {
                // What has come by the end of a second counts in it.
                self.network.settle(&mut self.load, now, &mut events)?;
            }
            self.tick(now, stops);
            if matches!(self.stage, Stage::Over) {
                return Ok(());
            }
            #[cfg(feature = "simulation")]
            if !self.network.is_real_time() && self.network.connections().len() <= MOST_AUDITED {
                self.load.audit(&self.network, now);
            }
            self.network.send_owed();
            let until = if self.network.has_work() { now } else { self.next_wake(now) };
            if let Some(pause) = self.pause().filter(|pause| now + *pause < until) {
                self.network.driver_mut().pause(pause);
                self.gathering.paused(pause, self.network.now().since(now));
            }
            self.network.waits(until);
            self.network.driver_mut().wait(until, &mut events)?;
            self.network.woke();
            self.network.read_on(&mut self.load);
            for (at, &event) in events.iter().enumerate() {
                if let Some(next) = events.get(at + 1) {
                    self.network.foresee(next.token, events.get(at + 2).map(|event| event.token));
                }
                self.network.handle(&mut self.load, event);
            }
            self.load.turn(&mut self.network);
        }
    }

    /// Whether nothing is waited for any more.
    #[inline]
    fn drain_is_over(&self, now: Tick) -> bool {
        now >= self.drain_until && matches!(self.stage, Stage::Loading(Phase::Drain))
    }

    /// Whether a second, or the phase of the load, is over at `now` and not reported yet, or the run `stops`.
    #[inline]
    fn closes_second(&self, now: Tick, stops: bool) -> bool {
        matches!(self.stage, Stage::Loading(Phase::Warmup | Phase::Measured))
            && (now >= self.load_until || now >= self.second.ends() || stops)
    }

    /// How long to let answers gather, in nanoseconds.
    #[inline]
    fn pause(&self) -> Option<u64> {
        if !self.load.gathers() {
            return None;
        }
        self.gathering.pause(self.network.recorder().usual_service_ns(), self.network.calls_alive())
    }

    /// Does everything that is due by time, or because the run `stops`.
    fn tick(&mut self, now: Tick, stops: bool) {
        match self.stage {
            Stage::Preparing { .. } => {
                if let Some(until) = self.load.prepare(&mut self.network, now) {
                    self.stage = Stage::Preparing { until };
                } else {
                    self.shared.line.arrive(self.shared.plan.workers, now);
                    self.stage = Stage::Waiting;
                }
            }
            Stage::Waiting => {
                if let Some(begin) = self.shared.line.time().filter(|begin| *begin <= now) {
                    self.begin(begin);
                }
            }
            Stage::Loading(phase) => self.tick_phase(phase, now),
            Stage::Over => {}
        }
        if self.target.is_awaited() {
            self.look_for_target(now);
        }
        match self.load.load_end() {
            Some(leaving) => {
                match leaving {
                    LoadEnd::Failed(_) => self.shared.stop.stop(),
                    LoadEnd::Stopped(_) => self.shared.end(),
                    LoadEnd::Done => {}
                }
                self.end_early(now);
            }
            None if self.shared.ended.load(Ordering::Relaxed) => {
                self.end_early(now);
            }
            None if stops => self.stop(now),
            None => {}
        }
    }

    /// The run shall end. After a request in the load, calls in flight have a second to end; after one in the drain,
    /// none. Nothing is waited for where the run is to leave.
    fn stop(&mut self, now: Tick) {
        let stop = &self.shared.stop;
        let (leaves, by_user) = (stop.leaves(), stop.is_stopped_by_user());
        let is_new = by_user && !std::mem::replace(&mut self.user_stopped, true);
        let is_draining = self.stage == Stage::Loading(Phase::Drain);
        if is_new && !leaves && self.stage == Stage::Loading(Phase::Measured) {
            self.load.interrupted(&mut self.network, now);
        }
        self.interrupted |= self.end_early(now) || (is_draining && is_new);
        if is_new {
            self.drain_until = self.drain_until.min(now + if is_draining { 0 } else { SECOND_NS });
        }
        if self.stage == Stage::Loading(Phase::Drain) && (leaves || now >= self.drain_until) {
            self.end_drain(now);
        }
    }

    fn tick_phase(&mut self, phase: Phase, now: Tick) {
        if now >= self.next_part {
            self.next_part = now + PART_NS;
            self.report_part(phase, now);
        }
        let end = self.load_until;
        match phase {
            Phase::Warmup => {
                self.close_seconds(phase, now.min(end));
                if now >= end {
                    self.load.end_load(&mut self.network, end);
                    self.close_phase(phase, end);
                    self.begin_measured(end);
                } else {
                    self.load.tick(&mut self.network, now);
                }
            }
            Phase::Measured => {
                // The last second is reported together with the calls never sent in it.
                self.close_seconds(phase, now.min(end.before(1)));
                // As before the end: a call that was due in time is sent if a connection is free for it.
                self.load.tick(&mut self.network, now);
                if now >= end {
                    self.end_measured(end);
                } else if self.load.is_over(&self.network, now) {
                    self.end_measured(now);
                }
            }
            Phase::Drain => {
                let end = self.drain_until;
                self.close_seconds(phase, now.min(end));
                if self.network.under_way() == 0 || now >= end {
                    self.end_drain(now.min(end));
                }
            }
        }
    }

    /// When to wake up if nothing happens on a connection.
    fn next_wake(&self, now: Tick) -> Tick {
        let wake = self.network.next_deadline().min(self.vitals.next_beat());
        wake.min(match self.stage {
            Stage::Preparing { until } => until,
            Stage::Waiting => self.shared.line.time().unwrap_or(now + STARTING_LOOK_NS),
            Stage::Loading(phase) => {
                let end = match phase {
                    // Others may have taken all the work before this worker began.
                    Phase::Measured if self.load.is_over(&self.network, now) => now,
                    Phase::Warmup | Phase::Measured => self.load_until.min(self.load.next_wake(now)),
                    Phase::Drain => self.drain_until,
                };
                end.min(self.second.ends())
            }
            Stage::Over => Tick::NEVER,
        })
    }

    /// The load begins, at the same time on every worker.
    fn begin(&mut self, now: Tick) {
        let spun_ns = self.network.driver_mut().spun_ns();
        self.vitals.lap(now, spun_ns);
        self.load_began = now;
        // Figures of making connections belong to the result, even if a warm-up comes first.
        let begun = self.network.recorder_mut().take();
        self.connected_ahead = Snapshot {
            numbers: *JsonGroupNumbers::<places::Connections>::from_numbers(&begun.numbers).numbers(),
            times: Timings::from_values(CONNECTING.map(|timing| (timing, begun.times.get(timing).clone()))),
            troubles: begun.troubles,
            addresses: begun.addresses,
            events: begun.events,
            ..Snapshot::default()
        };
        if self.shared.plan.warmup_ns == 0 {
            self.begin_measured(now);
        } else {
            self.shared.control.begin(now.saturating_add(self.shared.plan.warmup_ns));
            self.network.recorder_mut().warming_up = true;
            self.begin_phase(Phase::Warmup, now, Some(self.shared.plan.warmup_ns));
        }
    }

    /// The measured part begins. Calls of the warm-up that are under way end unseen.
    fn begin_measured(&mut self, now: Tick) {
        self.shared.control.begin(now);
        self.network.recorder_mut().begin_measured(now);
        self.network.recorder_mut().snapshot.merge(&std::mem::take(&mut self.connected_ahead));
        self.measured_began = now;
        self.begin_phase(Phase::Measured, now, self.shared.plan.duration_ns());
    }

    fn begin_phase(&mut self, phase: Phase, began: Tick, length_ns: Option<u64>) {
        self.second = Second::first(began);
        self.next_part = if self.load.nature().may_hang { began } else { Tick::NEVER };
        self.load_until = length_ns.map_or(Tick::NEVER, |length| began.saturating_add(length));
        // What comes after the warm-up counts in the measured part, however late this worker closes the one and begins the other.
        let stop = if phase == Phase::Measured { self.load_until } else { Tick::NEVER };
        let until = self.second.ends().min(self.load_until);
        self.network.recorder_mut().begin_ends(began, until, stop);
        self.stage = Stage::Loading(phase);
        self.load.begin(&mut self.network, phase, began, self.load_until);
    }

    /// The measured part is over: calls that were due and not sent never will be; calls in flight may still end.
    fn end_measured(&mut self, end: Tick) {
        self.measured_ns = end.since(self.measured_began);
        if end < self.load_until {
            // The answer that ended it is part of it.
            self.network.recorder_mut().stop_ends(end.saturating_add(1));
        }
        let carried = self.network.calls_alive() - self.network.under_way();
        self.network.recorder_mut().carried_under_way(carried);
        self.load.end_load(&mut self.network, end);
        self.close_phase(Phase::Measured, end);
        self.second = Second::first(end);
        self.drain_until = end.saturating_add(self.shared.plan.drain_ns);
        self.stage = Stage::Loading(Phase::Drain);
        self.tick_phase(Phase::Drain, end);
    }

    fn end_drain(&mut self, now: Tick) {
        if self.stage != Stage::Over {
            self.look_back_for_target(now);
            self.network.complete_all(&mut self.load, now);
            self.load.end_drain(&mut self.network, now);
            self.network.take_leave();
            self.close_phase(Phase::Drain, now);
        }
        self.stage = Stage::Over;
    }

    /// Ends the load early. Returns false if it had ended already.
    fn end_early(&mut self, now: Tick) -> bool {
        match self.stage {
            Stage::Preparing { .. } | Stage::Waiting | Stage::Loading(Phase::Warmup) => {
                self.network.recorder_mut().warming_up = false;
                self.network.complete_all(&mut self.load, now);
                self.stage = Stage::Over;
            }
            Stage::Loading(Phase::Measured) => self.end_measured(now),
            Stage::Loading(Phase::Drain) | Stage::Over => return false,
        }
        true
    }
}

/// A driver for a worker with this many connections.
///
/// # Errors
/// When the system is out of a resource that it needs.
pub(crate) fn make_driver<M: Machine>(machine: &M, connections: usize) -> Result<M::Driver, EngineError> {
    machine.driver(connections).map_err(|source| EngineError::System { what: "wait for events", source })
}
