//! Figures by name: a bounded number of names, recorded into by number, merged by name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::redaction::Secrets;

/// The most distinct names of one kind that are told apart; further ones count together, as [`OTHERS`].
pub const MOST_NAMES: usize = 500;
/// The longest name, in bytes; longer ones are cut, and end in `…`.
pub const LONGEST_NAME: usize = 200;
/// The name that everything beyond [`MOST_NAMES`] counts under.
pub const OTHERS: &str = "(others)";

/// Figures that are recorded under a name.
pub trait FigureByName: Default {
    /// Whether nothing was counted.
    fn is_empty(&self) -> bool;

    /// Adds everything that `other` counted.
    fn merge(&mut self, other: &Self);

    /// Hides secrets in its texts.
    fn hide(&mut self, _secrets: &Secrets) {}
}

/// A name's number within one [`NamedFigures`] and what [`NamedFigures::take`] leaves of it. It has no meaning
/// elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NameId(u32);

impl NameId {
    /// The number of [`OTHERS`].
    pub const OTHERS: Self = Self(u32::MAX);

    /// As a plain number, for a script that keeps it.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// From a plain number. A number that was never given out counts as [`OTHERS`].
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// Figures by name, in the order in which the names came.
#[derive(Clone, Default)]
pub struct NamedFigures<T> {
    entries: Vec<(Arc<str>, T)>,
    numbers: BTreeMap<Arc<str>, u32>,
    /// The figures of names beyond the limit.
    others: T,
}

impl<T: FigureByName> NamedFigures<T> {
    /// The number to record under for `name`: the same for the same name, and that of [`OTHERS`] beyond [`MOST_NAMES`].
    pub fn id(&mut self, name: &str) -> NameId {
        let name = shortened(name);
        if let Some(&number) = self.numbers.get(name.as_ref()) {
            return NameId(number);
        }
        if self.entries.len() >= MOST_NAMES || name == OTHERS {
            return NameId::OTHERS;
        }
        let (name, number): (Arc<str>, _) = (name.into(), self.entries.len() as u32);
        self.numbers.insert(name.clone(), number);
        self.entries.push((name, T::default()));
        NameId(number)
    }

    /// The figures under a number.
    #[inline]
    pub fn at(&mut self, id: NameId) -> &mut T {
        match self.entries.get_mut(id.0 as usize) {
            Some((_, figure)) => figure,
            None => &mut self.others,
        }
    }

    /// The figures under `name`, to record into.
    pub fn named(&mut self, name: &str) -> &mut T {
        let id = self.id(name);
        self.at(id)
    }

    /// Adds figures under a name.
    fn put(&mut self, name: &str, figure: T) {
        let known = self.entries.len();
        let id = self.id(name);
        if self.entries.len() > known {
            *self.at(id) = figure;
        } else {
            self.at(id).merge(&figure);
        }
    }

    /// The figures recorded under `name`.
    pub fn get(&self, name: &str) -> Option<&T> {
        if name == OTHERS {
            return self.others();
        }
        let number = *self.numbers.get(name)?;
        self.entries.get(number as usize).map(|(_, figure)| figure)
    }

    /// Every name under which something was recorded, in the order in which the names came, [`OTHERS`] last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let entries = self.entries.iter().map(|(name, figure)| (&**name, figure));
        entries.chain([(OTHERS, &self.others)]).filter(|(_, figure)| !figure.is_empty())
    }

    /// The figures of names beyond [`MOST_NAMES`], if any were recorded.
    pub fn others(&self) -> Option<&T> {
        (!self.others.is_empty()).then_some(&self.others)
    }

    /// The figures under every name, to change them.
    pub(super) fn figures_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, figure)| figure).chain(std::iter::once(&mut self.others))
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.others.is_empty() && self.entries.iter().all(|(_, figure)| figure.is_empty())
    }

    /// Returns everything recorded, and begins anew; the names keep their numbers.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let mut taken = Self { others: std::mem::take(&mut self.others), ..Self::default() };
        for (name, figure) in self.entries.iter_mut().filter(|(_, figure)| !figure.is_empty()) {
            taken.numbers.insert(name.clone(), taken.entries.len() as u32);
            taken.entries.push((name.clone(), std::mem::take(figure)));
        }
        taken
    }

    /// Hides secrets in names, and in the figures under them. Names that become equal count together, and all names get
    /// new numbers then.
    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        self.others.hide(secrets);
        for (_, figure) in &mut self.entries {
            figure.hide(secrets);
        }
        if self.entries.iter().all(|(name, _)| matches!(secrets.hide(name), Cow::Borrowed(_))) {
            return;
        }
        let mut hidden = Self { others: std::mem::take(&mut self.others), ..Self::default() };
        for (name, figure) in std::mem::take(&mut self.entries) {
            hidden.named(&secrets.hide(&name)).merge(&figure);
        }
        *self = hidden;
    }

    /// Adds everything that `other` recorded, name by name.
    pub fn merge(&mut self, other: &Self) {
        for (name, figure) in other.iter() {
            if name == OTHERS {
                self.others.merge(figure);
            } else {
                self.named(name).merge(figure);
            }
        }
    }
}

