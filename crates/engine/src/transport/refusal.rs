//! Reasons for failures of TLS with a target, by their most likely mistake, with the way out.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError, Error, OtherError};

/// A self-signed certificate that no trusted certificate vouches for.
pub(super) struct SelfSigned;

impl SelfSigned {
    const WORDS: &str = "self-signed";
}

impl fmt::Debug for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS)
    }
}

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS)
    }
}

impl std::error::Error for SelfSigned {}

/// [`SelfSigned`] as an error of TLS.
pub(super) fn self_signed() -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(SelfSigned))))
}

/// A certificate of version 1, which has no extensions, so that nothing says which names it is for.
pub(super) struct VersionOne;

impl VersionOne {
    const WORDS: &str = "of X.509 version 1";
}

impl fmt::Debug for VersionOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS)
    }
}

impl fmt::Display for VersionOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS)
    }
}

impl std::error::Error for VersionOne {}

/// [`VersionOne`] as an error of TLS.
pub(super) fn version_1() -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(VersionOne))))
}

/// Around the reason in [`Told`].
const TOLD: [char; 2] = ['⟦', '⟧'];

/// A refused certificate with its reason in brunt's words, which quinn-proto passes on as text, and the rest of the library's error not.
struct Told(String);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [begin, end] = TOLD;
        write!(f, "{begin}{}{end}", self.0)
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Told {}

/// An error that says what [`reason`] says of this one where it is about the server's certificate: for QUIC.
pub(super) fn told(error: Error) -> Error {
    match error {
        Error::InvalidCertificate(problem) => {
            let told = Told(certificate(&problem));
            Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(told))))
        }
        other => other,
    }
}

/// The reason for which a handshake or a record was not understood; `bytes` are those that came.
pub(crate) fn reason(error: &Error, bytes: &[u8]) -> String {
    match error {
        Error::InvalidMessage(_) if bytes.starts_with(b"HTTP/") => {
            "the target answers in plain HTTP, without TLS: use http:// (or ws://)".to_owned()
        }
        Error::InvalidMessage(problem) => {
            format!("the target's answer is not TLS ({problem:?}): use the URL's scheme without TLS, such as http://")
        }
        Error::InvalidCertificate(problem) => certificate(problem),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) | Error::NoApplicationProtocol => {
            "the target takes no protocol that brunt offers (ALPN): try --http auto".to_owned()
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the target wants a client's certificate: give --cert and --key".to_owned()
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            "the target knows no host of that name: give the one that it has with --sni".to_owned()
        }
        Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the target speaks neither TLS 1.2 nor 1.3, and brunt nothing older".to_owned()
        }
        Error::AlertReceived(alert) => alert_received(*alert),
        other => other.to_string(),
    }
}

