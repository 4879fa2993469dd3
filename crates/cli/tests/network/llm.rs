//! Load on language models, against the simulated one: every figure by arithmetic, and what goes wrong by its name.

use std::time::Duration;

use brunt_testbed::llm::{Answers, ModelConfig, Quirks, Speed};
use brunt_testbed::server::{self, Server};
use serde_json::Value;

use crate::program;
use crate::report::{Report, report};

pub(super) fn start(model: ModelConfig) -> Server {
    Server::start_model(server::ServerConfig::default(), model).unwrap()
}

/// A model that answers 100 tokens a second, and reads 10,000 of a prompt.
pub(super) fn model(chunk: u64) -> ModelConfig {
    let default = ModelConfig::default();
    ModelConfig {
        speed: Speed { decode: 100.0, prefill: 10_000.0 },
        answers: Answers { per_chunk: chunk, ..default.answers },
        ..default
    }
}

/// The URL of a server, as of a language model.
pub(super) fn url(server: &Server) -> String {
    server.url().replacen("http://", "llm://", 1)
}

pub(super) fn run(status: i32, server: &Server, flags: &[&str]) -> Report {
    let url = url(server);
    report(status, [flags, &[&url]].concat())
}

/// A figure of the protocol's own.
pub(super) fn own<'r>(report: &'r Report, name: &str) -> &'r Value {
    let all = report.at("/names/own").as_array().unwrap();
    all.iter().find(|own| own["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

pub(super) fn number(report: &Report, name: &str, what: &str) -> f64 {
    own(report, name)[what].as_f64().unwrap_or_else(|| panic!("{name} has no {what}"))
}

#[test]
fn tokens_and_their_times_are_those_of_the_formulas() {
    for chunk in [1, 3, 8] {
        let server = start(model(chunk));
        // The server counts as it goes, so that no token has to be dealt.
        let counts = r#"{"stream_options": {"include_usage": true, "continuous_usage_stats": true}}"#;
        let flags = ["-c", "4", "-n", "12", "--input-tokens", "300", "--output-tokens", "24", "--extra-body", counts];
        let report = run(0, &server, &flags);
        report.assert_all(12, 200);
        assert_eq!(own(&report, "tokens_estimated")["ratio"], 0.0);
        // The server counts words, and a prompt is as long as was asked.
        for what in ["min", "max"] {
            assert_eq!(number(&report, "input_length", what), 300.0);
            assert_eq!(number(&report, "output_length", what), 24.0);
        }
        assert_eq!(number(&report, "output_tokens", "sum"), 12.0 * 24.0);
        // 300 / 10,000 s to the first token, and an event waits for its last one.
        let first_ms = 30.0 + (chunk - 1) as f64 * 10.0;
        assert!(number(&report, "ttft", "min") >= first_ms - 0.1, "{chunk}");
        // The gaps of tokens add up to the time between the first event and the last: 10 ms a token.
        let later = 24 - chunk;
        assert_eq!(number(&report, "itl", "count"), 12.0 * later as f64);
        assert_eq!(number(&report, "chunk_gap", "count"), 12.0 * (24 / chunk - 1) as f64);
        let all_ms = |name: &str| number(&report, name, "mean") * number(&report, name, "count");
        assert!(
            (all_ms("itl") - all_ms("chunk_gap")).abs() < 0.01,
            "{chunk}: {} {}",
            all_ms("itl"),
            all_ms("chunk_gap")
        );
        // All answers have as many tokens, so that the mean of their means is that of all tokens.
        assert!((number(&report, "tpot", "mean") - number(&report, "itl", "mean")).abs() < 0.01, "{chunk}");
        assert_eq!(number(&report, "finish_length", "sum"), 12.0);
        assert_eq!(own(&report, "attainment")["ratio"], 1.0);
    }
}

#[test]
fn own_figures_have_values_by_second_in_every_output_and_when_read_back() {
    let server = start(model(1));
    let directory = program::Directory::new();
    let (json, csv, page) = (directory.path("run.json"), directory.path("run.csv"), directory.path("run.html"));
    let load = ["-c", "4", "-d", "3s", "--input-tokens", "100", "--output-tokens", "20", "--objectives", "ttft<5s"];
    let files = ["-o", &json, "-o", &csv, "-o", &page, &url(&server)];
    program::run([&load[..], &files].concat()).with_status(0);
    let result: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let series = result["series"].as_array().unwrap();
    let second = |at: usize, name: &str, what: &str| series[at]["own"][name][what].as_f64();
    for at in 0..3 {
        assert!(second(at, "ttft", "p99").unwrap() >= 9.9 && second(at, "itl", "p99").unwrap() > 0.0, "{at}");
        assert_eq!(second(at, "attainment", "ratio"), Some(1.0));
    }
    assert_eq!(series[0]["own"].get("chunk_gap"), None, "what only the whole report shows is in the recording alone");
    let sum: f64 = (0..series.len()).filter_map(|at| second(at, "output_tokens", "sum")).sum();
    let all = result["names"]["own"].as_array().unwrap();
    let whole = all.iter().find(|own| own["name"] == "output_tokens").unwrap()["sum"].as_f64().unwrap();
    // The count of an answer that ends in the drain is corrected there.
    assert!(sum > 100.0 && (sum - whole).abs() <= 20.0, "{sum} of {whole}");
    let table = std::fs::read_to_string(&csv).unwrap();
    for name in ["ttft:p50", "ttft:p99", "output_tokens:rate", "goodput:rate", "attainment:share", "chunk_gap:p99"] {
        assert_eq!(
            table.lines().filter(|line| line.starts_with(&format!("figure_second,{name},"))).count(),
            3,
            "{name}"
        );
    }
    let shown = std::fs::read_to_string(&page).unwrap();
    for title in [">ttft ", ">itl ", ">output_tokens a second ", ">goodput a second ", ">attainment "] {
        assert!(shown.contains(title), "no panel {title}");
    }
    // Single answers are drawn token by token: those with the latest first tokens, and some by chance.
    let section =
        shown.split("<section id=\"timelines\"").nth(1).expect("no single answers").split("</section>").next().unwrap();
    assert!(section.contains(">slowest<") && section.contains(">sample<"), "{section}");
    assert!(section.contains("20 tokens"), "{section}");
    let again = directory.path("again.html");
    program::run(["show", &json, "-o", &again]).with_status(0);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), shown);
}

