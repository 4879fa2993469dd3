//! A search for a capacity on its page: its rates, and the p99 of each trial.

use brunt_decide::capacity::{Answer, Capacity, Outcome};
use brunt_plan::plan::Plan;

use super::super::capacity;
use super::{Chart, Line, Page, Point, limits, tabled, text};
use crate::numbers::counted;
use crate::style::Role;

pub(super) fn page(plan: &Plan, capacity: &Capacity, is_over: bool) -> Page {
    let how = vec![capacity::how(plan), format!("to be met: {}", capacity::criteria(plan))];
    let mut page = super::page(format!("find {}", plan.target.url()), how);
    let (sentence, reasons) = capacity::sentence(capacity);
    let (sign, role) = if capacity.answer.is_known() { ("✓", Role::Good) } else { ("✗", Role::Bad) };
    if is_over {
        page.found.push(text(format!("{sign} {sentence}"), role));
    }
    page.found.extend(reasons.into_iter().map(|reason| text(reason, Role::Plain)));
    if capacity.trials.is_empty() {
        return page;
    }
    let trials = counted(capacity.trials.len() as u64, "trial");
    let caption = format!("{trials}; of several at one rate, the typical one");
    let mut rates = tabled("rates", "Rates", caption, &capacity::table(capacity));
    // Each rate leads to the trial that is shown for it.
    let shown = capacity::groups(capacity).into_iter().filter_map(|group| capacity::typical(&group));
    for (row, shown) in rates.rows.iter_mut().zip(shown) {
        let nth = capacity.trials.iter().position(|trial| std::ptr::eq(trial, shown));
        if let Some((cell, nth)) = row.first_mut().zip(nth) {
            cell.href = Some(format!("#run-{}", nth + 1));
        }
    }
    page.tables.push(rates);
    let line = |label, colour, mark, outcome| Line {
        label,
        colour,
        how: "points",
        mark,
        points: capacity
            .trials
            .iter()
            .filter(|trial| trial.outcome == outcome)
            .filter_map(|trial| {
                let p99 = trial.evidence.p99_ns?.value.max(1) as f64;
                Some(Point { x: trial.rate_per_s, y: p99, interval: None })
            })
            .collect(),
    };
    let lines: Vec<_> = vec![
        line("met", "two", "●", Outcome::Met),
        line("failed", "bad", "✕", Outcome::Failed),
        line("spoiled", "three", "○", Outcome::Spoiled),
    ];
    let marks = match &capacity.answer {
        Answer::Between { low_per_s, high_per_s, .. } => {
            vec![(*low_per_s, "met".to_owned()), (*high_per_s, "not met".to_owned())]
        }
        _ => Vec::new(),
    };
    page.charts.push(Chart {
        id: "latency",
        title: "Latency",
        summary: "p99 of each trial, against its rate".to_owned(),
        x: "calls/s".to_owned(),
        x_is_logarithmic: true,
        y_is_logarithmic: true,
        unit: "ns",
        lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
        marks,
        limits: limits(plan, &["p99"]),
        ..Chart::default()
    });
    page
}
