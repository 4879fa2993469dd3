//! Addresses: found by `wrk.lookup`, tried by `wrk.connect`. Lua holds them as `host port`.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long `wrk.connect` waits for an address that does not answer.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// An address as Lua holds it.
pub(super) fn to_text(address: SocketAddr) -> String {
    format!("{} {}", address.ip(), address.port())
}

/// The address that Lua holds.
pub(super) fn of_text(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(' ')?;
    Some(SocketAddr::new(ip.parse::<IpAddr>().ok()?, port.parse().ok()?))
}

/// The addresses of a host. The service is a port, or the name of one.
///
/// # Errors
/// The name that cannot be resolved, and why.
pub(super) fn lookup(host: &str, service: &str) -> Result<Vec<SocketAddr>, String> {
    let port = port_of(service).ok_or_else(|| format!("'{service}' is neither a port nor a known service"))?;
    let found = (host, port).to_socket_addrs().map_err(|error| format!("'{host}' cannot be resolved: {error}"))?;
    Ok(found.collect())
}

/// The TCP port of a service: a number, one of the names that need no file, or one of /etc/services.
fn port_of(service: &str) -> Option<u16> {
    match service {
        "http" => Some(80),
        "https" => Some(443),
        _ => service.parse().ok().or_else(|| port_in(&std::fs::read_to_string("/etc/services").ok()?, service)),
    }
}

/// The port of a name in text in the format of services(5).
fn port_in(services: &str, wanted: &str) -> Option<u16> {
    services.lines().find_map(|line| {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_ascii_whitespace();
        let (name, port) = (words.next()?, words.next()?.strip_suffix("/tcp")?);
        (name == wanted || words.any(|alias| alias == wanted)).then(|| port.parse().ok())?
    })
}

/// Whether the address accepts a connection.
pub(super) fn connects(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, CONNECT_PATIENCE).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_numbers_or_names() {
        assert_eq!(port_of("8080"), Some(8080));
        assert_eq!(port_of("https"), Some(443));
        let services = "# comment\nimap2 143/tcp imap # mail\nntp 123/udp\n";
        assert_eq!(port_in(services, "imap"), Some(143));
        assert_eq!(port_in(services, "ntp"), None);
    }

    #[test]
    fn addresses_pass_through_lua() {
        for text in ["127.0.0.1:80", "[::1]:8080"] {
            let address = text.parse().unwrap();
            assert_eq!(of_text(&to_text(address)), Some(address));
        }
    }
}
