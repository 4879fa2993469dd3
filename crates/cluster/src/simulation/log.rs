//! The log that every machine of a simulated replay has: its calls come of the plan's seed.

use std::collections::VecDeque;

use brunt_plan::plan::{Load, Plan};
use brunt_plan::share::Portion;
use brunt_protocol::replay::{LogTimetable, LoggedCall, Upcoming};

use super::MS;
use super::dice::Dice;

/// Calls of a log: when each is due, and the number of its session.
fn calls(plan: &Plan) -> Vec<(u64, u64)> {
    let mut dice = Dice::new(plan.seed);
    let (length_ns, sessions) = (dice.between(1_500, 9_000) * MS, dice.between(1, 60));
    let mut due_ns = 0;
    let calls = std::iter::from_fn(|| {
        // Most follow each other closely, and some come at once or after a pause.
        let gap_ns = if dice.in_thousand(20) { dice.between(200, 1_500) * MS } else { dice.between(0, 30) * MS };
        due_ns += gap_ns;
        (due_ns < length_ns).then(|| (due_ns, dice.below(sessions)))
    });
    calls.collect()
}

/// How many of its calls are due before this time, in nanoseconds of the measured part; none of a plan that replays no log.
pub(super) fn due_before(plan: &Plan, until_ns: u64) -> Option<u64> {
    let Load::Replay(_) = &plan.load else { return None };
    Some(calls(plan).iter().filter(|(due_ns, _)| *due_ns < until_ns).count() as u64)
}

/// The calls of a machine's sessions.
pub(super) struct Logged {
    /// When those are due that were not counted yet.
    left: VecDeque<u64>,
    /// Whether one waits for the horizon.
    has_held: bool,
}

impl Logged {
    /// Those of a portion.
    pub(super) fn of_portion(plan: &Plan, portion: Portion) -> Self {
        let is_own = |number: u64| {
            let worker = number % u64::from(portion.all_workers());
            (u64::from(portion.first())..u64::from(portion.first() + portion.workers())).contains(&worker)
        };
        let own = calls(plan).into_iter().filter(|(_, number)| is_own(*number));
        Self { left: own.map(|(due_ns, _)| due_ns).collect(), has_held: false }
    }

    /// Takes those out that are due by `now` and before the horizon and the end: how many are made, and how many are not, as they waited for the
    /// horizon to move on.
    pub(super) fn come_due(&mut self, now: u64, horizon: u64, end: u64) -> (u64, u64) {
        let (mut made, mut held) = (0, 0);
        let let_go = self.has_held;
        while let Some(due_ns) = self.left.front().copied().filter(|due_ns| *due_ns <= now && *due_ns < end) {
            self.has_held = due_ns >= horizon;
            if self.has_held {
                break;
            }
            self.left.pop_front();
            if let_go { held += 1 } else { made += 1 }
        }
        (made, held)
    }

    /// Takes those out that are due before the end, and were never made.
    pub(super) fn end(&mut self, end: u64) -> u64 {
        let mut unsent = 0;
        while self.left.front().is_some_and(|due_ns| *due_ns < end) {
            self.left.pop_front();
            unsent += 1;
        }
        unsent
    }

    pub(super) fn is_over(&self) -> bool {
        self.left.is_empty()
    }
}

/// The log as its controller reads it: sometimes it has to wait.
pub(super) struct Listed {
    calls: VecDeque<(u64, u64)>,
    dice: Dice,
}

impl Listed {
    /// The log of a plan; none of one that replays none.
    pub(super) fn of_plan(plan: &Plan) -> Option<Box<dyn LogTimetable>> {
        let Load::Replay(_) = &plan.load else { return None };
        Some(Box::new(Self { calls: calls(plan).into(), dice: Dice::new(plan.seed ^ 1) }))
    }
}

impl LogTimetable for Listed {
    fn next(&mut self) -> Upcoming {
        if self.dice.in_thousand(100) {
            return Upcoming::NotYet;
        }
        let call = |(due_ns, number)| LoggedCall { number, due_ns, session: Some(number), logged_ns: 0 };
        self.calls.pop_front().map_or(Upcoming::Over, |next| Upcoming::Call(call(next)))
    }
}