/// The middle one of some values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn prompts_of_100000_tokens_are_as_long_as_asked_and_their_times_are_the_servers() {
    let directory = program::Directory::new();
    let (log, events) = (directory.path("log"), directory.path("events"));
    let logs = ModelConfig { log: Some(log.clone().into()), message_log: Some(events.clone().into()), ..model(1) };
    let server = start(ModelConfig { speed: Speed { decode: 100.0, prefill: 500_000.0 }, ..logs });
    let report = run(0, &server, &["-c", "1", "-n", "5", "--input-tokens", "100000", "--output-tokens", "8"]);
    report.assert_all(5, 200);
    for what in ["min", "max"] {
        assert_eq!((number(&report, "input_length", what), number(&report, "output_length", what)), (100_000.0, 8.0));
    }
    assert_eq!(number(&report, "input_tokens", "sum"), 500_000.0);
    assert_eq!(number(&report, "output_tokens", "sum"), 40.0);
    // 100,000 / 500,000 s to the first token, less what clocks differ in.
    assert!(number(&report, "ttft", "min") >= 199.9);
    // Of a machine with much to do the middle value alone is to be compared, with what the server saw itself.
    let within = |name: &str, theirs: f64| {
        let ours = own(&report, name)["quantiles"][0]["value"].as_f64().unwrap();
        assert!((ours - theirs).abs() <= (theirs * 0.01).max(1.0), "{name}: {ours} of {theirs} ms");
    };
    let mut answers = std::collections::BTreeMap::<u64, Vec<u64>>::new();
    for line in std::fs::read_to_string(&events).unwrap().lines() {
        let mut numbers = line.split(',').map(|number| number.parse::<u64>().unwrap());
        answers.entry(numbers.next().unwrap()).or_default().push(numbers.next().unwrap());
    }
    answers.retain(|_, times| times.len() == 8);
    assert_eq!(answers.len(), 5);
    let gaps = answers.values().flat_map(|times| times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6));
    within("itl", median(gaps.collect()));
    within("tpot", median(answers.values().map(|times| (times[7] - times[0]) as f64 / 7e6).collect()));
}

