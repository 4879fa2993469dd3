//! Figures of users besides their calls: groups, checks, and users themselves.

use serde::{Deserialize, Serialize};

use super::FigureByName;
use crate::histogram::Censored;
use crate::redaction::Secrets;

/// The longest beginning of a body that is kept as an example, in bytes.
pub const LONGEST_EXAMPLE: usize = 200;
/// The longest traceback that is kept, in bytes.
pub const LONGEST_TRACEBACK: usize = 2000;
/// The most distinct errors that are kept for one scenario.
const MOST_ERRORS: usize = 16;

/// Figures of the groups with one name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupFigures {
    /// From beginning to end, with the user's pauses, in nanoseconds; lower bounds for groups that the run's end cut
    /// short.
    pub with_pauses: Censored,
    /// From beginning to end, without the user's pauses.
    pub without_pauses: Censored,
    /// Groups that ended by an error.
    pub failed: u64,
    /// Groups that the run's end cut short.
    pub unfinished: u64,
}

impl GroupFigures {
    /// A group ended after these times; `ok` unless an error ended it.
    pub fn ended(&mut self, with_pauses_ns: u64, without_pauses_ns: u64, ok: bool) {
        self.with_pauses.known.record(with_pauses_ns);
        self.without_pauses.known.record(without_pauses_ns);
        self.failed += u64::from(!ok);
    }

    /// The run's end cut a group short that had taken so long.
    pub fn unfinished(&mut self, with_pauses_ns: u64, without_pauses_ns: u64) {
        self.with_pauses.bounds.record(with_pauses_ns);
        self.without_pauses.bounds.record(without_pauses_ns);
        self.unfinished += 1;
    }

    /// Groups that began.
    pub fn count(&self) -> u64 {
        self.with_pauses.count()
    }
}

impl FigureByName for GroupFigures {
    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn merge(&mut self, other: &Self) {
        self.with_pauses.merge(&other.with_pauses);
        self.without_pauses.merge(&other.without_pauses);
        self.failed += other.failed;
        self.unfinished += other.unfinished;
    }
}

/// A call that failed a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Example {
    /// Its status; `null` if it was not an answer.
    pub status: Option<u16>,
    /// The beginning of its body, at most 200 bytes. Without an answer: the failure and its reason.
    pub body: String,
}

impl Example {
    /// An answer with this status and this beginning of its body; `goes_on` if the body is longer. At most
    /// [`LONGEST_EXAMPLE`] bytes are kept.
    pub fn new(status: Option<u16>, beginning: &[u8], goes_on: bool) -> Self {
        let start = beginning.get(..LONGEST_EXAMPLE).unwrap_or(beginning);
        let mut text = String::from_utf8_lossy(start).into_owned();
        // A character that the cut went through is no sign of a broken body.
        if goes_on || beginning.len() > LONGEST_EXAMPLE {
            while text.ends_with('\u{fffd}') {
                text.pop();
            }
            text.push('…');
        }
        Self { status, body: text }
    }
}

/// Figures of one check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFigures {
    /// The name of the calls that it is about, if it is about calls.
    pub call: Option<String>,
    /// Its own name.
    pub check: String,
    /// How often it held.
    pub passes: u64,
    /// How often it did not hold.
    pub fails: u64,
    /// An answer for which it did not hold.
    pub example: Option<Example>,
    /// Failures among these that were not a check: the script failed calls for this reason.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasons: u64,
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl CheckFigures {
    /// The check held.
    #[inline]
    pub fn passed(&mut self, call: Option<&str>, check: &str) {
        self.name(call, check);
        self.passes += 1;
    }

    /// The check did not hold; the first failure asks for its `example`.
    pub fn failed(&mut self, call: Option<&str>, check: &str, example: impl FnOnce() -> Example) {
        self.name(call, check);
        self.fails += 1;
        self.example.get_or_insert_with(example);
    }

    /// The script failed a call for this reason.
    pub fn gave_reason(&mut self, call: Option<&str>, reason: &str, example: impl FnOnce() -> Example) {
        self.failed(call, reason, example);
        self.reasons += 1;
    }

    /// How often it was checked and did not hold. Calls that the script failed for a reason of its own are not counted:
    /// nobody knows how many could have failed so, and they count in the error rate only.
    pub fn failed_checks(&self) -> u64 {
        self.fails.saturating_sub(self.reasons)
    }

    fn name(&mut self, call: Option<&str>, check: &str) {
        if self.passes + self.fails == 0 {
            self.call = call.map(str::to_owned);
            check.clone_into(&mut self.check);
        }
    }
}

impl FigureByName for CheckFigures {
    fn is_empty(&self) -> bool {
        self.passes + self.fails == 0
    }

    fn merge(&mut self, other: &Self) {
        if self.is_empty() {
            self.call.clone_from(&other.call);
            self.check.clone_from(&other.check);
        }
        self.passes += other.passes;
        self.fails += other.fails;
        self.reasons += other.reasons;
        if self.example.is_none() {
            self.example.clone_from(&other.example);
        }
    }

    fn hide(&mut self, secrets: &Secrets) {
        self.call.iter_mut().for_each(|call| secrets.hide_in(call));
        secrets.hide_in(&mut self.check);
        self.example.iter_mut().for_each(|example| secrets.hide_in(&mut example.body));
    }
}

