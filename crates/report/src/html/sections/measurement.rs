//! Whether to believe the figures, and why not.

use std::fmt::Write as _;

use brunt_judge::verdict::{Finding, Judgement};
use brunt_record::catalogue::Counter;
use brunt_record::histogram::Percentile;

use super::super::last_second::LastSecond;
use super::super::shown::Shown;
use crate::advice::InWords;
use crate::numbers::{clean, duration, percent};
use crate::page::Section;
use crate::text::awake;

/// The most ranges of seconds listed for a finding.
const MOST_RANGES: usize = 8;

pub(super) fn measurement(shown: Shown<'_>, live: Option<&LastSecond>) -> Section {
    let summary = shown.summary;
    let mut section = Section::new("verdict", if live.is_some() { "Measurement so far" } else { "Measurement" });
    let html = &mut section.body;
    if shown.has_no_figure(live) {
        html.raw("<p class=\"verdict\">nothing is measured yet: the first figures come with the first call that ends after the warm-up</p>");
        return section;
    }
    let verdict = &summary.verdict;
    let (class, words) = match verdict.judgement {
        Judgement::Trustworthy if verdict.findings.is_empty() => ("faint", "measured well".to_owned()),
        Judgement::Trustworthy => ("faint", "measured well, apart from what is listed here".to_owned()),
        Judgement::GeneratorBound => ("warning", "! brunt was the limit: throughput is a lower bound".to_owned()),
        Judgement::LatencyUnreliable | Judgement::NothingMeasured => ("warning", format!("! {}", verdict.holding())),
    };
    if summary.answered() || live.is_some() {
        html.raw("<p class=\"verdict ").raw(class).raw("\">").text(&words).raw("</p>");
    }
    html.raw("<p class=\"faint\">").text(&workers(shown)).raw("</p>");
    if verdict.findings.is_empty() {
        return section;
    }
    html.raw("<ul class=\"findings\">");
    for finding in &verdict.findings {
        html.raw(if finding.decisive { "<li class=\"warning\">" } else { "<li>" });
        html.text(&clean(&finding.message.to_string())).text(&seconds(finding));
        html.raw("<p class=\"advice\">→ ").text(&clean(&InWords(&finding.advice).to_string())).raw("</p></li>");
    }
    html.raw("</ul>");
    section
}

/// The load on brunt's workers, and their lag.
fn workers(shown: Shown<'_>) -> String {
    let numbers = &shown.summary.total.numbers;
    let mut text = format!("brunt's workers: CPU up to {}", percent(numbers.ratio(Counter::BusiestWorker)));
    let starved = numbers.ratio(Counter::MostStarvedWorker);
    if starved > 0.0 {
        let _ = write!(text, ", waiting for a CPU up to {} of the time", percent(starved));
    }
    text.push_str(&awake(numbers));
    let lag = shown.summary.times.lag.as_ref();
    let [p50, p99] = [Percentile::P50, Percentile::P99].map(|of| lag.and_then(|lag| lag.quantile(of)));
    if let (Some(p50), Some(p99)) = (p50, p99) {
        let _ = write!(text, "; lag p50 {}, p99 {}", duration(p50), duration(p99));
    }
    text
}

fn seconds(finding: &Finding) -> String {
    let range = |seconds: &brunt_judge::verdict::Seconds| match (seconds.first, seconds.last) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}–{last}"),
    };
    let ranges: Vec<_> = finding.seconds.iter().take(MOST_RANGES).map(range).collect();
    let is_one = matches!(finding.seconds.as_slice(), [only] if only.first == only.last);
    match ranges.as_slice() {
        [] => String::new(),
        ranges => format!(
            ", in second{} {}{}",
            if is_one { "" } else { "s" },
            ranges.join(", "),
            if finding.seconds.len() > MOST_RANGES { ", …" } else { "" }
        ),
    }
}
