//! The file of `--log`: scripts' log lines, and complete exchanges of failed calls.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use brunt_engine::trace::{Level, Sight, Trace, Traced};
use brunt_plan::plan::Plan;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::trace::Printer;

/// Limit on logged exchanges, in bytes: a run in which everything fails must not fill a disk.
const MOST_OF_EXCHANGES: u64 = 64 * 1024 * 1024;
/// Limit on logged lines of scripts, in bytes.
const MOST_OF_LINES: u64 = 1024 * 1024 * 1024;

/// Logs failed calls and scripts' lines.
pub struct Journal {
    printer: Printer,
    least: Level,
    shows_failures: bool,
    written: Mutex<Written>,
}

struct Written {
    file: BufWriter<File>,
    sample: Sample,
    /// Whether the exchange was logged to which the next lines belong.
    is_shown: bool,
    exchanges: Budget,
    lines: Budget,
}

/// A share of the exchanges, evenly spaced, beginning with the first.
struct Sample {
    share: f64,
    came: u64,
}

/// How much may still be written of something.
struct Budget {
    left: u64,
    what: &'static str,
}

impl Journal {
    /// A journal for a run of `plan` in the file `path`, which is truncated.
    pub fn create(path: &Path, plan: &Plan, least: Level, share: f64) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let written = Written {
            file: BufWriter::new(file),
            sample: Sample { share, came: 0 },
            is_shown: false,
            exchanges: Budget { left: MOST_OF_EXCHANGES, what: "exchanges" },
            lines: Budget { left: MOST_OF_LINES, what: "lines" },
        };
        Ok(Self {
            printer: Printer::new(plan, false, true),
            least,
            shows_failures: share > 0.0,
            written: Mutex::new(written),
        })
    }

    /// Writes everything that is held back.
    pub fn flush(&self) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk costs the log, and not the run.
        let _ = written.file.flush();
    }
}

impl Budget {
    /// Writes `text` while there is room. The first text that does not fit is replaced by a line about that; later ones
    /// are left out.
    fn write(&mut self, file: &mut impl Write, text: &str) {
        let size = text.len() as u64;
        if self.left >= size {
            self.left -= size;
            let _ = file.write_all(text.as_bytes());
        } else if self.left > 0 {
            self.left = 0;
            let _ = writeln!(file, "\n… no more {}: this file has as many as it may have", self.what);
        }
    }
}

impl Sample {
    /// Whether the next is taken.
    fn takes_next(&mut self) -> bool {
        let before = (self.came as f64 * self.share).ceil();
        self.came += 1;
        (self.came as f64 * self.share).ceil() > before
    }
}

/// The time by the wall clock, to the millisecond.
fn now() -> String {
    let now = OffsetDateTime::now_utc();
    let whole = now.replace_nanosecond(now.nanosecond() / 1_000_000 * 1_000_000).unwrap_or(now);
    whole.format(&Rfc3339).unwrap_or_default()
}

impl Trace for Journal {
    fn sight(&self) -> Sight {
        if self.shows_failures { Sight::Failures } else { Sight::Said }
    }

    fn see(&self, traced: &Traced<'_>) {
        let text = || self.printer.text(traced);
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let written = &mut *written;
        match traced {
            Traced::Logged { level, user, scenario, .. } if *level >= self.least => {
                let line = format!("{} {scenario} {user} {}", now(), text());
                written.lines.write(&mut written.file, &line);
            }
            Traced::Answered { .. } | Traced::Failed { .. } => {
                written.is_shown = written.sample.takes_next();
                if written.is_shown {
                    written.exchanges.write(&mut written.file, &text());
                }
            }
            Traced::Checked { .. } if written.is_shown => written.exchanges.write(&mut written.file, &text()),
            Traced::Error { .. } if self.least <= Level::Error => {
                written.lines.write(&mut written.file, &format!("{} error: {}", now(), text()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_evenly_beginning_with_the_first() {
        let shown = |share: f64| {
            let mut sample = Sample { share, came: 0 };
            (0..1000).filter(|_| sample.takes_next()).collect::<Vec<_>>()
        };
        assert_eq!(shown(0.01), (0..10).map(|n| n * 100).collect::<Vec<_>>());
        assert_eq!((shown(1.0).len(), shown(0.0).len()), (1000, 0));
    }

    #[test]
    fn what_does_not_fit_is_said_once() {
        let mut file = Vec::new();
        let mut budget = Budget { left: 9, what: "lines" };
        for _ in 0..3 {
            budget.write(&mut file, "12345\n");
        }
        assert_eq!(
            String::from_utf8(file).unwrap(),
            "12345\n\n… no more lines: this file has as many as it may have\n"
        );
    }
}
