//! Written histograms: bytes; for people and programs that read JSON, pairs of a value and its count.

use std::fmt;

use serde::de::{self, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Histogram;

/// A distribution in full, at three significant digits: `[[value_ns, count], …]`, low to high, with exact extremes and sum.
/// Histograms merge by adding up the counts of equal values.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Histogram"))]
struct StoredHistogram {
    /// The smallest value; `null` in an empty one.
    min_ns: Option<u64>,
    /// The largest value; `null` in an empty one.
    max_ns: Option<u64>,
    /// The sum of all values; in a series to three significant digits.
    #[cfg_attr(feature = "schema", schemars(with = "f64", range(min = 0.0)))]
    sum_ns: Sum,
    /// Pairs of a value in nanoseconds, the largest of its slot, and its count; values grow.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<(u64, u64)>"))]
    counts: Counts,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        StoredHistogram::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        StoredHistogram::json_schema(generator)
    }
}

/// A sum, as a number that is exact: a float where that has enough digits, and otherwise an integer. Beyond 2^64 (584 years) it
/// is a float all the same.
struct Sum(u128);

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let float = self.0 as f64;
        match u64::try_from(self.0) {
            Ok(whole) if float as u128 != self.0 => serializer.serialize_u64(whole),
            _ => serializer.serialize_f64(float),
        }
    }
}

struct Counts(Vec<(u64, u64)>);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for pair in &self.0 {
            seq.serialize_element(pair)?;
        }
        seq.end()
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(&self.to_bytes());
        }
        StoredHistogram {
            min_ns: self.min(),
            max_ns: self.max(),
            sum_ns: Sum(self.sum),
            counts: Counts(self.values().collect()),
        }
        .serialize(serializer)
    }
}

/// Reads a histogram from bytes.
struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = Histogram;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a histogram")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Histogram, E> {
        Histogram::from_bytes(bytes).ok_or_else(|| E::invalid_value(de::Unexpected::Bytes(bytes), &self))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Bytes)
    }
}
