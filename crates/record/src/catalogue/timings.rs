//! A distribution for each timing: recorded, merged, written and read by key.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::numbers::Key;
use super::timing::{BOUNDS, Timing};
use crate::histogram::{Censored, Histogram};

static EMPTY: LazyLock<Censored> = LazyLock::new(Censored::default);

/// A distribution for each [`Timing`]. An empty one takes a word of memory.
#[derive(Clone, Default)]
pub struct Timings([Option<Box<Censored>>; Timing::ALL.len()]);

impl PartialEq for Timings {
    fn eq(&self, other: &Self) -> bool {
        Timing::ALL.into_iter().all(|timing| self.get(timing) == other.get(timing))
    }
}

impl fmt::Debug for Timings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.recorded().map(|(timing, times)| (timing.key(), times))).finish()
    }
}

impl Timings {
    /// These distributions, and empty ones for every other timing.
    pub fn from_values(values: impl IntoIterator<Item = (Timing, Censored)>) -> Self {
        let mut times = Self::default();
        values.into_iter().for_each(|(timing, value)| times.set(timing, value));
        times
    }

    /// The distribution.
    #[expect(clippy::indexing_slicing, reason = "there is a place for each timing")]
    pub fn get(&self, timing: Timing) -> &Censored {
        self.0[timing as usize].as_deref().unwrap_or_else(|| &EMPTY)
    }

    /// The known times.
    pub fn known(&self, timing: Timing) -> &Histogram {
        &self.get(timing).known
    }

    /// The lower bounds.
    pub fn bounds(&self, timing: Timing) -> &Histogram {
        &self.get(timing).bounds
    }

    /// The distribution, to record in.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each timing")]
    pub fn at(&mut self, timing: Timing) -> &mut Censored {
        self.0[timing as usize].get_or_insert_with(Box::default)
    }

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, timing: Timing, ns: u64) {
        self.at(timing).known.record(ns);
    }

    /// Counts a time `n` times.
    #[inline]
    pub fn record_n(&mut self, timing: Timing, ns: u64, n: u64) {
        self.at(timing).known.record_n(ns, n);
    }

    /// Counts the lower bound of a time.
    pub fn record_bound(&mut self, timing: Timing, ns: u64) {
        self.record_bounds(timing, ns, 1);
    }

    /// Counts the lower bound of a time `n` times.
    pub fn record_bounds(&mut self, timing: Timing, ns: u64, n: u64) {
        self.at(timing).bounds.record_n(ns, n);
    }

    /// Adds times.
    pub fn merge_known(&mut self, timing: Timing, times: &Histogram) {
        if !times.is_empty() {
            self.at(timing).known.merge(times);
        }
    }

    /// Replaces a distribution.
    #[expect(clippy::indexing_slicing, reason = "there is a place for each timing")]
    pub fn set(&mut self, timing: Timing, times: Censored) {
        self.0[timing as usize] = (times.count() > 0).then(|| Box::new(times));
    }

    /// Replaces a distribution by known times without lower bounds.
    pub fn set_known(&mut self, timing: Timing, known: Histogram) {
        self.set(timing, known.into());
    }

    /// Distributions in which something was recorded, in the order of the catalogue.
    pub fn recorded(&self) -> impl Iterator<Item = (Timing, &Censored)> {
        let times = Timing::ALL.into_iter().map(|timing| (timing, self.get(timing)));
        times.filter(|(_, times)| times.count() > 0)
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        for (timing, times) in other.recorded() {
            self.at(timing).merge(times);
        }
    }

    /// Writes each distribution as an entry of `map`, and its lower bounds as another.
    ///
    /// # Errors
    /// When `map` cannot take them.
    pub fn write_entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for (timing, times) in self.recorded() {
            if !times.known.is_empty() {
                map.serialize_entry(timing.key(), &times.known)?;
            }
            if !times.bounds.is_empty() {
                map.serialize_entry(&timing.bounds_key(), &times.bounds)?;
            }
        }
        Ok(())
    }

    /// The distribution that the entry `name` belongs to, and whether the entry has its lower bounds.
    fn entry(name: &str) -> Option<(Timing, bool)> {
        let known = Timing::from_key(name).map(|timing| (timing, false));
        known.or_else(|| Some((Timing::from_key(name.strip_suffix(BOUNDS)?)?, true)))
    }

    fn read<'de, M: MapAccess<'de>>(&mut self, entry: Option<(Timing, bool)>, map: &mut M) -> Result<(), M::Error> {
        match entry {
            Some((timing, true)) => self.at(timing).bounds = map.next_value()?,
            Some((timing, false)) => self.at(timing).known = map.next_value()?,
            None => map.next_value::<IgnoredAny>().map(drop)?,
        }
        Ok(())
    }
}

/// By their keys; those in which nothing was recorded are left out.
impl Serialize for Timings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self
            .recorded()
            .map(|(_, times)| usize::from(!times.known.is_empty()) + usize::from(!times.bounds.is_empty()));
        let mut map = serializer.serialize_map(Some(entries.sum()))?;
        self.write_entries(&mut map)?;
        map.end()
    }
}

/// Keys that this brunt does not know are passed over.
impl<'de> Deserialize<'de> for Timings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByKey;
        impl<'de> Visitor<'de> for ByKey {
            type Value = Timings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("distributions by key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Timings, A::Error> {
                let mut times = Timings::default();
                while let Some(entry) = map.next_key_seed(Key(Timings::entry))? {
                    times.read(entry, &mut map)?;
                }
                Ok(times)
            }
        }
        deserializer.deserialize_map(ByKey)
    }
}
