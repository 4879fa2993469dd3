//! An agent: waits on the bus for controllers, and carries out its part of their runs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, Event, Message, Subject};
use brunt_engine::{
    EngineError, Finished, Gate, Observer, Part, RunningTotal, StopHandle, Surrounded, Takeover, Tallies,
};
use brunt_plan::plan::{Plan, Sandbox};
use brunt_plan::share::Portion;
use brunt_protocol::Registry;
use brunt_protocol::scenario::Value;
use brunt_record::SECOND_NS;
use brunt_record::interval::Interval;
use brunt_record::live::Live;
use brunt_record::recording::{Ending, Recording};
use brunt_script::ScriptHost;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant as Tick, sleep_until};

use crate::bus::{self, Bus, BusError, is_token};
use crate::frame::{Frame, Kind};
use crate::ledger::Ledger;
use crate::link::Link;
use crate::names::{is_name_taken, note_of};
use crate::words::{
    Announcement, Ended, FromAgent, Grant, LeftWork, Note, Problem, ToAgent, from_bytes, printable, to_bytes,
};
use crate::{CLUSTER_VERSION, PATIENCE, random_number};

/// The longest message that is taken in, in bytes: a plan with its files.
const MOST_BYTES: usize = 1 << 30;
/// How often an agent looks after itself: at rest and in a run, while something is not acknowledged, while workers wait to begin, and
/// where machines count together.
const AT_REST: Duration = Duration::from_secs(1);
const UNHEARD: Duration = Duration::from_millis(250);
const STARTING: Duration = Duration::from_millis(5);
const COUNTING: Duration = Duration::from_millis(10);
/// How long an agent that has given a run up may take to hand over what it has measured.
const HANDING_OVER: Duration = Duration::from_secs(8);
/// How long the last words of an agent that ends may take.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// The end of the subject of announcements.
pub(crate) const HERE: &str = "here";
/// How long to wait before connecting is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What an agent is and may do.
pub struct AgentOptions {
    /// Its name, which no other agent on the bus has: a part of a subject, see [`token_of`](crate::token_of).
    pub name: String,
    /// brunt's version.
    pub version: String,
    /// What its user calls it by.
    pub tags: BTreeMap<String, String>,
    /// CPUs that it may use.
    pub cores: u32,
    /// What scripts of controllers may do here at most.
    pub sandbox: Sandbox,
    /// Puts an error of the engine into words.
    pub words: fn(EngineError) -> String,
    /// Called on the part's own thread when a part has ended, before the controller is told. It may block on a disk: the agent answers its
    /// controller meanwhile.
    pub ended: PartEnded,
}

/// Takes the result of a part.
pub type PartEnded = Arc<dyn Fn(&Finished) + Send + Sync>;

