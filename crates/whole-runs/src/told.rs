//! What is told of whole runs: throughput, figures by name, and findings, each where another would be wrong.

use std::collections::BTreeMap;

use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_http1::options::{Content, Lines, Options};
use brunt_judge::remarks::About;
use brunt_judge::summary::Summary;
use brunt_judge::trend::{Settled, TrendFigure};
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::histogram::{AtLeast, Percentile};
use brunt_record::time::Tick;

use super::throughput::{ANSWER, After, Queue};
use super::{MS, SECOND_NS, StopHandle, carry_out, carry_out_on, plan};

/// When a run's load begins in simulated time, about.
const BEGIN: u64 = SECOND_NS;

fn run_of(seconds: u64, warmup_ms: u64) -> Plan {
    Plan {
        stop: StopRule { duration_ns: Some(seconds * SECOND_NS), requests: None },
        warmup_ns: warmup_ms * MS,
        timeout_ns: 20 * SECOND_NS,
        ..plan("http://127.0.0.1/")
    }
}

fn at_rate(rate: &str, plan: Plan) -> Plan {
    let load = Load::Open { profile: rate.parse().unwrap(), arrivals: Spread::Uniform };
    Plan { load, connections: Connections::UpTo(3000), ..plan }
}

/// Floods three lines, `/a` twice as often as each of the others.
fn of_lines(plan: Plan) -> Plan {
    let lines = Lines { file: "lines".to_owned(), content: Content(b"/a\n/b\n/a\n/c\n".to_vec()) };
    Plan { protocol: Options { url_lines: Some(lines), ..Options::default() }.to_protocol(), ..plan }
}

fn kinds(summary: &Summary) -> Vec<About> {
    summary.remarks.iter().map(|remark| remark.about).collect()
}

fn is_near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.02
}

#[test]
fn a_flood_after_a_warm_up_has_all_answers_that_came() {
    let plan = Plan { connections: 90.into(), ..run_of(2, 700) };
    let summary = carry_out(&plan, Queue::taking(5 * MS)).summary;
    assert!(is_near(summary.rates.ok_per_s, 200.0), "{:?}", summary.rates);
}

#[test]
fn overload_after_a_warm_up_is_told_with_what_was_answered() {
    let summary = carry_out(&at_rate("450", run_of(5, 2500)), Queue::taking(5 * MS)).summary;
    let overload = summary.remarks.iter().find(|remark| remark.about == About::Overload);
    let said = overload.unwrap_or_else(|| panic!("{:?}", summary.remarks)).message.to_string();
    let answered = said.split("answered ").nth(1).and_then(|rest| rest.split(" calls/s").next());
    let answered: f64 = answered.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!(is_near(answered, 200.0), "{said}");
    assert!(!kinds(&summary).contains(&About::Connections), "connections are free: {:?}", summary.remarks);
}

#[test]
fn rates_by_name_make_the_total_while_a_warm_up_drains() {
    let summary = carry_out(&of_lines(at_rate("500", run_of(3, 1200))), Queue::taking(4 * MS)).summary;
    let rows: f64 = summary.breakdown.requests.iter().map(|calls| calls.answered_per_s).sum();
    assert!(is_near(rows, summary.rates.answered_per_s) && is_near(rows, 250.0), "{rows}, {:?}", summary.rates);
}

/// Answers lines in times of their own.
struct ByLine;

impl Peer for ByLine {
    fn received(&mut self, _connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let requests = bytes.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"GET "));
        let takes = |line: &[u8]| if line.starts_with(b"GET /a") { 2 } else { 9 };
        requests.map(|line| (takes(line) * MS, Act::Send(ANSWER.to_vec()))).collect()
    }
}

/// Whatever delays the generator itself, all calls and those of a name are judged by the same times.
#[test]
fn times_of_all_calls_lie_within_those_by_name() {
    let closed = Plan { connections: 4.into(), ..run_of(3, 0) };
    for plan in [at_rate("300", run_of(3, 0)), closed] {
        let conditions = ["p50<1ns", "\"GET /a\":p50<1ns", "\"GET /b\":p50<1ns", "\"GET /c\":p50<1ns"];
        let thresholds = conditions.iter().map(|condition| condition.parse().unwrap()).collect();
        let net = VirtualNet::new(ByLine).standing_still(Tick::from_ns(BEGIN + 1500 * MS), 200 * MS);
        let summary = carry_out_on(&of_lines(Plan { thresholds, ..plan }), &net, &StopHandle::default()).summary;
        let all = summary.times.response.as_ref().unwrap();
        let rows: Vec<_> = summary.breakdown.requests.iter().map(|calls| calls.response.as_ref().unwrap()).collect();
        for name in [Percentile::P50, Percentile::P90, Percentile::P99] {
            let of = |quantile: Option<AtLeast<u64>>| quantile.unwrap().value;
            let parts: Vec<_> = rows.iter().map(|row| of(row.quantile(name))).collect();
            let (least, most) = (parts.iter().min().unwrap() * 97 / 100, parts.iter().max().unwrap() * 103 / 100);
            assert!((least..=most).contains(&of(all.quantile(name))), "{name}: {:?}, {parts:?}", all.quantile(name));
        }
        let slowest = rows.iter().map(|row| row.max.value).max();
        assert_eq!(slowest, Some(all.max.value), "the slowest call has a name");
        let got: Vec<_> = summary.thresholds.iter().take(4).map(|result| result.value.unwrap().value).collect();
        let (least, most) =
            (got[1..].iter().copied().fold(f64::MAX, f64::min), got[1..].iter().copied().fold(0.0, f64::max));
        assert!((0.97 * least..=1.03 * most).contains(&got[0]), "{got:?}");
    }
}

