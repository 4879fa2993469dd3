//! A server of tonic's with the layer: gRPC's calls are POST and pass it by, and pages beside them are made once for all who ask
//! at once.
//!
//! ```text
//! cargo run -p brunt-coalesce --example tonic
//! seq 9 | xargs -P9 -I{} curl --http2-prior-knowledge http://127.0.0.1:50051/report
//! ```
#![allow(clippy::print_stdout, reason = "it is an example")]

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use brunt_coalesce::CoalesceLayer;
use tonic::service::Routes;
use tonic::transport::Server;

async fn report() -> String {
    println!("makes the report");
    tokio::time::sleep(Duration::from_secs(2)).await;
    "made once for all who ask at once\n".to_owned()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Services of gRPC are added by `.add_service(…)`.
    let routes = Routes::from(Router::new().route("/report", get(report)));
    println!("listening on http://127.0.0.1:50051/report");
    Server::builder().layer(CoalesceLayer::new()).add_routes(routes).serve("127.0.0.1:50051".parse()?).await?;
    Ok(())
}
