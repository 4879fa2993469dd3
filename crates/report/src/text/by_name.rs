//! Figures by name: requests and tags, groups, checks, scenarios.

use brunt_judge::breakdown::{CallBreakdown, CheckBreakdown, GroupBreakdown, ScenarioBreakdown};
use brunt_judge::distribution::Distribution;
use brunt_judge::summary::Summary;
use brunt_plan::units::Number;
use brunt_record::catalogue::{Counter, Numbers};
use brunt_record::figures::MOST_NAMES;
use brunt_record::histogram::Percentile;

use super::fitting::{Rank, Section};
use super::{WIDTH, own, wrapped};
use crate::columns::{self, named};
use crate::numbers::{brief, clean, count, counted, duration, percent};
use crate::style::{Paint, Role};

/// The width of names.
const NAME: usize = 25;
/// The width of a column.
const COLUMN: usize = 9;
/// The most rows of a table.
const MOST_ROWS: usize = 25;
/// The most rows of what failed that matter more than other figures.
const MOST_CAUSES: usize = 6;
/// The most errors shown for one scenario, and the most lines of each.
const MOST_ERRORS: usize = 3;
const MOST_LINES: usize = 6;
/// The most of a body that is shown, in characters.
const MOST_OF_BODY: usize = 50;

/// The sections of a run's scenarios; empty without scenarios.
pub(super) fn sections(summary: &Summary, paint: Paint) -> Vec<Section> {
    let names = &summary.breakdown;
    vec![
        requests(summary, paint),
        calls("Tags", "tag", &names.tags, paint),
        groups(&names.groups, paint),
        checks(&names.checks, paint),
        scenarios(summary, paint),
        if own::are_of_protocol(summary) { Section::new("") } else { own::section(summary, paint, true) },
        Section::of("", Rank::Always, crowded(&names.crowded, paint)),
    ]
}

/// The requests by name. Calls that fell to a lost agent and were never sent have none.
fn requests(summary: &Summary, paint: Paint) -> Section {
    let mut section = calls("Requests", "request", &summary.breakdown.requests, paint);
    let unsent = |numbers: &Numbers| numbers.get(Counter::Unsent);
    let named: u64 = summary.total.figures.requests.iter().map(|(_, calls)| unsent(&calls.numbers)).sum();
    let nameless = unsent(&summary.total.numbers).saturating_sub(named);
    if !summary.breakdown.requests.is_empty() && nameless > 0 {
        let (were, stand) = if nameless == 1 { ("was", "stands") } else { ("were", "stand") };
        let line = format!("  {} {were} never sent, and {stand} in no row", counted(nameless, "call"));
        section.add(Rank::Always, [paint.as_(Role::Warning, line)]);
    }
    section
}

/// A table's first line.
fn header(name: &str, columns: [&str; 6], paint: Paint) -> String {
    let columns = columns.map(|column| format!("{column:>COLUMN$}")).concat();
    format!("{}{}", paint.strong(format!("{name:<NAME$}")), paint.faint(columns))
}

fn cell(text: &str, role: Role, paint: Paint) -> String {
    paint.as_(role, format!("{text:>COLUMN$}"))
}

fn times(times: Option<&Distribution>, paint: Paint) -> String {
    let cells =
        [Percentile::P50, Percentile::P95, Percentile::P99].map(|of| match times.and_then(|times| times.at(of)) {
            Some(quantile) => {
                let is_doubtful = quantile.at_least || quantile.is_spoiled();
                cell(&duration(quantile.value()), if is_doubtful { Role::Warning } else { Role::Plain }, paint)
            }
            None => cell("-", Role::Faint, paint),
        });
    cells.concat()
}

/// At most [`MOST_ROWS`], and the number of the others. The first that `has_failed` matter more than those of `rank`.
fn rows<T>(
    mut section: Section,
    all: &[T],
    rank: Rank,
    has_failed: impl Fn(&T) -> bool,
    row: impl Fn(&T) -> String,
) -> Section {
    let mut failed = 0;
    for of in all.iter().take(MOST_ROWS) {
        failed += usize::from(has_failed(of));
        let is_cause = has_failed(of) && failed <= MOST_CAUSES;
        section.add_row(if is_cause { Rank::Cause } else { rank }, row(of));
    }
    section.and_in_files(all.len().saturating_sub(MOST_ROWS));
    section
}

