//! Words of a result, for people.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A phrase about a figure, made once and shown as it is. Only `Display` gives it: whoever has to decide something looks at
/// the values beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Phrase(String);

impl<T: Into<String>> From<T> for Phrase {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
