//! Stretches of a run in which the target behaved differently: outages, freezes, overload, a limit of its rate,
//! slowness.
//!
//! All of them are found in the [`Timeline`], which has calls by when they were due, and in the counts of seconds. A
//! stretch that one kind explains is taken out before the next kind is searched for.

use crate::advice::Advice;
use crate::statistics::Estimate;
use brunt_plan::plan::Plan;
use brunt_plan::units::{Clock, count, counted};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::recording::Recording;
use brunt_record::series::Point;
use brunt_record::snapshot::Snapshot;
use brunt_record::timeline::{DuePoint, TICK_NS, Timeline};

use super::stretch::Stretch;
use super::{About, Remark, limits, slowness};

#[cfg(test)]
pub(super) mod tests;

/// The fewest calls that a stretch has to hit.
const FEWEST_CALLS: u64 = 5;
/// The share of calls due in an outage that find no target.
const OUT: f64 = 0.9;
/// A silence is a freeze if it lasts this many times the median response time.
const FREEZE: u64 = 4;
/// With few calls in flight, a silence is a freeze if it lasts this many times the 99th percentile of the other calls.
const FREEZE_OF_FEW: u64 = 10;
/// A silence is a freeze if calls wait for at least one part in this many of it.
const HELD_UP: u64 = 2;
/// The fewest evenly spaced pauses that are named as one finding.
const FEWEST_PAUSES: usize = 3;
/// How far lengths and distances of pauses may differ, as a share.
const ALIKE: f64 = 0.25;
/// The most stretches of one kind that are named.
const MOST_NAMED: usize = 3;
/// How long calls may go on failing at a drop, unless all of them were under way: if it is longer, they fail all along.
const DROP_NS: u64 = SECOND_NS;
/// The most drops, as a share of the points with calls: with more, connections are lost all along.
const DROPS: f64 = 0.25;
/// How long a target has to fall behind for an overload, in nanoseconds.
const BEHIND_NS: u64 = 3 * SECOND_NS;
/// The share of the due rate by which the calls that wait have to grow.
const GROWTH: f64 = 0.05;
/// The fewest calls that wait at the end of an overload, and their least ratio to those that waited before it.
const WAITING: (u64, u64) = (20, 10);

/// Finds the episodes of a run. `total` counts every call, those of the drain included.
pub(super) fn all(plan: &Plan, run: &Recording, total: &Snapshot) -> Vec<Remark> {
    let timeline = &total.timeline;
    let outages = outages(timeline);
    let drops = drops(timeline, &outages);
    let slow = slowness::stretches(run, total);
    let mut found: Vec<Remark> =
        outages.iter().take(MOST_NAMED).map(|outage| outage_remark(*outage, timeline, run)).collect();
    let freezes: Vec<_> = freezes(plan, run, total)
        .into_iter()
        .filter(|freeze| !outages.iter().any(|outage| outage.overlaps(freeze.stretch)))
        .filter(|freeze| !slow.iter().any(|slow| slow.explains(freeze.stretch)))
        .filter(|freeze| !drops.iter().any(|(drop, _)| explains(*drop, freeze.stretch)))
        .collect();
    found.extend(freeze_remarks(&freezes, timeline));
    found.extend(drop_remarks(&drops, run));
    let mut explained: Vec<_> = outages.into_iter().chain(freezes.iter().map(|freeze| freeze.stretch)).collect();
    found.extend(limits::rate_limit(run, timeline));
    let overload = overload(plan, run, &explained);
    explained.extend(overload.as_ref().and_then(|remark| Some(Stretch { from: remark.from_ns?, to: remark.to_ns? })));
    found.extend(overload);
    let is_new = |slow: &slowness::Slowness| !explained.iter().any(|other| other.overlaps(slow.stretch));
    found.extend(slow.into_iter().filter(is_new).map(slowness::Slowness::remark));
    found
}

