//! brunt against a server of a real, if tiny, language model: `transformers serve`. `make llm-real` installs its packages, which take
//! gigabytes, and runs it; `make test` leaves it out.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::llm::number;
use crate::program::{Directory, nobody};
use crate::report::{Report, report};

const SERVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network/peers/llm/serve.py");
const PROMPTS: [&str; 3] =
    ["the quick brown fox", "what is a word? many people ask, and few know", "über 12,345 naïve tests \u{1f980}"];

/// A server. It ends with its test, however that ends.
struct Model {
    child: Child,
    url: String,
    /// The tokens of each prompt, by the tokenizer.
    counts: Vec<u64>,
}

impl Model {
    fn start(python: &str, folder: &str) -> Self {
        let (free, address) = nobody();
        drop(free);
        let port = address.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
        let mut command = Command::new(python);
        command.args([SERVE, folder, &port]).args(PROMPTS).stdout(Stdio::piped()).env("PYTHONDONTWRITEBYTECODE", "1");
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let counts = line.split_whitespace().map(|count| count.parse().unwrap()).collect();
        let mut model = Self { child, url: format!("llm://127.0.0.1:{port}"), counts };
        for _ in 0..3000 {
            if TcpStream::connect(format!("127.0.0.1:{port}")).is_ok() {
                return model;
            }
            if let Some(status) = model.child.try_wait().unwrap() {
                panic!("the server has ended: {status}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("it does not listen after five minutes");
    }

    fn run(&self, flags: &[&str]) -> Report {
        report(0, [flags, &["--timeout", "120s", "--output-tokens", "8", &self.url]].concat())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs torch and transformers: make llm-real"]
fn a_real_server_counts_as_brunt_says() {
    let python = std::env::var("BRUNT_LLM_PYTHON");
    let python = python.expect("BRUNT_LLM_PYTHON: a Python with torch and transformers, which make llm-real installs");
    let directory = Directory::new();
    let model = Model::start(&python, &directory.path("model"));
    let prompts: Vec<String> = PROMPTS.iter().map(|prompt| serde_json::json!(prompt).to_string()).collect();
    let file = directory.file("prompts.jsonl", prompts.join("\n"));
    for flags in [&[][..], &["--no-stream"]] {
        let run = model.run(&[&["--dataset", &file, "-c", "1", "-n", "6"], flags].concat());
        run.assert_all(6, 200);
        // The tokenizer's count, to the token.
        assert_eq!(number(&run, "input_tokens", "sum") as u64, 2 * model.counts.iter().sum::<u64>());
        // Shares of tokens are put right at the end of each answer, to a millionth.
        assert_eq!(number(&run, "output_tokens", "sum").round(), 6.0 * 8.0);
        assert_eq!(number(&run, "finish_length", "sum"), 6.0);
    }
    // Made prompts are as long as asked for, within the tokens of a few words.
    let made = model.run(&["-c", "2", "-n", "6", "--input-tokens", "100"]);
    let mean = number(&made, "input_length", "mean");
    assert!((85.0..115.0).contains(&mean), "{mean}");
    let turns = model.run(&["-c", "1", "-n", "3", "--turns", "3", "--input-tokens", "40"]);
    turns.assert_all(3, 200);
    // The third has three prompts and two answers of eight tokens, whose text may be read as other tokens.
    assert!(number(&turns, "input_length", "max") > 2.5 * number(&turns, "input_length", "min"));
}
