//! One table for data frames and spreadsheets. `kind` is the kind of a row's subject, `name` its name, and every other
//! column holds numbers only:
//!
//! | `kind` | `name` | |
//! | --- | --- | --- |
//! | `second` | | one second of the measured part, or longer in runs of more than an hour (`length_s`); `second` is when it began |
//! | `total` | | the whole run, with the calls that ended in the drain, which no second has |
//! | `status` | `200`, or `1 NAME` where the protocol names statuses | answered: how many; `not_ok`: those that are no success |
//! | `request`, `tag` | the request, or `KEY=VALUE` | its calls |
//! | `group` | the group | response: without pauses, service: with them; `not_ok`: ended by an error |
//! | `check` | the check | due: times made, answered: held, `not_ok`: failed |
//! | `scenario` | the scenario | response: iterations; due: begun, answered: finished, `not_ok`: ended by an error; users: started, `not_admitted` and `out_of_rows`: how many of them arrived and found no place, or no row of data |
//! | `messages` | `first_message`, `message_gap`, `each_message` or `last_message`, of a request with its name before it: `chat:message_gap` | response: this time; due: how often it was recorded; rate: messages a second |
//! | `watched` | a figure that was watched, in each second; without a `second` its `mean`, `min`, `max` and `last`: `cpu:max` | value: in its unit, empty where there is none |
//! | `figure` | of the script's or the protocol's own, as thresholds call it: `basket:p95` | value: in its unit; due: how often it was recorded |
//! | `figure_second` | the same in each second: percentiles `p50` and `p99`, the `rate` of a counter, a `share`, the `last` of a gauge | likewise |
//!
//! Times are nanoseconds. Empty is what was not measured. `at_least` names the columns of a row that are lower bounds.
//! `spoiled` is 1 where the generator spoiled the row's figures, in `total` where the verdict is anything but
//! trustworthy; `verdict` says why. `users` is how many virtual users were alive at the row's end, in `total` the most;
//! `open_connections` how many connections were open then, in `total` the most of these.
//!
//! Every row ends with the run that it is of, so that tables of several runs can be put under each other: `started` (UTC, RFC
//! 3339), `run` (its name) and `tags` (`KEY=VALUE`, with spaces between them).
//!
//! Quoted as RFC 4180 has it, lines end in LF.

mod values;

use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use brunt_judge::breakdown::CallBreakdown;
use brunt_judge::distribution::{Distribution, TimeFigure};
use brunt_judge::summary::Summary;
use brunt_judge::verdict;
use brunt_record::catalogue::{Counter, Numbers, Unit};
use brunt_record::histogram::{AtLeast, Censored, Percentile};
use brunt_record::series::Point;

use crate::dates::iso_8601;

const COLUMNS: [&str; 36] = [
    "kind",
    "name",
    "second",
    "length_s",
    "due",
    "answered",
    "not_ok",
    "rate_per_s",
    "response_p50_ns",
    "response_p90_ns",
    "response_p99_ns",
    "response_max_ns",
    "service_p50_ns",
    "service_p90_ns",
    "service_p99_ns",
    "service_max_ns",
    "wire_in_bytes",
    "wire_out_bytes",
    "clear_in_bytes",
    "clear_out_bytes",
    "waited_for_connection",
    "lag_p50_ns",
    "lag_p99_ns",
    "busiest_worker_cpu_ratio",
    "most_starved_worker_ratio",
    "users",
    "open_connections",
    "at_least",
    "spoiled",
    "verdict",
    "value",
    "not_admitted",
    "out_of_rows",
    "started",
    "run",
    "tags",
];

/// Numbers with a column that are not among [`COLUMNS`]: their columns come after these.
fn further() -> impl Iterator<Item = Counter> {
    Counter::ALL.into_iter().filter(|counter| counter.has_column() && !COLUMNS.contains(&counter.key()))
}

fn head() -> String {
    let columns = COLUMNS.into_iter().chain(further().map(Counter::key));
    columns.collect::<Vec<_>>().join(",")
}

/// Writes the seconds of `summary` and its total.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    writeln!(out, "{}", head())?;
    rows(summary).into_iter().try_for_each(|row| writeln!(out, "{row}"))
}

/// Writes the rows of several runs under one head, each after the number that its run is kept under (`number`).
///
/// # Errors
/// When `out` cannot be written to, or a run cannot be read.
pub fn write_several(
    out: &mut impl Write,
    runs: impl IntoIterator<Item = io::Result<(i64, Summary)>>,
) -> io::Result<()> {
    writeln!(out, "number,{}", head())?;
    for run in runs {
        let (number, summary) = run?;
        rows(&summary).into_iter().try_for_each(|row| writeln!(out, "{number},{row}"))?;
    }
    Ok(())
}

