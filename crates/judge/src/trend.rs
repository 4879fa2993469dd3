//! Whether a run had settled: whether its seconds have the same figures at its end as at its beginning.
//!
//! Two ways of not having settled are distinguished:
//!
//! - **Still warming up.** The first seconds all lie on one side of the second half of the run: beyond its median by
//!   more than six times its scaled median absolute deviation (the Hampel identifier; L. Davies, U. Gather, "The
//!   identification of multiple outliers", Journal of the American Statistical Association 88, 1993). They are named
//!   only where leaving them out changes the run's own figure.
//! - **Drifting.** The seconds after that have a trend by the Mann–Kendall test (M. G. Kendall, "Rank Correlation
//!   Methods", 4th edition, 1975, chapter 4), whose variance is corrected for the correlation of neighbours in the
//!   series without its trend (K. H. Hamed, A. R. Rao, "A modified Mann-Kendall trend test for autocorrelated data", Journal
//!   of Hydrology 204, 1998). How fast it grows is Theil and Sen's slope, the median of those between any two seconds (P. K.
//!   Sen, "Estimates of the regression coefficient based on Kendall's tau", Journal of the American Statistical
//!   Association 63, 1968). Neither minds single seconds that stand out.
//!
//! A change counts from a tenth of the figure on, and for times from 50 µs on. What a ramp of the load does is the
//! plan's doing, so only runs under a constant load are judged. Virtual users begin together with their first request, which
//! alone makes the first seconds of another kind: they are judged where all their requests have one name, or where a second has
//! several whole iterations.

use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::{Population, Step};
use brunt_record::catalogue::Counter;
use brunt_record::histogram::Censored;
use brunt_record::series::Point;
use brunt_record::snapshot::Snapshot;
use serde::Serialize;

use crate::statistics::normal_tail;

/// The fewest points that a warm-up is looked for in.
const LEAST_FOR_WARMING_UP: usize = 6;
/// The fewest points that a trend is looked for in: fewer have too few orders to be ranked in.
const LEAST_FOR_TREND: usize = 10;
/// The most points that are compared with each other; neighbours of longer series are merged.
const MOST_COMPARED: usize = 240;
/// The share of trendless runs that may be called drifting, over all figures.
const FALSE_ALARMS: f64 = 0.01;
/// The fewest iterations of a user in one point that make its calls comparable.
const ITERATIONS: u64 = 4;
/// The fewest calls of a connection in one point that make its rate comparable.
const ROUNDS: u64 = 4;
/// Median absolute deviations, scaled to a normal's standard deviation, beyond which a second is no part of the rest.
const FAR: f64 = 6.0;
const MAD_SCALE: f64 = 1.4826;
/// The least change of a figure that counts, as a share; for times also in nanoseconds.
const MATTERS: f64 = 0.1;
const MATTERS_NS: f64 = 50_000.0;

/// A figure whose course over the seconds is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrendFigure {
    /// The median response time.
    P50,
    /// The 99th percentile of the response time.
    P99,
    /// Calls answered a second; only in the closed model, as in the open one the plan sets the rate.
    Rate,
}

impl TrendFigure {
    const ALL: [Self; 3] = [Self::P99, Self::P50, Self::Rate];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Rate => "rate",
        }
    }

    const fn quantile(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P99 => Some(0.99),
            Self::Rate => None,
        }
    }

    fn of_point(self, point: &Point) -> Option<f64> {
        match self.quantile() {
            Some(q) => point.response_quantile(q).map(|value| value.value as f64),
            None => Some(point.answered_per_s()),
        }
    }

    /// Its value over several points.
    fn over(self, points: &[Point]) -> Option<f64> {
        if let Some(q) = self.quantile() {
            let mut all = Censored::default();
            for point in points {
                all.merge(&point.response_times());
            }
            return all.quantile(q).map(|value| value.value as f64);
        }
        let length: u64 = points.iter().map(|point| point.length_ns).sum();
        let answered: u64 = points.iter().map(|point| point.numbers.get(Counter::EndedAnswered)).sum();
        (length > 0).then(|| answered as f64 * 1e9 / length as f64)
    }

    fn matters(self, from: f64, to: f64) -> bool {
        let change = (to - from).abs();
        change > MATTERS * from.abs().min(to.abs()) && (self == Self::Rate || change > MATTERS_NS)
    }
}

