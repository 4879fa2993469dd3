//! The machine of a simulated agent: puts load on a target that answers or fails, reports its seconds, and knows what it really did.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use brunt_plan::arrivals::Arrivals;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::schedule::Schedule;
use brunt_plan::share::{DealtNumbers, Portion};
use brunt_plan::timetable::Timetable;
use brunt_protocol::scenario::Value;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::change::Change;
use brunt_record::interval::Interval;
use brunt_record::outcome::Failure;
use brunt_record::recording::LifecycleFigures;
use brunt_record::recording::{Ending, Recording};
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::time::Tick;

use super::dice::Dice;
use super::log::Logged;
use crate::agent::machine::{Job, MachineOrder, MachineReport, NewPart};
use crate::messages::{PartEnd, Problem};

const MS: u64 = 1_000_000;

/// What an agent really did in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Truth {
    /// Calls that fell due on it, as it reports them.
    pub(super) due: u64,
    /// Calls that it sent: the target counts them.
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
}

/// A simulated machine.
#[derive(Default)]
pub(super) struct Machine {
    job: Option<Job>,
    is_stopped: bool,
    until_ns: u64,
    /// What was changed about the run.
    changes: Vec<Change>,
    part: Option<Part>,
    /// Setups and teardowns under way, and when they are over.
    errands: Vec<(u64, Job, Errand)>,
    /// Of each run of each session.
    pub(super) truth: BTreeMap<(u128, u32), Truth>,
    /// The numbers of the calls that it made, of a counted number.
    pub(super) made: Vec<u64>,
    /// How many times as long its calls take.
    pub(super) slowness: u64,
    /// Setups that have returned, and teardowns that were run.
    pub(super) set_up: u64,
    pub(super) torn_down: u64,
    /// Whether it reports what it did not do.
    pub(super) lies: bool,
    /// Whether its setup fails.
    pub(super) setup_fails: bool,
    said: Vec<(Job, MachineReport)>,
    /// Until when it hangs, in the time of the world.
    hangs_until: u64,
}

#[derive(Clone, Copy)]
enum Errand {
    SetUp,
    TearDown,
}

enum Calls {
    /// Calls that are due by a timetable of the measured part.
    Open(Vec<Schedule>, Timetable),
    /// Calls of a log.
    Logged(Logged),
    /// Calls as connections become free, with these numbers and perhaps others.
    Closed { connections: usize, numbers: VecDeque<DealtNumbers>, may_grow: bool, made: Vec<u64>, is_counted: bool },
}

#[expect(clippy::struct_excessive_bools, reason = "each is true from a moment of its own on")]
struct Part {
    machine: u32,
    calls: Calls,
    slowness: u64,
    /// When its connections are made.
    ready_at: u64,
    is_ready: bool,
    /// When the measured part began, on the machine's clock, once that is known.
    zero: Option<i128>,
    warmup_ns: u64,
    /// When it ends by itself, in nanoseconds of the measured part.
    planned_ns: u64,
    drain_ns: u64,
    /// Calls under way: when they end, and whether they are answered.
    in_flight: Vec<(u64, bool)>,
    /// The second that is reported next.
    second: u64,
    snapshot: Snapshot,
    /// Whether calls wait for the horizon.
    has_held: bool,
    /// How long the measured part was, once it is over.
    ended_ns: Option<u64>,
    interrupted: bool,
    is_over: bool,
}

impl Machine {
    /// How many of a counted number of calls it made.
    pub(super) fn taken(&self) -> Option<u64> {
        let Some(Part { calls: Calls::Closed { is_counted: true, .. }, .. }) = &self.part else { return None };
        self.job.and_then(|job| self.truth.get(&(job.session, job.run))).map(|truth| truth.sent)
    }

    /// Whether it does something.
    pub(super) fn is_busy(&self) -> bool {
        self.part.is_some() || !self.errands.is_empty()
    }

    /// It does nothing until then.
    pub(super) fn hang(&mut self, until: u64) {
        self.hangs_until = self.hangs_until.max(until);
    }

