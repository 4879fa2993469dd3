//! A controller's contact with agents over the bus: which ones exist, which ones it owns, their messages, and which
//! ones are lost. Without I/O, and without a clock: all times are the controller's, in nanoseconds.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::allowance::Allowance;
use super::peer::{Granting, Peer};
use super::waits::{AnnouncedWaits, Awaited, Notice, Wait, Waiting};
use super::{COMPARE_AT_FIRST_NS, COMPARE_NS, COMPARISONS, GRANT_MANY_NS, GRANT_NS, MANY};
use crate::agent::machine::HERE;
use crate::clock::Exchange;
use crate::frame::{Frame, Kind};
use crate::limits;
use crate::link::Link;
use crate::messages::{Announcement, FromAgent, Note, ToAgent, printable};
use crate::post::{BusEvent, Outbox, Posted, Server};
use crate::rules::{Rule, is_broken};
use crate::{CLUSTER_VERSION, SILENCE_NS};
use brunt_record::bytes::{from_bytes, to_bytes};

/// Limit on a message of an agent, in bytes: a second's figures.
const MOST_BYTES: usize = 32 << 20;
/// The most bytes on their way to all agents together.
const MOST_IN_FLIGHT: usize = 4 << 20;
/// The most agents that are remembered: anybody on the bus may announce more.
const MOST_THERE: usize = 10_000;
/// The time since its last look after which a controller has stood still itself: it was stopped, or had no CPU. In
/// nanoseconds.
const STOOD_STILL_NS: u64 = 500_000_000;
/// The shortest interval in which it looks after all agents, in nanoseconds.
const LOOK_AFTER_NS: u64 = 10_000_000;
/// How often the controller speaks to itself over the bus, and how long a time without an echo counts at most as one in which agents could be heard.
const ECHO_NS: u64 = 250_000_000;
const AUDIBLE_NS: u64 = 500_000_000;
/// How long the bus may let nothing through, or all agents be silent, before the run is given up, in nanoseconds.
const AWAY_NS: u64 = 10_000_000_000;

/// An event from the bus.
pub(super) enum ContactEvent {
    /// An agent, by its place, has said something.
    Message(usize, FromAgent),
    /// The agent belongs to another controller.
    Busy(usize, String),
}

/// A controller's knowledge about agents.
pub(super) struct Contact {
    outbox: Outbox,
    /// The controller's id: the last part of the subjects of messages to it.
    id: String,
    /// What the subjects of agents begin with, and the subject of what it says to itself.
    from_agents: String,
    echo: String,
    pub(super) server: Server,
    /// Draws the id of a session.
    draw: fn() -> u128,
    pub(super) there: Vec<Announcement>,
    pub(super) peers: Vec<Peer>,
    pub(super) events: VecDeque<ContactEvent>,
    /// The places of peers by their sessions, those that may have something to send, and whose turn it is.
    places: HashMap<u128, usize>,
    unsent: BTreeSet<usize>,
    turn: usize,
    /// When it last looked after all of them.
    looked: u64,
    /// How often each is asked for the time.
    compares_every_ns: u64,
    /// When it last sent itself a message, and when one last came back.
    spoke: u64,
    echoed: u64,
    /// How long the bus has let messages through, judged by its messages to itself. An agent's silence counts only in
    /// this time.
    pub(super) audible: u64,
    /// The load under way.
    pub(super) granting: Option<Granting>,
    /// Waits that were told, and those that are to be.
    told: AnnouncedWaits,
    told_cut: bool,
    pub(super) notices: Vec<Notice>,
    /// Why the NATS server that answers cannot be used.
    unusable: Option<String>,
    /// Whether it looks for agents.
    pub(super) looks: bool,
    /// Whether the agents are its own, and have confirmed that.
    pub(super) has_claimed: bool,
    /// The longest time that it has stood still in this run.
    pub(super) stood_still_ns: u64,
    pub(super) runs: u32,
}

