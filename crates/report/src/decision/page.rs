//! What the page is given of a decision: what was found, in the words of the other views; their tables; what the charts
//! show; and the runs that it rests on.

use std::io;
use std::path::Path;

use brunt_decide::capacity::{Capacity, Length, Outcome};
use brunt_decide::compare::Compared;
use brunt_decide::evidence::Evidence;
use brunt_decide::outline::{self, Outline};
use brunt_decide::sweep::{Law, Sweep};
use brunt_plan::plan::{Origin, Plan};
use brunt_record::histogram::AtLeast;
use schemars::JsonSchema;
use serde::Serialize;

use super::table::{Cell, Table};
use super::{Decision, capacity, comparison, runs, sweep};
use crate::html;
use crate::numbers::{count, counted};
use crate::style::Role;

/// A decision as the page shows it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Decision")]
pub(crate) struct Page {
    #[schemars(extend("const" = "decision"))]
    kind: &'static str,
    /// How far it is, while it goes on.
    live: Option<String>,
    brunt_version: &'static str,
    title: String,
    /// What its user calls it, and the command that repeats it.
    origin: Origin,
    how: Vec<String>,
    found: Vec<Piece>,
    tables: Vec<Tabled>,
    charts: Vec<Chart>,
    /// When its first run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_unix_ms: Option<u64>,
    /// The shape of each run, in the order of the table of runs.
    outlines: Vec<Outline>,
    /// The command that makes the page of each, where they are kept.
    commands: Vec<String>,
}

/// Where the runs of a decision can be found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Runs<'a> {
    /// The numbers that they are kept under, in the order in which they were made; fewer than there are where some were not
    /// kept.
    pub kept: &'a [i64],
    /// What stands before a number in the address of a run's page, where such pages are served; else empty.
    pub address: &'a str,
    /// The file that they are kept in, where it is not the usual one.
    pub store: Option<&'a Path>,
}

impl Runs<'_> {
    /// The number of each run; none where some were not kept, so that which is which is not known.
    fn numbers(&self, of: usize) -> Option<&[i64]> {
        (self.kept.len() == of).then_some(self.kept)
    }

    /// The command that makes the page of a run.
    fn command(&self, number: i64) -> String {
        let store = self.store.map(|path| path.to_string_lossy().into_owned());
        let store = store.map(|path| format!(" --store '{}'", path.replace('\'', "'\\''")));
        format!("brunt report {number}{} -o run-{number}.html", store.unwrap_or_default())
    }
}

/// A text, and how it is coloured.
#[derive(Debug, Serialize, JsonSchema)]
struct Piece {
    text: String,
    role: &'static str,
    /// Where it leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    href: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Tabled {
    id: &'static str,
    title: &'static str,
    caption: String,
    head: Vec<&'static str>,
    rows: Vec<Vec<Piece>>,
}

/// Lines and points over a value.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Chart {
    id: &'static str,
    title: &'static str,
    summary: String,
    /// What the x-axis is of; where it has names, they stand at 0, 1, 2, ….
    x: String,
    /// `percentile` where a place is one call in so many, `time` where it is seconds; else a plain number.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(extend("enum" = ["percentile", "time"]))]
    x_is: &'static str,
    names: Vec<String>,
    x_is_logarithmic: bool,
    y_is_logarithmic: bool,
    /// `ns`, `per_s` or `ratio`.
    #[schemars(extend("enum" = ["ns", "per_s", "ratio"]))]
    unit: &'static str,
    lines: Vec<Line>,
    /// What is marked on the x-axis: where, and what it is.
    marks: Vec<(f64, String)>,
    /// A value that others are held against.
    level: Option<f64>,
    /// Thresholds on what is shown, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    label: &'static str,
    #[schemars(extend("enum" = ["one", "two", "three", "bad", "faint"]))]
    colour: &'static str,
    /// `line`, `points` or `dashed`.
    #[schemars(extend("enum" = ["line", "points", "dashed"]))]
    how: &'static str,
    /// `●`, `✕` or `○`: how its points are told from others without colours.
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schemars(extend("enum" = ["●", "✕", "○"]))]
    mark: &'static str,
    points: Vec<Point>,
}

