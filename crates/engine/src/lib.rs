//! brunt's engine: carries a plan out.

pub mod protocol;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brunt_model::live::Live;
use brunt_model::plan::Plan;
use brunt_model::summary::Run;

/// Sees a run while it goes on.
pub trait Observer {
    /// A second is over (or a phase, with what is left of its last second).
    fn second(&mut self, live: &Live);
}

/// Ends a run early, from any thread or signal handler. Calls in flight still end within the drain.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Asks the run to end.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a plan could not be carried out at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Something in the plan is wrong.
    #[error("{0}")]
    Plan(String),
}

/// Carries `plan` out and returns what happened. Blocks until it is over.
///
/// # Errors
/// When no load could be put on anything: the plan is wrong, its limits cannot be had, or its host has no address.
pub fn run(
    _plan: &Plan,
    _registry: &protocol::Registry,
    _observer: &mut dyn Observer,
    _stop: &StopHandle,
) -> Result<Run, EngineError> {
    Err(EngineError::Plan("not there yet".to_owned()))
}
