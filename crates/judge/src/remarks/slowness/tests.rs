//! Targets that are slow for a while, and such that are not.

use brunt_plan::random::Random;
use brunt_record::SECOND_NS;

use super::super::About;
use super::super::episodes::tests::{End, MS, carried_out, evenly, kinds, remarks};

#[test]
fn a_slow_stretch_has_its_beginning_its_end_and_its_times() {
    for (rate, slow_ms) in [(50, 100), (50, 300), (5000, 12), (5000, 300)] {
        let end = |due: u64| End::Ok(if (2 * SECOND_NS..4 * SECOND_NS).contains(&due) { slow_ms * MS } else { 2 * MS });
        let found = remarks(carried_out(10, evenly(rate, 10), end));
        assert_eq!(kinds(&found), [About::Slowness], "{rate}/s, {slow_ms} ms: {found:?}");
        let (from, to) = (found[0].from_ns.unwrap(), found[0].to_ns.unwrap());
        // A bin of 20 calls is 400 ms wide at 50/s.
        assert!(from.abs_diff(2 * SECOND_NS) <= 400 * MS && to.abs_diff(4 * SECOND_NS) <= 400 * MS, "{found:?}");
        assert!(found[0].message.to_string().contains("the others 2"), "{found:?}");
    }
}

/// One server of five is slow: the median knows nothing of it.
#[test]
fn a_stretch_in_which_a_part_of_calls_is_slow_has_their_p90() {
    for (rate, seconds) in [(50, 20), (500, 10), (5000, 10)] {
        let (from, to) = (seconds * SECOND_NS * 3 / 10, seconds * SECOND_NS * 6 / 10);
        let mut number = 0_u64;
        let end = |due: u64| {
            number += 1;
            End::Ok(if (from..to).contains(&due) && number.is_multiple_of(5) { 80 * MS } else { 2 * MS })
        };
        let found = remarks(carried_out(seconds, evenly(rate, seconds), end));
        assert_eq!(kinds(&found), [About::Slowness], "{rate}/s: {found:?}");
        // A bin of 60 calls is 1.2 s wide at 50/s.
        let (began, ended) = (found[0].from_ns.unwrap(), found[0].to_ns.unwrap());
        assert!(began.abs_diff(from) <= 1200 * MS && ended.abs_diff(to) <= 1200 * MS, "{found:?}");
        assert!(
            found[0].message.to_string().contains(" took a p90 of 8")
                && found[0].message.to_string().contains("the others 2"),
            "{found:?}"
        );
    }
}

#[test]
fn a_target_that_stays_slow_is_slow_from_then_on() {
    let end = |due: u64| End::Ok(if due >= 6 * SECOND_NS { 2_000 * MS } else { 5 * MS });
    let found = remarks(carried_out(12, evenly(100, 12), end));
    assert_eq!(kinds(&found), [About::Slowness], "{found:?}");
    assert!(found[0].message.to_string().starts_with("the target was slow from 0:06 on: "), "{found:?}");
}

#[test]
fn a_time_that_climbs_is_no_stretch() {
    let evenly_slower = |due: u64| 5 * MS + due / 100;
    let twice_each_two_seconds = |due: u64| (3e6 * 2_f64.powf(due as f64 / 2e9)) as u64;
    // Calm until a moment, and twice the limit within half a second of it, but nowhere at once.
    let from_a_moment = |due: u64| {
        let climbed_s = due.saturating_sub(6 * SECOND_NS) as f64 / 1e9;
        (10e6 * 2_f64.powf((climbed_s / 0.3).min(3.0))) as u64
    };
    for takes in [evenly_slower, twice_each_two_seconds, from_a_moment] {
        let found = remarks(carried_out(12, evenly(500, 12), |due| End::Ok(takes(due))));
        assert_eq!(kinds(&found), [], "{found:?}");
    }
}

#[test]
fn a_target_that_is_slow_again_and_again_is_of_that_kind() {
    let end = |due: u64| End::Ok(if due / (500 * MS) % 4 == 1 { 40 * MS } else { 5 * MS });
    let found = remarks(carried_out(20, evenly(500, 20), end));
    assert!(!kinds(&found).contains(&About::Slowness), "{found:?}");
}

#[test]
fn chance_is_no_slowness() {
    let mut random = Random::new(3, 9);
    for mean in [5.0, 50.0] {
        let end = |_| End::Ok((-mean * (1.0 - random.unit()).ln() * MS as f64) as u64);
        let found = remarks(carried_out(60, evenly(300, 60), end));
        assert_eq!(kinds(&found), []);
    }
}
