//! A comparison on its page: each difference with its interval and limit, the shift by percentile, and both sides over each other.

use brunt_decide::compare::{ComparedRun, ComparedRuns, Comparison, Difference, Metric, OwnMetric};
use brunt_decide::evidence::Evidence;
use brunt_decide::outline;

use super::super::cases::before_all;
use super::super::not_made::not_made;
use super::super::{comparison, leading};
use super::Content;
use super::drawing::{Axis, Chart, How, Line, Measured, Sign, csv, dot, plots, section};
use super::runs::{line, middle, narrow, one_in, over_time, spectrum};
use crate::markup::Html;
use crate::numbers::{clean, percent};
use crate::page::{Cell, Column, Scale, Section, Table, Unit, change};
use crate::style::Role;

const HEIGHT: f64 = 110.0;
/// An interval's drawing, in its own units.
const WIDTH: f64 = 280.0;
const MIDDLE: f64 = 11.0;
/// An interval that extends this many times as far as the usual one does not set the scale.
const OUTLIER: f64 = 6.0;

pub(super) fn content(compared: &ComparedRuns) -> Content {
    let mut how = vec![format!("A: {}", compared.a), format!("B: {}", compared.b)];
    how.push(compared.how.clone());
    let mut content = Content { title: "compare".to_owned(), how, ..Content::default() };
    let failed = before_all(compared).into_iter();
    content.found.extend(failed.map(|(sign, sentence)| {
        // What cannot be judged is a doubt, and no failure of B.
        (format!("{sign} {sentence}"), if sign == "?" { Role::Warning } else { Role::Bad })
    }));
    content.found.extend(not_made(&compared.lacking).map(|sentence| (sentence, Role::Warning)));
    content.found.extend(comparison::found(compared).into_iter().map(|sentence| (sentence, Role::Strong)));
    content.found.extend(comparison::notes(compared).into_iter().map(|note| (note, Role::Warning)));
    // Those that are met are the headline.
    content.found.extend(compared.conditions.iter().filter(|condition| !condition.failed).map(|condition| {
        let (sign, role) = if condition.undecided.is_some() { ("?", Role::Warning) } else { ("✓", Role::Good) };
        (format!("{sign} not {}: {}", condition.condition, comparison::told(condition)), role)
    }));
    let Some(found) = &compared.comparison else { return content };
    content.found.extend(comparison::left_out(found).map(|left_out| (left_out, Role::Faint)));
    content.sections.push(differences(compared, found));
    content.sections.extend(shift(compared));
    content.sections.extend(over_rounds(compared));
    content.sections.push(both(compared));
    content
}

/// A difference to draw.
struct Drawn {
    is_more_better: bool,
    ratio: f64,
    low_ratio: f64,
    high_ratio: f64,
    differs: bool,
    /// Its ends in words.
    words: [String; 2],
}

impl Drawn {
    fn of_metric(d: &Difference) -> Self {
        Self {
            is_more_better: d.metric.is_rate(),
            ratio: d.ratio,
            low_ratio: d.low_ratio,
            high_ratio: d.high_ratio,
            differs: d.differs,
            words: [d.low_ratio, d.high_ratio].map(|ratio| in_words(d.metric, ratio)),
        }
    }

    fn of_own(d: &Difference<OwnMetric>) -> Self {
        Self {
            is_more_better: d.metric.is_more_better,
            ratio: d.ratio,
            low_ratio: d.low_ratio,
            high_ratio: d.high_ratio,
            differs: d.differs,
            words: [d.low_ratio, d.high_ratio].map(own_in_words),
        }
    }

    fn worse(&self, ratio: f64) -> f64 {
        worse(self.is_more_better, ratio)
    }
}

/// How much worse B is: above 1 it is worse, whatever the figure.
fn worse(is_more_better: bool, ratio: f64) -> f64 {
    if is_more_better { 2.0 - ratio } else { ratio }
}

/// `8.7% higher`.
fn own_in_words(ratio: f64) -> String {
    let words = if ratio < 1.0 { "lower" } else { "higher" };
    format!("{} {words}", change(ratio, 1).trim_start_matches(['+', '−']))
}

/// `8.7% slower`, `7.3% fewer`.
fn in_words(metric: Metric, ratio: f64) -> String {
    let words = match (metric.is_rate(), ratio < 1.0) {
        (true, true) => "fewer",
        (true, false) => "more",
        (false, true) => "faster",
        (false, false) => "slower",
    };
    format!("{} {words}", change(ratio, 1).trim_start_matches(['+', '−']))
}

