//! Answers in the words of Anthropic's Messages API.

use super::telling::{Events, Facts, Finish, Telling, put, put_json};

/// Everything before the first token.
pub(super) fn opening(events: &mut Events, telling: &Telling<'_>) {
    event(events, telling, "message_start", |out| {
        out.extend_from_slice(br#","message":"#);
        message(out, telling, |out| out.extend_from_slice(b"[]"), 0, None);
        out.push(b'}');
    });
    block_start(events, telling, 0, telling.facts.plan.reasoning > 0);
    event(events, telling, "ping", |_| {});
}

pub(super) fn chunk(events: &mut Events, telling: &Telling<'_>, chunk: u64) {
    let plan = &telling.facts.plan;
    let (range, is_reasoning) = plan.chunk(chunk);
    let had_reasoning = plan.reasoning > 0;
    if had_reasoning && !is_reasoning && plan.chunk(chunk.saturating_sub(1)).1 {
        block_stop(events, telling, 0, true);
        block_start(events, telling, 1, false);
    }
    let index = u8::from(had_reasoning && !is_reasoning);
    let (kind, field) = if is_reasoning { ("thinking_delta", "thinking") } else { ("text_delta", "text") };
    event(events, telling, "content_block_delta", |out| {
        put(out, format_args!(r#","index":{index},"delta":{{"type":"{kind}","{field}":"#));
        put_json(out, &Facts::text(range));
        out.push(b'}');
    });
}

pub(super) fn closing(events: &mut Events, telling: &Telling<'_>) {
    let plan = &telling.facts.plan;
    let is_reasoning = plan.chunk(plan.chunks().saturating_sub(1)).1;
    let index = u8::from(plan.reasoning > 0 && !is_reasoning);
    block_stop(events, telling, index, is_reasoning);
    event(events, telling, "message_delta", |out| {
        let reason = reason(telling.facts.finish);
        put(out, format_args!(r#","delta":{{"stop_reason":"{reason}","stop_sequence":null}}"#));
        if !telling.voice.quirks.no_usage {
            put(out, format_args!(r#","usage":{{"output_tokens":{}}}"#, plan.tokens));
        }
    });
    if !telling.voice.quirks.no_done {
        event(events, telling, "message_stop", |_| {});
    }
}

/// A whole answer.
pub(super) fn document(out: &mut Vec<u8>, telling: &Telling<'_>) {
    let (reasoning, content) = telling.facts.texts();
    let blocks = |out: &mut Vec<u8>| {
        out.push(b'[');
        if !reasoning.is_empty() {
            out.extend_from_slice(br#"{"type":"thinking","thinking":"#);
            put_json(out, &reasoning);
            put(out, format_args!(r#","signature":"{SIGNATURE}"}}"#));
        }
        if !content.is_empty() {
            let comma = if reasoning.is_empty() { "" } else { "," };
            put(out, format_args!(r#"{comma}{{"type":"text","text":"#));
            put_json(out, &content);
            out.push(b'}');
        }
        out.push(b']');
    };
    message(out, telling, blocks, telling.facts.plan.tokens, Some(telling.facts.finish));
    telling.stamps(out);
    out.push(b'}');
}

/// What stands for the signature of a block of reasoning.
const SIGNATURE: &str = "YnJ1bnQ=";

fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
    }
}

/// A message without its last brace.
fn message(
    out: &mut Vec<u8>,
    telling: &Telling<'_>,
    content: impl FnOnce(&mut Vec<u8>),
    done: u64,
    finish: Option<Finish>,
) {
    let (id, model) = (telling.facts.id, &telling.voice.model);
    put(out, format_args!(r#"{{"id":"msg_{id}","type":"message","role":"assistant","model":{model},"content":"#));
    content(out);
    match finish {
        Some(finish) => put(out, format_args!(r#","stop_reason":"{}""#, reason(finish))),
        None => out.extend_from_slice(br#","stop_reason":null"#),
    }
    out.extend_from_slice(br#","stop_sequence":null"#);
    if !telling.voice.quirks.no_usage {
        let (fresh, cached) = (telling.facts.prompt - telling.facts.cached, telling.facts.cached);
        put(
            out,
            format_args!(
                r#","usage":{{"input_tokens":{fresh},"cache_creation_input_tokens":0,"cache_read_input_tokens":{cached},"output_tokens":{done}}}"#
            ),
        );
    }
}

/// An event, whose fields behind its type `fields` appends, each behind a comma.
fn event(events: &mut Events, telling: &Telling<'_>, name: &str, fields: impl FnOnce(&mut Vec<u8>)) {
    events.sse(Some(name), |out| {
        put(out, format_args!(r#"{{"type":"{name}""#));
        fields(out);
        telling.stamps(out);
        out.push(b'}');
    });
}

fn block_start(events: &mut Events, telling: &Telling<'_>, index: u8, is_reasoning: bool) {
    let block = if is_reasoning {
        r#"{"type":"thinking","thinking":"","signature":""}"#
    } else {
        r#"{"type":"text","text":""}"#
    };
    event(events, telling, "content_block_start", |out| {
        put(out, format_args!(r#","index":{index},"content_block":{block}"#));
    });
}

fn block_stop(events: &mut Events, telling: &Telling<'_>, index: u8, is_reasoning: bool) {
    if is_reasoning {
        event(events, telling, "content_block_delta", |out| {
            put(
                out,
                format_args!(r#","index":{index},"delta":{{"type":"signature_delta","signature":"{SIGNATURE}"}}"#),
            );
        });
    }
    event(events, telling, "content_block_stop", |out| put(out, format_args!(r#","index":{index}"#)));
}
