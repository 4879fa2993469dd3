//! The shape of a run, small enough to be kept with every decision that rests on it: its latency spectrum, and its p99 over
//! time.

use serde::{Deserialize, Serialize};

use brunt_record::histogram::Censored;
use brunt_record::series::Point;

/// How many points of a spectrum lie between 10% and 1% of the calls, 1% and 0.1%, and so on.
pub const TAILS_A_DECADE: i32 = 8;
/// The most decades of a spectrum.
const DECADES: i32 = 8;
/// The most stretches.
const MOST_STRETCHES: usize = 120;

/// The latency spectrum of a run, and its p99 over time. Response times in nanoseconds; lower bounds count as what they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outline {
    /// The time that all but a share of the calls did not exceed, for shares of 10^(−i / 8) with i = 0, 1, …, as long as the
    /// share is a call or more.
    pub tails_ns: Vec<u64>,
    /// How long a stretch is; the last may be shorter.
    pub stretch_ns: u64,
    /// The 99th percentile in each stretch; `None` where no call ended.
    pub p99_ns: Vec<Option<u64>>,
}

impl Outline {
    /// That of a run with these response times and these points.
    pub fn new(response: &Censored, points: &[Point]) -> Self {
        const MOST: usize = (TAILS_A_DECADE * DECADES) as usize;
        let tails: [f64; MOST] = std::array::from_fn(tail);
        let least = 1.0 / response.count().max(1) as f64;
        let values = response.quantiles(tails.map(|tail| 1.0 - tail));
        let within = tails.iter().zip(values).take_while(|(tail, _)| **tail >= least);
        let chunk = points.len().div_ceil(MOST_STRETCHES).max(1);
        Self {
            tails_ns: within.filter_map(|(_, value)| Some(value?.value)).collect(),
            stretch_ns: points.first().map_or(0, |first| first.length_ns * chunk as u64),
            p99_ns: points.chunks(chunk).map(p99).collect(),
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.tails_ns.is_empty() && self.p99_ns.is_empty()
    }
}

/// The share of calls that took longer than [`Outline::tails_ns`] at this place.
pub fn tail(place: usize) -> f64 {
    10_f64.powf(-(place as f64) / f64::from(TAILS_A_DECADE))
}

fn p99(points: &[Point]) -> Option<u64> {
    if let [one] = points {
        return one.response_quantile(0.99).map(|p99| p99.value);
    }
    let mut merged = Censored::default();
    for point in points {
        merged.merge(&point.response_times());
    }
    merged.quantile(0.99).map(|p99| p99.value)
}

#[cfg(test)]
mod tests {
    use brunt_record::SECOND_NS;
    use brunt_record::catalogue::Timing;
    use brunt_record::histogram::Histogram;
    use brunt_record::outcome::OkStatus;
    use brunt_record::series::Series;
    use brunt_record::snapshot::Snapshot;

    use super::*;

    #[test]
    fn a_long_run_has_a_small_outline() {
        let mut series = Series::default();
        let mut all = Histogram::new();
        for second in 0..1000_u64 {
            let mut snapshot = Snapshot::default();
            for i in 1..=100 {
                let ns = (second + 1) * i * 1000;
                snapshot.times.record(Timing::Response, ns);
                all.record(ns);
            }
            series.push(SECOND_NS, &snapshot, &OkStatus::default());
        }
        let response = Censored { known: all, ..Censored::default() };
        let outline = Outline::new(&response, series.points());
        assert_eq!(outline.p99_ns.len(), 112, "nine seconds each");
        assert_eq!(outline.stretch_ns, 9 * SECOND_NS);
        let p99 = |second: u64| outline.p99_ns[second as usize / 9].unwrap() as f64;
        assert!(p99(900) > 9.0 * p99(90), "it grows");
        // 10^5 calls: one in all is the last.
        assert_eq!(outline.tails_ns.len(), 5 * 8 + 1);
        assert_eq!(outline.tails_ns.get(16).copied(), response.quantile(0.99).map(|p99| p99.value));
        assert!(outline.tails_ns.is_sorted());
    }

    #[test]
    fn nothing_has_no_outline() {
        assert!(Outline::new(&Censored::default(), &[]).is_empty());
    }
}
