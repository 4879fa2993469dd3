//! Implicit thresholds: at most [`Plan::max_error_rate`] of the calls, of the time of a closed flood's connections, of
//! each check and of each scenario's iterations may fail, unless a threshold of the plan limits that. Where answers are to
//! come as messages, some message has to come.
//!
//! `part / whole <= ratio` is `part <= floor(ratio × whole)`: at 1%, none of 50 calls may fail, and two of 200.

use brunt_plan::plan::Plan;
use brunt_plan::threshold::{Count, Figure, NameKind, Operator, Threshold};
use brunt_record::catalogue::Counter;
use brunt_record::snapshot::Snapshot;

use super::FigureSource;
use crate::asked::lacks_messages;

/// Returns the implicit thresholds of a run in which `total` happened. A run without due calls has no implicit threshold on
/// calls.
pub(super) fn thresholds(plan: &Plan, standing: &FigureSource<'_>) -> Vec<Threshold> {
    let total = standing.total;
    let most = plan.max_error_rate;
    if most >= 1.0 {
        return Vec::new();
    }
    let errors = |subject| Threshold::implicit(subject, Figure::ErrorRate, Operator::AtMost, most);
    let due = total.numbers.get(Counter::Due);
    let is_judged = due > 0 && !says(plan, &[], Threshold::is_about_errors) && !is_by_lost_agents(plan, total);
    let calls = is_judged.then(|| errors(None));
    // A target that never answered is reported as that.
    let has_time = total.statuses.total() > 0 && standing.availability().is_some();
    let is_watched = has_time && !says(plan, &[], Threshold::is_about_availability);
    let availability =
        is_watched.then(|| Threshold::implicit(None, Figure::Availability, Operator::AtLeast, 1.0 - most));
    let checks = total.figures.checks.iter().filter(|(name, check)| {
        let names = [*name, check.call.as_deref().unwrap_or(name)];
        check.passes + check.failed_checks() > 0
            && !says(plan, &[], Threshold::is_about_checks)
            && !says(plan, &names, Threshold::is_about_checks)
    });
    let checks = checks.map(|(name, _)| {
        Threshold::implicit(Some((NameKind::Check, name)), Figure::Checks, Operator::AtLeast, 1.0 - most)
    });
    let scenarios = total.figures.scenarios.iter().filter(|(name, scenario)| {
        let is_told = |threshold: &Threshold| threshold.is_about_errors() || threshold.is_about_script_errors();
        scenario.iterations_begun() > 0
            && !says(plan, &[], Threshold::is_about_script_errors)
            && !says(plan, &[*name], is_told)
    });
    let script_errors =
        |name| Threshold::implicit(Some((NameKind::Scenario, name)), Figure::ScriptErrorRate, Operator::AtMost, most);
    let scenarios = scenarios.map(|(name, _)| script_errors(name));
    let has_none = lacks_messages(plan, total) && !says(plan, &[], |limit| limit.measure() == MESSAGES);
    let messages = has_none.then(|| Threshold::implicit(None, MESSAGES, Operator::AtLeast, 1.0));
    calls.into_iter().chain(availability).chain(messages).chain(checks).chain(scenarios).collect()
}

const MESSAGES: Figure = Figure::Count(Count::Recorded(Counter::Messages));

/// Whether only calls of lost agents exceed the limit: those say nothing about the target.
fn is_by_lost_agents(plan: &Plan, total: &Snapshot) -> bool {
    let lost = total.numbers.get(Counter::UnsentLost) + total.numbers.get(Counter::Unknown);
    let (failed, due) = (total.not_ok(&plan.ok_status), total.numbers.get(Counter::Due));
    let most = |of: u64| plan.max_error_rate * of as f64;
    failed as f64 > most(due) && failed.saturating_sub(lost) as f64 <= most(due.saturating_sub(lost))
}

/// Whether a threshold of the plan limits this, on a subject with one of these names, or on the whole run where there
/// are none.
fn says(plan: &Plan, names: &[&str], is_about: impl Fn(&Threshold) -> bool) -> bool {
    plan.thresholds.iter().filter(|threshold| is_about(threshold)).any(|threshold| match threshold.subject() {
        None => names.is_empty(),
        Some((_, name)) => names.contains(&name),
    })
}

#[cfg(test)]
mod tests {
    use brunt_plan::arrivals::Spread;
    use brunt_plan::plan::Load;
    use brunt_record::catalogue::Timing;
    use brunt_record::figures::Example;

    use super::*;
    use crate::fixtures::plan;
    use crate::summary::Summary;
    use crate::thresholds::ThresholdResult;

    fn calls(ok: u64, failed: u64) -> Snapshot {
        let mut calls = Snapshot::with_numbers([(Counter::Due, ok + failed)]);
        for (status, n) in [(200, ok), (429, failed)] {
            (0..n).for_each(|_| calls.statuses.record(status));
            calls.times.record_n(Timing::Response, 1_000_000, n);
        }
        calls
    }

