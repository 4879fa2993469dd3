//! Finds that the last seconds of a run meet a condition: `p99 > 500ms for 10s`. What becomes of the run then is its plan's to say: it ends, or
//! [backs off](crate::back_off).
//!
//! A window is made of whole seconds, whether they were warmed up or measured. Its figures are of the calls that ended in it. Where
//! nothing has ended for a while, calls that are open since then count as well, as ones that take longer than they have taken: a
//! target that stands still is slow, and says nothing. Where nothing has ended in a whole window, although the target has answered before and
//! a call is open for far longer than any has taken, that is an outage, and every call of the window is an error. A window without a
//! call fires no guard.

use std::collections::VecDeque;

use brunt_plan::plan::Plan;
use brunt_plan::threshold::{Guard, Threshold};
use brunt_plan::units::{Clock, Duration, ExactDuration, Number, counted};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Timing, Timings};
use brunt_record::change::{Action, Author, Change};
use brunt_record::live::Live;
use brunt_record::observer::RunningTotal;
use brunt_record::snapshot::{Phase, Snapshot};

use crate::thresholds::{Standing, ThresholdResult};

/// By how much shorter than a second a second may be, in nanoseconds: they end when the coordinator looks.
const EARLY_NS: u64 = SECOND_NS / 20;

/// Watches the last seconds of a run by the guards of its plan.
pub(crate) struct Guards<'a> {
    plan: &'a Plan,
    seconds: VecDeque<Second>,
    /// The longest that a call has taken that was answered, in nanoseconds; none before the first answer.
    longest_ns: Option<u64>,
    /// How long the oldest open call had been due at the end of the last second, in nanoseconds.
    oldest_ns: u64,
}

struct Second {
    length_ns: u64,
    /// Without calls by when they were due, examples and kinds of answers.
    snapshot: Snapshot,
    /// Calls that were open at its end.
    open: u64,
    has_ends: bool,
}

