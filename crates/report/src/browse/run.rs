//! The page of one run: its description, its figures, its report as text, and actions on it.

use brunt_decide::kept::{KeptFigure, KeptKind, Limit, ListedRun};
use brunt_plan::threshold::shown;
use brunt_plan::units::{Duration, Number};

use super::{Html, begun, doubt, filter_query, of_few, outcome, page, svg};
use crate::numbers::{brief, count};

/// The content of a run's page.
#[derive(Debug, Clone, Copy)]
pub struct Details<'a> {
    /// The run.
    pub run: &'a ListedRun,
    /// Its figures.
    pub figures: &'a [KeptFigure],
    /// Its thresholds.
    pub limits: &'a [Limit],
    /// Its report as text, or the reason for its absence.
    pub report: Result<&'a str, &'a str>,
    /// The numbers and names of the runs behind it, for a decision.
    pub parts: &'a [(i64, String)],
    /// The token that a form needs to delete it.
    pub token: &'a str,
}

/// The page of a run.
pub fn run(details: &Details<'_>) -> String {
    let entry = &details.run.entry;
    let number = entry.number.to_string();
    let mut body = Html::default();
    body.raw("<p class=\"bar\"><a href=\"./\">All runs</a>");
    if details.report.is_ok() {
        body.raw("<a href=\"report?number=").text(&number).raw("\">Report page with charts</a>");
    }
    let formats: &[&'static str] =
        if entry.kind == KeptKind::Run { &["json", "csv", "junit"] } else { &["json", "csv", "junit", "markdown"] };
    for format in formats.iter().filter(|_| details.report.is_ok()) {
        body.raw("<a href=\"export?number=").text(&number).raw("&amp;format=").raw(format);
        body.raw("\" download>").text(&format.to_uppercase()).raw("</a>");
    }
    body.raw("</p><dl>");
    let (class, words) = outcome(entry);
    pair(&mut body, "Outcome", class, &words);
    if let Some(doubt) = doubt(entry) {
        pair(&mut body, "Measurement", "doubt", &doubt);
    }
    pair(&mut body, "Begun (UTC)", "", &begun(entry.started_unix_ms));
    pair(&mut body, "Target", "", &brief(&entry.url));
    for (name, value) in [("Name", entry.label.name.as_deref()), ("Script", entry.script.as_deref())] {
        if let Some(value) = value {
            pair(&mut body, name, "", &brief(value));
        }
    }
    for (key, value) in &entry.label.tags {
        pair(&mut body, "Tag", "", &brief(&format!("{key}={value}")));
    }
    pair(&mut body, "Calls due", "", &count(entry.due));
    body.raw("</dl>");
    course(&mut body, details.run);
    limits(&mut body, details.limits);
    figures(&mut body, details);
    if let Some(decision) = entry.part_of {
        body.raw("<p>Part of <a href=\"run?number=").number(decision).raw("\">").number(decision).raw("</a></p>");
    }
    if !details.parts.is_empty() {
        body.raw("<h2>Runs behind this result</h2><ul class=\"figures\">");
        for (part, name) in details.parts {
            body.raw("<li><a href=\"run?number=").number(*part).raw("\">").number(*part).raw("</a> ");
            body.text(&brief(name)).raw("</li>");
        }
        body.raw("</ul>");
    }
    body.raw("<h2>Report</h2>");
    match details.report {
        Ok(text) => body.raw("<pre tabindex=\"0\" aria-label=\"report\">").text(text).raw("</pre>"),
        Err(problem) => body.raw("<p class=\"bad\" role=\"alert\">").text(problem).raw("</p>"),
    };
    body.raw("<details><summary>Delete…</summary><form action=\"delete\" method=\"post\">")
        .raw("<input type=\"hidden\" name=\"token\" value=\"")
        .text(details.token)
        .raw("\"><input type=\"hidden\" name=\"number\" value=\"")
        .text(&number)
        .raw("\"><button class=\"bad\">Delete ")
        .text(&number)
        .raw(if details.parts.is_empty() { " for good" } else { " and its runs for good" })
        .raw("</button></form></details>");
    page(&format!("{} {number}", if entry.kind == KeptKind::Run { "Run" } else { "Decision" }), &body)
}

fn pair(body: &mut Html, name: &'static str, class: &'static str, value: &str) {
    body.raw("<div><dt>").raw(name).raw("</dt><dd class=\"").raw(class).raw("\">").text(value).raw("</dd></div>");
}

fn course(body: &mut Html, run: &ListedRun) {
    let Some(line) = &run.sparkline else { return };
    let rates: Vec<_> = line.answered_per_s.iter().copied().map(Some).collect();
    // A decision has no rates of its own.
    if rates.is_empty() {
        return;
    }
    let p99s: Vec<_> = line.p99_ns.iter().map(|ns| ns.map(|ns| ns as f64)).collect();
    body.raw("<p class=\"course\">Answered ");
    svg::sparkline(body, "answered a second", &rates, |n| format!("{}/s", Number(n)));
    body.raw(" p99 ");
    svg::sparkline(body, "p99", &p99s, |ns| Duration(ns as u64).to_string());
    body.raw("</p>");
}

fn limits(body: &mut Html, limits: &[Limit]) {
    if limits.is_empty() {
        return;
    }
    body.raw("<h2>Thresholds</h2><ul class=\"plain\">");
    for limit in limits {
        body.raw(if limit.held {
            "<li><span class=\"good\">✓ held</span> "
        } else {
            "<li><span class=\"bad\">✗ failed</span> "
        });
        body.text(&brief(limit.threshold.trim())).raw(" — got ").text(&brief(&limit.got)).raw("</li>");
    }
    body.raw("</ul>");
}

fn figures(body: &mut Html, details: &Details<'_>) {
    if details.figures.is_empty() {
        return;
    }
    let entry = &details.run.entry;
    // Comparable runs have the same target and script.
    let filter = brunt_decide::kept::Filter {
        target: entry.url.clone(),
        script: entry.script.clone().unwrap_or_default(),
        name: entry.label.name.clone().unwrap_or_default(),
        ..Default::default()
    };
    body.raw("<h2>Figures</h2><ul class=\"figures\">");
    for figure in details.figures {
        let value = shown(&figure.name, figure.value).unwrap_or_else(|| figure.value.to_string());
        let link = filter_query(&filter, &[("figure", &figure.name)]);
        body.raw("<li><a href=\"trend").text(&link).raw("\">").text(&brief(&figure.name)).raw("</a> ");
        body.text(if figure.at_least { "≥" } else { "" }).text(&value);
        body.text(&figure.quantile().and_then(|q| of_few(entry, q)).unwrap_or_default()).raw("</li>");
    }
    body.raw("</ul>");
}
