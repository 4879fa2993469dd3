//! The runs behind a decision, each with its shape and a link to its page.

use brunt_decide::evidence::Evidence;
use brunt_decide::outline;
use brunt_plan::units::Clock;
use brunt_record::histogram::AtLeast;

use super::super::runs as figures;
use super::super::{leading, watched};
use super::Runs;
use super::drawing::{Axis, Chart, How, Line, Measured, Sign, plots};
use crate::markup::Html;
use crate::numbers::count;
use crate::page::{Cell, Column, Plots, Scale, Section, Table, Unit, percentile};

const HEIGHT: f64 = 110.0;

pub(super) fn section(evidence: &[(String, &Evidence)], found: Runs<'_>) -> Section {
    let mut section = Section::new("runs", "Runs behind this result");
    let numbers = found.numbers(evidence.len());
    let caption = match numbers {
        Some(_) if found.address.is_empty() => {
            "in the order in which they were made; open one to see its course, and the command that makes its whole page"
        }
        Some(_) => "in the order in which they were made; open one to see its course, its number leads to its page",
        None => "in the order in which they were made; open one to see its course",
    };
    let mut columns = vec![Column::words("run"), Column::figure("kept as"), Column::figure("ok/s")];
    columns.extend(["mean", "p50", "p99"].map(Column::time));
    columns.extend(["due", "ok", "failed"].map(Column::figure));
    columns.push(Column::words("measured"));
    let mut table = Table::new("runs", caption, columns);
    for (nth, (name, run)) in evidence.iter().enumerate() {
        let number = numbers.and_then(|numbers| numbers.get(nth)).copied();
        let kept = number.map_or_else(
            || Cell::new("-"),
            |number| {
                let href = (!found.address.is_empty()).then(|| format!("{}{number}", found.address));
                Cell::sorted(number.to_string(), number as f64).leading_to(href)
            },
        );
        let verdict = Cell::new(run.verdict.as_str()).classed(if run.is_trustworthy() { "" } else { "warning" });
        let cells = vec![
            Cell::new(name.as_str()),
            kept,
            Cell::sorted(figures::rate(run.ok_per_s), run.ok_per_s),
            time(run.mean_ns.map(|mean| mean.map(|ns| ns.round() as u64))),
            time(run.p50_ns),
            time(run.p99_ns),
            Cell::sorted(count(run.due), run.due as f64),
            Cell::sorted(count(run.ok), run.ok as f64),
            Cell::wrong(run.failed),
            verdict,
        ];
        let command = number.map(|number| found.command(number));
        let below = (run.outline.tails_ns.len() > 1 || command.is_some()).then(|| shape(run, nth, command));
        table.push_opening(format!("run-{}", nth + 1), cells, below);
    }
    section.tools.push(table.csv());
    table.write(&mut section.body);
    section
}

/// What was watched beside each of them: means, and the target's CPU time for each call. `None` without watched figures.
pub(super) fn watched(evidence: &[(String, &Evidence)]) -> Option<Section> {
    of_table("watched", "Watched", "means over each run", &watched::table(&by_run(evidence))?)
}

/// The figures with which the report of their protocol begins. `None` without such figures.
pub(super) fn leading(evidence: &[(String, &Evidence)]) -> Option<Section> {
    of_table("leading", "Figures of the protocol", "of each run", &leading::table(&by_run(evidence))?)
}

fn by_run<'a>(evidence: &[(String, &'a Evidence)]) -> Vec<(String, Vec<&'a Evidence>)> {
    evidence.iter().map(|(name, run)| (name.clone(), vec![*run])).collect()
}

/// A section with a table of words, whose first row names its columns.
fn of_table(id: &'static str, title: &str, caption: &str, rows: &[Vec<String>]) -> Option<Section> {
    let (head, rows) = rows.split_first()?;
    let names = head.iter().skip(1).map(Column::figure);
    let columns = std::iter::once(Column::words("run")).chain(names).collect();
    let mut table = Table::new(id, caption, columns);
    for row in rows {
        table.push(row.iter().map(|cell| Cell::new(cell.as_str())).collect());
    }
    let mut section = Section::new(id, title);
    section.tools.push(table.csv());
    table.write(&mut section.body);
    Some(section)
}

