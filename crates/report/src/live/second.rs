//! The figures of one second, as both live views show them.

use brunt_plan::units::Number;
use brunt_record::catalogue::Counter;
use brunt_record::histogram::{AtLeast, Censored};
use brunt_record::live::Live;
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::snapshot::{Phase, Snapshot};

/// The figures of a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Second {
    pub not_ok: u64,
    pub rate: f64,
    pub p50: Option<AtLeast<u64>>,
    pub p99: Option<AtLeast<u64>>,
}

impl Second {
    pub fn from_live(live: &Live, ok: &OkStatus) -> Self {
        let snapshot = &live.snapshot;
        let per_s = |n: u64| if live.length_ns > 0 { n as f64 * 1e9 / live.length_ns as f64 } else { 0.0 };
        let response = if has_latency(snapshot) { snapshot.response_times() } else { Censored::default() };
        let [p50, p99] = response.quantiles([0.5, 0.99]);
        Self { not_ok: snapshot.not_ok(ok), rate: per_s(snapshot.numbers.get(Counter::EndedAnswered)), p50, p99 }
    }
}

/// Whether a sent call ended: the time of a refused connection is no latency.
pub(crate) fn has_latency(snapshot: &Snapshot) -> bool {
    let failures = &snapshot.failures;
    let never_sent: u64 = Failure::ALL.into_iter().filter(|f| f.is_of_connecting()).map(|f| failures.count(f)).sum();
    snapshot.ended() > never_sent
}

/// A number of calls a second, without decimals.
pub(super) fn whole(rate: f64) -> Number {
    Number(rate.round())
}

/// The name of a phase while it goes on.
pub(crate) const fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warm-up",
        Phase::Measured => "measuring",
        Phase::Drain => "draining",
    }
}

/// Whether counts of phase `last` continue in phase `next`.
pub(crate) fn counts_on(last: Phase, next: Phase) -> bool {
    last == next || (last, next) == (Phase::Measured, Phase::Drain)
}
