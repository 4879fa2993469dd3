//! Digests, message authentication codes and encodings of bytes as text: the work behind `brunt.sha256` and its like.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, STANDARD, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use bstr::BStr;
use hmac::{KeyInit as _, Mac as _};
use md5::{Digest as _, Md5};
use mlua::{Lua, LuaString, Table};
use ring::{digest, hmac as ring_hmac};

/// Why a text has no bytes, or bytes have no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DigestError {
    /// An unknown name of an algorithm.
    #[error("there is no algorithm '{0}'; there are md5, sha1, sha256, sha384 and sha512")]
    Algorithm(String),
    /// An unknown name of an encoding.
    #[error("there is no encoding '{0}'; there are hex, base64, base64url and binary")]
    Encoding(String),
    /// An odd number of hexadecimal digits.
    #[error("hexadecimal digits come in pairs, and there are {0}")]
    OddHex(usize),
    /// A byte that is not a hexadecimal digit.
    #[error("byte {place} is not a hexadecimal digit")]
    Hex {
        /// Its place, from 1.
        place: usize,
    },
    /// A text that is not base64.
    #[error("it is not base64: {0}")]
    Base64(String),
    /// A percent sign without two digits.
    #[error("two hexadecimal digits must follow the % at byte {place}")]
    Percent {
        /// Its place, from 1.
        place: usize,
    },
}

/// Hash functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    /// The algorithm of this name in scripts.
    pub(super) fn named(name: &str) -> Result<Self, DigestError> {
        match name {
            "md5" => Ok(Self::Md5),
            "sha1" => Ok(Self::Sha1),
            "sha256" => Ok(Self::Sha256),
            "sha384" => Ok(Self::Sha384),
            "sha512" => Ok(Self::Sha512),
            other => Err(DigestError::Algorithm(other.to_owned())),
        }
    }

    /// The digest of `text`.
    pub(super) fn digest(self, text: &[u8]) -> Vec<u8> {
        let by_ring = |algorithm| digest::digest(algorithm, text).as_ref().to_vec();
        match self {
            Self::Md5 => Md5::digest(text).to_vec(),
            Self::Sha1 => by_ring(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            Self::Sha256 => by_ring(&digest::SHA256),
            Self::Sha384 => by_ring(&digest::SHA384),
            Self::Sha512 => by_ring(&digest::SHA512),
        }
    }

    /// The HMAC (RFC 2104) of `text`.
    pub(super) fn hmac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        let by_ring = |algorithm| ring_hmac::sign(&ring_hmac::Key::new(algorithm, key), text).as_ref().to_vec();
        match self {
            // Keys of any length are accepted, so there is always a code.
            Self::Md5 => hmac::Hmac::<Md5>::new_from_slice(key)
                .map(|code| code.chain_update(text).finalize().into_bytes().to_vec())
                .unwrap_or_default(),
            Self::Sha1 => by_ring(ring_hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
            Self::Sha256 => by_ring(ring_hmac::HMAC_SHA256),
            Self::Sha384 => by_ring(ring_hmac::HMAC_SHA384),
            Self::Sha512 => by_ring(ring_hmac::HMAC_SHA512),
        }
    }
}

/// Encodings of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Hex,
    Base64,
    Base64Url,
    Binary,
}

impl Encoding {
    /// The encoding of this name in scripts; hexadecimal without a name.
    pub(super) fn named(name: Option<&str>) -> Result<Self, DigestError> {
        match name {
            None | Some("hex") => Ok(Self::Hex),
            Some("base64") => Ok(Self::Base64),
            Some("base64url") => Ok(Self::Base64Url),
            Some("binary") => Ok(Self::Binary),
            Some(other) => Err(DigestError::Encoding(other.to_owned())),
        }
    }

    /// `bytes` in this encoding.
    pub(super) fn encode(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Hex => hex(bytes).into_bytes(),
            Self::Base64 => STANDARD.encode(bytes).into_bytes(),
            Self::Base64Url => URL_SAFE_NO_PAD.encode(bytes).into_bytes(),
            Self::Binary => bytes.to_vec(),
        }
    }
}

/// Hexadecimal digits, in lower case.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// The bytes of hexadecimal digits in upper or lower case.
pub(super) fn hex_decode(text: &[u8]) -> Result<Vec<u8>, DigestError> {
    if let Some(at) = text.iter().position(|byte| digit(*byte).is_none()) {
        return Err(DigestError::Hex { place: at + 1 });
    }
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(DigestError::OddHex(text.len()));
    }
    Ok(pairs.iter().filter_map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect())
}

/// The bytes of a base64 text: in either alphabet of RFC 4648, with padding or without.
pub(super) fn base64_decode(text: &[u8]) -> Result<Vec<u8>, DigestError> {
    const LENIENT: GeneralPurposeConfig = NO_PAD.with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const EITHER: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    let standard: Vec<u8> = text
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .collect();
    EITHER.decode(standard).map_err(|error| DigestError::Base64(error.to_string()))
}

/// A text for a URL: every byte but letters, digits, `-`, `.`, `_` and `~` as `%XX` (RFC 3986 §2.3).
pub(super) fn url_encode(text: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The bytes of a percent-encoded text. A `+` stays a plus: only forms use it for a space.
pub(super) fn url_decode(text: &[u8]) -> Result<Vec<u8>, DigestError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if *byte == b'%' {
            let digits = text.get(at + 1..at + 3).and_then(|digits| hex_decode(digits).ok());
            decoded.extend(digits.ok_or(DigestError::Percent { place: at + 1 })?);
            at += 3;
        } else {
            decoded.push(*byte);
            at += 1;
        }
    }
    Ok(decoded)
}

