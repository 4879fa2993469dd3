//! The number of calls by response time: those that are ok upwards, the others downwards on a scale of their own.

use std::collections::BTreeMap;

use brunt_plan::units::Duration;
use brunt_record::catalogue::{Timing, Timings};

use super::super::super::over_time::Limit;
use crate::markup::Html;
use crate::numbers::{count, counted, percent};
use crate::page::{ACROSS, Label, Mark, Panel, Plots, Point, Scale, Unit};

/// The number of bars of the logarithmic histogram for each doubling of the time.
const BARS_AN_OCTAVE: f64 = 8.0;
/// The number of bars of the linear histogram.
const BARS: f64 = 60.0;
/// The share of calls in the linear histogram: the slowest would leave no room for the others.
const SHOWN: f64 = 0.995;
const OK: f64 = 120.0;
const NOT_OK: f64 = 44.0;
const ROOM: f64 = 1.08;
/// How far beyond the times a limit may lie and still be drawn.
const NEAR: f64 = 10.0;

/// Calls by response time, in nanoseconds: their number, and the number of those that were not ok.
#[derive(Debug)]
pub(super) struct Histogram(BTreeMap<u64, (u64, u64)>);

/// A bar: from when to when, how many calls were ok, and how many were not.
#[derive(Debug, Clone, Copy)]
struct Bar {
    from: f64,
    to: f64,
    ok: u64,
    not_ok: u64,
}

impl Histogram {
    /// The histogram of response times; `None` where no call ended.
    pub(super) fn of_calls(times: &Timings) -> Option<Self> {
        let mut all = BTreeMap::<u64, (u64, u64)>::new();
        for times in [times.known(Timing::Response), times.bounds(Timing::Response)] {
            times.values().for_each(|(ns, n)| all.entry(ns.max(1)).or_default().0 += n);
        }
        for times in [times.known(Timing::Failed), times.known(Timing::Refused), times.bounds(Timing::Response)] {
            times.values().for_each(|(ns, n)| all.entry(ns.max(1)).or_default().1 += n);
        }
        (!all.is_empty()).then_some(Self(all))
    }

    /// Bars with edges by `bar_of` and `edge`.
    fn bars(&self, bar_of: impl Fn(u64) -> i64, edge: impl Fn(i64) -> f64) -> Vec<Bar> {
        let mut bars = BTreeMap::<i64, (u64, u64)>::new();
        for (ns, (all, not_ok)) in &self.0 {
            let bar = bars.entry(bar_of(*ns)).or_default();
            (bar.0, bar.1) = (bar.0 + all, bar.1 + not_ok);
        }
        // Own delays are taken off all calls' times, but not off those of unsuccessful calls, which are in the same bar
        // or a later one.
        let mut later = 0;
        for (all, not_ok) in bars.values_mut().rev() {
            later += *not_ok;
            *not_ok = later.min(*all);
            later -= *not_ok;
        }
        let some = bars.into_iter().filter(|(_, (all, _))| *all > 0);
        some.map(|(at, (all, not_ok))| Bar { from: edge(at), to: edge(at + 1), ok: all - not_ok, not_ok }).collect()
    }

    fn logarithmic(&self) -> Vec<Bar> {
        let bar_of = |ns: u64| ((ns as f64).log2() * BARS_AN_OCTAVE).floor() as i64;
        self.bars(bar_of, |at| (at as f64 / BARS_AN_OCTAVE).exp2())
    }

    /// Bars as wide as each other, without the slowest calls.
    fn linear(&self) -> Vec<Bar> {
        let all: u64 = self.0.values().map(|(all, _)| all).sum();
        let mut seen = 0;
        let is_shown = |(_, (n, _)): &(&u64, &(u64, u64))| {
            let before = seen;
            seen += n;
            before as f64 <= all as f64 * SHOWN
        };
        let last = self.0.iter().take_while(is_shown).last().map_or(1, |(ns, _)| *ns);
        let first = self.0.keys().next().copied().unwrap_or(0);
        let width = ((last - first.min(last)) as f64 / BARS).max(1.0);
        let bars = self.bars(|ns| ((ns - first) as f64 / width).floor() as i64, |at| first as f64 + at as f64 * width);
        bars.into_iter().filter(|bar| bar.from <= last as f64).collect()
    }

