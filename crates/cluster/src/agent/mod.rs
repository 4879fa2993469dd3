//! An agent: waits on the bus for controllers, and carries out its part of their runs.
//!
//! [`machine`] is its state, moved by messages and time, with [`session`], [`orders`] and [`parts`]. [`serve`] drives it: it has the connection to the bus, the clock,
//! and the [`threads`] that put load on.

pub(crate) mod machine;
mod orders;
mod reports;
mod seconds;
mod session;
mod threads;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, Event, Subject};
use brunt_engine::{EngineError, Finished, StopHandle};
use brunt_plan::plan::{Plan, Sandbox};
use brunt_plan::share::Portion;
use brunt_protocol::Registry;
use brunt_protocol::replay::Logs;
use brunt_record::samples::SampleSink;
use brunt_script::ScriptHost;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant as Tick, sleep_until};

use self::machine::{Agent, Job, MachineReport};
use self::threads::Threads;
use crate::bus::{self, Bus, BusError};
use crate::messages::Announcement;
use crate::name_claim::is_name_taken;
use crate::{CLUSTER_VERSION, random_number};

/// The average wait before connecting is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long the last flush of an agent that ends may take.
const LAST_FLUSH: Duration = Duration::from_millis(250);

/// An agent's identity and rights.
pub struct AgentOptions {
    /// Its name, which no other agent on the bus has: a part of a subject, see [`token_of`](crate::token_of).
    pub name: String,
    /// brunt's version.
    pub version: String,
    /// Tags that its user gave it.
    pub tags: BTreeMap<String, String>,
    /// CPUs that it may use.
    pub cores: u32,
    /// The most that scripts of controllers may do here.
    pub sandbox: Sandbox,
    /// Opens the logs of plans that replay one.
    pub logs: Arc<dyn Logs>,
    /// Puts an error of the engine into words.
    pub words: fn(EngineError) -> String,
    /// Called on the part's own thread when a part has ended, once the controller is told. It may block on a disk: nobody
    /// waits for it but an agent that ends, for a while.
    pub ended: PartEnded,
    /// Opens the file for the rows of each part's calls, if rows are wanted; called before the part begins.
    pub samples: Option<PartSamples>,
}

/// Takes the result of a part.
pub type PartEnded = Arc<dyn Fn(&Finished) + Send + Sync>;

/// Opens the file for the rows of a part's calls; `None` if it cannot be opened.
pub type PartSamples = Arc<dyn Fn(&Plan) -> Option<Arc<dyn SampleSink>> + Send + Sync>;

