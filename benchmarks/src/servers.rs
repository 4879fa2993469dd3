//! The servers that clients are aimed at, on loopback and on a core of their own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::Signal;

use crate::clocked::{self, Answered, Latency};
use crate::process::{Process, anywhere, pinned};
use crate::setup::{self, Setup};

/// How long a server may take to start.
const START: Duration = Duration::from_secs(10);
/// The longest life of a target, in case its benchmark does not end it.
const LONGEST_RUN: Duration = Duration::from_secs(2 * 3600);

/// A server that runs until this is dropped.
pub struct Server {
    /// Declared first, so that it ends before the folder is removed.
    process: Process,
    /// The URL for clients.
    pub url: String,
    /// A description for people.
    pub about: String,
    count: Count,
    _folder: Option<Folder>,
}

/// What nginx speaks: HTTP/1.1 or HTTP/2, plain or over TLS 1.3 with an ECDSA P-256 certificate.
#[derive(Debug, Clone, Copy)]
pub struct Nginx {
    /// TLS, and no plain connection.
    pub tls: bool,
    /// HTTP/2: by ALPN over TLS, else from the first byte on.
    pub http2: bool,
}

/// How to get a server's count of requests: a port, and a function that reads the answer.
struct Count {
    port: u16,
    /// The count, without the request for it.
    read: fn(&str) -> Option<u64>,
}