/// Whether a run had settled. Values are nanoseconds, of a rate calls a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Settled {
    /// Nothing speaks against it.
    Yes,
    /// The run was too short, or its load not constant, so that nothing is known.
    Unknown,
    /// The first seconds differ from the rest.
    WarmingUp {
        /// The second with which the rest begins: how long to warm up, in seconds.
        until_s: u64,
        /// The figure that shows the difference.
        figure: TrendFigure,
        /// The figure of the whole run.
        all: f64,
        /// The figure without those seconds.
        rest: f64,
    },
    /// A figure kept growing or falling.
    Drifting {
        /// Which.
        figure: TrendFigure,
        /// Its change in a minute; negative where it fell.
        per_minute: f64,
        /// Its median over the seconds.
        typical: f64,
    },
}

impl Settled {
    /// Whether something speaks against it.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::WarmingUp { .. } | Self::Drifting { .. })
    }

    /// Judges the seconds of a run. `total` has every call of it.
    pub fn from_points(plan: &Plan, total: &Snapshot, points: &[Point]) -> Self {
        let usual = points.first().map_or(0, |point| point.length_ns);
        if !is_constant(plan) || !is_alike(plan, total, usual) {
            return Self::Unknown;
        }
        // A last second that was cut short has fewer calls, and differs for that reason alone.
        let whole = match points.split_last() {
            Some((last, rest)) if last.length_ns < usual => rest,
            _ => points,
        };
        if whole.len() < LEAST_FOR_WARMING_UP {
            return Self::Unknown;
        }
        // Where a call takes about as long as a point, how many end in it is a matter of moments.
        let p50 = total.response_quantile(0.5).map_or(0, |p50| p50.value);
        let has_rate = plan.load == Load::Closed {} && p50.saturating_mul(ROUNDS) <= usual;
        let watched = TrendFigure::ALL.iter().filter(|figure| **figure != TrendFigure::Rate || has_rate);
        let watched: Vec<_> = watched.copied().collect();
        // Before the first calls can have ended, a rate says nothing.
        let is_filled = |point: &Point| point.start_ns.saturating_add(plan.warmup_ns) >= p50;
        let first = whole.iter().position(is_filled).unwrap_or(0);
        let warming_up = watched.iter().filter_map(|figure| {
            let skipped = if *figure == TrendFigure::Rate { first } else { 0 };
            warming_up(*figure, whole.get(skipped..)?)
        });
        if let Some(longest) = warming_up.max_by_key(|found| found.0) {
            return longest.1;
        }
        let alpha = FALSE_ALARMS / watched.len() as f64;
        watched.iter().find_map(|figure| drifting(*figure, whole, alpha)).unwrap_or(Self::Yes)
    }
}

/// Whether the load asked for is constant.
fn is_constant(plan: &Plan) -> bool {
    let constant_rate = match &plan.load {
        Load::Closed {} => true,
        Load::Open { profile, .. } => profile.is_constant(),
        Load::Replay(_) => false,
    };
    let constant_users = plan.scenarios.as_ref().is_none_or(|scenarios| {
        scenarios.throttle.is_none() && scenarios.populations.iter().all(is_constant_population)
    });
    constant_rate && constant_users
}

fn is_constant_population(population: &Population) -> bool {
    match population.steps.as_slice() {
        [Step::Users { from, to, .. } | Step::Rate { from, to, .. }] => {
            population.after.is_none() && population.start_seconds == 0.0 && from == to
        }
        _ => false,
    }
}

/// Whether points of this length have the same mix of calls, as far as the plan decides it.
fn is_alike(plan: &Plan, total: &Snapshot, point_ns: u64) -> bool {
    let is_short = |iterations: &Censored| {
        iterations.quantile(0.9).is_none_or(|p90| !p90.at_least && p90.value.saturating_mul(ITERATIONS) <= point_ns)
    };
    plan.scenarios.is_none()
        || total.figures.requests.iter().count() <= 1
        || total.figures.scenarios.iter().all(|(_, scenario)| is_short(&scenario.iterations))
}

/// The number of first points that differ from the rest, and their effect on the figure.
fn warming_up(figure: TrendFigure, points: &[Point]) -> Option<(usize, Settled)> {
    let values: Vec<_> = points.iter().map(|point| figure.of_point(point)).collect::<Option<_>>()?;
    let half = values.len() / 2;
    let settled = values.get(half..)?;
    let center = median(settled)?;
    let deviation = median(&settled.iter().map(|value| (value - center).abs()).collect::<Vec<_>>())?;
    let first = values.first()?;
    let sign = (first - center).signum();
    let is_far = |value: &f64| {
        let over = (value - center) * sign;
        over > FAR * MAD_SCALE * deviation && figure.matters(center, *value)
    };
    let length = values.iter().take(half).take_while(|value| is_far(value)).count();
    if length == 0 {
        return None;
    }
    let (all, rest) = (figure.over(points)?, figure.over(points.get(length..)?)?);
    let until_ns = points.get(length)?.start_ns;
    let found = Settled::WarmingUp { until_s: until_ns.div_ceil(brunt_record::SECOND_NS), figure, all, rest };
    figure.matters(rest, all).then_some((length, found))
}

