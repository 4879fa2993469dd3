//! What a protocol measures by itself: its meter is told of the messages and the ends of calls, with their times.

use brunt_protocol::meter::{Meter, MeteredEnd, MeteredSecond, Reading};
use brunt_record::catalogue::Counter;
use brunt_record::figures::FigureByName as _;
use brunt_record::time::Tick;

use super::{Call, CallId, End, Network};
use crate::transport::{ConnectionId, Driver};

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// The same, with a protocol's meter.
    pub(crate) fn metered_by(&mut self, meter: Option<Box<dyn Meter>>) {
        self.meter = meter;
    }

    fn reading(&self, id: CallId, call: &Call<T>, at: Tick) -> Reading {
        Reading {
            call: id.number(),
            // The own delay of this program is no part of what a target takes.
            after_due_ns: at.since(call.due).saturating_sub(if call.was_sent() { call.own_delay_ns } else { 0 }),
            after_sent_ns: call.was_sent().then(|| at.since(call.sent)),
            at_ns: at.ns(),
            counts: self.recorder.counts(call),
            is_within: self.recorder.is_within(at),
        }
    }

    /// A message for a call has arrived at `at`, which the client of its connection has.
    #[cold]
    pub(super) fn meter_message(&mut self, token: ConnectionId, id: CallId, at: Tick) {
        let Some(reading) = self.calls.get(id).map(|call| self.reading(id, call, at)) else { return };
        let parts = self.connections[token].client().parts();
        if let Some(meter) = &mut self.meter {
            meter.message(&reading, parts);
        }
    }

    /// A call has ended, as was noticed at `now`.
    #[cold]
    pub(super) fn meter_end(&mut self, id: CallId, call: &Call<T>, end: End<'_>, now: Tick) {
        let failure = end.failure().map(|(failure, _)| failure);
        let reading = self.reading(id, call, self.recorder.ended_at(call, failure, now));
        let end = match (end, failure) {
            (End::Answered(status), _) => MeteredEnd::Answered {
                ok: self.recorder.is_ok(status),
                parts: call.connection().map(|token| self.connections[token].client().parts()).unwrap_or_default(),
            },
            (_, Some(failure)) => MeteredEnd::Failed(failure),
            (End::Unsent, _) => MeteredEnd::Unsent,
            // Nothing is counted of what was no call after all.
            (End::Withdrawn, _) => return,
            _ => MeteredEnd::CutShort,
        };
        if let Some(meter) = &mut self.meter {
            meter.ended(&reading, end);
        }
    }

    /// A second, or a part of one, ends at `end`: its meter's figures join what was recorded.
    pub(crate) fn take_metered(&mut self, end: Tick) {
        let Some(meter) = &mut self.meter else { return };
        let snapshot = &mut self.recorder.snapshot;
        let second = MeteredSecond { unsent: snapshot.numbers.get(Counter::Unsent), ends_ns: end.ns() };
        let own = &mut snapshot.figures.own;
        meter.take(&second, &mut |name, figures| own.named(name).merge(figures));
    }
}
