//! The uncertainty of a figure: the error that the generator's own delays can have caused, and the error by chance.

use brunt_record::histogram::{Censored, Histogram, Percentile};
use brunt_record::instrument::{Bracket, least_without};
use serde::Serialize;

use crate::sampling::{Sampling, value_at};

/// The share of a figure above which own delays spoil it.
const SPOILING: f64 = 0.1;
/// How wide an instrument interval must be to spoil anything, in nanoseconds.
const SPOILING_NS: u64 = 50_000;

/// Two ends between which a time lies, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The lower end.
    pub low_ns: u64,
    /// The upper end; `None` where nothing is known from above.
    pub high_ns: Option<u64>,
}

impl Ends {
    /// Whether own delays of this width spoil a figure of `value_ns`: more than a tenth of it, and more than 50 µs.
    pub fn spoil(&self, value_ns: u64) -> bool {
        let Some(high) = self.high_ns else { return false };
        let width = high.saturating_sub(self.low_ns);
        width > SPOILING_NS && width as f64 > SPOILING * value_ns as f64
    }
}

/// The uncertainty of one time, in nanoseconds. An upper end is `null` where nothing is known from above.
///
/// The instrument interval allows for the generator's own delays: the true time of this run's calls lies within. The
/// sampling interval allows for chance: the figure of an endless run under the same load lies within in 95% of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfidenceInterval {
    /// Lower end of the instrument interval.
    pub instrument_low_ns: u64,
    /// Upper end of the instrument interval.
    pub instrument_high_ns: Option<u64>,
    /// Lower end of the sampling interval; missing where the run was too short to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_low_ns: Option<u64>,
    /// Upper end of the sampling interval.
    pub sampling_high_ns: Option<u64>,
    /// Lower end of both intervals together, or of the instrument's alone.
    pub low_ns: u64,
    /// Upper end of both together.
    pub high_ns: Option<u64>,
    /// Whether own delays spoil the time: they leave more than a tenth of it, and more than 50 µs, open ([`Ends::spoil`]).
    #[serde(rename = "spoiled")]
    pub is_spoiled: bool,
}

impl ConfidenceInterval {
    /// Lets the figure, of `value_ns`, be as small as `low_ns` for the generator's sake.
    pub(crate) fn widen_below(&mut self, low_ns: u64, value_ns: u64) {
        self.instrument_low_ns = self.instrument_low_ns.min(low_ns);
        self.low_ns = self.low_ns.min(low_ns);
        let high_ns = Some(self.instrument_high_ns.unwrap_or(value_ns));
        self.is_spoiled = Ends { low_ns: self.instrument_low_ns, high_ns }.spoil(value_ns);
    }

    /// The same without an upper end.
    pub(crate) fn open_above(self) -> Self {
        Self { sampling_high_ns: None, high_ns: None, ..self }
    }
}

/// How far the figures of a distribution may be from the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intervals {
    /// Of the mean.
    pub mean: ConfidenceInterval,
    /// Of the values at [`Percentile::ALL`], in their order.
    pub quantiles: [ConfidenceInterval; Percentile::ALL.len()],
}

