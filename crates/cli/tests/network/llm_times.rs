//! Conversations with a language model, and traces at their own times.

use brunt_testbed::llm::ModelConfig;
use serde_json::Value;

use super::llm::{model, number, own, run, start, url};
use crate::program::{self, Directory};
use crate::report::Report;

/// What a request by this name has.
fn named<'r>(report: &'r Report, name: &str) -> &'r Value {
    let all = report.at("/names/requests").as_array().unwrap();
    all.iter().find(|request| request["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}"))
}

/// How many calls there were by this name.
fn calls(report: &Report, name: &str) -> u64 {
    named(report, name)["due"].as_u64().unwrap_or_else(|| panic!("{}", named(report, name)))
}

#[test]
fn a_conversation_goes_on_with_the_servers_answers_in_each_api() {
    for api in ["chat", "completions", "anthropic", "ollama", "ollama-generate"] {
        let server = start(model(1));
        let flags =
            ["--api", api, "-c", "2", "-n", "6", "--turns", "3", "--input-tokens", "50", "--output-tokens", "5"];
        let report = run(0, &server, &flags);
        report.assert_all(6, 200);
        // A turn repeats all that was said: 50 + 5 + 50 + 5 + 50 words at the third.
        assert_eq!(number(&report, "input_length", "min"), 50.0, "{api}");
        assert_eq!(number(&report, "input_length", "max"), 160.0, "{api}");
        assert_eq!(number(&report, "input_tokens", "sum"), 2.0 * (50.0 + 105.0 + 160.0), "{api}");
        assert_eq!((calls(&report, "turn 1"), calls(&report, "turn 2+")), (2, 4), "{api}");
        let whole = run(0, &server, &[&flags[..], &["--no-stream"]].concat());
        assert_eq!(number(&whole, "input_length", "max"), 160.0, "{api}");
    }
}

#[test]
fn later_turns_have_times_of_their_own_and_find_their_beginning_in_the_cache() {
    let default = model(1);
    let server = start(ModelConfig { prefix_cache: true, ..default });
    let flags = ["-c", "1", "-n", "4", "--turns", "2", "--input-tokens", "400", "--output-tokens", "4"];
    let report = run(0, &server, &flags);
    // The first turn reads 400 words at 10,000 a second; of the second's 804, all whole blocks of the first are there.
    assert!(number(&report, "ttft_first_turn", "min") >= 39.9);
    assert_eq!(number(&report, "ttft_first_turn", "count"), 2.0);
    assert_eq!(number(&report, "cached_tokens", "sum"), 2.0 * 400.0);
    let apart = number(&report, "ttft_later_turns", "min");
    assert!((40.0..75.0).contains(&apart), "(804 - 400) / 10,000 s, and not 80 ms: {apart}");
}

#[test]
fn people_think_between_turns_in_the_open_and_the_closed_model() {
    let server = start(model(1));
    let talk = ["--turns", "2", "--think-time", "300ms", "--input-tokens", "10", "--output-tokens", "2"];
    let closed = run(0, &server, &[&["-c", "1", "-n", "4"], &talk[..]].concat());
    closed.assert_all(4, 200);
    assert!(closed.at("/measured/length_ns").as_f64().unwrap() > 600e6, "two pauses of 300 ms");
    // A pause is in no time.
    assert!(number(&closed, "ttft", "max") < 200.0);
    let open = run(0, &server, &[&["-r", "5", "-d", "1s", "--arrivals", "uniform"], &talk[..]].concat());
    // Five conversations; the second turns of those that began in the first 0.68 s.
    assert_eq!(calls(&open, "turn 1"), 5);
    assert!((2..=4).contains(&calls(&open, "turn 2+")), "{}", calls(&open, "turn 2+"));
    assert!(number(&open, "ttft", "max") < 200.0);
}

#[test]
fn a_turn_that_fails_costs_its_conversation_the_rest() {
    let mut config = model(1);
    config.faults.error_in_stream = 1.0;
    let server = start(config);
    let flags = ["-c", "2", "-n", "4", "--turns", "3", "--input-tokens", "10", "--output-tokens", "12"];
    let report = run(1, &server, &flags);
    assert_eq!(report.failures().get("exception"), Some(&4));
    assert_eq!(number(&report, "turns_lost", "sum"), 4.0 * 2.0);
    assert_eq!(calls(&report, "turn 1"), 4);
}

