//! What commands say where another sentence would be wrong.

use std::fmt::Write as _;
use std::time::Duration;

use brunt_testbed::server::{Delay, Queue, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, Done, run};
use crate::runs::target;

/// The environment of tests allows every failure.
const STRICT: [&str; 4] = ["-t1", "--max-error-rate", "1%", "--no-save"];

fn slow(millis: u64) -> ServerConfig {
    ServerConfig { delay: Delay::Fixed(Duration::from_millis(millis)), ..ServerConfig::default() }
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:#?}"))
}

/// A scenario of one user whose function has this body, with this at the script's top, and this at its end.
fn scenario(dir: &Directory, url: &str, top: &str, body: &str, end: &str) -> String {
    let base = url.trim_end_matches('/');
    let text = format!(
        "local brunt = require 'brunt'\nlocal http = brunt.http {{ base = '{base}' }}\n{top}\n\
         local s = brunt.scenario('s', function(vu)\n{body}\nend)\ns:inject {{ brunt.iterations_each(2, 2) }}\n{end}\n"
    );
    dir.file("s.lua", text)
}

#[test]
fn a_mark_of_failure_and_the_exit_status_agree() {
    let (_server, url) = target(slow(1));
    for (more, path) in [
        (&[][..], ""),
        (&[], "_/status/307"),
        (&[], "_/status/404"),
        (&[], "_/status/503"),
        (&["--ok-status", "404"], "_/status/404"),
        (&["--threshold", "p50<1ns"], ""),
        (&["--threshold", "rate>1M"], "_/status/503"),
    ] {
        let url = format!("{url}{path}");
        let done = run([&["-n", "40", "-c", "2"], STRICT.as_slice(), more, &[&url]].concat());
        let is_bad = done.stdout.starts_with('✗') || done.stdout.starts_with("FAILED");
        assert_eq!(is_bad, done.status != Some(0), "{path} {more:?}: {done:#?}");
    }
}

#[test]
fn a_list_of_runs_tells_which_failed() {
    let (_server, url) = target(slow(1));
    let dir = Directory::new();
    let store = dir.path("runs.db");
    for path in ["", "_/status/500"] {
        let url = format!("{url}{path}");
        run(["-n", "30", "-c", "2", "-t1", "--max-error-rate", "1%", "--quiet", "--store", &store, &url]);
    }
    let listed: Value = json(&run(["runs", "--store", &store, "--format", "json"]).with_status(0));
    let text = run(["runs", "--store", &store]).with_status(0).stdout;
    let failed = text.lines().filter(|line| line.contains("100% of 30 calls")).count();
    assert_eq!(failed, 1, "{text} {listed:#}");
}

#[test]
fn a_server_that_fails_is_no_proxy() {
    let (_server, url) = target(ServerConfig { error_rate: 1.0, ..slow(1) });
    let done = run(["-n", "60", "-c", "3", "-t1", "--no-save", &url]);
    assert!(done.stdout.contains("503") && !done.stdout.contains("it is a proxy"), "{}", done.stdout);
}

#[test]
fn statuses_that_the_log_has_fail_no_replay() {
    let (_server, url) = target(slow(1));
    let dir = Directory::new();
    let mut log = String::new();
    for client in 0..8 {
        for (path, status) in [("/_/status/410", 410), ("/", 200), ("/_/status/503", 503)] {
            let _ = writeln!(
                log,
                "203.0.113.{client} - - [28/Nov/2026:10:00:00 +0000] \"GET {path} HTTP/1.1\" {status} 4 \"-\" \"x\""
            );
        }
    }
    let file = dir.file("access.log", log);
    run([&["replay", &file, &url], STRICT.as_slice()].concat()).with_status(0);
}

#[test]
fn a_scale_that_leaves_nothing_is_told_as_that() {
    let (server, url) = target(slow(1));
    let dir = Directory::new();
    let line =
        |n: u32| format!("203.0.113.{n} - - [28/Nov/2026:10:00:0{n} +0000] \"GET /{n} HTTP/1.1\" 200 4 \"-\" \"x\"\n");
    let file = dir.file("access.log", (0..4).map(line).collect::<String>());
    let done = run(["replay", &file, &url, "--scale", "0.02x", "--seed", "1"]);
    assert_eq!(server.requests(), 0, "{done:#?}");
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(said.contains("--scale") && !said.contains("--log-format"), "{said}");
}

#[test]
fn a_body_that_is_no_json_is_told() {
    let (_server, url) = target(slow(1));
    let done = run(["-n", "2", "-c", "1", "--no-save", "--json", "[1, 2", &url]);
    assert!(done.status == Some(2) || done.stderr.contains("JSON"), "{done:#?}");
}

