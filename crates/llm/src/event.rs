//! One event of a streamed answer, and a whole answer: what each dialect says of text, tokens and the end.
//!
//! The shapes are those of the documentation of OpenAI's chat completions and completions, Anthropic's messages with their streaming
//! events, and Ollama's `/api/chat` and `/api/generate`. Servers that imitate OpenAI (`vLLM`, `SGLang`, TGI, llama.cpp, LM Studio)
//! add fields; fields that are not known are passed over without being kept.

use std::fmt;

use serde::de::{Error, IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What kind of text an event adds to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// What the model thinks before it answers.
    Reasoning,
    /// The answer.
    Content,
    /// A call of a tool.
    Tool,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finish {
    /// By itself.
    Stop,
    /// At the limit of tokens.
    Length,
    /// To have a tool called.
    Tool,
    /// Something else, such as a filter of content.
    Other,
}

/// Tokens as a server counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub input: Option<u32>,
    /// Of the answer so far.
    pub output: Option<u32>,
    /// Of the prompt, those that were there already.
    pub cached: Option<u32>,
}

impl Usage {
    /// Takes what `later` knows.
    pub fn update(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.cached = later.cached.or(self.cached);
    }
}

/// What one event says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Event {
    /// The text that it adds, and how many bytes; without text it is none of the answer's.
    pub text: Option<(TextKind, u32)>,
    /// Why the model stopped, if it says so.
    pub finish: Option<Finish>,
    /// Tokens.
    pub usage: Usage,
    /// Whether it is the last event of its dialect.
    pub is_last: bool,
    /// Whether it says that the server has failed.
    pub is_error: bool,
}

/// An event's JSON, in any dialect of OpenAI's kind.
#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Counts>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    /// Of a stream of chat.
    #[serde(default)]
    delta: Option<Delta>,
    /// Of a whole answer of chat.
    #[serde(default)]
    message: Option<Delta>,
    /// Of completions.
    #[serde(default)]
    text: Option<Length>,
    #[serde(default)]
    finish_reason: Option<Finish>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<Length>,
    /// `reasoning_content` of `DeepSeek` and vLLM, `reasoning` of `OpenRouter` and newer servers.
    #[serde(default)]
    reasoning_content: Option<Length>,
    #[serde(default)]
    reasoning: Option<Length>,
    #[serde(default)]
    refusal: Option<Length>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<Length>,
    #[serde(default)]
    arguments: Option<Length>,
}

/// Token counts by the names of OpenAI and of Anthropic.
#[derive(Deserialize, Default)]
struct Counts {
    #[serde(default, alias = "input_tokens")]
    prompt_tokens: Option<u32>,
    #[serde(default, alias = "output_tokens")]
    completion_tokens: Option<u32>,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
    #[serde(default)]
    cache_read_input_tokens: Option<u32>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

impl Counts {
    fn usage(&self) -> Usage {
        let cached = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        // Anthropic counts what it read from its cache, and wrote into it, apart from the other tokens of a prompt.
        let apart = [self.cache_read_input_tokens, self.cache_creation_input_tokens];
        let apart = apart.into_iter().flatten().fold(0, u32::saturating_add);
        Usage {
            input: self.prompt_tokens.map(|tokens| tokens.saturating_add(apart)),
            output: self.completion_tokens,
            cached: cached.or(self.cache_read_input_tokens),
        }
    }
}

/// A line of Ollama.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default, borrow)]
    message: Option<Said<'a>>,
    #[serde(default)]
    response: Option<Length>,
    #[serde(default)]
    thinking: Option<Length>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<Finish>,
    #[serde(default)]
    prompt_eval_count: Option<u32>,
    #[serde(default)]
    eval_count: Option<u32>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(default)]
    content: Option<Length>,
    #[serde(default)]
    thinking: Option<Length>,
    /// Calls come whole, with their arguments as JSON.
    #[serde(default, borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
}

/// An event of Anthropic's, or its whole message.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type", default)]
    kind: Kind,
    #[serde(default)]
    message: Option<Start>,
    #[serde(default)]
    delta: Option<PartDelta>,
    #[serde(default)]
    content: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<Finish>,
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct PartDelta {
    #[serde(default)]
    text: Option<Length>,
    #[serde(default)]
    thinking: Option<Length>,
    #[serde(default)]
    partial_json: Option<Length>,
    #[serde(default)]
    stop_reason: Option<Finish>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    text: Option<Length>,
    #[serde(default)]
    thinking: Option<Length>,
}

/// The length of a text in bytes; the text itself is kept nowhere.
#[derive(Debug, Clone, Copy)]
struct Length(u32);

/// What tells the events of Anthropic apart that matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Usual,
    Error,
    Stop,
}

/// Reads a text by this function, without a copy of it.
struct ByText<T>(fn(&str) -> T);

