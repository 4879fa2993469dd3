//! A controller and its agents on a simulated bus, in simulated time.

use std::collections::BTreeMap;

use brunt_engine::StopHandle;
use brunt_plan::plan::Sandbox;
use brunt_record::change::{Action, Change};
use bytes::Bytes;

use super::bus::{Bus, Message, Weather};
use super::dice::Dice;
use super::machine::Machine;
use super::strangers;
use crate::CLUSTER_VERSION;
use crate::agent::machine::Agent;
use crate::controller::machine::Introduction;
use crate::controller::state::Controller;
use crate::controller::{ClusterOptions, Command};
use crate::messages::Announcement;
use crate::post::{BusEvent, Posted, Server};

const MS: u64 = 1_000_000;
/// How often machines work.
const WORKS_NS: u64 = 20 * MS;
/// The side of the controller; agents come after it.
pub(super) const CONTROLLER: usize = 0;

/// Something that goes wrong, or is done, at a time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// A side stands still for so long.
    Pause { side: usize, for_ns: u64 },
    /// A side stands still for so long, and the bus cuts it off, as it reads nothing: what was said to it is lost.
    CutOff { side: usize, for_ns: u64 },
    /// An agent or the controller dies.
    Kill { side: usize },
    /// An agent's machine hangs for so long, and the agent goes on answering.
    Hang { side: usize, for_ns: u64 },
    /// An agent of the same name begins anew.
    Restart { side: usize },
    /// The bus stands still for so long, and then carries on.
    StandStill { for_ns: u64 },
    /// The bus is away for so long, and takes messages of so many bytes from then on.
    Away { for_ns: u64, most_payload: usize },
    /// Somebody ends the run here.
    Stop,
    /// An agent is told to end.
    Leave { side: usize },
}

/// An agent with its machine, or the controller.
struct Side {
    name: String,
    /// How far its clock is ahead of the world's.
    ahead_ns: u64,
    paused_until: u64,
    is_alive: bool,
    inbox: Vec<Message>,
    events: Vec<BusEvent>,
    wakes_at: u64,
    /// The time of the next connection, while there is none.
    connects_at: Option<u64>,
}

enum Event {
    Message(usize, Message),
    Wake(usize),
    Fault(Fault),
    /// A stranger says something.
    Stranger,
}

pub(super) struct World {
    pub(super) now: u64,
    /// How much has happened.
    pub(super) steps: u64,
    dice: Dice,
    pub(super) bus: Bus,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
    sides: Vec<Side>,
    pub(super) controller: Option<Controller>,
    pub(super) controller_id: String,
    pub(super) agents: Vec<Agent>,
    pub(super) machines: Vec<Machine>,
    pub(super) stop: StopHandle,
    /// How a run is to be changed, and how long after it began; and how it was.
    pub(super) to_change: Vec<(u64, Action)>,
    pub(super) changed: Vec<Change>,
    most_payload: usize,
    /// The server's id: another one whenever it was started anew.
    server_id: String,
    strangers_every_ns: u64,
    /// What happened, for whoever looks into a seed.
    pub(super) log: Vec<String>,
    instances: u64,
}

fn draw() -> u128 {
    crate::random_session()
}

impl World {
    pub(super) fn new(seed: u64, agents: usize, weather: Weather, strangers_every_ns: u64) -> Self {
        let mut world = Self {
            now: 1_000 * MS,
            steps: 0,
            dice: Dice::new(seed),
            // Strangers have a way of their own.
            bus: Bus::new(weather, agents + 2),
            events: BTreeMap::new(),
            count: 0,
            sides: Vec::new(),
            controller: None,
            controller_id: String::new(),
            agents: Vec::new(),
            machines: Vec::new(),
            stop: StopHandle::default(),
            to_change: Vec::new(),
            changed: Vec::new(),
            most_payload: 1 << 20,
            server_id: "the-only-one".to_owned(),
            strangers_every_ns,
            log: Vec::new(),
            instances: 0,
        };
        for side in 0..=agents {
            let ahead_ns = world.dice.below(1 << 40);
            world.sides.push(Side {
                name: if side == CONTROLLER { "c".to_owned() } else { format!("a{side}") },
                ahead_ns,
                paused_until: 0,
                is_alive: side != CONTROLLER,
                inbox: Vec::new(),
                events: Vec::new(),
                wakes_at: u64::MAX,
                connects_at: None,
            });
            if side != CONTROLLER {
                let agent = world.new_agent(side);
                world.agents.push(agent);
                world.machines.push(Machine::default());
                world.wake(side, world.now);
            }
        }
        if strangers_every_ns > 0 {
            world.at(world.now, Event::Stranger);
        }
        world
    }

