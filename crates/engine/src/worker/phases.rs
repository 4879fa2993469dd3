//! What a worker takes through the phases of a run.

use brunt_record::snapshot::Phase;

use crate::network::{Load, NEVER, Network};
use crate::transport::Driver;

/// How a load goes through the phases of a run.
pub(crate) trait Phases<D: Driver>: Load<D> {
    /// Does what comes before the load. Asked again until it is true: ready.
    fn prepare(&mut self, _network: &mut Network<D, Self::Tag>, _now: u64) -> bool {
        true
    }

    /// When [`Phases::prepare`] gives up waiting, if nothing happens.
    fn prepare_until(&self, _network: &Network<D, Self::Tag>) -> u64 {
        NEVER
    }

    /// The warm-up or the measured part began at `began` and lasts until `until`, or [`NEVER`]. A part that takes over from another
    /// begins later than `began`, at the network's time.
    fn begin(&mut self, network: &mut Network<D, Self::Tag>, phase: Phase, began: u64, until: u64);

    /// Does what is due by time.
    fn tick(&mut self, network: &mut Network<D, Self::Tag>, now: u64);

    /// All that had come was read: makes the next calls.
    fn turn(&mut self, network: &mut Network<D, Self::Tag>);

    /// When something is due by time.
    fn next_wake(&self, now: u64) -> u64;

    /// Whether nothing is left to do before the planned end.
    fn is_over(&self, network: &Network<D, Self::Tag>, now: u64) -> bool;

    /// When the next call that has not begun is due; [`NEVER`] if there is none.
    fn next_due(&self) -> u64 {
        NEVER
    }

    /// Why the load ends by itself, if it does.
    fn leaving(&self) -> Option<Leaving>;

    /// The warm-up or the measured part ended at `end`: no new calls are made, and what was due and not sent never will be.
    fn end_load(&mut self, network: &mut Network<D, Self::Tag>, end: u64);

    /// The drain ended, and every call with it.
    fn end_drain(&mut self, _network: &mut Network<D, Self::Tag>, _now: u64) {}

    /// The recorder is about to hand over what happened until `until`.
    fn hand_over(&mut self, network: &mut Network<D, Self::Tag>, until: u64);

    /// Whether answers may wait a moment until more have come, for they are read and called again together.
    fn gathers(&self) -> bool {
        false
    }

    /// Holds itself and its network against what is true between two steps.
    #[cfg(feature = "simulation")]
    fn audit(&self, network: &Network<D, Self::Tag>, _now: u64) {
        network.audit(None::<&Vec<_>>, None);
    }

    /// About how long scripts were busy since this was last asked, in nanoseconds.
    fn take_busy_ns(&mut self) -> u64;

    /// Whether the run ends when its target cannot be reached.
    fn needs_target(&self) -> bool {
        false
    }

    /// Whether a script's function may never return, so that the worker is left behind.
    fn may_hang(&self) -> bool;
}

/// Why a load ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It has done what it wanted on this worker.
    Done,
    /// Its script ends the whole run, for this reason.
    Stopped(String),
    /// It failed, for this reason, and the whole run ends.
    Failed(String),
}
