//! Ends a run when a threshold with `abort` can no longer pass, or a guard fires; or lowers the run's rate.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use brunt_plan::plan::Plan;
use brunt_plan::threshold::{Abort, Threshold};
use brunt_record::catalogue::Counter;
use brunt_record::change::{Action, Author, Change};
use brunt_record::live::{InLog, Live};
use brunt_record::observer::{Observer, RunningTotal};
use brunt_record::recording::AbortCause;
use brunt_record::samples::SampleSink;
use brunt_record::snapshot::Phase;
use brunt_record::watched::Watched;

use crate::back_off::BackOff;
use crate::guard::{Guards, When};
use crate::thresholds::{FigureSource, Outlook};

/// Judges a run after each second by those thresholds and guards of its plan that may end it, then shows the second to
/// another observer.
///
/// The engine gets it in place of that observer, and itself knows no thresholds.
pub struct AbortWatch<'a> {
    plan: &'a Plan,
    guards: Guards<'a>,
    back_off: Option<BackOff>,
    steer: Option<Box<Steer<'a>>>,
    next: &'a mut dyn Observer,
}

/// Changes the watched run; returns `None` where the run does not take the change.
pub type Steer<'a> = dyn FnMut(Action, Author) -> Option<Change> + 'a;

impl<'a> AbortWatch<'a> {
    /// Watches a run by `plan`, and shows its seconds to `next`, which may end it as well.
    pub fn new(plan: &'a Plan, next: &'a mut dyn Observer) -> Self {
        Self { plan, guards: Guards::new(plan), back_off: BackOff::of(plan), steer: None, next }
    }

    /// Makes it change the run by `steer` where guards back off; without that they end the run.
    #[must_use]
    pub fn steering(self, steer: impl FnMut(Action, Author) -> Option<Change> + 'a) -> Self {
        Self { steer: Some(Box::new(steer)), ..self }
    }

    /// The cause if a guard ends the run after this second.
    fn guard(&mut self, second: &Live, so_far: &RunningTotal<'_>) -> Option<AbortCause> {
        self.guards.hear(&second.changes);
        let Some((back_off, steer)) = self.back_off.as_mut().zip(self.steer.as_mut()) else {
            return self.guards.second(second, so_far).map(|fired| fired.cause());
        };
        if !back_off.judges(second) {
            self.guards.restart();
            return None;
        }
        let Some(fired) = self.guards.second(second, so_far) else {
            if let Some(window_ns) = self.guards.full_ns() {
                back_off.held(window_ns);
            }
            return None;
        };
        // A target that answers nothing is not helped by fewer calls.
        let Some(rate) = back_off.lower().filter(|_| fired.has_answers) else {
            return Some(fired.cause());
        };
        let by = fired.author();
        // A run that is about to end takes no change, and has failed all the same.
        let Some(change) = steer(Action::Rate(rate), by) else { return Some(fired.cause()) };
        back_off.changed(&change);
        self.guards.restart();
        None
    }

    /// The cause if a threshold ends the run, as it can no longer pass. Judges nothing once the planned time is over.
    fn beyond_repair(&self, so_far: &RunningTotal<'_>) -> Option<AbortCause> {
        let due = so_far.measured.numbers.get(Counter::Due);
        let over = self.plan.duration_ns().is_some_and(|planned_ns| so_far.measured_ns >= planned_ns)
            || self.plan.stop.requests.is_some_and(|requests| due >= requests);
        let placed = (0..).zip(&self.plan.thresholds);
        let mut aborting = placed.filter(|(_, threshold)| threshold.aborts().is_some()).peekable();
        if over || aborting.peek().is_none() {
            return None;
        }
        let standing = FigureSource::so_far(self.plan, so_far);
        let outlook = Outlook::new(self.plan, so_far.measured_ns, so_far.measured, so_far.users);
        let ends = |(_, threshold): &(u32, &Threshold)| match threshold.aborts() {
            Some(Abort::AtOnce { after_ns }) => {
                let judged = standing.judge(threshold);
                so_far.measured_ns >= after_ns && judged.value.is_some() && !judged.held
            }
            _ => standing.is_beyond_repair(threshold, outlook),
        };
        Some(cause(aborting.find(ends)?, &standing))
    }
}

fn cause((place, threshold): (u32, &Threshold), standing: &FigureSource<'_>) -> AbortCause {
    let got = standing.judge(threshold).got.to_string();
    let at_once = matches!(threshold.aborts(), Some(Abort::AtOnce { .. }));
    AbortCause::Threshold { place, threshold: threshold.without_abort(), got, after_ns: standing.measured_ns, at_once }
}

