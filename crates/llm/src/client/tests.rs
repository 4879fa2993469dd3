use std::sync::Arc;

use brunt_http1::options::Options as Http;
use brunt_plan::plan::Plan;
use brunt_plan::target::Url;
use brunt_protocol::{Prepared, Protocol};
use proptest::prelude::*;

use super::*;
use crate::Llm;
use crate::event::TextKind;
use crate::facts::{Ended, Said, read_end, read_message};
use crate::length::Length;
use crate::options::LlmOptions;
use crate::prompt::{Prompts, Rate};

/// A protocol made ready, with answers in this dialect.
fn prepared(api: ApiDialect, stream: bool) -> Arc<dyn Prepared> {
    let prompts = Prompts::Made { input: Length::fixed(8.0), prefix: 0, rate: Rate::default() };
    let output = Some(Length::fixed(4.0));
    let options = LlmOptions { api: Some(api), stream, output, ..LlmOptions::new("m", prompts) };
    let http = Http { method: "POST".to_owned(), ..Http::default() };
    let target = Url::parse("llm://h:1/").unwrap().target;
    Llm.prepare(&Plan::of_calls(target, options.to_protocol(&http))).unwrap()
}

/// What came of an answer: messages, and its end.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Said(Said),
    Answered(Ended),
    Failed(Failure, String, bool),
}

/// Reads an answer in pieces that end at these places.
fn read(prepared: &dyn Prepared, answer: &[u8], cuts: &[usize]) -> Vec<Told> {
    let (mut client, mut user) = (prepared.client(false), prepared.user());
    let mut out = Vec::new();
    client.open(None, &mut out).unwrap();
    client.start(&user.request(0).unwrap(), &mut out);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (answer.len() + 1)).chain([0, answer.len()]).collect();
    cuts.sort_unstable();
    let mut told = Vec::new();
    for piece in cuts.windows(2).map(|ends| &answer[ends[0]..ends[1]]) {
        let mut taken = 0;
        while taken < piece.len() {
            let (n, progress) = client.receive(&piece[taken..], &mut out).unwrap();
            taken += n;
            match progress {
                Progress::Message { .. } => told.push(Told::Said(read_message(client.parts().body).unwrap())),
                Progress::Answered(_) => told.push(Told::Answered(read_end(client.parts().body))),
                Progress::Failed(failed) => {
                    told.push(Told::Failed(failed.failure, failed.reason.into_owned(), failed.reusable));
                    return told;
                }
                Progress::More => {}
                other => panic!("{other:?}"),
            }
        }
    }
    told
}

fn streamed(events: &[&str], lines: bool) -> Vec<u8> {
    let kind = if lines { "application/x-ndjson" } else { "text/event-stream" };
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
    for event in events {
        let event = if lines { format!("{event}\n") } else { format!("{event}\n\n") };
        answer.extend(format!("{:x}\r\n{event}\r\n", event.len()).into_bytes());
    }
    answer.extend(b"0\r\n\r\n");
    answer
}

fn said(kind: TextKind, bytes: u32, output: Option<u32>) -> Told {
    Told::Said(Said { kind, bytes, output, is_later: false })
}

fn ended(input: Option<u32>, output: Option<u32>, finish: Finish) -> Told {
    Told::Answered(Ended { usage: Usage { input, output, cached: None }, finish: Some(finish), bytes: 0 })
}

