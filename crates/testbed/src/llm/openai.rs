//! Answers in the words of OpenAI's API: chat completions and completions.

use super::endpoint::Endpoint;
use super::request::Usage;
use super::telling::{Events, Facts, Finish, Telling, put, put_json};

/// The chunk with the role, which carries no token: servers send it when a request is taken on, or with the first token.
pub(super) fn opening(events: &mut Events, telling: &Telling<'_>) {
    if telling.facts.endpoint == Endpoint::Chat {
        choice(events, telling, Some(0), |out| out.extend_from_slice(br#"{"role":"assistant","content":""}"#), None);
    }
}

pub(super) fn chunk(events: &mut Events, telling: &Telling<'_>, chunk: u64) {
    let (range, is_reasoning) = telling.facts.plan.chunk(chunk);
    let done = range.end - 1;
    let text = Facts::text(range);
    let field = if is_reasoning { "reasoning_content" } else { "content" };
    choice(events, telling, Some(done), |out| delta(out, telling, field, &text), None);
}

/// The finish reason, usage and the last message.
pub(super) fn closing(events: &mut Events, telling: &Telling<'_>) {
    let (tokens, finish) = (telling.facts.plan.tokens, telling.facts.finish);
    let is_chat = telling.facts.endpoint == Endpoint::Chat;
    let nothing = |out: &mut Vec<u8>| if is_chat { out.extend_from_slice(b"{}") } else { put_json(out, "") };
    choice(events, telling, Some(tokens), nothing, Some(finish));
    if telling.facts.usage != Usage::None && !telling.voice.quirks.no_usage {
        events.sse(None, |out| {
            head(out, telling, true);
            out.extend_from_slice(br#""choices":[],"usage":"#);
            usage(out, telling, tokens);
            telling.stamps(out);
            out.push(b'}');
        });
    }
    done(events, telling);
}

pub(super) fn done(events: &mut Events, telling: &Telling<'_>) {
    if !telling.voice.quirks.no_done {
        events.sse(None, |out| out.extend_from_slice(b"[DONE]"));
    }
}

/// A whole answer.
pub(super) fn document(out: &mut Vec<u8>, telling: &Telling<'_>) {
    let (reasoning, content) = telling.facts.texts();
    head(out, telling, false);
    out.extend_from_slice(br#""choices":[{"index":0,"#);
    if telling.facts.endpoint == Endpoint::Chat {
        out.extend_from_slice(br#""message":{"role":"assistant","content":"#);
        put_json(out, &content);
        if !reasoning.is_empty() {
            out.extend_from_slice(br#","reasoning_content":"#);
            put_json(out, &reasoning);
        }
        out.push(b'}');
    } else {
        out.extend_from_slice(br#""text":"#);
        put_json(out, &content);
    }
    put(out, format_args!(r#","logprobs":null,"finish_reason":"{}"}}]"#, reason(telling.facts.finish)));
    if !telling.voice.quirks.no_usage {
        out.extend_from_slice(br#","usage":"#);
        usage(out, telling, telling.facts.plan.tokens);
    }
    telling.stamps(out);
    out.push(b'}');
}

fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
    }
}

/// The fields that all documents and chunks begin with.
fn head(out: &mut Vec<u8>, telling: &Telling<'_>, is_chunk: bool) {
    let (prefix, object) = match (telling.facts.endpoint, is_chunk) {
        (Endpoint::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
        (Endpoint::Chat, false) => ("chatcmpl", "chat.completion"),
        _ => ("cmpl", "text_completion"),
    };
    let (id, created, model) = (telling.facts.id, telling.moment.unix.as_secs(), &telling.voice.model);
    put(out, format_args!(r#"{{"id":"{prefix}-{id}","object":"{object}","created":{created},"model":{model},"#));
}

fn delta(out: &mut Vec<u8>, telling: &Telling<'_>, field: &str, text: &str) {
    if telling.facts.endpoint == Endpoint::Chat {
        put(out, format_args!(r#"{{"{field}":"#));
        put_json(out, text);
        out.push(b'}');
    } else {
        put_json(out, text);
    }
}

/// A chunk with a choice, whose delta or text `say` appends, when `done` tokens are out.
fn choice(
    events: &mut Events,
    telling: &Telling<'_>,
    done: Option<u64>,
    say: impl FnOnce(&mut Vec<u8>),
    finish: Option<Finish>,
) {
    events.sse(None, |out| {
        head(out, telling, true);
        let field = if telling.facts.endpoint == Endpoint::Chat { "delta" } else { "text" };
        put(out, format_args!(r#""choices":[{{"index":0,"{field}":"#));
        say(out);
        out.extend_from_slice(br#","logprobs":null,"finish_reason":"#);
        match finish {
            Some(finish) => put(out, format_args!(r#""{}""#, reason(finish))),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b"}]");
        match (telling.facts.usage, done) {
            _ if telling.voice.quirks.no_usage => {}
            (Usage::Continuous, Some(done)) => {
                out.extend_from_slice(br#","usage":"#);
                usage(out, telling, done);
            }
            (Usage::AtEnd, _) => out.extend_from_slice(br#","usage":null"#),
            _ => {}
        }
        telling.stamps(out);
        out.push(b'}');
    });
}

fn usage(out: &mut Vec<u8>, telling: &Telling<'_>, done: u64) {
    let (prompt, cached) = (telling.facts.prompt, telling.facts.cached);
    let total = prompt + done;
    put(out, format_args!(r#"{{"prompt_tokens":{prompt},"completion_tokens":{done},"total_tokens":{total}"#));
    if telling.voice.has_prefixes {
        put(out, format_args!(r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#));
    }
    let reasoning = telling.facts.plan.reasoning.min(done);
    if reasoning > 0 {
        put(out, format_args!(r#","completion_tokens_details":{{"reasoning_tokens":{reasoning}}}"#));
    }
    out.push(b'}');
}
