//! What was wrong with the generator in one second of a run, or in several that were folded into one point.

use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::packed::Packed;
use brunt_record::series::Point;
use brunt_record::snapshot::SHORTEST_JUDGED_NS;

use crate::uncertainty::Ends;

/// A worker that used this share of its time on a CPU had none left to be in time.
const SATURATED: f64 = 0.95;
/// Where nothing tells when answers arrived: a worker that stood ready this share of its time, and had no CPU, read them
/// late.
const STARVED: f64 = 0.10;
/// A worker that has no CPU for this share of its time makes fewer calls for that.
const LOST: f64 = 0.25;
/// A call is late from this lag on, in nanoseconds, or where calls are further apart or take long, from a later one on.
const LATE_NS: f64 = 500_000.0;
/// The share of the median response time that the lag of a late call exceeds.
const LATE_SHARE: f64 = 0.1;
/// The share of calls that may be late before the target has seen another arrival process than the one asked for.
pub(super) const MOST_LATE: f64 = 0.05;
/// The fewest calls beyond a quantile for it to be more than the chance of a few.
const LEAST_BEYOND: f64 = 5.0;
/// The quantiles whose intervals say whether a second is spoiled.
const LOOKED_AT: [f64; 3] = [0.5, 0.9, 0.99];

/// Whether a worker had next to no time left in this second: it ran, or waited to run. Of a point that is longer, in half
/// of it.
pub fn is_saturated(point: &Point) -> bool {
    let (saturated_ns, busiest) =
        (point.numbers.get(Counter::WorkersSaturated), point.numbers.ratio(Counter::BusiestWorker));
    // Results of before that was counted know only how much the busiest worker used.
    let of_old = saturated_ns == 0 && busiest >= SATURATED;
    of_old || (saturated_ns > 0 && saturated_ns * 2 >= point.length_ns)
}

/// Whether the machine had no CPU for the workers for so long in this second that they made fewer calls for it.
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

/// Whether a worker waited for a CPU long enough to be late, where nothing tells by how much it was.
fn is_starved(point: &Point) -> bool {
    // The worst moment of a point that was folded says nothing of the rest of it.
    let share = if point.length_ns <= SECOND_NS {
        point.numbers.ratio(Counter::MostStarvedWorker)
    } else {
        starved_share(point)
    };
    share >= STARVED
}

/// The share of its time that a worker, on average, was ready to run and had no CPU, 0 to 1. Of a moment it says nothing, and
/// is 0.
pub(super) fn starved_share(point: &Point) -> f64 {
    let (wall_ns, starved_ns) = (point.numbers.get(Counter::WorkersWall), point.numbers.get(Counter::WorkersStarved));
    if wall_ns >= SHORTEST_JUDGED_NS { (starved_ns as f64 / wall_ns as f64).min(1.0) } else { 0.0 }
}

/// From which lag on a call of this point counts as late, in nanoseconds: half a millisecond, but no less than the
/// calls are apart, since a call that comes before the next was due changes little; and no less than a tenth of
/// the median response time.
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

/// Whether so many calls were sent late in this second that the target saw another arrival process than the one asked for.
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

/// What spoils this second, in the names of results.
pub fn causes(point: &Point) -> Vec<&'static str> {
    let causes = [
        (is_saturated(point), "cpu_saturated"),
        (is_robbed(point), "cpu_starved"),
        (is_blurred(point), "own_delays"),
        (is_late(point), "lag"),
    ];
    causes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name).collect()
}