/// An answer in each dialect, and what it says.
fn answers() -> Vec<(ApiDialect, Vec<u8>, Vec<Told>)> {
    let chat = streamed(
        &[
            ": keep-alive",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}",
            "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}",
            "data: {\"choices\":[{\"delta\":{\"content\":\"h\\u00e9\\n\"}}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3,\"total_tokens\":12}}",
            "data: [DONE]",
        ],
        false,
    );
    let completions = streamed(
        &[
            "data: {\"choices\":[{\"text\":\"ab\",\"finish_reason\":null}]}",
            "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}",
            "data: [DONE]",
        ],
        false,
    );
    let anthropic = streamed(
        &[
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
            "event: ping\ndata: {\"type\":\"ping\"}",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"abc\"}}",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"abcd\"}}",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}",
        ],
        false,
    );
    let ollama = streamed(
        &[
            "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"ab\"},\"done\":false}",
            "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":7,\"eval_count\":2,\"total_duration\":5}",
        ],
        true,
    );
    vec![
        (
            ApiDialect::Chat,
            chat,
            vec![
                said(TextKind::Reasoning, 2, None),
                said(TextKind::Content, 4, Some(2)),
                said(TextKind::Tool, 3, None),
                ended(Some(9), Some(3), Finish::Length),
            ],
        ),
        (ApiDialect::Completions, completions, vec![said(TextKind::Content, 2, None), ended(None, None, Finish::Stop)]),
        (
            ApiDialect::Messages,
            anthropic,
            vec![
                said(TextKind::Reasoning, 3, None),
                said(TextKind::Content, 4, None),
                ended(Some(7), Some(5), Finish::Stop),
            ],
        ),
        (ApiDialect::OllamaChat, ollama, vec![said(TextKind::Content, 2, None), ended(Some(7), Some(2), Finish::Stop)]),
    ]
}

proptest! {
    #[test]
    fn an_answer_says_the_same_however_it_is_cut(cuts in prop::collection::vec(0..2000_usize, 0..20)) {
        for (dialect, answer, wanted) in answers() {
            prop_assert_eq!(read(prepared(dialect, true).as_ref(), &answer, &cuts), wanted, "{:?}", dialect);
        }
    }

    #[test]
    fn whatever_comes_as_an_event_is_read_or_named(event in "[ -~é]{0,60}", dialect in 0..5_usize) {
        let (_, dialect) = ApiDialect::NAMED[dialect];
        let lines = matches!(dialect, ApiDialect::OllamaChat | ApiDialect::OllamaGenerate);
        let event = if lines { event } else { format!("data: {event}") };
        let told = read(prepared(dialect, true).as_ref(), &streamed(&[&event], lines), &[]);
        prop_assert!(!told.is_empty());
    }
}

#[test]
fn streams_that_go_wrong_have_a_name() {
    let content = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}";
    let failed = |events: &[&str]| {
        let told = read(prepared(ApiDialect::Chat, true).as_ref(), &streamed(events, false), &[]);
        match told.last() {
            Some(Told::Failed(failure, reason, reusable)) => (*failure, reason.clone(), *reusable),
            other => panic!("{other:?}"),
        }
    };
    for (events, failure, reason, reusable) in [
        (&[content, "data: {\"error\":{\"message\":\"out of memory\"}}"][..], Failure::Exception, FAILED, false),
        (&[content, "data: {\"choices\":"], Failure::Protocol, NOT_JSON, false),
        (&[content], Failure::EndedEarly, CUT, true),
        (&[], Failure::EndedEarly, EMPTY, true),
    ] {
        assert_eq!(failed(events), (failure, reason.to_owned(), reusable), "{events:?}");
    }
}

#[test]
fn half_a_character_is_no_json() {
    let whole = streamed(&["data: {\"choices\":[{\"delta\":{\"content\":\"\u{1f980}!\"}}]}"], false);
    let place = whole.windows(4).position(|bytes| bytes == "\u{1f980}".as_bytes()).unwrap();
    // As long as before, so that its chunk is whole.
    let cut: Vec<u8> = [&whole[..place + 2], b"  ", &whole[place + 4..]].concat();
    let told = read(prepared(ApiDialect::Chat, true).as_ref(), &cut, &[place + 1]);
    assert_eq!(told, [Told::Failed(Failure::Protocol, NOT_JSON.to_owned(), false)]);
}

#[test]
fn a_stream_without_its_last_event_is_whole_and_counted() {
    let prepared = prepared(ApiDialect::Chat, true);
    let (mut client, mut user, mut out) = (prepared.client(false), prepared.user(), Vec::new());
    client.open(None, &mut out).unwrap();
    client.start(&user.request(0).unwrap(), &mut out);
    let answer = streamed(&["data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}"], false);
    let mut rest = &answer[..];
    while !rest.is_empty() {
        let (n, _) = client.receive(rest, &mut out).unwrap();
        rest = &rest[n..];
    }
    let mut events = Vec::new();
    client.take_events(&mut |name, count| events.push((name.to_owned(), count)));
    assert!(events.contains(&("streams without their last event".to_owned(), 1)), "{events:?}");
}