/// The rows of a run, each with the run's label.
fn rows(summary: &Summary) -> Vec<String> {
    let has_users = !summary.breakdown.scenarios.is_empty();
    let seconds = summary.run.series.points().iter().map(|point| second(point, has_users));
    let rows = seconds.chain([total(summary)]).chain(statuses(summary)).chain(names(summary));
    let rows = rows.chain(messages(summary)).chain(values::own(summary)).chain(values::own_seconds(summary));
    let rows = rows.chain(values::watched(summary));
    let label = label(summary);
    rows.map(|row| {
        let further = row.further();
        row.with_turned_away() + &label + &further
    })
    .collect()
}

/// The run's start, name and tags, each after a comma.
fn label(summary: &Summary) -> String {
    let (origin, mut row) = (&summary.plan.origin, Row::default());
    row.put("");
    row.put(iso_8601(summary.run.started_unix_ms / 1000));
    row.put(origin.name.as_deref().unwrap_or(""));
    row.put(origin.tags_in_a_line());
    row.text
}

/// A row that grows by a value at a time.
#[derive(Default)]
pub(crate) struct Row {
    text: String,
    has_value: bool,
    at_least: Vec<String>,
    /// Users of a scenario that arrived and found no place, and those that found no row of data.
    turned_away: Option<[u64; 2]>,
    /// Of a second or the total.
    numbers: Option<Numbers>,
}

impl Row {
    pub fn put(&mut self, value: impl Display) {
        if std::mem::replace(&mut self.has_value, true) {
            self.text.push(',');
        }
        // Names and texts of scripts and targets may have any character, and tables are shown on terminals, too.
        let shown = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { char::REPLACEMENT_CHARACTER } else { c };
        let value: String = value.to_string().chars().map(shown).collect();
        if value.contains([',', '"', '\n', '\r']) {
            let _ = write!(self.text, "\"{}\"", value.replace('"', "\"\""));
        } else {
            self.text.push_str(&value);
        }
    }

    fn put_times(&mut self, name: &str, times: [(&str, Option<AtLeast<u64>>); 4]) {
        for (figure, value) in times {
            if value.is_some_and(|value| value.at_least) {
                self.at_least.push(format!("{name}_{figure}_ns"));
            }
            self.put(value.map_or(String::new(), |value| value.value.to_string()));
        }
    }

    fn put_bytes(&mut self, numbers: &Numbers) {
        for counter in [Counter::WireIn, Counter::WireOut, Counter::ClearIn, Counter::ClearOut] {
            self.put(numbers.get(counter));
        }
        self.numbers = Some(*numbers);
    }

    fn put_ratio(&mut self, ratio: f64) {
        self.put(format_args!("{ratio:.4}"));
    }

    fn put_verdict(&mut self, spoiled: bool, why: &str) {
        let at_least = std::mem::take(&mut self.at_least).join(" ");
        self.put(at_least);
        self.put(u8::from(spoiled));
        self.put(why);
        self.put("");
    }

    /// Puts `value` into its column, which comes after `put` columns.
    fn put_value(&mut self, put: usize, value: impl Display) {
        let value_at = COLUMNS.iter().position(|column| *column == "value").unwrap_or(COLUMNS.len());
        (put..value_at).for_each(|_| self.put(""));
        self.put(value);
    }

    /// The same of an own figure, which may be a lower bound.
    fn put_own(&mut self, put: usize, value: AtLeast<f64>) {
        let bounds_at = COLUMNS.iter().position(|column| *column == "at_least").unwrap_or(COLUMNS.len());
        if !value.at_least {
            return self.put_value(put, value.value);
        }
        (put..bounds_at).for_each(|_| self.put(""));
        self.put("value");
        self.put_value(bounds_at + 1, value.value);
    }

    /// The values of further columns, each after a comma.
    fn further(&self) -> String {
        let value = |counter: Counter, numbers: &Numbers| match counter.unit() {
            Unit::Ratio => format!("{:.4}", numbers.ratio(counter)),
            _ => numbers.get(counter).to_string(),
        };
        let values = further().map(|counter| self.numbers.as_ref().map_or_else(String::new, |of| value(counter, of)));
        values.flat_map(|value| [",".to_owned(), value]).collect()
    }

    /// The row with its end.
    pub fn line(self) -> String {
        self.text + "\n"
    }

    /// The row with how many users were turned away.
    fn with_turned_away(mut self) -> String {
        for place in [0, 1] {
            self.put(or_empty(self.turned_away.and_then(|counts| counts.get(place).copied())));
        }
        self.text
    }
}

