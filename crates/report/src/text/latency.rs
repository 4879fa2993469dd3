//! How long calls took: a row for each time that was measured.

use brunt_judge::distribution::Distribution;
use brunt_judge::distribution::TimeFigure::{self, At, Max, Mean, Min, Stdev};
use brunt_judge::summary::Summary;
use brunt_judge::uncertainty::ConfidenceInterval;
use brunt_judge::verdict::Spoils;
use brunt_plan::units::{Clock, Duration};
use brunt_record::catalogue::Counter;
use brunt_record::histogram::Percentile;
use brunt_record::slowest::TracedCall;

use super::fitting::{Rank, Section};
use super::{WIDTH, verdict, wrapped};
use crate::numbers::{brief, clean, count, counted, duration};
use crate::style::{Paint, Role};

/// The width of a column of times.
const COLUMN: usize = 11;
/// The width of the rows' names, and of the numbers of calls.
const NAME: usize = 13;
const CALLS: usize = 11;
/// The most traced calls that have a line; JSON has a few more.
const MOST_SLOWEST: usize = 3;
/// The share by which two times differ, so that both are shown.
const DIFFERS: f64 = 0.1;
/// The uncertainty, as a share of a figure, from which on its interval is shown among the main figures.
const NOTED: f64 = 0.05;
/// What spoils times.
const SPOILS: [Spoils; 2] = [Spoils::Latency, Spoils::Arrivals];

/// The main figures.
const FIRST: [TimeFigure; 5] =
    [At(Percentile::P50), At(Percentile::P90), At(Percentile::P99), At(Percentile::P99_9), Max];
/// The others.
const FURTHER: [TimeFigure; 6] = [Mean, Stdev, Min, At(Percentile::P75), At(Percentile::P95), At(Percentile::P99_99)];

/// A row of the table.
struct Row<'a> {
    name: &'static str,
    times: &'a Distribution,
    /// The calls that it covers.
    calls: u64,
    /// Whether the row covers all calls; its p50 and p99 stand out.
    is_whole: bool,
    rank: Rank,
}

pub(super) fn section(summary: &Summary, paint: Paint, verbose: bool) -> Section {
    let mut section = Section::new("Latency");
    let rows = rows(summary, verbose);
    if rows.is_empty() {
        return section;
    }
    let is_spoiled = summary.verdict.spoils(&SPOILS);
    let title = format!("{:<NAME$}", if is_spoiled { "Latency ✗" } else { "Latency" });
    let title = if is_spoiled { paint.bad(title) } else { paint.strong(title) };
    let calls = format!("{:>CALLS$}", "calls");
    section = section.headed(format!("{title}{}", paint.faint(format!("{calls}{}", names(&FIRST)))));
    for row in &rows {
        let calls = paint.faint(format!("{:>CALLS$}", count(row.calls)));
        section.add(row.rank, [format!("{}{calls}{}", row.label(paint), row.cells(&FIRST, paint))]);
        let is_noted = verbose || FIRST.iter().any(|figure| row.off(*figure) > NOTED);
        let ends = if is_noted { row.ends(&FIRST, CALLS, paint) } else { Vec::new() };
        section.add_whole(row.rank, &ends);
    }
    if verbose {
        section.add(Rank::Minor, [paint.faint(format!("{}{}", " ".repeat(NAME), names(&FURTHER)))]);
        for row in &rows {
            section.add(Rank::Minor, [format!("{}{}", row.label(paint), row.cells(&FURTHER, paint))]);
            section.add(Rank::Minor, row.ends(&FURTHER, 0, paint));
        }
    }
    section.add(Rank::Minor, slowest(summary, paint));
    section.add(Rank::Note, notes(summary, &rows, verbose).into_iter().map(|line| paint.faint(line)));
    verdict::findings(&mut section, summary, &SPOILS, paint);
    section
}

