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
    /// How long to wait, before the load, for a target that is starting, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_ns: u64,
}

/// For `skip_serializing_if`.
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
}
