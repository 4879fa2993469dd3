//! Secrets in flags, URLs and plans.

use std::process::Command;

use serde_json::Value;

use crate::origin::Origin;
use crate::program::{Directory, brunt, done};
use crate::{MARK, MARK_IN_BASE64, Outputs, reached, search_done, search_files, secret};

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