/// A length of time, such as `2.0s` or `250ms`.
fn length(ns: u64) -> String {
    if ns >= SECOND_NS { format!("{:.1}s", ns as f64 / 1e9) } else { format!("{}ms", ns / 1_000_000) }
}

/// Stretches in which calls found no target: a connection could not be made, or was lost.
fn outages(timeline: &Timeline) -> Vec<Stretch> {
    if !is_answered(timeline) {
        return Vec::new();
    }
    let is_out = |point: &DuePoint| point.unreached > 0 && point.unreached as f64 >= OUT * told(point) as f64;
    let mut stretches: Vec<(Stretch, u64)> = Vec::new();
    let mut goes_on = false;
    let mut edge = None;
    for (start, point) in timeline.points() {
        let here = Stretch { from: start, to: start + timeline.width_ns() };
        if is_out(point) {
            match stretches.last_mut().filter(|_| goes_on) {
                Some((stretch, calls)) => (stretch.to, *calls) = (here.to, *calls + told(point)),
                // The point before may be partly in the outage.
                None => stretches.push((Stretch { from: edge.unwrap_or(here.from), ..here }, told(point))),
            }
            goes_on = true;
        } else {
            if let Some((stretch, _)) = stretches.last_mut().filter(|_| goes_on && point.unreached > 0) {
                stretch.to = here.to;
            }
            goes_on = false;
        }
        edge = (point.unreached > 0 && !is_out(point)).then_some(here.from);
    }
    let is_long = |(stretch, calls): &(Stretch, u64)| *calls >= FEWEST_CALLS && !is_drop(timeline, *stretch);
    stretches.into_iter().filter(is_long).map(|(stretch, _)| stretch).collect()
}

/// Whether anything was answered. A target that never answered has a remark of its own.
fn is_answered(timeline: &Timeline) -> bool {
    timeline.points().any(|(_, point)| point.ok + point.refused > 0)
}

/// Calls of a point that say something about the target.
const fn told(point: &DuePoint) -> u64 {
    point.due() - point.untold
}

/// Whether the calls of a stretch were lost at its end, all at once: those due first waited longest.
fn is_drop(timeline: &Timeline, stretch: Stretch) -> bool {
    let longest = within(timeline, stretch).next().map_or(0, |(_, point)| point.failing.quantile(1.0).unwrap_or(0));
    // Little of the stretch may lie in its first and last point.
    longest >= (stretch.length() / 3).max(stretch.length().saturating_sub(2 * timeline.width_ns()))
}

/// Points whose calls were due in a stretch.
fn within(timeline: &Timeline, stretch: Stretch) -> impl Iterator<Item = (u64, &DuePoint)> {
    timeline.points().filter(move |(start, _)| *start < stretch.to && start + timeline.width_ns() > stretch.from)
}

fn outage_remark(outage: Stretch, timeline: &Timeline, run: &Recording) -> Remark {
    let (mut due, mut failed) = (0, 0);
    for (_, point) in within(timeline, outage) {
        due += told(point);
        failed += point.not_ok() - point.untold;
    }
    let share = failed as f64 / due.max(1) as f64;
    let came_back = timeline.points().any(|(start, point)| start >= outage.to && point.ok + point.refused > 0);
    let until = if came_back {
        format!("from {} to {}", Clock(outage.from), Clock(outage.to))
    } else {
        not_back(outage.from, run.measured_ns.max(outage.to))
    };
    let cause = most_common_reason(run).map(|(_, reason)| reason);
    let reason = cause.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    Remark {
        from_ns: Some(outage.from),
        to_ns: Some(outage.to),
        calls: Some(failed),
        share_ratio: Some(share),
        cause: cause.unwrap_or_default(),
        ..Remark::new(
            About::Outage,
            format!(
                "the target was not there {until}: {} of {} due then failed{reason}",
                count(failed),
                counted(due, "call")
            ),
        )
    }
}

