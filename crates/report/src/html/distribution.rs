//! Distributions of times as the page shows them: figures, a spectrum, and columns of a heat map.

use std::borrow::Cow;
use std::collections::BTreeMap;

use brunt_judge::distribution::{self, Quantile};
use brunt_record::catalogue::Timing;
use brunt_record::histogram::{AtLeast, Censored};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

use crate::json;

/// Nanoseconds; written as a number, or as a list of that number where it is a lower bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bound(pub(super) AtLeast<u64>);

impl JsonSchema for Bound {
    fn schema_name() -> Cow<'static, str> {
        "Bound".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let either = [generator.subschema_for::<u64>(), generator.subschema_for::<(u64,)>()];
        json_schema!({ "description": "Nanoseconds; in a list, a lower bound: the true time may be longer.", "oneOf": either })
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.0.at_least {
            return serializer.serialize_u64(self.0.value);
        }
        let mut seq = serializer.serialize_seq(Some(1))?;
        seq.serialize_element(&self.0.value)?;
        seq.end()
    }
}

impl Bound {
    fn of_mean(mean: AtLeast<f64>) -> Self {
        Self(mean.map(|ns| ns.round() as u64))
    }
}

/// Figures of a distribution, in nanoseconds.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Distribution {
    count: u64,
    mean_ns: Bound,
    stdev_ns: Bound,
    min_ns: u64,
    /// At the shares that `quantiles` names.
    quantiles_ns: Vec<Bound>,
    /// What they may be: the ends of each one's interval, where there are some; the upper one missing where nothing is
    /// known from above.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantile_ends_ns: Option<Vec<(u64, Option<u64>)>>,
    /// The places of those that own delays spoil.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spoiled_quantiles: Vec<usize>,
    max_ns: Bound,
}

impl Distribution {
    pub(super) fn from_distribution(times: &distribution::Distribution) -> Self {
        let bound = |quantile: &Quantile| Bound(quantile.value());
        Self {
            count: times.count,
            mean_ns: Bound::of_mean(times.mean),
            stdev_ns: Bound::of_mean(times.stdev),
            min_ns: times.min,
            quantiles_ns: times.quantiles.iter().map(bound).collect(),
            quantile_ends_ns: times.quantiles.iter().map(|q| q.interval.map(|of| (of.low_ns, of.high_ns))).collect(),
            spoiled_quantiles: {
                let quantiles = times.quantiles.iter().enumerate();
                quantiles.filter(|(_, quantile)| quantile.is_spoiled()).map(|(at, _)| at).collect()
            },
            max_ns: Bound(times.max),
        }
    }
}

/// How many points a spectrum has for each tenth, hundredth, … of the calls.
const POINTS_A_DECADE: i32 = 16;
/// The decades of a spectrum at most: no run has more calls than 10⁹ · a thousand.
const DECADES: i32 = 12;

/// The time that all but a share of the calls did not exceed, for ever smaller shares.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Spectrum {
    name: &'static str,
    /// `[share of calls that took longer, nanoseconds]`, the share falling from 1; the last is one call in all, at the
    /// largest time.
    points: Vec<(f64, Bound)>,
}

impl Spectrum {
    /// The spectrum of `times`; none if it is empty.
    pub(super) fn new(name: &'static str, times: &Censored) -> Option<Self> {
        const MOST: usize = (POINTS_A_DECADE * DECADES) as usize;
        let tails: [f64; MOST] = std::array::from_fn(|i| 10_f64.powf(-(i as f64) / f64::from(POINTS_A_DECADE)));
        let largest = Bound(AtLeast { value: times.lower().max()?, at_least: !times.bounds.is_empty() });
        let last = 1.0 / times.count() as f64;
        let values = times.quantiles(tails.map(|tail| 1.0 - tail));
        let points = tails.iter().zip(values).take_while(|(tail, _)| **tail > last);
        let points = points.filter_map(|(tail, value)| Some((significant(*tail, 4), Bound(value?))));
        Some(Self { name, points: points.chain([(significant(last, 4), largest)]).collect() })
    }
}

/// `value` with so many significant digits: a page needs no more, and is smaller for it.
pub(super) fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = (digits - 1 - value.abs().log10().floor() as i32).clamp(0, 15) as usize;
    format!("{value:.digits$}").parse().unwrap_or(value)
}

/// How many bars of a histogram double the time.
const BARS_AN_OCTAVE: f64 = 8.0;

/// How many calls took how long, those that are not a success apart.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Bars {
    /// Bar `i` begins at 2^(i / this) nanoseconds.
    bars_an_octave: f64,
    /// `[bar, calls, those of them that are not a success]`, where there are calls, in growing order.
    bars: Vec<(u64, u64, u64)>,
}

impl Bars {
    /// The histogram of response times; none where nothing ended.
    pub(super) fn from_histograms(histograms: &json::Histograms) -> Option<Self> {
        let mut bars = BTreeMap::<u64, (u64, u64)>::new();
        let bar_of = |ns: u64| ((ns.max(1) as f64).log2() * BARS_AN_OCTAVE).floor() as u64;
        let times = &histograms.times;
        for times in [times.known(Timing::Response), times.bounds(Timing::Response)] {
            times.values().for_each(|(ns, n)| bars.entry(bar_of(ns)).or_default().0 += n);
        }
        for times in [times.known(Timing::Failed), times.known(Timing::Refused), times.bounds(Timing::Response)] {
            times.values().for_each(|(ns, n)| bars.entry(bar_of(ns)).or_default().1 += n);
        }
        // Own delays are taken off all calls' times, and not off those of calls that are not a success, which are so in
        // the same bar or a later one.
        let mut later = 0;
        for (all, not_ok) in bars.values_mut().rev() {
            later += *not_ok;
            *not_ok = later.min(*all);
            later -= *not_ok;
        }
        let some = bars.into_iter().filter(|(_, (all, _))| *all > 0);
        let bars: Vec<_> = some.map(|(bar, (all, not_ok))| (bar, all, not_ok)).collect();
        (!bars.is_empty()).then_some(Self { bars_an_octave: BARS_AN_OCTAVE, bars })
    }
}
