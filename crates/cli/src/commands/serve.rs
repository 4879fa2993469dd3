//! `brunt serve`: the built-in target.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

mod llm;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use brunt_testbed::grpc;
use brunt_testbed::http::PATHS;
use brunt_testbed::server::{self, Delay, Listen, ServedProtocol, ServerConfig, Stall, Tokens};
use brunt_testbed::timetable::{Entry, FaultProxy};
use brunt_testbed::tls::{Identity, Pem, Tls, server_config};
use clap::{Args, Subcommand};

use super::coalescing::Before;
use crate::args::values;
use crate::exit::Exit;
use crate::signals::Waiter;
use crate::{console, files};

/// Run the built-in target, to aim at
#[derive(Debug, Args)]
pub struct Serve {
    #[command(subcommand)]
    pub server: Server,
}

#[derive(Debug, Subcommand)]
pub enum Server {
    /// An HTTP server, over HTTP/1.1 and HTTP/2: as fast as it goes, or as slow and unreliable as it is told to be
    Http(Box<Http>),
    /// A WebSocket echo: every message comes back, fast or as slow and unreliable as it is told to be
    Ws(Box<Ws>),
    /// A Thrift echo: every method returns its argument, in whichever protocol and transport it came
    Thrift(Box<Thrift>),
    /// A simulated language model, with OpenAI's, Anthropic's and Ollama's APIs
    Llm(Box<Llm>),
    /// A gRPC echo: unary calls, streams of every kind, health checking, and reflection
    Grpc(Box<Grpc>),
}

/// The paths that answer in their own way, for the end of the help.
fn paths() -> String {
    let widest = PATHS.iter().map(|path| path.pattern.len()).max().unwrap_or(0);
    let lines = PATHS.iter().map(|path| format!("  {:<widest$}  {}\n", path.pattern, path.answers));
    format!("Paths with answers of their own (all others have the same):\n{}", lines.collect::<String>())
}

#[derive(Debug, Args)]
#[command(after_help = paths())]
pub struct Http {
    /// Where to listen: ADDRESS:PORT, :PORT or PORT on 127.0.0.1 (0 takes a free one), or unix:PATH
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub address: Listen,
    /// Serve identical requests in flight once: brunt's own proxy stands before the target, in this process
    #[arg(long)]
    pub coalesce: bool,
    /// Speak HTTP/3 as well, on the UDP port of the same number
    #[arg(long, requires = "tls", conflicts_with_all = ["coalesce", "faults"])]
    pub http3: bool,
    /// Length of each answer's body
    #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "13")]
    pub body_size: u64,
    /// How long each answer takes: 5ms, 1ms..5ms evenly spread, exp:5ms exponential
    #[arg(long, value_name = "DELAY", value_parser = values::delay, default_value = "0")]
    pub delay: Delay,
    /// Have a capacity: answers wait in line for one of --servers, which each takes this long (written as a delay is);
    /// N servers answer N in each T and no more
    #[arg(long, value_name = "T", value_parser = values::delay)]
    pub service_time: Option<Delay>,
    /// How many servers there are to wait for, first come, first served [default: 1]
    #[arg(long, value_name = "N", value_parser = values::servers, requires = "service_time")]
    pub servers: Option<u32>,
    /// The share of answers that are 503: 1% or 0.01
    #[arg(long, alias = "error-share", value_name = "SHARE", value_parser = values::ratio, default_value = "0%")]
    pub error_rate: f64,
    /// Freeze for D in every P: 1s/5s
    #[arg(long, value_name = "D/P", value_parser = values::stall)]
    pub stall: Option<Stall>,
    /// How long the first token of /v1/chat/completions takes: written as a delay is
    #[arg(long, value_name = "DELAY", value_parser = values::delay, default_value = "200ms")]
    pub first_token: Delay,
    /// How long after one token the next comes: written as a delay is
    #[arg(long, value_name = "DELAY", value_parser = values::delay, default_value = "20ms")]
    pub token_gap: Delay,
    /// How many tokens there are, where a request has no max_tokens
    #[arg(long, value_name = "N", value_parser = values::tokens, default_value = "50")]
    pub tokens: u64,
    /// Close each connection after this many answers
    #[arg(long, value_name = "N", value_parser = values::requests)]
    pub close_after: Option<u64>,
    #[command(flatten)]
    pub serving: Serving,
}

