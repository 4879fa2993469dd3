//! The content of a file that travels with a plan.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes; in a stored plan a string where they are UTF-8, else `{"base64": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredContent {
    Text(String),
    Binary { base64: String },
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => StoredContent::Text(text.to_owned()),
            Err(_) => StoredContent::Binary { base64: STANDARD.encode(&self.0) },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match StoredContent::deserialize(deserializer)? {
            StoredContent::Text(text) => Ok(Self(text.into_bytes())),
            StoredContent::Binary { base64 } => STANDARD.decode(base64).map(Self).map_err(de::Error::custom),
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
