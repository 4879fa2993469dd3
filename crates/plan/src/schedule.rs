//! The calls of the open model on one worker: due ones, made ones, and those that will never be made.

use brunt_record::histogram::bucket_of;
use brunt_record::time::Tick;

use crate::arrivals::{Arrival, Arrivals};
use crate::profile::Profile;

/// Arrivals from a beginning on the run's clock to an end. All times are of that clock.
///
/// A call is *taken* when it is made, in order, and *dropped* when the schedule ends before that. Independently of
/// both, the schedule counts the calls that have *come due*. Once it has ended, these are the calls taken and dropped:
///
/// ```
/// use brunt_plan::arrivals::{Arrivals, Spread};
/// use brunt_plan::profile::Profile;
/// use brunt_plan::schedule::Schedule;
/// use brunt_plan::share::Share;
/// use brunt_record::time::Tick;
///
/// let rate = Profile::constant(10.0)?;
/// let arrivals = Arrivals::new(rate, Spread::Uniform, Share::WHOLE, 0, None);
/// let (begin, end) = (Tick::from_ns(5_000_000_000), Tick::from_ns(6_000_000_000));
/// let mut schedule = Schedule::new(arrivals, begin, end);
///
/// assert_eq!(schedule.due(), Some(begin));
/// assert_eq!(schedule.take(), Some((begin, 0)));
/// assert_eq!(schedule.come_due(begin + 500_000_000), 5);
/// let mut dropped = 0;
/// schedule.drop_overdue(end, |_due, count| dropped += count);
/// assert_eq!((schedule.come_due(end), dropped), (5, 9));
/// # Ok::<(), brunt_plan::profile::ProfileError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Schedule {
    arrivals: Arrivals,
    next: Option<Arrival>,
    begin: Tick,
    end: Tick,
    /// A second copy of the arrivals, which counts due calls independently of what happens to them.
    counter: Arrivals,
    /// How many arrivals the counter has passed.
    passed: u64,
    /// The time up to which it was asked.
    asked: Tick,
    taken: u64,
    /// The last batch that took calls ahead of their time: its due time, and the number of calls taken after it.
    ahead: (Tick, u64),
    /// The number of calls that [`Schedule::come_due`] has reported.
    counted: u64,
    /// Whether calls that were not taken have been dropped.
    is_over: bool,
}

impl Schedule {
    /// Arrivals whose profile begins at `begin`; those due at `end` or later are left out.
    pub fn new(arrivals: Arrivals, begin: Tick, end: Tick) -> Self {
        let counter = arrivals.clone();
        let mut schedule = Self {
            arrivals,
            next: None,
            begin,
            end,
            counter,
            passed: 0,
            asked: Tick::EPOCH,
            taken: 0,
            ahead: (Tick::EPOCH, 0),
            counted: 0,
            is_over: false,
        };
        schedule.advance();
        schedule
    }

    fn advance(&mut self) {
        self.next = self.arrivals.next();
    }

    /// Goes on by this profile from a time that is not over: no call due then or later was taken, unless ahead of its
    /// time. Before that time it equals the profile so far, so that due calls stay due.
    pub fn change(&mut self, profile: &Profile) {
        if self.next.is_some() {
            self.arrivals.give_back();
        }
        self.arrivals.change(profile);
        self.counter.change(profile);
        self.advance();
    }

    /// Due time of the next call that was not taken; `None` after the last.
    #[inline]
    pub fn due(&self) -> Option<Tick> {
        self.next.map(|arrival| self.begin.saturating_add(arrival.due_ns)).filter(|due| *due < self.end)
    }

    /// Takes the next call: its due time and its number.
    #[inline]
    pub fn take(&mut self) -> Option<(Tick, u64)> {
        let due = self.due()?;
        let index = self.next?.index;
        self.advance();
        self.taken += 1;
        Some((due, index))
    }

    /// The number of the next call that was not taken. Those after it have one each, as many apart as there are shares.
    pub fn number(&self) -> Option<u64> {
        self.next.map(|arrival| arrival.index)
    }

    /// How many calls were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes the next call even if it is not due yet, since it is sent together with one that is due at `with`. It is
    /// due then, or at its own time if that is earlier; and it counts as due once it is taken.
    ///
    /// `None` when the schedule has no further call before its end: a batch takes no call that the run does not make.
    pub fn take_ahead(&mut self, with: Tick) -> Option<(Tick, u64)> {
        let (due, index) = self.take()?;
        if due > with {
            self.ahead = (with, self.taken);
        }
        Some((due.min(with), index))
    }

