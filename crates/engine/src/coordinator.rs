//! The coordinator: merges the workers' reports into seconds for the observer, and into the run's recording.

mod endings;
mod seconds;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use brunt_plan::plan::Plan;
use brunt_plan::stop::StopHandle;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::live::{AgentSecond, Live};
use brunt_record::observer::{Observer, RunningTotal};
use brunt_record::recording::{LifecycleFigures, Recording};
use brunt_record::series::Series;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::time::Tick;
use brunt_record::timeline::DueLog;

use self::endings::Endings;
use self::seconds::{Key, Second, Seconds};
use crate::control::Control;
use crate::transport::Clock;
use crate::watchdog::{LAST_PATIENCE_NS, Watchdog};
use crate::worker::{Interval, Report};

/// How often the watchdog looks.
const LOOK: Duration = Duration::from_millis(50);

/// A worker's progress.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// The last second that it handed over.
    reported: Option<Key>,
    finished: bool,
    /// Measured calls that it has reported as due, and as ended.
    due: u64,
    ended: u64,
    /// Calls that it made and had not reported when it was given up.
    untold: u64,
}

/// The reports of a run's workers, put together.
pub(crate) struct Coordinator<'a> {
    plan: &'a Plan,
    observer: &'a mut dyn Observer,
    seconds: Seconds,
    workers: Vec<Progress>,
    measured: Snapshot,
    drained: Snapshot,
    series: Series,
    measured_ns: u64,
    /// How much of the measured part was passed on.
    passed_ns: u64,
    /// How many seconds of the drain were passed on.
    drain_seconds: u64,
    /// Whether the run is in its warm-up, and the calls of that part that came due and have not ended.
    under_way: (bool, u64),
    /// Whether there are virtual users, and how the drain changed their number, which only falls there.
    has_users: bool,
    users_left: i64,
    endings: Endings,
    watchdog: &'a mut Watchdog,
    stop: &'a StopHandle,
    clock: Clock,
    /// Their names, where agents report.
    agents: Vec<Arc<str>>,
    /// Changes of the run while it goes on, and how many of them the observer was told.
    control: Control,
    told: usize,
}

impl<'a> Coordinator<'a> {
    /// A coordinator of this many workers. It gives up workers whose user `watchdog` finds stuck, and ends the others
    /// by `stop`.
    pub(crate) fn new(
        plan: &'a Plan,
        workers: u32,
        observer: &'a mut dyn Observer,
        watchdog: &'a mut Watchdog,
        stop: &'a StopHandle,
        clock: Clock,
    ) -> Self {
        Self {
            plan,
            observer,
            seconds: Seconds::default(),
            workers: vec![Progress::default(); workers as usize],
            measured: Snapshot::default(),
            drained: Snapshot::default(),
            series: Series::default(),
            measured_ns: 0,
            passed_ns: 0,
            drain_seconds: 0,
            under_way: (true, 0),
            has_users: false,
            users_left: 0,
            endings: Endings::default(),
            watchdog,
            stop,
            clock,
            agents: Vec::new(),
            control: Control::default(),
            told: 0,
        }
    }

