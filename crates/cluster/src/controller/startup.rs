//! How agents are brought to the start of a run.

use brunt_plan::plan::Plan;
use brunt_plan::secret;
use brunt_plan::share::Portion;
use brunt_protocol::scenario::Value;
use brunt_record::agents::AgentPart;
use brunt_record::recording::LifecycleFigures;
use serde_bytes::ByteBuf;

use super::contact::ContactEvent;
use super::in_run::InRun;
use super::peer::{Granting, Peer};
use super::progress::StartedRun;
use super::state::{Controller, Next, Settling, StartStage, Starting, State, TeardownResult, TearingDown, refuse};
use super::waits::{Awaited, Wait, WaitLimits};
use super::{COMPARISONS, ClusterError, LEAD_NS, Order};
use crate::clock::Offset;
use crate::messages::{Announcement, FromAgent, ToAgent};
use crate::roster::deal;
use crate::rules::{Rule, is_broken};

/// How long agents that were told to stop may take, in nanoseconds: a setup under way has ten seconds to return.
const SETTLING_NS: u64 = 12_000_000_000;

impl Controller {
    /// Turns to an order.
    pub(super) fn begin(&mut self, order: Order) -> State {
        self.contact.runs += 1;
        let run = self.contact.runs;
        self.contact.events.clear();
        self.working.clear();
        if self.contact.peers.is_empty() {
            refuse(&order, ClusterError::NobodyLeft);
            return State::Resting;
        }
        match self.send_plan(run, &order) {
            Ok((plan, announced, portions, stage)) => {
                let (given, left) = (None, LifecycleFigures::default());
                State::Starting(Box::new(Starting { run, order, plan, announced, portions, given, left, stage }))
            }
            Err(error) => State::Settling(Box::new(Settling { run, order, error, given: None, since: None })),
        }
    }

    /// Tells the agents the plan, unless they have it.
    fn send_plan(
        &mut self,
        run: u32,
        order: &Order,
    ) -> Result<(Plan, Vec<Announcement>, Vec<Portion>, StartStage), ClusterError> {
        let mut plan = order.plan.clone();
        if let Some(streamed) = plan.scenarios.as_ref().and_then(|scenarios| scenarios.streamed.first()) {
            return Err(ClusterError::Streamed { file: streamed.name.clone() });
        }
        if !self.terms.secrets_from_agents {
            plan.environment = plan.referenced_environment();
        }
        if has_secrets(&plan) {
            self.check_privacy()?;
        }
        let announced: Vec<_> = self.contact.peers.iter().map(|peer| peer.agent.clone()).collect();
        // Users have connections of their own, except where the script limits them.
        let connections = match &plan.scenarios {
            Some(scenarios) => scenarios.most_workers().map_or(u32::MAX, |(most, _)| most),
            None => plan.connections.most(),
        };
        let portions = deal(&announced, order.workers, connections)?;
        let wire = plan.to_wire()?;
        let hash = wire.hash().to_string();
        if self.sent_plan.as_ref() == Some(&hash) {
            let stage = self.surround(run, &plan, &portions);
            return Ok((plan, announced, portions, stage));
        }
        self.sent_plan = None;
        self.contact.tell_all(&ToAgent::Plan { wire: ByteBuf::from(wire.bytes()) });
        let missing = (0..self.contact.peers.len()).collect();
        let (got_on, left) = (self.contact.audible, usize::MAX);
        Ok((plan, announced, portions, StartStage::Planning { missing, hash, got_on, left }))
    }

    /// Whether orders to the agents are private.
    fn check_privacy(&self) -> Result<(), ClusterError> {
        if !self.is_private {
            return Err(ClusterError::Secrets);
        }
        for Peer { agent, .. } in &self.contact.peers {
            if !agent.is_private {
                return Err(ClusterError::OpenWay { agent: agent.name.clone() });
            }
            // Servers of a cluster may speak to each other in clear.
            if agent.server != self.contact.server.id {
                return Err(ClusterError::OtherServer { agent: agent.name.clone() });
            }
        }
        Ok(())
    }

    /// All have the plan: lets the first run the script's setup, if there is one.
    fn surround(&mut self, run: u32, plan: &Plan, portions: &[Portion]) -> StartStage {
        if plan.scenarios.is_none() {
            return self.prepare(run, portions, &Value::Nil);
        }
        self.working.insert(0);
        self.contact.tell(0, &ToAgent::Setup { run });
        StartStage::SettingUp { since: self.contact.audible }
    }

