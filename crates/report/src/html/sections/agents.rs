//! The agents of a run on several machines.

use brunt_judge::verdict::Judgement;
use brunt_plan::units::{Duration, Number};

use super::super::last_second::{Agent, LastSecond};
use super::super::shown::Shown;
use crate::json::{self, Lost};
use crate::numbers::{count, counted, duration};
use crate::page::{Cell, Column, Section, Table};

/// A line for each agent; while the run goes on, for its last second.
pub(super) fn agents(shown: Shown<'_>, live: Option<&LastSecond>) -> Section {
    let mut section = Section::new("agents", "Agents");
    let table = match (live, json::Agents::from_summary(shown.summary)) {
        (Some(live), _) if !live.agents.is_empty() => of_last_second(&live.agents),
        (None, Some(agents)) => of_run(&agents),
        _ => return section,
    };
    section.tools.push(table.csv());
    table.write(&mut section.body);
    section
}

fn time(ns: Option<u64>) -> Cell {
    ns.map_or_else(Cell::none, |ns| Cell::sorted(Duration(ns).to_string(), ns as f64))
}

fn of_last_second(agents: &[Agent]) -> Table {
    let columns = vec![
        Column::words("agent"),
        Column::figure("answered"),
        Column::time("p99"),
        Column::time("lag p99"),
        Column::figure("not ok"),
        Column::words("state"),
    ];
    let mut table = Table::new("agents", "the last second", columns).sortable();
    for agent in agents {
        let state = match (agent.is_silent, agent.is_saturated) {
            (true, _) => Cell::new("reported nothing").classed("bad"),
            (false, true) => Cell::new("no CPU left").classed("warning"),
            (false, false) => Cell::new(""),
        };
        let p99 = agent.p99.map_or_else(Cell::none, |p99| Cell::sorted(duration(p99), p99.value as f64));
        let cells = [
            Cell::new(&agent.name),
            Cell::count(agent.answered),
            p99,
            time(agent.lag_p99_ns),
            Cell::wrong(agent.not_ok),
            state,
        ];
        table.push(cells.into());
    }
    table
}

fn of_run(agents: &json::Agents) -> Table {
    let lost = agents.list.iter().filter(|agent| agent.lost.is_some()).count();
    let apart = agents.start_skew_ns.map(|ns| ns + agents.start_skew_uncertainty_ns.unwrap_or(0));
    let caption = [
        Some(counted(agents.list.len() as u64, "agent")),
        (lost > 0).then(|| format!("{lost} lost")),
        apart.map(|ns| format!("began within {} of each other", Duration(ns))),
    ];
    let columns = vec![
        Column::words("agent"),
        Column::figure("cores"),
        Column::figure("workers"),
        Column::figure("due"),
        Column::figure("answered/s"),
        Column::time("p99"),
        Column::time("lag p99"),
        Column::figure("not ok"),
        Column::words("figures"),
    ];
    let mut table =
        Table::new("agents", caption.into_iter().flatten().collect::<Vec<_>>().join(", "), columns).sortable();
    for agent in &agents.list {
        let figures = &agent.figures;
        let state = match (&agent.lost, figures.judgement) {
            (Some(lost), _) => Cell::new(lost_in_words(lost)).classed("bad"),
            (None, Judgement::Trustworthy) => Cell::new("measured well"),
            (None, Judgement::GeneratorBound) => Cell::new("was the limit itself").classed("warning"),
            (None, Judgement::LatencyUnreliable) => Cell::new("its own delays are wide").classed("warning"),
            (None, Judgement::NothingMeasured) => Cell::new("had no answer").classed("warning"),
        };
        table.push(vec![
            Cell::new(&agent.name),
            Cell::count(agent.cores.into()),
            Cell::count(agent.workers.into()),
            Cell::count(figures.due),
            Cell::sorted(Number(figures.answered_per_s).to_string(), figures.answered_per_s),
            time(figures.response_p99_ns),
            time(figures.lag_p99_ns),
            Cell::wrong(figures.not_ok),
            state,
        ]);
    }
    table
}

/// An agent's loss: its cause, the users that never started, and the iterations with
/// unknown outcomes.
fn lost_in_words(lost: &Lost) -> String {
    let missed = lost.users_missed.map(|users| format!("; {} users never started", count(users)));
    let iterations = lost.iterations_unknown.map(|number| format!("; {} iterations unknown", count(number)));
    let untold = lost.untold.map(|untold| format!("; {untold}"));
    format!(
        "lost after {}: {}{}{}{}",
        Duration(lost.after_ns),
        lost.reason,
        missed.unwrap_or_default(),
        iterations.unwrap_or_default(),
        untold.unwrap_or_default()
    )
}
