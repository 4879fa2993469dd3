//! The agents of a run on several machines: how far apart they began, and a line for each.

use brunt_judge::summary::Summary;
use brunt_judge::verdict::Judgement;
use brunt_record::agents::AgentPart;
use brunt_record::histogram::AtLeast;

use super::fitting::{Rank, Section};
use crate::json::{Agent, Agents};
use crate::numbers::{clean, count, duration};
use crate::style::Paint;

/// The most agents in their own order where not all are asked for: of more, those that were lost come first, then those to be
/// doubted, then the slowest.
const IN_ORDER: usize = 6;

pub(super) fn section(summary: &Summary, paint: Paint, all: bool) -> Section {
    let mut section = Section::new("Agents").with_rows("agent");
    let Some(agents) = Agents::from_summary(summary) else { return section };
    section.add(Rank::Always, [format!("{}{}", super::title("Agents", paint), headline(&agents))]);
    let mut list: Vec<&Agent> = agents.list.iter().collect();
    if !all && list.len() > IN_ORDER {
        list.sort_by_key(|agent| {
            let is_doubted = agent.figures.judgement != Judgement::Trustworthy;
            std::cmp::Reverse((agent.lost.is_some(), is_doubted, agent.figures.response_p99_ns))
        });
    }
    let width = list.iter().map(|agent| agent.name.chars().count()).max().unwrap_or(0);
    for agent in &list {
        let name = clean(&agent.name);
        let Some(lost) = &agent.lost else {
            let is_doubted = agent.figures.judgement != Judgement::Trustworthy;
            let rank = if is_doubted { Rank::Cause } else { Rank::Figure };
            section.add_row(rank, format!("  {name:<width$}  {}", figures(agent, paint)));
            continue;
        };
        let unsent = summary.run.agents.iter().find(|part| part.name == agent.name);
        let unknown = unsent.map_or(0, AgentPart::unknown);
        let unsent = unsent.map_or(0, AgentPart::unsent_lost);
        let missing = match lost.users_missed {
            // Calls of users who never started are due nowhere.
            Some(users) => format!("; {} users never started", count(users)),
            None if summary.plan.scenarios.is_some() => String::new(),
            None if unknown > 0 => format!("; {} calls unsent, {} unknown", count(unsent), count(unknown)),
            None if lost.untold.is_some() => String::new(),
            None => format!("; {} calls unsent", count(unsent)),
        };
        let iterations = lost.iterations_unknown.map(|number| format!("; {} iterations unknown", count(number)));
        let untold = lost.untold.map(|untold| format!("; {untold}")).unwrap_or_default();
        let text = format!(
            "lost after {}: {}{missing}{}{untold}",
            exactly(lost.after_ns),
            clean(&lost.reason),
            iterations.unwrap_or_default(),
        );
        let first = format!("  {name:<width$}  ");
        section.add(Rank::Always, super::wrapped(&first, "    ", &paint.bad(text), super::WIDTH));
    }
    section
}

fn headline(agents: &Agents) -> String {
    let lost = agents.list.iter().filter(|agent| agent.lost.is_some()).count();
    let mut parts = vec![count(agents.list.len() as u64)];
    if lost > 0 {
        parts.push(format!("{lost} lost"));
    }
    if let (Some(skew), Some(uncertainty)) = (agents.start_skew_ns, agents.start_skew_uncertainty_ns) {
        parts.push(format!("began within {} of each other", exactly(skew + uncertainty)));
    }
    parts.join(", ")
}

fn figures(agent: &Agent, paint: Paint) -> String {
    let per_s = count(agent.figures.answered_per_s.round() as u64);
    let mut parts = vec![format!("{per_s:>9}/s")];
    parts.extend(agent.figures.response_p99_ns.map(|p99| format!("p99 {:>8}", exactly(p99))));
    parts.extend(agent.figures.lag_p99_ns.map(|lag| format!("lag p99 {:>8}", exactly(lag))));
    if agent.figures.not_ok > 0 {
        parts.push(format!("{} not ok", count(agent.figures.not_ok)));
    }
    match agent.figures.judgement {
        Judgement::Trustworthy => {}
        Judgement::GeneratorBound => parts.push(paint.warning("was the bottleneck itself")),
        Judgement::LatencyUnreliable => parts.push(paint.warning("its own delays are wide")),
        Judgement::NothingMeasured => parts.push(paint.bad("had no answer")),
    }
    parts.join("  ")
}

fn exactly(ns: u64) -> String {
    duration(AtLeast::exactly(ns))
}
