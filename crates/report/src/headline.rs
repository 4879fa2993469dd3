//! A run's headline, and the other remarks above its figures.
//!
//! Text, JSON and the page lead with the same sentence. First comes the outcome: an early end, calls that failed, load
//! that was not made, thresholds. Then what happened to the target. Last, how far the figures can be believed: a doubt
//! about the instrument makes no call succeed or fail. Where nothing failed and nothing happened, the number of successful
//! calls leads.

use std::fmt::Write as _;

use brunt_decide::kept::Headline;
use brunt_judge::abort::Reason;
use brunt_judge::advice::Advice;
use brunt_judge::phrase::Phrase;
use brunt_judge::remarks::{About, Remark, Tone};
use brunt_judge::summary::Summary;
use brunt_judge::thresholds::{JudgedCondition, ThresholdResult};
use brunt_judge::trend::{Settled, TrendFigure};
use brunt_judge::verdict::Judgement;
use brunt_plan::units::{Clock, Duration, ExactDuration, Number};
use brunt_record::SECOND_NS;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::Counter;
use brunt_record::histogram::{AtLeast, fewest_calls};
use brunt_record::recording::Ending;

use crate::numbers::{bound, brief, clean, count, counted, percent};
use crate::style::Role;
use crate::{failed, made};

/// The most remarks on the target that are shown.
const MOST_REMARKS: usize = 5;
/// The most failed thresholds that a sentence names.
const MOST_MISSED: usize = 4;

/// How reports show a tone.
pub(crate) trait InReports {
    /// The class of a remark in HTML.
    fn class(self) -> &'static str;
    /// How a remark begins.
    fn sign(self) -> &'static str;
    /// The role of its text.
    fn role(self) -> Role;
}

impl InReports for Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Failed | Self::Failing | Self::Bad => "bad",
            Self::Warning => "warning",
            Self::Note | Self::Plain => "",
            Self::Good => "good",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Failed => "FAILED: ",
            Self::Failing => "FAILING: ",
            Self::Bad => "✗ ",
            Self::Warning => "! ",
            Self::Note => "· ",
            Self::Plain => "",
            Self::Good => "✓ ",
        }
    }

    fn role(self) -> Role {
        match self {
            Self::Failed | Self::Failing | Self::Bad => Role::Bad,
            Self::Warning => Role::Warning,
            Self::Note => Role::Plain,
            Self::Plain => Role::Strong,
            Self::Good => Role::Good,
        }
    }
}

/// A remark with the tone in which reports show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Toned {
    /// Its tone.
    pub tone: Tone,
    /// The remark.
    pub remark: Remark,
    /// The conditions that it is about.
    pub thresholds: Vec<JudgedCondition>,
}

impl Toned {
    fn new(tone: Tone, about: About, message: impl Into<Phrase>) -> Self {
        Self { tone, remark: Remark::new(about, message), thresholds: Vec::new() }
    }

    /// The same with this advice.
    fn advising(mut self, advice: Advice) -> Self {
        self.remark.advice = Some(advice);
        self
    }

    /// Thresholds that did not hold: `1 of 2 thresholds failed`, and then each with its figure.
    pub(crate) fn of_thresholds(what: &str, missed_ones: &[&ThresholdResult]) -> Self {
        let named = missed_ones.iter().take(MOST_MISSED).map(|result| missed(result));
        let more = missed_ones.len().saturating_sub(MOST_MISSED);
        let more = (more > 0).then(|| format!("and {more} more"));
        let text = format!("{what}: {}", named.chain(more).collect::<Vec<_>>().join(", "));
        Self::new(Tone::Bad, About::Thresholds, text).on(missed_ones.iter().copied())
    }

