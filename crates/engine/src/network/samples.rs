//! Rows of calls, where each call is written down.

use std::sync::Arc;

use brunt_record::outcome::Failure;
use brunt_record::samples::{Row, RowEnd, SampleSink, Samples, Texts};
use brunt_record::time::Tick;

use super::Network;
use super::calls::{Call, End};
use crate::transport::Driver;

/// What a load knows of a call that it writes down.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowContext<'a> {
    pub(crate) texts: Texts<'a>,
    /// Whether its status is a success for it; `None` where the run's statuses decide.
    pub(crate) is_ok: Option<bool>,
    /// Its virtual user's number, and that user's iteration.
    pub(crate) user: Option<(u64, u64)>,
}

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// Writes calls down from now on, as those of this worker. Every answer is timed then.
    pub(crate) fn sample(&mut self, sink: Arc<dyn SampleSink>, worker: u32) {
        self.recorder.samples = Some(Box::new(Samples::new(sink, worker)));
        self.recorder.times_streams();
    }

    /// Writes down a call that has ended at `now`, where calls are.
    #[cold]
    pub(crate) fn write_down(&mut self, call: &Call<T>, end: End<'_>, now: Tick, told: &RowContext<'_>) {
        let Self { recorder, connections, .. } = self;
        let (failure, ended) = match end {
            End::Answered(status) => {
                (None, RowEnd::Answered(status, told.is_ok.unwrap_or_else(|| recorder.is_ok(status))))
            }
            End::Failed(failure, _) | End::ToldByPeer(failure, _) | End::GivenUp(failure, _) => {
                (Some(failure), RowEnd::Failed(failure))
            }
            End::Unfinished => (None, RowEnd::Unfinished),
            End::Unsent => (None, RowEnd::Unsent),
            End::Withdrawn => return,
        };
        let at = recorder.ended_at(call, failure, now);
        let Some(samples) = &mut recorder.samples else { return };
        let connection = call.connection().map(|token| &mut connections[token]);
        // Counted for a call without a row as well: the next one's bytes would have its own among them.
        let (connection, bytes_in) = connection.map_or((None, 0), |connection| {
            let link = &mut connection.link;
            (Some(connection.number), link.bytes_in - std::mem::replace(&mut link.told_in, link.bytes_in))
        });
        if !samples.takes_next() {
            return;
        }
        let sent = call.was_sent().then_some(call.sent);
        let row = Row {
            due_ns: call.due.ns(),
            sent_ns: sent.map(Tick::ns),
            arrived_ns: matches!(end, End::Answered(_)).then_some(at.ns()),
            ended_ns: if matches!(failure, Some(Failure::Timeout | Failure::Stalled)) { at.ns() } else { now.ns() },
            lag_ns: sent.map_or(0, |sent| call.own_delay_ns.min(sent.since(call.due))),
            ended,
            measured: call.measured,
            bytes_in,
            bytes_out: if sent.is_some() { call.bytes_out_through.saturating_sub(call.bytes_out_before) } else { 0 },
            connection,
            user: told.user,
        };
        samples.push(row, &told.texts);
    }
}
