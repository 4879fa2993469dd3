//! Observers, which see a run while it goes on.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::live::{InLog, Live};
use crate::recording::AbortCause;
use crate::samples::SampleSink;
use crate::snapshot::{Phase, Snapshot};
use crate::watched::Watched;

/// The measured part of a run so far.
#[derive(Debug, Clone, Copy)]
pub struct RunningTotal<'a> {
    /// The record of its finished seconds.
    pub measured: &'a Snapshot,
    /// Their total length, in nanoseconds.
    pub measured_ns: u64,
    /// Virtual users alive at the end of the last one.
    pub users: u64,
    /// The most virtual users alive at once.
    pub most_users: u64,
}

/// Sees each second of a run, and may end the run.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use brunt_record::live::Live;
/// use brunt_record::observer::{Observer, RunningTotal};
/// use brunt_record::recording::AbortCause;
///
/// /// Ends a run that made enough calls.
/// struct Enough(u64);
///
/// impl Observer for Enough {
///     fn second(&mut self, _second: &Live, so_far: &RunningTotal<'_>) -> ControlFlow<AbortCause> {
///         if so_far.measured.due() < self.0 {
///             return ControlFlow::Continue(());
///         }
///         ControlFlow::Break(AbortCause::Observer(format!("{} calls are enough", so_far.measured.due())))
///     }
/// }
/// ```
pub trait Observer {
    /// Figures watched beside the run in a finished second, or in the rest of the last second of a phase. It ended
    /// `elapsed_ns` after the beginning of `phase`, and was `length_ns` long.
    ///
    /// Called right before [`second`](Observer::second) gets that second, on the same thread: it returns what is known
    /// by then, and waits for nothing. The result becomes part of the run's record.
    fn watched(&mut self, _phase: Phase, _elapsed_ns: u64, _length_ns: u64) -> Watched {
        Watched::default()
    }

    /// How far a replay is in its log at the end of a second of its measured part; `None` for other runs.
    ///
    /// Called as [`watched`](Observer::watched) is.
    fn in_log(&mut self, _elapsed_ns: u64) -> Option<InLog> {
        None
    }

    /// Takes a row for each call; `None` where no rows are wanted.
    ///
    /// Called once, before the load.
    fn samples(&self) -> Option<Arc<dyn SampleSink>> {
        None
    }

    /// Takes a finished second, or the rest of the last second of a phase. `so_far` includes it.
    ///
    /// Called once for each second, in order, on the thread that gathers the workers' reports: an observer that blocks
    /// here holds up the next second, and no call. `Break` aborts the run, for the cause that its result will give;
    /// calls in flight still end within the drain, whose seconds are shown as well. Only the first `Break` of a run
    /// counts.
    fn second(&mut self, second: &Live, so_far: &RunningTotal<'_>) -> ControlFlow<AbortCause>;
}
