//! Answers that come as server-sent events: plain ones, and the tokens of a language model that makes them up.
//!
//! `/v1/chat/completions` has the shape of OpenAI's API as far as load needs it: with `"stream": true` each token is an event, the
//! last of which says so, and `data: [DONE]` follows; otherwise all tokens come in one JSON document, when the last would have.

use std::time::Duration;

use serde_json::{Value, json};

use super::head::{Persistence, reason};
use crate::service::{Delay, Tokens};

/// The longest accepted request for tokens, in bytes.
pub(super) const MAX_BODY: usize = 1024 * 1024;
/// The most tokens or events of an answer.
pub(super) const MOST: u64 = 1_000_000;
/// The time between plain events unless the query sets it, in milliseconds.
const USUAL_GAP_MS: u64 = 100;
/// The words that tokens are made from.
const WORDS: [&str; 16] = [
    "The", " load", " was", " steady", ",", " the", " answers", " came", " one", " by", " one", ",", " and", " none",
    " was", " lost",
];

/// The content of the events of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventContent {
    /// Their number.
    Numbers,
    /// A token each.
    Tokens,
}

/// An answer under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Events {
    says: EventContent,
    /// The number of events, and of those already rendered.
    count: u64,
    done: u64,
    gap: Delay,
    /// Whether each event is a chunk; if not, the connection ends after the last.
    chunked: bool,
}

impl Events {
    /// The delay from one event to the next.
    pub(super) fn gap(&self) -> Delay {
        self.gap
    }

    /// Appends the next to `out`; true when that was the last.
    pub(super) fn render(&mut self, out: &mut Vec<u8>) -> bool {
        let is_last = self.done + 1 >= self.count;
        if self.done < self.count {
            let event = match self.says {
                EventContent::Numbers => format!("id: {}\ndata: {{\"n\":{}}}\n\n", self.done, self.done),
                EventContent::Tokens => format!("data: {}\n\n", token_event(self.done, is_last)),
            };
            self.append(&event, out);
            self.done += 1;
        }
        if is_last {
            if self.says == EventContent::Tokens {
                self.append("data: [DONE]\n\n", out);
            }
            if self.chunked {
                out.extend_from_slice(b"0\r\n\r\n");
            }
        }
        is_last
    }

    fn append(&self, event: &str, out: &mut Vec<u8>) {
        if self.chunked {
            out.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
        } else {
            out.extend_from_slice(event.as_bytes());
        }
    }
}

fn word(at: u64) -> &'static str {
    WORDS.get((at % WORDS.len() as u64) as usize).copied().unwrap_or_default()
}

fn token_event(at: u64, is_last: bool) -> Value {
    json!({
        "id": "chatcmpl-brunt",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "brunt",
        "choices": [{
            "index": 0,
            "delta": { "content": word(at) },
            "finish_reason": if is_last { Value::from("stop") } else { Value::Null },
        }],
    })
}

/// A request for events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// This many plain events, with the delays before the first and between them.
    Plain { count: u64, first: Duration, gap: Duration },
    /// Tokens, for a request with this method.
    Chat { is_post: bool },
}

impl Request {
    /// This many plain events; the query sets their delays.
    pub(super) fn plain(count: u64, query: &[u8]) -> Option<Self> {
        let number = |name: &str| {
            let text = std::str::from_utf8(query).ok()?;
            let value = text.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
            value.parse::<u64>().ok().filter(|ms| *ms <= crate::service::MAX_DELAY.as_millis() as u64)
        };
        let has = |name: &str| query.split(|byte| *byte == b'&').any(|pair| pair.starts_with(name.as_bytes()));
        if has("gap=") && number("gap").is_none() || has("first=") && number("first").is_none() {
            return None;
        }
        let gap = number("gap").unwrap_or(USUAL_GAP_MS);
        let first = number("first").unwrap_or(gap);
        (count <= MOST).then(|| Self::Plain {
            count,
            first: Duration::from_millis(first),
            gap: Duration::from_millis(gap),
        })
    }
}

/// The answer to a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// This document, after a delay.
    Whole { status: u16, body: String, after: Duration },
    /// These events, the first after a delay.
    Stream { events: Events, after: Duration },
}

