//! Drawings: panels one above the other on one axis, as HTML and SVG that need no script.
//!
//! Text keeps its size, and drawings fill the available width: horizontal positions are shares of the plot, vertical
//! ones are pixels. An element with `data-plot` has a thousand units across, the whole axis, so that the page's script
//! zooms by its `viewBox` alone.

mod panel;
mod scale;

use brunt_plan::units::Clock;
use brunt_record::change::Change;

use crate::changes;
use crate::markup::Html;
use panel::text;
pub(crate) use panel::{Label, Panel, steps};
pub(crate) use scale::{Scale, Unit, change, percentile};

/// How many units a plot is wide.
pub(crate) const ACROSS: f64 = 1000.0;
/// The room above the first panel, in pixels, and for each further line of marks there.
const TOP: f64 = 18.0;
const LINE: f64 = 14.0;
/// The most changes of a run that are named above the panels.
const MOST_NAMED: usize = 8;
/// The height of the axis below the last panel.
const AXIS: f64 = 22.0;
/// The most times on an axis of time.
const MOST_TIMES: u64 = 10;
/// Steps from one time to the next, in nanoseconds, as on a clock.
const STEPS: [u64; 16] = [
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    15_000_000_000,
    30_000_000_000,
    60_000_000_000,
    120_000_000_000,
    300_000_000_000,
    600_000_000_000,
    900_000_000_000,
    1_800_000_000_000,
    3_600_000_000_000,
];

/// The axis of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Across {
    pub(crate) span_ns: u64,
}

impl Across {
    /// The place of a time of the measured part.
    pub(crate) fn x(self, ns: u64) -> f64 {
        ns as f64 / self.span_ns.max(1) as f64 * ACROSS
    }

    /// The times on it.
    pub(crate) fn ticks(self) -> Vec<(f64, String)> {
        let step = STEPS.into_iter().find(|step| self.span_ns / step <= MOST_TIMES);
        let step = step.unwrap_or_else(|| self.span_ns.div_ceil(MOST_TIMES).next_multiple_of(3_600_000_000_000));
        let times = (0..=self.span_ns).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        times.map(|at| (self.x(at), Clock(at).to_string())).collect()
    }
}

/// A mark through all panels: its range, and its name above them. It is a line where both ends are equal.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) class: &'static str,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) words: String,
}

/// The text for a stretch that is pointed at.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) words: String,
}

/// Panels on one axis.
#[derive(Debug, Default)]
pub(crate) struct Plots {
    /// Its id in the page's addresses.
    pub(crate) id: String,
    /// Its title, in a few words.
    pub(crate) name: String,
    /// Its description for screen readers.
    pub(crate) words: String,
    pub(crate) panels: Vec<Panel>,
    pub(crate) ticks: Vec<(f64, String)>,
    /// The links of its ticks, in their order; none beyond its end.
    pub(crate) leads_to: Vec<Option<String>>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) points: Vec<Point>,
    /// The length of the axis, if it is one of time: all those of a page show the same seconds.
    pub(crate) span_ns: Option<u64>,
    /// Whether labels on its right are short, or absent.
    pub(crate) is_narrow: bool,
}

/// The room on a phone between the middles of two labels of so many characters, in the plot's units.
fn room(one: usize, other: usize) -> f64 {
    /// The width of a phone's plot, of a digit, and of what keeps two labels apart, in pixels.
    const PLOT: f64 = 280.0;
    const DIGIT: f64 = 7.0;
    const APART: f64 = 8.0;
    ((one + other) as f64 / 2.0 * DIGIT + APART) / PLOT * ACROSS
}

