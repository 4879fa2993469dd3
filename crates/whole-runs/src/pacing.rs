//! When calls are sent, and where their times begin.

use brunt_judge::remarks::About;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::snapshot::Phase;

use super::{MS, SECOND_NS, StopHandle, carry_out, carry_out_on, plan};
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

const URL: &str = "http://127.0.0.1/";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A target that answers after a fixed time, and not at all for `stall_ns` in the middle of every `period_ns`: it
/// answers those requests afterwards.
struct Target {
    takes_ns: u64,
    stall_ns: u64,
    period_ns: u64,
    began: Option<u64>,
}

impl Target {
    fn taking(takes_ns: u64) -> Self {
        Self { takes_ns, stall_ns: 0, period_ns: u64::MAX, began: None }
    }
}

impl Peer for Target {
    fn received(&mut self, _connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let began = *self.began.get_or_insert(now.ns());
        let (within, stall_begins) = ((now.ns() - began) % self.period_ns, self.period_ns / 2);
        let stall = stall_begins..stall_begins + self.stall_ns;
        let stalled = if stall.contains(&within) { stall.end - within } else { 0 };
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        (0..requests).map(|_| (stalled + self.takes_ns, Act::Send(ANSWER.to_vec()))).collect()
    }
}

fn open(profile: &str, connections: u32) -> Plan {
    Plan {
        load: Load::Open { profile: profile.parse().unwrap(), arrivals: Spread::Uniform },
        stop: StopRule { duration_ns: Some(10 * SECOND_NS), requests: None },
        connections: connections.into(),
        timeout_ns: 10 * SECOND_NS,
        drain_ns: 10 * SECOND_NS,
        ..plan(URL)
    }
}

#[test]
fn every_intended_start_is_kept_and_in_time() {
    let summary = carry_out(&open("2000", 64), Target::taking(MS)).summary;
    assert_eq!((summary.total.numbers.get(Counter::Due), summary.total.statuses.total()), (20_000, 20_000));
    assert_eq!(summary.times.lag.unwrap().max.value, 0);
    assert_eq!(summary.times.response.unwrap().max.value, MS);
    assert!((summary.rates.answered_per_s - 2000.0).abs() < 1.0);
}

#[test]
fn a_stall_counts_for_every_call_that_was_due_in_it() {
    let stalling = || Target { takes_ns: MS, stall_ns: SECOND_NS, period_ns: 5 * SECOND_NS, began: None };
    let summary = carry_out(&open("1000", 64), stalling()).summary;
    assert_eq!(summary.total.statuses.total(), 10_000);
    // A fifth of all calls is due in a stall, and waits for what is left of it: evenly between nothing and one second.
    // With 64 connections the rest of them wait for a connection; then all go out as fast as the target answers.
    let backlog_ns = |waiting: f64| waiting * (MS as f64) / 64.0;
    let response = &summary.total.times.get(Timing::Response);
    for (q, left) in [(0.85, 0.25), (0.9, 0.5), (0.95, 0.75), (0.99, 0.95)] {
        let expected = left * SECOND_NS as f64 + backlog_ns(1000.0 * (1.0 - left));
        let got = response.quantile(q).unwrap().value as f64;
        assert!((got / expected - 1.0).abs() < 0.05, "p{}: {got} against {expected}", q * 100.0);
    }
    assert!(summary.total.numbers.get(Counter::WaitedForConnection) > 1500);
    assert!(summary.verdict.is_trustworthy(), "a slow target is no slow generator: {:?}", summary.verdict);
    // The closed model sees two slow calls for each connection, and its percentiles look good.
    let mut closed = open("1000", 64);
    closed.load = Load::Closed {};
    let summary = carry_out(&closed, stalling()).summary;
    assert_eq!(summary.total.times.get(Timing::Response).quantile(0.99).unwrap().value / MS, 1);
}

