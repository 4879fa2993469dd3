//! `brunt serve`: the built-in target.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_testbed::http;
use brunt_testbed::tls::{Identity, Pem, Tls};

use super::Exit;
use crate::args::{Http, Serve, Server};
use crate::signals::Waiter;
use crate::{console, files};

pub fn run(args: Serve) -> Result<Exit> {
    match args.server {
        Server::Http(args) => serve_http(*args),
    }
}

fn serve_http(args: Http) -> Result<Exit> {
    if let Some(path) = &args.write_cert {
        files::check_writable(path)?;
    }
    let (duration, write_cert) = (args.duration.map(Duration::from_nanos), args.write_cert.clone());
    let waiter = Waiter::new()?;
    let server = http::Server::start(config(args)).context("cannot serve")?;
    if let (Some(path), Some(pem)) = (write_cert, server.certificate_pem()) {
        files::write(&path, pem.as_bytes())?;
    }
    console::print(format!("listening on {}\n", server.url()).as_bytes())?;
    waiter.wait(duration);
    let (requests, connections) = (server.requests(), server.connections());
    server.stop();
    console::print(format!("answered {requests} requests on {connections} connections\n").as_bytes())?;
    Ok(Exit::Done)
}

fn config(args: Http) -> http::Config {
    let tls = Tls { identity: identity(args.tls_cert, args.tls_key), client_ca: args.client_ca.map(Pem::File) };
    http::Config {
        address: args.address,
        workers: args.workers as usize,
        body_bytes: args.body_size,
        delay: args.delay,
        queue: args
            .service_time
            .map(|service_time| http::Queue { count: args.servers.unwrap_or(1) as usize, service_time }),
        error_share: args.error_share,
        stall: args.stall,
        close_after: args.close_after,
        tls: args.tls.then_some(tls),
        seed: args.seed,
    }
}

fn identity(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Identity {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Identity::Given { certificate: Pem::File(certificate), key: Pem::File(key) },
        _ => Identity::Generated,
    }
}
