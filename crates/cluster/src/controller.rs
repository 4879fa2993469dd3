//! A controller: takes agents, lets them carry runs out together, and puts together what they report.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_nats::{Client, Event, Message, Subscriber};
use brunt_engine::{Observer, Report, StopHandle};
use brunt_model::agents::{AgentEnd, AgentPart};
use brunt_model::environment::Environment;
use brunt_model::interval::Interval;
use brunt_model::plan::Plan;
use brunt_model::share::Portion;
use brunt_model::snapshot::Phase;
use brunt_model::summary::Run;
use brunt_model::wire::WireError;
use brunt_model::{SECOND_NS, secret};
use brunt_protocol::scenario::Value;
use futures_util::StreamExt as _;
use serde_bytes::ByteBuf;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::bus::{Bus, BusError};
use crate::clock::{Comparison, Exchange, Offset};
use crate::frame::{Frame, Kind};
use crate::link::Link;
use crate::loss::{LastSeconds, Lost};
use crate::roster::{RosterError, Wanted, Workers, choose, deal};
use crate::words::{Announcement, Ended, FromAgent, Note, ToAgent, from_bytes, to_bytes};
use crate::{SILENCE, random_number};

/// The longest message that is taken in from an agent, in bytes: a second's figures.
const MOST_BYTES: usize = 256 << 20;
/// How often a controller looks after its agents.
const LOOK: Duration = Duration::from_millis(50);
/// How often it asks who is there.
const CALL: Duration = Duration::from_millis(400);
/// How long to listen for agents whose number is not known.
const LISTEN: Duration = Duration::from_millis(1500);
/// How often clocks are compared: before a run, and from then on.
const COMPARE_AT_FIRST_NS: u64 = 20_000_000;
const COMPARE_NS: u64 = 500_000_000;
/// Comparisons before a run begins.
const COMPARISONS: usize = 8;
/// How long after all are ready a run begins, in nanoseconds: time for the word to reach all.
const LEAD_NS: u64 = 250_000_000;
/// How long the bus may be away before the run is given up.
const AWAY: Duration = Duration::from_secs(10);
/// How long after a second's end it counts as reported by an agent that is lost, in nanoseconds.
const LATE_NS: u64 = 300_000_000;
/// How long agents may take to take a claim or to be released.
const MANNERS: Duration = Duration::from_secs(5);

/// What becomes of a run that loses an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLost {
    /// The others go on. What was due on the lost one counts as unsent.
    #[default]
    Continue,
    /// It ends.
    Abort,
}

/// How agents carry runs out.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Which agents.
    pub wanted: Wanted,
    /// How long to wait for them.
    pub patience: Duration,
    /// What becomes of a run that loses an agent.
    pub on_lost: OnLost,
    /// Whether references to the environment are looked up on each agent, and not here.
    pub secrets_from_agents: bool,
    /// Who we are, for agents that are asked by another.
    pub name: String,
}

/// Why agents could not carry a run out.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The agents that are there.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// The plan cannot be sent.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// There are too few.
    #[error("{wanted} are wanted, and {found} came in {} s{}", patience.as_secs_f64(), busy_text(busy))]
    TooFew {
        /// Which agents.
        wanted: String,
        /// Free ones that came.
        found: usize,
        /// How long was waited.
        patience: Duration,
        /// Those that are busy, and with whose run.
        busy: Vec<(String, String)>,
    },
    /// Anyone on the way could read the plan's secrets.
    #[error(
        "the plan has secrets, and the way to the NATS server is not private: use tls://, or --secrets-from-agents to have each \
         agent take them from its own environment"
    )]
    Secrets,
    /// A file that the plan only names.
    #[error(
        "{file} is streamed from disk, and agents do not have it: leave stream out, so that the plan carries the rows"
    )]
    Streamed {
        /// The file.
        file: String,
    },
    /// An agent cannot do it.
    #[error("agent '{agent}': {problem}")]
    Agent {
        /// Its name.
        agent: String,
        /// Why not.
        problem: String,
        /// Whether there is no way to the target, or too little room for the load, as against a plan that is wrong.
        is_impossible: bool,
    },
    /// An agent was lost before the run began.
    #[error("agent '{agent}' was lost before the run began: {reason}")]
    LostBefore {
        /// Its name.
        agent: String,
        /// What became of it.
        reason: String,
    },
    /// It was ended before it began.
    #[error("ended before the agents were ready")]
    Interrupted,
    /// The control thread is gone.
    #[error("the thread that speaks with the agents has ended; this is a defect of brunt, please report it")]
    Defect,
}

fn busy_text(busy: &[(String, String)]) -> String {
    let one = |(agent, by): &(String, String)| format!("{agent} carries out a run of {by}");
    match busy {
        [] => String::new(),
        [first] => format!("; {}", one(first)),
        [first, rest @ ..] => format!("; {}, and {} more are busy", one(first), rest.len()),
    }
}

/// What came of a run.
pub struct Outcome {
    /// Its figures.
    pub run: Run,
    /// Whether it was ended because an agent was lost.
    pub lost_its_agents: bool,
}

/// Agents that belong to this controller, until it is dropped.
pub struct Cluster {
    commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
    agents: Vec<Announcement>,
}

/// What the thread that speaks with the agents is to do.
enum Command {
    Run(Box<Order>),
    Release,
}

