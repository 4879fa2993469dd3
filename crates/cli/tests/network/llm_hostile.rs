//! Streams of language models that break rules, in every API: each ends by a name, or has the figures of what came.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::llm::{number, own};
use crate::program::{brunt, done};
use crate::report::Report;

/// How an API says things.
#[derive(Clone, Copy)]
struct Api {
    flag: &'static str,
    /// Lines of JSON, and no server-sent events.
    has_lines: bool,
    /// The JSON of an event around a text, which stands in the place of `@`.
    text: &'static str,
    reasoning: &'static str,
    tool: &'static str,
    /// The events behind the last text, with the number of tokens in the place of `@`.
    end: &'static [&'static str],
    /// The same without any count.
    end_without_usage: &'static [&'static str],
    /// The event that ends a stream.
    last: &'static str,
    error: &'static str,
}

const CHAT: Api = Api {
    flag: "chat",
    has_lines: false,
    text: r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}],"usage":null}"#,
    reasoning: r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning":"@","reasoning_content":"@"},"finish_reason":""}]}"#,
    tool: r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"@"}}]},"index":0}]}"#,
    end: &[
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":null,"usage":{"prompt_tokens":5,"input_tokens":5,"completion_tokens":@,"output_tokens":@}}"#,
    ],
    end_without_usage: &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{}}"#],
    last: "[DONE]",
    error: r#"{"object":"error","message":"out of memory","code":500}"#,
};

const COMPLETIONS: Api = Api {
    flag: "completions",
    text: r#"{"choices":[{"text":"@","index":0,"logprobs":null,"finish_reason":null}]}"#,
    reasoning: "",
    tool: "",
    end: &[
        r#"{"choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"completion_tokens":@.0,"prompt_tokens":5.0}}"#,
    ],
    end_without_usage: &[r#"{"choices":[{"text":"","finish_reason":"length"}]}"#],
    error: r#"{"error":"out of memory"}"#,
    ..CHAT
};

const ANTHROPIC: Api = Api {
    flag: "anthropic",
    text: r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"@"}}"#,
    reasoning: r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"@"}}"#,
    tool: r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"@"}}"#,
    end: &[
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":@}}"#,
    ],
    end_without_usage: &[r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#],
    last: r#"{"type":"message_stop"}"#,
    error: r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ..CHAT
};

const OLLAMA: Api = Api {
    flag: "ollama",
    has_lines: true,
    text: r#"{"model":"m","message":{"role":"assistant","content":"@"},"done":false}"#,
    reasoning: r#"{"message":{"role":"assistant","content":"","thinking":"@"},"done":false}"#,
    tool: r#"{"message":{"content":"","tool_calls":[{"function":{"name":"@","arguments":{}}}]},"done":false}"#,
    end: &[],
    end_without_usage: &[],
    last: r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":@}"#,
    error: r#"{"error":"out of memory"}"#,
};

const GENERATE: Api = Api {
    flag: "ollama-generate",
    text: r#"{"response":"@","done":false}"#,
    reasoning: r#"{"response":"","thinking":"@","done":false}"#,
    tool: "",
    last: r#"{"response":"","done":true,"done_reason":"length","prompt_eval_count":5,"eval_count":@}"#,
    ..OLLAMA
};

impl Api {
    fn event(self, json: &str) -> String {
        if self.has_lines { format!("{json}\n") } else { format!("data: {json}\n\n") }
    }

    fn says(self, shape: &str, texts: &[&str]) -> String {
        texts.iter().map(|text| self.event(&shape.replace('@', text))).collect()
    }

    /// What follows the texts, up to the last event; with so many tokens by the server, if it counts.
    fn end(self, tokens: Option<u64>) -> String {
        let shapes = if tokens.is_some() { self.end } else { self.end_without_usage };
        let count = tokens.map_or("null".to_owned(), |tokens| tokens.to_string());
        shapes.iter().map(|shape| self.event(&shape.replace('@', &count))).collect()
    }

    fn last(self, tokens: Option<u64>) -> String {
        self.event(&self.last.replace('@', &tokens.map_or("null".to_owned(), |tokens| tokens.to_string())))
    }

    /// A stream of these texts, with so many tokens by the server.
    fn stream(self, texts: &[&str], tokens: Option<u64>) -> String {
        [self.says(self.text, texts), self.end(tokens), self.last(tokens)].concat()
    }
}

/// The bytes of an answer, in pieces that are sent one by one.
#[derive(Default)]
struct Answer {
    head: &'static str,
    pieces: Vec<Vec<u8>>,
    /// What each piece but the first waits for.
    pause: Duration,
}

impl Answer {
    fn of(body: impl Into<Vec<u8>>) -> Self {
        Self { pieces: vec![body.into()], ..Self::default() }
    }

    fn with_head(self, head: &'static str) -> Self {
        Self { head, ..self }
    }
}

/// Answers requests for streams so, and others by a whole answer without a count.
fn serve(api: Api, answer: Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("llm://{}/", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            // A client that has seen enough closes the connection.
            thread::spawn(move || drop(talk(api, &stream, &answer)));
        }
    });
    url
}

