//! brunt with one more protocol, memcached's (<https://github.com/memcached/memcached/blob/master/doc/protocol.txt>).
//!
//! `brunt-memcached --item a -r 1000 memcached://127.0.0.1/` does everything that brunt does, with gets of a key;
//! `--set v` makes them sets; `--login 'me @PASSWORD'` logs in; scenarios have `brunt.memcached`. docs/custom-protocol.md goes through this file.

use std::process::ExitCode;
use std::sync::Arc;

use brunt_protocol::flags::{Flag, FlagValues, ValueKind, revealed};
use brunt_protocol::plan::plan::{Plan, ProtocolOptions};
use brunt_protocol::source::{Message, RepeatingSource, RequestSource};
use brunt_protocol::{
    Answer, AnswerParts, Client, Malformed, Opening, OptionsError, Prepared, Progress, Protocol, Scheme, Started,
    read_options, write_options,
};
use serde::{Deserialize, Serialize};

/// The most bytes of an answer: twice memcached's own limit of a value.
const MOST_BYTES: usize = 2 << 20;
/// Statuses are the protocol's own; of those from 400 on, none is a success unless `--ok-status` says so.
const FOUND: u16 = 200;
const STORED: u16 = 201;
const MISSED: u16 = 404;
const FAILED: u16 = 500;

fn main() -> ExitCode {
    let mut registry = brunt::built_in();
    registry.register(Memcached);
    brunt::main_with(registry)
}

struct Memcached;

/// The plan's `protocol` part: plain data, made from flags, carried out anywhere.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    key: String,
    value: Option<String>,
    login: Option<String>,
}

const FLAGS: [Flag; 3] = [
    Flag::new("item", ValueKind::Text("KEY"), "The key of the item that is asked for [default: brunt]").checked(is_key),
    Flag::new("set", ValueKind::Text("TEXT"), "Store this under the key, rather than ask for it"),
    Flag::new(
        "login",
        ValueKind::Text("USER PASSWORD"),
        "Log in on each connection; @NAME is taken from the environment",
    )
    .secret(),
];

fn is_key(text: &str) -> Result<(), String> {
    let is_right = (1..=250).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_right.then_some(()).ok_or("expected 1 to 250 characters without spaces".to_owned())
}

impl Protocol for Memcached {
    fn name(&self) -> &'static str {
        "memcached"
    }

    fn schemes(&self) -> &[Scheme] {
        &[Scheme { name: "memcached", default_port: 11211, tls: false }]
    }

    fn flags(&self) -> &[Flag] {
        &FLAGS
    }

    fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
        given.refuse_user("memcached")?;
        let key = given.text("item").unwrap_or("brunt").to_owned();
        let [value, login] = ["set", "login"].map(|name| given.text(name).map(str::to_owned));
        write_options(&Options { key, value, login })
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: Options = read_options(plan, self.name())?;
        is_key(&options.key).map_err(|problem| OptionsError(format!("key: {problem}")))?;
        let set = |key: &str, value: &str| format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
        let (request, idempotent) = match &options.value {
            None => (format!("get {}\r\n", options.key), true),
            Some(value) => (set(&options.key, value), false),
        };
        let login = options.login.map(|login| revealed("--login", &login, plan)).transpose()?;
        let login = login.map(|login| set("login", &login).into_bytes());
        Ok(Arc::new(Call { request: RepeatingSource::new(request.into_bytes(), idempotent), login }))
    }
}

struct Call {
    request: RepeatingSource,
    login: Option<Vec<u8>>,
}

impl Prepared for Call {
    fn client(&self, _keep: bool) -> Box<dyn Client> {
        Box::new(Connection { login: self.login.clone(), ..Connection::default() })
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(self.request.clone())
    }
}

/// One connection: answers come in the order of the calls.
#[derive(Default)]
struct Connection {
    /// What is sent first, until it is answered.
    login: Option<Vec<u8>>,
    in_flight: u32,
    /// What has come of an answer that is not complete, and the last that was.
    partial: Vec<u8>,
    last: Vec<u8>,
}

impl Client for Connection {
    fn open(&mut self, _alpn: Option<&[u8]>, out: &mut Vec<u8>) -> Result<Opening, Malformed> {
        let Some(login) = &self.login else { return Ok(Opening::Ready) };
        out.extend_from_slice(login);
        Ok(Opening::Exchange)
    }

    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        out.extend_from_slice(message.bytes);
        self.in_flight += 1;
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        if self.in_flight == 0 && self.login.is_none() {
            return Err(Malformed::because("an answer that nobody asked for"));
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(bytes);
        let Some((length, status)) = answer(&self.partial)? else { return Ok((bytes.len(), Progress::More)) };
        self.partial.truncate(length);
        self.last = std::mem::take(&mut self.partial);
        if self.login.take().is_some() {
            let refused = Err(Malformed::because("a login that memcached refuses"));
            return if status == STORED { Ok((length - before, Progress::Opened)) } else { refused };
        }
        self.in_flight -= 1;
        Ok((length - before, Progress::Answered(Answer { position: 0, status, reusable: true })))
    }

    fn parts(&self) -> AnswerParts<'_> {
        AnswerParts { head: &[], body: &self.last }
    }
}

/// The length and the status of the answer at the beginning of `bytes`, once it is complete.
fn answer(bytes: &[u8]) -> Result<Option<(usize, u16)>, Malformed> {
    if bytes.len() > MOST_BYTES {
        return Err(Malformed::because("an answer of more than 2 MiB"));
    }
    let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let line = bytes.get(..end).unwrap_or_default();
    let status = match line.split(|byte| *byte == b' ').next() {
        Some(b"VALUE") => {
            let length = line.rsplit(|byte| *byte == b' ').next().and_then(|length| std::str::from_utf8(length).ok());
            let length = length.and_then(|length| length.parse::<usize>().ok()).filter(|length| *length < MOST_BYTES);
            let length = length.ok_or(Malformed::because("a VALUE without a length that can be right"))?;
            let whole = end + 2 + length + b"\r\nEND\r\n".len();
            return Ok((bytes.len() >= whole).then_some((whole, FOUND)));
        }
        Some(b"END") => MISSED,
        Some(b"STORED") => STORED,
        Some(b"NOT_STORED" | b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR") => FAILED,
        _ => return Err(Malformed::because("a line that memcached does not say")),
    };
    Ok(Some((end + 2, status)))
}
