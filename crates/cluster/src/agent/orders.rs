//! Orders of a controller to an agent.

use std::sync::Arc;

use brunt_plan::plan::{Plan, Sandbox};
use brunt_plan::share::Portion;
use brunt_protocol::scenario::Value;

use super::AgentEvent;
use super::machine::{Agent, MachineOrder, NewPart};
use super::session::{PartInProgress, PartProgress, SessionEnd, SessionWork};
use crate::messages::{FromAgent, Problem, ToAgent};
use brunt_record::bytes::from_bytes;

impl Agent {
    /// Carries out a controller's order.
    pub(super) fn obey(&mut self, bytes: &[u8]) {
        let Some(session) = self.session() else { return };
        match from_bytes(bytes) {
            // The first message of a session, which made it.
            Ok(ToAgent::Claim { .. }) => {}
            Ok(ToAgent::Plan { wire }) => self.take_plan(&wire),
            Ok(ToAgent::Setup { run }) => {
                if let Some(plan) = self.begin_work(run, SessionWork::SettingUp(run)) {
                    self.act(run, MachineOrder::SetUp(plan));
                }
            }
            Ok(ToAgent::Teardown { run, given }) => {
                if let Some(plan) = self.begin_work(run, SessionWork::TearingDown(run)) {
                    self.act(run, MachineOrder::TearDown(plan, given));
                }
            }
            Ok(ToAgent::Prepare { run, machine, portion, given }) => self.prepare(run, machine, portion, given),
            Ok(ToAgent::Start { grant, at }) => {
                let run = grant.run;
                let carrying = session.carrying(run).filter(|carrying| carrying.progress == PartProgress::Ready);
                if let Some(carrying) = carrying {
                    carrying.progress = PartProgress::Begun;
                    let reach = session.take_grant(grant);
                    self.act(run, MachineOrder::Open { at });
                    if let Some(granted) = reach {
                        self.act(run, MachineOrder::Extend(granted));
                    }
                }
            }
            Ok(ToAgent::Elsewhere { run, counts }) => {
                if session.run() == Some(run) {
                    self.act(run, MachineOrder::CountElsewhere(counts));
                }
            }
            Ok(ToAgent::GiveBack { run, most }) => {
                if session.carrying(run).is_some() {
                    self.act(run, MachineOrder::GiveBack(most));
                }
            }
            Ok(ToAgent::Numbers { run, numbers, are_last }) => {
                if session.carrying(run).is_some() {
                    self.act(run, MachineOrder::AddNumbers { numbers, are_last });
                }
            }
            Ok(ToAgent::Stop { run }) => {
                if session.run() == Some(run) {
                    self.stop_work();
                }
            }
            Ok(ToAgent::Release) => self.end_session(SessionEnd::Released),
            Err(error) => self.end_session(SessionEnd::GivenUp(error.to_string())),
        }
    }

    fn take_plan(&mut self, wire: &[u8]) {
        match Plan::from_wire(wire) {
            Ok(mut plan) => {
                let hash = plan.to_wire().map_or_else(|e| e.to_string(), |wire| wire.hash().to_string());
                if self.sandbox != Sandbox::Open {
                    plan.sandbox = self.sandbox;
                }
                if let Some(session) = self.session() {
                    session.plan = Some(Arc::new(plan));
                    session.send(&FromAgent::PlanTaken { hash });
                }
            }
            Err(error) => self.fail(0, Problem { text: error.to_string(), is_impossible: false }),
        }
    }

    /// Begins this work, if nothing else is under way. Returns the plan.
    fn begin_work(&mut self, run: u32, work: SessionWork) -> Option<Arc<Plan>> {
        let session = self.session()?;
        if let (Some(plan), SessionWork::Nothing) = (session.plan.clone(), &session.work) {
            session.work = work;
            return Some(plan);
        }
        let text = "the agent has no plan, or is busy with the one before; this is a defect of brunt".to_owned();
        self.fail(run, Problem { text, is_impossible: false });
        None
    }

    fn prepare(&mut self, run: u32, machine: u32, portion: Portion, given: Value<'static>) {
        let carrying = PartInProgress { run, progress: PartProgress::Connecting };
        let Some(plan) = self.begin_work(run, SessionWork::Carrying(carrying)) else { return };
        if let Some(session) = self.session() {
            session.counted.clear();
        }
        self.act(run, MachineOrder::Carry(Box::new(NewPart { plan, machine, portion, given })));
        self.events.push(AgentEvent::Begun { portion });
    }

    /// Ends everything under way.
    pub(super) fn stop_work(&mut self) {
        self.end_work(MachineOrder::Stop);
    }

    /// Ends everything under way by this order.
    pub(super) fn end_work(&mut self, order: MachineOrder) {
        let Some(session) = self.session() else { return };
        let Some(run) = session.run() else { return };
        self.act(run, order);
    }
}
