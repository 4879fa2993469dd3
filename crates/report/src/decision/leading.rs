//! The figures with which the report of a protocol begins, and those that its charts have, of several runs: a column each.

use brunt_decide::decision::Decision;
use brunt_decide::evidence::{Evidence, Leading};
use brunt_decide::knee::Knee;
use brunt_plan::units::{Duration, Number};
use brunt_record::figures::time_unit_ns;
use brunt_record::histogram::AtLeast;

use crate::columns;
use crate::csv::Row;
use crate::numbers::{bound, clean, percent};
use crate::style::Paint;
use crate::text::{WIDTH, wrapped};

/// The room before each column.
const GAP: usize = 2;

/// The names of columns, and a row for each of `rows`, which is one run or several; `None` without such figures.
pub(super) fn table(rows: &[(String, Vec<&Evidence>)]) -> Option<Vec<Vec<String>>> {
    let mut names: Vec<&Leading> = Vec::new();
    for figure in rows.iter().flat_map(|(_, runs)| runs).flat_map(|run| &run.leading) {
        if !names.iter().any(|known| known.name == figure.name) {
            names.push(figure);
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut table = vec![
        std::iter::once(String::new()).chain(names.iter().map(|figure| clean(&figure.name).into_owned())).collect(),
    ];
    for (label, runs) in rows {
        let cell = |figure: &Leading| {
            mean(runs, &figure.name)
                .map_or("-".to_owned(), |mean| format!("{}{}", bound(mean.at_least), shown(&figure.unit, mean.value)))
        };
        table.push(std::iter::once(label.clone()).chain(names.iter().copied().map(cell)).collect());
    }
    Some(table)
}

/// The same as a section of text, with the knees of figures over the load; empty without such figures.
pub(super) fn section(
    rows: &[(String, Vec<&Evidence>)],
    scheme: &str,
    knees: &[(Knee, String)],
    paint: Paint,
) -> Vec<String> {
    let Some(table) = table(rows) else { return Vec::new() };
    let mut lines = aligned(&format!("Figures of {scheme}"), &table, paint);
    lines.extend(knees.iter().flat_map(|(_, sentence)| wrapped("  ", "    ", sentence, WIDTH)));
    lines
}

/// Knees, each in a sentence; `load` writes a load: `64 connections`.
pub(super) fn knees(decision: Decision<'_>, load: impl Fn(f64) -> String) -> Vec<(Knee, String)> {
    let sentence = |knee: Knee| {
        let value = |value: f64| shown("", value);
        let name = clean(knee.figure.trim_end_matches("/s")).into_owned();
        let text = if knee.is_last {
            format!("{name} still grows at the highest load, {}: {}/s", load(knee.most_at), value(knee.most))
        } else if knee.at < knee.most_at {
            let (at, most_at) = (load(knee.at), load(knee.most_at));
            format!(
                "{name} has its knee at {at}: {}/s, of at most {}/s at {most_at}",
                value(knee.value),
                value(knee.most)
            )
        } else {
            format!("{name} has its knee at {}, with at most {}/s", load(knee.at), value(knee.most))
        };
        (knee, text)
    };
    decision.knees().into_iter().map(sentence).collect()
}

/// The names of the columns that these runs have in CSV: `ttft:p99`.
pub(super) fn columns<'a>(runs: impl Iterator<Item = &'a Evidence>) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for figure in runs.flat_map(|run| &run.leading) {
        let name = column(figure);
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    columns
}

pub(super) fn column(figure: &Leading) -> String {
    format!("{}:{}", figure.figure, figure.statistic)
}

/// Puts a run's own figures into `columns`, each in its unit.
pub(super) fn put(row: &mut Row, run: Option<&Evidence>, columns: &[String]) {
    for name in columns {
        let figure = run.and_then(|run| run.leading.iter().find(|figure| column(figure) == *name));
        row.put(figure.map_or(String::new(), |figure| figure.value.to_string()));
    }
}

/// A table of words whose first row names its columns. Columns without room come in further tables below.
pub(super) fn aligned(title: &str, table: &[Vec<String>], paint: Paint) -> Vec<String> {
    let width = |at: usize| table.iter().filter_map(|row| row.get(at)).map(|cell| columns::width(cell)).max();
    let widths: Vec<_> = (0..table.first().map_or(0, Vec::len)).map(|at| width(at).unwrap_or(0)).collect();
    let first = GAP + widths.first().copied().unwrap_or(0);
    let mut lines = vec![paint.strong(title)];
    let mut from = 1;
    while from < widths.len() {
        let mut room = WIDTH.saturating_sub(first);
        let fits = |width: &&usize| {
            let needed = GAP + **width;
            let fits = needed <= room;
            room = room.saturating_sub(needed);
            fits
        };
        let to = from + widths.iter().skip(from).take_while(fits).count().max(1);
        let line = |row: &Vec<String>| {
            let places = std::iter::once(0).chain(from..to);
            let cells = places.filter_map(|at| Some(columns::padded_left(row.get(at)?, *widths.get(at)?)));
            cells.flat_map(|cell| [" ".repeat(GAP), cell]).collect::<String>()
        };
        lines
            .extend(table.iter().enumerate().map(|(at, row)| if at == 0 { paint.faint(line(row)) } else { line(row) }));
        from = to;
    }
    lines
}

/// A value in its unit.
pub(super) fn shown(unit: &str, value: f64) -> String {
    match (unit, time_unit_ns(unit)) {
        (_, Some(ns)) => Duration((value * ns).round().max(0.0) as u64).to_string(),
        ("ratio", _) => percent(value),
        ("", _) => Number(value).to_string(),
        (unit, _) => format!("{} {}", Number(value), clean(unit)),
    }
}

/// The mean of a figure over these runs; a lower bound if it is one in any of them.
fn mean(runs: &[&Evidence], name: &str) -> Option<AtLeast<f64>> {
    let figures = runs.iter().filter_map(|run| run.leading.iter().find(|figure| figure.name == name));
    let values: Vec<_> = figures.map(|figure| (figure.value, figure.at_least)).collect();
    let sum: f64 = values.iter().map(|(value, _)| value).sum();
    let at_least = values.iter().any(|(_, at_least)| *at_least);
    (!values.is_empty()).then(|| AtLeast { value: sum / values.len() as f64, at_least })
}
