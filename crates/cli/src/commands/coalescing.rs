//! Coalescing, a guest: `brunt proxy`, `brunt coalesce-check`, and the proxy before the built-in target.
//!
//! The crates in `coalescing/` know nothing of brunt. This file mounts them: their flags, in the values and words of brunt's
//! own, and what brunt prints of them.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_coalesce_check::{Check, CheckError, CheckOptions, OriginHits};
use brunt_plan::secret::shown_url;
use brunt_proxy::{AccessLog, Coalescing, Config, Identity, LogOutput, Notice, Trust};
use brunt_proxy::{TrustedProxy, UpgradeProtocol, Upstream, UpstreamError};
use brunt_testbed::server::{Listen, StartError, listen_on_unix};
use clap::{Args, Subcommand};
use http::{HeaderName, HeaderValue, Uri};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use crate::args::values;
use crate::console;
use crate::exit::Exit;
use crate::signals::Waiter;
use crate::wording::Settings;

/// The guest's subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a reverse proxy that can serve identical requests in flight once
    Proxy(Box<Proxy>),
    /// Say whether a server or proxy coalesces identical requests, and whether that is safe
    CoalesceCheck(Box<CoalesceCheck>),
}

pub fn run(command: Command) -> Result<Exit> {
    match command {
        Command::Proxy(args) => proxy(*args),
        Command::CoalesceCheck(args) => check(*args),
    }
}

const EXAMPLES: &str = "\
Examples:
  brunt proxy --coalesce http://127.0.0.1:3000 --listen 127.0.0.1:8080
  brunt proxy --coalesce https://app.internal --listen 0.0.0.0:443 \\
    --tls-cert cert.pem --tls-key key.pem --metrics 127.0.0.1:9100 --access-log access.json
  brunt coalesce-check http://127.0.0.1:8080/report    is it safe, and does it help?";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Proxy {
    /// The server behind the proxy: http://HOST:PORT, https://HOST:PORT or unix:PATH
    #[arg(value_name = "UPSTREAM", value_parser = upstream)]
    upstream: Upstream,
    /// Where to listen: ADDRESS:PORT, :PORT or PORT on 127.0.0.1 (0 takes a free one), or unix:PATH
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: Listen,
    /// Serve identical requests in flight once
    #[arg(long)]
    coalesce: bool,
    /// Threads [default: as many as there are cores]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    workers: Option<u32>,
    /// Where Prometheus finds metrics: http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Write a line of JSON for each request into this file (- for standard output)
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Stop by itself after this long
    #[arg(long, value_name = "T", value_parser = positive_duration)]
    duration: Option<Duration>,
    /// Pass on Forwarded and X-Forwarded-... of proxies at this address or network (or unix); anybody else's are dropped
    #[arg(long = "trust-proxy", value_name = "ADDRESS")]
    trusted: Vec<TrustedProxy>,
    /// Send this Host to the upstream, instead of the client's (which X-Forwarded-Host has)
    #[arg(long, value_name = "HOST", value_parser = host)]
    upstream_host: Option<HeaderValue>,
    /// Pass on upgrades to this protocol, too, beside websocket; any other upgrade is ignored
    #[arg(long, value_name = "PROTOCOL")]
    upgrade: Vec<UpgradeProtocol>,
    #[command(flatten, next_help_heading = "Coalescing")]
    coalescing: CoalescingFlags,
    #[command(flatten, next_help_heading = "Limits")]
    limits: Limits,
    #[command(flatten, next_help_heading = "TLS")]
    tls: Tls,
}

