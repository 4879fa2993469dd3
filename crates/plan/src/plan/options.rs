//! Options of a protocol, from which it makes its calls.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The options from which a protocol makes its calls, in the protocol's own form.
///
/// The form for display and storage has no secrets; the whole form goes to the code that carries out the plan. Clones
/// share both forms, and options without secrets are kept once, as a body may be large.
#[derive(Clone, PartialEq, Eq)]
pub struct ProtocolOptions {
    whole: Arc<serde_json::Value>,
    shown: Arc<serde_json::Value>,
}

impl ProtocolOptions {
    /// Options: whole, and for display.
    pub fn new(whole: serde_json::Value, shown: serde_json::Value) -> Self {
        Self::without_secrets(whole).with_shown(shown)
    }

    /// Options without secrets, which can be shown as they are.
    pub fn without_secrets(options: serde_json::Value) -> Self {
        let whole = Arc::new(options);
        Self { shown: Arc::clone(&whole), whole }
    }

    /// Replaces the form for display.
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
