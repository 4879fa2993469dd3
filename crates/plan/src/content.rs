//! The content of a file that travels with a plan.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Bytes; in a stored plan a string where they are UTF-8, otherwise `{"base64": "…"}`. Neither is copied on the way, as
/// there may be many.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "StoredContent"))]
pub struct Content(pub Vec<u8>);

/// The text of a file without the byte order mark that editors put before it (U+FEFF, RFC 3629 section 6).
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

/// Content of a file: text, or bytes in base64.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum StoredContent<'a> {
    Text(Cow<'a, str>),
    Binary {
        /// The bytes.
        base64: String,
    },
}

impl Content {
    /// The stored form as a value, with no byte copied twice.
    pub fn to_json(&self) -> Value {
        match str::from_utf8(&self.0) {
            Ok(text) => text.into(),
            Err(_) => Map::from_iter([("base64".to_owned(), STANDARD.encode(&self.0).into())]).into(),
        }
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(&self.0) {
            Ok(text) => StoredContent::Text(text.into()).serialize(serializer),
            Err(_) => StoredContent::Binary { base64: STANDARD.encode(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Stored)
    }
}

/// Reads the stored form of [`Content`].
struct Stored;

impl<'de> Visitor<'de> for Stored {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or bytes in base64 as {\"base64\": \"…\"}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content(text.as_bytes().to_vec()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Content, E> {
        Ok(Content(text.into_bytes()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content, A::Error> {
        #[derive(Deserialize)]
        struct Binary<'a> {
            #[serde(borrow)]
            base64: Cow<'a, str>,
        }
        let Binary { base64 } = Binary::deserialize(MapAccessDeserializer::new(map))?;
        STANDARD.decode(base64.as_bytes()).map(Content).map_err(de::Error::custom)
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_at_the_beginning_is_no_text() {
        assert_eq!(without_mark(b"\xef\xbb\xbf/a"), b"/a");
        for text in [&b"/a\xef\xbb\xbf"[..], b"\xef\xbb", b""] {
            assert_eq!(without_mark(text), text);
        }
    }

    #[test]
    fn content_that_is_not_text_is_kept() {
        let binary = Content(vec![0, 159, 255]);
        let json = serde_json::to_string(&binary).unwrap();
        assert_eq!(serde_json::from_str::<Content>(&json).unwrap(), binary);
        assert_eq!(serde_json::to_string(&Content(b"plain".to_vec())).unwrap(), "\"plain\"");
        for content in [binary, Content(b"plain".to_vec())] {
            assert_eq!(content.to_json(), serde_json::to_value(&content).unwrap());
        }
    }
}