fn second(point: &Point, has_users: bool) -> Row {
    let mut row = Row::default();
    row.put("second");
    row.put("");
    row.put(point.start_ns as f64 / 1e9);
    row.put(point.length_ns as f64 / 1e9);
    for n in [point.numbers.get(Counter::Due), point.answered, point.not_ok] {
        row.put(n);
    }
    row.put(format_args!("{:.3}", point.answered_per_s()));
    row.put_times("response", of_times(&point.response_times()));
    row.put_times("service", of_times(&point.service.unpack().into()));
    row.put_bytes(&point.numbers);
    row.put(point.numbers.get(Counter::WaitedForConnection));
    let lag = point.lag.unpack();
    for q in [0.5, 0.99] {
        row.put(or_empty(lag.quantile(q)));
    }
    row.put_ratio(point.numbers.ratio(Counter::BusiestWorker));
    row.put_ratio(point.numbers.ratio(Counter::MostStarvedWorker));
    row.put(if has_users { point.users.to_string() } else { String::new() });
    row.put(or_empty(point.open_connections));
    row.put_verdict(verdict::is_spoiled(point), &verdict::causes(point).join(" "));
    row
}

fn total(summary: &Summary) -> Row {
    let (total, times) = (&summary.total, &summary.times);
    let mut row = Row::default();
    row.put("total");
    row.put("");
    row.put("");
    row.put(summary.run.measured_ns as f64 / 1e9);
    for n in [total.numbers.get(Counter::Due), total.statuses.total(), summary.not_ok] {
        row.put(n);
    }
    row.put(format_args!("{:.3}", summary.rates.answered_per_s));
    row.put_times("response", of_distribution(times.response.as_ref()));
    row.put_times("service", of_distribution(times.service.as_ref()));
    row.put_bytes(&total.numbers);
    row.put(total.numbers.get(Counter::WaitedForConnection));
    for percentile in [Percentile::P50, Percentile::P99] {
        row.put(
            times
                .lag
                .as_ref()
                .and_then(|lag| lag.quantile(percentile))
                .map_or(String::new(), |lag| lag.value.to_string()),
        );
    }
    row.put_ratio(total.numbers.ratio(Counter::BusiestWorker));
    row.put_ratio(total.numbers.ratio(Counter::MostStarvedWorker));
    let has_users = !summary.breakdown.scenarios.is_empty();
    row.put(if has_users { summary.run.series.most_users().to_string() } else { String::new() });
    row.put(or_empty(summary.run.series.points().iter().filter_map(|point| point.open_connections).max()));
    row.put_verdict(!summary.verdict.is_trustworthy(), &summary.verdict.sentence.to_string());
    row
}

/// A row for each status; none for protocols without statuses, whose only status is 0.
fn statuses(summary: &Summary) -> Vec<Row> {
    let (statuses, names) = (summary.total.statuses.sorted(), &summary.run.status_names);
    let seconds = summary.run.measured_ns as f64 / 1e9;
    let rows = statuses.into_iter().filter(|(status, _)| *status != 0).map(|(status, count)| {
        let name = names.get(&status).map_or_else(String::new, |name| format!(" {name}"));
        let not_ok = if summary.ok_status().holds(status) { 0 } else { count };
        NameRow {
            kind: "status",
            name: format!("{status}{name}"),
            counts: [count, count, not_ok],
            rate_per_s: None,
            times: [None, None],
            bytes: None,
            users: None,
            turned_away: None,
        }
        .into_row(seconds)
    });
    rows.collect()
}

/// A row for each name.
fn names(summary: &Summary) -> Vec<Row> {
    let names = &summary.breakdown;
    let seconds = summary.run.measured_ns as f64 / 1e9;
    let requests = names.requests.iter().map(|calls| NameRow::of_calls("request", calls));
    let tags = names.tags.iter().map(|calls| NameRow::of_calls("tag", calls));
    let groups = names.groups.iter().map(|group| NameRow {
        kind: "group",
        name: group.name.clone(),
        counts: [group.count, group.count - group.unfinished, group.failed],
        rate_per_s: None,
        times: [group.without_pauses.as_ref(), group.with_pauses.as_ref()],
        bytes: None,
        users: None,
        turned_away: None,
    });
    let checks = names.checks.iter().map(|check| NameRow {
        kind: "check",
        name: check.name.clone(),
        counts: [check.passes + check.fails, check.passes, check.fails],
        rate_per_s: None,
        times: [None, None],
        bytes: None,
        users: None,
        turned_away: None,
    });
    let scenarios = names.scenarios.iter().map(|scenario| NameRow {
        kind: "scenario",
        name: scenario.name.clone(),
        counts: [scenario.iterations + scenario.unfinished + scenario.errors, scenario.iterations, scenario.errors],
        rate_per_s: None,
        times: [scenario.iteration.as_ref(), None],
        bytes: None,
        users: Some(scenario.users_started),
        turned_away: Some([scenario.not_admitted, scenario.out_of_rows]),
    });
    let rows = requests.chain(tags).chain(groups).chain(checks).chain(scenarios);
    rows.map(|row| row.into_row(seconds)).collect()
}