/// The same where the TLS library's error is only known by its words: quinn-proto keeps nothing else of it.
pub(crate) fn with_way_out(words: Cow<'static, str>) -> Cow<'static, str> {
    let [begin, end] = TOLD;
    if let Some((_, told)) = words.split_once(begin)
        && let Some((told, _)) = told.rsplit_once(end)
    {
        return told.to_owned().into();
    }
    let known = [
        ("alert NoApplicationProtocol", Error::NoApplicationProtocol),
        ("alert CertificateRequired", Error::AlertReceived(AlertDescription::CertificateRequired)),
        ("alert UnrecognisedName", Error::AlertReceived(AlertDescription::UnrecognisedName)),
        ("alert HandshakeFailure", Error::AlertReceived(AlertDescription::HandshakeFailure)),
    ];
    match known.into_iter().find(|(part, _)| words.contains(part)) {
        Some((_, error)) => reason(&error, &[]).into(),
        None => words,
    }
}

/// What a server means by an alert that has no way out of its own.
fn alert_received(alert: AlertDescription) -> String {
    let of_client = |problem: &str| {
        format!("the target refuses the client's certificate, which {problem}: see --cert and --cacert")
    };
    match alert {
        AlertDescription::HandshakeFailure => {
            "the target refuses the handshake: it wants a client's certificate (--cert), or shares no cipher or signature algorithm with brunt (P-521 keys: give -k)".to_owned()
        }
        AlertDescription::UnknownCA => of_client("an authority has signed that it does not know"),
        AlertDescription::CertificateExpired => of_client("has expired"),
        AlertDescription::CertificateRevoked => of_client("is revoked"),
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => of_client("is missing or not valid for it"),
        AlertDescription::UnsupportedCertificate => of_client("is of a kind that it does not take"),
        AlertDescription::AccessDenied => of_client("may not do this"),
        AlertDescription::InsufficientSecurity => "the target refuses the handshake: it wants stronger ciphers than brunt offers".to_owned(),
        AlertDescription::InternalError => "the target gives up the handshake for an error of its own: see its log".to_owned(),
        other => format!("the target ends TLS with the alert {other:?}"),
    }
}

fn certificate(problem: &CertificateError) -> String {
    match problem {
        CertificateError::Other(OtherError(cause)) if cause.is::<SelfSigned>() => {
            "the certificate is self-signed: -k takes it unverified, --cacert FILE trusts it".to_owned()
        }
        CertificateError::Other(OtherError(cause)) if cause.is::<VersionOne>() => {
            "the certificate is of X.509 version 1, which names no host: one of version 3 does (subjectAltName), and -k takes it unverified".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "the certificate's authority is not trusted: --cacert FILE trusts it, -k takes \
                                            any certificate unverified"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate has expired: renew it, or take it unverified with -k".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet: check the clocks, or take it unverified with -k".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            /// The most names that are listed.
            const MOST: usize = 3;
            let names: Vec<_> = presented.iter().take(MOST).map(|name| plain(name)).collect();
            let more = if presented.len() > MOST { ", …" } else { "" };
            format!(
                "the certificate is not for {} but for {}{more}: aim at a name that it has, ask for one with --sni, or take \
                 it unverified with -k",
                expected.to_str(),
                if names.is_empty() { "no name".to_owned() } else { names.join(", ") }
            )
        }
        CertificateError::NotValidForName => {
            "the certificate is for another name: ask for that with --sni, or take it unverified with -k".to_owned()
        }
        other => format!("the certificate is not valid ({other}): -k takes it unverified"),
    }
}

/// `localhost` of `DnsName("localhost")`.
fn plain(name: &str) -> &str {
    name.split_once("(\"").and_then(|(_, rest)| rest.strip_suffix("\")")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use rustls::InvalidMessage;

    use super::*;

    #[test]
    fn a_mistake_has_its_name_and_its_way_out() {
        let told = |error: Error, bytes: &[u8]| reason(&error, bytes);
        let plain = told(InvalidMessage::InvalidContentType.into(), b"HTTP/1.1 400 Bad Request");
        assert!(plain.contains("plain HTTP") && plain.contains("use http://"), "{plain}");
        assert!(told(InvalidMessage::InvalidContentType.into(), b"+OK").contains("not TLS"));
        assert!(told(self_signed(), b"").contains("self-signed: -k"));
        assert!(told(version_1(), b"").contains("X.509 version 1"));
        assert!(
            told(Error::AlertReceived(AlertDescription::HandshakeFailure), b"")
                .contains("client's certificate (--cert)")
        );
        assert!(
            told(Error::AlertReceived(AlertDescription::UnknownCA), b"").contains("refuses the client's certificate")
        );
        assert!(told(Error::AlertReceived(AlertDescription::DecodeError), b"").contains("the alert DecodeError"));
        assert!(told(Error::AlertReceived(AlertDescription::NoApplicationProtocol), b"").contains("--http auto"));
        assert!(told(Error::InvalidCertificate(CertificateError::Expired), b"").contains("has expired"));
    }

    #[test]
    fn a_refused_certificate_has_the_same_words_over_quic() {
        let name = rustls::pki_types::ServerName::try_from("other.example").unwrap();
        let presented = vec!["DnsName(\"localhost\")".to_owned()];
        let mismatch = CertificateError::NotValidForNameContext { expected: name, presented };
        for error in [
            Error::InvalidCertificate(mismatch),
            Error::InvalidCertificate(CertificateError::UnknownIssuer),
            self_signed(),
            version_1(),
        ] {
            let words = told(error.clone()).to_string();
            assert_eq!(with_way_out(words.into()), reason(&error, b""));
        }
        let alert = Error::AlertReceived(AlertDescription::UnknownCA);
        assert_eq!(told(alert.clone()), alert);
    }

    #[test]
    fn names_of_certificates_are_shown_plainly() {
        assert_eq!(plain("DnsName(\"localhost\")"), "localhost");
        assert_eq!(plain("anything"), "anything");
    }
}
