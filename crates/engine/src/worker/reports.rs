//! What workers tell the coordinator, and each other.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) use brunt_record::interval::Interval;

use crate::gate::{Gate, Horizon};

/// What a worker tells the coordinator, or a machine the one that puts a run together.
#[derive(Debug)]
pub enum Report {
    /// A second of a phase is over, or what was left of the phase.
    Interval(Box<Interval>),
    /// What has happened so far in the second that is under way, and was not reported yet: of workers that may be left behind.
    Part(Box<Interval>),
    /// A worker that has finished goes on, with this second of the measured part: it does what another has left.
    Resumed {
        /// Its number.
        worker: u32,
        /// The first second that it reports from now on.
        second: u64,
    },
    /// The worker has ended.
    Finished {
        /// Its number.
        worker: u32,
        /// How long its measured part was, in nanoseconds.
        measured_ns: u64,
        /// Whether it was asked to stop before its end.
        interrupted: bool,
        /// Why its user failed, if it did.
        failed: Option<String>,
        /// Why its user has ended the run, if it did by itself.
        stopped: Option<String>,
        /// Why it has ended the run, if no connection to the target could be made.
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
    /// A line behind a gate, or without one.
    pub(crate) fn behind(gate: Option<Gate>) -> Self {
        Self { gate, ..Self::default() }
    }

    /// A worker is ready at `now`; the last of `workers` sets the beginning.
    pub(crate) fn arrive(&self, workers: u32, now: u64) {
        if self.ready.fetch_add(1, Ordering::AcqRel) + 1 < workers {
            return;
        }
        if let Some(gate) = &self.gate {
            gate.arrive();
        } else {
            // Late enough for the others, who look every millisecond.
            self.at.store(now + 2_000_000, Ordering::Release);
        }
    }

    /// How far calls may be made.
    pub(crate) fn horizon(&self) -> Horizon {
        self.gate.as_ref().map(Gate::horizon).unwrap_or_default()
    }

    pub(crate) fn time(&self) -> Option<u64> {
        match (&self.gate, self.at.load(Ordering::Acquire)) {
            (Some(gate), _) => gate.time(),
            (None, 0) => None,
            (None, at) => Some(at),
        }
    }
}
