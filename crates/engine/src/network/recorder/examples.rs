//! Example calls of an interval: of each failure, and of slow calls.

use brunt_record::examples::{ExampleEnd, FailedExample};
use brunt_record::slowest::TracedCall;
use brunt_record::time::Tick;

use super::{Reading, Recorder};
use crate::network::calls::Call;

/// Which examples of the interval under way are of use.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Ways to end that need no further example.
    exemplified: Vec<ExampleEnd>,
    /// A successful call that took longer than this, in nanoseconds, is asked for its trace; `None` where no call is traced.
    slower_than_ns: Option<u64>,
}

impl Recorder {
    /// Whether a successful call that took so long may be asked for its trace.
    #[inline]
    pub(in crate::network) fn is_slow(&self, took_ns: u64) -> bool {
        self.wanted.slower_than_ns.is_some_and(|most| took_ns > most)
    }

    /// Whether an example of a call that ended so would be of use. A call with a trace may replace one without.
    pub(in crate::network) fn wants_example(&self, ended: ExampleEnd, has_trace: impl FnOnce() -> bool) -> bool {
        !self.wanted.exemplified.contains(&ended) || (has_trace() && self.snapshot.examples.wants(ended, true))
    }

    /// A call ended so that was not ok.
    pub(in crate::network) fn example(&mut self, ended: ExampleEnd, call: FailedExample) {
        self.snapshot.examples.add(ended, call);
        if !self.wanted.exemplified.contains(&ended) && !self.snapshot.examples.wants(ended, false) {
            self.wanted.exemplified.push(ended);
        }
    }

    /// Some calls have traces: keeps the slowest of those.
    pub(crate) fn keep_slowest(&mut self) {
        self.wanted.slower_than_ns = Some(0);
    }

    /// The response time of an answered call, read at `now`: the target's part, as far as that is known.
    pub(in crate::network) fn response_ns<T>(&self, call: &Call<T>, now: Tick) -> u64 {
        match self.reading {
            Reading::Arrived(at) => Self::times(call, Self::first_byte(call, at, now), at, now).response().value,
            Reading::Untimed | Reading::Nothing => call.response_ns(now),
        }
    }

    /// A traced call was a success and took longest so far.
    pub(in crate::network) fn slow(&mut self, call: TracedCall) {
        self.snapshot.slowest.add(call);
        self.wanted.slower_than_ns = Some(self.snapshot.slowest.least_ns());
    }

    /// Begins another interval with examples of its own.
    pub(super) fn forget_examples(&mut self) {
        self.wanted.exemplified.clear();
        self.wanted.slower_than_ns = self.wanted.slower_than_ns.map(|_| 0);
    }
}