    pub(super) fn server(&self) -> Server {
        Server { id: self.server_id.clone(), most_payload: self.most_payload }
    }

    fn new_agent(&mut self, side: usize) -> Agent {
        self.instances += 1;
        let about = Announcement {
            name: format!("a{side}"),
            instance: self.instances,
            version: "0".to_owned(),
            cluster_version: CLUSTER_VERSION,
            cores: 1 + (side % 2) as u32,
            connections: 1000,
            tags: BTreeMap::new(),
            busy: None,
            load: None,
            is_private: true,
            server: String::new(),
        };
        Agent::new(about, Sandbox::Open, "brunt", self.server())
    }

    /// A controller begins, and takes agents.
    pub(super) fn begin(&mut self, terms: ClusterOptions) {
        let side = &mut self.sides[CONTROLLER];
        (side.is_alive, side.connects_at) = (true, None);
        side.inbox.clear();
        side.events.clear();
        self.count += 1;
        let id = format!("c-{:x}", self.count);
        let now = self.local(CONTROLLER);
        let server = self.server();
        let meeting = Introduction { prefix: "brunt", id: id.clone(), server, is_private: true, draw };
        self.controller = Some(Controller::take_agents(meeting, terms, self.stop.clone(), now));
        self.controller_id = id;
        self.wake(CONTROLLER, self.now);
    }

