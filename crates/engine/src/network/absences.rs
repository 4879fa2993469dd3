//! Time that places are without a server, while it is recorded; and whether a target has ever said anything.

use brunt_record::catalogue::Counter;
use brunt_record::time::Tick;

use super::calls::CallId;
use super::{Network, State};
use crate::transport::Driver;

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// From `now` on, records for each place the time without a server; with `None`, stops.
    pub(crate) fn watch_for_server(&mut self, from: Option<Tick>) {
        for connection in self.connections.iter_mut() {
            if let Some(from) = from
                && connection.came_to_nothing()
                && matches!(connection.state, State::Idle { .. } | State::Backoff { .. })
            {
                connection.history.without_since = from;
            }
        }
        self.watched_since = from.unwrap_or(Tick::NEVER);
    }

    /// Whether a call under way has the first bytes of its answer.
    pub(crate) fn is_being_answered(&self) -> bool {
        let has_bytes = |id: &CallId| self.calls.get(*id).is_some_and(|call| call.first_byte.is_set());
        self.calls.ids().iter().any(has_bytes)
    }

    /// Adds the time that places were without a server, up to `now`, while it is recorded.
    pub(super) fn count_absences(&mut self, now: Tick) {
        for connection in self.connections.iter_mut() {
            if connection.history.without_since.is_set() {
                let since = connection.history.without_since;
                connection.history.without_since = now.max(since);
                self.recorder.snapshot.numbers.add(Counter::WithoutServer, now.since(since));
            }
        }
    }

    /// The load ended at `now`: later time is in no figure.
    pub(crate) fn end_watch(&mut self, now: Tick) {
        self.count_absences(now);
        for connection in self.connections.iter_mut() {
            connection.history.without_since = Tick::NEVER;
        }
        self.watched_since = Tick::NEVER;
    }
}