#[test]
fn the_first_token_of_an_answer_that_timed_out_is_a_lower_bound() {
    // One answer at a time, of half a second for its prompt and three for its tokens: the others wait for it in vain.
    let default = model(1);
    let server = start(ModelConfig { slots: 1, speed: Speed { prefill: 400.0, ..default.speed }, ..default });
    let flags = ["-c", "4", "-n", "4", "--input-tokens", "200", "--output-tokens", "300", "--timeout", "1s"];
    let report = run(3, &server, &flags);
    let ttft = own(&report, "ttft");
    assert_eq!((ttft["count"].as_u64(), ttft["bounds"].as_u64()), (Some(4), Some(3)));
    assert_eq!((&ttft["quantiles"][0]["name"], &ttft["quantiles"][0]["at_least"]), (&"p50".into(), &true.into()));
}

#[test]
fn a_threshold_on_objectives_is_the_share_of_requests_that_met_them() {
    let server = start(model(1));
    let flags = ["-c", "2", "-n", "8", "--input-tokens", "100", "--output-tokens", "10"];
    let held = run(0, &server, &[&flags[..], &["--threshold", "within(ttft<5s, tpot<5s)>90%"]].concat());
    assert_eq!(own(&held, "within(ttft<5s,tpot<5s)")["ratio"], 1.0);
    let missed = run(1, &server, &[&flags[..], &["--threshold", "within(ttft<5s,tpot<1ms)>90%"]].concat());
    assert_eq!(missed.at("/thresholds/0/held"), false);
    for (wrong, said) in [("within(x<1s)>90%", "expected limits such as ttft<500ms"), ("within(ttft<1s)>fast", "fast")]
    {
        let refused = program::run([&flags[..], &["--threshold", wrong, &url(&server)]].concat()).with_status(2);
        assert!(refused.stderr.contains(said), "{refused:#?}");
    }
    let of_http = program::run(["-n", "1", "--threshold", "within(ttft<1s)>90%", &server.url()]).with_status(2);
    assert!(of_http.stderr.contains("measures no objectives of single calls"), "{of_http:#?}");
}

#[test]
fn decisions_have_own_figures_over_the_load_and_the_knee_of_goodput() {
    // Four answers at once; a fifth waits.
    let server = start(ModelConfig { slots: 4, ..model(1) });
    let directory = program::Directory::new();
    let (json, csv, page) = (directory.path("sweep.json"), directory.path("sweep.csv"), directory.path("sweep.html"));
    let load = ["-d", "2s", "--input-tokens", "100", "--output-tokens", "20", "--objectives", "ttft<100ms"];
    let files = ["-o", &json, "-o", &csv, "-o", &page, &url(&server)];
    let done = program::run([&["sweep", "--vary", "connections=1,4,16"], &load[..], &files].concat()).with_status(0);
    assert!(done.stdout.contains("goodput has its knee at 4 connections"), "{}", done.stdout);
    assert!(["ttft p99", "itl p50", "goodput/s"].iter().all(|column| done.stdout.contains(column)), "{}", done.stdout);
    let result: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!((&result["knees"][0]["figure"], result["knees"][0]["at"].as_f64()), (&"goodput/s".into(), Some(4.0)));
    let head = std::fs::read_to_string(&csv).unwrap();
    let head = head.lines().next().unwrap();
    assert!(
        head.ends_with("ttft:p50,ttft:p99,itl:p50,itl:p99,output_tokens:rate,goodput:rate,attainment:share"),
        "{head}"
    );
    let shown = std::fs::read_to_string(&page).unwrap();
    assert!(shown.contains("knee of goodput/s") && shown.contains("against connections"));
}