/// A call that is due in a stall waits for what is left of it.
#[test]
fn points_by_due_time_have_the_shape_of_a_stall() {
    let stalling = Target { takes_ns: MS, stall_ns: SECOND_NS, period_ns: 5 * SECOND_NS, began: None };
    let summary = carry_out(&open("1000", 2000), stalling).summary;
    let mut points = 0;
    for (start, point) in summary.total.timeline.points() {
        // A call that is due where two points meet may fall into either.
        assert!(point.due() == point.ok && (99..=101).contains(&point.due()), "{point:?}");
        let within = start % (5 * SECOND_NS);
        let left = (3_500 * MS).checked_sub(within).filter(|left| *left <= SECOND_NS).unwrap_or(0);
        // The first call of the point waits longest.
        let expected = left + MS;
        let longest = point.longest_ns();
        assert!(longest.abs_diff(expected) * 50 <= expected, "{start}: {longest} against {expected}");
        points += 1;
    }
    assert_eq!(points, 100);
    let freezes: Vec<_> = summary.remarks.iter().filter(|remark| remark.about == About::Freeze).collect();
    let found: Vec<_> = freezes.iter().map(|freeze| (freeze.from_ns, freeze.to_ns)).collect();
    let at = |tenths: u64| Some(tenths * 100 * MS);
    assert_eq!(found, [(at(26), at(35)), (at(76), at(85))], "{:?}", summary.remarks);
    assert!(freezes.iter().all(|freeze| (980..=1000).contains(&freeze.calls.unwrap())), "{freezes:?}");
    assert!(freezes[0].message.to_string().contains("waited up to 1.0s"), "{}", freezes[0].message);
    // The closed model makes no calls in it, and sees it all the same.
    let mut closed = open("1000", 64);
    closed.load = Load::Closed {};
    let stalling = Target { takes_ns: MS, stall_ns: SECOND_NS, period_ns: 5 * SECOND_NS, began: None };
    let summary = carry_out(&closed, stalling).summary;
    let found: Vec<_> = summary.remarks.iter().filter(|remark| remark.about == About::Freeze).collect();
    assert_eq!(
        found.iter().map(|freeze| (freeze.from_ns, freeze.calls)).collect::<Vec<_>>(),
        [(at(26), Some(64)), (at(76), Some(64))]
    );
}

#[test]
fn a_steady_target_has_no_freeze_and_no_overload() {
    for (profile, takes) in [("5", MS), ("50", 300 * MS), ("1000", 5 * MS), ("200", 900 * MS)] {
        let summary = carry_out(&open(profile, 2000), Target::taking(takes)).summary;
        let remarks: Vec<_> = summary.remarks.iter().filter(|remark| remark.about != About::CutOff).collect();
        assert!(remarks.is_empty(), "{profile} {takes}: {remarks:?}");
    }
    for (connections, takes) in [(1, 400 * MS), (1, MS), (8, 300 * MS), (64, 20 * MS)] {
        let mut closed = open("1", connections);
        closed.load = Load::Closed {};
        let summary = carry_out(&closed, Target::taking(takes)).summary;
        assert_eq!(summary.remarks, [], "{connections} {takes}");
    }
}

/// During a stall there are no answers or fast ones; the backlog shows nevertheless.
#[test]
fn a_stall_is_seen_while_it_goes_on() {
    let stalling = Target { takes_ns: MS, stall_ns: SECOND_NS, period_ns: 5 * SECOND_NS, began: None };
    let backlogs = carry_out(&open("1000", 64), stalling).backlogs;
    // It begins at 2.5 s: of 500 calls due until 3 s, 64 are in flight.
    let [before, during, after] = [1, 2, 4].map(|second| backlogs[second]);
    assert!((430..=440).contains(&during.0), "{backlogs:?}");
    assert!(during.1.abs_diff(SECOND_NS / 2) < 10 * MS, "{backlogs:?}");
    for (waiting, oldest_ns) in [before, after] {
        assert!(waiting <= 2 && oldest_ns <= 2 * MS, "{backlogs:?}");
    }
    // A closed load has no backlog, and a connection waits for its answer.
    let mut closed = open("1000", 4);
    closed.load = Load::Closed {};
    let stalling = Target { takes_ns: MS, stall_ns: SECOND_NS, period_ns: 5 * SECOND_NS, began: None };
    let backlogs = carry_out(&closed, stalling).backlogs;
    assert!(backlogs.iter().all(|(waiting, _)| *waiting == 0), "{backlogs:?}");
    assert!(backlogs[2].1.abs_diff(SECOND_NS / 2) < 10 * MS, "{backlogs:?}");
}

