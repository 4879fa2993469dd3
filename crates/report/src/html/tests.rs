#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use brunt_record::SECOND_NS;
use brunt_record::call_timeline::CallTimeline;
use brunt_record::catalogue::Counter;
use brunt_record::change::{Action, Author, Change};
use brunt_record::figures::{Example, FigureByName as _, OwnFigures, OwnKind};
use brunt_record::snapshot::Snapshot;

use super::*;
use crate::json;

/// A result that was kept.
fn golden(name: &str) -> Summary {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    json::read(&std::fs::read(path).unwrap()).unwrap()
}

fn page_of(summary: &Summary) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes, summary).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// What stands between the page's head and its scripts.
fn main_of(summary: &Summary) -> String {
    let page = page_of(summary);
    let (_, rest) = page.split_once("<main id=\"report\">").unwrap();
    rest.split_once("</main>").unwrap().0.to_owned()
}

/// Nothing from elsewhere becomes markup, wherever it is shown.
#[test]
fn hostile_text_is_shown_as_text() {
    let Summary { mut plan, mut run, .. } = golden("shop");
    let hostile = "</section></title><script>alert(1)</script>\u{202e}\" onload=\"x";
    plan.target.path = hostile.into();
    plan.origin.name = Some(hostile.into());
    plan.origin.command = hostile.into();
    plan.origin.tags.insert(hostile.into(), hostile.into());
    let mut second = Snapshot::default();
    second.events.add(hostile, 1);
    let names = &mut second.figures;
    names.requests.named(hostile).answered(503, 1000, 1000);
    names.groups.named(hostile).ended(7, 5, true);
    let example = || Example { status: Some(500), body: hostile.into() };
    names.checks.named(hostile).failed(None, hostile, example);
    names.scenarios.named(hostile).script_error(hostile);
    let mut own = OwnFigures::new(OwnKind::Counter, hostile);
    own.record(1.0, 0);
    names.own.named(hostile).merge(&own);
    run.series.push(SECOND_NS, &second, &plan.ok_status);
    run.measured.merge(&second);
    run.status_names.insert(503, hostile.into());
    let places = vec![(5, 1), (u64::MAX, u64::MAX)];
    run.timelines =
        vec![CallTimeline { chosen: hostile.into(), unit: hostile.into(), sent_ns: 9, places, ended_ns: 0 }];
    let mut summary = Summary::new(plan, run);
    summary.thresholds[0].condition = brunt_judge::thresholds::JudgedCondition::FailIf(hostile.to_owned());
    summary.thresholds[0].got = hostile.into();
    let main = main_of(&summary);
    assert!(!main.contains("<script") && !main.contains("\" onload=\"x"));
    assert!(main.matches("&lt;script&gt;").count() >= 17, "{}", main.matches("&lt;script&gt;").count());
    assert!(!main.contains('\u{202e}'), "nothing turns the direction of writing");
    let page = page_of(&summary);
    assert_eq!(page.matches("<script>").count(), 3, "those of the page alone");
}

#[test]
fn a_change_has_its_line_on_the_charts_of_single_names_too() {
    let mut summary = golden("shop");
    let lines = |summary: &Summary| main_of(summary).matches("<path class=\"change\"").count();
    assert_eq!(lines(&summary), 0);
    let names = summary.run.series.drilldown().requests.tracks().len();
    let change = Change { at_ns: 1_500_000_000, action: Action::Rate(5.0), by: Author::Ctl };
    summary.run.changes = vec![change];
    // The run, its load, each name, and more below it.
    assert!(names > 0 && lines(&summary) >= 2 + names, "{} of {names} names", lines(&summary));
}

