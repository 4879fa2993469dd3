//! One worker: a thread with its own connections, pace, user and recorder, and one loop for every protocol.
//!
//! `mod.rs` has the loop and the phases of a run; [`calls`] makes calls, [`sending`] sends them, [`receiving`] takes their
//! answers, [`ending`] ends those that get none; [`connecting`] makes and loses connections.

mod calls;
mod connecting;
mod connection;
mod ending;
pub(crate) mod origins;
pub(crate) mod pace;
mod receiving;
mod recorder;
mod reports;
mod sending;
mod source;
#[cfg(test)]
mod tests;
mod unsent;
pub(crate) mod users;
mod vitals;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use brunt_model::SECOND_NS;
use brunt_model::arrivals::Arrivals;
use brunt_model::plan::{Load, Plan};
use brunt_model::profile::Profile;
use brunt_model::snapshot::{Phase, Snapshot};

use self::connection::{Connection, Connections, NEVER, Owner, State};
use self::origins::Origins;
use self::pace::{Pace, Quota, Schedule};
use self::recorder::Recorder;
pub(crate) use self::reports::{Interval, Report, StartingLine};
pub(crate) use self::source::Source;
use self::vitals::Vitals;
use crate::StopHandle;
use crate::protocol::Prepared;
use crate::transport::{Driver, Ready};
use crate::user::{Interests, Refusal};

/// How often a worker looks whether it should stop, at least, in nanoseconds.
const HEARTBEAT_NS: u64 = 50_000_000;
/// How long the beginning may go without a new connection before the load begins without the rest, in nanoseconds.
const SETUP_PATIENCE_NS: u64 = SECOND_NS;
/// The size of a worker's read buffer, in bytes.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// What workers of a run have in common.
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) prepared: Arc<dyn Prepared>,
    pub(crate) line: StartingLine,
    pub(crate) warmup_quota: Quota,
    pub(crate) quota: Quota,
    pub(crate) stop: StopHandle,
    /// Whether a script has ended the run.
    pub(crate) ended: AtomicBool,
}

impl Shared {
    /// A script ends the run, on all workers.
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Where a worker is in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Connections are made.
    Connecting,
    /// This worker is ready and waits for the others.
    Waiting,
    /// Load is put on the target, measured or not.
    Loading(Phase),
    /// The end.
    Over,
}

impl Stage {
    /// Whether new calls are made.
    fn is_loading(self) -> bool {
        matches!(self, Self::Loading(Phase::Warmup | Phase::Measured))
    }
}

/// One worker.
pub(crate) struct Worker<D> {
    shared: Arc<Shared>,
    driver: D,
    origins: Origins,
    reports: Sender<Report>,
    number: u32,
    source: Source,
    interests: Interests,
    /// Why the user asks for no more calls.
    refusal: Option<Refusal>,
    /// Why the user has ended the run by itself.
    stopped: Option<String>,
    connections: Connections,
    /// Places among them where there is none.
    vacant: Vec<usize>,
    /// Connections that can carry a call; some may have lost that since.
    ready: VecDeque<usize>,
    /// Connections that were answered since the last wait, and when.
    free: Vec<(usize, u64)>,
    /// Connections whose socket may hold more than was read.
    unread: Vec<usize>,
    pace: Pace,
    recorder: Recorder,
    vitals: Vitals,
    stage: Stage,
    /// When the phase began, and the second that is under way in it.
    phase_began: u64,
    second: u64,
    /// When the measured part began.
    measured_began: u64,
    /// When the closed model stops to call: at the end of its phase.
    calls_until: u64,
    measured_ns: u64,
    interrupted: bool,
    /// The earliest time at which a timeout may be due.
    next_expiry: u64,
    /// Measured calls that are under way, sent or waiting for their connection.
    under_way: u64,
    /// What there is to say about the connections made before the load.
    connected_ahead: Snapshot,
    /// Connections being made.
    connecting: usize,
    /// The next connection to make in the beginning, and when one was last made.
    next_to_connect: usize,
    last_progress: u64,
    buffer: Vec<u8>,
    clear: Vec<u8>,
    outgoing: Vec<u8>,
}

