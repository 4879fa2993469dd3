//! Conditions on the last seconds of a run: `p99 > 500ms for 10s`. The plan decides what follows when one is met: the
//! run ends, or [backs off](crate::back_off).
//!
//! A window is made of whole seconds, whether they were warmed up or measured. Where the run is paused there is none: nothing is due then, so that few calls
//! say nothing of the target. Its figures are of the calls that ended in it. Open
//! calls count as lower bounds once nothing completes: so a target that stands still reads as slow. A window in which none ends, after
//! earlier answers and with a call open for far longer than any took, is an outage: 100% errors. A window without calls fires
//! nothing.

use std::collections::VecDeque;
use std::fmt;

use brunt_plan::plan::Plan;
use brunt_plan::threshold::{Guard, Threshold};
use brunt_plan::units::{Clock, Duration, ExactDuration, Number, counted};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing, Timings};
use brunt_record::change::{Action, Author, Change, pauses};
use brunt_record::figures::Figures;
use brunt_record::live::Live;
use brunt_record::observer::RunningTotal;
use brunt_record::recording::AbortCause;
use brunt_record::snapshot::{Phase, Snapshot};

use crate::thresholds::{FigureSource, JudgedCondition, ThresholdResult};

/// By how much a second may be shorter than a second, in nanoseconds: it ends when the coordinator looks.
const EARLY_NS: u64 = SECOND_NS / 20;

/// The moment at which a guard fired: `at 0:05`.
pub(crate) struct When(pub(crate) Phase, pub(crate) u64);

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Phase::Warmup => write!(f, "{} into the warm-up", Clock(self.1)),
            Phase::Measured | Phase::Drain => write!(f, "at {}", Clock(self.1)),
        }
    }
}

/// Watches the last seconds of a run by the guards of its plan.
pub(crate) struct Guards<'a> {
    plan: &'a Plan,
    seconds: VecDeque<Second>,
    /// The longest time of an answered call, in nanoseconds; `None` before the first answer.
    longest_ns: Option<u64>,
    /// How long the oldest open call had been due at the end of the last second, in nanoseconds.
    oldest_ns: u64,
    /// Pauses of the run, and their ends.
    pauses: Vec<Change>,
}

struct Second {
    length_ns: u64,
    /// Its figures, without calls by due time, examples and kinds of answers.
    snapshot: Snapshot,
    /// Calls that were open at its end.
    open: u64,
    has_ends: bool,
}