#[test]
fn a_target_that_always_takes_long_is_not_warming_up() {
    let plan = Plan { connections: 6.into(), drain_ns: 3 * SECOND_NS, ..run_of(14, 0) };
    // Nothing ends in the first second, and as much in each later one.
    let summary = carry_out(&plan, After(1010 * MS)).summary;
    assert!(!matches!(summary.verdict.settled, Settled::WarmingUp { .. }), "{:?}", summary.verdict.settled);
}

#[test]
fn a_target_that_slows_down_is_told_as_faster_at_first() {
    let slower = |now: u64| if now < BEGIN + 2300 * MS { 2 * MS } else { 14 * MS };
    let summary = carry_out(&Plan { connections: 4.into(), ..run_of(12, 0) }, At(slower)).summary;
    let Settled::WarmingUp { figure, all, rest, .. } = summary.verdict.settled else {
        panic!("{:?}", summary.verdict.settled)
    };
    assert!((rest > all) == (figure != TrendFigure::Rate), "{figure:?}: {rest}, with its beginning {all}");
}

/// Answers after a time that depends on when a request came.
struct At(fn(u64) -> u64);

impl Peer for At {
    fn received(&mut self, _connection: u64, bytes: &[u8], now: Tick) -> Reaction {
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        (0..requests).map(|_| ((self.0)(now.ns()), Act::Send(ANSWER.to_vec()))).collect()
    }
}

#[test]
fn a_slow_beginning_in_which_answers_come_is_no_freeze() {
    let slow_at_first = |now: u64| if now < BEGIN + 1200 * MS { 140 * MS } else { 3 * MS };
    for rate in ["80", "400"] {
        let summary = carry_out(&at_rate(rate, run_of(4, 0)), At(slow_at_first)).summary;
        assert!(!kinds(&summary).contains(&About::Freeze), "{rate}: {:?}", summary.remarks);
    }
}

/// Closes each connection behind its seventh answer.
#[derive(Default)]
struct Seven(BTreeMap<u64, u32>);

impl Peer for Seven {
    fn received(&mut self, connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        let answers = self.0.entry(connection).or_default();
        *answers += 1;
        let close = (*answers == 7).then_some((MS + 10_000, Act::Close));
        std::iter::once((MS, Act::Send(ANSWER.to_vec()))).chain(close).collect()
    }
}

#[test]
fn connections_that_end_after_seven_answers_are_told_as_that() {
    let plan = Plan { connections: 3.into(), ..at_rate("300", run_of(4, 0)) };
    let summary = carry_out(&plan, Seven::default()).summary;
    let said = summary.remarks.iter().find(|remark| remark.about == About::Closes);
    let said = said.unwrap_or_else(|| panic!("{:?}", summary.remarks)).message.to_string();
    assert!(said.starts_with("the target closed connections after about 7 calls: "), "{said}");
}

#[test]
fn the_rate_that_was_due_can_be_limited() {
    for (condition, held) in [("due_rate>=249", true), ("due_rate>=252", false)] {
        let thresholds = vec![condition.parse().unwrap()];
        // Half of it is answered.
        let plan = Plan { thresholds, ..at_rate("250", run_of(4, 500)) };
        let summary = carry_out(&plan, Queue::taking(8 * MS)).summary;
        assert_eq!(summary.thresholds[0].held, held, "{:?}", summary.thresholds[0]);
    }
}

/// Refuses every connection.
struct Refusing;

impl Peer for Refusing {
    fn connecting(&mut self, _now: Tick) -> Reaction {
        vec![(50_000, Act::Refuse)]
    }

    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        Reaction::default()
    }
}

/// Calls for which no attempt was made share what came of another one, and have names all the same.
#[test]
fn refused_calls_by_name_make_the_total() {
    for rate in ["300", "4000"] {
        let plan = Plan { stop: StopRule { duration_ns: Some(700 * MS), requests: None }, ..run_of(1, 0) };
        let summary = carry_out(&of_lines(at_rate(rate, plan)), Refusing).summary;
        let failed: u64 = summary.breakdown.requests.iter().map(|calls| calls.failed).sum();
        assert!(failed > 200, "{failed}");
        assert_eq!(failed, summary.total.failures.total(), "{:?}", summary.breakdown.requests.len());
    }
}
