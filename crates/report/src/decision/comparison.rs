//! The views of a comparison.

use brunt_decide::compare::{
    ComparedRuns, Comparison, Design, Difference, ErrorDifference, FailIfResult, LEAST_ROUNDS, LEAST_RUNS, Metric,
    OwnMetric,
};
use brunt_decide::evidence::Evidence;
use brunt_plan::units::{Duration, Number};

use super::cases::before_all;
use super::leading;
use super::not_made::not_made;
use super::plot::Around;
use super::runs;
use super::table::{Cell, Table};
use super::watched;
use crate::csv::Row;
use crate::numbers::{clean, counted, percent};
use crate::style::{Paint, Role};
use crate::text::{WIDTH, wrapped};

/// Room for the plot beside a ratio.
const PLOT: usize = 21;
/// The most own figures whose differences are told in words.
const MOST_OWN: usize = 3;
/// The width where names as long as `first_message.p99` stand on the left.
const PLOT_BESIDE_LONG_NAMES: usize = 11;

pub(super) fn text(compared: &ComparedRuns, label: Vec<String>, paint: Paint) -> String {
    let mut sections = vec![[head(compared, paint), label].concat(), conclusion(compared, paint)];
    let (role, verdicts) = runs::verdicts(compared.runs.iter().map(|run| &run.evidence));
    if !compared.runs.is_empty() {
        sections
            .push(wrapped("", "  ", &clean(&verdicts), WIDTH).into_iter().map(|line| paint.as_(role, line)).collect());
    }
    if let Some(comparison) = &compared.comparison {
        sections.push(differences(comparison, paint));
    }
    sections.push(leading::section(&by_side(compared), "each side", &[], paint));
    sections.push(watched::section(&by_side(compared), paint));
    sections.push(conditions(compared, paint));
    let sections = sections.iter().filter(|lines| !lines.is_empty());
    sections.map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// What was found and a table stand open, all else is folded; `label` ends it.
pub(super) fn markdown(compared: &ComparedRuns, label: &str) -> String {
    let mut parts = vec!["### B compared with A".to_owned(), format!("**{}**", sentences(compared).join("; "))];
    parts.extend(notes(compared).into_iter().map(|note| format!("! {note}")));
    let mut unlisted: Vec<_> = compared.conditions.iter().collect();
    if let Some(comparison) = &compared.comparison {
        let mut table = table(comparison, None);
        if !compared.conditions.is_empty() {
            table.add_column("fail conditions", rows_conditions(comparison, &mut unlisted));
        }
        parts.push(table.markdown().trim_end().to_owned());
    }
    if !unlisted.is_empty() {
        let line = |result: &&FailIfResult| format!("- {}: {}", marked(result), clean(&told(result)));
        parts.push(unlisted.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    let (_, verdicts) = runs::verdicts(compared.runs.iter().map(|run| &run.evidence));
    let mut details = vec![format!("- A: `{}`\n- B: `{}`", code(&compared.a), code(&compared.b))];
    details.extend(compared.comparison.as_ref().and_then(left_out));
    details.extend([&verdicts, &compared.how].map(|text| clean(text).into_owned()));
    details.push(label.trim().to_owned());
    details.retain(|part| !part.is_empty());
    parts.push(format!("<details><summary>How it was measured</summary>\n\n{}\n\n</details>", details.join("\n\n")));
    parts.join("\n\n") + "\n"
}

/// The conditions on the figure of each row of [`table`], which leave `unlisted`.
fn rows_conditions(comparison: &Comparison, unlisted: &mut Vec<&FailIfResult>) -> Vec<Cell> {
    let metrics = comparison.differences.iter().map(|difference| Some(difference.metric));
    let rows = metrics.chain(comparison.errors.iter().map(|_| None));
    rows.map(|metric| {
        let (here, elsewhere) = unlisted
            .drain(..)
            .partition::<Vec<_>, _>(|result| result.condition.limit_ratio().map(|(metric, _)| metric) == metric);
        *unlisted = elsewhere;
        let told = |result: &&FailIfResult| {
            let from = result.undecided.as_ref().map(|from| format!(", would be seen from {from} on"));
            format!("{}{}", marked(result), from.unwrap_or_default())
        };
        Cell::from(here.iter().map(told).collect::<Vec<_>>().join("; "))
    })
    .collect()
}

/// A condition with what came of it.
fn marked(result: &FailIfResult) -> String {
    let sign = match (result.failed, &result.undecided) {
        (true, _) if result.unjudged => "❔",
        (true, _) => "❌",
        (false, Some(_)) => "❔ not",
        (false, None) => "✅ not",
    };
    format!("{sign} `{}`", code(&result.condition.to_string()))
}

/// Text between backticks, from which it cannot break out.
pub(super) fn code(text: &str) -> String {
    clean(text).replace('`', "'")
}

pub(super) fn csv(compared: &ComparedRuns) -> String {
    let own = leading::columns(compared.runs.iter().map(|run| &run.evidence));
    let mut text = runs::head(&["side", "number"], &own);
    for run in &compared.runs {
        let mut row = Row::default();
        row.put(side(run.is_b));
        row.put(run.number);
        runs::put(&mut row, &run.evidence, &compared.origin);
        leading::put(&mut row, Some(&run.evidence), &own);
        text += &row.line();
    }
    text
}

/// The runs of each side.
fn by_side(compared: &ComparedRuns) -> Vec<(String, Vec<&Evidence>)> {
    let runs = |is_b| compared.runs.iter().filter(move |run| run.is_b == is_b).map(|run| &run.evidence).collect();
    [false, true].map(|is_b| (side(is_b).to_owned(), runs(is_b))).into()
}

const fn side(is_b: bool) -> &'static str {
    if is_b { "B" } else { "A" }
}

fn head(compared: &ComparedRuns, paint: Paint) -> Vec<String> {
    let mut lines = vec![paint.strong("brunt compare")];
    for (side, what) in [("A", &compared.a), ("B", &compared.b)] {
        let first = format!("  {side}  ");
        lines.extend(wrapped(&first, "     ", &clean(what), WIDTH));
    }
    if !compared.how.is_empty() {
        lines.extend(wrapped("  ", "  ", &compared.how, WIDTH).into_iter().map(|line| paint.faint(line)));
    }
    lines
}

fn conclusion(compared: &ComparedRuns, paint: Paint) -> Vec<String> {
    let differs = compared.comparison.as_ref().is_some_and(Comparison::differs);
    let role = if differs { Role::Strong } else { Role::Plain };
    let failed = before_all(compared).into_iter();
    let failed = failed.flat_map(|(sign, sentence)| wrapped(&format!("{sign} "), "  ", &clean(&sentence), WIDTH));
    let said = found(compared).into_iter().flat_map(|sentence| wrapped("→ ", "  ", &sentence, WIDTH));
    let warned = |note: String| wrapped("! ", "  ", &note, WIDTH);
    let not_made = not_made(&compared.lacking).flat_map(warned);
    let notes = notes(compared).into_iter().flat_map(warned);
    failed
        .map(|line| paint.bad(line))
        .chain(not_made.map(|line| paint.warning(line)))
        .chain(said.map(|line| paint.as_(role, line)))
        .chain(notes.map(|line| paint.warning(line)))
        .collect()
}

/// The conclusion, in plain sentences; the first is the one that is read.
pub(super) fn sentences(compared: &ComparedRuns) -> Vec<String> {
    let failed = before_all(compared).into_iter().map(|(_, sentence)| sentence);
    failed.chain(not_made(&compared.lacking)).chain(found(compared)).collect()
}

/// What was found of both sides.
pub(super) fn found(compared: &ComparedRuns) -> Vec<String> {
    let Some(comparison) = &compared.comparison else { return Vec::new() };
    // A side that fails sooner is not faster.
    let outweighing = comparison.errors.as_ref().filter(|errors| errors.outweighs());
    if let Some(errors) = outweighing.filter(|errors| errors.differs) {
        let but = "times and rates tell nothing where failures differ so much";
        return vec![format!("{}; {but}", errors_sentence(errors))];
    }
    // The most noticed figure of answers that come as messages comes first.
    let told = [Metric::FirstMessageP99, Metric::P99, Metric::P50, Metric::Rate];
    let differing = |metric: &Metric| comparison.difference(*metric).filter(|difference| difference.differs);
    let mut found: Vec<_> = told.iter().filter_map(differing).collect();
    if found.is_empty() {
        found = Metric::ALL.iter().filter_map(differing).collect();
    }
    // Of a protocol with figures of its own these come first.
    let own = comparison.own.iter().filter(|difference| difference.differs).take(MOST_OWN);
    let mut sentences: Vec<_> = own.map(own_sentence).chain(found.into_iter().map(sentence)).collect();
    sentences.extend(comparison.errors.as_ref().filter(|errors| errors.differs).map(errors_sentence));
    if sentences.is_empty() {
        sentences.push(no_difference(comparison));
    }
    // What chance may have done comes first, but denies no difference that was found.
    if let Some(errors) = outweighing {
        sentences.insert(0, format!("{}, which may be chance", errors_sentence(errors)));
    }
    if let Some(first) = sentences.first_mut() {
        let doubt = doubt(compared).map_or(String::new(), |doubt| format!(" ({doubt})"));
        let of = if matches!(comparison.design, Design::Blocks { .. }) { "of two single runs: " } else { "" };
        *first = format!("{of}{first}{doubt}");
    }
    sentences
}

/// Such as `B's ttft p99 is 24% higher [19%, 30%]`.
fn own_sentence(difference: &Difference<OwnMetric>) -> String {
    let Difference { metric, ratio, low_ratio, high_ratio, .. } = difference;
    let whose = format!("B's {} is", clean(&metric.name));
    if !(0.5..2.0).contains(ratio) {
        return format!("{whose} {ratio:.2} × A's [{low_ratio:.2}, {high_ratio:.2}]");
    }
    format!("{whose} {}", in_percent(*ratio, *low_ratio, *high_ratio, ["higher", "lower"]))
}

/// Such as `24% higher [19%, 30%]`.
fn in_percent(ratio: f64, low_ratio: f64, high_ratio: f64, [more, less]: [&str; 2]) -> String {
    let is_more = ratio >= 1.0;
    let share = |ratio: f64| if is_more { ratio - 1.0 } else { 1.0 - ratio };
    let (low, high) = if is_more { (low_ratio, high_ratio) } else { (high_ratio, low_ratio) };
    let all = [ratio, low, high].map(|ratio| share(ratio) * 100.0);
    // Tenths where whole percent would tell too little.
    let [_, low, high] = all;
    let decimals = usize::from(all[0] < 9.95 || high - low < 2.0);
    let [is, low, high] = all.map(|percent| format!("{percent:.decimals$}%"));
    format!("{is} {} [{low}, {high}]", if is_more { more } else { less })
}

/// Such as `B's p99 is 24% higher [19%, 30%]`.
fn sentence(difference: &Difference) -> String {
    let Difference { metric, ratio, low_ratio, high_ratio, .. } = difference;
    let whose = match metric {
        Metric::Rate => "B answers".to_owned(),
        Metric::MessageRate => "B sends".to_owned(),
        Metric::Mean => "B's mean response time is".to_owned(),
        _ => format!("B's {} is", metric.name()),
    };
    if !(0.5..2.0).contains(ratio) {
        let than = match metric {
            Metric::Rate => "× as many calls a second as A",
            Metric::MessageRate => "× as many messages a second as A",
            _ => "× A's",
        };
        return format!("{whose} {ratio:.2} {than} [{low_ratio:.2}, {high_ratio:.2}]");
    }
    let words = match metric {
        Metric::Rate => ["more calls a second", "fewer calls a second"],
        Metric::MessageRate => ["more messages a second", "fewer messages a second"],
        _ => ["higher", "lower"],
    };
    format!("{whose} {}", in_percent(*ratio, *low_ratio, *high_ratio, words))
}

/// The number of doubted runs, and the reason for one of them; `None` where all can be believed.
fn doubt(compared: &ComparedRuns) -> Option<String> {
    let doubted = compared.runs.iter().filter(|run| !run.evidence.is_trustworthy()).count();
    let were = if doubted == 1 { "was" } else { "were" };
    (doubted > 0).then(|| format!("doubtful: {doubted} of {} runs {were} not measured well", compared.runs.len()))
}

fn errors_sentence(errors: &ErrorDifference) -> String {
    let (a, b) = (percent(errors.a_ratio), percent(errors.b_ratio));
    format!("{b} of B's calls do not succeed, and {a} of A's")
}

fn no_difference(comparison: &Comparison) -> String {
    if comparison.differences.is_empty() && comparison.errors.is_none() {
        return "nothing could be compared".to_owned();
    }
    let told = [(Metric::Rate, "in the rate"), (Metric::P50, "at p50"), (Metric::P99, "at p99")];
    let detectable = |(metric, place): &(Metric, &str)| {
        let over = comparison.difference(*metric)?.detectable_ratio - 1.0;
        Some(format!("{} {place}", percent(round_up(over))))
    };
    let detectable: Vec<_> = told.iter().filter_map(detectable).collect();
    if detectable.is_empty() {
        return "no difference seen".to_owned();
    }
    format!("no difference seen; one of over {} would have been", detectable.join(", "))
}

/// To two digits, never down.
fn round_up(share: f64) -> f64 {
    if share <= 0.0 || !share.is_finite() {
        return share;
    }
    let scale = 10_f64.powi(1 - share.log10().floor() as i32);
    (share * scale).ceil() / scale
}

/// Remarks on the comparison.
pub(super) fn notes(compared: &ComparedRuns) -> Vec<String> {
    let mut notes = Vec::new();
    if compared.interrupted {
        notes.push("interrupted: the comparison is of what was done".to_owned());
    }
    if !compared.differing.is_empty() {
        notes.push(format!("A and B were run differently: {}", compared.differing.join("; ")));
    }
    match compared.comparison.as_ref().map(|comparison| comparison.design) {
        Some(Design::Rounds { rounds }) if rounds < LEAST_ROUNDS as usize => {
            notes.push(format!("only {rounds} rounds: run ten or more to be sure"));
        }
        Some(Design::Blocks { .. }) => notes.push(
            "one run of each, made at different times: what the machine did meanwhile is part of the ratio; brunt \
             compare with two URLs runs both in turn"
                .to_owned(),
        ),
        Some(Design::Runs { a, b }) if a.min(b) < LEAST_RUNS => {
            let (few, many) = if a < b { ("A", "B") } else { ("B", "A") };
            let (is, runs) = if a.min(b) == 1 { ("is one run", a.max(b)) } else { ("is two runs", a.max(b)) };
            notes.push(format!("{few} {is}: the spread of {many}'s {runs} runs stands for its own"));
        }
        Some(Design::Runs { .. }) => notes.push(
            "runs made at different times: were they not made in turn, what the machine did meanwhile is part of the \
             ratio"
                .to_owned(),
        ),
        _ => {}
    }
    notes
}

fn differences(comparison: &Comparison, paint: Paint) -> Vec<String> {
    let ends = comparison.differences.iter().flat_map(|d| [d.low_ratio, d.high_ratio]);
    let ends = ends.chain(comparison.own.iter().flat_map(|d| [d.low_ratio, d.high_ratio]));
    // Names of messages' figures take some of its room.
    let has_messages = comparison.differences.iter().any(|difference| difference.metric.is_of_messages());
    let has_long_names = has_messages || !comparison.own.is_empty();
    let scale = Around::fit(ends, if has_long_names { PLOT_BESIDE_LONG_NAMES } else { PLOT });
    let what = match comparison.design {
        Design::Rounds { rounds } => format!("{rounds} rounds"),
        Design::Runs { a, b } => format!("{} of A, {b} of B", counted(a as u64, "run")),
        Design::Blocks { a, b } => format!("{a} blocks of seconds of A, {b} of B"),
    };
    let mut lines = vec![format!("{}  {what}, 95% intervals", paint.strong("B over A"))];
    lines.extend(table(comparison, Some(scale)).text(paint));
    lines.extend(left_out(comparison).into_iter().flat_map(|text| wrapped("  ", "  ", &text, WIDTH)));
    lines
}

/// A row for each metric; with a plot of its interval where there is a scale for it.
pub(super) fn table(comparison: &Comparison, scale: Option<Around>) -> Table {
    let mut table = Table::new(["", "A", "B", "B/A", "95%", "p", if scale.is_some() { "" } else { "differs" }]);
    for d in &comparison.differences {
        let role = if d.differs { Role::Strong } else { Role::Plain };
        let last = match scale {
            Some(scale) => Cell::from(scale.line(d.low_ratio, d.ratio, d.high_ratio)).as_(Role::Chart),
            None => Cell::from(if d.differs { "**yes**" } else { "no" }),
        };
        table.push([
            Cell::from(d.metric.name()).as_(Role::Faint),
            value(d.metric, d.a).into(),
            value(d.metric, d.b).into(),
            Cell::from(format!("{:.3}", d.ratio)).as_(role),
            format!("{:.3}–{:.3}", d.low_ratio, d.high_ratio).into(),
            probability(d.adjusted_p_value).into(),
            last,
        ]);
    }
    for d in &comparison.own {
        let role = if d.differs { Role::Strong } else { Role::Plain };
        let last = match scale {
            Some(scale) => Cell::from(scale.line(d.low_ratio, d.ratio, d.high_ratio)).as_(Role::Chart),
            None => Cell::from(if d.differs { "**yes**" } else { "no" }),
        };
        table.push([
            Cell::from(clean(&d.metric.name).into_owned()).as_(Role::Faint),
            leading::shown(&d.metric.unit, d.a).into(),
            leading::shown(&d.metric.unit, d.b).into(),
            Cell::from(format!("{:.3}", d.ratio)).as_(role),
            format!("{:.3}–{:.3}", d.low_ratio, d.high_ratio).into(),
            probability(d.adjusted_p_value).into(),
            last,
        ]);
    }
    if let Some(errors) = &comparison.errors {
        let role = if errors.differs { Role::Strong } else { Role::Plain };
        let points = |share: f64| format!("{:+.2}", share * 100.0);
        let last = if scale.is_some() {
            "B − A, in percent"
        } else if errors.differs {
            "**yes**"
        } else {
            "no"
        };
        table.push([
            Cell::from("errors").as_(Role::Faint),
            percent(errors.a_ratio).into(),
            percent(errors.b_ratio).into(),
            Cell::from(points(errors.difference)).as_(role),
            format!("{}–{}", points(errors.low), points(errors.high)).into(),
            probability(errors.adjusted_p_value).into(),
            last.into(),
        ]);
    }
    if let Some(scale) = scale {
        table.push(["", "", "", "", "", "", &scale.legend()].map(|text| Cell::from(text).as_(Role::Faint)));
    }
    table
}

pub(super) fn value(metric: Metric, value: f64) -> String {
    if metric.is_rate() { format!("{}/s", Number(value)) } else { Duration(value.round() as u64).to_string() }
}

pub(super) fn probability(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

pub(super) fn left_out(comparison: &Comparison) -> Option<String> {
    let each = comparison.left_out.iter().map(|left_out| format!("{} ({})", left_out.metric.name(), left_out.why));
    let own =
        comparison.own_left_out.iter().map(|left_out| format!("{} ({})", clean(&left_out.metric.name), left_out.why));
    let each: Vec<_> = each.chain(own).collect();
    let discarded = comparison.discarded.iter().map(|of| format!("{} in {} of {}", of.metric.name(), of.count, of.of));
    let discarded: Vec<_> = discarded.collect();
    let parts = [("not compared", each), ("left out, as brunt was late", discarded)];
    let parts = parts.into_iter().filter(|(_, list)| !list.is_empty());
    let parts: Vec<_> = parts.map(|(what, list)| format!("{what}: {}", list.join(", "))).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn conditions(compared: &ComparedRuns, paint: Paint) -> Vec<String> {
    if compared.conditions.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![paint.strong("Fail conditions")];
    for result in &compared.conditions {
        let (sign, role) = match (result.failed, &result.undecided) {
            (true, _) if result.unjudged => ("?", Role::Warning),
            (true, _) => ("✗", Role::Bad),
            (false, Some(_)) => ("?", Role::Warning),
            (false, None) => ("✓", Role::Good),
        };
        // A mark before a condition that is met would read as if that were well.
        let not = if result.failed { "" } else { "not " };
        let text = format!("{not}{}\u{a0} {}", clean(&result.condition.to_string()), clean(&told(result)));
        let wrapped = wrapped("", "      ", &text, WIDTH - 4).into_iter();
        let role_of_text = if role == Role::Good { Role::Plain } else { role };
        let mut dressed: Vec<_> = wrapped.map(|line| paint.as_(role_of_text, line)).collect();
        if let Some(first) = dressed.first_mut() {
            *first = format!("  {} {first}", paint.as_(role, sign.to_owned()));
        }
        lines.extend(dressed);
    }
    lines
}

/// The result of a condition and, where it is undecided, the difference that would have decided it.
pub(super) fn told(result: &FailIfResult) -> String {
    let undecided = result.undecided.as_ref();
    let seen = undecided.map(|from| format!(": not ruled out; it would have been seen from {from} on"));
    format!("{}{}", result.got, seen.unwrap_or_default())
}
