//! How far several runs are: drawn on a terminal, a line for each run elsewhere.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use brunt_engine::{Observer, RunningTotal, StopHandle};
use brunt_plan::plan::Plan;
use brunt_record::live::Live;
use brunt_report::Style;
use brunt_report::live::{self, Buffer, Chosen, Hands, Overall};

use crate::args::runs::Shown;
use crate::plan::length_ns;
use crate::view::{Picture, View};
use crate::{console, terminal};

/// The most runs remembered for a terminal.
const REMEMBERED: usize = 100;

/// Shows how far runs are.
pub enum Progress {
    /// Nothing.
    Nothing,
    /// A line for each run.
    Lines,
    /// A view on the terminal.
    Viewed(View<Drawing>),
}

/// Several runs on the terminal.
pub struct Drawing {
    name: &'static str,
    style: Style,
    began: Instant,
    /// The current run: its name, its length, and the length of all later ones.
    what: String,
    length_ns: u64,
    after_ns: u64,
    run_began: Instant,
    last: String,
    notes: VecDeque<String>,
}

impl Progress {
    /// Shows runs of the command `name` as `shown` and the surroundings ask for.
    pub fn new(name: &'static str, shown: &Shown, stop: StopHandle) -> Self {
        if shown.quiet {
            return Self::Nothing;
        }
        if shown.plain || !terminal::is_free() {
            return Self::Lines;
        }
        let style = console::stderr_style(shown.no_color, shown.ascii);
        let now = Instant::now();
        let drawing = Drawing {
            name,
            style,
            began: now,
            what: String::new(),
            length_ns: 0,
            after_ns: 0,
            run_began: now,
            last: String::new(),
            notes: VecDeque::new(),
        };
        Self::Viewed(View::new(drawing, stop))
    }

    /// A run begins; the others after it take about `after_ns` nanoseconds.
    pub fn begin(&mut self, what: &str, plan: &Plan, after_ns: u64) {
        if let Self::Viewed(view) = self {
            view.update(|drawing| {
                what.clone_into(&mut drawing.what);
                drawing.length_ns = length_ns(plan);
                drawing.after_ns = after_ns;
                drawing.run_began = Instant::now();
                drawing.last.clear();
            });
        }
    }

    /// Adds the result of a run.
    pub fn note(&mut self, line: &str) {
        match self {
            Self::Nothing => {}
            Self::Lines => console::note(line),
            Self::Viewed(view) => view.update(|drawing| {
                if drawing.notes.len() >= REMEMBERED {
                    drawing.notes.pop_front();
                }
                drawing.notes.push_back(line.to_owned());
            }),
        }
    }

    /// Makes room for the result.
    pub fn clear(&mut self) {
        if let Self::Viewed(view) = self {
            view.end();
        }
    }
}

impl Picture for Drawing {
    fn draw(&self, width: u16, height: u16, chosen: Chosen) -> Buffer {
        let left = Duration::from_nanos(self.length_ns).saturating_sub(self.run_began.elapsed());
        let current = format!("{}  {}", self.what, self.last);
        let keys = match chosen {
            Chosen { hands: Hands::Ending, .. } => "ending early, with what there is; Ctrl-C exits at once",
            Chosen { hands: Hands::On, .. } => "q stop and decide with what there is",
            _ => "Ctrl-C stops, and decides with what there is",
        };
        let overall = Overall {
            title: self.name,
            past: self.began.elapsed(),
            left: left + Duration::from_nanos(self.after_ns),
            current: &current,
            notes: self.notes.iter().map(String::as_str).collect(),
            keys,
        };
        overall.draw(width, height, self.style)
    }
}

impl Observer for Progress {
    fn second(&mut self, second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<brunt_engine::AbortCause> {
        if let Self::Viewed(view) = self {
            view.update(|drawing| drawing.last = live::brief(second));
        }
        ControlFlow::Continue(())
    }
}
