//! Bounded counts of statuses, of failures with their reasons, and of events.

use serde::{Deserialize, Serialize};

use crate::outcome::{Failure, OkStatus};
use crate::redaction::Secrets;

/// The most distinct reasons of failures; further ones count under the name of their failure only.
const MOST_REASONS: usize = 64;

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
    pub fn from_counts(counted: impl IntoIterator<Item = (u16, u64)>) -> Self {
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

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers with this status.
    pub fn count(&self, status: u16) -> u64 {
        self.0.iter().find(|(known, _)| *known == status).map_or(0, |(_, n)| *n)
    }

    /// Successful answers: by their status, corrected by later judgements. `failed` are those that a check failed,
    /// `excused` those that count as ok against their status, or against a failed check.
    pub(crate) fn amended_ok(&self, ok: &OkStatus, failed: &Self, excused: &Self) -> u64 {
        // An answer that has no success by its status, and also failed a check, counts only if it was excused before.
        let failed_after = |&(status, n): &(u16, u64)| if ok.holds(status) { 0 } else { n.min(failed.count(status)) };
        let failed_after: u64 = excused.0.iter().map(failed_after).sum();
        (self.ok(ok) + excused.total()).saturating_sub(failed.ok(ok) + failed_after)
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for &(status, n) in &other.0 {
            self.add(status, n);
        }
    }
}

/// The most names of events that are told apart.
const MOST_EVENTS: usize = 64;

/// Events that protocols count besides calls, by name: `GOAWAY`, `RST_STREAM CANCEL`, `header bytes saved`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Events(std::collections::BTreeMap<String, u64>);

impl Events {
    /// Adds `count` to an event. If there are very many names, the last are left out.
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

    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, count) in other.iter() {
            self.add(name, count);
        }
    }

    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        for (name, count) in std::mem::take(&mut self.0) {
            self.add(&secrets.hide(&name), count);
        }
    }
}

/// Failures by name, with their reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    counts: [u64; Failure::ALL.len()],
    reasons: Vec<(Failure, String, u64)>,
    /// Those among them that followed from what had happened to another call.
    #[serde(default, skip_serializing_if = "is_none")]
    followed: [u64; Failure::ALL.len()],
}

fn is_none(counts: &[u64; Failure::ALL.len()]) -> bool {
    counts.iter().all(|count| *count == 0)
}

impl Failures {
    /// Counts one failure with its reason.
    pub fn record(&mut self, failure: Failure, reason: &str) {
        self.add_reason(failure, reason, 1);
        self.add(failure, 1);
    }

    /// Marks one of the failures that are counted: what happened to another call has ended its connection.
    pub fn follows(&mut self, failure: Failure) {
        if let Some(count) = self.followed.get_mut(failure as usize) {
            *count += 1;
        }
    }

    /// How often `failure` happened by itself, and not since something had happened to another call.
    pub fn own(&self, failure: Failure) -> u64 {
        self.count(failure).saturating_sub(self.followed.get(failure as usize).copied().unwrap_or(0))
    }

    /// The failure that says most of why calls failed, with its count.
    pub fn worst(&self) -> Option<(Failure, u64)> {
        self.counted().max_by_key(|(failure, n)| (self.own(*failure), *n))
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

    /// Those of calls that got another answer than they asked for.
    pub fn other_answers(&self) -> u64 {
        self.counted().filter(|(failure, _)| failure.is_another_answer()).map(|(_, n)| n).sum()
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
        for (count, n) in self.counts.iter_mut().zip(other.counts).chain(self.followed.iter_mut().zip(other.followed)) {
            *count += n;
        }
        for (failure, reason, n) in &other.reasons {
            self.add_reason(*failure, reason, *n);
        }
    }

    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        for (failure, reason, n) in std::mem::take(&mut self.reasons) {
            self.add_reason(failure, &secrets.hide(&reason), n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
