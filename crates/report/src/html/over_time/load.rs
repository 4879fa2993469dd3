//! The load, and brunt's own health: the busiest worker, lag, open connections.

use super::super::stretches::Stretch;
use super::Moment;
use super::flow::{most, round};
use crate::numbers::{count, percent};
use crate::page::{Across, Label, Panel, Plots, Scale, Unit, steps};

const HEIGHT: f64 = 60.0;
const ROOM: f64 = 1.15;
/// The range of the axis of lag, in nanoseconds.
const SHORTEST_LAG: f64 = 1e3;
const LONGEST_LAG: f64 = 1e6;

/// Its panels; empty where nothing was measured.
pub(in crate::html) fn load(stretches: &[Stretch], moments: &[Moment]) -> Plots {
    let span = stretches.last().map_or(0, |stretch| stretch.to_ns);
    if span == 0 {
        return Plots::default();
    }
    let axis = Across { span_ns: span };
    let panels =
        [Some(cpu(stretches, moments, axis)), lag(stretches, moments, axis), connections(stretches, moments, axis)];
    let panels: Vec<_> = panels.into_iter().flatten().collect();
    let words = panels.iter().flat_map(|panel| &panel.labels).map(|label| label.text.as_str()).collect::<Vec<_>>();
    Plots {
        id: "load-over-time".to_owned(),
        name: "the load and brunt itself over time".to_owned(),
        words: words.join(", "),
        ticks: axis.ticks(),
        span_ns: Some(span),
        panels,
        ..Plots::default()
    }
}

/// Draws a line of values over the stretches.
fn line(
    panel: &mut Panel,
    class: &'static str,
    stretches: &[Stretch],
    axis: Across,
    ys: impl Iterator<Item = Option<f64>>,
) {
    panel.plot.raw("<path class=\"").raw(class).raw("\" d=\"");
    steps(
        &mut panel.plot,
        stretches.iter().zip(ys).map(|(stretch, y)| (axis.x(stretch.from_ns), axis.x(stretch.to_ns), y)),
    );
    panel.plot.raw("\"/>");
}

fn cpu(stretches: &[Stretch], moments: &[Moment], axis: Across) -> Panel {
    let y = |share: f64| HEIGHT * (1.0 - share.min(1.0));
    let [busiest, starved] = [|moment: &Moment| moment.busiest_worker, |moment: &Moment| moment.most_starved_worker]
        .map(|share| moments.iter().map(share).collect::<Vec<_>>());
    let mut panel = Panel {
        title: "brunt's workers".to_owned(),
        note: "CPU of the busiest, and the longest wait for one".to_owned(),
        height: HEIGHT,
        ..Panel::default()
    };
    panel.lines = [0.0, 0.5, 1.0].map(|share| (y(share), percent(share))).to_vec();
    line(&mut panel, "ok-line", stretches, axis, busiest.iter().map(|share| Some(y(*share))));
    let [busiest, starved_most] = [most(&busiest), most(&starved)];
    panel.labels.push(Label { class: "blue", y: y(busiest), text: format!("CPU up to {}", percent(busiest)) });
    if starved_most > 0.0 {
        line(&mut panel, "not-ok-line", stretches, axis, starved.iter().map(|share| Some(y(*share))));
        let text = format!("waiting for a CPU up to {}", percent(starved_most));
        panel.labels.push(Label { class: "orange", y: y(starved_most), text });
    }
    panel
}

/// How late calls were sent, at the 99th percentile of each second.
fn lag(stretches: &[Stretch], moments: &[Moment], axis: Across) -> Option<Panel> {
    let most = moments.iter().filter_map(|moment| moment.lag_p99_ns).max()?;
    let scale = Scale::logarithmic(SHORTEST_LAG, LONGEST_LAG.max(most as f64 * ROOM));
    let y = |ns: f64| HEIGHT * (1.0 - scale.share(ns.max(scale.low)));
    let mut panel = Panel {
        title: "Lag p99".to_owned(),
        note: "from when a call could be sent to when it was".to_owned(),
        height: HEIGHT,
        ..Panel::default()
    };
    panel.lines = scale.round(4).into_iter().map(|ns| (y(ns), Unit::Ns.tick(ns))).collect();
    line(&mut panel, "p99", stretches, axis, moments.iter().map(|moment| moment.lag_p99_ns.map(|ns| y(ns as f64))));
    let text = format!("at most {}", brunt_plan::units::Duration(most));
    panel.labels.push(Label { class: "", y: y(most as f64), text });
    Some(panel)
}

fn connections(stretches: &[Stretch], moments: &[Moment], axis: Across) -> Option<Panel> {
    let open: Option<Vec<u64>> = moments.iter().map(|moment| moment.open_connections).collect();
    let open = open.filter(|open| !open.is_empty())?;
    let most = open.iter().copied().max().unwrap_or(0);
    let y = |n: f64| HEIGHT * (1.0 - n / (most as f64 * ROOM).max(1.0));
    let mut panel = Panel { title: "Open connections".to_owned(), height: HEIGHT, ..Panel::default() };
    panel.lines.push((HEIGHT, "0".to_owned()));
    panel.lines.extend(round(most as f64, 2).into_iter().filter(|n| *n >= 1.0).map(|n| (y(n), Unit::Count.tick(n))));
    line(&mut panel, "users", stretches, axis, open.iter().map(|n| Some(y(*n as f64))));
    let least = open.iter().copied().min().unwrap_or(0);
    let text = if least == most {
        format!("{} throughout", count(most))
    } else {
        format!("{} to {}", count(least), count(most))
    };
    panel.labels.push(Label { class: "", y: y(most as f64), text });
    Some(panel)
}
