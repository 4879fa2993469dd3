//! A sweep on its page: throughput, response times and failures over its axis, the law, and its values.

use brunt_decide::evidence::Evidence;
use brunt_decide::sweep::{Fit, Law, Sweep, SweepStep};
use brunt_plan::plan::Plan;
use brunt_record::histogram::AtLeast;

use super::super::sweep;
use super::Content;
use super::drawing::{Axis, Chart, How, Line, Measured, Sign, csv, limits, plots, section};
use super::own;
use super::tabled::tabled;
use crate::numbers::count;
use crate::page::{Mark, Section, Unit};
use crate::style::Role;

const THROUGHPUT: f64 = 130.0;
const LATENCY: f64 = 120.0;
const FAILED: f64 = 50.0;
/// The most values that failed that stand above the drawings.
const MOST_FAILED: usize = 3;

pub(super) fn content(plan: &Plan, sweep: &Sweep) -> Content {
    let mut content = Content {
        title: format!("sweep {} {}", sweep.axis.name, super::super::runs::subject(plan)),
        how: vec![sweep::how(plan)],
        found: sweep::law(sweep).into_iter().map(|(role, sentence)| (sentence, role)).collect(),
        sections: Vec::new(),
    };
    if !sweep.ended.is_empty() {
        content.found.push((sweep.ended.clone(), Role::Warning));
    }
    if sweep.steps.is_empty() {
        return content;
    }
    let failed = sweep.steps.iter().map(|step| (step.value, step.why_not())).filter(|(_, why)| !why.is_empty());
    let all = failed.clone().count();
    content.found.extend(failed.take(MOST_FAILED).map(|(at, why)| (format!("✗ at {}: {why}", count(at)), Role::Bad)));
    if all > MOST_FAILED {
        content.found.push((format!("✗ at {} more values, below", count((all - MOST_FAILED) as u64)), Role::Bad));
    }
    content.found.extend(sweep::knees(plan, sweep).into_iter().map(|(_, sentence)| (sentence, Role::Plain)));
    let caption = format!("one run per value of {}", sweep.axis.name);
    // Each value links to its run, on this page.
    let mut nth = 0;
    let hrefs: Vec<_> = sweep
        .steps
        .iter()
        .map(|step| {
            step.evidence.as_ref()?;
            nth += 1;
            Some(format!("#run-{nth}"))
        })
        .collect();
    content.sections.push(charts(plan, sweep, &hrefs));
    content.sections.push(tabled("steps", "Values", &caption, &sweep::table(sweep), &hrefs));
    content
}

/// Answers, response times and failures, one above the other.
fn charts(plan: &Plan, sweep: &Sweep, hrefs: &[Option<String>]) -> Section {
    let places = |of: &dyn Fn(&Evidence) -> Option<f64>| {
        let place = |step: &SweepStep| Some(Measured { x: step.value as f64, y: of(step.evidence.as_ref()?)? });
        sweep.steps.iter().filter_map(place).collect::<Vec<_>>()
    };
    let line = |name: &'static str, class, places| Line {
        name: name.into(),
        class,
        how: How::Joined,
        sign: Sign::Disc,
        places,
    };
    let axis =
        Axis::through(sweep.steps.iter().map(|step| step.value as f64), &sweep.axis.name, |value| count(value as u64));
    let mut throughput = vec![line("ok/s", "blue", places(&|run| Some(run.ok_per_s)))];
    let mut marks = Vec::new();
    let mut mark = |value: f64, words: String| {
        marks.push(Mark { class: "choice", from: axis.x(value), to: axis.x(value), words });
    };
    if let Some(choice) = sweep.choice() {
        mark(choice.enough.0 as f64, format!("enough: {}", count(choice.enough.0)));
    }
    if let Some(Law::Fit(fit)) = sweep.law.as_ref().filter(|law| matches!(law, Law::Fit(fit) if !fit.is_poor)) {
        throughput.push(Line {
            name: "the law".into(),
            class: "faint",
            how: How::Dashed,
            sign: Sign::Disc,
            places: fitted(sweep, fit),
        });
        if let Some(knee) = fit.knee.filter(|knee| axis.scale.holds(knee.value)) {
            mark(knee.value, "knee".to_owned());
        }
        if let Some(peak) = fit.peak.filter(|peak| !peak.is_beyond && axis.scale.holds(peak.connections.value)) {
            mark(peak.connections.value, "peak".to_owned());
        }
    }
    let ns = |time: Option<AtLeast<u64>>| time.map(|time| time.value.max(1) as f64);
    let mut charts = vec![
        Chart {
            title: "Throughput".into(),
            note: format!("ok calls a second, against {}", sweep.axis.name),
            unit: Unit::PerSecond,
            is_logarithmic: false,
            height: THROUGHPUT,
            lines: throughput,
            limits: Vec::new(),
        },
        Chart {
            title: "Response time".into(),
            note: "logarithmic".to_owned(),
            unit: Unit::Ns,
            is_logarithmic: true,
            height: LATENCY,
            lines: vec![
                line("p50", "one", places(&|run| ns(run.p50_ns))),
                line("p90", "two", places(&|run| ns(run.p90_ns))),
                line("p99", "three", places(&|run| ns(run.p99_ns))),
            ],
            limits: limits(plan, &[0.5, 0.9, 0.99]),
        },
    ];
    let per_s = |n: u64, run: &Evidence| n as f64 * 1e9 / run.measured_ns.max(1) as f64;
    if sweep.steps.iter().filter_map(|step| step.evidence.as_ref()).any(|run| run.failed > 0) {
        let failed = places(&|run| Some(per_s(run.failed, run)));
        charts.push(Chart {
            title: "Failed".into(),
            note: "calls a second that were not ok".to_owned(),
            unit: Unit::PerSecond,
            is_logarithmic: false,
            height: FAILED,
            lines: vec![Line { sign: Sign::Cross, ..line("failed/s", "orange", failed) }],
            limits: Vec::new(),
        });
    }
    let runs: Vec<_> =
        sweep.steps.iter().filter_map(|step| Some((step.value as f64, step.evidence.as_ref()?))).collect();
    charts.extend(own::charts(&runs, &sweep.axis.name, How::Joined));
    for (knee, _) in sweep::knees(plan, sweep).iter().filter(|(knee, _)| !knee.is_last) {
        mark(knee.at, format!("knee of {}", knee.figure));
    }
    let mut plots = plots("sweep", &axis, &charts);
    plots.marks = marks;
    let lead =
        |value: &f64| sweep.steps.iter().zip(hrefs).find(|(step, _)| (step.value as f64).total_cmp(value).is_eq());
    plots.leads_to = axis.named.iter().map(|(value, _)| lead(value).and_then(|(_, href)| href.clone())).collect();
    section("charts", "Over the values", &plots, csv("sweep", &axis, &charts))
}

/// The curve of the law, X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), over the tried values.
fn fitted(sweep: &Sweep, fit: &Fit) -> Vec<Measured> {
    const POINTS: i32 = 60;
    let values = || sweep.steps.iter().map(|step| step.value as f64);
    let (low, high) = (values().fold(f64::INFINITY, f64::min).max(1.0), values().fold(1.0, f64::max));
    let point = |i: i32| {
        let n = low * (high / low).powf(f64::from(i) / f64::from(POINTS));
        let held_up = 1.0 + fit.sigma.value * (n - 1.0) + fit.kappa.value * n * (n - 1.0);
        Measured { x: n, y: fit.lambda_per_s.value * n / held_up }
    };
    (0..=POINTS).map(point).filter(|point| point.y.is_finite()).collect()
}
