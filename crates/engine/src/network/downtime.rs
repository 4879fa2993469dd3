//! Time that places are without a server, while it is recorded; and whether a target has ever said anything.

use brunt_record::catalogue::Counter;
use brunt_record::time::Tick;

use super::calls::CallId;
use super::{Network, State};
use crate::transport::{ConnectionId, Driver};

/// The share of a call's wait for which all connections have to be silent: the others may have been answered a moment
/// after it was sent.
const MOST_OF_IT: f64 = 0.75;

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// From `now` on, records for each place the time without a server; with `None`, stops.
    pub(crate) fn watch_for_server(&mut self, from: Option<Tick>) {
        for connection in self.connections.iter_mut() {
            if let Some(from) = from
                && connection.never_answered()
                && matches!(connection.state, State::Idle { .. } | State::Backoff { .. })
            {
                connection.history.without_since = from;
            }
        }
        self.watched_since = from.unwrap_or(Tick::NEVER);
        self.watched = None;
    }

    /// A call on this connection timed out at `now`. Silence is time without a server where the connection before was
    /// silent, too, or where none of several connections was answered since the call was sent: one that takes too long
    /// now and then is no absence.
    pub(super) fn count_silence(&mut self, token: ConnectionId, now: Tick) {
        let is_watched = self.watched_since.is_set();
        let Some((from, until)) = is_watched.then_some((self.watched_since, now)).or(self.watched) else { return };
        let connection = &self.connections[token];
        let silent_since = if connection.never_answered() {
            connection.ready_since
        } else {
            let calls = connection.calls.iter().filter_map(|id| self.calls.get(*id));
            let unanswered = calls.filter(|call| call.was_sent() && !call.first_byte.is_set());
            let Some(waited) = unanswered.map(|call| now.since(call.sent)).max() else { return };
            let heard = connection.ready_since.max(self.recorder.last_arrival());
            if self.places() < 2 || (now.since(heard) as f64) < MOST_OF_IT * waited as f64 {
                return;
            }
            heard
        };
        self.recorder.snapshot.numbers.add(Counter::WithoutServer, until.since(silent_since.max(from)));
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
        if self.watched_since.is_set() {
            self.watched = Some((self.watched_since, now));
        }
        self.watched_since = Tick::NEVER;
    }
}
