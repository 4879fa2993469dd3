//! Figures over time: one point a second, bounded in number and small each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::SECOND_NS;
use crate::catalogue::{Counter, Numbers, Timing};
use crate::drilldown::Drilldown;
use crate::figures::{NamedFigures, OTHERS, OwnFigures, OwnKind, OwnPoint};
use crate::histogram::{AtLeast, Censored, Histogram};
use crate::instrument::BoundedTimes;
use crate::outcome::OkStatus;
use crate::packed::{Packed, censored, quantiles};
use crate::snapshot::Snapshot;
use crate::watched::WatchedPoint;

/// The most points kept. When there are more, neighbours are merged in pairs and points become twice as long.
const MOST_POINTS: usize = 3600;

/// The budget for own figures in each point: a trend costs [`TREND`], any other figure 1.
const MOST_OWN: usize = 80;
const TREND: usize = 4;

/// What happened in one stretch of the measured part, usually a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When it begins, in nanoseconds after the measured part's beginning.
    pub start_ns: u64,
    /// How long it is, in nanoseconds.
    pub length_ns: u64,
    /// Counts.
    pub numbers: Numbers,
    /// Calls that were answered, with whatever status.
    pub answered: u64,
    /// Calls that ended without success: failures, and answers whose status is not ok.
    pub not_ok: u64,
    /// Virtual users alive at its end; 0 where there are no scenarios.
    pub users: u64,
    /// Connections open at its end, where that is known.
    pub open_connections: Option<u64>,
    /// Calls that ended here with a time of their own: all except unfinished and unsent ones.
    pub ended: u64,
    /// Whether the generator's own delays are taken off the times: the target's part is known.
    pub is_target_part: bool,
    /// Response times of calls that ended here: the target's part where it is known.
    pub response: Packed,
    /// The lower bounds of these; `None` where they are the same.
    pub response_low: Option<Packed>,
    /// The upper bounds of these; `None` where they are the same.
    pub response_high: Option<Packed>,
    /// Of these, the response times of calls that ended without success.
    pub failing: Packed,
    /// Lower bounds of response times of calls that never ended.
    pub response_bounds: Packed,
    /// Service times of calls that ended here: the target's part where it is known.
    pub service: Packed,
    /// Generator lag of calls sent here.
    pub lag: Packed,
    /// Figures watched beside the run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub watched: BTreeMap<String, WatchedPoint>,
    /// Figures of the script's or the protocol's own, by name. Where there are very many, only those that were recorded first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, OwnPoint>,
}

impl Point {
    fn from_snapshot(start_ns: u64, length_ns: u64, snapshot: &Snapshot, ok: &OkStatus, users: u64) -> Self {
        let parts = BoundedTimes::of_response(&snapshot.times);
        let has_parts = parts.cover();
        let unlike_value = |times: &Histogram| {
            let differs = has_parts && !times.values().eq(parts.value.values());
            differs.then(|| Packed::from_histogram(times))
        };
        Self {
            start_ns,
            length_ns,
            numbers: snapshot.numbers,
            answered: snapshot.statuses.total(),
            not_ok: snapshot.not_ok(ok),
            users,
            open_connections: None,
            ended: snapshot.times.known(Timing::Response).count(),
            is_target_part: has_parts,
            response: Packed::from_histogram(parts.ended()),
            response_low: unlike_value(parts.low),
            response_high: unlike_value(parts.high),
            failing: parts.failed().map(|failed| Packed::from_histogram(&failed)).unwrap_or_default(),
            response_bounds: Packed::from_histogram(snapshot.times.bounds(Timing::Response)),
            service: Packed::from_histogram(BoundedTimes::of_service(&snapshot.times).ended()),
            lag: Packed::from_histogram(snapshot.times.known(Timing::Lag)),
            watched: snapshot.watched.iter().map(|(name, figure)| (name.to_owned(), figure.into())).collect(),
            own: BTreeMap::new(),
        }
    }

    /// Its response times, with calls without success apart.
    pub fn response_times(&self) -> Censored {
        censored(&self.response, &self.failing, &self.response_bounds)
    }

    /// Its response time at a quantile (0 to 1).
    pub fn response_quantile(&self, q: f64) -> Option<AtLeast<u64>> {
        let [value] = quantiles(&self.response, &self.failing, &self.response_bounds, [q]);
        value
    }

