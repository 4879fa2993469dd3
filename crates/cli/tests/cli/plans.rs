//! Plans: what the flags become, written and read back, without secrets.

use serde_json::{Value, json};

use crate::program::{Directory, brunt, done, run};

const URL: &str = "http://localhost:8080/a?b=c";

/// The plan that these arguments make.
#[track_caller]
fn plan_of(args: &[&str]) -> Value {
    let dir = Directory::new();
    let path = dir.path("plan.json");
    let done = run([args, &["--dry-run", "--write-plan", &path]].concat()).with_status(0);
    assert_eq!(done.stdout, "");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn defaults() {
    let plan = plan_of(&[URL]);
    let cores = std::thread::available_parallelism().unwrap().get().min(64);
    assert_eq!(plan["target"], json!({ "scheme": "http", "host": "localhost", "port": 8080, "path": "/a?b=c" }));
    assert_eq!((&plan["connections"], &plan["workers"]), (&json!(64), &json!(cores)));
    assert_eq!(plan["load"], json!({ "closed": {} }));
    assert_eq!(plan["stop"], json!({ "duration_ns": 10_000_000_000_u64, "requests": null }));
    for field in ["timeout_ns", "connect_timeout_ns", "drain_ns"] {
        assert_eq!(plan[field], json!(10_000_000_000_u64), "{field}");
    }
    assert_eq!((&plan["warmup_ns"], &plan["pipeline"], &plan["reconnect"]), (&json!(0), &json!(1), &json!(false)));
    assert_eq!(plan["protocol"]["method"], "GET");
    assert_eq!(plan_of(&["bench", URL])["connections"], plan["connections"]);
}

#[test]
fn a_rate_takes_as_many_threads_as_carry_it() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let workers = |args: &[&str]| plan_of(&[args, &[URL]].concat())["workers"].as_u64().unwrap() as usize;
    assert_eq!(workers(&["-r", "2000"]), 1);
    assert_eq!(workers(&["-r", "0..15k/1m,5k/1m"]), 2.min(cores));
    assert_eq!(workers(&["-r", "10M"]), cores);
    assert_eq!(workers(&["-r", "10M", "-c", "1"]), 1);
    assert_eq!(workers(&["-r", "2000", "-t", "3"]), 3);
    let dir = Directory::new();
    let script = dir.file("costs.lua", "request = function() return wrk.format() end");
    assert_eq!(workers(&["-r", "2000", "-s", &script]), cores, "what a script takes is not known");
}

#[test]
fn every_run_has_a_seed_of_its_own() {
    assert_ne!(plan_of(&[URL])["seed"], plan_of(&[URL])["seed"]);
    assert_eq!(plan_of(&["--seed", "18446744073709551615", URL])["seed"], json!(u64::MAX));
}

#[test]
fn flags_end_up_in_the_plan() {
    let plan = plan_of(&[
        "-c",
        "1k",
        "-t",
        "2",
        "-r",
        "0..5k/1m,10/2s",
        "--arrivals",
        "poisson",
        "-w",
        "2s",
        "--timeout",
        "250ms",
        "--connect-timeout",
        "1s",
        "--reconnect",
        "--ok-status",
        "2xx,404",
        "--threshold",
        "p99<50ms",
        "--threshold",
        "error_rate<1%",
        "--connect-to",
        "[::1]:81",
        "--source-ip",
        "::1,fe80::1-fe80::3",
        "-6",
        "-k",
        "--sni",
        "a.b",
        URL,
    ]);
    assert_eq!((&plan["connections"], &plan["workers"]), (&json!(1000), &json!(2)));
    assert_eq!(plan["load"], json!({ "open": { "profile": "0..5000/1m,10/2s", "arrivals": "poisson" } }));
    assert_eq!(plan["stop"], json!({ "duration_ns": null, "requests": null }), "the profile ends the run");
    assert_eq!(plan["warmup_ns"], json!(2_000_000_000_u64));
    assert_eq!((&plan["timeout_ns"], &plan["drain_ns"]), (&json!(250_000_000), &json!(250_000_000)));
    assert_eq!((&plan["reconnect"], &plan["ok_status"]), (&json!(true), &json!("200-299,404")));
    assert_eq!(plan["thresholds"], json!(["p99<50ms", "error_rate<1%"]));
    let transport = &plan["transport"];
    assert_eq!((&transport["connect_to"], &transport["family"]), (&json!(["::1", 81]), &json!("v6")));
    assert_eq!(transport["source_ips"], json!(["::1", "fe80::1", "fe80::2", "fe80::3"]));
    assert_eq!((&transport["tls"]["insecure"], &transport["tls"]["server_name"]), (&json!(true), &json!("a.b")));
}