/// A row for each time of messages, over all calls and by the names of requests.
fn messages(summary: &Summary) -> Vec<Row> {
    let times = &summary.times;
    let (all, per_s) = (summary.total.messages(), summary.rates.messages_per_s);
    let over_all = [&times.first_message, &times.message_gap, &times.each_message, &times.last_message];
    let mut streams = vec![(String::new(), per_s, over_all)];
    for request in &summary.breakdown.requests {
        if let Some(of) = &request.messages {
            streams.push((format!("{}:", request.name), of.per_s, [&of.first, &of.gap, &of.each, &of.last]));
        }
    }
    if all.is_empty() {
        return Vec::new();
    }
    let seconds = summary.run.measured_ns as f64 / 1e9;
    let names = ["first_message", "message_gap", "each_message", "last_message"];
    let rows = streams.iter().flat_map(|(of, per_s, times)| {
        names.iter().zip(times).filter_map(move |(name, times)| {
            let times = times.as_ref()?;
            let row = NameRow {
                kind: "messages",
                name: format!("{of}{name}"),
                counts: [times.count, times.count, 0],
                rate_per_s: Some(*per_s),
                times: [Some(times), None],
                bytes: None,
                turned_away: None,
                users: None,
            };
            Some(row.into_row(seconds))
        })
    });
    rows.collect()
}

/// A row's figures of a name.
struct NameRow<'a> {
    kind: &'static str,
    name: String,
    /// Due, answered, not ok.
    counts: [u64; 3],
    rate_per_s: Option<f64>,
    /// Response and service.
    times: [Option<&'a Distribution>; 2],
    /// In and out, in the clear.
    bytes: Option<(u64, u64)>,
    users: Option<u64>,
    /// See [`Row`].
    turned_away: Option<[u64; 2]>,
}

impl<'a> NameRow<'a> {
    fn of_calls(kind: &'static str, calls: &'a CallBreakdown) -> Self {
        Self {
            kind,
            name: calls.name.clone(),
            counts: [calls.due, calls.answered, calls.not_ok],
            rate_per_s: Some(calls.answered_per_s),
            times: [calls.response.as_ref(), calls.service.as_ref()],
            bytes: Some((calls.bytes_in, calls.bytes_out)),
            users: None,
            turned_away: None,
        }
    }

    fn into_row(self, seconds: f64) -> Row {
        let mut row = Row::default();
        row.put(self.kind);
        row.put(self.name);
        row.put("");
        row.put(seconds);
        for n in self.counts {
            row.put(n);
        }
        row.put(self.rate_per_s.map_or(String::new(), |rate| format!("{rate:.3}")));
        for (name, times) in ["response", "service"].into_iter().zip(self.times) {
            row.put_times(name, of_distribution(times));
        }
        // On the wire, names cannot be told apart.
        row.put("");
        row.put("");
        row.put(or_empty(self.bytes.map(|(bytes_in, _)| bytes_in)));
        row.put(or_empty(self.bytes.map(|(_, bytes_out)| bytes_out)));
        for _ in 0..5 {
            row.put("");
        }
        row.put(or_empty(self.users));
        row.put("");
        let at_least = std::mem::take(&mut row.at_least).join(" ");
        row.put(at_least);
        row.put("");
        row.put("");
        row.put("");
        row.turned_away = self.turned_away;
        row
    }
}

fn or_empty(value: Option<u64>) -> String {
    value.map_or(String::new(), |n| n.to_string())
}

fn of_times(times: &Censored) -> [(&'static str, Option<AtLeast<u64>>); 4] {
    let [p50, p90, p99] = times.quantiles([0.5, 0.9, 0.99]);
    let max = times.lower().max().map(|max| AtLeast { value: max, at_least: !times.bounds.is_empty() });
    [("p50", p50), ("p90", p90), ("p99", p99), ("max", max)]
}

fn of_distribution(times: Option<&Distribution>) -> [(&'static str, Option<AtLeast<u64>>); 4] {
    use TimeFigure::{At, Max};
    [At(Percentile::P50), At(Percentile::P90), At(Percentile::P99), Max]
        .map(|figure| (figure.name(), times.and_then(|times| Some(times.figure(figure)?.0))))
}