/// Limits on ratios, by figure.
fn limits(compared: &ComparedRuns) -> Vec<(Metric, f64, bool)> {
    let limit = |result: &brunt_decide::compare::FailIfResult| {
        let (metric, ratio) = result.condition.limit_ratio()?;
        Some((metric, ratio, result.failed))
    };
    compared.conditions.iter().filter_map(limit).collect()
}

/// Each figure of A and B, and the interval of their ratio: what is worse lies to the right.
fn differences(compared: &ComparedRuns, found: &Comparison) -> Section {
    let limits = limits(compared);
    let scale = scale(found, &limits);
    let mut section = Section::new("differences", "Differences");
    let mut columns = vec![Column::words("figure")];
    columns.extend(["A", "B", "B against A", "95%", "p"].map(Column::figure));
    columns.push(Column::words(format!(
        "◀ B better · {} to {} · B worse ▶",
        change(scale.low, 0),
        change(scale.high, 0)
    )));
    let caption = "B over A, with 95% intervals; p with regard to how many figures are compared";
    let mut table = Table::new("differences", caption, columns);
    for d in &found.differences {
        let limit = limits.iter().find(|(metric, ..)| *metric == d.metric);
        let class = if limit.is_some_and(|(.., failed)| *failed) { "bad" } else { "" };
        let name = if class.is_empty() { d.metric.name().to_owned() } else { format!("✗ {}", d.metric.name()) };
        let seen = if d.differs { in_words(d.metric, d.ratio) } else { "no difference seen".to_owned() };
        let cell = Cell::sorted(seen, d.ratio).classed(if d.differs && class.is_empty() { "strong" } else { class });
        let cell = match limit {
            Some((_, ratio, _)) => cell.noted(format!("limit {}", change(*ratio, 1))),
            None => cell,
        };
        table.push(vec![
            Cell::new(name).classed(class),
            Cell::sorted(comparison::value(d.metric, d.a), d.a),
            Cell::sorted(comparison::value(d.metric, d.b), d.b),
            cell,
            Cell::new(format!("[{}, {}]", change(d.low_ratio, 1), change(d.high_ratio, 1))),
            Cell::new(comparison::probability(d.adjusted_p_value)),
            Cell::drawn(interval(&Drawn::of_metric(d), limit, scale)),
        ]);
    }
    for d in &found.own {
        let seen = if d.differs { own_in_words(d.ratio) } else { "no difference seen".to_owned() };
        table.push(vec![
            Cell::new(clean(&d.metric.name)),
            Cell::sorted(leading::shown(&d.metric.unit, d.a), d.a),
            Cell::sorted(leading::shown(&d.metric.unit, d.b), d.b),
            Cell::sorted(seen, d.ratio).classed(if d.differs { "strong" } else { "" }),
            Cell::new(format!("[{}, {}]", change(d.low_ratio, 1), change(d.high_ratio, 1))),
            Cell::new(comparison::probability(d.adjusted_p_value)),
            Cell::drawn(interval(&Drawn::of_own(d), None, scale)),
        ]);
    }
    if let Some(errors) = &found.errors {
        let points = |share: f64| format!("{:+.2}", share * 100.0);
        let seen = match (errors.differs, errors.difference > 0.0) {
            (false, _) => "no difference seen".to_owned(),
            (true, more) => format!(
                "{} points {}",
                points(errors.difference).trim_start_matches(['+', '-']),
                if more { "more" } else { "fewer" }
            ),
        };
        let class = if errors.differs && errors.difference > 0.0 { "bad" } else { "" };
        table.push(vec![
            Cell::new("failures"),
            Cell::sorted(percent(errors.a_ratio), errors.a_ratio),
            Cell::sorted(percent(errors.b_ratio), errors.b_ratio),
            Cell::sorted(seen, errors.difference).classed(class),
            Cell::new(format!("[{}, {}] points", points(errors.low), points(errors.high))),
            Cell::new(comparison::probability(errors.adjusted_p_value)),
            Cell::new(""),
        ]);
    }
    section.tools.push(table.csv());
    table.write(&mut section.body);
    section
}

