//! When another connection is made because all are full: by one rule for calls of a rate, by another for calls that users hold.
//!
//! **With a rate** ([`Growth`]) a due call that finds no connection free waits in its schedule, and one more connection is made,
//! up to a limit. Most shortages are over before that, so three rules bound this growth. No more connections are being made than
//! calls wait for one, nor than [`CONNECTING_AT_ONCE`]. None is made in the first moment of a shortage, which may be a burst of
//! calls that were sent late and will soon be answered; where they were sent very late, this moment is longer. None is made while
//! answers wait for this worker, since connections are then not what is short. After the target or the system has refused a
//! connection, and while no connection receives anything, one is made every [`PROBE_NS`].
//!
//! **For users** ([`Eager`]) each call that waits keeps a user waiting: a connection is made at once, but no more at once
//! than there are, and none while those being made will have streams enough.

use brunt_plan::arrivals::{Arrival, Arrivals};
use brunt_plan::plan::Plan;
use brunt_plan::profile::Profile;
use brunt_record::SECOND_NS;
use brunt_record::time::Tick;

use super::connection::Connections;
use super::origins::OriginId;
use crate::transport::ConnectionId;

/// The most connections being made at once where nobody waits for them: fewer than a listening socket usually queues.
pub(crate) const CONNECTING_AT_ONCE: usize = 128;

/// How long all connections have to be busy before one is added, in nanoseconds.
const PATIENCE_NS: u64 = 1_000_000;
/// Calls that were held up come together; they are answered within this part (a divisor) of the time that they were
/// held up, if they are answered soon.
const CATCHING_UP: u64 = 8;
/// The interval between connections that are made only to see whether one more is of use, in nanoseconds.
const PROBE_NS: u64 = SECOND_NS / 10;
/// How long all connections may be silent before that counts as the target's doing, in nanoseconds.
const SILENCE_NS: u64 = SECOND_NS / 4;
/// The answer time, in seconds, for which the first connections suffice.
const FIRST_ANSWER_S: f64 = 0.01;
/// The fewest and the most of the first connections, over all workers.
const FIRST: (f64, f64) = (4.0, 64.0);

/// How many connections a run begins with whose rate begins as this profile does.
pub(crate) fn first_connections(plan: &Plan, profile: &Profile) -> u32 {
    // Each carries as many calls as may be in flight on it.
    let calls = (profile.first_rate() * FIRST_ANSWER_S).ceil().clamp(FIRST.0, FIRST.1);
    let enough = (calls / f64::from(plan.pipeline.max(1))).ceil();
    (enough as u32).max(plan.workers).min(plan.connections.most())
}

/// The growth of one worker's connections with a rate.
#[derive(Debug)]
pub(crate) struct Growth {
    /// The most connections that the worker may have.
    limit: usize,
    due: Option<Due>,
    /// Since when no connection was free; [`Tick::NEVER`] while one is.
    short_since: Tick,
    /// The largest own delay of a call since the shortage began, in nanoseconds.
    held_up: u64,
    /// No connection is added before this time.
    held_until: Tick,
    /// When one was last added.
    probed_at: Tick,
    /// Whether the last one was refused.
    is_refused: bool,
    /// Whether half of the connections were answered in this turn: then this worker is behind.
    is_behind: bool,
    /// When to look again whether one should be added, if nothing happens before.
    pub(crate) next_look: Tick,
}

/// The schedule's arrivals once more, to count the calls that are due.
#[derive(Debug)]
struct Due {
    arrivals: Arrivals,
    begin: Tick,
    next: Option<Arrival>,
    passed: u64,
}

impl Due {
    /// How many calls are due at `now`.
    fn at(&mut self, now: Tick) -> u64 {
        if self.next().is_some_and(|due| due <= now) {
            self.passed += 1 + self.arrivals.pass((now + 1).since(self.begin));
            self.next = self.arrivals.next();
        }
        self.passed
    }

    /// When the next call is due.
    fn next(&self) -> Option<Tick> {
        self.next.map(|arrival| self.begin.saturating_add(arrival.due_ns))
    }
}

/// How the worker's connections stand.
pub(crate) struct ConnectionCounts {
    /// All connections, made or being made.
    pub(crate) connections: usize,
    /// Those being made.
    pub(crate) connecting: usize,
    /// Calls that were taken from the schedule.
    pub(crate) taken: u64,
    /// How long the last call was held up, in nanoseconds.
    pub(crate) held_up: u64,
    /// When bytes last came from the target.
    pub(crate) heard: Tick,
    /// Whether each call has a connection of its own, so that connections being made have calls already.
    pub(crate) reconnect: bool,
}