    pub(super) fn hangs(&self, now: u64) -> bool {
        now < self.hangs_until
    }

    fn truth(&mut self, job: Job) -> &mut Truth {
        self.truth.entry((job.session, job.run)).or_default()
    }

    /// Takes in what its agent wants, at `now` of its clock.
    pub(super) fn act(&mut self, job: Job, act: MachineOrder, now: u64, dice: &mut Dice) {
        let is_current = self.job == Some(job);
        match act {
            MachineOrder::SetUp(_) | MachineOrder::TearDown(..) => {
                (self.job, self.is_stopped) = (Some(job), false);
                let errand = if matches!(act, MachineOrder::SetUp(_)) { Errand::SetUp } else { Errand::TearDown };
                self.errands.push((now + dice.between(5, 900) * MS, job, errand));
            }
            MachineOrder::Carry(part) => {
                let NewPart { plan, machine, portion, .. } = *part;
                (self.job, self.until_ns, self.is_stopped) = (Some(job), 0, false);
                self.changes.clear();
                self.truth(job);
                let part = Part::new(&plan, machine, portion, now + dice.between(1, 400) * MS);
                self.part = Some(Part { slowness: self.slowness.max(1), ..part });
            }
            MachineOrder::Open { at } if is_current => {
                if let Some(part) = &mut self.part {
                    let at = at.max(now);
                    part.zero = Some(i128::from(at + part.warmup_ns));
                    self.said.push((job, MachineReport::Began { at, late: 0 }));
                }
            }
            MachineOrder::Extend(granted) if is_current => {
                if granted.changes.len() > self.changes.len() {
                    self.changes = granted.changes;
                    self.part.iter_mut().for_each(|part| part.change(&self.changes));
                }
                self.until_ns = self.until_ns.max(granted.until_ns);
            }
            MachineOrder::GiveBack(most) if is_current => {
                let requests = self.part.as_mut().map_or(0, |part| part.give_back(most));
                let more = if self.lies && dice.in_thousand(300) { dice.between(1, 1000) } else { 0 };
                self.said.push((job, MachineReport::GivenBack(requests + more)));
            }
            MachineOrder::AddNumbers { numbers: more, are_last } if is_current => {
                if let Some(Part { calls: Calls::Closed { numbers, may_grow, .. }, .. }) = &mut self.part {
                    numbers.extend(more);
                    *may_grow &= !are_last;
                }
            }
            MachineOrder::Stop | MachineOrder::Leave if is_current => self.is_stopped = true,
            _ => {}
        }
    }

    /// Does what is due at `now` of its clock. Gives what there is to tell.
    pub(super) fn work(&mut self, now: u64, dice: &mut Dice) -> Vec<(Job, MachineReport)> {
        for (_, job, errand) in self.errands.extract_if(.., |(at, ..)| *at <= now) {
            let done = match errand {
                Errand::SetUp if self.setup_fails => {
                    MachineReport::SetUp(Err(Problem { text: "setup failed".to_owned(), is_impossible: false }))
                }
                Errand::SetUp => {
                    self.set_up += 1;
                    MachineReport::SetUp(Ok((Value::Boolean(true), a_check("set up"))))
                }
                Errand::TearDown => {
                    self.torn_down += 1;
                    MachineReport::TornDown(Ok(a_check("torn down")))
                }
            };
            self.said.push((job, done));
        }
        if let Some(job) = self.job {
            let mut truth = *self.truth(job);
            if let Some(part) = &mut self.part {
                let done = part.work(now, self.until_ns, self.is_stopped, &mut truth, dice);
                self.said.extend(done.into_iter().map(|done| (job, done)));
                if let Calls::Closed { made, .. } = &mut part.calls {
                    self.made.append(made);
                }
            }
            *self.truth(job) = truth;
            self.part.take_if(|part| part.is_over);
        }
        let mut said = std::mem::take(&mut self.said);
        if self.lies {
            // It leaves seconds out, or makes some up.
            said.retain(|(_, done)| !matches!(done, MachineReport::Second(_)) || !dice.in_thousand(150));
            for (_, done) in &mut said {
                lie(done, dice);
            }
        }
        said
    }
}

