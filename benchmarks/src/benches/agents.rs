//! One run by many agents over a nats-server, beside one process: what it costs, how far apart agents begin, how soon 200 of them are
//! ready, what is left of a run that loses one, and what 1,000 of them cost their controller.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::Bench;
use crate::bar::Bar;
use crate::clients::figures;
use crate::process::{Process, anywhere};
use crate::race::median;
use crate::servers::Server;
use crate::setup::{self, Setup};
use crate::table::Table;

/// The number of agents of a run, their calls a second together, and the run's length.
const AGENTS: usize = 20;
const RATE: &str = "2000";
const LENGTH: Duration = Duration::from_secs(20);
/// How often both run, by default.
const ROUNDS: usize = 3;
/// The most CPU time of agents and controller, compared to one process, and to as many processes as there are agents.
const MOST_CPU: f64 = 1.15;
/// The most time between the beginnings of agents, as far as that is known, in nanoseconds.
const MOST_SKEW_NS: u64 = 5_000_000;
/// The calls a second of two agents together, how often they and two processes run in turn, and the most CPU time of
/// the agents, without the controller.
const RATE_OF_TWO: &str = "10000";
const PAIRS: usize = 5;
const MOST_CPU_OF_TWO: f64 = 1.02;
/// The number of agents that have to be ready in time, and the most memory of each at rest, in bytes.
const MANY: usize = 200;
const READY: Duration = Duration::from_secs(10);
const MOST_BYTES: u64 = 10_000_000;
/// The number of simulated agents of one controller, their calls a second together, and the run's length.
const CROWD: usize = 1000;
const CROWD_RATE: &str = "10M";
const CROWD_LENGTH: Duration = Duration::from_secs(30);
/// When the controller is measured: after it has accepted all agents, and keeps the most points of each.
const CROWD_SETTLED: Duration = Duration::from_secs(14);
/// The most of a core and of memory (in bytes) of the controller, and the most growth of that memory from one half of
/// the time to the other. Within each half it rises and falls, as points are added and merged.
const CROWD_CORES: f64 = 0.5;
const CROWD_BYTES: u64 = 1_000_000_000;
const CROWD_GROWTH: f64 = 1.15;
/// The longest time until a killed agent is found lost: agents may be silent for 3 s.
const NOTICED: Duration = Duration::from_secs(4);

pub(super) const BENCH: Bench = Bench {
    name: "agents",
    about: "20 agents and their controller beside one process and 20 processes at 2,000 calls/s; two beside two processes; 200 agents ready; one of 20 killed; 1,000 simulated ones.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::target(setup, &[])?;
    let bus = Bus::start()?;
    let mut bars = together(setup, &server, &bus)?;
    bars.push(two(setup, &server, &bus)?);
    bars.extend(one_is_killed(setup, &server, &bus)?);
    bars.extend(many(setup, &server, &bus)?);
    bars.extend(crowd(setup, &bus)?);
    Ok(bars)
}

/// A nats-server, which ends when this is dropped.
struct Bus {
    _process: Process,
    url: String,
}

impl Bus {
    fn start() -> anyhow::Result<Self> {
        let program = setup::find("nats-server").context("nats-server is needed: install it")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = anywhere(&program);
        command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-l", "/dev/null"]);
        let process = Process::server(command, "nats-server")?;
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(began.elapsed() < READY, "nats-server does not start");
            sleep(Duration::from_millis(20));
        }
        Ok(Self { _process: process, url: format!("nats://127.0.0.1:{port}") })
    }

    /// Starts this many agents with one core each, which keep their parts in `dir` if that is given. Returns once all
    /// of them wait.
    fn agents(&self, setup: &Setup, number: usize, dir: Option<&Path>) -> anyhow::Result<Vec<Process>> {
        let mut agents = Vec::new();
        for number in 1..=number {
            let mut command = anywhere(&setup.brunt);
            let name = format!("a{number:03}");
            command.args(["agent", "--quiet", "--cores", "1", "--nats", &self.url, "--name", &name]);
            if let Some(dir) = dir {
                command.arg("--keep").arg(dir.join(&name));
            }
            agents.push(Process::server(command, "brunt agent")?);
        }
        let began = Instant::now();
        loop {
            let args = ["agents", "--json", "--nats", &self.url];
            let listed: Value = serde_json::from_str(&crate::process::output(&setup.brunt, &args)?)?;
            let there = listed.as_array().map_or(0, Vec::len);
            if there == number {
                return Ok(agents);
            }
            ensure!(began.elapsed() < Duration::from_secs(120), "{there} of {number} agents came");
        }
    }
}

