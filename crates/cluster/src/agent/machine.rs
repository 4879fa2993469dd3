//! An agent's state, moved by messages and time. It does no I/O, starts no thread and reads no clock: its driver
//! ([`super::serve`], or the simulation) hands in what has come, and carries out its [`Posted`] frames, [`Act`]s and
//! [`AgentEvent`]s.

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_plan::plan::{Plan, Sandbox};
use brunt_plan::share::{DealtNumbers, Portion};
use brunt_protocol::scenario::Value;
use brunt_record::interval::Interval;
use brunt_record::recording::LifecycleFigures;
use bytes::Bytes;

use super::AgentEvent;
use super::session::{Session, SessionEnd, SessionWork};
use crate::PATIENCE_NS;
use crate::bus::{is_token, refuses};
use crate::frame::{Frame, Kind};
use crate::link::Link;
use crate::messages::{Announcement, FromAgent, Grant, Note, PartEnd, Problem, RequestsTaken, ToAgent, printable};
use crate::post::{BusEvent, Outbox, Posted, Server};
use crate::rules::{Rule, is_broken};
use brunt_record::SECOND_NS;
use brunt_record::bytes::{from_bytes, to_bytes};

/// Limit on an incoming message, in bytes: a plan with its files.
const MOST_BYTES: usize = 1 << 30;
/// How often an agent looks after itself, in nanoseconds: at rest, in a run, while something is not acknowledged, where
/// machines count together, and when it has to end.
const AT_REST_NS: u64 = SECOND_NS;
const UNHEARD_NS: u64 = 250_000_000;
const COUNTING_NS: u64 = 10_000_000;
const LEAVING_NS: u64 = 5_000_000;
/// How long an agent that has given up a run may take to hand over its measurements, in nanoseconds.
const HANDING_OVER_NS: u64 = 8_000_000_000;
/// How long after it was to end a part is said to go on, in nanoseconds.
const STUCK_NS: u64 = 15 * SECOND_NS;
/// How long the last words of an agent that ends may take, in nanoseconds.
const LAST_WORDS_NS: u64 = 3_000_000_000;
/// The end of the subject of announcements.
pub(crate) const HERE: &str = "here";

/// The controller and the run that a machine works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) session: u128,
    pub(crate) run: u32,
}