impl Intervals {
    /// The intervals of times in `bracket`, with `sampling` for its calls. `lag` has the own delays where the bracket
    /// does not know them. `None` for an empty distribution.
    pub fn new(bracket: &Bracket, lag: &Histogram, sampling: Option<&Sampling<'_>>) -> Option<Self> {
        let shares = Percentile::ALL.map(Percentile::share);
        let mut values = [0; Percentile::ALL.len()];
        for (place, q) in values.iter_mut().zip(shares) {
            *place = bracket.value.quantile(q)?.value;
        }
        let ranks = sampling.map_or([None; Percentile::ALL.len()], |sampling| sampling.ranks(values));
        let (low, value, high) = (bracket.low.lower(), bracket.value.lower(), bracket.high.lower());
        // Without arrivals, the low side knows of sending alone, and not which call was sent how late.
        let at = |times: &Censored, q: f64| times.quantile(q).map(|value| value.value);
        let least = |q: f64| {
            if bracket.knows_receiving { at(&bracket.low, q) } else { least_without(&bracket.low, lag, q) }
        };
        let of_quantile = |q: f64, rank: Option<(f64, f64)>, value_ns: u64| -> Option<ConfidenceInterval> {
            let instrument = ends(least(q)?.min(value_ns), Some(at(&bracket.high, q)?.max(value_ns)));
            let sampling =
                rank.and_then(|(from, to)| Some(ends(at(&bracket.value, from)?, value_at(&bracket.value, to))));
            let combined = rank.and_then(|(from, to)| Some(ends(least(from)?, value_at(&bracket.high, to))));
            Some(interval(value_ns, instrument, sampling, combined))
        };
        let mut quantiles = [of_quantile(0.5, None, values.first().copied()?)?; Percentile::ALL.len()];
        for (((place, q), rank), value_ns) in quantiles.iter_mut().zip(shares).zip(ranks).zip(values) {
            *place = of_quantile(q, rank, value_ns)?;
        }
        rise(&mut quantiles);
        let mean_low = if bracket.knows_receiving { low.mean()? } else { low.mean()? - lag.mean().unwrap_or(0.0) };
        let whole = |ns: f64| ns.max(0.0).round() as u64;
        let (mean, mean_high) = (value.mean()?, high.mean()?);
        let instrument = ends(whole(mean_low.min(mean)), Some(whole(mean_high.max(mean))));
        let sampling = sampling.and_then(Sampling::mean);
        let combined = sampling.map(|(from, to)| {
            ends(whole(from - (mean - mean_low).max(0.0)), Some(whole(to + (mean_high - mean).max(0.0))))
        });
        let sampling = sampling.map(|(from, to)| ends(whole(from), Some(whole(to))));
        Some(Self { mean: interval(whole(mean), instrument, sampling, combined), quantiles })
    }
}

/// Makes bounds rise from one quantile to the next, as what they bound does: a quantile is at least what one below it is, and at
/// most what one above it is. One without a sampling interval says nothing of chance, and bounds only its instrument's.
fn rise(quantiles: &mut [ConfidenceInterval]) {
    let knows_as_much = |other: &ConfidenceInterval, one: &ConfidenceInterval| {
        other.sampling_low_ns.is_some() || one.sampling_low_ns.is_none()
    };
    let mut below: Option<ConfidenceInterval> = None;
    for one in quantiles.iter_mut() {
        if let Some(below) = below {
            one.instrument_low_ns = one.instrument_low_ns.max(below.instrument_low_ns);
            one.sampling_low_ns = one.sampling_low_ns.map(|low| low.max(below.sampling_low_ns.unwrap_or(0)));
            if knows_as_much(&below, one) {
                one.low_ns = one.low_ns.max(below.low_ns);
            }
        }
        below = Some(*one);
    }
    let least = |one: Option<u64>, above: Option<u64>| one.into_iter().chain(above).min();
    let mut above: Option<ConfidenceInterval> = None;
    for one in quantiles.iter_mut().rev() {
        if let Some(above) = above {
            one.instrument_high_ns = least(one.instrument_high_ns, above.instrument_high_ns);
            if one.sampling_low_ns.is_some() {
                one.sampling_high_ns = least(one.sampling_high_ns, above.sampling_high_ns);
            }
            if knows_as_much(&above, one) {
                one.high_ns = least(one.high_ns, above.high_ns);
            }
        }
        above = Some(*one);
    }
}

fn ends(low_ns: u64, high_ns: Option<u64>) -> Ends {
    Ends { low_ns, high_ns }
}

