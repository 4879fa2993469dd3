//! Language models: figures against the formulas and the own clock of the simulated server, and beside aiperf and guidellm.

use std::collections::BTreeMap;
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
/// How far the time between tokens may be from its formula at [`BUSY`] streams, in milliseconds: its median, and p99 beyond the server's own.
const MOST_ITL_MS: f64 = 0.1;
const MOST_ITL_P99_MS: f64 = 0.3;
const BUSY: u64 = 1_000;
/// Tokens of a long prompt.
const LONG: u64 = 100_000;
/// Answers at once of each client beside peers, and how many waves of them.
const PEERS_STREAMS: u64 = 64;
const PEERS_WAVES: u64 = 2;
/// Tokens a second of one answer, step by step, and the seconds that an answer takes.
const STEPS: [u64; 8] = [5, 10, 20, 40, 80, 160, 320, 640];
const ANSWER_S: u64 = 4;
/// The least share of the formula's tokens a second at which a client keeps up.
const LEAST_RATE: f64 = 0.9;
/// A token of a peer takes at least so many times the CPU, and its errors are at least so many times as large.
const LEAST_GAIN: f64 = 20.0;
const LEAST_TRUTH: f64 = 10.0;
/// Errors below this many milliseconds count as none.
const NO_ERROR_MS: f64 = 0.02;

pub(super) const BENCH: Bench = Bench {
    name: "llm",
    about: "Language models: every figure against the formulas and the clock of the simulated server; CPU a token, errors and the most tokens a second beside aiperf and guidellm.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let mut bars = formulas(setup)?;
    bars.extend(by_the_servers_clock(setup)?);
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
    let (mut worst, mut lost, mut others) = (0.0_f64, 0.0_f64, 0.0_f64);
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
            others = others.max(run.others());
        }
    }
    println!("{table}");
    let excuse = disturbed(others);
    Ok(vec![
        Bar::new("times against their formulas", "within 1 % or 1 ms", format!("{worst:.2} of that"), worst <= 1.0)
            .excused(excuse),
        Bar::new("tokens", "none lost", format!("{lost} lost"), lost == 0.0),
    ])
}

/// A folder for the server's logs and what peers write. It is removed with its content.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("brunt-benchmarks-{}-llm", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// When the server sent each event of an answer, by request, in nanoseconds of its clock. Answers of another length than `tokens` are questions
/// before the load.
fn sent(log: &Path, tokens: u64) -> anyhow::Result<Vec<Vec<u64>>> {
    let mut answers: BTreeMap<u64, (Vec<u64>, u64)> = BTreeMap::new();
    for line in fs::read_to_string(log).context("the server wrote no log")?.lines() {
        let mut numbers = line.split(',').map(|number| number.parse::<u64>().ok());
        let mut number = || numbers.next().flatten().with_context(|| format!("no line of a log: {line}"));
        let answer = answers.entry(number()?).or_default();
        answer.0.push(number()?);
        answer.1 += number()?;
    }
    let all: Vec<_> = answers.into_values().filter(|(_, all)| *all == tokens).map(|(times, _)| times).collect();
    ensure!(!all.is_empty(), "the server's log has no answer of {tokens} tokens");
    Ok(all)
}

/// The value below which this share of sorted values is, in milliseconds.
fn quantile_ms(sorted: &[u64], share: f64) -> f64 {
    let rank = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len().max(1));
    sorted.get(rank - 1).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
}

