//! The setup of every benchmark: the measured brunt, the installed clients, the machine.

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::args::Args;
use crate::clients::{CLIENTS, Client};
use crate::machine::used_by_others;
use crate::race::DISTURBED;
use crate::{machine, process};

/// How often each client runs, by default.
const ROUNDS: usize = 5;

/// A client and its program.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The client.
    pub client: &'static Client,
    /// The path of its program.
    pub program: PathBuf,
    /// Its version, in its own words.
    pub version: String,
}

/// The setup of every benchmark.
#[derive(Debug)]
pub struct Setup {
    /// The measured brunt.
    pub brunt: PathBuf,
    /// The clients that take part, brunt first.
    pub clients: Vec<Installed>,
    /// The names of clients that are not installed.
    pub missing: Vec<&'static str>,
    /// How often each client runs.
    pub rounds: usize,
    /// The requested number of rounds; `None` for the default.
    asked_rounds: Option<usize>,
    /// How long each run of a client is.
    pub length: Duration,
    /// How long `connections` watches its memory.
    pub watch: Duration,
    /// The longest wait before each run for other processes to leave the cores.
    pub patience: Duration,
    /// The core of servers.
    pub server_core: usize,
    /// The core of clients.
    pub client_core: usize,
}

impl Setup {
    /// Builds brunt if none was given, and finds the other clients.
    pub fn new(args: &Args) -> anyhow::Result<Self> {
        if find("taskset").is_none() {
            bail!("taskset is needed to keep servers and clients on cores of their own: install util-linux");
        }
        for core in [args.server_core, args.client_core] {
            machine::core_time(core).with_context(|| format!("there is no core {core}: choose two with --cores"))?;
        }
        let brunt = match &args.brunt {
            Some(path) => path.canonicalize().with_context(|| format!("--brunt {}", path.display()))?,
            None => build()?,
        };
        let (mut clients, mut missing) = (Vec::new(), Vec::new());
        for client in CLIENTS {
            let wanted =
                args.clients.is_empty() || client.name == "brunt" || args.clients.iter().any(|n| n == client.name);
            let program = if client.name == "brunt" { Some(brunt.clone()) } else { find(client.name) };
            match program {
                _ if !wanted => {}
                Some(program) => {
                    let version = version(client, &program)?;
                    clients.push(Installed { client, program, version });
                }
                None => missing.push(client.name),
            }
        }
        Ok(Self {
            brunt,
            clients,
            missing,
            rounds: args.rounds.unwrap_or(ROUNDS),
            asked_rounds: args.rounds,
            length: args.length,
            watch: args.watch,
            patience: args.patience,
            server_core: args.server_core,
            client_core: args.client_core,
        })
    }

    /// A client that takes part.
    pub fn installed(&self, name: &str) -> Option<&Installed> {
        self.clients.iter().find(|installed| installed.client.name == name)
    }

    /// How often to run what is counted and not compared: `usual` unless a number was requested.
    pub fn rounds_or(&self, usual: usize) -> usize {
        self.asked_rounds.unwrap_or(usual)
    }

    /// How everything is measured, as Markdown.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "# Benchmarks\n\n- machine: {}\n- servers on core {}, clients on core {}, one thread each\n",
            machine::describe(),
            self.server_core,
            self.client_core
        );
        for Installed { client, version, .. } in &self.clients {
            let _ = writeln!(text, "- {}: {version}", client.name);
        }
        for name in &self.missing {
            let _ = writeln!(text, "- {name}: not installed, skipped");
        }
        text
    }

    /// Waits until both cores are idle, or patience is at its end: the disturbance then shows in the run's figures.
    pub fn wait_for_quiet(&self) {
        let began = Instant::now();
        let times = || [self.server_core, self.client_core].map(machine::core_time);
        loop {
            let before = times();
            thread::sleep(Duration::from_millis(200));
            let busy = before.into_iter().zip(times()).filter_map(|(one, other)| Some(used_by_others(one?, other?, 0)));
            if busy.fold(0.0, f64::max) <= DISTURBED || began.elapsed() >= self.patience {
                return;
            }
        }
    }
}

fn version(client: &Client, program: &Path) -> anyhow::Result<String> {
    if client.version.is_empty() {
        return Ok("does not tell its version".to_owned());
    }
    let printed = process::output(program, client.version)?;
    let line = printed.lines().next().unwrap_or("").trim();
    Ok(line.strip_prefix(client.name).unwrap_or(line).trim().to_owned())
}

/// A program on the search path, or where Debian keeps servers.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let servers = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(servers).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Builds brunt for release, and returns its path.
fn build() -> anyhow::Result<PathBuf> {
    build_target(&["--bin", "brunt"], "brunt")
}

/// Builds an example of a crate of this repository, and returns its path.
pub fn build_example(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    build_target(&["--package", package, "--example", name], name)
}

fn build_target(what: &[&str], name: &str) -> anyhow::Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--message-format", "json-render-diagnostics"])
        .args(what)
        .arg("--manifest-path")
        .arg(&manifest)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo to build brunt: name a built one with --brunt")?;
    if !output.status.success() {
        bail!("{name} does not build");
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .with_context(|| format!("cargo does not say where it put {name}"))
}
