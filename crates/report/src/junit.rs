//! Test cases for CI: one for each threshold, for each check, and for each scenario.
//!
//! The form is the strict one of Ant's schema (<https://github.com/windyroad/JUnit-Schema>): every attribute and element that it
//! requires, in its order, and none besides. Jenkins, GitLab, GitHub and others read it, too.
//!
//! A threshold is a failure where it did not hold, implicit ones among them. A check that failed for some calls is no failure
//! by itself, as a load test's checks need not all hold: how many must is for a threshold to say; where there is none on
//! checks, a check is a failure of which more failed than the plan allows. So is a scenario of whose iterations an error
//! ended more, a target that never answered, and an agent that was lost, unless its user had allowed that. The verdict stands in the properties, and beside the figures in the output.

use std::io::{self, Write};

use brunt_judge::abort::Reason;
use brunt_judge::breakdown::{CheckBreakdown, ScenarioBreakdown};
use brunt_judge::remarks::About;
use brunt_judge::summary::Summary;
use brunt_plan::plan::Origin;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::Counter;
use brunt_record::machine::Machine;
use brunt_record::recording::Ending;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use crate::dates::iso_8601;
use crate::failed;
use crate::headline::{never, no_call, paused_to_end};
use crate::numbers::{count, counted, percent};
use crate::style::{Detail, Style};
use crate::text;

/// A test case: its name, and its failure with details, if it failed.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) failure: Option<(String, String)>,
}

pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) cases: Vec<Case>,
}

/// What suites are about.
pub(crate) struct Subject<'a> {
    /// The name of the machine; empty where it is unknown.
    pub(crate) host: &'a str,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub(crate) started_unix_ms: u64,
    /// How long it took.
    pub(crate) took_ns: u64,
    /// Its properties, by name.
    pub(crate) properties: Vec<(String, String)>,
    /// Its report as text.
    pub(crate) report: String,
}

/// Writes the test cases of `summary`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let plan = &summary.plan;
    let mut report = Vec::new();
    text::write(&mut report, summary, Style { detail: Detail::Verbose, ..Style::default() })?;
    let started_unix_ms = summary.run.started_unix_ms;
    let own = [
        ("target", plan.target.url()),
        ("verdict", summary.verdict.sentence.to_string()),
        ("seed", plan.seed.to_string()),
    ];
    let by = made_by(&summary.run.brunt_version, summary.run.machine.as_ref());
    let mut properties = properties(&own, started_unix_ms, &plan.origin, by);
    let without_rows = summary.breakdown.scenarios.iter().filter(|scenario| scenario.out_of_rows > 0);
    let users = |scenario: &ScenarioBreakdown| counted(scenario.out_of_rows, "user");
    properties.extend(without_rows.map(|scenario| (format!("out of rows: {}", scenario.name), users(scenario))));
    let subject = Subject {
        host: summary.run.machine.as_ref().map_or("", |machine| machine.hostname.as_str()),
        started_unix_ms,
        took_ns: summary.run.measured_ns,
        properties,
        report: String::from_utf8_lossy(&report).into_owned(),
    };
    write_suites(out, &[run(summary), thresholds(summary), checks(summary), scenarios(summary)], &subject)
}

/// Writes the suites that have cases; the first of them has the properties and the report of their `subject`.
pub(crate) fn write_suites(out: &mut impl Write, suites: &[Suite], subject: &Subject<'_>) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 4);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites").write_inner_content(|xml| {
        let suites = suites.iter().filter(|suite| !suite.cases.is_empty());
        suites.enumerate().try_for_each(|(id, suite)| suite.write(xml, id, subject))
    })?;
    writeln!(out)
}

