//! A run's headline, and the other statements above its figures.
//!
//! Text, JSON and the page lead with the same sentence. Objections to the run come before good news, in this order: a
//! measurement that cannot be believed, an early end, a lost agent, thresholds, events at the target, failed calls,
//! figures that had not settled. Only a run without any of these leads with the number of successful calls. Doubtful
//! latency does not make failed calls succeed, so where too many failed, it comes after them.

use brunt_judge::remarks::{About, Remark};
use brunt_judge::summary::Summary;
use brunt_judge::thresholds::ThresholdResult;
use brunt_judge::trend::{Settled, Watched};
use brunt_judge::verdict::Judgement;
use brunt_plan::threshold::Threshold;
use brunt_plan::units::{Clock, Duration, ExactDuration, Number};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::recording::Ending;
use serde::{Deserialize, Serialize};

use crate::failed;
use crate::numbers::{brief, clean, count, counted, percent};
use crate::style::Role;

/// The most remarks on the target that are shown.
const MOST_REMARKS: usize = 5;

/// How the sentence on calls that fail begins while the run goes on.
const FAILING: &str = "FAILING: ";

/// How a statement is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// A requirement did not hold, or the figures cannot be believed.
    Bad,
    /// Something that whoever reads the figures has to know.
    Warning,
    /// An explanation of figures, neither for nor against the run.
    Note,
    /// All calls succeeded, and there were no requirements.
    Plain,
    /// Every requirement held.
    Good,
}

impl Tone {
    /// The class of a statement in HTML.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::Warning => "warning",
            Self::Note | Self::Plain => "",
            Self::Good => "good",
        }
    }

    pub(crate) const fn role(self) -> Role {
        match self {
            Self::Bad => Role::Bad,
            Self::Warning => Role::Warning,
            Self::Note => Role::Plain,
            Self::Plain => Role::Strong,
            Self::Good => Role::Good,
        }
    }
}

/// A statement about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statement {
    /// Its tone.
    pub tone: Tone,
    /// The statement, in one sentence.
    pub text: String,
    /// The advice; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
    /// When it began, in nanoseconds of the measured part; this and the next are missing in statements on the whole
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// When it ended; missing in statements on the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
}

impl Statement {
    fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into(), advice: String::new(), from_ns: None, to_ns: None }
    }

    /// Something that did not hold.
    pub(crate) fn bad(text: String) -> Self {
        Self::new(Tone::Bad, text)
    }

    /// A statement on a stretch of the measured part.
    #[cfg(test)]
    pub(crate) fn about_stretch(tone: Tone, text: &str, from_ns: u64, to_ns: u64) -> Self {
        Self { from_ns: Some(from_ns), to_ns: Some(to_ns), ..Self::new(tone, text) }
    }

    /// Its place in time, in nanoseconds of the measured part.
    pub(crate) fn stretch(&self) -> Option<(u64, u64)> {
        self.from_ns.zip(self.to_ns)
    }

    /// The sign before the statement; empty where the text begins with its own.
    pub(crate) fn sign(&self) -> &'static str {
        match self.tone {
            Tone::Bad if self.text.starts_with(failed::FAILED) => "",
            Tone::Bad => "✗ ",
            Tone::Warning => "! ",
            Tone::Note => "· ",
            Tone::Plain => "",
            Tone::Good => "✓ ",
        }
    }
}

/// A run's headline, in a line with its sign: `✗ 1 of 2 thresholds failed: …`.
pub fn headline(summary: &Summary) -> String {
    let first = statements(summary).into_iter().next();
    first.map_or_else(String::new, |statement| format!("{}{}", statement.sign(), statement.text))
}

