//! TLS for clients, by rustls: the configuration of a run, made once for each worker.

use std::sync::Arc;

use brunt_model::plan::{Plan, Tls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// TLS as a plan wants it cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A PEM text that should hold something does not.
    #[error("{option}: expected {expected} in PEM: {problem}")]
    Pem {
        /// The command line's name for it.
        option: &'static str,
        /// What should be in it.
        expected: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The system trusts nobody.
    #[error(
        "no trusted certificates were found on this system ({problem}): install ca-certificates, name a file with \
         --cacert, or take any certificate with -k"
    )]
    NoRoots {
        /// What was tried.
        problem: String,
    },
    /// The name to verify is no name.
    #[error("'{name}' cannot be a TLS server name: give one with --sni")]
    ServerName {
        /// The name.
        name: String,
    },
    /// Certificate and key do not fit, or only one is there.
    #[error("--cert and --key: {0}")]
    ClientAuth(String),
}

/// How TLS connections of a run are made.
#[derive(Debug, Clone)]
pub(crate) struct TlsRoute {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
}

impl TlsRoute {
    /// Reads the TLS part of `plan`.
    pub(crate) fn prepare(plan: &Plan, alpn: Vec<Vec<u8>>) -> Result<Self, TlsError> {
        let options = &plan.transport.tls;
        let name = options.server_name.as_ref().unwrap_or(&plan.target.host);
        let server_name =
            ServerName::try_from(name.clone()).map_err(|_| TlsError::ServerName { name: name.clone() })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsError::ClientAuth(e.to_string()))?;
        let builder = if options.insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(TakeAny { provider }))
        } else {
            let roots = Arc::new(roots(options)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|e| TlsError::ClientAuth(e.to_string()))?;
            let trusted = options.trusted_pem.as_deref().map_or(Ok(Vec::new()), |pem| certificates("--cacert", pem))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(TakeTrusted { verifier, trusted }))
        };
        let mut config = match client_auth(options)? {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|e| {
                TlsError::ClientAuth(format!("they do not fit each other, or the key is of no kind known here: {e}"))
            })?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = alpn;
        Ok(Self { config: Arc::new(config), server_name })
    }

    /// The same for another worker, which keeps its own sessions for resumption: workers share nothing per call.
    pub(crate) fn for_worker(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = rustls::client::Resumption::in_memory_sessions(256);
        Self { config: Arc::new(config), server_name: self.server_name.clone() }
    }
}

fn roots(options: &Tls) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = &options.trusted_pem {
        for certificate in certificates("--cacert", pem)? {
            roots.add(certificate).map_err(|e| TlsError::Pem {
                option: "--cacert",
                expected: "certificates",
                problem: e.to_string(),
            })?;
        }
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let problems: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        let problem = if problems.is_empty() { "none installed".to_owned() } else { problems.join("; ") };
        return Err(TlsError::NoRoots { problem });
    }
    Ok(roots)
}

fn certificates(option: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let error = |problem: String| TlsError::Pem { option, expected: "certificates", problem };
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(|e| error(e.to_string()))?;
    if chain.is_empty() {
        return Err(error("there is none".to_owned()));
    }
    Ok(chain)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_auth(options: &Tls) -> Result<Option<Identity>, TlsError> {
    let (chain, key) = match (&options.certificate_pem, &options.key_pem) {
        (None, None) => return Ok(None),
        (Some(chain), Some(key)) => (chain, key),
        (Some(_), None) => return Err(TlsError::ClientAuth("a certificate without a key".to_owned())),
        (None, Some(_)) => return Err(TlsError::ClientAuth("a key without a certificate".to_owned())),
    };
    let key = key.reveal(|name| std::env::var(name).ok()).map_err(|e| TlsError::ClientAuth(e.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|e| TlsError::Pem {
        option: "--key",
        expected: "a private key",
        problem: e.to_string(),
    })?;
    Ok(Some((certificates("--cert", chain)?, key)))
}

/// Takes what the trusted certificates vouch for, and those themselves: a server that shows a self-signed certificate
/// is known by it, as it is to OpenSSL, though webpki takes no authority's certificate for a server's.
#[derive(Debug)]
struct TakeTrusted {
    verifier: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for TakeTrusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if verified.is_err() && self.trusted.contains(end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Takes any certificate, as asked for by `--insecure`; signatures of the handshake are still checked.
#[derive(Debug)]
struct TakeAny {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TakeAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
