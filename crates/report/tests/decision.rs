//! Views of what is decided over several runs, byte for byte: the text of each, every view of one of each kind.
//! `UPDATE_GOLDEN=1 cargo test -p brunt-report` writes the files anew.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::path::PathBuf;

use brunt_decide::compare::ComparedRuns;
use brunt_decide::decision::KeptDecision;
use brunt_report::Style;
use brunt_report::decision::{Decision, DecisionFormat, Runs, page_data, read, render};
use brunt_report::json::ReadError;

mod decisions;
mod fixtures;

fn check(name: &str, got: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, got).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(expected == got, "{name} is not what was kept; if it is right, set UPDATE_GOLDEN=1\n{got}");
}

fn rendered(format: DecisionFormat, decision: Decision<'_>, colour: bool) -> String {
    let text = String::from_utf8(render(format, decision, Style { colour, ..Style::default() }).unwrap()).unwrap();
    let version = |version: &str| format!("\"brunt_version\": \"{version}\"");
    text.replace(&version(env!("CARGO_PKG_VERSION")), &version("0.0.0"))
}

/// `text` without ANSI sequences.
fn without_colour(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// The decisions of which every view is kept. The others differ in their words, which the text has, and their JSON fits the
/// schema and is read back.
const WHOLE: [&str; 3] = ["capacity-found", "comparison-messages", "sweep-fallen"];

fn check_views(name: &str, decision: Decision<'_>) {
    let text = rendered(DecisionFormat::Text, decision, false);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{name}: {line}");
        assert_eq!(line.trim_end(), line, "{name}: spaces at a line's end");
    }
    let coloured = rendered(DecisionFormat::Text, decision, true);
    assert_eq!(without_colour(&coloured), text, "{name}: colour changes nothing but colour");
    check(&format!("{name}.txt"), &text);
    let csv = rendered(DecisionFormat::Csv, decision, false);
    let columns = |line: &str| line.split('"').step_by(2).collect::<String>().matches(',').count();
    let header = csv.lines().next().map(columns);
    assert!(csv.lines().all(|line| Some(columns(line)) == header), "{name}: {csv}");
    if WHOLE.contains(&name) {
        check(&format!("{name}.ansi"), &coloured);
        check(&format!("{name}.csv"), &csv);
        check(&format!("{name}.xml"), &rendered(DecisionFormat::Junit, decision, false));
        check(&format!("{name}.md"), &rendered(DecisionFormat::Markdown, decision, false));
        check(&format!("{name}.json"), &rendered(DecisionFormat::Json, decision, false));
    }
}

#[test]
fn capacities() {
    for (name, plan, capacity) in decisions::capacities() {
        check_views(&format!("capacity-{name}"), Decision::Capacity(&plan, &capacity));
    }
}

#[test]
fn a_rate_of_conversations_is_none_of_calls() {
    let all = decisions::capacities().into_iter();
    let answered = all.filter(|(name, ..)| matches!(*name, "found" | "generator" | "silent"));
    for (name, mut plan, capacity) in answered {
        plan.own_times = true;
        let decision = Decision::Capacity(&plan, &capacity);
        for format in [DecisionFormat::Text, DecisionFormat::Markdown, DecisionFormat::Junit, DecisionFormat::Html] {
            let view = rendered(format, decision, false);
            assert!(!view.contains("calls/s"), "{name}: {view}");
        }
        let is_found = rendered(DecisionFormat::Text, decision, false).contains("conversations/s");
        assert!(is_found || name != "found", "{name}");
    }
}

#[test]
fn comparisons() {
    for (name, compared) in decisions::comparisons() {
        check_views(&format!("comparison-{name}"), Decision::Comparison(&compared));
    }
}

#[test]
fn sweeps() {
    for (name, plan, sweep) in decisions::sweeps() {
        check_views(&format!("sweep-{name}"), Decision::Sweep(&plan, &sweep));
    }
}

/// A decision rests on the same evidence whether a run is compared at once or read back.
#[test]
fn a_result_that_is_read_back_is_the_same_evidence() {
    use brunt_decide::compare::ComparedFigures;
    use brunt_decide::evidence::Evidence;
    for (name, summary) in fixtures::all() {
        let written = brunt_report::render(brunt_report::Format::Json, &summary, Style::default()).unwrap();
        let read = brunt_report::json::read(&written).unwrap();
        assert_eq!(ComparedFigures::from_summary(&read), ComparedFigures::from_summary(&summary), "{name}");
        assert_eq!(Evidence::from_summary(&read), Evidence::from_summary(&summary), "{name}");
    }
}

/// Every decision, with its name.
fn all() -> Vec<(String, KeptDecision)> {
    let capacities = decisions::capacities()
        .into_iter()
        .map(|(name, plan, capacity)| (name, KeptDecision::from_decision(Decision::Capacity(&plan, &capacity))));
    let sweeps = decisions::sweeps()
        .into_iter()
        .map(|(name, plan, sweep)| (name, KeptDecision::from_decision(Decision::Sweep(&plan, &sweep))));
    let comparisons = decisions::comparisons()
        .into_iter()
        .map(|(name, compared)| (name, KeptDecision::from_decision(Decision::Comparison(&compared))));
    capacities.chain(sweeps).chain(comparisons).map(|(name, decided)| (name.to_owned(), decided)).collect()
}

