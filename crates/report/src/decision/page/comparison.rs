//! A comparison on its page: its differences, and both sides over each other.

use brunt_decide::compare::{Compared, ComparedRun, Difference};
use brunt_decide::evidence::Evidence;
use brunt_decide::outline;

use super::super::comparison;
use super::{Chart, Line, Page, Point, tabled, text};
use crate::style::Role;

pub(super) fn page(compared: &Compared) -> Page {
    let mut how = vec![format!("A: {}", compared.a), format!("B: {}", compared.b)];
    how.extend(Some(compared.how.clone()).filter(|how| !how.is_empty()));
    let mut page = super::page("compare".to_owned(), how);
    page.found.extend(comparison::sentences(compared).into_iter().map(|sentence| text(sentence, Role::Strong)));
    page.found.extend(comparison::notes(compared).into_iter().map(|note| text(note, Role::Warning)));
    page.found.extend(compared.conditions.iter().map(|condition| {
        let (sign, role) = match (condition.failed, &condition.undecided) {
            (true, _) => ("✗", Role::Bad),
            (false, Some(_)) => ("?", Role::Warning),
            (false, None) => ("✓", Role::Good),
        };
        text(format!("{sign} fail condition {}: {}", condition.condition.trim(), comparison::told(condition)), role)
    }));
    let Some(found) = &compared.comparison else { return page };
    page.found.extend(comparison::left_out(found).map(|left_out| text(left_out, Role::Faint)));
    let caption = "B over A, with 95 % intervals; p with regard to how many figures are compared";
    page.tables.push(tabled("differences", "Differences", caption, &comparison::table(found, None)));
    let points = found.differences.iter().enumerate();
    let point =
        |(i, d): (usize, &Difference)| Point { x: i as f64, y: d.ratio, interval: Some((d.low_ratio, d.high_ratio)) };
    page.charts.push(Chart {
        id: "ratios",
        title: "B over A",
        summary: "ratios with their 95 % intervals; at 1 there is no difference".to_owned(),
        names: found.differences.iter().map(|d| d.metric.name().to_owned()).collect(),
        unit: "ratio",
        lines: vec![Line {
            label: "B over A",
            colour: "one",
            how: "points",
            mark: "",
            points: points.map(point).collect(),
        }],
        level: Some(1.0),
        ..Chart::default()
    });
    page.charts.extend(spectra(compared));
    page.charts.extend(over_time(compared));
    page.charts.extend(over_rounds(compared));
    page
}

/// A line for A and a line for B, told apart without colours.
fn sides(
    points: impl Fn(&[&Evidence], bool) -> Vec<Point>,
    compared: &Compared,
    marks: [&'static str; 2],
) -> Vec<Line> {
    let runs = |is_b: bool| -> Vec<_> {
        compared.runs.iter().filter(|run| run.is_b == is_b).map(|run| &run.evidence).collect()
    };
    let line = |label, colour, mark, is_b| Line { label, colour, how: "line", mark, points: points(&runs(is_b), is_b) };
    vec![line("A", "one", marks[0], false), line("B", "three", marks[1], true)]
}

/// The geometric mean of what the runs of a side have at each place; as the figures in the table are, over rounds.
fn mean_of(lists: &[Vec<Option<u64>>]) -> Vec<Option<f64>> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let at = |place: usize| {
        let logarithms: Vec<_> =
            lists.iter().filter_map(|list| Some((list.get(place).copied()??.max(1) as f64).ln())).collect();
        // A place that few runs reach would be of other runs than its neighbours.
        let enough = logarithms.len() * 2 > lists.len();
        enough.then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
    };
    (0..longest).map(at).collect()
}

/// The spectra of both sides over each other.
fn spectra(compared: &Compared) -> Option<Chart> {
    let points = |runs: &[&Evidence], _| {
        let lists: Vec<Vec<_>> =
            runs.iter().map(|run| run.outline.tails_ns.iter().map(|ns| Some(*ns)).collect()).collect();
        let means = mean_of(&lists).into_iter().enumerate();
        means.filter_map(|(place, ns)| Some(Point { x: 1.0 / outline::tail(place), y: ns?, interval: None })).collect()
    };
    let lines = sides(points, compared, ["", ""]);
    lines.iter().all(|line| line.points.len() > 1).then(|| Chart {
        id: "spectra",
        title: "Latency spectrum",
        summary: mean_words(compared, "response time by percentile"),
        x_is: "percentile",
        x_is_logarithmic: true,
        y_is_logarithmic: true,
        unit: "ns",
        lines,
        ..Chart::default()
    })
}

/// The p99 of both sides over each other, as their runs went on.
fn over_time(compared: &Compared) -> Option<Chart> {
    let points = |runs: &[&Evidence], _| {
        let stretch_ns = runs.first().map_or(0, |run| run.outline.stretch_ns);
        let alike: Vec<_> = runs.iter().filter(|run| run.outline.stretch_ns == stretch_ns).collect();
        let lists: Vec<Vec<_>> = alike.iter().map(|run| run.outline.p99_ns.clone()).collect();
        let means = mean_of(&lists).into_iter().enumerate();
        let middle = |place: usize| (place as f64 + 0.5) * stretch_ns as f64 / 1e9;
        means.filter_map(|(place, ns)| Some(Point { x: middle(place), y: ns?, interval: None })).collect()
    };
    let lines = sides(points, compared, ["", ""]);
    lines.iter().all(|line| line.points.len() > 1).then(|| Chart {
        id: "p99-over-time",
        title: "p99 over time",
        summary: mean_words(compared, "p99 of each stretch of a run"),
        x_is: "time",
        y_is_logarithmic: true,
        unit: "ns",
        lines,
        ..Chart::default()
    })
}

/// What lines of several runs are.
fn mean_words(compared: &Compared, what: &str) -> String {
    if compared.runs.len() > 2 {
        format!("{what}; the geometric mean over the runs of each side")
    } else {
        what.to_owned()
    }
}

/// The runs of both sides in the order in which they were made: their p99, and their throughput.
fn over_rounds(compared: &Compared) -> Vec<Chart> {
    if compared.runs.len() <= 2 {
        return Vec::new();
    }
    let of = |figure: &dyn Fn(&Evidence) -> Option<f64>| {
        let points = |_: &[&Evidence], is_b: bool| {
            let runs = compared.runs.iter().filter(|run| run.is_b == is_b);
            let point =
                |run: &ComparedRun| Some(Point { x: run.number as f64, y: figure(&run.evidence)?, interval: None });
            runs.filter_map(point).collect()
        };
        sides(points, compared, ["●", "○"])
    };
    let p99 = of(&|run| Some(run.p99_ns?.value.max(1) as f64));
    let rate = of(&|run| Some(run.ok_per_s()));
    let chart = |id, title, summary: &str, unit, lines| Chart {
        id,
        title,
        summary: summary.to_owned(),
        x: "run".to_owned(),
        unit,
        lines,
        ..Chart::default()
    };
    vec![
        chart("rounds-p99", "p99 of each run", "run by run", "ns", p99),
        chart("rounds", "Throughput of each run", "calls answered a second, run by run", "per_s", rate),
    ]
}