/// A problem, or nil and the bytes.
pub(super) type ToldBytes = (Option<String>, Option<LuaString>);

/// The result of a function, for a script.
pub(super) fn told(lua: &Lua, made: Result<impl AsRef<[u8]>, impl ToString>) -> mlua::Result<ToldBytes> {
    Ok(match made {
        Ok(bytes) => (None, Some(lua.create_string(BStr::new(&bytes))?)),
        Err(problem) => (Some(problem.to_string()), None),
    })
}

/// An algorithm, a key, a text and an encoding.
type Coded = (String, LuaString, LuaString, Option<String>);

/// Adds the library's functions for digests and encodings.
pub(super) fn add(lua: &Lua, table: &Table) -> mlua::Result<()> {
    let digest = lua.create_function(|lua, (name, text, encoding): (String, LuaString, Option<String>)| {
        let made = Algorithm::named(&name).and_then(|algorithm| {
            Ok(Encoding::named(encoding.as_deref())?.encode(&algorithm.digest(&text.as_bytes())))
        });
        told(lua, made)
    })?;
    table.raw_set("digest", digest)?;
    let hmac = lua.create_function(|lua, (name, key, text, encoding): Coded| {
        let made = Algorithm::named(&name).and_then(|algorithm| {
            Ok(Encoding::named(encoding.as_deref())?.encode(&algorithm.hmac(&key.as_bytes(), &text.as_bytes())))
        });
        told(lua, made)
    })?;
    table.raw_set("hmac", hmac)?;
    let encode = lua.create_function(|lua, (name, text): (String, LuaString)| {
        told(lua, Encoding::named(Some(&name)).map(|encoding| encoding.encode(&text.as_bytes())))
    })?;
    table.raw_set("encode", encode)?;
    let url_encode = lua.create_function(|lua, text: LuaString| lua.create_string(url_encode(&text.as_bytes())))?;
    table.raw_set("url_encode", url_encode)?;
    for (name, decode) in [
        ("hex_decode", hex_decode as fn(&[u8]) -> Result<Vec<u8>, DigestError>),
        ("base64_decode", base64_decode),
        ("url_decode", url_decode),
    ] {
        table.raw_set(name, lua.create_function(move |lua, text: LuaString| told(lua, decode(&text.as_bytes())))?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(algorithm: &str, text: &str) -> String {
        hex(&Algorithm::named(algorithm).unwrap().digest(text.as_bytes()))
    }

    /// The test vectors of RFC 1321 §A.5 and FIPS 180.
    #[test]
    fn digests_are_those_of_their_standards() {
        assert_eq!(sum("md5", "abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(sum("sha1", "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(sum("sha256", "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(sum("sha384", "abc").starts_with("cb00753f45a35e8bb5a03d699ac65007"));
        assert!(sum("sha512", "abc").starts_with("ddaf35a193617abacc417349ae204131"));
        let error = Algorithm::named("sha3").unwrap_err().to_string();
        assert_eq!(error, "there is no algorithm 'sha3'; there are md5, sha1, sha256, sha384 and sha512");
    }

    /// The second test case of RFC 2202 and RFC 4231, whose key is shorter than a block.
    #[test]
    fn codes_are_those_of_their_standards() {
        let code =
            |algorithm| hex(&Algorithm::named(algorithm).unwrap().hmac(b"Jefe", b"what do ya want for nothing?"));
        assert_eq!(code("md5"), "750c783e6ab0b503eaa86e310a5db738");
        assert_eq!(code("sha1"), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        assert_eq!(code("sha256"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert!(code("sha384").starts_with("af45d2e376484031617f78d2b58a6b1b"));
        assert!(code("sha512").starts_with("164b7a7bfcf819e2e395fbe73b56e0a3"));
    }

    #[test]
    fn bytes_come_back_from_their_texts() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(hex_decode(hex(&bytes).to_uppercase().as_bytes()), Ok(bytes.clone()));
        assert_eq!(url_decode(url_encode(&bytes).as_bytes()), Ok(bytes.clone()));
        for encoding in [Encoding::Base64, Encoding::Base64Url] {
            assert_eq!(base64_decode(&encoding.encode(&bytes)), Ok(bytes.clone()), "{encoding:?}");
        }
        assert_eq!(url_encode("a b&c=ä/~".as_bytes()), "a%20b%26c%3D%C3%A4%2F~");
        assert_eq!(Encoding::Base64Url.encode(b"\xfb\xff"), b"-_8");
        assert_eq!(base64_decode(b"+/8="), Ok(vec![0xfb, 0xff]));
        assert_eq!(base64_decode(b"-_8"), Ok(vec![0xfb, 0xff]));
    }

    #[test]
    fn texts_that_stand_for_no_bytes_are_refused() {
        assert_eq!(hex_decode(b"abc"), Err(DigestError::OddHex(3)));
        assert_eq!(hex_decode(b"ax"), Err(DigestError::Hex { place: 2 }));
        assert_eq!(url_decode(b"a%2"), Err(DigestError::Percent { place: 2 }));
        assert_eq!(url_decode(b"%+1"), Err(DigestError::Percent { place: 1 }));
        assert!(base64_decode(b"a").unwrap_err().to_string().starts_with("it is not base64: "));
        assert_eq!(Encoding::named(Some("hax")), Err(DigestError::Encoding("hax".to_owned())));
    }
}
