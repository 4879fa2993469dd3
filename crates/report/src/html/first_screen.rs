//! The page's first screen: the plan, the outcome, the main figures, and the run over time.
//!
//! It comes before everything else.

use brunt_judge::remarks::{About, Tone};
use brunt_judge::summary::Summary;
use brunt_judge::thresholds::{JudgedCondition, ThresholdResult};
use brunt_judge::verdict::{Judgement, Spoils};
use brunt_plan::plan::Plan;
use brunt_plan::scenario::Population;
use brunt_plan::threshold::{Figure, NameKind, Operator, Statistic, Threshold, Time};
use brunt_plan::units::{Clock, Duration, Number};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::histogram::{Percentile, fewest_calls};
use brunt_record::snapshot::Phase;

use super::LONG_WAIT_NS;
use super::last_second::LastSecond;
use super::shown::Shown;
use crate::advice::InWords;
use crate::dates::iso_8601;
use crate::failed;
use crate::headline::{InReports, Toned};
use crate::markup::Html;
use crate::numbers::{brief, clean, count, counted, duration, percent};
use crate::page::Section;
use crate::{sure, text};

/// The most kinds of failures that are named below the outcome.
const MOST_WAYS: usize = 3;

/// The plan in a line, with the name that its user gave the run.
pub(super) fn title(plan: &Plan) -> String {
    let name = plan.origin.name.as_deref().map_or_else(String::new, |name| format!("{}: ", brief(name)));
    format!("{name}{}", clean(&text::plan_heading(plan)))
}

/// The first screen; `live` for a run that goes on.
pub(super) fn first_screen(
    shown: Shown<'_>,
    remarks: &[Toned],
    over_time: &Section,
    live: Option<&LastSecond>,
) -> Html {
    let mut html = Html::default();
    header(&mut html, shown.summary);
    html.raw("<section id=\"outcome\" aria-labelledby=\"outcome-title\"><h2 id=\"outcome-title\">");
    html.raw(if live.is_some() { "Outcome so far" } else { "Outcome" }).raw("</h2>");
    outcome(&mut html, shown, remarks, live);
    html.raw("</section>");
    settings(&mut html, shown.summary);
    if !shown.has_no_figure(live) {
        figures(&mut html, shown);
    }
    over_time.write(&mut html);
    html
}

fn header(html: &mut Html, summary: &Summary) {
    html.raw("<header><h1><span class=\"brand\">brunt</span> ").text(&title(&summary.plan)).raw("</h1></header>");
}

/// What made the load, when, where and by which brunt: below the outcome, which is read first.
fn settings(html: &mut Html, summary: &Summary) {
    let (plan, run) = (&summary.plan, &summary.run);
    html.raw("<p id=\"settings\">").text(&text::plan_in_short(plan).unwrap_or_default()).raw("<small>");
    html.text(&text::in_words(plan).join(", "));
    html.raw(" · <time datetime=\"").text(&iso_8601(run.started_unix_ms / 1000)).raw("\">");
    html.text(&text::moment(run.started_unix_ms)).raw("</time> · brunt ").text(&clean(&run.brunt_version));
    if let Some(machine) = &run.machine {
        html.raw(" · <span id=\"machine\">on ").text(&clean(&machine.to_string())).raw("</span>");
    }
    for (key, value) in &plan.origin.tags {
        html.raw(" <span class=\"tag\">").text(&brief(&format!("{key}={value}"))).raw("</span>");
    }
    html.raw("</small></p>");
}

