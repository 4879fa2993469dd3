//! Parts that take over the work of lost parts, and horizons that end the work of a part that stood still.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, Stop};
use brunt_plan::share::{Numbers, Portion};
use brunt_record::catalogue::Counter;
use brunt_record::recording::Recording;
use proptest::prelude::*;

use super::{MS, SECOND_NS, Seconds, built_in, plan, run_part_on};
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_engine::{Gate, Part, Takeover};

const URL: &str = "http://127.0.0.1/";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A peer that answers at once, and records when requests came.
#[derive(Clone, Default)]
struct Recorder {
    asked: Arc<Mutex<Vec<u64>>>,
    takes_ns: u64,
}

impl Peer for Recorder {
    fn received(&mut self, _connection: u64, bytes: &[u8], now: u64) -> Reaction {
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        self.asked.lock().unwrap().extend(std::iter::repeat_n(now, requests));
        (0..requests).map(|_| (self.takes_ns, Act::Send(ANSWER.to_vec()))).collect()
    }
}

/// Carries a part out; returns its figures, and when requests came to the target.
fn carry_out(plan: &Plan, part: Part, takes_ns: u64) -> (Recording, Vec<u64>) {
    let peer = Recorder { takes_ns, ..Recorder::default() };
    carry_out_on(&peer, &VirtualNet::new(peer.clone()), plan, part)
}

fn carry_out_on(peer: &Recorder, net: &VirtualNet, plan: &Plan, part: Part) -> (Recording, Vec<u64>) {
    let run = run_part_on(net, plan, part, &built_in(), &mut Seconds::default()).run;
    let (mut total, measured) = (run.measured.clone(), &run.measured);
    total.merge(&run.drained);
    assert_eq!(total.numbers.get(Counter::Due), total.ended(), "due is the sum of outcomes: {measured:#?}");
    let asked = std::mem::take(&mut *peer.asked.lock().unwrap());
    (run, asked)
}

fn part(portion: Portion, takeover: Option<Takeover>) -> Part {
    Part { portion, takeover, ..Part::whole(1) }
}

fn paced(profile: &str, spread: Spread, requests: Option<u64>) -> Plan {
    Plan {
        // Enough connections that each part has one, however many there are.
        connections: 128.into(),
        load: Load::Open { profile: profile.parse().unwrap(), arrivals: spread },
        stop: Stop { duration_ns: requests.is_none().then_some(2 * SECOND_NS), requests },
        ..plan(URL)
    }
}

/// When the load of a run begins on the made-up machine: uniform calls begin with it.
fn beginning() -> u64 {
    let (_, asked) = carry_out(&paced("100", Spread::Uniform, None), Part::whole(1), 0);
    asked[0]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The calls of a rate are made at the times at which one machine would have made them, by whichever part.
    #[test]
    fn those_who_take_over_make_the_calls_that_are_left(
        poisson: bool, workers in prop::collection::vec(1_u32..4, 1..4), lost: prop::sample::Index, parts in 1_u32..7,
        after_ns in 0_u64..900_000_000, requests in prop::option::of(100_u64..500), twice: bool,
    ) {
        let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
        let plan = paced("200..400/2s", spread, requests);
        let of = workers.iter().sum();
        let begin = beginning();
        let (whole, mut expected) = carry_out(&plan, Part::whole(of), 0);
        let lost = lost.index(workers.len());
        let (mut due, mut asked) = (0, Vec::new());
        for (place, count) in workers.iter().enumerate() {
            let portion = Portion::new(workers[..place].iter().sum(), *count, of).unwrap();
            let (own, times) = carry_out(&plan, part(portion, None), 0);
            if place != lost {
                due += own.measured.numbers.get(Counter::Due);
                asked.extend(times);
                continue;
            }
            let before = times.into_iter().filter(|at| *at < begin + after_ns);
            asked.extend(before.clone());
            due += before.count() as u64;
            // If a part that took over is lost at the same time, its work is divided once more.
            let finer = portion.divided(parts).into_iter().flat_map(|one| one.divided(if twice { 2 } else { 1 }));
            for portion in finer {
                let takeover = Takeover { after_ns, numbers: Vec::new() };
                let (own, times) = carry_out(&plan, part(portion, Some(takeover)), 0);
                due += own.measured.numbers.get(Counter::Due);
                // Its time begins when it joins.
                asked.extend(times.into_iter().map(|at| at + after_ns));
            }
        }
        asked.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(due, whole.measured.numbers.get(Counter::Due));
        prop_assert_eq!(asked, expected);
    }
}

