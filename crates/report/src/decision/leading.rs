//! The figures with which the report of a protocol begins, of several runs: a column each.

use brunt_decide::evidence::{Evidence, Leading};
use brunt_plan::units::{Duration, Number};
use brunt_record::figures::time_unit_ns;

use crate::columns;
use crate::numbers::{clean, percent};
use crate::style::Paint;

/// The names of columns, and a row for each of `rows`, which is one run or several; `None` without such figures.
pub(super) fn table(rows: &[(String, Vec<&Evidence>)]) -> Option<Vec<Vec<String>>> {
    let mut all = rows.iter().flat_map(|(_, runs)| runs).map(|run| &run.leading);
    let names = all.find(|leading| !leading.is_empty())?;
    let mut table = vec![
        std::iter::once(String::new()).chain(names.iter().map(|figure| clean(&figure.name).into_owned())).collect(),
    ];
    for (label, runs) in rows {
        let cell = |figure: &Leading| mean(runs, &figure.name).map_or("-".to_owned(), |mean| shown(&figure.unit, mean));
        table.push(std::iter::once(label.clone()).chain(names.iter().map(cell)).collect());
    }
    Some(table)
}

/// The same as a section of text; empty without such figures.
pub(super) fn section(rows: &[(String, Vec<&Evidence>)], scheme: &str, paint: Paint) -> Vec<String> {
    let Some(table) = table(rows) else { return Vec::new() };
    aligned(&format!("Figures of {scheme}"), &table, paint)
}

/// A table of words whose first row names its columns.
pub(super) fn aligned(title: &str, table: &[Vec<String>], paint: Paint) -> Vec<String> {
    let width = |at: usize| table.iter().filter_map(|row| row.get(at)).map(|cell| columns::width(cell)).max();
    let widths: Vec<_> = (0..table.first().map_or(0, Vec::len)).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("  {}", columns::padded_left(cell, *width)));
        cells.collect::<String>()
    };
    let mut lines = vec![paint.strong(title)];
    lines.extend(table.iter().enumerate().map(|(at, row)| if at == 0 { paint.faint(line(row)) } else { line(row) }));
    lines
}

/// A value in its unit.
fn shown(unit: &str, value: f64) -> String {
    match (unit, time_unit_ns(unit)) {
        (_, Some(ns)) => Duration((value * ns).round().max(0.0) as u64).to_string(),
        ("ratio", _) => percent(value),
        ("", _) => Number(value).to_string(),
        (unit, _) => format!("{} {}", Number(value), clean(unit)),
    }
}

/// The mean of a figure over these runs.
fn mean(runs: &[&Evidence], name: &str) -> Option<f64> {
    let figures = runs.iter().filter_map(|run| run.leading.iter().find(|figure| figure.name == name));
    let values: Vec<f64> = figures.map(|figure| figure.value).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
