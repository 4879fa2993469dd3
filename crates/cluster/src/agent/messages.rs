//! Messages that an agent takes from the bus, and sends.

use super::{Agent, AgentEvent, HERE, MOST_BYTES, Session, SessionEnd, Work};
use crate::bus::{self, is_token};
use crate::frame::{Frame, Kind};
use crate::link::Link;
use crate::names::note_of;
use crate::words::{FromAgent, Grant, Note, Problem, ToAgent, from_bytes, printable, to_bytes};
use async_nats::{Event, Message};
use brunt_engine::Tallies;
use brunt_plan::plan::{Plan, Sandbox};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

impl Agent<'_> {
    /// Answers an agent that begins, and asks who has this name. One that ends needs it no longer.
    pub(super) async fn take_name(&mut self, message: &Message) {
        let instance = self.instance;
        let asks = matches!(note_of(message), Some(Note::Asks { instance: other }) if other != instance);
        if asks && self.leaving_since.is_none() {
            let note = Frame::note(0, to_bytes(&Note::Taken { instance }));
            self.publish(&self.name_subject, &note).await;
        }
    }

    /// Says who it is to a controller that asks who is there, which may be of another version.
    pub(super) async fn answer_call(&self, message: &Message) {
        let asks = |(_, frame): (u16, Frame)| frame.kind == Kind::Note;
        if Frame::of_any_version(&message.payload).is_ok_and(asks) {
            let here = Frame::note(0, to_bytes(&Note::Here(self.announcement())));
            self.publish(&self.subject_to(HERE), &here).await;
        }
    }

    /// Takes a message of the bus in.
    pub(super) async fn take(&mut self, message: Message) {
        let received = self.now_ns();
        let Ok(frame) = Frame::from_bytes(&message.payload) else { return };
        if frame.kind == Kind::Note {
            self.take_note(frame, received).await;
            return;
        }
        let id = frame.session;
        match &mut self.session {
            Some(session) if session.link.session() == id => {
                session.heard = Instant::now();
                match session.link.receive(frame, received) {
                    Ok(messages) => messages.iter().for_each(|bytes| self.obey(bytes)),
                    Err(error) => self.end_session(SessionEnd::GivenUp(error.to_string())),
                }
            }
            held => {
                let claim = (frame.number == 1 && frame.kind == Kind::Last).then(|| from_bytes(&frame.payload));
                let Some(Ok(ToAgent::Claim { by, controller })) = claim else { return };
                if !is_token(&controller) {
                    return;
                }
                match held {
                    None => {
                        (self.said)(AgentEvent::Claimed { by: &printable(&by) });
                        let payload = self.client.server_info().max_payload;
                        let mut link = Link::new(id, MOST_BYTES).sharing(payload, 1);
                        let _ = link.receive(frame, received);
                        link.send(to_bytes(&FromAgent::Claimed));
                        let heard = Instant::now();
                        self.session = Some(Session {
                            by,
                            controller,
                            link,
                            heard,
                            plan: None,
                            running: None,
                            granted: Grant { run: 0, until_ns: 0 },
                            taken: (0, 0),
                            tallies: Tallies::default(),
                            counted: BTreeMap::new(),
                            ending: None,
                        });
                    }
                    Some(session) => {
                        let busy = Note::Busy { by: session.by.clone() };
                        self.publish(&self.subject_to(&controller), &Frame::note(id, to_bytes(&busy))).await;
                    }
                }
            }
        }
    }

    pub(super) async fn take_note(&mut self, frame: Frame, received: u64) {
        let (id, note) = (frame.session, from_bytes(&frame.payload));
        let Ok(Note::Ping { controller, sent, is_claimed, grant }) = note else { return };
        if !is_token(&controller) {
            return;
        }
        let pong = Note::Pong { sent, received, answered: self.now_ns() };
        let answer = match self.session.as_mut().filter(|session| session.link.session() == id) {
            Some(session) => {
                session.heard = Instant::now();
                if let Some(grant) = grant {
                    session.take_grant(grant);
                }
                // A note completes no message.
                let _ = session.link.receive(frame, received);
                session.link.note(to_bytes(&pong))
            }
            None if is_claimed => Frame::note(id, to_bytes(&Note::Unknown)),
            None => Frame::note(id, to_bytes(&pong)),
        };
        self.publish(&self.subject_to(&controller), &answer).await;
    }

    pub(super) fn bus_said(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Disconnected) => {
                self.is_away = true;
                (self.said)(AgentEvent::Bus("the NATS server is away; connecting again"));
            }
            Some(Event::Connected) if std::mem::take(&mut self.is_away) => {
                (self.said)(AgentEvent::Bus("the NATS server is back"));
            }
            Some(Event::ServerError(error)) => {
                let problem = error.to_string();
                if problem.to_lowercase().contains(&self.name_subject.to_lowercase()) {
                    (self.said)(AgentEvent::Bus(
                        "the NATS server's permissions do not let agents ask who has a name: nobody notices two of one name \
                         (docs/machines.md has the permissions)",
                    ));
                    return;
                }
                // A refusal ends nothing, and is not said again and again.
                if !bus::refuses(&problem) || !std::mem::replace(&mut self.was_refused, true) {
                    // The subject in it may be of somebody else's choice.
                    (self.said)(AgentEvent::Bus(&printable(&problem)));
                }
            }
            Some(Event::SlowConsumer(_)) => {
                (self.said)(AgentEvent::Bus("this agent takes in messages too slowly; what was lost is said again"));
            }
            _ => {}
        }
    }

    pub(super) fn send(&mut self, words: &FromAgent) {
        if let Some(session) = &mut self.session {
            session.link.send(to_bytes(words));
        }
    }

    pub(super) fn fail(&mut self, run: u32, text: String, is_impossible: bool) {
        (self.said)(AgentEvent::Failed(&text));
        self.send(&FromAgent::Failed { run, problem: Problem { text, is_impossible } });
    }

    /// Does what the controller says.
    pub(super) fn obey(&mut self, bytes: &[u8]) {
        let Some(session) = &mut self.session else { return };
        match from_bytes(bytes) {
            // The first words of a session, which made it.
            Ok(ToAgent::Claim { .. }) => {}
            Ok(ToAgent::Plan { wire }) => match Plan::from_wire(&wire) {
                Ok(mut plan) => {
                    let hash = plan.to_wire().map_or_else(|e| e.to_string(), |wire| wire.hash().to_string());
                    if self.options.sandbox != Sandbox::Open {
                        plan.sandbox = self.options.sandbox;
                    }
                    session.plan = Some(Arc::new(plan));
                    self.send(&FromAgent::PlanTaken { hash });
                }
                Err(error) => self.fail(0, error.to_string(), false),
            },
            Ok(ToAgent::Setup { run }) => {
                self.work_on(run, |plan, registry, scripts, stop| {
                    Work::SetUp(brunt_engine::setup(plan, registry, scripts, stop))
                });
            }
            Ok(ToAgent::Teardown { run, given }) => self.work_on(run, |plan, registry, scripts, stop| {
                Work::TornDown(brunt_engine::teardown(plan, given, registry, scripts, stop))
            }),
            Ok(ToAgent::Prepare { run, machine, portion, given }) => self.prepare(run, machine, portion, given),
            Ok(ToAgent::Start { grant, at }) => self.start(grant, at),
            Ok(ToAgent::TakeOver { run, work }) => self.take_over(run, *work),
            Ok(ToAgent::Elsewhere { run, counts }) => {
                if session.running.as_ref().is_some_and(|running| running.run == run) {
                    session.tallies.set_elsewhere(&counts);
                }
            }
            Ok(ToAgent::Stop { run }) => {
                if let Some(running) = session.running.as_ref().filter(|running| running.run == run) {
                    running.stop.stop();
                }
            }
            Ok(ToAgent::Release) => self.end_session(SessionEnd::Released),
            Err(error) => self.end_session(SessionEnd::GivenUp(error.to_string())),
        }
    }
}
