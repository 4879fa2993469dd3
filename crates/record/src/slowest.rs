//! Traced calls that were answered with success and took longest: the way from a percentile to the target's trace.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::redaction::Secrets;

/// The most calls that are kept, of a second or of a run.
pub const MOST_SLOWEST: usize = 5;

/// A call that has a trace, and was answered with success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedCall {
    /// When it was due, in nanoseconds after the measured part's beginning.
    pub due_ns: u64,
    /// From due to its end, in nanoseconds.
    pub took_ns: u64,
    /// The status of its answer.
    pub status: u16,
    /// The name of its request; left out where calls have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The id of its trace (W3C Trace Context), 32 hexadecimal digits.
    pub trace_id: String,
}

/// The slowest traced calls, longest first.
///
/// Merging keeps the longest of both, so that its order does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Slowest(Vec<TracedCall>);

impl Slowest {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These calls, longest first.
    pub fn calls(&self) -> &[TracedCall] {
        &self.0
    }

    /// How long a call has to take to be kept, in nanoseconds: longer than this.
    pub fn least_ns(&self) -> u64 {
        self.0.get(MOST_SLOWEST - 1).map_or(0, |call| call.took_ns)
    }

    /// Adds a call.
    pub fn add(&mut self, call: TracedCall) {
        self.0.push(call);
        self.keep_longest();
    }

    /// Adds the calls of another.
    pub fn merge(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
        self.keep_longest();
    }

    fn keep_longest(&mut self) {
        let rank = |call: &TracedCall| (Reverse(call.took_ns), call.due_ns, call.trace_id.clone());
        self.0.sort_by_cached_key(rank);
        self.0.truncate(MOST_SLOWEST);
    }

    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        for call in &mut self.0 {
            secrets.hide_in(&mut call.request);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn slowest() -> impl Strategy<Value = Slowest> {
        let call = (0..9_u64, 0..50_u64, "[ab]").prop_map(|(due_ns, took_ns, trace_id)| TracedCall {
            due_ns,
            took_ns,
            trace_id,
            ..TracedCall::default()
        });
        vec(call, 0..20).prop_map(|calls| {
            let mut slowest = Slowest::default();
            for call in calls {
                slowest.add(call);
            }
            slowest
        })
    }

    proptest! {
        #[test]
        fn the_order_of_merging_does_not_matter(a in slowest(), b in slowest(), c in slowest()) {
            let merged = |all: [&Slowest; 3]| {
                let mut sum = Slowest::default();
                for one in all {
                    sum.merge(one);
                }
                sum
            };
            let all = merged([&a, &b, &c]);
            prop_assert_eq!(&all, &merged([&c, &b, &a]));
            let mut longest: Vec<_> = [&a, &b, &c].iter().flat_map(|one| one.calls()).map(|call| call.took_ns).collect();
            longest.sort_unstable_by_key(|ns| Reverse(*ns));
            longest.truncate(MOST_SLOWEST);
            prop_assert_eq!(all.calls().iter().map(|call| call.took_ns).collect::<Vec<_>>(), longest);
        }
    }

    #[test]
    fn a_call_has_to_be_longer_than_the_shortest_once_there_are_enough() {
        let mut slowest = Slowest::default();
        for took_ns in [7, 3, 9, 4] {
            slowest.add(TracedCall { took_ns, ..TracedCall::default() });
        }
        assert_eq!(slowest.least_ns(), 0, "there is room for one more");
        slowest.add(TracedCall { took_ns: 5, ..TracedCall::default() });
        assert_eq!(slowest.least_ns(), 3);
        slowest.add(TracedCall { took_ns: 8, ..TracedCall::default() });
        assert_eq!(slowest.calls().iter().map(|call| call.took_ns).collect::<Vec<_>>(), [9, 8, 7, 5, 4]);
    }
}
