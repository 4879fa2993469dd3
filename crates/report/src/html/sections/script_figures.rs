//! Names of scripts besides requests: groups, checks, scenarios, figures of their own.

use brunt_judge::breakdown::{Breakdown, OwnBreakdown};
use brunt_judge::distribution::Distribution;
use brunt_plan::units::{Duration, Number};
use brunt_record::figures::time_unit_ns;
use brunt_record::histogram::{AtLeast, Percentile};

use super::super::shown::Shown;
use crate::numbers::{bound, clean, count, counted, duration, percent};
use crate::page::{Cell, Column, Section, Table};
use crate::text::{are_of_protocol, own_title};

/// The quantiles that tables have.
const SHOWN: [Percentile; 3] = [Percentile::P50, Percentile::P95, Percentile::P99];

/// The sections of these names; empty ones have no body.
pub(super) fn names(shown: Shown<'_>) -> Vec<Section> {
    let names = &shown.summary.breakdown;
    vec![checks(names), groups(names), scenarios(names, shown.summary.run.series.most_users())]
}

/// The figures of a protocol, or of a script.
pub(super) fn own_figures(shown: Shown<'_>) -> Section {
    own(&shown.summary.breakdown, &own_title(shown.summary), are_of_protocol(shown.summary))
}

fn put(mut section: Section, table: &Table) -> Section {
    section.tools.push(table.csv());
    table.write(&mut section.body);
    section
}

fn times(times: Option<&Distribution>) -> [Cell; 3] {
    SHOWN.map(|percentile| {
        let Some(value) = times.and_then(|times| times.quantile(percentile)) else { return Cell::none() };
        Cell::sorted(duration(value), value.value as f64).classed(if value.at_least { "warning" } else { "" })
    })
}

fn groups(names: &Breakdown) -> Section {
    let section = Section::new("groups", "Groups");
    if names.groups.is_empty() {
        return section;
    }
    let mut columns = vec![Column::words("group")];
    columns.extend(["count", "failed", "unfinished"].map(Column::figure));
    columns.extend(SHOWN.map(|of| Column::time(of.name())));
    columns.extend(SHOWN.map(|name| Column::time(format!("{name} with pauses"))));
    let mut table = Table::new("groups", "without the pauses of users, and with them", columns).sortable();
    for group in &names.groups {
        let mut cells = vec![
            Cell::new(&group.name),
            Cell::count(group.count),
            Cell::wrong(group.failed),
            Cell::wrong(group.unfinished),
        ];
        cells.extend(times(group.without_pauses.as_ref()));
        cells.extend(times(group.with_pauses.as_ref()));
        table.push(cells);
    }
    put(section, &table)
}

