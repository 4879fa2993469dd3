//! The progress of a replay in its log.
//!
//! | log | what is known of its end |
//! | --- | --- |
//! | a file of lines | the time of its last line, or the end of the window if that comes before |
//! | a packed file, a table, targets | an estimate: what is read of the file's bytes, and when that is due |
//! | standard input | the end of the window, if there is one, at the most |
//! | any, once it is read | when its last request is due |

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use brunt_protocol::record::live::InLog;

use crate::format::{Format, Options, Parser};
use crate::input::{Packing, packing};
use crate::neighbours::are_near;
use crate::position::Position;

const SECOND_NS: i64 = 1_000_000_000;
/// The bytes of a log's end that are read to find its last time.
const TAIL_BYTES: u64 = 64 << 10;

/// The time of the last line of a log, in nanoseconds since 1970; `None` where its end does not tell. A line with a
/// time far from its neighbours' is ignored.
pub fn last_time(path: &Path, format: Format, options: &Options) -> Option<i64> {
    // A table has its columns at the beginning, and an archive is a single value.
    if path.as_os_str() == "-" || matches!(format, Format::Har | Format::Csv | Format::W3c | Format::Vegeta) {
        return None;
    }
    let mut file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()))?;
    let mut first = [0; 4];
    let filled = file.read(&mut first).ok()?;
    if packing(first.get(..filled)?) != Packing::None {
        return None;
    }
    let from = file.metadata().ok()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let mut parser = Parser::new(format, options.clone()).ok()?;
    let lines = tail.split(|byte| *byte == b'\n').skip(usize::from(from > 0));
    let mut times: Vec<_> = lines.filter_map(|line| Some(parser.line(line).ok()??.at?.ns)).collect();
    times.sort_unstable();
    let median = *times.get(times.len() / 2)?;
    times.into_iter().rev().find(|ns| are_near(*ns, median))
}

/// What the reading thread knows about the beginning and the end of the log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Course {
    /// The second in which the log begins, in nanoseconds since 1970, and the offset of its clock from UTC in seconds;
    /// `None` for a log without times.
    pub zero: Option<(i64, i32)>,
    /// The time up to which the log was read, in nanoseconds of the replay.
    pub read_ns: u64,
    /// When the last request is due, once the log is read.
    pub end_ns: Option<u64>,
    /// The length of one pass of a log that begins anew at its end.
    pub pass_ns: Option<u64>,
    /// The last time in the log, in nanoseconds since 1970.
    pub last: Option<i64>,
    /// The end of the window, in nanoseconds since 1970.
    pub window_end: Option<i64>,
}

impl Course {
    /// The progress of a replay at `speed` after `elapsed_ns` nanoseconds; `repeats` if the log begins anew at its end.
    pub fn at(&self, elapsed_ns: u64, speed: f64, repeats: bool, position: &Position) -> InLog {
        let end = if repeats { None } else { self.end(speed, position) };
        let until = end.map_or(elapsed_ns, |(end_ns, _)| elapsed_ns.min(end_ns));
        let within = self.pass_ns.filter(|ns| *ns > 0).map_or(until, |pass_ns| until % pass_ns);
        let clock = self.zero.map(|(zero, offset_s)| {
            zero.saturating_add((within as f64 * speed) as i64).div_euclid(SECOND_NS) + i64::from(offset_s)
        });
        InLog { clock_s: clock, end_ns: end.map(|(ns, _)| ns), is_estimate: end.is_some_and(|(_, is)| is) }
    }

    /// When the last request is due, and whether that is an estimate.
    fn end(&self, speed: f64, position: &Position) -> Option<(u64, bool)> {
        if let Some(end_ns) = self.end_ns {
            return Some((end_ns, false));
        }
        let due = |at: i64| self.zero.map(|(zero, _)| (at.saturating_sub(zero).max(0) as f64 / speed) as u64);
        let window_end = self.window_end.and_then(due);
        if let Some(last) = self.last.and_then(due) {
            return Some((window_end.map_or(last, |end| end.min(last)), false));
        }
        let share = position.share().filter(|_| self.read_ns > 0);
        let by_share = share.map(|share| (self.read_ns as f64 / share) as u64);
        by_share.into_iter().chain(window_end).min().map(|ns| (ns, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3600 * SECOND_NS as u64;

    #[test]
    fn the_end_is_that_of_the_file_or_the_window_or_an_estimate() {
        let zero = 10 * HOUR_NS as i64;
        let nothing = Course { zero: Some((zero, 3600)), ..Course::default() };
        let unknown = Position::at(None, 1000);
        let end = |course: Course, position: &Position| {
            let log = course.at(60_000_000_000, 2.0, false, position);
            (log.end_ns.map(|ns| ns / 60_000_000_000), log.is_estimate)
        };
        assert_eq!(end(nothing, &unknown), (None, false));
        let known = Course { last: Some(zero + HOUR_NS as i64), ..nothing };
        assert_eq!(end(known, &unknown), (Some(30), false));
        let half = Some(zero + HOUR_NS as i64 / 2);
        assert_eq!(end(Course { window_end: half, ..known }, &unknown), (Some(15), false));
        // For standard input only the window is known; the log may end before it.
        assert_eq!(end(Course { window_end: half, ..nothing }, &unknown), (Some(15), true));
        // A quarter of the bytes amounted to ten minutes.
        let read = Course { read_ns: HOUR_NS / 6, ..nothing };
        assert_eq!(end(read, &Position::at(Some(4000), 1000)), (Some(40), true));
        assert_eq!(
            end(Course { end_ns: Some(HOUR_NS / 4), ..read }, &Position::at(Some(4000), 4000)),
            (Some(15), false)
        );
    }

    #[test]
    fn the_clock_is_the_logs_own_and_begins_anew_with_it() {
        let course = Course { zero: Some((10 * HOUR_NS as i64, 3600)), pass_ns: Some(HOUR_NS), ..Course::default() };
        let clock = |elapsed_ns, repeats| course.at(elapsed_ns, 2.0, repeats, &Position::default()).clock_s.unwrap();
        assert_eq!(clock(HOUR_NS / 4, false), 11 * 3600 + 1800);
        assert_eq!(clock(HOUR_NS + HOUR_NS / 4, true), 11 * 3600 + 1800);
        let targets = Course::default();
        assert_eq!(targets.at(1, 1.0, false, &Position::default()).clock_s, None);
    }
}