fn calls(title: &str, noun: &'static str, all: &[CallBreakdown], paint: Paint) -> Section {
    let header = header(title, ["due", "req/s", "not ok", "p50", "p95", "p99"], paint);
    let section = Section::new(title).headed(header).with_rows(noun);
    let rank = if noun == "tag" { Rank::Minor } else { Rank::Figure };
    rows(
        section,
        all,
        rank,
        |calls| calls.not_ok > 0 && rank == Rank::Figure,
        |calls| {
            let errors = if calls.not_ok > 0 { Role::Bad } else { Role::Plain };
            format!(
                "{}{}{}{}{}",
                named(&calls.name, NAME),
                cell(&Number(calls.due as f64).to_string(), Role::Plain, paint),
                cell(&Number(calls.answered_per_s).to_string(), Role::Plain, paint),
                cell(&percent(calls.error_rate), errors, paint),
                times(calls.response.as_ref(), paint)
            )
        },
    )
}

fn groups(all: &[GroupBreakdown], paint: Paint) -> Section {
    let header = header("Groups", ["count", "failed", "", "p50", "p95", "p99"], paint);
    let section = Section::new("Groups").headed(header).with_rows("row");
    let pairs: Vec<_> = all.iter().flat_map(|group| [(group, true), (group, false)]).collect();
    rows(
        section,
        &pairs,
        Rank::Minor,
        |_| false,
        |(group, first)| {
            let numbers = if *first {
                let failed = if group.failed > 0 { Role::Bad } else { Role::Plain };
                let n = cell(&Number(group.count as f64).to_string(), Role::Plain, paint);
                format!("{}{n}{}", named(&group.name, NAME), cell(&count(group.failed), failed, paint))
            } else {
                format!("{}{}", paint.faint(named("  with pauses", NAME)), " ".repeat(2 * COLUMN))
            };
            let of = if *first { &group.without_pauses } else { &group.with_pauses };
            format!("{numbers}{}{}", " ".repeat(COLUMN), times(of.as_ref(), paint))
        },
    )
}

fn checks(all: &[CheckBreakdown], paint: Paint) -> Section {
    let section = Section::new("Checks").headed(paint.strong("Checks")).with_rows("check");
    // Failed checks come first.
    let mut sorted: Vec<_> = all.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(check.fails));
    rows(
        section,
        &sorted,
        Rank::Minor,
        |check| check.fails > 0,
        |check| {
            let of = count(check.passes + check.fails);
            let name = brief(&check.name);
            if check.fails == 0 {
                return format!("  {} {name}  {}", paint.good("✓"), paint.faint(of));
            }
            if check.is_reason() {
                let text = format!("{name}: {} failed", counted(check.fails, "call"));
                let lines =
                    wrapped("", "    ", &text, WIDTH - 4).into_iter().map(|line| paint.bad(line)).chain(example(check));
                return format!("  {} {}", paint.bad("✗"), lines.collect::<Vec<_>>().join("\n"));
            }
            let share = percent(check.fails as f64 / (check.passes + check.fails) as f64);
            let text = format!("{name}  failed {} of {of} ({share})", count(check.fails));
            let mut lines: Vec<_> =
                wrapped("", "    ", &text, WIDTH - 4).into_iter().map(|line| paint.bad(line)).collect();
            lines.extend(example(check));
            format!("  {} {}", paint.bad("✗"), lines.join("\n"))
        },
    )
}

/// A call that failed a check, as far as there is something to show of it.
fn example(check: &CheckBreakdown) -> Vec<String> {
    let Some(example) = &check.example else { return Vec::new() };
    let status = example.status.map(|status| status.to_string());
    let body = clean(&example.body);
    let mut shown: String = body.chars().take(MOST_OF_BODY).collect();
    if body.chars().count() > MOST_OF_BODY {
        shown.push('…');
    }
    let quoted = (!shown.is_empty()).then(|| format!("'{shown}'"));
    let parts: Vec<_> = status.into_iter().chain(quoted).collect();
    if parts.is_empty() { Vec::new() } else { wrapped("    such as ", "    ", &parts.join(" "), WIDTH) }
}

