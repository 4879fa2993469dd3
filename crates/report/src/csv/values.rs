//! Rows of single values: figures of a script's own, and watched figures.

use brunt_judge::summary::Summary;
use brunt_record::figures::OwnStatistic;
use brunt_record::histogram::AtLeast;

use super::Row;

/// A row for each value of the script's own figures.
pub(super) fn own(summary: &Summary) -> Vec<Row> {
    let mut rows = Vec::new();
    for own in &summary.breakdown.own {
        let figures = &own.figures;
        let exactly = |value: Option<f64>| value.map(AtLeast::exactly);
        let values = [
            ("sum", exactly(figures.sum())),
            ("rate", exactly(own.per_s)),
            ("share", exactly(figures.share())),
            ("last", exactly(figures.last())),
            ("mean", figures.mean()),
            ("min", exactly(figures.min())),
            ("max", figures.max()),
        ];
        let percentiles = figures.percentiles().into_iter().map(|(percentile, value)| (percentile.name(), value));
        let values = values.into_iter().filter_map(|(figure, value)| Some((figure, value?)));
        for (figure, value) in percentiles.chain(values) {
            let mut row = Row::default();
            row.put("figure");
            row.put(format_args!("{}:{figure}", own.name));
            row.put("");
            row.put(summary.run.measured_ns as f64 / 1e9);
            row.put(figures.count);
            row.put_own(5, value);
            rows.push(row);
        }
    }
    rows
}

/// A row for each value that views show of an own figure in a second.
pub(super) fn own_seconds(summary: &Summary) -> Vec<Row> {
    let mut rows = Vec::new();
    for own in &summary.breakdown.own {
        for point in summary.run.series.points() {
            let Some(values) = point.own.get(&own.name) else { continue };
            for shown in OwnStatistic::of_kind(values.kind) {
                let Some(value) = shown.in_point(values, point.length_ns) else { continue };
                let mut row = Row::default();
                row.put("figure_second");
                row.put(format_args!("{}:{}", own.name, shown.name()));
                row.put(point.start_ns as f64 / 1e9);
                row.put(point.length_ns as f64 / 1e9);
                row.put(values.count);
                row.put_own(5, value);
                rows.push(row);
            }
        }
    }
    rows
}

/// A row for each watched figure in each second, and for each statistic of it.
pub(super) fn watched(summary: &Summary) -> Vec<Row> {
    let mut rows = Vec::new();
    for figure in &summary.watched {
        for point in summary.run.series.points() {
            let Some(value) = point.watched.get(&figure.name) else { continue };
            let mut row = Row::default();
            row.put("watched");
            row.put(&figure.name);
            row.put(point.start_ns as f64 / 1e9);
            row.put(point.length_ns as f64 / 1e9);
            row.put_value(4, value.mean().map_or(String::new(), |mean| mean.to_string()));
            rows.push(row);
        }
        let values = [("mean", figure.mean), ("min", figure.min), ("max", figure.max), ("last", figure.last)];
        for (statistic, value) in values {
            let mut row = Row::default();
            row.put("watched");
            row.put(format_args!("{}:{statistic}", figure.name));
            row.put("");
            row.put(summary.run.measured_ns as f64 / 1e9);
            row.put_value(4, value.map_or(String::new(), |value| value.to_string()));
            rows.push(row);
        }
    }
    rows
}
