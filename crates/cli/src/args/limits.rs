//! Flags of every load: where random choices start, and how long calls may take.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use brunt_protocol::Protocol;
use brunt_record::SECOND_NS;
use clap::Args;

use super::values;

/// The default timeout of a call, and of connecting, in nanoseconds.
pub const DEFAULT_TIMEOUT_NS: u64 = 10 * SECOND_NS;

/// Where random choices start, and how long calls may take.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct Limits {
    /// The seed of all random choices; printed, so that a run can be repeated [default: random]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The timeout of a call, counted from when it was sent, unless a script sets another [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub timeout: Option<u64>,
    /// The timeout of connecting, TLS included [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub connect_timeout: Option<u64>,
    /// How long calls in flight at the end, and users of a closed load, have to finish [default: the timeout]
    #[arg(long, value_name = "T", value_parser = values::duration)]
    pub drain: Option<u64>,
}

impl Limits {
    /// How long a call may take, in nanoseconds.
    pub fn timeout_ns(&self) -> u64 {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT_NS)
    }

    /// The same for calls of this protocol, which may take longer by their nature.
    pub fn timeout_ns_of(&self, protocol: &dyn Protocol) -> u64 {
        self.timeout.unwrap_or_else(|| protocol.usual_timeout_ns().unwrap_or(DEFAULT_TIMEOUT_NS))
    }

    /// How long connecting may take, in nanoseconds.
    pub fn connect_timeout_ns(&self) -> u64 {
        self.connect_timeout.unwrap_or(DEFAULT_TIMEOUT_NS)
    }

    /// How long the drain may take, in nanoseconds.
    pub fn drain_ns(&self) -> u64 {
        self.drain.unwrap_or_else(|| self.timeout_ns())
    }
}