impl<D: Driver> Worker<D> {
    /// Worker `number` with its share of the plan's connections.
    pub(crate) fn new(
        shared: Arc<Shared>,
        mut driver: D,
        mut origins: Origins,
        number: u32,
        connections: usize,
        source: Source,
        reports: Sender<Report>,
    ) -> Self {
        let now = driver.now();
        origins.keep_own_sessions();
        let interests = source.interests();
        let client = || Connection::new(shared.prepared.client(interests.answers), Owner::Flood, 0);
        let clients = (0..connections).map(|_| client());
        Self {
            connections: Connections(clients.collect()),
            vacant: Vec::new(),
            source,
            interests,
            refusal: None,
            stopped: None,
            pace: Pace::Closed(shared.quota.clone()),
            driver,
            origins,
            reports,
            number,
            ready: VecDeque::new(),
            free: Vec::new(),
            unread: Vec::new(),
            recorder: Recorder::default(),
            vitals: Vitals::new(now),
            stage: Stage::Connecting,
            phase_began: now,
            second: 0,
            measured_began: 0,
            calls_until: NEVER,
            measured_ns: 0,
            interrupted: false,
            next_expiry: NEVER,
            under_way: 0,
            connected_ahead: Snapshot::default(),
            connecting: 0,
            next_to_connect: 0,
            last_progress: now,
            buffer: vec![0; READ_BUFFER_BYTES],
            clear: Vec::new(),
            outgoing: Vec::new(),
            shared,
        }
    }

    /// Carries the worker's share of the plan out, to its end, and gives back what asked for calls.
    ///
    /// # Errors
    /// When the operating system refuses to wait for events, which ends the run.
    pub(crate) fn run(mut self) -> io::Result<Source> {
        let mut events: Vec<Ready> = Vec::new();
        loop {
            let now = self.driver.now();
            self.vitals.beat(now);
            self.tick(now);
            if self.stage == Stage::Over {
                break;
            }
            let until = if self.unread.is_empty() && self.free.is_empty() { self.next_wake(now) } else { now };
            self.driver.wait(until, &mut events)?;
            for token in std::mem::take(&mut self.unread) {
                self.readable(token, false);
            }
            for &event in &events {
                self.handle(event);
            }
            self.call_again();
        }
        let failed = match self.refusal.take() {
            Some(Refusal::Failed(reason)) => Some(reason),
            Some(Refusal::Done) | None => None,
        };
        let finished = Report::Finished {
            worker: self.number,
            measured_ns: self.measured_ns,
            interrupted: self.interrupted,
            failed,
            stopped: self.stopped.take(),
        };
        // The coordinator listens until every worker has finished; if it is gone, so is the run.
        let _ = self.reports.send(finished);
        Ok(self.source)
    }

    /// Does what is due by time alone.
    fn tick(&mut self, now: u64) {
        match self.stage {
            Stage::Connecting => self.connect_ahead(now),
            Stage::Waiting => {
                if let Some(begin) = self.shared.line.time().filter(|begin| *begin <= now) {
                    self.begin(begin);
                }
            }
            Stage::Loading(phase) => self.tick_load(phase, now),
            Stage::Over => {}
        }
        if now >= self.next_expiry {
            self.expire(now);
        }
        if self.refusal.is_some() {
            if matches!(self.refusal, Some(Refusal::Failed(_))) {
                self.shared.stop.stop();
            }
            self.end_early(now);
        } else if self.shared.ended.load(Ordering::Relaxed) {
            self.end_early(now);
        } else if self.shared.stop.is_stopped() {
            self.interrupted |= self.end_early(now);
        }
    }

    fn tick_load(&mut self, phase: Phase, now: u64) {
        let plan = &self.shared.plan;
        match phase {
            Phase::Warmup => {
                let end = self.phase_began + plan.warmup_ns;
                self.close_seconds(phase, now.min(end));
                if now >= end {
                    self.close_phase(phase, end);
                    self.begin_measured(end);
                    self.begin_calls(now);
                } else {
                    self.dispatch();
                }
            }
            Phase::Measured => {
                let end = self.calls_until;
                // The last second is handed over with what was never sent in it.
                self.close_seconds(phase, now.min(end.saturating_sub(1)));
                // Before the end as after it: what was due in time is sent if a connection is free for it.
                self.dispatch();
                self.wake_users(now);
                if now >= end {
                    self.end_measured(end);
                } else if self.is_exhausted() || self.users_have_ended(now) {
                    self.end_measured(now);
                }
            }
            Phase::Drain => {
                let end = self.phase_began + plan.drain_ns;
                self.close_seconds(phase, now.min(end));
                if self.under_way == 0 || now >= end {
                    self.end_drain(now.min(end));
                }
            }
        }
    }

