//! What the model is asked to be.

use std::path::PathBuf;
use std::time::Duration;

pub use super::plan::Speed;
use super::request::MOST_TOKENS;

/// A simulated language model. [`ModelConfig::default`] reads 20,000 prompt tokens a second, writes 50, and does nothing wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Its name.
    pub model: String,
    /// How fast it is.
    pub speed: Speed,
    /// Requests that are decoded at once; later ones wait, first come, first served. 1 to 65,536.
    pub slots: usize,
    /// The most that wait; any more are refused with 429. `None` for any number.
    pub queue: Option<usize>,
    /// Whether tokens of a prompt that begins as an earlier one did need no prefill.
    pub prefix_cache: bool,
    /// Tokens that a template adds to each chat prompt.
    pub template_tokens: u64,
    /// What answers are.
    pub answers: Answers,
    /// What goes wrong.
    pub faults: Faults,
    /// What streams lack, and have besides.
    pub quirks: Quirks,
    /// The key that requests must have.
    pub api_key: Option<String>,
    /// A file with a line for each request that has ended.
    pub log: Option<PathBuf>,
    /// A file with a line for each event with tokens.
    pub message_log: Option<PathBuf>,
}

/// The answers of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answers {
    /// Tokens of an answer that no limit cuts short. 1 to 131,072.
    pub tokens: u64,
    /// How many tokens, the first of each answer, are reasoning.
    pub reasoning: u64,
    /// Tokens that an event carries. 1 to 1,000.
    pub per_chunk: u64,
    /// Events that leave together, when the last is ready. 1 to 1,000.
    pub burst: u64,
}

/// Faults, by the share of requests that have them; 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Refused at once.
    pub refuse: f64,
    /// The status of those: 429 or 503.
    pub refuse_status: u16,
    /// An error behind some tokens.
    pub error_in_stream: f64,
    /// The connection ends behind some tokens.
    pub cut: f64,
    /// A pause of this length between two chunks.
    pub stall: Option<(Duration, f64)>,
}

/// Peculiarities of streams that servers have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quirks {
    /// The message that ends a stream is missing: `[DONE]`, `message_stop`, the line with `"done": true`.
    pub no_done: bool,
    /// No answer tells its usage.
    pub no_usage: bool,
    /// A comment this often until the first token.
    pub comments: Option<Duration>,
    /// Fields of bodies that are refused with 400, as by servers that do not know them.
    pub reject: Vec<String>,
    /// Events carry the times of the request and of themselves.
    pub stamps: bool,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            model: "brunt-sim".to_owned(),
            speed: Speed { prefill: 20_000.0, decode: 50.0 },
            slots: 64,
            queue: None,
            prefix_cache: false,
            template_tokens: 0,
            answers: Answers { tokens: 128, reasoning: 0, per_chunk: 1, burst: 1 },
            faults: Faults { refuse: 0.0, refuse_status: 429, error_in_stream: 0.0, cut: 0.0, stall: None },
            quirks: Quirks::default(),
            api_key: None,
            log: None,
            message_log: None,
        }
    }
}

impl ModelConfig {
    /// The first figure that makes no sense, as what it is, what was expected and what it was.
    pub(crate) fn wrong(&self) -> Option<(&'static str, &'static str, String)> {
        let rates = [("prefill", self.speed.prefill), ("decode", self.speed.decode)];
        let rate = rates.into_iter().find(|(_, rate)| !(0.001..=1e9).contains(rate));
        let shares = [
            ("refuse", self.faults.refuse),
            ("error in stream", self.faults.error_in_stream),
            ("cut", self.faults.cut),
            ("stall", self.faults.stall.map_or(0.0, |(_, share)| share)),
        ];
        let share = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share));
        let counts = [
            ("slots", self.slots as u64, 1..=65_536, "1 to 65536"),
            ("template tokens", self.template_tokens, 0..=MOST_TOKENS, "at most 131072"),
            ("answer tokens", self.answers.tokens, 1..=MOST_TOKENS, "1 to 131072"),
            ("tokens per chunk", self.answers.per_chunk, 1..=1000, "1 to 1000"),
            ("burst", self.answers.burst, 1..=1000, "1 to 1000"),
        ];
        let count = counts.into_iter().find(|(_, count, range, _)| !range.contains(count));
        let stall = self.faults.stall.map(|(length, _)| length).filter(|length| *length > crate::service::MAX_DELAY);
        let comments = self.quirks.comments.filter(|period| *period < Duration::from_millis(1));
        let is_named = !self.model.is_empty();
        rate.map(|(name, rate)| (name, "0.001 to 1e9 tokens a second", rate.to_string()))
            .or_else(|| share.map(|(name, share)| (name, "a share from 0 to 1", share.to_string())))
            .or_else(|| count.map(|(name, count, _, expected)| (name, expected, count.to_string())))
            .or_else(|| stall.map(|length| ("stall", "at most 1 hour", format!("{length:?}"))))
            .or_else(|| comments.map(|period| ("comments", "at least 1ms", format!("{period:?}"))))
            .or_else(|| (!is_named).then(|| ("model", "a name", "none".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_make_no_sense_are_named() {
        let ok = ModelConfig::default();
        assert_eq!(ok.wrong(), None);
        let name = |config: ModelConfig| config.wrong().unwrap().0;
        assert_eq!(name(ModelConfig { speed: Speed { prefill: 0.0, ..ok.speed }, ..ok.clone() }), "prefill");
        assert_eq!(name(ModelConfig { speed: Speed { decode: f64::NAN, ..ok.speed }, ..ok.clone() }), "decode");
        assert_eq!(name(ModelConfig { faults: Faults { cut: 1.5, ..ok.faults }, ..ok.clone() }), "cut");
        assert_eq!(name(ModelConfig { slots: 0, ..ok.clone() }), "slots");
        assert_eq!(name(ModelConfig { answers: Answers { burst: 0, ..ok.answers }, ..ok.clone() }), "burst");
        assert_eq!(name(ModelConfig { model: String::new(), ..ok.clone() }), "model");
        let quirks = Quirks { comments: Some(Duration::ZERO), ..Quirks::default() };
        assert_eq!(name(ModelConfig { quirks, ..ok.clone() }), "comments");
        let stall = Some((Duration::MAX, 0.1));
        assert_eq!(name(ModelConfig { faults: Faults { stall, ..ok.faults }, ..ok }), "stall");
    }
}
