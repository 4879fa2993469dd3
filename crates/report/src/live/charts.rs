//! Charts of a live view: bars over time, one column of the terminal each.

use brunt_plan::units::{Clock, ExactDuration, Number, count};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::course::Column;
use super::line::{Line, put};
use crate::chart::{self, BLOCKS, Scale};
use crate::columns;
use crate::style::Role;

/// The width of the labels before a chart.
pub(super) const BEFORE: usize = 9;
/// The fewest powers of ten of a scale of times: with fewer, it would change whenever a percentile does.
const DECADES: u32 = 3;
/// The share of columns whose rate is usual; a rate so many times above that is cut off, and how much room there is above it, then.
const USUAL: f64 = 0.9;
const PEAK: f64 = 3.0;
/// The largest share of a linear chart's height for usual values.
const HEIGHT: f64 = 0.8;

/// Draws a rule with a title on its left, and `marks` from the chart's first column on. On its right is the first of
/// `notes` that fits beside them.
pub(super) fn rule(canvas: &mut Buffer, area: Rect, title: &str, marks: &[(usize, char)], notes: &[Line]) {
    let (x, y, width) = (usize::from(area.x), usize::from(area.y), usize::from(area.width));
    put(canvas, x, y, Role::Faint, &"─".repeat(width));
    let mut taken = 0;
    if columns::width(title) + 4 <= width && !title.is_empty() {
        put(canvas, x + 1, y, Role::Faint, &format!(" {title} "));
        taken = columns::width(title) + 4;
    }
    for (column, mark) in marks {
        if BEFORE + column < width {
            put(canvas, x + BEFORE + column, y, Role::Warning, mark.encode_utf8(&mut [0; 4]));
            taken = taken.max(BEFORE + column + 1);
        }
    }
    if let Some(note) = notes.iter().find(|note| note.width() > 0 && taken + note.width() + 4 <= width) {
        let at = x + width - note.width() - 3;
        put(canvas, at, y, Role::Faint, " ");
        note.draw(canvas, at + 1, y, note.width());
        put(canvas, at + 1 + note.width(), y, Role::Faint, " ");
    }
}

/// Draws the 99th percentile by due time on a scale of powers of ten, and how long calls wait that have not ended.
pub(super) fn times(canvas: &mut Buffer, area: Rect, shown: &[Column]) {
    let rows = usize::from(area.height);
    // How fast calls are refused is no time to draw.
    let p99 = |column: &Column| column.p99_ns.filter(|_| !column.is_lost);
    let all = shown.iter().flat_map(|column| [p99(column), column.waited_ns]).flatten();
    let Some(scale) = Scale::logarithmic(all).map(|scale| scale.of_at_least(DECADES)) else { return };
    for (row, ns) in scale.decades(rows) {
        label(canvas, area, row, &ExactDuration(ns).to_string());
    }
    for (place, column) in shown.iter().enumerate() {
        let x = usize::from(area.x) + BEFORE + place;
        let bar = p99(column).map_or(0, |ns| scale.eighths(ns, rows));
        let shade = column.waited_ns.map_or(0, |ns| scale.eighths(ns, rows));
        bars(canvas, area, x, &[(bar, Role::Chart)], shade.div_ceil(8));
        if column.is_lost {
            put(canvas, x, usize::from(area.y) + rows.saturating_sub(1), Role::Bad, "×");
        }
    }
}

/// Draws calls a second by when they ended, those without success on top, against the due rate.
pub(super) fn rates(canvas: &mut Buffer, area: Rect, shown: &[Column]) {
    let rows = usize::from(area.height);
    let all = |column: &Column| column.ended.map(|(ok, not_ok)| ok + not_ok);
    let usual = chart::usual(shown.iter().filter_map(all), USUAL).unwrap_or(0.0);
    let planned = shown.iter().filter_map(|column| column.planned).fold(0.0, f64::max);
    let most = shown.iter().filter_map(all).fold(0.0, f64::max);
    let is_cut = usual > 0.0 && most > usual * PEAK;
    let needed = if is_cut { usual } else { most }.max(planned);
    if needed <= 0.0 {
        return;
    }
    let full = round(needed / HEIGHT);
    let eighths = |value: f64| ((value / full * 8.0 * rows as f64).round() as usize).min(8 * rows);
    label(canvas, area, rows.saturating_sub(1), &format!("{}/s", Number(full)));
    label(canvas, area, 0, "0");
    for (place, column) in shown.iter().enumerate() {
        let x = usize::from(area.x) + BEFORE + place;
        if let Some(planned) = column.planned {
            let row = (eighths(planned).saturating_sub(1) / 8).min(rows.saturating_sub(1));
            let mark = if column.ended.is_some() { "┄" } else { "·" };
            put(canvas, x, usize::from(area.y) + rows - 1 - row, Role::Faint, mark);
        }
        let (ok, not_ok) = column.ended.unwrap_or_default();
        let seen = |value: f64| if value > 0.0 { eighths(value).max(1) } else { 0 };
        bars(canvas, area, x, &[(seen(ok + not_ok), Role::Bad), (seen(ok), Role::Chart)], 0);
    }
    if is_cut {
        peak(canvas, area, shown, most);
    }
}

