//! How agents are brought to the start of a run.

use std::time::{Duration, Instant};

use brunt_engine::StopHandle;
use brunt_plan::plan::Plan;
use brunt_plan::secret;
use brunt_protocol::scenario::Value;
use brunt_record::agents::AgentPart;
use serde_bytes::ByteBuf;

use super::control::{Control, Said};
use super::in_run::InRun;
use super::peer::{Granting, Peer};
use super::progress::Begun;
use super::{COMPARISONS, ClusterError, LEAD_NS, LOOK, OnLost, Order};
use crate::clock::Offset;
use crate::roster::deal;
use crate::words::{FromAgent, ToAgent};

/// How long agents that were told to stop may take: what setup has under way has ten seconds to return.
const SETTLING: Duration = Duration::from_secs(12);

impl Control {
    /// Brings the agents to the start. `given` is what setup has returned, as soon as it has: that is to be torn down, whatever comes.
    pub(super) async fn begin(
        &mut self,
        run: u32,
        order: &Order,
        given: &mut Option<Value<'static>>,
    ) -> Result<Begun, ClusterError> {
        let Some(terms) = self.terms.clone() else { return Err(ClusterError::Defect) };
        let stop = &order.stop;
        let mut plan = order.plan.clone();
        if let Some(streamed) = plan.scenarios.as_ref().and_then(|scenarios| scenarios.streamed.first()) {
            return Err(ClusterError::Streamed { file: streamed.name.clone() });
        }
        if !terms.secrets_from_agents {
            plan.environment = plan.referenced_environment();
        }
        if has_secrets(&plan) {
            self.check_privacy()?;
        }
        let announced: Vec<_> = self.peers.iter().map(|peer| peer.agent.clone()).collect();
        // Users have connections of their own, but for what the script limits.
        let connections = match &plan.scenarios {
            Some(scenarios) => scenarios.most_workers().map_or(u32::MAX, |(most, _)| most),
            None => plan.connections.most(),
        };
        let portions = deal(&announced, order.workers, connections)?;
        let wire = plan.to_wire()?;
        let hash = wire.hash().to_string();
        if self.sent_plan.as_ref() != Some(&hash) {
            self.tell_all(&ToAgent::Plan { wire: ByteBuf::from(wire.bytes()) });
            let mut missing = self.peers.len();
            while missing > 0 {
                if let (place, FromAgent::PlanTaken { hash: got }) = self.next_before(stop).await? {
                    if got != hash {
                        let problem =
                            format!("its plan has the hash {got}, and should have {hash}: run one brunt everywhere");
                        return Err(ClusterError::Agent { agent: self.name(place), problem, is_impossible: false });
                    }
                    missing -= 1;
                }
            }
            self.sent_plan = Some(hash);
        }
        if plan.scenarios.is_some() {
            self.working.insert(0);
            self.tell(0, &ToAgent::Setup { run });
            loop {
                if let (place, FromAgent::Given { run: of, value }) = self.next_before(stop).await?
                    && of == run
                {
                    self.working.remove(&place);
                    *given = Some(value);
                    break;
                }
            }
        }
        let given = given.clone().unwrap_or(Value::Nil);
        for (place, portion) in portions.iter().enumerate() {
            let (machine, given) = (place as u32, given.clone());
            self.working.insert(place);
            self.tell(place, &ToAgent::Prepare { run, machine, portion: *portion, given });
        }
        let mut missing = self.peers.len();
        while missing > 0 || self.peers.iter().any(|peer| peer.clock.count() < COMPARISONS) {
            if let (_, FromAgent::Ready { run: of }) = self.next_or_look(stop).await?
                && of == run
            {
                missing -= 1;
            }
        }
        let offsets: Vec<Offset> = self.peers.iter().filter_map(|peer| peer.clock.offset()).collect();
        let slowest = offsets.iter().map(|offset| offset.uncertainty_ns).max().unwrap_or(0);
        let at = self.now_ns() + LEAD_NS + 4 * slowest;
        let granting = Granting::new(run, at, terms.on_lost);
        self.granting = Some(granting);
        for (place, offset) in offsets.iter().enumerate() {
            let Some(peer) = self.peers.get_mut(place) else { continue };
            peer.granted_ns = 0;
            let grant = granting.grant(peer);
            self.tell(place, &ToAgent::Start { grant, at: offset.there(at) });
        }
        let parts = announced.iter().zip(&portions).map(|(agent, portion)| {
            AgentPart::new(&agent.name, &agent.version, agent.cores, portion.workers(), announced.len())
        });
        let in_run = |(place, (part, portion))| InRun::new(part, portion, place, &plan);
        let agents = parts.zip(portions.iter().copied()).enumerate().map(in_run).collect();
        Ok(Begun { plan, given, at, agents })
    }

