//! Kinds of sampled answers, by when their calls were due: status, media type and size.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::redaction::Secrets;
use crate::timeline::{TICK_NS, bounded_width};

/// The most names that are told apart.
const MOST_NAMES: usize = 32;
/// The most kinds of one name.
const MOST_KINDS: usize = 16;
/// The most stretches of time. One more makes each twice as long.
const MOST_STRETCHES: u64 = 128;
/// The longest media type that is kept, in bytes.
const LONGEST_TYPE: usize = 48;

/// The properties of an answer that show without reading its body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerSample<'a> {
    /// Its media type, with parameters.
    pub content_type: &'a str,
    /// Length of its body in bytes, by its head.
    pub length: Option<u64>,
    /// Its `Location`.
    pub location: &'a str,
    /// The beginning of its body, as far as it was kept.
    pub beginning: &'a [u8],
}

/// The greatest length that is kept, in bytes, whatever a head says.
const MOST_LENGTH: u64 = 1 << 60;

/// Answers of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerKind {
    /// Their status.
    pub status: u16,
    /// Their media type without parameters, in small letters; empty if they have none.
    pub content_type: String,
    /// The binary logarithm of their length in bytes, rounded down; `None` where their heads give no length.
    pub size: Option<u8>,
    /// Answers that were looked at, by the stretch in which their calls were due.
    pub seen: BTreeMap<u64, u64>,
    /// Length of the first in bytes.
    pub length: Option<u64>,
    /// An excerpt of the first: its location, or the beginning of its body.
    pub said: String,
}

impl AnswerKind {
    fn is(&self, status: u16, content_type: &str, size: Option<u8>) -> bool {
        self.status == status && self.size == size && media_type(content_type).eq(self.content_type.chars())
    }

    fn is_like(&self, other: &Self) -> bool {
        self.is(other.status, &other.content_type, other.size)
    }

    /// How many were looked at.
    pub fn count(&self) -> u64 {
        self.seen.values().sum()
    }

    fn first(&self) -> u64 {
        self.seen.keys().next().copied().unwrap_or(u64::MAX)
    }
}

/// Kinds of answers by the names of their requests, in stretches of time.
///
/// Merging adds answers of other places and of later times alike. Kinds beyond the limit are left out, the rarest
/// first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kinds {
    #[serde(deserialize_with = "width")]
    width_ns: u64,
    names: BTreeMap<String, Vec<AnswerKind>>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { width_ns: TICK_NS, names: BTreeMap::new() }
    }
}

impl Kinds {
    /// Whether no answer was looked at.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Length of a stretch, in nanoseconds.
    pub const fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Kinds of answers by the names of their requests, which floods of one request leave empty.
    pub fn by_name(&self) -> impl Iterator<Item = (&str, &[AnswerKind])> {
        self.names.iter().map(|(name, kinds)| (name.as_str(), kinds.as_slice()))
    }

    /// Adds a sampled answer whose call was due this long after the beginning of the measured part. `said` returns the
    /// excerpt for the first of a kind.
    pub fn add(&mut self, name: &str, status: u16, look: AnswerSample<'_>, due_ns: u64, said: impl FnOnce() -> String) {
        let size = look.length.map(|bytes| bytes.max(1).ilog2() as u8);
        let stretch = due_ns / self.width_ns;
        if !self.names.contains_key(name) {
            if self.names.len() >= MOST_NAMES {
                return;
            }
            self.names.insert(name.to_owned(), Vec::new());
        }
        let Some(kinds) = self.names.get_mut(name) else { return };
        let is_full = kinds.len() >= MOST_KINDS;
        match kinds.iter_mut().find(|kind| kind.is(status, look.content_type, size)) {
            Some(kind) => *kind.seen.entry(stretch).or_default() += 1,
            None if is_full => {}
            None => kinds.push(AnswerKind {
                status,
                content_type: media_type(look.content_type).collect(),
                size,
                seen: BTreeMap::from([(stretch, 1)]),
                length: look.length.map(|bytes| bytes.min(MOST_LENGTH)),
                said: if look.location.is_empty() { said() } else { format!("Location: {}", look.location) },
            }),
        }
        if stretch >= MOST_STRETCHES {
            self.fit();
        }
    }

    /// Adds answers of another place, or of a later time.
    pub fn merge(&mut self, other: &Self) {
        while self.width_ns < other.width_ns {
            self.widen();
        }
        for (name, kinds) in &other.names {
            let known = self.names.entry(name.clone()).or_default();
            for kind in kinds {
                let seen =
                    kind.seen.iter().map(|(stretch, n)| (stretch.saturating_mul(other.width_ns) / self.width_ns, *n));
                let (seen, mut others) = (collected(seen), kind.clone());
                others.seen = seen;
                match known.iter_mut().find(|known| known.is_like(kind)) {
                    Some(known) => {
                        if others.first() < known.first() {
                            (known.length, known.said) = (others.length, others.said);
                        }
                        others.seen.into_iter().for_each(|(stretch, n)| *known.seen.entry(stretch).or_default() += n);
                    }
                    None => known.push(others),
                }
            }
            if known.len() > MOST_KINDS {
                known.sort_by_key(|kind| std::cmp::Reverse(kind.count()));
                known.truncate(MOST_KINDS);
            }
        }
        while self.names.len() > MOST_NAMES {
            self.names.pop_last();
        }
        self.fit();
    }

