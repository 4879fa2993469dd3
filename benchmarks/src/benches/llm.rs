//! Language models: figures against the formulas of the simulated server, and beside aiperf and guidellm.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Bench, Run, brunt};
use crate::bar::Bar;
use crate::process::{Process, pinned};
use crate::race::disturbed;
use crate::servers::Server;
use crate::setup::{Setup, find};
use crate::table::Table;

/// Requests at once, and tokens of an event.
const STREAMS: [u64; 3] = [10, 100, 1_000];
const CHUNKS: [u64; 3] = [1, 3, 8];
/// Tokens a second of one answer, and of a prompt that is read.
const DECODE: f64 = 20.0;
const PREFILL: f64 = 1_000_000.0;
/// How far a figure may be from its formula: a share, or a time in milliseconds.
const MOST_SHARE: f64 = 0.01;
const MOST_MS: f64 = 1.0;
/// How far the median time between tokens may be, in milliseconds, at [`BUSY`] streams.
const MOST_ITL_MS: f64 = 0.1;
const BUSY: u64 = 1_000;
/// Tokens of a long prompt.
const LONG: u64 = 100_000;
/// What peers are given: requests at once, of how many in all, and tokens of an answer.
const PEERS_STREAMS: u64 = 64;
const PEERS_REQUESTS: u64 = 640;
const PEERS_OUTPUT: u64 = 100;
const PEERS_DECODE: f64 = 50.0;
/// How much less CPU time a token takes than that of a peer.
const LEAST_GAIN: f64 = 20.0;

pub(super) const BENCH: Bench = Bench {
    name: "llm",
    about: "Language models: every figure against the formula of the simulated server; CPU a token and errors beside aiperf and guidellm.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let mut bars = formulas(setup)?;
    bars.push(long_prompts(setup)?);
    bars.extend(peers(setup)?);
    Ok(bars)
}

/// A figure of the protocol's own.
fn own(run: &Run, name: &str, what: &str) -> anyhow::Result<f64> {
    let all = run.result["names"]["own"].as_array();
    let figure = all.into_iter().flatten().find(|own| own["name"] == name);
    let value = figure.and_then(|figure| {
        let of = figure["quantiles"].as_array().into_iter().flatten().find(|quantile| quantile["name"] == what);
        of.map_or_else(|| figure[what].as_f64(), |quantile| quantile["value"].as_f64())
    });
    value.with_context(|| format!("brunt's result has no {what} of {name}"))
}

/// How far a value is from its formula, as a share of what is allowed.
fn off(value: f64, formula: f64) -> f64 {
    (value - formula).abs() / (formula * MOST_SHARE).max(MOST_MS)
}

fn formulas(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let mut table = Table::new(&[
        "streams",
        "tokens an event",
        "ttft p50, ms",
        "tpot mean, ms",
        "itl p50, ms",
        "itl p99, ms",
        "tokens/s",
    ]);
    let (mut worst, mut lost, mut busy_itl, mut others) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    for chunk in CHUNKS {
        let (per_chunk, decode, prefill) = (chunk.to_string(), DECODE.to_string(), PREFILL.to_string());
        let server =
            Server::llm(setup, &["--tokens-per-chunk", &per_chunk, "--decode", &decode, "--prefill", &prefill])?;
        println!("{}\n", server.about);
        for streams in STREAMS {
            setup.wait_for_quiet();
            // The server counts as it goes, so that no token has to be dealt.
            let (requests, output) = (2 * streams, 80);
            let options = format!(
                "-r {} -n {requests} --input-tokens 500 --output-tokens {output} --extra-body \
                 {{\"stream_options\":{{\"include_usage\":true,\"continuous_usage_stats\":true}}}}",
                streams as f64 / (output as f64 / DECODE)
            );
            let run = brunt(setup, &server, &options, Duration::from_secs(15), |_| {})?;
            let first = 500.0 / PREFILL * 1e3 + (chunk - 1) as f64 / DECODE * 1e3;
            let ttft = own(&run, "ttft", "p50").unwrap_or(first);
            let (tpot, itl) = (own(&run, "itl", "mean")?, own(&run, "itl", "p50")?);
            let (counted, rate) = (own(&run, "output_tokens", "sum")?, own(&run, "output_tokens", "sum_per_s")?);
            table.row([
                streams.to_string(),
                per_chunk.clone(),
                format!("{ttft:.2}"),
                format!("{tpot:.3}"),
                format!("{itl:.3}"),
                format!("{:.2}", own(&run, "itl", "p99")?),
                format!("{rate:.0}"),
            ]);
            worst = worst.max(off(ttft, first)).max(off(tpot, 1e3 / DECODE));
            lost += (requests * output) as f64 - counted;
            if streams == BUSY {
                busy_itl = busy_itl.max((itl - 1e3 / DECODE).abs());
            }
            others = others.max(run.others());
        }
    }
    println!("{table}");
    let excuse = disturbed(others);
    Ok(vec![
        Bar::new("times against their formulas", "within 1 % or 1 ms", format!("{worst:.2} of that"), worst <= 1.0)
            .excused(excuse.clone()),
        Bar::new("tokens", "none lost", format!("{lost} lost"), lost == 0.0),
        Bar::new(
            format!("itl p50 at {} tokens/s", BUSY as f64 * DECODE),
            "within 100 µs",
            format!("{:.0} µs", busy_itl * 1e3),
            busy_itl <= MOST_ITL_MS,
        )
        .excused(excuse),
    ])
}

