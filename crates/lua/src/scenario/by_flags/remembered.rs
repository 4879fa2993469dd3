//! Calls that were encoded once, found by their options without a lock.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;

use brunt_protocol::scenario::{Encoded, Value};

/// The most remembered calls.
const MOST_REMEMBERED: usize = 1024;
/// The most slots that are probed for a call.
const MOST_PROBES: usize = 8;

/// An encoded call.
pub(super) struct Call {
    pub(super) bytes: Vec<u8>,
    pub(super) idempotent: bool,
    pub(super) hint: u32,
}

impl Call {
    pub(super) fn write(&self, out: &mut Encoded) {
        out.bytes.extend_from_slice(&self.bytes);
        (out.idempotent, out.hint) = (self.idempotent, self.hint);
    }
}

/// A call, and the table of options from which it was made.
struct Remembered {
    options: Value<'static>,
    call: Call,
}

/// A bounded table of calls that only grows: each slot is written once, so reading it is one atomic load.
pub(super) struct Calls {
    slots: Box<[OnceLock<Remembered>]>,
}

impl Default for Calls {
    fn default() -> Self {
        Self { slots: (0..MOST_REMEMBERED).map(|_| OnceLock::new()).collect() }
    }
}

impl Calls {
    /// The call made from these options, if it is remembered.
    pub(super) fn find(&self, options: &Value<'_>) -> Option<&Call> {
        let mut met = self.probes(options).map_while(OnceLock::get);
        met.find(|remembered| is_same(&remembered.options, options)).map(|remembered| &remembered.call)
    }

    /// Remembers a call, if there is room for it.
    pub(super) fn remember(&self, options: &Value<'_>, call: Call) {
        let mut remembered = Remembered { options: options.clone().into_owned(), call };
        for slot in self.probes(options) {
            // Another worker took the slot first, so the next slot is tried.
            match slot.set(remembered) {
                Ok(()) => return,
                Err(back) => remembered = back,
            }
        }
    }

    fn probes(&self, options: &Value<'_>) -> impl Iterator<Item = &OnceLock<Remembered>> {
        let first = hash(options) as usize % MOST_REMEMBERED;
        self.slots.iter().cycle().skip(first).take(MOST_PROBES)
    }
}

/// A hash that equal values share, whatever the order of their tables' entries.
fn hash(value: &Value<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Nil => 0_u8.hash(&mut hasher),
        Value::Boolean(value) => value.hash(&mut hasher),
        // 0 and -0 are equal.
        Value::Number(number) => (number + 0.0).to_bits().hash(&mut hasher),
        Value::Text(text) => text.hash(&mut hasher),
        Value::Table(entries) => {
            let entry = |(key, value): &(Value<'_>, Value<'_>)| hash(key).rotate_left(1) ^ hash(value);
            entries.iter().map(entry).fold(0, u64::wrapping_add).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Whether two values are equal, whatever the order of their tables' entries.
fn is_same(one: &Value<'_>, other: &Value<'_>) -> bool {
    let (Value::Table(ones), Value::Table(others)) = (one, other) else { return one == other };
    let has = |(key, value): &(Value<'_>, Value<'_>)| {
        others.iter().any(|(other_key, other)| key == other_key && is_same(value, other))
    };
    ones.len() == others.len() && ones.iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&'static str, f64)]) -> Value<'static> {
        Value::Table(entries.iter().map(|(name, number)| (Value::text(name), Value::Number(*number))).collect())
    }

    fn call(hint: u32) -> Call {
        Call { bytes: Vec::new(), idempotent: false, hint }
    }

    #[test]
    fn calls_are_found_by_their_options_in_any_order() {
        let calls = Calls::default();
        calls.remember(&table(&[("a", 1.0), ("b", 2.0)]), call(7));
        calls.remember(&Value::Nil, call(8));
        let hint = |options: Value<'_>| calls.find(&options).map(|call| call.hint);
        assert_eq!(hint(table(&[("b", 2.0), ("a", 1.0)])), Some(7));
        assert_eq!(hint(Value::Nil), Some(8));
        assert_eq!(hint(table(&[("a", 2.0), ("b", 1.0)])), None);
        assert_eq!(hint(table(&[("a", 1.0)])), None);
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let calls = Calls::default();
        let all = 4 * MOST_REMEMBERED;
        for number in 0..all {
            calls.remember(&table(&[("n", number as f64)]), call(number as u32));
        }
        let found: Vec<_> = (0..all).filter_map(|n| Some((n, calls.find(&table(&[("n", n as f64)]))?.hint))).collect();
        assert!(found.len() <= MOST_REMEMBERED && found.len() > MOST_REMEMBERED / 2, "{}", found.len());
        assert!(found.iter().all(|(number, hint)| *number as u32 == *hint), "each is its own");
    }
}
