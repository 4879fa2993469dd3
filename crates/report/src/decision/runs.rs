//! The figures of single runs, as every view of several shows them.

use std::fmt::Display;

use brunt_decide::evidence::Evidence;
use brunt_judge::verdict::Judgement;
use brunt_plan::plan::{Origin, Plan};
use brunt_plan::units::{Duration, ExactDuration, Number};
use brunt_record::histogram::AtLeast;

use super::table::Cell;
use crate::csv::Row;
use crate::dates::iso_8601;
use crate::numbers;
use crate::style::Role;

/// The columns of a run in CSV, after those that name the run.
pub(super) const COLUMNS: [&str; 22] = [
    "measured_s",
    "due",
    "answered",
    "ok",
    "failed",
    "error_ratio",
    "answered_per_s",
    "mean_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99_9_ns",
    "service_p50_ns",
    "waited_for_connection",
    "behind_ratio",
    "at_least",
    "failure",
    "trustworthy",
    "verdict",
    "started",
    "name",
    "tags",
];

/// The first line of CSV: what names a run, [`COLUMNS`], and own figures.
pub(super) fn head(names: &[&str], own: &[String]) -> String {
    let mut row = Row::default();
    for name in names.iter().chain(&COLUMNS) {
        row.put(name);
    }
    for name in own {
        row.put(name);
    }
    row.line()
}

/// Puts the figures of a run into a row, with the `origin` of the decision over it.
pub(super) fn put(row: &mut Row, run: &Evidence, origin: &Origin) {
    row.put(run.measured_ns as f64 / 1e9);
    for n in [run.due, run.answered, run.ok, run.failed] {
        row.put(n);
    }
    row.put(format_args!("{:.6}", run.error_rate));
    row.put(format_args!("{:.3}", run.answered_per_s));
    let times = [
        ("mean_ns", run.mean_ns.map(|mean| mean.map(|ns| ns.round() as u64))),
        ("p50_ns", run.p50_ns),
        ("p90_ns", run.p90_ns),
        ("p99_ns", run.p99_ns),
        ("p99_9_ns", run.p99_9_ns),
        ("service_p50_ns", run.service_p50_ns),
    ];
    for (_, time) in times {
        row.put(time.map_or(String::new(), |time| time.value.to_string()));
    }
    row.put(run.waited_for_connection);
    row.put(format_args!("{:.4}", run.behind_ratio));
    let bounds = times.iter().filter(|(_, time)| time.is_some_and(|time| time.at_least)).map(|(name, _)| *name);
    let own = run.leading.iter().filter(|figure| figure.at_least).map(super::leading::column);
    row.put(bounds.map(str::to_owned).chain(own).collect::<Vec<_>>().join(" "));
    row.put(&run.failure);
    row.put(u8::from(run.is_trustworthy()));
    row.put(&run.verdict);
    row.put(iso_8601(run.started_unix_ms / 1000));
    row.put(origin.name.as_deref().unwrap_or(""));
    row.put(origin.tags_in_a_line());
}

/// A time, or a dash where nothing was measured.
pub(super) fn time(ns: Option<AtLeast<u64>>) -> String {
    ns.map_or("-".to_owned(), numbers::duration)
}

/// Calls a second: whole where there are many.
pub(super) fn rate(per_s: f64) -> String {
    if per_s >= 100.0 {
        numbers::count(per_s.round() as u64)
    } else {
        Number((per_s * 100.0).round() / 100.0).to_string()
    }
}

/// How many calls did not succeed.
pub(super) fn failed(run: &Evidence) -> Cell {
    let cell = Cell::from(numbers::count(run.failed));
    if run.failed > 0 { cell.as_(Role::Bad) } else { cell }
}

/// What runs put load on: the target, with the script's file before it where users carry one out.
pub(super) fn subject(plan: &Plan) -> String {
    let script = plan.scenarios.as_ref().and_then(|scenarios| scenarios.files.first());
    let words = script.map(|file| file.name.clone()).into_iter().chain([plan.target.url()]);
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("  ")
}

/// Such as `5s each after 1s of warm-up`; without a length, that of the script.
pub(super) fn lengths(duration_ns: Option<u64>, requests: Option<u64>, warmup_ns: u64) -> String {
    let length = duration_ns.map(|ns| ExactDuration(ns).to_string());
    let requests = requests.map(|n| numbers::counted(n, "request"));
    let text = [length, requests].into_iter().flatten().collect::<Vec<_>>().join(" or ");
    if text.is_empty() {
        return "as long as the script takes".to_owned();
    }
    if warmup_ns > 0 { format!("{text} each after {} of warm-up", ExactDuration(warmup_ns)) } else { text + " each" }
}

/// A line on whether the runs can be believed.
pub(super) fn verdicts<'a>(runs: impl IntoIterator<Item = &'a Evidence>) -> (Role, String) {
    let runs: Vec<_> = runs.into_iter().collect();
    let of = |judgement: Judgement| runs.iter().filter(|run| run.judgement == judgement).count();
    let Some(worst) = runs.iter().find(|run| !run.is_trustworthy()) else {
        // Without praise: the target may have failed in every run.
        return (Role::Plain, format!("all {} runs were measured well", runs.len()));
    };
    let parts = [
        (of(Judgement::GeneratorBound), "limited by brunt"),
        (of(Judgement::LatencyUnreliable), "with unreliable latency"),
        (of(Judgement::NothingMeasured), "without an answer"),
    ];
    let parts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let such = if runs.len() == 1 { "" } else { "one of them: " };
    let line = format!(
        "! of {}, {}; {such}{}",
        numbers::counted(runs.len() as u64, "run"),
        parts.join(" and "),
        worst.verdict
    );
    (Role::Warning, line)
}

/// Nanoseconds as people read them.
pub(super) fn ns(ns: u64) -> impl Display {
    Duration(ns)
}
