//! The totals of a result for a wrk script.

use brunt_judge::summary::Summary;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use brunt_script::{Errors, Totals};

/// The totals of `summary` that `done(summary, latency, requests)` is called with.
pub fn totals(summary: &Summary) -> Totals {
    let measured = &summary.run.measured;
    let workers = f64::from(summary.plan.workers.max(1));
    Totals {
        measured_ns: summary.run.measured_ns,
        answered: summary.total.numbers.get(Counter::EndedAnswered),
        bytes_in: measured.numbers.get(Counter::ClearIn),
        errors: errors(summary),
        response: summary.total.times.get(Timing::Response).lower().into_owned(),
        rates: summary.run.series.points().iter().map(|point| (point.answered_per_s() / workers) as u64).collect(),
    }
}

/// Failures of all calls by wrk's kinds, and answers in the measured part whose status is an error.
fn errors(summary: &Summary) -> Errors {
    use Failure::{Closed, Connect, ConnectTimeout, Descriptors, Ports, Protocol, Read, Resolve, Timeout, Tls, Write};
    let failed = |failures: &[Failure]| failures.iter().map(|failure| summary.failures(*failure)).sum();
    let statuses = summary.run.measured.statuses.sorted();
    Errors {
        connect: failed(&[Resolve, Connect, ConnectTimeout, Ports, Descriptors, Tls]),
        read: failed(&[Read, Closed, Protocol]),
        write: failed(&[Write]),
        status: statuses.iter().filter(|(status, _)| *status > 399).map(|(_, n)| n).sum(),
        timeout: failed(&[Timeout]),
    }
}