/// A cause in words: `the threshold p99<50ms could no longer pass after 3s: it was at 75.0ms`.
#[derive(Debug, Clone, Copy)]
pub struct Reason<'a>(pub &'a AbortCause);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            AbortCause::Threshold { threshold, got, after_ns, at_once, .. } => {
                let after = Duration::from_nanos(*after_ns).as_secs();
                let what = if *at_once { "did not hold" } else { "could no longer pass" };
                write!(f, "the threshold {threshold} {what} after {after}s: it was at {got}")
            }
            AbortCause::Guard { guard, phase, elapsed_ns, found, .. } => {
                write!(f, "the guard '{guard}' fired {}: {found}", When(*phase, *elapsed_ns))
            }
            AbortCause::Observer(reason) => f.write_str(reason),
        }
    }
}

impl Observer for AbortWatch<'_> {
    fn watched(&mut self, phase: Phase, elapsed_ns: u64, length_ns: u64) -> Watched {
        self.next.watched(phase, elapsed_ns, length_ns)
    }

    fn in_log(&mut self, elapsed_ns: u64) -> Option<InLog> {
        self.next.in_log(elapsed_ns)
    }

    fn samples(&self) -> Option<Arc<dyn SampleSink>> {
        self.next.samples()
    }

    fn second(&mut self, second: &Live, so_far: &RunningTotal<'_>) -> ControlFlow<AbortCause> {
        self.next.second(second, so_far)?;
        let fired = self.guard(second, so_far);
        let beyond_repair = || self.beyond_repair(so_far).filter(|_| second.phase == Phase::Measured);
        match fired.or_else(beyond_repair) {
            Some(cause) => ControlFlow::Break(cause),
            None => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::snapshot::Snapshot;

    use super::*;

    /// Counts seconds.
    struct Counting(u32);

    impl Observer for Counting {
        fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<AbortCause> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
    }

    fn live(phase: Phase) -> Live {
        Live::new(phase, brunt_record::SECOND_NS, Snapshot::default())
    }

    /// What comes of so many seconds in which a call of a hundred failed, and how many were passed on.
    fn seen(thresholds: &[&str], phase: Phase, seconds: u64) -> (ControlFlow<AbortCause>, u32) {
        let thresholds = thresholds.iter().map(|text| text.parse().unwrap()).collect();
        let plan = Plan { thresholds, ..crate::fixtures::plan() };
        let mut measured = Snapshot::with_numbers([(Counter::Due, 100)]);
        (0..99).for_each(|_| measured.statuses.record(200));
        measured.count_ends(&plan.ok_status);
        measured.failures.record(brunt_record::outcome::Failure::Timeout, "no answer in 2s");
        let mut counting = Counting(0);
        let so_far = RunningTotal {
            measured: &measured,
            measured_ns: seconds * brunt_record::SECOND_NS,
            users: 0,
            most_users: 0,
        };
        let flow = AbortWatch::new(&plan, &mut counting).second(&live(phase), &so_far);
        (flow, counting.0)
    }

    #[test]
    fn a_threshold_beyond_repair_ends_the_run() {
        let (flow, passed_on) = seen(&["p99<1s abort", "timeout==0 abort"], Phase::Measured, 3);
        let ControlFlow::Break(cause) = flow else { panic!("it goes on") };
        assert_eq!(passed_on, 1);
        assert!(matches!(&cause, AbortCause::Threshold { threshold, .. } if threshold == "timeout==0"), "{cause:?}");
        assert_eq!(Reason(&cause).to_string(), "the threshold timeout==0 could no longer pass after 3s: it was at 1");
        for threshold in ["error_rate==0 abort", "error_rate<=0 abort"] {
            assert!(seen(&[threshold], Phase::Measured, 3).0.is_break(), "{threshold}: a call has failed");
        }
        assert!(
            seen(&["error_rate==1% abort"], Phase::Measured, 3).0.is_continue(),
            "calls that come may still make it 1%"
        );
    }

    #[test]
    fn a_run_goes_on_for_thresholds_that_do_not_abort_or_may_still_hold() {
        let goes_on = (ControlFlow::Continue(()), 1);
        assert_eq!(seen(&["timeout==0", "timeout<2 abort"], Phase::Measured, 3), goes_on);
        assert_eq!(seen(&["timeout==0 abort"], Phase::Warmup, 3), goes_on, "the measured part alone is judged");
        assert_eq!(seen(&["timeout==0 abort"], Phase::Measured, 10), goes_on, "its time is over anyway");
    }
}
