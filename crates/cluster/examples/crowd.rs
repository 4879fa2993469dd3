//! A crowd of simulated agents in one process: each takes part in runs as an agent does, and reports seconds that were made up.
//!
//! For the benchmark of the controller, which is what works here: `crowd nats://HOST:PORT AGENTS`.

#[allow(dead_code, reason = "the agents' side alone is spoken here")]
#[path = "../src/frame.rs"]
mod frame;
#[allow(dead_code, reason = "the agents' side alone is spoken here")]
#[path = "../src/link.rs"]
mod link;
#[allow(dead_code, reason = "the agents' side alone is spoken here")]
#[path = "../src/messages.rs"]
mod messages;
#[allow(dead_code, reason = "the agents' side alone is spoken here")]
#[path = "../src/rules.rs"]
mod rules;

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::io::Write as _;
use std::time::{Duration, Instant};

use async_nats::{Client, Message, Subject};
use brunt_plan::plan::Plan;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::interval::Interval;
use brunt_record::snapshot::{Phase, Snapshot};
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::frame::{CLUSTER_VERSION, Frame, Kind};
use crate::link::Link;
use crate::messages::{Announcement, FromAgent, Note, PartEnd, ToAgent};
use brunt_record::bytes::{from_bytes, to_bytes};

/// Calls of an agent in a second, and the names that they are told apart by.
const CALLS: u64 = 10_000;
const NAMES: u64 = 20;
/// Seconds of different figures, which agents report in turns.
const KINDS: usize = 16;
/// The longest plan that is taken in, in bytes.
const MOST_BYTES: usize = 1 << 26;
/// How often agents look whether a second is over.
const LOOK: Duration = Duration::from_millis(5);
/// How often they look whether something has to be sent again.
const AGAIN: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(number)) = (args.next(), args.next()) else {
        return Err("expected: crowd nats://HOST:PORT AGENTS".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&url, number.parse()?))
}

async fn serve(url: &str, number: usize) -> Result<(), Box<dyn Error>> {
    let client = async_nats::ConnectOptions::new().subscription_capacity(1 << 18).connect(url).await?;
    let mut orders = client.subscribe("brunt.to.*.*").await?;
    let mut calls = client.subscribe("brunt.hello").await?;
    client.flush().await?;
    let mut crowd = Crowd {
        client,
        epoch: Instant::now(),
        agents: (0..number).map(Agent::new).collect(),
        places: (0..number).map(|place| (format!("brunt.to.{}.{:x}", name(place), place + 1), place)).collect(),
        snapshots: (0..KINDS as u64).map(snapshot).collect(),
        plan: None,
    };
    writeln!(std::io::stdout(), "{number} agents wait")?;
    let mut look = tokio::time::interval(LOOK);
    let mut again = tokio::time::interval(AGAIN);
    loop {
        tokio::select! {
            message = orders.next() => crowd.take(&message.ok_or("the subscription is gone")?).await?,
            message = calls.next() => {
                message.ok_or("the subscription is gone")?;
                crowd.announce().await?;
            }
            _ = look.tick() => crowd.tell_seconds().await?,
            _ = again.tick() => {
                for place in 0..number {
                    crowd.flush(place).await?;
                }
            }
        }
    }
}

fn name(place: usize) -> String {
    format!("s{place:04}")
}

/// The subject of what the agent at this place says to those who listen to the end `to`.
fn subject_from(place: usize, to: &str) -> Subject {
    format!("brunt.from.{}.{to}", name(place)).into()
}

/// A second's figures: latencies between 0.2 and some 20 ms, most of them short.
fn snapshot(seed: u64) -> Snapshot {
    let mut snapshot = Snapshot::with_numbers([(Counter::Due, CALLS)]);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for call in 0..CALLS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let drawn = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let ns = (200_000.0 - 2_000_000.0 * (1.0 - drawn).ln()) as u64;
        snapshot.statuses.record(200);
        snapshot.times.record(Timing::Response, ns);
        snapshot.times.record(Timing::Service, ns);
        snapshot.times.record(Timing::Lag, ns / 1000);
        let named = snapshot.figures.requests.named(&format!("request {}", call % NAMES));
        named.answered(200, ns, ns);
    }
    snapshot.numbers.set(Counter::WorkersWall, SECOND_NS);
    snapshot.numbers.set(Counter::WorkersCpu, SECOND_NS / 3);
    snapshot
}

/// An agent that belongs to a controller, or waits for one.
struct Agent {
    instance: u64,
    session: Option<Session>,
}

struct Session {
    answer_to: Subject,
    link: Link,
    /// The run that is under way, when it began, and the second that comes next.
    run: Option<(u32, u64, u64)>,
}

impl Agent {
    fn new(place: usize) -> Self {
        Self { instance: place as u64 + 1, session: None }
    }
}

struct Crowd {
    client: Client,
    epoch: Instant,
    agents: Vec<Agent>,
    places: HashMap<String, usize>,
    snapshots: Vec<Snapshot>,
    /// The plan that all carry out: in wire form, its hash, its length in nanoseconds.
    plan: Option<(Vec<u8>, String, u64)>,
}

impl Crowd {
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    async fn announce(&mut self) -> Result<(), Box<dyn Error>> {
        for (place, agent) in self.agents.iter().enumerate() {
            let here = Note::Here(Announcement {
                name: name(place),
                instance: agent.instance,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                cluster_version: CLUSTER_VERSION,
                cores: 1,
                connections: 1000,
                tags: BTreeMap::new(),
                busy: agent.session.as_ref().map(|_| "a controller".to_owned()),
                load: None,
                is_private: true,
                server: String::new(),
            });
            self.client.publish(subject_from(place, "here"), Frame::note(0, to_bytes(&here)).to_bytes()).await?;
        }
        Ok(())
    }

