//! The view of a run that goes on, over the whole terminal.

use brunt_engine::StopHandle;
use brunt_plan::plan::Plan;
use brunt_record::live::Live;
use brunt_report::Style;
use brunt_report::live::{Buffer, Chosen, Screen};

use super::Sink;
use crate::args::Output;
use crate::view::{Picture, View};
use crate::{console, terminal};

/// A view on the terminal.
pub struct ScreenSink(View<Drawing>);

impl ScreenSink {
    /// A view, on a terminal that nothing else is written to. A key in it ends the run by `stop`.
    pub fn from_flags(plan: &Plan, args: &Output, stop: &StopHandle, is_traced: bool) -> Option<Self> {
        if args.quiet || is_traced || !terminal::is_free() {
            return None;
        }
        let style = console::stderr_style(args.no_color, args.ascii);
        Some(Self(View::new(Drawing { screen: Screen::new(plan), style }, stop.clone())))
    }
}

impl Sink for ScreenSink {
    fn second(&mut self, live: &Live) {
        self.0.update(|drawing| drawing.screen.push(live));
    }

    fn load_ended(&mut self) {
        self.0.end();
    }
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