#[test]
fn conversations_that_wait_for_connections_are_not_blamed_on_the_server() {
    let server = start(model(1));
    // One conversation holds the connection for more than a second, and four a second come.
    let talk = ["--turns", "2", "--think-time", "1s", "--input-tokens", "10", "--output-tokens", "2"];
    let report = run(0, &server, &[&["-c", "1", "-r", "4", "-d", "4s", "--arrivals", "uniform"], &talk[..]].concat());
    assert_eq!(report.outcome("due") - report.outcome("answered"), report.outcome("unsent"));
    let waited = report.outcome("waited_for_connection");
    assert!(waited >= report.outcome("unsent") && waited < report.outcome("due"), "{waited}");
    let remarks = report.at("/remarks").as_array().unwrap();
    let about: Vec<_> = remarks.iter().map(|remark| remark["about"].as_str().unwrap()).collect();
    assert!(about.contains(&"connections"), "{remarks:?}");
    assert!(["freeze", "slowness", "overload"].iter().all(|blame| !about.contains(blame)), "{remarks:?}");
    let with_room =
        run(0, &server, &[&["-c", "8", "-r", "2", "-d", "2s", "--arrivals", "uniform"], &talk[..]].concat());
    assert_eq!(
        with_room.outcome("waited_for_connection"),
        0,
        "a conversation makes its connection, and waits for nobody"
    );
}

#[test]
fn conversations_of_a_file_are_played_with_the_servers_answers() {
    let directory = Directory::new();
    let talk = |said: &[&str]| {
        let turns = said.iter().map(
            |text| serde_json::json!({"from": if text.starts_with('q') { "human" } else { "gpt" }, "value": text}),
        );
        serde_json::json!({"conversations": turns.collect::<Vec<_>>()})
    };
    let talks =
        serde_json::json!([talk(&["q1 a b", "an answer", "q2"]), talk(&["q1"]), talk(&["q1 a", "x", "q2", "y", "q3"])]);
    let file = directory.file("talks.json", talks.to_string());
    let server = start(model(1));
    let flags = ["--dataset", &file, "-c", "1", "-n", "5", "--turns", "2", "--output-tokens", "4"];
    let report = run(0, &server, &flags);
    report.assert_all(5, 200);
    assert_eq!((calls(&report, "turn 1"), calls(&report, "turn 2+")), (3, 2));
    // 3, 3 + 4 + 1, 1, 2, 2 + 4 + 1 words.
    assert_eq!(number(&report, "input_tokens", "sum"), 3.0 + 8.0 + 1.0 + 2.0 + 7.0);
    let lines = directory.file("lines.txt", "a\nb\n");
    let refused = program::run(["--dataset", &lines, "--turns", "2", &url(&server)]);
    assert!(refused.stderr.contains("--turns: no entry of --dataset"), "{refused:?}");
}

#[test]
fn a_trace_is_replayed_at_its_times_and_ends_the_run() {
    let directory = Directory::new();
    let lines = [(0, 100, "[1]"), (200, 50, "[2]"), (1000, 520, "[1, 3]")];
    let line = |(at, tokens, blocks): (u32, u32, &str)| {
        format!("{{\"timestamp\": {at}, \"input_length\": {tokens}, \"output_length\": 3, \"hash_ids\": {blocks}}}\n")
    };
    let file = &directory.file("trace.jsonl", lines.map(line).concat());
    let server = start(model(1));
    let report = run(0, &server, &["--dataset", file]);
    report.assert_all(3, 200);
    assert_eq!(number(&report, "input_tokens", "sum"), 670.0);
    assert_eq!(number(&report, "output_tokens", "sum"), 9.0);
    let measured_s = report.at("/measured/length_ns").as_f64().unwrap() / 1e9;
    assert!((1.0..3.0).contains(&measured_s), "{measured_s}");
    assert_eq!(report.at("/plan/load/replay/format"), "mooncake");
    let faster = run(0, &server, &["--dataset", file, "--speed", "4x"]);
    assert!(faster.at("/measured/length_ns").as_f64().unwrap() < measured_s * 1e9 * 0.8);
    // A rate, or a number of connections, takes the place of its times.
    let done = program::run(["--dataset", file, "-c", "1", "-n", "3", &url(&server)]).with_status(0);
    assert!(done.stderr.contains("are not used, since -c says when calls are due"), "{done:?}");
    let refused = program::run(["--dataset", file, "-r", "5", "--speed", "2x", &url(&server)]);
    assert!(refused.stderr.contains("the rate takes their place: leave one out"), "{refused:?}");
    let lone = program::run(["--speed", "2x", &url(&server)]);
    assert!(lone.stderr.contains("--speed divides the times of a trace"), "{lone:?}");
    // Its end is the trace's, so that only a warm-up says when it is measured.
    let warmed = program::run(["--dataset", file, "-w", "100ms", &url(&server)]).with_status(0);
    assert!(warmed.stdout.contains("after 100ms of warm-up"), "{}", warmed.stdout);
    assert!(!warmed.stdout.contains(",  after"), "{}", warmed.stdout);
}