/// A scale for all intervals. One that lies far from all others would leave no room for them: it ends at the edge.
fn scale(found: &Comparison, limits: &[(Metric, f64, bool)]) -> Scale {
    let of_metrics = found.differences.iter().map(Drawn::of_metric);
    let drawn: Vec<_> = of_metrics.chain(found.own.iter().map(Drawn::of_own)).collect();
    let ends = |d: &Drawn| [d.worse(d.low_ratio), d.worse(d.high_ratio)];
    let farthest = |d: &Drawn| ends(d).into_iter().map(|end| (end - 1.0).abs()).fold(0.0, f64::max);
    let mut sizes: Vec<f64> = drawn.iter().map(farthest).collect();
    sizes.sort_by(f64::total_cmp);
    let usual = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    let limits = limits.iter().map(|(metric, ratio, _)| worse(metric.is_rate(), *ratio));
    let most = limits.clone().map(|limit| (limit - 1.0).abs() * 1.6).fold((usual * OUTLIER).max(0.01), f64::max);
    let all = drawn.iter().flat_map(ends).map(|end| end.clamp(1.0 - most, 1.0 + most)).chain(limits);
    let (low, high) = all.fold((0.99, 1.01), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
    let room = (high - low) * 0.05;
    Scale::linear(low - room, high + room)
}

/// An interval on the scale of all, where no difference is, and the limit.
fn interval(d: &Drawn, limit: Option<&(Metric, f64, bool)>, scale: Scale) -> Html {
    let x = |ratio: f64| scale.share(d.worse(ratio)).clamp(0.0, 1.0) * WIDTH;
    let mut html = Html::default();
    html.raw("<svg class=\"interval\" viewBox=\"0 0 280 22\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
    let [low, high] = &d.words;
    html.text(&format!("{low} to {high}")).raw("\">");
    if let Some((_, ratio, _)) = limit {
        html.raw("<path class=\"beyond\" d=\"M")
            .place(x(*ratio))
            .raw(" 0V22H")
            .place(WIDTH)
            .raw("V0z\"/><path class=\"limit\" d=\"M");
        html.place(x(*ratio)).raw(" 0V22\"/>");
    }
    html.raw("<path class=\"zero\" d=\"M").place(x(1.0)).raw(" 0V22\"/>");
    let class = match limit {
        Some((.., true)) => "orange",
        _ if d.differs => "blue",
        _ => "faint",
    };
    html.raw("<path class=\"line ").raw(class).raw("\" d=\"M").place(x(d.low_ratio)).raw(" ").place(MIDDLE).raw("H");
    html.place(x(d.high_ratio));
    for end in [d.low_ratio, d.high_ratio] {
        html.raw("M").place(x(end)).raw(" ").place(MIDDLE - 5.0).raw("v10");
    }
    html.raw("\"/>");
    if scale.holds(d.worse(d.ratio)) {
        dot(&mut html, "dot", class, x(d.ratio), MIDDLE);
    } else {
        // Beyond the edge.
        let (tip, back) = if d.worse(d.ratio) < 1.0 { (0.0, 10.0) } else { (WIDTH, -10.0) };
        html.raw("<path class=\"line ")
            .raw(class)
            .raw("\" d=\"M")
            .place(tip + back)
            .raw(" ")
            .place(MIDDLE - 6.0)
            .raw("L");
        html.place(tip).raw(" ").place(MIDDLE).raw("L").place(tip + back).raw(" ").place(MIDDLE + 6.0).raw("\"/>");
    }
    html.raw("</svg>");
    html
}

/// The runs of a side.
fn runs(compared: &ComparedRuns, is_b: bool) -> Vec<&Evidence> {
    compared.runs.iter().filter(|run| run.is_b == is_b).map(|run| &run.evidence).collect()
}

/// The geometric mean over the runs of a side at each place, as in the table of figures.
fn mean_of(lists: &[Vec<Option<u64>>]) -> Vec<Option<f64>> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let at = |place: usize| {
        let logarithms: Vec<_> =
            lists.iter().filter_map(|list| Some((list.get(place).copied()??.max(1) as f64).ln())).collect();
        // A place that few runs reach would average other runs than its neighbours.
        let enough = logarithms.len() * 2 > lists.len();
        enough.then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
    };
    (0..longest).map(at).collect()
}

/// The response times of both sides by percentile: means over their runs.
fn by_percentile(compared: &ComparedRuns) -> [Vec<Measured>; 2] {
    [false, true].map(|is_b| {
        let lists: Vec<Vec<_>> =
            runs(compared, is_b).iter().map(|run| run.outline.tails_ns.iter().map(|ns| Some(*ns)).collect()).collect();
        let means = mean_of(&lists).into_iter().enumerate();
        means.filter_map(|(place, ns)| Some(Measured { x: 1.0 / outline::tail(place), y: ns? })).collect()
    })
}

/// How much slower B is at each percentile.
fn shift(compared: &ComparedRuns) -> Option<Section> {
    let [a, b] = by_percentile(compared);
    let places: Vec<_> = a.iter().zip(&b).map(|(a, b)| Measured { x: a.x, y: b.y / a.y.max(1.0) }).collect();
    if places.len() < 2 {
        return None;
    }
    let all = places.iter().map(|place| place.x);
    let mut axis = Axis::through(all, "", one_in);
    axis.scale.low = 1.0;
    let powers = std::iter::once(2.0).chain((0..=12).map(|power| 10_f64.powi(power)));
    axis.named = powers.filter(|calls| axis.scale.holds(*calls)).map(|calls| (calls, one_in(calls))).collect();
    axis.named.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let limits =
        limits(compared).into_iter().filter(|(metric, ..)| metric.percentile().is_some() && !metric.is_of_messages());
    let limits = limits.map(|(metric, ratio, _)| (ratio, format!("limit on {}", metric.name())));
    let charts = [Chart {
        title: "B over A".into(),
        note: "response times; above the line B is slower".to_owned(),
        unit: Unit::Change,
        is_logarithmic: false,
        height: HEIGHT,
        lines: vec![line("B over A", "blue", places)],
        limits: limits.collect(),
    }];
    let file = csv("shift", &axis, &charts);
    Some(section("shift", "Shift by percentile", &plots("shift-by-percentile", &axis, &charts), file))
}

/// Both sides over each other: by percentile, and over time.
fn both(compared: &ComparedRuns) -> Section {
    let [a, b] = by_percentile(compared);
    let mut section = Section::new("sides", "Both sides");
    if compared.runs.len() > 2 {
        "the geometric mean over the runs of each side".clone_into(&mut section.note);
    }
    section.is_drawn = true;
    section.body.raw("<div class=\"pair\">");
    if a.len() > 1 && b.len() > 1 {
        spectrum("spectra", vec![line("A", "blue", a), line("B", "three", b)]).write(&mut section.body);
    }
    let p99s = |is_b: bool| -> Vec<Measured> {
        let runs = runs(compared, is_b);
        let stretch_ns = runs.first().map_or(0, |run| run.outline.stretch_ns);
        let alike = runs.iter().filter(|run| run.outline.stretch_ns == stretch_ns);
        let lists: Vec<Vec<_>> = alike.map(|run| run.outline.p99_ns.clone()).collect();
        let means = mean_of(&lists).into_iter().enumerate();
        means.filter_map(|(place, ns)| Some(Measured { x: middle(place, stretch_ns), y: ns? })).collect()
    };
    let [a_p99, b_p99] = [p99s(false), p99s(true)];
    if a_p99.len() > 1 && b_p99.len() > 1 {
        over_time("p99-over-time", vec![line("A", "blue", a_p99), line("B", "three", b_p99)]).write(&mut section.body);
    }
    section.body.raw("</div>");
    section
}

/// The runs of both sides, round by round: their p99, and their throughput.
fn over_rounds(compared: &ComparedRuns) -> Option<Section> {
    if compared.runs.len() <= 2 {
        return None;
    }
    let sides = |figure: &dyn Fn(&Evidence) -> Option<f64>| {
        let places = |is_b: bool| {
            let runs = compared.runs.iter().filter(|run| run.is_b == is_b);
            let place = |run: &ComparedRun| Some(Measured { x: run.number as f64, y: figure(&run.evidence)? });
            runs.filter_map(place).collect::<Vec<_>>()
        };
        let side = |name: &'static str, class, sign, is_b| Line {
            name: name.into(),
            class,
            how: How::Joined,
            sign,
            places: places(is_b),
        };
        vec![side("A", "blue", Sign::Ring, false), side("B", "three", Sign::Disc, true)]
    };
    let chart = |title: &'static str, note: &str, unit, lines| Chart {
        title: title.into(),
        note: note.to_owned(),
        unit,
        is_logarithmic: unit == Unit::Ns,
        height: HEIGHT,
        lines,
        limits: Vec::new(),
    };
    let charts = [
        chart(
            "p99 of each run",
            "what moves both is the machine",
            Unit::Ns,
            sides(&|run| Some(run.p99_ns?.value.max(1) as f64)),
        ),
        chart("Throughput of each run", "ok calls a second", Unit::PerSecond, sides(&|run| Some(run.ok_per_s))),
    ];
    let mut axis =
        Axis::through(compared.runs.iter().map(|run| run.number as f64), "", |round| format!("round {round:.0}"));
    let last = compared.runs.iter().map(|run| run.number).max().unwrap_or(1) as f64;
    axis.scale = Scale::linear(0.5, last + 0.5);
    let rounds =
        axis.scale.round(12).into_iter().filter(|round| *round >= 1.0 && *round <= last && round.fract() == 0.0);
    axis.named = rounds.map(|round| (round, format!("{round:.0}"))).collect();
    let file = csv("rounds", &axis, &charts);
    Some(section("rounds", "Pairs by round", &narrow(plots("rounds-drawn", &axis, &charts)), file))
}
