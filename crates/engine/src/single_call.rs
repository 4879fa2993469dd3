//! One call before the load, from which a protocol learns something that the load needs: a run of one call, whose
//! answer is kept.

use std::sync::{Arc, Mutex, PoisonError};

use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_plan::stop::StopHandle;
use brunt_protocol::discovery::DiscoveryReply;
use brunt_protocol::source::{Hooks, Message, RequestSource, SourceEnd};
use brunt_protocol::{AnswerParts, Client, KeptAnswer, Prepared, Registry};
use brunt_record::outcome::Failure;
use brunt_script::NoScripts;

use crate::RunShare;
use crate::error::EngineError;
use crate::run::{self, RunInputs};
use crate::transport::Machine;
use crate::transport::epoll::Epolls;

/// The reason for which a call before the load has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It could not be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It has failed.
    #[error("{}: {reason}", .failure.name())]
    Failed {
        /// How.
        failure: Failure,
        /// Why.
        reason: String,
    },
    /// It was given up: the run was to stop, or the call took longer than its timeouts.
    #[error("no answer came")]
    Unanswered,
}

/// Makes the first call that `plan` describes and returns its answer. Blocks until the call has ended.
///
/// Connecting, TLS and timeouts are the plan's; its load, script and thresholds are left out.
///
/// # Errors
/// When there is no answer, or the plan is wrong.
pub fn ask(plan: &Plan, registry: &Registry, stop: &StopHandle) -> Result<DiscoveryReply, AskError> {
    ask_on(&Epolls::new(plan, false), plan, registry, stop)
}

/// The same on the drivers of `machine`.
pub(crate) fn ask_on<M: Machine>(
    machine: &M,
    plan: &Plan,
    registry: &Registry,
    stop: &StopHandle,
) -> Result<DiscoveryReply, AskError> {
    let plan = Plan {
        script: None,
        scenarios: None,
        connections: Connections::Fixed(1),
        workers: 1,
        load: Load::Closed {},
        stop: StopRule { duration_ns: None, requests: Some(1) },
        warmup_ns: 0,
        drain_ns: plan.timeout_ns,
        reconnect: false,
        pipeline: 1,
        own_times: false,
        own: Vec::new(),
        thresholds: Vec::new(),
        guards: Vec::new(),
        watches: Vec::new(),
        ..plan.clone()
    };
    let reply = Arc::<Mutex<Option<DiscoveryReply>>>::default();
    let keep = |inner| Arc::new(KeepingAnswer { inner, reply: Arc::clone(&reply) }) as Arc<dyn Prepared>;
    let given = RunInputs { machine, part: RunShare::whole(1), registry, scripts: &NoScripts, stop, trace: None };
    let run = run::ask(&plan, given, keep)?;
    if let Some(reply) = reply.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Ok(reply);
    }
    for failures in [&run.measured.failures, &run.drained.failures] {
        if let Some((failure, _)) = failures.counted().next() {
            let reasons = failures.reasons(failure);
            let reason = reasons.first().map_or("", |(reason, _)| reason).to_owned();
            return Err(AskError::Failed { failure, reason });
        }
    }
    Err(AskError::Unanswered)
}

/// A protocol whose answer is kept.
struct KeepingAnswer {
    inner: Arc<dyn Prepared>,
    reply: Arc<Mutex<Option<DiscoveryReply>>>,
}

impl Prepared for KeepingAnswer {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        self.client_of(0, keep)
    }

    fn client_of(&self, number: u64, _keep: bool) -> Box<dyn Client> {
        self.inner.client_of(number, true)
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(OneCallUser { inner: self.inner.user(), reply: Arc::clone(&self.reply) })
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.inner.alpn()
    }
}

struct OneCallUser {
    inner: Box<dyn RequestSource>,
    reply: Arc<Mutex<Option<DiscoveryReply>>>,
}

impl RequestSource for OneCallUser {
    fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd> {
        self.inner.request(index)
    }

    fn hooks(&self) -> Hooks {
        Hooks { answers: true, pauses: false }
    }

    fn answered(&mut self, status: u16, parts: AnswerParts<'_>) -> Result<(), SourceEnd> {
        let kept = KeptAnswer { head: parts.head.to_vec(), body: parts.body.to_vec() };
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = Some(DiscoveryReply { status, kept });
        Ok(())
    }
}