    /// The number of calls that came due since the last time: calls due before `now` (and before the end), and calls
    /// taken ahead of their time by a batch due before `now`. Asked at the end or later, or once the rest was dropped,
    /// it has reported every call that was taken. Its cost does not depend on their number, see [`Arrivals::pass`].
    pub fn come_due(&mut self, now: Tick) -> u64 {
        let until = now.min(self.end);
        self.asked = self.asked.max(until);
        self.passed += self.counter.pass(until.since(self.begin));
        // Calls are taken in order: those ahead of their time are the next to be passed. Calls taken after `now` was
        // over are not reported yet, as the caller may be late.
        let (with, taken_then) = self.ahead;
        let ahead = match now {
            _ if self.is_over || now >= self.end => self.taken,
            _ if with < now => taken_then,
            _ => 0,
        };
        let due = self.passed.max(ahead).max(self.counted);
        let new = due - self.counted;
        self.counted = due;
        new
    }

    /// Ends the schedule at `end`, if that is earlier; but not before a time up to which calls were counted, as
    /// those have come due for good.
    pub fn end_at(&mut self, end: Tick) {
        self.end = self.end.min(end.max(self.asked));
    }

    /// Passes over every call that is due before `until` and was not taken, and gives them to `record` as
    /// [`Schedule::drop_overdue`] does. They count as taken. Later calls can still be taken.
    pub fn skip(&mut self, until: Tick, mut record: impl FnMut(Tick, u64)) {
        while let Some(due) = self.due().filter(|due| *due < until) {
            let shortest_wait = (*bucket_of(until - due).start()).max(1);
            let last = until.before(shortest_wait).min(self.end.before(1));
            self.taken += self.pass_from(due, last, &mut record);
        }
    }

    /// Gives the next call, which is due at `due`, to `record`, and those after it until `last` together; returns their
    /// number.
    fn pass_from(&mut self, due: Tick, last: Tick, record: &mut impl FnMut(Tick, u64)) -> u64 {
        record(due, 1);
        let others = self.arrivals.pass((last + 1).since(self.begin));
        if others > 0 {
            // Evenly spread, they are due at the middle on average.
            record(due + (last - due).div_ceil(2), others);
        }
        self.advance();
        1 + others
    }

    /// Ends the schedule at `end` as [`Schedule::end_at`] does, and drops every earlier call that was not taken.
    ///
    /// `record` gets a due time and the number of calls due at about that time. Calls are grouped only where the times
    /// from due to `end` fall into one bucket of a [`Histogram`](brunt_record::histogram::Histogram), so that each
    /// bucket becomes what it would be call by call. The first call, which waited longest, is recorded by itself,
    /// exactly. A due time is after `end` only where [`Schedule::end_at`] could not end the schedule that early.
    pub fn drop_overdue(&mut self, end: Tick, mut record: impl FnMut(Tick, u64)) {
        self.end_at(end);
        self.is_over = true;
        while let Some(due) = self.due() {
            let shortest_wait = *bucket_of(end.since(due)).start();
            // A call due at the end or later, which stays because it was counted, has not waited at all.
            let last = if due >= end { Tick::NEVER } else { end.before(shortest_wait) };
            let last = last.min(self.end.before(1));
            self.pass_from(due, last, &mut record);
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::histogram::Histogram;
    use proptest::prelude::*;

    use super::*;
    use crate::arrivals::Spread;
    use crate::share::{Portion, Share};

    const SECOND: u64 = 1_000_000_000;

    /// A schedule with all its times in nanoseconds.
    #[derive(Clone)]
    struct Schedule(super::Schedule);

    impl Schedule {
        fn new(arrivals: Arrivals, begin: u64, end: u64) -> Self {
            Self(super::Schedule::new(arrivals, Tick::from_ns(begin), Tick::from_ns(end)))
        }

        fn due(&self) -> Option<u64> {
            self.0.due().map(Tick::ns)
        }

        fn take(&mut self) -> Option<(u64, u64)> {
            self.0.take().map(|(due, index)| (due.ns(), index))
        }

        fn take_ahead(&mut self, with: u64) -> Option<(u64, u64)> {
            self.0.take_ahead(Tick::from_ns(with)).map(|(due, index)| (due.ns(), index))
        }

        fn come_due(&mut self, now: u64) -> u64 {
            self.0.come_due(Tick::from_ns(now))
        }

        fn end_at(&mut self, end: u64) {
            self.0.end_at(Tick::from_ns(end));
        }

        fn skip(&mut self, until: u64, mut record: impl FnMut(u64, u64)) {
            self.0.skip(Tick::from_ns(until), |due, calls| record(due.ns(), calls));
        }

        fn drop_overdue(&mut self, end: u64, mut record: impl FnMut(u64, u64)) {
            self.0.drop_overdue(Tick::from_ns(end), |due, calls| record(due.ns(), calls));
        }
    }

    fn schedule(profile: &str, spread: Spread, begin: u64, end: u64) -> Schedule {
        Schedule::new(Arrivals::new(profile.parse().unwrap(), spread, Share::WHOLE, 3, None), begin, end)
    }

    fn rest(schedule: &mut Schedule) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| schedule.take()).collect()
    }