#[test]
fn a_number_of_requests_is_completed_and_connections_are_taken_over() {
    let plan = Plan { connections: 6.into(), stop: Stop { duration_ns: None, requests: Some(1000) }, ..plan(URL) };
    let lost = Portion::new(1, 1, 3).unwrap();
    let all = Numbers::owned_by(lost, Some(1000));
    assert_eq!(all.count(), 333);
    let [first, second] = lost.divided(2)[..] else { panic!("{lost:?}") };
    let ranges = [(first, 100, 220), (second, 220, 333)];
    let mut made = 0;
    for (portion, from, until) in ranges {
        let numbers = vec![Numbers { from, until, ..all }];
        let (run, asked) = carry_out(&plan, part(portion, Some(Takeover { after_ns: 300 * MS, numbers })), MS);
        assert_eq!((run.measured.numbers.get(Counter::Due), asked.len() as u64), (until - from, until - from));
        assert_eq!(run.measured.numbers.get(Counter::ConnectionsMade), 1, "of six connections two were its");
        made += run.measured.numbers.get(Counter::Due);
        assert!(run.measured_ns > 300 * MS, "{}: the time before counts", run.measured_ns);
    }
    assert_eq!(made, 233);
}

#[test]
fn seconds_of_a_part_that_joins_are_those_of_the_run() {
    let takeover = Takeover { after_ns: 700 * MS, numbers: Vec::new() };
    let (run, asked) = carry_out(&paced("100", Spread::Uniform, None), part(Portion::whole(1), Some(takeover)), 0);
    assert_eq!((run.measured.numbers.get(Counter::Due), asked.len(), run.measured_ns), (130, 130, 2 * SECOND_NS));
    let due: Vec<_> = run
        .series
        .points()
        .iter()
        .map(|point| (point.start_ns, point.length_ns, point.numbers.get(Counter::Due)))
        .collect();
    assert_eq!(due, [(0, SECOND_NS, 30), (SECOND_NS, SECOND_NS, 100)]);
}

/// A process that is stopped and continued later finds that its work was given to others.
#[test]
fn who_stood_still_beyond_its_horizon_makes_no_call_that_is_due_there() {
    let closed =
        Plan { connections: 8.into(), stop: Stop { duration_ns: Some(4 * SECOND_NS), requests: None }, ..plan(URL) };
    let open = Plan { stop: closed.stop, ..paced("500", Spread::Uniform, None) };
    for plan in [closed, open] {
        let peer = Recorder { takes_ns: MS, ..Recorder::default() };
        let net = VirtualNet::new(peer.clone()).standing_still(2 * SECOND_NS, SECOND_NS);
        // The process stands still from 2 s to 3 s of a clock that begins at 1 s, and may make calls that are due in
        // the first 1.5 s.
        let gate = net.gate_to(Duration::from_millis(1500));
        let part = Part { gate: Some(gate), ..Part::whole(1) };
        let (run, asked) = carry_out_on(&peer, &net, &plan, part);
        let held = run.measured.numbers.get(Counter::UnsentHeld) + run.drained.numbers.get(Counter::UnsentHeld);
        if plan.load == (Load::Closed {}) {
            assert!(asked.len() > 100 && asked.iter().all(|at| *at <= 2 * SECOND_NS), "{:?}", asked.last());
        } else {
            // The calls due before the horizon are made, however late; the rest of the 2,000 is not.
            assert_eq!((asked.len(), held), (750, 1250));
        }
        assert_eq!(run.measured.statuses.total(), asked.len() as u64);
    }
}