/// A run to be carried out.
struct Order {
    plan: Plan,
    workers: Workers,
    reports: Sender<Report>,
    stop: StopHandle,
    begun: Sender<Result<Beginning, ClusterError>>,
    over: Sender<Over>,
}

/// A run that begins: when, in milliseconds since 1970-01-01 UTC, and who carries it out.
struct Beginning {
    started_unix_ms: u64,
    agents: Vec<String>,
}

/// What there is to say once a run is over.
struct Over {
    agents: Vec<AgentPart>,
    status_names: BTreeMap<u16, String>,
    redirected_to: Option<String>,
    /// Why it failed, besides what agents report.
    failed: Option<String>,
    lost_its_agents: bool,
}

/// The agents that are there, and within `patience`.
///
/// # Errors
/// When the bus cannot be used.
pub fn list(bus: &Bus, patience: Duration) -> Result<Vec<(Announcement, Option<Offset>)>, ClusterError> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut control = Control::connect(bus, "list".to_owned()).await?;
        control.listen(patience, |_| false).await?;
        let mut there = std::mem::take(&mut control.there);
        there.sort_by(|one, other| one.name.cmp(&other.name));
        // Clocks are compared with a note, which needs no claim.
        control.peers = there
            .iter()
            .map(|agent| Peer {
                subject: bus.subject(&format!("to.{}", agent.name)),
                ..Peer::new(agent.clone(), random_number())
            })
            .collect();
        let until = Instant::now() + LISTEN / 3;
        while Instant::now() < until {
            control.compare_clocks(COMPARE_AT_FIRST_NS).await;
            control.step(LOOK / 5).await?;
        }
        Ok(control.peers.into_iter().map(|peer| (peer.agent, peer.clock.offset())).collect())
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, ClusterError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| BusError::Ended { problem: error.to_string() }.into())
}

impl Cluster {
    /// Waits for agents and takes them.
    ///
    /// # Errors
    /// When there are too few, or they cannot be used.
    pub fn take(bus: &Bus, terms: &Terms, stop: &StopHandle) -> Result<Self, ClusterError> {
        let (commands, orders) = unbounded_channel();
        let (taken, answer) = channel();
        let (bus, terms, stop) = (bus.clone(), terms.clone(), stop.clone());
        let work = move || {
            let done = runtime().map(|runtime| {
                runtime.block_on(async move {
                    match Control::take(&bus, terms, &stop).await {
                        Err(error) => drop(taken.send(Err(error))),
                        Ok(mut control) => {
                            let agents = control.peers.iter().map(|peer| peer.agent.clone()).collect();
                            if taken.send(Ok(agents)).is_ok() {
                                control.serve(orders).await;
                            }
                            control.release().await;
                        }
                    }
                });
            });
            drop(done);
        };
        let thread =
            std::thread::Builder::new().name("agents".to_owned()).spawn(work).map_err(|_| ClusterError::Defect)?;
        let agents = answer.recv().map_err(|_| ClusterError::Defect)??;
        Ok(Self { commands, thread: Some(thread), agents })
    }

    /// The agents, in the order of their numbers.
    pub fn agents(&self) -> &[Announcement] {
        &self.agents
    }

    /// Lets the agents carry `plan` out, and returns what happened. Blocks until it is over.
    ///
    /// # Errors
    /// When no load could be put on anything.
    pub fn run(
        &self,
        plan: &Plan,
        workers: Workers,
        observer: &mut dyn Observer,
        stop: &StopHandle,
    ) -> Result<Outcome, ClusterError> {
        let ((reports, reported), (begun, beginning), (over, ending)) = (channel(), channel(), channel());
        let order = Order { plan: plan.clone(), workers, reports, stop: stop.clone(), begun, over };
        self.commands.send(Command::Run(Box::new(order))).map_err(|_| ClusterError::Defect)?;
        let Beginning { started_unix_ms, agents } = beginning.recv().map_err(|_| ClusterError::Defect)??;
        let mut run = brunt_engine::gather(plan, &agents, &reported, observer, stop, started_unix_ms);
        let over = await_over(&ending)?;
        // What is shown of the run is how many threads it had in all.
        run.plan.workers = over.agents.iter().map(|agent| agent.workers).sum();
        run.agents = over.agents;
        run.status_names = over.status_names;
        run.redirected_to = over.redirected_to;
        if let Some(reason) = over.failed {
            run.fail(reason);
        }
        Ok(Outcome { run, lost_its_agents: over.lost_its_agents })
    }
}