    /// Lets all make their connections.
    fn prepare(&mut self, run: u32, portions: &[Portion], given: &Value<'static>) -> StartStage {
        for (place, portion) in portions.iter().enumerate() {
            let (machine, given) = (place as u32, given.clone());
            self.working.insert(place);
            self.contact.tell(place, &ToAgent::Prepare { run, machine, portion: *portion, given });
        }
        StartStage::Preparing { missing: (0..portions.len()).collect(), since: self.contact.audible }
    }

    /// Takes agents' messages before a run has begun. Anything that keeps it from beginning is an error.
    pub(super) fn start(&mut self, mut starting: Starting, now: u64) -> Next {
        loop {
            match self.next_before(&starting.order) {
                Err(error) => {
                    let Starting { run, order, given, .. } = starting;
                    let settling = Settling { run, order, error, given, since: None };
                    return Next::Moves(State::Settling(Box::new(settling)));
                }
                Ok(Some((place, words))) => {
                    if let Err(error) = self.come_closer(&mut starting, place, words) {
                        let Starting { run, order, given, .. } = starting;
                        let settling = Settling { run, order, error, given, since: None };
                        return Next::Moves(State::Settling(Box::new(settling)));
                    }
                }
                Ok(None) => break,
            }
        }
        let is_compared = self.contact.peers.iter().all(|peer| peer.clock.count() >= COMPARISONS);
        match &starting.stage {
            StartStage::Preparing { missing, .. } if missing.is_empty() && is_compared => {
                Next::Moves(self.let_begin(starting, now))
            }
            _ => {
                self.await_start(&mut starting);
                Next::Stays(State::Starting(Box::new(starting)))
            }
        }
    }

    /// Waits for what agents owe before a run begins.
    fn await_start(&mut self, starting: &mut Starting) {
        let (limits, audible) = (WaitLimits::new(&starting.plan), self.contact.audible);
        let wait = |awaited, since, limit_ns| move |place| Wait { place, awaited, since, limit_ns };
        let waits: Vec<Wait> = match &mut starting.stage {
            StartStage::Planning { missing, got_on, left, .. } => {
                // A long plan on a slow way takes its time, as long as pieces of it arrive anywhere.
                let now_left = self.contact.bytes_left();
                if now_left != *left {
                    (*left, *got_on) = (now_left, audible);
                }
                missing.iter().copied().map(wait(Awaited::Plan, *got_on, limits.plan_ns)).collect()
            }
            StartStage::SettingUp { since } => vec![wait(Awaited::Setup, *since, limits.setup_ns)(0)],
            StartStage::Preparing { missing, since } => {
                missing.iter().copied().map(wait(Awaited::Connections, *since, limits.connections_ns)).collect()
            }
        };
        self.contact.wait_for(&waits);
    }

    /// The next message of an agent before a run has begun, if there is one.
    fn next_before(&mut self, order: &Order) -> Result<Option<(usize, FromAgent)>, ClusterError> {
        loop {
            if let Some(peer) = self.contact.peers.iter().find(|peer| peer.lost.is_some()) {
                let (agent, reason) = (peer.agent.name.clone(), peer.lost.clone().unwrap_or_default());
                let left = self.contact.peers.iter().filter(|peer| peer.lost.is_none()).count();
                return Err(ClusterError::LostBefore { agent, reason, left });
            }
            if order.stop.is_stopped() {
                return Err(ClusterError::Interrupted);
            }
            match self.contact.events.pop_front() {
                Some(ContactEvent::Message(place, FromAgent::Failed { problem, .. })) => {
                    self.working.remove(&place);
                    let (problem, is_impossible) = (problem.text, problem.is_impossible);
                    return Err(ClusterError::Agent { agent: self.contact.name(place), problem, is_impossible });
                }
                Some(ContactEvent::Message(place, FromAgent::Leaving { reason })) => {
                    if let Some(peer) = self.contact.peers.get_mut(place) {
                        peer.lost.get_or_insert(reason);
                    }
                }
                Some(ContactEvent::Message(place, words)) => return Ok(Some((place, words))),
                Some(ContactEvent::Busy(..)) => {}
                None => return Ok(None),
            }
        }
    }

