//! What seconds add up to: sums since the run began, for those who ask for totals.

use std::collections::BTreeMap;

use crate::model::{Attributes, Data, Metric, Point};

/// The most calls that a point is shown with: those of its last seconds.
const MOST_EXEMPLARS: usize = 20;

/// Metrics added up over the seconds of a run.
///
/// Bounded as the seconds are: by [`Names`](crate::Names), and by the phases of a run.
#[derive(Debug, Clone, Default)]
pub struct Sums(Vec<Metric>);

impl Sums {
    /// Adds a second's. Of gauges the newest values stand.
    pub fn add(&mut self, second: Vec<Metric>) {
        for metric in second {
            match self.0.iter_mut().find(|known| known.name == metric.name) {
                Some(known) => join(&mut known.data, metric.data),
                None => self.0.push(metric),
            }
        }
    }

    /// All of them, in the order in which they came.
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
        // What no longer has a value is not shown with an old one.
        (Data::Gauge(points), Data::Gauge(new)) => *points = new,
        (Data::Distribution { points, .. }, Data::Distribution { points: new, .. }) => {
            join_points(points, new, |known, new| known.merge(&new));
        }
        // A figure of a script's own that is of another kind by now: what came first stands.
        _ => {}
    }
}

fn join_points<T>(known: &mut Vec<Point<T>>, new: Vec<Point<T>>, join: impl Fn(&mut T, T)) {
    let mut places: BTreeMap<Attributes, usize> =
        known.iter().enumerate().map(|(place, point)| (point.attributes.clone(), place)).collect();
    for point in new {
        if let Some(known) = places.get(&point.attributes).and_then(|place| known.get_mut(*place)) {
            join(&mut known.value, point.value);
            known.exemplars.extend(point.exemplars);
            let old = known.exemplars.len().saturating_sub(MOST_EXEMPLARS);
            known.exemplars.drain(..old);
        } else {
            places.insert(point.attributes.clone(), known.len());
            known.push(point);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Number, Value};

    fn sum(name: &'static str, status: u16, value: Number) -> Metric {
        let attributes = vec![("status".into(), Value::from(status))];
        Metric::new(name, "1", "", Data::counter(vec![Point::new(attributes, value)]))
    }

    #[test]
    fn points_with_the_same_attributes_add_up_and_gauges_are_replaced() {
        let mut sums = Sums::default();
        sums.add(vec![
            sum("a", 200, Number::Whole(2)),
            Metric::new("g", "1", "", Data::Gauge(vec![Point::new(vec![], 1.0)])),
        ]);
        sums.add(vec![sum("a", 200, Number::Whole(3)), sum("a", 500, Number::Real(0.5))]);
        sums.add(vec![Metric::new("g", "1", "", Data::Gauge(vec![Point::new(vec![], 7.0)]))]);
        let [a, g] = sums.metrics() else { panic!("{sums:?}") };
        let Data::Sum { points, .. } = &a.data else { panic!("{a:?}") };
        assert_eq!(points.iter().map(|point| point.value).collect::<Vec<_>>(), [Number::Whole(5), Number::Real(0.5)]);
        assert_eq!(g.data, Data::Gauge(vec![Point::new(vec![], 7.0)]));
    }
}
