//! A run that goes on, as the recording that it would have if it ended now.

use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_record::live::Live;
use brunt_record::recording::Recording;
use brunt_record::series::Series;
use brunt_record::snapshot::Phase;

/// The most points of a run whose calls are not told apart over time: an hour of seconds.
const MOST_POINTS: usize = 3600;

/// The merged seconds of a run, from which live views derive their figures.
#[derive(Debug, Clone)]
pub(crate) struct SoFar {
    pub plan: Plan,
    pub run: Recording,
}

impl SoFar {
    /// A run that is about to carry `plan` out.
    pub fn new(plan: &Plan, started_unix_ms: u64) -> Self {
        let mut plan = plan.clone();
        // No view shows the files' content, and each summary would copy it.
        if let Some(scenarios) = &mut plan.scenarios {
            scenarios.files.iter_mut().for_each(|file| file.content.0.clear());
        }
        Self { plan, run: Recording::begun(started_unix_ms) }
    }

    /// A run whose calls are not told apart over time, which only the page shows.
    pub fn undrilled(plan: &Plan) -> Self {
        let mut so_far = Self::new(plan, 0);
        so_far.run.series = Series::of_at_most(MOST_POINTS);
        so_far
    }

    /// Takes the run's last second. Nothing of the warm-up counts, except users that it leaves alive.
    pub fn push(&mut self, live: &Live) {
        let run = &mut self.run;
        run.changes.extend(live.changes.iter().cloned());
        match live.phase {
            Phase::Warmup => {
                run.measured.figures.carry_over(&live.snapshot.figures);
                run.series.warmed_up(&live.snapshot);
            }
            Phase::Measured => {
                run.measured.merge(&live.snapshot);
                run.measured_ns = run.measured_ns.max(live.elapsed_ns);
                run.series.push(live.length_ns, &live.snapshot, &self.plan.ok_status);
                run.series.connections_open(live.open_connections);
            }
            Phase::Drain => run.drained.merge(&live.snapshot),
        }
    }

    /// Every figure so far.
    pub fn summary(&self) -> Summary {
        Summary::new(self.plan.clone(), self.run.clone())
    }
}
