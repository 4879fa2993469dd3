//! Throughput is by when calls ended: calls of the warm-up that end in the measured time are in it, and in no other figure.

use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::series::Point;
use brunt_record::snapshot::Phase;

use super::streams::{END, HEAD, event, stream, streaming};
use super::{MS, SECOND_NS, StopHandle, carry_out, carry_out_on, plan};
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

const URL: &str = "http://127.0.0.1/";
pub(super) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A target with one server: it answers one call after the other, each after `takes_ns`.
pub(super) struct Queue {
    takes_ns: u64,
    free_at: u64,
}

impl Queue {
    pub(super) const fn taking(takes_ns: u64) -> Self {
        Self { takes_ns, free_at: 0 }
    }
}

impl Peer for Queue {
    fn received(&mut self, _connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        let mut answer = || {
            self.free_at = self.free_at.max(now.ns()) + self.takes_ns;
            (self.free_at - now.ns(), Act::Send(ANSWER.to_vec()))
        };
        (0..requests).map(|_| answer()).collect()
    }
}

/// A target that answers every call after a fixed time.
pub(super) struct After(pub(super) u64);

impl Peer for After {
    fn received(&mut self, _connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        (0..requests).map(|_| (self.0, Act::Send(ANSWER.to_vec()))).collect()
    }
}

fn with_warm_up(warmup_ms: u64, seconds: u64) -> Plan {
    Plan {
        warmup_ns: warmup_ms * MS,
        stop: StopRule { duration_ns: Some(seconds * SECOND_NS), requests: None },
        timeout_ns: 20 * SECOND_NS,
        ..plan(URL)
    }
}

fn open(rate: &str, plan: Plan) -> Plan {
    Plan {
        load: Load::Open { profile: rate.parse().unwrap(), arrivals: Spread::Uniform },
        connections: 3000.into(),
        ..plan
    }
}

fn ended(summary: &Summary) -> [u64; 4] {
    [Counter::EndedOk, Counter::EndedAnswered, Counter::EndedCarried, Counter::CarriedUnderWay]
        .map(|counter| summary.total.numbers.get(counter))
}

/// Twice as many calls are due as the target answers: from the warm-up on it has a backlog.
#[test]
fn a_backlog_of_the_warm_up_takes_no_answer_from_the_rate() {
    let plan = Plan {
        thresholds: vec!["rate>=249".parse().unwrap(), "rate<=251".parse().unwrap()],
        max_error_rate: 1.0,
        ..open("500", with_warm_up(1500, 3))
    };
    let outcome = carry_out(&plan, Queue::taking(4 * MS));
    let summary = &outcome.summary;
    assert_eq!(summary.total.due(), 1500, "due is of the measured time alone");
    assert!((summary.rates.ok_per_s - 250.0).abs() < 1.0, "{:?}", summary.rates);
    for point in summary.run.series.points() {
        assert!((point.ok_per_s() - 250.0).abs() <= 1.0, "each second has its answers: {}", point.ok_per_s());
    }
    let written = summary.thresholds.iter().take(2);
    assert!(written.clone().all(|threshold| threshold.held), "{:?}", summary.thresholds);
    // 375 of the 750 calls of the warm-up ended in it, the others in the measured time.
    let [ok, answered, carried, under_way] = ended(summary);
    assert!(ok == answered && carried.abs_diff(375) <= 2 && under_way == 0, "{:?}", ended(summary));
    let by_due = answered - carried + summary.run.drained.statuses.total();
    assert!(summary.total.statuses.total().abs_diff(by_due) <= 1, "one may arrive as the measured time ends");
    // Live, too, each second of the measured part has 250 answers. By due the first one has 0.
    let measured: Vec<_> = outcome.seconds.iter().filter(|(phase, ..)| *phase == Phase::Measured).collect();
    assert_eq!(measured.first().map(|second| second.2), Some(0));
}

/// 20 connections have an answer each 300 ms: in the measured time, from 0.5 s to 2.5 s, at 0.6, 0.9, … 2.4 s.
#[test]
fn long_answers_count_when_they_end() {
    let plan = Plan { connections: 20.into(), ..with_warm_up(500, 2) };
    let summary = carry_out(&plan, After(300 * MS)).summary;
    let [ok, _, carried, _] = ended(&summary);
    assert_eq!((ok, carried), (140, 20));
    assert!((summary.rates.ok_per_s - 70.0).abs() < 1e-9);
    // The calls of 0.3 s began in the warm-up, and are in no count by due and no response time.
    assert_eq!(summary.total.due(), 140);
    assert_eq!(summary.total.times.get(Timing::Response).count(), 140);
}

