//! A model in injected time: what it tells, and when, to the nanosecond.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use super::answer::{Answer, Model, Reply, Told};
use super::config::{Answers, Faults, ModelConfig, Quirks};
use super::telling::Events;
use super::totals::Totals;

const MS: fn(u64) -> Duration = Duration::from_millis;

struct Server {
    model: Model,
    totals: Arc<Totals>,
}

/// What an answer told: events with their times in milliseconds, and how it ended.
#[derive(Debug)]
struct Heard {
    events: Vec<(u64, String)>,
    end: Told,
}

impl Server {
    fn new(config: ModelConfig) -> Self {
        assert_eq!(config.wrong(), None);
        let totals = Arc::<Totals>::default();
        Self { model: Model::new(config, 1, Duration::ZERO, Arc::clone(&totals)).unwrap(), totals }
    }

    fn ask(&mut self, at: u64, path: &str, body: &str) -> Result<Answer, (u16, Value)> {
        let ask = self.model.ask(path.as_bytes(), b"POST / HTTP/1.1\r\nHost: x\r\n");
        match self.model.answer(&ask, body.as_bytes(), MS(at), 7) {
            Reply::Later(answer) => Ok(*answer),
            Reply::Now(document) => Err((document.status, serde_json::from_slice(&document.body).unwrap())),
        }
    }

    /// Listens to an answer to its end, at the times at which it has something to tell.
    fn hear(&mut self, mut answer: Answer) -> Heard {
        let (mut events, mut heard) = (Events::default(), Vec::new());
        let mut now = Duration::ZERO;
        loop {
            let Some(due) = self.model.due(&answer) else {
                let next = self.model.next_start().unwrap();
                self.model.advance(next);
                continue;
            };
            now = now.max(due);
            let end = self.model.tell(&mut answer, now, &mut events);
            let told = events.iter().map(|event| (now.as_millis() as u64, String::from_utf8(event.to_vec()).unwrap()));
            heard.extend(told);
            if end != Told::Events {
                return Heard { events: heard, end };
            }
        }
    }

    fn hear_all(&mut self, path: &str, body: &str) -> Heard {
        let answer = self.ask(0, path, body).unwrap();
        self.hear(answer)
    }
}

impl Heard {
    fn times(&self) -> Vec<u64> {
        self.events.iter().map(|(at, _)| *at).collect()
    }

    /// The data of each event; the name of an event without any.
    fn data(&self) -> Vec<Value> {
        let data = |event: &str| {
            let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(event.trim_end());
            serde_json::from_str(data).unwrap_or_else(|_| data.into())
        };
        self.events.iter().map(|(_, event)| data(event)).collect()
    }

    fn whole(&self) -> (u16, Value) {
        match &self.end {
            Told::Document(document) => (document.status, serde_json::from_slice(&document.body).unwrap()),
            other => panic!("{other:?}"),
        }
    }
}

fn answers(tokens: u64) -> Answers {
    Answers { tokens, ..ModelConfig::default().answers }
}

const CHAT: &str = "/v1/chat/completions";
const HI: &str = r#"{"model":"brunt-sim","stream":true,"messages":[{"role":"user","content":"hi you"}]}"#;

/// A prompt of so many words, streamed as chat with at most `limit` tokens.
fn prompt(words: usize, limit: u64) -> String {
    let text = vec!["w"; words].join(" ");
    format!(
        r#"{{"model":"brunt-sim","stream":true,"max_tokens":{limit},"messages":[{{"role":"user","content":"{text}"}}]}}"#
    )
}

#[test]
fn a_chat_is_a_role_then_tokens_by_the_formula_then_an_end() {
    let mut server = Server::new(ModelConfig { answers: answers(3), ..ModelConfig::default() });
    let answer = server.ask(5, CHAT, &prompt(1000, 3)).unwrap();
    let heard = server.hear(answer);
    // The role at acceptance, which is at 5 ms in a test that hears from 0 on; 1000 / 20000 = 50 ms of prefill; 20 ms a token.
    assert_eq!(heard.times(), [0, 55, 75, 95, 95, 95]);
    let data = heard.data();
    assert_eq!(data[0]["choices"][0]["delta"], serde_json::json!({"role": "assistant", "content": ""}));
    let contents: Vec<_> = (1..4).map(|at| data[at]["choices"][0]["delta"]["content"].as_str().unwrap()).collect();
    assert_eq!(contents, [" w1", " w2", " w3"]);
    assert_eq!((&data[4]["choices"][0]["finish_reason"], &data[5]), (&"length".into(), &"[DONE]".into()));
    assert!(data[..5].iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk.get("usage").is_none()));
    assert_eq!(server.totals.to_string(), "1 requests for tokens: 1000 prompt tokens (0 cached), 3 output tokens");
}

