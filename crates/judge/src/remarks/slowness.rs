//! Stretches in which the target answered slowly.
//!
//! Calls are grouped by when they were due, in bins of neighbouring points. A slow bin has a median far above the usual
//! one or, where none has, a 90th percentile: then only a part of the calls was slow, such as those of one server of
//! several. A stretch of slow bins is named if chance would not produce it: calls above a limit are counted in it and
//! in the rest of the run, and the two shares are compared (the two-proportion z-test). It has to begin with a step: a
//! latency that climbs over the run is a trend, which the verdict names.

use brunt_plan::units::{Clock, Duration, counted};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::recording::Recording;
use brunt_record::snapshot::Snapshot;
use brunt_record::timeline::{DuePoint, TICK_NS};

use super::stretch::Stretch;
use super::{About, Remark};

#[cfg(test)]
mod tests;

/// The criterion for comparing bins: a quantile, its name, and the fewest calls of a bin.
#[derive(Debug, Clone, Copy)]
struct By {
    quantile: f64,
    name: &'static str,
    fewest: u64,
}

const MEDIAN: By = By { quantile: 0.5, name: "median", fewest: 20 };
const P90: By = By { quantile: 0.9, name: "p90", fewest: 60 };
/// The fewest bins of a run in which slow ones are looked for.
const FEWEST_BINS: usize = 5;
/// The quantile of the bins' medians that counts as usual: up to three quarters of a run may be slow.
const USUAL: f64 = 0.25;
/// A slow median's least ratio to the usual one, and its least excess over it, in nanoseconds.
const SLOW: (f64, u64) = (2.0, 5_000_000);
/// The largest ratio of a calm bin's median to the usual one; bins before a slow stretch have to be calm.
const CALM: f64 = 1.6;
/// Bins before a stretch that are examined for its step.
const BEFORE: usize = 3;
/// Standard deviations by which the shares of slow calls differ, within a stretch and in the rest.
const SURELY: f64 = 6.0;
/// The most stretches of a run: with more, the target's times vary by nature.
const MOST: usize = 3;
/// The share of a call's time that a delay of brunt's own may have.
const OWN: u64 = 4;

/// A stretch in which calls took long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slowness {
    pub(super) stretch: Stretch,
    /// Whether the target was slow when the run ended.
    goes_on: bool,
    /// Calls due in it that took long.
    calls: u64,
    /// Their share of all calls due in it.
    share: f64,
    /// The criterion by which they differ.
    by: By,
    /// That quantile for the calls in it, and for the others, in nanoseconds.
    median_ns: u64,
    usual_ns: u64,
    /// The longest time of a call due in it, in nanoseconds.
    worst_ns: u64,
}

impl Slowness {
    /// Whether it explains a silence: calls that all take longer than before leave a gap of the same length.
    pub(super) fn explains(&self, silence: Stretch) -> bool {
        let gap = self.median_ns + self.median_ns / 2 + TICK_NS;
        self.stretch.overlaps(silence) && silence.length() <= gap && self.stretch.length() >= 2 * silence.length()
    }

    pub(super) fn remark(self) -> Remark {
        let Self { stretch, goes_on, calls, share, by, median_ns, usual_ns, worst_ns } = self;
        let until = if goes_on { "on".to_owned() } else { format!("to {}", Clock(stretch.to)) };
        Remark {
            from_ns: Some(stretch.from),
            to_ns: Some(stretch.to),
            calls: Some(calls),
            worst_ns: Some(worst_ns),
            share_ratio: Some(share),
            ..Remark::new(
                About::Slowness,
                format!(
                    "the target was slow from {} {until}: {} took a {} of {}, the others {}",
                    Clock(stretch.from),
                    counted(calls, "call"),
                    by.name,
                    Duration(median_ns),
                    Duration(usual_ns)
                ),
            )
        }
    }
}

/// Neighbouring points with enough calls to have a median.
struct Bin {
    stretch: Stretch,
    calls: DuePoint,
    median_ns: u64,
}

/// The stretches of a run in which the target was slow. `total` counts every call, those of the drain included.
pub(super) fn stretches(run: &Recording, total: &Snapshot) -> Vec<Slowness> {
    let of_half = stretches_by(MEDIAN, run, total);
    if of_half.is_empty() { stretches_by(P90, run, total) } else { of_half }
}

