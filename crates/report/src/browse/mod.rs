//! The pages of `brunt ui`: the list of kept runs, a single run, a figure over runs. Plain HTML without a script; links
//! are relative, all pages are in one folder, and all content comes from [`brunt_decide::kept`].

use brunt_decide::kept::{Entry, Filter, KeptKind};
use brunt_judge::remarks::Tone;
use brunt_judge::verdict::Judgement;
use brunt_record::histogram::AtLeast;

use crate::dates::to_the_minute as begun;
use crate::headline::InReports;
use crate::markup::{Html, query};
use crate::numbers::{brief, counted, duration};

mod list;
mod run;
mod svg;
mod trend;

pub use list::{List, list};
pub use run::{Details, run};
pub use trend::{TrendTable, trend};

/// The pages' style sheet, at `style.css` beside them.
pub const STYLE: &str = include_str!("style.css");

/// A page for an error: `problem`, and the way back.
pub fn problem(title: &str, problem: &str) -> String {
    let mut body = Html::default();
    body.raw("<p class=\"bad\" role=\"alert\">").text(problem).raw("</p><p><a href=\"./\">All runs</a></p>");
    page(title, &body)
}

/// A comparison of two runs as text.
pub fn comparison(a: i64, b: i64, text: &str) -> String {
    let mut body = Html::default();
    body.raw("<p><a href=\"./\">All runs</a>");
    let link = query(&[("run", &a.to_string()), ("run", &b.to_string()), ("page", "1")]);
    body.raw(" · <a href=\"compare").text(&link).raw("\">With charts</a>");
    body.raw("</p><pre tabindex=\"0\" aria-label=\"comparison\">").text(text).raw("</pre>");
    page(&format!("Run {b} compared with run {a}"), &body)
}

fn page(title: &str, body: &Html) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        .raw("<meta name=\"color-scheme\" content=\"light dark\">\n<title>")
        .text(title)
        .raw(" · brunt</title>\n<link rel=\"stylesheet\" href=\"style.css\">\n</head>\n<body>\n<main>\n<h1>")
        .text(title)
        .raw("</h1>\n")
        .html(body)
        .raw("\n</main>\n</body>\n</html>\n");
    html.into_string()
}

/// Its p99 for people.
fn p99(entry: &Entry) -> Option<String> {
    entry.p99_ns.map(|value| duration(AtLeast { value, at_least: entry.at_least }))
}

/// Of how many calls the quantile `q` is, where they are too few to bound it from above: ` of 40 calls`.
fn of_few(entry: &Entry, q: f64) -> Option<String> {
    entry.few_calls(q).map(|calls| format!(" of {}", counted(calls, "call")))
}

/// The outcome of a run, or the kind of a decision: a class, and words.
fn outcome(entry: &Entry) -> (&'static str, String) {
    match &entry.headline {
        Some(headline) => (entry.tone.map_or("", Tone::class), brief(headline)),
        None => ("", entry.kind.name().to_owned()),
    }
}

/// The doubt about a run's figures, if they cannot be believed.
fn doubt(entry: &Entry) -> Option<String> {
    entry.judgement.filter(|judgement| *judgement != Judgement::Trustworthy).map(|_| brief(&entry.verdict))
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