impl Suite {
    fn write<W: Write>(&self, xml: &mut Writer<W>, id: usize, subject: &Subject<'_>) -> io::Result<()> {
        let took = seconds(subject.took_ns);
        let is_first = id == 0;
        let failures = self.cases.iter().filter(|case| case.failure.is_some()).count();
        let (id, tests, failures) = (id.to_string(), self.cases.len().to_string(), failures.to_string());
        // The schema's timestamps have no time zone; this one is UTC.
        let began = iso_8601(subject.started_unix_ms / 1000);
        // The schema wants some name.
        let host = if subject.host.is_empty() { "localhost" } else { subject.host };
        let attributes = [
            ("name", self.name),
            ("package", "brunt"),
            ("id", &id),
            ("hostname", host),
            ("timestamp", began.trim_end_matches('Z')),
            ("tests", &tests),
            ("failures", &failures),
            ("errors", "0"),
            ("time", &took),
        ];
        let suite = xml.create_element("testsuite").with_attributes(attributes);
        suite.write_inner_content(|xml| {
            write_properties(xml, if is_first { &subject.properties } else { &[] })?;
            self.cases.iter().try_for_each(|case| self.write_case(xml, case, &took))?;
            let report = if is_first { in_xml(&subject.report) } else { String::new() };
            xml.create_element("system-out").write_text_content(BytesText::new(&report))?;
            xml.create_element("system-err").write_empty()?;
            Ok(())
        })?;
        Ok(())
    }

    fn write_case<W: Write>(&self, xml: &mut Writer<W>, case: &Case, took: &str) -> io::Result<()> {
        let (name, class) = (in_a_line(&case.name), format!("brunt.{}", self.name));
        let element = xml.create_element("testcase").with_attributes([
            ("name", name.as_str()),
            ("classname", &class),
            ("time", took),
        ]);
        let Some((message, details)) = &case.failure else { return element.write_empty().map(drop) };
        let (message, details) = (in_a_line(message), in_xml(details));
        element.write_inner_content(|xml| {
            let failure = xml.create_element("failure");
            let failure = failure.with_attributes([("message", message.as_str()), ("type", self.name)]);
            failure.write_text_content(BytesText::new(&details)).map(drop)
        })?;
        Ok(())
    }
}

/// What made the load: `brunt 0.1.0 on bench-3, AMD EPYC, 8 cores, Linux 6.1.0`.
pub(crate) fn made_by(version: &str, machine: Option<&Machine>) -> String {
    format!("brunt {version}{}", machine.map_or_else(String::new, |machine| format!(" on {machine}")))
}

/// Properties by name: its own, what made the load, when it began, what its user calls it, and the command that repeats it.
pub(crate) fn properties(
    own: &[(&str, String)],
    started_unix_ms: u64,
    origin: &Origin,
    by: String,
) -> Vec<(String, String)> {
    let named = |name: &str, value: String| (name.to_owned(), value);
    let mut properties: Vec<_> = own.iter().map(|(name, value)| named(name, value.clone())).collect();
    properties.push(named("made by", by));
    properties.push(named("started", iso_8601(started_unix_ms / 1000)));
    properties.extend(origin.name.iter().map(|name| named("name", name.clone())));
    properties.extend(origin.tags.iter().map(|(key, value)| (format!("tag {key}"), value.clone())));
    properties.extend(Some(&origin.command).filter(|c| !c.is_empty()).map(|c| named("command", c.clone())));
    properties
}

fn write_properties<W: Write>(xml: &mut Writer<W>, properties: &[(String, String)]) -> io::Result<()> {
    let element = xml.create_element("properties");
    if properties.is_empty() {
        return element.write_empty().map(drop);
    }
    element.write_inner_content(|xml| {
        properties.iter().try_for_each(|(name, value)| {
            let (name, value) = (in_a_line(name), in_a_line(value));
            let attributes = [("name", name.as_str()), ("value", value.as_str())];
            xml.create_element("property").with_attributes(attributes).write_empty().map(drop)
        })
    })?;
    Ok(())
}

/// `10.000`.
fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}

/// `text` without the characters that no XML may have, not even escaped (XML 1.0, 2.2).
fn in_xml(text: &str) -> String {
    let is_allowed =
        |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().filter(is_allowed).collect()
}

