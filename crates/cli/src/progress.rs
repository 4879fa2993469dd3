//! How far several runs are: drawn on a terminal, a line for each run elsewhere.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use brunt_engine::{Observer, RunningTotal, StopHandle};
use brunt_plan::plan::Plan;
use brunt_record::live::Live;
use brunt_record::snapshot::Phase;
use brunt_report::{columns, live};

use crate::args::words::Shown;
use crate::console;
use crate::plan::length_ns;
use crate::watch::Frame;

/// How many of the last runs are seen on a terminal.
const REMEMBERED: usize = 8;

/// Shows how far runs are.
pub struct Progress {
    name: &'static str,
    how: How,
    stop: StopHandle,
    began: Instant,
    /// The run that goes on: what it is called, how long it takes and how long all those after it.
    what: String,
    length_ns: u64,
    after_ns: u64,
    run_began: Instant,
    last: String,
    notes: VecDeque<String>,
}

enum How {
    Nothing,
    Lines,
    Drawn(Frame),
}

impl Progress {
    /// Shows runs of the command `name` as `shown` and the surroundings ask for.
    pub fn new(name: &'static str, shown: &Shown, stop: StopHandle) -> Self {
        let how = match (shown.quiet, console::stderr_redraws()) {
            (true, _) => How::Nothing,
            (false, true) => How::Drawn(Frame::default()),
            (false, false) => How::Lines,
        };
        let now = Instant::now();
        Self {
            name,
            how,
            stop,
            began: now,
            what: String::new(),
            length_ns: 0,
            after_ns: 0,
            run_began: now,
            last: String::new(),
            notes: VecDeque::new(),
        }
    }

    /// A run begins; about `after_ns` nanoseconds of others follow it.
    pub fn begin(&mut self, what: &str, plan: &Plan, after_ns: u64) {
        what.clone_into(&mut self.what);
        self.length_ns = length_ns(plan);
        self.after_ns = after_ns;
        self.run_began = Instant::now();
        self.last.clear();
        self.draw();
    }

    /// What came of a run.
    pub fn note(&mut self, line: &str) {
        match self.how {
            How::Nothing => {}
            How::Lines => console::note(line),
            How::Drawn(_) => {
                if self.notes.len() >= REMEMBERED {
                    self.notes.pop_front();
                }
                self.notes.push_back(line.to_owned());
                self.draw();
            }
        }
    }

    /// Makes room for the result.
    pub fn clear(&mut self) {
        if let How::Drawn(frame) = &mut self.how {
            frame.show(&[]);
        }
    }

    fn draw(&mut self) {
        let past = self.began.elapsed();
        let left = Duration::from_nanos(self.length_ns).saturating_sub(self.run_began.elapsed());
        let left = left + Duration::from_nanos(self.after_ns);
        let How::Drawn(frame) = &mut self.how else { return };
        let (width, height) = console::stderr_size();
        let mut lines = vec![live::overall(self.name, past, left, width)];
        lines.push(format!("{}  {}", self.what, self.last));
        lines.extend(self.notes.iter().cloned());
        if self.stop.is_stopped() {
            lines.push("ending early, with what there is; Ctrl-C exits at once".to_owned());
        }
        let lines: Vec<String> = lines.iter().map(|line| columns::cut(line, width).to_owned()).collect();
        let shown = lines.len().min(height.saturating_sub(1));
        frame.show(lines.get(..shown).unwrap_or(&[]));
    }
}

impl Observer for Progress {
    fn second(&mut self, second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<String> {
        if let How::Drawn(_) = self.how {
            self.last = live::brief(second);
            if second.phase != Phase::Drain {
                self.draw();
            }
        }
        ControlFlow::Continue(())
    }
}
