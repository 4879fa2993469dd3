//! How long calls took: a column for each time that was measured.

use brunt_judge::distribution::{Distribution, Quantile};
use brunt_judge::summary::Summary;
use brunt_judge::uncertainty::Interval;
use brunt_judge::verdict::Spoils;
use brunt_plan::units::Duration;
use brunt_record::catalogue::Counter;
use brunt_record::histogram::{AtLeast, QUANTILES};

use super::{WIDTH, verdict, wrapped};
use crate::numbers::{count, duration};
use crate::style::{Paint, Role};

/// The width of a column.
const COLUMN: usize = 11;
/// The width of the rows' names.
const NAME: usize = 10;

/// The width of what a time may be off, behind its column.
const OFF: usize = 13;

/// The share by which percentiles with and without calls that failed differ, so that both are shown.
const DIFFERS: f64 = 0.1;

/// One cell of the table: its text, and whether it is a lower bound or spoiled.
struct Figure {
    text: String,
    is_doubtful: bool,
    off: String,
}

impl Figure {
    fn plain(text: String) -> Self {
        Self { text, is_doubtful: false, off: String::new() }
    }

    fn of(value: AtLeast<u64>, interval: Option<&Interval>) -> Self {
        let is_spoiled = interval.is_some_and(|interval| interval.is_spoiled);
        let off = interval
            .filter(|_| !value.at_least)
            .map_or(String::new(), |interval| Duration(value.value).within(interval.low_ns, interval.high_ns));
        Self { text: duration(value), is_doubtful: value.at_least || is_spoiled, off }
    }
}

/// What spoils times.
const SPOILS: [Spoils; 2] = [Spoils::Latency, Spoils::Arrivals];

/// The rows that tell most.
const BRIEF: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

pub(super) fn section(summary: &Summary, paint: Paint) -> Vec<String> {
    let mut lines = table(summary, paint, |_| true);
    if !lines.is_empty() {
        let notes = legend(&columns(summary)).into_iter().chain(notes(summary));
        lines.extend(notes.map(|line| paint.faint(line)));
        lines.extend(verdict::findings(summary, &SPOILS, paint));
    }
    lines
}

/// Without the rows between, and with the run `over_time`.
pub(super) fn brief(summary: &Summary, over_time: impl Iterator<Item = String>, paint: Paint) -> Vec<String> {
    let mut lines = table(summary, paint, |row| BRIEF.contains(&row));
    lines.extend(over_time);
    lines.extend(verdict::findings(summary, &SPOILS, paint));
    lines
}

fn table(summary: &Summary, paint: Paint, is_shown: impl Fn(&str) -> bool) -> Vec<String> {
    let columns = columns(summary);
    if columns.is_empty() {
        return Vec::new();
    }
    // Beside the first column, which is what is looked for, there is room for how far it may be off.
    let offs = if has_room(&columns) { first_offs(&columns) } else { 0 };
    let is_spoiled = verdict::is_spoiled(summary, &SPOILS);
    let gap = |at: usize| if at == 0 && offs > 0 { " ".repeat(OFF) } else { String::new() };
    let names = columns.iter().enumerate().map(|(at, (name, _))| format!("{name:>COLUMN$}{}", gap(at)));
    let title = format!("{:<NAME$}", if is_spoiled { "Latency ✗" } else { "Latency" });
    let title = if is_spoiled { paint.bad(title) } else { paint.strong(title) };
    let mut lines = vec![format!("{title}{}", paint.faint(names.collect::<String>().trim_end()))];
    for (name, role, figure) in rows().into_iter().filter(|(name, ..)| is_shown(name)) {
        let cells = columns.iter().enumerate().map(|(at, (_, times))| {
            let Figure { text, is_doubtful, off } = figure(times);
            let role = if is_doubtful { Role::Warning } else { role };
            let off = if at > 0 || offs == 0 {
                String::new()
            } else if columns.len() > 1 {
                paint.faint(format!(" {off:<width$}", width = OFF - 1))
            } else if off.is_empty() {
                off
            } else {
                paint.faint(format!(" {off}"))
            };
            format!("{}{off}", paint.as_(role, format!("{text:>COLUMN$}")))
        });
        lines.push(format!("{}{}", paint.faint(format!("  {name:<8}")), cells.collect::<String>()));
    }
    lines
}

