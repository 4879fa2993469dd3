//! The meaning of a head's fields for its stream (RFC 9113, section 8).

use crate::hpack::Fields;

/// The meaning of a header block, once its fields are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meaning {
    /// The status; `None` for trailers.
    pub status: Option<u16>,
    /// The value of content-length.
    pub length: Option<u64>,
    /// The reason if it is malformed.
    pub malformed: Option<&'static str>,
}

impl Meaning {
    /// The meaning of `fields` from a server.
    pub fn from_fields(fields: &Fields) -> Self {
        let mut meaning = Self::default();
        if let Err(reason) = meaning.read(fields) {
            meaning.malformed = Some(reason);
        }
        meaning
    }

    fn read(&mut self, fields: &Fields) -> Result<(), &'static str> {
        let mut regular = false;
        for (name, value) in fields.iter() {
            if name.first() == Some(&b':') {
                Self::check_value(value)?;
                match (name, self.status, regular) {
                    (b":status", None, false) => self.status = Some(status(value)?),
                    (b":status", ..) => return Err(":status twice, or behind other fields"),
                    _ => return Err("a pseudo-header field that answers have not"),
                }
                continue;
            }
            regular = true;
            self.regular(name, value)?;
        }
        Ok(())
    }

    /// Whether a value can be one.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check_value(value: &[u8]) -> Result<(), &'static str> {
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Err("a header field whose value has a line end or NUL in it");
        }
        Ok(())
    }

    /// Takes a field that is no pseudo-header field.
    ///
    /// # Errors
    /// When it makes the message malformed.
    pub fn regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        Self::check_value(value)?;
        if name.is_empty() || name.iter().any(|byte| !is_name(*byte)) {
            return Err("a header field whose name is not in lower case, or no name");
        }
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                Err("a header field of HTTP/1.1's connections")
            }
            b"content-length" => {
                let length = length(value)?;
                if self.length.is_some_and(|known| known != length) {
                    return Err("conflicting content-length");
                }
                self.length = Some(length);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Whether a byte may stand in the name of a field (RFC 9113, section 8.2.1).
fn is_name(byte: u8) -> bool {
    matches!(byte, 0x21..=0x39 | 0x3b..=0x40 | 0x5b..=0x7e)
}

fn status(value: &[u8]) -> Result<u16, &'static str> {
    match value {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Ok([a, b, c].iter().fold(0, |status, digit| status * 10 + u16::from(**digit - b'0')))
        }
        _ => Err("a :status that is not a number of three digits"),
    }
}

fn length(value: &[u8]) -> Result<u64, &'static str> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err("bad content-length");
    }
    Ok(value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
