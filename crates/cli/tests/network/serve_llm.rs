//! The simulated language model over real connections: what it answers in each API, and by its own stamps when.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use brunt_testbed::llm::{Answers, Faults, ModelConfig, Quirks, Speed};
use brunt_testbed::server::{self, Server};
use brunt_testbed::tls::Tls;
use serde_json::{Value, json};

use crate::program::Directory;
use crate::report::report;

const CHAT: &str = "/v1/chat/completions";
const MS: u64 = 1_000_000;

fn start(model: ModelConfig) -> Server {
    Server::start_model(server::ServerConfig::default(), model).unwrap()
}

/// A model with stamps, whose answers have `tokens` tokens at 200 a second.
fn model(tokens: u64) -> ModelConfig {
    let default = ModelConfig::default();
    ModelConfig {
        speed: Speed { decode: 200.0, ..default.speed },
        answers: Answers { tokens, ..default.answers },
        quirks: Quirks { stamps: true, ..Quirks::default() },
        ..default
    }
}

/// A chat whose prompt has this many words, streamed.
fn chat(words: usize) -> Value {
    let text = vec!["word"; words].join(" ");
    json!({
        "model": "brunt-sim", "stream": true, "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": text }],
    })
}

/// A request that was sent, and whose answer is to be read.
struct Asked(TcpStream);

fn send(server: &Server, path: &str, body: &str, fields: &str) -> Asked {
    let mut stream = TcpStream::connect(server.socket_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    Asked(stream)
}

fn ask(server: &Server, path: &str, body: &Value) -> Answer {
    send(server, path, &body.to_string(), "").answer()
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
    /// Whether it came to its end.
    is_whole: bool,
}

impl Asked {
    fn answer(mut self) -> Answer {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        // The end of one that is cut may lie within a character.
        let text = String::from_utf8_lossy(&bytes);
        let (head, rest) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head[9..12].parse().unwrap();
        let (body, is_whole) = if head.contains("Transfer-Encoding: chunked") {
            unchunked(rest)
        } else {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            (rest.to_owned(), length.parse() == Ok(rest.len()))
        };
        Answer { status, head: head.to_owned(), body, is_whole }
    }
}

/// The body in these chunks, and whether the last is there.
fn unchunked(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, after == "\r\n");
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    (body, false)
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The data of events, or lines.
    fn data(&self) -> Vec<Value> {
        let is_lines = self.head.contains("application/x-ndjson");
        let lines = self.body.lines();
        let data = lines.filter_map(|line| if is_lines { Some(line) } else { line.strip_prefix("data: ") });
        data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
    }
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

/// Those of the events whose text at `pointer` is not empty, and all their texts.
fn tokens<'a>(data: &'a [Value], pointer: &str) -> (Vec<&'a Value>, String) {
    let text = |event: &Value| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let events: Vec<_> = data.iter().filter(|event| !text(event).is_empty()).collect();
    let all = events.iter().map(|event| text(event)).collect();
    (events, all)
}

const TEXT: &str = " w1 w2 w3 \"w4\" w5 w6 w7 wé8 w9 w10";

#[test]
fn each_api_streams_by_the_formulas() {
    let server = start(model(10));
    let messages = json!([{ "role": "user", "content": "a b c d" }]);
    let asked = [
        (CHAT, json!({ "model": "brunt-sim", "stream": true, "messages": messages }), "/choices/0/delta/content"),
        ("/v1/completions", json!({ "model": "brunt-sim", "stream": true, "prompt": "a b c d" }), "/choices/0/text"),
        (
            "/v1/messages",
            json!({ "model": "brunt-sim", "stream": true, "max_tokens": 100, "messages": messages }),
            "/delta/text",
        ),
        ("/api/chat", json!({ "model": "brunt-sim", "messages": messages }), "/message/content"),
        ("/api/generate", json!({ "model": "brunt-sim", "prompt": "a b c d" }), "/response"),
    ];
    for (path, body, pointer) in asked {
        let answer = ask(&server, path, &body);
        assert!(answer.status == 200 && answer.is_whole, "{path}: {answer:?}");
        let data = answer.data();
        let (events, text) = tokens(&data, pointer);
        assert_eq!((text.as_str(), events.len()), (TEXT, 10), "{path}");
        // 4 tokens at 20,000 a second, and one each 5 ms from then on.
        for (at, event) in events.iter().enumerate() {
            let due = number(event, "/due_ns") - number(event, "/received_ns");
            assert_eq!(due, 200_000 + 5 * MS * at as u64, "{path}");
            assert!(number(event, "/sent_ns") >= number(event, "/due_ns"), "{path}");
        }
    }
    assert!(
        server.totals().to_string().starts_with("5 requests for tokens: 20 prompt tokens (0 cached), 50 output tokens")
    );
}

