//! Seconds and phases closed, and handed over to the coordinator.

use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::time::Tick;

use super::{Interval, Report, Worker};
use crate::network::Workload;
use crate::transport::Driver;

impl<D: Driver, W: Workload<D>> Worker<D, W> {
    /// Reports every second that has ended by `now`.
    pub(super) fn close_seconds(&mut self, phase: Phase, now: Tick) {
        while now >= self.second.ends() {
            self.hand_over(phase, self.second.ends(), SECOND_NS);
        }
    }

    /// Reports the rest of the phase's last second.
    pub(super) fn close_phase(&mut self, phase: Phase, end: Tick) {
        self.close_seconds(phase, end);
        let left = end.since(self.second.begins());
        // A phase that ends with a full second has nothing left, except for calls that ended at that very moment.
        let Snapshot { numbers, figures, .. } = &self.network.recorder().snapshot;
        if left > 0
            || numbers.get(Counter::Due) > 0
            || !figures.is_empty()
            || self.network.recorder_mut().snapshot.ended() > 0
            || self.network.recorder_mut().has_ends()
        {
            self.hand_over(phase, end, left);
        }
    }

    /// Reports the second under way so far.
    pub(super) fn report_part(&mut self, phase: Phase, now: Tick) {
        let length_ns = now.since(self.second.begins());
        if length_ns < SECOND_NS {
            self.load.hand_over(&mut self.network, now);
            let part = self.interval(phase, length_ns);
            let _ = self.reports.send(Report::Part(Box::new(part)));
        }
    }

    /// Everything since the last report, in the second under way.
    fn interval(&mut self, phase: Phase, length_ns: u64) -> Interval {
        let end = self.second.begins() + length_ns;
        let oldest_due = self.network.oldest_due().unwrap_or(Tick::NEVER).min(self.load.next_due());
        self.network.note_events(end);
        self.network.take_metered(end);
        let mut snapshot = self.network.recorder_mut().take();
        snapshot.hide(&self.shared.secrets);
        Interval {
            worker: self.number,
            phase,
            second: self.second.number(),
            length_ns,
            snapshot,
            open_connections: self.network.connections().established(),
            in_flight: self.network.connections().in_flight(),
            oldest_ns: end.since(oldest_due),
        }
    }

    fn hand_over(&mut self, phase: Phase, end: Tick, length_ns: u64) {
        self.load.hand_over(&mut self.network, end);
        self.network.note_losses();
        let spun_ns = self.network.driver_mut().spun_ns();
        let numbers = &mut self.network.recorder_mut().snapshot.numbers;
        numbers.set_health(&self.vitals.lap(end, spun_ns));
        numbers.set(Counter::WorkersScript, self.load.take_busy_ns());
        let interval = self.interval(phase, length_ns);
        self.network.recorder_mut().looks.fit();
        self.network.beat(&mut self.load, end);
        self.second = self.second.next();
        self.network.recorder_mut().open_second(self.second.ends().min(self.load_until));
        let _ = self.reports.send(Report::Interval(Box::new(interval)));
    }
}