/// Makes a second one that never was, often.
fn lie(done: &mut MachineReport, dice: &mut Dice) {
    let MachineReport::Second(interval) = done else { return };
    let numbers = &mut interval.snapshot.numbers;
    match dice.below(10) {
        0 => interval.second = 1 << 40,
        1 => interval.length_ns = dice.next(),
        2 => numbers.set(Counter::Due, dice.next()),
        3 => numbers.add(Counter::Due, 1),
        4 => numbers.set(Counter::Unfinished, u64::MAX),
        5 => numbers.add(Counter::Unsent, 3),
        6 => (0..300).for_each(|_| interval.snapshot.statuses.record(200)),
        7 => interval.snapshot.times.record_n(Timing::Response, 1, 1 << 50),
        8 => interval.snapshot = Snapshot::default(),
        _ => {}
    }
}

impl Part {
    fn new(plan: &Arc<Plan>, machine: u32, portion: Portion, ready_at: u64) -> Self {
        let of_users = plan.scenarios.as_ref().map(|scenarios| (scenarios.seconds() * 1e9) as u64);
        let planned_ns = plan.duration_ns().or(of_users).unwrap_or(u64::MAX);
        let calls = match &plan.load {
            Load::Open { profile, arrivals } => Calls::Open(
                portion
                    .shares()
                    .map(|share| {
                        let requests = plan.stop.requests;
                        let of_share = Arrivals::new(profile.clone(), *arrivals, share, plan.seed, requests);
                        Schedule::new(of_share, Tick::EPOCH, Tick::from_ns(planned_ns))
                    })
                    .collect(),
                Timetable::new(profile.clone()),
            ),
            Load::Replay(_) => Calls::Logged(Logged::of_portion(plan, portion)),
            Load::Closed {} => {
                let all = u64::from(plan.connections.most());
                let numbers = VecDeque::from([DealtNumbers::by_connection(portion, plan.stop.requests, all)]);
                let connections = portion.part_of(u64::from(plan.connections.most())).max(1) as usize;
                let is_counted = plan.stop.requests.is_some();
                Calls::Closed { connections, numbers, may_grow: false, made: Vec::new(), is_counted }
            }
        };
        Self {
            machine,
            calls,
            slowness: 1,
            ready_at,
            is_ready: false,
            zero: None,
            warmup_ns: plan.warmup_ns,
            planned_ns,
            drain_ns: plan.drain_ns,
            in_flight: Vec::new(),
            second: 0,
            snapshot: Snapshot::default(),
            has_held: false,
            ended_ns: None,
            interrupted: false,
            is_over: false,
        }
    }

    /// Gives at most this many of the last numbers back that were not made.
    fn give_back(&mut self, most: u64) -> u64 {
        let Calls::Closed { numbers, may_grow, .. } = &mut self.calls else { return 0 };
        let mut left = most;
        for piece in numbers.iter_mut().rev() {
            left -= piece.split_last(left).remaining();
        }
        *may_grow |= left < most;
        most - left
    }

    fn change(&mut self, changes: &[Change]) {
        if let Calls::Open(schedules, planned) = &mut self.calls {
            let profile = planned.with(changes, 0);
            for schedule in schedules {
                schedule.change(&profile);
            }
        }
    }

