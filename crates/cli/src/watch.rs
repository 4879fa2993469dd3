//! What is seen of a run while it goes on: a screen on a terminal, lines if asked for, or nothing; and the live page.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anyhow::Result;
use brunt_engine::{Observer, StopHandle};
use brunt_model::live::Live;
use brunt_model::plan::Plan;
use brunt_model::summary::Summary;
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
    pub fn of(plan: &Plan, results: &Results, args: &Output, stop: &StopHandle) -> Result<Self> {
        let page = args.live.map(|address| LivePage::of_run(address, &args.live_tls, plan)).transpose()?;
        if let Some(page) = page.as_ref().filter(|_| !args.quiet) {
            console::note(&page.place());
        }
        Ok(Self { terminal: Terminal::of(plan, results, args, stop), page })
    }

    /// Makes room for the result.
    pub fn clear(&mut self) {
        match &mut self.terminal {
            Terminal::Nothing | Terminal::Noted(_) => {}
            Terminal::Printed(_) => drop(console::print(b"\n")),
            Terminal::Drawn(drawing) => drawing.frame.show(&[]),
        }
    }

    /// Makes the live page the finished report.
    pub fn finish(&mut self, summary: &Summary) {
        if let Some(page) = &mut self.page {
            page.finish(summary);
        }
    }
}

impl Terminal {
    fn of(plan: &Plan, results: &Results, args: &Output, stop: &StopHandle) -> Self {
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
    fn second(&mut self, live: &Live) {
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
        let mut lines = self.screen.lines(width, self.style);
        if self.stop.is_stopped() {
            let note = "ending early, when calls in flight have ended; Ctrl-C exits at once";
            lines.push(columns::cut(note, width).to_owned());
        }
        lines.truncate(height.saturating_sub(1));
        self.frame.show(&lines);
    }
}

/// Lines at the bottom of the terminal, redrawn in place.
#[derive(Debug, Default)]
pub struct Frame {
    drawn: usize,
}

impl Frame {
    /// Draws `lines` where the last ones stood.
    pub fn show(&mut self, lines: &[String]) {
        let text = self.replace(lines);
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// What to write so that `lines` stand where the last ones stood (ECMA-48: CUU, EL, ED).
    fn replace(&mut self, lines: &[String]) -> String {
        let mut text = String::from("\r");
        if self.drawn > 0 {
            let _ = write!(text, "\x1b[{}A", self.drawn);
        }
        for line in lines {
            let _ = writeln!(text, "{line}\x1b[K");
        }
        text.push_str("\x1b[J");
        self.drawn = lines.len();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_take_the_place_of_the_last_ones_and_go() {
        let mut frame = Frame::default();
        let lines = ["a".to_owned(), "b".to_owned()];
        assert_eq!(frame.replace(&lines), "\ra\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(frame.replace(&lines[..1]), "\r\x1b[2Aa\x1b[K\n\x1b[J");
        assert_eq!(frame.replace(&[]), "\r\x1b[1A\x1b[J");
        assert_eq!(frame.replace(&[]), "\r\x1b[J");
    }
}