    /// When to wake up if no connection has anything to say.
    fn next_wake(&self, now: u64) -> u64 {
        let plan = &self.shared.plan;
        let mut wake = self.next_expiry.min(now - now % HEARTBEAT_NS + HEARTBEAT_NS);
        match self.stage {
            Stage::Connecting => wake = wake.min(self.last_progress + SETUP_PATIENCE_NS),
            Stage::Waiting => wake = wake.min(self.shared.line.time().unwrap_or(now + 1_000_000)),
            Stage::Loading(phase) => {
                wake = wake.min(self.phase_began + (self.second + 1) * SECOND_NS);
                let length = match phase {
                    Phase::Warmup => Some(plan.warmup_ns),
                    Phase::Measured => plan.duration_ns(),
                    Phase::Drain => Some(plan.drain_ns),
                };
                if let Some(length) = length {
                    wake = wake.min(self.phase_began.saturating_add(length));
                }
                if let Source::Users(users) = &self.source
                    && phase == Phase::Measured
                {
                    wake = wake.min(users.next_wake(now));
                }
                if let Pace::Open(schedule) = &self.pace
                    && phase != Phase::Drain
                    && !self.ready.is_empty()
                    && let Some(due) = schedule.due()
                {
                    wake = wake.min(due);
                }
            }
            Stage::Over => {}
        }
        wake
    }

    /// The load begins, at the same time on every worker.
    fn begin(&mut self, now: u64) {
        self.vitals.lap(now);
        // How connections were made belongs to the result, also when a warm-up comes first.
        let begun = self.recorder.take();
        self.connected_ahead = Snapshot {
            connect: begun.connect,
            tls: begun.tls,
            handshake: begun.handshake,
            connections: begun.connections,
            troubles: begun.troubles,
            ..Snapshot::default()
        };
        if self.shared.plan.warmup_ns == 0 {
            self.begin_measured(now);
            self.begin_calls(now);
            return;
        }
        self.recorder.warming_up = true;
        (self.phase_began, self.second) = (now, 0);
        self.calls_until = now + self.shared.plan.warmup_ns;
        self.pace = match &self.shared.plan.load {
            Load::Closed {} => Pace::Closed(self.shared.warmup_quota.clone()),
            Load::Open { profile, arrivals } => {
                let seed = self.shared.plan.seed ^ 1;
                let rate = profile.first_rate();
                let constant = Profile::constant(rate).unwrap_or_else(|_| profile.clone());
                let arrivals = Arrivals::new(constant, *arrivals, self.number, self.shared.plan.workers, seed, None);
                Pace::Open(Box::new(Schedule::new(arrivals, now, now + self.shared.plan.warmup_ns)))
            }
        };
        self.stage = Stage::Loading(Phase::Warmup);
        self.begin_calls(now);
    }

    /// The measured part begins. Calls of the warm-up that are under way end unseen.
    fn begin_measured(&mut self, now: u64) {
        let plan = &self.shared.plan;
        if let Source::Users(users) = &mut self.source {
            users.begin(now);
        }
        self.recorder.warming_up = false;
        self.recorder.snapshot.merge(&std::mem::take(&mut self.connected_ahead));
        (self.phase_began, self.second, self.measured_began) = (now, 0, now);
        self.under_way = 0;
        self.calls_until = plan.duration_ns().map_or(NEVER, |duration| now.saturating_add(duration));
        self.pace = match &plan.load {
            _ if matches!(self.source, Source::Users(_)) => Pace::Users,
            Load::Closed {} => Pace::Closed(self.shared.quota.clone()),
            Load::Open { profile, arrivals } => {
                let requests = plan.stop.requests;
                let arrivals =
                    Arrivals::new(profile.clone(), *arrivals, self.number, plan.workers, plan.seed, requests);
                Pace::Open(Box::new(Schedule::new(arrivals, now, self.calls_until)))
            }
        };
        self.stage = Stage::Loading(Phase::Measured);
    }

