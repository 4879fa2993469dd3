//! The page of a kept run or decision: its report, with the ways on from it above.

use std::io::{self, Write};

use brunt_decide::kept::{Entry, Filter, KeptKind};
use brunt_judge::summary::Summary;

use super::{Html, filter_query, link, page};
use crate::decision::{self, Decision, Runs};
use crate::html;
use crate::markup::query;

/// What a page is about.
#[derive(Debug, Clone, Copy)]
pub enum Report<'a> {
    /// A single run.
    Run(&'a Summary),
    /// A decision, and where its runs are found.
    Decision(Decision<'a>, Runs<'a>),
}

/// Writes the page of a report; `entry` is what is known of it in the store, missing for one that is not kept.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_kept(out: &mut impl Write, report: Report<'_>, entry: Option<&Entry>) -> io::Result<()> {
    let page = match report {
        Report::Run(summary) => html::finished(summary),
        Report::Decision(decision, runs) => decision::page(decision, runs, None),
    };
    page.behind(&ways(entry)).write(out)
}

/// The ways on from a report.
fn ways(entry: Option<&Entry>) -> Html {
    let mut html = Html::default();
    html.raw("<nav id=\"kept\" aria-label=\"history\"><ul><li><a href=\"./\">All runs</a></li>");
    let mut way = |address: &str, words: &str| {
        html.raw("<li>");
        link(&mut html, address, words);
        html.raw("</li>");
    };
    if let Some(entry) = entry {
        if let Some(decision) = entry.part_of {
            way(&format!("run{}", query(&[("number", &decision.to_string())])), &format!("Part of {decision}"));
        }
        let is_run = entry.kind == KeptKind::Run;
        if is_run {
            // Comparable runs have the same target and script.
            let filter = Filter {
                target: entry.url.clone(),
                script: entry.script.clone().unwrap_or_default(),
                name: entry.label.name.clone().unwrap_or_default(),
                ..Filter::default()
            };
            way(&format!("trend{}", filter_query(&filter, &[("figure", "p99")])), "Trend of runs like it");
        }
        let formats = [("json", "JSON"), ("csv", "CSV"), ("junit", "JUnit"), ("markdown", "Markdown")];
        for (format, words) in formats {
            let query = query(&[("number", &entry.number.to_string()), ("format", format)]);
            way(&format!("export{query}"), words);
        }
        let of = if is_run { "run" } else { "decision" };
        way(
            &format!("forget{}", query(&[("number", &entry.number.to_string())])),
            &format!("Delete {of} {}…", entry.number),
        );
    }
    html.raw("</ul></nav>");
    html
}

/// The page that asks whether to delete; `parts` says whether the runs of a decision go with it. `token` is what its form has to send.
pub fn forget(number: i64, parts: bool, token: &str) -> String {
    let mut body = Html::default();
    body.raw("<p class=\"outcome\">This cannot be undone.</p><form action=\"delete\" method=\"post\"><input type=\"hidden\" name=\"token\" value=\"")
        .text(token)
        .raw("\"><input type=\"hidden\" name=\"number\" value=\"")
        .number(number)
        .raw("\"><p class=\"bar\"><button class=\"bad\">Delete ")
        .number(number)
        .raw(if parts { " and its runs for good" } else { " for good" })
        .raw("</button> <a href=\"run?number=")
        .number(number)
        .raw("\">Keep it</a></p></form>");
    page(&format!("delete {number}"), &body)
}
