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

/// Lines of a run.
pub struct LineSink {
    lines: Lines,
    to: To,
}

/// Where lines go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    /// Standard output, before the result.
    Output,
    /// Standard error.
    Error,
}

impl LineSink {
    /// The lines that flags ask for, if they do.
    pub fn from_flags(plan: &Plan, results: &Results, args: &Output) -> Option<Self> {
        let noted = console::stderr_style(args.no_color, args.ascii);
        let (every_ns, style, to) = if args.plain {
            (PLAIN_NS, Style { colour: false, ..noted }, To::Error)
        } else if !args.verbose {
            return None;
        } else if results.is_for_people() {
            (SECOND_NS, console::stdout_style(args.no_color, args.ascii), To::Output)
        } else {
            (SECOND_NS, noted, To::Error)
        };
        Some(Self { lines: Lines::new(plan, every_ns, style), to })
    }
}

impl Sink for LineSink {
    /// A reader may stop at any time: a failing write is no failure of the run.
    fn second(&mut self, live: &Live) {
        let lines = self.lines.push(live);
        match self.to {
            To::Output => drop(console::print(lines.as_bytes())),
            To::Error => note(&lines),
        }
    }

    fn load_ended(&mut self) {
        if self.to == To::Output {
            drop(console::print(b"\n"));
        }
    }

    /// Where the result goes elsewhere, the last line has the run's ending.
    fn judged(&mut self, summary: &Summary) {
        if self.to == To::Error {
            note(&self.lines.end(summary));
        }
    }
}

fn note(lines: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(lines.as_bytes()).and_then(|()| err.flush());
}
