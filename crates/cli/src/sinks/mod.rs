//! What is seen of a run while it goes on: a view on a terminal, lines if asked for, or nothing; and the live page.

use std::io::{self, Write as _};
use std::ops::ControlFlow;

use anyhow::Result;
use brunt_engine::{Observer, RunningTotal, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_record::SECOND_NS;
use brunt_record::live::Live;
use brunt_report::Style;
use brunt_report::live::{Buffer, Chosen, Lines, Screen};

use crate::args::Output;
use crate::live::LivePage;
use crate::results::Results;
use crate::view::{Picture, View};
use crate::{console, terminal};

/// How far apart lines for logs are, in nanoseconds.
const PLAIN_NS: u64 = 5 * SECOND_NS;

/// What shows a run.
pub struct Watch {
    shown: Shown,
    page: Option<LivePage>,
    /// Whether it says where the page is.
    tells: bool,
}

/// What the terminal, or what stands for it, shows of a run.
enum Shown {
    /// Nothing but the result.
    Nothing,
    /// Lines on standard output, before the result.
    Printed(Box<Lines>),
    /// Lines on standard error.
    Noted(Box<Lines>),
    /// A view on the terminal.
    Viewed(View<Drawing>),
}

impl Watch {
    /// What the flags and the surroundings ask for, for a run that ends early by `stop`. A run whose calls are printed as they go has no
    /// view.
    ///
    /// # Errors
    /// When the live page cannot be served.
    pub fn new(plan: &Plan, results: &Results, args: &Output, stop: &StopHandle, is_traced: bool) -> Result<Self> {
        let page = args.live.map(|address| LivePage::of_run(address, &args.live_serving, plan)).transpose()?;
        if let Some(page) = page.as_ref().filter(|_| !args.quiet) {
            console::note(&page.place());
        }
        let shown = Shown::new(plan, results, args, stop, is_traced);
        Ok(Self { shown, page, tells: !args.quiet })
    }

    /// Makes room for the result.
    pub fn clear(&mut self) {
        match &mut self.shown {
            Shown::Nothing | Shown::Noted(_) => {}
            Shown::Printed(_) => drop(console::print(b"\n")),
            Shown::Viewed(view) => view.end(),
        }
    }

    /// The run is over; its result is written next.
    pub fn ended(&mut self, summary: &Summary) {
        if let Shown::Noted(lines) = &mut self.shown {
            note(&lines.end(summary));
        }
    }

    /// Makes the live page the finished report of a run that is kept under the number `kept`.
    pub fn finish(&mut self, summary: &Summary, kept: Option<i64>) {
        if let Some(page) = &mut self.page {
            page.finish(summary, kept);
        }
    }

    /// Keeps the live page for a while, unless `stop` asks for its end.
    pub fn linger(&self, stop: &StopHandle) {
        if let Some(page) = &self.page {
            page.linger(stop, self.tells);
        }
    }
}

impl Shown {
    fn new(plan: &Plan, results: &Results, args: &Output, stop: &StopHandle, is_traced: bool) -> Self {
        let printed = || Style {
            colour: console::stdout_colour(args.no_color),
            characters: console::stdout_characters(args.ascii),
            ..Style::default()
        };
        let noted = || Style {
            colour: console::stderr_colour(args.no_color),
            characters: console::stderr_characters(args.ascii),
            ..Style::default()
        };
        if args.plain {
            Self::Noted(Box::new(Lines::new(plan, PLAIN_NS, Style { colour: false, ..noted() })))
        } else if args.verbose && results.is_for_people() {
            Self::Printed(Box::new(Lines::new(plan, SECOND_NS, printed())))
        } else if args.verbose {
            Self::Noted(Box::new(Lines::new(plan, SECOND_NS, noted())))
        } else if !args.quiet && !is_traced && terminal::is_free() {
            Self::Viewed(View::new(Drawing { screen: Screen::new(plan), style: noted() }, stop.clone()))
        } else {
            Self::Nothing
        }
    }
}

impl Observer for Watch {
    /// Whoever reads the lines may stop at any time: failing to write them is no failure of the run.
    fn second(&mut self, live: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<String> {
        if let Some(page) = &mut self.page {
            page.second(live);
        }
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Printed(lines) => drop(console::print(lines.push(live).as_bytes())),
            Shown::Noted(lines) => note(&lines.push(live)),
            Shown::Viewed(view) => view.update(|drawing| drawing.screen.push(live)),
        }
        ControlFlow::Continue(())
    }
}

fn note(lines: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(lines.as_bytes()).and_then(|()| err.flush());
}

/// A run on the terminal.
struct Drawing {
    screen: Screen,
    style: Style,
}

impl Picture for Drawing {
    fn prepare(&mut self) {
        self.screen.conclude();
    }

    fn state(&self) -> u8 {
        self.screen.kind()
    }

    fn draw(&self, width: u16, height: u16, chosen: Chosen) -> Buffer {
        self.screen.draw(width, height, chosen, self.style)
    }
}
