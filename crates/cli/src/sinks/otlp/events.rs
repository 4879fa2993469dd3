//! Events of a whole run.

use brunt_judge::summary::Summary;
use brunt_metrics::otlp::{Event, Severity};
use brunt_metrics::{Attributes, Value};
use brunt_plan::plan::Plan;
use brunt_record::change::{Action, Change};
use brunt_record::recording::Ending;
use brunt_report::{changes, headline, remarks};
use serde_json::json;

use super::super::backlog::now_unix_ns;

/// A run is about to begin.
pub(super) fn started(plan: &Plan) -> Event {
    let command = Some(plan.origin.command.clone()).filter(|command| !command.is_empty());
    let attributes = command.map(|command| ("brunt.command".into(), command.into())).into_iter().collect();
    event("brunt.run.started", Severity::Info, format!("a run of {} begins", plan.target.url()), attributes)
}

/// A change of the run, or a mark.
pub(super) fn changed(change: &Change) -> Event {
    let name = if matches!(change.action, Action::Mark(_)) { "brunt.run.marked" } else { "brunt.run.changed" };
    let mut attributes = pair("brunt.change.at_s", &format!("{:.3}", change.at_ns as f64 / 1e9));
    attributes.extend(pair("brunt.change.by", &change.by.to_string()));
    event(name, Severity::Info, changes::what(&change.action), attributes)
}

/// The events of a finished run: its findings, its thresholds, its end.
pub(super) fn ended(summary: &Summary) -> Vec<Event> {
    let mut events = Vec::new();
    for finding in &summary.verdict.findings {
        let mut attributes = pair("brunt.finding.cause", &key(&json!(finding.cause)));
        attributes.extend(pair("brunt.finding.of", "generator"));
        events.push(event("brunt.finding", Severity::Warn, finding.message.to_string(), attributes));
    }
    for remark in &summary.remarks {
        let mut attributes = pair("brunt.finding.cause", &key(&json!(remark.about)));
        attributes.extend(pair("brunt.finding.of", "target"));
        let times = [("brunt.finding.from_s", remark.from_ns), ("brunt.finding.to_s", remark.to_ns)];
        for (key, ns) in times {
            attributes.extend(ns.map(|ns| (key.into(), Value::from(format!("{:.3}", ns as f64 / 1e9)))));
        }
        let severity = if remark.about.is_note() { Severity::Info } else { Severity::Warn };
        events.push(event("brunt.finding", severity, remark.message.to_string(), attributes));
    }
    for result in summary.thresholds.iter().filter(|result| result.is_noted()) {
        let severity = if result.held { Severity::Info } else { Severity::Error };
        let held = if result.held { "held" } else { "failed" };
        let mut attributes = pair("brunt.threshold", &result.condition.to_string());
        attributes.extend(pair("brunt.result", held));
        events.push(event(
            "brunt.threshold",
            severity,
            format!("{} {held}: {}", result.condition, result.got),
            attributes,
        ));
    }
    events.push(end(summary));
    events
}

fn end(summary: &Summary) -> Event {
    let is_bad = remarks(summary).iter().any(|said| said.tone.is_bad());
    let mut attributes = pair("brunt.ending", ending(&summary.run.ending));
    attributes.extend(pair("brunt.verdict", &summary.verdict.sentence.to_string()));
    let severity = if is_bad { Severity::Error } else { Severity::Info };
    event("brunt.run.ended", severity, headline(summary).line, attributes)
}

const fn ending(ending: &Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Interrupted => "interrupted",
        Ending::Failed(_) => "failed",
        Ending::Aborted(_) => "aborted",
        Ending::Unreached(_) => "unreached",
        Ending::AgentsLost(_) => "agents_lost",
        Ending::Stopped(_) => "stopped",
        Ending::GivenUp(_) => "given_up",
    }
}

/// The name of a kind in JSON.
fn key(kind: &serde_json::Value) -> String {
    kind.as_str().unwrap_or_default().to_owned()
}

fn pair(key: &'static str, value: &str) -> Attributes {
    vec![(key.into(), Value::from(value.to_owned()))]
}

fn event(name: &'static str, severity: Severity, text: String, attributes: Attributes) -> Event {
    Event { name, at_unix_ns: now_unix_ns(), severity, text, attributes }
}
