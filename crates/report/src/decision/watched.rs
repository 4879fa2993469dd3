//! Figures watched beside several runs: means, and the target's CPU time for each call.

use brunt_decide::evidence::Evidence;
use brunt_judge::watched::WatchedSummary;
use brunt_plan::watch::shown_value;
use brunt_record::histogram::AtLeast;

use super::leading::aligned;
use crate::numbers::{clean, duration};
use crate::style::Paint;

/// The most figures that have a column; JSON has them all.
const MOST: usize = 4;

/// The names of columns, and a row for each of `rows`, which is one run or several; `None` without watched figures.
pub(super) fn table(rows: &[(String, Vec<&Evidence>)]) -> Option<Vec<Vec<String>>> {
    let mut all = rows.iter().flat_map(|(_, runs)| runs).map(|run| &run.watched);
    let names = all.find(|watched| !watched.is_empty())?;
    let mut header = vec![String::new()];
    for figure in names.iter().take(MOST) {
        header.push(clean(&figure.name).into_owned());
        if has_cost(rows, &figure.name) {
            header.push(format!("{} a call", clean(&figure.name)));
        }
    }
    let mut table = vec![header];
    for (label, runs) in rows {
        let mut row = vec![label.clone()];
        for figure in names.iter().take(MOST) {
            let mean = mean(runs, &figure.name, |figure| figure.mean);
            row.push(mean.map_or("-".to_owned(), |mean| shown_value(figure.unit, mean)));
            if has_cost(rows, &figure.name) {
                let cost = self::mean(runs, &figure.name, |figure| figure.cpu_per_call_ns);
                row.push(cost.map_or("-".to_owned(), |ns| duration(AtLeast::exactly(ns as u64))));
            }
        }
        table.push(row);
    }
    Some(table)
}

/// The same as a section of text; empty without watched figures.
pub(super) fn section(rows: &[(String, Vec<&Evidence>)], paint: Paint) -> Vec<String> {
    let Some(table) = table(rows) else { return Vec::new() };
    aligned("Watched", &table, paint)
}

fn has_cost(rows: &[(String, Vec<&Evidence>)], name: &str) -> bool {
    rows.iter().any(|(_, runs)| mean(runs, name, |figure| figure.cpu_per_call_ns).is_some())
}

/// The mean of a figure over these runs.
fn mean(runs: &[&Evidence], name: &str, of: impl Fn(&WatchedSummary) -> Option<f64>) -> Option<f64> {
    let figures = runs.iter().filter_map(|run| run.watched.iter().find(|figure| figure.name == name));
    let values: Vec<f64> = figures.filter_map(of).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