impl Growth {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            due: None,
            short_since: Tick::NEVER,
            held_up: 0,
            held_until: Tick::EPOCH,
            probed_at: Tick::EPOCH,
            is_refused: false,
            is_behind: false,
            next_look: Tick::NEVER,
        }
    }

    /// The most connections that the worker may have.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// A phase begins at `begin`, with calls due by `arrivals`.
    pub(crate) fn begin(&mut self, mut arrivals: Arrivals, begin: Tick) {
        let next = arrivals.next();
        self.due = Some(Due { arrivals, begin, next, passed: 0 });
    }

    /// The schedule goes on by this profile.
    pub(crate) fn change(&mut self, profile: &Profile) {
        if let Some(due) = &mut self.due {
            if due.next.is_some() {
                due.arrivals.give_back();
            }
            due.arrivals.change(profile);
            due.next = due.arrivals.next();
        }
    }

    /// This many of the worker's connections were answered in this turn.
    pub(crate) fn answered(&mut self, connections: usize, all: usize) {
        self.is_behind = connections > 0 && 2 * connections >= all;
    }

    /// A connection could not be made at `now`.
    pub(crate) fn refused(&mut self, now: Tick) {
        (self.held_until, self.is_refused) = (now + PROBE_NS, true);
    }

    /// A connection was made.
    pub(crate) fn made(&mut self) {
        self.is_refused = false;
    }

    /// A connection is free at this time.
    pub(crate) fn has_free(&mut self) {
        (self.short_since, self.held_up, self.next_look) = (Tick::NEVER, 0, Tick::NEVER);
    }

    /// No connection is free at `now`: how many to add.
    pub(crate) fn missing(&mut self, standing: &ConnectionCounts, now: Tick) -> usize {
        self.short_since = self.short_since.min(now);
        self.held_up = self.held_up.max(standing.held_up);
        let Some(due) = &mut self.due else { return 0 };
        let mut waiting = usize::try_from(due.at(now).saturating_sub(standing.taken)).unwrap_or(usize::MAX);
        let at_once = if standing.reconnect { usize::MAX } else { CONNECTING_AT_ONCE };
        let at_once = if self.is_refused { at_once.min(1) } else { at_once };
        let is_silent = now.since(self.short_since.max(standing.heard)) >= SILENCE_NS;
        let most = if is_silent { 1 } else { usize::MAX };
        let room =
            self.limit.saturating_sub(standing.connections).min(at_once.saturating_sub(standing.connecting)).min(most);
        if !standing.reconnect {
            waiting = waiting.saturating_sub(standing.connecting);
        }
        let patience = PATIENCE_NS.max(self.held_up / CATCHING_UP);
        let probe = if is_silent { self.probed_at.saturating_add(PROBE_NS) } else { Tick::EPOCH };
        let from = self.held_until.max(self.short_since.saturating_add(patience)).max(probe);
        self.next_look = match () {
            // A connection that is made or lost makes room, and is looked at then.
            () if room == 0 => Tick::NEVER,
            () if now < from => from,
            () if self.is_behind => now + PATIENCE_NS,
            () => due.next().unwrap_or(Tick::NEVER),
        };
        if now < from || self.is_behind {
            return 0;
        }
        let added = waiting.min(room);
        if added > 0 {
            self.probed_at = now;
        }
        added
    }
}

/// The growth of connections that users share.
#[derive(Debug)]
pub(super) struct Eager {
    /// Connections being made; some may be open or gone by now.
    making: Vec<ConnectionId>,
    /// How many calls one connection takes, as far as that is known.
    streams: usize,
}

impl Eager {
    pub(super) fn new() -> Self {
        Self { making: Vec::new(), streams: usize::MAX }
    }

    /// A connection turned out to take so many calls at once.
    pub(super) fn fills_with(&mut self, streams: usize) {
        self.streams = streams;
    }

    /// The connection is being made.
    pub(super) fn dialled(&mut self, token: ConnectionId) {
        self.making.push(token);
    }

    /// Whether those being made, of the `taken` places to `origin`, are enough for `waiting` calls.
    pub(super) fn is_enough(
        &mut self,
        waiting: usize,
        taken: usize,
        origin: OriginId,
        connections: &Connections,
    ) -> bool {
        self.making.retain(|token| connections[*token].is_being_made() && connections[*token].origin() == origin);
        let making = self.making.len();
        let at_once = taken.saturating_sub(making).max(1);
        // Each connection being made has one call of its own already.
        making >= at_once || making.saturating_mul(self.streams.saturating_sub(1)) >= waiting
    }
}

