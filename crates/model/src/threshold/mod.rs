//! What must hold at the end of a run: `[[kind ]name:]figure op value[ abort]`, for example `p99 < 50ms`.
//!
//! Figures: `p50` … `p99.99` (any `p` with a number under 100), `mean`, `stdev`, `min`, `max` of the response time, or
//! with `service.`, `first_byte.`, `connect.`, `tls.`, `handshake.`, `lag.`, `failed.`, `first_message.`, `message_gap.`, `each_message.` or
//! `last_message.` before them of another time; `error_rate`;
//! `rate` (answers a second); `message_rate`, `bytes_in`, `bytes_out` (a second); `due`, `unsent`, `unfinished`, `messages`; and each failure by its
//! name. Operators: `<`, `<=`, `>`, `>=`, `==`. Of scenarios: `checks` (the share of checks that held), `passes` and
//! `fails` (how many did and did not), `users` (the most alive at any time), `users_started`, `not_admitted`, `iterations`,
//! `script_errors`, and `iteration.` for how long iterations took. Of a figure of the script's own, in its unit: `sum` and `rate` of a
//! counter, `share` of a rate, `p50` … `mean`, `stdev`, `min`, `max` of a trend, `last`, `min`, `max` of a gauge, `count` of any.
//!
//! A name is that of a request, a tag (`plan=pro`), a group, a check (`home: 200`), a scenario or a figure of the script's own, looked up in
//! this order; `request`, `tag`, `group`, `check`, `scenario` or `figure` before it says which. A request or tag has the times `response`,
//! `service` and `failed`; a group `without_pauses` (its usual one) and `with_pauses`, a scenario `iteration`.
//!
//! `abort` at its end lets it end the run as soon as it is beyond repair: see [`Outlook`].

mod figure;
mod outlook;
mod subject;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use self::figure::{Count, Figure, OfOwn, Statistic, Time};
use self::subject::{Kind, Subject};
use crate::histogram::{AtLeast, Histogram};
use crate::instrument::least_without;
use crate::summary::Summary;
use crate::verdict::Judgement;

pub use self::outlook::Outlook;
pub use self::subject::Standing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
}

impl Operator {
    const WRITTEN: [(&'static str, Self); 5] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("==", Self::Equal), ("<", Self::Below), (">", Self::Above)];

    /// The last one in `text`, and where it stands: names may have some, too.
    fn find(text: &str) -> Option<(usize, &'static (&'static str, Self))> {
        let found = Self::WRITTEN.iter().filter_map(|entry| Some((text.rfind(entry.0)?, entry)));
        found.max_by_key(|(at, (sign, _))| (at + sign.len(), sign.len()))
    }

    /// Whether it holds for a value that is known.
    fn holds_for(self, got: f64, limit: f64) -> bool {
        self.holds(AtLeast::exactly(got), limit)
    }

    /// Whether it surely holds for a value that may only be known from below.
    fn holds(self, got: AtLeast<f64>, limit: f64) -> bool {
        match self {
            Self::Below => !got.at_least && got.value < limit,
            Self::AtMost => !got.at_least && got.value <= limit,
            Self::Above => got.value > limit,
            Self::AtLeast => got.value >= limit,
            Self::Equal => !got.at_least && got.value.total_cmp(&limit).is_eq(),
        }
    }
}

/// `value` for people, in the unit of the figure called so: `5.16ms` for `p99`; none for what is no figure.
pub fn shown(figure: &str, value: f64) -> Option<String> {
    let figure = figure.rsplit_once(':').map_or(figure, |(_, figure)| figure);
    Figure::parse(figure.trim()).map(|figure| figure.unit().show(value))
}

/// One condition on a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Threshold {
    /// As written.
    text: String,
    /// What it is about, and of which kind that is; none for all calls.
    name: Option<(Option<Kind>, String)>,
    /// Whether it ends the run when it is beyond repair.
    abort: bool,
    figure: Figure,
    operator: Operator,
    limit: f64,
}

