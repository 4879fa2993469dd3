//! The figures of one run, or of one block of its seconds, that are compared.

use brunt_judge::summary::{Rates, Summary};
use brunt_plan::scenario::Population;
use brunt_record::catalogue::{Counter, Numbers};
use brunt_record::histogram::{AtLeast, Censored, Percentile};
use brunt_record::messages::Messages;
use brunt_record::series::Point;
use brunt_record::snapshot::Snapshot;

use super::own::{self, OwnValue};
use super::{LEAST_BEYOND, LeftOut, LeftOutCause, Metric};
use crate::evidence::{Evidence, Leading};

/// Into how many blocks a run is cut.
pub const BLOCKS: usize = 10;
/// The points of its series from which on a block is long. Simulated on autocorrelated seconds (AR(1), φ up to 0.9), blocks
/// of three or more give false alarms in at most 5% of comparisons.
const LONG_BLOCK_POINTS: usize = 3;
/// What is added to the correlation that is seen between short blocks, where the same simulation gives false alarms in up to
/// 12% without it, and in at most 5% with it (φ up to 0.7).
const DOUBT: f64 = 0.1;

/// A run in blocks of its seconds, in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks {
    /// The figures of each.
    pub each: Vec<ComparedFigures>,
    /// Whether a block has so few seconds that one tells much of the next.
    pub are_short: bool,
}

impl Blocks {
    /// What is added to the correlation between them.
    pub(super) fn doubt(&self) -> f64 {
        if self.are_short { DOUBT } else { 0.0 }
    }
}

/// The figures of a run, or of a block of its seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedFigures {
    /// Calls that count in the response times.
    pub count: u64,
    /// Calls answered a second with success.
    pub rate: f64,
    /// Mean and quantiles of the response time in nanoseconds, in the order of [`Metric::ALL`] after the rate; `None`
    /// where nothing was answered.
    pub times: [Option<AtLeast<f64>>; 5],
    /// Figures of the messages that answers came as; `None` without messages.
    pub messages: Option<MessageFigures>,
    /// The share of calls due that are not a success, 0 to 1.
    pub error_rate: f64,
    /// Metrics that the generator's own doing spoils.
    pub unreliable: Vec<Metric>,
    /// Figures of the protocol's own.
    pub own: Vec<OwnValue>,
}

/// The figures of a run's messages. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageFigures {
    /// Messages a second.
    rate: f64,
    /// Whether messages are known one by one, and not only by their number.
    is_whole: bool,
    /// Calls whose first message came or was awaited, and gaps between messages.
    calls: u64,
    gaps: u64,
    first_p50: Option<AtLeast<f64>>,
    first_p99: Option<AtLeast<f64>>,
    gap_p99: Option<AtLeast<f64>>,
}

impl MessageFigures {
    /// The figures of `messages`, at this rate in messages a second; `None` if no message came.
    pub fn new(messages: Messages<'_>, rate: f64) -> Option<Self> {
        if messages.is_empty() {
            return None;
        }
        let [first_p50, first_p99] =
            messages.first().quantiles([0.5, 0.99]).map(|time| Some(time?.map(|ns| ns as f64)));
        let [gap_p99] = messages.gap().quantiles([0.99]).map(|time| Some(time?.map(|ns| ns as f64)));
        Some(Self {
            rate,
            is_whole: true,
            calls: messages.first().count(),
            gaps: messages.gap().count(),
            first_p50,
            first_p99,
            gap_p99,
        })
    }
}

/// The successes a second that tell two targets apart. Where the plan sets the rate, that is the share of the calls due:
/// which of them end before the measured time does is a matter of their latency.
fn rate_to_compare(is_open: bool, rates: &Rates, error_rate: f64) -> f64 {
    if is_open { rates.due_per_s * (1.0 - error_rate) } else { rates.ok_per_s }
}

