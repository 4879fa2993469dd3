//! The flags of a run, in the groups of its help.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Proxy, Sandbox};
use brunt_plan::profile::Profile;
use brunt_plan::threshold::{Guard, GuardAction, Threshold};
use brunt_plan::watch::Watch;
use brunt_record::outcome::OkStatus;
use brunt_report::Format;
use clap::{Args, ValueEnum};

use super::flags::ProtocolFlags;
use super::limits::Limits;
use super::machines::Machines;
use super::values::{self, SourceIps};

#[derive(Debug, Default, Clone, Args)]
pub struct Bench {
    /// The target: a scheme such as http://, a host, a port and a path; user:password@ becomes --basic
    #[arg(value_name = "URL", conflicts_with = "plan")]
    pub url: Option<String>,
    /// Accepted only to report it as a mistake.
    #[arg(hide = true, conflicts_with = "plan")]
    pub surplus: Vec<String>,
    /// Arguments of the script's init(args)
    #[arg(last = true, value_name = "ARGS", requires = "script", conflicts_with = "plan")]
    pub script_args: Vec<String>,
    #[command(flatten)]
    pub load: Load,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub trial: Trial,
    #[command(flatten)]
    pub request: Request,
    #[command(flatten)]
    pub confinement: Confinement,
    #[command(flatten)]
    pub connecting: Connecting,
    #[command(flatten)]
    pub tls: Tls,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub saving: Saving,
    #[command(flatten)]
    pub machines: Machines,
    #[command(flatten)]
    pub kept: Kept,
    /// The values of protocols' flags.
    #[arg(skip)]
    pub protocol: ProtocolFlags,
}

/// How much, how long, how fast.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct Load {
    /// Connections kept open [default: 64; with -r, as many as the rate takes]
    #[arg(short, long, alias = "concurrency", value_name = "N", value_parser = values::connections)]
    pub connections: Option<u32>,
    /// Worker threads [default: cores, or for -r one for each 10,000 a second]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<u32>,
    /// Stop after this long [default: 10s, unless -n or a profile with lengths ends the run]
    #[arg(short, long, value_name = "T", value_parser = values::positive_duration)]
    pub duration: Option<u64>,
    /// Stop after this many requests; with -d or a profile, whichever comes first
    #[arg(short = 'n', long, value_name = "N", value_parser = values::requests)]
    pub requests: Option<u64>,
    /// Requests a second, however long answers take (open model): a rate (2000), or ramps and holds
    /// (1000..2000/60s,2000/30s,0..5k/1m)
    #[arg(short, long, value_name = "R")]
    pub rate: Option<Profile>,
    /// The rates of a kept run as brunt ctl or a guard changed them while it went on; RUN as in brunt show
    #[arg(long, value_name = "from-run:RUN", value_parser = values::from_run, conflicts_with = "rate")]
    pub profile: Option<String>,
    /// How the due times of a rate are spread: uniform, poisson (as independent users arrive), or in bursts: bursty:0.5 has gaps by a
    /// gamma distribution of this shape; 1 is poisson, less is burstier [default: uniform]
    #[arg(long, value_name = "HOW", value_parser = values::arrivals)]
    pub arrivals: Option<Spread>,
    /// Warm up for this long before the measured part; the result leaves these calls out [default: 0]
    #[arg(short, long, alias = "warm-up", value_name = "T", value_parser = values::duration)]
    pub warmup: Option<u64>,
    /// Open a new connection for each request
    #[arg(long)]
    pub reconnect: bool,
    /// Requests in flight on one connection [default: 1]
    #[arg(long, value_name = "N", value_parser = values::pipeline)]
    pub pipeline: Option<u32>,
    /// With --http 2 or 3: concurrent streams on a connection, up to the target's limit [default: 1, or 100 with a rate]
    #[arg(long, value_name = "N", value_parser = values::pipeline, conflicts_with = "pipeline")]
    pub streams: Option<u32>,
}

/// A single call, to see its answer.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct Trial {
    /// Make a single call, and print what is sent and received
    #[arg(long)]
    pub once: bool,
    /// With --once: print secrets (authorization, cookies) as they are
    #[arg(long, requires = "once")]
    pub show_secrets: bool,
}