#[derive(Debug, Args)]
struct CoalescingFlags {
    /// Tell requests apart by this header: by a harmless one, too (User-Agent), and by one that would keep its requests from being
    /// coalesced (Authorization, Cookie, Range), so that those with the same value are
    #[arg(long, value_name = "NAME", requires = "coalesce")]
    key_header: Vec<HeaderName>,
    /// Take this header for harmless: coalesce requests with different values of it
    #[arg(long, value_name = "NAME", requires = "coalesce")]
    ignore_header: Vec<HeaderName>,
    /// Take cookies of this name for harmless (_ga_* for all that begin so); any other cookie keeps its request from being
    /// coalesced
    #[arg(long, value_name = "NAME", requires = "coalesce")]
    ignore_cookie: Vec<String>,
    /// Requests that one call of the upstream answers at most [default: 16384]
    #[arg(long, value_name = "N", value_parser = values::connections, requires = "coalesce")]
    max_members: Option<u32>,
    /// How long after its head an answer may be joined, if its body so far is short [default: 1s]
    #[arg(long, value_name = "T", value_parser = duration, requires = "coalesce")]
    join_late: Option<Duration>,
    /// The longest that an answer's body may be when it is joined after its head [default: 256KiB]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "coalesce")]
    join_late_bytes: Option<usize>,
    /// How often the next request leads when the answer before it was a 3xx or 4xx for its client alone [default: 2]
    #[arg(long, value_name = "N", requires = "coalesce")]
    max_promotions: Option<u32>,
    /// Coalesce OPTIONS and TRACE, too
    #[arg(long, requires = "coalesce")]
    all_safe_methods: bool,
    /// Share answers with Cache-Control: no-cache among those who wait for them, too
    #[arg(long, requires = "coalesce")]
    share_no_cache: bool,
    /// Give a whole answer to requests that come up to this long after its end, too (a cache of milliseconds)
    #[arg(long, value_name = "T", value_parser = duration, requires = "coalesce", default_value = "0")]
    hold: Duration,
    /// How long a request waits for another's headers before it goes to the upstream itself [default: as long as these may
    /// take]
    #[arg(long, value_name = "T", value_parser = positive_duration, requires = "coalesce")]
    max_wait: Option<Duration>,
    /// Bytes that a call's answer holds for slow readers before the fast ones wait for them [default: 8MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "coalesce")]
    flight_bytes: Option<usize>,
    /// What all answers may hold together, keys and heads included; at half of it, nothing more is coalesced [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "coalesce")]
    total_bytes: Option<usize>,
}

#[derive(Debug, Args)]
struct Limits {
    /// How long the upstream may take to its headers (a client's upload aside), and between pieces of its body
    #[arg(long, value_name = "T", value_parser = positive_duration, default_value = "60s")]
    timeout: Duration,
    /// How long connecting to the upstream may take
    #[arg(long, value_name = "T", value_parser = positive_duration, default_value = "5s")]
    connect_timeout: Duration,
    /// How long a client may take for its TLS handshake, and for the head of a request from its first byte
    #[arg(long, value_name = "T", value_parser = positive_duration, default_value = "10s")]
    header_timeout: Duration,
    /// How long a client may go without sending more of a body, or taking more of an answer
    #[arg(long, value_name = "T", value_parser = positive_duration, default_value = "60s")]
    client_timeout: Duration,
    /// How long a client's connection may be without a request
    #[arg(long, value_name = "T", value_parser = positive_duration, default_value = "75s")]
    keep_alive_timeout: Duration,
    /// How long an upgraded connection may be silent both ways
    #[arg(long, value_name = "T", value_parser = positive_duration, default_value = "10m")]
    tunnel_timeout: Duration,
    /// How long idle connections to the upstream are kept
    #[arg(long, value_name = "T", value_parser = positive_duration, default_value = "30s")]
    idle_timeout: Duration,
    /// Idle connections to the upstream at a time
    #[arg(long, value_name = "N", value_parser = values::connections, default_value = "1024")]
    max_idle: u32,
    /// How long requests in flight may take once it is told to stop
    #[arg(long, value_name = "T", value_parser = duration, default_value = "10s")]
    grace: Duration,
    /// Connections of clients at a time, upgraded ones among them; a further one takes the place of an idle one, or waits
    #[arg(long, value_name = "N", value_parser = values::connections, default_value = "10000")]
    max_connections: u32,
    /// The longest head of a request (8KB at least)
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "32KB")]
    max_head: usize,
    /// The longest body of a request
    #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "100MB")]
    max_body: u64,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_field_names, reason = "the flags are called so")]