/// Moments in which calls under way lost their connections, outside of outages, each with these calls.
fn drops(timeline: &Timeline, outages: &[Stretch]) -> Vec<(Stretch, u64)> {
    let width = timeline.width_ns();
    if !is_answered(timeline) {
        return Vec::new();
    }
    let mut drops: Vec<(Stretch, u64)> = Vec::new();
    for (start, point) in timeline.points().filter(|(_, point)| point.unreached > 0) {
        let here = Stretch { from: start, to: start + width };
        match drops.last_mut().filter(|(drop, _)| drop.to + width >= start) {
            Some((drop, calls)) => (drop.to, *calls) = (here.to, *calls + point.unreached),
            None => drops.push((here, point.unreached)),
        }
    }
    // A drop beside an outage is its edge.
    let beside = |drop: Stretch| Stretch { from: drop.from.saturating_sub(width), to: drop.to + width };
    drops.retain(|(drop, _)| !outages.iter().any(|outage| outage.overlaps(beside(*drop))));
    let most = (timeline.points().count() as f64 * DROPS).max(1.0);
    let is_moment = |(drop, calls): &(Stretch, u64)| {
        *calls >= FEWEST_CALLS && (drop.length() <= DROP_NS.max(width) || is_drop(timeline, *drop))
    };
    if drops.len() as f64 > most || !drops.iter().all(is_moment) {
        return Vec::new();
    }
    drops
}

/// Whether a drop is the reason that nothing completed before it: the calls that would have, were lost.
fn explains(drop: Stretch, silence: Stretch) -> bool {
    drop.overlaps(silence) && silence.length() <= 2 * drop.length()
}

fn drop_remarks(drops: &[(Stretch, u64)], run: &Recording) -> Vec<Remark> {
    let cause = most_common_reason(run);
    // Calls for which no connection could be made have lost none.
    let is_refused = cause.as_ref().is_some_and(|(failure, _)| failure.is_of_connecting());
    let did = if is_refused { "took no connections" } else { "dropped connections" };
    let cause = cause.map(|(_, reason)| reason);
    let reason = cause.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    let remark = |from: u64, to: u64, calls: u64, when: String| Remark {
        from_ns: Some(from),
        to_ns: Some(to),
        calls: Some(calls),
        cause: cause.clone().unwrap_or_default(),
        ..Remark::new(About::Drops, format!("the target {did} {when}: {} failed{reason}", counted(calls, "call")))
    };
    match drops {
        few if few.len() <= MOST_NAMED => few
            .iter()
            .map(|(drop, calls)| remark(drop.from, drop.to, *calls, format!("at {}", Clock(drop.to))))
            .collect(),
        [(first, _), .., (last, _)] => {
            let calls = drops.iter().map(|(_, calls)| calls).sum();
            vec![remark(first.from, last.to, calls, format!("{} times", drops.len()))]
        }
        _ => Vec::new(),
    }
}

/// The most common failure without a connection, and its most common reason.
fn most_common_reason(run: &Recording) -> Option<(Failure, String)> {
    let failures = &run.measured.failures;
    let counted = failures.counted().filter(|(failure, _)| failure.is_unreached());
    let (failure, _) = counted.max_by_key(|(_, n)| *n)?;
    let reason = failures.reasons(failure).into_iter().max_by_key(|(_, n)| *n)?;
    Some((failure, reason.0.to_owned()))
}

/// A silence of the target.
#[derive(Debug, Clone, Copy)]
struct Freeze {
    stretch: Stretch,
    /// Whether an answer came after it.
    is_over: bool,
    /// Calls that waited for its end, longer than calls usually take.
    calls: u64,
    /// The longest time of these calls, in nanoseconds.
    worst_ns: u64,
}