fn talk(api: Api, stream: &TcpStream, answer: &Answer) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut requests, mut out) = (BufReader::new(stream), stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while requests.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length];
        requests.read_exact(&mut body)?;
        if !String::from_utf8(body).unwrap().contains("\"stream\":true") {
            write!(out, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}")?;
            continue;
        }
        let kind = if api.has_lines { "application/x-ndjson" } else { "text/event-stream; charset=utf-8" };
        let head = if answer.head.is_empty() { format!("Content-Type: {kind}\r\n") } else { answer.head.to_owned() };
        write!(out, "HTTP/1.1 200 OK\r\n{head}Transfer-Encoding: chunked\r\n\r\n")?;
        // A chunk without bytes would end the answer.
        for (at, piece) in answer.pieces.iter().filter(|piece| !piece.is_empty()).enumerate() {
            thread::sleep(if at > 0 { answer.pause } else { Duration::ZERO });
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            out.write_all(&chunk)?;
        }
        out.write_all(b"0\r\n\r\n")?;
    }
}

/// Three answers, to one of these exit statuses.
fn run_to(statuses: &[i32], api: Api, answer: Answer) -> Report {
    let url = serve(api, answer);
    let load = ["-c", "1", "-n", "3", "--output-tokens", "9", "--timeout", "20s", &url];
    let done = done(&mut brunt([&["--api", api.flag, "--model", "m", "--format", "json"], &load[..]].concat()));
    assert!(done.status.is_some_and(|status| statuses.contains(&status)), "{}: {}", api.flag, done.stderr);
    Report::parse(&done)
}

/// Three whole answers.
fn run(api: Api, answer: Answer) -> Report {
    run_to(&[0], api, answer)
}

fn failed(api: Api, answer: Answer) -> String {
    // 3 if no answer had come to its end.
    let run = run_to(&[1, 3], api, answer);
    assert_eq!(own(&run, "attainment")["ratio"], 0.0, "{}", api.flag);
    let reasons = run.reasons();
    assert!(reasons.len() == 1 && reasons.values().all(|count| *count == 3), "{}: {reasons:?}", api.flag);
    reasons.into_keys().next().unwrap()
}

const FOUR: [&str; 4] = ["a ", "bc ", "\\u00e9 ", "\u{1f980}"];

