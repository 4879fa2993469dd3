//! Bodies decompressed (RFC 9110, section 8.4).

use std::borrow::Cow;
use std::io::Read;

use brunt_protocol::OptionsError;

/// Limit on a decompressed body, in bytes: the same as for a body that was never compressed.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The most codings that are undone one after the other.
const MOST_CODINGS: usize = 4;
/// The codings of IANA's registry that change bytes.
const CODINGS: [&str; 12] = [
    "gzip",
    "x-gzip",
    "deflate",
    "br",
    "zstd",
    "compress",
    "x-compress",
    "exi",
    "aes128gcm",
    "dcb",
    "dcz",
    "pack200-gzip",
];

/// `body` without the codings that the values of Content-Encoding name, in the order in which they were applied.
///
/// # Errors
/// Says which coding is unknown, what is broken, or that the body is too large.
pub(super) fn decoded<'a, 'f>(
    body: &'a [u8],
    fields: impl Iterator<Item = &'f [u8]>,
) -> Result<Cow<'a, [u8]>, OptionsError> {
    let mut codings = Vec::new();
    for field in fields {
        for coding in field.split(|byte| *byte == b',') {
            let coding = String::from_utf8_lossy(coding.trim_ascii()).to_ascii_lowercase();
            // A word that is no coding, such as the charset that some servers write here, says nothing of the bytes.
            if CODINGS.contains(&coding.as_str()) {
                codings.push(coding);
            }
        }
    }
    if codings.len() > MOST_CODINGS {
        let problem = format!("the body was encoded {} times, and brunt undoes {MOST_CODINGS}", codings.len());
        return Err(OptionsError(problem));
    }
    // An answer without a body, such as that to HEAD, has nothing to decode.
    if body.is_empty() {
        return Ok(Cow::Borrowed(body));
    }
    let mut body = Cow::Borrowed(body);
    for coding in codings.iter().rev() {
        body = Cow::Owned(undone(coding, &body)?);
    }
    Ok(body)
}

fn undone(coding: &str, body: &[u8]) -> Result<Vec<u8>, OptionsError> {
    match coding {
        "gzip" | "x-gzip" => all(coding, flate2::read::MultiGzDecoder::new(body)),
        "deflate" if has_zlib_header(body) => all(coding, flate2::read::ZlibDecoder::new(body)),
        "deflate" => all(coding, flate2::read::DeflateDecoder::new(body)),
        "br" => all(coding, brotli_decompressor::Decompressor::new(body, 4096)),
        "zstd" => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(body);
            all(coding, decoder.map_err(|error| broken(coding, &error))?)
        }
        _ => {
            let problem = format!("the body is encoded as '{coding}'; brunt reads gzip, deflate, br and zstd");
            Err(OptionsError(problem))
        }
    }
}

/// Whether the body begins with a zlib header (RFC 1950). Some servers leave it out.
fn has_zlib_header(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && u16::from_be_bytes([*first, *second]).is_multiple_of(31))
}

fn broken(coding: &str, error: &dyn std::fmt::Display) -> OptionsError {
    OptionsError(format!("the body is said to be encoded as {coding}, and is not: {error}"))
}

fn all(coding: &str, decoder: impl Read) -> Result<Vec<u8>, OptionsError> {
    let mut decoded = Vec::new();
    decoder.take(MOST_BYTES as u64 + 1).read_to_end(&mut decoded).map_err(|error| broken(coding, &error))?;
    if decoded.len() > MOST_BYTES {
        return Err(OptionsError(format!("the body is larger than {} MiB when it is decompressed", MOST_BYTES >> 20)));
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn decoded_text(body: &[u8], field: &str) -> Result<String, String> {
        let decoded = decoded(body, std::iter::once(field.as_bytes())).map_err(|error| error.0)?;
        Ok(String::from_utf8_lossy(&decoded).into_owned())
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// `hello hello hello hello` by the tools of others: `brotli -c`, `zstd -c`.
    const BROTLI: &str = "1b1600f88d946ede445586966c206f214f1ce038";
    const ZSTD: &str = "28b52ffd04586500003068656c6c6f200100994b11175eae0d";

    fn bytes(hex: &str) -> Vec<u8> {
        hex.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn each_coding_is_undone() {
        let hello = "hello hello hello hello";
        assert_eq!(decoded_text(hello.as_bytes(), "identity").unwrap(), hello);
        assert_eq!(decoded_text(&gzip(hello.as_bytes()), "GZIP").unwrap(), hello);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        zlib.write_all(hello.as_bytes()).unwrap();
        assert_eq!(decoded_text(&zlib.finish().unwrap(), "deflate").unwrap(), hello);
        let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        raw.write_all(hello.as_bytes()).unwrap();
        assert_eq!(decoded_text(&raw.finish().unwrap(), "deflate").unwrap(), hello);
        assert_eq!(decoded_text(&bytes(BROTLI), "br").unwrap(), hello);
        assert_eq!(decoded_text(&bytes(ZSTD), "zstd").unwrap(), hello);
        assert_eq!(decoded_text(&gzip(&gzip(hello.as_bytes())), "gzip, gzip").unwrap(), hello);
        assert_eq!(decoded_text(b"", "gzip").unwrap(), "", "an answer without a body has nothing to decode");
    }

    #[test]
    fn what_cannot_be_undone_is_said() {
        assert!(decoded_text(b"x", "compress").unwrap_err().contains("encoded as 'compress'"));
        assert!(decoded_text(b"x", "gzip,gzip,gzip,gzip,gzip").unwrap_err().contains("encoded 5 times"));
        for coding in ["gzip", "deflate", "br", "zstd"] {
            assert!(decoded_text(b"hello", coding).unwrap_err().contains("and is not"), "{coding}");
        }
        let whole = gzip(b"hello");
        assert!(decoded_text(&whole[..whole.len() - 4], "gzip").unwrap_err().contains("and is not"), "cut short");
    }

    #[test]
    fn a_bomb_is_an_error() {
        let bomb = gzip(&vec![0; MOST_BYTES + 1]);
        assert!(bomb.len() < MOST_BYTES / 500);
        assert!(decoded_text(&bomb, "gzip").unwrap_err().contains("larger than 64 MiB"));
    }
}