#[test]
fn where_nothing_was_compared_no_difference_is_denied() {
    let (_, mut compared) = decisions::comparisons().into_iter().find(|(name, _)| *name == "same").unwrap();
    let said = |compared: &ComparedRuns| rendered(DecisionFormat::Text, Decision::Comparison(compared), false);
    assert!(said(&compared).contains("→ no difference seen"));
    let comparison = compared.comparison.as_mut().unwrap();
    (comparison.differences, comparison.errors) = (Vec::new(), None);
    let text = said(&compared);
    assert!(text.contains("→ nothing could be compared") && !text.contains("no difference"), "{text}");
}

/// A round in which one side failed is no difference of the sides yet, and still comes first.
#[test]
fn failures_that_chance_explains_deny_no_other_figure() {
    let (_, mut compared) = decisions::comparisons().into_iter().find(|(name, _)| *name == "failing").unwrap();
    let said = |compared: &ComparedRuns| rendered(DecisionFormat::Text, Decision::Comparison(compared), false);
    assert!(said(&compared).contains("differ so much") && !said(&compared).contains("chance"));
    let errors = compared.comparison.as_mut().unwrap().errors.as_mut().unwrap();
    (errors.differs, errors.p_value, errors.adjusted_p_value) = (false, 0.57, 1.0);
    let text = said(&compared);
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains("of A's, which may be chance →"), "{text}");
    assert!(!one_line.contains("differ so much"), "{text}");
}

/// What is kept says the same when it is read again.
#[test]
fn what_is_kept_is_read_back() {
    for (name, decided) in all() {
        let kept = serde_json::to_string(&decided).unwrap();
        let again: KeptDecision = serde_json::from_str(&kept).unwrap_or_else(|error| panic!("{name}: {error}"));
        for format in DecisionFormat::ALL {
            assert_eq!(
                rendered(format, again.decision(), false),
                rendered(format, decided.decision(), false),
                "{name}"
            );
        }
    }
}

/// The page has the words and the runs of the other views.
#[test]
fn the_page_says_what_the_text_says() {
    for (name, decided) in all() {
        let decision = decided.decision();
        let event: serde_json::Value =
            serde_json::from_str(&page_data(decision, Runs::default(), None).unwrap()).unwrap();
        let page = event["main"].as_str().unwrap();
        assert!(!page.contains("● running") && !page.contains('\u{1b}'), "{name}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = words(&rendered(DecisionFormat::Text, decision, false));
        let leading = page.split("<p class=\"outcome ").nth(1).and_then(|rest| rest.split_once('>'));
        let leading = leading.and_then(|(_, rest)| rest.split_once("</p>")).map_or("", |(leading, _)| leading);
        let leading = leading.replace("&#39;", "'").replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
        let leading = leading.trim_start_matches(['✓', '✗', '!', ' ']);
        assert!(text.contains(&words(leading)), "{name}: {leading}");
        let rows = rendered(DecisionFormat::Csv, decision, false).lines().count() - 1;
        let runs = page.matches("<tr id=\"run-").count();
        let impossible = match &decided {
            KeptDecision::Sweep(_, sweep) => sweep.steps.iter().filter(|step| step.evidence.is_none()).count(),
            _ => 0,
        };
        assert_eq!(runs + impossible, rows, "{name}");
    }
}

/// A document that was written makes the views that its decision made.
#[test]
fn every_document_can_be_read_back() {
    let same = |name: &str, decision: Decision<'_>| {
        let json = render(DecisionFormat::Json, decision, Style::default()).unwrap();
        let decided = read(&json).unwrap().unwrap();
        for format in DecisionFormat::ALL {
            let of = |decision| String::from_utf8(render(format, decision, Style::default()).unwrap()).unwrap();
            assert_eq!(of(decided.decision()), of(decision), "{name}");
        }
        assert_eq!(
            page_data(decided.decision(), Runs::default(), None).unwrap(),
            page_data(decision, Runs::default(), None).unwrap(),
            "{name}"
        );
    };
    for (name, plan, found) in &decisions::capacities() {
        same(name, Decision::Capacity(plan, found));
    }
    for (name, plan, found) in &decisions::sweeps() {
        same(name, Decision::Sweep(plan, found));
    }
    for (name, found) in &decisions::comparisons() {
        same(name, Decision::Comparison(found));
    }
}

#[test]
fn what_is_no_decision_is_told_from_a_broken_one() {
    assert_eq!(read(br#"{"format": "brunt-result", "version": 3}"#), Ok(None));
    assert_eq!(read(b"[1]"), Ok(None));
    assert_eq!(read(br#"{"format": "brunt-sweep", "version": 9}"#), Err(ReadError::Version { got: 9 }));
    assert_eq!(read(br#"{"format": "brunt-sweep", "version": 1}"#), Err(ReadError::Draft { got: 1 }));
    assert!(matches!(read(b"{"), Err(ReadError::Json { line: 1, .. })));
    let broken = read(br#"{"format": "brunt-comparison", "version": 2, "a": "x"}"#);
    assert!(
        matches!(&broken, Err(ReadError::Content { problem, .. }) if problem.contains("missing field")),
        "{broken:?}"
    );
}

/// Every document fits its schema, which allows nothing else.
#[test]
fn every_document_fits_the_schema() {
    let schema = serde_json::from_str(brunt_report::schema::DECISION).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for (name, decided) in all() {
        let document: serde_json::Value =
            serde_json::from_str(&rendered(DecisionFormat::Json, decided.decision(), false)).unwrap();
        let errors: Vec<_> =
            validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        let mut more = document.clone();
        more["more"] = 1.into();
        assert!(!validator.is_valid(&more), "{name}: what the schema does not know is allowed");
    }
}
