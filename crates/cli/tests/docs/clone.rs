//! Where commands are run: a directory like a fresh clone, a home without settings, and a network of its own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// What a command may take, a server to listen. Far more than any does: it is for what never ends.
const LIMIT: Duration = Duration::from_secs(60);

/// A place for the commands of one page.
pub struct Clone {
    directory: PathBuf,
    network: Option<Network>,
    servers: Vec<Server>,
    /// The exit status of the last command.
    status: i32,
}

/// A network namespace with nothing but a loopback, so that pages need not share ports with each other, nor with whatever
/// else the machine runs. It ends with its standard input.
struct Network(Child);

/// A server that was started in the background.
struct Server {
    port: u16,
    child: Child,
}

/// What came of a command.
pub struct Done {
    pub status: i32,
    /// Standard output and standard error, as a terminal shows them.
    pub output: String,
}

impl Clone {
    pub fn new(root: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("brunt-docs-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        for place in ["clone", "home", "bin"] {
            fs::create_dir_all(directory.join(place)).unwrap();
        }
        for entry in fs::read_dir(root).unwrap().map(|entry| entry.unwrap()) {
            let name = entry.file_name();
            if name != "target" && name != ".git" {
                symlink(entry.path(), directory.join("clone").join(name)).unwrap();
            }
        }
        symlink(env!("CARGO_BIN_EXE_brunt"), directory.join("bin/brunt")).unwrap();
        Self { directory, network: Network::new(), servers: Vec::new(), status: 0 }
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.directory.join("clone").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Carries a command out, as a shell does that knows the exit status of the last one.
    pub fn run(&mut self, command: &str) -> Result<Done, String> {
        let script = format!("exec 2>&1\n(exit {})\n{command}\n", self.status);
        let mut child = self.shell(&script).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let reading = thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).map(|_| String::from_utf8_lossy(&bytes).into_owned())
        });
        let status = ended(&mut child, LIMIT);
        if status.is_none() {
            // What it started holds its output open, too.
            let _ = rustix::process::kill_process_group(
                rustix::process::Pid::from_child(&child),
                rustix::process::Signal::KILL,
            );
            let _ = child.wait();
            return Err(format!("it went on for more than {LIMIT:?}"));
        }
        let output = reading.join().unwrap().unwrap();
        self.status = status.and_then(|status| status.code()).unwrap_or(-1);
        Ok(Done { status: self.status, output })
    }

    /// Starts a server and waits until it is ready. One that listens where this one will is ended first, as a reader would.
    pub fn start(&mut self, command: &str) -> Result<(), String> {
        let is_agent = command.starts_with("brunt agent");
        let port = if is_agent { self.servers.len() as u16 } else { port(command) };
        self.servers.retain_mut(|server| server.port != port || server.end());
        let output = self.directory.join("server.txt");
        let file = File::create(&output).unwrap();
        let script = format!("exec 2>&1\nexec {command}\n");
        let mut child = self.shell(&script).stdout(file).spawn().unwrap();
        let began = Instant::now();
        let id = child.id();
        let said = |words| fs::read_to_string(&output).is_ok_and(|said| said.contains(words));
        let is_ready = || match command {
            // Agents listen nowhere.
            _ if is_agent => said("waits for runs"),
            // It listens a moment before its certificate is written.
            _ if command.starts_with("brunt serve") => said("listening on"),
            _ => listens(id),
        };
        while !is_ready() {
            if let Some(status) = child.try_wait().unwrap() {
                return Err(format!("it ended with {status}: {}", fs::read_to_string(&output).unwrap()));
            }
            if began.elapsed() > LIMIT {
                let _ = child.kill();
                let _ = child.wait();
                return Err("it does not become ready".to_owned());
            }
            sleep(Duration::from_millis(5));
        }
        self.servers.push(Server { port, child });
        Ok(())
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = match &self.network {
            Some(network) => network.enter(),
            None => Command::new("sh"),
        };
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(["-c", script])
            .current_dir(self.directory.join("clone"))
            .env("PATH", format!("{}:{path}", self.directory.join("bin").display()))
            .env("HOME", self.directory.join("home"))
            .env("COLUMNS", "80")
            .process_group(0)
            .stdin(Stdio::null());
        // Those of whoever runs the tests, and of the build.
        for name in ["XDG_STATE_HOME", "NO_COLOR", "MAKEFLAGS"] {
            command.env_remove(name);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BRUNT_")) {
            command.env_remove(name);
        }
        command
    }
}

impl Drop for Clone {
    fn drop(&mut self) {
        for server in &mut self.servers {
            server.end();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Network {
    /// A namespace, where the system lets us have one.
    fn new() -> Option<Self> {
        let mut child = Command::new("unshare")
            .args(["--map-root-user", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let is_up = BufReader::new(child.stdout.take()?).read_line(&mut line).is_ok() && line == "up\n";
        let network = Self(child);
        is_up.then_some(network)
    }

    /// A shell within it.
    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0.id().to_string(), "--user", "--net", "--preserve-credentials", "sh"]);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Ends it; false, so that it is not retained.
    fn end(&mut self) -> bool {
        let _ = self.child.kill();
        let _ = self.child.wait();
        false
    }
}

/// The port that a server of this command listens on: the last that its words name, else the one it takes by itself.
fn port(command: &str) -> u16 {
    let mut named = command
        .split_whitespace()
        .filter_map(|word| word.rsplit(':').next().filter(|port| port.len() > 3)?.parse().ok());
    named.next_back().unwrap_or(match command.split_whitespace().nth(2) {
        Some("ws") => 8081,
        Some("thrift") => 9090,
        Some("grpc") => 50051,
        Some("llm") => 8000,
        _ => 8080,
    })
}

/// Waits for the end of a process, at most so long.
fn ended(child: &mut Child, at_most: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < at_most {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        sleep(Duration::from_millis(5));
    }
    None
}

/// Whether a process has a socket of its own on which it listens (proc(5): state 0A of TCP, the flag 10000 of Unix sockets).
fn listens(process: u32) -> bool {
    let table = |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    let column = |line: &str, at: usize| line.split_whitespace().nth(at).unwrap_or_default().to_owned();
    let of_tcp = [table("tcp"), table("tcp6")].concat();
    let tcp = of_tcp.lines().filter(|line| column(line, 3) == "0A").map(|line| column(line, 9));
    let of_unix = table("unix");
    let unix = of_unix.lines().filter(|line| column(line, 3) == "00010000").map(|line| column(line, 6));
    let listening: Vec<_> = tcp.chain(unix).map(|inode| format!("socket:[{inode}]")).collect();
    let Ok(own) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    own.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|link| listening.iter().any(|one| link.as_os_str() == one.as_str()))
}

#[test]
fn servers_on_one_port_are_told() {
    assert_eq!(port("brunt serve http --stall 1s/5s"), 8080);
    assert_eq!(port("brunt serve ws"), 8081);
    assert_eq!(port("brunt serve http 8090 --delay 100ms"), 8090);
    assert_eq!(port("brunt proxy --coalesce http://127.0.0.1:8480 --listen 127.0.0.1:8481"), 8481);
    assert_eq!(port("redis-server --port 6390 --save ''"), 6390);
}
