//! How long calls took: a column for each time that was measured.

use brunt_model::histogram::AtLeast;
use brunt_model::summary::{Distribution, QUANTILES, Summary};
use brunt_model::units::Duration;

use super::verdict::{self, Spoils};
use super::{WIDTH, wrapped};
use crate::numbers::{count, counted, duration};
use crate::style::{Paint, Role};

/// The width of a column.
const COLUMN: usize = 11;
/// The width of the rows' names.
const NAME: usize = 10;

pub(super) fn section(summary: &Summary, paint: Paint) -> Vec<String> {
    let columns = columns(summary);
    if columns.is_empty() {
        return Vec::new();
    }
    let spoiled = verdict::is_spoiled(summary, Spoils::Latency);
    let names: Vec<_> = columns.iter().map(|(name, _)| format!("{name:>COLUMN$}")).collect();
    let title = format!("{:<NAME$}", if spoiled { "Latency ✗" } else { "Latency" });
    let title = if spoiled { paint.bad(title) } else { paint.strong(title) };
    let mut lines = vec![format!("{title}{}", paint.faint(names.concat()))];
    let row = |name: &str, role: Role, cell: &dyn Fn(&Distribution) -> (String, bool)| {
        let cells = columns.iter().map(|(_, times)| {
            let (text, at_least) = cell(times);
            let role = if at_least || spoiled { Role::Warning } else { role };
            paint.as_(role, format!("{text:>COLUMN$}"))
        });
        format!("{}{}", paint.faint(format!("  {name:<8}")), cells.collect::<String>())
    };
    let bounded = |value: AtLeast<u64>| (duration(value), value.at_least);
    let rounded = |value: AtLeast<f64>| bounded(value.map(|ns| ns.round() as u64));
    lines.push(row("mean", Role::Plain, &|times| rounded(times.mean)));
    lines.push(row("stdev", Role::Plain, &|times| rounded(times.stdev)));
    lines.push(row("min", Role::Plain, &|times| (Duration(times.min).to_string(), false)));
    for (at, (name, _)) in QUANTILES.iter().enumerate() {
        let role = if matches!(*name, "p50" | "p99") { Role::Strong } else { Role::Plain };
        lines.push(row(name, role, &|times| {
            times.quantiles.get(at).map_or((String::new(), false), |value| bounded(*value))
        }));
    }
    lines.push(row("max", Role::Plain, &|times| bounded(times.max)));
    lines.push(row("count", Role::Faint, &|times| (count(times.count), false)));
    lines.extend(notes(summary).into_iter().map(|line| paint.faint(line)));
    lines.extend(verdict::findings(summary, Spoils::Latency, paint));
    lines
}

/// The times that tell something: service time only where calls could wait before they were sent.
fn columns(summary: &Summary) -> Vec<(&'static str, &Distribution)> {
    let times = &summary.times;
    let service = times.service.as_ref().filter(|_| summary.is_open() || summary.run.plan.reconnect);
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

fn notes(summary: &Summary) -> Vec<String> {
    let total = &summary.total;
    let mut notes = Vec::new();
    if let Some(failed) = &summary.times.failed {
        let calls = counted(failed.count, "failed call");
        let p50 = failed.quantiles.first().map_or(String::new(), |p50| format!(", whose p50 is {}", duration(*p50)));
        notes.extend(wrapped("  ", "  ", &format!("response includes {calls}{p50}"), WIDTH));
    }
    if total.unfinished + total.unsent > 0 {
        let text = format!(
            "≥ at least: {} unfinished and {} unsent calls count with the time they had waited",
            count(total.unfinished),
            count(total.unsent)
        );
        notes.extend(wrapped("  ", "  ", &text, WIDTH));
    }
    notes
}