/// The request.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Request")]
pub struct Request {
    /// Make the requests with this wrk script (Lua); arguments after -- go to its init(args). The script runs with all your
    /// rights, even with --dry-run: see --sandbox
    #[arg(short, long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Statuses that count as success: 2xx, 200-399, 200,404 [default: all under 400]
    #[arg(long, value_name = "LIST")]
    pub ok_status: Option<OkStatus>,
    /// A JSON body, with Content-Type and Accept: application/json
    #[arg(long, value_name = "TEXT|@F", value_parser = values::json)]
    pub json: Option<String>,
    /// Cookies, repeatable: name=value
    #[arg(short = 'b', long = "cookie", value_name = "K=V")]
    pub cookies: Vec<String>,
    /// The User-Agent header field of every request
    #[arg(long, value_name = "TEXT")]
    pub user_agent: Option<String>,
    /// Ask for compressed answers (Accept-Encoding); figures count their compressed bytes
    #[arg(long)]
    pub compressed: bool,
    #[command(flatten)]
    pub foreign: Foreign,
}

/// The rights of scripts.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Scripts")]
pub struct Confinement {
    /// Run scripts without io, ffi, debug, programs, the environment and bytecode; they read Lua files and data only from their
    /// own directory [default for scripts in plan files: --plan]
    #[arg(long, conflicts_with = "no_sandbox")]
    pub sandbox: bool,
    /// Give the script in a plan file all your rights [default for scripts that you name]
    #[arg(long)]
    pub no_sandbox: bool,
    /// Let brunt.handle_summary write files below this directory, repeatable
    #[arg(long, value_name = "DIR")]
    pub allow_write: Vec<PathBuf>,
}

impl Confinement {
    /// The rights of a script that the command line names.
    pub fn of_named(&self) -> Sandbox {
        if self.sandbox { Sandbox::Directory } else { Sandbox::Open }
    }

    /// The rights of the script in a plan file.
    pub fn of_plan(&self) -> Sandbox {
        if self.no_sandbox { Sandbox::Open } else { Sandbox::Closed }
    }
}

/// Flags of other tools that brunt refuses, with the reason, rather than as unknown flags.
#[derive(Debug, Default, Clone, Args)]
pub struct Foreign {
    #[arg(short = 'L', long, alias = "location", hide = true)]
    pub follow: bool,
}

/// Where to connect, from where.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connecting {
    /// Connect here instead of to the URL's host and port
    #[arg(long, value_name = "H:P", value_parser = values::host_and_port, conflicts_with = "unix_socket")]
    pub connect_to: Option<(String, u16)>,
    /// Connect through this HTTP proxy (CONNECT), whatever the protocol: http://[USER:PASSWORD@]HOST:PORT; @NAME takes the
    /// password from the environment
    #[arg(short = 'x', long, value_name = "URL", value_parser = values::proxy, conflicts_with = "unix_socket")]
    pub proxy: Option<Proxy>,
    /// Connect to this Unix socket
    #[arg(long, value_name = "F")]
    pub unix_socket: Option<PathBuf>,
    /// Connect from these local addresses in turn: A,B,A-B
    #[arg(long, value_name = "LIST", value_parser = values::source_ips, conflicts_with = "unix_socket")]
    pub source_ip: Vec<SourceIps>,
    /// How often the target's name is looked up again for new connections; 0: only once they are refused [default: 1s]
    #[arg(long, value_name = "T", value_parser = values::duration)]
    pub resolve_every: Option<u64>,
    /// Use only IPv4 addresses of the host
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use only IPv6 addresses of the host
    #[arg(short = '6', long)]
    pub ipv6: bool,
    /// The clock of arrivals: receive timestamps of the kernel, or the time at which brunt has read an answer, which takes less
    /// CPU in a flood and adds brunt's own delays to the times shown [default: kernel]
    #[arg(long, value_name = "WHO")]
    pub arrival_times: Option<ArrivalTimes>,
    /// How workers wait until a call is due: asleep until a timer wakes them a moment before, or awake on a CPU each, so that
    /// none goes late; auto: awake for -r of 1,000/s and more a worker where CPUs are free [default: auto]
    #[arg(long, value_name = "HOW")]
    pub pace: Option<Pace>,
    /// Wait up to this long for the target to answer before the load begins: for a service that is starting
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub wait_for: Option<u64>,
    /// With --http 3: let the connections of each thread share this many UDP sockets [default: a socket for each connection]
    #[arg(long, value_name = "N", value_parser = values::threads)]
    pub udp_sockets: Option<u32>,
}

/// The source of answers' arrival times.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ArrivalTimes {
    /// The kernel, where it keeps receive timestamps (TCP on Linux)
    Kernel,
    /// brunt, when it has read the answer
    Read,
}

/// How workers wait until a call is due.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Pace {
    /// Awake where the rate asks for it and CPUs are free, else asleep
    Auto,
    /// Asleep, until a timer wakes them a moment before
    Timer,
    /// Awake, on a CPU each
    Spin,
}

