//! The figures of language models, from the times of events and from what these say.
//!
//! | figure | definition |
//! | --- | --- |
//! | `ttft` | from when a request was due to its first event with text: of an answer, of reasoning, or of a tool's call |
//! | `ttft_sent` | the same from when it was sent |
//! | `ttft_content` | the same as `ttft` to the first text of the answer itself, where others came before |
//! | `ttft_first_turn`, `ttft_later_turns` | the same as `ttft` of first turns of conversations, and of later ones |
//! | `turns_lost` | turns that were never asked, since one before them failed or had no text, or the conversation became too long |
//! | `chunk_gap` | from one event with text to the next |
//! | `itl` | a gap g before an event of k tokens counts k times, as g / k: their sum is the time from the first event to the last |
//! | `tpot` | (last − first) / (n − k₁), of an answer of n tokens, k₁ of them in its first event; none where n = k₁ |
//! | `output_tokens` | tokens in events that arrived within the measured time, of whatever request |
//!
//! How many tokens an event has: what the server counts with each event, or its count at the end, dealt to the events by the lengths of
//! their texts, or one an event where it counts nothing. `tokens_estimated` is the share of tokens that were not counted by the server.
//!
//! Choices of one answer, `n` above 1, are one stream of events.
//!
//! `usage_odd` has the answers whose count does not fit their text: no tokens, which is not believed, or more tokens than bytes.
//!
//! A request that failed, or was cut off, before its first token is in `ttft` as a lower bound: it would have taken longer than it waited.
//! Percentiles that such requests can move are marked as at least as long. `ttft_sent` is of requests with a first token, as in other tools.

use std::sync::atomic::Ordering;

use brunt_plan::random::ByNumber;
use brunt_plan::scenario::{DeclaredFigure, DeclaredRemark};
use brunt_protocol::AnswerParts;
use brunt_protocol::meter::{Meter, MeteredEnd, MeteredSecond, Reading};
use brunt_record::call_timeline::CallTimeline;
use brunt_record::figures::{OwnFigures, OwnKind};
use brunt_record::histogram::Histogram;

use crate::event::{Finish, TextKind};
use crate::facts::{self, Ended};
use crate::objectives::{Objectives, Times};
use crate::timelines::{SharedTimelines, Timelines, lock};
use crate::turns::Lost;

/// The most events of an answer whose tokens wait for its end.
const MOST_EVENTS: usize = 16_384;
/// A gap this many times the median is a stall.
const STALL: u64 = 10;
/// The tokens of an answer that may have no text, such as its end and the beginning of a call.
const UNSEEN: u64 = 16;
/// The fewest gaps of which a median is taken.
const FEWEST_GAPS: u64 = 100;

/// The figures, in the order in which a report has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Name {
    Ttft,
    TtftSent,
    TtftContent,
    TtftFirstTurn,
    TtftLaterTurns,
    Tpot,
    Itl,
    ChunkGap,
    OutputTokens,
    InputTokens,
    CachedTokens,
    Good,
    Attainment,
    UserTokens,
    OutputLength,
    InputLength,
    Stalls,
    TurnsLost,
    UsageOdd,
    FinishStop,
    FinishLength,
    FinishTool,
    FinishOther,
    TokensEstimated,
}

