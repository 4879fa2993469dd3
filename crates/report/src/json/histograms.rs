//! Distributions in full, as in a document.

use brunt_record::catalogue::{Timing, Timings};
use brunt_record::histogram::{Censored, Histogram};
use brunt_record::instrument::BoundedTimes;
use brunt_record::snapshot::Snapshot;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Distributions in full, by their keys. A histogram is `[[value_ns, count], …]` with its exact extremes and sum; empty ones are left
/// out. Lower bounds are a distribution of their own, whose key ends in `_bounds`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histograms {
    /// The distributions that are shown.
    pub times: Timings,
    /// The times with own delays; missing where there were no own delays to remove.
    pub instrument: Option<AsRead>,
}

/// The entry of [`Histograms::instrument`].
const INSTRUMENT: &str = "instrument";

impl Serialize for Histograms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.times.write_entries(&mut map)?;
        if let Some(as_read) = &self.instrument {
            map.serialize_entry(INSTRUMENT, as_read)?;
        }
        map.end()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Histograms {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Histograms".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut properties = serde_json::Map::new();
        let mut declare = |key: String, sentence: &str, mut schema: schemars::Schema| {
            schema.insert("description".to_owned(), sentence.into());
            properties.insert(key, schema.into());
        };
        for timing in Timing::ALL.into_iter().filter(|timing| !OWN_DELAYS.contains(timing)) {
            declare(timing.key().to_owned(), timing.sentence(), generator.subschema_for::<Histogram>());
            if timing.has_bounds() {
                declare(timing.bounds_key(), "Lower bounds of it.", generator.subschema_for::<Histogram>());
            }
        }
        let instrument = "The times before own delays were taken off; missing where nothing was taken off.";
        declare(INSTRUMENT.to_owned(), instrument, generator.subschema_for::<AsRead>());
        let about = "Distributions in full, by their keys. A histogram is `[[value_ns, count], …]` with its exact extremes and sum; \
                     empty ones are left out.";
        schemars::json_schema!({ "type": "object", "description": about, "properties": properties })
    }
}

/// Distributions without own delays, which a result shows in place of those as read.
const OWN_DELAYS: [Timing; 7] = [
    Timing::ResponseLow,
    Timing::ResponseValue,
    Timing::ResponseHigh,
    Timing::ServiceLow,
    Timing::ServiceValue,
    Timing::ServiceHigh,
    Timing::FirstByteValue,
];

impl Histograms {
    /// The distributions of all calls.
    pub(crate) fn from_snapshot(total: &Snapshot) -> Self {
        let mut times = total.times.clone();
        for timing in OWN_DELAYS {
            times.set(timing, Censored::default());
        }
        times.set(Timing::Response, BoundedTimes::of_response(&total.times).shown().into_owned());
        times.set(Timing::Service, total.service_times().into_owned());
        times.set_known(Timing::FirstByte, total.first_byte_times().clone());
        Self { times, instrument: AsRead::from_snapshot(total) }
    }
}

/// Distributions with own delays.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AsRead {
    /// From due to when the answer was read.
    pub response_as_read: Histogram,
    /// From sent to when the answer was read.
    pub service_as_read: Histogram,
}

impl AsRead {
    fn from_snapshot(total: &Snapshot) -> Option<Self> {
        BoundedTimes::of_response(&total.times).cover().then(|| Self {
            response_as_read: total.times.known(Timing::Response).clone(),
            service_as_read: total.times.known(Timing::Service).clone(),
        })
    }
}