/// `name`, cut to [`LONGEST_NAME`].
fn shortened(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST_NAME {
        return Cow::Borrowed(name);
    }
    let end = (0..=LONGEST_NAME - '…'.len_utf8()).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", name.get(..end).unwrap_or("")).into()
}

impl<T: FigureByName + PartialEq> PartialEq for NamedFigures<T> {
    /// Equal figures under equal names, in any order.
    fn eq(&self, other: &Self) -> bool {
        let within = |a: &Self, b: &Self| a.iter().all(|(name, figure)| b.get(name) == Some(figure));
        within(self, other) && within(other, self)
    }
}

impl<T: FigureByName + fmt::Debug> fmt::Debug for NamedFigures<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T: FigureByName + Serialize> Serialize for NamedFigures<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, figure) in self.iter() {
            map.serialize_entry(name, figure)?;
        }
        map.end()
    }
}

impl<'de, T: FigureByName + Deserialize<'de>> Deserialize<'de> for NamedFigures<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(NamedFigures<T>);
        impl<'de, T: FigureByName + Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = NamedFigures<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("figures by name")
            }

            fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<NamedFigures<T>, A::Error> {
                while let Some((name, figure)) = map.next_entry::<String, T>()? {
                    self.0.put(&name, figure);
                }
                Ok(self.0)
            }
        }
        deserializer.deserialize_map(Entries(Self::default()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl FigureByName for u64 {
        fn is_empty(&self) -> bool {
            *self == 0
        }

        fn merge(&mut self, other: &Self) {
            *self += other;
        }
    }

    #[test]
    fn names_are_capped_and_nothing_is_lost() {
        let mut named = NamedFigures::<u64>::default();
        for i in 0..2 * MOST_NAMES {
            *named.named(&format!("name {i}")) += 1;
        }
        assert_eq!(named.iter().count(), MOST_NAMES + 1);
        assert_eq!(named.others(), Some(&(MOST_NAMES as u64)));
        let mut merged = NamedFigures::<u64>::default();
        *merged.named("another") += 1;
        merged.merge(&named);
        assert_eq!(merged.iter().map(|(_, n)| n).sum::<u64>(), 2 * MOST_NAMES as u64 + 1);
        assert_eq!(merged.iter().count(), MOST_NAMES + 1);
    }

    #[test]
    fn a_name_keeps_its_number_when_its_figures_are_taken() {
        let mut named = NamedFigures::<u64>::default();
        let (idle, busy) = (named.id("idle"), named.id("busy"));
        *named.at(busy) += 2;
        let taken = named.take();
        assert_eq!(taken.iter().collect::<Vec<_>>(), [("busy", &2)]);
        assert!(named.is_empty());
        *named.at(idle) += 1;
        *named.at(busy) += 1;
        assert_eq!(named.iter().collect::<Vec<_>>(), [("idle", &1), ("busy", &1)]);
    }

    #[test]
    fn a_number_that_nobody_gave_out_counts_among_others() {
        let mut named = NamedFigures::<u64>::default();
        *named.at(NameId::from_number(7)) += 1;
        assert_eq!(named.get(OTHERS), Some(&1));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let mut named = NamedFigures::<u64>::default();
        *named.named(&"ä".repeat(LONGEST_NAME)) += 1;
        let (name, _) = named.iter().next().unwrap();
        assert!(name.len() <= LONGEST_NAME && name.ends_with("ä…"), "{name}");
    }

    #[test]
    fn names_that_are_the_same_without_secrets_count_together() {
        let mut named = NamedFigures::<u64>::default();
        *named.named("GET /t0p1/a") += 1;
        *named.named("GET /") += 2;
        *named.named("GET /t0p2/a") += 4;
        *named.named(OTHERS) += 8;
        named.hide(&Secrets::new(["t0p1".to_owned(), "t0p2".to_owned()]));
        assert_eq!(named.iter().collect::<Vec<_>>(), [("GET /[redacted]/a", &5), ("GET /", &2), (OTHERS, &8)]);
    }

    proptest! {
        #[test]
        fn merging_is_recording_everything_in_one(
            a in prop::collection::vec((0_u8..20, 1_u64..9), 0..50),
            b in prop::collection::vec((0_u8..20, 1_u64..9), 0..50),
        ) {
            let of = |records: &[(u8, u64)]| {
                let mut named = NamedFigures::<u64>::default();
                for (name, n) in records {
                    *named.named(&name.to_string()) += n;
                }
                named
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let whole = of(&[a, b].concat());
            prop_assert_eq!(&merged, &whole);
            let json = serde_json::to_string(&merged).unwrap();
            prop_assert_eq!(serde_json::from_str::<NamedFigures<u64>>(&json).unwrap(), whole);
        }
    }
}
