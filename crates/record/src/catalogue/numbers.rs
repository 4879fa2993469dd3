//! A value for each counter: recorded by an addition, merged, written and read by key.

use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::counter::{Counter, Merge, Unit};

/// A value for each [`Counter`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Numbers([u64; Counter::ALL.len()]);

impl Default for Numbers {
    fn default() -> Self {
        Self([0; Counter::ALL.len()])
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.counted().map(|(counter, n)| (counter.key(), n))).finish()
    }
}

impl Numbers {
    /// These values, and 0 for every other number.
    pub fn from_values(values: impl IntoIterator<Item = (Counter, u64)>) -> Self {
        let mut numbers = Self::default();
        values.into_iter().for_each(|(counter, value)| numbers.set(counter, value));
        numbers
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each counter")]
    fn place(&mut self, counter: Counter) -> &mut u64 {
        &mut self.0[counter as usize]
    }

    /// Adds to a sum.
    #[inline]
    pub fn add(&mut self, counter: Counter, n: u64) {
        *self.place(counter) += n;
    }

    /// Replaces a value.
    #[inline]
    pub fn set(&mut self, counter: Counter, value: u64) {
        *self.place(counter) = value;
    }

    /// The value.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each counter")]
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// The value of a ratio, 0 to 1.
    pub const fn ratio(&self, counter: Counter) -> f64 {
        f64::from_bits(self.get(counter))
    }

    /// Replaces a ratio, which is at least 0.
    pub fn set_ratio(&mut self, counter: Counter, ratio: f64) {
        // Floats that are not below 0 have the order of their bits, so that the larger of two is a comparison of integers.
        self.set(counter, ratio.max(0.0).to_bits());
    }

    /// Calls that ended within the measured time with success, as far as no check failed them afterwards.
    pub const fn ended_ok(&self) -> u64 {
        self.get(Counter::EndedOk).saturating_sub(self.get(Counter::EndedRevoked))
    }

    /// Calls that were due and whose end nobody has seen.
    pub(crate) const fn without_end(&self) -> u64 {
        self.get(Counter::Unfinished) + self.get(Counter::Unsent) + self.get(Counter::Unknown)
    }

    pub(crate) fn set_ends(&mut self, ok: u64, answered: u64, messages: u64) {
        self.set(Counter::EndedOk, ok);
        self.set(Counter::EndedAnswered, answered);
        self.set(Counter::EndedMessages, messages);
    }

    /// Takes calls that a check failed out of those that ended with success. Some may have ended before these numbers.
    pub fn revoke_ended(&mut self) {
        let revoked = self.get(Counter::EndedRevoked).min(self.get(Counter::EndedOk));
        self.set(Counter::EndedOk, self.get(Counter::EndedOk) - revoked);
        self.set(Counter::EndedRevoked, self.get(Counter::EndedRevoked) - revoked);
    }

    /// Numbers that are not 0, in the order of the catalogue.
    pub fn counted(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.into_iter().map(|counter| (counter, self.get(counter))).filter(|(_, n)| *n > 0)
    }

    /// Adds the numbers of another place, or of the next second.
    pub fn merge(&mut self, other: &Self) {
        for counter in Counter::ALL {
            let (here, there) = (self.get(counter), other.get(counter));
            self.set(
                counter,
                match counter.joins() {
                    Merge::Sum => here.saturating_add(there),
                    Merge::Max => here.max(there),
                },
            );
        }
    }

    /// Subtracts `part` from each sum. Maxima cannot be taken apart, and stay.
    #[must_use]
    pub fn without(mut self, part: &Self) -> Self {
        for (counter, n) in part.counted().filter(|(counter, _)| counter.joins() == Merge::Sum) {
            self.set(counter, self.get(counter).saturating_sub(n));
        }
        self
    }

    /// The value in its written form.
    pub(super) fn written(&self, counter: Counter) -> WrittenNumber {
        if counter.unit() == Unit::Ratio {
            WrittenNumber::Ratio(self.ratio(counter))
        } else {
            WrittenNumber::Whole(self.get(counter))
        }
    }

    /// Takes in a value that was written.
    pub(crate) fn take(&mut self, counter: Counter, value: WrittenNumber) {
        match (counter.unit(), value) {
            (Unit::Ratio, WrittenNumber::Ratio(ratio)) => self.set_ratio(counter, ratio),
            (Unit::Ratio, WrittenNumber::Whole(whole)) => self.set_ratio(counter, whole as f64),
            (_, WrittenNumber::Whole(whole)) => self.set(counter, whole),
            (_, WrittenNumber::Ratio(float)) => self.set(counter, float as u64),
        }
    }
}

/// A number in its written form.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(crate) enum WrittenNumber {
    Whole(u64),
    Ratio(f64),
}

/// By hand, so that an error names the value that came in place of a number.
impl<'de> Deserialize<'de> for WrittenNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = WrittenNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number that is not negative")
            }
            fn visit_u64<E>(self, whole: u64) -> Result<WrittenNumber, E> {
                Ok(WrittenNumber::Whole(whole))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<WrittenNumber, E> {
                u64::try_from(number)
                    .map(WrittenNumber::Whole)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_f64<E>(self, ratio: f64) -> Result<WrittenNumber, E> {
                Ok(WrittenNumber::Ratio(ratio))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

/// By their keys; those that are 0 are left out.
impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.counted().count()))?;
        for (counter, _) in self.counted() {
            map.serialize_entry(counter.key(), &self.written(counter))?;
        }
        map.end()
    }
}

/// Keys that this brunt does not know are passed over.
impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByKey)
    }
}

/// Looks a key up without allocating it.
pub(super) struct Key<F>(pub(super) F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for Key<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for Key<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<T, E> {
        Ok((self.0)(key))
    }
}

/// Reads numbers by their keys.
struct ByKey;

impl<'de> Visitor<'de> for ByKey {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers by key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Numbers, A::Error> {
        let mut numbers = Numbers::default();
        while let Some(counter) = map.next_key_seed(Key(Counter::from_key))? {
            match counter {
                Some(counter) => numbers.take(counter, map.next_value()?),
                None => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(numbers)
    }
}