/// A run's result, its total CPU time, and the time from the command to its end.
struct AgentRun {
    report: Value,
    cpu: Duration,
    /// That of the agents alone.
    of_agents: Duration,
    wall: Duration,
}

/// Makes a run with these arguments, in which `agents` take part.
fn carry_out(setup: &Setup, args: &[&str], agents: &[Process]) -> anyhow::Result<AgentRun> {
    let cpu = |agents: &[Process]| agents.iter().filter_map(Process::cpu_time).sum::<Duration>();
    let before = cpu(agents);
    let mut command = anywhere(&setup.brunt);
    command.args(args).args(["--format", "json", "--quiet"]);
    let finished = Process::client(command, "brunt")?.finish(Duration::from_secs(180), |_| {})?;
    let of_agents = cpu(agents).saturating_sub(before);
    let (report, wall) = (figures(&finished.stdout)?, finished.wall);
    Ok(AgentRun { report, cpu: of_agents + finished.cpu, of_agents, wall })
}

/// The CPU time of this many concurrent processes that share a load without a controller: the least that the work of
/// the agents costs on one machine.
fn share_out(setup: &Setup, args: &[&str], number: usize) -> anyhow::Result<Duration> {
    let mut processes = Vec::new();
    for _ in 0..number {
        let mut command = anywhere(&setup.brunt);
        command.args(args).args(["--format", "json", "--quiet"]);
        processes.push(Process::client(command, "brunt")?);
    }
    processes.into_iter().map(|process| Ok(process.finish(Duration::from_secs(180), |_| {})?.cpu)).sum()
}

fn due_by_second(report: &Value) -> Vec<u64> {
    let points = report["series"].as_array().map(Vec::as_slice).unwrap_or_default();
    points.iter().filter_map(|point| point["due"].as_u64()).collect()
}

fn closes(report: &Value) -> bool {
    let of = |name: &str| report["outcomes"][name].as_u64();
    let ended = ["answered", "failed", "unfinished", "unsent", "unknown"].into_iter().map(of).sum::<Option<u64>>();
    of("due").is_some() && of("due") == ended
}

