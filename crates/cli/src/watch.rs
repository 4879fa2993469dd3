//! What is seen of a run while it goes on: a screen on a terminal, lines if asked for, or nothing; and the live page.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::ops::ControlFlow;

use anyhow::Result;
use brunt_engine::{Observer, RunningTotal, StopHandle};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_record::live::Live;
use brunt_report::live::{Lines, Screen};
use brunt_report::{Style, columns};

use crate::args::Output;
use crate::console;
use crate::live::LivePage;
use crate::results::Results;

/// What shows a run.
pub struct Watch {
    terminal: Terminal,
    page: Option<LivePage>,
    /// Whether it says where the page is.
    tells: bool,
}

/// What the terminal, or what stands for it, shows of a run.
enum Terminal {
    /// Nothing but the result.
    Nothing,
    /// A line a second, on standard output.
    Printed(Lines),
    /// A line a second, on standard error, since standard output is for a program.
    Noted(Lines),
    /// A part of the terminal that is drawn anew each second.
    Drawn(Box<Drawing>),
}

impl Watch {
    /// What the flags and the surroundings ask for, for a run that ends early by `stop`.
    ///
    /// # Errors
    /// When the live page cannot be served.
    pub fn new(plan: &Plan, results: &Results, args: &Output, stop: &StopHandle) -> Result<Self> {
        let page = args.live.map(|address| LivePage::of_run(address, &args.live_serving, plan)).transpose()?;
        if let Some(page) = page.as_ref().filter(|_| !args.quiet) {
            console::note(&page.place());
        }
        Ok(Self { terminal: Terminal::new(plan, results, args, stop), page, tells: !args.quiet })
    }

    /// Makes room for the result.
    pub fn clear(&mut self) {
        match &mut self.terminal {
            Terminal::Nothing | Terminal::Noted(_) => {}
            Terminal::Printed(_) => drop(console::print(b"\n")),
            Terminal::Drawn(drawing) => drawing.frame.show(&[]),
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

impl Terminal {
    fn new(plan: &Plan, results: &Results, args: &Output, stop: &StopHandle) -> Self {
        let lines = |colour| Lines::new(plan.ok_status.clone(), Style { colour, ..Style::default() });
        if args.verbose && results.is_for_people() {
            Self::Printed(lines(console::stdout_colour(args.no_color)))
        } else if args.verbose {
            Self::Noted(lines(console::stderr_colour(args.no_color)))
        } else if !args.quiet && console::stderr_redraws() {
            let style = Style { colour: console::stderr_colour(args.no_color), ..Style::default() };
            let mut drawing = Drawing { screen: Screen::new(plan), style, stop: stop.clone(), frame: Frame::default() };
            drawing.draw();
            Self::Drawn(Box::new(drawing))
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
        match &mut self.terminal {
            Terminal::Nothing => {}
            Terminal::Printed(lines) => drop(console::print(lines.push(live).as_bytes())),
            Terminal::Noted(lines) => drop(io::stderr().lock().write_all(lines.push(live).as_bytes())),
            Terminal::Drawn(drawing) => {
                drawing.screen.push(live);
                drawing.draw();
            }
        }
        ControlFlow::Continue(())
    }
}

/// A screen in its place on the terminal.
struct Drawing {
    screen: Screen,
    style: Style,
    stop: StopHandle,
    frame: Frame,
}

impl Drawing {
    fn draw(&mut self) {
        let (width, height) = console::stderr_size();
        let is_stopped = self.stop.is_stopped();
        // The last line is the cursor's.
        let room = height.saturating_sub(1 + usize::from(is_stopped));
        let mut lines = self.screen.lines(width, room, self.style);
        if is_stopped {
            let note = "ending early, when calls in flight have ended; Ctrl-C exits at once";
            lines.push(columns::cut(note, width).to_owned());
        }
        self.frame.show(&lines);
    }
}

/// Lines at the bottom of the terminal, redrawn in place.
#[derive(Debug, Default)]
pub struct Frame {
    /// How wide each line that stands there is, in columns.
    drawn: Vec<usize>,
}

impl Frame {
    /// Draws `lines` where the last ones stood.
    pub fn show(&mut self, lines: &[String]) {
        let text = self.replace(lines, console::stderr_size());
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// What to write so that `lines` stand where the last ones stood (ECMA-48: CUU, EL, ED), on a terminal that is now so many
    /// columns and lines large. One that was made narrower since has broken the last lines into several, or cut them: the
    /// cursor goes up by as many as they can take.
    fn replace(&mut self, lines: &[String], (columns, height): (usize, usize)) -> String {
        let mut text = String::from("\r");
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        let up = rows.min(height.saturating_sub(1));
        if up > 0 {
            let _ = write!(text, "\x1b[{up}A");
        }
        for line in lines {
            let _ = writeln!(text, "{line}\x1b[K");
        }
        text.push_str("\x1b[J");
        self.drawn = lines.iter().map(|line| columns::width(&without_colour(line))).collect();
        text
    }
}

/// `line` without sequences that colour it.
fn without_colour(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_the_place_of_the_last_ones_and_go() {
        let mut frame = Frame::default();
        let lines = ["a".to_owned(), "b".to_owned()];
        let size = (80, 24);
        assert_eq!(frame.replace(&lines, size), "\ra\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(frame.replace(&lines[..1], size), "\r\x1b[2Aa\x1b[K\n\x1b[J");
        assert_eq!(frame.replace(&[], size), "\r\x1b[1A\x1b[J");
        assert_eq!(frame.replace(&[], size), "\r\x1b[J");
    }

    #[test]
    fn a_terminal_made_narrower_or_lower_keeps_nothing_of_what_stood_there() {
        let mut frame = Frame::default();
        let lines = ["x".repeat(80), "\x1b[31mred\x1b[0m".to_owned()];
        frame.replace(&lines, (80, 24));
        // The first line takes three rows of thirty columns.
        assert!(frame.replace(&lines, (30, 24)).starts_with("\r\x1b[4A"));
        assert!(frame.replace(&lines, (30, 3)).starts_with("\r\x1b[2A"));
        assert!(frame.replace(&[], (0, 0)).starts_with("\r\x1b[J"));
    }
}