/// The slowest traced calls: their times, when they were due, and the ids of their traces.
fn slowest(summary: &Summary, paint: Paint) -> Vec<String> {
    let label = |nth: usize| paint.faint(format!("{:<NAME$}", if nth == 0 { "  slowest" } else { "" }));
    let calls = summary.total.slowest.calls().iter().take(MOST_SLOWEST).enumerate();
    let line = |(nth, call): (usize, &TracedCall)| {
        let took = format!("{:>CALLS$}", Duration(call.took_ns).to_string());
        let request = if call.request.is_empty() { String::new() } else { format!(", {}", brief(&call.request)) };
        format!("{}{took} at {}, trace {}{request}", label(nth), Clock(call.due_ns), clean(&call.trace_id))
    };
    calls.map(line).collect()
}

fn names(columns: &[TimeFigure]) -> String {
    columns.iter().map(|figure| format!("{:>COLUMN$}", figure.name())).collect::<Vec<_>>().concat()
}

/// The relevant times: calls by success where some had none, service time where calls waited before they were sent.
fn rows<'a>(summary: &'a Summary, verbose: bool) -> Vec<Row<'a>> {
    let times = &summary.times;
    let waits = |service: &Distribution| times.response.as_ref().is_none_or(|response| differ(response, service));
    let service = times.service.as_ref().filter(|_| summary.is_open() || summary.plan.reconnect);
    let service = service.filter(|service| verbose || waits(service));
    let of_each_call = verbose || summary.plan.reconnect;
    // Where reads are sampled, times are known of some calls by success, and the calls themselves are counted.
    let numbers = &summary.total.numbers;
    let never_ended = numbers.get(Counter::Unfinished) + numbers.get(Counter::Unsent) + numbers.get(Counter::Unknown);
    let ok_calls = numbers.get(Counter::Due).saturating_sub(summary.not_ok);
    let failed_calls = summary.not_ok.saturating_sub(never_ended);
    let row =
        |name, times: &'a Distribution| Row { name, times, calls: times.count, is_whole: false, rank: Rank::Minor };
    let parted = |times: &'a Option<Distribution>| times.as_ref().filter(|_| is_parted(summary));
    let named = |name, times: Option<&'a Distribution>| times.map(|times| row(name, times));
    let rows = [
        times.response.as_ref().map(|times| Row { is_whole: true, rank: Rank::Always, ..row("response", times) }),
        parted(&times.ok).map(|times| Row { calls: ok_calls, rank: Rank::Figure, ..row("  ok", times) }),
        parted(&times.not_ok).map(|times| Row { calls: failed_calls, rank: Rank::Figure, ..row("  failed", times) }),
        service.map(|times| Row { rank: Rank::Figure, ..row("service", times) }),
        named("first byte", times.first_byte.as_ref().filter(|_| verbose)),
        named("connect", times.connect.as_ref().filter(|_| of_each_call)),
        named("TLS", times.tls.as_ref().filter(|_| of_each_call)),
        named("handshake", times.handshake.as_ref().filter(|_| of_each_call)),
        named("lag", times.lag.as_ref().filter(|_| verbose)),
    ];
    rows.into_iter().flatten().collect()
}

/// Whether times stand in two parts, of calls with success and of the others.
fn is_parted(summary: &Summary) -> bool {
    summary.times.ok.is_some() && summary.times.not_ok.is_some()
}

/// Whether two distributions differ in one of the main figures.
fn differ(one: &Distribution, other: &Distribution) -> bool {
    let values = |of| Some((one.quantile(of)?.value, other.quantile(of)?.value));
    let is_apart = |(one, other): (u64, u64)| one.abs_diff(other) as f64 > DIFFERS * one.min(other) as f64;
    [Percentile::P50, Percentile::P99].into_iter().filter_map(values).any(is_apart)
}

