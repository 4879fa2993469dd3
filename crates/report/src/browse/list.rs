//! The list of runs: filters, single runs with their courses and outcomes, decisions apart, and two runs to choose.

use brunt_decide::kept::{Entry, Filter, KeptKind, ListedRun, Page};
use brunt_judge::remarks::Tone;
use brunt_plan::units::Number;
use brunt_record::histogram::Percentile;

use super::{Html, ROOT, begun, filter_fields, filter_query, is_doubted, link, of_few, outcome, p99, svg, whole};
use crate::markup::query;
use crate::numbers::{brief, count, counted, percent};
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
    if list.page.count == 0 {
        if *list.filter == Filter::default() {
            body.raw("<p class=\"outcome\">No run is kept yet.</p><p>Type <code>brunt http://localhost:8080/</code> in a terminal, with the address of your server: each run is kept by itself, and stands here when this page is loaded again.</p><p class=\"faint\">")
                .text(list.file)
                .raw("</p>");
        } else {
            body.raw("<p class=\"outcome\">No kept run matches this filter.</p><p>Ask for less of it, or for <a href=\"./\">all runs</a>.</p>");
            filters(&mut body, list);
        }
        return whole("history", &body, true);
    }
    newest(&mut body, list);
    filters(&mut body, list);
    for number in &list.page.unreadable {
        body.raw("<p class=\"bad\">✗ Run ")
            .number(*number)
            .raw(" cannot be read: its row is damaged. <a href=\"forget?number=");
        body.number(*number).raw("\">Delete…</a></p>");
    }
    let (runs, decisions): (Vec<_>, Vec<_>) = list.page.runs.iter().partition(|run| run.entry.kind == KeptKind::Run);
    if !runs.is_empty() {
        body.raw("<form action=\"compare\" method=\"get\"><section aria-labelledby=\"runs-title\"><h2 id=\"runs-title\">Single runs</h2>");
        rows(&mut body, &runs);
        body.raw("<p class=\"bar\"><button>Compare the two that are ticked</button><span>Export those that are ticked:</span>");
        for (format, words) in EXPORTS {
            body.raw("<button formaction=\"export\" name=\"format\" value=\"").raw(format).raw("\">").raw(words);
            body.raw("</button>");
        }
        body.raw("</p></section></form>");
    }
    if !decisions.is_empty() {
        body.raw("<section aria-labelledby=\"decisions-title\"><h2 id=\"decisions-title\">Searches, sweeps and comparisons</h2>");
        decided(&mut body, &decisions);
        body.raw("</section>");
    }
    pages(&mut body, list);
    whole("history", &body, true)
}

/// What came last, and how many runs of the page failed.
fn newest(body: &mut Html, list: &List<'_>) {
    if let Some(run) = list.page.runs.first().filter(|_| list.skipped == 0) {
        let (class, words) = outcome(&run.entry);
        body.raw("<p class=\"outcome ").raw(class).raw("\">").text(&words).raw("</p><p>");
        body.raw(if run.entry.kind == KeptKind::Run { "The newest, run " } else { "The newest, decision " });
        to_run(body, run.entry.number);
        body.raw(": ");
        what(body, &run.entry);
        body.raw("</p>");
    }
    let runs = list.page.runs.iter().filter(|run| run.entry.kind == KeptKind::Run);
    let failed = runs.clone().filter(|run| is_failed(&run.entry)).count();
    body.raw("<p class=\"faint\">").text(&counted(list.page.count, "result")).raw(" in ").text(list.file);
    let runs = runs.count() as u64;
    if runs > 0 {
        body.text(&format!("; {failed} of {} on this page failed", counted(runs, "single run")));
    }
    body.raw("</p>");
}

fn is_failed(entry: &Entry) -> bool {
    matches!(entry.tone, Some(Tone::Failed | Tone::Failing | Tone::Bad))
}

fn filters(body: &mut Html, list: &List<'_>) {
    let is_asked = *list.filter != Filter::default();
    body.raw(if is_asked { "<details class=\"filter\" open>" } else { "<details class=\"filter\">" });
    body.raw(
        "<summary>Filter, or see a figure over these runs</summary><form role=\"search\" action=\"./\" method=\"get\">",
    );
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
    body.text(&filter_query(list.filter, &[("figure", "p99")])).raw("\">Trend of these runs</a></form></details>");
}

fn to_run(body: &mut Html, number: i64) {
    link(body, &format!("run{}", query(&[("number", &number.to_string())])), &number.to_string());
}

fn rows(body: &mut Html, runs: &[&ListedRun]) {
    body.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"single runs, the newest first\"><table class=\"wide\"><caption>the newest first; times are UTC; hatched: beyond the run's limit; hollow: a lower bound, or in doubt</caption><thead><tr><th scope=\"col\" class=\"words\">run</th><th scope=\"col\" class=\"words\">outcome</th><th scope=\"col\" class=\"words drawn\">answered/s over time</th><th scope=\"col\">answered/s</th><th scope=\"col\" class=\"words drawn\"><span class=\"visually-hidden\">p99 on one scale</span>");
    let scale = scale(runs);
    if let Some(scale) = scale {
        svg::axis(body, scale, |value| Unit::Ns.tick(value));
    }
    body.raw("</th><th scope=\"col\">p99</th><th scope=\"col\">failed</th></tr></thead><tbody>");
    for run in runs {
        row(body, run, scale);
    }
    body.raw("</tbody></table></div>");
}