    /// Names the conditions that the remark is about.
    fn on<'a>(mut self, results: impl IntoIterator<Item = &'a ThresholdResult>) -> Self {
        self.thresholds = results.into_iter().map(|result| result.condition.clone()).collect();
        self
    }

    /// A remark on a stretch of the measured part.
    #[cfg(test)]
    pub(crate) fn about_stretch(tone: Tone, from_ns: u64, to_ns: u64) -> Self {
        let remark = Remark::new(About::Freeze, "it froze");
        Self { tone, remark: Remark { from_ns: Some(from_ns), to_ns: Some(to_ns), ..remark }, thresholds: Vec::new() }
    }

    /// Its place in time, in nanoseconds of the measured part.
    pub(crate) fn stretch(&self) -> Option<(u64, u64)> {
        self.remark.from_ns.zip(self.remark.to_ns)
    }

    /// The sign before it.
    pub(crate) fn sign(&self) -> &'static str {
        self.tone.sign()
    }
}

/// A run's headline, in a line with its sign: `✗ 1 of 2 thresholds failed: …`.
pub fn headline(summary: &Summary) -> Headline {
    let first = remarks(summary).into_iter().next();
    let line = first.as_ref().map_or_else(String::new, |first| format!("{}{}", first.sign(), first.remark.message));
    Headline { tone: first.map_or(Tone::Plain, |first| first.tone), line }
}

/// The remarks above the figures of a run, the headline first.
pub fn remarks(summary: &Summary) -> Vec<Toned> {
    let mut all = Vec::new();
    all.extend(early_end(summary));
    all.extend(paused(summary));
    all.extend(of_agents(summary));
    let did_its_work = did_its_work(summary);
    if !summary.answered() {
        // A run that failed by itself says nothing of the target, unless calls failed as well.
        let is_told = matches!(summary.run.ending, Ending::Failed(_)) && summary.total.failures.total() == 0;
        let nothing = nothing_answered(summary, &format!("the target {}", never(summary))).filter(|_| !is_told);
        let what_next = match (summary.total.numbers.get(Counter::Due) == 0, &summary.plan.scenarios) {
            (false, _) => Advice::LookAtCall,
            (true, Some(_)) if summary.run.measured_ns > 0 => Advice::SeeCalls,
            (true, _) => Advice::LastLonger,
        };
        all.extend(nothing.map(|text| Toned::new(Tone::Bad, About::NothingAnswered, text).advising(what_next)));
        all.extend(not_believed(summary).filter(|_| summary.total.numbers.get(Counter::Due) > 0));
        let tone = if summary.is_idle() { Tone::Warning } else { Tone::Note };
        all.extend(did_its_work.map(|text| Toned::new(tone, About::Stopped, text)));
        return all;
    }
    all.extend(too_many_failed(summary, Tone::Failed));
    // Where less load was made than may be, that has said it.
    let is_short = made::sentences(summary).next().is_some();
    let of_load = |(result, text)| Toned::new(Tone::Failed, About::Load, text).on([result]);
    all.extend(made::sentences(summary).map(of_load));
    all.extend(thresholds_failed(summary));
    all.extend(turned_away(summary).into_iter().filter(|_| !is_short));
    let of_target = summary.remarks.iter().filter(|remark| remark.about != About::Agents);
    let (notes, remarks): (Vec<_>, Vec<_>) = of_target.partition(|remark| remark.about.is_note());
    all.extend(remarks.into_iter().take(MOST_REMARKS).map(|remark| about_target(remark, summary)));
    // If another remark comes first, the outcomes state it.
    match did_its_work {
        text if all.is_empty() => {
            let mut first = some_failed(summary, held(summary)).unwrap_or_else(|| all_well(summary, held(summary)));
            if let Some(text) = text {
                first.remark.message = format!("{}; {text}", first.remark.message).into();
            }
            all.push(first);
        }
        text => all.extend(text.map(|text| Toned::new(Tone::Note, About::Stopped, text))),
    }
    all.extend(not_believed(summary));
    // A run with an episode is not steady; a longer warm-up does not change that.
    let is_episode = summary.remarks.iter().any(|remark| remark.from_ns.is_some());
    all.extend(not_settled(summary).filter(|_| !is_episode));
    let room = MOST_REMARKS.saturating_sub(summary.remarks.len() - notes.len());
    all.extend(notes.into_iter().take(room).map(|remark| about_target(remark, summary)));
    all
}

