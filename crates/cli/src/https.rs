//! The client for HTTP and HTTPS of what goes on beside a run.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use brunt_proxy::{Trust, client_tls};
use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// Connections that are kept, to whichever host.
pub type Pool = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A pool whose connections take at most so long, to servers that `trust` knows. None where no URL is `https`: to read the system's
/// authorities takes as much CPU as ten seconds of a run's metrics.
///
/// # Errors
/// When its certificates cannot be read.
pub fn pool(trust: Option<&Trust>, connect_timeout: Duration) -> Result<Pool> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_timeout));
    let connector =
        HttpsConnector::from((connector, trust.map_or_else(without_authorities, |trust| Ok(client_tls(trust)?))?));
    Ok(Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector))
}

/// TLS that takes no server's certificate.
fn without_authorities() -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// What an error says at its root: `Connection refused (os error 111)`.
pub fn innermost(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