fn checks(names: &Breakdown) -> Section {
    let section = Section::new("checks", "Checks");
    if names.checks.is_empty() {
        return section;
    }
    let failed = names.checks.iter().filter(|check| check.fails > 0).count();
    let caption = match failed {
        0 => "every check held".to_owned(),
        _ => format!("{failed} of {} failed at times", counted(names.checks.len() as u64, "check")),
    };
    let columns = vec![
        Column::words("check"),
        Column::figure("held"),
        Column::figure("failed"),
        Column::figure("of all"),
        Column::words("such as"),
    ];
    let mut table = Table::new("checks", caption, columns).sortable();
    let mut checks: Vec<_> = names.checks.iter().collect();
    checks.sort_by_key(|check| std::cmp::Reverse(check.fails));
    for check in checks {
        let name = check.call.as_ref().map_or_else(|| check.check.clone(), |call| format!("{call}: {}", check.check));
        let all = check.passes + check.fails;
        let share = if all > 0 { check.fails as f64 / all as f64 } else { 0.0 };
        let example = check.example.as_ref().map(|example| {
            let status = example.status.map(|status| status.to_string()).unwrap_or_default();
            [status, example.body.clone()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
        });
        table.push(vec![
            Cell::new(name),
            Cell::count(check.passes),
            Cell::wrong(check.fails),
            if all > 0 { Cell::sorted(percent(share), share) } else { Cell::none() },
            Cell::new(example.unwrap_or_default()),
        ]);
    }
    put(section, &table)
}

fn scenarios(names: &Breakdown, most_users: u64) -> Section {
    let section = Section::new("scenarios", "Scenarios");
    if names.scenarios.is_empty() {
        return section;
    }
    let mut columns = vec![Column::words("scenario")];
    let counts = [
        "users started",
        "from the warm-up",
        "ended",
        "not admitted",
        "out of rows",
        "iterations",
        "with failed calls",
        "cut short",
        "errors",
    ];
    columns.extend(counts.map(Column::figure));
    columns.extend(SHOWN.map(|of| Column::time(of.name())));
    let caption = format!("at most {} at once; times are of whole iterations", counted(most_users, "user"));
    let mut table = Table::new("scenarios", caption, columns).sortable();
    for one in &names.scenarios {
        let mut cells = vec![
            Cell::new(one.name.as_str()),
            Cell::count(one.users_started),
            Cell::count(one.users_before),
            Cell::count(one.users_ended),
            Cell::wrong(one.not_admitted),
            Cell::wrong(one.out_of_rows),
            Cell::count(one.iterations),
            Cell::wrong(one.not_ok),
            Cell::wrong(one.unfinished),
            Cell::wrong(one.errors),
        ];
        cells.extend(times(one.iteration.as_ref()));
        table.push(cells);
    }
    let mut section = put(section, &table);
    let tracebacks = || names.scenarios.iter().flat_map(|one| one.tracebacks.iter().map(move |of| (&one.name, of)));
    if tracebacks().next().is_none() {
        return section;
    }
    let html = &mut section.body;
    html.raw("<ul class=\"tracebacks\">");
    for (name, traceback) in tracebacks() {
        html.raw("<li><p class=\"bad\">").text(&clean(name)).raw(": ").text(&counted(traceback.count, "error"));
        html.raw("</p><pre tabindex=\"0\" role=\"region\" aria-label=\"traceback\">");
        for (nth, line) in traceback.traceback.lines().enumerate() {
            html.raw(if nth > 0 { "\n" } else { "" }).text(&clean(&line.replace('\t', "    ")));
        }
        html.raw("</pre></li>");
    }
    html.raw("</ul>");
    section
}

fn own(names: &Breakdown, title: &str, of_protocol: bool) -> Section {
    let section = Section::new("own", title);
    if names.own.is_empty() {
        return section;
    }
    let in_unit = |unit: &str, n: f64| match time_unit_ns(unit) {
        Some(ns) => Duration((n * ns).round().max(0.0) as u64).to_string(),
        None => Number(n).to_string(),
    };
    let value = |unit: &str, n: Option<f64>| n.map_or_else(Cell::none, |n| Cell::sorted(in_unit(unit, n), n));
    let first = |OwnBreakdown { figures, per_s, .. }: &OwnBreakdown| match (figures.share(), figures.sum()) {
        (Some(share), _) => Cell::sorted(percent(share), share),
        (None, Some(sum)) => Cell::sorted(format!("{}, {}/s", Number(sum), Number(per_s.unwrap_or(0.0))), sum),
        (None, None) => value(&figures.unit, figures.last()),
    };
    let mut columns = vec![Column::words("figure"), Column::words("kind"), Column::words("unit")];
    columns.extend(
        ["recorded", "value"]
            .into_iter()
            .chain(SHOWN.map(Percentile::name))
            .chain(["mean", "min", "max"])
            .map(Column::figure),
    );
    let whose = if of_protocol { "measured by the protocol" } else { "counted by the script itself" };
    let caption = ": the sum of a counter, the share of a rate, the last value of a gauge, the distribution of a trend";
    let mut table = Table::new("own", format!("{whose}{caption}"), columns).sortable();
    for one in &names.own {
        let OwnBreakdown { name, figures, .. } = one;
        let bounded = |n: Option<AtLeast<f64>>| {
            let text = |n: AtLeast<f64>| format!("{}{}", bound(n.at_least), in_unit(&figures.unit, n.value));
            n.map_or_else(Cell::none, |n| Cell::sorted(text(n), n.value))
        };
        let mut cells = vec![
            Cell::new(name.as_str()),
            Cell::new(figures.kind.name()),
            Cell::new(figures.unit.as_str()),
            Cell::sorted(count(figures.count), figures.count as f64),
            first(one),
        ];
        cells.extend(SHOWN.map(|of| bounded(figures.quantile(of.share()))));
        cells.extend([bounded(figures.mean()), value(&figures.unit, figures.min()), bounded(figures.max())]);
        table.push(cells);
    }
    put(section, &table)
}
