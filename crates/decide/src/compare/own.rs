//! Figures of a protocol's own in a comparison: those that its decisions show, each by its name and its unit.
//!
//! Less is better of a percentile, and more of everything else.

use brunt_judge::statistics::Estimate;
use brunt_record::figures::{OwnPoint, OwnStatistic};
use brunt_record::series::Point;
use serde::{Deserialize, Serialize};

use super::{Design, Difference, Estimator, LEAST_BEYOND, LeftOut, RESOLUTION, enough_of};
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

/// Which of a protocol's own figures is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnMetric {
    /// Its name: `ttft p99`, `output_tokens/s`.
    pub name: String,
    /// Its unit; `ratio` of a share.
    pub unit: String,
    /// Whether more of it is better.
    pub is_more_better: bool,
}

impl OwnMetric {
    fn new(of: &Leading) -> Self {
        Self { name: of.name.clone(), unit: of.unit.clone(), is_more_better: of.statistic.percentile().is_none() }
    }
}

/// The own figures of a run, with those that its evidence does not believe.
pub(super) fn of_run(evidence: &Evidence) -> Vec<OwnValue> {
    let value = |of: &Leading| {
        let is_believed = match (of.statistic, of.statistic.percentile()) {
            (OwnStatistic::Rate, _) => evidence.is_rate_believed,
            // What spoils this percentile of whole calls spoils that of their parts.
            (_, Some(percentile)) => evidence.is_reliable(percentile),
            (_, None) => true,
        };
        OwnValue { of: of.clone(), is_spoiled: evidence.is_answered() && !(evidence.is_load_as_asked && is_believed) }
    };
    evidence.leading.iter().map(value).collect()
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
        let value = of.statistic.in_point(&all, length_ns)?;
        let of = Leading { value: value.value, at_least: value.at_least, count: all.count, ..of.clone() };
        Some(OwnValue { of, is_spoiled: false })
    };
    asked.iter().filter_map(value).collect()
}

/// The figure of this name, if a run or a block has it.
fn named<'a>(all: &'a [OwnValue], name: &str) -> Option<&'a OwnValue> {
    all.iter().find(|own| own.of.name == name)
}

/// The differences that could be estimated, and what could not be compared.
type Compared = (Vec<(Difference<OwnMetric>, Estimate)>, Vec<LeftOut<OwnMetric>>);

/// Compares the figures of runs or blocks.
pub(super) fn compare(a: &[&[OwnValue]], b: &[&[OwnValue]], design: Design, estimate: Estimator<'_>) -> Compared {
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
            Err(why) => left_out.push(LeftOut { metric: OwnMetric::new(of), why, cause: None }),
            Ok((a, b)) => {
                let is_of_blocks = matches!(design, Design::Blocks { .. }) && of.statistic.percentile().is_some();
                let resolution = if is_of_blocks { RESOLUTION_OF_BLOCKS } else { RESOLUTION };
                let estimated = estimate(&a, &b, resolution);
                found.extend(estimated.map(|found| (Difference::new(OwnMetric::new(of), &a, &b, &found), found)));
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
        match own.of.statistic.percentile() {
            _ if own.is_spoiled => Err("brunt's own delays spoil it"),
            Some(of) if own.of.count as f64 * (1.0 - of.share()) < LEAST_BEYOND => Err("too few values"),
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
