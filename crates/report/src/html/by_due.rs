//! What the page's script says of each stretch that is pointed at.

use schemars::JsonSchema;
use serde::Serialize;

use super::distribution::{Bound, significant};
use super::stretches::Stretch;

/// Columns of figures, one row a stretch. A call that failed counts as one that would have taken longer than it did.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct ByDue {
    start_ms: Vec<u64>,
    length_ms: Vec<u64>,
    p50_ns: Vec<Option<Bound>>,
    p99_ns: Vec<Option<Bound>>,
    max_ns: Vec<Option<Bound>>,
    /// Calls that ended well a second, by when they ended.
    ok_per_s: Vec<f64>,
    /// Calls that ended otherwise, likewise.
    not_ok_per_s: Vec<f64>,
    /// Calls that were due and had not ended, at the stretch's end.
    waiting: Vec<u64>,
}

impl ByDue {
    pub(super) fn from_stretches(stretches: &[Stretch]) -> Self {
        let mut columns = Self::default();
        for stretch in stretches {
            columns.start_ms.push(stretch.from_ns / 1_000_000);
            columns.length_ms.push((stretch.to_ns - stretch.from_ns) / 1_000_000);
            let [p50, p99, max] = stretch.calls.response_times().quantiles([0.5, 0.99, 1.0]);
            columns.p50_ns.push(p50.map(Bound));
            columns.p99_ns.push(p99.map(Bound));
            columns.max_ns.push(max.map(Bound));
            columns.ok_per_s.push(significant(stretch.flow.ok / stretch.seconds(), 4));
            columns.not_ok_per_s.push(significant(stretch.flow.not_ok / stretch.seconds(), 4));
            columns.waiting.push(stretch.flow.waiting.round() as u64);
        }
        columns
    }
}
