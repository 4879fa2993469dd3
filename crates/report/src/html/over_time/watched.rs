//! Figures watched beside the run: a panel for each, on the run's axis of time. A second without a value is a gap.

use brunt_judge::watched::WatchedSummary;
use brunt_plan::watch::shown_value;

use super::super::shown::Shown;
use super::Moment;
use super::flow::round;
use crate::numbers::{clean, count};
use crate::page::{Across, Label, Panel, steps};

/// The most panels; further figures are in the table and in results.
const MOST: usize = 12;
const HEIGHT: f64 = 48.0;
/// The room above the greatest value.
const ROOM: f64 = 1.15;

/// The panels of watched figures.
pub(super) fn panels(shown: Shown<'_>, axis: Across) -> impl Iterator<Item = Panel> {
    shown.summary.watched.iter().take(MOST).filter_map(move |figure| panel(shown, figure, axis))
}

fn panel(shown: Shown<'_>, figure: &WatchedSummary, axis: Across) -> Option<Panel> {
    let (Some(least), Some(most), Some(mean)) = (figure.min, figure.max, figure.mean) else {
        return (figure.missed_seconds > 0).then(|| Panel {
            title: format!("Watched: {}", clean(&figure.name)),
            note: format!("no value: {}", clean(&figure.problem)),
            height: 1.0,
            ..Panel::default()
        });
    };
    let low = least.min(0.0);
    let span = ((most - low) * ROOM).max(f64::MIN_POSITIVE);
    let y = |value: f64| HEIGHT * (1.0 - (value - low) / span).clamp(0.0, 1.0);
    let mut panel = Panel {
        title: format!("Watched: {}", clean(&figure.name)),
        note: clean(&figure.source).into_owned(),
        height: HEIGHT,
        ..Panel::default()
    };
    panel.lines.push((y(0.0), "0".to_owned()));
    panel.lines.extend(round(most, 2).into_iter().map(|value| (y(value), shown_value(figure.unit, value))));
    panel.plot.raw("<path class=\"users\" d=\"");
    let values = shown.summary.run.series.points().iter().map(|point| {
        let to = (point.start_ns + point.length_ns).min(axis.span_ns);
        let value = point.watched.get(&figure.name).and_then(|value| value.mean());
        (axis.x(point.start_ns), axis.x(to), value.map(y))
    });
    steps(&mut panel.plot, values);
    panel.plot.raw("\"/>");
    let [mean, most] = [mean, most].map(|value| shown_value(figure.unit, value));
    panel.labels.push(Label { class: "", y: y(figure.max?), text: format!("mean {mean}, up to {most}") });
    if figure.missed_seconds > 0 {
        let text = format!("no value in {} s", count(figure.missed_seconds));
        panel.labels.push(Label { class: "orange", y: HEIGHT, text });
    }
    Some(panel)
}

/// The text for a moment: `cpu 93.5%, memory 12.0MB`.
pub(super) fn words(shown: Shown<'_>, moment: &Moment) -> impl Iterator<Item = String> {
    shown.summary.watched.iter().zip(&moment.watched).take(MOST).map(|(figure, value)| {
        let value = value.map_or("no value".to_owned(), |value| shown_value(figure.unit, value));
        format!("{} {value}", clean(&figure.name))
    })
}
