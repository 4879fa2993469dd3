//! What the page is given of a run that goes on: what its report would be if it ended now, and its last second.

use std::io;

use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_record::live::Live;
use brunt_record::recording::{Ending, Recording};
use brunt_record::series::Series;
use brunt_record::snapshot::{Phase, Snapshot};

use super::last_second::{Agent, LastSecond};
use super::page;
use super::shown::Shown;
use crate::json::Document;
use crate::live::{Second, counts_on, name};

/// A run that goes on, as the page shows it.
#[derive(Debug)]
pub struct Running {
    plan: Plan,
    run: Recording,
    phase: Option<Phase>,
    state: LastSecond,
}

impl Running {
    /// A run that is about to carry `plan` out.
    pub fn new(plan: &Plan, started_unix_ms: u64) -> Self {
        let mut plan = plan.clone();
        // The page shows none of it, and it would be copied each time.
        if let Some(scenarios) = &mut plan.scenarios {
            scenarios.files.iter_mut().for_each(|file| file.content.0.clear());
        }
        Self {
            plan,
            run: Recording {
                started_unix_ms,
                ending: Ending::Completed,
                measured_ns: 0,
                measured: Snapshot::default(),
                drained: Snapshot::default(),
                series: Series::default(),
                status_names: std::collections::BTreeMap::new(),
                redirected_to: None,
                agents: Vec::new(),
            },
            phase: None,
            state: LastSecond { phase: "starting", ..LastSecond::default() },
        }
    }

    /// Takes in the run's last second.
    pub fn push(&mut self, live: &Live) {
        let (run, ok) = (&mut self.run, &self.plan.ok_status);
        match live.phase {
            Phase::Warmup => {
                run.measured.figures.carry_over(&live.snapshot.figures);
                run.series.warmed_up(&live.snapshot);
            }
            Phase::Measured => {
                run.measured.merge(&live.snapshot);
                run.measured_ns = run.measured_ns.max(live.elapsed_ns);
                run.series.push(live.length_ns, &live.snapshot, ok);
                run.series.connections_open(live.open_connections);
            }
            Phase::Drain => run.drained.merge(&live.snapshot),
        }
        let second = Second::from_live(live, ok);
        // What was missed of the warm-up is in no figure anyway.
        let is_new = self.phase.replace(live.phase).is_some_and(|last| !counts_on(last, live.phase));
        self.state = LastSecond {
            phase: name(live.phase),
            elapsed_ns: live.elapsed_ns,
            planned_ns: live.planned_ns,
            planned_requests: live.planned_requests,
            open_connections: live.open_connections,
            in_flight: live.in_flight,
            users: live.users,
            answered_per_s: second.rate,
            not_ok: second.not_ok,
            p50: second.p50,
            p99: second.p99,
            backlog: live.waiting,
            oldest_ns: (live.oldest_ns > 0).then_some(live.oldest_ns),
            agents: live.agents.iter().map(Agent::new).collect(),
            missed: if is_new { 0 } else { self.state.missed },
        };
    }

    /// Counts seconds that could not be taken in.
    pub fn miss(&mut self, seconds: u64) {
        self.state.missed += seconds;
    }

    /// What the page is to show now: an event's data, in a line.
    ///
    /// # Errors
    /// None: writing JSON is fallible in type.
    pub fn data(&self) -> io::Result<String> {
        let summary = Summary::of(self.plan.clone(), self.run.clone());
        let shown = Shown { document: &Document::from_summary(&summary), summary: &summary };
        page(shown, Some(&self.state)).event()
    }
}
