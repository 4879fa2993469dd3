//! What a worker records, for one interval and merged over everything.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::figures::Figures;
use crate::histogram::{Censored, Histogram};
use crate::instrument::{Bracket, Instrument};
use crate::messages::Messages;
use crate::outcome::{Failure, OkStatus};

/// The most distinct reasons kept for failures; what comes after counts under its failure's name alone.
const MOST_REASONS: usize = 64;

/// The part of a run that an interval belongs to, in the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the measured part: shown live, in no figure of the result.
    Warmup,
    /// The measured part.
    Measured,
    /// After it: calls that were in flight end. They count in latency and outcomes, not in any rate.
    Drain,
}

/// Answers by status, which is 0 where the protocol has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statuses(Vec<(u16, u64)>);

impl Statuses {
    /// Counts one answer.
    #[inline]
    pub fn record(&mut self, status: u16) {
        self.add(status, 1);
    }

    #[inline]
    fn add(&mut self, status: u16, n: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += n,
            None => self.0.push((status, n)),
        }
    }

    /// Answers that were counted elsewhere, by status.
    pub fn of(counted: impl IntoIterator<Item = (u16, u64)>) -> Self {
        let mut statuses = Self::default();
        counted.into_iter().for_each(|(status, n)| statuses.add(status, n));
        statuses
    }

    /// Status and count, in the order of the statuses.
    pub fn sorted(&self) -> Vec<(u16, u64)> {
        let mut all = self.0.clone();
        all.sort_unstable();
        all
    }

    /// All answers.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, n)| n).sum()
    }

    /// Answers whose status is a success.
    pub fn ok(&self, ok: &OkStatus) -> u64 {
        self.0.iter().filter(|(status, _)| ok.holds(*status)).map(|(_, n)| n).sum()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for &(status, n) in &other.0 {
            self.add(status, n);
        }
    }
}

/// The most names of events that are told apart.
const MOST_EVENTS: usize = 64;

/// What protocols count besides calls, by its name: `GOAWAY`, `RST_STREAM CANCEL`, `header bytes saved`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Events(std::collections::BTreeMap<String, u64>);

impl Events {
    /// Counts so many; of very many names, those that come last are left out.
    pub fn add(&mut self, name: &str, count: u64) {
        if let Some(known) = self.0.get_mut(name) {
            *known = known.saturating_add(count);
        } else if self.0.len() < MOST_EVENTS {
            self.0.insert(name.to_owned(), count);
        }
    }

    /// Names and counts, by the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// How many of this name there were.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn merge(&mut self, other: &Self) {
        for (name, count) in other.iter() {
            self.add(name, count);
        }
    }
}

/// How long connections were held back by what their peers allow, summed over connections, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBack {
    /// A connection had as many calls in flight as its peer takes streams, which is fewer than the plan asks for.
    pub stream_limit_ns: u64,
    /// Bodies waited, and the peer's flow control let none of them go on.
    pub flow_control_ns: u64,
}

impl HeldBack {
    /// Whether nothing was.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn merge(&mut self, other: &Self) {
        self.stream_limit_ns += other.stream_limit_ns;
        self.flow_control_ns += other.flow_control_ns;
    }
}

/// Failures by name, and the reasons that were given for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    counts: [u64; Failure::ALL.len()],
    reasons: Vec<(Failure, String, u64)>,
}

impl Failures {
    /// Counts one failure with its reason.
    pub fn record(&mut self, failure: Failure, reason: &str) {
        self.add_reason(failure, reason, 1);
        self.add(failure, 1);
    }

    /// Counts one failure whose reason is kept elsewhere.
    pub fn count_one(&mut self, failure: Failure) {
        self.add(failure, 1);
    }

    /// Counts failures that were counted elsewhere.
    pub fn count_many(&mut self, failure: Failure, n: u64) {
        self.add(failure, n);
    }

    fn add(&mut self, failure: Failure, n: u64) {
        if let Some(count) = self.counts.get_mut(failure as usize) {
            *count += n;
        }
    }