fn await_over(ending: &Receiver<Over>) -> Result<Over, ClusterError> {
    loop {
        match ending.recv_timeout(LOOK) {
            Ok(over) => return Ok(over),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ClusterError::Defect),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A thread that is gone has released nobody; the agents' leases run out.
        let _ = self.commands.send(Command::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An agent as its controller sees it.
struct Peer {
    agent: Announcement,
    subject: String,
    link: Link,
    clock: Comparison,
    /// When it was last heard, and last asked for the time.
    heard: Instant,
    asked_ns: u64,
    /// Why it counts as lost.
    lost: Option<String>,
}

impl Peer {
    fn new(agent: Announcement, session: u64) -> Self {
        Self {
            subject: String::new(),
            agent,
            link: Link::new(session, MOST_BYTES),
            clock: Comparison::default(),
            heard: Instant::now(),
            asked_ns: 0,
            lost: None,
        }
    }
}

/// What has come of the bus.
enum Said {
    /// An agent, by its place, has said something.
    Words(usize, FromAgent),
    /// It belongs to somebody else.
    Busy(usize, String),
}

/// The controller's side of the bus.
struct Control {
    bus: Bus,
    client: Client,
    incoming: Subscriber,
    events: UnboundedReceiver<Event>,
    answer_to: String,
    epoch: Instant,
    there: Vec<Announcement>,
    peers: Vec<Peer>,
    said: VecDeque<Said>,
    /// Since when the bus is away, or when it last came back.
    away_since: Option<Instant>,
    terms: Option<Terms>,
    /// The plan that the agents have, in wire form's hash.
    sent_plan: Option<String>,
    runs: u32,
}

impl Control {
    async fn connect(bus: &Bus, id: String) -> Result<Self, ClusterError> {
        let (to_events, events) = unbounded_channel();
        let client = bus.connect(&format!("brunt controller {id}"), to_events).await?;
        let answer_to = bus.subject(&format!("from.{id}-{:x}", random_number()));
        let ended = |error: &dyn std::fmt::Display| BusError::Ended { problem: error.to_string() };
        let incoming = client.subscribe(answer_to.clone()).await.map_err(|e| ended(&e))?;
        client.flush().await.map_err(|e| ended(&e))?;
        Ok(Self {
            bus: bus.clone(),
            client,
            incoming,
            events,
            answer_to,
            epoch: Instant::now(),
            there: Vec::new(),
            peers: Vec::new(),
            said: VecDeque::new(),
            away_since: None,
            terms: None,
            sent_plan: None,
            runs: 0,
        })
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    async fn publish(&self, subject: String, frame: &Frame) {
        // While the bus is away, what would wait for it only grows old: parts of messages are sent again.
        if self.away_since.is_some() {
            return;
        }
        let _ = self.client.publish_with_reply(subject, self.answer_to.clone(), frame.to_bytes()).await;
    }

    /// Asks who is there until `is_enough`, or for so long.
    async fn listen(
        &mut self,
        patience: Duration,
        is_enough: impl Fn(&[Announcement]) -> bool,
    ) -> Result<(), ClusterError> {
        let began = Instant::now();
        let mut called: Option<Instant> = None;
        while began.elapsed() < patience && !is_enough(&self.there) {
            if called.is_none_or(|called| called.elapsed() >= CALL) {
                called = Some(Instant::now());
                let hello = Frame::note(0, to_bytes(&Note::Hello));
                self.publish(self.bus.subject("hello"), &hello).await;
            }
            self.step(LOOK).await?;
        }
        Ok(())
    }

    /// Waits for agents and claims them.
    async fn take(bus: &Bus, terms: Terms, stop: &StopHandle) -> Result<Self, ClusterError> {
        let mut control = Self::connect(bus, crate::bus::token_of(&terms.name)).await?;
        let began = Instant::now();
        loop {
            if stop.is_stopped() {
                return Err(ClusterError::Interrupted);
            }
            control.there.clear();
            let (wanted, least) = (terms.wanted.clone(), terms.wanted.least());
            let listen = match wanted {
                Wanted::Number(_) => CALL * 2,
                Wanted::All | Wanted::Tagged(_) => LISTEN,
            };
            let is_number = matches!(wanted, Wanted::Number(_));
            let is_enough = |there: &[Announcement]| {
                is_number && there.iter().filter(|agent| agent.busy.is_none()).count() >= least
            };
            control.listen(listen, is_enough).await?;
            let chosen = choose(&control.there, &wanted)?;
            if chosen.len() >= least && control.claim(&chosen, &terms.name).await? {
                break;
            }
            if began.elapsed() >= terms.patience {
                let there = control.there.iter().filter(|agent| wanted.fits(agent));
                let busy = there.filter_map(|agent| Some((agent.name.clone(), agent.busy.clone()?))).collect();
                let (found, patience) = (chosen.len(), terms.patience);
                return Err(ClusterError::TooFew { wanted: wanted.to_string(), found, patience, busy });
            }
        }
        control.terms = Some(terms);
        Ok(control)
    }

    /// Claims these agents; false if one of them belongs to somebody else by now.
    async fn claim(&mut self, chosen: &[Announcement], name: &str) -> Result<bool, ClusterError> {
        self.said.clear();
        self.peers = chosen
            .iter()
            .map(|agent| Peer {
                subject: self.bus.subject(&format!("to.{}", agent.name)),
                ..Peer::new(agent.clone(), random_number())
            })
            .collect();
        let claim = to_bytes(&ToAgent::Claim { by: name.to_owned() });
        self.peers.iter_mut().for_each(|peer| peer.link.send(claim.clone()));
        let mut claimed = vec![false; self.peers.len()];
        let began = Instant::now();
        let mut is_free = true;
        while is_free && claimed.contains(&false) {
            self.step(LOOK).await?;
            while let Some(said) = self.said.pop_front() {
                match said {
                    Said::Words(place, FromAgent::Claimed) => {
                        claimed.iter_mut().skip(place).take(1).for_each(|c| *c = true);
                    }
                    Said::Words(..) => {}
                    Said::Busy(place, by) => {
                        is_free = false;
                        let name = self.peers.get(place).map(|peer| peer.agent.name.clone());
                        self.there
                            .iter_mut()
                            .filter(|a| Some(&a.name) == name.as_ref())
                            .for_each(|a| a.busy = Some(by.clone()));
                    }
                }
            }
            is_free &= began.elapsed() < MANNERS;
        }
        if !is_free {
            self.release().await;
        }
        Ok(is_free)
    }

    /// Lets the agents go.
    async fn release(&mut self) {
        for peer in self.peers.iter_mut().filter(|peer| peer.lost.is_none()) {
            peer.link.send(to_bytes(&ToAgent::Release));
        }
        let began = Instant::now();
        let has_word = |peer: &Peer| peer.lost.is_none() && !peer.link.is_acknowledged();
        while self.peers.iter().any(has_word) && began.elapsed() < MANNERS / 2 {
            if self.step(LOOK / 5).await.is_err() {
                break;
            }
        }
        self.peers.clear();
        self.sent_plan = None;
        // Nobody waits for a bus that is away.
        let _ = tokio::time::timeout(CALL, self.client.flush()).await;
    }

    /// Does what it is told, until it is to release the agents.
    async fn serve(&mut self, mut orders: UnboundedReceiver<Command>) {
        loop {
            match orders.try_recv() {
                Ok(Command::Run(order)) => self.carry_out(*order).await,
                Ok(Command::Release) | Err(tokio::sync::mpsc::error::TryRecvError::Disconnected) => return,
                Err(tokio::sync::mpsc::error::TryRecvError::Empty) => {
                    // Between runs the agents are kept.
                    if self.step(LOOK / 5).await.is_err() {
                        return;
                    }
                    self.said.clear();
                }
            }
        }
    }

    /// Takes in what comes within `patience`, and says what is to be said.
    async fn step(&mut self, patience: Duration) -> Result<(), ClusterError> {
        self.look_after().await;
        tokio::select! {
            message = self.incoming.next() => match message {
                Some(message) => self.receive(&message),
                None => return Err(BusError::Ended { problem: "the subscription is gone".into() }.into()),
            },
            event = self.events.recv() => self.bus_said(event)?,
            () = tokio::time::sleep(patience) => {}
        }
        // What has come besides, without waiting.
        loop {
            tokio::select! {
                biased;
                message = self.incoming.next() => match message {
                    Some(message) => self.receive(&message),
                    None => break,
                },
                () = std::future::ready(()) => break,
            }
        }
        self.flush_links().await;
        Ok(())
    }

    fn bus_said(&mut self, event: Option<Event>) -> Result<(), ClusterError> {
        match event {
            Some(Event::Disconnected) => self.away_since = self.away_since.or(Some(Instant::now())),
            Some(Event::Connected) => {
                // Nobody could be heard in the meantime.
                self.away_since = None;
                self.peers.iter_mut().for_each(|peer| peer.heard = Instant::now());
            }
            Some(Event::ServerError(error)) => {
                let problem = error.to_string();
                if problem.to_lowercase().contains("permissions violation") {
                    return Err(BusError::Permission { problem }.into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a message of an agent in.
    fn receive(&mut self, message: &Message) {
        let back = self.now_ns();
        let Ok(frame) = Frame::from_bytes(&message.payload) else { return };
        if frame.session == 0
            && let Ok(Note::Here(agent)) = from_bytes(&frame.payload)
        {
            self.there.retain(|known| (&known.name, known.instance) != (&agent.name, agent.instance));
            self.there.push(agent);
            return;
        }
        let Some(place) = self.peers.iter().position(|peer| peer.link.session() == frame.session) else { return };
        let Some(peer) = self.peers.get_mut(place) else { return };
        if frame.kind == Kind::Note {
            match from_bytes(&frame.payload) {
                Ok(Note::Pong { sent, received, answered }) => {
                    peer.heard = Instant::now();
                    peer.clock.add(Exchange { sent, received, answered, back });
                }
                Ok(Note::Busy { by }) => self.said.push_back(Said::Busy(place, by)),
                Ok(Note::Unknown) if peer.clock.count() > 0 => {
                    peer.lost.get_or_insert("it began anew, or gave the run up".to_owned());
                }
                _ => {}
            }
            return;
        }
        peer.heard = Instant::now();
        match peer.link.receive(frame) {
            Err(error) => drop(peer.lost.get_or_insert(error.to_string())),
            Ok(messages) => {
                for message in messages {
                    match from_bytes(&message) {
                        Ok(words) => self.said.push_back(Said::Words(place, words)),
                        Err(error) => drop(peer.lost.get_or_insert(error.to_string())),
                    }
                }
            }
        }
    }

    async fn compare_clocks(&mut self, every_ns: u64) {
        let now = self.now_ns();
        let mut notes = Vec::new();
        for peer in self.peers.iter_mut().filter(|peer| peer.lost.is_none()) {
            if peer.asked_ns == 0 || now >= peer.asked_ns + every_ns {
                peer.asked_ns = now.max(1);
                notes.push((peer.subject.clone(), peer.link.session()));
            }
        }
        for (subject, session) in notes {
            let (sent, is_claimed) = (self.now_ns(), self.terms.is_some());
            self.publish(subject, &Frame::note(session, to_bytes(&Note::Ping { sent, is_claimed }))).await;
        }
    }

    /// Does what is due by time.
    async fn look_after(&mut self) {
        let is_new = |peer: &Peer| peer.lost.is_none() && peer.clock.count() < COMPARISONS;
        let every_ns = if self.peers.iter().any(is_new) { COMPARE_AT_FIRST_NS } else { COMPARE_NS };
        self.compare_clocks(every_ns).await;
        let is_away = self.away_since.is_some();
        let is_gone = self.away_since.is_some_and(|since| since.elapsed() >= AWAY);
        for peer in &mut self.peers {
            let silent = peer.heard.elapsed();
            if is_gone {
                peer.lost.get_or_insert(format!("the NATS server has been away for {} s", AWAY.as_secs()));
            } else if !is_away && silent >= SILENCE {
                peer.lost.get_or_insert(format!("nothing was heard of it for {:.1} s", silent.as_secs_f64()));
            }
        }
        self.flush_links().await;
    }

    async fn flush_links(&mut self) {
        let now = self.now_ns();
        let mut frames = Vec::new();
        for peer in self.peers.iter_mut().filter(|peer| peer.lost.is_none()) {
            frames.extend(peer.link.poll(now).into_iter().map(|frame| (peer.subject.clone(), frame)));
        }
        for (subject, frame) in frames {
            self.publish(subject, &frame).await;
        }
    }

    fn tell(&mut self, place: usize, words: &ToAgent) {
        if let Some(peer) = self.peers.get_mut(place).filter(|peer| peer.lost.is_none()) {
            peer.link.send(to_bytes(words));
        }
    }

    fn tell_all(&mut self, words: &ToAgent) {
        let bytes = bytes::Bytes::from(to_bytes(words));
        for peer in self.peers.iter_mut().filter(|peer| peer.lost.is_none()) {
            peer.link.send(bytes.clone());
        }
    }

    fn name(&self, place: usize) -> String {
        self.peers.get(place).map(|peer| peer.agent.name.clone()).unwrap_or_default()
    }

    /// The next words of an agent before a run has begun. Anything that keeps it from beginning is an error.
    async fn next_before(&mut self, stop: &StopHandle) -> Result<(usize, FromAgent), ClusterError> {
        loop {
            if let Some(place) = self.peers.iter().position(|peer| peer.lost.is_some()) {
                let reason = self.peers.get(place).and_then(|peer| peer.lost.clone()).unwrap_or_default();
                return Err(ClusterError::LostBefore { agent: self.name(place), reason });
            }
            if stop.is_stopped() {
                return Err(ClusterError::Interrupted);
            }
            match self.said.pop_front() {
                Some(Said::Words(place, FromAgent::Failed { problem, .. })) => {
                    let (problem, is_impossible) = (problem.text, problem.is_impossible);
                    return Err(ClusterError::Agent { agent: self.name(place), problem, is_impossible });
                }
                Some(Said::Words(place, FromAgent::Leaving)) => {
                    let reason = "it was ended on its machine".to_owned();
                    return Err(ClusterError::LostBefore { agent: self.name(place), reason });
                }
                Some(Said::Words(place, words)) => return Ok((place, words)),
                Some(Said::Busy(..)) => {}
                None => self.step(LOOK / 10).await?,
            }
        }
    }

    /// Carries an order out, and says what came of it.
    async fn carry_out(&mut self, order: Order) {
        self.runs += 1;
        let run = self.runs;
        self.said.clear();
        self.leave_lost_behind();
        match self.begin(run, &order).await {
            Err(error) => {
                self.tell_all(&ToAgent::Stop { run });
                self.settle(run).await;
                // Who asked is there, or nobody is.
                let _ = order.begun.send(Err(error));
            }
            Ok(begun) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let started_unix_ms = now.map_or(0, |since| since.as_millis() as u64);
                let agents = self.peers.iter().map(|peer| peer.agent.name.clone()).collect();
                let _ = order.begun.send(Ok(Beginning { started_unix_ms, agents }));
                let over = self.see_through(run, &order, begun).await;
                let _ = order.over.send(over);
            }
        }
    }

    /// Goes on without agents that were lost in the run before, unless that was to end it.
    fn leave_lost_behind(&mut self) {
        let goes_on = self.terms.as_ref().is_some_and(|terms| terms.on_lost == OnLost::Continue);
        if goes_on && self.runs > 1 && self.peers.iter().any(|peer| peer.lost.is_none()) {
            self.peers.retain(|peer| peer.lost.is_none());
        }
    }

    /// Waits until agents that were told to stop have done so.
    async fn settle(&mut self, run: u32) {
        let began = Instant::now();
        let mut waits: Vec<usize> = (0..self.peers.len()).collect();
        self.said.clear();
        while began.elapsed() < MANNERS / 2
            && waits.iter().any(|place| self.peers.get(*place).is_some_and(|p| p.lost.is_none()))
        {
            if self.step(LOOK / 5).await.is_err() {
                return;
            }
            while let Some(said) = self.said.pop_front() {
                if let Said::Words(place, FromAgent::Finished { run: of, .. } | FromAgent::Failed { run: of, .. }) =
                    said
                    && of == run
                {
                    waits.retain(|waits| *waits != place);
                }
            }
            // One that had not begun to prepare says nothing.
            if self.peers.iter().all(|peer| peer.lost.is_some() || peer.link.is_acknowledged())
                && began.elapsed() >= LOOK * 6
            {
                return;
            }
        }
    }

    /// Brings the agents to the start.
    async fn begin(&mut self, run: u32, order: &Order) -> Result<Begun, ClusterError> {
        let Some(terms) = self.terms.clone() else { return Err(ClusterError::Defect) };
        let stop = &order.stop;
        let mut plan = order.plan.clone();
        if let Some(streamed) = plan.scenarios.as_ref().and_then(|scenarios| scenarios.streamed.first()) {
            return Err(ClusterError::Streamed { file: streamed.name.clone() });
        }
        if !terms.secrets_from_agents {
            plan.environment = Environment::of_references(&plan);
        }
        if has_secrets(&plan) && !self.bus.is_private() {
            return Err(ClusterError::Secrets);
        }
        let announced: Vec<_> = self.peers.iter().map(|peer| peer.agent.clone()).collect();
        // Users have connections of their own.
        let connections = if plan.scenarios.is_some() { u32::MAX } else { plan.connections.most() };
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
        let mut given = Value::Nil;
        if plan.scenarios.is_some() {
            self.tell(0, &ToAgent::Setup { run });
            given = loop {
                if let (_, FromAgent::Given { run: of, value }) = self.next_before(stop).await?
                    && of == run
                {
                    break value;
                }
            };
        }
        for (place, portion) in portions.iter().enumerate() {
            let (machine, given) = (place as u32, given.clone());
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
        for (place, offset) in offsets.iter().enumerate() {
            self.tell(place, &ToAgent::Start { run, at: offset.there(at) });
        }
        let parts = announced.iter().zip(&portions).map(|(agent, portion)| {
            AgentPart::new(&agent.name, &agent.version, agent.cores, portion.workers(), announced.len())
        });
        let agents = parts.zip(portions.iter().copied()).map(|(part, portion)| InRun::new(part, portion)).collect();
        Ok(Begun { plan, given, at, agents })
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

    /// Sees a run through that has begun.
    async fn see_through(&mut self, run: u32, order: &Order, begun: Begun) -> Over {
        let on_lost = self.terms.as_ref().map(|terms| terms.on_lost).unwrap_or_default();
        let mut running = InProgress {
            run,
            begun,
            reports: &order.reports,
            is_stopping: false,
            was_stopped_by_us: false,
            counts_changed: false,
            status_names: BTreeMap::new(),
            redirected_to: None,
            failed: None,
            lost_its_agents: false,
        };
        let mut is_bus_gone = false;
        while !running.is_over() {
            if !is_bus_gone && let Err(error) = self.step(LOOK).await {
                is_bus_gone = true;
                for peer in &mut self.peers {
                    peer.lost.get_or_insert(error.to_string());
                }
            }
            let now = self.now_ns();
            while let Some(said) = self.said.pop_front() {
                if let Said::Words(place, words) = said {
                    let offset = self.peers.get(place).and_then(|peer| peer.clock.offset());
                    running.take(place, words, offset, &order.stop);
                }
            }
            for (place, peer) in self.peers.iter().enumerate() {
                if let Some(reason) = &peer.lost {
                    running.lose(place, reason, on_lost);
                }
            }
            running.go_on_without(now);
            if (order.stop.is_stopped() || running.was_stopped_by_us) && !running.is_stopping {
                running.is_stopping = true;
                self.tell_all(&ToAgent::Stop { run });
            }
            if std::mem::take(&mut running.counts_changed) {
                for (place, counts) in running.counts_elsewhere() {
                    self.tell(place, &ToAgent::Elsewhere { run, counts });
                }
            }
        }
        running.finish_lost();
        for (agent, peer) in running.begun.agents.iter_mut().zip(&self.peers) {
            // What was learnt during the run tells more than what was known when it began.
            agent.compare(peer.clock.offset(), running.begun.at);
        }
        if running.begun.plan.scenarios.is_some() {
            let given = std::mem::replace(&mut running.begun.given, Value::Nil);
            if let Some(problem) = self.tear_down(run, given).await {
                running.failed.get_or_insert(problem);
            }
        }
        Over {
            agents: running.begun.agents.into_iter().map(|agent| agent.part).collect(),
            status_names: running.status_names,
            redirected_to: running.redirected_to,
            failed: running.failed,
            lost_its_agents: running.lost_its_agents,
        }
    }

    /// Runs the script's teardown on the first agent that is there; why it failed, if it did.
    async fn tear_down(&mut self, run: u32, given: Value<'static>) -> Option<String> {
        let place = self.peers.iter().position(|peer| peer.lost.is_none())?;
        self.tell(place, &ToAgent::Teardown { run, given });
        loop {
            if let Err(error) = self.step(LOOK / 5).await {
                return Some(error.to_string());
            }
            while let Some(said) = self.said.pop_front() {
                match said {
                    Said::Words(of, FromAgent::TornDown { run: which, problem }) if of == place && which == run => {
                        return problem;
                    }
                    Said::Words(of, FromAgent::Failed { problem, .. }) if of == place => return Some(problem.text),
                    _ => {}
                }
            }
            if let Some(reason) = self.peers.get(place).and_then(|peer| peer.lost.clone()) {
                return Some(format!("agent '{}' was lost in the teardown: {reason}", self.name(place)));
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

/// A run that has begun.
struct Begun {
    plan: Plan,
    given: Value<'static>,
    /// When, on the controller's clock, in nanoseconds.
    at: u64,
    agents: Vec<InRun>,
}

/// An agent in a run.
#[expect(clippy::struct_excessive_bools, reason = "each is a step that the agent has taken")]
struct InRun {
    part: AgentPart,
    portion: Portion,
    /// The second of the measured part that comes next.
    next: u64,
    has_drained: bool,
    is_finished: bool,
    is_leaving: bool,
    /// What it reported after it said that it leaves.
    held: Vec<Interval>,
    lost: Option<Lost>,
    is_lost: bool,
    counts: BTreeMap<String, u64>,
    /// When it began, on its own clock.
    began_there: Option<u64>,
}

impl InRun {
    /// Says when it began, on the controller's clock, relative to when all were to begin.
    fn compare(&mut self, offset: Option<Offset>, at: u64) {
        if let (Some(offset), Some(there)) = (offset, self.began_there) {
            self.part.began_ns = offset.here(there).cast_signed() - at.cast_signed();
            self.part.clock_uncertainty_ns = offset.uncertainty_ns;
        }
    }

    fn new(part: AgentPart, portion: Portion) -> Self {
        let (lost, counts, held) = (None, BTreeMap::new(), Vec::new());
        let (has_drained, is_finished, is_leaving, is_lost) = (false, false, false, false);
        Self {
            part,
            portion,
            next: 0,
            has_drained,
            is_finished,
            is_leaving,
            held,
            lost,
            is_lost,
            counts,
            began_there: None,
        }
    }
}

/// A run under way.
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the run")]
struct InProgress<'a> {
    run: u32,
    begun: Begun,
    reports: &'a Sender<Report>,
    is_stopping: bool,
    /// Whether it is to end for another reason than that who asked for it says so.
    was_stopped_by_us: bool,
    counts_changed: bool,
    status_names: BTreeMap<u16, String>,
    redirected_to: Option<String>,
    failed: Option<String>,
    lost_its_agents: bool,
}

impl InProgress<'_> {
    /// Whether every agent has finished, or is lost.
    fn is_over(&self) -> bool {
        self.begun.agents.iter().all(|agent| agent.is_finished || agent.is_lost)
    }

    fn report(&self, report: Report) {
        // Who gathers goes on until every agent has finished.
        let _ = self.reports.send(report);
    }

    /// Takes in what an agent says.
    fn take(&mut self, place: usize, words: FromAgent, offset: Option<Offset>, stop: &StopHandle) {
        let run = self.run;
        let ok = self.begun.plan.ok_status.clone();
        let at = self.begun.at;
        let Some(agent) = self.begun.agents.get_mut(place).filter(|agent| !agent.is_lost) else { return };
        match words {
            FromAgent::Began { run: of, at: there, .. } if of == run => {
                agent.began_there = Some(there);
                agent.compare(offset, at);
            }
            FromAgent::Second { run: of, interval } if of == run && agent.is_leaving => agent.held.push(*interval),
            FromAgent::Second { run: of, mut interval } if of == run => {
                interval.worker = place as u32;
                agent.part.add(&interval, &ok);
                match interval.phase {
                    Phase::Warmup => {}
                    Phase::Measured => agent.next = interval.second + 1,
                    Phase::Drain => agent.has_drained = true,
                }
                self.report(Report::Interval(interval));
            }
            FromAgent::Counted { run: of, counts } if of == run => {
                agent.counts = counts;
                self.counts_changed = true;
            }
            FromAgent::Leaving => agent.is_leaving = true,
            FromAgent::Failed { run: of, problem } if of == run => {
                let reason = problem.text;
                self.fail(place, &reason);
            }
            FromAgent::Finished { run: of, ended } if of == run => {
                let left = agent.is_leaving && ended.interrupted && !stop.is_stopped() && !self.was_stopped_by_us;
                if left {
                    self.lose(place, "it was ended on its machine", OnLost::Continue);
                } else {
                    self.finished(place, ended, stop);
                }
            }
            _ => {}
        }
    }

    fn fail(&mut self, place: usize, reason: &str) {
        let name = self.begun.agents.get(place).map(|agent| agent.part.name.clone()).unwrap_or_default();
        self.failed.get_or_insert(format!("agent '{name}': {reason}"));
        self.was_stopped_by_us = true;
        self.end(place, 0, false, None);
    }

    fn finished(&mut self, place: usize, ended: Ended, stop: &StopHandle) {
        let Ended { measured_ns, mut interrupted, failed, stopped, unreached, status_names, redirected_to } = ended;
        self.status_names.extend(status_names);
        self.redirected_to = self.redirected_to.take().or(redirected_to);
        if let Some(reason) = failed {
            self.fail(place, &reason);
            return;
        }
        if let Some(reason) = unreached {
            // As on one machine, the run ends if nobody reaches the target; one agent that does not is lost to the others.
            let others_reach = self.begun.agents.iter().any(|agent| agent.part.measured.connections.made > 0);
            if others_reach {
                self.lose(place, &reason, OnLost::Continue);
                return;
            }
            self.finish(place, measured_ns, false, None, Some(reason));
            return;
        }
        if stopped.is_some() {
            self.was_stopped_by_us = true;
        }
        // Ended for another's sake is not interrupted.
        interrupted &= stop.is_stopped() || !self.was_stopped_by_us;
        self.end(place, measured_ns, interrupted, stopped);
    }

    fn end(&mut self, place: usize, measured_ns: u64, interrupted: bool, stopped: Option<String>) {
        self.finish(place, measured_ns, interrupted, stopped, None);
    }

    fn finish(
        &mut self,
        place: usize,
        measured_ns: u64,
        interrupted: bool,
        stopped: Option<String>,
        unreached: Option<String>,
    ) {
        if let Some(agent) = self.begun.agents.get_mut(place).filter(|agent| !agent.is_finished) {
            agent.is_finished = true;
            agent.part.measured_ns = agent.part.measured_ns.max(measured_ns);
            let worker = place as u32;
            self.report(Report::Finished { worker, measured_ns, interrupted, failed: None, stopped, unreached });
        }
    }

    /// An agent is lost.
    fn lose(&mut self, place: usize, reason: &str, on_lost: OnLost) {
        let plan = &self.begun.plan;
        let Some(agent) = self.begun.agents.get_mut(place) else { return };
        if agent.is_lost || agent.is_finished {
            return;
        }
        agent.is_lost = true;
        let worker = place as u32;
        let mut last = LastSeconds { measured_ns: agent.part.measured_ns, ..LastSeconds::default() };
        let held = std::mem::take(&mut agent.held);
        for interval in &held {
            match interval.phase {
                Phase::Warmup => {}
                Phase::Measured => {
                    last.begun.merge(&interval.snapshot);
                    last.measured_ns = last.measured_ns.max(interval.second * SECOND_NS + interval.length_ns);
                }
                Phase::Drain => last.drained.merge(&interval.snapshot),
            }
        }
        let after_ns = last.measured_ns;
        agent.part.ended = AgentEnd::Lost { after_ns, reason: reason.to_owned() };
        // Populations that are over on all others do not wait for it.
        let workers = u64::from(agent.portion.workers());
        if let Some(scenarios) = &plan.scenarios {
            for place in 0..scenarios.populations.len() {
                agent.counts.insert(brunt_engine::over_on(place), workers);
            }
            self.counts_changed = true;
        }
        if !agent.has_drained {
            agent.lost = Lost::of(plan, agent.portion, worker, agent.next, &last);
        }
        let name = agent.part.name.clone();
        if agent.lost.is_none() {
            let ok = plan.ok_status.clone();
            for interval in held {
                let interval = Interval { worker, ..interval };
                agent.part.add(&interval, &ok);
                // As below: who gathers goes on until every agent has finished.
                let _ = self.reports.send(Report::Interval(Box::new(interval)));
            }
            let (failed, stopped, unreached) = (None, None, None);
            let measured_ns = after_ns;
            self.report(Report::Finished { worker, measured_ns, interrupted: false, failed, stopped, unreached });
        }
        let nobody_left = self.begun.agents.iter().all(|agent| agent.is_lost);
        if on_lost == OnLost::Abort || nobody_left {
            self.lost_its_agents = true;
            self.was_stopped_by_us = true;
            let after = Duration::from_nanos(after_ns).as_secs_f64();
            self.failed.get_or_insert(format!("agent '{name}' was lost after {after:.0} s: {reason}"));
        }
    }

    /// Reports what is due on lost agents, at `now` of the controller's clock.
    fn go_on_without(&mut self, now: u64) {
        let begun = self.begun.at + self.begun.plan.warmup_ns;
        let measured_ns = now.saturating_sub(begun).saturating_sub(LATE_NS);
        let ok = self.begun.plan.ok_status.clone();
        let mut seconds = Vec::new();
        for agent in &mut self.begun.agents {
            let Some(lost) = &mut agent.lost else { continue };
            let planned_ns = self.begun.plan.duration_ns().unwrap_or(u64::MAX);
            // The last second is reported with what was never sent in it.
            let until = measured_ns.min(planned_ns.saturating_sub(1));
            for interval in lost.until(until) {
                agent.part.add(&interval, &ok);
                seconds.push(interval);
            }
        }
        for interval in seconds {
            self.report(Report::Interval(Box::new(interval)));
        }
    }

    /// Reports the end of lost agents, once all others have ended.
    fn finish_lost(&mut self) {
        let ok = self.begun.plan.ok_status.clone();
        let finished = self.begun.agents.iter().filter(|agent| agent.is_finished);
        let longest = finished.map(|agent| agent.part.measured_ns).max();
        for place in 0..self.begun.agents.len() {
            let Some(agent) = self.begun.agents.get_mut(place) else { continue };
            let Some(lost) = agent.lost.take() else { continue };
            // Where nobody is left, the run ended when the last one was lost.
            let end = longest.unwrap_or(agent.part.measured_ns).max(agent.part.measured_ns);
            let mut seconds = Vec::new();
            for interval in lost.end(end) {
                agent.part.add(&interval, &ok);
                seconds.push(interval);
            }
            for interval in seconds {
                self.report(Report::Interval(Box::new(interval)));
            }
            let worker = place as u32;
            let (failed, stopped, unreached) = (None, None, None);
            self.report(Report::Finished { worker, measured_ns: end, interrupted: false, failed, stopped, unreached });
        }
    }

    /// What all others have counted, for each agent.
    fn counts_elsewhere(&self) -> Vec<(usize, BTreeMap<String, u64>)> {
        let mut all: BTreeMap<&String, u64> = BTreeMap::new();
        for agent in &self.begun.agents {
            agent.counts.iter().for_each(|(name, count)| *all.entry(name).or_default() += count);
        }
        let of_others = |agent: &InRun| {
            let less = |(name, count): (&&String, &u64)| {
                let own = agent.counts.get(*name).copied().unwrap_or(0);
                ((*name).clone(), count - own)
            };
            all.iter().map(less).filter(|(_, count)| *count > 0).collect()
        };
        self.begun.agents.iter().enumerate().map(|(place, agent)| (place, of_others(agent))).collect()
    }
}