#[test]
fn a_late_generator_loses_no_start_and_owns_up() {
    let net = VirtualNet::new(Target::taking(MS)).oversleeping(7 * MS);
    let summary = carry_out_on(&open("1000", 64), &net, &StopHandle::default()).summary;
    assert_eq!(summary.total.statuses.total(), 10_000);
    let lag = summary.times.lag.unwrap();
    assert!(lag.max.value >= 6 * MS && lag.max.value <= 8 * MS, "{lag:?}");
    // The network's time is known to the nanosecond, however late the answer was read.
    let service = summary.times.service.as_ref().unwrap();
    assert_eq!((service.min, service.max.value), (MS, MS));
    assert!(summary.total.times.known(Timing::Service).max().unwrap() > 2 * MS, "as read it is longer");
    // The time of a call sent in time is not known: this one was sent up to 7 ms late.
    let p99 = summary.times.response.as_ref().unwrap().quantiles[4].interval.unwrap();
    assert!(p99.instrument_low_ns / 10_000 == MS / 10_000 && p99.instrument_high_ns.unwrap() > 6 * MS, "{p99:?}");
    assert_eq!(summary.total.numbers.get(Counter::ArrivalsTimed), 10_000);
    assert!(!summary.verdict.is_trustworthy());
    assert!(summary.verdict.sentence.to_string().contains("sent late"), "{}", summary.verdict.sentence);
}

/// A burst of calls that brunt itself made late waits for connections for brunt's sake, too.
#[test]
fn a_generator_that_stood_still_blames_no_target() {
    for (connections, takes_ns) in [(4, MS / 10), (64, MS / 10), (64, 50 * MS)] {
        let net = VirtualNet::new(Target::taking(takes_ns)).standing_still(Tick::from_ns(4 * SECOND_NS), 300 * MS);
        let mut plan = open("1000", connections);
        plan.stop.duration_ns = Some(5 * SECOND_NS);
        let summary = carry_out_on(&plan, &net, &StopHandle::default()).summary;
        let seen = format!("{connections} connections, {takes_ns} ns");
        assert_eq!(summary.total.statuses.total(), 5000, "{seen}");
        assert_eq!(summary.times.response.as_ref().unwrap().max.value, takes_ns, "{seen}");
        assert_eq!(summary.total.numbers.get(Counter::WaitedForConnection), 0, "{seen}");
        let lag = summary.times.lag.as_ref().unwrap();
        assert!(lag.max.value >= 299 * MS, "{seen}: {lag:?}");
        assert!(summary.verdict.sentence.to_string().contains("sent late"), "{seen}: {}", summary.verdict.sentence);
    }
}

/// Connections are there before the load is, so that no call waits for one because the load itself began late.
#[test]
fn a_load_that_begins_late_waits_for_no_connection() {
    for (workers, warmup_ns) in [(1, 0), (1, SECOND_NS), (2, 0), (2, SECOND_NS)] {
        let late = VirtualNet::new(Target::taking(MS)).oversleeping(7 * MS);
        let plan = Plan { workers, warmup_ns, ..open("1000", 64) };
        let summary = carry_out_on(&plan, &late, &StopHandle::default()).summary;
        assert_eq!(
            summary.total.numbers.get(Counter::WaitedForConnection),
            0,
            "{workers} workers, warmed up for {warmup_ns} ns"
        );
        let response = summary.times.response.unwrap();
        assert_eq!(response.max.value, MS, "{workers} workers, warmed up for {warmup_ns} ns");
    }
}

/// A target that no earlier call can have kept busy answers a late call as it would have answered one in time.
#[test]
fn a_late_call_to_an_idle_target_leaves_nothing_open() {
    // One call in 20 ms, each up to 7 ms late, and answered in 1 ms.
    let late = || VirtualNet::new(Target::taking(MS)).oversleeping(7 * MS);
    let interval = |plan: &Plan| {
        let summary = carry_out_on(plan, &late(), &StopHandle::default()).summary;
        assert!(summary.times.lag.unwrap().max.value > 5 * MS);
        summary.times.response.unwrap().quantiles[4].interval.unwrap()
    };
    let alone = interval(&Plan { workers: 1, ..open("50", 4) });
    assert_eq!(
        (alone.instrument_low_ns / 10_000, alone.instrument_high_ns.unwrap() / 10_000),
        (MS / 10_000, MS / 10_000)
    );
    // A worker knows nothing of another worker's calls.
    let beside_another = interval(&Plan { workers: 2, ..open("50", 4) });
    assert!(beside_another.instrument_high_ns.unwrap() > 5 * MS, "{beside_another:?}");
}

#[test]
fn what_was_never_sent_is_counted_with_its_lower_bound() {
    // One connection, 100 ms a call: ten a second of the hundred that are due.
    let plan = Plan { drain_ns: SECOND_NS, ..open("100", 1) };
    let summary = carry_out(&plan, Target::taking(100 * MS)).summary;
    assert_eq!(summary.total.numbers.get(Counter::Due), 1000);
    assert!(summary.total.numbers.get(Counter::Unsent) >= 899, "{}", summary.total.numbers.get(Counter::Unsent));
    assert_eq!(summary.run.series.points().len(), 10, "they belong to the last second");
    let response = summary.times.response.unwrap();
    let p99 = &response.quantiles[4];
    assert!(p99.at_least && p99.value_ns > 8 * SECOND_NS, "{p99:?}");
    assert!(!response.quantiles[0].at_least || response.quantiles[0].value_ns > 0);
    assert!(summary.error_rate > 0.89);
}

