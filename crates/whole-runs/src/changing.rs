//! Runs whose load is changed while they go on: rates, pauses, and what they meet.

use std::sync::{Arc, Mutex};

use brunt_engine::simulated::{self, Act, Peer, Reaction, VirtualNet};
use brunt_engine::{Control, RunShare, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::catalogue::Counter;
use brunt_record::change::{Action, Author, Change, MOST_CHANGES};
use brunt_record::recording::Ending;
use brunt_record::time::Tick;
use proptest::prelude::*;

use super::users::plan_of;
use super::{LuaJit, MS, SECOND_NS, Seconds, built_in, judged, plan};

const URL: &str = "http://127.0.0.1/";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// How long before its time a change is made: the target, who makes it, is asked at least that often.
const AHEAD_NS: u64 = 1_200 * MS;
/// The same where it is asked often: as late as a change may be made.
const LATE_NS: u64 = 100 * MS;

fn change(at_ns: u64, action: Action) -> Change {
    Change { at_ns: at_ns as i64, action, by: Author::Ctl }
}

/// Answers after a time, writes down when it was asked, and is somebody who changes the run: each change is made just before its time.
struct Hand {
    takes_ns: u64,
    control: Control,
    changes: Vec<Change>,
    ahead_ns: u64,
    /// When the measured part begins, at which it is first asked.
    began: Option<u64>,
    warmup_ns: u64,
    asked: Arc<Mutex<Vec<u64>>>,
}

impl Peer for Hand {
    fn received(&mut self, _connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let began = *self.began.get_or_insert(now.ns() + self.warmup_ns);
        let told = self
            .changes
            .iter()
            .take_while(|change| began.saturating_add_signed(change.at_ns) <= now.ns() + self.ahead_ns);
        self.control.take(&self.changes[..told.count()]);
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        self.asked.lock().unwrap().extend(std::iter::repeat_n(now.ns().saturating_sub(began), requests));
        (0..requests).map(|_| (self.takes_ns, Act::Send(ANSWER.to_vec()))).collect()
    }
}

/// What came of a run, and when the target was asked, in nanoseconds of the measured part.
struct Ran {
    summary: Summary,
    asked: Vec<u64>,
}

fn carry_out(
    plan: &Plan,
    net: impl FnOnce(VirtualNet) -> VirtualNet,
    takes_ns: u64,
    changes: &[Change],
    ahead_ns: u64,
) -> Ran {
    let (control, asked) = (Control::default(), Arc::default());
    let hand = Hand {
        takes_ns,
        control: control.clone(),
        changes: changes.to_vec(),
        ahead_ns,
        began: None,
        warmup_ns: plan.warmup_ns,
        asked: Arc::clone(&asked),
    };
    let part = RunShare { control, ..RunShare::whole(plan.workers) };
    let net = net(VirtualNet::new(hand));
    let stop = StopHandle::default();
    let finished = simulated::run_part(&net, plan, part, &built_in(), &LuaJit, &mut Seconds::default(), &stop).unwrap();
    let summary = judged(finished);
    let total = &summary.total;
    assert_eq!(total.numbers.get(Counter::Due), total.ended(), "due is the sum of outcomes: {total:#?}");
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    Ran { summary, asked }
}

fn open(rate: &str, workers: u32) -> Plan {
    Plan {
        load: Load::Open { profile: rate.parse().unwrap(), arrivals: Spread::Uniform },
        stop: StopRule { duration_ns: Some(6 * SECOND_NS), requests: None },
        connections: 64.into(),
        workers,
        timeout_ns: 10 * SECOND_NS,
        drain_ns: 10 * SECOND_NS,
        ..plan(URL)
    }
}

fn closed(connections: u32) -> Plan {
    Plan { load: Load::Closed {}, connections: connections.into(), ..open("1", 1) }
}

fn between(asked: &[u64], from_ms: u64, to_ms: u64) -> usize {
    asked.iter().filter(|at| (from_ms * MS..to_ms * MS).contains(*at)).count()
}

#[test]
fn a_rate_changes_for_every_call_that_is_due_from_then_on() {
    let changes = [change(2 * SECOND_NS, Action::Rate(1000.0)), change(4 * SECOND_NS, Action::Rate(50.0))];
    let Ran { summary, asked } = carry_out(&open("100", 2), |net| net, MS, &changes, AHEAD_NS);
    assert_eq!(summary.total.numbers.get(Counter::Due), 200 + 2000 + 100);
    assert_eq!([between(&asked, 0, 2000), between(&asked, 2000, 4000), between(&asked, 4000, 6001)], [200, 2000, 100]);
    assert_eq!(summary.run.changes, changes);
    assert_eq!(summary.remarks, [], "a change is no finding");
}

/// A worker that sleeps through the change makes no call of the timetable before it.
#[test]
fn a_worker_that_hears_of_a_change_too_late_makes_no_call_too_many() {
    let changes = [change(2 * SECOND_NS, Action::Rate(10.0)), change(4 * SECOND_NS, Action::Rate(500.0))];
    for stands_still_ms in [1_850, 1_950, 3_850] {
        let at = SECOND_NS + stands_still_ms * MS;
        let net = |net: VirtualNet| net.standing_still(Tick::from_ns(at), 700 * MS);
        let Ran { summary, .. } = carry_out(&open("1000", 2), net, MS, &changes, LATE_NS);
        assert_eq!(summary.total.numbers.get(Counter::Due), 2000 + 20 + 1000, "{stands_still_ms}");
    }
}

#[test]
fn nothing_is_due_in_a_pause() {
    let changes = [change(2 * SECOND_NS, Action::Pause), change(4 * SECOND_NS, Action::Resume)];
    let Ran { summary, asked } = carry_out(&open("100..700/6s", 2), |net| net, MS, &changes, 3 * SECOND_NS);
    // The ramp goes on in the pause, unseen.
    assert_eq!(summary.total.numbers.get(Counter::Due), 2400 - 200 * 4);
    assert_eq!(between(&asked, 2001, 4000), 0);
    assert!(asked.iter().all(|at| *at <= 6 * SECOND_NS));
    assert_eq!((summary.remarks.as_slice(), &summary.run.ending), (&[][..], &Ending::Completed));
    assert!(summary.verdict.is_trustworthy());
}

#[test]
fn connections_of_the_closed_model_rest_in_a_pause() {
    let changes = [change(2 * SECOND_NS, Action::Pause), change(4 * SECOND_NS, Action::Resume)];
    let Ran { summary, asked } = carry_out(&closed(4), |net| net, 10 * MS, &changes, 3 * SECOND_NS);
    assert_eq!(between(&asked, 2000, 4000), 0);
    // 4 connections make 400 calls a second.
    assert!(between(&asked, 0, 2000) >= 796 && between(&asked, 4000, 6000) >= 796, "{}", asked.len());
    assert_eq!(summary.remarks, [], "nobody was asked, so nobody stood still");
}

#[test]
fn a_run_of_so_many_requests_waits_for_the_end_of_a_pause() {
    let changes = [change(SECOND_NS, Action::Pause), change(3 * SECOND_NS, Action::Resume)];
    let stop = StopRule { duration_ns: None, requests: Some(150) };
    for plan in [Plan { stop, ..open("100", 1) }, Plan { stop, ..closed(1) }] {
        let Ran { summary, asked } = carry_out(&plan, |net| net, 10 * MS, &changes, 3 * SECOND_NS);
        assert_eq!((asked.len(), summary.total.numbers.get(Counter::Due)), (150, 150));
        assert_eq!((between(&asked, 1000, 3000), between(&asked, 3000, 4000) > 45), (0, true));
    }
}

#[test]
fn a_run_may_end_while_it_is_paused() {
    for plan in [open("100", 2), closed(4)] {
        let Ran { summary, asked } =
            carry_out(&plan, |net| net, 10 * MS, &[change(4 * SECOND_NS, Action::Pause)], AHEAD_NS);
        assert_eq!(between(&asked, 4001, 7000), 0);
        assert_eq!((&summary.run.ending, summary.run.measured_ns), (&Ending::Completed, 6 * SECOND_NS));
    }
}

#[test]
fn a_change_of_the_warm_up_stays() {
    let early = Change { at_ns: -(SECOND_NS as i64), action: Action::Rate(300.0), by: Author::Ctl };
    let plan = Plan { warmup_ns: 2 * SECOND_NS, ..open("100", 2) };
    let Ran { summary, asked } = carry_out(&plan, |net| net, MS, std::slice::from_ref(&early), AHEAD_NS);
    assert_eq!(summary.total.numbers.get(Counter::Due), 1800);
    // A second at 100/s and one at 300/s, which the peer sees as times before 0.
    assert_eq!(asked.len(), 1800 + 400);
    assert_eq!(summary.run.changes, [early]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever stands still for a moment, and however many workers there are: the sum of due is the integral.
    #[test]
    fn changes_are_exact(seed: u64, workers in 1_u32..4, rates in prop::collection::vec((0_u64..5_800, 1_u32..800), 1..5)) {
        let mut rates = rates;
        rates.sort_unstable();
        let changes: Vec<_> = rates.iter().map(|(ms, rate)| change(ms * MS, Action::Rate(f64::from(*rate)))).collect();
        let plan = open("400", workers);
        let Ran { summary, .. } = carry_out(&plan, |net| net.with_whims(seed), MS, &changes, AHEAD_NS);
        let (mut expected, mut from_ms, mut rate) = (0.0, 0, 400);
        for (ms, next) in rates.iter().copied().chain([(6_000, 0)]) {
            expected += f64::from(rate) * (ms - from_ms) as f64 / 1000.0;
            (from_ms, rate) = (ms, next);
        }
        let due = summary.total.numbers.get(Counter::Due) as f64;
        prop_assert!((due - expected.ceil()).abs() <= 1.0, "{} of {}", due, expected);
    }
}

/// So many users of one closed injection, each with a call after the other, of 100 ms.
fn users(injection: &str, workers: u32) -> Plan {
    let script = format!("brunt.scenario('s', function() http:get('/') end):inject {{ {injection} }}");
    Plan { workers, connections: workers.into(), ..plan_of(&script, &[]).unwrap() }
}

#[test]
fn users_come_at_once_and_go_after_their_iterations() {
    let changes = [
        change(2 * SECOND_NS, Action::Users(10)),
        change(4 * SECOND_NS, Action::Users(3)),
        change(5 * SECOND_NS, Action::Users(5)),
    ];
    // Whatever a ramp would make of the rest.
    for (injection, workers) in [
        ("brunt.users(4, '6s')", 1),
        ("brunt.users(4, '6s')", 3),
        ("brunt.users(4, '2s'), brunt.ramp_users(4, 50, '4s')", 2),
    ] {
        let Ran { summary, asked } =
            carry_out(&users(injection, workers), |net| net, 100 * MS, &changes, 3 * SECOND_NS);
        let all = || format!("{injection} by {workers}: {asked:?}");
        // From the change on, to the nanosecond: four go on, and six come.
        assert!(between(&asked, 1_900, 2_000) <= 8 && between(&asked, 2_000, 2_001) >= 6, "{}", all());
        for (from_ms, to_ms, users) in [(0, 2_000, 4), (2_001, 4_000, 10), (4_100, 5_000, 3), (5_001, 6_000, 5)] {
            let expected = users * (to_ms - from_ms) as usize / 100;
            let got = between(&asked, from_ms, to_ms);
            assert!(got.abs_diff(expected) <= 2 * users, "{from_ms}: {got} of {expected}; {}", all());
        }
        let scenario = summary.total.figures.scenarios.get("s").unwrap();
        assert_eq!((scenario.users_started, summary.total.figures.most_users), (4 + 6 + 2, 10), "{}", all());
        assert_eq!((summary.run.changes.as_slice(), &summary.run.ending), (&changes[..], &Ending::Completed));
        assert_eq!(summary.remarks, [], "a change is no finding");
    }
}

#[test]
fn a_number_of_users_is_refused_where_there_is_none_to_change() {
    let refused = |plan: &Plan, number: u64| {
        let control = Control::default();
        control.ready_elsewhere(plan, || 0);
        control.begins_in(0);
        control.ask(Action::Users(number), Author::Ctl).map(|change| change.action).map_err(|error| error.to_string())
    };
    let closed_users = users("brunt.users(4, '6s')", 1);
    assert_eq!(refused(&closed_users, 100_000), Ok(Action::Users(100_000)));
    for number in [0, 100_001, u64::MAX] {
        assert!(refused(&closed_users, number).unwrap_err().contains("1 to 100000"), "{number}");
    }
    for (plan, why) in [
        (open("100", 1), "its calls are due at a rate"),
        (closed(4), "a flood has connections (-c), whose number stays"),
        (users("brunt.rate(5, '6s')", 1), "its users come at times of their own"),
        (users("brunt.iterations_each(4, 2)", 1), "for a number of iterations"),
    ] {
        let said = refused(&plan, 5).unwrap_err();
        assert!(said.starts_with("the number of virtual users cannot change: ") && said.contains(why), "{said}");
    }
}

#[test]
fn a_rate_is_refused_with_what_changes_instead() {
    let refused = |plan: &Plan| {
        let control = Control::default();
        control.ready_elsewhere(plan, || 0);
        control.begins_in(0);
        control.ask(Action::Rate(5.0), Author::Ctl).map(|_| ()).map_err(|error| error.to_string())
    };
    for (plan, why) in [
        (closed(4), "start it with -r"),
        (users("brunt.users(4, '6s')", 1), "type 'brunt ctl users 50' for more or fewer of them"),
        (users("brunt.rate(5, '6s')", 1), "brunt.throttle there gives them a rate"),
    ] {
        let said = refused(&plan).unwrap_err();
        assert!(said.starts_with("the run has no rate that could change: ") && said.contains(why), "{said}");
    }
}

/// A program in a loop leaves no run paused that nobody can resume.
#[test]
fn a_paused_run_takes_a_resume_whatever_it_has_taken_before() {
    let control = Control::default();
    control.ready_elsewhere(&open("100", 1), || 0);
    control.begins_in(0);
    let ask = |action| control.ask(action, Author::Ctl).map(|_| ()).map_err(|error| error.to_string());
    for number in 1..MOST_CHANGES {
        assert_eq!(ask(Action::Mark(number.to_string())), Ok(()));
    }
    assert_eq!(ask(Action::Pause), Ok(()));
    assert!(ask(Action::Rate(5.0)).unwrap_err().contains("has taken 1000 changes"));
    assert_eq!(ask(Action::Resume), Ok(()));
    for action in [Action::Pause, Action::Resume] {
        assert!(ask(action).unwrap_err().contains("and takes no more"));
    }
}