fn drifting(figure: TrendFigure, points: &[Point], alpha: f64) -> Option<Settled> {
    let each = points.len().div_ceil(MOST_COMPARED);
    let values: Vec<_> = points.chunks(each).filter_map(|points| figure.over(points)).collect();
    let trend = Trend::from_values(&values)?;
    let (length_ns, typical) = (points.first()?.length_ns as f64 * each as f64, median(&values)?);
    let change = trend.slope * values.len() as f64;
    let matters = figure.matters(typical - change / 2.0, typical + change / 2.0);
    let found = Settled::Drifting { figure, per_minute: trend.slope * 60e9 / length_ns, typical };
    (trend.p_value < alpha && matters).then_some(found)
}

/// A trend over values at equal distances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Theil and Sen's: how much the value grows from one to the next.
    pub slope: f64,
    /// The probability of an order at least this clear without any trend (two-sided).
    pub p_value: f64,
}

impl Trend {
    /// The trend of `values`; `None` if there are fewer than ten.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        if values.len() < LEAST_FOR_TREND || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        let slope = theil_sen(values)?;
        let pairs = values.iter().enumerate().flat_map(|(i, a)| values.iter().skip(i + 1).map(move |b| b - a));
        let s: f64 = pairs.map(|difference| if difference == 0.0 { 0.0 } else { difference.signum() }).sum();
        let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties(values)) / 18.0 * inflation(values, slope);
        // One less towards 0, since s goes in steps of two.
        let z = (s.abs() - 1.0).max(0.0) / variance.sqrt();
        let p_value = if variance > 0.0 { (2.0 * normal_tail(z)).min(1.0) } else { 1.0 };
        Some(Self { slope, p_value })
    }
}

/// The median of the slopes between any two values.
pub(crate) fn theil_sen(values: &[f64]) -> Option<f64> {
    let slope = |(i, a): (usize, &f64)| {
        let later = values.iter().enumerate().skip(i + 1);
        let a = *a;
        later.map(move |(j, b)| (b - a) / (j - i) as f64).collect::<Vec<_>>()
    };
    median(&values.iter().enumerate().flat_map(slope).collect::<Vec<_>>())
}

/// The reduction of the test's variance by equal values: the sum of t(t − 1)(2t + 5) over groups of t.
fn ties(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let groups = sorted.chunk_by(|a, b| a == b).map(|group| group.len() as f64);
    groups.map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum()
}

/// By how much the correlation of neighbours, in the series without its trend, widens the test's variance; at least 1.
/// That of an autoregressive series of first order. Its correlation comes out too low by (2 + 4r)/n once a trend is taken
/// off (N. P. A. van Giersbergen, "On the effect of deterministic terms on the bias in stable AR models", Economics
/// Letters 89, 2005), which is put back.
fn inflation(values: &[f64], slope: f64) -> f64 {
    let n = values.len() as f64;
    let rest: Vec<_> = values.iter().enumerate().map(|(i, value)| value - slope * i as f64).collect();
    let mean = rest.iter().sum::<f64>() / n;
    let squares: f64 = rest.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = rest.iter().zip(rest.iter().skip(1)).map(|(a, b)| (a - mean) * (b - mean)).sum();
    let seen = if squares > 0.0 { products / squares } else { 0.0 };
    let r = (seen + (2.0 + 4.0 * seen) / n).clamp(0.0, 0.95);
    (1.0 + r) / (1.0 - r)
}

