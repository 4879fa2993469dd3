//! `brunt proxy`: a reverse proxy around the coalescing layer.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_proxy::{AccessLog, Coalescing, Config, Identity, Proxy, Trust};
use brunt_testbed::server::{Listen, StartError, listen_on_unix};

use super::Exit;
use crate::args::proxy::{self as flags, Proxy as Args};
use crate::console;
use crate::signals::Waiter;

pub fn run(args: Args) -> Result<Exit> {
    let waiter = Waiter::new()?;
    let duration = args.duration.map(Duration::from_nanos);
    let (tls, upstream) = (args.tls.tls_cert.is_some(), args.upstream.clone());
    let (listen, place) = Place::bind(&args.listen).context("cannot start the proxy")?;
    let proxy = Proxy::start(config(args, listen)).context("cannot start the proxy")?;
    let mut started = format!("listening on {}\n", place.url(tls, proxy.address()));
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

/// Where a proxy listens. The file of a Unix socket goes with it.
pub(super) struct Place(Listen);

impl Place {
    /// What a proxy that is to listen there is told, and the place.
    pub(super) fn bind(address: &Listen) -> Result<(brunt_proxy::Listen, Self), StartError> {
        let listen = match address {
            Listen::Tcp(address) => (*address).into(),
            Listen::Unix(path) => brunt_proxy::Listen::Unix(listen_on_unix(path)?),
        };
        Ok((listen, Self(address.clone())))
    }

    /// How clients find it, given the address that it became.
    pub(super) fn url(&self, tls: bool, bound: Option<SocketAddr>) -> String {
        let scheme = if tls { "https" } else { "http" };
        bound.map_or_else(|| self.0.to_string(), |address| format!("{scheme}://{address}/"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Listen::Unix(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn config(args: Args, listen: brunt_proxy::Listen) -> Config {
    let limits = args.limits;
    let mut config = Config::new(args.upstream, listen);
    config.threads = args.workers.map(|workers| workers as usize);
    config.identity = match (args.tls.tls_cert, args.tls.tls_key) {
        (Some(certificate), Some(key)) => Some(Identity::Files { certificate, key }),
        _ => None,
    };
    config.trust = match args.tls.cacert {
        _ if args.tls.insecure => Trust::Anyone,
        Some(path) => Trust::Authorities(path),
        None => Trust::System,
    };
    config.coalesce = args.coalesce.then(|| coalescing(args.coalescing));
    config.connect_timeout = Duration::from_nanos(limits.connect_timeout);
    config.response_timeout = Duration::from_nanos(limits.timeout);
    config.header_timeout = Duration::from_nanos(limits.header_timeout);
    config.keep_alive_timeout = Duration::from_nanos(limits.keep_alive_timeout);
    config.client_timeout = Duration::from_nanos(limits.client_timeout);
    config.tunnel_timeout = Duration::from_nanos(limits.tunnel_timeout);
    config.idle_timeout = Duration::from_nanos(limits.idle_timeout);
    config.grace = Duration::from_nanos(limits.grace);
    config.max_connections = limits.max_connections as usize;
    config.max_head = usize::try_from(limits.max_head).unwrap_or(usize::MAX);
    config.max_body = limits.max_body;
    config.trusted_proxies = args.trusted;
    config.upgrades = args.upgrade;
    config.metrics = args.metrics;
    config.access_log =
        args.access_log.map(|path| if path == Path::new("-") { AccessLog::Stdout } else { AccessLog::File(path) });
    config
}

fn coalescing(args: flags::Coalescing) -> Coalescing {
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    Coalescing {
        key_headers: args.key_header,
        hold: Duration::from_nanos(args.hold),
        max_wait: args.max_wait.map(Duration::from_nanos),
        flight_bytes: bytes(args.flight_bytes),
        total_bytes: bytes(args.total_bytes),
    }
}