fn scenarios(summary: &Summary, paint: Paint) -> Section {
    let most = counted(summary.run.series.most_users(), "user");
    let heading = format!(
        "{}  {}",
        paint.strong("Scenarios"),
        paint.faint(format!("at most {most}, counted at the end of each second"))
    );
    let mut section = Section::new("Scenarios").headed(heading);
    for scenario in summary.breakdown.scenarios.iter().take(MOST_ROWS) {
        one_scenario(&mut section, scenario, paint);
    }
    section
}

/// Parts behind a label, separated by commas, in as many lines as they take.
fn listed(label: &str, parts: impl Iterator<Item = (String, Role)>, paint: Paint) -> Vec<String> {
    let (mut lines, mut width) = (Vec::new(), WIDTH);
    for (text, role) in parts {
        let longer = width + ", ".len() + columns::width(&text) + ",".len();
        match lines.last_mut() {
            Some(line) if longer <= WIDTH => {
                *line = format!("{line}, {}", paint.as_(role, text.clone()));
                width += ", ".len() + columns::width(&text);
            }
            last => {
                if let Some(line) = last {
                    line.push(',');
                }
                let label = format!("    {:<12}", if lines.is_empty() { label } else { "" });
                width = columns::width(&label) + columns::width(&text);
                let label = if label.trim().is_empty() { label } else { paint.faint(label) };
                lines.push(format!("{label}{}", paint.as_(role, text)));
            }
        }
    }
    lines
}

fn one_scenario(section: &mut Section, scenario: &ScenarioBreakdown, paint: Paint) {
    let some = |n: u64, what: &str, role: Role| (n > 0).then(|| (format!("{} {what}", count(n)), role));
    let users = [
        Some((format!("{} started", count(scenario.users_started)), Role::Plain)),
        some(scenario.users_before, "from the warm-up", Role::Plain),
        Some((format!("{} ended", count(scenario.users_ended)), Role::Plain)),
        some(scenario.not_admitted, "not admitted", Role::Bad),
        some(scenario.out_of_rows, "out of rows", Role::Warning),
    ];
    let p50 = scenario.iteration.as_ref().and_then(|times| times.quantile(Percentile::P50));
    let iterations = [
        Some((count(scenario.iterations), Role::Plain)),
        p50.map(|p50| (format!("p50 {}", duration(p50)), Role::Plain)),
        some(scenario.unfinished, "cut short", Role::Plain),
        some(scenario.not_ok, "with failed calls", Role::Bad),
        some(scenario.errors, "ended by an error", Role::Bad),
    ];
    let mut lines = vec![format!("  {}", brief(&scenario.name))];
    if !scenario.tracebacks.is_empty() {
        section.add(Rank::Cause, lines.drain(..));
    }
    lines.extend(listed("users", users.into_iter().flatten(), paint));
    lines.extend(listed("iterations", iterations.into_iter().flatten(), paint));
    section.add_whole(Rank::Minor, &lines);
    for error in scenario.tracebacks.iter().take(MOST_ERRORS) {
        let mut said = error.traceback.lines().map(|line| clean(line.trim()));
        let first = format!("{} × {}", count(error.count), said.next().unwrap_or_default());
        section.add(Rank::Cause, wrapped("    ✗ ", "      ", &first, WIDTH).into_iter().map(|line| paint.bad(line)));
        for line in said.filter(|line| *line != "stack traceback:").take(MOST_LINES) {
            section.add(Rank::Minor, wrapped("        ", "          ", &line, WIDTH));
        }
    }
    if scenario.tracebacks.len() > MOST_ERRORS {
        section.add(Rank::Minor, ["      …".to_owned()]);
    }
}

fn crowded(kinds: &[&str], paint: Paint) -> Vec<String> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "there were more than {MOST_NAMES} distinct names of {}: the rest count as (others); give calls that belong \
         together the same name",
        kinds.join(", ")
    );
    wrapped("! ", "  ", &text, WIDTH).into_iter().map(|line| paint.warning(line)).collect()
}
