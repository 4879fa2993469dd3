//! What hands that know wrk, ab, hey, oha, k6 and vegeta type: it does what it did there, or is answered with the line to type.

use std::fs::File;

use brunt_testbed::server::Config;

use crate::program::{Directory, brunt, done, run};
use crate::runs::target;

/// Command lines that do what they did elsewhere; `URL` stands for the target's.
const DONE: [(&str, &str); 14] = [
    ("wrk", "-t2 -c4 -d200ms --latency URL"),
    ("wrk", "-t 2 -c 4 -d 200ms --timeout 2s -H 'X-A: b' URL"),
    ("ab", "-n 100 -c 4 URL"),
    ("ab", "-n 100 -c 4 -k URL"),
    ("hey", "-n 100 -c 4 -m POST URL"),
    ("hey", "-n 100 -H 'X-A: b' URL"),
    ("oha", "-n 100 --insecure URL"),
    ("oha", "-n 100 -c 4 --connect-timeout 1s URL"),
    ("curl", "-n 10 -X POST --data x URL"),
    ("curl", "-n 10 --json '{\"a\":1}' URL"),
    ("curl", "-n 10 -u me:pw -b a=b URL"),
    ("vegeta", "-n 10 -r 200 --timeout 1s URL"),
    ("k6", "-n 10 -o FOLDER/run.json URL"),
    ("oha", "-n 10 -o FOLDER/run.html URL"),
];

/// Command lines that lead to another one.
const LED: [(&str, &str, &str); 24] = [
    ("hey", "-z 10s URL", "-d 10s"),
    ("hey", "-n 1000 -q 50 URL", "-r 2000"),
    ("hey", "-D order.json URL", "--body @FILE"),
    ("hey", "-T application/json URL", "-H 'Content-Type"),
    ("hey", "-a me:pw URL", "--basic"),
    ("hey", "-X POST -d name=x URL", "--body TEXT"),
    ("hey", "--disable-keepalive URL", "--reconnect"),
    ("ab", "-A me:pw URL", "--basic"),
    ("ab", "-C a=b URL", "-b name=value"),
    ("ab", "-p order.json URL", "--body @FILE"),
    ("ab", "-i URL", "-X HEAD"),
    ("oha", "--rps 10 URL", "-r 2000"),
    ("oha", "--no-tui URL", "--quiet"),
    ("oha", "--latency-correction URL", "was due"),
    ("oha", "--http2 URL", "--http 2"),
    ("k6", "--vus 5 -d 1s URL", "-c 50"),
    ("k6", "--stage 1m:10 URL", "-r 0..2000/1m"),
    ("k6", "--iterations 10 URL", "-n 10k"),
    ("k6", "--summary-export=a.json URL", "-o run.json"),
    ("k6", "FOLDER/login.lua", "brunt run "),
    ("vegeta", "--targets=a.txt URL", "--url-lines"),
    ("vegeta", "--workers 4 URL", "-c"),
    ("curl", "-L URL", "aim at where they lead"),
    ("siege", "URL URL", "--url-lines"),
];

#[test]
fn what_other_tools_take_works_or_leads_to_the_line_to_type() {
    let (_server, url) = target(Config::default());
    let dir = Directory::new();
    dir.file("login.lua", "");
    let words = |line: &str| {
        let line = line.replace("URL", &url).replace("FOLDER", &dir.path("."));
        shlex::split(&line).unwrap()
    };
    for (tool, line) in DONE {
        let done = run(words(line));
        assert_eq!(done.status, Some(0), "{tool}: brunt {line}: {done:#?}");
    }
    assert!(std::fs::read_to_string(dir.path("run.html")).unwrap().starts_with("<!doctype html>"));
    for (tool, line, expected) in LED {
        let done = run(words(line));
        assert_eq!(done.status, Some(2), "{tool}: brunt {line}: {done:#?}");
        assert!(done.stderr.contains(expected), "{tool}: brunt {line}: {}", done.stderr);
        assert!(done.stderr.lines().count() <= 6, "told once: brunt {line}: {}", done.stderr);
    }
}

#[test]
fn a_file_of_urls_on_standard_input_leads_to_the_flag() {
    let dir = Directory::new();
    let file = dir.file("urls.txt", "/\n");
    let fed = done(brunt([""; 0]).stdin(File::open(file).unwrap())).with_status(2);
    assert!(fed.stderr.contains("brunt --url-lines - ") && fed.stderr.lines().count() == 1, "{}", fed.stderr);
}

#[test]
fn help_on_a_tool_is_the_page_for_who_comes_from_it() {
    for (tool, first) in [
        ("wrk", "From other tools"),
        ("hey", "From other tools"),
        ("vegeta", "From other tools"),
        ("k6", "From Gatling and k6"),
        ("locust", "From Locust and JMeter"),
    ] {
        let page = run(["help", tool]).with_status(0).stdout;
        assert!(page.starts_with(first), "{tool}: {page}");
    }
}
