//! Lines of text about a run that goes on: each second with `-v`, each 5 s and at each change with `--plain`.

use std::io::{self, Write as _};

use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_record::SECOND_NS;
use brunt_record::live::Live;
use brunt_report::Style;
use brunt_report::live::Lines;

use super::Sink;
use crate::args::Output;
use crate::console;
use crate::results::Results;

/// The interval of lines for logs, in nanoseconds.
const PLAIN_NS: u64 = 5 * SECOND_NS;

/// Lines of a run, on standard error.
pub struct LineSink {
    lines: Lines,
    /// Whether the last line has the run's ending: it stands nowhere else, as no text follows.
    tells_end: bool,
}

impl LineSink {
    /// The lines that flags ask for, if they do.
    pub fn from_flags(plan: &Plan, results: &Results, args: &Output) -> Option<Self> {
        let noted = console::stderr_style(args.no_color, args.ascii);
        let (every_ns, style, tells_end) = if args.plain {
            (PLAIN_NS, Style { colour: false, ..noted }, true)
        } else if !args.verbose {
            return None;
        } else {
            (SECOND_NS, noted, !results.is_for_people())
        };
        Some(Self { lines: Lines::new(plan, every_ns, style), tells_end })
    }
}

impl Sink for LineSink {
    /// A reader may stop at any time: a failing write is no failure of the run.
    fn second(&mut self, live: &Live) {
        note(&self.lines.push(live));
    }

    fn judged(&mut self, summary: &Summary) {
        if self.tells_end {
            note(&self.lines.end(summary));
        }
    }
}

fn note(lines: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(lines.as_bytes()).and_then(|()| err.flush());
}
