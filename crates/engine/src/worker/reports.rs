//! Reports of workers to the coordinator, and signals between workers.

use brunt_record::recording::Stop;
use brunt_record::time::Tick;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) use brunt_record::interval::Interval;

use crate::gate::{Gate, GrantedUntil};

/// A report of a worker to the coordinator, or of a machine to the one that merges a run.
#[derive(Debug)]
pub enum Report {
    /// A second of a phase, or the rest of the phase, is over.
    Interval(Box<Interval>),
    /// Figures of the second under way that were not reported yet, from workers that may be left behind.
    Part(Box<Interval>),
    /// The worker has ended.
    Finished {
        /// Its number.
        worker: u32,
        /// How long its measured part was, in nanoseconds.
        measured_ns: u64,
        /// Whether it was asked to stop before its end.
        interrupted: bool,
        /// The reason of its user, if that failed.
        failed: Option<String>,
        /// The reason of its user, if that has ended the run.
        stopped: Option<Stop>,
        /// The reason for which it has ended the run, if no connection to the target could be made.
        unreached: Option<String>,
    },
    /// The time of a worker is over, and no worker ever had a connection, for this reason.
    Unconnected(String),
}

/// Lets workers begin at the same time: once all are connected, and once their [`Gate`] opens if there is one.
#[derive(Debug, Default)]
pub(crate) struct StartingLine {
    ready: AtomicU32,
    /// The time at which to begin, or 0 while workers are missing.
    at: AtomicU64,
    gate: Option<Gate>,
}

impl StartingLine {
    /// A starting line behind a gate, or without one.
    pub(crate) fn behind(gate: Option<Gate>) -> Self {
        Self { gate, ..Self::default() }
    }

    /// A worker is ready at `now`; the last of `workers` sets the beginning.
    pub(crate) fn arrive(&self, workers: u32, now: Tick) {
        if self.ready.fetch_add(1, Ordering::AcqRel) + 1 < workers {
            return;
        }
        if let Some(gate) = &self.gate {
            gate.arrive();
        } else {
            // Late enough for the others, which look every millisecond.
            self.at.store((now + 2_000_000).ns(), Ordering::Release);
        }
    }

    /// How far calls may be made.
    pub(crate) fn horizon(&self) -> GrantedUntil {
        self.gate.as_ref().map(Gate::horizon).unwrap_or_default()
    }

    pub(crate) fn time(&self) -> Option<Tick> {
        match (&self.gate, self.at.load(Ordering::Acquire)) {
            (Some(gate), _) => gate.time(),
            (None, 0) => None,
            (None, at) => Some(Tick::from_ns(at)),
        }
    }
}
