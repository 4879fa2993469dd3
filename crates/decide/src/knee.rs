//! Where a protocol's count of good calls stops growing with the load: the knee of its curve.
//!
//! Beyond it a target under more load does no more good, or less: answers still come, and too late for their objectives.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::evidence::Evidence;
use crate::sweep::ENOUGH;

/// The knee of a figure's curve over the load.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knee {
    /// The figure: `goodput/s`.
    pub figure: String,
    /// The least load with about as much as at any other: 95% of the most.
    pub at: f64,
    /// The figure there.
    pub value: f64,
    /// The load with the most.
    pub most_at: f64,
    /// The most.
    pub most: f64,
    /// Whether the figure still grows at the highest load tried: its knee may lie beyond.
    pub is_last: bool,
}

impl Evidence {
    /// The figure whose knee is looked for, where it is 0 though the target answered: no call did any good.
    pub fn without_yield(&self) -> Option<&str> {
        let figure = self.leading.iter().find(|figure| figure.has_knee)?;
        (self.is_answered() && figure.value <= 0.0).then_some(&figure.name)
    }
}

/// The knees of each figure that has one, by runs under known loads. Runs under the same load count with their mean, and those
/// whose rate is the generator's doing do not count. Two loads are the fewest that have one.
pub fn knees<'a>(runs: impl Iterator<Item = (f64, &'a Evidence)>) -> Vec<Knee> {
    let mut curves: BTreeMap<String, BTreeMap<u64, (f64, Vec<f64>)>> = BTreeMap::new();
    for (load, run) in runs.filter(|(load, run)| *load >= 0.0 && run.is_answered() && run.is_rate_believed) {
        for figure in run.leading.iter().filter(|figure| figure.has_knee) {
            // The bits of numbers that are not negative are in their order.
            let places = curves.entry(figure.name.clone()).or_default();
            places.entry(load.to_bits()).or_insert((load, Vec::new())).1.push(figure.value);
        }
    }
    curves.into_iter().filter_map(|(figure, places)| knee(figure, places.values())).collect()
}

fn knee<'a>(figure: String, places: impl Iterator<Item = &'a (f64, Vec<f64>)>) -> Option<Knee> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let curve: Vec<_> = places.map(|(load, values)| (*load, mean(values))).collect();
    let (last, _) = *curve.last().filter(|_| curve.len() > 1)?;
    // Of equal ones the least load.
    let (most_at, most) =
        curve.iter().copied().rev().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, most)| *most > 0.0)?;
    let (at, value) = *curve.iter().find(|(_, value)| *value >= ENOUGH * most)?;
    Some(Knee { figure, at, value, most_at, most, is_last: at >= last })
}

#[cfg(test)]
mod tests {
    use brunt_judge::fixtures::summary;
    use brunt_record::figures::OwnStatistic;

    use super::*;
    use crate::evidence::Leading;

    fn run(per_s: f64) -> Evidence {
        let figure = Leading {
            name: "goodput/s".to_owned(),
            unit: String::new(),
            value: per_s,
            at_least: false,
            figure: "goodput".to_owned(),
            statistic: OwnStatistic::Rate,
            count: 100,
            is_drawn: true,
            has_knee: true,
        };
        Evidence { leading: vec![figure], ..Evidence::from_summary(&summary()) }
    }

    #[test]
    fn a_knee_is_the_least_load_with_about_the_most_good() {
        let runs =
            [(1.0, 1.0), (2.0, 2.0), (4.0, 3.9), (8.0, 4.0), (16.0, 1.5)].map(|(load, per_s)| (load, run(per_s)));
        let knees = knees(runs.iter().map(|(load, run)| (*load, run)));
        let [knee] = &knees[..] else { panic!("{knees:?}") };
        assert_eq!((knee.at, knee.value, knee.most_at, knee.most, knee.is_last), (4.0, 3.9, 8.0, 4.0, false));
    }

    #[test]
    fn a_run_whose_calls_did_no_good_says_so() {
        assert_eq!(run(0.0).without_yield(), Some("goodput/s"));
        assert_eq!((run(0.1).without_yield(), Evidence::from_summary(&summary()).without_yield()), (None, None));
    }

    #[test]
    fn a_curve_that_only_grows_says_that_there_may_be_more() {
        let runs = [(1.0, run(1.0)), (2.0, run(2.0)), (2.0, run(1.8))];
        let knees = knees(runs.iter().map(|(load, run)| (*load, run)));
        assert_eq!((knees[0].at, knees[0].most, knees[0].is_last), (2.0, 1.9, true));
        let spoiled = [(1.0, run(1.0)), (2.0, Evidence { is_rate_believed: false, ..run(2.0) })];
        assert_eq!(super::knees(spoiled.iter().map(|(load, run)| (*load, run))), [], "one load has no curve");
    }
}