/// The remarks above the figures, and behind them those that reports leave out.
pub(crate) fn all(summary: &Summary) -> Vec<Toned> {
    let mut all = remarks(summary);
    for left_out in summary.remarks.iter().map(|remark| about_target(remark, summary)) {
        if !all.contains(&left_out) {
            all.push(left_out);
        }
    }
    all
}

/// The remark on an implicit threshold that failed.
fn too_many_failed(summary: &Summary, tone: Tone) -> Option<Toned> {
    failed::sentence(summary).map(|(result, text)| Toned::new(tone, About::TooManyFailed, text).on([result]))
}

/// Users who came and were not served, by scenario: the load was less than it was to be.
fn turned_away(summary: &Summary) -> Vec<Toned> {
    let mut all = Vec::new();
    for (name, scenario) in summary.total.figures.scenarios.iter() {
        let came = summary.plan.scenarios.as_ref().map_or(0, |all| all.came(name, scenario));
        let arrived = came + scenario.not_admitted + scenario.out_of_rows;
        let name = clean(name);
        if scenario.not_admitted > 0 {
            let not = Number(scenario.not_admitted as f64);
            let text = format!(
                "{name}: {not} of {} users were not admitted: as many were there as may be",
                Number(arrived as f64)
            );
            all.push(Toned::new(Tone::Warning, About::NotAdmitted, text).advising(Advice::RaiseMostAlive));
        }
        if scenario.out_of_rows > 0 {
            let text = format!("{name}: its data was used up, and it ended with its last row");
            all.push(Toned::new(Tone::Warning, About::OutOfRows, text).advising(Advice::MoreRows));
        }
    }
    all
}

/// What is said of lost agents.
fn of_agents(summary: &Summary) -> impl Iterator<Item = Toned> {
    let remarks = summary.remarks.iter().filter(|remark| remark.about == About::Agents);
    remarks.map(|remark| about_target(remark, summary))
}

/// What a target did that never answered, and the beginning of the sentence on one that has not answered yet.
const NEVER: &str = "never answered";
const NOT_YET: &str = "the target has not answered yet";
/// The same behind a warm-up, in which it may have answered.
const NEVER_SINCE: &str = "answered nothing after the warm-up";
const NOT_SINCE: &str = "the target has answered nothing since the warm-up";
/// The same where no connection was made, and a proxy was to make it.
const NO_WAY: &str = "no way through the proxy";

/// Remarks on a run that goes on, in the words and the order of its report. Nothing is judged yet: thresholds, and
/// whether figures had settled, are left out.
pub(crate) fn so_far(summary: &Summary) -> Vec<Toned> {
    let mut all = Vec::new();
    if !summary.answered() && summary.total.failures.total() > 0 {
        let not_yet = if summary.plan.warmup_ns == 0 { NOT_YET } else { NOT_SINCE };
        all.extend(nothing_answered(summary, not_yet).map(|text| Toned::new(Tone::Bad, About::NothingAnswered, text)));
    }
    all.extend(too_many_failed(summary, Tone::Failing));
    let remarks = summary.remarks.iter().filter(|remark| !remark.about.is_note()).take(MOST_REMARKS);
    all.extend(remarks.map(|remark| about_target(remark, summary)));
    if all.is_empty() && summary.answered() {
        all.extend(some_failed(summary, 0));
    }
    all.extend(not_believed(summary));
    all
}

/// How far throughput or latency are brunt's own, and not the target's.
fn not_believed(summary: &Summary) -> Option<Toned> {
    let verdict = &summary.verdict;
    let text = match verdict.judgement {
        Judgement::Trustworthy | Judgement::NothingMeasured => return None,
        // Nothing was answered, faster or slower.
        _ if summary.rates.answered_per_s <= 0.0 => return None,
        // A lower bound of nothing says nothing of the target.
        _ if verdict.is_brunt_the_limit() && summary.rates.ok_per_s > 0.0 => {
            format!("brunt was the limit: the target can do at least {} ok/s", Number(summary.rates.ok_per_s))
        }
        Judgement::GeneratorBound => "brunt was the limit".to_owned(),
        Judgement::LatencyUnreliable => verdict.holding(),
    };
    Some(Toned::new(Tone::Warning, About::Generator, text))
}