#[cfg(test)]
mod tests {
    use brunt_plan::arrivals::Spread;
    use brunt_plan::share::Share;

    use super::*;

    const MS: u64 = 1_000_000;

    /// 1,000 calls a second from 0 on.
    fn growth(limit: usize) -> Growth {
        let mut growth = Growth::new(limit);
        growth.begin(
            Arrivals::new(Profile::constant(1000.0).unwrap(), Spread::Uniform, Share::WHOLE, 0, None),
            Tick::EPOCH,
        );
        growth
    }

    fn standing(connections: usize, connecting: usize, taken: u64) -> ConnectionCounts {
        ConnectionCounts { connections, connecting, taken, held_up: 0, heard: Tick::NEVER, reconnect: false }
    }

    #[test]
    fn a_silent_target_gets_a_connection_now_and_then() {
        let mut growth = growth(1000);
        let silent = |connections| ConnectionCounts { heard: Tick::EPOCH, ..standing(connections, 0, 0) };
        growth.missing(&silent(4), Tick::EPOCH);
        assert_eq!(growth.missing(&silent(4), Tick::from_ns(200 * MS)), CONNECTING_AT_ONCE, "200 ms are no silence");
        let added: usize = (250..1250).map(|ms| growth.missing(&silent(132), Tick::from_ns(ms * MS))).sum();
        assert_eq!(added, 10, "in a second");
        assert!(growth.missing(&standing(132, 0, 0), Tick::from_ns(1250 * MS)) > 1, "it speaks");
    }

    #[test]
    fn a_connection_is_added_for_each_waiting_call_that_has_none_coming() {
        let mut growth = growth(100);
        assert_eq!(growth.missing(&standing(4, 0, 0), Tick::EPOCH), 0, "a shortage may be over in a moment");
        assert_eq!(growth.next_look, Tick::from_ns(MS));
        // Calls 0 to 10 are due, 4 of them taken.
        assert_eq!(growth.missing(&standing(4, 0, 4), Tick::from_ns(10 * MS)), 7);
        assert_eq!(growth.missing(&standing(11, 7, 4), Tick::from_ns(10 * MS)), 0);
        assert_eq!(growth.next_look, Tick::from_ns(11 * MS), "when the next call is due");
        growth.has_free();
        assert_eq!(
            (growth.missing(&standing(11, 0, 4), Tick::from_ns(12 * MS)), growth.next_look),
            (0, Tick::from_ns(13 * MS))
        );
    }

    #[test]
    fn calls_that_were_held_up_are_given_time_to_be_answered() {
        let mut growth = growth(100);
        let late = || ConnectionCounts { held_up: 80 * MS, ..standing(4, 0, 4) };
        assert_eq!(growth.missing(&late(), Tick::from_ns(80 * MS)), 0);
        assert_eq!((growth.missing(&late(), Tick::from_ns(89 * MS)), growth.next_look), (0, Tick::from_ns(90 * MS)));
        assert_eq!(growth.missing(&standing(4, 0, 70), Tick::from_ns(89 * MS)), 0, "the last of them was held up less");
        assert!(growth.missing(&late(), Tick::from_ns(90 * MS)) > 0);
    }

    #[test]
    fn growth_is_bounded() {
        let mut growth = growth(1000);
        growth.missing(&standing(4, 0, 0), Tick::EPOCH);
        assert_eq!(growth.missing(&standing(900, 0, 0), Tick::from_ns(9 * SECOND_NS)), 100, "the limit");
        assert_eq!(growth.missing(&standing(10, 100, 0), Tick::from_ns(9 * SECOND_NS)), CONNECTING_AT_ONCE - 100);
        growth.answered(5, 10);
        assert_eq!(growth.missing(&standing(10, 0, 0), Tick::from_ns(9 * SECOND_NS)), 0, "answers wait for the worker");
        growth.answered(4, 10);
        assert_eq!(growth.missing(&standing(10, 0, 0), Tick::from_ns(9 * SECOND_NS)), CONNECTING_AT_ONCE);
        growth.refused(Tick::from_ns(9 * SECOND_NS));
        assert_eq!(growth.missing(&standing(10, 0, 0), Tick::from_ns(9 * SECOND_NS)), 0);
        assert_eq!(growth.next_look, Tick::from_ns(9 * SECOND_NS + PROBE_NS));
        assert_eq!(
            growth.missing(&standing(10, 0, 0), Tick::from_ns(10 * SECOND_NS)),
            1,
            "one to see whether it can be had"
        );
        growth.made();
        assert_eq!(growth.missing(&standing(10, 0, 0), Tick::from_ns(10 * SECOND_NS)), CONNECTING_AT_ONCE);
    }
}