fn together(setup: &Setup, server: &Server, bus: &Bus) -> anyhow::Result<Vec<Bar>> {
    let agents = bus.agents(setup, AGENTS, None)?;
    let length = format!("{}s", LENGTH.as_secs());
    let number = AGENTS.to_string();
    let flags = |threads| ["-r", RATE, "-d", &length, "-t", threads, "--seed", "7", &server.url];
    // One process with as many workers as the agents have together, and one with a single worker.
    let (alone, narrow) = (flags(&number), flags("1"));
    let by_agents = [&narrow[..], &["--nats", &bus.url, "--agents", &number]].concat();
    let part = (RATE.parse::<usize>()? / AGENTS).to_string();
    let of_one = ["-r", &part, "-d", &length, "-t", "1", &server.url];
    let rounds = setup.rounds_or(ROUNDS);
    println!("{}; {AGENTS} agents beside one process, {RATE}/s, {rounds} rounds of {length}\n", server.about);
    let mut table = Table::new(&[
        "round",
        "one process",
        "with 1 thread",
        "20 processes",
        "agents",
        "ratio",
        "to 1 thread",
        "to 20 processes",
        "answered",
        "began within",
    ]);
    let (mut ratios, mut floors, mut skews) = (Vec::new(), Vec::new(), Vec::new());
    let (mut is_once, mut is_same, mut is_whole) = (true, true, true);
    for round in 1..=rounds {
        setup.wait_for_quiet();
        let one = carry_out(setup, &alone, &[])?;
        setup.wait_for_quiet();
        let single = carry_out(setup, &narrow, &[])?;
        setup.wait_for_quiet();
        let floor = share_out(setup, &of_one, AGENTS)?;
        setup.wait_for_quiet();
        let before = server.requests()?;
        let several = carry_out(setup, &by_agents, &agents)?;
        // Earlier requests have been counted by now.
        let answered = server.requests()? - before - 1;
        is_once &= Some(answered) == several.report["outcomes"]["due"].as_u64();
        is_same &= due_by_second(&one.report) == due_by_second(&several.report)
            && due_by_second(&single.report) == due_by_second(&several.report);
        is_whole &= closes(&several.report);
        let of = |name: &str| several.report["agents"][name].as_u64().unwrap_or(u64::MAX / 2);
        let skew = of("start_skew_ns") + of("start_skew_uncertainty_ns");
        let ratio = several.cpu.as_secs_f64() / one.cpu.as_secs_f64();
        let of_floor = several.cpu.as_secs_f64() / floor.as_secs_f64();
        table.row([
            round.to_string(),
            format!("{:.0} ms", one.cpu.as_secs_f64() * 1e3),
            format!("{:.0} ms", single.cpu.as_secs_f64() * 1e3),
            format!("{:.0} ms", floor.as_secs_f64() * 1e3),
            format!("{:.0} ms", several.cpu.as_secs_f64() * 1e3),
            format!("{ratio:.3}"),
            format!("{:.3}", several.cpu.as_secs_f64() / single.cpu.as_secs_f64()),
            format!("{of_floor:.3}"),
            answered.to_string(),
            format!("{:.2} ms", skew as f64 / 1e6),
        ]);
        ratios.push(ratio);
        floors.push(of_floor);
        skews.push(skew);
    }
    println!("{table}");
    let ratio = median(ratios).context("no rounds")?;
    let of_floor = median(floors).context("no rounds")?;
    let skew = skews.into_iter().max().context("no rounds")?;
    let exact = is_once && is_same && is_whole;
    let got = format!("sent once {is_once}, due alike {is_same}, sums close {is_whole}");
    Ok(vec![
        Bar::new("20 agents: calls and due times", "those of one process, each once", got, exact),
        Bar::new("20 agents: begun within", "< 5 ms", format!("{:.2} ms", skew as f64 / 1e6), skew < MOST_SKEW_NS),
        Bar::new(
            "20 agents: CPU time in all",
            format!("≤ {MOST_CPU} × one process with 20 threads"),
            format!("{ratio:.3} ×"),
            ratio <= MOST_CPU,
        ),
        Bar::new(
            "20 agents: CPU time beside 20 processes",
            format!("≤ {MOST_CPU} × 20 processes with 1 thread each"),
            format!("{of_floor:.3} ×"),
            of_floor <= MOST_CPU,
        ),
    ])
}

/// Two agents beside two processes that have half of the load each and no controller, in turns.
fn two(setup: &Setup, server: &Server, bus: &Bus) -> anyhow::Result<Bar> {
    let agents = bus.agents(setup, 2, None)?;
    let length = format!("{}s", LENGTH.as_secs());
    let half = (RATE_OF_TWO.parse::<usize>()? / 2).to_string();
    let of_one = ["-r", &half, "-d", &length, "-t", "1", &server.url];
    let of_both = ["-r", RATE_OF_TWO, "-d", &length, "-t", "1", "--nats", &bus.url, "--agents", "2", &server.url];
    let rounds = setup.rounds_or(PAIRS);
    println!("\ntwo agents beside two processes, {RATE_OF_TWO}/s, {rounds} rounds of {length}\n");
    let mut table = Table::new(&["round", "2 processes", "2 agents", "controller", "ratio"]);
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        setup.wait_for_quiet();
        let plain = share_out(setup, &of_one, 2)?;
        setup.wait_for_quiet();
        let ran = carry_out(setup, &of_both, &agents)?;
        ensure!(closes(&ran.report), "the sums do not close");
        let ratio = ran.of_agents.as_secs_f64() / plain.as_secs_f64();
        let shown = |cpu: Duration| format!("{:.0} ms", cpu.as_secs_f64() * 1e3);
        let controller = ran.cpu.saturating_sub(ran.of_agents);
        table.row([round.to_string(), shown(plain), shown(ran.of_agents), shown(controller), format!("{ratio:.3}")]);
        ratios.push(ratio);
    }
    println!("{table}");
    let ratio = median(ratios).context("no rounds")?;
    Ok(Bar::new(
        "2 agents: CPU time beside 2 processes",
        format!("≤ {MOST_CPU_OF_TWO} × 2 processes with 1 thread each"),
        format!("{ratio:.3} ×"),
        ratio <= MOST_CPU_OF_TWO,
    ))
}