#[test]
fn each_api_is_spoken() {
    for api in ["chat", "completions", "anthropic", "ollama", "ollama-generate"] {
        let server = start(model(1));
        let flags = ["--api", api, "-c", "2", "-n", "4", "--input-tokens", "50", "--output-tokens", "5"];
        let report = run(0, &server, &flags);
        report.assert_all(4, 200);
        assert_eq!(number(&report, "output_tokens", "sum"), 20.0, "{api}");
        assert_eq!(number(&report, "input_tokens", "sum"), 200.0, "{api}");
        let whole = run(0, &server, &[&flags[..], &["--no-stream"]].concat());
        whole.assert_all(4, 200);
        assert_eq!(number(&whole, "output_tokens", "sum"), 20.0, "{api}");
        assert!(whole.at("/names/own").as_array().unwrap().iter().all(|own| own["name"] != "ttft"), "{api}");
    }
}

#[test]
fn answers_over_http_2_have_the_same_figures() {
    let server = start(model(1));
    let flags = ["--http", "2", "--streams", "4", "-c", "1", "-n", "8", "--input-tokens", "50", "--output-tokens", "5"];
    let report = run(0, &server, &flags);
    report.assert_all(8, 200);
    assert_eq!((number(&report, "ttft", "count"), number(&report, "output_tokens", "sum")), (8.0, 40.0));
    assert!(number(&report, "tpot", "mean") >= 8.0);
    assert_eq!(report.connections("made"), 1);
}

#[test]
fn the_result_of_vllm_has_the_figures_of_the_report() {
    let server = start(model(1));
    let flags = ["-c", "2", "-n", "6", "--input-tokens", "50", "--output-tokens", "5", "--format", "vllm"];
    let of_model = ["--objectives", "ttft<5s", &url(&server)];
    let done = program::run([&flags[..], &of_model].concat()).with_status(0);
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    let number = |name: &str| result[name].as_f64().unwrap_or_else(|| panic!("no {name} in {result}"));
    assert_eq!((number("num_prompts"), number("completed"), number("failed")), (6.0, 6.0, 0.0));
    assert_eq!((number("total_input_tokens"), number("total_output_tokens")), (300.0, 30.0));
    assert_eq!((result["model_id"].as_str(), result["request_rate"].as_str()), (Some("brunt-sim"), Some("inf")));
    assert!((number("request_goodput") / number("request_throughput") - 1.0).abs() < 1e-6, "{result}");
    assert!((number("output_throughput") / number("request_throughput") - 5.0).abs() < 1e-6, "{result}");
    // The last of five tokens comes 45 ms after it was asked for, and no token before its time.
    for (name, least) in [("ttft", 4.9), ("tpot", 0.0), ("itl", 0.0), ("e2el", 44.9)] {
        assert!(number(&format!("mean_{name}_ms")) >= least, "{name}: {result}");
        assert!(number(&format!("p99_{name}_ms")) >= number(&format!("median_{name}_ms")), "{name}: {result}");
    }
    let last_ms = number("mean_ttft_ms") + 4.0 * number("mean_tpot_ms");
    assert!(number("mean_e2el_ms") >= last_ms - 0.1, "{last_ms}: {result}");
}

#[test]
fn reasoning_and_a_late_answer_have_times_of_their_own() {
    let default = model(1);
    let server = start(ModelConfig { answers: Answers { reasoning: 5, ..default.answers }, ..default });
    let report = run(0, &server, &["-c", "1", "-n", "3", "--input-tokens", "10", "--output-tokens", "10"]);
    assert!(number(&report, "ttft_content", "min") >= 50.9, "five tokens of 10 ms come before the answer");
    assert!(number(&report, "ttft_content", "mean") >= number(&report, "ttft", "mean"));
}