impl<'a> Guards<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Self { plan, seconds: VecDeque::new(), longest_ns: None, oldest_ns: 0, pauses: Vec::new() }
    }

    /// Takes changes in that came with a second.
    pub(crate) fn hear(&mut self, changes: &[Change]) {
        let is_of_pause = |change: &&Change| matches!(change.action, Action::Pause | Action::Resume);
        self.pauses.extend(changes.iter().filter(is_of_pause).cloned());
    }

    /// Whether the run was paused for some of this second.
    fn is_paused(&self, second: &Live) -> bool {
        let (from_ns, to_ns) = second.span(self.plan.warmup_ns);
        let meets = |(since_ns, until_ns): &(i64, Option<i64>)| {
            *since_ns < to_ns && until_ns.is_none_or(|until_ns| until_ns > from_ns)
        };
        pauses(&self.pauses).iter().any(meets)
    }

    /// The guard that fires after this second, if one does.
    pub(crate) fn second(&mut self, second: &Live, so_far: &RunningTotal<'_>) -> Option<Fired<'a>> {
        if self.plan.guards.is_empty() || second.phase == Phase::Drain {
            return None;
        }
        if self.is_paused(second) {
            self.restart();
            return None;
        }
        self.keep(second);
        (0..).zip(&self.plan.guards).find_map(|(place, guard)| {
            let (mut window, length_ns) = self.window(guard.window_ns())?;
            if guard.condition().is_about_errors() {
                count_by_end(&mut window);
            }
            let got = got(self.plan, guard, &window, length_ns, so_far);
            let got = got.or_else(|| self.outage(guard.condition(), &window, length_ns))?;
            let has_answers = window.statuses.total() > 0;
            Some(Fired {
                place,
                guard,
                phase: second.phase,
                elapsed_ns: second.elapsed_ns,
                found: self.found(guard, &got),
                has_answers,
            })
        })
    }

    /// The length of the longest window, in nanoseconds, once all windows are full.
    pub(crate) fn full_ns(&self) -> Option<u64> {
        let longest_ns = self.plan.guards.iter().map(Guard::window_ns).max()?;
        self.window(longest_ns).map(|(_, length_ns)| length_ns)
    }

    /// Forgets all seconds: windows begin anew.
    pub(crate) fn restart(&mut self) {
        self.seconds.clear();
    }

    /// The error rate of a window in which the target fell silent, if the condition holds for it.
    fn outage(&self, condition: &Threshold, window: &Snapshot, length_ns: u64) -> Option<String> {
        let longest_ns = self.longest_ns.filter(|_| condition.is_about_errors() && condition.subject().is_none())?;
        let is_out = window.ended() == 0 && self.oldest_ns >= length_ns.max(longest_ns.saturating_mul(2));
        (is_out && condition.operator().holds_for(1.0, condition.limit()))
            .then(|| format!("100%, as nothing was answered for {},", Duration(self.oldest_ns)))
    }

    fn keep(&mut self, second: &Live) {
        if second.snapshot.statuses.total() > 0 {
            let longest_ns = second.snapshot.response_quantile(1.0).map_or(0, |longest| longest.value);
            self.longest_ns = Some(self.longest_ns.unwrap_or(0).max(longest_ns));
        }
        self.oldest_ns = second.oldest_ns;
        let mut snapshot = Snapshot::default();
        snapshot.merge(&second.snapshot);
        // No figure of a condition is of these.
        (snapshot.timeline, snapshot.examples, snapshot.slowest, snapshot.kinds) = Default::default();
        let has_ends = snapshot.statuses.total() + snapshot.failures.total() > 0;
        let open = second.in_flight + second.waiting;
        self.seconds.push_back(Second { length_ns: second.length_ns, snapshot, open, has_ends });
        let longest = self.plan.guards.iter().map(Guard::window_ns).max().unwrap_or(0);
        while self.seconds.len() as u64 > longest / SECOND_NS {
            self.seconds.pop_front();
        }
    }

    /// Figures of the last seconds, and their total length; `None` while they are too few.
    fn window(&self, window_ns: u64) -> Option<(Snapshot, u64)> {
        let seconds = (window_ns / SECOND_NS) as usize;
        let first = self.seconds.len().checked_sub(seconds)?;
        let of = || self.seconds.iter().skip(first);
        if of().any(|second| second.length_ns + EARLY_NS < SECOND_NS) {
            return None;
        }
        let mut all = Snapshot::default();
        of().for_each(|second| all.merge(&second.snapshot));
        self.add_open(&mut all.times);
        Some((all, of().map(|second| second.length_ns).sum()))
    }

    /// Adds open calls, where no call has ended for whole seconds: those open at the end of the last second with one
    /// that ended, and those that came due since.
    fn add_open(&self, times: &mut Timings) {
        let silent = self.seconds.iter().rev().take_while(|second| !second.has_ends).count();
        if silent == 0 {
            return;
        }
        let since = self.seconds.iter().skip(self.seconds.len().saturating_sub(silent + 1));
        let (mut known, mut seconds) = (0, since.len() as u64);
        for second in since {
            seconds -= 1;
            times.record_bounds(Timing::Response, seconds * SECOND_NS, second.open.saturating_sub(known));
            known = second.open.max(known);
        }
    }

    fn found(&self, guard: &Guard, got: &str) -> String {
        let window = ExactDuration(guard.window_ns());
        let open = counted(self.seconds.back().map_or(0, |second| second.open), "call");
        let figure = guard.condition().figure();
        format!("{figure} was {got} over {window}, with {open} open")
    }
}

