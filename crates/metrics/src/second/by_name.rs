//! Metrics counted by name: requests, groups, checks, scenarios, a script's own figures, agents.

use brunt_record::figures::{FigureByName, NamedFigures, OwnFigures, OwnKind};
use brunt_record::live::Live;

use super::{PhaseOf, Subject, by_outcome, counter, ended, times};
use crate::model::{Attribute, Data, Metric, MetricPoint, Number, Value};
use crate::series_names::{Names, OTHERS};

/// The figures of a kind by the names that have a series, and the others as one.
fn series<T: FigureByName + Clone>(named: &NamedFigures<T>, kind: &'static str, names: &mut Names) -> Vec<(String, T)> {
    let mut shown: Vec<(String, T)> = Vec::new();
    let mut others: Option<T> = None;
    for (name, figure) in named.iter() {
        match names.series(kind, name) {
            OTHERS => others.get_or_insert_with(T::default).merge(figure),
            name => shown.push((name.to_owned(), figure.clone())),
        }
    }
    shown.extend(others.map(|figure| (OTHERS.to_owned(), figure)));
    shown
}

pub(super) fn add(subject: &Subject, second: &Live, names: &mut Names, phase: PhaseOf, metrics: &mut Vec<Metric>) {
    let figures = &second.snapshot.figures;
    let (mut durations, mut calls) = (Vec::new(), Vec::new());
    for (name, figure) in series(&figures.requests, "request", names) {
        let of = attribute("brunt.request.name", &name);
        durations.extend(by_outcome(&figure.response_times(), with(phase, &of)));
        for (result, n) in [("ok", figure.ok(&subject.ok)), ("not_ok", figure.not_ok(&subject.ok))] {
            calls.push(phase.point([of.clone(), ("brunt.result".into(), result.into())], n));
        }
    }
    metrics.push(times("brunt.request.duration", "Response time of the calls with a name, as read.", durations));
    metrics.push(counter("brunt.request.calls", "{call}", "Calls with a name that ended, by success.", calls));

    let mut groups = Vec::new();
    for (name, figure) in series(&figures.groups, "group", names) {
        groups.extend(ended(&figure.with_pauses, with(phase, &attribute("brunt.group.name", &name))));
    }
    metrics.push(times("brunt.group.duration", "How long groups took, with their users' pauses.", groups));

    let mut checks = Vec::new();
    for (name, figure) in series(&figures.checks, "check", names) {
        for (result, n) in [("pass", figure.passes), ("fail", figure.fails)] {
            checks.push(phase.point([attribute("brunt.check.name", &name), ("brunt.result".into(), result.into())], n));
        }
    }
    metrics.push(counter("brunt.checks", "{check}", "Checks, by their result.", checks));
    scenarios(second, names, phase, metrics);
    for (name, figure) in series(&figures.own, "own figure", names) {
        metrics.extend(own(&name, &figure, phase));
    }
    agents(second, phase, metrics);
}

fn scenarios(second: &Live, names: &mut Names, phase: PhaseOf, metrics: &mut Vec<Metric>) {
    let (mut iterations, mut results) = (Vec::new(), Vec::new());
    for (name, figure) in series(&second.snapshot.figures.scenarios, "scenario", names) {
        let of = attribute("brunt.scenario.name", &name);
        iterations.extend(ended(&figure.iterations, with(phase, &of)));
        let done = figure.iterations.known.count().saturating_sub(figure.not_ok);
        for (result, n) in [("ok", done), ("not_ok", figure.not_ok), ("error", figure.errors)] {
            results.push(phase.point([of.clone(), ("brunt.result".into(), result.into())], n));
        }
    }
    metrics.push(times("brunt.iteration.duration", "How long iterations took.", iterations));
    metrics.push(counter("brunt.iterations", "{iteration}", "Iterations that ended, by their result.", results));
}

/// The metric of a figure that the script declared.
fn own(name: &str, figure: &OwnFigures, phase: PhaseOf) -> Option<Metric> {
    let data = match figure.kind {
        // A script's counter may go down as well.
        OwnKind::Counter => Data::Sum {
            monotonic: false,
            points: vec![MetricPoint::new(phase.attributes([]), Number::Real(figure.sum()?))],
        },
        OwnKind::Rate => {
            let held = (figure.share().unwrap_or(0.0) * figure.count as f64).round() as u64;
            let result = |result: &'static str, n| phase.point([("brunt.result".into(), result.into())], n);
            Data::counter(vec![result("true", held), result("false", figure.count.saturating_sub(held))])
        }
        OwnKind::Trend => Data::Distribution {
            // The values are kept in millionths.
            factor: 1e-6,
            points: vec![MetricPoint::new(phase.attributes([]), figure.histogram().into_owned())],
        },
        OwnKind::Gauge => Data::Gauge(vec![MetricPoint::new(phase.attributes([]), figure.last()?)]),
    };
    let unit = if figure.unit.is_empty() { String::new() } else { format!("{{{}}}", figure.unit) };
    Some(Metric::new(format!("brunt.own.{name}"), unit, "A figure of the script's own.", data))
}

fn agents(second: &Live, phase: PhaseOf, metrics: &mut Vec<Metric>) {
    let each = |value: fn(&brunt_record::live::AgentSecond) -> u64| {
        let point = move |agent: &brunt_record::live::AgentSecond| {
            phase.point([attribute("brunt.agent.name", &agent.name)], value(agent))
        };
        second.agents.iter().map(point).collect::<Vec<_>>()
    };
    let (answered, not_ok) = (each(|agent| agent.answered), each(|agent| agent.not_ok));
    metrics.push(counter("brunt.agent.answered", "{call}", "Calls of an agent that were answered.", answered));
    metrics.push(counter("brunt.agent.not_ok", "{call}", "Calls of an agent that ended without success.", not_ok));
    let gauge = |is: fn(&brunt_record::live::AgentSecond) -> bool| {
        let point = move |agent: &brunt_record::live::AgentSecond| {
            MetricPoint::new(
                phase.attributes([attribute("brunt.agent.name", &agent.name)]),
                f64::from(u8::from(is(agent))),
            )
        };
        Data::Gauge(second.agents.iter().map(point).collect())
    };
    let saturated = "Whether a worker of an agent has next to no time left.";
    metrics.push(Metric::new("brunt.agent.saturated", "", saturated, gauge(|agent| agent.is_saturated)));
    let silent = "Whether an agent has reported nothing of this second.";
    metrics.push(Metric::new("brunt.agent.silent", "", silent, gauge(|agent| agent.is_silent)));
}

fn attribute(key: &'static str, value: &str) -> Attribute {
    (key.into(), Value::from(value.to_owned()))
}

fn with(phase: PhaseOf, of: &Attribute) -> impl Fn(Vec<Attribute>) -> Vec<Attribute> {
    move |others| phase.attributes(std::iter::once(of.clone()).chain(others))
}
