//! Calls by the name of their request.

use brunt_record::catalogue::Counter;
use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use super::{Core, CoreAnswer, Durations, Recorder};
use crate::network::calls::{Call, End};

impl Recorder {
    /// A call has ended whose request has this name. `is_excused`: its status is a success, whichever it is.
    pub(crate) fn ended_by_name<T>(&mut self, id: NameId, call: &Call<T>, end: End<'_>, is_excused: bool, now: Tick) {
        if let End::Answered(status) = end {
            self.answered_by_end(Core::Request(id), self.arrival(now), is_excused || self.is_ok(status));
        }
        if !self.counts(call) || end == End::Withdrawn {
            return;
        }
        let failure = end.failure().map(|(failure, _)| failure);
        let at = self.ended_at(call, failure, now);
        let durations = self.durations(call, at, now);
        if let End::Answered(status) = end {
            let is_usual = self.is_ok(status);
            let is_ok = is_usual || is_excused;
            // Bytes are counted over all calls alone.
            let answer = CoreAnswer { status, durations, is_usual, is_ok, bytes_in: 0, bytes_out: 0 };
            return self.answered_in(Core::Request(id), &answer);
        }
        let Durations { response, service } = durations;
        let calls = self.snapshot.figures.requests.at(id);
        calls.due();
        match failure {
            Some(failure) => calls.failed(failure, response, call.was_sent().then_some(service)),
            None if end == End::Unfinished => calls.unfinished(response, call.was_sent().then_some(service), 1),
            None => calls.unsent(response, 1),
        }
    }

    /// So many calls of this name were due together and never begun, and had waited this long, in nanoseconds:
    /// unfinished where the target `was_silent` since, as over all calls.
    pub(crate) fn never_sent_by_name(&mut self, id: NameId, waited_ns: u64, calls: u64, was_silent: bool) {
        let figures = self.snapshot.figures.requests.at(id);
        figures.numbers.add(Counter::Due, calls);
        if was_silent {
            figures.unfinished(waited_ns, None, calls);
        } else {
            figures.unsent(waited_ns, calls);
        }
    }
}