struct Tls {
    /// Speak TLS (HTTP/2 and HTTP/1.1) with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Trust an upstream that these authorities (PEM) vouch for, instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Trust any upstream
    #[arg(short = 'k', long)]
    insecure: bool,
}

const ABOUT_COUNTS: &str = "\
What counts origin hits, one of:
  --origin-count URL     a page with a number: one more for each hit
  --origin-header NAME   a header of answers: another for each hit
Without, the check cannot tell whether answers are shared, and says so; it still
finds an answer that repeats what only another request said.

Exit status:
  0  nobody was given another's answer, as far as the check can tell
  1  somebody was: the pair is printed
  2  the command line was wrong
  3  the target never answered";

#[derive(Debug, Args)]
#[command(after_help = ABOUT_COUNTS)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct CoalesceCheck {
    /// What to ask for: something that takes a while and may be asked for often (GET, HEAD, OPTIONS)
    #[arg(value_name = "URL", value_parser = url)]
    url: Uri,
    /// A page that says how many requests have reached the origin
    #[arg(long, value_name = "URL", value_parser = url, conflicts_with = "origin_header")]
    origin_count: Option<Uri>,
    /// A header by which the origin makes each of its answers another
    #[arg(long, value_name = "NAME")]
    origin_header: Option<HeaderName>,
    /// Identical requests at once
    #[arg(short = 'c', long, value_name = "N", value_parser = values::connections, default_value = "50")]
    connections: u32,
    /// How often each probe is made
    #[arg(long, value_name = "N", value_parser = values::repeats, default_value = "5")]
    rounds: u32,
    /// Ask with POST, too: two of the same must both reach the origin
    #[arg(long)]
    with_post: bool,
    /// The origin goes by the client's address: fail if clients at two addresses share an answer
    #[arg(long)]
    by_address: bool,
    /// The origin goes by Forwarded or X-Forwarded-…: fail if one hit served two values of them
    #[arg(long)]
    by_forwarded: bool,
    /// A header of every request
    #[arg(short = 'H', long = "header", value_name = "K: V", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// How long an answer may take
    #[arg(long, value_name = "T", value_parser = positive_duration, default_value = "30s")]
    timeout: Duration,
    /// Trust these authorities (PEM) instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Trust any server
    #[arg(short = 'k', long)]
    insecure: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    values::duration(text).map(Duration::from_nanos)
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    values::positive_duration(text).map(Duration::from_nanos)
}

fn size(text: &str) -> Result<usize, String> {
    values::size(text).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// An upstream. Errors do not include its password.
fn upstream(text: &str) -> Result<Upstream, UpstreamError> {
    text.parse().map_err(|error: UpstreamError| UpstreamError { got: shown_url(&error.got).into_owned() })
}

/// A host with or without a port.
fn host(text: &str) -> Result<HeaderValue, String> {
    let wrong = || format!("expected a host such as app.internal or app.internal:8080, got '{text}'");
    let authority: http::uri::Authority = text.parse().map_err(|_| wrong())?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return Err(wrong());
    }
    HeaderValue::from_str(text).map_err(|_| wrong())
}

fn url(text: &str) -> Result<Uri, String> {
    let wrong = || format!("expected a URL such as http://127.0.0.1:8080/report, got '{text}'");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(uri),
        _ => Err(wrong()),
    }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || format!("expected a header such as 'Accept: text/html', got '{text}'");
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    Ok((name.trim().parse().map_err(|_| wrong())?, value.trim().parse().map_err(|_| wrong())?))
}

