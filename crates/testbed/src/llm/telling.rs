//! What an answer has to tell, in whichever API's words.

use std::io::Write as _;
use std::ops::Range;
use std::time::Duration;

use super::config::Quirks;
use super::endpoint::Endpoint;
use super::plan::Plan;
use super::request::Usage;
use super::token_words::push_token;

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// The model has said all.
    Stop,
    /// The request's limit.
    Length,
}

/// What is known of an answer when its request was taken on.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) endpoint: Endpoint,
    pub(super) id: u64,
    pub(super) streams: bool,
    pub(super) usage: Usage,
    pub(super) prompt: u64,
    pub(super) cached: u64,
    pub(super) finish: Finish,
    pub(super) plan: Plan,
    /// When its request had come whole, since the server's start.
    pub(super) received: Duration,
}

impl Facts {
    /// The text of these tokens.
    pub(super) fn text(range: Range<u64>) -> String {
        let mut text = String::with_capacity(8 * (range.end - range.start) as usize);
        range.for_each(|token| push_token(token, &mut text));
        text
    }

    /// The texts of the reasoning and of the content, whole.
    pub(super) fn texts(&self) -> (String, String) {
        let reasoning = self.plan.reasoning.min(self.plan.tokens);
        (Self::text(1..reasoning + 1), Self::text(reasoning + 1..self.plan.tokens + 1))
    }
}

/// How a server tells all its answers.
#[derive(Debug)]
pub(super) struct Voice {
    /// The model's name, as JSON.
    pub(super) model: String,
    pub(super) has_prefixes: bool,
    pub(super) quirks: Quirks,
}

/// A moment at which something is told, in nanoseconds of the monotonic clock, and as time since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) received: u64,
    pub(super) due: u64,
    pub(super) sent: u64,
    pub(super) unix: Duration,
    /// When the request had its slot, since the server's start.
    pub(super) started: Duration,
}

/// An answer, told now.
#[derive(Clone, Copy)]
pub(super) struct Telling<'a> {
    pub(super) facts: &'a Facts,
    pub(super) voice: &'a Voice,
    pub(super) moment: Moment,
}

impl Telling<'_> {
    /// Appends the fields with the times, if there are to be any, each behind a comma.
    pub(super) fn stamps(&self, out: &mut Vec<u8>) {
        if self.voice.quirks.stamps {
            let Moment { received, due, sent, .. } = self.moment;
            put(out, format_args!(r#","received_ns":{received},"due_ns":{due},"sent_ns":{sent}"#));
        }
    }
}

/// Appends text.
pub(super) fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // A vector takes all.
    let _ = out.write_fmt(text);
}

/// Appends text as JSON.
pub(super) fn put_json(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(out, text);
}

/// The events of one moment, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Events {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Events {
    /// Forgets them all.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Each of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(start..*end).unwrap_or_default())
    }

    /// Appends an event whose bytes `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Appends a server-sent event.
    pub(super) fn sse(&mut self, name: Option<&str>, data: impl FnOnce(&mut Vec<u8>)) {
        self.push(|out| {
            if let Some(name) = name {
                put(out, format_args!("event: {name}\n"));
            }
            out.extend_from_slice(b"data: ");
            data(out);
            out.extend_from_slice(b"\n\n");
        });
    }
}
