//! Streams: calls whose answers come as messages, such as server-sent events, and what their messages took.
//!
//! Times are nanoseconds. A message counts when it has arrived whole, so that a stream that never ends shows in the second
//! in which its messages came. What had not come when its call ended too late is a lower bound, as for calls.

use serde::{Deserialize, Serialize};

use crate::histogram::{Censored, Histogram};

/// A message that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// From when its call was sent, or from the message before it, in nanoseconds.
    pub after_ns: u64,
    /// Whether it is its call's first.
    pub is_first: bool,
    /// Whether it was read together with the one before it, so that the time between them is not known and counts as 0.
    pub is_together: bool,
}

/// A stream whose call has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its messages.
    pub messages: u64,
    /// From when its call was sent to its last message, in nanoseconds.
    pub last_ns: u64,
    /// From its first to its last message, in nanoseconds.
    pub between_ns: u64,
    /// For how long the next message had not come, in nanoseconds, where one was waited for in vain.
    pub waited_ns: Option<u64>,
    /// Whether its call was answered: all messages came, or all that somebody wanted.
    pub is_answered: bool,
    /// Whether its user left it before its end.
    pub is_left: bool,
}

/// Figures of the messages of calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Messages {
    /// Messages that came.
    pub count: u64,
    /// Those among them that were read together with the one before: their gap counts as 0.
    pub together: u64,
    /// Calls with at least one message.
    pub streams: u64,
    /// Streams that their user left before their end.
    pub left: u64,
    /// From when a call was sent to its first message; bounds where none came in time.
    pub first: Censored,
    /// From one message of a call to the next; bounds where the next did not come in time.
    pub gap: Censored,
    /// From when a call was sent to its last message, of calls that were answered.
    pub last: Histogram,
    /// The mean time for a message after the first, a value for each answered call with two messages or more.
    pub each: Histogram,
}

impl Messages {
    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.first.count() == 0
    }

    /// A message has come.
    #[inline]
    pub fn came(&mut self, came: &Came) {
        self.count += 1;
        self.together += u64::from(came.is_together);
        if came.is_first {
            self.streams += 1;
            self.first.known.record(came.after_ns);
        } else {
            self.gap.known.record(came.after_ns);
        }
    }

    /// A call that waited for messages has ended.
    pub fn ended(&mut self, ended: &Ended) {
        self.left += u64::from(ended.is_left);
        if let Some(waited_ns) = ended.waited_ns {
            let times = if ended.messages == 0 { &mut self.first } else { &mut self.gap };
            times.bounds.record(waited_ns);
        }
        if !ended.is_answered || ended.messages == 0 {
            return;
        }
        self.last.record(ended.last_ns);
        if ended.messages > 1 {
            self.each.record(ended.between_ns / (ended.messages - 1));
        }
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.together += other.together;
        self.streams += other.streams;
        self.left += other.left;
        self.first.merge(&other.first);
        self.gap.merge(&other.gap);
        self.last.merge(&other.last);
        self.each.merge(&other.each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::AtLeast;

    fn came(after_ns: u64, is_first: bool) -> Came {
        Came { after_ns, is_first, is_together: after_ns == 0 }
    }

    #[test]
    fn a_stream_has_a_first_gaps_a_last_and_a_pace() {
        let mut messages = Messages::default();
        messages.came(&came(300, true));
        for gap in [20, 0, 40] {
            messages.came(&came(gap, false));
        }
        messages.ended(&Ended { messages: 4, last_ns: 360, between_ns: 60, is_answered: true, ..Ended::default() });
        assert_eq!((messages.count, messages.together, messages.streams), (4, 1, 1));
        assert_eq!(
            (messages.first.known.max(), messages.last.max(), messages.each.max()),
            (Some(300), Some(360), Some(20))
        );
        assert_eq!((messages.gap.known.min(), messages.gap.known.max(), messages.gap.count()), (Some(0), Some(40), 3));
    }

    #[test]
    fn what_never_came_is_a_lower_bound() {
        let mut messages = Messages::default();
        messages.ended(&Ended { waited_ns: Some(1000), ..Ended::default() });
        assert_eq!(messages.first.quantile(0.5), Some(AtLeast { value: 1000, at_least: true }));
        assert!(messages.gap.count() == 0 && !messages.is_empty());
        messages.came(&came(10, true));
        messages.ended(&Ended { messages: 1, last_ns: 10, waited_ns: Some(500), ..Ended::default() });
        assert_eq!(messages.gap.quantile(0.5), Some(AtLeast { value: 500, at_least: true }));
        assert!(messages.last.is_empty(), "a stream that failed has no last message");
    }

    #[test]
    fn merging_adds_up() {
        let mut one = Messages::default();
        one.came(&came(10, true));
        one.ended(&Ended { messages: 1, last_ns: 10, is_answered: true, is_left: true, ..Ended::default() });
        let mut twice = one.clone();
        twice.merge(&one);
        assert_eq!((twice.count, twice.streams, twice.left, twice.last.count()), (2, 2, 2, 2));
        assert_eq!((twice.first.count(), twice.each.count()), (2, 0));
    }
}
