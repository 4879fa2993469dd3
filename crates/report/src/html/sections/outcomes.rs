//! Outcomes of calls: the sum, and each ending with its requests and times.

use brunt_judge::breakdown::CallBreakdown;
use brunt_plan::units::{Clock, Duration, Size};
use brunt_record::catalogue::Counter;
use brunt_record::examples::FailedExample;
use brunt_record::outcome::Failure;

use super::super::drilldown::{Drilldown, FailureTrack, Kind};
use super::super::last_second::LastSecond;
use super::super::over_time::{bars_alone, ends_over_time};
use super::super::shown::Shown;
use crate::markup::Html;
use crate::numbers::{clean, count, percent};
use crate::page::{Cell, Column, Section, Table};
use crate::style::Paint;
use crate::text;

/// How many requests that ended so are named.
const MOST_PLACES: usize = 2;

pub(super) fn outcomes(shown: Shown<'_>, live: Option<&LastSecond>) -> Section {
    let mut section = Section::new("outcomes", "Outcomes");
    section
        .body
        .raw("<p class=\"sum\">")
        .text(&text::sum_of_outcomes(shown.summary, Paint(false), live.is_some()))
        .raw("</p>");
    let ways = ways(shown);
    if !ways.is_empty() {
        let table = table(shown, &ways);
        section.tools.push(table.csv());
        table.write(&mut section.body);
    }
    notes(&mut section.body, shown);
    section
}

/// A way in which calls ended.
struct Ending {
    name: String,
    count: u64,
    is_ok: bool,
    /// Calls of each name that ended so.
    places: Vec<(String, u64)>,
    /// The number of such calls over time: the beginnings and lengths of stretches, and counts.
    track: Option<Kind<Vec<u64>>>,
    /// The first calls with this ending.
    examples: Vec<FailedExample>,
}

/// All endings: those that are not ok first, each group by frequency.
fn ways(shown: Shown<'_>) -> Vec<Ending> {
    let requests = &shown.summary.breakdown.requests;
    let places = |calls: &dyn Fn(&CallBreakdown) -> u64| {
        let mut places: Vec<_> = requests.iter().map(|request| (request.name.clone(), calls(request))).collect();
        places.retain(|(_, n)| *n > 0);
        places.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        places
    };
    let (summary, drilldown) = (shown.summary, shown.drilldown);
    let total = &summary.total;
    let statuses = total.statuses.sorted().into_iter().filter(|(status, _)| *status != 0);
    let of_status = statuses.map(|(status, count)| {
        let name = summary.run.status_names.get(&status).map_or_else(String::new, |name| format!(" {name}"));
        Ending {
            name: format!("{status}{name}"),
            count,
            is_ok: summary.plan.ok_status.holds(status),
            places: places(&|calls| {
                calls.statuses.iter().filter(|known| known.status == status).map(|known| known.count).sum()
            }),
            track: of_status(drilldown, status),
            examples: total.examples.get(&status.to_string()).to_vec(),
        }
    });
    let of_failure = total.failures.counted().flat_map(|(failure, all)| {
        let places = places(&|calls| {
            calls.failures.iter().filter(|known| known.failure == failure).map(|known| known.count).sum()
        });
        let mut reasons = total.failures.reasons(failure);
        reasons.retain(|(reason, _)| !reason.is_empty());
        let way = |name: String, count: u64, reason: Option<&str>| Ending {
            name,
            count,
            is_ok: false,
            places: places.clone(),
            track: of_failure(drilldown, failure, reason),
            examples: {
                let all = total.examples.get(failure.name()).iter();
                all.filter(|call| reason.is_none_or(|reason| call.said == reason)).cloned().collect()
            },
        };
        // A single reason needs no second line.
        match reasons.as_slice() {
            [(only, count)] if *count == all => {
                vec![way(format!("{}: {only}", failure.name()), all, Some(only))]
            }
            reasons => {
                let each = reasons.iter();
                let each = each.map(|(reason, n)| way(format!("{}: {reason}", failure.name()), *n, Some(reason)));
                std::iter::once(way(failure.name().to_owned(), all, None)).chain(each).collect()
            }
        }
    });
    let unended = [
        (Counter::Unfinished, (|calls| calls.unfinished) as fn(&CallBreakdown) -> u64),
        (Counter::Unsent, |calls| calls.unsent),
        (Counter::Unknown, |_| 0),
    ];
    let unended = unended.map(|(counter, of)| (total.numbers.get(counter), counter, of)).into_iter();
    let unended = unended.filter(|(count, ..)| *count > 0).map(|(count, counter, of)| Ending {
        name: counter.key().to_owned(),
        count,
        is_ok: false,
        places: places(&of),
        track: None,
        examples: Vec::new(),
    });
    let (mut ok, mut others): (Vec<_>, Vec<_>) = of_status.chain(of_failure).chain(unended).partition(|way| way.is_ok);
    for ways in [&mut ok, &mut others] {
        ways.sort_by_key(|way| std::cmp::Reverse(way.count));
    }
    others.append(&mut ok);
    others
}

