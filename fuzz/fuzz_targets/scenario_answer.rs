//! What a server's answer reaches in scenarios: its head and body read in parts, where a redirect leads and what cookies go
//! there, its body as JSON. Nothing panics, and a request that is made from what a server said is one request and no more.
//!
//! An input is an answer: a head, and behind its empty line a body.

#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use brunt_http1::Http1;
use brunt_lua::scenario::load;
use brunt_plan::plan::Sandbox;
use brunt_protocol::scenario::{Caller, ClientSetting, CompleteAnswer, Encoded, Value};
use brunt_protocol::{AnswerParts, Registry};
use brunt_script::LoadOptions;
use libfuzzer_sys::fuzz_target;

/// Reads the body as JSON, as `answer:json()` does, and writes it again: what was understood is understood again.
const SCRIPT: &str = "local brunt = require 'brunt'
    local file = assert(io.open(debug.getinfo(1, 'S').source:match('^@(.*/)') .. 'body', 'rb'))
    local body = file:read('*a')
    file:close()
    local value = brunt.json.decode(body)
    if value ~= nil then
      local text = assert(brunt.json.encode(value))
      local again = assert(brunt.json.encode((brunt.json.decode(text))))
      assert(text == again, text)
    end";

fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("brunt-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("s.lua"), SCRIPT).unwrap();
        folder
    })
}

/// The client of `brunt.http { base = "http://127.0.0.1" }`.
fn http(registry: &Registry) -> Box<dyn Caller> {
    let (protocol, _) = registry.named("http").unwrap();
    let base = brunt_plan::target::Url::parse("http://127.0.0.1/").unwrap().target;
    protocol.dialect().unwrap().client(&Value::Nil, &ClientSetting::alone(Some(&base))).unwrap()
}

fuzz_target!(|input: &[u8]| {
    let end = input.windows(4).position(|four| four == b"\r\n\r\n").map_or(input.len(), |at| at + 4);
    let (head, body) = input.split_at(end);
    let mut registry = Registry::default();
    registry.register(Http1);
    let caller = http(&registry);
    let answer = CompleteAnswer { status: 302, parts: AnswerParts { head, body } };
    let cookies = caller.read("cookies", &answer).unwrap();
    let sets_cookies = caller.flags(&answer) != 0;
    // A field need not say a cookie.
    assert!(sets_cookies || cookies.entries().is_empty());
    let headers = caller.read("headers", &answer).unwrap();
    assert_eq!(sets_cookies, !headers.get("set-cookie").is_nil());
    assert_eq!(caller.read("body", &answer).unwrap().as_bytes(), Some(body));
    for (name, _) in headers.entries() {
        let name = name.as_bytes().unwrap();
        assert!(!name.iter().any(u8::is_ascii_uppercase), "names have no case");
    }
    // Where the server says that it went, by whatever method.
    if let Some(location) = headers.get("location").as_str() {
        let mut request = Encoded::default();
        if caller.encode(&[Value::text("GET"), Value::text(location)], &mut request).is_ok() {
            let text = &request.bytes;
            assert!(text.starts_with(b"GET /") && text.ends_with(b"\r\n\r\n"));
            let ends = text.windows(4).filter(|four| *four == b"\r\n\r\n").count();
            assert_eq!(ends, 1, "one request: {}", String::from_utf8_lossy(text));
            let line = text.split(|byte| *byte == b'\r').next().unwrap();
            assert_eq!(line.iter().filter(|byte| **byte == b' ').count(), 2);
            assert!(!line.iter().any(u8::is_ascii_control));
        }
    }
    // Each state of Lua has its price: what cannot be JSON at all is not shown to one.
    if body.first().is_some_and(|first| b" \t\r\n[{\"-tfn0123456789".contains(first)) {
        std::fs::write(folder().join("body"), body).unwrap();
        let loaded =
            load(&folder().join("s.lua"), &LoadOptions { sandbox: Sandbox::Open, ..LoadOptions::default() }, &registry);
        if let Err(error) = loaded {
            panic!("{error}");
        }
    }
});