/// Silences of the target while calls were in flight.
fn freezes(plan: &Plan, run: &Recording, total: &Snapshot) -> Vec<Freeze> {
    let timeline = &total.timeline;
    let Some(median) = total.response_times().known.quantile(0.5) else { return Vec::new() };
    let end = run.measured_ns;
    // If calls completed in the drain only, the silence lasted at least until the end.
    let before_end = timeline.silences().into_iter().filter(|(from, _)| *from < end);
    let mut silences: Vec<_> = before_end.map(|(from, to)| Stretch { from, to: to.min(end) }).collect();
    silences.extend(timeline.first_completion_ns().map(|first| Stretch { from: 0, to: first.min(end) }));
    let last = timeline.last_completion_ns();
    if last > 0 && last + TICK_NS < end {
        silences.push(Stretch { from: last, to: end });
    }
    let unusual = FREEZE * median;
    let of_all = plan.connections.most();
    // Calls that come after a silence and take as long have not waited for its end: the target is slow, and not still.
    let is_slow_after = |silence: Stretch| {
        let after = Stretch { from: silence.to, to: silence.to + silence.length().max(timeline.width_ns()) };
        let points = || timeline.points().filter(move |(start, _)| (after.from..after.to).contains(start));
        let due: u64 = points().map(|(_, point)| point.due()).sum();
        let slow: u64 = points().map(|(_, point)| point.count_from(silence.length() / HELD_UP)).sum();
        silence.from == 0 && due > 0 && slow * 2 >= due
    };
    let freeze = |silence: Stretch| {
        let (mut held, mut calls, mut worst_ns) = (0, 0, 0);
        let is_over = silence.to < end || last > end;
        // A target that comes back answers what waited for it. Where all of that was given up, it may be that nothing
        // else was asked.
        let mut is_answered = !is_over;
        for (start, point) in timeline.points().take_while(|(start, _)| *start < silence.to) {
            // A call of this point that went on until the silence was over has taken at least this long.
            let until_over = silence.to.saturating_sub(start + timeline.width_ns());
            let is_refused = point.refused > 0 && start + timeline.width_ns() > silence.from;
            is_answered |= is_refused || point.count_answered_from(until_over.max(unusual)) > 0;
            // A call that brunt gave up within it may have had less time.
            let given_up = if start >= silence.from { point.failed + point.unfinished } else { 0 };
            let waited_from = |least: u64| point.count_from(least.max(until_over)).max(given_up);
            let for_long = waited_from(silence.length() / HELD_UP);
            held += for_long;
            // Calls that came late in it waited, too, though not for long. A point of a long run is longer than a
            // silence, and has slow calls besides.
            let here = Stretch { from: start, to: start + timeline.width_ns() };
            let share = here.shared(silence) as f64 / timeline.width_ns() as f64;
            let waited = waited_from(unusual).min((point.due() as f64 * share).ceil() as u64).max(for_long);
            if waited > 0 {
                (calls, worst_ns) = (calls + waited, worst_ns.max(point.longest_ns()));
            }
        }
        let is_everybody = !is_open(plan) && held >= u64::from(of_all);
        let few = held < FEWEST_CALLS && is_everybody;
        let is_long = !few || silence.length() >= FREEZE_OF_FEW * usual_p99(total, silence.length());
        let is_hit = held >= FEWEST_CALLS || few;
        (is_hit && is_long && is_answered).then_some(Freeze { stretch: silence, is_over, calls, worst_ns })
    };
    silences
        .into_iter()
        .filter(|silence| silence.length() >= unusual.max(TICK_NS))
        .filter(|silence| !is_own(run, *silence) && !is_slow_after(*silence))
        .filter_map(freeze)
        .collect()
}

fn is_open(plan: &Plan) -> bool {
    plan.load.is_open()
}

/// The 99th percentile of the calls that took less than half of a silence, in nanoseconds.
fn usual_p99(total: &Snapshot, silence_ns: u64) -> u64 {
    let times = &total.response_times().known;
    let short: u64 = times.values().filter(|(value, _)| *value < silence_ns / HELD_UP).map(|(_, n)| n).sum();
    let share = short as f64 / times.count().max(1) as f64;
    times.quantile(0.99 * share).unwrap_or(0)
}

