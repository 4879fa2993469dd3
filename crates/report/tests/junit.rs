//! The `JUnit` view, read by a parser that is not ours, and held against the strict schema of Ant
//! (<https://github.com/windyroad/JUnit-Schema>, JUnit.xsd): by its words, and by a validator that has the schema itself.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use brunt_plan::plan::Plan;
use brunt_record::agents::{AgentEnd, AgentPart};
use brunt_record::recording::Recording;
use brunt_report::decision::Decision;
use brunt_report::{Format, Style, render};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

#[allow(dead_code, reason = "shared with other tests, which use all of it")]
mod decisions;
mod fixtures;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../../cli/tests/cli/installed.rs"]
mod installed;

/// An element as it was read.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Element>,
    text: String,
}

impl Element {
    fn from_start(start: &BytesStart<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let attributes = start.attributes().map(|attribute| {
            let attribute = attribute.unwrap();
            let value = quick_xml::escape::unescape(&text(&attribute.value)).unwrap().into_owned();
            (text(attribute.key.as_ref()), value)
        });
        Self { name: text(start.name().as_ref()), attributes: attributes.collect(), ..Self::default() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> usize {
        self.get(name).unwrap_or_else(|| panic!("no {name} in {self:#?}")).parse().unwrap()
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    fn names(&self) -> Vec<&str> {
        self.attributes.iter().map(|(name, _)| name.as_str()).collect()
    }
}

fn read(xml: &str) -> Element {
    let mut reader = Reader::from_str(xml);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().unwrap_or_else(|error| panic!("{error}\n{xml}")) {
            Event::Start(start) => open.push(Element::from_start(&start)),
            Event::Empty(start) => open.last_mut().unwrap().children.push(Element::from_start(&start)),
            Event::End(_) => {
                let ended = open.pop().unwrap();
                open.last_mut().unwrap().children.push(ended);
            }
            Event::Text(text) => open.last_mut().unwrap().text += &text.decode().unwrap(),
            Event::GeneralRef(reference) => {
                let name = reference.decode().unwrap().into_owned();
                open.last_mut().unwrap().text += &quick_xml::escape::unescape(&format!("&{name};")).unwrap();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open.len(), 1, "{xml}");
    open.pop().unwrap().children.pop().unwrap()
}

fn report(summary: &brunt_judge::summary::Summary) -> Element {
    read(&String::from_utf8(render(Format::Junit, summary, Style::default()).unwrap()).unwrap())
}

/// Every decision as test cases, by name.
fn decided() -> Vec<(String, String)> {
    let rendered = |decision| {
        let xml =
            brunt_report::decision::render(brunt_report::decision::DecisionFormat::Junit, decision, Style::default());
        String::from_utf8(xml.unwrap()).unwrap()
    };
    let capacities = decisions::capacities();
    let capacities = capacities
        .iter()
        .map(|(name, plan, found)| (format!("capacity-{name}"), rendered(Decision::Capacity(plan, found))));
    let sweeps = decisions::sweeps();
    let sweeps =
        sweeps.iter().map(|(name, plan, sweep)| (format!("sweep-{name}"), rendered(Decision::Sweep(plan, sweep))));
    let comparisons = decisions::comparisons();
    let comparisons = comparisons
        .iter()
        .map(|(name, compared)| (format!("comparison-{name}"), rendered(Decision::Comparison(compared))));
    capacities.chain(sweeps).chain(comparisons).collect()
}

/// What does not hold in each decision: by the case, not by its words.
#[test]
fn a_decision_fails_in_what_it_does_not_hold() {
    let failed: Vec<(String, Vec<String>)> = decided()
        .iter()
        .map(|(name, xml)| {
            let report = read(xml);
            let cases = failures(&report.children[0]);
            let failed = cases.iter().filter(|(_, failure)| failure.is_some());
            (name.clone(), failed.map(|(case, _)| (*case).to_owned()).collect())
        })
        .collect();
    let of =
        |name: &str| failed.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{failed:#?}")).1.clone();
    for found in ["capacity-found", "comparison-same"] {
        assert_eq!(of(found), Vec::<String>::new(), "{found}");
    }
    for unknown in ["capacity-generator", "capacity-interrupted", "capacity-silent", "capacity-connections"] {
        assert_eq!(of(unknown), ["the capacity is known"], "{unknown}");
    }
    assert_eq!(of("comparison-slower"), ["not p99 > 1.05x"]);
    assert_eq!(of("comparison-few"), ["every round was made"]);
    assert_eq!(of("comparison-nothing"), ["there was enough to compare", "not p99 > 1.05x"]);
}

fn suite<'a>(report: &'a Element, name: &str) -> &'a Element {
    report.children.iter().find(|suite| suite.get("name") == Some(name)).unwrap_or_else(|| panic!("no suite {name}"))
}

fn failure(case: &Element) -> Option<&str> {
    case.children.first().map(|failure| failure.get("message").unwrap())
}

fn failures(suite: &Element) -> Vec<(&str, Option<&str>)> {
    suite.all("testcase").map(|case| (case.get("name").unwrap(), failure(case))).collect()
}

/// `xs:decimal`: no exponent.
fn is_decimal(text: &str) -> bool {
    text.split_once('.').is_some_and(|(whole, part)| {
        [whole, part].iter().all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}`, without a time zone.
fn is_timestamp(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00"
}

#[test]
fn every_report_is_valid_by_the_strict_schema() {
    let runs = fixtures::all().into_iter().chain(std::iter::once(("secretive", fixtures::secretive())));
    let runs = runs.map(|(name, summary)| (name.to_owned(), report(&summary)));
    for (name, report) in runs.chain(decided().into_iter().map(|(name, xml)| (name, read(&xml)))) {
        assert!(report.name == "testsuites" && report.attributes.is_empty(), "{name}: {report:#?}");
        for (id, suite) in report.children.iter().enumerate() {
            let attributes = ["name", "package", "id", "hostname", "timestamp", "tests", "failures", "errors", "time"];
            assert_eq!((suite.name.as_str(), suite.names()), ("testsuite", attributes.to_vec()), "{name}");
            assert_eq!((suite.number("id"), suite.number("errors")), (id, 0), "{name}");
            assert!(is_timestamp(suite.get("timestamp").unwrap()), "{name}: {suite:#?}");
            assert!(is_decimal(suite.get("time").unwrap()), "{name}: {suite:#?}");
            let mut order: Vec<_> = suite.children.iter().map(|child| child.name.as_str()).collect();
            order.dedup();
            assert_eq!(order, ["properties", "testcase", "system-out", "system-err"], "{name}");
            for property in &suite.children[0].children {
                assert_eq!((property.name.as_str(), property.names()), ("property", vec!["name", "value"]), "{name}");
            }
            for case in suite.all("testcase") {
                assert_eq!(case.names(), ["name", "classname", "time"], "{name}");
                assert!(is_decimal(case.get("time").unwrap()) && case.children.len() <= 1, "{name}: {case:#?}");
                for failure in &case.children {
                    assert_eq!((failure.name.as_str(), failure.names()), ("failure", vec!["message", "type"]));
                }
            }
        }
    }
}

/// A Python that has the schema and a validator.
fn python() -> PathBuf {
    let requirements = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/junit_schema/requirements.txt");
    installed::python("junit-schema", requirements, &["--no-deps"])
}

/// What the validator has to say of these files.
fn validated(files: &[PathBuf]) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/junit_schema/validate.py");
    Command::new(python()).arg(script).args(files).output().unwrap()
}

#[test]
#[ignore = "needs python3-venv: make test installs it"]
fn every_file_is_valid_by_the_strict_schema() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("junit-files");
    fs::create_dir_all(&dir).unwrap();
    let written = |name: &str, xml: &[u8]| {
        let path = dir.join(name).with_extension("xml");
        fs::write(&path, xml).unwrap();
        path
    };
    let mut hostile = fixtures::shop();
    hostile.run.ending = brunt_record::recording::Ending::Failed("a\u{0}b\u{1b}[2J \"<&>'\u{fffe}\n c".to_owned());
    hostile.plan.origin.name = Some("  two\t  spaces\n".to_owned());
    let all = fixtures::all().into_iter().chain(vec![("secretive", fixtures::secretive()), ("hostile", hostile)]);
    let render = |summary: &brunt_judge::summary::Summary| render(Format::Junit, summary, Style::default()).unwrap();
    let mut files: Vec<_> = all.map(|(name, summary)| written(name, &render(&summary))).collect();
    files.extend(decided().iter().map(|(name, xml)| written(name, xml.as_bytes())));
    let said = validated(&files);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    // The validator sees what is wrong.
    let broken = String::from_utf8(render(&fixtures::clean())).unwrap().replace(" hostname=\"bench-3\"", "");
    let said = validated(&[written("broken", broken.as_bytes())]);
    assert!(!said.status.success() && String::from_utf8_lossy(&said.stderr).contains("hostname"), "{said:?}");
}

#[test]
fn counts_are_those_of_the_cases() {
    for (name, summary) in fixtures::all() {
        let report = report(&summary);
        for suite in &report.children {
            assert_eq!(suite.number("tests"), suite.all("testcase").count(), "{name}");
            let failed = suite.all("testcase").filter(|case| failure(case).is_some()).count();
            assert_eq!(suite.number("failures"), failed, "{name}");
        }
        let held = summary.thresholds.iter().filter(|result| result.held).count();
        if !summary.thresholds.is_empty() {
            let thresholds = suite(&report, "thresholds");
            assert_eq!(thresholds.number("tests") - thresholds.number("failures"), held, "{name}");
        }
    }
}

#[test]
fn thresholds_and_errors_fail() {
    let report = report(&fixtures::shop());
    let thresholds = failures(suite(&report, "thresholds"));
    assert!(thresholds.contains(&("home:p95 < 20ms", None)), "{thresholds:#?}");
    assert!(thresholds.contains(&("nowhere:p99<1s", Some("got nothing has the name 'nowhere'"))), "{thresholds:#?}");
    // How many checks must hold is said by a threshold.
    assert!(failures(suite(&report, "checks")).iter().all(|(_, failure)| failure.is_none()));
    let scenarios = suite(&report, "scenarios");
    assert_eq!(failures(scenarios)[0], ("checkout", Some("an error ended 6 iterations")));
    let details = &scenarios.all("testcase").next().unwrap().children[0].text;
    assert!(details.contains("shop.lua:12") && details.lines().count() > 3, "{details}");
}

#[test]
fn a_check_fails_where_no_threshold_is_on_checks() {
    let mut summary = fixtures::shop();
    summary.plan.thresholds.clear();
    let report = report(&summary);
    let checks = failures(suite(&report, "checks"));
    assert_eq!(checks[0], ("home: has a cart", Some("failed 5 of 300 times (1.67%)")));
    assert_eq!(checks[1], ("the sum is right", None));
}

#[test]
fn a_target_that_never_answered_is_a_failure() {
    let mut summary = fixtures::silent();
    summary.plan.warmup_ns = 0;
    let report = report(&summary);
    let run = failures(suite(&report, "run"));
    assert_eq!(run[1], ("the target answered", Some("the target never answered")));
}

/// It may have answered in the warm-up.
#[test]
fn a_target_that_answered_nothing_after_a_warm_up_is_told_as_that() {
    let mut summary = fixtures::silent();
    summary.plan.warmup_ns = 1_000_000_000;
    let run = report(&summary);
    let said = "the target answered nothing after the warm-up";
    assert_eq!(failures(suite(&run, "run"))[1], ("the target answered", Some(said)));
    let first = brunt_report::headline(&summary).line;
    assert!(first.starts_with(&format!("✗ {said}: ")), "{first}");
}

#[test]
fn a_run_in_which_no_call_was_due_is_a_failure() {
    let mut summary = fixtures::empty();
    summary.run.ending = brunt_record::recording::Ending::Completed;
    let report = report(&summary);
    let run = failures(suite(&report, "run"));
    assert_eq!(run, [("the run came to its end", Some("no call was ever due")), ("the target answered", None)]);
}

/// Characters that no XML may have, not even escaped, and those that would end an attribute or an element.
#[test]
fn no_text_breaks_the_file() {
    let mut summary = fixtures::clean();
    summary.run.ending = brunt_record::recording::Ending::Failed("a\u{0}b\u{1b}[2J \"<&>'\u{fffe}\nc".to_owned());
    let report = report(&summary);
    let run = failures(suite(&report, "run"));
    assert_eq!(run[0], ("the run came to its end", Some("ab[2J \"<&>' c")));
}

#[test]
fn an_agent_that_was_lost_is_a_failure_unless_that_was_allowed() {
    let brunt_judge::summary::Summary { plan, mut run, .. } = fixtures::clean();
    let case = |plan: &Plan, run: &Recording| {
        let report = report(&brunt_judge::summary::Summary::new(plan.clone(), run.clone()));
        let suite = suite(&report, "run");
        failures(suite)
            .into_iter()
            .find(|(name, _)| *name == "no agent was lost")
            .map(|(_, why)| why.map(str::to_owned))
    };
    assert_eq!(case(&plan, &run), None, "one machine has no agents");
    let [mut lost, other] = ["b", "a"].map(|name| AgentPart::new(name, "0.1.0", 2, 1, 2));
    run.agents = vec![other.clone(), other];
    assert_eq!(case(&plan, &run), Some(None));
    let (after_ns, reason) = (7_000_000_000, "silence".to_owned());
    lost.ended =
        AgentEnd::Lost { after_ns, reason, users_missed: 0, iterations_unknown: 0, untold: None, is_allowed: false };
    run.agents[0] = lost;
    assert_eq!(case(&plan, &run).unwrap().unwrap(), "1 of 2 agents was lost: b after 7.0s, silence");
    run.agents[0].allow_loss();
    assert_eq!(case(&plan, &run), Some(None));
}
