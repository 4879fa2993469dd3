//! TLS for clients, by rustls: the configuration of a run, made once for each worker.

use std::cell::Cell;
use std::sync::Arc;

use super::refusal;
use brunt_plan::environment::Environment;
use brunt_plan::plan::{Plan, Tls};
use brunt_plan::secret::SecretError;
use brunt_plan::setting::Setting;
use brunt_plan::target::without_zone;
use brunt_protocol::is_over_quic;
use brunt_quic::{ClientSetup, Limits};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// TLS as the plan wants it is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A PEM text that should hold something does not.
    #[error("{setting}: expected {expected} in PEM: {problem}")]
    Pem {
        /// Which text.
        setting: Setting,
        /// The content that was expected.
        expected: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// The system has no trusted certificates.
    #[error("no trusted certificates were found on this system ({problem})")]
    NoRoots {
        /// The problem, with the places tried.
        problem: String,
    },
    /// The name to verify is no name.
    #[error("'{name}' cannot be a TLS server name")]
    ServerName {
        /// The name.
        name: String,
    },
    /// The client's certificate was given without its key, or the key without the certificate.
    #[error("{given} needs {missing}")]
    Half {
        /// The setting that was given.
        given: Setting,
        /// The setting that is missing.
        missing: Setting,
    },
    /// The client's key is a reference to the environment, and cannot be had.
    #[error("the client's private key: {0}")]
    Key(SecretError),
    /// The client's certificate and key do not belong together.
    #[error(
        "the client's certificate and private key: they do not fit each other, or the key is of no kind known here: \
         {problem}"
    )]
    Mismatch {
        /// What is wrong.
        problem: String,
    },
    /// The TLS library refuses.
    #[error("TLS cannot be set up: {problem}")]
    Setup {
        /// The library's words.
        problem: String,
    },
}

/// Why a client's key of the curve P-521 is refused.
const P521: &str = "its curve is P-521; keys of RSA, P-256, P-384 and Ed25519 are taken";

/// Whether a key says that it is of the curve P-521: by the object identifier of secp521r1 (RFC 5480, section 2.1.1.1).
fn is_p521(key: &PrivateKeyDer<'_>) -> bool {
    key.secret_der().windows(5).any(|id| id == [0x2b, 0x81, 0x04, 0x00, 0x23])
}

/// How TLS connections of a run are made.
#[derive(Debug, Clone)]
pub(crate) struct TlsRoute {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
    /// QUIC, where it carries TLS.
    pub(crate) quic: Option<ClientSetup>,
    /// Whether sessions are resumed.
    pub(crate) resumes: bool,
    /// Whether connections share sockets, so that each is known by its place.
    pub(crate) shares_sockets: bool,
}

thread_local! {
    /// How many certificates this thread has looked at: a handshake without one resumes a session (RFC 8446, section 2.2).
    static CERTIFICATES_SEEN: Cell<u64> = const { Cell::new(0) };
}

/// How many certificates of servers this thread has looked at.
pub(crate) fn certificates_seen() -> u64 {
    CERTIFICATES_SEEN.get()
}

impl TlsRoute {
    /// Reads the TLS part of `plan`.
    ///
    /// With `safe` calls, connections over QUIC may send early data, if the plan wants that.
    pub(crate) fn prepare(plan: &Plan, alpn: Vec<Vec<u8>>, safe: bool) -> Result<Self, TlsError> {
        let options = &plan.transport.tls;
        let name = options.server_name.as_deref().unwrap_or(without_zone(&plan.target.host));
        let server_name =
            ServerName::try_from(name.to_owned()).map_err(|_| TlsError::ServerName { name: name.to_owned() })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| setup(&e))?;
        let trust = if options.insecure { Trust::Anyone } else { known(options, &provider)? };
        let quic = is_over_quic(&alpn);
        let verifier = Arc::new(Verifier { trust, provider, is_over_quic: quic });
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match client_auth(options, &plan.environment)? {
            Some((chain, key)) => {
                let is_p521 = is_p521(&key);
                builder.with_client_auth_cert(chain, key).map_err(|error| TlsError::Mismatch {
                    problem: if is_p521 { P521.to_owned() } else { error.to_string() },
                })?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = alpn;
        config.enable_early_data = quic && safe && options.early_data;
        if options.no_resumption {
            config.resumption = Resumption::disabled();
        }
        let resumes = !options.no_resumption;
        let shares_sockets = plan.transport.udp_sockets > 0;
        Self { config: Arc::new(config), server_name, quic: None, resumes, shares_sockets }.over_quic(quic)
    }

    /// A route of this configuration.
    #[cfg(test)]
    pub(crate) fn of(config: Arc<ClientConfig>, server_name: ServerName<'static>) -> Self {
        Self { config, server_name, quic: None, resumes: true, shares_sockets: false }
    }

    /// The same over QUIC, if that is wanted.
    fn over_quic(mut self, quic: bool) -> Result<Self, TlsError> {
        if quic {
            let setup = ClientSetup::new(Arc::clone(&self.config), Limits::CLIENT);
            self.quic = Some(setup.map_err(|error| TlsError::Setup { problem: error.to_string() })?);
        }
        Ok(self)
    }

    /// The route for another worker, which resumes only its own sessions: workers share nothing per call.
    pub(crate) fn for_worker(&self) -> Self {
        if !self.resumes {
            return self.clone();
        }
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::in_memory_sessions(256);
        let own = Self { config: Arc::new(config), quic: None, ..self.clone() };
        // A configuration that QUIC took once is taken again.
        own.over_quic(self.quic.is_some()).unwrap_or_else(|_| self.clone())
    }
}

fn known(options: &Tls, provider: &Arc<CryptoProvider>) -> Result<Trust, TlsError> {
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(options)?), Arc::clone(provider))
        .build()
        .map_err(|e| setup(&e))?;
    let certificates = |pem| certificates(Setting::TrustedCertificates, pem);
    let trusted = options.trusted_pem.as_deref().map_or(Ok(Vec::new()), certificates)?;
    Ok(Trust::Known { authorities, trusted })
}