    /// Adds a reason for failures that are counted already; of very many distinct ones only some are kept.
    pub fn add_reason(&mut self, failure: Failure, reason: &str, n: u64) {
        let full = self.reasons.len() >= MOST_REASONS;
        match self.reasons.iter_mut().find(|(known, text, _)| *known == failure && text == reason) {
            Some((_, _, count)) => *count += n,
            None if !full => self.reasons.push((failure, reason.to_owned(), n)),
            None => {}
        }
    }

    /// How often `failure` happened.
    pub fn count(&self, failure: Failure) -> u64 {
        self.counts.get(failure as usize).copied().unwrap_or(0)
    }

    /// All failures.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each failure that happened, with its count.
    pub fn counted(&self) -> impl Iterator<Item = (Failure, u64)> + '_ {
        Failure::ALL.into_iter().map(|failure| (failure, self.count(failure))).filter(|(_, n)| *n > 0)
    }

    /// The reasons given for `failure`, most frequent first.
    pub fn reasons(&self, failure: Failure) -> Vec<(&str, u64)> {
        let mut reasons: Vec<_> =
            self.reasons.iter().filter(|(of, ..)| *of == failure).map(|(_, text, n)| (text.as_str(), *n)).collect();
        reasons.sort_by_key(|&(text, n)| (std::cmp::Reverse(n), text));
        reasons
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, n) in self.counts.iter_mut().zip(other.counts) {
            *count += n;
        }
        for (failure, reason, n) in &other.reasons {
            self.add_reason(*failure, reason, *n);
        }
    }
}

/// The shortest interval that tells how a worker fares, in nanoseconds: many turns of the scheduler.
pub(crate) const SHORTEST_JUDGED_NS: u64 = 100_000_000;

/// The share of its time that a worker has run or waited to run when it has none left.
const SATURATED: f64 = 0.95;

/// How the generator itself fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Time the workers lived, summed over them, in nanoseconds.
    pub wall_ns: u64,
    /// CPU time they used, in nanoseconds.
    pub cpu_ns: u64,
    /// Time they were ready to run and had no CPU, in nanoseconds.
    pub starved_ns: u64,
    /// About how much of it was spent in the hooks of a script, in nanoseconds.
    #[serde(default)]
    pub script_ns: u64,
    /// CPU time over wall time of the busiest worker in any interval, 0 to 1.
    pub busiest_worker: f64,
    /// The largest share of an interval that a worker was ready to run and had no CPU, 0 to 1.
    pub most_starved_worker: f64,
    /// Time, summed over the workers, in intervals in which a worker had next to none left: it ran, or waited to run,
    /// for 95 % of it or more. In nanoseconds.
    #[serde(default)]
    pub saturated_ns: u64,
}

impl Health {
    /// One worker's interval. Shares of a very short one say nothing, and are 0.
    pub fn of_interval(wall_ns: u64, cpu_ns: u64, starved_ns: u64) -> Self {
        let judged = wall_ns >= SHORTEST_JUDGED_NS;
        let share = |part: u64| if judged { (part as f64 / wall_ns as f64).min(1.0) } else { 0.0 };
        // Used and waited together: what a busy machine withholds, the worker has not got either.
        let is_saturated = share(cpu_ns.saturating_add(starved_ns)) >= SATURATED;
        Self {
            wall_ns,
            cpu_ns,
            starved_ns,
            script_ns: 0,
            busiest_worker: share(cpu_ns),
            most_starved_worker: share(starved_ns),
            saturated_ns: if is_saturated { wall_ns } else { 0 },
        }
    }

    /// The share of the workers' CPU time that was spent in the hooks of a script, 0 to 1.
    pub fn script_share(&self) -> f64 {
        if self.cpu_ns > 0 { (self.script_ns as f64 / self.cpu_ns as f64).min(1.0) } else { 0.0 }
    }

    fn merge(&mut self, other: &Self) {
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
        self.starved_ns += other.starved_ns;
        self.script_ns += other.script_ns;
        self.busiest_worker = self.busiest_worker.max(other.busiest_worker);
        self.most_starved_worker = self.most_starved_worker.max(other.most_starved_worker);
        self.saturated_ns += other.saturated_ns;
    }
}

