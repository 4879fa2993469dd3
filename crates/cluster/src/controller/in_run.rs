//! An agent in a run, as its controller knows it.

use super::inspection::Inspection;
use super::iterations::Iterations;
use crate::clock::Offset;
use crate::loss::{Lost, Missed};
use crate::takeover::{self, Left};
use crate::words::FromAgent;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::share::{Numbers, Portion};
use brunt_record::SECOND_NS;
use brunt_record::agents::{AgentEnd, AgentPart};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::interval::Interval;
use brunt_record::outcome::OkStatus;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::timeline::DueLog;
use std::collections::BTreeMap;

/// A second without a length in which nothing happened.
pub(super) fn nothing(phase: Phase, second: u64) -> Interval {
    let (snapshot, length_ns) = (Snapshot::default(), 0);
    Interval { worker: 0, phase, second, length_ns, snapshot, open_connections: 0, in_flight: 0, oldest_ns: 0 }
}

/// Something that an agent does in a run: its own part, or a piece of what a lost one has left.
#[derive(Debug, Clone)]
pub(super) struct Duty {
    /// Its number in the run; 0 is the agent's own part.
    pub(super) number: u32,
    /// What it is; from `since_ns` on it is this agent's.
    pub(super) piece: Left,
    /// Whether what the agent reports has it.
    pub(super) is_taken: bool,
    /// The lost agent whose accounts have what is not done of it.
    pub(super) from: usize,
}

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It puts load on, or is about to.
    Working,
    /// It has reported its drain.
    Drained,
    /// It has said that it is done.
    Finished,
}

/// Whether an agent is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contact {
    /// It is.
    Heard,
    /// It is lost to its controller, and not, or not yet, to the run.
    Gone,
    /// It is lost to the run.
    Lost {
        /// Whether it has reported all that it did, after that.
        has_ended: bool,
    },
}

/// What an agent reported after it was found lost.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// All of it, and how much of the measured part that accounts for.
    all: Snapshot,
    all_ns: u64,
    /// The same of the seconds that are over before others may go on with what it had left.
    before: Snapshot,
    before_ns: u64,
    /// Whether there was a second that is not.
    is_beyond: bool,
}

impl Late {
    /// Takes in what it reports. Others do what it had due from `until_ns` of the measured part on.
    fn add(&mut self, interval: &Interval, until_ns: u64) {
        let end_ns = interval.second * SECOND_NS + interval.length_ns;
        match interval.phase {
            // No figure of the result has calls of the warm-up.
            Phase::Warmup => {}
            Phase::Measured => {
                self.all.merge(&interval.snapshot);
                self.all_ns = end_ns;
                self.is_beyond |= end_ns > until_ns;
                if !self.is_beyond {
                    self.before.merge(&interval.snapshot);
                    self.before_ns = end_ns;
                }
            }
            Phase::Drain => self.all.merge(&interval.snapshot),
        }
    }
}

/// The most names of scenarios whose users are counted, and of what machines count together: more than a plan has.
const MOST_COUNTED: usize = 10_000;

/// An agent in a run.
pub(super) struct InRun {
    pub(super) part: AgentPart,
    pub(super) portion: Portion,
    pub(super) duties: Vec<Duty>,
    /// How many takeovers it was asked for.
    pub(super) asked: u32,
    /// Measured calls that it has reported as due.
    pub(super) due: u64,
    /// Users that it has reported as alive, by their scenario.
    pub(super) users: BTreeMap<String, i64>,
    /// The second of the measured part that comes next.
    pub(super) next: u64,
    pub(super) stage: Stage,
    pub(super) contact: Contact,
    /// Why it leaves the run before its time, if it says that it does.
    pub(super) leaving: Option<String>,
    /// What it reported after it said that it leaves, and how long each of its parts was then.
    pub(super) held: Vec<Interval>,
    pub(super) held_parts: BTreeMap<u32, u64>,
    pub(super) lost: Option<Lost>,
    /// What it reported after it was found lost.
    pub(super) late: Late,
    /// What it may report.
    pub(super) inspection: Inspection,
    /// From when of the measured part on it has sent nothing, in nanoseconds, once it is lost.
    pub(super) horizon_ns: u64,
    pub(super) missed: Missed,
    pub(super) iterations: Iterations,
    pub(super) counts: BTreeMap<String, u64>,
    /// When it began, on its own clock.
    pub(super) began_there: Option<u64>,
}

impl InRun {
    pub(super) fn new(part: AgentPart, portion: Portion, place: usize, plan: &Plan) -> Self {
        let numbers = match plan.load {
            Load::Closed {} => plan.stop.requests.map(|requests| Numbers::owned_by(portion, Some(requests))),
            Load::Open { .. } | Load::Replay(_) => None,
        };
        let piece = Left { portion, numbers: numbers.into_iter().collect(), since_ns: 0 };
        let inspection = Inspection::new(plan, portion, numbers.map(Numbers::count));
        Self {
            part,
            portion,
            duties: vec![Duty { number: 0, piece, is_taken: true, from: place }],
            asked: 0,
            due: 0,
            users: BTreeMap::new(),
            next: 0,
            stage: Stage::Working,
            contact: Contact::Heard,
            leaving: None,
            held: Vec::new(),
            held_parts: BTreeMap::new(),
            lost: None,
            late: Late::default(),
            inspection,
            horizon_ns: 0,
            missed: Missed::default(),
            iterations: Iterations::from_plan(plan, portion),
            counts: BTreeMap::new(),
            began_there: None,
        }
    }

