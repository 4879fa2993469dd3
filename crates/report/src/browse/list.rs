//! The list of runs: filters, a row for each with its course and outcome, and two to choose.

use brunt_decide::kept::{Entry, Filter, KeptKind, ListedRun, Page};
use brunt_plan::units::Number;
use brunt_record::histogram::Percentile;

use super::{Html, begun, filter_fields, filter_query, of_few, outcome, p99, page, svg};
use crate::numbers::{brief, count, percent};
use crate::page::{Scale, Unit};

/// The content of a page of the list.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    /// The runs.
    pub page: &'a Page,
    /// The filter that was asked for.
    pub filter: &'a Filter,
    /// The number of newer runs, on earlier pages.
    pub skipped: u64,
    /// The most runs of a page.
    pub most: u32,
    /// Tags to choose from, as `key=value`.
    pub tags: &'a [String],
    /// The file that they are kept in.
    pub file: &'a str,
}

const KINDS: [(&str, &str); 5] = [
    ("", "everything"),
    ("run", "single runs"),
    ("sweep", "sweeps"),
    ("capacity", "searches"),
    ("comparison", "comparisons"),
];

/// The formats in which several runs can be downloaded at once, with their names.
const EXPORTS: [(&str, &str); 2] = [("csv", "CSV"), ("json", "JSON")];

/// How far beyond every p99 a limit may lie and still be on their scale.
const NEAR: f64 = 10.0;

/// The page of a list.
pub fn list(list: &List<'_>) -> String {
    let mut body = Html::default();
    body.raw("<p class=\"faint\">").text(list.file).raw("</p>");
    filters(&mut body, list);
    if list.page.count == 0 {
        body.raw("<p>No runs.</p>");
        return page("Runs", &body);
    }
    for number in &list.page.unreadable {
        body.raw("<p class=\"bad\">Run ").number(*number).raw(" cannot be read: its row is damaged.</p>");
    }
    body.raw("<form action=\"compare\" method=\"get\">");
    rows(&mut body, &list.page.runs);
    body.raw(
        "<p class=\"bar\"><button>Compare the two that are ticked</button><span>Export those that are ticked:</span>",
    );
    for (format, words) in EXPORTS {
        body.raw("<button formaction=\"export\" name=\"format\" value=\"").raw(format).raw("\">").raw(words);
        body.raw("</button>");
    }
    pages(&mut body, list);
    body.raw("</p></form>");
    page("Runs", &body)
}

fn filters(body: &mut Html, list: &List<'_>) {
    body.raw("<form class=\"filter\" role=\"search\" action=\"./\" method=\"get\">");
    filter_fields(body, list.filter, list.tags);
    body.raw("<label>Kind<select name=\"kind\">");
    for (value, words) in KINDS {
        let is_selected = value == list.filter.kind.map_or("", KeptKind::name);
        body.raw("<option value=\"").raw(value).raw(if is_selected { "\" selected>" } else { "\">" });
        body.raw(words).raw("</option>");
    }
    body.raw("</select></label><label class=\"tick\"><input type=\"checkbox\" name=\"parts\" value=\"1\"");
    body.raw(if list.filter.with_parts { " checked>" } else { ">" })
        .raw("single runs of find, compare and sweep</label>");
    body.raw("<button>Filter</button> <a href=\"./\">Reset</a> <a href=\"trend");
    body.text(&filter_query(list.filter, &[("figure", "p99")])).raw("\">Trend of these runs</a></form>");
}

fn rows(body: &mut Html, runs: &[ListedRun]) {
    body.raw(
        "<table role=\"table\"><caption class=\"hidden\">Runs, the newest first</caption><thead role=\"rowgroup\">",
    )
    .raw("<tr role=\"row\"><th role=\"columnheader\"><span class=\"hidden\">Choose</span></th>");
    let scale = scale(runs);
    for name in ["Run", "Begun (UTC)", "Outcome", "Answered/s", "p99", "Errors", "What"] {
        body.raw("<th role=\"columnheader\">").raw(name);
        if let Some(scale) = scale.filter(|_| name == "p99") {
            let ends = format!("{} to {}", Unit::Ns.tick(scale.low), Unit::Ns.tick(scale.high));
            body.raw(" <small>").text(&ends).raw("</small>");
        }
        body.raw("</th>");
    }
    body.raw("</tr></thead><tbody role=\"rowgroup\">");
    for run in runs {
        row(body, run, scale);
    }
    body.raw("</tbody></table>");
}

/// A scale on which the p99 of each run has its place.
fn scale(runs: &[ListedRun]) -> Option<Scale> {
    let p99s = runs.iter().filter_map(|run| run.entry.p99_ns);
    let limits = runs.iter().filter_map(|run| Some(run.sparkline.as_ref()?.p99_limit_ns?.0));
    let (low, high) = svg::range(p99s.clone().map(|ns| ns.max(1) as f64))?;
    // A limit far from all runs would leave no room for them.
    let near = limits.map(|ns| ns.max(1) as f64).filter(|ns| (low / NEAR..=high * NEAR).contains(ns));
    let (low, high) = near.fold((low, high), |(low, high), ns| (low.min(ns), high.max(ns)));
    let power = |value: f64| 10_f64.powf(value);
    let (low, high) = (power(low.log10().floor()), power(high.log10().ceil()));
    Some(Scale::logarithmic(low, high.max(low * 10.0)))
}