impl Row<'_> {
    fn label(&self, paint: Paint) -> String {
        paint.faint(format!("{:<NAME$}", format!("  {}", self.name)))
    }

    fn cells(&self, columns: &[TimeFigure], paint: Paint) -> String {
        let cell = |figure: &TimeFigure| {
            let Some((value, interval)) = self.times.figure(*figure) else { return " ".repeat(COLUMN) };
            let is_spoiled = interval.is_some_and(|interval| interval.is_spoiled);
            let role = if value.at_least || is_spoiled {
                Role::Warning
            } else if self.is_whole && matches!(figure, At(Percentile::P50 | Percentile::P99)) {
                Role::Strong
            } else {
                Role::Plain
            };
            paint.as_(role, format!("{:>COLUMN$}", duration(value)))
        };
        columns.iter().map(cell).collect()
    }

    /// The interval of a figure, unless it is too small to be seen, or the figure is a lower bound anyway.
    fn interval(&self, figure: TimeFigure) -> Option<&ConfidenceInterval> {
        let (value, interval) = self.times.figure(figure).filter(|(value, _)| !value.at_least)?;
        interval.filter(|interval| Duration(value.value).is_off(interval.low_ns, interval.high_ns))
    }

    /// The uncertainty of a figure, as a share of it.
    fn off(&self, figure: TimeFigure) -> f64 {
        let Some((interval, (value, _))) = self.interval(figure).zip(self.times.figure(figure)) else { return 0.0 };
        let high = interval.high_ns.unwrap_or(value.value);
        value.value.abs_diff(interval.low_ns).max(high.abs_diff(value.value)) as f64 / value.value.max(1) as f64
    }

    /// Two rows with the ends of the intervals, if there are any.
    fn ends(&self, columns: &[TimeFigure], indent: usize, paint: Paint) -> Vec<String> {
        if columns.iter().all(|figure| self.interval(*figure).is_none()) {
            return Vec::new();
        }
        let [low, high] = if has_sampling(self.times) { ["95% low", "95% high"] } else { ["at least", "at most"] };
        let line = |label: &str, end: &dyn Fn(&ConfidenceInterval) -> Option<u64>| {
            let cell = |figure: &TimeFigure| match self.interval(*figure) {
                None => " ".repeat(COLUMN),
                Some(interval) => {
                    let text = end(interval).map_or_else(|| "unknown".to_owned(), |ns| Duration(ns).to_string());
                    format!("{text:>COLUMN$}")
                }
            };
            let cells: String = columns.iter().map(cell).collect();
            let line = format!("{:<NAME$}{}{cells}", format!("    {label}"), " ".repeat(indent));
            paint.faint(line.trim_end())
        };
        vec![line(low, &|interval| Some(interval.low_ns)), line(high, &|interval| interval.high_ns)]
    }
}

/// Whether its intervals hold the error of sampling, beside brunt's own delays.
fn has_sampling(times: &Distribution) -> bool {
    times.mean_interval.is_some_and(|interval| interval.sampling_low_ns.is_some())
}

fn notes(summary: &Summary, rows: &[Row<'_>], verbose: bool) -> Vec<String> {
    let numbers = &summary.total.numbers;
    let mut notes = Vec::new();
    let mut note = |text: &str| notes.extend(wrapped("  ", "  ", text, WIDTH));
    if is_parted(summary) {
        note("response: failures count as slower than measured");
    }
    let by_script = summary.total.failed_check.ok(summary.ok_status());
    if by_script > 0 {
        let row = if is_parted(summary) { "ok" } else { "response" };
        let calls = counted(by_script, "call");
        note(&format!("{row}: {calls} failed by checks or the script count with their measured times"));
    }
    let (unfinished, unsent) = (numbers.get(Counter::Unfinished), numbers.get(Counter::Unsent));
    if unfinished + unsent > 0 {
        let (unfinished, unsent) = (count(unfinished), count(unsent));
        note(&format!(
            "≥ at least: {unfinished} unfinished and {unsent} unsent calls count with the time they had waited"
        ));
    }
    if let Some(row) = rows.first().filter(|row| verbose && row.interval(Mean).is_some()) {
        note(if has_sampling(row.times) {
            "95% low and high: sampling and brunt's own delays"
        } else {
            "at least, at most: what brunt's own delays leave open"
        });
    }
    notes
}