const FIGURES: [(Name, &str, OwnKind, &str); 24] = [
    (Name::Ttft, "ttft", OwnKind::Trend, "ms"),
    (Name::TtftSent, "ttft_sent", OwnKind::Trend, "ms"),
    (Name::TtftContent, "ttft_content", OwnKind::Trend, "ms"),
    (Name::TtftFirstTurn, "ttft_first_turn", OwnKind::Trend, "ms"),
    (Name::TtftLaterTurns, "ttft_later_turns", OwnKind::Trend, "ms"),
    (Name::Tpot, "tpot", OwnKind::Trend, "ms"),
    (Name::Itl, "itl", OwnKind::Trend, "ms"),
    (Name::ChunkGap, "chunk_gap", OwnKind::Trend, "ms"),
    (Name::OutputTokens, "output_tokens", OwnKind::Counter, "tokens"),
    (Name::InputTokens, "input_tokens", OwnKind::Counter, "tokens"),
    (Name::CachedTokens, "cached_tokens", OwnKind::Counter, "tokens"),
    (Name::Good, "goodput", OwnKind::Counter, "answers"),
    (Name::Attainment, "attainment", OwnKind::Rate, ""),
    (Name::UserTokens, "user_tokens", OwnKind::Trend, "tokens/s"),
    (Name::OutputLength, "output_length", OwnKind::Trend, "tokens"),
    (Name::InputLength, "input_length", OwnKind::Trend, "tokens"),
    (Name::Stalls, "stalls", OwnKind::Counter, ""),
    (Name::TurnsLost, "turns_lost", OwnKind::Counter, "turns"),
    (Name::UsageOdd, "usage_odd", OwnKind::Counter, "answers"),
    (Name::FinishStop, "finish_stop", OwnKind::Counter, ""),
    (Name::FinishLength, "finish_length", OwnKind::Counter, ""),
    (Name::FinishTool, "finish_tool", OwnKind::Counter, ""),
    (Name::FinishOther, "finish_other", OwnKind::Counter, ""),
    (Name::TokensEstimated, "tokens_estimated", OwnKind::Rate, ""),
];

/// Those that only the whole report shows.
const MINOR: [&str; 8] = [
    "ttft_sent",
    "chunk_gap",
    "user_tokens",
    "input_length",
    "finish_stop",
    "finish_length",
    "finish_tool",
    "finish_other",
];

/// Those that only conversations have.
const OF_TURNS: [&str; 3] = ["ttft_first_turn", "ttft_later_turns", "turns_lost"];

/// What of a run decides on its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FigureTerms {
    /// There are objectives: a report begins with how many answers met them.
    pub has_objectives: bool,
    /// Requests are turns of conversations.
    pub has_turns: bool,
    /// No prompt begins as another does, so that none of their tokens should be in a cache.
    pub prompts_differ: bool,
}

/// Warnings on figures: a figure, the figure that it is a share of, the least share in percent, and the sentence.
const REMARKS: [(&str, &str, u32, &str); 2] = [
    (
        "cached_tokens",
        "input_tokens",
        5,
        "of the prompts' tokens were in the server's cache, though prompts share nothing (its own template may be in front of all, or another \
         load sends the same): ttft is that of a warm cache",
    ),
    (
        "usage_odd",
        "output_length",
        1,
        "of the answers have a usage that does not fit their text: no tokens, or more tokens than bytes (tokens that nobody sees, or a \
         count that is wrong); their figures of tokens are estimates",
    ),
];

/// The figures for thresholds.
pub fn declared(terms: FigureTerms) -> Vec<DeclaredFigure> {
    let FigureTerms { has_objectives, has_turns, prompts_differ } = terms;
    let remark = |name: &str| {
        let (_, of, from_percent, message) = REMARKS.iter().find(|(figure, ..)| *figure == name)?;
        let applies = prompts_differ || name != "cached_tokens";
        let (of, message) = ((*of).to_owned(), (*message).to_owned());
        applies.then_some(DeclaredRemark { of, from_percent: *from_percent, message })
    };
    let one = |(_, name, kind, unit): &(Name, &str, OwnKind, &str)| DeclaredFigure {
        leads: matches!(*name, "ttft" | "output_tokens") || has_objectives && *name == "attainment",
        drawn: matches!(*name, "ttft" | "itl" | "output_tokens" | "goodput") || has_objectives && *name == "attainment",
        has_knee: *name == "goodput",
        minor: MINOR.contains(name),
        remark: remark(name),
        ..DeclaredFigure::new(name, *kind, unit)
    };
    FIGURES.iter().filter(|(_, name, ..)| has_turns || !OF_TURNS.contains(name)).map(one).collect()
}

/// An event of an answer, which waits for the end.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    /// From the event before, in nanoseconds; 0 of the first.
    gap_ns: u64,
    bytes: u32,
    /// The server's count up to here.
    output: Option<u32>,
    is_within: bool,
}

