//! Small drawings of a list's rows.

use super::Html;
use crate::page::Scale;

/// The size of a course: its line, and its scale on the right.
const COURSE: f64 = 70.0;
const HEIGHT: f64 = 28.0;
/// The width of an axis of figures, and the room on each side for what lies beyond it.
pub(super) const AXIS: f64 = 170.0;
const BESIDE: f64 = 5.0;
/// The least room between the middles of two values on an axis.
const APART: f64 = 46.0;

/// A line from zero to the greatest of `values`, which stands beside it; nothing without values.
pub(super) fn course(html: &mut Html, values: &[f64], shown: impl Fn(f64) -> String) {
    let Some((low, high)) = range(values.iter().copied().filter(|value| value.is_finite())) else { return };
    let label = if low.total_cmp(&high).is_eq() {
        format!("{} throughout", shown(high))
    } else {
        format!("from {} to {}", shown(low), shown(high))
    };
    html.raw("<svg class=\"course\" viewBox=\"0 0 120 28\" width=\"120\" height=\"28\" role=\"img\" aria-label=\"");
    html.text(&label).raw("\"><title>").text(&label).raw("</title>");
    html.raw("<path class=\"grid\" d=\"M0 26H70M0 4H70\"/><text x=\"74\" y=\"9\">").text(&shown(high.max(0.0)));
    html.raw("</text><text x=\"74\" y=\"28\">0</text><path class=\"line blue\" d=\"");
    let step = COURSE / values.len().max(1) as f64;
    let height = |value: f64| HEIGHT - 2.0 - if high > 0.0 { value / high * (HEIGHT - 6.0) } else { 0.0 };
    let steps = values.iter().enumerate().map(|(at, value)| {
        let from = at as f64 * step;
        (from, from + step, value.is_finite().then(|| height(*value)))
    });
    crate::page::steps(html, steps);
    html.raw("\"/></svg>");
}

/// A figure on a scale that all rows share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dot {
    pub(super) at: f64,
    pub(super) interval: Option<(f64, Option<f64>)>,
    /// Whether the true value may be larger.
    pub(super) is_lower_bound: bool,
    /// Whether brunt itself may have shaped it.
    pub(super) is_doubted: bool,
    /// The limit on it, and whether it held.
    pub(super) limit: Option<(f64, bool)>,
}

/// The place of a value on an axis, in its drawing.
fn x(scale: Scale, value: f64) -> f64 {
    BESIDE + scale.share(value).clamp(0.0, 1.0) * (AXIS - 2.0 * BESIDE)
}

/// The round values of a scale that have room beside each other.
fn ticks(scale: Scale) -> Vec<f64> {
    let mut last = f64::NEG_INFINITY;
    let mut ticks = scale.round(4);
    ticks.retain(|tick| {
        let has_room = x(scale, *tick) - last >= APART;
        if has_room {
            last = x(scale, *tick);
        }
        has_room
    });
    ticks
}

/// The axis above the rows, with the pattern of what lies beyond a limit.
pub(super) fn axis(html: &mut Html, scale: Scale, shown: impl Fn(f64) -> String) {
    html.raw("<svg class=\"axis\" viewBox=\"0 0 170 16\" width=\"170\" height=\"16\" aria-hidden=\"true\"><defs>");
    html.raw("<pattern id=\"beyond\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 6L6 0\"/></pattern></defs>");
    for tick in ticks(scale) {
        let at = x(scale, tick);
        // At its ends a value stands within the drawing.
        html.raw(match at {
            at if at < APART / 2.0 => "<text text-anchor=\"start\" y=\"12\" x=\"",
            at if at > AXIS - APART / 2.0 => "<text text-anchor=\"end\" y=\"12\" x=\"",
            _ => "<text text-anchor=\"middle\" y=\"12\" x=\"",
        });
        html.place(at).raw("\">").text(&shown(tick)).raw("</text>");
    }
    html.raw("</svg>");
}

