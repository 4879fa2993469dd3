//! Seconds of a part, on their way from its workers to the agent.

use std::ops::ControlFlow;
use std::sync::Arc;

use brunt_engine::{Observer, RunningTotal};
use brunt_record::SECOND_NS;
use brunt_record::interval::Interval;
use brunt_record::live::Live;
use brunt_record::samples::SampleSink;
use tokio::sync::mpsc::UnboundedSender;

use super::machine::{Job, MachineReport};

/// Sees the seconds of a part, and hands them over.
pub(super) struct Seconds {
    pub(super) job: Job,
    pub(super) machine: u32,
    pub(super) sender: UnboundedSender<(Job, MachineReport)>,
    pub(super) samples: Option<Arc<dyn SampleSink>>,
}

impl Observer for Seconds {
    fn second(&mut self, live: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<brunt_engine::AbortCause> {
        let interval = Interval {
            worker: self.machine,
            phase: live.phase,
            second: live.elapsed_ns.saturating_sub(live.length_ns) / SECOND_NS,
            length_ns: live.length_ns,
            snapshot: live.snapshot.clone(),
            open_connections: live.open_connections,
            in_flight: live.in_flight,
            oldest_ns: live.oldest_ns,
        };
        // The agent may have ended.
        let _ = self.sender.send((self.job, MachineReport::Second(Box::new(interval))));
        ControlFlow::Continue(())
    }

    fn samples(&self) -> Option<Arc<dyn SampleSink>> {
        self.samples.clone()
    }
}