impl Server {
    /// brunt's built-in target, with further `options`.
    pub fn target(setup: &Setup, options: &[&str]) -> anyhow::Result<Self> {
        let mut command = pinned(setup.server_core, &setup.brunt);
        command.args(["serve", "http", "127.0.0.1:0", "--workers", "1", "--duration"]);
        command.arg(format!("{}s", LONGEST_RUN.as_secs())).args(options);
        let mut process = Process::server(command, "brunt serve http")?;
        let mut line = String::new();
        BufReader::new(process.stdout()?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").context("brunt serve http does not start")?.to_owned();
        let port = url.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
        let count = Count { port: port.context("brunt serve http names no port")?, read: |body| body.parse().ok() };
        let about = format!("brunt serve http --workers 1 {}", options.join(" ")).trim_end().to_owned();
        Ok(Self { process, url, about, count, _folder: None })
    }

    /// brunt's built-in echo over another protocol: `ws`, `thrift` or `grpc`. It has no count of requests.
    pub fn echo(setup: &Setup, protocol: &str) -> anyhow::Result<Self> {
        let mut command = pinned(setup.server_core, &setup.brunt);
        command.args(["serve", protocol, "127.0.0.1:0", "--workers", "1", "--duration"]);
        command.arg(format!("{}s", LONGEST_RUN.as_secs()));
        let mut process = Process::server(command, "brunt serve")?;
        let mut line = String::new();
        BufReader::new(process.stdout()?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").context("brunt serve does not start")?.to_owned();
        let count = Count { port: 0, read: |_| None };
        Ok(Self { process, url, about: format!("brunt serve {protocol} --workers 1"), count, _folder: None })
    }

    /// brunt's simulated language model, with further `options`. Its URL has the scheme of language models.
    pub fn llm(setup: &Setup, options: &[&str]) -> anyhow::Result<Self> {
        let mut command = pinned(setup.server_core, &setup.brunt);
        command.args(["serve", "llm", "127.0.0.1:0", "--slots", "65536", "--duration"]);
        command.arg(format!("{}s", LONGEST_RUN.as_secs())).args(options);
        let mut process = Process::server(command, "brunt serve llm")?;
        let mut line = String::new();
        BufReader::new(process.stdout()?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").context("brunt serve llm does not start")?;
        let url = url.replacen("http://", "llm://", 1);
        let count = Count { port: 0, read: |_| None };
        let about = format!("brunt serve llm {}", options.join(" "));
        Ok(Self { process, url, about, count, _folder: None })
    }

    /// brunt's built-in gRPC echo, which logs when it sent each message.
    pub fn grpc(setup: &Setup, log: &Path) -> anyhow::Result<Self> {
        let mut command = pinned(setup.server_core, &setup.brunt);
        command.args(["serve", "grpc", "127.0.0.1:0", "--workers", "1", "--duration"]);
        command.arg(format!("{}s", LONGEST_RUN.as_secs())).arg("--message-log").arg(log);
        let mut process = Process::server(command, "brunt serve grpc")?;
        let mut line = String::new();
        BufReader::new(process.stdout()?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").context("brunt serve grpc does not start")?.to_owned();
        let count = Count { port: 0, read: |_| None };
        Ok(Self { process, url, about: "brunt serve grpc --workers 1".to_owned(), count, _folder: None })
    }

    /// The benchmarks' own target, on this core or any: it records when it received each request and when its answer
    /// was passed on.
    pub fn own(core: Option<usize>, latency: Latency) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("where this program is cannot be said")?;
        let mut command = core.map_or_else(|| anywhere(&program), |core| pinned(core, &program));
        command.arg(clocked::AS_TARGET).args(latency.words());
        let mut process = Process::server(command, "our own target")?;
        let mut line = String::new();
        BufReader::new(process.stdout()?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").context("our own target does not start")?.to_owned();
        let port = url.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
        let count = Count { port: port.context("our own target names no port")?, read: |body| body.parse().ok() };
        Ok(Self { process, url, about: "our own target".to_owned(), count, _folder: None })
    }

    /// The calls that the benchmarks' own target answered since this was last called.
    pub fn answered(&self) -> anyhow::Result<Vec<Answered>> {
        Answered::all(&get(self.count.port, clocked::CALLS)?)
    }

    /// The example of the coalescing layer, with or without it; clients request this path.
    pub fn gain(setup: &Setup, example: &Path, coalesce: bool, path: &str) -> anyhow::Result<Self> {
        let mut command = pinned(setup.server_core, example);
        if coalesce {
            command.arg("--coalesce");
        }
        let mut process = Process::server(command, "the example gain")?;
        let mut line = String::new();
        BufReader::new(process.stdout()?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ").context("the example gain does not start")?;
        let port = url.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
        let count = Count { port: port.context("the example gain names no port")?, read: |body| body.parse().ok() };
        let about = format!("hyper {} the layer", if coalesce { "with" } else { "without" });
        Ok(Self { process, url: format!("{url}{path}"), about, count, _folder: None })
    }

    /// nginx, answering 12 bytes.
    pub fn nginx(setup: &Setup, speaks: Nginx) -> anyhow::Result<Self> {
        Self::start_nginx(|program| pinned(setup.server_core, program), speaks)
    }

    /// nginx over plain HTTP/1.1 on any core, with answers of 12 bytes.
    pub fn unpinned_nginx() -> anyhow::Result<Self> {
        Self::start_nginx(anywhere, Nginx { tls: false, http2: false })
    }

    fn start_nginx(on: impl FnOnce(&Path) -> Command, speaks: Nginx) -> anyhow::Result<Self> {
        let program = setup::find("nginx").context("nginx is needed: install it")?;
        let folder = Folder::new("nginx")?;
        if speaks.tls {
            certificate(&folder.0)?;
        }
        let (port, count_port) = (free_port()?, free_port()?);
        let file = folder.0.join("nginx.conf");
        fs::write(&file, nginx_configuration(&folder.0, port, count_port, speaks))?;
        let mut command = on(&program);
        command.arg("-p").arg(&folder.0).arg("-c").arg(&file).args(["-e", "stderr"]);
        let process = Process::server(command, "nginx")?;
        let read = |body: &str| {
            let numbers = body.lines().nth(2)?.split_whitespace().nth(2)?;
            numbers.parse::<u64>().ok()?.checked_sub(1)
        };
        let version = crate::process::output(&program, &["-v"])?;
        let scheme = if speaks.tls { "https" } else { "http" };
        let wire = if speaks.http2 { "HTTP/2, " } else { "" };
        let tls = if speaks.tls { "TLS 1.3, ECDSA P-256, " } else { "" };
        let about = format!("{}, {wire}{tls}12 bytes", version.trim().trim_start_matches("nginx version: "));
        let url = format!("{scheme}://127.0.0.1:{port}/");
        let server = Self { process, url, about, count: Count { port: count_port, read }, _folder: Some(folder) };
        server.wait_until_up()?;
        Ok(server)
    }

    fn wait_until_up(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            match self.requests() {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > START => return Err(error.context("the server does not start")),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The number of answered requests, without those for this count; 0 if the server has none.
    pub fn requests(&self) -> anyhow::Result<u64> {
        if self.count.port == 0 {
            return Ok(0);
        }
        let body = get(self.count.port, "/_/count").context("the server does not say how much it answered")?;
        (self.count.read)(&body).with_context(|| format!("the server's count is unreadable: {body}"))
    }

    /// The resident memory of the server, in bytes.
    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        self.process.resident_bytes().map(|(now, _)| now).context("the server has ended")
    }

    /// Sends the server a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.process.signal(signal)
    }

    /// CPU time so far, in clock ticks.
    pub fn cpu_ticks(&self) -> anyhow::Result<u64> {
        self.process.cpu_ticks()
    }
}

/// A folder that is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("brunt-benchmarks-{}-{name}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn certificate(folder: &Path) -> anyhow::Result<()> {
    let output = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(' '))
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .context("openssl is needed to make a certificate: install it")?;
    if !output.status.success() {
        bail!("openssl makes no certificate: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn nginx_configuration(folder: &Path, port: u16, count_port: u16, speaks: Nginx) -> String {
    let folder = folder.display();
    let (ssl, tls) = if speaks.tls {
        let files = format!("ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;");
        (" ssl", format!("ssl_protocols TLSv1.3; {files}"))
    } else {
        ("", String::new())
    };
    // As a word of `listen`, which nginx before 1.25 understands, too.
    let http2 = if speaks.http2 { " http2" } else { "" };
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port}{ssl}{http2} backlog=16384;
        {tls}
        location / {{ return 200 \"hello world\\n\"; }}
    }}
    server {{
        listen 127.0.0.1:{count_port};
        location = /_/count {{ stub_status; }}
    }}
}}
"
    )
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The body of a small answer on loopback.
fn get(port: u16, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(START))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without an end of its head")?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("{path} is answered with {}", head.lines().next().unwrap_or("nothing"));
    }
    Ok(body.to_owned())
}