/// Whether the generator itself stood still for half of a silence: it had no CPU, or sent late.
fn is_own(run: &Recording, silence: Stretch) -> bool {
    let half = silence.length() / HELD_UP;
    let overlaps = |point: &&Point| {
        // Delays in the silence are recorded when it ended.
        silence.overlaps(Stretch { from: point.start_ns, to: point.start_ns + point.length_ns + SECOND_NS })
    };
    let points = || run.series.points().iter().filter(overlaps);
    // A stop of several seconds is in several points.
    let starved =
        |point: &Point| point.numbers.ratio(Counter::MostStarvedWorker) * point.length_ns.min(SECOND_NS) as f64;
    points().map(starved).sum::<f64>() >= half as f64
        || points().any(|point| point.lag.quantile(1.0).unwrap_or(0) >= half)
}

/// Words for what goes on at `until`: the end of a run, or of what was seen of one in progress.
fn not_back(from: u64, until: u64) -> String {
    format!("from {} on, and was not back at {}", Clock(from), Clock(until))
}

fn freeze_remarks(freezes: &[Freeze], timeline: &Timeline) -> Vec<Remark> {
    let all: u64 = timeline.points().map(|(_, point)| point.due()).sum();
    let share = |calls: u64| Some(calls as f64 / all.max(calls).max(1) as f64);
    if let Some(pauses) =
        steady_pauses(freezes).map(|pauses| Remark { share_ratio: pauses.calls.and_then(share), ..pauses })
    {
        return vec![pauses];
    }
    // The longest first.
    let mut named = freezes.to_vec();
    named.sort_by_key(|freeze| std::cmp::Reverse(freeze.stretch.length()));
    named.truncate(MOST_NAMED);
    named.sort_by_key(|freeze| freeze.stretch.from);
    named
        .into_iter()
        .map(|Freeze { stretch, is_over, calls, worst_ns }| Remark {
            from_ns: Some(stretch.from),
            to_ns: Some(stretch.to),
            calls: Some(calls),
            worst_ns: Some(worst_ns),
            share_ratio: share(calls),
            ..Remark::new(
                About::Freeze,
                format!(
                    "the target froze {}: {} waited up to {}",
                    if is_over {
                        format!("from {} to {}", Clock(stretch.from), Clock(stretch.to))
                    } else {
                        not_back(stretch.from, stretch.to)
                    },
                    counted(calls, "call"),
                    length(worst_ns)
                ),
            )
        })
        .collect()
}

/// Evenly spaced pauses of about one length, as one remark.
fn steady_pauses(freezes: &[Freeze]) -> Option<Remark> {
    let alike = |values: &[u64]| {
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        let spread = (ALIKE * mean).max(2.0 * TICK_NS as f64);
        values.iter().all(|value| (*value as f64 - mean).abs() <= spread).then_some(mean as u64)
    };
    if freezes.len() < FEWEST_PAUSES {
        return None;
    }
    let lengths: Vec<_> = freezes.iter().map(|freeze| freeze.worst_ns).collect();
    let distances: Vec<_> = freezes
        .windows(2)
        .filter_map(|pair| Some(pair.get(1)?.stretch.from.abs_diff(pair.first()?.stretch.from)))
        .collect();
    let (each, apart) = (alike(&lengths)?, alike(&distances)?);
    let (first, last) = (freezes.first()?, freezes.last()?);
    let calls = freezes.iter().map(|freeze| freeze.calls).sum::<u64>();
    let message = format!(
        "the target paused {} times, for {} every {}: {} waited",
        freezes.len(),
        length(each),
        length(apart),
        counted(calls, "call")
    );
    Some(Remark {
        from_ns: Some(first.stretch.from),
        to_ns: Some(last.stretch.to),
        calls: Some(calls),
        worst_ns: freezes.iter().map(|freeze| freeze.worst_ns).max(),
        ..Remark::new(About::Freeze, message)
    })
}

