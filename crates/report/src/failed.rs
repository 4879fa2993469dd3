//! The first line of a run with more failed calls, or more time without a server, than an implicit threshold allows.

use std::collections::BTreeMap;

use brunt_judge::remarks::About;
use brunt_judge::summary::Summary;
use brunt_judge::thresholds::{JudgedCondition, ThresholdResult};
use brunt_plan::plan::MAX_ERROR_RATE;
use brunt_plan::threshold::Threshold;
use brunt_plan::units::Clock;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::counts::Failures;
use brunt_record::outcome::{Failure, OkStatus};

use crate::made;
use crate::numbers::{brief, clean, count, counted, percent};

/// The most reasons that are shown for one failure.
const MOST_REASONS: usize = 3;

/// The share of failed calls from which on an outage explains them.
const NEARLY_ALL: f64 = 0.95;

/// The first failed implicit threshold that has a sentence, with that. `None` where nothing was answered, which has a
/// sentence of its own.
pub(crate) fn sentence(summary: &Summary) -> Option<(&ThresholdResult, String)> {
    let failed = || summary.thresholds.iter().filter(|result| !result.held && result.is_implicit());
    let of_time = |result: &&ThresholdResult| is_about_availability(result);
    // Connections without a server make few attempts: their share of calls would look small. Users that pause between
    // attempts have little of their time without one, and an outage of which its length is known.
    let is_told_by_calls =
        absence(summary).is_some() && failed().any(|result| has_sentence(result) && !of_time(&result));
    let absence = failed().find(|result| of_time(result) && !is_told_by_calls);
    absence.into_iter().chain(failed()).find_map(|result| Some((result, sentence_of(result, summary)?)))
}

/// Such as `66.7% of 1,500 calls, 1,001 × 429 from 0:03; default limit 1%. If 429 is expected: --ok-status 2xx,3xx,429`, or
/// where an outage explains it `no server for 2.0s of 6s, 33.3% of 600 calls failed; default limit 1%.` `None`
/// for an explicit threshold, or one on something with a name.
pub(crate) fn sentence_of(result: &ThresholdResult, summary: &Summary) -> Option<String> {
    if !has_sentence(result) || !summary.answered() {
        return None;
    }
    if matches!(result.condition, JudgedCondition::Made(_)) {
        return made::sentence_of(result, summary);
    }
    let threshold = result.condition.threshold()?;
    if !threshold.is_about_errors() && !threshold.is_about_availability() {
        // A finding says that no message came.
        return None;
    }
    if threshold.is_about_availability() {
        let share = percent(1.0 - summary.standing().availability()?);
        return Some(format!("{} for {share} of the time{}; {}.", absent(summary), since(summary), limit(summary)));
    }
    let due = summary.total.numbers.get(Counter::Due);
    if let Some(absent) = absence(summary) {
        return Some(format!(
            "no server for {absent}, {} of {} failed; {}.",
            percent(summary.error_rate),
            counted(due, "call"),
            limit(summary)
        ));
    }
    let (worst, meant) = worst(summary);
    Some(format!(
        "{} of {}, {worst}{}; {}.{meant}",
        percent(summary.error_rate),
        counted(due, "call"),
        since(summary),
        limit(summary)
    ))
}

/// `no server`, `no connection` to one that refused handshakes, or `no answer` of a target that stood still.
pub(crate) fn absent(summary: &Summary) -> &'static str {
    // An attempt for which no call waited is no failed call.
    let attempts = [&summary.total.failures, &summary.total.troubles].into_iter().flat_map(Failures::counted);
    match attempts.filter(|(failure, _)| failure.is_unreached()).max_by_key(|(_, n)| *n) {
        // Something is there, and no server of this protocol.
        Some((Failure::Tls | Failure::Handshake, _)) => "no connection",
        Some(_) => "no server",
        None => "no answer",
    }
}

/// How long the target was not there, of the whole run, where that explains nearly all that failed: `3.1s of 8s`.
fn absence(summary: &Summary) -> Option<String> {
    let outages = || summary.remarks.iter().filter(|remark| remark.about == About::Outage);
    let calls: u64 = outages().filter_map(|outage| outage.calls).sum();
    let ns: u64 = outages().filter_map(|outage| Some(outage.to_ns?.saturating_sub(outage.from_ns?))).sum();
    let is_cause = calls as f64 >= NEARLY_ALL * summary.not_ok as f64;
    (ns > 0 && is_cause).then(|| format!("{} of {}", tenths(ns), tenths(summary.run.measured_ns)))
}

/// Such as `3.1s`, or `8s`.
pub(crate) fn tenths(ns: u64) -> String {
    format!("{}s", (ns as f64 / 1e8).round() / 10.0)
}