impl Dot {
    pub(super) fn write(self, html: &mut Html, scale: Scale) {
        html.raw("<svg class=\"dots\" viewBox=\"0 0 170 28\" width=\"170\" height=\"28\" aria-hidden=\"true\">");
        html.raw("<path class=\"grid\" d=\"M0 14H170");
        for tick in ticks(scale) {
            html.raw("M").place(x(scale, tick)).raw(" 0V28");
        }
        html.raw("\"/>");
        let is_lost = self.limit.is_some_and(|(_, held)| !held);
        if let Some((limit, _)) = self.limit.filter(|(limit, _)| scale.share(*limit) < 1.0) {
            let at = x(scale, limit);
            html.raw("<rect class=\"beyond\" y=\"0\" height=\"28\" x=\"").place(at).raw("\" width=\"");
            html.place(AXIS - at).raw("\"/>");
            if scale.holds(limit) {
                html.raw("<path class=\"limit\" d=\"M").place(at).raw(" 0V28\"/>");
            }
        }
        let class = if is_lost { " orange\" d=\"M" } else { " blue\" d=\"M" };
        let at = x(scale, self.at);
        if let Some((low, high)) = self.interval {
            let (low, end) = (x(scale, low), high.map_or(AXIS, |high| x(scale, high)));
            html.raw("<path class=\"line")
                .raw(class)
                .place(low)
                .raw(" 14H")
                .place(end)
                .raw("M")
                .place(low)
                .raw(" 10v8");
            if high.is_some() {
                html.raw("M").place(end).raw(" 10v8");
            }
            html.raw("\"/>");
        } else if self.is_lower_bound {
            html.raw("<path class=\"line").raw(class).place(at).raw(" 14H170m-4 -3l4 3l-4 3\"/>");
        }
        html.raw("<path class=\"dot").raw(class).place(at).raw(" 14h0\"/>");
        if self.is_lower_bound || self.is_doubted {
            html.raw("<path class=\"hole\" d=\"M").place(at).raw(" 14h0\"/>");
        }
        html.raw("</svg>");
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
    fn a_course_stays_in_its_box_and_has_its_scale() {
        let mut html = Html::default();
        course(&mut html, &[1.0, f64::NAN, 4.0], |n| format!("{n}/s"));
        let text = html.into_string();
        assert!(text.contains("aria-label=\"from 1/s to 4/s\"") && text.contains(">4/s</text>"), "{text}");
        assert!(text.contains("M0 20.5H23.3M46.7 4H70") && !text.contains("NaN"), "{text}");
        let mut none = Html::default();
        course(&mut none, &[f64::NAN], |n| n.to_string());
        course(&mut none, &[], |n| n.to_string());
        assert_eq!(none.into_string(), "");
    }

    #[test]
    fn what_lies_beyond_a_limit_is_hatched_and_a_lost_one_is_orange() {
        let dot = |at, limit| {
            let mut html = Html::default();
            let interval = Some((at / 1.1, None));
            Dot { at, interval, is_lower_bound: false, is_doubted: false, limit }
                .write(&mut html, Scale::logarithmic(1e6, 1e8));
            html.into_string()
        };
        let lost = dot(2e7, Some((1e7, false)));
        assert!(
            lost.contains("class=\"beyond\"")
                && lost.contains("class=\"dot orange\"")
                && lost.contains("class=\"limit\"")
        );
        let held = dot(2e6, Some((1e12, true)));
        assert!(
            !held.contains("class=\"beyond\"")
                && held.contains("class=\"dot blue\"")
                && !held.contains("class=\"hole\"")
        );
        // The whole scale lies beyond this one.
        let all = dot(2e6, Some((1.0, false)));
        assert!(all.contains("class=\"beyond\"") && !all.contains("class=\"limit\""), "{all}");
    }

    #[test]
    fn values_on_an_axis_have_room() {
        for (low, high) in [(1e6, 1e9), (2.1e6, 2.9e6), (1.0, 1e18)] {
            let scale = Scale::logarithmic(low, high);
            let places: Vec<_> = ticks(scale).into_iter().map(|tick| x(scale, tick)).collect();
            assert!(!places.is_empty() && places.is_sorted_by(|a, b| b - a >= APART), "{low} {high}: {places:?}");
        }
    }
}