#[derive(Debug, Args)]
pub struct Ws {
    /// Where to listen: ADDRESS:PORT, :PORT or PORT on 127.0.0.1 (0 takes a free one), or unix:PATH
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    pub address: Listen,
    /// How long each echo takes: 5ms, 1ms..5ms evenly spread, exp:5ms exponential
    #[arg(long, value_name = "DELAY", value_parser = values::delay, default_value = "0")]
    pub delay: Delay,
    /// The share of echoes that are wrong: 1% or 0.01
    #[arg(long, alias = "error-share", value_name = "SHARE", value_parser = values::ratio, default_value = "0%")]
    pub error_rate: f64,
    /// Freeze for D in every P: 1s/5s
    #[arg(long, value_name = "D/P", value_parser = values::stall)]
    pub stall: Option<Stall>,
    /// Close each connection after this many echoes
    #[arg(long, value_name = "N", value_parser = values::requests)]
    pub close_after: Option<u64>,
    /// Send each client a message that it did not ask for, this often
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub push: Option<u64>,
    #[command(flatten)]
    pub serving: Serving,
}

const METHODS: &str = "\
It serves any IDL whose methods return what they take as argument 1, and needs none:
  service Echo {
    i32 echo(1: i32 value),                       returns the value
    void nothing(),                               returns
    oneway void tell(1: string what),             is taken
    i32 refuse() throws (1: Refused refused),     throws its exception 1
    i32 fail()                                    gets a TApplicationException
  }
Binary and compact, framed and unframed, multiplexed or not: it is told by how a message begins.";

#[derive(Debug, Args)]
#[command(after_help = METHODS)]
pub struct Thrift {
    /// Where to listen: ADDRESS:PORT, :PORT or PORT on 127.0.0.1 (0 takes a free one), or unix:PATH
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    pub address: Listen,
    /// How long each answer takes: 5ms, 1ms..5ms evenly spread, exp:5ms exponential
    #[arg(long, value_name = "DELAY", value_parser = values::delay, default_value = "0")]
    pub delay: Delay,
    /// The share of calls that get a TApplicationException: 1% or 0.01
    #[arg(long, alias = "error-share", value_name = "SHARE", value_parser = values::ratio, default_value = "0%")]
    pub error_rate: f64,
    /// Freeze for D in every P: 1s/5s
    #[arg(long, value_name = "D/P", value_parser = values::stall)]
    pub stall: Option<Stall>,
    /// Close each connection after this many calls
    #[arg(long, value_name = "N", value_parser = values::requests)]
    pub close_after: Option<u64>,
    #[command(flatten)]
    pub serving: Serving,
}

/// The methods of the echo, for the end of the help.
fn grpc_methods() -> String {
    format!(
        "It serves any schema whose methods return the messages that they take, and needs none; its own is\n\n{}\nbesides \
         grpc.health.v1.Health and server reflection (v1 and v1alpha).",
        grpc::PROTO
    )
}

#[derive(Debug, Args)]
#[command(after_help = grpc_methods())]
pub struct Grpc {
    /// Where to listen: ADDRESS:PORT, :PORT or PORT on 127.0.0.1 (0 takes a free one), or unix:PATH
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:50051")]
    pub address: Listen,
    /// How long each answer takes to begin: 5ms, 1ms..5ms evenly spread, exp:5ms exponential
    #[arg(long, value_name = "DELAY", value_parser = values::delay, default_value = "0")]
    pub delay: Delay,
    /// The share of calls that end as UNAVAILABLE: 1% or 0.01
    #[arg(long, alias = "error-share", value_name = "SHARE", value_parser = values::ratio, default_value = "0%")]
    pub error_rate: f64,
    /// Write down when each message was sent: a line CALL,NANOSECONDS for each, by the number of its call
    #[arg(long, value_name = "FILE")]
    pub message_log: Option<PathBuf>,
    #[command(flatten)]
    pub serving: Serving,
}

#[derive(Debug, Args)]
#[command(after_help = llm::FORMULAS)]
pub struct Llm {
    /// Where to listen: ADDRESS:PORT, :PORT or PORT on 127.0.0.1 (0 takes a free one), or unix:PATH
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub address: Listen,
    #[command(flatten)]
    pub model: llm::Flags,
    #[command(flatten)]
    pub told: Told,
}

/// What every server on threads is told.
#[derive(Debug, Args)]
pub struct Serving {
    /// Threads
    #[arg(short, long, value_name = "N", value_parser = values::threads, default_value = "1")]
    pub workers: u32,
    #[command(flatten)]
    pub told: Told,
}

/// What every server is told.
#[derive(Debug, Args)]
pub struct Told {
    /// Where the randomness of delays and errors starts
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: u64,
    /// Stop by itself after this long
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub duration: Option<u64>,
    #[command(flatten)]
    pub faults: ServeFaults,
    #[command(flatten)]
    pub tls: ServeTls,
}

