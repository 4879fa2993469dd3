//! The flags of `brunt serve llm`.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use brunt_plan::units;
use brunt_testbed::llm::{Answers, Faults, ModelConfig, Quirks, Speed};
use clap::Args;

use crate::args::values;
use crate::files;

/// What the end of the help says.
pub const FORMULAS: &str = "\
A token of a prompt is a word of its texts; tokens of answers are the words w1, w2, …
  start    when the request has come whole, or when a slot is free for it
  token k  start + uncached prompt tokens / prefill + (k - 1) / decode
It answers GET /v1/models and /health, and POST
  /v1/chat/completions, /v1/completions   OpenAI
  /v1/messages                            Anthropic
  /api/chat, /api/generate                Ollama
brunt help target has all of it";

/// What the model is.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Flags {
    /// The model's name
    #[arg(long, value_name = "NAME", default_value = "brunt-sim")]
    pub model: String,
    /// Prompt tokens that each request reads a second
    #[arg(long, value_name = "N", value_parser = rate, default_value = "20000")]
    pub prefill: f64,
    /// Tokens that each answer has a second
    #[arg(long, value_name = "N", value_parser = rate, default_value = "50")]
    pub decode: f64,
    /// Requests decoded at once; later ones wait in line
    #[arg(long, value_name = "N", value_parser = values::servers, default_value = "64")]
    pub slots: u32,
    /// The most requests in line; any more get 429 [default: no limit]
    #[arg(long, value_name = "N", value_parser = count)]
    pub queue: Option<u64>,
    /// Tokens of an answer that its request does not limit
    #[arg(long, value_name = "N", value_parser = count, default_value = "128")]
    pub answer_tokens: u64,
    /// Tokens that an event carries, sent with its last
    #[arg(long, value_name = "K", value_parser = count, default_value = "1")]
    pub tokens_per_chunk: u64,
    /// Beginnings of earlier prompts cost no time (blocks of 16 tokens)
    #[arg(long)]
    pub prefix_cache: bool,
    /// The first N tokens of each answer are reasoning
    #[arg(long, value_name = "N", value_parser = count, default_value = "0")]
    pub reasoning: u64,
    /// Tokens that a template adds to each chat prompt
    #[arg(long, value_name = "N", value_parser = count, default_value = "0")]
    pub template_tokens: u64,
    /// Events that leave in one segment, when the last is ready
    #[arg(long, value_name = "N", value_parser = count, default_value = "1")]
    pub burst: u64,
    /// The share refused with 429 at once, or with 503: 5%:503
    #[arg(long, value_name = "SHARE", value_parser = refusals, default_value = "0%")]
    pub refuse: (f64, u16),
    /// The share that get an error after some tokens
    #[arg(long, value_name = "SHARE", value_parser = values::ratio, default_value = "0%")]
    pub error_in_stream: f64,
    /// The share whose connection ends after some tokens
    #[arg(long, value_name = "SHARE", value_parser = values::ratio, default_value = "0%")]
    pub cut: f64,
    /// A pause between two chunks of a share: 2s:1%
    #[arg(long, value_name = "T:SHARE", value_parser = pause)]
    pub stall: Option<(Duration, f64)>,
    /// Streams lack their last message ([DONE], message_stop, "done": true)
    #[arg(long)]
    pub no_done: bool,
    /// No answer tells its usage
    #[arg(long)]
    pub no_usage: bool,
    /// Comments in events' streams this often until the first token [without a time: 1s]
    #[arg(long, value_name = "T", num_args = 0..=1, require_equals = true, default_missing_value = "1s",
          value_parser = values::positive_duration)]
    pub comments: Option<u64>,
    /// Refuse bodies that have this field with 400, as servers do that do not know it
    #[arg(long, value_name = "FIELD")]
    pub reject: Vec<String>,
    /// Requests need this key; @FILE reads it from a file
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,
    /// Events carry received_ns, due_ns and sent_ns, by the monotonic clock
    #[arg(long)]
    pub stamps: bool,
    /// Write a line of JSON for each request that has ended
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write a line REQUEST,NANOSECONDS,TOKENS for each event with tokens, when it is sent
    #[arg(long, value_name = "FILE")]
    pub message_log: Option<PathBuf>,
}

impl Flags {
    /// The model as the testbed has it.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn config(self) -> Result<ModelConfig> {
        for log in [&self.log, &self.message_log].into_iter().flatten() {
            files::check_writable(log)?;
        }
        Ok(ModelConfig {
            model: self.model,
            speed: Speed { prefill: self.prefill, decode: self.decode },
            slots: self.slots as usize,
            queue: self.queue.map(|most| most as usize),
            prefix_cache: self.prefix_cache,
            template_tokens: self.template_tokens,
            answers: Answers {
                tokens: self.answer_tokens,
                reasoning: self.reasoning,
                per_chunk: self.tokens_per_chunk,
                burst: self.burst,
            },
            faults: Faults {
                refuse: self.refuse.0,
                refuse_status: self.refuse.1,
                error_in_stream: self.error_in_stream,
                cut: self.cut,
                stall: self.stall,
            },
            quirks: Quirks {
                no_done: self.no_done,
                no_usage: self.no_usage,
                comments: self.comments.map(Duration::from_nanos),
                reject: self.reject,
                stamps: self.stamps,
            },
            api_key: self.api_key.map(key).transpose()?,
            log: self.log,
            message_log: self.message_log,
        })
    }
}

/// The key itself, or that of a file.
fn key(text: String) -> Result<String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text) };
    let key = std::fs::read_to_string(path).with_context(|| format!("--api-key: cannot read {path}"))?;
    let key = key.trim();
    ensure!(!key.is_empty(), "--api-key: {path} is empty");
    Ok(key.to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = units::parse_number(text).map_err(|e| e.to_string())?;
    if (0.001..=1e9).contains(&rate) { Ok(rate) } else { Err("expected tokens a second, from 0.001 to 1G".to_owned()) }
}

fn count(text: &str) -> Result<u64, String> {
    units::parse_count(text).map_err(|e| e.to_string())
}

/// `5%`, `5%:503`.
fn refusals(text: &str) -> Result<(f64, u16), String> {
    match text.split_once(':') {
        None => Ok((values::ratio(text)?, 429)),
        Some((share, "429")) => Ok((values::ratio(share)?, 429)),
        Some((share, "503")) => Ok((values::ratio(share)?, 503)),
        Some(_) => Err("expected a share, and 429 or 503 behind it, such as 5%:503".to_owned()),
    }
}

/// `2s:1%`.
fn pause(text: &str) -> Result<(Duration, f64), String> {
    let (length, share) = text.split_once(':').ok_or("expected a pause and the share that has it, such as 2s:1%")?;
    Ok((Duration::from_nanos(values::positive_duration(length)?), values::ratio(share)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_shares_with_what_they_do() {
        assert_eq!(refusals("5%"), Ok((0.05, 429)));
        assert_eq!(refusals("1:503"), Ok((1.0, 503)));
        assert!(refusals("5%:500").unwrap_err().contains("such as 5%:503"));
        assert_eq!(pause("2s:1%"), Ok((Duration::from_secs(2), 0.01)));
        assert!(pause("2s").unwrap_err().contains("such as 2s:1%"));
        assert!(pause("0s:1%").is_err() && pause("1s:200%").is_err());
        assert!(rate("0").is_err() && rate("33.5") == Ok(33.5));
    }
}