#[test]
fn a_field_that_an_answer_lacks_is_named() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let body = "local colour = http:get('/shop/items/3'):json().colour\nhttp:get('/of/' .. colour)";
    let done = run(["run", "-t1", "--max-error-rate", "1%", &scenario(&dir, &url, "", body, "")]).with_status(1);
    assert!(done.stdout.contains("colour"), "{done:#?}");
}

#[test]
fn a_rehearsal_says_where_a_function_ended() {
    let dir = Directory::new();
    let body = "local found = http:get('/items', { name = 'list' }):json().total\n\
                if found ~= 7 then error('the list has not seven') end\nhttp:get('/last', { name = 'the last one' })";
    let done = run(["check", &scenario(&dir, "http://127.0.0.1:9", "", body, "")]);
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(said.contains("the list has not seven") || said.contains("the last one"), "{said}");
}

#[test]
fn a_table_that_users_change_in_common_is_warned_of() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let body = "basket.full = basket.full or vu.id\nhttp:get('/?basket=' .. basket.full)";
    let script = scenario(&dir, &url, "local basket, prices = {}, { apple = 3 }", body, "");
    let done = run(["run", "-t1", &script]);
    assert!(done.stderr.contains("basket") && !done.stderr.contains("prices"), "{done:#?}");
}

#[test]
fn figures_that_a_metric_lacks_are_told_before_the_load() {
    let dir = Directory::new();
    let top = "local waited, orders, depth = brunt.trend('waited'), brunt.counter('orders'), brunt.gauge('depth')";
    let body = "http:get('/') waited:add(3) orders:add(1) depth:set(2)";
    for (figure, limit, is_there) in [
        ("waited:p90", "< 5", true),
        ("orders:sum", "> 1", true),
        ("waited:share", "< 5%", false),
        ("orders:p99", "< 5", false),
        ("depth:p50", "< 5", false),
    ] {
        let end = format!("brunt.expect {{ ['{figure}'] = '{limit}' }}");
        let done = run(["check", &scenario(&dir, "http://127.0.0.1:9", top, body, &end)]);
        let is_told = done.status != Some(0) || done.stderr.contains("warning");
        assert_eq!(is_told, !is_there, "{figure}: {done:#?}");
    }
}

#[test]
fn threads_with_a_suffix_are_those_of_each_run() {
    let (_server, url) = target(slow(1));
    let dir = Directory::new();
    let keep = dir.path("runs");
    run(["sweep", "-t", "0.003k", "-c", "3,6", "-n30", "-w0", "--quiet", "--keep", &keep, &url]).with_status(0);
    let workers: Vec<_> = std::fs::read_dir(keep)
        .unwrap()
        .map(|file| serde_json::from_slice::<Value>(&std::fs::read(file.unwrap().path()).unwrap()).unwrap())
        .map(|result| result["plan"]["workers"].clone())
        .collect();
    assert_eq!(workers, [3, 3]);
}

#[test]
fn connections_at_a_rate_follow_no_law() {
    let (_server, url) = target(slow(2));
    let sweep = |more: &[&str]| {
        let flags = ["sweep", "-c", "1,2,3,4,5,6", "-t1", "-w0", "-d200ms", "--format=json", "--quiet"];
        json(&run([&flags, more, &[url.as_str()]].concat()).with_status(0))
    };
    assert!(sweep(&["-r", "40"])["law"].is_null());
    assert!(sweep(&[])["law"].is_object());
}

/// A target that answers 100 calls a second answers as many over more connections, also those of the warm-up.
#[test]
fn more_connections_to_a_full_target_answer_as_many_calls() {
    let queue = Queue { count: 2, service_time: Delay::Fixed(Duration::from_millis(20)) };
    let (_server, url) = target(ServerConfig { queue: Some(queue), ..ServerConfig::default() });
    let flags = ["sweep", "-t1", "-c", "8,64", "-d1s", "-w400ms", "--format=json", "--quiet", &url];
    let swept = json(&run(flags).with_status(0));
    let rates: Vec<_> =
        swept["steps"].as_array().unwrap().iter().map(|step| &step["evidence"]["answered_per_s"]).collect();
    let [few, many] = rates[..] else { panic!("{rates:?}") };
    let (few, many) = (few.as_f64().unwrap(), many.as_f64().unwrap());
    // Without the calls that the warm-up left, 64 connections would have some 36 answers.
    assert!(many > 0.6 * few && few < 120.0 && many < 120.0, "{few} and {many}");
}

#[test]
fn sides_that_keep_up_with_a_rate_answer_as_many_calls() {
    let ((_a, a), (_b, b)) = (target(slow(2)), target(slow(70)));
    for warmup in ["-w0", "-w150ms"] {
        let flags = ["compare", "-t1", "-r", "80", "-d", "300ms", warmup, "--fail-if", "rate < 0.97x"];
        let done = run([flags.as_slice(), &[&a, &b]].concat());
        // On a busy machine nothing may be comparable.
        let is_spoiled = done.stdout.contains("cannot be judged: brunt's own delays spoil it");
        assert!(done.status == Some(0) || is_spoiled, "{warmup}: {done:#?}");
        assert!(!done.stdout.contains("calls a second"), "{warmup}: {}", done.stdout);
    }
}