fn by_the_servers_clock(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let folder = Folder::new()?;
    let log = folder.0.join("events");
    let (decode, prefill, path) = (DECODE.to_string(), PREFILL.to_string(), log.display().to_string());
    let server = Server::llm(setup, &["--decode", &decode, "--prefill", &prefill, "--message-log", &path])?;
    setup.wait_for_quiet();
    let (requests, output) = (4 * BUSY, 80);
    // A thousand begin within four seconds, and as many end.
    let options = format!(
        "-r {} -n {requests} --input-tokens 50 --output-tokens {output}",
        BUSY as f64 / (output as f64 / DECODE)
    );
    let run = brunt(setup, &server, &options, Duration::from_secs(25), |_| {})?;
    let answers = sent(&log, output)?;
    let gap = |pair: &[u64]| pair.first().zip(pair.get(1)).map_or(0, |(before, after)| after.saturating_sub(*before));
    let mut gaps: Vec<u64> = answers.iter().flat_map(|times| times.windows(2).map(gap)).collect();
    gaps.sort_unstable();
    let formula = 1e3 / DECODE;
    let mut table = Table::new(&["itl", "server's clock, ms", "brunt, ms"]);
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        let (theirs, ours) = (quantile_ms(&gaps, share), own(&run, "itl", name)?);
        table.row([name.to_owned(), format!("{theirs:.3}"), format!("{ours:.3}")]);
    }
    println!("{}; {requests} answers of {output} tokens, {} tokens/s\n\n{table}", server.about, BUSY as f64 * DECODE);
    let (p50, p99) = ((own(&run, "itl", "p50")? - formula).abs(), (own(&run, "itl", "p99")? - formula).abs());
    let jitter = (quantile_ms(&gaps, 0.99) - formula).abs();
    let excuse = disturbed(run.others());
    let at = |name: &str| format!("itl {name} at {} tokens/s", BUSY as f64 * DECODE);
    Ok(vec![
        Bar::new(
            "answers in the server's log",
            requests.to_string(),
            answers.len().to_string(),
            answers.len() as u64 == requests,
        ),
        Bar::new(at("p50"), "off by < 100 µs", format!("{:.0} µs", p50 * 1e3), p50 < MOST_ITL_MS)
            .excused(excuse.clone()),
        Bar::new(
            at("p99"),
            "off by < the server's own jitter + 300 µs",
            format!("{:.0} µs, jitter {:.0} µs", p99 * 1e3, jitter * 1e3),
            p99 < jitter + MOST_ITL_P99_MS,
        )
        .excused(excuse),
    ])
}

fn long_prompts(setup: &Setup) -> anyhow::Result<Bar> {
    let (decode, output, requests) = (100.0, 10, 10);
    let server = Server::llm(setup, &["--decode", "100", "--prefill", "200000"])?;
    setup.wait_for_quiet();
    let options = format!("-c 1 -n {requests} --input-tokens {LONG} --output-tokens {output}");
    let run = brunt(setup, &server, &options, Duration::from_secs(20), |_| {})?;
    let (first, gap) = (LONG as f64 / 200_000.0 * 1e3, 1e3 / decode);
    let mut table = Table::new(&["figure", "formula", "brunt"]);
    let mut worst = 0.0_f64;
    for (name, what, formula) in
        [("ttft", "p50", first), ("tpot", "p50", gap), ("itl", "p50", gap), ("itl", "mean", gap)]
    {
        let value = own(&run, name, what)?;
        worst = worst.max(off(value, formula));
        table.row([format!("{name} {what}, ms"), format!("{formula:.2}"), format!("{value:.2}")]);
    }
    for (name, what, formula) in [
        ("input_length", "mean", LONG as f64),
        ("input_tokens", "sum", (LONG * requests) as f64),
        ("output_length", "mean", output as f64),
        ("output_tokens", "sum", (output * requests) as f64),
    ] {
        let value = own(&run, name, what)?;
        worst = worst.max((value - formula).abs() / (formula * MOST_SHARE));
        table.row([format!("{name} {what}"), format!("{formula}"), format!("{value}")]);
    }
    println!("prompts of {LONG} tokens\n\n{table}");
    let got = format!("{worst:.2} of that");
    Ok(Bar::new(format!("figures at prompts of {LONG} tokens"), "within 1 % or 1 ms", got, worst <= 1.0)
        .excused(disturbed(run.others())))
}

/// The clients, brunt first.
const CLIENTS: [&str; 3] = ["brunt", "aiperf", "guidellm"];

/// What a client took and said at a step, beside the server's clock.
struct Measured {
    cpu_us: f64,
    /// CPU time in all, and tokens: what a client needs to begin is in the first step as much as in any.
    cpu_s: f64,
    tokens: f64,
    /// Tokens a second that the server sent from its first to its last, as a share of the formula's.
    share: f64,
    /// What the client says less what the server did, in milliseconds.
    ttft_error_ms: f64,
    itl_error_ms: f64,
}

/// What a client says: means in milliseconds, and the CPU time of its processes in seconds.
struct Said {
    cpu_s: f64,
    ttft_ms: f64,
    itl_ms: f64,
}

