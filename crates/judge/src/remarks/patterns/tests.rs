//! Runs whose calls have something in common, and what is said of them.

use brunt_plan::plan::{Load, Plan, ProtocolOptions};
use brunt_plan::random::Random;
use brunt_plan::replay::LogReplay;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use brunt_record::recording::Recording;

use super::super::episodes::tests::{End, MS, carried_out, evenly, kinds, remarks};
use super::super::{About, Remark};
use crate::advice::Advice;

/// A run of requests: name, calls, how many of them failed, how long each took.
fn requests(all: &[(&str, u64, u64, u64)]) -> (Plan, Recording) {
    let calls: u64 = all.iter().map(|(_, calls, ..)| calls).sum();
    let (plan, mut run) = carried_out(10, evenly(calls / 10, 10), |_| End::Ok(2 * MS));
    for &(name, calls, failed, took) in all {
        let id = run.measured.figures.requests.id(name);
        for call in 0..calls {
            let figures = run.measured.figures.requests.at(id);
            figures.due();
            if call < failed {
                figures.failed(Failure::Timeout, took, Some(took));
            } else {
                figures.answered(200, took, took);
            }
        }
    }
    (plan, run)
}

fn only(found: &[Remark]) -> &Remark {
    let [one] = found else { panic!("{found:#?}") };
    one
}

#[test]
fn a_request_that_fails_alone_is_named() {
    let found = remarks(requests(&[("home", 900, 0, MS), ("checkout", 900, 27, MS), ("cart", 900, 0, MS)]));
    let remark = only(&found);
    assert_eq!((remark.about, remark.request.as_deref()), (About::FailingRequest, Some("checkout")));
    assert_eq!(remark.message.to_string(), "checkout failed in 27 of 900 calls (3%); none of 1,800 other calls did");
    let some = remarks(requests(&[("home", 9000, 9, MS), ("checkout", 900, 27, MS)]));
    assert!(only(&some).message.to_string().ends_with("9 of 9,000 other calls did"), "{some:?}");
}

#[test]
fn failures_that_are_spread_over_requests_name_none() {
    assert_eq!(remarks(requests(&[("home", 900, 20, MS), ("checkout", 900, 27, MS)])), []);
    // Too few, and too near to the others.
    assert_eq!(remarks(requests(&[("home", 90, 0, MS), ("checkout", 90, 9, MS)])), []);
    assert_eq!(remarks(requests(&[("home", 90_000, 90, MS), ("checkout", 90_000, 540, MS)])), []);
    // All there is.
    assert_eq!(remarks(requests(&[("checkout", 900, 27, MS)])), []);
}

#[test]
fn a_request_that_makes_the_run_slow_is_named() {
    let found = remarks(requests(&[("home", 4000, 0, MS), ("cart", 4000, 0, 2 * MS), ("search", 1000, 0, 50 * MS)]));
    let remark = only(&found);
    assert_eq!((remark.about, remark.request.as_deref()), (About::SlowRequest, Some("search")));
    assert!(
        remark
            .message
            .to_string()
            .starts_with("search is 11.1% of all calls and 100% of the slowest 1%: without it p99 is 2")
    );
    assert_eq!(
        remarks(requests(&[("home", 1000, 0, MS), ("search", 1000, 0, 50 * MS)])),
        [],
        "it is half of all calls"
    );
    assert_eq!(remarks(requests(&[("home", 4000, 0, 40 * MS), ("search", 1000, 0, 50 * MS)])), [], "it hardly matters");
}

#[test]
fn two_kinds_of_answers_are_told_apart() {
    for rate in [50, 5000] {
        let mut random = Random::new(rate, 1);
        let end = |_| {
            let (is_slow, spread) = (random.unit() < 0.2, 0.9 + 0.2 * random.unit());
            End::Ok((if is_slow { 40.0 } else { 2.0 } * spread * MS as f64) as u64)
        };
        let found = remarks(carried_out(20, evenly(rate, 20), end));
        let remark = only(&found);
        assert_eq!(remark.about, About::Modes, "{remark:?}");
        let share = remark.share_ratio.unwrap();
        assert!((share - 0.2).abs() < 0.05, "{remark:?}");
        assert!(
            remark.message.to_string().contains("took about 2.0")
                || remark.message.to_string().contains("took about 1.9"),
            "{remark:?}"
        );
    }
}