/// Begins a cell. `name` is its label where rows are too narrow for columns.
fn cell(body: &mut Html, name: &'static str) {
    body.raw("<td role=\"cell\" data-label=\"").raw(name).raw("\">");
}

fn row(body: &mut Html, run: &ListedRun, scale: Option<Scale>) {
    let entry = &run.entry;
    let is_run = entry.kind == KeptKind::Run;
    body.raw("<tr role=\"row\">");
    cell(body, "Choose");
    if is_run {
        body.raw("<input type=\"checkbox\" name=\"run\" value=\"").number(entry.number);
        body.raw("\" aria-label=\"choose run ").number(entry.number).raw("\">");
    }
    body.raw("</td>");
    cell(body, "Run");
    body.raw("<a href=\"run?number=").number(entry.number).raw("\">").number(entry.number).raw("</a></td>");
    cell(body, "Begun (UTC)");
    body.text(&begun(entry.started_unix_ms)).raw("</td>");
    cell(body, "Outcome");
    let (class, words) = outcome(entry);
    body.raw("<span class=\"").raw(class).raw("\">").text(&words).raw("</span></td>");
    let line = run.sparkline.as_ref();
    let rates: Vec<_> = line.map_or(&[][..], |line| &line.answered_per_s).iter().copied().map(Some).collect();
    cell(body, "Answered/s");
    if is_run {
        svg::sparkline(body, "answered a second", &rates, |n| format!("{}/s", Number(n)));
        body.text(&Number(entry.answered_per_s).to_string());
    }
    body.raw("</td>");
    cell(body, "p99");
    if let Some((p99, scale)) = p99(entry).zip(scale) {
        let share = |ns: u64| scale.share(ns.max(1) as f64);
        let dot = svg::Dot {
            at: share(entry.p99_ns.unwrap_or(1)),
            interval: line
                .and_then(|line| line.p99_interval_ns)
                .map(|(low, high)| (share(low), high.map_or(1.0, share))),
            is_lower_bound: entry.at_least,
            limit: line.and_then(|line| line.p99_limit_ns).map(|(ns, held)| (share(ns), held)),
        };
        dot.write(body);
        body.text(&p99);
        if let Some(few) = of_few(entry, Percentile::P99.share()) {
            body.raw("<small>").text(&few).raw("</small>");
        }
    }
    body.raw("</td>");
    cell(body, "Errors");
    if is_run {
        body.raw(if entry.error_rate > 0.0 { "<span class=\"bad\">" } else { "<span>" });
        body.text(&percent(entry.error_rate)).raw("</span>");
    }
    body.raw("</td>");
    cell(body, "What");
    what(body, entry);
    body.raw("</td></tr>");
}

/// A run's name, target, script, tags, and kind of decision.
fn what(body: &mut Html, entry: &Entry) {
    if let Some(name) = &entry.label.name {
        body.raw("<strong>").text(&brief(name)).raw("</strong> ");
    }
    if entry.kind != KeptKind::Run {
        body.text(&brief(&entry.verdict)).raw(" ");
    }
    for text in [entry.script.as_deref().unwrap_or(""), &entry.url] {
        body.raw("<span class=\"what\">").text(&brief(text)).raw("</span> ");
    }
    for (key, value) in &entry.label.tags {
        let tag = format!("{key}={value}");
        let filter = Filter { tags: vec![(key.clone(), value.clone())], ..Filter::default() };
        body.raw("<a class=\"tag\" href=\"./")
            .text(&filter_query(&filter, &[]))
            .raw("\">")
            .text(&brief(&tag))
            .raw("</a> ");
    }
}

fn pages(body: &mut Html, list: &List<'_>) {
    let (first, shown) = (list.skipped.saturating_add(1), list.page.runs.len() + list.page.unreadable.len());
    let last = list.skipped.saturating_add(shown as u64);
    body.raw("<span>")
        .text(&format!("{} to {} of {}", count(first), count(last), count(list.page.count)))
        .raw("</span>");
    let most = u64::from(list.most);
    let mut link = |words: &'static str, skipped: u64| {
        let skipped = if skipped == 0 { String::new() } else { skipped.to_string() };
        body.raw("<a href=\"./")
            .text(&filter_query(list.filter, &[("skip", &skipped)]))
            .raw("\">")
            .raw(words)
            .raw("</a>");
    };
    if list.skipped > 0 {
        link("Newer", list.skipped.saturating_sub(most));
    }
    if last < list.page.count {
        link("Older", list.skipped.saturating_add(most));
    }
}