#[test]
fn whole_answers_are_read_at_their_end() {
    let body = "{\"choices\":[{\"message\":{\"content\":\"abc\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}";
    let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    let of = |body: &str| read(prepared(ApiDialect::Chat, false).as_ref(), &answer(body), &[7]);
    let usage = Usage { input: Some(4), output: Some(2), cached: None };
    assert_eq!(of(body), [Told::Answered(Ended { usage, finish: Some(Finish::Stop), bytes: 3 })]);
    assert_eq!(of("{\"error\":{}}"), [Told::Failed(Failure::Exception, FAILED.to_owned(), true)]);
    assert_eq!(of("<html>"), [Told::Failed(Failure::Protocol, NOT_JSON.to_owned(), true)]);
}

#[test]
fn answers_that_are_no_streams_are_told_apart() {
    let answer = |fields: &str, body: &str| {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
        read(prepared(ApiDialect::Chat, true).as_ref(), format!("{head}{body}").as_bytes(), &[])
    };
    let whole = "{\"choices\":[{\"message\":{\"content\":\"abc\"},\"finish_reason\":\"stop\"}]}";
    for (fields, body, failure, reason) in [
        ("content-type: application/json\r\n", whole, Failure::Protocol, NO_STREAM),
        ("Content-Type: text/event-stream\r\nContent-Encoding: br\r\n", "\u{1}\u{2}", Failure::Protocol, ENCODED),
        (
            "Content-Type: Text/Event-Stream\r\nContent-Encoding: identity\r\n",
            ": nothing\n\n",
            Failure::EndedEarly,
            EMPTY,
        ),
        ("", "", Failure::EndedEarly, EMPTY),
    ] {
        assert_eq!(answer(fields, body), [Told::Failed(failure, reason.to_owned(), true)], "{fields}");
    }
}

#[test]
fn an_error_is_one_by_the_name_of_its_event() {
    for event in ["event: error\ndata: {\"message\":\"overloaded\"}", "event: error\ndata: out of memory"] {
        for dialect in [ApiDialect::Chat, ApiDialect::Completions, ApiDialect::Messages] {
            let told = read(prepared(dialect, true).as_ref(), &streamed(&[event], false), &[]);
            assert_eq!(told, [Told::Failed(Failure::Exception, FAILED.to_owned(), false)], "{event}");
        }
    }
}

#[test]
fn comments_without_end_take_no_memory() {
    let prepared = prepared(ApiDialect::Chat, true);
    let (mut client, mut user, mut out) = (prepared.client(false), prepared.user(), Vec::new());
    client.open(None, &mut out).unwrap();
    client.start(&user.request(0).unwrap(), &mut out);
    client.receive(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: ", &mut out).unwrap();
    // Many comments, and one without an end: more than a message may have.
    for piece in [&b": still here\n\n".repeat(100_000)[..], &vec![b'x'; 1 << 20]] {
        for _ in 0..20 {
            let (taken, progress) = client.receive(piece, &mut out).unwrap();
            assert!(taken == piece.len() && matches!(progress, Progress::More), "{progress:?}");
        }
    }
}

#[test]
fn an_event_beyond_all_measure_is_refused() {
    let prepared = prepared(ApiDialect::Chat, true);
    let (mut client, mut user, mut out) = (prepared.client(false), prepared.user(), Vec::new());
    client.open(None, &mut out).unwrap();
    client.start(&user.request(0).unwrap(), &mut out);
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ";
    client.receive(head, &mut out).unwrap();
    let piece = vec![b'a'; 1024 * 1024];
    let refused = (0..64).any(|_| !matches!(client.receive(&piece, &mut out), Ok((_, Progress::More))));
    assert!(refused, "64 MiB of one event are not kept");
}

#[test]
fn a_refusal_is_an_answer_by_its_status() {
    let answer = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(read(prepared(ApiDialect::Chat, true).as_ref(), answer, &[]), [Told::Answered(Ended::default())]);
}