fn one_is_killed(setup: &Setup, server: &Server, bus: &Bus) -> anyhow::Result<Vec<Bar>> {
    let dir = std::env::temp_dir().join(format!("brunt-agents-{}", std::process::id()));
    let folder = Folder(dir);
    let mut agents = bus.agents(setup, AGENTS, Some(&folder.0))?;
    let killed = Duration::from_secs(4);
    let (target, number) = (server.url.clone(), AGENTS.to_string());
    let args = ["-r", RATE, "-d", "10s", "-t", "1", "--nats", &bus.url, "--agents", &number, "-v", &target];
    let mut command = anywhere(&setup.brunt);
    // By default the run would be ended as unreliable, since it lost an agent; the calls that nobody made are no
    // failure here either.
    command.args(args).args(["--format", "json", "--on-lost-agent", "continue", "--max-error-rate", "100%"]);
    let began = Instant::now();
    let mut victim = agents.pop();
    let process = Process::client(command, "brunt")?;
    let finished = process.finish(Duration::from_secs(60), |_| {
        if began.elapsed() >= killed
            && let Some(mut victim) = victim.take()
        {
            // If the kill fails, the agent is not lost, which shows below.
            let _ = victim.kill();
        }
    })?;
    let report = figures(&finished.stdout)?;
    let list = report["agents"]["list"].as_array().context("no agents in the result")?;
    let lost: Vec<&Value> = list.iter().filter(|agent| agent["lost"].is_object()).collect();
    let [lost] = lost.as_slice() else { bail!("{} agents were lost instead of one", lost.len()) };
    let reason = lost["lost"]["reason"].as_str().unwrap_or_default().to_owned();
    let silent = reason.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap_or(f64::INFINITY);
    let mut differ = Vec::new();
    for agent in list.iter().filter(|agent| agent["lost"].is_null()) {
        let name = agent["name"].as_str().unwrap_or_default();
        let own: Value = serde_json::from_slice(&fs::read(folder.0.join(name).join("001.json"))?)?;
        if own["outcomes"]["answered"] != agent["answered"] || own["outcomes"]["due"] != agent["due"] {
            differ.push(name.to_owned());
        }
    }
    let got = format!("{} differ, sums close {}", differ.len(), closes(&report));
    Ok(vec![
        Bar::new(
            "one of 20 killed: noticed after",
            format!("< {} s", NOTICED.as_secs()),
            format!("{silent:.1} s ({reason})"),
            silent < NOTICED.as_secs_f64(),
        ),
        Bar::new(
            "one of 20 killed: the other 19",
            "what they themselves wrote down",
            got,
            differ.is_empty() && closes(&report),
        ),
    ])
}

fn many(setup: &Setup, server: &Server, bus: &Bus) -> anyhow::Result<Vec<Bar>> {
    let agents = bus.agents(setup, MANY, None)?;
    let most = agents.iter().filter_map(Process::proportional_bytes).max().unwrap_or(u64::MAX);
    let number = MANY.to_string();
    let args = ["-r", RATE, "-d", "2s", "-t", "1", "-c", "400", "--nats", &bus.url, "--agents", &number, &server.url];
    setup.wait_for_quiet();
    let ran = carry_out(setup, &args, &agents)?;
    let ready = ran.wall.saturating_sub(Duration::from_secs(2));
    let wanted = format!("< {} s", READY.as_secs());
    Ok(vec![
        Bar::new(
            "200 agents: ready, begun and done",
            wanted,
            format!("{:.1} s besides the load", ready.as_secs_f64()),
            ready < READY && closes(&ran.report),
        ),
        Bar::new(
            "200 agents: memory of one at rest, shared pages in proportion",
            "≤ 10 MB",
            format!("{:.1} MB", most as f64 / 1e6),
            most <= MOST_BYTES,
        ),
    ])
}