/// Whether the sentence of this result, if it failed, stands at the head: an implicit threshold on the whole run.
pub(crate) fn has_sentence(result: &ThresholdResult) -> bool {
    match &result.condition {
        JudgedCondition::Default(threshold) => threshold.subject().is_none(),
        JudgedCondition::Made(_) => true,
        _ => false,
    }
}

fn is_about_availability(result: &ThresholdResult) -> bool {
    result.condition.threshold().is_some_and(Threshold::is_about_availability)
}

/// Such as `default limit 1%`.
fn limit(summary: &Summary) -> String {
    let most = summary.plan.max_error_rate;
    let limit = if most.total_cmp(&MAX_ERROR_RATE).is_eq() { "default limit" } else { "limit" };
    format!("{limit} {}", percent(most))
}

/// A way in which calls ended that are not ok.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) count: u64,
    /// The status with its name, the failure, or another ending: `503`, `timeout`, `unfinished`.
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The kind of an ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Status(u16),
    Failure(Failure),
    Other,
}

/// All endings that are not ok, those first that say most of why.
pub(crate) fn ways(summary: &Summary) -> Vec<Ending> {
    let (total, ok) = (&summary.total, summary.ok_status());
    let statuses =
        total.statuses.sorted().into_iter().filter(|(status, _)| !ok.holds(*status)).map(|(status, n)| Ending {
            count: n.saturating_sub(total.excused.count(status)),
            name: name(summary, status),
            kind: Kind::Status(status),
        });
    let failures = total.failures.counted();
    let failures = failures.map(|(failure, count)| Ending {
        count,
        name: failure.name().to_owned(),
        kind: Kind::Failure(failure),
    });
    let checked = total.failed_check.ok(ok);
    let unended = [Counter::Unfinished, Counter::Unsent, Counter::Unknown];
    let others = unended.map(|counter| (total.numbers.get(counter), counter.key().to_owned())).into_iter();
    let others = others.chain((checked > 0).then(|| (checked, by_checks(summary, checked))));
    let others = others.map(|(count, name)| Ending { count, name, kind: Kind::Other });
    let mut ways: Vec<_> = statuses.chain(failures).chain(others).filter(|way| way.count > 0).collect();
    // What followed from another failure says less than that.
    let own =
        |way: &Ending| if let Kind::Failure(failure) = way.kind { total.failures.own(failure) } else { way.count };
    ways.sort_by_key(|way| std::cmp::Reverse((own(way), way.count)));
    ways
}

/// Why `calls` are not ok whose status is one, where a single check or reason says it: `check 'has a session'`, or
/// `more than 10 redirects in a row`.
fn by_checks(summary: &Summary, calls: u64) -> String {
    let mut found: BTreeMap<(&str, bool), u64> = BTreeMap::new();
    for (_, check) in summary.total.figures.checks.iter().filter(|(_, check)| check.fails > 0) {
        *found.entry((&check.check, check.reasons > 0)).or_default() += check.fails;
    }
    // Checks of calls without an answer fail, too.
    let are_of_answers = summary.total.failures.total() == 0;
    let most = found.iter().max_by_key(|(_, fails)| **fails);
    let only =
        most.filter(|(_, fails)| found.len() == 1 || are_of_answers && **fails as f64 >= NEARLY_ALL * calls as f64);
    match only {
        Some(((reason, true), _)) => brief(reason),
        Some(((check, false), _)) => format!("check '{}'", brief(check)),
        None => "failed by checks or the script".to_owned(),
    }
}

/// The most frequent failure, and the flag to write if it was intended.
pub(crate) fn worst(summary: &Summary) -> (String, String) {
    let Some(Ending { count: n, name, kind }) = ways(summary).into_iter().next() else { return Default::default() };
    let ok = summary.ok_status();
    let meant = match kind {
        Kind::Status(status) if (400..500).contains(&status) => {
            let ok = if *ok == OkStatus::default() { "2xx,3xx".to_owned() } else { String::from(ok.clone()) };
            format!(" If {status} is expected: --ok-status {ok},{status}")
        }
        _ => String::new(),
    };
    (format!("{} × {name}", count(n)), meant)
}

/// Such as `429`, or `8 RESOURCE_EXHAUSTED` where the protocol has names.
fn name(summary: &Summary, status: u16) -> String {
    summary.run.status_names.get(&status).map_or_else(|| status.to_string(), |name| format!("{status} {}", clean(name)))
}

/// When calls began to fail, by due time, such as ` from 0:03.2`; empty if they failed from the first second on.
fn since(summary: &Summary) -> String {
    let by_due = summary.total.timeline.points().find(|(_, point)| point.not_ok() > 0).map(|(start_ns, _)| start_ns);
    let by_end = || summary.run.series.points().iter().find(|point| point.not_ok > 0).map(|point| point.start_ns);
    match by_due.or_else(by_end).unwrap_or(0) {
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