/// A point, with the ends of its interval where it has one.
#[derive(Debug, Serialize, JsonSchema)]
struct Point {
    x: f64,
    y: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<(f64, f64)>,
}

const fn named(role: Role) -> &'static str {
    match role {
        Role::Plain | Role::Chart => "",
        Role::Strong => "strong",
        Role::Faint => "faint",
        Role::Good => "good",
        Role::Warning => "warning",
        Role::Bad => "bad",
    }
}

fn text(text: impl Into<String>, role: Role) -> Piece {
    Piece { text: text.into(), role: named(role), href: None }
}

fn tabled(id: &'static str, title: &'static str, caption: impl Into<String>, table: &Table) -> Tabled {
    let (head, rows) = table.parts();
    let rows = rows.iter().map(|row| row.iter().map(|cell| text(cell.text.replace("**", ""), cell.role)).collect());
    Tabled { id, title, caption: caption.into(), head: head.to_vec(), rows: rows.collect() }
}

/// What the page shows of `decision` as JSON in a line; `live` says how far it is, where it goes on.
pub(super) fn data(decision: Decision<'_>, found: Runs<'_>, live: Option<String>) -> io::Result<String> {
    let mut page = match decision {
        Decision::Sweep(plan, sweep) => of_sweep(plan, sweep),
        Decision::Capacity(plan, capacity) => of_capacity(plan, capacity, live.is_none()),
        Decision::Comparison(compared) => of_comparison(compared),
    };
    let evidence = evidence(decision);
    if !evidence.is_empty() {
        let (role, verdicts) = match decision {
            Decision::Capacity(_, capacity) => capacity::verdict(capacity),
            _ => runs::verdicts(evidence.iter().map(|(_, run)| *run)),
        };
        page.found.push(text(verdicts, role));
        page.tables.push(rested_on(&evidence, found));
        page.started_unix_ms = decision.started_unix_ms();
        let numbers = found.numbers(evidence.len()).into_iter().flatten();
        page.commands = numbers.map(|number| found.command(*number)).collect();
        page.outlines = evidence.iter().map(|(_, run)| run.outline.clone()).collect();
    }
    page.found.extend(decision.losses().iter().map(|loss| text(loss.as_str(), Role::Warning)));
    page.live = live;
    page.origin = decision.origin().clone();
    html::embedded(&page)
}

fn page(title: String, how: Vec<String>) -> Page {
    Page {
        kind: "decision",
        live: None,
        brunt_version: env!("CARGO_PKG_VERSION"),
        title,
        origin: Origin::default(),
        how,
        found: Vec::new(),
        tables: Vec::new(),
        charts: Vec::new(),
        started_unix_ms: None,
        outlines: Vec::new(),
        commands: Vec::new(),
    }
}

