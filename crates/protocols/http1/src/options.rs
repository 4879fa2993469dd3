//! Options of HTTP calls: the `protocol` part of a plan for `http` and `https`.

use std::borrow::Cow;

use brunt_plan::bodies::shown_body;
pub use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use brunt_plan::secret::Template;
use brunt_protocol::headers::{Header, credentials};
pub use brunt_protocol::lines::Lines;
use brunt_protocol::messages::MessageOptions;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::line;

/// How the calls of a flood over HTTP are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// `user:password` of the target's URL, which goes to its host and port alone.
    #[serde(deserialize_with = "credentials", skip_serializing_if = "Option::is_none")]
    pub user: Option<Template>,
    /// The body of every request.
    pub body: Option<Content>,
    /// A URL for each call: a path, a whole URL, either with a method before it, or a request in JSON.
    pub url_lines: Option<Lines>,
    /// A body for each call.
    pub body_lines: Option<Lines>,
    /// The order in which lines are taken.
    pub order: RequestOrder,
    /// Options for answers that come as messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageOptions>,
    /// Text that the body of each answer with a status under 400 must contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_body: Option<String>,
    /// Which HTTP is spoken.
    #[serde(skip_serializing_if = "Version::is_one")]
    pub http: Version,
    /// The share of calls that have a `traceparent`, above 0 and up to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_ratio: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: "GET".to_owned(),
            headers: Vec::new(),
            basic: None,
            user: None,
            body: None,
            url_lines: None,
            body_lines: None,
            order: RequestOrder::default(),
            messages: None,
            expect_body: None,
            http: Version::default(),
            trace_ratio: None,
        }
    }
}

impl Options {
    /// The options as a plan carries them: whole for the engine, without secrets for everyone else.
    pub fn to_protocol(&self) -> ProtocolOptions {
        let headers = self.headers.iter().map(|header| json!([header.name(), header.value().as_written()])).collect();
        let mut whole = self.without_body();
        set(&mut whole, "headers", headers);
        set(&mut whole, "basic", self.basic.as_ref().map(Template::as_written).into());
        if let Some(user) = &self.user {
            set(&mut whole, "user", user.as_written().into());
        }
        let mut shown = self.shown_without_body();
        let Some(body) = &self.body else { return ProtocolOptions::new(whole, shown) };
        let shown_body = shown_body(&body.0);
        if whole == shown && matches!(shown_body, Cow::Borrowed(_)) {
            // A body may be large: it is held once.
            set(&mut whole, "body", body.to_json());
            return ProtocolOptions::without_secrets(whole);
        }
        set(&mut whole, "body", body.to_json());
        set(&mut shown, "body", Content(shown_body.into_owned()).to_json());
        ProtocolOptions::new(whole, shown)
    }

    /// Options from a plan, for display; `None` if they cannot be read. A body without secrets is copied once.
    pub(crate) fn shown(options: &Value) -> Option<Value> {
        let fields = options.as_object()?;
        let others: Map<_, _> = fields
            .iter()
            .filter(|(name, _)| *name != "body")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut shown = Self::deserialize(Value::from(others)).ok()?.shown_without_body();
        if let Some(written) = fields.get("body") {
            let shown_body = match Option::<Content>::deserialize(written).ok()? {
                Some(body) => match shown_body(&body.0) {
                    Cow::Owned(shown) => Some(Content(shown).to_json()),
                    Cow::Borrowed(_) => None,
                },
                None => None,
            };
            set(&mut shown, "body", shown_body.unwrap_or_else(|| written.clone()));
        }
        Some(shown)
    }

    /// All but the body, without secrets.
    fn shown_without_body(&self) -> Value {
        let mut shown = self.without_body();
        if let Some(lines) = &self.url_lines {
            set(&mut shown, "url_lines", lines.shown(line::shown));
        }
        if let Some(lines) = &self.body_lines {
            set(&mut shown, "body_lines", lines.shown(|line| shown_body(line).into_owned()));
        }
        shown
    }

    /// All but the body, which may be large.
    fn without_body(&self) -> Value {
        let Self {
            method,
            headers,
            basic,
            user,
            body: _,
            url_lines,
            body_lines,
            order,
            messages,
            expect_body,
            http,
            trace_ratio,
        } = self;
        let others = Self {
            method: method.clone(),
            headers: headers.clone(),
            basic: basic.clone(),
            user: user.clone(),
            body: None,
            url_lines: url_lines.clone(),
            body_lines: body_lines.clone(),
            order: *order,
            messages: messages.clone(),
            expect_body: expect_body.clone(),
            http: *http,
            trace_ratio: *trace_ratio,
        };
        serde_json::to_value(others).unwrap_or_default()
    }
}

/// Replaces a field of an object.
fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
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
    /// HTTP/3, over QUIC.
    #[serde(rename = "3")]
    Three,
    /// The version that ALPN chooses; HTTP/1.1 without TLS.
    #[serde(rename = "auto")]
    Auto,
}

impl Version {
    /// The names by which versions are asked for.
    pub const NAMES: &[&str] = &["1.1", "2", "3", "auto"];

    /// The version of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "1.1" => Some(Self::One),
            "2" => Some(Self::Two),
            "3" => Some(Self::Three),
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
pub enum RequestOrder {
    /// In turn, over all workers, from the top again after the last.
    #[default]
    Sequential,
    /// Each call takes any, by the run's seed.
    Random,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_reach_the_engine_and_nobody_else() {
        let options = Options {
            headers: vec![Header::new("Authorization", "Bearer t0p"), Header::new("Accept", "text/plain")],
            basic: Some(Template::credentials("me:hunter2")),
            user: Some(Template::credentials("you:hunter2")),
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
        assert_eq!(Options::shown(protocol.reveal()).as_ref(), Some(protocol.shown()), "read again");
    }

    #[test]
    fn a_body_is_kept_once_unless_something_beside_it_is_secret() {
        let open = Options { body: Some(Content(vec![0xff; 10])), ..Options::default() };
        let protocol = open.to_protocol();
        assert!(std::ptr::eq(protocol.reveal(), protocol.shown()));
        let read = Options::shown(protocol.reveal()).unwrap();
        assert_eq!(read["body"], serde_json::to_value(open.body.as_ref()).unwrap());
        let secret = Options { headers: vec![Header::new("Authorization", "t0p")], ..open }.to_protocol();
        assert!(!secret.shown().to_string().contains("t0p") && secret.shown()["body"] == read["body"]);
        for other in [json!({"body": 1}), json!([]), json!({"nothing": 1})] {
            assert_eq!(Options::shown(&other), None, "{other}");
        }
    }
}