/// An answer that goes on.
#[derive(Debug, Default)]
struct Flow {
    chunks: Vec<Chunk>,
    first_due_ns: u64,
    /// From due to sent.
    sent_ns: u64,
    first_at_ns: u64,
    last_at_ns: u64,
    has_other_text: bool,
    has_content: bool,
    /// Tokens counted so far within the measured time, before the answer's own count was known.
    counted: f64,
}

impl Flow {
    /// The answer by itself, with these tokens in its events.
    fn timeline(&self, chosen: &str, tokens: &[u64], reading: &Reading) -> CallTimeline {
        let (mut at_ns, mut so_far) = (self.first_due_ns, 0);
        let place = |(chunk, tokens): (&Chunk, &u64)| {
            at_ns += chunk.gap_ns;
            so_far += tokens;
            (at_ns, so_far)
        };
        let call = CallTimeline {
            chosen: chosen.to_owned(),
            unit: "tokens".to_owned(),
            sent_ns: self.sent_ns,
            places: self.chunks.iter().zip(tokens).map(place).collect(),
            ended_ns: reading.after_due_ns,
        };
        call.thinned()
    }
}

/// The figures since they were last taken, in the order of [`FIGURES`].
struct Recorded(Vec<OwnFigures>);

impl Recorded {
    fn new() -> Self {
        Self(FIGURES.iter().map(|(_, _, kind, unit)| OwnFigures::new(*kind, unit)).collect())
    }

    fn record(&mut self, name: Name, value: f64, times: u64, at_ns: u64) {
        if let Some(figure) = self.0.get_mut(name as usize) {
            figure.record_times(value, times, at_ns);
        }
    }

    /// A time that would have been at least as long.
    fn record_bound_ns(&mut self, name: Name, least_ns: u64) {
        if let Some(figure) = self.0.get_mut(name as usize) {
            figure.record_bound(least_ns as f64 / 1e6);
        }
    }

    fn record_ns(&mut self, name: Name, ns: u64, at_ns: u64) {
        self.record(name, ns as f64 / 1e6, 1, at_ns);
    }
}

/// Measures the answers of one worker.
pub struct TokenMeter {
    flows: ByNumber<Flow>,
    recorded: Recorded,
    objectives: Objectives,
    /// Further objectives, and how many requests met them, by the names of their figures.
    shares: Vec<(String, Objectives, OwnFigures)>,
    /// All gaps so far, and what is a stall by them, in nanoseconds.
    gaps: Histogram,
    stall_ns: u64,
    /// Tokens an event so far: of answers that were counted, tokens and events.
    tokens: f64,
    events: f64,
    /// Turns of conversations that were lost, if requests are turns.
    lost: Option<Lost>,
    /// The answers that are shown one by one: this worker's since they were last taken, and those of all workers.
    timelines: Timelines,
    shared_timelines: SharedTimelines,
}

impl TokenMeter {
    /// A meter with these objectives of answers.
    pub fn new(objectives: Objectives) -> Self {
        Self {
            flows: ByNumber::default(),
            recorded: Recorded::new(),
            objectives,
            shares: Vec::new(),
            gaps: Histogram::default(),
            stall_ns: u64::MAX,
            tokens: 0.0,
            events: 0.0,
            lost: None,
            timelines: Timelines::default(),
            shared_timelines: SharedTimelines::default(),
        }
    }

    /// The same meter for turns of conversations, of which so many are lost.
    #[must_use]
    pub fn of_turns(self, lost: &Lost) -> Self {
        Self { lost: Some(Lost::clone(lost)), ..self }
    }

    /// The same meter, which chooses answers that are shown one by one.
    #[must_use]
    pub fn choosing(self, timelines: &SharedTimelines) -> Self {
        Self { shared_timelines: SharedTimelines::clone(timelines), ..self }
    }

    /// The same, with the shares of requests that met these objectives, by the names of their figures.
    #[must_use]
    pub fn with_shares(mut self, shares: &[(String, Objectives)]) -> Self {
        let share =
            |(name, objectives): &(String, Objectives)| (name.clone(), *objectives, OwnFigures::new(OwnKind::Rate, ""));
        self.shares = shares.iter().map(share).collect();
        self
    }