/// The ending, if it was not as planned. Of a traceback, only the first line is shown.
fn early_end(summary: &Summary) -> Option<Toned> {
    let (tone, text) = match &summary.run.ending {
        // What such a run came to, comes first.
        Ending::Completed | Ending::Stopped(_) => return None,
        Ending::Interrupted => (Tone::Warning, interrupted(summary)),
        Ending::Aborted(cause) => (Tone::Bad, format!("aborted: {}", clean(&Reason(cause).to_string()))),
        Ending::GivenUp(reason) => (Tone::Bad, format!("given up by the script: {}", clean(reason))),
        // The remark on a target that never answered has the reason.
        Ending::Unreached(_) if summary.total.failures.total() > 0 => return None,
        Ending::Unreached(reason) | Ending::AgentsLost(reason) => (Tone::Bad, clean(reason).into_owned()),
        Ending::Failed(reason) => (Tone::Bad, clean(reason.lines().next().unwrap_or_default()).into_owned()),
    };
    Some(Toned::new(tone, About::Ending, text).on(summary.ended_by()))
}

/// That a script ended its run since it had done what it was to do, and how far the run came: no word on how it went.
fn did_its_work(summary: &Summary) -> Option<String> {
    let Ending::Stopped(reason) = &summary.run.ending else { return None };
    let planned = summary.plan.duration_ns().filter(|planned_ns| summary.run.measured_ns < *planned_ns);
    let far = match planned {
        _ if summary.is_idle() => " before any call was due".to_owned(),
        Some(planned_ns) => format!(" after {} of {}", Duration(summary.run.measured_ns), ExactDuration(planned_ns)),
        None => String::new(),
    };
    Some(format!("stopped by the script{far}: {}", clean(reason)))
}

/// The remark that the run was paused and not resumed before its end. If it ran to its end like that, it is half a
/// run, and has failed.
fn paused(summary: &Summary) -> Option<Toned> {
    let tone = if summary.run.ending == Ending::Completed { Tone::Bad } else { Tone::Warning };
    paused_to_end(summary).map(|text| Toned::new(tone, About::Pause, text))
}

/// Since when a run was paused that nobody resumed before its end, in a sentence; `None` for other runs.
pub fn paused_to_end(summary: &Summary) -> Option<String> {
    let from_ns = summary.paused_to_end()?;
    let measured_ns = summary.run.measured_ns;
    let (rest, whole) = (failed::tenths(measured_ns - from_ns), failed::tenths(measured_ns));
    let from = Clock(from_ns);
    Some(format!(
        "paused from {from} to the end: nothing was measured for {rest} of {whole}, thresholds judge the rest"
    ))
}

/// The failed thresholds with their figures; the implicit one on all calls has a sentence of its own.
fn thresholds_failed(summary: &Summary) -> Option<Toned> {
    let failed: Vec<_> =
        summary.thresholds.iter().filter(|result| !result.held && !failed::has_sentence(result)).collect();
    if failed.iter().all(|result| summary.ended_by() == Some(*result)) {
        return None;
    }
    let all = summary.thresholds.iter().filter(|result| result.is_noted() && !failed::has_sentence(result)).count();
    let plural = if all == 1 { "" } else { "s" };
    Some(Toned::of_thresholds(&format!("{} of {all} threshold{plural} failed", failed.len()), &failed))
}

/// Such as `p99 946ms (limit <50ms)`.
fn missed(result: &ThresholdResult) -> String {
    let got = brief(&result.got.to_string());
    match result.condition.threshold() {
        Some(threshold) => format!("{} {got} (limit {})", brief(threshold.figure()), threshold.condition()),
        None => format!("{} ({got})", brief(&result.condition.to_string())),
    }
}

