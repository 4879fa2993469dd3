//! Routes to the target: its addresses, the local addresses to connect from, TLS.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use brunt_plan::plan::{Family, Plan, Proxy};
use brunt_plan::secret::SecretError;
use brunt_plan::target::without_zone;
use brunt_record::outcome::Failure;

use super::tls::{TlsError, TlsRoute};
use super::{Address, Resolve};

/// Which ways lead to the target.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// At least one; connections take them in turn.
    pub(crate) addresses: Vec<Address>,
    /// Local addresses that connections take in turn; if empty, the system chooses.
    pub(crate) sources: Vec<IpAddr>,
    /// The request that asks a proxy for a tunnel to the target; `None` for direct connections.
    pub(crate) tunnel: Option<Arc<[u8]>>,
    /// `None` for plain connections.
    pub(crate) tls: Option<TlsRoute>,
    /// A further lookup of the target's name, if it has one.
    pub(crate) again: Option<Again>,
}

/// Finds the addresses of a target anew. May block.
#[derive(Clone)]
pub(crate) struct Again {
    find: Arc<dyn Fn() -> Result<Vec<Address>, RouteError> + Send + Sync>,
    /// How often, for new connections, in nanoseconds; 0 for only when they are refused.
    pub(crate) every_ns: u64,
}

impl Again {
    /// Lookups by `find`, for new connections every `every_ns`.
    pub(crate) fn new(
        find: impl Fn() -> Result<Vec<Address>, RouteError> + Send + Sync + 'static,
        every_ns: u64,
    ) -> Self {
        Self { find: Arc::new(find), every_ns }
    }

    /// The current addresses of the target's name.
    ///
    /// # Errors
    /// When it has none.
    pub(crate) fn find(&self) -> Result<Vec<Address>, RouteError> {
        (self.find)()
    }
}

impl fmt::Debug for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Again").finish_non_exhaustive()
    }
}

impl Route {
    /// The way to the plan's target.
    pub(crate) fn find(
        plan: &Plan,
        default_port: u16,
        tls: Option<TlsRoute>,
        resolve: &Resolve,
    ) -> Result<Self, RouteError> {
        let is_over_quic = tls.as_ref().is_some_and(|tls| tls.quic.is_some());
        let addresses = over(is_over_quic, addresses(plan, default_port, resolve)?);
        let sources = sources(plan, &addresses)?;
        let transport = &plan.transport;
        if is_over_quic && (transport.proxy.is_some() || transport.unix_socket.is_some()) {
            let problem = "QUIC goes over UDP, and neither through a proxy nor to a Unix socket".to_owned();
            return Err(TlsError::Setup { problem }.into());
        }
        let (host, _) = first_hop(plan, default_port);
        let is_named = transport.unix_socket.is_none() && transport.addresses.is_empty() && !is_address(host);
        let again = is_named.then(|| {
            let (plan, resolve) = (plan.clone(), Arc::clone(resolve));
            let find = move || Ok(over(is_over_quic, self::addresses(&plan, default_port, &resolve)?));
            Again::new(find, transport.resolve_every_ns)
        });
        let tunnel = transport.proxy.as_ref().map(|proxy| connect_request(proxy, plan, default_port)).transpose()?;
        Ok(Self { addresses, sources, tunnel, tls, again })
    }

    /// Makes it lead to this address alone.
    pub(crate) fn lead_to(&mut self, address: SocketAddr) {
        let is_over_quic = self.tls.as_ref().is_some_and(|tls| tls.quic.is_some());
        (self.addresses, self.again) = (over(is_over_quic, vec![Address::Tcp(address)]), None);
    }

    /// All addresses, beginning with the one whose turn it is at connection number `connection`.
    pub(crate) fn in_turn(&self, connection: usize) -> impl Iterator<Item = &Address> {
        let (before, from) = self.addresses.split_at(connection % self.addresses.len().max(1));
        from.iter().chain(before)
    }

    /// The local address for connection number `connection` to `address`, of the same family.
    pub(crate) fn source(&self, connection: usize, address: &Address) -> Option<IpAddr> {
        let address = address.of_network()?;
        let mut fitting = self.sources.iter().filter(|source| source.is_ipv4() == address.is_ipv4());
        let count = fitting.clone().count();
        if count == 0 { None } else { fitting.nth(connection % count).copied() }
    }
}