#[test]
fn without_a_warm_up_what_ends_in_the_drain_is_in_no_rate() {
    let plan = Plan { connections: 20.into(), drain_ns: SECOND_NS, ..with_warm_up(0, 1) };
    let summary = carry_out(&plan, After(300 * MS)).summary;
    assert_eq!((ended(&summary)[0], summary.total.statuses.total()), (60, 80));
    assert!((summary.rates.ok_per_s - 60.0).abs() < 1e-9);
}

#[test]
fn the_interval_reaches_to_the_calls_in_flight() {
    let plan = Plan { connections: 20.into(), drain_ns: SECOND_NS, ..with_warm_up(0, 6) };
    let summary = carry_out(&plan, After(700 * MS)).summary;
    let (rates, in_flight) = (summary.rates, 20.0);
    assert!(rates.ok_high_per_s.unwrap() >= rates.ok_per_s + in_flight / 6.0 - 1e-9, "{rates:?}");
    assert!(rates.ok_low_per_s.unwrap() >= 0.0);
}

#[test]
fn where_warm_up_calls_outlast_the_window_nothing_was_due() {
    let plan = Plan { connections: 3.into(), drain_ns: 100 * MS, ..with_warm_up(1000, 1) };
    let summary = carry_out(&plan, After(5 * SECOND_NS)).summary;
    assert_eq!((summary.total.due(), ended(&summary)), (0, [0, 0, 0, 3]));
    assert!(!summary.has_only_carried());
}

#[test]
fn a_number_of_calls_leaves_those_of_the_warm_up_out() {
    let stop = StopRule { duration_ns: None, requests: Some(200) };
    let plan = Plan { connections: 50.into(), stop, ..with_warm_up(500, 1) };
    let summary = carry_out(&plan, After(400 * MS)).summary;
    let [ok, _, carried, _] = ended(&summary);
    assert_eq!((summary.total.due(), ok, carried), (200, 250, 50));
    let seconds = summary.run.measured_ns as f64 / 1e9;
    assert!((summary.rates.ok_per_s - 250.0 / seconds).abs() < 1e-6);
}

/// A worker that stands still over the end of the warm-up, over the end of a second and over that of the run.
#[test]
fn an_answer_counts_in_the_second_in_which_it_arrived() {
    let plan = open("500", with_warm_up(1000, 4));
    let began = first_call_at(&plan);
    for (from_ms, still_ms) in [(800, 500), (1900, 300), (4900, 300)] {
        let net = VirtualNet::new(After(2 * MS)).standing_still(Tick::from_ns(began + from_ms * MS), still_ms * MS);
        let summary = carry_out_on(&plan, &net, &StopHandle::default()).summary;
        let rates: Vec<_> = summary.run.series.points().iter().map(Point::ok_per_s).collect();
        // What is sent late arrives late: of a second, at most the calls due while the worker stood still.
        let late = still_ms as f64 / 1000.0 * 500.0 + 5.0;
        assert!(rates.iter().all(|rate| (rate - 500.0).abs() <= late), "{from_ms}: {rates:?}");
        let all: f64 = rates.iter().sum();
        assert!((all / 4.0 - summary.rates.ok_per_s).abs() < 1e-6, "seconds add up to the total: {rates:?}");
    }
}

/// When the first call arrives at the target, in simulated time.
fn first_call_at(plan: &Plan) -> u64 {
    struct First(std::sync::Arc<std::sync::Mutex<Option<u64>>>);
    impl Peer for First {
        fn received(&mut self, _connection: u64, _bytes: &[u8], now: Tick) -> Reaction {
            self.0.lock().unwrap().get_or_insert(now.ns());
            Reaction::default()
        }
    }
    let seen = std::sync::Arc::default();
    carry_out(plan, First(std::sync::Arc::clone(&seen)));
    let first = seen.lock().unwrap();
    first.unwrap()
}

/// Streams of 100 messages, 40 ms apart, which the warm-up begins and the measured time does not see end.
#[test]
fn messages_count_whenever_their_stream_was_opened() {
    let mut acts: Vec<_> = (1..=100).map(|n| (n * 40 * MS, event("token"))).collect();
    acts.insert(0, (MS, HEAD.to_owned()));
    acts.push((4010 * MS, event("[DONE]") + END));
    let plan = Plan { connections: 2.into(), drain_ns: 100 * MS, ..with_warm_up(1000, 2) };
    let plan = Plan { protocol: streaming(Some("[DONE]")), ..plan };
    let summary = carry_out(&plan, stream(acts)).summary;
    assert_eq!(summary.total.due(), 0);
    // 25 a second on each of two connections.
    assert!((summary.rates.messages_per_s - 50.0).abs() <= 1.0, "{}", summary.rates.messages_per_s);
    assert_eq!(summary.total.messages().count(), 0, "they are in no other figure");
    assert!(summary.has_only_carried());
    assert_eq!(ended(&summary), [0, 0, 0, 2]);
}
