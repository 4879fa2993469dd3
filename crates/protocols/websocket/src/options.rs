//! What WebSocket calls are made from: the `protocol` part of a plan for `ws` and `wss`.

use brunt_plan::bodies::shown_body;
use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use brunt_plan::secret::Template;
use serde::{Deserialize, Serialize};
use serde_json::json;

use brunt_protocol::headers::{Header, credentials};

/// How the calls of a flood over WebSocket are made: each sends the message, and ends with the message that comes back,
/// which must be the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// What is sent.
    pub message: Content,
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
            binary: false,
            headers: Vec::new(),
            basic: None,
            subprotocols: Vec::new(),
            deflate: false,
        }
    }
}

impl Options {
    /// The options as a plan carries them: whole for the engine, without secrets for everyone else.
    pub fn to_protocol(&self) -> ProtocolOptions {
        let mut shown = serde_json::to_value(self).unwrap_or_default();
        let mut whole = shown.clone();
        if let Some(object) = shown.as_object_mut() {
            let message = Content(shown_body(&self.message.0).into_owned());
            object.insert("message".to_owned(), serde_json::to_value(message).unwrap_or_default());
        }
        let headers = self.headers.iter().map(|header| json!([header.name(), header.value().as_written()])).collect();
        if let Some(object) = whole.as_object_mut() {
            object.insert("headers".to_owned(), headers);
            object.insert("basic".to_owned(), self.basic.as_ref().map(Template::as_written).into());
        }
        ProtocolOptions::new(whole, shown)
    }
}
