//! The way to a target: the look-up of its name, and connections to it.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use brunt_plan::plan::Plan;

/// Connections that are timed.
const ATTEMPTS: usize = 5;

/// How a target was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// The target: a host and a port, or a socket's path.
    pub target: String,
    /// Whether it is on this machine.
    pub is_here: bool,
    /// Whether a run connects to it from several addresses of loopback where one has too few ports: over IPv4 alone.
    pub is_spread: bool,
    /// How long its name took, in nanoseconds, or why it has no address; none where it is an address itself.
    pub lookup: Option<Result<u64, String>>,
    /// The time of the middle one of some connections, in nanoseconds, or what went wrong. None was tried where its name has no address.
    pub connect: Result<u64, String>,
}

impl Reached {
    /// Tries it. At most [`ATTEMPTS`] connections are made, and closed without a word.
    pub fn try_target(plan: &Plan, default_port: u16) -> Self {
        let timeout = Duration::from_nanos(plan.connect_timeout_ns);
        if let Some(path) = &plan.transport.unix_socket {
            let connect = middle(|| UnixStream::connect(path).map(drop));
            return Self { target: path.display().to_string(), is_here: true, is_spread: false, lookup: None, connect };
        }
        let proxy = plan.transport.proxy.as_ref().map(|proxy| (proxy.host.clone(), proxy.port));
        let named = proxy.or_else(|| plan.transport.connect_to.clone());
        let (host, port) =
            named.unwrap_or_else(|| (plan.target.host.clone(), plan.target.port.unwrap_or(default_port)));
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let begin = Instant::now();
        let addresses: Vec<SocketAddr> = match (host.as_str(), port).to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => {
                let why = error.to_string();
                return Self {
                    target,
                    is_here: false,
                    is_spread: false,
                    lookup: Some(Err(why.clone())),
                    connect: Err(why),
                };
            }
        };
        let is_name = host.parse::<std::net::IpAddr>().is_err();
        let lookup = is_name.then(|| Ok(elapsed_ns(begin)));
        let is_here = !addresses.is_empty() && addresses.iter().all(|address| address.ip().is_loopback());
        let is_spread = is_here && addresses.iter().all(SocketAddr::is_ipv4);
        let connect = middle(|| {
            let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
            for address in &addresses {
                match TcpStream::connect_timeout(address, timeout) {
                    Ok(_) => return Ok(()),
                    Err(error) => last = error,
                }
            }
            Err(last)
        });
        Self { target, is_here, is_spread, lookup, connect }
    }
}

/// The median of several durations.
fn middle(mut attempt: impl FnMut() -> io::Result<()>) -> Result<u64, String> {
    let mut times = Vec::with_capacity(ATTEMPTS);
    for _ in 0..ATTEMPTS {
        let begin = Instant::now();
        attempt().map_err(|error| error.to_string())?;
        times.push(elapsed_ns(begin));
    }
    times.sort_unstable();
    Ok(times.get(ATTEMPTS / 2).copied().unwrap_or(0))
}

fn elapsed_ns(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
