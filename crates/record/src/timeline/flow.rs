//! Calls by when they ended, and the number under way, at the width of a timeline's points.

use super::{DuePoint, Timeline};
use crate::packed::Packed;

/// Calls that became due, ended, and were under way in one stretch.
///
/// Counts are not whole numbers, since the exact due times within a point are not recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FlowPoint {
    /// Calls that became due.
    pub due: f64,
    /// Calls that ended well.
    pub ok: f64,
    /// Calls that were answered without success, or failed.
    pub not_ok: f64,
    /// Calls that were due and had neither ended nor been given up at its end.
    pub waiting: f64,
}

impl FlowPoint {
    /// Adds the stretch that follows.
    pub fn extend(&mut self, next: &Self) {
        self.due += next.due;
        self.ok += next.ok;
        self.not_ok += next.not_ok;
        self.waiting = next.waiting;
    }
}

/// How response times develop within one point, from the first call due in it to the last.
#[derive(Clone, Copy, PartialEq)]
enum Trend {
    /// In no order.
    None,
    /// The later, the longer: a queue grows.
    Rising,
    /// The later, the shorter: the calls waited for the same moment.
    Falling,
}

impl Timeline {
    /// Calls by when they ended, for the stretches that begin before `until_ns`: a call ended its response time after
    /// it was due. `None` where times were left out.
    ///
    /// How many ended with success is counted: `ended_ok` has that by second, as from, to and calls. Calls that began in the
    /// warm-up are among them, and share the second with the others.
    pub fn flow(&self, until_ns: u64, ended_ok: impl IntoIterator<Item = (u64, u64, u64)>) -> Option<Vec<FlowPoint>> {
        let stretches = usize::try_from(until_ns.div_ceil(self.width_ns)).ok()?;
        let mut flow = vec![FlowPoint::default(); stretches];
        let mut given_up = vec![0.0; stretches];
        for (place, point) in &self.points {
            if point.response.count() != point.ok {
                return None;
            }
            let at = usize::try_from(*place).unwrap_or(usize::MAX);
            let Some(stretch) = flow.get_mut(at) else { continue };
            stretch.due += point.due() as f64;
            // These calls wait for nothing.
            given_up.get_mut(at).into_iter().for_each(|calls| *calls += point.untold as f64);
            let begins = *place as f64;
            let mut add = |at: usize, calls: f64| flow.get_mut(at).into_iter().for_each(|stretch| stretch.ok += calls);
            self.spread(begins, &point.response, self.trend(*place), &mut add);
            let mut add =
                |at: usize, calls: f64| flow.get_mut(at).into_iter().for_each(|stretch| stretch.not_ok += calls);
            self.spread(begins, &point.failing, Trend::None, &mut add);
            let unsent = share_of_unsent(point);
            let mut add = |at: usize, calls: f64| given_up.get_mut(at).into_iter().for_each(|n| *n += calls * unsent);
            self.spread(begins, &point.bounds, Trend::None, &mut add);
        }
        let mut waiting = 0.0;
        for (stretch, given_up) in flow.iter_mut().zip(given_up) {
            waiting += stretch.due - stretch.ok - stretch.not_ok - given_up;
            stretch.waiting = f64::max(waiting, 0.0);
        }
        for (from, to, calls) in ended_ok {
            let place = |ns: u64| usize::try_from(ns.div_ceil(self.width_ns)).unwrap_or(usize::MAX).min(stretches);
            let within = flow.get_mut(place(from)..place(to)).unwrap_or_default();
            let (estimated, of) = (within.iter().map(|stretch| stretch.ok).sum::<f64>(), within.len() as f64);
            for stretch in within {
                let share = if estimated > 0.0 { stretch.ok / estimated } else { 1.0 / of };
                stretch.ok = calls as f64 * share;
            }
        }
        Some(flow)
    }

    /// How response times develop within a point, judged by its neighbours: they follow a trend where the median moves
    /// from point to point by more than half of the distance between the point's own shorter and longer times.
    fn trend(&self, place: u64) -> Trend {
        let quantile = |place: Option<u64>, share: f64| {
            Some(self.points.get(&place?).filter(|point| point.ok > 0)?.response.quantile(share)? as f64)
        };
        let own = |share: f64| quantile(Some(place), share).unwrap_or(0.0);
        let before = quantile(place.checked_sub(1), 0.5).unwrap_or_else(|| own(0.5));
        let after = quantile(place.checked_add(1), 0.5).unwrap_or_else(|| own(0.5));
        match (after - before, own(0.9) - own(0.1)) {
            (moved, spread) if spread > 0.0 && moved >= spread => Trend::Rising,
            (moved, spread) if spread > 0.0 && -moved >= spread => Trend::Falling,
            _ => Trend::None,
        }
    }

    /// Adds calls of a point in the stretches in which they ended.
    fn spread(&self, begins: f64, times: &Packed, trend: Trend, add: &mut impl FnMut(usize, f64)) {
        let all = times.count().max(1) as f64;
        let mut shorter = 0.0;
        for (took_ns, calls) in times.values() {
            let calls = calls as f64;
            // Where in their point these calls were due, as shares of its width.
            let (from, to) = match trend {
                Trend::None => (0.0, 1.0),
                Trend::Rising => (shorter / all, (shorter + calls) / all),
                Trend::Falling => (1.0 - (shorter + calls) / all, 1.0 - shorter / all),
            };
            shorter += calls;
            let ended = begins + took_ns as f64 / self.width_ns as f64;
            let (from, to) = (ended + from, ended + to);
            let (first, last) = (from.floor(), to.floor());
            for at in 0..=(last - first) as usize {
                let stretch = first + at as f64;
                let shared = (to.min(stretch + 1.0) - from.max(stretch)) / (to - from);
                add(stretch as usize, calls * shared);
            }
        }
    }
}

/// The share of a point's bounds that are of calls that were never sent. The others are of calls that had not ended when the run did.
fn share_of_unsent(point: &DuePoint) -> f64 {
    let bounds = point.unsent + point.unfinished;
    if bounds == 0 { 0.0 } else { point.unsent as f64 / bounds as f64 }
}
