//! Secrets are on the wire and nowhere else: one is planted in every place that takes one, and everything that brunt wrote
//! is searched for it. Each must have reached the target, so that no test passes because nothing was sent.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod origin;
#[path = "../cli/program.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod program;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::origin::Origin;
use crate::program::{Directory, Done, Running, brunt, done};

/// What every secret begins with; behind it stands where it was planted.
const MARK: &str = "hunter2in";
/// `me:hunter2in` in base64, up to where its end depends on what follows.
const MARK_IN_BASE64: &str = "bWU6aHVudGVyMml";

fn secret(place: &str) -> String {
    format!("{MARK}{place}")
}

/// Fails where a text has a secret in it, with its surroundings.
#[track_caller]
fn search(what: &str, content: &[u8]) {
    for mark in [MARK, MARK_IN_BASE64] {
        if let Some(at) = content.windows(mark.len()).position(|window| window == mark.as_bytes()) {
            let around = &content[at.saturating_sub(200)..(at + 60).min(content.len())];
            panic!("{what} has a secret: … {} …", String::from_utf8_lossy(around));
        }
    }
}

#[track_caller]
fn search_done(what: &str, done: &Done) {
    search(&format!("standard output of {what}"), done.stdout.as_bytes());
    search(&format!("standard error of {what}"), done.stderr.as_bytes());
}

/// Searches every file in a directory and below it.
#[track_caller]
fn search_files(directory: &Path, but: &[&str]) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            search_files(&path, but);
        } else if !but.iter().any(|name| path.ends_with(name)) {
            search(&path.display().to_string(), &std::fs::read(&path).unwrap());
        }
    }
}

/// Fails unless the target was sent the secrets of all these places.
#[track_caller]
fn reached(origin: &Origin, places: &[&str]) {
    let sent = origin.take();
    for place in places {
        assert!(sent.contains(&secret(place)), "the secret in {place} did not reach the target:\n{sent}");
    }
}

/// Every way of writing a single run down, into a directory, and every way of showing it afterwards.
struct Outputs {
    directory: Directory,
    /// The files of the test that have the secrets.
    own: Vec<&'static str>,
}

impl Outputs {
    fn new() -> Self {
        Self { directory: Directory::new(), own: Vec::new() }
    }

    /// A file that has secrets in it; its path.
    fn own(&mut self, name: &'static str, content: &str) -> String {
        self.own.push(name);
        self.directory.file(name, content)
    }

    /// Runs brunt with these arguments and environment, and every output.
    #[track_caller]
    fn run(&self, args: &[&str], env: &[(&str, &str)], behind: &[&str]) -> Done {
        let mut command = brunt(args);
        for name in ["result.txt", "result.json", "result.csv", "result.xml"] {
            command.args(["-o", &self.directory.path(name)]);
        }
        command.args(["--html", &self.directory.path("page.html")]);
        command.args(["-v", "--write-plan", &self.directory.path("plan.json")]);
        command.args(["--store", &self.directory.path("runs.db"), "--name", "one"]).args(behind);
        let done = done(command.env_remove("BRUNT_NO_SAVE").envs(env.iter().copied())).with_status(0);
        search_done("the run", &done);
        done
    }

    /// Searches all that was written, and what is kept, in every format.
    #[track_caller]
    fn search(&self) {
        let store = self.directory.path("runs.db");
        for format in ["text", "wrk", "json", "csv", "junit", "html"] {
            let shown = done(&mut brunt(["show", "one", "--store", &store, "--format", format])).with_status(0);
            assert!(shown.stdout.len() > 100, "{format}: {shown:?}");
            search_done(format, &shown);
        }
        for args in [["runs", "--format", "json"], ["runs", "--format", "text"]] {
            search_done("the list", &done(brunt(args).args(["--store", &store])).with_status(0));
        }
        search_files(self.directory.as_ref(), &self.own);
    }
}