/// The headline, thresholds, findings, and the quality of the measurement.
fn outcome(html: &mut Html, shown: Shown<'_>, remarks: &[Toned], live: Option<&LastSecond>) {
    let of_now = unknown(shown, live);
    let mut others = remarks;
    if let Some((class, text)) = &of_now {
        paragraph(html, class, text);
        others = if shown.has_no_figure(live) { &[] } else { remarks };
    } else if let Some((headline, rest)) = remarks.split_first() {
        html.raw("<p class=\"outcome ").raw(headline.tone.class()).raw("\">");
        said(html, headline, 0);
        html.raw(if live.is_some() { ", so far</p>" } else { "</p>" });
        advice(html, headline);
        others = rest;
    } else {
        paragraph(html, "warning", "! nothing is known of this run");
    }
    if live.is_none() {
        judged(html, shown.summary);
    }
    let is_said = remarks.iter().any(|remark| matches!(remark.tone, Tone::Failed | Tone::Failing));
    let is_listed = !shown.has_no_figure(live) && thresholds(html, shown.summary, is_said, live.is_some());
    if shown.summary.answered() {
        ways_of_failing(html, shown.summary, is_said);
    }
    if !others.is_empty() {
        html.raw("<ul class=\"findings\">");
        let said_before = remarks.iter().take(remarks.len() - others.len());
        let mut number = said_before.filter(|remark| remark.stretch().is_some()).count();
        // What is listed is not said again.
        for remark in others.iter().filter(|remark| !is_listed || remark.remark.about != About::Thresholds) {
            html.raw("<li class=\"").raw(remark.tone.class()).raw("\">");
            said(html, remark, number);
            advice(html, remark);
            html.raw("</li>");
            number += usize::from(remark.stretch().is_some());
        }
        html.raw("</ul>");
    }
    if shown.summary.answered() {
        measurement(html, shown.summary);
    }
}

/// Whether the run passed, where the headline leaves it open.
fn judged(html: &mut Html, summary: &Summary) {
    if let Some(words) = sure::judged(summary) {
        let class = if summary.answered() { "judged" } else { "judged bad" };
        html.raw("<p class=\"").raw(class).raw("\">").text(&words).raw("</p>");
    }
}

/// The text in place of the headline, where a run that goes on has none yet.
fn unknown(shown: Shown<'_>, live: Option<&LastSecond>) -> Option<(&'static str, String)> {
    let live = live?;
    if shown.has_no_figure(Some(live)) {
        let is_begun = [Phase::Measured, Phase::Drain].map(crate::live::name).contains(&live.phase);
        let what = if is_begun {
            "no call has ended yet".to_owned()
        } else {
            format!("{}, nothing is measured yet", live.phase)
        };
        return Some(("", format!("● running: {what}")));
    }
    // Waiting calls are in no figure yet: no headline knows of them.
    let waits = live.oldest_ns.filter(|ns| *ns >= LONG_WAIT_NS)?;
    let unsent =
        if live.backlog > 0 { format!("{} wait to be sent, ", counted(live.backlog, "call")) } else { String::new() };
    Some(("warning", format!("! {unsent}the oldest call has waited {}", Duration(waits))))
}

fn paragraph(html: &mut Html, class: &'static str, text: &str) {
    html.raw("<p class=\"outcome ").raw(class).raw("\">").text(text).raw("</p>");
}

/// A remark with its sign. One with a place in time has its number, which links there.
fn said(html: &mut Html, remark: &Toned, number: usize) {
    html.text(remark.sign());
    if let Some((from, to)) = remark.stretch() {
        let second = |ns: u64| format!("{:.1}", ns as f64 / 1e9);
        html.raw("<a class=\"place\" href=\"#t=").text(&second(from)).raw("-").text(&second(to)).raw("\" title=\"");
        html.text(&format!("show {} to {}", Clock(from), Clock(to))).raw("\">").text(text::sign(number)).raw("</a> ");
    }
    html.text(&clean(&remark.remark.message.to_string()));
}

fn advice(html: &mut Html, remark: &Toned) {
    if let Some(advice) = &remark.remark.advice {
        html.raw("<p class=\"advice\">→ ").text(&clean(&InWords(advice).to_string())).raw("</p>");
    }
}

/// Explicit thresholds, and defaults that failed, each with its figure. `is_said` if a remark has named the defaults
/// on the whole run. `goes_on`: the figures are those so far, which nothing is judged by. Returns whether there are any.
fn thresholds(html: &mut Html, summary: &Summary, is_said: bool, goes_on: bool) -> bool {
    let noted: Vec<_> = summary
        .thresholds
        .iter()
        .filter(|result| result.is_noted() && !(is_said && failed::has_sentence(result)))
        .collect();
    // The headline says why the only one failed.
    let is_alone = matches!(noted.as_slice(), [only] if !only.held && only.sure && !goes_on);
    if noted.is_empty() || is_alone && !is_said {
        return false;
    }
    html.raw("<ul id=\"thresholds\" class=\"limits\">");
    for result in noted {
        let (class, sign) = match result.held {
            true if goes_on => ("", "· "),
            false if goes_on => ("warning", "! "),
            true => ("good", "✓ "),
            false => ("bad", "✗ "),
        };
        html.raw("<li><span class=\"")
            .raw(class)
            .raw("\">")
            .raw(sign)
            .raw("</span>")
            .text(&clean(&result.condition.to_string()));
        html.raw(if result.is_implicit() { " (default): <strong>" } else { ": <strong>" });
        html.text(&clean(&result.got.to_string()));
        html.raw("</strong>");
        if !result.sure {
            html.raw(" <span class=\"warning\">? brunt's own delays can have decided it</span>");
        }
        html.raw("</li>");
    }
    html.raw("</ul>");
    true
}