    /// Makes it the coordinator of a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { control: control.clone(), ..self }
    }

    /// Adds what a setup has left that has run before.
    pub(crate) fn after_setup(mut self, left: &LifecycleFigures) -> Self {
        self.measured.figures.merge(&left.figures);
        self.endings.stop(left.stopped.clone());
        self
    }

    /// Makes it the coordinator of agents with these names.
    pub(crate) fn of_agents(self, names: &[String]) -> Self {
        Self { agents: names.iter().map(|name| Arc::from(name.as_str())).collect(), ..self }
    }

    /// Takes reports until every worker has finished, or no sender of reports is left.
    pub(crate) fn gather(mut self, reports: &Receiver<Report>, started_unix_ms: u64) -> Recording {
        while self.workers.iter().any(|worker| !worker.finished) {
            let report = if self.watchdog.is_idle() {
                reports.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.give_up_stuck();
                reports.recv_timeout(LOOK)
            };
            match report {
                // Reports of a worker that was given up belong to seconds that are over.
                Ok(Report::Interval(late) | Report::Part(late)) if self.has_finished(late.worker) => {}
                Ok(Report::Interval(interval)) => {
                    let key = (interval.phase, interval.second);
                    if let Some(progress) = self.workers.get_mut(interval.worker as usize) {
                        progress.reported = Some(key);
                    }
                    let Interval { open_connections, in_flight, oldest_ns, .. } = *interval;
                    let second = self.add(*interval);
                    second.open_connections += open_connections;
                    second.in_flight += in_flight;
                    second.oldest_ns = second.oldest_ns.max(oldest_ns);
                }
                Ok(Report::Part(part)) => {
                    self.add(*part);
                }
                Ok(Report::Unconnected(reason)) => self.endings.unconnect(reason),
                Ok(Report::Finished { worker, .. }) if self.has_finished(worker) => {}
                Ok(Report::Finished { worker, measured_ns, interrupted, failed, stopped, unreached }) => {
                    self.endings.unreach(unreached);
                    self.endings.fail(failed);
                    self.endings.stop(stopped);
                    self.endings.interrupt(interrupted);
                    if let Some(progress) = self.workers.get_mut(worker as usize) {
                        progress.finished = true;
                    }
                    self.measured_ns = self.measured_ns.max(measured_ns);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.pass_on(false);
        }
        self.control.end();
        self.pass_on(true);
        self.account_for_left_behind();
        // Nobody hears of a change that was to come after the end.
        let measured_ns = if self.measured_ns == 0 { self.seconds.reported_ns() } else { self.measured_ns };
        let mut changes = self.control.changes();
        changes.sort_by_key(|change| change.at_ns);
        changes.retain(|change| change.at_ns < 0 || change.at_ns as u64 <= measured_ns);
        let ended = |part: &Snapshot| part.statuses.total() + part.failures.total();
        let has_outcomes = ended(&self.measured) + ended(&self.drained) > 0;
        Recording {
            ending: self.endings.ending(has_outcomes),
            // If every worker was given up, none reported the length.
            measured_ns,
            changes,
            measured: self.measured,
            drained: self.drained,
            series: self.series,
            ..Recording::begun(started_unix_ms)
        }
    }

    /// Gives up workers whose user does not return, and ends the run.
    fn give_up_stuck(&mut self) {
        for stuck in self.watchdog.look((self.clock)(), self.stop.is_stopped()) {
            let (thread, function) = (stuck.worker + 1, self.watchdog.function(&stuck));
            let reason = format!("thread {thread}: {function} has not come back, and was left behind");
            self.endings.fail(Some(reason));
            if let Some(progress) = self.workers.get_mut(stuck.worker as usize) {
                progress.finished = true;
                progress.untold = stuck.calls.saturating_sub(progress.due);
            }
            self.stop.stop();
        }
    }

    fn has_finished(&self, worker: u32) -> bool {
        self.workers.get(worker as usize).is_some_and(|progress| progress.finished)
    }

    /// Accounts for calls whose end a worker never reported, since it was left behind or panicked. They were under way
    /// when it last reported, or were made since, and so for at least as long as it took to give the worker up.
    fn account_for_left_behind(&mut self) {
        let untold: u64 = self.workers.iter().map(|progress| progress.untold).sum();
        let told: u64 = self.workers.iter().map(|progress| progress.due.saturating_sub(progress.ended)).sum();
        let left = told + untold;
        if left > 0 {
            let mut second = Second::default();
            second.snapshot.numbers.set(Counter::Due, untold);
            second.snapshot.numbers.set(Counter::Unfinished, left);
            second.snapshot.times.record_bounds(Timing::Response, LAST_PATIENCE_NS, left);
            second.snapshot.times.record_bounds(Timing::Service, LAST_PATIENCE_NS, left);
            let mut by_due = DueLog::default();
            by_due.unfinished(Tick::from_ns(self.seconds.reported_ns()), LAST_PATIENCE_NS, left);
            second.snapshot.timeline = by_due.take();
            self.pass(Phase::Drain, self.drain_seconds, second);
        }
    }

    /// Adds what a worker has reported to its second.
    fn add(&mut self, interval: Interval) -> &mut Second {
        if let Some(progress) = self.workers.get_mut(interval.worker as usize)
            && interval.phase != Phase::Warmup
        {
            progress.due += interval.snapshot.numbers.get(Counter::Due);
            progress.ended += interval.snapshot.ended();
        }
        let worker = interval.worker as usize;
        let name = self.agents.get(worker);
        let of_agent =
            name.map(|name| AgentSecond::from_snapshot(name, Some(&interval.snapshot), &self.plan.ok_status));
        let second = self.seconds.add(interval);
        if of_agent.is_some() {
            second.agents.resize(self.agents.len(), None);
            if let Some(place) = second.agents.get_mut(worker) {
                *place = of_agent;
            }
        }
        second
    }

    /// Passes on the seconds that are complete, in order; `all` of them when no more reports come.
    fn pass_on(&mut self, all: bool) {
        // Workers report in order: one that has reported a later second has reported all of this one.
        let is_reported = |workers: &[Progress], key: Key| {
            workers.iter().all(|worker| worker.finished || worker.reported >= Some(key))
        };
        while let Some(((phase, number), second)) = self.seconds.pass(|key| all || is_reported(&self.workers, key)) {
            self.pass(phase, number, second);
        }
    }

    /// The number of calls that were due and neither sent nor ended after a second.
    fn backlog(&mut self, phase: Phase, second: &Second) -> u64 {
        let is_warmup = phase == Phase::Warmup;
        let (was_warmup, under_way) = self.under_way;
        // Calls of the warm-up are in no figure of later phases.
        let before = if was_warmup == is_warmup { under_way } else { 0 };
        let under_way = (before + second.snapshot.numbers.get(Counter::Due)).saturating_sub(second.snapshot.ended());
        self.under_way = (is_warmup, under_way);
        under_way.saturating_sub(second.in_flight)
    }

    fn pass(&mut self, phase: Phase, number: u64, mut second: Second) {
        let elapsed_ns = number * brunt_record::SECOND_NS + second.length_ns;
        second.snapshot.watched = self.observer.watched(phase, elapsed_ns, second.length_ns);
        let waiting = self.backlog(phase, &second);
        match phase {
            Phase::Warmup => {
                self.measured.figures.carry_over(&second.snapshot.figures);
                self.series.warmed_up(&second.snapshot);
            }
            Phase::Measured => {
                self.measured.merge(&second.snapshot);
                self.series.pass_to(number * brunt_record::SECOND_NS, &self.plan.ok_status);
                self.series.push(second.length_ns, &second.snapshot, &self.plan.ok_status);
                self.series.connections_open(second.open_connections);
                self.passed_ns = number * brunt_record::SECOND_NS + second.length_ns;
            }
            Phase::Drain => {
                self.control.end();
                self.drain_seconds = number + 1;
                self.drained.merge(&second.snapshot);
                self.users_left += second.snapshot.figures.users_gained();
            }
        }
        self.has_users |= !second.snapshot.figures.scenarios.is_empty();
        let alive = (self.series.users() as i64 + self.users_left).max(0) as u64;
        let users = self.has_users.then_some(alive);
        let planned_ns = match phase {
            Phase::Warmup => Some(self.plan.warmup_ns),
            Phase::Measured => self.plan.duration_ns(),
            Phase::Drain => Some(self.plan.drain_ns),
        };
        let said = second.agents.into_iter().chain(std::iter::repeat_with(|| None));
        let silent = |name: &Arc<str>| AgentSecond::from_snapshot(name, None, &self.plan.ok_status);
        let agents = self.agents.iter().zip(said).map(|(name, said)| said.unwrap_or_else(|| silent(name))).collect();
        let changes = self.control.changes().split_off(self.told);
        self.told += changes.len();
        let in_log = if phase == Phase::Measured { self.observer.in_log(elapsed_ns) } else { None };
        let live = Live {
            phase,
            elapsed_ns,
            planned_ns,
            in_log,
            planned_requests: self.plan.stop.requests,
            length_ns: second.length_ns,
            snapshot: second.snapshot,
            open_connections: second.open_connections,
            in_flight: second.in_flight,
            waiting,
            oldest_ns: second.oldest_ns,
            users,
            changes,
            agents,
        };
        let so_far = RunningTotal {
            measured: &self.measured,
            measured_ns: self.passed_ns,
            users: self.series.users(),
            most_users: self.series.most_users(),
        };
        if let ControlFlow::Break(cause) = self.observer.second(&live, &so_far)
            && self.endings.abort(cause)
        {
            self.stop.stop();
        }
    }
}
