//! The agents of a run on several machines: how far apart they began, and a line for each.

use brunt_judge::summary::Summary;
use brunt_judge::verdict::Judgement;
use brunt_record::agents::AgentPart;
use brunt_record::histogram::AtLeast;

use crate::json::{Agent, Agents};
use crate::numbers::{clean, count, duration};
use crate::style::Paint;

/// Agents that are shown where not all are asked for: those that were lost, then those to be doubted, then the slowest.
const SHOWN: usize = 6;

pub(super) fn section(summary: &Summary, paint: Paint, all: bool) -> Vec<String> {
    let Some(agents) = Agents::from_summary(summary) else { return Vec::new() };
    let mut lines = vec![format!("{}{}", super::title("Agents", paint), headline(&agents))];
    let mut list: Vec<&Agent> = agents.list.iter().collect();
    if !all && list.len() > SHOWN {
        list.sort_by_key(|agent| {
            let is_doubted = agent.figures.judgement != Judgement::Trustworthy;
            std::cmp::Reverse((agent.lost.is_some(), is_doubted, agent.figures.response_p99_ns))
        });
        list.truncate(SHOWN);
    }
    let width = list.iter().map(|agent| agent.name.chars().count()).max().unwrap_or(0);
    for agent in &list {
        let name = clean(&agent.name);
        lines.extend(match &agent.lost {
            Some(lost) => {
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
                let iterations =
                    lost.iterations_unknown.map(|number| format!("; {} iterations unknown", count(number)));
                let untold = lost.untold.map(|untold| format!("; {untold}")).unwrap_or_default();
                let text = format!(
                    "lost after {}: {}{missing}{}{untold}",
                    exactly(lost.after_ns),
                    clean(&lost.reason),
                    iterations.unwrap_or_default(),
                );
                super::wrapped(&format!("  {name:<width$}  "), "    ", &paint.bad(text), super::WIDTH)
            }
            None => vec![format!("  {name:<width$}  {}", figures(agent, paint))],
        });
    }
    let left = agents.list.len() - list.len();
    if left > 0 {
        lines.push(format!("  and {left} more, which answered sooner (--verbose shows all)"));
    }
    lines
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
