//! TLS on either side.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};

use crate::config::{Identity, Trust};
use crate::error::StartError;

/// How the proxy speaks TLS to clients: 1.2 and 1.3, HTTP/2 and HTTP/1.1.
pub(crate) fn server(identity: &Identity) -> Result<Arc<ServerConfig>, StartError> {
    let mut config = match identity {
        Identity::Files { certificate, key } => of_files(certificate, key)?,
        Identity::Made(config) => ServerConfig::clone(config),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn of_files(certificate: &Path, key: &Path) -> Result<ServerConfig, StartError> {
    let certificates = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| StartError::Pem {
        path: key.to_owned(),
        expected: "a private key (BEGIN PRIVATE KEY), not encrypted",
        got: error.to_string(),
    })?;
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(StartError::Identity)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(StartError::Identity)
}

/// How to speak TLS as a client that trusts so: 1.2 and 1.3.
///
/// # Errors
/// A file that cannot be read, or holds no certificates.
pub fn client(trust: &Trust) -> Result<ClientConfig, StartError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(StartError::Identity)?;
    let roots = match trust {
        Trust::Anyone => {
            let verifier = Arc::new(Unverified(provider));
            return Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth());
        }
        Trust::System => system_roots(),
        Trust::Authorities(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| StartError::Pem {
                    path: path.clone(),
                    expected: "certificates of authorities",
                    got: error.to_string(),
                })?;
            }
            roots
        }
    };
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The authorities of the system. It is an error to have none only once an upstream is to be verified.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn read(path: &Path) -> Result<Vec<u8>, StartError> {
    std::fs::read(path).map_err(|source| StartError::File {
        path: path.to_owned(),
        expected: "a readable PEM file",
        source,
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let wrong = |got| StartError::Pem { path: path.to_owned(), expected: "certificates (BEGIN CERTIFICATE)", got };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match found {
        Ok(found) if found.is_empty() => Err(wrong("none".to_owned())),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Accepts any certificate, as configured.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
