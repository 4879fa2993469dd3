//! The program under test, its answers, and places for its files.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// brunt with these arguments, away from the settings of whoever runs the tests.
pub fn brunt<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brunt"));
    // BRUNT_SEEDS of `make test` and its like are about the tests.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BRUNT_")) {
        command.env_remove(name);
    }
    command.args(args).env_remove("NO_COLOR").env("COLUMNS", "100").env("BRUNT_NO_SAVE", "1").stdin(Stdio::null());
    // Most tests are about something else than how many calls fail.
    command.env("BRUNT_MAX_ERROR_RATE", "100%");
    command
}

/// What came of one call of the program.
#[derive(Debug)]
pub struct Done {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    #[track_caller]
    pub fn with_status(self, expected: i32) -> Self {
        assert_eq!(self.status, Some(expected), "{self:#?}");
        self
    }

    /// Asserts that one of these signals ended it. Signals that come together have no order, so any of them may.
    #[track_caller]
    pub fn ended_by(self, signals: &[Signal]) -> Self {
        let ended = signals.iter().any(|signal| self.status == Some(128 + signal.as_raw()));
        assert!(ended, "{self:#?}");
        self
    }
}

pub fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Done {
    done(&mut brunt(args))
}

pub fn done(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    Done {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Waits until this holds. The limit is for what never comes: however slow or halting a machine is, none is as slow.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "waited in vain until {what}");
        sleep(Duration::from_millis(5));
    }
}

/// A URL on which nothing listens, and what keeps its port from being taken meanwhile.
pub fn nobody() -> (rustix::fd::OwnedFd, String) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &std::net::SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = std::net::SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    (socket, format!("http://{address}/"))
}

/// Memory resident of the process of this number, in bytes.
#[allow(dead_code, reason = "tests of agents use it")]
pub fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The program while it runs. It ends with its test, however that ends.
pub struct Running {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Running {
    pub fn start<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        Self::spawn(brunt(args))
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// The next line that it prints; empty at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// The next line that it writes to standard error, such as one each second with -v; empty at the end.
    #[allow(dead_code, reason = "tests of runs that go on use it")]
    pub fn told(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Whether it has ended. What it prints meanwhile has to fit into a pipe.
    #[allow(dead_code, reason = "tests of servers that end use it")]
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The number of its process.
    #[allow(dead_code, reason = "tests of gates use it")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Memory resident, in bytes.
    #[allow(dead_code, reason = "tests of agents use it")]
    pub fn resident_bytes(&self) -> u64 {
        resident_bytes(self.child.id())
    }

    /// Waits for its end; standard output and standard error from where they were read to.
    pub fn wait(mut self) -> Done {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        Done { status: self.child.wait().unwrap().code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory that goes with its test.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("brunt-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// A file with this content; its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn names(&self) -> Vec<String> {
        self.names_in("")
    }

    pub fn names_in(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
