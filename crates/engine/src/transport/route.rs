//! Which ways lead to the target: its addresses, the local ones to connect from, TLS.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use brunt_model::plan::{Family, Plan};

use super::Address;
use super::tls::TlsRoute;
use crate::EngineError;

/// Which ways lead to the target.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// At least one; connections take them in turn.
    pub(crate) addresses: Vec<Address>,
    /// Local addresses that connections take in turn; empty leaves it to the system.
    pub(crate) sources: Vec<IpAddr>,
    /// None for plain connections.
    pub(crate) tls: Option<TlsRoute>,
}

impl Route {
    /// The address that connection number `connection` begins with, tried for the `attempt`-th time in a row.
    pub(crate) fn address(&self, connection: usize, attempt: usize) -> Option<&Address> {
        self.addresses.get((connection + attempt) % self.addresses.len().max(1))
    }

    /// The local address for connection number `connection` to `address`: of the same family.
    pub(crate) fn source(&self, connection: usize, address: &Address) -> Option<IpAddr> {
        let Address::Tcp(address) = address else { return None };
        let mut fitting = self.sources.iter().filter(|source| source.is_ipv4() == address.is_ipv4());
        let count = fitting.clone().count();
        if count == 0 { None } else { fitting.nth(connection % count).copied() }
    }
}

const UNREACHED_V4: &str = "it has only IPv4 addresses, and --source-ip none to reach them from";
const UNREACHED_V6: &str = "it has only IPv6 addresses, and --source-ip none to reach them from";

/// Finds every address of the plan's target that can be reached as the plan wants it.
pub(crate) fn addresses(plan: &Plan, default_port: u16) -> Result<Vec<Address>, EngineError> {
    let transport = &plan.transport;
    if let Some(path) = &transport.unix_socket {
        return Ok(vec![Address::Unix(path.clone())]);
    }
    let (host, port) = match &transport.connect_to {
        Some((host, port)) => (host.as_str(), *port),
        None => (plan.target.host.as_str(), plan.target.port.unwrap_or(default_port)),
    };
    let found: Vec<SocketAddr> = if transport.addresses.is_empty() {
        (host, port)
            .to_socket_addrs()
            .map_err(|e| EngineError::Resolve { host: host.to_owned(), problem: e.to_string() })?
            .collect()
    } else {
        transport.addresses.clone()
    };
    let wanted = |address: &SocketAddr| match transport.family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let found = found.into_iter().filter(wanted);
    // A connection comes from the addresses that were asked for, or not at all.
    let sources = &transport.source_ips;
    let reached =
        |address: &SocketAddr| sources.is_empty() || sources.iter().any(|ip| ip.is_ipv4() == address.is_ipv4());
    let mut addresses = Vec::new();
    let mut unreached = None;
    for address in found {
        if !reached(&address) {
            unreached = Some(if address.is_ipv4() { UNREACHED_V4 } else { UNREACHED_V6 });
            continue;
        }
        let address = Address::Tcp(address);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        let problem = unreached.unwrap_or(match transport.family {
            Family::Any => "it has no address",
            Family::V4 => "it has no IPv4 address (-4)",
            Family::V6 => "it has no IPv6 address (-6)",
        });
        return Err(EngineError::Resolve { host: host.to_owned(), problem: problem.to_owned() });
    }
    Ok(addresses)
}

/// The local addresses of the plan, each of which must be one of this machine's.
pub(crate) fn sources(plan: &Plan) -> Result<Vec<IpAddr>, EngineError> {
    for &address in &plan.transport.source_ips {
        // A socket that is bound and sends nothing: whether the address can be had at all.
        UdpSocket::bind((address, 0)).map_err(|source| EngineError::Source { address, source })?;
    }
    Ok(plan.transport.source_ips.clone())
}