/// Why no way leads to a target.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// No protocol of the run has the target's scheme.
    #[error("there is no way to '{scheme}://'")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// A rule of the script blocks the host or its addresses.
    #[error("{host} is blocked by '{rule}'")]
    Blocked {
        /// The host asked for.
        host: String,
        /// The rule.
        rule: String,
    },
    /// The name cannot be looked up.
    #[error("'{host}' cannot be resolved: {problem}")]
    Resolve {
        /// The host asked for.
        host: String,
        /// The resolver's words.
        problem: String,
    },
    /// The host has no address of the family that the plan allows.
    #[error("'{host}' cannot be resolved: it has no {}address", family_word(*.family))]
    NoAddress {
        /// The host asked for.
        host: String,
        /// The family that the plan allows.
        family: Family,
    },
    /// The host has addresses, but none in the family of a source address of the plan.
    #[error(
        "'{host}' cannot be resolved: it has only {0}addresses, and none of the source addresses is an {0}one",
        family_word(*.family)
    )]
    NoSource {
        /// The host asked for.
        host: String,
        /// The family of its addresses.
        family: Family,
    },
    /// A source address is not one of this machine's.
    #[error("cannot connect from {address}")]
    Source {
        /// The address.
        address: IpAddr,
        /// The system's words.
        source: io::Error,
    },
    /// The proxy's credentials are a reference to the environment, and cannot be had.
    #[error("the proxy's user and password: {0}")]
    Proxy(SecretError),
    /// TLS as the plan wants it is impossible.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl RouteError {
    /// Whether the target has no address that could be tried. Every other error is a mistake in the plan.
    pub fn is_no_address(&self) -> bool {
        match self {
            Self::Resolve { .. } | Self::NoAddress { .. } | Self::NoSource { .. } => true,
            Self::Scheme { .. } | Self::Blocked { .. } | Self::Source { .. } | Self::Proxy(_) | Self::Tls(_) => false,
        }
    }

    /// The failure of a call to such a target.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Blocked { .. } => Failure::Blocked,
            Self::Scheme { .. } | Self::Resolve { .. } | Self::NoAddress { .. } | Self::NoSource { .. } => {
                Failure::Resolve
            }
            Self::Source { .. } | Self::Proxy(_) => Failure::Connect,
            Self::Tls(_) => Failure::Tls,
        }
    }
}

/// A family's name before a noun, with the space between.
fn family_word(family: Family) -> &'static str {
    match family {
        Family::Any => "",
        Family::V4 => "IPv4 ",
        Family::V6 => "IPv6 ",
    }
}

/// Whether a host is an address and no name.
fn is_address(host: &str) -> bool {
    without_zone(host.trim_matches(['[', ']'])).parse::<IpAddr>().is_ok()
}

/// The host and port that connections are for: the target's, or others in their place.
fn last_hop(plan: &Plan, default_port: u16) -> (&str, u16) {
    match &plan.transport.connect_to {
        Some((host, port)) => (host, *port),
        None => (&plan.target.host, plan.target.port.unwrap_or(default_port)),
    }
}

/// The host and port that sockets are connected to: the proxy's, if there is one.
fn first_hop(plan: &Plan, default_port: u16) -> (&str, u16) {
    match &plan.transport.proxy {
        Some(proxy) => (&proxy.host, proxy.port),
        None => last_hop(plan, default_port),
    }
}

/// The request that asks `proxy` for a tunnel to the plan's target (RFC 9110 §9.3.6). The proxy looks the name up.
fn connect_request(proxy: &Proxy, plan: &Plan, default_port: u16) -> Result<Arc<[u8]>, RouteError> {
    let (host, port) = last_hop(plan, default_port);
    let host = without_zone(host);
    let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if let Some(credentials) = &proxy.credentials {
        let basic = credentials.basic(|name| plan.environment.value(name)).map_err(RouteError::Proxy)?;
        request.extend(["Proxy-Authorization: ", &basic, "\r\n"]);
    }
    request.push_str("\r\n");
    Ok(request.into_bytes().into())
}

/// Turns addresses of TCP into those of UDP, for QUIC.
fn over(is_over_quic: bool, mut addresses: Vec<Address>) -> Vec<Address> {
    for address in &mut addresses {
        if let Address::Tcp(tcp) = address
            && is_over_quic
        {
            *address = Address::Udp(*tcp);
        }
    }
    addresses
}