impl<T> Visitor<'_> for ByText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok((self.0)(text))
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ByText(|text| Self(u32::try_from(text.len()).unwrap_or(u32::MAX))))
    }
}

impl<'de> Deserialize<'de> for Finish {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ByText(finish))
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ByText(|text| match text {
            "error" => Self::Error,
            "message_stop" => Self::Stop,
            _ => Self::Usual,
        }))
    }
}

/// The length of a text that is there and not empty.
fn length(text: Option<Length>) -> Option<u32> {
    text.map(|text| text.0).filter(|bytes| *bytes > 0)
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" | "end_turn" | "stop_sequence" | "eos_token" | "eos" => Finish::Stop,
        "length" | "max_tokens" => Finish::Length,
        "tool_calls" | "function_call" | "tool_use" => Finish::Tool,
        _ => Finish::Other,
    }
}

/// The first of these texts that is there.
fn first(texts: [(TextKind, Option<u32>); 3]) -> Option<(TextKind, u32)> {
    texts.into_iter().find_map(|(kind, bytes)| Some((kind, bytes?)))
}

/// Reads an event, or a whole answer, of OpenAI's chat completions or completions. `None` if it is not JSON of that shape.
pub fn of_openai(data: &[u8]) -> Option<Event> {
    if data == b"[DONE]" {
        return Some(Event { is_last: true, ..Event::default() });
    }
    let read: Completion = serde_json::from_slice(data).ok()?;
    let mut event = Event { is_error: read.error.is_some(), ..Event::default() };
    if let Some(choice) = read.choices.first() {
        let said = choice.delta.as_ref().or(choice.message.as_ref());
        let tools = said.and_then(|said| {
            let calls = said.tool_calls.as_deref()?.iter().filter_map(|call| call.function.as_ref());
            let bytes = calls.map(|of| length(of.name).unwrap_or(0) + length(of.arguments).unwrap_or(0)).sum();
            Some(bytes).filter(|bytes: &u32| *bytes > 0)
        });
        let thought = said.and_then(|said| length(said.reasoning_content.or(said.reasoning)));
        let content = said.and_then(|said| length(said.content).or_else(|| length(said.refusal)));
        let content = content.or_else(|| length(choice.text));
        event.text = first([(TextKind::Content, content), (TextKind::Reasoning, thought), (TextKind::Tool, tools)]);
        event.finish = choice.finish_reason;
    }
    event.usage = read.usage.map(|counts| counts.usage()).unwrap_or_default();
    Some(event)
}

/// Reads an event of Anthropic's Messages API; `None` if it is no JSON.
pub fn of_anthropic(data: &[u8]) -> Option<Event> {
    let read: Part = serde_json::from_slice(data).ok()?;
    let mut event = Event {
        is_error: read.kind == Kind::Error,
        is_last: read.kind == Kind::Stop,
        usage: read.usage.map(|counts| counts.usage()).unwrap_or_default(),
        finish: read.stop_reason,
        ..Event::default()
    };
    if let Some(counts) = read.message.and_then(|start| start.usage) {
        event.usage.update(counts.usage());
    }
    if let Some(delta) = &read.delta {
        event.text = first([
            (TextKind::Content, length(delta.text)),
            (TextKind::Reasoning, length(delta.thinking)),
            (TextKind::Tool, length(delta.partial_json)),
        ]);
        event.finish = delta.stop_reason.or(event.finish);
    }
    if let Some(block) = read.content.first() {
        event.text = first([
            (TextKind::Content, length(block.text)),
            (TextKind::Reasoning, length(block.thinking)),
            (TextKind::Tool, Some(1)),
        ]);
    }
    Some(event)
}

/// The same of a line of Ollama.
pub fn of_ollama(data: &[u8]) -> Option<Event> {
    let read: Line<'_> = serde_json::from_slice(data).ok()?;
    let said = read.message.as_ref();
    let content = said.and_then(|said| length(said.content)).or_else(|| length(read.response));
    let thought = said.and_then(|said| length(said.thinking)).or_else(|| length(read.thinking));
    let tools = said
        .and_then(|said| said.tool_calls.as_ref())
        .map(|calls| calls.iter().map(|call| call.get().len()).sum::<usize>());
    let tools = tools.and_then(|bytes| u32::try_from(bytes).ok()).filter(|bytes| *bytes > 0);
    Some(Event {
        text: first([(TextKind::Content, content), (TextKind::Reasoning, thought), (TextKind::Tool, tools)]),
        finish: read.done.then(|| read.done_reason.unwrap_or(Finish::Stop)),
        usage: Usage { input: read.prompt_eval_count, output: read.eval_count, cached: None },
        is_last: read.done,
        is_error: read.error.is_some(),
    })
}