/// A target that does not answer gets the calls that were due before the horizon, and no others.
#[test]
fn what_waits_for_the_target_is_told_from_what_waits_for_the_horizon() {
    let plan = Plan {
        connections: 2.into(),
        stop: Stop { duration_ns: Some(4 * SECOND_NS), requests: None },
        drain_ns: SECOND_NS,
        ..paced("500", Spread::Uniform, None)
    };
    let peer = Recorder { takes_ns: 60 * SECOND_NS, ..Recorder::default() };
    let net = VirtualNet::new(peer.clone());
    let part = Part { gate: Some(net.gate_to(Duration::from_millis(1500))), ..Part::whole(1) };
    let (run, asked) = carry_out_on(&peer, &net, &plan, part);
    let of = |counter| run.measured.numbers.get(counter) + run.drained.numbers.get(counter);
    assert!((2..100).contains(&asked.len()), "{asked:?}");
    assert_eq!((of(Counter::Due), of(Counter::UnsentHeld)), (2000, 1250));
    let failed = run.measured.failures.total() + run.drained.failures.total();
    assert_eq!(of(Counter::Unfinished) + of(Counter::Unsent) + failed, 2000);
    let untold: u64 = run.measured.timeline.points().map(|(_, point)| point.untold).sum();
    assert_eq!(untold, 1250);
}

#[test]
fn a_horizon_that_moves_on_lets_calls_go_on_without_a_burst() {
    /// Moves the horizon on when no request has come for a while.
    struct Extending(Gate);
    impl brunt_engine::Observer for Extending {
        fn second(
            &mut self,
            live: &brunt_record::live::Live,
            _so_far: &brunt_engine::RunningTotal<'_>,
        ) -> ControlFlow<String> {
            if live.elapsed_ns >= 2 * SECOND_NS {
                self.0.extend(3600 * SECOND_NS);
            }
            ControlFlow::Continue(())
        }
    }
    let closed =
        Plan { connections: 8.into(), stop: Stop { duration_ns: Some(4 * SECOND_NS), requests: None }, ..plan(URL) };
    let open = Plan { stop: closed.stop, ..paced("500", Spread::Uniform, None) };
    for plan in [closed, open] {
        let peer = Recorder { takes_ns: MS, ..Recorder::default() };
        let net = VirtualNet::new(peer.clone());
        let gate = net.gate_to(Duration::from_millis(1500));
        let part = Part { gate: Some(gate.clone()), ..Part::whole(1) };
        let run = run_part_on(&net, &plan, part, &built_in(), &mut Extending(gate)).run;
        let asked = peer.asked.lock().unwrap().clone();
        let (before, after): (Vec<u64>, Vec<u64>) = asked.iter().partition(|at| **at < 2_600 * MS);
        // The observer acts in real time, and made-up time does not wait for it. If it comes too late, no more calls are made.
        assert!(before.len() > 100 && (after.is_empty() || after[0] >= 3 * SECOND_NS), "{:?}", after.first());
        let mut total = run.measured.clone();
        total.merge(&run.drained);
        let of = |counter| total.numbers.get(counter);
        assert_eq!(of(Counter::Due), total.ended());
        assert_eq!(of(Counter::Due) - of(Counter::Unsent), asked.len() as u64);
        assert_eq!(of(Counter::UnsentHeld), of(Counter::Unsent));
        // No two calls of the open model are closer than at the given rate, except those that came due together with
        // the horizon.
        let is_open = plan.load != Load::Closed {};
        assert!(!is_open || after.windows(2).all(|two| two[1] - two[0] >= MS), "{after:?}");
    }
}
