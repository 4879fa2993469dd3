//! Whether to believe the figures: in a line above all of them, and beside those that are spoiled.

use std::fmt::Write as _;

use brunt_judge::remarks::{About, Remark};
use brunt_judge::summary::Summary;
use brunt_judge::trend::{Settled, Watched};
use brunt_judge::verdict::{Finding, Judgement, Seconds, Spoils};
use brunt_plan::units::{Duration, Number};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;

use super::{WIDTH, wrapped};
use crate::failed;
use crate::numbers::{clean, percent};
use crate::style::{Paint, Role};

/// The judgement, and what speaks for or against it.
pub(super) fn headline(summary: &Summary, paint: Paint) -> Vec<String> {
    let (sign, text, role) = match summary.verdict.judgement {
        // Of a run that failed, that it was measured well is no praise.
        Judgement::Trustworthy if failed::is_red(summary) => ("·", "measured well".to_owned(), Role::Plain),
        Judgement::Trustworthy if summary.verdict.findings.is_empty() => ("✓", "trustworthy".to_owned(), Role::Good),
        Judgement::Trustworthy => ("✓", "trustworthy, but for what is named below".to_owned(), Role::Good),
        Judgement::GeneratorBound => ("✗", "generator-bound: throughput is a lower bound".to_owned(), Role::Bad),
        Judgement::LatencyUnreliable => ("✗", summary.verdict.holding(), Role::Bad),
        Judgement::NothingMeasured => ("✗", summary.verdict.sentence.clone(), Role::Bad),
    };
    let judgement = wrapped(&format!("{sign} "), "  ", &text, WIDTH).into_iter().map(|line| paint.as_(role, line));
    let settled = not_settled(summary).into_iter().flat_map(|text| wrapped("! ", "  ", &text, WIDTH));
    let generator = wrapped("  ", "  ", &generator(summary), WIDTH);
    judgement
        .chain(generator.into_iter().map(|line| paint.faint(line)))
        .chain(settled.map(|line| paint.warning(line)))
        .collect()
}

/// What stands out about the target or the plan, and what to do about it.
pub(super) fn remarks(summary: &Summary, paint: Paint) -> Vec<String> {
    let lines = |remark: &Remark| {
        let (sign, role) = match remark.about {
            About::NoSuccess | About::NoMessages | About::Redirects | About::Outage => ("✗ ", Role::Bad),
            About::Connections | About::Freeze | About::Overload | About::RateLimit | About::Agents => {
                ("! ", Role::Warning)
            }
        };
        let message = wrapped(sign, "  ", &clean(&remark.message), WIDTH);
        let mut lines: Vec<_> = message.into_iter().map(|line| paint.as_(role, line)).collect();
        if !remark.advice.is_empty() {
            lines.extend(wrapped("  → ", "    ", &remark.advice, WIDTH));
        }
        lines
    };
    summary.remarks.iter().flat_map(lines).collect()
}

/// That the run had not settled, and what to do about it.
fn not_settled(summary: &Summary) -> Option<String> {
    let value = |figure: Watched, value: f64| match figure {
        Watched::Rate => format!("{}/s", Number(value)),
        _ => Duration(value.max(0.0).round() as u64).to_string(),
    };
    match summary.verdict.settled {
        Settled::Yes | Settled::Unknown => None,
        Settled::WarmingUp { until_s, figure, all, rest } => {
            // What was warmed up already was not enough.
            let warmup_s = until_s + summary.plan.warmup_ns.div_ceil(SECOND_NS);
            Some(format!(
                "still warming up until second {until_s} ({} {}, without it {}): -w {warmup_s}",
                figure.name(),
                value(figure, all),
                value(figure, rest)
            ))
        }
        Settled::Drifting { figure, per_minute, typical } => Some(format!(
            "not settled: {} {} by {} a minute, around {}",
            figure.name(),
            if per_minute < 0.0 { "falls" } else { "grows" },
            value(figure, per_minute.abs()),
            value(figure, typical)
        )),
    }
}

fn generator(summary: &Summary) -> String {
    let numbers = &summary.total.numbers;
    let (busiest, starved) = (numbers.ratio(Counter::BusiestWorker), numbers.ratio(Counter::MostStarvedWorker));
    let mut text = format!("workers used up to {} of a CPU", percent(busiest));
    if starved > 0.0 {
        let _ = write!(text, " and waited for one up to {} of the time", percent(starved));
    }
    for (what, times) in [("lag", &summary.times.lag), ("answers read after", &summary.times.receiving)] {
        let quantile = |name: &str| Some(Duration(times.as_ref()?.quantile(name)?.value));
        if let (Some(p50), Some(p99)) = (quantile("p50"), quantile("p99")) {
            let _ = write!(text, "; {what} p50 {p50}, p99 {p99}");
        }
    }
    text
}

/// Whether figures are spoiled in the run as a whole.
pub(super) fn is_spoiled(summary: &Summary, figures: &[Spoils]) -> bool {
    summary.verdict.findings.iter().any(|finding| finding.decisive && figures.contains(&finding.spoils))
}

/// What was found that spoils `figures`, and what to do about it.
pub(super) fn findings(summary: &Summary, figures: &[Spoils], paint: Paint) -> Vec<String> {
    let of_these = summary.verdict.findings.iter().filter(|finding| figures.contains(&finding.spoils));
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
fn seconds(ranges: &[Seconds]) -> String {
    /// The most ranges that are listed.
    const MOST: usize = 8;
    let one = matches!(ranges, [Seconds { first, last }] if first == last);
    let mut listed: Vec<_> = ranges
        .iter()
        .take(MOST)
        .map(|Seconds { first, last }| if first == last { first.to_string() } else { format!("{first}–{last}") })
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
        let of = |first, last| Seconds { first, last };
        assert_eq!(seconds(&[of(4, 4)]), ", in second 4");
        assert_eq!(seconds(&[of(0, 2), of(5, 5)]), ", in seconds 0–2, 5");
        let many: Vec<_> = (0..20).map(|i| of(2 * i, 2 * i)).collect();
        assert!(seconds(&many).ends_with("14, …"));
    }
}