    fn fit(&mut self) {
        let last = |kinds: &Self| {
            kinds.names.values().flatten().filter_map(|kind| kind.seen.keys().next_back()).max().copied()
        };
        while last(self) >= Some(MOST_STRETCHES) {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        for kind in self.names.values_mut().flatten() {
            kind.seen = collected(std::mem::take(&mut kind.seen).into_iter().map(|(stretch, n)| (stretch / 2, n)));
        }
    }

    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        for kind in self.names.values_mut().flatten() {
            secrets.hide_in(&mut kind.said);
            secrets.hide_in(&mut kind.content_type);
        }
        let names = std::mem::take(&mut self.names);
        for (mut name, kinds) in names {
            secrets.hide_in(&mut name);
            // Names that differed only in a secret are one.
            let named = Self { width_ns: self.width_ns, names: BTreeMap::from([(name, kinds)]) };
            self.merge(&named);
        }
    }
}

/// Reads a width, which any program may have written.
fn width<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    u64::deserialize(deserializer).map(bounded_width)
}

fn collected(seen: impl Iterator<Item = (u64, u64)>) -> BTreeMap<u64, u64> {
    let mut sums = BTreeMap::new();
    seen.for_each(|(stretch, n)| *sums.entry(stretch).or_default() += n);
    sums
}

/// A media type without its parameters (RFC 9110, section 8.3.1).
fn media_type(written: &str) -> impl Iterator<Item = char> {
    let plain = written.split(';').next().unwrap_or_default();
    plain.chars().filter(char::is_ascii_graphic).take(LONGEST_TYPE).map(|c| c.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(content_type: &str, length: u64) -> AnswerSample<'_> {
        AnswerSample { content_type, length: Some(length), ..AnswerSample::default() }
    }

    fn said() -> String {
        "said".to_owned()
    }

    #[test]
    fn answers_that_are_alike_are_one_kind() {
        let mut kinds = Kinds::default();
        kinds.add("", 200, look("text/html; charset=utf-8", 1000), 0, said);
        kinds.add("", 200, look("Text/HTML", 600), 150_000_000, said);
        kinds.add("", 200, look("text/html", 100), 0, said);
        let [(name, all)] = kinds.by_name().collect::<Vec<_>>()[..] else { panic!("{kinds:?}") };
        assert_eq!((name, all.len()), ("", 2));
        assert_eq!((all[0].content_type.as_str(), all[0].length, all[0].count()), ("text/html", Some(1000), 2));
        assert_eq!(all[0].seen, BTreeMap::from([(0, 1), (1, 1)]));
    }

    #[test]
    fn a_long_run_is_kept_in_as_many_stretches_and_loses_nothing() {
        let mut whole = Kinds::default();
        for second in 0..3 * 3600_u64 {
            let mut kinds = Kinds::default();
            kinds.add("a", 200, look("text/plain", 5), second * 1_000_000_000, said);
            whole.merge(&kinds);
        }
        let [(_, [kind])] = whole.by_name().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(kind.count(), 3 * 3600);
        assert!(kind.seen.len() as u64 <= MOST_STRETCHES && whole.width_ns() < 3 * 3600 * 1_000_000_000 / 60);
    }

    #[test]
    fn kinds_that_no_brunt_has_written_are_merged_all_the_same() {
        for (width_ns, stretch) in [(0, 0), (0, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
            let kind = format!(
                r#"{{"status":200,"content_type":"","size":null,"seen":{{"{stretch}":1}},"length":null,"said":""}}"#
            );
            let text = format!(r#"{{"width_ns":{width_ns},"names":{{"a":[{kind}]}}}}"#);
            let mut read: Kinds = serde_json::from_str(&text).unwrap();
            let mut whole = Kinds::default();
            whole.merge(&read);
            read.merge(&whole);
            read.add("a", 200, AnswerSample::default(), u64::MAX, said);
            assert!(whole.by_name().all(|(_, kinds)| kinds[0].count() == 1 && kinds[0].seen.len() == 1), "{text}");
        }
    }

    #[test]
    fn names_and_kinds_are_capped_and_order_does_not_matter() {
        let mut one = Kinds::default();
        let mut other = Kinds::default();
        for n in 0..100_u32 {
            one.add(&format!("{n}"), 200, look("text/plain", 1 << (n % 60)), 0, said);
            other.add("5", 200, look("a/b", 1 << (n % 60)), 5_000_000_000, said);
        }
        let mut both = one.clone();
        both.merge(&other);
        let mut again = other;
        again.merge(&one);
        assert_eq!(both.by_name().count(), again.by_name().count());
        assert!(both.by_name().count() <= MOST_NAMES && both.by_name().all(|(_, kinds)| kinds.len() <= MOST_KINDS));
    }

    #[test]
    fn the_first_of_a_kind_is_its_example() {
        let mut early = Kinds::default();
        early.add("", 302, AnswerSample { location: "/login", ..AnswerSample::default() }, 0, said);
        let mut late = Kinds::default();
        late.add("", 302, AnswerSample { location: "/other", ..AnswerSample::default() }, 1_000_000_000, said);
        late.merge(&early);
        let [(_, [kind])] = late.by_name().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(kind.said, "Location: /login");
    }
}