#[test]
fn flags_of_http_show_none() {
    let origin = Origin::start();
    let outputs = Outputs::new();
    let query = secret("query");
    let url = format!("http://{}/path?token={query}&plain=shown", origin.authority());
    let header = |name: &str, place: &str| format!("{name}: {}", secret(place));
    let fields = [
        header("Authorization", "bearer"),
        header("X-Api-Key", "header"),
        format!("Cookie: sid={}; x @FIELD", secret("literal")),
        "X-Plain: @PLAIN".to_owned(),
    ];
    let mut args = vec!["-n", "4", "-c", "2"];
    args.extend(fields.iter().flat_map(|field| ["-H", field.as_str()]));
    let (cookie, json) = (format!("a={}", secret("cookie")), format!(r#"{{"password":"{}"}}"#, secret("json")));
    args.extend(["-b", &cookie, "--json", &json]);
    let env = [("FIELD", secret("environment")), ("PLAIN", secret("variable"))];
    let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
    outputs.run(&args, &env, &[&url]);
    let places = ["query", "bearer", "header", "literal", "environment", "variable", "cookie", "json"];
    reached(&origin, &places);
    outputs.search();
    let plan: Value = serde_json::from_slice(&std::fs::read(outputs.directory.path("plan.json")).unwrap()).unwrap();
    assert_eq!(plan["target"]["path"], "/path?token=[redacted]&plain=shown");
    // Nor does the trace, though the target says all of it again.
    let traced = done(brunt([args.as_slice(), &["--once", &url]].concat()).envs(env)).with_status(0);
    reached(&origin, &places);
    assert!(traced.stdout.contains("X-Api-Key: [redacted]"), "{}", traced.stdout);
    search_done("the trace", &traced);
    // A plan that lacks secrets does not run without them.
    let refused = done(&mut brunt(["--plan", &outputs.directory.path("plan.json")])).with_status(2);
    assert!(refused.stderr.contains("left out"), "{}", refused.stderr);
}

#[test]
fn passwords_and_arguments_of_scripts_show_none() {
    let origin = Origin::start();
    let mut outputs = Outputs::new();
    let script = outputs
        .directory
        .file("script.lua", "function init(args) for i = 0, #args do wrk.headers['X-Arg' .. i] = args[i] end end");
    outputs.own.push("none");
    let query = secret("query");
    let url = format!("http://me:{}@{}/?sig={query}", secret("password"), origin.authority());
    let argument = secret("argument");
    let args = ["-s", script.as_str(), "-n", "2", "-c", "1"];
    let env = [("ARGUMENT", secret("environment"))];
    let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
    let behind = [url.as_str(), "--", &argument, "@ARGUMENT", "100"];
    let done_ = outputs.run(&args, &env, &behind);
    drop(done_);
    let sent = origin.take();
    for expected in [&query, &argument, &secret("environment"), &"X-Arg3: 100".to_owned()] {
        assert!(sent.contains(expected.as_str()), "{expected} did not reach the target:\n{sent}");
    }
    assert!(sent.contains(MARK_IN_BASE64), "{sent}");
    outputs.search();
    let plan: Value = serde_json::from_slice(&std::fs::read(outputs.directory.path("plan.json")).unwrap()).unwrap();
    let stored = plan["script"]["args"].as_array().unwrap();
    assert_eq!(stored[1..], ["[redacted]", "@ARGUMENT", "100"].map(Value::from));
    let traced = done(brunt(args).arg("--once").args(behind).envs(env)).with_status(0);
    search_done("the trace", &traced);
    let basic = format!("me:{}", secret("basic"));
    let url = format!("http://{}/", origin.authority());
    let outputs = Outputs::new();
    outputs.run(&["-n", "2", "-c", "1", "--basic", &basic], &[], &[&url]);
    assert!(origin.take().contains(MARK_IN_BASE64));
    outputs.search();
}

/// Examples of calls that were not ok show what a target says, and it says what it was sent.
#[test]
fn what_failing_answers_repeat_shows_none() {
    let origin = Origin::start();
    let outputs = Outputs::new();
    let url = format!("http://{}/wrong?token={}", origin.authority(), secret("query"));
    let headers =
        [format!("Authorization: Bearer {}", secret("bearer")), format!("Cookie: session={}", secret("cookie"))];
    let body = format!(r#"{{"user":"me","password":"{}"}}"#, secret("body"));
    let args = ["-n", "4", "-c", "1", "-H", &headers[0], "-H", &headers[1], "-X", "POST", "--json", &body];
    outputs.run(&args, &[], &[&url]);
    reached(&origin, &["query", "bearer", "cookie", "body"]);
    outputs.search();
    let result: Value = serde_json::from_slice(&std::fs::read(outputs.directory.path("result.json")).unwrap()).unwrap();
    let said = result["outcomes"]["examples"]["500"][0]["said"].as_str().unwrap();
    assert!(said.starts_with("POST /wrong") && said.contains("[redacted]"), "{said}");
    // What only the target makes up is hidden by the names of its fields.
    let outputs = Outputs::new();
    let script = outputs.directory.file(
        "s.lua",
        r#"
        local brunt = require("brunt")
        local http = brunt.http{ base = brunt.env("BASE") }
        brunt.scenario("s", function()
          http:post("/wrong", { name = "pay", json = { password = brunt.env("PASSWORD") } })
        end):inject{ brunt.iterations_each(1, 2) }
        "#,
    );
    let base = format!("http://{}/", origin.authority());
    let env = [("BASE", base.as_str()), ("PASSWORD", &secret("scenario"))];
    let mut command = brunt(["run", &script, "--env", "BASE", "--env", "PASSWORD=@PASSWORD"]);
    let json = outputs.directory.path("own.json");
    let store = outputs.directory.path("runs.db");
    command.args(["-o", &json, "--store", &store, "--name", "one"]).env_remove("BRUNT_NO_SAVE").envs(env);
    search_done("the run", &done(&mut command).with_status(0));
    reached(&origin, &["scenario"]);
    outputs.search();
    let result: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let example = &result["outcomes"]["examples"]["500"][0];
    assert!(example["request"] == "pay" && example["said"].as_str().unwrap().contains("[redacted]"), "{example}");
}

#[test]
fn scenarios_show_none() {
    let origin = Origin::start();
    let outputs = Outputs::new();
    let script = outputs.directory.file(
        "s.lua",
        r#"
        local brunt = require("brunt")
        local shop = brunt.http{ base = "http://elsewhere/" }
        brunt.scenario("s", function()
          local headers = { Authorization = "Bearer " .. brunt.env("TOKEN"), ["X-Own"] = brunt.env("API_KEY") }
          local answer = shop:post("/?password=" .. brunt.env("DB_PASS"), { headers = headers, body = brunt.env("REFERENCE") })
          brunt.check(answer, { ["is there"] = answer.status == 200 })
        end):inject{ brunt.iterations_each(1, 2) }
        "#,
    );
    let base = format!("http://me:{}@{}/", secret("base"), origin.authority());
    let named = ["TOKEN", "API_KEY", "DB_PASS"].map(|name| format!("{name}={}", secret(&name.to_lowercase())));
    let mut args = vec!["run", &script, "--base-url", &base, "-t", "1"];
    args.extend(named.iter().flat_map(|text| ["--env", text.as_str()]));
    args.extend(["--env", "REFERENCE=@FROM_OUTSIDE"]);
    let env = [("FROM_OUTSIDE", secret("environment"))];
    let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
    let places = ["token", "api_key", "db_pass", "environment"];
    outputs.run(&args, &env, &[]);
    reached(&origin, &places);
    outputs.search();
    let traced = done(brunt(args).arg("--once").envs(env)).with_status(0);
    reached(&origin, &places);
    assert!(traced.stdout.contains("[redacted]"), "{}", traced.stdout);
    search_done("the trace", &traced);
}

#[test]
fn what_a_script_makes_of_a_secret_shows_none() {
    let origin = Origin::start();
    let outputs = Outputs::new();
    let script = outputs.directory.file(
        "s.lua",
        r#"
        local brunt = require("brunt")
        local pw = brunt.env("PASSWORD")
        local http = brunt.http{ base = brunt.env("BASE") }
        local own = brunt.counter("own " .. pw, { unit = pw })
        brunt.expect { ["own " .. pw .. ":sum"] = "> 0" }
        brunt.scenario("scenario " .. pw, function()
          own:add()
          brunt.group("group " .. pw, function()
            local answer = http:get("/" .. pw, { name = "call " .. pw, tags = { tag = pw } })
            brunt.check(answer, { ["check " .. pw] = false })
            http:get("/?q=" .. brunt.url_encode(pw .. "ü"))
            http:get("/silent/" .. pw .. "/path", { basic = { "me", pw } })
            brunt.check(http:get("/" .. brunt.base64("me:" .. pw)), { basic = false })
          end)
          brunt.log("error", "log " .. pw)
          error("wrong: " .. pw .. " " .. ("x"):rep(1900) .. pw)
        end):inject{ brunt.iterations_each(1, 2) }
        "#,
    );
    let base = format!("BASE=http://{}", origin.authority());
    let log = outputs.directory.path("log.txt");
    let args = ["run", &script, "--env", &base, "--env", "PASSWORD=@PW", "-t", "1", "--max-error-rate", "100%"];
    let env = [("PW", secret("everywhere"))];
    let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
    outputs.run(&[&args[..], &["--log", &log]].concat(), &env, &[]);
    reached(&origin, &["everywhere"]);
    outputs.search();
    let result: Value = serde_json::from_slice(&std::fs::read(outputs.directory.path("result.json")).unwrap()).unwrap();
    let result = result.to_string();
    for kept in [
        "call [redacted]",
        "group [redacted]",
        "check [redacted]",
        "own [redacted]",
        "tag=[redacted]",
        "wrong: [redacted]",
    ] {
        assert!(result.contains(kept), "{kept} is not in {result}");
    }
    assert!(std::fs::read_to_string(&log).unwrap().contains("log [redacted]"));
    search_done("the trace", &done(brunt(args).arg("--once").envs(env)));
}

#[test]
fn errors_of_a_script_show_none() {
    let origin = Origin::start();
    let base = format!("BASE=http://{}", origin.authority());
    let users = "brunt.scenario('s', function() http:get('/silent') end):inject{ brunt.iterations_each(1, 1) }";
    for (place, wrong) in [
        ("top", "error('wrong: ' .. pw)".to_owned()),
        ("required", format!("brunt.setup(function() error('wrong: ' .. pw) end) {users}")),
        ("teardown", format!("brunt.teardown(function() error('wrong: ' .. pw) end) {users}")),
        ("stopped", users.replace("http:get", "brunt.stop_run('wrong: ' .. pw) http:get")),
        ("misspelt", users.replace("http:get('/silent'", "http:get('/silent', { [pw] = 1 }")),
        ("json", users.replace("http:get('/silent')", "http:get('/?password=' .. pw):json()")),
        ("expected", format!("brunt.expect {{ [pw] = '< 1' }} {users}")),
        ("option", format!("brunt.http {{ [pw] = 1 }} {users}")),
    ] {
        let directory = Directory::new();
        let text = format!(
            "local brunt = require('brunt') local pw = brunt.env('PASSWORD') \
             local http = brunt.http {{ base = brunt.env('BASE') }} {wrong}"
        );
        let (script, result) = (directory.file("s.lua", &text), directory.path("result.json"));
        let store = directory.path("runs.db");
        let mut command =
            brunt(["run", &script, "--env", &base, "--env", "PASSWORD=@PW", "-o", &result, "--store", &store]);
        let failed = done(command.env_remove("BRUNT_NO_SAVE").env("PW", secret(place)));
        search_done(place, &failed);
        search_files(directory.as_ref(), &[]);
        let json = std::fs::read_to_string(&result).unwrap_or_default();
        let everything = [failed.stdout.as_str(), failed.stderr.as_str(), json.as_str()].concat();
        assert!(everything.contains("[redacted]"), "{place}: {everything}");
    }
}

#[test]
fn a_url_in_a_script_authorizes_and_names_without_it() {
    let origin = Origin::start();
    let outputs = Outputs::new();
    let script = outputs.directory.file(
        "s.lua",
        r#"
        local brunt = require("brunt")
        local whole = "http://me:" .. brunt.env("PASSWORD") .. "@" .. brunt.env("HOST")
        local http, based = brunt.http{}, brunt.http{ base = whole }
        brunt.scenario("s", function()
          http:get(whole .. "/silent/whole")
          http:get(whole .. "/silent/own", { headers = { authorization = "Own field" } })
          based:get("/silent/based")
        end):inject{ brunt.iterations_each(1, 1) }
        "#,
    );
    let host = format!("HOST={}", origin.authority());
    outputs.run(&["run", &script, "--env", &host, "--env", "PASSWORD=@PW", "-t", "1"], &[("PW", &secret("url"))], &[]);
    let sent = origin.take();
    assert_eq!(sent.matches(&format!("Basic {MARK_IN_BASE64}")).count(), 2, "{sent}");
    assert!(sent.contains("Own field") && !sent.contains('@'), "{sent}");
    let json = std::fs::read_to_string(outputs.directory.path("result.json")).unwrap();
    let names = [format!("GET {}/silent/whole", origin.authority()), "GET /silent/based".to_owned()];
    assert!(names.iter().all(|name| json.contains(name.as_str())), "{json}");
    outputs.search();
}

#[test]
fn what_authorizes_the_calls_of_scenarios_is_not_shown() {
    let origin = Origin::start();
    let outputs = Outputs::new();
    // By its own environment, so that brunt knows none of these for secrets but by what they are used for.
    let script = outputs.directory.file(
        "s.lua",
        r#"
        local brunt = require("brunt")
        local base = brunt.env("BASE")
        local function hidden(name) return os.getenv("HIDDEN_" .. name) end
        local http = brunt.http{ base = base, oauth = {
          token_url = base .. "/token", client = "me", secret = hidden("OAUTH"), scope = "all" } }
        local aws = { key = "AKID", secret = hidden("AWS"), session_token = hidden("SESSION"), region = "r", service = "s3" }
        brunt.scenario("s", function()
          brunt.check(http:get("/silent/oauth"), { ["is there"] = false })
          http:get("/silent/aws", { aws = aws })
          http:get("/silent/digest", { digest = { "me", hidden("DIGEST") } })
          http:get("/silent/basic", { basic = { "me", hidden("BASIC") } })
        end):inject{ brunt.iterations_each(1, 2) }
        "#,
    );
    let base = format!("BASE=http://{}", origin.authority());
    let args = ["run", &script, "--env", &base, "-t", "1"];
    let env: Vec<_> = ["OAUTH", "AWS", "SESSION", "DIGEST", "BASIC"]
        .map(|name| (format!("HIDDEN_{name}"), secret(&name.to_lowercase())))
        .into();
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    outputs.run(&args, &env, &[]);
    let sent = origin.take();
    for expected in ["Bearer hunter2infetched", &secret("session"), "AWS4-HMAC-SHA256 ", "Basic bWU6aHVudGVyM"] {
        assert!(sent.contains(expected), "{expected}: {sent}");
    }
    assert!(!sent.contains(&secret("aws")) && !sent.contains(&secret("digest")), "{sent}");
    assert_eq!(sent.matches("POST /token ").count(), 1, "{sent}");
    outputs.search();
    let traced = done(brunt(args).arg("--once").envs(env)).with_status(0);
    assert!(traced.stdout.contains("\"access_token\":\"[redacted]\""), "{}", traced.stdout);
    search_done("the trace", &traced);
}

#[test]
fn both_sides_of_a_comparison_show_none() {
    let origin = Origin::start();
    let directory = Directory::new();
    let url = format!("http://{}/?token={}", origin.authority(), secret("query"));
    let a = format!("-kH'Authorization: Bearer {}' -c 1", secret("a"));
    let b = format!("--header='Cookie: sid={}; x @FIELD' --basic me:{}", secret("b"), secret("basic"));
    let keep = directory.path("runs");
    let mut command =
        brunt(["compare", "--rounds", "10", "-n", "4", "-w0", "-t1", "--a", &a, "--b", &b, "--keep", &keep]);
    for name in ["c.txt", "c.json", "c.csv", "c.md"] {
        command.args(["-o", &directory.path(name)]);
    }
    command.args(["--html", &directory.path("c.html")]);
    let store = directory.path("runs.db");
    command.args(["--store", &store, "--name", "two", &url]).env_remove("BRUNT_NO_SAVE").env("FIELD", secret("field"));
    let compared = done(&mut command);
    let words = compared.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("-k -H 'Authorization: [redacted]'"), "{compared:#?}");
    search_done("the comparison", &compared);
    let sent = origin.take();
    for place in ["query", "a", "b", "field"] {
        assert!(sent.contains(&secret(place)), "{place}:\n{sent}");
    }
    assert!(sent.contains(MARK_IN_BASE64));
    for format in ["text", "json", "csv", "markdown"] {
        let shown = done(&mut brunt(["show", "two", "--store", &store, "--format", format])).with_status(0);
        search_done(format, &shown);
    }
    let runs = done(&mut brunt(["runs", "--all", "--format", "json", "--store", &store])).with_status(0);
    search_done("the list", &runs);
    search_files(directory.as_ref(), &[]);
}

#[test]
fn a_plan_file_with_secrets_in_it_shows_none() {
    let origin = Origin::start();
    let mut outputs = Outputs::new();
    let url = format!("http://{}/", origin.authority());
    let plan = outputs.directory.path("plan.json");
    done(&mut brunt(["--write-plan", &plan, "--dry-run", "-n", "2", "-c", "1", &url])).with_status(0);
    let mut written: Value = serde_json::from_slice(&std::fs::read(&plan).unwrap()).unwrap();
    written["protocol"]["headers"] = serde_json::json!([["Authorization", format!("Bearer {}", secret("plan"))]]);
    written["protocol"]["body"] = format!("user=me&password={}", secret("body")).into();
    written["target"]["path"] = format!("/?token={}", secret("path")).into();
    let by_hand = outputs.own("by-hand.json", &written.to_string());
    outputs.run(&["--plan", &by_hand], &[], &[]);
    reached(&origin, &["plan", "body", "path"]);
    outputs.search();
    let traced = done(&mut brunt(["--plan", &by_hand, "--once"])).with_status(0);
    search_done("the trace", &traced);
    // What the protocol cannot read is not repeated, either.
    written["protocol"]["headers"] = secret("broken").into();
    let broken = outputs.own("broken.json", &written.to_string());
    search_done("an error", &done(&mut brunt(["--plan", &broken])).with_status(2));
}

#[test]
fn a_live_page_shows_none() {
    let origin = Origin::start();
    let url = format!("http://me:{}@{}/?token={}", secret("password"), origin.authority(), secret("query"));
    let mut command = brunt(["-r", "50", "-d", "1s", "-c", "1", "--live", "--live-linger", "0s", &url]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("live: http://").unwrap_or_else(|| panic!("{line}")).trim_end_matches('/');
    let page = get(address, "/");
    let events = get(address, "/events");
    assert!(page.contains("<script") && events.contains("event: finished"), "{events}");
    search("the live page", page.as_bytes());
    search("the live page's events", events.as_bytes());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(child.wait().unwrap().success());
    search("the terminal", [line, rest, printed].concat().as_bytes());
    reached(&origin, &["query"]);
}

/// All of an answer, until the server closes.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn websockets_show_none() {
    let origin = Origin::start();
    let directory = Directory::new();
    let url = format!("ws://{}/?token={}", origin.authority(), secret("query"));
    let header = format!("X-Auth-Token: {}", secret("header"));
    let basic = format!("me:{}", secret("basic"));
    let message = format!(r#"{{"password":"{}"}}"#, secret("message"));
    let plan = directory.path("plan.json");
    let args =
        ["-n1", "-c1", "-H", &header, "--basic", &basic, "--message", &message, "-o", &directory.path("r.json"), &url]
            .map(str::to_owned);
    // The server speaks no WebSocket: the head of the handshake is what reaches it.
    let failed = done(brunt(&args).args(["--write-plan", &plan, "--connect-timeout", "5s"])).with_status(3);
    search_done("the failure", &failed);
    let sent = origin.take();
    assert!(
        sent.contains(&secret("header")) && sent.contains(&secret("query")) && sent.contains(MARK_IN_BASE64),
        "{sent}"
    );
    search_files(directory.as_ref(), &[]);
    search_done("the trace", &done(brunt(&args).arg("--once")).with_status(3));
}

#[test]
fn a_private_key_is_shown_nowhere() {
    let directory = Directory::new();
    let made = brunt_testbed::tls::server_certificate().unwrap();
    let (cert, key) = (directory.file("cert.pem", &made.certificate_pem), directory.file("key.pem", &made.key_pem));
    let plan = directory.path("plan.json");
    let args = ["--cert", &cert, "--key", &key, "-n1", "--dry-run", "--write-plan", &plan, "https://127.0.0.1:1/"];
    done(&mut brunt(args)).with_status(0);
    let written = std::fs::read_to_string(&plan).unwrap();
    let line = made.key_pem.lines().nth(1).unwrap();
    assert!(!written.contains(line) && written.contains("[redacted]"), "{written}");
}

#[test]
fn the_proxy_shows_none() {
    let origin = Origin::start();
    let directory = Directory::new();
    let log = directory.path("access.log");
    let upstream = format!("http://{}", origin.authority());
    let args =
        ["proxy", &upstream, "--listen", "127.0.0.1:0", "--coalesce", "--access-log", &log, "--metrics", "127.0.0.1:0"];
    let mut proxy = Running::start(args);
    let listening = proxy.line();
    let (_, metrics) = (proxy.line(), proxy.line());
    let address = listening.trim().strip_prefix("listening on http://").unwrap().trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let places = ["query", "authorization", "cookie", "key", "body"];
    let [query, authorization, cookie, key, body] = places.map(secret);
    let body = format!("password={body}");
    write!(
        stream,
        "POST /?token={query}&a=b HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {authorization}\r\nCookie: {cookie}\r\n\
         X-Api-Key: {key}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    reached(&origin, &places);
    let metrics = metrics.trim().strip_prefix("metrics on http://").unwrap().trim_end_matches("/metrics").to_owned();
    let counted = get(&metrics, "/metrics");
    search("the metrics", counted.as_bytes());
    proxy.send(rustix::process::Signal::TERM);
    search_done("the proxy", &proxy.wait());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("/?token=[redacted]&a=b"), "{log}");
    search("the access log", log.as_bytes());
}

#[test]
fn errors_show_none() {
    let directory = Directory::new();
    let script = directory.file("s.lua", "require('brunt')");
    let secret = secret("error");
    let url = format!("http://127.0.0.1:1/?token={secret}");
    let (user_url, port_url) = (format!("http://me:{secret}@a b/"), format!("http://a:x/?token={secret}"));
    let unclosed = format!("-H 'Authorization: Bearer {secret}");
    let mistaken = format!("-c many -H 'Authorization: Bearer {secret}' --basic me:{secret}");
    let header = format!("Authorization {secret}");
    let control = format!("Authorization: {secret}\u{1}");
    let equals = |flag: &str| format!("{flag}={secret}");
    let no_file = format!("nowhere/file?token={secret}");
    for args in [
        vec![user_url.as_str()],
        vec![&port_url],
        vec!["-n1", "--connect-timeout", "1s", &url],
        vec![&equals("--basic"), &url],
        vec![&equals("--basic"), &equals("--bsic"), &url],
        vec!["-H", &header, &url],
        vec!["-H", &control, &url],
        vec!["--basic", &format!("me:{secret}"), "-H", "Authorization: x", &url],
        vec!["run", &script, "--env", &secret],
        vec!["run", &script, "--base-url", &format!("http://me:{secret}@a b/")],
        vec!["compare", &url, "--a", &unclosed],
        vec!["compare", &url, "--a", &mistaken],
        vec!["compare", &url, "--a", "-c 1", "--b", &format!("--cookie sid={secret} --nothing")],
        vec!["compare", &no_file, "a/b"],
        vec!["compare", "--rounds", "10", "-n1", "-w0", &url, &url],
        vec!["proxy", &format!("http://me:{secret}@127.0.0.1:1")],
        vec!["coalesce-check", "--timeout", "1s", &url],
        vec!["grpc", "list", "-H", &header, "grpc://127.0.0.1:1"],
        vec!["grpc", "list", "-H", &control, "grpc://127.0.0.1:1"],
        vec!["grpc", "list", "-H", &format!("key-bin: {secret}!"), "grpc://127.0.0.1:1"],
        vec!["grpc", "describe", &format!("grpc://me:{secret}@127.0.0.1:1"), "a.B"],
        vec!["--reflection", "--call", "a", "-H", &format!("authorization: Bearer {secret}"), "grpc://127.0.0.1:1"],
        vec!["sweep", "-c", "1,2", "-n1", "-w0", &url],
        vec!["find", "--threshold", "p99<1s", "-d", "1s", "-w0", "--basic", &format!("me:{secret}"), &url],
    ] {
        let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        let failed = done(&mut brunt(&args));
        assert!(matches!(failed.status, Some(2 | 3)), "{args:?}: {failed:#?}");
        search_done(&format!("{args:?}").replace(MARK, "…"), &failed);
    }
    // wrk's own command line, in its words.
    let wrk = directory.path("wrk");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_brunt"), &wrk).unwrap();
    search_done("wrk", &done(Command::new(&wrk).arg(format!("me:{secret}@a/?token={secret}"))));
}