/// Kinds of calls that are not ok, the most telling first: `Not ok: 503 × 67, timeout × 3 (no answer in 10s)`.
/// `is_said` where the headline names the first.
fn ways_of_failing(html: &mut Html, summary: &Summary, is_said: bool) {
    let ways = failed::ways(summary);
    // A single kind that the headline names is not named again.
    if ways.len() <= usize::from(is_said) {
        return;
    }
    let reason = |kind: failed::Kind| {
        let failed::Kind::Failure(failure) = kind else { return String::new() };
        let reasons = summary.total.failures.reasons(failure);
        let first = reasons.first().filter(|(reason, _)| !reason.is_empty());
        first.map_or_else(String::new, |(reason, _)| format!(" ({})", brief(reason)))
    };
    let words =
        ways.iter().take(MOST_WAYS).map(|way| format!("{} × {}{}", way.name, count(way.count), reason(way.kind)));
    html.raw("<p class=\"ways\">Not ok: <a href=\"#outcomes\">").text(&words.collect::<Vec<_>>().join(", "));
    html.raw(if ways.len() > MOST_WAYS { "</a>, …</p>" } else { "</a></p>" });
}

/// Whether to believe the figures, in a line that leads to why.
fn measurement(html: &mut Html, summary: &Summary) {
    let verdict = &summary.verdict;
    let (class, words) = match verdict.judgement {
        Judgement::NothingMeasured => return,
        Judgement::Trustworthy if verdict.findings.is_empty() => {
            ("faint", format!("measured well{}", text::in_brief(summary)))
        }
        Judgement::Trustworthy => ("faint", "measured well, apart from what is listed below".to_owned()),
        // What is in doubt is said above.
        Judgement::GeneratorBound | Judgement::LatencyUnreliable => ("warning", "! in doubt: see why".to_owned()),
    };
    html.raw("<p class=\"badge\"><a href=\"#verdict\" class=\"").raw(class).raw("\">Measurement: ");
    html.text(&words).raw("</a></p>");
}

/// A tile: its name, its figure, a note, and its tone.
struct Tile {
    name: String,
    /// Which of response times it is.
    statistic: Option<Statistic>,
    value: String,
    note: String,
    /// Whether the note has the interval of chance.
    has_interval: bool,
    class: &'static str,
}

/// Puts the figure that a reader looks for first before the others: the one of a condition that failed; else the rate, or where the plan
/// sets that, the slowest calls. Returns whether there is one.
fn lead(tiles: &mut Vec<Tile>, summary: &Summary) -> bool {
    let of_all_errors = |of: &Threshold| of.is_about_errors() && of.subject().is_none();
    let failed = summary.thresholds.iter().filter(|result| !result.held).filter_map(|result| {
        let of = match &result.condition {
            JudgedCondition::Guard(guard) => guard.condition(),
            other => other.threshold()?,
        };
        Some((result, of))
    });
    // A share of failed calls explains other conditions; one that brunt's own delays can have decided says the least.
    let first = failed.min_by_key(|(result, of)| (!result.sure, !of_all_errors(of)));
    let place = |name: &str| tiles.iter().position(|tile| tile.name == name);
    let Some((result, of)) = first else {
        let mut populations = summary.plan.scenarios.iter().flat_map(|all| &all.populations);
        let is_paced = summary.is_open() || populations.any(Population::is_open);
        let usual = place(if is_paced { "p99" } else { "ok/s" });
        let usual = usual.filter(|_| summary.total.numbers.get(Counter::Due) > 0);
        if let Some(upto) = usual.and_then(|place| tiles.get_mut(..=place)) {
            upto.rotate_right(1);
        }
        if let Some(first) = tiles.first_mut().filter(|first| usual.is_some() && !first.has_interval) {
            add_note(first, sure::without_interval(summary));
        }
        return usual.is_some();
    };
    let is_of_time = |tile: &Tile| tile.statistic.is_some_and(|statistic| is_over_limit(result, None, statistic));
    let known = if of_all_errors(of) { place("error rate") } else { tiles.iter().position(is_of_time) };
    let limit = format!("limit {}", clean(of.condition()));
    let mut leading = match known {
        Some(place) => tiles.remove(place),
        None => Tile {
            name: of_what(of),
            value: brief(&result.got.to_string()),
            statistic: None,
            note: String::new(),
            has_interval: true,
            class: "",
        },
    };
    if leading.statistic.is_some() && !leading.has_interval {
        add_note(&mut leading, sure::without_interval(summary));
    }
    leading.class = if result.sure { "bad" } else { "warning" };
    leading.note = if leading.note.is_empty() { limit } else { format!("{limit}; {}", leading.note) };
    tiles.insert(0, leading);
    true
}