#[test]
fn each_api_answers_whole_as_well() {
    let server = start(model(10));
    let messages = json!([{ "role": "user", "content": "a b c d" }]);
    let chat = ask(&server, CHAT, &json!({ "model": "brunt-sim", "messages": messages })).json();
    assert_eq!(chat["choices"][0]["message"]["content"], TEXT);
    assert_eq!((number(&chat, "/usage/prompt_tokens"), number(&chat, "/usage/completion_tokens")), (4, 10));
    assert_eq!(number(&chat, "/due_ns") - number(&chat, "/received_ns"), 45_200_000);
    let text =
        ask(&server, "/v1/completions", &json!({ "model": "brunt-sim", "max_tokens": 3, "prompt": [5, 6] })).json();
    assert_eq!(
        (&text["choices"][0]["text"], &text["choices"][0]["finish_reason"]),
        (&" w1 w2 w3".into(), &"length".into())
    );
    let message = json!({ "model": "brunt-sim", "max_tokens": 10, "system": "e", "messages": messages });
    let message = ask(&server, "/v1/messages", &message).json();
    assert_eq!((&message["content"][0]["text"], number(&message, "/usage/input_tokens")), (&TEXT.into(), 5));
    let body = json!({ "model": "brunt-sim", "stream": false, "messages": messages, "prompt": "a" });
    let line = ask(&server, "/api/chat", &body).json();
    assert_eq!(
        (&line["message"]["content"], &line["done"], number(&line, "/eval_count")),
        (&TEXT.into(), &true.into(), 10)
    );
    assert_eq!(ask(&server, "/api/generate", &body).json()["response"], TEXT);
}

