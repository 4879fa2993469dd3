//! `brunt serve`: the built-in target.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_testbed::grpc;
use brunt_testbed::server::{self, Config, Speaks, Tokens};
use brunt_testbed::tls::{Identity, Pem, Tls, server_config};

use super::coalescing::Before;
use crate::args::{Grpc, Http, Serve, ServeTls, Server, Thrift, Ws};
use crate::exit::Exit;
use crate::signals::Waiter;
use crate::{console, files};

pub fn run(args: Serve) -> Result<Exit> {
    match args.server {
        Server::Http(args) => {
            let (duration, write_cert, coalesce) = (args.duration, args.tls.write_cert.clone(), args.coalesce);
            let config = http(*args);
            serve(duration, write_cert, || if coalesce { coalesced(&config) } else { target(config, "requests") })
        }
        Server::Ws(args) => serve(args.duration, args.tls.write_cert.clone(), || target(websocket(*args), "messages")),
        Server::Thrift(args) => serve(args.duration, args.tls.write_cert.clone(), || target(thrift(*args), "calls")),
        Server::Grpc(args) => {
            if let Some(path) = &args.message_log {
                files::check_writable(path)?;
            }
            serve(args.duration, args.tls.write_cert.clone(), || grpc(*args))
        }
    }
}

/// A server that has started.
struct Running {
    url: String,
    certificate_pem: Option<String>,
    /// Ends it; what it has done.
    stop: Box<dyn FnOnce() -> String>,
}

/// Serves until it is told to stop, or for so many nanoseconds.
fn serve(duration: Option<u64>, write_cert: Option<PathBuf>, start: impl FnOnce() -> Result<Running>) -> Result<Exit> {
    if let Some(path) = &write_cert {
        files::check_writable(path)?;
    }
    let waiter = Waiter::new()?;
    let running = start().context("cannot serve")?;
    if let (Some(path), Some(pem)) = (write_cert, running.certificate_pem) {
        files::write(&path, pem.as_bytes())?;
    }
    console::print(format!("listening on {}\n", running.url).as_bytes())?;
    waiter.wait(duration.map(Duration::from_nanos));
    console::print(format!("answered {}\n", (running.stop)()).as_bytes())?;
    Ok(Exit::Done)
}

fn target(config: Config, answered: &'static str) -> Result<Running> {
    let server = server::Server::start(config)?;
    Ok(Running {
        url: server.url(),
        certificate_pem: server.certificate_pem().map(str::to_owned),
        stop: Box::new(move || {
            let (answers, connections) = (server.requests(), server.connections());
            server.stop();
            format!("{answers} {answered} on {connections} connections")
        }),
    })
}

/// The target by way of a proxy that coalesces.
fn coalesced(asked: &Config) -> Result<Running> {
    let (address, workers) = (asked.address.clone(), asked.workers);
    let (tls, certificate_pem) = asked.tls.as_ref().map(server_config).transpose()?.unzip();
    let target = Config { address: SocketAddr::from(([127, 0, 0, 1], 0)).into(), tls: None, ..*asked };
    let target = server::Server::start(target)?;
    let proxy = Before::start(&target.url(), &address, workers, tls)?;
    Ok(Running {
        url: proxy.url(),
        certificate_pem,
        stop: Box::new(move || {
            let (asked, answered) = (proxy.stop(), target.requests());
            target.stop();
            format!("{asked} requests, by {answered} of the target's answers")
        }),
    })
}

fn grpc(args: Grpc) -> Result<Running> {
    let server = grpc::Server::start(&grpc::Config {
        address: args.address,
        workers: args.workers as usize,
        delay: args.delay,
        error_share: args.error_share,
        tls: tls(args.tls),
        seed: args.seed,
        message_log: args.message_log,
    })?;
    Ok(Running {
        url: server.url(),
        certificate_pem: server.certificate_pem().map(str::to_owned),
        stop: Box::new(move || {
            let (calls, connections) = (server.calls(), server.connections());
            server.stop();
            format!("{calls} calls on {connections} connections")
        }),
    })
}

fn http(args: Http) -> Config {
    Config {
        address: args.address,
        workers: args.workers as usize,
        body_bytes: args.body_size,
        delay: args.delay,
        queue: args
            .service_time
            .map(|service_time| server::Queue { count: args.servers.unwrap_or(1) as usize, service_time }),
        error_share: args.error_share,
        stall: args.stall,
        close_after: args.close_after,
        tokens: Tokens { first: args.first_token, gap: args.token_gap, count: args.tokens },
        tls: tls(args.tls),
        seed: args.seed,
        ..Config::default()
    }
}

fn websocket(args: Ws) -> Config {
    Config {
        speaks: Speaks::WebSocket,
        address: args.address,
        workers: args.workers as usize,
        delay: args.delay,
        error_share: args.error_share,
        stall: args.stall,
        close_after: args.close_after,
        push: args.push.map(Duration::from_nanos),
        tls: tls(args.tls),
        seed: args.seed,
        ..Config::default()
    }
}

fn thrift(args: Thrift) -> Config {
    Config {
        speaks: Speaks::Thrift,
        address: args.address,
        workers: args.workers as usize,
        delay: args.delay,
        error_share: args.error_share,
        stall: args.stall,
        close_after: args.close_after,
        tls: tls(args.tls),
        seed: args.seed,
        ..Config::default()
    }
}

fn tls(args: ServeTls) -> Option<Tls> {
    let identity = match (args.tls_cert, args.tls_key) {
        (Some(certificate), Some(key)) => Identity::Given { certificate: Pem::File(certificate), key: Pem::File(key) },
        _ => Identity::Generated,
    };
    args.tls.then(|| Tls { identity, client_ca: args.client_ca.map(Pem::File) })
}
