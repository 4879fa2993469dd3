//! The flags of `brunt grpc`.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use clap::{Args, Subcommand};

use super::bench::{Connecting, Tls};
use super::values;

#[derive(Debug, Args)]
pub struct Inspect {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Debug, Subcommand)]
pub enum What {
    /// List the services of a server, or the methods of one service
    List(Box<List>),
    /// Print a service, method, message or enum as a .proto file has it; of a method also arguments to begin with
    Describe(Box<Describe>),
}

#[derive(Debug, Args)]
pub struct List {
    /// The server: grpc://HOST:PORT, or grpcs:// over TLS
    #[arg(value_name = "URL")]
    pub url: String,
    /// A service whose methods are listed: shop.Cart, or Cart where that is enough to tell it
    #[arg(value_name = "SERVICE")]
    pub service: Option<String>,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
pub struct Describe {
    /// The server: grpc://HOST:PORT, or grpcs:// over TLS
    #[arg(value_name = "URL")]
    pub url: String,
    /// What is printed: shop.Cart, shop.Cart/Add, shop.Item, or the end of such a name
    #[arg(value_name = "SYMBOL")]
    pub symbol: String,
    #[command(flatten)]
    pub server: Server,
}

/// How the server is asked.
#[derive(Debug, Args)]
pub struct Server {
    /// Metadata of the call, repeatable; @NAME at the beginning of a word of V is taken from the environment
    #[arg(short = 'H', long = "header", value_name = "K: V")]
    pub headers: Vec<String>,
    /// How long each call may take [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub timeout: Option<u64>,
    /// How long connecting may take, TLS included [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub connect_timeout: Option<u64>,
    #[command(flatten)]
    pub connecting: Connecting,
    #[command(flatten)]
    pub tls: Tls,
}
