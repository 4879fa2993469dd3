//! The bodies of requests, in each API's words. Fields that play no part here are skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de::Unexpected};
use serde_json::value::RawValue;

use super::endpoint::Endpoint;
use super::refusal::{Reason, Refusal};
use super::token_words::Part;

/// The most tokens that a request may ask for.
pub(super) const MOST_TOKENS: u64 = 131_072;

/// Which usage an OpenAI stream tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Usage {
    #[default]
    None,
    /// In a chunk of its own behind the others (`include_usage`).
    AtEnd,
    /// With each chunk as well (vLLM's `continuous_usage_stats`).
    Continuous,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) prompt: Vec<Part<'a>>,
    pub(super) limit: Option<u64>,
    pub(super) ignores_end: bool,
    pub(super) streams: bool,
    pub(super) usage: Usage,
}

/// The texts of a prompt: a string, a list of parts, messages. Of objects, `text` and `content` count.
#[derive(Debug, Default)]
struct Texts<'a> {
    parts: Vec<Part<'a>>,
    is_list: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Texts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut texts = Self::default();
        let collect = Collect { parts: &mut texts.parts, is_list: Some(&mut texts.is_list), marker: PhantomData };
        collect.deserialize(deserializer)?;
        Ok(texts)
    }
}

/// Appends the texts of any value to `parts`.
struct Collect<'c, 'a, 'de> {
    parts: &'c mut Vec<Part<'a>>,
    is_list: Option<&'c mut bool>,
    marker: PhantomData<&'de ()>,
}

