//! The server that the gain is measured on (`make bench BENCH=coalesce`): plain hyper, with the layer if its argument is
//! `--coalesce`, and without otherwise.
//!
//! `/cpu` takes 20 ms of CPU on a blocking pool, as resizing an image would; `/sleep` takes 100 ms of waiting; everything
//! else is answered at once. `/_/count` says how often the handler was called.
#![allow(clippy::print_stdout, reason = "it is an example")]

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brunt_coalesce::CoalesceLayer;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tower::Layer as _;

static CALLS: AtomicU64 = AtomicU64::new(0);

const WORK: Duration = Duration::from_millis(20);
const WAIT: Duration = Duration::from_millis(100);

/// Computes for 20 ms of an idle core's time.
fn work() {
    // How many rounds that takes is found out once, so that later calls take as much CPU, however long they wait for it:
    // by the best of some tries, as others may use the core during each.
    static ROUNDS: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let rounds = *ROUNDS.get_or_init(|| {
        let rounds_in = |length: Duration| {
            let (began, mut rounds) = (Instant::now(), 0);
            while began.elapsed() < length {
                compute(1000);
                rounds += 1000;
            }
            rounds
        };
        (0..20).map(|_| rounds_in(WORK / 10)).max().unwrap_or(0) * 10
    });
    compute(rounds);
}

fn compute(rounds: u64) {
    let mut state = black_box(1_u64);
    for _ in 0..rounds {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

async fn handler(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    if path == "/_/count" {
        return Ok(Response::new(Full::from(CALLS.load(Ordering::Relaxed).to_string())));
    }
    CALLS.fetch_add(1, Ordering::Relaxed);
    if path.starts_with("/cpu") {
        // It fails only if it panics.
        let _ = tokio::task::spawn_blocking(work).await;
    } else if path.starts_with("/sleep") {
        tokio::time::sleep(WAIT).await;
    }
    Ok(Response::new(Full::from("Hello World\n")))
}

/// Serves every connection with this service.
macro_rules! serve {
    ($listener:expr, $service:expr) => {{
        let service = $service;
        loop {
            let (stream, _) = $listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = service.clone();
            tokio::spawn(http1::Builder::new().pipeline_flush(true).serve_connection(TokioIo::new(stream), service));
        }
    }};
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    work();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/", listener.local_addr()?);
    if std::env::args().any(|argument| argument == "--coalesce") {
        serve!(listener, CoalesceLayer::new().layer(tower::service_fn(handler)))
    } else {
        serve!(listener, hyper::service::service_fn(handler))
    }
}
