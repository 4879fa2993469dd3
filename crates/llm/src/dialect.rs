//! The ways in which servers of language models are asked: paths, bodies, and readers of answers.

use brunt_protocol::messages::Framing;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::event::{Event, of_anthropic, of_ollama, of_openai};

/// How a server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiDialect {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's completions.
    Completions,
    /// Anthropic's messages.
    Messages,
    /// Ollama's chat.
    OllamaChat,
    /// Ollama's generate.
    OllamaGenerate,
}

/// The name of the field that limits an answer's tokens, in OpenAI's chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// What all servers took at first, and most take.
    #[default]
    MaxTokens,
    /// What newer models of OpenAI's ask for.
    MaxCompletionTokens,
}

/// What a server was found to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The field that limits an answer.
    pub limit: Limit,
    /// Whether it takes `stream_options`, by which a stream tells its tokens.
    pub stream_options: bool,
}

impl Default for Taken {
    fn default() -> Self {
        Self { limit: Limit::MaxTokens, stream_options: true }
    }
}

impl ApiDialect {
    /// All dialects, by the names of the flag `--api`.
    pub const NAMED: [(&'static str, Self); 5] = [
        ("chat", Self::Chat),
        ("completions", Self::Completions),
        ("anthropic", Self::Messages),
        ("ollama", Self::OllamaChat),
        ("ollama-generate", Self::OllamaGenerate),
    ];

    /// The dialect of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, dialect)| *dialect)
    }

