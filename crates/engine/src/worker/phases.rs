//! A source of calls, as a worker takes it through the phases of a run.

use brunt_record::recording::Stop;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use crate::network::{Load, Network};
use crate::transport::Driver;

/// How a load goes through the phases of a run.
pub(crate) trait Phases<D: Driver>: Load<D> {
    /// Prepares the load. Called again until it returns true: ready.
    fn prepare(&mut self, _network: &mut Network<D, Self::Tag>, _now: Tick) -> bool {
        true
    }

    /// When [`Phases::prepare`] gives up waiting, if nothing happens.
    fn prepare_until(&self, _network: &Network<D, Self::Tag>) -> Tick {
        Tick::NEVER
    }

    /// The warm-up or the measured part began at `began` and lasts until `until`, or [`Tick::NEVER`]. A part that takes over
    /// from another begins later than `began`, at the network's time.
    fn begin(&mut self, network: &mut Network<D, Self::Tag>, phase: Phase, began: Tick, until: Tick);

    /// Does everything that is due by time.
    fn tick(&mut self, network: &mut Network<D, Self::Tag>, now: Tick);

    /// Everything that had come was read: makes the next calls.
    fn turn(&mut self, network: &mut Network<D, Self::Tag>);

    /// The next time at which something is due.
    fn next_wake(&self, now: Tick) -> Tick;

    /// Whether nothing is left to do before the planned end.
    fn is_over(&self, network: &Network<D, Self::Tag>, now: Tick) -> bool;

    /// When the next call that has not begun is due; [`Tick::NEVER`] if there is none.
    fn next_due(&self) -> Tick {
        Tick::NEVER
    }

    /// The reason if the load ends by itself.
    fn leaving(&self) -> Option<Leaving>;

    /// The warm-up or the measured part ended at `end`: no new calls are made, and due calls that were not sent never
    /// will be.
    fn end_load(&mut self, network: &mut Network<D, Self::Tag>, end: Tick);

    /// The user ends the run at `end`, just before [`Phases::end_load`]: due calls that wait may still be sent in the
    /// drain, as far as there are connections for them.
    fn is_interrupted(&mut self, _network: &mut Network<D, Self::Tag>, _end: Tick) {}

    /// The drain ended, and every call with it.
    fn end_drain(&mut self, _network: &mut Network<D, Self::Tag>, _now: Tick) {}

    /// The recorder is about to report everything until `until`.
    fn hand_over(&mut self, network: &mut Network<D, Self::Tag>, until: Tick);

    /// Whether answers may wait a moment for others, to be read and followed by new calls together.
    fn gathers(&self) -> bool {
        false
    }

    /// Checks its own and its network's invariants between two steps.
    #[cfg(feature = "simulation")]
    fn audit(&self, network: &Network<D, Self::Tag>, _now: Tick) {
        network.audit(None::<&Vec<_>>, None);
    }

    /// The approximate time that scripts were busy since the last call, in nanoseconds.
    fn take_busy_ns(&mut self) -> u64;

    /// Whether the load calls its target from its beginning on, at its own pace: a run of it that makes no connection has not reached its
    /// target, and one whose target refuses every connection is given up soon. A script may wait for a target to start.
    fn calls_at_once(&self) -> bool {
        false
    }

    /// Whether a script's function may never return, so that the worker is left behind.
    fn may_hang(&self) -> bool;
}

/// The reason for which a load ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It has no more calls on this worker.
    Done,
    /// Its script ends the whole run.
    Stopped(Stop),
    /// It failed, for this reason, and the whole run ends.
    Failed(String),
}
