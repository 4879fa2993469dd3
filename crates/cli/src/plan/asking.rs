//! Questions of protocols to targets before the load: one call each, with the run's connection settings.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use brunt_engine::{AskError, EngineError};
use brunt_plan::plan::{Plan, ProtocolOptions, Transport};
use brunt_plan::target::Target;
use brunt_protocol::Registry;
use brunt_protocol::discovery::{DiscoveryReply, Inquiry};

use crate::exit::NoAnswer;
use crate::wait_for_target;
use crate::wording::{Settings, render_error};

/// Asks targets, and remembers whether one gave no answer.
pub struct Probe {
    transport: Transport,
    timeout_ns: u64,
    connect_timeout_ns: u64,
    registry: Registry,
    is_unanswered: AtomicBool,
}

impl Probe {
    /// An asker with these connection settings and timeouts in nanoseconds.
    pub fn new(transport: Transport, timeout_ns: u64, connect_timeout_ns: u64, registry: &Registry) -> Self {
        let is_unanswered = AtomicBool::new(false);
        Self { transport, timeout_ns, connect_timeout_ns, registry: registry.clone(), is_unanswered }
    }

    /// The inquiry for `target`, which is the run's own.
    pub fn inquiry(self: &Arc<Self>, target: Target) -> Arc<Inquiry<'static>> {
        let asker = Arc::clone(self);
        Arc::new(move |call: &ProtocolOptions| asker.ask(&target, &target, call))
    }

    /// Asks the target `to`, in a run whose own target is `first`.
    ///
    /// # Errors
    /// The reason for which there is no answer.
    pub fn ask(&self, to: &Target, first: &Target, call: &ProtocolOptions) -> Result<DiscoveryReply, String> {
        let (_, scheme) = self.registry.named(&to.scheme).map_err(|error| error.to_string())?;
        let plan = Plan {
            transport: self.transport.clone(),
            timeout_ns: self.timeout_ns,
            connect_timeout_ns: self.connect_timeout_ns,
            ..Plan::of_calls(first.clone(), call.clone())
        };
        let plan = brunt_engine::plan_to(&plan, to, scheme.default_port);
        wait_for_target::ask(&plan, &self.registry).map_err(|error| {
            let is_wrong = match &error {
                AskError::Engine(EngineError::Route(route)) => !route.is_no_address(),
                AskError::Engine(_) => true,
                AskError::Failed { .. } | AskError::Unanswered => false,
            };
            self.is_unanswered.fetch_or(!is_wrong, Ordering::Relaxed);
            render_error(&error.into(), Settings::Flags)
        })
    }

    /// Returns `made`; if that failed for want of an answer, the error is [`NoAnswer`].
    ///
    /// # Errors
    /// The error in `made`.
    pub fn told<T, E: Error + Send + Sync + 'static>(&self, made: Result<T, E>) -> Result<T> {
        made.map_err(|error| {
            if self.is_unanswered.load(Ordering::Relaxed) {
                NoAnswer::new(error.to_string()).into()
            } else {
                error.into()
            }
        })
    }
}