impl Contact {
    /// One that calls itself `id`, on a bus whose subjects begin with `prefix`.
    pub(super) fn new(prefix: &str, id: String, server: Server, draw: fn() -> u128, now: u64) -> Self {
        let outbox = Outbox::new(prefix);
        Self {
            from_agents: outbox.subject("from."),
            echo: outbox.subject(&format!("echo.{id}")),
            outbox,
            id,
            server,
            draw,
            there: Vec::new(),
            peers: Vec::new(),
            events: VecDeque::new(),
            places: HashMap::new(),
            unsent: BTreeSet::new(),
            turn: 0,
            looked: now,
            compares_every_ns: COMPARE_AT_FIRST_NS,
            spoke: now,
            echoed: now,
            audible: 0,
            granting: None,
            told: AnnouncedWaits::default(),
            told_cut: false,
            notices: Vec::new(),
            unusable: None,
            looks: true,
            has_claimed: false,
            stood_still_ns: 0,
            runs: 0,
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The frames to be sent now.
    pub(super) fn take_posted(&mut self) -> Vec<Posted> {
        self.outbox.take()
    }

    /// Asks for agents.
    pub(super) fn call(&mut self) {
        self.outbox.post(self.outbox.subject("hello"), Frame::note(0, to_bytes(&Note::Hello)));
    }

    /// Takes an event of the connection to the bus.
    pub(super) fn bus_said(&mut self, event: &BusEvent) {
        match event {
            BusEvent::Away => (self.outbox.is_away, self.unusable) = (true, None),
            BusEvent::Unusable(problem) => (self.outbox.is_away, self.unusable) = (true, Some(problem.clone())),
            BusEvent::Back(server) => {
                (self.outbox.is_away, self.unusable) = (false, None);
                self.fit(server);
            }
            BusEvent::Refused(server) => self.fit(server),
            BusEvent::Says(_) | BusEvent::TooSlow | BusEvent::Gone(_) => {}
        }
    }

    /// The server is this one from now on.
    fn fit(&mut self, server: &Server) {
        self.server = server.clone();
        self.peers.iter_mut().for_each(|peer| peer.link.fit(server.most_payload));
    }

    /// Its message to itself came back: the bus lets messages through.
    fn hear_itself(&mut self, now: u64) {
        let since = now.saturating_sub(std::mem::replace(&mut self.echoed, now));
        // While its own messages did not come back, no others could.
        self.audible += if is_broken(Rule::StillBusMakesNobodySilent) { since } else { since.min(AUDIBLE_NS) };
    }

    /// Notes an agent that announces itself on the subject of this name.
    fn meet(&mut self, agent: Announcement, name: &str) {
        let Some(agent) = agent.printable().filter(|agent| agent.name == name) else { return };
        self.there.retain(|known| (&known.name, known.instance) != (&agent.name, agent.instance));
        if self.there.len() < MOST_THERE {
            self.there.push(agent);
        }
    }

    /// Takes a message. The subject identifies the sender.
    pub(super) fn receive(&mut self, subject: &str, payload: &Bytes, now: u64) {
        let Ok((version, frame)) = Frame::of_any_version(payload) else { return };
        let from = subject.strip_prefix(&self.from_agents).unwrap_or_default();
        let (name, to) = from.split_once('.').unwrap_or_default();
        if to == HERE {
            // An agent of another version is noted as well, so that its version can be reported. A controller that has
            // all of its agents looks for no others.
            if let (true, Ok(Note::Here(agent))) = (self.looks, from_bytes(&frame.payload)) {
                self.meet(agent, name);
            }
            return;
        }
        if version != CLUSTER_VERSION {
            return;
        }
        if subject == self.echo {
            return self.hear_itself(now);
        }
        let Some(place) = self.places.get(&frame.session).copied() else { return };
        let (run, audible) = (self.runs, self.audible);
        let Some(peer) =
            self.peers.get_mut(place).filter(|peer| peer.agent.name == name || is_broken(Rule::SenderIsItsSubject))
        else {
            return;
        };
        if peer.is_cut_off {
            // The last order is repeated until it arrives.
            return peer.link.acknowledge(frame.arrived, now);
        }
        if !peer.allowance.take(payload.len(), now) {
            let most = Allowance::PER_SECOND >> 20;
            return peer.cut_off(format!("it said more than {most} MiB/s, which no agent does"), run);
        }
        if frame.kind == Kind::Note {
            let note = from_bytes(&frame.payload);
            // A note completes no message.
            let _ = peer.link.receive(frame, now);
            match note {
                Ok(Note::Pong { sent, received, answered, taken }) => {
                    peer.heard = audible;
                    peer.taken = taken.or(peer.taken);
                    // An answer to no question.
                    peer.answered_ns = peer.answered_ns.max(sent.min(peer.asked_ns));
                    peer.clock.add(Exchange { sent, received, answered, back: now });
                }
                Ok(Note::Busy { by }) => self.events.push_back(ContactEvent::Busy(place, printable(&by))),
                Ok(Note::Unknown) if peer.clock.count() > 0 => peer.lose("it gave the run up".to_owned(), run),
                _ => {}
            }
            return;
        }
        peer.heard = audible;
        self.unsent.insert(place);
        match peer.link.receive(frame, now) {
            Err(error) => peer.cut_off(error.to_string(), run),
            Ok(messages) => {
                if messages.is_empty() {
                    peer.amid = audible;
                }
                for message in messages {
                    match limits::read(&message) {
                        Ok(FromAgent::OnServer { id }) => peer.agent.server = printable(&id),
                        Ok(words) => self.events.push_back(ContactEvent::Message(place, words.with_printable_texts())),
                        Err(error) => {
                            peer.cut_off(
                                format!("it sent what no agent sends ({error}): run one brunt everywhere"),
                                run,
                            );
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Asks those agents for the time that were last asked `every_ns` ago or earlier.
    pub(super) fn compare_clocks(&mut self, every_ns: u64, now: u64) {
        for place in 0..self.peers.len() {
            let is_due = |peer: &Peer| peer.lost.is_none() && (peer.asked_ns == 0 || now >= peer.asked_ns + every_ns);
            if self.peers.get(place).is_some_and(is_due) {
                self.ask_for_the_time(place, now);
            }
        }
    }

    fn ask_for_the_time(&mut self, place: usize, now: u64) {
        let (sent, is_claimed, controller) = (now.max(1), self.has_claimed, self.id.clone());
        let Some(peer) = self.peers.get_mut(place) else { return };
        peer.asked_ns = sent;
        let grant = self.granting.as_ref().map(|granting| granting.grant(peer));
        let frame = peer.link.note(to_bytes(&Note::Ping { controller, sent, is_claimed, grant }));
        self.outbox.post(peer.subject.clone(), frame);
    }

    /// How often each agent is asked for the time.
    fn comparing_every_ns(&self) -> u64 {
        let is_new = |peer: &Peer| peer.lost.is_none() && peer.clock.count() < COMPARISONS;
        match self.peers.iter().any(is_new) {
            true => COMPARE_AT_FIRST_NS,
            false if self.granting.is_none() => COMPARE_NS,
            false if self.peers.len() > MANY => GRANT_MANY_NS,
            false => GRANT_NS,
        }
    }

    /// Takes these agents as its own. Only their announcements are known so far.
    pub(super) fn own_new(&mut self, agents: &[Announcement]) {
        let link = || Link::new((self.draw)(), MOST_BYTES, self.server.most_payload);
        let peer = |agent: &Announcement| {
            let subject = self.outbox.subject(&format!("to.{}.{:x}", agent.name, agent.instance));
            Peer::new(agent.clone(), subject, link(), self.audible)
        };
        let peers = agents.iter().map(peer).collect();
        self.own(peers);
    }

    /// Takes these agents as its own besides those that it has; all are in the order of their names.
    pub(super) fn own_more(&mut self, agents: &[Announcement]) {
        let mut peers = std::mem::take(&mut self.peers);
        self.own_new(agents);
        peers.append(&mut self.peers);
        peers.sort_by(|one, other| one.agent.name.cmp(&other.agent.name));
        self.own(peers);
    }

    /// Takes these agents as its own.
    pub(super) fn own(&mut self, peers: Vec<Peer>) {
        self.places = peers.iter().enumerate().map(|(place, peer)| (peer.link.session(), place)).collect();
        self.unsent.clear();
        self.peers = peers;
    }

    /// Does everything that is due by time. However many messages come, it looks after all agents only so often.
    pub(super) fn look_after(&mut self, now: u64) {
        if now.saturating_sub(self.looked) < LOOK_AFTER_NS {
            return;
        }
        let since = now.saturating_sub(std::mem::replace(&mut self.looked, now));
        if since >= STOOD_STILL_NS {
            self.stood_still_ns = self.stood_still_ns.max(since);
            // It heard nothing because it stood still itself: neither the bus nor an agent was silent.
            self.echoed += since;
        }
        if now.saturating_sub(self.spoke) >= ECHO_NS {
            self.spoke = now;
            self.outbox.post(self.echo.clone(), Frame::note(0, to_bytes(&Note::Echo { sent: now })));
        }
        // Some may have waited too long for an acknowledgement.
        let waits = |(_, peer): &(usize, &Peer)| !peer.link.is_acknowledged();
        self.unsent.extend(self.peers.iter().enumerate().filter(waits).map(|(place, _)| place));
        self.compares_every_ns = self.comparing_every_ns();
        self.compare_clocks(self.compares_every_ns, now);
        self.lose_silent(now);
    }

    /// Declares agents lost that are silent while others speak, and all of them if nothing is heard of any for long: that
    /// is a way that is cut, and not their death.
    fn lose_silent(&mut self, now: u64) {
        self.lose_unheard(AWAY_NS, now);
        let living = self.peers.iter().filter(|peer| peer.lost.is_none());
        let Some(newest) = living.map(|peer| peer.heard).max() else { return };
        let (run, audible) = (self.runs, self.audible);
        for peer in &mut self.peers {
            let silent = audible.saturating_sub(peer.heard);
            let cut_ns = if is_broken(Rule::SilenceOfAllIsACut) { SILENCE_NS } else { AWAY_NS };
            if newest.saturating_sub(peer.heard) >= SILENCE_NS || silent >= cut_ns {
                peer.lose(format!("nothing was heard of it for {:.1}s", silent as f64 / 1e9), run);
            }
        }
        self.tell_cut(audible.saturating_sub(newest).max(now.saturating_sub(self.echoed)));
    }

    /// Says that nothing was heard of any agent for so long, once for each time.
    fn tell_cut(&mut self, silent_ns: u64) {
        if silent_ns < SILENCE_NS {
            self.told_cut = false;
        } else if self.has_claimed && !std::mem::replace(&mut self.told_cut, true) {
            let living = self.peers.iter().filter(|peer| peer.lost.is_none());
            let agents: Vec<_> = living.map(|peer| peer.agent.name.clone()).collect();
            let left = Duration::from_nanos(AWAY_NS.saturating_sub(silent_ns));
            let cut = Notice::Waiting(Waiting { awaited: Awaited::Contact, agents, left });
            self.notices.extend(Some(cut).filter(|_| self.has_claimed));
        }
    }

    /// Declares all agents lost if the bus has let nothing through for this long: a controller whose own messages do
    /// not come back knows nothing about agents.
    pub(super) fn lose_unheard(&mut self, patience_ns: u64, now: u64) {
        let unheard = now.saturating_sub(self.echoed);
        if unheard < patience_ns {
            return;
        }
        let (run, seconds) = (self.runs, unheard / 1_000_000_000);
        let gone = if self.outbox.is_away { "been away" } else { "let nothing through" };
        let usual = || format!("the NATS server has {gone} for {seconds}s");
        let reason = self.unusable.clone().unwrap_or_else(usual);
        for peer in &mut self.peers {
            peer.lose(reason.clone(), run);
        }
    }

    /// Waits for what agents owe, and declares those lost that missed a limit.
    pub(super) fn wait_for(&mut self, waits: &[Wait]) {
        let (audible, run) = (self.audible, self.runs);
        for wait in waits.iter().filter(|wait| wait.is_missed(audible)) {
            if let Some(peer) = self.peers.get_mut(wait.place) {
                peer.lose(wait.awaited.missed(wait.limit_ns), run);
            }
        }
        let peers = &self.peers;
        let name = |place: usize| peers.get(place).map(|peer| peer.agent.name.clone()).unwrap_or_default();
        self.notices.extend(self.told.news(waits, audible, name).into_iter().map(Notice::Waiting));
    }

    /// Sends new frames to agents. Those for whom there is no room now come first the next time.
    pub(super) fn flush_links(&mut self, now: u64) {
        let soon_ns = self.compares_every_ns / 2;
        let in_flight: usize = self.peers.iter().map(|peer| peer.link.in_flight()).sum();
        let mut room = MOST_IN_FLIGHT.saturating_sub(in_flight);
        let later = self.unsent.split_off(&self.turn);
        for place in later.into_iter().chain(std::mem::take(&mut self.unsent)) {
            let Some(peer) = self.peers.get_mut(place) else { continue };
            // An agent that is soon asked for the time gets the question with the acknowledgement.
            if peer.lost.is_none() && peer.link.only_acknowledges(now) && now >= peer.asked_ns + soon_ns {
                self.ask_for_the_time(place, now);
                continue;
            }
            if room > 0 {
                self.turn = place + 1;
            }
            for frame in peer.link.poll(now, &mut room) {
                self.outbox.post(peer.subject.clone(), frame);
            }
        }
    }

    pub(super) fn tell(&mut self, place: usize, words: &ToAgent) {
        if let Some(peer) = self.peers.get_mut(place).filter(|peer| peer.lost.is_none()) {
            peer.link.send(to_bytes(words));
            self.unsent.insert(place);
        }
    }

    pub(super) fn tell_all(&mut self, words: &ToAgent) {
        let bytes = Bytes::from(to_bytes(words));
        for (place, peer) in self.peers.iter_mut().enumerate().filter(|(_, peer)| peer.lost.is_none()) {
            peer.link.send(bytes.clone());
            self.unsent.insert(place);
        }
    }

    /// Releases an agent that is lost and has sent its last message.
    pub(super) fn release_lost(&mut self, place: usize) {
        if let Some(peer) = self.peers.get_mut(place) {
            peer.link.send(to_bytes(&ToAgent::Release));
            self.unsent.insert(place);
        }
    }

    /// Bytes that agents have not acknowledged, of all messages to them.
    pub(super) fn bytes_left(&self) -> usize {
        self.peers.iter().filter(|peer| peer.lost.is_none()).map(|peer| peer.link.bytes_left()).sum()
    }

    /// Whether an agent of this name is its own, and not lost.
    pub(super) fn has(&self, name: &str) -> bool {
        self.peers.iter().any(|peer| peer.agent.name == name && peer.lost.is_none())
    }

    /// Declares an agent lost, for this reason.
    pub(super) fn lose(&mut self, place: usize, reason: String) {
        let run = self.runs;
        if let Some(peer) = self.peers.get_mut(place) {
            peer.lose(reason, run);
        }
    }

    /// Sends an agent all frames that wait for it.
    pub(super) fn post_all(&mut self, peer: &mut Peer, now: u64) {
        for frame in peer.link.poll_all(now) {
            self.outbox.post(peer.subject.clone(), frame);
        }
    }

    pub(super) fn is_lost(&self, place: usize) -> bool {
        self.peers.get(place).is_none_or(|peer| peer.lost.is_some())
    }

    pub(super) fn name(&self, place: usize) -> String {
        self.peers.get(place).map(|peer| peer.agent.name.clone()).unwrap_or_default()
    }
}
