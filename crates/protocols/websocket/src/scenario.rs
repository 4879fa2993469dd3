//! WebSocket in scenarios: `brunt.ws`. Its library is `scenario.lua`.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_plan::random::Random;
use brunt_plan::target::{self, Target, Url};

use super::client::WebSocketClient;
use super::frame::MOST_CONTROL_BYTES;
use super::handshake;
use super::mailbox::{Kind, hint};
use super::message::{MOST_MESSAGE_BYTES, close_name};
use brunt_protocol::headers::header_fields;
use brunt_protocol::scenario::{Caller, ClientSetting, CompleteAnswer, Dialect, Encoded, Fields, Value};
use brunt_protocol::traced::TraceIds;
use brunt_protocol::{Client, OptionsError};
use brunt_record::outcome::OkStatus;

/// The flags of what has come.
const IS_TEXT: u32 = 1;
const IS_PING: u32 = 2;
const IS_PONG: u32 = 4;
const IS_CLOSE: u32 = 8;

/// `brunt.ws`.
pub(super) struct WebSocketDialect;

impl Dialect for WebSocketDialect {
    fn name(&self) -> &'static str {
        "ws"
    }

    fn library(&self) -> &'static str {
        include_str!("scenario.lua")
    }

    fn types(&self) -> &'static str {
        include_str!("types.lua")
    }

    fn client(&self, options: &Value<'_>, setting: &ClientSetting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
        let fields = Fields::parse("brunt.ws", options, &["headers", "subprotocols", "deflate"])?;
        let mut subprotocols = Vec::new();
        for (_, name) in fields.value("subprotocols").entries() {
            let name = name.as_str().ok_or_else(|| fields.wrong("subprotocols", "a list of strings"))?;
            subprotocols.push(name.to_owned());
        }
        if !matches!(fields.value("subprotocols"), Value::Nil | Value::Table(_)) {
            return Err(fields.wrong("subprotocols", "a list of strings"));
        }
        let deflate = fields.flag("deflate")?.unwrap_or(false);
        let headers = texts(header_fields("brunt.ws", fields.value("headers"))?)?;
        // Whatever is wrong with these is said before any load.
        let nowhere =
            Target { path: "/".to_owned(), ..setting.base.cloned().unwrap_or_else(|| Target::clone(&local())) };
        let request = handshake::Request::with_fields(&nowhere, &headers, &subprotocols, deflate)
            .map_err(|e| OptionsError(format!("brunt.ws: {e}")))?;
        Ok(Box::new(WebSocketCaller {
            base: setting.base.cloned(),
            headers,
            subprotocols,
            deflate,
            request: Arc::new(request),
            seed: RandomState::new().hash_one(0),
            connections: AtomicU64::new(0),
        }))
    }
}

fn local() -> Target {
    Target { scheme: "ws".to_owned(), host: "localhost".to_owned(), port: None, path: "/".to_owned() }
}