#[test]
fn wrong_requests_get_errors_in_each_apis_shape() {
    let server = start(ModelConfig { api_key: Some("k".to_owned()), ..model(1) });
    let status = |path: &str, body: &str| {
        let answer = send(&server, path, body, "Authorization: Bearer k\r\n").answer();
        (answer.status, answer.json())
    };
    for body in ["", "{", "[]", r#"{"model":"brunt-sim"}"#, r#"{"model":"brunt-sim","messages":[],"prompt":"a","n":3}"#]
    {
        let (code, error) = status(CHAT, body);
        assert_eq!((code, &error["error"]["type"]), (400, &"invalid_request_error".into()), "{body}");
        let (code, error) = status("/v1/messages", body);
        assert_eq!(
            (code, &error["type"], &error["error"]["type"]),
            (400, &"error".into(), &"invalid_request_error".into())
        );
        let (code, error) = status("/api/generate", body);
        assert!(code == 400 && error["error"].is_string(), "{body}: {error}");
    }
    let other = r#"{"model":"other","messages":[],"prompt":"","max_tokens":1}"#;
    let (code, error) = status(CHAT, other);
    assert_eq!((code, &error["error"]["code"]), (404, &"model_not_found".into()));
    assert_eq!(status("/v1/messages", other).1["error"]["type"], "not_found_error");
    assert_eq!(status("/api/chat", other), (404, json!({ "error": "model 'other' not found" })));
    assert_eq!(status("/v1/embeddings", "{}").0, 404);
    assert_eq!(send(&server, CHAT, other, "").answer().status, 401);
    let anthropic = send(&server, "/v1/messages", other, "X-Api-Key: wrong\r\n").answer();
    assert_eq!((anthropic.status, &anthropic.json()["error"]["type"]), (401, &"authentication_error".into()));
    // Its `Content-Length` alone is too long: no body is sent.
    let mut stream = TcpStream::connect(server.socket_addr().unwrap()).unwrap();
    write!(stream, "POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 17000000\r\n\r\n").unwrap();
    let long = Asked(stream).answer();
    assert_eq!((long.status, &long.json()["error"]["type"]), (413, &"invalid_request_error".into()));
    assert!(server.totals().to_string().contains(" wrong"));
}

#[test]
fn requests_beyond_the_slots_wait_and_beyond_the_line_are_refused() {
    let server = start(ModelConfig { slots: 2, queue: Some(2), ..model(10) });
    let asked = (0..6).map(|_| {
        let asked = send(&server, CHAT, &chat(100).to_string(), "");
        // The head or the refusal comes at once, so the next is behind it.
        asked.0.peek(&mut [0]).unwrap();
        asked
    });
    let asked: Vec<_> = asked.collect();
    let answers: Vec<_> = asked.into_iter().map(Asked::answer).collect();
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
    assert_eq!(answers[5].json()["error"]["code"], "rate_limit_exceeded");
    let dues = answers[..4].iter().map(|answer| {
        let data = answer.data();
        let (events, _) = tokens(&data, "/choices/0/delta/content");
        (number(events[0], "/due_ns"), number(events[9], "/due_ns"))
    });
    let dues: Vec<_> = dues.collect();
    // The third begins when the first is over, the fourth when the second is: 100 tokens are read in 5 ms.
    assert_eq!((dues[2].0 - dues[0].1, dues[3].0 - dues[1].1), (5 * MS, 5 * MS));
}

#[test]
fn a_client_that_goes_away_makes_room_at_once() {
    let server = start(ModelConfig { slots: 1, ..model(10_000) });
    for fields in [json!({}), json!({ "stream": false })] {
        let mut body = chat(10);
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        // The first would take 50 seconds and the second waits for it; both clients leave.
        let (first, second) = (send(&server, CHAT, &body.to_string(), ""), send(&server, CHAT, &body.to_string(), ""));
        std::thread::sleep(Duration::from_millis(30));
        drop((first, second));
    }
    let begin = Instant::now();
    let mut body = chat(10);
    body["max_tokens"] = 1.into();
    assert_eq!(ask(&server, CHAT, &body).status, 200);
    assert!(begin.elapsed() < Duration::from_secs(30), "it waited for those that had left");
    assert!(server.totals().to_string().ends_with("; 4 left by their clients"), "{}", server.totals());
}

#[test]
fn prompts_that_begin_as_an_earlier_one_start_sooner() {
    let server = start(ModelConfig { prefix_cache: true, ..model(2) });
    let heard = |words: usize| {
        let data = ask(&server, CHAT, &chat(words)).data();
        let usage = data.iter().find(|event| event["usage"].is_object()).unwrap();
        let (events, _) = tokens(&data, "/choices/0/delta/content");
        let first = number(events[0], "/due_ns") - number(events[0], "/received_ns");
        (number(usage, "/usage/prompt_tokens_details/cached_tokens"), first)
    };
    assert_eq!(heard(1000), (0, 50 * MS));
    // 62 blocks of 16 tokens are 992, so 8 are read, in 0.4 ms.
    assert_eq!(heard(1000), (992, 400_000));
    assert_eq!(heard(2000), (992, 1008 * 50_000));
}

#[test]
fn each_fault_is_in_the_apis_way() {
    let faulty = |faults: Faults| start(ModelConfig { faults, ..model(20) });
    let none = ModelConfig::default().faults;
    let anthropic = json!({ "model": "brunt-sim", "stream": true, "max_tokens": 20, "messages": [] });
    let ollama = json!({ "model": "brunt-sim", "messages": [] });
    let all = [(CHAT, chat(1)), ("/v1/messages", anthropic), ("/api/chat", ollama)];

    let server = faulty(Faults { error_in_stream: 1.0, ..none });
    for (path, body) in &all {
        let answer = ask(&server, path, body);
        let errors = answer.data().iter().filter(|event| event.get("error").is_some()).count();
        assert!(answer.status == 200 && answer.is_whole && errors == 1, "{path}: {answer:?}");
    }
    let server = faulty(Faults { cut: 1.0, ..none });
    for (path, body) in &all {
        let answer = ask(&server, path, body);
        assert!(answer.status == 200 && !answer.is_whole && !answer.data().is_empty(), "{path}: {answer:?}");
        let mut body = body.clone();
        body["stream"] = false.into();
        let answer = ask(&server, path, &body);
        assert!(answer.status == 200 && !answer.is_whole && answer.body.len() > 20, "{path}: {answer:?}");
    }
    for (refuse_status, expected) in [(429, [429, 429, 429]), (503, [503, 529, 503])] {
        let server = faulty(Faults { refuse: 1.0, refuse_status, ..none });
        let statuses: Vec<_> = all.iter().map(|(path, body)| ask(&server, path, body).status).collect();
        assert_eq!(statuses, expected);
    }
    let server = faulty(Faults { stall: Some((Duration::from_millis(300), 1.0)), ..none });
    let data = ask(&server, CHAT, &chat(1)).data();
    let (events, _) = tokens(&data, "/choices/0/delta/content");
    let gaps: Vec<_> = events.windows(2).map(|two| number(two[1], "/due_ns") - number(two[0], "/due_ns")).collect();
    assert_eq!(gaps.iter().filter(|gap| **gap == 305 * MS).count(), 1, "{gaps:?}");
    assert_eq!(gaps.iter().filter(|gap| **gap == 5 * MS).count(), 18, "{gaps:?}");
}

#[test]
fn streams_lack_and_have_what_they_are_told_to() {
    let quirks = Quirks { no_done: true, no_usage: true, reject: vec!["n".to_owned()], ..Quirks::default() };
    let server = start(ModelConfig { quirks, ..model(3) });
    let answer = ask(&server, CHAT, &chat(1));
    assert!(answer.is_whole && !answer.body.contains("[DONE]") && !answer.body.contains("usage"), "{answer:?}");
    assert!(!answer.body.contains("_ns"), "without --stamps an answer has no times");
    let mut body = chat(1);
    body["n"] = 1.into();
    assert_eq!(ask(&server, CHAT, &body).status, 400);
    let quirks = Quirks { comments: Some(Duration::from_millis(10)), ..Quirks::default() };
    let server = start(ModelConfig { quirks, ..model(3) });
    // 2000 tokens are read in 100 ms.
    let comments = ask(&server, CHAT, &chat(2000)).body.matches(": keep-alive\n\n").count();
    assert!((1..=9).contains(&comments), "{comments}");
    let answers = Answers { per_chunk: 3, burst: 2, reasoning: 4, tokens: 10 };
    let server = start(ModelConfig { answers, ..model(10) });
    let data = ask(&server, CHAT, &chat(1)).data();
    let (reasoning, thought) = tokens(&data, "/choices/0/delta/reasoning_content");
    let (content, said) = tokens(&data, "/choices/0/delta/content");
    assert_eq!((reasoning.len(), content.len(), thought + &said), (2, 2, TEXT.to_owned()));
    let due = |event: &Value| (number(event, "/due_ns") - number(event, "/received_ns")) / 10_000;
    // One token of the prompt, 0.05 ms; chunks end with tokens 3, 4, 7 and 10, and leave in twos.
    assert_eq!([reasoning, content].concat().into_iter().map(due).collect::<Vec<_>>(), [1505, 1505, 4505, 4505]);
}

#[test]
fn a_thousand_streams_at_once_have_their_tokens_in_order() {
    let speed = Speed { decode: 4.0, ..ModelConfig::default().speed };
    let server = start(ModelConfig { slots: 1000, speed, ..model(5) });
    let body = chat(10).to_string();
    let asked: Vec<_> = (0..1000).map(|_| send(&server, CHAT, &body, "")).collect();
    let mut last = 0;
    let mut first_due = u64::MAX;
    for asked in asked {
        let answer = asked.answer();
        let data = answer.data();
        let (events, text) = tokens(&data, "/choices/0/delta/content");
        assert!(answer.is_whole && text == " w1 w2 w3 \"w4\" w5", "{answer:?}");
        let received = number(events[0], "/received_ns");
        let mut before = 0;
        for (at, event) in events.iter().enumerate() {
            let (due, sent) = (number(event, "/due_ns"), number(event, "/sent_ns"));
            assert_eq!(due - received, 500_000 + 250 * MS * at as u64);
            assert!(sent >= due && sent > before);
            before = sent;
        }
        first_due = first_due.min(number(events[0], "/due_ns"));
        last = last.max(number(events[4], "/due_ns"));
    }
    assert!(last - first_due >= 1000 * MS);
    let said = server.totals().to_string();
    assert_eq!(said, "1000 requests for tokens: 10000 prompt tokens (0 cached), 5000 output tokens");
}

#[test]
fn brunt_counts_its_tokens_over_every_transport() {
    for (tls, http) in [(false, "1.1"), (true, "1.1"), (false, "2"), (true, "2")] {
        let config = server::ServerConfig { tls: tls.then(Tls::default), ..server::ServerConfig::default() };
        let server = Server::start_model(config, model(10)).unwrap();
        let url = format!("{}v1/chat/completions", server.url());
        let body = json!({ "model": "brunt-sim", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
        let mut args = vec!["-c", "4", "-n", "40", "--http", http, "--messages", "sse", "--last-message", "[DONE]"];
        let (body, dir) = (body.to_string(), Directory::new());
        let certificate = server.certificate_pem().map(|pem| dir.file("ca.pem", pem));
        args.extend(certificate.iter().flat_map(|path| ["--cacert", path.as_str()]));
        let report = report(0, [&args[..], &["--json", &body, &url]].concat());
        report.assert_all(40, 200);
        // A role, ten tokens, a finish reason.
        assert_eq!(report.number("/outcomes/messages/count"), 40 * 12);
        assert!(report.number("/times/last_message/min_ns") >= 45 * MS);
    }
}

#[test]
fn streams_that_are_cut_fail_over_every_version_of_http() {
    let faults = Faults { cut: 1.0, ..ModelConfig::default().faults };
    let server = start(ModelConfig { faults, ..model(5) });
    let url = format!("{}v1/chat/completions", server.url());
    let body = chat(1).to_string();
    for http in ["1.1", "2"] {
        let report = report(3, ["-c", "1", "-n", "6", "--http", http, "--messages", "sse", "--json", &body, &url]);
        assert_eq!(report.failures().get("closed"), Some(&6), "{http}: {:?}", report.failures());
    }
}

#[test]
fn the_log_of_messages_has_the_times_of_the_stamps() {
    let directory = Directory::new();
    let path = directory.path("events");
    let default = model(7);
    let answers = Answers { per_chunk: 3, ..default.answers };
    let server = start(ModelConfig { answers, message_log: Some(path.clone().into()), ..default });
    for number in 0..2 {
        let answer = ask(&server, CHAT, &chat(5));
        let stamps = answer.body.lines().filter_map(|line| line.strip_prefix("data: {")).filter_map(|data| {
            let event: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
            let has_text = event["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty());
            has_text.then(|| event["sent_ns"].to_string())
        });
        let line = |(sent, tokens)| format!("{number},{sent},{tokens}");
        let stamps: Vec<String> = stamps.zip([3, 3, 1]).map(line).collect();
        let log = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = log.lines().skip(3 * number).collect();
        assert_eq!((lines, stamps.len()), (stamps.iter().map(String::as_str).collect(), 3));
    }
}

#[test]
fn figures_that_make_no_sense_are_refused() {
    let refused =
        |server: server::ServerConfig, model: ModelConfig| Server::start_model(server, model).unwrap_err().to_string();
    let two = server::ServerConfig { workers: 2, ..server::ServerConfig::default() };
    assert_eq!(refused(two, ModelConfig::default()), "workers: expected 1, got 2");
    let none = ModelConfig { slots: 0, ..ModelConfig::default() };
    assert_eq!(refused(server::ServerConfig::default(), none), "slots: expected 1 to 65536, got 0");
    let nowhere = || Some("/nowhere/log".into());
    for model in [
        ModelConfig { log: nowhere(), ..ModelConfig::default() },
        ModelConfig { message_log: nowhere(), ..ModelConfig::default() },
    ] {
        assert!(refused(server::ServerConfig::default(), model).starts_with("cannot create the log: "));
    }
}