/// Names the rate of a column that is higher than the chart, beside it.
fn peak(canvas: &mut Buffer, area: Rect, shown: &[Column], most: f64) {
    let is_peak = |column: &Column| column.ended.is_some_and(|(ok, not_ok)| (ok + not_ok) >= most);
    let Some(place) = shown.iter().position(is_peak) else { return };
    let text = format!("↑ {}/s", Number(most));
    let width = columns::width(&text);
    let x = usize::from(area.x) + BEFORE + place;
    let right = usize::from(area.x) + usize::from(area.width);
    let at = if x + 1 + width <= right { x + 1 } else { x.saturating_sub(width) };
    put(canvas, at, area.y.into(), Role::Faint, &text);
}

/// Draws how many calls wait.
pub(super) fn waiting(canvas: &mut Buffer, area: Rect, shown: &[Column]) {
    let rows = usize::from(area.height);
    let most = shown.iter().map(|column| column.waiting).fold(0.0, f64::max);
    // A few calls are always under way.
    let full = round(most.max(10.0));
    label(canvas, area, rows.saturating_sub(1), &count(full as u64));
    label(canvas, area, 0, "0");
    for (place, column) in shown.iter().enumerate() {
        let height = (column.waiting / full * 8.0 * rows as f64).round() as usize;
        bars(canvas, area, usize::from(area.x) + BEFORE + place, &[(height, Role::Warning)], 0);
    }
}

/// Draws the times of the axis below charts of this many columns.
pub(super) fn axis(canvas: &mut Buffer, area: Rect, from_ns: u64, to_ns: u64) {
    /// The distances of labels, in seconds.
    const STEPS: [u64; 17] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
    /// The columns of a label with the gap after it.
    const EACH: u64 = 11;
    let width = u64::from(area.width).saturating_sub(BEFORE as u64);
    let span = to_ns - from_ns;
    let fits = |step: &u64| u128::from(step * brunt_record::SECOND_NS) * u128::from(width) >= u128::from(EACH * span);
    let step = STEPS.into_iter().find(fits).unwrap_or(86400) * brunt_record::SECOND_NS;
    let place = |ns: u64| (u128::from(ns - from_ns) * u128::from(width) / u128::from(span.max(1))) as usize;
    let end = Clock(to_ns).to_string();
    let end_at = (width as usize).saturating_sub(end.len());
    let mut ns = from_ns.div_ceil(step) * step;
    while ns < to_ns {
        let text = Clock(ns).to_string();
        if place(ns) + text.len() < end_at {
            put(canvas, usize::from(area.x) + BEFORE + place(ns), area.y.into(), Role::Faint, &text);
        }
        ns += step;
    }
    put(canvas, usize::from(area.x) + BEFORE + end_at, area.y.into(), Role::Faint, &end);
}

/// Draws the bars of one column, each in eighths of a row, the first behind the others, and a shade above them up to
/// row `shade`.
fn bars(canvas: &mut Buffer, area: Rect, x: usize, bars: &[(usize, Role)], shade: usize) {
    let rows = usize::from(area.height);
    for row in 0..rows {
        let y = usize::from(area.y) + rows - 1 - row;
        for (place, (height, role)) in bars.iter().enumerate() {
            let Some(part) = height.saturating_sub(8 * row).min(8).checked_sub(1) else { continue };
            let block = BLOCKS.get(part).copied().unwrap_or(' ');
            // A bar behind another differs from it even without colour.
            let is_behind = place + 1 < bars.len();
            let block = if is_behind { '▒' } else { block };
            put(canvas, x, y, *role, block.encode_utf8(&mut [0; 4]));
        }
        if row < shade && bars.iter().all(|(height, _)| *height <= 8 * row) {
            put(canvas, x, y, Role::Warning, "░");
        }
    }
}

/// Draws the label of a row of the scale; rows are counted from the lowest.
fn label(canvas: &mut Buffer, area: Rect, row: usize, text: &str) {
    let rows = usize::from(area.height);
    let Some(y) = (rows.saturating_sub(1)).checked_sub(row) else { return };
    let text = columns::padded_left(text, BEFORE - 1);
    put(canvas, area.x.into(), usize::from(area.y) + y, Role::Faint, &text);
}

/// The next number that people count by.
fn round(value: f64) -> f64 {
    const STEPS: [f64; 10] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];
    let power = 10_f64.powf(value.max(1e-9).log10().floor());
    let step = STEPS.into_iter().find(|step| step * power >= value * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        let rounded = [0.7, 1.0, 3.0, 501.0, 626.0, 999.0, 12_345.0].map(round);
        let expected = [0.8, 1.0, 3.0, 600.0, 800.0, 1000.0, 15_000.0];
        assert!(rounded.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-9), "{rounded:?}");
    }
}
