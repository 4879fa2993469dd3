//! The opening handshake, from the server's side (RFC 6455, section 4.2).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The answer to a handshake.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    /// Whether the connection speaks WebSocket from here on.
    pub(super) is_agreed: bool,
}

impl Answer {
    /// A status that says no.
    pub(super) fn refusal(status: &str) -> Self {
        let upgrade =
            if status.starts_with("426") { "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n" } else { "" };
        Self {
            text: format!("HTTP/1.1 {status}\r\n{upgrade}Content-Length: 0\r\nConnection: close\r\n\r\n"),
            is_agreed: false,
        }
    }
}

/// Answers a whole head.
pub(super) fn answer(head: &[u8]) -> Answer {
    let Ok(head) = std::str::from_utf8(head) else { return Answer::refusal("400 Bad Request") };
    let mut lines = head.split("\r\n");
    let mut request = lines.next().unwrap_or_default().split(' ');
    let (method, version) = (request.next(), request.nth(1));
    if method != Some("GET") || version != Some("HTTP/1.1") {
        return Answer::refusal("400 Bad Request");
    }
    let fields: Vec<_> =
        lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name, value.trim())).collect();
    let values = |wanted: &'static str| {
        fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value)
    };
    let lists = |wanted, token: &str| {
        values(wanted).flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
    };
    if !lists("upgrade", "websocket")
        || !lists("connection", "upgrade")
        || values("sec-websocket-version").next() != Some("13")
    {
        return Answer::refusal("426 Upgrade Required");
    }
    let Some(key) =
        values("sec-websocket-key").next().filter(|key| STANDARD.decode(key).is_ok_and(|key| key.len() == 16))
    else {
        return Answer::refusal("400 Bad Request");
    };
    let accept = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()));
    let mut text = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n"
    );
    if let Some(first) = values("sec-websocket-protocol").flat_map(|value| value.split(',')).next() {
        let _ = write!(text, "Sec-WebSocket-Protocol: {}\r\n", first.trim());
    }
    let mut extensions = values("sec-websocket-extensions").flat_map(|value| value.split(','));
    if extensions.any(|offer| offer.split(';').next().is_some_and(|name| name.trim() == "permessage-deflate")) {
        text.push_str(
            "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n",
        );
    }
    text.push_str("\r\n");
    Answer { text, is_agreed: true }
}
