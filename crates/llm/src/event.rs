//! One event of a streamed answer, and a whole answer: what each dialect says of text, tokens and the end.
//!
//! The shapes are those of the documentation of OpenAI's chat completions and completions, Anthropic's messages with their streaming
//! events, and Ollama's `/api/chat` and `/api/generate`. Servers that imitate OpenAI (`vLLM`, `SGLang`, TGI, llama.cpp, LM Studio)
//! add fields, and put some elsewhere; what is not known is passed over.

use crate::json::Json;

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
    /// The choices of the answer that it adds text to, by their bits.
    pub said_by: u64,
    /// The choices that it ends, likewise.
    pub ended: u64,
    /// Tokens.
    pub usage: Usage,
    /// Whether it is the last event of its dialect.
    pub is_last: bool,
    /// Whether it says that the server has failed.
    pub is_error: bool,
}

/// Bytes of text by their kinds.
#[derive(Debug, Clone, Copy, Default)]
struct Texts {
    content: u32,
    reasoning: u32,
    tool: u32,
}

impl Texts {
    /// All of it as one text, whose kind is that of what matters most.
    fn sum(self) -> Option<(TextKind, u32)> {
        let kinds =
            [(TextKind::Content, self.content), (TextKind::Reasoning, self.reasoning), (TextKind::Tool, self.tool)];
        let (kind, _) = kinds.into_iter().find(|(_, bytes)| *bytes > 0)?;
        Some((kind, kinds.into_iter().fold(0, |sum, (_, bytes)| sum.saturating_add(bytes))))
    }
}

/// What reads a field's value, or skips it; the text of an answer is appended to `reply`.
type Reply<'a> = Option<&'a mut String>;

/// Goes through the fields of an event, which is an object and nothing else.
fn object<'a>(data: &'a [u8], field: impl FnMut(&'a [u8], &mut Json<'a>) -> Option<()>) -> Option<()> {
    (data.is_ascii() || std::str::from_utf8(data).is_ok()).then_some(())?;
    data.trim_ascii_start().starts_with(b"{").then_some(())?;
    let mut json = Json::new(data);
    json.fields(field)?;
    json.has_ended().then_some(())
}

/// Adds the length of a text to a sum.
fn add(sum: &mut u32, bytes: Option<u32>) -> Option<()> {
    *sum = sum.saturating_add(bytes?);
    Some(())
}

/// Reads a reason to stop; an empty one counts as missing.
fn finish(json: &mut Json<'_>, reason: &mut Option<Finish>) -> Option<()> {
    *reason = Some(match json.word_of_text()? {
        b"" => return Some(()),
        b"stop" | b"end_turn" | b"stop_sequence" | b"eos_token" | b"eos" => Finish::Stop,
        b"length" | b"max_tokens" => Finish::Length,
        b"tool_calls" | b"function_call" | b"tool_use" => Finish::Tool,
        _ => Finish::Other,
    });
    Some(())
}

/// Token counts by the names of OpenAI and of Anthropic; some servers have both.
fn usage(json: &mut Json<'_>, usage: &mut Usage) -> Option<()> {
    let (mut prompt, mut input, mut output, mut cached) = (None, None, None, None);
    let (mut read, mut written) = (None, None);
    json.fields(|name, json| {
        let count = match name {
            b"prompt_tokens" => &mut prompt,
            b"input_tokens" => &mut input,
            b"completion_tokens" | b"output_tokens" => &mut output,
            b"cache_read_input_tokens" => &mut read,
            b"cache_creation_input_tokens" => &mut written,
            b"prompt_tokens_details" | b"input_tokens_details" => {
                return json.fields(|name, json| match name {
                    b"cached_tokens" => json.count().map(|count| cached = count.or(cached)),
                    _ => json.skip(),
                });
            }
            _ => return json.skip(),
        };
        *count = json.count()?.or(*count);
        Some(())
    })?;
    // Anthropic counts what it read from its cache, and wrote into it, apart from the other tokens of a prompt; `prompt_tokens` has them.
    let apart = [read, written].into_iter().flatten().fold(0, u32::saturating_add);
    let input = prompt.or_else(|| input.map(|input: u32| input.saturating_add(apart)));
    usage.update(Usage { input, output, cached: cached.or(read) });
    Some(())
}

/// Reads an event, or a whole answer, of OpenAI's chat completions or completions, and appends the text of its first choice to `reply`.
/// `None` if it is not JSON of that shape.
pub fn of_openai(data: &[u8], mut reply: Reply<'_>) -> Option<Event> {
    if data == b"[DONE]" {
        return Some(Event { is_last: true, ..Event::default() });
    }
    let (mut event, mut texts) = (Event::default(), Texts::default());
    object(data, |name, json| match name {
        b"choices" => json.elements(|json| choice(json, &mut event, &mut texts, reply.as_deref_mut())),
        b"usage" => usage(json, &mut event.usage),
        b"error" => json.is_there().map(|is_there| event.is_error |= is_there),
        // Older servers have an error's message among the fields.
        b"object" => json.word_of_text().map(|kind| event.is_error |= kind == b"error"),
        _ => json.skip(),
    })?;
    event.text = texts.sum();
    Some(event)
}

