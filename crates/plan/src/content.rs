//! The content of a file that travels with a plan.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes; in a stored plan a string where they are UTF-8, else `{"base64": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "StoredContent", into = "StoredContent")]
pub struct Content(pub Vec<u8>);

/// Content of a file: text, or bytes in base64.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum StoredContent {
    Text(String),
    Binary {
        /// The bytes.
        base64: String,
    },
}

impl From<Content> for StoredContent {
    fn from(content: Content) -> Self {
        String::from_utf8(content.0)
            .map_or_else(|binary| Self::Binary { base64: STANDARD.encode(binary.as_bytes()) }, Self::Text)
    }
}

impl TryFrom<StoredContent> for Content {
    type Error = base64::DecodeError;

    fn try_from(stored: StoredContent) -> Result<Self, Self::Error> {
        match stored {
            StoredContent::Text(text) => Ok(Self(text.into_bytes())),
            StoredContent::Binary { base64 } => STANDARD.decode(base64).map(Self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_is_not_text_is_kept() {
        let binary = Content(vec![0, 159, 255]);
        let json = serde_json::to_string(&binary).unwrap();
        assert_eq!(serde_json::from_str::<Content>(&json).unwrap(), binary);
        assert_eq!(serde_json::to_string(&Content(b"plain".to_vec())).unwrap(), "\"plain\"");
    }
}