fn long_prompts(setup: &Setup) -> anyhow::Result<Bar> {
    let server = Server::llm(setup, &["--decode", "100", "--prefill", "200000"])?;
    setup.wait_for_quiet();
    let options = format!("-c 1 -n 10 --input-tokens {LONG} --output-tokens 10");
    let run = brunt(setup, &server, &options, Duration::from_secs(20), |_| {})?;
    let formula = LONG as f64 / 200_000.0 * 1e3;
    let (ttft, input) = (own(&run, "ttft", "p50")?, own(&run, "input_length", "p50")?);
    println!("prompts of {input} tokens: ttft p50 {ttft:.2} ms, by the formula {formula:.2} ms\n");
    let is_right = off(ttft, formula) <= 1.0 && (input - LONG as f64).abs() <= LONG as f64 * MOST_SHARE;
    Ok(Bar::new(
        format!("prompts of {LONG} tokens"),
        "within 1 % or 1 ms",
        format!("{ttft:.2} of {formula:.2} ms"),
        is_right,
    )
    .excused(disturbed(run.others())))
}

/// What a client took and said.
struct Measured {
    name: String,
    cpu_us: f64,
    ttft_ms: f64,
    itl_ms: f64,
}

fn peers(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let decode = PEERS_DECODE.to_string();
    let server = Server::llm(setup, &["--decode", &decode, "--prefill", "1000000"])?;
    println!(
        "{}; {PEERS_REQUESTS} requests, {PEERS_STREAMS} at once, 200 tokens in, {PEERS_OUTPUT} out\n",
        server.about
    );
    let folder = std::env::temp_dir().join(format!("brunt-benchmarks-{}-llm", std::process::id()));
    fs::create_dir_all(&folder)?;
    let all = measured(setup, &server, &folder);
    // A folder that stays behind does no harm.
    let _ = fs::remove_dir_all(&folder);
    let all = all?;
    // Prompts are read at once: clients count their words differently.
    let (ttft, itl) = (0.2, 1e3 / PEERS_DECODE);
    let mut table = Table::new(&["client", "CPU a token, µs", "ttft, mean error, ms", "itl, mean error, ms"]);
    for one in &all {
        let errors = [one.ttft_ms - ttft, one.itl_ms - itl].map(|error| format!("{error:+.3}"));
        table.row([one.name.clone(), format!("{:.1}", one.cpu_us)].into_iter().chain(errors));
    }
    println!("{table}");
    let Some((ours, others)) = all.split_first() else { return Ok(Vec::new()) };
    let bar = |name: &str| {
        let wanted = format!("≤ 1/{LEAST_GAIN} of {name}'s");
        match others.iter().find(|one| one.name == name) {
            Some(one) => {
                let gain = one.cpu_us / ours.cpu_us;
                Bar::new("CPU a token", wanted, format!("1/{gain:.1}"), gain >= LEAST_GAIN)
            }
            None => Bar::not_measured("CPU a token", wanted, format!("{name} is not installed")),
        }
    };
    Ok(vec![bar("aiperf"), bar("guidellm")])
}

