//! What the page is given of a decision: what was found, in the words of the other views; their tables; what the charts
//! show; and the runs that it rests on.

mod capacity;
mod comparison;
mod sweep;

use std::io;
use std::path::Path;

use brunt_decide::capacity::{Length, Trial};
use brunt_decide::evidence::Evidence;
use brunt_decide::outline::Outline;
use brunt_decide::sweep::Step;
use brunt_plan::plan::{Origin, Plan};
use schemars::JsonSchema;
use serde::Serialize;

use super::table::{Cell, Table};
use super::{Decision, runs};
use crate::html;
use crate::numbers::count;
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
    tables: Vec<PageTable>,
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
#[schemars(rename = "Tabled")]
struct PageTable {
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

fn tabled(id: &'static str, title: &'static str, caption: impl Into<String>, table: &Table) -> PageTable {
    let (head, rows) = table.parts();
    let rows = rows.iter().map(|row| row.iter().map(|cell| text(cell.text.replace("**", ""), cell.role)).collect());
    PageTable { id, title, caption: caption.into(), head: head.to_vec(), rows: rows.collect() }
}

/// What the page shows of `decision` as JSON in a line; `live` says how far it is, where it goes on.
pub(super) fn data(decision: Decision<'_>, found: Runs<'_>, live: Option<String>) -> io::Result<String> {
    let mut page = match decision {
        Decision::Sweep(plan, sweep) => sweep::page(plan, sweep),
        Decision::Capacity(plan, capacity) => capacity::page(plan, capacity, live.is_none()),
        Decision::Comparison(compared) => comparison::page(compared),
    };
    let evidence = evidence(decision);
    if !evidence.is_empty() {
        let (role, verdicts) = match decision {
            Decision::Capacity(_, capacity) => super::capacity::verdict(capacity),
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

/// The plan's thresholds on these figures of all calls, as they are written.
fn limits(plan: &Plan, figures: &[&str]) -> Vec<String> {
    let texts = plan.thresholds.iter().map(ToString::to_string);
    let is_of = |text: &str, figure: &str| {
        text.trim().strip_prefix(figure).is_some_and(|rest| rest.trim_start().starts_with('<'))
    };
    texts.filter(|text| figures.iter().any(|figure| is_of(text, figure))).collect()
}

/// What was decided, in a sentence.
pub fn conclusion(decision: Decision<'_>) -> String {
    match decision {
        Decision::Sweep(_, sweep) => {
            super::sweep::law(sweep).into_iter().next().map_or(String::new(), |(_, text)| text)
        }
        Decision::Capacity(_, capacity) => super::capacity::sentence(capacity).0,
        Decision::Comparison(compared) => super::comparison::sentences(compared).join("; "),
    }
}

/// The runs that a decision rests on, and what they are of.
fn evidence(decision: Decision<'_>) -> Vec<(String, &Evidence)> {
    match decision {
        Decision::Sweep(_, sweep) => {
            let of = |step: &'_ Step| format!("{} {}", sweep.axis.name, count(step.value));
            sweep.steps.iter().filter_map(|step| Some((of(step), step.evidence.as_ref()?))).collect()
        }
        Decision::Capacity(_, capacity) => {
            let length = |length| if length == Length::Full { "full" } else { "short" };
            let each = (1..).zip(&capacity.trials);
            let of = |(n, trial): (u32, &'_ Trial)| {
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

fn rested_on(evidence: &[(String, &Evidence)], found: Runs<'_>) -> PageTable {
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