    /// The drawings with a logarithmic and a linear axis; buttons on the page switch between them.
    pub(super) fn write(&self, html: &mut Html, limits: &[Limit]) {
        let (logarithmic, linear) = (self.logarithmic(), self.linear());
        let counts = logarithmic.iter().fold((0, 0), |(ok, not_ok), bar| (ok + bar.ok, not_ok + bar.not_ok));
        html.raw("<figure id=\"histogram\"><figcaption><h3>Histogram of response times</h3><p class=\"faint\">");
        html.text(&in_words(&logarithmic, counts, limits)).raw("</p></figcaption>");
        html.raw("<fieldset class=\"choice\"><legend class=\"visually-hidden\">scale of times</legend><input type=\"radio\" name=\"histogram-scale\" id=\"histogram-log\" checked><label for=\"histogram-log\">logarithmic</label> <input type=\"radio\" name=\"histogram-scale\" id=\"histogram-linear\"><label for=\"histogram-linear\">linear</label></fieldset>");
        let ends = |bars: &[Bar]| (bars.first().map_or(1.0, |bar| bar.from), bars.last().map_or(2.0, |bar| bar.to));
        let (low, high) = ends(&logarithmic);
        let near: Vec<_> = limits
            .iter()
            .filter(|limit| (low / NEAR..=high * NEAR).contains(&limit.ns))
            .map(|limit| limit.ns)
            .collect();
        let low = near.iter().map(|ns| ns / 1.1).fold(low, f64::min);
        let high = near.iter().map(|ns| ns * 1.1).fold(high, f64::max);
        html.raw("<div class=\"log\">");
        draw("histogram-drawn", &logarithmic, Scale::logarithmic(low, high), counts, limits).write(html);
        html.raw("</div><div class=\"linear\">");
        let (low, high) = ends(&linear);
        draw("histogram-drawn-linear", &linear, Scale::linear(low, high), counts, limits).write(html);
        let shown: u64 = linear.iter().map(|bar| bar.ok + bar.not_ok).sum();
        let beyond = (counts.0 + counts.1).saturating_sub(shown);
        if beyond > 0 {
            html.raw("<p class=\"faint\">").text(&counted(beyond, "call")).raw(" took longer than is shown</p>");
        }
        html.raw("</div></figure>");
    }

    /// The bars as a file.
    pub(super) fn csv(&self) -> String {
        let line = |bar: &Bar| format!("{:.0},{:.0},{},{}\n", bar.from, bar.to, bar.ok, bar.not_ok);
        "from_ns,to_ns,ok,not_ok\n".to_owned() + &self.logarithmic().iter().map(line).collect::<String>()
    }
}

fn range(bar: &Bar) -> String {
    format!("{} to {}", Duration(bar.from.round() as u64), Duration(bar.to.round() as u64))
}

/// The fewest bars side by side that hold more than half of the calls, as a range: what most calls took.
fn most_calls(bars: &[Bar]) -> Option<String> {
    let calls = |bars: &[Bar]| bars.iter().map(|bar| bar.ok + bar.not_ok).sum::<u64>();
    let all = calls(bars);
    let fullest = (1..=bars.len()).find_map(|count| {
        let stretches = bars.windows(count).filter(|stretch| 2 * calls(stretch) > all);
        stretches.max_by_key(|stretch| calls(stretch))
    })?;
    let (first, last) = (fullest.first()?, fullest.last()?);
    Some(format!("{} to {}", Duration(first.from.round() as u64), Duration(last.to.round() as u64)))
}

fn in_words(bars: &[Bar], (ok, not_ok): (u64, u64), limits: &[Limit]) -> String {
    let bad = if not_ok > 0 {
        format!(", {} of them not ok (drawn below zero, on their own scale)", count(not_ok))
    } else {
        String::new()
    };
    let most = most_calls(bars).map_or_else(String::new, |range| format!("; most frequent: {range}"));
    let sentence = format!("{}{bad}{most}", counted(ok + not_ok, "call"));
    limits.iter().fold(sentence, |sentence, limit| format!("{sentence}; {}", limit.words))
}

