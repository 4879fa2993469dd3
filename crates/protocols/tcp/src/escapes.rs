//! Bytes as text, for the command line.

/// The bytes of `text`: `\r`, `\n`, `\t`, `\0`, `\\`, `\xHH`, and everything else as it is.
///
/// # Errors
/// Says at which column it is wrong, and what may stand there.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut chars = text.chars().enumerate();
    while let Some((at, c)) = chars.next() {
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        bytes.push(match chars.next().map(|(_, c)| c) {
            Some('r') => b'\r',
            Some('n') => b'\n',
            Some('t') => b'\t',
            Some('0') => 0,
            Some('\\') => b'\\',
            Some('x') => {
                let mut digit = || chars.next().and_then(|(_, c)| c.to_digit(16));
                match (digit(), digit()) {
                    (Some(high), Some(low)) => (high * 16 + low) as u8,
                    _ => return Err(format!("column {}: expected two hexadecimal digits behind \\x", at + 1)),
                }
            }
            _ => return Err(format!("column {}: expected one of \\r \\n \\t \\0 \\\\ \\xHH", at + 1)),
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(unescape("PING\\r\\n"), Ok(b"PING\r\n".to_vec()));
        assert_eq!(unescape("\\x00\\xfF\\0\\t\\\\ü"), Ok([b"\x00\xff\x00\t\\", "ü".as_bytes()].concat()));
        assert_eq!(unescape(""), Ok(Vec::new()));
        for (text, problem) in [("a\\q", "column 2"), ("\\", "column 1"), ("\\x1", "two hexadecimal"), ("\\xgg", "two")]
        {
            assert!(unescape(text).unwrap_err().contains(problem), "{text}");
        }
    }
}
