//! JSON Web Tokens (RFC 7515, RFC 7519), which `brunt.jwt` signs and reads.

use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bstr::BStr;
use mlua::{Lua, LuaString, Table};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;

use super::digests::{Algorithm as Digest, base64_decode, told};

/// The most private keys that a state keeps ready.
const MOST_KEYS: usize = 16;

/// Why a token cannot be signed or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    /// An unknown name of an algorithm.
    #[error(
        "there is no algorithm '{0}'; there are HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, ES256, \
         ES384 and EdDSA"
    )]
    Algorithm(String),
    /// A key that is not a private key in PEM.
    #[error(
        "{algorithm} takes a private key in PEM, such as a file that begins with -----BEGIN PRIVATE KEY-----, and this is none"
    )]
    NoPem {
        /// The algorithm.
        algorithm: String,
    },
    /// A private key in a form that cannot be read.
    #[error("the key is in a form that cannot be read: openssl pkcs8 -topk8 -nodes -in KEY.pem writes it in PKCS #8")]
    NotPkcs8,
    /// A private key that does not fit the algorithm.
    #[error("the key cannot sign by {algorithm}: {reason}")]
    Key {
        /// The algorithm.
        algorithm: String,
        /// The reason, from ring.
        reason: String,
    },
    /// A signature that could not be made.
    #[error("the key could not sign by {algorithm}")]
    Signing {
        /// The algorithm.
        algorithm: String,
    },
    /// A text that is not a token.
    #[error("it is not a token: a token has three parts with dots between them, header, claims and signature")]
    Parts,
    /// A part of a token that is not JSON in base64url.
    #[error("it is not a token: its {part} is not JSON in base64url")]
    Part {
        /// The part.
        part: &'static str,
    },
}

/// A key that can sign.
enum Key {
    Rsa(Box<RsaKeyPair>, &'static dyn RsaEncoding),
    Ecdsa(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
}

/// Private keys by algorithm and PEM. Each is read and checked once, as that takes as long as signing.
#[derive(Default)]
pub(super) struct Keys(Mutex<Vec<(String, Vec<u8>, Key)>>);

impl Keys {
    /// The signed token of a header and claims, both JSON.
    pub(super) fn sign(&self, algorithm: &str, key: &[u8], header: &[u8], claims: &[u8]) -> Result<String, TokenError> {
        let mut token = URL_SAFE_NO_PAD.encode(header);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let digest = match algorithm {
            "HS256" => Some(Digest::Sha256),
            "HS384" => Some(Digest::Sha384),
            "HS512" => Some(Digest::Sha512),
            _ => None,
        };
        let signature = match digest {
            Some(digest) => digest.hmac(key, token.as_bytes()),
            None => self.signature(algorithm, key, token.as_bytes())?,
        };
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }

    fn signature(&self, algorithm: &str, pem: &[u8], message: &[u8]) -> Result<Vec<u8>, TokenError> {
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut at = known.iter().position(|(name, known, _)| name == algorithm && known == pem);
        if at.is_none() {
            let key = Key::read(algorithm, pem)?;
            if known.len() >= MOST_KEYS {
                known.remove(0);
            }
            known.push((algorithm.to_owned(), pem.to_vec(), key));
            at = Some(known.len() - 1);
        }
        let failed = || TokenError::Signing { algorithm: algorithm.to_owned() };
        let (_, _, key) = at.and_then(|at| known.get(at)).ok_or_else(failed)?;
        key.sign(message).ok_or_else(failed)
    }
}

impl Key {
    fn read(algorithm: &str, pem: &[u8]) -> Result<Self, TokenError> {
        let rsa = |encoding: &'static dyn RsaEncoding| (Some(encoding), None);
        let ecdsa = |algorithm| (None, Some(algorithm));
        let (rsa, ecdsa): (Option<&'static dyn RsaEncoding>, Option<&'static EcdsaSigningAlgorithm>) = match algorithm {
            "RS256" => rsa(&RSA_PKCS1_SHA256),
            "RS384" => rsa(&RSA_PKCS1_SHA384),
            "RS512" => rsa(&RSA_PKCS1_SHA512),
            "PS256" => rsa(&RSA_PSS_SHA256),
            "PS384" => rsa(&RSA_PSS_SHA384),
            "PS512" => rsa(&RSA_PSS_SHA512),
            "ES256" => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
            "ES384" => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
            "EdDSA" => (None, None),
            other => return Err(TokenError::Algorithm(other.to_owned())),
        };
        let der =
            PrivateKeyDer::from_pem_slice(pem).map_err(|_| TokenError::NoPem { algorithm: algorithm.to_owned() })?;
        let refused = |error: ring::error::KeyRejected| TokenError::Key {
            algorithm: algorithm.to_owned(),
            reason: error.to_string(),
        };
        match (rsa, ecdsa, &der) {
            (Some(encoding), _, PrivateKeyDer::Pkcs8(der)) => {
                let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(refused)?;
                Ok(Self::Rsa(Box::new(key), encoding))
            }
            (Some(encoding), _, PrivateKeyDer::Pkcs1(der)) => {
                let key = RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(refused)?;
                Ok(Self::Rsa(Box::new(key), encoding))
            }
            (_, Some(curve), PrivateKeyDer::Pkcs8(der)) => {
                let key = EcdsaKeyPair::from_pkcs8(curve, der.secret_pkcs8_der(), &SystemRandom::new());
                Ok(Self::Ecdsa(Box::new(key.map_err(refused)?)))
            }
            (None, None, PrivateKeyDer::Pkcs8(der)) => {
                let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der());
                Ok(Self::Ed25519(Box::new(key.map_err(refused)?)))
            }
            _ => Err(TokenError::NotPkcs8),
        }
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key, encoding) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(*encoding, &random, message, &mut signature).ok()?;
                Some(signature)
            }
            Self::Ecdsa(key) => Some(key.sign(&random, message).ok()?.as_ref().to_vec()),
            Self::Ed25519(key) => Some(key.sign(message).as_ref().to_vec()),
        }
    }
}

