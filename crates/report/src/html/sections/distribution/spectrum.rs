//! The latency spectrum: the time that all but a share of the calls did not exceed, with ever more room for the slowest.

use brunt_judge::summary::Summary;
use brunt_record::catalogue::{Timing, Timings};
use brunt_record::histogram::{AtLeast, Censored};

use super::super::super::first_screen::within;
use crate::csv::Row;
use crate::markup::Html;
use crate::numbers::{duration, percent};
use crate::page::{ACROSS, Label, Panel, Plots, Point, Scale, Unit, percentile};

/// How many points a spectrum has for each tenth, hundredth, … of the calls.
const POINTS_A_DECADE: i32 = 16;
/// The most decades of a spectrum: no run has more calls than 10⁹ · 1000.
const DECADES: i32 = 12;
const HEIGHT: f64 = 164.0;
const ROOM: f64 = 1.2;
/// Classes of lines, which differ even without colours.
const CLASSES: [&str; 5] = ["one", "two", "three", "four", "five"];

/// `[share of calls that took longer, time]`, the share falling from 1; the last is one call in all, at the largest time.
type Spectrum = Vec<(f64, AtLeast<u64>)>;

/// The spectra of a run, the response time first.
#[derive(Debug)]
pub(super) struct Spectra {
    all: Vec<(&'static str, Spectrum)>,
    /// The uncertainty of the first one: shares of calls that took longer, and both ends.
    ends: Vec<(f64, u64, Option<u64>)>,
}

fn spectrum(times: &Censored) -> Option<Spectrum> {
    const MOST: usize = (POINTS_A_DECADE * DECADES) as usize;
    let tails: [f64; MOST] = std::array::from_fn(|i| 10_f64.powf(-(i as f64) / f64::from(POINTS_A_DECADE)));
    let largest = AtLeast { value: times.lower().max()?, at_least: !times.bounds.is_empty() };
    let last = 1.0 / times.count() as f64;
    let values = times.quantiles(tails.map(|tail| 1.0 - tail));
    let points = tails.iter().zip(values).take_while(|(tail, _)| **tail > last);
    Some(points.filter_map(|(tail, value)| Some((*tail, value?))).chain([(last, largest)]).collect())
}

impl Spectra {
    /// The spectra of a run whose times are shown as `times`; `None` where no call ended.
    pub(super) fn new(summary: &Summary, times: &Timings) -> Option<Self> {
        let others = [
            ("service", Timing::Service),
            ("first byte", Timing::FirstByte),
            ("first message", Timing::FirstMessage),
            ("message gap", Timing::MessageGap),
            ("lag", Timing::Lag),
        ];
        let others = others.iter().map(|(name, timing)| (*name, spectrum(times.get(*timing))));
        let response = ("response", spectrum(&summary.total.response_times())?);
        let others = others.filter_map(|(name, spectrum)| Some((name, spectrum?)));
        let all = std::iter::once(response).chain(others).collect();
        let quantiles = summary.times.response.as_ref().map_or(&[][..], |times| times.quantiles.as_slice());
        let ends = quantiles.iter().filter_map(|quantile| {
            let interval = quantile.interval?;
            Some((1.0 - quantile.share_ratio, interval.low_ns.max(1), interval.high_ns))
        });
        Some(Self { ends: ends.collect(), all })
    }

    /// The position of a share, by its logarithm.
    fn x(&self, tail: f64) -> f64 {
        let last = self.all.iter().filter_map(|(_, points)| points.last()).map(|(tail, _)| *tail).fold(0.1, f64::min);
        (1.0 / tail).log10() / (1.0 / last).log10() * ACROSS
    }

    pub(super) fn write(&self, html: &mut Html) {
        let times = || self.all.iter().flat_map(|(_, points)| points).map(|(_, time)| time.value.max(1));
        let (low, high) = times().fold((u64::MAX, 1), |(low, high), ns| (low.min(ns), high.max(ns)));
        let scale = Scale::logarithmic(low as f64 / ROOM, high as f64 * ROOM);
        let y = |ns: u64| HEIGHT * (1.0 - scale.share(ns.max(1) as f64).clamp(0.0, 1.0));
        let mut panel = Panel { height: HEIGHT, ..Panel::default() };
        panel.lines = scale.round(9).into_iter().map(|ns| (y(ns as u64), Unit::Ns.tick(ns))).collect();
        self.band(&mut panel.plot, y);
        for (class, (name, points)) in CLASSES.iter().zip(&self.all) {
            panel.plot.raw("<path class=\"line ").raw(class).raw("\" d=\"");
            for (nth, (tail, time)) in points.iter().enumerate() {
                panel.plot.raw(if nth == 0 { "M" } else { "L" }).place(self.x(*tail)).raw(" ").place(y(time.value));
            }
            panel.plot.raw("\"/>");
            if let Some((_, time)) = points.last() {
                panel.labels.push(Label { class, y: y(time.value), text: format!("{name} {}", duration(*time)) });
            }
        }
        let words = self.in_words();
        html.raw("<figure id=\"spectrum\"><figcaption><h3>Latency spectrum</h3><p class=\"faint\">").text(&words);
        html.raw("</p></figcaption>");
        let plots = Plots {
            id: "spectrum-drawn".to_owned(),
            name: "latency spectrum".to_owned(),
            words,
            ticks: self.ticks(),
            points: self.points(),
            panels: vec![panel],
            is_narrow: true,
            ..Plots::default()
        };
        plots.write(html);
        html.raw("</figure>");
    }

