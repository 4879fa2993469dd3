//! Options of calls over plain TCP: the `protocol` part of a plan for `tcp` and `tls`.

use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use serde::{Deserialize, Serialize};

/// How the calls of a flood over TCP are made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// What each call sends.
    pub send: Content,
    /// The end of its answer.
    pub framing: AnswerFraming,
    /// The expected answer, without bytes that only mark its length or its end.
    pub expect: Option<Content>,
    /// The end of what the peer says first on each connection, before it takes calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greeting: Option<Content>,
}

impl Options {
    /// The options as a plan carries them.
    pub fn to_protocol(&self) -> ProtocolOptions {
        let value = serde_json::to_value(self).unwrap_or_default();
        ProtocolOptions::new(value.clone(), value)
    }
}

/// Where an answer ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFraming {
    /// No answer: a call ends when it is sent, and bytes from the peer are discarded.
    #[default]
    None,
    /// Behind these bytes.
    Until(Content),
    /// After this many bytes.
    Bytes(u32),
    /// By a length before it.
    LengthPrefix(LengthPrefix),
}

/// A length field in front of the content; it does not count itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthPrefix {
    /// Its size in bytes: 1, 2 or 4.
    pub bytes: u8,
    /// Whether its least significant byte comes first.
    #[serde(default)]
    pub little_endian: bool,
}

impl LengthPrefix {
    /// A length field as written: `1`, `2`, `4`, `2le`, `4le`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "1" => Self { bytes: 1, little_endian: false },
            "2" => Self { bytes: 2, little_endian: false },
            "4" => Self { bytes: 4, little_endian: false },
            "2le" => Self { bytes: 2, little_endian: true },
            "4le" => Self { bytes: 4, little_endian: true },
            _ => return None,
        })
    }
}