/// The claims and the header of a token, as JSON; the signature is not checked.
pub(super) fn read(token: &[u8]) -> Result<(Vec<u8>, Vec<u8>), TokenError> {
    let parts: Vec<_> = token.split(|byte| *byte == b'.').collect();
    let [header, claims, _] = parts.as_slice() else { return Err(TokenError::Parts) };
    let part = |name, text: &[u8]| {
        let bytes = base64_decode(text).ok();
        let json = bytes.filter(|bytes| serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok());
        json.ok_or(TokenError::Part { part: name })
    };
    Ok((part("claims", claims)?, part("header", header)?))
}

/// Adds the library's functions for tokens.
pub(super) fn add(lua: &Lua, table: &Table) -> mlua::Result<()> {
    let keys = Keys::default();
    let sign =
        lua.create_function(move |lua, (name, key, header, claims): (String, LuaString, LuaString, LuaString)| {
            told(lua, keys.sign(&name, &key.as_bytes(), &header.as_bytes(), &claims.as_bytes()))
        })?;
    table.raw_set("token_sign", sign)?;
    let read = lua.create_function(|lua, token: LuaString| {
        Ok(match read(&token.as_bytes()) {
            Ok((claims, header)) => {
                let text = |json| lua.create_string(BStr::new(json)).map(Some);
                (None, text(&claims)?, text(&header)?)
            }
            Err(problem) => (Some(problem.to_string()), None, None),
        })
    })?;
    table.raw_set("token_read", read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7515 §A.1.
    #[test]
    fn a_token_is_that_of_its_standard() {
        let key =
            base64_decode(b"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow");
        let header = b"{\"typ\":\"JWT\",\r\n \"alg\":\"HS256\"}";
        let claims = b"{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";
        let token = Keys::default().sign("HS256", &key.unwrap(), header, claims).unwrap();
        assert!(token.ends_with(".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"), "{token}");
        assert_eq!(read(token.as_bytes()), Ok((claims.to_vec(), header.to_vec())));
    }

    #[test]
    fn private_keys_sign_what_their_public_keys_verify() {
        use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let public = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &SystemRandom::new());
        let public = public.unwrap().public_key().as_ref().to_vec();
        let body = base64::engine::general_purpose::STANDARD.encode(pkcs8.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
        let keys = Keys::default();
        for _ in 0..2 {
            let token = keys.sign("ES256", pem.as_bytes(), b"{}", b"{}").unwrap();
            let (message, signature) = token.rsplit_once('.').unwrap();
            let signature = base64_decode(signature.as_bytes()).unwrap();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &public).verify(message.as_bytes(), &signature).unwrap();
        }
        assert_eq!(keys.0.lock().unwrap().len(), 1, "a key is read once");
        let error = keys.sign("RS256", pem.as_bytes(), b"{}", b"{}").unwrap_err();
        assert!(matches!(error, TokenError::Key { .. }), "{error}");
    }

    #[test]
    fn what_cannot_sign_is_refused() {
        let keys = Keys::default();
        let error = |algorithm: &str, key: &str| keys.sign(algorithm, key.as_bytes(), b"{}", b"{}").unwrap_err();
        assert!(matches!(error("none", ""), TokenError::Algorithm(_)));
        assert!(matches!(error("ES256", "secret"), TokenError::NoPem { .. }));
        let sec1 = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";
        assert_eq!(error("ES256", sec1), TokenError::NotPkcs8);
    }

    #[test]
    fn what_is_no_token_is_refused() {
        assert_eq!(read(b"a.b"), Err(TokenError::Parts));
        assert_eq!(read(b"e30.!.x"), Err(TokenError::Part { part: "claims" }));
        assert_eq!(read(b"eA.e30.x"), Err(TokenError::Part { part: "header" }));
    }
}