#[test]
fn a_page_is_whole_without_a_script() {
    for name in ["shop", "open", "failing", "clean", "tls", "silent", "empty", "interrupted", "streams"] {
        let summary = golden(name);
        let main = main_of(&summary);
        let pairs = ["svg", "section", "text", "p", "table", "tr", "td", "th", "div", "ul", "li", "figure", "details"];
        for tag in pairs {
            let opened = main.matches(&format!("<{tag} ")).count() + main.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, main.matches(&format!("</{tag}>")).count(), "{name}: {tag}");
        }
        assert!(!main.contains("NaN") && !main.contains("inf\""), "{name}");
        let unended = [Counter::Unsent, Counter::Unfinished].map(|counter| summary.total.numbers.get(counter));
        let is_failing = summary.not_ok > unended.iter().sum();
        let (screen, _) = main.split_once("<nav").unwrap();
        assert_eq!(screen.contains("class=\"failed\""), is_failing, "{name}");
        if ["shop", "open", "failing", "clean"].contains(&name) {
            assert!(main.contains("class=\"p99\" d=\"M") && main.contains("Ok calls a second"), "{name}");
            for section in [
                "id=\"outcomes\"",
                "id=\"histogram\"",
                "id=\"spectrum\"",
                "id=\"latency\"",
                "id=\"load\"",
                "id=\"each\"",
            ] {
                assert!(main.contains(section), "{name}: {section}");
            }
        }
    }
}

#[test]
fn the_page_shows_the_figures_of_the_summary() {
    let summary = golden("shop");
    let main = main_of(&summary);
    let response = summary.times.response.as_ref().unwrap();
    let quantile = &response.quantiles[4];
    let cell = format!("data-sort=\"{}\"", quantile.value_ns);
    assert!(main.contains(&cell), "{cell}");
    for request in &summary.breakdown.requests {
        assert!(main.contains(&format!("<th scope=\"row\" class=\"words\">{}</th>", request.name)), "{}", request.name);
    }
    assert!(main.contains("503 Busy"));
    // A lower bound stays one.
    let open = main_of(&golden("open"));
    assert!(open.contains("≥900.0ms") && open.contains("at least: 100 calls had not ended"));
}

/// The page leads with what failed, whatever that is about, with its limit.
#[test]
fn the_figure_of_the_condition_that_failed_leads() {
    let leads = |name: &str, condition: &str| {
        let Summary { mut plan, run, .. } = golden(name);
        plan.thresholds = vec![condition.parse().unwrap()];
        plan.max_error_rate = 1.0;
        plan.max_less_ratio = 1.0;
        let summary = Summary::new(plan, run);
        assert!(!summary.thresholds[0].held, "{condition}");
        let main = main_of(&summary);
        let (_, hero) = main.split_once("<div class=\"tile hero\" data-figure=\"").unwrap();
        let hero = hero.split("</div>").next().unwrap();
        let between = |from: &str, to: &str| hero.split_once(from).unwrap().1.split(to).next().unwrap().to_owned();
        let value = between("<span class=\"value bad\">", "</span>");
        assert_eq!(value, summary.thresholds[0].got.to_string(), "{condition}");
        [between("<dt>", "</dt>"), between("<small>", "</small>")]
    };
    for (condition, what, limit) in [
        ("home:p95<1ns", "p95 of home", "limit &lt;1ns"),
        ("request home:p95<1ns", "p95 of request home", "limit &lt;1ns"),
        ("plan=pro:error_rate<1%", "error_rate of plan=pro", "limit &lt;1%"),
        ("group cart:with_pauses.p95<1ms", "with_pauses.p95 of group cart", "limit &lt;1ms"),
        ("check \"home: has a cart\":fails<=0", "fails of check home: has a cart", "limit &lt;=0"),
        ("scenario checkout:iteration.p95<1ms", "iteration.p95 of scenario checkout", "limit &lt;1ms"),
        ("figure queue:max<1", "max of figure queue", "limit &lt;1"),
        ("checks>100%", "checks", "limit &gt;100%"),
    ] {
        assert_eq!(leads("shop", condition), [what, limit], "{condition}");
    }
    assert_eq!(leads("watched", "watch.cpu:max<95%"), ["max of watched cpu", "limit &lt;95%"]);
    assert_eq!(leads("watched", "watch.cpu<5%"), ["watch.cpu", "limit &lt;5%"]);
}

/// Ids are the addresses of parts: none stands twice.
#[test]
fn no_id_stands_twice() {
    for name in ["shop", "open", "failing"] {
        let main = main_of(&golden(name));
        let mut ids: Vec<_> = main.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{name}");
    }
}