/// Header fields as text, as which a handshake has them.
fn texts(fields: Vec<(String, Cow<'_, [u8]>)>) -> Result<Vec<(String, String)>, OptionsError> {
    fields
        .into_iter()
        .map(|(name, value)| match String::from_utf8(value.into_owned()) {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(OptionsError(format!("the value of the header {name} is not UTF-8"))),
        })
        .collect()
}

/// What calls of one `brunt.ws{…}` go through.
struct WebSocketCaller {
    base: Option<Target>,
    headers: Vec<(String, String)>,
    subprotocols: Vec<String>,
    deflate: bool,
    /// What answers of handshakes are held against.
    request: Arc<handshake::Request>,
    /// Masking keys and nonces are not for a server to know beforehand (RFC 6455, section 10.3).
    seed: u64,
    connections: AtomicU64,
}

impl WebSocketCaller {
    /// The handshake to a path of the base, to the base itself, or to a whole URL; its header fields, its subprotocols and its compression, and
    /// whether pings, pongs and Close frames are heard of.
    fn connect(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let value = |at: usize| values.get(at).unwrap_or(&Value::Nil);
        let target = match (value(1), &self.base) {
            (Value::Nil, Some(base)) => base.clone(),
            (Value::Nil, None) => {
                let problem = "nothing says where to connect: brunt.ws{ base = \"ws://…\" }, or connect(\"ws://…\")";
                return Err(OptionsError(problem.to_owned()));
            }
            (Value::Text(url), base) => {
                let url = std::str::from_utf8(url).map_err(|_| OptionsError("the URL is not UTF-8".to_owned()))?;
                match base {
                    Some(base) if url.starts_with('/') => {
                        target::check_path(url).map_err(|e| OptionsError(e.to_string()))?;
                        // As in brunt.http, a path stands behind that of the base.
                        let path = format!("{}{url}", base.path.trim_end_matches('/'));
                        Target { path, ..base.clone() }
                    }
                    _ => {
                        let whole = Url::parse(url).map_err(|e| OptionsError(e.to_string()))?.target;
                        if !matches!(whole.scheme.as_str(), "ws" | "wss") {
                            return Err(OptionsError(format!("'{url}' is not ws:// or wss://")));
                        }
                        out.target = Some(whole.clone());
                        whole
                    }
                }
            }
            (other, _) => {
                return Err(OptionsError(format!("connect takes a path or a URL, not {}", other.kind())));
            }
        };
        let given = texts(header_fields("headers", value(2))?)?;
        let replaced = |name: &str| given.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let kept = self.headers.iter().filter(|(name, _)| !replaced(name)).cloned();
        let fields: Vec<_> = kept.chain(given.iter().cloned()).collect();
        let subprotocols: Vec<String> = match value(3) {
            Value::Nil => self.subprotocols.clone(),
            own => own.entries().iter().filter_map(|(_, name)| name.as_str().map(str::to_owned)).collect(),
        };
        let deflate = self.deflate || value(4) == &Value::Boolean(true);
        let request = handshake::Request::with_fields(&target, &fields, &subprotocols, deflate)?;
        out.bytes = request.into_bytes();
        out.hint = hint::CONNECT | if value(5) == &Value::Boolean(true) { hint::HEARS_ALL } else { 0 };
        Ok(())
    }
}

/// The bytes of a message, and whether it is text.
fn message<'v>(values: &'v [Value<'_>]) -> Result<(&'v [u8], bool), OptionsError> {
    let value = values.get(1).unwrap_or(&Value::Nil);
    let is_text = values.get(2) != Some(&Value::Boolean(true));
    let bytes =
        value.as_bytes().ok_or_else(|| OptionsError(format!("a message must be a string, not {}", value.kind())))?;
    if bytes.len() > MOST_MESSAGE_BYTES {
        return Err(OptionsError(format!("a message has at most {MOST_MESSAGE_BYTES} bytes, not {}", bytes.len())));
    }
    if is_text && std::str::from_utf8(bytes).is_err() {
        let problem = "the message is not UTF-8, as text must be: give binary = true";
        return Err(OptionsError(problem.to_owned()));
    }
    Ok((bytes, is_text))
}

/// The payload of a Close frame: a code, and a reason in words.
fn close(values: &[Value<'_>]) -> Result<Vec<u8>, OptionsError> {
    let value = |at: usize| values.get(at).unwrap_or(&Value::Nil);
    let code = match value(1) {
        Value::Nil => 1000,
        Value::Number(code)
            if code.fract() == 0.0 && matches!(*code as u16, 1000 | 3000..=4999)
                || values.get(3) == Some(&Value::Boolean(true)) =>
        {
            *code as u16
        }
        _ => return Err(OptionsError("the code of a close is 1000, or from 3000 to 4999".to_owned())),
    };
    let reason = match value(2) {
        Value::Nil => "",
        text => text.as_str().ok_or_else(|| OptionsError("the reason of a close is a string in UTF-8".to_owned()))?,
    };
    if reason.len() as u64 + 2 > MOST_CONTROL_BYTES {
        let problem = format!("the reason of a close has at most {} bytes", MOST_CONTROL_BYTES - 2);
        return Err(OptionsError(problem));
    }
    Ok([&code.to_be_bytes(), reason.as_bytes()].concat())
}

impl Caller for WebSocketCaller {
    fn connection(&self) -> Box<dyn Client> {
        let random = Random::new(self.seed, self.connections.fetch_add(1, Ordering::Relaxed));
        Box::new(WebSocketClient::conversation(Arc::clone(&self.request), random))
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        vec![b"http/1.1".to_vec()]
    }

    /// A message, and a handshake that switched protocols (RFC 6455, section 4.1).
    fn ok_status(&self) -> Option<OkStatus> {
        Some(OkStatus::only(0).and(handshake::SWITCHING))
    }

    fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let kind = values.first().and_then(Value::as_str).unwrap_or_default();
        match kind {
            "connect" => return self.connect(values, out),
            "send" | "request" => {
                let (bytes, is_text) = message(values)?;
                out.bytes.extend_from_slice(bytes);
                out.hint = if is_text { hint::TEXT } else { hint::BINARY };
                if kind == "request" {
                    out.hint |= hint::RECEIVE | hint::NEW;
                }
            }
            "receive" => out.hint = hint::RECEIVE,
            "receive on" => out.hint = hint::RECEIVE | hint::PUT_BACK,
            "listen" => out.hint = hint::RECEIVE | hint::LISTEN,
            "listen on" => out.hint = hint::RECEIVE | hint::LISTEN | hint::PUT_BACK,
            "ping" => {
                let payload = values.get(1).and_then(Value::as_bytes).unwrap_or_default();
                out.bytes.extend_from_slice(payload.get(..MOST_CONTROL_BYTES as usize).unwrap_or(payload));
                out.hint = hint::PING;
            }
            "close" => {
                out.bytes = close(values)?;
                out.hint = hint::CLOSE;
            }
            _ => return Err(OptionsError(format!("WebSocket has no '{kind}'"))),
        }
        Ok(())
    }

    fn traces(&self) -> bool {
        true
    }

    /// Of a conversation the upgrade request alone has header fields.
    fn add_trace(&self, call: &mut Encoded, ids: &TraceIds) -> bool {
        call.hint & hint::CONNECT != 0 && call.add_traceparent(ids)
    }

    fn flags(&self, answer: &CompleteAnswer<'_>) -> u32 {
        match Kind::from_head(answer.parts.head) {
            Some(Kind::Text) => IS_TEXT,
            Some(Kind::Ping) => IS_PING,
            Some(Kind::Pong) => IS_PONG,
            Some(Kind::Close) => IS_CLOSE,
            Some(Kind::Binary) | None => 0,
        }
    }

    fn read<'a>(&self, what: &str, answer: &CompleteAnswer<'a>) -> Result<Value<'a>, OptionsError> {
        match what {
            "body" => Ok(Value::Text(Cow::Borrowed(answer.parts.body))),
            "head" => Ok(Value::Text(Cow::Borrowed(answer.parts.head))),
            _ => Err(OptionsError(format!("an answer of WebSocket has no '{what}'"))),
        }
    }

    fn shown_call<'a>(&self, call: &'a Encoded) -> Cow<'a, [u8]> {
        let with = |what: &str| Cow::Owned([what.as_bytes(), &call.bytes].concat());
        match call.hint {
            connect if connect & hint::CONNECT != 0 => {
                Cow::Owned([&call.bytes, b"(by chance)\r\n\r\n".as_slice()].concat())
            }
            hint::CLOSE => {
                let (code, reason) = call.bytes.split_at_checked(2).unwrap_or_default();
                let code = <[u8; 2]>::try_from(code).map(u16::from_be_bytes).ok();
                Cow::Owned([b"close, ", close_name(code).as_bytes(), b"\r\n\r\n", reason].concat())
            }
            hint::PING => Cow::Borrowed(b"ping"),
            text if text & hint::TEXT != 0 => with("text message\r\n\r\n"),
            binary if binary & hint::BINARY != 0 => with("binary message\r\n\r\n"),
            _ => Cow::Borrowed(&[]),
        }
    }
}