/// The same where a script's iterations begin at times of their own, over the time in which they do: the run goes on until the
/// last of them has ended, which is a matter of latency, too.
fn rate_of_arriving_users(summary: &Summary) -> Option<f64> {
    let populations = &summary.plan.scenarios.as_ref()?.populations;
    let seconds = summary.plan.load_ns().filter(|_| populations.iter().all(Population::is_open))? as f64 / 1e9;
    Some(summary.total.numbers.get(Counter::Due) as f64 / seconds * (1.0 - summary.error_rate))
}

impl ComparedFigures {
    /// The figures of a whole run.
    pub fn from_summary(summary: &Summary) -> Self {
        let answered = summary.total.statuses.total();
        let rate = rate_of_arriving_users(summary)
            .unwrap_or_else(|| rate_to_compare(summary.is_open(), &summary.rates, summary.error_rate));
        let of = Self::new(rate, answered, summary.error_rate, &summary.total.response_times());
        let messages = MessageFigures::new(summary.total.messages(), summary.rates.messages_per_s);
        let evidence = Evidence::from_summary(summary);
        Self { messages, own: own::of_run(&evidence), ..of }.but_for(&evidence)
    }

    /// Marks the figures that the run's own evidence does not believe as unreliable.
    fn but_for(self, evidence: &Evidence) -> Self {
        let is_spoiled = |metric: &Metric| match metric {
            Metric::Rate | Metric::MessageRate => !evidence.is_rate_believed,
            Metric::Mean => !evidence.is_mean_reliable,
            // What spoils this percentile of whole calls spoils that of their messages.
            _ => metric.percentile().is_some_and(|percentile| !evidence.is_reliable(percentile)),
        };
        // Under another load than the one asked for, a target has other response times, too.
        let unreliable = Metric::ALL.into_iter().filter(|metric| !evidence.is_load_as_asked || is_spoiled(metric));
        // A side that never answered has no figures at all, which says enough.
        Self { unreliable: if evidence.is_answered() { unreliable.collect() } else { Vec::new() }, ..self }
    }

    /// Figures from their parts: calls `answered`, successes a second (`rate`), and response times.
    pub fn new(rate: f64, answered: u64, error_rate: f64, response: &Censored) -> Self {
        let quantiles = [Metric::P50, Metric::P90, Metric::P99, Metric::P99_9]
            .map(|m| m.percentile().map_or(0.5, Percentile::share));
        let [p50, p90, p99, p99_9] = response.quantiles(quantiles).map(|time| Some(time?.map(|ns| ns as f64)));
        let times = if answered > 0 { [response.mean(), p50, p90, p99, p99_9] } else { [None; 5] };
        Self {
            count: response.count(),
            rate,
            times,
            error_rate,
            messages: None,
            unreliable: Vec::new(),
            own: Vec::new(),
        }
    }

    /// The logarithm of a metric, or why there is none.
    fn logarithm(&self, metric: Metric) -> Result<f64, LeftOutCause> {
        if self.unreliable.contains(&metric) {
            return Err(LeftOutCause::Spoiled);
        }
        let (value, count) = self.value(metric);
        let nothing = match &self.messages {
            _ if !metric.is_of_messages() => LeftOutCause::NoAnswer,
            Some(of) if !of.is_whole => LeftOutCause::WholeRunsOnly,
            Some(_) if metric == Metric::MessageGapP99 => LeftOutCause::NoGap,
            _ => LeftOutCause::NoMessage,
        };
        let value = value.ok_or(nothing)?;
        if metric.percentile().is_some_and(|of| count as f64 * (1.0 - of.share()) < LEAST_BEYOND) {
            return Err(if metric == Metric::MessageGapP99 {
                LeftOutCause::TooFewMessages
            } else {
                LeftOutCause::TooFewCalls
            });
        }
        if value.at_least {
            return Err(LeftOutCause::LowerBoundOnly);
        }
        match value.value {
            value if value > 0.0 => Ok(value.ln()),
            // Messages that were read together have no gap.
            _ if metric == Metric::MessageGapP99 => Err(LeftOutCause::MessagesTogether),
            _ => Err(nothing),
        }
    }

