//! Whole runs on a simulated machine, in simulated time: the engine with every protocol and `LuaJIT`.
#![cfg(test)]

mod addresses;
mod behaviour;
mod changing;
mod edges;
mod growing;
mod http1;
mod http2;
mod keeping;
mod kinds;
mod multiplexed;
mod mutations;
mod outage;
mod pacing;
mod replay;
mod scripted;
mod several_workers;
mod simulation;
mod streams;
mod targets;
mod tcp;
mod thrift;
mod throughput;
mod told;
mod users;
mod websocket;

use std::ops::ControlFlow;
use std::sync::Arc;

use brunt_judge::summary::Summary;
use brunt_plan::plan::{Load, PLAN_VERSION, Plan, ProtocolOptions, Sandbox, StopRule, Transport};
use brunt_plan::target::Url;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::live::Live;
use brunt_record::snapshot::Phase;
use brunt_record::timeline::DuePoint;

use brunt_engine::simulated::{self, Peer, VirtualNet};
use brunt_engine::{Finished, RunShare, StopHandle};
use brunt_lua::LuaJit;
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
        stop: StopRule { duration_ns: Some(SECOND_NS), requests: None },
        warmup_ns: 0,
        timeout_ns: 200 * MS,
        connect_timeout_ns: 100 * MS,
        drain_ns: 200 * MS,
        seed: 1,
        reconnect: false,
        pipeline: 1,
        transport: Transport::default(),
        ok_status: brunt_record::outcome::OkStatus::default(),
        own_times: false,
        own: Vec::new(),
        thresholds: Vec::new(),
        guards: Vec::new(),
        guard_action: brunt_plan::threshold::GuardAction::Stop,
        watches: Vec::new(),
        max_error_rate: brunt_plan::plan::MAX_ERROR_RATE,
        max_less_ratio: brunt_plan::plan::MAX_LESS_RATIO,
        origin: brunt_plan::plan::Origin::default(),
        sandbox: Sandbox::Open,
        environment: brunt_plan::environment::Environment::default(),
    }
}

#[derive(Default)]
struct Seconds {
    shown: Vec<(Phase, u64, u64)>,
    /// The backlog at the end of each, and how long its oldest call had been due.
    backlogs: Vec<(u64, u64)>,
}

impl brunt_engine::Observer for Seconds {
    fn second(
        &mut self,
        live: &Live,
        _so_far: &brunt_engine::RunningTotal<'_>,
    ) -> ControlFlow<brunt_engine::AbortCause> {
        self.shown.push((live.phase, live.length_ns, live.snapshot.statuses.total()));
        self.backlogs.push((live.waiting, live.oldest_ns));
        ControlFlow::Continue(())
    }
}

/// A run's outcome: its figures, and the seconds that were seen live.
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

/// Carries a plan out against `peer`, and checks what must hold for any plan and peer: no call has vanished.
fn carry_out(plan: &Plan, peer: impl Peer) -> Outcome {
    carry_out_on(plan, &VirtualNet::new(peer), &StopHandle::default())
}

fn carry_out_on(plan: &Plan, net: &VirtualNet, stop: &StopHandle) -> Outcome {
    let mut seconds = Seconds::default();
    let summary = judged(run_on(plan, net, stop, &mut seconds));
    check(&summary);
    Outcome { summary, seconds: seconds.shown, backlogs: seconds.backlogs }
}

/// Checks what must hold of any run.
fn check(summary: &Summary) {
    let total = &summary.total;
    assert_eq!(total.numbers.get(Counter::Due), total.ended(), "due is the sum of outcomes: {total:#?}");
    assert_eq!(
        total.times.get(Timing::Response).count(),
        total.numbers.get(Counter::Due),
        "every call has a response time"
    );
    assert_eq!(
        total.statuses.total() + total.failures.total(),
        total.times.known(Timing::Response).count(),
        "calls that ended have one that is known"
    );
    let of = |counter| total.numbers.get(counter);
    let in_time = summary.run.measured.numbers.get(Counter::EndedAnswered);
    let by_second = summary.run.series.points().iter().map(|point| point.numbers.get(Counter::EndedAnswered));
    assert_eq!(by_second.sum::<u64>(), in_time, "each end is in its second");
    assert!(of(Counter::EndedOk) <= of(Counter::EndedAnswered));
    assert!(
        of(Counter::EndedAnswered) <= total.statuses.total() + of(Counter::EndedCarried),
        "what ended in time was due in it, or carried over: {total:#?}"
    );
    let points: Vec<_> = total.timeline.points().map(|(_, point)| point).collect();
    let sum = |count: fn(&DuePoint) -> u64| points.iter().map(|point| count(point)).sum::<u64>();
    assert_eq!(sum(DuePoint::due), total.numbers.get(Counter::Due), "every call is in the point in which it was due");
    assert_eq!(sum(DuePoint::not_ok), summary.not_ok);
    assert_eq!(sum(|point| point.unsent), total.numbers.get(Counter::Unsent));
    assert_eq!(sum(|point| point.response.count()), sum(|point| point.ok));
}

/// A whole run, put together as the real ones are.
fn run_on(plan: &Plan, net: &VirtualNet, stop: &StopHandle, seconds: &mut Seconds) -> Finished {
    let part = RunShare::whole(plan.workers_within_limits());
    mutations::break_what_is_asked();
    simulated::run_part(net, plan, part, &built_in(), &LuaJit, seconds, stop).unwrap()
}

/// A part of a run, with these protocols.
fn run_part_on(
    net: &VirtualNet,
    plan: &Plan,
    part: RunShare,
    registry: &Registry,
    observer: &mut dyn brunt_engine::Observer,
) -> Finished {
    mutations::break_what_is_asked();
    simulated::run_part(net, plan, part, registry, &LuaJit, observer, &StopHandle::default()).unwrap()
}

/// The summary of a finished run.
fn judged(finished: Finished) -> Summary {
    Summary::new(finished.plan, finished.run)
}