/// Every address of the plan's target that can be reached as the plan wants it.
fn addresses(plan: &Plan, default_port: u16, resolve: &Resolve) -> Result<Vec<Address>, RouteError> {
    let transport = &plan.transport;
    if let Some(path) = &transport.unix_socket {
        return Ok(vec![Address::Unix(path.clone())]);
    }
    let rules = plan.scenarios.as_ref().map(|scenarios| &scenarios.hosts).filter(|hosts| !hosts.blocked.is_empty());
    let blocked = |rule: &str| RouteError::Blocked { host: plan.target.host.clone(), rule: rule.to_owned() };
    if let Some(rule) = rules.and_then(|hosts| hosts.blocks(&plan.target.host)) {
        return Err(blocked(rule));
    }
    let (host, port) = first_hop(plan, default_port);
    let found: Vec<SocketAddr> = if transport.addresses.is_empty() {
        resolve(host, port).map_err(|e| RouteError::Resolve { host: host.to_owned(), problem: e.to_string() })?
    } else {
        transport.addresses.clone()
    };
    let wanted = |address: &SocketAddr| match transport.family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    // A proxy's own address is nobody's to block.
    let rules = rules.filter(|_| transport.proxy.is_none());
    let rule_for = |address: &SocketAddr| rules.and_then(|hosts| hosts.blocks_address(address.ip()));
    if let Some(rule) = found.iter().map(rule_for).reduce(Option::and).flatten() {
        return Err(blocked(rule));
    }
    let found = found.into_iter().filter(|address| wanted(address) && rule_for(address).is_none());
    // A connection comes from one of the addresses that were asked for, or is not made.
    let sources = &transport.source_ips;
    let reached =
        |address: &SocketAddr| sources.is_empty() || sources.iter().any(|ip| ip.is_ipv4() == address.is_ipv4());
    let mut addresses = Vec::new();
    let mut unreached = None;
    for address in found {
        if !reached(&address) {
            unreached = Some(if address.is_ipv4() { Family::V4 } else { Family::V6 });
            continue;
        }
        let address = Address::Tcp(address);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        let host = host.to_owned();
        return Err(match unreached {
            Some(family) => RouteError::NoSource { host, family },
            None => RouteError::NoAddress { host, family: transport.family },
        });
    }
    Ok(addresses)
}

/// The share of an address' ports that is relied on: others use some, and closed connections hold theirs for a while.
const PORTS_COUNTED_ON: f64 = 0.75;
/// The ports of one address by Linux' default, where the system does not tell.
const USUAL_PORTS: u32 = 28_232;

/// The number of ports that the system gives out to one address (ip(7), `ip_local_port_range`).
pub(crate) fn ports_of_an_address() -> u32 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    ports_in(&range).unwrap_or(USUAL_PORTS)
}

/// The number of ports in a range as the system writes it (`32768 60999`); `None` if it is not a range.
pub fn ports_in(range: &str) -> Option<u32> {
    let mut ends = range.split_whitespace().map(str::parse::<u32>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    last.checked_sub(first).filter(|between| *between > 0).map(|between| between + 1)
}

/// Addresses of 127.0.0.0/8 to connect from: enough for this many connections with this many ports each. Empty where
/// one address suffices, or the target is elsewhere.
fn spread(connections: u32, ports: u32, addresses: &[Address]) -> Vec<IpAddr> {
    let local = |address: &Address| matches!(address.of_network(), Some(SocketAddr::V4(to)) if to.ip().is_loopback());
    let each = (f64::from(ports) * PORTS_COUNTED_ON).max(1.0);
    let needed = (f64::from(connections) / each).ceil() as u32;
    if connections <= ports || !addresses.iter().all(local) {
        return Vec::new();
    }
    (0..needed).map(|n| IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + n))).collect()
}

/// The local addresses to connect from: the plan's, each of which must belong to this machine; or several of
/// 127.0.0.0/8, where the target is there and the ports of one address are too few.
fn sources(plan: &Plan, addresses: &[Address]) -> Result<Vec<IpAddr>, RouteError> {
    if plan.transport.source_ips.is_empty() {
        return Ok(spread(plan.connections.most(), ports_of_an_address(), addresses));
    }
    for &address in &plan.transport.source_ips {
        // Binds a socket that sends nothing, to see whether the address is available.
        UdpSocket::bind((address, 0)).map_err(|source| RouteError::Source { address, source })?;
    }
    Ok(plan.transport.source_ips.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_several_addresses_are_used_where_one_has_too_few() {
        let to = |address: &str| vec![Address::Tcp(address.parse().unwrap())];
        let count = |connections, address| spread(connections, 28_232, &to(address)).len();
        assert_eq!(count(28_232, "127.0.0.1:80"), 0);
        assert_eq!(count(28_233, "127.0.0.1:80"), 2);
        assert_eq!(count(1_000_000, "127.5.0.1:80"), 48);
        assert_eq!(count(1_000_000, "10.0.0.1:80"), 0, "not ours to choose");
        assert_eq!(count(1_000_000, "[::1]:80"), 0);
        assert_eq!(spread(50_000, 28_232, &to("127.0.0.1:80"))[1], "127.0.0.2".parse::<IpAddr>().unwrap());
        assert!(spread(50_000, 28_232, &[Address::Unix("socket".into())]).is_empty());
    }
}