/// A kind of name, quotes and blanks change nothing; a limit that holds, or is not of a time, marks nothing.
#[test]
fn each_time_over_its_limit_is_marked_on_the_page() {
    let (_server, url) = target(slow(3));
    let dir = Directory::new();
    let names = ["plain", "two words", "x:y", "held", "counted"];
    let calls: String = names.iter().fold(String::new(), |mut calls, name| {
        let _ = writeln!(calls, "http:get('/', {{ name = '{name}' }})");
        calls
    });
    let page = dir.path("page.html");
    let script = scenario(&dir, &url, "", &calls, "");
    let limits =
        ["plain:p99<1ms", "request \"two words\":p50<1ms", "\"x:y\":p99<=1ms", "held:p95<1h", "counted:error_rate>5%"];
    let limits: Vec<&str> = limits.iter().flat_map(|limit| ["--threshold", limit]).collect();
    run([&["run", "-t1", "--no-save", "--html", &page, &script], limits.as_slice()].concat()).with_status(1);
    let page = std::fs::read_to_string(page).unwrap();
    let marks = |name: &str| {
        let is_of = |row: &&str| row.split("</th>").next().is_some_and(|head| head.ends_with(&format!(">{name}")));
        let rows: Vec<_> = page.split("<tr").filter(|row| row.contains("</th>")).filter(is_of).collect();
        assert!(!rows.is_empty(), "no row of {name}");
        let marks = |row: &&str| row.split("</tr>").next().unwrap_or_default().matches("over its limit").count();
        rows.iter().map(marks).max()
    };
    assert_eq!(names.map(marks), [1, 1, 1, 0, 0].map(Some));
}

/// What nobody does is not asked for in vain.
#[test]
fn an_argument_that_a_step_does_not_take_is_refused() {
    let dir = Directory::new();
    for (step, is_known) in [
        ("brunt.rate(5, '1s')", true),
        ("brunt.rate(5, '1s', { most = 2 })", false),
        ("brunt.iterations_each(2, 3, '1s')", false),
        ("brunt.users(2, '1s', nil)", true),
        ("brunt.at_once(2, '1s')", false),
    ] {
        let text = format!(
            "local brunt = require 'brunt'\nlocal http = brunt.http {{ base = 'http://127.0.0.1:9' }}\n\
             brunt.scenario('s', function() http:get('/') end):inject {{ {step} }}\n"
        );
        let done = run(["check", &dir.file("s.lua", text)]);
        assert_eq!(done.status == Some(0), is_known, "{step}: {done:#?}");
        assert!(is_known || done.stderr.contains("s.lua:3:"), "{step}: {done:#?}");
    }
}

#[test]
fn checks_of_a_table_that_come_out_as_nil_are_named() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let body = "local answer = http:get('/shop/items/4')\n\
                local held = { ['has a colour'] = answer:json().colour, ['is there'] = answer.ok }\n\
                brunt.check(answer, held)";
    let done = run(["run", "-t1", &scenario(&dir, &url, "", body, "")]);
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(said.contains("has a colour failed 4 of 4") || done.stderr.contains("'has a colour'"), "{done:#?}");
    assert!(!said.contains("is there failed") && !done.stderr.contains("is there"), "{done:#?}");
}

#[test]
fn the_page_of_a_sweep_has_what_was_watched() {
    let (_server, url) = target(slow(2));
    let dir = Directory::new();
    let page = dir.path("sweep.html");
    let watch = format!("pid:{}", std::process::id());
    let flags = ["sweep", "-t1", "-c", "2,3", "-d", "600ms", "-w0", "--watch", &watch, "--html", &page, &url];
    let done = run(flags).with_status(0);
    assert!(done.stdout.contains("\nWatched\n"), "{}", done.stdout);
    let page = std::fs::read_to_string(page).unwrap().to_lowercase();
    assert!(page.contains("watched") && page.contains("descriptors"));
}

#[test]
fn the_line_of_a_guard_that_fired_is_no_wider_than_others() {
    let (_server, url) = target(ServerConfig { error_rate: 1.0, ..slow(1) });
    let guard = "error_rate > 2% for 1s";
    let done = run(["-t1", "-r", "40", "-d", "9s", "--no-save", "--max-error-rate", "100%", "--guard", guard, &url]);
    assert!(done.stdout.contains("fired"), "{done:#?}");
    let wide: Vec<_> = done.stdout.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
}
