//! The figures of a live view: of the run so far, and of its last second.

use brunt_plan::plan::{Load, Plan};
use brunt_plan::units::Duration;
use brunt_record::catalogue::Counter;
use brunt_record::histogram::{AtLeast, Censored};
use brunt_record::live::Live;
use brunt_record::snapshot::Snapshot;

use super::line::Line;
use super::second::{has_latency, whole};
use super::state::Stall;
use crate::columns;
use crate::numbers::{bound, count};
use crate::style::Role;

/// The percentiles shown, and the name of the maximum.
const NAMES: [&str; 4] = ["p50", "p90", "p99", "max"];
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// The share of the calls beyond a percentile that have to be waiting for it to be a lower bound.
const MATTERS: f64 = 0.1;
/// Into how many steps the waits of a stall are divided.
const STEPS: u64 = 64;

/// Calls that have not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub calls: u64,
    pub oldest_ns: u64,
    pub stall: Option<Stall>,
    pub now_ns: u64,
}

impl Waiting {
    /// How many of the calls were due in the stall, by the plan: each has waited since.
    fn due_in_stall(&self, plan: &Plan, stall: Stall) -> u64 {
        let Load::Open { profile, .. } = &plan.load else { return 0 };
        let calls = |ns: u64| profile.calls_until(ns as f64 / 1e9);
        ((calls(self.now_ns) - calls(stall.from_ns)).floor() as u64).min(self.calls)
    }

    /// `times` with lower bounds of the calls that wait in a stall, of those that were due in its last `within_ns`.
    fn bounded(&self, times: &Censored, plan: &Plan, within_ns: u64) -> Censored {
        let mut times = times.clone();
        let Some(stall) = self.stall else { return times };
        let due = self.due_in_stall(plan, stall);
        if within_ns >= stall.silent_ns {
            times.bounds.record_n(stall.silent_ns, self.calls - due);
        }
        let window = within_ns.min(stall.silent_ns);
        let due = (due as f64 * window as f64 / stall.silent_ns.max(1) as f64) as u64;
        for step in 0..STEPS {
            let calls = due * (step + 1) / STEPS - due * step / STEPS;
            times.bounds.record_n((window * (2 * step + 1) / (2 * STEPS)).max(1), calls);
        }
        times
    }

    /// Percentiles of `times` and the maximum, each with a flag whether waiting calls can raise it.
    pub(super) fn percentiles(&self, times: &Censored, plan: &Plan, within_ns: u64) -> [Option<AtLeast<u64>>; 4] {
        let times = self.bounded(times, plan, within_ns);
        let all = times.count() + if self.stall.is_none() { self.calls } else { 0 };
        let [p50, p90, p99] = times.quantiles(QUANTILES);
        // Calls that have waited less are like others: nothing indicates that they will take longer.
        let matters = |value: u64, q: f64| {
            self.stall.is_none() && self.oldest_ns > value && self.calls as f64 > MATTERS * (1.0 - q) * all as f64
        };
        let marked = |value: Option<AtLeast<u64>>, q: f64| {
            value.map(|AtLeast { value, at_least }| AtLeast { value, at_least: at_least || matters(value, q) })
        };
        let oldest = if self.calls > 0 { self.oldest_ns.min(within_ns) } else { 0 };
        let known = times.lower().max();
        let max = known
            .map(|known| AtLeast { value: known.max(oldest), at_least: oldest >= known || !times.bounds.is_empty() });
        [marked(p50, 0.5), marked(p90, 0.9), marked(p99, 0.99), max]
    }
}

/// The label of a row.
struct Row {
    answered: String,
    due: String,
    failed: u64,
    percentiles: [Option<AtLeast<u64>>; 4],
}

/// Three lines: names, the run so far, the last second.
pub(super) fn lines(total: Option<&Snapshot>, live: &Live, waiting: &Waiting, plan: &Plan, width: usize) -> [Line; 3] {
    let so_far = total.map(|total| Row {
        answered: count(total.statuses.total()),
        due: count(total.numbers.get(Counter::Due)),
        failed: total.not_ok(&plan.ok_status),
        percentiles: waiting.percentiles(&times_of(total), plan, u64::MAX),
    });
    let per_s = |n: u64| format!("{}/s", whole(n as f64 * 1e9 / live.length_ns.max(1) as f64));
    let last = Row {
        answered: per_s(live.snapshot.numbers.get(Counter::EndedAnswered)),
        due: per_s(live.snapshot.numbers.get(Counter::Due)),
        failed: live.snapshot.not_ok(&plan.ok_status),
        percentiles: waiting.percentiles(&times_of(&live.snapshot), plan, live.length_ns),
    };
    if width >= 100 { wide(so_far.as_ref(), &last, waiting, width) } else { narrow(so_far.as_ref(), &last, width) }
}