    pub(super) fn order(&mut self, command: Command) {
        if let Some(controller) = &mut self.controller {
            controller.order(command);
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.count += 1;
        self.events.insert((time, self.count), event);
    }

    pub(super) fn plan_fault(&mut self, time: u64, fault: Fault) {
        self.at(time, Event::Fault(fault));
    }

    fn wake(&mut self, side: usize, time: u64) {
        if time < self.sides[side].wakes_at {
            self.sides[side].wakes_at = time;
            self.at(time, Event::Wake(side));
        }
    }

    fn local(&self, side: usize) -> u64 {
        self.now + self.sides[side].ahead_ns
    }

    pub(super) fn is_alive(&self, side: usize) -> bool {
        self.sides[side].is_alive
    }

    /// Whether an agent lives, and does not stand still.
    pub(super) fn is_well(&self, side: usize) -> bool {
        let is_still = self.now < self.sides[side].paused_until || self.machines[side - 1].hangs(self.now);
        self.sides[side].is_alive && !is_still
    }

    /// Says how all are, where a test that fails shows it.
    pub(super) fn describe(&self) {
        for (side, agent) in (1..).zip(&self.agents) {
            println!("a{side}: alive {}, {}", self.sides[side].is_alive, agent.describe());
        }
        if let Some(controller) = &self.controller {
            println!("{}", controller.describe());
        }
    }

    /// The first thing that happens.
    pub(super) fn step(&mut self) {
        let Some(((time, _), event)) = self.events.pop_first() else {
            // Everybody is dead.
            self.now += 1_000 * MS;
            return;
        };
        self.now = self.now.max(time);
        self.steps += 1;
        match event {
            Event::Message(side, message) => self.arrive(side, message),
            Event::Wake(side) => {
                if self.sides[side].wakes_at <= self.now {
                    self.sides[side].wakes_at = u64::MAX;
                }
                self.turn(side);
            }
            Event::Fault(fault) => self.break_by(fault),
            Event::Stranger => {
                let said = strangers::say(&self.bus.heard, &self.controller_id, &mut self.dice);
                for (subject, payload) in said {
                    self.deliver(self.sides.len(), &subject, &payload);
                }
                let next = self.now + 1 + self.dice.below(2 * self.strangers_every_ns);
                self.at(next, Event::Stranger);
            }
        }
    }

    fn arrive(&mut self, side: usize, message: Message) {
        let receiver = &mut self.sides[side];
        if !receiver.is_alive || receiver.connects_at.is_some() || !self.bus.has(&message) {
            return;
        }
        receiver.inbox.push(message);
        let at = self.now.max(receiver.paused_until);
        self.wake(side, at);
    }

    /// A side does what it has to do.
    fn turn(&mut self, side: usize) {
        let Side { is_alive, paused_until, .. } = self.sides[side];
        if !is_alive {
            return;
        }
        if self.now < paused_until {
            return self.wake(side, paused_until);
        }
        if let Some(at) = self.sides[side].connects_at
            && self.now >= at
            && !self.bus.is_away(self.now)
        {
            self.sides[side].connects_at = None;
            let back = crate::bus::back(self.server());
            self.sides[side].events.push(back);
        }
        let now = self.local(side);
        // What a process does first after it stood still is chance.
        let works_first = self.dice.in_thousand(500);
        if works_first {
            self.work(side, now);
        }
        let (events, inbox) =
            (std::mem::take(&mut self.sides[side].events), std::mem::take(&mut self.sides[side].inbox));
        for event in events {
            match side {
                CONTROLLER => self.controller.iter_mut().for_each(|one| one.bus_said(event.clone())),
                _ => self.agents[side - 1].bus_said(event),
            }
        }
        for message in inbox {
            self.hear(side, &message, now);
        }
        if !works_first {
            self.work(side, now);
        }
        let (posted, patience) = if side == CONTROLLER {
            let Some(controller) = &mut self.controller else { return };
            controller.advance(now);
            (controller.take_posted(), controller.patience_ns())
        } else {
            let agent = &mut self.agents[side - 1];
            agent.advance(now);
            let posted = agent.take_posted();
            self.tell_machine(side, now);
            let agent = &mut self.agents[side - 1];
            if agent.has_left(now, false) {
                self.sides[side].is_alive = false;
            }
            for event in agent.take_events() {
                self.log.push(format!("{:.3} s: a{side}: {event:?}", self.now as f64 / 1e9));
            }
            let patience = self.agents[side - 1].patience_ns();
            let is_busy = self.machines[side - 1].is_busy();
            (posted, if is_busy { patience.min(WORKS_NS) } else { patience })
        };
        for Posted { subject, frame } in posted {
            self.deliver(side, &subject, &frame.to_bytes());
        }
        // Clocks have no infinite resolution.
        self.wake(side, self.now + patience.max(MS));
        if let Some(at) = self.sides[side].connects_at {
            self.wake(side, at.max(self.now + MS));
        }
    }

    fn work(&mut self, side: usize, now: u64) {
        if side == CONTROLLER {
            return;
        }
        if self.machines[side - 1].hangs(self.now) {
            return;
        }
        for (job, done) in self.machines[side - 1].work(now, &mut self.dice) {
            self.agents[side - 1].worked(job, done);
        }
        self.tell_machine(side, now);
    }

    fn tell_machine(&mut self, side: usize, now: u64) {
        for (job, act) in self.agents[side - 1].take_acts() {
            self.machines[side - 1].act(job, act, now, &mut self.dice);
        }
    }

    fn hear(&mut self, side: usize, message: &Message, now: u64) {
        if side == CONTROLLER {
            if let Some(controller) = &mut self.controller {
                controller.receive(&message.subject, &message.payload, now);
            }
            return;
        }
        let agent = &mut self.agents[side - 1];
        agent.took(self.machines[side - 1].taken());
        match message.subject.split('.').nth(1) {
            Some("hello") => agent.receive_call(&message.payload),
            Some("name") => agent.receive_name(&message.payload),
            _ => agent.receive(&message.payload, now),
        }
        self.tell_machine(side, now);
    }

    /// Gives a message to the bus, for all who listen.
    fn deliver(&mut self, from: usize, subject: &str, payload: &Bytes) {
        assert!(payload.len() <= self.most_payload.max(1 << 20), "longer than the bus takes: {}", payload.len());
        if payload.len() > self.most_payload {
            return;
        }
        let words: Vec<&str> = subject.split('.').collect();
        let to: Vec<usize> = match words[..] {
            ["brunt", "hello"] => (1..self.sides.len()).collect(),
            ["brunt", "to", name, instance] => {
                let is_it = |side: &usize| {
                    let about = &self.agents[*side - 1].about;
                    about.name == name && format!("{:x}", about.instance) == instance
                };
                (1..self.sides.len()).filter(is_it).collect()
            }
            ["brunt", "from", _, to] if to == "here" || to == self.controller_id => vec![CONTROLLER],
            ["brunt", "echo", to] if to == self.controller_id => vec![CONTROLLER],
            ["brunt", "name", name] => (1..self.sides.len()).filter(|side| self.sides[*side].name == name).collect(),
            _ => Vec::new(),
        };
        for side in to {
            for (at, message) in self.bus.carry(from, subject, payload, self.now, &mut self.dice) {
                self.at(at, Event::Message(side, message));
            }
        }
    }

    fn break_by(&mut self, fault: Fault) {
        self.log.push(format!("{:.3} s: {fault:?}", self.now as f64 / 1e9));
        match fault {
            Fault::Pause { side, for_ns } => {
                let side = &mut self.sides[side];
                side.paused_until = side.paused_until.max(self.now + for_ns);
            }
            Fault::CutOff { side, for_ns } => {
                let side = &mut self.sides[side];
                side.paused_until = side.paused_until.max(self.now + for_ns);
                side.connects_at = Some(side.paused_until.max(side.connects_at.unwrap_or(0)));
                side.inbox.clear();
                side.events.push(BusEvent::Away);
            }
            Fault::Hang { side, for_ns } => self.machines[side - 1].hang(self.now.saturating_add(for_ns)),
            Fault::Kill { side } => {
                self.sides[side].is_alive = false;
                if side == CONTROLLER {
                    self.controller = None;
                }
            }
            Fault::Restart { side } => {
                self.sides[side].is_alive = true;
                self.sides[side].paused_until = 0;
                self.sides[side].inbox.clear();
                self.sides[side].events.clear();
                self.sides[side].connects_at = self.bus.is_away(self.now).then_some(self.bus.away_until);
                self.agents[side - 1] = self.new_agent(side);
                if self.sides[side].connects_at.is_some() {
                    self.agents[side - 1].bus_said(BusEvent::Away);
                } else {
                    let bus = crate::bus::back(self.server());
                    self.agents[side - 1].bus_said(bus);
                }
                // What the target has counted stays counted.
                let before = std::mem::take(&mut self.machines[side - 1]);
                (self.machines[side - 1].truth, self.machines[side - 1].made) = (before.truth, before.made);
                self.machines[side - 1].slowness = before.slowness;
                (self.machines[side - 1].set_up, self.machines[side - 1].torn_down) = (before.set_up, before.torn_down);
                self.wake(side, self.now);
            }
            Fault::StandStill { for_ns } => self.bus.still_until = self.bus.still_until.max(self.now + for_ns),
            Fault::Away { for_ns, most_payload } => {
                self.bus.go_away(self.now + for_ns);
                self.server_id = format!("begun-anew-at-{}", self.now);
                self.most_payload = most_payload;
                for side in 0..self.sides.len() {
                    let back = self.now + for_ns + self.dice.between(1, 450) * MS;
                    self.sides[side].connects_at = Some(back);
                    self.sides[side].events.push(BusEvent::Away);
                    self.wake(side, self.now);
                }
            }
            Fault::Stop => self.stop.stop(),
            Fault::Leave { side } => {
                if self.sides[side].is_alive {
                    let now = self.local(side);
                    self.agents[side - 1].leave(now);
                    self.tell_machine(side, now);
                    self.wake(side, self.now);
                }
            }
        }
    }
}
