//! Observation of a log: the progress of reading, and the results of its calls.

use std::sync::{Arc, Mutex, PoisonError};

use brunt_protocol::record::live::InLog;
use brunt_protocol::record::replayed::{LogRead, Marks, Replayed};

use crate::against::Against;
use crate::entry::Skips;
use crate::position::Position;
use crate::progress::Course;

/// Counts of the lines read so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) lines: u64,
    pub(crate) skips: Skips,
    pub(crate) without_body: u64,
    /// Header fields that the log has redacted.
    pub(crate) redacted: u64,
    pub(crate) unread_durations: u64,
    pub(crate) first_ns: Option<i64>,
    pub(crate) last_ns: Option<i64>,
    pub(crate) course: Course,
    /// Marks by which machines compare what they have read; used only if several read the log.
    pub(crate) marks: Marks,
}

/// Observes the reading of a log and the results of its calls.
#[derive(Clone)]
pub struct Watch {
    pub(crate) tally: Arc<Mutex<Tally>>,
    /// The due time of each session's first call, in nanoseconds of the replay, in this order.
    pub(crate) sessions: Arc<Mutex<Vec<u64>>>,
    pub(crate) against: Arc<Mutex<Against>>,
    pub(crate) position: Position,
    pub(crate) speed: f64,
    pub(crate) repeats: bool,
}

impl Watch {
    /// The progress of a replay that has gone on for `elapsed_ns` nanoseconds.
    pub fn in_log(&self, elapsed_ns: u64) -> InLog {
        let course = self.tally.lock().unwrap_or_else(PoisonError::into_inner).course;
        course.at(elapsed_ns, self.speed, self.repeats, &self.position)
    }

    /// What this machine has read, and the results of its part. Called when the workers are done.
    pub fn read(&self) -> LogRead {
        let marks = self.tally.lock().unwrap_or_else(PoisonError::into_inner).marks.clone();
        LogRead { marks, compared: self.against.lock().unwrap_or_else(PoisonError::into_inner).compared() }
    }

    /// The results of a measured part of `measured_ns` nanoseconds, beside the log's. Called when the workers are done.
    pub fn replayed(&self, measured_ns: u64) -> Replayed {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        // Other sessions were read ahead, and no request of theirs was due.
        let sessions = sessions.partition_point(|due_ns| *due_ns < measured_ns) as u64;
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, templates) = self.against.lock().unwrap_or_else(PoisonError::into_inner).total_and_templates();
        Replayed {
            lines: tally.lines,
            requests: all.calls,
            skipped: tally.skips.found().map(|(skip, count)| (skip.name().to_owned(), count)).collect(),
            without_body: tally.without_body,
            redacted: tally.redacted,
            unread_durations: tally.unread_durations,
            sessions,
            first_unix_ms: tally.first_ns.map(|ns| ns.div_euclid(1_000_000)),
            last_unix_ms: tally.last_ns.map(|ns| ns.div_euclid(1_000_000)),
            all,
            templates,
            conditions: Vec::new(),
        }
    }
}
