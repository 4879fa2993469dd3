//! A sweep on its page: its values, the law, and the charts over its axis.

use brunt_decide::evidence::Evidence;
use brunt_decide::sweep::{Fit, Law, Step, Sweep};
use brunt_plan::plan::Plan;
use brunt_record::histogram::AtLeast;

use super::super::sweep;
use super::{Chart, Line, Page, Point, limits, tabled, text};
use crate::numbers::count;
use crate::style::Role;

pub(super) fn page(plan: &Plan, sweep: &Sweep) -> Page {
    let mut page = super::page(format!("sweep {} {}", sweep.axis.name, plan.target.url()), vec![sweep::how(plan)]);
    page.found.extend(sweep::law(sweep).into_iter().map(|(role, sentence)| text(sentence, role)));
    if !sweep.ended.is_empty() {
        page.found.push(text(sweep.ended.clone(), Role::Warning));
    }
    if sweep.steps.is_empty() {
        return page;
    }
    page.found.extend(sweep.steps.iter().filter_map(|step| {
        let missed = step.evidence.iter().flat_map(|run| &run.thresholds).filter(|result| !result.held);
        let missed = missed.map(|result| format!("{} was {}", result.threshold.trim(), result.got));
        let all: Vec<_> = std::iter::once(step.problem.clone()).filter(|p| !p.is_empty()).chain(missed).collect();
        (!all.is_empty()).then(|| text(format!("✗ at {}: {}", count(step.value), all.join("; ")), Role::Bad))
    }));
    let caption = match sweep.axis.name.as_str() {
        "connections" => "one run per connection count".to_owned(),
        name => format!("one run per value of {name}"),
    };
    let mut steps = tabled("steps", "Values", caption, &sweep::table(sweep));
    // Each value leads to its run, on this page.
    let answered = steps.rows.iter_mut().zip(&sweep.steps).filter(|(_, step)| step.evidence.is_some());
    for (nth, (row, _)) in answered.enumerate() {
        if let Some(cell) = row.first_mut() {
            cell.href = Some(format!("#run-{}", nth + 1));
        }
    }
    page.tables.push(steps);
    let points = |of: &dyn Fn(&Evidence) -> Option<f64>| {
        let point = |step: &Step| Some(Point { x: step.value as f64, y: of(step.evidence.as_ref()?)?, interval: None });
        sweep.steps.iter().filter_map(point).collect::<Vec<_>>()
    };
    let chart = |id, title, summary: String, unit, lines| Chart {
        id,
        title,
        summary,
        x: sweep.axis.name.clone(),
        x_is_logarithmic: sweep.steps.iter().all(|step| step.value > 0),
        unit,
        lines,
        ..Chart::default()
    };
    let answered = points(&|run| Some(run.ok_per_s()));
    let mut throughput = vec![Line { label: "answered", colour: "one", how: "points", mark: "", points: answered }];
    let mut marks = Vec::new();
    if let Some(Law::Fit(fit)) = sweep.law.as_ref().filter(|law| matches!(law, Law::Fit(fit) if !fit.is_poor)) {
        let points = fitted(sweep, fit);
        throughput.push(Line { label: "the law", colour: "faint", how: "dashed", mark: "", points });
        marks.extend(fit.knee.map(|knee| (knee.value, "knee".to_owned())));
        marks.extend(fit.peak.filter(|peak| !peak.is_beyond).map(|peak| (peak.connections.value, "peak".to_owned())));
    }
    if let Some(choice) = sweep.choice() {
        marks.push((choice.enough.0 as f64, format!("enough: {}", count(choice.enough.0))));
    }
    let summary = format!("calls answered a second, against {}", sweep.axis.name);
    page.charts.push(Chart { marks, ..chart("throughput", "Throughput", summary, "per_s", throughput) });
    let ns = |time: Option<AtLeast<u64>>| time.map(|time| time.value.max(1) as f64);
    let line = |label, colour, points| Line { label, colour, how: "line", mark: "", points };
    let latency = vec![
        line("p50", "one", points(&|run| ns(run.p50_ns))),
        line("p90", "two", points(&|run| ns(run.p90_ns))),
        line("p99", "three", points(&|run| ns(run.p99_ns))),
    ];
    let summary = format!("response times, against {}", sweep.axis.name);
    let limits = limits(plan, &["p50", "p90", "p99"]);
    page.charts.push(Chart { y_is_logarithmic: true, limits, ..chart("latency", "Latency", summary, "ns", latency) });
    let per_s = |n: u64, run: &Evidence| n as f64 * 1e9 / run.measured_ns.max(1) as f64;
    let marked = |label, colour, mark, points| Line { mark, ..line(label, colour, points) };
    let outcomes = vec![
        marked("ok", "two", "●", points(&|run| Some(per_s(run.ok, run)))),
        marked("failed", "bad", "✕", points(&|run| Some(per_s(run.failed, run)))),
    ];
    let summary = format!("calls a second that were ok, and that were not, against {}", sweep.axis.name);
    page.charts.push(chart("outcomes", "Outcomes", summary, "per_s", outcomes));
    page
}

/// The curve of the law, X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), over what was tried.
fn fitted(sweep: &Sweep, fit: &Fit) -> Vec<Point> {
    const POINTS: i32 = 60;
    let values = || sweep.steps.iter().map(|step| step.value as f64);
    let (low, high) = (values().fold(f64::INFINITY, f64::min).max(1.0), values().fold(1.0, f64::max));
    let point = |i: i32| {
        let n = low * (high / low).powf(f64::from(i) / f64::from(POINTS));
        let held_up = 1.0 + fit.sigma.value * (n - 1.0) + fit.kappa.value * n * (n - 1.0);
        Point { x: n, y: fit.lambda_per_s.value * n / held_up, interval: None }
    };
    (0..=POINTS).map(point).filter(|point| point.y.is_finite()).collect()
}