/// A target that falls behind the due calls: more and more of them wait.
fn overload(plan: &Plan, run: &Recording, explained: &[Stretch]) -> Option<Remark> {
    // Calls of lost agents do not wait for the target.
    let of = |counter| run.measured.numbers.get(counter) + run.drained.numbers.get(counter);
    let lost = of(Counter::UnsentLost) + of(Counter::Unknown) + of(Counter::UnsentHeld);
    if !is_open(plan) || lost > 0 {
        return None;
    }
    let points = run.series.points();
    // The calls that had not ended at the end of each point.
    let mut waiting: Vec<u64> = Vec::with_capacity(points.len());
    let (mut due, mut ended) = (0, 0);
    for point in points {
        due += point.numbers.get(Counter::Due);
        // Calls that were never sent are given up at the end, and wait until then.
        ended += point.answered + failures_of(point);
        waiting.push(due.saturating_sub(ended));
    }
    let (last, most) = waiting.iter().copied().enumerate().max_by_key(|(_, waiting)| *waiting)?;
    let calm = waiting.iter().take(last).rposition(|waits| *waits <= most / WAITING.1);
    let first = calm.map_or(0, |place| place + 1);
    let before = calm.and_then(|place| waiting.get(place).copied()).unwrap_or(0);
    let stretch =
        Stretch { from: points.get(first)?.start_ns, to: points.get(last).map(|p| p.start_ns + p.length_ns)? };
    if most < WAITING.0 || most < WAITING.1 * before || stretch.length() < BEHIND_NS {
        return None;
    }
    if explained.iter().any(|other| other.overlaps(stretch)) {
        return None;
    }
    let of = points.get(first..=last)?;
    let seconds = stretch.length() as f64 / SECOND_NS as f64;
    let due_rate = of.iter().map(|point| point.numbers.get(Counter::Due)).sum::<u64>() as f64 / seconds;
    let ended = |point: &Point| point.numbers.get(Counter::EndedAnswered) + failures_of(point);
    let rate = of.iter().map(ended).sum::<u64>() as f64 / seconds;
    // As many calls as a rate keeps in flight wait after the first point already, and become no more.
    let in_first = waiting.get(first).copied().unwrap_or(0);
    let in_middle = waiting.get(first.midpoint(last)).copied().unwrap_or(0);
    let grows = |before: u64, share: f64| most.saturating_sub(before) as f64 >= share * GROWTH * due_rate * seconds;
    // A target that is only slow has as many calls waiting at the end as in the middle.
    if !grows(in_first, 1.0) || !grows(in_middle, 0.5) {
        return None;
    }
    let from = if first == 0 { String::new() } else { format!("from {} on ", Clock(stretch.from)) };
    let end = if last + 1 == points.len() { "the end".to_owned() } else { Clock(stretch.to).to_string() };
    let rates: Vec<_> =
        of.iter().map(|point| ended(point) as f64 * SECOND_NS as f64 / point.length_ns as f64).collect();
    let within = Estimate::of_time(&rates).map_or_else(String::new, |rate| {
        let (low, high) = rate.interval();
        format!(" (95%: {} to {})", count(low.max(0.0).round() as u64), count(high.round() as u64))
    });
    let message = format!(
        "{from}the target answered {} calls/s{within} while {}/s were due: {} waited at {end}",
        count(rate.round() as u64),
        count(due_rate.round() as u64),
        counted(most, "call")
    );
    Some(Remark {
        from_ns: Some(stretch.from),
        to_ns: Some(stretch.to),
        calls: Some(most),
        advice: Some(Advice::FindCapacity),
        ..Remark::new(About::Overload, message)
    })
}

/// Calls of a point that ended without an answer, except those that were never sent or not finished.
fn failures_of(point: &Point) -> u64 {
    point.ended.saturating_sub(point.answered)
}
