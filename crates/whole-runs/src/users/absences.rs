//! Users whose target is away for a while.

use super::super::outage::{Away, HALF, Target};
use super::*;

/// What users of this injection who call in a loop, with a pause of this many seconds, know of their target.
fn summary(injection: &str, pause: &str, away: Target) -> Summary {
    let script = format!("brunt.scenario('s', function(vu) http:get('/'); {pause} end):inject {{ {injection} }}");
    carry_out(&plan_of(&script, &[]).unwrap(), away).summary
}

fn unavailability(summary: &Summary) -> Option<f64> {
    summary.standing().availability().map(|share| 1.0 - share)
}

/// The thresholds that failed, with what was measured.
fn failed(summary: &Summary) -> Vec<String> {
    let failed = summary.thresholds.iter().filter(|result| !result.held);
    failed.map(|result| result.condition.to_string()).collect()
}

#[test]
fn users_know_for_how_long_they_had_no_server() {
    for (users, workers) in [(1, 1), (30, 2)] {
        let script = format!("brunt.scenario('s', function() http:get('/') end):inject {{ brunt.users({users}, 10) }}");
        let plan = Plan { workers, ..plan_of(&script, &[]).unwrap() };
        let summary = carry_out(&plan, Target::away(Away::Killed, HALF)).summary;
        let away = unavailability(&summary).unwrap();
        assert!((0.45..=0.55).contains(&away), "{users} users: {away}");
        assert!(
            failed(&summary).iter().any(|condition| condition.starts_with("availability")),
            "{:?}",
            failed(&summary)
        );
    }
}

#[test]
fn users_have_no_server_while_their_calls_time_out_without_a_byte() {
    let script = "brunt.scenario('s', function() http:get('/', { timeout = 0.5 }) end):inject { brunt.users(5, 10) }";
    let summary = carry_out(&plan_of(script, &[]).unwrap(), Target::away(Away::Frozen, HALF)).summary;
    let away = unavailability(&summary).unwrap();
    assert!((0.4..=0.46).contains(&away), "{away}");
    let failed = failed(&summary);
    assert!(failed.iter().any(|condition| condition.starts_with("availability")), "{failed:?}");
}

#[test]
fn a_target_that_is_there_has_lost_no_time() {
    let summary = summary("brunt.users(3, 2)", "", Target::away(Away::Killed, 0..0));
    assert_eq!(unavailability(&summary), Some(0.0));
    let busy = summary.run.measured.numbers.get(Counter::UsersBusy);
    assert_eq!(busy, 3 * summary.run.measured_ns, "a user without pauses is busy at all times");
}

#[test]
fn pauses_are_in_neither_time() {
    let summary = summary("brunt.users(4, 10)", "brunt.pause(0.099)", Target::away(Away::Killed, 0..0));
    let busy = summary.run.measured.numbers.get(Counter::UsersBusy) as f64;
    // A hundred calls of a millisecond each, and one connection of 50 µs.
    assert!((0.95..=1.05).contains(&(busy / (4.0 * 0.1 * 1e9))), "{busy}");
    assert_eq!(unavailability(&summary), Some(0.0));
}

#[test]
fn users_who_come_at_a_rate_have_the_outage_in_their_error_rate_alone() {
    let summary = summary("brunt.rate(50, 10)", "", Target::away(Away::Killed, HALF));
    assert_eq!(unavailability(&summary), None);
    let [error_rate] = &failed(&summary)[..] else { panic!("{:?}", failed(&summary)) };
    assert!(error_rate.starts_with("error_rate"), "{error_rate}");
}
