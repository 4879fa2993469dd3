//! nginx, with a configuration and a log of its own.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Seek as _, SeekFrom};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use brunt_testbed::tls::{Credentials, server_certificate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Directory, until};

/// How long nginx may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// How it listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    Plain,
    Tls,
    /// HTTP/2 by prior knowledge.
    Http2,
    /// HTTP/2 as the TLS handshake chooses.
    TlsHttp2,
}

/// A running nginx on 127.0.0.1, `::1` and a Unix socket. It ends with its test, however that ends.
pub struct Nginx {
    pub dir: Directory,
    pub port: u16,
    child: Option<Child>,
    /// What it shows with TLS.
    pub certificate: Option<Credentials>,
}

impl Nginx {
    /// One whose `server` block has `body` in it, such as `location / { return 200 hello; }`.
    pub fn start(body: &str) -> Self {
        Self::listening(Listen::Plain, &[], body)
    }

    /// The same with a cache of this name for its `server` block.
    pub fn start_caching(name: &str, body: &str) -> Self {
        Self::start_behind(|nginx| format!("proxy_cache_path {} keys_zone={name}:1m;", nginx.dir.path("cache")), body)
    }

    /// The same with these lines before its `server` block.
    pub fn start_behind(lines: impl Fn(&Self) -> String, body: &str) -> Self {
        let mut nginx = Self { dir: Directory::new(), port: 0, child: None, certificate: None };
        fs::create_dir(nginx.dir.path("www")).unwrap();
        let before = format!("{}\nserver {{", lines(&nginx));
        for _ in 0..5 {
            nginx.port = free_port();
            let configuration = nginx.configuration(Listen::Plain, body).replacen("server {", &before, 1);
            nginx.dir.file("nginx.conf", configuration);
            if nginx.begin() {
                return nginx;
            }
        }
        panic!("nginx does not start:\n{}", nginx.errors());
    }

    /// The same with TLS and a certificate for localhost, 127.0.0.1 and `::1`.
    pub fn start_tls(body: &str) -> Self {
        Self::start_tls_with(&[], body)
    }

    /// The same, with these files beside its configuration.
    pub fn start_tls_with(files: &[(&str, &str)], body: &str) -> Self {
        Self::listening(Listen::Tls, files, body)
    }

    pub fn listening(listen: Listen, files: &[(&str, &str)], body: &str) -> Self {
        let mut nginx = Self { dir: Directory::new(), port: 0, child: None, certificate: None };
        fs::create_dir(nginx.dir.path("www")).unwrap();
        for (name, content) in files {
            nginx.dir.file(name, content);
        }
        if matches!(listen, Listen::Tls | Listen::TlsHttp2) {
            let made = server_certificate().unwrap();
            nginx.dir.file("cert.pem", &made.certificate_pem);
            nginx.dir.file("key.pem", &made.key_pem);
            nginx.certificate = Some(made);
        }
        // Somebody else may take the port before nginx does.
        for _ in 0..5 {
            nginx.port = free_port();
            nginx.dir.file("nginx.conf", nginx.configuration(listen, body));
            if nginx.begin() {
                return nginx;
            }
        }
        panic!("nginx does not start:\n{}", nginx.errors());
    }

    fn configuration(&self, listen: Listen, body: &str) -> String {
        let dir = self.dir.path("");
        let dir = dir.trim_end_matches('/');
        let port = self.port;
        // Its workers would be somebody who may not read the directory.
        let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
        let (ssl, tls) = match listen {
            Listen::Plain => ("", ""),
            Listen::Http2 => (" http2", ""),
            Listen::Tls => (" ssl", CERTIFICATE),
            Listen::TlsHttp2 => (" ssl http2", CERTIFICATE),
        };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {dir}/{kind};\n"))
            .concat();
        let fields: Vec<_> = FIELDS.iter().map(|field| format!("\"{field}\":\"${field}\"")).collect();
        let fields = fields.join(",");
        format!(
            "{user} daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
             events {{ worker_connections 4096; }}
             http {{
                 log_format lines escape=json '{{{fields}}}';
                 access_log {dir}/access.log lines;
                 {temporary}
                 root {dir}/www;
                 {tls}
                 server {{
                     listen 127.0.0.1:{port}{ssl} backlog=4096; listen [::1]:{port}{ssl}; listen unix:{dir}/socket{ssl};
                     {body}
                 }}
                 # Takes any body, so that the server before it reads and writes it down.
                 upstream sink {{ server unix:{dir}/sink; }}
                 server {{ listen unix:{dir}/sink; access_log off; client_max_body_size 0; return 200 sunk; }}
             }}"
        )
    }

