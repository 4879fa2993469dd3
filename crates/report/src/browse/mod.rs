//! The pages of `brunt ui`: the list of kept runs, a figure over runs, the report of a run with the ways on from it. The list and the figure
//! are plain HTML without a script. Links are relative, and all pages are in one folder.

use brunt_decide::kept::{Entry, Filter, KeptKind};
use brunt_judge::remarks::Tone;
use brunt_judge::verdict::Judgement;
use brunt_record::histogram::AtLeast;

use crate::dates::to_the_minute as begun;
use crate::headline::InReports;
use crate::markup::{Html, query};
use crate::numbers::{brief, counted, duration};

mod kept;
mod list;
mod svg;
mod trend;

pub use kept::{Report, forget, write_kept};
pub use list::{List, list};
pub use trend::{TrendTable, trend};

/// The pages' style sheet, at `style.css` beside them: that of reports, and what lists need.
pub const STYLE: &str = concat!(include_str!("../page/assets/style.css"), include_str!("style.css"));

/// The address of the list, seen from every page.
const ROOT: &str = "./";

/// A page for an error: `problem`, and the way back.
pub fn problem(title: &str, problem: &str) -> String {
    let mut body = Html::default();
    body.raw("<p class=\"outcome bad\" role=\"alert\">✗ ").text(problem).raw("</p>");
    page(title, &body)
}

/// A page for a run that cannot be read, which can still be deleted.
pub fn unreadable(number: i64, problem: &str) -> String {
    let mut body = Html::default();
    body.raw("<p class=\"outcome bad\" role=\"alert\">✗ ").text(problem).raw("</p><p><a href=\"forget?number=");
    body.number(number).raw("\">Delete…</a></p>");
    page(&format!("run {number}"), &body)
}

/// A page behind the list, with the way back to it.
fn page(title: &str, body: &Html) -> String {
    whole(title, body, false)
}

/// A page; the list itself is the root.
fn whole(title: &str, body: &Html, is_root: bool) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        .raw("<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>brunt ")
        .text(title)
        .raw("</title>\n<link rel=\"stylesheet\" href=\"style.css\">\n</head>\n<body>\n<main id=\"history\">\n")
        .raw(if is_root {
            ""
        } else {
            "<nav id=\"kept\" aria-label=\"history\"><ul><li><a href=\"./\">All runs</a></li></ul></nav>"
        })
        .raw("<header><h1><span class=\"brand\">brunt</span> ")
        .text(title)
        .raw("</h1></header>\n")
        .html(body)
        .raw("\n</main>\n</body>\n</html>\n");
    html.into_string()
}

/// A link; both its address and its words are text.
fn link(html: &mut Html, address: &str, words: &str) {
    html.raw("<a href=\"").text(address).raw("\">").text(words).raw("</a>");
}

/// Its p99 for people.
fn p99(entry: &Entry) -> Option<String> {
    entry.p99_ns.map(|value| duration(AtLeast { value, at_least: entry.at_least }))
}

/// Of how many calls the quantile `q` is, where they are too few to bound it from above: `of 40 calls`.
fn of_few(entry: &Entry, q: f64) -> Option<String> {
    entry.few_calls(q).map(|calls| format!("of {}", counted(calls, "call")))
}

/// The outcome of a run, or what a decision found: a class, and words.
fn outcome(entry: &Entry) -> (&'static str, String) {
    match &entry.headline {
        Some(headline) => (entry.tone.map_or("", Tone::class), brief(headline)),
        None => ("", brief(&entry.verdict)),
    }
}

/// Whether brunt itself may have shaped a run's figures.
fn is_doubted(entry: &Entry) -> bool {
    matches!(entry.judgement, Some(Judgement::GeneratorBound | Judgement::LatencyUnreliable))
}

/// The tags of a filter as its field has them: `branch=main build=7`.
fn tags(filter: &Filter) -> String {
    filter.tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// A query that asks for the runs of `filter`, and for `more`.
fn filter_query(filter: &Filter, more: &[(&str, &str)]) -> String {
    let tags = tags(filter);
    let parts = if filter.with_parts { "1" } else { "" };
    let own = [
        ("name", filter.name.as_str()),
        ("target", &filter.target),
        ("script", &filter.script),
        ("tag", &tags),
        ("kind", filter.kind.map_or("", KeptKind::name)),
        ("parts", parts),
    ];
    query(&[&own, more].concat())
}

/// A field of a form, under its name.
fn field(html: &mut Html, label: &'static str, name: &'static str, value: &str, suggestions: &'static str) {
    html.raw("<label>").raw(label).raw("<input name=\"").raw(name).raw("\" value=\"").text(value);
    if !suggestions.is_empty() {
        html.raw("\" list=\"").raw(suggestions);
    }
    html.raw("\"></label>");
}

/// The fields that narrow down which runs are meant.
fn filter_fields(html: &mut Html, filter: &Filter, known_tags: &[String]) {
    field(html, "Name", "name", &filter.name, "");
    field(html, "Target", "target", &filter.target, "");
    field(html, "Script", "script", &filter.script, "");
    field(html, "Tags", "tag", &tags(filter), "tags");
    html.raw("<datalist id=\"tags\">");
    for tag in known_tags {
        html.raw("<option value=\"").text(tag).raw("\">");
    }
    html.raw("</datalist>");
}