    async fn take(&mut self, message: &Message) -> Result<(), Box<dyn Error>> {
        let received = self.now_ns();
        let Some(place) = self.places.get(message.subject.as_str()).copied() else { return Ok(()) };
        let frame = Frame::from_bytes(&message.payload)?;
        if frame.kind == Kind::Note {
            if let Ok(Note::Ping { controller, sent, .. }) = from_bytes(&frame.payload) {
                let (id, pong) =
                    (frame.session, to_bytes(&Note::Pong { sent, received, answered: self.now_ns(), taken: None }));
                let session = self.agents.get_mut(place).and_then(|agent| agent.session.as_mut());
                let answer = match session.filter(|session| session.link.session() == id) {
                    Some(session) => {
                        // A note completes no message, but acknowledges some.
                        let _ = session.link.receive(frame, received)?;
                        session.link.note(pong)
                    }
                    None => Frame::note(id, pong),
                };
                self.client.publish(subject_from(place, &controller), answer.to_bytes()).await?;
            }
            return Ok(());
        }
        let Some(agent) = self.agents.get_mut(place) else { return Ok(()) };
        if agent.session.as_ref().is_none_or(|session| session.link.session() != frame.session) {
            let most_payload = self.client.server_info().max_payload;
            let mut link = Link::new(frame.session, MOST_BYTES, most_payload);
            let Some(words) = link.receive(frame, received)?.into_iter().next() else { return Ok(()) };
            let Ok(ToAgent::Claim { controller, .. }) = from_bytes(&words) else { return Ok(()) };
            link.send(to_bytes(&FromAgent::Claimed));
            agent.session = Some(Session { answer_to: subject_from(place, &controller), link, run: None });
            return self.flush(place).await;
        }
        let Some(session) = &mut agent.session else { return Ok(()) };
        for words in session.link.receive(frame, received)? {
            if !obey(session, from_bytes(&words)?, &mut self.plan)? {
                agent.session = None;
                return Ok(());
            }
        }
        self.flush(place).await
    }

    /// Sends what an agent has to say.
    async fn flush(&mut self, place: usize) -> Result<(), Box<dyn Error>> {
        let now = self.now_ns();
        let Some(session) = self.agents.get_mut(place).and_then(|agent| agent.session.as_mut()) else { return Ok(()) };
        for frame in session.link.poll(now, &mut usize::MAX.clone()) {
            self.client.publish(session.answer_to.clone(), frame.to_bytes()).await?;
        }
        Ok(())
    }

    /// Tells the seconds that are over: all agents began at one instant.
    async fn tell_seconds(&mut self) -> Result<(), Box<dyn Error>> {
        let (now, length_ns) = (self.now_ns(), self.plan.as_ref().map_or(0, |(_, _, length_ns)| *length_ns));
        // Encoded once for all agents that report the same.
        let mut encoded: HashMap<(u32, u64, usize), Bytes> = HashMap::new();
        for place in 0..self.agents.len() {
            let Some(session) = self.agents.get_mut(place).and_then(|agent| agent.session.as_mut()) else { continue };
            let Some((run, began, next)) = &mut session.run else { continue };
            if now < *began + (*next + 1) * SECOND_NS {
                continue;
            }
            let kind = place % KINDS;
            let message = encoded.entry((*run, *next, kind)).or_insert_with(|| {
                let snapshot = self.snapshots.get(kind).cloned().unwrap_or_default();
                Bytes::from(to_bytes(&FromAgent::Second { run: *run, interval: Box::new(second(*next, snapshot)) }))
            });
            session.link.send(message.clone());
            *next += 1;
            if *next * SECOND_NS >= length_ns {
                let ended = PartEnd { measured_ns: length_ns, ..PartEnd::default() };
                session.link.send(to_bytes(&FromAgent::Finished { run: *run, ended }));
                session.run = None;
            }
            self.flush(place).await?;
        }
        Ok(())
    }
}

fn second(second: u64, snapshot: Snapshot) -> Interval {
    let (length_ns, open_connections, in_flight, oldest_ns) = (SECOND_NS, 10, 0, 0);
    Interval { worker: 0, phase: Phase::Measured, second, length_ns, snapshot, open_connections, in_flight, oldest_ns }
}

/// Does what the controller says; false once the session is over.
fn obey(
    session: &mut Session,
    words: ToAgent,
    known: &mut Option<(Vec<u8>, String, u64)>,
) -> Result<bool, Box<dyn Error>> {
    let answer = match words {
        ToAgent::Claim { .. } => FromAgent::Claimed,
        ToAgent::Plan { wire } => {
            if known.as_ref().is_none_or(|(bytes, ..)| *bytes != *wire) {
                let plan = Plan::from_wire(&wire)?;
                let hash = plan.to_wire()?.hash().to_string();
                *known = Some((wire.to_vec(), hash, plan.duration_ns().ok_or("a run without an end")?));
            }
            FromAgent::PlanTaken { hash: known.as_ref().map(|(_, hash, _)| hash.clone()).unwrap_or_default() }
        }
        ToAgent::Prepare { run, .. } => FromAgent::Ready { run },
        ToAgent::Start { grant, at } => {
            let run = grant.run;
            session.run = Some((run, at, 0));
            FromAgent::Began { run, at, late: 0 }
        }
        ToAgent::Stop { .. } => {
            session.run = None;
            return Ok(true);
        }
        ToAgent::Release => return Ok(false),
        _ => return Ok(true),
    };
    session.link.send(to_bytes(&answer));
    Ok(true)
}