impl Plots {
    /// Writes the drawing; nothing without panels.
    pub(crate) fn write(&self, html: &mut Html) {
        if self.panels.is_empty() {
            return;
        }
        let named = self.marks.iter().filter(|mark| !mark.words.is_empty()).count();
        let is_sign = |mark: &Mark| mark.words.chars().count() <= 1;
        let top = match named {
            0 => 0.0,
            _ if self.marks.iter().all(is_sign) => TOP,
            lines => TOP + LINE * (lines - 1) as f64,
        };
        let bottom = top + self.panels.iter().map(Panel::full_height).sum::<f64>();
        html.raw("<div id=\"").text(&self.id).raw("\" class=\"stack");
        html.raw(if self.is_narrow { " narrow" } else { "" });
        html.raw("\" tabindex=\"0\" role=\"group\" aria-label=\"").text(&self.name).raw("\" data-points=\"");
        self.write_points(html);
        if let Some(span) = self.span_ns {
            html.raw("\" data-span-ms=\"").text(&(span / 1_000_000).to_string());
        }
        html.raw("\"><svg class=\"plots\" overflow=\"visible\" width=\"100%\" height=\"");
        // A drawing with links is not an image.
        let role = if self.leads_to.is_empty() { "img" } else { "group" };
        html.place(bottom + AXIS).raw("\" role=\"").raw(role).raw("\" aria-label=\"").text(&self.words).raw("\">");
        self.write_marks(html, top, bottom, is_sign);
        let mut below = top;
        for panel in &self.panels {
            panel.write(html, below);
            below += panel.full_height();
        }
        html.raw("<g class=\"ticks\" data-top=\"").place(top).raw("\" data-y=\"").place(bottom + 15.0).raw("\">");
        let mut last: Option<(f64, usize)> = None;
        for (nth, (x, words)) in self.ticks.iter().enumerate() {
            let length = words.chars().count();
            let is_close = last.is_some_and(|(before, of)| x - before < room(of, length));
            if !is_close {
                last = Some((*x, length));
            }
            let href = self.leads_to.get(nth).and_then(Option::as_deref);
            if let Some(href) = href {
                html.raw("<a href=\"").text(href).raw("\">");
            }
            text(html, if is_close { "time close" } else { "time" }, *x, 0.0, bottom + 15.0, words);
            html.raw(if href.is_some() { "</a>" } else { "" });
        }
        html.raw("</g></svg><p class=\"readout\" aria-live=\"polite\"></p></div>");
    }

    /// Adds a line for each change of the run, on an axis of time.
    pub(crate) fn with_changes(mut self, changes: &[Change]) -> Self {
        let Some(span_ns) = self.span_ns else { return self };
        let axis = Across { span_ns };
        let shown = changes.iter().filter_map(|change| Some((u64::try_from(change.at_ns).ok()?, change)));
        let shown = shown.filter(|(at_ns, _)| *at_ns <= span_ns);
        self.marks.extend(shown.enumerate().map(|(nth, (at_ns, change))| Mark {
            class: "change",
            from: axis.x(at_ns),
            to: axis.x(at_ns),
            // More names than that leave no room for the drawing.
            words: if nth < MOST_NAMED { changes::what(&change.action) } else { String::new() },
        }));
        self
    }

    fn write_points(&self, html: &mut Html) {
        for (nth, point) in self.points.iter().enumerate() {
            html.raw(if nth > 0 { "\n" } else { "" }).place(point.from).raw("|").place(point.to).raw("|");
            html.text(&point.words.replace(['\n', '|'], " "));
        }
    }

    fn write_marks(&self, html: &mut Html, top: f64, bottom: f64, is_sign: impl Fn(&Mark) -> bool) {
        if self.marks.is_empty() {
            return;
        }
        let height = bottom - top;
        html.raw("<svg data-plot y=\"").place(top).raw("\" width=\"100%\" height=\"").place(height);
        html.raw("\" viewBox=\"0 0 1000 ").place(height).raw("\" preserveAspectRatio=\"none\">");
        for mark in &self.marks {
            let x = mark.from.clamp(0.0, ACROSS);
            if mark.to > mark.from {
                html.raw("<rect class=\"").raw(mark.class).raw("\" y=\"0\" x=\"").place(x).raw("\" width=\"");
                html.place((mark.to.min(ACROSS) - x).max(2.0)).raw("\" height=\"").place(height).raw("\"/>");
            } else {
                html.raw("<path class=\"")
                    .raw(mark.class)
                    .raw("\" d=\"M")
                    .place(x)
                    .raw(" 0V")
                    .place(height)
                    .raw("\"/>");
            }
        }
        html.raw("</svg>");
        for (nth, mark) in self.marks.iter().filter(|mark| !mark.words.is_empty()).enumerate() {
            let middle = f64::midpoint(mark.from, mark.to).clamp(0.0, ACROSS);
            if is_sign(mark) {
                text(html, "sign", middle, 0.0, top - 4.0, &mark.words);
            } else {
                // Towards the middle, where there is room, each in a line of its own.
                let (class, dx) = if middle > ACROSS / 2.0 { ("mark before", -4.0) } else { ("mark", 4.0) };
                text(html, class, middle, dx, TOP - 4.0 + LINE * nth as f64, &mark.words);
            }
        }
    }
}