/// What rules are broken whatever the API.
fn streams_break_rules(api: Api) {
    let flag = api.flag;
    let figures = |run: &Report, events: u64, tokens: u64| {
        run.assert_all(3, 200);
        assert_eq!(number(run, "ttft", "count"), 3.0, "{flag}");
        assert_eq!(number(run, "chunk_gap", "count"), 3.0 * (events - 1) as f64, "{flag}");
        assert_eq!(number(run, "output_tokens", "sum").round(), 3.0 * tokens as f64, "{flag}");
    };
    // Every byte is a chunk of its own.
    let bytes = api.stream(&FOUR, Some(4)).into_bytes();
    let cut = Answer { pieces: bytes.iter().map(|byte| vec![*byte]).collect(), ..Answer::default() };
    figures(&run(api, cut), 4, 4);
    // The last event is missing: in Ollama's API nothing else says that the model has finished.
    let without_last = Answer::of([api.says(api.text, &FOUR), api.end(Some(4))].concat());
    if api.has_lines {
        assert!(failed(api, without_last).starts_with("ended_early: the stream ended before"), "{flag}");
    } else {
        figures(&run(api, without_last), 4, 4);
    }
    // Nothing is counted: an event is a token.
    let uncounted = run(api, Answer::of(api.stream(&FOUR, None)));
    figures(&uncounted, 4, 4);
    assert_eq!(own(&uncounted, "tokens_estimated")["ratio"], 1.0, "{flag}");
    // Fewer tokens than events; more than bytes; none at all; and a number beyond all measure.
    figures(&run(api, Answer::of(api.stream(&FOUR, Some(1)))), 4, 1);
    for (lie, believed) in [(1000, 1000), (0, 4)] {
        let lied = run(api, Answer::of(api.stream(&FOUR, Some(lie))));
        figures(&lied, 4, believed);
        assert_eq!(number(&lied, "usage_odd", "sum"), 3.0, "{flag}: {lie}");
    }
    let boundless = run(api, Answer::of(api.stream(&FOUR, Some(u64::MAX))));
    assert_eq!(number(&boundless, "usage_odd", "sum"), 3.0, "{flag}");
    // Two counts: the later one is right.
    if !api.has_lines {
        let twice = [api.says(api.text, &FOUR), api.end(Some(2)), api.end(Some(4)), api.last(None)].concat();
        figures(&run(api, Answer::of(twice)), 4, 4);
    }
    // An event of ten million bytes.
    let long = "x".repeat(10_000_000);
    figures(&run(api, Answer::of(api.stream(&["a", &long], Some(2)))), 2, 2);
    for (what, name) in [
        (
            Answer::of([api.says(api.text, &FOUR), api.event(api.error), api.last(Some(4))].concat()),
            "exception: the server reports",
        ),
        (
            Answer::of([api.says(api.text, &FOUR), api.event("{\"choices\":[")].concat()),
            "protocol: an answer, or an event",
        ),
        (Answer::of(api.says(api.text, &FOUR)), "ended_early: the stream ended before"),
        (Answer::of(""), "ended_early: the stream ended without a word"),
        (
            Answer::of(
                [
                    api.says(api.text, &["a"]).as_bytes(),
                    &api.says(api.text, &["\u{1f980}"]).as_bytes()[..api.text.len() / 2 + 8],
                ]
                .concat(),
            ),
            "ended_early",
        ),
    ] {
        let said = failed(api, what);
        assert!(said.starts_with(name), "{flag}: {said} for {name}");
    }
    // Half a character within an event.
    let mut halved = api.stream(&["a", "\u{1f980}"], Some(2)).into_bytes();
    let place = halved.windows(4).position(|bytes| bytes == "\u{1f980}".as_bytes()).unwrap();
    halved[place + 2] = b' ';
    assert!(failed(api, Answer::of(halved)).starts_with("protocol: an answer, or an event"), "{flag}");
    // Halves of it in two events, as escapes, are text.
    figures(&run(api, Answer::of(api.stream(&["\\ud83e", "\\udd80"], Some(2)))), 2, 2);
    // Only reasoning, and only a call.
    for (shape, figure) in [(api.reasoning, "ttft"), (api.tool, "finish_tool")] {
        if !shape.is_empty() {
            let end = [api.end(Some(3)), api.last(Some(3))].concat().replace("\"stop\"", "\"tool_calls\"");
            let lone =
                run(api, Answer::of([api.says(shape, &["a", "bc"]), end.replace("end_turn", "tool_use")].concat()));
            figures(&lone, 2, 3);
            assert_eq!(number(&lone, figure, "count"), 3.0, "{flag}");
        }
    }
    // A page, and bytes that are packed.
    let page = Answer::of("<html>\n<p>Sign in</p>\n\n").with_head("Content-Type: text/html\r\n");
    let said = failed(api, page);
    assert!(
        said.starts_with(if api.has_lines { "protocol: an answer, or" } else { "protocol: the answer is no stream" }),
        "{flag}: {said}"
    );
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(api.stream(&FOUR, Some(4)).as_bytes()).unwrap();
    let head = "Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n";
    let said = failed(api, Answer::of(packed.finish().unwrap()).with_head(head));
    assert!(said.starts_with("protocol: "), "{flag}: {said}");
}

#[test]
fn of_openais_chat() {
    streams_break_rules(CHAT);
}

#[test]
fn of_openais_completions() {
    streams_break_rules(COMPLETIONS);
}

#[test]
fn of_anthropics_messages() {
    streams_break_rules(ANTHROPIC);
}

#[test]
fn of_ollamas_chat() {
    streams_break_rules(OLLAMA);
}

#[test]
fn of_ollamas_generate() {
    streams_break_rules(GENERATE);
}

#[test]
fn comments_come_before_the_first_token_and_keep_nothing_alive() {
    for api in [CHAT, COMPLETIONS, ANTHROPIC] {
        let comments = vec![b": still here\n\n".to_vec(); 12];
        let pieces = [comments, vec![api.stream(&FOUR, Some(4)).into_bytes()]].concat();
        let late = run(api, Answer { pieces, pause: Duration::from_millis(50), ..Answer::default() });
        assert!(number(&late, "ttft", "min") >= 600.0, "{}", api.flag);
        assert_eq!(number(&late, "output_tokens", "sum"), 12.0);
    }
}

#[test]
fn choices_of_one_answer_are_one_stream() {
    for (api, shape) in [
        (CHAT, r#"{"choices":[{"delta":{"content":"@"},"index":1}]}"#),
        (COMPLETIONS, r#"{"choices":[{"text":"@","index":1}]}"#),
    ] {
        let both: String =
            ["a", "b", "c"].iter().map(|text| api.says(api.text, &[text]) + &api.says(shape, &[text])).collect();
        let ends = |index: u32| {
            api.event(&format!(r#"{{"choices":[{{"index":{index},"delta":{{}},"text":"","finish_reason":"stop"}}]}}"#))
        };
        let usage = api.event(r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}"#);
        let whole = run(api, Answer::of(format!("{both}{}{}{usage}data: [DONE]\n\n", ends(0), ends(1))));
        whole.assert_all(3, 200);
        assert_eq!((number(&whole, "output_tokens", "sum"), number(&whole, "chunk_gap", "count")), (18.0, 15.0));
        assert_eq!(number(&whole, "output_length", "max"), 6.0);
        let one_of_two = failed(api, Answer::of(format!("{both}{}{usage}", ends(0))));
        assert!(one_of_two.starts_with("ended_early"), "{one_of_two}");
    }
}
