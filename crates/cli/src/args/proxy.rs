//! The flags of the proxy.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::net::SocketAddr;
use std::path::PathBuf;

use brunt_proxy::{TrustedProxy, UpgradeProtocol, Upstream};
use brunt_testbed::server::Listen;
use clap::Args;

use super::values;

const EXAMPLES: &str = "\
Examples:
  brunt proxy --coalesce http://127.0.0.1:3000 --listen 127.0.0.1:8080
  brunt proxy --coalesce https://app.internal --listen 0.0.0.0:443 \\
    --tls-cert cert.pem --tls-key key.pem --metrics 127.0.0.1:9100 --access-log access.json
  brunt coalesce-check http://127.0.0.1:8080/report    is it safe, and does it help?";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Proxy {
    /// The server behind the proxy: http://HOST:PORT or https://HOST:PORT
    #[arg(value_name = "UPSTREAM")]
    pub upstream: Upstream,
    /// Where to listen: ADDRESS:PORT, :PORT or PORT on 127.0.0.1 (0 takes a free one), or unix:PATH
    #[arg(short, long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: Listen,
    /// Serve identical requests in flight once
    #[arg(long)]
    pub coalesce: bool,
    /// Threads [default: as many as there are cores]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub workers: Option<u32>,
    /// Where Prometheus finds metrics: http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Write a line of JSON for each request into this file (- for standard output)
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// Stop by itself after this long
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub duration: Option<u64>,
    /// Pass on Forwarded and X-Forwarded-... of proxies at this address or network (or unix); anybody else's are dropped
    #[arg(long = "trust-proxy", value_name = "ADDRESS")]
    pub trusted: Vec<TrustedProxy>,
    /// Pass on upgrades to this protocol, too, beside websocket; any other upgrade is ignored
    #[arg(long, value_name = "PROTOCOL")]
    pub upgrade: Vec<UpgradeProtocol>,
    #[command(flatten, next_help_heading = "Coalescing")]
    pub coalescing: Coalescing,
    #[command(flatten, next_help_heading = "Limits")]
    pub limits: Limits,
    #[command(flatten, next_help_heading = "TLS")]
    pub tls: Tls,
}

#[derive(Debug, Args)]
pub struct Coalescing {
    /// Tell requests apart by this header too; one that keeps them from being coalesced (Authorization, Cookie, Range)
    /// does so no longer: only those with the same value are
    #[arg(long, value_name = "NAME", requires = "coalesce")]
    pub key_header: Vec<http::HeaderName>,
    /// Give a whole answer to requests that come up to this long after its end, too (a cache of milliseconds)
    #[arg(long, value_name = "T", value_parser = values::duration, requires = "coalesce", default_value = "0")]
    pub hold: u64,
    /// How long a request waits for another's headers before it goes to the upstream itself [default: --timeout]
    #[arg(long, value_name = "T", value_parser = values::positive_duration, requires = "coalesce")]
    pub max_wait: Option<u64>,
    /// Bytes that one flight may hold for readers that are slower than its fastest [default: 8MB]
    #[arg(long, value_name = "SIZE", value_parser = values::size, requires = "coalesce")]
    pub flight_bytes: Option<u64>,
    /// What all flights may hold, with their keys and heads; at half of it, nothing more is coalesced [default: 256MB]
    #[arg(long, value_name = "SIZE", value_parser = values::size, requires = "coalesce")]
    pub total_bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Limits {
    /// How long the upstream may take to its headers (a client's upload aside), and between pieces of its body
    #[arg(long, value_name = "T", value_parser = values::positive_duration, default_value = "60s")]
    pub timeout: u64,
    /// How long connecting to the upstream may take
    #[arg(long, value_name = "T", value_parser = values::positive_duration, default_value = "5s")]
    pub connect_timeout: u64,
    /// How long a client may take for its TLS handshake, and for the head of a request from its first byte
    #[arg(long, value_name = "T", value_parser = values::positive_duration, default_value = "10s")]
    pub header_timeout: u64,
    /// How long a client may go without sending more of a body, or taking more of an answer
    #[arg(long, value_name = "T", value_parser = values::positive_duration, default_value = "60s")]
    pub client_timeout: u64,
    /// How long a client's connection may be without a request
    #[arg(long, value_name = "T", value_parser = values::positive_duration, default_value = "75s")]
    pub keep_alive_timeout: u64,
    /// How long an upgraded connection may be silent both ways
    #[arg(long, value_name = "T", value_parser = values::positive_duration, default_value = "10m")]
    pub tunnel_timeout: u64,
    /// How long idle connections to the upstream are kept
    #[arg(long, value_name = "T", value_parser = values::positive_duration, default_value = "30s")]
    pub idle_timeout: u64,
    /// How long requests in flight may take once it is told to stop
    #[arg(long, value_name = "T", value_parser = values::duration, default_value = "10s")]
    pub grace: u64,
    /// Connections of clients at a time, upgraded ones among them; further ones wait
    #[arg(long, value_name = "N", value_parser = values::connections, default_value = "10000")]
    pub max_connections: u32,
    /// The longest head of a request (8KB at least)
    #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "32KB")]
    pub max_head: u64,
    /// The longest body of a request
    #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "100MB")]
    pub max_body: u64,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_field_names, reason = "the flags are called so")]
pub struct Tls {
    /// Speak TLS (HTTP/2 and HTTP/1.1) with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Trust an upstream that these authorities (PEM) vouch for, instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub cacert: Option<PathBuf>,
    /// Trust any upstream
    #[arg(short = 'k', long)]
    pub insecure: bool,
}
