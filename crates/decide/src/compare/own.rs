//! Figures of a protocol's own in a comparison: those that its decisions show, each by its name and its unit.
//!
//! Less is better of a percentile, and more of everything else.

use brunt_judge::statistics::Estimate;
use brunt_record::figures::OwnPoint;
use brunt_record::histogram::{AtLeast, Percentile};
use brunt_record::series::Point;
use serde::{Deserialize, Serialize};

use super::{Design, Estimator, LEAST_BEYOND, RESOLUTION, enough_of, geometric_mean};
use crate::evidence::{Evidence, Leading};

/// How far the percentiles of blocks may be off, since those of single seconds are packed.
const RESOLUTION_OF_BLOCKS: f64 = 0.02;

/// The value of an own figure in a run or a block.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnValue {
    /// Its name, unit, and statistic.
    pub of: Leading,
    /// Whether the generator spoiled it.
    pub is_spoiled: bool,
}

/// How an own figure differs: B's over A's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnDifference {
    /// Its name: `ttft p99`, `output_tokens/s`.
    pub name: String,
    /// Its unit; `ratio` of a share.
    pub unit: String,
    /// Whether more of it is better.
    pub is_more_better: bool,
    /// A's: the geometric mean over its rounds, runs or blocks.
    pub a: f64,
    /// B's.
    pub b: f64,
    /// B's over A's.
    pub ratio: f64,
    /// The interval that holds the true ratio in 95% of cases: its lower end.
    pub low_ratio: f64,
    /// Its upper end.
    pub high_ratio: f64,
    /// The probability of a ratio at least this far from 1 if there were no difference.
    pub p_value: f64,
    /// That probability, adjusted for the number of figures compared.
    pub adjusted_p_value: f64,
    /// Whether there is a difference.
    pub differs: bool,
    /// The ratio above 1 that would be found in 80% of cases.
    pub detectable_ratio: f64,
}

/// An own figure that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnLeftOut {
    /// Its name.
    pub name: String,
    /// The cause, in words.
    pub why: String,
}

/// The own figures of a run, with those that its evidence does not believe.
pub(super) fn of_run(evidence: &Evidence) -> Vec<OwnValue> {
    let value = |of: &Leading| {
        let is_believed = match of.statistic.as_str() {
            "rate" => evidence.is_rate_believed,
            // What spoils this percentile of whole calls spoils that of their parts.
            "p50" => evidence.is_reliable(Percentile::P50),
            "p99" => evidence.is_reliable(Percentile::P99),
            _ => true,
        };
        OwnValue { of: of.clone(), is_spoiled: evidence.is_answered() && !(evidence.is_load_as_asked && is_believed) }
    };
    evidence.leading.iter().filter(|of| !of.figure.is_empty()).map(value).collect()
}

/// The same figures of a block of a run's seconds.
pub(super) fn of_block(points: &[Point], asked: &[Leading]) -> Vec<OwnValue> {
    let length_ns: u64 = points.iter().map(|point| point.length_ns).sum();
    let value = |of: &Leading| {
        let mut all = OwnPoint::default();
        points.iter().filter_map(|point| point.own.get(&of.figure)).for_each(|own| all.absorb(own));
        if all.count == 0 {
            return None;
        }
        let value = match of.quantile() {
            Some(q) => {
                let [value] = all.quantiles([q]);
                value
            }
            None => match of.statistic.as_str() {
                "rate" => all.sum().map(|sum| sum * 1e9 / length_ns.max(1) as f64).map(AtLeast::exactly),
                "share" => all.share().map(AtLeast::exactly),
                _ => all.last().map(AtLeast::exactly),
            },
        }?;
        let of = Leading { value: value.value, at_least: value.at_least, count: all.count, ..of.clone() };
        Some(OwnValue { of, is_spoiled: false })
    };
    asked.iter().filter(|of| !of.figure.is_empty()).filter_map(value).collect()
}

/// The figure of this name, if a run or a block has it.
fn named<'a>(all: &'a [OwnValue], name: &str) -> Option<&'a OwnValue> {
    all.iter().find(|own| own.of.name == name)
}

/// The differences that could be estimated between runs or blocks, and what could not be compared.
pub(super) fn compare(
    a: &[&[OwnValue]],
    b: &[&[OwnValue]],
    design: Design,
    estimate: Estimator<'_>,
) -> (Vec<(OwnDifference, Estimate)>, Vec<OwnLeftOut>) {
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    let mut names: Vec<&Leading> = Vec::new();
    for value in a.iter().chain(b).copied().flatten() {
        if !names.iter().any(|known| known.name == value.of.name) {
            names.push(&value.of);
        }
    }
    for of in names {
        let believed = |all: &[&[OwnValue]]| {
            all.iter().map(|own| named(own, &of.name).is_none_or(|own| !own.is_spoiled)).collect()
        };
        let (a_counts, b_counts) = enough_of(believed(a), believed(b), design);
        let logarithms = logarithms(of, a, &a_counts).and_then(|a| Ok((a, logarithms(of, b, &b_counts)?)));
        match logarithms {
            Err(why) => left_out.push(OwnLeftOut { name: of.name.clone(), why }),
            Ok((a, b)) => {
                let is_of_blocks = matches!(design, Design::Blocks { .. }) && of.quantile().is_some();
                let resolution = if is_of_blocks { RESOLUTION_OF_BLOCKS } else { RESOLUTION };
                found
                    .extend(estimate(&a, &b, resolution).map(|estimate| (difference(of, &a, &b, &estimate), estimate)));
            }
        }
    }
    (found, left_out)
}

/// The logarithm of a figure in each of `all` that `counts`; otherwise why it cannot be compared.
fn logarithms(of: &Leading, all: &[&[OwnValue]], counts: &[bool]) -> Result<Vec<f64>, String> {
    let all: Vec<_> = all.iter().zip(counts).filter(|(_, counts)| **counts).map(|(own, _)| *own).collect();
    let logarithm = |all: &&[OwnValue]| {
        let own = named(all, &of.name).ok_or("nothing was recorded")?;
        match own.of.quantile() {
            _ if own.is_spoiled => Err("brunt's own delays spoil it"),
            Some(q) if own.of.count as f64 * (1.0 - q) < LEAST_BEYOND => Err("too few values"),
            _ if own.of.at_least => Err("only a lower bound is known"),
            _ if own.of.value > 0.0 => Ok(own.of.value.ln()),
            _ => Err("it was 0"),
        }
    };
    let each: Vec<_> = all.iter().map(logarithm).collect();
    let failed = each.iter().filter(|logarithm| logarithm.is_err()).count();
    match each.iter().find_map(|logarithm| logarithm.err()) {
        Some(why) => Err(format!("{why} in {failed} of {}", all.len())),
        None => Ok(each.into_iter().flatten().collect()),
    }
}

fn difference(of: &Leading, a: &[f64], b: &[f64], estimate: &Estimate) -> OwnDifference {
    let (low, high) = estimate.interval();
    let p_value = estimate.p_value();
    OwnDifference {
        name: of.name.clone(),
        unit: of.unit.clone(),
        is_more_better: of.quantile().is_none(),
        a: geometric_mean(a),
        b: geometric_mean(b),
        ratio: estimate.mean.exp(),
        low_ratio: low.exp(),
        high_ratio: high.exp(),
        p_value,
        adjusted_p_value: p_value,
        differs: false,
        detectable_ratio: 1.0,
    }
}