    /// When it ends, in nanoseconds of the measured part.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns + self.length_ns
    }

    /// The lower bounds of its response times.
    pub fn response_low(&self) -> &Packed {
        self.response_low.as_ref().unwrap_or(&self.response)
    }

    /// The upper bounds of its response times.
    pub fn response_high(&self) -> &Packed {
        self.response_high.as_ref().unwrap_or(&self.response)
    }

    /// Calls that ended here with success; all answered ones where it is not known how many ended.
    pub fn ok(&self) -> u64 {
        let ended = self.ended + self.numbers.without_end();
        if self.ended == 0 { self.answered } else { ended.saturating_sub(self.not_ok) }
    }

    fn absorb(&mut self, next: &Self) {
        let has_low = self.response_low.is_some() || next.response_low.is_some();
        let has_high = self.response_high.is_some() || next.response_high.is_some();
        self.response_low = has_low.then(|| self.response_low().merged(next.response_low()));
        self.response_high = has_high.then(|| self.response_high().merged(next.response_high()));
        self.ended += next.ended;
        // A stretch in which no call ended is of neither kind.
        self.is_target_part = match (self.response.count(), next.response.count()) {
            (_, 0) => self.is_target_part,
            (0, _) => next.is_target_part,
            _ => self.is_target_part && next.is_target_part,
        };
        self.numbers.merge(&next.numbers);
        self.length_ns = next.start_ns + next.length_ns - self.start_ns;
        self.users = next.users;
        self.open_connections = next.open_connections.or(self.open_connections);
        self.answered += next.answered;
        self.not_ok += next.not_ok;
        self.response = self.response.merged(&next.response);
        self.failing = self.failing.merged(&next.failing);
        self.response_bounds = self.response_bounds.merged(&next.response_bounds);
        self.service = self.service.merged(&next.service);
        self.lag = self.lag.merged(&next.lag);
        for (name, values) in &next.watched {
            self.watched.entry(name.clone()).or_default().absorb(*values);
        }
        for (name, values) in &next.own {
            self.own.entry(name.clone()).or_default().absorb(values);
        }
    }

    /// Adds the figures of another place in the same stretch.
    fn join(&mut self, other: &Self) {
        let (length_ns, users) = (self.length_ns.max(other.length_ns), self.users + other.users);
        let open_connections = match (self.open_connections, other.open_connections) {
            (Some(here), Some(there)) => Some(here + there),
            (one, another) => one.or(another),
        };
        self.absorb(other);
        (self.length_ns, self.users, self.open_connections) = (length_ns, users, open_connections);
    }

    /// Calls a second that ended here with success, whenever they were due.
    pub fn ok_per_s(&self) -> f64 {
        self.per_s(self.numbers.ended_ok())
    }

    /// From when to when it is, and the calls that ended here with success, whenever they were due.
    pub fn ended_ok(&self) -> (u64, u64, u64) {
        (self.start_ns, self.end_ns(), self.numbers.ended_ok())
    }

    /// Calls a second that were answered here, whenever they were due.
    pub fn answered_per_s(&self) -> f64 {
        self.per_s(self.numbers.get(Counter::EndedAnswered))
    }

    fn per_s(&self, n: u64) -> f64 {
        if self.length_ns == 0 { 0.0 } else { n as f64 * 1e9 / self.length_ns as f64 }
    }
}

/// Points over the measured part, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    points: Vec<Point>,
    /// How long a point is, in nanoseconds, but for the last.
    resolution_ns: u64,
    /// The most points, and whether calls are told apart over time.
    #[serde(skip, default = "most_points")]
    most_points: usize,
    #[serde(skip, default = "yes")]
    is_drilled: bool,
    /// The own figures with values in points, and whether one was left out for want of room.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    own: BTreeMap<String, OwnKind>,
    #[serde(default, skip_serializing_if = "is_false")]
    is_own_crowded: bool,
    /// Virtual users alive at its end, and the most alive at any time.
    users: i64,
    most_users: i64,
    /// The same calls by name, status and reason of failure.
    drilldown: Drilldown,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            resolution_ns: SECOND_NS,
            most_points: MOST_POINTS,
            is_drilled: true,
            own: BTreeMap::new(),
            is_own_crowded: false,
            users: 0,
            most_users: 0,
            drilldown: Drilldown::default(),
        }
    }
}

