//! Names of scripts besides requests: groups, checks, scenarios, figures of their own.

use brunt_judge::distribution::Distribution;
use brunt_plan::units::{Duration, Number};
use brunt_record::figures::time_unit_ns;

use super::super::shown::Shown;
use crate::json::{Names, OwnFigure};
use crate::numbers::{bound, clean, count, counted, duration, percent};
use crate::page::{Cell, Column, Section, Table};
use crate::text::{are_of_protocol, own_title};

/// The quantiles that tables have.
const SHOWN: [&str; 3] = ["p50", "p95", "p99"];

/// The sections of these names; empty ones have no body.
pub(super) fn names(shown: Shown<'_>) -> Vec<Section> {
    let Some(names) = shown.names else { return Vec::new() };
    vec![checks(names), groups(names), scenarios(names)]
}

/// The figures of a protocol, or of a script.
pub(super) fn own_figures(shown: Shown<'_>) -> Section {
    let title = own_title(shown.summary);
    match shown.names {
        Some(names) => own(names, &title, are_of_protocol(shown.summary)),
        None => Section::new("own", title),
    }
}

fn put(mut section: Section, table: &Table) -> Section {
    section.tools.push(table.csv());
    table.write(&mut section.body);
    section
}

fn times(times: Option<&Distribution>) -> [Cell; 3] {
    SHOWN.map(|name| {
        let Some(value) = times.and_then(|times| times.quantile(name)) else { return Cell::none() };
        Cell::sorted(duration(value), value.value as f64).classed(if value.at_least { "warning" } else { "" })
    })
}

fn groups(names: &Names<'_>) -> Section {
    let section = Section::new("groups", "Groups");
    if names.groups.is_empty() {
        return section;
    }
    let mut columns = vec![Column::words("group")];
    columns.extend(["count", "failed", "unfinished"].map(Column::figure));
    columns.extend(SHOWN.map(Column::time));
    columns.extend(SHOWN.map(|name| Column::time(format!("{name} with pauses"))));
    let mut table = Table::new("groups", "without the pauses of users, and with them", columns).sortable();
    for group in names.groups {
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

fn checks(names: &Names<'_>) -> Section {
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

fn scenarios(names: &Names<'_>) -> Section {
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
    columns.extend(SHOWN.map(Column::time));
    let caption = format!("at most {} at once; times are of whole iterations", counted(names.most_users, "user"));
    let mut table = Table::new("scenarios", caption, columns).sortable();
    for one in names.scenarios {
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

fn own(names: &Names<'_>, title: &str, of_protocol: bool) -> Section {
    let section = Section::new("own", title);
    if names.own.is_empty() {
        return section;
    }
    let in_unit = |unit: &str, n: f64| match time_unit_ns(unit) {
        Some(ns) => Duration((n * ns).round().max(0.0) as u64).to_string(),
        None => Number(n).to_string(),
    };
    let value = |unit: &str, n: Option<f64>| n.map_or_else(Cell::none, |n| Cell::sorted(in_unit(unit, n), n));
    let first = |one: &OwnFigure<'_>| match (one.ratio, one.sum) {
        (Some(ratio), _) => Cell::sorted(percent(ratio), ratio),
        (None, Some(sum)) => Cell::sorted(format!("{}, {}/s", Number(sum), Number(one.sum_per_s.unwrap_or(0.0))), sum),
        (None, None) => value(one.unit, one.last),
    };
    let mut columns = vec![Column::words("figure"), Column::words("kind"), Column::words("unit")];
    columns.extend(["recorded", "value"].into_iter().chain(SHOWN).chain(["mean", "min", "max"]).map(Column::figure));
    let whose = if of_protocol { "measured by the protocol" } else { "counted by the script itself" };
    let caption = ": the sum of a counter, the share of a rate, the last value of a gauge, the distribution of a trend";
    let mut table = Table::new("own", format!("{whose}{caption}"), columns).sortable();
    for one in &names.own {
        let bounded = |n: f64, at_least: bool| Cell::sorted(format!("{}{}", bound(at_least), in_unit(one.unit, n)), n);
        let quantile = |name: &str| {
            let quantile = one.quantiles.iter().find(|quantile| quantile.name == name);
            quantile.map_or_else(Cell::none, |quantile| bounded(quantile.value, quantile.at_least))
        };
        let end = |n: Option<f64>| n.map_or_else(Cell::none, |n| bounded(n, one.bounds > 0));
        let mut cells = vec![
            Cell::new(one.name),
            Cell::new(one.kind),
            Cell::new(one.unit),
            Cell::sorted(count(one.count), one.count as f64),
            first(one),
        ];
        cells.extend(SHOWN.map(quantile));
        cells.extend([end(one.mean), value(one.unit, one.min), end(one.max)]);
        table.push(cells);
    }
    put(section, &table)
}