fn choice(json: &mut Json<'_>, event: &mut Event, all: &mut Texts, mut reply: Reply<'_>) -> Option<()> {
    let before = reply.as_deref().map_or(0, String::len);
    let (mut index, mut texts, mut ends) = (0, Texts::default(), None);
    json.fields(|name, json| match name {
        b"index" => json.count().map(|count| index = count.unwrap_or(0)),
        b"delta" | b"message" => delta(json, &mut texts, reply.as_deref_mut()),
        b"text" => add(&mut texts.content, json.text(reply.as_deref_mut())),
        b"finish_reason" => finish(json, &mut ends),
        // Some count here what others count beside the choices.
        b"usage" => usage(json, &mut event.usage),
        _ => json.skip(),
    })?;
    let bit = 1 << index.min(63);
    if texts.sum().is_some() {
        event.said_by |= bit;
    }
    if ends.is_some() {
        (event.finish, event.ended) = (ends, event.ended | bit);
    }
    for (sum, bytes) in
        [(&mut all.content, texts.content), (&mut all.reasoning, texts.reasoning), (&mut all.tool, texts.tool)]
    {
        *sum = sum.saturating_add(bytes);
    }
    if let Some(reply) = reply.filter(|_| index > 0) {
        reply.truncate(before);
    }
    Some(())
}

fn delta(json: &mut Json<'_>, texts: &mut Texts, mut reply: Reply<'_>) -> Option<()> {
    json.fields(|name, json| match name {
        b"content" => add(&mut texts.content, json.text(reply.as_deref_mut())),
        b"refusal" => add(&mut texts.content, json.text(None)),
        // `reasoning_content` of `DeepSeek` and vLLM, `reasoning` of `OpenRouter` and newer servers; some send both.
        b"reasoning_content" | b"reasoning" => {
            json.text(None).map(|bytes| texts.reasoning = texts.reasoning.max(bytes))
        }
        b"tool_calls" => json.elements(|json| {
            json.fields(|name, json| if name == b"function" { function(json, &mut texts.tool) } else { json.skip() })
        }),
        b"function_call" => function(json, &mut texts.tool),
        _ => json.skip(),
    })
}

/// A call of a tool; some servers have its arguments as JSON, and not as a text of it.
fn function(json: &mut Json<'_>, bytes: &mut u32) -> Option<()> {
    json.fields(|name, json| match name {
        b"name" | b"arguments" => add(bytes, json.size()),
        _ => json.skip(),
    })
}

/// Reads an event of Anthropic's messages, or a whole message; otherwise as [`of_openai`].
pub fn of_anthropic(data: &[u8], mut reply: Reply<'_>) -> Option<Event> {
    let (mut event, mut texts) = (Event::default(), Texts::default());
    object(data, |name, json| match name {
        b"type" => json.word_of_text().map(|kind| {
            event.is_error |= kind == b"error";
            event.is_last = kind == b"message_stop";
        }),
        b"error" => json.is_there().map(|is_there| event.is_error |= is_there),
        b"message" => {
            json.fields(|name, json| if name == b"usage" { usage(json, &mut event.usage) } else { json.skip() })
        }
        b"delta" => json.fields(|name, json| match name {
            b"stop_reason" => finish(json, &mut event.finish),
            _ => block_field(name, json, &mut texts, reply.as_deref_mut()),
        }),
        b"content" => {
            json.elements(|json| json.fields(|name, json| block_field(name, json, &mut texts, reply.as_deref_mut())))
        }
        b"stop_reason" => finish(json, &mut event.finish),
        b"usage" => usage(json, &mut event.usage),
        _ => json.skip(),
    })?;
    event.text = texts.sum();
    Some(event)
}

/// A field of a block of a message, or of what an event adds to one.
fn block_field(name: &[u8], json: &mut Json<'_>, texts: &mut Texts, reply: Reply<'_>) -> Option<()> {
    match name {
        b"text" => add(&mut texts.content, json.text(reply)),
        b"thinking" => add(&mut texts.reasoning, json.text(None)),
        b"partial_json" => add(&mut texts.tool, json.text(None)),
        // The call of a tool in a whole message.
        b"input" => add(&mut texts.tool, json.size()),
        _ => json.skip(),
    }
}

/// Reads a line of Ollama, or a whole answer; otherwise as [`of_openai`].
pub fn of_ollama(data: &[u8], mut reply: Reply<'_>) -> Option<Event> {
    let (mut event, mut texts, mut reason) = (Event::default(), Texts::default(), None);
    object(data, |name, json| match name {
        b"message" => json.fields(|name, json| match name {
            b"content" => add(&mut texts.content, json.text(reply.as_deref_mut())),
            b"thinking" => add(&mut texts.reasoning, json.text(None)),
            // Calls come whole, with their arguments as JSON.
            b"tool_calls" => json.elements(|json| add(&mut texts.tool, json.size())),
            _ => json.skip(),
        }),
        b"response" => add(&mut texts.content, json.text(reply.as_deref_mut())),
        b"thinking" => add(&mut texts.reasoning, json.text(None)),
        b"done" => json.is_there().map(|is_there| event.is_last = is_there),
        b"done_reason" => finish(json, &mut reason),
        b"prompt_eval_count" => json.count().map(|count| event.usage.input = count),
        b"eval_count" => json.count().map(|count| event.usage.output = count),
        b"error" => json.is_there().map(|is_there| event.is_error |= is_there),
        _ => json.skip(),
    })?;
    event.finish = event.is_last.then(|| reason.unwrap_or(Finish::Stop));
    event.text = texts.sum();
    Some(event)
}
