//! Bytes in scripts: buffers, encodings, digests.
#![allow(unsafe_code)]

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use brunt_protocol::scenario::Value as Plain;
use hmac::{KeyInit, Mac};
use md5::Digest;
use ring::rand::SecureRandom as _;
use rquickjs::{ArrayBuffer, Ctx, Error, Exception, FromJs, Function, Result, Value, qjs};

use crate::functions::Functions;

/// Bytes as a string: what is not UTF-8 becomes U+FFFD.
pub(crate) fn string<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<rquickjs::String<'js>> {
    rquickjs::String::from_str(ctx.clone(), &String::from_utf8_lossy(bytes))
}

/// A text of a script's, as an argument of a native function: what is no UTF-8 in it becomes U+FFFD.
pub(crate) struct Text(pub(crate) String);

impl<'js> FromJs<'js> for Text {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        if value.is_string() {
            text(ctx, &value).map(Self)
        } else {
            Err(Error::new_from_js(value.type_name(), "string"))
        }
    }
}

/// What `String` makes of a value, with U+FFFD for each lone surrogate.
///
/// # Errors
/// What the value's own functions throw.
pub(crate) fn text<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<String> {
    text_up_to(ctx, value, usize::MAX)
}

/// The first bytes of that, at most `most`. The last letter may be cut.
///
/// # Errors
/// As for [`text`].
pub(crate) fn text_up_to<'js>(ctx: &Ctx<'js>, value: &Value<'js>, most: usize) -> Result<String> {
    let (context, mut length) = (ctx.as_raw().as_ptr(), 0);
    // SAFETY: the context and the value are alive. The bytes are as many as it says, and freed once they are copied.
    unsafe {
        let bytes = qjs::JS_ToCStringLen(context, &raw mut length, value.as_raw());
        if bytes.is_null() {
            return Err(Error::Exception);
        }
        let copied = scalar(std::slice::from_raw_parts(bytes.cast(), most.min(length)));
        qjs::JS_FreeCString(context, bytes);
        Ok(copied)
    }
}

/// The text of UTF-8 in which surrogates may stand, as `QuickJS` makes it of a string: each becomes U+FFFD.
fn scalar(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    loop {
        let end = match std::str::from_utf8(bytes) {
            Ok(rest) if text.is_empty() => return rest.to_owned(),
            Ok(rest) => return text + rest,
            Err(error) => error.valid_up_to(),
        };
        let (valid, rest) = bytes.split_at(end);
        text.push_str(&String::from_utf8_lossy(valid));
        text.push(char::REPLACEMENT_CHARACTER);
        let length = if rest.first() == Some(&0xed) { 3 } else { 1 };
        bytes = rest.get(length..).unwrap_or_default();
    }
}

/// A value as a buffer, if it is one. Converting any other value would leave an error pending, which the script would meet at its next step.
fn buffer_of<'a>(value: &'a Value<'_>) -> Option<&'a ArrayBuffer<'a>> {
    // SAFETY: the value is alive, and its class is all that is read.
    let is_buffer = unsafe { qjs::JS_IsArrayBuffer(value.as_raw()) };
    value.as_object().filter(|_| is_buffer)?.as_array_buffer()
}

/// The bytes of a string, a buffer or an array of bytes.
pub(crate) fn of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<u8>> {
    if value.is_string() {
        return text(ctx, value).map(String::into_bytes);
    }
    if let Some(object) = value.as_object() {
        if let Some(buffer) = buffer_of(value) {
            // SAFETY: the bytes are copied at once; nothing of the script runs meanwhile, so nobody changes or detaches them.
            return Ok(unsafe { buffer.as_bytes() }.unwrap_or_default().to_vec());
        }
        // Every view has its buffer, its offset and its length.
        let buffer: Value<'js> = object.get("buffer")?;
        let (offset, length): (Option<usize>, Option<usize>) = (object.get("byteOffset")?, object.get("byteLength")?);
        if let (Some(buffer), Some(offset), Some(length)) = (buffer_of(&buffer), offset, length) {
            // SAFETY: as above.
            let bytes = unsafe { buffer.as_bytes() }.unwrap_or_default();
            return Ok(bytes.get(offset..offset.saturating_add(length)).unwrap_or_default().to_vec());
        }
    }
    if let Some(list) = value.as_array() {
        let numbers = list.iter::<f64>().collect::<Result<Vec<_>>>()?;
        return Ok(numbers.into_iter().map(|number| number as u8).collect());
    }
    Err(Exception::throw_type(ctx, &format!("expected a text or bytes, not {}", value.type_name())))
}

/// A value of the script's as one of a protocol's. Objects keep their order.
pub(crate) fn plain<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Plain<'static>> {
    if value.is_undefined() || value.is_null() {
        return Ok(Plain::Nil);
    }
    if let Some(value) = value.as_bool() {
        return Ok(Plain::Boolean(value));
    }
    if let Some(number) = value.as_number() {
        return Ok(Plain::Number(number));
    }
    if value.is_string() {
        return Ok(Plain::Text(of(ctx, value)?.into()));
    }
    if let Some(list) = value.as_array() {
        let values = list.iter::<Value<'js>>().map(|one| plain(ctx, &one?)).collect::<Result<Vec<_>>>()?;
        return Ok(Plain::list(values));
    }
    if let Some(object) = value.as_object() {
        if buffer_of(value).is_some() || object.contains_key("byteLength")? {
            return Ok(Plain::Text(of(ctx, value)?.into()));
        }
        let mut entries = Vec::new();
        for entry in object.props::<Value<'js>, Value<'js>>() {
            let (key, value) = entry?;
            entries.push((Plain::Text(text(ctx, &key)?.into_bytes().into()), plain(ctx, &value)?));
        }
        return Ok(Plain::Table(entries));
    }
    Err(Exception::throw_type(ctx, &format!("{} cannot be sent", value.type_name())))
}