/// The tone of a [`headline`], by its sign.
pub(crate) fn tone_of(headline: &str) -> Tone {
    match headline.chars().next() {
        Some('✗') => Tone::Bad,
        Some('!') => Tone::Warning,
        Some('✓') => Tone::Good,
        _ if headline.starts_with(failed::FAILED) => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// All statements above the figures of a run, the headline first.
pub fn statements(summary: &Summary) -> Vec<Statement> {
    let mut all = Vec::new();
    // Where nothing was due, nothing was measured either.
    let doubt = not_believed(summary).filter(|_| summary.total.numbers.get(Counter::Due) > 0);
    let (doubt, later_doubt) = if failures_stand(summary) { (None, doubt) } else { (doubt, None) };
    all.extend(doubt);
    all.extend(early_end(summary));
    all.extend(paused(summary));
    all.extend(summary.remarks.iter().filter(|remark| remark.about == About::Agents).map(about_target));
    if !summary.answered() {
        all.extend(nothing_answered(summary).map(|text| Statement::new(Tone::Bad, text)));
        return all;
    }
    all.extend(
        failed::sentence(summary).filter(|_| !is_own_doing(summary)).map(|text| Statement::new(Tone::Bad, text)),
    );
    all.extend(later_doubt);
    all.extend(thresholds_failed(summary));
    all.extend(turned_away(summary));
    let of_target = summary.remarks.iter().filter(|remark| remark.about != About::Agents);
    let (notes, remarks): (Vec<_>, Vec<_>) = of_target.partition(|remark| remark.about.is_note());
    all.extend(remarks.into_iter().take(MOST_REMARKS).map(about_target));
    // If another statement comes first, the outcomes state it.
    let is_first = all.is_empty();
    all.extend(some_failed(summary).filter(|_| is_first));
    // A run with an episode is not steady; a longer warm-up does not change that.
    let is_episode = summary.remarks.iter().any(|remark| remark.from_ns.is_some());
    all.extend(not_settled(summary).filter(|_| !is_episode));
    if all.is_empty() {
        all.push(all_well(summary));
    }
    let room = MOST_REMARKS.saturating_sub(summary.remarks.len() - notes.len());
    all.extend(notes.into_iter().take(room).map(about_target));
    all
}

/// Users who came and were not served, by scenario: the load was less than it was to be.
fn turned_away(summary: &Summary) -> Vec<Statement> {
    let mut all = Vec::new();
    for (name, scenario) in summary.total.figures.scenarios.iter() {
        let name = clean(name);
        let arrived = scenario.users_started + scenario.not_admitted + scenario.out_of_rows;
        if scenario.not_admitted > 0 {
            let not = Number(scenario.not_admitted as f64);
            let text = format!(
                "{name}: {not} of {} users were not admitted: as many were there as may be",
                Number(arrived as f64)
            );
            all.push(Statement {
                advice: "raise most_alive, or lower the rate".to_owned(),
                ..Statement::new(Tone::Warning, text)
            });
        }
        if scenario.out_of_rows > 0 {
            let text = format!("{name}: its data was used up, and it ended with its last row");
            let advice = "give more rows, or let them begin anew by :circular()".to_owned();
            all.push(Statement { advice, ..Statement::new(Tone::Warning, text) });
        }
    }
    all
}

/// The beginning of the sentence on a target that never answered, or has not answered yet.
const NEVER: &str = "the target never answered";
const NOT_YET: &str = "the target has not answered yet";

/// Statements on a run that goes on, in the words of its report. Nothing is judged yet: thresholds, and whether figures
/// had settled, are left out.
pub(crate) fn so_far(summary: &Summary) -> Vec<Statement> {
    let mut doubt = not_believed(summary);
    let mut all: Vec<_> = doubt.take_if(|_| !failures_stand(summary)).into_iter().collect();
    let failing = failed::sentence(summary).filter(|_| !is_own_doing(summary));
    let failing = failing.map(|text| text.replacen(failed::FAILED, FAILING, 1));
    let failing = failing.map(|text| Statement::new(Tone::Bad, text));
    let remarks = summary.remarks.iter().filter(|remark| !remark.about.is_note()).take(MOST_REMARKS);
    all.extend(failing.into_iter().chain(doubt).chain(remarks.map(about_target)));
    if all.is_empty() && summary.answered() {
        all.extend(some_failed(summary));
    }
    if !summary.answered() && summary.total.failures.total() > 0 {
        let silence = nothing_answered(summary).map(|text| text.replacen(NEVER, NOT_YET, 1));
        all.splice(0..0, silence.map(|text| Statement::new(Tone::Bad, text)));
    }
    all
}

/// That throughput or latency are brunt's own, and not the target's.
fn not_believed(summary: &Summary) -> Option<Statement> {
    let text = match summary.verdict.judgement {
        Judgement::Trustworthy | Judgement::NothingMeasured => return None,
        Judgement::GeneratorBound | Judgement::LatencyUnreliable if summary.verdict.is_brunt_the_limit() => {
            limit(summary)
        }
        Judgement::GeneratorBound => "brunt was the limit".to_owned(),
        Judgement::LatencyUnreliable => summary.verdict.holding(),
    };
    Some(Statement::new(Tone::Bad, text))
}

/// A lower bound on the target's rate, where brunt was the limit.
fn limit(summary: &Summary) -> String {
    let ok = Number(summary.rates.ok_per_s);
    if summary.is_open() {
        format!(
            "brunt was the limit: the target can do at least {ok} ok/s; {}/s were due",
            Number(summary.rates.due_per_s)
        )
    } else {
        format!("brunt was the limit: the target can do at least {ok} ok/s")
    }
}

/// The ending, if it was not as planned. Of a traceback, only the first line is shown.
fn early_end(summary: &Summary) -> Option<Statement> {
    let (tone, text) = match &summary.run.ending {
        Ending::Completed => return None,
        Ending::Interrupted => (Tone::Warning, interrupted(summary)),
        Ending::Aborted(reason) => (Tone::Bad, format!("aborted: {}", clean(reason))),
        Ending::Stopped(reason) => (Tone::Warning, format!("stopped by the script: {}", clean(reason))),
        Ending::GivenUp(reason) => (Tone::Bad, format!("given up by the script: {}", clean(reason))),
        // The statement on a target that never answered has the reason.
        Ending::Unreached(_) if summary.total.failures.total() > 0 => return None,
        Ending::Unreached(reason) | Ending::AgentsLost(reason) => (Tone::Bad, clean(reason).into_owned()),
        Ending::Failed(reason) => (Tone::Bad, clean(reason.lines().next().unwrap_or_default()).into_owned()),
    };
    Some(Statement::new(tone, text))
}

/// Whether too many calls failed, and the verdict doubts latency alone.
fn failures_stand(summary: &Summary) -> bool {
    summary.answered()
        && summary.verdict.judgement == Judgement::LatencyUnreliable
        && !summary.verdict.is_brunt_the_limit()
        && failed::sentence(summary).is_some()
}

/// The statement that the run was paused and not resumed before its end. If it ran to its end like that, it is half a
/// run, and has failed.
fn paused(summary: &Summary) -> Option<Statement> {
    let tone = if summary.run.ending == Ending::Completed { Tone::Bad } else { Tone::Warning };
    paused_to_end(summary).map(|text| Statement::new(tone, text))
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

/// Whether brunt is to blame for failed calls: it was the limit, and most of them were not sent.
fn is_own_doing(summary: &Summary) -> bool {
    let unsent = summary.total.numbers.get(Counter::Unsent);
    summary.verdict.is_brunt_the_limit() && unsent * 2 > summary.not_ok
}

/// The failed thresholds with their figures; the implicit one on all calls has a sentence of its own.
fn thresholds_failed(summary: &Summary) -> Option<Statement> {
    let failed: Vec<_> =
        summary.thresholds.iter().filter(|result| !result.held && !failed::has_sentence(result)).collect();
    if failed.iter().all(|result| summary.is_said_by_ending(result)) {
        return None;
    }
    let named: Vec<_> = failed.iter().map(|result| missed(result)).collect();
    let all = summary.thresholds.iter().filter(|result| result.is_noted() && !failed::has_sentence(result)).count();
    let plural = if all == 1 { "" } else { "s" };
    Some(Statement::new(Tone::Bad, format!("{} of {all} threshold{plural} failed: {}", failed.len(), named.join(", "))))
}

/// Such as `p99 946ms (limit <50ms)`.
pub(crate) fn missed(result: &ThresholdResult) -> String {
    let (text, got) = (result.threshold.trim(), brief(&result.got));
    let Ok(threshold) = text.parse::<Threshold>() else { return format!("{} ({got})", brief(text)) };
    let limit = text.get(threshold.figure().len()..).unwrap_or_default().trim_end_matches("abort").trim();
    format!("{} {got} (limit {limit})", brief(threshold.figure()))
}

/// The statement of a remark on the target or the plan.
pub(crate) fn about_target(remark: &Remark) -> Statement {
    let tone = match remark.about {
        About::NoSuccess | About::NoMessages | About::Redirects | About::Outage | About::Agents => Tone::Bad,
        about if about.is_note() => Tone::Note,
        _ => Tone::Warning,
    };
    Statement {
        tone,
        text: clean(&remark.message).into_owned(),
        advice: remark.advice.clone(),
        from_ns: remark.from_ns,
        to_ns: remark.to_ns,
    }
}

/// That calls failed, fewer than may.
fn some_failed(summary: &Summary) -> Option<Statement> {
    let due = summary.total.numbers.get(Counter::Due);
    (summary.not_ok > 0).then(|| {
        let text = format!(
            "{}{} of {} failed ({}), {}",
            if held(summary) > 0 { format!("{} held; ", thresholds_in_words(summary)) } else { String::new() },
            percent(summary.error_rate),
            counted(due, "call"),
            failed::worst(summary).0,
            rate(summary)
        );
        Statement::new(Tone::Warning, text)
    })
}

/// The statement that the run had not settled, with advice.
fn not_settled(summary: &Summary) -> Option<Statement> {
    let value = |figure: Watched, value: f64| match figure {
        Watched::Rate => format!("{}/s", Number(value)),
        _ => Duration(value.max(0.0).round() as u64).to_string(),
    };
    let text = match summary.verdict.settled {
        Settled::Yes | Settled::Unknown => return None,
        Settled::WarmingUp { until_s, figure, all, rest } => {
            // The warm-up was too short.
            let warmup_s = until_s + summary.plan.warmup_ns.div_ceil(SECOND_NS);
            format!(
                "still warming up until second {until_s} ({} {}, without it {}): -w {warmup_s}",
                figure.name(),
                value(figure, all),
                value(figure, rest)
            )
        }
        Settled::Drifting { figure, per_minute, typical } => format!(
            "not settled: {} {} by {} a minute, around {}",
            figure.name(),
            if per_minute < 0.0 { "falls" } else { "grows" },
            value(figure, per_minute.abs()),
            value(figure, typical)
        ),
    };
    Some(Statement::new(Tone::Warning, text))
}

/// The number of successful calls, and whether all requirements held.
fn all_well(summary: &Summary) -> Statement {
    let due = summary.total.numbers.get(Counter::Due);
    let calls = format!("{} of {} succeeded, {}", count(due), counted(due, "call"), rate(summary));
    match held(summary) {
        0 => Statement::new(Tone::Plain, calls),
        _ => Statement::new(Tone::Good, format!("{} held: {calls}", thresholds_in_words(summary))),
    }
}

fn rate(summary: &Summary) -> String {
    format!("{} ok/s", Number(summary.rates.ok_per_s))
}

/// The number of explicit thresholds that held.
fn held(summary: &Summary) -> usize {
    summary.thresholds.iter().filter(|result| result.is_noted()).count()
}

fn thresholds_in_words(summary: &Summary) -> String {
    match held(summary) {
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
        Some((text, _)) => {
            format!("no iteration came to a call: {}", clean(text.lines().next().unwrap_or_default()))
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

/// The first statement where no call was answered; `None` where the run's ending states it.
fn nothing_answered(summary: &Summary) -> Option<String> {
    let worst = summary.total.failures.counted().max_by_key(|(_, n)| *n);
    let of = |counter| summary.total.numbers.get(counter);
    let open = of(Counter::Unfinished) + of(Counter::Unsent) + of(Counter::Unknown);
    Some(match worst {
        Some((failure, n)) => {
            let said = failed::in_words(&summary.total.failures, failure, n);
            format!("{NEVER}: {said}{}", given_up(summary))
        }
        None if open > 0 => format!("{NEVER}: {} had not ended", counted(open, "call")),
        None if matches!(summary.run.ending, Ending::Aborted(_) | Ending::Unreached(_)) => return None,
        None => no_call(summary),
    })
}
