//! Replays over agents whose horizon does not move on, or does so late: no call is made that is due there, and none vanishes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use brunt_engine::Gate;
use brunt_engine::simulated::VirtualNet;
use brunt_judge::summary::Summary;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_protocol::replay::{ReplayedEnd, Upcoming, WorkerReplay};
use brunt_protocol::source::{Message, SourceEnd};
use brunt_record::catalogue::Counter;
use brunt_record::time::Tick;

use super::{Came, Log, MS, SECOND_NS, Server, carried_out_on};

/// How far calls may be made, in nanoseconds of the load.
const HORIZON_NS: u64 = 1_500 * MS;
/// How much later a request reaches the server than it is due: a connection is made for it.
const WAY_NS: u64 = 5 * MS;

fn four_seconds(plan: &mut Plan, thinks: bool) {
    plan.stop = StopRule { duration_ns: Some(4 * SECOND_NS), requests: None };
    if let Load::Replay(replay) = &mut plan.load {
        replay.think = thinks;
    }
}

/// Calls of ten sessions, one every ten milliseconds for four seconds.
fn calls() -> impl Iterator<Item = (u64, Option<u64>)> {
    (0..400).map(|nth| (nth * 10 * MS, Some(nth % 10)))
}

fn gate(net: &VirtualNet) -> Gate {
    net.gate_to(Duration::from_nanos(HORIZON_NS))
}

/// Nothing has vanished, and what was held back is no silence of the target.
fn closes(summary: &Summary) {
    let of = |counter| summary.total.numbers.get(counter);
    assert_eq!(of(Counter::Due), summary.total.ended());
    let untold: u64 = summary.total.timeline.points().map(|(_, point)| point.untold).sum();
    assert_eq!((untold, of(Counter::UnsentHeld)), (of(Counter::Unsent), of(Counter::Unsent)));
}

/// Every call that is due before the horizon was made, and each of the others is unsent, held back by that.
fn is_cut_at_the_horizon(summary: &Summary, came: &[Came], due: u64) {
    closes(summary);
    let of = |counter| summary.total.numbers.get(counter);
    assert_eq!((came.len(), of(Counter::Due), of(Counter::Unsent)), (150, due, due - 150));
    assert_eq!(summary.total.statuses.total(), 150);
    let late = came.iter().filter(|(_, _, number)| (number - 1) * 10 * MS >= HORIZON_NS);
    assert_eq!(late.count(), 0);
}

#[test]
fn no_call_is_made_that_is_due_at_the_horizon_or_later() {
    for thinks in [false, true] {
        let came = Arc::new(Mutex::new(Vec::new()));
        let net = VirtualNet::new(Server { takes: |_| MS, came: Arc::clone(&came) });
        let summary = carried_out_on(&net, |plan| four_seconds(plan, thinks), Log::of(calls()), Some(gate(&net)));
        let came = came.lock().unwrap();
        is_cut_at_the_horizon(&summary, &came, 400);
        let last = came.last().unwrap().0 - came[0].0;
        assert!(last < HORIZON_NS + WAY_NS, "{last}");
    }
}

/// A process that is stopped and goes on later makes the calls that were due before its horizon, however late, and no others.
#[test]
fn who_stood_still_beyond_its_horizon_makes_no_call_that_is_due_there() {
    let came = Arc::new(Mutex::new(Vec::new()));
    // It stands still from 2 s to 3 s of a clock that begins at 1 s.
    let net = VirtualNet::new(Server { takes: |_| MS, came: Arc::clone(&came) })
        .standing_still(Tick::from_ns(2 * SECOND_NS), SECOND_NS);
    let summary = carried_out_on(&net, |plan| four_seconds(plan, false), Log::of(calls()), Some(gate(&net)));
    is_cut_at_the_horizon(&summary, &came.lock().unwrap(), 400);
    assert!(summary.verdict.is_brunt_the_limit(), "it was late itself, and says so");
}