/// Answers a request for events; `draw` draws the length of a delay.
pub(super) fn answer(
    request: &Request,
    body: &[u8],
    tokens: &Tokens,
    chunked: bool,
    mut draw: impl FnMut(Delay) -> Duration,
) -> Reply {
    let is_post = match *request {
        Request::Plain { count, first, gap } => {
            let gap = Delay::Fixed(gap);
            return Reply::Stream {
                events: Events { says: EventContent::Numbers, count, done: 0, gap, chunked },
                after: first,
            };
        }
        Request::Chat { is_post } => is_post,
    };
    let wrong = |status: u16, message: &str| {
        let error = json!({ "error": { "message": message, "type": "invalid_request_error" } });
        Reply::Whole { status, body: error.to_string(), after: Duration::ZERO }
    };
    if !is_post {
        return wrong(405, "POST a request for a chat completion");
    }
    let Ok(asked) = serde_json::from_slice::<Value>(body) else { return wrong(400, "the body must be JSON") };
    let count = match asked.get("max_completion_tokens").or_else(|| asked.get("max_tokens")) {
        None | Some(Value::Null) => tokens.count,
        Some(most) => match most.as_u64().filter(|most| (1..=MOST).contains(most)) {
            Some(most) => most,
            None => return wrong(400, "max_tokens must be from 1 to 1000000"),
        },
    };
    let after = draw(tokens.first);
    if asked.get("stream") == Some(&Value::Bool(true)) {
        return Reply::Stream {
            events: Events { says: EventContent::Tokens, count, done: 0, gap: tokens.gap, chunked },
            after,
        };
    }
    let content: String = (0..count).map(word).collect();
    let prompt = asked.get("messages").map_or(0, |messages| messages.to_string().len() as u64 / 4);
    let body = json!({
        "id": "chatcmpl-brunt",
        "object": "chat.completion",
        "created": 0,
        "model": "brunt",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": content }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count },
    });
    // As many draws as the stream would make, but for very long ones, whose sum is their mean's.
    let gaps = (count - 1).min(1000);
    let drawn: Duration = (0..gaps).map(|_| draw(tokens.gap)).sum();
    let rest = tokens.gap.mean().saturating_mul(u32::try_from(count - 1 - gaps).unwrap_or(u32::MAX));
    Reply::Whole { status: 200, body: body.to_string(), after: after + drawn + rest }
}

/// The head of a JSON document of this many bytes.
pub(super) fn document_head(status: u16, length: usize, persistence: Persistence) -> String {
    let (reason, connection) = (reason(status), persistence.header());
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{connection}\r\n"
    )
}

/// The head of a stream with this content type.
pub(super) fn stream_head(content_type: &str, chunked: bool, persistence: Persistence) -> String {
    let coding = if chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nCache-Control: no-cache\r\n{coding}{}\r\n",
        persistence.header()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn tokens() -> Tokens {
        Tokens { first: Delay::Fixed(MS(200)), gap: Delay::Fixed(MS(20)), count: 3 }
    }

    fn chat(body: &str) -> Reply {
        let drawn = |delay: Delay| delay.mean();
        answer(&Request::Chat { is_post: true }, body.as_bytes(), &tokens(), false, drawn)
    }

    fn events(mut events: Events) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let mut out = Vec::new();
            let is_last = events.render(&mut out);
            all.push(String::from_utf8(out).unwrap());
            if is_last {
                return all;
            }
        }
    }

    #[test]
    fn a_stream_is_tokens_and_an_end() {
        let Reply::Stream { events: stream, after } = chat(r#"{"stream": true}"#) else { panic!("a stream") };
        assert_eq!((after, stream.gap()), (MS(200), Delay::Fixed(MS(20))));
        let all = events(stream);
        assert_eq!(all.len(), 3);
        assert!(all[0].contains(r#""delta":{"content":"The"}"#) && all[0].contains(r#""finish_reason":null"#));
        assert!(all[2].contains(r#""finish_reason":"stop""#) && all[2].ends_with("\n\ndata: [DONE]\n\n"));
        let Reply::Stream { events: stream, .. } = chat(r#"{"stream": true, "max_tokens": 20}"#) else { panic!() };
        assert_eq!(events(stream).len(), 20);
    }

    #[test]
    fn a_whole_answer_comes_when_its_last_token_would() {
        let Reply::Whole { status, body, after } = chat(r#"{"messages": [{"role": "user", "content": "hi"}]}"#) else {
            panic!("a document")
        };
        assert_eq!((status, after), (200, MS(240)));
        let document: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(document["choices"][0]["message"]["content"], "The load was");
        assert_eq!(document["usage"]["completion_tokens"], 3);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (body, status) in [("", 400), ("{", 400), (r#"{"max_tokens": 0}"#, 400), (r#"{"max_tokens": "x"}"#, 400)] {
            assert!(matches!(chat(body), Reply::Whole { status: got, .. } if got == status), "{body}");
        }
        let reply = answer(&Request::Chat { is_post: false }, b"{}", &tokens(), true, |delay| delay.mean());
        assert!(matches!(reply, Reply::Whole { status: 405, .. }));
        assert_eq!(Request::plain(MOST + 1, b""), None);
        assert_eq!(Request::plain(1, b"gap=x"), None);
    }

    #[test]
    fn plain_events_are_numbered_and_chunked() {
        let request = Request::plain(2, b"gap=5").unwrap();
        let Reply::Stream { events: stream, after } = answer(&request, b"", &tokens(), true, |delay| delay.mean())
        else {
            panic!("a stream")
        };
        assert_eq!((after, stream.gap()), (MS(5), Delay::Fixed(MS(5))));
        assert_eq!(
            events(stream),
            [
                "16\r\nid: 0\ndata: {\"n\":0}\n\n\r\n".to_owned(),
                "16\r\nid: 1\ndata: {\"n\":1}\n\n\r\n0\r\n\r\n".to_owned()
            ]
            .map(|text| text.replace("16\r\n", &format!("{:x}\r\n", "id: 0\ndata: {\"n\":0}\n\n".len())))
        );
        let request = Request::plain(0, b"first=0").unwrap();
        let Reply::Stream { events: none, .. } = answer(&request, b"", &tokens(), true, |delay| delay.mean()) else {
            panic!("a stream")
        };
        assert_eq!(events(none), ["0\r\n\r\n"]);
    }
}
