//! The compared clients: their arguments, and the parsing of their output. One file each.

mod ab;
mod brunt;
mod h2load;
mod hey;
mod oha;
mod wrk;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;

pub use self::brunt::figures;

/// The load that a client is asked to put on a server, on one thread.
#[derive(Debug, Clone)]
pub struct Load {
    /// The requested URL.
    pub url: String,
    /// Connections kept open.
    pub connections: u32,
    /// How long.
    pub length: Duration,
    /// A script of wrk's to make the requests and to see the answers.
    pub script: Option<PathBuf>,
    /// HTTP/2 with this many calls in flight on each connection, in place of HTTP/1.1.
    pub streams: Option<u32>,
}

impl Load {
    /// Requests for this URL over HTTP/1.1, without a script.
    pub fn new(url: impl Into<String>, connections: u32, length: Duration) -> Self {
        Self { url: url.into(), connections, length, script: None, streams: None }
    }
}

/// A client's own report.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Requests that were answered.
    pub answered: u64,
    /// Answers a second.
    pub per_s: f64,
    /// Requests that failed, or were answered with an error.
    pub failed: u64,
}

/// A program that puts load on a server.
#[derive(Debug)]
pub struct Client {
    /// The name of the client and of its program.
    pub name: &'static str,
    /// The arguments that print its version; empty if it cannot.
    pub version: &'static [&'static str],
    /// Whether it runs wrk's scripts.
    pub scripts: bool,
    /// The arguments for a load.
    pub arguments: fn(&Load) -> Vec<String>,
    /// Parses its output.
    pub read: fn(&str) -> anyhow::Result<Report>,
}

/// Every client, brunt first.
pub const CLIENTS: &[Client] = &[brunt::CLIENT, wrk::CLIENT, ab::CLIENT, h2load::CLIENT, oha::CLIENT, hey::CLIENT];

/// The words of a command line.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The number right after `label` in `text`.
fn number_after<T: FromStr>(text: &str, label: &str) -> anyhow::Result<T> {
    let (_, rest) = text.split_once(label).with_context(|| format!("'{label}' is missing in the output:\n{text}"))?;
    number(rest).with_context(|| format!("no number comes after '{label}' in the output:\n{text}"))
}

/// The number right before `label` in `text`.
fn number_before<T: FromStr>(text: &str, label: &str) -> anyhow::Result<T> {
    let (rest, _) = text.split_once(label).with_context(|| format!("'{label}' is missing in the output:\n{text}"))?;
    let word = rest.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or("");
    number(word).with_context(|| format!("no number comes before '{label}' in the output:\n{text}"))
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}
