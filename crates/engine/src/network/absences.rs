//! Time that places are without a server, while it is recorded.

use brunt_record::catalogue::Counter;

use super::{NEVER, Network, State};
use crate::transport::Driver;

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// From `now` on, records for each place the time without a server; with `None`, stops.
    pub(crate) fn watch_for_server(&mut self, from: Option<u64>) {
        for connection in &mut self.connections.0 {
            if let Some(from) = from
                && connection.came_to_nothing()
                && matches!(connection.state, State::Idle | State::Backoff)
            {
                connection.without_since = from;
            }
        }
        self.watched_since = from.unwrap_or(NEVER);
    }

    /// Adds the time that places were without a server, up to `now`, while it is recorded.
    pub(super) fn count_absences(&mut self, now: u64) {
        for connection in &mut self.connections.0 {
            if connection.without_since != NEVER {
                let since = connection.without_since;
                connection.without_since = now.max(since);
                self.recorder.snapshot.numbers.add(Counter::WithoutServer, now.saturating_sub(since));
            }
        }
    }

    /// The load ended at `now`: later time is in no figure.
    pub(crate) fn end_watch(&mut self, now: u64) {
        self.count_absences(now);
        for connection in &mut self.connections.0 {
            connection.without_since = NEVER;
        }
        self.watched_since = NEVER;
    }
}