#[test]
fn answers_that_wait_for_an_acknowledgement_begin_far_earlier() {
    let with = |took: u64, first_byte: u64| {
        let (plan, mut run) = carried_out(10, evenly(40, 10), |_| End::Ok(took));
        run.measured.times.record_n(Timing::FirstByte, first_byte, 400);
        remarks((plan, run))
    };
    let found = with(44 * MS, MS / 5);
    assert_eq!(only(&found).advice, Some(Advice::SetNoDelay), "{found:?}");
    assert_eq!(with(44 * MS, 43 * MS), [], "a target that takes its time");
    assert_eq!(with(80 * MS, MS / 5), [], "an answer that takes its time");
}

#[test]
fn slow_answers_at_one_time_are_no_second_kind() {
    let end = |due: u64| End::Ok(if due < 3 * SECOND_NS { 40 * MS } else { 2 * MS });
    assert_eq!(kinds(&remarks(carried_out(20, evenly(500, 20), end))), []);
    // A new connection for each call is slower for some of them.
    let mut n = 0;
    let end = |_| {
        n += 1;
        End::Ok(if n % 5 == 0 { 40 * MS } else { 2 * MS })
    };
    let (mut plan, run) = carried_out(20, evenly(500, 20), end);
    plan.reconnect = true;
    assert_eq!(remarks((plan, run)), []);
}

#[test]
fn failures_that_are_fast_or_slow_are_said_to_be() {
    let failing = |failed_ns: u64| {
        let mut n = 0;
        carried_out(10, evenly(500, 10), move |_| {
            n += 1;
            if n % 20 == 0 { End::Refused(failed_ns) } else { End::Ok(20 * MS) }
        })
    };
    let fast = remarks(failing(MS));
    assert_eq!(only(&fast).about, About::FailureTimes);
    assert!(only(&fast).message.to_string().starts_with("failures are fast: half took 1"), "{fast:?}");
    assert_eq!(only(&fast).advice, Some(Advice::TurnedAway));
    // An answer that began and broke off was not turned away.
    let (plan, mut run) = failing(MS);
    run.measured.failures.count_many(Failure::Exception, 250);
    assert_eq!(only(&remarks((plan, run))).advice, None);
    let slow = remarks(failing(900 * MS));
    assert!(only(&slow).message.to_string().starts_with("failures are slow: half took 9"), "{slow:?}");
    assert_eq!(remarks(failing(19 * MS)), []);
}

#[test]
fn connections_that_were_asked_for_again_are_counted() {
    let beside = |connects: &[(u64, u64)], own: Option<(Timing, u64)>| {
        let (plan, mut run) = carried_out(10, evenly(500, 10), |_| End::Ok(MS));
        for &(ns, n) in connects {
            run.measured.times.record_n(Timing::Connect, ns, n);
        }
        if let Some((timing, ns)) = own {
            run.measured.times.record(timing, ns);
        }
        remarks((plan, run))
    };
    let with = |connects: &[(u64, u64)]| beside(connects, None);
    let again = [(MS, 90), (1_010 * MS, 8), (3_100 * MS, 2)];
    for own in [Timing::Lag, Timing::Receiving] {
        assert_eq!(beside(&again, Some((own, 900 * MS))), [], "brunt may have been late to see them");
        assert_eq!(beside(&again, Some((own, 90 * MS))).len(), 1);
    }
    let found = with(&again);
    assert_eq!(
        only(&found).message.to_string(),
        "10 of 100 connections took whole seconds to make: the kernel had to ask again"
    );
    assert_eq!(with(&[(MS, 90), (1_010 * MS, 4)]), []);
    assert_eq!(with(&[(MS, 90), (1_600 * MS, 40)]), []);
    assert_eq!(with(&[(1_010 * MS, 40)]), [], "a target so far away");
}

