//! The log in which a worker records calls by when they were due.

use super::{DuePoint, TICK_NS, Ticks, Timeline};
use crate::histogram::Histogram;
use crate::time::Tick;

/// The most points, besides the current one, that a [`DueLog`] holds live.
const MOST_LIVE: usize = 64;
/// The most empty points that it keeps.
const MOST_SPARE: usize = 4;

/// The log in which a worker records calls by when they were due. Times are nanoseconds on its run's clock.
#[derive(Debug, Default)]
pub struct DueLog {
    /// When the measured part began.
    begin: Tick,
    /// The point of the last call, with its tick.
    current: (u64, DuePoint<Histogram>),
    /// The others since the last [`DueLog::take`].
    others: Vec<(u64, DuePoint<Histogram>)>,
    /// Empty points, whose memory is used again.
    spare: Vec<DuePoint<Histogram>>,
    completed: Ticks,
    /// The tick of the last completion.
    marked: Option<u64>,
    /// Points that did not fit into `others`.
    packed: Timeline,
}

impl DueLog {
    /// A log of a measured part that began at `begin`.
    pub fn beginning_at(begin: Tick) -> Self {
        Self { begin, ..Self::default() }
    }

    /// A time, counted from the beginning of the measured part.
    pub const fn since_beginning(&self, at: Tick) -> u64 {
        at.since(self.begin)
    }

    /// The beginning and the end of the tick around `at`.
    #[inline]
    pub const fn tick_around(&self, at: Tick) -> (Tick, Tick) {
        let begins = self.begin.saturating_add(self.tick_of(at) * TICK_NS);
        (begins, begins.saturating_add(TICK_NS))
    }

    #[inline]
    const fn tick_of(&self, at: Tick) -> u64 {
        at.since(self.begin) / TICK_NS
    }

    /// The point of calls due at `due`.
    #[inline]
    fn point(&mut self, due: Tick) -> &mut DuePoint<Histogram> {
        let tick = self.tick_of(due);
        if self.current.0 != tick {
            self.switch_to(tick);
        }
        &mut self.current.1
    }

    /// Makes the point of a tick the current one.
    #[cold]
    fn switch_to(&mut self, tick: u64) {
        if let Some(place) = self.others.iter_mut().find(|(of, _)| *of == tick) {
            return std::mem::swap(&mut self.current, place);
        }
        if self.others.len() >= MOST_LIVE {
            self.pack();
        }
        let fresh = (tick, self.spare.pop().unwrap_or_default());
        self.others.push(std::mem::replace(&mut self.current, fresh));
    }

    /// A call due at `due` has succeeded, after `response_ns`.
    #[inline]
    pub fn answered(&mut self, due: Tick, response_ns: u64) {
        let point = self.point(due);
        point.ok += 1;
        point.response.record(response_ns);
    }

    /// Calls due in the tick of `due` have succeeded, after these times.
    pub fn answered_all(&mut self, due: Tick, responses: &Histogram) {
        let point = self.point(due);
        point.ok += responses.count();
        point.response.merge(responses);
    }

    /// A call was answered, and is not a success.
    pub fn refused(&mut self, due: Tick, response_ns: u64) {
        let point = self.point(due);
        point.refused += 1;
        point.failing.record(response_ns);
    }

    /// A call has failed; `is_unreached` if it had no connection, or lost it.
    pub fn failed(&mut self, due: Tick, response_ns: u64, is_unreached: bool) {
        let point = self.point(due);
        *(if is_unreached { &mut point.unreached } else { &mut point.failed }) += 1;
        point.failing.record(response_ns);
    }

    /// This many calls have not ended after `bound_ns`.
    pub fn unfinished(&mut self, due: Tick, bound_ns: u64, calls: u64) {
        let point = self.point(due);
        point.unfinished += calls;
        point.bounds.record_n(bound_ns, calls);
    }

    /// This many calls were never sent, and had waited for `bound_ns`.
    pub fn unsent(&mut self, due: Tick, bound_ns: u64, calls: u64) {
        let point = self.point(due);
        point.unsent += calls;
        point.bounds.record_n(bound_ns, calls);
    }

    /// This many calls say nothing about the target: their agent was lost, or held them back.
    pub fn exclude(&mut self, due: Tick, calls: u64) {
        self.point(due).untold += calls;
    }

    /// A call completed at `at`: answered, or failed by the target's doing.
    #[inline]
    pub fn completed(&mut self, at: Tick) {
        let tick = self.tick_of(at);
        if self.marked != Some(tick) {
            self.marked = Some(tick);
            self.completed.mark(tick);
        }
    }

    fn pack(&mut self) {
        let current = std::mem::take(&mut self.current);
        for (tick, mut point) in self.others.drain(..).chain([current]) {
            if point.due() > 0 {
                let one = Timeline { points: [(tick, point.pack())].into(), ..Timeline::default() };
                self.packed.merge(&one);
                point.clear();
            }
            if self.spare.len() < MOST_SPARE {
                self.spare.push(point);
            }
        }
    }

    /// Returns everything recorded since the last time.
    pub fn take(&mut self) -> Timeline {
        self.pack();
        self.marked = None;
        let completed = std::mem::take(&mut self.completed);
        Timeline { completed, ..std::mem::take(&mut self.packed) }
    }
}