type Row = (&'static str, Role, Box<dyn Fn(&Distribution) -> Figure>);

fn rows() -> Vec<Row> {
    let rounded = |value: AtLeast<f64>| value.map(|ns| ns.round() as u64);
    let mut rows: Vec<Row> = vec![
        ("mean", Role::Plain, Box::new(move |times| Figure::of(rounded(times.mean), times.mean_interval.as_ref()))),
        ("stdev", Role::Plain, Box::new(move |times| Figure::of(rounded(times.stdev), None))),
        ("min", Role::Plain, Box::new(|times| Figure::plain(Duration(times.min).to_string()))),
    ];
    for (at, (name, _)) in QUANTILES.iter().enumerate() {
        let role = if matches!(*name, "p50" | "p99") { Role::Strong } else { Role::Plain };
        rows.push((*name, role, Box::new(move |times| quantile(times, at))));
    }
    rows.push(("max", Role::Plain, Box::new(|times| Figure::of(times.max, None))));
    rows.push(("count", Role::Faint, Box::new(|times| Figure::plain(count(times.count)))));
    rows
}

fn quantile(times: &Distribution, at: usize) -> Figure {
    let figure = |quantile: &Quantile| Figure::of(quantile.value(), quantile.interval.as_ref());
    times.quantiles.get(at).map_or_else(|| Figure::plain(String::new()), figure)
}

/// Whether what a time may be off fits behind the first column.
fn has_room(columns: &[(&str, &Distribution)]) -> bool {
    NAME + OFF + COLUMN * columns.len() <= WIDTH
}

/// How many figures of the first column show how far they may be off.
fn first_offs(columns: &[(&str, &Distribution)]) -> usize {
    let Some((_, times)) = columns.first() else { return 0 };
    (0..QUANTILES.len()).filter(|at| !quantile(times, *at).off.is_empty()).count()
}

/// The times that tell something: service time only where calls could wait before they were sent.
fn columns(summary: &Summary) -> Vec<(&'static str, &Distribution)> {
    let times = &summary.times;
    let service = times.service.as_ref().filter(|_| summary.is_open() || summary.plan.reconnect);
    let columns = [
        ("response", times.response.as_ref()),
        ("service", service),
        ("first byte", times.first_byte.as_ref()),
        ("connect", times.connect.as_ref()),
        ("TLS", times.tls.as_ref()),
        ("handshake", times.handshake.as_ref()),
        ("lag", times.lag.as_ref()),
    ];
    columns.into_iter().filter_map(|(name, times)| Some((name, times?))).collect()
}

/// What the marks behind the first column mean, or what would stand there if there were room.
fn legend(columns: &[(&str, &Distribution)]) -> Vec<String> {
    let mut notes = Vec::new();
    let first = columns.first().map(|(_, times)| *times).filter(|_| first_offs(columns) > 0);
    if let Some(times) = first.filter(|_| !has_room(columns)) {
        let off = |at: usize, name: &str| {
            let off = quantile(times, at).off;
            (!off.is_empty()).then(|| format!("{name} {off}"))
        };
        let offs: Vec<_> = QUANTILES.iter().enumerate().filter_map(|(at, (name, _))| off(at, name)).collect();
        notes.extend(wrapped("  ", "  ", &format!("response {}", offs.join(", ")), WIDTH));
    }
    if let Some(times) = first {
        let has_sampling = times.mean_interval.is_some_and(|interval| interval.sampling_low_ns.is_some());
        let text = if has_sampling {
            "± or from–to: 95 % sampling and brunt's own delays"
        } else {
            "from–to: what brunt's own delays leave open"
        };
        notes.push(format!("  {text}"));
    }
    notes
}

/// How calls without success bear on the percentiles: by how much these differ from those of the others.
fn without_success(summary: &Summary) -> Option<String> {
    let (ok, failed) = (summary.times.ok.as_ref()?, summary.times.not_ok.as_ref()?);
    let p99 = summary.times.response.as_ref()?.quantile("p99")?.value;
    let ok_p99 = ok.quantile("p99")?.value;
    let differs = p99.abs_diff(ok_p99) as f64 > DIFFERS * ok_p99 as f64;
    let alone = if differs { format!("; without them p99 is {} (ok.p99)", Duration(ok_p99)) } else { String::new() };
    let p50 = failed.quantile("p50").map_or(String::new(), |p50| format!(", p50 {}", duration(p50)));
    Some(format!("failed calls count as longer than they took: {}{p50}{alone}", count(failed.count)))
}

fn notes(summary: &Summary) -> Vec<String> {
    let total = &summary.total;
    let mut notes = Vec::new();
    if let Some(text) = without_success(summary) {
        notes.extend(wrapped("  ", "  ", &text, WIDTH));
    }
    if total.numbers.get(Counter::Unfinished) + total.numbers.get(Counter::Unsent) > 0 {
        let text = format!(
            "≥ at least: {} unfinished and {} unsent calls count with the time they had waited",
            count(total.numbers.get(Counter::Unfinished)),
            count(total.numbers.get(Counter::Unsent))
        );
        notes.extend(wrapped("  ", "  ", &text, WIDTH));
    }
    notes
}