fn add_note(tile: &mut Tile, note: &str) {
    if !tile.note.is_empty() {
        tile.note.push_str("; ");
    }
    tile.note.push_str(note);
}

/// What a condition is about, in words: `p95 of group checkout`; as written where it names nothing, or several conditions on calls.
fn of_what(of: &Threshold) -> String {
    let written = of.figure();
    let (kind, name, statistic) = match (of.subject(), written.rsplit_once(':')) {
        (Some((Some(NameKind::Calls), _)) | None, _) | (_, None) => return brief(written),
        // Another tool's words stay.
        _ if of.judged().is_some() => return brief(written),
        (Some((kind, name)), Some((_, statistic))) => (kind, name, statistic),
    };
    let kind = match kind {
        None => String::new(),
        Some(NameKind::Watched) => "watched ".to_owned(),
        Some(kind) => format!("{} ", kind.word()),
    };
    brief(&format!("{statistic} of {kind}{name}"))
}

/// The interval of the rate, where the target and not the plan sets it: `95%: 3,800 to 3,890/s`.
fn rate_within(summary: &Summary) -> String {
    let ends = summary.rates.ok_low_per_s.zip(summary.rates.ok_high_per_s).filter(|_| !summary.is_open());
    let ends = ends.map(|(low, high)| (Number(low).to_string(), Number(high).to_string()));
    match ends.filter(|(low, high)| low != high) {
        Some((low, high)) => format!("95%: {low} to {high}/s"),
        None => String::new(),
    }
}