    /// Whether nothing is left to do before the planned end.
    fn is_exhausted(&self) -> bool {
        self.under_way == 0
            && self.shared.plan.stop.requests.is_some()
            && match &self.pace {
                Pace::Closed(quota) => quota.is_used_up(),
                Pace::Open(schedule) => schedule.due().is_none(),
                Pace::Users => false,
            }
    }

    /// The measured part is over: what was due and not sent never will be, what is in flight may still end.
    fn end_measured(&mut self, end: u64) {
        self.measured_ns = end - self.measured_began;
        if let Pace::Open(schedule) = &mut self.pace {
            schedule.end_at(end);
        }
        self.drop_unsent(end);
        self.close_phase(Phase::Measured, end);
        (self.phase_began, self.second) = (end, 0);
        self.stage = Stage::Loading(Phase::Drain);
        self.tick_load(Phase::Drain, end);
    }

    fn end_drain(&mut self, now: u64) {
        self.drop_unfinished(now);
        self.take_leave();
        self.close_phase(Phase::Drain, now);
        self.stage = Stage::Over;
    }

    /// Ends the load before its time; false if it had ended already.
    fn end_early(&mut self, now: u64) -> bool {
        match self.stage {
            Stage::Connecting | Stage::Waiting | Stage::Loading(Phase::Warmup) => self.stage = Stage::Over,
            Stage::Loading(Phase::Measured) => self.end_measured(now),
            Stage::Loading(Phase::Drain) | Stage::Over => return false,
        }
        true
    }

    /// Hands over every second that is over at `now`.
    fn close_seconds(&mut self, phase: Phase, now: u64) {
        while now >= self.phase_began + (self.second + 1) * SECOND_NS {
            let end = self.phase_began + (self.second + 1) * SECOND_NS;
            self.hand_over(phase, end, SECOND_NS);
        }
    }

    /// Hands over what is left of the phase's last second.
    fn close_phase(&mut self, phase: Phase, end: u64) {
        self.close_seconds(phase, end);
        let began = self.phase_began + self.second * SECOND_NS;
        let left = end.saturating_sub(began);
        // A phase that ends with a full second has nothing left, but for what ended at that very moment.
        let Snapshot { due, figures, .. } = &self.recorder.snapshot;
        if left > 0 || *due > 0 || !figures.is_empty() || self.recorder.snapshot.ended() > 0 {
            self.hand_over(phase, end, left);
        }
    }

    fn hand_over(&mut self, phase: Phase, end: u64, length_ns: u64) {
        if let Pace::Open(schedule) = &mut self.pace
            && phase != Phase::Drain
        {
            self.recorder.snapshot.due += schedule.count_due(end);
        }
        if let Source::Users(users) = &mut self.source {
            users.hand_over(&mut self.recorder);
        }
        self.recorder.snapshot.health = self.vitals.lap(end);
        self.recorder.snapshot.health.script_ns = self.source.take_busy_ns();
        let interval = Interval {
            worker: self.number,
            phase,
            second: self.second,
            length_ns,
            snapshot: self.recorder.take(),
            open_connections: self.connections.0.iter().filter(|c| c.state == State::Open).count() as u64,
            in_flight: self.connections.0.iter().map(|c| c.calls.len() as u64).sum(),
        };
        self.second += 1;
        let _ = self.reports.send(Report::Interval(Box::new(interval)));
    }

    fn handle(&mut self, event: Ready) {
        if event.token >= self.connections.0.len() {
            return;
        }
        match self.connections[event.token].state {
            State::Connecting => self.socket_connected(event.token),
            State::Handshaking | State::Opening | State::Open => {
                if event.writable {
                    self.writable(event.token);
                }
                if event.readable {
                    self.readable(event.token, event.ended);
                }
            }
            State::Idle | State::Backoff => {}
        }
    }
}