/// Answers with a status over time.
fn of_status(drilldown: &Drilldown, status: u16) -> Option<Kind<Vec<u64>>> {
    let kind = &drilldown.statuses;
    let track = kind.tracks.iter().find(|track| track.status == status)?;
    Some(over(kind, track.answers.clone()))
}

/// Failures over time; without a reason, the sum over all reasons.
fn of_failure(drilldown: &Drilldown, failure: Failure, reason: Option<&str>) -> Option<Kind<Vec<u64>>> {
    let kind = &drilldown.failures;
    let is_one = |track: &&FailureTrack| track.failure == failure && reason.is_none_or(|reason| track.reason == reason);
    let mut sum = Vec::new();
    for track in kind.tracks.iter().filter(is_one) {
        sum.resize(track.calls.len().max(sum.len()), 0);
        sum.iter_mut().zip(&track.calls).for_each(|(sum, n)| *sum += n);
    }
    (!sum.is_empty()).then(|| over(kind, sum))
}

fn over<T>(kind: &Kind<T>, counts: Vec<u64>) -> Kind<Vec<u64>> {
    Kind { start_ns: kind.start_ns.clone(), length_ns: kind.length_ns.clone(), tracks: vec![counts] }
}

fn table(shown: Shown<'_>, ways: &[Ending]) -> Table {
    let has_places = ways.iter().any(|way| !way.places.is_empty());
    let has_tracks = ways.iter().any(|way| way.track.is_some());
    let mut columns = vec![
        Column::words("ended as"),
        Column::figure("calls"),
        Column::figure("of all calls"),
        Column::words("counts as"),
    ];
    if has_places {
        columns.push(Column::words("where"));
    }
    if has_tracks {
        columns.extend([Column::words("from, to"), Column::words("over time")]);
    }
    let due = shown.summary.total.numbers.get(Counter::Due);
    let mut table =
        Table::new("outcomes", "failures first; open a row for its course and its first calls", columns).sortable();
    for (nth, way) in ways.iter().enumerate() {
        let class = if way.is_ok { "" } else { "bad" };
        let share = if due > 0 { way.count as f64 / due as f64 } else { 0.0 };
        let mut cells = vec![
            Cell::new(&way.name).classed(class),
            Cell::count(way.count),
            Cell::sorted(percent(share), share),
            Cell::new(if way.is_ok { "ok" } else { "not ok" }).classed(class),
        ];
        if has_places {
            cells.push(Cell::new(places(&way.places)));
        }
        let mut below = Html::default();
        if has_tracks {
            let known = way.track.as_ref().and_then(|track| Some((track, track.tracks.first()?)));
            cells.push(Cell::new(known.map_or_else(String::new, |(kind, counts)| when(kind, counts))));
            cells.push(
                known.map_or_else(|| Cell::new(""), |(kind, counts)| Cell::drawn(bars_alone(kind, counts, way.is_ok))),
            );
            if let Some((kind, counts)) = known.filter(|(kind, _)| kind.start_ns.len() > 1) {
                let over_time = ends_over_time(format!("ended-{nth}"), &way.name, kind, counts, way.is_ok);
                over_time.with_changes(&shown.summary.run.changes).write(&mut below);
            }
        }
        examples(&mut below, &way.examples);
        table.push_opening(String::new(), cells, Some(below).filter(|below| *below != Html::default()));
    }
    table
}

