//! Settings of connections: addresses, TLS, and the source of arrival times.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::secret::Template;

/// How connections are made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// Host (or address) and port to connect to instead of the target's.
    pub connect_to: Option<(String, u16)>,
    /// A proxy that connects to the target (`CONNECT`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// A Unix socket to connect to instead of the target.
    pub unix_socket: Option<PathBuf>,
    /// Local addresses that connections take in turn.
    pub source_ips: Vec<IpAddr>,
    /// Which resolved addresses are used.
    pub family: Family,
    /// Settings of TLS, for schemes that use it.
    pub tls: Tls,
    /// Addresses that stand for the target's host, resolved already; empty: the host is looked up.
    pub addresses: Vec<SocketAddr>,
    /// The source of arrival times.
    #[serde(default)]
    pub arrival_times: ArrivalTimes,
    /// How workers wait for the times at which calls are due.
    #[serde(default, skip_serializing_if = "Pace::is_auto")]
    pub pace: Pace,
    /// How long to wait, before the load, for a target that is starting, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_ns: u64,
    /// How often the target's name is looked up again for new connections, in nanoseconds; 0 for only once they are refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resolve_every_ns: u64,
    /// How many UDP sockets the connections of a worker share; 0: each has its own.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub udp_sockets: u32,
}

impl Transport {
    /// The user and password of its proxy, if it has them.
    pub fn proxy_credentials(&self) -> Option<&Template> {
        self.proxy.as_ref()?.credentials.as_ref()
    }
}

/// A proxy that connects to the target and passes bytes on (`CONNECT`, RFC 9110 §9.3.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Its host, or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its user and password, `user:password`; `@NAME` takes one from the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub credentials: Option<Template>,
}

/// For `skip_serializing_if`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_unset(number: &u32) -> bool {
    *number == 0
}

/// The same for times.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

/// The source of answers' arrival times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArrivalTimes {
    /// The kernel, by receive timestamps, where it keeps them (TCP on Linux).
    #[default]
    Kernel,
    /// The generator, when it has read the answer. All times then include its own delays.
    Read,
}

/// How workers wait for the times at which calls are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Awake where the rate asks for it, a CPU is free and no other machine takes part; else asleep.
    #[default]
    Auto,
    /// Asleep, until a timer wakes them a moment before, and awake for the rest, for a tenth of their time at most.
    Timer,
    /// Awake, on a whole CPU each: calls go when they are due.
    Spin,
}

impl Pace {
    /// For `skip_serializing_if`.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Which of a host's addresses are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Every version.
    #[default]
    Any,
    /// IPv4 ones.
    V4,
    /// IPv6 ones.
    V6,
}

/// How TLS is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Take any certificate.
    pub insecure: bool,
    /// Trusted certificates in PEM, instead of the system's.
    pub trusted_pem: Option<String>,
    /// Our own certificate chain in PEM.
    pub certificate_pem: Option<String>,
    /// The client's private key in PEM; `@NAME` takes it from the environment.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub key_pem: Option<Template>,
    /// The server name asked for and verified, instead of the target's host.
    pub server_name: Option<String>,
    /// Make a whole handshake for each connection, and resume no session.
    pub no_resumption: bool,
    /// Send requests of safe methods with the first datagrams of a connection that resumes a session (0-RTT). Over QUIC.
    pub early_data: bool,
}
