//! A decision as test cases for CI: what must be so for it to hold.

use std::io::{self, Write};

use brunt_decide::capacity::Capacity;
use brunt_decide::compare::ComparedRuns;
use brunt_decide::compare::FailIfResult;
use brunt_decide::sweep::Sweep;
use brunt_plan::plan::Plan;

use super::not_made::not_made;
use super::{Decision, DecisionFormat, capacity, render};
use crate::junit::{Case, Subject, Suite, made_by, properties, write_suites};
use crate::numbers::clean;
use crate::style::{Detail, Style};

/// Why `decision` does not hold, a sentence for each reason; empty where it does.
pub fn failures(decision: Decision<'_>) -> Vec<String> {
    cases(decision).into_iter().filter_map(|case| Some(clean(&case.failure?.0).into_owned())).collect()
}

/// Writes the test cases of `decision`.
pub(super) fn write(out: &mut impl Write, decision: Decision<'_>) -> io::Result<()> {
    let of_plan = |plan: &Plan| [("target", plan.target.url()), ("seed", plan.seed.to_string())];
    let (name, own) = match decision {
        Decision::Capacity(plan, _) => ("find", of_plan(plan)),
        Decision::Sweep(plan, _) => ("sweep", of_plan(plan)),
        Decision::Comparison(compared) => ("compare", [("a", compared.a.clone()), ("b", compared.b.clone())]),
    };
    let runs = decision.runs();
    let report = render(DecisionFormat::Text, decision, Style { detail: Detail::Dated, ..Style::default() })?;
    let started_unix_ms = decision.started_unix_ms().unwrap_or(0);
    let by = made_by(env!("CARGO_PKG_VERSION"), decision.machine());
    let subject = Subject {
        host: decision.machine().map_or("", |machine| machine.hostname.as_str()),
        started_unix_ms,
        took_ns: runs.iter().map(|run| run.measured_ns).sum(),
        properties: properties(&own, started_unix_ms, decision.origin(), by),
        report: String::from_utf8_lossy(&report).into_owned(),
    };
    write_suites(out, &[Suite { name, cases: cases(decision) }], &subject)
}

fn cases(decision: Decision<'_>) -> Vec<Case> {
    let cases = match decision {
        Decision::Capacity(plan, capacity) => of_capacity(plan, capacity),
        Decision::Sweep(_, sweep) => of_sweep(sweep),
        Decision::Comparison(compared) => of_comparison(compared),
    };
    cases.into_iter().chain(of_agents(decision)).collect()
}

/// A case that failed for these reasons, if there are any; the first of them is its message.
fn case(name: impl Into<String>, why: &[String]) -> Case {
    Case { name: name.into(), failure: why.first().map(|message| (message.clone(), why.join("\n"))) }
}

fn of_capacity(plan: &Plan, found: &Capacity) -> Vec<Case> {
    let why = (!found.is_found()).then(|| {
        let (sentence, reasons) = capacity::sentence(plan, found);
        [vec![sentence], reasons].concat()
    });
    vec![case("the capacity is known", &why.unwrap_or_default())]
}

fn of_sweep(sweep: &Sweep) -> Vec<Case> {
    let steps = sweep.steps.iter().map(|step| {
        let name = format!("{} {}", sweep.axis.name, step.value);
        let why = (!step.is_good()).then(|| format!("{name}: {}", step.why_not()));
        case(name, why.as_slice())
    });
    let ended = (!sweep.ended.is_empty()).then(|| sweep.ended.clone());
    steps.chain([case("every value was tried", ended.as_slice())]).collect()
}

fn of_comparison(compared: &ComparedRuns) -> Vec<Case> {
    let silent = silent(compared);
    let too_little = too_little(compared);
    let thresholds = failed_threshold(compared).filter(|_| silent.is_none()).map(|(_, sentence)| sentence);
    let interrupted = compared.interrupted.then(|| "interrupted: the comparison is of what was done".to_owned());
    let conditions = compared.conditions.iter().map(|result| {
        let why = failed_condition(result);
        case(format!("not {}", result.condition), why.as_slice())
    });
    [
        case("both sides answered", silent.as_slice()),
        case("there was enough to compare", too_little.as_slice()),
        case("every threshold held in every run", thresholds.as_slice()),
        case("every round was made", interrupted.as_slice()),
    ]
    .into_iter()
    .chain(conditions)
    .collect()
}

/// The sentence of a side that was never answered.
fn silent(compared: &ComparedRuns) -> Option<String> {
    let run = compared.silent_side()?;
    let name = if run.is_b { &compared.b } else { &compared.a };
    Some(format!("{name} never answered: {}", run.evidence.failure))
}

/// Why a comparison does not hold, each with its sign: a question mark where nothing could be judged.
pub(super) fn before_all(compared: &ComparedRuns) -> Vec<(&'static str, String)> {
    let first = silent(compared).map(|sentence| ("✗", sentence)).or_else(|| failed_threshold(compared));
    let conditions = compared
        .conditions
        .iter()
        .filter_map(|condition| Some((if condition.unjudged { "?" } else { "✗" }, failed_condition(condition)?)));
    let little = too_little(compared).map(|sentence| ("?", sentence));
    first.into_iter().chain(little).chain(conditions).collect()
}

fn too_little(compared: &ComparedRuns) -> Option<String> {
    let is_little = compared.comparison.is_none() && compared.silent_side().is_none();
    is_little.then(|| "not judged: too little data to compare".to_owned())
}

fn failed_condition(result: &FailIfResult) -> Option<String> {
    result.failed.then(|| format!("{}: {}", result.condition, result.got))
}

/// Such as `a threshold failed in 2 of 20 runs: A 3: error_rate <= 1% was 5% (status 503)`, with a question mark where brunt's own delays
/// can have decided all of them.
fn failed_threshold(compared: &ComparedRuns) -> Option<(&'static str, String)> {
    let runs = compared.failed_runs();
    let (run, result) = runs.first()?;
    let (side, number) = (if run.is_b { "B" } else { "A" }, run.number);
    let why = if result.is_implicit() { format!(" ({})", run.evidence.failure) } else { String::new() };
    let doubt = if result.sure { "" } else { ", which brunt's own delays can have decided" };
    let sentence = format!(
        "a threshold failed in {} of {} runs, such as {side} {number}: {} was {}{why}{doubt}",
        runs.len(),
        compared.runs.len(),
        result.condition,
        result.got
    );
    Some((if result.sure { "✗" } else { "?" }, sentence))
}

/// Cases of the agents that made the runs; none where this machine did.
fn of_agents(decision: Decision<'_>) -> Vec<Case> {
    let lacking = decision.lacking();
    let are_agents = decision.runs().iter().any(|run| run.agents > 0);
    if !are_agents && lacking.losses.is_empty() {
        return Vec::new();
    }
    let losses = if lacking.agents_lost { lacking.losses.as_slice() } else { &[] };
    vec![case("no agent was lost", losses), case("all agents made every run", &not_made(lacking).collect::<Vec<_>>())]
}