/// Figures of one scenario: of its users and their iterations.
///
/// Users alive at the end are `users_before + users_started - users_ended`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioFigures {
    /// Users that the warm-up left alive.
    pub users_before: i64,
    /// Users that were started.
    pub users_started: u64,
    /// Users that ended: by themselves, with the run, or with an agent that was lost.
    pub users_ended: u64,
    /// Users that arrived and found no place.
    pub not_admitted: u64,
    /// Users that ended because all rows of a queue were given out.
    pub out_of_rows: u64,
    /// Finished iterations with their durations, in nanoseconds; lower bounds for those that the run's end cut short.
    pub iterations: Censored,
    /// Iterations among them in which a call was not ok.
    pub not_ok: u64,
    /// Iterations that an error ended.
    pub errors: u64,
    /// The messages of these errors, with their tracebacks and counts; of very many only some are kept.
    pub tracebacks: Vec<(String, u64)>,
}

impl ScenarioFigures {
    /// An iteration finished after this long.
    #[inline]
    pub fn iteration(&mut self, took_ns: u64) {
        self.iterations.known.record(took_ns);
    }

    /// The run's end, or the user's, cut an iteration short that had taken so long.
    pub fn unfinished_iteration(&mut self, took_ns: u64) {
        self.iterations.bounds.record(took_ns);
    }

    /// An error ended an iteration; `traceback` is its message and its place.
    pub fn script_error(&mut self, traceback: &str) {
        self.errors += 1;
        self.stop_error(traceback);
    }

    /// An error ended a user's last function, which is no iteration: it is shown, and not counted among them.
    pub fn stop_error(&mut self, traceback: &str) {
        if traceback.len() <= LONGEST_TRACEBACK {
            self.add_traceback(traceback, 1);
        } else {
            let end = (0..=LONGEST_TRACEBACK - '…'.len_utf8()).rev().find(|&at| traceback.is_char_boundary(at));
            self.add_traceback(&format!("{}…", traceback.get(..end.unwrap_or(0)).unwrap_or("")), 1);
        }
    }

    fn add_traceback(&mut self, traceback: &str, n: u64) {
        let full = self.tracebacks.len() >= MOST_ERRORS;
        match self.tracebacks.iter_mut().find(|(known, _)| known == traceback) {
            Some((_, count)) => *count += n,
            None if !full => self.tracebacks.push((traceback.to_owned(), n)),
            None => {}
        }
    }

    /// Iterations that began: they finished, were cut short, or were ended by an error.
    pub fn iterations_begun(&self) -> u64 {
        self.iterations.count() + self.errors
    }

    /// Users who were started and have not ended.
    pub fn users_gained(&self) -> i64 {
        self.users_started as i64 - self.users_ended as i64
    }
}

impl FigureByName for ScenarioFigures {
    fn is_empty(&self) -> bool {
        self.users_before == 0
            && self.users_started + self.users_ended + self.not_admitted + self.out_of_rows + self.errors == 0
            && self.iterations.count() == 0
    }

    fn merge(&mut self, other: &Self) {
        self.users_before += other.users_before;
        self.users_started += other.users_started;
        self.users_ended += other.users_ended;
        self.not_admitted += other.not_admitted;
        self.out_of_rows += other.out_of_rows;
        self.iterations.merge(&other.iterations);
        self.not_ok += other.not_ok;
        self.errors += other.errors;
        for (traceback, n) in &other.tracebacks {
            self.add_traceback(traceback, *n);
        }
    }

    fn hide(&mut self, secrets: &Secrets) {
        for (traceback, n) in std::mem::take(&mut self.tracebacks) {
            self.add_traceback(&secrets.hide(&traceback), n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_short_and_whole() {
        let example = Example::new(Some(500), "ü".repeat(300).as_bytes(), false);
        assert!(example.body.len() <= LONGEST_EXAMPLE + '…'.len_utf8());
        assert!(example.body.ends_with("ü…"), "{}", example.body);
        assert_eq!(Example::new(None, b"\xff", false).body, "\u{fffd}");
        assert_eq!(Example::new(None, b"a", true).body, "a…");
    }

    #[test]
    fn the_first_example_is_kept() {
        let mut check = CheckFigures::default();
        check.passed(Some("home"), "200");
        check.failed(Some("home"), "200", || Example::new(Some(500), b"first", false));
        check.failed(Some("home"), "200", || unreachable!("there is one already"));
        let mut merged = CheckFigures::default();
        merged.merge(&check);
        merged.merge(&check);
        assert_eq!((merged.passes, merged.fails, merged.check.as_str()), (2, 4, "200"));
        assert_eq!(merged.example.unwrap().body, "first");
    }

    #[test]
    fn errors_are_bounded_and_counts_are_not() {
        let mut scenario = ScenarioFigures::default();
        for i in 0..100 {
            scenario.script_error(&format!("{i} {}", "ü".repeat(2000)));
        }
        assert_eq!((scenario.errors, scenario.tracebacks.len()), (100, MOST_ERRORS));
        assert!(scenario.tracebacks.iter().all(|(text, _)| text.len() <= LONGEST_TRACEBACK));
    }
}
