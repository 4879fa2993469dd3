//! What a protocol makes its calls from.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a protocol makes its calls from, in that protocol's own form.
///
/// Shown and stored is a form without secrets; the whole one goes to what carries the plan out. Clones share both forms, and options
/// without secrets are kept once: a body may be large.
#[derive(Clone, PartialEq, Eq)]
pub struct ProtocolOptions {
    whole: Arc<serde_json::Value>,
    shown: Arc<serde_json::Value>,
}

impl ProtocolOptions {
    /// Options, whole and as they may be shown.
    pub fn new(whole: serde_json::Value, shown: serde_json::Value) -> Self {
        Self::without_secrets(whole).with_shown(shown)
    }

    /// Options that may be shown as they are.
    pub fn without_secrets(options: serde_json::Value) -> Self {
        let whole = Arc::new(options);
        Self { shown: Arc::clone(&whole), whole }
    }

    /// The same options with another form that may be shown.
    #[must_use]
    pub fn with_shown(self, shown: serde_json::Value) -> Self {
        let shown = if *self.whole == shown { Arc::clone(&self.whole) } else { Arc::new(shown) };
        Self { shown, ..self }
    }

    /// The options with their secrets.
    pub fn reveal(&self) -> &serde_json::Value {
        &self.whole
    }

    /// The options with their secrets, if they have any.
    pub(crate) fn hidden(&self) -> Option<&serde_json::Value> {
        (!Arc::ptr_eq(&self.whole, &self.shown)).then_some(&*self.whole)
    }

    /// The options without secrets.
    pub fn shown(&self) -> &serde_json::Value {
        &self.shown
    }
}

impl Default for ProtocolOptions {
    fn default() -> Self {
        Self::without_secrets(serde_json::Value::Object(serde_json::Map::new()))
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
        serde_json::Value::deserialize(deserializer).map(Self::without_secrets)
    }
}