/// What an agent does, told while it does it.
pub enum AgentEvent<'a> {
    /// It waits for controllers.
    Waiting,
    /// The bus is away, or has come back.
    Bus(&'a str),
    /// It belongs to a controller.
    Claimed {
        /// Whose run.
        by: &'a str,
    },
    /// It carries out a part.
    Begun {
        /// What it carries of the run.
        portion: Portion,
    },
    /// It carries out what a lost agent has left, besides.
    TookOver {
        /// A part of the other's.
        portion: Portion,
    },
    /// It could not do what it was told.
    Failed(&'a str),
    /// It is free again; `None` if its controller said so, or why not.
    Released(Option<&'a str>),
}

/// Waits for controllers and carries out their runs, one after the other, until `stop`.
///
/// # Errors
/// When the bus refuses it, or another agent on it has the name.
pub fn serve(
    bus: &Bus,
    options: AgentOptions,
    registry: Arc<Registry>,
    scripts: &'static dyn ScriptHost,
    stop: &StopHandle,
    said: &mut dyn FnMut(AgentEvent<'_>),
) -> Result<(), BusError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| BusError::Ended { problem: error.to_string() })?;
    runtime.block_on(serve_on(bus, options, registry, scripts, stop, said))
}

async fn serve_on(
    bus: &Bus,
    options: AgentOptions,
    registry: Arc<Registry>,
    scripts: &'static dyn ScriptHost,
    stop: &StopHandle,
    said: &mut dyn FnMut(AgentEvent<'_>),
) -> Result<(), BusError> {
    let (to_events, mut events) = unbounded_channel();
    let mut told = false;
    let client = loop {
        match bus.connect(&format!("brunt agent {}", options.name), to_events.clone()).await {
            Ok(client) => break client,
            Err(BusError::Unreachable { url, problem }) => {
                if !std::mem::replace(&mut told, true) {
                    let problem = BusError::Unreachable { url, problem }.to_string();
                    said(AgentEvent::Bus(&format!("{problem}; trying again until there is one")));
                }
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(AGAIN).await;
        if stop.is_stopped() {
            return Ok(());
        }
    };
    let ended = |error: &dyn std::fmt::Display| BusError::Ended { problem: error.to_string() };
    let instance = random_number();
    let subject = bus.subject(&format!("to.{}.{instance:x}", options.name));
    let mut orders = client.subscribe(subject).await.map_err(|e| ended(&e))?;
    let mut calls = client.subscribe(bus.subject("hello")).await.map_err(|e| ended(&e))?;
    let name_subject = Subject::from(bus.subject(&format!("name.{}", options.name)));
    let mut names = client.subscribe(name_subject.clone()).await.map_err(|e| ended(&e))?;
    client.flush().await.map_err(|e| ended(&e))?;
    if is_name_taken(&client, &mut names, &name_subject, instance).await {
        return Err(BusError::NameTaken { name: options.name });
    }
    // What the server refuses has come by now. Later nothing that it refuses ends the agent.
    let begun: Vec<Event> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    let is_of_names = |problem: &String| problem.to_lowercase().contains(&name_subject.to_lowercase());
    let mut problems = begun.iter().filter_map(problem_of).filter(|problem| bus::refuses_subscription(problem));
    if let Some(problem) = problems.find(|problem| !is_of_names(problem)) {
        return Err(BusError::Permission { problem });
    }
    let (to_work, mut work) = unbounded_channel();
    let mut agent = Agent {
        instance,
        bus: bus.clone(),
        name_subject,
        epoch: Instant::now(),
        options,
        client,
        registry,
        scripts,
        session: None,
        leaving_since: None,
        is_away: false,
        was_refused: false,
        work: to_work,
        said,
    };
    (agent.said)(AgentEvent::Waiting);
    for event in begun {
        agent.bus_said(Some(event));
    }
    while !agent.has_left(stop) {
        let wake = Tick::now() + agent.patience();
        tokio::select! {
            message = orders.next() => match message {
                Some(message) => agent.take(message).await,
                None => return Err(ended(&"the subscription is gone")),
            },
            message = calls.next() => match message {
                Some(message) => agent.answer_call(&message).await,
                None => return Err(ended(&"the subscription is gone")),
            },
            Some(message) = names.next() => agent.take_name(&message).await,
            done = work.recv() => agent.worked(done),
            event = events.recv() => agent.bus_said(event),
            () = sleep_until(wake) => {}
        }
        // What has come in the meantime goes with it: one answer acknowledges all of it.
        while let Ok(done) = work.try_recv() {
            agent.worked(Some(done));
        }
        agent.look_after().await;
    }
    // What is not on its way by then is given up.
    let _ = tokio::time::timeout(UNHEARD, agent.client.flush()).await;
    Ok(())
}

/// What a thread has done for a session.
enum Work {
    /// A part's, by its number.
    Second(u32, Box<Interval>),
    Ran(u32, Result<Box<Finished>, EngineError>),
    SetUp(Result<Value<'static>, EngineError>),
    TornDown(Result<(), EngineError>),
}

/// A controller's claim on the agent.
struct Session {
    by: String,
    /// The end of the subject of what the controller is told.
    controller: String,
    link: Link,
    /// When the controller was last heard.
    heard: Instant,
    plan: Option<Arc<Plan>>,
    running: Option<Running>,
    /// The furthest horizon granted so far, and the run that it belongs to.
    granted: Grant,
    /// A run, and how many takeovers it was asked for in it.
    taken: (u32, u32),
    /// What machines count together in the run, and what of it this one has told.
    tallies: Tallies,
    counted: BTreeMap<String, u64>,
    /// Why it ends as soon as nothing runs any more.
    ending: Option<SessionEnd>,
}

/// Why a session ends.
#[derive(Debug, Clone)]
enum SessionEnd {
    /// Its controller says so.
    Released,
    /// The agent gives it up, for this reason.
    GivenUp(String),
}

/// What a thread does for the session at the moment.
struct Running {
    run: u32,
    stop: StopHandle,
    part: Option<PartState>,
    /// What it took over, by number.
    takeovers: BTreeMap<u32, TakeoverState>,
    /// The parts that are under way, and their seconds.
    ledger: Ledger,
    ended: Ended,
}

impl Running {
    fn new(run: u32, stop: StopHandle) -> Self {
        Self { run, stop, part: None, takeovers: BTreeMap::new(), ledger: Ledger::default(), ended: Ended::default() }
    }

    fn has_parts(&self) -> bool {
        self.part.is_some() || !self.takeovers.is_empty()
    }

    /// Lets its parts make calls that are due in the first `until_ns` nanoseconds of the run.
    fn extend(&self, until_ns: u64) {
        self.part.iter().for_each(|part| part.gate.extend(until_ns));
        for takeover in self.takeovers.values() {
            takeover.gate.extend(until_ns.saturating_sub(takeover.joins_ns));
        }
    }
}

/// Something that was taken over and is under way.
struct TakeoverState {
    gate: Gate,
    /// When it begins, on the agent's clock; none once its gate knows.
    at: Option<u64>,
    /// When it begins, in the time of the run.
    joins_ns: u64,
}

/// A part under way.
struct PartState {
    gate: Gate,
    is_ready: bool,
    has_begun: bool,
}

struct Agent<'a> {
    instance: u64,
    bus: Bus,
    /// Where agents ask who has its name.
    name_subject: Subject,
    epoch: Instant,
    options: AgentOptions,
    client: Client,
    registry: Arc<Registry>,
    scripts: &'static dyn ScriptHost,
    session: Option<Session>,
    /// Since when it is to end.
    leaving_since: Option<Instant>,
    /// Whether the bus is away.
    is_away: bool,
    /// Whether the bus has refused something that it said.
    was_refused: bool,
    work: UnboundedSender<(u64, Work)>,
    said: &'a mut dyn FnMut(AgentEvent<'_>),
}

impl Agent<'_> {
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// How long nothing needs to be looked after.
    fn patience(&self) -> Duration {
        if self.leaving_since.is_some() {
            return STARTING;
        }
        let Some(session) = &self.session else { return AT_REST };
        let begins = |running: &Running| running.takeovers.values().any(|takeover| takeover.at.is_some());
        match session.running.as_ref().and_then(|running| running.part.as_ref()) {
            _ if session.running.as_ref().is_some_and(begins) => STARTING,
            Some(part) if !part.has_begun => STARTING,
            _ if session.counts_together() && session.running.as_ref().is_some_and(Running::has_parts) => COUNTING,
            _ if !session.link.is_acknowledged() || session.ending.is_some() => UNHEARD,
            _ => AT_REST,
        }
    }

    fn announcement(&self) -> Announcement {
        let AgentOptions { name, version, tags, cores, .. } = &self.options;
        Announcement {
            name: name.clone(),
            instance: self.instance,
            version: version.clone(),
            cluster_version: CLUSTER_VERSION,
            cores: *cores,
            connections: brunt_engine::most_connections(),
            tags: tags.clone(),
            busy: self.session.as_ref().map(|session| session.by.clone()),
            load: load_average(),
            is_private: self.bus.is_private(),
            server: self.client.server_info().server_id,
        }
    }

    /// The subject of what is told to those who listen to the end `to`.
    fn subject_to(&self, to: &str) -> Subject {
        self.bus.subject(&format!("from.{}.{to}", self.options.name)).into()
    }

    async fn publish(&self, to: &Subject, frame: &Frame) {
        // While the bus is away, what would wait for it only grows old: parts of messages are sent again.
        if self.is_away {
            return;
        }
        let _ = self.client.publish(to.clone(), frame.to_bytes()).await;
    }

    /// Answers an agent that begins, and asks who has this name. One that ends needs it no longer.
    async fn take_name(&mut self, message: &Message) {
        let instance = self.instance;
        let asks = matches!(note_of(message), Some(Note::Asks { instance: other }) if other != instance);
        if asks && self.leaving_since.is_none() {
            let note = Frame::note(0, to_bytes(&Note::Taken { instance }));
            self.publish(&self.name_subject, &note).await;
        }
    }

    /// Says who it is to a controller that asks who is there, which may be of another version.
    async fn answer_call(&self, message: &Message) {
        let asks = |(_, frame): (u16, Frame)| frame.kind == Kind::Note;
        if Frame::of_any_version(&message.payload).is_ok_and(asks) {
            let here = Frame::note(0, to_bytes(&Note::Here(self.announcement())));
            self.publish(&self.subject_to(HERE), &here).await;
        }
    }

    /// Takes a message of the bus in.
    async fn take(&mut self, message: Message) {
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

    async fn take_note(&mut self, frame: Frame, received: u64) {
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

    fn bus_said(&mut self, event: Option<Event>) {
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

    fn send(&mut self, words: &FromAgent) {
        if let Some(session) = &mut self.session {
            session.link.send(to_bytes(words));
        }
    }

    fn fail(&mut self, run: u32, text: String, is_impossible: bool) {
        (self.said)(AgentEvent::Failed(&text));
        self.send(&FromAgent::Failed { run, problem: Problem { text, is_impossible } });
    }

    /// Does what the controller says.
    fn obey(&mut self, bytes: &[u8]) {
        let Some(session) = &mut self.session else { return };
        match from_bytes(bytes) {
            // The first words of a session, which made it.
            Ok(ToAgent::Claim { .. }) => {}
            Ok(ToAgent::Plan { wire }) => match Plan::from_wire(&wire) {
                Ok(mut plan) => {
                    let hash = plan.to_wire().map_or_else(|e| e.to_string(), |wire| wire.hash().to_string());
                    // What ends the run is decided over all agents.
                    plan.thresholds.clear();
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

    /// Does something on a thread of its own.
    fn work_on(
        &mut self,
        run: u32,
        work: impl FnOnce(&Plan, &Registry, &dyn ScriptHost, &StopHandle) -> Work + Send + 'static,
    ) {
        let Some(session) = &mut self.session else { return };
        let Some(plan) = session.plan.clone().filter(|_| session.running.is_none()) else {
            self.fail(
                run,
                "the agent has no plan, or is busy with the one before; this is a defect of brunt".into(),
                false,
            );
            return;
        };
        // The controller ends a part as the run's own end, and waits for its calls.
        let (stop, registry) = (StopHandle::default().of_run(), Arc::clone(&self.registry));
        let scripts = self.scripts;
        let (id, sender, stopped) = (session.link.session(), self.work.clone(), stop.clone());
        session.running = Some(Running::new(run, stop));
        let spawned = std::thread::Builder::new().name("run".to_owned()).spawn(move || {
            // The agent may have ended.
            let _ = sender.send((id, work(&plan, &registry, scripts, &stopped)));
        });
        if let Err(error) = spawned {
            if let Some(session) = &mut self.session {
                session.running = None;
            }
            self.fail(run, format!("cannot start a thread: {error}"), true);
        }
    }

    fn prepare(&mut self, run: u32, machine: u32, portion: Portion, given: Value<'static>) {
        let Some(session) = &mut self.session else { return };
        let gate = Gate::with_horizon();
        (session.tallies, session.counted) = (Tallies::default(), BTreeMap::new());
        let part = Part {
            portion,
            gate: Some(gate.clone()),
            tallies: session.tallies.clone(),
            surroundings: Surrounded::Elsewhere(given),
            takeover: None,
        };
        let (id, sender, ended) = (session.link.session(), self.work.clone(), Arc::clone(&self.options.ended));
        self.work_on(run, move |plan, registry, scripts, stop| {
            let mut seconds = Seconds { session: id, part: 0, machine, sender };
            let ran = brunt_engine::run_part(plan, part, registry, scripts, &mut seconds, stop);
            Work::Ran(0, ran.inspect(|finished| ended(finished)).map(Box::new))
        });
        if let Some(running) = self.session.as_mut().and_then(|session| session.running.as_mut()) {
            running.ledger.begin(0, None);
            running.part = Some(PartState { gate, is_ready: false, has_begun: false });
        }
        (self.said)(AgentEvent::Begun { portion });
    }

    fn start(&mut self, grant: Grant, at: u64) {
        let (begin, run) = (self.epoch + Duration::from_nanos(at), grant.run);
        let Some(session) = &mut self.session else { return };
        let Some(running) = session.running.as_mut().filter(|running| running.run == run) else { return };
        let Some(part) = &mut running.part else { return };
        if let Some(late) = part.gate.open_at(begin) {
            part.has_begun = true;
            session.take_grant(grant);
            self.send(&FromAgent::Began { run, at: at + late, late });
        }
    }

    /// Does a part of what a lost agent has left, besides what it does or after that.
    fn take_over(&mut self, run: u32, work: LeftWork) {
        let LeftWork { number, portion, numbers, after_ns, at, given } = work;
        let Some(session) = &mut self.session else { return };
        let taken = if session.taken.0 == run { session.taken.1 + 1 } else { 1 };
        session.taken = (run, taken);
        let plan = session.plan.clone().filter(|_| session.ending.is_none() && self.leaving_since.is_none());
        let running = session.running.get_or_insert_with(|| Running::new(run, StopHandle::default().of_run()));
        let Some(plan) = plan.filter(|_| running.run == run && !running.stop.is_stopped()) else {
            self.decline(run, number, "its part has ended".to_owned());
            return;
        };
        let gate = Gate::with_horizon();
        let joins_ns = plan.warmup_ns.saturating_add(after_ns);
        let part = Part {
            portion,
            gate: Some(gate.clone()),
            tallies: session.tallies.clone(),
            surroundings: Surrounded::Elsewhere(given),
            takeover: Some(Takeover { after_ns, numbers }),
        };
        running.ledger.begin(number, Some(after_ns / SECOND_NS));
        running.takeovers.insert(number, TakeoverState { gate, at: Some(at), joins_ns });
        let (stop, registry) = (running.stop.clone(), Arc::clone(&self.registry));
        let scripts = self.scripts;
        let (id, sender, ended) = (session.link.session(), self.work.clone(), Arc::clone(&self.options.ended));
        let spawned = std::thread::Builder::new().name("takeover".to_owned()).spawn(move || {
            let mut seconds = Seconds { session: id, part: number, machine: 0, sender: sender.clone() };
            let ran = brunt_engine::run_part(&plan, part, &registry, scripts, &mut seconds, &stop);
            let ran = ran.inspect(|finished| ended(finished)).map(Box::new);
            // The agent may have ended.
            let _ = sender.send((id, Work::Ran(number, ran)));
        });
        self.send(&FromAgent::Took { run, number });
        (self.said)(AgentEvent::TookOver { portion });
        if let Err(error) = spawned {
            self.decline(run, number, format!("cannot start a thread: {error}"));
        }
    }

    fn decline(&mut self, run: u32, number: u32, problem: String) {
        (self.said)(AgentEvent::Failed(&problem));
        self.send(&FromAgent::Declined { run, number, problem });
        self.end_part(run, number);
    }

    /// One of the parts has ended; if it was the last, so has the run for this agent.
    fn end_part(&mut self, run: u32, number: u32) {
        // What machines count together last is said before they are over.
        self.tell_counts();
        let Some(session) = &mut self.session else { return };
        let Some(running) = session.running.as_mut().filter(|running| running.run == run) else { return };
        running.takeovers.remove(&number);
        if number == 0 {
            running.part = None;
        }
        let seconds = running.ledger.end(number);
        let ended = running.ledger.is_idle().then(|| std::mem::take(&mut running.ended));
        let taken = if session.taken.0 == run { session.taken.1 } else { 0 };
        if ended.is_some() {
            session.running = None;
        }
        for interval in seconds {
            self.send(&FromAgent::Second { run, interval: Box::new(interval) });
        }
        if let Some(ended) = ended {
            self.send(&FromAgent::Finished { run, ended, taken });
        }
    }

    /// A thread has something to say.
    fn worked(&mut self, done: Option<(u64, Work)>) {
        let Some((id, work)) = done else { return };
        let Some(session) = self.session.as_mut().filter(|session| session.link.session() == id) else { return };
        let Some(run) = session.running.as_ref().map(|running| running.run) else { return };
        // What was measured until it gave the run up is still said.
        let is_released = matches!(session.ending, Some(SessionEnd::Released));
        match work {
            Work::Second(part, interval) => {
                let Some(running) = &mut session.running else { return };
                let seconds = running.ledger.add(part, *interval);
                for interval in seconds.into_iter().filter(|_| !is_released) {
                    self.send(&FromAgent::Second { run, interval: Box::new(interval) });
                }
            }
            Work::Ran(number, Ok(finished)) => {
                if let Some(running) = &mut session.running {
                    running.ended.merge(number, finished.run);
                }
                self.end_part(run, number);
            }
            Work::Ran(number @ 1.., Err(error)) => {
                let problem = (self.options.words)(error);
                self.decline(run, number, problem);
            }
            Work::SetUp(Ok(value)) => {
                session.running = None;
                self.send(&FromAgent::Given { run, value });
            }
            Work::TornDown(outcome) => {
                session.running = None;
                let problem = outcome.err().map(|error| (self.options.words)(error));
                self.send(&FromAgent::TornDown { run, problem });
            }
            Work::Ran(0, Err(error)) | Work::SetUp(Err(error)) => {
                session.running = None;
                let is_impossible = match &error {
                    EngineError::Route(route) => route.is_no_address(),
                    error => matches!(error, EngineError::Descriptors { .. } | EngineError::System { .. }),
                };
                let text = (self.options.words)(error);
                self.fail(run, text, is_impossible);
            }
        }
    }

    fn tell_counts(&mut self) {
        let Some(session) = self.session.as_mut().filter(|session| session.counts_together()) else { return };
        let Some(run) = session.running.as_ref().map(|running| running.run) else { return };
        let counts = session.tallies.here();
        if counts != session.counted {
            session.counted.clone_from(&counts);
            self.send(&FromAgent::Counted { run, counts });
        }
    }

    /// Gives the session up: as soon as nothing runs any more.
    fn end_session(&mut self, why: SessionEnd) {
        if let Some(session) = &mut self.session {
            if let Some(running) = &session.running {
                running.stop.stop();
            }
            session.ending.get_or_insert(why);
        }
    }

    /// Does what is due by time, and says what is to be said.
    async fn look_after(&mut self) {
        self.tell_counts();
        let now_ns = self.now_ns();
        let Some(session) = &mut self.session else { return };
        if session.heard.elapsed() >= PATIENCE && session.ending.is_none() {
            let reason = format!("nothing was heard of {} for {} s", session.by, PATIENCE.as_secs());
            let unheard = format!("it heard nothing of this brunt for {} s, and gave the run up", PATIENCE.as_secs());
            self.send(&FromAgent::Leaving { reason: unheard });
            self.end_session(SessionEnd::GivenUp(reason));
        }
        let epoch = self.epoch;
        let Some(session) = &mut self.session else { return };
        for takeover in session.running.iter_mut().flat_map(|running| running.takeovers.values_mut()) {
            // Until its thread has started the run, there is no clock to join by.
            if let Some(at) = takeover.at
                && takeover.gate.join_at(epoch + Duration::from_nanos(at))
            {
                takeover.at = None;
                takeover.gate.extend(session.granted.until_ns.saturating_sub(takeover.joins_ns));
            }
        }
        if let Some(Running { run, part: Some(part), .. }) = &mut session.running
            && !part.is_ready
            && part.gate.is_ready()
        {
            part.is_ready = true;
            session.link.send(to_bytes(&FromAgent::Ready { run: *run }));
        }
        let frames = session.link.poll(now_ns);
        let controller = session.controller.clone();
        // Whoever gives a run up hands over first what it has measured, to a controller that may stand still.
        let is_told = |why: &SessionEnd| {
            matches!(why, SessionEnd::Released)
                || session.link.is_acknowledged()
                || session.heard.elapsed() >= PATIENCE + HANDING_OVER
        };
        let over = session.ending.clone().filter(|why| session.running.is_none() && is_told(why));
        let subject = self.subject_to(&controller);
        for frame in frames {
            self.publish(&subject, &frame).await;
        }
        if let Some(reason) = over {
            self.session = None;
            (self.said)(AgentEvent::Released(match &reason {
                SessionEnd::Released => None,
                SessionEnd::GivenUp(reason) => Some(reason),
            }));
        }
    }

    /// Whether the agent is to end, and nothing keeps it: its part has ended, and its controller has all that it said.
    fn has_left(&mut self, stop: &StopHandle) -> bool {
        if !stop.is_stopped() {
            return false;
        }
        if stop.leaves() {
            return true;
        }
        if self.leaving_since.is_none() {
            self.leaving_since = Some(Instant::now());
            self.send(&FromAgent::Leaving { reason: "it was ended on its machine".to_owned() });
            if let Some(running) = self.session.as_ref().and_then(|session| session.running.as_ref()) {
                running.stop.stop();
            }
        }
        let is_late = self.leaving_since.is_some_and(|since| since.elapsed() >= LAST_WORDS);
        let is_held = |session: &Session| session.running.is_some() || !session.link.is_acknowledged();
        is_late || !self.session.as_ref().is_some_and(is_held)
    }
}

/// Sees the seconds of a part, and hands them over.
struct Seconds {
    session: u64,
    part: u32,
    machine: u32,
    sender: UnboundedSender<(u64, Work)>,
}

impl Observer for Seconds {
    fn second(&mut self, live: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<String> {
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
        let _ = self.sender.send((self.session, Work::Second(self.part, Box::new(interval))));
        ControlFlow::Continue(())
    }
}

impl Session {
    /// Whether there is something that machines count together.
    fn counts_together(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.scenarios.is_some())
    }

    /// The controller lets calls be made so far. What it has granted before in the same run stays granted.
    fn take_grant(&mut self, grant: Grant) {
        // One of a run before was long on its way.
        if grant.run < self.granted.run {
            return;
        }
        let known = if self.granted.run == grant.run { self.granted.until_ns } else { 0 };
        self.granted = Grant { until_ns: grant.until_ns.max(known), ..grant };
        if let Some(running) = self.running.as_ref().filter(|running| running.run == grant.run) {
            running.extend(self.granted.until_ns);
        }
    }
}

impl Ended {
    /// Takes in how the part with this number ended.
    fn merge(&mut self, number: u32, run: Recording) {
        self.parts.insert(number, run.measured_ns);
        self.measured_ns = self.measured_ns.max(run.measured_ns);
        self.status_names.extend(run.status_names);
        self.redirected_to = self.redirected_to.take().or(run.redirected_to);
        match run.ending {
            Ending::Completed => {}
            Ending::Interrupted => self.interrupted = true,
            Ending::Failed(reason) => drop(self.failed.get_or_insert(reason)),
            // Thresholds and lost agents are the controller's, so that no part ends so.
            Ending::Unreached(reason) | Ending::Aborted(reason) | Ending::AgentsLost(reason) => {
                self.unreached.get_or_insert(reason);
            }
            Ending::Stopped(reason) => drop(self.stopped.get_or_insert(reason)),
        }
    }
}

/// What the server says is wrong, if the event says that.
fn problem_of(event: &Event) -> Option<String> {
    let Event::ServerError(error) = event else { return None };
    Some(error.to_string())
}

/// The machine's load average over a minute.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}
