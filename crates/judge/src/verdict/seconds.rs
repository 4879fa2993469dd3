//! Problems of the generator in one second of a run, or in several seconds folded into one point.

use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::packed::Packed;
use brunt_record::series::Point;
use brunt_record::snapshot::SHORTEST_JUDGED_NS;

use crate::uncertainty::Ends;

/// A worker that used a CPU for this share of its time had none left to be punctual.
const SATURATED: f64 = 0.95;
/// Where the arrival of answers is unknown: a worker that was ready without a CPU for this share of its time read them
/// late.
const STARVED: f64 = 0.10;
/// A worker without a CPU for this share of its time makes fewer calls because of that.
const LOST: f64 = 0.25;
/// The lag from which on a call is late, in nanoseconds; it is larger where calls are further apart or take long.
const LATE_NS: f64 = 500_000.0;
/// The share of the median response time that the lag of a late call exceeds.
const LATE_SHARE: f64 = 0.1;
/// The share of late calls above which the target has seen another arrival process than the one asked for.
pub(super) const MOST_LATE: f64 = 0.05;
/// The fewest calls beyond a quantile; with fewer, it is the chance of a few.
const LEAST_BEYOND: f64 = 5.0;
/// The quantiles whose intervals decide whether a second is spoiled.
const LOOKED_AT: [f64; 3] = [0.5, 0.9, 0.99];

/// Whether a worker had hardly any time left in this second: it ran, or waited to run. For a longer point, in half of
/// it.
pub fn is_saturated(point: &Point) -> bool {
    let (saturated_ns, busiest) =
        (point.numbers.get(Counter::WorkersSaturated), point.numbers.ratio(Counter::BusiestWorker));
    // Older results know only how much the busiest worker used.
    let of_old = saturated_ns == 0 && busiest >= SATURATED;
    of_old || (saturated_ns > 0 && saturated_ns * 2 >= point.length_ns)
}

/// Whether the workers had no CPU for so much of this second that they made fewer calls because of it.
pub fn is_robbed(point: &Point) -> bool {
    starved_share(point) >= LOST
}

/// Whether the generator's own delays blur the latency of this second.
pub fn is_blurred(point: &Point) -> bool {
    if point.response.count() == 0 {
        return false;
    }
    if !point.is_target_part {
        return is_starved(point) || is_late(point);
    }
    let at = |times: &Packed, q: f64| times.quantile(q).unwrap_or(0);
    LOOKED_AT.into_iter().any(|q| {
        let is_more_than_chance = point.response.count() as f64 * (1.0 - q) >= LEAST_BEYOND;
        let ends = Ends { low_ns: at(point.response_low(), q), high_ns: Some(at(point.response_high(), q)) };
        is_more_than_chance && ends.spoil(at(&point.response, q))
    })
}

/// Whether a worker waited for a CPU long enough to be late, where its lateness is unknown.
fn is_starved(point: &Point) -> bool {
    // The worst moment of a folded point says nothing about the rest of it.
    let share = if point.length_ns <= SECOND_NS {
        point.numbers.ratio(Counter::MostStarvedWorker)
    } else {
        starved_share(point)
    };
    share >= STARVED
}

/// The share of its time for which a worker, on average, was ready without a CPU, 0 to 1. For a mere moment it means
/// nothing, and is 0.
pub(super) fn starved_share(point: &Point) -> f64 {
    let (wall_ns, starved_ns) = (point.numbers.get(Counter::WorkersWall), point.numbers.get(Counter::WorkersStarved));
    if wall_ns >= SHORTEST_JUDGED_NS { (starved_ns as f64 / wall_ns as f64).min(1.0) } else { 0.0 }
}

/// The lag from which on a call of this point counts as late, in nanoseconds: half a millisecond, but at least the
/// distance between calls, since a call that comes before the next is due changes little; and at least a tenth of the
/// median response time.
pub(super) fn late_from_ns(point: &Point) -> u64 {
    let due = point.numbers.get(Counter::Due);
    let apart = if due > 0 { point.length_ns as f64 / due as f64 } else { 0.0 };
    let median = point.response_quantile(0.5).map_or(0, |p50| p50.value);
    LATE_NS.max(apart).max(LATE_SHARE * median as f64) as u64
}

/// How many calls of this point were sent late.
pub(super) fn late_calls(point: &Point) -> u64 {
    let limit = late_from_ns(point);
    point.lag.values().filter(|(lag, _)| *lag > limit).map(|(_, n)| n).sum()
}

/// Whether so many calls of this second were sent late that the target saw another arrival process than the one asked
/// for.
pub fn is_late(point: &Point) -> bool {
    late_calls(point) as f64 > MOST_LATE * point.lag.count() as f64
}

/// Whether a script took most of the CPU in a second in which none was left.
pub fn is_bound_by_script(point: &Point) -> bool {
    is_saturated(point) && point.numbers.script_share() > super::SCRIPT_SHARE
}

/// Whether this second is spoiled in any way.
pub fn is_spoiled(point: &Point) -> bool {
    is_saturated(point) || is_robbed(point) || is_blurred(point) || is_late(point)
}

/// The problems of this second, by their names in results.
pub fn causes(point: &Point) -> Vec<&'static str> {
    let causes = [
        (is_saturated(point), "cpu_saturated"),
        (is_robbed(point), "cpu_starved"),
        (is_blurred(point), "own_delays"),
        (is_late(point), "lag"),
    ];
    causes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name).collect()
}
