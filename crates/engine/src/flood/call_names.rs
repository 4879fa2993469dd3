//! Figures of a flood's calls by their names, where its user tells them apart.

use brunt_plan::plan::Plan;
use brunt_plan::schedule::Schedule;
use brunt_plan::share::Share;
use brunt_protocol::source::RequestSource;
use brunt_record::figures::NameId;
use brunt_record::time::Tick;

use crate::network::{Call, End, Recorder};

/// Which name a call has that no connection carried.
#[derive(Clone, Copy)]
pub(super) struct Uncarried<'a> {
    user: &'a dyn RequestSource,
    share: Share,
    /// The most connections of all workers together.
    connections: u32,
}

impl<'a> Uncarried<'a> {
    pub(super) fn new(user: &'a dyn RequestSource, share: Share, plan: &Plan) -> Self {
        Self { user, share, connections: plan.connections.most() }
    }

    /// The name of the call with this number. Where connections decide names, such calls are dealt to the connections in
    /// turn: any of them could have carried it.
    pub(super) fn name(self, call: u64) -> usize {
        let own = self.share.part_of(u64::from(self.connections));
        let place = call / self.share.count().max(1) % own.max(1);
        let of_connection = self.share.number(place).and_then(|number| self.user.connection_name(number));
        of_connection.unwrap_or_else(|| self.user.name(call))
    }
}

/// Of how many calls that were due together names are asked. More are as these: names come round by their numbers.
const MOST_LOOKED_AT: u64 = 4096;

/// The names of a flood's calls; empty where all are alike.
#[derive(Debug, Default)]
pub(super) struct CallNames(Vec<NameId>);

impl CallNames {
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
        uncarried: Uncarried<'_>,
        mut call: Call<u64>,
        failed: End<'_>,
        now: Tick,
    ) {
        recorder.failed_overdue(&mut call, failed, now);
        if !self.is_empty() {
            self.record(recorder, uncarried.name(call.tag), &call, failed, now);
        }
    }

    /// A call with the name of this number has ended.
    pub(super) fn record(&self, recorder: &mut Recorder, name: usize, call: &Call<u64>, end: End<'_>, now: Tick) {
        if let Some(id) = self.0.get(name).copied() {
            recorder.ended_by_name(id, call, end, false, now);
        }
    }
}

/// The names of calls that are never sent, which are passed over in the order of their numbers.
pub(super) struct InTurn<'a> {
    names: &'a CallNames,
    uncarried: Uncarried<'a>,
    /// The number of the next one, and how far apart they are.
    number: u64,
    apart: u64,
}

impl<'a> InTurn<'a> {
    /// From the first call of the schedule that was not taken.
    pub(super) fn new(names: &'a CallNames, uncarried: Uncarried<'a>, schedule: &Schedule) -> Self {
        Self { names, uncarried, number: schedule.number().unwrap_or(0), apart: uncarried.share.count() }
    }

    /// So many calls, which were due together and waited this long, in nanoseconds, are never sent. `was_silent`: the
    /// target was silent since they were due.
    pub(super) fn never_sent(&mut self, recorder: &mut Recorder, calls: u64, waited_ns: u64, was_silent: bool) {
        let first = self.number;
        self.number = first.wrapping_add(calls.wrapping_mul(self.apart));
        if self.names.is_empty() {
            return;
        }
        let looked_at = calls.min(MOST_LOOKED_AT);
        let mut counts = vec![0_u64; self.names.0.len()];
        for nth in 0..looked_at {
            let name = self.uncarried.name(first.wrapping_add(nth.wrapping_mul(self.apart)));
            counts.get_mut(name).into_iter().for_each(|count| *count += 1);
        }
        // Of more calls the others have names in the same proportion, and together all of them have one.
        let of_all = |seen: u64| (u128::from(seen) * u128::from(calls) / u128::from(looked_at.max(1))) as u64;
        let (mut seen, mut told) = (0, 0);
        for (id, count) in self.names.0.iter().zip(counts) {
            seen += count;
            let named = of_all(seen) - told;
            told += named;
            if named > 0 {
                recorder.never_sent_by_name(*id, waited_ns, named, was_silent);
            }
        }
    }
}