    /// Its path at a server.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Messages => "/v1/messages",
            Self::OllamaChat => "/api/chat",
            Self::OllamaGenerate => "/api/generate",
        }
    }

    /// The dialect whose path this one ends with.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or("").trim_end_matches('/');
        let ends = |dialect: Self| path.ends_with(dialect.path().trim_start_matches("/v1"));
        Self::NAMED.iter().map(|(_, dialect)| *dialect).find(|dialect| ends(*dialect))
    }

    /// The path of a call where the URL of the target has this one: the server's own path, or a base before it.
    pub fn path_behind(self, path: &str) -> String {
        if Self::of_path(path) == Some(self) {
            return path.to_owned();
        }
        let base = path.trim_end_matches('/');
        let own = if base.ends_with("/v1") { self.path().trim_start_matches("/v1") } else { self.path() };
        format!("{base}{own}")
    }

    /// The path that lists the models of a server, from that of a call.
    pub fn models_path(self, path: &str) -> String {
        let base = path.strip_suffix(self.path().trim_start_matches("/v1")).unwrap_or("");
        match self {
            // Ollama has OpenAI's list, too.
            Self::OllamaChat | Self::OllamaGenerate => format!("{base}/v1/models"),
            _ => format!("{base}/models"),
        }
    }

    /// How the events of a stream are framed.
    pub const fn framing(self) -> Framing {
        match self {
            Self::OllamaChat | Self::OllamaGenerate => Framing::Lines,
            _ => Framing::Sse,
        }
    }

    /// Reads an event of a stream, or a whole answer, and appends what the model answers to `reply`: without reasoning and calls of tools. `None`
    /// if it is not in this dialect.
    pub fn read(self, data: &[u8], reply: Option<&mut String>) -> Option<Event> {
        match self {
            Self::Chat | Self::Completions => of_openai(data, reply),
            Self::Messages => of_anthropic(data, reply),
            Self::OllamaChat | Self::OllamaGenerate => of_ollama(data, reply),
        }
    }

    /// What stands between a prompt and its answer in the body of a later turn, and between that and the next prompt; escaped as they
    /// are.
    pub const fn between_turns(self) -> [&'static str; 2] {
        match self {
            Self::Chat | Self::Messages | Self::OllamaChat => {
                ["\"},{\"role\":\"assistant\",\"content\":\"", "\"},{\"role\":\"user\",\"content\":\""]
            }
            // They know no roles.
            Self::Completions | Self::OllamaGenerate => ["\\n\\n", "\\n\\n"],
        }
    }

    /// A whole body of a file, which gets what a run decides: its model, whether answers are streamed and how they are counted, and further
    /// fields. Without a limit of its own it takes the run's; returned with whether it has one.
    pub fn whole_body(self, asked: &Asked<'_>, given: &Map<String, Value>) -> (Body, bool) {
        let is_of_ollama = matches!(self, Self::OllamaChat | Self::OllamaGenerate);
        let limits: &[&str] = if is_of_ollama { &[] } else { &["max_tokens", "max_completion_tokens"] };
        let of_options =
            is_of_ollama && given.get("options").is_some_and(|options| options.get("num_predict").is_some());
        let has_limit =
            of_options || limits.iter().any(|limit| given.get(*limit).is_some_and(|limit| !limit.is_null()));
        let mut extra = given.clone();
        for name in ["model", "stream", "stream_options"].iter().chain(limits.iter().filter(|_| !has_limit)) {
            extra.remove(*name);
        }
        extra.extend(asked.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        // Its messages, or its prompt, are among the fields.
        (self.body_around(&Asked { extra: &extra, ..*asked }, "", ""), has_limit)
    }

    /// A body around its prompt.
    pub fn body(self, asked: &Asked<'_>) -> Body {
        let (open, close) = match self {
            Self::Completions | Self::OllamaGenerate => (",\"prompt\":\"", "\""),
            Self::Chat | Self::Messages | Self::OllamaChat => {
                (",\"messages\":[{\"role\":\"user\",\"content\":\"", "\"}]")
            }
        };
        self.body_around(asked, open, close)
    }

    /// A body around a prompt that stands between these.
    fn body_around(self, asked: &Asked<'_>, open: &str, close: &str) -> Body {
        let mut fields = Map::new();
        fields.insert("stream".to_owned(), asked.streams.into());
        let mut options = Map::new();
        let limit = match self {
            Self::Chat => match asked.taken.limit {
                Limit::MaxTokens => "max_tokens",
                Limit::MaxCompletionTokens => "max_completion_tokens",
            },
            Self::Completions | Self::Messages => "max_tokens",
            Self::OllamaChat | Self::OllamaGenerate => "num_predict",
        };
        match self {
            Self::Chat | Self::Completions => {
                if asked.streams && asked.taken.stream_options {
                    fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
                }
                if asked.ignores_end {
                    fields.insert("ignore_eos".to_owned(), true.into());
                }
            }
            Self::OllamaChat | Self::OllamaGenerate => {
                options = asked.extra.get("options").and_then(Value::as_object).cloned().unwrap_or_default();
            }
            Self::Messages => {}
        }
        fields.extend(asked.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        let is_of_ollama = matches!(self, Self::OllamaChat | Self::OllamaGenerate);
        if is_of_ollama {
            fields.remove("options");
        }
        let written = |value: &Value| value.to_string();
        let mut rest = close.to_owned();
        for (name, value) in &fields {
            rest.extend([",", &written(&json!(name)), ":", &written(value)]);
        }
        let mut end = "}".to_owned();
        if is_of_ollama {
            rest.push_str(",\"options\":{");
            for (name, value) in &options {
                rest.extend([written(&json!(name)).as_str(), ":", &written(value), ","]);
            }
            "}}".clone_into(&mut end);
        } else {
            rest.push(',');
        }
        Body {
            before: format!("{{\"model\":{}{open}", written(&json!(asked.model))),
            behind: rest,
            limit: format!("\"{limit}\":"),
            end,
        }
    }
}

/// The first name in a server's list of models.
pub fn first_model(list: &[u8]) -> Option<String> {
    let list: Value = serde_json::from_slice(list).ok()?;
    Some(list.pointer("/data/0/id")?.as_str()?.to_owned())
}

/// What all bodies of a run say.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The model.
    pub model: &'a str,
    /// Whether answers are streamed.
    pub streams: bool,
    /// Whether the model goes on beyond its end, up to the limit.
    pub ignores_end: bool,
    /// Further fields.
    pub extra: &'a Map<String, Value>,
    /// What the server takes.
    pub taken: Taken,
}

/// A body in pieces around its prompt and its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    before: String,
    behind: String,
    limit: String,
    end: String,
}

