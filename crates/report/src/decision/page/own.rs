//! Charts of the protocol's own figures over the load.

use brunt_decide::evidence::{Evidence, Leading};
use brunt_record::figures::{OwnStatistic, time_unit_ns};

use super::drawing::{Chart, How, Line, Measured, Sign};
use crate::numbers::clean;
use crate::page::Unit;

const TIMES: f64 = 110.0;
const VALUE: f64 = 80.0;
/// The looks of lines, the first that of a figure's first statistic.
const CLASSES: [&str; 2] = ["one", "three"];

/// One chart per figure; `axis` names the loads.
pub(super) fn charts(runs: &[(f64, &Evidence)], axis: &str, how: How) -> Vec<Chart> {
    let mut names: Vec<&str> = Vec::new();
    for figure in runs.iter().flat_map(|(_, run)| &run.leading).filter(|figure| figure.is_drawn) {
        if !names.contains(&figure.figure.as_str()) {
            names.push(&figure.figure);
        }
    }
    names.into_iter().map(|name| chart(name, runs, axis, how)).collect()
}

fn chart(name: &str, runs: &[(f64, &Evidence)], axis: &str, how: How) -> Chart {
    let of = |run: &'_ Evidence| run.leading.iter().filter(|figure| figure.figure == name).cloned().collect::<Vec<_>>();
    let known = runs.iter().map(|(_, run)| of(run)).find(|figures| !figures.is_empty()).unwrap_or_default();
    let first = known.first();
    let unit_ns = first.and_then(|figure| time_unit_ns(&figure.unit));
    let unit = match first.map(|figure| (figure.statistic, unit_ns)) {
        Some((_, Some(_))) => Unit::Ns,
        Some((OwnStatistic::Rate, _)) => Unit::PerSecond,
        Some((OwnStatistic::Share, _)) => Unit::Share,
        _ => Unit::Count,
    };
    let line = |(nth, figure): (usize, &Leading)| {
        let place = |(load, run): &(f64, &Evidence)| {
            let value = run.leading.iter().find(|other| other.name == figure.name)?.value;
            Some(Measured { x: *load, y: value * unit_ns.unwrap_or(1.0) })
        };
        Line {
            name: match figure.statistic.percentile() {
                Some(percentile) => percentile.name().into(),
                None => clean(&figure.name).into_owned().into(),
            },
            class: CLASSES.get(nth).copied().unwrap_or("two"),
            how,
            sign: if nth == 0 { Sign::Ring } else { Sign::Disc },
            places: runs.iter().filter_map(place).collect(),
        }
    };
    let mut lines: Vec<_> = known.iter().enumerate().map(line).collect();
    let has_knee = first.is_some_and(|figure| figure.has_knee);
    if has_knee {
        // What was offered: good calls are a part of it.
        let mut places: Vec<_> = runs
            .iter()
            .map(|(load, run)| Measured { x: *load, y: run.due as f64 * 1e9 / run.measured_ns.max(1) as f64 })
            .collect();
        places.sort_by(|a, b| a.x.total_cmp(&b.x));
        lines.push(Line { name: "due/s".into(), class: "faint", how: How::Line, sign: Sign::Disc, places });
    }
    // A logarithmic axis has no place for 0, such as the time between two tokens of one event.
    let is_logarithmic = unit == Unit::Ns && lines.iter().flat_map(|line| &line.places).all(|place| place.y > 0.0);
    let unit_words = match (unit, first) {
        (Unit::Count, Some(figure)) if !figure.unit.is_empty() => format!("{}, ", clean(&figure.unit)),
        (Unit::PerSecond, _) => "a second, ".to_owned(),
        _ => String::new(),
    };
    Chart {
        title: clean(name).into_owned().into(),
        note: format!("{unit_words}against {axis}"),
        unit,
        is_logarithmic,
        height: if lines.len() > 1 { TIMES } else { VALUE },
        lines,
        limits: Vec::new(),
    }
}
