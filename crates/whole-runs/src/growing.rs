//! Connections that grow with a rate.

use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;

use super::{MS, SECOND_NS, StopHandle, carry_out, carry_out_on, plan};
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A target with a fixed time for accepting and for answering, a limit of connections, and perhaps an outage.
struct Target {
    accepts_ns: u64,
    takes_ns: u64,
    accepts: usize,
    away: std::ops::Range<u64>,
}

impl Target {
    fn taking(takes_ns: u64) -> Self {
        Self { accepts_ns: 50_000, takes_ns, accepts: usize::MAX, away: 0..0 }
    }
}

impl Peer for Target {
    fn connecting(&mut self, now: Tick) -> Reaction {
        if self.accepts == 0 || self.away.contains(&now.ns()) {
            return vec![(self.accepts_ns, Act::Refuse)];
        }
        self.accepts -= 1;
        vec![(self.accepts_ns, Act::Accept)]
    }

    fn received(&mut self, _connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let stalled = if self.away.contains(&now.ns()) { self.away.end - now.ns() } else { 0 };
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        (0..requests).map(|_| (stalled + self.takes_ns, Act::Send(ANSWER.to_vec()))).collect()
    }
}

fn at_rate(rate: &str, most: u32) -> Plan {
    Plan {
        load: Load::Open { profile: rate.parse().unwrap(), arrivals: Spread::Uniform },
        stop: StopRule { duration_ns: Some(5 * SECOND_NS), requests: None },
        connections: Connections::UpTo(most),
        timeout_ns: 10 * SECOND_NS,
        drain_ns: 10 * SECOND_NS,
        ..plan("http://127.0.0.1/")
    }
}

fn made(summary: &Summary) -> u64 {
    summary.total.numbers.get(Counter::ConnectionsMade)
}

#[test]
fn a_rate_has_as_many_connections_as_it_takes() {
    for workers in [1, 2, 3] {
        let plan = Plan { workers, ..at_rate("2000", 1000) };
        let summary = carry_out(&plan, Target::taking(80 * MS)).summary;
        assert_eq!((summary.total.numbers.get(Counter::Due), summary.not_ok), (10_000, 0));
        // 2,000 a second for 80 ms each: 160 in flight, and one more a worker for the call about to be sent.
        assert!((160..=170).contains(&made(&summary)), "{} on {workers} workers", made(&summary));
        let slowest = summary.times.response.unwrap().max.value;
        assert!(slowest <= 83 * MS, "a call waits for a connection that is made, and no longer: {slowest}");
    }
}

#[test]
fn a_fast_target_needs_no_more_than_the_first() {
    let summary = carry_out(&at_rate("100", 1000), Target::taking(MS)).summary;
    assert_eq!((made(&summary), summary.not_ok), (4, 0));
}

#[test]
fn connections_grow_as_the_rate_does() {
    let summary = carry_out(&at_rate("100..3000/5s", 1000), Target::taking(50 * MS)).summary;
    assert_eq!(summary.not_ok, 0);
    assert!((145..=160).contains(&made(&summary)), "{}", made(&summary));
    assert!(summary.times.lag.unwrap().max.value == 0, "what waits for a connection waits for the target");
}

/// A call takes the first free connection, whether that is an old one or a new one.
#[test]
fn a_waiting_call_takes_what_comes_first() {
    // Accepting takes a second, an answer 20 ms: the first four connections serve 200 a second, and 250 are due.
    let target = Target { accepts_ns: SECOND_NS, ..Target::taking(20 * MS) };
    let plan = Plan { connect_timeout_ns: 5 * SECOND_NS, ..at_rate("250", 1000) };
    let summary = carry_out(&plan, target).summary;
    assert_eq!(summary.not_ok, 0);
    let slowest = summary.times.response.unwrap().max.value;
    assert!(slowest < 500 * MS, "nobody waits a second for a connection of its own: {slowest}");
}

#[test]
fn growth_stops_at_its_limit() {
    let summary = carry_out(&at_rate("2000", 64), Target::taking(80 * MS)).summary;
    assert_eq!(made(&summary), 64);
    assert!(
        summary.total.numbers.get(Counter::WaitedForConnection) > 5000
            && summary.total.numbers.get(Counter::Unsent) > 1000
    );
}

