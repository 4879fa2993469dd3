//! The client for HTTP and HTTPS of what goes on beside a run.

use std::error::Error;
use std::time::Duration;

use anyhow::Result;
use brunt_proxy::{Trust, client_tls};
use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// Connections that are kept, to whichever host.
pub type Pool = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A pool whose connections take at most so long, to servers that `trust` knows.
///
/// # Errors
/// When its certificates cannot be read.
pub fn pool(trust: &Trust, connect_timeout: Duration) -> Result<Pool> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_timeout));
    let connector = HttpsConnector::from((connector, client_tls(trust)?));
    Ok(Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector))
}

/// What an error says at its root: `Connection refused (os error 111)`.
pub fn innermost(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