/// Bytes that went over connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Received, at the socket.
    pub wire_in: u64,
    /// Sent, at the socket.
    pub wire_out: u64,
    /// Received, after decryption; the same as on the wire without TLS.
    pub clear_in: u64,
    /// Sent, before encryption.
    pub clear_out: u64,
}

impl Bytes {
    fn merge(&mut self, other: &Self) {
        self.wire_in += other.wire_in;
        self.wire_out += other.wire_out;
        self.clear_in += other.clear_in;
        self.clear_out += other.clear_out;
    }
}

/// Connections made and lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Made, with TLS where it is used.
    pub made: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Calls that were sent again on a fresh connection, because the server had closed the idle one.
    pub reconnects: u64,
    /// Connections that resumed a TLS session.
    pub tls_resumed: u64,
}

impl Connections {
    fn merge(&mut self, other: &Self) {
        self.made += other.made;
        self.failed += other.failed;
        self.reconnects += other.reconnects;
        self.tls_resumed += other.tls_resumed;
    }
}

/// Figures of calls over some time: of one worker's interval, or merged over workers, intervals and machines.
///
/// Every call that was due ends in exactly one outcome, so that once a run is over
/// `due = statuses + failures + unfinished + unsent`; see [`Snapshot::ended`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Calls that were due. In the closed model a call is due when its connection is free for it.
    pub due: u64,
    /// Answers by status.
    pub statuses: Statuses,
    /// Those among them that failed a check, by status.
    #[serde(default)]
    pub failed_check: Statuses,
    /// Failures by name.
    pub failures: Failures,
    /// Calls in flight when the drain ended.
    pub unfinished: u64,
    /// Calls that were due and never sent.
    pub unsent: u64,
    /// Those among them that fell to an agent that was lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent_lost: u64,
    /// From when a call was due to its end as this program read it, the generator's own delays included. What is shown
    /// is [`Snapshot::response_times`].
    pub response: Censored,
    /// From when a call was sent to its end as this program read it. What is shown is [`Snapshot::service_times`].
    pub service: Censored,
    /// The generator's own delays, and times without them.
    #[serde(default, skip_serializing_if = "Instrument::is_empty")]
    pub instrument: Instrument,
    /// The response times, among all those, of calls that failed.
    pub failed: Histogram,
    /// The response times, among all those, of answers whose status is not ok.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub refused: Histogram,
    /// From when a call was sent to the first byte of its answer.
    pub first_byte: Histogram,
    /// Making a connection, without TLS.
    pub connect: Histogram,
    /// TLS handshakes.
    pub tls: Histogram,
    /// The protocol's own opening exchanges.
    #[serde(default)]
    pub handshake: Histogram,
    /// Generator lag: from when a call was due and had a connection ready, to when it was sent. Open model only.
    pub lag: Histogram,
    /// Calls that were due while every connection was busy or not ready. Open model only.
    pub waited_for_connection: u64,
    /// Messages that came without a call that asked for them.
    #[serde(default)]
    pub unasked: u64,
    /// Messages of calls whose answers come as streams of them.
    #[serde(default, skip_serializing_if = "Messages::is_empty")]
    pub messages: Messages,
    /// What protocols count besides.
    #[serde(default)]
    pub events: Events,
    /// How long connections were held back.
    #[serde(default, skip_serializing_if = "HeldBack::is_nothing")]
    pub held_back: HeldBack,
    /// Bytes over all connections.
    pub bytes: Bytes,
    /// Connections made and lost.
    pub connections: Connections,
    /// What went wrong with connections and cost no call: an address that refused while another answered, bytes that
    /// nobody asked for. Not outcomes.
    #[serde(default)]
    pub troubles: Failures,
    /// How the generator fared.
    pub health: Health,
    /// What scenarios are counted by; empty without scenarios.
    #[serde(default)]
    pub figures: Figures,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Snapshot {
    /// Calls that ended, in whichever way.
    pub fn ended(&self) -> u64 {
        self.statuses.total() + self.failures.total() + self.unfinished + self.unsent
    }

    /// Calls that are not a success: failures, unfinished and unsent ones, and answers whose status is not ok or that
    /// failed a check.
    pub fn not_ok(&self, ok: &OkStatus) -> u64 {
        self.ended() - self.statuses.ok(ok) + self.failed_check.ok(ok)
    }

    /// Response times: the target's part where it is known, else as read. Calls that never ended count with their lower
    /// bounds.
    pub fn response_times(&self) -> Cow<'_, Censored> {
        let parts = &self.instrument.response;
        if parts.cover(&self.response) {
            Cow::Owned(Censored { known: parts.value.clone(), bounds: self.response.bounds.clone() })
        } else {
            Cow::Borrowed(&self.response)
        }
    }

    /// Service times, likewise.
    pub fn service_times(&self) -> Cow<'_, Censored> {
        let parts = &self.instrument.service;
        if parts.cover(&self.service) {
            Cow::Owned(Censored { known: parts.value.clone(), bounds: self.service.bounds.clone() })
        } else {
            Cow::Borrowed(&self.service)
        }
    }

    /// From sent to the first byte: the target's part where it is known, else as read.
    pub fn first_byte_times(&self) -> &Histogram {
        let known = &self.instrument.first_byte;
        if !known.is_empty() && known.count() >= self.first_byte.count() / 2 { known } else { &self.first_byte }
    }

    /// Response times with how wrong the generator can have made them.
    pub fn response_bracket(&self) -> Bracket {
        Bracket::of(&self.response, &self.instrument.response)
    }

    /// Service times, likewise.
    pub fn service_bracket(&self) -> Bracket {
        Bracket::of(&self.service, &self.instrument.service)
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        self.merge_totals(other);
        self.figures.merge(&other.figures);
    }

    /// Adds everything that `other` recorded but for what is told apart by name.
    pub(crate) fn merge_totals(&mut self, other: &Self) {
        self.due += other.due;
        self.statuses.merge(&other.statuses);
        self.failed_check.merge(&other.failed_check);
        self.failures.merge(&other.failures);
        self.unfinished += other.unfinished;
        self.unsent += other.unsent;
        self.unsent_lost += other.unsent_lost;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.instrument.merge(&other.instrument);
        self.failed.merge(&other.failed);
        self.refused.merge(&other.refused);
        self.first_byte.merge(&other.first_byte);
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.handshake.merge(&other.handshake);
        self.lag.merge(&other.lag);
        self.waited_for_connection += other.waited_for_connection;
        self.unasked += other.unasked;
        self.messages.merge(&other.messages);
        self.events.merge(&other.events);
        self.held_back.merge(&other.held_back);
        self.bytes.merge(&other.bytes);
        self.connections.merge(&other.connections);
        self.troubles.merge(&other.troubles);
        self.health.merge(&other.health);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_up() {
        let mut a = Snapshot { due: 3, unsent: 1, ..Snapshot::default() };
        a.statuses.record(200);
        a.failures.record(Failure::Protocol, "bad chunk size");
        let mut b = Snapshot { due: 1, ..Snapshot::default() };
        b.failures.record(Failure::Protocol, "bad chunk size");
        b.health = Health::of_interval(1_000_000_000, 400_000_000, 10);
        a.merge(&b);
        assert_eq!((a.due, a.ended()), (4, 4));
        assert_eq!(a.not_ok(&OkStatus::default()), 3);
        assert_eq!(a.failures.reasons(Failure::Protocol), [("bad chunk size", 2)]);
        assert!((a.health.busiest_worker - 0.4).abs() < 1e-9);
    }

    #[test]
    fn reasons_are_bounded_and_counts_are_not() {
        let mut failures = Failures::default();
        for i in 0..1000 {
            failures.record(Failure::Protocol, &format!("garbage {i}"));
        }
        assert_eq!(failures.reasons(Failure::Protocol).len(), MOST_REASONS);
        assert_eq!(failures.count(Failure::Protocol), 1000);
    }
}