    /// The tokens that an event has, as far as is known before the end.
    fn usual(&self) -> f64 {
        if self.events > 0.0 { self.tokens / self.events } else { 1.0 }
    }

    /// The answer's tokens, by event; and whether the server has counted them.
    fn deal(&self, flow: &Flow, ended: &Ended) -> (Vec<u64>, bool) {
        let chunks = &flow.chunks;
        if chunks.iter().all(|chunk| chunk.output.is_some()) && !chunks.is_empty() {
            let mut before = 0;
            let count = |chunk: &Chunk| {
                let so_far = u64::from(chunk.output.unwrap_or(0));
                let tokens = so_far.saturating_sub(before);
                before = before.max(so_far);
                tokens
            };
            return (chunks.iter().map(count).collect(), true);
        }
        let is_counted = ended.usage.output.is_some();
        let all = ended.usage.output.map_or_else(|| self.usual() * chunks.len() as f64, f64::from).max(1.0).round();
        if all as usize == chunks.len() {
            return (vec![1; chunks.len()], is_counted);
        }
        let bytes: f64 = chunks.iter().map(|chunk| f64::from(chunk.bytes.max(1))).sum();
        let (mut so_far, mut before) = (0.0, 0.0_f64);
        let share = |chunk: &Chunk| {
            so_far += f64::from(chunk.bytes.max(1));
            // The first event has text, and the first token with it.
            let dealt = (all * so_far / bytes).round().max(1.0);
            let tokens = dealt - before;
            before = dealt;
            tokens.max(0.0) as u64
        };
        (chunks.iter().map(share).collect(), false)
    }

    /// Whether the usage of an answer does not fit its text. One without tokens is not believed, and left out.
    fn doubt(flow: Option<&mut Flow>, ended: &mut Ended) -> bool {
        let Some(output) = ended.usage.output else { return false };
        let is_streamed = flow.is_some();
        let of_events = |flow: &&mut Flow| flow.chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum::<u64>();
        let bytes = flow.as_ref().map_or(u64::from(ended.bytes), of_events);
        if output == 0 && bytes > 0 {
            ended.usage.output = None;
            flow.into_iter().flat_map(|flow| &mut flow.chunks).for_each(|chunk| chunk.output = None);
            return true;
        }
        // Of a whole answer not all text is known.
        is_streamed && u64::from(output) > bytes + UNSEEN
    }

    /// An answer with events has ended; its count is believed, and no guess for others if it `is_odd`. Returns the mean time for a token after the first event, in nanoseconds.
    fn settle(&mut self, flow: &Flow, ended: &Ended, is_odd: bool, reading: &Reading) -> Option<u64> {
        let (tokens, is_counted) = self.deal(flow, ended);
        let all: u64 = tokens.iter().sum();
        let within: u64 =
            tokens.iter().zip(&flow.chunks).filter(|(_, chunk)| chunk.is_within).map(|(tokens, _)| tokens).sum();
        // What was counted as it came is put right.
        let correction = within as f64 - flow.counted;
        if correction != 0.0 {
            self.recorded.record(Name::OutputTokens, correction, 1, reading.at_ns);
        }
        // What other answers have for a guess is not taken from a count that may be wrong.
        if ended.usage.output.is_some() && !is_odd {
            self.tokens += all as f64;
            self.events += flow.chunks.len() as f64;
        }
        let first = tokens.first().copied().unwrap_or(0).max(1);
        let later = all.saturating_sub(first);
        let between_ns = flow.last_at_ns.saturating_sub(flow.first_at_ns);
        let tpot_ns = (later > 0).then(|| between_ns as f64 / later as f64);
        if reading.counts {
            self.recorded.record(Name::TokensEstimated, if is_counted { 0.0 } else { all as f64 }, all, reading.at_ns);
            let mut gap_ns = 0;
            for (tokens, chunk) in tokens.iter().zip(&flow.chunks).skip(1) {
                gap_ns += chunk.gap_ns;
                if *tokens > 0 {
                    self.recorded.record(Name::Itl, gap_ns as f64 / *tokens as f64 / 1e6, *tokens, reading.at_ns);
                    gap_ns = 0;
                }
            }
            if let Some(tpot_ns) = tpot_ns {
                self.recorded.record(Name::Tpot, tpot_ns / 1e6, 1, reading.at_ns);
                if between_ns > 0 {
                    self.recorded.record(Name::UserTokens, 1e9 / tpot_ns, 1, reading.at_ns);
                }
            }
        }
        if reading.counts && !tokens.is_empty() {
            self.timelines.consider(flow.first_due_ns, reading.at_ns, |chosen| flow.timeline(chosen, &tokens, reading));
        }
        tpot_ns.map(|tpot_ns| tpot_ns as u64)
    }

