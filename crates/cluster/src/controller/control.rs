//! The controller's side of the bus: who is there, who belongs to it, and what is said.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use async_nats::{Client, Event, Message, Subscriber};
use futures_util::StreamExt as _;
use futures_util::stream::{SelectAll, select_all};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::allowance::Allowance;
use super::peer::{Granting, Peer};
use super::{
    AUDIBLE, AWAY, CALL, COMPARE_AT_FIRST_NS, COMPARE_NS, COMPARISONS, ClusterError, Command, ECHO, GRANT_MANY_NS,
    GRANT_NS, LOOK, MANNERS, MANY, MOST_BYTES, Terms,
};
use crate::agent::HERE;
use crate::bus::{self, Bus, BusError};
use crate::clock::Exchange;
use crate::frame::{Frame, Kind};
use crate::link::Link;
use crate::words::{Announcement, FromAgent, Note, ToAgent, from_bytes, printable, to_bytes};
use crate::{CLUSTER_VERSION, SILENCE, random_number};

/// Messages that are taken in before it looks after its agents again.
const MOST_AT_ONCE: usize = 512;
/// The most agents that are known: anybody on the bus may announce more.
const MOST_THERE: usize = 10_000;
/// How long after its last look a controller has stood still itself: it was stopped, or had no CPU.
const STOOD_STILL: Duration = Duration::from_millis(500);
/// How often it looks after all agents at most.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// What has come of the bus.
pub(super) enum Said {
    /// An agent, by its place, has said something.
    Words(usize, FromAgent),
    /// It belongs to somebody else.
    Busy(usize, String),
}

/// The controller's side of the bus.
pub(super) struct Control {
    pub(super) bus: Bus,
    client: Client,
    incoming: SelectAll<Subscriber>,
    events: UnboundedReceiver<Event>,
    /// Its own id: the end of the subjects of what agents, and it itself, say to it.
    id: String,
    /// What the subjects of agents begin with, and the subject of what it says to itself.
    from_agents: String,
    echo: String,
    epoch: Instant,
    pub(super) there: Vec<Announcement>,
    pub(super) peers: Vec<Peer>,
    pub(super) said: VecDeque<Said>,
    /// The places of peers by their sessions, and those that may have something to send.
    places: HashMap<u64, usize>,
    unsent: HashSet<usize>,
    /// When it last looked after all of them.
    looked: Instant,
    /// How often each is asked for the time, in nanoseconds.
    compares_every_ns: u64,
    /// Since when there is no connection to the bus.
    away_since: Option<Instant>,
    /// When it last spoke to itself, and last heard that.
    spoke: Instant,
    echoed: Instant,
    /// How long the bus has let messages through, as far as it has heard itself. An agent's silence counts in this time alone.
    audible: Duration,
    /// The load that is under way.
    pub(super) granting: Option<Granting>,
    pub(super) terms: Option<Terms>,
    /// The longest that it has stood still itself in this run.
    pub(super) stood_still: Duration,
    /// The places of agents whose threads work for the run that begins.
    pub(super) working: BTreeSet<usize>,
    /// Agents that were there and fit, and that it has not taken: their names, and why not.
    pub(super) left_out: Vec<(String, String)>,
    /// The plan that the agents have, in wire form's hash.
    pub(super) sent_plan: Option<String>,
    pub(super) runs: u32,
}