/// The digest of `data`; `None` where the algorithm is unknown.
fn digest(algorithm: &str, data: &[u8]) -> Option<Vec<u8>> {
    Some(match algorithm {
        "md4" => md4::Md4::digest(data).to_vec(),
        "md5" => md5::Md5::digest(data).to_vec(),
        "ripemd160" => ripemd::Ripemd160::digest(data).to_vec(),
        "sha1" => ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, data).as_ref().to_vec(),
        "sha224" => sha2::Sha224::digest(data).to_vec(),
        "sha256" => sha2::Sha256::digest(data).to_vec(),
        "sha384" => sha2::Sha384::digest(data).to_vec(),
        "sha512" => sha2::Sha512::digest(data).to_vec(),
        "sha512_224" => sha2::Sha512_224::digest(data).to_vec(),
        "sha512_256" => sha2::Sha512_256::digest(data).to_vec(),
        _ => return None,
    })
}

/// The HMAC (RFC 2104) of `data`; `None` where the algorithm is unknown.
fn hmac(algorithm: &str, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    fn of<M: KeyInit + Mac>(key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        let code = <M as KeyInit>::new_from_slice(key).ok()?;
        Some(code.chain_update(data).finalize().into_bytes().to_vec())
    }
    match algorithm {
        "md4" => of::<hmac::Hmac<md4::Md4>>(key, data),
        "md5" => of::<hmac::Hmac<md5::Md5>>(key, data),
        "ripemd160" => of::<hmac::Hmac<ripemd::Ripemd160>>(key, data),
        "sha1" => {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key);
            Some(ring::hmac::sign(&key, data).as_ref().to_vec())
        }
        "sha224" => of::<hmac::Hmac<sha2::Sha224>>(key, data),
        "sha256" => of::<hmac::Hmac<sha2::Sha256>>(key, data),
        "sha384" => of::<hmac::Hmac<sha2::Sha384>>(key, data),
        "sha512" => of::<hmac::Hmac<sha2::Sha512>>(key, data),
        "sha512_224" => of::<hmac::Hmac<sha2::Sha512_224>>(key, data),
        "sha512_256" => of::<hmac::Hmac<sha2::Sha512_256>>(key, data),
        _ => None,
    }
}

/// The base64 of this name.
fn alphabet(kind: Option<&str>) -> &'static GeneralPurpose {
    match kind {
        Some("rawstd") => &STANDARD_NO_PAD,
        Some("url") => &URL_SAFE,
        Some("rawurl") => &URL_SAFE_NO_PAD,
        _ => &STANDARD,
    }
}

/// `bytes` packed by gzip or zlib.
fn deflate(coding: &str, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    match coding {
        "gzip" => flate2::read::GzEncoder::new(bytes, flate2::Compression::default()).read_to_end(&mut packed)?,
        _ => flate2::read::ZlibEncoder::new(bytes, flate2::Compression::default()).read_to_end(&mut packed)?,
    };
    Ok(packed)
}

/// The most random bytes that a script gets at once.
const MOST_RANDOM: usize = 1 << 27;

/// Adds the functions.
pub(crate) fn add<'js>(ctx: &Ctx<'js>, object: &Functions<'_, 'js>) -> Result<()> {
    let buffer = |ctx: &Ctx<'js>, bytes: Vec<u8>| ArrayBuffer::new(ctx.clone(), bytes);
    let unknown =
        |ctx: &Ctx<'js>, name: &str| Exception::throw_message(ctx, &format!("there is no algorithm '{name}'"));
    object.set("digest", || {
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, Text(name): Text, data: Value<'js>| {
            let digest = digest(&name, &of(&ctx, &data)?).ok_or_else(|| unknown(&ctx, &name))?;
            buffer(&ctx, digest)
        })
    })?;
    object.set("hmac", || {
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, Text(name): Text, key: Value<'js>, data: Value<'js>| {
            let code = hmac(&name, &of(&ctx, &key)?, &of(&ctx, &data)?).ok_or_else(|| unknown(&ctx, &name))?;
            buffer(&ctx, code)
        })
    })?;
    object.set("randomBytes", || {
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, count: usize| {
            if count > MOST_RANDOM {
                return Err(Exception::throw_range(
                    &ctx,
                    &format!("at most {MOST_RANDOM} random bytes at once, not {count}"),
                ));
            }
            let mut bytes = vec![0; count];
            let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
            filled.map_err(|_| Exception::throw_message(&ctx, "the system gives no random bytes"))?;
            buffer(&ctx, bytes)
        })
    })?;
    object.set("base64", || {
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, data: Value<'js>, kind: Option<String>| {
            Ok::<_, Error>(alphabet(kind.as_deref()).encode(of(&ctx, &data)?))
        })
    })?;
    object.set("unbase64", || {
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, Text(text): Text, kind: Option<String>| {
            let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
            let bytes = alphabet(kind.as_deref()).decode(text);
            buffer(&ctx, bytes.map_err(|error| Exception::throw_message(&ctx, &format!("it is not base64: {error}")))?)
        })
    })?;
    object.set("utf8", || {
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, text: Value<'js>| buffer(&ctx, of(&ctx, &text)?))
    })?;
    object.set("text", || {
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, data: Value<'js>| string(&ctx, &of(&ctx, &data)?))
    })?;
    object.set("deflate", || {
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, coding: String, data: Value<'js>| {
            let bytes = deflate(&coding, &of(&ctx, &data)?);
            buffer(&ctx, bytes.map_err(|error| Exception::throw_message(&ctx, &format!("{coding}: {error}")))?)
        })
    })
}
