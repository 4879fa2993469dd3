//! What a protocol makes its calls from.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a protocol makes its calls from, in that protocol's own form.
///
/// Shown and stored is a form without secrets; the whole one goes to what carries the plan out.
#[derive(Clone, PartialEq, Eq)]
pub struct ProtocolOptions {
    whole: serde_json::Value,
    shown: serde_json::Value,
}

impl ProtocolOptions {
    /// Options, whole and as they may be shown.
    pub fn new(whole: serde_json::Value, shown: serde_json::Value) -> Self {
        Self { whole, shown }
    }

    /// The options with their secrets.
    pub fn reveal(&self) -> &serde_json::Value {
        &self.whole
    }

    /// The options without secrets.
    pub fn shown(&self) -> &serde_json::Value {
        &self.shown
    }
}

impl Default for ProtocolOptions {
    fn default() -> Self {
        let empty = serde_json::Value::Object(serde_json::Map::new());
        Self::new(empty.clone(), empty)
    }
}

impl fmt::Debug for ProtocolOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.shown, f)
    }
}

impl Serialize for ProtocolOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ProtocolOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(|value| Self::new(value.clone(), value))
    }
}