    /// Whether nobody but the agents can read what they are told.
    fn check_privacy(&self) -> Result<(), ClusterError> {
        if !self.bus.is_private() {
            return Err(ClusterError::Secrets);
        }
        let server = self.server();
        for Peer { agent, .. } in &self.peers {
            if !agent.is_private {
                return Err(ClusterError::OpenWay { agent: agent.name.clone() });
            }
            // Servers of a cluster may speak to each other in clear.
            if agent.server != server {
                return Err(ClusterError::OtherServer { agent: agent.name.clone() });
            }
        }
        Ok(())
    }

    /// The next words of an agent before a run has begun. Anything that keeps it from beginning is an error.
    pub(super) async fn next_before(&mut self, stop: &StopHandle) -> Result<(usize, FromAgent), ClusterError> {
        loop {
            if let Some(peer) = self.peers.iter().find(|peer| peer.lost.is_some()) {
                let (agent, reason) = (peer.agent.name.clone(), peer.lost.clone().unwrap_or_default());
                let left = self.peers.iter().filter(|peer| peer.lost.is_none()).count();
                return Err(ClusterError::LostBefore { agent, reason, left });
            }
            if stop.is_stopped() {
                return Err(ClusterError::Interrupted);
            }
            match self.said.pop_front() {
                Some(Said::Words(place, FromAgent::Failed { problem, .. })) => {
                    self.working.remove(&place);
                    let (problem, is_impossible) = (problem.text, problem.is_impossible);
                    return Err(ClusterError::Agent { agent: self.name(place), problem, is_impossible });
                }
                Some(Said::Words(place, FromAgent::Leaving { reason })) => {
                    if let Some(peer) = self.peers.get_mut(place) {
                        peer.lost.get_or_insert(reason);
                    }
                }
                Some(Said::Words(place, words)) => return Ok((place, words)),
                Some(Said::Busy(..)) => {}
                None => self.step(LOOK / 10).await?,
            }
        }
    }

    /// As [`Control::next_before`], but comes back after a while with something that says nothing.
    async fn next_or_look(&mut self, stop: &StopHandle) -> Result<(usize, FromAgent), ClusterError> {
        if self.said.is_empty() {
            self.step(LOOK / 10).await?;
        }
        if self.said.is_empty() && self.peers.iter().all(|peer| peer.lost.is_none()) && !stop.is_stopped() {
            return Ok((0, FromAgent::Claimed));
        }
        self.next_before(stop).await
    }

    /// Goes on without agents that were lost in the run before, unless that was to end it.
    pub(super) fn leave_lost_behind(&mut self) {
        let goes_on = self.terms.as_ref().is_some_and(|terms| terms.on_lost != OnLost::Abort);
        if goes_on && self.runs > 1 && self.peers.iter().any(|peer| peer.lost.is_none()) {
            let left = std::mem::take(&mut self.peers).into_iter().filter(|peer| peer.lost.is_none()).collect();
            self.own(left);
        }
    }

    /// Waits until agents that were told to stop have done so. `given` is what setup returns meanwhile.
    pub(super) async fn settle(&mut self, run: u32, given: &mut Option<Value<'static>>) {
        let began = Instant::now();
        loop {
            while let Some(said) = self.said.pop_front() {
                let Said::Words(place, words) = said else { continue };
                match words {
                    FromAgent::Given { run: of, value } if of == run => *given = Some(value),
                    FromAgent::Finished { run: of, .. } | FromAgent::Failed { run: of, .. } if of == run => {}
                    _ => continue,
                }
                self.working.remove(&place);
            }
            let is_lost = |place: &usize| self.peers.get(*place).is_none_or(|peer| peer.lost.is_some());
            if self.working.iter().all(is_lost) || began.elapsed() >= SETTLING || self.step(LOOK / 5).await.is_err() {
                return;
            }
        }
    }
}

/// Whether something in the plan must not be read by others.
fn has_secrets(plan: &Plan) -> bool {
    !plan.environment.is_empty() || serde_json_text(plan).contains(secret::REDACTED)
}

fn serde_json_text(plan: &Plan) -> String {
    serde_json::to_string(plan).unwrap_or_default()
}
