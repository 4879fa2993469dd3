//! An agent: waits on the bus for controllers, and carries out its part of their runs.

mod messages;
mod parts;
mod seconds;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, Event, Subject};
use brunt_engine::{EngineError, Finished, Gate, StopHandle, Tallies};
use brunt_plan::plan::{Plan, Sandbox};
use brunt_plan::share::Portion;
use brunt_protocol::Registry;
use brunt_protocol::scenario::Value;
use brunt_record::interval::Interval;
use brunt_record::recording::{Ending, Recording};
use brunt_script::ScriptHost;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant as Tick, sleep_until};

use crate::bus::{self, Bus, BusError};
use crate::frame::Frame;
use crate::ledger::Ledger;
use crate::link::Link;
use crate::names::is_name_taken;
use crate::words::{Announcement, Ended, FromAgent, Grant, to_bytes};
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