/// A log that moves the horizon on once a call of it has ended: on made-up time, as everything else.
struct Extending {
    log: Box<dyn WorkerReplay>,
    gate: Gate,
    on: u64,
}

impl WorkerReplay for Extending {
    fn next(&mut self) -> Upcoming {
        self.log.next()
    }

    fn call(&mut self, number: u64) -> Result<Message<'_>, SourceEnd> {
        self.log.call(number)
    }

    fn name(&self, number: u64) -> (u32, &str) {
        self.log.name(number)
    }

    fn ended(&mut self, number: u64, ended: ReplayedEnd<'_>) {
        if number == self.on {
            self.gate.extend(3600 * SECOND_NS);
        }
        self.log.ended(number, ended);
    }
}

#[test]
fn a_horizon_that_moves_on_lets_calls_go_on_without_a_burst() {
    /// The call whose answer moves the horizon on: due at 1.4 s, by a session of its own, and answered at 2.6 s.
    const SLOW: u64 = 141;
    for thinks in [false, true] {
        let came = Arc::new(Mutex::new(Vec::new()));
        let takes = |number| if number == SLOW { 1_200 * MS } else { MS };
        let net = VirtualNet::new(Server { takes, came: Arc::clone(&came) });
        let gate = gate(&net);
        let calls = calls()
            .enumerate()
            .map(|(place, (due, session))| (due, if place as u64 + 1 == SLOW { Some(99) } else { session }));
        let log = Log::of(calls).remove(0);
        let logs: Vec<Box<dyn WorkerReplay>> = vec![Box::new(Extending { log, gate: gate.clone(), on: SLOW })];
        let summary = carried_out_on(&net, |plan| four_seconds(plan, thinks), logs, Some(gate));
        let came = came.lock().unwrap();
        let began = came[0].0;
        let (before, after): (Vec<Came>, Vec<Came>) =
            came.iter().copied().partition(|(at, ..)| at - began < 2 * SECOND_NS);
        assert_eq!(before.len(), 150, "thinks: {thinks}");
        // It has moved on 1.1 s after it was reached. The calls of that time are not made up for.
        closes(&summary);
        let of = |counter| summary.total.numbers.get(counter);
        assert_eq!(of(Counter::Due), of(Counter::Unsent) + came.len() as u64);
        assert!((100..=115).contains(&of(Counter::Unsent)), "thinks: {thinks}, {} held", of(Counter::Unsent));
        assert!((130..=145).contains(&after.len()), "thinks: {thinks}, {} after", after.len());
        assert!(after.windows(2).all(|two| two[1].0 - two[0].0 >= 9 * MS), "thinks: {thinks}, a burst: {after:?}");
        assert!(!summary.verdict.is_brunt_the_limit(), "thinks: {thinks}, {:?}", summary.verdict);
    }
}

#[test]
fn a_user_who_thinks_until_beyond_the_horizon_makes_no_call_late() {
    let came = Arc::new(Mutex::new(Vec::new()));
    // The first is answered at 1.6 s, so that the second is wanted at 1.7 s. The answer of the third moves the horizon on at 2.6 s.
    let calls = [(1_000, 98), (1_200, 98), (1_400, 99), (3_000, 98)].map(|(ms, session)| (ms * MS, Some(session)));
    let takes = |number| [600, 1, 1_200, 1][number as usize - 1] * MS;
    let net = VirtualNet::new(Server { takes, came: Arc::clone(&came) });
    let gate = gate(&net);
    let log = Extending { log: Log::of(calls).remove(0), gate: gate.clone(), on: 3 };
    let summary = carried_out_on(&net, |plan| four_seconds(plan, true), vec![Box::new(log)], Some(gate));
    closes(&summary);
    let numbers: Vec<_> = came.lock().unwrap().iter().map(|(.., number)| *number).collect();
    assert_eq!((numbers, summary.total.numbers.get(Counter::Due)), (vec![1, 3, 4], 4));
    assert!(!summary.verdict.is_brunt_the_limit(), "{:?}", summary.verdict);
}