    /// Whether it is lost to the run.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.contact, Contact::Lost { .. })
    }

    /// Takes in what it has reported of its users.
    pub(super) fn count_users(&mut self, interval: &Interval) {
        self.iterations.add(&interval.snapshot);
        for (name, scenario) in interval.snapshot.figures.scenarios.iter() {
            let has_room = self.users.len() < MOST_COUNTED;
            match self.users.get_mut(name) {
                Some(alive) => *alive = alive.saturating_add(scenario.users_gained()),
                None if has_room => {
                    self.users.insert(name.to_owned(), scenario.users_gained());
                }
                None => {}
            }
        }
    }

    /// What ends the users of a lost agent, in the second that it did not report or in the drain; none if it had no users.
    pub(super) fn lose_users(&mut self, phase: Phase) -> Option<Interval> {
        let mut snapshot = Snapshot::default();
        for (name, alive) in std::mem::take(&mut self.users) {
            if alive > 0 {
                snapshot.figures.scenarios.named(&name).users_ended = alive.cast_unsigned();
            }
        }
        let second = if phase == Phase::Drain { 0 } else { self.next };
        let interval = Interval { snapshot, ..nothing(phase, second) };
        (!interval.snapshot.figures.is_empty()).then_some(interval)
    }

    /// What it had under way when it was last heard of, now that all that was due on it is in its part: how those calls ended nobody knows.
    /// None if there is no such call.
    pub(super) fn leave_unfinished(&mut self, ok: &OkStatus) -> Option<Interval> {
        let AgentPart { measured, drained, ended, .. } = &self.part;
        let AgentEnd::Lost { after_ns, .. } = ended else { return None };
        let (due, has_ended) = (measured.due() + drained.due(), measured.ended() + drained.ended());
        let (calls, more) = (due.saturating_sub(has_ended), has_ended.saturating_sub(due));
        // One that reported more ends than calls was lost for that.
        let mut snapshot = Snapshot::with_numbers([(Counter::Unfinished, calls), (Counter::Due, more)]);
        // They move no percentile, and mark those that they could have moved.
        snapshot.times.record_bounds(Timing::Response, 0, calls);
        snapshot.times.record_bounds(Timing::Service, 0, calls);
        let mut by_due = DueLog::default();
        // The target may have answered them: they say nothing of it.
        by_due.untold(after_ns.saturating_sub(1), calls);
        snapshot.timeline = by_due.take();
        let interval = Interval { snapshot, ..nothing(Phase::Drain, 0) };
        (calls + more > 0).then(|| self.part.add(&interval, ok)).map(|()| interval)
    }

    /// Takes in what it has counted of that which machines count together.
    pub(super) fn take_counts(&mut self, counts: BTreeMap<String, u64>) {
        if counts.len() <= MOST_COUNTED {
            self.counts = counts;
        }
    }

    /// Takes in what one that is lost says all the same: it stood still, and goes on. True if that was its last.
    pub(super) fn take_late(&mut self, run: u32, words: &FromAgent) -> bool {
        match words {
            FromAgent::Second { run: of, interval } if *of == run && self.leaving.is_none() => {
                let taken_over_ns = self.taken_over_ns();
                self.late.add(interval, self.horizon_ns.min(taken_over_ns));
            }
            FromAgent::Finished { run: of, .. } if *of == run => {
                self.contact = Contact::Lost { has_ended: true };
                return true;
            }
            _ => {}
        }
        false
    }

    /// From when of the measured part on others do what it has left; never if nobody does.
    fn taken_over_ns(&self) -> u64 {
        match self.part.ended {
            AgentEnd::Lost { taken_over_ns: Some(at), .. } => at,
            _ => u64::MAX,
        }
    }

    /// What it has told of since it was found lost.
    pub(super) fn amend(&mut self, lost: &mut Lost) {
        // What others did is theirs: of seconds that both have a part in, nothing is known.
        let is_whole = self.contact == (Contact::Lost { has_ended: true }) && self.taken_over_ns() == u64::MAX;
        // Seconds that it took over and has not begun are in none of its accounts.
        if self.duties.iter().any(|duty| !duty.is_taken) {
            return;
        }
        let Late { all, all_ns, before, before_ns, .. } = std::mem::take(&mut self.late);
        let (told, accounted_ns) = if is_whole { (all, all_ns) } else { (before, before_ns) };
        lost.amend(told, accounted_ns, is_whole);
    }

    /// Says when it began, on the controller's clock, relative to when all were to begin.
    pub(super) fn compare(&mut self, offset: Option<Offset>, at: u64) {
        if let (Some(offset), Some(there)) = (offset, self.began_there) {
            self.part.began_ns = offset.here(there).cast_signed() - at.cast_signed();
            self.part.clock_uncertainty_ns = offset.uncertainty_ns;
        }
    }

    /// Whether it can do something for another.
    pub(super) fn can_help(&self) -> bool {
        self.contact == Contact::Heard && self.leaving.is_none()
    }

    /// What it had to do and has not accounted for, and whose accounts each has come from.
    pub(super) fn left(&self, measured_ns: u64, due: u64) -> Vec<Left> {
        let mut made = due;
        let left = self.duties.iter().map(|duty| {
            // In the order in which they were taken over: how many calls were made is known, and not which.
            let of_duty = if duty.is_taken { made } else { 0 };
            let all = duty.piece.numbers.iter().map(|numbers| numbers.count()).sum();
            made -= of_duty.min(all);
            let reported_ns = self.held_parts.get(&duty.number).copied().unwrap_or(measured_ns);
            let since_ns = if duty.is_taken { duty.piece.since_ns.max(reported_ns) } else { duty.piece.since_ns };
            let numbers = takeover::some_of(&duty.piece.numbers, of_duty, u64::MAX);
            Left { portion: duty.piece.portion, numbers, since_ns }
        });
        left.collect()
    }
}