fn trust(cacert: Option<PathBuf>, insecure: bool) -> Trust {
    match cacert {
        _ if insecure => Trust::Anyone,
        Some(path) => Trust::Authorities(path),
        None => Trust::System,
    }
}

/// `brunt proxy`.
fn proxy(args: Proxy) -> Result<Exit> {
    let waiter = Waiter::without_hangup()?;
    let (duration, upstream) = (args.duration, args.upstream.clone());
    let (listen, place) = Place::bind(&args.listen, args.tls.tls_cert.is_some()).context("cannot start the proxy")?;
    let proxy = brunt_proxy::Proxy::start(config(args, listen)).context("cannot start the proxy")?;
    reload_at_sighup(proxy.reloader())?;
    let mut started = format!("listening on {}\n", place.url(proxy.address()));
    // Writing to a String cannot fail.
    let _ = writeln!(started, "passing on to {upstream}");
    if let Some(metrics) = proxy.metrics_address() {
        let _ = writeln!(started, "metrics on http://{metrics}/metrics");
    }
    console::print(started.as_bytes())?;
    waiter.wait(duration);
    let done = proxy.stop();
    let mut ended = format!("answered {} requests\n", done.requests);
    if let Some(counters) = done.coalesced {
        let of_flights = format!("{} followed {} that led", counters.followers, counters.flights);
        let _ = writeln!(ended, "coalesced: {of_flights}, {} bytes saved", counters.bytes_saved);
    }
    console::print(ended.as_bytes())?;
    Ok(Exit::Done)
}

/// Reads the files of a proxy again at each SIGHUP.
fn reload_at_sighup(reload: brunt_proxy::Reload) -> Result<()> {
    let mut signals = Signals::new([SIGHUP]).context("cannot watch for SIGHUP")?;
    thread::spawn(move || {
        for _ in signals.forever() {
            if let Err(error) = reload.reload() {
                console::note(&format!("brunt proxy: {error}; going on with the certificate that was read before"));
            }
        }
    });
    Ok(())
}

/// Tells a proxy's operator something on standard error.
fn notify(notice: &Notice) {
    console::note(&format!("brunt proxy: {notice}"));
}

fn config(args: Proxy, listen: brunt_proxy::Listen) -> Config {
    let (limits, coalescing) = (args.limits, args.coalescing);
    let identity = args.tls.tls_cert.zip(args.tls.tls_key);
    let output = |path: PathBuf| if path == Path::new("-") { LogOutput::Stdout } else { LogOutput::File(path) };
    Config {
        threads: args.workers.map(|workers| workers as usize),
        upstream_host: args.upstream_host,
        max_idle: limits.max_idle as usize,
        notify,
        identity: identity.map(|(certificate, key)| Identity::Files { certificate, key }),
        trust: trust(args.tls.cacert, args.tls.insecure),
        coalesce: args.coalesce.then_some(Coalescing {
            key_headers: coalescing.key_header,
            ignored_headers: coalescing.ignore_header,
            ignored_cookies: coalescing.ignore_cookie,
            max_members: coalescing.max_members.map(|members| members as usize),
            join_late: coalescing.join_late,
            join_late_bytes: coalescing.join_late_bytes,
            max_promotions: coalescing.max_promotions,
            all_safe_methods: coalescing.all_safe_methods,
            share_no_cache: coalescing.share_no_cache,
            hold: coalescing.hold,
            max_wait: coalescing.max_wait,
            flight_bytes: coalescing.flight_bytes,
            total_bytes: coalescing.total_bytes,
        }),
        connect_timeout: limits.connect_timeout,
        response_timeout: limits.timeout,
        header_timeout: limits.header_timeout,
        keep_alive_timeout: limits.keep_alive_timeout,
        client_timeout: limits.client_timeout,
        tunnel_timeout: limits.tunnel_timeout,
        idle_timeout: limits.idle_timeout,
        grace: limits.grace,
        max_connections: limits.max_connections as usize,
        max_head: limits.max_head,
        max_body: limits.max_body,
        trusted_proxies: args.trusted,
        upgrades: args.upgrade,
        metrics: args.metrics,
        access_log: args.access_log.map(|path| AccessLog { output: output(path), shown: shown_url }),
        ..Config::new(args.upstream, listen)
    }
}