fn interval(value_ns: u64, instrument: Ends, sampling: Option<Ends>, combined: Option<Ends>) -> ConfidenceInterval {
    let combined = combined.map_or(instrument, |combined| Ends {
        low_ns: combined.low_ns.min(instrument.low_ns),
        high_ns: combined.high_ns.zip(instrument.high_ns).map(|(a, b)| a.max(b)),
    });
    ConfidenceInterval {
        instrument_low_ns: instrument.low_ns,
        instrument_high_ns: instrument.high_ns,
        sampling_low_ns: sampling.map(|ends| ends.low_ns),
        sampling_high_ns: sampling.and_then(|ends| ends.high_ns),
        low_ns: combined.low_ns,
        high_ns: combined.high_ns,
        is_spoiled: instrument.spoil(value_ns),
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::catalogue::Timing;
    use brunt_record::instrument::{ArrivalTime, CallTimes};
    use brunt_record::snapshot::Snapshot;

    use super::*;

    fn intervals_of(calls: &[CallTimes]) -> Intervals {
        let mut recorded = Snapshot::default();
        for call in calls {
            recorded.arrived(call, 1);
            recorded.times.record(Timing::Response, call.read - call.due);
        }
        Intervals::new(&recorded.response_bracket(), &Histogram::new(), None).unwrap()
    }

    fn call(taken: u64, sending: u64, receiving: u64, is_timed: bool) -> CallTimes {
        let (sent, at) = (sending, sending + taken);
        let arrived = if is_timed { ArrivalTime::At(at) } else { ArrivalTime::After(sent) };
        CallTimes { due: 0, ready: 0, sent, exposed: u64::MAX, first_byte: Some(at), arrived, read: at + receiving }
    }

    #[test]
    fn what_the_kernel_timed_is_right_however_late_it_was_read() {
        let p99 = intervals_of(&[call(1_000_000, 0, 8_000_000, true); 100]).quantiles[4];
        assert_eq!((p99.instrument_low_ns, p99.instrument_high_ns), (1_000_000, Some(1_000_000)));
        assert!(!p99.is_spoiled && p99.sampling_low_ns.is_none());
        assert_eq!((p99.low_ns, p99.high_ns), (p99.instrument_low_ns, p99.instrument_high_ns));
    }

    #[test]
    fn a_figure_is_spoiled_by_itself() {
        // Of a hundred calls five were sent 5 ms late: p50 holds, p99 may be anything from 1 to 6 ms.
        let mut calls = vec![call(1_000_000, 10_000, 0, true); 95];
        calls.extend([call(1_000_000, 5_000_000, 0, true); 5]);
        let intervals = intervals_of(&calls);
        let spoiled = intervals.quantiles.map(|interval| interval.is_spoiled);
        assert_eq!(spoiled, [false, false, false, false, true, true, true]);
        assert_eq!(intervals.quantiles[4].instrument_high_ns.map(|ns| ns / 10_000), Some(600));
        // Beside a target of 60 ms the same delays are nothing.
        let calls = calls.iter().map(|late| call(60_000_000, late.sending(), 0, true)).collect::<Vec<_>>();
        assert!(!intervals_of(&calls).quantiles.iter().any(|interval| interval.is_spoiled));
    }

    #[test]
    fn bounds_rise_from_one_quantile_to_the_next() {
        let one =
            |low_ns: u64, high_ns: Option<u64>| interval(100, ends(low_ns, high_ns), Some(ends(low_ns, high_ns)), None);
        let mut found = [one(80, Some(120)), one(70, None), one(90, Some(200)), one(60, None)];
        rise(&mut found);
        let bounds = found.map(|interval| (interval.low_ns, interval.high_ns, interval.sampling_high_ns));
        let expected = [(80, Some(120)), (80, Some(200)), (90, Some(200)), (90, None)];
        assert_eq!(bounds, expected.map(|(low, high)| (low, high, high)));
        assert_eq!(found.map(|interval| interval.instrument_low_ns), [80, 80, 90, 90]);
        // Nothing is known of chance from the second one.
        let own = interval(100, ends(95, Some(105)), None, None);
        let mut found = [one(80, None), own];
        rise(&mut found);
        assert_eq!((found[0].high_ns, found[0].sampling_high_ns), (None, None));
    }

    #[test]
    fn small_delays_spoil_nothing_however_fast_the_target_is() {
        assert!(
            !intervals_of(&[call(20_000, 40_000, 0, true); 10]).quantiles.iter().any(|interval| interval.is_spoiled)
        );
        assert!(
            intervals_of(&[call(20_000, 60_000, 0, true); 10]).quantiles.iter().all(|interval| interval.is_spoiled)
        );
    }

    #[test]
    fn where_nothing_was_timed_the_interval_says_so() {
        let p50 = intervals_of(&[call(400_000, 0, 100_000, false); 10]).quantiles[0];
        assert_eq!((p50.instrument_low_ns, p50.instrument_high_ns), (0, Some(500_000)));
        assert!(p50.is_spoiled);
    }
}