/// The faults of a server, with their times.
#[derive(Debug, Args)]
pub struct ServeFaults {
    /// What goes wrong, and when, counted from the start: 'refuse 5s-10s; freeze 12s-14s; delay 100ms 20s-30s; cut 40s'.
    /// A proxy in this process does it, which takes CPU time and two threads for each connection
    #[arg(long, value_name = "FAULTS", value_parser = Timetable::read)]
    pub faults: Option<Timetable>,
}

/// The faults of one flag.
#[derive(Debug, Clone)]
pub struct Timetable(Vec<Entry>);

impl Timetable {
    fn read(text: &str) -> Result<Self, String> {
        values::faults(text).map(Self)
    }
}

/// The proxy in front of a server, and its address.
struct Place {
    address: SocketAddr,
    faults: Vec<Entry>,
}

impl ServeFaults {
    /// Takes the place of a server that was to listen on `address`, which moves to a free port.
    fn take_place(&mut self, address: &mut Listen) -> Result<Option<Place>> {
        let Some(Timetable(faults)) = self.faults.take() else { return Ok(None) };
        let free = Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
        match std::mem::replace(address, free) {
            Listen::Tcp(address) => Ok(Some(Place { address, faults })),
            Listen::Unix(path) => bail!("--faults needs a TCP address, not unix:{}", path.display()),
        }
    }
}

impl Place {
    /// Starts the proxy before `server`.
    fn before(self, server: Running) -> Result<Running> {
        let (scheme, rest) = server.url.split_once("://").context("the server has no URL")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let proxy = FaultProxy::start(self.address, host.parse().context("the server has no address")?, self.faults)?;
        let (url, stop) = (format!("{scheme}://{}{path}", proxy.address()), server.stop);
        let certificate_pem = server.certificate_pem;
        let stop = Box::new(move || {
            proxy.stop();
            stop()
        });
        Ok(Running { url, certificate_pem, stop })
    }
}

/// How a server speaks TLS.
#[derive(Debug, Args)]
pub struct ServeTls {
    /// Speak TLS, with a certificate made on the spot for localhost, 127.0.0.1 and ::1
    #[arg(long)]
    pub tls: bool,
    /// Write that certificate into this file, for --cacert
    #[arg(long, value_name = "FILE", requires = "tls", conflicts_with = "tls_cert")]
    pub write_cert: Option<PathBuf>,
    /// Show this certificate (PEM) instead
    #[arg(long, value_name = "FILE", requires_all = ["tls", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls", "tls_cert"])]
    pub tls_key: Option<PathBuf>,
    /// Ask clients for a certificate of these authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub client_ca: Option<PathBuf>,
}

pub fn run(args: Serve) -> Result<Exit> {
    match args.server {
        Server::Http(args) => {
            let args = *args;
            serve(args.address, args.serving, |told| {
                let config = ServerConfig {
                    body_bytes: args.body_size,
                    delay: args.delay,
                    queue: args
                        .service_time
                        .map(|service_time| server::Queue { count: args.servers.unwrap_or(1) as usize, service_time }),
                    error_rate: args.error_rate,
                    stall: args.stall,
                    close_after: args.close_after,
                    tokens: Tokens { first: args.first_token, gap: args.token_gap, count: args.tokens },
                    http3: args.http3,
                    ..told
                };
                if args.coalesce { coalesced(&config) } else { target(config, "requests") }
            })
        }
        Server::Ws(args) => {
            let args = *args;
            serve(args.address, args.serving, |told| {
                let config = ServerConfig {
                    speaks: ServedProtocol::WebSocket,
                    delay: args.delay,
                    error_rate: args.error_rate,
                    stall: args.stall,
                    close_after: args.close_after,
                    push: args.push.map(Duration::from_nanos),
                    ..told
                };
                target(config, "messages")
            })
        }
        Server::Thrift(args) => {
            let args = *args;
            serve(args.address, args.serving, |told| {
                let config = ServerConfig {
                    speaks: ServedProtocol::Thrift,
                    delay: args.delay,
                    error_rate: args.error_rate,
                    stall: args.stall,
                    close_after: args.close_after,
                    ..told
                };
                target(config, "calls")
            })
        }
        Server::Llm(args) => {
            let args = *args;
            let model = args.model.config()?;
            serve_on(1, args.address, args.told, |told| language_model(told, model))
        }
        Server::Grpc(args) => {
            let args = *args;
            if let Some(path) = &args.message_log {
                files::check_writable(path)?;
            }
            serve(args.address, args.serving, |told| {
                grpc(&grpc::EchoConfig {
                    address: told.address,
                    workers: told.workers,
                    delay: args.delay,
                    error_rate: args.error_rate,
                    tls: told.tls,
                    seed: told.seed,
                    message_log: args.message_log,
                })
            })
        }
    }
}

