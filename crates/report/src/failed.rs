//! The first line of a run of which more calls failed than may by its implicit threshold.

use brunt_judge::summary::Summary;
use brunt_judge::thresholds::ThresholdResult;
use brunt_plan::plan::MAX_ERROR_RATIO;
use brunt_plan::units::Clock;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::counts::Failures;
use brunt_record::outcome::{Failure, OkStatus};

use crate::numbers::{brief, count, counted, percent};

/// The most reasons that are shown for one failure.
const MOST_REASONS: usize = 3;

/// How the sentence begins.
pub(crate) const FAILED: &str = "FAILED: ";

/// Such as `FAILED: 66.7% of 1,500 calls, 1,001 × 429 from 0:03; default limit 1%. Meant? --ok-status 2xx,3xx,429`. None where
/// the implicit threshold held, was replaced, or nothing was answered, which is said otherwise.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    summary.thresholds.iter().find(|result| is_of_calls(result)).filter(|result| !result.held && summary.answered())?;
    let due = summary.total.numbers.get(Counter::Due);
    let most = summary.plan.max_error_ratio;
    let limit = if most.total_cmp(&MAX_ERROR_RATIO).is_eq() { "default limit" } else { "limit" };
    let (worst, meant) = worst(summary);
    Some(format!(
        "{FAILED}{} of {}, {worst}{}; {limit} {}.{meant}",
        percent(summary.error_rate),
        counted(due, "call"),
        since(summary),
        percent(most)
    ))
}

/// Whether this is the implicit threshold on all calls.
pub(crate) fn is_of_calls(result: &ThresholdResult) -> bool {
    result.implicit && result.threshold.starts_with("error_rate")
}

/// What failed most, and what to write if that was meant.
pub(crate) fn worst(summary: &Summary) -> (String, String) {
    let (total, ok) = (&summary.total, summary.ok_status());
    let statuses = total.statuses.sorted().into_iter().filter(|(status, _)| !ok.holds(*status));
    let not_meant = |(status, n): (u16, u64)| (n.saturating_sub(total.excused.count(status)), status);
    let statuses = statuses.map(not_meant).map(|(n, status)| (n, name(summary, status), Some(status)));
    let failures = total.failures.counted().map(|(failure, n)| (n, failure.name().to_owned(), None));
    let checks = [(total.failed_check.ok(ok), "failed by checks or the script".to_owned(), None)];
    let others = [Counter::Unfinished, Counter::Unsent];
    let others = others.map(|counter| (total.numbers.get(counter), counter.key().to_owned(), None));
    let all = statuses.chain(failures).chain(checks).chain(others);
    let Some((n, name, status)) = all.max_by_key(|(n, ..)| *n) else { return Default::default() };
    let meant = status.filter(|status| (400..500).contains(status)).map_or_else(String::new, |status| {
        let ok = if *ok == OkStatus::default() { "2xx,3xx".to_owned() } else { String::from(ok.clone()) };
        format!(" Meant? --ok-status {ok},{status}")
    });
    (format!("{} × {name}", count(n)), meant)
}

/// Such as `429`, or `8 RESOURCE_EXHAUSTED` where the protocol has names.
fn name(summary: &Summary, status: u16) -> String {
    summary.run.status_names.get(&status).map_or_else(|| status.to_string(), |name| format!("{status} {name}"))
}

/// Since when calls failed, such as ` from 0:03`; empty where they did from the first second on.
fn since(summary: &Summary) -> String {
    let first = summary.run.series.points().iter().find(|point| point.not_ok > 0);
    match first.map_or(0, |point| point.start_ns) {
        ns if ns < SECOND_NS => String::new(),
        ns => format!(" from {}", Clock(ns)),
    }
}

/// Such as `timeout × 18 (no answer in 2s)`.
pub(crate) fn in_words(failures: &Failures, failure: Failure, n: u64) -> String {
    let reasons = failures.reasons(failure);
    let said: Vec<_> = reasons.into_iter().filter(|(reason, _)| !reason.is_empty()).collect();
    let shown = said
        .iter()
        .take(MOST_REASONS)
        .map(|&(reason, of)| if of == n { brief(reason) } else { format!("{} × {}", brief(reason), count(of)) });
    let mut shown: Vec<_> = shown.collect();
    if said.len() > MOST_REASONS {
        shown.push("…".to_owned());
    }
    let reasons = if shown.is_empty() { String::new() } else { format!(" ({})", shown.join("; ")) };
    format!("{} × {}{reasons}", failure.name(), count(n))
}
