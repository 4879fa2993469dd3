//! Whether to believe the figures: in a line above all of them, and beside spoiled ones.

use std::fmt::Write as _;

use brunt_judge::advice::Advice;
use brunt_judge::summary::Summary;
use brunt_judge::verdict::{Finding, Judgement, Seconds, Spoils};
use brunt_plan::units::Duration;
use brunt_record::catalogue::{Counter, Numbers};
use brunt_record::histogram::Percentile;

use super::fitting::{Rank, Section};
use super::{WIDTH, over_time, title, wrapped};
use crate::advice::InWords;
use crate::columns;
use crate::headline::{InReports, Toned};
use crate::numbers::percent;
use crate::style::{Paint, Role};
use crate::sure;

/// Remarks, each with its advice. Those with a place in time are numbered, as in the chart over time.
pub(super) fn remarks(section: &mut Section, remarks: &[Toned], paint: Paint) {
    let mut with_place = 0;
    for remark in remarks {
        let (sign, role) = (remark.sign(), remark.tone.role());
        let mut first = sign.to_owned();
        if remark.stretch().is_some() {
            first = format!("{sign}{} ", over_time::sign(with_place));
            with_place += 1;
        }
        let rest = " ".repeat(columns::width(&first));
        let lines = wrapped(&first, &rest, &remark.remark.message.to_string(), WIDTH);
        section.add(Rank::Always, lines.into_iter().map(|line| paint.as_(role, line)));
        if let Some(advice) = &remark.remark.advice {
            section.add_whole(Rank::Figure, &wrapped("  → ", "    ", &InWords(advice).to_string(), WIDTH));
        }
    }
}

/// Whether the figures can be believed, and how brunt itself fared.
pub(super) fn measurement(summary: &Summary, paint: Paint, verbose: bool) -> Vec<String> {
    let words = match summary.verdict.judgement {
        Judgement::Trustworthy if summary.verdict.findings.is_empty() => "measured well".to_owned(),
        Judgement::Trustworthy => "measured well, except where ! stands below Throughput or Latency".to_owned(),
        Judgement::GeneratorBound => paint.bad("✗ brunt was the limit"),
        Judgement::LatencyUnreliable => paint.bad(format!("✗ {}", summary.verdict.holding())),
        Judgement::NothingMeasured => return Vec::new(),
    };
    // A finding says more.
    let is_short =
        !verbose && summary.verdict.judgement == Judgement::Trustworthy && summary.verdict.findings.is_empty();
    let brief = if is_short { paint.faint(in_brief(summary)) } else { String::new() };
    let mut lines = vec![format!("{}{words}{brief}", title("Measurement", paint))];
    if summary.is_unsteady() {
        lines.push(format!("{:15}{}", "", paint.faint(sure::ACROSS_EPISODE)));
    }
    if verbose {
        lines.extend(wrapped("  ", "  ", &generator(summary), WIDTH).into_iter().map(|line| paint.faint(line)));
    }
    lines
}

/// Such as `; lag p99 180.0µs, 4% of a CPU`.
pub(crate) fn in_brief(summary: &Summary) -> String {
    let lag = summary.times.lag.as_ref().and_then(|lag| lag.quantile(Percentile::P99));
    let lag = lag.map_or_else(String::new, |p99| format!("lag p99 {}, ", Duration(p99.value)));
    match summary.total.numbers.ratio(Counter::BusiestWorker) {
        busiest if busiest > 0.0 => format!("; {lag}{} of a CPU{}", percent(busiest), awake(&summary.total.numbers)),
        _ => String::new(),
    }
}

/// Less of their time is not worth a word: a worker that sleeps waits awake for the last moments before a call is due.
const AWAKE: f64 = 0.05;

/// For how much of their time workers waited awake, such as `, 61.2% waiting awake`; empty where they slept.
pub(crate) fn awake(numbers: &Numbers) -> String {
    match numbers.spun_share() {
        share if share > AWAKE => format!(", {} waiting awake", percent(share)),
        _ => String::new(),
    }
}

fn generator(summary: &Summary) -> String {
    let numbers = &summary.total.numbers;
    let (busiest, starved) = (numbers.ratio(Counter::BusiestWorker), numbers.ratio(Counter::MostStarvedWorker));
    let mut text = format!("workers used up to {} of a CPU", percent(busiest));
    if starved > 0.0 {
        let _ = write!(text, " and waited for one up to {} of the time", percent(starved));
    }
    text.push_str(&awake(numbers));
    for (what, times) in [("lag", &summary.times.lag), ("answers read after", &summary.times.receiving)] {
        let quantile = |of| Some(Duration(times.as_ref()?.quantile(of)?.value));
        if let (Some(p50), Some(p99)) = (quantile(Percentile::P50), quantile(Percentile::P99)) {
            let _ = write!(text, "; {what} p50 {p50}, p99 {p99}");
        }
    }
    text
}

/// The findings that spoil `figures`, with advice. An advice stands with the first finding of the run that it is for.
pub(super) fn findings(section: &mut Section, summary: &Summary, figures: &[Spoils], paint: Paint) {
    let mut sorted: Vec<_> = summary.verdict.findings.iter().collect();
    sorted.sort_by_key(|finding| finding.spoils);
    let is_said = |at: usize, advice: &Advice| sorted.iter().take(at).any(|earlier| earlier.advice == *advice);
    let of_these = sorted.iter().enumerate().filter(|(_, finding)| figures.contains(&finding.spoils));
    for (at, finding) in of_these {
        section.add(Rank::Always, lines(finding, paint));
        if !is_said(at, &finding.advice) {
            let rank = if finding.decisive { Rank::Figure } else { Rank::Minor };
            section.add_whole(rank, &wrapped("    → ", "      ", &InWords(&finding.advice).to_string(), WIDTH));
        }
    }
}

/// Everything that was found.
pub(super) fn all_findings(section: &mut Section, summary: &Summary, paint: Paint) {
    findings(section, summary, &[Spoils::Throughput, Spoils::Latency, Spoils::Arrivals], paint);
}

fn lines(finding: &Finding, paint: Paint) -> Vec<String> {
    let (sign, role) = if finding.decisive { ("✗", Role::Bad) } else { ("!", Role::Warning) };
    let what = format!("{}{}", finding.message, seconds(&finding.seconds));
    wrapped(&format!("  {sign} "), "    ", &what, WIDTH).into_iter().map(|line| paint.as_(role, line)).collect()
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
