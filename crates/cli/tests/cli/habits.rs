//! What hands that know wrk, ab, hey, oha, k6, vegeta, Locust and others type: it does what it did there, or is answered with the line to type.

use std::fs::File;

use brunt_testbed::server::ServerConfig;

use crate::program::{Directory, brunt, done, run};
use crate::runs::target;

/// Command lines that do what they did elsewhere; `URL` stands for the target's.
const DONE: [(&str, &str); 21] = [
    ("siege", "-n 10 --concurrency 2 URL"),
    ("artillery", "-n 10 --warm-up 100ms URL"),
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
    ("hey", "-n 10 -t 1 -H 'User-Agent: me' URL"),
    ("Locust", "-n 10 --html FOLDER/locust.html URL"),
    ("k6", "run -e NAME=x --base-url URL FOLDER/once.lua"),
    ("oha", "-n 10 --no-color URL"),
    ("autocannon", "-c 2 -d 1 URL"),
];

/// Command lines that lead to another one.
const LED: [(&str, &str, &str); 71] = [
    ("hey", "-z 7s URL", "-d 7s"),
    ("hey", "-n 1000 -q 50 URL", "-r 50 "),
    ("hey", "-D order.json URL", "--body @FILE"),
    ("hey", "-T application/json URL", "-H 'Content-Type"),
    ("hey", "-a me:pw URL", "--basic"),
    ("hey", "-X POST -d name=x URL", "--body TEXT"),
    ("hey", "--disable-keepalive URL", "--reconnect"),
    ("ab", "-A me:pw URL", "--basic"),
    ("ab", "-C a=b URL", "-b name=value"),
    ("ab", "-p order.json URL", "--body @FILE"),
    ("ab", "-i URL", "-X HEAD"),
    ("oha", "--rps 10 URL", "-r 10 "),
    ("oha", "--no-tui URL", "--quiet"),
    ("oha", "--latency-correction URL", "was due"),
    ("oha", "--http2 URL", "--http 2"),
    ("k6", "--vus 5 -d 1s URL", "-c 5 "),
    ("k6", "--stage 1m:10 URL", "-r 0..2000/1m"),
    ("k6", "--iterations 10 URL", "-n 10 "),
    ("k6", "--summary-export=a.json URL", "-o a.json"),
    ("k6", "FOLDER/login.lua", "brunt run "),
    ("vegeta", "--targets=a.txt URL", "--url-lines"),
    ("vegeta", "--workers 4 URL", "-c"),
    ("curl", "-L URL", "aim at where they lead"),
    ("siege", "URL URL", "--url-lines"),
    ("wrk2", "-t2 -c10 -d1s -R2000 URL", "-r 2000"),
    ("wrk2", "-t2 -c10 -d1s -L URL", "--latency"),
    ("ab", "-n 100 -r URL", "-r 2000"),
    ("ab", "-n 100 -l URL", "differ in length"),
    ("ab", "-n 100 -e out.csv URL", "-o out.csv"),
    ("ab", "-n 100 -X proxy:3128 URL", "through a proxy, as with ab's -X, is -x"),
    ("ab", "-n 100 -v 4 URL", "takes no value"),
    ("ab", "-n 100 -s 30 URL", "--timeout 30s"),
    ("hey", "-n 100 -disable-keepalive URL", "--reconnect"),
    ("hey", "-n 100 -disable-redirects URL", "never followed"),
    ("hey", "-n 100 -host b.test URL", "-H 'Host: b.test'"),
    ("hey", "-n 100 -h2 URL", "--http 2"),
    ("hey", "-n 100 -cpus 2 URL", "threads -t"),
    ("hey", "-n 100 -U me URL", "-H 'User-Agent"),
    ("hey", "-n 100 -A 'Accept: a' URL", "-H 'Accept"),
    ("oha", "-n 100 -w URL", "-w 5s"),
    ("oha", "-n 100 -p 2 URL", "--streams"),
    ("oha", "-n 100 --output-format json URL", "--format json"),
    ("oha", "-n 100 --http-version 2 URL", "--http 2"),
    ("oha", "-n 100 --redirect 0 URL", "never followed"),
    ("oha", "-n 100 --urls-from-file a.txt URL", "--url-lines"),
    ("oha", "-n 100 --burst-delay 1s URL", "-r 0/1s"),
    ("vegeta", "attack -duration=5s -rate=50", "--url-lines - -r 50"),
    ("vegeta", "-duration=5s URL", "--duration"),
    ("vegeta", "-rate=50/1s URL", "-r 50"),
    ("vegeta", "-r 70/s URL", "-r 70 "),
    ("vegeta", "plot results.bin", "-o run.html"),
    ("k6", "run FOLDER/script.js", ""),
    ("k6", "FOLDER/script.js", "brunt run FOLDER/script.js"),
    ("k6", "run -u 10 -d 30s FOLDER/login.lua", "--inject 'buy=users(10, 30s)'"),
    ("k6", "run -i 10 FOLDER/login.lua", "iterations_shared"),
    ("k6", "version", "brunt --version"),
    ("k6", "new script.js", "brunt init"),
    ("Locust", "-f locustfile.py --headless -u 10", "brunt help moving"),
    ("Locust", "run FOLDER/locustfile.py", "brunt help moving"),
    ("JMeter", "run FOLDER/plan.jmx", "brunt help moving"),
    ("Gatling", "run FOLDER/Shop.scala", "brunt help moving"),
    ("h2load", "-n 100 -c 2 -m 10 URL", "--streams"),
    ("vLLM", "llm --max-concurrency 8 URL", "-c 8"),
    ("vLLM", "llm --num-prompts 100 URL", "-n 100"),
    ("vLLM", "llm --request-rate 2 URL", "-r 2"),
    ("vLLM", "llm --random-input-len 300 URL", "--input-tokens 300"),
    ("vLLM", "llm --goodput ttft:500 URL", "--objectives 'ttft<500ms,tpot<50ms'"),
    ("AIPerf", "llm --osl 50 URL", "--output-tokens 50"),
    ("AIPerf", "llm --endpoint-type chat URL", "--api chat"),
    ("most servers", "serve http --port 8081", "brunt serve http 8081"),
    ("most servers", "serve llm -p 8081", "where to listen is the last word"),
];

#[test]
fn what_other_tools_take_works_or_leads_to_the_line_to_type() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    for file in ["login.lua", "script.js", "locustfile.py", "plan.jmx", "Shop.scala"] {
        dir.file(file, "");
    }
    let once = "local brunt = require 'brunt' local http = brunt.http()
        brunt.scenario('once', function() http:get('/' .. brunt.env('NAME')) end):inject { brunt.iterations_each(1, 1) }";
    dir.file("once.lua", once);
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
        assert!(
            done.stderr.contains(&expected.replace("FOLDER", &dir.path("."))),
            "{tool}: brunt {line}: {}",
            done.stderr
        );
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
        ("wrk", "Other tools"),
        ("hey", "Other tools"),
        ("vegeta", "Other tools"),
        ("k6", "Scripts of k6"),
        ("locust", "Moving to brunt"),
    ] {
        let page = run(["help", tool]).with_status(0).stdout;
        assert!(page.starts_with(first), "{tool}: {page}");
    }
}