impl Control {
    pub(super) async fn connect(bus: &Bus, id: String) -> Result<Self, ClusterError> {
        let (to_events, events) = unbounded_channel();
        let client = bus.connect(&format!("brunt controller {id}"), to_events).await?;
        let id = format!("{id}-{:x}", random_number());
        let echo = bus.subject(&format!("echo.{id}"));
        let ended = |error: &dyn std::fmt::Display| BusError::Ended { problem: error.to_string() };
        let mut incoming = Vec::new();
        for subject in [bus.subject(&format!("from.*.{id}")), bus.subject(&format!("from.*.{HERE}")), echo.clone()] {
            incoming.push(client.subscribe(subject).await.map_err(|e| ended(&e))?);
        }
        client.flush().await.map_err(|e| ended(&e))?;
        Ok(Self {
            bus: bus.clone(),
            client,
            incoming: select_all(incoming),
            events,
            from_agents: bus.subject("from."),
            id,
            echo,
            epoch: Instant::now(),
            there: Vec::new(),
            peers: Vec::new(),
            said: VecDeque::new(),
            places: HashMap::new(),
            unsent: HashSet::new(),
            looked: Instant::now(),
            compares_every_ns: COMPARE_AT_FIRST_NS,
            away_since: None,
            spoke: Instant::now(),
            echoed: Instant::now(),
            audible: Duration::ZERO,
            granting: None,
            terms: None,
            stood_still: Duration::ZERO,
            working: BTreeSet::new(),
            left_out: Vec::new(),
            sent_plan: None,
            runs: 0,
        })
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Which server of the bus it is connected to.
    pub(super) fn server(&self) -> String {
        self.client.server_info().server_id
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    async fn publish(&self, subject: String, frame: &Frame) {
        // While the bus is away, what would wait for it only grows old: parts of messages are sent again.
        if self.away_since.is_some() {
            return;
        }
        let _ = self.client.publish(subject, frame.to_bytes()).await;
    }

    /// Asks who is there until `is_enough`, or for so long.
    pub(super) async fn listen(
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

    /// Lets the agents go.
    pub(super) async fn release(&mut self) {
        self.tell_all(&ToAgent::Release);
        let began = Instant::now();
        let has_word = |peer: &Peer| peer.lost.is_none() && !peer.link.is_acknowledged();
        while self.peers.iter().any(has_word) && began.elapsed() < MANNERS / 2 {
            if self.step(LOOK / 5).await.is_err() {
                break;
            }
        }
        self.own(Vec::new());
        self.sent_plan = None;
        // Nobody waits for a bus that is away.
        let _ = tokio::time::timeout(CALL, self.client.flush()).await;
    }

    /// Does what it is told, until it is to release the agents.
    pub(super) async fn serve(&mut self, mut orders: UnboundedReceiver<Command>) {
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
    pub(super) async fn step(&mut self, patience: Duration) -> Result<(), ClusterError> {
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
        for _ in 0..MOST_AT_ONCE {
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
            Some(Event::Connected) => self.away_since = None,
            Some(Event::ServerError(error)) => {
                let problem = error.to_string();
                // Agents that it has show that it may do all that it needs.
                if self.terms.is_none() && bus::refuses(&problem) {
                    return Err(BusError::Permission { problem }.into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// It has heard itself: the bus lets messages through.
    fn hear_itself(&mut self) {
        let since = std::mem::replace(&mut self.echoed, Instant::now()).elapsed();
        // While its own words did not come back, nobody else's could.
        self.audible += since.min(AUDIBLE);
    }

    /// Notes an agent that is there, and says so on the subject of this name.
    fn meet(&mut self, agent: Announcement, name: &str) {
        let Some(agent) = agent.shown().filter(|agent| agent.name == name) else { return };
        self.there.retain(|known| (&known.name, known.instance) != (&agent.name, agent.instance));
        if self.there.len() < MOST_THERE {
            self.there.push(agent);
        }
    }

    /// Takes a message in. Who speaks is known by its subject.
    fn receive(&mut self, message: &Message) {
        let back = self.now_ns();
        let Ok((version, frame)) = Frame::of_any_version(&message.payload) else { return };
        let subject = message.subject.strip_prefix(&self.from_agents).unwrap_or_default();
        let (name, to) = subject.split_once('.').unwrap_or_default();
        if to == HERE {
            // One of another version is there as well, so that it can be said which it has.
            if let Ok(Note::Here(agent)) = from_bytes(&frame.payload) {
                self.meet(agent, name);
            }
            return;
        }
        if version != CLUSTER_VERSION {
            return;
        }
        if message.subject.as_str() == self.echo {
            return self.hear_itself();
        }
        let Some(place) = self.places.get(&frame.session).copied() else { return };
        let (run, audible) = (self.runs, self.audible);
        let Some(peer) = self.peers.get_mut(place).filter(|peer| peer.agent.name == name) else { return };
        if peer.is_cut_off {
            // What it was told last is said until it arrives.
            return peer.link.acknowledge(frame.arrived, back);
        }
        if !peer.allowance.take(message.payload.len(), back) {
            let most = Allowance::PER_SECOND >> 20;
            return peer.cut_off(format!("it said more than {most} MiB/s, which no agent does"), run);
        }
        if frame.kind == Kind::Note {
            let note = from_bytes(&frame.payload);
            // A note completes no message.
            let _ = peer.link.receive(frame, back);
            match note {
                Ok(Note::Pong { sent, received, answered }) => {
                    peer.heard = audible;
                    // What was never asked is no answer.
                    peer.answered_ns = peer.answered_ns.max(sent.min(peer.asked_ns));
                    peer.clock.add(Exchange { sent, received, answered, back });
                }
                Ok(Note::Busy { by }) => self.said.push_back(Said::Busy(place, printable(&by))),
                Ok(Note::Unknown) if peer.clock.count() > 0 => peer.lose("it gave the run up".to_owned(), run),
                _ => {}
            }
            return;
        }
        peer.heard = audible;
        self.unsent.insert(place);
        match peer.link.receive(frame, back) {
            Err(error) => peer.cut_off(error.to_string(), run),
            Ok(messages) => {
                for message in messages {
                    match from_bytes::<FromAgent>(&message) {
                        Ok(words) => self.said.push_back(Said::Words(place, words.shown())),
                        Err(error) => peer.cut_off(error.to_string(), run),
                    }
                }
            }
        }
    }

    /// Asks agents for the time who were not asked for so long, in nanoseconds.
    pub(super) async fn compare_clocks(&mut self, every_ns: u64) {
        let now = self.now_ns();
        for place in 0..self.peers.len() {
            let is_due = |peer: &Peer| peer.lost.is_none() && (peer.asked_ns == 0 || now >= peer.asked_ns + every_ns);
            if self.peers.get(place).is_some_and(is_due) {
                self.ask_for_the_time(place).await;
            }
        }
    }

    async fn ask_for_the_time(&mut self, place: usize) {
        let (sent, is_claimed, controller) = (self.now_ns().max(1), self.terms.is_some(), self.id.clone());
        let Some(peer) = self.peers.get_mut(place) else { return };
        peer.asked_ns = sent;
        let grant = self.granting.map(|granting| granting.grant(peer));
        let frame = peer.link.note(to_bytes(&Note::Ping { controller, sent, is_claimed, grant }));
        let subject = peer.subject.clone();
        self.publish(subject, &frame).await;
    }

    /// How often each agent is asked for the time, in nanoseconds.
    fn comparing_every_ns(&self) -> u64 {
        let is_new = |peer: &Peer| peer.lost.is_none() && peer.clock.count() < COMPARISONS;
        match self.peers.iter().any(is_new) {
            true => COMPARE_AT_FIRST_NS,
            false if self.granting.is_none() => COMPARE_NS,
            false if self.peers.len() > MANY => GRANT_MANY_NS,
            false => GRANT_NS,
        }
    }

    /// Takes these agents as its own. Only their announcements are known yet.
    pub(super) fn own_new(&mut self, agents: &[Announcement]) {
        let most_payload = self.client.server_info().max_payload;
        let link = || Link::new(random_number(), MOST_BYTES).sharing(most_payload, agents.len());
        let peer = |agent: &Announcement| Peer::new(agent.clone(), &self.bus, link(), self.audible);
        self.own(agents.iter().map(peer).collect());
    }

    /// Takes these agents as its own.
    pub(super) fn own(&mut self, peers: Vec<Peer>) {
        self.places = peers.iter().enumerate().map(|(place, peer)| (peer.link.session(), place)).collect();
        self.unsent.clear();
        self.peers = peers;
    }

    /// Does what is due by time. However many messages come, all agents are looked after only so often.
    async fn look_after(&mut self) {
        if self.looked.elapsed() < LOOK_AFTER {
            self.flush_links().await;
            return;
        }
        let since = std::mem::replace(&mut self.looked, Instant::now()).elapsed();
        if since >= STOOD_STILL {
            self.stood_still = self.stood_still.max(since);
            // It hears nothing because it stood still itself: neither the bus nor an agent was silent.
            self.echoed += since;
        }
        if self.spoke.elapsed() >= ECHO {
            self.spoke = Instant::now();
            let echo = Frame::note(0, to_bytes(&Note::Echo { sent: self.now_ns() }));
            self.publish(self.echo.clone(), &echo).await;
        }
        // Some may have waited too long for an acknowledgement.
        let waits = |(_, peer): &(usize, &Peer)| !peer.link.is_acknowledged();
        self.unsent.extend(self.peers.iter().enumerate().filter(waits).map(|(place, _)| place));
        self.compares_every_ns = self.comparing_every_ns();
        self.compare_clocks(self.compares_every_ns).await;
        // Whose own words do not come back knows nothing of agents: the bus is away, or stands still.
        let unheard = self.echoed.elapsed();
        let run = self.runs;
        let gone = match self.away_since {
            Some(_) => "been away",
            None => "let nothing through",
        };
        for peer in self.peers.iter_mut().filter(|peer| peer.lost.is_none()) {
            let silent = self.audible.saturating_sub(peer.heard);
            if unheard >= AWAY {
                peer.lose(format!("the NATS server has {gone} for {} s", AWAY.as_secs()), run);
            } else if silent >= SILENCE {
                peer.lose(format!("nothing was heard of it for {:.1} s", silent.as_secs_f64()), run);
            }
        }
        self.flush_links().await;
    }

    /// Sends what is new for agents.
    async fn flush_links(&mut self) {
        let now = self.now_ns();
        let mut frames = Vec::new();
        let soon_ns = self.compares_every_ns / 2;
        for place in std::mem::take(&mut self.unsent) {
            let Some(peer) = self.peers.get_mut(place) else { continue };
            // Who is to be asked for the time before long is asked with the acknowledgement.
            if peer.lost.is_none() && peer.link.only_acknowledges(now) && now >= peer.asked_ns + soon_ns {
                self.ask_for_the_time(place).await;
                continue;
            }
            frames.extend(peer.link.poll(now).into_iter().map(|frame| (peer.subject.clone(), frame)));
        }
        for (subject, frame) in frames {
            self.publish(subject, &frame).await;
        }
    }

    pub(super) fn tell(&mut self, place: usize, words: &ToAgent) {
        if let Some(peer) = self.peers.get_mut(place).filter(|peer| peer.lost.is_none()) {
            peer.link.send(to_bytes(words));
            self.unsent.insert(place);
        }
    }

    pub(super) fn tell_all(&mut self, words: &ToAgent) {
        let bytes = bytes::Bytes::from(to_bytes(words));
        for (place, peer) in self.peers.iter_mut().enumerate().filter(|(_, peer)| peer.lost.is_none()) {
            peer.link.send(bytes.clone());
            self.unsent.insert(place);
        }
    }

    /// Lets an agent go that is lost, and has said its last words.
    pub(super) fn release_lost(&mut self, place: usize) {
        if let Some(peer) = self.peers.get_mut(place) {
            peer.link.send(to_bytes(&ToAgent::Release));
            self.unsent.insert(place);
        }
    }

    pub(super) fn name(&self, place: usize) -> String {
        self.peers.get(place).map(|peer| peer.agent.name.clone()).unwrap_or_default()
    }
}