    /// What an answer that was a success says of itself.
    fn answered(&mut self, ended: &Ended, events: usize, reading: &Reading) {
        if reading.is_within {
            if let Some(input) = ended.usage.input {
                self.recorded.record(Name::InputTokens, f64::from(input), 1, reading.at_ns);
            }
            if let Some(cached) = ended.usage.cached {
                self.recorded.record(Name::CachedTokens, f64::from(cached), 1, reading.at_ns);
            }
            // An answer that came whole came at its end.
            if let (0, Some(output)) = (events, ended.usage.output) {
                self.recorded.record(Name::OutputTokens, f64::from(output), 1, reading.at_ns);
            }
        }
        if !reading.counts {
            return;
        }
        if let Some(input) = ended.usage.input {
            self.recorded.record(Name::InputLength, f64::from(input), 1, reading.at_ns);
        }
        let output = ended.usage.output.map_or((self.usual() * events as f64).round(), f64::from);
        self.recorded.record(Name::OutputLength, output, 1, reading.at_ns);
        let finish = match ended.finish {
            Some(Finish::Stop) => Name::FinishStop,
            Some(Finish::Length) => Name::FinishLength,
            Some(Finish::Tool) => Name::FinishTool,
            Some(Finish::Other) | None => Name::FinishOther,
        };
        self.recorded.record(finish, 1.0, 1, reading.at_ns);
    }
}

impl Meter for TokenMeter {
    fn message(&mut self, reading: &Reading, parts: AnswerParts<'_>) {
        let Some(said) = facts::read_message(parts.body) else { return };
        let usual = self.usual();
        let flow = self.flows.entry(reading.call).or_default();
        let at = reading.at_ns;
        let is_first = flow.first_at_ns == 0;
        let gap_ns = if is_first { 0 } else { at.saturating_sub(flow.last_at_ns) };
        if is_first {
            flow.first_at_ns = at.max(1);
            flow.first_due_ns = reading.after_due_ns;
            flow.sent_ns = reading.after_due_ns.saturating_sub(reading.after_sent_ns.unwrap_or(0));
        }
        flow.last_at_ns = at.max(flow.last_at_ns);
        if reading.counts {
            if is_first {
                self.recorded.record_ns(Name::Ttft, reading.after_due_ns, at);
                if self.lost.is_some() {
                    let name = if said.is_later { Name::TtftLaterTurns } else { Name::TtftFirstTurn };
                    self.recorded.record_ns(name, reading.after_due_ns, at);
                }
                self.recorded.record_ns(Name::TtftSent, reading.after_sent_ns.unwrap_or(reading.after_due_ns), at);
            } else {
                self.recorded.record_ns(Name::ChunkGap, gap_ns, at);
                self.gaps.record(gap_ns);
                if gap_ns > self.stall_ns {
                    self.recorded.record(Name::Stalls, 1.0, 1, at);
                }
            }
            if said.kind == TextKind::Content && !flow.has_content && flow.has_other_text {
                self.recorded.record_ns(Name::TtftContent, reading.after_due_ns, at);
            }
        }
        flow.has_content |= said.kind == TextKind::Content;
        flow.has_other_text |= said.kind != TextKind::Content;
        let before = flow.chunks.last().and_then(|chunk| chunk.output).unwrap_or(0);
        let tokens = said.output.map_or(usual, |output| f64::from(output.saturating_sub(before)));
        if reading.is_within {
            flow.counted += tokens;
            self.recorded.record(Name::OutputTokens, tokens, 1, at);
        }
        let chunk = Chunk { gap_ns, bytes: said.bytes, output: said.output, is_within: reading.is_within };
        if flow.chunks.len() < MOST_EVENTS {
            flow.chunks.push(chunk);
        } else if let Some(last) = flow.chunks.last_mut() {
            // Beyond the limit events join the last one.
            last.gap_ns += chunk.gap_ns;
            last.bytes = last.bytes.saturating_add(chunk.bytes);
            last.output = chunk.output.or(last.output);
            last.is_within &= chunk.is_within;
        }
    }