fn peers(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let folder = Folder::new()?;
    println!(
        "{PEERS_STREAMS} answers at once, {PEERS_WAVES} waves, {ANSWER_S} s each, 200 tokens in; clients by turns at each step\n"
    );
    let mut table = Table::new(&[
        "tokens/s",
        "client",
        "kept up with",
        "CPU a token, µs",
        "a further token, µs",
        "ttft, mean error, ms",
        "itl, mean error, ms",
    ]);
    let tokenizer = tokenizer(&folder.0)?;
    // At each step, of each client that kept up at all before.
    let mut all: Vec<BTreeMap<&str, Measured>> = Vec::new();
    let mut going: Vec<&str> = CLIENTS.into_iter().filter(|name| *name == "brunt" || find(name).is_some()).collect();
    for step in STEPS {
        let mut measured = BTreeMap::new();
        for name in &going {
            let one = at_step(setup, name, step, &folder.0, &tokenizer)?;
            let least = all.first().and_then(|first| first.get(name));
            let further = least.map(|least| (one.cpu_s - least.cpu_s) * 1e6 / (one.tokens - least.tokens));
            table.row([
                (PEERS_STREAMS * step).to_string(),
                (*name).to_owned(),
                format!("{:.0} %", one.share * 100.0),
                format!("{:.1}", one.cpu_us),
                further.map_or("–".to_owned(), |us| format!("{us:.1}")),
                format!("{:+.3}", one.ttft_error_ms),
                format!("{:+.3}", one.itl_error_ms),
            ]);
            measured.insert(*name, one);
        }
        going.retain(|name| measured.get(name).is_some_and(|one| one.share >= LEAST_RATE));
        all.push(measured);
        if going.is_empty() {
            break;
        }
    }
    println!("{table}");
    let kept_up = |name: &str| {
        let keeps = |measured: &BTreeMap<&str, Measured>| measured.get(name).is_some_and(|one| one.share >= LEAST_RATE);
        all.iter().rposition(keeps)
    };
    let mut bars = Vec::new();
    for name in CLIENTS {
        if let Some(last) = kept_up(name) {
            let rate = PEERS_STREAMS * STEPS.get(last).copied().unwrap_or(0);
            println!("{name} keeps up with {rate} tokens/s{}", if last + 1 == STEPS.len() { " at least" } else { "" });
        }
    }
    for name in CLIENTS.into_iter().filter(|name| *name != "brunt") {
        let wanted = [format!("≤ 1/{LEAST_GAIN} of {name}'s"), format!("≤ 1/{LEAST_TRUTH} of {name}'s, or 20 µs")];
        let figures = ["CPU a token", "error of ttft", "error of itl"];
        // Under load: the last step at which it keeps up.
        let both = kept_up(name).and_then(|at| all.get(at)).and_then(|step| step.get("brunt").zip(step.get(name)));
        let Some((ours, theirs)) = both else {
            let why = if find(name).is_some() { "keeps up at no step" } else { "is not installed" };
            let unknown =
                |(figure, wanted): (&str, &String)| Bar::not_measured(figure, wanted, format!("{name} {why}"));
            bars.extend(figures.into_iter().zip([&wanted[0], &wanted[1], &wanted[1]]).map(unknown));
            continue;
        };
        let [cpu, ttft, itl] = figures;
        let gain = theirs.cpu_us / ours.cpu_us;
        bars.push(Bar::new(cpu, &wanted[0], format!("1/{gain:.1}"), gain >= LEAST_GAIN));
        for (figure, ours, theirs) in
            [(ttft, ours.ttft_error_ms, theirs.ttft_error_ms), (itl, ours.itl_error_ms, theirs.itl_error_ms)]
        {
            let is_met = ours.abs() <= (theirs.abs() / LEAST_TRUTH).max(NO_ERROR_MS);
            bars.push(Bar::new(figure, &wanted[1], format!("{ours:+.3} ms beside {theirs:+.3} ms"), is_met));
        }
    }
    Ok(bars)
}