/// The most wanted figures.
fn figures(html: &mut Html, shown: Shown<'_>) {
    let summary = shown.summary;
    let is_spoiled = |figure: Spoils| summary.verdict.spoils(&[figure]);
    let least = if is_spoiled(Spoils::Throughput) { "≥" } else { "" };
    let rate_within = rate_within(summary);
    let mut tiles = vec![Tile {
        name: "ok/s".to_owned(),
        statistic: None,
        value: format!("{least}{}", Number(summary.rates.ok_per_s)),
        note: if summary.is_open() { format!("of {} due/s", Number(summary.rates.due_per_s)) } else { rate_within },
        has_interval: summary.rates.ok_low_per_s.is_some(),
        class: if least.is_empty() { "" } else { "warning" },
    }];
    let due = summary.total.numbers.get(Counter::Due);
    if due > 0 {
        tiles.push(Tile {
            name: "error rate".to_owned(),
            statistic: None,
            value: percent(summary.error_rate),
            // Connections without a server make few attempts: the time without one says more.
            note: match summary.standing().availability() {
                Some(share) if share < 1.0 => {
                    format!("{} for {} of the time", failed::absent(summary), percent(1.0 - share))
                }
                _ => format!("{} of {}; {}", count(summary.not_ok), count(due), sure::errors(summary)),
            },
            has_interval: true,
            class: if summary.not_ok > 0 { "bad" } else { "" },
        });
    }
    // A failed threshold comes first; then a doubt about the figure; then whether there is one at all.
    let failed = |statistic| summary.thresholds.iter().any(|result| is_over_limit(result, None, statistic));
    if let Some(response) = &summary.times.response {
        let shown = [(Percentile::P50, "response time"), (Percentile::P90, ""), (Percentile::P99, "")];
        for (percentile, what, quantile) in
            shown.into_iter().filter_map(|(of, what)| Some((of, what, response.at(of)?)))
        {
            let is_longest = response.count as f64 * (1.0 - quantile.share_ratio) < 1.0;
            // The instrument's interval alone says nothing of chance.
            let of_chance = quantile.interval.as_ref().filter(|of| of.sampling_low_ns.is_some());
            let off = of_chance.map_or_else(String::new, |of| within(of.low_ns, of.high_ns));
            // Whoever reads a range asks how sure it is.
            let off = if off.is_empty() { off } else { format!("95%: {off}") };
            let is_of_few = response.count < fewest_calls(quantile.share_ratio);
            let of_few = || format!("of {}", counted(response.count, "call"));
            tiles.push(Tile {
                name: percentile.name().to_owned(),
                statistic: Some(Statistic::Quantile(quantile.share_ratio)),
                value: duration(quantile.value()),
                note: match () {
                    () if is_longest => format!("the longest {}", of_few()),
                    () if is_of_few && off.is_empty() => of_few(),
                    () if is_of_few => format!("{off}, {}", of_few()),
                    () if off.is_empty() => what.to_owned(),
                    () => off,
                },
                has_interval: of_chance.is_some(),
                class: match () {
                    () if failed(Statistic::Quantile(quantile.share_ratio)) => "bad",
                    () if is_spoiled(Spoils::Latency) || is_spoiled(Spoils::Arrivals) => "warning",
                    () if is_longest => "faint",
                    () => "",
                },
            });
        }
        let class = if failed(Statistic::Max) { "bad" } else { "" };
        tiles.push(Tile {
            name: "max".to_owned(),
            statistic: Some(Statistic::Max),
            value: duration(response.max),
            note: String::new(),
            has_interval: true,
            class,
        });
    }
    html.raw("<section id=\"figures\" aria-labelledby=\"figures-title\"><h2 id=\"figures-title\">Key figures</h2><dl class=\"tiles\">");
    let is_led = lead(&mut tiles, summary);
    for (place, Tile { name, value, note, class, .. }) in tiles.into_iter().enumerate() {
        html.raw(if place == 0 && is_led {
            "<div class=\"tile hero\" data-figure=\""
        } else {
            "<div class=\"tile\" data-figure=\""
        })
        .text(&name)
        .raw("\"><dt>")
        .text(&name)
        .raw("</dt><dd><span class=\"value ");
        html.raw(class).raw("\">").text(&value).raw("</span>");
        if !note.is_empty() {
            html.raw("<small>").text(&note).raw("</small>");
        }
        html.raw("</dd></div>");
    }
    html.raw("</dl></section>");
}

/// Whether this is an upper limit that did not hold, on a statistic of response times: of all calls, or of those of a
/// request or tag with this name.
pub(super) fn is_over_limit(result: &ThresholdResult, name: Option<&str>, statistic: Statistic) -> bool {
    let Some(threshold) = result.condition.threshold().filter(|_| !result.held) else { return false };
    let is_of_these = match threshold.subject() {
        None => name.is_none(),
        Some((None | Some(NameKind::Request | NameKind::Tag), of)) => name == Some(of),
        Some(_) => false,
    };
    let is_of_time = matches!(threshold.measure(), Figure::Time(Time::Usual | Time::Recorded(Timing::Response), of)
        if is_same(of, statistic));
    is_of_these && is_of_time && matches!(threshold.operator(), Operator::Below | Operator::AtMost)
}

/// Whether two statistics are one. Quantiles are read from text, and are the same where they read the same.
fn is_same(one: Statistic, other: Statistic) -> bool {
    match (one, other) {
        (Statistic::Quantile(one), Statistic::Quantile(other)) => (one - other).abs() < 1e-9,
        _ => one == other,
    }
}

/// The interval of a time: `1.90ms to 2.60ms`, `over 977.0ms`; empty where both ends read the same.
pub(crate) fn within(low_ns: u64, high_ns: Option<u64>) -> String {
    let low = Duration(low_ns).to_string();
    match high_ns.map(|ns| Duration(ns).to_string()) {
        None => format!("over {low}"),
        Some(high) if high == low => String::new(),
        Some(high) => format!("{low} to {high}"),
    }
}