/// A threshold that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a threshold such as 'p99<50ms', 'error_rate<0.1%' or 'rate>10k', got '{text}': {problem}")]
pub struct ThresholdError {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: String| ThresholdError { text: text.to_owned(), problem };
        let (at, (sign, operator)) =
            Operator::find(text).ok_or_else(|| error("there is none of < <= > >= == in it".to_owned()))?;
        let (left, right) = (text.get(..at).unwrap_or(""), text.get(at + sign.len()..).unwrap_or(""));
        let (right, abort) = match right.trim_end().strip_suffix("abort") {
            Some(limit) => (limit, true),
            None => (right, false),
        };
        let (name, figure) = match left.rsplit_once(':') {
            Some((name, figure)) => (Some(name_of(name)), figure),
            None => (None, left),
        };
        let figure = figure.trim();
        let (figure, limit) = match (of_own(name.as_ref(), figure, right), Figure::parse(figure)) {
            (Some(own), None) => own,
            (own, Some(known)) => match (known.unit().parse(right), own) {
                (Ok(limit), _) if !matches!(name, Some((Some(Kind::Own), _))) => (known, limit),
                (_, Some(own)) => own,
                (Ok(limit), None) => (known, limit),
                (Err(problem), None) => return Err(error(problem.to_string())),
            },
            (None, None) => {
                let own = OfOwn::parse(figure).filter(|_| name.is_some());
                let problem = own.and_then(|own| Figure::Own(own).unit().parse(right).err());
                let unknown = || format!("'{figure}' is no figure; {}", Figure::meant(figure));
                return Err(error(problem.map_or_else(unknown, |problem| problem.to_string())));
            }
        };
        Ok(Self { text: text.to_owned(), name, abort, figure, operator: *operator, limit })
    }
}

/// What is asked of a figure of a script's own, which is not told by its name here: what has a name that may be one, and a
/// plain number as its limit.
fn of_own(name: Option<&(Option<Kind>, String)>, figure: &str, limit: &str) -> Option<(Figure, f64)> {
    let may_be = matches!(name, Some((None | Some(Kind::Own), _)));
    let figure = OfOwn::parse(figure).filter(|_| may_be).map(Figure::Own)?;
    Some((figure, figure.unit().parse(limit).ok()?))
}

/// `group cart` is the group, `cart` whatever has that name.
fn name_of(text: &str) -> (Option<Kind>, String) {
    let text = text.trim();
    let kind = text.split_once(' ').and_then(|(kind, name)| {
        let (_, kind) = Kind::NAMED.into_iter().find(|(known, _)| *known == kind)?;
        Some((Some(kind), name.trim().to_owned()))
    });
    kind.unwrap_or_else(|| (None, text.to_owned()))
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Threshold {
    type Error = ThresholdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> Self {
        threshold.text
    }
}

/// A threshold and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// The threshold as written.
    pub threshold: String,
    /// The figure as it came out, for people; with ≥ where only that is known.
    pub got: String,
    /// Whether it held. A threshold on something that was not measured, or that can only be bounded from below and
    /// might lie beyond, does not.
    pub held: bool,
    /// Whether the generator's own delays cannot have decided it: anywhere within the figure's instrument interval it
    /// comes out the same.
    #[serde(default = "known")]
    pub sure: bool,
}

/// Results of before that was looked into say nothing against themselves.
const fn known() -> bool {
    true
}