/// `brunt coalesce-check`.
fn check(args: CoalesceCheck) -> Result<Exit> {
    let shown = shown_url(&args.url.to_string()).into_owned();
    let asked = CheckOptions {
        url: args.url,
        origin_hits: match (args.origin_count, args.origin_header) {
            (Some(page), _) => OriginHits::Page(page),
            (None, Some(name)) => OriginHits::Header(name),
            (None, None) => OriginHits::Unknown,
        },
        connections: args.connections,
        rounds: args.rounds,
        with_post: args.with_post,
        by_address: args.by_address,
        by_forwarded: args.by_forwarded,
        headers: args.headers,
        timeout: args.timeout,
        trust: trust(args.cacert, args.insecure),
        shown: shown_url,
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let check = match runtime.block_on(Check::begin(asked)) {
        Err(error @ CheckError::NoAnswer(_)) => {
            console::complain(&error.into(), Settings::Flags);
            return Ok(Exit::NoAnswer);
        }
        begun => begun?,
    };
    console::print(format!("brunt coalesce-check {shown}\n\n").as_bytes())?;
    let findings = runtime.block_on(check.run())?;
    console::print(findings.to_string().as_bytes())?;
    Ok(if findings.is_unsafe() { Exit::ThresholdFailed } else { Exit::Done })
}

/// The address of a proxy. The file of a Unix socket is removed with it.
struct Place {
    address: Listen,
    tls: bool,
}

impl Place {
    /// The proxy's listening address, and the place.
    fn bind(address: &Listen, tls: bool) -> Result<(brunt_proxy::Listen, Self), StartError> {
        let listen = match address {
            Listen::Tcp(address) => (*address).into(),
            Listen::Unix(path) => brunt_proxy::Listen::Unix(listen_on_unix(path)?),
        };
        Ok((listen, Self { address: address.clone(), tls }))
    }

    /// The URL for clients, given the bound address.
    fn url(&self, bound: Option<SocketAddr>) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        bound.map_or_else(|| self.address.to_string(), |address| format!("{scheme}://{address}/"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Listen::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Longer than any delay of the built-in target.
const LONGEST_ANSWER: Duration = Duration::from_secs(2 * 3600);

/// A coalescing proxy before the built-in target, in this process.
pub struct Before {
    proxy: brunt_proxy::Proxy,
    place: Place,
}

impl Before {
    /// Starts it on `address`, with this many threads, before the target at `url`.
    pub fn start(url: &str, address: &Listen, threads: usize, tls: Option<Arc<rustls::ServerConfig>>) -> Result<Self> {
        let upstream = url.parse().context("cannot pass on to the target")?;
        let (listen, place) = Place::bind(address, tls.is_some())?;
        let config = Config {
            threads: Some(threads),
            identity: tls.map(Identity::Made),
            coalesce: Some(Coalescing::default()),
            // The target decides how slow answers are, and how many requests are under way.
            response_timeout: LONGEST_ANSWER,
            max_connections: usize::MAX,
            // A load opens connections long before it uses them, and may read slowly on purpose.
            header_timeout: LONGEST_ANSWER,
            keep_alive_timeout: LONGEST_ANSWER,
            client_timeout: LONGEST_ANSWER,
            ..Config::new(upstream, listen)
        };
        Ok(Self { proxy: brunt_proxy::Proxy::start(config)?, place })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        self.place.url(self.proxy.address())
    }

    /// Ends it. Returns the number of requests that it answered.
    pub fn stop(self) -> u64 {
        self.proxy.stop().requests
    }
}
