//! The controller's side of the bus: who is there, who belongs to it, and what is said.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use async_nats::{Client, Event, Message, Subscriber};
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    AWAY, CALL, COMPARE_AT_FIRST_NS, COMPARE_LEASED_NS, COMPARE_NS, COMPARISONS, ClusterError, Command, LOOK, MANNERS,
    MOST_BYTES, OnLost, Terms,
};
use crate::bus::{Bus, BusError};
use crate::clock::{Comparison, Exchange};
use crate::frame::{Frame, Kind};
use crate::link::Link;
use crate::words::{Announcement, FromAgent, Note, ToAgent, from_bytes, printable, to_bytes};
use crate::{SILENCE, random_number};

/// Messages that are taken in before it looks after its agents again.
const MOST_AT_ONCE: usize = 512;
/// The most agents that are known: anybody on the bus may announce more.
const MOST_THERE: usize = 10_000;
/// How long after its last look a controller has stood still itself: it was stopped, or had no CPU.
const STOOD_STILL: Duration = Duration::from_millis(500);
/// How often it looks after all agents at most.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// An agent as its controller sees it.
pub(super) struct Peer {
    pub(super) agent: Announcement,
    pub(super) subject: String,
    pub(super) link: Link,
    pub(super) clock: Comparison,
    /// When it was last heard, and last asked for the time.
    heard: Instant,
    asked_ns: u64,
    /// When it gave the last answer that came back, on its own clock: from there on its lease counts.
    answered: u64,
    /// Why it counts as lost.
    pub(super) lost: Option<String>,
}

impl Peer {
    pub(super) fn new(agent: Announcement, bus: &Bus) -> Self {
        Self {
            subject: bus.subject(&format!("to.{}", agent.name)),
            agent,
            link: Link::new(random_number(), MOST_BYTES),
            clock: Comparison::default(),
            heard: Instant::now(),
            asked_ns: 0,
            answered: 0,
            lost: None,
        }
    }
}

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
    incoming: Subscriber,
    events: UnboundedReceiver<Event>,
    answer_to: String,
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
    /// Since when the bus is away, or when it last came back.
    away_since: Option<Instant>,
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
            places: HashMap::new(),
            unsent: HashSet::new(),
            looked: Instant::now(),
            compares_every_ns: COMPARE_AT_FIRST_NS,
            away_since: None,
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

    /// Whether others do what a lost agent has left.
    pub(super) fn reassigns(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.on_lost == OnLost::Reassign)
    }

    async fn publish(&self, subject: String, frame: &Frame) {
        // While the bus is away, what would wait for it only grows old: parts of messages are sent again.
        if self.away_since.is_some() {
            return;
        }
        let _ = self.client.publish_with_reply(subject, self.answer_to.clone(), frame.to_bytes()).await;
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
            if let Some(agent) = agent.shown() {
                self.there.retain(|known| (&known.name, known.instance) != (&agent.name, agent.instance));
                if self.there.len() < MOST_THERE {
                    self.there.push(agent);
                }
            }
            return;
        }
        let Some(place) = self.places.get(&frame.session).copied() else { return };
        let Some(peer) = self.peers.get_mut(place) else { return };
        if frame.kind == Kind::Note {
            let note = from_bytes(&frame.payload);
            // A note completes no message.
            let _ = peer.link.receive(frame);
            match note {
                Ok(Note::Pong { sent, received, answered }) => {
                    peer.heard = Instant::now();
                    peer.answered = peer.answered.max(answered);
                    peer.clock.add(Exchange { sent, received, answered, back });
                }
                Ok(Note::Busy { by }) => self.said.push_back(Said::Busy(place, printable(&by))),
                // Another agent of the same name knows nothing of this run, and has no say in it.
                Ok(Note::Unknown { instance }) if instance == peer.agent.instance && peer.clock.count() > 0 => {
                    peer.lost.get_or_insert("it gave the run up".to_owned());
                }
                _ => {}
            }
            return;
        }
        peer.heard = Instant::now();
        self.unsent.insert(place);
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
        let (sent, is_claimed, reassigns) = (self.now_ns(), self.terms.is_some(), self.reassigns());
        let Some(peer) = self.peers.get_mut(place) else { return };
        peer.asked_ns = sent.max(1);
        let heard = reassigns.then_some(peer.answered);
        let frame = peer.link.note(to_bytes(&Note::Ping { sent, is_claimed, heard }));
        let subject = peer.subject.clone();
        self.publish(subject, &frame).await;
    }

    /// How often each agent is asked for the time, in nanoseconds.
    fn comparing_every_ns(&self) -> u64 {
        let is_new = |peer: &Peer| peer.lost.is_none() && peer.clock.count() < COMPARISONS;
        match self.peers.iter().any(is_new) {
            true => COMPARE_AT_FIRST_NS,
            false if self.reassigns() => COMPARE_LEASED_NS,
            false => COMPARE_NS,
        }
    }

    /// These agents are its own from now on.
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
            // Whoever hears nothing because it stands still itself cannot call others silent.
            self.peers.iter_mut().for_each(|peer| peer.heard += since);
        }
        // Some may have waited too long for an acknowledgement.
        let waits = |(_, peer): &(usize, &Peer)| !peer.link.is_acknowledged();
        self.unsent.extend(self.peers.iter().enumerate().filter(waits).map(|(place, _)| place));
        self.compares_every_ns = self.comparing_every_ns();
        self.compare_clocks(self.compares_every_ns).await;
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

    /// Sends what is new for agents.
    async fn flush_links(&mut self) {
        let now = self.now_ns();
        let mut frames = Vec::new();
        let soon_ns = self.compares_every_ns / 2;
        for place in std::mem::take(&mut self.unsent) {
            let Some(peer) = self.peers.get_mut(place).filter(|peer| peer.lost.is_none()) else { continue };
            // Who is to be asked for the time before long is asked with the acknowledgement.
            if peer.link.only_acknowledges(now) && now >= peer.asked_ns + soon_ns {
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

    pub(super) fn name(&self, place: usize) -> String {
        self.peers.get(place).map(|peer| peer.agent.name.clone()).unwrap_or_default()
    }
}
