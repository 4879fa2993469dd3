//! A nats-server, agents on it, and a target.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

use brunt_testbed::server::{Server, ServerConfig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Directory, Done, brunt, done, resident_bytes, until};

/// A nats-server of the test's own. It ends with its test.
pub struct Bus {
    dir: Directory,
    child: Option<Child>,
    pub port: u16,
    more: Vec<String>,
}

impl Bus {
    pub fn start() -> Self {
        Self::with("")
    }

    /// With more in its configuration, where DIR stands for a directory of the test's.
    pub fn with(configuration: &str) -> Self {
        let dir = Directory::new();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = dir.file("nats.conf", configuration);
        let mut bus = Self { dir, child: None, port, more: vec!["-c".to_owned(), file] };
        bus.begin();
        bus
    }

    /// Has it begin with this in its configuration from now on.
    pub fn configure(&self, configuration: &str) {
        self.dir.file("nats.conf", configuration);
    }

    pub fn begin(&mut self) {
        let child = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", &self.port.to_string()])
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{e}: make test installs nats-server"));
        self.child = Some(child);
        until("nats-server listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Ends the server, as a machine that is switched off does.
    pub fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends the server a signal: one that is stopped stands still, and keeps its connections.
    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn directory(&self) -> &Directory {
        &self.dir
    }

    /// An agent called so, with one core; it keeps its parts in the bus's directory.
    pub fn agent(&self, name: &str) -> Agent {
        self.agent_with(name, &[])
    }

    pub fn agent_with(&self, name: &str, more: &[&str]) -> Agent {
        let (url, keep) = (self.url(), self.dir.path(name));
        let mut args = vec!["agent", "--nats", &url, "--name", name, "--cores", "1", "--keep", &keep];
        args.extend(more);
        Agent::start(&mut brunt(args), name)
    }

    pub fn agents(&self, number: usize) -> Vec<Agent> {
        (1..=number).map(|number| self.agent(&format!("a{number}"))).collect()
    }

    /// A run by agents: these arguments, and what its JSON says.
    pub fn run(&self, args: &[&str]) -> Value {
        let done = self.command(args).with_status(0);
        read(&done)
    }

    /// A run by agents, however it ends.
    pub fn command(&self, args: &[&str]) -> Done {
        let url = self.url();
        let mut all = args.to_vec();
        all.extend(["--nats", &url, "--format", "json", "--quiet"]);
        done(&mut brunt(all))
    }

    /// What an agent itself wrote down about its part of this number.
    pub fn kept(&self, name: &str, number: u32) -> Value {
        let path = format!("{}/{number:03}.json", self.dir.path(name));
        until("the agent has written its part down", || std::fs::metadata(&path).is_ok_and(|file| file.len() > 0));
        sleep(Duration::from_millis(50));
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.end();
    }
}

/// The JSON that a run has printed.
#[track_caller]
pub fn read(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:#?}"))
}

/// The accounts of a result close: with its agents' too.
#[track_caller]
pub fn closes(report: &Value) {
    let outcomes = &report["outcomes"];
    let of = |name: &str| outcomes[name].as_u64().unwrap();
    let sum = of("answered") + of("failed") + of("unfinished") + of("unsent") + unknown(report);
    assert_eq!(of("due"), sum, "{outcomes:#}");
    let agents = report["agents"]["list"].as_array().unwrap();
    let answered: u64 = agents.iter().map(|agent| agent["answered"].as_u64().unwrap()).sum();
    assert_eq!(of("answered"), answered, "{:#}", report["agents"]["list"]);
}

/// Calls that lost agents may have sent.
pub fn unknown(report: &Value) -> u64 {
    report["outcomes"]["unknown"].as_u64().unwrap_or(0)
}

/// No call that the target has counted is unsent, and none that is answered has it not counted.
#[track_caller]
pub fn agrees(report: &Value, counted: u64) {
    closes(report);
    let of = |name: &str| report["outcomes"][name].as_u64().unwrap();
    let (least, most) = (of("answered"), of("due") - of("unsent"));
    assert!(least <= counted && counted <= most, "{counted} counted, {least} to {most}: {:#}", report["outcomes"]);
}

/// The agent of this name in a result.
#[track_caller]
pub fn agent<'a>(report: &'a Value, name: &str) -> &'a Value {
    let agents = report["agents"]["list"].as_array().unwrap();
    agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("no {name} in {agents:#?}"))
}

/// An agent's process. It ends with its test.
pub struct Agent {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Agent {
    pub fn start(command: &mut Command, name: &str) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let (heard, stderr) = (Arc::clone(&said), child.stderr.take().unwrap());
        spawn(move || listen(stderr, &heard));
        let agent = Self { child, said };
        agent.says(&format!("agent {name} waits for runs"));
        agent
    }

    /// Waits until it has said this.
    #[track_caller]
    pub fn says(&self, what: &str) {
        until(&format!("the agent says '{what}'"), || self.has_said(what));
    }

    /// Waits until it has said this so often.
    #[track_caller]
    pub fn says_times(&self, what: &str, times: usize) {
        let said = || self.said.lock().unwrap().iter().filter(|line| line.contains(what)).count();
        until(&format!("the agent says '{what}' {times} times"), || said() >= times);
    }

    pub fn has_said(&self, what: &str) -> bool {
        self.said.lock().unwrap().iter().any(|line| line.contains(what))
    }

    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Memory resident, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        resident_bytes(self.child.id())
    }

    /// How many file descriptors and threads it has.
    pub fn descriptors_and_threads(&self) -> (usize, usize) {
        let count = |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", self.child.id())).unwrap().count();
        (count("fd"), count("task"))
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(stderr: ChildStderr, heard: &Mutex<Vec<String>>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        heard.lock().unwrap().push(line);
    }
}

/// The built-in target.
pub fn target() -> Server {
    Server::start(ServerConfig::default()).unwrap()
}