/// How TLS is done.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "TLS")]
pub struct Tls {
    /// Accept any certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Trust these certificates (PEM) instead of the system's
    #[arg(long, value_name = "F", conflicts_with = "insecure")]
    pub cacert: Option<PathBuf>,
    /// The client's certificate (PEM)
    #[arg(long, value_name = "F")]
    pub cert: Option<PathBuf>,
    /// The private key of the client's certificate: a file (PEM), or @NAME for an environment variable that holds the PEM
    #[arg(long, value_name = "F|@NAME")]
    pub key: Option<String>,
    /// The server name to send and verify instead of the URL's host
    #[arg(long, value_name = "NAME", value_parser = values::host)]
    pub sni: Option<String>,
    /// Resume no TLS session: make a whole handshake for each connection
    #[arg(long)]
    pub no_sessionid: bool,
    /// With --http 3: send GET and HEAD with the first datagrams of connections that resume a session (0-RTT)
    #[arg(long = "tls-earlydata", conflicts_with = "no_sessionid")]
    pub early_data: bool,
}

/// Output and judgement.
#[derive(Debug, Default, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(next_help_heading = "Results")]
pub struct Output {
    /// A condition that must hold at the end, repeatable: 'p99<50ms', 'error_rate<0.1%', 'rate>10k', 'timeout==0', …; exit
    /// status 1 if it does not
    #[arg(long = "threshold", value_name = "[NAME:]FIGURE OP VALUE [abort]")]
    pub thresholds: Vec<Threshold>,
    /// End the run once this holds over its last seconds, repeatable: 'p99>500ms for 10s', 'error_rate>5% for 5s'; then exit
    /// status 1
    #[arg(long = "guard", value_name = "[NAME:]FIGURE OP VALUE for T")]
    pub guards: Vec<Guard>,
    /// The action of a guard: stop ends the run; back-off returns to the last rate that held, and continues from there (with
    /// -r) [default: stop]
    #[arg(long, value_name = "ACTION", value_parser = values::guard_action())]
    pub guard_action: Option<GuardAction>,
    /// Watch the target second by second, repeatable: a process of this machine (pid:1234), a metric in Prometheus' text format
    /// ('cpu=http://HOST:9100/metrics#rate(process_cpu_seconds_total)') or a Prometheus
    /// ('heap=prometheus:http://HOST:9090#QUERY'). Thresholds and guards know it as watch.NAME
    #[arg(long = "watch", value_name = "[NAME=]SOURCE")]
    pub watches: Vec<Watch>,
    /// The largest share of calls, of each check and of iterations that may fail, unless a threshold limits it: 5% or 0.05;
    /// exit status 1 above it [default: 1%, or BRUNT_MAX_ERROR_RATE from the environment]
    #[arg(long, value_name = "SHARE", value_parser = values::ratio)]
    pub max_error_rate: Option<f64>,
    /// The largest share of the load asked for that may be missing (users not admitted, rows used up, lines of a log left out):
    /// 10% or 0.1; exit status 1 above it [default: 1%]
    #[arg(long, value_name = "SHARE", value_parser = values::ratio)]
    pub allow_less: Option<f64>,
    /// The format of the printed result [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = values::format())]
    pub format: Option<Format>,
    #[arg(short, long = "output", value_name = "FILE",
          help = format!("Write the result into this file as well, repeatable: {}", Format::extensions()))]
    pub outputs: Vec<PathBuf>,
    /// Write a row for each call into this file, warm-up included: .csv or .ndjson. Each answer is then timed
    #[arg(long, value_name = "FILE", value_parser = values::rows)]
    pub samples: Option<PathBuf>,
    /// With --samples: the share of calls that have a row: 1% or 0.01 [default: all]
    #[arg(long, value_name = "SHARE", requires = "samples", value_parser = values::share)]
    pub samples_share: Option<f64>,
    /// With --samples: the largest size of the file; calls beyond it have no row, and are counted [default: 1GiB]
    #[arg(long, value_name = "SIZE", requires = "samples", value_parser = values::size)]
    pub samples_limit: Option<u64>,
    /// Write the report page into this file, whatever its name: charts, in one file for a browser
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Serve the report page while the run goes on, and say where; it ends as the finished report. ADDR is ADDRESS:PORT, or
    /// PORT on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true, default_missing_value = "0",
          value_parser = values::listen)]
    pub live: Option<SocketAddr>,
    #[command(flatten)]
    pub live_serving: LiveServing,
    /// Print every figure, where the report else fits 24 lines, and to standard error a line each second: state, rate, latency, failed and waiting calls
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Instead of the live view, print a line to standard error every 5 seconds and at each change of state: for logs
    #[arg(long, conflicts_with = "quiet")]
    pub plain: bool,
    /// Text and live view in ASCII alone (as where LC_ALL, LC_CTYPE or LANG names a locale without UTF-8, on a terminal)
    #[arg(long)]
    pub ascii: bool,
    /// Print nothing but errors and what --format asks for
    #[arg(long)]
    pub quiet: bool,
    /// No colours (the same as NO_COLOR in the environment)
    #[arg(long)]
    pub no_color: bool,
    /// With --format wrk: print the latency distribution, as wrk's --latency does; every other format has it anyway
    #[arg(long)]
    pub latency: bool,
    // Last: the heading of its flags holds for all that follow.
    #[command(flatten)]
    pub metrics: MetricsOut,
}