/// A controller that 1,000 simulated agents report to, each a second of 10,000 calls by 20 names every second.
fn crowd(setup: &Setup, bus: &Bus) -> anyhow::Result<Vec<Bar>> {
    let program = setup::build_example("brunt-cluster", "crowd")?;
    let mut command = anywhere(&program);
    command.args([bus.url.as_str(), &CROWD.to_string()]);
    let mut agents = Process::server(command, "crowd")?;
    let mut line = String::new();
    BufReader::new(agents.stdout()?).read_line(&mut line)?;
    ensure!(line.contains("agents wait"), "the crowd says '{}'", line.trim());
    let (number, length) = (CROWD.to_string(), format!("{}s", CROWD_LENGTH.as_secs()));
    // This target gets no calls: the agents are simulated.
    let args =
        ["-r", CROWD_RATE, "-d", &length, "-t", "1", "--nats", &bus.url, "--agents", &number, "http://127.0.0.1:9/"];
    let mut command = anywhere(&setup.brunt);
    command.args(args).args(["--format", "json", "--quiet"]);
    setup.wait_for_quiet();
    let began = Instant::now();
    let process = Process::client(command, "brunt")?;
    let mut looks: Vec<(Duration, Duration, u64)> = Vec::new();
    let finished = process.finish(Duration::from_secs(300), |process| {
        if let (Some(cpu), Some((resident, _))) = (process.cpu_time(), process.resident_bytes()) {
            looks.push((began.elapsed(), cpu, resident));
        }
    })?;
    let report = figures(&finished.stdout)?;
    let settled: Vec<_> = looks.iter().filter(|(at, ..)| (CROWD_SETTLED..CROWD_LENGTH).contains(at)).collect();
    let (first, last) = (settled.first().context("no looks")?, settled.last().context("no looks")?);
    let cores = (last.1.as_secs_f64() - first.1.as_secs_f64()) / (last.0.as_secs_f64() - first.0.as_secs_f64());
    let most = settled.iter().map(|(_, _, resident)| *resident).max().unwrap_or(u64::MAX);
    let (one, other) = settled.split_at(settled.len() / 2);
    let most_of =
        |half: &[&(Duration, Duration, u64)]| half.iter().map(|(_, _, resident)| *resident).max().unwrap_or(1);
    let growth = most_of(other) as f64 / most_of(one) as f64;
    let due = report["outcomes"]["due"].as_u64().unwrap_or(0);
    let expected = CROWD as u64 * 10_000 * CROWD_LENGTH.as_secs();
    let lost =
        report["agents"]["list"].as_array().map_or(0, |list| list.iter().filter(|one| one["lost"].is_object()).count());
    let late = finished.wall.saturating_sub(CROWD_LENGTH);
    println!(
        "\n{CROWD} simulated agents: {:.2} cores and {:.0} MB of the controller, which ended {:.1} s after the load's length\n",
        cores,
        most as f64 / 1e6,
        late.as_secs_f64()
    );
    Ok(vec![
        Bar::new(
            "1,000 agents: every second taken in",
            format!("{expected} calls, nobody lost, done within {} s besides the load", READY.as_secs()),
            format!("{due} calls, {lost} lost, {:.1} s", late.as_secs_f64()),
            due == expected && lost == 0 && late < READY && closes(&report),
        ),
        Bar::new(
            "1,000 agents: CPU of the controller",
            format!("< {CROWD_CORES} core"),
            format!("{cores:.2} cores"),
            cores < CROWD_CORES,
        ),
        Bar::new(
            "1,000 agents: memory of the controller",
            format!("≤ {} MB, growing ≤ {CROWD_GROWTH} ×", CROWD_BYTES / 1_000_000),
            format!("{:.0} MB, {growth:.2} ×", most as f64 / 1e6),
            most <= CROWD_BYTES && growth <= CROWD_GROWTH,
        ),
    ])
}

/// A directory that goes when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
