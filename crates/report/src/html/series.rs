//! A run over time as the page shows it: of each second's distributions only the quantiles.

use brunt_record::catalogue::Counter;
use brunt_record::packed::quantiles;
use schemars::JsonSchema;
use serde::Serialize;

use super::distribution::{Bound, significant};
use crate::json::SeriesPoint;

/// Columns of figures, one row a point.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Series {
    start_ms: Vec<u64>,
    length_ms: Vec<u64>,
    /// The rows that the generator spoiled.
    spoiled: Vec<usize>,
    due_per_s: Vec<f64>,
    answered_per_s: Vec<f64>,
    not_ok_per_s: Vec<f64>,
    /// Of the response time.
    p50_ns: Vec<Option<Bound>>,
    p90_ns: Vec<Option<Bound>>,
    p99_ns: Vec<Option<Bound>>,
    max_ns: Vec<Option<Bound>>,
    lag_p99_ns: Vec<Option<u64>>,
    busiest_worker_cpu_ratio: Vec<f64>,
    most_starved_worker_ratio: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_connections: Option<Vec<u64>>,
}

impl Series {
    pub(super) fn from_points(points: &[SeriesPoint]) -> Self {
        let mut series = Self::default();
        for point in points {
            series.push(point);
        }
        series
    }

    fn push(&mut self, point: &SeriesPoint) {
        let seconds = point.length_ns as f64 / 1e9;
        let per_s = |n: u64| if seconds > 0.0 { significant(n as f64 / seconds, 6) } else { 0.0 };
        if point.spoiled {
            self.spoiled.push(self.start_ms.len());
        }
        self.start_ms.push(point.start_ns / 1_000_000);
        self.length_ms.push(point.length_ns / 1_000_000);
        self.due_per_s.push(per_s(point.due));
        self.answered_per_s.push(significant(point.answered_per_s, 6));
        self.not_ok_per_s.push(per_s(point.not_ok));
        let [p50, p90, p99, max] =
            quantiles(&point.response, &point.failing, &point.response_bounds, [0.5, 0.9, 0.99, 1.0]);
        for (column, value) in
            [(&mut self.p50_ns, p50), (&mut self.p90_ns, p90), (&mut self.p99_ns, p99), (&mut self.max_ns, max)]
        {
            column.push(value.map(Bound));
        }
        self.lag_p99_ns.push(point.lag.quantile(0.99));
        self.busiest_worker_cpu_ratio.push(significant(point.health.ratio(Counter::BusiestWorker), 4));
        self.most_starved_worker_ratio.push(significant(point.health.ratio(Counter::MostStarvedWorker), 4));
        if let Some(users) = point.users {
            self.users.get_or_insert_default().push(users);
        }
        if let Some(open) = point.open_connections {
            self.open_connections.get_or_insert_default().push(open);
        }
    }
}