    #[test]
    fn what_is_counted_as_due_is_what_is_taken() {
        for spread in [Spread::Uniform, Spread::Poisson] {
            let mut schedule = schedule("1000", spread, 500, 2 * SECOND + 500);
            let counted = schedule.come_due(900_000_000) + schedule.come_due(u64::MAX);
            let taken = rest(&mut schedule);
            assert!(taken.iter().all(|(due, _)| (500..2 * SECOND + 500).contains(due)));
            assert!(taken.is_sorted());
            assert_eq!(counted, taken.len() as u64);
            assert!((1800..2200).contains(&counted), "{counted}");
        }
    }

    proptest! {
        /// What is passed over is what was due by then, and what comes after it is as it was.
        #[test]
        fn what_is_skipped_is_neither_lost_nor_taken(
            poisson: bool, taken in 0_u64..400, until in 0..3 * SECOND, begin in 0..SECOND, asks in prop::option::of(0..3 * SECOND),
        ) {
            let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
            let end = begin + 2 * SECOND;
            let all = rest(&mut schedule("200", spread, begin, end));
            let mut skipping = schedule("200", spread, begin, end);
            let mut seen: Vec<_> = (0..taken).map_while(|_| skipping.take()).collect();
            let mut counted = asks.map_or(0, |at| skipping.come_due(at));
            let mut skipped = 0;
            skipping.skip(until, |due, calls| {
                skipped += calls;
                assert!((begin..end.min(until)).contains(&due));
            });
            let (before, after) = (seen.len(), rest(&mut skipping));
            seen.extend(&after);
            counted += skipping.come_due(end);
            prop_assert_eq!(counted, all.len() as u64);
            prop_assert_eq!(seen.len() as u64 + skipped, all.len() as u64);
            prop_assert!(after.iter().all(|(due, _)| *due >= until));
            prop_assert!(seen[before..].iter().eq(&all[all.len() - after.len()..]));
        }
    }

    #[test]
    fn an_earlier_end_leaves_nothing_due_after_it() {
        let mut schedule = schedule("10", Spread::Uniform, 0, u64::MAX);
        schedule.end_at(250_000_000);
        assert_eq!(schedule.come_due(u64::MAX), 3);
        assert_eq!(rest(&mut schedule).len(), 3);
    }

    /// A batch's calls are due together, and not counted a second time when their own time has come.
    #[test]
    fn calls_taken_ahead_are_due_with_their_batch() {
        let mut schedule = schedule("10", Spread::Uniform, 0, SECOND);
        assert_eq!(schedule.take(), Some((0, 0)));
        assert_eq!(schedule.take_ahead(0), Some((0, 1)));
        assert_eq!(schedule.take_ahead(0), Some((0, 2)));
        assert_eq!(schedule.come_due(1), 3);
        assert_eq!(schedule.come_due(250_000_000), 0);
        assert_eq!(schedule.come_due(350_000_000), 1);
        // One that is late keeps its own time.
        assert_eq!(schedule.take_ahead(SECOND), Some((300_000_000, 3)));
        assert_eq!(schedule.come_due(SECOND), 6);
    }

    /// A second is closed late, by a worker that has made calls of the next one meanwhile.
    #[test]
    fn calls_count_in_the_second_in_which_they_are_due() {
        let mut schedule = schedule("10", Spread::Uniform, 0, 3 * SECOND);
        for _ in 0..15 {
            schedule.take();
        }
        assert_eq!(schedule.come_due(SECOND), 10);
        schedule.take_ahead(1_450_000_000);
        assert_eq!(schedule.come_due(1_400_000_000), 4);
        assert_eq!(schedule.come_due(1_460_000_000), 2);
        assert_eq!(schedule.come_due(3 * SECOND), 14);
    }

    #[test]
    fn a_batch_takes_nothing_beyond_the_end() {
        let mut schedule = schedule("10", Spread::Uniform, 0, 150_000_000);
        assert_eq!(schedule.take(), Some((0, 0)));
        assert_eq!(schedule.take_ahead(0), Some((0, 1)));
        assert_eq!(schedule.take_ahead(0), None);
    }