#[test]
fn a_warm_up_is_seen_and_not_counted() {
    let mut plan = plan(URL);
    plan.warmup_ns = 2500 * MS;
    plan.stop.duration_ns = Some(2 * SECOND_NS);
    let outcome = carry_out(&plan, Target::taking(MS));
    assert_eq!(outcome.summary.total.numbers.get(Counter::Due), 2000);
    assert_eq!(outcome.summary.run.measured_ns, 2 * SECOND_NS);
    assert_eq!(outcome.summary.times.connect.unwrap().count, 1, "how connections were made is kept");
    let warm: Vec<_> = outcome.seconds.iter().filter(|(phase, ..)| *phase == Phase::Warmup).collect();
    assert_eq!(warm.iter().map(|(_, length, _)| length).sum::<u64>(), 2500 * MS);
    assert_eq!(warm.iter().map(|(.., answered)| answered).sum::<u64>(), 2500);
}

#[test]
fn a_warm_up_of_the_open_model_runs_at_the_first_rate() {
    let plan = Plan { warmup_ns: SECOND_NS, ..open("100..300/2s", 8) };
    let outcome = carry_out(&plan, Target::taking(MS));
    assert_eq!(outcome.summary.total.numbers.get(Counter::Due), 400);
    assert_eq!(outcome.seconds[0].2, 100);
}

#[test]
fn a_profile_is_its_own_duration() {
    let plan = Plan { stop: StopRule::default(), ..open("100/1s,0/1s,50..150/1s", 8) };
    let summary = carry_out(&plan, Target::taking(MS)).summary;
    assert_eq!((summary.total.numbers.get(Counter::Due), summary.run.measured_ns), (200, 3 * SECOND_NS));
    let due: Vec<_> = summary.run.series.points().iter().map(|point| point.numbers.get(Counter::Due)).collect();
    assert_eq!(due, [100, 0, 100]);
}

#[test]
fn a_count_ends_the_open_model_when_its_last_call_ends() {
    let plan = Plan { stop: StopRule { duration_ns: None, requests: Some(500) }, ..open("1000", 8) };
    let summary = carry_out(&plan, Target::taking(20 * MS)).summary;
    // Eight connections at 20 ms carry 400 a second: the last calls are late, and still made.
    assert_eq!(summary.total.statuses.total(), 500);
    assert!(summary.run.measured_ns > 1200 * MS);
}

#[test]
fn a_call_of_its_own_connection_waits_for_it() {
    let plan = Plan { reconnect: true, ..open("100", 8) };
    let summary = carry_out(&plan, Target::taking(MS)).summary;
    assert_eq!(summary.total.numbers.get(Counter::ConnectionsMade), 1000);
    assert_eq!(summary.times.response.unwrap().min, MS + 50_000);
    assert_eq!(summary.times.service.unwrap().max.value, MS);
    assert_eq!(summary.times.lag.unwrap().max.value, 0);
}

#[test]
fn seconds_are_handed_over_in_order_and_add_up() {
    let mut plan = plan(URL);
    plan.stop.duration_ns = Some(3500 * MS);
    let outcome = carry_out(&plan, Target::taking(MS));
    let lengths: Vec<_> =
        outcome.seconds.iter().filter(|(phase, ..)| *phase == Phase::Measured).map(|(_, length, _)| *length).collect();
    assert_eq!(lengths, [SECOND_NS, SECOND_NS, SECOND_NS, SECOND_NS / 2]);
    let points = outcome.summary.run.series.points();
    assert_eq!(points.iter().map(|p| p.answered).sum::<u64>(), outcome.summary.run.measured.statuses.total());
}

#[test]
fn poisson_arrivals_keep_their_number_and_repeat_from_the_seed() {
    let mut plan = open("500", 64);
    plan.load = Load::Open { profile: "500".parse().unwrap(), arrivals: Spread::Poisson };
    let first = carry_out(&plan, Target::taking(MS)).summary;
    let again = carry_out(&plan, Target::taking(MS)).summary;
    assert_eq!(first.total.numbers.get(Counter::Due), again.total.numbers.get(Counter::Due));
    assert!((4500..5500).contains(&first.total.numbers.get(Counter::Due)));
}
