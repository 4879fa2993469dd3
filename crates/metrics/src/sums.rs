//! Sums over seconds, since the run began, for receivers that want totals.

use crate::model::{Data, Metric, MetricPoint};

/// The most exemplars of a point: those of its last seconds.
const MOST_EXEMPLARS: usize = 20;

/// Metrics added up over the seconds of a run.
///
/// Bounded by [`Names`](crate::Names) and by the phases of a run, as the seconds are.
#[derive(Debug, Clone, Default)]
pub struct Sums(Vec<Metric>);

impl Sums {
    /// Adds a second's metrics. A gauge keeps its newest values.
    pub fn add(&mut self, second: Vec<Metric>) {
        for metric in second {
            match self.0.iter_mut().find(|known| known.name == metric.name) {
                Some(known) => join(&mut known.data, metric.data),
                None => self.0.push(metric),
            }
        }
    }

    /// All metrics, in the order in which they came.
    pub fn metrics(&self) -> &[Metric] {
        &self.0
    }
}

fn join(known: &mut Data, new: Data) {
    match (known, new) {
        (Data::Sum { monotonic, points }, Data::Sum { monotonic: theirs, points: new }) => {
            *monotonic &= theirs;
            join_points(points, new, |known, new| *known = known.plus(new));
        }
        // A gauge without a value any more is not shown with an old one.
        (Data::Gauge(points), Data::Gauge(new)) => *points = new,
        (Data::Distribution { points, .. }, Data::Distribution { points: new, .. }) => {
            join_points(points, new, |known, new| known.merge(&new));
        }
        // A script's own figure that has changed its kind: the first kind stands.
        _ => {}
    }
}

fn join_points<T>(known: &mut Vec<MetricPoint<T>>, new: Vec<MetricPoint<T>>, join: impl Fn(&mut T, T)) {
    for (nth, point) in new.into_iter().enumerate() {
        let is_it = |known: &MetricPoint<T>| known.attributes == point.attributes;
        // The points of seconds usually come in the same order.
        let place = if known.get(nth).is_some_and(is_it) { Some(nth) } else { known.iter().position(is_it) };
        match place.and_then(|place| known.get_mut(place)) {
            Some(known) => {
                join(&mut known.value, point.value);
                known.exemplars.extend(point.exemplars);
                let old = known.exemplars.len().saturating_sub(MOST_EXEMPLARS);
                known.exemplars.drain(..old);
            }
            None => known.push(point),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Number, Value};

    fn sum(name: &'static str, status: u16, value: Number) -> Metric {
        let attributes = vec![("status".into(), Value::from(status))];
        Metric::new(name, "1", "", Data::counter(vec![MetricPoint::new(attributes, value)]))
    }

    #[test]
    fn points_with_the_same_attributes_add_up_and_gauges_are_replaced() {
        let mut sums = Sums::default();
        sums.add(vec![
            sum("a", 200, Number::Whole(2)),
            Metric::new("g", "1", "", Data::Gauge(vec![MetricPoint::new(vec![], 1.0)])),
        ]);
        sums.add(vec![sum("a", 200, Number::Whole(3)), sum("a", 500, Number::Real(0.5))]);
        sums.add(vec![Metric::new("g", "1", "", Data::Gauge(vec![MetricPoint::new(vec![], 7.0)]))]);
        let [a, g] = sums.metrics() else { panic!("{sums:?}") };
        let Data::Sum { points, .. } = &a.data else { panic!("{a:?}") };
        assert_eq!(points.iter().map(|point| point.value).collect::<Vec<_>>(), [Number::Whole(5), Number::Real(0.5)]);
        assert_eq!(g.data, Data::Gauge(vec![MetricPoint::new(vec![], 7.0)]));
    }

    #[test]
    fn points_are_found_in_whatever_order_they_come() {
        let points = |counts: &[(u16, u64)]| {
            let point = |(status, n): &(u16, u64)| {
                MetricPoint::new(vec![("status".into(), Value::from(*status))], Number::Whole(*n))
            };
            vec![Metric::new("a", "1", "", Data::counter(counts.iter().map(point).collect()))]
        };
        let mut sums = Sums::default();
        sums.add(points(&[(200, 1), (404, 10), (500, 100)]));
        sums.add(points(&[(500, 200), (200, 2), (503, 1000)]));
        sums.add(points(&[(404, 20)]));
        let Data::Sum { points, .. } = &sums.metrics()[0].data else { panic!("{sums:?}") };
        let values: Vec<_> = points.iter().map(|point| point.value).collect();
        assert_eq!(values, [3, 30, 300, 1000].map(Number::Whole));
    }
}
