//! Scripts for wrk: the examples and what they are there to show, on brunt and, where it is installed, on wrk itself.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

#[allow(dead_code, reason = "shared with other tests")]
#[path = "cli/program.rs"]
mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use brunt_testbed::server::{Server, ServerConfig};
use program::{Directory, Done, brunt, done};
use rustix::process::Signal;
use serde_json::Value;

fn target() -> (Server, String) {
    let server = Server::start(ServerConfig::default()).unwrap();
    let url = server.url();
    (server, url)
}

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wrk");
    folder.join(name).to_str().unwrap().to_owned()
}

/// Whether wrk is installed, to compare with.
fn wrk_is_installed() -> bool {
    Command::new("wrk").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// A run by a script, in wrk's form: brunt called as wrk, and wrk if it is here.
fn as_wrk(args: &[&str], url: &str, script_args: &[&str]) -> Vec<(&'static str, Done)> {
    let dir = Directory::new();
    let link = dir.path("wrk");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_brunt"), &link).unwrap();
    let mut programs = vec![("brunt", link)];
    if wrk_is_installed() {
        programs.push(("wrk", "wrk".to_owned()));
    }
    // wrk counts answers that take longer than 2 s as errors, which is how long a busy machine may stand still.
    let all = [args, &["--timeout", "60s", url, "--"], script_args].concat();
    let run = |(name, program): &(&'static str, String)| (*name, done(Command::new(program).args(&all)).with_status(0));
    programs.iter().map(run).collect()
}

/// The numbers in a line that begins with `start`.
fn numbers(done: &Done, start: &str) -> Vec<u64> {
    let line = done.stdout.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {done:#?}"));
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// `N requests in`: how many a report has.
fn requests(done: &Done) -> u64 {
    let line = done.stdout.lines().find(|line| line.contains(" requests in ")).unwrap_or_else(|| panic!("{done:#?}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// `requests in T`: how long it took, in seconds.
fn seconds(done: &Done) -> f64 {
    let (_, rest) = done.stdout.split_once(" requests in ").unwrap_or_else(|| panic!("{done:#?}"));
    let time = rest.split(',').next().unwrap();
    let (number, factor) = match (time.strip_suffix("ms"), time.strip_suffix('s'), time.strip_suffix('m')) {
        (Some(ms), ..) => (ms, 0.001),
        (_, Some(s), _) => (s, 1.0),
        (.., m) => (m.unwrap(), 60.0),
    };
    number.parse::<f64>().unwrap() * factor
}

/// A line with its numbers left out: its shape.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for word in line.split_whitespace() {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with("-nan");
        shape.push_str(if is_number { "#" } else { word });
        shape.push(' ');
    }
    shape
}

/// Where wrk is installed, tests here hold brunt against it.
#[test]
#[ignore = "needs wrk: make test installs it"]
fn wrk_is_there_to_be_held_against() {
    assert!(wrk_is_installed());
}

#[test]
fn the_output_has_wrks_shape() {
    let (_server, url) = target();
    let shapes: Vec<Vec<String>> = as_wrk(&["-t2", "-c4", "-d1", "--latency", "-s", &example("report.lua")], &url, &[])
        .iter()
        .map(|(_, done)| {
            let lines = done.stdout.lines().filter(|line| !line.starts_with("Verdict:"));
            lines.map(|line| if line.starts_with('{') { "{}".to_owned() } else { shape(line) }).collect()
        })
        .collect();
    assert_eq!(shapes[0].last().map(String::as_str), Some("{}"), "what done() prints is the last");
    assert!(shapes.iter().all(|shape| *shape == shapes[0]), "{shapes:#?}");
}

#[test]
fn done_sees_the_figures_that_the_report_shows() {
    let (_server, url) = target();
    for (name, done) in as_wrk(&["-t2", "-c4", "-d1", "-s", &example("report.lua")], &url, &[]) {
        let report: BTreeMap<String, f64> = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(report["requests"] as u64, requests(&done), "{name}");
        assert!((report["duration_us"] / 1e6 - seconds(&done)).abs() < 0.01 * seconds(&done), "{name}: {report:?}");
        assert_eq!((report["errors"], report["bad_statuses"]), (0.0, 0.0), "{name}: {report:?}");
        let order = ["latency_min_us", "latency_p50_us", "latency_p99_us", "latency_max_us"].map(|key| report[key]);
        assert!(order.is_sorted() && order[0] > 0.0, "{name}: {report:?}");
        assert!(report["latency_first_us"] >= order[0] && report["latency_values"] > 1.0, "{name}: {report:?}");
        assert!(
            report["bytes"] > report["requests"] && report["thread_requests_per_s_max"] > 0.0,
            "{name}: {report:?}"
        );
    }
}

#[test]
fn a_token_of_the_first_answer_is_sent_with_the_others() {
    let (_server, url) = target();
    let args = ["-t1", "-c1", "-d1", "-s", &example("auth-token.lua")];
    for (name, done) in as_wrk(&args, &url, &["/_/count", "/_/headers"]) {
        let [accepted, refused, all] = numbers(&done, "accepted")[..] else { panic!("{name}: {done:#?}") };
        // The script sees the one answer, too, that comes once the measured time is over.
        let late = accepted + 1 - all;
        assert!(late <= 1 && refused == 0, "{name}: {accepted} accepted of {all}, {refused} refused");
    }
    // What arrives at the server: a script that looks at it.
    let dir = Directory::new();
    let check = "local plain = response function response(s, h, b) plain(s, h, b) \
                 if accepted > 0 then assert(b:find('Authorization: Bearer %d+'), b) end end";
    let script = std::fs::read_to_string(example("auth-token.lua")).unwrap() + check;
    let script = dir.file("check.lua", script);
    done(&mut brunt(["-s", &script, "-n", "50", "-c", "1", &url, "--", "/_/count", "/_/headers"])).with_status(0);
}

#[test]
fn threads_count_for_themselves_and_are_added_up() {
    let (_server, url) = target();
    for (name, done) in as_wrk(&["-t2", "-c4", "-d1", "-s", &example("count-over-threads.lua")], &url, &[]) {
        let [sum, all] = numbers(&done, "answers")[..] else { panic!("{name}: {done:#?}") };
        // A script sees the answers of the calls that were under way at the end, too.
        assert!(all == requests(&done) && (all..=all + 4).contains(&sum), "{name}: {sum} {all}");
        let own = [1, 2].map(|thread| numbers(&done, &format!("thread {thread} "))[1]);
        assert_eq!(own.iter().sum::<u64>(), sum, "{name}");
        assert_eq!(numbers(&done, "status "), [200, sum], "{name}");
    }
}

#[test]
fn every_request_has_a_path_and_a_header_of_its_own() {
    let (server, url) = target();
    let dir = Directory::new();
    let see = "local seen = 0 function response(s, h, b) seen = seen + 1 \
               if seen <= 4 then print(b:match('GET (%S+)'), b:match('X%-Request: (%d+)')) io.stdout:flush() end end";
    let script = std::fs::read_to_string(example("paths.lua")).unwrap() + see;
    let script = dir.file("see.lua", script);
    let url = format!("{url}_/headers");
    let ours = done(&mut brunt(["-s", &script, "-n", "10", "-c", "1", "--quiet", &url, "--", "3"])).with_status(0);
    let path = |n| format!("/_/headers?item={n}\t{n}\n");
    assert_eq!(ours.stdout, [path(1), path(2), path(3), path(1)].concat());
    assert_eq!(server.requests(), 10);
    for (name, done) in as_wrk(&["-t1", "-c1", "-d1", "-s", &script], &url, &["3"]) {
        let seen: Vec<_> = done.stdout.lines().filter(|line| line.starts_with("/_/headers")).collect();
        // wrk asks for one more request than it sends, before all others.
        let first = if name == "wrk" { 2 } else { 1 };
        assert_eq!(seen[0], path(first).trim_end(), "{name}: {done:#?}");
    }
}

#[test]
fn a_batch_is_counted_as_what_it_is() {
    let (server, url) = target();
    let ours = done(&mut brunt(["-s", &example("pipeline.lua"), "-n", "30", "-c", "2", "--format", "json", &url]));
    let result: Value = serde_json::from_str(&ours.with_status(0).stdout).unwrap();
    assert_eq!((server.requests(), &result["outcomes"]["due"]), (30, &Value::from(30)));
    for (name, done) in as_wrk(&["-t1", "-c2", "-d1", "-s", &example("pipeline.lua")], &url, &[]) {
        assert!(requests(&done) >= 3, "{name}: {done:#?}");
    }
}

#[test]
fn a_delay_comes_before_every_request() {
    let (_server, url) = target();
    for (name, done) in as_wrk(&["-t1", "-c2", "-d1", "-s", &example("delay.lua")], &url, &["50", "50"]) {
        // Two connections, each at most every 50 ms.
        let most = 2 * (1 + (seconds(&done) / 0.05) as u64);
        assert!((2..=most).contains(&requests(&done)), "{name}: {done:#?}");
    }
}

#[test]
fn a_delay_is_kept_where_each_call_has_a_connection() {
    let (_server, url) = target();
    let args = ["-s", &example("delay.lua"), "--reconnect", "-c", "2", "-d", "1s", "--format", "wrk", &url];
    let ours = done(&mut brunt([&args[..], &["--", "50", "50"]].concat())).with_status(0);
    let most = 2 * (1 + (seconds(&ours) / 0.05) as u64);
    assert!((2..=most).contains(&requests(&ours)), "{ours:#?}");
}

#[test]
fn a_thread_that_stops_has_its_answers_and_no_more() {
    let (_server, url) = target();
    for (name, done) in as_wrk(&["-t2", "-c2", "-d1", "-s", &example("stop.lua")], &url, &["25"]) {
        assert_eq!(numbers(&done, "thread 1"), [1, 25], "{name}");
        assert_eq!(numbers(&done, "thread 2"), [2, 25], "{name}");
        assert_eq!(requests(&done), 50, "{name}");
    }
}

#[test]
fn threads_take_turns_over_addresses() {
    let (first, url) = target();
    let (second, _) = target();
    for (program, wanted) in [(Some(env!("CARGO_BIN_EXE_brunt")), 10), (wrk_is_installed().then_some("wrk"), 1)] {
        let Some(program) = program else { continue };
        let before = [first.requests(), second.requests()];
        let ours = program != "wrk";
        let script = example("addresses.lua");
        let mut command = Command::new(program);
        command.args(["-t2", "-c2", "-s", &script, &url]).args(if ours { ["-n", "1000"] } else { ["-d", "1"] });
        let done = done(command.env("PORTS", second.port().to_string()).env("BRUNT_NO_SAVE", "1")).with_status(0);
        for port in [first.port(), second.port()] {
            assert!(done.stdout.contains(&format!("a thread goes to 127.0.0.1:{port}")), "{done:#?}");
        }
        let got = [first.requests() - before[0], second.requests() - before[1]];
        assert!(got.iter().all(|requests| *requests >= wanted), "{got:?}");
    }
}

#[test]
fn a_script_without_functions_sends_what_it_says() {
    let (_server, url) = target();
    let dir = Directory::new();
    let show = "function response(s, h, b) print(h['Content-Type'], b) wrk.thread:stop() end";
    let script = dir.file("post.lua", std::fs::read_to_string(example("post.lua")).unwrap() + show);
    for (name, done) in as_wrk(&["-t1", "-c1", "-d1", "-s", &script], &format!("{url}_/headers"), &[]) {
        for line in
            ["POST /_/headers HTTP/1.1", "Content-Length: 10", "Content-Type: application/x-www-form-urlencoded"]
        {
            assert!(done.stdout.contains(line), "{name}: {done:#?}");
        }
    }
}

#[test]
fn the_table_and_the_arguments_are_wrks() {
    let (_server, url) = target();
    let dir = Directory::new();
    let script = dir.file(
        "show.lua",
        r#"
        local function q(v) return type(v) == "string" and string.format("%q", v) or tostring(v) end
        function setup(t)
          print("main", type(t), wrk.thread, #wrk.addrs, tostring(t.addr), type(t.addr))
          t:set("shared", {1, "two", three = true})
          print(pcall(t.set, t, "f", print))
        end
        function init(args)
          print("args", #args, args[0], args[1], args[2], args[3])
          print("wrk", q(wrk.scheme), q(wrk.host), q(wrk.port), q(wrk.path), q(wrk.method), q(wrk.body), type(wrk.thread))
          print("host", wrk.headers["Host"], wrk.headers["X-Given"], getmetatable(wrk.headers), package.loaded.wrk == wrk)
          print("set", shared[1], shared[2], shared.three)
          local headers = {A = "b"}
          print("format", #wrk.format("PUT", "/p", headers, "body"), headers["Content-Length"], headers["Host"] ~= nil)
          print("format", #wrk.format(nil, nil, headers), headers["Content-Length"])
          print("lookup", type(wrk.lookup("127.0.0.1", 80)[1]), tostring(wrk.lookup("127.0.0.1", "80")[1]))
          print("libs", type(require("ffi").C), type(debug.sethook), type(jit.on), type(bit.bxor))
        end
        function response(status, headers, body)
          print("response", status, type(headers), type(body), headers["Content-Length"] == tostring(#body))
          print("none", headers["content-length"], getmetatable(headers))
          wrk.thread:stop()
        end
        function done(s, l, r) print("done", type(s), type(l), type(r), s.errors.status, l.nothing == 1) end
        "#,
    );
    let url = format!("{url}path?query=1");
    let shown = as_wrk(&["-t1", "-c1", "-d1", "-H", "X-Given: yes", "-s", &script], &url, &["one", "two"]);
    let own = |done: &Done| -> Vec<String> {
        let words = ["main", "args", "wrk", "host", "set", "format", "lookup", "libs", "response", "none", "done"];
        let lines = done.stdout.lines().filter(|line| words.contains(&line.split('\t').next().unwrap_or_default()));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(own(&shown[0].1).len(), 12, "{shown:#?}");
    assert!(shown[0].1.stdout.contains("cannot transfer 'function' to thread"), "{shown:#?}");
    for (name, done) in &shown {
        assert_eq!(own(done), own(&shown[0].1), "{name}");
    }
}

/// Not on wrk, which a table within a table crashes (wrk 4.1.0: always, or one time in four, as its stack happens to be).
#[test]
fn a_thread_is_given_tables_within_tables_and_gives_them_back() {
    let (_server, url) = target();
    let dir = Directory::new();
    let script = dir.file(
        "nested.lua",
        r#"
        local threads = {}
        function setup(t) threads[1] = t t:set("given", {1, {deep = {"er", [2.5] = true}}}) end
        function init() back = {given[1], given[2].deep[1], {given[2].deep[2.5], {}}} end
        function done()
          local back = threads[1]:get("back")
          print("back", back[1], back[2], back[3][1], #back, #back[3], next(back[3][2]))
        end
        "#,
    );
    let done = done(&mut brunt(["-s", &script, "-t", "1", "-c", "1", "-n", "1", &url])).with_status(0);
    assert!(done.stdout.contains("back\t1\ter\ttrue\t3\t2\tnil\n"), "{done:#?}");
}

#[test]
fn what_is_wrong_with_a_script_is_said_before_any_load() {
    let (server, url) = target();
    let dir = Directory::new();
    for (code, problem) in [
        ("\nx = = 1", ":2: unexpected symbol near '='"),
        ("\n\nerror('at the top')", ":3: at the top\nstack traceback:"),
        ("function setup(t) t.addr = 'x' end", "setup() failed: "),
        ("function setup(t)\n t.other = 1 end", ":2: cannot set 'other' on thread"),
        ("function init(args)\n local x = nil .. 'a' end", ":2: attempt to concatenate a nil value"),
        ("function request() return nil end", "request() must return an HTTP request, a string, and returned nil"),
        ("function request() return {} end", "and returned table"),
        (
            "function request() return 'GET / HTTP/1.1\\r\\n' end",
            "the request is not complete: it ends at line 2, column 1",
        ),
        ("function request() return 'GET / HTTP/1.1\\r\\nA b: c\\r\\n\\r\\n' end", "at line 2, column 2"),
        ("wrk.body = 'x' wrk.init = nil", "init() of "),
        ("require('nothing.of.this.name')", "module 'nothing.of.this.name' not found"),
    ] {
        let script = dir.file("wrong.lua", code);
        let done = done(&mut brunt(["-s", &script, "-d", "1s", &url])).with_status(2);
        assert!(done.stderr.starts_with("error: ") && done.stderr.contains(problem), "{code}: {}", done.stderr);
        assert!(done.stderr.contains("wrong.lua") && !done.stderr.contains("Error("), "{code}: {}", done.stderr);
        assert_eq!(done.stdout, "", "{code}");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn an_error_in_a_hook_ends_the_run_with_the_report_so_far() {
    let (_server, url) = target();
    let dir = Directory::new();
    for (hook, code) in [
        (
            "request()",
            "local n = 0 function request() n = n + 1 if n > 40 then error('enough') end return wrk.format() end",
        ),
        ("response()", "local n = 0 function response() n = n + 1 if n > 40 then error('enough') end end"),
        ("delay()", "local n = 0 function delay() n = n + 1 if n > 40 then error('enough') end return 0 end"),
    ] {
        let script = dir.file("fails.lua", code);
        let done = done(&mut brunt(["-s", &script, "-d", "20s", "-c", "2", "--format", "json", &url])).with_status(2);
        let result: Value = serde_json::from_str(&done.stdout).unwrap();
        assert!(result["outcomes"]["due"].as_u64().unwrap() >= 38, "{hook}: {}", result["outcomes"]);
        let reason = result["ending"]["failed"].as_str().unwrap();
        assert!(reason.contains(hook) && reason.contains("fails.lua:1: enough\nstack traceback:"), "{reason}");
        assert!(done.stderr.contains("fails.lua:1: enough"), "{}", done.stderr);
    }
}

#[test]
fn a_hook_that_never_returns_holds_nobody() {
    let (_server, url) = target();
    let dir = Directory::new();
    for (hook, code) in [
        ("request()", "local n = 0 function request() n = n + 1 while n > 9 do end return wrk.format() end"),
        ("response()", "local n = 0 function response() n = n + 1 while n > 9 do end end"),
    ] {
        let script = dir.file("hangs.lua", code);
        let done = done(&mut brunt(["-s", &script, "-d", "1h", "-c", "2", "-t", "2", &url])).with_status(2);
        assert!(done.stdout.contains(&format!("{hook} has not come back")), "{done:#?}");
    }
}

#[test]
fn a_worker_that_is_left_behind_keeps_its_figures() {
    let (_server, url) = target();
    let dir = Directory::new();
    // Each of two threads makes 50 calls a second, and hangs in its first.
    let script =
        dir.file("hangs.lua", "local n = 0 function request() n = n + 1 while n > 35 do end return wrk.format() end");
    let args = ["-s", &script, "-d", "1h", "-r", "100", "-c", "2", "-t", "2", "--format", "json", &url];
    let done = done(&mut brunt(args)).with_status(2);
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    let outcomes = &result["outcomes"];
    let count = |name: &str| outcomes[name].as_u64().unwrap();
    let answered = count("answered");
    assert!(answered >= 40, "what it did in its first second counts: {outcomes}");
    let ended = answered + count("failed") + count("unfinished") + count("unsent");
    assert_eq!(count("due"), ended, "{outcomes}");
}

#[test]
fn ctrl_c_ends_a_script_that_never_returns() {
    let (_server, url) = target();
    let dir = Directory::new();
    for (hook, code) in [
        ("init()", "function init() print('here') io.stdout:flush() while true do end end"),
        ("done()", "function done() print('here') io.stdout:flush() while true do end end"),
    ] {
        let script = dir.file("hangs.lua", code);
        let mut running = program::Running::start(["-s", &script, "-n", "10", "--quiet", &url]);
        assert_eq!(running.line(), "here\n");
        running.send(Signal::INT);
        // The signal comes first among exit statuses; what was wrong is said all the same.
        let done = running.wait().with_status(130);
        assert!(done.stderr.contains(&format!("{hook} has not come back")), "{done:#?}");
    }
}

#[test]
fn a_script_that_takes_the_time_is_named_by_the_verdict() {
    let (_server, url) = target();
    let dir = Directory::new();
    let code = "function request() local x = 0 for i = 1, 3e5 do x = x + i % 7 end return wrk.format() end";
    let script = dir.file("slow.lua", code);
    let done =
        done(&mut brunt(["-s", &script, "-d", "2s", "-c", "1", "-t", "1", "--format", "json", &url])).with_status(0);
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    let found = result["verdict"]["findings"].as_array().unwrap();
    // Where other programs take the CPU, it is they that are named.
    let others = found.iter().any(|finding| finding["cause"] == "cpu_starved");
    assert!(others || found.iter().any(|finding| finding["cause"] == "slow_script"), "{}", result["verdict"]);
}

#[test]
fn what_brunt_has_besides_goes_with_scripts() {
    let (server, url) = target();
    let dir = Directory::new();
    let script = dir.file("mark.lua", "function request() return wrk.format(nil, '/a') end");
    let plan = dir.path("plan.json");
    let args = ["-s", &script, "-r", "500", "-n", "500", "-w", "200ms", "--threshold", "error_rate==0"];
    done(&mut brunt([&args[..], &["--write-plan", &plan, &url, "--", "x"]].concat())).with_status(0);
    assert!((500..=602).contains(&server.requests()), "{}", server.requests());
    // The script travels with its plan.
    std::fs::remove_file(&script).unwrap();
    done(&mut brunt(["--plan", &plan])).with_status(0);
    assert!(std::fs::read_to_string(&plan).unwrap().contains("wrk.format(nil, '/a')"));
    let lines = dir.file("lines", "/a\n");
    let script = dir.file("mark.lua", "");
    done(&mut brunt(["-s", &script, "--url-lines", &lines, &url])).with_status(2);
}

/// The header files of the `LuaJIT` that is in the program would do as well; these lines are all that a module needs.
const MODULE: &str = r#"
typedef struct lua_State lua_State;
extern long lua_tointeger(lua_State *, int);
extern void lua_pushinteger(lua_State *, long);
extern void lua_pushcclosure(lua_State *, int (*)(lua_State *), int);
extern void lua_createtable(lua_State *, int, int);
extern void lua_setfield(lua_State *, int, const char *);
static int twice(lua_State *L) { lua_pushinteger(L, 2 * lua_tointeger(L, 1)); return 1; }
int luaopen_twice(lua_State *L) {
  lua_createtable(L, 0, 1);
  lua_pushcclosure(L, twice, 0);
  lua_setfield(L, -2, "twice");
  return 1;
}
"#;

#[test]
fn modules_written_in_c_load() {
    let dir = Directory::new();
    let (source, library) = (dir.file("twice.c", MODULE), PathBuf::from(dir.path("twice.so")));
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(compiled.unwrap().success());
    let folder = library.parent().unwrap().to_str().unwrap();
    let script = dir.file(
        "module.lua",
        format!("package.cpath = '{folder}/?.so'\nfunction done() print(require('twice').twice(21)) end"),
    );
    let (_server, url) = target();
    let done = done(&mut brunt(["-s", &script, "-n", "5", "--quiet", &url])).with_status(0);
    assert_eq!(done.stdout, "42\n");
}

#[test]
fn called_as_wrk_it_takes_wrks_command_line() {
    let dir = Directory::new();
    let link = dir.path("wrk");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_brunt"), &link).unwrap();
    let wrong = done(Command::new(&link).args(["-t4", "-c2", "http://127.0.0.1/"])).with_status(1);
    assert!(wrong.stdout.starts_with("Usage: wrk <options> <url>"), "{wrong:#?}");
    assert_eq!(wrong.stderr, "number of connections must be >= threads\n");
    let version = done(Command::new(&link).arg("-v")).with_status(1);
    assert!(version.stdout.contains("called as wrk"), "{version:#?}");
    let (server, url) = target();
    let plain = done(Command::new(&link).args(["-d1", "-t", "1", "-c", "3", &url])).with_status(0);
    assert!(
        plain.stdout.starts_with(&format!("Running 1s test @ {url}\n  1 threads and 3 connections\n")),
        "{plain:#?}"
    );
    assert!(server.requests() > 0);
}