/// A started server.
struct Running {
    url: String,
    certificate_pem: Option<String>,
    /// Ends it. Returns a summary of its work.
    stop: Box<dyn FnOnce() -> String>,
}

/// Serves until a signal, or until its time is over. `start` gets what the server was told.
fn serve(address: Listen, told: Serving, start: impl FnOnce(ServerConfig) -> Result<Running>) -> Result<Exit> {
    serve_on(told.workers, address, told.told, start)
}

/// Serves on `workers` threads until it is stopped: `start` makes the server, a proxy with faults goes before it if any are asked for.
fn serve_on(
    workers: u32,
    mut address: Listen,
    mut told: Told,
    start: impl FnOnce(ServerConfig) -> Result<Running>,
) -> Result<Exit> {
    if let Some(path) = &told.tls.write_cert {
        files::check_writable(path)?;
    }
    let place = told.faults.take_place(&mut address)?;
    let write_cert = told.tls.write_cert.take();
    let waiter = Waiter::new()?;
    let behind = |server| match place {
        Some(place) => place.before(server),
        None => Ok(server),
    };
    let config = ServerConfig {
        address,
        workers: workers as usize,
        tls: tls(told.tls),
        seed: told.seed,
        ..ServerConfig::default()
    };
    let running = start(config).and_then(behind).context("cannot serve")?;
    if let (Some(path), Some(pem)) = (write_cert, running.certificate_pem) {
        files::write(&path, pem.as_bytes())?;
    }
    console::print(format!("listening on {}\n", running.url).as_bytes())?;
    waiter.wait(told.duration.map(Duration::from_nanos));
    console::print(format!("answered {}\n", (running.stop)()).as_bytes())?;
    Ok(Exit::Done)
}

fn target(config: ServerConfig, answered: &'static str) -> Result<Running> {
    let server = server::Server::start(config)?;
    Ok(Running {
        url: server.url(),
        certificate_pem: server.certificate_pem().map(str::to_owned),
        stop: Box::new(move || {
            let (answers, connections) = (server.requests(), server.connections());
            server.stop();
            format!("{answers} {answered} on {connections} connections")
        }),
    })
}

fn language_model(config: ServerConfig, model: brunt_testbed::llm::ModelConfig) -> Result<Running> {
    let server = server::Server::start_model(config, model)?;
    Ok(Running {
        url: server.url(),
        certificate_pem: server.certificate_pem().map(str::to_owned),
        stop: Box::new(move || {
            let (answers, connections) = (server.requests(), server.connections());
            let totals = server.totals().to_string();
            server.stop();
            format!("{answers} requests on {connections} connections\n{totals}")
        }),
    })
}

/// The target by way of a proxy that coalesces.
fn coalesced(asked: &ServerConfig) -> Result<Running> {
    let (address, workers) = (asked.address.clone(), asked.workers);
    let (tls, certificate_pem) = asked.tls.as_ref().map(server_config).transpose()?.unzip();
    let target = ServerConfig { address: SocketAddr::from(([127, 0, 0, 1], 0)).into(), tls: None, ..*asked };
    let target = server::Server::start(target)?;
    let proxy = Before::start(&target.url(), &address, workers, tls)?;
    Ok(Running {
        url: proxy.url(),
        certificate_pem,
        stop: Box::new(move || {
            let (asked, answered) = (proxy.stop(), target.requests());
            target.stop();
            format!("{asked} requests, by {answered} of the target's answers")
        }),
    })
}

fn grpc(config: &grpc::EchoConfig) -> Result<Running> {
    let server = grpc::EchoServer::start(config)?;
    Ok(Running {
        url: server.url(),
        certificate_pem: server.certificate_pem().map(str::to_owned),
        stop: Box::new(move || {
            let (calls, connections) = (server.calls(), server.connections());
            server.stop();
            format!("{calls} calls on {connections} connections")
        }),
    })
}

fn tls(args: ServeTls) -> Option<Tls> {
    let identity = match (args.tls_cert, args.tls_key) {
        (Some(certificate), Some(key)) => Identity::Given { certificate: Pem::File(certificate), key: Pem::File(key) },
        _ => Identity::Generated,
    };
    args.tls.then(|| Tls { identity, client_ca: args.client_ca.map(Pem::File) })
}