#[test]
fn connections_that_the_target_closes_are_counted() {
    let with = |made: u64, open: u64| {
        let (plan, mut run) = carried_out(10, evenly(500, 10), |_| End::Ok(MS));
        run.measured.numbers.set(Counter::ConnectionsMade, made);
        run.series.connections_open(open);
        (plan, run)
    };
    let found = remarks(with(500, 4));
    assert_eq!(
        only(&found).message.to_string(),
        "the target closed connections after about 10 calls: 500 connections for 5,000 calls"
    );
    let found = remarks(with(4990, 4));
    assert!(only(&found).message.to_string().contains("after every call"), "{found:?}");
    assert_eq!(remarks(with(4, 4)), []);
    assert_eq!(remarks(with(300, 200)), [], "as many were open at once");
    // Brunt closes the connections of a target that sends more than was asked for.
    let (plan, mut run) = with(500, 4);
    (0..400).for_each(|_| run.measured.troubles.record(Failure::Protocol, "an answer that nobody asked for"));
    let found = remarks((plan, run));
    assert_eq!(only(&found).message.to_string(), "brunt closed 400 connections: an answer that nobody asked for");
    // Brunt closes the connection of a call that timed out.
    let (plan, mut run) = with(500, 4);
    (0..100).for_each(|_| run.measured.failures.record(Failure::Timeout, "no answer in 2s"));
    assert!(!kinds(&remarks((plan, run))).contains(&About::Closes));
    let headers = serde_json::json!({ "headers": [["Connection", "close"]] });
    let (mut plan, run) = with(5000, 4);
    plan.protocol = ProtocolOptions::new(headers.clone(), headers);
    assert_eq!(remarks((plan, run)), [], "each request asks for it");
    let (mut plan, run) = with(5000, 4);
    plan.reconnect = true;
    assert_eq!(remarks((plan, run)), [], "it was asked for");
    let (mut plan, run) = with(5000, 4);
    plan.load = Load::Replay(Box::new(LogReplay::new("a.log", "combined")));
    assert_eq!(remarks((plan, run)), [], "each session of a log ends its own");
}

#[test]
fn an_address_that_takes_no_connection_is_named() {
    let addresses = |address: Option<&str>, n: u64, host: &str| {
        let (mut plan, mut run) = carried_out(10, evenly(100, 10), |_| End::Ok(2 * MS));
        plan.target.host = host.to_owned();
        run.measured.numbers.set(Counter::ConnectionsMade, 64);
        for _ in 0..n {
            run.measured.troubles.record(Failure::Connect, "connection refused");
            if let Some(address) = address {
                run.measured.addresses.failed(address.parse().unwrap(), Failure::Connect, "connection refused");
            }
        }
        remarks((plan, run))
    };
    let found = addresses(Some("127.0.0.2:80"), 32, "shop.example");
    let remark = only(&found);
    assert_eq!(remark.about, About::Address);
    assert_eq!(
        remark.message.to_string(),
        "127.0.0.2:80 did not take 32 of 64 connections (connection refused): another address did"
    );
    let (mut plan, mut run) = carried_out(10, evenly(100, 10), |_| End::Ok(2 * MS));
    plan.target.host = "shop.example".to_owned();
    run.measured.numbers.set(Counter::ConnectionsMade, 64);
    let [one, other] = ["127.0.0.1:80", "127.0.0.2:80"].map(|address| address.parse().unwrap());
    (0..32).for_each(|_| run.measured.addresses.failed(other, Failure::Connect, "connection refused"));
    (0..64).for_each(|_| run.measured.addresses.made(one));
    assert_eq!(
        only(&remarks((plan.clone(), run.clone()))).message.to_string(),
        "127.0.0.2:80 took no connection in 32 attempts (connection refused): all load went to 127.0.0.1:80"
    );
    run.measured.addresses.made(other);
    assert!(
        only(&remarks((plan, run))).message.to_string().starts_with("127.0.0.2:80 did not take 32 of 64 connections")
    );
    assert_eq!(addresses(Some("127.0.0.2:80"), 3, "shop.example"), [], "once in a while");
    assert_eq!(addresses(Some("[::1]:80"), 64, "localhost"), [], "which has two on most machines");
    assert_eq!(addresses(None, 32, "shop.example"), [], "the only one");
}

#[test]
fn an_address_that_is_down_and_a_name_that_moved_are_two_subjects() {
    let (mut plan, mut run) = carried_out(10, evenly(100, 10), |_| End::Ok(2 * MS));
    plan.target.host = "shop.example".to_owned();
    run.measured.numbers.set(Counter::ConnectionsMade, 64);
    let [down, new] = ["10.0.0.7:443", "10.0.0.9:443"].map(|address| address.parse().unwrap());
    (0..20).for_each(|_| run.measured.addresses.failed(down, Failure::ConnectTimeout, "no answer"));
    run.measured.addresses.made(new);
    run.measured.addresses.moved_to(new);
    let found = remarks((plan, run));
    assert_eq!(kinds(&found), [About::Address, About::Moved], "{found:?}");
    let moved = found.last().unwrap().message.to_string();
    assert_eq!(moved, "the target's name moved to 10.0.0.9:443: connections made since then went there");
}