/// 20,000 calls are due while the target does not answer: each waits, and gets a connection in its turn.
#[test]
fn a_stall_opens_no_flood_of_connections() {
    struct Silent {
        connecting: usize,
        most: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    }
    impl Peer for Silent {
        fn connecting(&mut self, _now: Tick) -> Reaction {
            self.connecting += 1;
            self.most.store(self.connecting, std::sync::atomic::Ordering::Relaxed);
            vec![]
        }
        fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
            vec![]
        }
    }
    let most = std::sync::Arc::default();
    let target = Silent { connecting: 0, most: std::sync::Arc::clone(&most) };
    let plan = Plan { connect_timeout_ns: 60 * SECOND_NS, drain_ns: SECOND_NS, ..at_rate("4000", 20_000) };
    let summary = carry_out(&plan, target).summary;
    // The outcome of its calls is unknown.
    let numbers = &summary.total.numbers;
    let [due, unfinished, unsent] = [Counter::Due, Counter::Unfinished, Counter::Unsent].map(|of| numbers.get(of));
    assert_eq!((due, unfinished, unsent), (20_000, 20_000, 0));
    let begun = most.load(std::sync::atomic::Ordering::Relaxed);
    assert!(begun <= 128, "{begun} at once");
}

#[test]
fn a_target_that_takes_no_more_connections_costs_no_call() {
    let target = Target { accepts: 60, ..Target::taking(40 * MS) };
    let summary = carry_out(&at_rate("1600/1s,1000/4s", 1000), target).summary;
    assert_eq!((made(&summary), summary.not_ok), (60, 0));
    assert!(
        summary.total.numbers.get(Counter::ConnectionsFailed) <= 20,
        "asked ten times a second while connections are short: {}",
        summary.total.numbers.get(Counter::ConnectionsFailed)
    );
    assert!(summary.total.troubles.count(Failure::Connect) > 0, "{:?}", summary.total.troubles);
}

#[test]
fn each_call_asks_a_target_that_is_away() {
    let away = 2 * SECOND_NS..4 * SECOND_NS;
    let target = || Target { away: away.clone(), ..Target::taking(10 * MS) };
    let growing = carry_out(&Plan { reconnect: true, ..at_rate("400", 1000) }, target()).summary;
    let failed = growing.total.numbers.get(Counter::ConnectionsFailed);
    assert_eq!((failed, growing.total.failures.count(Failure::Connect)), (800, 800), "for 2 s of 5");
    assert_eq!(growing.total.statuses.total(), 1200, "it came back");
}

#[test]
fn each_call_can_have_a_connection_of_its_own() {
    let plan = Plan { reconnect: true, ..at_rate("2000", 1000) };
    let summary = carry_out(&plan, Target::taking(80 * MS)).summary;
    assert_eq!((summary.not_ok, made(&summary)), (0, 10_000));
    assert!(summary.times.response.unwrap().max.value < 85 * MS);
    let open = summary.run.series.points().iter().filter_map(|point| point.open_connections).max();
    assert!(open.is_some_and(|open| (155..=165).contains(&open)), "{open:?}");
}

#[test]
fn pipelined_calls_share_connections() {
    let plan = Plan { pipeline: 8, ..at_rate("2000", 1000) };
    let summary = carry_out(&plan, Target::taking(80 * MS)).summary;
    assert_eq!((summary.not_ok, made(&summary)), (0, 21), "of 8 calls each, and one more");
}

/// A worker that wakes late finds a burst of calls, which its connections soon carry: that is no shortage of
/// connections.
#[test]
fn a_late_generator_does_not_ask_for_connections() {
    let net = VirtualNet::new(Target::taking(100_000)).oversleeping(7 * MS);
    let summary = carry_out_on(&at_rate("1000", 1000), &net, &StopHandle::default()).summary;
    assert_eq!(summary.not_ok, 0);
    assert!(made(&summary) <= 20, "{}", made(&summary));
}

#[test]
fn a_generator_that_stood_still_does_not_ask_for_connections() {
    let net = VirtualNet::new(Target::taking(100_000)).standing_still(Tick::from_ns(4 * SECOND_NS), 300 * MS);
    let summary = carry_out_on(&at_rate("1000", 1000), &net, &StopHandle::default()).summary;
    assert_eq!((summary.not_ok, made(&summary)), (0, 10));
    assert_eq!(summary.times.response.unwrap().max.value, 100_000);
}

#[test]
fn a_warm_up_leaves_its_connections() {
    let plan = Plan { warmup_ns: SECOND_NS, ..at_rate("2000", 1000) };
    let summary = carry_out(&plan, Target::taking(80 * MS)).summary;
    assert_eq!((summary.not_ok, summary.total.numbers.get(Counter::WaitedForConnection)), (0, 0));
}