/// One run of one client, on a server of its own that writes down what it does.
fn at_step(setup: &Setup, name: &str, step: u64, folder: &Path, tokenizer: &Path) -> anyhow::Result<Measured> {
    let (decode, output, requests) = (step.to_string(), step * ANSWER_S, PEERS_STREAMS * PEERS_WAVES);
    let log = folder.join("log");
    let logged = log.display().to_string();
    let server = Server::llm(
        setup,
        &["--decode", &decode, "--prefill", "1000000", "--log", &logged, "--answer-tokens", "131072"],
    )?;
    setup.wait_for_quiet();
    let url = server.url.replacen("llm://", "http://", 1);
    let url = url.trim_end_matches('/');
    let said = match name {
        "aiperf" => aiperf(setup, url, (requests, output), folder, tokenizer)?,
        "guidellm" => guidellm(setup, url, (requests, output), folder, tokenizer)?,
        _ => {
            let options =
                format!("-c {PEERS_STREAMS} -n {requests} --input-tokens 200 --output-tokens {output} --ignore-eos");
            let run = brunt(setup, &server, &options, Duration::from_secs(60), |_| {})?;
            Said {
                cpu_s: run.finished.cpu.as_secs_f64(),
                ttft_ms: own(&run, "ttft_sent", "mean")?,
                itl_ms: own(&run, "itl", "mean")?,
            }
        }
    };
    let answers = answers_in(&fs::read_to_string(&log)?, output)?;
    let ends = |pick: fn(&Sent) -> u64| answers.iter().map(pick);
    let (first, last) = (ends(|sent| sent.first_ns).min(), ends(|sent| sent.last_ns).max());
    let (first, last) =
        first.zip(last).with_context(|| format!("the server's log has no answer of {output} tokens"))?;
    let (count, gaps) = (answers.len() as f64, (output - 1) as f64);
    let tokens = count * output as f64;
    let rate = tokens / ((last - first) as f64 / 1e9);
    // An answer takes from its first token to its last, and its share of the prompt's time.
    let formula = PEERS_STREAMS as f64 * output as f64 / (gaps / step as f64 + 200.0 / 1e6);
    let mean_ms = |pick: fn(&Sent) -> u64| ends(pick).map(|ns| ns as f64 / 1e6).sum::<f64>() / count;
    Ok(Measured {
        cpu_us: said.cpu_s * 1e6 / tokens,
        cpu_s: said.cpu_s,
        tokens,
        share: rate / formula,
        ttft_error_ms: said.ttft_ms - mean_ms(|sent| sent.first_ns - sent.received_ns),
        itl_error_ms: said.itl_ms - mean_ms(|sent| sent.last_ns - sent.first_ns) / gaps,
    })
}

/// When the server had a request, and sent the first and the last token of its answer, by its clock.
struct Sent {
    received_ns: u64,
    first_ns: u64,
    last_ns: u64,
}

/// The answers of so many tokens in the server's log; others are questions before the load.
fn answers_in(log: &str, output: u64) -> anyhow::Result<Vec<Sent>> {
    let mut all = Vec::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).context("no line of the server's log")?;
        let time = |name: &str| line[name].as_u64().with_context(|| format!("the server's log has no {name}"));
        if line["output_tokens"].as_u64() == Some(output) {
            let [received_ns, first_ns, last_ns] =
                [time("received_ns")?, time("first_sent_ns")?, time("last_sent_ns")?];
            all.push(Sent { received_ns, first_ns, last_ns });
        }
    }
    Ok(all)
}

fn aiperf(
    setup: &Setup,
    url: &str,
    (requests, output): (u64, u64),
    folder: &Path,
    tokenizer: &Path,
) -> anyhow::Result<Said> {
    let program = find("aiperf").context("aiperf is not installed")?;
    let out = folder.join("aiperf");
    // Results of another step have the same names.
    let _ = fs::remove_dir_all(&out);
    let command = format!(
        "{} profile -m brunt-sim --tokenizer {} --url {url} --endpoint-type chat --streaming --concurrency {PEERS_STREAMS} \
         --request-count {requests} --synthetic-input-tokens-mean 200 --output-tokens-mean {output} \
         --use-server-token-count --use-legacy-max-tokens --extra-inputs ignore_eos:true --ui none --output-artifact-dir {}",
        program.display(),
        tokenizer.display(),
        out.display()
    );
    let cpu_s = cpu_of(setup, &command)?;
    let written = json_in(&out, "profile_export_aiperf.json")?;
    let [ttft_ms, itl_ms] = [mean_of(&written, "time_to_first_token")?, mean_of(&written, "inter_token_latency")?];
    Ok(Said { cpu_s, ttft_ms, itl_ms })
}

fn guidellm(
    setup: &Setup,
    url: &str,
    (requests, output): (u64, u64),
    folder: &Path,
    tokenizer: &Path,
) -> anyhow::Result<Said> {
    let program = find("guidellm").context("guidellm is not installed")?;
    let out = folder.join("guidellm.json");
    let command = format!(
        "{} run --backend kind=openai_http,target={url},model=brunt-sim --tokenizer kind=huggingface_auto,model={} \
         --profile kind=concurrent,streams={PEERS_STREAMS} --constraint kind=max_requests,count={requests} \
         --data kind=synthetic_text,prompt_tokens=200,output_tokens={output} --output kind=json,path={} --disable-console",
        program.display(),
        tokenizer.display(),
        out.display()
    );
    let cpu_s = cpu_of(setup, &command)?;
    let written: Value = serde_json::from_str(&fs::read_to_string(&out)?)?;
    let mean = |name: &str| {
        let place = format!("/benchmarks/0/metrics/{name}/successful/mean");
        written.pointer(&place).and_then(Value::as_f64).with_context(|| format!("guidellm wrote no {name}"))
    };
    Ok(Said { cpu_s, ttft_ms: mean("time_to_first_token_ms")?, itl_ms: mean("inter_token_latency_ms")? })
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
