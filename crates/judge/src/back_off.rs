//! Lowers a rate at which a guard fires: to the last one that held, and on from there.
//!
//! A rate has held once every guard has had its whole window at that rate, or while the rate rose from it, and none has
//! fired. The next rate is the highest one that has held and is at least a tenth lower than the one at which the guard
//! fired; half of that one where none has held. It replaces the profile until the end. After a change no second is
//! judged until the backlog from before is gone: as long as fewer calls are open from second to second.

use brunt_plan::plan::Plan;
use brunt_plan::threshold::GuardAction;
use brunt_plan::timetable::Timetable;
use brunt_record::SECOND_NS;
use brunt_record::change::Change;
use brunt_record::live::Live;
use brunt_record::snapshot::Phase;

/// A rate that has held is tried again only up to this share of the one that has not.
const LOWER: f64 = 0.9;
/// The lowest rate that is backed off to, in calls a second.
const LOWEST: f64 = 1.0;

/// The rates of a run, and those of them that have held.
#[derive(Debug)]
pub(crate) struct BackOff {
    warmup: Timetable,
    measured: Timetable,
    warmup_ns: i64,
    changes: Vec<Change>,
    /// When the last second ended, in nanoseconds after the beginning of the measured part.
    now_ns: i64,
    /// Rates that have held, in rising order.
    held: Vec<f64>,
    settling: Option<Settling>,
}

/// The backlog from before a change is being worked off.
#[derive(Debug)]
struct Settling {
    /// When the change took effect.
    from_ns: i64,
    /// Calls that were open after the last second since the change.
    open: Option<u64>,
}

