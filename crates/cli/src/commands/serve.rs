//! `brunt serve`: the built-in target.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_proxy::{Coalescing, Proxy};
use brunt_testbed::grpc;
use brunt_testbed::server::{self, Config, Speaks, Tokens};
use brunt_testbed::tls::{Identity, Pem, Tls, server_config};

use super::Exit;
use super::proxy::Place;
use crate::args::{Grpc, Http, Serve, ServeTls, Server, Thrift, Ws};
use crate::signals::Waiter;
use crate::{console, files};

pub fn run(args: Serve) -> Result<Exit> {
    match args.server {
        Server::Http(args) if args.coalesce => serve_coalesced(*args),
        Server::Http(args) => {
            let (duration, write_cert) = (args.duration, args.tls.write_cert.clone());
            serve(http(*args), duration, write_cert, "requests")
        }
        Server::Ws(args) => {
            let (duration, write_cert) = (args.duration, args.tls.write_cert.clone());
            serve(websocket(*args), duration, write_cert, "messages")
        }
        Server::Thrift(args) => {
            let (duration, write_cert) = (args.duration, args.tls.write_cert.clone());
            serve(thrift(*args), duration, write_cert, "calls")
        }
        Server::Grpc(args) => serve_grpc(*args),
    }
}

/// Serves until it is told to stop, or for so many nanoseconds.
fn serve(config: Config, duration: Option<u64>, write_cert: Option<PathBuf>, answered: &str) -> Result<Exit> {
    if let Some(path) = &write_cert {
        files::check_writable(path)?;
    }
    let waiter = Waiter::new()?;
    let server = server::Server::start(config).context("cannot serve")?;
    if let (Some(path), Some(pem)) = (write_cert, server.certificate_pem()) {
        files::write(&path, pem.as_bytes())?;
    }
    console::print(format!("listening on {}\n", server.url()).as_bytes())?;
    waiter.wait(duration.map(Duration::from_nanos));
    let (answers, connections) = (server.requests(), server.connections());
    server.stop();
    console::print(format!("answered {answers} {answered} on {connections} connections\n").as_bytes())?;
    Ok(Exit::Done)
}

/// Serves gRPC until it is told to stop, or for as long as it is to.
fn serve_grpc(args: Grpc) -> Result<Exit> {
    let (duration, write_cert) = (args.duration, args.tls.write_cert.clone());
    if let Some(path) = &write_cert {
        files::check_writable(path)?;
    }
    if let Some(path) = &args.message_log {
        files::check_writable(path)?;
    }
    let waiter = Waiter::new()?;
    let config = grpc::Config {
        address: args.address,
        workers: args.workers as usize,
        delay: args.delay,
        error_share: args.error_share,
        tls: tls(args.tls),
        seed: args.seed,
        message_log: args.message_log,
    };
    let server = grpc::Server::start(&config).context("cannot serve")?;
    if let (Some(path), Some(pem)) = (write_cert, server.certificate_pem()) {
        files::write(&path, pem.as_bytes())?;
    }
    console::print(format!("listening on {}\n", server.url()).as_bytes())?;
    waiter.wait(duration.map(Duration::from_nanos));
    let (calls, connections) = (server.calls(), server.connections());
    server.stop();
    console::print(format!("answered {calls} calls on {connections} connections\n").as_bytes())?;
    Ok(Exit::Done)
}

/// Longer than the target can be told to take for an answer.
const LONGEST_ANSWER: Duration = Duration::from_secs(2 * 3600);

/// Serves by way of a proxy that coalesces, until it is told to stop.
fn serve_coalesced(args: Http) -> Result<Exit> {
    let (duration, workers) = (args.duration.map(Duration::from_nanos), args.workers as usize);
    let write_cert = args.tls.write_cert.clone();
    if let Some(path) = &write_cert {
        files::check_writable(path)?;
    }
    let waiter = Waiter::new()?;
    let asked = http(args);
    let (address, tls) = (asked.address.clone(), asked.tls.clone());
    let target = Config { address: SocketAddr::from(([127, 0, 0, 1], 0)).into(), tls: None, ..asked };
    let target = server::Server::start(target).context("cannot serve")?;
    let upstream = target.url().parse().context("cannot pass on to the target")?;
    let (listen, place) = Place::bind(&address).context("cannot serve")?;
    let mut config = brunt_proxy::Config::new(upstream, listen);
    (config.threads, config.coalesce) = (Some(workers), Some(Coalescing::default()));
    // How slow answers are, and how many ask for them, is for the target to say.
    (config.response_timeout, config.max_connections) = (LONGEST_ANSWER, usize::MAX);
    // A load opens connections long before it uses them, and may read slowly by design.
    (config.header_timeout, config.keep_alive_timeout) = (LONGEST_ANSWER, LONGEST_ANSWER);
    config.client_timeout = LONGEST_ANSWER;
    if let Some(tls) = &tls {
        let (made, certificate) = server_config(tls).context("cannot serve")?;
        config.identity = Some(brunt_proxy::Identity::Made(made));
        if let Some(path) = write_cert {
            files::write(&path, certificate.as_bytes())?;
        }
    }
    let proxy = Proxy::start(config).context("cannot serve")?;
    console::print(format!("listening on {}\n", place.url(tls.is_some(), proxy.address())).as_bytes())?;
    waiter.wait(duration);
    let (asked, answered) = (proxy.stop().requests, target.requests());
    target.stop();
    console::print(format!("answered {asked} requests, by {answered} of the target's answers\n").as_bytes())?;
    Ok(Exit::Done)
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