fn of_sweep(plan: &Plan, sweep: &Sweep) -> Page {
    let mut page = page(format!("sweep {} {}", sweep.axis.name, plan.target.url()), vec![sweep::how(plan)]);
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
        let point = |step: &brunt_decide::sweep::Step| {
            Some(Point { x: step.value as f64, y: of(step.evidence.as_ref()?)?, interval: None })
        };
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

/// The plan's thresholds on these figures of all calls, as they are written.
fn limits(plan: &Plan, figures: &[&str]) -> Vec<String> {
    let texts = plan.thresholds.iter().map(ToString::to_string);
    let is_of = |text: &str, figure: &str| {
        text.trim().strip_prefix(figure).is_some_and(|rest| rest.trim_start().starts_with('<'))
    };
    texts.filter(|text| figures.iter().any(|figure| is_of(text, figure))).collect()
}

/// The curve of the law, X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), over what was tried.
fn fitted(sweep: &Sweep, fit: &brunt_decide::sweep::Fit) -> Vec<Point> {
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

fn of_capacity(plan: &Plan, capacity: &Capacity, is_over: bool) -> Page {
    let how = vec![capacity::how(plan), format!("to be met: {}", capacity::criteria(plan))];
    let mut page = page(format!("find {}", plan.target.url()), how);
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
        brunt_decide::capacity::Answer::Between { low_per_s, high_per_s, .. } => {
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

fn of_comparison(compared: &Compared) -> Page {
    let mut how = vec![format!("A: {}", compared.a), format!("B: {}", compared.b)];
    how.extend(Some(compared.how.clone()).filter(|how| !how.is_empty()));
    let mut page = page("compare".to_owned(), how);
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
    let point = |(i, d): (usize, &brunt_decide::compare::Difference)| Point {
        x: i as f64,
        y: d.ratio,
        interval: Some((d.low_ratio, d.high_ratio)),
    };
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
            let point = |run: &brunt_decide::compare::ComparedRun| {
                Some(Point { x: run.number as f64, y: figure(&run.evidence)?, interval: None })
            };
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

/// What was decided, in a sentence.
pub fn conclusion(decision: Decision<'_>) -> String {
    match decision {
        Decision::Sweep(_, sweep) => sweep::law(sweep).into_iter().next().map_or(String::new(), |(_, text)| text),
        Decision::Capacity(_, capacity) => capacity::sentence(capacity).0,
        Decision::Comparison(compared) => comparison::sentences(compared).join("; "),
    }
}

/// The runs that a decision rests on, and what they are of.
fn evidence(decision: Decision<'_>) -> Vec<(String, &Evidence)> {
    match decision {
        Decision::Sweep(_, sweep) => {
            let of = |step: &'_ brunt_decide::sweep::Step| format!("{} {}", sweep.axis.name, count(step.value));
            sweep.steps.iter().filter_map(|step| Some((of(step), step.evidence.as_ref()?))).collect()
        }
        Decision::Capacity(_, capacity) => {
            let length = |length| if length == Length::Full { "full" } else { "short" };
            let each = (1..).zip(&capacity.trials);
            let of = |(n, trial): (u32, &'_ brunt_decide::capacity::Trial)| {
                format!("trial {n}, {}/s, {}", runs::rate(trial.rate_per_s), length(trial.length))
            };
            each.map(|(n, trial)| (of((n, trial)), &trial.evidence)).collect()
        }
        Decision::Comparison(compared) => {
            let side = |is_b| if is_b { "B" } else { "A" };
            compared.runs.iter().map(|run| (format!("{} {}", side(run.is_b), run.number), &run.evidence)).collect()
        }
    }
}

fn rested_on(evidence: &[(String, &Evidence)], found: Runs<'_>) -> Tabled {
    let numbers = found.numbers(evidence.len());
    let mut table =
        Table::new(["run", "kept as", "answered/s", "mean", "p50", "p99", "due", "ok", "failed", "verdict"]);
    for (i, (of, run)) in evidence.iter().enumerate() {
        let number = numbers.and_then(|numbers| numbers.get(i));
        let verdict = Cell::from(run.verdict.as_str());
        table.push([
            of.as_str().into(),
            number.map_or("-".to_owned(), i64::to_string).into(),
            runs::rate(run.ok_per_s()).into(),
            runs::time(run.mean_ns.map(|mean| mean.map(|ns| ns.round() as u64))).into(),
            runs::time(run.p50_ns).into(),
            runs::time(run.p99_ns).into(),
            count(run.due).into(),
            count(run.ok).into(),
            runs::failed(run),
            verdict.as_(if run.is_trustworthy() { Role::Good } else { Role::Warning }),
        ]);
    }
    let caption = match numbers {
        Some(_) if found.address.is_empty() => {
            "in the order in which they were made; open one to see its course, and the command that makes its whole page"
        }
        Some(_) => "in the order in which they were made; open one to see its course, its number leads to its page",
        None => "in the order in which they were made; open one to see its course",
    };
    let mut tabled = tabled("runs", "Runs behind this result", caption, &table);
    if !found.address.is_empty() {
        for (row, number) in tabled.rows.iter_mut().zip(numbers.unwrap_or_default()) {
            if let Some(cell) = row.get_mut(1) {
                cell.href = Some(format!("{}{number}", found.address));
            }
        }
    }
    tabled
}

/// What the runs behind `decision` are called, in the order in which they were made.
pub fn names_of_runs(decision: Decision<'_>) -> Vec<String> {
    evidence(decision).into_iter().map(|(name, _)| name).collect()
}