    fn judged(thresholds: &[&str], most: f64, measured: Snapshot) -> Vec<ThresholdResult> {
        let thresholds = thresholds.iter().map(|text| text.parse().unwrap()).collect();
        let load = Load::Open { profile: "1".parse().unwrap(), arrivals: Spread::Uniform };
        let plan = Plan { thresholds, max_error_rate: most, load, ..plan() };
        let (_, run) = crate::fixtures::run();
        let drained = Snapshot::default();
        Summary::new(plan, brunt_record::recording::Recording { measured, drained, ..run }).thresholds
    }

    #[test]
    fn calls_of_lost_agents_alone_fail_no_run() {
        let with_lost = |ok: u64, failed: u64| {
            let mut calls = calls(ok, failed);
            for counter in [Counter::Due, Counter::Unsent, Counter::UnsentLost] {
                calls.numbers.add(counter, 100);
            }
            calls.times.record_bounds(Timing::Response, 1_000_000, 100);
            judged(&[], 0.01, calls)
        };
        assert_eq!(with_lost(200, 1), []);
        let failed = with_lost(200, 10);
        assert!(matches!(failed.as_slice(), [result] if !result.held), "{failed:?}");
    }

    #[test]
    fn one_in_a_hundred_may_fail() {
        for (ok, failed, most, held) in
            [(49, 1, 0.01, false), (199, 1, 0.01, true), (99, 1, 0.01, true), (98, 2, 0.01, false), (95, 5, 0.05, true)]
        {
            let results = judged(&[], most, calls(ok, failed));
            let [result] = results.as_slice() else { panic!("{results:?}") };
            assert_eq!((result.held, result.is_implicit()), (held, true), "{failed} beside {ok}: {result:?}");
        }
        assert_eq!(judged(&[], 0.01, calls(49, 1))[0].condition.to_string(), "error_rate<=1%");
        assert!(judged(&[], 1.0, calls(0, 10)).is_empty(), "everything may fail");
        assert!(judged(&[], 0.01, calls(0, 0)).is_empty(), "nothing was due");
    }

    #[test]
    fn connections_of_a_closed_flood_have_a_server_nearly_all_the_time() {
        let judged = |away: f64, thresholds: &[&str]| {
            let (mut plan, mut run) = crate::fixtures::run();
            plan.thresholds = thresholds.iter().map(|text| text.parse().unwrap()).collect();
            let whole = f64::from(plan.connections.most()) * run.measured_ns as f64;
            run.measured.numbers.set(Counter::WithoutServer, (away * whole) as u64);
            let results = Summary::new(plan, run).thresholds;
            results
                .into_iter()
                .filter(|result| result.condition.threshold().is_some_and(Threshold::is_about_availability))
                .collect::<Vec<_>>()
        };
        let [away] = &judged(1.0 / 3.0, &[])[..] else { panic!() };
        assert_eq!(
            (away.condition.to_string().as_str(), away.got.to_string().as_str(), away.held),
            ("availability>=99%", "66.7%", false)
        );
        assert!(judged(0.0, &[])[0].held && judged(0.009, &[])[0].held);
        // How many calls may fail says nothing of the time in which there were none.
        assert!(!judged(0.5, &["error_rate<5%"])[0].held);
        let written = judged(0.5, &["availability>40%"]);
        assert!(matches!(&written[..], [only] if only.held && !only.is_implicit()), "{written:?}");
    }

    #[test]
    fn what_is_written_takes_its_place() {
        let names = |thresholds: &[&str]| {
            let mut measured = calls(90, 10);
            for (name, fails) in [("home: fine", 3), ("cart: fine", 0)] {
                let check = measured.figures.checks.named(name);
                let call = name.split(':').next();
                (0..90).for_each(|_| check.passed(call, "fine"));
                (0..fails).for_each(|_| check.failed(call, "fine", Example::default));
            }
            measured.figures.scenarios.named("shop").errors = 4;
            let implicit = judged(thresholds, 0.01, measured).into_iter().filter(ThresholdResult::is_implicit);
            implicit.map(|result| (result.condition.to_string(), result.held)).collect::<Vec<_>>()
        };
        let implicit = |text: &str, held| (text.to_owned(), held);
        let (calls, shop) = (implicit("error_rate<=1%", false), implicit("scenario shop:script_error_rate<=1%", false));
        let (home, cart) =
            (implicit("check home: fine:checks>=99%", false), implicit("check cart: fine:checks>=99%", true));
        let all = [&calls, &home, &cart, &shop].map(Clone::clone);
        let sorted = |mut names: Vec<_>| {
            names.sort();
            names
        };
        let without = |left_out: &[&(String, bool)]| {
            sorted(all.iter().filter(|one| !left_out.contains(one)).cloned().collect::<Vec<_>>())
        };
        for (thresholds, left_out) in [
            (&["p99<1s", "home:error_rate<50%"][..], &[][..]),
            (&["error_rate<50%"], &[&calls]),
            (&["checks>90%"], &[&home, &cart]),
            (&["home: fine:checks>90%"], &[&home]),
            (&["cart:checks>90%"], &[&cart]),
            (&["script_errors<5"], &[&shop]),
            (&["shop:error_rate<=100%"], &[&shop]),
        ] {
            assert_eq!(sorted(names(thresholds)), without(left_out), "{thresholds:?}");
        }
    }
}