fn roots(options: &Tls) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = &options.trusted_pem {
        let setting = Setting::TrustedCertificates;
        for certificate in certificates(setting, pem)? {
            roots.add(certificate).map_err(|e| TlsError::Pem {
                setting,
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

/// The error of a TLS library that cannot be configured.
fn setup(error: &impl ToString) -> TlsError {
    TlsError::Setup { problem: error.to_string() }
}

fn certificates(setting: Setting, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let error = |problem: String| TlsError::Pem { setting, expected: "certificates", problem };
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(|e| error(e.to_string()))?;
    if chain.is_empty() {
        return Err(error("there is none".to_owned()));
    }
    Ok(chain)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_auth(options: &Tls, environment: &Environment) -> Result<Option<Identity>, TlsError> {
    let (chain, key) = match (&options.certificate_pem, &options.key_pem) {
        (None, None) => return Ok(None),
        (Some(chain), Some(key)) => (chain, key),
        (Some(_), None) => {
            return Err(TlsError::Half { given: Setting::ClientCertificate, missing: Setting::ClientKey });
        }
        (None, Some(_)) => {
            return Err(TlsError::Half { given: Setting::ClientKey, missing: Setting::ClientCertificate });
        }
    };
    let key = key.reveal(|name| environment.value(name)).map_err(TlsError::Key)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|e| TlsError::Pem {
        setting: Setting::ClientKey,
        expected: "a private key",
        problem: e.to_string(),
    })?;
    Ok(Some((certificates(Setting::ClientCertificate, chain)?, key)))
}

/// Whose certificates are taken.
#[derive(Debug)]
enum Trust {
    /// Everybody's, as an insecure plan asks for.
    Anyone,
    /// Certificates for which the trusted ones vouch, and the trusted ones themselves: a server that shows a trusted
    /// self-signed certificate is accepted, as OpenSSL does, though webpki accepts no authority's certificate as a
    /// server's.
    Known { authorities: Arc<WebPkiServerVerifier>, trusted: Vec<CertificateDer<'static>> },
}

impl Verifier {
    /// Whether a certificate vouches for itself: it is valid as its own authority, or is refused only for being an
    /// authority.
    fn is_self_signed(&self, certificate: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> bool {
        let mut roots = RootCertStore::empty();
        if roots.add(certificate.clone().into_owned()).is_err() {
            return false;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider)).build();
        let Ok(verifier) = verifier else { return false };
        let verified = verifier.verify_server_cert(certificate, &[], name, &[], now);
        !matches!(verified, Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)))
    }
}

/// Signatures that are taken where everybody is trusted, and cannot be checked: `ring` has no P-521.
const UNVERIFIED: [SignatureScheme; 1] = [SignatureScheme::ECDSA_NISTP521_SHA512];

impl Verifier {
    /// Checks a signature of the handshake. Where everybody is trusted it says nothing of who the server is: one that cannot be checked, as
    /// its certificate or its key is of a kind that is not known here, is no reason to refuse the server. A wrong one is.
    fn unless_anyone(
        &self,
        signature: &DigitallySignedStruct,
        verify: impl FnOnce() -> Result<HandshakeSignatureValid, rustls::Error>,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let trusts_anyone = matches!(self.trust, Trust::Anyone);
        if trusts_anyone && UNVERIFIED.contains(&signature.scheme) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        match verify() {
            Err(rustls::Error::InvalidCertificate(problem))
                if trusts_anyone && problem != CertificateError::BadSignature =>
            {
                Ok(HandshakeSignatureValid::assertion())
            }
            verified => verified,
        }
    }
}

/// Whether a certificate has no version field, which makes it one of version 1 (RFC 5280, section 4.1.2.1).
fn is_version_1(certificate: &CertificateDer<'_>) -> bool {
    /// What is in a sequence of DER.
    fn inside(der: &[u8]) -> Option<&[u8]> {
        let (&length, rest) = der.strip_prefix(&[0x30])?.split_first()?;
        let more = if length < 0x80 { 0 } else { usize::from(length & 0x7f) };
        rest.get(more..)
    }
    let first = inside(certificate).and_then(inside).and_then(<[u8]>::first);
    first.is_some_and(|tag| *tag != 0xa0)
}

/// Verifies servers. Signatures of the handshake are checked whoever is trusted, as far as they can be.
#[derive(Debug)]
struct Verifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
    /// Whether its errors travel through QUIC, which keeps nothing of them but their text.
    is_over_quic: bool,
}

impl Verifier {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Trust::Known { authorities, trusted } = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        match authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(_)) if is_version_1(end_entity) => Err(refusal::version_1()),
            // No error says that an authority shows its own certificate. Any other problem with it, such as its dates,
            // has an error of its own.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) if trusted.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_)))
                if self.is_self_signed(end_entity, server_name, now) =>
            {
                Err(refusal::self_signed())
            }
            verified => verified,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        CERTIFICATES_SEEN.set(CERTIFICATES_SEEN.get() + 1);
        let verified = self.verify(end_entity, intermediates, server_name, ocsp_response, now);
        if self.is_over_quic { verified.map_err(refusal::told) } else { verified }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.unless_anyone(signature, || verify_tls12_signature(message, certificate, signature, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.unless_anyone(signature, || verify_tls13_signature(message, certificate, signature, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let mut schemes = self.provider.signature_verification_algorithms.supported_schemes();
        if matches!(self.trust, Trust::Anyone) {
            schemes.extend(UNVERIFIED);
        }
        schemes
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// A self-signed authority's certificate for `localhost`, valid to the end of this year, in PEM.
    fn self_signed(last_year: i32) -> String {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(last_year, 12, 31);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    /// What comes of a server called `name` that shows `shown`, where `trusted` is trusted.
    fn verify(trusted: &str, shown: &str, name: &str) -> Result<(), String> {
        let options = Tls { trusted_pem: Some(trusted.to_owned()), ..Tls::default() };
        let provider = Arc::new(ring::default_provider());
        let trust = known(&options, &provider).unwrap();
        let shown = CertificateDer::from_pem_slice(shown.as_bytes()).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        Verifier { trust, provider, is_over_quic: false }
            .verify_server_cert(&shown, &[], &name, &[], UnixTime::now())
            .map(drop)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_of_p521_is_told_apart() {
        // The beginnings of keys in PKCS#8, by openssl.
        let p521 = [
            0x30, 0x81, 0xee, 2, 1, 0, 0x30, 0x10, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0,
            0x23,
        ];
        let p384 = [
            0x30, 0x81, 0xb6, 2, 1, 0, 0x30, 0x10, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0,
            0x22,
        ];
        let told = [p521, p384].map(|der| is_p521(&PrivateKeyDer::Pkcs8(der.to_vec().into())));
        assert_eq!(told, [true, false]);
    }

    #[test]
    fn a_self_signed_server_is_known_by_its_certificate() {
        let trusted = self_signed(2100);
        assert_eq!(verify(&trusted, &trusted, "localhost"), Ok(()));
    }

    #[test]
    fn a_certificate_of_version_1_is_called_so() {
        let third = CertificateDer::from_pem_slice(self_signed(2100).as_bytes()).unwrap();
        assert!(!is_version_1(&third));
        // SEQUENCE { SEQUENCE { INTEGER 1 (the serial number) … } }, in the short and the long form of a length.
        for first in [&b"\x30\x05\x30\x03\x02\x01\x01"[..], b"\x30\x82\x00\x07\x30\x82\x00\x03\x02\x01\x01"] {
            assert!(is_version_1(&CertificateDer::from(first)), "{first:x?}");
        }
        for none in [&b""[..], b"\x30", b"\x30\x84", b"\x30\x02\x30\x00", b"\x02\x01\x01"] {
            assert!(!is_version_1(&CertificateDer::from(none)), "{none:x?}");
        }
    }

    #[test]
    fn being_known_is_not_enough() {
        let (trusted, expired) = (self_signed(2100), self_signed(2001));
        assert!(verify(&trusted, &trusted, "other.example").unwrap_err().contains("not valid for name"));
        assert!(verify(&expired, &expired, "localhost").unwrap_err().contains("expired"));
        assert!(verify(&trusted, &self_signed(2100), "localhost").is_err(), "another of the same name");
    }
}
