//! Whole runs on a made-up machine, in made-up time.

mod behaviour;
mod growing;
mod http1;
mod http2;
mod keeping;
mod multiplexed;
mod pacing;
mod scripted;
mod several_workers;
mod streams;
mod takeover;
mod targets;
mod tcp;
mod thrift;
mod users;
mod virtual_net;
mod websocket;

use std::sync::Arc;
use std::time::{Duration, Instant};

use brunt_model::SECOND_NS;
use brunt_model::live::Live;
use brunt_model::plan::{Load, PLAN_VERSION, Plan, ProtocolOptions, Sandbox, Stop, Transport};
use brunt_model::snapshot::Phase;
use brunt_model::summary::{Run, Summary};
use brunt_model::target::Url;

use self::virtual_net::{Peer, VirtualNet};
use crate::StopHandle;
use crate::run::{self, Given};
use crate::transport::Machine as _;
use crate::{Gate, Part};
use brunt_protocol::Registry;

const MS: u64 = 1_000_000;

/// One second of closed-model load on one connection.
fn plan(url: &str) -> Plan {
    Plan {
        version: PLAN_VERSION,
        target: Url::parse(url).unwrap().target,
        protocol: ProtocolOptions::default(),
        script: None,
        scenarios: None,
        connections: 1.into(),
        workers: 1,
        load: Load::Closed {},
        stop: Stop { duration_ns: Some(SECOND_NS), requests: None },
        warmup_ns: 0,
        timeout_ns: 200 * MS,
        connect_timeout_ns: 100 * MS,
        drain_ns: 200 * MS,
        seed: 1,
        reconnect: false,
        pipeline: 1,
        transport: Transport::default(),
        ok_status: brunt_model::outcome::OkStatus::default(),
        thresholds: Vec::new(),
        origin: brunt_model::plan::Origin::default(),
        sandbox: Sandbox::Open,
        environment: brunt_model::environment::Environment::default(),
    }
}

#[derive(Default)]
struct Seconds {
    shown: Vec<(Phase, u64, u64)>,
    /// The backlog at the end of each, and how long its oldest call had been due.
    backlogs: Vec<(u64, u64)>,
}

impl crate::Observer for Seconds {
    fn second(&mut self, live: Live) {
        self.shown.push((live.phase, live.length_ns, live.snapshot.statuses.total()));
        self.backlogs.push((live.waiting, live.oldest_ns));
    }
}

/// An open gate of a part on this machine, with a lease for so long.
fn leased(net: &VirtualNet<impl Peer>, lease: Duration) -> Gate {
    let gate = Gate::default();
    gate.keep_time(net.clock());
    gate.open_at(Instant::now());
    gate.renew(Instant::now() + lease);
    gate
}

/// What came of a plan: its figures, and the seconds that were seen live.
struct Outcome {
    summary: Summary,
    seconds: Vec<(Phase, u64, u64)>,
    backlogs: Vec<(u64, u64)>,
}

/// The protocols that the binary has.
fn built_in() -> Registry {
    let mut registry = Registry::default();
    registry.register(brunt_tcp::Tcp);
    registry.register(brunt_grpc::Grpc);
    registry.register(brunt_thrift::Thrift);
    registry.register(brunt_websocket::WebSocket);
    registry.register(brunt_http1::Http1);
    registry
}

/// Carries a plan out against `peer`, and checks what must hold for any plan and peer: nothing has vanished.
fn carry_out<P: Peer>(plan: &Plan, peer: P) -> Outcome {
    carry_out_on(plan, &VirtualNet::new(peer), &StopHandle::default())
}

fn carry_out_on<P: Peer>(plan: &Plan, net: &VirtualNet<P>, stop: &StopHandle) -> Outcome {
    let mut seconds = Seconds::default();
    let summary = Summary::of(run_on(plan, net, stop, &mut seconds));
    let total = &summary.total;
    assert_eq!(total.due, total.ended(), "due is the sum of outcomes: {total:#?}");
    assert_eq!(total.response.count(), total.due, "every call has a response time");
    assert_eq!(
        total.statuses.total() + total.failures.total(),
        total.response.known.count(),
        "calls that ended have one that is known"
    );
    Outcome { summary, seconds: seconds.shown, backlogs: seconds.backlogs }
}

/// A whole run, put together as the real ones are.
fn run_on<P: Peer>(plan: &Plan, net: &VirtualNet<P>, stop: &StopHandle, seconds: &mut Seconds) -> Run {
    let registry = built_in();
    run::run(
        plan,
        Given { machine: net, part: Part::whole(plan.workers), registry: &registry, stop, trace: None },
        seconds,
    )
    .map(|done| done.run)
    .unwrap()
}