impl<'de: 'a, 'a> DeserializeSeed<'de> for Collect<'_, 'a, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Collect<'_, 'a, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a list of tokens, or a list of parts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.parts.push(Part::Text(text.into()));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.parts.push(Part::Text(text.to_owned().into()));
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<(), E> {
        match self.parts.last_mut() {
            Some(Part::Ids(ids)) if self.is_list.is_none() => ids.push(id),
            _ if self.is_list.is_none() => self.parts.push(Part::Ids(vec![id])),
            _ => return Err(E::invalid_type(Unexpected::Unsigned(id), &self)),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if let Some(is_list) = self.is_list {
            *is_list = true;
        }
        while list.next_element_seed(Collect { parts: self.parts, is_list: None, marker: PhantomData })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Texts => map.next_value_seed(Collect { parts: self.parts, is_list: None, marker: PhantomData })?,
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A field of a message or a part.
#[derive(Deserialize)]
#[serde(field_identifier)]
enum Key {
    #[serde(rename = "content", alias = "text")]
    Texts,
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// Ollama's options.
#[derive(Debug, Default, Deserialize)]
struct Options {
    num_predict: Option<i64>,
}

/// A body in any of the APIs: no two mean different things by one field.
#[derive(Debug, Deserialize)]
struct Body<'a> {
    model: Option<String>,
    #[serde(borrow)]
    messages: Option<Texts<'a>>,
    #[serde(borrow)]
    prompt: Option<Texts<'a>>,
    #[serde(borrow)]
    system: Option<Texts<'a>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    ignore_eos: Option<bool>,
    n: Option<u64>,
    options: Option<Options>,
}

impl<'a> Asked<'a> {
    /// Reads the body of a request to `endpoint` of the server whose model is `model`; requests with one of the fields `rejects` are
    /// wrong.
    pub(super) fn read(endpoint: Endpoint, body: &'a [u8], model: &str, rejects: &[String]) -> Result<Self, Refusal> {
        let wrong = |message: String| Refusal::new(Reason::Invalid, message);
        let mut read: Body<'a> =
            serde_json::from_slice(body).map_err(|error| wrong(format!("the body is wrong: {error}")))?;
        if !rejects.is_empty() {
            refuse_fields(body, rejects)?;
        }
        let asked = read.model.as_deref().ok_or_else(|| wrong("model: field required".to_owned()))?;
        if asked != model && asked.strip_suffix(":latest") != Some(model) {
            return Err(Refusal::no_model(endpoint.api(), asked));
        }
        if read.n.is_some_and(|n| n != 1) {
            return Err(wrong("n: one answer a request, expected 1".to_owned()));
        }
        let limit = read.limit(endpoint)?;
        Ok(Self {
            prompt: read.take_prompt(endpoint)?,
            limit,
            ignores_end: read.ignore_eos == Some(true),
            streams: read.stream.unwrap_or(endpoint.streams_unasked()),
            usage: match read.stream_options {
                Some(StreamOptions { include_usage: Some(true), continuous_usage_stats: Some(true) }) => {
                    Usage::Continuous
                }
                Some(StreamOptions { include_usage: Some(true), .. }) => Usage::AtEnd,
                _ => Usage::None,
            },
        })
    }
}

impl<'a> Body<'a> {
    /// The most tokens of the answer.
    fn limit(&self, endpoint: Endpoint) -> Result<Option<u64>, Refusal> {
        let (field, limit) = match endpoint {
            // Below zero there is none.
            Endpoint::OllamaChat | Endpoint::OllamaGenerate => {
                let limit = self.options.as_ref().and_then(|options| options.num_predict);
                ("num_predict", limit.and_then(|limit| u64::try_from(limit).ok()))
            }
            Endpoint::Chat if self.max_completion_tokens.is_some() => {
                ("max_completion_tokens", self.max_completion_tokens)
            }
            Endpoint::Chat | Endpoint::Completions | Endpoint::Messages => ("max_tokens", self.max_tokens),
        };
        if endpoint == Endpoint::Messages && limit.is_none() {
            return Err(Refusal::new(Reason::Invalid, "max_tokens: field required".to_owned()));
        }
        match limit {
            Some(limit) if !(1..=MOST_TOKENS).contains(&limit) => {
                Err(Refusal::new(Reason::Invalid, format!("{field}: expected 1 to {MOST_TOKENS}, got {limit}")))
            }
            limit => Ok(limit),
        }
    }

    fn take_prompt(&mut self, endpoint: Endpoint) -> Result<Vec<Part<'a>>, Refusal> {
        let wrong = |message: &str| Err(Refusal::new(Reason::Invalid, message.to_owned()));
        let system = self.system.take().unwrap_or_default().parts;
        if endpoint.is_chat() {
            let Some(messages) = self.messages.take() else { return wrong("messages: field required") };
            if !messages.is_list {
                return wrong("messages: expected a list of messages");
            }
            return Ok(system.into_iter().chain(messages.parts).collect());
        }
        let Some(prompt) = self.prompt.take() else { return wrong("prompt: field required") };
        if prompt.parts.len() > 1 {
            return wrong("prompt: one prompt a request, expected text, a list of one text, or a list of tokens");
        }
        Ok(system.into_iter().chain(prompt.parts).collect())
    }
}

/// Refuses a body that has one of these fields.
fn refuse_fields(body: &[u8], rejects: &[String]) -> Result<(), Refusal> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
    match rejects.iter().find(|field| fields.contains_key(*field)) {
        Some(field) => Err(Refusal::new(Reason::Invalid, format!("{field}: extra inputs are not permitted"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENDPOINTS: [Endpoint; 5] =
        [Endpoint::Chat, Endpoint::Completions, Endpoint::Messages, Endpoint::OllamaChat, Endpoint::OllamaGenerate];

    fn read(endpoint: Endpoint, body: &str) -> Result<Asked<'_>, Refusal> {
        Asked::read(endpoint, body.as_bytes(), "m", &[])
    }

    fn texts(asked: &Asked<'_>) -> Vec<String> {
        let text = |part: &Part<'_>| match part {
            Part::Text(text) => text.to_string(),
            Part::Ids(ids) => format!("{ids:?}"),
        };
        asked.prompt.iter().map(text).collect()
    }

    #[test]
    fn prompts_are_the_texts_of_messages_and_their_parts() {
        let body = r#"{"stream": true, "messages": [
            {"role": "system", "content": "be\nshort"},
            {"role": "user", "content": [{"type": "text", "text": "what is"}, {"type": "image_url", "image_url": {"url": "x y"}}]},
            {"role": "assistant", "content": null, "tool_calls": [{"function": {"arguments": "a b"}}]}
        ], "model": "m", "temperature": 0.5, "max_tokens": null}"#;
        let asked = read(Endpoint::Chat, body).unwrap();
        assert_eq!(texts(&asked), ["be\nshort", "what is"]);
        assert!(asked.streams && asked.limit.is_none() && !asked.ignores_end && asked.usage == Usage::None);
        let asked = read(
            Endpoint::Messages,
            r#"{"model": "m", "max_tokens": 7, "messages": [{"role": "user", "content": [
                {"type": "tool_result", "content": [{"type": "text", "text": "b"}]}]}], "system": [{"type": "text", "text": "a"}]}"#,
        );
        assert_eq!(
            (texts(asked.as_ref().unwrap()), asked.unwrap().limit),
            (vec!["a".to_owned(), "b".to_owned()], Some(7))
        );
    }

    #[test]
    fn prompts_of_completions_are_text_or_tokens() {
        let prompt = |prompt: &str| {
            let body = format!(r#"{{"model": "m", "prompt": {prompt}}}"#);
            read(Endpoint::Completions, &body).map(|asked| texts(&asked)).map_err(|refusal| refusal.message)
        };
        assert_eq!(prompt(r#""a b""#).unwrap(), ["a b"]);
        assert_eq!(prompt(r#"["a b"]"#).unwrap(), ["a b"]);
        assert_eq!(prompt("[1, 2, 3]").unwrap(), ["[1, 2, 3]"]);
        assert_eq!(prompt("[[1, 2, 3]]").unwrap(), ["[1, 2, 3]"]);
        assert!(prompt(r#"["a", "b"]"#).unwrap_err().starts_with("prompt: one prompt a request"));
        assert!(prompt("7").unwrap_err().contains("invalid type: integer `7`, expected text"));
    }

    #[test]
    fn limits_have_each_apis_name() {
        let limit = |endpoint, fields: &str| {
            let body = format!(r#"{{"model": "m", "messages": [], "prompt": "", {fields}}}"#);
            read(endpoint, &body).map(|asked| asked.limit).map_err(|refusal| refusal.message)
        };
        assert_eq!(limit(Endpoint::Chat, r#""max_tokens": 5"#), Ok(Some(5)));
        assert_eq!(limit(Endpoint::Chat, r#""max_tokens": 5, "max_completion_tokens": 6"#), Ok(Some(6)));
        assert_eq!(limit(Endpoint::Completions, r#""max_tokens": 5"#), Ok(Some(5)));
        assert_eq!(limit(Endpoint::OllamaChat, r#""options": {"num_predict": 5, "seed": 1}"#), Ok(Some(5)));
        assert_eq!(limit(Endpoint::OllamaGenerate, r#""options": {"num_predict": -1}"#), Ok(None));
        assert_eq!(limit(Endpoint::Chat, r#""max_tokens": 0"#), Err("max_tokens: expected 1 to 131072, got 0".into()));
        assert!(limit(Endpoint::Chat, r#""max_tokens": "5""#).unwrap_err().contains("expected u64 at line 1"));
        assert_eq!(limit(Endpoint::Messages, r#""stream": true"#), Err("max_tokens: field required".into()));
    }

    #[test]
    fn usage_and_streaming_are_as_asked() {
        let usage = |options: &str| {
            let body = format!(r#"{{"model": "m", "messages": [], "stream_options": {options}}}"#);
            read(Endpoint::Chat, &body).unwrap().usage
        };
        assert_eq!(usage("null"), Usage::None);
        assert_eq!(usage(r#"{"include_usage": true}"#), Usage::AtEnd);
        assert_eq!(usage(r#"{"continuous_usage_stats": true}"#), Usage::None, "as vLLM has it");
        assert_eq!(usage(r#"{"include_usage": true, "continuous_usage_stats": true}"#), Usage::Continuous);
        let streams =
            |endpoint| read(endpoint, r#"{"model": "m:latest", "messages": [], "prompt": "", "max_tokens": 1}"#);
        assert_eq!(ENDPOINTS.map(|endpoint| streams(endpoint).unwrap().streams), [false, false, false, true, true]);
    }

    #[test]
    fn wrong_bodies_are_told_why() {
        let message = |body: &str| read(Endpoint::Chat, body).unwrap_err().message;
        assert!(message("").starts_with("the body is wrong: EOF"));
        assert!(message("[]").starts_with("the body is wrong: "));
        assert_eq!(message(r#"{"messages": []}"#), "model: field required");
        assert_eq!(message(r#"{"model": "m"}"#), "messages: field required");
        assert_eq!(message(r#"{"model": "m", "messages": "hi"}"#), "messages: expected a list of messages");
        assert_eq!(message(r#"{"model": "m", "messages": [], "n": 2}"#), "n: one answer a request, expected 1");
        assert_eq!(
            read(Endpoint::Chat, r#"{"model": "x", "messages": []}"#).unwrap_err().status(Endpoint::Chat.api()),
            404
        );
        let rejected = Asked::read(
            Endpoint::Chat,
            br#"{"model": "m", "messages": [], "max_tokens": 1}"#,
            "m",
            &["max_tokens".into()],
        );
        assert_eq!(rejected.unwrap_err().message, "max_tokens: extra inputs are not permitted");
        let deep = format!(r#"{{"model": "m", "messages": {}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        assert!(message(&deep).contains("recursion limit"));
    }

    proptest! {
        #[test]
        fn no_body_is_a_panic(body in ".{0,80}", bytes in proptest::collection::vec(any::<u8>(), 0..80), cut in 0_usize..200) {
            let whole = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a \u00e9\n"}]}],"prompt":[1,2],
                "stream":true,"stream_options":{"include_usage":true},"max_tokens":3,"options":{"num_predict":-1}}"#;
            for endpoint in ENDPOINTS {
                let _ = Asked::read(endpoint, body.as_bytes(), "m", &["x".into()]);
                let _ = Asked::read(endpoint, &bytes, "m", &["x".into()]);
                prop_assert!(Asked::read(endpoint, &whole.as_bytes()[..cut.min(whole.len() - 1)], "m", &[]).is_err());
            }
        }
    }
}