/// An order to the agent's machine. Times are nanoseconds on the agent's clock.
pub(crate) enum MachineOrder {
    /// Run the script's setup.
    SetUp(Arc<Plan>),
    /// Run the script's teardown, with the value that setup has returned.
    TearDown(Arc<Plan>, Value<'static>),
    /// Prepare a part. No call is made before it is allowed.
    Carry(Box<NewPart>),
    /// Begin the part at this time.
    Open { at: u64 },
    /// Let the part make calls that are due in the first `until_ns` nanoseconds of the run, warm-up included.
    Extend(Grant),
    /// Give at most this many of the last requests back.
    GiveBack(u64),
    /// Add these requests, after which no more come if they are the last.
    AddNumbers { numbers: Vec<DealtNumbers>, are_last: bool },
    /// Take over the counts of all other machines.
    CountElsewhere(BTreeMap<String, u64>),
    /// End everything under way.
    Stop,
    /// End it at once, a teardown as well: nobody takes its result.
    Leave,
}

/// A part that an agent's machine is to carry out.
pub(crate) struct NewPart {
    pub(crate) plan: Arc<Plan>,
    /// The agent's number among the machines of the run.
    pub(crate) machine: u32,
    pub(crate) portion: Portion,
    /// The value that setup has returned.
    pub(crate) given: Value<'static>,
}

/// A report of the agent's machine.
pub(crate) enum MachineReport {
    /// The connections of its part are made.
    Ready,
    /// The part begins at this time of the agent's clock, this much later than it should; in nanoseconds.
    Began { at: u64, late: u64 },
    /// A second of the part is over.
    Second(Box<Interval>),
    /// So many of the last requests were given back.
    GivenBack(u64),
    /// The part has ended, or could not be carried out.
    Ran(Result<Box<PartEnd>, Problem>),
    /// The value that setup has returned, and its counts.
    SetUp(Result<(Value<'static>, Box<LifecycleFigures>), Problem>),
    /// The counts of teardown.
    TornDown(Result<Box<LifecycleFigures>, Problem>),
}

/// Whom an agent belongs to.
enum State {
    /// To nobody: it waits for controllers.
    Free,
    /// To a controller.
    Claimed(Box<Session>),
}

/// An agent.
pub(crate) struct Agent {
    /// Its announcement, without its owner and the server that it is connected to.
    pub(crate) about: Announcement,
    /// The most that scripts of controllers may do here.
    pub(super) sandbox: Sandbox,
    server: Server,
    state: State,
    /// Since when it has to end.
    leaving_since: Option<u64>,
    /// Whether the bus has refused one of its messages.
    was_refused: bool,
    /// Why the bus that answers cannot be used, as it was last told.
    unusable: Option<String>,
    /// The bus's last complaint.
    last_said: String,
    outbox: Outbox,
    acts: Vec<(Job, MachineOrder)>,
    pub(super) events: Vec<AgentEvent>,
}

impl Agent {
    pub(crate) fn new(about: Announcement, sandbox: Sandbox, prefix: &str, server: Server) -> Self {
        Self {
            about,
            sandbox,
            server,
            state: State::Free,
            leaving_since: None,
            was_refused: false,
            unusable: None,
            last_said: String::new(),
            outbox: Outbox::new(prefix),
            acts: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Its state, for debugging a simulation.
    #[cfg(test)]
    pub(crate) fn describe(&self) -> String {
        match &self.state {
            State::Free => "free".to_owned(),
            State::Claimed(session) => {
                let Session { link, granted, ending, .. } = &**session;
                format!("run {:?}, {granted:?}, {ending:?}, {link:?}", session.run())
            }
        }
    }

    /// The frames to be sent now.
    pub(crate) fn take_posted(&mut self) -> Vec<Posted> {
        self.outbox.take()
    }

    /// Orders to its machine, in their order.
    pub(crate) fn take_acts(&mut self) -> Vec<(Job, MachineOrder)> {
        std::mem::take(&mut self.acts)
    }

    /// Events for its user.
    pub(crate) fn take_events(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.state {
            State::Free => None,
            State::Claimed(session) => Some(session),
        }
    }

    /// How long nothing has to be done, in nanoseconds.
    pub(crate) fn patience_ns(&self) -> u64 {
        match &self.state {
            _ if self.leaving_since.is_some() => LEAVING_NS,
            State::Free => AT_REST_NS,
            State::Claimed(session) => match session.work {
                SessionWork::Carrying(_) if session.counts_together() => COUNTING_NS,
                _ if !session.link.is_acknowledged() || session.ending.is_some() => UNHEARD_NS,
                _ => AT_REST_NS,
            },
        }
    }

    fn announcement(&self) -> Announcement {
        let busy = match &self.state {
            State::Free => None,
            State::Claimed(session) => Some(session.by.clone()),
        };
        Announcement { busy, server: self.server.id.clone(), ..self.about.clone() }
    }

    /// The subject of messages to the receiver `to`.
    fn subject_to(&self, to: &str) -> String {
        self.outbox.subject(&format!("from.{}.{to}", self.about.name))
    }

    /// The subject on which agents ask for the owner of its name.
    pub(crate) fn name_subject(&self) -> String {
        self.outbox.subject(&format!("name.{}", self.about.name))
    }

    pub(super) fn act(&mut self, run: u32, act: MachineOrder) {
        let Some(session) = self.session() else { return };
        let job = Job { session: session.link.session(), run };
        self.acts.push((job, act));
    }

    pub(super) fn send(&mut self, words: &FromAgent) {
        if let Some(session) = self.session() {
            session.send(words);
        }
    }

    pub(super) fn fail(&mut self, run: u32, problem: Problem) {
        self.events.push(AgentEvent::Failed(problem.text.clone()));
        self.send(&FromAgent::Failed { run, problem });
    }

    /// Takes a message from its name's subject, and answers that the name is taken. An ending agent gives its name up.
    pub(crate) fn receive_name(&mut self, payload: &Bytes) {
        let instance = self.about.instance;
        let asks = matches!(Note::read(payload), Some(Note::Asks { instance: other }) if other != instance);
        if asks && self.leaving_since.is_none() {
            let subject = self.name_subject();
            self.outbox.post(subject, Frame::note(0, to_bytes(&Note::Taken { instance })));
        }
    }

    /// Takes a controller's call, which may be of another version, and announces itself. An ending agent keeps silent: it
    /// takes no other run.
    pub(crate) fn receive_call(&mut self, payload: &Bytes) {
        let asks = |(_, frame): (u16, Frame)| frame.kind == Kind::Note;
        if self.leaving_since.is_none() && Frame::of_any_version(payload).is_ok_and(asks) {
            let here = Frame::note(0, to_bytes(&Note::Here(self.announcement())));
            self.outbox.post(self.subject_to(HERE), here);
        }
    }

    /// Takes a message from its own subject.
    pub(crate) fn receive(&mut self, payload: &Bytes, now: u64) {
        let Ok(frame) = Frame::from_bytes(payload) else { return };
        if frame.kind == Kind::Note {
            return self.receive_note(frame, now);
        }
        let id = frame.session;
        let messages = match self.session() {
            Some(session) if session.link.session() == id => {
                session.heard = now;
                session.link.receive(frame, now)
            }
            _ => return self.receive_claim(frame, now),
        };
        self.obey_all(messages);
    }

    fn obey_all(&mut self, messages: Result<Vec<Vec<u8>>, crate::link::TooLong>) {
        match messages {
            Ok(messages) => messages.iter().for_each(|bytes| self.obey(bytes)),
            Err(error) => self.end_session(SessionEnd::GivenUp(error.to_string())),
        }
    }

    /// Takes a frame of a session other than its own: a claim, if it is valid.
    fn receive_claim(&mut self, frame: Frame, now: u64) {
        let id = frame.session;
        if id == 0 || frame.offset > 0 {
            return;
        }
        let mut link = Link::new(id, MOST_BYTES, self.server.most_payload);
        let Ok(mut messages) = link.receive(frame, now) else { return };
        if messages.is_empty() {
            return;
        }
        let Ok(ToAgent::Claim { by, controller }) = from_bytes(&messages.remove(0)) else { return };
        if !is_token(&controller) {
            return;
        }
        if let State::Claimed(session) = &self.state {
            let busy = Note::Busy { by: session.by.clone() };
            return self.outbox.post(self.subject_to(&controller), Frame::note(id, to_bytes(&busy)));
        }
        let by = printable(&by);
        self.events.push(AgentEvent::Claimed { by: by.clone() });
        let mut session = Session::new(by, controller, link, now);
        session.send(&FromAgent::Claimed);
        self.state = State::Claimed(Box::new(session));
        self.obey_all(Ok(messages));
    }

    fn receive_note(&mut self, frame: Frame, now: u64) {
        let (id, note) = (frame.session, from_bytes(&frame.payload));
        let Ok(Note::Ping { controller, sent, is_claimed, grant }) = note else { return };
        if !is_token(&controller) {
            return;
        }
        let pong = |taken| Note::Pong { sent, received: now, answered: now, taken };
        let mut reach = None;
        let answer = match self.session().filter(|session| session.link.session() == id) {
            Some(session) => {
                session.heard = now;
                let taken = session.taken;
                if let Some(grant) = grant {
                    reach = session.take_grant(grant);
                }
                // A note completes no message.
                let _ = session.link.receive(frame, now);
                session.link.note(to_bytes(&pong(taken)))
            }
            None if is_claimed && !is_broken(Rule::UnknownSessionIsSaid) => Frame::note(id, to_bytes(&Note::Unknown)),
            None => Frame::note(id, to_bytes(&pong(None))),
        };
        if let Some(granted) = reach {
            self.act(granted.run, MachineOrder::Extend(granted));
        }
        self.outbox.post(self.subject_to(&controller), answer);
    }

    /// Whether a complaint of the bus is new.
    fn is_news(&mut self, problem: &str) -> bool {
        if refuses(problem) {
            // Each may name a subject that somebody else chose.
            return !std::mem::replace(&mut self.was_refused, true);
        }
        let is_news = self.last_said != problem;
        problem.clone_into(&mut self.last_said);
        is_news
    }

    /// Takes an event of the connection to the bus.
    pub(crate) fn bus_said(&mut self, event: BusEvent) {
        match event {
            BusEvent::Away => {
                self.outbox.is_away = true;
                self.events.push(AgentEvent::Bus("the NATS server is away; connecting again".to_owned()));
            }
            BusEvent::Unusable(problem) => {
                self.outbox.is_away = true;
                if self.unusable.replace(problem.clone()).is_none_or(|known| known != problem) {
                    self.events.push(AgentEvent::Bus(problem));
                }
            }
            BusEvent::Refused(server) => {
                self.meet(server);
            }
            BusEvent::Back(server) => {
                self.meet(server);
                self.unusable = None;
                if std::mem::take(&mut self.outbox.is_away) {
                    self.events.push(AgentEvent::Bus("the NATS server is back".to_owned()));
                }
            }
            BusEvent::Says(problem) if problem.to_lowercase().contains(&self.name_subject().to_lowercase()) => {
                self.events.push(AgentEvent::Bus(
                    "the NATS server's permissions do not let agents ask who has a name: nobody notices two of one name \
                     (docs/machines.md has the permissions)"
                        .to_owned(),
                ));
            }
            // A refusal ends nothing, and is not repeated again and again.
            BusEvent::Says(problem) if self.is_news(&problem) => {
                // The subject in it may have been chosen by somebody else.
                self.events.push(AgentEvent::Bus(printable(&problem)));
            }
            BusEvent::TooSlow => {
                let text = "this agent takes in messages too slowly; what was lost is said again";
                self.events.push(AgentEvent::Bus(text.to_owned()));
            }
            BusEvent::Says(_) | BusEvent::Gone(_) => {}
        }
    }

    /// The server is this one from now on.
    fn meet(&mut self, server: Server) {
        let is_other = server.id != self.server.id;
        if let Some(session) = self.session() {
            session.link.fit(server.most_payload);
            if is_other {
                session.send(&FromAgent::OnServer { id: server.id.clone() });
            }
        }
        self.server = server;
    }

    /// Gives up the session, as soon as nothing runs any more.
    pub(super) fn end_session(&mut self, why: SessionEnd) {
        self.end_work(if matches!(why, SessionEnd::Released) { MachineOrder::Leave } else { MachineOrder::Stop });
        if let Some(session) = self.session() {
            session.ending.get_or_insert(why);
        }
    }

    /// Whether it carries out something that machines count together.
    pub(crate) fn counts_together(&self) -> bool {
        match &self.state {
            State::Free => false,
            State::Claimed(session) => session.counts_together() && matches!(session.work, SessionWork::Carrying(_)),
        }
    }

    /// Takes its machine's share of the counts that machines make together.
    pub(crate) fn counted(&mut self, counts: BTreeMap<String, u64>) {
        let Some(session) = self.session().filter(|session| session.counts_together()) else { return };
        if let (Some(run), true) = (session.run(), counts != session.counted) {
            session.counted.clone_from(&counts);
            session.send(&FromAgent::Counted { run, counts });
        }
    }

    /// So many requests of a counted number were taken by the workers of its part, if there is such a number.
    pub(crate) fn took(&mut self, requests: Option<u64>) {
        if let Some(session) = self.session() {
            let run = session.run();
            session.taken = run.zip(requests).map(|(run, requests)| RequestsTaken { run, requests });
        }
    }

    /// Does everything that is due by time.
    pub(crate) fn advance(&mut self, now: u64) {
        let Some(session) = self.session() else { return };
        if now.saturating_sub(session.heard) >= PATIENCE_NS
            && !is_broken(Rule::UnheardAgentIsFree)
            && session.ending.is_none()
        {
            let seconds = PATIENCE_NS / SECOND_NS;
            let reason = format!("nothing was heard of {} for {seconds}s", session.by);
            let unheard = format!("it heard nothing of this brunt for {seconds}s, and gave the run up");
            session.send(&FromAgent::Leaving { reason: unheard });
            self.end_session(SessionEnd::GivenUp(reason));
        }
        let Some(session) = self.session() else { return };
        let frames = session.link.poll_all(now);
        let controller = session.controller.clone();
        // An agent that gives up a run first hands over its measurements, to a controller that may stand still.
        let is_told = match &session.ending {
            Some(SessionEnd::Released) => true,
            Some(SessionEnd::GivenUp(_)) => {
                session.link.is_acknowledged() || now.saturating_sub(session.heard) >= PATIENCE_NS + HANDING_OVER_NS
            }
            None => false,
        };
        let is_over = is_told && matches!(session.work, SessionWork::Nothing);
        let since = session.ending.as_ref().map(|_| *session.ending_since.get_or_insert(now));
        let is_stuck = !matches!(session.work, SessionWork::Nothing)
            && since.is_some_and(|since| now.saturating_sub(since) >= STUCK_NS)
            && !std::mem::replace(&mut session.is_said, true);
        let why = session.ending.clone().filter(|_| is_over);
        let subject = self.subject_to(&controller);
        for frame in frames {
            self.outbox.post(subject.clone(), frame);
        }
        if is_stuck {
            let text = "its part has not ended, 15s after it was to: it takes no other run before";
            self.events.push(AgentEvent::Bus(text.to_owned()));
        }
        if let Some(why) = why {
            self.state = State::Free;
            self.events.push(AgentEvent::Released(match why {
                SessionEnd::Released => None,
                SessionEnd::GivenUp(reason) => Some(reason),
            }));
        }
    }

    /// The agent has to end: it announces that, and ends everything under way.
    pub(crate) fn leave(&mut self, now: u64) {
        if self.leaving_since.is_none() {
            self.leaving_since = Some(now);
            self.send(&FromAgent::Leaving { reason: "it was ended on its machine".to_owned() });
            self.stop_work();
        }
    }

    /// Whether it may end now: its part has ended, its controller has all of its messages, and unless it still `keeps` a
    /// result.
    pub(crate) fn has_left(&self, now: u64, keeps: bool) -> bool {
        let Some(since) = self.leaving_since else { return false };
        let is_held = match &self.state {
            State::Free => false,
            State::Claimed(session) => !matches!(session.work, SessionWork::Nothing) || !session.link.is_acknowledged(),
        };
        !is_held && !keeps || now.saturating_sub(since) >= LAST_WORDS_NS
    }
}
