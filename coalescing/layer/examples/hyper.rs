//! The layer around a service of plain hyper: `cargo run --example hyper`, then ask for it a few times at once.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is an example")]

use std::convert::Infallible;
use std::time::Duration;

use brunt_coalesce::CoalesceLayer;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tower::{Layer as _, service_fn};

/// Something that takes its time.
async fn handler(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(Response::new(Full::from(format!("you asked for {}\n", request.uri()))))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    // One service for all connections: requests are coalesced across them.
    let service = CoalesceLayer::new().layer(service_fn(handler));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3001").await?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = service.clone();
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                eprintln!("a connection ended: {error}");
            }
        });
    }
}