    /// Takes a message of an agent.
    fn come_closer(&mut self, starting: &mut Starting, place: usize, words: FromAgent) -> Result<(), ClusterError> {
        let Starting { run, plan, portions, given, left, stage, .. } = starting;
        match (stage, words) {
            (StartStage::Planning { missing, hash, .. }, FromAgent::PlanTaken { hash: got }) => {
                if got != *hash {
                    let problem =
                        format!("its plan has the hash {got}, and should have {hash}: run one brunt everywhere");
                    return Err(ClusterError::Agent { agent: self.contact.name(place), problem, is_impossible: false });
                }
                missing.remove(&place);
                if missing.is_empty() {
                    self.sent_plan = Some(hash.clone());
                    starting.stage = self.surround(*run, plan, portions);
                }
            }
            (StartStage::SettingUp { .. }, FromAgent::Given { run: of, value, left: its }) if of == *run => {
                self.working.remove(&place);
                if !is_broken(Rule::SetupCounts) {
                    *left = *its;
                }
                starting.stage = self.prepare(*run, portions, &value);
                *given = Some(value);
            }
            (StartStage::Preparing { missing, .. }, FromAgent::Ready { run: of }) if of == *run => {
                missing.remove(&place);
            }
            _ => {}
        }
        Ok(())
    }

    /// Tells all when to begin.
    fn let_begin(&mut self, starting: Starting, now: u64) -> State {
        let Starting { run, order, plan, announced, portions, given, left, .. } = starting;
        let offsets: Vec<Offset> = self.contact.peers.iter().filter_map(|peer| peer.clock.offset()).collect();
        let slowest = offsets.iter().map(|offset| offset.uncertainty_ns).max().unwrap_or(0);
        let at = now + LEAD_NS + 4 * slowest;
        order.control.begins_in((at - now).saturating_add(plan.warmup_ns));
        let granting = Granting::new(run, at, self.terms.on_lost, plan.warmup_ns, order.control.clone());
        self.contact.granting = Some(granting.clone());
        for (place, offset) in offsets.iter().enumerate() {
            let Some(peer) = self.contact.peers.get_mut(place) else { continue };
            peer.granted_ns = 0;
            let grant = granting.grant(peer);
            self.contact.tell(place, &ToAgent::Start { grant, at: offset.there(at) });
        }
        let parts = announced.iter().zip(&portions).map(|(agent, portion)| {
            AgentPart::new(&agent.name, &agent.version, agent.cores, portion.workers(), announced.len())
        });
        let in_run = |(part, portion)| InRun::new(part, portion, &plan);
        let agents = parts.zip(portions.iter().copied()).map(in_run).collect();
        let given = given.unwrap_or(Value::Nil);
        self.run(run, order, StartedRun { plan, given, left, at, agents }, now)
    }

    /// Waits until agents that were told to stop have done so, and then reports why the run does not begin.
    pub(super) fn settle(&mut self, mut settling: Settling, now: u64) -> Next {
        let run = settling.run;
        let since = *settling.since.get_or_insert_with(|| {
            self.contact.tell_all(&ToAgent::Stop { run });
            now
        });
        while let Some(said) = self.contact.events.pop_front() {
            let ContactEvent::Message(place, words) = said else { continue };
            match words {
                FromAgent::Given { run: of, value, .. } if of == run => {
                    settling.given = Some(value).filter(|_| !is_broken(Rule::SetUpIsTornDown));
                }
                FromAgent::Finished { run: of, .. } | FromAgent::Failed { run: of, .. } if of == run => {}
                _ => continue,
            }
            self.working.remove(&place);
        }
        let is_left = settling.order.stop.leaves();
        let is_settled = is_left || self.working.iter().all(|place| self.contact.is_lost(*place));
        if !is_settled && now.saturating_sub(since) < SETTLING_NS && self.gone().is_none() {
            return Next::Stays(State::Settling(Box::new(settling)));
        }
        let Settling { order, error, given, .. } = settling;
        let Some(given) = given.filter(|_| !is_left) else {
            refuse(&order, error);
            return Next::Moves(State::Resting);
        };
        Next::Moves(TearingDown::state(run, given, TeardownResult::NotBegun(Box::new((order, error)))))
    }
}

/// Whether something in the plan must not be read by others.
pub(super) fn has_secrets(plan: &Plan) -> bool {
    !plan.environment.is_empty() || serde_json::to_string(plan).unwrap_or_default().contains(secret::REDACTED)
}