fn time(ns: Option<AtLeast<u64>>) -> Cell {
    ns.map_or_else(Cell::none, |ns| Cell::sorted(figures::time(Some(ns)), ns.value as f64))
}

/// A run's spectrum, its p99 over time, and the command that makes its page.
fn shape(run: &Evidence, nth: usize, command: Option<String>) -> Html {
    let mut html = Html::default();
    if let Some(command) = command {
        html.raw("<p class=\"command\">Its whole page: <code>").text(&command).raw("</code></p>");
    }
    let tails = run.outline.tails_ns.iter().enumerate();
    let tails = tails.map(|(place, ns)| Measured { x: 1.0 / outline::tail(place), y: (*ns).max(1) as f64 });
    html.raw("<div class=\"pair\">");
    spectrum(&format!("run-{nth}-spectrum"), vec![line("response", "one", tails.collect())]).write(&mut html);
    let p99s = run.outline.p99_ns.iter().enumerate();
    let p99s = p99s.filter_map(|(place, ns)| Some((middle(place, run.outline.stretch_ns), (*ns)?)));
    let p99s: Vec<_> = p99s.map(|(x, ns)| Measured { x, y: ns.max(1) as f64 }).collect();
    if p99s.len() > 1 {
        over_time(&format!("run-{nth}-p99"), vec![line("p99", "one", p99s)]).write(&mut html);
    }
    html.raw("</div>");
    html
}

/// The middle of a stretch, in seconds.
pub(super) fn middle(place: usize, stretch_ns: u64) -> f64 {
    (place as f64 + 0.5) * stretch_ns as f64 / 1e9
}

/// A line without points.
pub(super) fn line(name: &'static str, class: &'static str, places: Vec<Measured>) -> Line {
    Line { name: name.into(), class, how: How::Line, sign: Sign::Disc, places }
}

/// Response times by percentile.
pub(super) fn spectrum(id: &str, lines: Vec<Line>) -> Plots {
    let longest = lines.iter().filter_map(|line| line.places.last()).map(|place| place.x).fold(1.0, f64::max);
    let named = (0..=12).map(|power| 10_f64.powi(power)).chain([2.0]).filter(|calls| *calls <= longest * 1.001);
    let mut named: Vec<_> = named.map(|calls| (calls, one_in(calls))).collect();
    named.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut axis = Axis::through(lines.iter().flat_map(|line| &line.places).map(|place| place.x), "", one_in);
    axis.scale.low = 1.0;
    axis.named = named;
    of_times(id, "Latency spectrum", "response time by percentile", &axis, lines)
}

/// p99 by when calls were made.
pub(super) fn over_time(id: &str, lines: Vec<Line>) -> Plots {
    let all = || lines.iter().flat_map(|line| &line.places).map(|place| place.x);
    let clock: fn(f64) -> String = |seconds| Clock((seconds * 1e9) as u64).to_string();
    let mut axis = Axis::through(all(), "", clock);
    axis.scale = Scale::linear(0.0, all().fold(1e-3, f64::max) * 1.02);
    axis.named = axis.scale.round(5).into_iter().map(|seconds| (seconds, clock(seconds))).collect();
    of_times(id, "p99 over time", "of each stretch of a run", &axis, lines)
}

/// A small drawing of times.
fn of_times(id: &str, title: &'static str, note: &str, axis: &Axis, lines: Vec<Line>) -> Plots {
    let chart = Chart {
        title: title.into(),
        note: note.to_owned(),
        unit: Unit::Ns,
        is_logarithmic: true,
        height: HEIGHT,
        lines,
        limits: Vec::new(),
    };
    narrow(plots(id, axis, &[chart]))
}

/// `p50` of one in two, `p99.9` of one in a thousand.
pub(super) fn one_in(calls: f64) -> String {
    percentile(1.0 / calls)
}

/// A drawing with little room on its right.
pub(super) fn narrow(plots: Plots) -> Plots {
    Plots { is_narrow: true, ..plots }
}
