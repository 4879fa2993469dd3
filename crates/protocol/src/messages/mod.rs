//! Answers that come as messages: how a body is cut into them, for protocols whose bodies are bytes.
//!
//! [`MessageReader`] is a pure, bounded reader of three framings:
//!
//! - **server-sent events** (the WHATWG HTML standard, section 9.2.6): what `text/event-stream` has, and what the tokens of language
//!   models come in. Lines end in LF, CR or CRLF, a byte order mark may come first, comments and events without data are no messages;
//! - **lines** that end in LF: newline-delimited JSON. Empty lines are no messages;
//! - **chunks**: what the protocol below cuts the body into (chunks of HTTP/1.1, DATA frames of HTTP/2), none of them empty.
//!
//! A client that reads bodies gives each piece to [`MessageReader::read`], and tells a message by
//! [`Progress::Message`](crate::Progress::Message).

mod reader;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use brunt_plan::units;
use serde::{Deserialize, Serialize};

use crate::flags::{Flag, FlagValues, ValueKind};
use crate::{OptionsError, Started};

pub use reader::{MOST_MESSAGE_BYTES, MessageReader};

/// How a body is cut into messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// Lines.
    Lines,
    /// The chunks or frames of the protocol below.
    Chunks,
}

impl Framing {
    /// All framings, by their names.
    pub const NAMED: [(&'static str, Self); 3] = [("sse", Self::Sse), ("lines", Self::Lines), ("chunks", Self::Chunks)];

    /// The framing of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, framing)| *framing)
    }
}

/// The flag `--messages`: answers come as messages, in this framing.
pub const MESSAGES: Flag = Flag::new(
    "messages",
    ValueKind::OneOf("HOW", &["sse", "lines", "chunks"]),
    "Time each message of an answer: server-sent events (as language models stream tokens), lines, or chunks",
);
/// The flag `--last-message`: a stream without it has ended early.
pub const LAST_MESSAGE: Flag = Flag::new(
    "last-message",
    ValueKind::Text("TEXT"),
    "The message that ends a stream, such as [DONE]: it does not count, and a stream without it fails as ended_early",
);
/// The flag `--stall-timeout`: the longest gap.
pub const STALL_TIMEOUT: Flag = Flag::new(
    "stall-timeout",
    ValueKind::Text("D"),
    "The longest gap between messages: a longer one fails as stalled [default: only the call's --timeout]",
)
.checked(is_gap);

fn is_gap(text: &str) -> Result<(), String> {
    gap(text).map(drop)
}

/// The longest gap that the flag [`STALL_TIMEOUT`] asks for, in nanoseconds.
///
/// # Errors
/// When it is no duration above 0.
pub fn stall_timeout(given: &FlagValues) -> Result<Option<u64>, OptionsError> {
    let stall = given.text("stall-timeout").map(gap).transpose();
    stall.map_err(|problem| OptionsError(format!("--stall-timeout: {problem}")))
}

fn gap(text: &str) -> Result<u64, String> {
    match units::parse_duration(text) {
        Ok(0) => Err("expected a duration above 0, such as 2s".to_owned()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(error.to_string()),
    }
}

/// How answers come as messages: a part of a protocol's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageOptions {
    /// How a body is cut into messages.
    pub framing: Framing,
    /// The data of the message that ends a stream, and does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The longest gap between two, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<u64>,
}

impl MessageOptions {
    /// The options from the flags [`MESSAGES`], [`LAST_MESSAGE`] and [`STALL_TIMEOUT`].
    ///
    /// # Errors
    /// When the others are given without the first.
    pub fn given(given: &FlagValues) -> Result<Option<Self>, OptionsError> {
        let Some(framing) = given.text("messages").and_then(Framing::from_name) else {
            for name in ["last-message", "stall-timeout"] {
                if given.has(name) {
                    let problem = format!("--{name} is about answers that come as messages: give --messages as well");
                    return Err(OptionsError(problem));
                }
            }
            return Ok(None);
        };
        let last = given.text("last-message").map(str::to_owned);
        Ok(Some(Self { framing, last, stall_ns: stall_timeout(given)? }))
    }

    /// Checks options that may come from a file.
    ///
    /// # Errors
    /// When no gap would be short enough.
    pub fn check(&self) -> Result<(), OptionsError> {
        match self.stall_ns {
            Some(0) => Err(OptionsError("messages.stall_ns must be above 0; leave it out for no limit".to_owned())),
            _ => Ok(()),
        }
    }

    /// What a call with such an answer waits for.
    pub fn started(&self) -> Started {
        Started::Streamed { stall_ns: self.stall_ns.unwrap_or(u64::MAX) }
    }

    /// A reader of such answers; with `keep`, it keeps each message.
    pub fn reader(&self, keep: bool) -> MessageReader {
        let last = self.last.as_ref().map(|last| Arc::from(last.as_bytes()));
        MessageReader::new(self.framing, last, keep)
    }
}

/// A message as it was read, where messages are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptMessage {
    /// The name of an event; empty for none, which stands for `message`.
    pub event: Vec<u8>,
    /// Its data: of an event with several data lines, they are joined by LF.
    pub data: Vec<u8>,
    /// The last id that the stream gave, as events keep it.
    pub id: Vec<u8>,
}
