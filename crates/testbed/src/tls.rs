//! TLS for the target: certificates made on the spot or given, and client certificates if wanted.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// How a server speaks TLS: 1.2 and 1.3, ALPN `http/1.1`, session resumption by tickets.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// The server's own certificate.
    pub identity: Identity,
    /// Certificates of the authorities of which a client must show a certificate; `None` to ask for
    /// none.
    pub client_ca: Option<Pem>,
}

/// The certificate that a server shows.
#[derive(Debug, Clone, Default)]
pub enum Identity {
    /// One made at the start, for `localhost`, 127.0.0.1 and `::1`, signed by itself: a client trusts
    /// it by taking it for a root ([`Server::certificate_pem`](crate::server::Server::certificate_pem)).
    #[default]
    Generated,
    /// The same for other names and addresses besides.
    GeneratedFor(Vec<String>),
    /// One that is given.
    Given {
        /// The certificate and what leads from it to its root.
        certificate: Pem,
        /// Its private key: PKCS #8, PKCS #1 or SEC 1.
        key: Pem,
    },
}

/// Certificates or a key in PEM (RFC 7468).
#[derive(Clone)]
pub enum Pem {
    /// To be read from this file.
    File(PathBuf),
    /// The text itself.
    Text(String),
}

impl std::fmt::Debug for Pem {
    /// Leaves the text out, which may be a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Pem {
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Text(_) => "the PEM text given".to_owned(),
        }
    }

    fn read(&self) -> Result<String, TlsError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => {
                std::fs::read_to_string(path).map_err(|source| TlsError::Read { path: path.clone(), source })
            }
        }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let wrong = |got| TlsError::Pem { name: self.name(), expected: "certificates (BEGIN CERTIFICATE)", got };
        let text = self.read()?;
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
        match read {
            Ok(certificates) if certificates.is_empty() => Err(wrong("none".to_owned())),
            Ok(certificates) => Ok(certificates),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(self.read()?.as_bytes()).map_err(|error| TlsError::Pem {
            name: self.name(),
            expected: "a private key (BEGIN PRIVATE KEY), not encrypted",
            got: error.to_string(),
        })
    }
}

/// Why a server cannot speak TLS as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read {}: {source}; give the path of a readable PEM file", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A PEM text does not hold what it should.
    #[error("expected {expected} in {name}, got: {got}")]
    Pem {
        /// The file, or that it was a text.
        name: String,
        /// What was looked for.
        expected: &'static str,
        /// What was found.
        got: String,
    },
    /// Certificate and key do not work, by themselves or together.
    #[error("the certificate and key cannot be used: {0}; check that they belong together")]
    Identity(#[source] rustls::Error),
    /// The client authorities cannot be used.
    #[error("the client CA certificates cannot be used: {0}; give the PEM of the authority that signs them")]
    ClientCa(String),
    /// Making a certificate failed.
    #[error("cannot make a certificate: {0}; give a certificate and key instead")]
    Generate(#[from] rcgen::Error),
}

/// A certificate and its key, made on the spot, in PEM.
#[derive(Clone)]
pub struct Credentials {
    /// The certificate of the authority that signed it; the certificate itself if that was nobody.
    pub authority_pem: String,
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key (PKCS #8).
    pub key_pem: String,
}

impl std::fmt::Debug for Credentials {
    /// Leaves the key out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Made").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

/// Makes a self-signed server certificate for `localhost`, 127.0.0.1 and `::1`.
///
/// # Errors
/// Those of making keys: the system has no randomness, say.
pub fn server_certificate() -> Result<Credentials, TlsError> {
    server_certificate_for(&[])
}

/// The same for other names and addresses besides.
fn server_certificate_for(others: &[String]) -> Result<Credentials, TlsError> {
    let key = KeyPair::generate()?;
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let others = others.iter().filter(|other| !names.contains(other)).cloned();
    let mut params = CertificateParams::new(names.iter().cloned().chain(others).collect::<Vec<_>>())?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "brunt testbed");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate_pem = params.self_signed(&key)?.pem();
    Ok(Credentials { authority_pem: certificate_pem.clone(), certificate_pem, key_pem: key.serialize_pem() })
}

/// Makes an authority and a client certificate that it has signed, for servers with
/// [`Tls::client_ca`].
///
/// # Errors
/// Those of [`server_certificate`].
pub fn client_certificate(common_name: &str) -> Result<Credentials, TlsError> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(rcgen::DnType::CommonName, "brunt testbed client authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Credentials { authority_pem: issuer.pem(), certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
}

/// The SHA-256 of the first certificate in a PEM text, as browsers show it: `AB:CD:…`.
///
/// # Errors
/// When there is no certificate in it.
pub fn certificate_fingerprint(pem: &str) -> Result<String, TlsError> {
    let certificates = Pem::Text(pem.to_owned()).certificates()?;
    let der = certificates.first().map_or(&[][..], |certificate| certificate.as_ref());
    let digest = ::ring::digest::digest(&::ring::digest::SHA256, der);
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"))
}

/// The configuration for rustls, and the server's certificate in PEM.
///
/// # Errors
/// Files that cannot be read or hold something else, and what rustls will not take.
pub fn server_config(tls: &Tls) -> Result<(Arc<ServerConfig>, String), TlsError> {
    let (certificate, key) = match &tls.identity {
        Identity::Given { certificate, key } => (certificate.clone(), key.clone()),
        Identity::Generated | Identity::GeneratedFor(_) => {
            let others = if let Identity::GeneratedFor(names) = &tls.identity { names.as_slice() } else { &[] };
            let made = server_certificate_for(others)?;
            (Pem::Text(made.certificate_pem), Pem::Text(made.key_pem))
        }
    };
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Identity)?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for certificate in authorities.certificates()? {
                roots.add(certificate).map_err(|error| TlsError::ClientCa(error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| TlsError::ClientCa(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(certificate.certificates()?, key.key()?).map_err(TlsError::Identity)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = ring::Ticketer::new().map_err(TlsError::Identity)?;
    Ok((Arc::new(config), certificate.read()?))
}