/// Such as `, trace 4bf9…`, for finding it in a tracing backend; empty without a trace.
fn trace(call: &FailedExample) -> String {
    if call.trace_id.is_empty() { String::new() } else { format!(", trace {}", clean(&call.trace_id)) }
}

/// The first calls with this ending: their due times, their durations, and their excerpts.
fn examples(html: &mut Html, examples: &[FailedExample]) {
    if examples.is_empty() {
        return;
    }
    html.raw("<ul class=\"examples\">");
    for call in examples {
        let request = if call.request.is_empty() { String::new() } else { format!("{}, ", clean(&call.request)) };
        html.raw("<li><p>")
            .text(&format!("{}: {request}after {}{}", Clock(call.due_ns), Duration(call.took_ns), trace(call)))
            .raw("</p>");
        if !call.said.is_empty() {
            html.raw("<pre tabindex=\"0\" role=\"region\" aria-label=\"what was said\">");
            for (nth, line) in call.said.lines().enumerate() {
                html.raw(if nth > 0 { "\n" } else { "" }).text(&clean(&line.replace('\t', "    ")));
            }
            html.raw("</pre>");
        }
        html.raw("</li>");
    }
    html.raw("</ul>");
}

/// The most frequent requests with this ending.
fn places(places: &[(String, u64)]) -> String {
    let named: Vec<_> = places.iter().take(MOST_PLACES).map(|(name, _)| name.as_str()).collect();
    let more = places.len().saturating_sub(MOST_PLACES);
    format!("{}{}", named.join(", "), if more > 0 { format!(" and {more} more") } else { String::new() })
}

/// From when to when calls ended so.
fn when(kind: &Kind<Vec<u64>>, counts: &[u64]) -> String {
    let some = |(_, n): &(usize, &u64)| **n > 0;
    let first = counts.iter().enumerate().find(some).and_then(|(at, _)| kind.start_ns.get(at));
    let last = counts.iter().enumerate().rfind(some);
    let last = last.and_then(|(at, _)| Some(kind.start_ns.get(at)? + kind.length_ns.get(at)?));
    match (first, last) {
        (Some(first), Some(last)) => format!("{} to {}", Clock(*first), Clock(last)),
        _ => String::new(),
    }
}

/// Events and connections.
fn notes(html: &mut Html, shown: Shown<'_>) {
    let summary = shown.summary;
    let numbers = &summary.total.numbers;
    let mut say = |words: &str| {
        html.raw("<p>").text(&clean(words)).raw("</p>");
    };
    for (counter, what) in [
        (Counter::WaitedForConnection, "waited for a free connection"),
        (Counter::Unasked, "messages that nobody asked for"),
    ] {
        if numbers.get(counter) > 0 {
            say(&format!("{} {what}", count(numbers.get(counter))));
        }
    }
    let events = text::events(summary);
    if !events.is_empty() {
        say(&format!("Protocol events: {}", events.join(", ")));
    }
    let held = [
        (Counter::HeldBackByStreamLimit, "by the limit of streams"),
        (Counter::HeldBackByFlowControl, "by flow control"),
    ];
    let held = held.into_iter().filter(|(counter, _)| numbers.get(*counter) > 0);
    let held: Vec<_> = held.map(|(counter, what)| format!("{} {what}", Duration(numbers.get(counter)))).collect();
    if !held.is_empty() {
        say(&format!("Held back, over all connections: {}", held.join(", ")));
    }
    say(&format!("Connections: {}", text::connections_in_words(summary)));
    let troubles = summary.total.troubles.counted().flat_map(|(failure, _)| {
        let reasons = summary.total.troubles.reasons(failure).into_iter();
        reasons.map(move |(reason, n)| format!("{} × {}: {reason}", count(n), failure.name()))
    });
    let troubles: Vec<_> = troubles.collect();
    if !troubles.is_empty() {
        say(&format!("In trouble, without cost to a call: {}", troubles.join(", ")));
    }
    let [bytes_in, bytes_out] =
        [Counter::WireIn, Counter::WireOut].map(|counter| summary.run.measured.numbers.get(counter));
    say(&format!(
        "Bytes: {}/s in ({}), {}/s out ({})",
        Size(summary.rates.wire_in_per_s),
        Size(bytes_in as f64),
        Size(summary.rates.wire_out_per_s),
        Size(bytes_out as f64)
    ));
}
