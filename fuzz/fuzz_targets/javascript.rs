//! What a script of k6's may do with brunt's modules: functions are called in any order, on whatever others have returned, with values that they do not
//! expect, at the script's top and in a user. Nothing panics, and the user ends.
//!
//! An input is a list of choices: which function, how many values, which values (`crates/javascript/tests/hostile.js`).

#![no_main]

use std::path::Path;

use brunt_grpc::Grpc;
use brunt_http1::Http1;
use brunt_javascript::load;
use brunt_plan::secret::Template;
use brunt_protocol::Registry;
use brunt_script::LoadOptions;
use brunt_websocket::WebSocket;
use libfuzzer_sys::fuzz_target;

/// The most choices: each may take a whole page of HTML apart.
const MOST: usize = 400;

fuzz_target!(|input: &[u8]| {
    let mut registry = Registry::default();
    registry.register(Http1);
    registry.register(WebSocket);
    registry.register(Grpc);
    let bytes: Vec<String> = input.iter().take(MOST).map(u8::to_string).collect();
    let mut options = LoadOptions::default();
    options.env.insert("BYTES".to_owned(), Template::open(&bytes.join(",")));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/javascript/tests/hostile.js");
    // A script may end by an error; this process may not.
    let _ = load(Path::new(script), &options, &registry);
});