    /// Starts it, anew if it was stopped; false if it ends at once.
    pub fn begin(&mut self) -> bool {
        let dir = self.dir.path("");
        let mut child = spawn(&dir);
        let until = Instant::now() + PATIENCE;
        loop {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            // Until it has written that down, a signal might still end it in the wrong way.
            let ready = fs::metadata(self.dir.path("pid")).is_ok_and(|pid| pid.len() > 0);
            if ready && TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                self.child = Some(child);
                return true;
            }
            if Instant::now() > until {
                let _ = child.kill();
                panic!("nginx does not answer:\n{}", self.errors());
            }
            sleep(Duration::from_millis(5));
        }
    }

    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    /// Ends it and waits for that. It may begin again after that.
    pub fn end(&mut self, signal: Signal) {
        self.send(signal);
        let mut child = self.child.take().unwrap();
        if !ends(&mut child) {
            let _ = child.kill();
            panic!("nginx does not end:\n{}", self.errors());
        }
    }

    /// Lets it finish what it does, and reads what it wrote down: a line for each request, in the order of their ends.
    pub fn log(mut self) -> Vec<Line> {
        self.end(Signal::QUIT);
        self.lines()
    }

    /// What it wrote down so far.
    pub fn lines(&self) -> Vec<Line> {
        let log = fs::read_to_string(self.dir.path("access.log")).unwrap();
        log.lines().map(line_of).collect()
    }

    /// Lets it finish what it does, and counts the requests that it wrote down: a flood of a minute leaves more lines than memory should hold.
    pub fn count(mut self) -> usize {
        self.end(Signal::QUIT);
        self.follow(0).count()
    }

    /// Waits until it has answered this many requests.
    pub fn wait_for(&self, requests: usize) {
        let (mut log, mut count) = (self.follow(0), 0);
        until(&format!("nginx has been asked {requests} times"), || {
            count += log.by_ref().take(10_000).count();
            count >= requests
        });
    }

    /// Tells it to read its configuration anew, which is when it closes its connections: as soon as it has answered on all
    /// of a client's, of which there are so many. Waits until it has answered on as many new ones.
    pub fn reload(&self, connections: usize) {
        // What an earlier reload has left in the log says nothing of this one.
        let end = fs::metadata(self.dir.path("access.log")).unwrap().len();
        let mut lines = self.follow(end);
        until("nginx has answered", || lines.next().is_some());
        let mut numbers = lines.map(|line| line_of(&line).get("connection").parse::<u64>().unwrap());
        let mut seen = BTreeSet::new();
        until("nginx has answered on all connections", || {
            seen.extend(numbers.by_ref().take(10_000));
            seen.len() >= connections
        });
        let newest = seen.last().copied().unwrap_or(0);
        self.send(Signal::HUP);
        until("nginx has answered on new connections", || {
            seen.extend(numbers.by_ref().take(10_000));
            seen.range(newest + 1..).count() >= connections
        });
    }

    /// Lines of the access log from byte `start`; the first may be partial. Ends at the last complete line; polled again, it continues with
    /// newer ones.
    fn follow(&self, start: u64) -> impl Iterator<Item = String> + use<> {
        let mut log = BufReader::new(fs::File::open(self.dir.path("access.log")).unwrap());
        log.seek(SeekFrom::Start(start)).unwrap();
        let mut line = String::new();
        std::iter::from_fn(move || {
            // The last line may just be being written.
            log.read_line(&mut line).unwrap();
            line.ends_with('\n').then(|| std::mem::take(&mut line))
        })
    }

    fn errors(&self) -> String {
        fs::read_to_string(self.dir.path("error.log")).unwrap_or_default()
    }

    /// A file under its root, of this size.
    pub fn file(&self, name: &str, bytes: u64) {
        fs::File::create(self.dir.path(&format!("www/{name}"))).unwrap().set_len(bytes).unwrap();
    }

    /// The URL of this path over HTTP.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The URL of `/` over TLS.
    pub fn tls_url(&self) -> String {
        format!("https://127.0.0.1:{}/", self.port)
    }

    pub fn socket(&self) -> String {
        self.dir.path("socket")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // Killed, it could not end its workers.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            if !ends(&mut child) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// With which certificate it listens.
const CERTIFICATE: &str = "ssl_certificate cert.pem; ssl_certificate_key key.pem;";

/// What is written down of each request.
const FIELDS: [&str; 16] = [
    "server_protocol",
    "status",
    "request_method",
    "request_uri",
    "remote_addr",
    "remote_user",
    "http_host",
    "http_cookie",
    "request_body",
    "request_completion",
    "connection",
    "connection_requests",
    "ssl_protocol",
    "ssl_session_reused",
    "ssl_server_name",
    "ssl_client_s_dn",
];

/// A line of the log.
#[derive(Debug)]
pub struct Line(Value);

impl Line {
    /// One of [`FIELDS`]; empty where nginx has nothing to say.
    #[track_caller]
    pub fn get(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_else(|| panic!("no {field} in {}", self.0))
    }
}

/// How often each value of a field is in the log.
pub fn counts<'a>(log: &'a [Line], field: &str) -> std::collections::BTreeMap<&'a str, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for line in log {
        *counts.entry(line.get(field)).or_default() += 1;
    }
    counts
}

fn line_of(text: &str) -> Line {
    Line(serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}")))
}

fn spawn(dir: &str) -> Child {
    for name in ["nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"] {
        let mut command = Command::new(name);
        let error = format!("{dir}error.log");
        command.args(["-p", dir, "-c", "nginx.conf", "-e", &error]).stdin(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => return child,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => panic!("cannot start {name}: {error}"),
        }
    }
    panic!("nginx is not installed, and these tests need it: `make test` installs it");
}

fn ends(child: &mut Child) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
    false
}

/// A port that was free on both families a moment ago. The system gives it to nobody by itself, as it does those from
/// 32768 on: so it stays free for a server that begins a while later, or once more.
pub fn free_port() -> u16 {
    const FIRST: u16 = 10_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Other programs that run these tests at the same time begin elsewhere.
    let offset = (std::process::id() % 197) as u16 * 100;
    loop {
        let port = FIRST + (offset + TAKEN.fetch_add(1, Ordering::Relaxed)) % 20_000;
        let v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, port));
        if v6.is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