/// A scale on which the p99 of each run has its place.
fn scale(runs: &[&ListedRun]) -> Option<Scale> {
    let answered = runs.iter().filter(|run| run.entry.answered_per_s > 0.0);
    let p99s = answered.filter_map(|run| run.entry.p99_ns);
    let limits = runs.iter().filter_map(|run| Some(run.sparkline.as_ref()?.p99_limit_ns?.0));
    let (low, high) = svg::range(p99s.clone().map(|ns| ns.max(1) as f64))?;
    // A limit far from all runs would leave no room for them.
    let near = limits.map(|ns| ns.max(1) as f64).filter(|ns| (low / NEAR..=high * NEAR).contains(ns));
    let (low, high) = near.fold((low, high), |(low, high), ns| (low.min(ns), high.max(ns)));
    Some(Scale::logarithmic(low / 1.3, high * 1.3))
}

/// Begins the first cell of a row: the number, and when it began.
fn first(body: &mut Html, entry: &Entry, is_choosable: bool) {
    body.raw("<tr><th scope=\"row\" class=\"words\">");
    if is_choosable {
        body.raw("<input type=\"checkbox\" name=\"run\" value=\"").number(entry.number);
        body.raw("\" aria-label=\"choose run ").number(entry.number).raw("\"> ");
    }
    to_run(body, entry.number);
    body.raw("<small>").text(&begun(entry.started_unix_ms)).raw("</small></th>");
}

fn row(body: &mut Html, run: &ListedRun, scale: Option<Scale>) {
    let entry = &run.entry;
    first(body, entry, true);
    let (class, words) = outcome(entry);
    body.raw("<td class=\"words\"><span class=\"").raw(class).raw("\">").text(&words).raw("</span>");
    body.raw(if is_doubted(entry) { " <span class=\"warning\">! in doubt</span><small>" } else { "<small>" });
    what(body, entry);
    body.raw("</small></td><td class=\"words drawn\">");
    let line = run.sparkline.as_ref();
    let rate = |per_s: f64| format!("{}/s", Number(per_s));
    svg::course(body, line.map_or(&[][..], |line| &line.answered_per_s), rate);
    body.raw("</td><td data-name=\"answered/s\">").text(&Number(entry.answered_per_s).to_string());
    body.raw("</td><td class=\"words drawn\">");
    let interval = line.and_then(|line| line.p99_interval_ns);
    // How long calls took that nobody answered says nothing of the target.
    let is_answered = entry.answered_per_s > 0.0;
    if let Some((ns, scale)) = entry.p99_ns.zip(scale).filter(|_| is_answered) {
        let value = |ns: u64| ns.max(1) as f64;
        let dot = svg::Dot {
            at: value(ns),
            interval: interval.map(|(low, high)| (value(low), high.map(value))),
            is_lower_bound: entry.at_least,
            is_doubted: is_doubted(entry),
            limit: line.and_then(|line| line.p99_limit_ns).map(|(ns, held)| (value(ns), held)),
        };
        dot.write(body, scale);
    }
    body.raw("</td><td data-name=\"p99\">");
    if let Some(p99) = p99(entry).filter(|_| is_answered) {
        body.text(&p99).raw("<small>");
        match (of_few(entry, Percentile::P99.share()), interval) {
            (Some(few), _) => body.text(&few),
            (None, Some((low, high))) => body.text(&crate::html::within(low, high)),
            (None, None) => body,
        };
        body.raw("</small>");
    }
    body.raw("</td><td data-name=\"failed\"");
    body.raw(if entry.error_rate > 0.0 { " class=\"bad\">" } else { ">" });
    body.text(&percent(entry.error_rate)).raw("</td></tr>");
}

fn decided(body: &mut Html, decisions: &[&ListedRun]) {
    body.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"searches, sweeps and comparisons, the newest first\"><table><caption>each over several runs, which it leads to; the newest first</caption><thead><tr><th scope=\"col\" class=\"words\">number</th><th scope=\"col\" class=\"words\">kind</th><th scope=\"col\" class=\"words\">what was found</th></tr></thead><tbody>");
    for run in decisions {
        let entry = &run.entry;
        first(body, entry, false);
        body.raw("<td class=\"words\">").raw(entry.kind.name()).raw("</td><td class=\"words\">");
        body.text(&outcome(entry).1).raw("<small>");
        what(body, entry);
        body.raw("</small></td></tr>");
    }
    body.raw("</tbody></table></div>");
}

/// A run's name, script, target and tags.
fn what(body: &mut Html, entry: &Entry) {
    if let Some(name) = &entry.label.name {
        body.raw("<strong>").text(&brief(name)).raw("</strong> ");
    }
    for text in [entry.script.as_deref().unwrap_or(""), &entry.url] {
        body.text(&brief(text)).raw(" ");
    }
    for (key, value) in &entry.label.tags {
        let filter = Filter { tags: vec![(key.clone(), value.clone())], ..Filter::default() };
        body.raw("<a class=\"tag\" href=\"./").text(&filter_query(&filter, &[])).raw("\">");
        body.text(&brief(&format!("{key}={value}"))).raw("</a> ");
    }
}

fn pages(body: &mut Html, list: &List<'_>) {
    let (first, shown) = (list.skipped.saturating_add(1), list.page.runs.len() + list.page.unreadable.len());
    let last = list.skipped.saturating_add(shown as u64);
    body.raw("<p class=\"bar\"><span>")
        .text(&format!("{} to {} of {}", count(first), count(last), count(list.page.count)))
        .raw("</span>");
    let most = u64::from(list.most);
    let mut other = |words: &str, skipped: u64| {
        let skipped = if skipped == 0 { String::new() } else { skipped.to_string() };
        link(body, &format!("{ROOT}{}", filter_query(list.filter, &[("skip", &skipped)])), words);
    };
    if list.skipped > 0 {
        other("Newer", list.skipped.saturating_sub(most));
    }
    if last < list.page.count {
        other("Older", list.skipped.saturating_add(most));
    }
    body.raw("</p>");
}
