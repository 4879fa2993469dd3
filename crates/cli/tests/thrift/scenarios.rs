//! Thrift in scenarios, against the same servers, and the example against the built-in echo.

use std::path::Path;

use crate::echo::serve;
use crate::peers::{IDL, Implementation, Listener, Peer};
use crate::program::{Directory, run};
use crate::report::{Report, example, report};

#[test]
fn the_example_is_right() {
    let (_server, url) = serve(&[]);
    let report = example("thrift.lua", &url);
    report.assert_checks_hold(6, 20);
    assert_eq!(report.failures(), [("exception", 20)].into());
    assert_eq!(report.outcome("not_ok"), 40, "neither an exception nor a failure is a success");
    let refused = serde_json::json!({"1": "Refused"});
    assert_eq!(report.at("/outcomes/status_names"), &refused);
    let requests = report.at("/names/requests").as_array().unwrap();
    let named: Vec<_> = requests.iter().filter(|request| request["status_names"] == refused).collect();
    assert!(named.len() == 1 && named[0]["name"] == "refuse", "{requests:#?}");
}

const SCRIPT: &str = r#"
local all = brunt.thrift { idl = "everything.thrift", service = "Everything", OPTIONS }
brunt.scenario("all", function(vu)
  local function same(method, value, wanted)
    local answer = all[method](all, { v = value })
    local got = answer.value
    brunt.check(nil, { [method] = brunt.json.encode(got) == brunt.json.encode(wanted == nil and value or wanted) or answer.reason })
  end
  same("echo_true", true)
  same("echo_byte", -128)
  same("echo_i32", 2147483647)
  same("echo_i64", "-9007199254740993")
  same("echo_double", -1.5e300)
  same("echo_string", "größer 🦀")
  brunt.check(nil, { binary = all:echo_binary({ v = "\0\255\128\n" }).value == "\0\255\128\n" })
  same("echo_enum", "BLUE")
  same("echo_struct", { x = -3, name = "ä" }, { x = -3, y = 7, name = "ä" })
  same("echo_union", { point = { x = 1, y = 2 } })
  same("echo_list", { -10, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 })
  same("echo_bools", { true, false, true })
  same("echo_map", { one = 1, minus = -1 })
  local set = all:echo_set({ v = { "c", "a", "b" } }).value
  table.sort(set)
  brunt.check(nil, { set = table.concat(set) == "abc" })
  local nested = all:echo_nested({ v = { RED = { { t = true, f = false }, {} }, BLUE = {} } }).value
  brunt.check(nil, { nested = nested.RED[1].t == true and nested.RED[1].f == false and #nested.BLUE == 0 })
  brunt.check(nil, { default = all:echo_default().value == 42, add = all:add({ a = 1, b = 2, c = 3 }).value == 6 })
  local busy, refused = all:refuse { busy = true }, all:refuse { busy = false }
  brunt.check(nil, {
    busy = busy.exception.name == "Busy" and busy.exception.value.seconds == 1 and busy.value == nil and not busy.ok,
    refused = refused.exception.value.why == "closed" and refused.exception.value.code == 3 and not refused.error,
  })
  local crash = all:crash()
  brunt.check(nil, { crash = crash.error == "exception" and crash.reason:find("internal error", 1, true) })
  brunt.check(nil, { inherited = all:healthy().value == true })
  local fits, problem = pcall(function() all:add { a = 1, b = 40000, c = 3 } end)
  brunt.check(nil, { misfit = not fits and tostring(problem):find("Everything.add.b: expected i16 (-32768 to 32767), got 40000", 1, true) })
end):inject { brunt.iterations_each(2, 2) }
"#;

/// Runs a script beside the IDL, whose directory is where it looks for it.
fn play(peer: &Peer, status: i32, text: &str) -> Report {
    let folder = Path::new(IDL).parent().unwrap();
    for name in ["everything.thrift", "shared.thrift"] {
        std::fs::copy(folder.join(name), peer.dir.path(name)).unwrap();
    }
    let path = peer.dir.file("s.lua", format!("local brunt = require 'brunt'\n{text}"));
    let certificate = peer.dir.path("cert.pem");
    report(status, ["run", "-t", "1", "--cacert", &certificate, &path])
}

#[test]
#[ignore = "needs thrift-compiler, python3-venv: make test installs them"]
fn every_type_goes_there_and_back() {
    for implementation in [Implementation::Apache, Implementation::Thriftpy] {
        let peer = Peer::start(implementation);
        // In JSON, thriftpy2 reads keys of maps that are numbers as texts.
        let is_sound = |listener: &&Listener| implementation != Implementation::Thriftpy || listener.protocol != "json";
        for listener in peer.listeners.iter().filter(is_sound) {
            // What thriftpy2 does when a method fails is to close the connection.
            let script = if implementation == Implementation::Apache {
                SCRIPT.to_owned()
            } else {
                SCRIPT.replace(
                    "crash.error == \"exception\" and crash.reason:find(\"internal error\", 1, true)",
                    "crash.error",
                )
            };
            let scheme = if listener.kind == "tls" { "thrifts" } else { "thrift" };
            let options = format!(
                "address = '{scheme}://127.0.0.1:{}', protocol = '{}', transport = '{}', multiplexed = {}",
                listener.port,
                listener.protocol,
                listener.transport,
                listener.kind == "multiplexed"
            );
            let report = play(&peer, 0, &script.replace("OPTIONS", &options));
            report.assert_checks_hold(22, 4);
        }
    }
}

#[test]
fn once_shows_what_was_called_and_what_came() {
    let (_server, url) = serve(&[]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios/thrift.lua");
    let done = run(["run", "--once", "--base-url", &url, file.to_str().unwrap()]).with_status(0);
    for expected in [
        "→ item\n  item({\"item\": {\"sku\": \"a1\", \"count\": 1, \"colour\": \"RED\"}})\n\n  00000000  80 01 00 01 00 00 00 04",
        "\n  returned {\"sku\": \"a1\", \"count\": 1, \"colour\": \"RED\"}\n\n  00000000  80 01 00 02",
        "\n← 1 in ",
        "\n  threw Refused {\"why\": \"refused\"}\n",
        "\n✗ exception: internal error: asked to fail\n",
    ] {
        assert!(done.stdout.contains(expected), "{expected}: {}", done.stdout);
    }
}

#[test]
fn arguments_that_do_not_fit_are_found_before_anything_is_sent() {
    let dir = Directory::new();
    dir.file(
        "shop.thrift",
        "struct Item { 1: i32 count } exception Gone { 1: string why }
        service Shop { i64 price(1: string sku = 'a', 2: Item item = {'count': 1}) throws (1: Gone gone) }",
    );
    for (call, expected) in [
        ("shop:price { sku = 5 }", "s.lua:4: Shop.price.sku: expected string, got 5"),
        ("shop:price { sku = 'a', item = { count = 'many' } }", "s.lua:4: Shop.price.item.count: expected i32, got"),
        ("shop:prise { sku = 'a' }", "s.lua:4: Shop has no method 'prise'; it has price"),
        ("local r = shop:price {} if r.ok then shop:price { sku = true } end", "Shop.price.sku: expected string"),
        ("local r = shop:price {} brunt.check(r, { x = r.value == 3 }) shop:price { sku = 5 }", "got 5"),
    ] {
        let text = format!(
            "local brunt = require 'brunt'
             local shop = brunt.thrift {{ idl = 'shop.thrift', address = '127.0.0.1:9' }}
             brunt.scenario('s', function(vu, given)
               {call}
             end):inject {{ brunt.users(1, '1s') }}"
        );
        let script = dir.file("s.lua", text);
        let said = run(["run", "--dry-run", &script]).with_status(2).stderr;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{call}: {said}");
    }
    // What an answer, or setup, has made is for the load to tell.
    for call in [
        "local r = shop:price {} shop:price { sku = r.value }",
        "local r = shop:price {} shop:price { sku = 'a', item = { count = tonumber(tostring(r.value)) } }",
        "shop:price { sku = given.sku, item = given.item }",
        "local r = shop:price {} if r.exception then shop:price { sku = r.exception.value.why } end",
    ] {
        let text = format!(
            "local brunt = require 'brunt'
             local shop = brunt.thrift {{ idl = 'shop.thrift', address = '127.0.0.1:9' }}
             brunt.scenario('s', function(vu, given) {call} end):inject {{ brunt.users(1, '1s') }}"
        );
        let script = dir.file("s.lua", text);
        run(["run", "--dry-run", &script]).with_status(0);
    }
}