    fn work(
        &mut self,
        now: u64,
        until_ns: u64,
        is_stopped: bool,
        truth: &mut Truth,
        dice: &mut Dice,
    ) -> Vec<MachineReport> {
        let mut done = Vec::new();
        if !self.is_ready && now >= self.ready_at {
            self.is_ready = true;
            done.push(MachineReport::Ready);
        }
        let measured = self.zero.map(|zero| i128::from(now) - zero);
        let measured = match measured.and_then(|measured| u64::try_from(measured).ok()) {
            Some(measured) => measured,
            None if is_stopped => {
                // It ends before it has begun.
                (self.ended_ns, self.interrupted, self.is_over) = (Some(0), true, true);
                done.push(self.ran());
                return done;
            }
            None => return done,
        };
        if self.ended_ns.is_none() {
            self.load(measured, until_ns.saturating_sub(self.warmup_ns), is_stopped, truth, dice, &mut done);
        }
        if let Some(ended_ns) = self.ended_ns {
            self.end_calls(measured, truth);
            if self.in_flight.is_empty() || measured >= ended_ns + self.drain_ns {
                self.snapshot.numbers.add(Counter::Unfinished, self.in_flight.len() as u64);
                self.snapshot.times.record_bounds(Timing::Response, 0, self.in_flight.len() as u64);
                self.is_over = true;
                done.push(self.interval(Phase::Drain, 0, measured.saturating_sub(ended_ns)));
                done.push(self.ran());
            }
        }
        done
    }

    /// The measured part, which has lasted `measured` nanoseconds. Calls may be made up to `horizon` of it.
    fn load(
        &mut self,
        measured: u64,
        horizon: u64,
        is_stopped: bool,
        truth: &mut Truth,
        dice: &mut Dice,
        done: &mut Vec<MachineReport>,
    ) {
        let end = if is_stopped { measured.min(self.planned_ns) } else { self.planned_ns };
        // A worker may be late to close a second, and have made calls of the next one.
        let closes = !dice.in_thousand(300) || measured >= end;
        if closes {
            self.close_seconds(measured.min(end), end, truth, done);
        }
        self.end_calls(measured.min(end), truth);
        self.make_calls(measured, horizon, end, truth, dice);
        let has_none_left = match &self.calls {
            Calls::Closed { numbers, may_grow, .. } => !may_grow && numbers.iter().all(|piece| piece.remaining() == 0),
            Calls::Open(schedules, _) => end == u64::MAX && schedules.iter().all(|one| one.due().is_none()),
            Calls::Logged(log) => log.is_over(),
        };
        let is_made = has_none_left && self.in_flight.is_empty();
        if measured >= end || is_made {
            let end = end.min(measured);
            self.close_seconds(end, end, truth, done);
            self.end_calls(end, truth);
            let mut unsent = 0;
            match &mut self.calls {
                Calls::Open(schedules, _) => {
                    for one in schedules {
                        one.drop_overdue(Tick::from_ns(end), |_, count| unsent += count);
                    }
                }
                Calls::Logged(log) => {
                    unsent = log.end(end);
                    self.snapshot.numbers.add(Counter::Due, unsent);
                    truth.due += unsent;
                }
                Calls::Closed { .. } => {}
            }
            self.snapshot.numbers.add(Counter::Unsent, unsent);
            self.snapshot.times.record_bounds(Timing::Response, 0, unsent);
            self.come_due(end, truth);
            let length_ns = end.saturating_sub(self.second * SECOND_NS);
            if length_ns > 0 {
                let second = self.second;
                done.push(self.interval(Phase::Measured, second, length_ns));
            }
            self.interrupted = is_stopped;
            self.ended_ns = Some(end);
        }
    }

    /// Tells of the seconds that are over at `until`, but for one that ends with the measured part at `end`.
    fn close_seconds(&mut self, until: u64, end: u64, truth: &mut Truth, done: &mut Vec<MachineReport>) {
        while (self.second + 1) * SECOND_NS <= until {
            let over = (self.second + 1) * SECOND_NS;
            self.end_calls(over, truth);
            self.come_due(over, truth);
            if over >= end {
                return;
            }
            let second = self.second;
            done.push(self.interval(Phase::Measured, second, SECOND_NS));
            self.second += 1;
        }
    }

    fn come_due(&mut self, until: u64, truth: &mut Truth) {
        if let Calls::Open(schedules, _) = &mut self.calls {
            let due = schedules.iter_mut().map(|schedule| schedule.come_due(Tick::from_ns(until))).sum();
            self.snapshot.numbers.add(Counter::Due, due);
            truth.due += due;
        }
    }