/// An event of an agent, reported as it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// It waits for controllers.
    Waiting,
    /// The bus is away, or has come back.
    Bus(String),
    /// A controller has claimed it.
    Claimed {
        /// Whose run.
        by: String,
    },
    /// It carries out a part of a run.
    Begun {
        /// Its part of the run.
        portion: Portion,
    },
    /// It could not carry out an order.
    Failed(String),
    /// It is free again; with the reason, unless its controller released it.
    Released(Option<String>),
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
    said: &mut dyn FnMut(AgentEvent),
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
    said: &mut dyn FnMut(AgentEvent),
) -> Result<(), BusError> {
    let (to_events, mut events) = unbounded_channel();
    let mut told = false;
    let client = loop {
        match bus.connect(&format!("brunt agent {}", options.name), to_events.clone()).await {
            Ok(client) => break client,
            Err(BusError::Unreachable { url, problem }) => {
                if !std::mem::replace(&mut told, true) {
                    let problem = BusError::Unreachable { url, problem }.to_string();
                    said(AgentEvent::Bus(format!("{problem}; trying again until there is one")));
                }
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(bus::jittered(AGAIN)).await;
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
    // Refusals of the server have come by now. Later refusals do not end the agent.
    let begun: Vec<Event> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    let is_of_names = |problem: &String| problem.to_lowercase().contains(&name_subject.to_lowercase());
    let mut problems = begun.iter().filter_map(problem_of).filter(|problem| bus::refuses_subscription(problem));
    if let Some(problem) = problems.find(|problem| !is_of_names(problem)) {
        return Err(BusError::Permission { problem });
    }
    let epoch = Instant::now();
    let now = || epoch.elapsed().as_nanos() as u64;
    let (done, mut worked) = unbounded_channel();
    let about = announcement(&options, bus, instance);
    let mut agent = Agent::new(about, options.sandbox, &bus.prefix, bus::server_of(&client));
    let AgentOptions { logs, words, ended: part_ended, samples, .. } = options;
    let mut threads = Threads {
        epoch,
        registry,
        scripts,
        logs,
        words,
        ended: part_ended,
        samples,
        done,
        keeping: Arc::default(),
        current: None,
    };
    said(AgentEvent::Waiting);
    let begun = begun.into_iter().filter_map(|event| bus::event_of(event, &client));
    begun.for_each(|event| agent.bus_said(event));
    while !stop.leaves() && !agent.has_left(now(), threads.keeps()) {
        let patience = Duration::from_nanos(agent.patience_ns());
        let wake = Tick::now() + threads.patience().map_or(patience, |gates| gates.min(patience));
        tokio::select! {
            message = orders.next() => match message {
                Some(message) => {
                    agent.took(threads.taken());
                    agent.receive(&message.payload, now());
                }
                None => return Err(ended(&"the subscription is gone")),
            },
            message = calls.next() => match message {
                Some(message) => {
                    agent.about.load = load_average();
                    agent.receive_call(&message.payload);
                }
                None => return Err(ended(&"the subscription is gone")),
            },
            Some(message) = names.next() => agent.receive_name(&message.payload),
            Some((job, done)) = worked.recv() => take_work(&mut agent, &mut threads, job, done),
            Some(event) = events.recv() => {
                if let Some(event) = bus::event_of(event, &client) {
                    agent.bus_said(event);
                }
            }
            () = sleep_until(wake) => {}
        }
        if stop.is_stopped() {
            agent.leave(now());
        }
        // Everything that came meanwhile is handled as well: one answer acknowledges all of it.
        carry_out(&mut agent, &mut threads);
        while let Ok((job, done)) = worked.try_recv() {
            take_work(&mut agent, &mut threads, job, done);
        }
        count(&mut agent, &threads);
        agent.advance(now());
        carry_out(&mut agent, &mut threads);
        agent.take_events().into_iter().for_each(&mut *said);
        publish(&client, &mut agent).await;
    }
    // Messages that are not on their way by then are given up.
    let _ = tokio::time::timeout(LAST_FLUSH, client.flush()).await;
    Ok(())
}

/// Passes the agent's orders to its machine.
fn carry_out(agent: &mut Agent, threads: &mut Threads) {
    for (job, act) in agent.take_acts() {
        threads.act(job, act);
    }
    threads.look();
}

fn take_work(agent: &mut Agent, threads: &mut Threads, job: Job, done: MachineReport) {
    // The last counts that machines make together are reported before a part is over.
    count(agent, threads);
    if let MachineReport::Ran(_) = &done {
        threads.forget(job);
    }
    agent.worked(job, done);
}

fn count(agent: &mut Agent, threads: &Threads) {
    if let Some(counts) = threads.counts().filter(|_| agent.counts_together()) {
        agent.counted(counts);
    }
}

async fn publish(client: &Client, agent: &mut Agent) {
    for refused in bus::publish(client, agent.take_posted()).await {
        agent.bus_said(refused);
    }
}

/// The agent's announcement, without its owner and the server that it is connected to.
fn announcement(options: &AgentOptions, bus: &Bus, instance: u64) -> Announcement {
    Announcement {
        name: options.name.clone(),
        instance,
        version: options.version.clone(),
        cluster_version: CLUSTER_VERSION,
        cores: options.cores,
        connections: brunt_engine::most_connections(),
        tags: options.tags.clone(),
        busy: None,
        load: load_average(),
        is_private: bus.is_private(),
        server: String::new(),
    }
}

/// The server's complaint, if the event is one.
fn problem_of(event: &Event) -> Option<String> {
    let Event::ServerError(error) = event else { return None };
    Some(error.to_string())
}

/// The machine's load average over a minute.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}
