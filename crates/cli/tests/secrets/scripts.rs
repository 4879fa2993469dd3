//! Secrets that a scenario reads, and what it makes of them.

use serde_json::Value;

use crate::origin::Origin;
use crate::program::{Directory, brunt, done};
use crate::{MARK_IN_BASE64, Outputs, reached, search_done, search_files, secret};

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

/// Each way that a scenario makes a request: the base's user goes to the base's origin, and another port is another origin.
#[test]
fn the_user_of_a_base_goes_to_no_other_origin() {
    let (own, other) = (Origin::start(), Origin::start());
    let directory = Directory::new();
    let both = format!("'http://{}/silent', 'http://{}/silent'", own.authority(), other.authority());
    for (way, times) in [
        ("for _, url in ipairs(urls) do http:get(url) end", 1),
        ("for _, url in ipairs(urls) do http:post(url, { body = 'x', headers = { Cookie = 'a=b' } }) end", 1),
        ("http:batch(urls)", 1),
        ("for _ = 1, 3 do for _, url in ipairs(urls) do http:get(url) end end", 3),
    ] {
        let script = directory.file(
            "s.lua",
            format!(
                "local brunt, urls = require 'brunt', {{ {both} }}\n\
                 local http = brunt.http {{ base = 'http://ann:sesame@{}/' }}\n\
                 brunt.scenario('s', function() {way} end):inject {{ brunt.iterations_each(1, 1) }}\n",
                own.authority()
            ),
        );
        done(&mut brunt(["run", "-t1", &script])).with_status(0);
        let sent = |origin: &Origin| origin.take().matches("Authorization: Basic").count();
        assert_eq!((sent(&own), sent(&other)), (times, 0), "{way}");
    }
}
