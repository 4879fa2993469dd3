//! Whether to believe the figures: in a line above all of them, and beside those that are spoiled.

use std::fmt::Write as _;

use brunt_model::summary::Summary;
use brunt_model::units::Duration;
use brunt_model::verdict::{Cause, Finding, Judgement};

use super::{WIDTH, wrapped};
use crate::numbers::percent;
use crate::style::{Paint, Role};

/// The figures that a finding spoils.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoils {
    Throughput,
    Latency,
}

impl Spoils {
    fn of(cause: Cause) -> Self {
        match cause {
            Cause::CpuSaturated | Cause::SlowScript | Cause::Ports | Cause::Descriptors => Self::Throughput,
            Cause::CpuStarved | Cause::Lag => Self::Latency,
        }
    }
}

/// The judgement, and what speaks for or against it.
pub(super) fn headline(summary: &Summary, paint: Paint) -> Vec<String> {
    let judgement = match summary.verdict.judgement {
        Judgement::Trustworthy if summary.verdict.findings.is_empty() => paint.good("✓ trustworthy"),
        Judgement::Trustworthy => paint.good("✓ trustworthy, but for the seconds named below"),
        Judgement::GeneratorBound => paint.bad("✗ generator-bound: throughput is a lower bound"),
        Judgement::LatencyUnreliable => paint.bad("✗ latency is not to be believed"),
    };
    let generator = wrapped("  ", "  ", &generator(summary), WIDTH);
    std::iter::once(judgement).chain(generator.into_iter().map(|line| paint.faint(line))).collect()
}

fn generator(summary: &Summary) -> String {
    let health = &summary.total.health;
    let mut text = format!("workers used at most {} of a CPU", percent(health.busiest_worker));
    if health.most_starved_worker > 0.0 {
        let _ = write!(text, " and waited for one at most {}", percent(health.most_starved_worker));
    }
    if let Some([p50, .., p99, _, _]) = summary.times.lag.as_ref().map(|lag| &lag.quantiles) {
        let _ = write!(text, "; lag p50 {}, p99 {}", Duration(p50.value), Duration(p99.value));
    }
    text
}

/// Whether figures are spoiled in the run as a whole.
pub(super) fn is_spoiled(summary: &Summary, figures: Spoils) -> bool {
    summary.verdict.findings.iter().any(|finding| finding.decisive && Spoils::of(finding.cause) == figures)
}

/// What was found that spoils `figures`, and what to do about it.
pub(super) fn findings(summary: &Summary, figures: Spoils, paint: Paint) -> Vec<String> {
    let of_these = summary.verdict.findings.iter().filter(|finding| Spoils::of(finding.cause) == figures);
    of_these.flat_map(|finding| lines(finding, paint)).collect()
}

/// Everything that was found.
pub(super) fn all_findings(summary: &Summary, paint: Paint) -> Vec<String> {
    summary.verdict.findings.iter().flat_map(|finding| lines(finding, paint)).collect()
}

fn lines(finding: &Finding, paint: Paint) -> Vec<String> {
    let (sign, role) = if finding.decisive { ("✗", Role::Bad) } else { ("!", Role::Warning) };
    let what = format!("{}{}", finding.message, seconds(&finding.seconds));
    let mut lines: Vec<_> =
        wrapped(&format!("  {sign} "), "    ", &what, WIDTH).into_iter().map(|line| paint.as_(role, line)).collect();
    lines.extend(wrapped("    → ", "      ", &finding.advice, WIDTH));
    lines
}

/// Such as `, in seconds 3, 5–8`.
fn seconds(ranges: &[(u64, u64)]) -> String {
    /// The most ranges that are listed.
    const MOST: usize = 8;
    let one = matches!(ranges, [(from, to)] if from == to);
    let mut listed: Vec<_> = ranges
        .iter()
        .take(MOST)
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}–{to}") })
        .collect();
    if ranges.len() > MOST {
        listed.push("…".to_owned());
    }
    match listed.as_slice() {
        [] => String::new(),
        _ => format!(", in second{} {}", if one { "" } else { "s" }, listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_named() {
        assert_eq!(seconds(&[]), "");
        assert_eq!(seconds(&[(4, 4)]), ", in second 4");
        assert_eq!(seconds(&[(0, 2), (5, 5)]), ", in seconds 0–2, 5");
        let many: Vec<_> = (0..20).map(|i| (2 * i, 2 * i)).collect();
        assert!(seconds(&many).ends_with("14, …"));
    }
}