fn draw(id: &str, bars: &[Bar], scale: Scale, (ok, not_ok): (u64, u64), limits: &[Limit]) -> Plots {
    let x = |ns: f64| scale.share(ns) * ACROSS;
    let most = |calls: fn(&Bar) -> u64| bars.iter().map(calls).max().unwrap_or(0);
    let (most_ok, most_not_ok) = (most(|bar| bar.ok), most(|bar| bar.not_ok));
    let below = match (most_ok > 0, most_not_ok > 0) {
        (true, true) => NOT_OK,
        (false, true) => OK,
        _ => 0.0,
    };
    let above = if most_ok > 0 { OK } else { 0.0 };
    let mut panel = Panel { height: above + below, ..Panel::default() };
    let up = |calls: f64| above * (1.0 - calls / (most_ok as f64 * ROOM).max(1.0));
    let down = |calls: f64| above + below * calls / (most_not_ok as f64 * ROOM).max(1.0);
    panel.lines.push((above, "0".to_owned()));
    let round = |most: u64, at_most| {
        let values = Scale::linear(0.0, most as f64).round(at_most);
        values.into_iter().filter(move |n| *n >= 1.0 && *n <= most as f64)
    };
    panel.lines.extend(round(most_ok, 2).map(|n| (up(n), Unit::Count.tick(n))));
    panel.lines.extend(round(most_not_ok, 1).map(|n| (down(n), Unit::Count.tick(n))));
    // A bar of few calls stays visible beside one of many.
    let high = |calls: f64| (up(calls) - above).min(-1.0);
    let deep = |calls: f64| (down(calls) - above).max(2.0);
    for (class, calls, height) in [
        ("bar", (|bar: &Bar| bar.ok) as fn(&Bar) -> u64, &high as &dyn Fn(f64) -> f64),
        ("failed", |bar| bar.not_ok, &deep),
    ] {
        panel.plot.raw("<path class=\"").raw(class).raw("\" d=\"");
        for bar in bars.iter().filter(|bar| calls(bar) > 0) {
            panel
                .plot
                .raw("M")
                .place(x(bar.from))
                .raw(" ")
                .place(above)
                .raw("H")
                .place(x(bar.to))
                .raw("v")
                .place(height(calls(bar) as f64));
            panel.plot.raw("H").place(x(bar.from)).raw("z");
        }
        panel.plot.raw("\"/>");
    }
    if ok > 0 {
        panel.labels.push(Label { class: "blue", y: above / 2.0, text: format!("{} ok", count(ok)) });
    }
    if not_ok > 0 {
        panel.labels.push(Label { class: "orange", y: above + below / 2.0, text: format!("{} not ok", count(not_ok)) });
    }
    let all = (ok + not_ok).max(1) as f64;
    let points = bars.iter().map(|bar| {
        let not_ok = if bar.not_ok > 0 { format!(", {} not ok", counted(bar.not_ok, "call")) } else { String::new() };
        let share = percent((bar.ok + bar.not_ok) as f64 / all);
        Point {
            from: x(bar.from),
            to: x(bar.to),
            words: format!("{}: {} ok{not_ok}, {share} of all", range(bar), counted(bar.ok, "call")),
        }
    });
    let marks = limits.iter().filter(|limit| scale.holds(limit.ns)).map(|limit| Mark {
        class: if limit.held { "limit" } else { "limit lost" },
        from: x(limit.ns),
        to: x(limit.ns),
        words: format!("{} {}", if limit.held { "✓" } else { "✗" }, limit.words),
    });
    Plots {
        id: id.to_owned(),
        name: "histogram of response times".to_owned(),
        words: in_words(bars, (ok, not_ok), limits),
        ticks: scale.round(8).into_iter().map(|ns| (x(ns), Unit::Ns.tick(ns))).collect(),
        leads_to: Vec::new(),
        marks: marks.collect(),
        points: points.collect(),
        panels: vec![panel],
        span_ns: None,
        is_narrow: true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn most_calls_are_more_than_half_and_no_shorter_range_has_as_many(
            calls in prop::collection::vec((0_u64..9, 0_u64..3), 1..40),
        ) {
            let bars: Vec<_> = (0_u32..)
                .zip(&calls)
                .map(|(at, (ok, not_ok))| {
                    let from = f64::from(at + 1) * 1e6;
                    Bar { from, to: from + 1e6, ok: *ok, not_ok: *not_ok }
                })
                .collect();
            let all: u64 = calls.iter().map(|(ok, not_ok)| ok + not_ok).sum();
            let said = most_calls(&bars);
            prop_assert_eq!(said.is_some(), all > 0);
            let Some(said) = said else { return Ok(()) };
            let ends: Vec<f64> = said.split(" to ").map(|end| end.trim_end_matches("ms").parse().unwrap()).collect();
            let within = |from: f64, to: f64| -> u64 {
                let inside = bars.iter().filter(|bar| bar.from >= from * 1e6 - 1.0 && bar.to <= to * 1e6 + 1.0);
                inside.map(|bar| bar.ok + bar.not_ok).sum()
            };
            prop_assert!(2 * within(ends[0], ends[1]) > all, "{said}: {} of {all}", within(ends[0], ends[1]));
            let shorter = ends[1] - ends[0] - 1.0;
            for bar in &bars {
                let from = bar.from / 1e6;
                prop_assert!(2 * within(from, from + shorter) <= all, "{said}, and {from} is enough");
            }
        }
    }
}