const fn most_points() -> usize {
    MOST_POINTS
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes what it may leave out by reference")]
const fn is_false(is_so: &bool) -> bool {
    !*is_so
}

impl Series {
    /// Goes on at `start_ns`, with an empty stretch if the last one ended before that.
    pub fn pass_to(&mut self, start_ns: u64, ok: &OkStatus) {
        let end_ns = self.points.last().map_or(0, |last| last.start_ns + last.length_ns);
        if start_ns > end_ns {
            self.push(start_ns - end_ns, &Snapshot::default(), ok);
        }
    }

    /// Adds the figures of the stretch that follows the last.
    pub fn push(&mut self, length_ns: u64, snapshot: &Snapshot, ok: &OkStatus) {
        let start_ns = self.points.last().map_or(0, |last| last.start_ns + last.length_ns);
        self.count_users(snapshot);
        if self.is_drilled {
            self.drilldown.push(length_ns, snapshot, ok);
        }
        let mut point = Point::from_snapshot(start_ns, length_ns, snapshot, ok, self.users());
        point.own = self.own_points(&snapshot.figures.own);
        match self.points.last_mut() {
            Some(last) if last.length_ns < self.resolution_ns => last.absorb(&point),
            _ => self.points.push(point),
        }
        if self.points.len() > self.most_points {
            self.halve();
        }
    }

    /// The values of own figures in a stretch, of those that have room.
    fn own_points(&mut self, figures: &NamedFigures<OwnFigures>) -> BTreeMap<String, OwnPoint> {
        let mut points = BTreeMap::new();
        for (name, figure) in figures.iter().filter(|(name, _)| *name != OTHERS) {
            if !self.own.contains_key(name) {
                let weight = |kind: OwnKind| if kind == OwnKind::Trend { TREND } else { 1 };
                let so_far: usize = self.own.values().map(|kind| weight(*kind)).sum();
                if so_far + weight(figure.kind) > MOST_OWN {
                    self.is_own_crowded = true;
                    continue;
                }
                self.own.insert(name.to_owned(), figure.kind);
            }
            points.insert(name.to_owned(), figure.into());
        }
        points
    }

    /// Whether there were more own figures than points have values of.
    pub const fn is_own_crowded(&self) -> bool {
        self.is_own_crowded
    }

    /// Sets the number of open connections at the end of the last stretch.
    pub fn connections_open(&mut self, open: u64) {
        if let Some(last) = self.points.last_mut() {
            last.open_connections = Some(open);
        }
    }

    /// Takes in a stretch of the warm-up, which has no point, but leaves users alive.
    pub fn warmed_up(&mut self, snapshot: &Snapshot) {
        self.count_users(snapshot);
        self.most_users = self.users;
    }

    fn count_users(&mut self, snapshot: &Snapshot) {
        self.users += snapshot.figures.users_gained();
        self.most_users = self.most_users.max(self.users).max(snapshot.figures.most_users.cast_signed());
    }

    /// Virtual users alive at its end.
    pub fn users(&self) -> u64 {
        self.users.max(0) as u64
    }

    /// A series of at most `points` points in which calls are not told apart: one of many.
    pub fn of_at_most(points: usize) -> Self {
        Self { most_points: points.clamp(2, MOST_POINTS), is_drilled: false, ..Self::default() }
    }

    /// The sum of series over the same time, at the resolution of the coarsest.
    pub fn beside<'a>(series: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let resolution_ns = series.clone().map(|one| one.resolution_ns).max().unwrap_or(SECOND_NS);
        let mut merged: Vec<Point> = Vec::new();
        for one in series.clone() {
            for (place, point) in one.at_resolution(resolution_ns).into_iter().enumerate() {
                match merged.get_mut(place) {
                    Some(beside) => beside.join(&point),
                    None => merged.push(point),
                }
            }
        }
        // Each had its maximum at a time of its own.
        let is_own_crowded = series.clone().any(|one| one.is_own_crowded);
        let most_users = series.map(|one| one.most_users).sum();
        let users = merged.last().map_or(0, |point| point.users.cast_signed());
        Self { points: merged, resolution_ns, users, most_users, is_own_crowded, ..Self::default() }
    }

    fn at_resolution(&self, resolution_ns: u64) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for point in &self.points {
            match points.last_mut() {
                Some(last) if last.length_ns < resolution_ns => last.absorb(point),
                _ => points.push(point.clone()),
            }
        }
        points
    }

    /// The most virtual users that were alive at any time.
    pub fn most_users(&self) -> u64 {
        self.most_users.max(0) as u64
    }

    fn halve(&mut self) {
        let mut points = std::mem::take(&mut self.points).into_iter();
        while let Some(mut point) = points.next() {
            if let Some(next) = points.next() {
                point.absorb(&next);
            }
            self.points.push(point);
        }
        self.resolution_ns *= 2;
    }

    /// The points, in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Calls by name, status and reason of failure.
    pub const fn drilldown(&self) -> &Drilldown {
        &self.drilldown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Counter;

    fn second(latency_ns: u64) -> Snapshot {
        let mut snapshot = Snapshot::with_numbers([(Counter::Due, 1)]);
        snapshot.statuses.record(200);
        snapshot.times.record(Timing::Response, latency_ns);
        snapshot
    }

    #[test]
    fn a_long_run_keeps_a_bounded_number_of_points_and_every_call() {
        let mut series = Series::default();
        let seconds = 3 * MOST_POINTS as u64 + 7;
        for i in 0..seconds {
            series.push(SECOND_NS, &second(1000 + i), &OkStatus::default());
            series.connections_open(i);
        }
        assert!(series.points().len() <= MOST_POINTS);
        assert_eq!(series.points().iter().map(|p| p.answered).sum::<u64>(), seconds);
        assert_eq!(series.points().iter().map(|p| p.length_ns).sum::<u64>(), seconds * SECOND_NS);
        // Each says what was so at its end.
        assert!(series.points().iter().all(|p| p.open_connections == Some((p.start_ns + p.length_ns) / SECOND_NS - 1)));
        let mut end = 0;
        for point in series.points() {
            assert_eq!(point.start_ns, end);
            end += point.length_ns;
        }
    }

    #[test]
    fn own_figures_have_values_in_each_point_and_their_number_is_bounded() {
        let mut series = Series::default();
        let seconds = MOST_POINTS as u64 + 2;
        for i in 0..seconds {
            let mut snapshot = second(1000);
            *snapshot.figures.own.named("sold") = OwnFigures::new(OwnKind::Counter, "eur");
            snapshot.figures.own.named("sold").record(2.0, i);
            *snapshot.figures.own.named("age") = OwnFigures::new(OwnKind::Trend, "ms");
            snapshot.figures.own.named("age").record(if i % 2 == 0 { 10.0 } else { 30.0 }, i);
            series.push(SECOND_NS, &snapshot, &OkStatus::default());
        }
        assert!(!series.is_own_crowded());
        let sold: f64 = series.points().iter().filter_map(|point| point.own["sold"].sum()).sum();
        assert_eq!(sold, 2.0 * seconds as f64, "folding loses nothing");
        let [p25, p99] = series.points()[0].own["age"].quantiles([0.25, 0.99]);
        assert!((p25.unwrap().value / 10.0 - 1.0).abs() < 0.01 && (p99.unwrap().value / 30.0 - 1.0).abs() < 0.01);
        // Two machines in the same seconds.
        let both = Series::beside([&series, &series].into_iter());
        assert_eq!(both.points()[0].own["sold"].sum(), Some(8.0));
        let mut crowded = Snapshot::default();
        for i in 0..2 * MOST_OWN {
            *crowded.figures.own.named(&format!("n{i}")) = OwnFigures::new(OwnKind::Trend, "");
            crowded.figures.own.named(&format!("n{i}")).record(1.0, 0);
        }
        series.push(SECOND_NS, &crowded, &OkStatus::default());
        assert!(series.is_own_crowded() && series.own.len() < MOST_OWN / TREND + 2);
    }

    #[test]
    fn users_of_the_warm_up_are_alive_in_the_first_point() {
        let users = |started, ended| {
            let mut snapshot = Snapshot::default();
            let scenario = snapshot.figures.scenarios.named("browse");
            (scenario.users_started, scenario.users_ended) = (started, ended);
            snapshot
        };
        let mut series = Series::default();
        series.warmed_up(&users(9, 2));
        for (started, ended) in [(3, 0), (0, 4), (1, 7)] {
            series.push(SECOND_NS, &users(started, ended), &OkStatus::default());
        }
        assert_eq!(series.points().iter().map(|point| point.users).collect::<Vec<_>>(), [10, 6, 0]);
        assert_eq!((series.users(), series.most_users()), (0, 10));
    }
}