fn stretches_by(by: By, run: &Recording, total: &Snapshot) -> Vec<Slowness> {
    let bins = bins(by, total);
    let mut medians: Vec<_> = bins.iter().map(|bin| bin.median_ns).collect();
    medians.sort_unstable();
    let Some(&usual) = medians.get((medians.len() as f64 * USUAL) as usize).filter(|_| bins.len() >= FEWEST_BINS)
    else {
        return Vec::new();
    };
    let limit = ((usual as f64 * SLOW.0) as u64).max(usual + SLOW.1);
    let groups = groups(&bins, |bin| bin.median_ns >= limit);
    if groups.len() > MOST {
        return Vec::new();
    }
    // What grows from bin to bin is a drift, wherever it passes the limit.
    let rises_at_once = |from: usize| {
        let median = |place: usize| bins.get(place).map(|bin| bin.median_ns as f64);
        let jump = |from: usize, to: usize| median(to).zip(median(from)).is_some_and(|(to, from)| to >= CALM * from);
        from.checked_sub(1).is_some_and(|before| jump(before, from))
    };
    let is_step = |from: usize| {
        let mut before: Vec<_> = bins.iter().take(from).rev().take(BEFORE).map(|bin| bin.median_ns).collect();
        before.sort_unstable();
        before.get(before.len() / 2).is_some_and(|median| (*median as f64) < CALM * usual as f64)
    };
    let is_slow = |bin: usize| groups.iter().any(|(from, to)| (*from..*to).contains(&bin));
    let mut calm = DuePoint::default();
    bins.iter().enumerate().filter(|(place, _)| !is_slow(*place)).for_each(|(_, bin)| calm.merge(&bin.calls));
    let Some(usual_ns) = quantile_of(by, &calm) else { return Vec::new() };
    let found = groups.iter().filter(|(from, _)| is_step(*from) && rises_at_once(*from)).filter_map(|&(from, to)| {
        let of = bins.get(from..to)?;
        let mut calls = DuePoint::default();
        for bin in of {
            calls.merge(&bin.calls);
        }
        let (slow, others) = (calls.count_from(limit), calm.count_from(limit));
        if names_explain(by, total, limit, slow) {
            return None;
        }
        let surely = z_score((slow, calls.due()), (others, calm.due())) >= SURELY;
        let stretch = Stretch { from: of.first()?.stretch.from, to: of.last()?.stretch.to };
        let median_ns = quantile_of(by, &calls)?;
        (surely && !is_own(run, stretch, median_ns)).then(|| Slowness {
            stretch,
            goes_on: to == bins.len(),
            calls: calls.due(),
            share: slow as f64 / calls.due().max(1) as f64,
            by,
            median_ns,
            usual_ns,
            worst_ns: calls.longest_ns(),
        })
    });
    found.collect()
}

fn bins(by: By, total: &Snapshot) -> Vec<Bin> {
    let timeline = &total.timeline;
    let mut bins: Vec<Bin> = Vec::new();
    let (mut calls, mut from) = (DuePoint::default(), None);
    for (start, point) in timeline.points() {
        calls.merge(point);
        let begin = *from.get_or_insert(start);
        if calls.due() < by.fewest {
            continue;
        }
        from = None;
        let calls = std::mem::take(&mut calls);
        // A stretch in which most calls failed is not slow.
        if let Some(median_ns) = quantile_of(by, &calls) {
            bins.push(Bin { stretch: Stretch { from: begin, to: start + timeline.width_ns() }, calls, median_ns });
        }
    }
    bins
}

/// Whether users may be making a request in this stretch that always takes long: they move together from one request to
/// the next.
fn names_explain(by: By, total: &Snapshot, limit: u64, slow: u64) -> bool {
    let requests = &total.figures.requests;
    let always_slow = requests
        .iter()
        .filter(|(_, calls)| calls.response_times().quantile(by.quantile).is_some_and(|median| median.value >= limit));
    requests.iter().count() > 1
        && always_slow.map(|(_, calls)| calls.numbers.get(Counter::Due)).sum::<u64>() >= slow / 2
}

/// The quantile of the response times, with failed calls as calls that would have taken longer.
fn quantile_of(by: By, calls: &DuePoint) -> Option<u64> {
    calls.response_times().quantile(by.quantile).filter(|median| !median.at_least).map(|median| median.value)
}

/// Neighbouring bins of one kind, as ranges; a single bin of the other kind between two does not separate them.
fn groups(bins: &[Bin], is: impl Fn(&Bin) -> bool) -> Vec<(usize, usize)> {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for place in bins.iter().enumerate().filter(|(_, bin)| is(bin)).map(|(place, _)| place) {
        match groups.last_mut().filter(|(_, to)| *to + 1 >= place) {
            Some((_, to)) => *to = place + 1,
            None => groups.push((place, place + 1)),
        }
    }
    groups
}

/// The difference of two shares in standard deviations, the first being the larger.
fn z_score(one: (u64, u64), other: (u64, u64)) -> f64 {
    let share = |(hit, all): (u64, u64)| hit as f64 / all.max(1) as f64;
    // One more of each, so that an empty share has a deviation, too.
    let pooled = share((one.0 + other.0 + 1, one.1 + other.1 + 2));
    let deviation = (pooled * (1.0 - pooled) * (1.0 / one.1.max(1) as f64 + 1.0 / other.1.max(1) as f64)).sqrt();
    (share(one) - share(other)) / deviation
}

/// Whether brunt itself may have made calls of a stretch slow: it had no CPU, or sent late.
fn is_own(run: &Recording, stretch: Stretch, median_ns: u64) -> bool {
    let points = run.series.points().iter();
    let mut within =
        points.filter(|point| stretch.overlaps(Stretch { from: point.start_ns, to: point.start_ns + point.length_ns }));
    within.any(|point| {
        let starved = point.numbers.ratio(Counter::MostStarvedWorker) * point.length_ns.min(SECOND_NS) as f64;
        starved >= (point.length_ns / OWN) as f64 || point.lag.quantile(0.5).unwrap_or(0) >= median_ns / OWN
    })
}