    /// Makes the calls that are due and allowed.
    fn make_calls(&mut self, measured: u64, horizon: u64, end: u64, truth: &mut Truth, dice: &mut Dice) {
        let (before, slowness) = (self.in_flight.len(), self.slowness);
        let mut call = |in_flight: &mut Vec<(u64, bool)>| {
            let takes = if dice.in_thousand(20) { dice.between(100, 3000) } else { dice.between(1, 60) };
            in_flight.push((measured + takes * slowness * MS, !dice.in_thousand(30)));
        };
        match &mut self.calls {
            Calls::Open(schedules, _) => {
                let (measured, end, horizon) = (Tick::from_ns(measured), Tick::from_ns(end), Tick::from_ns(horizon));
                let next = schedules.iter().filter_map(Schedule::due).min();
                if self.has_held && next.is_none_or(|due| due < horizon) {
                    // What was due while it had to wait is not made in a burst.
                    self.has_held = false;
                    let mut held = 0;
                    for one in schedules.iter_mut() {
                        one.skip(measured, |_, count| held += count);
                    }
                    self.snapshot.numbers.add(Counter::Unsent, held);
                    self.snapshot.numbers.add(Counter::UnsentHeld, held);
                    self.snapshot.times.record_bounds(Timing::Response, 0, held);
                }
                for schedule in schedules {
                    while let Some(due) = schedule.due().filter(|due| *due <= measured.min(end)) {
                        self.has_held |= due >= horizon;
                        if due >= horizon {
                            break;
                        }
                        schedule.take();
                        call(&mut self.in_flight);
                    }
                }
            }
            Calls::Logged(log) => {
                let (made, held) = log.come_due(measured, horizon, end);
                (0..made).for_each(|_| call(&mut self.in_flight));
                self.snapshot.numbers.add(Counter::Due, made + held);
                truth.due += made + held;
                self.snapshot.numbers.add(Counter::Unsent, held);
                self.snapshot.numbers.add(Counter::UnsentHeld, held);
                self.snapshot.times.record_bounds(Timing::Response, 0, held);
            }
            Calls::Closed { connections, numbers, made, is_counted, .. } => {
                while self.in_flight.len() < *connections
                    && measured < horizon.min(end)
                    && let Some(number) = numbers.iter_mut().find_map(Iterator::next)
                {
                    made.extend(Some(number).filter(|_| *is_counted));
                    self.snapshot.numbers.add(Counter::Due, 1);
                    truth.due += 1;
                    call(&mut self.in_flight);
                }
            }
        }
        truth.sent += (self.in_flight.len() - before) as u64;
    }

    /// Ends the calls that are answered, or fail, by then.
    fn end_calls(&mut self, until: u64, truth: &mut Truth) {
        for (_, is_answered) in self.in_flight.extract_if(.., |(at, _)| *at <= until) {
            if is_answered {
                truth.answered += 1;
                self.snapshot.statuses.record(200);
                self.snapshot.times.record_n(Timing::Response, 1, 1);
            } else {
                truth.failed += 1;
                self.snapshot.failures.record(Failure::Closed, "gone");
            }
        }
    }

    fn interval(&mut self, phase: Phase, second: u64, length_ns: u64) -> MachineReport {
        let snapshot = std::mem::take(&mut self.snapshot);
        let in_flight = self.in_flight.len() as u64;
        let worker = self.machine;
        let interval =
            Interval { worker, phase, second, length_ns, snapshot, open_connections: 1, in_flight, oldest_ns: 0 };
        MachineReport::Second(Box::new(interval))
    }

    fn ran(&self) -> MachineReport {
        let recording = Recording {
            ending: if self.interrupted { Ending::Interrupted } else { Ending::Completed },
            measured_ns: self.ended_ns.unwrap_or(0),
            ..Recording::begun(0)
        };
        MachineReport::Ran(Ok(Box::new(PartEnd::new(&recording, None))))
    }
}

/// A check of this name that held once.
fn a_check(name: &str) -> Box<LifecycleFigures> {
    let mut left = Box::<LifecycleFigures>::default();
    left.figures.checks.named(name).passed(None, name);
    left
}
