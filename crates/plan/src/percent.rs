//! Escapes of URLs.

/// A part of a URL with its escapes decoded (RFC 3986 §2.1). Text that is not an escape stays as it is.
pub fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let hex = (byte == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex {
            Some(decoded) => {
                bytes.push(decoded);
                rest = after.get(2..).unwrap_or(&[]);
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