/// A remark on the target or the plan, with its tone. It is no failure where the run has not failed.
pub(crate) fn about_target(remark: &Remark, summary: &Summary) -> Toned {
    let has_failed = !summary.thresholds_held() || summary.run.agents.iter().any(AgentPart::is_missed);
    let tone = match remark.about {
        About::NoSuccess | About::NoMessages | About::Redirects | About::Outage | About::Agents if has_failed => {
            Tone::Bad
        }
        about if about.is_note() => Tone::Note,
        _ => Tone::Warning,
    };
    let message = clean(&remark.message.to_string()).into_owned().into();
    Toned { tone, remark: Remark { message, ..remark.clone() }, thresholds: Vec::new() }
}

/// That calls failed, fewer than may, and so many thresholds held.
fn some_failed(summary: &Summary, held: usize) -> Option<Toned> {
    let due = summary.total.numbers.get(Counter::Due);
    (summary.not_ok > 0).then(|| {
        let text = format!(
            "{}{} of {} failed ({}), {}",
            if held > 0 { format!("{} held; ", thresholds_in_words(held)) } else { String::new() },
            percent(summary.error_rate),
            counted(due, "call"),
            failed::worst(summary).0,
            rate(summary)
        );
        Toned::new(Tone::Warning, About::Outcome, text)
    })
}

/// The remark that the run had not settled, with advice.
fn not_settled(summary: &Summary) -> Option<Toned> {
    let value = |figure: TrendFigure, value: f64| match figure {
        TrendFigure::Rate => format!("{}/s", Number(value)),
        _ => Duration(value.max(0.0).round() as u64).to_string(),
    };
    let text = match summary.verdict.settled {
        Settled::Yes | Settled::Unknown => return None,
        Settled::WarmingUp { until_s, figure, all, rest } => {
            // The warm-up was too short.
            let warmup_s = until_s + summary.plan.warmup_ns.div_ceil(SECOND_NS);
            let (all_shown, rest_shown) = (value(figure, all), value(figure, rest));
            // A target that warms up gets better.
            if (rest < all) == (figure == TrendFigure::Rate) {
                format!(
                    "not settled: the target was faster until second {until_s} ({} {all_shown}, without that {rest_shown}): -w {warmup_s}",
                    figure.name(),
                )
            } else {
                format!(
                    "still warming up until second {until_s} ({} {all_shown}, without it {rest_shown}): -w {warmup_s}",
                    figure.name(),
                )
            }
        }
        Settled::Drifting { figure, per_minute, typical } => format!(
            "not settled: {} {} by {} a minute, around {}",
            figure.name(),
            if per_minute < 0.0 { "falls" } else { "grows" },
            value(figure, per_minute.abs()),
            value(figure, typical)
        ),
    };
    Some(Toned::new(Tone::Warning, About::NotSettled, text))
}

/// The number of successful calls, and that so many thresholds held.
pub(crate) fn all_well(summary: &Summary, held: usize) -> Toned {
    let due = summary.total.numbers.get(Counter::Due);
    let ok = summary.total.ok(summary.ok_status());
    let calls = format!("{} of {} succeeded, {}", count(ok), counted(due, "call"), rate(summary));
    match held {
        0 => Toned::new(Tone::Plain, About::Outcome, calls),
        _ => Toned::new(Tone::Good, About::Outcome, format!("{} held: {calls}", thresholds_in_words(held))),
    }
}

/// The rate of success; and the figures with which a protocol's report begins, such as tokens a second.
fn rate(summary: &Summary) -> String {
    let mut parts = vec![format!("{} ok/s", Number(summary.rates.ok_per_s))];
    for own in summary.breakdown.own.iter().filter(|own| own.leads) {
        let name = own.name.replace('_', " ");
        let time = |value: f64| own.figures.unit_ns().map(|ns| Duration((value * ns).round() as u64).to_string());
        let at_least = |value: AtLeast<f64>| {
            format!("{}{}", bound(value.at_least), time(value.value).unwrap_or_else(|| Number(value.value).to_string()))
        };
        let is_of_few = own.figures.count < fewest_calls(0.99);
        let few = if is_of_few { format!(" of {}", counted(own.figures.count, "value")) } else { String::new() };
        parts.extend(match (own.per_s, own.figures.quantile(0.99)) {
            (Some(per_s), _) => Some(format!("{} {name}/s", Number(per_s))),
            (None, Some(p99)) => Some(format!("{name} p99 {}{few}", at_least(p99))),
            (None, None) => own.figures.share().map(|share| format!("{name} {}", percent(share))),
        });
    }
    parts.join(", ")
}