impl Threshold {
    /// As a script writes it: `condition` is what follows the figure, such as `< 50ms`; with `abort` as well as where the
    /// condition says so it ends the run when it is beyond repair.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub fn expected(figure: &str, condition: &str, abort: bool) -> Result<Self, ThresholdError> {
        let (figure, condition) = (figure.trim(), condition.trim());
        let said = condition.ends_with("abort");
        format!("{figure} {condition}{}", if abort && !said { " abort" } else { "" }).parse()
    }

    /// Whether it says how many checks must hold.
    pub fn is_about_checks(&self) -> bool {
        matches!(self.figure, Figure::Checks | Figure::Count(Count::Passes | Count::Fails))
    }

    /// Whether it ends the run when it is beyond repair.
    pub fn aborts(&self) -> bool {
        self.abort
    }

    /// What it limits, as written before the operator: `p99`, `home:p95`.
    pub fn figure(&self) -> &str {
        let end = Operator::find(&self.text).map_or(0, |(at, _)| at);
        self.text.get(..end).unwrap_or("").trim()
    }

    /// The limit, in the figure's base unit: nanoseconds, a share from 0 to 1, bytes or a number.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// What its figure came to in `summary`, in the unit of [`Threshold::limit`]; none if that was not measured.
    pub fn value(&self, summary: &Summary) -> Option<AtLeast<f64>> {
        let standing = Standing::of(&summary.run, &summary.total);
        self.subject(&standing).ok()?.value(self.figure, &standing).ok()?
    }

    /// What it is about.
    ///
    /// # Errors
    /// Why nothing has the name, or this figure, in words that stand where the figure would.
    fn subject<'a>(&'a self, standing: &Standing<'a>) -> Result<Subject<'a>, String> {
        let Some((kind, name)) = &self.name else { return Ok(Subject::All) };
        let kinds = Kind::NAMED.into_iter().filter(|(_, known)| kind.is_none_or(|kind| kind == *known));
        let found: Vec<_> = kinds.filter_map(|(_, kind)| Subject::find(kind, name, standing)).collect();
        let has_figure = found.iter().find(|subject| subject.value(self.figure, standing).is_ok());
        has_figure.copied().ok_or_else(|| match (found.first(), kind) {
            (Some(subject), _) => format!("a {} has no such figure", subject.kind()),
            (None, Some(kind)) => {
                let kind = Kind::NAMED.iter().find(|(_, known)| known == kind).map_or("", |(name, _)| *name);
                format!("no {kind} has the name '{name}'")
            }
            (None, None) => format!("nothing has the name '{name}'"),
        })
    }

    /// The quantile of the response time of all calls that it limits (0 to 1), if it does.
    pub fn response_quantile(&self) -> Option<f64> {
        match self.figure {
            Figure::Time(Time::Usual | Time::Response, Statistic::Quantile(q)) if self.name.is_none() => Some(q),
            _ => None,
        }
    }

    /// Whether it holds for `summary`, and whether that is sure.
    pub fn judge(&self, summary: &Summary) -> ThresholdResult {
        let result = self.judge_standing(&Standing::of(&summary.run, &summary.total));
        let sure = self.is_sure(summary, result.held);
        ThresholdResult { sure, ..result }
    }

    /// Whether it comes out as `held` wherever the generator's own part lies.
    fn is_sure(&self, summary: &Summary, held: bool) -> bool {
        let total = &summary.total;
        if total.statuses.total() == 0 {
            return true;
        }
        let (bracket, lag) = match (self.figure, &self.name) {
            (Figure::Time(Time::Usual | Time::Response, _), None) => (total.response_bracket(), total.lag.clone()),
            (Figure::Time(Time::Service, _), None) => (total.service_bracket(), Histogram::new()),
            // What was answered is the least that could have been.
            (Figure::Rate, None) => return held || summary.verdict.judgement != Judgement::GeneratorBound,
            // Calls that were not sent for want of ports are the generator's failures.
            (Figure::ErrorRate | Figure::Count(Count::Unsent), None) => {
                return held || summary.verdict.is_load_as_asked();
            }
            _ => return true,
        };
        let Figure::Time(_, statistic) = self.figure else { return true };
        let low = match statistic {
            Statistic::Quantile(q) if !bracket.knows_receiving => {
                let at_least = statistic.of(&bracket.low).is_some_and(|value| value.at_least);
                least_without(&bracket.low, &lag, q).map(|ns| AtLeast { value: ns as f64, at_least })
            }
            _ => statistic.of(&bracket.low),
        };
        let ends = [low, statistic.of(&bracket.high)];
        ends.into_iter().flatten().all(|end| self.operator.holds(end, self.limit) == held)
    }

    /// Whether it holds for what a run came to so far.
    pub fn judge_standing(&self, standing: &Standing<'_>) -> ThresholdResult {
        let subject = self.subject(standing);
        let value = subject.as_ref().ok().and_then(|subject| subject.value(self.figure, standing).ok()?);
        let got = match (value, subject) {
            (Some(value), _) => {
                format!("{}{}", if value.at_least { "≥" } else { "" }, self.figure.unit().show(value.value))
            }
            (None, Err(why)) => why,
            (None, Ok(_)) => "nothing measured".to_owned(),
        };
        let held = value.is_some_and(|value| self.operator.holds(value, self.limit));
        ThresholdResult { threshold: self.text.clone(), got, held, sure: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Failure;
    use crate::summary::tests::run;

    fn judge(text: &str) -> (String, bool) {
        let result = text.parse::<Threshold>().unwrap().judge(&Summary::of(run()));
        (result.got, result.held)
    }

    #[test]
    fn figures_are_judged_in_their_units() {
        for (text, got, held) in [
            ("p99 < 50ms", "1.00ms", true),
            ("p99.99<50ms", "2.00s", false),
            ("service.min<=900us", "900.0µs", true),
            ("max>1s", "2.00s", true),
            ("error_rate<=0.1%", "0.1%", true),
            ("error_rate < 0.05%", "0.1%", false),
            ("rate >= 990", "999.5/s", true),
            ("timeout==1", "1", true),
            ("closed<1", "0", true),
            ("unsent==0", "0", true),
            ("tls.p99<1s", "nothing measured", false),
            ("home:p99<1s", "nothing has the name 'home'", false),
        ] {
            assert_eq!(judge(text), (got.to_owned(), held), "{text}");
        }
    }

    #[test]
    fn figures_of_a_scripts_own_are_judged_in_their_units() {
        use crate::figures::OwnKind;
        let mut run = run();
        let seconds = run.measured_ns as f64 / 1e9;
        for (name, kind, values) in [
            ("coins", OwnKind::Counter, &[1.5, 2.5][..]),
            ("hits", OwnKind::Rate, &[1.0, 1.0, 0.0, 1.0]),
            ("basket", OwnKind::Trend, &[10.0, 20.0, 90.0]),
            ("queue", OwnKind::Gauge, &[4.0, 9.0, 7.0]),
        ] {
            let own = run.measured.figures.own.named(name);
            *own = crate::figures::OwnFigures::new(kind, "");
            values.iter().enumerate().for_each(|(at, value)| own.record(*value, at as u64));
        }
        let summary = Summary::of(run);
        for (text, got, held) in [
            ("coins:sum >= 4", "4", true),
            ("figure coins:rate > 100", &crate::units::Number(4.0 / seconds).to_string(), false),
            ("hits:share >= 75%", "75%", true),
            ("basket:mean < 41", "40", true),
            ("basket:max <= 89", "90", false),
            ("queue:last == 7", "7", true),
            ("queue:count == 3", "3", true),
            ("queue:sum > 1", "a gauge has no such figure", false),
            ("basket:p99 < 50ms", "a trend has no such figure", false),
        ] {
            let result = text.parse::<Threshold>().unwrap().judge(&summary);
            assert_eq!((result.got.as_str(), result.held), (got, held), "{text}");
        }
        assert!("coins:sum < 5ms".parse::<Threshold>().is_err());
        assert!("sum < 5".parse::<Threshold>().is_err(), "what has no name is about calls");
    }

    #[test]
    fn a_bound_from_below_holds_nothing_up() {
        let mut run = run();
        run.drained.unfinished = 100;
        run.drained.response.bounds.record_n(10_000, 100);
        let summary = Summary::of(run);
        let held = |text: &str| text.parse::<Threshold>().unwrap().judge(&summary);
        assert!(!held("p99<50ms").held);
        assert!(held("p99<50ms").got.starts_with('≥'));
        assert!(held("p50<50ms").held);
    }

    #[test]
    fn a_latency_does_not_hold_when_nothing_was_answered() {
        let mut run = run();
        run.measured = crate::snapshot::Snapshot { due: 1, ..Default::default() };
        run.measured.failures.record(Failure::Connect, "connection refused");
        run.measured.response.known.record(30_000);
        let result = "p99<50ms".parse::<Threshold>().unwrap().judge(&Summary::of(run));
        assert_eq!((result.got.as_str(), result.held), ("nothing measured", false));
    }

    #[test]
    fn own_delays_that_could_decide_a_threshold_make_it_unsure() {
        use crate::instrument::{Arrival, CallTimes};
        let mut run = run();
        // Of 2,000 calls 40 were sent 5 ms late; the target took 1 ms.
        run.measured.instrument = crate::instrument::Instrument::default();
        for i in 0..2000 {
            let sent = if i < 40 { 5_000_000 } else { 0 };
            let at = sent + 1_000_000;
            let call = CallTimes {
                due: 0,
                ready: 0,
                sent,
                exposed: u64::MAX,
                first_byte: Some(at),
                arrived: Arrival::At(at),
                read: at + 9,
            };
            run.measured.instrument.record(&call, 1);
        }
        let summary = Summary::of(run);
        for (text, held, sure) in [
            ("p99 < 50ms", true, true),
            ("p99 < 4ms", true, false),
            ("p99 < 900us", false, true),
            ("p50 < 4ms", true, true),
            ("service.p99 < 4ms", true, true),
            ("max<4ms", true, false),
            ("error_rate<1%", true, true),
        ] {
            let result = text.parse::<Threshold>().unwrap().judge(&summary);
            assert_eq!((result.held, result.sure), (held, sure), "{text}: {result:?}");
        }
        assert_eq!("p99.5<1s".parse::<Threshold>().unwrap().response_quantile(), Some(0.995));
        assert_eq!("service.p99<1s".parse::<Threshold>().unwrap().response_quantile(), None);
    }

    /// One user, who was at home and in the cart.
    fn with_names() -> crate::summary::Run {
        let mut run = run();
        let figures = &mut run.measured.figures;
        for (name, ms) in [("home", 5), ("a<b>=c", 5), ("cart/:id", 20), ("cart", 30)] {
            let calls = figures.requests.named(name);
            calls.due();
            calls.answered(200, ms * 1_000_000, ms * 1_000_000);
        }
        figures.tags.named("plan=pro").failed(Failure::Timeout, 7, None);
        figures.tags.named("plan=pro").due();
        figures.groups.named("cart").ended(900_000_000, 50_000_000, true);
        figures.checks.named("home: 200").passed(Some("home"), "200");
        figures.checks.named("cart: 200").failed(Some("cart"), "200", Default::default);
        let scenario = figures.scenarios.named("shop");
        (scenario.users_started, scenario.not_admitted) = (3, 1);
        scenario.iteration(1_000_000_000);
        scenario.script_error("oh");
        run
    }

    #[test]
    fn everything_that_has_a_name_can_be_limited() {
        let summary = Summary::of(with_names());
        for (text, got, held) in [
            ("home:p95<10ms", "5.00ms", true),
            ("a<b>=c:p95<=10ms", "5.00ms", true),
            ("cart/:id:p95 < 10ms", "20.00ms", false),
            ("cart:p95<40ms", "30.00ms", true),
            ("group cart:p95<40ms", "50.00ms", false),
            ("cart:with_pauses.p95<1s", "900.0ms", true),
            ("plan=pro:error_rate<1%", "100%", false),
            ("tag plan=pro:timeout==1", "1", true),
            ("plan=pro:p95<1s", "nothing measured", false),
            ("home: 200:checks>99%", "100%", true),
            ("cart:checks>99%", "0%", false),
            ("checks>=50%", "50%", true),
            ("fails==1", "1", true),
            ("shop:iterations>=1", "1", true),
            ("shop:error_rate<60%", "50%", true),
            ("shop:p50<2s", "1.00s", true),
            ("iteration.p50<2s", "1.00s", true),
            ("not_admitted==0", "1", false),
            ("users_started==3", "3", true),
            ("script_errors==0", "1", false),
            ("home:rate>0.4", "0.50/s", true),
            ("home:tls.p99<1s", "a request has no such figure", false),
            ("group home:p99<1s", "no group has the name 'home'", false),
        ] {
            let result = text.parse::<Threshold>().unwrap().judge(&summary);
            assert_eq!((result.got, result.held), (got.to_owned(), held), "{text}");
        }
    }

    #[test]
    fn a_script_says_the_figure_and_the_condition_apart() {
        let threshold = Threshold::expected("home:p95", " < 20ms ", true).unwrap();
        assert_eq!((threshold.to_string().as_str(), threshold.aborts()), ("home:p95 < 20ms abort", true));
        assert!(Threshold::expected("p99", "<20ms abort", false).unwrap().aborts());
        assert!(!Threshold::expected("p99", "<20ms", false).unwrap().aborts());
        let error = Threshold::expected("p99", "20ms", true).unwrap_err().to_string();
        assert!(error.contains("got 'p99 20ms") && error.contains("there is none of <"), "{error}");
    }

    #[test]
    fn an_unknown_figure_names_the_nearest() {
        for (text, meant) in [
            ("eror_rate<1%", "error_rate"),
            ("p999<1s", "p99"),
            ("rps>10k", "rate"),
            ("conect.p99<1s", "connect.p99"),
            ("timeuot==0", "timeout"),
            ("avg<5ms", "mean"),
        ] {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean {meant}")), "{text}: {error}");
        }
        assert!("zzzzzzz<1".parse::<Threshold>().unwrap_err().to_string().contains("there are p50"));
    }

    #[test]
    fn nonsense_is_refused_with_a_way_out() {
        for (text, expected) in [
            ("p99", "there is none of < <= > >= =="),
            ("p100<1s", "'p100' is no figure"),
            ("px<1s", "'px' is no figure"),
            ("p99<fast", "expected a duration"),
            ("p99<50", "expected a duration with its unit"),
            ("error_rate<5ms", "expected a share"),
            ("<5ms", "'' is no figure"),
        ] {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