impl Body {
    /// Appends the body with this prompt, escaped for JSON, and this limit.
    pub fn write(&self, prompt: &str, most_tokens: Option<u32>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.before.as_bytes());
        out.extend_from_slice(prompt.as_bytes());
        out.extend_from_slice(self.behind.as_bytes());
        match most_tokens {
            Some(tokens) => {
                out.extend_from_slice(self.limit.as_bytes());
                out.extend_from_slice(tokens.to_string().as_bytes());
            }
            // The comma before it has nothing to separate.
            None if out.last() == Some(&b',') => drop(out.pop()),
            None => {}
        }
        out.extend_from_slice(self.end.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dialect: ApiDialect, extra: &Value, limit: Option<u32>) -> Value {
        let extra = extra.as_object().cloned().unwrap_or_default();
        let asked = Asked { model: "m\"x", streams: true, ignores_end: true, extra: &extra, taken: Taken::default() };
        let mut body = Vec::new();
        dialect.body(&asked).write("hi \\n there", limit, &mut body);
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body)))
    }

    #[test]
    fn bodies_are_those_of_their_dialects() {
        let message = json!([{"role": "user", "content": "hi \n there"}]);
        assert_eq!(
            written(ApiDialect::Chat, &json!({"temperature": 0}), Some(7)),
            json!({"model": "m\"x", "messages": message, "stream": true, "stream_options": {"include_usage": true},
                   "ignore_eos": true, "temperature": 0, "max_tokens": 7})
        );
        assert_eq!(
            written(ApiDialect::Completions, &json!({"stream_options": {"continuous_usage_stats": true}}), None),
            json!({"model": "m\"x", "prompt": "hi \n there", "stream": true,
                   "stream_options": {"continuous_usage_stats": true}, "ignore_eos": true})
        );
        assert_eq!(
            written(ApiDialect::Messages, &json!({}), Some(7)),
            json!({"model": "m\"x", "messages": message, "stream": true, "max_tokens": 7})
        );
        assert_eq!(
            written(ApiDialect::OllamaChat, &json!({"options": {"seed": 1}, "keep_alive": "1m"}), Some(7)),
            json!({"model": "m\"x", "messages": message, "stream": true, "keep_alive": "1m",
                   "options": {"seed": 1, "num_predict": 7}})
        );
        assert_eq!(
            written(ApiDialect::OllamaGenerate, &json!({}), None),
            json!({"model": "m\"x", "prompt": "hi \n there", "stream": true, "options": {}})
        );
    }

    #[test]
    fn a_whole_body_gets_what_a_run_decides() {
        let whole = |dialect: ApiDialect, given: Value, limit: Option<u32>| {
            let extra = Map::from_iter([("temperature".to_owned(), json!(0))]);
            let asked =
                Asked { model: "a,b", streams: true, ignores_end: false, extra: &extra, taken: Taken::default() };
            let (body, has_limit) = dialect.whole_body(&asked, given.as_object().unwrap());
            let mut out = Vec::new();
            body.write("", limit.filter(|_| !has_limit), &mut out);
            serde_json::from_slice::<Value>(&out)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
        };
        let messages = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}]);
        let given = json!({"model": "other", "messages": messages, "tools": [{"type": "function"}], "stream": false});
        assert_eq!(
            whole(ApiDialect::Chat, given.clone(), Some(9)),
            json!({"model": "a,b", "messages": messages, "tools": [{"type": "function"}], "stream": true,
                   "stream_options": {"include_usage": true}, "temperature": 0, "max_tokens": 9})
        );
        let mut limited = given;
        limited["max_completion_tokens"] = json!(3);
        let limited = whole(ApiDialect::Chat, limited, Some(9));
        assert_eq!((limited.get("max_tokens"), &limited["max_completion_tokens"]), (None, &json!(3)));
        let ollama =
            |options: Value| whole(ApiDialect::OllamaChat, json!({"messages": [], "options": options}), Some(9));
        assert_eq!(ollama(json!({"seed": 1}))["options"], json!({"seed": 1, "num_predict": 9}));
        assert_eq!(ollama(json!({"num_predict": 2}))["options"], json!({"num_predict": 2}));
    }

    #[test]
    fn a_path_names_its_dialect_or_is_a_base() {
        for (path, dialect, called, models) in [
            ("/", ApiDialect::Chat, "/v1/chat/completions", "/v1/models"),
            ("/v1", ApiDialect::Chat, "/v1/chat/completions", "/v1/models"),
            ("/proxy/v1/", ApiDialect::Completions, "/proxy/v1/completions", "/proxy/v1/models"),
            ("/openai/v1/chat/completions", ApiDialect::Chat, "/openai/v1/chat/completions", "/openai/v1/models"),
            ("/", ApiDialect::Messages, "/v1/messages", "/v1/models"),
            ("/", ApiDialect::OllamaChat, "/api/chat", "/v1/models"),
        ] {
            assert_eq!(dialect.path_behind(path), called);
            assert_eq!(dialect.models_path(&dialect.path_behind(path)), models, "{path}");
        }
        assert_eq!(ApiDialect::of_path("/v1/messages"), Some(ApiDialect::Messages));
        assert_eq!(ApiDialect::of_path("/v1/chat/completions?x=1"), Some(ApiDialect::Chat));
        assert_eq!(ApiDialect::of_path("/v1/completions"), Some(ApiDialect::Completions));
        assert_eq!(ApiDialect::of_path("/"), None);
    }
}
