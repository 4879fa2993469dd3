//! Rate limits: the target lets a number of calls through, and turns the others away.
//!
//! The search goes through windows of whole seconds, as long as it takes to let 50 calls through. A limit lets the same
//! number through in each window; with failures by chance that number varies.

use crate::advice::{Advice, CallRate};
use std::ops::Range;

use brunt_plan::units::{Clock, count};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Timing;
use brunt_record::recording::Recording;
use brunt_record::timeline::Timeline;

use super::{About, Remark};
use crate::statistics::probability_of_less;

/// The fewest windows that show a limit of the rate, and the fewest calls that each has to let through.
const LIMITED: (usize, u64) = (3, 50);
/// How far the rate let through may vary, as a share of it, and the largest share of the due calls that it may be.
const STEADY: (f64, f64) = (0.1, 0.9);
/// The probability with which chance may be as steady.
const STEADIER: f64 = 0.02;

/// Windows for finding a rate limit, from the first refused call to the last, each of as many whole seconds as it takes
/// to let enough calls through.
struct Windows {
    from: u64,
    width: u64,
    /// Calls by when they were due: ok ones, refused ones, all.
    calls: Vec<(u64, u64, u64)>,
}

/// The shortest window, in nanoseconds: about a second, in whole points.
fn unit(timeline: &Timeline) -> u64 {
    timeline.width_ns() * SECOND_NS.div_ceil(timeline.width_ns())
}

impl Windows {
    fn new(timeline: &Timeline, measured_ns: u64) -> Option<Self> {
        let refused = || timeline.points().filter(|(_, point)| point.refused > 0).map(|(start, _)| start);
        let unit = unit(timeline);
        let from = refused().min()? / unit * unit;
        let to = (refused().max()? + timeline.width_ns()).min(measured_ns);
        let let_through: u64 =
            timeline.points().filter(|(start, _)| (from..to).contains(start)).map(|(_, point)| point.ok).sum();
        // A fifth more, so that no window falls short by chance.
        let enough = LIMITED.1 as f64 * 1.2 * to.saturating_sub(from) as f64 / let_through.max(1) as f64;
        let width = (enough as u64).max(1).next_multiple_of(unit);
        Some(Self::of_width(timeline, from..measured_ns, width))
    }

    /// Windows of this width, in nanoseconds; a rest at the end is left out.
    fn of_width(timeline: &Timeline, within: Range<u64>, width: u64) -> Self {
        let from = within.start;
        let mut calls = vec![(0, 0, 0); usize::try_from(within.end.saturating_sub(from) / width).unwrap_or(0)];
        for (start, point) in timeline.points().filter(|(start, _)| *start >= from) {
            if let Some((ok, refused, due)) = calls.get_mut(((start - from) / width) as usize) {
                *ok += point.ok;
                *refused += point.refused;
                *due += point.due();
            }
        }
        Self { from, width, calls }
    }

    /// The mean number of ok calls, and its standard deviation.
    fn spread(&self) -> (f64, f64) {
        let of = self.calls.len().max(1) as f64;
        let mean = self.calls.iter().map(|window| window.0).sum::<u64>() as f64 / of;
        let squares: f64 = self.calls.iter().map(|window| (window.0 as f64 - mean).powi(2)).sum();
        (mean, (squares / of).sqrt())
    }

    /// The probability of numbers of ok calls as even as these, if each call failed by chance.
    fn by_chance(&self) -> f64 {
        let (ok, refused) = self.calls.iter().fold((0, 0), |(ok, refused), window| (ok + window.0, refused + window.1));
        let (mean, deviation) = self.spread();
        let variance = mean * refused as f64 / (ok + refused).max(1) as f64;
        let of = self.calls.len() as f64;
        probability_of_less(of * deviation.powi(2) / variance, of - 1.0)
    }
}

/// A target that lets a steady rate through and turns the rest away at once.
pub(super) fn rate_limit(run: &Recording, timeline: &Timeline) -> Option<Remark> {
    let windows = Windows::new(timeline, run.measured_ns)?;
    let is_limited = |(ok, refused, due): &(u64, u64, u64)| {
        *ok >= LIMITED.1 && *refused > 0 && (*ok as f64) < STEADY.1 * *due as f64
    };
    let first = windows.calls.iter().position(is_limited)?;
    let last = windows.calls.iter().rposition(is_limited)?;
    // All of them are adjacent.
    if last - first + 1 < LIMITED.0 || !windows.calls.get(first..=last)?.iter().all(is_limited) {
        return None;
    }
    // Windows before them have refused calls, too, and let the same number through.
    let to = windows.from + (last as u64 + 1) * windows.width;
    let alike = Windows::of_width(timeline, windows.from..to, windows.width);
    // A limit is even over its own period, which may be a second or a minute.
    let fine = Windows::of_width(timeline, windows.from..to, unit(timeline));
    let is_by_chance = alike.by_chance().min(fine.by_chance()) > STEADIER;
    let (mean, deviation) = alike.spread();
    // A rest that is shorter than a window goes on as they did.
    let to = if last + 1 == windows.calls.len() { run.measured_ns } else { to };
    let refused_within = |within: &Range<u64>| {
        timeline.points().filter(|(start, _)| within.contains(start)).map(|(_, point)| point.refused).sum::<u64>()
    };
    let refused = refused_within(&(windows.from..to));
    // Fast as refusals are, or the target is slow and not limited.
    let times = |timing| run.measured.times.known(timing).quantile(0.5);
    let are_fast = times(Timing::Refused) <= times(Timing::Response).max(Some(1_000_000));
    if deviation > STEADY.0 * mean || is_by_chance || !are_fast {
        return None;
    }
    let statuses = run.measured.statuses.sorted();
    let most = statuses.iter().filter(|(status, _)| *status >= 400).max_by_key(|(_, n)| *n).map(|(status, _)| *status);
    let by = most.map_or_else(String::new, |status| format!(" with {status}"));
    // Others were refused before or after: their number is no contradiction to that of all.
    let is_all = refused == refused_within(&(0..u64::MAX));
    let when = if is_all { String::new() } else { format!(" from {} to {}", Clock(windows.from), Clock(to)) };
    let rate = mean * SECOND_NS as f64 / windows.width as f64;
    // The fewest digits that show two of them.
    let rate = CallRate(rate);
    Some(Remark {
        from_ns: Some(windows.from),
        to_ns: Some(to),
        calls: Some(refused),
        advice: Some(Advice::AskForLess { rate }),
        ..Remark::new(
            About::RateLimit,
            format!("the target let {rate} calls/s through{when} and refused {} others{by}", count(refused)),
        )
    })
}
