//! Calls by the name of their request.

use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use super::{Core, Recorder, Took};
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
        let failure = if let End::Failed(failure, _) = end { Some(failure) } else { None };
        let at = self.ended_at(call, failure, now);
        let took = Self::took(call, at, now);
        if let End::Answered(status) = end {
            let is_usual = self.is_ok(status);
            self.answered_in(Core::Request(id), status, took, is_usual || is_excused);
            if is_excused && !is_usual {
                self.snapshot.figures.requests.at(id).excused(status);
            }
            return;
        }
        let Took { response, service } = took;
        let calls = self.snapshot.figures.requests.at(id);
        calls.due();
        match end {
            End::Failed(failure, _) => calls.failed(failure, response, call.was_sent().then_some(service)),
            End::Unfinished if call.was_sent() => calls.unfinished(response, service),
            End::Unfinished | End::Unsent => calls.unsent(response),
            End::Answered(_) | End::Withdrawn => {}
        }
    }
}