/// The case of the run itself: whether it ended as planned and was answered.
fn run(summary: &Summary) -> Suite {
    let failure = |message: &str| Some((message.to_owned(), message.to_owned()));
    let is_idle = summary.total.numbers.get(Counter::Due) == 0;
    let ended = match &summary.run.ending {
        // Nothing was measured, so nothing has passed.
        Ending::Completed if is_idle && !summary.may_be_idle() => failure(&no_call(summary)),
        Ending::Completed => paused_to_end(summary).and_then(|paused| failure(&paused)),
        // A script that says that its run did what it was to do works as intended.
        Ending::Stopped(_) => None,
        Ending::GivenUp(reason) => failure(&format!("given up by the script: {reason}")),
        Ending::Interrupted => failure("interrupted: the figures cover what was done"),
        Ending::Failed(reason) | Ending::Unreached(reason) | Ending::AgentsLost(reason) => failure(reason),
        Ending::Aborted(cause) => failure(&format!("aborted: {}", Reason(cause))),
    };
    // A target that got no request owes no answer.
    let is_silent = !summary.answered() && !is_idle;
    let answered = if is_silent { failure(&format!("the target {}", never(summary))) } else { None };
    let mut cases = vec![("the run came to its end", ended), ("the target answered", answered)];
    if !summary.run.agents.is_empty() {
        let loss = summary.remarks.iter().find(|remark| remark.about == About::Agents);
        let is_missed = summary.run.agents.iter().any(AgentPart::is_missed);
        cases.push((
            "no agent was lost",
            loss.filter(|_| is_missed).and_then(|loss| failure(&loss.message.to_string())),
        ));
    }
    let cases = cases.into_iter().map(|(name, failure)| Case { name: name.to_owned(), failure });
    Suite { name: "run", cases: cases.collect() }
}

fn thresholds(summary: &Summary) -> Suite {
    let cases = summary.thresholds.iter().map(|result| {
        let condition = &result.condition;
        let name = format!("{condition}{}", if result.is_implicit() { " (default)" } else { "" });
        let details = || format!("expected {condition}, got {}", result.got);
        let said = failed::sentence_of(result, summary);
        let message = || said.unwrap_or_else(|| format!("got {}", result.got));
        let failure = (!result.held).then(|| (message(), details()));
        Case { name, failure }
    });
    Suite { name: "thresholds", cases: cases.collect() }
}

fn checks(summary: &Summary) -> Suite {
    let decided = summary.plan.thresholds.iter().any(brunt_plan::threshold::Threshold::is_about_checks);
    let case = |check: &CheckBreakdown| {
        let all = check.passes + check.fails;
        let failure = (!summary.plan.allows(check.fails, all) && !decided).then(|| {
            let share = percent(check.fails as f64 / all as f64);
            let message = format!("failed {} of {} times ({share})", count(check.fails), count(all));
            let example = check.example.as_ref().and_then(|example| {
                let status = example.status.map(|status| format!("status {status}"));
                let body = (!example.body.is_empty()).then(|| format!("body '{}'", example.body));
                let parts: Vec<_> = status.into_iter().chain(body).collect();
                (!parts.is_empty()).then(|| format!("such as: {}", parts.join(", ")))
            });
            (message.clone(), [Some(message), example].into_iter().flatten().collect::<Vec<_>>().join("\n"))
        });
        Case { name: check.name.clone(), failure }
    };
    // Calls that the script failed by itself count in the error rate.
    let checks = summary.breakdown.checks.iter().filter(|check| !check.is_reason());
    Suite { name: "checks", cases: checks.map(case).collect() }
}

fn scenarios(summary: &Summary) -> Suite {
    let case = |scenario: &ScenarioBreakdown| {
        let begun = scenario.iterations + scenario.errors;
        let failure = (!summary.plan.allows(scenario.errors, begun)).then(|| {
            let message = format!("an error ended {}", counted(scenario.errors, "iteration"));
            let details =
                scenario.tracebacks.iter().map(|error| format!("{} × {}", count(error.count), error.traceback));
            (message, details.collect::<Vec<_>>().join("\n"))
        });
        Case { name: scenario.name.clone(), failure }
    };
    Suite { name: "scenarios", cases: summary.breakdown.scenarios.iter().map(case).collect() }
}

/// `text` for an attribute, whose line breaks XML's readers turn into spaces anyway.
fn in_a_line(text: &str) -> String {
    in_xml(text).replace(['\n', '\t', '\r'], " ")
}
