//! Figures of a flood's calls by their names, where its user tells them apart.

use brunt_protocol::user::User;
use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use crate::network::{Call, End, Recorder};

/// The names of a flood's calls; empty where all are alike.
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

    /// A call that was due, and for which no connection was made, has failed. It has its name all the same.
    pub(super) fn failed_overdue(
        &self,
        recorder: &mut Recorder,
        user: &dyn User,
        mut call: Call<u64>,
        failed: End<'_>,
        now: Tick,
    ) {
        recorder.failed_overdue(&mut call, failed, now);
        if !self.is_empty() {
            self.record(recorder, user.name(call.tag), &call, failed, now);
        }
    }

    /// A call with the name of this number has ended.
    pub(super) fn record(&self, recorder: &mut Recorder, name: usize, call: &Call<u64>, end: End<'_>, now: Tick) {
        if let Some(id) = self.0.get(name).copied() {
            recorder.ended_by_name(id, call, end, false, now);
        }
    }
}
