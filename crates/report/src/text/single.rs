//! A run of one call, as `--once` makes it: its times and its outcome. Percentiles of one value say nothing.

use brunt_judge::summary::Summary;
use brunt_record::catalogue::Counter;
use brunt_record::histogram::Percentile;

use super::{WIDTH, title, wrapped};
use crate::numbers::{count, duration};
use crate::style::Paint;

/// Whether one call was planned, and one was due.
pub(super) fn is_single(summary: &Summary) -> bool {
    summary.plan.stop.requests == Some(1)
        && summary.plan.scenarios.is_none()
        && summary.total.numbers.get(Counter::Due) == 1
}

pub(super) fn section(summary: &Summary, paint: Paint) -> Vec<String> {
    let times = &summary.times;
    let measured = [
        ("connect", times.connect.as_ref()),
        ("TLS", times.tls.as_ref()),
        ("handshake", times.handshake.as_ref()),
        ("first byte", times.first_byte.as_ref()),
        ("first message", times.first_message.as_ref()),
        ("response", times.response.as_ref()),
    ];
    let shown: Vec<_> =
        measured.into_iter().filter_map(|(name, times)| Some(format!("{name} {}", duration(times?.max)))).collect();
    let mut lines = wrapped("", "               ", &shown.join(", "), WIDTH - 15);
    if let Some(first) = lines.first_mut() {
        first.insert_str(0, &title("Times", paint));
    }
    let messages = summary.total.messages();
    if messages.count() > 0 {
        let gaps = times.message_gap.as_ref().map_or_else(String::new, |gap| {
            format!(
                ", gap at p50 {}, at most {}",
                gap.quantile(Percentile::P50).map_or_else(String::new, duration),
                duration(gap.max)
            )
        });
        lines.push(format!("{}{}{gaps}", title("Messages", paint), count(messages.count())));
    }
    let status = summary.total.statuses.sorted().into_iter().map(|(status, _)| status).find(|status| *status != 0);
    if let Some(status) = status {
        let name = summary.run.status_names.get(&status).map_or_else(String::new, |name| format!(" {name}"));
        let text = format!("{status}{name}");
        let is_ok = summary.ok_status().holds(status);
        let text = if is_ok { paint.good(format!("✓ {text}")) } else { paint.bad(format!("✗ {text}: not ok")) };
        lines.push(format!("{}{text}", title("Status", paint)));
    }
    lines
}
