//! gRPC in scenarios, against grpcio, and the example against the built-in echo.

use crate::echo::serve;
use crate::peers::{PROTO, Peer};
use crate::program::{Directory, run};
use crate::report::{example, report};

#[test]
fn the_example_is_right() {
    let (_server, url) = serve(&[]);
    let report = example("grpc.lua", &url);
    report.assert_checks_hold(6, 20);
    assert_eq!(report.outcome("answered"), 120);
    assert_eq!(report.outcome("not_ok"), 20, "a status other than OK is no success");
}

const SCRIPT: &str = r#"
local brunt = require "brunt"
local shop = brunt.grpc { base = "URL", proto = "shop.proto", metadata = { ["x-all"] = "1" }, OPTIONS }
brunt.scenario("all", function(vu)
  local given = { sku = "a ü", count = -3, big = "-9007199254740993", u = 4294967295, uu = "18446744073709551615", z = -70000,
    zz = "-9223372036854775808", f = 7, ff = 8, s = -9, ss = -10, a = 1.5, b = -2.25e300, yes = true, raw = "\0\255",
    colour = "COLOUR_RED", size = { width = 3 }, packed = { 1, -1, 300 }, words = { "", "x" }, sizes = { k = { width = 4 } },
    names = { [-1] = "minus" }, right = 0, maybe = 0 }
  local answer = shop:call("shop.Cart/Add", given)
  brunt.check(answer, { ["came back"] = answer.ok })
  for name, value in pairs(given) do
    -- Bytes and numbers as keys have no JSON.
    local got = answer.value[name]
    brunt.check(nil, { [name] = name == "raw" and got == value or name == "names" and got[-1] == "minus"
      or name ~= "raw" and name ~= "names" and brunt.json.encode(got) == brunt.json.encode(value) })
  end
  brunt.check(nil, { ["what is not set"] = answer.value.left == nil })
  local at = shop:call("Cart/Add", { at = "1970-01-01T00:00:05Z" })
  brunt.check(nil, { at = at.value.at.seconds == 5 })
  local refused = shop:call("Add", {}, { metadata = { ["x-status"] = "3" } })
  brunt.check(nil, { refused = refused.status == 3 and refused.message == "no sku: ü, 100%"
    and refused.details[1].type == "google.rpc.BadRequest" and refused.details[1].value.field_violations[1].field == "sku" })
end):inject { brunt.iterations_each(2, 3) }
"#;

#[test]
fn every_type_and_every_status_reaches_the_script() {
    let peer = Peer::with_compression("gzip");
    let dir = Directory::new();
    dir.file("shop.proto", std::fs::read(PROTO).unwrap());
    let script = SCRIPT.replace("URL", &peer.url).replace("OPTIONS", "compress = \"gzip\", deadline = \"20s\"");
    let report = report(0, ["run", &dir.file("all.lua", script)]);
    report.assert_checks_hold(27, 6);
}

#[test]
fn what_does_not_fit_is_an_error_before_the_load() {
    let dir = Directory::new();
    dir.file("shop.proto", std::fs::read(PROTO).unwrap());
    for (client, call, expected) in [
        ("proto = \"shop.proto\"", "\"Add\", { skuu = 1 }", "Add: shop.Item has no field 'skuu'"),
        ("proto = \"shop.proto\"", "\"Add\", { size = { width = \"x\" } }", "Add: size.width: expected a whole number"),
        (
            "proto = \"shop.proto\"",
            "\"Fill\", { {}, { count = true } }",
            "Fill: message 2: count: expected a whole number",
        ),
        ("proto = \"shop.proto\"", "\"Sub\"", "Sub: there is no method 'Sub'"),
        ("proto = \"none.proto\"", "\"Add\"", "brunt.grpc: none.proto: there is no such file"),
        ("compress = \"gzip\"", "\"Add\"", "brunt.grpc: it needs the schema"),
        ("proto = \"shop.proto\", compress = \"br\"", "\"Add\"", "compress must be \"gzip\""),
    ] {
        let script = format!(
            "local brunt = require \"brunt\"\nlocal shop = brunt.grpc {{ base = \"grpc://127.0.0.1:1\", {client} }}\n\
             brunt.scenario(\"a\", function() shop:call({call}) end):inject {{ brunt.iterations_each(1, 1) }}\n"
        );
        let done = run(["run", &dir.file("wrong.lua", script)]);
        assert_eq!(done.status, Some(2), "{call}: {done:#?}");
        assert!(
            done.stderr.split_whitespace().collect::<Vec<_>>().join(" ").contains(expected),
            "{call}: {}",
            done.stderr
        );
    }
}

const TRACED: &str = r#"
local brunt = require "brunt"
local shop = brunt.grpc { base = "URL", proto = "shop.proto", metadata = { ["x-trace"] = "1" } }
brunt.scenario("traced", function()
  local function is_traced(value)
    return #value == 55 and value:match("^00%-%x+%-%x+%-01$") ~= nil
  end
  local first, second = shop:call("Add", {}).value.sku, shop:call("Add", {}).value.sku
  local own = shop:call("Add", {}, { metadata = { traceparent = "00-mine" } }).value.sku
  local chat = shop:stream("Chat", nil, { name = "chat" })
  chat:send({ count = 1 })
  local said = chat:receive().sku
  chat:finish()
  while chat:receive() do end
  local refused = shop:call("Add", {}, { metadata = { ["x-status"] = "3" }, name = "refused" })
  brunt.check(nil, { unary = is_traced(first) and is_traced(second) and first ~= second, own = own == "00-mine",
    stream = is_traced(said), refused = refused.status == 3 })
end):inject { brunt.iterations_each(2, 3) }
"#;

/// As grpcio has it in its metadata.
#[test]
fn calls_have_a_traceparent_in_their_metadata() {
    let peer = Peer::start();
    let dir = Directory::new();
    dir.file("shop.proto", std::fs::read(PROTO).unwrap());
    let lua = dir.file("traced.lua", TRACED.replace("URL", &peer.url));
    let traced = report(0, ["run", &lua, "--trace", "100%", "--max-error-rate", "100%"]);
    traced.assert_checks_hold(4, 6);
    let examples = traced.at("/outcomes/examples/3").as_array().unwrap().clone();
    let is_id = |call: &serde_json::Value| call["trace_id"].as_str().is_some_and(|id| id.len() == 32);
    assert!(!examples.is_empty() && examples.iter().all(is_id), "{examples:#?}");
}