impl Output {
    /// The share that may fail, 0 to 1: by the flag, or else by the environment; `None` where neither sets it.
    ///
    /// # Errors
    /// When the environment's value is not a share.
    pub fn most_errors(&self) -> Result<Option<f64>> {
        const NAME: &str = "BRUNT_MAX_ERROR_RATE";
        if self.max_error_rate.is_some() {
            return Ok(self.max_error_rate);
        }
        let Some(text) = std::env::var_os(NAME).filter(|text| !text.is_empty()) else { return Ok(None) };
        let text = text.to_string_lossy();
        values::ratio(&text).map(Some).map_err(|error| anyhow!("{NAME}={text}: {error}"))
    }
}

/// How the live page is served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Results")]
pub struct LiveServing {
    /// Serve the live page over TLS, with a certificate made on the spot, whose fingerprint is printed
    #[arg(id = "live_tls", long = "live-tls", requires = "live")]
    pub made: bool,
    /// Serve the live page over TLS with this certificate (PEM)
    #[arg(id = "live_cert", long = "live-cert", value_name = "FILE", requires_all = ["live", "live_key"],
          conflicts_with = "live_tls")]
    pub certificate: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(id = "live_key", long = "live-key", value_name = "FILE", requires_all = ["live", "live_cert"])]
    pub key: Option<PathBuf>,
    /// How long the live page stays after the end, until Ctrl-C [default: 1m on a terminal or while somebody watches, else 0s]
    #[arg(id = "live_linger", long = "live-linger", value_name = "T", requires = "live", value_parser = values::duration)]
    pub linger: Option<u64>,
}

/// Where figures go while the run goes on.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Metrics")]
pub struct MetricsOut {
    /// Send metrics of each second, and events, to this receiver of OTLP/HTTP: http://127.0.0.1:4318, or env for
    /// OTEL_EXPORTER_OTLP_ENDPOINT. OTEL_EXPORTER_OTLP_HEADERS, OTEL_RESOURCE_ATTRIBUTES and others apply
    #[arg(long, value_name = "URL|env")]
    pub otlp: Option<String>,
    /// Serve metrics for Prometheus while the run goes on, at /metrics of ADDRESS:PORT, or of PORT on 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = values::listen)]
    pub prometheus: Option<SocketAddr>,
    /// How long to wait after the end for a last scrape [default: twice the longest time between two, if anybody scraped]
    #[arg(long, value_name = "T", requires = "prometheus", value_parser = values::duration)]
    pub prometheus_linger: Option<u64>,
}

/// How the run is kept.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Kept runs")]
pub struct Saving {
    /// Keep the run in this file [default: brunt/runs.db in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE", conflicts_with = "no_save")]
    pub store: Option<PathBuf>,
    /// Do not keep the run (the same as BRUNT_NO_SAVE=1 in the environment)
    #[arg(long)]
    pub no_save: bool,
    /// Name the run, for brunt show NAME
    #[arg(long, value_name = "NAME", value_parser = values::run_name)]
    pub name: Option<String>,
    /// Tag the run, repeatable: branch=main
    #[arg(id = "tag", long, value_name = "K=V", value_parser = values::tag)]
    pub tags: Vec<(String, String)>,
}

/// Plans that are kept.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Plan")]
pub struct Kept {
    /// Run the plan in this file; --threshold adds to its thresholds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["Load", "Limits", "Request", "Connecting", "Tls"])]
    pub plan: Option<PathBuf>,
    /// Write the plan of this run into a file (without secrets; @NAME references stay)
    #[arg(long, value_name = "FILE")]
    pub write_plan: Option<PathBuf>,
    /// Check everything, write the plan if asked to, and stop before the load
    #[arg(long)]
    pub dry_run: bool,
}