    /// The uncertainty of the first one. A share without an upper end has no band.
    fn band(&self, plot: &mut Html, y: impl Fn(u64) -> f64) {
        let known: Vec<_> = self
            .ends
            .iter()
            .filter(|(tail, ..)| self.x(*tail) <= ACROSS)
            .filter_map(|(tail, low, high)| Some((self.x(*tail), *low, (*high)?)))
            .collect();
        if known.len() < 2 {
            return;
        }
        plot.raw("<path class=\"band-of-one\" d=\"");
        let (upper, lower) =
            (known.iter().map(|(x, _, high)| (x, high)), known.iter().rev().map(|(x, low, _)| (x, low)));
        for (nth, (x, ns)) in upper.chain(lower).enumerate() {
            plot.raw(if nth == 0 { "M" } else { "L" }).place(*x).raw(" ").place(y(*ns));
        }
        plot.raw("z\"/>");
    }

    fn in_words(&self) -> String {
        let points = self.all.first().map_or(&[][..], |(_, points)| points.as_slice());
        let at = |tail: f64| points.iter().find(|(known, _)| *known <= tail).map(|(_, time)| *time);
        let named = [("p50", 0.5), ("p99", 0.01), ("p99.9", 0.001)].into_iter();
        let named = named.filter_map(|(name, tail)| Some(format!("{name} {}", duration(at(tail)?))));
        let max = points.last().map(|(_, time)| format!("max {}", duration(*time)));
        format!("response time by percentile: {}", named.chain(max).collect::<Vec<_>>().join(", "))
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let tails = std::iter::once(0.5).chain((0..=DECADES).map(|power| 10_f64.powi(-power)));
        let mut ticks: Vec<_> = tails.map(|tail| (self.x(tail), percentile(tail))).collect();
        ticks.retain(|(x, _)| *x <= ACROSS * 1.001);
        ticks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        ticks
    }

    fn points(&self) -> Vec<Point> {
        let Some((_, first)) = self.all.first() else { return Vec::new() };
        let mut from = 0.0;
        let point = |(tail, _): &(f64, AtLeast<u64>)| {
            let x = self.x(*tail);
            let times = self.all.iter().enumerate().filter_map(|(nth, (name, points))| {
                let (_, time) = points.iter().find(|(known, _)| (known / tail - 1.0).abs() < 1e-6)?;
                let ends = self.ends.iter().filter(|_| nth == 0).find(|(known, ..)| (known / tail - 1.0).abs() < 1e-6);
                let off = ends.map_or_else(String::new, |(_, low, high)| within(*low, *high));
                let off = if off.is_empty() { off } else { format!(" ({off})") };
                Some(format!("{name} {}{off}", duration(*time)))
            });
            let words = format!(
                "{} ({} took longer), {}",
                percentile(*tail),
                percent(*tail),
                times.collect::<Vec<_>>().join(", ")
            );
            let point = Point { from, to: x, words };
            from = x;
            point
        };
        first.iter().map(point).collect()
    }

    /// The points as a file.
    pub(super) fn csv(&self) -> String {
        let mut text = "time,share_longer_ratio,value_ns,at_least\n".to_owned();
        for (name, points) in &self.all {
            for (tail, time) in points {
                let mut row = Row::default();
                row.put(name);
                row.put(format_args!("{tail:.9}"));
                row.put(time.value);
                row.put(u8::from(time.at_least));
                text.push_str(&row.line());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::histogram::Histogram;

    use super::*;

    #[test]
    fn a_spectrum_goes_from_the_smallest_to_the_largest() {
        let mut known = Histogram::new();
        (1..=1000).for_each(|ms| known.record(ms * 1_000_000));
        let points = spectrum(&Censored { known, ..Censored::default() }).unwrap();
        assert_eq!(points.len(), 49);
        assert!(points.windows(2).all(|two| two[0].0 > two[1].0 && two[0].1.value <= two[1].1.value));
        assert_eq!(points[48], (0.001, AtLeast { value: 1_000_000_000, at_least: false }));
        // One in ten took longer than 900 ms.
        assert!((points[16].1.value as f64 / 900e6 - 1.0).abs() < 0.001, "{:?}", points[16]);
        assert!(spectrum(&Censored::default()).is_none());
    }
}
