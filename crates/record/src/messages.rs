//! Streams: calls whose answers come as messages, such as server-sent events, and the times of these messages.
//!
//! Times are nanoseconds. A message counts when it has arrived whole, so that a stream that never ends shows in the
//! seconds in which its messages came. A message that had not come when its call ended too late is a lower bound, as
//! for calls.

use crate::catalogue::{Counter, Numbers, Timing, Timings};
use crate::histogram::{Censored, Histogram};

/// The arrival of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageArrival {
    /// From when its call was sent, or from the message before it, in nanoseconds.
    pub after_ns: u64,
    /// Whether it is its call's first.
    pub is_first: bool,
    /// Whether it was read together with the one before, so that the time between them is unknown and counts as 0.
    pub is_together: bool,
}

/// A stream whose call has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamEnd {
    /// Its messages.
    pub messages: u64,
    /// From when its call was sent to its last message, in nanoseconds.
    pub last_ns: u64,
    /// From its first to its last message, in nanoseconds.
    pub between_ns: u64,
    /// How long the next message had not come, in nanoseconds, where one was awaited in vain.
    pub waited_ns: Option<u64>,
    /// Whether its call was answered: all messages came, or all that its user wanted.
    pub is_answered: bool,
    /// Whether its user left it before its end.
    pub is_left: bool,
}

/// Recorded messages: of all calls, or of those with one name.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a> {
    numbers: &'a Numbers,
    times: &'a Timings,
}

impl<'a> Messages<'a> {
    /// The messages recorded in `numbers` and `times`.
    pub const fn new(numbers: &'a Numbers, times: &'a Timings) -> Self {
        Self { numbers, times }
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0 && self.first().count() == 0
    }

    /// Messages that came.
    pub const fn count(&self) -> u64 {
        self.numbers.get(Counter::Messages)
    }

    /// Messages that were read together with the one before, whose gap counts as 0.
    pub const fn together(&self) -> u64 {
        self.numbers.get(Counter::MessagesTogether)
    }

    /// Calls with at least one message.
    pub const fn streams(&self) -> u64 {
        self.numbers.get(Counter::Streams)
    }

    /// Streams that their user left before their end.
    pub const fn left(&self) -> u64 {
        self.numbers.get(Counter::StreamsLeft)
    }

    /// From when a call was sent to its first message.
    pub fn first(&self) -> &'a Censored {
        self.times.get(Timing::FirstMessage)
    }

    /// From one message of a call to the next.
    pub fn gap(&self) -> &'a Censored {
        self.times.get(Timing::MessageGap)
    }

    /// From when a call was sent to its last message.
    pub fn last(&self) -> &'a Histogram {
        self.times.known(Timing::LastMessage)
    }

    /// The mean time for a message after the first, by call.
    pub fn each(&self) -> &'a Histogram {
        self.times.known(Timing::EachMessage)
    }
}

/// Records a message that has come.
#[inline]
pub fn came(numbers: &mut Numbers, times: &mut Timings, came: &MessageArrival) {
    numbers.add(Counter::Messages, 1);
    numbers.add(Counter::MessagesTogether, u64::from(came.is_together));
    if came.is_first {
        numbers.add(Counter::Streams, 1);
        times.record(Timing::FirstMessage, came.after_ns);
    } else {
        times.record(Timing::MessageGap, came.after_ns);
    }
}

/// Records that a call has ended that waited for messages.
pub fn ended(numbers: &mut Numbers, times: &mut Timings, ended: &StreamEnd) {
    numbers.add(Counter::StreamsLeft, u64::from(ended.is_left));
    numbers.add(Counter::StreamsEmpty, u64::from(ended.is_answered && ended.messages == 0));
    if let Some(waited_ns) = ended.waited_ns {
        times.record_bound(if ended.messages == 0 { Timing::FirstMessage } else { Timing::MessageGap }, waited_ns);
    }
    if !ended.is_answered || ended.messages == 0 {
        return;
    }
    times.record(Timing::LastMessage, ended.last_ns);
    if ended.messages > 1 {
        times.record(Timing::EachMessage, ended.between_ns / (ended.messages - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::AtLeast;
    use crate::snapshot::Snapshot;

    fn came(after_ns: u64, is_first: bool) -> MessageArrival {
        MessageArrival { after_ns, is_first, is_together: after_ns == 0 }
    }

    #[test]
    fn a_stream_has_a_first_gaps_a_last_and_a_pace() {
        let mut snapshot = Snapshot::default();
        snapshot.came(&came(300, true));
        for gap in [20, 0, 40] {
            snapshot.came(&came(gap, false));
        }
        snapshot.stream_ended(&StreamEnd {
            messages: 4,
            last_ns: 360,
            between_ns: 60,
            is_answered: true,
            ..StreamEnd::default()
        });
        assert_eq!(
            (
                snapshot.messages().count(),
                snapshot.numbers.get(Counter::MessagesTogether),
                snapshot.messages().streams()
            ),
            (4, 1, 1)
        );
        assert_eq!(
            (
                snapshot.messages().first().known.max(),
                snapshot.messages().last().max(),
                snapshot.messages().each().max()
            ),
            (Some(300), Some(360), Some(20))
        );
        assert_eq!(
            (
                snapshot.messages().gap().known.min(),
                snapshot.messages().gap().known.max(),
                snapshot.messages().gap().count()
            ),
            (Some(0), Some(40), 3)
        );
    }

    #[test]
    fn what_never_came_is_a_lower_bound() {
        let mut snapshot = Snapshot::default();
        snapshot.stream_ended(&StreamEnd { waited_ns: Some(1000), ..StreamEnd::default() });
        assert_eq!(snapshot.messages().first().quantile(0.5), Some(AtLeast { value: 1000, at_least: true }));
        assert!(snapshot.messages().gap().count() == 0 && !snapshot.messages().is_empty());
        snapshot.came(&came(10, true));
        snapshot.stream_ended(&StreamEnd { messages: 1, last_ns: 10, waited_ns: Some(500), ..StreamEnd::default() });
        assert_eq!(snapshot.messages().gap().quantile(0.5), Some(AtLeast { value: 500, at_least: true }));
        assert!(snapshot.messages().last().is_empty(), "a stream that failed has no last message");
    }
}