/// A guard whose condition holds.
#[derive(Debug)]
pub(crate) struct Fired<'a> {
    /// Its place among the plan's guards.
    place: u32,
    guard: &'a Guard,
    phase: Phase,
    elapsed_ns: u64,
    /// The figure's value, and the calls open then.
    found: String,
    /// Whether anything was answered in its window.
    pub(crate) has_answers: bool,
}

impl Fired<'_> {
    /// The author of a change that it makes.
    pub(crate) fn author(&self) -> Author {
        Author::Guard { place: self.place, guard: self.guard.to_string(), found: self.found.clone() }
    }

    /// Why the run ends.
    pub(crate) fn cause(&self) -> AbortCause {
        AbortCause::Guard {
            place: self.place,
            guard: self.guard.to_string(),
            phase: self.phase,
            elapsed_ns: self.elapsed_ns,
            found: self.found.clone(),
        }
    }
}

/// Lets the calls of a window be those that ended in it: of what was due in it a part ends later, and of what ends in it a part was due before.
fn count_by_end(window: &mut Snapshot) {
    let ended = window.ended();
    window.numbers.set(Counter::Due, ended);
    let Figures { requests, tags, selected, .. } = &mut window.figures;
    for named in [requests, tags, selected] {
        let ended: Vec<_> = named.iter().map(|(name, calls)| (name.to_owned(), calls.ended())).collect();
        for (name, ended) in ended {
            named.named(&name).numbers.set(Counter::Due, ended);
        }
    }
}

/// The figure of a guard over these seconds, if its condition holds. Only this function knows which figures a guard may
/// have.
fn got(plan: &Plan, guard: &Guard, window: &Snapshot, length_ns: u64, so_far: &RunningTotal<'_>) -> Option<String> {
    let total = RunningTotal { measured: window, measured_ns: length_ns, ..*so_far };
    let judged = FigureSource::so_far(plan, &total).judge(guard.condition());
    if judged.held { Some(judged.got.to_string()) } else { unanswered(guard.condition(), window) }
}

/// The response time for which a guard fires where nothing was answered: over a whole run it would be no figure, here
/// it is the target's time.
fn unanswered(condition: &Threshold, window: &Snapshot) -> Option<String> {
    let q = condition.response_quantile().filter(|_| window.statuses.total() == 0)?;
    let value = window.response_quantile(q)?;
    let holds = condition.operator().holds(value.map(|ns| ns as f64), condition.limit());
    holds.then(|| format!("≥{}", Duration(value.value)))
}

impl ThresholdResult {
    /// The result of a guard in a run with these changes, which was aborted for this cause if for any.
    pub(crate) fn of_guard(
        (at, guard): (u32, &Guard),
        standing: &FigureSource<'_>,
        aborted: Option<&AbortCause>,
        changes: &[Change],
    ) -> Self {
        let (got, held) = match aborted {
            Some(AbortCause::Guard { place, phase, elapsed_ns, found, .. }) if *place == at => {
                (format!("fired {}: {found}", When(*phase, *elapsed_ns)), false)
            }
            _ if let Some(how) = backed_off(at, changes) => (how, false),
            _ => standing.did_not_fire(guard.condition()),
        };
        Self { condition: JudgedCondition::Guard(guard.clone()), value: None, got: got.into(), held, sure: true }
    }
}

/// How the guard at this place of the plan has lowered the rate, if it has: `fired twice: 433/s from 0:13.1 on`. The changes have the reason.
fn backed_off(guard: u32, changes: &[Change]) -> Option<String> {
    let mut steps = changes.iter().filter_map(|change| match (&change.action, &change.by) {
        (Action::Rate(rate), Author::Guard { place, .. }) if *place == guard => Some((change.at_ns, *rate)),
        _ => None,
    });
    let times = match steps.clone().count() {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    };
    let (at_ns, rate) = steps.next_back()?;
    let at = Clock(u64::try_from(at_ns).unwrap_or(0));
    Some(format!("fired {times}: {}/s from {at} on", Number(rate)))
}

#[cfg(test)]
mod tests;