#[test]
fn what_ends_a_run() {
    let ends = |args: &[&str]| {
        let stop = plan_of(&[args, &[URL]].concat())["stop"].clone();
        (stop["duration_ns"].as_u64().map(|ns| ns / 1_000_000_000), stop["requests"].as_u64())
    };
    assert_eq!(ends(&["-n", "5"]), (None, Some(5)));
    assert_eq!(ends(&["-n", "5", "-d", "2s"]), (Some(2), Some(5)));
    assert_eq!(ends(&["-r", "5"]), (Some(10), None));
    assert_eq!(ends(&["-r", "5", "-n", "7"]), (None, Some(7)));
    assert_eq!(ends(&["-r", "5/3s", "-d", "2s"]), (Some(2), None));
}

#[test]
fn compressed_answers_are_asked_for() {
    let headers = |args: &[&str]| plan_of(&[args, &[URL]].concat())["protocol"]["headers"].clone();
    assert_eq!(headers(&["--compressed"]), json!([["Accept-Encoding", "gzip, deflate, br, zstd"]]));
    assert_eq!(headers(&["--compressed", "-H", "accept-encoding: br"]), json!([["accept-encoding", "br"]]));
}

#[test]
fn files_travel_by_content() {
    let dir = Directory::new();
    let body = dir.file("body", "hello");
    let lines = dir.file("lines", "/a\n/b\n");
    let pem = "-----BEGIN CERTIFICATE-----\nMC4=\n-----END CERTIFICATE-----";
    let key = "-----BEGIN PRIVATE KEY-----\nSECRETKEY=\n-----END PRIVATE KEY-----";
    let both = dir.file("both.pem", format!("subject: x\n{pem}\n{key}\n"));
    let plan = plan_of(&["--body-file", &body, "--url-lines", &lines, "--order", "random", "--cacert", &both, URL]);
    let protocol = &plan["protocol"];
    assert_eq!((&protocol["method"], &protocol["body"]), (&json!("POST"), &json!("hello")));
    assert_eq!(protocol["url_lines"], json!({ "file": lines, "content": "/a\n/b\n" }));
    assert_eq!(protocol["order"], "random");
    assert_eq!(plan["transport"]["tls"]["trusted_pem"], json!(format!("{pem}\n")), "without the key beside it");
    let binary = dir.file("binary", [0, 159, 255]);
    assert_eq!(plan_of(&["--body-file", &binary, "-m", "PUT", URL])["protocol"]["body"], json!({ "base64": "AJ//" }));
}

#[test]
fn secrets_are_not_written() {
    let dir = Directory::new();
    let path = dir.path("plan.json");
    let pem = "-----BEGIN CERTIFICATE-----\nMC4=\n-----END CERTIFICATE-----\n";
    let key = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n";
    let (pem, key) = (dir.file("cert.pem", pem), dir.file("key.pem", key));
    let written = |args: &[&str]| {
        let shared = ["--dry-run", "--write-plan", &path, "--cert", &pem, "--key", &key];
        let done = done(brunt([args, &shared].concat()).env("TOKEN", "hunter2")).with_status(0);
        let plan = std::fs::read_to_string(&path).unwrap();
        assert!(!plan.contains("hunter2") && !done.stderr.contains("hunter2"), "{plan}\n{}", done.stderr);
        (plan, done.stderr)
    };
    let (plan, said) = written(&["-H", "Authorization: Bearer hunter2", "-H", "X-Api-Key: hunter2", URL]);
    assert!(plan.contains("[redacted]") && said.contains("give them as @NAME"), "{plan}\n{said}");
    written(&["http://me:hunter2@localhost/"]);
    written(&["--basic", "me:hunter2", URL]);
    let (plan, _) = written(&["-H", "Authorization: Bearer @TOKEN", URL]);
    assert!(plan.contains("Bearer @TOKEN"), "{plan}");
    let (plan, _) = written(&["--basic", "me:@TOKEN", URL]);
    assert!(plan.contains("me:@TOKEN"), "{plan}");
}

#[test]
fn a_plan_is_read_back_as_it_was_written() {
    let dir = Directory::new();
    let (first, second) = (dir.path("first.json"), dir.path("second.json"));
    let args = ["-r", "100", "-H", "A: b", "--body", "x", "--threshold", "p99<1s", "-4", URL];
    run([args.as_slice(), &["--dry-run", "--write-plan", &first]].concat()).with_status(0);
    run(["--plan", &first, "--dry-run", "--write-plan", &second]).with_status(0);
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&first), read(&second));
    run(["--plan", &first, "--threshold", "rate>1", "--dry-run", "--write-plan", &second]).with_status(0);
    let plan: Value = serde_json::from_str(&read(&second)).unwrap();
    assert_eq!(plan["thresholds"], json!(["p99<1s", "rate>1"]), "a kept threshold still counts");
}

#[test]
fn a_dry_run_leaves_nothing_but_the_plan() {
    let dir = Directory::new();
    let (plan, out) = (dir.path("plan.json"), dir.path("out.json"));
    run(["--dry-run", "--write-plan", &plan, "-o", &out, URL]).with_status(0);
    assert_eq!(dir.names(), ["plan.json"]);
}