#[test]
fn a_table_of_burstgpt_is_a_trace() {
    let directory = Directory::new();
    let table = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                 5,ChatGPT,40,3,43,Conversation log\n5.1,GPT-4,20,0,20,API log\n5.4,GPT-4,60,2,62,API log\n";
    let file = directory.file("burst.csv", table);
    let server = start(model(1));
    let report = run(0, &server, &["--dataset", &file]);
    report.assert_all(2, 200);
    assert_eq!(number(&report, "input_tokens", "sum"), 100.0);
    assert_eq!(number(&report, "output_tokens", "sum"), 5.0);
    assert!(own(&report, "attainment")["ratio"] == 1.0);
}

/// What a report remarks on the figures of its protocol.
fn remarks_on_figures(report: &Report) -> Vec<String> {
    let all = report.at("/remarks").as_array().unwrap().iter();
    all.filter(|remark| remark["about"] == "own_figure").map(|remark| remark["message"].to_string()).collect()
}

#[test]
fn a_cache_that_knows_prompts_which_share_nothing_is_a_finding() {
    let config = || ModelConfig { prefix_cache: true, ..model(1) };
    let flags = ["-c", "1", "-n", "4", "--input-tokens", "160", "--output-tokens", "2", "--seed", "7"];
    let server = start(config());
    let first = run(0, &server, &flags);
    assert_eq!(remarks_on_figures(&first), [""; 0]);
    // A warm-up, and a run before with the same seed, have prompts of their own.
    let again = run(0, &server, &[&flags[..], &["-w", "300ms"]].concat());
    assert_eq!(remarks_on_figures(&again), [""; 0]);
    // What the server puts in front of all prompts is in its cache.
    let templated = start(ModelConfig { template_tokens: 32, ..config() });
    let templated = run(0, &templated, &flags);
    let said = remarks_on_figures(&templated);
    assert!(said.len() == 1 && said[0].contains("% of the prompts' tokens were in the server's cache"), "{said:?}");
    // Prompts that are told to share their beginning, and a dataset of the user's, may be in a cache.
    let shared = run(0, &server, &[&flags[..], &["--prefix-tokens", "64"]].concat());
    assert!(number(&shared, "cached_tokens", "sum") > 0.0);
    assert_eq!(remarks_on_figures(&shared), [""; 0]);
    let directory = Directory::new();
    let text = vec!["word"; 64].join(" ");
    let file = directory.file("same.txt", format!("{text}\n{text}\n"));
    let same = run(0, &server, &["-c", "1", "-n", "4", "--output-tokens", "2", "--dataset", &file]);
    assert!(number(&same, "cached_tokens", "sum") > 0.0);
    assert_eq!(remarks_on_figures(&same), [""; 0]);
}

#[test]
fn whole_bodies_of_a_file_are_sent_with_what_the_run_decides() {
    let directory = Directory::new();
    let body = |text: &str, more: &str| {
        format!(
            "{{\"model\":\"gpt\",\"messages\":[{{\"role\":\"system\",\"content\":\"a b\"}},{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}]{more}}}"
        )
    };
    let lines =
        format!("{{\"custom_id\":\"1\",\"body\":{}}}\n{}\n", body("one", ",\"max_tokens\":3"), body("one two", ""));
    let file = directory.file("batch.jsonl", lines);
    let server = start(model(1));
    let report = run(0, &server, &["--dataset", &file, "-c", "1", "-n", "2", "--output-tokens", "5"]);
    report.assert_all(2, 200);
    assert_eq!(number(&report, "input_tokens", "sum"), 3.0 + 4.0);
    assert_eq!(number(&report, "output_tokens", "sum"), 3.0 + 5.0);
}
