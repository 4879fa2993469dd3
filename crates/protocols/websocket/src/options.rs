//! What WebSocket calls are made from: the `protocol` part of a plan for `ws` and `wss`.

use brunt_plan::bodies::shown_body;
use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use brunt_plan::secret::{Template, shown_url};
use serde::{Deserialize, Serialize};
use serde_json::json;

use brunt_protocol::headers::{Header, credentials};
use brunt_protocol::lines::Lines;

/// How the calls of a flood over WebSocket are made: each sends its connection's message, and ends with the message that
/// comes back, which must be the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// What is sent.
    pub message: Content,
    /// A URL for each connection: a path, or a whole URL of the target's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_lines: Option<Lines>,
    /// A message for each connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_lines: Option<Lines>,
    /// Whether it is sent as binary, rather than as text.
    pub binary: bool,
    /// Header fields of the handshake.
    pub headers: Vec<Header>,
    /// `user:password` for an Authorization field.
    #[serde(deserialize_with = "credentials")]
    pub basic: Option<Template>,
    /// Subprotocols to offer, by preference.
    pub subprotocols: Vec<String>,
    /// Whether to offer permessage-deflate (RFC 7692).
    pub deflate: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            message: Content(b"hello".to_vec()),
            url_lines: None,
            body_lines: None,
            binary: false,
            headers: Vec::new(),
            basic: None,
            subprotocols: Vec::new(),
            deflate: false,
        }
    }
}

impl Options {
    /// All but the lines, which may be many.
    pub(super) fn without_lines(&self) -> Self {
        let Self { message, url_lines: _, body_lines: _, binary, headers, basic, subprotocols, deflate } = self;
        Self {
            message: message.clone(),
            url_lines: None,
            body_lines: None,
            binary: *binary,
            headers: headers.clone(),
            basic: basic.clone(),
            subprotocols: subprotocols.clone(),
            deflate: *deflate,
        }
    }

    /// The options as a plan carries them: whole for the engine, without secrets for everyone else.
    pub fn to_protocol(&self) -> ProtocolOptions {
        let mut shown = serde_json::to_value(self).unwrap_or_default();
        let mut whole = shown.clone();
        if let Some(object) = shown.as_object_mut() {
            let message = Content(shown_body(&self.message.0).into_owned());
            object.insert("message".to_owned(), serde_json::to_value(message).unwrap_or_default());
            let url = |line: &[u8]| shown_url(&String::from_utf8_lossy(line)).into_owned().into_bytes();
            let urls = self.url_lines.as_ref().map(|lines| ("url_lines".to_owned(), lines.shown(url)));
            let body = |line: &[u8]| shown_body(line).into_owned();
            let bodies = self.body_lines.as_ref().map(|lines| ("body_lines".to_owned(), lines.shown(body)));
            object.extend(urls.into_iter().chain(bodies));
        }
        let headers = self.headers.iter().map(|header| json!([header.name(), header.value().as_written()])).collect();
        if let Some(object) = whole.as_object_mut() {
            object.insert("headers".to_owned(), headers);
            object.insert("basic".to_owned(), self.basic.as_ref().map(Template::as_written).into());
        }
        ProtocolOptions::new(whole, shown)
    }
}
