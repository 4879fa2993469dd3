//! Gathers what the workers report: seconds for who watches, and the run when it is over.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use brunt_model::live::Live;
use brunt_model::plan::Plan;
use brunt_model::series::Series;
use brunt_model::snapshot::{Phase, Snapshot};
use brunt_model::summary::{Ending, Run};

use crate::Observer;
use crate::worker::{Interval, Report};

/// A second of which some workers' share is still missing.
#[derive(Default)]
struct Second {
    workers: u32,
    length_ns: u64,
    snapshot: Snapshot,
    open_connections: u64,
    in_flight: u64,
}

/// The reports of a run's workers, put together.
pub(crate) struct Coordinator<'a> {
    plan: &'a Plan,
    observer: &'a mut dyn Observer,
    seconds: BTreeMap<(u8, u64), Second>,
    finished: u32,
    measured: Snapshot,
    drained: Snapshot,
    series: Series,
    measured_ns: u64,
    interrupted: bool,
}

impl<'a> Coordinator<'a> {
    pub(crate) fn new(plan: &'a Plan, observer: &'a mut dyn Observer) -> Self {
        Self {
            plan,
            observer,
            seconds: BTreeMap::new(),
            finished: 0,
            measured: Snapshot::default(),
            drained: Snapshot::default(),
            series: Series::default(),
            measured_ns: 0,
            interrupted: false,
        }
    }

    /// Takes reports until every worker has finished, or none is left to send any.
    pub(crate) fn gather(mut self, reports: &Receiver<Report>, started_unix_ms: u64) -> Run {
        while self.finished < self.plan.workers {
            match reports.recv() {
                Ok(Report::Interval(interval)) => self.add(interval),
                Ok(Report::Finished { measured_ns, interrupted }) => {
                    self.finished += 1;
                    self.measured_ns = self.measured_ns.max(measured_ns);
                    self.interrupted |= interrupted;
                }
                Err(_) => break,
            }
            self.pass_on(false);
        }
        self.pass_on(true);
        Run {
            plan: self.plan.clone(),
            started_unix_ms,
            ending: if self.interrupted { Ending::Interrupted } else { Ending::Completed },
            measured_ns: self.measured_ns,
            measured: self.measured,
            drained: self.drained,
            series: self.series,
        }
    }

    fn add(&mut self, interval: Interval) {
        let second = self.seconds.entry((interval.phase as u8, interval.second)).or_default();
        second.workers += 1;
        second.length_ns = second.length_ns.max(interval.length_ns);
        second.snapshot.merge(&interval.snapshot);
        second.open_connections += interval.open_connections;
        second.in_flight += interval.in_flight;
    }

    /// Passes on the seconds that are complete, in order; `all` of them when no more reports come.
    fn pass_on(&mut self, all: bool) {
        while let Some(entry) = self.seconds.first_entry() {
            let missing = self.plan.workers.saturating_sub(entry.get().workers + self.finished);
            if missing > 0 && !all {
                return;
            }
            let ((phase, number), second) = entry.remove_entry();
            let phase = match phase {
                0 => Phase::Warmup,
                1 => Phase::Measured,
                _ => Phase::Drain,
            };
            self.pass(phase, number, second);
        }
    }

    fn pass(&mut self, phase: Phase, number: u64, second: Second) {
        match phase {
            Phase::Warmup => {}
            Phase::Measured => {
                self.measured.merge(&second.snapshot);
                self.series.push(second.length_ns, &second.snapshot, &self.plan.ok_status);
            }
            Phase::Drain => self.drained.merge(&second.snapshot),
        }
        let planned_ns = match phase {
            Phase::Warmup => Some(self.plan.warmup_ns),
            Phase::Measured => self.plan.duration_ns(),
            Phase::Drain => Some(self.plan.drain_ns),
        };
        self.observer.second(&Live {
            phase,
            elapsed_ns: number * brunt_model::SECOND_NS + second.length_ns,
            planned_ns,
            planned_requests: self.plan.stop.requests,
            length_ns: second.length_ns,
            snapshot: second.snapshot,
            open_connections: second.open_connections,
            in_flight: second.in_flight,
        });
    }
}