fn measured(setup: &Setup, server: &Server, folder: &Path) -> anyhow::Result<Vec<Measured>> {
    let tokens = (PEERS_REQUESTS * PEERS_OUTPUT) as f64;
    setup.wait_for_quiet();
    let options = format!(
        "-c {PEERS_STREAMS} -n {PEERS_REQUESTS} --input-tokens 200 --output-tokens {PEERS_OUTPUT} --ignore-eos"
    );
    let run = brunt(setup, server, &options, Duration::from_secs(60), |_| {})?;
    let mut all = vec![Measured {
        name: "brunt".to_owned(),
        cpu_us: run.finished.cpu.as_secs_f64() * 1e6 / tokens,
        ttft_ms: own(&run, "ttft_sent", "mean")?,
        itl_ms: own(&run, "itl", "mean")?,
    }];
    let tokenizer = tokenizer(folder)?;
    let url = server.url.replacen("llm://", "http://", 1);
    let url = url.trim_end_matches('/');
    if let Some(aiperf) = find("aiperf") {
        let out = folder.join("aiperf");
        let command = format!(
            "{} profile -m brunt-sim --tokenizer {} --url {url} --endpoint-type chat --streaming --concurrency {PEERS_STREAMS} \
             --request-count {PEERS_REQUESTS} --synthetic-input-tokens-mean 200 --output-tokens-mean {PEERS_OUTPUT} \
             --use-server-token-count --use-legacy-max-tokens --extra-inputs ignore_eos:true --ui none --output-artifact-dir {}",
            aiperf.display(),
            tokenizer.display(),
            out.display()
        );
        let cpu = cpu_of(setup, &command)?;
        let written = json_in(&out, "profile_export_aiperf.json")?;
        all.push(Measured {
            name: "aiperf".to_owned(),
            cpu_us: cpu * 1e6 / tokens,
            ttft_ms: mean_of(&written, "time_to_first_token")?,
            itl_ms: mean_of(&written, "inter_token_latency")?,
        });
    }
    if let Some(guidellm) = find("guidellm") {
        let out = folder.join("guidellm.json");
        let command = format!(
            "{} run --backend kind=openai_http,target={url},model=brunt-sim --tokenizer kind=huggingface_auto,model={} \
             --profile kind=concurrent,streams={PEERS_STREAMS} --constraint kind=max_requests,count={PEERS_REQUESTS} \
             --data kind=synthetic_text,prompt_tokens=200,output_tokens={PEERS_OUTPUT} --output kind=json,path={} --disable-console",
            guidellm.display(),
            tokenizer.display(),
            out.display()
        );
        let cpu = cpu_of(setup, &command)?;
        let written: Value = serde_json::from_str(&fs::read_to_string(&out)?)?;
        let mean = |name: &str| {
            let place = format!("/benchmarks/0/metrics/{name}/successful/mean");
            written.pointer(&place).and_then(Value::as_f64).with_context(|| format!("guidellm wrote no {name}"))
        };
        all.push(Measured {
            name: "guidellm".to_owned(),
            cpu_us: cpu * 1e6 / tokens,
            ttft_ms: mean("time_to_first_token_ms")?,
            itl_ms: mean("inter_token_latency_ms")?,
        });
    }
    Ok(all)
}

/// The CPU time of a command and all that it starts, in seconds.
fn cpu_of(setup: &Setup, command: &str) -> anyhow::Result<f64> {
    setup.wait_for_quiet();
    let shell = find("bash").context("there is no bash")?;
    let mut timed = pinned(setup.client_core, &shell);
    timed.args(["-c", &format!("{command} >&2; status=$?; times; exit $status")]);
    let finished = Process::client(timed, command)?.finish(Duration::from_secs(300), |_| {})?;
    // The second line has the times of children, as 0m1.234s.
    let line = finished.stdout.lines().nth(1).context("times has said nothing")?;
    let seconds = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let all: Vec<f64> = line.split_whitespace().filter_map(seconds).collect();
    ensure!(all.len() == 2, "expected two times, got '{line}'");
    Ok(all.iter().sum())
}

/// The file of this name somewhere below a folder.
fn json_in(folder: &Path, name: &str) -> anyhow::Result<Value> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path: PathBuf = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|own| own == name) {
                return Ok(serde_json::from_str(&fs::read_to_string(&path)?)?);
            }
        }
    }
    anyhow::bail!("aiperf wrote no {name}")
}

fn mean_of(written: &Value, name: &str) -> anyhow::Result<f64> {
    let mean = written.pointer(&format!("/{name}/avg")).or_else(|| written.pointer(&format!("/records/{name}/avg")));
    mean.and_then(Value::as_f64).with_context(|| format!("aiperf wrote no {name}"))
}

/// A tokenizer of words, as the peers want one, which they find in a folder.
fn tokenizer(folder: &Path) -> anyhow::Result<PathBuf> {
    let folder = folder.join("tokenizer");
    fs::create_dir_all(&folder)?;
    let mut vocabulary = serde_json::Map::new();
    for word in ["<unk>", "<s>", "</s>"] {
        vocabulary.insert(word.to_owned(), vocabulary.len().into());
    }
    for number in 0..5_000 {
        vocabulary.insert(format!("w{number}"), vocabulary.len().into());
    }
    let written = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    });
    fs::write(folder.join("tokenizer.json"), written.to_string())?;
    let config = serde_json::json!({
        "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
        "model_max_length": 1_000_000,
    });
    fs::write(folder.join("tokenizer_config.json"), config.to_string())?;
    fs::write(folder.join("config.json"), "{\"model_type\": \"gpt2\"}")?;
    Ok(folder)
}
