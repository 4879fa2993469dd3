//! Hosts that others stand for, and hosts that nobody may call.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// A script's rules for the hosts that its users call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Where calls go instead, by host: `address`, `address:port`, `name` or `name:port`. A host is a name, a name with a
    /// port, or all names below one, as `*.example`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mapped: BTreeMap<String, String>,
    /// Hosts that no connection is made to: names, all names below one, as `*.example`, addresses, and networks, as
    /// `10.0.0.0/8`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
}

/// Whether a pattern is this host, or `*.` and a name that it is below.
fn is_of(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => {
            let start = host.len().checked_sub(end.len()).filter(|start| *start > 0);
            start.and_then(|start| host.get(start..)).is_some_and(|below| below.eq_ignore_ascii_case(end))
        }
        None => pattern.eq_ignore_ascii_case(host),
    }
}

/// A network: its first address, and how many bits of an address are its own.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address.parse().ok()?, Some(bits.parse().ok()?)),
        None => (text.trim_matches(['[', ']']).parse().ok()?, None),
    };
    let most = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
    let bits = bits.unwrap_or(most);
    (bits <= most).then_some((address, bits))
}

fn is_in((network, bits): (IpAddr, u32), address: IpAddr) -> bool {
    match (network, address.to_canonical()) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (network.to_bits() ^ address.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            (network.to_bits() ^ address.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// A host and perhaps a port.
fn place(text: &str) -> Option<(String, Option<u16>)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return (address.port() > 0).then(|| (address.ip().to_string(), Some(address.port())));
    }
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some((address.to_string(), None));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok().filter(|port| *port > 0)?)),
        None => (text, None),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (!host.is_empty() && host.bytes().all(is_name)).then(|| (host.to_owned(), port))
}

/// Whether this is the text of a host, or of all names below one.
fn is_pattern(text: &str) -> bool {
    text == "*" || place(text.strip_prefix("*.").unwrap_or(text)).is_some()
}

impl Hosts {
    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.mapped.is_empty() && self.blocked.is_empty()
    }

    /// Checks the texts.
    ///
    /// # Errors
    /// Says which is wrong, and what it may be.
    pub fn validate(&self) -> Result<(), String> {
        for (host, to) in &self.mapped {
            if !is_pattern(host) {
                return Err(format!(
                    "'{host}' is no host: expected one such as api.example, api.example:8080 or *.example"
                ));
            }
            if place(to).is_none() {
                return Err(format!("{host}: '{to}' is no place: expected one such as 127.0.0.1 or 127.0.0.1:8080"));
            }
        }
        let wrong = self.blocked.iter().find(|rule| network(rule).is_none() && !is_pattern(rule));
        wrong.map_or(Ok(()), |rule| {
            Err(format!("'{rule}' is no host: expected one such as ads.example, *.example, 10.0.0.1 or 10.0.0.0/8"))
        })
    }

    /// The host and the port to connect to instead of these. A host with its port goes before one without, and that
    /// before the longest `*.name`.
    pub fn instead_of(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let named = |wanted: &str| self.mapped.iter().find(|(known, _)| known.eq_ignore_ascii_case(wanted));
        let below = || {
            let all = self.mapped.iter().filter(|(known, _)| known.starts_with('*') && is_of(known, host));
            all.max_by_key(|(known, _)| known.len())
        };
        let (_, to) = named(&format!("{host}:{port}")).or_else(|| named(host)).or_else(below)?;
        place(to).map(|(host, other)| (host, other.unwrap_or(port)))
    }

    /// The rule that blocks a host of this name.
    pub fn blocks(&self, host: &str) -> Option<&str> {
        self.blocked.iter().map(String::as_str).find(|rule| is_of(rule, host))
    }

    /// The rule that blocks this address.
    pub fn blocks_address(&self, address: IpAddr) -> Option<&str> {
        let is_it = |rule: &&str| network(rule).is_some_and(|network| is_in(network, address));
        self.blocked.iter().map(String::as_str).find(is_it)
    }
}

/// Whether a host is one of these, where each may be all names below one, as `*.example`.
pub fn is_one_of(hosts: &[String], host: &str) -> bool {
    hosts.iter().any(|pattern| is_of(pattern, host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(mapped: &[(&str, &str)], blocked: &[&str]) -> Hosts {
        let mapped = mapped.iter().map(|(host, to)| ((*host).to_owned(), (*to).to_owned())).collect();
        Hosts { mapped, blocked: blocked.iter().map(|rule| (*rule).to_owned()).collect() }
    }

    #[test]
    fn the_closest_rule_says_where_a_host_is() {
        let hosts = hosts(
            &[
                ("*", "10.0.0.9"),
                ("*.example", "10.0.0.1:81"),
                ("*.b.example", "10.0.0.2"),
                ("a.example", "::1"),
                ("A.example:443", "[::1]:8443"),
                ("named", "other.example:9"),
            ],
            &[],
        );
        assert_eq!(hosts.validate(), Ok(()));
        let to = |host: &str, port| hosts.instead_of(host, port).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(to("a.example", 443).as_deref(), Some("::1 8443"));
        assert_eq!(to("a.example", 80).as_deref(), Some("::1 80"));
        assert_eq!(to("c.EXAMPLE", 80).as_deref(), Some("10.0.0.1 81"));
        assert_eq!(to("c.b.example", 80).as_deref(), Some("10.0.0.2 80"));
        assert_eq!(to("named", 80).as_deref(), Some("other.example 9"));
        assert_eq!(to("example", 80).as_deref(), Some("10.0.0.9 80"), "it is not below itself");
    }

    #[test]
    fn names_and_networks_are_blocked() {
        let hosts = hosts(&[], &["*.ads.example", "bad", "10.1.0.0/16", "192.0.2.7", "2001:db8::/32", "0.0.0.0/0"]);
        assert_eq!(hosts.validate(), Ok(()));
        assert_eq!(
            ["x.ads.example", "BAD", "ads.example", "worse"].map(|host| hosts.blocks(host).is_some()),
            [true, true, false, false]
        );
        let rule = |address: &str| hosts.blocks_address(address.parse().unwrap());
        assert_eq!(rule("10.1.255.3"), Some("10.1.0.0/16"));
        assert_eq!(rule("::ffff:10.1.0.1"), Some("10.1.0.0/16"), "an IPv4 address in another form");
        assert_eq!(rule("192.0.2.7"), Some("192.0.2.7"));
        assert_eq!(rule("192.0.2.8"), Some("0.0.0.0/0"));
        assert_eq!((rule("2001:db8:5::1"), rule("2001:db9::1")), (Some("2001:db8::/32"), None));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for mapped in [("a b", "1.2.3.4"), ("", "1.2.3.4"), ("a", ""), ("a", "1.2.3.4:0"), ("a", "b:c"), ("a*.b", "c")]
        {
            assert!(hosts(&[mapped], &[]).validate().is_err(), "{mapped:?}");
        }
        for blocked in ["", "10.0.0.0/33", "a/8", "*x"] {
            assert!(hosts(&[], &[blocked]).validate().is_err(), "{blocked}");
        }
    }
}
