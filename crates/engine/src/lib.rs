//! brunt's engine: carries a [`Plan`] out and returns what happened as a [`Run`].
//!
//! [`run`] finds the target's addresses, starts the workers and gathers what they report. A worker (`worker`) is a thread
//! with its own connections; it asks the plan's pace when a call is due, the protocol ([`Registry`]) which bytes that
//! is, the transport (`transport`) to send them, and writes down what came of it.

mod coordinator;
mod error;
mod flood;
mod limits;
mod network;
mod pace;
mod run;
mod scenarios;
#[cfg(test)]
mod tests;
pub mod trace;
mod transport;
mod users;
mod watchdog;
mod worker;

use std::sync::Arc;

use brunt_model::live::Live;
use brunt_model::plan::Plan;
use brunt_model::share::Share;
use brunt_model::summary::Run;

use brunt_lua::Session;
use brunt_protocol::Registry;

use crate::run::Given;
use crate::trace::Trace;
use crate::transport::epoll::Epolls;

pub use brunt_model::stop::StopHandle;

pub use crate::error::EngineError;
pub use crate::limits::{most_connections, most_growing_connections};
pub use crate::transport::route::RouteError;
pub use crate::transport::tls::TlsError;

/// Sees a run while it goes on.
pub trait Observer {
    /// A second is over (or a phase, with what is left of its last second).
    fn second(&mut self, live: &Live);
}

/// A run that is over.
pub struct Finished {
    /// What happened.
    pub run: Run,
    /// What the plan's script may still have to say about it.
    pub script: Option<Session>,
}

/// Carries `plan` out and returns what happened. Blocks until it is over.
///
/// # Errors
/// When no load could be put on anything: the plan is wrong, its limits cannot be had, or its host has no address.
pub fn run(
    plan: &Plan,
    registry: &Registry,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    let machine = Epolls::new(plan.transport.arrival_times);
    run::run(plan, Given { machine: &machine, share: Share::WHOLE, registry, stop, trace: None }, observer)
}

/// Carries out a plan as [`run`] does, and shows `trace` everything that its users do, or what its connections send and
/// receive. For a few users, and one call: it is slow.
///
/// # Errors
/// As [`run`].
pub fn run_traced(
    plan: &Plan,
    registry: &Registry,
    observer: &mut dyn Observer,
    stop: &StopHandle,
    trace: Arc<dyn Trace>,
) -> Result<Finished, EngineError> {
    let machine = Epolls::new(plan.transport.arrival_times);
    run::run(plan, Given { machine: &machine, share: Share::WHOLE, registry, stop, trace: Some(trace) }, observer)
}

/// Checks everything about `plan` that can be checked without touching the network.
///
/// # Errors
/// When something in it is wrong.
pub fn check(plan: &Plan, registry: &Registry) -> Result<(), EngineError> {
    run::check(plan, registry)
}
