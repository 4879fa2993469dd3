//! `brunt grpc`: the schema of a server.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use brunt_grpc::definition::signature;
use brunt_grpc::reflection::{Reflection, ReflectionError};
use brunt_grpc::schema::Schema;
use brunt_plan::target::Url;
use brunt_protocol::Registry;
use brunt_protocol::flags::{FlagValue, FlagValues};
use brunt_protocol::headers::headers;
use clap::{Args, Subcommand};

use crate::args::bench::Connecting;
use crate::args::limits::DEFAULT_TIMEOUT_NS;
use crate::args::{Tls, values};
use crate::console;
use crate::exit::Exit;
use crate::plan::asking::Probe;
use crate::plan::{tls, transport};

/// Show the schema of a gRPC server, by reflection
#[derive(Debug, Args)]
pub struct Inspect {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Debug, Subcommand)]
pub enum What {
    /// List the services of a server, or the methods of one service
    List(Box<List>),
    /// Print a service, method, message or enum as a .proto file has it; for a method also sample arguments
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
    /// The name to describe: shop.Cart, shop.Cart/Add, shop.Item, or the end of such a name
    #[arg(value_name = "SYMBOL")]
    pub symbol: String,
    #[command(flatten)]
    pub server: Server,
}

/// The server, and how to ask it.
#[derive(Debug, Args)]
pub struct Server {
    /// Metadata of the call, repeatable; @NAME at the beginning of a word of V is taken from the environment
    #[arg(short = 'H', long = "header", value_name = "K: V")]
    pub headers: Vec<String>,
    /// The timeout of each call [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub timeout: Option<u64>,
    /// The timeout of connecting, TLS included [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub connect_timeout: Option<u64>,
    #[command(flatten)]
    pub connecting: Connecting,
    #[command(flatten)]
    pub tls: Tls,
}

pub fn run(args: &Inspect, registry: &Registry) -> Result<Exit> {
    let text = match &args.what {
        What::List(args) => {
            let List { url, service, server } = &**args;
            asked(url, server, registry, |reflection| list(reflection, service.as_deref()))
        }
        What::Describe(args) => {
            let Describe { url, symbol, server } = &**args;
            asked(url, server, registry, |reflection| Ok(reflection.definition(symbol)?.text()))
        }
    };
    console::print(text?.as_bytes())?;
    Ok(Exit::Done)
}

fn list(reflection: &mut Reflection<'_>, service: Option<&str>) -> Result<String, ReflectionError> {
    let lines = match service {
        None => reflection.services()?,
        Some(service) => {
            let schema = Schema::of_descriptor_set(&reflection.descriptor_set(Some(service))?)?;
            schema
                .services(service)
                .flat_map(|service| service.methods().map(|m| signature(&m)).collect::<Vec<_>>())
                .collect()
        }
    };
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// The result of `look` on the server's answers.
fn asked(
    url: &str,
    server: &Server,
    registry: &Registry,
    look: impl FnOnce(&mut Reflection<'_>) -> Result<String, ReflectionError>,
) -> Result<String> {
    let whole = if url.contains("://") { url.to_owned() } else { format!("grpc://{url}") };
    let url = Url::parse(&whole).map_err(|error| anyhow!("URL {error}"))?;
    if !matches!(url.target.scheme.as_str(), "grpc" | "grpcs") {
        bail!("expected a URL with grpc:// or grpcs://, got {}://", url.target.scheme);
    }
    if url.user.is_some() {
        bail!("gRPC has no user names: leave what stands before the @ out");
    }
    let mut given = FlagValues::default();
    server.headers.iter().for_each(|text| given.push("header", FlagValue::Text(text.clone())));
    let metadata = headers(&given)?;
    let asker = Arc::new(Probe::new(
        transport(&server.connecting, tls(&server.tls)?)?,
        server.timeout.unwrap_or(DEFAULT_TIMEOUT_NS),
        server.connect_timeout.unwrap_or(DEFAULT_TIMEOUT_NS),
        registry,
    ));
    let ask = asker.inquiry(url.target);
    let looked = look(&mut Reflection::new(&*ask, &metadata));
    asker.told(looked)
}
