//! Access to a page, and its authenticity: its token and its certificate.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use brunt_testbed::tls::{Identity, Pem, Tls, certificate_fingerprint, server_config};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::ServerConfig;
use subtle::ConstantTimeEq as _;

use crate::args::bench::LiveServing;

/// The bytes of randomness in a token: nobody guesses 128 bits.
const TOKEN_BYTES: usize = 16;

/// The beginning of the path of a protected page.
pub struct Token(String);

impl Token {
    /// A new random token.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| anyhow!("the system has no randomness for a token"))?;
        Ok(Self(format!("{:032x}", u128::from_be_bytes(bytes))))
    }

    #[cfg(test)]
    pub fn known(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The rest of `path` behind the token, if it begins with it; every wrong one takes the same time.
    pub fn strip<'a>(&self, path: &'a str) -> Option<&'a str> {
        let after = path.strip_prefix('/')?;
        let (given, rest) = after.split_at(after.find('/').unwrap_or(after.len()));
        bool::from(given.as_bytes().ct_eq(self.0.as_bytes())).then_some(rest)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// How a page speaks TLS.
pub struct PageIdentity {
    pub config: Arc<ServerConfig>,
    /// SHA-256 of the certificate, as browsers show it.
    pub fingerprint: String,
}

/// The identity that the flags ask for, if they do.
///
/// # Errors
/// A file that cannot be read or holds something else; a certificate that cannot be made.
pub fn identity(tls: &LiveServing, address: SocketAddr) -> Result<Option<PageIdentity>> {
    let (what, identity) = match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => (
            "--live-cert",
            Identity::Given { certificate: Pem::File(certificate.clone()), key: Pem::File(key.clone()) },
        ),
        _ if tls.made => ("--live-tls", Identity::GeneratedFor(vec![address.ip().to_string()])),
        _ => return Ok(None),
    };
    let (config, pem) = server_config(&Tls { identity, client_ca: None }).context(what)?;
    let fingerprint = certificate_fingerprint(&pem).context(what)?;
    Ok(Some(PageIdentity { config, fingerprint }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_the_whole_token() {
        let token = Token::known("abc");
        for (path, rest) in [
            ("/abc/", Some("/")),
            ("/abc/events", Some("/events")),
            ("/abc", Some("")),
            ("/", None),
            ("/ab/", None),
            ("/abcd/", None),
            ("/ABC/", None),
            ("//abc/", None),
            ("/events", None),
            ("/x/abc/", None),
            ("abc/", None),
            ("", None),
        ] {
            assert_eq!(token.strip(path), rest, "{path}");
        }
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let [a, b] = [(); 2].map(|()| Token::random().unwrap());
        assert_eq!((a.as_str().len(), a.as_str() == b.as_str()), (32, false));
        assert!(!format!("{a:?}").contains(a.as_str()));
    }
}