impl BackOff {
    /// For a run by `plan`, if its guards back off.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let (warmup, measured) = plan.profile(Phase::Warmup).zip(plan.profile(Phase::Measured))?;
        (plan.guard_action == GuardAction::BackOff).then(|| Self {
            warmup: Timetable::new(warmup),
            measured: Timetable::new(measured),
            warmup_ns: i64::try_from(plan.warmup_ns).unwrap_or(i64::MAX),
            changes: Vec::new(),
            now_ns: i64::MIN,
            held: Vec::new(),
            settling: None,
        })
    }

    /// Takes a second. Returns whether it shows how the target does at the current rate.
    pub(crate) fn judges(&mut self, second: &Live) -> bool {
        self.changes.extend(second.changes.iter().cloned());
        let (began_ns, ended_ns) = second.span(self.warmup_ns.unsigned_abs());
        self.now_ns = ended_ns;
        let Some(settling) = &mut self.settling else { return true };
        if began_ns < settling.from_ns {
            return false;
        }
        let open = second.in_flight + second.waiting;
        let is_settled = settling.open.is_some_and(|before| open >= before);
        settling.open = Some(open);
        if is_settled {
            self.settling = None;
        }
        is_settled
    }

    /// The rate at this time, in nanoseconds after the beginning of the measured part.
    fn rate_at(&self, at_ns: i64) -> f64 {
        let (timetable, begins_ns) = if at_ns < 0 { (&self.warmup, -self.warmup_ns) } else { (&self.measured, 0) };
        timetable.with(&self.changes, begins_ns).rate_at(at_ns.saturating_sub(begins_ns).max(0) as f64 / 1e9)
    }

    /// No guard has fired in the last `window_ns` nanoseconds, which filled all of their windows.
    pub(crate) fn held(&mut self, window_ns: u64) {
        let began_ns = self.now_ns.saturating_sub(i64::try_from(window_ns).unwrap_or(i64::MAX));
        let rate = self.rate_at(began_ns).min(self.rate_at(self.now_ns - 1));
        if rate > self.held.last().copied().unwrap_or(0.0) {
            self.held.push(rate);
        }
    }

    /// The rate to go back to when a guard fires now; `None` if there is no lower one.
    pub(crate) fn lower(&mut self) -> Option<f64> {
        let now = self.rate_at(self.now_ns.saturating_sub(SECOND_NS as i64 / 2));
        self.held.retain(|rate| *rate <= now * LOWER);
        let rate = self.held.pop().unwrap_or(now / 2.0);
        // Rounded down: nobody wants a rate like 487.3 calls a second.
        let rate = if rate >= 10.0 { rate.floor() } else { rate };
        (rate >= LOWEST).then_some(rate)
    }

    /// The run takes this change.
    pub(crate) fn changed(&mut self, change: &Change) {
        self.settling = Some(Settling { from_ns: change.at_ns, open: None });
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use brunt_plan::plan::Load;
    use brunt_plan::profile::Profile;
    use brunt_record::catalogue::{Counter, Timing};
    use brunt_record::change::{Action, Author};
    use brunt_record::observer::{Observer, RunningTotal};
    use brunt_record::recording::AbortCause;
    use brunt_record::snapshot::Snapshot;

    use super::*;
    use crate::abort::AbortWatch;

    struct Nobody;

    impl Observer for Nobody {
        fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<AbortCause> {
            ControlFlow::Continue(())
        }
    }

    /// A target that answers so many calls a second in 5 ms each, first come, first served; or nothing at all.
    fn steps(profile: &str, guards: &[&str], capacity: f64, seconds: u64) -> (Vec<(u64, f64)>, Option<AbortCause>) {
        steps_until(profile, guards, capacity, seconds, u64::MAX)
    }

    /// The same of a run that takes no change after so many seconds.
    fn steps_until(
        profile: &str,
        guards: &[&str],
        capacity: f64,
        seconds: u64,
        changes_until_s: u64,
    ) -> (Vec<(u64, f64)>, Option<AbortCause>) {
        let profile: Profile = profile.parse().unwrap();
        let load = Load::Open { profile: profile.clone(), arrivals: brunt_plan::arrivals::Spread::Uniform };
        let guards = guards.iter().map(|guard| guard.parse().unwrap()).collect();
        let plan = Plan { load, guards, guard_action: GuardAction::BackOff, ..crate::fixtures::plan() };
        let made = std::cell::RefCell::new(Vec::<Change>::new());
        let now = std::cell::Cell::new(0);
        let mut nobody = Nobody;
        let mut watch = AbortWatch::new(&plan, &mut nobody).steering(|action, by| {
            if now.get() as u64 > changes_until_s.saturating_mul(SECOND_NS) {
                return None;
            }
            let change = Change { at_ns: now.get() + 100_000_000, action, by };
            made.borrow_mut().push(change.clone());
            Some(change)
        });
        let (mut told, mut backlog, mut ended) = (0, 0.0_f64, None);
        for second in 0..seconds {
            now.set((second as i64 + 1) * SECOND_NS as i64);
            let rates = Timetable::new(profile.clone()).with(&made.borrow(), 0);
            let due = rates.calls_until((second + 1) as f64) - rates.calls_until(second as f64);
            let waits_ns = (5e6 + backlog / capacity.max(1.0) * 1e9) as u64;
            let answered = (backlog + due).min(capacity);
            backlog = backlog + due - answered;
            let mut snapshot = Snapshot::with_numbers([(Counter::Due, due as u64)]);
            for _ in 0..answered as u64 {
                snapshot.times.record(Timing::Response, waits_ns);
                snapshot.statuses.record(200);
            }
            snapshot.count_ends(&brunt_record::outcome::OkStatus::default());
            let changes = made.borrow()[told..].to_vec();
            told += changes.len();
            let live = Live {
                phase: Phase::Measured,
                elapsed_ns: (second + 1) * SECOND_NS,
                planned_ns: None,
                in_log: None,
                planned_requests: None,
                length_ns: SECOND_NS,
                snapshot: snapshot.clone(),
                open_connections: 1,
                in_flight: 1,
                waiting: backlog as u64,
                oldest_ns: 0,
                users: None,
                changes,
                agents: Vec::new(),
            };
            let so_far =
                RunningTotal { measured: &snapshot, measured_ns: (second + 1) * SECOND_NS, users: 0, most_users: 0 };
            if let ControlFlow::Break(cause) = watch.second(&live, &so_far) {
                ended = Some(cause);
                break;
            }
        }
        let of_change = |change: &Change| match (&change.action, &change.by) {
            (Action::Rate(rate), Author::Guard { .. }) => (change.at_ns as u64 / SECOND_NS, *rate),
            other => panic!("{other:?}"),
        };
        (made.borrow().iter().map(of_change).collect(), ended)
    }

    /// The guard that ended the run, and the second at whose end it did.
    fn fired(cause: &AbortCause) -> (&str, u64) {
        let AbortCause::Guard { guard, elapsed_ns, .. } = cause else { panic!("{cause:?}") };
        (guard, elapsed_ns / SECOND_NS)
    }

    #[test]
    fn a_ramp_settles_under_what_the_target_can_do() {
        let (steps, ended) = steps("100..1000/60s,1000/2m", &["p99>200ms for 3s"], 500.0, 180);
        assert_eq!(ended, None);
        assert!(!steps.is_empty() && steps.len() <= 3, "{steps:?}");
        let (at, last) = steps[steps.len() - 1];
        assert!((350.0..500.0).contains(&last), "{steps:?}");
        assert!(at < 90, "{steps:?}");
    }

    #[test]
    fn a_staircase_goes_back_to_the_step_before() {
        let profile = "100/10s,200/10s,300/10s,400/10s,600/1m";
        let (steps, _) = steps(profile, &["p99>200ms for 3s"], 500.0, 100);
        assert_eq!(steps.len(), 1, "{steps:?}");
        assert_eq!(steps[0].1, 400.0);
    }

    #[test]
    fn a_rate_that_never_held_is_halved_until_it_does() {
        let (steps, ended) = steps("1000", &["p99>200ms for 2s"], 300.0, 120);
        assert_eq!(ended, None);
        assert_eq!(steps.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(), [500.0, 250.0], "{steps:?}");
        // What had piled up by then is worked off without a further step down.
        assert!(steps[1].0 < 20, "{steps:?}");
    }

    #[test]
    fn a_target_that_answers_nothing_ends_the_run() {
        let (steps, ended) = steps("100", &["p99>500ms for 3s"], 0.0, 30);
        assert!(steps.is_empty());
        assert_eq!(fired(&ended.unwrap()), ("p99>500ms for 3s", 3));
    }

    /// A guard that fired must not be forgotten because nothing can be done any more.
    #[test]
    fn a_run_that_takes_no_change_any_more_is_ended() {
        let (steps, ended) = steps_until("1000", &["p99>200ms for 2s"], 300.0, 120, 1);
        assert!(steps.is_empty());
        assert_eq!(fired(&ended.unwrap()), ("p99>200ms for 2s", 2));
    }

    #[test]
    fn a_rate_that_holds_is_left_alone() {
        assert_eq!(steps("400", &["p99>200ms for 3s", "error_rate>5% for 2s"], 500.0, 60), (Vec::new(), None));
    }
}
