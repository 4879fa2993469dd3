//! A run over time as a table: the drawing's figures, to read or to copy.

use brunt_plan::units::{Clock, Duration, Number};
use brunt_plan::watch::shown_value;
use brunt_record::catalogue::Counter;
use brunt_record::figures::OwnPoint;

use super::super::shown::Shown;
use super::super::stretches::Stretch;
use crate::csv::Row;
use crate::numbers::{clean, count, duration, percent};
use crate::own;
use crate::own::text;
use crate::page::{Cell, Column, Table};

/// brunt's health in a stretch: the worst of its seconds; and the open connections at its end.
#[derive(Debug, Clone, Default)]
pub(in crate::html) struct Moment {
    pub(in crate::html) lag_p99_ns: Option<u64>,
    pub(in crate::html) busiest_worker: f64,
    pub(in crate::html) most_starved_worker: f64,
    pub(in crate::html) users: Option<u64>,
    pub(in crate::html) open_connections: Option<u64>,
    /// Means of watched figures, in the summary's order.
    pub(in crate::html) watched: Vec<Option<f64>>,
    /// Own figures with a chart, in their order, each with the length of its points in nanoseconds.
    pub(in crate::html) own: Vec<(OwnPoint, u64)>,
}

/// The moment of each stretch.
pub(in crate::html) fn moments(shown: Shown<'_>, stretches: &[Stretch]) -> Vec<Moment> {
    let mut points = shown.summary.run.series.points();
    let has_users = !shown.summary.breakdown.scenarios.is_empty();
    let drawn: Vec<_> = own::drawn(shown.summary).into_iter().map(|own| own.name.as_str()).collect();
    let moment = |stretch: &Stretch| {
        let mut moment = Moment::default();
        let begun = points.partition_point(|point| point.start_ns + point.length_ns <= stretch.from_ns);
        points = points.get(begun..).unwrap_or_default();
        let here = || points.iter().take_while(|point| point.start_ns < stretch.to_ns);
        let mean = |name: &str| {
            let values: Vec<_> = here().filter_map(|point| point.watched.get(name)?.mean()).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        moment.watched = shown.summary.watched.iter().map(|figure| mean(&figure.name)).collect();
        let length_ns = here().map(|point| point.length_ns).sum();
        let joined = |name: &str| {
            let mut values = OwnPoint::default();
            here().filter_map(|point| point.own.get(name)).for_each(|own| values.absorb(own));
            (values, length_ns)
        };
        moment.own = drawn.iter().map(|name| joined(name)).collect();
        for point in here() {
            moment.lag_p99_ns = moment.lag_p99_ns.max(point.lag.quantile(0.99));
            moment.busiest_worker = moment.busiest_worker.max(point.numbers.ratio(Counter::BusiestWorker));
            moment.most_starved_worker =
                moment.most_starved_worker.max(point.numbers.ratio(Counter::MostStarvedWorker));
            moment.users = has_users.then_some(point.users);
            moment.open_connections = point.open_connections.or(moment.open_connections);
        }
        moment
    };
    stretches.iter().map(moment).collect()
}

/// The table.
pub(in crate::html) fn table(shown: Shown<'_>, stretches: &[Stretch], moments: &[Moment]) -> Table {
    let has_users = moments.iter().any(|moment| moment.users.is_some());
    let names = ["at", "due/s", "ok/s", "not ok/s", "p50", "p99", "max", "under way", "lag p99", "CPU", "no CPU"];
    let mut columns: Vec<_> = names.into_iter().map(Column::figure).collect();
    if has_users {
        columns.push(Column::figure("users"));
    }
    let own = super::own::values(shown);
    columns.extend(own.iter().map(|(_, what, ..)| Column::figure(what.clone())));
    let watched = &shown.summary.watched;
    columns.extend(watched.iter().map(|figure| Column::figure(clean(&figure.name))));
    let mut table = Table::new(
        "each",
        "response times by when calls were due, ends by when they ended; ! marks what brunt itself spoiled",
        columns,
    );
    for (stretch, moment) in stretches.iter().zip(moments) {
        let rate = |calls: f64| Cell::new(Number(calls / stretch.seconds()).to_string());
        let times = stretch.calls.response_times().quantiles([0.5, 0.99, 1.0]);
        let times = times.map(|time| Cell::new(time.map_or("–".to_owned(), duration)));
        let at = format!("{}{}", Clock(stretch.from_ns), if stretch.is_spoiled { " !" } else { "" });
        let flow = &stretch.flow;
        let mut cells = vec![Cell::new(at), rate(flow.due), rate(flow.ok), rate(flow.not_ok)];
        cells.extend(times);
        cells.push(Cell::new(count(flow.waiting.round() as u64)));
        cells.push(Cell::new(moment.lag_p99_ns.map_or("–".to_owned(), |ns| Duration(ns).to_string())));
        cells.push(Cell::new(percent(moment.busiest_worker)));
        cells.push(Cell::new(percent(moment.most_starved_worker)));
        if has_users {
            cells.push(Cell::new(moment.users.map_or("–".to_owned(), count)));
        }
        cells.extend(own.iter().map(|(at, _, unit, shown)| {
            let value = moment.own.get(*at).and_then(|(values, length_ns)| shown.in_point(values, *length_ns));
            Cell::new(value.map_or("–".to_owned(), |value| text(*shown, unit, value)))
        }));
        let values = watched.iter().zip(&moment.watched);
        cells.extend(
            values.map(|(figure, value)| {
                Cell::new(value.map_or("–".to_owned(), |value| shown_value(figure.unit, value)))
            }),
        );
        table.push(cells);
    }
    table
}

/// The table as CSV (RFC 4180), with units in the names.
pub(super) fn csv(shown: Shown<'_>, stretches: &[Stretch], moments: &[Moment]) -> String {
    let mut text = "start_s,length_s,due,ok,not_ok,p50_ns,p99_ns,max_ns,under_way,lag_p99_ns,busiest_worker_ratio,\
                    most_starved_worker_ratio,open_connections,users"
        .to_owned();
    let own = super::own::values(shown);
    let drawn = own::drawn(shown.summary);
    let name = |at: &usize| drawn.get(*at).map_or("", |own| own.name.as_str());
    let head = own.iter().map(|(at, _, _, shown)| format!("{}:{}", name(at), shown.name()));
    text.extend(head.chain(shown.summary.watched.iter().map(|figure| format!("watch.{}", figure.name))).map(|name| {
        let mut row = Row::default();
        row.put(name);
        format!(",{}", row.line().trim_end())
    }));
    text.push('\n');
    let known = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
    for (stretch, moment) in stretches.iter().zip(moments) {
        let mut row = Row::default();
        row.put(format_args!("{:.3}", stretch.from_ns as f64 / 1e9));
        row.put(format_args!("{:.3}", stretch.seconds()));
        for calls in [stretch.flow.due, stretch.flow.ok, stretch.flow.not_ok] {
            row.put(format_args!("{calls:.1}"));
        }
        for time in stretch.calls.response_times().quantiles([0.5, 0.99, 1.0]) {
            row.put(known(time.map(|time| time.value)));
        }
        row.put(stretch.flow.waiting.round() as u64);
        row.put(known(moment.lag_p99_ns));
        row.put(format_args!("{:.4}", moment.busiest_worker));
        row.put(format_args!("{:.4}", moment.most_starved_worker));
        row.put(known(moment.open_connections));
        row.put(known(moment.users));
        for (at, _, _, shown) in &own {
            let value = moment.own.get(*at).and_then(|(values, length_ns)| shown.in_point(values, *length_ns));
            row.put(value.map_or(String::new(), |value| value.value.to_string()));
        }
        for value in &moment.watched {
            row.put(value.map_or(String::new(), |value| value.to_string()));
        }
        text.push_str(&row.line());
    }
    text
}