#[test]
fn usage_is_told_as_asked() {
    let mut server = Server::new(ModelConfig { answers: answers(2), ..ModelConfig::default() });
    let mut usage = |options: &str| {
        let body = HI.replace("\"stream\"", &format!(r#""stream_options":{options},"stream""#));
        server.hear_all(CHAT, &body).data()
    };
    let at_end = usage(r#"{"include_usage":true}"#);
    assert_eq!(at_end.len(), 6);
    assert!(at_end[..4].iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
    assert_eq!(at_end[4]["choices"], serde_json::json!([]));
    let expected = serde_json::json!({"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4});
    assert_eq!(at_end[4]["usage"], expected);
    let continuous = usage(r#"{"include_usage":true,"continuous_usage_stats":true}"#);
    let done: Vec<_> = continuous[..5].iter().map(|chunk| chunk["usage"]["completion_tokens"].as_u64()).collect();
    assert_eq!(done, [0, 1, 2, 2, 2].map(Some));
}

#[test]
fn limits_and_the_models_own_end_give_their_reasons() {
    let mut server = Server::new(ModelConfig { answers: answers(4), ..ModelConfig::default() });
    let mut whole = |fields: &str| {
        let body = format!(r#"{{"model":"brunt-sim","prompt":"a b",{fields}}}"#);
        let (status, document) = server.hear_all("/v1/completions", &body).whole();
        assert_eq!(status, 200);
        let tokens = document["usage"]["completion_tokens"].as_u64().unwrap();
        (tokens, document["choices"][0]["finish_reason"].as_str().unwrap().to_owned())
    };
    assert_eq!(whole(r#""max_tokens":3"#), (3, "length".to_owned()));
    assert_eq!(whole(r#""max_tokens":4"#), (4, "length".to_owned()));
    assert_eq!(whole(r#""max_tokens":9"#), (4, "stop".to_owned()));
    assert_eq!(whole(r#""max_tokens":9,"ignore_eos":true"#), (9, "length".to_owned()));
    assert_eq!(whole(r#""n":1"#), (4, "stop".to_owned()));
    assert_eq!(whole(r#""ignore_eos":true"#), (4, "length".to_owned()));
}

#[test]
fn anthropics_stream_has_its_events_in_order() {
    let mut server =
        Server::new(ModelConfig { answers: Answers { reasoning: 1, ..answers(3) }, ..ModelConfig::default() });
    let body = r#"{"model":"brunt-sim","max_tokens":9,"stream":true,"system":"be short","messages":[{"role":"user","content":"hi"}]}"#;
    let heard = server.hear_all("/v1/messages", body);
    let data = heard.data();
    let kinds: Vec<_> = data.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
    assert!(
        heard.events.iter().zip(kinds).all(|((_, event), kind)| event.starts_with(&format!("event: {kind}\ndata: ")))
    );
    assert_eq!(data[0]["message"]["usage"]["input_tokens"], 3);
    assert_eq!((&data[3]["delta"]["thinking"], &data[4]["delta"]["type"]), (&" w1".into(), &"signature_delta".into()));
    assert_eq!((&data[7]["delta"]["text"], &data[7]["index"]), (&" w2".into(), &1.into()));
    assert_eq!(
        (&data[10]["delta"]["stop_reason"], &data[10]["usage"]["output_tokens"]),
        (&"end_turn".into(), &3.into())
    );
    let (status, whole) = server.hear_all("/v1/messages", &body.replace("true", "false")).whole();
    assert_eq!(
        (status, &whole["content"][0]["thinking"], &whole["content"][1]["text"]),
        (200, &" w1".into(), &" w2 w3".into())
    );
    assert_eq!((&whole["stop_reason"], &whole["usage"]["output_tokens"]), (&"end_turn".into(), &3.into()));
}

#[test]
fn ollamas_lines_end_with_counts_and_durations() {
    let mut server =
        Server::new(ModelConfig { answers: Answers { reasoning: 1, ..answers(3) }, ..ModelConfig::default() });
    let chat = r#"{"model":"brunt-sim","messages":[{"role":"user","content":"a b c d"}],"options":{"num_predict":3}}"#;
    let lines = server.hear_all("/api/chat", chat).data();
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[0]["message"]["thinking"], &lines[1]["message"]["content"]), (&" w1".into(), &" w2".into()));
    let last = &lines[3];
    assert_eq!((&last["done"], &last["done_reason"]), (&true.into(), &"length".into()));
    assert_eq!((&last["prompt_eval_count"], &last["eval_count"]), (&4.into(), &3.into()));
    assert_eq!((&last["prompt_eval_duration"], &last["eval_duration"]), (&200_000.into(), &40_000_000.into()));
    assert_eq!((&last["total_duration"], &last["load_duration"]), (&40_200_000.into(), &0.into()));
    let generate = r#"{"model":"brunt-sim","prompt":"a","system":"b","stream":false}"#;
    let (_, whole) = server.hear_all("/api/generate", generate).whole();
    assert_eq!(
        (&whole["response"], &whole["thinking"], &whole["prompt_eval_count"]),
        (&" w2 w3".into(), &" w1".into(), &2.into())
    );
}

#[test]
fn requests_wait_in_line_and_beyond_it_are_refused() {
    let config = ModelConfig { answers: answers(2), slots: 1, queue: Some(1), ..ModelConfig::default() };
    let mut server = Server::new(config);
    let first = server.ask(0, CHAT, &prompt(200, 2)).unwrap();
    let second = server.ask(1, CHAT, &prompt(100, 2)).unwrap();
    let (status, error) = server.ask(2, CHAT, HI).unwrap_err();
    assert_eq!((status, &error["error"]["code"]), (429, &"rate_limit_exceeded".into()));
    assert_eq!(server.model.due(&first), Some(Duration::ZERO), "the role comes at once");
    assert_eq!(server.model.next_start(), Some(MS(30)));
    assert_eq!(server.hear(first).times(), [0, 10, 30, 30, 30]);
    // From the end of the first at 30 ms: 5 ms of prefill.
    assert_eq!(server.hear(second).times(), [0, 35, 55, 55, 55]);
}

#[test]
fn a_client_that_leaves_frees_its_slot_once() {
    let mut server = Server::new(ModelConfig { slots: 1, ..ModelConfig::default() });
    let mut first = server.ask(0, CHAT, HI).unwrap();
    let second = server.ask(0, CHAT, &prompt(100, 1)).unwrap();
    assert_eq!(server.model.due(&second), Some(Duration::ZERO));
    server.model.leave(&mut first, MS(40));
    server.model.leave(&mut first, MS(50));
    assert_eq!(server.model.advance(MS(50)), [7], "the connection of the second is woken");
    assert_eq!(server.hear(second).times(), [0, 45, 45, 45]);
    assert!(server.totals.to_string().ends_with("; 1 left by their clients"), "{}", server.totals);
}

#[test]
fn prefixes_of_earlier_prompts_cost_nothing_and_are_told() {
    let config = ModelConfig { prefix_cache: true, template_tokens: 8, answers: answers(1), ..ModelConfig::default() };
    let mut server = Server::new(config);
    let body =
        prompt(1032, 1).replace("\"stream\":true", "\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    let usage = |heard: &Heard| heard.data()[3]["usage"].clone();
    let first = server.hear_all(CHAT, &body);
    // 8 + 1032 = 1040 tokens, 65 blocks.
    assert_eq!((first.times()[1], &usage(&first)["prompt_tokens_details"]["cached_tokens"]), (52, &0.into()));
    let second = server.hear_all(CHAT, &body);
    // The last block has the last token, which is never cached: 16 tokens of 1040 are read, in 0.8 ms.
    assert_eq!((second.times()[1], &usage(&second)["prompt_tokens_details"]["cached_tokens"]), (0, &1024.into()));
    let words = vec!["w"; 1032].join(" ");
    let anthropic =
        format!(r#"{{"model":"brunt-sim","max_tokens":1,"messages":[{{"role":"user","content":"{words} other"}}]}}"#);
    let (_, whole) = server.hear_all("/v1/messages", &anthropic).whole();
    let usage = &whole["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&1.into(), &1040.into()));
}

#[test]
fn errors_and_cuts_come_after_some_tokens_in_each_apis_way() {
    let faulty = |error_in_stream, cut| ModelConfig {
        faults: Faults { error_in_stream, cut, ..ModelConfig::default().faults },
        answers: answers(10),
        ..ModelConfig::default()
    };
    let anthropic = r#"{"model":"brunt-sim","max_tokens":10,"stream":true,"messages":[]}"#;
    let ollama = r#"{"model":"brunt-sim","prompt":"a"}"#;
    let mut server = Server::new(faulty(1.0, 0.0));
    let openai = server.hear_all(CHAT, HI);
    let data = openai.data();
    assert!((4..14).contains(&data.len()) && openai.end == Told::LastEvents, "{data:?}");
    assert_eq!(data[data.len() - 2]["error"]["type"], "server_error");
    assert_eq!(data[data.len() - 1], "[DONE]", "as vLLM ends it");
    let heard = server.hear_all("/v1/messages", anthropic);
    let last = &heard.events.last().unwrap().1;
    assert!(last.starts_with("event: error\ndata: ") && last.contains("overloaded_error"), "{last}");
    let heard = server.hear_all("/api/generate", ollama);
    assert_eq!(heard.data().last().unwrap(), &serde_json::json!({"error": "the model broke, as asked for"}));
    let (status, error) = server.hear_all(CHAT, &HI.replace("true", "false")).whole();
    assert_eq!((status, &error["error"]["type"]), (500, &"server_error".into()));
    let mut server = Server::new(faulty(0.0, 1.0));
    for (path, body) in [(CHAT, HI), ("/v1/messages", anthropic), ("/api/generate", ollama)] {
        let heard = server.hear_all(path, body);
        assert!(heard.end == Told::Torn && !heard.events.is_empty(), "{heard:?}");
        assert!(
            heard.events.iter().all(|(_, event)| !event.contains("[DONE]") && !event.contains("_stop")),
            "{heard:?}"
        );
    }
    assert!(matches!(server.hear_all(CHAT, &HI.replace("true", "false")).end, Told::TornDocument(_)));
    let said = server.totals.to_string();
    assert!(said.ends_with("; 4 cut"), "{said}");
}

#[test]
fn quirks_leave_things_out_and_put_things_in() {
    let quirks = Quirks { no_done: true, no_usage: true, stamps: true, ..Quirks::default() };
    let mut server = Server::new(ModelConfig { quirks, answers: answers(2), ..ModelConfig::default() });
    let body = HI.replace("\"stream\"", r#""stream_options":{"include_usage":true},"stream""#);
    let data = server.hear_all(CHAT, &body).data();
    assert_eq!(data.len(), 4, "a role, two tokens, a finish reason: {data:?}");
    let stamp = |at: usize, name: &str| data[at][name].as_u64().unwrap();
    assert_eq!(stamp(2, "due_ns") - stamp(1, "due_ns"), 20_000_000);
    assert_eq!(stamp(1, "due_ns") - stamp(1, "received_ns"), 100_000);
    assert!(
        data.iter().all(|chunk| chunk["sent_ns"].as_u64() >= chunk["due_ns"].as_u64() && chunk.get("usage").is_none())
    );
    let heard = server.hear_all("/v1/messages", r#"{"model":"brunt-sim","max_tokens":1,"stream":true,"messages":[]}"#);
    assert!(heard.data().iter().all(|event| event["type"] != "message_stop"));
    assert!(heard.events.iter().all(|(_, event)| !event.contains("usage")));
    let lines = server.hear_all("/api/generate", r#"{"model":"brunt-sim","prompt":"a"}"#).data();
    assert!(lines.iter().all(|line| line["done"] == false));
}

#[test]
fn comments_come_until_the_first_token() {
    let quirks = Quirks { comments: Some(MS(20)), ..Quirks::default() };
    let mut server = Server::new(ModelConfig { quirks, answers: answers(1), slots: 1, ..ModelConfig::default() });
    let first = server.ask(0, CHAT, &prompt(1000, 1)).unwrap();
    let second = server.ask(0, CHAT, &prompt(1000, 1)).unwrap();
    let comments = |heard: &Heard| heard.events.iter().filter(|(_, event)| event == ": keep-alive\n\n").count();
    let (first, second) = (server.hear(first), server.hear(second));
    assert_eq!((first.times(), comments(&first)), (vec![0, 20, 40, 50, 50, 50], 2));
    assert_eq!((second.times().len(), comments(&second)), (8, 4));
}

#[test]
fn chance_is_by_the_requests_number() {
    let fates = |refuse: f64, cut: f64| {
        let faults = Faults { refuse, cut, ..ModelConfig::default().faults };
        let mut server = Server::new(ModelConfig { faults, answers: answers(3), ..ModelConfig::default() });
        let fate = |_| match server.ask(0, CHAT, HI) {
            Err((status, _)) => status,
            Ok(answer) => {
                if server.hear(answer).end == Told::Torn {
                    0
                } else {
                    200
                }
            }
        };
        (0..400).map(fate).collect::<Vec<_>>()
    };
    let count = |fates: &[u16], fate: u16| fates.iter().filter(|other| **other == fate).count();
    let cut = fates(0.0, 0.25);
    assert!((70..130).contains(&count(&cut, 0)), "{}", count(&cut, 0));
    assert_eq!(cut, fates(0.0, 0.25));
    let both = fates(0.25, 0.25);
    assert!((70..130).contains(&count(&both, 429)));
    assert!(both.iter().zip(&cut).all(|(both, cut)| both == cut || *both == 429), "no flag changes what another draws");
}

#[test]
fn keys_models_and_methods_are_checked() {
    let mut server = Server::new(ModelConfig { api_key: Some("s3cret".to_owned()), ..ModelConfig::default() });
    let mut status = |line: &str, path: &str, head: &str| {
        let ask = server.model.ask(path.as_bytes(), format!("{line} HTTP/1.1\r\nHost: x\r\n{head}\r\n").as_bytes());
        match server.model.answer(&ask, HI.as_bytes(), MS(0), 0) {
            Reply::Now(document) => document.status,
            Reply::Later(_) => 0,
        }
    };
    assert_eq!(status("POST /", CHAT, ""), 401);
    assert_eq!(status("POST /", CHAT, "authorization: bearer s3cret"), 0);
    assert_eq!(status("POST /", CHAT, "X-Api-Key: s3cret"), 0);
    assert_eq!(status("POST /", CHAT, "Authorization: Bearer s3cre"), 401);
    assert_eq!(status("POST /", CHAT, "Authorization: s3cret"), 401);
    assert_eq!(status("GET /", "/health", ""), 200);
    let key = "X-API-Key: s3cret";
    assert_eq!(status("GET /", CHAT, key), 405);
    assert_eq!((status("GET /", "/v1/models", key), status("POST /", "/v1/models", key)), (200, 405));
    assert_eq!((status("GET /", "/v1/models/brunt-sim", key), status("GET /", "/v1/models/x", key)), (200, 404));
    assert_eq!((status("GET /", "/v1/embeddings", key), status("GET /", "/", key)), (404, 404));
}

proptest! {
    #[test]
    fn no_request_is_a_panic(
        path in prop::sample::select(vec!["/v1/chat/completions", "/v1/messages", "/api/chat", "/v1/models/\u{e9}", "/v1/x", ""]),
        head in proptest::collection::vec(any::<u8>(), 0..60),
        body in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut server = Server::new(ModelConfig { api_key: Some("k".to_owned()), ..ModelConfig::default() });
        let ask = server.model.ask(path.as_bytes(), &head);
        let _ = server.model.answer(&ask, &body, MS(0), 0);
    }

    /// Whatever an answer is, its events are whole, and its tokens are those that were asked for, in order.
    #[test]
    fn streams_say_each_token_once(
        tokens in 1_u64..60,
        reasoning in 0_u64..70,
        per_chunk in 1_u64..9,
        burst in 1_u64..5,
        path in prop::sample::select(vec!["/v1/chat/completions", "/v1/completions", "/v1/messages", "/api/chat", "/api/generate"]),
    ) {
        let answers = Answers { tokens, reasoning, per_chunk, burst };
        let mut server = Server::new(ModelConfig { answers, ..ModelConfig::default() });
        let body = r#"{"model":"brunt-sim","stream":true,"max_tokens":100,"messages":[],"prompt":""}"#;
        let heard = server.hear_all(path, body);
        let mut said = String::new();
        for data in heard.data() {
            for pointer in ["/choices/0/delta/reasoning_content", "/choices/0/delta/content", "/choices/0/text", "/delta/thinking",
                            "/delta/text", "/message/thinking", "/message/content", "/thinking", "/response"] {
                said.push_str(data.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
            }
        }
        let mut expected = String::new();
        (1..=tokens).for_each(|token| super::token_words::push_token(token, &mut expected));
        prop_assert_eq!(said, expected);
        prop_assert!(heard.times().is_sorted());
    }
}