    #[test]
    fn an_end_before_what_was_counted_drops_that_as_well() {
        let mut schedule = schedule("10", Spread::Uniform, 0, SECOND);
        assert_eq!(schedule.come_due(550_000_000), 6);
        let mut dropped = 0;
        schedule.drop_overdue(300_000_000, |_, count| dropped += count);
        assert_eq!((dropped, schedule.come_due(SECOND), schedule.due()), (6, 0, None));
    }

    /// 100 million calls, which a walk through them would need seconds for, come in some thousands of groups.
    #[test]
    fn a_backlog_is_dropped_in_groups() {
        for spread in [Spread::Uniform, Spread::Poisson] {
            let mut schedule = schedule("10M", spread, 0, 10 * SECOND);
            let (mut groups, mut calls) = (0, 0);
            schedule.drop_overdue(10 * SECOND, |_, count| {
                groups += 1;
                calls += count;
            });
            assert!((99_900_000..100_100_000).contains(&calls), "{spread:?}: {calls}");
            assert!(groups < 60_000, "{spread:?}: {groups}");
            assert_eq!(schedule.come_due(10 * SECOND), calls);
        }
    }

    fn histogram(waits: impl IntoIterator<Item = (u64, u64)>) -> Histogram {
        let mut histogram = Histogram::new();
        waits.into_iter().for_each(|(wait, count)| histogram.record_n(wait, count));
        histogram
    }

    proptest! {
        /// Any interleaving of asking and taking conserves calls: each that came due is taken or dropped.
        #[test]
        fn the_sum_closes(
            from in 0_u32..4000, to in 1_u32..4000, poisson: bool, shares in 1_u32..5, seed: u64, begin in 0_u64..SECOND,
            requests in prop::option::of(1_u64..2000),
            deeds in prop::collection::vec((0_u8..4, 0_u64..400_000_000, 0_u64..40), 0..20),
            end in 0_u64..4 * SECOND,
        ) {
            let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
            let profile: Profile = format!("{from}..{to}/1s,0/500ms,{to}/1s").parse().unwrap();
            for share in Portion::whole(shares).shares() {
                let arrivals = Arrivals::new(profile.clone(), spread, share, seed, requests);
                let mut schedule = Schedule::new(arrivals, begin, begin + 3 * SECOND);
                let (mut now, mut due, mut taken, mut dropped) = (begin, 0, 0, 0);
                for &(deed, pause, times) in &deeds {
                    now += pause;
                    match deed {
                        0 => due += schedule.come_due(now),
                        1 => {
                            while schedule.due().is_some_and(|due| due <= now) && schedule.take().is_some() {
                                taken += 1;
                            }
                        }
                        2 => (0..times).for_each(|_| taken += u64::from(schedule.take_ahead(now).is_some())),
                        _ => schedule.end_at(now + 1000 * times),
                    }
                }
                schedule.drop_overdue(end, |_, count| dropped += count);
                prop_assert_eq!(schedule.due(), None);
                due += schedule.come_due(end);
                prop_assert_eq!(due, taken + dropped);
                prop_assert_eq!(schedule.come_due(u64::MAX), 0);
            }
        }

        /// Groups make the histogram that calls one by one make.
        #[test]
        fn dropping_in_groups_is_dropping_one_by_one(
            from in 0_u32..200_000, to in 1_u32..200_000, poisson: bool, seed: u64, begin in 0_u64..SECOND, taken in 0_usize..2000,
            end in 0_u64..3 * SECOND, later in 0_u64..SECOND,
        ) {
            let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
            let profile: Profile = format!("{from}..{to}/300ms,0/1s,{to}/200ms").parse().unwrap();
            let arrivals = Arrivals::new(profile, spread, Share::WHOLE, seed, None);
            // An end of the schedule's own may come before the time that waits are counted to.
            let mut schedule = Schedule::new(arrivals, begin, (begin + end).saturating_sub(later));
            for _ in 0..taken {
                schedule.take();
            }
            let end = begin + end;
            let overdue = {
                let mut schedule = schedule.clone();
                schedule.end_at(end);
                rest(&mut schedule)
            };
            let one_by_one = histogram(overdue.iter().map(|(due, _)| (end - due, 1)));
            let mut grouped = Histogram::new();
            schedule.drop_overdue(end, |due, count| grouped.record_n(end - due, count));
            prop_assert!(grouped.values().eq(one_by_one.values()));
            prop_assert_eq!(grouped.max(), one_by_one.max());
            let (mean, expected) = (grouped.mean().unwrap_or(0.0), one_by_one.mean().unwrap_or(0.0));
            prop_assert!((mean - expected).abs() <= expected / 1024.0, "{} for {}", mean, expected);
        }
    }
}