impl<'a> Guards<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Self { plan, seconds: VecDeque::new(), longest_ns: None, oldest_ns: 0 }
    }

    /// The guard that fires after this second, if one does.
    pub(crate) fn second(&mut self, second: &Live, so_far: &RunningTotal<'_>) -> Option<Fired<'a>> {
        if self.plan.guards.is_empty() || second.phase == Phase::Drain {
            return None;
        }
        self.keep(second);
        self.plan.guards.iter().find_map(|guard| {
            let (window, length_ns) = self.window(guard.window_ns())?;
            let got = got(self.plan, guard, &window, length_ns, so_far);
            let got = got.or_else(|| self.outage(guard.condition(), &window, length_ns))?;
            let has_answers = window.statuses.total() > 0;
            Some(Fired { guard, at: when(second), found: self.found(guard, &got), has_answers })
        })
    }

    /// How long the longest window is whose seconds there all are, in nanoseconds, once that is so of every guard.
    pub(crate) fn full_ns(&self) -> Option<u64> {
        let longest_ns = self.plan.guards.iter().map(Guard::window_ns).max()?;
        self.window(longest_ns).map(|(_, length_ns)| length_ns)
    }

    /// Forgets all seconds: windows begin anew.
    pub(crate) fn restart(&mut self) {
        self.seconds.clear();
    }

    /// The error rate of a window in which the target has fallen silent, if the condition holds for it.
    fn outage(&self, condition: &Threshold, window: &Snapshot, length_ns: u64) -> Option<String> {
        let longest_ns = self.longest_ns.filter(|_| condition.is_about_errors() && condition.subject().is_none())?;
        let is_out = window.ended() == 0 && self.oldest_ns >= length_ns.max(longest_ns.saturating_mul(2));
        (is_out && condition.operator().holds_for(1.0, condition.limit()))
            .then(|| format!("100%, as nothing was answered for {},", Duration(self.oldest_ns)))
    }

    fn keep(&mut self, second: &Live) {
        if second.snapshot.statuses.total() > 0 {
            let longest_ns = second.snapshot.response_times().quantile(1.0).map_or(0, |longest| longest.value);
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

    /// What happened in the last seconds, and how long they were together; none where there are too few yet.
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

    /// Adds calls that are open, where nothing has ended for whole seconds: those that were open when the last one ended, and those that
    /// came due since.
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
    pub(crate) guard: &'a Guard,
    /// When: `at 0:05`.
    at: String,
    /// What its figure came to, and what was open then.
    pub(crate) found: String,
    /// Whether anything was answered in its window.
    pub(crate) has_answers: bool,
}

impl Fired<'_> {
    /// Why the run ends.
    pub(crate) fn reason(&self) -> String {
        format!("{} fired {}: {}", beginning(self.guard), self.at, self.found)
    }
}

/// What a guard's figure came to in these seconds, if its condition holds. The one place that knows what a guard may ask for.
fn got(plan: &Plan, guard: &Guard, window: &Snapshot, length_ns: u64, so_far: &RunningTotal<'_>) -> Option<String> {
    let total = RunningTotal { measured: window, measured_ns: length_ns, ..*so_far };
    let judged = Standing::so_far(plan, &total).judge(guard.condition());
    if judged.held { Some(judged.got) } else { unanswered(guard.condition(), window) }
}

fn when(second: &Live) -> String {
    match second.phase {
        Phase::Warmup => format!("{} into the warm-up", Clock(second.elapsed_ns)),
        Phase::Measured | Phase::Drain => format!("at {}", Clock(second.elapsed_ns)),
    }
}

/// The response time that a guard fires for where nothing was answered: over a whole run that is no figure, here it is the target's time.
fn unanswered(condition: &Threshold, window: &Snapshot) -> Option<String> {
    let q = condition.response_quantile().filter(|_| window.statuses.total() == 0)?;
    let value = window.response_times().quantile(q)?;
    let holds = condition.operator().holds(value.map(|ns| ns as f64), condition.limit());
    holds.then(|| format!("≥{}", Duration(value.value)))
}

impl ThresholdResult {
    /// What came of a guard in a run that ended for this reason, if it was aborted, and was changed like this.
    pub(crate) fn of_guard(guard: &Guard, standing: &Standing<'_>, aborted: Option<&str>, changes: &[Change]) -> Self {
        let fired = aborted.and_then(|reason| reason.strip_prefix(&beginning(guard)));
        let (got, held) = match fired {
            Some(how) => (how.trim_start().to_owned(), false),
            None if let Some(how) = backed_off(guard, changes) => (how, false),
            None => standing.did_not_fire(guard.condition()),
        };
        Self { threshold: name(guard), got, held, sure: true, implicit: false }
    }
}

/// How a guard has lowered the rate, if it has: `fired twice: 433/s from 0:13.1 on`. Why it did stands in the changes.
fn backed_off(guard: &Guard, changes: &[Change]) -> Option<String> {
    let text = guard.to_string();
    let mut steps = changes.iter().filter_map(|change| match (&change.action, &change.by) {
        (Action::Rate(rate), Author::Guard { guard, .. }) if *guard == text => Some((change.at_ns, *rate)),
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

/// What a guard is called among thresholds.
pub(crate) fn name(guard: &Guard) -> String {
    format!("guard {guard}")
}

/// Whether a run that was aborted for this reason was ended by the guard.
pub(crate) fn ended(guard: &Guard, reason: &str) -> bool {
    reason.starts_with(&beginning(guard))
}

/// How the reason begins for which a guard ends a run.
fn beginning(guard: &Guard) -> String {
    format!("the guard '{guard}'")
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use brunt_record::catalogue::Counter;
    use brunt_record::figures::Figure as _;
    use brunt_record::observer::Observer;
    use brunt_record::outcome::Failure;
    use brunt_record::recording::Ending;
    use brunt_record::watched::{WatchedFigure, WatchedUnit};

    use super::*;
    use crate::abort::AbortWatch;
    use crate::summary::Summary;

    const MS: u64 = 1_000_000;

    struct Nobody;

    impl Observer for Nobody {
        fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<String> {
            ControlFlow::Continue(())
        }
    }

    /// A second of 100 calls: so many of them fail, the others take so long; and so many are open at its end.
    #[derive(Debug, Clone, Copy)]
    struct Calls {
        ended: u64,
        failed: u64,
        took: u64,
        open: u64,
    }

    const GOOD: Calls = Calls { ended: 100, failed: 0, took: 5 * MS, open: 1 };

    fn plan(guards: &[&str]) -> Plan {
        Plan { guards: guards.iter().map(|guard| guard.parse().unwrap()).collect(), ..crate::fixtures::plan() }
    }

    fn live(phase: Phase, ended_s: u64, calls: Calls) -> Live {
        let mut snapshot = Snapshot::with_numbers([(Counter::Due, calls.ended)]);
        for call in 0..calls.ended {
            snapshot.times.record(Timing::Response, calls.took);
            if call < calls.failed {
                snapshot.times.record(Timing::Failed, calls.took);
                snapshot.failures.record(Failure::Closed, "gone");
            } else {
                snapshot.statuses.record(200);
            }
        }
        Live {
            phase,
            elapsed_ns: ended_s * SECOND_NS,
            planned_ns: Some(10 * SECOND_NS),
            in_log: None,
            planned_requests: None,
            length_ns: SECOND_NS,
            snapshot,
            open_connections: 1,
            in_flight: calls.open,
            waiting: 0,
            oldest_ns: 0,
            users: None,
            changes: Vec::new(),
            agents: Vec::new(),
        }
    }

    /// After which second the run was aborted, and why.
    fn fired(guards: &[&str], phase: Phase, seconds: &[Calls]) -> Option<(usize, String)> {
        let (plan, mut nobody) = (plan(guards), Nobody);
        let mut watch = AbortWatch::new(&plan, &mut nobody);
        let mut measured = Snapshot::default();
        seconds.iter().enumerate().find_map(|(second, calls)| {
            let live = live(phase, second as u64 + 1, *calls);
            measured.merge(&live.snapshot);
            let measured_ns = (second as u64 + 1) * SECOND_NS;
            let so_far = RunningTotal { measured: &measured, measured_ns, users: 0, most_users: 0 };
            match watch.second(&live, &so_far) {
                ControlFlow::Break(reason) => Some((second + 1, reason)),
                ControlFlow::Continue(()) => None,
            }
        })
    }

    #[test]
    fn a_guard_fires_with_the_second_that_fills_its_window() {
        let slow = Calls { took: 900 * MS, ..GOOD };
        let (second, why) =
            fired(&["p50>500ms for 3s"], Phase::Measured, &[GOOD, GOOD, GOOD, slow, slow, slow]).unwrap();
        assert_eq!(second, 5, "more than half of three seconds");
        assert_eq!(why, "the guard 'p50>500ms for 3s' fired at 0:05: p50 was 900.0ms over 3s, with 1 call open");
        let early = fired(&["p50>500ms for 3s"], Phase::Measured, &[slow, slow, slow]).unwrap();
        assert_eq!(early.0, 3, "not before there are three seconds");
        assert_eq!(fired(&["p50>500ms for 3s"], Phase::Measured, &[slow, GOOD, GOOD, GOOD]), None);
    }

    #[test]
    fn what_came_before_the_window_is_forgotten() {
        let failing = Calls { failed: 20, ..GOOD };
        let long_and_good = [[GOOD; 30].as_slice(), &[failing; 2]].concat();
        assert_eq!(fired(&["error_rate>5% for 2s"], Phase::Measured, &long_and_good).map(|(at, _)| at), Some(31));
        let bad_once = [[failing].as_slice(), &[GOOD; 30]].concat();
        assert_eq!(fired(&["error_rate>5% for 5s"], Phase::Measured, &bad_once), None);
    }

    #[test]
    fn answers_that_fail_a_check_or_are_excused_count_as_they_do_in_the_run() {
        let plan = plan(&["error_rate>5% for 1s"]);
        let fires = |answered: fn(&mut Snapshot)| {
            let mut snapshot = Snapshot::with_numbers([(Counter::Due, 1)]);
            answered(&mut snapshot);
            let live = Live { snapshot: snapshot.clone(), ..live(Phase::Measured, 1, GOOD) };
            let so_far = RunningTotal { measured: &snapshot, measured_ns: SECOND_NS, users: 0, most_users: 0 };
            Guards::new(&plan).second(&live, &so_far).is_some()
        };
        assert!(!fires(|snapshot| snapshot.statuses.record(200)));
        assert!(fires(|snapshot| snapshot.statuses.record(404)));
        assert!(fires(|snapshot| {
            snapshot.statuses.record(200);
            snapshot.failed_check.record(200);
        }));
        assert!(!fires(|snapshot| {
            snapshot.statuses.record(404);
            snapshot.excused.record(404);
        }));
    }

    #[test]
    fn a_target_that_stands_still_is_slow() {
        let still = |open| Calls { ended: 0, open, ..GOOD };
        let frozen = [GOOD, GOOD, still(100), still(200), still(300)];
        let (second, why) = fired(&["p99>1500ms for 5s"], Phase::Measured, &frozen).unwrap();
        assert_eq!(second, 5);
        assert!(why.contains("p99 was ≥2.00s over 5s, with 300 calls open"), "{why}");
        // One call that is open while others end says nothing.
        assert_eq!(fired(&["p99>100ms for 2s"], Phase::Measured, &[GOOD; 5]), None);
        // Nothing but silence from the first second on.
        let (second, _) = fired(&["p50>1500ms for 3s"], Phase::Measured, &[still(100); 5]).unwrap();
        assert_eq!(second, 3);
        // Nor do calls that time out say anything of how soon others are answered.
        let timed_out = Calls { ended: 100, failed: 100, took: 10 * SECOND_NS, open: 100 };
        let (_, why) = fired(&["p99>4s for 2s"], Phase::Measured, &[timed_out; 2]).unwrap();
        assert!(why.contains("p99 was ≥10.00s over 2s"), "{why}");
        assert_eq!(fired(&["p99>11s for 2s"], Phase::Measured, &[timed_out; 2]), None);
    }

    /// A target that answers nothing fails no call before its timeout, and is out all the same.
    #[test]
    fn a_target_that_falls_silent_is_out() {
        let plan = plan(&["error_rate>50% for 3s"]);
        let fires = |before: u64, seconds: u64, oldest_s: u64| {
            let mut guards = Guards::new(&plan);
            let so_far =
                RunningTotal { measured: &Snapshot::default(), measured_ns: SECOND_NS, users: 0, most_users: 0 };
            let answered = (0..before).map(|_| (GOOD, 0));
            let silent = (1..=seconds)
                .map(|second| (Calls { ended: 0, open: 100 * second, ..GOOD }, oldest_s * second / seconds));
            answered.chain(silent).enumerate().find_map(|(nth, (calls, oldest_s))| {
                let live = live(Phase::Measured, nth as u64 + 1, calls);
                guards.second(&Live { oldest_ns: oldest_s * SECOND_NS, ..live }, &so_far).map(|fired| fired.reason())
            })
        };
        let why = fires(5, 3, 3).unwrap();
        assert!(
            why.ends_with("error_rate was 100%, as nothing was answered for 3.00s, over 3s, with 300 calls open"),
            "{why}"
        );
        assert_eq!(fires(5, 2, 2), None, "not before the window is full of it");
        assert_eq!(fires(0, 9, 9), None, "a target that has never answered may be as slow as that");
        assert_eq!(fires(5, 9, 0), None, "nothing was asked of it");
    }

    #[test]
    fn the_warm_up_is_guarded_and_the_drain_is_not() {
        let slow = Calls { took: 900 * MS, ..GOOD };
        let (_, why) = fired(&["p50>500ms for 2s"], Phase::Warmup, &[slow; 3]).unwrap();
        assert!(why.contains("fired 0:02 into the warm-up"), "{why}");
        assert_eq!(fired(&["p50>500ms for 2s"], Phase::Drain, &[slow; 3]), None);
    }

    #[test]
    fn a_guard_that_fired_or_had_nothing_to_watch_has_failed() {
        let results = |guard: &str, ending: Ending| {
            let (_, run) = crate::fixtures::run();
            let summary = Summary::new(plan(&[guard]), brunt_record::recording::Recording { ending, ..run });
            let result = summary.thresholds.iter().find(|result| result.threshold.starts_with("guard ")).unwrap();
            (result.got.clone(), result.held)
        };
        let reason = "the guard 'p99>1s for 2s' fired at 0:02: p99 was 2.00s over 2s, with 3 calls open";
        let fired = results("p99>1s for 2s", Ending::Aborted(reason.to_owned()));
        assert_eq!(fired, ("fired at 0:02: p99 was 2.00s over 2s, with 3 calls open".to_owned(), false));
        assert_eq!(results("p99>1s for 3s", Ending::Aborted(reason.to_owned())), ("did not fire".to_owned(), true));
        assert_eq!(results("p99>1s for 2s", Ending::Completed), ("did not fire".to_owned(), true));
        assert_eq!(results("logn:p99>1s for 2s", Ending::Completed), ("nothing has the name 'logn'".to_owned(), false));
    }

    #[test]
    fn a_guard_on_a_source_that_gave_no_value_says_so() {
        let results = |values: &[Option<f64>]| {
            let (_, mut run) = crate::fixtures::run();
            let mut plan = plan(&["watch.queue>5 for 2s"]);
            plan.watches = vec!["queue=http://h/#queue".parse().unwrap()];
            for value in values {
                let second = value.map_or_else(
                    || WatchedFigure::missed(WatchedUnit::Number, "refused"),
                    |value| WatchedFigure::value(WatchedUnit::Number, value),
                );
                run.measured.watched.named("queue").merge(&second);
            }
            let summary = Summary::new(plan, run);
            let result = summary.thresholds.iter().find(|result| result.threshold.starts_with("guard ")).unwrap();
            (result.got.clone(), result.held)
        };
        assert_eq!(results(&[Some(1.0); 3]), ("did not fire".to_owned(), true));
        assert_eq!(results(&[Some(1.0), None, None]), ("did not fire; no value in 2 of 3 seconds".to_owned(), true));
        assert_eq!(results(&[None; 3]), ("could not fire: no value in 3 of 3 seconds".to_owned(), false));
        assert_eq!(results(&[]), ("no value".to_owned(), false), "nothing was watched");
    }
}
