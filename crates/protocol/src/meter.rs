//! Meters: what a protocol measures of its calls by itself, beside what is measured of every call.
//!
//! Every call has its times and its outcome. What an answer *says* only its protocol knows: how many tokens a language model has made, how
//! old a record is, how long a queue was. Where [`Prepared::meter`](crate::Prepared::meter) makes a meter, each worker has one. It is told of
//! each message and each end, with the times that the engine has measured, and its figures join those of the run: in
//! the report by their names and units, in thresholds, and second by second.
//!
//! A meter names its figures beforehand ([`Protocol::own_figures`](crate::Protocol::own_figures)), so that a threshold on one that does not
//! exist is refused before the load.

use brunt_record::figures::OwnFigures;
use brunt_record::outcome::Failure;

use crate::client::AnswerParts;

/// Times of a message or an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The call's name among those of its worker that have not ended.
    pub call: u64,
    /// From when the call was due, in nanoseconds: until the message arrived, or the call ended.
    pub after_due_ns: u64,
    /// The same from when it was sent; `None` if it was never sent.
    pub after_sent_ns: Option<u64>,
    /// On the run's clock, in nanoseconds.
    pub at_ns: u64,
    /// Whether the call counts: it was due in the part of the run that is written down. Latencies and outcomes are of such calls.
    pub counts: bool,
    /// Whether it happened within that part, whenever the call was due. Throughput is of what did.
    pub is_within: bool,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeteredEnd<'a> {
    /// With this answer, a success or not.
    Answered {
        /// Whether its status is a success.
        ok: bool,
        /// What the client has kept of it.
        parts: AnswerParts<'a>,
    },
    /// By a failure.
    Failed(Failure),
    /// In flight when the run ended.
    CutShort,
    /// Never sent. Of some such calls a meter learns by their number alone ([`MeteredSecond::unsent`]), which has all of them.
    Unsent,
}

/// The calls of one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeteredSecond {
    /// The calls that were due and never sent, as became known in it.
    pub unsent: u64,
    /// On the run's clock, in nanoseconds.
    pub ends_ns: u64,
}

/// Measures the calls of one worker. What it is told holds up the worker, and what it keeps of a call ends with the call.
///
/// ```
/// use brunt_protocol::AnswerParts;
/// use brunt_protocol::meter::{Meter, MeteredEnd, MeteredSecond, Reading};
/// use brunt_protocol::record::figures::{OwnFigures, OwnKind};
///
/// /// Counts the bytes of answers.
/// #[derive(Default)]
/// struct Bytes(f64);
///
/// impl Meter for Bytes {
///     fn message(&mut self, _: &Reading, _: AnswerParts<'_>) {}
///
///     fn ended(&mut self, reading: &Reading, end: MeteredEnd<'_>) {
///         if let (true, MeteredEnd::Answered { parts, .. }) = (reading.is_within, end) {
///             self.0 += parts.body.len() as f64;
///         }
///     }
///
///     fn take(&mut self, second: &MeteredSecond, add: &mut dyn FnMut(&str, &OwnFigures)) {
///         let mut bytes = OwnFigures::new(OwnKind::Counter, "B");
///         bytes.record(std::mem::take(&mut self.0), second.ends_ns);
///         add("answer_bytes", &bytes);
///     }
/// }
///
/// let mut meter = Bytes::default();
/// let reading = Reading { call: 1, after_due_ns: 5, after_sent_ns: Some(4), at_ns: 100, counts: true, is_within: true };
/// meter.ended(&reading, MeteredEnd::Answered { ok: true, parts: AnswerParts { head: b"", body: b"1234" } });
/// let mut sum = None;
/// meter.take(&MeteredSecond::default(), &mut |_, own| sum = own.sum());
/// assert_eq!(sum, Some(4.0));
/// ```
pub trait Meter: Send {
    /// A message of a call's answer has arrived.
    fn message(&mut self, reading: &Reading, parts: AnswerParts<'_>);

    /// A call has ended. It is named no more.
    fn ended(&mut self, reading: &Reading, end: MeteredEnd<'_>);

    /// A second is over, or a part of one: passes what it has recorded since the last time to `add`, by the names of its figures.
    fn take(&mut self, second: &MeteredSecond, add: &mut dyn FnMut(&str, &OwnFigures));
}