/// The median; `None` of an empty list.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brunt_plan::arrivals::Spread;
    use brunt_plan::random::Random;
    use brunt_plan::scenario::{Scenarios, Weighted};
    use brunt_record::SECOND_NS;
    use brunt_record::agents::{AgentEnd, AgentPart};
    use brunt_record::catalogue::{Counter, Timing};
    use brunt_record::change::{Action, Author, Change};
    use brunt_record::outcome::OkStatus;
    use brunt_record::series::Series;
    use brunt_record::snapshot::Snapshot;

    use super::*;

    fn normal(random: &mut Random) -> f64 {
        let (a, b) = (random.unit(), random.unit());
        (-2.0 * a.max(f64::MIN_POSITIVE).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Seconds of 200 calls each, spread around these medians in nanoseconds.
    fn points(medians: &[f64]) -> Series {
        let mut series = Series::default();
        for median in medians {
            let mut second = Snapshot::default();
            for call in 0..200 {
                second.times.record(Timing::Response, (median * (0.5 + f64::from(call) / 200.0)) as u64);
                second.statuses.record(200);
            }
            second.count_ends(&OkStatus::default());
            series.push(SECOND_NS, &second, &OkStatus::default());
        }
        series
    }

    fn settled(medians: &[f64]) -> Settled {
        Settled::from_points(&crate::fixtures::plan(), &Snapshot::default(), points(medians).points())
    }

    #[test]
    fn what_a_load_that_changed_did_is_not_the_targets_warm_up() {
        let judged = |change: Option<Action>, is_lost: bool| {
            let (plan, mut run) = crate::fixtures::run();
            run.series = points(&[[9e6; 3].as_slice(), &[1e6; 12]].concat());
            run.changes.extend(change.map(|action| Change { at_ns: 3_000_000_000, action, by: Author::Ctl }));
            let mut part = AgentPart::new("a1", "0.0.0", 1, 1, 2);
            if is_lost {
                let reason = "it was ended on its machine".to_owned();
                let (after_ns, untold) = (3_000_000_000, None);
                part.ended = AgentEnd::Lost {
                    after_ns,
                    reason,
                    users_missed: 0,
                    iterations_unknown: 0,
                    untold,
                    is_allowed: true,
                };
            }
            run.agents.push(part);
            crate::summary::Summary::new(plan, run).verdict.settled
        };
        for settled in [judged(None, false), judged(Some(Action::Mark("half".to_owned())), false)] {
            assert!(matches!(settled, Settled::WarmingUp { until_s: 3, .. }), "{settled:?}");
        }
        assert_eq!([judged(None, true), judged(Some(Action::Rate(500.0)), false)], [Settled::Unknown; 2]);
    }

    /// Users are judged where their calls are alike all along.
    #[test]
    fn scenarios_warm_up_where_their_seconds_have_the_same_mix() {
        let slow_at_first = [[9e6; 3].as_slice(), &[1e6; 12]].concat();
        let judged = |steps: &[Step], names: &[&str], iteration_ns: u64| {
            let population = Population {
                scenarios: vec![Weighted { scenario: "shop".into(), weight: 1.0 }],
                steps: steps.to_vec(),
                ..Population::default()
            };
            let scenarios = Scenarios {
                files: Vec::new(),
                streamed: Vec::new(),
                env: BTreeMap::new(),
                base_url: None,
                populations: vec![population],
                throttle: None,
                smallest_pool: None,
                hosts: brunt_plan::hosts::Hosts::default(),
                trace_ratio: None,
                setup_timeout_ns: None,
                teardown_timeout_ns: None,
                own: Vec::new(),
            };
            let plan = Plan { scenarios: Some(scenarios), ..crate::fixtures::plan() };
            let mut total = Snapshot::default();
            for name in names {
                total.figures.requests.named(name).numbers.add(Counter::Due, 1);
            }
            total.figures.scenarios.named("shop").iteration(iteration_ns);
            matches!(
                Settled::from_points(&plan, &total, points(&slow_at_first).points()),
                Settled::WarmingUp { until_s: 3, .. }
            )
        };
        let users = |from: f64, to: f64| Step::Users { from, to, seconds: 15.0 };
        let rate = Step::Rate { from: 5.0, to: 5.0, seconds: 15.0 };
        assert!(judged(&[users(10.0, 10.0)], &["home"], 5 * SECOND_NS), "one name");
        assert!(judged(&[users(10.0, 10.0)], &["home", "cart"], SECOND_NS / 5), "short iterations");
        assert!(judged(&[rate], &["home", "cart"], SECOND_NS / 5));
        assert!(
            !judged(&[users(10.0, 10.0)], &["home", "cart"], SECOND_NS),
            "a second may have none but the first request"
        );
        assert!(!judged(&[users(1.0, 10.0)], &["home"], SECOND_NS / 5), "a ramp");
        assert!(!judged(&[rate, rate], &["home"], SECOND_NS / 5));
    }

    /// R. O. Gilbert, "Statistical Methods for Environmental Pollution Monitoring", 1987, section 16.4.2, has the
    /// variance of S for n = 10 without ties as 10·9·25/18 = 125.
    #[test]
    fn kendalls_test_is_as_in_the_books() {
        // S = 45 − 2·1 = 43 for one swapped pair of neighbours: z = 42/√125 = 3.757, p = 0.00017, times no inflation.
        let values = [1.0, 3.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        let trend = Trend::from_values(&values).unwrap();
        assert!((trend.slope - 1.0).abs() < 1e-9, "{trend:?}");
        assert!((trend.p_value - 0.000_172).abs() < 2e-5, "{trend:?}");
        assert_eq!(Trend::from_values(&[1.0; 10]).unwrap(), Trend { slope: 0.0, p_value: 1.0 });
        assert_eq!(Trend::from_values(&values[..9]), None);
        assert_eq!(ties(&[1.0, 1.0, 2.0, 3.0, 3.0, 3.0]), 2.0 * 9.0 + 3.0 * 2.0 * 11.0);
        // One wild value moves neither.
        let wild = [1.0, 2.0, 3.0, 4.0, 500.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0];
        assert!((Trend::from_values(&wild).unwrap().slope - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_steady_run_is_seldom_said_to_have_a_trend() {
        for memory in [0.0_f64, 0.5, 0.8] {
            for n in [10, 30, 60] {
                let trends = (0..500).filter(|seed| {
                    let mut random = Random::new(*seed, 9);
                    let mut at = normal(&mut random);
                    let values: Vec<_> = (0..n)
                        .map(|_| {
                            at = at * memory + normal(&mut random) * (1.0 - memory * memory).sqrt();
                            at
                        })
                        .collect();
                    Trend::from_values(&values).unwrap().p_value < 0.01
                });
                let trends = trends.count();
                // 1% is what is said; a memory of seconds in few of them looks like a trend more often.
                let most = if memory > 0.6 { 35 } else { 18 };
                assert!(trends <= most, "{trends} of 500 at {memory}, {n} s");
            }
        }
    }

    #[test]
    fn a_noisy_steady_run_is_settled() {
        let doubted = (0..300).filter(|seed| {
            let mut random = Random::new(*seed, 4);
            let medians: Vec<_> = (0..20).map(|_| 2e6 * (0.1 * normal(&mut random)).exp()).collect();
            settled(&medians).is_in_doubt()
        });
        let doubted = doubted.count();
        assert!(doubted <= 9, "{doubted} of 300");
    }

    #[test]
    fn a_beginning_of_another_kind_is_named() {
        let mut medians = vec![9e6, 6e6, 4e6];
        medians.extend((0..17).map(|i| 2e6 + f64::from(i % 3) * 1e4));
        let Settled::WarmingUp { until_s, figure, all, rest } = settled(&medians) else {
            panic!("{:?}", settled(&medians))
        };
        assert_eq!((until_s, figure), (3, TrendFigure::P99));
        assert!(all > 6e6 && rest < 3.1e6, "{all} {rest}");
        // A second that stands out later on is no beginning.
        medians.rotate_right(9);
        assert!(!settled(&medians).is_in_doubt());
    }

    #[test]
    fn a_beginning_that_shows_in_no_figure_is_left_alone() {
        // One second of two hundred moves neither p50 nor p99 by a tenth.
        let mut medians = vec![2.6e6];
        medians.extend((0..199).map(|i| 2e6 + f64::from(i % 3) * 1e4));
        assert_eq!(settled(&medians), Settled::Yes);
    }

    #[test]
    fn what_keeps_growing_is_not_settled() {
        let medians: Vec<_> = (0..30).map(|i| 2e6 + 5e4 * f64::from(i) + 2e4 * f64::from(i % 2)).collect();
        let Settled::Drifting { figure, per_minute, .. } = settled(&medians) else { panic!("{:?}", settled(&medians)) };
        // 50 µs a second at the median is 3 ms a minute, and at p99, half as much again.
        assert_eq!(figure, TrendFigure::P99);
        assert!((4.2e6..4.8e6).contains(&per_minute), "{per_minute}");
    }

    #[test]
    fn of_a_short_run_and_a_ramp_nothing_is_said() {
        assert_eq!(settled(&[2e6; 5]), Settled::Unknown);
        let medians: Vec<_> = (1..30).map(|i| 1e6 * f64::from(i)).collect();
        let mut plan = crate::fixtures::plan();
        plan.load = Load::Open { profile: "10..100/30s".parse().unwrap(), arrivals: Spread::Uniform };
        assert_eq!(Settled::from_points(&plan, &Snapshot::default(), points(&medians).points()), Settled::Unknown);
    }
}