/// Response times of calls, without refused connections.
pub(super) fn times_of(snapshot: &Snapshot) -> Censored {
    if has_latency(snapshot) { snapshot.response_times() } else { Censored::default() }
}

fn wide(so_far: Option<&Row>, last: &Row, waiting: &Waiting, width: usize) -> [Line; 3] {
    // A label and four counts of twelve columns, then four times.
    let each = (width.saturating_sub(5 * 12) / 4).min(14);
    let names = ["answered", "due", "failed", "waiting"].map(|name| format!("{name:>12}")).concat();
    let times = NAMES.map(|name| format!("{name:>each$}")).concat();
    let row = |name: &str, row: &Row, waiting: String| {
        let failed = format!("{:>12}", count(row.failed));
        Line::new(Role::Faint, format!("{name:<12}"))
            .add(Role::Strong, format!("{:>12}", row.answered))
            .add(Role::Plain, format!("{:>12}", row.due))
            .add(if row.failed > 0 { Role::Bad } else { Role::Plain }, failed)
            .add(if waiting_is_long(&waiting) { Role::Warning } else { Role::Plain }, format!("{waiting:>12}"))
            .with_times(row, &[0, 1, 2, 3], each)
    };
    let empty = Line::new(Role::Faint, "so far");
    [
        Line::new(Role::Faint, format!("{:<12}{names}{times}", "")),
        so_far.map_or(empty, |so_far| row("so far", so_far, count(waiting.calls))),
        row("last second", last, String::new()),
    ]
}

/// Whether this number of waiting calls, as written, deserves a colour.
fn waiting_is_long(waiting: &str) -> bool {
    waiting.len() > 4
}

fn narrow(so_far: Option<&Row>, last: &Row, width: usize) -> [Line; 3] {
    let (shown, each): (&[usize], usize) = match width {
        ..56 => (&[0, 2], 9),
        56..80 => (&[0, 1, 2, 3], 10),
        _ => (&[0, 1, 2, 3], 13),
    };
    let before = width.saturating_sub(shown.len() * each);
    let names = shown.iter().filter_map(|place| NAMES.get(*place)).map(|name| columns::padded_left(name, each));
    let names: String = names.collect();
    let failed = so_far.map_or(0, |row| row.failed);
    let mut header = Line::new(Role::Faint, "answered");
    if failed > 0 {
        header = header.add(Role::Bad, format!(", {} failed", count(failed)));
    }
    let fitted = |text: String| columns::padded(columns::cut(&text, before), before);
    let row = |text: String, row: &Row| Line::new(Role::Strong, fitted(text)).with_times(row, shown, each);
    let rates = format!("{} of {}", last.answered, last.due);
    let named = format!("{rates}, last 1s");
    let rates = if columns::width(&named) < before { named } else { rates };
    let header_gap = before.saturating_sub(header.width());
    [
        header.add(Role::Faint, format!("{}{names}", " ".repeat(header_gap))),
        so_far.map_or_else(Line::default, |so_far| row(format!("{} of {} due", so_far.answered, so_far.due), so_far)),
        row(rates, last),
    ]
}

impl Line {
    /// Adds these percentiles of a row, each in `each` columns.
    fn with_times(self, row: &Row, shown: &[usize], each: usize) -> Self {
        shown.iter().filter_map(|place| row.percentiles.get(*place)).fold(self, |line, value| {
            let (role, text) = match value {
                None => (Role::Faint, "–".to_owned()),
                Some(value) if value.at_least => (Role::Warning, short(*value)),
                Some(value) => (Role::Plain, short(*value)),
            };
            line.add(role, columns::padded_left(&text, each))
        })
    }
}

/// Such as `≥1.74s`.
pub(super) fn short(ns: AtLeast<u64>) -> String {
    format!("{}{}", bound(ns.at_least), Duration(ns.value))
}
