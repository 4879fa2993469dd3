//! A panel: a title, horizontal lines with their labels, a plot, and labels at the ends of its lines.

use super::ACROSS;
use crate::markup::Html;

/// The room for a panel's title, in pixels.
const TITLE: f64 = 25.0;
/// The room below a panel.
const GAP: f64 = 6.0;
/// The least from one label to the next.
const LINE: f64 = 14.0;
/// The width of a phone's drawing with the room before it, and of a letter of a title and of a label, in pixels.
const PHONE: f64 = 350.0;
const LETTER: f64 = 7.6;
const SMALL_LETTER: f64 = 6.6;
/// The room before a label behind a title, in pixels.
const BEFORE: f64 = 8.0;

/// The label at the end of a line.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) class: &'static str,
    pub(crate) y: f64,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) note: String,
    /// How high its plot is.
    pub(crate) height: f64,
    /// Horizontal lines: their positions in the plot, and their labels.
    pub(crate) lines: Vec<(f64, String)>,
    /// The plot, drawn in a thousand units across and `height` down.
    pub(crate) plot: Html,
    /// The labels on the right.
    pub(crate) labels: Vec<Label>,
    /// Notes within the plot: a class, the horizontal position in the plot's units, the vertical one, and words.
    pub(crate) notes: Vec<(&'static str, f64, f64, String)>,
}

impl Panel {
    pub(super) fn full_height(&self) -> f64 {
        self.above() + self.height + GAP
    }

    /// The room for its title.
    fn above(&self) -> f64 {
        let title = if self.title.is_empty() { GAP } else { TITLE };
        title + LINE * self.legend().filter(|(begins, _)| *begins).count() as f64
    }

    /// The labels as they stand behind the title on a phone, and whether each begins a line of its own.
    fn legend(&self) -> impl Iterator<Item = (bool, &Label)> {
        let mut used = self.title.chars().count() as f64 * LETTER;
        self.labels.iter().map(move |label| {
            let width = label.text.chars().count() as f64 * SMALL_LETTER + BEFORE;
            let begins = used > 0.0 && used + width > PHONE;
            used = if begins { width } else { used + width };
            (begins, label)
        })
    }

    /// Writes it below `top`, in pixels.
    pub(super) fn write(&self, html: &mut Html, top: f64) {
        let lines = self.legend().filter(|(begins, _)| *begins).count() as f64;
        let top = top + self.above();
        html.raw("<text class=\"title\" x=\"-64\" y=\"").place(top - 10.0 - LINE * lines).raw("\">").text(&self.title);
        html.raw(" <tspan class=\"note\">").text(&self.note).raw("</tspan>");
        // On a phone there is no room for labels beside the plot: they stand behind its title.
        for (begins, label) in self.legend() {
            html.raw("<tspan class=\"legend ").raw(label.class);
            html.raw(if begins { "\" x=\"-64\" dy=\"14\">" } else { "\" dx=\"8\">" }).text(&label.text).raw("</tspan>");
        }
        html.raw("</text>");
        for (y, words) in &self.lines {
            html.raw("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"").place(top + y).raw("\" y2=\"").place(top + y);
            html.raw("\"/>");
            html.raw("<text class=\"tick\" x=\"-8\" y=\"").place(top + y + 4.0).raw("\">").text(words).raw("</text>");
        }
        html.raw("<svg data-plot y=\"").place(top).raw("\" width=\"100%\" height=\"").place(self.height);
        html.raw("\" viewBox=\"0 0 1000 ").place(self.height).raw("\" preserveAspectRatio=\"none\">");
        html.html(&self.plot).raw("</svg>");
        for (class, x, y, words) in &self.notes {
            text(html, class, *x, 0.0, top + y, words);
        }
        for (y, label) in placed(&self.labels, self.height) {
            html.raw("<text class=\"end ").raw(label.class).raw("\" x=\"100%\" dx=\"8\" y=\"").place(top + y + 4.0);
            html.raw("\">").text(&label.text).raw("</text>");
        }
    }
}

/// Labels at their positions, moved apart where they would overlap.
fn placed(labels: &[Label], height: f64) -> Vec<(f64, &Label)> {
    let mut sorted: Vec<_> = labels.iter().map(|label| (label.y.clamp(0.0, height), label)).collect();
    sorted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut least = f64::NEG_INFINITY;
    for (y, _) in &mut sorted {
        *y = y.max(least);
        least = *y + LINE;
    }
    let mut most = height.max(LINE * labels.len().saturating_sub(1) as f64);
    for (y, _) in sorted.iter_mut().rev() {
        *y = y.min(most);
        most = *y - LINE;
    }
    sorted
}

/// Writes text at a horizontal position in a plot's units: the page's script moves it as it zooms.
pub(super) fn text(html: &mut Html, class: &'static str, x: f64, dx: f64, y: f64, words: &str) {
    html.raw("<text class=\"").raw(class).raw("\" data-x=\"").place(x).raw("\" x=\"").place(x / ACROSS * 100.0);
    html.raw("%\" dx=\"").place(dx).raw("\" y=\"").place(y).raw("\">").text(words).raw("</text>");
}

/// A line of steps, with gaps where a value is missing. Each has its beginning and end across, and its height.
pub(crate) fn steps(html: &mut Html, steps: impl Iterator<Item = (f64, f64, Option<f64>)>) {
    let mut is_line = false;
    for (from, to, y) in steps {
        let Some(y) = y else {
            is_line = false;
            continue;
        };
        if is_line {
            html.raw("V").place(y);
        } else {
            html.raw("M").place(from).raw(" ").place(y);
        }
        html.raw("H").place(to);
        is_line = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_lie_on_one_another() {
        let labels = [99.0, 98.0, 10.0].map(|y| Label { class: "", y, text: String::new() });
        let places: Vec<_> = placed(&labels, 100.0).into_iter().map(|(y, _)| y).collect();
        assert_eq!(places, [10.0, 86.0, 100.0]);
    }

    #[test]
    fn a_gap_ends_a_line() {
        let mut html = Html::default();
        steps(
            &mut html,
            [(0.0, 1.0, Some(5.0)), (1.0, 2.0, Some(6.0)), (2.0, 3.0, None), (3.0, 4.0, Some(5.0))].into_iter(),
        );
        assert_eq!(html.into_string(), "M0 5H1V6H2M3 5H4");
    }
}
