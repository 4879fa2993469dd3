//! Outcomes of calls: the sum, and each ending with its requests and times.

use brunt_plan::units::{Clock, Duration, Size};
use brunt_record::catalogue::Counter;
use brunt_record::examples::FailedCall;

use super::super::last_second::LastSecond;
use super::super::over_time::{bars_alone, ends_over_time};
use super::super::shown::Shown;
use crate::json::{Calls, Document, Drilldown, Kind};
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
    let ways = ways(shown.document);
    if !ways.is_empty() {
        let table = table(shown, &ways);
        section.tools.push(table.csv());
        table.write(&mut section.body);
    }
    notes(&mut section.body, shown);
    section
}

/// A way in which calls ended.
struct Way {
    name: String,
    count: u64,
    is_ok: bool,
    /// Calls of each name that ended so.
    places: Vec<(String, u64)>,
    /// The number of such calls over time: the beginnings and lengths of stretches, and counts.
    track: Option<Kind<Vec<u64>>>,
    /// The first calls with this ending.
    examples: Vec<FailedCall>,
}

/// All endings: those that are not ok first, each group by frequency.
fn ways(document: &Document) -> Vec<Way> {
    let requests = document.names.as_ref().map_or(&[][..], |names| names.requests.as_slice());
    let places = |calls: &dyn Fn(&Calls) -> u64| {
        let mut places: Vec<_> = requests.iter().map(|request| (request.name.clone(), calls(request))).collect();
        places.retain(|(_, n)| *n > 0);
        places.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        places
    };
    let drilldown = document.drilldown.as_ref();
    let outcomes = &document.outcomes;
    let of_status = outcomes.statuses.iter().filter(|status| status.status != 0).map(|status| {
        let name = outcomes.status_names.get(&status.status).map_or_else(String::new, |name| format!(" {name}"));
        Way {
            name: format!("{}{name}", status.status),
            count: status.count,
            is_ok: document.plan.ok_status.holds(status.status),
            places: places(&|calls| {
                calls.statuses.iter().filter(|known| known.status == status.status).map(|known| known.count).sum()
            }),
            track: drilldown.and_then(|drilldown| of_status(drilldown, status.status)),
            examples: outcomes.examples.get(&status.status.to_string()).to_vec(),
        }
    });
    let of_failure = outcomes.failures.iter().flat_map(|failure| {
        let places = places(&|calls| {
            calls.failures.iter().filter(|known| known.failure == failure.failure).map(|known| known.count).sum()
        });
        let reasons: Vec<_> = failure.reasons.iter().filter(|reason| !reason.reason.is_empty()).collect();
        let way = |name: String, count: u64, reason: Option<&str>| Way {
            name,
            count,
            is_ok: false,
            places: places.clone(),
            track: drilldown.and_then(|drilldown| of_failure(drilldown, &failure.failure, reason)),
            examples: {
                let all = outcomes.examples.get(&failure.failure).iter();
                all.filter(|call| reason.is_none_or(|reason| call.said == reason)).cloned().collect()
            },
        };
        // A single reason needs no second line.
        match reasons.as_slice() {
            [only] if only.count == failure.count => {
                vec![way(format!("{}: {}", failure.failure, only.reason), failure.count, Some(&only.reason))]
            }
            reasons => std::iter::once(way(failure.failure.clone(), failure.count, None))
                .chain(reasons.iter().map(|reason| {
                    way(format!("{}: {}", failure.failure, reason.reason), reason.count, Some(&reason.reason))
                }))
                .collect(),
        }
    });
    let numbers = &outcomes.numbers;
    let unended = [
        (numbers.get(Counter::Unfinished), "unfinished", (|calls| calls.unfinished) as fn(&Calls) -> u64),
        (numbers.get(Counter::Unsent), "unsent", |calls| calls.unsent),
        (numbers.get(Counter::Unknown), "unknown", |_| 0),
    ];
    let unended = unended.into_iter().filter(|(count, ..)| *count > 0).map(|(count, name, of)| Way {
        name: name.to_owned(),
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
fn of_failure(drilldown: &Drilldown, failure: &str, reason: Option<&str>) -> Option<Kind<Vec<u64>>> {
    let kind = &drilldown.failures;
    let is_one = |track: &&crate::json::FailureTrack| {
        track.failure == failure && reason.is_none_or(|reason| track.reason == reason)
    };
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

fn table(shown: Shown<'_>, ways: &[Way]) -> Table {
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
    let mut table = Table::new(
        "outcomes",
        "statuses and failures, what is not ok first; open one to see its course and the first calls that ended so",
        columns,
    )
    .sortable();
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
fn trace(call: &FailedCall) -> String {
    if call.trace_id.is_empty() { String::new() } else { format!(", trace {}", clean(&call.trace_id)) }
}

/// The first calls with this ending: their due times, their durations, and their excerpts.
fn examples(html: &mut Html, examples: &[FailedCall]) {
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
    let (summary, document) = (shown.summary, shown.document);
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
    let events: Vec<_> = summary.total.events.iter().map(|(name, n)| format!("{name} × {}", count(n))).collect();
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
    let troubles = document.connections.troubles.iter().flat_map(|trouble| {
        trouble.reasons.iter().map(|reason| format!("{} × {}: {}", count(reason.count), trouble.failure, reason.reason))
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
