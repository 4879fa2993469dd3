//! Figures of a flood's calls by their names, where its user tells them apart.

use brunt_record::figures::NameId;

use crate::network::{Call, End, Recorder};

/// The names of a flood's calls; none where all are alike.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<NameId>);

impl Names {
    /// These names, as the recorder counts by them.
    pub(super) fn new(names: &[String], recorder: &mut Recorder) -> Self {
        let requests = &mut recorder.snapshot.figures.requests;
        Self(names.iter().map(|name| requests.id(name)).collect())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A call with the name of this number has ended.
    pub(super) fn record(&self, recorder: &mut Recorder, name: usize, call: &Call<u64>, end: End<'_>, now: u64) {
        let Some(id) = self.0.get(name).copied().filter(|_| recorder.counts(call) && end != End::Withdrawn) else {
            return;
        };
        let failure = if let End::Failed(failure, _) = end { Some(failure) } else { None };
        let at = recorder.ended_at(call, failure, now);
        let (response, service) = (call.response_ns(at), call.service_ns(at));
        let is_ok = if let End::Answered(status) = end { recorder.is_ok(status) } else { false };
        let calls = recorder.snapshot.figures.requests.at(id);
        calls.due();
        match end {
            End::Answered(status) => {
                calls.answered(status, response, service);
                if !is_ok {
                    calls.refused(response);
                }
            }
            End::Failed(failure, _) => calls.failed(failure, response, call.was_sent().then_some(service)),
            End::Unfinished if call.was_sent() => calls.unfinished(response, service),
            End::Unfinished | End::Unsent => calls.unsent(response),
            End::Withdrawn => {}
        }
    }
}
