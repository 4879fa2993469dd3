//! What HTTP calls are made from: the `protocol` part of a plan for `http` and `https`.

use std::borrow::Cow;

use brunt_plan::bodies::shown_body;
pub use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use brunt_plan::secret::Template;
use brunt_protocol::headers::{Header, credentials};
use brunt_protocol::messages::MessageOptions;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::line;

/// How the calls of a flood over HTTP are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// The method.
    pub method: String,
    /// Header fields, in order; they replace those that brunt would send by itself (Host, User-Agent,
    /// Content-Length).
    pub headers: Vec<Header>,
    /// `user:password` for an Authorization field.
    #[serde(deserialize_with = "credentials")]
    pub basic: Option<Template>,
    /// The body of every request.
    pub body: Option<Content>,
    /// A URL for each call: a path, a whole URL, either with a method before it, or a request in JSON.
    pub url_lines: Option<Lines>,
    /// A body for each call.
    pub body_lines: Option<Lines>,
    /// The order in which lines are taken.
    pub order: Order,
    /// How answers come as messages, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageOptions>,
    /// Which HTTP is spoken.
    #[serde(skip_serializing_if = "Version::is_one")]
    pub http: Version,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: "GET".to_owned(),
            headers: Vec::new(),
            basic: None,
            body: None,
            url_lines: None,
            body_lines: None,
            order: Order::default(),
            messages: None,
            http: Version::default(),
        }
    }
}

impl Options {
    /// The options as a plan carries them: whole for the engine, without secrets for everyone else.
    pub fn to_protocol(&self) -> ProtocolOptions {
        let headers = self.headers.iter().map(|header| json!([header.name(), header.value().as_written()])).collect();
        let mut whole = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = whole.as_object_mut() {
            object.insert("headers".to_owned(), headers);
            object.insert("basic".to_owned(), self.basic.as_ref().map(Template::as_written).into());
        }
        ProtocolOptions::new(whole, self.shown())
    }

    /// The options without secrets.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = serde_json::to_value(self).unwrap_or_default();
        let mut show = |name: &str, value: Value| {
            if let Some(object) = shown.as_object_mut() {
                object.insert(name.to_owned(), value);
            }
        };
        if let Some(lines) = &self.url_lines {
            show("url_lines", lines.shown(line::shown));
        }
        if let Some(lines) = &self.body_lines {
            show("body_lines", lines.shown(|line| shown_body(line).into_owned()));
        }
        if let Some(Cow::Owned(body)) = self.body.as_ref().map(|body| shown_body(&body.0)) {
            show("body", serde_json::to_value(Content(body)).unwrap_or_default());
        }
        shown
    }
}

/// Which HTTP connections speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Version {
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "1.1")]
    One,
    /// HTTP/2: by ALPN with TLS, by prior knowledge without.
    #[serde(rename = "2")]
    Two,
    /// What ALPN chooses of both; HTTP/1.1 without TLS.
    #[serde(rename = "auto")]
    Auto,
}

impl Version {
    /// The names by which it is asked for.
    pub const NAMES: &[&str] = &["1.1", "2", "auto"];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "1.1" => Some(Self::One),
            "2" => Some(Self::Two),
            "auto" => Some(Self::Auto),
            _ => None,
        }
    }

    /// Whether it is HTTP/1.1, whatever the target.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_one(&self) -> bool {
        *self == Self::One
    }
}

/// The order in which lines are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// In turn, over all workers, from the top again after the last.
    #[default]
    Sequential,
    /// Each call takes any, by the run's seed.
    Random,
}

/// The lines of a file, which travels by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The file's name, for errors.
    pub file: String,
    /// What is in it.
    pub content: Content,
}

impl Lines {
    /// The lines as they may be shown, each as `show` shows it.
    fn shown(&self, show: impl Fn(&[u8]) -> Vec<u8>) -> Value {
        let content = self.content.0.split(|byte| *byte == b'\n').map(show).collect::<Vec<_>>().join(&b'\n');
        serde_json::to_value(Self { file: self.file.clone(), content: Content(content) }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_reach_the_engine_and_nobody_else() {
        let options = Options {
            headers: vec![Header::new("Authorization", "Bearer t0p"), Header::new("Accept", "text/plain")],
            basic: Some(Template::credentials("me:hunter2")),
            url_lines: Some(Lines {
                file: "f".into(),
                content: Content(b"/a?token=t0p\nPUT http://me:hunter2@a/b\n".to_vec()),
            }),
            body: Some(Content(br#"{"password":"hunter2"}"#.to_vec())),
            body_lines: Some(Lines { file: "b".into(), content: Content(b"a=1&pass=hunter2\nx".to_vec()) }),
            ..Options::default()
        };
        let protocol = options.to_protocol();
        let shown = protocol.shown().to_string();
        assert!(!shown.contains("t0p") && !shown.contains("hunter2") && shown.contains("text/plain"), "{shown}");
        assert_eq!(serde_json::from_value::<Options>(protocol.reveal().clone()).unwrap(), options);
    }
}