    fn ended(&mut self, reading: &Reading, end: MeteredEnd<'_>) {
        let mut flow = self.flows.remove(&reading.call);
        let mut ended = match end {
            MeteredEnd::Answered { parts, .. } => facts::read_end(parts.body),
            MeteredEnd::Failed(_) | MeteredEnd::CutShort | MeteredEnd::Unsent => Ended::default(),
        };
        let is_ok = matches!(end, MeteredEnd::Answered { ok: true, .. });
        let is_odd = is_ok && Self::doubt(flow.as_mut(), &mut ended);
        if is_odd && reading.counts {
            self.recorded.record(Name::UsageOdd, 1.0, 1, reading.at_ns);
        }
        let tpot_ns = flow.as_ref().and_then(|flow| self.settle(flow, &ended, is_odd, reading));
        if is_ok {
            self.answered(&ended, flow.as_ref().map_or(0, |flow| flow.chunks.len()), reading);
        }
        // It would have come later, if at all.
        let waited_in_vain = matches!(end, MeteredEnd::CutShort | MeteredEnd::Failed(_));
        if flow.is_none() && waited_in_vain && reading.counts && reading.after_sent_ns.is_some() {
            self.recorded.record_bound_ns(Name::Ttft, reading.after_due_ns);
        }
        let times = Times {
            ttft_ns: flow.as_ref().map(|flow| flow.first_due_ns).or(Some(reading.after_due_ns)),
            tpot_ns,
            latency_ns: reading.after_due_ns,
        };
        let is_good = is_ok && self.objectives.are_met(&times);
        if reading.counts && end != MeteredEnd::Unsent {
            self.recorded.record(Name::Attainment, f64::from(u8::from(is_good)), 1, reading.at_ns);
            for (_, objectives, share) in &mut self.shares {
                share.record(f64::from(u8::from(is_ok && objectives.are_met(&times))), reading.at_ns);
            }
        }
        if is_good && reading.is_within {
            self.recorded.record(Name::Good, 1.0, 1, reading.at_ns);
        }
    }

    fn take(&mut self, second: &MeteredSecond, add: &mut dyn FnMut(&str, &OwnFigures)) {
        self.recorded.record(Name::Attainment, 0.0, second.unsent, second.ends_ns);
        lock(&self.shared_timelines).merge(std::mem::take(&mut self.timelines));
        // Whichever worker asks first records them.
        let lost = self.lost.as_ref().map_or(0, |lost| lost.swap(0, Ordering::Relaxed));
        if lost > 0 {
            self.recorded.record(Name::TurnsLost, lost as f64, 1, second.ends_ns);
        }
        for (name, _, share) in &mut self.shares {
            share.record_times(0.0, second.unsent, second.ends_ns);
            if share.count > 0 {
                add(name, share);
                *share = OwnFigures::new(OwnKind::Rate, "");
            }
        }
        if self.gaps.count() >= FEWEST_GAPS {
            self.stall_ns = self.gaps.quantile(0.5).unwrap_or(u64::MAX).max(1).saturating_mul(STALL);
        }
        for ((_, name, kind, unit), figure) in FIGURES.iter().zip(&mut self.recorded.0) {
            if figure.count > 0 {
                add(name, figure);
                *figure = OwnFigures::new(*kind, unit);
            }
        }
    }
}

#[cfg(test)]
mod tests;