/// The number of explicit thresholds that held.
fn held(summary: &Summary) -> usize {
    summary.thresholds.iter().filter(|result| result.is_noted()).count()
}

fn thresholds_in_words(held: usize) -> String {
    match held {
        1 => "the threshold".to_owned(),
        2 => "both thresholds".to_owned(),
        n => format!("all {n} thresholds"),
    }
}

/// How far an interrupted run came.
fn interrupted(summary: &Summary) -> String {
    let planned = summary.plan.duration_ns().map_or(String::new(), |ns| format!(" of {}", ExactDuration(ns)));
    match summary.run.measured_ns {
        0 => "interrupted before the measured part began".to_owned(),
        ns => format!("interrupted after {}{planned}: the figures cover what was done", Duration(ns)),
    }
}

/// How far into its time a run was given up, if it was.
fn given_up(summary: &Summary) -> String {
    match (&summary.run.ending, summary.plan.duration_ns()) {
        (Ending::Unreached(_), Some(planned)) if summary.run.measured_ns < planned => {
            format!("; given up after {} of {}", Duration(summary.run.measured_ns), ExactDuration(planned))
        }
        _ => String::new(),
    }
}

/// The reason for which no call was due: the first error of a script all of whose iterations failed.
pub fn no_call(summary: &Summary) -> String {
    let traceback = summary.breakdown.scenarios.iter().find_map(|scenario| scenario.tracebacks.first());
    match traceback {
        Some(error) => {
            format!("no iteration came to a call: {}", clean(error.traceback.lines().next().unwrap_or_default()))
        }
        None => match [Counter::EndedCarried, Counter::CarriedUnderWay].map(|n| summary.total.numbers.get(n)) {
            [0, 0] => "no call was ever due".to_owned(),
            [ended, under_way] => {
                format!(
                    "no call began in the measured time; {} of the warm-up were under way",
                    count(ended + under_way)
                )
            }
        },
    }
}

/// The predicate about a target that answered no call of the measured part: `never answered`; or, behind a warm-up, in which it
/// may have answered, `answered nothing after the warm-up`.
pub fn never(summary: &Summary) -> &'static str {
    if summary.plan.warmup_ns == 0 { NEVER } else { NEVER_SINCE }
}

/// The first remark where no call was answered, as `never` says; `None` where the run's ending states it.
fn nothing_answered(summary: &Summary, never: &str) -> Option<String> {
    let worst = summary.total.failures.worst();
    let of = |counter| summary.total.numbers.get(counter);
    let open = of(Counter::Unfinished) + of(Counter::Unsent) + of(Counter::Unknown);
    Some(match worst {
        Some((failure, n)) => {
            let said = failed::in_words(&summary.total.failures, failure, n);
            let is_proxys = summary.plan.transport.proxy.is_some() && of(Counter::ConnectionsMade) == 0;
            let never = if is_proxys && failure.is_of_connecting() { NO_WAY } else { never };
            // Each of the calls that failed has its place: those that never ended, too.
            let unended = [Counter::Unfinished, Counter::Unsent].map(|end| (of(end), end.key()));
            let others =
                unended.into_iter().filter(|(n, _)| *n > 0 && n + summary.total.failures.total() <= of(Counter::Due));
            let mut all = format!("{never}: {said}");
            for (n, name) in others {
                let _ = write!(all, ", {name} × {}", count(n));
            }
            all + &given_up(summary)
        }
        None if open > 0 => format!("{never}: {} had not ended", counted(open, "call")),
        None if matches!(summary.run.ending, Ending::Aborted(_) | Ending::Unreached(_) | Ending::Stopped(_)) => {
            return None;
        }
        None => no_call(summary),
    })
}
