//! Calls that were not ok, as examples of how others ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::Failure;
use crate::redaction::Secrets;

/// The most examples of one ending.
pub const MOST_EXAMPLES: usize = 3;
/// The most endings that have examples.
const MOST_WAYS: usize = 32;
/// The longest excerpt that is kept, in bytes.
pub const LONGEST_SAID: usize = 200;

/// A call that was not ok.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedExample {
    /// When it was due, in nanoseconds after the measured part's beginning.
    pub due_ns: u64,
    /// From due to its end, in nanoseconds.
    pub took_ns: u64,
    /// The name of its request; left out where calls have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The reason of a failure, or the beginning of an answer's body, at most 200 bytes, without secrets; left out
    /// where there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// The id of its trace (W3C Trace Context), 32 hexadecimal digits; left out where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace_id: String,
}

/// How a call ended that was not ok.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleEnd {
    /// With a status.
    Status(u16),
    /// With a failure.
    Failure(Failure),
}

impl ExampleEnd {
    /// Its key: `503`, `timeout`.
    pub fn key(self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::Failure(failure) => failure.name().to_owned(),
        }
    }
}

/// The first calls of each ending, by its key: a status, or a failure's name. Calls with a trace come before others.
///
/// Merging keeps the calls that were due first; of very many endings, those whose keys come first. So the order of
/// merging does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Examples(BTreeMap<String, Vec<FailedExample>>);

impl Examples {
    /// Whether no example is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The examples of the ending with this key.
    pub fn get(&self, key: &str) -> &[FailedExample] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// Whether one more example of that ending would be of use, with a trace or without.
    pub fn wants(&self, ended: ExampleEnd, has_trace: bool) -> bool {
        match self.0.get(&ended.key()) {
            Some(calls) if has_trace => calls.iter().filter(|call| !call.trace_id.is_empty()).count() < MOST_EXAMPLES,
            Some(calls) => calls.len() < MOST_EXAMPLES,
            None => self.0.len() < MOST_WAYS,
        }
    }

    /// Adds a call.
    pub fn add(&mut self, ended: ExampleEnd, call: FailedExample) {
        let calls = self.0.entry(ended.key()).or_default();
        calls.push(call);
        keep_best(calls);
        self.cut();
    }

    /// Adds other examples.
    pub fn merge(&mut self, other: &Self) {
        for (key, calls) in &other.0 {
            let known = self.0.entry(key.clone()).or_default();
            known.extend(calls.iter().cloned());
            keep_best(known);
        }
        self.cut();
    }

    fn cut(&mut self) {
        while self.0.len() > MOST_WAYS {
            self.0.pop_last();
        }
    }

    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        for call in self.0.values_mut().flatten() {
            secrets.hide_in(&mut call.said);
            secrets.hide_in(&mut call.request);
        }
    }
}

/// Keeps the first calls with a trace, which say more, and then the first of the others.
fn keep_best(calls: &mut Vec<FailedExample>) {
    calls.sort_by(|one, other| (one.trace_id.is_empty(), one).cmp(&(other.trace_id.is_empty(), other)));
    calls.truncate(MOST_EXAMPLES);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn examples() -> impl Strategy<Value = Examples> {
        let call = (0..50_u64, 0..3_u64, "[ab]?").prop_map(|(due_ns, took_ns, trace_id)| FailedExample {
            due_ns,
            took_ns,
            trace_id,
            ..FailedExample::default()
        });
        vec((400..460_u16, call), 0..60).prop_map(|calls| {
            let mut examples = Examples::default();
            for (status, call) in calls {
                if examples.wants(ExampleEnd::Status(status), !call.trace_id.is_empty()) {
                    examples.add(ExampleEnd::Status(status), call);
                }
            }
            examples
        })
    }

    fn merged(all: &[&Examples]) -> Examples {
        let mut sum = Examples::default();
        for one in all {
            sum.merge(one);
        }
        sum
    }

    proptest! {
        #[test]
        fn the_order_of_merging_does_not_matter(a in examples(), b in examples(), c in examples()) {
            prop_assert_eq!(merged(&[&a, &b, &c]), merged(&[&c, &merged(&[&b, &a])]));
            prop_assert!(merged(&[&a, &b, &c]).0.len() <= MOST_WAYS);
        }
    }

    #[test]
    fn the_first_calls_of_each_way_are_kept() {
        let mut examples = Examples::default();
        let call = |due_ns| FailedExample { due_ns, ..FailedExample::default() };
        for due in [5, 3, 9] {
            examples.add(ExampleEnd::Failure(Failure::Timeout), call(due));
        }
        let timeout = ExampleEnd::Failure(Failure::Timeout);
        assert!(!examples.wants(timeout, false) && examples.wants(ExampleEnd::Status(503), false));
        let mut earlier = Examples::default();
        earlier.add(ExampleEnd::Failure(Failure::Timeout), call(1));
        examples.merge(&earlier);
        let kept: Vec<_> = examples.get("timeout").iter().map(|call| call.due_ns).collect();
        assert_eq!(kept, [1, 3, 5]);
        // One with a trace takes the place of one without.
        assert!(examples.wants(timeout, true));
        examples.add(timeout, FailedExample { trace_id: "4bf9".to_owned(), ..call(7) });
        let kept: Vec<_> = examples.get("timeout").iter().map(|call| call.due_ns).collect();
        assert_eq!(kept, [7, 1, 3]);
    }
}
