//! The layer around an axum router: `cargo run --example axum`, then ask for the report a few times at once:
//!
//! ```sh
//! for i in 1 2 3 4 5; do curl -s -H 'x-coalesced: ?' -i http://127.0.0.1:3000/report & done; wait
//! ```
#![allow(clippy::print_stdout, reason = "it is an example")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use brunt_coalesce::CoalesceLayer;

static MADE: AtomicU64 = AtomicU64::new(0);

/// Something that takes its time.
async fn report() -> String {
    tokio::time::sleep(Duration::from_secs(1)).await;
    format!("report {}\n", MADE.fetch_add(1, Ordering::Relaxed))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let coalesce = CoalesceLayer::new();
    let counters = coalesce.clone();
    let app = Router::new()
        .route("/report", get(report))
        .layer(coalesce)
        // Outside of the layer, so that it is told of every request anew.
        .route("/counters", get(move || std::future::ready(format!("{:#?}\n", counters.counters()))))
        // Last: the router makes its services now, and not anew for each connection.
        .with_state(());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}/report and /counters", listener.local_addr()?);
    axum::serve(listener, app).await
}
