//! Whole workers on a made-up network, in made-up time.

mod behaviour;
mod http1;
mod pacing;
mod tcp;
mod thrift;
mod users;
mod virtual_net;
mod websocket;

use std::sync::Arc;
use std::sync::mpsc::channel;

use brunt_model::live::Live;
use brunt_model::plan::{Load, PLAN_VERSION, Plan, ProtocolOptions, Stop, Transport};
use brunt_model::snapshot::Phase;
use brunt_model::summary::Summary;
use brunt_model::target::Url;

use self::virtual_net::{Peer, VirtualNet};
use super::*;
use crate::coordinator::Coordinator;
use crate::protocol::Registry;
use crate::transport::Address;
use crate::transport::route::Route;
use crate::watchdog::Watchdog;

pub(super) const MS: u64 = 1_000_000;

/// One second of closed-model load on one connection.
fn plan(url: &str) -> Plan {
    Plan {
        version: PLAN_VERSION,
        target: Url::parse(url).unwrap().target,
        protocol: ProtocolOptions::default(),
        script: None,
        scenarios: None,
        connections: 1,
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
    }
}

#[derive(Default)]
struct Seconds(Vec<(Phase, u64, u64)>);

impl crate::Observer for Seconds {
    fn second(&mut self, live: &Live) {
        self.0.push((live.phase, live.length_ns, live.snapshot.statuses.total()));
    }
}

/// What came of a plan: its figures, and the seconds that were seen live.
struct Outcome {
    summary: Summary,
    seconds: Vec<(Phase, u64, u64)>,
}

/// Carries a plan out against `peer`, and checks what must hold for any plan and peer: nothing has vanished.
fn carry_out<P: Peer>(plan: &Plan, peer: P) -> Outcome {
    carry_out_on(plan, VirtualNet::new(peer), &StopHandle::default())
}

fn carry_out_on<P: Peer>(plan: &Plan, net: VirtualNet<P>, stop: &StopHandle) -> Outcome {
    plan.validate().unwrap();
    let registry = Registry::built_in();
    let (protocol, _) = registry.find(&plan.target.scheme).unwrap();
    let shared = Arc::new(crate::scenarios::shared(plan.clone(), protocol.prepare(plan).unwrap(), stop));
    let mut addresses: Vec<_> = plan.transport.addresses.iter().copied().map(Address::Tcp).collect();
    if addresses.is_empty() {
        addresses.push(Address::Tcp("127.0.0.1:80".parse().unwrap()));
    }
    let route = Route { addresses, sources: Vec::new(), tls: None };
    let (sender, reports) = channel();
    let user = shared.prepared.user();
    let (origins, source) = (Origins::of_flood(route), Source::Calls(user));
    Worker::new(shared, net, origins, 0, plan.connections as usize, source, sender).run().map(drop).unwrap();
    let mut seconds = Seconds::default();
    let run =
        Coordinator::new(plan, &mut seconds, &mut Watchdog::default(), &StopHandle::default()).gather(&reports, 0);
    let summary = Summary::of(run);
    let total = &summary.total;
    assert_eq!(total.due, total.ended(), "due is the sum of outcomes: {total:#?}");
    assert_eq!(total.response.count(), total.due, "every call has a response time");
    assert_eq!(
        total.statuses.total() + total.failures.total(),
        total.response.known.count(),
        "calls that ended have one that is known"
    );
    Outcome { summary, seconds: seconds.0 }
}
