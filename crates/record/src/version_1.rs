//! Records in the form that brunt wrote before there was a catalogue, in kept runs and in the agents' parts of results:
//! each number and each distribution had a field. They are read as long as such runs are kept; nothing is written in
//! this form.
//!
//! Readers here take either form: a document does not name its own.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::catalogue::{Counter, Numbers, Timing, Timings, WrittenNumber};
use crate::histogram::{Censored, Histogram};

/// Numbers by their names, within a group that has one.
pub(crate) type NamedNumbers = BTreeMap<String, WrittenNumber>;

/// The old names of numbers, within their groups.
const NAMES: [(&str, &str, Counter); 17] = [
    ("held_back", "stream_limit_ns", Counter::HeldBackByStreamLimit),
    ("held_back", "flow_control_ns", Counter::HeldBackByFlowControl),
    ("bytes", "wire_in", Counter::WireIn),
    ("bytes", "wire_out", Counter::WireOut),
    ("bytes", "clear_in", Counter::ClearIn),
    ("bytes", "clear_out", Counter::ClearOut),
    ("connections", "made", Counter::ConnectionsMade),
    ("connections", "failed", Counter::ConnectionsFailed),
    ("connections", "reconnects", Counter::Reconnects),
    ("connections", "tls_resumed", Counter::TlsResumed),
    ("health", "wall_ns", Counter::WorkersWall),
    ("health", "cpu_ns", Counter::WorkersCpu),
    ("health", "starved_ns", Counter::WorkersStarved),
    ("health", "script_ns", Counter::WorkersScript),
    ("health", "busiest_worker", Counter::BusiestWorker),
    ("health", "most_starved_worker", Counter::MostStarvedWorker),
    ("health", "saturated_ns", Counter::WorkersSaturated),
];

/// Takes in the numbers of a group.
pub(crate) fn take_group(numbers: &mut Numbers, group: &str, named: &NamedNumbers) {
    for (name, value) in named {
        if let Some((.., counter)) = NAMES.iter().find(|(of, known, _)| *of == group && known == name) {
            numbers.take(*counter, *value);
        }
    }
}

/// Messages: numbers and times of them.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Messages {
    count: u64,
    together: u64,
    streams: u64,
    left: u64,
    first: Censored,
    gap: Censored,
    last: Histogram,
    each: Histogram,
}

impl Messages {
    /// Adds them to `numbers` and `times`.
    pub(crate) fn into(self, numbers: &mut Numbers, times: &mut Timings) {
        numbers.set(Counter::Messages, self.count);
        numbers.set(Counter::MessagesTogether, self.together);
        numbers.set(Counter::Streams, self.streams);
        numbers.set(Counter::StreamsLeft, self.left);
        times.set(Timing::FirstMessage, self.first);
        times.set(Timing::MessageGap, self.gap);
        times.set_known(Timing::LastMessage, self.last);
        times.set_known(Timing::EachMessage, self.each);
    }
}

/// A target's part of times.
#[derive(Default, Deserialize)]
pub(crate) struct Parts {
    pub(crate) low: Histogram,
    pub(crate) value: Histogram,
    pub(crate) high: Histogram,
}

/// Times without the generator's own delays.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Instrument {
    pub(crate) response: Parts,
    pub(crate) service: Parts,
    pub(crate) first_byte: Histogram,
    pub(crate) receiving: Histogram,
    pub(crate) timed: u64,
    pub(crate) bounded: u64,
}