#[test]
fn prompts_share_what_they_are_told_to_share() {
    let cached = |prefix: &str| {
        let default = model(1);
        let server = start(ModelConfig { prefix_cache: true, ..default });
        let flags = ["-c", "1", "-n", "5", "--input-tokens", "160", "--output-tokens", "1", "--prefix-tokens", prefix];
        let report = run(0, &server, &flags);
        let all = report.at("/names/own").as_array().unwrap().clone();
        all.iter().find(|own| own["name"] == "cached_tokens").map_or(0.0, |own| own["sum"].as_f64().unwrap())
    };
    assert_eq!(cached("0"), 0.0);
    // Whole blocks of 16, in all answers but the first.
    assert_eq!(cached("64"), 4.0 * 64.0);
}

#[test]
fn answers_that_go_wrong_have_a_name_and_are_not_good() {
    let mut config = model(1);
    config.faults.error_in_stream = 1.0;
    let server = start(config);
    let flags = ["-c", "4", "-n", "8", "--input-tokens", "10", "--output-tokens", "12"];
    let failed = run(1, &server, &flags);
    assert_eq!(failed.failures().get("exception"), Some(&8));
    assert_eq!(own(&failed, "attainment")["ratio"], 0.0);
    assert!(number(&failed, "output_tokens", "sum") > 0.0, "tokens of answers that never ended count");
    // Whoever hangs up on a first question is told, and no load begins.
    let mut config = model(1);
    config.faults.cut = 1.0;
    let server = start(config);
    let refused = program::run([&flags[..], &[&url(&server)]].concat());
    assert!(refused.stderr.contains("the server cannot be asked before the load"), "{refused:?}");
}

#[test]
fn comments_alone_keep_no_call_alive() {
    let default = model(1);
    // Three seconds to read a prompt, and signs of life all the time.
    let quirks = Quirks { comments: Some(Duration::from_millis(20)), ..default.quirks.clone() };
    let server = start(ModelConfig { speed: Speed { prefill: 200.0, ..default.speed }, quirks, ..default });
    let flags = ["-c", "1", "-n", "2", "--input-tokens", "600", "--output-tokens", "2"];
    let report = run(3, &server, &[&flags[..], &["--timeout", "1500ms"]].concat());
    assert_eq!(report.failures().get("timeout"), Some(&2), "{:?}", report.failures());
}

#[test]
fn objectives_decide_what_is_good_and_thresholds_hold_durations() {
    let server = start(model(1));
    let common = ["-c", "1", "-n", "3", "--input-tokens", "400", "--output-tokens", "4"];
    let with = |status, flags: &[&str]| run(status, &server, &[&common[..], flags].concat());
    let missed = with(1, &["--objectives", "ttft<20ms", "--threshold", "attainment:share>50%"]);
    assert_eq!(own(&missed, "attainment")["ratio"], 0.0);
    let met = with(
        0,
        &["--objectives", "ttft<5s,tpot<5s", "--threshold", "attainment:share>50%", "--threshold", "ttft:p50<5s"],
    );
    assert_eq!((own(&met, "attainment")["ratio"].as_f64(), number(&met, "goodput", "sum")), (Some(1.0), 3.0));
    with(1, &["--threshold", "ttft:p50<5ms"]);
}

#[test]
fn requests_come_at_their_rate_whatever_answers_take() {
    let mut config = model(1);
    config.slots = 1;
    let server = start(config);
    // One request takes 60 ms, and 50 a second come: they wait in line, and the first tokens are late from when they were due.
    let flags = ["-r", "50", "-d", "1s", "--input-tokens", "100", "--output-tokens", "5", "--arrivals", "bursty:0.5"];
    let report = run(0, &server, &flags);
    assert!(report.outcome("due") > 15, "{}", report.outcome("due"));
    assert!(number(&report, "ttft", "max") > 300.0);
}
