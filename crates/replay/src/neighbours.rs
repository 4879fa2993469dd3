//! Lines whose times are far from those of their neighbours, such as one of another year. Pure.
//!
//! A time more than [`JUMP_NS`] from the one before waits for the next line. If the next line agrees with it, the log
//! has a gap; if not, the line is skipped ([`Skip::Jump`]).
//!
//! Every line with a time passes here before any is left out. So a window is of the log's day and not of a stray
//! line's, and a filter that leaves few lines does not make strays of them.

use std::collections::VecDeque;

use crate::entry::{Entry, Skip, Skips};

/// The distance between the times of neighbouring lines, in nanoseconds, beyond which the next line decides: an hour.
pub const JUMP_NS: i64 = 3_600_000_000_000;
/// The most lines at a log's beginning that wait because none agrees with another.
const MOST_DOUBTFUL: usize = 8;

/// Whether two times are near each other.
pub fn are_near(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= JUMP_NS.unsigned_abs()
}

/// Skips stray lines; see the module's documentation.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// The latest time since the last gap of a line that others agree with.
    latest: Option<i64>,
    /// Lines far from the others; at the log's beginning there may be several that do not agree.
    doubtful: VecDeque<(i64, Entry)>,
    out: VecDeque<Entry>,
}

impl Neighbours {
    /// Takes the next line of the log. A line without a time is skipped.
    pub fn push(&mut self, entry: Entry, skips: &mut Skips) {
        let Some(at) = entry.at else { return skips.add(Skip::NoTime) };
        // The next line agrees with a doubtful line, or continues the lines before that.
        if self.doubtful.iter().any(|(ns, _)| are_near(at.ns, *ns)) {
            for (ns, doubtful) in std::mem::take(&mut self.doubtful) {
                if are_near(at.ns, ns) {
                    self.latest = Some(ns);
                    self.out.push_back(doubtful);
                } else {
                    skips.add(Skip::Jump);
                }
            }
        } else if self.latest.is_some() || self.doubtful.len() >= MOST_DOUBTFUL {
            self.doubtful.drain(..).for_each(|_| skips.add(Skip::Jump));
        }
        if self.latest.is_some_and(|latest| are_near(at.ns, latest)) {
            self.latest = self.latest.max(Some(at.ns));
            self.out.push_back(entry);
        } else {
            self.doubtful.push_back((at.ns, entry));
        }
    }

    /// The next line that is not stray, in the order of the log.
    pub fn pop(&mut self) -> Option<Entry> {
        self.out.pop_front()
    }

    /// Ends the log: doubtful lines are skipped, except for the only line of a log.
    pub fn finish(&mut self, skips: &mut Skips) {
        if self.latest.is_none() {
            self.out.extend(self.doubtful.pop_front().map(|(_, alone)| alone));
        }
        self.doubtful.drain(..).for_each(|_| skips.add(Skip::Jump));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Stamp;

    const HOUR_NS: i64 = JUMP_NS;
    const YEAR_NS: i64 = 365 * 24 * HOUR_NS;
    /// 2026-01-01 00:00:00 UTC.
    const BEGIN: i64 = 1_767_225_600_000_000_000;

    /// The lines that are left, and the number of skipped ones.
    fn left(lines: &[(i64, &str)]) -> (String, u64) {
        let (mut neighbours, mut skips, mut out) = (Neighbours::default(), Skips::default(), String::new());
        for (ns, url) in lines {
            let at = Stamp { ns: BEGIN + ns, is_whole: false, offset_s: 0 };
            neighbours.push(Entry { at: Some(at), url: (*url).to_owned(), ..Entry::default() }, &mut skips);
            out.extend(std::iter::from_fn(|| neighbours.pop()).map(|entry| entry.url));
        }
        neighbours.finish(&mut skips);
        out.extend(std::iter::from_fn(|| neighbours.pop()).map(|entry| entry.url));
        assert_eq!(skips.total(), skips.count(Skip::Jump));
        assert_eq!(out.len() as u64 + skips.total(), lines.len() as u64);
        (out, skips.total())
    }

    #[test]
    fn a_line_of_another_year_is_skipped_and_a_gap_is_not() {
        assert_eq!(left(&[(1, "a"), (YEAR_NS, "x"), (2, "b"), (3, "c")]), ("abc".to_owned(), 1));
        assert_eq!(left(&[(1, "a"), (2, "a"), (YEAR_NS, "b"), (YEAR_NS + 1, "c")]), ("aabc".to_owned(), 0));
        // The first line may be the stray one, and so may the last.
        assert_eq!(left(&[(YEAR_NS, "x"), (1, "a"), (2, "b"), (YEAR_NS, "y")]), ("ab".to_owned(), 2));
        assert_eq!(left(&[(1, "a")]), ("a".to_owned(), 0));
        assert_eq!(left(&[]), (String::new(), 0));
    }

    #[test]
    fn lines_that_never_agree_wait_within_bounds() {
        let lines: Vec<_> = (0..50).map(|nth| (nth * YEAR_NS / 100, "x")).collect();
        let (out, skipped) = left(&lines);
        assert_eq!((out.len(), skipped), (1, 49));
    }
}