    /// The value of a metric, and the number of calls or gaps behind it.
    fn value(&self, metric: Metric) -> (Option<AtLeast<f64>>, u64) {
        let messages = self.messages.as_ref();
        match metric {
            Metric::Rate => (Some(AtLeast::exactly(self.rate)), self.count),
            Metric::MessageRate => (messages.map(|of| AtLeast::exactly(of.rate)), 0),
            Metric::FirstMessageP50 => (messages.and_then(|of| of.first_p50), messages.map_or(0, |of| of.calls)),
            Metric::FirstMessageP99 => (messages.and_then(|of| of.first_p99), messages.map_or(0, |of| of.calls)),
            Metric::MessageGapP99 => (messages.and_then(|of| of.gap_p99), messages.map_or(0, |of| of.gaps)),
            Metric::Mean | Metric::P50 | Metric::P90 | Metric::P99 | Metric::P99_9 => {
                let at = Metric::ALL.iter().skip(1).position(|known| *known == metric);
                (at.and_then(|at| self.times.get(at).copied().flatten()), self.count)
            }
        }
    }
}

/// Which of `all` have a metric that the generator did not spoil.
pub(super) fn believed(metric: Metric, all: &[ComparedFigures]) -> Vec<bool> {
    all.iter().map(|figures| !figures.unreliable.contains(&metric)).collect()
}

/// The logarithm of a metric in each of `all` that `counts`; otherwise the cause and the words for why it cannot be compared.
pub(super) fn logarithms(metric: Metric, all: &[ComparedFigures], counts: &[bool]) -> Result<Vec<f64>, LeftOut> {
    let all: Vec<_> = all.iter().zip(counts).filter(|(_, counts)| **counts).map(|(figures, _)| figures).collect();
    let each: Vec<_> = all.iter().map(|figures| figures.logarithm(metric)).collect();
    let failed = each.iter().filter(|logarithm| logarithm.is_err()).count();
    match each.iter().find_map(|logarithm| logarithm.as_ref().err()) {
        Some(&cause) => {
            Err(LeftOut { metric, why: format!("{} in {failed} of {}", cause.words(), all.len()), cause: Some(cause) })
        }
        None => Ok(each.into_iter().flatten().collect()),
    }
}

/// The seconds of a run in [`BLOCKS`] blocks, in the order of time; `None` if the run is too short for that. A last
/// point that is shorter than the others is left out. `own` are the figures of the protocol's own that its evidence has.
pub fn blocks(points: &[Point], own: &[Leading]) -> Option<Blocks> {
    let usual = points.first()?.length_ns;
    let whole = match points.split_last() {
        Some((last, rest)) if last.length_ns < usual => rest,
        _ => points,
    };
    if whole.len() < BLOCKS {
        return None;
    }
    let block = |number: usize| {
        let (from, to) = (number * whole.len() / BLOCKS, (number + 1) * whole.len() / BLOCKS);
        block(whole.get(from..to).unwrap_or(&[]), own)
    };
    Some(Blocks { each: (0..BLOCKS).map(block).collect(), are_short: whole.len() < BLOCKS * LONG_BLOCK_POINTS })
}

fn block(points: &[Point], own: &[Leading]) -> ComparedFigures {
    let mut response = Censored::default();
    let (mut answered, mut not_ok, mut length_ns, mut numbers) = (0, 0, 0, Numbers::default());
    for point in points {
        response.merge(&point.response_times());
        answered += point.answered;
        not_ok += point.not_ok;
        numbers.merge(&point.numbers);
        length_ns += point.length_ns;
    }
    let per_s = |n: u64| if length_ns > 0 { n as f64 * 1e9 / length_ns as f64 } else { 0.0 };
    let rate = per_s(numbers.ended_ok());
    let calls = response.count();
    let error_rate = if calls > 0 { not_ok as f64 / calls as f64 } else { 0.0 };
    let messages = Snapshot { numbers, ..Snapshot::default() };
    let messages = MessageFigures::new(messages.messages(), per_s(numbers.get(Counter::EndedMessages)))
        .map(|figures| MessageFigures { is_whole: false, ..figures });
    ComparedFigures {
        messages,
        own: own::of_block(points, own),
        ..ComparedFigures::new(rate, answered, error_rate.min(1.0), &response)
    }
}
