//! Small drawings, each with a description in words.

use super::Html;

/// The size of a sparkline.
const WIDTH: f64 = 96.0;
const HEIGHT: f64 = 20.0;

/// A line from zero to the greatest of `values`; nothing without values.
pub(super) fn sparkline(html: &mut Html, what: &'static str, values: &[Option<f64>], shown: impl Fn(f64) -> String) {
    let known = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let Some((low, high)) = range(known()) else { return };
    let label = if low == high {
        format!("{what}: {} throughout", shown(high))
    } else {
        format!("{what}: {} to {}", shown(low), shown(high))
    };
    html.raw("<svg class=\"spark\" viewBox=\"0 0 96 20\" width=\"96\" height=\"20\" role=\"img\" aria-label=\"");
    html.text(&label).raw("\"><title>").text(&label).raw("</title><path d=\"");
    let step = WIDTH / (values.len().saturating_sub(1).max(1)) as f64;
    let height = |value: f64| if high > 0.0 { HEIGHT - 1.0 - value / high * (HEIGHT - 2.0) } else { HEIGHT - 1.0 };
    let mut is_line = false;
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            is_line = false;
            continue;
        };
        let (x, y) = (at as f64 * step, height(value));
        html.raw(if is_line { "L" } else { "M" }).place(x).raw(" ").place(y);
        if !is_line {
            // A point without neighbours is seen, too.
            html.raw("l1.5 0");
            html.raw("M").place(x).raw(" ").place(y);
        }
        is_line = true;
    }
    html.raw("\"/></svg>");
}

/// A figure on a scale shared by all rows; positions are shares of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dot {
    pub(super) at: f64,
    pub(super) interval: Option<(f64, f64)>,
    /// Whether the true value may be larger.
    pub(super) is_lower_bound: bool,
    /// The limit on it, and whether it held.
    pub(super) limit: Option<(f64, bool)>,
}

impl Dot {
    pub(super) fn write(self, html: &mut Html) {
        let x = |share: f64| 4.0 + share.clamp(0.0, 1.0) * (WIDTH - 8.0);
        html.raw("<svg class=\"spark\" viewBox=\"0 0 96 20\" width=\"96\" height=\"20\" aria-hidden=\"true\"><path class=\"grid\" d=\"M4 10H92M4 7v6M92 7v6\"/>");
        if let Some((limit, held)) = self.limit.filter(|(limit, _)| (0.0..=1.0).contains(limit)) {
            html.raw(if held { "<path class=\"held\" d=\"M" } else { "<path class=\"lost\" d=\"M" });
            html.place(x(limit)).raw(" 1V19\"/>");
        }
        if let Some((low, high)) = self.interval {
            html.raw("<path d=\"M").place(x(low)).raw(" 10H").place(x(high)).raw("M").place(x(low)).raw(" 7v6M");
            html.place(x(high)).raw(" 7v6\"/>");
        } else if self.is_lower_bound {
            html.raw("<path d=\"M").place(x(self.at)).raw(" 10H92m-4 -3l4 3l-4 3\"/>");
        }
        html.raw("<circle class=\"dot\" r=\"3.5\" cy=\"10\" cx=\"").place(x(self.at)).raw("\"/></svg>");
    }
}

/// The least and the most.
pub(super) fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| {
        Some(range.map_or((value, value), |(low, high): (f64, f64)| (low.min(value), high.max(value))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_in_its_box_and_says_what_it_shows() {
        let mut html = Html::default();
        sparkline(&mut html, "p99", &[Some(1.0), None, Some(4.0), Some(f64::NAN)], |n| format!("{n}ms"));
        let text = html.into_string();
        assert!(text.contains("aria-label=\"p99: 1ms to 4ms\""), "{text}");
        assert!(text.contains("M0 14.5") && text.contains("M64 1") && !text.contains("NaN"), "{text}");
        let mut none = Html::default();
        sparkline(&mut none, "p99", &[None], |n| n.to_string());
        sparkline(&mut none, "p99", &[], |n| n.to_string());
        assert_eq!(none.into_string(), "");
    }
}
