//! The HTTP target over TLS.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod client;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use brunt_testbed::server::{Server, ServerConfig};
use brunt_testbed::tls::{Credentials, Identity, Pem, Tls, client_certificate, server_certificate};
use client::{Client, connect};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

fn start(tls: Tls) -> Server {
    Server::start(ServerConfig { tls: Some(tls), ..ServerConfig::default() }).unwrap()
}

/// A client that trusts this certificate, and shows another if it has one.
fn client_config(trusted: &str, own: Option<&Credentials>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(made) => {
            let certificate = CertificateDer::from_pem_slice(made.certificate_pem.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(made.key_pem.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

fn connect_tls(server: &Server, config: &Arc<ClientConfig>, name: &'static str) -> TlsClient {
    let tls = ClientConnection::new(Arc::clone(config), ServerName::try_from(name).unwrap()).unwrap();
    let tcp = TcpStream::connect(server.socket_addr().unwrap()).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Client::new(StreamOwned::new(tls, tcp))
}

fn trusting(server: &Server) -> Arc<ClientConfig> {
    client_config(server.certificate_pem().unwrap(), None)
}

#[test]
fn the_generated_certificate_holds_for_local_names() {
    let server = start(Tls::default());
    assert!(server.url().starts_with("https://127.0.0.1:"));
    for name in ["localhost", "127.0.0.1", "::1"] {
        let mut client = connect_tls(&server, &trusting(&server), name);
        assert_eq!(client.get("/").text(), "abcdefghijklm");
        assert_eq!(client.stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
}

#[test]
fn long_and_pipelined_answers_get_through() {
    let server = start(Tls::default());
    let mut client = connect_tls(&server, &trusting(&server), "localhost");
    client.send("GET /_/bytes/3000001 HTTP/1.1\r\nHost: test\r\n\r\n".repeat(3));
    for _ in 0..3 {
        assert_eq!(client.answer().body.len(), 3_000_001);
    }
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n".repeat(1000));
    for _ in 0..1000 {
        assert_eq!(client.answer().status, 200);
    }
    let body = vec![b'x'; 1 << 20];
    client.send(format!("POST /_/echo HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len()));
    client.send(&body);
    assert!(client.answer().body == body);
    assert_eq!(server.requests(), 1004);
}

#[test]
fn the_end_is_announced_to_tls_too() {
    let server = start(Tls::default());
    let mut client = connect_tls(&server, &trusting(&server), "localhost");
    // Reading to the end fails if no `close_notify` comes.
    assert_eq!(client.get("/_/close/100000").body.len(), 100_000);
    let mut client = connect_tls(&server, &trusting(&server), "localhost");
    client.send("GET / HTTP/1.0\r\n\r\n");
    client.answer();
    assert!(client.rest().is_empty());
}

#[test]
fn sessions_resume() {
    let server = start(Tls::default());
    let config = trusting(&server);
    let kinds: Vec<_> = (0..2)
        .map(|_| {
            let mut client = connect_tls(&server, &config, "localhost");
            client.get("/");
            client.stream.conn.handshake_kind()
        })
        .collect();
    assert_eq!(kinds, [Some(HandshakeKind::Full), Some(HandshakeKind::Resumed)]);
}

#[test]
fn a_client_certificate_can_be_required() {
    let made = client_certificate("tester").unwrap();
    let client_ca = Some(Pem::Text(made.authority_pem.clone()));
    let server = start(Tls { client_ca, ..Tls::default() });
    let trusted = server.certificate_pem().unwrap();
    let mut with = connect_tls(&server, &client_config(trusted, Some(&made)), "localhost");
    assert_eq!(with.get("/").status, 200);
    let stranger = client_certificate("stranger").unwrap();
    for config in [client_config(trusted, None), client_config(trusted, Some(&stranger))] {
        let mut without = connect_tls(&server, &config, "localhost");
        let asked = without.stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        let refused = asked.and_then(|()| without.stream.read(&mut [0; 1])).unwrap_err();
        assert_ne!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
    }
    assert_eq!(server.requests(), 1);
}

#[test]
fn given_certificates_are_used_from_text_and_files() {
    let made = server_certificate().unwrap();
    let path = |name: &str| std::env::temp_dir().join(format!("brunt-testbed-{}-{name}.pem", std::process::id()));
    let (certificate, key) = (path("certificate"), path("key"));
    std::fs::write(&certificate, &made.certificate_pem).unwrap();
    std::fs::write(&key, &made.key_pem).unwrap();
    let given = [
        (Pem::File(certificate.clone()), Pem::File(key.clone())),
        (Pem::Text(made.certificate_pem.clone()), Pem::Text(made.key_pem.clone())),
    ];
    for (certificate, key) in given {
        let server = start(Tls { identity: Identity::Given { certificate, key }, client_ca: None });
        assert_eq!(server.certificate_pem(), Some(made.certificate_pem.as_str()));
        assert_eq!(connect_tls(&server, &trusting(&server), "localhost").get("/").status, 200);
    }
    std::fs::remove_file(&certificate).unwrap();
    std::fs::remove_file(&key).unwrap();
}

#[test]
fn certificates_that_cannot_be_used_say_why() {
    let made = server_certificate().unwrap();
    let text = |text: &str| Pem::Text(text.to_owned());
    let start = |certificate, key| {
        let tls = Tls { identity: Identity::Given { certificate, key }, client_ca: None };
        Server::start(ServerConfig { tls: Some(tls), ..ServerConfig::default() }).unwrap_err().to_string()
    };
    let error = start(Pem::File("/no/such/file".into()), text(&made.key_pem));
    assert!(error.starts_with("cannot read /no/such/file: No such file"), "{error}");
    let error = start(text("x"), text(&made.key_pem));
    assert!(error.starts_with("expected certificates (BEGIN CERTIFICATE) in the PEM text given, got: none"), "{error}");
    let error = start(text(&made.certificate_pem), text("x"));
    assert!(error.starts_with("expected a private key"), "{error}");
    let error = start(text(&made.certificate_pem), text(&server_certificate().unwrap().key_pem));
    assert!(error.contains("check that they belong together"), "{error}");
}

#[test]
fn plain_http_to_a_tls_port_ends_the_connection() {
    let server = start(Tls::default());
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    // An alert, then the end; perhaps a reset.
    let mut bytes = Vec::new();
    let _ = client.stream.read_to_end(&mut bytes);
    assert!(bytes.first().is_none_or(|&kind| kind == 21), "{bytes:?}");
    assert_eq!(server.requests(), 0);
}
