//! The timetable of a run whose rate changes while it goes on.

use brunt_record::change::{Action, Change};

use crate::profile::{HIGHEST_RATE, Profile};

/// A profile with changes. The resulting profile is exact: before a change every call is due at the same nanosecond as
/// without it, and later calls are numbered on.
///
/// ```
/// use brunt_plan::timetable::Timetable;
/// use brunt_record::change::{Action, Author, Change};
///
/// let change = |at_s: i64, action| Change { at_ns: at_s * 1_000_000_000, action, by: Author::Ctl };
/// let changes = [change(10, Action::Rate(500.0)), change(20, Action::Pause), change(25, Action::Resume)];
/// let changed = Timetable::new("100/1m".parse()?).with(&changes, 0);
/// assert_eq!(changed.to_string(), "100/10s,500/10s,0/5s,500/35s");
/// assert_eq!(changed.calls(), 1000.0 + 5000.0 + 17500.0);
/// # Ok::<(), brunt_plan::profile::ProfileError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Timetable(Profile);

impl Timetable {
    /// The timetable of a profile as it was planned.
    pub fn new(planned: Profile) -> Self {
        Self(planned)
    }

    /// The profile with these changes, which are in the order of their times. It begins at `begins_ns` on the changes'
    /// clock: an earlier change applies from its beginning.
    ///
    /// A rate applies until the next rate, or until the profile's end, which stays where it is. In a pause no calls are
    /// due; after it, the calls that would be due at that time without it: time goes on in a pause. Other changes do
    /// not affect the timetable.
    pub fn with(&self, changes: &[Change], begins_ns: i64) -> Profile {
        // The profile without any pause.
        let mut running = self.0.clone();
        let mut profile = self.0.clone();
        let mut is_paused = false;
        for change in changes {
            let at = change.at_ns.saturating_sub(begins_ns).max(0) as f64 / 1e9;
            match change.action {
                Action::Rate(rate) => {
                    running = running.until(at, &self.0.levelled(rate.clamp(0.0, HIGHEST_RATE)));
                    if !is_paused {
                        profile = profile.until(at, &running);
                    }
                }
                Action::Pause if !is_paused => {
                    is_paused = true;
                    profile = profile.until(at, &self.0.levelled(0.0));
                }
                Action::Resume if is_paused => {
                    is_paused = false;
                    profile = profile.until(at, &running);
                }
                Action::Pause | Action::Resume | Action::Users(_) | Action::Mark(_) => {}
            }
        }
        profile
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::change::Author;
    use brunt_record::time::Tick;
    use proptest::prelude::*;

    use super::*;
    use crate::arrivals::{Arrivals, Spread};
    use crate::schedule::Schedule;
    use crate::share::Portion;

    const SECOND: u64 = 1_000_000_000;

    fn change(at_ns: u64, action: Action) -> Change {
        Change { at_ns: at_ns as i64, action, by: Author::Ctl }
    }

    fn changed(profile: &str, changes: &[(f64, Action)]) -> String {
        let changes: Vec<_> = changes.iter().map(|(at, action)| change((at * 1e9) as u64, action.clone())).collect();
        Timetable::new(profile.parse().unwrap()).with(&changes, 0).to_string()
    }

    #[test]
    fn a_change_takes_the_place_of_what_the_profile_had() {
        use Action::{Pause, Rate, Resume};
        for (profile, changes, expected) in [
            ("100/10s", vec![(4.0, Rate(300.0))], "100/4s,300/6s"),
            ("100/10s", vec![(4.0, Rate(300.0)), (6.0, Rate(50.0))], "100/4s,300/2s,50/4s"),
            ("0..100/10s", vec![(5.0, Pause), (7.0, Resume)], "0..50/5s,0/2s,70..100/3s"),
            ("100/10s", vec![(5.0, Pause), (6.0, Rate(7.0)), (8.0, Resume)], "100/5s,0/3s,7/2s"),
            ("100/10s", vec![(5.0, Pause), (5.0, Resume)], "100/5s,100/5s"),
            ("100/4s,200/4s", vec![(4.0, Pause), (5.0, Resume)], "100/4s,0/1s,200/3s"),
            ("100/10s", vec![(0.0, Rate(5.0))], "5/10s"),
            ("100/10s", vec![(10.0, Rate(5.0))], "100/10s"),
            ("100/10s", vec![(5.0, Resume), (6.0, Pause), (7.0, Pause), (8.0, Resume)], "100/6s,0/2s,100/2s"),
        ] {
            assert_eq!(changed(profile, &changes), expected, "{profile} {changes:?}");
        }
    }

    #[test]
    fn a_change_of_the_warm_up_counts_from_the_beginning_of_what_follows() {
        let early = Change { at_ns: -3_000_000_000, action: Action::Rate(50.0), by: Author::Ctl };
        let profile: Profile = "100/10s".parse().unwrap();
        assert_eq!(Timetable::new(profile.clone()).with(std::slice::from_ref(&early), 0).to_string(), "50/10s");
        // The warm-up itself has lasted two seconds.
        assert_eq!(Timetable::new(profile).with(&[early], -5_000_000_000).to_string(), "100/2s,50/8s");
    }

    /// Rates, pauses and marks at whatever times, in order.
    fn all_changes() -> impl Strategy<Value = Vec<Change>> {
        let action = prop_oneof![
            4 => (1_u32..3000).prop_map(|rate| Action::Rate(f64::from(rate) / 3.0)),
            2 => Just(Action::Pause),
            2 => Just(Action::Resume),
            1 => Just(Action::Mark(String::new())),
        ];
        prop::collection::vec((0..5 * SECOND, action), 0..8).prop_map(|mut changes| {
            changes.sort_by_key(|(at, _)| *at);
            changes.into_iter().map(|(at, action)| change(at, action)).collect()
        })
    }

    /// How many calls are due before `until_ns` by integration of what each stretch has, worked out without any profile.
    fn integral(planned: &Profile, changes: &[Change], until_ns: u64) -> f64 {
        let (mut calls, mut from_ns, mut rate, mut is_paused) = (0.0, 0, None, false);
        let end = change(until_ns, Action::Mark(String::new()));
        for change in changes.iter().filter(|change| (change.at_ns as u64) < until_ns).chain([&end]) {
            let to_ns = change.at_ns as u64;
            let seconds = |ns: u64| ns as f64 / 1e9;
            calls += match rate {
                _ if is_paused => 0.0,
                Some(rate) => rate * seconds(to_ns - from_ns),
                None => planned.calls_until(seconds(to_ns)) - planned.calls_until(seconds(from_ns)),
            };
            from_ns = to_ns;
            match change.action {
                Action::Rate(to) => rate = Some(to),
                Action::Pause => is_paused = true,
                Action::Resume => is_paused = false,
                Action::Users(_) | Action::Mark(_) => {}
            }
        }
        calls
    }

    proptest! {
        /// Whoever makes the calls, and however late each worker hears of a change: what was due is the integral of the profile as changed, no call is
        /// lost or made twice, and all workers together have the due times of one.
        #[test]
        fn what_was_due_is_the_integral_of_the_changed_profile(
            from in 0_u32..2000, to in 1_u32..2000, changes in all_changes(), shares in 1_u32..4, poisson: bool, seed: u64,
            step in 1_000_000..800_000_000_u64,
        ) {
            let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
            let planned: Profile = format!("{from}..{to}/3s,{to}/2s").parse().unwrap();
            let timetable = Timetable::new(planned.clone());
            let end = 5 * SECOND;
            let mut due_times = Vec::new();
            let mut counted = 0;
            for share in Portion::whole(shares).shares() {
                let arrivals = Arrivals::new(planned.clone(), spread, share, seed, None);
                let mut schedule = Schedule::new(arrivals, Tick::EPOCH, Tick::from_ns(end));
                let (mut known, mut taken) = (0, 0);
                let mut now = 0;
                while now < end + step {
                    // A change is known before its time, and heard of before a call that is due then is taken.
                    let heard = changes.iter().take_while(|change| (change.at_ns as u64) <= now + step / 2).count();
                    if heard > known {
                        known = heard;
                        schedule.change(&timetable.with(&changes[..known], 0));
                    }
                    while schedule.due().is_some_and(|due| due <= Tick::from_ns(now)) {
                        let (due, number) = schedule.take().unwrap();
                        prop_assert_eq!(number, share.number(taken).unwrap());
                        taken += 1;
                        due_times.push(due.ns());
                    }
                    counted += schedule.come_due(Tick::from_ns(now));
                    now += step;
                }
                counted += schedule.come_due(Tick::NEVER);
                schedule.drop_overdue(Tick::from_ns(end), |due, calls| due_times.extend(std::iter::repeat_n(due.ns(), calls as usize)));
            }
            prop_assert_eq!(counted, due_times.len() as u64);
            let expected = integral(&planned, &changes, end);
            if poisson {
                prop_assert!((counted as f64 - expected).abs() <= 6.0 * expected.sqrt() + 6.0, "{} of {}", counted, expected);
            } else {
                prop_assert!((counted as f64 - expected.ceil()).abs() <= 1.0, "{} of {}", counted, expected);
            }
            // One machine that knew of all changes from the beginning has the same.
            let profile = timetable.with(&changes, 0);
            let whole = Arrivals::new(profile.clone(), Spread::Uniform, Portion::whole(1).shares().next().unwrap(), seed, None);
            if !poisson {
                due_times.sort_unstable();
                let all: Vec<_> = whole.map(|arrival| arrival.due_ns).take_while(|due| *due < end).collect();
                prop_assert_eq!(due_times, all);
            }
        }
    }
}
